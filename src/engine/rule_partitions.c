/* SPDX-License-Identifier: Apache-2.0 */
/* rolloutStrategy as a rule of a policy: partitions of any fleet (semantics.md part B).
 *
 * The pass is partition_pass.c's, when a rollout begins is partition_rollout.c's. Here a resource
 * is what a cluster is there: its live version is that of its running or failed job, else the one
 * that runs; applied and ready is who has neither. A pass releases members; each keeps its release
 * until its job starts, and is unavailable from then on until what was started has come to a good
 * end. Whom another gate holds is counted and waited for, so that partitions keep their order;
 * whom a person halted or a time-out quarantined is left out, as a paused cluster is. */
#include <assert.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "engine/cluster_match.h"
#include "engine/pace_work.h"
#include "engine/rule_partitions_internal.h"

const rule_ops partition_rule_ops = {.order = 11, .level = LEVEL_ELSEWHERE};

/* ---- life ---- */

static bool matches(void *context, member_id res, size_t definition)
{
    const rel_partitions *x = context;
    const rollout_strategy *s = strategy_of(x);
    const object *o = x->r->resources.at[res].object;
    if (!s || !o || definition >= s->partitions.len)
        return false;
    match_subject subject = {.name = resource_name(x->r, res), .labels = o->metadata->labels};
    return cluster_match_accepts(&s->partitions.at[definition].match, &subject);
}

struct rel_partitions *partition_pace_free(rel_partitions *x)
{
    if (!x)
        return NULL;
    partitions_free(x->roll.pacing);
    vec_done(&x->members);
    vec_done(&x->doubted);
    vec_done(&x->picks);
    vec_done(&x->seen.parts);
    return mem_free(x);
}

bool partition_pace_new(releases *r, uint32_t p)
{
    rel_partitions *x = mem_zalloc(sizeof *x);
    if (!x)
        return false;
    x->r = r;
    x->rule = r->paces.at[p].rule;
    x->roll.pacing = partitions_new(matches, x);
    if (!x->roll.pacing) {
        partition_pace_free(x);
        return false;
    }
    r->paces.at[p].partition = x;
    return true;
}

void partition_pace_rule(releases *r, uint32_t p)
{
    rel_partitions *x = r->paces.at[p].partition;
    const rollout_strategy *s = strategy_of(x);
    bool fresh = x->roll.everything == 0;
    if (s && !partition_rollout_set(&x->roll, s, fresh))
        rel_no_memory(r);
}

/* Where nobody is left nothing goes on: the next member begins anew. */
static void begin_anew(releases *r, uint32_t p)
{
    rel_partitions *old = r->paces.at[p].partition;
    r->paces.at[p].partition = NULL;
    if (!partition_pace_new(r, p)) {
        r->paces.at[p].partition = old;
        rel_no_memory(r);
        return;
    }
    partition_pace_free(old);
    pace_work_forget(&r->paces.at[p]);
    partition_pace_rule(r, p);
}

/* ---- members ---- */

bool partition_pace_has(const rel_pace *p, uint32_t res)
{
    return member_at(p->partition, res) != NULL;
}

bool partition_pace_empty(const rel_pace *p)
{
    return p->partition->count == 0;
}

void partition_pace_join(releases *r, uint32_t p, uint32_t res)
{
    rel_partitions *x = r->paces.at[p].partition;
    str name = resource_name(r, res);
    bool good = true;
    while (good && x->members.len <= res)
        good = vec_push(&x->members, (part_member){0});
    bool joins = good && !x->members.at[res].present;
    if (joins) {
        good = partitions_join(x->roll.pacing, res, name, name, STR_EMPTY);
        x->members.at[res] = (part_member){.present = good};
        x->count += good;
    }
    /* Other labels may put it into a partition if it is in none; whoever is in one stays there. */
    if (good && partitions_of(x->roll.pacing, res) == PARTITION_NONE)
        good = partitions_assign(x->roll.pacing, res);
    if (!good)
        rel_no_memory(r);
    x->roll.dirty = true;
    pace_mark(r, p);
}

void partition_pace_leave(releases *r, uint32_t p, uint32_t res)
{
    rel_partitions *x = r->paces.at[p].partition;
    if (!member_at(x, res))
        return;
    partitions_leave(x->roll.pacing, res);
    x->members.at[res] = (part_member){0};
    x->count--;
    x->roll.dirty = true;
    pace_mark(r, p);
}

/* ---- what a member is to the pass ---- */

