/* SPDX-License-Identifier: Apache-2.0 */
/* Every story of the node shell, with every fault at every single write of it: it ends as if
 * nothing had happened, and no limit is exceeded on the way. */
#include "support/check.h"

#include "support/operator_story.h"

/* Takes out how often a stage failed. */
static int take_restarts(str text, buf *ret_rest)
{
    static const str key = STR(",\"restarts\":");
    size_t at = str_find(text, key);
    str after = at == SIZE_MAX ? STR_EMPTY : str_part(text, at + key.len, SIZE_MAX);
    int count = after.len > 0 ? after.ptr[0] - '0' : 0;
    buf_add(ret_rest, str_part(text, 0, at));
    if (after.len > 0)
        buf_add(ret_rest, str_part(after, 1, SIZE_MAX));
    return count;
}

/* A Job that is refused is a failed attempt: the state tells so, and the next one is a new place in
 * the order. */
static bool differs_by_an_attempt(str is, str be)
{
    buf rest = BUF(1u << 16), wanted = BUF(1u << 16);
    int more = take_restarts(is, &rest) - take_restarts(be, &wanted);
    bool same = str_eq(buf_str(&rest), buf_str(&wanted)) && more == 1;
    buf_done(&rest);
    buf_done(&wanted);
    return same || str_starts(is, STR("nodeOrderOffset"));
}

/* The first line that differs, and what was written. */
static void check_end(fake *f, fake_plan plan, str want)
{
    buf got = BUF(1u << 20);
    put_end(f, &got);
    str rest = buf_str(&got), wanted = want;
    while (wanted.len > 0) {
        str is = str_cut(&rest, '\n'), be = str_cut(&wanted, '\n');
        if (str_eq(is, be) || (plan.fault == FAULT_INVALID && differs_by_an_attempt(is, be)))
            continue;
        print_error("write %llu, %s: found %.*s, expected %.*s\n%s", (unsigned long long)plan.at,
                    fake_fault_text(plan.fault), STR_ARG(is), STR_ARG(be), f->log.ptr);
        fail();
    }
    buf_done(&got);
}

static void meet_everywhere(story tell, fake_fault fault)
{
    buf want = BUF(1u << 20);
    fake *f = tell((fake_plan){0});
    uint64_t sent = f->sent;
    put_end(f, &want);
    fake_free(f);
    for (uint64_t at = 1; at <= sent; at++)
        for (int order = 0; order < (fault == FAULT_KILL ? 2 : 1); order++) {
            fake_plan plan = {fault, at, order == 1};
            f = tell(plan);
            check_end(f, plan, buf_str(&want));
            fake_free(f);
        }
    buf_done(&want);
}

static const struct {
    const char *name;
    story tell;
} stories[] = {{"install", install_story},   {"failure", failure_story},
               {"upgrade", upgrade_story},   {"interrupt", interrupt_story},
               {"required", required_story}, {"deletion", deletion_story},
               {"acts", acts_story},         {"files", files_story},
               {"shared", shared_story}};

static void each_story(fake_fault fault)
{
    const char *only = getenv("STORY");
    for (size_t i = 0; i < COUNT_OF(stories); i++)
        if (!only || strcmp(only, stories[i].name) == 0)
            meet_everywhere(stories[i].tell, fault);
}

static void killed(void **state)
{
    (void)state;
    each_story(FAULT_KILL);
}

static void conflict(void **state)
{
    (void)state;
    each_story(FAULT_CONFLICT);
}

static void phantom(void **state)
{
    (void)state;
    each_story(FAULT_PHANTOM);
}

static void repeated(void **state)
{
    (void)state;
    each_story(FAULT_REPEATED);
}

static void legacy(void **state)
{
    (void)state;
    each_story(FAULT_LEGACY);
}

static void invalid(void **state)
{
    (void)state;
    each_story(FAULT_INVALID);
}

static void forbidden(void **state)
{
    (void)state;
    each_story(FAULT_FORBIDDEN);
}

static void answer_lost(void **state)
{
    (void)state;
    each_story(FAULT_LOST);
}

static void late(void **state)
{
    (void)state;
    each_story(FAULT_LATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed),  cmocka_unit_test(conflict),  cmocka_unit_test(repeated),
        cmocka_unit_test(invalid), cmocka_unit_test(forbidden), cmocka_unit_test(answer_lost),
        cmocka_unit_test(late),    cmocka_unit_test(legacy),    cmocka_unit_test(phantom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
