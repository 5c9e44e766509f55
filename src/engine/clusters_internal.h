/* SPDX-License-Identifier: Apache-2.0 */
/* clusters_internal.h - Bundles on clusters: the inside, for clusters*.c alone.
 *
 * clusters.c takes facts in and steps; clusters_targets.c knows who is a target of what and
 * which version it should run, clusters_mappings.c in which namespaces; clusters_view.c answers
 * questions; clusters_save.c saves, restores and checks. */
#ifndef DROVER_ENGINE_CLUSTERS_INTERNAL_H
#define DROVER_ENGINE_CLUSTERS_INTERNAL_H

#include "base/strmap.h"
#include "base/text_pool.h"
#include "engine/cluster_match.h"
#include "engine/partition_rollout.h"
#include "engine/vocabulary.h"

/* How a claim ends, in the words of DECISION_RELEASE. */
#define CLAIM_ENDS(X)                                                                              \
    X(SUCCEEDED, "succeeded")                                                                      \
    X(FAILED, "failed")                                                                            \
    X(SUPERSEDED, "superseded")                                                                    \
    X(LOST, "lost")       /* the deployment was taken away */                                      \
    X(OFFLINE, "offline") /* the cluster was not seen for too long */                              \
    X(GONE, "gone")       /* it is no target any more */
typedef enum claim_end {
#define X(kind, text) CLAIM_##kind,
    CLAIM_ENDS(X)
#undef X
} claim_end;

typedef struct bundle_record bundle_record;

typedef struct placed_ref {
    placement_id id;
    bundle_record *bundle;
    member_id member;
} placed_ref;

typedef struct group_record {
    name_id namespace_, name;
    const cluster_group *document; /* NULL: gone */
} group_record;

typedef struct mapping_record {
    name_id namespace_, name;
    const bundle_namespace_mapping *document; /* NULL: gone */
} mapping_record;

typedef struct cluster_record {
    bool present;
    name_id name, namespace_;
    text_id uid;
    label *labels; /* of kept texts */
    size_t label_count;
    label *annotations; /* those that templates see; likewise */
    size_t annotation_count;
    text_id template_values; /* as JSON */
    int64_t created_ms, last_seen_ms;
    bool paused, has_namespace;
    VEC(uint32_t) groups;   /* numbers of group records */
    VEC(placed_ref) placed; /* what is or was placed here */
} cluster_record;

/* One Bundle on one cluster. */
typedef struct placed {
    placement_id id;
    uint32_t cluster;
    bool present;
    name_id label; /* the cluster's name outside, with its namespace where that is needed */
    text_id wanted;
    text_id refused; /* why its Helm values cannot be made; then it is not released */
    text_id hindered; /* what is in the way of its deployment, in the shell's words; 0: nothing */
    text_id live, applied,
        message; /* by the last report; live by our own release until it is reported */
    bool ready, failed;
    bool claimed;   /* released, and no report of it has come yet */
    text_id flight; /* the version in flight; 0: none */
    text_id given;  /* the version that was released last */
    bool offline;   /* not seen for too long: excluded until it returns */
    bool again;     /* to be released again */
    uint32_t clock; /* its place in the bundle's clock, from 1 */
} placed;

/* A claim that ended, until the next step says so. */
typedef struct ended_claim {
    placement_id id;
    name_id change, label;
    text_id version, message;
    claim_end end;
} ended_claim;

typedef struct clusters {
    engine_core *core;
    arena *scratch;               /* one fact's or one step's */
    text_pool *texts;             /* what edits and reports bring: see text_keep */
    VEC(bundle_record *) bundles; /* by name */
    strmap bundle_records;        /* name -> its record's address */
    VEC(cluster_record) clusters;
    strmap cluster_numbers; /* "namespace/name" */
    VEC(group_record) groups;
    VEC(mapping_record) mappings;
    strmap namespaces;          /* name -> the document's address */
    VEC(placed_ref) placements; /* by id, which only grows */
    VEC(ended_claim) ended;
    partition_picks picks;
} clusters;

#define WANTED_BY_CLUSTER UINT64_MAX

struct bundle_record {
    clusters *self;
    bool present;
    name_id change, namespace_;
    const bundle *document;
    arena *own; /* the strategy of an annotation, and keys of "wanted" */
    rollout_strategy strategy;
    uint64_t wish; /* hash of content and options */
    str manifest;
    strmap wanted; /* choice -> version; WANTED_BY_CLUSTER where it differs among clusters */
    partition_rollout roll;
    VEC(placed) members;
    VEC(member_id) free_members;
    strmap by_label;
    int64_t offline_ms;   /* 0: never */
    VEC(member_id) clock; /* who goes offline next: a heap */
    uint64_t moves;       /* so many members joined or left */
    bool act_paused;      /* a person paused it */
    bool resumed;         /* a person resumed what the document pauses */
};

