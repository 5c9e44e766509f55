/* SPDX-License-Identifier: Apache-2.0 */
/* release_reduce.h - which reasons of a release target need not be said: those that stand there
 * already, and those that others imply.
 *
 * Pure, and knows reasons only: neither targets nor rules. */
#ifndef DROVER_ENGINE_RELEASE_REDUCE_H
#define DROVER_ENGINE_RELEASE_REDUCE_H

#include "engine/reason.h"

/* Leaves out what need not be said. False without memory. */
bool reasons_reduce(reasons *list, arena *a);
/* Whether a reason names everybody that another one does. */
bool reason_names_all(const reason *r, const reason *other);

#endif
