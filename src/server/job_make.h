/* SPDX-License-Identifier: Apache-2.0 */
/* job_make.h - from a deployment's command to words and an environment.
 *
 * The environment of a job is made here, whole: what the order says (DROVER_*), then what the
 * deployment says, then a few harmless names of the server's own. Nothing else of the server's
 * environment reaches a job. */
#ifndef DROVER_SERVER_JOB_MAKE_H
#define DROVER_SERVER_JOB_MAKE_H

#include "server/control.h"
#include "server/job_files.h"

/* Words and environment, in a. False with an error that names the part. */
bool job_make_command(arena *a, const job_order *order, const command *c, job_command *ret,
                      err *error);

/* The text of the spec of a command job. */
bool job_make_spec(const job_order *order, int64_t grace_ms, buf *out, err *error);

#endif
