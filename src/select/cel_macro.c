/* SPDX-License-Identifier: Apache-2.0 */
/* Macros become nodes of their own instead of the folds the specification spells out: the same
 * results with less work. */
#include "select/cel_internal.h"

/* The name a macro binds: a plain identifier, or cel.iterVar(0, 0) and the like. */
static bool take_variable(parser *p, const node *call, const node *n, str *ret)
{
    if (n->kind == NODE_IDENT && !n->absolute) {
        *ret = n->name;
        return true;
    }
    return cel_parse_fail(p, n->at, "expected a variable name as an argument of %.*s",
                          STR_ARG(call->name));
}

typedef struct loop_macro {
    const char *name;
    uint32_t args;
    uint32_t variables;
    loop_kind kind;
} loop_macro;

/* With one more argument than variables and a body, the one before the last is a filter. */
static const loop_macro loops[] = {
    {"all", 2, 1, LOOP_ALL},
    {"exists", 2, 1, LOOP_EXISTS},
    {"exists_one", 2, 1, LOOP_EXISTS_ONE},
    {"existsOne", 2, 1, LOOP_EXISTS_ONE},
    {"filter", 2, 1, LOOP_FILTER},
    {"map", 2, 1, LOOP_MAP},
    {"map", 3, 1, LOOP_MAP},
    {"sortBy", 2, 1, LOOP_SORT_BY},
    {"all", 3, 2, LOOP_ALL},
    {"exists", 3, 2, LOOP_EXISTS},
    {"exists_one", 3, 2, LOOP_EXISTS_ONE},
    {"existsOne", 3, 2, LOOP_EXISTS_ONE},
    {"transformList", 3, 2, LOOP_MAP},
    {"transformList", 4, 2, LOOP_MAP},
    {"transformMap", 3, 2, LOOP_TRANSFORM_MAP},
    {"transformMap", 4, 2, LOOP_TRANSFORM_MAP},
    {"transformMapEntry", 3, 2, LOOP_TRANSFORM_ENTRY},
    {"transformMapEntry", 4, 2, LOOP_TRANSFORM_ENTRY},
};

static node *make_loop(parser *p, node *call, const loop_macro *m)
{
    bool filtered = m->args == m->variables + 2;
    node *n = cel_node(p, NODE_LOOP, call->at, filtered ? 3 : 2);
    if (!n)
        return NULL;
    n->op = (uint8_t)m->kind;
    if (!take_variable(p, call, call->items[1], &n->name) ||
        (m->variables == 2 && !take_variable(p, call, call->items[2], &n->name2)))
        return NULL;
    if (m->variables == 2 && str_eq(n->name, n->name2)) {
        cel_parse_fail(p, call->items[2]->at, "the two variables of %.*s have the same name",
                       STR_ARG(call->name));
        return NULL;
    }
    n->items[0] = call->items[0];
    n->items[1] = call->items[call->count - 1];
    if (filtered)
        n->items[2] = call->items[call->count - 2];
    return cel_node_done(p, n);
}

/* has(x.field), and has(x["field"]), which many guides teach. */
static node *make_has(parser *p, node *call)
{
    if (call->count != 1) {
        cel_parse_fail(p, call->at, "has takes 1 argument, found %u", call->count);
        return NULL;
    }
    node *n = call->items[0];
    if (n->kind == NODE_INDEX && n->op == SELECT_PLAIN && n->items[1]->kind == NODE_CONST &&
        n->items[1]->value.kind == CEL_STRING) {
        n->kind = NODE_SELECT;
        n->name = cel_text(n->items[1]->value);
        n->count = 1;
    }
    if (n->kind != NODE_SELECT || n->op == SELECT_TEST) {
        cel_parse_fail(p, n->at, "expected a field such as has(a.b) or has(a[\"b\"])");
        return NULL;
    }
    n->op = SELECT_TEST;
    return n;
}

static node *make_bind(parser *p, node *call, node_kind kind, bool flat)
{
    bool opt = kind == NODE_OPT_MAP;
    node *n = cel_node(p, kind, call->at, 2);
    if (!n || !take_variable(p, call, call->items[1], &n->name))
        return NULL;
    n->items[0] = call->items[opt ? 0 : 2];
    n->items[1] = call->items[opt ? 2 : 3];
    n->op = flat;
    return cel_node_done(p, n);
}

static node *make_block(parser *p, node *call)
{
    node *list = call->items[1];
    if (list->kind != NODE_LIST || (list->count > 0 && list->optional)) {
        cel_parse_fail(p, list->at, "expected a list literal as the first argument of cel.block");
        return NULL;
    }
    node *n = cel_node(p, NODE_BLOCK, call->at, list->count + 1);
    if (!n)
        return NULL;
    for (uint32_t i = 0; i < list->count; i++)
        n->items[i] = list->items[i];
    n->items[list->count] = call->items[2];
    return cel_node_done(p, n);
}

/* cel.index(1), cel.iterVar(0, 1), cel.accuVar(0, 1): names that nobody can write. */
static node *make_hidden_name(parser *p, node *call)
{
    for (uint32_t i = 1; i < call->count; i++) {
        const node *n = call->items[i];
        if (n->kind != NODE_CONST || n->value.kind != CEL_INT || n->value.i < 0) {
            cel_parse_fail(p, n->at, "expected a literal number from 0 on");
            return NULL;
        }
    }
    node *n = cel_node(p, NODE_IDENT, call->at, 0);
    if (!n)
        return NULL;
    long long second = call->count > 2 ? (long long)call->items[2]->value.i : 0;
    n->name = arena_printf(p->lx.arena, "@%.*s:%lld:%lld", STR_ARG(call->name),
                           (long long)call->items[1]->value.i, second);
    if (!n->name.ptr) {
        cel_parse_fail(p, call->at, "out of memory");
        return NULL;
    }
    return n;
}

static node *cel_space(parser *p, node *call)
{
    if (str_eq(call->name, STR("bind")) && call->count == 4)
        return make_bind(p, call, NODE_BIND, false);
    if (str_eq(call->name, STR("block")) && call->count == 3)
        return make_block(p, call);
    if (str_eq(call->name, STR("index")) && call->count == 2)
        return make_hidden_name(p, call);
    if ((str_eq(call->name, STR("iterVar")) || str_eq(call->name, STR("accuVar"))) &&
        call->count == 3)
        return make_hidden_name(p, call);
    return call;
}

node *cel_macro(parser *p, node *call)
{
    if (!call->has_target) {
        return str_eq(call->name, STR("has")) ? make_has(p, call) : call;
    }
    const node *target = call->items[0];
    if (target->kind == NODE_IDENT && str_eq(target->name, STR("cel")))
        return cel_space(p, call);
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
        if (call->count == loops[i].args + 1 && str_eq(call->name, str_of(loops[i].name)))
            return make_loop(p, call, &loops[i]);
    if (call->count == 3 && str_eq(call->name, STR("optMap")))
        return make_bind(p, call, NODE_OPT_MAP, false);
    if (call->count == 3 && str_eq(call->name, STR("optFlatMap")))
        return make_bind(p, call, NODE_OPT_MAP, true);
    return call;
}
