/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cluster_shell.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/fleet_schema.h"
#include "operator/hub_internal.h"

const char *hub_kind_path(hub_kind kind)
{
    static const char *const paths[] = {
#define X(name, plural) HUB_API "/" plural,
        HUB_KINDS(X)
#undef X
    };
    return kind == HUB_NAMESPACE ? "/api/v1/namespaces" : paths[kind];
}

/* ---- small things ---- */

void hub_memory(cluster_shell *s)
{
    s->no_memory = true;
}

char *hub_copy(cluster_shell *s, str text)
{
    char *copy = mem_alloc(text.len + 1);
    if (!copy) {
        hub_memory(s);
        return NULL;
    }
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

void hub_set(cluster_shell *s, char **at, str text)
{
    if (*at && str_eq(str_of(*at), text))
        return;
    char *copy = hub_copy(s, text);
    if (!copy)
        return;
    mem_free(*at);
    *at = copy;
}

str hub_key(cluster_shell *s, str space, str name)
{
    str key = arena_printf(s->scratch, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    if (!key.ptr) {
        hub_memory(s);
        return STR_EMPTY;
    }
    return key;
}

void hub_key_parts(const char *key, str *space, str *name)
{
    *name = str_of(key);
    *space = str_cut(name, '/');
}

bool hub_put(cluster_shell *s, strmap *m, const char *key, void *value)
{
    bool good = strmap_put(m, str_of(key), (uint64_t)(uintptr_t)value);
    if (!good)
        hub_memory(s);
    return good;
}

void *hub_record_new(cluster_shell *s, strmap *in, str key, size_t bytes, char **ret_key)
{
    void *record = mem_zalloc(bytes);
    *ret_key = record ? hub_copy(s, key) : NULL;
    if (*ret_key && hub_put(s, in, *ret_key, record))
        return record;
    mem_free(*ret_key);
    mem_free(record);
    hub_memory(s);
    return NULL;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

uint64_t hub_digest(yyjson_val *value)
{
    uint64_t sum = 1 + (uint64_t)yyjson_get_type(value);
    size_t i, max;
    yyjson_val *key, *one;
    if (yyjson_is_obj(value)) {
        yyjson_obj_foreach(value, i, max, key, one)
        {
            sum += mix(hub_digest(key) * 31 + hub_digest(one));
        }
    } else if (yyjson_is_arr(value)) {
        yyjson_arr_foreach(value, i, max, one)
        {
            sum = mix(sum * 31 + hub_digest(one));
        }
    } else if (yyjson_is_str(value)) {
        sum ^= str_hash((str){yyjson_get_str(value), yyjson_get_len(value)});
    } else if (yyjson_is_int(value)) {
        sum ^= mix(yyjson_get_uint(value));
    } else if (yyjson_is_real(value)) {
        char text[64];
        sum ^= str_hash(
            (str){text, (size_t)snprintf(text, sizeof text, "%.17g", yyjson_get_real(value))});
    } else {
        sum += yyjson_get_bool(value);
    }
    return mix(sum);
}

uint64_t hub_digest_labels(yyjson_val *labels)
{
    uint64_t sum = 1;
    size_t i, max;
    yyjson_val *key, *one;
    yyjson_obj_foreach(labels, i, max, key, one)
    {
        if (!yyjson_equals_str(key, HUB_RELEASED_AT) && !yyjson_equals_str(key, HUB_VALUES))
            sum += mix(hub_digest(key) * 31 + hub_digest(one));
    }
    return mix(sum);
}

bool hub_has_text(yyjson_val *list, str text)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(list, i, max, one)
    {
        if (yyjson_equals_strn(one, text.ptr, text.len))
            return true;
    }
    return false;
}

int64_t hub_due_ms(const cluster_shell *s, int64_t of_ms)
{
    int64_t due = s->now_ms + of_ms;
    return of_ms < HUB_STATUS_GRID_MS ? due : due - due % HUB_STATUS_GRID_MS;
}

void hub_touch(cluster_shell *s, hub_clock *clock, int64_t of_ms)
{
    int64_t due = hub_due_ms(s, of_ms);
    if (!clock->dirty)
        clock->due_ms = due > clock->rests_until_ms ? due : clock->rests_until_ms;
    clock->dirty = true;
}

/* ---- writes ---- */

static hub_ticket *ticket_free(hub_ticket *t)
{
    mem_free(t->bundle);
    mem_free(t->cluster);
    return mem_free(t);
}

static void answered(void *context, const write_outcome *how, yyjson_val *json)
{
    hub_ticket *t = context;
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    t->shell->due = true;
    arena_place mark = arena_mark(t->shell->scratch);
    t->done(t->shell, t, how, json);
    arena_rewind(t->shell->scratch, mark);
    ticket_free(t);
}

bool hub_send(cluster_shell *s, const kube_write *w, hub_ticket ticket)
{
    err error;
    hub_ticket *t = mem_zalloc(sizeof *t);
    if (!t) {
        hub_memory(s);
        return false;
    }
    *t = ticket;
    t->shell = s;
    t->bundle = ticket.bundle ? hub_copy(s, str_of(ticket.bundle)) : NULL;
    t->cluster = ticket.cluster ? hub_copy(s, str_of(ticket.cluster)) : NULL;
    if (s->no_memory ||
        !s->api.send(s->api.context, w, (write_handler){t, answered, NULL}, &error)) {
        if (!s->no_memory)
            log_line(LOG_ERROR, "%.*s %.*s: %s", STR_ARG(w->collection), STR_ARG(w->name),
                     error.text);
        ticket_free(t);
        return false;
    }
    t->next = s->tickets;
    t->link = &s->tickets;
    if (t->next)
        t->next->link = &t->next;
    s->tickets = t;
    return true;
}

str hub_collection(cluster_shell *s, hub_kind kind, str space)
{
    str plural = str_part(str_of(hub_kind_path(kind)), sizeof HUB_API, SIZE_MAX);
    str path =
        arena_printf(s->scratch, HUB_API "/namespaces/%.*s/%.*s", STR_ARG(space), STR_ARG(plural));
    if (!path.ptr)
        hub_memory(s);
    return path;
}

bool hub_may_send(const cluster_shell *s, const hub_object *o)
{
    bool waits = o->waits_for && o->waits_for >= o->revision;
    return !o->sending && !waits && o->held_until_ms <= s->now_ms;
}

void hub_await(hub_object *o, yyjson_val *row)
{
    char ignored[SHELL_VERSION_BYTES];
    uint64_t revision = row ? read_revision(row, ignored) : 0;
    if (revision > o->revision)
        o->waits_for = revision - 1;
}

bool hub_may_tell(const cluster_shell *s, const hub_object *o)
{
    return hub_may_send(s, o) && o->status_until_ms <= s->now_ms;
}

/* Until when the next one waits; 0: it does not. */
static int64_t answer(cluster_shell *s, hub_object *o, const hub_ticket *t,
                      const write_outcome *how)
{
    o->sending = false;
    switch (how->kind) {
    case WRITE_DONE: return 0;
    case WRITE_CONFLICT: o->waits_for = t->revision; return 0;
    case WRITE_GONE: return 0; /* the watch tells */
    case WRITE_EXISTS:
    case WRITE_REFUSED:
    case WRITE_BLOCKED:
    case WRITE_LATER:
    case WRITE_AMBIGUOUS:
    case WRITE_BARRED: break;
    }
    return s->now_ms + HUB_REFUSED_MS;
}

bool hub_answered(cluster_shell *s, hub_object *o, const hub_ticket *t, const write_outcome *how)
{
    int64_t until_ms = answer(s, o, t, how);
    if (until_ms)
        o->held_until_ms = until_ms;
    return how->kind == WRITE_DONE;
}

bool hub_told(cluster_shell *s, hub_object *o, const hub_ticket *t, const write_outcome *how)
{
    int64_t until_ms = answer(s, o, t, how);
    if (until_ms)
        o->status_until_ms = until_ms;
    return how->kind == WRITE_DONE;
}

void hub_object_seen(cluster_shell *s, hub_object *o, yyjson_val *json)
{
    char ignored[SHELL_VERSION_BYTES];
    o->revision = read_revision(json, ignored);
    hub_set(s, &o->uid, read_text(yyjson_obj_get(json, "metadata"), "uid"));
    if (o->waits_for && o->revision > o->waits_for)
        o->waits_for = 0;
}

/* ---- making ---- */

cluster_shell *cluster_shell_free(cluster_shell *s)
{
    if (!s)
        return NULL;
    s->engine = engine_free(s->engine); /* before the documents that it knows */
    while (s->bundles.len > 0)
        hub_bundle_free(s, (hub_bundle *)(uintptr_t)s->bundles.entries[0].value);
    while (s->clusters.len > 0)
        hub_cluster_free(s, (hub_cluster *)(uintptr_t)s->clusters.entries[0].value);
    while (s->groups.len > 0)
        hub_documents_gone(s, HUB_GROUP, s->groups.entries[0].key);
    while (s->mappings.len > 0)
        hub_documents_gone(s, HUB_MAPPING, s->mappings.entries[0].key);
    hub_namespaces_forget(s);
    HUB_EACH(&s->repos, hub_repo, r) hub_repo_free(r);
    HUB_EACH(&s->contents, hub_content, c) hub_content_free(c);
    while (s->versions.len > 0) { /* only if memory ran out in between */
        void *left = (void *)(uintptr_t)s->versions.entries[0].value;
        strmap_remove(&s->versions, s->versions.entries[0].key);
        mem_free(left);
    }
    for (size_t i = 0; i < s->strays.len; i++)
        hub_stray_free(&s->strays.at[i]);
    while (s->tickets) {
        hub_ticket *next = s->tickets->next;
        ticket_free(s->tickets);
        s->tickets = next;
    }
    strmap_done(&s->bundles);
    strmap_done(&s->clusters);
    strmap_done(&s->groups);
    strmap_done(&s->mappings);
    strmap_done(&s->namespaces);
    strmap_done(&s->repos);
    strmap_done(&s->contents);
    strmap_done(&s->homes);
    strmap_done(&s->versions);
    vec_done(&s->strays);
    vec_done(&s->queue);
    vec_done(&s->late);
    vec_done(&s->patient);
    vec_done(&s->changed);
    vec_done(&s->decisions);
    arena_free(s->scratch);
    mem_free(s->pruned);
    return mem_free(s);
}

cluster_shell *cluster_shell_new(const hub_settings *settings, hub_api api, err *error)
{
    cluster_shell *s = mem_zalloc(sizeof *s);
    if (!s) {
        err_memory(error);
        return NULL;
    }
    s->settings = *settings;
    if (s->settings.status_every_ms == 0)
        s->settings.status_every_ms = HUB_STATUS_EVERY_MS;
    if (s->settings.cluster_status_every_ms == 0)
        s->settings.cluster_status_every_ms = HUB_CLUSTER_STATUS_EVERY_MS;
    if (s->settings.record_bytes_max == 0)
        s->settings.record_bytes_max = HUB_RECORD_BYTES_MAX;
    if (s->settings.entry_bytes_max == 0)
        s->settings.entry_bytes_max = HUB_ENTRIES_BYTES_MAX;
    s->api = api;
    s->contents_due_ms = REASON_NEVER;
    s->engine = engine_new(&settings->engine, error);
    s->scratch = arena_new(0);
    if (s->engine && s->scratch)
        return s;
    err_memory(error);
    return cluster_shell_free(s);
}

/* ---- what comes in ---- */

static void clock_to(cluster_shell *s, int64_t now_ms)
{
    if (now_ms > s->now_ms)
        s->now_ms = now_ms;
    s->due = true;
}

/* Nothing is decided here: many changes make one pass. */
void hub_take(cluster_shell *s, const fact *f)
{
    if (!s->no_memory && s->engine && !engine_take(s->engine, f, 1, s->now_ms))
        hub_memory(s);
}

bool cluster_shell_seen(cluster_shell *s, hub_kind kind, yyjson_val *json, int64_t now_ms)
{
    clock_to(s, now_ms);
    if (s->no_memory)
        return false;
    arena_place mark = arena_mark(s->scratch);
    switch (kind) {
    case HUB_GROUP:
    case HUB_MAPPING: hub_documents_seen(s, kind, json); break;
    case HUB_CLUSTER: hub_clusters_seen(s, json); break;
    case HUB_BUNDLE: hub_bundles_seen(s, json); break;
    case HUB_CONTENT: hub_contents_seen(s, json); break;
    case HUB_DEPLOYMENT: hub_deployments_seen(s, json); break;
    case HUB_REPO: hub_repos_seen(s, json); break;
    case HUB_NAMESPACE: hub_namespaces_seen(s, json); break;
    }
    arena_rewind(s->scratch, mark);
    return !s->no_memory;
}

void cluster_shell_schema(cluster_shell *s, yyjson_val *openapi)
{
    buf fields = BUF(HUB_TEXT_BYTES);
    fleet_schema_pruned(openapi, &fields);
    if (fields.len > 0) {
        log_line(LOG_WARN, "the hub's definition of Bundles drops %.*s of a rolloutStrategy",
                 STR_ARG(buf_str(&fields)));
        hub_set(s, &s->pruned, buf_str(&fields));
    }
    buf_done(&fields);
    HUB_EACH(&s->bundles, hub_bundle, b) hub_touch(s, &b->clock, s->settings.status_every_ms);
}

void cluster_shell_gone(cluster_shell *s, hub_kind kind, str space, str name, int64_t now_ms)
{
    clock_to(s, now_ms);
    if (s->no_memory)
        return;
    arena_place mark = arena_mark(s->scratch);
    str key = hub_key(s, space, name);
    switch (kind) {
    case HUB_GROUP:
    case HUB_MAPPING: hub_documents_gone(s, kind, key); break;
    case HUB_CLUSTER: hub_clusters_gone(s, key); break;
    case HUB_BUNDLE: hub_bundles_gone(s, key); break;
    case HUB_CONTENT: hub_contents_gone(s, name); break;
    case HUB_DEPLOYMENT: hub_deployments_gone(s, space, name); break;
    case HUB_REPO: hub_repos_gone(s, key); break;
    case HUB_NAMESPACE: hub_namespaces_gone(s, name); break;
    }
    arena_rewind(s->scratch, mark);
}

void cluster_shell_synced(cluster_shell *s, hub_kind kind)
{
    s->due |= !s->synced[kind];
    s->synced[kind] = true;
}

bool cluster_shell_wants_deployments(const cluster_shell *s)
{
    return s->synced[HUB_GROUP] && s->synced[HUB_MAPPING] && s->synced[HUB_CLUSTER] &&
           s->synced[HUB_BUNDLE] && s->synced[HUB_CONTENT];
}

/* ---- the turn ---- */

/* Who is a target of what, where that may have changed. */
static void look_again(cluster_shell *s)
{
    HUB_EACH(&s->bundles, hub_bundle, b)
    {
        if (!b->relook && !s->relook_all)
            continue;
        b->relook = false;
        HUB_EACH(&s->clusters, hub_cluster, c) hub_look(s, b, c);
        hub_touch(s, &b->clock, s->settings.status_every_ms);
    }
    s->relook_all = false;
    for (size_t i = 0; i < s->changed.len; i++) {
        hub_cluster *c = s->changed.at[i];
        if (!c || !c->relook)
            continue;
        c->relook = false;
        HUB_EACH(&s->bundles, hub_bundle, b) hub_look(s, b, c);
        hub_groups_of(s, c);
        hub_cluster_drop(s, c);
    }
    s->changed.len = 0;
}

static bool begin(cluster_shell *s)
{
    HUB_EACH(&s->bundles, hub_bundle, b)
    {
        hub_values_step(s, b);
        hub_access_step(s, b);
    }
    if (!cluster_shell_wants_deployments(s) || !s->synced[HUB_DEPLOYMENT] || !hub_values_asked(s))
        return false;
    if (!s->restored && cluster_shell_wants_namespaces(s) && !s->synced[HUB_NAMESPACE])
        return false;
    if (!s->restored)
        hub_homes_settle(s);
    hub_mappings_tell(s);
    look_again(s);
    HUB_EACH(&s->bundles, hub_bundle, b) hub_record_restore(s, b);
    s->restored |= !s->no_memory;
    return !s->no_memory;
}

static void carry_out(cluster_shell *s, const decision *d)
{
    hub_bundle *b = hub_find(&s->bundles, d->change);
    if (!b)
        return;
    if (d->kind == DECISION_PASS || d->kind == DECISION_HALT || d->kind == DECISION_RELEASE)
        hub_touch(s, &b->clock, s->settings.status_every_ms);
    if (d->kind != DECISION_DEPLOY)
        return;
    bool foreign = str_find(d->target, STR("/")) != SIZE_MAX;
    hub_cluster *c = hub_find(&s->clusters, foreign ? d->target : hub_key(s, b->space, d->target));
    hub_place *p = c ? hub_place_find(b, c) : NULL;
    if (!p)
        return;
    hub_want(s, p, d->version);
    hub_queue(s, p);
}

static void decide(cluster_shell *s)
{
    bool again = true;
    while (again && !s->no_memory) {
        arena_place mark = arena_mark(s->scratch);
        again = false;
        s->decisions.len = 0;
        if (!engine_step(s->engine, NULL, 0, s->now_ms, &s->decisions)) {
            hub_memory(s);
            return;
        }
        for (size_t i = 0; i < s->decisions.len; i++) {
            again |= s->decisions.at[i].kind == DECISION_DEPLOY;
            carry_out(s, &s->decisions.at[i]);
            if (s->api.decided)
                s->api.decided(s->api.context, &s->decisions.at[i]);
        }
        arena_rewind(s->scratch, mark);
    }
}

static void write_places(cluster_shell *s)
{
    size_t kept = 0, done = 0, count = s->queue.len;
    for (size_t i = 0; i < count; i++) {
        hub_place *p = s->queue.at[i];
        arena_place mark = arena_mark(s->scratch);
        bool left = s->no_memory || done >= HUB_WRITES_PER_TURN;
        if (!left) {
            left = !hub_deploy(s, p);
            done +=
                !left; /* who waits for something else costs little, and is no reason to go on */
        }
        arena_rewind(s->scratch, mark);
        p->queued = left;
        if (left)
            s->queue.at[kept++] = p;
    }
    for (size_t i = count; i < s->queue.len; i++) /* queued meanwhile */
        s->queue.at[kept++] = s->queue.at[i];
    s->queue.len = kept;
    s->due |= done >= HUB_WRITES_PER_TURN;
}

static void write_bundles(cluster_shell *s)
{
    HUB_EACH(&s->bundles, hub_bundle, b)
    {
        arena_place mark = arena_mark(s->scratch);
        hub_bundle_counts(s, b);
        hub_bundle_step(s, b);
        if (b->clock.dirty && b->clock.due_ms <= s->now_ms)
            hub_bundle_status(s, b);
        arena_rewind(s->scratch, mark);
    }
}

/* Whose time has come waits no longer than any other. */
static void end_patience(cluster_shell *s)
{
    while (s->patient_from < s->patient.len) {
        hub_patience one = s->patient.at[s->patient_from];
        if (one.cluster && one.until_ms > s->now_ms)
            break;
        s->patient_from++;
        if (one.cluster && one.until_ms == one.cluster->patient_ms)
            hub_cluster_touch(s, one.cluster);
    }
    if (s->patient_from == s->patient.len)
        s->patient_from = s->patient.len = 0;
}

static void write_clusters(cluster_shell *s)
{
    end_patience(s);
    while (s->late_from < s->late.len) {
        hub_cluster *c = s->late.at[s->late_from];
        if (c && c->clock.due_ms > s->now_ms)
            break;
        s->late_from++;
        if (!c)
            continue;
        c->queued = false;
        arena_place mark = arena_mark(s->scratch);
        hub_cluster_step(s, c);
        hub_cluster_status(s, c);
        arena_rewind(s->scratch, mark);
    }
    if (s->late_from == s->late.len)
        s->late_from = s->late.len = 0;
}

static void write_sums(cluster_shell *s)
{
    arena_place mark = arena_mark(s->scratch);
    HUB_EACH(&s->groups, hub_group, g)
    if (g->clock.dirty && g->clock.due_ms <= s->now_ms)
        hub_group_status(s, g);
    HUB_EACH(&s->repos, hub_repo, r)
    if (r->clock.dirty && r->clock.due_ms <= s->now_ms)
        hub_repo_status(s, r);
    arena_rewind(s->scratch, mark);
}

bool cluster_shell_turn(cluster_shell *s, int64_t now_ms)
{
    clock_to(s, now_ms);
    s->due = false;
    if (s->no_memory || !begin(s))
        return !s->no_memory;
    HUB_EACH(&s->bundles, hub_bundle, b) hub_acts_take(s, b);
    decide(s);
    write_bundles(s);
    write_places(s);
    write_clusters(s);
    write_sums(s);
    hub_strays_step(s);
    hub_contents_step(s);
    return !s->no_memory;
}

/* ---- when ---- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a == REASON_NEVER || (b != REASON_NEVER && b < a) ? b : a;
}

/* When a status may be written; never, if something else is waited for. */
static int64_t clock_next(const hub_clock *clock, const hub_object *o)
{
    if (!clock->dirty || o->sending || (o->waits_for && o->waits_for >= o->revision))
        return REASON_NEVER;
    int64_t due_ms = clock->due_ms + HUB_STATUS_SLACK_MS;
    int64_t held_ms =
        o->held_until_ms > o->status_until_ms ? o->held_until_ms : o->status_until_ms;
    return held_ms > due_ms ? held_ms : due_ms;
}

/* When the record or the finalizer is written again that could not be; a status has its clock. */
static int64_t record_next(const cluster_shell *s, const hub_bundle *b)
{
    bool owed = b->record_stale || (b->deleting && b->has_finalizer);
    return owed && b->object.held_until_ms > s->now_ms ? b->object.held_until_ms : REASON_NEVER;
}

int64_t cluster_shell_next_ms(const cluster_shell *s)
{
    if (s->due)
        return s->now_ms;
    if (!s->restored)
        return REASON_NEVER;
    int64_t next = sooner(engine_next_ms(s->engine), s->contents_due_ms);
    HUB_EACH(&s->bundles, hub_bundle, b)
    {
        next = sooner(next, clock_next(&b->clock, &b->object));
        next = sooner(next, record_next(s, b));
        if (b->unread && !b->reading)
            next = sooner(next, b->unread_until_ms);
        next = sooner(next, hub_access_next_ms(b));
    }
    HUB_EACH(&s->groups, hub_group, g) next = sooner(next, clock_next(&g->clock, &g->object));
    HUB_EACH(&s->repos, hub_repo, r) next = sooner(next, clock_next(&r->clock, &r->object));
    for (size_t i = s->late_from; i < s->late.len; i++)
        if (s->late.at[i]) {
            next = sooner(next, s->late.at[i]->clock.due_ms + HUB_STATUS_SLACK_MS);
            break;
        }
    for (size_t i = s->patient_from; i < s->patient.len; i++)
        if (s->patient.at[i].cluster) {
            next = sooner(next, s->patient.at[i].until_ms);
            break;
        }
    for (size_t i = 0; i < s->queue.len; i++)
        if (s->queue.at[i]->held_until_ms > s->now_ms)
            next = sooner(next, s->queue.at[i]->held_until_ms);
    return sooner(next, hub_strays_next_ms(s));
}

bool cluster_shell_is_due(const cluster_shell *s)
{
    return s->due;
}

bool cluster_shell_ready(const cluster_shell *s)
{
    return s->restored && !s->no_memory;
}

bool cluster_shell_calm(const cluster_shell *s)
{
    bool calm = s->restored && !s->due && !s->tickets && s->queue.len == 0;
    HUB_EACH(&s->bundles, hub_bundle, b)
    {
        calm = calm && hub_all_ready(b);
        if (!calm)
            return false;
    }
    return calm;
}

const engine *cluster_shell_engine(const cluster_shell *s)
{
    return s->engine;
}

hub_counts cluster_shell_count(const cluster_shell *s)
{
    return s->counts;
}

/* ---- metrics ---- */

static void put_gauge_head(buf *out, const char *name, const char *help)
{
    buf_addf(out, "# HELP fleet_bundle_%s %s\n# TYPE fleet_bundle_%s gauge\n", name, help, name);
}

static void put_gauge(buf *out, const char *name, const hub_bundle *b, int64_t value)
{
    buf_addf(out, "fleet_bundle_%s{name=\"%.*s\",namespace=\"%.*s\"} %" PRId64 "\n", name,
             STR_ARG(b->name), STR_ARG(b->space), value);
}

/* The worst state of its clusters; the one it is in is 1, each other 0. */
static bundle_state worst_state(const hub_bundle *b)
{
    bundle_state worst = BUNDLE_READY;
    for (size_t i = BUNDLE_READY; i < BUNDLE_STATE_COUNT; i++)
        if (b->all.count[i] > 0)
            worst = (bundle_state)i;
    return worst;
}

static void put_states(const cluster_shell *s, buf *out)
{
    put_gauge_head(out, "state", "1 for the state of a Bundle, 0 for each other");
    HUB_EACH(&s->bundles, hub_bundle, b)
    for (size_t i = BUNDLE_READY; b->known && i < BUNDLE_STATE_COUNT; i++)
        buf_addf(out, "fleet_bundle_state{name=\"%.*s\",namespace=\"%.*s\",state=\"%s\"} %d\n",
                 STR_ARG(b->name), STR_ARG(b->space), bundle_state_text((bundle_state)i),
                 i == (size_t)worst_state(b));
}

/* Under the names that users of Fleet know, counted as they change. */
void cluster_shell_metrics(const cluster_shell *s, buf *out)
{
    static const struct {
        const char *name;
        bundle_state state;
    } gauges[] = {{"not_ready", BUNDLE_NOT_READY},     {"wait_applied", BUNDLE_WAIT_APPLIED},
                  {"err_applied", BUNDLE_ERR_APPLIED}, {"out_of_sync", BUNDLE_OUT_OF_SYNC},
                  {"modified", BUNDLE_MODIFIED},       {"ready", BUNDLE_READY},
                  {"pending", BUNDLE_PENDING}};
    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++) {
        put_gauge_head(out, gauges[i].name, "clusters of a Bundle that are so");
        HUB_EACH(&s->bundles, hub_bundle, b)
        if (b->known)
            put_gauge(out, gauges[i].name, b, b->all.count[gauges[i].state]);
    }
    put_gauge_head(out, "desired_ready", "clusters that a Bundle is for");
    HUB_EACH(&s->bundles, hub_bundle, b)
    {
        bundle_summary all;
        hub_tally_summary(&b->all, &all);
        if (b->known)
            put_gauge(out, "desired_ready", b, all.desired_ready);
    }
    put_states(s, out);
}
