/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_acts.h - pause, resume and approve for Bundles of a hub.
 *
 * A pause is the Bundle's own "paused", which Fleet knows, too. The others are asked of the
 * operator by an annotation (operator/act_request.h). No rule about rollouts is here. */
#ifndef DROVER_CLI_BUNDLE_ACTS_H
#define DROVER_CLI_BUNDLE_ACTS_H

#include "cli/acts.h"
#include "cli/kube_session.h"
#include "engine/fact.h"

#define OPTIONS_BUNDLE                                                                             \
    {.name = "bundle",                                                                             \
     .argument = "NAMESPACE/NAME",                                                                 \
     .help = "a Bundle of a hub, instead of what a server has"},                                   \
        OPTION_KUBECONFIG, OPTION_CONTEXT

/* What --bundle names is to be paused, resumed or approved. */
exit_status bundle_act_run(const verb *v, const options *given, act_kind act);

#endif
