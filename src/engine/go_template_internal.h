/* SPDX-License-Identifier: Apache-2.0 */
/* go_template_internal.h - what a parsed template is: for go_template*.c alone.
 *
 * go_template_parse.c makes the tree, go_template.c renders it, go_template_functions.c has the
 * functions, go_template_value.c the values. */
#ifndef DROVER_ENGINE_GO_TEMPLATE_INTERNAL_H
#define DROVER_ENGINE_GO_TEMPLATE_INTERNAL_H

#include "engine/go_template.h"

typedef struct template_pipe template_pipe;

#define OPERANDS(X)                                                                                \
    X(DOT, "the dot")                                                                              \
    X(VARIABLE, "a variable")                                                                      \
    X(LITERAL, "a literal") X(FUNCTION, "a function") X(PIPE, "a pipeline in parentheses")
typedef enum operand_kind {
#define X(kind, text) OPERAND_##kind,
    OPERANDS(X)
#undef X
} operand_kind;

/* One word of a command, and the fields that are taken of it. */
typedef struct template_operand {
    operand_kind kind;
    str name; /* of a variable (empty: the root) or a function */
    template_value literal;
    const template_pipe *pipe;
    const str *fields;
    size_t field_count;
} template_operand;

typedef struct template_command {
    const template_operand *at;
    size_t len;
} template_command;

struct template_pipe {
    str variables[2];
    size_t variable_count;
    bool assigns; /* "=" instead of ":=" */
    const template_command *at;
    size_t len;
};

#define TEMPLATE_NODES(X)                                                                          \
    X(TEXT, "text") X(ACTION, "an action") X(IF, "if") X(RANGE, "range") X(WITH, "with")
typedef enum template_node_kind {
#define X(kind, text) NODE_##kind,
    TEMPLATE_NODES(X)
#undef X
} template_node_kind;

typedef struct template_node template_node;
struct template_node {
    template_node_kind kind;
    str text;
    template_pipe pipe;
    const template_node *body, *otherwise; /* chains */
    const template_node *next;
};

/* The first node; *ret is NULL for an empty text. */
bool template_parse(arena *a, str text, const template_node **ret, err *error);

/* ---- functions ---- */

typedef struct template_call {
    arena *arena;
    str name;
    const template_value *args;
    size_t count;
    err *error;
} template_call;

/* X(name, the least arguments, the most). In go_template_texts.c. */
#define TEMPLATE_TEXT_FUNCTIONS(X)                                                                 \
    X(upper, 1, 1)                                                                                 \
    X(lower, 1, 1)                                                                                 \
    X(title, 1, 1)                                                                                 \
    X(trim, 1, 1)                                                                                  \
    X(trimAll, 2, 2)                                                                               \
    X(trimPrefix, 2, 2)                                                                            \
    X(trimSuffix, 2, 2)                                                                            \
    X(nospace, 1, 1)                                                                               \
    X(replace, 3, 3)                                                                               \
    X(contains, 2, 2)                                                                              \
    X(hasPrefix, 2, 2)                                                                             \
    X(hasSuffix, 2, 2)                                                                             \
    X(repeat, 2, 2)                                                                                \
    X(substr, 3, 3)                                                                                \
    X(trunc, 2, 2)                                                                                 \
    X(indent, 2, 2)                                                                                \
    X(nindent, 2, 2)                                                                               \
    X(quote, 0, SIZE_MAX)                                                                          \
    X(squote, 0, SIZE_MAX)                                                                         \
    X(cat, 0, SIZE_MAX)                                                                            \
    X(join, 2, 2)                                                                                  \
    X(split, 2, 2)                                                                                 \
    X(splitList, 2, 2)                                                                             \
    X(toString, 1, 1)                                                                              \
    X(print, 0, SIZE_MAX)                                                                          \
    X(println, 0, SIZE_MAX)                                                                        \
    X(printf, 1, SIZE_MAX)                                                                         \
    X(toJson, 1, 1)                                                                                \
    X(fromJson, 1, 1)                                                                              \
    X(b64enc, 1, 1)                                                                                \
    X(b64dec, 1, 1)                                                                                \
    X(sha256sum, 1, 1)                                                                             \
    X(regexMatch, 2, 2)                                                                            \
    X(fail, 1, 1)

