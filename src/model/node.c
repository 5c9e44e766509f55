/* SPDX-License-Identifier: Apache-2.0 */
#include "model/node.h"

#include "model/shape.h"
#include "model/text_rules.h"

/* ---- metadata and conditions, which all kinds share ---- */

static bool name_valid(str text, err *error)
{
    if (text.len > LIMIT_NAME_BYTES)
        return err_set(error, "it has %zu bytes", text.len);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool inner = (c == '-' || c == '.') && i > 0 && i + 1 < text.len;
        if (!plain && !inner)
            return err_set(error, "byte %zu is not allowed there", i + 1);
    }
    return true;
}

const text_rule rule_object_name = {
    .pattern = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    .allowed = "a name: lower case letters, digits, \"-\" and \".\", at most 253",
    .valid = name_valid,
};

static const field owner_fields[] = {
    F_TEXT(owner_reference, "apiVersion", api_version),
    F_TEXT(owner_reference, "kind", kind),
    F_TEXT(owner_reference, "name", name),
    F_TEXT(owner_reference, "uid", uid),
    F_BOOL(owner_reference, "controller", controller),
};
static const shape owner_shape = {SHAPE_OF(owner_reference, owner_fields), .open = SHAPE_VIEW};

static const field metadata_fields[] = {
    F_TEXT(metadata, "name", name, .flags = FIELD_REQUIRED | FIELD_FILLED,
           .rule = &rule_object_name),
    F_TEXT(metadata, "namespace", namespace_),
    F_TEXT(metadata, "uid", uid),
    F_TEXT_MAP(metadata, "labels", labels),
    F_TEXT_MAP(metadata, "annotations", annotations),
    F_TIME(metadata, "creationTimestamp", creation_timestamp),
    F_TIME(metadata, "deletionTimestamp", deletion_timestamp),
    F_INT(metadata, "generation", generation),
    F_TEXT(metadata, "resourceVersion", resource_version),
    F_TEXT_LIST(metadata, "finalizers", finalizers),
    F_LIST(metadata, "ownerReferences", owner_references, &owner_shape),
    F_IGNORED("managedFields"),
    F_IGNORED("generateName"),
    F_IGNORED("selfLink"),
    F_IGNORED("deletionGracePeriodSeconds"),
};
const shape metadata_shape = {SHAPE_OF(metadata, metadata_fields), .open = SHAPE_VIEW};

WORDS(condition_words, CONDITION_STATES);

static const field condition_fields[] = {
    F_TEXT(condition, "type", type, REQUIRED),
    F_ENUM(condition, "status", status, &condition_words, REQUIRED),
    F_TEXT(condition, "reason", reason),
    F_TEXT(condition, "message", message),
    F_TIME(condition, "lastTransitionTime", last_transition_time),
    F_TIME(condition, "lastUpdateTime", last_update_time),
    F_TIME(condition, "lastHeartbeatTime", last_heartbeat_time),
    F_INT(condition, "observedGeneration", observed_generation),
};
const shape condition_shape = {SHAPE_OF(condition, condition_fields), .open = SHAPE_VIEW};

/* ---- taints and tolerations ---- */

WORDS(effect_words, TAINT_EFFECTS);
WORDS(operator_words, TOLERATION_OPERATORS);

static const field taint_fields[] = {
    F_TEXT(taint, "key", key, REQUIRED),
    F_TEXT(taint, "value", value),
    F_ENUM(taint, "effect", effect, &effect_words, REQUIRED),
    F_TIME(taint, "timeAdded", time_added),
};
static const shape taint_shape = {SHAPE_OF(taint, taint_fields), .open = SHAPE_VIEW};

static const field toleration_fields[] = {
    F_TEXT(toleration, "key", key),
    F_ENUM(toleration, "operator", op, &operator_words),
    F_TEXT(toleration, "value", value),
    F_ENUM(toleration, "effect", effect, &effect_words),
    F_OPT_INT(toleration, "tolerationSeconds", toleration_seconds),
};
const shape toleration_shape = {SHAPE_OF(toleration, toleration_fields), .open = SHAPE_VIEW};

bool toleration_covers(const toleration *t, const taint *of)
{
    if (t->effect != TAINT_NONE && t->effect != of->effect)
        return false;
    if (t->key.len > 0 && !str_eq(t->key, of->key))
        return false;
    switch (t->op) {
    case TOLERATION_EXISTS: return true;
    case TOLERATION_EQUAL: return t->key.len > 0 && str_eq(t->value, of->value);
    case TOLERATION_LT:
    case TOLERATION_GT:
        return false; /* numeric taints: behind a feature gate, so nothing is tolerated by mistake
                       */
    }
    return false;
}

/* ---- Node ---- */

