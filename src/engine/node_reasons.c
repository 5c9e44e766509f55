/* SPDX-License-Identifier: Apache-2.0 */
/* Why a Skyhook is not done on a node. */
#include <stdlib.h>

#include "engine/node_gate.h"
#include "engine/nodes_internal.h"
#include "engine/pod_rules.h"

typedef struct teller {
    const nodes *self;
    const node_placement *p;
    arena *a;
    reasons *out;
    bool failed;
    reason nowhere; /* what could not be added */
} teller;

static const str *one_name(teller *t, str name)
{
    str *at = ARENA_ARRAY(t->a, 1, str);
    t->failed |= !at;
    if (at)
        *at = name;
    return at;
}

/* Adds a reason that is released by doing something to one thing. */
static reason *add(teller *t, reason_rule kind, release_act act, str of)
{
    reason r = {.rule = kind, .act = act, .next_ms = REASON_NEVER, .detail = of};
    r.scope = STR_EMPTY;
    r.of = one_name(t, of);
    r.of_count = 1;
    if (t->failed || !reasons_add(t->out, t->a, r)) {
        t->failed = true;
        t->nowhere = r;
        return &t->nowhere;
    }
    return &t->out->at[t->out->len - 1];
}

static str scoped_to(teller *t, const char *what, str name)
{
    str text = arena_printf(t->a, "%s %.*s", what, STR_ARG(name));
    t->failed |= !text.ptr;
    return text.ptr ? text : STR_EMPTY;
}

static str change_name(const teller *t, const change *c)
{
    return names_text(t->self->core->names, c->name);
}

/* ---- gates ---- */

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* Everybody that keeps a Skyhook with sequencing "all" from being complete. */
static void all_not_done(teller *t, const change *o, reason *r)
{
    str *at = ARENA_ARRAY(t->a, (size_t)o->not_done + 1, str);
    size_t count = 0;
    if (!at) {
        t->failed = true;
        return;
    }
    for (size_t i = 0; i < o->members.len; i++) {
        if (o->members.at[i] == NOBODY)
            continue;
        const node_placement *q = &t->self->placements.at[o->members.at[i]];
        if (!q->done && count < (size_t)o->not_done)
            at[count++] = target_name(t->self, q->target);
    }
    qsort(at, count, sizeof *at, by_text);
    r->holders = at;
    r->holder_count = count;
}

static void tell_priority(teller *t)
{
    for (size_t i = 0; i < t->self->changes.len; i++) {
        const change *o = t->self->changes.at[i];
        if (!change_precedes(t->self, o, t->p))
            continue;
        reason *r = add(t, REASON_PRIORITY, RELEASE_COMPLETE, change_name(t, o));
        r->scope = scoped_to(t, "skyhook", change_name(t, o));
        if (o->sequencing == SEQUENCING_ALL) {
            all_not_done(t, o, r);
        } else {
            r->holders = one_name(t, target_name(t->self, t->p->target));
            r->holder_count = 1;
        }
    }
}

static void tell_busy(teller *t)
{
    uint32_t i = t->self->targets.at[t->p->target].first;
    for (; i != NOBODY; i = t->self->placements.at[i].next) {
        const node_placement *q = &t->self->placements.at[i];
        if (!placement_busies(q, t->p))
            continue;
        reason *r = add(t, REASON_BUSY, RELEASE_COMPLETE, change_name(t, q->change));
        r->scope = scoped_to(t, "skyhook", change_name(t, q->change));
        r->holders = one_name(t, target_name(t->self, t->p->target));
        r->holder_count = 1;
    }
}

static void tell_taints(teller *t)
{
    const node_target *target = &t->self->targets.at[t->p->target];
    for (size_t i = 0; i < target->taint_count; i++) {
        node_target alone = *target;
        alone.taints = &target->taints[i];
        alone.taint_count = 1;
        if (!node_untolerated_of(t->self, t->p->change, &alone, false))
            continue;
        const fact_taint *one = &target->taints[i];
        str text = one->value.len > 0
                       ? arena_printf(t->a, "%.*s=%.*s:%.*s", STR_ARG(one->key),
                                      STR_ARG(one->value), STR_ARG(one->effect))
                       : arena_printf(t->a, "%.*s:%.*s", STR_ARG(one->key), STR_ARG(one->effect));
        t->failed |= !text.ptr;
        reason *r = add(t, REASON_TAINT, RELEASE_UNTAINT, text.ptr ? text : STR_EMPTY);
        r->scope = scoped_to(t, "node", target_name(t->self, t->p->target));
    }
}

