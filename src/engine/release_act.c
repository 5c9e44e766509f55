/* SPDX-License-Identifier: Apache-2.0 */
/* What people do: approve, retry, skip, bypass, roll back, freeze, pause, halt, and take a slot. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

/* ---- freezes ---- */

static void freeze_match(releases *r, rel_freeze *f, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    bool in = false;
    /* A freeze whose selector cannot be evaluated holds: nothing fails open. */
    if (!scope_release_matches(
            r, &f->expression,
            (scope_release){target->deployment, target->environment, target->resource, NO}, &in,
            NULL))
        in = true;
    if (!bitset_put(&f->targets, t, in))
        rel_no_memory(r);
}

void freezes_match(releases *r, uint32_t t)
{
    for (size_t i = 0; i < r->freezes.len; i++)
        if (r->freezes.at[i].expression.source.ptr && !r->freezes.at[i].failed)
            freeze_match(r, &r->freezes.at[i], t);
}

bool target_frozen(const releases *r, uint32_t t, const rel_freeze **ret)
{
    for (size_t i = 0; i < r->freezes.len; i++) {
        const rel_freeze *f = &r->freezes.at[i];
        if (f->failed || !f->expression.source.ptr || bitset_has(&f->targets, t)) {
            *ret = f;
            return true;
        }
    }
    return false;
}

static void freeze_drop(releases *r, size_t at)
{
    bitset_done(&r->freezes.at[at].targets);
    memmove(&r->freezes.at[at], &r->freezes.at[at + 1],
            (r->freezes.len - at - 1) * sizeof *r->freezes.at);
    r->freezes.len--;
}

static void freeze_drop_named(releases *r, name_id name)
{
    for (size_t i = r->freezes.len; i-- > 0;)
        if (r->freezes.at[i].name == name)
            freeze_drop(r, i);
}

/* By a person: the one of that name, or all. A name that is not known is no freeze's. */
static void thaw(releases *r, str name)
{
    name_id known = names_find(r->core->names, name);
    if (name.len > 0 && known != 0)
        freeze_drop_named(r, known);
    while (name.len == 0 && r->freezes.len > 0)
        freeze_drop(r, r->freezes.len - 1);
}

static void people_wake(releases *r)
{
    int64_t next = NEVER;
    for (size_t i = 0; i < r->freezes.len; i++)
        if (r->freezes.at[i].until_ms != 0)
            next = earlier(next, r->freezes.at[i].until_ms);
    for (size_t i = 0; i < r->bypasses.len; i++)
        if (r->bypasses.at[i].until_ms != 0)
            next = earlier(next, r->bypasses.at[i].until_ms);
    wake_at(r, WAKE_PEOPLE, 0, next);
}

void people_freeze(releases *r, rel_freeze f)
{
    freeze_drop_named(r, f.name);
    str text = rel_text(r, f.selector);
    if (text.len > 0)
        f.failed = !expression_compile(&r->expressions, text, SCOPE_POLICY, &f.expression, NULL);
    if (!vec_push(&r->freezes, f)) {
        rel_no_memory(r);
        return;
    }
    rel_freeze *last = &r->freezes.at[r->freezes.len - 1];
    for (uint32_t t = 0; text.len > 0 && !f.failed && t < r->targets.len; t++)
        if (r->targets.at[t].id != 0)
            freeze_match(r, last, t);
    people_wake(r);
    mark_all(r);
}

void releases_freezes(const void *self, freeze_visitor visit, void *context)
{
    const releases *r = self;
    for (size_t i = 0; i < r->freezes.len; i++) {
        const rel_freeze *f = &r->freezes.at[i];
        freeze_view view = {.name = rel_text(r, f->name),
                            .selector = rel_text(r, f->selector),
                            .reason = rel_text(r, f->reason),
                            .who = rel_text(r, f->who),
                            .at_ms = f->at_ms,
                            .until_ms = f->until_ms};
        if (!visit(context, &view))
            return;
    }
}

