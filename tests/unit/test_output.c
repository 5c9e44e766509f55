/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "cli/output.h"

static const column columns[] = {
    {.title = "NAME", .shrink = true},
    {.title = "COUNT", .right = true},
    {.title = "WHY", .shrink = true},
};

/* The table that these cells make. */
static buf printed(const char *const *cells, size_t count)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    table *t = table_new(columns, COUNT_OF(columns));
    for (size_t i = 0; i < count; i++)
        table_cell(t, str_of(cells[i]));
    assert_true(table_print(t, file));
    table_free(t);
    fclose(file);
    buf out = BUF(10000);
    buf_add(&out, (str){text, len});
    free(text);
    return out;
}

static void test_table(void **state)
{
    (void)state;
    static const char *const cells[] = {"one", "1", "", "näh", "1000000", "x"};
    buf found = printed(cells, COUNT_OF(cells));
    check_str(buf_str(&found), STR("NAME    COUNT  WHY\n"
                                   "one         1  \n"
                                   "näh   1000000  x\n"));
    buf_done(&found);
}

static void test_table_fits(void **state)
{
    (void)state;
    char name[301], why[301];
    memset(name, 'n', 300);
    memset(why, 'w', 300);
    name[300] = why[300] = 0;
    const char *cells[] = {name, "1", why};
    buf found = printed(cells, COUNT_OF(cells));
    str rest = buf_str(&found);
    for (str line = str_cut(&rest, '\n'); rest.ptr; line = str_cut(&rest, '\n'))
        check_msg(output_width(line) <= OUTPUT_COLUMNS, "%.*s", STR_ARG(line));
    assert_true(str_find(buf_str(&found), STR("n…  ")) != SIZE_MAX);
    assert_true(str_find(buf_str(&found), STR("w…\n")) != SIZE_MAX);
    buf_done(&found);
}

static void test_wrap(void **state)
{
    (void)state;
    buf out = BUF(10000), words = BUF(10000);
    for (int i = 0; i < 30; i++)
        buf_addf(&words, "%sword-%02d", i ? " " : "", i);
    output_wrap(&out, buf_str(&words), 10, 4);
    str rest = buf_str(&out);
    for (size_t n = 0; rest.ptr; n++) {
        str line = str_cut(&rest, '\n');
        assert_true(line.len + (n == 0 ? 10 : 0) <= OUTPUT_COLUMNS);
        assert_true(n == 0 || str_starts(line, STR("    word-")));
    }
    buf_done(&out);
    buf_done(&words);
}

static bool print_something(void *context)
{
    (void)context;
    FILE *file = fopen("/dev/null", "w");
    table *t = table_new(columns, COUNT_OF(columns));
    bool good = t != NULL;
    for (int i = 0; t && i < 3; i++)
        table_cellf(t, "%d", i);
    good = good && table_print(t, file);
    table_free(t);
    fclose(file);
    return good;
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    check_each_allocation_fails(print_something, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_fits),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
