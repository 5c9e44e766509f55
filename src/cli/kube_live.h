/* SPDX-License-Identifier: Apache-2.0 */
/* kube_live.h - a live cluster as the text that plans go on from (sim/live.h).
 *
 * Reads only: Nodes, Skyhooks and DeploymentPolicies, and Fleet's kinds where the server has them,
 * with what the operator keeps in them of claims and attempts, or, where Drover has yet to take
 * over, with what Skyhook's own operator does. A document that cannot be read is named on standard
 * error and left out. */
#ifndef DROVER_CLI_KUBE_LIVE_H
#define DROVER_CLI_KUBE_LIVE_H

#include "cli/kube_session.h"

bool kube_live_read(kube_session *s, buf *out, err *error);

#endif
