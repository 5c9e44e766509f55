/* SPDX-License-Identifier: Apache-2.0 */
/* What a viewer sees: the shapes of `drover serve`, of what the operator knows. A Skyhook is a
 * change, a node a target, a compartment a group, and a claim a job. */
#include "base/mem.h"
#include "base/num.h"
#include "console/console_internal.h"
#include "server/api_shapes.h"

/* ---- what requests say ---- */

static str text_of(const asking *a, const char *name)
{
    str value = uri_find(&a->request->uri, name);
    return value.ptr ? value : STR_EMPTY;
}

static int64_t number_of(const asking *a, const char *name, int64_t otherwise)
{
    int64_t value;
    return num_parse(text_of(a, name), &value) && value >= 0 ? value : otherwise;
}

static opt_moment moment_of(int64_t ms)
{
    return (opt_moment){.set = ms != 0,
                        .at = {.seconds = ms / 1000, .nanos = (int32_t)(ms % 1000 * 1000000)}};
}

/* ---- pages: the next one goes on behind so many ---- */

typedef struct paging {
    asking *asking;
    int64_t skip, limit, seen, shown;
    bool more;
} paging;

static paging page_begin(asking *a)
{
    int64_t limit = number_of(a, "limit", CONSOLE_PAGE_ITEMS);
    buf_addz(&a->reply->body, "{\"items\":[");
    return (paging){.asking = a,
                    .skip = number_of(a, "continue", 0),
                    .limit = limit > CONSOLE_PAGE_ITEMS_MAX ? CONSOLE_PAGE_ITEMS_MAX : limit};
}

/* Whether the next item is on this page: then it is to be written now. */
static bool page_next(paging *p)
{
    if (p->seen++ < p->skip)
        return false;
    p->more = p->more || p->shown >= p->limit;
    if (p->more)
        return false;
    buf_addz(&p->asking->reply->body, p->shown++ > 0 ? ",\n" : "\n");
    return true;
}

static void page_end(const paging *p)
{
    buf_addz(&p->asking->reply->body, p->shown > 0 ? "\n]" : "]");
    if (p->more)
        buf_addf(&p->asking->reply->body, ",\"continue\":\"%lld\"",
                 (long long)(p->skip + p->shown));
    buf_addz(&p->asking->reply->body, "}\n");
}

/* ---- who and what ---- */

void answer_info(asking *a)
{
    const viewer *v = &a->viewer;
    info_output out = {.version = STR(DROVER_VERSION),
                       .started_at = moment_of(a->console->started_ms),
                       .caller = v->name[0] ? str_of(v->name) : STR("anybody"),
                       .role = v->acts ? STR("operator") : STR("viewer"),
                       .mode = STR("operator"),
                       .sequence = a->console->sequence};
    shape_write(&info_output_shape, &out, &a->reply->body, 0);
    buf_addc(&a->reply->body, '\n');
}

void answer_fleet(asking *a)
{
    if (!view_fleet(console_engine(a->console), (fleet_scope){.kind = TARGET_NODE},
                    a->console->sequence, &a->reply->body))
        console_fail(a, 503, "memory ran out");
}

/* ---- targets ---- */

typedef struct target_listing {
    paging page;
    str change, target, state;
    bool no_memory;
} target_listing;

static const char *const stage_words[] = {
#define X(stage, text) text,
    PACKAGE_STAGES(X)
#undef X
};
static const char *const state_words[] = {
#define X(state, text) text,
    PACKAGE_STATES(X)
#undef X
};

static void put_package(const package_view *p, buf *out)
{
    buf_addz(out, "{\"name\":");
    buf_add_json(out, p->name);
    buf_addz(out, ",\"version\":");
    buf_add_json(out, p->version);
    buf_addf(out, ",\"stage\":\"%s\",\"state\":\"%s\",\"restarts\":%lld,\"attempt\":%lld}",
             stage_words[p->stage], state_words[p->state], (long long)p->restarts,
             (long long)p->attempt);
}

/* As for any engine, and how far its packages are. */
static bool put_target(const asking *a, const placement_view *v, size_t most)
{
    const engine *e = console_engine(a->console);
    buf *out = &a->reply->body;
    node_view seen;
    if (!view_target(e, v, most, a->request->arena, out))
        return false;
    if (out->failed || !engine_node(e, v->change, v->target, a->request->arena, &seen))
        return true;
    out->len--; /* the brace */
    buf_addz(out, ",\"packages\":[");
    for (size_t i = 0; i < seen.package_count; i++) {
        buf_addz(out, i > 0 ? "," : "");
        put_package(&seen.packages[i], out);
    }
    buf_addf(out, "],\"cordoned\":%s,\"draining\":%s}", seen.cordoned ? "true" : "false",
             seen.draining ? "true" : "false");
    return true;
}

static bool wanted(str filter, str value)
{
    return filter.len == 0 || str_eq(filter, value);
}

