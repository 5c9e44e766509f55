/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <assert.h>

#include "base/mem.h"
#include "engine/vocabulary.h"
#include "model/document.h"

#define NODE_LOST_AFTER_MS (INT64_C(60) * 60 * 1000)
#define STAGE_RETRIES 10
#define REBOOT_GRACE_MS (INT64_C(120) * 1000)

static const vocabulary *const vocabularies[] = {
    &vocabulary_nodes,
    &vocabulary_clusters,
    &vocabulary_releases,
};
#define VOCABULARY_COUNT (sizeof vocabularies / sizeof vocabularies[0])

struct engine {
    engine_core core;
    void *self[VOCABULARY_COUNT];
    bool stepped;
};

static engine_settings with_defaults(const engine_settings *given)
{
    engine_settings s = given ? *given : (engine_settings){0};
    if (s.node_lost_after_ms == 0)
        s.node_lost_after_ms = NODE_LOST_AFTER_MS;
    if (s.stage_retries == 0)
        s.stage_retries = STAGE_RETRIES;
    if (s.reboot_grace_ms == 0)
        s.reboot_grace_ms = REBOOT_GRACE_MS;
    if (s.runtime_required_taint.len == 0)
        s.runtime_required_taint = STR("skyhook.nvidia.com=runtime-required:NoSchedule");
    return s;
}

engine *engine_new(const engine_settings *settings, err *error)
{
    engine *e = mem_zalloc(sizeof *e);
    if (!e) {
        err_memory(error);
        return NULL;
    }
    e->core.settings = with_defaults(settings);
    e->core.now_ms = INT64_MIN;
    e->core.next_placement = 1;
    e->core.names = names_new();
    e->core.step = arena_new(0);
    bool good = e->core.names && e->core.step;
    for (size_t i = 0; good && i < VOCABULARY_COUNT; i++) {
        e->self[i] = vocabularies[i]->create(&e->core);
        good = e->self[i] != NULL;
    }
    if (good)
        return e;
    err_memory(error);
    return engine_free(e);
}

engine *engine_free(engine *e)
{
    if (!e)
        return NULL;
    for (size_t i = 0; i < VOCABULARY_COUNT; i++)
        if (e->self[i])
            vocabularies[i]->destroy(e->self[i]);
    arena_free(e->core.step);
    names_free(e->core.names);
    return mem_free(e);
}

decision *core_decide(engine_core *core, decision_kind kind, placement_id placement)
{
    if (!vec_push(core->out, (decision){.kind = kind, .placement = placement})) {
        core->no_memory = true;
        return NULL;
    }
    return &core->out->at[core->out->len - 1];
}

placement_id core_numbered(engine_core *core, int64_t id)
{
    if (id <= 0 || id >= PLACEMENT_UNNUMBERED)
        return PLACEMENT_UNNUMBERED;
    if (id >= core->next_placement)
        core->next_placement = (placement_id)id + 1;
    return (placement_id)id;
}

str core_text(engine_core *core, str text)
{
    str copy = arena_str(core->step, text);
    if (copy.ptr)
        return copy;
    core->no_memory = true;
    return STR_EMPTY;
}

bool engine_take(engine *e, const fact *facts, size_t count, int64_t now_ms)
{
    engine_core *core = &e->core;
    assert(!core->no_memory);
    if (now_ms > core->now_ms)
        core->now_ms = now_ms;
    if (core->settings.start_ms == 0)
        core->settings.start_ms = core->now_ms;
    for (size_t i = 0; i < count; i++)
        for (size_t v = 0; v < VOCABULARY_COUNT; v++)
            if (vocabularies[v]->take(e->self[v], &facts[i]))
                break;
    return !core->no_memory;
}

bool engine_step(engine *e, const fact *facts, size_t count, int64_t now_ms, decision_list *out)
{
    engine_core *core = &e->core;
    arena_rewind(core->step, (arena_place){0});
    core->out = out;
    e->stepped = true;
    if (!engine_take(e, facts, count, now_ms))
        return false;
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        vocabularies[v]->step(e->self[v]);
    core->out = NULL;
    return !core->no_memory;
}

int64_t engine_next_ms(const engine *e)
{
    int64_t earliest = REASON_NEVER;
    for (size_t v = 0; v < VOCABULARY_COUNT; v++) {
        int64_t next = vocabularies[v]->next_ms(e->self[v]);
        if (next != REASON_NEVER && (earliest == REASON_NEVER || next < earliest))
            earliest = next;
    }
    return earliest;
}

/* Whoever only asks spoils nothing: without memory they get no answer, and that is all. */
static bool answered(const engine *e, bool good)
{
    engine_core *core = (engine_core *)(uintptr_t)&e->core;
    good = good && !core->no_memory;
    core->no_memory = false;
    return good;
}

