/* SPDX-License-Identifier: Apache-2.0 */
/* scope.h - documents as expressions see them: resource, environment, deployment.
 *
 * Maps of id, name, metadata (the labels), createdAt when it is given, and of a resource also
 * identifier, kind, version and config. Everything is made in the arena and points into the object.
 * For questions about documents alone; the engine has a view of its own that follows its state. */
#ifndef DROVER_MODEL_SCOPE_H
#define DROVER_MODEL_SCOPE_H

#include "model/object.h"
#include "select/cel.h"

/* An error value without memory. */
cel_value scope_resource(arena *a, const object *o);
cel_value scope_environment(arena *a, const object *o);
cel_value scope_deployment(arena *a, const object *o);

#endif
