/* SPDX-License-Identifier: Apache-2.0 */
/* node_fleet.h - a small fleet of nodes around the engine, for tests.
 *
 * Virtual time. A stage takes a minute unless told; a drain is done at once unless it is blocked; a
 * node has another boot when an interrupt that reboots it succeeds.
 * Every step is followed by engine_check and engine_full. What was decided is kept as a trace of
 * lines. */
#ifndef DROVER_TESTS_SUPPORT_NODE_FLEET_H
#define DROVER_TESTS_SUPPORT_NODE_FLEET_H

#include <inttypes.h>

#include "support/check.h"
#include "support/documents.h"

#include "engine/engine.h"

#define FLEET_NODES 256
#define FLEET_LABELS 8
#define FLEET_TEXT 64
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

typedef struct fleet_node {
    char name[FLEET_TEXT];
    char uid[FLEET_TEXT];
    char boot[FLEET_TEXT];
    char keys[FLEET_LABELS][FLEET_TEXT];
    char values[FLEET_LABELS][FLEET_TEXT];
    size_t label_count;
    label annotations[FLEET_LABELS];
    size_t annotation_count;
    fact_taint taints[4];
    size_t taint_count;
    int64_t created_ms;
    bool exists, not_ready, unschedulable;
    bool fails;      /* every stage fails */
    bool fails_once; /* the next one does */
    bool never_retry;
    bool nothing_runs; /* it fails before any step began */
    bool silent;       /* stages never end */
    bool drain_blocked;
    bool blocks; /* gets the ignore label when it is started */
} fleet_node;

typedef struct fleet_event {
    int64_t at_ms;
    uint64_t number;
    char change[FLEET_TEXT], target[FLEET_TEXT], package[FLEET_TEXT], version[FLEET_TEXT];
    char stage[FLEET_TEXT];
    int64_t attempt;
    bool drain, used;
    bool reboots; /* the node has another boot when it succeeds */
} fleet_event;

typedef struct fleet {
    engine *engine;
    engine_settings settings;
    int64_t now_ms;
    int64_t stage_ms;
    fleet_node nodes[FLEET_NODES];
    size_t node_count;
    VEC(fleet_event) events;
    uint64_t event_count;
    VEC(loaded) documents;
    VEC(char *) texts;
    VEC(char *) rebooted; /* what hosts were rebooted for */
    VEC(fact) pending;
    decision_list out;
    buf trace;           /* every decision */
    buf batches;         /* sizes, as A4 writes them */
    const int *failures; /* of each batch */
    const int *blocked;
    size_t failure_count, blocked_count;
    int64_t batch; /* the last that was opened */
    int64_t in_batch;
    bool feedback; /* nodes show what is decided about them */
    bool steps_unchecked;
    /* What the engine was told last, so that another one can be told the same. */
    fleet_node shown[FLEET_NODES], staged[FLEET_NODES];
    bool is_staged[FLEET_NODES];
    VEC(const object *) current, staged_documents;
    int64_t stepped_ms;
    void (*before_step)(struct fleet *f);
    void (*after_step)(struct fleet *f);
    void *context;
} fleet;

static inline fleet *fleet_with(engine_settings settings)
{
    fleet *f = calloc(1, sizeof *f);
    assert_non_null(f);
    err error;
    f->settings = settings;
    f->engine = engine_new(&settings, &error);
    assert_non_null(f->engine);
    f->now_ms = 1000 * HOUR;
    f->stage_ms = MINUTE;
    f->trace = BUF(LIMIT_TEXT_BYTES);
    f->batches = BUF(LIMIT_TEXT_BYTES);
    return f;
}

static inline fleet *fleet_new(void)
{
    return fleet_with((engine_settings){0});
}

static inline void fleet_free(fleet *f)
{
    engine_free(f->engine);
    for (size_t i = 0; i < f->documents.len; i++)
        loaded_free(&f->documents.at[i]);
    for (size_t i = 0; i < f->texts.len; i++)
        free(f->texts.at[i]);
    vec_done(&f->documents);
    for (size_t i = 0; i < f->rebooted.len; i++)
        free(f->rebooted.at[i]);
    vec_done(&f->texts);
    vec_done(&f->rebooted);
    vec_done(&f->events);
    vec_done(&f->pending);
    vec_done(&f->current);
    vec_done(&f->staged_documents);
    vec_done(&f->out);
    buf_done(&f->trace);
    buf_done(&f->batches);
    free(f);
}

static inline void fleet_tell(fleet *f, fact one)
{
    assert_true(vec_push(&f->pending, one));
}

