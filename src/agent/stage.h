/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - one mode of a package: its steps, one after the other, and what is remembered of them.
 *
 * A step of apply or post-interrupt whose idempotence is the agent's business runs once: a flag
 * says so. All other steps run every time. A mode that fails stops at its first failure; a check
 * runs all its steps and tells of each. */
#ifndef DROVER_AGENT_STAGE_H
#define DROVER_AGENT_STAGE_H

#include "agent/config.h"
#include "agent/run.h"

/* Everything from the copied package to the last step. False: the error says what failed. */
bool stage_run(const agent_settings *s, run_signals *signals, err *error);

/* The agent's environment without the named variables, followed by these; ends with NULL. NULL
 * without memory. */
const char **stage_environment(arena *a, const step_variable *variables, size_t count);

#endif
