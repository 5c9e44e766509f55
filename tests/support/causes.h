/* SPDX-License-Identifier: Apache-2.0 */
/* causes.h - holds what stalled targets say against what was done to them.
 *
 * A random world knows everything that was done to it: what its targets are like, which documents
 * stand, what people did, who has failed. At the end of a run every reason of every placement that
 * is not done must be found there:
 *     a reason that names a cause (a taint, a pause, a failure, ...) is true of that very target or
 *     change;
 *     a reason that only passes on what others hold back (a budget, a queue, a dependency, ...)
 *     names somebody who is stalled by a cause, or by somebody who is, and so on;
 *     a reason that names a time is one the engine wants to be woken for.
 * And what was done to a target or its change is among its reasons. */
#ifndef DROVER_TESTS_SUPPORT_CAUSES_H
#define DROVER_TESTS_SUPPORT_CAUSES_H

#include "support/check.h"

#include "base/arena.h"
#include "base/vec.h"
#include "sim/world.h"

#define CAUSES_TEXT 1024

/* A placement that is not done, and what it says. */
typedef struct stalled {
    placement_view view;
    reasons why;
    bool *explained; /* by reason */
    bool rooted;     /* one is */
} stalled;

typedef struct causes {
    const world *w;
    arena *a;
    VEC(stalled) at;
    bool bracketed; /* a version group may be in the middle of its work: it is finished */
} causes;

typedef bool (*cause_test)(const causes *c, const stalled *s, const reason *r);

/* ---- what was done ---- */

/* The last happening of these kinds to a target or a change; NULL: none. */
#define HAPPENED(kind) (UINT64_C(1) << HAPPEN_##kind)
static const happening *cause_last(const causes *c, uint64_t kinds, str target, str name)
{
    const happening *last = NULL;
    for (size_t i = 0; i < c->w->happenings.len; i++) {
        const happening *h = &c->w->happenings.at[i];
        if ((kinds >> h->kind & 1) && str_eq(h->target, target) && str_eq(h->name, name) &&
            (!last || h->after_ms >= last->after_ms))
            last = h;
    }
    return last;
}

static bool cause_is(const happening *h, happening_kind kind)
{
    return h && h->kind == kind;
}

/* A Bundle's name without its namespace. */
static str cause_name(str change)
{
    size_t at = str_find(change, STR("/"));
    return at == SIZE_MAX ? change : str_part(change, at + 1, SIZE_MAX);
}

static const herd_target *cause_target(const causes *c, target_kind kind, str name)
{
    uint32_t t = herd_find(sim_herd(c->w->sim), kind, name);
    return t == HERD_NONE ? NULL : &sim_herd(c->w->sim)->targets.at[t];
}

static bool cause_flag(const causes *c, const stalled *s, uint16_t flag)
{
    const herd_target *t = cause_target(c, s->view.kind, s->view.target);
    return t && (t->flags & flag);
}

static const object *cause_document(const causes *c, object_kind kind, str name)
{
    for (size_t i = 0; i < sim_documents(c->w->sim); i++) {
        const object *o = sim_document(c->w->sim, i);
        if (o->kind == kind && str_eq(o->metadata->name, name))
            return o;
    }
    return NULL;
}

/* The rule of a kind of the policy that the reason's scope names, "policy NAME, rule ID"; without
 * a policy in it, of any. */
static const rule *cause_rule(const causes *c, const reason *r, rule_kind kind)
{
    str rest = r->scope, policy = STR_EMPTY;
    if (str_starts(rest, STR("policy "))) {
        rest = str_part(rest, strlen("policy "), SIZE_MAX);
        policy = str_cut(&rest, ',');
    }
    for (size_t i = 0; i < sim_documents(c->w->sim); i++) {
        const object *o = sim_document(c->w->sim, i);
        if (o->kind != KIND_ROLLOUT_POLICY ||
            (policy.len > 0 && !str_eq(o->metadata->name, policy)))
            continue;
        for (size_t k = 0; k < o->rollout_policy->spec.rules.len; k++)
            if (o->rollout_policy->spec.rules.at[k].kind == kind)
                return &o->rollout_policy->spec.rules.at[k];
    }
    return NULL;
}

