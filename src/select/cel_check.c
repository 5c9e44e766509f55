/* SPDX-License-Identifier: Apache-2.0 */
/* What can be known before the data: names, numbers of arguments, and types where they are certain.
 * It never refuses what could succeed: every doubt is dyn. */
#include "base/mem.h"
#include "select/cel_internal.h"

/* ---- Types -------------------------------------------------------------------------------- */

const cel_type cel_types[CEL_DYN + 1] = {
#define X(k, text) [CEL_##k] = {.kind = CEL_##k},
    CEL_KINDS(X)
#undef X
};

/* What the elements of [] are: dyn, until something else is known. */
static const cel_type free_type = {.kind = CEL_DYN};

const cel_type *cel_type_make(arena *a, cel_kind kind, const cel_type *key, const cel_type *element)
{
    if (!key && !element)
        return &cel_types[kind];
    cel_type *t = ARENA_NEW(a, cel_type);
    if (t)
        *t = (cel_type){kind, key, element};
    return t ? t : &cel_types[kind];
}

const cel_type *cel_type_empty(arena *a, cel_kind kind)
{
    return cel_type_make(a, kind, kind == CEL_MAP ? &free_type : NULL, &free_type);
}

/* null stands for these as well. */
static bool nullable(cel_kind kind)
{
    return kind == CEL_TIMESTAMP || kind == CEL_DURATION || kind == CEL_OPTIONAL ||
           kind == CEL_IP || kind == CEL_CIDR;
}

/* Deeper than this, types are dyn: names bound by macros can pile them up without end. */
#define TYPE_DEPTH 50

typedef struct unifier {
    arena *arena;
    unsigned depth;
    bool failed; /* the two have nothing in common */
} unifier;

static const cel_type *unify(unifier *u, const cel_type *x, const cel_type *y)
{
    cel_kind kx = type_kind(x);
    cel_kind ky = type_kind(y);
    if (x == y || x == &free_type)
        return y;
    if (y == &free_type)
        return x;
    if (kx == CEL_DYN || ky == CEL_DYN || u->depth >= TYPE_DEPTH)
        return NULL;
    if (kx == CEL_NULL && nullable(ky))
        return y;
    if (ky == CEL_NULL && nullable(kx))
        return x;
    if (kx != ky) {
        u->failed = true;
        return NULL;
    }
    u->depth++;
    const cel_type *key = unify(u, x->key, y->key);
    const cel_type *element = unify(u, x->element, y->element);
    u->depth--;
    if (key == x->key && element == x->element)
        return x;
    return cel_type_make(u->arena, kx, key, element);
}

const cel_type *cel_type_join(arena *a, const cel_type *x, const cel_type *y)
{
    unifier u = {.arena = a};
    const cel_type *t = unify(&u, x, y);
    return u.failed ? NULL : t;
}

static void print_type(buf *out, const cel_type *t, unsigned depth)
{
    cel_kind kind = type_kind(t);
    buf_addz(out, cel_kind_name(kind));
    if (kind != CEL_MAP && kind != CEL_LIST && kind != CEL_OPTIONAL)
        return;
    if (depth >= TYPE_DEPTH) {
        buf_addz(out, "(...)");
        return;
    }
    buf_addc(out, '(');
    if (kind == CEL_MAP) {
        print_type(out, t->key, depth + 1);
        buf_add(out, STR(", "));
    }
    print_type(out, t->element, depth + 1);
    buf_addc(out, ')');
}

void cel_type_print(buf *out, const cel_type *t)
{
    print_type(out, t, 0);
}

static bool is_number(cel_kind k)
{
    return k == CEL_INT || k == CEL_UINT || k == CEL_DOUBLE;
}

static bool may_be(const node *n, cel_kind kind)
{
    cel_kind k = type_kind(n->type);
    return k == kind || k == CEL_DYN;
}

/* ---- Folding ------------------------------------------------------------------------------ */

#define FOLD_BYTES ((size_t)64 * 1024)

