/* SPDX-License-Identifier: Apache-2.0 */
/* partition_rows.h - the table of semantics.md part B and the scenarios of the document on rollout
 * strategies, for whoever runs partitions: bundles on clusters, and rules of a RolloutPolicy. */
#ifndef DROVER_TESTS_SUPPORT_PARTITION_ROWS_H
#define DROVER_TESTS_SUPPORT_PARTITION_ROWS_H

#include "support/check.h"

#include "base/str.h"

/* ---- semantics.md part B, row by row ---- */

typedef struct partition_row {
    const char *id;
    size_t clusters;
    size_t fresh; /* the first so many are new, the others run the old version */
    const char *unavailable, *unavailable_partitions, *size;
    size_t manual[5]; /* sizes of manual partitions, in the order of the clusters */
    const char *own;  /* maxUnavailable of the first of them */
    int64_t threshold, max_new;
    size_t offline, broken, paused; /* the first so many */
    bool prompt;
    const char *releases;
    size_t up_to_date;
    int64_t visited, partitions, not_ready;
} partition_row;

static const partition_row partition_rows[] = {
#define NEW(n) .clusters = n, .fresh = n
#define OLD(n) .clusters = n
#define PROMPT .prompt = true
#define END(n, v, p, r) .up_to_date = n, .visited = v, .partitions = p, .not_ready = r
#define MU .unavailable
#define MUP .unavailable_partitions
#define STORM .manual = {40, 40, 40, 40, 40}, MU = "10%", MUP = "#0"
    {"P01", NEW(50), MU = "10%", .releases = "C50; 0", END(0, 1, 1, 1)},
    {"P02", NEW(100), MU = "10%", .releases = "C50; 0", END(0, 1, 1, 1)},
    {"P03", NEW(100), MU = "10%", PROMPT, .releases = "C50 x2; 0", END(100, 1, 1, 0)},
    {"P04", OLD(100), MU = "10%", .releases = "U10; 0", END(0, 1, 1, 1)},
    {"P06", OLD(100), MU = "#0", PROMPT, .releases = "U1 x100; 0", END(100, 1, 1, 0)},
    {"P07", NEW(200), .releases = "C50 x4; 0", END(0, 4, 4, 0)},
    {"P08", OLD(200), .releases = "U50 x4; 0", END(0, 4, 4, 0)},
    {"P09", NEW(200), MUP = "#1", .size = "10%", .releases = "C50 x4; 0", END(0, 10, 10, 0)},
    {"P10", NEW(200), MUP = "#1", .size = "10%", MU = "#0", .releases = "C40; 0", END(0, 2, 10, 2)},
    {"P12", OLD(200), MUP = "#1", .size = "10%", MU = "#0", PROMPT, .releases = "U1 x200; 0",
     END(200, 10, 10, 0)},
    {"P13", OLD(200), MU = "10%", .size = "10%", .releases = "U2; 0", END(0, 1, 10, 1)},
    {"P15", OLD(200), MU = "10%", .size = "10%", .offline = 2, PROMPT, .releases = "U2; 0",
     END(0, 1, 10, 1)},
    {"P17", NEW(240), .size = "#60", MU = "50%", .releases = "C50; 0", END(0, 1, 4, 1)},
    {"P19", NEW(200), .manual = {20, 180}, MU = "#0", MUP = "#0", PROMPT,
     .releases = "C20; C50 x3; C30; 0", END(200, 2, 2, 0)},
    {"P20", OLD(200), .manual = {20, 180}, MU = "#0", MUP = "#0", PROMPT, .releases = "U1 x200; 0",
     END(200, 2, 2, 0)},
    {"P23", OLD(230), MU = "10%", PROMPT,
     .releases = "U5 x11; U7; U5 x10; U7; U5 x10; U7; U5 x10; U3; U1; 0", END(230, 5, 5, 0)},
    {"P26", NEW(30), .max_new = 10, MU = "#0", .releases = "C10; 0", END(0, 1, 1, 1)},
    {"P27", NEW(30), .max_new = 10, MU = "#0", PROMPT, .releases = "C10 x3; 0", END(30, 1, 1, 0)},
    {"P28", NEW(200), STORM, PROMPT, .releases = "C40 x5; 0", END(200, 5, 5, 0)},
    {"P29", NEW(3), .threshold = 1, .size = "#1", MU = "#0", PROMPT, .releases = "C1 x3; 0",
     END(3, 3, 3, 0)},
    {"P30", NEW(6), .manual = {4}, PROMPT, .releases = "C4; 0", END(4, 1, 1, 0)},
    {"P31", OLD(20), MU = "#2", .broken = 2, PROMPT, .releases = "F2; 0", END(0, 1, 1, 1)},
    {"P33", OLD(200), .size = "#20", MU = "10%", MUP = "10%", .releases = "U4; 0",
     END(0, 2, 10, 2)},
    {"P36", NEW(25), MU = "#5", .releases = "C25; 0", END(0, 1, 1, 1)},
    {"P37", OLD(25), MU = "#5", PROMPT, .releases = "U5 x5; 0", END(25, 1, 1, 0)},
    {"P38", NEW(100), MU = "10%", .offline = 10, PROMPT, .releases = "C50; 0", END(40, 1, 1, 1)},
    {"P40", NEW(200), STORM, .offline = 4, PROMPT, .releases = "C40 x5; 0", END(196, 5, 5, 0)},
    {"P42", OLD(200), STORM, PROMPT,
     .releases = "U4 x9; U8; U4 x8; U8; U4 x8; U8; U4 x8; U8; U4 x9; 0", END(200, 5, 5, 0)},
    {"P43", OLD(100), MU = "10%", .manual = {50, 50}, .own = "50%", .releases = "U25; 0",
     END(0, 1, 2, 1)},
    {"P44", NEW(20), MU = "#0", .manual = {10, 10}, .paused = 1, PROMPT, .releases = "C9; C10; 0",
     END(19, 2, 2, 0)},
    {"P46", .clusters = 100, .fresh = 20, MU = "10%", .releases = "C20; 0", END(0, 1, 1, 1)},
    {"P48", .clusters = 100, .fresh = 20, MU = "10%", PROMPT, .releases = "C20; U10 x8; 0",
     END(100, 1, 1, 0)},
};

