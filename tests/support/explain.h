/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - are reasons true? One question for the three vocabularies, asked of random fleets
 * that are stuck.
 *
 * The same fleet is made again from its seed as often as needed, and then:
 *     all that the reasons of a placement name is done: the placement starts; where any so many are
 *         enough, the first ones as well as the last ones;
 *     all but one reason, or but one of those it must be done to: it does not; where any so many
 *         are enough, with one fewer;
 *     what the reasons of somebody else name is done instead: it does not.
 * How a fleet is made, and what doing an act means in it, is the test's own. */
#ifndef DROVER_TESTS_SUPPORT_EXPLAIN_H
#define DROVER_TESTS_SUPPORT_EXPLAIN_H

#include "support/check.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"
#include "engine/engine.h"

#define EXPLAIN_NAME 96
#define EXPLAIN_ROUNDS 6
#define EXPLAIN_OTHERS 3 /* how many others' reasons are tried on a placement */

/* A placement by its names: they outlive the engine that was asked. */
typedef struct explain_target {
    placement_id id;
    char change[EXPLAIN_NAME], environment[EXPLAIN_NAME], target[EXPLAIN_NAME];
    char wanted[EXPLAIN_NAME]; /* the version that is asked about: an older one may come sooner */
} explain_target;

typedef struct explain_fleet {
    void *(*stuck)(uint64_t seed);
    void (*free)(void *world);
    engine *(*engine)(void *world);
    /* Whether these reasons are about a start, and nothing but acts are asked for that the test can
     * do. */
    bool (*asks)(const placement_view *view, const reasons *list);
    /* Whether each of those a reason names is needed; else only all of them together are. */
    bool (*each)(const reason *r);
    /* Does what a reason of the placement asks for. */
    void (*obey)(void *world, const explain_target *of, const reason *r);
    /* Whether the placement starts, at the present moment. */
    bool (*starts)(void *world, const explain_target *of);
    /* Whether a reason of the list can be left out: its act may do the work of another, too. */
    bool (*single)(void *world, const reasons *list, size_t index);
    /* Whether it may be asked once more, after what was done for these reasons: docs/plan.md says
     * when. NULL: never. */
    bool (*again)(void *world, size_t round, const reasons *done, const reasons *list);
    /* Whether there is one way to start only: then what others wait for does not help. NULL: yes.
     */
    bool (*one_way)(void *world);
    /* Whether the other reason's act, which is somebody else's, touches what this one of t is
     * about, besides what is so in every vocabulary. NULL: never. */
    bool (*touches)(void *world, const explain_target *t, const reason *r,
                    const explain_target *whose, const reason *other);
} explain_fleet;

typedef struct explain_counts {
    size_t asked, left_out, others;
    size_t rules[64]; /* how often each rule was a reason */
} explain_counts;

/* One stuck fleet that is looked at. */
typedef struct explain_case {
    const explain_fleet *how;
    uint64_t seed;
    explain_counts *counts;
    arena *a;
    void *world; /* as it was found */
    bool last;   /* of those of whom any will do, the last ones do it */
    bool later;  /* it is asked once more */
} explain_case;

/* ALL=1 goes on after what is wrong, to see all of it. */
#define explain_wrong(...)                                                                         \
    do {                                                                                           \
        if (getenv("ALL"))                                                                         \
            print_error(__VA_ARGS__), print_error("\n");                                           \
        else                                                                                       \
            check_msg(false, __VA_ARGS__);                                                         \
    } while (0)

/* What is not asked, for a reason that users are told (docs/plan.md). WITHOUT=name,name asks it all
 * the same: then the test fails where it is needed. */
static inline bool explain_exempt(const char *name)
{
    str without = str_of(getenv("WITHOUT") ? getenv("WITHOUT") : "");
    while (without.len > 0)
        if (str_eq(str_cut(&without, ','), str_of(name)))
            return false;
    return true;
}

static inline void explain_copy(char to[EXPLAIN_NAME], str from)
{
    snprintf(to, EXPLAIN_NAME, "%.*s", STR_ARG(from));
}

typedef struct explain_all {
    VEC(explain_target) at;
} explain_all;

