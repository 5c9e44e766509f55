/* SPDX-License-Identifier: Apache-2.0 */
/* plan_check.h - plan --check: limits that a plan must keep, for pipelines. */
#ifndef DROVER_CLI_PLAN_CHECK_H
#define DROVER_CLI_PLAN_CHECK_H

#include "cli/command.h"
#include "cli/plan_show.h"

/* Whether every --check can be read; says so otherwise. */
exit_status plan_checks_read(const verb *c, const options *given);
/* Whether the plan keeps them all. Those it breaks are said on standard error. */
bool plan_checks(const plan *p, const options *given);

#endif
