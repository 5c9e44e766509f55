/* SPDX-License-Identifier: Apache-2.0 */
#include "model/fleet.h"

#include "model/fleet_forms.h"
#include "model/json.h"
#include "model/shape.h"

/* ---- who is meant, and with what ---- */

static const field match_fields[] = {
    F_TEXT(cluster_match, "clusterName", cluster_name),
    F_SELECTOR(cluster_match, "clusterSelector", cluster_selector),
    F_TEXT(cluster_match, "clusterGroup", cluster_group),
    F_SELECTOR(cluster_match, "clusterGroupSelector", cluster_group_selector),
};
static const shape match_shape = {SHAPE_OF(cluster_match, match_fields), .open = SHAPE_VIEW};

static const field options_fields[] = {
#define X(member, json) F_RAW(bundle_options, json, member, .as = &form_##member),
    BUNDLE_OPTIONS(X)
#undef X
};
static const shape options_shape = {SHAPE_OF(bundle_options, options_fields), .open = SHAPE_VIEW};

static const field target_fields[] = {
    F_TEXT(bundle_target, "name", name),
    F_INLINE(bundle_target, match, &match_shape),
    F_BOOL(bundle_target, "doNotDeploy", do_not_deploy),
    F_INLINE(bundle_target, options, &options_shape),
};
static const shape target_shape = {SHAPE_OF(bundle_target, target_fields), KEPT_IN(bundle_target)};

static const field restriction_fields[] = {
    F_TEXT(bundle_restriction, "name", name),
    F_INLINE(bundle_restriction, match, &match_shape),
};
static const shape restriction_shape = {SHAPE_OF(bundle_restriction, restriction_fields),
                                        KEPT_IN(bundle_restriction)};

/* Fleet names targets that have no name by their place in the list. */
static bool name_targets(arena *a, bundle_target_list targets)
{
    for (size_t i = 0; i < targets.len; i++) {
        if (targets.at[i].name.len > 0)
            continue;
        targets.at[i].name = arena_printf(a, "target%03zu", i);
        if (!targets.at[i].name.ptr)
            return false;
    }
    return true;
}

/* ---- rolloutStrategy ---- */

static void check_partition(reader *r, const place *at, void *value)
{
    const partition *p = value;
    const cluster_match *m = &p->match;
    if (m->cluster_name.len == 0 && !m->cluster_selector.compiled && m->cluster_group.len == 0 &&
        !m->cluster_group_selector.compiled)
        reader_warning(r, at, "found no selector: this partition stays empty");
}

static const field partition_fields[] = {
    F_TEXT(partition, "name", name),
    F_AMOUNT(partition, "maxUnavailable", max_unavailable),
    F_INLINE(partition, match, &match_shape),
    F_BOOL(partition, "approval", approval, OURS, DOC("a person opens this partition")),
};
static const shape partition_shape = {SHAPE_OF(partition, partition_fields), KEPT_IN(partition),
                                      .check = check_partition};

static const field strategy_fields[] = {
    F_AMOUNT(rollout_strategy, "maxUnavailable", max_unavailable, OTHERWISE("100%"),
             DOC("clusters that may be unavailable, and the fallback for each partition")),
    F_AMOUNT(rollout_strategy, "maxUnavailablePartitions", max_unavailable_partitions,
             OTHERWISE("0"), DOC("partitions that may be not ready")),
    F_AMOUNT(rollout_strategy, "autoPartitionSize", auto_partition_size, OTHERWISE("25%"),
             DOC("size of automatic partitions")),
    F_INT(rollout_strategy, "autoPartitionThreshold", auto_partition_threshold, OTHERWISE("200"),
          DOC("clusters from which on partitions are made")),
    F_INT(rollout_strategy, "maxNew", max_new, OTHERWISE("50"),
          DOC("deployments released in one pass")),
    F_LIST(rollout_strategy, "partitions", partitions, &partition_shape),
    F_OPT_INT(rollout_strategy, "soakSeconds", soak_seconds, OURS, AT_LEAST(0),
              DOC("time a partition must stay ready before the next begins")),
    F_OPT_INT(rollout_strategy, "failureThreshold", failure_threshold, OURS, AT_LEAST(1),
              DOC("failed clusters that halt the rollout")),
    F_OPT_INT(rollout_strategy, "offlineAfterSeconds", offline_after_seconds, OURS, AT_LEAST(1),
              DOC("a cluster not seen that long is left out")),
};

