/* SPDX-License-Identifier: Apache-2.0 */
#include "model/expression.h"

typedef struct expression_entry {
    struct expression_entry *before;
    struct cel_program *program;
} expression_entry;

static const char *const scope_texts[] = {
#define X(scope, variables) [SCOPE_##scope] = (variables),
    EXPRESSION_SCOPES(X)
#undef X
};

#define NAME(text) {text, sizeof(text) - 1}
#define VARIABLES_MOST 4
static const struct {
    size_t count;
    str names[VARIABLES_MOST];
} scopes[] = {
    [SCOPE_NONE] = {0, {{0}}},
    [SCOPE_RESOURCE] = {1, {NAME("resource")}},
    [SCOPE_ENVIRONMENT] = {1, {NAME("environment")}},
    [SCOPE_DEPLOYMENT] = {1, {NAME("deployment")}},
    [SCOPE_VERSION] = {1, {NAME("version")}},
    [SCOPE_DEPLOYMENT_VERSION] = {2, {NAME("deployment"), NAME("version")}},
    [SCOPE_POLICY] = {3, {NAME("deployment"), NAME("environment"), NAME("resource")}},
    [SCOPE_RELEASE] =
        {4, {NAME("deployment"), NAME("environment"), NAME("resource"), NAME("version")}},
    [SCOPE_RESULT] = {1, {NAME("result")}},
};

const char *expression_scope_text(expression_scope scope)
{
    return scope_texts[scope];
}

size_t expression_scope_variables(expression_scope scope, const str **ret_names)
{
    *ret_names = scopes[scope].names;
    return scopes[scope].count;
}

void expression_list_done(expression_list *list)
{
    list->last = NULL;
}

bool expression_compile(expression_list *list, str source, expression_scope scope, expression *ret,
                        err *error)
{
    (void)list;
    if (str_trim(source).len == 0)
        return err_set(error, "1:1: found no expression");
    *ret = (expression){.source = source, .scope = scope};
    return true;
}