/* Feeds documents; they are kept until the fleet is freed. */
static inline const object *fleet_document(fleet *f, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int length = vasprintf(&text, format, args);
#pragma GCC diagnostic pop
    va_end(args);
    assert_true(length > 0 && vec_push(&f->texts, text));
    loaded l = load_text("test.yaml", (str){text, (size_t)length});
    if (!l.good || l.objects->len == 0) {
        buf found = problems_as_text(l.found);
        print_error("%.*s\n%s\n", STR_ARG(buf_str(&found)), text);
        fail();
    }
    assert_true(vec_push(&f->documents, l));
    for (size_t i = 0; i < l.objects->len; i++) {
        fleet_tell(f, (fact){.kind = FACT_DOCUMENT, .document = &l.objects->at[i]});
        assert_true(vec_push(&f->staged_documents, &l.objects->at[i]));
    }
    return &l.objects->at[0];
}

static inline fleet_node *fleet_find(fleet *f, const char *name)
{
    for (size_t i = 0; i < f->node_count; i++)
        if (strcmp(f->nodes[i].name, name) == 0)
            return &f->nodes[i];
    print_error("no node %s\n", name);
    fail();
    return NULL;
}

static inline fact fleet_fact(const fleet_node *n)
{
    static label labels[1024][FLEET_LABELS];
    static label annotations[1024][FLEET_LABELS];
    static size_t at;
    label *of = labels[at % 1024];
    label *notes = annotations[at++ % 1024];
    for (size_t i = 0; i < n->label_count; i++)
        of[i] = (label){str_of(n->keys[i]), str_of(n->values[i])};
    memcpy(notes, n->annotations, sizeof n->annotations);
    label_set set, noted;
    err error;
    assert_true(label_set_sort(of, n->label_count, &set, &error));
    assert_true(label_set_sort(notes, n->annotation_count, &noted, &error));
    return (fact){.kind = FACT_TARGET,
                  .target = {.kind = TARGET_NODE,
                             .name = str_of(n->name),
                             .uid = str_of(n->uid),
                             .boot_id = str_of(n->boot),
                             .created_ms = n->created_ms,
                             .labels = set,
                             .not_ready = n->not_ready,
                             .unschedulable = n->unschedulable,
                             .taints = n->taints,
                             .taint_count = n->taint_count,
                             .annotations = noted}};
}

/* The node as it is now becomes a fact of the next step. */
static inline void fleet_show(fleet *f, fleet_node *n)
{
    size_t index = (size_t)(n - f->nodes);
    f->staged[index] = *n;
    f->is_staged[index] = true;
    fleet_tell(f, fleet_fact(&f->staged[index]));
}

static inline void fleet_label(fleet_node *n, const char *key, const char *value)
{
    size_t i = 0;
    while (i < n->label_count && strcmp(n->keys[i], key) != 0)
        i++;
    assert_true(i < FLEET_LABELS);
    if (!value) {
        if (i == n->label_count)
            return;
        n->label_count--;
        memmove(n->keys[i], n->keys[i + 1], (n->label_count - i) * FLEET_TEXT);
        memmove(n->values[i], n->values[i + 1], (n->label_count - i) * FLEET_TEXT);
        return;
    }
    n->label_count += i == n->label_count;
    snprintf(n->keys[i], FLEET_TEXT, "%s", key);
    snprintf(n->values[i], FLEET_TEXT, "%s", value);
}

static inline fleet_node *fleet_node_add(fleet *f, const char *name)
{
    assert_true(f->node_count < FLEET_NODES);
    fleet_node *n = &f->nodes[f->node_count++];
    *n = (fleet_node){.exists = true, .created_ms = 1};
    snprintf(n->name, sizeof n->name, "%s", name);
    snprintf(n->uid, sizeof n->uid, "uid-%zu", f->node_count);
    snprintf(n->boot, sizeof n->boot, "boot-1");
    return n;
}

/* node-001 ... */
static inline void fleet_nodes_add(fleet *f, int count)
{
    for (int i = 1; i <= count; i++) {
        char name[FLEET_TEXT];
        snprintf(name, sizeof name, "node-%03d", i);
        fleet_show(f, fleet_node_add(f, name));
    }
}

static inline void fleet_gone(fleet *f, fleet_node *n)
{
    n->exists = false;
    f->staged[n - f->nodes] = *n;
    f->is_staged[n - f->nodes] = true;
    fleet_tell(f, (fact){.kind = FACT_TARGET_GONE,
                         .target = {.kind = TARGET_NODE, .name = str_of(n->name)}});
}