static void check_rollout_strategy(reader *r, const place *at, void *value)
{
    const rollout_strategy *s = value;
    place max_new = place_key(at, STR("maxNew"));
    if (s->max_new < 1)
        reader_warning(r, &max_new, "found a number below 1: nothing is ever released");
}

const shape rollout_strategy_shape = {SHAPE_OF(rollout_strategy, strategy_fields),
                                      KEPT_IN(rollout_strategy), .check = check_rollout_strategy};

bool rollout_strategy_parse(arena *a, str text, rollout_strategy *ret, err *error)
{
    return shape_parse(a, &rollout_strategy_shape, text, ret, error);
}

/* ---- Bundle ---- */

WORDS(state_words, BUNDLE_STATES);
WORDS(mode_words, CUSTOMIZATION_MODES);

static const field non_ready_fields[] = {
    F_TEXT(non_ready_resource, "name", name),
    F_ENUM(non_ready_resource, "bundleState", bundle_state, &state_words),
    F_TEXT(non_ready_resource, "message", message),
    F_RAW(non_ready_resource, "modifiedStatus", modified_status),
    F_RAW(non_ready_resource, "nonReadyStatus", non_ready_status),
};
static const shape non_ready_shape = {SHAPE_OF(non_ready_resource, non_ready_fields),
                                      .open = SHAPE_VIEW};

static const field summary_fields[] = {
    F_INT(bundle_summary, "notReady", not_ready),
    F_INT(bundle_summary, "waitApplied", wait_applied),
    F_INT(bundle_summary, "errApplied", err_applied),
    F_INT(bundle_summary, "outOfSync", out_of_sync),
    F_INT(bundle_summary, "modified", modified),
    F_INT(bundle_summary, "ready", ready),
    F_INT(bundle_summary, "pending", pending),
    F_INT(bundle_summary, "desiredReady", desired_ready),
    F_LIST(bundle_summary, "nonReadyResources", non_ready_resources, &non_ready_shape),
};
static const shape summary_shape = {SHAPE_OF(bundle_summary, summary_fields), .open = SHAPE_VIEW};

static const field partition_status_fields[] = {
    F_TEXT(partition_status, "name", name),
    F_INT(partition_status, "count", count),
    F_INT(partition_status, "maxUnavailable", max_unavailable),
    F_INT(partition_status, "unavailable", unavailable),
    F_STRUCT(partition_status, "summary", summary, &summary_shape),
};
static const shape partition_status_shape = {SHAPE_OF(partition_status, partition_status_fields),
                                             .open = SHAPE_VIEW};

static const field display_fields[] = {
    F_TEXT(struct bundle_display, "readyClusters", ready_clusters),
    F_TEXT(struct bundle_display, "state", state),
};
static const shape display_shape = {SHAPE_OF(struct bundle_display, display_fields),
                                    .open = SHAPE_VIEW};

