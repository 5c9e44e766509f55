/* SPDX-License-Identifier: Apache-2.0 */
/* Whether who waits gets on: by time, when a person lets it, or with somebody who gets on. It does
 * not if it can only wait for what has failed.
 *
 * A target has hope if every gate in its way has, and every limit. What many wait for is asked
 * once: a limit for all who wait at it, since whoever stands ahead in its queue waits for the same
 * holders; the rules of a version for all targets under them; an environment for all that progress
 * to. So the question costs in proportion to who waits, not to the square of it.
 *
 * Who waits for itself in the end has no hope. While somebody is being asked, others who come to it
 * take that for granted; if then anybody turns out to have hope, all who had none are asked
 * again. */
#include "base/mem.h"
#include "engine/chain.h"

#define HOPE_ASKED 1 /* just now */
#define HOPE_NO 2
#define HOPE_YES 3

/* How far who waits for whom is followed. Behind it hope is taken for granted: to wait for too long
 * is better than to say that something is over which goes on. */
#define HOPE_DEPTH_MAX 500u

/* Keys of what is known, beside (pace, place): paces are numbered below all of these. */
#define KEY_LANE UINT32_C(0x80000000) /* with the lane's number; the version */
#define KEY_SLOTS UINT32_C(0xfffffffe)
#define KEY_CELL UINT32_C(0xfffffffd)
#define KEY_TARGET UINT32_C(0xfffffffc)

typedef struct hopes {
    releases *r;
    uint32_t version; /* the one that is asked about; NO: whatever is wanted */
    keymap known;     /* in this pass: targets, and what many wait for */
    keymap proven;    /* targets that have hope, whatever is found later */
    bool circle;      /* somebody was asked who was being asked, in this pass */
    bool found;       /* somebody was found to have hope, in this pass */
    uint32_t depth;
    arena *a;
} hopes;

/* One limit, and a claim that waits at it. */
typedef struct limit {
    uint32_t rule;
    uint32_t pace;   /* NO: slots */
    uint32_t claim;  /* slots */
    uint32_t target; /* a pace */
} limit;

static bool hopeful(hopes *h, uint32_t t);

/* ---- what is known ---- */

/* What is known of it; if nothing is, it is being asked from now on. */
static bool is_known(hopes *h, uint64_t key, bool *ret)
{
    uint32_t is = keymap_get(&h->known, key);
    *ret = is == HOPE_YES;
    h->circle = h->circle || is == HOPE_ASKED;
    if (is == NO && !keymap_put(&h->known, key, HOPE_ASKED))
        rel_no_memory(h->r);
    return is != NO;
}

static bool learn(hopes *h, uint64_t key, bool hope)
{
    if (!keymap_put(&h->known, key, hope ? HOPE_YES : HOPE_NO))
        rel_no_memory(h->r);
    return hope;
}

/* ---- gates ---- */

/* Somebody who is waited for: a job runs there, or it has hope itself. */
static bool gets_on(hopes *h, uint32_t t)
{
    switch (target_state(h->r, t)) {
    case PLACEMENT_IN_FLIGHT: return true;
    case PLACEMENT_WAITING:
    case PLACEMENT_FAILED: return hopeful(h, t); /* a newer version may be about to replace it */
    case PLACEMENT_BLOCKED:
    case PLACEMENT_EXCLUDED:
    case PLACEMENT_DONE: return false;
    }
    return false;
}

/* By time, or by a person: not one who would have to take back what failures have stopped. */
static bool by_itself(const reason *why)
{
    if (why->rule == REASON_STOPPED || (why->rule == REASON_HALTED && why->limit > 0))
        return false;
    return why->next_ms != NEVER || (why->act != RELEASE_COMPLETE && why->act != RELEASE_RETRY);
}

/* A progression waits for the deployment's targets in another environment. */
static bool environment_gets_on(hopes *h, uint32_t t, str name)
{
    const releases *r = h->r;
    uint32_t env = keymap_get(&r->environment_of, names_find(r->core->names, name));
    uint32_t cell =
        env == NO ? NO : keymap_get(&r->cell_of, KEY_PAIR(r->targets.at[t].deployment, env));
    bool hope = false;
    if (cell == NO || is_known(h, KEY_PAIR(KEY_CELL, cell), &hope))
        return hope;
    const index_list *targets = &r->cells.at[cell].targets;
    for (size_t i = 0; i < targets->len && !hope; i++)
        hope = r->targets.at[targets->at[i]].id != 0 && gets_on(h, targets->at[i]);
    return learn(h, KEY_PAIR(KEY_CELL, cell), hope);
}

static bool deployment_gets_on(hopes *h, uint32_t t, str name)
{
    const releases *r = h->r;
    const index_list *on = &r->resources.at[r->targets.at[t].resource].targets;
    bool hope = false;
    for (size_t i = 0; i < on->len && !hope; i++) {
        uint32_t d = r->targets.at[on->at[i]].deployment;
        hope = on->at[i] != t && str_eq(name, rel_text(r, r->deployments.at[d].name)) &&
               gets_on(h, on->at[i]);
    }
    return hope;
}

