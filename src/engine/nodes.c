/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/vocabulary.h"

#include "base/mem.h"

typedef struct nodes {
    engine_core *core;
} nodes;

static void *nodes_create(engine_core *core)
{
    nodes *self = mem_zalloc(sizeof *self);
    if (self)
        self->core = core;
    return self;
}

static void nodes_destroy(void *self)
{
    mem_free(self);
}

static bool nodes_take(void *self, const fact *f)
{
    (void)self;
    (void)f;
    return false;
}

static void nodes_step(void *self)
{
    (void)self;
}

static int64_t nodes_next_ms(const void *self)
{
    (void)self;
    return REASON_NEVER;
}

static void nodes_placements(const void *self, placement_visitor visit, void *context)
{
    (void)self;
    (void)visit;
    (void)context;
}

static bool nodes_placement(const void *self, placement_id id, placement_view *ret)
{
    (void)self;
    (void)id;
    (void)ret;
    return false;
}

static bool nodes_reasons(const void *self, placement_id id, arena *a, reasons *out)
{
    (void)self;
    (void)id;
    (void)a;
    (void)out;
    return true;
}

static void nodes_groups(const void *self, group_visitor visit, void *context)
{
    (void)self;
    (void)visit;
    (void)context;
}

static void nodes_save(const void *self, buf *out)
{
    (void)self;
    (void)out;
}

static bool nodes_restore(void *self, str key, str json, err *error)
{
    (void)self;
    (void)key;
    (void)json;
    (void)error;
    return true;
}

static bool nodes_full(void *self, err *error)
{
    (void)self;
    (void)error;
    return true;
}

static bool nodes_check(const void *self, err *error)
{
    (void)self;
    (void)error;
    return true;
}

const vocabulary vocabulary_nodes = {
    .name = "nodes",
    .create = nodes_create,
    .destroy = nodes_destroy,
    .take = nodes_take,
    .step = nodes_step,
    .next_ms = nodes_next_ms,
    .placements = nodes_placements,
    .placement = nodes_placement,
    .reasons = nodes_reasons,
    .groups = nodes_groups,
    .save = nodes_save,
    .restore = nodes_restore,
    .full = nodes_full,
    .check = nodes_check,
};
