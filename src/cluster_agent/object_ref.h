/* SPDX-License-Identifier: Apache-2.0 */
/* object_ref.h - the name of one object of a cluster. Pure; texts are views. */
#ifndef DROVER_CLUSTER_AGENT_OBJECT_REF_H
#define DROVER_CLUSTER_AGENT_OBJECT_REF_H

#include <yyjson.h>

#include "base/arena.h"

typedef struct object_ref {
    str api_version; /* "apps/v1", "v1" */
    str kind;
    str namespace_; /* empty: its kind has none, or none is given */
    str name;
} object_ref;

/* The text of a member; empty when there is none. object may be NULL. */
str object_text(const yyjson_val *object, str key);
/* "apps" of "apps/v1", empty of "v1". */
str object_group(str api_version);
/* What an object calls itself; missing texts are empty. */
object_ref object_ref_of(const yyjson_val *object);
/* Texts of its own, in a. False without memory. */
bool object_ref_keep(arena *a, object_ref *r);
/* The same object, whatever version of its group it is called by. */
bool object_ref_same(const object_ref *a, const object_ref *b);
/* By group, kind, namespace and name. */
int object_ref_cmp(const object_ref *a, const object_ref *b);
/* Whether a text may stand as one part of a path: nothing in it that a URL would take for more. */
bool object_path_part(str text);
/* "Deployment.apps shop/web", "Namespace.v1 shop": as Fleet writes them. */
void object_ref_put(buf *out, const object_ref *r);

#endif
