/* SPDX-License-Identifier: Apache-2.0 */
/* What survives a restart: claims, attempts, outcomes, what was done to nodes.
 *
 *     nodes node/NODE {...}             only where facts do not say it
 *     nodes placement/SK/NODE {...}
 *     nodes skyhook/SK {...,"cohort":{...}}
 *
 * The annotation drover_SK of a node has the form of a placement's record. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "engine/node_gate.h"
#include "engine/nodes_internal.h"
#include "model/document.h"

#define COHORT_TEXT_BYTES (256u * 1024u * 1024u)

#define PLACEMENT_FLAGS(X)                                                                         \
    X(failed)                                                                                      \
    X(forgiven)                                                                                    \
    X(untold)                                                                                      \
    X(cordoned)                                                                                    \
    X(cordon_seen)                                                                                 \
    X(cordon_lost)                                                                                 \
    X(cordon_again)                                                                                \
    X(no_cordon)                                                                                   \
    X(drained)                                                                                     \
    X(in_priority)                                                                                 \
    X(leave_priority) X(reset_pending) X(malformed) X(drain_told) X(leaving) X(astray)
#define TARGET_FLAGS(X)                                                                            \
    X(touched)                                                                                     \
    X(taint_decided)                                                                               \
    X(untaint_decided) X(auto_tainted) X(uncordon_decided) X(cordoned_before) X(before_seen)

static const char *const phase_texts[] = {
#define X(phase, text) [PHASE_##phase] = text,
    NODE_PHASES(X)
#undef X
};

/* ---- writing ---- */

void record_put_number(buf *out, const char *key, int64_t value, int64_t otherwise)
{
    if (value != otherwise)
        buf_addf(out, ",\"%s\":%" PRId64, key, value);
}

static void put_text(buf *out, const char *key, str text)
{
    if (text.len == 0)
        return;
    buf_addf(out, ",\"%s\":", key);
    buf_add_json(out, text);
}

static void put_entry(const nodes *self, const package_entry *e, buf *out)
{
    const names *table = self->core->names;
    buf_addz(out, "{\"name\":");
    buf_add_json(out, names_text(table, e->name));
    put_text(out, "version", names_text(table, e->version));
    put_text(out, "stage", stage_text(e->stage));
    put_text(out, "state", state_text(e->state));
    put_text(out, "config", names_text(table, e->config));
    put_text(out, "pending", names_text(table, e->pending));
    put_text(out, "interrupt", names_text(table, e->interrupt));
    record_put_number(out, "attempt", e->attempt, 0);
    record_put_number(out, "restarts", e->restarts, 0);
    record_put_number(out, "losses", e->losses, 0);
    record_put_number(out, "generation", e->generation, 0);
    record_put_number(out, "flags", e->flags, 0);
    buf_addc(out, '}');
}

void placement_put(const nodes *self, const node_placement *p, buf *out)
{
    const names *table = self->core->names;
    buf_addf(out, "{\"attempt\":%u", p->attempt);
    put_text(out, "phase", p->phase == PHASE_IDLE ? STR_EMPTY : str_of(phase_texts[p->phase]));
    record_put_number(out, "order", p->order, 0);
    record_put_number(out, "claims", p->claims, 0);
    put_text(out, "rebootedFor", names_text(table, p->rebooted));
    if (p->boot != 0)
        buf_addf(out, ",\"boot\":\"%016" PRIx64 "\"", p->boot);
    bool waits = (p->phase == PHASE_DRAINING && p->drain_begun) || p->phase == PHASE_REBOOTING;
    record_put_number(out, "since", waits ? p->since_ms : REASON_NEVER, REASON_NEVER);
    record_put_number(out, "retry", p->retry_ms, REASON_NEVER);
    put_text(out, "why", names_text(table, p->why));
    put_text(out, "pod", drain_pod(p));
    put_text(out, "budget", drain_budget(p));
    record_put_number(out, "failures", p->failures, 0);
#define X(flag) record_put_number(out, #flag, p->flag, 0);
    PLACEMENT_FLAGS(X)
#undef X
    if (p->deferred) /* the outcome its batch will be judged by */
        record_put_number(out, "outcome", (int64_t)cohort_state(p->change->cohort, p->member), 0);
    for (uint16_t i = 0; i < p->entries.len; i++) {
        buf_addz(out, i == 0 ? ",\"entries\":[" : ",");
        put_entry(self, &p->entries.at[i], out);
    }
    buf_addz(out, p->entries.len > 0 ? "]}" : "}");
}

