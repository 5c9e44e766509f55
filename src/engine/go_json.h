/* SPDX-License-Identifier: Apache-2.0 */
/* go_json.h - JSON as Go's encoding/json writes it, byte for byte.
 *
 * Fleet's identities are hashes of such text. Keys of maps are sorted, markup characters are
 * escaped, numbers have their shortest form. Pure; knows no kind. */
#ifndef DROVER_ENGINE_GO_JSON_H
#define DROVER_ENGINE_GO_JSON_H

#include <yyjson.h>

#include "base/str.h"
#include "base/vec.h"

/* The text of a value that is one; else ptr is NULL. */
str go_str(const yyjson_val *value);
/* The member of an object, or NULL; value may be NULL. */
yyjson_val *go_member(const yyjson_val *object, str key);

/* A text with its quotes. */
void go_text(buf *out, str text);
void go_real(buf *out, double number);
/* Any value; an object is a map. */
void go_value(buf *out, const yyjson_val *value);

/* What "omitempty" leaves out. Objects stay: they are pointers to structs in Go; maps are named
 * where they are written. */
bool go_is_zero(const yyjson_val *v);

/* Members of objects in the order of their keys. */
typedef struct go_pair {
    str key;
    yyjson_val *value;
} go_pair;
typedef VEC(go_pair) go_pairs;
/* Appends the members of an object; anything else has none. False without memory. */
bool go_pairs_add(go_pairs *pairs, const yyjson_val *object);
void go_pairs_sort(go_pairs *pairs);

#endif
