/* SPDX-License-Identifier: Apache-2.0 */
/* semantics.md part C in rows: what happens on one node, minute by minute, when versions are
 * published, jobs fail and people act; and when many nodes start under a limit and a pace.
 *
 * Each row was worked out from the text before it was run. */
#include "support/check.h"

#include "support/bracket_fleet.h"
#include "support/rows.h"

/* ---- one node ---- */

#define HOUR_WINDOW ", readinessMode: collection_window, readinessWindowSeconds: 3600"
#define ALL_IN_AN_HOUR ", readinessMode: wait_for_all, readinessWindowSeconds: 3600"
#define CURRENT_TOO ", unchangedMemberStrategy: redeploy_current"
#define MERGE ", overlapStrategy: merge"
#define EIGHT_TO_TEN_PAST                                                                          \
    "  - deploymentWindow: {rrule: 'FREQ=DAILY;BYHOUR=8', durationMinutes: 10}\n"
#define APPROVAL "  - anyApproval: {minApprovals: 1}\n"
#define HOOKS_APPROVED "0:approve/drain-1 0:approve/uncordon-1 "

typedef struct node_row {
    const char *name;
    const char *bracket, *rules;
    const char *fails; /* "kubelet*2": two times; *-1: always */
    /* "MINUTE:DEPLOYMENT=VERSION" is published, "MINUTE:ACT/WHAT" is done by a person. */
    const char *events;
    const char *jobs; /* "MINUTE DEPLOYMENT=VERSION", by minute and then by name */
} node_row;

