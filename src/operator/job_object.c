/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/job_object.h"

#include <assert.h>
#include <inttypes.h>

#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/package_stage.h"
#include "model/document.h"
#include "model/shape.h"

#define HOST_MOUNT "/root" /* where packages find the host's root */
#define PACKAGE_MOUNT "/skyhook-package"
#define KEY_DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"
#define PACKAGE_PART_BYTES 43 /* of a container's name */
#define NS_PER_SECOND INT64_C(1000000000)
#define GRACE_MARGIN_S 2 /* the agent ends a step so long before the kubelet ends the agent */
#define SMALL_BYTES (64u * 1024u)

const job_settings job_settings_default = {
    .namespace_ = {"skyhook", 7},
    .agent_image = {"ghcr.io/nvidia/skyhook/agent:latest", 35},
    .copy_dir_root = {"/var/lib/skyhook", 16},
    .agent_log_root = {"/var/log/skyhook", 16},
    .host_root = {"/", 1},
    .runtime_required = {.key = {"skyhook.nvidia.com", 18},
                         .value = {"runtime-required", 16},
                         .effect = TAINT_NO_SCHEDULE},
    .stage_timeout_s = 6 * 60 * 60,
    .ttl_s = 24 * 60 * 60,
};

/* A Job that is being written. */
typedef struct draft {
    buf *out;
    const job_settings *settings;
    const job_order *order;
    buf resource_id;
    buf copy_dir;
    buf volume;      /* name of the one with the node's files */
    buf labels;      /* entries that the Job and its Pod have in common */
    buf notes;       /* likewise, of the annotations */
    bool interrupts; /* an interrupt stage */
} draft;

/* ---- small parts ---- */

static bool stage_interrupts(package_stage stage)
{
    return stage == STAGE_INTERRUPT || stage == STAGE_UNINSTALL_INTERRUPT;
}

job_key job_order_key(const job_order *o)
{
    return (job_key){.skyhook = o->skyhook->metadata.name,
                     .package = o->package->name,
                     .version = o->package->version,
                     .stage = o->stage,
                     .node = o->node,
                     .attempt = o->attempt,
                     .owner_uid = o->skyhook->metadata.uid,
                     .node_uid = o->node_uid};
}

void job_resource_id(buf *out, const job_order *o)
{
    buf_addf(out, "%.*s-%.*s-%" PRId64 "_%.*s_%.*s", STR_ARG(o->skyhook->metadata.name),
             STR_ARG(o->skyhook->metadata.uid), o->generation, STR_ARG(o->package->name),
             STR_ARG(o->package->version));
}

void job_copy_dir(buf *out, const job_settings *s, const job_order *o)
{
    buf_addf(out, "%.*s/%.*s/%.*s-%.*s-%.*s-%" PRId64, STR_ARG(s->copy_dir_root),
             STR_ARG(o->skyhook->metadata.name), STR_ARG(o->package->name),
             STR_ARG(o->package->version), STR_ARG(o->skyhook->metadata.uid), o->generation);
}

void package_annotation_put(buf *out, const job_order *o)
{
    buf_addz(out, "{\"name\":");
    json_write_go_text(out, o->package->name);
    buf_addz(out, ",\"version\":");
    json_write_go_text(out, o->package->version);
    buf_addz(out, ",\"skyhook\":");
    json_write_go_text(out, o->skyhook->metadata.name);
    buf_addz(out, ",\"stage\":");
    json_write_go_text(out, stage_text(o->stage));
    buf_addz(out, ",\"image\":");
    json_write_go_text(out, o->package->image);
    if (o->package->container_sha.len > 0) {
        buf_addz(out, ",\"containerSHA\":");
        json_write_go_text(out, o->package->container_sha);
    }
    buf_addc(out, '}');
}

/* Empties a text that was written. That it failed is remembered. */
static void reuse(const draft *d, buf *text)
{
    d->out->failed |= text->failed;
    buf_clear(text);
}