static const field bundle_status_fields[] = {
    F_LIST(bundle_status, "conditions", conditions, &condition_shape),
    F_STRUCT(bundle_status, "summary", summary, &summary_shape),
    F_INT(bundle_status, "newlyCreated", newly_created),
    F_INT(bundle_status, "unavailable", unavailable, .flags = FIELD_ALWAYS),
    F_INT(bundle_status, "unavailablePartitions", unavailable_partitions, .flags = FIELD_ALWAYS),
    F_INT(bundle_status, "maxUnavailable", max_unavailable, .flags = FIELD_ALWAYS),
    F_INT(bundle_status, "maxUnavailablePartitions", max_unavailable_partitions,
          .flags = FIELD_ALWAYS),
    F_LIST(bundle_status, "partitions", partitions, &partition_status_shape),
    F_STRUCT(bundle_status, "display", display, &display_shape),
    F_INT(bundle_status, "observedGeneration", observed_generation),
    F_TEXT(bundle_status, "resourcesSha256Sum", resources_sha256_sum),
    F_TEXT(bundle_status, "ociReference", oci_reference),
};
static const shape bundle_status_shape = {SHAPE_OF(bundle_status, bundle_status_fields),
                                          KEPT_IN(bundle_status)};

static void check_bundle_spec(reader *r, const place *at, void *value)
{
    bundle_spec *s = value;
    (void)at;
    if (!name_targets(r->arena, s->targets))
        reader_memory(r);
}

static const field bundle_spec_fields[] = {
    F_BOOL(bundle_spec, "paused", paused),
    F_INLINE(bundle_spec, options, &options_shape),
    F_LIST(bundle_spec, "targets", targets, &target_shape),
    F_LIST(bundle_spec, "targetRestrictions", target_restrictions, &restriction_shape),
    F_ENUM(bundle_spec, "targetCustomizationMode", target_customization_mode, &mode_words),
    F_STRUCT(bundle_spec, "rolloutStrategy", rollout_strategy, &rollout_strategy_shape),
    F_RAW(bundle_spec, "dependsOn", depends_on, .as = &form_depends_on),
    F_RAW(bundle_spec, "resources", resources, .as = &form_resources),
    F_TEXT(bundle_spec, "contentsId", contents_id),
    F_RAW(bundle_spec, "helmOpOptions", helm_op_options, .as = &form_helm_op_options),
    F_TEXT(bundle_spec, "valuesHash", values_hash),
};
static const shape bundle_spec_shape = {SHAPE_OF(bundle_spec, bundle_spec_fields),
                                        KEPT_IN(bundle_spec), .check = check_bundle_spec};

static void check_bundle(reader *r, const place *at, void *value)
{
    const bundle *b = value;
    str text = label_get(b->metadata.annotations, STR(ANNOTATION_ROLLOUT_STRATEGY));
    place meta = place_key(at, STR("metadata"));
    place annotations = place_key(&meta, STR("annotations"));
    place own = place_key(&annotations, STR(ANNOTATION_ROLLOUT_STRATEGY));
    rollout_strategy read;
    err error;
    if (!text.ptr || rollout_strategy_parse(r->arena, text, &read, &error))
        return;
    if (err_is_memory(&error))
        reader_memory(r);
    else
        reader_error(r, &own, "found no rolloutStrategy in JSON: %s", error.text);
}

static const field bundle_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(bundle, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(bundle, "spec", spec, &bundle_spec_shape),
    F_STRUCT(bundle, "status", status, &bundle_status_shape),
};
const shape bundle_shape = {SHAPE_OF(bundle, bundle_fields), KEPT_IN(bundle),
                            .check = check_bundle};

/* ---- fleet.yaml ---- */

static const field fleet_yaml_fields[] = {
    F_TEXT(fleet_yaml, "name", name),
    F_LABELS(fleet_yaml, "labels", labels),
    F_BOOL(fleet_yaml, "paused", paused),
    F_INLINE(fleet_yaml, options, &options_shape),
    F_LIST(fleet_yaml, "targets", targets, &target_shape),
    F_LIST(fleet_yaml, "targetCustomizations", target_customizations, &target_shape),
    F_LIST(fleet_yaml, "overrideTargets", override_targets, &target_shape),
    F_LIST(fleet_yaml, "targetRestrictions", target_restrictions, &restriction_shape),
    F_ENUM(fleet_yaml, "targetCustomizationMode", target_customization_mode, &mode_words),
    F_STRUCT(fleet_yaml, "rolloutStrategy", rollout_strategy, &rollout_strategy_shape),
    F_RAW(fleet_yaml, "dependsOn", depends_on, .as = &form_depends_on),
    F_RAW(fleet_yaml, "imageScans", image_scans),
};
const shape fleet_yaml_shape = {SHAPE_OF(fleet_yaml, fleet_yaml_fields), KEPT_IN(fleet_yaml)};

