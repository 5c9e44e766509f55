/* SPDX-License-Identifier: Apache-2.0 */
/* object_names.h - the names of what the operator makes, and the keys it writes and reads.
 *
 * Pure. Names are functions of what they name: the same in every process and after every restart,
 * so that creating twice is creating once. */
#ifndef DROVER_OPERATOR_OBJECT_NAMES_H
#define DROVER_OPERATOR_OBJECT_NAMES_H

#include "base/str.h"
#include "model/skyhook.h"

/* Keys of labels and annotations. */
#define KEY_PREFIX "skyhook.nvidia.com/"
#define KEY_NAME KEY_PREFIX "name"                       /* label: the Skyhook */
#define KEY_PACKAGE KEY_PREFIX "package"                 /* label: PKG-VER; annotation: JSON */
#define KEY_NODE KEY_PREFIX "node"                       /* label */
#define KEY_STAGE KEY_PREFIX "stage"                     /* label */
#define KEY_RESOURCE_ID KEY_PREFIX "resource-id"         /* label */
#define KEY_INTERRUPT KEY_PREFIX "interrupt"             /* label: "True" on interrupts only */
#define KEY_ATTEMPT KEY_PREFIX "attempt"                 /* annotation: ours */
#define KEY_NODE_UID KEY_PREFIX "node-uid"               /* annotation: ours */
#define KEY_NODE_META KEY_PREFIX "skyhook-node-meta"     /* label: the Skyhook */
#define KEY_NODE_NAME KEY_PREFIX "Node.name"             /* annotation */
#define KEY_NODE_FILES KEY_PREFIX "node-"                /* annotations of pods: ours */
#define KEY_PACKAGE_NAME KEY_PREFIX "Package.Name"       /* annotation */
#define KEY_PACKAGE_VERSION KEY_PREFIX "Package.Version" /* annotation */

#define JOB_NAME_BYTES 63
#define CONFIG_MAP_NAME_BYTES 253

/* Joins the parts with "-", makes every "." a "-", cuts to most bytes with a hash of the whole
 * behind it, in lower case. The hash is of the text before cutting and before the case. What no
 * name may hold (a "+" of a version) becomes "-" too. */
typedef struct name_parts {
    const str *at;
    size_t len;
} name_parts;
void safe_name(buf *out, size_t most, name_parts parts);

/* One attempt of one stage of one package on one node. */
typedef struct job_key {
    str skyhook;
    str package;
    str version;
    package_stage stage;
    str node;
    int64_t attempt; /* 0: a raw pod of an older operator */
    str owner_uid;   /* of the Skyhook */
    str node_uid;    /* another node under the same name is another node */
} job_key;

/* safeName(63, skyhook, package, version, stage, node, attempt). */
void job_name(buf *out, const job_key *key);
/* lower(SK-PKG-VER), dots kept. */
void package_config_map_name(buf *out, str of, const package *p);
/* safeName(253, SK, NODE, "metadata"). */
void node_config_map_name(buf *out, str of, str on);
/* safeName(63, "metadata", NODE): the volume in a package's pod. */
void node_volume_name(buf *out, str on);

/* The annotation of a node on which the operator put the taint of that key, without its prefix:
 * autoTaint_KEY; a key that has a domain, or is too long, as its safe_name. */
void auto_taint_name(buf *out, str taint_key);

/* A label's value: the text itself if it can be one, else its safe_name of 63 bytes. True when it
 * was changed, so that the full text belongs into an annotation of the same key. */
bool label_value_put(buf *out, str text);

/* "ownerReferences":[...]: the Skyhook, whose deletion takes everything along. */
void owner_references_put(buf *out, const skyhook *of);

#endif
