/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as facts show them, and which Skyhooks select them. */
#include <assert.h>

#include "base/mem.h"
#include "engine/node_gate.h"
#include "engine/nodes_internal.h"
#include "engine/runtime_required.h"

/* ---- labels and annotations ---- */

/* Entries in one block: the header, the labels, their bytes as "key\0value\0". */
static label_block *block_new(label_set set)
{
    size_t bytes = 0;
    for (size_t i = 0; i < set.len; i++)
        bytes += set.at[i].key.len + set.at[i].value.len + 2;
    label_block *b = mem_alloc(sizeof *b + set.len * sizeof(label) + bytes + 1);
    if (!b)
        return NULL;
    label *labels = (label *)(b + 1);
    char *text = (char *)(labels + set.len);
    char *at = text;
    for (size_t i = 0; i < set.len; i++) {
        const str parts[] = {set.at[i].key, set.at[i].value};
        str copies[2];
        for (size_t k = 0; k < 2; k++) {
            if (parts[k].len > 0)
                memcpy(at, parts[k].ptr, parts[k].len);
            copies[k] = (str){at, parts[k].len};
            at += parts[k].len;
            *at++ = '\0';
        }
        labels[i] = (label){copies[0], copies[1]};
    }
    *b = (label_block){{labels, set.len}, 1, {text, (size_t)(at - text)}};
    return b;
}

static bool same_labels(label_set a, label_set b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (!str_eq(a.at[i].key, b.at[i].key) || !str_eq(a.at[i].value, b.at[i].value))
            return false;
    return true;
}

/* The shared copy of a label set. */
static label_block *labels_share(nodes *self, label_set set)
{
    label_block *b = block_new(set);
    if (!b)
        return NULL;
    const uint64_t *known = strmap_get(&self->label_sets, b->key);
    if (known) {
        mem_free(b);
        b = (label_block *)(uintptr_t)*known;
        b->users++;
        return b;
    }
    if (!strmap_put(&self->label_sets, b->key, (uint64_t)(uintptr_t)b))
        return mem_free(b);
    return b;
}

static void labels_leave(nodes *self, label_block *b)
{
    if (!b || --b->users > 0)
        return;
    strmap_remove(&self->label_sets, b->key);
    mem_free(b);
}

label_set target_labels(const node_target *t)
{
    return t->labels ? t->labels->set : (label_set){NULL, 0};
}

str annotation_of(const label_block *block, str prefix, str name)
{
    for (size_t i = 0; block && i < block->set.len; i++) {
        str key = block->set.at[i].key;
        if (key.len == prefix.len + name.len && str_starts(key, prefix) && str_ends(key, name))
            return block->set.at[i].value;
    }
    return (str){NULL, 0};
}

str target_annotation(const node_target *t, str prefix, str name)
{
    return annotation_of(t->annotations, prefix, name);
}

/* ---- taints ---- */

static bool same_taints(const node_target *t, const fact_target *f)
{
    if (t->taint_count != f->taint_count)
        return false;
    for (size_t i = 0; i < f->taint_count; i++)
        if (!str_eq(t->taints[i].key, f->taints[i].key) ||
            !str_eq(t->taints[i].value, f->taints[i].value) ||
            !str_eq(t->taints[i].effect, f->taints[i].effect))
            return false;
    return true;
}

static bool copy_taints(nodes *self, node_target *t, const fact_target *f)
{
    size_t bytes = 0;
    for (size_t i = 0; i < f->taint_count; i++)
        bytes += f->taints[i].key.len + f->taints[i].value.len + f->taints[i].effect.len;
    fact_taint *taints = NULL;
    if (f->taint_count > 0 && !(taints = mem_alloc(f->taint_count * sizeof *taints + bytes + 1)))
        return false;
    char *at = (char *)(taints + f->taint_count);
    bool required = false;
    for (size_t i = 0; i < f->taint_count; i++) {
        const str parts[] = {f->taints[i].key, f->taints[i].value, f->taints[i].effect};
        str copies[3];
        for (size_t k = 0; k < 3; k++) {
            if (parts[k].len > 0)
                memcpy(at, parts[k].ptr, parts[k].len);
            copies[k] = (str){at, parts[k].len};
            at += parts[k].len;
        }
        taints[i] = (fact_taint){copies[0], copies[1], copies[2]};
        required |= str_eq(taints[i].key, self->runtime_required.key) &&
                    str_eq(taints[i].effect, self->runtime_required.effect);
    }
    mem_free(t->taints);
    t->taints = taints;
    t->taint_count = (uint16_t)f->taint_count;
    /* What we decided is true until a fact has shown it; then facts speak. */
    t->taint_decided = t->taint_decided && !required;
    t->untaint_decided = t->untaint_decided && required;
    t->tainted = required;
    return true;
}

