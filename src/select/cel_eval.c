/* SPDX-License-Identifier: Apache-2.0 */
/* Every node knows the function that evaluates it; errors are values and travel upwards unless an
 * operator absorbs them. What exhausts memory or cost is never absorbed: r->fatal. */
#include <stdarg.h>
#include <stdio.h>

#include "select/cel_functions.h"

/* ---- Errors, cost, memory ----------------------------------------------------------------- */

cel_value cel_fail(cel_code code, const char *text)
{
    return (cel_value){.kind = CEL_ERROR, .code = (uint16_t)code, .len = AT_UNKNOWN, .text = text};
}

cel_value cel_failf(run *r, cel_code code, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    str copy = arena_str(r->arena, str_of(text));
    return cel_fail(code, copy.ptr ? copy.ptr : "out of memory for the message");
}

cel_value cel_stop(run *r, cel_code code, const char *text)
{
    if (!r->stopped) {
        r->stopped = true;
        r->fatal = cel_fail(code, text);
    }
    r->cost = 0;
    return r->fatal;
}

cel_value cel_cost_exceeded(run *r)
{
    return cel_stop(r, CEL_COST_EXCEEDED, "the evaluation costs more than its limit");
}

bool cel_charge(run *r, uint64_t cost)
{
    if (r->cost < cost) {
        cel_cost_exceeded(r);
        return false;
    }
    r->cost -= cost;
    return true;
}

bool cel_charge_bytes(run *r, size_t bytes)
{
    return bytes < 32 || cel_charge(r, bytes / 32);
}

void *cel_alloc(run *r, size_t count, size_t element_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, element_bytes, &bytes) || bytes > r->bytes_end ||
        arena_used(r->arena) > r->bytes_end - bytes) {
        cel_stop(r, CEL_MEMORY, "the evaluation needs more memory than its limit");
        return NULL;
    }
    void *ptr = cel_charge_bytes(r, bytes) ? arena_alloc(r->arena, bytes) : NULL;
    if (!ptr)
        cel_stop(r, CEL_MEMORY, "out of memory");
    return ptr;
}

run cel_run_in(arena *a)
{
    return (run){.arena = a, .cost = UINT64_MAX, .bytes_end = SIZE_MAX};
}

cel_value cel_no_overload(run *r, str function, const cel_value *args, uint32_t count)
{
    char kinds[160] = "";
    size_t len = 0;
    for (uint32_t i = 0; i < count && len < 120; i++)
        len += (size_t)snprintf(kinds + len, sizeof kinds - len, "%s%s", i ? ", " : "",
                                cel_kind_name(args[i].kind));
    return cel_failf(r, CEL_NO_SUCH_OVERLOAD, "no such overload: %.*s(%s)",
                     function.len > 60 ? 60 : (int)function.len, function.ptr, kinds);
}

/* Without printf: a missing key is an everyday answer of selectors. */
cel_value cel_no_key(run *r, cel_value key)
{
    static const str prefix = STR("no such key: ");
    if (key.kind != CEL_STRING) {
        buf text = BUF(200);
        cel_render(r, &text, key);
        cel_value v = cel_failf(r, CEL_NO_SUCH_KEY, "no such key: %.*s", STR_ARG(buf_str(&text)));
        buf_done(&text);
        return v;
    }
    str name = str_part(cel_text(key), 0, 200);
    char *text = cel_alloc(r, prefix.len + name.len + 1, 1);
    if (!text)
        return r->fatal;
    memcpy(text, prefix.ptr, prefix.len);
    memcpy(text + prefix.len, name.ptr, name.len);
    return cel_fail(CEL_NO_SUCH_KEY, text);
}

/* Errors carry where they arose: the first one to see it says so. */
static inline cel_value placed(cel_value v, uint32_t at)
{
    if (__builtin_expect(is_error(v), 0) && v.len == AT_UNKNOWN)
        v.len = at;
    return v;
}

/* ---- Names and selection ------------------------------------------------------------------ */

static cel_value run_const(run *r, const node *n)
{
    (void)r;
    return n->value;
}