static inline void fleet_act(fleet *f, act_kind act, const char *change, const char *target)
{
    fleet_tell(f, (fact){.kind = FACT_ACT,
                         .act = {.act = act, .change = str_of(change), .target = str_of(target)}});
}

/* ---- what is decided ---- */

static inline const char *decision_name(decision_kind kind)
{
    static const char *const names[] = {
#define X(kind, text) [DECISION_##kind] = text,
        DECISION_KINDS(X)
#undef X
    };
    return names[kind];
}

static inline void fleet_trace(fleet *f, const decision *d)
{
    buf *t = &f->trace;
    buf_addf(t, "%" PRId64 " %s", (f->now_ms - 1000 * HOUR) / SECOND, decision_name(d->kind));
    bool staged = d->kind == DECISION_RUN || d->kind == DECISION_RECORD;
    const str parts[] = {d->change,
                         d->target,
                         d->group,
                         staged ? d->package : STR_EMPTY,
                         d->version,
                         staged ? d->stage : STR_EMPTY,
                         d->state,
                         d->detail};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i].len > 0 && !(d->kind == DECISION_START && i == 4))
            buf_addf(t, " %.*s", STR_ARG(parts[i]));
    if (d->kind == DECISION_START || d->kind == DECISION_RUN)
        buf_addf(t, " #%" PRId64, d->number);
    if (d->retry)
        buf_addz(t, " retry");
    buf_addc(t, '\n');
}

static inline void copy_text(char out[FLEET_TEXT], str text)
{
    snprintf(out, FLEET_TEXT, "%.*s", STR_ARG(text));
}

static inline void fleet_schedule(fleet *f, const decision *d, int64_t after_ms)
{
    fleet_event e = {.at_ms = f->now_ms + after_ms,
                     .number = f->event_count++,
                     .attempt = d->number,
                     .drain = d->kind == DECISION_DRAIN,
                     .reboots = str_find(d->detail, STR("\"reboot\"")) != SIZE_MAX};
    copy_text(e.change, d->change);
    copy_text(e.target, d->target);
    copy_text(e.package, d->package);
    copy_text(e.version, d->version);
    copy_text(e.stage, d->stage);
    assert_true(vec_push(&f->events, e));
}

static inline void fleet_started(fleet *f, const decision *d)
{
    char name[FLEET_TEXT];
    copy_text(name, d->target);
    fleet_node *n = fleet_find(f, name);
    int64_t batch = f->batch - 1;
    if (batch >= 0 && (size_t)batch < f->failure_count)
        n->fails = f->in_batch < f->failures[batch];
    if (batch >= 0 && (size_t)batch < f->blocked_count && f->in_batch < f->blocked[batch]) {
        fleet_label(n, "skyhook.nvidia.com/ignore", "true");
        fleet_show(f, n);
    }
    f->in_batch++;
}

static inline void fleet_cordon(fleet *f, const decision *d)
{
    char name[FLEET_TEXT];
    copy_text(name, d->target);
    fleet_node *n = fleet_find(f, name);
    n->unschedulable = d->kind == DECISION_CORDON;
    if (f->feedback && n->exists)
        fleet_show(f, n);
}

static inline void fleet_carry_out(fleet *f, const decision *d)
{
    char name[FLEET_TEXT];
    fleet_trace(f, d);
    switch ((int)d->kind) {
    case DECISION_BATCH:
        f->batch = d->number;
        f->in_batch = 0;
        break;
    case DECISION_JUDGE:
        buf_addf(&f->batches, "%s%" PRId64, f->batches.len > 0 ? "," : "", d->size);
        if (d->erroring > 0)
            buf_addf(&f->batches, "(%" PRId64 ")", d->erroring);
        if (d->blocked > 0)
            buf_addf(&f->batches, "[%" PRId64 "]", d->blocked);
        break;
    case DECISION_START: fleet_started(f, d); break;
    case DECISION_RUN:
        copy_text(name, d->target);
        if (!fleet_find(f, name)->silent)
            fleet_schedule(f, d, f->stage_ms);
        break;
    case DECISION_DRAIN:
        copy_text(name, d->target);
        if (!fleet_find(f, name)->drain_blocked)
            fleet_schedule(f, d, 0);
        break;
    case DECISION_CORDON:
    case DECISION_UNCORDON: fleet_cordon(f, d); break;
    default: break;
    }
}

static inline void fleet_checked(fleet *f)
{
    err error;
    if (f->steps_unchecked)
        return;
    if (!engine_check(f->engine, &error) || !engine_full(f->engine, &error)) {
        str trace = buf_str(&f->trace);
        size_t from = trace.len > 800 ? trace.len - 800 : 0;
        print_error("%s\n%.*s\n", error.text, STR_ARG(str_part(trace, from, SIZE_MAX)));
        fail();
    }
}