/* fleet.yaml's restrictions, and those targets that restrict, become restrictions of the bundle. */
static bool add_restrictions(arena *a, const fleet_yaml *f, bundle_target_list restricting,
                             bundle_spec *spec)
{
    size_t own = f->target_restrictions.len;
    size_t count = own + restricting.len;
    bundle_restriction *all = ARENA_ARRAY(a, count, bundle_restriction);
    if (!all)
        return false;
    for (size_t i = 0; i < own; i++)
        all[i] = f->target_restrictions.at[i];
    for (size_t i = own; i < count; i++) {
        const bundle_target *t = &restricting.at[i - own];
        all[i] = (bundle_restriction){.name = t->name, .match = t->match};
    }
    spec->target_restrictions = (bundle_restriction_list){count > 0 ? all : NULL, count};
    return true;
}

static const bundle_target default_target = {.name = {"default", 7},
                                             .match.cluster_group = {"default", 7}};

/* targets, then customizations, then those that restrict; a default when there is none at all. */
static bool add_targets(arena *a, const fleet_yaml *f, bundle_target_list restricting,
                        bundle_spec *spec)
{
    const bundle_target_list parts[] = {f->targets, f->target_customizations, restricting};
    size_t count = parts[0].len + parts[1].len + parts[2].len;
    bundle_target *all = ARENA_ARRAY(a, count ? count : 1, bundle_target);
    if (!all)
        return false;
    size_t used = 0;
    for (size_t p = 0; p < 3; p++)
        for (size_t i = 0; i < parts[p].len; i++)
            all[used++] = parts[p].at[i];
    if (count == 0)
        all[used++] = default_target;
    spec->targets = (bundle_target_list){all, used};
    return name_targets(a, spec->targets);
}

/* Only who is meant counts in targets that restrict; each list names its own. */
static bool restricting_targets(arena *a, const fleet_yaml *f, const bundle_target_list *repo,
                                bundle_target_list *ret)
{
    bool defaults = !f->override_targets.at && repo && repo->len == 0;
    bundle_target_list from = f->override_targets.at || !repo ? f->override_targets : *repo;
    bundle_target *copy = ARENA_ARRAY(a, from.len + 1, bundle_target);
    if (!copy)
        return false;
    for (size_t i = 0; i < from.len; i++)
        copy[i] = from.at[i];
    if (defaults)
        copy[0] = default_target;
    *ret = (bundle_target_list){copy, defaults ? 1 : from.len};
    return true;
}

str fleet_folder_name(arena *a, str path)
{
    str name = path;
    for (size_t at = str_find(name, STR("/")); at != SIZE_MAX; at = str_find(name, STR("/")))
        name = str_part(name, at + 1, SIZE_MAX);
    buf out = BUF(LIMIT_PATH_BYTES);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (fits || (out.len > 0 && out.ptr[out.len - 1] != '-'))
            buf_addc(&out, fits ? c : '-');
    }
    str made = buf_str(&out);
    while (made.len > 0 && made.ptr[made.len - 1] == '-')
        made.len--;
    made = arena_str(a, made);
    buf_done(&out);
    return made;
}

str fleet_yaml_name(arena *a, str file)
{
    while (file.len > 0 && file.ptr[file.len - 1] != '/')
        file.len--;
    while (file.len > 0 && file.ptr[file.len - 1] == '/')
        file.len--;
    str name = fleet_folder_name(a, file);
    return name.ptr && name.len == 0 ? STR("fleet") : name;
}

bundle *fleet_yaml_bundle(arena *a, const fleet_yaml *f, str name)
{
    return fleet_yaml_bundle_for(a, f, name, NULL);
}