bool engine_placements(const engine *e, placement_visitor visit, void *context)
{
    bool good = true;
    assert(!e->core.no_memory);
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        good = vocabularies[v]->placements(e->self[v], visit, context) && good;
    return answered(e, good);
}

bool engine_policy(const engine *e, str policy, placement_visitor visit, void *context)
{
    bool good = true;
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->policy)
            good = vocabularies[v]->policy(e->self[v], policy, visit, context) && good;
    return good;
}

bool engine_placement(const engine *e, placement_id id, placement_view *ret)
{
    bool found = false;
    assert(!e->core.no_memory);
    for (size_t v = 0; v < VOCABULARY_COUNT && !found; v++)
        found = vocabularies[v]->placement(e->self[v], id, ret);
    return answered(e, found);
}

bool engine_reasons(const engine *e, placement_id id, arena *a, reasons *out)
{
    bool good = true;
    assert(!e->core.no_memory);
    /* A number is of one vocabulary only; the others have nothing to say. */
    for (size_t v = 0; v < VOCABULARY_COUNT && good; v++)
        good = vocabularies[v]->reasons(e->self[v], id, a, out);
    return answered(e, good);
}

void engine_groups(const engine *e, group_visitor visit, void *context)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        vocabularies[v]->groups(e->self[v], visit, context);
}

bool engine_paused(const engine *e, str change)
{
    bool paused = false;
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        paused = paused || vocabularies[v]->paused(e->self[v], change);
    return paused;
}

bool engine_rollout(const engine *e, str change, str version_, rollout_view *ret)
{
    assert(!e->core.no_memory);
    *ret = (rollout_view){0};
    for (size_t v = 0; v < VOCABULARY_COUNT && ret->change.len == 0; v++)
        if (vocabularies[v]->rollout)
            vocabularies[v]->rollout(e->self[v], change, version_, ret);
    return answered(e, true);
}

void engine_freezes(const engine *e, freeze_visitor visit, void *context)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->freezes)
            vocabularies[v]->freezes(e->self[v], visit, context);
}

void engine_slots(const engine *e, str target, slot_visitor visit, void *context)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->slots)
            vocabularies[v]->slots(e->self[v], target, visit, context);
}

void engine_metrics(const engine *e, release_name of, metric_visitor visit, void *context)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->metrics)
            vocabularies[v]->metrics(e->self[v], of, visit, context);
}

bool engine_windows(const engine *e, int64_t from_ms, int64_t to_ms, window_visitor *visit,
                    void *context)
{
    bool good = true;
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->windows)
            good = vocabularies[v]->windows(e->self[v], from_ms, to_ms, visit, context) && good;
    return good;
}

str engine_sentence(arena *a, const placement_view *v, const reasons *why)
{
    str first = why->len > 0 ? reason_text(a, &why->at[0]) : STR("no reason is known");
    str more = why->len > 1 ? arena_printf(a, ", and %zu more", why->len - 1) : STR_EMPTY;
    const char *verb = "";
    switch (v->state) {
    case PLACEMENT_DONE:
        if (v->next.len > 0)
            return arena_printf(a,
                                "%.*s needs nothing of %.*s now: a hook runs when another member "
                                "of its bracket changes, next at %.*s",
                                STR_ARG(v->target), STR_ARG(v->change), STR_ARG(v->next));
        return arena_printf(a, "%.*s is done: %.*s runs there%s%.*s", STR_ARG(v->target),
                            STR_ARG(v->change), v->current.len > 0 ? " at " : "",
                            STR_ARG(v->current));
    case PLACEMENT_WAITING: verb = "waits for"; break;
    case PLACEMENT_IN_FLIGHT: verb = "is being changed by"; break;
    case PLACEMENT_FAILED: verb = "failed for"; break;
    case PLACEMENT_BLOCKED: verb = "is blocked for"; break;
    case PLACEMENT_EXCLUDED: verb = "is left out of"; break;
    }
    return arena_printf(a, "%.*s %s %.*s: %.*s%.*s", STR_ARG(v->target), verb, STR_ARG(v->change),
                        STR_ARG(first), STR_ARG(more));
}

bool engine_save(const engine *e, buf *out)
{
    buf_addf(out, "engine ids {\"next\":%u}\n", e->core.next_placement);
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        vocabularies[v]->save(e->self[v], out);
    return !out->failed;
}

bool engine_save_clusters(const engine *e, buf *out)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->save_unnumbered)
            vocabularies[v]->save_unnumbered(e->self[v], out);
    return !out->failed;
}

