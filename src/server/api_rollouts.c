/* SPDX-License-Identifier: Apache-2.0 */
/* How far the rollout of each deployment is, and whether it is over: what --wait asks again and
 * again. The engine says it. */
#include "server/api.h"
#include "server/api_shapes.h"

typedef VEC(const object *) document_list;

static int compare_names(const void *a, const void *b)
{
    return str_cmp((*(const object *const *)a)->metadata->name,
                   (*(const object *const *)b)->metadata->name);
}

/* The deployments behind a name, or the one that is asked for, by name. */
static bool find_deployments(call *c, str after, document_list *ret)
{
    const control *plane = c->api->control;
    str only = api_text(c, "deployment");
    for (size_t i = 0; i < control_documents(plane); i++) {
        const object *o = control_document(plane, i);
        if (o->kind != KIND_DEPLOYMENT || str_cmp(o->metadata->name, after) <= 0 ||
            (only.len > 0 && !str_eq(only, o->metadata->name)))
            continue;
        if (!vec_push(ret, o))
            return false;
    }
    if (ret->len > 0)
        qsort(ret->at, ret->len, sizeof *ret->at, compare_names);
    return true;
}

/* Of what is not over: why not. */
static bool summarize(call *c, placement_id open, str *ret)
{
    const engine *e = control_engine(c->api->control);
    arena *a = c->request->arena;
    placement_view view;
    reasons why = {0};
    if (!engine_placement(e, open, &view) || !engine_reasons(e, open, a, &why))
        return false;
    *ret = engine_sentence(a, &view, &why);
    return ret->ptr != NULL;
}

static bool put_rollout(call *c, const rollout_view *v)
{
    static const char *const states[] = {
#define X(state, text) [ROLLOUT_##state] = (text),
        ROLLOUT_STATES(X)
#undef X
    };
    rollout_output out = {.deployment = v->change,
                          .version = v->version,
                          .state = str_of(states[v->state]),
                          .targets = v->targets,
                          .done = v->done,
                          .in_flight = v->in_flight,
                          .waiting = v->waiting,
                          .failed = v->failed,
                          .rolled_back = v->rolled_back,
                          .excluded = v->excluded,
                          .missed = v->missed,
                          .groups = v->groups,
                          .ended_at = api_moment(v->ended_ms)};
    if (v->open != 0 && !summarize(c, v->open, &out.summary))
        return false;
    shape_write(&rollout_output_shape, &out, api_out(c), 0);
    return true;
}

void run_rollout_list(call *c)
{
    const engine *e = control_engine(c->api->control);
    str version_ = api_text(c, "version"), last = STR_EMPTY;
    page_writer page;
    document_list found = {0};
    bool more = false;
    if (!e) {
        api_fail(c, 503, NULL, "the engine is being rebuilt after a failure of the store");
        return;
    }
    api_page(c, &page);
    bool good = find_deployments(c, page.after.ptr ? page.after : STR_EMPTY, &found);
    for (size_t i = 0; good && !more && i < found.len; i++) {
        str name = found.at[i]->metadata->name;
        rollout_view view;
        good = engine_rollout(e, name, version_, &view);
        if (!good || view.change.len == 0)
            continue;
        more = !api_next(c, &page);
        if (!more)
            good = put_rollout(c, &view);
        if (!more)
            last = name;
    }
    if (good)
        api_page_end(c, &page, more ? last : STR_EMPTY);
    else
        api_fail(c, 503, NULL, "memory ran out");
    vec_done(&found);
}
