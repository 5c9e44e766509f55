/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules that pace release targets show: reasons, groups, and the check of their state.
 * Nothing here changes anything. */
#include "engine/pace_work.h"
#include "engine/policy_rules.h"

/* What the compartment would say if every gate were open: it is asked as if it were so. */
static bool ask_pace(const releases *r, const rel_pace *p, member_id m, arena *a, reasons *out)
{
    member_state known = cohort_state(p->cohort, m);
    size_t from = out->len;
    if (known == MEMBER_IN_FLIGHT || known == MEMBER_ABSENT)
        return true;
    bool good = cohort_suppose(p->cohort, m, MEMBER_STARTABLE, NEVER);
    good = cohort_reasons(p->cohort, m, a, out) && good;
    good = cohort_suppose(p->cohort, m, known, NEVER) && good;
    for (size_t i = from; good && i < out->len; i++) {
        if (out->at[i].act != RELEASE_RESET)
            continue;
        str *of = ARENA_NEW(a, str);
        good = of != NULL;
        if (!good)
            break;
        *of = pace_change(r, p);
        out->at[i].of = of;
        out->at[i].of_count = 1;
    }
    return good;
}

bool pace_reasons(const releases *r, uint32_t p, uint32_t t, arena *a, reasons *out)
{
    const rel_pace *pace = &r->paces.at[p];
    r->core->looked_at += /* all members are walked */
        pace->cell == NO ? r->resources.len : r->cells.at[pace->cell].targets.len;
    return pace->partition ? partition_pace_reasons(r, p, t, a, out)
                           : ask_pace(r, pace, pace_member(r, pace, t), a, out);
}

bool pace_permits(const releases *r, uint32_t p, uint32_t t)
{
    const rel_pace *pace = &r->paces.at[p];
    return pace->partition
               ? partition_pace_permits(r, p, t)
               : cohort_state(pace->cohort, pace_member(r, pace, t)) == MEMBER_IN_FLIGHT;
}

uint32_t pace_place(const releases *r, uint32_t p, uint32_t t)
{
    const rel_pace *pace = &r->paces.at[p];
    const rel_target *target = &r->targets.at[t];
    member_id m = pace_member(r, pace, t);
    if (pace->cohort)
        return (uint32_t)cohort_compartment_of(pace->cohort, m) << 1 |
               cohort_in_batch(pace->cohort, m);
    return partition_pace_place(pace, target->resource) << 2 |
           (uint32_t)(target->current == NO) << 1 | (target->failed_version != NO);
}

/* Whether work at that version lifts stops, and a halt that failures caused: it is an edit if the
 * pace is not at it yet, and begins a rollout if all was done. */
static bool lifts(const releases *r, const rel_pace *p, uint32_t t, uint32_t version_)
{
    return version_ != NO && (pace_work_edits(r, p, t, version_) ||
                              (p->cohort && p->complete && !target_pending(r, t)));
}

static void forget_lifted(reasons *list, size_t from)
{
    size_t kept = from;
    for (size_t i = from; i < list->len; i++) {
        const reason *why = &list->at[i];
        if (why->act != RELEASE_RESET && !(why->rule == REASON_HALTED && why->limit > 0))
            list->at[kept++] = *why;
    }
    list->len = kept;
}

static bool reasons_of(const releases *r, uint32_t t, uint32_t version_, arena *a, reasons *out)
{
    static const rule_kind kinds[] = {RULE_DEPLOYMENT_POLICY, RULE_ROLLOUT_STRATEGY};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t p = pace_next(r, t, kinds[i], NO); p != NO;
             p = pace_next(r, t, kinds[i], p)) {
            size_t from = out->len;
            if (!pace_reasons(r, p, t, a, out))
                return false;
            if (lifts(r, &r->paces.at[p], t, version_))
                forget_lifted(out, from);
        }
    return true;
}

bool paces_reasons(const releases *r, uint32_t claim, uint32_t version_, arena *a, reasons *out)
{
    if (r->gates_only || paces_permit(r, claim))
        return true;
    if (!CLAIM_IS_GROUP(claim))
        return reasons_of(r, CLAIM_INDEX(claim), version_, a, out);
    const rel_group *g = &r->groups.at[CLAIM_INDEX(claim)];
    for (size_t i = 0; i < g->members.len; i++)
        if (!reasons_of(r, g->members.at[i].target, NO, a, out))
            return false;
    return true;
}

bool paces_check(const releases *r, err *error)
{
    for (size_t i = 0; i < r->paces.len; i++)
        if (r->paces.at[i].partition ? !partition_pace_check(r, &r->paces.at[i], error)
                                     : !cohort_check(r->paces.at[i].cohort, error))
            return err_wrap(error, "rule %.*s",
                            STR_ARG(rel_text(r, r->rules.at[r->paces.at[i].rule].id)));
    return true;
}

bool paces_full(releases *r, err *error)
{
    for (uint32_t p = 0; p < r->paces.len; p++)
        if (r->paces.at[p].partition ? !partition_pace_compare(r, p, error)
                                     : !cohort_full(r->paces.at[p].cohort, error) ||
                                           !pace_work_compare(r, &r->paces.at[p], error))
            return err_wrap(error, "rule %.*s",
                            STR_ARG(rel_text(r, r->rules.at[r->paces.at[p].rule].id)));
    return true;
}

void paces_groups(const releases *r, group_visitor visit, void *context)
{
    for (size_t i = 0; i < r->paces.len; i++) {
        const rel_pace *p = &r->paces.at[i];
        const group_view of = {.change = pace_change(r, p),
                               .rule = rel_text(r, r->rules.at[p->rule].id),
                               .environment = rel_text(r, r->environments.at[p->environment].name)};
        bool more = p->partition ? partition_pace_groups(r, p, visit, context)
                                 : policy_groups(p->cohort, &of, visit, context);
        if (!more)
            return;
    }
}

bool pace_empty(const rel_pace *p)
{
    if (p->partition)
        return partition_pace_empty(p);
    for (size_t i = 0; i < cohort_compartments(p->cohort); i++) {
        compartment_view v;
        cohort_view(p->cohort, i, &v);
        if (v.matched > 0)
            return false;
    }
    return true;
}

const str *pace_members(releases *r, const rel_pace *p, const cohort_event *batch)
{
    str *members = ARENA_ARRAY(r->core->step, (size_t)batch->size, str);
    for (int64_t i = 0; members && i < batch->size; i++) {
        uint32_t m = batch[1 + i].member, at = p->cell == NO ? m : r->targets.at[m].resource;
        members[i] = rel_text(r, r->resources.at[at].name);
    }
    r->core->no_memory |= !members;
    return members;
}
