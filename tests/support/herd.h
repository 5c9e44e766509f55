/* SPDX-License-Identifier: Apache-2.0 */
/* herd.h - clusters and their agents around an engine, for tests.
 *
 * A herd has one Bundle, "fleet-default/app", wanted on every cluster. Nothing happens unless
 * the test says so: facts are collected, herd_step hands them over and keeps what was decided. */
#ifndef DROVER_TESTS_SUPPORT_HERD_H
#define DROVER_TESTS_SUPPORT_HERD_H

#include "support/check.h"

#include "engine/engine.h"
#include "model/object.h"

#define HERD_NAMESPACE "fleet-default"
#define HERD_CHANGE "fleet-default/app"
#define HERD_OLD "old:0"

typedef struct herd_cluster {
    char name[24];
    label labels[4]; /* sorted */
    size_t label_count;
    bool gone, paused, no_namespace;
    bool offline; /* its agent does not answer */
    bool broken;  /* it applies and never becomes ready */
    int64_t last_seen_ms;
    /* its BundleDeployment */
    bool exists, ready, failed;
    str live, applied;
    bool released; /* by the last step */
    bool was_told; /* the engine got a report of it, the last of them this one */
    fact_report told;
} herd_cluster;

typedef struct herd {
    engine *e;
    arena *a;
    bundle document;
    object object;
    size_t count;
    herd_cluster *at;
    VEC(fact) facts;
    decision_list out;
    decision pass; /* the last one told */
    int64_t now_ms;
    int64_t created, updated, fixed; /* by the last step */
} herd;

static inline selector *herd_selector(herd *h, const char *text)
{
    err error;
    selector *s = selector_parse(h->a, str_of(text), &error);
    check_msg(s != NULL, "%s: %s", text, error.text);
    return s;
}

static inline int_or_percent herd_amount(const char *text)
{
    int_or_percent v = {0};
    err error;
    if (!text)
        return v;
    if (text[0] == '#')
        return (int_or_percent){AMOUNT_COUNT, strtoll(text + 1, NULL, 10), STR_EMPTY};
    check_msg(int_or_percent_parse(str_of(text), &v, &error), "%s: %s", text, error.text);
    return v;
}

static inline engine *herd_engine(void)
{
    err error;
    engine_settings settings = {.start_ms = 1};
    engine *e = engine_new(&settings, &error);
    assert_non_null(e);
    return e;
}

static inline herd *herd_new(size_t count)
{
    herd *h = mem_zalloc(sizeof *h);
    h->e = herd_engine();
    h->a = arena_new(0);
    h->count = count;
    h->now_ms = 1000;
    h->at = ARENA_ARRAY(h->a, count, herd_cluster);
    for (size_t i = 0; i < count; i++)
        snprintf(h->at[i].name, sizeof h->at[i].name, "c%05zu", i + 1);
    bundle_target *target = ARENA_NEW(h->a, bundle_target);
    err error;
    target->match.cluster_selector.compiled = selector_compile(h->a, NULL, 0, &error);
    h->document = (bundle){
        .metadata = {.name = STR("app"), .namespace_ = STR(HERD_NAMESPACE)},
        .spec = {.contents_id = STR("v1"),
                 .targets = {target, 1},
                 .rollout_strategy = {.auto_partition_threshold = 200, .max_new = 50}},
    };
    h->object =
        (object){.kind = KIND_BUNDLE, .metadata = &h->document.metadata, .bundle = &h->document};
    return h;
}

static inline void herd_free(herd *h)
{
    engine_free(h->e);
    vec_done(&h->facts);
    vec_done(&h->out);
    arena_free(h->a);
    mem_free(h);
}

static inline void herd_fact(herd *h, fact f)
{
    assert_true(vec_push(&h->facts, f));
}

static inline void herd_document(herd *h)
{
    herd_fact(h, (fact){.kind = FACT_DOCUMENT, .document = &h->object});
}

static inline void herd_target(herd *h, size_t i)
{
    herd_cluster *c = &h->at[i];
    fact_target t = {.kind = TARGET_CLUSTER,
                     .name = str_of(c->name),
                     .labels = {c->labels, c->label_count},
                     .namespace_ = STR(HERD_NAMESPACE),
                     .deploy_namespace = c->no_namespace ? STR_EMPTY : STR("cluster-x"),
                     .paused = c->paused,
                     .last_seen_ms = c->last_seen_ms};
    herd_fact(h, (fact){.kind = c->gone ? FACT_TARGET_GONE : FACT_TARGET, .target = t});
}

static inline void herd_report(herd *h, size_t i)
{
    herd_cluster *c = &h->at[i];
    fact_report r = {.change = STR(HERD_CHANGE),
                     .target = str_of(c->name),
                     .exists = c->exists,
                     .live = c->live,
                     .applied = c->applied,
                     .ready = c->ready,
                     .failed = c->failed,
                     .message = STR("it said no")};
    c->was_told = true;
    c->told = r;
    herd_fact(h, (fact){.kind = FACT_REPORT, .report = r});
}

static inline void herd_act(herd *h, act_kind act, const char *opened)
{
    herd_fact(h,
              (fact){.kind = FACT_ACT,
                     .act = {.act = act, .change = STR(HERD_CHANGE), .partition = str_of(opened)}});
}

/* A cluster that runs the old version already. */
static inline void herd_runs_old(herd *h, size_t i, bool ready)
{
    h->at[i].exists = true;
    h->at[i].live = h->at[i].applied = STR(HERD_OLD);
    h->at[i].ready = ready;
}

