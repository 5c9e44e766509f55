/* SPDX-License-Identifier: Apache-2.0 */
/* From the text of a template to its tree. */
#include "base/num.h"
#include "base/vec.h"
#include "engine/go_template_internal.h"

typedef struct parser {
    arena *arena;
    str text;
    size_t at;
    size_t depth;
    bool trim; /* the last action ended in "-}": white space after it goes */
    err *error;
} parser;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const parser *p)
{
    return p->at < p->text.len ? p->text.ptr[p->at] : 0;
}

static char peek_next(const parser *p)
{
    return p->at + 1 < p->text.len ? p->text.ptr[p->at + 1] : 0;
}

static void skip_blanks(parser *p)
{
    while (p->at < p->text.len && is_blank(p->text.ptr[p->at]))
        p->at++;
}

/* " -}" ends an action too. */
static bool at_end(const parser *p)
{
    return peek(p) == TEMPLATE_RIGHT || (peek(p) == '-' && peek_next(p) == TEMPLATE_RIGHT);
}

static bool refuse(parser *p, const char *found)
{
    return err_set(p->error, "found %s at \"%s\"", found,
                   str_shown(str_part(p->text, p->at, 24)).text);
}

static bool take_end(parser *p)
{
    skip_blanks(p);
    if (!at_end(p))
        return refuse(p, p->at < p->text.len ? "an unexpected character" : "no closing }");
    p->trim = peek(p) == '-';
    p->at += p->trim ? 2 : 1;
    return true;
}

static str take_name(parser *p)
{
    size_t from = p->at;
    while (is_letter(peek(p)) || (p->at > from && is_digit(peek(p))))
        p->at++;
    return str_part(p->text, from, p->at - from);
}

/* Takes the word if it stands here as a whole. */
static bool take_word(parser *p, str word)
{
    size_t before = p->at;
    if (str_eq(take_name(p), word))
        return true;
    p->at = before;
    return false;
}

/* ---- operands ---- */

static bool take_pipe(parser *p, char end, template_pipe *ret);

static bool escape(parser *p, buf *out)
{
    static const char from[] = "abfnrtv\\\"'", to[] = "\a\b\f\n\r\t\v\\\"'";
    char c = peek(p);
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return refuse(p, "an escape that is not supported");
    buf_addc(out, to[found - from]);
    p->at++;
    return true;
}

static bool take_text(parser *p, template_operand *ret)
{
    char quote = peek(p);
    buf out = BUF(TEMPLATE_OUTPUT_BYTES_MAX);
    bool good = true;
    p->at++;
    while (good && p->at < p->text.len && peek(p) != quote) {
        char c = p->text.ptr[p->at++];
        if (c == '\\' && quote == '"')
            good = escape(p, &out);
        else
            buf_addc(&out, c);
    }
    if (good && p->at >= p->text.len)
        good = refuse(p, "a text without its closing quote");
    p->at++;
    str kept = good ? arena_str(p->arena, buf_str(&out)) : STR_EMPTY;
    if (good && (out.failed || !kept.ptr))
        good = err_memory(p->error);
    buf_done(&out);
    ret->kind = OPERAND_LITERAL;
    ret->literal = (template_value){.kind = TEMPLATE_TEXT, .text = kept};
    return good;
}

static bool take_number(parser *p, template_operand *ret)
{
    size_t from = p->at;
    int64_t number = 0;
    if (peek(p) == '-' || peek(p) == '+')
        p->at++;
    while (is_digit(peek(p)) || is_letter(peek(p)) || peek(p) == '.')
        p->at++;
    str text = str_part(p->text, from, p->at - from);
    ret->kind = OPERAND_LITERAL;
    if (num_parse(text, &number)) {
        ret->literal = (template_value){.kind = TEMPLATE_INT, .number = number};
        return true;
    }
    char *end = NULL, copy[40] = {0};
    if (text.len < sizeof copy)
        memcpy(copy, text.ptr, text.len);
    double real = strtod(copy, &end);
    if (!copy[0] || *end)
        return refuse(p, "a bad number");
    ret->literal = (template_value){.kind = TEMPLATE_REAL, .real = real};
    return true;
}

