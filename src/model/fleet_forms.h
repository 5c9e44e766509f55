/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_forms.h - what the options of a Bundle look like, which are kept as they are written.
 *
 * They go to agents and into identities to the byte, and so are never read into structs; but a
 * "false" in quotes would be true there. Only what Fleet knows is looked at: more may come. */
#ifndef DROVER_MODEL_FLEET_FORMS_H
#define DROVER_MODEL_FLEET_FORMS_H

#include "model/fleet.h"
#include "model/shape.h"

#define X(member, json) extern const field form_##member;
BUNDLE_OPTIONS(X)
#undef X
extern const field form_depends_on, form_resources, form_helm_op_options;

#endif
