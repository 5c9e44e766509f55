/* SPDX-License-Identifier: Apache-2.0 */
/* Records in pieces: a Skyhook's own, and one on each of its nodes, each written when it changes.
 *
 * A claim is written to the Skyhook before anything is done to its node, and its end to the node
 * before the Skyhook. So there are two ways in which a node's record may differ from the Skyhook's
 * after a crash: the claim is there and the node does not know of it yet, or the node says how it
 * ended and the Skyhook does not know yet. The number of the claim tells which. */
#include <inttypes.h>
#include <stdlib.h>

#include "engine/interrupt.h"
#include "engine/node_gate.h"
#include "engine/nodes_internal.h"

#define PENDING_BYTES (1u << 20)

/* ---- views ---- */

static const node_placement *find(const nodes *self, str change_name, str target)
{
    const change *c = change_find(self, change_name);
    uint32_t index = c ? target_find(self, target) : NOBODY;
    return index == NOBODY ? NULL : placement_on(self, index, c);
}

static placement_state state_of(const nodes *self, const node_placement *p)
{
    placement_view v;
    return nodes_placement(self, p->id, &v) ? v.state : PLACEMENT_EXCLUDED;
}

/* What the interrupt that runs would be if it were decided now: what it was merged from still
 * stands, but for an edit. */
static str interrupt_now(const node_placement *p, arena *a)
{
    const package_rules *r = &p->change->rules;
    uint16_t *packages = ARENA_ARRAY(a, r->len + 1u, uint16_t);
    merged_interrupt m;
    if (!packages)
        return (str){NULL, 0};
    uint16_t count = packages_runnable(r, &p->entries, packages);
    if (!interrupts_merge(r, &p->entries, (package_choice){packages, count}, a, &m))
        return (str){NULL, 0};
    return m.owner == PACKAGE_NO_RULE ? STR_EMPTY : interrupt_json(&m, a);
}

bool nodes_node(const void *context, str change_name, str target, arena *a, node_view *ret)
{
    const nodes *self = context;
    const node_placement *p = find(self, change_name, target);
    package_view *packages = p ? ARENA_ARRAY(a, p->entries.len + 1u, package_view) : NULL;
    if (!packages)
        return false;
    for (uint16_t i = 0; i < p->entries.len; i++) {
        const package_entry *e = &p->entries.at[i];
        bool running = e->flags & ENTRY_RUNNING;
        bool interrupts = running && stage_interrupts(e->stage);
        str decided = interrupts ? names_text(self->core->names, e->interrupt) : STR_EMPTY;
        str now = interrupts ? interrupt_now(p, a) : STR_EMPTY;
        if (!now.ptr)
            return false;
        packages[i] = (package_view){.name = names_text(self->core->names, e->name),
                                     .version = names_text(self->core->names, e->version),
                                     .stage = e->stage,
                                     .state = e->state,
                                     .restarts = e->restarts,
                                     .attempt = e->attempt,
                                     .generation = e->generation,
                                     .running = running,
                                     .interrupt = decided,
                                     .overtaken = !str_eq(now, decided)};
    }
    *ret = (node_view){
        .state = state_of(self, p),
        .packages = packages,
        .package_count = p->entries.len,
        .order = p->order,
        .selected = p->selected,
        .in_order = p->in_priority,
        .cordoned = cordon_stands(p),
        .cordoned_before = self->targets.at[p->target].cordoned_before,
        .draining = p->phase == PHASE_DRAINING && p->drain_told && !p->drained && !p->no_cordon,
        .drain_since_ms = p->drain_begun ? p->since_ms : 0,
        .malformed = p->malformed,
        .stopped = change_halted(p->change) || p->leaving || p->reset_pending ||
                   node_blocked_in_flight(self, p),
        .untolerated = node_untolerated(self, p, p->phase != PHASE_IDLE || p->done),
        .why = p->failed ? names_text(self->core->names, p->why) : STR_EMPTY,
    };
    return true;
}

/* ---- config changes ---- */

static bool is_listed(str list, str key)
{
    while (list.ptr && list.len > 0)
        if (str_eq(str_cut(&list, ','), key))
            return true;
    return false;
}

/* Adds what a node that is not done has yet to be given, or is being given: "a,b". Most nodes are
 * where the one before them is. */
static void add_pending(const nodes *self, const change *c, const package_rule *of, buf *keys)
{
    package_entry like = {0};
    for (size_t i = 0; i < c->members.len; i++) {
        if (c->members.at[i] == NOBODY || self->placements.at[c->members.at[i]].done)
            continue;
        const package_entry *e =
            entry_of(&c->rules, &self->placements.at[c->members.at[i]].entries, of);
        if (!e || (e->config == like.config && e->pending == like.pending &&
                   e->stage == like.stage && e->state == like.state))
            continue;
        like = *e;
        name_id found = package_pending(&c->rules, of, e);
        str rest = found != 0 ? names_text(self->core->names, found) : STR_EMPTY;
        while (rest.ptr && rest.len > 0) {
            str key = str_cut(&rest, ',');
            if (is_listed(buf_str(keys), key))
                continue;
            buf_addz(keys, keys->len > 0 ? "," : "");
            buf_add(keys, key);
        }
    }
}

