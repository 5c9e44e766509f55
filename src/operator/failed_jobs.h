/* SPDX-License-Identifier: Apache-2.0 */
/* failed_jobs.h - which failed Jobs stay for their logs.
 *
 * At most three for a stage of a package on a node and 200 for a Skyhook; the oldest go first, and
 * all of a stage go when it succeeds. Knows names and ages, asks nobody and sends nothing. */
#ifndef DROVER_OPERATOR_FAILED_JOBS_H
#define DROVER_OPERATOR_FAILED_JOBS_H

#include "base/vec.h"
#include "operator/object_names.h"

#define FAILED_JOBS_OF_STAGE 3
#define FAILED_JOBS_OF_SKYHOOK 200

typedef struct failed_job {
    char *name, *uid;
    char *skyhook, *package, *version, *node;
    package_stage stage;
    int64_t attempt;
    int64_t created_ms;
    bool goes; /* it counts no more: its deletion was asked for */
} failed_job;

typedef struct failed_jobs {
    VEC(failed_job *) all;
} failed_jobs;

/* One more that has failed; one that is known already changes nothing. False without memory. */
bool failed_jobs_add(failed_jobs *f, str name, str uid, const job_key *key, int64_t created_ms);
/* It is there no more. */
void failed_jobs_gone(failed_jobs *f, str name);
/* The attempt of this key succeeded: earlier ones of its stage are of no more interest. The next of
 * them that is to go; NULL: none. */
failed_job *failed_jobs_after(const failed_jobs *f, const job_key *key);
/* The next that goes for being one too many beside this one; NULL: none. */
failed_job *failed_jobs_beyond(const failed_jobs *f, const job_key *key);
void failed_jobs_done(failed_jobs *f);

#endif
