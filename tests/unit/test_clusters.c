/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles on clusters through engine_step: the table of semantics.md part B, the scenarios of
 * the document on rollout strategies, and what people, agents and restarts do in between. */
#include "support/explain.h"
#include "support/herd.h"
#include "support/partition_rows.h"
#include "support/rows.h"

/* ---- semantics.md part B, row by row ---- */

static herd *herd_of_row(const partition_row *r)
{
    herd *h = herd_new(r->clusters);
    rollout_strategy *s = &h->document.spec.rollout_strategy;
    s->max_unavailable = herd_amount(r->unavailable);
    s->max_unavailable_partitions = herd_amount(r->unavailable_partitions);
    s->auto_partition_size = herd_amount(r->size);
    s->auto_partition_threshold = r->threshold ? r->threshold : 200;
    s->max_new = r->max_new ? r->max_new : 50;
    size_t next = 0;
    for (size_t p = 0; p < COUNT_OF(r->manual) && r->manual[p]; p++) {
        char select[24];
        snprintf(select, sizeof select, "part=%s", partition_names[p]);
        herd_partition(h, partition_names[p], select, p == 0 ? r->own : NULL);
        for (size_t i = 0; i < r->manual[p]; i++)
            herd_label(h, next++, "part", partition_names[p]);
    }
    for (size_t i = 0; i < r->clusters; i++) {
        h->at[i].offline = i < r->offline;
        h->at[i].broken = i < r->broken;
        h->at[i].paused = i < r->paused;
        if (i >= r->fresh)
            herd_runs_old(h, i, !h->at[i].broken);
    }
    return h;
}

/* Passes until one releases nothing; agents that answer do so between two passes. A shell that
 * tells what it has written changes nothing. */
static void run_passes(herd *h, bool prompt, bool written, notation *n)
{
    for (size_t passes = 0;; passes++) {
        check_msg(passes < 2000, "no end of passes");
        size_t released = herd_step(h);
        herd_verify(h);
        notation_add(n, h->created, h->updated, h->fixed);
        if (released == 0)
            return;
        for (size_t i = 0; i < h->count; i++) {
            if (!h->at[i].released)
                continue;
            if (written)
                herd_report(h, i);
            if (prompt && !h->at[i].offline)
                herd_answers(h, i);
        }
    }
}

static void run_row(const partition_row *r, bool written)
{
    herd *h = herd_of_row(r);
    notation n = {.text = BUF(10000)};
    herd_load(h);
    run_passes(h, r->prompt, written, &n);
    notation_flush(&n);
    check_msg(str_eq(buf_str(&n.text), str_of(r->releases)), "%s: %.*s", r->id,
              STR_ARG(buf_str(&n.text)));
    check_msg(herd_done(h) == r->up_to_date, "%s: %zu up to date", r->id, herd_done(h));
    check_msg(h->pass.visited == r->visited && h->pass.partitions == r->partitions &&
                  h->pass.not_ready == r->not_ready,
              "%s: visits %lld/%lld, not ready %lld", r->id, (long long)h->pass.visited,
              (long long)h->pass.partitions, (long long)h->pass.not_ready);
    check_msg(h->pass.size == 0, "%s", r->id);
    buf_done(&n.text);
    herd_free(h);
}

static void b_row(void **state)
{
    run_row(*state, false);
    run_row(*state, true);
}

static void seed_003_row(void **state)
{
    run_row(*state, true);
}

/* "... is paused until less than 10 clusters are NotReady": one of the ten returns. */
static void test_seed_003_100_clusters_go_on_when_one_returns(void **state)
{
    (void)state;
    herd *h = herd_new(100);
    notation n = {.text = BUF(10000)};
    h->document.spec.rollout_strategy.max_unavailable = herd_amount("10%");
    for (size_t i = 0; i < 10; i++)
        h->at[i].offline = true;
    herd_load(h);
    run_passes(h, true, true, &n);
    assert_int_equal(herd_done(h), 40);
    h->at[3].offline = false;
    herd_answers(h, 3);
    run_passes(h, true, true, &n);
    notation_flush(&n);
    check_text(buf_str(&n.text), "C50; 0; C50; 0");
    assert_int_equal(herd_done(h), 91);
    buf_done(&n.text);
    herd_free(h);
}

/* ---- between the passes ---- */