static bool put_pending(const nodes *self, const change *c, const package_rule *of, buf *out)
{
    const char *comma = "[";
    label_set files = of->spec->config_map;
    buf keys = BUF(PENDING_BYTES);
    if (files.len > 0)
        add_pending(self, c, of, &keys);
    for (size_t i = 0; i < files.len; i++) {
        if (!is_listed(buf_str(&keys), files.at[i].key))
            continue;
        buf_addz(out, comma);
        buf_add_json(out, files.at[i].key);
        comma = ",";
    }
    out->failed |= keys.failed;
    buf_done(&keys);
    bool any = comma[0] == ',';
    buf_addz(out, any ? "]" : "null");
    return any;
}

bool nodes_config_updates(const void *context, str change_name, buf *out)
{
    const nodes *self = context;
    const change *c = change_find(self, change_name);
    size_t start = out->len;
    bool any = false;
    for (uint16_t i = 0; c && c->not_done > 0 && i < c->rules.len; i++) {
        buf_addc(out, i == 0 ? '{' : ',');
        buf_add_json(out, c->rules.at[i].spec->name);
        buf_addc(out, ':');
        any |= put_pending(self, c, &c->rules.at[i], out);
    }
    if (any) {
        buf_addc(out, '}');
    } else {
        out->len = start;
        buf_addz(out, "null");
    }
    return c && !out->failed;
}

void nodes_held(const void *context, str change_name, held_view *ret)
{
    const nodes *self = context;
    const change *c = change_find(self, change_name);
    if (!c)
        return;
    ret->policy_missing = c->policy_missing;
    for (size_t i = 0; i < self->changes.len; i++) {
        const change *o = self->changes.at[i];
        ret->predecessor |= !o->disabled && o->sequencing == SEQUENCING_ALL && o->not_done > 0 &&
                            change_before(o, c);
    }
}

/* ---- writing ---- */

bool nodes_keep_placement(const void *context, str change_name, str target, buf *out)
{
    const nodes *self = context;
    const node_placement *p = find(self, change_name, target);
    if (p)
        placement_put(self, p, out);
    return p;
}

/* "name":[number of the claim, place in the rollout] of everybody in flight; and a 1 of those that
 * do not count in nodeOrderOffset when they end, since a reset took their place away. */
static void put_claims(const nodes *self, const change *c, buf *out)
{
    const char *comma = "";
    buf_addz(out, ",\"claims\":{");
    for (size_t i = 0; i < c->members.len; i++) {
        if (c->members.at[i] == NOBODY)
            continue;
        const node_placement *p = &self->placements.at[c->members.at[i]];
        if (p->phase == PHASE_IDLE)
            continue;
        buf_addz(out, comma);
        buf_add_json(out, target_name(self, p->target));
        bool uncounted = !p->in_priority || p->leave_priority;
        buf_addf(out, ":[%u,%u%s]", p->claims, p->order, uncounted ? ",1" : "");
        comma = ",";
    }
    buf_addc(out, '}');
}

/* What the nodes were to get, to see at a restart what an edit has changed. */
static void put_packages(const nodes *self, const change *c, buf *out)
{
    buf_addz(out, ",\"packages\":[");
    for (size_t i = 0; i < c->before.len; i++) {
        const package_rule *r = &c->before.at[i];
        buf_addf(out, "%s[", i > 0 ? "," : "");
        buf_add_json(out, names_text(self->core->names, r->name));
        buf_addc(out, ',');
        buf_add_json(out, names_text(self->core->names, r->version));
        buf_addf(out, ",\"%016" PRIx64 "\",%d]", r->digest,
                 (r->uninstall ? 1 : 0) + (r->unwanted ? 2 : 0));
    }
    buf_addc(out, ']');
}

bool nodes_keep_change(const void *context, str change_name, buf *out)
{
    const nodes *self = context;
    const change *c = change_find(self, change_name);
    if (!c)
        return false;
    buf_addf(out, "{\"offset\":%" PRId64, c->order_offset);
    record_put_number(out, "rolling", c->rolling, 0);
    record_put_number(out, "tellReset", c->tell_reset, 0);
    record_put_number(out, "heldTaint", c->held_taint, 0);
    put_claims(self, c, out);
    found_put(self, c, out);
    put_packages(self, c, out);
    buf_addz(out, ",\"cohort\":");
    cohort_save(c->cohort, out);
    buf_addc(out, '}');
    return true;
}

