/* SPDX-License-Identifier: Apache-2.0 */
/* Drains: pods of a node that is cordoned are evicted, and waited for until they are gone.
 *
 * Only while a node drains are its pods of interest: they are followed for that time. An eviction
 * that a PodDisruptionBudget refuses is tried again for that pod alone. Nothing is evicted before
 * the cordon is durable, nor while a pod that must not be interrupted runs. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"

#define RETRY_MS 5000

/* A pod on the node that is to go, or that must have ended before. */
typedef struct drain_pod {
    char *space, *name, *uid;
    char *labels; /* JSON; NULL: none */
    bool runs;    /* it has not ended */
    bool must_go;
    bool holds;   /* of podNonInterruptLabels: it ends by itself */
    bool leaving; /* it is being deleted */
    bool sending;
    int64_t retry_ms;
    char budget[LIMIT_NAME_BYTES + 1]; /* that refused last; empty: none */
} drain_pod;

struct shell_drain {
    char *node;
    strmap pods;     /* "namespace/name" -> drain_pod *; the keys are the pods' own */
    uint64_t wishes; /* by which it was judged who of them holds */
    int64_t begun_ms;
    bool synced;
    bool rests; /* nothing of it is on its way */
};

static void pod_free(drain_pod *p)
{
    mem_free(p->space);
    mem_free(p->name);
    mem_free(p->uid);
    mem_free(p->labels);
    mem_free(p);
}

static shell_drain *drain_of(const node_shell *s, str node_name)
{
    const uint64_t *at = strmap_get(&s->drains, node_name);
    return at ? (shell_drain *)(uintptr_t)*at : NULL;
}

static void drain_free(shell_drain *d)
{
    for (size_t i = 0; i < d->pods.len; i++) {
        pod_free((drain_pod *)(uintptr_t)d->pods.entries[i].value);
        mem_free((char *)(uintptr_t)d->pods.entries[i].key.ptr);
    }
    strmap_done(&d->pods);
    mem_free(d->node);
    mem_free(d);
}

void drains_done(node_shell *s)
{
    for (size_t i = 0; i < s->drains.len; i++)
        drain_free((shell_drain *)(uintptr_t)s->drains.entries[i].value);
    strmap_done(&s->drains);
}

/* ---- which pods ---- */

/* Who drains the node, and what their documents say, in one number. */
static uint64_t wishes_of(const shell_node *n)
{
    uint64_t wishes = 0;
    for (const shell_place *p = n->places; p; p = p->next)
        if (p->draining && p->change && p->change->known)
            wishes += p->change->digest ^ str_hash(str_of(p->skyhook));
    return wishes;
}

/* Whether a Skyhook that drains the node lets the pod end by itself. */
static bool holds(node_shell *s, const shell_node *n, const drain_pod *of)
{
    bool found = false;
    arena_place mark = arena_mark(s->scratch);
    yyjson_val *json = json_parse(s->scratch, shell_text(of->labels), NULL);
    label_set labels = read_labels(s->scratch, json, STR_EMPTY);
    for (const shell_place *p = n->places; of->runs && p; p = p->next) {
        if (!p->draining || !p->change || !p->change->known)
            continue;
        const label_query *q = &p->change->document->object.skyhook->spec.pod_non_interrupt_labels;
        found |= q->compiled && q->len > 0 && selector_match(q->compiled, labels);
    }
    arena_rewind(s->scratch, mark);
    return found;
}

/* Their wishes may change in the middle, and so may who drains the node. */
static void judge_holds(node_shell *s, const shell_node *n, shell_drain *d)
{
    uint64_t wishes = wishes_of(n);
    if (d->wishes == wishes)
        return;
    d->wishes = wishes;
    for (size_t i = 0; i < d->pods.len; i++) {
        drain_pod *p = (drain_pod *)(uintptr_t)d->pods.entries[i].value;
        p->holds = holds(s, n, p);
    }
}

static char *labels_of(node_shell *s, yyjson_val *json)
{
    buf text = BUF(SHELL_TEXT_BYTES);
    yyjson_val *map = read_at(json, "metadata", "labels");
    if (!map)
        return NULL;
    json_write(&text, map);
    char *labels = text.failed ? NULL : shell_copy(s, buf_str(&text));
    if (!labels)
        shell_memory(s);
    buf_done(&text);
    return labels;
}