static bool take_fields(parser *p, template_operand *ret)
{
    VEC(str) fields = {0};
    bool good = true;
    while (good && peek(p) == '.' && is_letter(peek_next(p))) {
        p->at++;
        good = vec_push(&fields, take_name(p)) || err_memory(p->error);
    }
    str *kept = ARENA_ARRAY(p->arena, fields.len + 1, str);
    if (good && !kept)
        good = err_memory(p->error);
    if (good && fields.len > 0)
        memcpy(kept, fields.at, fields.len * sizeof *kept);
    ret->fields = kept;
    ret->field_count = fields.len;
    vec_done(&fields);
    return good;
}

static bool take_parentheses(parser *p, template_operand *ret)
{
    template_pipe *inner = ARENA_NEW(p->arena, template_pipe);
    if (!inner)
        return err_memory(p->error);
    p->at++;
    if (++p->depth > TEMPLATE_DEPTH_MAX)
        return refuse(p, "parentheses nested too deep");
    if (!take_pipe(p, ')', inner))
        return false;
    p->depth--;
    p->at++;
    ret->kind = OPERAND_PIPE;
    ret->pipe = inner;
    return take_fields(p, ret);
}

static void name_operand(str name, template_operand *ret)
{
    ret->kind = OPERAND_LITERAL;
    if (str_eq(name, STR("true")) || str_eq(name, STR("false")))
        ret->literal = (template_value){.kind = TEMPLATE_BOOL, .yes = str_eq(name, STR("true"))};
    else if (str_eq(name, STR("nil")))
        ret->literal = (template_value){.kind = TEMPLATE_NIL};
    else
        *ret = (template_operand){.kind = OPERAND_FUNCTION, .name = name};
}

static bool take_operand(parser *p, template_operand *ret)
{
    char c = peek(p);
    *ret = (template_operand){.kind = OPERAND_DOT};
    if (c == '"' || c == '`')
        return take_text(p, ret);
    if (c == '(')
        return take_parentheses(p, ret);
    if (is_digit(c) || ((c == '-' || c == '+') && is_digit(peek_next(p))))
        return take_number(p, ret);
    if (c == '.') {
        bool fields = is_letter(peek_next(p));
        p->at += fields ? 0 : 1;
        return !fields || take_fields(p, ret);
    }
    if (c == '$') {
        p->at++;
        ret->kind = OPERAND_VARIABLE;
        ret->name = take_name(p);
        return take_fields(p, ret);
    }
    if (!is_letter(c))
        return refuse(p, c ? "an unexpected character" : "no closing }");
    name_operand(take_name(p), ret);
    return true;
}

/* ---- pipelines ---- */

static bool take_command(parser *p, char end, template_command *ret)
{
    VEC(template_operand) words = {0};
    bool good = true;
    skip_blanks(p);
    while (good && peek(p) != '|' && peek(p) != end && !at_end(p)) {
        template_operand word;
        good = take_operand(p, &word) && (vec_push(&words, word) || err_memory(p->error));
        char c = peek(p);
        if (good && c && !is_blank(c) && c != '|' && c != end && !at_end(p))
            good = refuse(p, "an unexpected character");
        skip_blanks(p);
    }
    if (good && words.len == 0)
        good = refuse(p, "no value");
    if (good && words.len == 1 && words.at[0].kind == OPERAND_LITERAL &&
        words.at[0].literal.kind == TEMPLATE_NIL)
        good = err_set(p->error, "nil is not a command");
    template_operand *kept = good ? ARENA_ARRAY(p->arena, words.len, template_operand) : NULL;
    if (good && !kept)
        good = err_memory(p->error);
    if (good)
        memcpy(kept, words.at, words.len * sizeof *kept);
    *ret = (template_command){kept, words.len};
    vec_done(&words);
    return good;
}

