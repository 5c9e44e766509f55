/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/arena.h"
#include "base/vec.h"

static void test_zeroed_and_aligned(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    for (size_t bytes = 0; bytes < 300; bytes++) {
        char *p = arena_alloc(a, bytes);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xAB, bytes);
    }
}

static void test_chunks_stay_moderate(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    uint64_t calls = mem_calls();
    for (size_t i = 0; i < 5000; i++)
        assert_non_null(arena_alloc(a, 1024));
    check_msg(mem_calls() - calls < 20, "%d chunks", (int)(mem_calls() - calls));
    assert_int_equal(arena_used(a), 5000 * 1024);
}

static void test_used_counts_padding(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    assert_int_equal(arena_used(a), 0);
    assert_non_null(arena_alloc(a, 1));
    assert_int_equal(arena_used(a), 16);
    assert_non_null(arena_alloc(a, 16));
    assert_int_equal(arena_used(a), 32);
    assert_non_null(arena_alloc(a, 17));
    assert_int_equal(arena_used(a), 64);
}

static void test_maximum(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(100);
    assert_null(arena_alloc(a, 101));
    assert_non_null(arena_alloc(a, 100));
    assert_null(arena_alloc(a, 1));
    a = arena_free(a);

    a = arena_new(100);
    assert_non_null(arena_alloc(a, 50)); /* 64 with padding */
    assert_null(arena_alloc(a, 37));
    assert_non_null(arena_alloc(a, 36));
    a = arena_free(a);

    a = arena_new(10);
    assert_non_null(arena_alloc(a, 10)); /* padding may go past the maximum */
    assert_null(arena_alloc(a, 0));
}

static void test_sizes_that_overflow(void **state)
{
    (void)state;
    static const size_t maxima[] = {0, SIZE_MAX, SIZE_MAX / 2, 1000};
    for (size_t i = 0; i < COUNT_OF(maxima); i++) {
        scoped(arena_cleanup) arena *a = arena_new(maxima[i]);
        assert_null(arena_alloc(a, SIZE_MAX));
        assert_null(arena_alloc(a, SIZE_MAX - 15));
        assert_null(arena_alloc(a, SIZE_MAX / 2 + 1));
        assert_null(arena_array(a, SIZE_MAX / 2, 3));
        assert_null(arena_array(a, SIZE_MAX, SIZE_MAX));
        assert_null(arena_str(a, (str){"x", SIZE_MAX / 2}).ptr);
        assert_int_equal(arena_used(a), 0);
    }
}

static void test_arrays(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    uint32_t *numbers = ARENA_ARRAY(a, 1000, uint32_t);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(numbers[i], 0);
    assert_non_null(ARENA_ARRAY(a, 0, uint32_t));
    assert_non_null(ARENA_NEW(a, uint64_t));
}

static void test_text(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    char origin[] = "text";
    str copy = arena_str(a, str_of(origin));
    origin[0] = 'x';
    check_text(copy, "text");
    assert_int_equal(copy.ptr[4], 0);
    str empty = arena_str(a, (str){NULL, 0});
    assert_non_null(empty.ptr);
    assert_int_equal(empty.len, 0);
    check_str(arena_str(a, (str){"a\0b", 3}), ((str){"a\0b", 3}));
    check_text(arena_printf(a, "%s-%04d", "node", 7), "node-0007");
    check_text(arena_printf(a, "%s", ""), "");
    str wide = arena_printf(a, "%9000d", 1);
    assert_int_equal(wide.len, 9000);
    assert_int_equal(wide.ptr[8999], '1');
    assert_int_equal(wide.ptr[9000], 0);
    /* vsnprintf refuses it. */
    assert_null(arena_printf(a, CHECK_NOT_PRINTABLE).ptr);
}

static void test_free_accepts_null(void **state)
{
    (void)state;
    assert_null(arena_free(NULL));
    arena *a = arena_new(0);
    arena_cleanup(&a);
    assert_null(a);
    arena_cleanup(&a);
}

