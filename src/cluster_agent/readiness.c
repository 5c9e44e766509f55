/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/readiness.h"

#include "cluster_agent/object_ref.h"
#include "operator/bundle_json.h"

/* An object under judgement. */
typedef struct subject {
    arena *arena;
    const yyjson_val *object, *spec, *status;
    const yyjson_val *ignored; /* conditions that do not count; may be NULL */
} subject;

static readiness ready(void)
{
    return (readiness){READINESS_READY, STR_EMPTY};
}

static readiness because(readiness_state state, str message)
{
    return (readiness){state, message.ptr ? message : STR_EMPTY};
}

static int64_t number(const yyjson_val *of, str name, int64_t otherwise)
{
    yyjson_val *found = go_member(of, name);
    return yyjson_is_int(found) ? yyjson_get_sint(found) : otherwise;
}

/* Whether a condition has all that one of the ignored ones says; one that says nothing is nobody.
 */
static bool is_ignored(const subject *j, const yyjson_val *condition_json)
{
    size_t i, max;
    yyjson_val *one, *key;
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)j->ignored, i, max, one)
    {
        bool all = yyjson_obj_size(one) > 0;
        yyjson_obj_iter walk = yyjson_obj_iter_with(one);
        while (all && (key = yyjson_obj_iter_next(&walk))) {
            str wanted = go_str(yyjson_obj_iter_get_val(key));
            all = wanted.ptr && str_eq(wanted, object_text(condition_json, go_str(key)));
        }
        if (all)
            return true;
    }
    return false;
}

/* The condition of that type, or NULL. */
static const yyjson_val *condition_of(const subject *j, str type)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(go_member(j->status, STR("conditions")), i, max, one)
    {
        if (str_eq(object_text(one, STR("type")), type) && !is_ignored(j, one))
            return one;
    }
    return NULL;
}

static bool condition_is(const subject *j, str type, str status)
{
    const yyjson_val *c = condition_of(j, type);
    return c && str_eq(object_text(c, STR("status")), status);
}

/* What a condition says, else its reason, else its type. */
static str condition_says(const yyjson_val *c)
{
    str message = object_text(c, STR("message")), reason = object_text(c, STR("reason"));
    return message.len > 0 ? message : reason.len > 0 ? reason : object_text(c, STR("type"));
}

static readiness progress(const subject *j, int64_t have, int64_t want, const char *what)
{
    return because(READINESS_TRANSITIONING, arena_printf(j->arena, "%lld of %lld %s",
                                                         (long long)have, (long long)want, what));
}

/* ---- workloads ---- */

static bool rolls_by_hand(const subject *j)
{
    return str_eq(object_text(go_member(j->spec, STR("updateStrategy")), STR("type")),
                  STR("OnDelete"));
}

static readiness judge_deployment(const subject *j)
{
    int64_t want = number(j->spec, STR("replicas"), 1);
    int64_t all = number(j->status, STR("replicas"), 0);
    int64_t updated = number(j->status, STR("updatedReplicas"), 0);
    int64_t available = number(j->status, STR("availableReplicas"), 0);
    const yyjson_val *progressing = condition_of(j, STR("Progressing"));
    if (progressing &&
        str_eq(object_text(progressing, STR("reason")), STR("ProgressDeadlineExceeded")))
        return because(READINESS_ERROR, condition_says(progressing));
    if (condition_is(j, STR("ReplicaFailure"), STR("True")))
        return because(READINESS_ERROR, condition_says(condition_of(j, STR("ReplicaFailure"))));
    if (updated < want)
        return progress(j, updated, want, "replicas are updated");
    if (all > updated)
        return progress(j, updated, all, "replicas are new, the others are ending");
    if (available < want)
        return progress(j, available, want, "replicas are available");
    return ready();
}

static readiness judge_replica_set(const subject *j)
{
    int64_t want = number(j->spec, STR("replicas"), 1);
    int64_t available = number(j->status, STR("availableReplicas"), 0);
    if (condition_is(j, STR("ReplicaFailure"), STR("True")))
        return because(READINESS_ERROR, condition_says(condition_of(j, STR("ReplicaFailure"))));
    return available < want ? progress(j, available, want, "replicas are available") : ready();
}

/* With a partition only the replicas above it are updated. With minReadySeconds a replica that is
 * ready must have been so for a while. */
static readiness judge_stateful_set(const subject *j)
{
    int64_t want = number(j->spec, STR("replicas"), 1);
    bool patient = number(j->spec, STR("minReadySeconds"), 0) > 0;
    int64_t is_ready =
        number(j->status, patient ? STR("availableReplicas") : STR("readyReplicas"), 0);
    int64_t updated = number(j->status, STR("updatedReplicas"), 0);
    const yyjson_val *rolling =
        go_member(go_member(j->spec, STR("updateStrategy")), STR("rollingUpdate"));
    int64_t partition = number(rolling, STR("partition"), 0);
    int64_t to_update = partition < want ? want - partition : 0;
    if (is_ready < want)
        return progress(j, is_ready, want,
                        patient ? "replicas are available" : "replicas are ready");
    if (rolls_by_hand(j))
        return ready();
    if (updated < to_update)
        return progress(j, updated, to_update, "replicas are updated");
    str now = object_text(j->status, STR("currentRevision")),
        next = object_text(j->status, STR("updateRevision"));
    if (partition == 0 && next.len > 0 && !str_eq(now, next))
        return because(READINESS_TRANSITIONING, STR("the last replicas are being updated"));
    return ready();
}