static const field node_spec_fields[] = {
    F_BOOL(struct node_spec, "unschedulable", unschedulable),
    F_LIST(struct node_spec, "taints", taints, &taint_shape),
};
static const shape node_spec_shape = {SHAPE_OF(struct node_spec, node_spec_fields),
                                      .open = SHAPE_VIEW};

static const field node_info_fields[] = {F_TEXT(struct node_info, "bootID", boot_id)};
static const shape node_info_shape = {SHAPE_OF(struct node_info, node_info_fields),
                                      .open = SHAPE_VIEW};

static const field node_status_fields[] = {
    F_LIST(struct node_status, "conditions", conditions, &condition_shape),
    F_STRUCT(struct node_status, "nodeInfo", node_info, &node_info_shape),
};
static const shape node_status_shape = {SHAPE_OF(struct node_status, node_status_fields),
                                        .open = SHAPE_VIEW};

static const field node_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(node, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(node, "spec", spec, &node_spec_shape),
    F_STRUCT(node, "status", status, &node_status_shape),
};
const shape node_shape = {SHAPE_OF(node, node_fields), .open = SHAPE_VIEW};

bool node_ready(const node *n)
{
    const condition *ready = condition_find(n->status.conditions, STR("Ready"));
    return ready && ready->status == CONDITION_TRUE;
}

/* ---- Pod ---- */

WORDS(phase_words, POD_PHASES);

static const field detail_fields[] = {
    F_TEXT(container_state_detail, "reason", reason),
    F_TEXT(container_state_detail, "message", message),
    F_INT(container_state_detail, "exitCode", exit_code),
    F_TIME(container_state_detail, "startedAt", started_at),
    F_TIME(container_state_detail, "finishedAt", finished_at),
};
static const shape detail_shape = {SHAPE_OF(container_state_detail, detail_fields),
                                   .open = SHAPE_VIEW};

static const field state_fields[] = {
    F_OBJECT(struct container_state, "waiting", waiting, &detail_shape),
    F_OBJECT(struct container_state, "running", running, &detail_shape),
    F_OBJECT(struct container_state, "terminated", terminated, &detail_shape),
};
static const shape state_shape = {SHAPE_OF(struct container_state, state_fields),
                                  .open = SHAPE_VIEW};

static const field container_fields[] = {
    F_TEXT(container_status, "name", name),
    F_TEXT(container_status, "image", image),
    F_BOOL(container_status, "ready", ready),
    F_INT(container_status, "restartCount", restart_count),
    F_STRUCT(container_status, "state", state, &state_shape),
};
static const shape container_shape = {SHAPE_OF(container_status, container_fields),
                                      .open = SHAPE_VIEW};

static const field volume_fields[] = {
    F_TEXT(pod_volume, "name", name),
    F_RAW(pod_volume, "emptyDir", empty_dir),
};
static const shape volume_shape = {SHAPE_OF(pod_volume, volume_fields), .open = SHAPE_VIEW};

static const field pod_spec_fields[] = {
    F_TEXT(struct pod_spec, "nodeName", node_name),
    F_LIST(struct pod_spec, "tolerations", tolerations, &toleration_shape),
    F_TEXT(struct pod_spec, "priorityClassName", priority_class_name),
    F_OPT_INT(struct pod_spec, "terminationGracePeriodSeconds", termination_grace_period_seconds),
    F_LIST(struct pod_spec, "volumes", volumes, &volume_shape),
};
static const shape pod_spec_shape = {SHAPE_OF(struct pod_spec, pod_spec_fields),
                                     .open = SHAPE_VIEW};

static const field pod_status_fields[] = {
    F_ENUM(struct pod_status, "phase", phase, &phase_words),
    F_TEXT(struct pod_status, "reason", reason),
    F_TEXT(struct pod_status, "message", message),
    F_TIME(struct pod_status, "startTime", start_time),
    F_LIST(struct pod_status, "conditions", conditions, &condition_shape),
    F_LIST(struct pod_status, "initContainerStatuses", init_container_statuses, &container_shape),
    F_LIST(struct pod_status, "containerStatuses", container_statuses, &container_shape),
};
static const shape pod_status_shape = {SHAPE_OF(struct pod_status, pod_status_fields),
                                       .open = SHAPE_VIEW};

static const field pod_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(pod, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(pod, "spec", spec, &pod_spec_shape),
    F_STRUCT(pod, "status", status, &pod_status_shape),
};
const shape pod_shape = {SHAPE_OF(pod, pod_fields), .open = SHAPE_VIEW};

static const field namespace_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(kube_namespace, "metadata", metadata, &metadata_shape, REQUIRED),
};
const shape kube_namespace_shape = {SHAPE_OF(kube_namespace, namespace_fields), .open = SHAPE_VIEW};