void cel_fold(checker *c, node *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (n->items[i]->kind != NODE_CONST)
            return;
    cel_bind_run(n);
    arena_place place = arena_mark(c->arena);
    run r = {.program = c->program,
             .arena = c->arena,
             .cost = c->fold_cost,
             .bytes_end = arena_used(c->arena) + FOLD_BYTES};
    cel_value v = eval(&r, n);
    cel_regex_free(r.regex);
    c->fold_cost = r.cost;
    if (r.stopped || is_error(v)) {
        arena_rewind(c->arena, place); /* an error is one only if it is reached */
        return;
    }
    n->kind = NODE_CONST;
    n->value = v;
    n->count = 0;
}

/* Literals of constants are constants, whatever their size: they were written out. */
static bool fold_literal(checker *c, node *n)
{
    if (n->optional)
        return true;
    for (uint32_t i = 0; i < n->count; i++)
        if (n->items[i]->kind != NODE_CONST)
            return true;
    cel_bind_run(n);
    run r = cel_run_in(c->arena);
    cel_value v = n->run(&r, n);
    if (r.stopped)
        return cel_check_fail(c, n->at, "out of memory");
    if (is_error(v))
        return cel_check_mismatch(c, n->at, "%s", v.text);
    if (v.kind == CEL_LIST)
        cel_index_list(&r, v);
    n->kind = NODE_CONST;
    n->value = v;
    n->count = 0;
    return !r.stopped || cel_check_fail(c, n->at, "out of memory");
}

/* ---- Operators ---------------------------------------------------------------------------- */

/* The kind of a op b; CEL_ERROR when there is none. */
static cel_kind arithmetic_kind(token_kind op, cel_kind a, cel_kind b)
{
    bool plus = op == TOKEN_PLUS;
    bool minus = op == TOKEN_MINUS;
    if (a == b && (a == CEL_INT || a == CEL_UINT || (a == CEL_DOUBLE && op != TOKEN_PERCENT)))
        return a;
    if (plus && a == b && (a == CEL_STRING || a == CEL_BYTES || a == CEL_LIST))
        return a;
    if ((plus || minus) && a == CEL_DURATION && b == CEL_DURATION)
        return CEL_DURATION;
    if ((plus || minus) && a == CEL_TIMESTAMP && b == CEL_DURATION)
        return CEL_TIMESTAMP;
    if (plus && a == CEL_DURATION && b == CEL_TIMESTAMP)
        return CEL_TIMESTAMP;
    if (minus && a == CEL_TIMESTAMP && b == CEL_TIMESTAMP)
        return CEL_DURATION;
    return CEL_ERROR;
}

static bool comparable(cel_kind a, cel_kind b)
{
    if (is_number(a) && is_number(b))
        return true;
    return a == b && (a == CEL_BOOL || a == CEL_STRING || a == CEL_BYTES || a == CEL_TIMESTAMP ||
                      a == CEL_DURATION);
}

/* The type of a op b, with *ret_good false when there is none. */
static const cel_type *operator_type(checker *c, token_kind op, const cel_type *left,
                                     const cel_type *right, bool *ret_good)
{
    cel_kind a = type_kind(left);
    cel_kind b = type_kind(right);
    bool known = a != CEL_DYN && b != CEL_DYN;
    const cel_type *yes_no = &cel_types[CEL_BOOL];
    if (op == TOKEN_EQ || op == TOKEN_NE) {
        *ret_good =
            !known || a == b || a == CEL_NULL || b == CEL_NULL || (is_number(a) && is_number(b));
        return yes_no;
    }
    if (op == TOKEN_IN) {
        *ret_good = b == CEL_DYN || b == CEL_LIST || b == CEL_MAP;
        return yes_no;
    }
    if (op >= TOKEN_LT && op <= TOKEN_GE) {
        *ret_good = !known || comparable(a, b);
        return yes_no;
    }
    if (!known) {
        *ret_good = true;
        bool simple = op != TOKEN_PLUS && op != TOKEN_MINUS;
        return simple && a != CEL_DYN ? left : simple && b != CEL_DYN ? right : NULL;
    }
    cel_kind kind = arithmetic_kind(op, a, b);
    *ret_good = kind != CEL_ERROR;
    if (kind == CEL_LIST) {
        const cel_type *list = cel_type_join(c->arena, left, right);
        return list ? list : &cel_types[CEL_LIST];
    }
    return *ret_good ? &cel_types[kind] : NULL;
}

