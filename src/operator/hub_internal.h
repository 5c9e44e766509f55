/* SPDX-License-Identifier: Apache-2.0 */
/* hub_internal.h - the inside of the cluster shell, for cluster_shell.c and hub_*.c alone.
 *
 *     hub_bundle ---places--- hub_place ---places--- hub_cluster
 *
 * A place is a Bundle on a Cluster: a target, a BundleDeployment, or both. */
#ifndef DROVER_OPERATOR_HUB_INTERNAL_H
#define DROVER_OPERATOR_HUB_INTERNAL_H

#include "base/strmap.h"
#include "base/vec.h"
#include "engine/deployment_state.h"
#include "operator/bundle_partitions.h"
#include "operator/bundle_status.h"
#include "operator/cluster_shell.h"
#include "operator/shell_read.h"

#define HUB_STATUS_EVERY_MS 1000
/* Between two of a Bundle that changes all the time; the end of its rollout is told at once. */
#define HUB_STATUS_REST_MS 2000
/* Statuses are written together, when the clock comes to a multiple of this: many writes at once
 * cost far less than as many that each wake somebody up. */
#define HUB_STATUS_GRID_MS 1000
/* What is due is written together with whatever comes next, at the latest after this time. */
#define HUB_STATUS_SLACK_MS 500
#define HUB_CLUSTER_STATUS_EVERY_MS 5000
/* Until a Cluster says that a deployment waits, or waits for something else than before: most are
 * ready by then, and what it said all the time is true again. The Bundle says so at once. */
#define HUB_CLUSTER_WAITS_MS 30000
/* A write that was refused is tried again after this time, in case somebody repaired the cause. */
#define HUB_REFUSED_MS 30000
/* Places whose deployment is compared and written in one turn: others have their turn between. */
#define HUB_WRITES_PER_TURN 512
/* A Content is deleted when nothing has referred to it for so long: somebody may just be about to
 * do so, or go back to it. */
#define HUB_CONTENT_GRACE_MS 600000
#define HUB_TEXT_BYTES (4u << 20)
/* What is kept, and quoted in statuses, of what an agent says of a deployment: its message, of one
 * resource, and all together. */
#define HUB_MESSAGE_BYTES 1024
#define HUB_QUOTE_BYTES 2048
#define HUB_ENTRY_BYTES 4096
/* And of all deployments: who has more to say then is not quoted. */
#define HUB_ENTRIES_BYTES_MAX (32u << 20)
/* A Bundle's status lists the first who are not ready, of all and of each partition: it quotes them
 * up to the first of these, and lists nobody from the second on. Statuses stay so far below the 1.5
 * MiB that etcd takes of an object, in which the Bundle itself has its place, too. */
#define HUB_QUOTED_BYTES (128u << 10)
#define HUB_LISTED_BYTES (192u << 10)
#define HUB_LISTED_ONE_BYTES 64 /* beside name and quotes */
#define HUB_PARTITIONS_TOLD_MAX 1000
/* Annotations of an object may have 256 KiB together. */
#define HUB_RECORD_BYTES_MAX (240u << 10)

#define HUB_RECORD BUNDLE_RECORD
#define HUB_RELEASED_AT "drover.dev/released-at" /* label of a deployment: its hub_release */
#define HUB_VALUES "drover.dev/values"           /* label of a deployment: HUB_UNSETTLED, or none */
#define HUB_UNSETTLED "unsettled"
/* Half a SHA-256: a label has 63 letters. */
#define HUB_ACCESS_BYTES 33
#define BUNDLE_STATE_COUNT (BUNDLE_ERR_APPLIED + 1)

typedef struct hub_bundle hub_bundle;
typedef struct hub_cluster hub_cluster;
typedef struct hub_place hub_place;

/* What an agent said of a deployment, so short that it fits in a label. It is kept in objects: how
 * it is made must not change. */
typedef struct hub_said {
    uint32_t deployed, installed; /* digests of these conditions, their times included */
    uint32_t applied;             /* of appliedDeploymentID */
} hub_said;

/* When the live version was released, and what its agent had said at the very moment: the write
 * that releases has the version of the object as its condition. Whatever it says later differs from
 * that, and so no clock needs to be right. */