static inline bool explain_collect(void *context, const placement_view *view)
{
    explain_all *all = context;
    explain_target t = {.id = view->id};
    explain_copy(t.change, view->change);
    explain_copy(t.environment, view->environment);
    explain_copy(t.target, view->target);
    explain_copy(t.wanted, view->wanted);
    if (view->state != PLACEMENT_DONE)
        assert_true(vec_push(&all->at, t));
    return true;
}

static inline void explain_print(const explain_target *t, const reasons *list, arena *a)
{
    print_error("%s on %s:\n", t->change, t->target);
    for (size_t k = 0; k < list->len; k++) {
        const reason *r = &list->at[k];
        print_error("    %.*s, %.*s: %.*s; %.*s of", STR_ARG(reason_rule_name(r->rule)),
                    STR_ARG(r->scope), STR_ARG(reason_text(a, r)),
                    STR_ARG(release_act_name(r->act)));
        if (r->any > 0)
            print_error(" any %zu of", r->any);
        for (size_t of = 0; of < r->of_count; of++)
            print_error(" %.*s", STR_ARG(r->of[of]));
        if (r->next_ms != REASON_NEVER)
            print_error(", at %lld s", (long long)(r->next_ms / 1000));
        print_error("\n");
    }
}

static inline bool explain_same(const reason *a, const reason *b)
{
    return a->rule == b->rule && a->act == b->act && str_eq(a->scope, b->scope);
}

static inline bool explain_has(const reason *r, str name)
{
    for (size_t i = 0; i < r->of_count; i++)
        if (str_eq(r->of[i], name))
            return true;
    return false;
}

static inline bool explain_share(const str *a, size_t a_count, const str *b, size_t b_count)
{
    for (size_t i = 0; i < a_count; i++)
        for (size_t k = 0; k < b_count; k++)
            if (str_eq(a[i], b[k]))
                return true;
    return false;
}

/* What is left of a reason when an act is not done that another one names, too: one and the same
 * act may release several. False: nothing is. */
static inline bool explain_without(reason *r, const reason *left_out, arena *a)
{
    if (r->act != left_out->act || r->of_count == 0)
        return true;
    if (left_out->rule == REASON_PROGRESSION)
        return false; /* whoever is completed may be what the environment lacks */
    str *kept = ARENA_ARRAY(a, r->of_count, str);
    size_t count = 0;
    for (size_t i = 0; i < r->of_count; i++)
        if (!explain_has(left_out, r->of[i]))
            kept[count++] = r->of[i];
    r->of = kept;
    r->of_count = count;
    return count > 0;
}

/* Of those of whom any so many are enough, so many. */
static inline void explain_trim(const explain_case *of, reason *r)
{
    if (!of->how->each(r) || r->any == 0 || r->of_count <= r->any)
        return;
    r->of += of->last ? r->of_count - r->any : 0;
    r->of_count = r->any;
}

/* Whether another reason cannot do without that name. */
static inline bool explain_wanted(const reasons *list, size_t but, str name)
{
    for (size_t i = 0; i < list->len; i++)
        if (i != but && list->at[i].act == list->at[but].act && list->at[i].any == 0 &&
            explain_has(&list->at[i], name))
            return true;
    return false;
}

/* What is not done of a reason: one of its names, or all; where any so many are enough, so many
 * that one is lacking, none of whom the other reasons cannot do without. False: there are not so
 * many, and what the other reasons ask for is enough for this one. */
static inline bool explain_leave(const explain_case *of, const reasons *list, size_t skip,
                                 size_t but, reason *ret)
{
    const reason *r = &list->at[skip];
    *ret = *r;
    if (but != SIZE_MAX) {
        ret->of = &r->of[but];
        ret->of_count = 1;
    }
    if (!of->how->each(r) || r->any == 0)
        return true;
    size_t most = r->of_count - r->any + 1, count = 0;
    str *names = ARENA_ARRAY(of->a, most, str);
    for (size_t i = 0; i < r->of_count && count < most; i++) {
        str name = r->of[of->last ? i : r->of_count - 1 - i];
        if (!explain_wanted(list, skip, name))
            names[count++] = name;
    }
    ret->of = names;
    ret->of_count = count;
    return count == most;
}