static bool list_target(void *context, const placement_view *v)
{
    target_listing *l = context;
    if (v->kind != TARGET_NODE || !wanted(l->change, v->change) || !wanted(l->target, v->target) ||
        !wanted(l->state, str_of(view_state(v->state))) || !page_next(&l->page))
        return !l->page.more;
    l->no_memory =
        !put_target(l->page.asking, v, l->target.len > 0 ? REASON_NAMES_ALL : REASON_NAMES_BRIEF);
    return !l->no_memory;
}

void answer_targets(asking *a)
{
    target_listing l = {.page = page_begin(a),
                        .change = text_of(a, "deployment"),
                        .target = text_of(a, "resource"),
                        .state = text_of(a, "state")};
    if (!engine_placements(console_engine(a->console), list_target, &l) || l.no_memory) {
        console_fail(a, 503, "memory ran out");
        return;
    }
    page_end(&l.page);
}

/* ---- groups and freezes ---- */

static bool list_group(void *context, const group_view *v)
{
    paging *p = context;
    if (page_next(p))
        view_group(v, &p->asking->reply->body);
    return !p->more;
}

void answer_groups(asking *a)
{
    paging p = page_begin(a);
    engine_groups(console_engine(a->console), list_group, &p);
    page_end(&p);
}

/* Skyhooks have none. */
void answer_freezes(asking *a)
{
    paging p = page_begin(a);
    page_end(&p);
}

/* ---- claims, newest first ---- */

static void put_claim(const claim *one, buf *out)
{
    job_output output = {.number = one->number,
                         .deployment = one->change,
                         .environment = STR_EMPTY,
                         .resource = one->target,
                         .version = one->version,
                         .group = one->group,
                         .role = STR("member"),
                         .state = one->ended_ms == 0 ? STR("running")
                                  : one->failed      ? STR("failed")
                                                     : STR("succeeded"),
                         .attempt = 1,
                         .started_at = moment_of(one->started_ms),
                         .ended_at = moment_of(one->ended_ms)};
    if (one->reason)
        output.reason = str_of(one->reason);
    else if (one->earlier && one->ended_ms == 0)
        output.reason = STR("it began before this operator did");
    shape_write(&job_output_shape, &output, out, 0);
}

void answer_jobs(asking *a)
{
    const claims *c = &a->console->claims;
    str change = text_of(a, "deployment"), target = text_of(a, "resource");
    paging p = page_begin(a);
    for (size_t i = c->all.len; i-- > 0 && !p.more;) {
        const claim *one = c->all.at[i];
        if (wanted(change, one->change) && wanted(target, one->target) && page_next(&p))
            put_claim(one, &a->reply->body);
    }
    page_end(&p);
}

/* ---- the journal ---- */

void answer_journal(asking *a)
{
    const events *e = a->console->events;
    int64_t after = number_of(a, "after", 0);
    int64_t behind = number_of(a, "continue", after);
    int64_t limit = number_of(a, "limit", CONSOLE_PAGE_ITEMS), listed = 0, at = behind;
    buf *out = &a->reply->body;
    buf_addz(out, "{\"items\":[");
    limit = limit > CONSOLE_PAGE_ITEMS_MAX ? CONSOLE_PAGE_ITEMS_MAX : limit;
    while (at < events_last(e) && listed < limit) {
        str text = events_kept(e, ++at);
        if (!text.ptr)
            continue;
        buf_addz(out, listed++ > 0 ? ",\n" : "\n");
        buf_add(out, text);
    }
    buf_addz(out, "]");
    if (at < events_last(e))
        buf_addf(out, ",\"continue\":\"%lld\"", (long long)at);
    buf_addz(out, "}\n");
}

void answer_events(asking *a)
{
    int64_t after = INT64_MAX;
    str last = http_header(a->request, "Last-Event-ID");
    if (last.ptr && (!num_parse(last, &after) || after < 0)) {
        console_fail(a, 400, "Last-Event-ID: found \"%s\", allowed a whole number",
                     str_shown(last).text);
        return;
    }
    a->reply->type = "text/event-stream";
    if (!events_source(a->console->events, after, &a->reply->source))
        console_fail(a, 503, "memory ran out");
}

/* ---- nodes as documents ---- */

static void put_node(const kept_object *o, buf *out)
{
    buf_addz(out, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":");
    buf_add_json(out, str_of(o->name));
    buf_addz(out, ",\"labels\":");
    buf_add(out, o->labels.len > 0 ? buf_str(&o->labels) : STR("{}"));
    buf_addz(out, "},\"spec\":{}}");
}

void answer_resources(asking *a)
{
    paging p = page_begin(a);
    for (size_t i = 0; i < a->console->kept.of[SHELL_NODE].len && !p.more; i++)
        if (page_next(&p))
            put_node(kept_at(&a->console->kept, SHELL_NODE, i), &a->reply->body);
    page_end(&p);
}

void answer_resource(asking *a)
{
    const kept_object *o = kept_find(&a->console->kept, SHELL_NODE, a->name);
    if (!o) {
        console_fail(a, 404, "there is no node \"%s\"", str_shown(a->name).text);
        return;
    }
    put_node(o, &a->reply->body);
    buf_addc(&a->reply->body, '\n');
}