/* drain takes 8 minutes, the others 3, uncordon 1; kubelet and containerd depend on os-patch. */
static const node_row node_rows[] = {
    /* what is locked, and when */
    {"the window counts from the first publication", HOUR_WINDOW, "", "",
     "0:kubelet=2 50:containerd=2 59:kubelet=3",
     "60 drain 68 containerd=2 68 kubelet=3 71 uncordon"},
    {"what comes after the lock opens the next window", HOUR_WINDOW, "", "",
     "0:kubelet=2 61:containerd=2",
     "60 drain 68 kubelet=2 71 uncordon 121 drain 129 containerd=2 132 uncordon"},
    {"all have a new one: the newest of each", ALL_IN_AN_HOUR, "", "",
     "0:kubelet=2 5:kubelet=3 10:containerd=2 20:os-patch=2",
     "20 drain 28 os-patch=2 31 containerd=2 31 kubelet=3 34 uncordon"},
    {"immediate, redeploy_current: one new version redeploys all", IMMEDIATE CURRENT_TOO, "", "",
     "0:os-patch=2", "0 drain 8 os-patch=2 11 containerd=1 11 kubelet=1 14 uncordon"},
    {"redeploy_current redeploys what runs by then", HOUR_WINDOW CURRENT_TOO, "", "",
     "0:kubelet=2 62:os-patch=2",
     "60 drain 68 os-patch=1 71 containerd=1 71 kubelet=2 74 uncordon "
     "122 drain 130 os-patch=2 133 containerd=1 133 kubelet=2 136 uncordon"},
    {"a version that is withdrawn in the window", HOUR_WINDOW, "", "",
     "0:kubelet=2 10:containerd=2 30:reject/kubelet-2", "70 drain 78 containerd=2 81 uncordon"},
    {"the only version is withdrawn in the window", HOUR_WINDOW, "", "",
     "0:kubelet=2 30:reject/kubelet-2", ""},
    {"a window that closes with nothing eligible stays open", HOUR_WINDOW, APPROVAL, "",
     HOOKS_APPROVED "0:kubelet=2 90:approve/kubelet-2", "90 drain 98 kubelet=2 101 uncordon"},
    {"what is not eligible at the lock is left out", HOUR_WINDOW, APPROVAL, "",
     HOOKS_APPROVED "0:kubelet=2 5:containerd=2 10:approve/containerd-2 70:approve/kubelet-2",
     "60 drain 68 containerd=2 71 uncordon 72 drain 80 kubelet=2 83 uncordon"},
    {"eligible: the window opens with the approval", HOUR_WINDOW ", windowTrigger: eligible",
     APPROVAL, "", HOOKS_APPROVED "0:kubelet=2 90:approve/kubelet-2",
     "150 drain 158 kubelet=2 161 uncordon"},
    /* groups that overlap */
    {"queue: the next waits for the end", IMMEDIATE, "", "", "0:kubelet=2 4:containerd=2",
     "0 drain 8 kubelet=2 11 uncordon 12 drain 20 containerd=2 23 uncordon"},
    {"queue: a third supersedes the second", IMMEDIATE, "", "",
     "0:kubelet=2 4:kubelet=3 5:kubelet=4",
     "0 drain 8 kubelet=2 11 uncordon 12 drain 20 kubelet=4 23 uncordon"},
    {"queue: who supersedes takes over what is new", IMMEDIATE, "", "",
     "0:kubelet=2 4:containerd=2 5:kubelet=3",
     "0 drain 8 kubelet=2 11 uncordon 12 drain 20 containerd=2 20 kubelet=3 23 uncordon"},
    {"merge: joins when the drain is done", IMMEDIATE MERGE, "", "", "0:kubelet=2 4:containerd=2",
     "0 drain 8 containerd=2 8 kubelet=2 11 uncordon"},
    {"merge: a member that has not started takes the newer version", IMMEDIATE MERGE, "", "",
     "0:os-patch=2 9:kubelet=2 10:kubelet=3", "0 drain 8 os-patch=2 11 kubelet=3 14 uncordon"},
    {"the newest version of the window is locked", HOUR_WINDOW MERGE, "", "",
     "0:kubelet=2 0:os-patch=2 12:os-patch=3", "60 drain 68 os-patch=3 71 kubelet=2 74 uncordon"},
    {"merge: a window that closes while the group executes",
     ", readinessMode: collection_window, readinessWindowSeconds: 600" MERGE, "", "",
     "0:kubelet=2 0:os-patch=2 12:os-patch=3",
     "10 drain 18 os-patch=2 21 kubelet=2 22 os-patch=3 25 uncordon"},
    /* failure */
    {"halt_and_notify: a retry by a person", IMMEDIATE, "", "kubelet*1",
     "0:kubelet=2 30:retry/kubelet", "0 drain 8 kubelet=2(failed) 30 kubelet=2 33 uncordon"},
    {"halt_and_notify: what depends on it waits for the skip", ALL_IN_AN_HOUR, "", "os-patch*-1",
     "0:kubelet=2 0:containerd=2 0:os-patch=2 30:skip/os-patch",
     "0 drain 8 os-patch=2(failed) 30 containerd=2 30 kubelet=2 33 uncordon"},
    {"individual: the group goes on when it is back",
     ALL_IN_AN_HOUR ", rollbackStrategy: individual", "", "os-patch*-1",
     "0:kubelet=2 0:containerd=2 0:os-patch=2",
     "0 drain 8 os-patch=2(failed) 11 os-patch=1! 14 containerd=2 14 kubelet=2 17 uncordon"},
    {"all_members: only what ran goes back", ALL_IN_AN_HOUR ", rollbackStrategy: all_members", "",
     "os-patch*-1", "0:kubelet=2 0:containerd=2 0:os-patch=2",
     "0 drain 8 os-patch=2(failed) 11 os-patch=1! 14 uncordon "
     "60 drain 68 containerd=2 68 kubelet=2 71 uncordon"},
    {"all_members: one member", IMMEDIATE ", rollbackStrategy: all_members", "", "kubelet*-1",
     "0:kubelet=2", "0 drain 8 kubelet=2(failed) 11 kubelet=1! 14 uncordon"},
    {"individual: hooks are never rolled back", IMMEDIATE ", rollbackStrategy: individual", "",
     "drain*-1", "0:kubelet=2", "0 drain(failed)"},
    {"a drain that failed is retried", IMMEDIATE ", rollbackStrategy: all_members", "", "drain*1",
     "0:kubelet=2 30:retry/drain", "0 drain(failed) 30 drain 38 kubelet=2 41 uncordon"},
    {"an uncordon that failed is retried", IMMEDIATE, "", "uncordon*1",
     "0:kubelet=2 30:retry/uncordon", "0 drain 8 kubelet=2 11 uncordon(failed) 30 uncordon"},
    {"retry: in the same group, with its back-off", IMMEDIATE,
     "  - retry: {maxRetries: 2, backoffSeconds: 60}\n", "kubelet*2", "0:kubelet=2",
     "0 drain 8 kubelet=2(failed) 12 kubelet=2(failed) 16 kubelet=2 19 uncordon"},
    {"retry, then rollback", IMMEDIATE ", rollbackStrategy: individual",
     "  - retry: {maxRetries: 1}\n", "kubelet*-1", "0:kubelet=2",
     "0 drain 8 kubelet=2(failed) 11 kubelet=2(failed) 14 kubelet=1! 17 uncordon"},
    {"a fix supersedes a group that failed, under every strategy",
     IMMEDIATE ", rollbackStrategy: individual" MERGE, "", "drain*1", "0:kubelet=2 30:kubelet=3",
     "0 drain(failed) 30 drain 38 kubelet=3 41 uncordon"},
    {"a fix supersedes a group whose drain failed", IMMEDIATE, "", "drain*1",
     "0:kubelet=2 30:kubelet=3", "0 drain(failed) 30 drain 38 kubelet=3 41 uncordon"},
    {"a fix of the uncordon brings a group to its end", IMMEDIATE, "", "uncordon*1",
     "0:kubelet=2 30:uncordon=2", "0 drain 8 kubelet=2 11 uncordon(failed) 30 uncordon"},
    {"a fix of the drain lets a group go on", IMMEDIATE, "", "drain*1", "0:kubelet=2 30:drain=2",
     "0 drain(failed) 30 drain 38 kubelet=2 41 uncordon"},
    {"a fix supersedes a group whose uncordon failed", IMMEDIATE, "", "uncordon*1",
     "0:kubelet=2 30:kubelet=3",
     "0 drain 8 kubelet=2 11 uncordon(failed) 30 drain 38 kubelet=3 41 uncordon"},
    {"a hook that was skipped runs in the next group", IMMEDIATE, "", "uncordon*1",
     "0:kubelet=2 30:skip/uncordon 40:containerd=2",
     "0 drain 8 kubelet=2 11 uncordon(failed) 40 drain 48 containerd=2 51 uncordon"},
    {"a drain that was skipped runs in the next group", IMMEDIATE, "", "drain*1",
     "0:kubelet=2 30:skip/drain 40:containerd=2",
     "0 drain(failed) 30 kubelet=2 33 uncordon 40 drain 48 containerd=2 51 uncordon"},
    {"what was rolled back is wanted again when a person retries",
     IMMEDIATE ", rollbackStrategy: individual", "", "kubelet*1", "0:kubelet=2 30:retry/kubelet",
     "0 drain 8 kubelet=2(failed) 11 kubelet=1! 14 uncordon 30 drain 38 kubelet=2 41 uncordon"},
    /* gates of the first job */
    {"a window gates the first job only", IMMEDIATE, EIGHT_TO_TEN_PAST, "", "5:kubelet=2",
     "5 drain 13 kubelet=2 16 uncordon"},
    {"a window is half-open", IMMEDIATE, EIGHT_TO_TEN_PAST, "", "10:kubelet=2",
     "1440 drain 1448 kubelet=2 1451 uncordon"},
    {"a window gates the next group", IMMEDIATE, EIGHT_TO_TEN_PAST, "",
     "5:kubelet=2 6:containerd=2",
     "5 drain 13 kubelet=2 16 uncordon 1440 drain 1448 containerd=2 1451 uncordon"},
    {"a window does not gate what joins", IMMEDIATE MERGE, EIGHT_TO_TEN_PAST, "",
     "5:kubelet=2 6:containerd=2", "5 drain 13 containerd=2 13 kubelet=2 16 uncordon"},
    {"a window does not gate a retry of what began", IMMEDIATE, EIGHT_TO_TEN_PAST, "kubelet*1",
     "5:kubelet=2 60:retry/kubelet", "5 drain 13 kubelet=2(failed) 60 kubelet=2 63 uncordon"},
    {"a freeze gates the next group", IMMEDIATE, "", "",
     "0:kubelet=2 1:freeze/ice 2:containerd=2 40:thaw/ice",
     "0 drain 8 kubelet=2 11 uncordon 40 drain 48 containerd=2 51 uncordon"},
    {"a cooldown gates the next group", IMMEDIATE, "  - versionCooldown: {intervalSeconds: 1800}\n",
     "", "0:kubelet=2 5:kubelet=3",
     "0 drain 8 kubelet=2 11 uncordon 30 drain 38 kubelet=3 41 uncordon"},
};

