/* SPDX-License-Identifier: Apache-2.0 */
/* cel.h - the Common Expression Language over JSON-like values.
 *
 * An expression is compiled once, into an arena, and evaluated any number of times, in another one.
 * Errors at run time are values, as the language wants it. Time and memory of both are bounded,
 * whatever the expression. There is no I/O but the system's time zone files, no clock, no
 * randomness; nothing here converts data it is given: documents and engine data are read in place.
 *
 * Everything of the language is there but protobuf messages and enums; of the extensions there are
 * strings, math, lists, sets, encoders, optionals, bindings, two-variable comprehensions, network
 * addresses and blocks. has(x["k"]) is accepted as has(x.k).
 *
 *     cel_error problem;
 *     cel_program *p = cel_compile(a, STR("resource.metadata.env == 'prod'"), &env, &problem);
 *     ...
 *     if (!cel_match(p, bindings, scratch, &yes, &error)) ...
 *     cel_program_free(p);      before the arena goes
 */
#ifndef DROVER_SELECT_CEL_H
#define DROVER_SELECT_CEL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/moment.h"

/* DYN is a type only, never the kind of a value. */
#define CEL_KINDS(X)                                                                               \
    X(NULL, "null_type")                                                                           \
    X(BOOL, "bool")                                                                                \
    X(INT, "int")                                                                                  \
    X(UINT, "uint")                                                                                \
    X(DOUBLE, "double")                                                                            \
    X(STRING, "string")                                                                            \
    X(BYTES, "bytes")                                                                              \
    X(LIST, "list")                                                                                \
    X(MAP, "map")                                                                                  \
    X(TIMESTAMP, "google.protobuf.Timestamp")                                                      \
    X(DURATION, "google.protobuf.Duration")                                                        \
    X(TYPE, "type")                                                                                \
    X(OPTIONAL, "optional_type")                                                                   \
    X(IP, "net.IP")                                                                                \
    X(CIDR, "net.CIDR")                                                                            \
    X(ERROR, "error")                                                                              \
    X(DYN, "dyn")

typedef enum cel_kind {
#define X(kind, text) CEL_##kind,
    CEL_KINDS(X)
#undef X
} cel_kind;

#define CEL_CODES(X)                                                                               \
    X(NO_SUCH_KEY, "no_such_key")                                                                  \
    X(NO_SUCH_FIELD, "no_such_field")                                                              \
    X(NO_SUCH_OVERLOAD, "no_such_overload")                                                        \
    X(NO_SUCH_VARIABLE, "no_such_variable")                                                        \
    X(DIVIDE_BY_ZERO, "divide_by_zero")                                                            \
    X(OVERFLOW, "overflow")                                                                        \
    X(OUT_OF_RANGE, "out_of_range")                                                                \
    X(INVALID_ARGUMENT, "invalid_argument")                                                        \
    X(DUPLICATE_KEY, "duplicate_key")                                                              \
    X(COST_EXCEEDED, "cost_exceeded")                                                              \
    X(MEMORY, "memory")

typedef enum cel_code {
#define X(code, text) CEL_##code,
    CEL_CODES(X)
#undef X
} cel_code;

const char *cel_kind_name(cel_kind kind);
const char *cel_code_name(cel_code code);

/* ---- Values ------------------------------------------------------------------------------- */

/* A list or map of someone else's: put one at the front of your structure and point "ops" at how to
 * read it. What the functions return must live as long as the evaluation; scratch does. */
typedef struct cel_object cel_object;

typedef struct cel_value {
    uint8_t kind;  /* a cel_kind */
    uint8_t form;  /* how a list or map is stored: internal */
    uint16_t code; /* of an error */
    uint32_t len;  /* bytes of text; nanoseconds of a timestamp; source offset of an error */
    union {
        bool b;
        int64_t i; /* also seconds of a timestamp, nanoseconds of a duration */
        uint64_t u;
        double d;
        const char *text; /* also the sentence of an error, zero-terminated */
        const void *ptr;
        const cel_object *object;
        const struct cel_value *inner; /* of an optional; NULL when it is empty */
    };
} cel_value;

typedef struct cel_ops {
    size_t (*size)(const cel_object *self);
    /* Maps: the value of a key, which may be a bool, int, uint or string; false when it is not
     * there. NULL for lists. */
    bool (*get)(const cel_object *self, cel_value key, arena *scratch, cel_value *ret);
    /* The i-th element, or the i-th entry of a map; ret_key is NULL for lists. */
    void (*at)(const cel_object *self, size_t i, arena *scratch, cel_value *ret_key,
               cel_value *ret);
} cel_ops;

