/* SPDX-License-Identifier: Apache-2.0 */
#include "server/views.h"

#include "base/mem.h"
#include "base/strmap.h"
#include "server/api_shapes.h"

/* ---- the fleet: every name is written once, every placement is seven numbers ---- */

#define CELL_NUMBERS 7

typedef struct fleet_listing {
    strmap changes, environments, targets, versions,
        groups; /* to their place in order of insertion */
    buf *cells;
    int64_t count;
    bool no_memory;
} fleet_listing;

static uint64_t number_of(fleet_listing *l, strmap *names, str name)
{
    const uint64_t *known = strmap_get(names, name);
    if (known)
        return *known;
    uint64_t number = names->len;
    l->no_memory = !strmap_put(names, name, number) || l->no_memory;
    return number;
}

str view_environment(const placement_view *v)
{
    if (v->kind != TARGET_CLUSTER)
        return v->environment;
    str name = str_find(v->target, STR("/")) != SIZE_MAX ? v->target : v->change;
    return str_cut(&name, '/');
}

static bool list_cell(void *context, const placement_view *v)
{
    fleet_listing *l = context;
    const uint64_t numbers[CELL_NUMBERS] = {
        number_of(l, &l->changes, v->change),  number_of(l, &l->environments, view_environment(v)),
        number_of(l, &l->targets, v->target),  (uint64_t)v->state,
        number_of(l, &l->versions, v->wanted), number_of(l, &l->versions, v->current),
        number_of(l, &l->groups, v->group),
    };
    for (size_t i = 0; i < CELL_NUMBERS; i++)
        buf_addf(l->cells, l->count++ > 0 ? ",%llu" : "%llu", (unsigned long long)numbers[i]);
    return !l->no_memory;
}

static void write_names(buf *out, const char *key, const strmap *names)
{
    buf_addf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < names->len; i++) {
        buf_addz(out, i > 0 ? "," : "");
        buf_add_json(out, names->entries[i].key);
    }
    buf_addz(out, "]");
}

static void write_paused(fleet_scope scope, const strmap *changes, buf *out)
{
    bool first = true;
    buf_addz(out, ",\"paused\":[");
    for (size_t i = 0; i < changes->len; i++) {
        bool paused = false;
        for (size_t k = 0; k < scope.count; k++)
            paused = paused || engine_paused(scope.engines[k], changes->entries[i].key);
        if (!paused)
            continue;
        buf_addf(out, first ? "%zu" : ",%zu", i);
        first = false;
    }
    buf_addc(out, ']');
}

static void listing_done(fleet_listing *l)
{
    strmap_done(&l->changes);
    strmap_done(&l->environments);
    strmap_done(&l->targets);
    strmap_done(&l->versions);
    strmap_done(&l->groups);
}

bool view_fleet(fleet_scope scope, int64_t sequence, buf *out)
{
    scoped(buf_done) buf cells = BUF(LIMIT_TEXT_BYTES);
    fleet_listing l = {.cells = &cells};
    bool good = true;
    for (size_t i = 0; good && i < scope.count; i++)
        good = scope.policy.len > 0 ? engine_policy(scope.engines[i], scope.policy, list_cell, &l)
                                    : engine_placements(scope.engines[i], list_cell, &l);
    good = good && !l.no_memory && !cells.failed;
    buf_addf(out, "{\"sequence\":%lld,\"states\":[", (long long)sequence);
#define X(state, text) "\"" text "\","
    str states = STR(PLACEMENT_STATES(X));
#undef X
    buf_add(out, str_part(states, 0, states.len - 1));
    buf_addz(out, "]");
    write_names(out, "changes", &l.changes);
    write_paused(scope, &l.changes, out);
    write_names(out, "environments", &l.environments);
    write_names(out, "targets", &l.targets);
    write_names(out, "versions", &l.versions);
    write_names(out, "groups", &l.groups);
    buf_addz(out, ",\"cells\":[");
    buf_add(out, buf_str(&cells));
    buf_addz(out, "]}\n");
    listing_done(&l);
    return good;
}

/* ---- one target ---- */

const char *view_state(placement_state state)
{
    static const char *const state_names[] = {
#define X(state, text) [PLACEMENT_##state] = (text),
        PLACEMENT_STATES(X)
#undef X
    };
    return state_names[state];
}

bool view_target(const engine *e, const placement_view *v, size_t names, arena *a, buf *out)
{
    reasons why = {0};
    if (v->state != PLACEMENT_DONE && !engine_reasons(e, v->id, a, &why))
        return false;
    buf_addz(out, "{\"target\":");
    buf_add_json(out, v->target);
    buf_addz(out, ",\"change\":");
    buf_add_json(out, v->change);
    buf_addz(out, ",\"environment\":");
    buf_add_json(out, view_environment(v));
    buf_addf(out, ",\"state\":\"%s\",\"summary\":", view_state(v->state));
    buf_add_json(out, engine_sentence(a, v, &why));
    buf_addz(out, ",\"wanted\":");
    buf_add_json(out, v->wanted);
    buf_addz(out, ",\"current\":");
    buf_add_json(out, v->current);
    buf_addz(out, ",\"reasons\":[");
    for (size_t i = 0; i < why.len; i++) {
        buf_addz(out, i > 0 ? "," : "");
        reason_json(&why.at[i], names, a, out);
    }
    buf_addz(out, "]}");
    return true;
}

/* ---- groups ---- */

static const char *const group_names[] = {
#define X(kind, text) [GROUP_##kind] = (text),
    GROUP_KINDS(X)
#undef X
};

void view_group(const group_view *v, buf *out)
{
    group_output output = {.kind = str_of(group_names[v->kind]),
                           .change = v->change,
                           .name = v->name,
                           .matched = v->matched,
                           .limit = v->limit,
                           .holders = v->holders,
                           .peak = v->peak};
    shape_write(&group_output_shape, &output, out, 0);
}