/* ---- of one target ---- */

static bool cause_has_taint(const causes *c, const stalled *s)
{
    const herd_target *t = cause_target(c, s->view.kind, s->view.target);
    for (size_t i = 0; t && i < t->traits->taint_count; i++)
        if (str_eq(t->traits->taints[i].key, STR("wet")))
            return true;
    return false;
}

static bool is_tainted(const causes *c, const stalled *s, const reason *r)
{
    return str_eq(r->detail, STR("wet=paint:NoSchedule")) && cause_has_taint(c, s);
}

static bool cause_has_ignore(const causes *c, const stalled *s)
{
    const herd_target *t = cause_target(c, s->view.kind, s->view.target);
    return t && label_get(t->traits->labels, STR("skyhook.nvidia.com/ignore")).ptr;
}

static bool is_ignored(const causes *c, const stalled *s, const reason *r)
{
    (void)r;
    return cause_has_ignore(c, s);
}

static bool is_offline(const causes *c, const stalled *s, const reason *r)
{
    (void)r;
    return cause_flag(c, s, HERD_OFFLINE);
}

/* It has failed, or was lost: a node that goes silent in flight fails in the end. */
static bool has_failed(const causes *c, const stalled *s, const reason *r)
{
    (void)r;
    return cause_flag(c, s, HERD_FAILED) ||
           (s->view.kind == TARGET_NODE &&
            cause_last(c, HAPPENED(OFFLINE), s->view.target, STR_EMPTY));
}

static bool is_not_ready(const causes *c, const stalled *s, const reason *r)
{
    if (s->view.kind == TARGET_NODE)
        return cause_flag(c, s, HERD_NOT_READY);
    return is_offline(c, s, r) || has_failed(c, s, r);
}

/* A drain that stands still while its Skyhook is paused goes on afterwards; one on a node that was
 * given back twice when somebody cordons it. */
static bool drains_silently(const causes *c, const stalled *s, const reason *r)
{
    if (r->act == RELEASE_CORDON)
        return cause_is(
            cause_last(c, HAPPENED(CORDON) | HAPPENED(UNCORDON), s->view.target, STR_EMPTY),
            HAPPEN_UNCORDON);
    for (size_t i = 0; i < s->why.len; i++)
        if (s->explained[i] &&
            (s->why.at[i].rule == REASON_PAUSED || s->why.at[i].rule == REASON_DISABLED))
            return true;
    return is_offline(c, s, r);
}

/* Something runs that does not end: nobody hears of it. */
static bool runs_silently(const causes *c, const stalled *s, const reason *r)
{
    return r->act != RELEASE_TIME && is_offline(c, s, r);
}

static bool has_no_namespace(const causes *c, const stalled *s, const reason *r)
{
    const herd_target *t = cause_target(c, s->view.kind, s->view.target);
    (void)r;
    return t && t->traits->deploy_namespace.len == 0;
}

/* A person said so, or something failed there. */
static bool was_refused(const causes *c, const stalled *s, const reason *r)
{
    uint64_t kinds =
        r->rule == REASON_SKIPPED ? HAPPENED(SKIP) : HAPPENED(ROLLBACK) | HAPPENED(SKIP);
    return cause_last(c, kinds, s->view.target, s->view.change) ||
           (r->rule != REASON_SKIPPED && has_failed(c, s, r));
}

/* ---- of a change ---- */

