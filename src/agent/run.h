/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - runs one command, shows what it prints, and ends it when the agent is told to end.
 *
 * The command has a process group of its own. Every line it prints goes to the agent's own output
 * and to log files, with "[out]" or "[err]" and the time in front. What it leaves in the background
 * may go on: only the command itself is waited for. */
#ifndef DROVER_AGENT_RUN_H
#define DROVER_AGENT_RUN_H

#include "agent/settings.h"
#include "base/arena.h"

#define RUN_LOG_BYTES_MAX (64u << 20) /* of one file; the rest is only shown */
#define RUN_LOGS_KEPT 5

/* Of the agent: SIGTERM is only ever looked at here, and SIGPIPE never is. */
typedef struct run_signals {
    int fd;
    bool terminated;
} run_signals;
bool run_signals_open(run_signals *ret, err *error);
/* Looks whether SIGTERM came in the meantime. */
bool run_terminated(run_signals *signals);
/* Waits for it, so long at the most. */
bool run_wait_terminated(run_signals *signals, int64_t seconds);

typedef struct command {
    str root;                 /* becomes the command's root; empty: the agent's own */
    str folder;               /* to start in */
    const char **arguments;   /* the first one is the program; ends with NULL */
    const char **environment; /* ends with NULL */
    bool make_executable;     /* the program first */
    bool outlives_term;       /* it brings the machine down, and so the SIGTERM: it is let be */
    str log_path;             /* and with ".err" behind; empty: no files */
    str log_head;             /* first line of the log */
    size_t buffer_bytes;
    int64_t grace_seconds;
} command;

/* exit code, or minus the signal that ended it. False: it could not be started. */
bool run_command(const command *c, run_signals *signals, int *ret_code, err *error);

/* Removes all but the newest logs whose path begins with prefix and a "-", with their ".err". */
void run_keep_newest_logs(str prefix, arena *a);

#endif
