/* SPDX-License-Identifier: Apache-2.0 */
/* Which version of each deployment the batches or partitions of a pace bring out. Another one in
 * mid-rollout is an edit: it lifts stops and halts, and batches begin anew. The note is saved, so
 * that a version published while nobody looked is one too. Decides nothing else:
 * rule_compartments.c and rule_partitions.c act on "edited".
 *
 * A version is noted when a member has it to do, not when it is published: what the rules that
 * choose versions hold back is no work yet. */
#include "engine/pace_work.h"
#include "base/mem.h"
#include "engine/cohort.h"

static rel_work *work_of(const rel_pace *p, uint32_t deployment_)
{
    for (size_t i = 0; i < p->works.len; i++)
        if (p->works.at[i].deployment == deployment_)
            return &p->works.at[i];
    return NULL;
}

/* Whether some target of the pace may still have the version. A bracket keeps to what it locked,
 * whatever the rules say by now, and locks anew only what was withdrawn. */
static bool stands(const releases *r, const rel_pace *p, uint32_t v)
{
    if (!version_ready(r, v))
        return false;
    if (p->cell == NO)
        return true;
    const index_list *lanes = &r->cells.at[p->cell].lanes;
    for (size_t i = 0; i < lanes->len; i++) {
        const rel_lane *lane = &r->lanes.at[lanes->at[i]];
        if (lane->users == 0 || !lane_paced(lane, p->rule))
            continue;
        if (lane->each)
            return true;
        for (size_t k = 0; k < lane->candidates.len; k++)
            if (lane->candidates.at[k].version == v && lane->candidates.at[k].passes)
                return true;
    }
    return false;
}

/* Whether work at this version is not what the pace is at. */
static bool is_news(const releases *r, const rel_pace *p, uint32_t deployment_, uint32_t v)
{
    const rel_work *w = work_of(p, deployment_);
    if (!w || w->version == v)
        return !w;
    return version_newer(r, v, w->version) || !stands(r, p, w->version);
}

/* Whether a target in the environment has the version already: then whoever joins only catches up
 * with the others. */
static bool runs_already(const releases *r, const rel_pace *p, uint32_t deployment_, uint32_t v)
{
    const index_list *cells = &r->deployments.at[deployment_].cells;
    for (size_t i = 0; i < cells->len; i++) {
        const rel_cell *cell = &r->cells.at[cells->at[i]];
        for (size_t k = 0; cell->environment == p->environment && k < cell->targets.len; k++)
            if (r->targets.at[cell->targets.at[k]].id != 0 &&
                r->targets.at[cell->targets.at[k]].current == v)
                return true;
    }
    return false;
}

/* Whether such work is an edit. The first that is known of a pace tells nothing of what it did
 * before. */
static bool is_edit(const releases *r, const rel_pace *p, uint32_t deployment_, uint32_t v)
{
    return p->begun && is_news(r, p, deployment_, v) &&
           (work_of(p, deployment_) || !runs_already(r, p, deployment_, v));
}

bool pace_work_edits(const releases *r, const rel_pace *p, uint32_t t, uint32_t v)
{
    return is_edit(r, p, r->targets.at[t].deployment, v);
}

static void note(releases *r, uint32_t p, uint32_t deployment_, uint32_t v)
{
    rel_pace *pace = &r->paces.at[p];
    if (!is_news(r, pace, deployment_, v))
        return;
    rel_work *w = work_of(pace, deployment_);
    pace->edited = pace->edited || is_edit(r, pace, deployment_, v);
    if (w)
        w->version = v;
    else if (!vec_push(&pace->works, (rel_work){deployment_, v}))
        rel_no_memory(r);
    pace_mark(r, p);
}

void pace_work_target(releases *r, uint32_t p, uint32_t t)
{
    if (target_pending(r, t))
        note(r, p, r->targets.at[t].deployment, r->targets.at[t].wanted);
}

/* The version that a member of a group has to do and that the pace counts; NO: nothing. Hooks and
 * members that run again what runs there already bring nothing new. */
static uint32_t member_work(const releases *r, const rel_pace *p, const rel_member *m)
{
    const rel_target *t = &r->targets.at[m->target];
    uint32_t v = m->later != NO ? m->later : m->version;
    bool counts =
        v != NO && v != t->current && t->lane != NO && lane_paced(&r->lanes.at[t->lane], p->rule);
    return counts && version_ready(r, v) ? v : NO;
}

static void work_group(releases *r, uint32_t p, uint32_t g)
{
    for (size_t i = 0; g != NO && i < r->groups.at[g].members.len; i++) {
        const rel_member *m = &r->groups.at[g].members.at[i];
        uint32_t v = member_work(r, &r->paces.at[p], m);
        if (v != NO)
            note(r, p, r->targets.at[m->target].deployment, v);
    }
}