/* Does what a list of reasons names but for what is left out, of which only one name (but) may be
 * meant. Returns how late it has become. */
static inline int64_t explain_obey(const explain_case *of, void *world, const explain_target *t,
                                   const reasons *list, const reason *left_out)
{
    int64_t time_ms = REASON_NEVER;
    for (size_t i = 0; i < list->len; i++) {
        reason r = list->at[i];
        if (left_out && explain_same(&r, left_out) && left_out->of_count == 0)
            continue;
        /* What is left out stays so: when it is asked once more nobody else does it instead, where
         * not all of those that are named are needed. */
        if (left_out && of->later && (r.any > 0 || !of->how->each(&r)) && r.act == left_out->act &&
            explain_share(r.of, r.of_count, left_out->of, left_out->of_count))
            continue;
        if (left_out && !explain_without(&r, left_out, of->a))
            continue;
        if (r.act == RELEASE_TIME && r.next_ms > time_ms)
            time_ms = r.next_ms;
        explain_trim(of, &r);
        of->how->obey(world, t, &r);
    }
    return time_ms;
}

/* Whether what was left out is still asked for. When it is not, others' acts have made another
 * question of it (who stood ahead holds a place now, and any holder may give one back): that one is
 * left out does not hold the placement any more, and nobody says so. */
static inline bool explain_asks(const reasons *list, const reason *left_out)
{
    for (size_t i = 0; i < list->len; i++) {
        const reason *r = &list->at[i];
        if (left_out->of_count == 0
                ? explain_same(r, left_out)
                : r->act == left_out->act &&
                      explain_share(r->of, r->of_count, left_out->of, left_out->of_count))
            return true;
    }
    return false;
}

/* When what is left out comes by itself, as its own reason says or another one of the same act to
 * the same names: who is to lose its slot in time holds nobody up any more. */
static inline int64_t explain_alone(const reasons *list, const reason *left_out)
{
    int64_t alone_ms = left_out->next_ms;
    for (size_t i = 0; i < list->len; i++) {
        const reason *r = &list->at[i];
        if (r->act == left_out->act && r->next_ms != REASON_NEVER &&
            (alone_ms == REASON_NEVER || r->next_ms < alone_ms) &&
            explain_share(r->of, r->of_count, left_out->of, left_out->of_count))
            alone_ms = r->next_ms;
    }
    return alone_ms;
}

/* Does what the placement's reasons name but for one act (to one of its names, or to all), again
 * and again as long as it is asked. True if the placement started. */
static inline bool explain_follow(const explain_case *of, const explain_target *t, size_t skip,
                                  size_t but)
{
    const explain_fleet *how = of->how;
    void *world = how->stuck(of->seed);
    reason left_out = {0};
    bool started = false;
    int64_t time_ms = REASON_NEVER; /* how late it has become */
    int64_t alone_ms = REASON_NEVER;
    reasons done = {0};
    for (size_t round = 0; !started && round < EXPLAIN_ROUNDS; round++) {
        reasons list = {0};
        assert_true(engine_reasons(how->engine(world), t->id, of->a, &list));
        if (getenv("SHOW"))
            explain_print(t, &list, of->a);
        placement_view view;
        bool there = engine_placement(how->engine(world), t->id, &view);
        if (getenv("SHOW") && there)
            print_error("    (state %d, wants %.*s, has %.*s)\n", (int)view.state,
                        STR_ARG(view.wanted), STR_ARG(view.current));
        check_msg(!there || view.state == PLACEMENT_DONE || list.len > 0,
                  "ONLY=%llu: %s on %s has no reason any more", (unsigned long long)of->seed,
                  t->change, t->target);
        if (round > 0 && (!how->again || !how->again(world, round, &done, &list) ||
                          (skip != SIZE_MAX && !explain_asks(&list, &left_out))))
            break;
        done = list;
        if (round == 0 && skip < list.len && !explain_leave(of, &list, skip, but, &left_out)) {
            how->free(world);
            return true;
        }
        if (round == 0)
            alone_ms = explain_alone(&list, &left_out);
        explain_case now = *of;
        now.later = round > 0;
        int64_t now_ms = explain_obey(&now, world, t, &list, skip == SIZE_MAX ? NULL : &left_out);
        time_ms = now_ms > time_ms ? now_ms : time_ms;
        started = how->starts(world, t);
    }
    how->free(world);
    /* What is left out may come by itself while time passes for something else. */
    bool by_itself = skip != SIZE_MAX && alone_ms != REASON_NEVER && time_ms != REASON_NEVER &&
                     time_ms >= alone_ms;
    return started && !by_itself;
}