static bool target_matters(const nodes *self, const node_target *t)
{
    bool matters = t->not_ready;
#define X(flag) matters |= t->flag;
    TARGET_FLAGS(X)
#undef X
    for (uint32_t i = t->first; i != NOBODY; i = self->placements.at[i].next)
        matters |= self->placements.at[i].phase != PHASE_IDLE;
    return matters;
}

static void put_target(const node_target *t, buf *out)
{
    buf_addf(out, "{\"ready\":%" PRId64, t->ready_ms);
#define X(flag) record_put_number(out, #flag, t->flag, 0);
    TARGET_FLAGS(X)
#undef X
    buf_addc(out, '}');
}

static void put_change(const nodes *self, const change *c, buf *out)
{
    buf_addf(out, "nodes skyhook/%.*s {\"offset\":%" PRId64,
             STR_ARG(names_text(self->core->names, c->name)), c->order_offset);
    record_put_number(out, "paused", c->paused, 0);
    record_put_number(out, "rolling", c->rolling, 0);
    record_put_number(out, "tellReset", c->tell_reset, 0);
    record_put_number(out, "finalizerTold", c->finalizer_told, 0);
    record_put_number(out, "heldTaint", c->held_taint, 0);
    found_put(self, c, out);
    buf_addz(out, ",\"cohort\":");
    cohort_save(c->cohort, out);
    buf_addz(out, "}\n");
}

typedef struct sorted {
    str first;
    str second;
    uint32_t index;
} sorted;

static int by_text(const void *a, const void *b)
{
    const sorted *x = a;
    const sorted *y = b;
    int order = str_cmp(x->first, y->first);
    return order != 0 ? order : str_cmp(x->second, y->second);
}

typedef VEC(sorted) sorted_list;

static void save_targets(const nodes *self, sorted_list *list, buf *out)
{
    for (uint32_t i = 0; i < self->targets.len; i++) {
        const node_target *t = &self->targets.at[i];
        sorted one = {target_name(self, i), STR_EMPTY, i};
        if (t->present && target_matters(self, t) && !vec_push(list, one))
            out->failed = true;
    }
    if (list->len > 1)
        qsort(list->at, list->len, sizeof *list->at, by_text);
    for (size_t i = 0; i < list->len; i++) {
        buf_addf(out, "nodes node/%.*s ", STR_ARG(list->at[i].first));
        put_target(&self->targets.at[list->at[i].index], out);
        buf_addc(out, '\n');
    }
    list->len = 0;
}

static void save_placements(const nodes *self, sorted_list *list, buf *out)
{
    for (uint32_t i = 0; i < self->placements.len; i++) {
        const node_placement *p = &self->placements.at[i];
        if (!p->change)
            continue;
        sorted one = {names_text(self->core->names, p->change->name), target_name(self, p->target),
                      i};
        if (!vec_push(list, one))
            out->failed = true;
    }
    if (list->len > 1)
        qsort(list->at, list->len, sizeof *list->at, by_text);
    for (size_t i = 0; i < list->len; i++) {
        buf_addf(out, "nodes placement/%.*s/%.*s ", STR_ARG(list->at[i].first),
                 STR_ARG(list->at[i].second));
        const node_placement *p = &self->placements.at[list->at[i].index];
        placement_put(self, p, out);
        out->len -= !out->failed; /* its last brace */
        buf_addf(out, ",\"id\":%u}\n", p->id);
    }
    list->len = 0;
}