/* "$k, $v :=" or "$x =" before a pipeline; nothing is taken when there is none. */
static void take_variables(parser *p, template_pipe *ret)
{
    size_t before = p->at;
    while (peek(p) == '$' && ret->variable_count < 2) {
        p->at++;
        ret->variables[ret->variable_count++] = take_name(p);
        skip_blanks(p);
        if (peek(p) == ',')
            p->at++;
        else
            break;
        skip_blanks(p);
    }
    ret->assigns = peek(p) == '=' && peek_next(p) != '=';
    if (ret->variable_count > 0 && (ret->assigns || (peek(p) == ':' && peek_next(p) == '='))) {
        p->at += ret->assigns ? 1 : 2;
        return;
    }
    p->at = before;
    ret->variable_count = 0;
}

/* Up to the end, which stays: ")" or that of the action. */
static bool take_pipe(parser *p, char end, template_pipe *ret)
{
    VEC(template_command) commands = {0};
    bool good = true, more = true;
    *ret = (template_pipe){.variable_count = 0};
    skip_blanks(p);
    take_variables(p, ret);
    while (good && more) {
        template_command command;
        good = take_command(p, end, &command) &&
               (vec_push(&commands, command) || err_memory(p->error));
        more = good && peek(p) == '|';
        p->at += more;
    }
    if (good && (end == ')' ? peek(p) != ')' : !at_end(p)))
        good = refuse(p, end == ')' ? "no closing )" : "an unexpected character");
    template_command *kept = good ? ARENA_ARRAY(p->arena, commands.len, template_command) : NULL;
    if (good && !kept)
        good = err_memory(p->error);
    if (good)
        memcpy(kept, commands.at, commands.len * sizeof *kept);
    ret->at = kept;
    ret->len = commands.len;
    vec_done(&commands);
    return good;
}

/* ---- the tree ---- */

#define BLOCK_ENDS(X) X(TEXT_END, "the end of the text") X(END, "end") X(ELSE, "else")
typedef enum block_end {
#define X(end, text) BLOCK_##end,
    BLOCK_ENDS(X)
#undef X
} block_end;

static bool take_block(parser *p, const template_node **ret, block_end *ret_end);

static bool take_inner(parser *p, const template_node **ret, block_end *ret_end)
{
    if (++p->depth > TEMPLATE_DEPTH_MAX)
        return refuse(p, "blocks nested too deep");
    if (!take_block(p, ret, ret_end))
        return false;
    p->depth--;
    return *ret_end != BLOCK_TEXT_END || refuse(p, "no end of a block");
}

/* if, range and with, behind their word. "else if" and "else with" are blocks in the other branch
 * that share its end. */
static bool take_branch(parser *p, template_node_kind kind, template_node *ret)
{
    block_end end = BLOCK_END;
    ret->kind = kind;
    if (!take_pipe(p, TEMPLATE_RIGHT, &ret->pipe) || !take_end(p) ||
        !take_inner(p, &ret->body, &end))
        return false;
    if (end != BLOCK_ELSE)
        return take_end(p);
    skip_blanks(p);
    bool is_if = take_word(p, STR("if")), is_with = !is_if && take_word(p, STR("with"));
    if (is_if || is_with) {
        template_node *other = ARENA_NEW(p->arena, template_node);
        if (!other)
            return err_memory(p->error);
        if (++p->depth > TEMPLATE_DEPTH_MAX)
            return refuse(p, "blocks nested too deep");
        ret->otherwise = other;
        bool good = take_branch(p, is_if ? NODE_IF : NODE_WITH, other);
        p->depth--;
        return good;
    }
    if (!take_end(p) || !take_inner(p, &ret->otherwise, &end))
        return false;
    return end == BLOCK_END ? take_end(p) : refuse(p, "a second else");
}