/* ---- clusters_targets.c ---- */
bool target_facts(clusters *c, const fact_target *t);
void cluster_leaves(clusters *c, const fact_target *t);
void bundle_document(clusters *c, const bundle *doc);
void bundle_gone(clusters *c, const bundle *doc);
void group_document(clusters *c, const metadata *meta, const cluster_group *doc);
/* Makes its placements on all clusters what documents and labels say. */
void bundle_place(bundle_record *b);
bundle_record *bundle_find(const clusters *c, str change);
/* What a cluster should run. */
typedef struct wish {
    text_id version; /* 0: it is no target */
    text_id refused; /* why its Helm values cannot be made; the version is then nobody's */
} wish;
wish wanted_version(bundle_record *b, const cluster_record *r);
/* The bundle's member on a cluster; PLACED_NONE: it has none there. */
#define PLACED_NONE UINT32_MAX
member_id placed_on(const bundle_record *b, const cluster_record *r);
/* The options of the version that a cluster should run, all of them. ptr is NULL with an error. */
str wanted_options(bundle_record *b, const cluster_record *r, arena *a, err *error);
label_set record_labels(const cluster_record *r);

/* ---- clusters_mappings.c ---- */
void mapping_document(clusters *c, const metadata *meta, const bundle_namespace_mapping *doc);
void namespace_document(clusters *c, const metadata *meta, const kube_namespace *doc);
/* Whether clusters of that namespace, which is not its own, may be targets. */
bool namespace_mapped(const bundle_record *b, name_id namespace_);

/* ---- clusters.c ---- */
name_id intern(clusters *c, str text); /* for ever */
/* Until nobody has it any more: of what is ever new, such as versions, messages and labels.
 * Whoever keeps such a number marks it in sweep_texts. */
text_id text_keep(clusters *c, str text);
static inline str text_kept(const clusters *c, text_id n)
{
    return text_pool_get(c->texts, n);
}
bool bundle_paused(const bundle_record *b);
unsigned placed_flags(const bundle_record *b, const placed *at);
bool placed_done(const placed *at);
/* Tells the pacing what is known of a member now. */
void placed_refresh(bundle_record *b, member_id m);
/* Ends a claim, if there is one. */
void claim_ends(bundle_record *b, placed *at, claim_end end);
/* Ends the claim if the evidence says so. */
void placed_judge(bundle_record *b, member_id m);
/* Keeps the clock in order after a member was seen, joined or left. */
void clock_update(bundle_record *b, member_id m);
void clock_remove(bundle_record *b, member_id m);
/* When a cluster counts as offline for this bundle; REASON_NEVER. */
int64_t offline_at(const bundle_record *b, const placed *at);
/* It was seen again: what could not be finished is tried again. */
void placed_returns(bundle_record *b, member_id m);

/* ---- clusters_view.c ---- */
bool clusters_placements(const void *self, placement_visitor visit, void *context);
bool clusters_placement(const void *self, placement_id id, placement_view *ret);
bool clusters_reasons(const void *self, placement_id id, arena *a, reasons *out);
void clusters_groups(const void *self, group_visitor visit, void *context);
group_view bundle_group(const bundle_record *b, size_t index);
bool clusters_paused(const void *self, str change);
placement_state placed_state(const bundle_record *b, member_id m);
/* Bundles by name, members of one by the order of their clusters. NULL without memory. */
bundle_record **bundles_in_order(const clusters *c, arena *a, size_t *ret_count);
member_id *members_in_order(const bundle_record *b, arena *a, size_t *ret_count);

/* ---- clusters_keep.c: for shells that keep state in objects ---- */
bool clusters_keep(const void *self, str change, buf *out);
bool clusters_keep_less(const void *self, str change, keep_detail detail, buf *out);
/* After restore_bundle of what clusters_keep made: what deployments tell by themselves. */
void restore_from_reports(bundle_record *b);
bool clusters_bundle(const void *self, str change, bundle_view *ret);
bool clusters_bundle_partition(const void *self, str change, size_t index, group_view *ret);
bool clusters_deployment(const void *self, str change, str target, deployment_view *ret);
bool clusters_in_group(const void *self, engine_cluster of, str group);
str clusters_deployment_options(void *self, str change, str target, arena *a, err *error);

/* ---- clusters_save.c ---- */
void clusters_save(const void *self, buf *out);
void clusters_save_unnumbered(const void *self, buf *out);
bool clusters_restore(void *self, str key, str json, err *error);
void clusters_unnumber(void *self);
void clusters_number(void *self);
bool clusters_full(void *self, err *error);
bool clusters_check(const void *self, err *error);

#endif
