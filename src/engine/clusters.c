/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/vocabulary.h"

#include "base/mem.h"

typedef struct clusters {
    engine_core *core;
} clusters;

static void *clusters_create(engine_core *core)
{
    clusters *self = mem_zalloc(sizeof *self);
    if (self)
        self->core = core;
    return self;
}

static void clusters_destroy(void *self)
{
    mem_free(self);
}

static bool clusters_take(void *self, const fact *f)
{
    (void)self;
    (void)f;
    return false;
}

static void clusters_step(void *self)
{
    (void)self;
}

static int64_t clusters_next_ms(const void *self)
{
    (void)self;
    return REASON_NEVER;
}

static void clusters_placements(const void *self, placement_visitor visit, void *context)
{
    (void)self;
    (void)visit;
    (void)context;
}

static bool clusters_placement(const void *self, placement_id id, placement_view *ret)
{
    (void)self;
    (void)id;
    (void)ret;
    return false;
}

static bool clusters_reasons(const void *self, placement_id id, arena *a, reasons *out)
{
    (void)self;
    (void)id;
    (void)a;
    (void)out;
    return true;
}

static void clusters_groups(const void *self, group_visitor visit, void *context)
{
    (void)self;
    (void)visit;
    (void)context;
}

static void clusters_save(const void *self, buf *out)
{
    (void)self;
    (void)out;
}

static bool clusters_restore(void *self, str key, str json, err *error)
{
    (void)self;
    (void)key;
    (void)json;
    (void)error;
    return true;
}

static bool clusters_full(void *self, err *error)
{
    (void)self;
    (void)error;
    return true;
}

static bool clusters_check(const void *self, err *error)
{
    (void)self;
    (void)error;
    return true;
}

const vocabulary vocabulary_clusters = {
    .name = "clusters",
    .create = clusters_create,
    .destroy = clusters_destroy,
    .take = clusters_take,
    .step = clusters_step,
    .next_ms = clusters_next_ms,
    .placements = clusters_placements,
    .placement = clusters_placement,
    .reasons = clusters_reasons,
    .groups = clusters_groups,
    .save = clusters_save,
    .restore = clusters_restore,
    .full = clusters_full,
    .check = clusters_check,
};
