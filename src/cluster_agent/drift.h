/* SPDX-License-Identifier: Apache-2.0 */
/* drift.h - what of an applied object is no longer as it was applied.
 *
 * Pure: the wanted object and the live one come in. Only what the manifest says is compared: fields
 * that defaults or other controllers add are no drift, and quantities, empty values and lists that
 * are keyed by name are compared by what they mean. What still differs may be in another form only:
 * the wanted one may be what the server would make of the manifest now. options.diff.comparePatches
 * takes parts out. The form is Fleet's modifiedStatus. */
#ifndef DROVER_CLUSTER_AGENT_DRIFT_H
#define DROVER_CLUSTER_AGENT_DRIFT_H

#include "base/arena.h"
#include "base/err.h"
#include "cluster_agent/object_ref.h"

#define DRIFT_PATCH_BYTES_MAX 1024u

typedef struct drift {
    bool modified;
    str patch; /* what must change to be as wanted: JSON, cut when long; of a missing one empty */
} drift;

typedef struct drift_facts {
    const yyjson_val *wanted;
    const yyjson_val *live; /* NULL: it is missing */
    const yyjson_val *diff; /* options.diff; may be NULL */
} drift_facts;

/* False without memory, or when a comparePatch is wrong. */
bool drift_find(arena *a, const drift_facts *f, drift *ret, err *error);

#define DRIFT_KINDS(X)                                                                             \
    X(MODIFIED, "modified") X(MISSING, "missing") X(EXTRA, "extra") X(FOREIGN, "not owned by us")
typedef enum drift_kind {
#define X(kind, text) DRIFT_##kind,
    DRIFT_KINDS(X)
#undef X
} drift_kind;
/* Appends an entry of status.modifiedStatus. */
void modified_put(buf *out, const object_ref *ref, drift_kind kind, str patch);

#endif