static inline void herd_label(herd *h, size_t i, const char *key, const char *value)
{
    herd_cluster *c = &h->at[i];
    size_t k = 0;
    while (k < c->label_count && !str_eq(c->labels[k].key, str_of(key)))
        k++;
    if (k == c->label_count)
        c->label_count++;
    c->labels[k] = (label){arena_str(h->a, str_of(key)), arena_str(h->a, str_of(value))};
    label_set sorted;
    err error;
    assert_true(label_set_sort(c->labels, c->label_count, &sorted, &error));
}

static inline void herd_partition(herd *h, const char *name, const char *select,
                                  const char *unavailable)
{
    rollout_strategy *s = &h->document.spec.rollout_strategy;
    partition *list = ARENA_ARRAY(h->a, s->partitions.len + 1, partition);
    if (s->partitions.len > 0)
        memcpy(list, s->partitions.at, s->partitions.len * sizeof *list);
    list[s->partitions.len] =
        (partition){.name = str_of(name), .max_unavailable = herd_amount(unavailable)};
    list[s->partitions.len].match.cluster_selector.compiled = herd_selector(h, select);
    label_term *terms =
        ARENA_ARRAY(h->a, 1, label_term); /* what the text says is all that is compared */
    *terms = (label_term){.key = arena_str(h->a, str_of(select)), .op = LABEL_EXISTS};
    list[s->partitions.len].match.cluster_selector.terms = terms;
    list[s->partitions.len].match.cluster_selector.len = 1;
    s->partitions.at = list;
    s->partitions.len++;
}

static inline void herd_edit(herd *h, const char *contents)
{
    h->document.spec.contents_id = arena_str(h->a, str_of(contents));
    herd_document(h);
}

/* The facts a shell begins with. */
static inline void herd_load(herd *h)
{
    herd_document(h);
    for (size_t i = 0; i < h->count; i++)
        if (!h->at[i].gone)
            herd_target(h, i);
    for (size_t i = 0; i < h->count; i++)
        if (!h->at[i].gone && h->at[i].exists)
            herd_report(h, i);
}

static inline herd_cluster *herd_find(herd *h, str name)
{
    for (size_t i = 0; i < h->count; i++)
        if (str_eq(str_of(h->at[i].name), name))
            return &h->at[i];
    return NULL;
}

static inline void herd_decided(herd *h, const decision *d)
{
    if (d->kind == DECISION_PASS) {
        h->pass = *d;
        h->pass.change = STR(HERD_CHANGE);
    }
    if (d->kind != DECISION_DEPLOY)
        return;
    size_t number = strtoul(d->target.ptr + 1, NULL, 10); /* c00001 is the first */
    herd_cluster *c = &h->at[number - 1];
    check_str(str_of(c->name), d->target);
    assert_false(c->released);
    c->released = true;
    c->exists = true;
    c->live = arena_str(h->a, d->version);
    c->failed = false;
    h->created += d->first;
    h->fixed += d->fix;
    h->updated += !d->first && !d->fix;
}

static inline void herd_verify(herd *h)
{
    err error;
    check_msg(engine_full(h->e, &error), "%s", error.text);
    check_msg(engine_check(h->e, &error), "%s", error.text);
}

/* Hands over the facts; what was released carries .released until the next step. */
static inline size_t herd_step(herd *h)
{
    err error;
    h->out.len = 0;
    h->created = h->updated = h->fixed = 0;
    for (size_t i = 0; i < h->count; i++)
        h->at[i].released = false;
    check_msg(engine_step(h->e, h->facts.at, h->facts.len, h->now_ms, &h->out), "%s", error.text);
    h->facts.len = 0;
    for (size_t i = 0; i < h->out.len; i++)
        herd_decided(h, &h->out.at[i]);
    return (size_t)(h->created + h->updated + h->fixed);
}

/* The agent takes the live version in: it becomes ready unless it is broken. */
static inline void herd_answers(herd *h, size_t i)
{
    herd_cluster *c = &h->at[i];
    c->applied = c->live;
    c->ready = !c->broken;
    herd_report(h, i);
}

static inline placement_state herd_state(herd *h, const char *name);

typedef struct herd_question {
    str name;
    placement_view view;
    bool found;
} herd_question;

static inline bool herd_looks(void *context, const placement_view *view)
{
    herd_question *q = context;
    if (!str_eq(view->target, q->name))
        return true;
    q->view = *view;
    q->found = true;
    return false;
}

static inline placement_view herd_view(herd *h, const char *name)
{
    herd_question q = {.name = str_of(name)};
    engine_placements(h->e, herd_looks, &q);
    check_msg(q.found, "%s", name);
    return q.view;
}

static inline placement_state herd_state(herd *h, const char *name)
{
    return herd_view(h, name).state;
}

static inline bool herd_counts(void *context, const placement_view *view)
{
    *(size_t *)context += view->state == PLACEMENT_DONE;
    return true;
}

static inline size_t herd_done(herd *h)
{
    size_t done = 0;
    engine_placements(h->e, herd_counts, &done);
    return done;
}

/* Steps until one releases nothing. */
static inline void herd_settle(herd *h)
{
    for (size_t i = 0; i < 1000; i++) {
        size_t released = herd_step(h);
        herd_verify(h);
        if (released == 0)
            return;
    }
    fail();
}

/* All agents answer until nothing moves any more. */
static inline void herd_finish(herd *h)
{
    for (size_t round = 0; round < 1000; round++) {
        herd_settle(h);
        bool any = false;
        for (size_t i = 0; i < h->count; i++) {
            herd_cluster *c = &h->at[i];
            bool due = c->exists && !c->gone && !c->offline && !c->broken &&
                       !(c->ready && str_eq(c->applied, c->live));
            if (!due)
                continue;
            any = true;
            herd_answers(h, i);
        }
        if (!any)
            return;
    }
    fail();
}

#endif
