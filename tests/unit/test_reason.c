/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "engine/reason.h"

static void every_rule_has_a_name_and_a_sentence(void **state)
{
    (void)state;
    arena *a = arena_new(0);
#define X(kind, text)                                                                              \
    {                                                                                              \
        reason r = {.rule = REASON_##kind, .next_ms = REASON_NEVER, .detail = STR("it")};          \
        check_text(reason_rule_name(r.rule), text);                                                \
        check_msg(reason_text(a, &r).len > 0, text);                                               \
    }
    REASON_RULES(X)
#undef X
#define X(kind, text) check_text(release_act_name(RELEASE_##kind), text);
    RELEASE_ACTS(X)
#undef X
    arena_free(a);
}

static void sentences_name_numbers_holders_and_times(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    static const str holders[] = {STR("a"), STR("b"), STR("c"), STR("d"), STR("e")};
    static const struct {
        reason reason;
        const char *text;
    } rows[] = {
        {{.rule = REASON_BUDGET, .have = 5, .limit = 5, .next_ms = REASON_NEVER},
         "5 of 5 places are taken"},
        {{.rule = REASON_CONCURRENCY,
          .have = 2,
          .limit = 2,
          .holders = holders,
          .holder_count = 2,
          .next_ms = REASON_NEVER},
         "2 of 2 slots are taken (a, b)"},
        {{.rule = REASON_BATCH, .holders = holders, .holder_count = 5, .next_ms = REASON_NEVER},
         "the next batch begins when the present one has ended (a, b, c and 2 more)"},
        {{.rule = REASON_ROLLOUT, .next_ms = 1731661200500},
         "its turn is at 2024-11-15T09:00:00.5Z"},
        {{.rule = REASON_ROLLOUT, .next_ms = REASON_NEVER},
         "the rollout has not started: another rule comes first"},
        {{.rule = REASON_RETRY, .have = 10, .detail = STR("Evicted"), .next_ms = REASON_NEVER},
         "failed 10 times and is not tried again by itself (Evicted)"},
        {{.rule = REASON_RETRY, .have = 1, .detail = STR("Evicted"), .next_ms = -1500},
         "failed (Evicted); tried again at 1969-12-31T23:59:58.5Z"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_text(reason_text(a, &rows[i].reason), rows[i].text);
    arena_free(a);
}

static void the_json_says_how_many_are_enough(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    buf out = BUF(4096);
    static const str of[] = {STR("a"), STR("b"), STR("c")};
    reason r = {.rule = REASON_UNAVAILABLE,
                .scope = STR("partition p"),
                .act = RELEASE_COMPLETE,
                .of = of,
                .of_count = 3,
                .any = 2,
                .have = 3,
                .limit = 2,
                .next_ms = REASON_NEVER};
    reason_json(&r, 2, a, &out);
    check_text(buf_str(&out),
               "{\"rule\":\"unavailable\",\"scope\":\"partition p\",\"message\":\"3 targets are "
               "unavailable, 2 may be\",\"holders\":[],\"releasedBy\":{\"act\":\"complete\","
               "\"of\":[\"a\",\"b\"],\"more\":1,\"any\":2},\"nextAt\":null}");
    buf_done(&out);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_has_a_name_and_a_sentence),
        cmocka_unit_test(sentences_name_numbers_holders_and_times),
        cmocka_unit_test(the_json_says_how_many_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