static readiness judge_daemon_set(const subject *j)
{
    int64_t want = number(j->status, STR("desiredNumberScheduled"), 0);
    int64_t updated = number(j->status, STR("updatedNumberScheduled"), 0);
    int64_t available = number(j->status, STR("numberAvailable"), 0);
    if (!go_member(j->status, STR("observedGeneration")))
        return because(READINESS_TRANSITIONING, STR("its controller has not seen it yet"));
    if (!rolls_by_hand(j) && updated < want)
        return progress(j, updated, want, "pods are updated");
    return available < want ? progress(j, available, want, "pods are available") : ready();
}

static readiness judge_job(const subject *j)
{
    int64_t want = number(j->spec, STR("completions"), 1);
    if (condition_is(j, STR("Complete"), STR("True")))
        return ready();
    if (condition_is(j, STR("Failed"), STR("True")))
        return because(READINESS_ERROR, condition_says(condition_of(j, STR("Failed"))));
    if (condition_is(j, STR("FailureTarget"), STR("True")))
        return because(READINESS_ERROR, condition_says(condition_of(j, STR("FailureTarget"))));
    if (yyjson_is_true(go_member(j->spec, STR("suspend"))))
        return because(READINESS_TRANSITIONING, STR("it is suspended"));
    return progress(j, number(j->status, STR("succeeded"), 0), want, "completions");
}

/* ---- pods ---- */

/* Reasons for which a container waits that do not pass by themselves. */
static bool stuck(str reason)
{
    static const str reasons[] = {
        STR("CrashLoopBackOff"),           STR("ImagePullBackOff"),     STR("ErrImagePull"),
        STR("ErrImageNeverPull"),          STR("InvalidImageName"),     STR("RunContainerError"),
        STR("CreateContainerConfigError"), STR("CreateContainerError"),
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (str_eq(reasons[i], reason))
            return true;
    return false;
}

static str stuck_container(const subject *j, str list)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(go_member(j->status, list), i, max, one)
    {
        const yyjson_val *waits = go_member(go_member(one, STR("state")), STR("waiting"));
        str reason = object_text(waits, STR("reason"));
        if (stuck(reason))
            return arena_printf(j->arena, "container %.*s: %.*s",
                                STR_ARG(object_text(one, STR("name"))), STR_ARG(reason));
    }
    return STR_EMPTY;
}

static readiness judge_pod(const subject *j)
{
    str phase = object_text(j->status, STR("phase"));
    if (str_eq(phase, STR("Succeeded")))
        return ready();
    if (str_eq(phase, STR("Failed"))) {
        str message = object_text(j->status, STR("message"));
        return because(READINESS_ERROR, message.len > 0 ? message : STR("the pod failed"));
    }
    str first = stuck_container(j, STR("initContainerStatuses"));
    if (first.len == 0)
        first = stuck_container(j, STR("containerStatuses"));
    if (first.len > 0)
        return because(READINESS_ERROR, first);
    if (condition_is(j, STR("Ready"), STR("True")))
        return ready();
    const yyjson_val *scheduled = condition_of(j, STR("PodScheduled"));
    if (scheduled && str_eq(object_text(scheduled, STR("status")), STR("False")))
        return because(READINESS_TRANSITIONING, condition_says(scheduled));
    return because(READINESS_TRANSITIONING, STR("the pod is not ready"));
}

/* ---- other kinds of Kubernetes ---- */

static readiness judge_definition(const subject *j)
{
    if (condition_is(j, STR("NamesAccepted"), STR("False")))
        return because(READINESS_ERROR, condition_says(condition_of(j, STR("NamesAccepted"))));
    if (condition_is(j, STR("Established"), STR("True")))
        return ready();
    return because(READINESS_TRANSITIONING, STR("the definition is not established"));
}

static readiness judge_claim(const subject *j)
{
    str phase = object_text(j->status, STR("phase"));
    if (str_eq(phase, STR("Bound")))
        return ready();
    if (str_eq(phase, STR("Lost")))
        return because(READINESS_ERROR, STR("its volume is lost"));
    return because(READINESS_TRANSITIONING, STR("no volume is bound"));
}

static readiness judge_service(const subject *j)
{
    yyjson_val *ingress = go_member(go_member(j->status, STR("loadBalancer")), STR("ingress"));
    if (!str_eq(object_text(j->spec, STR("type")), STR("LoadBalancer")) ||
        yyjson_arr_size(ingress) > 0)
        return ready();
    return because(READINESS_TRANSITIONING, STR("it has no address of a load balancer"));
}