/* "key":"text" with a comma in front of all but the first. */
static void put_entry(buf *out, bool *first, const char *key, str text)
{
    buf_addz(out, *first ? "" : ",");
    *first = false;
    buf_add_json(out, str_of(key));
    buf_addc(out, ':');
    buf_add_json(out, text);
}

/* ---- labels and annotations ---- */

typedef struct job_label {
    const char *key;
    str text;
} job_label;

#define JOB_LABELS 5

static void list_labels(const draft *d, buf *versioned, job_label out[JOB_LABELS])
{
    const job_order *o = d->order;
    buf_addf(versioned, "%.*s-%.*s", STR_ARG(o->package->name), STR_ARG(o->package->version));
    out[0] = (job_label){KEY_NAME, o->skyhook->metadata.name};
    out[1] = (job_label){KEY_NODE, o->node};
    out[2] = (job_label){KEY_PACKAGE, buf_str(versioned)};
    out[3] = (job_label){KEY_RESOURCE_ID, buf_str(&d->resource_id)};
    out[4] = (job_label){KEY_STAGE, stage_text(o->stage)};
}

static void write_labels(draft *d, const job_label labels[JOB_LABELS])
{
    bool first = true;
    for (size_t i = 0; i < JOB_LABELS; i++) {
        scoped(buf_done) buf value = BUF(SMALL_BYTES);
        label_value_put(&value, labels[i].text);
        d->labels.failed |= value.failed;
        put_entry(&d->labels, &first, labels[i].key, buf_str(&value));
    }
    if (d->interrupts)
        put_entry(&d->labels, &first, KEY_INTERRUPT, STR("True"));
}

/* The full text of labels that had to be cut. That of the package is in its own annotation. */
static void put_cut_labels(buf *out, const job_label labels[JOB_LABELS], bool *first)
{
    for (size_t i = 0; i < JOB_LABELS; i++)
        if (strcmp(labels[i].key, KEY_PACKAGE) != 0 && !label_value_check(labels[i].text, NULL))
            put_entry(out, first, labels[i].key, labels[i].text);
}

static void put_container_name(buf *out, const draft *d, const char *suffix)
{
    buf_add(out, str_part(d->order->package->name, 0, PACKAGE_PART_BYTES));
    buf_addc(out, '-');
    buf_add(out, stage_text(d->order->stage));
    buf_addz(out, suffix);
}

/* What the volume of the node's files takes from the pod. */
static void put_files(const draft *d, bool *first)
{
    const node_files *f = d->order->files;
    if (!f || d->interrupts)
        return;
#define X(name) put_entry(d->out, first, KEY_NODE_FILES #name ".json", f->name);
    NODE_FILES(X)
#undef X
}

static void write_notes(draft *d, const job_label labels[JOB_LABELS])
{
    scoped(buf_done) buf note = BUF(SMALL_BYTES);
    bool first = true;
    buf_addf(&note, "%" PRId64, d->order->attempt);
    put_entry(&d->notes, &first, KEY_ATTEMPT, buf_str(&note));
    if (d->order->node_uid.len > 0)
        put_entry(&d->notes, &first, KEY_NODE_UID, d->order->node_uid);
    reuse(d, &note);
    package_annotation_put(&note, d->order);
    put_entry(&d->notes, &first, KEY_PACKAGE, buf_str(&note));
    put_cut_labels(&d->notes, labels, &first);
    d->notes.failed |= note.failed;
}

static void write_marks(draft *d)
{
    scoped(buf_done) buf versioned = BUF(SMALL_BYTES);
    job_label labels[JOB_LABELS];
    list_labels(d, &versioned, labels);
    write_labels(d, labels);
    write_notes(d, labels);
    d->labels.failed |= versioned.failed;
}

static void put_default_container(const draft *d, bool *first)
{
    scoped(buf_done) buf name = BUF(SMALL_BYTES);
    if (d->interrupts)
        buf_addz(&name, "interrupt");
    else
        put_container_name(&name, d, "");
    put_entry(d->out, first, KEY_DEFAULT_CONTAINER, buf_str(&name));
    d->out->failed |= name.failed;
}

/* Labels and annotations, the same on the Job and on its Pod but for what kubectl and the kubelet
 * read. */