/* Packages whose dependencies cannot be met as the Skyhook stands. */
static void tell_stuck(teller *t)
{
    const package_rules *r = &t->p->change->rules;
    for (uint16_t i = 0; i < r->len; i++) {
        if (package_complete(r, &t->p->entries, i))
            continue;
        label_set needs = r->at[i].spec->depends_on;
        for (uint16_t k = 0; k < r->at[i].need_count; k++) {
            uint16_t need = r->at[i].needs[k];
            bool there = need != PACKAGE_NO_RULE && !r->at[need].uninstall &&
                         package_complete(r, &t->p->entries, need);
            if (there)
                continue;
            str text = arena_printf(t->a, "%.*s|%.*s", STR_ARG(needs.at[k].key),
                                    STR_ARG(needs.at[k].value));
            t->failed |= !text.ptr;
            reason *one = add(t, REASON_DEPENDENCY, RELEASE_EDIT, change_name(t, t->p->change));
            one->scope = scoped_to(t, "package", r->at[i].spec->name);
            one->detail = text.ptr ? text : STR_EMPTY;
        }
    }
}

static void tell_gates(teller *t, unsigned gates)
{
    str node_name = target_name(t->self, t->p->target);
    str scope = scoped_to(t, "node", node_name);
    if (gates & GATE_IGNORED)
        add(t, REASON_IGNORED, RELEASE_LABEL, node_name)->scope = scope;
    if (gates & GATE_TAINT)
        tell_taints(t);
    if (gates & GATE_NOT_READY)
        add(t, REASON_NOT_READY, RELEASE_ONLINE, node_name)->scope = scope;
    if (gates & GATE_MALFORMED)
        add(t, REASON_MALFORMED, RELEASE_RESET, node_name)->scope = scope;
    if (gates & GATE_PRIORITY)
        tell_priority(t);
    if (gates & GATE_BUSY)
        tell_busy(t);
    if (gates & GATE_STUCK)
        tell_stuck(t);
}

/* What holds the whole Skyhook. */
static void tell_change(teller *t)
{
    const change *c = t->p->change;
    str scope = scoped_to(t, "skyhook", change_name(t, c));
    if (c->paused)
        add(t, REASON_PAUSED, RELEASE_RESUME, change_name(t, c))->scope = scope;
    if (c->disabled)
        add(t, REASON_DISABLED, RELEASE_EDIT, change_name(t, c))->scope = scope;
}

/* ---- not in flight ---- */

/* Whether the placement waits only for Skyhooks that order all nodes, and for those that the one
 * that is asked about waits for, too: it becomes free together with it. */
static bool freed_with(const teller *t, const node_placement *q)
{
    for (size_t i = 0; i < t->self->changes.len; i++) {
        const change *o = t->self->changes.at[i];
        if (change_precedes(t->self, o, q) &&
            (o->sequencing != SEQUENCING_ALL || !change_precedes(t->self, o, t->p)))
            return false;
    }
    return true;
}

static bool waits_for_all(const teller *t)
{
    for (size_t i = 0; t->self->all_count > 0 && i < t->self->changes.len; i++)
        if (t->self->changes.at[i]->sequencing == SEQUENCING_ALL &&
            change_precedes(t->self, t->self->changes.at[i], t->p))
            return true;
    return false;
}

/* What a member that is not in flight will be to its compartment when everything that is asked for
 * has been done: its own gates are open then, and outcomes that are final for a batch no longer
 * hide what came after them. */
static member_state state_then(const teller *t, const node_placement *q)
{
    unsigned gates = q == t->p ? 0 : node_gates(t->self, q);
    if (q->complete)
        return MEMBER_DONE;
    if (gates == GATE_PRIORITY && freed_with(t, q))
        gates = 0;
    if (gates & GATES_BLOCKED)
        return MEMBER_BLOCKED;
    if (q->failed && !q->forgiven)
        return MEMBER_FAILED;
    return gates ? MEMBER_WAITING : MEMBER_STARTABLE;
}

static int64_t retry_then(const teller *t, const node_placement *q)
{
    if (q == t->p)
        return q->retry_ms == REASON_NEVER ? t->self->core->now_ms /* a person says so */
                                           : q->retry_ms;
    unsigned gates = node_gates(t->self, q);
    bool open = gates == 0 || (gates == GATE_PRIORITY && freed_with(t, q));
    return open ? q->retry_ms : REASON_NEVER;
}

/* A member, and what its compartment is told of it while the question is asked. */
typedef struct supposed {
    const node_placement *q;
    member_state known;
} supposed;

static void suppose(teller *t, const supposed *s)
{
    t->failed |= !cohort_suppose(s->q->change->cohort, s->q->member, state_then(t, s->q),
                                 retry_then(t, s->q));
}

