/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h - the process between the server and a job's command.
 *
 * One for each job, started as "drover job-supervisor FOLDER NUMBER". Runs the command of the spec
 * in a process group of its own, without a shell; ends it at the time limit, or when it is asked to
 * by SIGTERM, with TERM and after the grace time with KILL; what the command leaves behind in its
 * group is killed when it ends, and it is killed itself should the supervisor die. Then the
 * verification in the same way. Keeps the log within its limit and writes down how it ended. Lives
 * in a session of its own: neither the server's end nor its terminal's concerns it. */
#ifndef DROVER_SERVER_SUPERVISOR_H
#define DROVER_SERVER_SUPERVISOR_H

#include "base/str.h"

#define SUPERVISOR_VERB "job-supervisor"

/* Returns the exit status of the supervisor itself: 0 when the job's end, whatever it was, is on
 * disk, or when the job is another's. */
int supervisor_run(str folder, int64_t number);
/* The same from the words behind the verb. */
int supervisor_main(int argc, char **argv);

#endif