/* In go_template_functions.c. */
#define TEMPLATE_VALUE_FUNCTIONS(X)                                                                \
    X(not, 1, 1)                                                                                   \
    X(eq, 2, SIZE_MAX)                                                                             \
    X(ne, 2, 2)                                                                                    \
    X(lt, 2, 2)                                                                                    \
    X(le, 2, 2)                                                                                    \
    X(gt, 2, 2)                                                                                    \
    X(ge, 2, 2)                                                                                    \
    X(len, 1, 1)                                                                                   \
    X(index, 1, SIZE_MAX)                                                                          \
    X(default, 1, 2)                                                                               \
    X(empty, 1, 1)                                                                                 \
    X(coalesce, 0, SIZE_MAX)                                                                       \
    X(ternary, 3, 3)                                                                               \
    X(int, 1, 1)                                                                                   \
    X(int64, 1, 1)                                                                                 \
    X(parseInt, 1, 1)                                                                             \
    X(add, 0, SIZE_MAX)                                                                            \
    X(add1, 1, 1)                                                                                  \
    X(sub, 2, 2)                                                                                   \
    X(mul, 1, SIZE_MAX)                                                                            \
    X(div, 2, 2)                                                                                   \
    X(mod, 2, 2)                                                                                   \
    X(max, 1, SIZE_MAX)                                                                            \
    X(min, 1, SIZE_MAX)                                                                            \
    X(list, 0, SIZE_MAX)                                                                           \
    X(dict, 0, SIZE_MAX)                                                                           \
    X(get, 2, 2)                                                                                   \
    X(hasKey, 2, 2)                                                                                \
    X(keys, 1, 1)                                                                                  \
    X(values, 1, 1)                                                                                \
    X(first, 1, 1)                                                                                 \
    X(last, 1, 1)                                                                                  \
    X(rest, 1, 1)                                                                                  \
    X(initial, 1, 1)                                                                               \
    X(has, 2, 2)                                                                                   \
    X(append, 2, 2)                                                                                \
    X(uniq, 1, 1)                                                                                  \
    X(sortAlpha, 1, 1)                                                                             \
    X(until, 1, 1)

#define X(name, least, most) bool template_fn_##name(const template_call *c, template_value *ret);
TEMPLATE_TEXT_FUNCTIONS(X)
TEMPLATE_VALUE_FUNCTIONS(X)
#undef X

/* Arguments as a function needs them; false with an error. */
bool template_text_at(const template_call *c, size_t index, str *ret);
bool template_int_at(const template_call *c, size_t index, int64_t *ret);
bool template_list_at(const template_call *c, size_t index, const template_value **ret);
bool template_map_at(const template_call *c, size_t index, const template_value **ret);
/* What a value is as a text; in the call's arena. ptr is NULL with an error. */
str template_str(const template_call *c, const template_value *v);
/* A list with room for so many; *ret_at is to be filled. */
bool template_new_list(const template_call *c, size_t len, template_value **ret_at,
                       template_value *ret);
/* A result that was collected in a buffer, which is freed. */
bool template_take_buf(const template_call *c, buf *b, template_value *ret);

static inline template_value template_text(str text)
{
    return (template_value){.kind = TEMPLATE_TEXT, .text = text};
}

static inline template_value template_bool(bool yes)
{
    return (template_value){.kind = TEMPLATE_BOOL, .yes = yes};
}

static inline template_value template_int(int64_t number)
{
    return (template_value){.kind = TEMPLATE_INT, .number = number};
}

/* NULL with an error when there is none. */
typedef struct template_function template_function;
const template_function *template_function_find(str name, err *error);
bool template_function_call(const template_function *f, const template_call *call,
                            template_value *ret);

#endif