/* What was staged is known to the engine from now on. */
static inline void fleet_delivered(fleet *f)
{
    f->stepped_ms = f->now_ms;
    for (size_t i = 0; i < f->node_count; i++)
        if (f->is_staged[i])
            f->shown[i] = f->staged[i];
    memset(f->is_staged, 0, sizeof f->is_staged);
    for (size_t i = 0; i < f->staged_documents.len; i++) {
        const object *o = f->staged_documents.at[i];
        size_t at = 0;
        while (at < f->current.len &&
               (f->current.at[at]->kind != o->kind ||
                !str_eq(f->current.at[at]->metadata->name, o->metadata->name)))
            at++;
        if (at < f->current.len)
            f->current.at[at] = o;
        else
            assert_true(vec_push(&f->current, o));
    }
    f->staged_documents.len = 0;
}

/* Steps until nothing is started, with what is pending. Returns whether anything was decided. */
static inline bool fleet_step(fleet *f)
{
    bool any = false;
    for (bool again = true; again || f->pending.len > 0;) {
        again = false;
        f->out.len = 0;
        if (f->before_step)
            f->before_step(f);
        assert_true(engine_step(f->engine, f->pending.at, f->pending.len, f->now_ms, &f->out));
        if (f->after_step)
            f->after_step(f);
        f->pending.len = 0;
        fleet_delivered(f);
        for (size_t i = 0; i < f->out.len; i++) {
            again |= f->out.at[i].kind == DECISION_START;
            fleet_carry_out(f, &f->out.at[i]);
        }
        any |= f->out.len > 0;
        fleet_checked(f);
    }
    return any;
}

/* ---- time ---- */

/* Whether the agent asks for a reboot: once for each piece of work, which its host remembers. */
static inline bool fleet_asks(fleet *f, const fleet_event *e, const fleet_node *n)
{
    arena *a = arena_new(0);
    node_view v = {0};
    char *key = NULL;
    int64_t generation = 0;
    engine_node(f->engine, str_of(e->change), str_of(e->target), a, &v);
    for (size_t i = 0; i < v.package_count; i++)
        if (str_eq(v.packages[i].name, str_of(e->package)) &&
            str_eq(v.packages[i].version, str_of(e->version)))
            generation = v.packages[i].generation;
    arena_free(a);
    if (generation == 0)
        return true; /* a document without: every piece of work is another */
    assert_true(asprintf(&key, "%s %s %s %s %s %" PRId64, n->name, n->uid, e->change, e->package,
                         e->version, generation) > 0);
    for (size_t i = 0; i < f->rebooted.len; i++)
        if (strcmp(f->rebooted.at[i], key) == 0) {
            free(key);
            return false;
        }
    assert_true(vec_push(&f->rebooted, key));
    return true;
}

static inline void fleet_answer(fleet *f, fleet_event *e)
{
    e->used = true;
    fleet_node *n = fleet_find(f, e->target);
    if (e->drain) {
        fleet_tell(f,
                   (fact){.kind = FACT_DRAIN, .drain = {.target = str_of(n->name), .done = true}});
        return;
    }
    bool fails = n->fails || n->fails_once;
    n->fails_once = false;
    if (e->reboots && !fails && n->exists && fleet_asks(f, e, n)) {
        snprintf(n->boot, sizeof n->boot, "boot-of-%" PRIu64, e->number);
        fleet_show(f, n);
    }
    fleet_tell(f, (fact){.kind = FACT_STAGE,
                         .stage = {.change = str_of(e->change),
                                   .target = str_of(e->target),
                                   .package = str_of(e->package),
                                   .version = str_of(e->version),
                                   .stage = str_of(e->stage),
                                   .attempt = e->attempt,
                                   .outcome = fails ? OUTCOME_FAILED : OUTCOME_SUCCEEDED,
                                   .reason = fails ? STR("Broken") : STR_EMPTY,
                                   .never_retry = fails && n->never_retry,
                                   .nothing_ran = fails && n->nothing_runs}});
}

static inline int64_t fleet_next(const fleet *f)
{
    int64_t next = engine_next_ms(f->engine);
    for (size_t i = 0; i < f->events.len; i++)
        if (!f->events.at[i].used && (next == REASON_NEVER || f->events.at[i].at_ms < next))
            next = f->events.at[i].at_ms;
    return next;
}

/* Tells what has happened by now. The events told are views: they stay until the fleet is freed. */
static inline void fleet_due(fleet *f)
{
    for (size_t i = 0; i < f->events.len; i++)
        if (!f->events.at[i].used && f->events.at[i].at_ms <= f->now_ms)
            fleet_answer(f, &f->events.at[i]);
}

