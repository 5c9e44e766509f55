/* SPDX-License-Identifier: Apache-2.0 */
/* When the deployment windows of a change let things start, past and future: what a timeline shows.
 */
#include "engine/window.h"
#include "server/api.h"

#define WINDOW_RANGE_SECONDS_MAX INT64_C(31622400) /* a year */
#define WINDOW_SPANS_MAX 1000

typedef struct window_listing {
    call *call;
    page_writer page;
    int64_t from_ms, to_ms;
    size_t spans;
} window_listing;

typedef struct matching {
    str deployment;
    bool found;
} matching;

static bool match(void *context, const placement_view *v)
{
    matching *m = context;
    m->found = m->found || str_eq(v->change, m->deployment);
    return !m->found;
}

static void put_span(void *context, int64_t from_ms, int64_t to_ms)
{
    window_listing *l = context;
    if (l->spans >= WINDOW_SPANS_MAX)
        return;
    buf *out = api_out(l->call);
    buf_addz(out, l->spans++ > 0 ? ",[" : "[");
    json_time_ms(out, from_ms);
    buf_addc(out, ',');
    json_time_ms(out, to_ms);
    buf_addc(out, ']');
}

static bool put_window(window_listing *l, str policy, const deployment_window *w)
{
    buf *out = api_out(l->call);
    if (!api_next(l->call, &l->page))
        return true;
    l->spans = 0;
    buf_addz(out, "{\"policy\":");
    buf_add_json(out, policy);
    buf_addf(out, ",\"allow\":%s,\"open\":[", w->allow_window ? "true" : "false");
    bool good = window_open_spans(w, l->from_ms, l->to_ms, put_span, l);
    buf_addz(out, "]}");
    return good;
}

static bool put_policy(window_listing *l, const object *o)
{
    const struct rollout_policy_spec *spec = &o->rollout_policy->spec;
    matching m = {.deployment = api_text(l->call, "deployment")};
    bool good = true;
    for (size_t i = 0; good && i < spec->rules.len; i++) {
        const rule *one = &spec->rules.at[i];
        if (one->kind != RULE_DEPLOYMENT_WINDOW)
            continue;
        /* Only policies that have a window are held against the fleet. */
        if (!m.found)
            good =
                engine_policy(control_engine(l->call->api->control), o->metadata->name, match, &m);
        if (good && m.found)
            good = put_window(l, o->metadata->name, one->deployment_window);
    }
    return good;
}

void run_window_list(call *c)
{
    control *plane = c->api->control;
    int64_t now_s = c->now_ms / 1000;
    int64_t from_s = api_number(c, "from", now_s);
    int64_t to_s = api_number(c, "to", now_s + 86400);
    window_listing l = {.call = c, .from_ms = from_s * 1000, .to_ms = to_s * 1000};
    if (to_s < from_s || to_s - from_s > WINDOW_RANGE_SECONDS_MAX) {
        api_fail(c, 422, NULL, "found %lld to %lld, allowed at most a year", (long long)from_s,
                 (long long)to_s);
        return;
    }
    if (!control_engine(plane)) {
        api_fail(c, 503, NULL, "the engine is being rebuilt after a failure of the store");
        return;
    }
    bool good = api_page(c, &l.page);
    for (size_t i = 0; good && i < control_documents(plane); i++) {
        const object *o = control_document(plane, i);
        if (o->kind == KIND_ROLLOUT_POLICY && o->rollout_policy->spec.enabled)
            good = put_policy(&l, o);
    }
    if (good)
        api_page_end(c, &l.page, STR_EMPTY);
    else
        api_fail(c, 503, NULL, "memory ran out");
}