/* Whether the act brings in a version that may be newer, or takes one up again. */
static inline bool explain_brings(const reason *r)
{
    return r->act == RELEASE_PUBLISH || r->rule == REASON_APPROVAL ||
           r->rule == REASON_PROGRESSION || r->rule == REASON_VERSION_SELECTOR ||
           r->rule == REASON_SKIPPED || r->rule == REASON_ROLLED_BACK;
}

/* Whether the other reason's act may touch what this one is about. */
static inline bool explain_touches(const reason *other, const reason *r)
{
    if (other->act == RELEASE_RESET && explain_exempt("reset") &&
        (r->rule == REASON_BATCH || r->rule == REASON_BUDGET || r->rule == REASON_STOPPED))
        return true; /* begins all batches of the change anew */
    if (other->act == RELEASE_EDIT && str_eq(other->scope, r->scope) && explain_exempt("edit"))
        return true; /* the rule itself says no more */
    if (other->act == RELEASE_PUBLISH && r->act == RELEASE_RETRY &&
        explain_share(r->of, r->of_count, other->of, other->of_count) && explain_exempt("newer"))
        return true; /* a newer version takes the place of the one that failed */
    if (other->act == RELEASE_COMPLETE && r->rule == REASON_ROLLOUT && explain_exempt("turn"))
        return true; /* who is taken away has no turn any more: others may move up */
    if (other->act == RELEASE_COMPLETE && r->act == RELEASE_COMPLETE &&
        (r->rule == REASON_PROGRESSION || other->rule == REASON_PROGRESSION) &&
        explain_exempt("progression"))
        return true; /* whoever is completed may be what the environment lacks, or be of it */
    if (explain_brings(other) &&
        (r->rule == REASON_STOPPED || (r->rule == REASON_HALTED && r->limit > 0)) &&
        explain_exempt("lifts"))
        return true; /* new work lifts a stop, and a halt that failures caused: a version that is
                        published, or that the rules for versions let in */
    if (other->rule == REASON_HALTED && r->rule == REASON_HALTED &&
        str_eq(other->scope, r->scope) && explain_exempt("halt"))
        return true; /* a halt that a rule made is lifted by resuming any of those it stopped */
    if (other->act == RELEASE_TIME && r->next_ms != REASON_NEVER)
        return r->next_ms <= other->next_ms;
    if (r->act != other->act || r->act == RELEASE_TIME)
        return false;
    return r->of_count == 0 || explain_share(r->of, r->of_count, other->of, other->of_count) ||
           explain_share(r->of, r->of_count, other->holders, other->holder_count) ||
           explain_share(r->holders, r->holder_count, other->of, other->of_count) ||
           explain_share(r->holders, r->holder_count, other->holders, other->holder_count);
}

/* Whether the acts of "others" leave one of the reasons untouched. */
static inline bool explain_leaves(const explain_case *of, const explain_target *t,
                                  const reasons *list, const explain_target *whose,
                                  const reasons *others)
{
    for (size_t i = 0; i < list->len; i++) {
        bool touched = of->how->single && !of->how->single(of->world, list, i);
        /* What is quarantined only while time passes is not if none has to. */
        touched |= list->at[i].rule == REASON_QUARANTINED && list->at[i].next_ms != REASON_NEVER;
        for (size_t k = 0; k < others->len; k++)
            touched = touched || explain_touches(&others->at[k], &list->at[i]) ||
                      (of->how->touches &&
                       of->how->touches(of->world, t, &list->at[i], whose, &others->at[k]));
        if (!touched)
            return true;
    }
    return false;
}