typedef struct hub_release {
    int64_t at_s;
    bool known; /* what was said then; else the release is one of an older controller */
    hub_said said;
} hub_release;

/* The ID of a version that deployments name, once for all of them. */
typedef struct hub_version {
    uint32_t uses;
    uint32_t len;
    char text[];
} hub_version;

/* What an object in the API is known to be; of writes one at a time is under way. */
typedef struct hub_object {
    char *uid;
    uint64_t revision;
    uint64_t waits_for; /* it is not written until a later revision than this is seen */
    int64_t held_until_ms;
    int64_t status_until_ms; /* likewise, of its status alone */
    bool sending;
} hub_object;

/* When a status is written next. */
typedef struct hub_clock {
    bool dirty;
    int64_t due_ms;
    int64_t rests_until_ms; /* it was written not long ago; of Bundles alone */
} hub_clock;

/* The Secret by which agents read the registry that a Bundle's contents or chart are in. */
typedef struct hub_access {
    char *name; /* beside the Bundle, and beside each deployment */
    const char *type;
    char *data;                   /* JSON; NULL: it was not read yet */
    char *reference;              /* what the Bundle's status says of it; NULL: nothing */
    char state[HUB_ACCESS_BYTES]; /* of name and data, for LABEL_ACCESS */
} hub_access;

struct hub_place {
    hub_bundle *bundle;
    hub_cluster *cluster;
    hub_version *live, *applied; /* NULL: none */
    hub_version *want;           /* that is to be made live; NULL: none */
    placement_id id;             /* the engine's, which knows the deployment by it; 0: none */
    char *uid;
    char *entry;        /* JSON of what its agent complains of; NULL: nothing */
    char *finalizers;   /* as they are, JSON, if Fleet's is one of them; else NULL */
    int32_t *resources; /* RESOURCE_COUNT_KINDS numbers; NULL: all are 0 */
    uint64_t revision, waits_for;
    uint64_t gone_at; /* what was seen last of a deployment that is gone, by its revision */
    uint64_t digest;  /* of labels and spec as they are */
    uint64_t labels;  /* of labels alone */
    uint64_t sent;    /* digest of what was written last: it is not written again */
    hub_said said;
    hub_release release;  /* of the live version */
    uint64_t values;      /* hash of valuesHash; 0: there is no Secret */
    uint64_t values_sent; /* hash of what the Secret was given by us; 0: nothing so far */
    uint64_t access;      /* hash of LABEL_ACCESS; 0: it was given no Secret of a registry */
    char *access_name;    /* of the copy that was, or is to be before there is a deployment */
    uint64_t access_sent;
    int64_t generation;
    int64_t held_until_ms;
    uint64_t trouble;   /* hash of why a write of it was refused last; 0: none was since */
    uint32_t at;        /* its place in the bundle's list */
    uint32_t partition; /* as it is counted */
    uint8_t state;      /* bundle_state, as it is counted */
    bool target;        /* the engine wants something there */
    bool exists;        /* there is a BundleDeployment */
    bool counted;
    bool ready, non_modified, deployed_failed, failed;
    bool paused; /* the deployment says so */
    bool deleting;
    bool unsettled;   /* its label says that its Secret may not be as it should be */
    bool settled;     /* but now it is */
    bool access_gone; /* the copy of access_name is deleted, or left to others */
    bool queued, sending;
    bool missed; /* its turn came while a write was under way */
};

/* Deployments by their states. */
typedef struct hub_tally {
    int64_t count[BUNDLE_STATE_COUNT];
} hub_tally;

