/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_patch.h - what must be written to make one JSON object another: RFC 7386, the merge patch.
 *
 * Pure. Members that are gone become null; lists are replaced whole. One change, one write: nothing
 * differs, nothing is written. */
#ifndef DROVER_OPERATOR_BUNDLE_PATCH_H
#define DROVER_OPERATOR_BUNDLE_PATCH_H

#include <yyjson.h>

#include "base/str.h"

/* Appends the patch from one object to the other; before may be NULL. False, and nothing appended,
 * when they are equal. */
bool merge_patch_put(buf *out, const yyjson_val *before, const yyjson_val *after);

#endif