static bool is_paused(const causes *c, const stalled *s, const reason *r)
{
    if (r->of_count != 1)
        return false;
    const herd_target *t = cause_target(c, s->view.kind, r->of[0]);
    uint64_t kinds = HAPPENED(PAUSE) | HAPPENED(RESUME);
    return t ? (t->flags & HERD_PAUSED) != 0
             : cause_is(cause_last(c, kinds, STR_EMPTY, cause_name(r->of[0])), HAPPEN_PAUSE);
}

static bool has_no_policy(const causes *c, const stalled *s, const reason *r)
{
    (void)s;
    return r->of_count == 1 && !cause_document(c, KIND_DEPLOYMENT_POLICY, r->of[0]);
}

static bool is_disabled(const causes *c, const stalled *s, const reason *r)
{
    const object *o = cause_document(c, KIND_SKYHOOK, s->view.change);
    (void)r;
    return o && skyhook_disabled(o->skyhook);
}

static bool cause_any_failed(const causes *c, target_kind kind)
{
    const herd *all = sim_herd(c->w->sim);
    for (size_t i = 0; i < all->targets.len; i++)
        if (all->targets.at[i].kind == kind && (all->targets.at[i].flags & HERD_FAILED))
            return true;
    return false;
}

/* Members failed, were lost, or were blocked in flight. */
static bool is_stopped(const causes *c, const stalled *s, const reason *r)
{
    (void)r;
    uint64_t blocking = HAPPENED(OFFLINE) | HAPPENED(TAINT) | HAPPENED(LABEL);
    bool blocked = false;
    for (size_t i = 0; i < c->w->happenings.len; i++)
        blocked = blocked || (blocking >> c->w->happenings.at[i].kind & 1);
    return cause_any_failed(c, (target_kind)s->view.kind) ||
           (s->view.kind == TARGET_NODE && blocked);
}

/* Freezes have one name in these worlds: the last takes the place of the one before. */
static const happening *cause_freeze(const causes *c)
{
    const happening *h = cause_last(c, HAPPENED(FREEZE) | HAPPENED(THAW), STR_EMPTY, STR("ice"));
    int64_t now_ms = sim_now_ms(c->w->sim) - sim_start_ms(c->w->sim);
    if (!cause_is(h, HAPPEN_FREEZE) || (h->for_ms > 0 && h->after_ms + h->for_ms <= now_ms))
        return NULL;
    return h;
}

static bool cause_frozen(const causes *c, const stalled *s)
{
    const happening *h = cause_freeze(c);
    return h && (h->selector.len == 0 || str_find(h->selector, s->view.change) != SIZE_MAX);
}

/* One member that is frozen holds its whole group. */
static bool is_frozen(const causes *c, const stalled *s, const reason *r)
{
    (void)r;
    return cause_frozen(c, s) || (c->bracketed && cause_freeze(c));
}

static bool cause_no_version(const causes *c, str change)
{
    for (size_t i = 0; i < sim_documents(c->w->sim); i++) {
        const object *o = sim_document(c->w->sim, i);
        if (o->kind == KIND_VERSION && o->version->spec.status == VERSION_READY &&
            str_eq(o->version->spec.deployment, change))
            return false;
    }
    return true;
}

static bool has_no_version(const causes *c, const stalled *s, const reason *r)
{
    (void)r;
    return cause_no_version(c, s->view.change);
}

/* ---- of documents ---- */

static bool is_not_selected(const causes *c, const stalled *s, const reason *r)
{
    (void)s;
    return cause_rule(c, r, RULE_VERSION_SELECTOR) != NULL;
}

/* Every rolloutStrategy that may stand over the placement. */
typedef bool (*strategy_test)(const rollout_strategy *of, str name);
static bool cause_strategies(const causes *c, const stalled *s, strategy_test test, str name)
{
    for (size_t i = 0; i < sim_documents(c->w->sim); i++) {
        const object *o = sim_document(c->w->sim, i);
        if (s->view.kind == TARGET_CLUSTER && o->kind == KIND_BUNDLE &&
            str_eq(o->metadata->name, cause_name(s->view.change)) &&
            test(&o->bundle->spec.rollout_strategy, name))
            return true;
        if (s->view.kind != TARGET_RESOURCE || o->kind != KIND_ROLLOUT_POLICY)
            continue;
        for (size_t k = 0; k < o->rollout_policy->spec.rules.len; k++) {
            const rule *own = &o->rollout_policy->spec.rules.at[k];
            if (own->kind == RULE_ROLLOUT_STRATEGY && test(own->rollout_strategy, name))
                return true;
        }
    }
    return false;
}