struct hub_bundle {
    hub_object object;
    char *key; /* "namespace/name": the engine's change */
    str space, name;
    uint64_t digest;               /* of all that is looked at */
    shell_document *document;      /* the last that could be read; NULL: none */
    bool present, deleting, known; /* known: to the engine */
    bool fresh;                    /* the engine does not know its record yet */
    bool relook;
    bool paused;           /* as the engine has it */
    char *record;          /* the annotation as it is; NULL: none */
    uint64_t kept;         /* fingerprint of what it says */
    bool record_stale;     /* it must be written before anything is released */
    const char *shortened; /* what the record lacks, for want of room; NULL: nothing */
    char *acts;            /* what people asked, and nobody removed yet; NULL: nothing */
    size_t acts_taken;     /* so many of them */
    bool acts_new;         /* there are others */
    bool has_finalizer;
    char *finalizers; /* as they are, JSON; NULL: none */
    char *error;      /* why it cannot be carried out; NULL: it can */
    char *unread;     /* the Bundle, JSON, until the values that it lacks are read; else NULL */
    int64_t unread_until_ms; /* they are not asked for before */
    bool reading, asked;     /* they were asked for, and there was an answer */
    hub_access *access;      /* what the document needs; NULL: nothing */
    hub_access *access_next; /* what the unread one needs, likewise */
    int64_t access_due_ms;   /* until then it needs not be read again */
    char *content;           /* name; empty: it needs none */
    char *sha256;            /* of its resources; empty: not known */
    char *repo;              /* the GitRepo it is of; empty: none */
    char *status;            /* as it is, JSON */
    char *ready_message;     /* of the condition Ready; empty: it is ready */
    int64_t generation;
    VEC(hub_place *) places;
    bool sorted;
    uint64_t cuts;
    int64_t unavailable; /* as its status says, or is about to say */
    VEC(hub_tally) parts;
    hub_tally all;
    int64_t deployments; /* that exist */
    hub_clock clock;
};

struct hub_cluster {
    hub_object object;
    char *key; /* "namespace/name" */
    str space, name;
    char *home;     /* the namespace of its deployments; NULL: none yet */
    bool named;     /* that is named after it: nobody else may have it */
    bool says_home; /* its status says one */
    char *denied;   /* the one that it says, and does not get; NULL: none */
    bool logged;    /* that it was denied one */
    char *json;     /* as it is, while it may get another namespace or lose it; else NULL */
    uint64_t digest;
    bool present, deleting;
    bool relook, queued;
    bool namespace_made;
    bool managed;     /* whoever manages it makes its namespace, and says so in its status */
    char *finalizers; /* as they are, JSON, if ours is one of them; else NULL */
    bool paused;
    bool checked_in;         /* its agent was seen at least once */
    char *status;            /* what is ours of it, as it is: JSON */
    VEC(hub_place *) places; /* by the Bundles' names */
    VEC(struct hub_group *) groups;
    hub_tally all;
    hub_tally told; /* of what its status says, or is about to say */
    int64_t deployments;
    hub_clock clock;
    int64_t patient_ms; /* until then its status can wait; 0: it does not */
};

/* A ClusterGroup or a BundleNamespaceMapping. */
typedef struct hub_group {
    hub_object object;
    char *key;
    str space, name;
    shell_document *document;
    uint64_t digest;
    char *status;
    bool untold; /* to the engine: namespaces are not known yet */
    hub_clock clock;
} hub_group;

typedef struct hub_namespace {
    char *name;
    shell_document *document;
    uint64_t digest; /* of its labels */
} hub_namespace;

typedef struct hub_repo {
    hub_object object;
    char *key;
    str space, name;
    char *status;
    char *job; /* gitJobStatus */
    hub_clock clock;
} hub_repo;

typedef enum content_state {
    CONTENT_MAKING, /* its creation is under way */
    CONTENT_HELD,   /* its creation failed, and is tried again */
    CONTENT_THERE,
    CONTENT_GOING, /* whoever needs it makes it anew when it is gone */
} content_state;

typedef struct hub_content {
    char *name;
    uint64_t revision;
    content_state state;
    bool deleting;     /* by us */
    int64_t until_ms;  /* until then it is neither created nor deleted */
    int64_t unused_ms; /* since when nothing refers to it; 0: something does */
} hub_content;

/* A deployment of a Cluster that is not known (yet), or without the labels that say which Bundle it
 * is of and no Bundle of its name that is for that Cluster. */
typedef struct hub_stray {
    char *space, *name;
    char *text;
    uint64_t revision;
    int64_t held_until_ms;
    bool seen_to; /* it is left alone, or its deletion is under way */
} hub_stray;

