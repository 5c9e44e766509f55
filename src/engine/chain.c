/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/chain.h"

#include <assert.h>

const rule_ops elsewhere_ops = {.order = 99, .level = LEVEL_ELSEWHERE};

const rule_ops *rule_ops_of(rule_kind kind)
{
    switch (kind) {
    case RULE_VERSION_SELECTOR: return &version_selector_ops;
    case RULE_ANY_APPROVAL: return &approval_ops;
    case RULE_ENVIRONMENT_PROGRESSION: return &progression_ops;
    case RULE_DEPLOYMENT_BRACKET: return &bracket_ops;
    case RULE_DEPLOYMENT_WINDOW: return &window_ops;
    case RULE_VERSION_COOLDOWN: return &cooldown_ops;
    case RULE_GRADUAL_ROLLOUT: return &rollout_ops;
    case RULE_DEPLOYMENT_DEPENDENCY: return &dependency_ops;
    case RULE_RETRY: return &elsewhere_ops; /* asked with or without such a rule: rule_retry.c */
    case RULE_RESOURCE_CONCURRENCY:         /* concurrency.c */
    case RULE_ROLLBACK:                     /* rule_rollback.c */
    case RULE_VERIFICATION: /* a shell measures; the job's outcome says what came of it */
        return &elsewhere_ops;
    case RULE_DEPLOYMENT_POLICY: return &cohort_rule_ops;
    case RULE_ROLLOUT_STRATEGY: return &partition_rule_ops;
    }
    return &elsewhere_ops;
}

void verdict_no(verdict *v, verdict_kind kind, reason_rule rule_, int64_t next_ms)
{
    v->kind = kind;
    v->reason.rule = rule_;
    v->reason.next_ms = next_ms;
    v->reason.act = next_ms == NEVER ? RELEASE_EDIT : RELEASE_TIME;
    v->satisfied_ms = LONG_AGO;
}

static verdict verdict_yes(void)
{
    return (verdict){
        .kind = VERDICT_ALLOWED, .satisfied_ms = LONG_AGO, .reason = {.next_ms = NEVER}};
}

/* Who only counts the answer reads nothing of the reason but these: to make the whole of it anew
 * for every rule and target costs more than most rules do. */
static void verdict_clear(const chain_context *c, verdict *v)
{
    if (c->a) {
        *v = verdict_yes();
        return;
    }
    v->kind = VERDICT_ALLOWED;
    v->satisfied_ms = LONG_AGO;
    v->reason.rule = (reason_rule)0;
    v->reason.act = (release_act)0;
    v->reason.next_ms = NEVER;
    v->more.len = 0;
    v->implied = false;
}

void chain_rule(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    const rel_rule *the = &r->rules.at[rule_];
    const rule_ops *ops = rule_ops_of(the->kind);
    verdict_clear(c, v);
    v->reason.scope = the->scope;
    if (ops->level == LEVEL_ELSEWHERE)
        return;
    if (the->bypassed && !ops->job_level) {
        const rel_cell *cell = &r->cells.at[r->lanes.at[c->lane].cell];
        uint32_t res = c->target == NO ? NO : r->targets.at[c->target].resource;
        const rel_bypass *b = bypass_find(r, rule_, c->version, cell->environment, res);
        if (b) {
            v->satisfied_ms = b->at_ms;
            v->reason.next_ms = b->until_ms == 0 ? NEVER : b->until_ms;
            return;
        }
    }
    ops->verdict(c, rule_, v);
}

void chain_version(const chain_context *c, verdict *ret, bool *ret_selected)
{
    const rel_lane *lane = &c->r->lanes.at[c->lane];
    verdict all = verdict_yes();
    *ret_selected = true;
    for (size_t i = 0; i < lane->rules.len; i++) {
        rule_kind kind = lane->kinds.at[i];
        if (rule_ops_of(kind)->level != LEVEL_VERSION)
            continue;
        verdict v;
        chain_rule(c, lane->rules.at[i], &v);
        int64_t next = earlier(all.reason.next_ms, v.reason.next_ms);
        if (v.kind != VERDICT_ALLOWED) {
            /* Whether a version is meant whose selector fails nobody knows: it is refused, and said
             * to be. */
            *ret_selected = kind != RULE_VERSION_SELECTOR || v.reason.rule == REASON_EXPRESSION;
            *ret = v;
            ret->reason.next_ms = next;
            return;
        }
        all.reason.next_ms = next;
        all.satisfied_ms = later_of(all.satisfied_ms, v.satisfied_ms);
    }
    *ret = all;
}

/* Which of the rules behind the version-level ones are asked for this start. */
static bool asked(const chain_context *c, rule_level level)
{
    if (level == LEVEL_EACH)
        return true;
    return level == LEVEL_FIRST && (c->group == NO || c->starting);
}

static bool allows(const chain_context *c, bool dependencies, int64_t *next_ms)
{
    releases *r = c->r;
    const rel_lane *lane = &r->lanes.at[c->lane];
    r->core->looked_at++;
    *next_ms = NEVER;
    verdict v = verdict_yes();
    people_verdict(c, &v);
    *next_ms = earlier(*next_ms, v.reason.next_ms);
    if (v.kind != VERDICT_ALLOWED)
        return false;
    for (size_t i = lane->gates_from; i < lane->gates_to; i++) {
        rule_kind kind = lane->kinds.at[i];
        if (!asked(c, rule_ops_of(kind)->level) ||
            (!dependencies && kind == RULE_DEPLOYMENT_DEPENDENCY))
            continue;
        chain_rule(c, lane->rules.at[i], &v);
        *next_ms = earlier(*next_ms, v.reason.next_ms);
        if (v.kind != VERDICT_ALLOWED)
            return false;
    }
    verdict_clear(c, &v);
    if (dependencies)
        version_dependency_verdict(c, &v);
    if (v.kind == VERDICT_ALLOWED)
        retry_ops.verdict(c, NO, &v);
    *next_ms = earlier(*next_ms, v.reason.next_ms);
    return v.kind == VERDICT_ALLOWED;
}