/* Whether something is to be done to the target. */
static inline bool explain_involves(const reasons *list, const explain_target *t)
{
    str name = str_of(t->target);
    for (size_t i = 0; i < list->len; i++)
        if (explain_share(list->at[i].of, list->at[i].of_count, &name, 1) ||
            explain_share(list->at[i].holders, list->at[i].holder_count, &name, 1))
            return true;
    return false;
}

/* Whether one of them is an edit of the change itself: that may let everybody start. */
static inline bool explain_edits(const reasons *list, const explain_target *t)
{
    str change = str_of(t->change);
    for (size_t i = 0; i < list->len; i++)
        if (list->at[i].act == RELEASE_EDIT &&
            explain_share(list->at[i].of, list->at[i].of_count, &change, 1))
            return true;
    return false;
}

/* What somebody else waits for is done instead. */
static inline void explain_others(const explain_case *of, const explain_target *t,
                                  const explain_target *other)
{
    const explain_fleet *how = of->how;
    void *world = how->stuck(of->seed);
    arena *a = arena_new(0);
    reasons own = {0}, list = {0};
    placement_view view;
    assert_true(engine_placement(how->engine(world), other->id, &view));
    assert_true(engine_reasons(how->engine(world), t->id, a, &own));
    assert_true(engine_reasons(how->engine(world), other->id, a, &list));
    bool completes = false; /* something on the other's target, which others may wait for */
    for (size_t i = 0; i < list.len; i++)
        completes |= list.at[i].act == RELEASE_COMPLETE;
    bool on_its_own = (!how->one_way || how->one_way(world)) &&
                      strcmp(t->target, other->target) != 0 && how->asks(&view, &list) &&
                      explain_leaves(of, t, &own, other, &list) && !explain_involves(&list, t) &&
                      !explain_edits(&list, t) && !(completes && explain_involves(&own, other));
    if (on_its_own)
        explain_obey(of, world, other, &list, NULL);
    if (on_its_own && how->starts(world, t)) {
        explain_print(t, &own, a);
        explain_print(other, &list, a);
        explain_wrong("ONLY=%llu: %s on %s starts by what another waits for",
                      (unsigned long long)of->seed, t->change, t->target);
    }
    of->counts->others += on_its_own;
    arena_free(a);
    how->free(world);
}

static inline void explain_one(explain_case *of, const explain_target *t, const reasons *list)
{
    const explain_fleet *how = of->how;
    explain_counts *counts = of->counts;
    arena *a = of->a;
    counts->asked++;
    if (getenv("SHOW"))
        explain_print(t, list, a);
    bool choice = false;
    for (size_t k = 0; k < list->len; k++)
        choice |= list->at[k].any > 0 && how->each(&list->at[k]);
    for (of->last = false; true; of->last = true) {
        if (!explain_follow(of, t, SIZE_MAX, SIZE_MAX)) {
            explain_print(t, list, a);
            explain_wrong("ONLY=%llu: %s on %s does not start", (unsigned long long)of->seed,
                          t->change, t->target);
        }
        if (of->last || !choice)
            break;
    }
    for (size_t k = 0; k < list->len; k++) {
        const reason *r = &list->at[k];
        counts->rules[r->rule]++;
        if (how->single && !how->single(of->world, list, k))
            continue;
        size_t parts = how->each(r) && r->any == 0 ? r->of_count : 0;
        for (size_t i = 0; i < (parts > 1 ? parts : 1); i++) {
            counts->left_out++;
            if (!explain_follow(of, t, k, parts > 1 ? i : SIZE_MAX))
                continue;
            explain_print(t, list, a);
            explain_wrong("ONLY=%llu: %s on %s starts without %.*s %.*s",
                          (unsigned long long)of->seed, t->change, t->target,
                          STR_ARG(reason_rule_name(r->rule)),
                          STR_ARG(parts > 0 ? r->of[i] : STR_EMPTY));
        }
    }
}

/* ---- asking without memory ---- */

typedef struct explain_text {
    const engine *engine;
    buf *out;
    bool good;
} explain_text;

static inline bool explain_add(void *context, const placement_view *view)
{
    explain_text *text = context;
    arena *a = arena_new(0);
    reasons list = {0};
    text->good = a && engine_reasons(text->engine, view->id, a, &list);
    buf_addf(text->out, "%.*s %.*s %d\n", STR_ARG(view->change), STR_ARG(view->target),
             (int)view->state);
    for (size_t i = 0; text->good && i < list.len; i++)
        reason_json(&list.at[i], REASON_NAMES_ALL, a, text->out);
    arena_free(a);
    return text->good;
}