static void test_rewind_keeps_memory(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    arena_place start = arena_mark(a);
    for (int round = 0; round < 100; round++) {
        uint64_t calls = mem_calls();
        for (size_t i = 0; i < 2000; i++) {
            char *p = arena_alloc(a, i);
            assert_non_null(p);
            assert_true(i == 0 || (p[0] == 0 && p[i - 1] == 0));
            memset(p, 0xAB, i);
        }
        check_msg(round == 0 || mem_calls() == calls, "round %d allocates", round);
        arena_rewind(a, start);
        assert_int_equal(arena_used(a), 0);
    }
}

static void test_rewind_to_the_middle(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(100000);
    str kept = arena_str(a, STR("kept"));
    arena_place place = arena_mark(a);
    size_t used = arena_used(a);
    assert_non_null(arena_alloc(a, 90000));
    assert_null(arena_alloc(a, 90000));
    arena_rewind(a, place);
    assert_int_equal(arena_used(a), used);
    assert_non_null(arena_alloc(a, 90000)); /* the maximum counts what is in use */
    arena_rewind(a, place);
    check_text(kept, "kept");
    /* A chunk that is too small for the next thing stays in the chain. */
    assert_non_null(arena_alloc(a, 5000));
    assert_non_null(arena_alloc(a, 6000));
    arena_rewind(a, place);
    assert_non_null(arena_alloc(a, 95000));
    check_text(kept, "kept");
}

typedef struct piece {
    unsigned char *ptr;
    size_t bytes;
    unsigned char mark;
} piece;

/* Pieces keep what was written to them, whatever is handed out and rewound around them. */
static void test_random_pieces_do_not_overlap(void **state)
{
    (void)state;
    rng r = rng_seeded();
    for (int round = 0; round < 200; round++) {
        scoped(arena_cleanup) arena *a = arena_new(0);
        VEC(piece) pieces = {0};
        arena_place places[8];
        size_t place_pieces[8];
        size_t place_count = 0;
        for (int step = 0; step < 300; step++) {
            size_t choice = rng_below(&r, 20);
            if (choice == 0 && place_count < 8) {
                places[place_count] = arena_mark(a);
                place_pieces[place_count++] = pieces.len;
            } else if (choice == 1 && place_count > 0) {
                arena_rewind(a, places[--place_count]);
                pieces.len = place_pieces[place_count];
            } else {
                size_t bytes = rng_below(&r, choice == 2 ? 20000 : 200);
                piece p = {arena_alloc(a, bytes), bytes, (unsigned char)rng_next(&r)};
                assert_non_null(p.ptr);
                for (size_t i = 0; i < bytes; i++)
                    assert_int_equal(p.ptr[i], 0);
                memset(p.ptr, p.mark, bytes);
                assert_true(vec_push(&pieces, p));
            }
        }
        for (size_t i = 0; i < pieces.len; i++)
            for (size_t j = 0; j < pieces.at[i].bytes; j++)
                assert_int_equal(pieces.at[i].ptr[j], pieces.at[i].mark);
        vec_done(&pieces);
    }
}

static bool use_arena(void *context)
{
    (void)context;
    scoped(arena_cleanup) arena *a = arena_new(0);
    if (!a)
        return false;
    bool good = arena_alloc(a, 3000) && arena_str(a, STR("text")).ptr;
    size_t used = arena_used(a);
    if (good && !arena_alloc(a, 5000)) {
        assert_int_equal(arena_used(a), used); /* failing changes nothing */
        assert_non_null(arena_alloc(a, 16));
        return false;
    }
    return good && arena_printf(a, "%20000d", 1).ptr;
}

static void test_no_memory(void **state)
{
    (void)state;
    check_each_allocation_fails(use_arena, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_and_aligned),
        cmocka_unit_test(test_chunks_stay_moderate),
        cmocka_unit_test(test_used_counts_padding),
        cmocka_unit_test(test_maximum),
        cmocka_unit_test(test_sizes_that_overflow),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_free_accepts_null),
        cmocka_unit_test(test_rewind_keeps_memory),
        cmocka_unit_test(test_rewind_to_the_middle),
        cmocka_unit_test(test_random_pieces_do_not_overlap),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
