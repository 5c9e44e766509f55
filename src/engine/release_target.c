/* SPDX-License-Identifier: Apache-2.0 */
/* Which release targets there are: (deployment, environment, resource) where both selectors
 * match; and which policies each falls under. Selectors are evaluated when documents change,
 * never in a step. */
#include <assert.h>

#include "base/mem.h"
#include "engine/chain.h"

/* ---- cells and what is counted over them ---- */

static uint32_t cell_at(releases *r, uint32_t d, uint32_t e)
{
    uint32_t c = keymap_get(&r->cell_of, KEY_PAIR(d, e));
    if (c != NO)
        return c;
    c = (uint32_t)r->cells.len;
    if (!vec_push(&r->cells, (rel_cell){.deployment = d, .environment = e}) ||
        !keymap_put(&r->cell_of, KEY_PAIR(d, e), c)) {
        rel_no_memory(r);
        return NO;
    }
    index_add(r, &r->deployments.at[d].cells, c);
    index_add(r, &r->environments.at[e].cells, c);
    return c;
}

const rel_tally *tally_find(const rel_cell *c, uint32_t version_)
{
    for (size_t i = 0; i < c->tallies.len; i++)
        if (c->tallies.at[i].version == version_)
            return &c->tallies.at[i];
    return NULL;
}

void mark_followers(releases *r, uint32_t cell)
{
    const rel_deployment *d = &r->deployments.at[r->cells.at[cell].deployment];
    for (size_t c = 0; c < d->cells.len; c++) {
        const rel_cell *other = &r->cells.at[d->cells.at[c]];
        for (size_t l = 0; l < other->lanes.len; l++) {
            const rel_lane *lane = &r->lanes.at[other->lanes.at[l]];
            size_t at = 0;
            if (lane_next(lane, RULE_ENVIRONMENT_PROGRESSION, &at) != NO)
                mark_lane(r, other->lanes.at[l]);
        }
    }
}

void tally_add(releases *r, uint32_t target, uint32_t version_, int64_t at_ms, bool success)
{
    uint32_t c = r->targets.at[target].cell;
    rel_cell *cell = &r->cells.at[c];
    rel_tally *tally = (rel_tally *)(uintptr_t)tally_find(cell, version_);
    if (!tally) {
        if (!vec_push(&cell->tallies, (rel_tally){.version = version_})) {
            rel_no_memory(r);
            return;
        }
        tally = &cell->tallies.at[cell->tallies.len - 1];
    }
    rel_success entry = {target, at_ms};
    bool pushed = success ? vec_push(&tally->successes, entry) : vec_push(&tally->failures, entry);
    if (!pushed) {
        rel_no_memory(r);
        return;
    }
    /* Time only goes on, so that this is a move of one place except for what documents tell
     * late. */
    rel_success *at = success ? tally->successes.at : tally->failures.at;
    size_t i = (success ? tally->successes.len : tally->failures.len) - 1;
    for (; i > 0 && at[i - 1].at_ms > at_ms; i--)
        at[i] = at[i - 1];
    at[i] = entry;
    mark_followers(r, c);
}

void tally_forget(releases *r, uint32_t target)
{
    rel_cell *cell = &r->cells.at[r->targets.at[target].cell];
    for (size_t k = 0; k < cell->tallies.len; k++) {
        rel_tally *tally = &cell->tallies.at[k];
        size_t kept = 0;
        for (size_t i = 0; i < tally->successes.len; i++)
            if (tally->successes.at[i].target != target)
                tally->successes.at[kept++] = tally->successes.at[i];
        tally->successes.len = kept;
        kept = 0;
        for (size_t i = 0; i < tally->failures.len; i++)
            if (tally->failures.at[i].target != target)
                tally->failures.at[kept++] = tally->failures.at[i];
        tally->failures.len = kept;
    }
}

/* ---- policies ---- */

