/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - what yyjson leaves to its users: depth, keys that stand twice, and whose memory it is.
 *
 * Internal to src/model. */
#ifndef DROVER_MODEL_JSON_H
#define DROVER_MODEL_JSON_H

#include <yyjson.h>

#include "base/arena.h"
#include "base/err.h"

/* yyjson's memory through mem_*. */
extern const yyjson_alc json_memory;

#define JSON_FAULTS(X) X(NONE, "") X(DEPTH, "depth") X(DUPLICATE, "duplicate") X(MEMORY, "memory")

typedef enum json_fault {
#define X(fault, text) JSON_##fault,
    JSON_FAULTS(X)
#undef X
} json_fault;

/* Looks at every value under root once. On a fault *ret_at is the value that is too deep or the key
 * that stands there a second time. */
json_fault json_check(const yyjson_val *root, const yyjson_val **ret_at);

/* yyjson's own accessors do not take values that are const. */
static inline yyjson_type json_type(const yyjson_val *v)
{
    return (yyjson_type)(v->tag & YYJSON_TYPE_MASK);
}

static inline bool json_is(const yyjson_val *v, yyjson_type type)
{
    return json_type(v) == type;
}

static inline bool json_is_container(const yyjson_val *v)
{
    return json_type(v) >= YYJSON_TYPE_ARR;
}

static inline bool json_is_object(const yyjson_val *v)
{
    return json_is(v, YYJSON_TYPE_OBJ);
}

static inline bool json_is_array(const yyjson_val *v)
{
    return json_is(v, YYJSON_TYPE_ARR);
}

static inline bool json_is_text(const yyjson_val *v)
{
    return json_is(v, YYJSON_TYPE_STR);
}

static inline bool json_is_true(const yyjson_val *v)
{
    return (v->tag & YYJSON_TAG_MASK) == (YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_TRUE);
}

static inline yyjson_subtype json_number(const yyjson_val *v)
{
    return (yyjson_subtype)(v->tag & YYJSON_SUBTYPE_MASK);
}

/* Elements of an array, members of an object, bytes of a text. */
static inline size_t json_len(const yyjson_val *v)
{
    return (size_t)(v->tag >> YYJSON_TAG_BIT);
}

/* The text of a string. */
static inline str json_str(const yyjson_val *text)
{
    return (str){text->uni.str, json_len(text)};
}

/* The member of that name, or NULL. */
const yyjson_val *json_member(const yyjson_val *object, str name);
/* The one that stands first in the object, and the next: a key, whose value follows it. */
static inline const yyjson_val *json_first(const yyjson_val *container)
{
    return container + 1;
}

static inline const yyjson_val *json_next(const yyjson_val *value)
{
    size_t bytes = json_is_container(value) ? value->uni.ofs : sizeof *value;
    return (const yyjson_val *)(const void *)((const char *)value + bytes);
}

/* An object without members. */
extern const yyjson_val json_empty_object;

#endif
