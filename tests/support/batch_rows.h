/* SPDX-License-Identifier: Apache-2.0 */
/* batch_rows.h - the table of semantics.md A4, row by row, and more rows that
 * follow from its rules, for whoever runs batches: Skyhooks on
 * nodes, and rules of a RolloutPolicy. */
#ifndef DROVER_TESTS_SUPPORT_BATCH_ROWS_H
#define DROVER_TESTS_SUPPORT_BATCH_ROWS_H

#include "support/check.h"

typedef struct batch_row {
    const char *name;
    const char *strategy; /* NULL: none */
    const char *budget;
    int nodes;
    int64_t ceiling;
    const char *batches; /* sizes (failures)[blocked] */
    int64_t current, completed, failed, consecutive;
    bool stopped;
    int failures[8]; /* of each batch */
    int blocked[8];
} batch_row;

#define ALL_OF_THEM "percent: 100"
#define COUNTS(c, d, f, s) .current = c, .completed = d, .failed = f, .consecutive = s
#define STOPPED .stopped = true

static const batch_row batch_rows[] = {
    {"linear, initial 1, delta 1; 8 nodes", "linear: {initialBatch: 1, delta: 1}", ALL_OF_THEM, 8,
     8, "1,2,3,2", COUNTS(5, 8, 0, 0)},
    {"linear, initial 2, delta 2, failureThreshold 3; batch 2 has 1 failure",
     "linear: {initialBatch: 2, delta: 2, failureThreshold: 3}", ALL_OF_THEM, 10, 10, "2,4(1),4",
     COUNTS(4, 9, 1, 0), .failures = {0, 1}},
    {"linear, initial 3, delta 2, failureThreshold 2; failures 0,1,1",
     "linear: {initialBatch: 3, delta: 2, failureThreshold: 2}", ALL_OF_THEM, 20, 20, "3,5(1),3(1)",
     COUNTS(4, 9, 2, 2), STOPPED, .failures = {0, 1, 1}},
    {"linear, initial 3, delta 2, failureThreshold 3; failures 0,1,1",
     "linear: {initialBatch: 3, delta: 2, failureThreshold: 3}", ALL_OF_THEM, 20, 20,
     "3,5(1),3(1),1,3,5", COUNTS(7, 18, 2, 0), .failures = {0, 1, 1}},
    {"exponential, factor 2; 15 nodes", "exponential: {growthFactor: 2}", ALL_OF_THEM, 15, 15,
     "1,2,4,8", COUNTS(5, 15, 0, 0)},
    {"exponential, factor 2, budget 25%", "exponential: {growthFactor: 2}", "percent: 25", 40, 10,
     "1,2,4,8,10,10,5", COUNTS(8, 40, 0, 0)},
    {"exponential, factor 4; 100 nodes", "exponential: {growthFactor: 4}", ALL_OF_THEM, 100, 100,
     "1,4,16,64,15", COUNTS(6, 100, 0, 0)},
    {"exponential, initial 4, threshold 75, failureThreshold 2; failures 0,4,1",
     "exponential: {initialBatch: 4, batchThreshold: 75, failureThreshold: 2}", ALL_OF_THEM, 40, 40,
     "4,8(4),4(1),8,16", COUNTS(6, 35, 5, 0), .failures = {0, 4, 1}},
    {"exponential, initial 4, threshold 75, failureThreshold 2, count 6; failures 0,3,3",
     "exponential: {initialBatch: 4, batchThreshold: 75, failureThreshold: 2}", "count: 6", 40, 6,
     "4,6(3),3(3)", COUNTS(4, 7, 6, 2), STOPPED, .failures = {0, 3, 3}},
    {"fixed 3, failureThreshold 1; first batch 1 failure",
     "fixed: {initialBatch: 3, failureThreshold: 1}", ALL_OF_THEM, 10, 10, "3(1)",
     COUNTS(2, 2, 1, 1), STOPPED, .failures = {1}},
    {"fixed 3, failureThreshold 1; failure in batch 2",
     "fixed: {initialBatch: 3, failureThreshold: 1}", ALL_OF_THEM, 10, 10, "3,3(1),3,1",
     COUNTS(5, 9, 1, 0), .failures = {0, 1}},
    {"fixed 3, threshold 60, failureThreshold 1; failures 1,1,2",
     "fixed: {initialBatch: 3, batchThreshold: 60, failureThreshold: 1}", ALL_OF_THEM, 9, 9,
     "3(1),3(1),3(2)", COUNTS(4, 5, 4, 1), .failures = {1, 1, 2}},
    {"fixed 5, budget 30%", "fixed: {initialBatch: 5}", "percent: 30", 10, 3, "3,3,3,1",
     COUNTS(5, 10, 0, 0)},
    {"fixed 5, failureThreshold 1; all fail", "fixed: {initialBatch: 5, failureThreshold: 1}",
     ALL_OF_THEM, 10, 10, "5(5)", COUNTS(2, 0, 5, 1), STOPPED, .failures = {5}},
    {"fixed 2, count 2, no failureThreshold; all fail", "fixed: {initialBatch: 2}", "count: 2", 6,
     2, "2(2),2(2),2(2)", COUNTS(4, 0, 6, 3), .failures = {2, 2, 2}},
    {"fixed 4, threshold 75, failureThreshold 2; one of batch 1 and 2 blocked in flight",
     "fixed: {initialBatch: 4, batchThreshold: 75, failureThreshold: 2}", ALL_OF_THEM, 12, 12,
     "4[1],4[1],4", COUNTS(4, 10, 0, 0), .blocked = {1, 1}},
    {"no strategy, budget 25%", NULL, "percent: 25", 10, 2, "2,2,2,2,2", COUNTS(6, 10, 0, 0)},
    /* Not in the table: worked out from A3 and A4. */
    {"linear, delta 3, budget 33%: the ceiling cuts the last ones", "linear: {delta: 3}",
     "percent: 33", 20, 6, "1,4,6,6,3", COUNTS(6, 20, 0, 0)},
    {"linear, initial 4, delta 5: down to one, never to none",
     "linear: {initialBatch: 4, delta: 5, safetyLimit: 100}", ALL_OF_THEM, 12, 12, "4(1),1(1),1,6",
     COUNTS(5, 10, 2, 0), .failures = {1, 1}},
    {"exponential, factor 3, initial 2; a failed batch is divided",
     "exponential: {initialBatch: 2, growthFactor: 3}", ALL_OF_THEM, 30, 30, "2,6(1),2,6,14",
     COUNTS(6, 29, 1, 0), .failures = {0, 1}},
    {"exponential, factor 10: divided to one", "exponential: {growthFactor: 10, safetyLimit: 90}",
     ALL_OF_THEM, 25, 25, "1,10(3),1,10,3", COUNTS(6, 22, 3, 0), .failures = {0, 3}},
    {"exponential, safetyLimit 10: a failure behind it does not slow down",
     "exponential: {safetyLimit: 10, failureThreshold: 1}", ALL_OF_THEM, 15, 15, "1,2(1),4(1),8",
     COUNTS(5, 13, 2, 0), .failures = {0, 1, 1}},
    {"linear, safetyLimit 100, failureThreshold 1: stops at the last one",
     "linear: {safetyLimit: 100, failureThreshold: 1}", ALL_OF_THEM, 6, 6, "1,2,3(1)",
     COUNTS(4, 5, 1, 1), STOPPED, .failures = {0, 0, 1}},
    {"fixed 3, threshold 66: two of three are enough",
     "fixed: {initialBatch: 3, batchThreshold: 66, failureThreshold: 1}", ALL_OF_THEM, 9, 9,
     "3(1),3(1),3(1)", COUNTS(4, 6, 3, 0), .failures = {1, 1, 1}},
    {"fixed 3, threshold 67: two of three are not",
     "fixed: {initialBatch: 3, batchThreshold: 67, failureThreshold: 1}", ALL_OF_THEM, 9, 9, "3(1)",
     COUNTS(2, 2, 1, 1), STOPPED, .failures = {1}},
    {"fixed 2, failureThreshold 2: a good batch between starts the count anew",
     "fixed: {initialBatch: 2, failureThreshold: 2}", ALL_OF_THEM, 20, 20,
     "2(1),2,2(1),2,2(1),2,2,2,2,2", COUNTS(11, 17, 3, 0), .failures = {1, 0, 1, 0, 1}},
    {"fixed 100 of 7", "fixed: {initialBatch: 100}", ALL_OF_THEM, 7, 7, "7", COUNTS(2, 7, 0, 0)},
    {"fixed 2, threshold 1, failureThreshold 1: only what fails in whole is failed",
     "fixed: {initialBatch: 2, batchThreshold: 1, failureThreshold: 1}", ALL_OF_THEM, 8, 8,
     "2(1),2(2)", COUNTS(3, 1, 3, 1), STOPPED, .failures = {1, 2}},
    {"linear 2, failureThreshold 1; the only failure is a blocked node",
     "linear: {initialBatch: 2, failureThreshold: 1}", ALL_OF_THEM, 10, 10, "2[1]",
     COUNTS(2, 1, 0, 1), STOPPED, .blocked = {1}},
    {"no strategy, count 4; failures hold nothing", NULL, "count: 4", 10, 4, "4(4),4(2),2",
     COUNTS(4, 4, 6, 0), .failures = {4, 2}},
    {"no strategy, 1%: one at a time", NULL, "percent: 1", 3, 1, "1,1,1", COUNTS(4, 3, 0, 0)},
};

#undef COUNTS
#undef STOPPED

/* "Ceilings: (10,25%)=2, ..." */
typedef struct ceiling_row {
    const char *name;
    int nodes;
    const char *budget;
    int64_t ceiling;
} ceiling_row;

static const ceiling_row ceiling_rows[] = {
    {"(10,25%)=2", 10, "percent: 25", 2},     {"(10,30%)=3", 10, "percent: 30", 3},
    {"(5,10%)=1", 5, "percent: 10", 1},       {"(100,1%)=1", 100, "percent: 1", 1},
    {"(100,29%)=29", 100, "percent: 29", 29}, {"(0,50%)=0", 0, "percent: 50", 0},
    {"(10,count 3)=3", 10, "count: 3", 3},    {"(2,count 5)=5", 2, "count: 5", 5},
};

#endif
