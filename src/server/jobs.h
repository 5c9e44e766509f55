/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.h - runs what was decided.
 *
 * A command job gets a supervisor (supervisor.h) that outlives this program; it is found again by
 * its files and lock, or lost: its supervisor is gone and left no record of the end.
 *
 * A simulated job is nothing but time; whether it fails follows from its number.
 *
 * Nothing is done here about a manual job, whose end a person reports, and about a pull job, which
 * a worker claims (control.h).
 *
 * Starting is idempotent: a job has one number, and whoever finds its files starts it no second
 * time. One thread, one loop. Decides nothing and knows no store: what happened is reported, many
 * at a time, and again until it was taken. */
#ifndef DROVER_SERVER_JOBS_H
#define DROVER_SERVER_JOBS_H

#include <uv.h>

#include "server/control.h"

typedef struct jobs jobs;

/* From TERM to KILL. */
#define JOB_GRACE_MS INT64_C(10000)
/* A simulated job that does not say how long. */
#define JOB_SIMULATED_SECONDS 1

typedef struct jobs_settings {
    str folder;          /* of the files; made if need be */
    const char *program; /* what knows the verb of supervisor.h; NULL: this program */
    int64_t grace_ms;    /* 0: JOB_GRACE_MS */
} jobs_settings;

/* Takes what happened: true when it is durable, then it is forgotten here; false: it comes again in
 * a second. control_jobs does the work. */
typedef struct jobs_reporter {
    void *context;
    bool (*report)(void *context, job_report *reports, size_t count);
} jobs_reporter;

jobs *jobs_open(uv_loop_t *loop, const jobs_settings *settings, jobs_reporter reporter, err *error);
/* What runs goes on without us. The loop must run once more to let go of its handles. Returns NULL.
 */
jobs *jobs_close(jobs *j);

/* Runs a job, finds it again, or does nothing about it, as its kind says. What can be known to be
 * wrong is reported as its end. False without memory: call again. */
bool jobs_start(jobs *j, const job_order *order);
/* Asks for its end; one that does not run here is ignored. */
void jobs_cancel(jobs *j, int64_t number);

/* Jobs that are looked after here. */
size_t jobs_count(const jobs *j);

/* Where the log of a job is, or will be: it may be read while it grows. False if the name is too
 * long. */
bool jobs_log_path(const jobs *j, int64_t number, char out[LIMIT_PATH_BYTES]);
/* What a worker sends of its log. What is over the limit is left out, with a line that says so. */
bool jobs_log_add(const jobs *j, int64_t number, str bytes, err *error);

#endif
