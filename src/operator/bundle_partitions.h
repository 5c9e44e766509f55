/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_partitions.h - what the partitions of a Bundle are called, as the object itself says: in
 * the record of its rollout, and in its strategy, which the next rollout begins with. Pure. */
#ifndef DROVER_OPERATOR_BUNDLE_PARTITIONS_H
#define DROVER_OPERATOR_BUNDLE_PARTITIONS_H

#include "base/arena.h"
#include "base/err.h"
#include "model/values.h"

/* The annotation of a Bundle that has the engine's record. */
#define BUNDLE_RECORD "drover.dev/rollout"

/* Whether the Bundle, as the API server gives it, has a partition of that name. False with an error
 * that says which it has. */
bool bundle_has_partition(arena *a, yyjson_val *json, str name, err *error);

#endif
