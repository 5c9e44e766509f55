/* SPDX-License-Identifier: Apache-2.0 */
/* A parser by precedence. Operators of one level in a row become one node with many operands, and a
 * run of "!" or "-" becomes one node, so that only real nesting costs depth. */
#include "select/cel_internal.h"

static node *parse_expression(parser *p);
static node *parse_binary(parser *p, int min);

/* ---- Nodes -------------------------------------------------------------------------------- */

node *cel_node(parser *p, node_kind kind, uint32_t at, uint32_t count)
{
    if (++p->nodes > LIMIT_CEL_NODES) {
        cel_parse_fail(p, at, "the expression has more than %u parts", (unsigned)LIMIT_CEL_NODES);
        return NULL;
    }
    node *n = ARENA_NEW(p->lx.arena, node);
    if (n && count > 0)
        n->items = ARENA_ARRAY(p->lx.arena, count, node *);
    if (!n || (count > 0 && !n->items)) {
        cel_parse_fail(p, at, "out of memory");
        return NULL;
    }
    n->kind = kind;
    n->at = at;
    n->count = count;
    n->height = 1;
    return n;
}

node *cel_node_done(parser *p, node *n)
{
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->items[i]->height >= LIMIT_CEL_DEPTH) {
            cel_parse_fail(p, n->at, "the expression is nested deeper than %d", LIMIT_CEL_DEPTH);
            return NULL;
        }
        if (n->items[i]->height >= n->height)
            n->height = (uint16_t)(n->items[i]->height + 1);
    }
    return n;
}

static node *constant(parser *p, uint32_t at, cel_value value)
{
    node *n = cel_node(p, NODE_CONST, at, 0);
    if (n)
        n->value = value;
    return n;
}

/* Operands on their way into an array. */
typedef struct operands {
    node *first;
    node *last;
    uint32_t count;
    bool any_optional;
} operands;

static void push(operands *list, node *n)
{
    if (list->last)
        list->last->next = n;
    else
        list->first = n;
    list->last = n;
    list->count++;
}

static node *collected(parser *p, node_kind kind, uint32_t at, const operands *list)
{
    node *n = cel_node(p, kind, at, list->count);
    if (!n)
        return NULL;
    uint32_t i = 0;
    for (node *item = list->first; item; item = item->next)
        n->items[i++] = item;
    return cel_node_done(p, n);
}

/* ---- Tokens ------------------------------------------------------------------------------- */

static void advance(parser *p)
{
    p->before = p->tok;
    p->tok = cel_lex(&p->lx);
}

static bool accept(parser *p, token_kind kind)
{
    if (p->tok.kind != kind)
        return false;
    advance(p);
    return true;
}

