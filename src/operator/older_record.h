/* SPDX-License-Identifier: Apache-2.0 */
/* older_record.h - what Skyhook's own operator left behind, as the record that Drover goes on from.
 *
 * That operator keeps batches, stops and nodeOrderOffset in the Skyhook's status, and which keys of
 * a configMap its nodes were given in the status and in the package's ConfigMap. Drover writes over
 * all of it, so it is read once, before the first decision, where the status has no record of
 * Drover's. Pure. */
#ifndef DROVER_OPERATOR_OLDER_RECORD_H
#define DROVER_OPERATOR_OLDER_RECORD_H

#include <yyjson.h>

#include "model/skyhook.h"

/* Whether the status was written by an operator that kept no record in it. */
bool older_wrote(yyjson_val *status);
/* The members of such a status that the record is made of. */
void older_status_put(buf *out, yyjson_val *status);

/* What a package's ConfigMap holds, as it is remembered. False: it is not this Skyhook's. */
bool older_config_put(buf *out, yyjson_val *config_map, str owner_uid);

/* The record (engine_keep_change). configs: of each package of the Skyhook, in their order, what
 * older_config_put had of its ConfigMap; NULL: there is none, or nobody looked. The whole may be
 * NULL. */
void older_record_put(buf *out, yyjson_val *status, const skyhook *of, const char *const *configs);

#endif