static bool bad_operands(checker *c, chain_op op, const cel_type *left, const cel_type *right)
{
    buf text = BUF(400);
    const char *name = cel_token_name(op.op);
    cel_type_print(&text, left);
    buf_addf(&text, " %.*s ", (int)strlen(name) - 2, name + 1);
    cel_type_print(&text, right);
    bool good = cel_check_mismatch(c, op.at, "no such operation: %.*s", STR_ARG(buf_str(&text)));
    buf_done(&text);
    return good;
}

static bool check_items(checker *c, node *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (!cel_check(c, n->items[i]))
            return false;
    return true;
}

static bool check_chain(checker *c, node *n)
{
    if (!check_items(c, n))
        return false;
    const cel_type *type = n->items[0]->type;
    for (uint32_t i = 1; i < n->count; i++) {
        bool good = true;
        const cel_type *next = operator_type(c, n->ops[i - 1].op, type, n->items[i]->type, &good);
        if (!good && !bad_operands(c, n->ops[i - 1], type, n->items[i]->type))
            return false;
        type = next;
    }
    n->type = type;
    cel_fold(c, n);
    return true;
}

static bool check_logic(checker *c, node *n)
{
    if (!check_items(c, n))
        return false;
    const char *op = n->kind == NODE_AND ? "&&" : n->kind == NODE_OR ? "||" : "!";
    for (uint32_t i = 0; i < n->count; i++)
        if (!may_be(n->items[i], CEL_BOOL) &&
            !cel_check_mismatch(c, n->items[i]->at, "%s needs bool, found %s", op,
                                cel_kind_name(type_kind(n->items[i]->type))))
            return false;
    n->type = &cel_types[CEL_BOOL];
    cel_fold(c, n);
    return true;
}

static bool check_negate(checker *c, node *n)
{
    if (!check_items(c, n))
        return false;
    node *operand = n->items[0];
    if (!may_be(operand, CEL_INT) && !may_be(operand, CEL_DOUBLE) &&
        !cel_check_mismatch(c, n->at, "- needs int or double, found %s",
                            cel_kind_name(type_kind(operand->type))))
        return false;
    n->type = operand->type;
    cel_fold(c, n);
    return true;
}

static bool check_condition(checker *c, node *n)
{
    if (!check_items(c, n))
        return false;
    if (!may_be(n->items[0], CEL_BOOL) &&
        !cel_check_mismatch(c, n->at, "? needs bool before it, found %s",
                            cel_kind_name(type_kind(n->items[0]->type))))
        return false;
    n->type = cel_type_join(c->arena, n->items[1]->type, n->items[2]->type);
    return true;
}

/* ---- Literals and indexing ---------------------------------------------------------------- */

/* The element type of [?x] is what x holds. */
static const cel_type *entry_type(const node *item, bool optional)
{
    if (!optional)
        return item->type;
    return type_kind(item->type) == CEL_OPTIONAL ? item->type->element : NULL;
}

static bool check_list(checker *c, node *n)
{
    if (!check_items(c, n))
        return false;
    const cel_type *element = &free_type;
    for (uint32_t i = 0; i < n->count; i++)
        element = cel_type_join(c->arena, element,
                                entry_type(n->items[i], n->optional && n->optional[i]));
    n->type = cel_type_make(c->arena, CEL_LIST, NULL, element);
    return fold_literal(c, n);
}

static bool check_map(checker *c, node *n)
{
    if (!check_items(c, n))
        return false;
    const cel_type *key = &free_type;
    const cel_type *element = &free_type;
    for (uint32_t i = 0; i < n->count; i += 2) {
        const cel_type *t = entry_type(n->items[i + 1], n->optional && n->optional[i / 2]);
        cel_kind k = type_kind(n->items[i]->type);
        if (k != CEL_DYN && k != CEL_BOOL && k != CEL_INT && k != CEL_UINT && k != CEL_STRING &&
            !cel_check_mismatch(c, n->items[i]->at,
                                "a key of type %s: expected bool, int, uint or string",
                                cel_kind_name(k)))
            return false;
        key = cel_type_join(c->arena, key, n->items[i]->type);
        element = cel_type_join(c->arena, element, t);
    }
    n->type = cel_type_make(c->arena, CEL_MAP, key, element);
    return fold_literal(c, n);
}

