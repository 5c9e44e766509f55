/* SPDX-License-Identifier: Apache-2.0 */
/* job_object.h - the Job that runs one attempt of a stage, as JSON, and back.
 *
 * Pure: text out, no requests, no clock. One Job runs one attempt of one stage of one package on
 * one node, and its name says so. What runs, and when, is decided elsewhere.
 *
 *     initContainers   PKG-init     the package's image copies itself to the host
 *                      PKG-STAGE    the agent runs the stage
 *     containers       PKG-STAGEcheck
 *
 * An interrupt has the one container "interrupt". */
#ifndef DROVER_OPERATOR_JOB_OBJECT_H
#define DROVER_OPERATOR_JOB_OBJECT_H

#include "base/arena.h"
#include "base/err.h"
#include "operator/object_names.h"

#define JOB_BYTES_MAX LIMIT_DOCUMENT_BYTES

/* What the operator's settings say about everything it makes. */
typedef struct job_settings {
    str namespace_;        /* where Jobs and ConfigMaps live */
    str agent_image;       /* reference with a tag */
    str image_pull_secret; /* empty: none */
    str image_pull_policy; /* of every container; empty: Always, and none for interrupts */
    str copy_dir_root;     /* on the host */
    str agent_log_root;    /* on the host */
    str host_root;         /* what packages see as the host's root */
    taint runtime_required;
    int64_t stage_timeout_s; /* for packages that name none */
    int64_t ttl_s;           /* how long a Job stays after success */
} job_settings;

/* skyhook, the agent's latest image, /var/lib/skyhook, /var/log/skyhook, /, the taint
 * skyhook.nvidia.com=runtime-required:NoSchedule, 6 h, a day. */
extern const job_settings job_settings_default;

/* What a package may know about its node: the texts of NAME.json. */
#define NODE_FILES(X) X(annotations) X(labels) X(packages)
typedef struct node_files {
#define X(name) str name;
    NODE_FILES(X)
#undef X
} node_files;

/* A Job carries files of up to so many bytes as annotations of its pod, which Kubernetes limits to
 * 256 KiB. Larger ones are for the node's ConfigMap. */
#define JOB_FILES_BYTES_MAX (128u * 1024u)
static inline bool job_carries(const node_files *f)
{
    return f->annotations.len + f->labels.len + f->packages.len <= JOB_FILES_BYTES_MAX;
}

typedef struct job_order {
    const skyhook *skyhook; /* its name and uid are needed */
    const package *package;
    package_stage stage;
    str node;
    str node_uid;
    int64_t attempt;
    int64_t generation; /* of the Skyhook when the package's first stage began on this node */
    int64_t node_order; /* SKYHOOK_NODE_ORDER */
    str interrupt; /* for interrupt stages: {"type":"service","services":[...]} of the engine */
    const node_files *files; /* NULL: they are in the node's ConfigMap; interrupts need none */
} job_order;

/* The attempt's key. Views into the order. */
job_key job_order_key(const job_order *o);

/* Appends the Job. False with an error: the interrupt cannot be read, or no memory. */
bool job_object_put(buf *out, const job_settings *s, const job_order *o, err *error);

/* SK-<uid>-<generation>_PKG_VER: what ties the Jobs of one package's rollout together, and
 * what the agent knows an interrupt by. */
void job_resource_id(buf *out, const job_order *o);
/* COPY_DIR_ROOT/SK/PKG-VER-<uid>-<generation>: where the package lies on the host. */
void job_copy_dir(buf *out, const job_settings *s, const job_order *o);

/* {"name":..,"version":..,"skyhook":..,"stage":..,"image":..[,"containerSHA":..]}: the exact text
 * of the annotation skyhook.nvidia.com/package. */
void package_annotation_put(buf *out, const job_order *o);

/* The agent's argument for an interrupt, from the engine's JSON: base64 of
 * {"type":"service_restart","services":[..]}. */
bool interrupt_argument_put(buf *out, str json, err *error);

/* What a Job, or a Pod of one, or a raw pod of an older operator says about itself. Texts are in a
 * or are views into m. For raw pods node is empty: it is in their spec. False with an error when
 * the annotation is missing or cannot be read: it is none of ours, or somebody changed it. */
bool job_key_read(arena *a, const metadata *m, job_key *ret, err *error);
/* Whether both are the same attempt under the same owner on the same node. */
bool job_key_equal(const job_key *a, const job_key *b);

/* A merge patch that lets a failed Job stay for its logs. */
#define JOB_KEEP_PATCH "{\"spec\":{\"ttlSecondsAfterFinished\":null}}"

#endif