bool chain_allows(const chain_context *c, int64_t *ret_next_ms)
{
    return allows(c, true, ret_next_ms);
}

bool chain_allows_but_dependencies(const chain_context *c)
{
    int64_t unused;
    return allows(c, false, &unused);
}

bool verdict_report(const chain_context *c, const verdict *v, reasons *out)
{
    if (v->kind == VERDICT_ALLOWED || v->implied)
        return true;
    bool good = reasons_add(out, c->a, v->reason);
    for (size_t i = 0; good && i < v->more.len; i++)
        good = reasons_add(out, c->a, v->more.at[i]);
    return good;
}

/* An edit is one of the rule's policy. */
static bool name_policy_in(const chain_context *c, uint32_t rule_, reason *why)
{
    const releases *r = c->r;
    if (why->act != RELEASE_EDIT || why->of_count > 0)
        return true;
    str *of = ARENA_NEW(c->a, str);
    if (!of)
        return false;
    *of = rel_text(r, r->policies.at[r->rules.at[rule_].policy].name);
    why->of = of;
    why->of_count = 1;
    return true;
}

static bool name_policy(const chain_context *c, uint32_t rule_, verdict *v)
{
    bool good = v->kind == VERDICT_ALLOWED || name_policy_in(c, rule_, &v->reason);
    for (size_t i = 0; good && i < v->more.len; i++)
        good = name_policy_in(c, rule_, &v->more.at[i]);
    return good;
}

/* What turns are counted from once a version-level rule says yes: people may act now, time and
 * others must come. */
static int64_t would_satisfy(const releases *r, const verdict *v)
{
    if (v->kind == VERDICT_ALLOWED)
        return v->satisfied_ms;
    int64_t latest = v->reason.act == RELEASE_TIME ? v->reason.next_ms : r->asked_ms;
    for (size_t i = 0; i < v->more.len; i++)
        if (v->more.at[i].act == RELEASE_TIME)
            latest = later_of(latest, v->more.at[i].next_ms);
    return latest;
}

bool chain_explain_version(const chain_context *c, reasons *out)
{
    const rel_lane *lane = &c->r->lanes.at[c->lane];
    verdict v;
    for (size_t i = 0; i < lane->rules.len; i++) {
        if (rule_ops_of(lane->kinds.at[i])->level != LEVEL_VERSION)
            continue;
        chain_rule(c, lane->rules.at[i], &v);
        if (!name_policy(c, lane->rules.at[i], &v) || !verdict_report(c, &v, out))
            return false;
    }
    return true;
}

bool chain_explain(const chain_context *of, reasons *out)
{
    releases *r = of->r;
    chain_context with = *of;
    const chain_context *c = &with;
    const rel_lane *lane = &r->lanes.at[c->lane];
    r->core->looked_at++;
    verdict v, collecting = verdict_yes();
    with.would_ms = c->version == NO ? NEVER : r->versions.at[c->version].published_ms;
    if (!people_explain(c, out))
        return false;
    bool other_version = false; /* another one is asked for: what this one lacks does not matter */
    for (size_t i = 0; i < lane->rules.len; i++) {
        rule_level level = rule_ops_of(lane->kinds.at[i])->level;
        /* A version that its group has locked has passed the version-level rules. */
        if (level == LEVEL_VERSION ? c->group != NO || other_version : !asked(c, level))
            continue;
        if (other_version && lane->kinds.at[i] == RULE_GRADUAL_ROLLOUT)
            continue;
        chain_rule(c, lane->rules.at[i], &v);
        other_version |= v.kind != VERDICT_ALLOWED && v.reason.rule == REASON_VERSION_SELECTOR;
        if (level == LEVEL_VERSION)
            with.would_ms = later_of(with.would_ms, would_satisfy(r, &v));
        if (!name_policy(c, lane->rules.at[i], &v) || !verdict_report(c, &v, out))
            return false;
        /* Which jobs a version group has, and so what else holds them, is settled when it locks. */
        if (lane->kinds.at[i] == RULE_DEPLOYMENT_BRACKET && c->group == NO &&
            v.kind != VERDICT_ALLOWED) {
            collecting = v;
            if (!collecting_explain(c, out))
                return false;
            break;
        }
    }
    v = verdict_yes();
    if (c->group != NO || r->targets.at[c->target].site == NO)
        version_dependency_verdict(c, &v);
    if (!verdict_report(c, &v, out))
        return false;
    v = verdict_yes();
    if (!other_version)
        retry_ops.verdict(c, NO, &v);
    if (!verdict_report(c, &v, out))
        return false;
    /* Nothing else says why its group does not lock: another version would open it anew. */
    if (out->len > 0 || collecting.kind == VERDICT_ALLOWED || !collecting.implied)
        return true;
    collecting.implied = false;
    if (collecting.reason.next_ms == NEVER)
        collecting.reason.act = RELEASE_PUBLISH;
    return verdict_report(c, &collecting, out);
}