/* ---- placements ---- */

/* What the node's own annotation says of the packages there. One that cannot be read is a matter of
 * this placement alone. */
static void read_state(nodes *self, node_placement *p)
{
    const node_target *t = &self->targets.at[p->target];
    str name = names_text(self->core->names, p->change->name);
    str text = target_annotation(t, STR(NODE_STATE), name);
    if (text.ptr) {
        scoped(arena_cleanup) arena *a = arena_new(0);
        node_state state = {0};
        if (!a) {
            nodes_memory(self);
            return;
        }
        p->malformed = !node_state_parse(a, text, &state, NULL);
        for (size_t i = 0; !p->malformed && i < state.packages.len; i++) {
            const package_status *s = &state.packages.at[i];
            name_id id = names_add(self->core->names, s->name);
            name_id of = names_add(self->core->names, s->version);
            package_entry *e = id && of ? entry_add(&p->entries, id, of) : NULL;
            if (!e) {
                nodes_memory(self);
                return;
            }
            e->stage = (uint8_t)s->stage;
            e->state = (uint8_t)s->state;
            e->restarts = (uint16_t)(s->restarts > UINT16_MAX ? UINT16_MAX : s->restarts);
        }
    }
    /* That of one before it, which is being given back, is none of its own; and a person may have
     * taken the cordon away and left the note. */
    bool noted = str_eq(target_annotation(t, STR(NODE_CORDON), name), STR("true"));
    p->cordoned = noted && t->unschedulable && !t->uncordon_decided;
    p->cordon_seen = p->cordoned;
}

/* What the node's annotations say of a placement of which nothing else is known. */
static void placement_read(nodes *self, node_placement *p)
{
    str name = names_text(self->core->names, p->change->name);
    p->malformed = false;
    read_state(self, p);
    found_adopt(p);
    bool garbled = p->malformed;
    str memory = target_annotation(&self->targets.at[p->target], STR(NODE_MEMORY), name);
    if (memory.ptr && !placement_memory_read(self, p, memory, NULL))
        p->malformed = true;
    /* In flight the next write puts it right. */
    p->malformed |= garbled && p->phase == PHASE_IDLE;
    if (p->failed)
        p->retry_ms = self->core->now_ms;
}

node_placement *placement_keep(nodes *self, uint32_t target, change *c)
{
    bool reused = self->free_placements.len > 0;
    uint32_t index = reused ? self->free_placements.at[--self->free_placements.len]
                            : (uint32_t)self->placements.len;
    placement_id id = self->core->next_placement;
    if (!reused && !vec_push(&self->placements, (node_placement){0}))
        return NULL;
    if (!keymap_put(&self->by_id, id, index))
        return NULL;
    self->core->next_placement++;
    node_target *t = &self->targets.at[target];
    node_placement *p = &self->placements.at[index];
    *p = (node_placement){.change = c,
                          .id = id,
                          .target = target,
                          .member = NOBODY,
                          .retry_ms = REASON_NEVER,
                          .wake_ms = REASON_NEVER};
    uint32_t *link = &t->first; /* by the Skyhook's name */
    str name = names_text(self->core->names, c->name);
    while (*link != NOBODY &&
           str_cmp(names_text(self->core->names, self->placements.at[*link].change->name), name) <
               0)
        link = &self->placements.at[*link].next;
    p->next = *link;
    *link = index;
    placement_read(self, p);
    return p;
}

