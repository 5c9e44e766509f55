/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails in turn, also those that libyaml, yyjson, libical and RE2 make without
 * asking us: malloc and its family are replaced by ones that count. A sanitizer has its own malloc,
 * so this is not built there; test-samples fails our own allocations in every build. */
#include "support/check.h"

#include "model/lint.h"
#include "model/recurrence.h"
#include "support/documents.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *ptr, size_t bytes);
extern void __libc_free(void *ptr);

static bool counting;
static uint64_t countdown; /* 0: none fails */
static bool has_failed;
static int64_t alive;

/* Whether the call that is made now is the one that fails. */
static bool fails_now(void)
{
    if (!counting || countdown == 0 || --countdown > 0)
        return false;
    has_failed = true;
    return true;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    void *ptr = fails_now() ? NULL : __libc_malloc(bytes);
    alive += counting && ptr;
    return ptr;
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    void *ptr = fails_now() ? NULL : __libc_calloc(count, bytes);
    alive += counting && ptr;
    return ptr;
}

__attribute__((visibility("default"))) void *realloc(void *ptr, size_t bytes)
{
    void *moved = fails_now() ? NULL : __libc_realloc(ptr, bytes);
    alive += counting && moved && !ptr;
    return moved;
}

__attribute__((visibility("default"))) void free(void *ptr)
{
    alive -= counting && ptr;
    __libc_free(ptr);
}

/* Reads, looks at all together, writes. False when anything went wrong. */
static bool work(const char *path, str text)
{
    loaded l = load_text(path, text);
    bool good = l.good;
    if (good) /* a sample by itself may refer to others, so there may be errors */
        lint_all(l.objects, l.found);
    good = good && !problems_out_of_memory(l.found);
    for (size_t i = 0; good && i < l.objects->len; i++) {
        buf out = BUF(LIMIT_TEXT_BYTES);
        object_write(&l.objects->at[i], &out);
        good = !out.failed;
        buf_done(&out);
    }
    loaded_free(&l);
    return good;
}

/* No sample has a regular expression: RE2 is C++, and C++ ends the program when "new" fails. */
static void fail_sample(const char *path, str text)
{
    check_msg(work(path, text), "%s", path);
    for (uint64_t nth = 1;; nth++) {
        alive = 0;
        has_failed = false;
        countdown = nth;
        counting = true;
        bool good = work(path, text);
        counting = false;
        check_msg(alive == 0, "%s: allocation %llu failed and %lld blocks are left", path,
                  (unsigned long long)nth, (long long)alive);
        check_msg(good != has_failed, "%s: allocation %llu %s, but the work %s", path,
                  (unsigned long long)nth, has_failed ? "failed" : "did not fail",
                  good ? "succeeded" : "failed");
        if (!has_failed)
            return;
    }
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    /* libical keeps the number of the last error of a thread for good: let it have that first. */
    recurrence ignored;
    assert_false(recurrence_parse(STR("FREQ=NEVER"), &ignored, NULL));
    assert_true(each_sample(fail_sample) >= 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
