/* SPDX-License-Identifier: Apache-2.0 */
/* Rendering: the tree of a template with its data. */
#include "base/vec.h"
#include "engine/go_template_internal.h"

typedef struct variable {
    str name;
    template_value value;
} variable;

typedef struct renderer {
    arena *arena;
    const template_value *root;
    buf *out;
    VEC(variable) variables; /* those of inner blocks behind those of outer ones */
    size_t steps;
    size_t depth;
    size_t used_before; /* of the arena */
    err *error;
} renderer;

static bool eval_pipe(renderer *r, const template_pipe *pipe, const template_value *dot,
                      template_value *ret);

/* Counts what is done: no template runs for long, or takes much memory. */
static bool take_step(renderer *r)
{
    if (arena_used(r->arena) - r->used_before > TEMPLATE_MEMORY_BYTES_MAX)
        return err_set(r->error, "found more than %u bytes of values, which is the most",
                       TEMPLATE_MEMORY_BYTES_MAX);
    return ++r->steps <= TEMPLATE_STEPS_MAX ||
           err_set(r->error, "found more than %u steps, which is the most", TEMPLATE_STEPS_MAX);
}

static bool take_field(renderer *r, template_value *value, str field)
{
    if (value->kind != TEMPLATE_MAP)
        return err_set(r->error, "found %s, which has no field \"%s\"",
                       template_kind_text(value->kind), str_shown(field).text);
    const template_value *found = template_get(value, field);
    if (!found)
        return err_set(r->error, "no entry for key \"%s\"", str_shown(field).text);
    *value = *found;
    return true;
}

static variable *find_variable(renderer *r, str name)
{
    for (size_t i = r->variables.len; i > 0; i--)
        if (str_eq(r->variables.at[i - 1].name, name))
            return &r->variables.at[i - 1];
    return NULL;
}

/* Anything but a function. */
static bool eval_operand(renderer *r, const template_operand *o, const template_value *dot,
                         template_value *ret)
{
    switch (o->kind) {
    case OPERAND_DOT: *ret = *dot; break;
    case OPERAND_VARIABLE: {
        const variable *v = o->name.len > 0 ? find_variable(r, o->name) : NULL;
        if (!v && o->name.len > 0)
            return err_set(r->error, "undefined variable $%s", str_shown(o->name).text);
        *ret = v ? v->value : *r->root;
        break;
    }
    case OPERAND_LITERAL: *ret = o->literal; break;
    case OPERAND_PIPE:
        if (!eval_pipe(r, o->pipe, dot, ret))
            return false;
        break;
    case OPERAND_FUNCTION: return false; /* the caller's */
    }
    for (size_t i = 0; i < o->field_count; i++)
        if (!take_field(r, ret, o->fields[i]))
            return false;
    return true;
}

static bool eval_command(renderer *r, const template_command *c, const template_value *dot,
                         const template_value *final, template_value *ret);

static bool eval_argument(renderer *r, const template_operand *o, const template_value *dot,
                          template_value *ret)
{
    template_command alone = {o, 1};
    if (o->kind == OPERAND_FUNCTION)
        return eval_command(r, &alone, dot, NULL, ret);
    return eval_operand(r, o, dot, ret);
}

/* "and" and "or" end at the first argument that settles them: the others are not looked at. */
static bool eval_logic(renderer *r, const template_command *c, const template_value *dot,
                       const template_value *final, template_value *ret)
{
    bool settles = str_eq(c->at[0].name, STR("or"));
    if (c->len == 1 && !final)
        return err_set(r->error, "%s: found no argument", settles ? "or" : "and");
    for (size_t i = 1; i < c->len; i++) {
        if (!eval_argument(r, &c->at[i], dot, ret))
            return false;
        if (template_truth(ret) == settles)
            return true;
    }
    if (final)
        *ret = *final;
    return true;
}

static bool eval_function(renderer *r, const template_command *c, const template_value *dot,
                          const template_value *final, template_value *ret)
{
    str name = c->at[0].name;
    if (str_eq(name, STR("and")) || str_eq(name, STR("or")))
        return eval_logic(r, c, dot, final, ret);
    const template_function *f = template_function_find(name, r->error);
    template_value *args = f ? ARENA_ARRAY(r->arena, c->len + 1, template_value) : NULL;
    if (!f)
        return false;
    if (!args)
        return err_memory(r->error);
    size_t count = 0;
    for (size_t i = 1; i < c->len; i++)
        if (!eval_argument(r, &c->at[i], dot, &args[count++]))
            return false;
    if (final)
        args[count++] = *final;
    template_call call = {r->arena, name, args, count, r->error};
    if (!template_function_call(f, &call, ret))
        return err_wrap(r->error, "%s", str_shown(name).text);
    return true;
}

static bool eval_command(renderer *r, const template_command *c, const template_value *dot,
                         const template_value *final, template_value *ret)
{
    if (!take_step(r))
        return false;
    if (c->at[0].kind == OPERAND_FUNCTION)
        return eval_function(r, c, dot, final, ret);
    if (c->len > 1 || final)
        return err_set(r->error, "found an argument for something that is no function");
    return eval_operand(r, &c->at[0], dot, ret);
}