static uint64_t version_wish(const releases *r, uint32_t v)
{
    return v == NO ? 0 : r->versions.at[v].wish;
}

static standing target_standing(const releases *r, uint32_t t, const part_member *m)
{
    const rel_target *x = &r->targets.at[t];
    uint64_t wish = version_wish(r, x->wanted);
    uint64_t live = x->job != 0 ? version_wish(r, x->job_version)
                    : m->down   ? m->live
                                : version_wish(r, x->current);
    return (standing){
        .has = x->current != NO,
        .pending = target_pending(r, t),
        .current = live != 0 && live == wish,
        .busy = x->job != 0 || x->rollback_to != NO || x->failed_rollback,
        .rollback = x->rollback_to != NO,
        .live = live,
        .wish = wish,
        .failed = x->attempts > 0 ? version_wish(r, x->failed_version) : 0,
    };
}

static uint64_t group_wish(const releases *r, uint32_t g)
{
    uint64_t wish = 0;
    for (size_t i = 0; i < r->groups.at[g].members.len; i++) {
        const rel_member *m = &r->groups.at[g].members.at[i];
        if (m->role == ROLE_MEMBER)
            wish += r->deployments.at[r->targets.at[m->target].deployment].hash *
                    version_wish(r, m->version);
    }
    return wish | 1;
}

/* A resource counts once, whatever the number of its sites in the environment. */
static standing site_standing(const releases *r, const rel_pace *p, uint32_t res)
{
    const index_list *sites = &r->resources.at[res].sites;
    standing all = {.current = true};
    for (size_t i = 0; i < sites->len; i++) {
        const rel_site *site = &r->sites.at[sites->at[i]];
        if (site->environment != p->environment)
            continue;
        bool active = group_under(r, site->active, p->rule);
        bool ready = group_under(r, site->ready, p->rule);
        for (size_t k = 0; k < site->targets.len; k++) {
            const rel_target *t = &r->targets.at[site->targets.at[k]];
            bool under = t->lane != NO && lane_paced(&r->lanes.at[t->lane], p->rule);
            all.has = all.has || (under && t->current != NO);
        }
        all.down = all.down || active || (ready && r->groups.at[site->ready].took_over);
        all.pending = all.pending || ready;
        if (active || ready)
            all.wish += group_wish(r, ready ? site->ready : site->active);
    }
    all.current = !all.pending;
    return all;
}

unsigned flags_of(const releases *r, const part_member *m, const standing *s, uint32_t res,
                  bool gates)
{
    bool down = m->down || s->down || s->busy;
    bool halted = r->resources.at[res].halted && !down;
    bool out = (!s->has && !s->pending && !down) || halted || r->resources.at[res].quarantined;
    bool current = s->current || m->released;
    bool available = !down && !m->released;
    unsigned flags = out ? PACED_OUT : 0; /* with what it is once it is let in */
    if (s->has || down || m->released)
        flags |= PACED_HAS;
    if (current)
        flags |= PACED_CURRENT;
    if (available && s->has)
        flags |= PACED_AVAILABLE;
    if (!current && (!s->pending || !gates || s->rollback))
        flags |= PACED_HELD;
    return flags;
}

/* A wish that changed may begin a rollout, also that of one member: a version that was skipped
 * there and is taken up again. An edit, which lifts a halt for all, is another version than the
 * pace is at (pace_work.c), and neither that nor that a member left its group. */
static void note_wish(rel_partitions *x, part_member *m, const standing *s, bool bracket)
{
    if (bracket && s->wish == 0 && m->known)
        return; /* nothing is locked: the last wish stands */
    bool changed = m->known && m->wish != s->wish && s->pending;
    m->known = true;
    m->wish = s->wish;
    if (x->usual == 0 || changed)
        x->usual = s->wish;
    if (changed)
        x->roll.work_changed = x->roll.dirty = true;
}

standing standing_of(const releases *r, const rel_pace *p, uint32_t t)
{
    uint32_t res = r->targets.at[t].resource;
    return p->cell == NO ? site_standing(r, p, res)
                         : target_standing(r, t, &p->partition->members.at[res]);
}