static cel_value run_variable(run *r, const node *n)
{
    cel_value v = r->bindings[n->slot];
    if (is_error(v))
        return placed(
            cel_failf(r, CEL_NO_SUCH_VARIABLE, "the variable %.*s has no value", STR_ARG(n->name)),
            n->at);
    return v;
}

static cel_value run_local(run *r, const node *n)
{
    return r->locals[n->slot];
}

/* A name that only unchecked programs may have. */
static cel_value run_unknown(run *r, const node *n)
{
    if (n->kind == NODE_CALL)
        return placed(cel_failf(r, CEL_NO_SUCH_OVERLOAD, "unknown function %.*s", STR_ARG(n->name)),
                      n->at);
    return placed(cel_failf(r, CEL_NO_SUCH_VARIABLE, "unknown variable %.*s", STR_ARG(n->name)),
                  n->at);
}

static cel_value no_field(run *r, const node *n, cel_value target)
{
    return placed(cel_failf(r, CEL_NO_SUCH_FIELD, "type %s has no fields: .%.*s",
                            cel_kind_name(target.kind), n->name.len > 60 ? 60 : (int)n->name.len,
                            n->name.ptr),
                  n->at);
}

static cel_value run_select(run *r, const node *n)
{
    cel_value target = eval(r, n->items[0]);
    if (target.kind == CEL_MAP) {
        cel_value v;
        if (cel_lookup(r, target, n->value, &v))
            return v;
        return placed(cel_no_key(r, n->value), n->at);
    }
    return is_error(target) ? target : no_field(r, n, target);
}

/* x.?f, has(x.f), and x.f where x may be optional. */
static cel_value run_select_special(run *r, const node *n)
{
    cel_value target = eval(r, n->items[0]);
    bool optional = n->op == SELECT_OPTIONAL;
    if (target.kind == CEL_OPTIONAL) {
        if (!target.inner)
            return n->op == SELECT_TEST ? cel_bool(false) : target;
        target = *target.inner;
        optional = true;
    }
    if (is_error(target))
        return target;
    if (target.kind != CEL_MAP)
        return no_field(r, n, target);
    cel_value v;
    bool found = cel_lookup(r, target, n->value, &v);
    if (n->op == SELECT_TEST)
        return cel_bool(found);
    if (optional)
        return found ? cel_make_optional(r, v) : (cel_value){.kind = CEL_OPTIONAL};
    return found ? v : placed(cel_no_key(r, n->value), n->at);
}

static cel_value list_at(run *r, cel_value list, cel_value index)
{
    int64_t i = -1;
    if (index.kind == CEL_INT)
        i = index.i;
    else if (index.kind == CEL_UINT)
        i = index.u <= INT64_MAX ? index.i : -1;
    else if (index.kind == CEL_DOUBLE && index.d >= 0 && index.d < 0x1p62)
        i = (double)(int64_t)index.d == index.d ? (int64_t)index.d : -1;
    else
        return cel_failf(r, CEL_INVALID_ARGUMENT, "a list has no index of type %s",
                         cel_kind_name(index.kind));
    size_t len = cel_size(list);
    if (i < 0 || (uint64_t)i >= len)
        return cel_failf(r, CEL_OUT_OF_RANGE,
                         "the index is out of range: the list has %zu elements", len);
    if (list.form == FORM_JSON && !cel_charge(r, (uint64_t)i / 8))
        return r->fatal;
    cel_value key;
    cel_value v;
    cel_at(list, (size_t)i, r->arena, &key, &v);
    return v;
}

cel_value cel_index(run *r, cel_value container, cel_value index)
{
    if (container.kind == CEL_MAP) {
        cel_value v;
        return cel_lookup(r, container, index, &v) ? v : cel_no_key(r, index);
    }
    if (container.kind == CEL_LIST)
        return list_at(r, container, index);
    const cel_value args[] = {container, index};
    return cel_no_overload(r, STR("_[_]"), args, 2);
}