static void reject(world *w, const char *named)
{
    const char *tag = strrchr(named, '-');
    world_apply(w,
                "apiVersion: drover.dev/v1alpha1\nkind: Version\n"
                "metadata: {name: %s, creationTimestamp: '%s'}\n"
                "spec: {deployment: %.*s, tag: '%s', status: rejected}\n",
                named, time_at(at_time("2026-03-01T08:00:00Z")), (int)(tag - named), named,
                tag + 1);
}

static void act(world *w, const char *what, const char *on)
{
    fact_act a = {.act = ACT_RETRY, .change = str_of(on), .target = STR("node-0")};
    if (strcmp(what, "reject") == 0) {
        reject(w, on);
        return;
    }
    if (strcmp(what, "approve") == 0)
        a = (fact_act){.act = ACT_APPROVE, .version = str_of(on), .who = STR("ann")};
    else if (strcmp(what, "freeze") == 0)
        a = (fact_act){.act = ACT_FREEZE, .name = str_of(on)};
    else if (strcmp(what, "thaw") == 0)
        a = (fact_act){.act = ACT_THAW, .name = str_of(on)};
    else if (strcmp(what, "skip") == 0)
        a.act = ACT_SKIP;
    else
        assert_string_equal(what, "retry");
    world_act(w, a);
}