bundle *fleet_yaml_bundle_for(arena *a, const fleet_yaml *f, str name,
                              const bundle_target_list *repo)
{
    bundle_target_list restricting = {0};
    bundle *b = ARENA_NEW(a, bundle);
    if (!b)
        return NULL;
    b->metadata.name = f->name.len > 0 ? f->name : name;
    b->metadata.labels = f->labels;
    b->spec.paused = f->paused;
    b->spec.options = f->options;
    b->spec.target_customization_mode = f->target_customization_mode;
    b->spec.rollout_strategy = f->rollout_strategy;
    b->spec.depends_on = f->depends_on;
    if (!restricting_targets(a, f, repo, &restricting) ||
        !add_targets(a, f, restricting, &b->spec) || !add_restrictions(a, f, restricting, &b->spec))
        return NULL;
    return b;
}

/* ---- BundleDeployment ---- */

typedef struct bundle_deployment_spec bundle_deployment_spec;
typedef struct bundle_deployment_status bundle_deployment_status;

static const field deployment_spec_fields[] = {
    F_BOOL(bundle_deployment_spec, "paused", paused),
    F_RAW(bundle_deployment_spec, "stagedOptions", staged_options),
    F_TEXT(bundle_deployment_spec, "stagedDeploymentID", staged_deployment_id),
    F_RAW(bundle_deployment_spec, "options", options),
    F_TEXT(bundle_deployment_spec, "deploymentID", deployment_id),
    F_RAW(bundle_deployment_spec, "dependsOn", depends_on),
    F_RAW(bundle_deployment_spec, "correctDrift", correct_drift),
    F_BOOL(bundle_deployment_spec, "ociContents", oci_contents),
    F_RAW(bundle_deployment_spec, "helmChartOptions", helm_chart_options),
    F_TEXT(bundle_deployment_spec, "valuesHash", values_hash),
    F_RAW(bundle_deployment_spec, "downstreamResourcesGeneration", downstream_resources_generation),
    F_BOOL(bundle_deployment_spec, "offSchedule", off_schedule),
    F_RAW(bundle_deployment_spec, "waitingForValues", waiting_for_values),
};
static const shape deployment_spec_shape = {
    SHAPE_OF(bundle_deployment_spec, deployment_spec_fields), KEPT_IN(bundle_deployment_spec)};

static const field deployment_display_fields[] = {
    F_TEXT(struct bundle_deployment_display, "deployed", deployed),
    F_TEXT(struct bundle_deployment_display, "monitored", monitored),
    F_TEXT(struct bundle_deployment_display, "state", state),
};
static const shape deployment_display_shape = {
    SHAPE_OF(struct bundle_deployment_display, deployment_display_fields), .open = SHAPE_VIEW};

static const field deployment_status_fields[] = {
    F_LIST(bundle_deployment_status, "conditions", conditions, &condition_shape),
    F_TEXT(bundle_deployment_status, "appliedDeploymentID", applied_deployment_id),
    F_TEXT(bundle_deployment_status, "release", release),
    F_BOOL(bundle_deployment_status, "ready", ready),
    F_BOOL(bundle_deployment_status, "nonModified", non_modified),
    F_RAW(bundle_deployment_status, "nonReadyStatus", non_ready_status),
    F_RAW(bundle_deployment_status, "modifiedStatus", modified_status),
    F_BOOL(bundle_deployment_status, "incompleteState", incomplete_state),
    F_STRUCT(bundle_deployment_status, "display", display, &deployment_display_shape),
    F_RAW(bundle_deployment_status, "syncGeneration", sync_generation),
    F_RAW(bundle_deployment_status, "resources", resources),
    F_RAW(bundle_deployment_status, "resourceCounts", resource_counts),
    F_RAW(bundle_deployment_status, "downstreamResourcesGeneration",
          downstream_resources_generation),
};
static const shape deployment_status_shape = {
    SHAPE_OF(bundle_deployment_status, deployment_status_fields),
    KEPT_IN(bundle_deployment_status)};