str nodes_annotation(const void *context, str target, str key)
{
    const nodes *self = context;
    uint32_t index = target_find(self, target);
    return index == NOBODY ? (str){NULL, 0}
                           : target_annotation(&self->targets.at[index], key, STR_EMPTY);
}

/* ---- agreeing ---- */

/* The claim was written, and nothing was done to the node yet. */
static void begin(node_placement *p, yyjson_val *claim)
{
    change *c = p->change;
    p->claims = (uint32_t)yyjson_get_uint(yyjson_arr_get(claim, 0));
    p->phase = PHASE_WORKING;
    p->failed = p->forgiven = p->deferred = false;
    p->cordon_again = p->cordon_lost = p->no_cordon = false;
    c->in_flight++;
    if (p->in_priority)
        return;
    p->in_priority = true;
    p->order = (uint32_t)yyjson_get_uint(yyjson_arr_get(claim, 1));
    c->priority_entries++;
}

/* The node says how its claim ended. */
static bool end(node_placement *p, yyjson_val *claim)
{
    change *c = p->change;
    member_state how = p->complete ? MEMBER_DONE : p->failed ? MEMBER_FAILED : MEMBER_BLOCKED;
    if (how == MEMBER_DONE && !p->in_priority && yyjson_arr_size(claim) < 3)
        c->order_offset++;
    c->cohort_dirty = true;
    return cohort_outcome(c->cohort, p->member, how) &&
           cohort_set_retry(c->cohort, p->member, p->failed ? p->retry_ms : REASON_NEVER);
}

static bool agree(nodes *self, node_placement *p, yyjson_val *claims)
{
    const cohort *c = p->change->cohort;
    str name = target_name(self, p->target);
    bool claimed = cohort_state(c, p->member) == MEMBER_IN_FLIGHT;
    yyjson_val *claim = yyjson_obj_getn(claims, name.ptr, name.len);
    bool good = true;
    if (claimed && p->phase == PHASE_IDLE) {
        bool is_new = !claim || p->claims < yyjson_get_uint(yyjson_arr_get(claim, 0));
        if (is_new)
            begin(p, claim);
        else
            good = end(p, claim);
    } else if (!claimed && p->phase != PHASE_IDLE) {
        good = cohort_claim(p->change->cohort, p->member);
    }
    placement_count(self, p);
    timer_set(self, p, flight_deadline(self, p));
    timers_purge(self);
    target_touch(self, p->target);
    return good;
}

/* Of what another operator had on its list only names and versions are known: the rest of what is
 * still on it counts as it is. */
static const package_rule *rule_like(const change *c, const package_rule *of)
{
    for (uint16_t i = 0; i < c->rules.len; i++)
        if (c->rules.at[i].name == of->name && c->rules.at[i].version == of->version)
            return &c->rules.at[i];
    return NULL;
}

static void get_packages(nodes *self, change *c, yyjson_val *json)
{
    VEC(package_rule) before = {0};
    yyjson_arr_iter walk = yyjson_arr_iter_with(json);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        const char *name = yyjson_get_str(yyjson_arr_get(one, 0));
        const char *of = yyjson_get_str(yyjson_arr_get(one, 1));
        const char *digest = yyjson_get_str(yyjson_arr_get(one, 2));
        uint64_t flags = yyjson_get_uint(yyjson_arr_get(one, 3));
        package_rule r = {.name = nodes_name(self, str_of(name ? name : "")),
                          .version = nodes_name(self, str_of(of ? of : "")),
                          .digest = digest ? strtoull(digest, NULL, 16) : 0,
                          .uninstall = flags & 1u,
                          .unwanted = flags & 2u};
        const package_rule *same = digest ? NULL : rule_like(c, &r);
        if (!vec_push(&before, same ? *same : r))
            nodes_memory(self);
    }
    change_edited_since(self, c, before.at, before.len);
    vec_done(&before);
}

bool kept_agree(nodes *self, change *c, yyjson_val *json)
{
    yyjson_val *claims = yyjson_obj_get(json, "claims");
    bool good = true;
    for (size_t i = 0; good && i < c->members.len; i++)
        if (c->members.at[i] != NOBODY)
            good = agree(self, &self->placements.at[c->members.at[i]], claims);
    if (yyjson_obj_get(json, "packages"))
        get_packages(self, c, yyjson_obj_get(json, "packages"));
    return good;
}

/* As of one whose status was lost, or that was made anew: the nodes alone remember. */
void kept_claim(nodes *self)
{
    for (size_t i = 0; i < self->changes.len; i++) {
        change *c = self->changes.at[i];
        for (member_id m = 0; m < c->members.len; m++) {
            uint32_t at = c->members.at[m];
            if (at == NOBODY || self->placements.at[at].phase == PHASE_IDLE ||
                cohort_state(c->cohort, m) == MEMBER_IN_FLIGHT)
                continue;
            c->cohort_dirty = true;
            if (!cohort_claim(c->cohort, m))
                nodes_memory(self);
        }
    }
}
