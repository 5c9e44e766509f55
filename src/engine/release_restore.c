/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what release_save.c wrote, into an engine that knows the same documents and resources.
 * Records of a group come before those of targets and sites, by their sorting. */

#include "base/mem.h"
#include "engine/chain.h"

static str text(yyjson_val *json, const char *name)
{
    yyjson_val *v = yyjson_obj_get(json, name);
    return yyjson_is_str(v) ? (str){yyjson_get_str(v), yyjson_get_len(v)} : STR_EMPTY;
}

static int64_t number(yyjson_val *json, const char *name)
{
    yyjson_val *v = yyjson_obj_get(json, name);
    return v ? yyjson_get_sint(v) : 0;
}

static uint32_t version_named(releases *r, uint32_t d, yyjson_val *json, const char *name)
{
    str tag = text(json, name);
    return tag.len == 0 ? NO : version_by_tag(r, d, rel_name(r, tag));
}

static uint32_t find(const releases *r, const keymap *map, str name)
{
    return keymap_get(map, names_find(r->core->names, name));
}

static void read_pairs(releases *r, uint32_t t, yyjson_val *list, bool success)
{
    size_t i, max;
    yyjson_val *pair;
    yyjson_arr_foreach(list, i, max, pair)
    {
        yyjson_val *tag = yyjson_arr_get(pair, 0);
        str name = {yyjson_get_str(tag), yyjson_get_len(tag)};
        uint32_t v = version_by_tag(r, r->targets.at[t].deployment, rel_name(r, name));
        if (v == NO)
            return;
        tally_add(r, t, v, yyjson_get_sint(yyjson_arr_get(pair, 1)), success);
        if (success && !keymap_put(&r->succeeded, KEY_PAIR(t, v), 1))
            rel_no_memory(r);
    }
}

static void read_target(releases *r, yyjson_val *json)
{
    uint32_t t = release_find(r, text(json, "deployment"), text(json, "environment"),
                              text(json, "resource"));
    if (t == NO)
        return;
    rel_target *x = &r->targets.at[t];
    uint32_t d = x->deployment;
    x->id = core_numbered(r->core, number(json, "id"));
    if (x->id != PLACEMENT_UNNUMBERED && !keymap_put(&r->placement_of, x->id, t))
        rel_no_memory(r);
    x->current = version_named(r, d, json, "current");
    x->previous = version_named(r, d, json, "previous");
    x->current_ms = number(json, "currentMs");
    x->job = number(json, "job");
    x->job_version = version_named(r, d, json, "jobVersion");
    x->job_role = (job_role)number(json, "jobRole");
    /* A job that is older than the documents may lack slots that they ask for. */
    x->job_epoch = number(json, "jobOlder") != 0 ? r->epoch - 1 : r->epoch;
    x->failed_version = version_named(r, d, json, "failedVersion");
    x->attempts = (uint32_t)number(json, "attempts");
    x->failed_ms = number(json, "failedMs");
    x->failed_as = (job_states)number(json, "failedAs");
    x->failure = rel_name(r, text(json, "failure"));
    x->failed_rollback = number(json, "failedRollback") != 0;
    x->retried = version_named(r, d, json, "retried");
    x->rollback_to = version_named(r, d, json, "rollbackTo");
    tally_forget(r, t);
    read_pairs(r, t, yyjson_obj_get(json, "successes"), true);
    read_pairs(r, t, yyjson_obj_get(json, "failures"), false);
    size_t i, max;
    yyjson_val *pair;
    yyjson_arr_foreach(yyjson_obj_get(json, "refused"), i, max, pair)
    {
        yyjson_val *tag = yyjson_arr_get(pair, 0);
        str name = {yyjson_get_str(tag), yyjson_get_len(tag)};
        target_refuse(r, t, version_by_tag(r, d, rel_name(r, name)),
                      (rel_refusal)yyjson_get_sint(yyjson_arr_get(pair, 1)));
    }
}

void releases_unnumber(void *self)
{
    releases *r = self;
    keymap_clear(&r->placement_of);
    for (uint32_t t = 0; t < r->targets.len; t++)
        if (r->targets.at[t].id != 0)
            r->targets.at[t].id = PLACEMENT_UNNUMBERED;
}

void releases_number(void *self)
{
    releases *r = self;
    for (uint32_t t = 0; t < r->targets.len; t++) {
        if (r->targets.at[t].id != PLACEMENT_UNNUMBERED)
            continue;
        r->targets.at[t].id = r->core->next_placement++;
        if (!keymap_put(&r->placement_of, r->targets.at[t].id, t))
            rel_no_memory(r);
    }
}

static uint32_t rule_named(const releases *r, yyjson_val *json)
{
    uint32_t p = find(r, &r->policy_of, text(json, "policy"));
    name_id id = names_find(r->core->names, text(json, "rule"));
    for (uint32_t i = 0; p != NO && i < r->rules.len; i++)
        if (r->rules.at[i].policy == p && r->rules.at[i].id == id)
            return i;
    return NO;
}