/* A policy whose selector cannot be evaluated for a target might hold it: nothing starts there. */
static void policy_match(releases *r, uint32_t p, uint32_t t)
{
    rel_policy *policy = &r->policies.at[p];
    rel_target *target = &r->targets.at[t];
    bool in = false, good = true;
    if (policy->doc && policy->doc->spec.enabled)
        good = scope_release_matches(
            r, &policy->doc->spec.selector,
            (scope_release){target->deployment, target->environment, target->resource, NO}, &in,
            NULL);
    bool was_broken = index_has(&policy->broken, t);
    if (!good && !was_broken)
        index_add(r, &policy->broken, t);
    if (good && was_broken)
        index_drop(&policy->broken, t);
    if (bitset_has(&policy->targets, t) != in && !bitset_put(&policy->targets, t, in))
        rel_no_memory(r);
    if (!target->relane) {
        target->relane = true;
        index_add(r, &r->relanes, t);
    }
}

void policy_match_all(releases *r, uint32_t p)
{
    for (uint32_t t = 0; t < r->targets.len; t++)
        if (r->targets.at[t].id != 0)
            policy_match(r, p, t);
}

/* ---- targets ---- */

/* What the resource's document says runs there already. */
static void current_from_document(releases *r, uint32_t t)
{
    rel_target *target = &r->targets.at[t];
    const resource *doc = r->resources.at[target->resource].object->resource;
    str d = rel_text(r, r->deployments.at[target->deployment].name);
    str e = rel_text(r, r->environments.at[target->environment].name);
    for (size_t i = 0; i < doc->status.releases.len; i++) {
        const resource_release *release = &doc->status.releases.at[i];
        if (!str_eq(release->deployment, d) ||
            (release->environment.len > 0 && !str_eq(release->environment, e)))
            continue;
        uint32_t v = version_by_tag(r, target->deployment, rel_name(r, release->version));
        if (v == NO || v == target->current)
            return;
        target = &r->targets.at[t];
        target->current = v;
        target->current_ms = release->completed_at.set ? release->completed_at.at.seconds * 1000
                                                       : later_of(r->versions.at[v].published_ms,
                                                                  r->core->settings.start_ms);
        if (keymap_get(&r->succeeded, KEY_PAIR(t, v)) == NO) {
            if (!keymap_put(&r->succeeded, KEY_PAIR(t, v), 1))
                rel_no_memory(r);
            tally_add(r, t, v, r->targets.at[t].current_ms, true);
        }
        return;
    }
}

static void target_add(releases *r, uint32_t d, uint32_t e, uint32_t res)
{
    uint32_t c = cell_at(r, d, e), t = (uint32_t)r->targets.len;
    if (c == NO)
        return;
    rel_target fresh = {.id = r->core->next_placement++,
                        .deployment = d,
                        .environment = e,
                        .resource = res,
                        .cell = c,
                        .lane = NO,
                        .site = NO,
                        .current = NO,
                        .previous = NO,
                        .wanted = NO,
                        .aim = NO,
                        .failed_version = NO,
                        .retried = NO,
                        .rollback_to = NO,
                        .waits_in = NO,
                        .job_group = NO,
                        .job_version = NO,
                        .wake_ms = NEVER};
    if (!vec_push(&r->targets, fresh) || !keymap_put(&r->target_of, KEY_PAIR(c, res), t) ||
        !keymap_put(&r->placement_of, fresh.id, t)) {
        rel_no_memory(r);
        return;
    }
    index_add(r, &r->cells.at[c].targets, t);
    index_add(r, &r->resources.at[res].targets, t);
    current_from_document(r, t);
    for (uint32_t p = 0; p < r->policies.len; p++)
        if (r->policies.at[p].doc)
            policy_match(r, p, t);
    if (!r->targets.at[t].relane) {
        r->targets.at[t].relane = true;
        index_add(r, &r->relanes, t);
    }
    freezes_match(r, t);
    mark_followers(r, c);
}

