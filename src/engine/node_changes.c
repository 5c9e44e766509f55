/* SPDX-License-Identifier: Apache-2.0 */
/* Skyhooks and DeploymentPolicies: what a document, an edit or a deletion changes. */
#include "base/mem.h"
#include "engine/node_gate.h"
#include "engine/nodes_internal.h"
#include "engine/policy_rules.h"
#include "engine/runtime_required.h"

#define PACKAGES_TEXT_BYTES (1024u * 1024u)

void change_free(change *c)
{
    cohort_free(c->cohort);
    arena_free(c->memory);
    vec_done(&c->members);
    vec_done(&c->free_members);
    vec_done(&c->deferred);
    vec_done(&c->before);
    vec_done(&c->found);
    mem_free(c);
}

/* ---- policies ---- */

static const deployment_policy *policy_of(const nodes *self, const change *c)
{
    const uint64_t *at = strmap_get(&self->policies, c->spec->spec.deployment_policy);
    return at ? ((const object *)(uintptr_t)*at)->deployment_policy : NULL;
}

/* Puts the policy that the Skyhook names, or its budget, in force. */
static void change_set_policy(nodes *self, change *c)
{
    bool named = c->spec->spec.deployment_policy.len > 0;
    const deployment_policy *policy = named ? policy_of(self, c) : NULL;
    scoped(arena_cleanup) arena *a = arena_new(0);
    cohort_policy rules;
    c->policy_missing = named && !policy;
    c->reset_on_completion = policy_resets(c->spec, policy);
    c->cohort_dirty = true;
    bool good = a != NULL;
    if (good && !c->policy_missing)
        good = policy ? policy_rules(&policy->spec, a, &rules)
                      : legacy_rules(c->spec->spec.interruption_budget, a, &rules);
    if (!good || !cohort_set_policy(c->cohort, c->policy_missing ? NULL : &rules))
        nodes_memory(self);
}

void policy_take(nodes *self, const object *o, bool gone)
{
    str name = o->metadata->name;
    name_id id = names_add(self->core->names, name);
    if (id == 0) {
        nodes_memory(self);
        return;
    }
    name = names_text(self->core->names, id);
    if (gone)
        strmap_remove(&self->policies, name);
    else if (!strmap_put(&self->policies, name, (uint64_t)(uintptr_t)o))
        nodes_memory(self);
    for (size_t i = 0; i < self->changes.len; i++)
        if (str_eq(self->changes.at[i]->spec->spec.deployment_policy, name))
            change_set_policy(self, self->changes.at[i]);
}

/* ---- pause, disable ---- */

static void apply_halt(nodes *self, change *c)
{
    cohort_pause(c->cohort, change_halted(c));
    c->cohort_dirty = true;
    change_touch_targets(self, c);
    /* A Skyhook that is disabled, or so no longer, stands differently before those that come after
     * it. */
    change_touch_later(self, c);
}

void change_set_paused(nodes *self, change *c, bool paused)
{
    if (c->paused == paused)
        return;
    c->paused = paused;
    apply_halt(self, c);
}

void change_reset_batches(nodes *self, change *c)
{
    cohort_reset(c->cohort);
    change_undefer(self, c);
    c->cohort_dirty = true;
}

/* ---- edits ---- */

typedef struct edit {
    bool packages; /* something a node could notice */
    bool versions; /* a package that stays has another version */
} edit;

static const package_rule *rule_named(const package_rule *at, size_t len, name_id name)
{
    for (size_t i = 0; i < len; i++)
        if (at[i].name == name)
            return &at[i];
    return NULL;
}

static edit compare(const change *c)
{
    edit e = {.packages = c->before.len != c->rules.len};
    for (size_t i = 0; i < c->rules.len; i++) {
        const package_rule *now = &c->rules.at[i];
        const package_rule *old = rule_named(c->before.at, c->before.len, now->name);
        e.packages |= !old || old->digest != now->digest || old->unwanted != now->unwanted ||
                      old->uninstall != now->uninstall;
        e.versions |= old && old->version != now->version;
    }
    return e;
}

