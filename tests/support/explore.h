/* SPDX-License-Identifier: Apache-2.0 */
/* explore.h - every order of events, each state once: the part of a model checker that does not
 * know what it checks.
 *
 * A state is a flat struct of the test (the world outside, zeroed before it is filled, compared
 * bytewise) and the text the engine saves. What was seen is remembered by a digest of both; to try
 * another order from a state the test rebuilds the engine from the text. States are taken up
 * deepest first, so that few wait. */
#ifndef DROVER_TESTS_SUPPORT_EXPLORE_H
#define DROVER_TESTS_SUPPORT_EXPLORE_H

#include "support/check.h"

#include <inttypes.h>
#include <xxhash.h>

#include "base/strmap.h"
#include "base/vec.h"
#include "engine/engine.h"

#define EXPLORE_PATH 1024

typedef struct explore_state {
    void *world;
    char *saved;
    size_t saved_len;
    char *path; /* the events that led there, for people */
} explore_state;

/* The events up to the one that is tried now. */
static char explore_path[EXPLORE_PATH];

/* Takes what a step decided into the world, and judges it. */
typedef void (*explore_taker)(void *world, const decision_list *out);

typedef struct explorer {
    size_t world_bytes;
    explore_taker take;
    VEC(explore_state) open;
    strmap seen; /* digests */
    arena *keys;
    uint64_t events; /* tried */
    uint64_t ends;   /* states from which nothing goes on by itself */
} explorer;

static inline explorer explore_new(size_t world_bytes, explore_taker take)
{
    return (explorer){.world_bytes = world_bytes, .take = take, .keys = arena_new(0)};
}

static inline void explore_drop(explore_state *s)
{
    free(s->world);
    free(s->saved);
    free(s->path);
}

/* Names the event that is tried next from a state. */
static inline void explore_event(const explore_state *s, const char *what, str whom)
{
    snprintf(explore_path, sizeof explore_path, "%s; %s %.*s", s->path, what,
             STR_ARG(whom));
}

static inline void explore_done(explorer *x)
{
    for (size_t i = 0; i < x->open.len; i++)
        explore_drop(&x->open.at[i]);
    vec_done(&x->open);
    strmap_done(&x->seen);
    arena_free(x->keys);
}

/* Takes a state up if it is new. */
static inline void explore_reach(explorer *x, const engine *e, const void *world)
{
    buf key = BUF(LIMIT_TEXT_BYTES);
    buf_add(&key, (str){world, x->world_bytes});
    assert_true(engine_save(e, &key));
    XXH128_hash_t digest = XXH3_128bits(key.ptr, key.len);
    str name = {(const char *)&digest, sizeof digest};
    if (!strmap_get(&x->seen, name)) {
        assert_true(strmap_put(&x->seen, arena_str(x->keys, name), 1));
        explore_state s = {malloc(x->world_bytes), malloc(key.len + 1), key.len - x->world_bytes,
                           strdup(explore_path)};
        memcpy(s.world, world, x->world_bytes);
        memcpy(s.saved, key.ptr + x->world_bytes, s.saved_len);
        assert_true(vec_push(&x->open, s));
    }
    buf_done(&key);
}

/* The next state to go on from, until explore_drop. False: everything was seen. */
static inline bool explore_next(explorer *x, explore_state *ret)
{
    if (x->open.len == 0)
        return false;
    *ret = x->open.at[--x->open.len];
    return true;
}

/* Something happens (NULL: only time passed), and the engine steps until it has nothing more to
 * say. */
static inline void explore_settle(explorer *x, engine *e, const fact *event, int64_t now_ms,
                                  void *world)
{
    err error;
    size_t count = event ? 1 : 0;
    x->events++;
    for (int round = 0;; round++) {
        check_msg(round < 100, "it never comes to rest");
        decision_list out = {0};
        check_msg(engine_step(e, event, count, now_ms, &out), "no memory");
        check_msg(engine_check(e, &error), "%s\n%s", explore_path, error.text);
        check_msg(engine_full(e, &error), "%s\n%s", explore_path, error.text);
        x->take(world, &out);
        bool quiet = out.len == 0;
        vec_done(&out);
        if (quiet)
            return;
        count = 0;
    }
}

#endif
