/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/client.h"
#include "cli/follow.h"
#include "cli/input.h"
#include "cli/kube_apply.h"
#include "cli/show.h"

/* What the server says of each document. */
static exit_status print_results(client *c, yyjson_val *answer)
{
    size_t index, count;
    yyjson_val *item;
    bool refused = false;
    yyjson_arr_foreach(yyjson_obj_get(answer, "problems"), index, count, item)
    {
        str name = json_at(c, item, "/document"), path = json_at(c, item, "/path");
        str message = json_at(c, item, "/message"), level = json_at(c, item, "/severity");
        fprintf(stderr, "drover: %.*s: %.*s%s%.*s%s%.*s\n", STR_ARG(level), STR_ARG(name),
                name.len > 0 ? ": " : "", STR_ARG(path), path.len > 0 ? ": " : "",
                STR_ARG(message));
    }
    yyjson_arr_foreach(yyjson_obj_get(answer, "results"), index, count, item)
    {
        str kind = json_at(c, item, "/kind"), name = json_at(c, item, "/name");
        str action = json_at(c, item, "/action");
        const show_kind *known = show_find(kind);
        refused = refused || str_eq(action, STR("refused"));
        printf("%s/%.*s %.*s\n", known ? known->singular : "document", STR_ARG(name),
               STR_ARG(action));
    }
    return refused ? STATUS_NO : STATUS_DONE;
}

typedef VEC(str) name_list;

static bool add_name(name_list *list, str name)
{
    for (size_t i = 0; i < list->len; i++)
        if (str_eq(list->at[i], name))
            return true;
    return vec_push(list, name);
}

/* The rollouts that documents can have begun: of their deployments, or all. */
static exit_status wait_for(client *c, const input *in, str past)
{
    name_list wanted = {0};
    bool all = false, good = true;
    for (size_t i = 0; i < in->objects->len && good; i++) {
        const object *o = &in->objects->at[i];
        if (o->kind == KIND_VERSION)
            good = add_name(&wanted, o->version->spec.deployment);
        else if (o->kind == KIND_DEPLOYMENT)
            good = add_name(&wanted, o->metadata->name);
        else
            all = true;
    }
    follow_wish wish = {.deployments = wanted.at, .count = wanted.len, .all = all, .past = past};
    exit_status status = good ? follow(c, &wish) : fail("memory ran out");
    vec_done(&wanted);
    return status;
}

static exit_status send_to_server(const input *in, const options *given)
{
    exit_status status = STATUS_DONE;
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    buf body = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < in->objects->len; i++) {
        object_write(&in->objects->at[i], &body);
        buf_addc(&body, '\n');
    }
    bool partial = options_given(given, "partial"), dry = options_given(given, "dry-run");
    str path = partial && dry ? STR("/api/v1/apply?partial=true&dryRun=true")
               : partial      ? STR("/api/v1/apply?partial=true")
               : dry          ? STR("/api/v1/apply?dryRun=true")
                              : STR("/api/v1/apply");
    scoped(buf_done) buf past = BUF(LIMIT_TEXT_BYTES);
    bool wait = options_given(given, "wait") && !dry;
    if (wait)
        status = follow_past(c, &past);
    yyjson_val *answer = NULL;
    if (status == STATUS_DONE)
        status = body.failed ? fail("memory ran out")
                             : client_call(c, "POST", path, buf_str(&body), &answer);
    if (status == STATUS_DONE)
        status = print_results(c, answer);
    fflush(stdout);
    if (status == STATUS_DONE && wait)
        status = wait_for(c, in, buf_str(&past));
    buf_done(&body);
    return status;
}

/* ---- to a cluster ---- */

static bool of_cluster(const options *given)
{
    return options_given(given, "kubeconfig") || options_given(given, "context");
}

/* All of them as they were written, without what a typed document does not say. */
static exit_status prepare(const input *in, arena *a, kube_document *at, size_t *ret_count)
{
    exit_status status = STATUS_DONE;
    for (size_t i = 0; i < in->objects->len; i++) {
        err error = {0};
        object_kind kind = in->objects->at[i].kind;
        kube_kind of = {str_of(object_kind_api(kind)), str_of(object_kind_text(kind))};
        bool told = i > 0 && in->objects->at[i - 1].kind == kind; /* they stand together */
        if (kube_document_of(a, of, in->objects->at[i].document->root, &at[*ret_count], &error))
            ++*ret_count;
        else
            status = told ? STATUS_NO : fail("%s", error.text);
    }
    return status;
}

static exit_status send_to_cluster(const input *in, const options *given)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    kube_document *at = a ? ARENA_ARRAY(a, in->objects->len + 1, kube_document) : NULL;
    size_t count = 0;
    if (!at)
        return fail("memory ran out");
    exit_status status = prepare(in, a, at, &count);
    if (status != STATUS_DONE)
        return status;
    kube_session *s = kube_apply_open(given);
    if (!s)
        return STATUS_UNREACHABLE;
    kube_apply_how how = {.force = options_given(given, "force"),
                          .tried = options_given(given, "dry-run")};
    status = kube_apply_all(s, at, count, how);
    kube_session_close(s);
    return status;
}

static exit_status check_options(const options *given)
{
    static const char *const of_server[] = {"partial", "wait"};
    for (size_t i = 0; i < sizeof of_server / sizeof of_server[0]; i++)
        if (of_cluster(given) && options_given(given, of_server[i]))
            return usage_error(&cmd_apply, "--%s makes sense only with a server", of_server[i]);
    if (!of_cluster(given) && options_given(given, "force"))
        return usage_error(&cmd_apply, "--force makes sense only with a cluster");
    return STATUS_DONE;
}

static exit_status run(const options *given)
{
    input in;
    exit_status usage = check_options(given);
    if (usage != STATUS_DONE)
        return usage;
    exit_status status = input_read(&in, &cmd_apply, given);
    if (status == STATUS_DONE) {
        input_report(&in);
        bool bad = input_bad(&in) && !options_given(given, "partial");
        status = bad                 ? STATUS_NO
                 : of_cluster(given) ? send_to_cluster(&in, given)
                                     : send_to_server(&in, given);
        if (status == STATUS_DONE && input_bad(&in))
            status = STATUS_NO;
    }
    input_done(&in);
    return status;
}

static const option options_of_apply[] = {
    OPTION_FILES,
    {.name = "partial", .help = "write each document by itself instead of all or none"},
    {.name = "dry-run", .help = "check only"},
    {.name = "wait", .help = "follow the rollouts to their end; the status is 1 if one failed"},
    OPTION_KUBECONFIG,
    OPTION_CONTEXT,
    OPTION_FORCE,
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_apply = {
    .name = "apply",
    .summary = "write documents to the server, or to a cluster",
    .about = "Checks all documents, together with what the server has, and writes all of them or, "
             "when one is wrong, none. What is as it was stays unchanged.\n"
             "\n"
             "With --kubeconfig or --context, Skyhooks, DeploymentPolicies and the documents of a "
             "Fleet hub are written to that cluster by server-side apply. All are tried first: if "
             "the cluster refuses one, or its definitions would drop a field, none is written.",
    .options = options_of_apply,
    .run = run,
};
