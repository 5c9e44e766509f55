/* SPDX-License-Identifier: Apache-2.0 */
/* What edits and reports bring is forgotten once nobody has it: an engine of clusters runs for
 * months. */
#include "support/check.h"

#include "engine/clusters_internal.h"

#define CLUSTERS 20
#define EDITS 1500

typedef struct bench {
    engine_core core;
    decision_list out;
    void *self;
    arena *a;
    bundle document;
    object object;
    char content[64], words[96], names[CLUSTERS][16], values[CLUSTERS][64];
    str live[CLUSTERS];
} bench;

static const vocabulary *const v = &vocabulary_clusters;

static void take(bench *b, fact f)
{
    assert_true(v->take(b->self, &f));
    assert_false(b->core.no_memory);
}

/* What is live stays with the caller: decisions are views. */
static void step(bench *b)
{
    b->out.len = 0;
    arena_rewind(b->core.step, (arena_place){0});
    v->step(b->self);
    assert_false(b->core.no_memory);
    for (size_t i = 0; i < b->out.len; i++) {
        const decision *d = &b->out.at[i];
        if (d->kind == DECISION_DEPLOY)
            b->live[strtoul(d->target.ptr + 1, NULL, 10)] = arena_str(b->a, d->version);
    }
}

static void tell_cluster(bench *b, size_t i)
{
    label labels[] = {{STR("n"), str_of(b->values[i])}};
    fact f = {.kind = FACT_TARGET,
              .target = {.kind = TARGET_CLUSTER,
                         .name = str_of(b->names[i]),
                         .namespace_ = STR("fleet-default"),
                         .labels = {labels, 1},
                         .deploy_namespace = STR("cluster-x")}};
    take(b, f);
}

static void tell_report(bench *b, size_t i, bool failed)
{
    fact f = {.kind = FACT_REPORT,
              .report = {.change = STR("fleet-default/app"),
                         .target = str_of(b->names[i]),
                         .exists = true,
                         .live = b->live[i],
                         .applied = failed ? STR("before:1") : b->live[i],
                         .ready = !failed,
                         .failed = failed,
                         .message = str_of(b->words)}};
    take(b, f);
}

static void begin(bench *b)
{
    err error;
    *b = (bench){.a = arena_new(0)};
    b->core = (engine_core){.names = names_new(), .out = &b->out, .step = arena_new(0)};
    b->self = v->create(&b->core);
    bundle_target *target = ARENA_NEW(b->a, bundle_target);
    target->match.cluster_selector.compiled = selector_compile(b->a, NULL, 0, &error);
    b->document =
        (bundle){.metadata = {.name = STR("app"), .namespace_ = STR("fleet-default")},
                 .spec = {.contents_id = STR("v0"),
                          .targets = {target, 1},
                          .rollout_strategy = {.auto_partition_threshold = 200, .max_new = 50}}};
    b->document.spec.options.helm =
        json_parse(b->a, STR("{\"values\":{\"r\":\"${ .ClusterLabels.n }\"}}"), &error);
    b->object =
        (object){.kind = KIND_BUNDLE, .metadata = &b->document.metadata, .bundle = &b->document};
    take(b, (fact){.kind = FACT_DOCUMENT, .document = &b->object});
    for (size_t i = 0; i < CLUSTERS; i++) {
        snprintf(b->names[i], sizeof b->names[i], "c%05zu", i);
        snprintf(b->values[i], sizeof b->values[i], "value-%zu", i);
        tell_cluster(b, i);
    }
    step(b);
}

static void end(bench *b)
{
    v->destroy(b->self);
    names_free(b->core.names);
    arena_free(b->core.step);
    arena_free(b->a);
    vec_done(&b->out);
}

/* Each edit makes a version for every cluster; some of them fail, in words of their own, and one
 * cluster has another label. */
static void edit(bench *b, size_t number)
{
    snprintf(b->content, sizeof b->content, "content-%zu", number);
    b->document.spec.contents_id = str_of(b->content);
    take(b, (fact){.kind = FACT_DOCUMENT, .document = &b->object});
    size_t one = number % CLUSTERS;
    snprintf(b->values[one], sizeof b->values[one], "value-%zu-of-edit-%zu", one, number);
    tell_cluster(b, one);
    step(b);
    for (size_t i = 0; i < CLUSTERS; i++) {
        snprintf(b->words, sizeof b->words, "pod %zu of edit %zu was not found", i, number);
        tell_report(b, i, i % 3 == number % 3);
    }
    step(b);
}

static void forgets_what_nobody_has(void **state)
{
    (void)state;
    err error;
    bench b;
    begin(&b);
    size_t names_before = names_count(b.core.names), most = 0;
    const clusters *c = b.self;
    for (size_t i = 0; i < EDITS; i++) {
        edit(&b, i);
        check_msg(v->full(b.self, &error), "%s", error.text);
        size_t count = text_pool_count(c->texts);
        most = count > most ? count : most;
    }
    assert_int_equal(names_count(b.core.names), names_before);
    assert_in_range(most, CLUSTERS, 400);
    deployment_view view;
    for (size_t i = 0; i < CLUSTERS; i++) {
        assert_true(
            v->deployment(b.self, STR("fleet-default/app"), str_of(b.names[i]), &view));
        assert_true(str_starts(view.wanted, str_of(b.content)));
        check_str(view.wanted, b.live[i]);
    }
    end(&b);
}

/* Why a cluster is held back, or hindered, is a text like others. */
static void forgets_why_it_waited(void **state)
{
    (void)state;
    bench b;
    begin(&b);
    const clusters *c = b.self;
    for (size_t i = 0; i < 20000; i++) {
        snprintf(b.words, sizeof b.words, "the server refused request %zu", i);
        fact f = {.kind = FACT_KEPT,
                  .kept = {.change = STR("fleet-default/app"),
                           .target = str_of(b.names[i % CLUSTERS]),
                           .why = str_of(b.words),
                           .passing = true}};
        v->take(b.self, &f);
        step(&b);
    }
    assert_in_range(text_pool_count(c->texts), 1, 400);
    deployment_view view;
    assert_true(v->deployment(b.self, STR("fleet-default/app"), str_of(b.names[19]), &view));
    check_text(view.hindered, "the server refused request 19999");
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgets_what_nobody_has),
        cmocka_unit_test(forgets_why_it_waited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
