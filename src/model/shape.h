/* SPDX-License-Identifier: Apache-2.0 */
/* shape.h - the description of a kind's fields, written once.
 *
 * A shape is a table of fields of one C struct. Reading, defaults, validation, writing and the CRD
 * schema all come from it; only what concerns several fields together is code, named in the shape
 * as "check". Only src/model makes shapes; others may walk them. */
#ifndef DROVER_MODEL_SHAPE_H
#define DROVER_MODEL_SHAPE_H

#include <stddef.h>

#include "model/document.h"
#include "model/expression.h"
#include "model/values.h"

/* X(type, type of the C member, what is allowed in words). "..." stands for an own type. */
#define FIELD_TYPES(X)                                                                             \
    X(BOOL, bool, "true or false")                                                                 \
    X(OPT_BOOL, opt_bool, "true or false")                                                         \
    X(INT, int64_t, "a whole number")                                                              \
    X(OPT_INT, opt_int, "a whole number")                                                          \
    X(DECIMAL, thousandths, "a number")                                                            \
    X(TEXT, str, "text")                                                                           \
    X(ENUM, unsigned, "one of a few words")                                                        \
    X(ENUM_SET, uint32_t, "a list of words")                                                       \
    X(DURATION, opt_duration, "a duration such as 90s, 5m, 1h30m or 7d")                           \
    X(TIME, opt_moment, "a time such as 2026-01-31T12:00:00Z")                                     \
    X(QUANTITY, quantity, "a quantity such as 500m or 1Gi")                                        \
    X(INT_OR_PERCENT, int_or_percent, "a whole number or a percentage such as \"25%\"")            \
    X(SELECTOR, label_query, "a label selector (matchLabels, matchExpressions)")                   \
    X(EXPRESSION, expression, "a CEL expression")                                                  \
    X(TEXT_LIST, str_list, "a list of texts")                                                      \
    X(TEXT_MAP, label_set, "an object whose values are texts")                                     \
    X(LABELS, label_set, "an object whose values are texts")                                       \
    X(RAW, raw_json, "anything")                                                                   \
    X(STRUCT, (its shape), "an object")     /* in place; absent reads as {} */                     \
    X(OBJECT, (pointer to it), "an object") /* NULL when absent */                                 \
    X(OBJECT_LIST, (LIST), "a list of objects")                                                    \
    X(OBJECT_MAP, (LIST), "an object whose values are objects") /* sorted by key */                \
    X(INLINE, (its shape), "") /* the fields of another shape, in the same object */               \
    X(HEADER, (none), "")      /* known, and none of the struct's business: apiVersion, kind */

typedef enum field_type {
#define X(type, c, text) FIELD_##type,
    FIELD_TYPES(X)
#undef X
} field_type;

enum {
    FIELD_REQUIRED = 1, /* absent is an error */
    FIELD_ALWAYS = 2,   /* written even when empty or zero */
    FIELD_OURS = 4,     /* Drover's addition to somebody else's kind */
    FIELD_FILLED = 8,   /* text and lists: empty is an error */
};

/* The words of an enum, by number. An empty word is "absent" and never allowed in a document. */
typedef struct word_list {
    const str *at;
    size_t len;
} word_list;

/* A rule for text: the regular expression for schemas, and the function that holds it. */
typedef struct text_rule {
    const char *pattern; /* NULL: none can say it */
    const char *allowed; /* in words */
    bool (*valid)(str text, err *error);
} text_rule;

typedef struct shape shape;

typedef struct field {
    str name; /* in JSON; empty for INLINE */
    field_type type;
    unsigned flags;
    size_t offset;
    bool limited; /* numbers: min and max count */
    int64_t min;
    int64_t max;
    const char *otherwise; /* the default, as text; NULL: zero */
    const word_list *words;
    const shape *shape;
    const struct field *as; /* RAW: it stays as it is, but must look like this; NULL: anything */
    const text_rule *rule;
    expression_scope scope;
    unsigned most;        /* elements of a list or map, bytes of a text; 0: no limit of its own */
    const char *list_key; /* lists: the field that no two elements have in common */
    const char *schema;   /* members of the JSON schema, where the type says too little */
    const char *doc;
} field;

/* What concerns several fields together, as a schema can say it: part of the shape's check. */
typedef struct shape_rule {
    const char *cel; /* over "self" */
    const char *message;
} shape_rule;

#define OPENNESS(X)                                                                                \
    X(CLOSED, "ours: an unknown field is an error")                                                \
    X(KEPT, "others': an unknown field is kept and warned of")                                     \
    X(VIEW, "others': the rest is not looked at")