static void put_marks(const draft *d, bool on_pod)
{
    bool first = true;
    buf_addz(d->out, "\"labels\":{");
    buf_add(d->out, buf_str(&d->labels));
    buf_addz(d->out, "},\"annotations\":{");
    if (on_pod)
        put_default_container(d, &first);
    buf_addz(d->out, first ? "" : ",");
    buf_add(d->out, buf_str(&d->notes));
    first = false;
    if (on_pod)
        put_files(d, &first);
    buf_addc(d->out, '}');
}

/* ---- containers ---- */

static void put_variable(buf *out, const char *name, str value)
{
    buf_addf(out, "{\"name\":\"%s\",\"value\":", name);
    buf_add_json(out, value);
    buf_addc(out, '}');
}

static void put_agent_variables(const draft *d)
{
    str name = d->order->skyhook->metadata.name;
    scoped(buf_done) buf text = BUF(SMALL_BYTES);
    buf_addf(&text, "%.*s/%.*s", STR_ARG(d->settings->agent_log_root), STR_ARG(name));
    put_variable(d->out, "SKYHOOK_LOG_DIR", buf_str(&text));
    reuse(d, &text);
    buf_addf(&text, "%.*s/%.*s", STR_ARG(d->settings->copy_dir_root), STR_ARG(name));
    buf_addc(d->out, ',');
    put_variable(d->out, "SKYHOOK_ROOT_DIR", buf_str(&text));
    buf_addc(d->out, ',');
    put_variable(d->out, "COPY_RESOLV", STR("false"));
    buf_addc(d->out, ',');
    put_variable(d->out, "SKYHOOK_RESOURCE_ID", buf_str(&d->resource_id));
    reuse(d, &text);
    buf_addf(&text, "%" PRId64, d->order->node_order);
    buf_addc(d->out, ',');
    put_variable(d->out, "SKYHOOK_NODE_ORDER", buf_str(&text));
    opt_duration grace = d->order->package->graceful_shutdown;
    if (grace.set && !d->interrupts) {
        int64_t seconds = grace.ns / NS_PER_SECOND - GRACE_MARGIN_S;
        reuse(d, &text);
        buf_addf(&text, "%" PRId64, seconds > 1 ? seconds : 1);
        buf_addc(d->out, ',');
        put_variable(d->out, "SKYHOOK_AGENT_GRACE_SECONDS", buf_str(&text));
    }
    d->out->failed |= text.failed;
}

/* The package's own variables come first, as packages' authors know it. */
static void put_package_variables(const draft *d)
{
    raw_json env = d->order->package->env;
    size_t index, count;
    yyjson_val *variable;
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)env, index, count, variable)
    {
        json_write(d->out, variable);
        buf_addc(d->out, ',');
    }
}

static void put_pull_policy(const draft *d, str otherwise)
{
    str policy = d->settings->image_pull_policy;
    if (policy.len == 0)
        policy = otherwise;
    if (policy.len == 0)
        return;
    buf_addz(d->out, ",\"imagePullPolicy\":");
    buf_add_json(d->out, policy);
}

static void put_amounts(buf *out, quantity cpu, quantity memory)
{
    buf_addz(out, "{\"cpu\":");
    buf_add_json(out, cpu.text);
    buf_addz(out, ",\"memory\":");
    buf_add_json(out, memory.text);
    buf_addc(out, '}');
}

static void put_resources(const draft *d)
{
    const package_resources *r = d->order->package->resources;
    if (!r || !r->cpu_limit.text.ptr)
        return;
    buf_addz(d->out, ",\"resources\":{\"limits\":");
    put_amounts(d->out, r->cpu_limit, r->memory_limit);
    buf_addz(d->out, ",\"requests\":");
    put_amounts(d->out, r->cpu_request, r->memory_request);
    buf_addc(d->out, '}');
}

#define ROOT_MOUNT                                                                                 \
    "{\"name\":\"root-mount\",\"mountPath\":\"" HOST_MOUNT                                         \
    "\",\"mountPropagation\":\"HostToContainer\"}"
