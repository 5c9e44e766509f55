/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are only declared, with types that may have parameters: f(T, list(T)) -> T. */
#include "select/cel_internal.h"

#define PARAMETERS_MOST 8

/* What the parameters of one signature stand for in one call. */
typedef struct substitution {
    arena *arena;
    unsigned depth;
    size_t count;
    struct {
        str name;
        const cel_type *type;
    } at[PARAMETERS_MOST];
} substitution;

#define TYPE_DEPTH 50

static bool bind_parameter(substitution *s, str name, const cel_type *type)
{
    for (size_t i = 0; i < s->count; i++) {
        if (!str_eq(s->at[i].name, name))
            continue;
        const cel_type *both = cel_type_join(s->arena, s->at[i].type, type);
        bool known = type_kind(s->at[i].type) != CEL_DYN && type_kind(type) != CEL_DYN;
        s->at[i].type = both;
        return both || !known;
    }
    if (s->count == PARAMETERS_MOST)
        return false;
    s->at[s->count].name = name;
    s->at[s->count++].type = type;
    return true;
}

/* Whether an argument of a type may be given for a parameter. */
static bool accepts(substitution *s, const cel_type *parameter, const cel_type *argument)
{
    cel_kind kind = type_kind(parameter);
    if (kind == CEL_PARAMETER)
        return bind_parameter(s, parameter->name, argument);
    if (kind == CEL_DYN || type_kind(argument) == CEL_DYN || s->depth >= TYPE_DEPTH)
        return true;
    if (kind != argument->kind || !str_eq(parameter->name, argument->name))
        return false;
    s->depth++;
    bool good = accepts(s, parameter->key, argument->key) &&
                accepts(s, parameter->element, argument->element);
    s->depth--;
    return good;
}

/* The type with its parameters replaced. */
static const cel_type *apply(substitution *s, const cel_type *type)
{
    if (!type || s->depth >= TYPE_DEPTH)
        return NULL;
    if (type->kind == CEL_PARAMETER) {
        for (size_t i = 0; i < s->count; i++)
            if (str_eq(s->at[i].name, type->name))
                return s->at[i].type;
        return NULL;
    }
    if (!type->key && !type->element)
        return type;
    cel_type *copy = ARENA_NEW(s->arena, cel_type);
    if (!copy)
        return NULL;
    s->depth++;
    *copy = (cel_type){type->kind, apply(s, type->key), apply(s, type->element), type->name};
    s->depth--;
    return copy;
}

static bool matches(substitution *s, const cel_declared *f, const node *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (!accepts(s, f->parameters[i], n->items[i]->type))
            return false;
    return true;
}

bool cel_check_declared(checker *c, node *n, bool member)
{
    bool known = false;
    for (size_t i = 0; i < c->env->function_count; i++)
        known |=
            c->env->functions[i].member == member && str_eq(c->env->functions[i].name, n->name);
    if (!known)
        return false;
    for (uint32_t i = 0; i < n->count; i++)
        if (!cel_check(c, n->items[i]))
            return false;
    for (size_t i = 0; i < c->env->function_count; i++) {
        const cel_declared *f = &c->env->functions[i];
        substitution s = {.arena = c->arena};
        if (f->member == member && f->count == n->count && str_eq(f->name, n->name) &&
            matches(&s, f, n)) {
            n->type = apply(&s, f->result);
            return true;
        }
    }
    return cel_check_fail(c, n->at, "no overload of %.*s takes these arguments", STR_ARG(n->name));
}
