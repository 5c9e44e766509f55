/* SPDX-License-Identifier: Apache-2.0 */
/* older_record.h - what Skyhook's own operator left behind, as the record that Drover goes on from.
 *
 * That operator keeps batches, stops and nodeOrderOffset in the Skyhook's status, and which keys of
 * configMaps the last changes were about. Drover writes over all of it, so it is read once, before
 * the first decision, where the status has no record of Drover's. Pure. */
#ifndef DROVER_OPERATOR_OLDER_RECORD_H
#define DROVER_OPERATOR_OLDER_RECORD_H

#include <yyjson.h>

#include "model/skyhook.h"

/* Whether the status was written by an operator that kept no record in it. */
bool older_wrote(yyjson_val *status);
/* The members of such a status that the record is made of. */
void older_status_put(buf *out, yyjson_val *status);

/* The record (engine_keep_change), for the Skyhook as it is now. */
void older_record_put(buf *out, yyjson_val *status, const skyhook *of);

#endif