/* "Partitions: 199 -> one; 200 -> 50 x 4; 230 -> 57 x 4 and 2; 200 at 10% -> 20 x 10": the counts
 * of the last pass say how they were cut. */
static const partition_row partition_cuts[] = {
    {"199", NEW(199), PROMPT, .releases = "C50 x3; C49; 0", END(199, 1, 1, 0)},
    {"200", NEW(200), MU = "#0", PROMPT, .releases = "C50 x4; 0", END(200, 4, 4, 0)},
    {"230", NEW(230), MU = "#0", PROMPT, .releases = "C50; C7; C50; C7; C50; C7; C50; C7; C2; 0",
     END(230, 5, 5, 0)},
    {"200 at 10%", NEW(200), .size = "10%", MU = "#0", PROMPT, .releases = "C20 x10; 0",
     END(200, 10, 10, 0)},
};

/* Not in the table: worked out from the pass and from fleet.md 2.3. */
static const partition_row partition_more[] = {
    {"two partitions of 30, the first with a limit of its own", OLD(60), .manual = {30, 30},
     MU = "#2", .own = "#5", PROMPT, .releases = "U5 x5; U7; U2 x14; 0", END(60, 2, 2, 0)},
    {"an own limit of 0 is one at a time", OLD(8), .manual = {4, 4}, MU = "50%", .own = "#0",
     PROMPT, .releases = "U1 x4; U2 x2; 0", END(8, 2, 2, 0)},
    {"66.7% of 3", OLD(3), MU = "66.7%", PROMPT, .releases = "U2; U1; 0", END(3, 1, 1, 0)},
    {"66.6% of 3", OLD(3), MU = "66.6%", PROMPT, .releases = "U1 x3; 0", END(3, 1, 1, 0)},
    {"a limit as text is not cut to the clusters", OLD(5), MU = "7", PROMPT, .releases = "U5; 0",
     END(5, 1, 1, 0)},
    {"0% is one", OLD(4), MU = "0%", PROMPT, .releases = "U1 x4; 0", END(4, 1, 1, 0)},
    {"partitions of 7 of 20, from 10 on", OLD(20), .threshold = 10, .size = "#7", MU = "50%",
     PROMPT, .releases = "U3 x2; U4; U3; U4; U3; 0", END(20, 3, 3, 0)},
    {"one partition may be not ready", OLD(20), .threshold = 10, .size = "#5", MU = "#1",
     MUP = "#1", .releases = "U1; 0", END(0, 2, 4, 2)},
    {"two are paused, caps count them", OLD(10), .paused = 2, MU = "50%", .releases = "U5; 0",
     END(0, 1, 1, 1)},
    {"paused ones hold no partition", OLD(6), .manual = {3, 3}, .paused = 3, MU = "#0", PROMPT,
     .releases = "U1 x3; 0", END(3, 2, 2, 0)},
    {"offline ones hold an update", OLD(12), .offline = 2, MU = "25%", PROMPT,
     .releases = "U3; U1 x9; 0", END(10, 1, 1, 0)},
    {"offline ones take all the places", OLD(12), .offline = 3, MU = "25%", PROMPT,
     .releases = "U3; 0", END(0, 1, 1, 1)},
    {"who is in no partition counts for no limit", OLD(20), .manual = {4, 4}, MU = "50%", PROMPT,
     .releases = "U2; U4; U2; 0", END(8, 2, 2, 0)},
    {"maxNew 1", NEW(3), .max_new = 1, MU = "#3", PROMPT, .releases = "C1 x3; 0", END(3, 1, 1, 0)},
};

