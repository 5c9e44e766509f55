/* SPDX-License-Identifier: Apache-2.0 */
/* The whole fleet in few bytes: what the dashboard draws, asked for again and again. Every name is
 * written once, every release target is seven numbers. */
#include "base/mem.h"
#include "base/strmap.h"
#include "server/api.h"

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

static bool list_cell(void *context, const placement_view *v)
{
    fleet_listing *l = context;
    if (v->kind != TARGET_RESOURCE)
        return true;
    const uint64_t numbers[CELL_NUMBERS] = {
        number_of(l, &l->changes, v->change),  number_of(l, &l->environments, v->environment),
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

void run_fleet(call *c)
{
    const engine *e = control_engine(c->api->control);
    scoped(buf_done) buf cells = BUF(LIMIT_TEXT_BYTES);
    fleet_listing l = {.cells = &cells};
    buf *out = api_out(c);
    if (!e) {
        api_fail(c, 503, NULL, "the engine is being rebuilt after a failure of the store");
        return;
    }
    str policy = api_text(c, "policy");
    if (policy.len > 0 && !control_object(c->api->control, KIND_ROLLOUT_POLICY, policy)) {
        api_fail(c, 404, NULL, "there is no RolloutPolicy \"%s\"", str_shown(policy).text);
        return;
    }
    bool good = policy.len > 0 ? engine_policy(e, policy, list_cell, &l)
                               : engine_placements(e, list_cell, &l);
    good = good && !l.no_memory && !cells.failed;
    buf_addf(out, "{\"sequence\":%lld,\"states\":[",
             (long long)store_sequence(control_store(c->api->control)));
#define X(state, text) "\"" text "\","
    str states = STR(PLACEMENT_STATES(X));
#undef X
    buf_add(out, str_part(states, 0, states.len - 1));
    buf_addz(out, "]");
    write_names(out, "changes", &l.changes);
    write_names(out, "environments", &l.environments);
    write_names(out, "targets", &l.targets);
    write_names(out, "versions", &l.versions);
    write_names(out, "groups", &l.groups);
    buf_addz(out, ",\"cells\":[");
    buf_add(out, buf_str(&cells));
    buf_addz(out, "]}\n");
    if (!good)
        api_fail(c, 503, NULL, "memory ran out");
    strmap_done(&l.changes);
    strmap_done(&l.environments);
    strmap_done(&l.targets);
    strmap_done(&l.versions);
    strmap_done(&l.groups);
}
