/* SPDX-License-Identifier: Apache-2.0 */
/* Random rollouts over all rule kinds. Every world comes from a seed that is printed when it
 * breaks:
 *
 *     SEED=12345 WORLDS=1 build/tests/unit/test-slow-property     runs that one world alone, with
 * its story */
#include "support/check.h"

#include <sys/wait.h>

#include "base/arena.h"
#include "sim/world.h"
#include "support/causes.h"

#ifdef __SANITIZE_ADDRESS__
#define WORLDS 20000u
#define RESTARTED_WORLDS 100u
#else
#define WORLDS 200000u
#define RESTARTED_WORLDS 1000u
#endif
#define WORKERS 2u
#define BROKEN_MAX 10u
/* Of every sort of world one in so many is told twice: by bits of the seed that no sort depends on.
 */
#define KINDS 9u
#define SORTS (2u * 3u * KINDS)
#define SAME_STORY_EVERY 8u

typedef struct job {
    uint64_t first, count;
} job;

/* ---- which world a seed stands for ---- */

static uint64_t first_seed(uint64_t otherwise)
{
    const char *fixed = getenv("SEED");
    return fixed ? strtoull(fixed, NULL, 10) : otherwise;
}

static uint64_t world_count(uint64_t otherwise)
{
    const char *given = getenv("WORLDS");
    return given ? strtoull(given, NULL, 10) : otherwise;
}

static world_wishes wishes_of(uint64_t seed)
{
    world_wishes w = {
        .cured = seed % 2 == 0, .faults = seed % 3 == 0, .way = true, .check = true, .full = true};
    uint64_t kind = seed / 6 % KINDS;
    if (getenv("KIND"))
        kind = strtoull(getenv("KIND"), NULL, 10);
    bool together = kind >= 6; /* all three vocabularies in one world */
    w.nodes = together || kind < 2;
    w.clusters = together || kind == 2 || kind == 3;
    w.releases = together || kind == 4 || kind == 5;
    return w;
}

static bool print_unfinished(void *context, const placement_view *v)
{
    const world *w = context;
    arena *a = arena_new(0);
    reasons why = {0};
    if (v->state != PLACEMENT_DONE && engine_reasons(sim_engine(w->sim), v->id, a, &why))
        for (size_t i = 0; i < why.len; i++) {
            buf text = BUF(64u * 1024u);
            reason_json(&why.at[i], REASON_NAMES_ALL, a, &text);
            fprintf(stderr, "%.*s on %.*s [%.*s]: %.*s\n", STR_ARG(v->change), STR_ARG(v->target),
                    STR_ARG(v->group), STR_ARG(buf_str(&text)));
            buf_done(&text);
        }
    arena_free(a);
    return true;
}

static bool broken(const world *w, uint64_t seed, const char *what)
{
    print_error("SEED=%llu: %s\n", (unsigned long long)seed, what);
    if (w && w->wishes.tell)
        fprintf(stderr, "%.*s\n%.*s\n", STR_ARG(buf_str(&w->text)), STR_ARG(sim_story(w->sim)));
    if (w && w->wishes.tell)
        engine_placements(sim_engine(w->sim), print_unfinished, (void *)(uintptr_t)w);
    return false;
}

/* ---- what must hold at the end ---- */

static bool judge_end(const world *w, uint64_t seed)
{
    sim_counts counts;
    assert_true(sim_count(w->sim, &counts));
    if (w->wishes.cured && counts.unfinished > 0) {
        char what[512];
        snprintf(what, sizeof what, "everything was cured, and %lld placements are not done (%s)",
                 (long long)counts.unfinished, sim_outcome_text(sim_ended(w->sim)));
        return broken(w, seed, what);
    }
    char what[CAUSES_TEXT];
    return causes_hold(w, what) || broken(w, seed, what);
}

/* ---- one world ---- */

static bool run_world(uint64_t seed, world_wishes wishes, uint64_t *ret_hash)
{
    err error = {0};
    wishes.tell = world_count(0) == 1 || getenv("STORY");
    world *w = world_new(seed, &wishes, &error);
    if (!w)
        return broken(NULL, seed, error.text);
    bool good = sim_run(w->sim, SIM_TO_THE_END, &error) || broken(w, seed, error.text);
    good = good && judge_end(w, seed);
    *ret_hash = sim_hash(w->sim);
    if (getenv("STORY"))
        printf("==== restarts: %d\n%.*s\n%.*s\n", wishes.restart, STR_ARG(buf_str(&w->text)),
               STR_ARG(sim_story(w->sim)));
    world_free(w);
    return good;
}

/* The second time nobody looks on: a full evaluation and a check change nothing, either. */
static bool run_seed(uint64_t seed)
{
    uint64_t hash, again;
    world_wishes wishes = wishes_of(seed);
    if (!run_world(seed, wishes, &hash))
        return false;
    if (seed / SORTS % SAME_STORY_EVERY != 0)
        return true;
    wishes.full = wishes.check = false;
    return run_world(seed, wishes, &again) &&
           (hash == again || broken(NULL, seed, "the same seed told another story"));
}

/* Goes on after a seed that breaks: the next ones say whether it stands alone. */
static bool run_job(job j)
{
    unsigned bad = 0;
    for (uint64_t i = 0; i < j.count && bad < BROKEN_MAX; i++)
        bad += !run_seed(j.first + i);
    return bad == 0;
}

/* Two processes: the machine has two cores, and one that crashes takes no other with it. */
static void in_processes(job all, bool (*work)(job j))
{
    pid_t pids[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        uint64_t from = all.count * i / WORKERS, to = all.count * (i + 1) / WORKERS;
        fflush(stdout);
        fflush(stderr);
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            bool good = work((job){all.first + from, to - from});
            fflush(stdout);
            fflush(stderr);
            _exit(good ? 0 : 1);
        }
    }
    bool good = true;
    for (unsigned i = 0; i < WORKERS; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    assert_true(good);
}

static void random_rollouts_keep_every_promise(void **state)
{
    (void)state;
    job all = {first_seed(1), world_count(WORLDS)};
    print_message("# %llu worlds from SEED=%llu\n", (unsigned long long)all.count,
                  (unsigned long long)all.first);
    in_processes(all, run_job);
}

/* ---- restarts ---- */

static bool restart_seed(uint64_t seed)
{
    uint64_t hash, again;
    world_wishes wishes = wishes_of(seed);
    wishes.full = false;
    wishes.way = false; /* an engine that is new knows what the old one was not told yet */
    if (!run_world(seed, wishes, &hash))
        return false;
    wishes.restart = true;
    return run_world(seed, wishes, &again) &&
           (hash == again || broken(NULL, seed, "with restarts the story is another"));
}

static bool run_restarted(job j)
{
    unsigned bad = 0;
    for (uint64_t i = 0; i < j.count && bad < BROKEN_MAX; i++)
        bad += !restart_seed(j.first + i);
    return bad == 0;
}

static void a_restart_at_any_step_changes_nothing(void **state)
{
    (void)state;
    const char *given = getenv("RESTARTS");
    job all = {first_seed(1000001),
               given ? strtoull(given, NULL, 10) : world_count(RESTARTED_WORLDS)};
    in_processes(all, run_restarted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_rollouts_keep_every_promise),
        cmocka_unit_test(a_restart_at_any_step_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
