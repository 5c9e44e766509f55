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

/* Nodes and clusters have an engine each, and a plan is of one. */
static bool of_clusters(kept_kind kind)
{
    return kind >= KEPT_CLUSTER_GROUP;
}

static bool put_documents(const console *c, bool clusters, buf *out, int64_t *ret_count)
{
    bool good = true;
    *ret_count = 0;
    for (kept_kind kind = 0; good && kind < KEPT_NOTHING; kind++) {
        const strmap *of = &c->kept.of[kind];
        for (size_t i = 0; good && of_clusters(kind) == clusters && i < of->len; i++) {
            bool readable;
            str text = buf_str(&kept_at(&c->kept, kind, i)->document);
            good = is_good(text, &readable);
            if (!readable)
                continue;
            buf_add(out, text);
            buf_addc(out, '\n');
            ++*ret_count;
        }
    }
    return good && !out->failed;
}

/* Where both are served, of those that the change which is asked for is one of: only a Bundle's
 * name has a namespace. */
static bool plans_clusters(const asking *a)
{
    str change = uri_find(&a->request->uri, "deployment");
    if (!a->console->nodes || !a->console->clusters)
        return a->console->clusters != NULL;
    return change.ptr && str_find(change, STR("/")) != SIZE_MAX;
}

/* In the copy, which ends when the plan is made: what is made here is not given back. */
static bool arrange(void *context, sim *s, arena *a, err *error)
{
    const asking *asked = context;
    console *c = asked->console;
    buf documents = BUF(LIMIT_TEXT_BYTES), text = BUF(LIMIT_TEXT_BYTES);
    live_head head = {.now_ms = asked->now_ms};
    live *all = ARENA_NEW(a, live);
    bool clusters = plans_clusters(asked);
    const engine *e = clusters ? cluster_shell_engine(c->clusters) : node_shell_engine(c->nodes);
    if (!all || !put_documents(c, clusters, &documents, &head.documents))
        return err_memory(error);
    live_write_head(&text, &head);
    buf_add(&text, buf_str(&documents));
    if (!engine_save(e, &text) || text.failed)
        return err_memory(error);
    return live_read(all, buf_str(&text), error) && live_enter(all, s, error);
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
