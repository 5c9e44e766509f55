/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_objects.h - what makes a downstream cluster one of the fleet: the Cluster, the namespace
 * of its deployments, and the account its agent uses, as JSON.
 *
 * Pure: text out, no requests. Names and rights are those that Fleet's own agent expects. */
#ifndef DROVER_OPERATOR_CLUSTER_OBJECTS_H
#define DROVER_OPERATOR_CLUSTER_OBJECTS_H

#include "base/arena.h"
#include "base/err.h"
#include "select/labels.h"

typedef struct cluster_identity {
    str namespace_; /* where the Cluster is: the registration namespace */
    str name;
} cluster_identity;

/* Appends one object each. False without memory. */
bool cluster_namespace_put(buf *out, const cluster_identity *c, err *error);

/* The Cluster itself. Labels that only Fleet and Rancher may give are left out. */
typedef struct cluster_registration {
    cluster_identity cluster;
    str client_id; /* may be empty */
    label_set labels;
    str account; /* the agent's service account, in the namespace of the deployments */
} cluster_registration;
void cluster_put(buf *out, const cluster_registration *r);

/* Whether a label that an agent asks for may be given to its Cluster. */
bool cluster_label_granted(str key);

/* The Secret with the token of the agent's account. It lies where Secrets with Helm values are
 * called like Bundles, whose names are values of labels, too: none is as long as this. */
#define AGENT_TOKEN_NAME "drover-agent-token-whose-name-is-longer-than-any-bundle-of-this-hub-has"

/* The agent's account and its rights: it reads its deployments, Secrets and ConfigMaps and writes
 * their status, reads Contents, and patches the status of its own Cluster; nothing else. */
#define AGENT_OBJECTS(X)                                                                           \
    X(ACCOUNT, "ServiceAccount")                                                                   \
    X(TOKEN, "the Secret with the account's token")                                                \
    X(ROLE, "Role in the namespace of the deployments")                                            \
    X(BINDING, "and who has it")                                                                   \
    X(STATUS_ROLE, "Role for the Cluster's status")                                                \
    X(STATUS_BINDING, "and who has it")                                                            \
    X(CONTENT_BINDING, "ClusterRoleBinding to read Contents")
typedef enum agent_object {
#define X(name, text) AGENT_##name,
    AGENT_OBJECTS(X)
#undef X
        AGENT_OBJECT_COUNT
} agent_object;
bool agent_object_put(buf *out, agent_object which, const cluster_registration *r, err *error);
/* The ClusterRole that the last of them binds: one for all clusters. */
void content_role_put(buf *out);
#define CONTENT_ROLE_NAME "fleet-content"

#endif
