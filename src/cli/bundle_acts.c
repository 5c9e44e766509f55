/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle_acts.h"

#include "base/limits.h"
#include "base/mem.h"
#include "cli/kube_apply.h"
#include "model/document.h"
#include "operator/act_request.h"
#include "operator/bundle_partitions.h"
#include "operator/cluster_shell.h"

#define REQUEST_TRIES 5

typedef struct bundle_name {
    str space, name;
    str collection;
} bundle_name;

static void put_acts(buf *body, str acts)
{
    buf_addz(body, "\"metadata\":{\"annotations\":{\"" KEY_BUNDLE_ACTS "\":");
    buf_add_json(body, acts);
    buf_addz(body, "}}");
}

static bool put_patch(buf *body, yyjson_val *json, const fact_act *act, err *error)
{
    yyjson_val *head = yyjson_obj_get(json, "metadata"), *spec = yyjson_obj_get(json, "spec");
    buf_addc(body, '{');
    if (act->act == ACT_PAUSE) {
        buf_addz(body, "\"spec\":{\"paused\":true}}");
        return true;
    }
    scoped(buf_done) buf list = BUF(LIMIT_DOCUMENT_BYTES);
    str before = json_text_of(yyjson_obj_get(head, "annotations"), KEY_BUNDLE_ACTS);
    if (!act_request_add(&list, before, ACT_OF_BUNDLE, act, error))
        return false;
    put_acts(body, buf_str(&list));
    bool ends_pause = act->act == ACT_RESUME && yyjson_is_true(yyjson_obj_get(spec, "paused"));
    buf_addz(body, ends_pause ? ",\"spec\":{\"paused\":null}}" : "}");
    return true;
}

/* One try: reads the Bundle and changes it, if nobody else changed it meanwhile. */
static bool try_once(kube_session *s, const bundle_name *of, const fact_act *act,
                     write_outcome *ret, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    str path =
        a ? arena_printf(a, "%.*s/%.*s", STR_ARG(of->collection), STR_ARG(of->name)) : STR_EMPTY;
    kube_reply reply = {0};
    if (!path.ptr)
        return err_memory(error);
    if (!kube_get(s, path, a, &reply, error))
        return false;
    if (reply.status >= 400)
        return err_set(error, "Bundle %.*s/%.*s: %s", STR_ARG(of->space), STR_ARG(of->name),
                       reply.message);
    if (act->act == ACT_APPROVE && !bundle_has_partition(a, reply.body, act->partition, error))
        return err_wrap(error, "Bundle %.*s/%.*s", STR_ARG(of->space), STR_ARG(of->name));
    scoped(buf_done) buf body = BUF(LIMIT_DOCUMENT_BYTES);
    if (!put_patch(&body, reply.body, act, error))
        return false;
    yyjson_val *head = yyjson_obj_get(reply.body, "metadata");
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = of->collection,
                    .name = of->name,
                    .version = json_text_of(head, "resourceVersion"),
                    .body = buf_str(&body)};
    return !body.failed ? kube_write_one(s, &w, ret, error) : err_memory(error);
}

static exit_status ask(const options *given, const bundle_name *of, const fact_act *act)
{
    err error = {0};
    write_outcome how = {.kind = WRITE_CONFLICT};
    kube_session *s = kube_apply_open(given);
    bool sent = s;
    if (!s)
        return STATUS_UNREACHABLE;
    for (int i = 0; sent && i < REQUEST_TRIES && how.kind == WRITE_CONFLICT; i++)
        sent = try_once(s, of, act, &how, &error);
    kube_session_close(s);
    if (!sent)
        return fail("%s", error.text);
    if (how.kind != WRITE_DONE)
        return fail("Bundle %.*s/%.*s: %s", STR_ARG(of->space), STR_ARG(of->name), how.message);
    return STATUS_DONE;
}

exit_status bundle_act_run(const verb *v, const options *given, act_kind act)
{
    str whole = options_text(given, "bundle", "");
    bundle_name of = {.name = whole};
    if (str_find(whole, STR("/")) != SIZE_MAX)
        of.space = str_cut(&of.name, '/');
    if (of.space.len == 0 || of.name.len == 0 || given->operands.len > 0)
        return usage_error(v, "--bundle: found \"%s\", allowed NAMESPACE/NAME and no operand",
                           str_shown(whole).text);
    scoped(buf_done) buf collection = BUF(LIMIT_PATH_BYTES);
    buf_addf(&collection, HUB_API "/namespaces/%.*s/bundles", STR_ARG(of.space));
    of.collection = buf_str(&collection);
    fact_act request = {.act = act, .partition = options_text(given, "partition", "")};
    exit_status status = ask(given, &of, &request);
    if (status == STATUS_DONE)
        printf("%s: done\n", v->name);
    return status;
}