static bool set_variable(renderer *r, str name, bool assigns, const template_value *value)
{
    variable *known = assigns ? find_variable(r, name) : NULL;
    if (assigns && !known)
        return err_set(r->error, "undefined variable $%s", str_shown(name).text);
    if (known) {
        known->value = *value;
        return true;
    }
    return vec_push(&r->variables, (variable){name, *value}) || err_memory(r->error);
}

static bool eval_pipe(renderer *r, const template_pipe *pipe, const template_value *dot,
                      template_value *ret)
{
    template_value value = {.kind = TEMPLATE_NIL};
    if (++r->depth > 2 * TEMPLATE_DEPTH_MAX)
        return err_set(r->error, "pipelines nested too deep");
    for (size_t i = 0; i < pipe->len; i++) {
        template_value next = {.kind = TEMPLATE_NIL};
        if (!eval_command(r, &pipe->at[i], dot, i > 0 ? &value : NULL, &next))
            return false;
        value = next;
    }
    r->depth--;
    *ret = value;
    return true;
}

/* The value of a pipeline that declares at most one variable, which is then set. */
static bool eval_declared(renderer *r, const template_pipe *pipe, const template_value *dot,
                          template_value *ret)
{
    if (pipe->variable_count > 1)
        return err_set(r->error, "found two variables outside of range");
    if (!eval_pipe(r, pipe, dot, ret))
        return false;
    return pipe->variable_count == 0 || set_variable(r, pipe->variables[0], pipe->assigns, ret);
}

/* ---- nodes ---- */

static bool render_nodes(renderer *r, const template_node *first, const template_value *dot);

static bool render_item(renderer *r, const template_node *n, const template_value *key,
                        const template_value *item)
{
    size_t outer = r->variables.len;
    const template_pipe *pipe = &n->pipe;
    if (!take_step(r))
        return false;
    const template_value *given[] = {key, item};
    const template_value **from = pipe->variable_count == 1 ? &given[1] : &given[0];
    for (size_t i = 0; i < pipe->variable_count; i++)
        if (!set_variable(r, pipe->variables[i], pipe->assigns, from[i]))
            return false;
    bool good = render_nodes(r, n->body, item);
    r->variables.len = outer;
    return good;
}

static bool render_range(renderer *r, const template_node *n, const template_value *dot)
{
    template_value over;
    if (!eval_pipe(r, &n->pipe, dot, &over))
        return false;
    if (over.kind == TEMPLATE_INT) { /* as Go has it since 1.22 */
        for (int64_t i = 0; i < over.number; i++) {
            template_value at = {.kind = TEMPLATE_INT, .number = i};
            if (!render_item(r, n, &at, &at))
                return false;
        }
        return over.number > 0 || render_nodes(r, n->otherwise, dot);
    }
    if (over.kind != TEMPLATE_LIST && over.kind != TEMPLATE_MAP && over.kind != TEMPLATE_NIL)
        return err_set(r->error, "range: found %s, allowed a list or a map",
                       template_kind_text(over.kind));
    for (size_t i = 0; over.kind == TEMPLATE_LIST && i < over.list.len; i++) {
        template_value at = {.kind = TEMPLATE_INT, .number = (int64_t)i};
        if (!render_item(r, n, &at, &over.list.at[i]))
            return false;
    }
    for (size_t i = 0; over.kind == TEMPLATE_MAP && i < over.map.len; i++) {
        template_value key = {.kind = TEMPLATE_TEXT, .text = over.map.at[i].key};
        if (!render_item(r, n, &key, &over.map.at[i].value))
            return false;
    }
    return template_truth(&over) || render_nodes(r, n->otherwise, dot);
}

static bool render_choice(renderer *r, const template_node *n, const template_value *dot)
{
    size_t outer = r->variables.len;
    template_value value;
    if (!eval_declared(r, &n->pipe, dot, &value))
        return false;
    bool yes = template_truth(&value);
    bool good =
        render_nodes(r, yes ? n->body : n->otherwise, yes && n->kind == NODE_WITH ? &value : dot);
    r->variables.len = outer;
    return good;
}

static bool render_node(renderer *r, const template_node *n, const template_value *dot)
{
    template_value value;
    switch (n->kind) {
    case NODE_TEXT: buf_add(r->out, n->text); return true;
    case NODE_ACTION:
        if (!eval_declared(r, &n->pipe, dot, &value))
            return false;
        if (n->pipe.variable_count == 0)
            template_print(r->out, &value);
        return true;
    case NODE_IF:
    case NODE_WITH: return render_choice(r, n, dot);
    case NODE_RANGE: return render_range(r, n, dot);
    }
    return false;
}

static bool render_nodes(renderer *r, const template_node *first, const template_value *dot)
{
    for (const template_node *n = first; n; n = n->next) {
        if (!take_step(r))
            return false;
        if (!render_node(r, n, dot))
            return false;
        if (r->out->failed)
            return err_set(r->error, "the result is too long, or memory ran out");
    }
    return true;
}

bool template_render(arena *a, str text, const template_value *root, buf *out, err *error)
{
    const template_node *first = NULL;
    renderer r = {.arena = a, .root = root, .out = out, .error = error};
    r.used_before = arena_used(a);
    bool good = template_parse(a, text, &first, error) && render_nodes(&r, first, root);
    vec_done(&r.variables);
    return good;
}
