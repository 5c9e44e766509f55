/* SPDX-License-Identifier: Apache-2.0 */
/* Release targets with state and reasons, the groups that share a limit, and freezes. */
#include "server/api.h"
#include "server/api_shapes.h"
#include "server/views.h"

/* ---- pages ---- */

typedef struct target_filter {
    call *call;
    page_writer page;
    str deployment, environment, resource, state;
    const selector *selector;
    str after[3]; /* deployment, environment, resource of the page before */
    bool behind;  /* there is one */
    VEC(placement_view) found;
    bool more, no_memory;
} target_filter;

static bool wanted(str filter, str value)
{
    return filter.len == 0 || str_eq(filter, value);
}

static bool behind(const target_filter *f, const placement_view *v)
{
    int order = str_cmp(v->change, f->after[0]);
    if (order == 0)
        order = str_cmp(v->environment, f->after[1]);
    if (order == 0)
        order = str_cmp(v->target, f->after[2]);
    return order > 0;
}

static bool take_target(void *context, const placement_view *v)
{
    target_filter *f = context;
    if (v->kind != TARGET_RESOURCE || !wanted(f->deployment, v->change) ||
        !wanted(f->environment, v->environment) || !wanted(f->resource, v->target) ||
        !wanted(f->state, str_of(view_state(v->state))) || (f->behind && !behind(f, v)))
        return true;
    if (f->selector) {
        const object *o = control_object(f->call->api->control, KIND_RESOURCE, v->target);
        if (!o || !selector_match(f->selector, o->metadata->labels))
            return true;
    }
    if (f->found.len >= (size_t)f->page.limit) {
        f->more = true;
        return false;
    }
    f->no_memory = !vec_push(&f->found, *v);
    return !f->no_memory;
}

static bool engine_there(call *c)
{
    if (control_engine(c->api->control))
        return true;
    api_fail(c, 503, NULL, "the engine is being rebuilt after a failure of the store");
    return false;
}

static bool fill_filter(target_filter *f, call *c)
{
    err error;
    *f = (target_filter){.call = c,
                         .deployment = api_text(c, "deployment"),
                         .environment = api_text(c, "environment"),
                         .resource = api_text(c, "resource"),
                         .state = api_text(c, "state")};
    str labels = api_text(c, "selector");
    str after = api_text(c, "continue");
    if (labels.len > 0) {
        f->selector = selector_parse(c->request->arena, labels, &error);
        if (!f->selector) {
            api_fail(c, 400, NULL, "parameter selector: %s", error.text);
            return false;
        }
    }
    if (after.len > 0) {
        for (size_t i = 0; i < 3; i++)
            f->after[i] = after.ptr ? str_cut(&after, '/') : (str){NULL, 0};
        f->behind = true;
        if (!f->after[2].ptr) {
            api_fail(c, 400, NULL, "parameter continue: this is of no page");
            return false;
        }
    }
    return true;
}

void run_target_list(call *c)
{
    target_filter f;
    if (!engine_there(c) || !fill_filter(&f, c))
        return;
    api_page(c, &f.page);
    size_t names = f.resource.len > 0 ? REASON_NAMES_ALL : REASON_NAMES_BRIEF;
    bool good = engine_placements(control_engine(c->api->control), take_target, &f) && !f.no_memory;
    for (size_t i = 0; good && i < f.found.len; i++)
        good = api_next(c, &f.page) && view_target(control_engine(c->api->control), &f.found.at[i],
                                                   names, c->request->arena, api_out(c));
    str last = STR_EMPTY;
    if (good && f.more) {
        const placement_view *v = &f.found.at[f.found.len - 1];
        last = arena_printf(c->request->arena, "%.*s/%.*s/%.*s", STR_ARG(v->change),
                            STR_ARG(v->environment), STR_ARG(v->target));
    }
    if (good)
        api_page_end(c, &f.page, last);
    else
        api_fail(c, 503, NULL, "memory ran out");
    vec_done(&f.found);
}

void run_target_get(call *c)
{
    target_filter f = {.call = c,
                       .page = {.limit = 1},
                       .deployment = c->arguments[0],
                       .environment = c->arguments[1],
                       .resource = c->arguments[2]};
    if (!engine_there(c))
        return;
    bool good = engine_placements(control_engine(c->api->control), take_target, &f) && !f.no_memory;
    if (good && f.found.len == 0)
        api_fail(c, 404, NULL, "there is no release target of %s in %s on %s",
                 str_shown(c->arguments[0]).text, str_shown(c->arguments[1]).text,
                 str_shown(c->arguments[2]).text);
    else if (!good || !view_target(control_engine(c->api->control), &f.found.at[0],
                                   REASON_NAMES_ALL, c->request->arena, api_out(c)))
        api_fail(c, 503, NULL, "memory ran out");
    else
        buf_addc(api_out(c), '\n');
    vec_done(&f.found);
}

/* ---- groups and freezes: pages by number ---- */

typedef struct numbered_listing {
    call *call;
    page_writer page;
    int64_t skip, seen;
    bool more;
} numbered_listing;

/* Whether the next one is on this page. *ret_stop: there is no more room. */
static bool on_page(numbered_listing *l, bool *ret_stop)
{
    *ret_stop = false;
    if (l->seen++ < l->skip)
        return false;
    l->more = !api_next(l->call, &l->page);
    *ret_stop = l->more;
    return !l->more;
}

static void end_page(numbered_listing *l)
{
    str last = STR_EMPTY;
    if (l->more)
        last = arena_printf(l->call->request->arena, "%lld", (long long)(l->skip + l->page.count));
    api_page_end(l->call, &l->page, last);
}

static bool list_group(void *context, const group_view *v)
{
    numbered_listing *l = context;
    bool stop;
    if (!on_page(l, &stop))
        return !stop;
    view_group(v, api_out(l->call));
    return true;
}

void run_group_list(call *c)
{
    numbered_listing l = {.call = c, .skip = api_number(c, "continue", 0)};
    if (!engine_there(c))
        return;
    api_page(c, &l.page);
    engine_groups(control_engine(c->api->control), list_group, &l);
    end_page(&l);
}

static bool list_freeze(void *context, const freeze_view *v)
{
    numbered_listing *l = context;
    bool stop;
    if (!on_page(l, &stop))
        return !stop;
    freeze_output out = {.name = v->name,
                         .selector = v->selector,
                         .reason = v->reason,
                         .who = v->who,
                         .created_at = api_moment(v->at_ms),
                         .until = api_moment(v->until_ms)};
    shape_write(&freeze_output_shape, &out, api_out(l->call), 0);
    return true;
}

void run_freeze_list(call *c)
{
    numbered_listing l = {.call = c, .skip = api_number(c, "continue", 0)};
    if (!engine_there(c))
        return;
    api_page(c, &l.page);
    engine_freezes(control_engine(c->api->control), list_freeze, &l);
    end_page(&l);
}
