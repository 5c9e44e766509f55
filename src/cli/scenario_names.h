/* SPDX-License-Identifier: Apache-2.0 */
/* scenario_names.h - are the names in the flags of plan and explain names of anything?
 *
 * A flag about a package, deployment, bundle or target that does not exist would silently be
 * without effect; here it becomes an error that lists what there is. */
#ifndef DROVER_CLI_SCENARIO_NAMES_H
#define DROVER_CLI_SCENARIO_NAMES_H

#include "cli/options.h"
#include "cli/scenario.h"

/* Every NAME and TARGET of --duration, --fail, --fail-once, --offline and --from. Documents that
 * --events brings count too, so that it comes after them. False with an error that names the flag.
 */
bool scenario_names_check(const scenario *sc, const options *given, err *error);

#endif