/* ---- bypasses ---- */

const rel_bypass *bypass_find(const releases *r, uint32_t rule_, uint32_t version_,
                              uint32_t environment_, uint32_t resource_)
{
    if (version_ == NO)
        return NULL;
    for (size_t i = 0; i < r->bypasses.len; i++) {
        const rel_bypass *b = &r->bypasses.at[i];
        if (b->rule == r->rules.at[rule_].id && b->version == r->versions.at[version_].id &&
            (b->environment == 0 || b->environment == r->environments.at[environment_].name) &&
            (b->resource == 0 ||
             (resource_ != NO && b->resource == r->resources.at[resource_].name)) &&
            (b->until_ms == 0 || r->core->now_ms < b->until_ms))
            return b;
    }
    return NULL;
}

void people_bypass(releases *r, rel_bypass b)
{
    if (!vec_push(&r->bypasses, b)) {
        rel_no_memory(r);
        return;
    }
    for (size_t i = 0; i < r->rules.len; i++)
        if (r->rules.at[i].id == b.rule)
            r->rules.at[i].bypassed = true;
    people_wake(r);
    r->refill = true; /* a bypass for one resource ends what its lane has in common */
    mark_all(r);
}

void people_expire(releases *r)
{
    int64_t now = r->core->now_ms;
    for (size_t i = r->freezes.len; i-- > 0;)
        if (r->freezes.at[i].until_ms != 0 && r->freezes.at[i].until_ms <= now)
            freeze_drop(r, i);
    size_t kept = 0;
    for (size_t i = 0; i < r->bypasses.len; i++)
        if (r->bypasses.at[i].until_ms == 0 || r->bypasses.at[i].until_ms > now)
            r->bypasses.at[kept++] = r->bypasses.at[i];
    r->bypasses.len = kept;
    people_wake(r);
    r->refill = true;
    mark_all(r);
}

/* ---- approvals ---- */

void people_approve(releases *r, rel_approval a)
{
    /* The same person's word for the same thing is one record, the last one. */
    size_t kept = 0;
    for (size_t i = 0; i < r->approvals.len; i++) {
        const rel_approval *b = &r->approvals.at[i];
        bool same = b->version == a.version && b->who == a.who &&
                    (b->environment == a.environment || a.environment == 0);
        if (!same || (b->approved && a.approved))
            r->approvals.at[kept++] = r->approvals.at[i];
        if (same && b->approved && a.approved && b->environment == a.environment)
            return;
    }
    r->approvals.len = kept;
    if (!vec_push(&r->approvals, a))
        rel_no_memory(r);
}

static void approve(releases *r, const fact_act *act)
{
    uint32_t v = version_by_id(r, act->version, act->change);
    if (v == NO)
        return;
    people_approve(r, (rel_approval){.version = r->versions.at[v].id,
                                     .environment = rel_name(r, act->environment),
                                     .who = rel_name(r, act->who),
                                     .at_ms = r->core->now_ms,
                                     .approved = act->act == ACT_APPROVE});
    const rel_deployment *d = &r->deployments.at[r->versions.at[v].deployment];
    for (size_t c = 0; c < d->cells.len; c++) {
        const rel_cell *cell = &r->cells.at[d->cells.at[c]];
        for (size_t l = 0; l < cell->lanes.len; l++)
            mark_lane(r, cell->lanes.at[l]);
    }
}

/* ---- acts on targets ---- */