void target_drop(releases *r, uint32_t t)
{
    rel_target *target = &r->targets.at[t];
    claim_withdraw(r, CLAIM_TARGET(t));
    if (target->job != 0) {
        decision *d = decide(r, DECISION_RELEASE, t);
        if (d)
            d->state = STR("gone");
        slots_progress(r, target->resource); /* it moved until now */
    }
    if (target->lane != NO)
        paces_leave(r, t, true);
    tally_forget(r, t);
    target_idle(r, t, false);
    mark_followers(r, target->cell);
    const index_list *sites = &r->resources.at[target->resource].sites;
    for (size_t i = 0; i < sites->len; i++) {
        if (r->sites.at[sites->at[i]].active != NO)
            group_forget_target(r, r->sites.at[sites->at[i]].active, t);
        if (r->sites.at[sites->at[i]].ready != NO)
            group_forget_target(r, r->sites.at[sites->at[i]].ready, t);
    }
    if (target->site != NO)
        site_leave(r, target->site, t);
    if (target->lane != NO)
        r->lanes.at[target->lane].users--;
    rel_cell *cell = &r->cells.at[target->cell];
    index_drop(&cell->targets, t);
    for (size_t i = 0; i < cell->orders.len; i++)
        keymap_remove(&cell->orders.at[i].positions, t);
    /* Where nobody is left, no rollout goes on. */
    while (cell->targets.len == 0 && cell->orders.len > 0)
        order_done(&cell->orders.at[--cell->orders.len]);
    index_drop(&r->resources.at[target->resource].targets, t);
    keymap_remove(&r->target_of, KEY_PAIR(target->cell, target->resource));
    keymap_remove(&r->placement_of, target->id);
    const index_list *versions = &r->deployments.at[target->deployment].versions;
    for (size_t i = 0; i < versions->len; i++) {
        r->versions.at[versions->at[i]].refused -= target_refused(r, t, versions->at[i], NULL);
        keymap_remove(&r->refused, KEY_PAIR(t, versions->at[i]));
        keymap_remove(&r->succeeded, KEY_PAIR(t, versions->at[i]));
    }
    for (size_t p = 0; p < r->policies.len; p++)
        index_drop(&r->policies.at[p].broken, t);
    target->id = 0;
    target->job = 0;
    target->wake_ms = NEVER;
    mark_resource_all(r, target->resource);
}

/* Places of the matrix that come or go with one document, to be settled in the order of names. */
typedef struct matrix_place {
    uint32_t deployment, environment, resource;
} matrix_place;
typedef VEC(matrix_place) matrix_places;

static bool place_wanted(const releases *r, const matrix_place *p)
{
    return r->resources.at[p->resource].object && r->deployments.at[p->deployment].doc &&
           r->environments.at[p->environment].doc &&
           bitset_has(&r->deployments.at[p->deployment].resources, p->resource) &&
           bitset_has(&r->environments.at[p->environment].resources, p->resource);
}

static uint32_t target_at(const releases *r, const matrix_place *p)
{
    uint32_t c = keymap_get(&r->cell_of, KEY_PAIR(p->deployment, p->environment));
    return c == NO ? NO : keymap_get(&r->target_of, KEY_PAIR(c, p->resource));
}

static void place_note(releases *r, matrix_places *list, matrix_place p)
{
    if (place_wanted(r, &p) != (target_at(r, &p) != NO) && !vec_push(list, p))
        rel_no_memory(r);
}

static int compare_places(const void *a, const void *b, void *context)
{
    const releases *r = context;
    const matrix_place *x = a, *y = b;
    int c = str_cmp(rel_text(r, r->deployments.at[x->deployment].name),
                    rel_text(r, r->deployments.at[y->deployment].name));
    if (c == 0)
        c = str_cmp(rel_text(r, r->environments.at[x->environment].name),
                    rel_text(r, r->environments.at[y->environment].name));
    if (c == 0)
        c = str_cmp(rel_text(r, r->resources.at[x->resource].name),
                    rel_text(r, r->resources.at[y->resource].name));
    return c;
}

