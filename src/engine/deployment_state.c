/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/deployment_state.h"

#include <stdlib.h>

#include "base/vec.h"
#include "engine/go_json.h"

#define RESOURCES_TOLD_MAX 4 /* of one deployment, of each of the two kinds */

const char *bundle_state_text(bundle_state state)
{
    static const char *const texts[] = {
#define X(state, text) text,
        BUNDLE_STATES(X)
#undef X
    };
    return texts[state];
}

/* ---- one deployment ---- */

bundle_state deployment_state(const deployment_seen *d)
{
    if (d->live.len == 0)
        return BUNDLE_PENDING;
    if (!str_eq(d->applied, d->live))
        return d->deployed_failed ? BUNDLE_ERR_APPLIED : BUNDLE_WAIT_APPLIED;
    if (!d->ready)
        return BUNDLE_NOT_READY;
    if (!str_eq(d->live, d->wanted))
        return BUNDLE_OUT_OF_SYNC;
    return d->non_modified ? BUNDLE_READY : BUNDLE_MODIFIED;
}

deployment_seen deployment_seen_of(const bundle_deployment *d, str wanted)
{
    const condition *deployed = condition_find(d->status.conditions, STR("Deployed"));
    return (deployment_seen){
        .wanted = wanted,
        .live = d->spec.deployment_id,
        .applied = d->status.applied_deployment_id,
        .ready = d->status.ready,
        .non_modified = d->status.non_modified,
        .deployed_failed = deployed && deployed->status == CONDITION_FALSE,
    };
}

str deployment_message(const bundle_deployment *d)
{
    static const str types[] = {STR("Deployed"), STR("Installed"), STR("Monitored")};
    bool current = str_eq(d->status.applied_deployment_id, d->spec.deployment_id);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const condition *c = condition_find(d->status.conditions, types[i]);
        bool about_live = current || !str_eq(types[i], STR("Installed"));
        if (c && c->message.len > 0 && about_live)
            return c->message;
    }
    return STR_EMPTY;
}

/* ---- many ---- */

static int64_t *counter_of(bundle_summary *s, bundle_state state)
{
    switch (state) {
    case BUNDLE_NONE: return NULL;
    case BUNDLE_READY: return &s->ready;
    case BUNDLE_NOT_READY: return &s->not_ready;
    case BUNDLE_PENDING: return &s->pending;
    case BUNDLE_OUT_OF_SYNC: return &s->out_of_sync;
    case BUNDLE_MODIFIED: return &s->modified;
    case BUNDLE_WAIT_APPLIED: return &s->wait_applied;
    case BUNDLE_ERR_APPLIED: return &s->err_applied;
    }
    return NULL;
}

static void list_one(summary_maker *s, const non_ready_resource *one)
{
    s->summary.non_ready_resources.at = s->listed;
    if (s->summary.non_ready_resources.len < SUMMARY_LISTED_MAX)
        s->listed[s->summary.non_ready_resources.len++] = *one;
}

void summary_add(summary_maker *s, const non_ready_resource *one)
{
    int64_t *counter = counter_of(&s->summary, one->bundle_state);
    if (counter)
        ++*counter;
    s->summary.desired_ready++;
    if (one->bundle_state != BUNDLE_READY)
        list_one(s, one);
}

void summary_sum(summary_maker *s, const bundle_summary *other)
{
    for (bundle_state state = BUNDLE_READY; state <= BUNDLE_ERR_APPLIED; state++) {
        bundle_summary copy = *other;
        *counter_of(&s->summary, state) += *counter_of(&copy, state);
    }
    s->summary.desired_ready += other->desired_ready;
    for (size_t i = 0; i < other->non_ready_resources.len; i++)
        list_one(s, &other->non_ready_resources.at[i]);
}

bool summary_ready(const bundle_summary *s)
{
    return s->ready == s->desired_ready;
}

bundle_state summary_state(const bundle_summary *s)
{
    bundle_state highest = BUNDLE_NONE;
    for (size_t i = 0; i < s->non_ready_resources.len; i++)
        if (s->non_ready_resources.at[i].bundle_state > highest)
            highest = s->non_ready_resources.at[i].bundle_state;
    return highest;
}

/* ---- the message ---- */

typedef VEC(str) sentences;

typedef struct teller {
    arena *arena;
    sentences list;
    bool failed;
} teller;

static void tell(teller *t, str sentence)
{
    if (!sentence.ptr || !vec_push(&t->list, sentence))
        t->failed = true;
}

