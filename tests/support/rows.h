/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - a table as tests: one test a row, under the name of the row.
 *
 * A test gets its row in *state. A row that is broken does not hide the others. */
#ifndef DROVER_TESTS_SUPPORT_ROWS_H
#define DROVER_TESTS_SUPPORT_ROWS_H

#include "support/check.h"

#define ROWS_MAX 256
#define ROW_NAME 160

typedef struct row_list {
    struct CMUnitTest tests[ROWS_MAX];
    char names[ROWS_MAX][ROW_NAME];
    size_t count;
} row_list;

static inline void __attribute__((format(printf, 4, 5)))
rows_add(row_list *r, CMUnitTestFunction test, const void *row, const char *format, ...)
{
    va_list args;
    assert_true(r->count < ROWS_MAX);
    va_start(args, format);
    vsnprintf(r->names[r->count], ROW_NAME, format, args);
    va_end(args);
    for (char *c = r->names[r->count]; *c; c++) /* a test is one line */
        *c = *c == '\n' ? ' ' : *c;
    r->tests[r->count] = (struct CMUnitTest){
        .name = r->names[r->count], .test_func = test, .initial_state = (void *)(uintptr_t)row};
    r->count++;
}

/* Every row of an array whose rows have a member "name", behind the place where the table stands:
 *     ROWS_ADD(&all, a4_row, a4_rows, "A4"); */
#define ROWS_ADD(all, test, array, place)                                                          \
    for (size_t row_ = 0; row_ < COUNT_OF(array); row_++)                                          \
    rows_add((all), (test), &(array)[row_], "%s: %s", (place), (array)[row_].name)

/* A test of its own. */
#define ROWS_TEST(all, test) rows_add((all), (test), NULL, "%s", #test)

static inline int rows_run(const row_list *r)
{
    return _cmocka_run_group_tests("rows", r->tests, r->count, NULL, NULL);
}

#endif