void nodes_save(const void *context, buf *out)
{
    const nodes *self = context;
    sorted_list list = {0};
    if (self->changes.len == 0 && self->targets.len == 0)
        return;
    save_targets(self, &list, out);
    save_placements(self, &list, out);
    for (uint32_t i = 0; i < self->changes.len; i++) {
        sorted one = {names_text(self->core->names, self->changes.at[i]->name), STR_EMPTY, i};
        if (!vec_push(&list, one))
            out->failed = true;
    }
    if (list.len > 1)
        qsort(list.at, list.len, sizeof *list.at, by_text);
    for (size_t i = 0; i < list.len; i++)
        put_change(self, self->changes.at[list.at[i].index], out);
    vec_done(&list);
}

/* ---- reading ---- */

int64_t record_get_number(yyjson_val *json, const char *key, int64_t otherwise)
{
    yyjson_val *value = yyjson_obj_get(json, key);
    return yyjson_is_int(value) ? yyjson_get_sint(value) : otherwise;
}

static str get_text(yyjson_val *json, const char *key)
{
    yyjson_val *value = yyjson_obj_get(json, key);
    return yyjson_is_str(value) ? (str){yyjson_get_str(value), yyjson_get_len(value)} : STR_EMPTY;
}

static name_id get_name(nodes *self, yyjson_val *json, const char *key)
{
    return nodes_name(self, get_text(json, key));
}

static void get_entry(nodes *self, node_placement *p, yyjson_val *json, bool may_add)
{
    name_id name = get_name(self, json, "name");
    name_id of_version = get_name(self, json, "version");
    package_entry *e = entry_find(&p->entries, name, of_version);
    if (!e && !may_add)
        return;
    if (!e && !(e = entry_add(&p->entries, name, of_version))) {
        nodes_memory(self);
        return;
    }
    package_stage stage = STAGE_NONE;
    package_state state = PACKAGE_NONE;
    e->config = get_name(self, json, "config");
    e->pending = get_name(self, json, "pending");
    e->interrupt = get_name(self, json, "interrupt");
    e->attempt = (uint32_t)record_get_number(json, "attempt", 0);
    e->generation = (uint32_t)record_get_number(json, "generation", 0);
    if (!may_add) /* the node's own state says the rest */
        return;
    stage_parse(get_text(json, "stage"), &stage);
    state_parse(get_text(json, "state"), &state);
    e->stage = (uint8_t)stage;
    e->state = (uint8_t)state;
    e->restarts = (uint16_t)record_get_number(json, "restarts", 0);
    e->losses = (uint8_t)record_get_number(json, "losses", 0);
    e->flags = (uint8_t)record_get_number(json, "flags", 0);
}

