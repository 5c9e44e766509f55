/* SPDX-License-Identifier: Apache-2.0 */
/* lint_parts.h - the parts of lint.h, one a vocabulary. Internal to src/model. */
#ifndef DROVER_MODEL_LINT_PARTS_H
#define DROVER_MODEL_LINT_PARTS_H

#include "base/strmap.h"
#include "model/object.h"

/* The objects of one kind, in their order, and by name. */
typedef struct lint_kind {
    const object **at;
    size_t len;
    strmap names; /* -> index in at; the first of that name */
} lint_kind;

#define LINT_KINDS (KIND_FLEET_YAML + 1)

typedef struct lint {
    const object_list *objects;
    problems *found;
    arena *arena; /* until lint_all returns */
    bool no_memory;
    lint_kind kinds[LINT_KINDS];
} lint;

/* The next object of that kind from *index on, or NULL; *index is then behind it. */
const object *lint_next(const lint *l, object_kind kind, size_t *index);
/* The object of that kind and name, or NULL. */
const object *lint_find(const lint *l, object_kind kind, str name);
size_t lint_count(const lint *l, object_kind kind);

/* Objects that programs made have no document: nothing is reported of them. */
void lint_error(lint *l, const place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void lint_warning(lint *l, const place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The place of the object as a whole. */
place lint_place(const object *o);
/* The place of "spec", and of a member in it. up must stay where it is. */
#define LINT_SPEC(o)                                                                               \
    place root_at = lint_place(o);                                                                 \
    place spec_at = place_key(&root_at, STR("spec"))

void lint_skyhooks(lint *l);
void lint_fleets(lint *l);
void lint_releases(lint *l);
/* For bundles, fleet.yaml and rules alike. */
void lint_rollout_strategy(lint *l, const place *at, const rollout_strategy *s);
/* For policies and rules alike. Without objects of the kind "members" nothing is counted. */
void lint_policy_spec(lint *l, const place *at, const deployment_policy_spec *s,
                      object_kind members);

#endif