static cel_value run_index(run *r, const node *n)
{
    cel_value container = eval(r, n->items[0]);
    if (is_error(container))
        return container;
    bool optional = n->op == SELECT_OPTIONAL;
    if (container.kind == CEL_OPTIONAL) {
        if (!container.inner)
            return container;
        container = *container.inner;
        optional = true;
    }
    cel_value index = eval(r, n->items[1]);
    if (is_error(index))
        return index;
    cel_value v = placed(cel_index(r, container, index), n->at);
    if (!optional)
        return v;
    if (is_error(v))
        return v.code == CEL_NO_SUCH_KEY || v.code == CEL_OUT_OF_RANGE
                   ? (cel_value){.kind = CEL_OPTIONAL}
                   : v;
    return cel_make_optional(r, v);
}

/* ---- Literals ----------------------------------------------------------------------------- */

/* The content of [?x] and {?k: x}; *skip when there is none. */
static cel_value unwrap(run *r, cel_value v, bool *skip)
{
    if (v.kind != CEL_OPTIONAL)
        return cel_failf(r, CEL_NO_SUCH_OVERLOAD, "\"?\" needs an optional value, found %s",
                         cel_kind_name(v.kind));
    *skip = !v.inner;
    return v.inner ? *v.inner : v;
}

static cel_value run_list(run *r, const node *n)
{
    cel_value *items = cel_alloc(r, n->count, sizeof *items);
    if (!items)
        return r->fatal;
    size_t len = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        bool skip = false;
        cel_value v = eval(r, n->items[i]);
        if (!is_error(v) && n->optional && n->optional[i])
            v = unwrap(r, v, &skip);
        if (is_error(v))
            return placed(v, n->items[i]->at);
        if (!skip)
            items[len++] = v;
    }
    return cel_native_list(r, items, len);
}

static cel_value run_map(run *r, const node *n)
{
    cel_entry *entries = cel_alloc(r, n->count / 2, sizeof *entries);
    if (!entries)
        return r->fatal;
    size_t len = 0;
    for (uint32_t i = 0; i < n->count; i += 2) {
        bool skip = false;
        cel_value key = eval(r, n->items[i]);
        if (is_error(key))
            return key;
        cel_value v = eval(r, n->items[i + 1]);
        if (!is_error(v) && n->optional && n->optional[i / 2])
            v = unwrap(r, v, &skip);
        if (is_error(v))
            return placed(v, n->items[i + 1]->at);
        if (!skip)
            entries[len++] = (cel_entry){key, v};
    }
    return placed(cel_native_map(r, entries, len), n->at);
}

/* ---- Operators ---------------------------------------------------------------------------- */

static cel_value run_not(run *r, const node *n)
{
    cel_value v = eval(r, n->items[0]);
    if (v.kind == CEL_BOOL)
        return cel_bool(v.b != (n->op != 0));
    return is_error(v) ? v : placed(cel_no_overload(r, STR("!"), &v, 1), n->at);
}

static cel_value run_negate(run *r, const node *n)
{
    cel_value v = eval(r, n->items[0]);
    if (v.kind == CEL_DOUBLE)
        return n->op ? cel_double(-v.d) : v;
    if (v.kind == CEL_INT && v.i == INT64_MIN)
        return placed(cel_fail(CEL_OVERFLOW, "integer overflow"), n->at);
    if (v.kind == CEL_INT)
        return n->op ? cel_int(-v.i) : v;
    return is_error(v) ? v : placed(cel_no_overload(r, STR("-"), &v, 1), n->at);
}

/* "decisive" ends it: false for &&, true for ||. Errors wait for a decisive operand. */
static cel_value run_logic(run *r, const node *n, bool decisive)
{
    cel_value problem = cel_bool(!decisive);
    for (uint32_t i = 0; i < n->count; i++) {
        cel_value v = eval(r, n->items[i]);
        if (v.kind == CEL_BOOL) {
            if (v.b == decisive)
                return v;
            continue;
        }
        if (is_error(problem))
            continue;
        problem = is_error(v) ? v
                              : placed(cel_no_overload(r, decisive ? STR("||") : STR("&&"), &v, 1),
                                       n->items[i]->at);
    }
    return problem;
}