/* Everything that can be asked. False: not everything was answered. */
static inline bool explain_everything(const engine *e, buf *out)
{
    explain_text text = {e, out, true};
    buf_clear(out);
    return engine_placements(e, explain_add, &text) && text.good && !out->failed;
}

/* Whichever allocation fails while somebody asks, the engine is none the worse for it. */
static inline void explain_starved(engine *e, int64_t now_ms)
{
    buf before = BUF(LIMIT_TEXT_BYTES), after = BUF(LIMIT_TEXT_BYTES);
    err error;
    decision_list out = {0};
    bool hungry = true;
    assert_true(explain_everything(e, &before));
    for (uint64_t nth = 1; hungry; nth++) {
        mem_fail_at(nth);
        bool good = explain_everything(e, &after);
        hungry = mem_failed();
        mem_fail_at(0);
        check_msg(hungry || good, "an answer is refused without need");
    }
    check_msg(str_eq(buf_str(&before), buf_str(&after)), "asking changed the answers");
    check_msg(engine_full(e, &error), "%s", error.text);
    assert_true(engine_step(e, NULL, 0, now_ms, &out));
    check_msg(engine_check(e, &error), "%s", error.text);
    vec_done(&out);
    buf_done(&before);
    buf_done(&after);
}

/* WHO="app on h4" asks that one only. */
static inline bool explain_meant(const explain_target *t)
{
    const char *who = getenv("WHO");
    char name[2 * EXPLAIN_NAME + 8];
    snprintf(name, sizeof name, "%s on %s", t->change, t->target);
    return !who || strcmp(who, name) == 0;
}

/* Everybody of one fleet that is not done. */
static inline void explain_check(const explain_fleet *how, uint64_t seed, explain_counts *counts)
{
    void *world = how->stuck(seed);
    explain_case one = {how, seed, counts, arena_new(0), world, false, false};
    arena *a = one.a;
    explain_all all = {0};
    engine_placements(how->engine(world), explain_collect, &all);
    for (size_t i = 0; i < all.at.len; i++) {
        const explain_target *t = &all.at.at[i];
        reasons list = {0};
        placement_view view;
        assert_true(engine_placement(how->engine(world), t->id, &view));
        assert_true(engine_reasons(how->engine(world), t->id, a, &list));
        check_msg(list.len > 0, "ONLY=%llu: %s on %s has no reason", (unsigned long long)seed,
                  t->change, t->target);
        if (!how->asks(&view, &list) || !explain_meant(t))
            continue;
        explain_one(&one, t, &list);
        for (size_t k = 1; k <= EXPLAIN_OTHERS && k < all.at.len; k++)
            explain_others(&one, t, &all.at.at[(i + k) % all.at.len]);
    }
    vec_done(&all.at);
    arena_free(a);
    how->free(world);
}

#define EXPLAIN_SEED 20260301

/* So many fleets, the same ones every time; others with SEED=number, more or fewer with
 * FLEETS=number, or the one of ONLY=number. */
static inline void explain_fleets(const explain_fleet *how, size_t fleets, explain_counts *counts)
{
    if (getenv("FLEETS"))
        fleets = strtoull(getenv("FLEETS"), NULL, 10);
    rng r = getenv("SEED") ? rng_seeded() : (rng){EXPLAIN_SEED};
    const char *only = getenv("ONLY");
    if (only)
        explain_check(how, strtoull(only, NULL, 10), counts);
    for (size_t i = 0; !only && i < fleets; i++)
        explain_check(how, rng_next(&r), counts);
    print_message("# %zu placements asked why; %zu acts left out, %zu times others' acts\n#",
                  counts->asked, counts->left_out, counts->others);
    for (size_t i = 0; i < COUNT_OF(counts->rules); i++)
        if (counts->rules[i] > 0)
            print_message(" %.*s %zu", STR_ARG(reason_rule_name((reason_rule)i)), counts->rules[i]);
    print_message("\n");
}

#endif
