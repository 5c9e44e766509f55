/* SPDX-License-Identifier: Apache-2.0 */
/* What a viewer sees: the shapes of `drover serve`, of what the operator knows. A Skyhook or Bundle
 * is a change, a node or cluster a target, a compartment or partition a group, and a claim a job.
 */
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
    str kinds[2 + VIEWER_SPACES_MAX];
    size_t count = 0;
    if (v->acts_nodes)
        kinds[count++] = STR("Skyhook");
    if (v->acts_bundles)
        kinds[count++] = STR("Bundle");
    for (size_t i = 0; i < v->space_count; i++)
        kinds[count++] = arena_printf(a->request->arena, "%s/Bundle", v->spaces[i]);
    info_output out = {.version = STR(DROVER_VERSION),
                       .started_at = moment_of(a->console->started_ms),
                       .caller = v->name[0] ? str_of(v->name) : STR("anybody"),
                       .role = count > 0 ? STR("operator") : STR("viewer"),
                       .mode = STR("operator"),
                       .acts_on = {kinds, count},
                       .sequence = a->console->sequence};
    shape_write(&info_output_shape, &out, &a->reply->body, 0);
    buf_addc(&a->reply->body, '\n');
}

void answer_fleet(asking *a)
{
    const engine *engines[CONSOLE_ENGINES_MAX];
    fleet_scope scope = {.engines = engines, .count = console_engines(a->console, engines)};
    if (!view_fleet(scope, a->console->sequence, &a->reply->body))
        console_fail(a, 503, "memory ran out");
}

/* ---- targets ---- */

typedef struct target_listing {
    paging page;
    const engine *engine;
    str change, target, environment, state;
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
static bool put_target(const target_listing *l, const placement_view *v)
{
    const asking *a = l->page.asking;
    const engine *e = l->engine;
    size_t most = l->target.len > 0 ? REASON_NAMES_ALL : REASON_NAMES_BRIEF;
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
    if (!wanted(l->change, v->change) || !wanted(l->target, v->target) ||
        !wanted(l->environment, view_environment(v)) ||
        !wanted(l->state, str_of(view_state(v->state))) || !page_next(&l->page))
        return !l->page.more;
    l->no_memory = !put_target(l, v);
    return !l->no_memory;
}

void answer_targets(asking *a)
{
    const engine *engines[CONSOLE_ENGINES_MAX];
    size_t count = console_engines(a->console, engines);
    target_listing l = {.page = page_begin(a),
                        .change = text_of(a, "deployment"),
                        .target = text_of(a, "resource"),
                        .environment = text_of(a, "environment"),
                        .state = text_of(a, "state")};
    for (size_t i = 0; i < count; i++) {
        l.engine = engines[i];
        if (!engine_placements(l.engine, list_target, &l) || l.no_memory) {
            console_fail(a, 503, "memory ran out");
            return;
        }
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
    const engine *engines[CONSOLE_ENGINES_MAX];
    size_t count = console_engines(a->console, engines);
    paging p = page_begin(a);
    for (size_t i = 0; i < count; i++)
        engine_groups(engines[i], list_group, &p);
    page_end(&p);
}

/* Skyhooks and Bundles have none. */
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

/* ---- nodes and clusters as documents ---- */

/* As the engine calls it: a cluster by its name alone, which is what Bundles of its namespace say.
 */
static str target_name(kept_kind kind, const kept_object *o)
{
    str name = str_of(o->name);
    if (kind == KEPT_CLUSTER)
        str_cut(&name, '/');
    return name;
}

static void put_resource(kept_kind kind, const kept_object *o, buf *out)
{
    buf_addf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":",
             kind == KEPT_NODE ? "v1" : "fleet.cattle.io/v1alpha1", kept_kind_text(kind));
    buf_add_json(out, target_name(kind, o));
    buf_addz(out, ",\"labels\":");
    buf_add(out, o->labels.len > 0 ? o->labels : STR("{}"));
    buf_addz(out, "},\"spec\":{}}");
}

static const kept_kind target_kinds[] = {KEPT_NODE, KEPT_CLUSTER};
#define TARGET_KINDS_COUNT (sizeof target_kinds / sizeof target_kinds[0])

void answer_resources(asking *a)
{
    const kept *all = &a->console->kept;
    paging p = page_begin(a);
    for (size_t k = 0; k < TARGET_KINDS_COUNT; k++)
        for (size_t i = 0; i < all->of[target_kinds[k]].len && !p.more; i++)
            if (page_next(&p))
                put_resource(target_kinds[k], kept_at(all, target_kinds[k], i), &a->reply->body);
    page_end(&p);
}

void answer_resource(asking *a)
{
    const kept *all = &a->console->kept;
    for (size_t k = 0; k < TARGET_KINDS_COUNT; k++)
        for (size_t i = 0; i < all->of[target_kinds[k]].len; i++) {
            const kept_object *o = kept_at(all, target_kinds[k], i);
            if (!str_eq(a->name, str_of(o->name)) &&
                !str_eq(a->name, target_name(target_kinds[k], o)))
                continue;
            put_resource(target_kinds[k], o, &a->reply->body);
            buf_addc(&a->reply->body, '\n');
            return;
        }
    console_fail(a, 404, "there is no node or cluster \"%s\"", str_shown(a->name).text);
}
