/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_hindrance.h - what is in the way of a Bundle's deployments, as its status says.
 *
 * An engine that is given the objects of a hub knows which deployments are to be made, not that the
 * hub refuses to make them: only the operator that tried knows, and says so in the status. Pure. */
#ifndef DROVER_OPERATOR_BUNDLE_HINDRANCE_H
#define DROVER_OPERATOR_BUNDLE_HINDRANCE_H

#include "engine/engine.h"

/* Tells the engine what the status says of clusters that have no deployment yet. A status lists the
 * first such clusters of all and of each partition: others stay unknown. False without memory. */
bool bundle_hindrances_tell(engine *e, const bundle *of);

#endif
