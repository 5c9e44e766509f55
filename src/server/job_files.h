/* SPDX-License-Identifier: Apache-2.0 */
/* job_files.h - what the server and a job's supervisor tell each other, in files of one folder.
 *
 * NUMBER.spec   what to run. Made once, whole, before the supervisor is started; the supervisor
 *               keeps it locked as long as it lives
 * NUMBER.run    the supervisor is about to run it. Made once, under the lock: whoever finds it
 *               there does not run the job, nor does one whose spec is gone by then
 * NUMBER.exit   how it ended. Appears whole, under the lock
 * NUMBER.log    what it printed
 *
 * So a job runs at most once, whoever is killed when; and "run, but neither lock nor exit" is a job
 * that is lost. The lock names its holder: a process that has the number of a dead supervisor is
 * never taken for it. */
#ifndef DROVER_SERVER_JOB_FILES_H
#define DROVER_SERVER_JOB_FILES_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "engine/fact.h"

/* The log keeps its beginning and its end; what is between is left out, with a line that says so.
 */
#define LIMIT_JOB_LOG_HEAD_BYTES ((size_t)1024 * 1024)
#define LIMIT_JOB_LOG_TAIL_BYTES ((size_t)256 * 1024)

/* A program with its words and its whole environment ("NAME=value"). */
typedef struct job_command {
    str *argv;
    size_t argv_len;
    str *env;
    size_t env_len;
    str workdir; /* empty: where the server runs */
} job_command;

typedef struct job_spec {
    int64_t timeout_ms; /* for both together */
    int64_t grace_ms;   /* from TERM to KILL */
    job_command run;    /* no words: only what comes after it */
    bool verified;
    job_command verify;
    str metrics; /* a RolloutPolicy with one rule, a verification, as JSON; empty: none */
} job_spec;

typedef struct job_exit {
    outcome outcome; /* SUCCEEDED or FAILED */
    bool verification_failed;
    str reason;
} job_exit;

#define JOB_FILES(X) X(SPEC, "spec") X(RUN, "run") X(EXIT, "exit") X(LOG, "log")
typedef enum job_file {
#define X(file, ending) JOB_FILE_##file,
    JOB_FILES(X)
#undef X
} job_file;

/* "FOLDER/NUMBER.ending". False if it is too long. */
bool job_path(str folder, int64_t number, job_file file, char out[LIMIT_PATH_BYTES]);

/* The text of a spec. */
void job_spec_write(const job_spec *spec, buf *out);
/* Makes the file of it, unless there is one. */
bool job_spec_make(str folder, int64_t number, str text, err *error);
/* Whether the spec that was opened is still the job's: its files may have been removed since. */
bool job_spec_is(str folder, int64_t number, int fd);
/* Reads it from the start of an open file. Texts are in a, with a zero byte behind each. */
bool job_spec_read(int fd, arena *a, job_spec *ret, err *error);

/* False leaves the cause in errno, too. */
bool job_exit_make(str folder, int64_t number, const job_exit *e, err *error);

#define JOB_STATES_ON_DISK(X)                                                                      \
    X(NONE, "none")              /* there is no spec */                                            \
    X(NOT_STARTED, "notStarted") /* nobody runs it or ever did */                                  \
    X(RUNNING, "running")                                                                          \
    X(ENDED, "ended") X(LOST, "lost")
typedef enum job_disk_state {
#define X(state, text) JOB_DISK_##state,
    JOB_STATES_ON_DISK(X)
#undef X
} job_disk_state;

typedef struct job_look {
    job_disk_state state;
    pid_t supervisor; /* RUNNING */
    job_exit exit;    /* ENDED; the reason is in the arena */
} job_look;

bool job_look_at(str folder, int64_t number, arena *a, job_look *ret, err *error);

/* Sends a signal to the supervisor that holds the lock, and to nobody else. */
bool job_signal(str folder, int64_t number, int signal_number);

/* All but the log. */
void job_files_remove(str folder, int64_t number);

/* Removes what servers that were killed left half made. Only for a server that is alone. */
void job_drafts_remove(str folder);

#endif