static void places_settle(releases *r, matrix_places *list)
{
    if (list->len > 1)
        qsort_r(list->at, list->len, sizeof *list->at, compare_places, r);
    for (size_t i = 0; i < list->len; i++) {
        const matrix_place *p = &list->at[i];
        uint32_t t = target_at(r, p);
        if (t == NO)
            target_add(r, p->deployment, p->environment, p->resource);
        else
            target_drop(r, t);
    }
    vec_done(list);
}

/* A selector that cannot be evaluated for a resource leaves it out, as one that is false. */
static bool selects(releases *r, const expression *e, uint32_t res)
{
    bool in = false;
    return r->resources.at[res].object && scope_resource_matches(r, e, res, &in, NULL) && in;
}

static void deployment_selects(releases *r, uint32_t d, uint32_t res)
{
    rel_deployment *deployment_ = &r->deployments.at[d];
    bool in = deployment_->doc && selects(r, &deployment_->doc->spec.resource_selector, res);
    if (!bitset_put(&deployment_->resources, res, in))
        rel_no_memory(r);
}

static void environment_selects(releases *r, uint32_t e, uint32_t res)
{
    rel_environment *env = &r->environments.at[e];
    bool in = env->doc && selects(r, &env->doc->spec.resource_selector, res);
    if (!bitset_put(&env->resources, res, in))
        rel_no_memory(r);
}

void targets_of_deployment(releases *r, uint32_t d)
{
    matrix_places changed = {0};
    for (uint32_t res = 0; res < r->resources.len; res++) {
        deployment_selects(r, d, res);
        for (uint32_t e = 0; e < r->environments.len; e++)
            place_note(r, &changed, (matrix_place){d, e, res});
    }
    places_settle(r, &changed);
}

void targets_of_environment(releases *r, uint32_t e)
{
    matrix_places changed = {0};
    for (uint32_t res = 0; res < r->resources.len; res++) {
        environment_selects(r, e, res);
        for (uint32_t d = 0; d < r->deployments.len; d++)
            place_note(r, &changed, (matrix_place){d, e, res});
    }
    places_settle(r, &changed);
}

void targets_of_resource(releases *r, uint32_t res)
{
    matrix_places changed = {0};
    for (uint32_t e = 0; e < r->environments.len; e++)
        environment_selects(r, e, res);
    for (uint32_t d = 0; d < r->deployments.len; d++) {
        deployment_selects(r, d, res);
        for (uint32_t e = 0; e < r->environments.len; e++)
            place_note(r, &changed, (matrix_place){d, e, res});
    }
    places_settle(r, &changed);
    if (!r->resources.at[res].object)
        return;
    /* What the resource says of itself may have changed what the policies say of it. */
    const index_list *targets = &r->resources.at[res].targets;
    for (size_t i = 0; i < targets->len; i++) {
        for (uint32_t p = 0; p < r->policies.len; p++)
            if (r->policies.at[p].doc)
                policy_match(r, p, targets->at[i]);
        freezes_match(r, targets->at[i]);
        if (r->targets.at[targets->at[i]].current == NO)
            current_from_document(r, targets->at[i]);
    }
}

uint32_t release_find(const releases *r, str deployment_, str environment_, str resource_)
{
    uint32_t d = keymap_get(&r->deployment_of, names_find(r->core->names, deployment_));
    uint32_t e = keymap_get(&r->environment_of, names_find(r->core->names, environment_));
    uint32_t res = keymap_get(&r->resource_of, names_find(r->core->names, resource_));
    if (d == NO || e == NO || res == NO)
        return NO;
    uint32_t c = keymap_get(&r->cell_of, KEY_PAIR(d, e));
    return c == NO ? NO : keymap_get(&r->target_of, KEY_PAIR(c, res));
}