#define PRIVILEGED ",\"securityContext\":{\"privileged\":true}"

static void put_mounts(const draft *d)
{
    buf_addz(d->out, ",\"volumeMounts\":[" ROOT_MOUNT ",{\"name\":\"");
    buf_add(d->out, buf_str(&d->volume));
    buf_addz(d->out, "\",\"mountPath\":\"" PACKAGE_MOUNT "/node-metadata\"}");
    if (d->order->package->config_map.len > 0) {
        buf_addz(d->out, ",{\"name\":");
        buf_add_json(d->out, d->order->package->name);
        buf_addz(d->out, ",\"mountPath\":\"" PACKAGE_MOUNT "/configmaps\"}");
    }
    buf_addc(d->out, ']');
}

static void put_image(buf *out, const package *p)
{
    scoped(buf_done) buf image = BUF(SMALL_BYTES);
    bool digest = p->container_sha.len > 0;
    buf_addf(&image, "%.*s%s%.*s", STR_ARG(p->image), digest ? "@" : ":",
             STR_ARG(digest ? p->container_sha : p->version));
    out->failed |= image.failed;
    buf_add_json(out, buf_str(&image));
}

static str agent_image(const draft *d)
{
    str own = d->order->package->agent_image_override;
    return own.len > 0 ? own : d->settings->agent_image;
}

static void put_copy_container(const draft *d)
{
    buf_addf(d->out, "{\"name\":\"%.*s-init\",\"image\":",
             STR_ARG(str_part(d->order->package->name, 0, PACKAGE_PART_BYTES)));
    put_image(d->out, d->order->package);
    put_pull_policy(d, STR("Always"));
    buf_addz(d->out, ",\"command\":[\"/bin/sh\"],\"args\":[\"-c\","
                     "\"mkdir -p \\\"" HOST_MOUNT "/${SKYHOOK_DIR}\\\" && cp -rf " PACKAGE_MOUNT
                     "/* \\\"" HOST_MOUNT "/${SKYHOOK_DIR}\\\"\"],\"env\":[");
    put_variable(d->out, "SKYHOOK_DIR", buf_str(&d->copy_dir));
    buf_addz(d->out, "]" PRIVILEGED);
    put_resources(d);
    put_mounts(d);
    buf_addc(d->out, '}');
}

/* The stage, or with "check" the check of it. */
static void put_stage_container(const draft *d, bool check)
{
    buf_addz(d->out, "{\"name\":\"");
    put_container_name(d->out, d, check ? "check" : "");
    buf_addz(d->out, "\",\"image\":");
    buf_add_json(d->out, agent_image(d));
    put_pull_policy(d, STR("Always"));
    buf_addf(d->out, ",\"args\":[\"%.*s%s\",\"" HOST_MOUNT "\",",
             STR_ARG(stage_text(d->order->stage)), check ? "-check" : "");
    buf_add_json(d->out, buf_str(&d->copy_dir));
    buf_addz(d->out, "],\"env\":[");
    put_package_variables(d);
    put_agent_variables(d);
    buf_addz(d->out, "]" PRIVILEGED);
    put_resources(d);
    put_mounts(d);
    buf_addc(d->out, '}');
}

static bool put_interrupt_container(const draft *d, err *error)
{
    buf_addz(d->out, "{\"name\":\"interrupt\",\"image\":");
    buf_add_json(d->out, agent_image(d));
    put_pull_policy(d, STR_EMPTY);
    buf_addz(d->out, ",\"args\":[\"interrupt\",\"" HOST_MOUNT "\",");
    buf_add_json(d->out, buf_str(&d->copy_dir));
    buf_addz(d->out, ",\"");
    if (!interrupt_argument_put(d->out, d->order->interrupt, error))
        return false;
    buf_addz(d->out, "\"],\"env\":[");
    put_agent_variables(d);
    buf_addz(d->out,
             "]" PRIVILEGED ",\"resources\":{\"limits\":{\"cpu\":\"500m\",\"memory\":\"64Mi\"},"
             "\"requests\":{\"cpu\":\"500m\",\"memory\":\"64Mi\"}},"
             "\"volumeMounts\":[" ROOT_MOUNT "]}");
    return true;
}