/* When its compartment tries it again as things are: whom a gate holds, never. */
static int64_t retry_known(const teller *t, const node_placement *q)
{
    return node_gates(t->self, q) != 0 ? REASON_NEVER : q->retry_ms;
}

static void suppose_no_more(teller *t, const supposed *s)
{
    t->failed |=
        !cohort_suppose(s->q->change->cohort, s->q->member, s->known, retry_known(t, s->q));
}

/* Whether its compartment would be told something else of it than it knows. */
static bool will_differ(const teller *t, const node_placement *q, member_state known)
{
    return state_then(t, q) != known ||
           (known == MEMBER_FAILED && retry_then(t, q) != retry_known(t, q));
}

/* What its compartment would say if every gate were open: it is asked as if it were so. What
 * outcomes hide until the batch is judged counts only if it must be judged first. */
static void ask_compartment(teller *t, bool judged)
{
    const change *c = t->p->change;
    bool together = waits_for_all(t);
    /* Else only the one who asks is taken for something else: nobody looks at all the others. */
    size_t from = together || judged ? 0 : t->p->member;
    size_t to = together || judged ? c->members.len : from + 1;
    supposed *all = ARENA_ARRAY(t->a, to - from + 1, supposed);
    size_t len = 0;
    if (!all) {
        t->failed = true;
        return;
    }
    for (size_t i = from; i < to; i++) {
        const node_placement *q =
            c->members.at[i] == NOBODY ? NULL : &t->self->placements.at[c->members.at[i]];
        if (!q || q->phase != PHASE_IDLE)
            continue;
        member_state known = cohort_state(c->cohort, q->member);
        bool may_differ = cohort_in_batch(c->cohort, q->member) ? judged : together;
        if (q == t->p || (may_differ && will_differ(t, q, known)))
            all[len++] = (supposed){q, known};
    }
    for (size_t i = 0; i < len; i++)
        suppose(t, &all[i]);
    t->failed |= !cohort_reasons(c->cohort, t->p->member, t->a, t->out);
    for (size_t i = 0; i < len; i++)
        suppose_no_more(t, &all[i]);
}

static void tell_compartment(teller *t)
{
    size_t from = t->out->len;
    ask_compartment(t, false);
    size_t now = t->out->len;
    if (now > from) {
        t->out->len = from;
        ask_compartment(t, true);
        if (t->out->len == from) /* the end of the batch alone gives it its place */
            t->out->len = now;
    }
    for (size_t i = from; i < t->out->len; i++) {
        reason *r = &t->out->at[i];
        if (r->act != RELEASE_RESET)
            continue;
        r->of = one_name(t, change_name(t, t->p->change));
        r->of_count = r->of != NULL;
    }
}

static void tell_retry(teller *t)
{
    const node_placement *p = t->p;
    int64_t failures = p->failures;
    for (uint16_t i = 0; i < p->entries.len; i++)
        if (p->entries.at[i].state == PACKAGE_ERRORING && p->entries.at[i].restarts > failures)
            failures = p->entries.at[i].restarts;
    bool by_itself = p->retry_ms != REASON_NEVER;
    reason *r = add(t, REASON_RETRY, by_itself ? RELEASE_TIME : RELEASE_RETRY,
                    target_name(t->self, p->target));
    r->scope = scoped_to(t, "node", target_name(t->self, p->target));
    r->next_ms = p->retry_ms;
    r->have = failures;
    r->detail = names_text(t->self->core->names, p->why);
}

/* What was decided cannot be carried out; it is tried again by itself, and somebody may have to
 * repair something. */
static void tell_hindrance(teller *t)
{
    const node_placement *p = t->p;
    if (!p->hindrance)
        return;
    reason *r = add(t, REASON_HINDERED, RELEASE_EDIT, target_name(t->self, p->target));
    r->scope = scoped_to(t, "node", target_name(t->self, p->target));
    r->detail = arena_str(t->a, str_of(p->hindrance));
    t->failed |= !r->detail.ptr;
}

/* Nothing objects: the next step takes it. */
static void tell_next_step(teller *t)
{
    str name = change_name(t, t->p->change);
    reason *r = add(t, REASON_RUNNING, RELEASE_TIME, name);
    r->scope = scoped_to(t, "skyhook", name);
    r->next_ms = t->self->core->now_ms;
}

static void tell_idle(teller *t)
{
    const node_placement *p = t->p;
    tell_gates(t, node_gates(t->self, p));
    tell_change(t);
    if (p->change->policy_missing) {
        str policy = p->change->spec->spec.deployment_policy;
        add(t, REASON_POLICY_NOT_FOUND, RELEASE_EDIT, policy)->scope =
            scoped_to(t, "skyhook", change_name(t, p->change));
    } else {
        tell_compartment(t);
    }
    tell_hindrance(t);
    bool due = p->retry_ms != REASON_NEVER && p->retry_ms <= t->self->core->now_ms;
    if (p->failed && !p->forgiven && (!due || t->out->len == 0))
        tell_retry(t);
    if (t->out->len == 0)
        tell_next_step(t);
}