void placement_drop(nodes *self, uint32_t index)
{
    node_placement *p = &self->placements.at[index];
    node_target *t = &self->targets.at[p->target];
    uint32_t *link = &t->first;
    while (*link != index)
        link = &self->placements.at[*link].next;
    *link = p->next;
    keymap_remove(&self->by_id, p->id);
    ends_forget(p); /* nothing is left to be written */
    mem_free(p->entries.at);
    mem_free(p->blocker);
    mem_free(p->hindrance);
    *p = (node_placement){0};
    if (!vec_push(&self->free_placements, index))
        nodes_memory(self);
}

void placement_join(nodes *self, node_placement *p)
{
    change *c = p->change;
    const node_target *t = &self->targets.at[p->target];
    if (c->free_members.len > 0) {
        p->member = c->free_members.at[--c->free_members.len];
    } else {
        p->member = (uint32_t)c->members.len;
        if (!vec_push(&c->members, NOBODY) || !vec_reserve(&c->free_members, c->members.len)) {
            nodes_memory(self);
            return;
        }
    }
    c->members.at[p->member] = placement_index(self, p);
    if (!cohort_join(c->cohort, p->member, target_name(self, p->target), t->created_ms,
                     target_labels(t)))
        nodes_memory(self);
    p->selected = true;
    p->done = false;
    c->selected++;
    c->not_done++;
    c->rolling = true;
    c->cohort_dirty = true;
    if (c->not_done == 1)
        change_touch_later(self, c);
}

void placement_leave(nodes *self, node_placement *p)
{
    change *c = p->change;
    if (!p->selected)
        return;
    p->selected = false;
    /* In the end of a deletion "done" says that it was uninstalled. */
    if (c->spec->spec.runtime_required)
        runtime_required_leave(self, p, c->held_taint && p->done);
    c->selected--;
    c->not_done -= !p->done;
    if (c->not_done == 0 && !p->done)
        change_touch_later(self, c);
    p->done = false;
    cohort_leave(c->cohort, p->member);
    c->members.at[p->member] = NOBODY;
    c->free_members.at[c->free_members.len++] = p->member;
    p->member = NOBODY;
    p->deferred = false;
    c->cohort_dirty = true;
}

bool target_matches(const nodes *self, uint32_t target, const change *c)
{
    return selector_match(c->spec->spec.node_selectors.compiled,
                          target_labels(&self->targets.at[target]));
}

bool target_selected(const nodes *self, uint32_t target, const change *c, const node_placement *p)
{
    return target_matches(self, target, c) ||
           (p ? deletion_takes(p) : deletion_asks(self, target, c));
}

void target_select(nodes *self, uint32_t target, change *c)
{
    node_placement *p = placement_on(self, target, c);
    bool selects = target_selected(self, target, c, p);
    if (!p && selects) {
        p = placement_keep(self, target, c);
        if (!p)
            nodes_memory(self);
    }
    if (!p)
        return;
    selects = target_selected(self, target, c, p);
    p->astray = selects && !target_matches(self, target, c);
    p->leaving = !selects && p->selected && p->running > 0;
    if (selects && !p->selected) {
        placement_join(self, p);
    } else if (!selects && p->selected && !p->leaving) {
        flight_gone(self, p);
        placement_leave(self, p);
    }
    target_touch(self, target);
}

/* ---- facts ---- */

static uint64_t hash_or_zero(str text)
{
    return text.len == 0 ? 0 : str_hash(text) | 1u;
}

/* A node that is seen for the first time may have been silent for long: an operator that begins
 * anew does not give it more time. */
static int64_t since(const nodes *self, int64_t ms)
{
    return ms > 0 && ms < self->core->now_ms ? ms : self->core->now_ms;
}

