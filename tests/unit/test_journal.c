/* SPDX-License-Identifier: Apache-2.0 */
/* Facts and decisions as the journal keeps them. */
#include "support/check.h"

#include "server/journal.h"
#include "support/documents.h"

static void check_fact_text(const fact *f, const char *want)
{
    buf out = BUF(10000);
    journal_write_fact(&out, f);
    check_text(buf_str(&out), want);
    buf_done(&out);
}

static void facts_are_one_object_each(void **state)
{
    (void)state;
    const struct {
        fact fact;
        const char *want;
    } rows[] = {
        {{.kind = FACT_JOB,
          .job = {.deployment = STR("app"),
                  .environment = STR("prod"),
                  .resource = STR("n\"1"),
                  .job = 7,
                  .outcome = OUTCOME_LOST,
                  .reason = STR("gone")}},
         "{\"fact\":\"job\",\"deployment\":\"app\",\"environment\":\"prod\","
         "\"resource\":\"n\\\"1\",\"job\":7,"
         "\"outcome\":\"lost\",\"reason\":\"gone\"}"},
        {{.kind = FACT_JOB, .job = {.verification_failed = true}},
         "{\"fact\":\"job\",\"outcome\":\"succeeded\",\"verificationFailed\":true}"},
        {{.kind = FACT_ACT, .act = {.act = ACT_THAW, .who = STR("ann"), .name = STR("lunch")}},
         "{\"fact\":\"act\",\"act\":\"thaw\",\"who\":\"ann\",\"name\":\"lunch\"}"},
        {{.kind = FACT_TARGET_GONE, .target = {.kind = TARGET_RESOURCE, .name = STR("n1")}},
         "{\"fact\":\"targetGone\",\"name\":\"n1\"}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_fact_text(&rows[i].fact, rows[i].want);
    check_fact_text(NULL, "{\"fact\":\"time\"}");
}

/* What is read is written again as it was. */
static void check_round(const fact *f)
{
    buf out = BUF(10000), again = BUF(10000);
    arena *a = arena_new(0);
    journal_fact read;
    err error;
    journal_write_fact(&out, f);
    check_msg(journal_read_fact(a, buf_str(&out), &read, &error), "%s", error.text);
    assert_false(read.time);
    journal_write_fact(&again, &read.fact);
    check_str(buf_str(&again), buf_str(&out));
    buf_done(&out);
    buf_done(&again);
    arena_free(a);
}

static void every_act_and_outcome_comes_back(void **state)
{
    (void)state;
    static const act_kind acts[] = {
#define X(kind, text) ACT_##kind,
        ACTS(X)
#undef X
    };
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        fact f = {.kind = FACT_ACT,
                  .act = {.act = acts[i],
                          .who = STR("w\n"),
                          .change = STR("c"),
                          .target = STR("t"),
                          .environment = STR("e"),
                          .version = STR("v"),
                          .rule = STR("r"),
                          .partition = STR("p"),
                          .name = STR("n"),
                          .selector = STR("resource.name == \"a\""),
                          .reason = STR("\xc3\xa9"),
                          .until_ms = INT64_MAX,
                          .keep_batches = i % 2 == 0}};
        check_round(&f);
        act_kind found;
        assert_true(act_find(act_name(acts[i]), &found) && found == acts[i]);
    }
    for (outcome o = OUTCOME_SUCCEEDED; o <= OUTCOME_LOST; o++)
        check_round(&(fact){
            .kind = FACT_JOB,
            .job = {.deployment = STR("d"), .resource = STR("r"), .job = INT64_MAX, .outcome = o}});
    act_kind unused;
    assert_false(act_find(STR("nap"), &unused));
    check_round(
        &(fact){.kind = FACT_TARGET_GONE, .target = {.kind = TARGET_RESOURCE, .name = STR("n1")}});
}

static void documents_come_back_as_the_same_text(void **state)
{
    (void)state;
    loaded l = load_text(
        "t.yaml",
        STR("apiVersion: drover.dev/v1alpha1\nkind: Resource\n"
            "metadata: {name: n1, labels: {a: b}, creationTimestamp: '2026-01-01T00:00:00Z'}\n"
            "spec: {kind: host, config: {x: [1, 2.50, \"}\"]}}\n---\n"
            "apiVersion: drover.dev/v1alpha1\nkind: Version\nmetadata: {name: v}\n"
            "spec: {deployment: d, tag: '1'}\n"));
    assert_true(l.good);
    const fact_kind kinds[] = {FACT_TARGET, FACT_DOCUMENT},
                    gone[] = {FACT_TARGET_GONE, FACT_DOCUMENT_GONE};
    for (size_t i = 0; i < 2; i++) {
        arena *a = arena_new(0);
        buf out = BUF(10000), text = BUF(10000);
        journal_fact read;
        err error;
        fact f = journal_fact_of(&l.objects->at[i]);
        assert_int_equal(f.kind, kinds[i]);
        journal_write_fact(&out, &f);
        check_msg(journal_read_fact(a, buf_str(&out), &read, &error), "%s", error.text);
        assert_int_equal(read.fact.kind, kinds[i]);
        object_write(&l.objects->at[i], &text);
        check_str(read.document, buf_str(&text));
        buf_clear(&out);
        f = journal_gone_of(&l.objects->at[i]);
        journal_write_fact(&out, &f);
        check_msg(journal_read_fact(a, buf_str(&out), &read, &error), "%s", error.text);
        assert_int_equal(read.fact.kind, gone[i]);
        assert_int_equal(read.document.len, 0);
        if (gone[i] == FACT_DOCUMENT_GONE) {
            assert_int_equal(read.fact.document->kind, KIND_VERSION);
            check_text(read.fact.document->metadata->name, "v");
        }
        buf_done(&out);
        buf_done(&text);
        arena_free(a);
    }
    fact f = journal_fact_of(&l.objects->at[0]);
    check_text(f.target.name, "n1");
    assert_int_equal(f.target.created_ms, INT64_C(1767225600000));
    check_text(label_get(f.target.labels, STR("a")), "b");
    loaded_free(&l);
}

static void what_is_no_fact_is_an_error(void **state)
{
    (void)state;
    const char *rows[] = {"",
                          "{",
                          "[]",
                          "{}",
                          "{\"fact\":\"nap\"}",
                          "{\"fact\":\"job\"}",
                          "{\"fact\":\"act\",\"act\":\"nap\"}",
                          "{\"fact\":\"documentGone\",\"kind\":\"Node\",\"name\":\"x\"}",
                          "{\"fact\":\"stage\"}",
                          "{\"fact\":\"document\"}"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        arena *a = arena_new(0);
        journal_fact read;
        err error = {""};
        check_msg(!journal_read_fact(a, str_of(rows[i]), &read, &error), "%s", rows[i]);
        check_msg(error.text[0] != 0, "%s", rows[i]);
        arena_free(a);
    }
}

static void decisions_say_what_matters(void **state)
{
    (void)state;
    const struct {
        decision decision;
        const char *want;
    } rows[] = {
        {{.kind = DECISION_JOB,
          .placement = 77,
          .change = STR("app"),
          .target = STR("n1"),
          .environment = STR("prod"),
          .version = STR("2"),
          .number = 9,
          .retry = true},
         "{\"decision\":\"job\",\"change\":\"app\",\"target\":\"n1\","
         "\"environment\":\"prod\",\"version\":\"2\","
         "\"role\":\"member\",\"number\":9,\"retry\":true}"},
        {{.kind = DECISION_SLOT, .target = STR("n1"), .group = STR("r")},
         "{\"decision\":\"slot\",\"target\":\"n1\",\"group\":\"r\",\"size\":0,\"taken\":false}"},
        {{.kind = DECISION_RELEASE,
          .state = STR("failed"),
          .detail = STR("why"),
          .failed = true,
          .role = ROLE_POST},
         "{\"decision\":\"release\",\"state\":\"failed\",\"detail\":\"why\","
         "\"role\":\"post\",\"failed\":true}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf out = BUF(10000);
        journal_write_decision(&out, &rows[i].decision);
        check_text(buf_str(&out), rows[i].want);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_one_object_each),
        cmocka_unit_test(every_act_and_outcome_comes_back),
        cmocka_unit_test(documents_come_back_as_the_same_text),
        cmocka_unit_test(what_is_no_fact_is_an_error),
        cmocka_unit_test(decisions_say_what_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