typedef enum openness {
#define X(openness, text) SHAPE_##openness,
    OPENNESS(X)
#undef X
} openness;

/* What a read needs besides the value. */
typedef struct reader {
    arena *arena;
    expression_list *expressions; /* NULL where no shape has any */
    problems *found;
    bool closed; /* one of our kinds: unknown fields are errors also in shapes shared with others */
    uint64_t errors; /* reported by this reader so far */
    bool no_memory;
} reader;

/* Looks at a struct that was read, with its place. Reports by reader_error and reader_warning. */
typedef void shape_check(reader *r, const place *at, void *value);

struct shape {
    const char *name; /* of the C type, for schemas */
    size_t size;
    const field *fields;
    size_t field_count;
    openness open;
    size_t kept_offset; /* KEPT: of its kept_fields */
    size_t key_offset;  /* elements of an OBJECT_MAP: of the str that takes the key */
    const field *whole; /* the value is not an object of fields but this one field */
    shape_check *check;
    const shape_rule *rules; /* the same in CEL, for schemas */
    size_t rule_count;
    bool atomic; /* one writer has all of it: a server need not note who wrote which part */
};

/* Fills *out, which need not be zeroed, from the value at the place. False when an error was
 * reported: *out is then incomplete but harmless. */
bool shape_read(reader *r, const shape *s, const place *at, void *out);
void reader_error(reader *r, const place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void reader_warning(reader *r, const place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Notes a failed allocation. Returns false. */
bool reader_memory(reader *r);

/* A struct from JSON text that stands in a text, such as an annotation: *ret is s->size bytes, and
 * untouched on failure. The first problem is the error. */
bool shape_parse(arena *a, const shape *s, str text, void *ret, err *error);

/* Writes compact JSON. Fields that equal their default are left out unless they say otherwise. */
#define SHAPE_WRITE_GO_ESCAPES 1u /* "<", ">", "&" as Go's encoder writes them */
void shape_write(const shape *s, const void *value, buf *out, unsigned flags);
/* Whether two structs are written the same. False also without memory. */
bool shape_equal(const shape *s, const void *a, const void *b);

/* ---- for the files that hold tables ---- */

/* The place of a member, with its type checked by the compiler. */
#define MEMBER(struct_type, member, c_type)                                                        \
    (offsetof(struct_type, member) +                                                               \
     0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((struct_type *)0)->member), c_type)  \
                         ? 1                                                                       \
                         : -1]))
#define BASE(json, t) .name = {json, sizeof(json) - 1}, .type = FIELD_##t
#define F_BOOL(s, json, m, ...) {BASE(json, BOOL), .offset = MEMBER(s, m, bool), __VA_ARGS__}
#define F_OPT_BOOL(s, json, m, ...)                                                                \
    {BASE(json, OPT_BOOL), .offset = MEMBER(s, m, opt_bool), __VA_ARGS__}
#define F_INT(s, json, m, ...) {BASE(json, INT), .offset = MEMBER(s, m, int64_t), __VA_ARGS__}
#define F_OPT_INT(s, json, m, ...)                                                                 \
    {BASE(json, OPT_INT), .offset = MEMBER(s, m, opt_int), __VA_ARGS__}
#define F_DECIMAL(s, json, m, ...)                                                                 \
    {BASE(json, DECIMAL), .offset = MEMBER(s, m, thousandths), __VA_ARGS__}
#define F_TEXT(s, json, m, ...) {BASE(json, TEXT), .offset = MEMBER(s, m, str), __VA_ARGS__}
#define F_ENUM(s, json, m, w, ...)                                                                 \
    {BASE(json, ENUM), .words = (w),                                                               \
     .offset =                                                                                     \
         offsetof(s, m) + 0 * sizeof(char[sizeof(((s *)0)->m) == sizeof(unsigned) ? 1 : -1]),      \
     __VA_ARGS__}
#define F_ENUM_SET(s, json, m, w, ...)                                                             \
    {BASE(json, ENUM_SET), .words = (w), .offset = MEMBER(s, m, uint32_t), __VA_ARGS__}
#define F_DURATION(s, json, m, ...)                                                                \
    {BASE(json, DURATION), .offset = MEMBER(s, m, opt_duration), __VA_ARGS__}
#define F_TIME(s, json, m, ...) {BASE(json, TIME), .offset = MEMBER(s, m, opt_moment), __VA_ARGS__}
#define F_QUANTITY(s, json, m, ...)                                                                \
    {BASE(json, QUANTITY), .offset = MEMBER(s, m, quantity), __VA_ARGS__}