static cel_value run_and(run *r, const node *n)
{
    return run_logic(r, n, false);
}

static cel_value run_or(run *r, const node *n)
{
    return run_logic(r, n, true);
}

static cel_value run_condition(run *r, const node *n)
{
    cel_value v = eval(r, n->items[0]);
    if (v.kind == CEL_BOOL)
        return eval(r, n->items[v.b ? 1 : 2]);
    return is_error(v) ? v : placed(cel_no_overload(r, STR("?:"), &v, 1), n->at);
}

static bool ordered(token_kind op, int order)
{
    if (order == 2) /* NaN */
        return false;
    if (op == TOKEN_LT)
        return order < 0;
    if (op == TOKEN_LE)
        return order <= 0;
    return op == TOKEN_GT ? order > 0 : order >= 0;
}

static str op_name(token_kind op)
{
    str quoted = str_of(cel_token_name(op));
    return (str){quoted.ptr + 1, quoted.len - 2};
}

static cel_value membership(run *r, cel_value item, cel_value container)
{
    if (container.kind == CEL_LIST)
        return cel_bool(cel_contains(r, container, item));
    cel_value v;
    if (container.kind == CEL_MAP)
        return cel_bool(cel_lookup(r, container, item, &v));
    const cel_value args[] = {item, container};
    return cel_no_overload(r, STR("in"), args, 2);
}

cel_value cel_operate(run *r, token_kind op, cel_value a, cel_value b)
{
    if (op == TOKEN_EQ || op == TOKEN_NE)
        return cel_bool(cel_same(r, a, b) == (op == TOKEN_EQ));
    if (op == TOKEN_IN)
        return membership(r, a, b);
    if (op >= TOKEN_LT && op <= TOKEN_GE) {
        int order;
        if (a.kind == CEL_STRING || a.kind == CEL_BYTES)
            cel_charge_bytes(r, a.len);
        if (cel_order(a, b, &order))
            return cel_bool(ordered(op, order));
    } else {
        cel_value v = cel_arithmetic(r, op, a, b);
        if (!is_error(v) || v.text)
            return v;
    }
    const cel_value args[] = {a, b};
    return cel_no_overload(r, op_name(op), args, 2);
}

static cel_value run_chain(run *r, const node *n)
{
    cel_value left = eval(r, n->items[0]);
    for (uint32_t i = 1; i < n->count && !is_error(left); i++) {
        cel_value right = eval(r, n->items[i]);
        left = is_error(right)
                   ? right
                   : placed(cel_operate(r, n->ops[i - 1].op, left, right), n->ops[i - 1].at);
    }
    return left;
}

/* The operator of nearly every selector, without the detour. */
static cel_value run_equal(run *r, const node *n)
{
    cel_value a = eval(r, n->items[0]);
    if (is_error(a))
        return a;
    cel_value b = eval(r, n->items[1]);
    if (is_error(b))
        return b;
    if (a.kind == CEL_STRING && b.kind == CEL_STRING && a.len <= 32)
        return cel_bool(a.len == b.len && memcmp(a.text, b.text, a.len) == 0);
    return cel_bool(cel_same(r, a, b));
}

static cel_value run_in(run *r, const node *n)
{
    cel_value a = eval(r, n->items[0]);
    if (is_error(a))
        return a;
    cel_value b = eval(r, n->items[1]);
    return is_error(b) ? b : placed(membership(r, a, b), n->ops[0].at);
}

/* ---- Calls -------------------------------------------------------------------------------- */

static bool fits(const cel_function *f, const cel_value *args, uint32_t count)
{
    if (f->count != count && f->count != CEL_VARIADIC)
        return false;
    uint32_t typed = count < CEL_ARGS_MOST ? count : CEL_ARGS_MOST;
    for (uint32_t i = 0; i < typed && f->count != CEL_VARIADIC; i++)
        if (!(f->kinds[i] & 1u << args[i].kind))
            return false;
    return true;
}