static void refresh(releases *r, uint32_t p, uint32_t t, bool gates)
{
    const rel_pace *pace = &r->paces.at[p];
    rel_partitions *x = pace->partition;
    uint32_t res = r->targets.at[t].resource;
    part_member *m = &x->members.at[res];
    standing s = standing_of(r, pace, t);
    bool news = !m->known && s.failed != 0;
    if (news) {
        m->down = true;
        m->live = s.failed;
    }
    bool down = m->down && (s.pending || s.busy);
    news = news || down != m->down;
    m->down = down;
    if (news)
        s = standing_of(r, pace, t);
    note_wish(x, m, &s, pace->cell == NO);
    r->core->looked_at++;
    if (partitions_set(x->roll.pacing, res, flags_of(r, m, &s, res, gates)))
        x->roll.dirty = true;
    if (x->roll.dirty)
        pace_mark(r, p);
}

void partition_pace_report(releases *r, uint32_t p, partition_news news)
{
    const rel_pace *pace = &r->paces.at[p];
    uint32_t res = r->targets.at[news.target].resource;
    part_member *m = member_at(pace->partition, res);
    if (!m)
        return;
    bool gates = gates_of(r, p, news.target, news.gates);
    if (pace->cell != NO)
        pace_work_target(r, p, news.target);
    bool doubted = m->released && !gates && !news.kept;
    if (doubted && !m->doubted) {
        index_add(r, &pace->partition->doubted, res);
        pace_mark(r, p);
    }
    m->doubted = doubted;
    refresh(r, p, news.target, gates);
}

void partition_pace_started(releases *r, uint32_t p, uint32_t t)
{
    part_member *m = member_at(r->paces.at[p].partition, r->targets.at[t].resource);
    if (!m)
        return;
    m->released = m->doubted = false;
    m->down = r->paces.at[p].cell != NO;
    m->live = m->down ? version_wish(r, r->targets.at[t].job_version) : 0;
    refresh(r, p, t, false);
}

void partition_pace_whole(releases *r, uint32_t p, uint32_t res)
{
    part_member *m = member_at(r->paces.at[p].partition, res);
    if (m)
        m->down = false; /* the target is marked, and asked anew */
}

static bool in_no_partition(const rel_partitions *x, uint32_t res)
{
    return member_at(x, res) && partitions_are_cut(x->roll.pacing) &&
           partitions_of(x->roll.pacing, res) == PARTITION_NONE;
}

uint32_t partition_pace_place(const rel_pace *p, uint32_t res)
{
    return partitions_of(p->partition->roll.pacing, res);
}

/* What failed is tried again without a pass, as an agent does in its cluster. */
static bool holds_release(const releases *r, const part_member *m, uint32_t t)
{
    return m->released || (m->down && m->live == version_wish(r, r->targets.at[t].wanted));
}

bool partition_pace_permits(const releases *r, uint32_t p, uint32_t t)
{
    const rel_partitions *x = r->paces.at[p].partition;
    uint32_t res = r->targets.at[t].resource;
    const part_member *m = member_at(x, res);
    return m && holds_release(r, m, t) && !in_no_partition(x, res) &&
           !partitions_halted(x->roll.pacing);
}

uint32_t target_of_member(const releases *r, const rel_pace *p, uint32_t res)
{
    const index_list *on = &r->resources.at[res].targets;
    if (p->cell != NO)
        return keymap_get(&r->target_of, KEY_PAIR(p->cell, res));
    for (size_t i = 0; i < on->len; i++) {
        const rel_target *t = &r->targets.at[on->at[i]];
        if (t->site != NO && t->environment == p->environment && t->lane != NO &&
            lane_paced(&r->lanes.at[t->lane], p->rule))
            return on->at[i];
    }
    return NO;
}

void partition_pace_tell(releases *r, uint32_t p, uint32_t res)
{
    bool has = member_at(r->paces.at[p].partition, res) != NULL;
    uint32_t t = has ? target_of_member(r, &r->paces.at[p], res) : NO;
    if (t == NO)
        return;
    pace_work_resource(r, p, res);
    partition_pace_report(r, p, (partition_news){t, false, pace_in_batch(r, t)});
}

void mark_member(releases *r, const rel_pace *p, uint32_t res)
{
    uint32_t t = p->cell == NO ? NO : keymap_get(&r->target_of, KEY_PAIR(p->cell, res));
    if (t != NO)
        mark_target(r, t);
    else if (p->cell == NO)
        mark_resource_all(r, res);
}