static bool see_group(void *context, const group_view *view)
{
    buf *out = context;
    buf_addf(out, "%.*s %lld/%lld%s%s; ", STR_ARG(view->name), (long long)view->matched,
             (long long)view->limit, view->ready ? " ready" : "", view->visited ? " visited" : "");
    return true;
}

static void check_groups(herd *h, const char *want)
{
    buf text = BUF(10000);
    engine_groups(h->e, see_group, &text);
    check_text(buf_str(&text), want);
    buf_done(&text);
}

static void test_the_cut_is_kept_until_the_next_rollout(void **state)
{
    (void)state;
    herd *h = herd_new(8);
    rollout_strategy *s = &h->document.spec.rollout_strategy;
    s->auto_partition_threshold = 1;
    s->auto_partition_size = herd_amount("#2");
    s->max_unavailable = herd_amount("#0");
    for (size_t i = 4; i < 8; i++)
        h->at[i].gone = true;
    herd_load(h);
    herd_step(h);
    check_groups(h, "Partition 0 - 2 2/0 visited; Partition 2 - 4 2/0; ");
    h->at[4].gone = false; /* joins the last one */
    herd_target(h, 4);
    h->at[0].gone = true;
    herd_target(h, 0);
    herd_step(h);
    check_groups(h, "Partition 0 - 2 1/0 visited; Partition 2 - 4 3/0; ");
    herd_edit(h, "v2"); /* an edit in mid-rollout keeps it */
    herd_step(h);
    herd_verify(h);
    check_groups(h, "Partition 0 - 2 1/0 visited; Partition 2 - 4 3/0; ");
    herd_finish(h);
    assert_int_equal(herd_done(h), 4);
    check_groups(h, "Partition 0 - 2 1/0 ready visited; Partition 2 - 4 3/0 ready visited; ");
    h->at[5].gone = false; /* so does a cluster that joins when all is done */
    herd_target(h, 5);
    herd_finish(h);
    check_groups(h, "Partition 0 - 2 1/0 ready visited; Partition 2 - 4 4/0 ready visited; ");
    herd_edit(h, "v3"); /* a rollout starts */
    herd_step(h);
    check_groups(h, "Partition 0 - 2 2/0 visited; Partition 2 - 4 2/0; Partition 4 - 5 1/0; ");
    s->auto_partition_size = herd_amount("#3"); /* and changed settings cut anew at once */
    herd_document(h);
    herd_step(h);
    check_groups(h, "Partition 0 - 3 3/0 visited; Partition 3 - 5 2/0; ");
    herd_finish(h);
    assert_int_equal(herd_done(h), 5);
    herd_free(h);
}

static size_t count_decisions(const herd *h, decision_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < h->out.len; i++)
        count += h->out.at[i].kind == kind;
    return count;
}

static void test_a_late_report_of_another_version_is_no_evidence(void **state)
{
    (void)state;
    herd *h = herd_new(1);
    herd_runs_old(h, 0, true);
    herd_load(h);
    assert_int_equal(herd_step(h), 1);
    str wanted = h->at[0].live;
    h->at[0].live = STR(HERD_OLD); /* from before the release, and ready */
    herd_report(h, 0);
    assert_int_equal(herd_step(h), 0);
    assert_int_equal(herd_state(h, "c00001"), PLACEMENT_IN_FLIGHT);
    assert_int_equal(count_decisions(h, DECISION_RELEASE), 0);
    h->at[0].live = wanted; /* written, and the agent still shows the old one as ready */
    herd_report(h, 0);
    herd_step(h);
    assert_int_equal(herd_state(h, "c00001"), PLACEMENT_IN_FLIGHT);
    herd_answers(h, 0);
    herd_step(h);
    assert_int_equal(herd_state(h, "c00001"), PLACEMENT_DONE);
    assert_int_equal(count_decisions(h, DECISION_RELEASE), 1);
    check_text(h->out.at[0].state, "succeeded");
    herd_free(h);
}