/* Whether one of those a reason names is enough: a dependency may say so. */
static bool one_is_enough(const hopes *h, uint32_t t, const reason *why)
{
    const rel_lane *lane = &h->r->lanes.at[h->r->targets.at[t].lane];
    size_t at = 0;
    for (uint32_t rule_; (rule_ = lane_next(lane, RULE_DEPLOYMENT_DEPENDENCY, &at)) != NO;) {
        const rel_rule *the = &h->r->rules.at[rule_];
        if (the->doc && the->doc->deployment_dependency->match == DEPENDENCY_ANY &&
            str_eq(the->scope, why->scope))
            return true;
    }
    return false;
}

static bool reason_lets(hopes *h, uint32_t t, const reason *why)
{
    if (by_itself(why) || why->act != RELEASE_COMPLETE)
        return by_itself(why);
    if (why->rule == REASON_PROGRESSION)
        return why->of_count > 0 && environment_gets_on(h, t, why->of[0]);
    bool any = one_is_enough(h, t, why), hope = !any;
    for (size_t i = 0; i < why->of_count && hope != any; i++)
        hope = deployment_gets_on(h, t, why->of[i]);
    return hope && why->of_count > 0;
}

static bool all_let(hopes *h, uint32_t t, const reasons *list)
{
    bool hope = true;
    for (size_t i = 0; i < list->len && hope; i++)
        hope = reason_lets(h, t, &list->at[i]);
    return hope;
}

/* The rules that decide which version is wanted, for one that they do not let through yet. */
static bool version_lets(hopes *h, uint32_t t, uint32_t version_)
{
    releases *r = h->r;
    uint32_t l = r->targets.at[t].lane;
    uint64_t key = KEY_PAIR(KEY_LANE | l, version_);
    bool shared = !r->lanes.at[l].each, hope;
    if (shared && is_known(h, key, &hope))
        return hope;
    chain_context c = {.r = r, .target = t, .lane = l, .version = version_, .group = NO, .a = h->a};
    reasons list = {0};
    hope = chain_explain_version(&c, &list) && all_let(h, t, &list);
    return shared ? learn(h, key, hope) : hope;
}

/* The version that is asked about comes to the target when its own rules let it, whatever has
 * become of the one before. */
static bool comes_behind(const hopes *h, uint32_t t)
{
    const rel_target *target = &h->r->targets.at[t];
    if (h->version == NO || h->r->versions.at[h->version].deployment != target->deployment)
        return false;
    return (target->aim == h->version && target->wanted != h->version) ||
           (target->wanted == h->version && target->failed_version != h->version &&
            target_state(h->r, t) == PLACEMENT_FAILED);
}

static bool gates_let(hopes *h, uint32_t t)
{
    releases *r = h->r;
    const rel_target *target = &r->targets.at[t];
    uint32_t g;
    if (target->aim != NO && !target_pending(r, t) && !member_of_target(r, t, &g) &&
        !version_lets(h, t, target->aim))
        return false;
    reasons list = {0};
    r->gates_only = true;
    bool good = target_reasons(r, t, h->a, &list);
    r->gates_only = false;
    return good && all_let(h, t, &list);
}

/* ---- limits ---- */

/* Whether the limit counts what is done on the target. */
static bool is_under(const hopes *h, const limit *l, uint32_t t)
{
    const releases *r = h->r;
    const rel_target *target = &r->targets.at[t];
    if (target->lane == NO || !index_has(&r->lanes.at[target->lane].rules, l->rule))
        return false;
    const rel_pace *p = l->pace == NO ? NULL : &r->paces.at[l->pace];
    return !p || (p->cell == NO ? target->site != NO && target->environment == p->environment
                                : target->cell == p->cell);
}

/* All of a version group counts if one of its members does. */
static bool group_is_under(const hopes *h, const limit *l, uint32_t g)
{
    bool under = false;
    for (size_t i = 0; g != NO && i < h->r->groups.at[g].members.len && !under; i++)
        under = is_under(h, l, h->r->groups.at[g].members.at[i].target);
    return under;
}

static bool holder_gets_on(hopes *h, const limit *l, str name)
{
    const releases *r = h->r;
    uint32_t res = keymap_get(&r->resource_of, names_find(r->core->names, name));
    r->core->looked_at++;
    if (res == NO)
        return false;
    const rel_resource *resource_ = &r->resources.at[res];
    const rel_hold *hold = l->pace == NO ? hold_find(r, res, l->rule) : NULL;
    if (hold && hold->host)
        return true; /* it gives the slot back when it has booted */
    bool whole = group_is_under(h, l, resource_->active), hope = false;
    for (size_t i = 0; i < resource_->targets.len && !hope; i++) {
        uint32_t t = resource_->targets.at[i];
        bool counts = is_under(h, l, t) || (whole && member_in(r, resource_->active, t));
        hope = counts && gets_on(h, t);
    }
    return hope;
}