static bool strategy_asks(const rollout_strategy *of, str name)
{
    for (size_t i = 0; i < of->partitions.len; i++)
        if (of->partitions.at[i].approval && str_eq(of->partitions.at[i].name, name))
            return true;
    return false;
}

static bool strategy_is_manual(const rollout_strategy *of, str name)
{
    (void)name;
    return of->partitions.len > 0;
}

static bool strategy_halts(const rollout_strategy *of, str name)
{
    (void)name;
    return of->failure_threshold.set;
}

static bool is_not_approved(const causes *c, const stalled *s, const reason *r)
{
    if (!str_starts(r->scope, STR("partition ")))
        return cause_rule(c, r, RULE_ANY_APPROVAL) != NULL;
    return r->of_count == 1 && cause_strategies(c, s, strategy_asks, r->of[0]);
}

static bool is_left_out(const causes *c, const stalled *s, const reason *r)
{
    (void)r;
    return cause_strategies(c, s, strategy_is_manual, STR_EMPTY);
}

static bool is_halted(const causes *c, const stalled *s, const reason *r)
{
    uint64_t kinds = HAPPENED(HALT) | HAPPENED(RESUME);
    if (r->of_count != 1)
        return false;
    return cause_is(cause_last(c, kinds, STR_EMPTY, r->of[0]), HAPPEN_HALT) ||
           (cause_strategies(c, s, strategy_halts, STR_EMPTY) &&
            cause_any_failed(c, (target_kind)s->view.kind));
}

/* ---- of others ---- */

/* Whether a placement of the change (empty: of any) on the target is stalled by a cause. */
static bool cause_of_other(const causes *c, const stalled *s, str change, str target)
{
    for (size_t i = 0; i < c->at.len; i++) {
        const stalled *o = &c->at.at[i];
        if (o->rooted && o->view.kind == s->view.kind && str_eq(o->view.target, target) &&
            (change.len == 0 || str_eq(o->view.change, change)))
            return true;
    }
    return false;
}

/* A time to come, and the engine wants to be woken for it; unless something else holds it that must
 * be done first. */
static bool in_time(const causes *c, const stalled *s, const reason *r)
{
    int64_t wake_ms = engine_next_ms(sim_engine(c->w->sim));
    if (r->act != RELEASE_TIME || r->next_ms == REASON_NEVER || r->next_ms <= sim_now_ms(c->w->sim))
        return false;
    for (size_t i = 0; i < s->why.len; i++)
        if (s->explained[i] && s->why.at[i].act != RELEASE_TIME)
            return true;
    return wake_ms != REASON_NEVER && wake_ms <= r->next_ms;
}

/* A holder that has failed or is offline is a cause by itself: those that hold more places than are
 * left keep each other from being tried again, and a cluster that is broken in a later partition is
 * not reached. */
static bool follows_failed(const causes *c, const stalled *s, str target)
{
    const herd_target *t = cause_target(c, s->view.kind, target);
    for (size_t i = 0; t && (t->flags & (HERD_FAILED | HERD_OFFLINE)) && i < c->at.len; i++)
        if (str_eq(c->at.at[i].view.target, target) &&
            (s->view.kind == TARGET_RESOURCE || str_eq(c->at.at[i].view.change, s->view.change)))
            return true;
    return false;
}