static void test_an_edit_and_back_again(void **state)
{
    (void)state;
    herd *h = herd_new(4);
    h->document.spec.rollout_strategy.max_unavailable = herd_amount("#1");
    for (size_t i = 0; i < 4; i++)
        herd_runs_old(h, i, true);
    herd_load(h);
    assert_int_equal(herd_step(h), 1); /* A on the first */
    herd_edit(h, "v2");
    assert_int_equal(herd_step(h), 1); /* it is broken in mid-flight: B reaches it at once */
    assert_int_equal(h->fixed, 1);
    assert_int_equal(count_decisions(h, DECISION_RELEASE), 1);
    check_text(h->out.at[0].state, "superseded");
    herd_edit(h, "v1");
    assert_int_equal(herd_step(h), 1);
    assert_int_equal(h->fixed, 1);
    assert_int_equal(h->pass.fixed, 1);
    herd_finish(h);
    assert_int_equal(herd_done(h), 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(str_starts(h->at[i].live, STR("v1:")));
    herd_free(h);
}

/* ---- what Fleet does not have ---- */

static reason only_reason(herd *h, const char *name, const char *which)
{
    reasons list = {0};
    assert_true(engine_reasons(h->e, herd_view(h, name).id, h->a, &list));
    check_msg(list.len == 1, "%s has %zu reasons", name, list.len);
    check_text(reason_rule_name(list.at[0].rule), which);
    return list.at[0];
}

static herd *two_partitions(const char *unavailable)
{
    herd *h = herd_new(4);
    h->document.spec.rollout_strategy.max_unavailable = herd_amount(unavailable);
    herd_partition(h, "canary", "part=p0", NULL);
    herd_partition(h, "rest", "part=p1", NULL);
    for (size_t i = 0; i < 4; i++)
        herd_label(h, i, "part", partition_names[i / 2]);
    return h;
}

/* semantics.md part B, UB: what is unavailable in a later partition counts for the first, too, and
 * a fix reaches it only when the pass does. Each way out of docs/rules.md is one. */
static void test_a_broken_cluster_of_a_later_partition_holds_the_first(void **state)
{
    (void)state;
    for (int way = 0; way < 5; way++) {
        herd *h = two_partitions("#0");
        rollout_strategy *s = &h->document.spec.rollout_strategy;
        for (size_t i = 0; i < 4; i++)
            herd_runs_old(h, i, i != 3);
        herd_load(h);
        assert_int_equal(herd_step(h), 0);
        reason r = only_reason(h, "c00001", "unavailable");
        assert_int_equal(r.act, RELEASE_COMPLETE);
        assert_int_equal(r.of_count, 1);
        check_text(r.of[0], "c00004");
        h->at[3].ready = way == 0;
        h->at[3].paused = way == 1;
        if (way == 2)
            s->partitions.at[1].max_unavailable = herd_amount("#1");
        if (way == 3)
            s->max_unavailable_partitions = herd_amount("#1");
        if (way == 4)
            s->max_unavailable = herd_amount("#2");
        herd_report(h, 3);
        herd_target(h, 3);
        herd_document(h);
        herd_finish(h);
        check_msg(herd_done(h) == (way == 1 ? 3 : 4), "way %d: %zu are done", way, herd_done(h));
        herd_free(h);
    }
}

static void test_a_partition_soaks_before_the_next_begins(void **state)
{
    (void)state;
    herd *h = two_partitions("#0");
    h->document.spec.rollout_strategy.soak_seconds = (opt_int){true, 60};
    herd_load(h);
    herd_finish(h);
    assert_int_equal(herd_done(h), 2);
    reason r = only_reason(h, "c00003", "soak");
    assert_int_equal(r.act, RELEASE_TIME);
    assert_int_equal(r.next_ms, h->now_ms + 60000);
    assert_int_equal(engine_next_ms(h->e), h->now_ms + 60000);
    int64_t begun = h->now_ms;
    h->now_ms += 30000; /* it breaks and comes back: the time begins again */
    h->at[1].ready = false;
    herd_report(h, 1);
    herd_settle(h);
    reasons both = {0}; /* ready again, and then for long enough */
    assert_true(engine_reasons(h->e, herd_view(h, "c00003").id, h->a, &both));
    assert_int_equal(both.len, 2);
    assert_int_equal(both.at[0].rule, REASON_PARTITION);
    check_text(both.at[0].of[0], "c00002");
    assert_int_equal(both.at[1].rule, REASON_SOAK);
    h->now_ms += 10000;
    herd_answers(h, 1);
    herd_settle(h);
    h->now_ms = begun + 60000;
    assert_int_equal(herd_step(h), 0);
    h->now_ms = begun + 100000 - 1;
    assert_int_equal(herd_step(h), 0);
    h->now_ms++;
    assert_int_equal(herd_step(h), 2);
    herd_finish(h);
    assert_int_equal(herd_done(h), 4);
    assert_int_equal(engine_next_ms(h->e), REASON_NEVER);
    herd_free(h);
}

/* The first partition counts as ready with its only cluster held, which takes the only place when
 * it is approved: who comes later waits for that cluster, too, and not for the soak alone. */
static void test_a_soak_hides_nobody_who_comes_first(void **state)
{
    (void)state;
    herd *h = two_partitions("#1");
    rollout_strategy *s = &h->document.spec.rollout_strategy;
    s->soak_seconds = (opt_int){true, 60};
    s->partitions.at[0].approval = true;
    herd_label(h, 1, "part", partition_names[1]);
    for (size_t i = 0; i < 4; i++)
        herd_runs_old(h, i, true);
    herd_load(h);
    assert_int_equal(herd_step(h), 0);
    check_text(only_reason(h, "c00001", "approval").of[0], "canary");
    reasons both = {0};
    assert_true(engine_reasons(h->e, herd_view(h, "c00002").id, h->a, &both));
    assert_int_equal(both.len, 2);
    assert_int_equal(both.at[0].rule, REASON_SOAK);
    assert_int_equal(both.at[1].rule, REASON_UNAVAILABLE);
    assert_int_equal(both.at[1].of_count, 1);
    check_text(both.at[1].of[0], "c00001");
    herd_free(h);
}

static void test_a_person_opens_a_partition(void **state)
{
    (void)state;
    herd *h = two_partitions("#0");
    h->document.spec.rollout_strategy.partitions.at[1].approval = true;
    herd_load(h);
    herd_finish(h);
    assert_int_equal(herd_done(h), 2);
    reason r = only_reason(h, "c00004", "approval");
    assert_int_equal(r.act, RELEASE_APPROVE);
    check_text(r.of[0], "rest");
    herd_act(h, ACT_APPROVE, "rest");
    assert_int_equal(herd_step(h), 2);
    herd_finish(h);
    assert_int_equal(herd_done(h), 4);
    herd_edit(h, "v2"); /* what was approved was something else */
    herd_finish(h);
    assert_int_equal(herd_done(h), 2);
    only_reason(h, "c00003", "approval");
    herd_free(h);
}

static void test_failures_halt_until_an_edit_or_resume(void **state)
{
    (void)state;
    for (int by_edit = 0; by_edit < 2; by_edit++) {
        herd *h = herd_new(10);
        rollout_strategy *s = &h->document.spec.rollout_strategy;
        s->failure_threshold = (opt_int){true, 2};
        s->max_new = 3;
        herd_load(h);
        assert_int_equal(herd_step(h), 3);
        for (size_t i = 0; i < 2; i++) {
            h->at[i].failed = true;
            herd_report(h, i);
            herd_report(h, i); /* told twice, counted once */
        }
        assert_int_equal(herd_step(h), 0);
        herd_verify(h);
        assert_int_equal(count_decisions(h, DECISION_HALT), 1);
        assert_int_equal(count_decisions(h, DECISION_RELEASE), 2);
        assert_int_equal(herd_state(h, "c00001"), PLACEMENT_FAILED);
        only_reason(h, "c00001", "failed");
        reason r = only_reason(h, "c00005", "halted");
        assert_int_equal(r.act, RELEASE_RESUME);
        if (by_edit)
            herd_edit(h, "v2");
        else
            herd_act(h, ACT_RESUME, "");
        herd_report(h, 0); /* still so: no news */
        assert_int_equal(herd_step(h), 3);
        herd_finish(h);
        assert_int_equal(herd_done(h), 10);
        herd_free(h);
    }
}

static void test_an_offline_cluster_is_excluded_and_retried(void **state)
{
    (void)state;
    herd *h = herd_new(3);
    rollout_strategy *s = &h->document.spec.rollout_strategy;
    s->offline_after_seconds = (opt_int){true, 100};
    s->max_unavailable = herd_amount("#1");
    for (size_t i = 0; i < 3; i++) {
        herd_runs_old(h, i, true);
        h->at[i].last_seen_ms = h->now_ms + (i > 0 ? 500000 : 0);
    }
    herd_load(h);
    assert_int_equal(herd_step(h), 1); /* the first one, and it never answers */
    herd_settle(h);
    assert_int_equal(engine_next_ms(h->e), h->now_ms + 100000);
    h->now_ms += 100000;
    assert_int_equal(herd_step(h), 1); /* the others no longer wait for it */
    check_text(h->out.at[0].state, "offline");
    assert_true(h->out.at[0].failed);
    assert_int_equal(herd_state(h, "c00001"), PLACEMENT_EXCLUDED);
    only_reason(h, "c00001", "offline");
    h->at[0].offline = true;
    herd_finish(h);
    assert_int_equal(herd_done(h), 2);
    h->at[0].last_seen_ms = h->now_ms;
    h->at[0].offline = false;
    herd_target(h, 0);
    assert_int_equal(herd_step(h), 1);
    assert_int_equal(h->fixed, 1);
    herd_finish(h);
    assert_int_equal(herd_done(h), 3);
    herd_free(h);
}

/* Nobody excludes it, and it is waited for; but it is not at work when nobody has seen it. */
static void test_a_released_cluster_that_does_not_answer_is_offline(void **state)
{
    (void)state;
    herd *h = herd_new(2);
    h->document.spec.rollout_strategy.max_unavailable = herd_amount("#1");
    for (size_t i = 0; i < 2; i++) {
        herd_runs_old(h, i, true);
        h->at[i].last_seen_ms = h->now_ms;
    }
    herd_load(h);
    assert_int_equal(herd_step(h), 1);
    herd_settle(h);
    only_reason(h, "c00001", "running");
    h->now_ms += INT64_C(45) * 60 * 1000;
    assert_int_equal(herd_step(h), 0);
    assert_int_equal(herd_state(h, "c00001"), PLACEMENT_IN_FLIGHT);
    only_reason(h, "c00001", "offline");
    h->at[0].last_seen_ms = h->now_ms;
    herd_target(h, 0);
    herd_step(h);
    only_reason(h, "c00001", "running");
    herd_finish(h);
    assert_int_equal(herd_done(h), 2);
    herd_free(h);
}

static void test_clusters_that_are_not_paced(void **state)
{
    (void)state;
    herd *h = two_partitions("#0");
    h->at[0].paused = true;
    h->at[1].no_namespace = true;
    herd_label(h, 3, "part", "elsewhere");
    herd_load(h);
    herd_settle(h);
    assert_int_equal(only_reason(h, "c00001", "paused").act, RELEASE_RESUME);
    assert_int_equal(only_reason(h, "c00002", "noNamespace").act, RELEASE_ONLINE);
    assert_int_equal(herd_state(h, "c00003"), PLACEMENT_IN_FLIGHT); /* nobody waits for the two */
    assert_int_equal(only_reason(h, "c00003", "running").act, RELEASE_COMPLETE);
    assert_int_equal(herd_state(h, "c00004"), PLACEMENT_EXCLUDED);
    assert_int_equal(only_reason(h, "c00004", "noPartition").act, RELEASE_LABEL);
    herd_label(h, 3, "part", "p0");
    herd_target(h, 3);
    assert_int_equal(herd_step(h), 1);
    h->at[0].paused = h->at[1].no_namespace = false;
    herd_target(h, 0);
    herd_target(h, 1);
    herd_finish(h);
    assert_int_equal(herd_done(h), 4);
    herd_act(h, ACT_PAUSE, "");
    herd_edit(h, "v2");
    assert_int_equal(herd_step(h), 0);
    check_text(only_reason(h, "c00001", "paused").detail, HERD_CHANGE);
    herd_act(h, ACT_RESUME, "");
    herd_finish(h);
    assert_int_equal(herd_done(h), 4);
    herd_free(h);
}

static void test_the_strategy_of_an_annotation(void **state)
{
    (void)state;
    herd *h = herd_new(4);
    label carried = {STR("drover.dev/rollout-strategy"),
                     STR("{\"maxUnavailable\":1,\"maxNew\":3}")};
    h->document.metadata.annotations = (label_set){&carried, 1};
    herd_load(h);
    assert_int_equal(herd_step(h), 3);
    herd_free(h);
}

/* ---- who is a target ---- */

static void add_target(herd *h, const char *name, const char *select, bool do_not_deploy)
{
    bundle_spec *spec = &h->document.spec;
    bundle_target *list = ARENA_ARRAY(h->a, spec->targets.len + 1, bundle_target);
    memcpy(list, spec->targets.at, spec->targets.len * sizeof *list);
    list[spec->targets.len] = (bundle_target){.name = str_of(name), .do_not_deploy = do_not_deploy};
    list[spec->targets.len].match.cluster_selector.compiled = herd_selector(h, select);
    spec->targets.at = list;
    spec->targets.len++;
}

static void test_targets_restrictions_and_customizations(void **state)
{
    (void)state;
    herd *h = herd_new(4);
    bundle_spec *spec = &h->document.spec;
    spec->targets.len = 0;
    add_target(h, "custom", "env=edge", false); /* customizations stand in front */
    add_target(h, "never", "env=lab", true);
    add_target(h, "real", "fleet", false);
    bundle_restriction restriction = {.name = STR("real")};
    restriction.match.cluster_selector.compiled = herd_selector(h, "fleet");
    spec->target_restrictions.at = &restriction;
    spec->target_restrictions.len = 1;
    yyjson_doc *other = yyjson_read("{\"releaseName\":\"edge\"}", 22, 0);
    spec->targets.at[0].options.helm = yyjson_doc_get_root(other);
    for (size_t i = 0; i < 3; i++)
        herd_label(h, i, "fleet", "yes");
    herd_label(h, 1, "env", "edge");
    herd_label(h, 2, "env", "lab");
    herd_load(h);
    herd_finish(h);
    assert_int_equal(herd_done(h), 2); /* the third is kept out, the fourth matches nothing */
    assert_false(str_eq(herd_view(h, "c00001").wanted, herd_view(h, "c00002").wanted));
    herd_label(h, 3, "fleet", "yes"); /* a label makes a target */
    herd_target(h, 3);
    herd_finish(h);
    assert_int_equal(herd_done(h), 3);
    check_str(herd_view(h, "c00004").wanted, herd_view(h, "c00001").wanted);
    yyjson_doc_free(other);
    herd_free(h);
}

static void test_groups_and_namespaces(void **state)
{
    (void)state;
    herd *h = herd_new(3);
    bundle_spec *spec = &h->document.spec;
    spec->targets.at[0].match = (cluster_match){.cluster_group = STR("prod")};
    herd_label(h, 0, "env", "prod");
    cluster_group group = {.metadata = {.name = STR("prod"), .namespace_ = STR(HERD_NAMESPACE)}};
    group.spec.selector.compiled = herd_selector(h, "env=prod");
    object grouped = {
        .kind = KIND_CLUSTER_GROUP, .metadata = &group.metadata, .cluster_group = &group};
    herd_load(h);
    assert_int_equal(herd_step(h), 0);
    herd_fact(h, (fact){.kind = FACT_DOCUMENT, .document = &grouped});
    assert_int_equal(herd_step(h), 1);
    herd_verify(h);
    group.spec.selector.compiled = herd_selector(h, "");
    herd_fact(h, (fact){.kind = FACT_DOCUMENT, .document = &grouped});
    assert_int_equal(herd_step(h), 2);
    fact_target foreign = {.kind = TARGET_CLUSTER,
                           .name = STR("c00001"),
                           .namespace_ = STR("elsewhere"),
                           .deploy_namespace = STR("cluster-y")};
    herd_fact(h, (fact){.kind = FACT_TARGET, .target = foreign});
    assert_int_equal(herd_step(h), 0);
    spec->targets.at[0].match = (cluster_match){.cluster_name = STR("c00001")};
    bundle_namespace_mapping mapping = {
        .metadata = {.name = STR("m"), .namespace_ = STR(HERD_NAMESPACE)}};
    mapping.bundle_selector.compiled = herd_selector(h, "");
    mapping.namespace_selector.compiled = herd_selector(h, "kubernetes.io/metadata.name=elsewhere");
    object mapped = {.kind = KIND_BUNDLE_NAMESPACE_MAPPING,
                     .metadata = &mapping.metadata,
                     .bundle_namespace_mapping = &mapping};
    herd_document(h);
    herd_fact(h, (fact){.kind = FACT_DOCUMENT, .document = &mapped});
    h->out.len = 0;
    assert_true(engine_step(h->e, h->facts.at, h->facts.len, h->now_ms, &h->out));
    h->facts.len = 0;
    herd_verify(h);
    check_text(herd_view(h, "elsewhere/c00001").target,
               "elsewhere/c00001"); /* equal names stay apart */
    assert_int_equal(herd_state(h, "c00001"), PLACEMENT_IN_FLIGHT);
    herd_fact(h, (fact){.kind = FACT_DOCUMENT_GONE, .document = &mapped});
    herd_step(h);
    herd_verify(h);
    herd_fact(h, (fact){.kind = FACT_DOCUMENT_GONE, .document = &h->object});
    herd_step(h);
    herd_verify(h);
    assert_int_equal(count_decisions(h, DECISION_RELEASE), 1);
    herd_free(h);
}

/* "Manual Partitioning", the example as a document. */
static const char manual_example[] = "apiVersion: fleet.cattle.io/v1alpha1\n"
                                     "kind: Bundle\n"
                                     "metadata: {name: app, namespace: fleet-default}\n"
                                     "spec:\n"
                                     "  targets: [{clusterSelector: {}}]\n"
                                     "  rolloutStrategy:\n"
                                     "    partitions:\n"
                                     "    - name: demoRollout\n"
                                     "      maxUnavailable: 10%\n"
                                     "      clusterSelector: {matchLabels: {env: staging}}\n"
                                     "    - name: stable\n"
                                     "      maxUnavailable: 5%\n"
                                     "      clusterSelector: {matchLabels: {env: prod}}\n";

static void test_seed_003_manual_partitioning_example(void **state)
{
    (void)state;
    herd *h = herd_new(120);
    document_set *set = document_set_new();
    problems *found = problems_new();
    object_list *objects = objects_new();
    assert_true(documents_read(set, STR("bundle.yaml"), str_of(manual_example), found));
    assert_true(objects_read(objects, set, found));
    assert_int_equal(objects->len, 1);
    for (size_t i = 0; i < h->count; i++) {
        herd_label(h, i, "env", i < 20 ? "staging" : "prod");
        herd_runs_old(h, i, true);
    }
    h->object = objects->at[0];
    herd_load(h);
    assert_int_equal(herd_step(h), 2); /* 10% of 20 */
    check_groups(h, "demoRollout 20/2 visited; stable 100/5; ");
    herd_finish(h);
    assert_int_equal(herd_done(h), 120);
    check_groups(h, "demoRollout 20/2 ready visited; stable 100/5 ready visited; ");
    assert_int_equal(h->pass.not_ready, 0);
    objects_free(objects);
    problems_free(found);
    document_set_free(set);
    herd_free(h);
}

/* ---- what it costs ---- */

static void test_one_report_among_many_looks_at_few(void **state)
{
    (void)state;
    herd *h = herd_new(100000);
    h->document.spec.rollout_strategy.max_unavailable = herd_amount("#5");
    h->document.spec.rollout_strategy.soak_seconds = (opt_int){true, 60};
    h->document.spec.rollout_strategy.failure_threshold = (opt_int){true, 3};
    h->document.spec.rollout_strategy.offline_after_seconds = (opt_int){true, 3600};
    for (size_t i = 0; i < h->count; i++) {
        h->at[i].last_seen_ms = h->now_ms;
        herd_runs_old(h, i, true);
    }
    herd_load(h);
    herd_step(h);
    herd_step(h);
    assert_true(engine_looked_at(h->e) >= h->count);
    uint64_t before = engine_looked_at(h->e);
    herd_answers(h, 0); /* done: the next one is released */
    assert_int_equal(herd_step(h), 1);
    check_msg(engine_looked_at(h->e) - before < 10, "an outcome: %llu",
              (unsigned long long)(engine_looked_at(h->e) - before));
    before = engine_looked_at(h->e);
    h->at[5000].last_seen_ms = h->now_ms; /* a heartbeat */
    herd_target(h, 5000);
    herd_step(h);
    check_msg(engine_looked_at(h->e) - before < 10, "a heartbeat");
    before = engine_looked_at(h->e);
    herd_label(h, 6000, "a", "b");
    herd_target(h, 6000);
    herd_step(h);
    check_msg(engine_looked_at(h->e) - before < 10, "a label");
    herd_free(h);
}

typedef struct frugal {
    herd *h;
    size_t facts;
} frugal;

static bool live_without_memory(void *context)
{
    frugal *f = context;
    err error;
    decision_list out = {0};
    buf saved = BUF(1u << 20);
    engine_settings settings = {.start_ms = 1};
    engine *e = engine_new(&settings, &error);
    bool good = e && engine_step(e, f->h->facts.at, f->facts, 1000, &out) &&
                engine_step(e, NULL, 0, 2000, &out) && engine_save(e, &saved);
    arena *a = good ? arena_new(0) : NULL;
    reasons list = {0};
    for (placement_id id = 1; good && id <= 6; id++)
        good = a && engine_reasons(e, id, a, &list);
    arena_free(a);
    engine_free(e);
    vec_done(&out);
    buf_done(&saved);
    return good;
}

static void test_every_failed_allocation_is_told(void **state)
{
    (void)state;
    herd *h = two_partitions("#1");
    h->document.spec.rollout_strategy.offline_after_seconds = (opt_int){true, 100};
    for (size_t i = 0; i < 3; i++)
        herd_runs_old(h, i, true);
    herd_load(h);
    frugal f = {h, h->facts.len};
    check_each_allocation_fails(live_without_memory, &f);
    herd_free(h);
}

static void test_asking_without_memory(void **state)
{
    (void)state;
    err error;
    decision_list out = {0};
    engine_settings settings = {.start_ms = 1};
    engine *e = engine_new(&settings, &error);
    herd *h = two_partitions("#1");
    for (size_t i = 0; i < 3; i++)
        herd_runs_old(h, i, true);
    herd_load(h);
    assert_true(engine_step(e, h->facts.at, h->facts.len, 1000, &out));
    explain_starved(e, 2000);
    vec_done(&out);
    engine_free(e);
    herd_free(h);
}

int main(void)
{
    static row_list all;
    for (size_t i = 0; i < COUNT_OF(partition_rows); i++)
        rows_add(&all, b_row, &partition_rows[i], "B: %s", partition_rows[i].id);
    for (size_t i = 0; i < COUNT_OF(partition_more); i++)
        rows_add(&all, b_row, &partition_more[i], "B, more: %s", partition_more[i].id);
    for (size_t i = 0; i < COUNT_OF(partition_cuts); i++)
        rows_add(&all, b_row, &partition_cuts[i], "B, partitions: %s", partition_cuts[i].id);
    for (size_t i = 0; i < COUNT_OF(partition_scenarios); i++)
        rows_add(&all, seed_003_row, &partition_scenarios[i], "seed 003: %s",
                 partition_scenarios[i].id);
    ROWS_TEST(&all, test_seed_003_100_clusters_go_on_when_one_returns);
    ROWS_TEST(&all, test_seed_003_manual_partitioning_example);
    ROWS_TEST(&all, test_the_cut_is_kept_until_the_next_rollout);
    ROWS_TEST(&all, test_a_late_report_of_another_version_is_no_evidence);
    ROWS_TEST(&all, test_an_edit_and_back_again);
    ROWS_TEST(&all, test_a_broken_cluster_of_a_later_partition_holds_the_first);
    ROWS_TEST(&all, test_a_partition_soaks_before_the_next_begins);
    ROWS_TEST(&all, test_a_soak_hides_nobody_who_comes_first);
    ROWS_TEST(&all, test_a_person_opens_a_partition);
    ROWS_TEST(&all, test_failures_halt_until_an_edit_or_resume);
    ROWS_TEST(&all, test_an_offline_cluster_is_excluded_and_retried);
    ROWS_TEST(&all, test_a_released_cluster_that_does_not_answer_is_offline);
    ROWS_TEST(&all, test_clusters_that_are_not_paced);
    ROWS_TEST(&all, test_the_strategy_of_an_annotation);
    ROWS_TEST(&all, test_targets_restrictions_and_customizations);
    ROWS_TEST(&all, test_groups_and_namespaces);
    ROWS_TEST(&all, test_one_report_among_many_looks_at_few);
    ROWS_TEST(&all, test_every_failed_allocation_is_told);
    ROWS_TEST(&all, test_asking_without_memory);
    return rows_run(&all);
}
