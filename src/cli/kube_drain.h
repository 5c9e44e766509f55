/* SPDX-License-Identifier: Apache-2.0 */
/* kube_drain.h - which pod and PodDisruptionBudget a drain of a live cluster waits for.
 *
 * What an operator keeps of a drain is that it is under way; who is in its way only the cluster
 * knows. Reads the node's pods and all budgets, if a drain of that node is under way, and tells the
 * engine. What may not be read is named on standard error and left out. Decides nothing. */
#ifndef DROVER_CLI_KUBE_DRAIN_H
#define DROVER_CLI_KUBE_DRAIN_H

#include "cli/options.h"
#include "engine/engine.h"

/* documents: those of the cluster. False without memory. */
bool kube_drain_tell(const options *given, engine *e, const object_list *documents, str target);

#endif
