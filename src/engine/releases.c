/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/vocabulary.h"

#include "base/mem.h"

typedef struct releases {
    engine_core *core;
} releases;

static void *releases_create(engine_core *core)
{
    releases *self = mem_zalloc(sizeof *self);
    if (self)
        self->core = core;
    return self;
}

static void releases_destroy(void *self)
{
    mem_free(self);
}

static bool releases_take(void *self, const fact *f)
{
    (void)self;
    (void)f;
    return false;
}

static void releases_step(void *self)
{
    (void)self;
}

static int64_t releases_next_ms(const void *self)
{
    (void)self;
    return REASON_NEVER;
}

static void releases_placements(const void *self, placement_visitor visit, void *context)
{
    (void)self;
    (void)visit;
    (void)context;
}

static bool releases_placement(const void *self, placement_id id, placement_view *ret)
{
    (void)self;
    (void)id;
    (void)ret;
    return false;
}

static bool releases_reasons(const void *self, placement_id id, arena *a, reasons *out)
{
    (void)self;
    (void)id;
    (void)a;
    (void)out;
    return true;
}

static void releases_groups(const void *self, group_visitor visit, void *context)
{
    (void)self;
    (void)visit;
    (void)context;
}

static void releases_save(const void *self, buf *out)
{
    (void)self;
    (void)out;
}

static bool releases_restore(void *self, str key, str json, err *error)
{
    (void)self;
    (void)key;
    (void)json;
    (void)error;
    return true;
}

static bool releases_full(void *self, err *error)
{
    (void)self;
    (void)error;
    return true;
}

static bool releases_check(const void *self, err *error)
{
    (void)self;
    (void)error;
    return true;
}

const vocabulary vocabulary_releases = {
    .name = "releases",
    .create = releases_create,
    .destroy = releases_destroy,
    .take = releases_take,
    .step = releases_step,
    .next_ms = releases_next_ms,
    .placements = releases_placements,
    .placement = releases_placement,
    .reasons = releases_reasons,
    .groups = releases_groups,
    .save = releases_save,
    .restore = releases_restore,
    .full = releases_full,
    .check = releases_check,
};
