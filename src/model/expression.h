/* SPDX-License-Identifier: Apache-2.0 */
/* expression.h - CEL expressions in documents.
 *
 * The one place where documents meet the CEL compiler. An expression names the variables it may use
 * by its scope; whether it compiles is known when the document is read. */
#ifndef DROVER_MODEL_EXPRESSION_H
#define DROVER_MODEL_EXPRESSION_H

#include "base/arena.h"
#include "base/err.h"

/* Which variables an expression sees. */
#define EXPRESSION_SCOPES(X)                                                                       \
    X(NONE, "")                                                                                    \
    X(RESOURCE, "resource")                                                                        \
    X(ENVIRONMENT, "environment")                                                                  \
    X(DEPLOYMENT, "deployment")                                                                    \
    X(VERSION, "version")                                                                          \
    X(DEPLOYMENT_VERSION, "deployment, version")                                                   \
    X(POLICY, "deployment, environment, resource")                                                 \
    X(RELEASE, "deployment, environment, resource, version")                                       \
    X(RESULT, "result")

typedef enum expression_scope {
#define X(scope, variables) SCOPE_##scope,
    EXPRESSION_SCOPES(X)
#undef X
} expression_scope;

/* select/cel.h */
struct cel_program;

/* source.ptr is NULL when the document has none. */
typedef struct expression {
    str source;
    const struct cel_program *program;
    expression_scope scope;
} expression;

/* Compiled expressions hold memory outside their arena: whoever owns that owns one of these. */
typedef struct expression_list {
    arena *arena;
    struct expression_entry *last;
} expression_list;

/* Frees what the arena does not hold. Call it before the arena is freed. */
void expression_list_done(expression_list *list);

/* False with an error that begins with "LINE:COLUMN: " inside the expression. The program is in the
 * list's arena; the source is not copied. */
bool expression_compile(expression_list *list, str source, expression_scope scope, expression *ret,
                        err *error);
/* Names of the variables in the order in which an evaluation binds them. */
size_t expression_scope_variables(expression_scope scope, const str **ret_names);
/* "deployment, version" */
const char *expression_scope_text(expression_scope scope);

#endif