static uint32_t target_new(nodes *self, const fact_target *f)
{
    char *name = nodes_copy(self, f->name);
    uint32_t index = self->free_targets.len > 0 ? self->free_targets.at[self->free_targets.len - 1]
                                                : (uint32_t)self->targets.len;
    if (!name || (index == self->targets.len && !vec_push(&self->targets, (node_target){0})) ||
        !strmap_put(&self->by_name, (str){name, f->name.len}, index)) {
        mem_free(name);
        return NOBODY;
    }
    if (self->free_targets.len > 0)
        self->free_targets.len--;
    bool dirty = self->targets.at[index].dirty; /* a place may still stand in the list */
    self->targets.at[index] = (node_target){.name = name,
                                            .name_bytes = (uint32_t)f->name.len,
                                            .first = NOBODY,
                                            .uid = hash_or_zero(f->uid),
                                            .boot = hash_or_zero(f->boot_id),
                                            .created_ms = f->created_ms,
                                            .ready_ms = since(self, f->ready_since_ms),
                                            .not_ready = f->not_ready,
                                            .present = true,
                                            .dirty = dirty};
    return index;
}

static void take_labels(nodes *self, uint32_t target, label_set labels)
{
    node_target *t = &self->targets.at[target];
    label_block *old = t->labels;
    t->labels = labels_share(self, labels);
    if (!t->labels) {
        t->labels = old;
        nodes_memory(self);
        return;
    }
    t->ignored = str_eq(label_get(labels, STR(NODE_IGNORE)), STR("true"));
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next) {
        node_placement *p = &self->placements.at[i];
        if (p->selected && !cohort_join(p->change->cohort, p->member, target_name(self, target),
                                        t->created_ms, target_labels(t)))
            nodes_memory(self);
        p->change->cohort_dirty |= p->selected;
    }
    for (size_t i = 0; i < self->changes.len; i++)
        target_select(self, target, self->changes.at[i]);
    labels_leave(self, old);
    target_touch(self, target);
}

/* Whether somebody has made something of the state that cannot be read. */
static bool is_garbled(nodes *self, const node_placement *p, const label_block *before)
{
    str name = names_text(self->core->names, p->change->name);
    str text = target_annotation(&self->targets.at[p->target], STR(NODE_STATE), name);
    if (!text.ptr || str_eq(text, annotation_of(before, STR(NODE_STATE), name)))
        return false;
    scoped(arena_cleanup) arena *a = arena_new(0);
    node_state ignored;
    if (!a)
        nodes_memory(self);
    return a && !node_state_parse(a, text, &ignored, NULL);
}

/* An annotation that could not be read may have been repaired, one that could may have been broken,
 * and one that shows what a Skyhook left behind may come late. */
static void state_seen(nodes *self, uint32_t target, const label_block *before)
{
    for (uint32_t i = self->targets.at[target].first; i != NOBODY;
         i = self->placements.at[i].next) {
        node_placement *p = &self->placements.at[i];
        if (p->phase != PHASE_IDLE)
            continue;
        if (!p->malformed) {
            p->malformed = is_garbled(self, p, before);
            continue;
        }
        bool cordoned = p->cordoned;
        bool seen = p->cordon_seen;
        p->entries.len = 0;
        placement_read(self, p);
        p->cordoned = cordoned;
        p->cordon_seen = seen;
    }
    for (size_t i = 0; i < self->changes.len; i++)
        if (change_deleting(self->changes.at[i]))
            target_select(self, target, self->changes.at[i]);
}

/* Returns those of before, which are the caller's then. */
static label_block *take_annotations(nodes *self, node_target *t, label_set annotations)
{
    label_block *block = NULL, *before = t->annotations;
    if (annotations.len > 0 && !(block = block_new(annotations))) {
        nodes_memory(self);
        return NULL;
    }
    t->annotations = block;
    for (size_t i = 0; i < annotations.len; i++) {
        t->touched |= str_starts(annotations.at[i].key, STR(NODE_PREFIX));
        t->auto_tainted |= str_starts(annotations.at[i].key, STR(NODE_AUTO_TAINT));
    }
    return before;
}