/* A release that nothing can come of now is given back: when all gates have been asked. */
static void give_back(releases *r, uint32_t p)
{
    rel_partitions *x = r->paces.at[p].partition;
    for (size_t i = 0; i < x->doubted.len; i++) {
        part_member *m = member_at(x, x->doubted.at[i]);
        uint32_t t = m && m->doubted ? target_of_member(r, &r->paces.at[p], x->doubted.at[i]) : NO;
        if (t == NO)
            continue;
        m->released = m->doubted = false;
        refresh(r, p, t, false);
        mark_member(r, &r->paces.at[p], x->doubted.at[i]);
    }
    x->doubted.len = 0;
}

/* Whether a limit is smaller than it was when this was last asked. An edit of something else, or
 * somebody who leaves a limit that is a count as it is, takes nobody's release away. */
static bool limits_shrank(rel_partitions *x)
{
    const partitions *pacing = x->roll.pacing;
    part_limits *seen = &x->seen;
    partition_figures figures = partitions_figures(pacing);
    size_t count = partitions_count(pacing);
    bool shrank = figures.cuts != seen->cuts || figures.cap < seen->whole;
    int64_t own = 0;
    if (!vec_reserve(&seen->parts, count)) {
        rel_no_memory(x->r);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        partition_view at;
        partitions_view(pacing, i, &at);
        shrank = shrank || at.cap < seen->parts.at[i];
        seen->parts.at[i] = at.cap;
        own += at.own;
    }
    shrank = shrank || own < seen->own;
    seen->parts.len = count;
    seen->cuts = figures.cuts;
    seen->whole = figures.cap;
    seen->own = own;
    return shrank;
}

/* A limit that shrank stops starts: an update that was released and has not begun is asked anew, in
 * its turn among those that were not. */
static void take_back(releases *r, uint32_t p)
{
    rel_partitions *x = r->paces.at[p].partition;
    bool exceeded = limits_shrank(x) && partitions_exceeded(x->roll.pacing);
    for (uint32_t res = 0; exceeded && res < x->members.len; res++) {
        part_member *m = &x->members.at[res];
        uint32_t t = m->released && !m->down ? target_of_member(r, &r->paces.at[p], res) : NO;
        if (t == NO || !standing_of(r, &r->paces.at[p], t).has)
            continue;
        int64_t unused;
        bool gates = r->paces.at[p].cell != NO && claim_gates(r, CLAIM_TARGET(t), &unused);
        m->released = m->doubted = false;
        refresh(r, p, t, gates_of(r, p, t, gates));
        mark_member(r, &r->paces.at[p], res);
    }
}

/* ---- steps ---- */

/* Everybody who was released and has not started: a halt holds them, its end lets them go on. */
static void mark_released(releases *r, uint32_t p)
{
    const rel_partitions *x = r->paces.at[p].partition;
    for (uint32_t res = 0; res < x->members.len; res++)
        if (x->members.at[res].released)
            mark_member(r, &r->paces.at[p], res);
    pace_mark(r, p);
}

/* Who holds a release may be in no partition after a cut, or in one again: partitions of other
 * rules that are asked later must know. */
static void mark_cut(releases *r, uint32_t p)
{
    const rel_partitions *x = r->paces.at[p].partition;
    for (uint32_t res = 0; res < x->members.len; res++)
        if (x->members.at[res].released || x->members.at[res].down)
            mark_member(r, &r->paces.at[p], res);
}

static decision *pace_decision(releases *r, const rel_pace *p, decision_kind kind)
{
    decision *d = r->core->out ? core_decide(r->core, kind, 0) : NULL;
    if (!d)
        return NULL;
    d->change = pace_change(r, p);
    d->rule = rel_text(r, r->rules.at[p->rule].id);
    d->environment = rel_text(r, r->environments.at[p->environment].name);
    return d;
}

static void tell_pass(releases *r, const rel_pace *p, const pass_figures *f)
{
    decision *d = pace_decision(r, p, DECISION_PASS);
    if (!d)
        return;
    d->number = p->partition->roll.passes;
    d->size = f->created + f->updated + f->fixed;
    d->created = f->created;
    d->updated = f->updated;
    d->fixed = f->fixed;
    d->visited = f->visited;
    d->partitions = f->partitions;
    d->not_ready = f->not_ready;
}

static void tell_halt(releases *r, const rel_pace *p)
{
    decision *d = pace_decision(r, p, DECISION_HALT);
    if (!d)
        return;
    d->detail = STR("failureThreshold");
    d->number = partitions_failures(p->partition->roll.pacing);
}