static void let_fail(world *w, const char *text)
{
    static char name[64];
    int times;
    if (!text[0])
        return;
    assert_int_equal(sscanf(text, "%63[a-z-]*%d", name, &times), 2);
    world_plan plan = *plan_for(w, name, "node-0");
    plan.deployment = name;
    plan.fail = times;
    assert_true(vec_push(&w->plans, plan));
}

static void let_happen(world *w, const char *events)
{
    int64_t begin = w->now;
    for (int used = 0; *events; events += used) {
        char first[64], second[64], how;
        int minute;
        assert_int_equal(
            sscanf(events, "%d:%63[a-z-]%c%63s %n", &minute, first, &how, second, &used), 4);
        world_until(w, begin + minute * MINUTE);
        world_step(w, NULL, 0);
        if (how == '=')
            publish(w, first, second);
        else
            act(w, first, second);
    }
}

static int by_minute_and_name(const void *a, const void *b)
{
    const world_job *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return strcmp(x->deployment, y->deployment);
}

static str timeline(world *w, arena *a, int64_t begin)
{
    str text = STR_EMPTY;
    if (w->jobs.len > 1)
        qsort(w->jobs.at, w->jobs.len, sizeof *w->jobs.at, by_minute_and_name);
    for (size_t i = 0; i < w->jobs.len; i++) {
        const world_job *j = &w->jobs.at[i];
        bool hook = j->role == ROLE_PRE || j->role == ROLE_POST;
        assert_int_equal((j->start - begin) % MINUTE, 0);
        text = arena_printf(a, "%.*s%s%lld %s%s%s%s%s", STR_ARG(text), text.len ? " " : "",
                            (long long)(j->start - begin) / MINUTE, j->deployment, hook ? "" : "=",
                            hook ? "" : j->version, j->role == ROLE_ROLLBACK ? "!" : "",
                            j->failed ? "(failed)" : "");
    }
    return text;
}

