/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include <pthread.h>
#include <stdio.h>

#include "base/footprint.h"

static void test_counts(void **state)
{
    (void)state;
    uint64_t calls = mem_calls();
    int64_t live = mem_live();
    void *a = mem_alloc(10);
    char *b = mem_zalloc(100);
    void *c = mem_realloc(NULL, 10);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(b[i], 0);
    assert_int_equal(mem_calls() - calls, 3);
    assert_int_equal(mem_live() - live, 3);
    c = mem_realloc(c, 10000);
    assert_non_null(c);
    assert_int_equal(mem_calls() - calls, 4);
    assert_int_equal(mem_live() - live, 3);
    assert_null(mem_free(a));
    assert_null(mem_free(b));
    assert_null(mem_free(c));
    assert_null(mem_free(NULL));
    assert_int_equal(mem_live(), live);
    assert_int_equal(mem_calls() - calls, 4);
}

static void test_zero_bytes_are_a_block(void **state)
{
    (void)state;
    void *a = mem_alloc(0);
    void *b = mem_zalloc(0);
    void *c = mem_realloc(NULL, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    /* Not freed, as realloc(p, 0) may do. */
    c = mem_realloc(c, 0);
    assert_non_null(c);
    mem_free(a);
    mem_free(b);
    mem_free(c);
}

static void test_fails_once_at_the_nth(void **state)
{
    (void)state;
    mem_fail_at(2);
    void *a = mem_alloc(1);
    assert_non_null(a);
    assert_false(mem_failed());
    assert_null(mem_zalloc(1));
    assert_true(mem_failed());
    void *b = mem_alloc(1);
    assert_non_null(b);
    assert_true(mem_failed());

    int64_t live = mem_live();
    memcpy(a, "x", 1);
    mem_fail_at(1);
    assert_false(mem_failed());
    assert_null(mem_realloc(a, 100));
    assert_memory_equal(a, "x", 1); /* the old block stays */
    assert_int_equal(mem_live(), live);
    mem_fail_at(1);
    mem_fail_at(0);
    a = mem_realloc(a, 100);
    assert_non_null(a);
    assert_false(mem_failed());
    mem_free(a);
    mem_free(b);
}

static void *other_thread(void *unused)
{
    (void)unused;
    void *block = mem_alloc(1);
    bool good = block && mem_calls() == 1 && mem_live() == 1;
    mem_free(block);
    static int yes;
    return good ? &yes : NULL;
}

static void test_each_thread_has_its_own(void **state)
{
    (void)state;
    mem_fail_at(1);
    uint64_t calls = mem_calls();
    pthread_t thread;
    void *good = NULL;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &good), 0);
    assert_non_null(good);
    assert_int_equal(mem_calls(), calls);
    assert_false(mem_failed());
    mem_fail_at(0);
}

static void count_cleanup(int **counter)
{
    ++**counter;
}

static void test_scoped(void **state)
{
    (void)state;
    int count = 0;
    for (int i = 0; i < 3; i++) {
        scoped(count_cleanup) int *counter = &count;
        assert_int_equal(*counter, i);
    }
    assert_int_equal(count, 3);
}

/* KiB of files that are in memory for this process. */
static long resident_of_files(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        sscanf(line, "RssFile: %ld", &kib);
    fclose(status);
    assert_true(kib >= 0);
    return kib;
}

static void test_footprint_shrinks_and_nothing_is_lost(void **state)
{
    (void)state;
    static int written = 1; /* in a segment that is written to */
    char *block = mem_alloc(100000);
    memset(block, 'x', 100000);
    written = 2;
    long before = resident_of_files();
    footprint_shrink();
    long after = resident_of_files();
    check_msg(after < before, "%ld KiB before, %ld KiB after", before, after);
    assert_int_equal(written, 2);
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(block[i], 'x');
    mem_free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_zero_bytes_are_a_block),
        cmocka_unit_test(test_fails_once_at_the_nth),
        cmocka_unit_test(test_each_thread_has_its_own),
        cmocka_unit_test(test_scoped),
        cmocka_unit_test(test_footprint_shrinks_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