void pace_work_resource(releases *r, uint32_t p, uint32_t res)
{
    const index_list *sites = &r->resources.at[res].sites;
    for (size_t i = 0; i < sites->len; i++) {
        const rel_site *site = &r->sites.at[sites->at[i]];
        if (site->environment != r->paces.at[p].environment)
            continue;
        work_group(r, p, site->active);
        work_group(r, p, site->ready);
    }
}

bool pace_work_take(rel_pace *p)
{
    bool edited = p->edited;
    p->edited = false;
    p->begun = p->works.len > 0;
    return edited;
}

void pace_work_forget(rel_pace *p)
{
    p->works.len = 0;
    p->begun = p->edited = false;
}

/* ---- from scratch ---- */

static bool known(const releases *r, const rel_pace *p, uint32_t deployment_, uint32_t v,
                  err *error)
{
    return !is_news(r, p, deployment_, v) ||
           err_set(error, "its pace does not know that %.*s is brought to %.*s",
                   STR_ARG(rel_text(r, r->deployments.at[deployment_].name)),
                   STR_ARG(rel_text(r, r->versions.at[v].tag)));
}

static bool counts(const rel_pace *p, uint32_t res)
{
    return p->partition ? partition_pace_has(p, res)
                        : cohort_state(p->cohort, res) != MEMBER_ABSENT;
}

bool pace_work_compare(const releases *r, const rel_pace *p, err *error)
{
    for (size_t i = 0; p->cell != NO && i < r->cells.at[p->cell].targets.len; i++) {
        uint32_t t = r->cells.at[p->cell].targets.at[i];
        const rel_target *target = &r->targets.at[t];
        if (target->id != 0 && target->site == NO && target->lane != NO &&
            lane_paced(&r->lanes.at[target->lane], p->rule) && target_pending(r, t) &&
            !known(r, p, target->deployment, target->wanted, error))
            return false;
    }
    for (uint32_t g = 0; p->cell == NO && g < r->groups.len; g++) {
        const rel_group *group = &r->groups.at[g];
        if (!group->used || r->sites.at[group->site].environment != p->environment ||
            !counts(p, r->sites.at[group->site].resource))
            continue;
        for (size_t i = 0; i < group->members.len; i++) {
            uint32_t v = member_work(r, p, &group->members.at[i]);
            uint32_t d = r->targets.at[group->members.at[i].target].deployment;
            if (v != NO && !known(r, p, d, v, error))
                return false;
        }
    }
    return true;
}

/* ---- after a restart ---- */

static int by_name(const void *a, const void *b, void *context)
{
    const releases *r = context;
    const rel_work *x = a, *y = b;
    return str_cmp(rel_text(r, r->deployments.at[x->deployment].name),
                   rel_text(r, r->deployments.at[y->deployment].name));
}

void pace_work_save(const releases *r, const rel_pace *p, buf *out)
{
    VEC(rel_work) sorted = {0};
    for (size_t i = 0; i < p->works.len; i++)
        if (!vec_push(&sorted, p->works.at[i]))
            out->failed = true;
    if (sorted.len > 1)
        qsort_r(sorted.at, sorted.len, sizeof *sorted.at, by_name, (void *)(uintptr_t)r);
    for (size_t i = 0; i < sorted.len; i++) {
        buf_addz(out, i == 0 ? ",\"versions\":{" : ",");
        buf_add_json(out, rel_text(r, r->deployments.at[sorted.at[i].deployment].name));
        buf_addc(out, ':');
        buf_add_json(out, rel_text(r, r->versions.at[sorted.at[i].version].tag));
    }
    if (sorted.len > 0)
        buf_addc(out, '}');
    vec_done(&sorted);
}

/* Records from before the note was kept have none: what the first step finds is taken as known. */
void pace_work_restore(releases *r, uint32_t p, yyjson_val *saved)
{
    pace_work_forget(&r->paces.at[p]);
    yyjson_obj_iter walk = yyjson_obj_iter_with(yyjson_obj_get(saved, "versions"));
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *tag = yyjson_obj_iter_get_val(key);
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        uint32_t d = keymap_get(&r->deployment_of, names_find(r->core->names, name));
        if (d == NO || !yyjson_is_str(tag))
            continue;
        str text = {yyjson_get_str(tag), yyjson_get_len(tag)};
        rel_work w = {d, version_by_tag(r, d, rel_name(r, text))};
        if (w.version == NO || !vec_push(&r->paces.at[p].works, w))
            rel_no_memory(r);
    }
    r->paces.at[p].begun = r->paces.at[p].works.len > 0;
}