static uint32_t site_named(releases *r, yyjson_val *json)
{
    uint32_t rule_ = rule_named(r, json);
    if (rule_ == NO)
        rule_ = rule_gone_at(r, text(json, "policy"), text(json, "rule"));
    uint32_t e = find(r, &r->environment_of, text(json, "environment"));
    uint32_t res = find(r, &r->resource_of, text(json, "resource"));
    return rule_ == NO || e == NO || res == NO ? NO : site_at(r, rule_, e, res);
}

static void read_site(releases *r, yyjson_val *json)
{
    uint32_t s = site_named(r, json);
    if (s == NO)
        return;
    r->sites.at[s].groups = (uint32_t)number(json, "groups");
    r->sites.at[s].announced = (uint32_t)number(json, "announced");
}

static void read_members(releases *r, uint32_t g, yyjson_val *list)
{
    size_t i, max;
    yyjson_val *json;
    const rel_site *s = &r->sites.at[r->groups.at[g].site];
    str e = rel_text(r, r->environments.at[s->environment].name);
    str res = rel_text(r, r->resources.at[s->resource].name);
    yyjson_arr_foreach(list, i, max, json)
    {
        uint32_t t = release_find(r, text(json, "deployment"), e, res);
        if (t == NO)
            continue;
        uint32_t d = r->targets.at[t].deployment;
        rel_member m = {.target = t,
                        .version = version_named(r, d, json, "version"),
                        .later = version_named(r, d, json, "later"),
                        .good = version_named(r, d, json, "good"),
                        .role = (job_role)number(json, "role"),
                        .state = (rel_member_state)number(json, "state"),
                        .redeploy = number(json, "redeploy") != 0,
                        .ran = number(json, "ran") != 0,
                        .started = (uint32_t)number(json, "started")};
        if (!vec_push(&r->groups.at[g].members, m))
            rel_no_memory(r);
        if (m.state == MEMBER_IS_RUNNING)
            r->targets.at[t].job_group = g;
    }
}

static void read_group(releases *r, yyjson_val *json)
{
    uint32_t s = site_named(r, json);
    if (s == NO)
        return;
    uint32_t announced = r->sites.at[s].announced, groups = r->sites.at[s].groups;
    r->sites.at[s].announced = (uint32_t)number(json, "number");
    uint32_t g = group_new(r, s);
    if (g == NO)
        return;
    r->sites.at[s].announced = announced;
    r->sites.at[s].groups = groups;
    rel_group *group = &r->groups.at[g];
    group->state = (rel_group_state)number(json, "state");
    group->opened_ms = number(json, "openedMs");
    group->locked_ms = number(json, "lockedMs");
    group->turn_ms = number(json, "turnMs");
    group->starts = (uint32_t)number(json, "starts");
    group->took_over = number(json, "tookOver") != 0;
    group->rolling_back = number(json, "rollingBack") != 0;
    group->counted = true;
    r->rules.at[r->sites.at[s].rule].unfinished++;
    if (group->state == GROUP_STATE_EXECUTING || group->state == GROUP_STATE_FAILED) {
        r->sites.at[s].active = g;
        r->resources.at[r->sites.at[s].resource].active = g;
    } else {
        r->sites.at[s].ready = g;
    }
    read_members(r, g, yyjson_obj_get(json, "members"));
}

static void read_positions(releases *r, rel_order *o, uint32_t cell, yyjson_val *json)
{
    size_t i, max;
    yyjson_val *pair;
    o->frozen = (uint32_t)number(json, "frozen");
    o->next = (uint32_t)number(json, "next");
    yyjson_arr_foreach(yyjson_obj_get(json, "positions"), i, max, pair)
    {
        yyjson_val *name = yyjson_arr_get(pair, 0);
        uint32_t res = find(r, &r->resource_of, (str){yyjson_get_str(name), yyjson_get_len(name)});
        if (res == NO)
            continue;
        uint32_t index = cell == NO ? res : keymap_get(&r->target_of, KEY_PAIR(cell, res));
        uint32_t at = (uint32_t)yyjson_get_uint(yyjson_arr_get(pair, 1));
        if (index != NO && !keymap_put(&o->positions, index, at))
            rel_no_memory(r);
    }
}

static void read_order(releases *r, yyjson_val *json)
{
    uint32_t d = find(r, &r->deployment_of, text(json, "deployment"));
    uint32_t e = find(r, &r->environment_of, text(json, "environment"));
    uint32_t c = d == NO || e == NO ? NO : keymap_get(&r->cell_of, KEY_PAIR(d, e));
    if (c == NO)
        return;
    rel_order o = {.version = version_named(r, d, json, "version")};
    read_positions(r, &o, c, json);
    if (!vec_push(&r->cells.at[c].orders, o))
        rel_no_memory(r);
}

