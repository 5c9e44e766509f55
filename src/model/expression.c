/* SPDX-License-Identifier: Apache-2.0 */
#include "model/expression.h"

#include "select/cel.h"

/* Behind each program that must be freed on its own stands one of these, in the arena. */
typedef struct expression_entry {
    struct expression_entry *before;
    cel_program *program;
} expression_entry;

static const char *const scope_texts[] = {
#define X(scope, variables) [SCOPE_##scope] = (variables),
    EXPRESSION_SCOPES(X)
#undef X
};

/* What documents are made of: objects with keys of text and values of any type. */
static const cel_type text_type = {.kind = CEL_STRING};
static const cel_type object_type = {.kind = CEL_MAP, .key = &text_type};

#define NAME(text) {text, sizeof(text) - 1}
static const str resource_names[] = {NAME("resource")};
static const str environment_names[] = {NAME("environment")};
static const str deployment_names[] = {NAME("deployment")};
static const str version_names[] = {NAME("version")};
static const str deployment_version_names[] = {NAME("deployment"), NAME("version")};
static const str release_names[] = {NAME("deployment"), NAME("environment"), NAME("resource"),
                                    NAME("version")};
static const str result_names[] = {NAME("result")};

#define VARIABLE(text) {.name = NAME(text), .type = &object_type}
static const cel_variable resource_variables[] = {VARIABLE("resource")};
static const cel_variable environment_variables[] = {VARIABLE("environment")};
static const cel_variable deployment_variables[] = {VARIABLE("deployment")};
static const cel_variable version_variables[] = {VARIABLE("version")};
static const cel_variable deployment_version_variables[] = {VARIABLE("deployment"),
                                                            VARIABLE("version")};
/* A policy sees the first three of a release. */
static const cel_variable release_variables[] = {VARIABLE("deployment"), VARIABLE("environment"),
                                                 VARIABLE("resource"), VARIABLE("version")};
static const cel_variable result_variables[] = {VARIABLE("result")};

static const struct {
    const str *names;
    cel_env env;
} scopes[] = {
    [SCOPE_NONE] = {NULL, {0}},
    [SCOPE_RESOURCE] = {resource_names, {.variables = resource_variables, .variable_count = 1}},
    [SCOPE_ENVIRONMENT] = {environment_names,
                           {.variables = environment_variables, .variable_count = 1}},
    [SCOPE_DEPLOYMENT] = {deployment_names,
                          {.variables = deployment_variables, .variable_count = 1}},
    [SCOPE_VERSION] = {version_names, {.variables = version_variables, .variable_count = 1}},
    [SCOPE_DEPLOYMENT_VERSION] = {deployment_version_names,
                                  {.variables = deployment_version_variables, .variable_count = 2}},
    [SCOPE_POLICY] = {release_names, {.variables = release_variables, .variable_count = 3}},
    [SCOPE_RELEASE] = {release_names, {.variables = release_variables, .variable_count = 4}},
    [SCOPE_RESULT] = {result_names, {.variables = result_variables, .variable_count = 1}},
};

const char *expression_scope_text(expression_scope scope)
{
    return scope_texts[scope];
}

size_t expression_scope_variables(expression_scope scope, const str **ret_names)
{
    *ret_names = scopes[scope].names;
    return scopes[scope].env.variable_count;
}

void expression_list_done(expression_list *list)
{
    for (expression_entry *e = list->last; e; e = e->before)
        e->program = cel_program_free(e->program);
    list->last = NULL;
}

bool expression_compile(expression_list *list, str source, expression_scope scope, expression *ret,
                        err *error)
{
    expression_entry *e = ARENA_NEW(list->arena, expression_entry);
    if (!e)
        return err_memory(error);
    cel_error wrong = {0};
    e->program = cel_compile(list->arena, source, &scopes[scope].env, &wrong);
    if (!e->program)
        return err_set(error, "%u:%u: %s", wrong.line, wrong.column, wrong.message);
    e->before = list->last;
    list->last = e;
    if (cel_never_bool(e->program))
        return err_set(error, "1:1: its result is never true or false");
    *ret = (expression){.source = source, .program = e->program, .scope = scope};
    return true;
}