/* A write that is under way, by names: what it is about may be gone when the answer comes. */
typedef struct hub_ticket {
    cluster_shell *shell;
    struct hub_ticket *next, **link;
    void (*done)(cluster_shell *s, const struct hub_ticket *t, const write_outcome *how,
                 yyjson_val *object);
    char *bundle, *cluster; /* keys, or names of what has only one; NULL: none */
    uint64_t revision, number;
} hub_ticket;

/* Until when a Cluster's status waits; one that was written meanwhile does so no more. */
typedef struct hub_patience {
    hub_cluster *cluster; /* NULL: it is gone */
    int64_t until_ms;
} hub_patience;

struct cluster_shell {
    hub_settings settings;
    hub_api api;
    engine *engine;
    int64_t now_ms;
    bool synced[HUB_KIND_COUNT];
    bool restored, due, no_memory;
    bool relook_all;
    strmap bundles, clusters, groups, mappings, repos, contents; /* key -> record */
    strmap namespaces;                                           /* name -> hub_namespace * */
    strmap homes;                                                /* namespace -> hub_cluster * */
    strmap versions;                                             /* text -> hub_version * */
    VEC(hub_stray) strays;
    VEC(hub_place *) queue;  /* to be written */
    VEC(hub_cluster *) late; /* whose status is to be written, in the order of their time */
    size_t late_from;
    VEC(hub_patience) patient; /* whose status may be written later than that, likewise */
    size_t patient_from;
    VEC(hub_cluster *) changed; /* to be looked at again */
    bool contents_stale;
    int64_t contents_due_ms;
    decision_list decisions;
    size_t entry_bytes; /* of all places together */
    char *pruned; /* fields that the hub drops; NULL: none */
    hub_counts counts;
    hub_ticket *tickets;
    arena *scratch;
};