static void pass(releases *r, uint32_t p)
{
    rel_partitions *x = r->paces.at[p].partition;
    pass_figures figures;
    x->picks.len = 0;
    if (!partitions_pass(x->roll.pacing, r->core->now_ms, &x->picks, &figures)) {
        rel_no_memory(r);
        return;
    }
    r->core->looked_at += (uint64_t)figures.looked_at;
    for (size_t i = 0; i < x->picks.len; i++) {
        x->members.at[x->picks.at[i].member].released = true;
        mark_member(r, &r->paces.at[p], x->picks.at[i].member);
    }
    if (partition_rollout_passed(&x->roll, &figures, r->core->now_ms))
        tell_pass(r, &r->paces.at[p], &figures);
    if (x->roll.dirty) /* it released something: another follows */
        pace_mark(r, p);
}

void partition_pace_step(releases *r, uint32_t p)
{
    rel_partitions *x = r->paces.at[p].partition;
    bool cut;
    if (x->count == 0) {
        begin_anew(r, p);
        wake_at(r, WAKE_PACE, p, NEVER);
        return;
    }
    if (!strategy_of(x))
        return;
    give_back(r, p);
    bool was_halted = partitions_halted(x->roll.pacing);
    x->roll.edited |= pace_work_take(&r->paces.at[p]);
    if (!partition_rollout_begin(&x->roll, x->count, &cut))
        rel_no_memory(r);
    r->core->looked_at += cut ? x->count : 0;
    if (cut)
        mark_cut(r, p);
    if (x->roll.halted_now)
        tell_halt(r, &r->paces.at[p]);
    x->roll.halted_now = false;
    take_back(r, p);
    if (!r->core->no_memory && partition_rollout_due(&x->roll, r->core->now_ms))
        pass(r, p);
    bool halted = partitions_halted(x->roll.pacing);
    if (was_halted && !halted)
        mark_released(r, p);
    if (!x->roll.dirty || halted)
        partition_pace_reaches(r, p);
    wake_at(r, WAKE_PACE, p, halted ? NEVER : partitions_next_ms(x->roll.pacing));
}

/* ---- outcomes and people ---- */

void partition_pace_failed(releases *r, uint32_t p, uint32_t res)
{
    rel_partitions *x = r->paces.at[p].partition;
    if (!member_at(x, res))
        return;
    x->roll.dirty = true; /* any end leads to a pass */
    pace_mark(r, p);
    if (!partitions_failed(x->roll.pacing, res))
        return;
    x->roll.halted_now = true;
    mark_released(r, p);
}

/* By the deployment, in a bracket by any of those in it or by the rule itself. */
static bool pace_called(const releases *r, const rel_pace *p, str change)
{
    if (change.len == 0 || str_eq(change, pace_change(r, p)))
        return true;
    for (size_t l = 0; p->cell == NO && l < r->lanes.len; l++) {
        const rel_cell *cell = &r->cells.at[r->lanes.at[l].cell];
        if (cell->environment == p->environment && r->lanes.at[l].users > 0 &&
            lane_paced(&r->lanes.at[l], p->rule) &&
            str_eq(change, rel_text(r, r->deployments.at[cell->deployment].name)))
            return true;
    }
    return false;
}

static void act_on(releases *r, uint32_t p, const fact_act *act)
{
    rel_partitions *x = r->paces.at[p].partition;
    partitions *pacing = x->roll.pacing;
    if (act->act == ACT_RESUME) {
        partitions_resume(pacing);
        x->roll.halted_now = false;
        mark_released(r, p);
    }
    for (size_t i = 0; act->act == ACT_APPROVE && i < partitions_count(pacing); i++) {
        partition_view view;
        partitions_view(pacing, i, &view);
        if (act->partition.len == 0 || str_eq(act->partition, view.name))
            partitions_approve(pacing, view.name);
    }
    x->roll.dirty = true;
    pace_mark(r, p);
}

void partition_acts(releases *r, const fact_act *act)
{
    bool ours = (act->act == ACT_RESUME && act->target.len == 0) ||
                (act->act == ACT_APPROVE && (act->partition.len > 0 || act->version.len == 0));
    for (uint32_t p = 0; ours && p < r->paces.len; p++) {
        const rel_pace *pace = &r->paces.at[p];
        str where = rel_text(r, r->environments.at[pace->environment].name);
        if (pace->partition && pace->partition->count > 0 && pace_called(r, pace, act->change) &&
            (act->environment.len == 0 || str_eq(act->environment, where)))
            act_on(r, p, act);
    }
}

/* ---- looking at it ---- */