static bool take_comment(parser *p)
{
    size_t length = str_find(str_part(p->text, p->at, SIZE_MAX), STR("*/"));
    if (length == SIZE_MAX)
        return refuse(p, "a comment without its end");
    p->at += length + 2;
    return take_end(p);
}

/* What stands in an action, from behind "${". */
static bool take_action(parser *p, template_node *ret, block_end *ret_end)
{
    static const char *const refused[] = {"define", "template", "block", "break", "continue"};
    skip_blanks(p);
    if (peek(p) == '/' && peek_next(p) == '*') {
        ret->kind = NODE_TEXT;
        return take_comment(p);
    }
    if (take_word(p, STR("end"))) {
        *ret_end = BLOCK_END;
        return true;
    }
    if (take_word(p, STR("else"))) {
        *ret_end = BLOCK_ELSE;
        return true;
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (take_word(p, str_of(refused[i])))
            return err_set(p->error, "found \"%s\", which is not supported", refused[i]);
    if (take_word(p, STR("if")))
        return take_branch(p, NODE_IF, ret);
    if (take_word(p, STR("range")))
        return take_branch(p, NODE_RANGE, ret);
    if (take_word(p, STR("with")))
        return take_branch(p, NODE_WITH, ret);
    ret->kind = NODE_ACTION;
    return take_pipe(p, TEMPLATE_RIGHT, &ret->pipe) && take_end(p);
}

/* The text up to the next action; its white space goes where an action trims it. */
static str take_plain(parser *p)
{
    str rest = str_part(p->text, p->at, SIZE_MAX);
    size_t length = str_find(rest, STR(TEMPLATE_LEFT));
    str plain = str_part(rest, 0, length);
    p->at += plain.len;
    while (p->trim && plain.len > 0 && is_blank(plain.ptr[0]))
        plain = str_part(plain, 1, SIZE_MAX);
    p->trim = false;
    bool trims = length + 3 < rest.len && length != SIZE_MAX && rest.ptr[length + 2] == '-' &&
                 is_blank(rest.ptr[length + 3]);
    while (trims && plain.len > 0 && is_blank(plain.ptr[plain.len - 1]))
        plain.len--;
    return plain;
}

/* Nodes up to "end", "else" or the end of the text; the closing } of those stays. */
static bool take_block(parser *p, const template_node **ret, block_end *ret_end)
{
    template_node *last = NULL;
    *ret = NULL;
    *ret_end = BLOCK_TEXT_END;
    while (*ret_end == BLOCK_TEXT_END && p->at < p->text.len) {
        template_node *made = ARENA_NEW(p->arena, template_node);
        if (!made)
            return err_memory(p->error);
        if (str_starts(str_part(p->text, p->at, SIZE_MAX), STR(TEMPLATE_LEFT)) && !p->trim) {
            p->at += sizeof TEMPLATE_LEFT - 1;
            p->at += peek(p) == '-' && is_blank(peek_next(p)) ? 1 : 0;
            if (!take_action(p, made, ret_end))
                return false;
            if (*ret_end != BLOCK_TEXT_END)
                return true;
        } else {
            *made = (template_node){.kind = NODE_TEXT, .text = take_plain(p)};
        }
        if (last)
            last->next = made;
        else
            *ret = made;
        last = made;
    }
    return true;
}

bool template_parse(arena *a, str text, const template_node **ret, err *error)
{
    parser p = {.arena = a, .text = text, .error = error};
    block_end end = BLOCK_TEXT_END;
    if (!take_block(&p, ret, &end))
        return false;
    return end == BLOCK_TEXT_END ||
           refuse(&p, end == BLOCK_END ? "end without a block" : "else without a block");
}

bool template_is_in(str text)
{
    return str_find(text, STR(TEMPLATE_LEFT)) != SIZE_MAX;
}