static void c2_node_row(void **state)
{
    const node_row *r = *state;
    world w;
    arena *a = arena_new(0);
    open_fleet(&w, 1, r->bracket, r->rules);
    int64_t begin = w.now;
    let_fail(&w, r->fails);
    let_happen(&w, r->events);
    world_until(&w, INT64_MAX);
    check_text(timeline(&w, a, begin), r->jobs);
    arena_free(a);
    world_close(&w);
}

/* ---- many nodes ---- */

#define SLOTS(type, value)                                                                         \
    "  - resourceConcurrency: {groupSelector: 'true', limitType: " type ", limitValue: " value "}\n"
#define PACE(type, interval)                                                                       \
    "  - gradualRollout: {rolloutType: " type ", timeScaleInterval: " interval "}\n"

/* One deployment in a bracket with both hooks takes 12 minutes. */
typedef struct fleet_row {
    const char *name;
    int nodes;
    const char *rules;
    const char *starts; /* seconds at which a node starts */
} fleet_row;

static const fleet_row fleet_rows[] = {
    {"3 nodes, 34%: one slot", 3, SLOTS("percentage", "34"), "0 720 1440"},
    {"3 nodes, 67%: two slots", 3, SLOTS("percentage", "67"), "0 0 720"},
    {"3 nodes, 33%: never none", 3, SLOTS("percentage", "33"), "0 720 1440"},
    {"3 nodes, 0%: a pause", 3, SLOTS("percentage", "0"), ""},
    {"5 nodes, count 2", 5, SLOTS("count", "2"), "0 0 720 720 1440"},
    {"two rules: the smaller holds", 4, SLOTS("count", "3") SLOTS("percentage", "25"),
     "0 720 1440 2160"},
    {"linear 60", 3, PACE("linear", "60"), "0 60 120"},
    {"linear 300 and two slots", 4, PACE("linear", "300") SLOTS("percentage", "50"),
     "0 300 720 1020"},
    {"linear 900: slots are free before the turn", 3, PACE("linear", "900") SLOTS("count", "1"),
     "0 900 1800"},
    {"linear-normalized 100 over 7", 7, PACE("linear-normalized", "100"), "0 14 28 42 57 71 85"},
    {"linear-normalized 5 over 10", 10, PACE("linear-normalized", "5"), "0 0 1 1 2 2 3 3 4 4"},
    {"linear-normalized 1440 over 4, one slot", 4,
     PACE("linear-normalized", "1440") SLOTS("count", "1"), "0 720 1440 2160"},
};

static void c7_fleet_row(void **state)
{
    const fleet_row *r = *state;
    world w;
    arena *a = arena_new(0);
    str text = STR_EMPTY;
    open_fleet(&w, r->nodes, IMMEDIATE, r->rules);
    int64_t begin = w.now;
    publish(&w, "kubelet", "2");
    world_until(&w, INT64_MAX);
    if (w.jobs.len > 1)
        qsort(w.jobs.at, w.jobs.len, sizeof *w.jobs.at, by_minute_and_name);
    for (size_t i = 0; i < w.jobs.len; i++)
        if (w.jobs.at[i].role == ROLE_PRE)
            text = arena_printf(a, "%.*s%s%lld", STR_ARG(text), text.len ? " " : "",
                                (long long)(w.jobs.at[i].start - begin));
    check_text(text, r->starts);
    arena_free(a);
    world_close(&w);
}

int main(void)
{
    static row_list all;
    ROWS_ADD(&all, c2_node_row, node_rows, "C2");
    ROWS_ADD(&all, c7_fleet_row, fleet_rows, "C3, C4");
    return rows_run(&all);
}
