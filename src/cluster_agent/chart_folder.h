/* SPDX-License-Identifier: Apache-2.0 */
/* chart_folder.h - the folders that helms work in: $TMPDIR/drover-chart-XXXXXX, one for each.
 *
 * A folder is locked by whoever has it open: the agent, and the helm that works in it, which may
 * outlive the agent. One that nobody has locked is of an agent that was killed. */
#ifndef DROVER_CLUSTER_AGENT_CHART_FOLDER_H
#define DROVER_CLUSTER_AGENT_CHART_FOLDER_H

#include <limits.h>

#include "base/err.h"
#include "base/str.h"

typedef struct chart_folder {
    char path[PATH_MAX]; /* empty: there is none */
    int lock;            /* to be handed on to helm */
} chart_folder;

/* On failure there is none. */
bool chart_folder_make(chart_folder *f, err *error);
/* Writes a file with the folders above it; path: below the folder. */
bool chart_folder_write(const chart_folder *f, str path, str bytes, err *error);
/* Removes it with all that is in it. */
void chart_folder_remove(chart_folder *f);
/* Lets go of it as it is: somebody else may still read it. */
void chart_folder_leave(chart_folder *f);

/* Removes those of this user that nobody has locked. */
void chart_folders_sweep(void);

#endif
