/* SPDX-License-Identifier: Apache-2.0 */
/* status_record.h - a Skyhook's record (engine_keep_change) as it stands in status.drover.
 *
 * Who holds a claim stands in the status by name as it is: members and retrying of each
 * compartment's batchState. With thousands of nodes names are what fills the object, so the record
 * goes without them there: what it has of claims stands in the order of those lists, and a hash of
 * the names, "names", tells whether they are the ones it was written with. Pure. */
#ifndef DROVER_OPERATOR_STATUS_RECORD_H
#define DROVER_OPERATOR_STATUS_RECORD_H

#include <yyjson.h>

#include "base/arena.h"
#include "base/str.h"

/* record: as the engine keeps it, parsed. out fails without memory. */
void status_record_put(arena *a, yyjson_val *record, buf *out);
/* From a Skyhook's status, as engine_restore reads it: also records of before, which have all names
 * themselves. Nothing, if there is no record. Where somebody else changed the names, those that
 * stand there hold the claims, and the numbers are not taken for theirs. */
void status_record_whole(arena *a, yyjson_val *status, buf *out);

#endif