/* Since when the node is drained; 0: it is not yet. */
static int64_t since_of(node_shell *s, const shell_node *n)
{
    int64_t since_ms = 0;
    arena_place mark = arena_mark(s->scratch);
    node_view v;
    for (const shell_place *p = n->places; p; p = p->next)
        if (p->draining &&
            engine_node(s->engine, str_of(p->skyhook), str_of(n->name), s->scratch, &v) &&
            v.drain_since_ms > 0 && (since_ms == 0 || v.drain_since_ms < since_ms))
            since_ms = v.drain_since_ms;
    arena_rewind(s->scratch, mark);
    return since_ms;
}

/* ---- what is seen ---- */

void drains_seen(node_shell *s, str node_name, yyjson_val *json)
{
    shell_drain *d = drain_of(s, node_name);
    const shell_node *n = shell_find_node(s, node_name);
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    char text[2 * LIMIT_NAME_BYTES + 2];
    if (!d || !n)
        return;
    snprintf(text, sizeof text, "%.*s/%.*s", STR_ARG(read_text(m, "namespace")),
             STR_ARG(read_text(m, "name")));
    uint64_t *at = strmap_get(&d->pods, str_of(text));
    drain_pod *p = at ? (drain_pod *)(uintptr_t)*at : mem_zalloc(sizeof *p);
    if (!p) {
        shell_memory(s);
        return;
    }
    if (!at) {
        char *key = shell_copy(s, str_of(text));
        p->space = shell_copy(s, read_text(m, "namespace"));
        p->name = shell_copy(s, read_text(m, "name"));
        if (!key || !strmap_put(&d->pods, str_of(key), (uint64_t)(uintptr_t)p)) {
            shell_memory(s);
            mem_free(key);
            pod_free(p);
            return;
        }
    }
    mem_free(p->uid);
    mem_free(p->labels);
    p->uid = shell_copy(s, read_text(m, "uid"));
    p->labels = labels_of(s, json);
    drain_pod_view view = read_drain_pod(json);
    p->runs = drain_runs(&view);
    p->must_go = drain_takes(&view, view.tolerates == TOLERATES_ANY ? since_of(s, n) : 0);
    p->holds = holds(s, n, p);
    p->leaving = yyjson_obj_get(m, "deletionTimestamp");
    s->due = true;
}