/* "deployment.apps ns/name", as Fleet names a resource. */
static void add_resource(buf *out, const yyjson_val *r)
{
    str kind = go_str(go_member(r, STR("kind"))), group = go_str(go_member(r, STR("apiVersion"))),
        space = go_str(go_member(r, STR("namespace"))), name = go_str(go_member(r, STR("name")));
    for (size_t i = 0; i < kind.len; i++)
        buf_addc(out, (char)(kind.ptr[i] >= 'A' && kind.ptr[i] <= 'Z' ? kind.ptr[i] - 'A' + 'a'
                                                                      : kind.ptr[i]));
    buf_addz(out, group.len > 0 ? "." : "");
    buf_add(out, str_cut(&group, '/'));
    buf_addc(out, ' ');
    buf_add(out, space);
    buf_addz(out, space.len > 0 ? "/" : "");
    buf_add(out, name);
}

static bool flag_of(const yyjson_val *r, str name)
{
    return yyjson_is_true(go_member(r, name));
}

static void add_modified(buf *out, const yyjson_val *r)
{
    add_resource(out, r);
    if (flag_of(r, STR("missing"))) {
        buf_addz(out, flag_of(r, STR("exist")) ? " is not owned by us" : " missing");
    } else if (flag_of(r, STR("delete"))) {
        buf_addz(out, " extra");
    } else {
        buf_addz(out, " modified ");
        buf_add(out, go_str(go_member(r, STR("patch"))));
    }
}

/* The state of a resource as Fleet words it: "[progressing] ...", "error] ...". */
static void add_non_ready(buf *out, const yyjson_val *r)
{
    const yyjson_val *summary = go_member(r, STR("summary"));
    yyjson_val *messages = go_member(summary, STR("message")), *one;
    bool moving = flag_of(summary, STR("transitioning")), error = flag_of(summary, STR("error"));
    size_t i, max;
    add_resource(out, r);
    buf_addc(out, ' ');
    if (!moving && !error) {
        buf_add(out, go_str(go_member(summary, STR("state"))));
        return;
    }
    buf_addz(out, moving ? "[progressing" : "");
    buf_addz(out, !error ? "]" : moving ? ",error]" : "error]");
    yyjson_arr_foreach(messages, i, max, one)
    {
        buf_addz(out, i > 0 ? ", " : " ");
        buf_add(out, go_str(one));
    }
}

static void tell_resources(teller *t, raw_json list, void (*add)(buf *out, const yyjson_val *r))
{
    yyjson_val *resources = (yyjson_val *)(uintptr_t)list, *one;
    size_t i, max;
    yyjson_arr_foreach(resources, i, max, one)
    {
        if (i >= RESOURCES_TOLD_MAX)
            break;
        buf text = BUF(LIMIT_DOCUMENT_BYTES);
        add(&text, one);
        tell(t, text.failed ? (str){NULL, 0} : arena_str(t->arena, buf_str(&text)));
        buf_done(&text);
    }
}

static void tell_state(teller *t, const bundle_summary *s, bundle_state state, const char *kind)
{
    bundle_summary copy = *s;
    int64_t count = *counter_of(&copy, state);
    for (size_t i = 0; count > 0 && i < s->non_ready_resources.len; i++) {
        const non_ready_resource *one = &s->non_ready_resources.at[i];
        if (one->bundle_state != state)
            continue;
        tell(t, arena_printf(t->arena, "%s(%lld) [%s %.*s%s%.*s]", bundle_state_text(state),
                             (long long)count, kind, STR_ARG(one->name),
                             one->message.len > 0 ? ": " : "", STR_ARG(one->message)));
        tell_resources(t, one->modified_status, add_modified);
        tell_resources(t, one->non_ready_status, add_non_ready);
        return;
    }
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

void summary_message(buf *out, const bundle_summary *s, const char *kind)
{
    teller t = {.arena = arena_new(0)};
    if (!t.arena) {
        out->failed = true;
        return;
    }
    for (bundle_state state = BUNDLE_NOT_READY; state <= BUNDLE_ERR_APPLIED; state++)
        tell_state(&t, s, state, kind);
    if (t.list.len > 1)
        qsort(t.list.at, t.list.len, sizeof *t.list.at, by_text);
    for (size_t i = 0; i < t.list.len; i++) {
        buf_addz(out, i > 0 ? "; " : "");
        buf_add(out, t.list.at[i]);
    }
    out->failed |= t.failed;
    vec_done(&t.list);
    arena_free(t.arena);
}
