/* SPDX-License-Identifier: Apache-2.0 */
/* package logs: what the stages of a package printed, newest pod first. */
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/output.h"
#include "cli/skyhook_state.h"
#include "operator/object_names.h"

#define PATH_BYTES 4096
#define ALL_LINES "-1"

typedef struct log_pod {
    str name, created, node;
    yyjson_val *json;
} log_pod;

typedef struct log_pods {
    sk *sk;
    str package, node, stage;
    str tail; /* empty: all lines */
    VEC(log_pod) pods;
} log_pods;

/* ---- which pods ---- */

static bool is_wanted(const log_pods *l, yyjson_val *one)
{
    yyjson_val *notes = yyjson_obj_get(yyjson_obj_get(one, "metadata"), "annotations");
    yyjson_val *about = json_parse(l->sk->arena, json_text_of(notes, KEY_PACKAGE), NULL);
    if (!about || !str_eq(json_text_of(about, "name"), l->package))
        return false;
    str on = json_text_of(yyjson_obj_get(one, "spec"), "nodeName");
    return (l->node.len == 0 || str_eq(on, l->node)) &&
           (l->stage.len == 0 || str_eq(json_text_of(about, "stage"), l->stage));
}

static bool take_pod(void *context, yyjson_val *json, err *error)
{
    log_pods *l = context;
    if (!is_wanted(l, json))
        return true;
    scoped(buf_done) buf text = BUF(LIMIT_TEXT_BYTES);
    json_write(&text, json); /* the list is gone after this call */
    yyjson_val *kept = text.failed ? NULL : json_parse(l->sk->arena, buf_str(&text), error);
    yyjson_val *head = yyjson_obj_get(kept, "metadata");
    log_pod one = {.name = json_text_of(head, "name"),
                   .created = json_text_of(head, "creationTimestamp"),
                   .node = json_text_of(yyjson_obj_get(kept, "spec"), "nodeName"),
                   .json = kept};
    return (kept && vec_push(&l->pods, one)) || err_memory(error);
}

static int newest_first(const void *a, const void *b)
{
    const log_pod *x = a, *y = b;
    int order = str_cmp(y->created, x->created);
    return order != 0 ? order : str_cmp(x->name, y->name);
}

/* ---- their containers ---- */

static const char *state_word(yyjson_val *status)
{
    yyjson_val *state = yyjson_obj_get(status, "state");
    if (yyjson_obj_get(state, "running"))
        return "running";
    return yyjson_obj_get(state, "terminated") ? "terminated" : NULL;
}

/* "package logs -f | grep -m1 ready" ends when nobody reads any more. */
static bool print_bytes(void *context, str bytes)
{
    (void)context;
    output_text(stdout, bytes);
    return fflush(stdout) == 0 && !ferror(stdout);
}

/* Of one stage its own container, and not that of its check; else all but the copy. */
static bool is_shown(const log_pods *l, str container)
{
    if (l->stage.len == 0)
        return !str_ends(container, STR("-init"));
    return str_eq(container, STR("interrupt")) ||
           (str_starts(container, l->package) && str_ends(container, l->stage));
}

static bool show_container(const log_pods *l, const log_pod *one, yyjson_val *status)
{
    sk *s = l->sk;
    str name = json_text_of(status, "name");
    const char *word = state_word(status);
    scoped(buf_done) buf path = BUF(PATH_BYTES);
    err error = {0};
    if (!word || !is_shown(l, name))
        return true;
    printf("==> Pod: %.*s, Container: %.*s [%s], Node: %.*s <==\n", STR_ARG(one->name),
           STR_ARG(name), word, STR_ARG(one->node));
    fflush(stdout);
    buf_addf(&path, "/api/v1/namespaces/%.*s/pods/%.*s/log?container=%.*s%s",
             STR_ARG(kube_session_namespace(s->session)), STR_ARG(one->name), STR_ARG(name),
             options_given(s->given, "follow") ? "&follow=true" : "");
    if (l->tail.len > 0)
        buf_addf(&path, "&tailLines=%.*s", STR_ARG(l->tail));
    if (kube_stream(s->session, buf_str(&path), print_bytes, NULL, &error))
        return true;
    fail("%s", error.text);
    return false;
}

static bool show_pod(const log_pods *l, const log_pod *one)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    yyjson_val *status = yyjson_obj_get(one->json, "status");
    bool good = true;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        size_t index, count;
        yyjson_val *container;
        yyjson_arr_foreach(yyjson_obj_get(status, lists[i]), index, count, container)
        {
            good &= ferror(stdout) || show_container(l, one, container);
        }
    }
    return good;
}

static exit_status show_all(log_pods *l)
{
    exit_status status = STATUS_DONE;
    if (l->pods.len == 0) {
        printf("No pods found for package \"%.*s\"\n", STR_ARG(l->package));
        return STATUS_DONE;
    }
    qsort(l->pods.at, l->pods.len, sizeof l->pods.at[0], newest_first);
    for (size_t i = 0; i < l->pods.len && !ferror(stdout); i++)
        if (!show_pod(l, &l->pods.at[i]))
            status = STATUS_NO;
    return status;
}

static exit_status work(sk *s)
{
    str of = sk_of(s), tail = options_text(s->given, "tail", ALL_LINES);
    bool all = str_eq(tail, STR(ALL_LINES));
    for (size_t i = 0; !all && i < tail.len; i++)
        if (tail.ptr[i] < '0' || tail.ptr[i] > '9')
            return fail("invalid argument \"%s\" for \"--tail\"", str_shown(tail).text);
    if (!of.ptr)
        return STATUS_NO;
    log_pods l = {.sk = s,
                  .package = s->given->operands.at[0],
                  .tail = all ? STR_EMPTY : tail,
                  .node = options_text(s->given, "node", ""),
                  .stage = options_text(s->given, "stage", "")};
    scoped(buf_done) buf path = BUF(PATH_BYTES);
    err error = {0};
    buf_addf(&path, "/api/v1/namespaces/%.*s/pods?labelSelector=skyhook.nvidia.com%%2Fname%%3D",
             STR_ARG(kube_session_namespace(s->session)));
    label_value_put(&path, of);
    exit_status status = kube_list(s->session, buf_str(&path), take_pod, &l, &error)
                             ? show_all(&l)
                             : fail("%s", error.text);
    vec_done(&l.pods);
    return status;
}

static exit_status run(const options *given)
{
    return sk_run(given, work);
}

static const option options_of_logs[] = {
    OPTION_OF_SKYHOOK,
    {.name = "node", .argument = "NODE", .help = "only of this node"},
    {.name = "stage", .argument = "STAGE", .help = "only of this stage"},
    {.name = "follow", .letter = 'f', .help = "go on as more is printed"},
    {.name = "tail", .argument = "N", .help = "the last N lines of each container; -1: all"},
    OPTION_FORM_ANYHOW,
    OPTIONS_SKYHOOK,
    OPTIONS_END,
};

const verb skyhook_package_logs = {
    .name = "package logs",
    .summary = "show what the stages of a package printed",
    .operands = "PACKAGE",
    .operands_min = 1,
    .operands_max = 1,
    .options = options_of_logs,
    .run = run,
};