void drains_gone(node_shell *s, str node_name, str space, str name)
{
    shell_drain *d = drain_of(s, node_name);
    char text[2 * LIMIT_NAME_BYTES + 2];
    snprintf(text, sizeof text, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    uint64_t *at = d ? strmap_get(&d->pods, str_of(text)) : NULL;
    if (!at)
        return;
    drain_pod *p = (drain_pod *)(uintptr_t)*at;
    const char *key = NULL;
    for (size_t i = 0; i < d->pods.len; i++)
        if (d->pods.entries[i].value == *at)
            key = d->pods.entries[i].key.ptr;
    strmap_remove(&d->pods, str_of(text));
    mem_free((char *)(uintptr_t)key);
    pod_free(p);
    s->due = true;
}

void drains_synced(node_shell *s, str node_name)
{
    shell_drain *d = drain_of(s, node_name);
    if (!d)
        return;
    d->synced = true;
    s->due = true;
}

/* ---- evictions ---- */

static void evicted(node_shell *s, const shell_ticket *t, const write_outcome *how,
                    yyjson_val *json)
{
    (void)json;
    shell_drain *d = drain_of(s, str_of(t->node));
    uint64_t *at = d ? strmap_get(&d->pods, str_of(t->job)) : NULL;
    if (!at)
        return;
    drain_pod *p = (drain_pod *)(uintptr_t)*at;
    p->sending = false;
    p->budget[0] = '\0';
    if (how->kind == WRITE_DONE) {
        p->leaving = true;
        return;
    }
    p->retry_ms = s->now_ms + RETRY_MS;
    if (how->kind == WRITE_BLOCKED)
        snprintf(p->budget, sizeof p->budget, "%s",
                 how->budget[0] != '\0' ? how->budget : BUDGETS_SEVERAL.ptr);
    else if (how->kind != WRITE_GONE && how->kind != WRITE_CONFLICT)
        log_line(LOG_WARN, "eviction of %s: %s", t->job, how->message);
}

static void evict(node_shell *s, const shell_drain *d, drain_pod *p)
{
    char collection[LIMIT_NAME_BYTES + 64], key[2 * LIMIT_NAME_BYTES + 2];
    if (p->sending || p->leaving || p->retry_ms > s->now_ms)
        return;
    snprintf(collection, sizeof collection, "/api/v1/namespaces/%s/pods", p->space);
    snprintf(key, sizeof key, "%s/%s", p->space, p->name);
    kube_write w = {.verb = WRITE_EVICT,
                    .collection = str_of(collection),
                    .name = str_of(p->name),
                    .uid = str_of(p->uid)};
    p->sending = shell_send(s, &w, (shell_ticket){.done = evicted, .node = d->node, .job = key});
    s->counts.evictions += p->sending;
}

/* ---- what the engine is told ---- */

/* The pod that people are told of as the one that blocks; NULL: none does. */
static const drain_pod *blocking(const shell_drain *d)
{
    const drain_pod *found = NULL;
    drain_wait best = {0};
    for (size_t i = 0; i < d->pods.len; i++) {
        const drain_pod *p = (const drain_pod *)(uintptr_t)d->pods.entries[i].value;
        drain_wait one = {.space = shell_text(p->space),
                          .name = shell_text(p->name),
                          .holds = p->holds,
                          .refused = p->budget[0] != '\0'};
        if (!(p->holds || p->must_go) || (found && !drain_tells(&one, &best)))
            continue;
        found = p;
        best = one;
    }
    return found;
}

/* Once: it is the same pod, and nothing has become of it. */
static void tell_long(node_shell *s, shell_node *n, const drain_pod *why, const char *pod_text)
{
    if (!why || n->drain_long_ms == REASON_NEVER || n->drain_long_ms > s->now_ms)
        return;
    n->drain_long_ms = REASON_NEVER;
    events_drain_long(s, str_of(n->name), pod_text,
                      why->holds     ? "podNonInterruptLabels lets it end by itself"
                      : why->leaving ? "it was told to end, and has not"
                                     : "it could not be evicted");
}

static void tell(node_shell *s, shell_node *n, const drain_pod *why)
{
    char pod_text[2 * LIMIT_NAME_BYTES + 2] = "";
    if (why)
        snprintf(pod_text, sizeof pod_text, "%s/%s", why->space, why->name);
    uint64_t digest = str_hash(str_of(pod_text)) ^ (why ? str_hash(str_of(why->budget)) * 3 : 1);
    if (n->drain_told == digest) {
        tell_long(s, n, why, pod_text);
        return;
    }
    n->drain_told = digest;
    bool waits = why && why->budget[0] == '\0';
    n->drain_long_ms = waits ? s->now_ms + SHELL_DRAIN_LONG_MS : REASON_NEVER;
    fact f = {.kind = FACT_DRAIN,
              .drain = {.target = str_of(n->name),
                        .done = !why,
                        .blocking_pod = str_of(pod_text),
                        .blocking_budget = why ? str_of(why->budget) : STR_EMPTY}};
    shell_take(s, &f);
    if (why && why->budget[0] != '\0')
        events_drain_blocked(s, str_of(n->name), pod_text, why->budget);
    s->due = true;
}

/* The cordon stands on the node, and nothing that was decided of it is still on its way: a person
 * may have uncordoned it in the middle. */
static bool is_cordoned(const shell_node *n)
{
    bool durable = n->unschedulable;
    for (const shell_place *p = n->places; p; p = p->next)
        durable &= !p->draining || (!p->dirty && !p->sent);
    return durable;
}

/* What is in the way is told when all evictions are answered: nobody knows it sooner. */
static void drain_go_on(node_shell *s, shell_node *n, shell_drain *d)
{
    bool sends = false;
    if (!d->synced)
        return;
    judge_holds(s, n, d);
    const drain_pod *why = blocking(d);
    bool may_evict = !(why && why->holds) && is_cordoned(n);
    for (size_t i = 0; i < d->pods.len; i++) {
        drain_pod *p = (drain_pod *)(uintptr_t)d->pods.entries[i].value;
        if (may_evict && p->must_go)
            evict(s, d, p);
        sends |= p->sending;
    }
    d->rests = !sends;
    if (!sends)
        tell(s, n, why);
}

/* ---- beginning and ending ---- */

static void drain_end(node_shell *s, shell_drain *d)
{
    s->api.follow_pods(s->api.context, str_of(d->node), false);
    strmap_remove(&s->drains, str_of(d->node));
    drain_free(d);
    s->due |= s->drains_wait > 0;
}

void drain_anew(node_shell *s, str node_name)
{
    shell_node *n = shell_find_node(s, node_name);
    if (n)
        n->drain_told = 0;
}

void drain_tell_begun(node_shell *s, shell_node *n)
{
    fact f = {.kind = FACT_DRAIN, .drain = {.target = str_of(n->name), .begun = true}};
    shell_take(s, &f);
    for (shell_place *p = n->places; p; p = p->next) {
        if (!p->draining || !p->change || !p->change->known ||
            !p->change->document->object.skyhook->spec.drain_timeout.set)
            continue;
        p->dirty = true;
        shell_queue(s, n);
    }
    s->due = true;
}

bool drain_begin(node_shell *s, shell_node *n)
{
    if (drain_of(s, str_of(n->name)))
        return true;
    if (s->drains.len >= SHELL_DRAINS_MAX) {
        s->drains_wait++;
        return false;
    }
    shell_drain *d = mem_zalloc(sizeof *d);
    if (d)
        d->node = shell_copy(s, str_of(n->name));
    if (!d || !d->node || !strmap_put(&s->drains, str_of(d->node), (uint64_t)(uintptr_t)d)) {
        if (d)
            mem_free(d->node);
        mem_free(d);
        shell_memory(s);
        return false;
    }
    d->begun_ms = s->now_ms;
    s->api.follow_pods(s->api.context, str_of(n->name), true);
    return true;
}

static int64_t turn_ends_ms(const shell_drain *d)
{
    return d->synced && d->rests ? d->begun_ms + SHELL_DRAIN_TURN_MS : REASON_NEVER;
}

/* It comes back behind those that wait for their turn now. */
static void give_turn(node_shell *s, const shell_node *n, shell_drain *d)
{
    for (shell_place *p = n->places; p; p = p->next)
        if (p->draining)
            shell_look_after(s, p);
    drain_end(s, d);
    s->drains_wait--;
}

void drains_step(node_shell *s)
{
    for (size_t i = s->drains.len; i-- > 0;) {
        shell_drain *d = (shell_drain *)(uintptr_t)s->drains.entries[i].value;
        shell_node *n = shell_find_node(s, str_of(d->node));
        bool wanted = false;
        for (shell_place *p = n ? n->places : NULL; p; p = p->next) {
            shell_look(s, p); /* a pause ends evictions without a word */
            wanted |= p->draining;
        }
        if (!wanted) {
            drain_end(s, d);
            continue;
        }
        drain_go_on(s, n, d);
        int64_t ends_ms = turn_ends_ms(d);
        if (s->drains_wait > 0 && ends_ms != REASON_NEVER && ends_ms <= s->now_ms)
            give_turn(s, n, d);
    }
}

int64_t drains_next_ms(const node_shell *s)
{
    int64_t next = REASON_NEVER;
    for (size_t i = 0; i < s->drains.len; i++) {
        const shell_drain *d = (const shell_drain *)(uintptr_t)s->drains.entries[i].value;
        const shell_node *n = shell_find_node(s, str_of(d->node));
        if (n && d->synced && d->rests)
            next = shell_sooner(next, n->drain_long_ms);
        if (s->drains_wait > 0)
            next = shell_sooner(next, turn_ends_ms(d));
        for (size_t k = 0; k < d->pods.len; k++) {
            const drain_pod *p = (const drain_pod *)(uintptr_t)d->pods.entries[k].value;
            if (p->must_go && !p->leaving && !p->sending && p->retry_ms > s->now_ms)
                next = shell_sooner(next, p->retry_ms);
        }
    }
    return next;
}