static uint32_t first_partition(const releases *r, uint32_t t, uint32_t *ret_pace)
{
    if (r->targets.at[t].lane == NO)
        return PARTITION_NONE;
    for (uint32_t p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, NO); p != NO;
         p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, p)) {
        const rel_partitions *x = r->paces.at[p].partition;
        *ret_pace = p;
        if (member_at(x, r->targets.at[t].resource))
            return partitions_of(x->roll.pacing, r->targets.at[t].resource);
    }
    return PARTITION_NONE;
}

str partition_of_target(const releases *r, uint32_t t)
{
    uint32_t p;
    uint32_t index = first_partition(r, t, &p);
    if (index == PARTITION_NONE)
        return STR_EMPTY;
    partition_view view;
    partitions_view(r->paces.at[p].partition->roll.pacing, index, &view);
    return view.name;
}

bool partition_excludes(const releases *r, uint32_t t)
{
    for (uint32_t p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, NO); p != NO;
         p = pace_next(r, t, RULE_ROLLOUT_STRATEGY, p))
        if (in_no_partition(r->paces.at[p].partition, r->targets.at[t].resource))
            return true;
    return false;
}

/* A reason whose act is done to one thing. */
static bool tell(arena *a, reason why, str of, reasons *out)
{
    str *one = ARENA_NEW(a, str);
    if (!one)
        return false;
    *one = of;
    why.of = one;
    why.of_count = 1;
    why.next_ms = NEVER;
    return reasons_add(out, a, why);
}

/* What to resume: a deployment that is to be resumed anyway, since that lifts both. */
static str resumed_as(const releases *r, const rel_pace *pace, const reasons *others)
{
    for (size_t i = 0; i < others->len; i++) {
        const reason *o = &others->at[i];
        if (o->act == RELEASE_RESUME && o->of_count == 1 && str_eq(o->scope, STR("deployment")) &&
            pace_called(r, pace, o->of[0]))
            return o->of[0];
    }
    return pace_change(r, pace);
}

bool partition_pace_reasons(const releases *r, uint32_t p, uint32_t t, arena *a, reasons *out)
{
    const rel_pace *pace = &r->paces.at[p];
    const rel_partitions *x = pace->partition;
    uint32_t res = r->targets.at[t].resource;
    const part_member *m = member_at(x, res);
    str scope = r->rules.at[pace->rule].scope;
    if (!m)
        return true;
    if (in_no_partition(x, res))
        return tell(a, (reason){.rule = REASON_NO_PARTITION, .scope = scope, .act = RELEASE_LABEL},
                    resource_name(r, res), out);
    if (partitions_halted(x->roll.pacing) &&
        !tell(a,
              (reason){.rule = REASON_HALTED,
                       .scope = scope,
                       .act = RELEASE_RESUME,
                       .have = partitions_failures(x->roll.pacing),
                       .limit = strategy_of(x) ? strategy_of(x)->failure_threshold.value : 0,
                       .detail = STR("failureThreshold was reached")},
              resumed_as(r, pace, out), out))
        return false;
    standing s = standing_of(r, pace, t);
    if (holds_release(r, m, t) || !s.pending)
        return true;
    partition_question q = {.member = res,
                            .repeats = true,
                            .now_ms = r->core->now_ms,
                            .scope = scope,
                            .editable =
                                rel_text(r, r->policies.at[r->rules.at[pace->rule].policy].name)};
    return partitions_reasons(x->roll.pacing, &q, a, out);
}

bool partition_pace_groups(const releases *r, const rel_pace *p, group_visitor visit, void *context)
{
    const partitions *pacing = p->partition->roll.pacing;
    for (size_t i = 0; p->partition->count > 0 && i < partitions_count(pacing); i++) {
        partition_view at;
        partitions_view(pacing, i, &at);
        group_view view = {
            .kind = GROUP_PARTITION,
            .change = pace_change(r, p),
            .rule = rel_text(r, r->rules.at[p->rule].id),
            .environment = rel_text(r, r->environments.at[p->environment].name),
            .name = at.name,
            .strategy = STR_EMPTY,
            .matched = at.matched,
            .limit = at.cap,
            .holders = at.unavailable,
            .peak = at.peak,
            .ready = at.ready,
            .visited = at.visited,
            .unavailable = at.unavailable,
            .passed_ms = p->partition->roll.passed_ms,
            .stopped = partitions_halted(pacing),
        };
        if (!visit(context, &view))
            return false;
    }
    return true;
}
