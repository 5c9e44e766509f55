/* SPDX-License-Identifier: Apache-2.0 */
/* shape_value.h - reading single values into the members of a struct.
 *
 * Internal to src/model: shape_read.c walks objects and calls this for everything that is no object
 * of fields itself. */
#ifndef DROVER_MODEL_SHAPE_VALUE_H
#define DROVER_MODEL_SHAPE_VALUE_H

#include "model/shape.h"

/* Reads the value at the place into the member, for all types from BOOL to RAW. */
void value_read(reader *r, const field *f, const place *at, void *member);
/* Sets the default that the field names, if any. The member is zero. */
void value_default(reader *r, const field *f, const place *at, void *member);

/* Reports "found X, allowed Y" with what the field allows. */
/* Whether a value that stays as it is looks as a field allows: the types of what is known in it,
 * and nothing of what is not. */
void value_look(reader *r, const field *as, const place *at);
void value_refuse(reader *r, const field *f, const place *at);
#define VALUE_DESCRIBED_BYTES 160
/* "text \"abc\"", "number 5", "an object": what a value is, for messages. */
void value_describe(const yyjson_val *v, char out[VALUE_DESCRIBED_BYTES]);

#endif