static bool remember(change *c)
{
    c->before.len = 0;
    for (size_t i = 0; i < c->rules.len; i++)
        if (!vec_push(&c->before, c->rules.at[i]))
            return false;
    return true;
}

/* Failed ones become fresh; returns whether a node has work it had not before: whoever is not done
 * has other packages to do now. */
static bool recount(nodes *self, change *c)
{
    bool new_work = false;
    for (size_t i = 0; i < c->members.len; i++) {
        if (c->members.at[i] == NOBODY)
            continue;
        node_placement *p = &self->placements.at[c->members.at[i]];
        self->core->looked_at++;
        if (p->failed || p->phase != PHASE_IDLE)
            placement_forgive(self, p);
        p->failed = false;
        placement_count(self, p);
        new_work |= !p->done;
        target_touch(self, p->target);
    }
    return new_work;
}

static void apply_edit(nodes *self, change *c, edit e)
{
    if (!e.packages)
        return;
    if (recount(self, c))
        cohort_lift_stops(c->cohort);
    c->cohort_dirty = true;
    if (!e.versions || !c->reset_on_completion)
        return;
    change_reset_batches(self, c);
    c->tell_reset = true;
}

void change_edited_since(nodes *self, change *c, const package_rule *before, size_t count)
{
    c->before.len = 0;
    for (size_t i = 0; i < count; i++)
        if (!vec_push(&c->before, before[i]))
            nodes_memory(self);
    apply_edit(self, c, compare(c));
    if (!remember(c))
        nodes_memory(self);
}

/* ---- documents ---- */

static name_id packages_text(nodes *self, const change *c)
{
    buf text = BUF(PACKAGES_TEXT_BYTES);
    for (uint16_t i = 0; i < c->rules.len; i++)
        buf_addf(&text, "%s%.*s:%.*s", i > 0 ? "," : "", STR_ARG(c->rules.at[i].spec->name),
                 STR_ARG(c->rules.at[i].spec->version));
    name_id id = text.len == 0 || text.failed ? 0 : names_add(self->core->names, buf_str(&text));
    if (text.failed || (text.len > 0 && id == 0))
        nodes_memory(self);
    buf_done(&text);
    return id;
}

/* Keeps the changes sorted by priority, then name. */
static void place_change(nodes *self, change *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->changes.len; i++)
        if (self->changes.at[i] != c)
            self->changes.at[kept++] = self->changes.at[i];
    self->changes.len = kept;
    if (!vec_push(&self->changes, c)) {
        nodes_memory(self);
        return;
    }
    size_t at = self->changes.len - 1;
    while (at > 0 && change_before(c, self->changes.at[at - 1])) {
        self->changes.at[at] = self->changes.at[at - 1];
        at--;
    }
    self->changes.at[at] = c;
    self->all_count = 0;
    for (size_t i = 0; i < self->changes.len; i++)
        self->all_count += self->changes.at[i]->spec->spec.sequencing == SEQUENCING_ALL;
}

static change *change_new(nodes *self, name_id name)
{
    change *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    c->name = name;
    c->cohort = cohort_new();
    if (c->cohort && vec_reserve(&self->changes, self->changes.len + 1))
        return c;
    change_free(c);
    return NULL;
}

static bool build_rules(nodes *self, change *c)
{
    arena *memory = arena_new(0);
    package_rules rules;
    if (!memory || !package_rules_build(c->spec, self->core->names, memory, &rules)) {
        arena_free(memory);
        return false;
    }
    arena_free(c->memory);
    c->memory = memory;
    c->rules = rules;
    c->rules.no_memory = &self->core->no_memory;
    return vec_reserve(&self->runnable, rules.len + 1u);
}

void change_leave_taints(nodes *self, change *c)
{
    bool holds = runtime_required_holds(c);
    if (c->held_taint && !holds) {
        change_choose_placements(self, c);
        for (size_t i = 0; i < self->chosen.len; i++) {
            const node_placement *p = &self->placements.at[self->chosen.at[i]];
            if (p->selected)
                runtime_required_leave(self, p, p->done);
        }
    }
    c->held_taint = holds;
}

