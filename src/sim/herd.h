/* SPDX-License-Identifier: Apache-2.0 */
/* herd.h - the virtual targets of a simulation.
 *
 * A target is small: what many share (labels, namespaces, annotations) is kept once and copied only
 * when one of them changes. The herd knows what each target is like now and turns it into a fact;
 * it decides nothing and knows no time. */
#ifndef DROVER_SIM_HERD_H
#define DROVER_SIM_HERD_H

#include "base/strmap.h"
#include "base/vec.h"
#include "engine/fact.h"

#define HERD_NONE UINT32_MAX

/* What few targets have of their own. */
typedef struct herd_traits {
    str uid;
    label_set labels;
    const fact_taint *taints;
    size_t taint_count;
    label_set annotations;
    str namespace_;
    str deploy_namespace;
    str boot_id; /* of a real node, until it reboots in here */
    int64_t last_seen_ms;
    raw_json template_values;
    const object *document;
} herd_traits;

enum {
    HERD_GONE = 1 << 0,
    HERD_UNSCHEDULABLE = 1 << 1,
    HERD_NOT_READY = 1 << 2,
    HERD_PAUSED = 1 << 3,
    HERD_OFFLINE = 1 << 4,
    HERD_MAY_FAIL = 1 << 5,   /* a failure was arranged for it */
    HERD_OWN_TRAITS = 1 << 6, /* its traits are not shared */
    HERD_DISTURBED = 1 << 7,  /* clusters: released and not ready since */
    HERD_DRAINED = 1 << 8,    /* nodes: drained in its present claim */
    HERD_FAILED = 1 << 9,     /* something has failed there, once */
    HERD_UNTOLD = 1 << 10,    /* that it is gone was not told yet */
};

typedef struct herd_target {
    str name;
    herd_traits *traits;
    int64_t created_ms;
    uint64_t interrupted; /* nodes: interrupt packages that ran since its drain, a bit each */
    uint16_t flags;
    uint8_t kind;
    uint32_t holds; /* claims, jobs and slots it has now */
    uint32_t boots;
} herd_target;

typedef struct herd {
    arena *arena;
    VEC(herd_target) targets;
    strmap by_name[3]; /* by target_kind */
    uint64_t made_up[3];
} herd;

bool herd_init(herd *h);
void herd_done(herd *h);

/* A new target, or the one of that name again, no longer gone. HERD_NONE without memory. */
uint32_t herd_add(herd *h, target_kind kind, str name, herd_traits *traits, int64_t created_ms);
/* count made-up ones, "node-0001" and so on, numbers go on. In the order of their numbers by age.
 */
bool herd_make_up(herd *h, target_kind kind, uint64_t count, herd_traits *traits, int64_t start_ms);
/* HERD_NONE if there is none, or it is gone. */
uint32_t herd_find(const herd *h, target_kind kind, str name);
/* The same over all kinds. */
uint32_t herd_find_any(const herd *h, str name);

/* Shared traits for many targets; copies the struct, not what it points to. NULL without memory. */
herd_traits *herd_share(herd *h, const herd_traits *traits);
/* The target's own traits, copied from the shared ones first. NULL without memory. */
herd_traits *herd_own(herd *h, uint32_t target);
/* Sets a label (or an annotation); a value without pointer takes it away. */
bool herd_label(herd *h, label_set *labels, str key, str value);
bool herd_taint(herd *h, uint32_t target, fact_taint taint);
bool herd_untaint(herd *h, uint32_t target, fact_taint taint);

/* What the target is like now. Texts live as long as the herd; boot_id_text takes the boot id. */
#define HERD_BOOT_BYTES 24
void herd_fact(const herd *h, uint32_t target, char boot_id_text[HERD_BOOT_BYTES], fact *ret);

#endif
