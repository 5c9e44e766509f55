/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_values.h - Helm values that lie beside a Bundle. Where Fleet's own programs make Bundles,
 * spec.valuesHash says that there are values in a Secret of the Bundle's name, and which.
 *
 * Pure: no requests. */
#ifndef DROVER_OPERATOR_BUNDLE_VALUES_H
#define DROVER_OPERATOR_BUNDLE_VALUES_H

#include <yyjson.h>

#include "base/arena.h"
#include "base/err.h"

/* The Bundle as it would be if it had its values itself, in a. NULL with an error: the Secret's are
 * not those of valuesHash, or are no values. */
yyjson_val *bundle_with_values(arena *a, yyjson_val *json, yyjson_val *secret, err *error);

#endif