static bool put_containers(const draft *d, err *error)
{
    if (d->interrupts) {
        buf_addz(d->out, "\"containers\":[");
        if (!put_interrupt_container(d, error))
            return false;
    } else {
        buf_addz(d->out, "\"initContainers\":[");
        put_copy_container(d);
        buf_addc(d->out, ',');
        put_stage_container(d, false);
        buf_addz(d->out, "],\"containers\":[");
        put_stage_container(d, true);
    }
    buf_addc(d->out, ']');
    return true;
}

/* ---- the agent's words for interrupts ---- */

static const char *agent_word(interrupt_type type)
{
    switch (type) {
    case INTERRUPT_NONE: return NULL;
    case INTERRUPT_SERVICE: return "service_restart";
    case INTERRUPT_REBOOT: return "node_restart";
    case INTERRUPT_NOOP: return "no_op";
    case INTERRUPT_RESTART_ALL_SERVICES: return "restart_all_services";
    }
    return NULL;
}

static interrupt_type interrupt_type_of(str word)
{
    static const char *const words[] = {
#define X(type, text) [INTERRUPT_##type] = text,
        INTERRUPT_TYPES(X)
#undef X
    };
    for (size_t i = 1; i < sizeof words / sizeof words[0]; i++)
        if (str_eq(str_of(words[i]), word))
            return (interrupt_type)i;
    return INTERRUPT_NONE;
}

static void put_services(buf *out, yyjson_val *services)
{
    size_t index, count;
    yyjson_val *service;
    yyjson_arr_foreach(services, index, count, service)
    {
        buf_addz(out, index == 0 ? ",\"services\":[" : ",");
        json_write_go_text(out, (str){yyjson_get_str(service), yyjson_get_len(service)});
    }
    buf_addz(out, yyjson_arr_size(services) > 0 ? "]" : "");
}

bool interrupt_argument_put(buf *out, str json, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    if (!a)
        return err_memory(error);
    yyjson_val *root = json_parse(a, json, error);
    if (!root)
        return err_wrap(error, "the interrupt");
    yyjson_val *type = yyjson_obj_get(root, "type");
    str named = yyjson_is_str(type) ? (str){yyjson_get_str(type), yyjson_get_len(type)} : STR("");
    const char *word = agent_word(interrupt_type_of(named));
    if (!word)
        return err_set(error, "the interrupt has the type \"%s\"", str_shown(named).text);
    buf_addf(&text, "{\"type\":\"%s\"", word);
    put_services(&text, yyjson_obj_get(root, "services"));
    buf_addc(&text, '}');
    base64_encode(buf_str(&text), out);
    return !text.failed || err_memory(error);
}

/* ---- the pod and the Job ---- */

static const char *effect_word(taint_effect effect)
{
    static const char *const words[] = {
#define X(effect, text) [TAINT_##effect] = text,
        TAINT_EFFECTS(X)
#undef X
    };
    return words[effect];
}

static void put_tolerations(const draft *d)
{
    const taint *required = &d->settings->runtime_required;
    buf_addz(d->out, "\"tolerations\":[{\"key\":\"node.kubernetes.io/unschedulable\","
                     "\"operator\":\"Exists\"},{\"key\":");
    buf_add_json(d->out, required->key);
    buf_addz(d->out, ",\"operator\":\"Equal\",\"value\":");
    buf_add_json(d->out, required->value);
    buf_addf(d->out, ",\"effect\":\"%s\"}", effect_word(required->effect));
    const toleration_list *more = &d->order->skyhook->spec.additional_tolerations;
    for (size_t i = 0; i < more->len; i++) {
        buf_addc(d->out, ',');
        shape_write(&toleration_shape, &more->at[i], d->out, 0);
    }
    buf_addc(d->out, ']');
}