static const char *const partition_names[] = {"p0", "p1", "p2", "p3", "p4"};

/* ---- "Rollout Strategy", its own scenarios, as semantics.md reads them ---- */

static const partition_row partition_scenarios[] = {
    {"Preventing image pull storms", NEW(200), STORM, PROMPT, .releases = "C40 x5; 0",
     END(200, 5, 5, 0)},
    {"Scenario: 50 Clusters (Single Partition)", NEW(50), MU = "10%", PROMPT, .releases = "C50; 0",
     END(50, 1, 1, 0)},
    {"Scenario: 100 Clusters (Single Partition), ten unavailable", NEW(100), MU = "10%",
     .offline = 10, PROMPT, .releases = "C50; 0", END(40, 1, 1, 1)},
    {"Scenario: 100 Clusters (Single Partition), nine unavailable", NEW(100), MU = "10%",
     .offline = 9, PROMPT, .releases = "C50 x2; 0", END(91, 1, 1, 0)},
    {"Scenario: 200 Clusters (Multiple Partitions)", NEW(200), MUP = "#1", .size = "10%",
     .releases = "C50 x4; 0", END(0, 10, 10, 0)},
    {"Scenario: 200 Clusters (Multiple Partitions): one NotReady, the rollout proceeds", NEW(200),
     MUP = "#1", .size = "10%", MU = "#0", .offline = 1, PROMPT, .releases = "C40; C20 x8; 0",
     END(199, 10, 10, 1)},
    {"Scenario: 200 Clusters (Multiple Partitions): two NotReady, the rollout pauses", NEW(200),
     MUP = "#1", .size = "10%", MU = "#0", .offline = 21, PROMPT, .releases = "C40; 0",
     END(19, 2, 10, 2)},
    {"Preventing image pull storms: 4 of 40 not ready, it proceeds", NEW(200), STORM, .offline = 4,
     PROMPT, .releases = "C40 x5; 0", END(196, 5, 5, 0)},
    {"Preventing image pull storms: more than 4 not ready, it is paused", NEW(200), STORM,
     .offline = 5, PROMPT, .releases = "C40; 0", END(35, 1, 5, 1)},
    {"Automatic Partitioning: 200 clusters, autoPartitionSize 25%", NEW(200), .size = "25%",
     MU = "10%", PROMPT, .releases = "C50 x4; 0", END(200, 4, 4, 0)},
    {"Single Partition: fewer than 200 clusters", NEW(199), MU = "10%", PROMPT,
     .releases = "C50 x3; C49; 0", END(199, 1, 1, 0)},
    {"Scenario: 200 Clusters (Strict Readiness, Manual partitions)", NEW(200), .manual = {20, 180},
     MU = "#0", MUP = "#0", .releases = "C20; 0", END(0, 1, 2, 1)},
    {"Rollout Strategy Defaults: 200 clusters", NEW(200), .releases = "C50 x4; 0", END(0, 4, 4, 0)},
    {"How Does Partitioning Work: 25 clusters, maxUnavailable 5", NEW(25), MU = "#5",
     .releases = "C25; 0", END(0, 1, 1, 1)},
    {"How Does Partitioning Work: 100 clusters, first 50, then the others", NEW(100), MU = "#5",
     PROMPT, .releases = "C50 x2; 0", END(100, 1, 1, 0)},
    {"How Does Partitioning Work: not part of the manual partitioning", NEW(10), .manual = {3, 3},
     PROMPT, .releases = "C6; 0", END(6, 2, 2, 0)},
    {"Use Cases: 230 clusters at 25%", NEW(230), MU = "10%", PROMPT,
     .releases = "C50; C7; C50; C7; C50; C7; C50; C7; C2; 0", END(230, 5, 5, 0)},
};

/* ---- releases per pass, in the notation of the table ---- */

typedef struct notation {
    buf text;
    char last[64];
    size_t times;
} notation;

static inline void notation_flush(notation *n)
{
    if (n->times == 0)
        return;
    if (n->text.len > 0)
        buf_addz(&n->text, "; ");
    buf_addz(&n->text, n->last);
    if (n->times > 1)
        buf_addf(&n->text, " x%zu", n->times);
    n->times = 0;
}

static inline void notation_add(notation *n, int64_t created, int64_t updated, int64_t fixed)
{
    buf one = BUF(60);
    if (created + updated + fixed == 0)
        buf_addc(&one, '0');
    if (created)
        buf_addf(&one, "C%lld", (long long)created);
    if (updated)
        buf_addf(&one, "U%lld", (long long)updated);
    if (fixed)
        buf_addf(&one, "F%lld", (long long)fixed);
    if (n->times > 0 && str_eq(str_of(n->last), buf_str(&one))) {
        n->times++;
    } else {
        notation_flush(n);
        snprintf(n->last, sizeof n->last, "%.*s", STR_ARG(buf_str(&one)));
        n->times = 1;
    }
    buf_done(&one);
}

#endif