/* ---- cluster_shell.c ---- */
void hub_memory(cluster_shell *s);
char *hub_copy(cluster_shell *s, str text); /* NULL without memory */
/* Replaces an owned text. */
void hub_set(cluster_shell *s, char **at, str text);
static inline str hub_text(const char *text)
{
    return text ? str_of(text) : STR_EMPTY;
}
static inline void *hub_find(const strmap *m, str key)
{
    const uint64_t *at = strmap_get(m, key);
    return at ? (void *)(uintptr_t)*at : NULL;
}
#define HUB_EACH(map, type, variable)                                                              \
    for (size_t hub_i_##variable = 0; hub_i_##variable < (map)->len; hub_i_##variable++)           \
        for (type *variable = (type *)(uintptr_t)(map)->entries[hub_i_##variable].value; variable; \
             variable = NULL)
/* "namespace/name" in the scratch memory; the parts of a key. */
str hub_key(cluster_shell *s, str space, str name);
void hub_key_parts(const char *key, str *space, str *name);
bool hub_put(cluster_shell *s, strmap *m, const char *key, void *value);
/* A record of zeros that is put in under the key, and the copy of the key that it has to keep;
 * NULL without memory. */
void *hub_record_new(cluster_shell *s, strmap *in, str key, size_t bytes, char **ret_key);
void hub_take(cluster_shell *s, const fact *f);
/* Sends; the ticket's texts are copied and its "done" called with the answer. False: it was not
 * sent, and is not answered. */
bool hub_send(cluster_shell *s, const kube_write *w, hub_ticket ticket);
/* The collection of a kind in a namespace, in the scratch memory. */
str hub_collection(cluster_shell *s, hub_kind kind, str space);
/* Whether a write of the object may be sent now; of its status. */
bool hub_may_send(const cluster_shell *s, const hub_object *o);
bool hub_may_tell(const cluster_shell *s, const hub_object *o);
/* What the answer to a write means for the object's next one. True: it took effect. That a status
 * is refused holds up statuses alone: releases wait for the record in the same object. */
bool hub_answered(cluster_shell *s, hub_object *o, const hub_ticket *t, const write_outcome *how);
bool hub_told(cluster_shell *s, hub_object *o, const hub_ticket *t, const write_outcome *how);
/* What a status became is told by the watch; the next one, which says what differs from it, waits
 * for that. row: the answer, if there is one. */
void hub_await(hub_object *o, yyjson_val *row);
void hub_object_seen(cluster_shell *s, hub_object *o, yyjson_val *json);
/* Says that a status is to be written; of_ms: how long others may join it, or less by up to
 * HUB_STATUS_GRID_MS. */
void hub_touch(cluster_shell *s, hub_clock *clock, int64_t of_ms);
int64_t hub_due_ms(const cluster_shell *s, int64_t of_ms);
/* A hash that does not depend on the order of keys. */
uint64_t hub_digest(yyjson_val *value);
/* Of the labels without the time of release and HUB_VALUES. */
uint64_t hub_digest_labels(yyjson_val *labels);
bool hub_has_text(yyjson_val *list, str text);
/* Replaces an owned text by a value's JSON; NULL: by none. */
void hub_set_json(cluster_shell *s, char **at, yyjson_val *value);
/* Appends "finalizers":[...]: those of a JSON list, with one of them or without it. */
void hub_put_finalizers(cluster_shell *s, const char *before, str ours, bool with, buf *out);

/* ---- hub_bundles.c ---- */
void hub_bundles_seen(cluster_shell *s, yyjson_val *json);
void hub_bundles_gone(cluster_shell *s, str key);
hub_bundle *hub_bundle_of(cluster_shell *s, str key);  /* made if need be */
void hub_bundle_drop(cluster_shell *s, hub_bundle *b); /* if nothing needs it any more */
void hub_bundle_free(cluster_shell *s, hub_bundle *b);
void hub_documents_seen(cluster_shell *s, hub_kind kind, yyjson_val *json);
void hub_documents_gone(cluster_shell *s, hub_kind kind, str key);
/* Whoever is in which group, or may be reached, may have changed. */
void hub_groups_changed(cluster_shell *s);
/* Tells the engine what it remembers, once its deployments are reported. */
void hub_record_restore(cluster_shell *s, hub_bundle *b);
/* Writes the record and the finalizer if they differ. */
void hub_bundle_step(cluster_shell *s, hub_bundle *b);
/* Counts anew if the partitions were cut anew. */
void hub_bundle_counts(cluster_shell *s, hub_bundle *b);
void hub_bundle_refuse(cluster_shell *s, hub_bundle *b, const char *why); /* NULL: no more */

/* Takes the document in. */
void hub_bundle_take(cluster_shell *s, hub_bundle *b, yyjson_val *json);

/* ---- hub_namespaces.c ---- */
void hub_namespaces_seen(cluster_shell *s, yyjson_val *json);
void hub_namespaces_gone(cluster_shell *s, str name);
void hub_namespaces_forget(cluster_shell *s);
/* Tells the engine of mappings that waited for namespaces. */
void hub_mappings_tell(cluster_shell *s);

/* ---- hub_values.c ---- */
/* The document is taken in when the Secret was read that spec.valuesHash is about. */
void hub_values_want(cluster_shell *s, hub_bundle *b, yyjson_val *json);
void hub_values_forget(hub_bundle *b);
void hub_values_step(cluster_shell *s, hub_bundle *b);
/* Every Secret was answered for once. */
bool hub_values_asked(const cluster_shell *s);

/* ---- hub_access.c ---- */
/* Whether a Bundle of that spec needs one. */
bool hub_access_needed(yyjson_val *spec);
void hub_access_want(cluster_shell *s, hub_bundle *b, yyjson_val *spec);
void hub_access_free(hub_access *x);
/* Takes in what was read for the unread document. False with an error: it is of no use. */
bool hub_access_read(cluster_shell *s, hub_access *x, yyjson_val *secret, err *error);
/* The unread document is taken in: what it needs holds from now on. */
void hub_access_take(hub_bundle *b);
/* Reads it again while agents fail. */
void hub_access_step(cluster_shell *s, hub_bundle *b);
int64_t hub_access_next_ms(const hub_bundle *b); /* REASON_NEVER: not of itself */
void hub_access_seen(cluster_shell *s, hub_place *p, yyjson_val *json);
/* Brings the copy to the place that needs it, or away from where it is not needed any more. False:
 * nothing is left to send. */
bool hub_access_give(cluster_shell *s, hub_place *p);
bool hub_access_remove(cluster_shell *s, hub_place *p);
/* A copy was made for a deployment that never came to be, and nobody else needs it. */
bool hub_access_left(const hub_place *p);

/* ---- hub_acts.c ---- */
void hub_acts_seen(cluster_shell *s, hub_bundle *b, yyjson_val *annotations);
void hub_acts_take(cluster_shell *s, hub_bundle *b);

/* ---- hub_clusters.c ---- */
void hub_clusters_seen(cluster_shell *s, yyjson_val *json);
void hub_clusters_gone(cluster_shell *s, str key);
void hub_cluster_drop(cluster_shell *s, hub_cluster *c);
void hub_cluster_free(cluster_shell *s, hub_cluster *c);
/* Namespaces and finalizers. */
void hub_cluster_step(cluster_shell *s, hub_cluster *c);

/* Tells the engine again of one whose namespace has changed. */
void hub_cluster_retell(cluster_shell *s, hub_cluster *c);

/* ---- hub_homes.c ---- */
/* Takes in which namespace it says; same: it is the one that it was. */
void hub_home_take(cluster_shell *s, hub_cluster *c, yyjson_val *json, bool same);
/* All Clusters and deployments were listed: of those that say the same namespace, who had it. */
void hub_homes_settle(cluster_shell *s);
/* It goes: who comes next has its namespace. */
void hub_home_free(cluster_shell *s, hub_cluster *c);
/* Why it does not get the namespace that it says; empty: it has one, or says none. */
str hub_home_trouble(const cluster_shell *s, const hub_cluster *c, arena *a);
/* Whether a deployment in its namespace is its own: where others could have had it, by labels. */
bool hub_home_of(const hub_cluster *c, yyjson_val *labels);

/* ---- hub_places.c ---- */
void hub_deployments_seen(cluster_shell *s, yyjson_val *json);
void hub_deployments_gone(cluster_shell *s, str space, str name);
/* It is there still, but its cluster has another namespace. */
void hub_deployment_leave(cluster_shell *s, hub_place *p);
/* Tells deployments that came before their Cluster. */
void hub_strays_of(cluster_shell *s, const hub_cluster *c);
/* One without labels that is called like the Bundle of a target is the target's. */
void hub_stray_take(cluster_shell *s, const hub_place *p);
/* A Cluster is gone: those that were its own go, too. */
void hub_strays_again(cluster_shell *s);
void hub_strays_step(cluster_shell *s);
int64_t hub_strays_next_ms(const cluster_shell *s); /* REASON_NEVER: not by time */
void hub_stray_free(hub_stray *stray);
hub_place *hub_place_find(const hub_bundle *b, const hub_cluster *c);
/* Brings a Bundle on a Cluster up to date with the engine. */
void hub_look(cluster_shell *s, hub_bundle *b, hub_cluster *c);
void hub_place_look(cluster_shell *s, hub_place *p);
void hub_place_uncount(hub_place *p);
void hub_place_drop(cluster_shell *s, hub_place *p);
void hub_place_free(cluster_shell *s, hub_place *p);
void hub_queue(cluster_shell *s, hub_place *p);
str hub_label(const hub_place *p); /* what the engine calls the cluster */
/* The version that is to be made live; empty: none. */
void hub_want(cluster_shell *s, hub_place *p, str id);
/* Tells the engine what the deployment says; withdrawn: of a release that cannot be carried out. */
void hub_report(cluster_shell *s, const hub_place *p, bool withdrawn);
void hub_version_drop(cluster_shell *s, hub_version *v);

/* ---- hub_entry.c ---- */
/* Keeps what the agent says of a deployment, cut to what is quoted of it. */
void hub_entry_take(cluster_shell *s, hub_place *p, yyjson_val *status);
void hub_entry_forget(cluster_shell *s, hub_place *p);
/* The agent's own message, in the scratch memory; empty: none. */
str hub_entry_message(cluster_shell *s, const hub_place *p);
/* What a status lists of a place that is not ready. */
void hub_place_entry(cluster_shell *s, const hub_place *p, str name, non_ready_resource *ret);

/* ---- hub_release.c ---- */
yyjson_val *hub_condition(yyjson_val *status, const char *type); /* NULL: there is none */
hub_said hub_said_of(yyjson_val *status);
/* The value of HUB_RELEASED_AT. */
void hub_release_put(buf *out, const hub_release *r);
hub_release hub_release_read(str text);
/* Whether the live version has failed: Deployed or Installed is False, and that is news since its
 * release. */
bool hub_has_failed(const hub_place *p, yyjson_val *status);

/* No deployment is anything but ready. */
bool hub_all_ready(const hub_bundle *b);

/* ---- hub_deploy.c ---- */
/* The Bundle is there, but cannot be read, or not yet: what it deployed stays as it is. */
bool hub_is_kept(const hub_place *p);
/* The place that a write was about; NULL: it is gone. */
hub_place *hub_place_of(const cluster_shell *s, const hub_ticket *t);
/* A write that did not take effect is tried again later; why not is logged once and shown until
 * one does. */
void hub_hold(cluster_shell *s, hub_place *p, const write_outcome *how);
void hub_unhold(cluster_shell *s, hub_place *p);
hub_ticket hub_ticket_of(const hub_place *p,
                         void (*done)(cluster_shell *s, const hub_ticket *t,
                                      const write_outcome *how, yyjson_val *json));
/* Sends what differs from what is there, if it may be sent. True: nothing is left to send. */
bool hub_deploy(cluster_shell *s, hub_place *p);

/* The Secret of its values may not be what valuesHash says. */
bool hub_owes_values(const hub_place *p);
uint64_t hub_deployment_digest(yyjson_val *spec, yyjson_val *labels, bool unsettled);

/* ---- hub_contents.c ---- */
void hub_contents_seen(cluster_shell *s, yyjson_val *json);
void hub_contents_gone(cluster_shell *s, str name);
void hub_content_free(hub_content *c);
/* Whether the Bundle's Content is there; its creation is begun if not. */
bool hub_content_ready(cluster_shell *s, hub_bundle *b);
void hub_contents_step(cluster_shell *s);

/* ---- hub_status.c ---- */
void hub_bundle_status(cluster_shell *s, hub_bundle *b);
void hub_cluster_status(cluster_shell *s, hub_cluster *c);
void hub_cluster_touch(cluster_shell *s, hub_cluster *c);
/* The same, but it can wait. */
void hub_cluster_touch_later(cluster_shell *s, hub_cluster *c);
/* A deployment of it is ready again: what its status said all the time may be true again. */
void hub_cluster_touch_ready(cluster_shell *s, hub_cluster *c);
/* ---- hub_sums.c ---- */
void hub_groups_of(cluster_shell *s, hub_cluster *c);
void hub_group_status(cluster_shell *s, hub_group *g);
void hub_repos_seen(cluster_shell *s, yyjson_val *json);
void hub_repos_gone(cluster_shell *s, str key);
void hub_repo_status(cluster_shell *s, hub_repo *r);
/* What its GitRepo sums up has changed. */
void hub_repo_tell(cluster_shell *s, const hub_bundle *b);
void hub_repo_free(hub_repo *r);

/* Pieces of statuses. */
void hub_cluster_summary(cluster_shell *s, const hub_cluster *c, summary_maker *m,
                         int64_t resources[RESOURCE_COUNT_KINDS]);
moment hub_now(const cluster_shell *s);
void hub_tally_summary(const hub_tally *t, bundle_summary *out);
condition_list hub_conditions(arena *a, yyjson_val *status);
void hub_sort_places(hub_bundle *b);
/* Sends what differs between a status as it is and as it should be. False: it is too long to be
 * made; whoever asked for it asks again later. */
typedef struct hub_status_write {
    hub_kind kind;
    str space, name;
    hub_object *object;
    yyjson_val *before; /* NULL: none */
    str after;
    hub_ticket ticket;
} hub_status_write;
bool hub_status_send(cluster_shell *s, const hub_status_write *w);

#endif