/* Runs for so long, or (negative) until nothing is due any more. */
static inline void fleet_run(fleet *f, int64_t for_ms)
{
    int64_t end = f->now_ms + for_ms;
    fleet_step(f);
    for (int steps = 0;; steps++) {
        int64_t next = fleet_next(f);
        if (next == REASON_NEVER || (for_ms >= 0 && next > end))
            break;
        check_msg(steps < 200000, "no end in sight");
        if (next > f->now_ms)
            f->now_ms = next;
        fleet_due(f);
        /* An event's texts move when events are added: none is while these are told. */
        fleet_step(f);
    }
    if (for_ms >= 0)
        f->now_ms = end;
}

/* ---- looking ---- */

typedef struct fleet_look {
    const char *change, *target;
    placement_view view;
    bool found;
} fleet_look;

static inline bool fleet_look_at(void *context, const placement_view *v)
{
    fleet_look *l = context;
    if (!str_eq(v->change, str_of(l->change)) || !str_eq(v->target, str_of(l->target)))
        return true;
    l->view = *v;
    l->found = true;
    return false;
}

static inline placement_view fleet_placement(const fleet *f, const char *change, const char *target)
{
    fleet_look l = {.change = change, .target = target};
    engine_placements(f->engine, fleet_look_at, &l);
    check_msg(l.found, "no placement of %s on %s", change, target);
    return l.view;
}

static inline void check_state_at(const fleet *f, const char *change, const char *target,
                                  placement_state want, int line)
{
    placement_state got = fleet_placement(f, change, target).state;
    if (got == want)
        return;
    print_error("%s on %s: state %d, expected %d\n%.*s\n", change, target, (int)got, (int)want,
                STR_ARG(buf_str(&f->trace)));
    _fail(__FILE__, line);
}
#define check_state(f, change, target, state)                                                      \
    check_state_at((f), (change), (target), PLACEMENT_##state, __LINE__)

/* "rule:act:of, ..." of a placement's reasons. */
static inline const char *fleet_reasons(const fleet *f, const char *change, const char *target)
{
    static char text[4096];
    size_t len = 0;
    reasons out = {0};
    arena *a = arena_new(0);
    text[0] = '\0';
    assert_true(engine_reasons(f->engine, fleet_placement(f, change, target).id, a, &out));
    for (size_t i = 0; i < out.len; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s:%.*s", i > 0 ? ", " : "",
                                STR_ARG(reason_rule_name(out.at[i].rule)),
                                STR_ARG(release_act_name(out.at[i].act)));
        for (size_t k = 0; k < out.at[i].of_count; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", k > 0 ? "+" : ":",
                                    STR_ARG(out.at[i].of[k]));
    }
    arena_free(a);
    return text;
}

static inline bool fleet_group_at(void *context, const group_view *g)
{
    group_view *want = context;
    if (!str_eq(g->name, want->name) || !str_eq(g->change, want->change))
        return true;
    *want = *g;
    return false;
}

static inline group_view fleet_group(const fleet *f, const char *change, const char *name)
{
    group_view g = {.change = str_of(change), .name = str_of(name), .matched = -1};
    engine_groups(f->engine, fleet_group_at, &g);
    check_msg(g.matched >= 0, "no compartment %s", name);
    return g;
}

/* The trace's lines of these kinds ("run start") since the last call, without their times. */
static inline const char *fleet_lines(fleet *f, const char *kinds)
{
    static char text[65536];
    size_t len = 0;
    text[0] = '\0';
    str rest = buf_str(&f->trace);
    while (rest.len > 0) {
        str line = str_cut(&rest, '\n');
        str_cut(&line, ' ');
        str after = line;
        str kind = str_cut(&after, ' ');
        char padded[FLEET_TEXT];
        snprintf(padded, sizeof padded, "%.*s", STR_ARG(kind));
        if (kind.len > 0 && strstr(kinds, padded))
            len += (size_t)snprintf(text + len, sizeof text - len, "%.*s\n", STR_ARG(line));
    }
    buf_clear(&f->trace);
    return text;
}

static inline size_t fleet_count(const fleet *f, const char *part)
{
    size_t count = 0;
    str rest = buf_str(&f->trace);
    for (size_t at; (at = str_find(rest, str_of(part))) != SIZE_MAX; count++)
        rest = str_part(rest, at + 1, SIZE_MAX);
    return count;
}

#define check_lines(f, kinds, want) check_text(str_of(fleet_lines((f), (kinds))), (want))

#endif
