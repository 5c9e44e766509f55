/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kube_drain.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/kube_session.h"
#include "operator/drain_blocker.h"

#define BUDGETS_PATH "/apis/policy/v1/poddisruptionbudgets"
#define PODS_PATH "/api/v1/pods?fieldSelector=spec.nodeName%%3D%.*s"

/* Whether the Skyhook drains the node; then its pods that must not be interrupted are known. */
static bool drains(const engine *e, const skyhook *of, str target, drain_blocker *b)
{
    arena_place mark = arena_mark(b->arena);
    node_view v;
    bool draining = engine_node(e, of->metadata.name, target, b->arena, &v) && v.draining;
    if (draining)
        b->since_ms = v.drain_since_ms;
    arena_rewind(b->arena, mark);
    const label_query *spared = &of->spec.pod_non_interrupt_labels;
    if (draining && spared->compiled && spared->len > 0)
        drain_blocker_spare(b, spared->compiled);
    return draining;
}

static bool take_budget(void *context, yyjson_val *json, err *error)
{
    (void)error;
    drain_blocker_budget(context, json);
    return true;
}

static bool take_pod(void *context, yyjson_val *json, err *error)
{
    (void)error;
    drain_blocker_pod(context, json);
    return true;
}

static bool look(const options *given, str target, drain_blocker *b, err *error)
{
    kube_session *session = kube_session_open(given, error);
    scoped(buf_done) buf path = BUF(LIMIT_LOG_LINE_BYTES);
    buf_addf(&path, PODS_PATH, STR_ARG(target));
    err unread = {0};
    if (session && !kube_list_known(session, STR(BUDGETS_PATH), take_budget, b, &unread))
        fprintf(stderr, "drover: budgets are not looked at: %s\n", unread.text);
    bool good = session && !path.failed && kube_list(session, buf_str(&path), take_pod, b, error);
    kube_session_close(session);
    return good;
}

static bool tell(engine *e, str target, const drain_blocker *b)
{
    scoped(buf_done) buf text = BUF(LIMIT_LOG_LINE_BYTES);
    buf_addf(&text, "%.*s/%.*s", STR_ARG(b->pod.space), STR_ARG(b->pod.name));
    fact f = {
        .kind = FACT_DRAIN,
        .drain = {.target = target, .blocking_pod = buf_str(&text), .blocking_budget = b->budget}};
    return !text.failed && engine_take(e, &f, 1, 0);
}

bool kube_drain_tell(const options *given, engine *e, const object_list *documents, str target)
{
    drain_blocker b;
    err error = {0};
    bool draining = false;
    bool good = drain_blocker_begin(&b);
    for (size_t i = 0; good && i < documents->len; i++)
        if (documents->at[i].kind == KIND_SKYHOOK)
            draining |= drains(e, documents->at[i].skyhook, target, &b);
    if (draining && !look(given, target, &b, &error))
        fprintf(stderr, "drover: pods of %.*s are not looked at: %s\n", STR_ARG(target),
                error.text);
    good = good && !b.no_memory && (!b.found || tell(e, target, &b));
    drain_blocker_done(&b);
    return good;
}