/* ---- anything with conditions ---- */

/* Whether a condition is of an object as it was before its last change: many kinds say so here and
 * not in their status. */
static bool is_old(const subject *j, const yyjson_val *condition_json)
{
    int64_t generation = number(go_member(j->object, STR("metadata")), STR("generation"), 0);
    return number(condition_json, STR("observedGeneration"), generation) < generation;
}

/* Conditions that are good when true, in the order in which they are believed; then those that are
 * bad when true. */
static readiness judge_conditions(const subject *j)
{
    static const str bad[] = {STR("Stalled"), STR("Failed"), STR("Degraded")};
    static const str good[] = {STR("Ready"), STR("Available"), STR("Established"), STR("Healthy"),
                               STR("Succeeded")};
    const yyjson_val *known[sizeof bad / sizeof bad[0] + sizeof good / sizeof good[0]];
    size_t count = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        known[count++] = condition_of(j, bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        known[count++] = condition_of(j, good[i]);
    for (size_t i = 0; i < count; i++)
        if (known[i] && is_old(j, known[i]))
            return because(READINESS_TRANSITIONING,
                           STR("its controller has not seen the change yet"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (condition_is(j, bad[i], STR("True")))
            return because(READINESS_ERROR, condition_says(condition_of(j, bad[i])));
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const yyjson_val *c = condition_of(j, good[i]);
        if (!c || str_eq(object_text(c, STR("status")), STR("True")))
            continue;
        bool error = str_eq(object_text(c, STR("reason")), STR("Error"));
        return because(error ? READINESS_ERROR : READINESS_TRANSITIONING, condition_says(c));
    }
    if (condition_is(j, STR("Reconciling"), STR("True")))
        return because(READINESS_TRANSITIONING,
                       condition_says(condition_of(j, STR("Reconciling"))));
    return ready();
}

/* ---- the table ---- */

typedef struct judge_row {
    str group; /* of its apiVersion */
    str kind;
    readiness (*judge)(const subject *j);
} judge_row;

static const judge_row rows[] = {
    {STR("apps"), STR("Deployment"), judge_deployment},
    {STR("apps"), STR("ReplicaSet"), judge_replica_set},
    {STR(""), STR("ReplicationController"), judge_replica_set},
    {STR("apps"), STR("StatefulSet"), judge_stateful_set},
    {STR("apps"), STR("DaemonSet"), judge_daemon_set},
    {STR("batch"), STR("Job"), judge_job},
    {STR(""), STR("Pod"), judge_pod},
    {STR(""), STR("PersistentVolumeClaim"), judge_claim},
    {STR(""), STR("Service"), judge_service},
    {STR("apiextensions.k8s.io"), STR("CustomResourceDefinition"), judge_definition},
};

readiness readiness_judge(arena *a, const yyjson_val *object)
{
    return readiness_judge_but(a, object, NULL);
}

readiness readiness_judge_but(arena *a, const yyjson_val *object, const yyjson_val *ignored)
{
    const yyjson_val *meta = go_member(object, STR("metadata"));
    subject j = {a, object, go_member(object, STR("spec")), go_member(object, STR("status")),
                 ignored};
    if (object_text(meta, STR("deletionTimestamp")).len > 0)
        return because(READINESS_TRANSITIONING, STR("it is being deleted"));
    int64_t generation = number(meta, STR("generation"), 0);
    if (number(j.status, STR("observedGeneration"), generation) < generation)
        return because(READINESS_TRANSITIONING, STR("its controller has not seen the change yet"));
    str group = object_group(object_text(object, STR("apiVersion")));
    str kind = object_text(object, STR("kind"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (str_eq(rows[i].kind, kind) && str_eq(rows[i].group, group))
            return rows[i].judge(&j);
    return judge_conditions(&j);
}

void non_ready_put(buf *out, const yyjson_val *object, const readiness *judged)
{
    static const char *const states[] = {
#define X(state, text) text,
        READINESS_STATES(X)
#undef X
    };
    const yyjson_val *meta = go_member(object, STR("metadata"));
    buf_addc(out, '{');
    json_text_if(out, "kind", object_text(object, STR("kind")));
    json_text_if(out, "apiVersion", object_text(object, STR("apiVersion")));
    json_text_if(out, "namespace", object_text(meta, STR("namespace")));
    json_text_if(out, "name", object_text(meta, STR("name")));
    json_text_if(out, "uid", object_text(meta, STR("uid")));
    json_open(out, "summary");
    json_text(out, "state", str_of(states[judged->state]));
    json_true_if(out, "error", judged->state == READINESS_ERROR);
    json_true_if(out, "transitioning", judged->state == READINESS_TRANSITIONING);
    if (judged->message.len > 0) {
        json_key(out, "message");
        buf_addc(out, '[');
        go_text(out, judged->message);
        buf_addc(out, ']');
    }
    json_close(out);
    json_close(out);
}