/* One who gives its place back is enough. Whoever is ahead waits for the same. */
static bool place_comes(hopes *h, const limit *l, const reason *why)
{
    bool holders = why->holder_count > 0, hope = by_itself(why);
    const str *at = holders ? why->holders : why->of;
    size_t count = holders ? why->holder_count : why->of_count;
    for (size_t i = 0; why->act == RELEASE_COMPLETE && i < count && !hope; i++)
        hope = holder_gets_on(h, l, at[i]);
    return hope;
}

static bool limit_lets(hopes *h, uint64_t key, const limit *l)
{
    bool hope;
    if (is_known(h, key, &hope))
        return hope;
    reasons list = {0};
    hope = l->pace == NO ? slot_reason(h->r, l->claim, l->rule, h->a, &list)
                         : pace_reasons(h->r, l->pace, l->target, h->a, &list);
    for (size_t i = 0; i < list.len && hope; i++)
        hope = place_comes(h, l, &list.at[i]);
    return learn(h, key, hope);
}

static bool slots_let(hopes *h, uint32_t claim)
{
    releases *r = h->r;
    index_list needed = {0};
    bool hope = true;
    claim_rules(r, claim, &needed);
    for (size_t i = 0; i < needed.len && hope; i++) {
        limit l = {.rule = needed.at[i], .pace = NO, .claim = claim};
        if (slot_lacks(r, claim, l.rule))
            hope = limit_lets(h, KEY_PAIR(KEY_SLOTS, l.rule), &l);
    }
    vec_done(&needed);
    return hope;
}

static bool paces_let_target(hopes *h, uint32_t t)
{
    static const rule_kind kinds[] = {RULE_DEPLOYMENT_POLICY, RULE_ROLLOUT_STRATEGY};
    const releases *r = h->r;
    bool hope = true;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t p = pace_next(r, t, kinds[k], NO); p != NO && hope;
             p = pace_next(r, t, kinds[k], p)) {
            limit l = {.rule = r->paces.at[p].rule, .pace = p, .target = t};
            if (!pace_permits(r, p, t))
                hope = limit_lets(h, KEY_PAIR(p, pace_place(r, p, t)), &l);
        }
    return hope;
}

static bool paces_let(hopes *h, uint32_t claim)
{
    const releases *r = h->r;
    bool hope = true;
    if (paces_permit(r, claim))
        return true;
    if (!CLAIM_IS_GROUP(claim))
        return paces_let_target(h, CLAIM_INDEX(claim));
    const rel_group *g = &r->groups.at[CLAIM_INDEX(claim)];
    for (size_t i = 0; i < g->members.len && hope; i++)
        hope = paces_let_target(h, g->members.at[i].target);
    return hope;
}

/* What has begun, or goes back, needs slots only. A group that is collecting is asked for nothing
 * before it has locked. */
static bool limits_let(hopes *h, uint32_t t)
{
    const releases *r = h->r;
    const rel_target *target = &r->targets.at[t];
    uint32_t g;
    if (member_of_target(r, t, &g)) {
        rel_group_state state = r->groups.at[g].state;
        bool begun = state == GROUP_STATE_EXECUTING || state == GROUP_STATE_FAILED;
        return slots_let(h, CLAIM_GROUP(g)) && (begun || paces_let(h, CLAIM_GROUP(g)));
    }
    bool back = target->rollback_to != NO || target->failed_rollback;
    if (target->site != NO && !back)
        return true;
    return slots_let(h, CLAIM_TARGET(t)) && (back || paces_let(h, CLAIM_TARGET(t)));
}

/* ---- all of it ---- */

static bool hopeful(hopes *h, uint32_t t)
{
    uint64_t key = KEY_PAIR(KEY_TARGET, t);
    bool hope;
    if (keymap_get(&h->proven, t) != NO || h->depth == HOPE_DEPTH_MAX || h->r->core->no_memory ||
        h->r->targets.at[t].lane == NO) /* it is looked at in the next step */
        return true;
    if (is_known(h, key, &hope))
        return hope;
    h->r->core->looked_at++;
    h->depth++;
    arena_place before = arena_mark(h->a);
    hope =
        comes_behind(h, t) ? version_lets(h, t, h->version) : limits_let(h, t) && gates_let(h, t);
    arena_rewind(h->a, before);
    h->depth--;
    h->found = h->found || hope;
    if (hope && !keymap_put(&h->proven, t, HOPE_YES))
        rel_no_memory(h->r);
    return learn(h, key, hope);
}

bool hope_of_any(releases *r, const index_list *waits, uint32_t version_)
{
    hopes h = {.r = r, .version = version_, .a = arena_new(0)};
    bool hope = false, again = h.a != NULL || rel_no_memory(r);
    while (!hope && again) {
        keymap_clear(&h.known);
        h.circle = h.found = false;
        for (size_t i = 0; i < waits->len && !hope; i++)
            hope = hopeful(&h, waits->at[i]);
        again = h.circle && h.found && !r->core->no_memory;
    }
    arena_free(h.a);
    keymap_done(&h.known);
    keymap_done(&h.proven);
    return hope;
}
