/* SPDX-License-Identifier: Apache-2.0 */
/* cel_zone.h - how far a time zone is east of UTC at a moment.
 *
 * Reads the system's compiled zone files (RFC 8536). libical reads them too, but turns them into
 * recurrence rules on the way and is then hours off for some zones and years. The last zones are
 * kept, without the heap: one thread at a time. */
#ifndef DROVER_SELECT_CEL_ZONE_H
#define DROVER_SELECT_CEL_ZONE_H

#include "base/str.h"

/* False for a name that is no zone. seconds since 1970 UTC, also far in the future. */
bool cel_zone_offset(str name, int64_t seconds, int64_t *ret_offset);

#endif