/* The node's files, in a volume that looks the same to the package wherever they come from. */
static void put_node_volume(const draft *d)
{
    static const char *const files[] = {
#define X(name) #name ".json",
        NODE_FILES(X)
#undef X
    };
    const job_order *o = d->order;
    buf_addz(d->out, ",{\"name\":\"");
    buf_add(d->out, buf_str(&d->volume));
    if (!o->files) {
        buf_addz(d->out, "\",\"configMap\":{\"name\":\"");
        node_config_map_name(d->out, o->skyhook->metadata.name, o->node);
        buf_addz(d->out, "\"}}");
        return;
    }
    buf_addz(d->out, "\",\"downwardAPI\":{\"items\":[");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        buf_addf(d->out,
                 "%s{\"path\":\"%s\",\"fieldRef\":{\"fieldPath\":"
                 "\"metadata.annotations['" KEY_NODE_FILES "%s']\"}}",
                 i == 0 ? "" : ",", files[i], files[i]);
    buf_addz(d->out, "]}}");
}

static void put_volumes(const draft *d)
{
    const job_order *o = d->order;
    buf_addz(d->out, "\"volumes\":[{\"name\":\"root-mount\",\"hostPath\":{\"path\":");
    buf_add_json(d->out, d->settings->host_root);
    buf_addz(d->out, "}}");
    if (!d->interrupts)
        put_node_volume(d);
    if (!d->interrupts && o->package->config_map.len > 0) {
        buf_addz(d->out, ",{\"name\":");
        buf_add_json(d->out, o->package->name);
        buf_addz(d->out, ",\"configMap\":{\"name\":\"");
        package_config_map_name(d->out, o->skyhook->metadata.name, o->package);
        buf_addz(d->out, "\"}}");
    }
    buf_addc(d->out, ']');
}

static bool put_pod(const draft *d, err *error)
{
    buf_addz(d->out, "{\"metadata\":{");
    put_marks(d, true);
    buf_addz(d->out, "},\"spec\":{\"nodeName\":");
    buf_add_json(d->out, d->order->node);
    buf_addz(d->out, ",\"restartPolicy\":\"Never\",\"hostPID\":true,\"hostNetwork\":true,");
    opt_duration grace = d->order->package->graceful_shutdown;
    if (grace.set)
        buf_addf(d->out, "\"terminationGracePeriodSeconds\":%" PRId64 ",",
                 grace.ns / NS_PER_SECOND);
    if (d->settings->image_pull_secret.len > 0) {
        buf_addz(d->out, "\"imagePullSecrets\":[{\"name\":");
        buf_add_json(d->out, d->settings->image_pull_secret);
        buf_addz(d->out, "}],");
    }
    put_tolerations(d);
    buf_addc(d->out, ',');
    put_volumes(d);
    buf_addc(d->out, ',');
    if (!put_containers(d, error))
        return false;
    buf_addz(d->out, "}}");
    return true;
}

/* Whole seconds, rounded up: a limit is never shorter than what was asked for. */
static int64_t deadline_s(const draft *d)
{
    opt_duration own = d->order->package->stage_timeout;
    if (!own.set || own.ns <= 0)
        return d->settings->stage_timeout_s;
    return own.ns / NS_PER_SECOND + (own.ns % NS_PER_SECOND > 0);
}

