/* SPDX-License-Identifier: Apache-2.0 */
/* shape.h - the description of a kind's fields, written once.
 *
 * A shape is a table of fields of one C struct. Reading, defaults, validation, writing and the CRD schema
 * all come from it; only what concerns several fields together is code, named in the shape as "check".
 * Only src/model makes shapes; others may walk them. */
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
    X(TEXT, str, "text")                                                                           \
    X(ENUM, unsigned, "one of a few words")                                                        \
    X(ENUM_SET, uint32_t, "a list of words")                                                       \
    X(DURATION, opt_duration, "a duration such as 1h30m")                                          \
    X(TIME, opt_moment, "a time such as 2026-01-31T12:00:00Z")                                     \
    X(QUANTITY, quantity, "a quantity such as 500m or 1Gi")                                        \
    X(INT_OR_PERCENT, int_or_percent, "a whole number or a percentage such as \"25%\"")            \
    X(SELECTOR, label_query, "a label selector (matchLabels, matchExpressions)")                   \
    X(EXPRESSION, expression, "a CEL expression")                                                  \
    X(TEXT_LIST, str_list, "a list of texts")                                                      \
    X(TEXT_MAP, label_set, "an object whose values are texts")                                     \
    X(LABELS, label_set, "an object whose values are texts")                                       \
    X(RAW, raw_json, "anything")                                                                   \
    X(STRUCT, (its shape), "an object") /* in place; absent reads as {} */                         \
    X(OBJECT, (pointer to it), "an object") /* NULL when absent */                                 \
    X(OBJECT_LIST, (LIST), "a list of objects")                                                    \
    X(OBJECT_MAP, (LIST), "an object whose values are objects") /* sorted by key */                \
    X(INLINE, (its shape), "") /* the fields of another shape, in the same object */

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
    int64_t min; /* numbers; min > max: no limits */
    int64_t max;
    const char *otherwise; /* the default, as text; NULL: zero */
    const word_list *words;
    const shape *shape;
    const text_rule *rule;
    expression_scope scope;
    const char *doc;
} field;

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
    uint64_t errors; /* reported by this reader so far */
    bool no_memory;
} reader;

/* Looks at a struct that was read, with its place. Reports through reader_error and reader_warning. */
typedef void shape_check(reader *r, const place *at, void *value);

struct shape {
    const char *name; /* of the C type, for schemas */
    size_t size;
    const field *fields;
    size_t field_count;
    openness open;
    size_t kept_offset;  /* KEPT: of its kept_fields */
    size_t key_offset;   /* elements of an OBJECT_MAP: of the str that takes the key */
    const field *whole;  /* the value is not an object of fields but this one field */
    shape_check *check;
};

/* Fills *out, which need not be zeroed, from the value at the place. False when an error was reported:
 * *out is then incomplete but harmless. */
bool shape_read(reader *r, const shape *s, const place *at, void *out);
void reader_error(reader *r, const place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void reader_warning(reader *r, const place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Notes a failed allocation. Returns false. */
bool reader_memory(reader *r);

/* Writes as compact JSON. Fields that equal their default are left out unless they say otherwise. */
#define SHAPE_WRITE_GO_ESCAPES 1u /* "<", ">", "&" as Go's encoder writes them */
void shape_write(const shape *s, const void *value, buf *out, unsigned flags);
/* Whether two structs are written the same. False also without memory. */
bool shape_equal(const shape *s, const void *a, const void *b);

/* The words allowed, for messages: "node, all". */
void words_text(const word_list *words, buf *out);

#endif