static void retry_target(releases *r, uint32_t t, uint32_t version_)
{
    rel_target *target = &r->targets.at[t];
    uint32_t g;
    target_pardon(r, t, version_);
    r->resources.at[target->resource].quarantined = false;
    if (target->job == 0) {
        if (target->failed_rollback && target->current != NO && target->failed_version != NO &&
            !member_of_target(r, t, &g))
            target->rollback_to = target->failed_version;
        /* What failed is not wanted any more: it takes its turn with the others again. */
        if (target->failed_version != NO && target->failed_version != target->wanted &&
            target->rollback_to == NO)
            paces_whole(r, t);
        if (target->attempts > 0 && !target->failed_rollback)
            target->retried = target->failed_version;
        target->failed_version = NO;
        target->attempts = 0;
        target->failed_rollback = false;
        rel_member *m = member_of_target(r, t, &g);
        if (m)
            member_retry(r, g, m);
    }
    mark_resource_all(r, target->resource);
}

/* What people decide on is what is wanted now, also before the first step after a restart. */
static void want_now(releases *r, uint32_t t)
{
    lanes_settle(r);
    if (r->targets.at[t].lane != NO && target_want(r, t))
        claim_withdraw(r, CLAIM_TARGET(t));
}

static void skip_target(releases *r, uint32_t t, uint32_t version_)
{
    want_now(r, t);
    rel_target *target = &r->targets.at[t];
    uint32_t g;
    rel_member *m = member_of_target(r, t, &g);
    r->resources.at[target->resource].quarantined = false;
    if (m && (version_ == NO || version_ == m->version)) {
        member_skip(r, g, m);
    } else if (target->job == 0) {
        uint32_t v = version_ != NO ? version_ : target->wanted;
        if (v != NO && v != target->current)
            target_refuse(r, t, v, REFUSAL_SKIPPED);
        target->failed_version = NO;
        target->retried = NO;
        target->attempts = 0;
        target->failed_rollback = false;
    }
    mark_resource_all(r, target->resource);
}

static void rollback_target(releases *r, uint32_t t, uint32_t version_)
{
    want_now(r, t);
    rel_target *target = &r->targets.at[t];
    uint32_t g;
    rel_member *m = member_of_target(r, t, &g);
    if (target->job != 0 || target->current == NO)
        return;
    if (m) {
        if (m->state == MEMBER_IS_FAILED && m->good != NO && m->role == ROLE_MEMBER) {
            member_retry(r, g, m);
            m->state = MEMBER_IS_TO_ROLL_BACK;
        }
        return;
    }
    bool failed = target->failed_version != NO && target->failed_version == target->wanted;
    uint32_t bad = failed ? target->failed_version : target->current;
    uint32_t to = failed ? target->current : target->previous;
    if (to == NO || (version_ != NO && version_ != bad))
        return;
    target_refuse(r, t, bad, REFUSAL_ROLLED_BACK);
    target->rollback_to = to;
    mark_resource_all(r, target->resource);
}

static bool named(const releases *r, name_id n, str text)
{
    return text.len == 0 || str_eq(rel_text(r, n), text);
}

static void on_targets(releases *r, const fact_act *act,
                       void (*what)(releases *, uint32_t, uint32_t))
{
    uint32_t res = NO;
    if (act->target.len > 0) {
        res = keymap_get(&r->resource_of, names_find(r->core->names, act->target));
        if (res == NO)
            return;
    }
    uint32_t version_ = act->version.len > 0 ? version_by_id(r, act->version, act->change) : NO;
    if (act->version.len > 0 && version_ == NO)
        return;
    index_list chosen = {0};
    size_t count = res == NO ? r->targets.len : r->resources.at[res].targets.len;
    for (size_t i = 0; i < count; i++) {
        uint32_t t = res == NO ? (uint32_t)i : r->resources.at[res].targets.at[i];
        const rel_target *target = &r->targets.at[t];
        if (target->id != 0 && named(r, r->deployments.at[target->deployment].name, act->change) &&
            named(r, r->environments.at[target->environment].name, act->environment) &&
            (version_ == NO || r->versions.at[version_].deployment == target->deployment))
            index_add(r, &chosen, t);
    }
    targets_in_order(r, &chosen);
    for (size_t i = 0; i < chosen.len; i++)
        what(r, chosen.at[i], version_);
    vec_done(&chosen);
}

