/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_hindrance.h - what is in the way of a Bundle's deployments, as its status says.
 *
 * An engine that is given the objects of a hub knows which deployments are to be made or changed,
 * not that the hub refuses it: only the operator that tried knows, and says so in the status. Pure.
 */
#ifndef DROVER_OPERATOR_BUNDLE_HINDRANCE_H
#define DROVER_OPERATOR_BUNDLE_HINDRANCE_H

#include "engine/engine.h"

/* What a message in the status begins with that is the hub's and not an agent's. */
#define HINDRANCE_MARK "the hub refuses: "

/* Tells the engine of each message with that mark. A status lists the first clusters of all and of
 * each partition that are not ready: others stay unknown. False without memory. */
bool bundle_hindrances_tell(engine *e, const bundle *of);

#endif