/* What was found, for a message. */
static const char *found(const parser *p, char out[48])
{
    token_kind kind = p->tok.kind;
    if (kind == TOKEN_IDENT || kind == TOKEN_QUOTED || kind == TOKEN_LITERAL ||
        kind == TOKEN_MIN_INT) {
        str text = str_part(p->lx.source, p->tok.at, p->tok.len);
        int len = text.len > 30 ? 30 : (int)text.len;
        while (len > 0 && (size_t)len < text.len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
            len--; /* not in the middle of a character */
        snprintf(out, 48, "%s%.*s%s", kind == TOKEN_IDENT ? "\"" : "", len, text.ptr,
                 (size_t)len < text.len ? "..."
                 : kind == TOKEN_IDENT  ? "\""
                                        : "");
        return out;
    }
    return cel_token_name(kind);
}

static node *expected(parser *p, const char *what)
{
    char text[48];
    cel_parse_fail(p, p->tok.at, "expected %s, found %s", what, found(p, text));
    return NULL;
}

static bool close_with(parser *p, token_kind kind, uint32_t open)
{
    if (accept(p, kind))
        return true;
    unsigned line;
    unsigned column;
    char what[96];
    cel_position(p->lx.source, open, &line, &column);
    snprintf(what, sizeof what, "%s for the %.1s at line %u, column %u", cel_token_name(kind),
             p->lx.source.ptr + open, line, column);
    expected(p, what);
    return false;
}

static bool enter(parser *p)
{
    if (++p->depth <= LIMIT_CEL_DEPTH)
        return true;
    return cel_parse_fail(p, p->tok.at, "the expression is nested deeper than %d", LIMIT_CEL_DEPTH);
}

/* ---- Primary expressions ------------------------------------------------------------------ */

/* Expressions separated by commas up to the closing token, which is taken too. */
static bool parse_list(parser *p, operands *list, token_kind closing, uint32_t open)
{
    while (p->tok.kind != closing) {
        bool optional = closing == TOKEN_RBRACKET && accept(p, TOKEN_QUESTION);
        node *item = parse_expression(p);
        if (!item)
            return false;
        item->slot = optional; /* free until the checker runs */
        list->any_optional |= optional;
        push(list, item);
        if (!accept(p, TOKEN_COMMA))
            break;
        if (closing == TOKEN_RPAREN && p->tok.kind == closing)
            return expected(p, "an expression") != NULL;
    }
    return close_with(p, closing, open);
}

static bool set_optional(parser *p, node *n, uint32_t step)
{
    bool *optional = ARENA_ARRAY(p->lx.arena, n->count, bool);
    if (!optional)
        return cel_parse_fail(p, n->at, "out of memory");
    for (uint32_t i = 0; i < n->count; i += step)
        optional[i / step] = n->items[i]->slot != 0;
    n->optional = optional;
    return true;
}

static node *parse_list_literal(parser *p)
{
    uint32_t at = p->before.at;
    operands list = {0};
    if (!parse_list(p, &list, TOKEN_RBRACKET, at))
        return NULL;
    node *n = collected(p, NODE_LIST, at, &list);
    return n && (!list.any_optional || set_optional(p, n, 1)) ? n : NULL;
}

static node *parse_map_literal(parser *p)
{
    uint32_t at = p->before.at;
    operands list = {0};
    while (p->tok.kind != TOKEN_RBRACE) {
        bool optional = accept(p, TOKEN_QUESTION);
        node *key = parse_expression(p);
        if (!key)
            return NULL;
        if (!accept(p, TOKEN_COLON))
            return expected(p, "\":\" after the key");
        node *value = parse_expression(p);
        if (!value)
            return NULL;
        key->slot = optional;
        list.any_optional |= optional;
        push(&list, key);
        push(&list, value);
        if (!accept(p, TOKEN_COMMA))
            break;
    }
    if (!close_with(p, TOKEN_RBRACE, at))
        return NULL;
    node *n = collected(p, NODE_MAP, at, &list);
    return n && (!list.any_optional || set_optional(p, n, 2)) ? n : NULL;
}

/* name(...), or target.name(...) when there is a target. */
static node *parse_call(parser *p, node *target, token name)
{
    uint32_t open = p->before.at;
    operands list = {0};
    if (target)
        push(&list, target);
    if (!parse_list(p, &list, TOKEN_RPAREN, open))
        return NULL;
    node *n = collected(p, NODE_CALL, name.at, &list);
    if (!n)
        return NULL;
    n->name = name.text;
    n->has_target = target != NULL;
    return p->env->no_macros ? n : cel_macro(p, n);
}

static node *parse_name(parser *p, bool absolute)
{
    token name = p->tok;
    if (name.kind != TOKEN_IDENT)
        return expected(p, "a name after \".\"");
    if (name.reserved) {
        cel_parse_fail(p, name.at, "\"%.*s\" is a reserved word: expected a name",
                       STR_ARG(name.text));
        return NULL;
    }
    advance(p);
    if (accept(p, TOKEN_LPAREN))
        return parse_call(p, NULL, name);
    node *n = cel_node(p, NODE_IDENT, name.at, 0);
    if (!n)
        return NULL;
    n->name = name.text;
    n->absolute = absolute;
    return n;
}

static node *parse_parens(parser *p)
{
    uint32_t open = p->before.at;
    node *n = parse_expression(p);
    return n && close_with(p, TOKEN_RPAREN, open) ? n : NULL;
}

static node *parse_primary(parser *p)
{
    if (p->tok.kind == TOKEN_IDENT)
        return parse_name(p, false);
    if (p->tok.kind == TOKEN_MIN_INT) {
        cel_parse_fail(p, p->tok.at, "the number does not fit int (64 bits)");
        return NULL;
    }
    if (accept(p, TOKEN_LITERAL))
        return constant(p, p->before.at, p->before.value);
    if (accept(p, TOKEN_DOT))
        return parse_name(p, true);
    if (accept(p, TOKEN_LPAREN))
        return parse_parens(p);
    if (accept(p, TOKEN_LBRACKET))
        return parse_list_literal(p);
    if (accept(p, TOKEN_LBRACE))
        return parse_map_literal(p);
    return expected(p, "an expression");
}

/* ---- Selection, indexing, calls ----------------------------------------------------------- */

static node *parse_selection(parser *p, node *target)
{
    uint32_t op = accept(p, TOKEN_QUESTION) ? SELECT_OPTIONAL : SELECT_PLAIN;
    token name = p->tok;
    if (!accept(p, TOKEN_IDENT) && !accept(p, TOKEN_QUOTED))
        return expected(p, "a field name after \".\"");
    if (op == SELECT_PLAIN && name.kind == TOKEN_IDENT && accept(p, TOKEN_LPAREN))
        return parse_call(p, target, name);
    node *n = cel_node(p, NODE_SELECT, name.at, 1);
    if (!n)
        return NULL;
    n->items[0] = target;
    n->name = name.text;
    n->op = (uint8_t)op;
    return cel_node_done(p, n);
}

static node *parse_index(parser *p, node *target)
{
    uint32_t at = p->before.at;
    bool optional = accept(p, TOKEN_QUESTION);
    node *index = parse_expression(p);
    if (!index || !close_with(p, TOKEN_RBRACKET, at))
        return NULL;
    node *n = cel_node(p, NODE_INDEX, at, 2);
    if (!n)
        return NULL;
    n->items[0] = target;
    n->items[1] = index;
    n->op = optional ? SELECT_OPTIONAL : SELECT_PLAIN;
    return cel_node_done(p, n);
}

/* Type{field: value}: read to its end, so that the message is about it and not about the brace. */
static node *parse_message(parser *p, node *type)
{
    uint32_t open = p->before.at;
    while (p->tok.kind != TOKEN_RBRACE) {
        accept(p, TOKEN_QUESTION);
        if (!accept(p, TOKEN_IDENT) && !accept(p, TOKEN_QUOTED))
            return expected(p, "a field name");
        if (!accept(p, TOKEN_COLON))
            return expected(p, "\":\" after the field name");
        if (!parse_expression(p))
            return NULL;
        if (!accept(p, TOKEN_COMMA))
            break;
    }
    if (!close_with(p, TOKEN_RBRACE, open))
        return NULL;
    cel_parse_fail(p, type->at,
                   "protobuf messages are not supported: expected a map such as {\"key\": value}");
    return NULL;
}

static node *parse_member(parser *p)
{
    node *n = parse_primary(p);
    while (n) {
        if (accept(p, TOKEN_DOT)) {
            n = parse_selection(p, n);
        } else if (accept(p, TOKEN_LBRACKET)) {
            n = parse_index(p, n);
        } else if (p->tok.kind == TOKEN_LBRACE && cel_chain_root(n)) {
            advance(p);
            n = parse_message(p, n);
        } else {
            break;
        }
    }
    return n;
}

const node *cel_chain_root(const node *n)
{
    while (n->kind == NODE_SELECT && n->op == SELECT_PLAIN)
        n = n->items[0];
    return n->kind == NODE_IDENT ? n : NULL;
}

/* ---- Operators ---------------------------------------------------------------------------- */

static node *unary(parser *p, node_kind kind, uint32_t at, node *operand, uint64_t times)
{
    if (!operand || times == 0)
        return operand;
    node *n = cel_node(p, kind, at, 1);
    if (!n)
        return NULL;
    n->items[0] = operand;
    n->op = times % 2 == 1;
    return cel_node_done(p, n);
}

static node *parse_minus(parser *p)
{
    uint32_t at = p->tok.at;
    uint64_t times = 0;
    while (accept(p, TOKEN_MINUS))
        times++;
    uint32_t sign = p->before.at;
    node *operand;
    if (accept(p, TOKEN_MIN_INT)) {
        operand = constant(p, sign, cel_int(INT64_MIN));
        times--;
    } else if (p->tok.kind == TOKEN_NOT) {
        if (!enter(p))
            return NULL;
        operand = parse_binary(p, 6);
        p->depth--;
    } else {
        operand = parse_member(p);
    }
    return unary(p, NODE_NEGATE, at, operand, times);
}

static node *parse_unary(parser *p)
{
    if (p->tok.kind == TOKEN_MINUS)
        return parse_minus(p);
    if (p->tok.kind != TOKEN_NOT)
        return parse_member(p);
    uint32_t at = p->tok.at;
    uint64_t times = 0;
    while (accept(p, TOKEN_NOT))
        times++;
    if (!enter(p))
        return NULL;
    node *operand = parse_unary(p);
    p->depth--;
    return unary(p, NODE_NOT, at, operand, times);
}

/* 0 when the token is no binary operator. */
static int level_of(token_kind kind)
{
    if (kind == TOKEN_OR)
        return 1;
    if (kind == TOKEN_AND)
        return 2;
    if (kind == TOKEN_IN || (kind >= TOKEN_EQ && kind <= TOKEN_GE))
        return 3;
    if (kind == TOKEN_PLUS || kind == TOKEN_MINUS)
        return 4;
    if (kind == TOKEN_STAR || kind == TOKEN_SLASH || kind == TOKEN_PERCENT)
        return 5;
    return 0;
}

static bool set_operators(parser *p, node *n)
{
    n->ops = ARENA_ARRAY(p->lx.arena, n->count - 1, chain_op);
    if (!n->ops)
        return cel_parse_fail(p, n->at, "out of memory");
    for (uint32_t i = 1; i < n->count; i++)
        n->ops[i - 1] = n->items[i]->before;
    return true;
}

/* All operands of one level: first op second op third. */
static node *parse_operands(parser *p, node *first, int level)
{
    uint32_t at = p->tok.at;
    operands list = {0};
    push(&list, first);
    while (level_of(p->tok.kind) == level) {
        chain_op op = {p->tok.kind, p->tok.at};
        advance(p);
        node *operand = parse_binary(p, level + 1);
        if (!operand)
            return NULL;
        operand->before = op;
        push(&list, operand);
    }
    if (level <= 2)
        return collected(p, level == 1 ? NODE_OR : NODE_AND, at, &list);
    node *n = collected(p, NODE_CHAIN, at, &list);
    return n && set_operators(p, n) ? n : NULL;
}

static node *parse_binary(parser *p, int min)
{
    node *left = parse_unary(p);
    while (left) {
        int level = level_of(p->tok.kind);
        if (level == 0 || level < min)
            return left;
        left = parse_operands(p, left, level);
    }
    return NULL;
}

static node *parse_condition(parser *p, node *condition)
{
    uint32_t at = p->before.at;
    node *yes = parse_binary(p, 1);
    if (!yes)
        return NULL;
    if (!accept(p, TOKEN_COLON))
        return expected(p, "\":\" and what holds otherwise");
    node *no = parse_expression(p);
    node *n = no ? cel_node(p, NODE_CONDITION, at, 3) : NULL;
    if (!n)
        return NULL;
    n->items[0] = condition;
    n->items[1] = yes;
    n->items[2] = no;
    return cel_node_done(p, n);
}

static node *parse_expression(parser *p)
{
    if (!enter(p))
        return NULL;
    node *n = parse_binary(p, 1);
    if (n && accept(p, TOKEN_QUESTION))
        n = parse_condition(p, n);
    p->depth--;
    return n;
}

/* Words of other languages where an operator should stand. */
static const char *operator_for(str word)
{
    static const char *const pairs[][2] = {
        {"AND", "&&"}, {"and", "&&"}, {"And", "&&"}, {"OR", "||"}, {"or", "||"},
        {"Or", "||"},  {"IN", "in"},  {"is", "=="},  {"eq", "=="}, {"ne", "!="},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (str_eq(word, str_of(pairs[i][0])))
            return pairs[i][1];
    return NULL;
}

node *cel_parse(parser *p)
{
    advance(p);
    node *n = parse_expression(p);
    if (p->tok.kind == TOKEN_END || (p->lx.failed && p->tok.kind != TOKEN_IDENT))
        return p->lx.failed ? NULL : n;
    str word = p->tok.kind == TOKEN_IDENT ? p->tok.text : STR_EMPTY;
    const char *better = operator_for(word);
    str last = p->before.kind == TOKEN_IDENT ? p->before.text : STR_EMPTY;
    if (p->lx.failed && !better)
        return NULL;
    if (better) {
        p->lx.failed = false; /* "expected a closing bracket" is true as well, but helps less */
        cel_parse_fail(p, p->tok.at, "found \"%.*s\", did you mean \"%s\"?", STR_ARG(word), better);
    } else if (str_eq(last, STR("NOT")) || str_eq(last, STR("not"))) {
        cel_parse_fail(p, p->before.at, "found \"%.*s\", did you mean \"!\"?", STR_ARG(last));
    } else {
        expected(p, "an operator or the end of the expression");
    }
    return NULL;
}