static void take_readiness(nodes *self, uint32_t target, const fact_target *f)
{
    node_target *t = &self->targets.at[target];
    if (t->not_ready != f->not_ready) {
        t->not_ready = f->not_ready;
        t->ready_ms = self->core->now_ms;
        target_touch(self, target);
    }
    uint64_t boot = hash_or_zero(f->boot_id);
    if (boot == t->boot || boot == 0)
        return;
    bool known = t->boot != 0;
    t->boot = boot;
    if (known)
        reboot_seen(self, target);
    else
        reboot_compare(self, target);
}

/* Whole state: what is not set is not so. */
void target_take(nodes *self, const fact_target *f)
{
    uint32_t target = target_find(self, f->name);
    if (target != NOBODY && f->uid.len > 0 && self->targets.at[target].uid != 0 &&
        self->targets.at[target].uid != hash_or_zero(f->uid)) {
        target_gone(self, f->name);
        target = NOBODY;
    }
    bool is_new = target == NOBODY;
    if (is_new)
        target = target_new(self, f);
    if (target == NOBODY) {
        nodes_memory(self);
        return;
    }
    node_target *t = &self->targets.at[target];
    if (t->uid == 0)
        t->uid = hash_or_zero(f->uid);
    label_set none = {NULL, 0};
    bool annotated = !same_labels(t->annotations ? t->annotations->set : none, f->annotations);
    bool turned = t->unschedulable != f->unschedulable;
    bool cordon = annotated || turned || is_new;
    label_block *before = annotated ? take_annotations(self, t, f->annotations) : NULL;
    if (!same_taints(t, f) || t->taint_decided || t->untaint_decided) {
        if (!copy_taints(self, t, f))
            nodes_memory(self);
        target_touch(self, target);
    }
    t->unschedulable = f->unschedulable;
    t->uncordon_decided = t->uncordon_decided && f->unschedulable;
    if (is_new || !same_labels(target_labels(t), f->labels))
        take_labels(self, target, f->labels);
    if (annotated && !is_new)
        state_seen(self, target, before);
    if (cordon) {
        t = &self->targets.at[target];
        cordon_see(self, t, annotated ? before : t->annotations, turned && !is_new);
        target_touch(self, target);
    }
    mem_free(before);
    take_readiness(self, target, f);
}

void target_gone(nodes *self, str name)
{
    uint32_t target = target_find(self, name);
    if (target == NOBODY)
        return;
    node_target *t = &self->targets.at[target];
    t->present = false;
    while (t->first != NOBODY) {
        node_placement *p = &self->placements.at[t->first];
        p->cordoned = false; /* there is nothing left to uncordon */
        flight_gone(self, p);
        placement_leave(self, p);
        priority_leave(p, true);
        placement_drop(self, t->first);
    }
    strmap_remove(&self->by_name, target_name(self, target));
    labels_leave(self, t->labels);
    t->labels = NULL;
    t->annotations = mem_free(t->annotations);
    t->taints = mem_free(t->taints);
    t->taint_count = 0;
    if (!vec_push(&self->free_targets, target) ||
        !vec_push(&self->left_names, (left_name){target, t->name}))
        nodes_memory(self);
}

/* Its place may have another node by now. */
static void name_forget(nodes *self, left_name left)
{
    node_target *t = &self->targets.at[left.target];
    if (t->name == left.text)
        t->name = NULL;
    mem_free(left.text);
}

void targets_forget(nodes *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->left_names.len; i++) {
        if (i < self->left_before)
            name_forget(self, self->left_names.at[i]);
        else
            self->left_names.at[kept++] = self->left_names.at[i];
    }
    self->left_names.len = self->left_before = kept;
}

void targets_done(nodes *self)
{
    for (size_t i = 0; i < self->left_names.len; i++)
        name_forget(self, self->left_names.at[i]);
    vec_done(&self->left_names);
    for (size_t i = 0; i < self->targets.len; i++) {
        mem_free(self->targets.at[i].name);
        mem_free(self->targets.at[i].annotations);
        mem_free(self->targets.at[i].taints);
    }
    for (size_t i = 0; i < self->label_sets.len; i++)
        mem_free((void *)(uintptr_t)self->label_sets.entries[i].value);
    vec_done(&self->targets);
    vec_done(&self->free_targets);
}