/* ---- pause, halt, resume ---- */

bool releases_paused(const void *self, str change)
{
    const releases *r = self;
    uint32_t d = keymap_get(&r->deployment_of, names_find(r->core->names, change));
    return d != NO && (r->deployments.at[d].paused || r->deployments.at[d].halted);
}

static void hold(releases *r, const fact_act *act)
{
    uint32_t d = act->change.len == 0
                     ? NO
                     : keymap_get(&r->deployment_of, names_find(r->core->names, act->change));
    uint32_t res = act->target.len == 0
                       ? NO
                       : keymap_get(&r->resource_of, names_find(r->core->names, act->target));
    bool on = act->act != ACT_RESUME;
    if (d != NO && act->act != ACT_HALT)
        r->deployments.at[d].paused = on;
    if (d != NO && act->act != ACT_PAUSE)
        r->deployments.at[d].halted = on;
    if (res != NO && act->act != ACT_PAUSE)
        r->resources.at[res].halted = on;
    if (act->change.len == 0 && act->target.len == 0 && act->act != ACT_PAUSE)
        r->halted = on;
    for (uint32_t t = 0; t < r->targets.len; t++)
        if (r->targets.at[t].id != 0 && (d == NO || r->targets.at[t].deployment == d) &&
            (res == NO || r->targets.at[t].resource == res)) {
            mark_target(r, t);
            mark_site(r, r->targets.at[t].site);
        }
}

void act_take(releases *r, const fact_act *a)
{
    uint32_t res = NO;
    switch (a->act) {
    case ACT_PAUSE:
    case ACT_RESUME:
    case ACT_HALT:
        hold(r, a);
        partition_acts(r, a);
        return;
    case ACT_APPROVE:
    case ACT_REJECT:
        partition_acts(r, a);
        if (a->version.len > 0)
            approve(r, a);
        return;
    case ACT_RETRY: on_targets(r, a, retry_target); return;
    case ACT_SKIP:
        if (a->target.len > 0 || a->change.len > 0)
            on_targets(r, a, skip_target);
        return;
    case ACT_ROLLBACK:
        if (a->target.len > 0 || a->change.len > 0)
            on_targets(r, a, rollback_target);
        return;
    case ACT_BYPASS: {
        uint32_t v = version_by_id(r, a->version, a->change);
        if (v != NO && a->rule.len > 0)
            people_bypass(r, (rel_bypass){.rule = rel_name(r, a->rule),
                                          .version = r->versions.at[v].id,
                                          .environment = rel_name(r, a->environment),
                                          .resource = rel_name(r, a->target),
                                          .at_ms = r->core->now_ms,
                                          .until_ms = a->until_ms,
                                          .reason = rel_name(r, a->reason)});
        return;
    }
    case ACT_FREEZE:
        people_freeze(r,
                      (rel_freeze){.name = rel_name(r, a->name.len > 0 ? a->name : STR("freeze")),
                                   .who = rel_name(r, a->who),
                                   .reason = rel_name(r, a->reason),
                                   .selector = rel_name(r, a->selector),
                                   .at_ms = r->core->now_ms,
                                   .until_ms = a->until_ms});
        return;
    case ACT_THAW:
        thaw(r, a->name);
        people_wake(r);
        mark_all(r);
        return;
    case ACT_CLAIM_SLOT:
    case ACT_FREE_SLOT:
        res = keymap_get(&r->resource_of, names_find(r->core->names, a->target));
        if (res == NO)
            return;
        if (a->act == ACT_CLAIM_SLOT)
            slot_claim_host(r, res, a->rule);
        else
            slot_free_host(r, res, a->rule);
        return;
    case ACT_RESET:
    case ACT_RESET_BATCHES:
        if (!a->keep_batches)
            paces_reset(r, a->change);
        return;
    }
}
