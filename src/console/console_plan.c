/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster will do: the documents as they were last seen, and the engine as it is, in a
 * copy of this process. */
#include "base/duration.h"
#include "base/limits.h"
#include "console/console_internal.h"
#include "model/object.h"
#include "sim/live.h"

/* The operator leaves out what cannot be read; so does a plan. */
static bool is_good(str text, bool *ret)
{
    document_set *set = document_set_new();
    object_list *objects = objects_new();
    problems *found = problems_new();
    bool whole = set && objects && found;
    *ret = whole && documents_read_as(set, STR("cluster"), text, FORMAT_JSON, found) &&
           objects_read(objects, set, found);
    problems_free(found);
    objects_free(objects);
    document_set_free(set);
    return whole;
}

static bool put_documents(const console *c, buf *out, int64_t *ret_count)
{
    bool good = true;
    *ret_count = 0;
    for (kept_kind kind = 0; good && kind < KEPT_NOTHING; kind++) {
        const strmap *of = &c->kept.of[kind];
        for (size_t i = 0; good && i < of->len; i++) {
            bool readable;
            const char *text = kept_at(&c->kept, kind, i)->document;
            if (!text)
                continue;
            good = is_good(str_of(text), &readable);
            if (!readable)
                continue;
            buf_addz(out, text);
            buf_addc(out, '\n');
            ++*ret_count;
        }
    }
    return good && !out->failed;
}

/* Nodes and clusters have an engine each, and a plan has one for both. */
static bool put_saved(const console *c, buf *out)
{
    if (c->nodes && !engine_save(node_shell_engine(c->nodes), out))
        return false;
    if (!c->clusters)
        return true;
    const engine *e = cluster_shell_engine(c->clusters);
    return c->nodes ? engine_save_clusters(e, out) : engine_save(e, out);
}

typedef struct entering {
    sim *sim;
    err *error;
} entering;

static bool enter_object(void *context, const object *o)
{
    const entering *e = context;
    return sim_add_object(e->sim, o, e->error);
}

/* In the copy, which ends when the plan is made: what is made here is not given back. */
static bool arrange(void *context, sim *s, arena *a, err *error)
{
    const asking *asked = context;
    console *c = asked->console;
    buf documents = BUF(LIMIT_TEXT_BYTES), text = BUF(LIMIT_TEXT_BYTES);
    live_head head = {.now_ms = asked->now_ms};
    live *all = ARENA_NEW(a, live);
    entering e = {s, error};
    if (!all || !put_documents(c, &documents, &head.documents))
        return err_memory(error);
    live_write_head(&text, &head);
    buf_add(&text, buf_str(&documents));
    if (!put_saved(c, &text) || text.failed)
        return err_memory(error);
    err_memory(error); /* unless something else is said below */
    return live_read(all, buf_str(&text), error) && live_enter(all, s, error) &&
           (!c->clusters || cluster_shell_objects(c->clusters, a, enter_object, &e));
}

static bool duration_of(const asking *a, const char *name, int64_t *ret_ms, err *error)
{
    int64_t ns;
    str text = uri_find(&a->request->uri, name);
    if (!text.ptr || text.len == 0)
        return true;
    if (!duration_parse_days(text, &ns, error) || ns < 0)
        return err_set(error, "parameter %s: found \"%s\", allowed a duration such as 90s", name,
                       str_shown(text).text);
    *ret_ms = ns / DURATION_MILLISECOND;
    return true;
}

void answer_plan(asking *a)
{
    err error;
    console *c = a->console;
    plan_request request = {
        .server = c->http,
        .settings = {.duration_ms = -1, .start_ms = a->now_ms, .engine = c->settings.engine},
        .arrange = arrange,
        .context = a};
    if (!duration_of(a, "duration", &request.settings.duration_ms, &error) ||
        !duration_of(a, "until", &request.settings.horizon_ms, &error))
        console_fail(a, 422, "%s", error.text);
    else if (!planner_start(c->planner, &request, &a->reply->source, &error))
        console_fail(a, 503, "%s", error.text);
}