static bool check_index(checker *c, node *n)
{
    if (!check_items(c, n))
        return false;
    const cel_type *container = n->items[0]->type;
    bool optional = n->op == SELECT_OPTIONAL;
    if (type_kind(container) == CEL_OPTIONAL) {
        container = container->element;
        optional = true;
    }
    cel_kind kind = type_kind(container);
    cel_kind index = type_kind(n->items[1]->type);
    if (kind != CEL_LIST && kind != CEL_MAP && kind != CEL_DYN &&
        !cel_check_mismatch(c, n->at, "type %s has no elements", cel_kind_name(kind)))
        return false;
    if (kind == CEL_LIST && index != CEL_DYN && !is_number(index) &&
        !cel_check_mismatch(c, n->items[1]->at, "the index of a list is an int, found %s",
                            cel_kind_name(index)))
        return false;
    bool container_known = kind == CEL_LIST || kind == CEL_MAP;
    const cel_type *element = container_known ? container->element : NULL;
    n->type = optional ? cel_type_make(c->arena, CEL_OPTIONAL, NULL, element) : element;
    cel_fold(c, n);
    return true;
}

/* ---- Nodes that bind names ---------------------------------------------------------------- */

static bool bind(checker *c, node *n, str name, const cel_type *type)
{
    local *l = ARENA_NEW(c->arena, local);
    if (!l)
        return cel_check_fail(c, n->at, "out of memory");
    if (c->slots >= LIMIT_CEL_LOCALS)
        return cel_check_fail(c, n->at, "more than %u names are bound at once",
                              (unsigned)LIMIT_CEL_LOCALS);
    *l = (local){name, type, c->slots++, c->scope};
    c->scope = l;
    if (c->slots > c->program->locals)
        c->program->locals = c->slots;
    return true;
}

static const cel_type *loop_type(checker *c, const node *n)
{
    const cel_type *range = n->items[0]->type;
    const cel_type *body = n->items[1]->type;
    bool map = type_kind(range) == CEL_MAP;
    switch ((loop_kind)n->op) {
    case LOOP_ALL:
    case LOOP_EXISTS:
    case LOOP_EXISTS_ONE: return &cel_types[CEL_BOOL];
    case LOOP_FILTER:
    case LOOP_SORT_BY:
        return cel_type_make(c->arena, CEL_LIST, NULL,
                             range ? map ? range->key : range->element : NULL);
    case LOOP_MAP: return cel_type_make(c->arena, CEL_LIST, NULL, body);
    case LOOP_TRANSFORM_MAP:
        return cel_type_make(c->arena, CEL_MAP,
                             map                            ? range->key
                             : type_kind(range) == CEL_LIST ? &cel_types[CEL_INT]
                                                            : NULL,
                             body);
    case LOOP_TRANSFORM_ENTRY: return type_kind(body) == CEL_MAP ? body : &cel_types[CEL_MAP];
    }
    return NULL;
}

static bool loop_needs_bool(checker *c, const node *n)
{
    bool predicate = n->op <= LOOP_FILTER;
    const node *condition = predicate ? n->items[1] : n->count == 3 ? n->items[2] : NULL;
    return !condition || may_be(condition, CEL_BOOL) ||
           cel_check_mismatch(c, condition->at, "expected a condition of type bool, found %s",
                              cel_kind_name(type_kind(condition->type)));
}

