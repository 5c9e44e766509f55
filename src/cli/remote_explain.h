/* SPDX-License-Identifier: Apache-2.0 */
/* remote_explain.h - why a resource is not moving, asked of a server.
 *
 * The answer is the server's; here it only gets its form. */
#ifndef DROVER_CLI_REMOTE_EXPLAIN_H
#define DROVER_CLI_REMOTE_EXPLAIN_H

#include "cli/client.h"

/* The first operand is the resource; --change names a deployment, --environment an environment;
 * without them the answer is about the first by name that is not done. -o text or json. */
exit_status remote_explain(const options *given);

#endif