/* ---- in flight ---- */

static void tell_given_back(teller *t)
{
    str node_name = target_name(t->self, t->p->target);
    reason *r = add(t, REASON_DRAIN, RELEASE_CORDON, node_name);
    r->scope = scoped_to(t, "node", node_name);
    r->next_ms = flight_deadline(t->self, t->p);
    r->detail = STR("a cordon: it was uncordoned twice");
}

static void tell_drain(teller *t)
{
    const node_placement *p = t->p;
    if (p->no_cordon) {
        tell_given_back(t);
        return;
    }
    str blocker = arena_str(t->a, drain_pod(p)), pdb = drain_budget(p);
    t->failed |= !blocker.ptr;
    str what = blocker.len > 0 ? blocker : STR("the evicted pods");
    bool waits =
        blocker.len > 0 && pdb.len == 0 && p->change->spec->spec.pod_non_interrupt_labels.len > 0;
    reason *r = add(t, waits ? REASON_WAITING_PODS : REASON_DRAIN, RELEASE_COMPLETE, what);
    r->scope = scoped_to(t, "node", target_name(t->self, p->target));
    r->next_ms = flight_deadline(t->self, p);
    if (blocker.len > 0) {
        r->holders = r->of;
        r->holder_count = 1;
    }
    if (pdb.len == 0)
        return;
    str text = str_eq(pdb, BUDGETS_SEVERAL)
                   ? arena_printf(t->a, "%.*s, which nobody can evict: several budgets select it",
                                  STR_ARG(what))
                   : arena_printf(t->a, "%.*s, which the budget %.*s protects", STR_ARG(what),
                                  STR_ARG(pdb));
    t->failed |= !text.ptr;
    r->detail = text.ptr ? text : what;
}

static void tell_running(teller *t)
{
    names *table = t->self->core->names;
    for (uint16_t i = 0; i < t->p->entries.len; i++) {
        const package_entry *e = &t->p->entries.at[i];
        if (!(e->flags & ENTRY_RUNNING))
            continue;
        str text = arena_printf(t->a, "%.*s of %.*s %.*s", STR_ARG(stage_text(e->stage)),
                                STR_ARG(names_text(table, e->name)),
                                STR_ARG(names_text(table, e->version)));
        t->failed |= !text.ptr;
        reason *r = add(t, REASON_RUNNING, RELEASE_COMPLETE, names_text(table, e->name));
        r->scope = scoped_to(t, "node", target_name(t->self, t->p->target));
        r->detail = text.ptr ? text : STR_EMPTY;
    }
}

/* The interrupt waits until no other Skyhook's stage runs there. */
static void tell_neighbours(teller *t)
{
    uint32_t i = t->self->targets.at[t->p->target].first;
    for (; i != NOBODY; i = t->self->placements.at[i].next) {
        const node_placement *q = &t->self->placements.at[i];
        if (q != t->p && q->running > 0)
            add(t, REASON_BUSY, RELEASE_COMPLETE, change_name(t, q->change))->scope =
                scoped_to(t, "skyhook", change_name(t, q->change));
    }
}

/* The node itself is awaited. */
static void tell_node(teller *t, reason_rule kind)
{
    str name = target_name(t->self, t->p->target);
    reason *r = add(t, kind, RELEASE_ONLINE, name);
    r->scope = scoped_to(t, "node", name);
    r->next_ms = flight_deadline(t->self, t->p);
}

static void tell_flight(teller *t)
{
    const node_placement *p = t->p;
    tell_change(t);
    tell_hindrance(t);
    if (p->phase == PHASE_DRAINING)
        tell_drain(t);
    if (p->phase == PHASE_REBOOTING)
        tell_node(t, REASON_REBOOT);
    else if (t->self->targets.at[p->target].not_ready)
        tell_node(t, REASON_NOT_READY);
    if (!p->hindrance) /* what was decided may not have begun */
        tell_running(t);
    if (t->out->len == 0)
        tell_neighbours(t);
    if (t->out->len == 0)
        tell_next_step(t);
}

bool nodes_reasons(const void *context, placement_id id, arena *a, reasons *out)
{
    const nodes *self = context;
    const node_placement *p = placement_by_id(self, id);
    if (!p || !p->selected || p->done)
        return true;
    teller t = {.self = self, .p = p, .a = a, .out = out};
    if (p->phase == PHASE_IDLE)
        tell_idle(&t);
    else
        tell_flight(&t);
    return !t.failed;
}