static bool put_job(const draft *d, err *error)
{
    job_key key = job_order_key(d->order);
    buf_addz(d->out, "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"");
    job_name(d->out, &key);
    buf_addz(d->out, "\",\"namespace\":");
    buf_add_json(d->out, d->settings->namespace_);
    buf_addc(d->out, ',');
    put_marks(d, false);
    buf_addc(d->out, ',');
    owner_references_put(d->out, d->order->skyhook);
    buf_addf(d->out,
             "},\"spec\":{\"completions\":1,\"parallelism\":1,\"backoffLimit\":0,"
             "\"activeDeadlineSeconds\":%" PRId64 ",\"ttlSecondsAfterFinished\":%" PRId64
             ",\"podReplacementPolicy\":\"Failed\",\"template\":",
             deadline_s(d), d->settings->ttl_s);
    if (!put_pod(d, error))
        return false;
    buf_addz(d->out, "}}");
    return true;
}

bool job_object_put(buf *out, const job_settings *s, const job_order *o, err *error)
{
    draft d = {.out = out,
               .settings = s,
               .order = o,
               .resource_id = BUF(SMALL_BYTES),
               .copy_dir = BUF(SMALL_BYTES),
               .volume = BUF(SMALL_BYTES),
               .labels = BUF(SMALL_BYTES),
               .notes = BUF(JOB_BYTES_MAX),
               .interrupts = stage_interrupts(o->stage)};
    assert(o->stage != STAGE_NONE);
    job_resource_id(&d.resource_id, o);
    job_copy_dir(&d.copy_dir, s, o);
    node_volume_name(&d.volume, o->node);
    write_marks(&d);
    bool made = put_job(&d, error);
    bool failed = out->failed || d.resource_id.failed || d.copy_dir.failed || d.volume.failed ||
                  d.labels.failed || d.notes.failed;
    buf_done(&d.resource_id);
    buf_done(&d.copy_dir);
    buf_done(&d.volume);
    buf_done(&d.labels);
    buf_done(&d.notes);
    if (!made)
        return err_wrap(error, "Job of %.*s", STR_ARG(o->package->name));
    return !failed || err_memory(error);
}

/* ---- reading back ---- */

static bool text_of(yyjson_val *object, const char *key, str *ret, err *error)
{
    yyjson_val *value = yyjson_obj_get(object, key);
    if (!yyjson_is_str(value))
        return err_set(error, "annotation " KEY_PACKAGE ": found no %s", key);
    *ret = (str){yyjson_get_str(value), yyjson_get_len(value)};
    return true;
}

static bool read_package(arena *a, str annotation, job_key *key, err *error)
{
    if (!annotation.ptr)
        return err_set(error, "annotation " KEY_PACKAGE ": found nothing");
    yyjson_val *root = json_parse(a, annotation, error);
    if (!root)
        return err_wrap(error, "annotation " KEY_PACKAGE);
    str stage;
    if (!text_of(root, "name", &key->package, error) ||
        !text_of(root, "version", &key->version, error) ||
        !text_of(root, "skyhook", &key->skyhook, error) || !text_of(root, "stage", &stage, error))
        return false;
    return (stage_parse(stage, &key->stage) && key->stage != STAGE_NONE) ||
           err_set(error, "annotation " KEY_PACKAGE ": found the stage \"%s\"",
                   str_shown(stage).text);
}

bool job_key_read(arena *a, const metadata *m, job_key *ret, err *error)
{
    job_key key = {.node = STR_EMPTY, .owner_uid = STR_EMPTY, .node_uid = STR_EMPTY};
    if (!read_package(a, label_get(m->annotations, STR(KEY_PACKAGE)), &key, error))
        return false;
    str attempt = label_get(m->annotations, STR(KEY_ATTEMPT));
    if (attempt.ptr && (!num_parse(attempt, &key.attempt) || key.attempt < 1))
        return err_set(error, "annotation " KEY_ATTEMPT ": found \"%s\", allowed 1, 2, ...",
                       str_shown(attempt).text);
    str on = label_get(m->annotations, STR(KEY_NODE));
    if (!on.ptr)
        on = label_get(m->labels, STR(KEY_NODE));
    if (on.ptr)
        key.node = on;
    str uid = label_get(m->annotations, STR(KEY_NODE_UID));
    if (uid.ptr)
        key.node_uid = uid;
    for (size_t i = 0; i < m->owner_references.len; i++)
        if (str_eq(m->owner_references.at[i].kind, STR("Skyhook")))
            key.owner_uid = m->owner_references.at[i].uid;
    *ret = key;
    return true;
}

bool job_key_equal(const job_key *a, const job_key *b)
{
    return a->attempt == b->attempt && a->stage == b->stage && str_eq(a->package, b->package) &&
           str_eq(a->version, b->version) && str_eq(a->node, b->node) &&
           str_eq(a->skyhook, b->skyhook) && str_eq(a->owner_uid, b->owner_uid) &&
           str_eq(a->node_uid, b->node_uid);
}
