/* SPDX-License-Identifier: Apache-2.0 */
/* zone.h - how far a time zone is east of UTC at a moment.
 *
 * Reads the system's compiled zone files (RFC 8536). libical reads them too, but turns them into
 * recurrence rules on the way and is then hours off for some zones and years.
 *
 * A zone is read once and kept, without the heap, as long as the program runs: whoever asks again
 * gets the same answers, whatever becomes of the file, and no file is opened for it. Documents that
 * name a zone have it read when they are checked, so that no decision has to wait for a file; only
 * a name that CEL makes up while it runs is looked for then. One thread at a time. */
#ifndef DROVER_SELECT_ZONE_H
#define DROVER_SELECT_ZONE_H

#include "base/str.h"

/* More than the IANA database has names; what comes after so many is not known. */
#define ZONES_MAX 768u

typedef struct time_zone time_zone;

/* NULL for a name that is no zone. "UTC" is always one. */
const time_zone *zone_named(str name);
/* Seconds east of UTC; at: since 1970 UTC, also far in the future. */
int64_t zone_offset(const time_zone *z, int64_t at);

/* For tests: how many files were looked for so far. */
uint64_t zone_lookups(void);

#endif