static bool check_loop(checker *c, node *n)
{
    if (!cel_check(c, n->items[0]))
        return false;
    const cel_type *range = n->items[0]->type;
    cel_kind kind = type_kind(range);
    if (kind != CEL_LIST && kind != CEL_MAP && kind != CEL_DYN &&
        !cel_check_mismatch(c, n->at, "expected a list or map to go through, found %s",
                            cel_kind_name(kind)))
        return false;
    bool known = kind == CEL_LIST || kind == CEL_MAP;
    const cel_type *element = known ? range->element : NULL;
    const cel_type *key = kind == CEL_MAP    ? range->key
                          : kind == CEL_LIST ? &cel_types[CEL_INT]
                                             : NULL;
    local *outer = c->scope;
    n->slot = c->slots;
    bool two = n->name2.len > 0;
    bool good = bind(c, n, n->name, two || kind == CEL_MAP ? key : element) &&
                (!two || bind(c, n, n->name2, element)) && cel_check(c, n->items[1]) &&
                (n->count < 3 || cel_check(c, n->items[2])) && loop_needs_bool(c, n);
    c->scope = outer;
    c->slots = n->slot;
    if (good)
        n->type = loop_type(c, n);
    return good;
}

static bool check_bind(checker *c, node *n)
{
    if (!cel_check(c, n->items[0]))
        return false;
    local *outer = c->scope;
    const cel_type *type = n->items[0]->type;
    bool opt = n->kind == NODE_OPT_MAP;
    if (opt && !may_be(n->items[0], CEL_OPTIONAL) &&
        !cel_check_mismatch(c, n->at, "expected an optional value, found %s",
                            cel_kind_name(type_kind(type))))
        return false;
    if (opt)
        type = type_kind(type) == CEL_OPTIONAL ? type->element : NULL;
    n->slot = c->slots;
    bool good = bind(c, n, n->name, type) && cel_check(c, n->items[1]);
    c->scope = outer;
    c->slots = n->slot;
    if (good) {
        n->type = n->items[1]->type;
        if (opt && !n->op)
            n->type = cel_type_make(c->arena, CEL_OPTIONAL, NULL, n->type);
    }
    return good;
}

static bool check_block(checker *c, node *n)
{
    local *outer = c->scope;
    n->slot = c->slots;
    /* The slots of the entries are neighbours; names inside an entry come behind all of them. */
    uint32_t entries = n->count - 1;
    bool good = c->slots + entries <= LIMIT_CEL_LOCALS ||
                cel_check_fail(c, n->at, "more than %u names are bound at once",
                               (unsigned)LIMIT_CEL_LOCALS);
    for (uint32_t i = 0; good && i < entries; i++) {
        c->slots = n->slot + entries;
        good = cel_check(c, n->items[i]);
        c->slots = n->slot + i;
        str name = arena_printf(c->arena, "@index:%u:0", i);
        good = good && (name.ptr || cel_check_fail(c, n->at, "out of memory")) &&
               bind(c, n, name, n->items[i]->type);
    }
    c->slots = n->slot + entries;
    good = good && cel_check(c, n->items[entries]);
    c->scope = outer;
    c->slots = n->slot;
    if (good)
        n->type = n->items[entries]->type;
    return good;
}

static bool check_kind(checker *c, node *n)
{
    switch ((node_kind)n->kind) {
    case NODE_CONST: n->type = &cel_types[n->value.kind]; return true;
    case NODE_IDENT: return cel_check_ident(c, n);
    case NODE_SELECT: return cel_check_select(c, n);
    case NODE_INDEX: return check_index(c, n);
    case NODE_CALL: return cel_check_call(c, n);
    case NODE_LIST: return check_list(c, n);
    case NODE_MAP: return check_map(c, n);
    case NODE_NOT:
    case NODE_AND:
    case NODE_OR: return check_logic(c, n);
    case NODE_NEGATE: return check_negate(c, n);
    case NODE_CHAIN: return check_chain(c, n);
    case NODE_CONDITION: return check_condition(c, n);
    case NODE_LOOP: return check_loop(c, n);
    case NODE_BIND:
    case NODE_OPT_MAP: return check_bind(c, n);
    case NODE_BLOCK: return check_block(c, n);
    case NODE_MESSAGE: break;
    }
    return false;
}

bool cel_check(checker *c, node *n)
{
    if (!check_kind(c, n))
        return false;
    cel_bind_run(n);
    return true;
}