/* Targets: of the same change where budgets are a change's own. */
static bool follows_targets(const causes *c, const stalled *s, const reason *r)
{
    str change = s->view.kind == TARGET_RESOURCE ? STR_EMPTY : s->view.change;
    for (size_t i = 0; i < r->of_count; i++)
        if (cause_of_other(c, s, change, r->of[i]))
            return true;
    for (size_t i = 0; i < r->holder_count; i++)
        if (cause_of_other(c, s, change, r->holders[i]) || follows_failed(c, s, r->holders[i]))
            return true;
    return false;
}

/* A slot may be a host's own. */
static bool follows_slots(const causes *c, const stalled *s, const reason *r)
{
    uint64_t kinds = HAPPENED(CLAIM_SLOT) | HAPPENED(FREE_SLOT);
    for (size_t i = 0; i < r->holder_count; i++)
        if (cause_is(cause_last(c, kinds, r->holders[i], STR_EMPTY), HAPPEN_CLAIM_SLOT))
            return true;
    if (r->limit == 0) {
        const rule *own = cause_rule(c, r, RULE_RESOURCE_CONCURRENCY);
        return own && own->resource_concurrency->limit_value == 0;
    }
    return follows_targets(c, s, r);
}

/* Other changes: on the same target, or on the holders. */
static bool follows_changes(const causes *c, const stalled *s, const reason *r)
{
    if (in_time(c, s, r))
        return true;
    for (size_t i = 0; i < r->of_count; i++) {
        if (cause_of_other(c, s, r->of[i], s->view.target))
            return true;
        for (size_t k = 0; k < r->holder_count; k++)
            if (cause_of_other(c, s, r->of[i], r->holders[k]))
                return true;
    }
    return false;
}

/* A hook may have no version that it may run: none is published, a rule or a person refuses it. */
static bool follows_members(const causes *c, const stalled *s, const reason *r)
{
    if (follows_changes(c, s, r))
        return true;
    if (r->of_count != 1 || (r->act != RELEASE_PUBLISH && r->act != RELEASE_RETRY))
        return false;
    uint64_t kinds = HAPPENED(ROLLBACK) | HAPPENED(SKIP);
    return cause_no_version(c, r->of[0]) || cause_last(c, kinds, s->view.target, r->of[0]) ||
           cause_rule(c, &(reason){.scope = STR_EMPTY}, RULE_VERSION_SELECTOR);
}

/* What a version needs may be something that never comes to the resource; in a bracket all members
 * wait for what one needs. */
static bool follows_needs(const causes *c, const stalled *s, const reason *r)
{
    if (follows_changes(c, s, r))
        return true;
    for (size_t i = 0; str_starts(r->scope, STR("version ")) && i < sim_documents(c->w->sim); i++) {
        const object *o = sim_document(c->w->sim, i);
        for (size_t k = 0; o->kind == KIND_VERSION && k < o->version->spec.depends_on.len; k++)
            if (r->of_count == 1 && str_eq(o->version->spec.depends_on.at[k].deployment, r->of[0]))
                return true;
    }
    return false;
}

/* Those of the other environment; they may have been refused the version, by a rule or because it
 * failed there, and be done with another one. */
static bool follows_environment(const causes *c, const stalled *s, const reason *r)
{
    if (in_time(c, s, r))
        return true;
    for (size_t i = 0; i < c->at.len; i++)
        for (size_t k = 0; k < r->of_count; k++)
            if (c->at.at[i].rooted && str_eq(c->at.at[i].view.environment, r->of[k]) &&
                str_eq(c->at.at[i].view.change, s->view.change))
                return true;
    return cause_rule(c, &(reason){.scope = STR_EMPTY}, RULE_VERSION_SELECTOR) ||
           cause_any_failed(c, TARGET_RESOURCE);
}

/* Nothing moved under its slot for too long: it failed, a host had the slot, or a halt that may be
 * over by now stopped its work. */
