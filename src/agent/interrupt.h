/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.h - what a package wants done to the host after it: a restart of services or of all.
 *
 * Each command runs once for a resource id: its flag is written before it runs, since a reboot
 * leaves no time afterwards, and removed if it failed. A reboot is done when the host is in another
 * boot than the one it was asked for in; until then the agent fails, and asks for it again when it
 * is run again. */
#ifndef DROVER_AGENT_INTERRUPT_H
#define DROVER_AGENT_INTERRUPT_H

#include "agent/run.h"
#include "agent/settings.h"

#define INTERRUPT_SERVICES_MAX 1000
#define INTERRUPT_BYTES_MAX (1u << 20)

/* With the words that DATA has for them. */
#define INTERRUPT_TYPES(X)                                                                         \
    X(NODE_RESTART, "node_restart")                                                                \
    X(SERVICE_RESTART, "service_restart")                                                          \
    X(RESTART_ALL_SERVICES, "restart_all_services")                                                \
    X(NO_OP, "no_op")                                                                              \
    X(SCRIPT_INTERRUPT, "script_interrupt")

bool interrupt_run(const agent_settings *s, run_signals *signals, err *error);

#endif