static const field bundle_deployment_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(bundle_deployment, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(bundle_deployment, "spec", spec, &deployment_spec_shape),
    F_STRUCT(bundle_deployment, "status", status, &deployment_status_shape),
};
const shape bundle_deployment_shape = {SHAPE_OF(bundle_deployment, bundle_deployment_fields),
                                       KEPT_IN(bundle_deployment)};

/* ---- Cluster, ClusterGroup, BundleNamespaceMapping ---- */

static const field cluster_spec_fields[] = {
    F_BOOL(struct cluster_spec, "paused", paused),
    F_RAW(struct cluster_spec, "templateValues", template_values),
    F_TEXT(struct cluster_spec, "clientID", client_id),
    F_TEXT(struct cluster_spec, "kubeConfigSecret", kube_config_secret),
    /* Settings of Fleet's agent: nothing of them matters to a rollout. */
    F_IGNORED("kubeConfigSecretNamespace"),
    F_IGNORED("redeployAgentGeneration"),
    F_IGNORED("agentNamespace"),
    F_IGNORED("agentEnvVars"),
    F_IGNORED("agentTolerations"),
    F_IGNORED("agentAffinity"),
    F_IGNORED("agentResources"),
    F_IGNORED("agentSchedulingCustomization"),
    F_IGNORED("privateRepoURL"),
    F_IGNORED("hostNetwork"),
};
static const shape cluster_spec_shape = {SHAPE_OF(struct cluster_spec, cluster_spec_fields),
                                         KEPT_IN(struct cluster_spec)};

static const field agent_fields[] = {
    F_TIME(struct cluster_agent, "lastSeen", last_seen),
    F_TEXT(struct cluster_agent, "namespace", namespace_),
};
static const shape agent_shape = {SHAPE_OF(struct cluster_agent, agent_fields), .open = SHAPE_VIEW};

static const field cluster_status_fields[] = {
    F_TEXT(struct cluster_status, "namespace", namespace_),
    F_LIST(struct cluster_status, "conditions", conditions, &condition_shape),
    F_STRUCT(struct cluster_status, "agent", agent, &agent_shape),
    F_STRUCT(struct cluster_status, "summary", summary, &summary_shape),
};
static const shape cluster_status_shape = {SHAPE_OF(struct cluster_status, cluster_status_fields),
                                           .open = SHAPE_VIEW};

static const field cluster_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(cluster, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(cluster, "spec", spec, &cluster_spec_shape),
    F_STRUCT(cluster, "status", status, &cluster_status_shape),
};
const shape cluster_shape = {SHAPE_OF(cluster, cluster_fields), KEPT_IN(cluster)};

static const field group_spec_fields[] = {
    F_SELECTOR(struct cluster_group_spec, "selector", selector),
};
static const shape group_spec_shape = {SHAPE_OF(struct cluster_group_spec, group_spec_fields),
                                       KEPT_IN(struct cluster_group_spec)};

static const field group_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(cluster_group, "metadata", metadata, &metadata_shape, REQUIRED),
    F_STRUCT(cluster_group, "spec", spec, &group_spec_shape),
    F_RAW(cluster_group, "status", status),
};
const shape cluster_group_shape = {SHAPE_OF(cluster_group, group_fields), KEPT_IN(cluster_group)};

static const field mapping_fields[] = {
    F_IGNORED("apiVersion"),
    F_IGNORED("kind"),
    F_STRUCT(bundle_namespace_mapping, "metadata", metadata, &metadata_shape, REQUIRED),
    F_SELECTOR(bundle_namespace_mapping, "bundleSelector", bundle_selector),
    F_SELECTOR(bundle_namespace_mapping, "namespaceSelector", namespace_selector),
};
const shape bundle_namespace_mapping_shape = {SHAPE_OF(bundle_namespace_mapping, mapping_fields),
                                              KEPT_IN(bundle_namespace_mapping)};
