/* SPDX-License-Identifier: Apache-2.0 */
/* acts.h - what the commands share by which people act: pause, approve, retry, ... */
#ifndef DROVER_CLI_ACTS_H
#define DROVER_CLI_ACTS_H

#include "cli/client.h"

/* Sends the act that has the verb's name. operand: what its operand means, such as "deployment". */
exit_status act_run(const verb *v, const options *given, const char *operand);

#define OPTION_DEPLOYMENT {.name = "deployment", .argument = "NAME", .help = "only of this one"}
#define OPTION_ENVIRONMENT {.name = "environment", .argument = "NAME", .help = "only in this one"}
#define OPTION_RESOURCE {.name = "resource", .argument = "NAME", .help = "only on this one"}
#define OPTION_VERSION                                                                             \
    {.name = "version",                                                                            \
     .argument = "VERSION",                                                                        \
     .help = "a Version's name, or with --deployment its tag"}
#define OPTION_REASON                                                                              \
    {.name = "reason", .argument = "TEXT", .help = "is shown to everybody who asks why"}
#define OPTION_UNTIL                                                                               \
    {.name = "until",                                                                              \
     .argument = "TIME",                                                                           \
     .help = "when it ends: RFC 3339, or a duration from now such as 2h; for ever unless told"}

#endif