/* The numbers of placements that are gone are not given out again either. */
static bool restore_ids(engine *e, str json, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    yyjson_val *root = a ? json_parse(a, json, error) : NULL;
    if (!root)
        return a ? false : err_memory(error);
    core_numbered(&e->core, yyjson_get_sint(yyjson_obj_get(root, "next")) - 1);
    return true;
}

/* One line: VOCABULARY KEY JSON. */
static bool restore_line(engine *e, str line, err *error)
{
    str name = str_cut(&line, ' ');
    str key = str_cut(&line, ' ');
    if (str_eq(name, STR("engine")) && str_eq(key, STR("ids")))
        return restore_ids(e, line, error);
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (str_eq(name, str_of(vocabularies[v]->name)))
            return vocabularies[v]->restore(e->self[v], key, line, error);
    return err_set(error, "found a record of \"%.*s\", allowed engine, nodes, clusters, releases",
                   STR_ARG(name));
}

bool engine_restore(engine *e, str saved, err *error)
{
    assert(!e->stepped);
    e->core.next_placement = 1;
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        vocabularies[v]->unnumber(e->self[v]);
    for (size_t number = 1; saved.len > 0; number++) {
        str line = str_cut(&saved, '\n');
        if (line.len > 0 && !restore_line(e, line, error))
            return err_wrap(error, "saved state, line %zu", number);
    }
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        vocabularies[v]->number(e->self[v]);
    return !e->core.no_memory || err_memory(error);
}

bool engine_node(const engine *e, str change, str target, arena *a, node_view *ret)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->node && vocabularies[v]->node(e->self[v], change, target, a, ret))
            return true;
    return false;
}

held_view engine_held(const engine *e, str change)
{
    held_view found = {0};
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->held)
            vocabularies[v]->held(e->self[v], change, &found);
    return found;
}

bool engine_config_updates(const engine *e, str change, buf *out)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->config_updates &&
            vocabularies[v]->config_updates(e->self[v], change, out))
            return true;
    return false;
}

bool engine_keep_placement(const engine *e, str change, str target, buf *out)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->keep_placement &&
            vocabularies[v]->keep_placement(e->self[v], change, target, out))
            return !out->failed;
    return false;
}

bool engine_keep_change(const engine *e, str change, buf *out)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->keep_change && vocabularies[v]->keep_change(e->self[v], change, out))
            return !out->failed;
    return false;
}

bool engine_keep_less(const engine *e, str change, keep_detail detail, buf *out)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->keep_less &&
            vocabularies[v]->keep_less(e->self[v], change, detail, out))
            return !out->failed;
    return false;
}

str engine_annotation(const engine *e, str target, str key)
{
    str text = {NULL, 0};
    for (size_t v = 0; v < VOCABULARY_COUNT && !text.ptr; v++)
        if (vocabularies[v]->annotation)
            text = vocabularies[v]->annotation(e->self[v], target, key);
    return text;
}

bool engine_bundle(const engine *e, str change, bundle_view *ret)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->bundle && vocabularies[v]->bundle(e->self[v], change, ret))
            return true;
    return false;
}

bool engine_restore_bundle(engine *e, str change, str record, err *error)
{
    bool good = true;
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->bundle)
            good = vocabularies[v]->restore(e->self[v], change, record, error) && good;
    return good;
}

bool engine_bundle_partition(const engine *e, str change, size_t index, group_view *ret)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->bundle_partition &&
            vocabularies[v]->bundle_partition(e->self[v], change, index, ret))
            return true;
    return false;
}

bool engine_deployment(const engine *e, str change, str target, deployment_view *ret)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->deployment &&
            vocabularies[v]->deployment(e->self[v], change, target, ret))
            return true;
    return false;
}

str engine_deployment_options(engine *e, str change, str target, arena *a, err *error)
{
    str options = {NULL, 0};
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->deployment_options)
            options = vocabularies[v]->deployment_options(e->self[v], change, target, a, error);
    return options;
}

bool engine_in_group(const engine *e, engine_cluster of, str group)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (vocabularies[v]->in_group && vocabularies[v]->in_group(e->self[v], of, group))
            return true;
    return false;
}

bool engine_full(engine *e, err *error)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (!vocabularies[v]->full(e->self[v], error))
            return err_wrap(error, "%s", vocabularies[v]->name);
    return true;
}

bool engine_check(const engine *e, err *error)
{
    for (size_t v = 0; v < VOCABULARY_COUNT; v++)
        if (!vocabularies[v]->check(e->self[v], error))
            return err_wrap(error, "%s", vocabularies[v]->name);
    return true;
}

uint64_t engine_looked_at(const engine *e)
{
    return e->core.looked_at;
}