#define F_AMOUNT(s, json, m, ...)                                                                  \
    {BASE(json, INT_OR_PERCENT), .offset = MEMBER(s, m, int_or_percent), __VA_ARGS__}
#define F_SELECTOR(s, json, m, ...)                                                                \
    {BASE(json, SELECTOR), .offset = MEMBER(s, m, label_query), __VA_ARGS__}
#define F_CEL(s, json, m, variables, ...)                                                          \
    {BASE(json, EXPRESSION), .scope = SCOPE_##variables, .offset = MEMBER(s, m, expression),       \
     __VA_ARGS__}
#define F_TEXT_LIST(s, json, m, ...)                                                               \
    {BASE(json, TEXT_LIST), .offset = MEMBER(s, m, str_list), __VA_ARGS__}
#define F_TEXT_MAP(s, json, m, ...)                                                                \
    {BASE(json, TEXT_MAP), .offset = MEMBER(s, m, label_set), __VA_ARGS__}
#define F_LABELS(s, json, m, ...)                                                                  \
    {BASE(json, LABELS), .offset = MEMBER(s, m, label_set), __VA_ARGS__}
#define F_RAW(s, json, m, ...) {BASE(json, RAW), .offset = MEMBER(s, m, raw_json), __VA_ARGS__}
#define F_STRUCT(s, json, m, of, ...)                                                              \
    {BASE(json, STRUCT), .shape = (of), .offset = offsetof(s, m), __VA_ARGS__}
#define F_OBJECT(s, json, m, of, ...)                                                              \
    {BASE(json, OBJECT), .shape = (of), .offset = offsetof(s, m), __VA_ARGS__}
#define F_LIST(s, json, m, of, ...)                                                                \
    {BASE(json, OBJECT_LIST), .shape = (of), .offset = offsetof(s, m), __VA_ARGS__}
#define F_MAP(s, json, m, of, ...)                                                                 \
    {BASE(json, OBJECT_MAP), .shape = (of), .offset = offsetof(s, m), __VA_ARGS__}
#define F_INLINE(s, m, of) {BASE("", INLINE), .shape = (of), .offset = offsetof(s, m)}
#define F_IGNORED(json) {BASE(json, HEADER)}
#define BETWEEN(low, high) .limited = true, .min = (low), .max = (high)
#define AT_LEAST(low) BETWEEN(low, INT64_MAX)
#define REQUIRED .flags = FIELD_REQUIRED
#define OURS .flags = FIELD_OURS
#define OTHERWISE(text) .otherwise = (text)
#define DOC(text) .doc = (text)
#define AT_MOST(number) .most = (number)

/* SHAPE_OF(skyhook_spec, spec_fields) names the type and the table. */
#define SHAPE_OF(c_type, table)                                                                    \
    .name = #c_type, .size = sizeof(c_type), .fields = (table),                                    \
    .field_count = sizeof(table) / sizeof((table)[0])

#define RULES(table) .rules = (table), .rule_count = sizeof(table) / sizeof((table)[0])
#define KEPT_IN(c_type) .open = SHAPE_KEPT, .kept_offset = MEMBER(c_type, kept, kept_fields)

/* WORDS(interrupt_types, INTERRUPT_TYPES) makes the word_list of an X-macro. */
#define WORD_ENTRY(name, text) {text, sizeof(text) - 1},
#define WORDS(list, X_MACRO)                                                                       \
    static const str list##_at[] = {X_MACRO(WORD_ENTRY)};                                          \
    static const word_list list = {list##_at, sizeof list##_at / sizeof list##_at[0]}

/* Shapes that several files use. */
extern const shape metadata_shape;
extern const shape condition_shape;
extern const shape toleration_shape;
extern const shape deployment_policy_spec_shape;
extern const shape rollout_strategy_shape;
extern const shape skyhook_shape;
extern const shape deployment_policy_shape;
extern const shape bundle_shape;
extern const shape bundle_deployment_shape;
extern const shape cluster_shape;
extern const shape cluster_group_shape;
extern const shape bundle_namespace_mapping_shape;
extern const shape node_shape;
extern const shape pod_shape;
extern const shape kube_namespace_shape;
extern const shape resource_shape;
extern const shape environment_shape;
extern const shape deployment_shape;
extern const shape version_shape;
extern const shape rollout_policy_shape;
extern const shape fleet_yaml_shape;

#endif
