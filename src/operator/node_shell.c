/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/node_shell.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"

/* ---- small things ---- */

void shell_memory(node_shell *s)
{
    s->no_memory = true;
}

void shell_stale(node_shell *s, const char *kind, const char *name)
{
    if (!s->stale)
        log_line(LOG_WARN, "%s %s: another operator has written it", kind, name);
    s->stale = true;
}

char *shell_copy(node_shell *s, str text)
{
    char *copy = mem_alloc(text.len + 1);
    if (!copy) {
        shell_memory(s);
        return NULL;
    }
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

static void *find(const strmap *m, str name)
{
    const uint64_t *at = strmap_get(m, name);
    return at ? (void *)(uintptr_t)*at : NULL;
}

shell_node *shell_find_node(const node_shell *s, str name)
{
    return find(&s->nodes, name);
}

shell_change *shell_find_change(const node_shell *s, str name)
{
    return find(&s->changes, name);
}

/* ---- places ---- */

shell_place *shell_find_place(const node_shell *s, str change_name, str node_name)
{
    shell_node *n = shell_find_node(s, node_name);
    for (shell_place *p = n ? n->places : NULL; p; p = p->next)
        if (str_eq(str_of(p->skyhook), change_name))
            return p;
    return NULL;
}

shell_place *shell_place_of(node_shell *s, shell_node *n, str change_name)
{
    for (shell_place *p = n->places; p; p = p->next)
        if (str_eq(str_of(p->skyhook), change_name))
            return p;
    shell_change *c = shell_find_change(s, change_name);
    shell_place *p = mem_zalloc(sizeof *p);
    if (!p || !(p->skyhook = shell_copy(s, change_name)) || (c && !vec_push(&c->places, p))) {
        if (p)
            mem_free(p->skyhook);
        mem_free(p);
        shell_memory(s);
        return NULL;
    }
    p->node = n;
    p->change = c;
    p->index = c ? c->places.len - 1 : 0;
    p->want_cordon = p->sent_cordon = -1;
    p->next = n->places;
    n->places = p;
    return p;
}

str place_text(const node_shell *s, const shell_place *p, const char *prefix)
{
    char key[LIMIT_NAME_BYTES + 64];
    snprintf(key, sizeof key, "%s%s", prefix, p->skyhook);
    return engine_annotation(s->engine, str_of(p->node->name), str_of(key));
}

static void forget(shell_place **at, size_t *len, const shell_place *p)
{
    for (size_t i = 0; i < *len; i++)
        if (at[i] == p)
            at[i--] = at[--*len];
}

void shell_place_free(node_shell *s, shell_place *p)
{
    shell_place **link = &p->node->places;
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    if (p->change) {
        shell_change *c = p->change;
        shell_place *last = c->places.at[--c->places.len];
        c->places.at[last->index = p->index] = last;
        if (p->claim > c->durable_epoch)
            forget(c->waiting.at, &c->waiting.len, p);
        char *name = shell_copy(s, str_of(p->node->name));
        if (name && !vec_push(&p->change->left, name))
            mem_free(name);
        shell_release(p, RELEASE_NONE, false);
        shell_act_done(p);
        p->change->dirty = true;
    }
    if (p->looked_after)
        forget(s->runs.at, &s->runs.len, p);
    shell_fly(s, p, false);
    shell_place_unread(p);
    mem_free(p->skyhook);
    mem_free(p);
}

void shell_place_unread(shell_place *p)
{
    p->annotations = mem_free(p->annotations);
    p->labels = mem_free(p->labels);
    p->map_written = false;
}

void shell_node_free(node_shell *s, shell_node *n)
{
    while (n->places)
        shell_place_free(s, n->places);
    for (size_t i = 0; n->queued && i < s->queue.len; i++)
        if (s->queue.at[i] == n)
            s->queue.at[i--] = s->queue.at[--s->queue.len];
    mem_free(n->name);
    mem_free(n->uid);
    mem_free(n->taints);
    mem_free(n->boot);
    mem_free(n);
}

void shell_tell_kept(node_shell *s, shell_place *p, const char *why, bool passing)
{
    fact f = {.kind = FACT_KEPT,
              .kept = {.change = str_of(p->skyhook),
                       .target = str_of(p->node->name),
                       .durable = !why,
                       .why = why ? str_of(why) : STR_EMPTY,
                       .passing = passing}};
    p->hindered = why && passing;
    shell_take(s, &f);
    s->due = true;
}

void shell_release(shell_place *p, uint8_t releasing, bool stuck)
{
    bool counted = p->releasing != RELEASE_NONE && !p->stuck;
    bool counts = releasing != RELEASE_NONE && !stuck;
    p->releasing = releasing;
    p->stuck = stuck;
    if (p->change)
        p->change->releasing += (uint32_t)counts - (uint32_t)counted;
}

void shell_fly(node_shell *s, shell_place *p, bool in_flight)
{
    s->flights += (size_t)in_flight - (size_t)p->in_flight;
    p->in_flight = in_flight;
}

void shell_act_done(shell_place *p)
{
    if (p->of_act && p->change)
        p->change->acts_open--;
    p->of_act = false;
}

void shell_queue(node_shell *s, shell_node *n)
{
    if (n->queued)
        return;
    n->queued = vec_push(&s->queue, n);
    if (!n->queued)
        shell_memory(s);
}

void shell_look_after(node_shell *s, shell_place *p)
{
    if (p->looked_after)
        return;
    p->looked_after = vec_push(&s->runs, p);
    if (!p->looked_after)
        shell_memory(s);
}

/* Whether the node shows a word that a person has since made wrong: by a pause, a disable, the
 * ignore label or a taint, or by the end of one of these. Where nothing has been begun, or all was
 * complete, nothing is written for it. */
static bool shows_wrong_word(const shell_place *p, skyhook_state state)
{
    uint32_t halts = 1u << SKYHOOK_PAUSED | 1u << SKYHOOK_DISABLED | 1u << SKYHOOK_BLOCKED;
    uint32_t begun = 1u << SKYHOOK_IN_PROGRESS | 1u << SKYHOOK_ERRORING;
    uint32_t noted = 1u << p->status;
    return state != p->status && state != SKYHOOK_NONE &&
           ((halts & noted) || ((begun & noted) && (halts & 1u << state)));
}

void shell_look(node_shell *s, shell_place *p)
{
    arena_place mark = arena_mark(s->scratch);
    node_view v;
    bool known = engine_node(s->engine, str_of(p->skyhook), str_of(p->node->name), s->scratch, &v);
    shell_change *c = p->change;
    bool selected = known && v.selected;
    skyhook_state state = selected && c ? place_state(c, &v) : SKYHOOK_NONE;
    bool in_order = known && v.in_order;
    if (c && (p->state_now != state || p->selected != selected || p->in_order != in_order)) {
        p->mirror_dirty = c->dirty = true;
        if (in_order && !p->in_order && p->claim_ms == 0)
            p->claim_ms = s->now_ms;
    }
    uint8_t troubles =
        known && c && c->document ? node_troubles(c->document->object.skyhook, &v) : 0;
    if (c && p->troubles != troubles)
        c->dirty = true;
    p->troubles = troubles;
    bool left = c && p->selected && !selected;
    p->state_now = (uint8_t)state;
    p->selected = selected;
    p->in_order = in_order;
    shell_fly(s, p, selected && v.state == PLACEMENT_IN_FLIGHT);
    p->draining = selected && v.draining;
    arena_rewind(s->scratch, mark);
    /* A person took the cordon away: nobody must take the note for one that stands. */
    bool gave_up = known && c && p->cordon && !v.cordoned;
    if (s->restored && !p->cleanup && !p->sent && (gave_up || shows_wrong_word(p, state))) {
        p->dirty = true;
        shell_queue(s, p->node);
    }
    if (left)
        stale_maps_left(s, c, str_of(p->node->name));
}

void shell_look_at(node_shell *s, shell_node *n, shell_change *c)
{
    shell_place *p = shell_find_place(s, str_of(c->name), str_of(n->name));
    if (!p) {
        arena_place mark = arena_mark(s->scratch);
        node_view v;
        bool known = engine_node(s->engine, str_of(c->name), str_of(n->name), s->scratch, &v);
        arena_rewind(s->scratch, mark);
        p = known && v.selected ? shell_place_of(s, n, str_of(c->name)) : NULL;
    }
    if (p)
        shell_look(s, p);
}

/* ---- writes ---- */

static shell_ticket *ticket_free(shell_ticket *t)
{
    mem_free(t->node);
    mem_free(t->skyhook);
    mem_free(t->job);
    mem_free(t->uid);
    return mem_free(t);
}

static void answered(void *context, const write_outcome *how, yyjson_val *json)
{
    shell_ticket *t = context;
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    t->shell->due = true;
    t->done(t->shell, t, how, json);
    ticket_free(t);
}

/* Whether the server itself forbids it, as it does to an account without the right, and in a
 * namespace that goes. Webhooks and policies forbid things, too, for reasons in any words. */
static bool server_forbids(const char *message)
{
    static const char words[] = " is forbidden: ";
    static const char account[] = "User \"", space[] = "unable to create new content in namespace ";
    const char *hook = strstr(message, "admission webhook "), *why = strstr(message, words);
    if (!why || (hook && hook < why))
        return false;
    why += sizeof words - 1;
    return strncmp(why, account, sizeof account - 1) == 0
               ? strstr(why, "\" cannot ") != NULL
               : strncmp(why, space, sizeof space - 1) == 0;
}

bool shell_is_refused(const write_outcome *how)
{
    if (how->kind != WRITE_REFUSED || how->status == 401 || how->status == 404)
        return false;
    return how->status != 403 || !server_forbids(how->message);
}

bool shell_send(node_shell *s, const kube_write *w, shell_ticket ticket)
{
    err error;
    shell_ticket *t = mem_zalloc(sizeof *t);
    if (!t) {
        shell_memory(s);
        return false;
    }
    *t = ticket;
    t->shell = s;
    t->node = ticket.node ? shell_copy(s, str_of(ticket.node)) : NULL;
    t->skyhook = ticket.skyhook ? shell_copy(s, str_of(ticket.skyhook)) : NULL;
    t->job = ticket.job ? shell_copy(s, str_of(ticket.job)) : NULL;
    t->uid = ticket.uid ? shell_copy(s, str_of(ticket.uid)) : NULL;
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

/* ---- making ---- */

node_shell *node_shell_new(const shell_settings *settings, api of, err *error)
{
    node_shell *s = mem_zalloc(sizeof *s);
    if (!s) {
        err_memory(error);
        return NULL;
    }
    s->settings = *settings;
    s->settings.engine.ends_are_told = s->settings.engine.drains_are_told = true;
    if (s->settings.status_every_ms == 0)
        s->settings.status_every_ms = SHELL_STATUS_EVERY_MS;
    if (s->settings.unpullable_ms == 0)
        s->settings.unpullable_ms = STAGE_STUCK_MS;
    s->api = of;
    s->scratch = arena_new(0);
    s->engine = engine_new(&s->settings.engine, error);
    if (s->scratch && s->engine)
        return s;
    err_memory(error);
    return node_shell_free(s);
}

node_shell *node_shell_free(node_shell *s)
{
    if (!s)
        return NULL;
    s->engine = engine_free(s->engine);
    while (s->tickets) {
        shell_ticket *t = s->tickets;
        s->tickets = t->next;
        ticket_free(t);
    }
    for (size_t i = 0; i < s->nodes.len; i++)
        shell_node_free(s, (shell_node *)(uintptr_t)s->nodes.entries[i].value);
    for (size_t i = 0; i < s->changes.len; i++)
        change_free_shown(s, (shell_change *)(uintptr_t)s->changes.entries[i].value);
    for (size_t i = 0; i < s->policies.len; i++)
        shell_document_free((shell_document *)(uintptr_t)s->policies.entries[i].value);
    jobs_done(s);
    drains_done(s);
    strmap_done(&s->nodes);
    strmap_done(&s->changes);
    strmap_done(&s->policies);
    vec_done(&s->queue);
    vec_done(&s->runs);
    vec_done(&s->decisions);
    arena_free(s->scratch);
    return mem_free(s);
}

/* ---- what comes in ---- */

static void clock_to(node_shell *s, int64_t now_ms)
{
    if (now_ms > s->now_ms)
        s->now_ms = now_ms;
}

bool node_shell_seen(node_shell *s, shell_kind kind, yyjson_val *json, int64_t now_ms)
{
    clock_to(s, now_ms);
    switch (kind) {
    case SHELL_NODE: nodes_seen(s, json); break;
    case SHELL_POLICY: policies_seen(s, json); break;
    case SHELL_SKYHOOK: changes_seen(s, json); break;
    case SHELL_JOB: jobs_seen(s, json); break;
    case SHELL_POD: pods_seen(s, json); break;
    }
    return !s->no_memory;
}

void node_shell_gone(node_shell *s, shell_kind kind, str space, str name, int64_t now_ms)
{
    (void)space;
    clock_to(s, now_ms);
    switch (kind) {
    case SHELL_NODE: nodes_gone(s, name); break;
    case SHELL_POLICY: policies_gone(s, name); break;
    case SHELL_SKYHOOK: changes_gone(s, name); break;
    case SHELL_JOB: jobs_gone(s, name); break;
    case SHELL_POD: pods_gone(s, name); break;
    }
}

void node_shell_synced(node_shell *s, shell_kind kind)
{
    s->due |= !s->synced[kind];
    s->synced[kind] = true;
}

bool node_shell_pod_seen(node_shell *s, str node_name, yyjson_val *json, int64_t now_ms)
{
    clock_to(s, now_ms);
    drains_seen(s, node_name, json);
    return !s->no_memory;
}

void node_shell_pod_gone(node_shell *s, str node_name, str space, str name, int64_t now_ms)
{
    clock_to(s, now_ms);
    drains_gone(s, node_name, space, name);
}

void node_shell_pods_synced(node_shell *s, str node_name)
{
    drains_synced(s, node_name);
}

/* ---- decisions ---- */

static void started(node_shell *s, shell_place *p)
{
    shell_change *c = p->change;
    p->claim = c->epoch + 1;
    p->claim_ms = s->now_ms;
    shell_place_unread(p);
    shell_release(p, RELEASE_NONE, p->stuck); /* whatever is written now says more than the end */
    c->urgent = c->dirty = true;
    if (!vec_push(&c->waiting, p))
        shell_memory(s);
}

static void released(shell_place *p)
{
    shell_place_unread(p);
    shell_release(p, RELEASE_WAITS, p->stuck);
    p->change->dirty = true;
}

/* What runs last is shown by a condition. */
static void note_applying(node_shell *s, shell_change *c, const decision *d)
{
    char text[3 * LIMIT_NAME_BYTES];
    snprintf(text, sizeof text, "Applying package [%.*s:%.*s] to node [%.*s]", STR_ARG(d->package),
             STR_ARG(d->version), STR_ARG(d->target));
    mem_free(c->applying);
    c->applying = shell_copy(s, str_of(text));
}

static void carry_out_placed(node_shell *s, const decision *d)
{
    shell_node *n = shell_find_node(s, d->target);
    shell_place *p = n ? shell_place_of(s, n, d->change) : NULL;
    if (!p || !p->change)
        return; /* gone in the meantime */
    switch ((int)d->kind) {
    case DECISION_START: started(s, p); break;
    case DECISION_RELEASE: released(p); break;
    case DECISION_CORDON: p->want_cordon = 1; break;
    case DECISION_UNCORDON: p->want_cordon = 0; break;
    default: break;
    }
    p->dirty = true;
    shell_queue(s, n);
    shell_look(s, p);
    if (d->kind == DECISION_RUN || d->kind == DECISION_DRAIN)
        shell_look_after(s, p);
    if (d->kind == DECISION_DRAIN)
        drain_anew(s, d->target);
    if (d->kind == DECISION_RUN)
        note_applying(s, p->change, d);
}

static void carry_out_taint(node_shell *s, const decision *d)
{
    shell_node *n = shell_find_node(s, d->target);
    if (!n)
        return;
    n->want_taint = d->kind == DECISION_TAINT;
    n->want_untaint = !n->want_taint;
    shell_queue(s, n);
}

static void carry_out(node_shell *s, const decision *d)
{
    shell_change *c = shell_find_change(s, d->change);
    switch (d->kind) {
    case DECISION_START:
    case DECISION_RELEASE:
    case DECISION_CORDON:
    case DECISION_UNCORDON:
    case DECISION_DRAIN:
    case DECISION_RUN:
    case DECISION_RECORD: carry_out_placed(s, d); break;
    case DECISION_TAINT:
    case DECISION_UNTAINT: carry_out_taint(s, d); break;
    case DECISION_BATCH:
    case DECISION_JUDGE:
    case DECISION_HALT:
    case DECISION_RESET:
        if (c)
            c->dirty = true;
        break;
    case DECISION_FINALIZE:
        if (c)
            c->finalize = true;
        break;
    case DECISION_DEPLOY:
    case DECISION_PASS:
    case DECISION_JOB:
    case DECISION_GROUP:
    case DECISION_SLOT:
    case DECISION_REAPPLY:     /* of which each entry is a RECORD */
    case DECISION_WAKE: break; /* of the other vocabularies, or by node_shell_next_ms */
    }
}

/* Returns whether anything was started: the engine is then to be asked again. */
static bool hear(node_shell *s)
{
    bool started_any = false;
    for (size_t i = 0; i < s->decisions.len; i++) {
        started_any |= s->decisions.at[i].kind == DECISION_START;
        carry_out(s, &s->decisions.at[i]);
        events_decided(s, &s->decisions.at[i]);
    }
    return started_any;
}

/* Decisions that a fact leads to at once are heard; before everything is known none is made. */
bool shell_take(node_shell *s, const fact *f)
{
    if (s->no_memory)
        return false;
    s->decisions.len = 0;
    bool good = s->restored ? engine_step(s->engine, f, 1, s->now_ms, &s->decisions)
                            : engine_take(s->engine, f, 1, s->now_ms);
    if (!good)
        shell_memory(s);
    hear(s);
    s->due |= s->decisions.len > 0;
    return good;
}

/* ---- the turn ---- */

static bool begin(node_shell *s)
{
    err error;
    if (!s->synced[SHELL_NODE] || !s->synced[SHELL_POLICY] || !s->synced[SHELL_SKYHOOK])
        return false;
    if (!s->restored && !older_maps_read(s))
        return false;
    if (!s->restored && !shell_restore(s, &error)) {
        log_line(LOG_ERROR, "what the objects remember cannot be restored: %s", error.text);
        shell_memory(s);
        return false;
    }
    if (!s->restored) {
        s->restored = true;
        nodes_begin(s);
    }
    return s->synced[SHELL_JOB] && s->synced[SHELL_POD];
}

static void decide(node_shell *s)
{
    bool again = true;
    while (again && !s->no_memory) {
        s->decisions.len = 0;
        if (!engine_step(s->engine, NULL, 0, s->now_ms, &s->decisions)) {
            shell_memory(s);
            return;
        }
        again = hear(s);
    }
}

static void write_nodes(node_shell *s)
{
    size_t kept = 0;
    s->taints_first = taints_are_open(s);
    for (size_t i = 0; i < s->queue.len; i++) {
        shell_node *n = s->queue.at[i];
        n->queued = false; /* what is decided meanwhile puts it behind the others again */
        if (node_write(s, n) || n->queued)
            continue;
        n->queued = true;
        s->queue.at[kept++] = n;
    }
    s->queue.len = kept;
}

/* What is decided meanwhile comes behind those that wait. */
static void run_jobs(node_shell *s)
{
    size_t count = s->runs.len;
    for (size_t i = 0; i < count; i++) {
        shell_place *p = s->runs.at[i];
        s->runs.at[i] = NULL;
        p->looked_after = false;
        if (!jobs_run(s, p))
            shell_look_after(s, p);
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->runs.len; i++)
        if (s->runs.at[i])
            s->runs.at[kept++] = s->runs.at[i];
    s->runs.len = kept;
}

static void change_step(node_shell *s, shell_change *c)
{
    changes_finalizer(s, c);
    if (c->finalize)
        deletion_step(s, c);
    else
        status_write(s, c);
    package_maps_look(s, c);
    stale_maps_look(s, c);
}

bool node_shell_turn(node_shell *s, int64_t now_ms)
{
    clock_to(s, now_ms);
    s->due = s->wished = s->asks_pods = false;
    s->drains_wait = 0;
    if (s->stale || s->no_memory || !begin(s))
        return !s->no_memory;
    jobs_due(s);
    pods_due(s);
    for (size_t i = 0; i < s->changes.len; i++)
        acts_take(s, (shell_change *)(uintptr_t)s->changes.entries[i].value);
    decide(s);
    if (!s->begun) /* what needs no decision, as nodes that are done, is known by now, too */
        shell_look_around(s);
    s->begun = true;
    write_nodes(s);
    for (size_t i = 0; i < s->changes.len; i++) {
        shell_change *c = (shell_change *)(uintptr_t)s->changes.entries[i].value;
        change_step(s, c);
        acts_remove(s, c);
    }
    run_jobs(s);
    drains_step(s);
    pods_end(s);
    return !s->no_memory;
}

/* When something that is held may be tried again. */
static int64_t held_until(const node_shell *s, int64_t until_ms)
{
    return until_ms > s->now_ms ? until_ms : REASON_NEVER;
}

int64_t node_shell_next_ms(const node_shell *s)
{
    if (s->stale)
        return REASON_NEVER;
    if (!s->restored)
        return s->due ? s->now_ms : older_next_ms(s);
    int64_t next = shell_sooner(engine_next_ms(s->engine), jobs_next_ms(s));
    next = shell_sooner(next, pods_next_ms(s));
    next = shell_sooner(next, drains_next_ms(s));
    for (size_t i = 0; i < s->changes.len; i++) {
        const shell_change *c = (const shell_change *)(uintptr_t)s->changes.entries[i].value;
        bool waits = conflict_stands(&c->conflict, c->revision);
        next = shell_sooner(next, conflict_next_ms(s, &c->conflict, c->revision));
        if (c->dirty && !c->sending && !c->releasing && c->known && !c->wants_finalizer &&
            !c->finalize && !waits)
            next = shell_sooner(next, c->held_until_ms > s->now_ms ? c->held_until_ms
                                                                   : c->next_status_ms);
    }
    for (size_t i = 0; i < s->changes.len; i++) {
        const shell_change *c = (const shell_change *)(uintptr_t)s->changes.entries[i].value;
        next = shell_sooner(next, held_until(s, c->finalizer_held_until_ms));
        next = shell_sooner(next, held_until(s, c->acts_held_until_ms));
        next = shell_sooner(next, held_until(s, c->maps_look_ms));
    }
    for (size_t i = 0; i < s->queue.len; i++) {
        next = shell_sooner(next, held_until(s, s->queue.at[i]->held_until_ms));
        next = shell_sooner(next, held_until(s, s->queue.at[i]->settles_until_ms));
        next = shell_sooner(
            next, conflict_next_ms(s, &s->queue.at[i]->conflict, s->queue.at[i]->revision));
    }
    for (size_t i = 0; i < s->runs.len; i++) {
        const shell_place *p = s->runs.at[i];
        next = shell_sooner(next, held_until(s, p->held_until_ms));
        if (p->change)
            next = shell_sooner(next, held_until(s, p->change->maps_held_until_ms));
    }
    return s->due ? s->now_ms : next;
}

/* The answers to its own writes tell the shell of a node, and so do Jobs; its watch is waited for
 * when somebody else's write comes first. */
static bool waits_for_node(const shell_node *n)
{
    return n->conflict.with != 0 || n->settles_until_ms != 0;
}

bool node_shell_waits_for(const node_shell *s, shell_kind kind)
{
    bool waits = kind != SHELL_POD && kind != SHELL_NODE;
    for (size_t i = 0; kind == SHELL_NODE && !waits && i < s->queue.len; i++)
        waits = waits_for_node(s->queue.at[i]);
    for (size_t i = 0; kind == SHELL_POD && !waits && i < s->runs.len; i++)
        waits = s->runs.at[i]->hindered;
    return waits || (kind == SHELL_POD && s->asks_pods);
}

int node_shell_rest_ms(const node_shell *s)
{
    return s->flights < SHELL_REST_FLIGHTS || s->due ? 0 : SHELL_REST_MS;
}

bool node_shell_wants_news(const node_shell *s)
{
    return s->due && s->wished && !s->stale;
}

bool node_shell_is_due(const node_shell *s)
{
    return s->due && !s->stale;
}

bool node_shell_stale(const node_shell *s)
{
    return s->stale;
}

void node_shell_set_back(node_shell *s)
{
    if (!s->stale)
        log_line(LOG_WARN, "the API server was set back to an older state");
    s->stale = true;
}

bool node_shell_restored(const node_shell *s)
{
    return s->restored;
}

bool node_shell_ready(const node_shell *s)
{
    return s->restored && s->synced[SHELL_JOB] && s->synced[SHELL_POD] && !s->no_memory;
}

const engine *node_shell_engine(const node_shell *s)
{
    return s->engine;
}

shell_counts node_shell_count(const node_shell *s)
{
    return s->counts;
}
