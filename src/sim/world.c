/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <stdarg.h>

#include "base/mem.h"

#define WORLD_TEXT_BYTES (4u * 1024u * 1024u)
#define WORLD_HORIZON_MS (INT64_C(14) * 24 * 3600 * 1000)

bool world_chance(world *w, uint32_t percent)
{
    return dice_percent(&w->dice, percent);
}

int64_t world_between(world *w, int64_t low, int64_t high)
{
    return dice_between(&w->dice, low, high);
}

int64_t world_most(const world *w, int64_t most)
{
    int64_t sharing = w->wishes.nodes + w->wishes.clusters + w->wishes.releases;
    return sharing > 1 ? (most + 1) / 2 : most;
}

void world_happens_for_a_while(world *w, happening h, happening_kind undone_by)
{
    world_happens(w, h);
    h.kind = undone_by;
    h.after_ms += world_between(w, 1, 3600) * 1000;
    if (world_chance(w, 60))
        world_happens(w, h);
}

void world_label(world *w, happening *h, str key, str value)
{
    label *one = ARENA_NEW(w->arena, label);
    if (!one) {
        w->no_memory = true;
        return;
    }
    *one = (label){key, value};
    h->labels = one;
    h->label_count = 1;
}

int64_t world_time(world *w)
{
    /* Often early, when batches are open. */
    int64_t most = world_chance(w, 60) ? WORLD_TROUBLE_MS / 8 : WORLD_TROUBLE_MS;
    return world_between(w, 0, most / 5000) * 5000;
}

str world_textf(world *w, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    str copy = arena_str(w->arena, (str){text, (size_t)len < sizeof text ? (size_t)len : 0});
    if (copy.ptr && len > 0 && (size_t)len < sizeof text)
        return copy;
    w->no_memory = true;
    return STR_EMPTY;
}

const object *world_object(world *w, str text)
{
    buf_add(&w->text, text);
    buf_addc(&w->text, '\n');
    size_t before = documents_count(w->documents);
    object *o = ARENA_NEW(w->arena, object);
    if (!o || !documents_read_as(w->documents, STR("world"), text, FORMAT_JSON, w->found) ||
        documents_count(w->documents) != before + 1)
        return NULL;
    return object_read(w->objects, documents_at(w->documents, before), w->found, o) ? o : NULL;
}

void world_add(world *w, str text)
{
    const object *o = world_object(w, text);
    err error;
    if (o && !sim_add_object(w->sim, o, &error))
        w->no_memory = true;
}

void world_happens(world *w, happening h)
{
    err error;
    if ((h.kind == HAPPEN_APPLY && !h.document) || !sim_add_happening(w->sim, &h, &error) ||
        !vec_push(&w->happenings, h))
        w->no_memory = true;
}

static sim_settings settings_of(const world *w)
{
    dice d = dice_of(w->seed ^ UINT64_C(0x5EED));
    sim_settings s = {.seed = w->seed,
                      .random = true,
                      .start_ms = WORLD_START_MS,
                      .horizon_ms = WORLD_HORIZON_MS,
                      .duration_ms = dice_between(&d, 1, 24) * 5000,
                      .jitter_percent = dice_percent(&d, 50) ? 100 : 0,
                      .tell = w->wishes.tell,
                      .hash = true,
                      .check = w->wishes.check,
                      .full = w->wishes.full,
                      .lenient = true};
    s.faults.until_ms = WORLD_TROUBLE_MS;
    if (w->wishes.restart)
        s.faults.restart_percent = 100;
    if (w->wishes.faults)
        s.faults = (sim_faults){.late_percent = 20,
                                .duplicate_percent = 20,
                                .lost_percent = 5,
                                .way = w->wishes.way,
                                .shuffle = true,
                                .restart_percent = s.faults.restart_percent,
                                .until_ms = s.faults.until_ms};
    if (!w->wishes.calm && dice_percent(&d, 40))
        s.fail_percent = (uint32_t)dice_between(&d, 1, 30);
    return s;
}

static bool fill(world *w, err *error)
{
    w->arena = arena_new(0);
    w->documents = document_set_new();
    w->objects = objects_new();
    w->found = problems_new();
    if (!w->arena || !w->documents || !w->objects || !w->found)
        return err_memory(error);
    sim_settings s = settings_of(w);
    w->sim = sim_new(&s, error);
    if (!w->sim)
        return false;
    if (w->wishes.nodes)
        world_nodes(w);
    if (w->wishes.clusters)
        world_clusters(w);
    if (w->wishes.releases)
        world_releases(w);
    if (problems_errors(w->found) > 0) {
        buf text = BUF(4096);
        problem_text(problems_at(w->found, 0), &text);
        err_set(error, "world: %.*s", STR_ARG(buf_str(&text)));
        buf_done(&text);
        return false;
    }
    return (!w->no_memory && !w->text.failed) || err_memory(error);
}

world *world_new(uint64_t seed, const world_wishes *wishes, err *error)
{
    world *w = mem_zalloc(sizeof *w);
    if (!w) {
        err_memory(error);
        return NULL;
    }
    w->seed = seed;
    w->wishes = *wishes;
    w->dice = dice_of(seed);
    w->text = BUF(WORLD_TEXT_BYTES);
    return fill(w, error) ? w : world_free(w);
}

world *world_free(world *w)
{
    if (!w)
        return NULL;
    sim_free(w->sim);
    objects_free(w->objects);
    document_set_free(w->documents);
    problems_free(w->found);
    buf_done(&w->text);
    vec_done(&w->happenings);
    arena_free(w->arena);
    return mem_free(w);
}