static cel_value call(run *r, const node *n, const cel_value *args)
{
    for (const cel_function *f = n->function; cel_function_same(f, n->function); f++)
        if (fits(f, args, n->count))
            return placed(f->fn(r, args, n->count), n->at);
    return placed(cel_no_overload(r, n->name, args, n->count), n->at);
}

static cel_value run_call(run *r, const node *n)
{
    cel_value few[CEL_ARGS_MOST];
    cel_value *args = few;
    if (n->count > CEL_ARGS_MOST) {
        args = cel_alloc(r, n->count, sizeof *args);
        if (!args)
            return r->fatal;
    }
    for (uint32_t i = 0; i < n->count; i++) {
        args[i] = eval(r, n->items[i]);
        if (is_error(args[i]))
            return args[i];
    }
    return call(r, n, args);
}

/* x.or(y) and x.orValue(y): y is evaluated only when x is empty. */
static cel_value run_optional_or(run *r, const node *n)
{
    cel_value args[2] = {eval(r, n->items[0]), cel_null()};
    if (is_error(args[0]))
        return args[0];
    if (args[0].kind == CEL_OPTIONAL && args[0].inner)
        return n->function->fn == cel_fn_or ? args[0] : *args[0].inner;
    args[1] = eval(r, n->items[1]);
    return is_error(args[1]) ? args[1] : call(r, n, args);
}

static cel_value run_matches(run *r, const node *n)
{
    cel_value text = eval(r, n->items[0]);
    if (text.kind == CEL_STRING)
        return cel_matches(r, n->regex, cel_text(text));
    return is_error(text) ? text : placed(cel_no_overload(r, n->name, &text, 1), n->at);
}

/* ---- Which function a node has ------------------------------------------------------------ */

static node_run *chain_run(const node *n)
{
    if (n->count == 2 && n->ops[0].op == TOKEN_EQ)
        return run_equal;
    if (n->count == 2 && n->ops[0].op == TOKEN_IN)
        return run_in;
    return run_chain;
}

static node_run *call_run(const node *n)
{
    if (!n->function)
        return run_unknown;
    if (n->regex)
        return run_matches;
    bool lazy = n->function->fn == cel_fn_or || n->function->fn == cel_fn_or_value;
    return lazy && n->count == 2 ? run_optional_or : run_call;
}

static node_run *select_run(const node *n)
{
    cel_kind target = type_kind(n->items[0]->type);
    bool maybe_optional = target == CEL_OPTIONAL || target == CEL_DYN;
    /* A value out of data is never optional; only these nodes make one. */
    uint8_t from = n->items[0]->kind;
    if (from == NODE_IDENT && n->items[0]->run == run_variable)
        maybe_optional = false;
    if (from == NODE_SELECT && n->items[0]->run == run_select)
        maybe_optional = false;
    return n->op == SELECT_PLAIN && !maybe_optional ? run_select : run_select_special;
}

void cel_bind_run(node *n)
{
    switch ((node_kind)n->kind) {
    case NODE_CONST: n->run = run_const; return;
    case NODE_IDENT: n->run = n->op ? n->op == 1 ? run_local : run_variable : run_unknown; return;
    case NODE_SELECT: n->run = select_run(n); return;
    case NODE_INDEX: n->run = run_index; return;
    case NODE_CALL: n->run = call_run(n); return;
    case NODE_LIST: n->run = run_list; return;
    case NODE_MAP: n->run = run_map; return;
    case NODE_NOT: n->run = run_not; return;
    case NODE_NEGATE: n->run = run_negate; return;
    case NODE_CHAIN: n->run = chain_run(n); return;
    case NODE_AND: n->run = run_and; return;
    case NODE_OR: n->run = run_or; return;
    case NODE_CONDITION: n->run = run_condition; return;
    case NODE_LOOP: n->run = cel_run_loop; return;
    case NODE_BIND: n->run = cel_run_bind; return;
    case NODE_BLOCK: n->run = cel_run_block; return;
    case NODE_OPT_MAP: n->run = cel_run_opt_map; return;
    case NODE_MESSAGE: n->run = run_unknown; return;
    }
}