struct cel_object {
    const cel_ops *ops;
};

/* One entry of a map that is made of values. */
typedef struct cel_entry {
    cel_value key;
    cel_value value;
} cel_entry;

cel_value cel_null(void);
cel_value cel_bool(bool value);
cel_value cel_int(int64_t value);
cel_value cel_uint(uint64_t value);
cel_value cel_double(double value);
/* Views: the bytes must outlive the value. Text is UTF-8. Longer than 4 GiB is an error value. */
cel_value cel_string(str text);
cel_value cel_bytes(str bytes);
cel_value cel_timestamp(moment m);
cel_value cel_duration(int64_t ns);
/* The type of values of a kind, as type(x) gives it. */
cel_value cel_type_value(cel_kind kind);
cel_value cel_foreign_list(const cel_object *object);
cel_value cel_foreign_map(const cel_object *object);
/* The items stay where they are; the header is made in a. An error value without memory, or for a
 * map with a key twice or of a kind that cannot be one. */
cel_value cel_list_of(arena *a, const cel_value *items, size_t count);
cel_value cel_map_of(arena *a, const cel_entry *entries, size_t count);
/* Wraps a value of a parsed document (yyjson_val *), which stays as it is and must outlive the
 * result. Integers are int, or uint past INT64_MAX; reals are double. NULL is null. */
struct yyjson_val;
cel_value cel_from_json(struct yyjson_val *json);

/* Text of a string, of bytes, or the sentence of an error. */
str cel_text(cel_value v);
moment cel_moment(cel_value v);
/* Lists and maps, whatever their form. */
size_t cel_size(cel_value container);
bool cel_get(cel_value map, cel_value key, arena *scratch, cel_value *ret);
void cel_at(cel_value container, size_t i, arena *scratch, cel_value *ret_key, cel_value *ret);
/* As == does: numbers by value, NaN equals nothing, lists and maps element by element. */
bool cel_equal(cel_value a, cel_value b, arena *scratch);

/* ---- Programs ----------------------------------------------------------------------------- */

/* A type as far as it is known: the key of maps, the element of lists, maps and optionals may be
 * NULL, which is dyn. */
typedef struct cel_type {
    cel_kind kind;
    const struct cel_type *key;
    const struct cel_type *element;
} cel_type;

typedef struct cel_variable {
    str name;             /* may be qualified: "a.b" */
    const cel_type *type; /* NULL is dyn */
} cel_variable;

typedef struct cel_env {
    const cel_variable *variables;
    size_t variable_count;
    str container;  /* names are looked for in it first: "a.b" */
    bool unchecked; /* unknown names and wrong types are found at run time only */
    bool no_macros;
} cel_env;

typedef struct cel_error {
    unsigned line;   /* from 1 */
    unsigned column; /* from 1, in code points */
    char message[LIMIT_ERR_BYTES];
} cel_error;

typedef struct cel_program cel_program;

/* NULL with an error. Everything the program needs is copied into a, but the names and types of
 * env, which must outlive it. */
cel_program *cel_compile(arena *a, str source, const cel_env *env, cel_error *error);
/* Compiled regular expressions live outside the arena: call this once before the arena is freed or
 * rewound. Accepts NULL, returns NULL. */
cel_program *cel_program_free(cel_program *p);

/* The type of the result, as far as it is certain. */
const cel_type *cel_result_type(const cel_program *p);
/* No evaluation can give a bool: such an expression is no condition. */
bool cel_never_bool(const cel_program *p);
/* Whether the expression mentions the i-th variable of its environment. */
bool cel_uses(const cel_program *p, size_t variable);
/* Line and column of a place in the source, such as the "len" of an error value. */
void cel_where(const cel_program *p, uint32_t offset, unsigned *ret_line, unsigned *ret_column);

/* 0 is the limit of base/limits.h. */
typedef struct cel_limits {
    uint64_t cost;
    size_t bytes;
} cel_limits;

/* bindings are in the order of env's variables; one of kind CEL_ERROR is an unbound variable. The
 * result may point into bindings, program and scratch. limits may be NULL. Programs may be
 * evaluated by one thread at a time. */
cel_value cel_eval(const cel_program *p, const cel_value *bindings, arena *scratch,
                   const cel_limits *limits);

/* For conditions. A missing key makes the answer false; every other error, and a result that is no
 * bool, is a failure: nothing ever fails open. */
bool cel_match(const cel_program *p, const cel_value *bindings, arena *scratch, bool *ret,
               err *error);

/* A literal-like rendering for messages and tests: "[1, 2u, \"a\"]". */
void cel_print(buf *out, cel_value v, arena *scratch);

#endif
