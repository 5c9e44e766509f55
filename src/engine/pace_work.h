/* SPDX-License-Identifier: Apache-2.0 */
/* pace_work.h - which version of each deployment a pace brings out, and that another one is an
 * edit: stops and halts are lifted by it. */
#ifndef DROVER_ENGINE_PACE_WORK_H
#define DROVER_ENGINE_PACE_WORK_H

#include "engine/chain.h"

/* Notes what version a target, or the groups of a resource in a bracket, have to do. */
void pace_work_target(releases *r, uint32_t p, uint32_t t);
void pace_work_resource(releases *r, uint32_t p, uint32_t res);
/* Whether it is another one than before; asked once a step. And whether that version would be. */
bool pace_work_take(rel_pace *p);
bool pace_work_edits(const releases *r, const rel_pace *p, uint32_t t, uint32_t v);
void pace_work_forget(rel_pace *p);
bool pace_work_compare(const releases *r, const rel_pace *p, err *error);
void pace_work_save(const releases *r, const rel_pace *p, buf *out);
void pace_work_restore(releases *r, uint32_t p, yyjson_val *saved);

#endif
