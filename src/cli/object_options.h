/* SPDX-License-Identifier: Apache-2.0 */
/* object_options.h - what commands are told of objects that they make. */
#ifndef DROVER_CLI_OBJECT_OPTIONS_H
#define DROVER_CLI_OBJECT_OPTIONS_H

#include "base/arena.h"
#include "cli/command.h"
#include "select/labels.h"

/* All of --label KEY=VALUE, as Kubernetes takes them; in a. Anything but STATUS_DONE was told. */
exit_status options_labels(const verb *v, const options *given, arena *a, label_set *ret);
/* Letters, digits and "-", as in the names of most objects. */
bool is_object_name(str text);

#endif
