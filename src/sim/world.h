/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - random worlds from a seed: fleets, policies, and what goes wrong with them.
 *
 * For property tests. A world is small and mean: few targets, all rule kinds, targets that fail,
 * flap, join and vanish, people who pause, edit and reset in mid-batch. A cured world comes with
 * people who in the end repair everything that was broken, so that its rollouts must complete. */
#ifndef DROVER_SIM_WORLD_H
#define DROVER_SIM_WORLD_H

#include "sim/dice.h"
#include "sim/sim.h"

typedef struct world_wishes {
    bool nodes, clusters, releases; /* which vocabularies take part */
    bool cured;
    bool faults;  /* late, duplicated, lost and reordered facts */
    bool way;     /* with faults: of targets, documents and people, too */
    bool restart; /* the engine is saved and restored before every step */
    bool check;   /* engine_check after every step */
    bool full;    /* engine_full after every step */
    bool tell;    /* keep the story */
    bool calm;    /* nothing goes wrong, nobody does anything */
} world_wishes;

typedef struct world {
    uint64_t seed;
    world_wishes wishes;
    arena *arena;
    document_set *documents;
    object_list *objects;
    problems *found;
    buf text; /* the documents, one JSON a line */
    dice dice;
    sim *sim;
    VEC(happening) happenings; /* all that will have happened, in no order */
    bool no_memory;
} world;

/* NULL with an error: also when a document that was made up is not valid. */
world *world_new(uint64_t seed, const world_wishes *wishes, err *error);
world *world_free(world *w);

/* ---- for world_*.c ---- */

#define WORLD_START_MS INT64_C(1767225600000)       /* 2026-01-01T00:00:00Z */
#define WORLD_TROUBLE_MS (INT64_C(2) * 3600 * 1000) /* trouble begins before this */
#define WORLD_CURE_MS (INT64_C(4) * 3600 * 1000)
#define WORLD_SECOND_CURE_MS (INT64_C(8) * 3600 * 1000)

void world_nodes(world *w);
void world_clusters(world *w);
void world_releases(world *w);

bool world_chance(world *w, uint32_t percent);
int64_t world_between(world *w, int64_t low, int64_t high);
/* How many there may be of something: where the vocabularies share a world each has less. */
int64_t world_most(const world *w, int64_t most);
/* Reads one document that was made up; NULL if it is not valid. */
const object *world_object(world *w, str text);
/* Reads it and puts it into the world before it starts. */
void world_add(world *w, str text);
str world_textf(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Something happens; texts must be the world's. */
void world_happens(world *w, happening h);
/* The same, and most often it is undone within the hour. */
void world_happens_for_a_while(world *w, happening h, happening_kind undone_by);
/* One label, for a happening. */
void world_label(world *w, happening *h, str key, str value);
/* A time at which trouble may begin. */
int64_t world_time(world *w);

#endif
