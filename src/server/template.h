/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - the {{...}} in what a job runs.
 *
 * Text goes in, text comes out: what a value holds is never looked at again, neither for further
 * {{...}} nor by a shell. Which names there are is model/release.h's (template_check). */
#ifndef DROVER_SERVER_TEMPLATE_H
#define DROVER_SERVER_TEMPLATE_H

#include "model/object.h"

typedef struct template_values {
    str deployment;
    str environment;
    str version;                  /* the tag */
    const object *resource;       /* NULL: gone, its names are then errors */
    const object *version_object; /* NULL: gone, its config is then an error */
} template_values;

/* The expanded text, in a. A label or key that is not there is an error. A config value that is no
 * text is written as JSON. ptr is NULL with an error. */
str template_expand(arena *a, str text, const template_values *values, err *error);

#endif