static void read_rule(releases *r, yyjson_val *json)
{
    uint32_t i = rule_named(r, json);
    if (i == NO && yyjson_obj_get(json, "overlap"))
        i = rule_gone_at(r, text(json, "policy"), text(json, "rule"));
    if (i == NO)
        return;
    if (!r->rules.at[i].doc) {
        r->rules.at[i].overlap = (overlap_strategy)number(json, "overlap");
        r->rules.at[i].strategy = (rollback_strategy)number(json, "strategy");
    }
    r->rules.at[i].peak = number(json, "peak");
    r->rules.at[i].quarantined = number(json, "quarantined");
    read_positions(r, &r->rules.at[i].order, NO, json);
}

static bool read_wave(releases *r, yyjson_val *json, err *error)
{
    uint32_t rule_ = rule_named(r, json);
    uint32_t e = find(r, &r->environment_of, text(json, "environment"));
    uint32_t d = find(r, &r->deployment_of, text(json, "deployment"));
    uint32_t c = d == NO || e == NO ? NO : keymap_get(&r->cell_of, KEY_PAIR(d, e));
    if (c == NO && text(json, "deployment").len > 0)
        return true;
    uint32_t p = rule_ == NO || e == NO ? NO : pace_find(r, rule_, e, c);
    if (p == NO)
        return true;
    r->paces.at[p].complete = number(json, "complete") != 0;
    return pace_restore(r, p, json, error);
}

static void read_slot(releases *r, yyjson_val *json)
{
    uint32_t i = rule_named(r, json), res = find(r, &r->resource_of, text(json, "resource"));
    if (i == NO || res == NO)
        return;
    rel_hold h = {.rule = i,
                  .progress_ms = number(json, "progressMs"),
                  .host = number(json, "host") != 0,
                  .job = number(json, "job") != 0,
                  .late = number(json, "late") != 0};
    if (!vec_push(&r->resources.at[res].holds, h))
        rel_no_memory(r);
    r->rules.at[i].held++;
}

static void read_state(releases *r, str kind, yyjson_val *json)
{
    if (str_eq(kind, STR("resource"))) {
        uint32_t res = find(r, &r->resource_of, text(json, "resource"));
        if (res != NO) {
            r->resources.at[res].quarantined = number(json, "quarantined") != 0;
            r->resources.at[res].halted = number(json, "halted") != 0;
        }
    } else if (str_eq(kind, STR("deployment"))) {
        uint32_t d = find(r, &r->deployment_of, text(json, "deployment"));
        if (d != NO) {
            r->deployments.at[d].paused = number(json, "paused") != 0;
            r->deployments.at[d].halted = number(json, "halted") != 0;
        }
    } else if (str_eq(kind, STR("all"))) {
        r->last_job = number(json, "lastJob");
        r->halted = number(json, "halted") != 0;
    }
}

static void read_people(releases *r, str kind, yyjson_val *json)
{
    int64_t at_ms = number(json, "atMs"), until_ms = number(json, "untilMs");
    if (str_eq(kind, STR("approval"))) {
        rel_approval a = {.version = rel_name(r, text(json, "version")),
                          .environment = rel_name(r, text(json, "environment")),
                          .who = rel_name(r, text(json, "who")),
                          .at_ms = at_ms,
                          .approved = number(json, "approved") != 0};
        if (!vec_push(&r->approvals, a))
            rel_no_memory(r);
    } else if (str_eq(kind, STR("bypass"))) {
        people_bypass(r, (rel_bypass){.rule = rel_name(r, text(json, "rule")),
                                      .version = rel_name(r, text(json, "version")),
                                      .environment = rel_name(r, text(json, "environment")),
                                      .resource = rel_name(r, text(json, "resource")),
                                      .reason = rel_name(r, text(json, "reason")),
                                      .at_ms = at_ms,
                                      .until_ms = until_ms});
    } else if (str_eq(kind, STR("freeze"))) {
        people_freeze(r, (rel_freeze){.name = rel_name(r, text(json, "name")),
                                      .who = rel_name(r, text(json, "who")),
                                      .reason = rel_name(r, text(json, "reason")),
                                      .selector = rel_name(r, text(json, "selector")),
                                      .at_ms = at_ms,
                                      .until_ms = until_ms});
    }
}

bool releases_read(releases *r, str key, str json, err *error)
{
    r->changes++;
    (void)key;
    arena *a = arena_new(0);
    if (!a)
        return err_memory(error);
    yyjson_val *root = json_parse(a, json, error);
    if (!root) {
        arena_free(a);
        return false;
    }
    lanes_settle(r);
    static const struct {
        str kind;
        void (*read)(releases *, yyjson_val *);
    } readers[] = {{STR("target"), read_target}, {STR("site"), read_site},
                   {STR("group"), read_group},   {STR("order"), read_order},
                   {STR("rule"), read_rule},     {STR("slot"), read_slot}};
    str kind = text(root, "kind");
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (str_eq(kind, readers[i].kind))
            readers[i].read(r, root);
    read_state(r, kind, root);
    read_people(r, kind, root);
    bool good = !str_eq(kind, STR("wave")) || read_wave(r, root, error);
    r->restored = true;
    arena_free(a);
    if (!good)
        return false;
    return !r->core->no_memory || err_memory(error);
}
