/* SPDX-License-Identifier: Apache-2.0 */
/* chart_run.h - charts by the "helm" program, as child processes on an event loop.
 *
 * Installing is `helm upgrade --install` and then `helm get manifest`, trying the former with
 * --dry-run and then `helm show crds`, reading `helm get manifest` alone; removing is `helm
 * uninstall`. What helm needs is written into a folder of its own under $TMPDIR, which goes with
 * it. Nothing is decided here but which of helm's complaints only an edit repairs. A helm that is
 * under way when the agent ends is let come to its end.
 *
 * One that was killed leaves its release locked for ever ("another operation is in progress"). When
 * no helm of an earlier agent can be running any more the release is taken back to what it was
 * (`helm rollback`, or `helm uninstall` of a first revision), and installed again. */
#ifndef DROVER_CLUSTER_AGENT_CHART_RUN_H
#define DROVER_CLUSTER_AGENT_CHART_RUN_H

#include <uv.h>

#include "cluster_agent/agent_shell.h"

/* Helms at a time: those that work, and those that wait, be it because they were told to or because
 * hooks keep them longer than CHART_QUICK_MS. What one waits for may be another's to bring. */
#define CHART_RUNNING_MAX 2
#define CHART_WAITING_MAX 8
#define CHART_QUICK_MS 30000
#define CHART_HISTORY_MAX 2   /* revisions that helm keeps unless told, as in Fleet */
#define CHART_LIMIT_S 600     /* a helm that takes longer is ended ... */
#define CHART_LIMIT_MORE_S 60 /* ... or that much longer than it was told to wait */
/* A chart renders as much as a Bundle may hold; a trial tells of the chart as well, in base64. */
#define CHART_TRIED_BYTES_MAX (40u << 20)

typedef struct chart_place {
    const char *program; /* "helm": looked for in $PATH */
    str kubeconfig;      /* a path; empty: config is what would stand there */
    str config;          /* each helm finds it in its folder */
    str context;         /* empty: the current one */
    uint64_t lock_ms;    /* how long a lock may be another's; 0: as long as a helm may take */
    uint64_t quick_ms;   /* 0: CHART_QUICK_MS */
} chart_place;

typedef struct chart_runner chart_runner;

/* NULL without memory. The texts must live as long. Folders that a killed agent left are removed.
 */
chart_runner *chart_runner_new(uv_loop_t *loop, chart_place at);
/* Nothing is answered any more; the loop must run once more. */
chart_runner *chart_runner_stop(chart_runner *r);

/* STEP_TRY_CHART, STEP_INSTALL_CHART, STEP_READ_CHART or STEP_REMOVE_CHART. The handler is called
 * later, and what the step refers to is not needed any more. False with an error: it is not called.
 */
bool chart_runner_start(chart_runner *r, const step *s, chart_handler handler, err *error);

/* What helm's words mean: OUTCOME_CONFLICT when an object exists that is not the release's;
 * OUTCOME_BUSY when the release is locked; OUTCOME_LATER when a server cannot now; OUTCOME_INVALID
 * when only an edit of the bundle helps, as Fleet has it; else OUTCOME_REFUSED. */
step_outcome chart_judge(str complaint);

#endif