static bool is_quarantined(const causes *c, const stalled *s, const reason *r)
{
    return has_failed(c, s, r) || cause_last(c, HAPPENED(CLAIM_SLOT), s->view.target, STR_EMPTY) ||
           cause_last(c, HAPPENED(HALT), STR_EMPTY, s->view.change) ||
           cause_of_other(c, s, STR_EMPTY, s->view.target);
}

/* Rules without an entry have no cause in these worlds. */
static const cause_test cause_tests[] = {
    [REASON_PAUSED] = is_paused,
    [REASON_DISABLED] = is_disabled,
    [REASON_TAINT] = is_tainted,
    [REASON_IGNORED] = is_ignored,
    [REASON_POLICY_NOT_FOUND] = has_no_policy,
    [REASON_NOT_READY] = is_not_ready,
    [REASON_OFFLINE] = is_offline,
    [REASON_STOPPED] = is_stopped,
    [REASON_HALTED] = is_halted,
    [REASON_RETRY] = has_failed,
    [REASON_FAILED] = has_failed,
    [REASON_ROLLED_BACK] = was_refused,
    [REASON_SKIPPED] = was_refused,
    [REASON_QUARANTINED] = is_quarantined,
    [REASON_NO_NAMESPACE] = has_no_namespace,
    [REASON_APPROVAL] = is_not_approved,
    [REASON_FREEZE] = is_frozen,
    [REASON_NO_VERSION] = has_no_version,
    [REASON_VERSION_SELECTOR] = is_not_selected,
    [REASON_NO_PARTITION] = is_left_out,
    [REASON_RUNNING] = runs_silently,
    [REASON_REBOOT] = runs_silently,
    [REASON_DRAIN] = drains_silently,
    [REASON_BUDGET] = follows_targets,
    [REASON_BATCH] = follows_targets,
    [REASON_PARTITION] = follows_targets,
    [REASON_UNAVAILABLE] = follows_targets,
    [REASON_MAX_NEW] = follows_targets,
    [REASON_CONCURRENCY] = follows_slots,
    [REASON_PRIORITY] = follows_changes,
    [REASON_BUSY] = follows_changes,
    [REASON_BRACKET] = follows_members,
    [REASON_DEPENDENCY] = follows_needs,
    [REASON_PROGRESSION] = follows_environment,
    [REASON_WINDOW] = in_time,
    [REASON_COOLDOWN] = in_time,
    [REASON_ROLLOUT] = in_time,
    [REASON_SOAK] = in_time,
};

/* ---- all of it ---- */

static bool causes_collect(void *context, const placement_view *v)
{
    causes *c = context;
    stalled s = {.view = *v};
    assert_true(engine_reasons(sim_engine(c->w->sim), v->id, c->a, &s.why));
    s.explained = ARENA_ARRAY(c->a, s.why.len + 1, bool);
    assert_non_null(s.explained);
    if (v->state != PLACEMENT_DONE)
        assert_true(vec_push(&c->at, s));
    return true;
}

/* Whom one is explained by may itself be explained later: until nothing changes. */
static void causes_follow(causes *c)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < c->at.len; i++) {
            stalled *s = &c->at.at[i];
            for (size_t k = 0; k < s->why.len; k++) {
                reason_rule kind = s->why.at[k].rule;
                cause_test test =
                    kind < sizeof cause_tests / sizeof cause_tests[0] ? cause_tests[kind] : NULL;
                if (s->explained[k] || !test || !test(c, s, &s->why.at[k]))
                    continue;
                s->explained[k] = s->rooted = changed = true;
            }
        }
    }
}

static bool causes_tell(const stalled *s, str text, char what[CAUSES_TEXT])
{
    snprintf(what, CAUSES_TEXT, "%.*s on %.*s (%.*s) %.*s", STR_ARG(s->view.change),
             STR_ARG(s->view.target), STR_ARG(s->view.environment), STR_ARG(text));
    return false;
}

