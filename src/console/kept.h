/* SPDX-License-Identifier: Apache-2.0 */
/* kept.h - Nodes, Skyhooks and policies as they were last seen, as documents.
 *
 * For what the engine does not keep: labels to group by, and documents to plan with. Of each object
 * only what those need is kept; managedFields and images are long and of no use. */
#ifndef DROVER_CONSOLE_KEPT_H
#define DROVER_CONSOLE_KEPT_H

#include <yyjson.h>

#include "base/strmap.h"
#include "operator/node_shell.h"

typedef struct kept_object {
    char *name;
    buf document;    /* one line of JSON */
    buf labels;      /* JSON */
    uint64_t digest; /* of what people change, not of what Drover writes */
    char *acts;      /* Skyhooks: what is asked of the operator; NULL: nothing */
    char version[24];
} kept_object;

typedef struct kept {
    strmap of[SHELL_SKYHOOK + 1]; /* by kind: name -> kept_object */
} kept;

/* True if it is new, or something about it changed that people decide. Other kinds than the three
 * are not kept. */
bool kept_seen(kept *k, shell_kind kind, yyjson_val *json);
/* False if it was not there. */
bool kept_gone(kept *k, shell_kind kind, str name);
const kept_object *kept_find(const kept *k, shell_kind kind, str name);
static inline const kept_object *kept_at(const kept *k, shell_kind kind, size_t i)
{
    return (const kept_object *)(uintptr_t)k->of[kind].entries[i].value;
}
const char *kept_kind_text(shell_kind kind);
void kept_clear(kept *k);

#endif
