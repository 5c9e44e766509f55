/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.h - what engine.c asks of nodes.c, clusters.c and releases.c. Internal to src/engine.
 */
#ifndef DROVER_ENGINE_VOCABULARY_H
#define DROVER_ENGINE_VOCABULARY_H

#include "base/names.h"
#include "engine/engine.h"
#include "engine/verification.h"
#include "engine/window.h"

#define PLACEMENT_UNNUMBERED UINT32_MAX /* only while a saved state is read */

/* What the vocabularies share; owned by engine.c. */
typedef struct engine_core {
    engine_settings settings;
    names *names; /* interned text: targets, changes, versions, label keys and values */
    int64_t now_ms;
    decision_list *out; /* decisions of the present step */
    arena *step;        /* texts of the present step's decisions; rewound at the next one */
    placement_id next_placement;
    uint64_t looked_at; /* add one for each placement evaluated */
    bool no_memory;     /* sticky: set it and return; engine_step reports it */
} engine_core;

typedef struct vocabulary {
    const char *name;
    void *(*create)(engine_core *core);
    void (*destroy)(void *self);
    /* Move 1, without deciding (out may be NULL). True if the fact belongs to this vocabulary
     * alone. */
    bool (*take)(void *self, const fact *f);
    /* Moves 2 to 5. */
    void (*step)(void *self);
    int64_t (*next_ms)(const void *self);
    bool (*placements)(const void *self, placement_visitor visit, void *context);
    /* May be NULL. */
    bool (*policy)(const void *self, str policy, placement_visitor visit, void *context);
    bool (*placement)(const void *self, placement_id id, placement_view *ret);
    bool (*reasons)(const void *self, placement_id id, arena *a, reasons *out);
    void (*groups)(const void *self, group_visitor visit, void *context);
    /* Optional. */
    /* Whether a person holds this change, so that a resume of it ends that. */
    bool (*paused)(const void *self, str change);
    void (*rollout)(const void *self, str change, str version_, rollout_view *ret);
    void (*freezes)(const void *self, freeze_visitor visit, void *context);
    void (*slots)(const void *self, str target, slot_visitor visit, void *context);
    void (*metrics)(const void *self, release_name of, metric_visitor visit, void *context);
    bool (*windows)(const void *self, int64_t from_ms, int64_t to_ms, window_visitor *visit,
                    void *context);
    /* One line "VOCABULARY KEY JSON" a record, sorted; restore gets the lines of this vocabulary
     * one by one. */
    void (*save)(const void *self, buf *out);
    /* Optional: the same without the numbers of placements. */
    void (*save_unnumbered)(const void *self, buf *out);
    bool (*restore)(void *self, str key, str json, err *error);
    /* Before records are read every placement becomes PLACEMENT_UNNUMBERED: the numbers it had
     * before the restart count, not those of feeding the facts again. After them, who is new since
     * gets the next ones. */
    void (*unnumber)(void *self);
    void (*number)(void *self);
    /* Of the vocabulary of nodes alone. */
    bool (*node)(const void *self, str change, str target, arena *a, node_view *ret);
    bool (*config_updates)(const void *self, str change, buf *out);
    void (*held)(const void *self, str change, held_view *ret);
    bool (*keep_placement)(const void *self, str change, str target, buf *out);
    bool (*keep_change)(const void *self, str change, buf *out);
    str (*annotation)(const void *self, str target, str key);
    /* Of the vocabulary of clusters alone. */
    bool (*bundle)(const void *self, str change, bundle_view *ret);
    bool (*keep_less)(const void *self, str change, keep_detail detail, buf *out);
    bool (*bundle_partition)(const void *self, str change, size_t index, group_view *ret);
    bool (*deployment)(const void *self, str change, str target, deployment_view *ret);
    str (*deployment_options)(void *self, str change, str target, arena *a, err *error);
    bool (*in_group)(const void *self, engine_cluster of, str group);
    bool (*full)(void *self, err *error);
    bool (*check)(const void *self, err *error);
} vocabulary;

extern const vocabulary vocabulary_nodes;
extern const vocabulary vocabulary_clusters;
extern const vocabulary vocabulary_releases;

/* A number that was read from a saved state: it is not given out again. */
placement_id core_numbered(engine_core *core, int64_t id);
/* Appends a decision; NULL without memory (core->no_memory is then set). */
decision *core_decide(engine_core *core, decision_kind kind, placement_id placement);
/* A copy of text that lives as long as the step's decisions. */
str core_text(engine_core *core, str text);

#endif