static void get_entries(nodes *self, node_placement *p, yyjson_val *json, bool may_add)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(yyjson_obj_get(json, "entries"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        get_entry(self, p, one, may_add);
}

bool placement_memory_read(nodes *self, node_placement *p, str text, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    yyjson_val *json = a ? json_parse(a, text, error) : NULL;
    if (!json)
        return a ? false : err_memory(error);
    p->attempt = (uint32_t)record_get_number(json, "attempt", 0);
    p->order = (uint32_t)record_get_number(json, "order", 0);
    p->claims = (uint32_t)record_get_number(json, "claims", 0);
    p->rebooted = get_name(self, json, "rebootedFor");
    get_entries(self, p, json, false);
    return true;
}

/* Who wrote that may have gone by a clock that was ahead: nobody waits longer for it than ever. */
static int64_t not_after(int64_t ms, int64_t limit_ms)
{
    return limit_ms == INT64_MIN || ms < limit_ms ? ms : limit_ms;
}

static void get_placement(nodes *self, node_placement *p, yyjson_val *json)
{
    node_target *t = &self->targets.at[p->target];
    bool garbled = p->malformed; /* as the node's own state is now */
    p->entries.len = 0;
    get_entries(self, p, json, true);
    p->id = core_numbered(self->core, record_get_number(json, "id", 0));
    p->attempt = (uint32_t)record_get_number(json, "attempt", 0);
    p->order = (uint32_t)record_get_number(json, "order", 0);
    p->claims = (uint32_t)record_get_number(json, "claims", 0);
    p->rebooted = get_name(self, json, "rebootedFor");
    int64_t now = self->core->now_ms;
    p->since_ms = not_after(record_get_number(json, "since", 0), now);
    p->retry_ms = record_get_number(json, "retry", REASON_NEVER);
    if (p->retry_ms != REASON_NEVER && now != INT64_MIN) /* it was stepped before */
        p->retry_ms = not_after(p->retry_ms, now + BACKOFF_MOST_MS);
    p->failures = (uint16_t)record_get_number(json, "failures", 0);
    p->why = get_name(self, json, "why");
    drain_block(self, p, get_text(json, "pod"), get_text(json, "budget"));
    str boot = get_text(json, "boot");
    p->boot = boot.len > 0 ? strtoull(boot.ptr, NULL, 16) : 0;
#define X(flag) p->flag = record_get_number(json, #flag, 0) != 0;
    PLACEMENT_FLAGS(X)
#undef X
    p->phase = PHASE_IDLE;
    for (size_t i = 0; i < sizeof phase_texts / sizeof phase_texts[0]; i++)
        if (str_eq(get_text(json, "phase"), str_of(phase_texts[i])))
            p->phase = (uint8_t)i;
    p->drain_begun = p->phase == PHASE_DRAINING && yyjson_obj_get(json, "since");
    p->malformed |= garbled && p->phase == PHASE_IDLE;
    p->change->in_flight += p->phase != PHASE_IDLE;
    p->change->priority_entries += p->in_priority;
    p->running = 0;
    for (uint16_t i = 0; i < p->entries.len; i++) {
        const package_entry *e = &p->entries.at[i];
        if (e->flags & ENTRY_RUNNING)
            running_count(t, p, e, true);
    }
}

/* Makes it to be found by its number. */
static void placement_number(nodes *self, node_placement *p)
{
    if (p->id == PLACEMENT_UNNUMBERED)
        return;
    if (!keymap_put(&self->by_id, p->id, placement_index(self, p)))
        nodes_memory(self);
}

static bool restore_placement(nodes *self, str key, yyjson_val *json, err *error)
{
    str target_text = key;
    str change_text = str_cut(&target_text, '/');
    change *c = change_find(self, change_text);
    uint32_t target = target_find(self, target_text);
    if (!c || target == NOBODY)
        return true; /* gone since */
    node_placement *p = placement_on(self, target, c);
    if (!p) { /* not selected any more: it takes no new number */
        if (!(p = placement_keep(self, target, c)))
            return err_memory(error);
        keymap_remove(&self->by_id, p->id);
        self->core->next_placement--;
    }
    get_placement(self, p, json);
    cordon_recall(self, p);
    placement_number(self, p);
    reboot_remembered(self, p);
    /* What is remembered of the node counts, not what its annotations said before it was read. */
    bool selects = target_selected(self, target, c, p);
    p->astray = selects && !target_matches(self, target, c);
    /* Who left while nobody looked leaves when its flight can be told to end. */
    p->leaving |= !selects && p->phase != PHASE_IDLE;
    if ((selects || p->leaving) && !p->selected)
        placement_join(self, p);
    else if (!selects && !p->leaving)
        placement_leave(self, p);
    int64_t end = record_get_number(json, "outcome", MEMBER_ABSENT);
    if (p->selected && (end == MEMBER_DONE || end == MEMBER_FAILED || end == MEMBER_BLOCKED)) {
        p->deferred = true;
        if (!cohort_set_state(c->cohort, p->member, (member_state)end))
            return err_memory(error);
    }
    placement_count(self, p);
    timer_set(self, p, flight_deadline(self, p));
    timers_purge(self);
    target_touch(self, target);
    return true;
}

static void restore_target(nodes *self, str name, yyjson_val *json)
{
    uint32_t target = target_find(self, name);
    if (target == NOBODY)
        return;
    node_target *t = &self->targets.at[target];
    t->ready_ms = record_get_number(json, "ready", t->ready_ms);
#define X(flag) t->flag = record_get_number(json, #flag, 0) != 0;
    TARGET_FLAGS(X)
#undef X
}

/* The cohort wants everybody's state first, those in flight as if they were fresh. */
static void give_states(nodes *self, change *c)
{
    for (size_t i = 0; i < c->members.len; i++) {
        if (c->members.at[i] == NOBODY)
            continue;
        node_placement *p = &self->placements.at[c->members.at[i]];
        if (p->deferred) {
            p->deferred = false;
            placement_defer(self, p);
        } else if (p->phase == PHASE_IDLE) {
            placement_evaluate(self, p);
        }
        if (p->phase != PHASE_IDLE && !cohort_set_state(c->cohort, p->member, MEMBER_WAITING))
            nodes_memory(self);
    }
}

static bool restore_change(nodes *self, str name, yyjson_val *json, err *error)
{
    change *c = change_find(self, name);
    if (!c)
        return true;
    /* Kept by a shell in objects of their own: the documents alone say what is paused. */
    bool kept = yyjson_obj_get(json, "claims") != NULL;
    found_get(self, c, yyjson_obj_get(json, "found"), kept);
    give_states(self, c);
    c->order_offset = record_get_number(json, "offset", 0);
    c->rolling = record_get_number(json, "rolling", 0) != 0;
    c->tell_reset = record_get_number(json, "tellReset", 0) != 0;
    /* What it held before an edit that nobody saw is given back in the first step. */
    c->held_taint |= record_get_number(json, "heldTaint", 0) != 0;
    c->finalizer_told = record_get_number(json, "finalizerTold", 0) != 0;
    if (!kept)
        change_set_paused(self, c, record_get_number(json, "paused", 0) != 0);
    buf text = BUF(COHORT_TEXT_BYTES);
    yyjson_val *saved = yyjson_obj_get(json, "cohort");
    if (yyjson_is_obj(saved)) /* people reach the record, too */
        json_write(&text, saved);
    else
        buf_addz(&text, "{}");
    bool good = text.failed ? err_memory(error) : cohort_restore(c->cohort, buf_str(&text), error);
    buf_done(&text);
    if (good && kept && !kept_agree(self, c, json))
        good = err_memory(error);
    return good;
}

void nodes_unnumber(void *context)
{
    nodes *self = context;
    keymap_clear(&self->by_id);
    for (size_t i = 0; i < self->placements.len; i++)
        if (self->placements.at[i].change)
            self->placements.at[i].id = PLACEMENT_UNNUMBERED;
}

void nodes_number(void *context)
{
    nodes *self = context;
    kept_claim(self);
    for (size_t i = 0; i < self->placements.len; i++) {
        node_placement *p = &self->placements.at[i];
        if (!p->change || p->id != PLACEMENT_UNNUMBERED)
            continue;
        p->id = self->core->next_placement++;
        placement_number(self, p);
    }
}

bool nodes_restore(void *context, str key, str text, err *error)
{
    nodes *self = context;
    scoped(arena_cleanup) arena *a = arena_new(0);
    yyjson_val *json = a ? json_parse(a, text, error) : NULL;
    if (!json)
        return a ? false : err_memory(error);
    str rest = key;
    str kind = str_cut(&rest, '/');
    if (str_eq(kind, STR("node")))
        restore_target(self, rest, json);
    else if (str_eq(kind, STR("placement")))
        return restore_placement(self, rest, json, error);
    else if (str_eq(kind, STR("skyhook")))
        return restore_change(self, rest, json, error);
    else
        return err_set(error, "found \"%s\", allowed node, placement, skyhook",
                       str_shown(key).text);
    return true;
}
