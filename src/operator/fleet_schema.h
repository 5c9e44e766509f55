/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_schema.h - what a hub's own definition of Bundles drops of a rolloutStrategy.
 *
 * Pure. The API server prunes fields that a definition does not know, without a word: Fleet's own
 * knows nothing of what Drover adds. Those fields are also read from an annotation. */
#ifndef DROVER_OPERATOR_FLEET_SCHEMA_H
#define DROVER_OPERATOR_FLEET_SCHEMA_H

#include <yyjson.h>

#include "base/str.h"

/* Where the API server describes the kinds of Fleet. */
#define FLEET_SCHEMA_COLLECTION "/openapi/v3/apis/fleet.cattle.io"
#define FLEET_SCHEMA_NAME "v1alpha1"

/* Appends the fields that are dropped, parted by ", ". Nothing: none is, or openapi does not say.
 */
void fleet_schema_pruned(yyjson_val *openapi, buf *out);

#endif