static bool causes_names(const stalled *s, reason_rule kind)
{
    for (size_t i = 0; i < s->why.len; i++)
        if (s->why.at[i].rule == kind)
            return true;
    return false;
}

/* Whether what was done to a change that is not in flight is said. One that was deleted on the way
 * may have been made anew since. */
static bool cause_said_of_change(const causes *c, const stalled *s)
{
    str name = cause_name(s->view.change);
    if (cause_last(c, HAPPENED(DELETE), STR_EMPTY, name) || c->bracketed)
        return true;
    uint64_t kinds = HAPPENED(PAUSE) | HAPPENED(RESUME) | HAPPENED(HALT);
    const happening *last = cause_last(c, kinds, STR_EMPTY, name);
    if (cause_is(last, HAPPEN_PAUSE) && !causes_names(s, REASON_PAUSED) &&
        !causes_names(s, REASON_HALTED))
        return false;
    return !cause_is(last, HAPPEN_HALT) || causes_names(s, REASON_HALTED);
}

static bool cause_said_of_target(const causes *c, const stalled *s)
{
    switch (s->view.kind) {
    case TARGET_NODE:
        return (!cause_has_taint(c, s) || causes_names(s, REASON_TAINT)) &&
               (!cause_has_ignore(c, s) || causes_names(s, REASON_IGNORED)) &&
               (!cause_flag(c, s, HERD_NOT_READY) || causes_names(s, REASON_NOT_READY));
    case TARGET_CLUSTER:
        return (!cause_flag(c, s, HERD_PAUSED) || causes_names(s, REASON_PAUSED)) &&
               (!has_no_namespace(c, s, NULL) || causes_names(s, REASON_NO_NAMESPACE));
    case TARGET_RESOURCE:
        return c->bracketed || !cause_frozen(c, s) || causes_names(s, REASON_FREEZE);
    }
    return false;
}

/* What goes back is stopped by no pause and no freeze. */
static bool cause_goes_back(const causes *c, const stalled *s)
{
    return s->view.kind == TARGET_RESOURCE &&
           (cause_flag(c, s, HERD_FAILED) ||
            cause_last(c, HAPPENED(ROLLBACK), s->view.target, s->view.change));
}

static bool cause_said(const causes *c, const stalled *s)
{
    if (s->view.state != PLACEMENT_WAITING && s->view.state != PLACEMENT_BLOCKED)
        return true;
    return cause_goes_back(c, s) || (cause_said_of_change(c, s) && cause_said_of_target(c, s));
}

static bool causes_judge(const causes *c, char what[CAUSES_TEXT])
{
    for (size_t i = 0; i < c->at.len; i++) {
        const stalled *s = &c->at.at[i];
        if (s->why.len == 0)
            return causes_tell(s, STR("is not done and has no reason"), what);
        for (size_t k = 0; k < s->why.len; k++)
            if (!s->explained[k])
                return causes_tell(s,
                                   arena_printf(c->a, "names what nothing has caused: %.*s: %.*s",
                                                STR_ARG(reason_rule_name(s->why.at[k].rule)),
                                                STR_ARG(reason_text(c->a, &s->why.at[k]))),
                                   what);
        if (!cause_said(c, s))
            return causes_tell(s, STR("does not name what was done to it"), what);
    }
    return true;
}

/* False, with a sentence, if a reason is not true or one is missing. */
static bool causes_hold(const world *w, char what[CAUSES_TEXT])
{
    causes c = {.w = w, .a = arena_new(0)};
    assert_non_null(c.a);
    engine_placements(sim_engine(w->sim), causes_collect, &c);
    /* A group goes on when its rule is gone. */
    c.bracketed = str_find(buf_str(&w->text), STR("deploymentBracket")) != SIZE_MAX;
    causes_follow(&c);
    bool good = causes_judge(&c, what);
    vec_done(&c.at);
    arena_free(c.a);
    return good;
}

#endif