/* Whom the Skyhook selects now, and whom it no longer does. Returns whether somebody who joined has
 * something to be done. */
static bool select_targets(nodes *self, change *c)
{
    bool new_work = false;
    self->chosen.len = 0;
    for (uint32_t i = 0; i < self->targets.len; i++) {
        if (!self->targets.at[i].present)
            continue;
        const node_placement *p = placement_on(self, i, c);
        bool selects = target_selected(self, i, c, p);
        bool changes = selects != (p && p->selected) || (p && (p->leaving || p->astray));
        if (changes && !vec_push(&self->chosen, i))
            nodes_memory(self);
        else if (p)
            target_touch(self, i);
    }
    targets_sort(self, self->chosen.at, self->chosen.len);
    for (size_t i = 0; i < self->chosen.len; i++) {
        const node_placement *p = placement_on(self, self->chosen.at[i], c);
        bool before = p && p->selected;
        target_select(self, self->chosen.at[i], c);
        p = placement_on(self, self->chosen.at[i], c);
        new_work |= !before && p && p->selected && !packages_complete(&c->rules, &p->entries);
    }
    return new_work;
}

static void take_halts(nodes *self, change *c, bool is_new)
{
    bool written = skyhook_paused(c->spec);
    bool disabled = skyhook_disabled(c->spec);
    bool paused = is_new || written != c->written_paused ? written : c->paused;
    c->written_paused = written;
    if (paused == c->paused && disabled == c->disabled && !is_new)
        return;
    c->paused = paused;
    c->disabled = disabled;
    apply_halt(self, c);
}

void skyhook_take(nodes *self, const object *o)
{
    name_id name = names_add(self->core->names, o->metadata->name);
    change *c = name != 0 ? change_find(self, o->metadata->name) : NULL;
    bool is_new = c == NULL;
    if (name == 0 || (is_new && !(c = change_new(self, name)))) {
        nodes_memory(self);
        return;
    }
    bool reordered = !is_new && (c->priority != o->skyhook->spec.priority ||
                                 c->sequencing != o->skyhook->spec.sequencing);
    c->object = o;
    c->spec = o->skyhook;
    c->priority = o->skyhook->spec.priority;
    c->sequencing = o->skyhook->spec.sequencing;
    c->finalizer_told = false;
    if (!build_rules(self, c)) {
        nodes_memory(self);
        if (is_new)
            change_free(c);
        return;
    }
    place_change(self, c);
    c->packages = packages_text(self, c);
    change_set_policy(self, c);
    edit e = is_new ? (edit){0} : compare(c);
    bool widened = select_targets(self, c);
    take_halts(self, c, is_new);
    change_leave_taints(self, c);
    apply_edit(self, c, e);
    if (widened && !is_new) /* A4: an edit that gives a node new work */
        cohort_lift_stops(c->cohort);
    for (size_t i = 0; (reordered || is_new) && i < self->changes.len; i++)
        change_touch_targets(self, self->changes.at[i]);
    if (!remember(c))
        nodes_memory(self);
}

void skyhook_gone(nodes *self, str name)
{
    change *c = change_find(self, name);
    if (!c)
        return;
    change_choose_placements(self, c);
    for (size_t i = 0; i < self->chosen.len; i++) {
        node_placement *p = &self->placements.at[self->chosen.at[i]];
        target_touch(self, p->target);
        flight_gone(self, p);
        cordon_lift(self, p);
        placement_leave(self, p);
        placement_drop(self, self->chosen.at[i]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < self->changes.len; i++)
        if (self->changes.at[i] != c)
            self->changes.at[kept++] = self->changes.at[i];
    self->changes.len = kept;
    self->all_count -= c->spec->spec.sequencing == SEQUENCING_ALL;
    bool all = c->spec->spec.sequencing == SEQUENCING_ALL;
    change_free(c);
    for (size_t i = 0; all && i < self->changes.len; i++)
        change_touch_targets(self, self->changes.at[i]);
}
