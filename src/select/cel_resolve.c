/* SPDX-License-Identifier: Apache-2.0 */
/* The half of the checker that knows names: variables, types, functions. */
#include "base/mem.h"
#include "select/cel_internal.h"
#include "select/zone.h"

local *cel_local(const checker *c, str name)
{
    for (local *l = c->scope; l; l = l->outer)
        if (str_eq(l->name, name))
            return l;
    return NULL;
}

/* ---- Variables and types ------------------------------------------------------------------ */

static bool use_variable(checker *c, node *n, str name)
{
    for (size_t i = 0; i < c->env->variable_count; i++) {
        if (!str_eq(c->env->variables[i].name, name))
            continue;
        c->program->used[i / 64] |= UINT64_C(1) << (i % 64);
        n->kind = NODE_IDENT;
        n->op = 2;
        n->slot = (uint32_t)i;
        n->name = c->env->variables[i].name;
        n->count = 0;
        n->type = c->env->variables[i].type;
        return true;
    }
    return false;
}

static bool use_type(node *n, str name)
{
    for (int k = 0; k < CEL_ERROR; k++) {
        if (!str_eq(name, str_of(cel_kind_name((cel_kind)k))))
            continue;
        n->kind = NODE_CONST;
        n->value = cel_type_value((cel_kind)k);
        n->count = 0;
        n->type = &cel_types[CEL_TYPE];
        return true;
    }
    return false;
}

/* A name in the container, in those around it, and at last as it stands. */
static bool use_name(checker *c, node *n, str name, bool absolute)
{
    str container = absolute ? STR_EMPTY : c->env->container;
    while (container.len > 0) {
        str full = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(container), STR_ARG(name));
        if (full.ptr && (use_variable(c, n, full) || use_type(n, full)))
            return true;
        while (container.len > 0 && container.ptr[container.len - 1] != '.')
            container.len--;
        if (container.len > 0)
            container.len--;
    }
    return use_variable(c, n, name) || use_type(n, name);
}

static bool unknown_variable(checker *c, const node *n)
{
    const cel_variable *best = NULL;
    size_t least = 3;
    for (size_t i = 0; i < c->env->variable_count; i++) {
        size_t d = str_distance(n->name, c->env->variables[i].name);
        if (d < least) {
            least = d;
            best = &c->env->variables[i];
        }
    }
    if (best)
        return cel_check_fail(c, n->at, "unknown variable \"%.*s\", did you mean \"%.*s\"?",
                              STR_ARG(n->name), STR_ARG(best->name));
    buf names = BUF(400);
    for (size_t i = 0; i < c->env->variable_count && names.len < 200; i++)
        buf_addf(&names, "%s%.*s", i ? ", " : ": expected one of ",
                 STR_ARG(c->env->variables[i].name));
    cel_check_fail(c, n->at, "unknown variable \"%.*s\"%.*s",
                   n->name.len > 100 ? 100 : (int)n->name.len, n->name.ptr,
                   STR_ARG(buf_str(&names)));
    buf_done(&names);
    return false;
}

bool cel_check_ident(checker *c, node *n)
{
    bool absolute = n->absolute;
    local *l = absolute ? NULL : cel_local(c, n->name);
    n->op = 0;
    if (l) {
        n->op = 1;
        n->slot = l->slot;
        n->type = l->type;
        return true;
    }
    return use_name(c, n, n->name, absolute) || c->env->unchecked || unknown_variable(c, n);
}

str cel_dotted(arena *a, const node *n)
{
    size_t len = 0;
    const node *at = n;
    for (; at->kind == NODE_SELECT && at->op == SELECT_PLAIN; at = at->items[0])
        len += at->name.len + 1;
    if (at->kind != NODE_IDENT)
        return (str){NULL, 0};
    if (at == n)
        return n->name;
    len += at->name.len;
    char *text = arena_alloc(a, len);
    if (!text)
        return (str){NULL, 0};
    size_t end = len;
    for (at = n; at->kind == NODE_SELECT; at = at->items[0]) {
        end -= at->name.len;
        memcpy(text + end, at->name.ptr, at->name.len);
        text[--end] = '.';
    }
    memcpy(text, at->name.ptr, at->name.len);
    return (str){text, len};
}

/* a.b.c may be one name: the longest one wins, but never over a name bound by a macro. */
static bool qualified_name(checker *c, node *n)
{
    const node *root = n->op == SELECT_PLAIN ? cel_chain_root(n) : NULL;
    if (!root || (!root->absolute && cel_local(c, root->name)))
        return false;
    bool types = str_eq(root->name, STR("google")) || str_eq(root->name, STR("net"));
    if (!c->qualified && !types)
        return false;
    bool absolute = root->absolute;
    str name = cel_dotted(c->arena, n);
    return name.ptr && use_name(c, n, name, absolute);
}

bool cel_check_select(checker *c, node *n)
{
    if (qualified_name(c, n))
        return true;
    if (!cel_check(c, n->items[0]))
        return false;
    const cel_type *target = n->items[0]->type;
    bool optional = n->op == SELECT_OPTIONAL;
    if (type_kind(target) == CEL_OPTIONAL) {
        target = target->element;
        optional = true;
    }
    cel_kind kind = type_kind(target);
    if (kind != CEL_MAP && kind != CEL_DYN &&
        !cel_check_mismatch(c, n->at, "type %s has no fields: .%.*s", cel_kind_name(kind),
                            n->name.len > 100 ? 100 : (int)n->name.len, n->name.ptr))
        return false;
    const cel_type *element = kind == CEL_MAP ? target->element : NULL;
    n->value = cel_string(n->name);
    n->type = element;
    if (n->op == SELECT_TEST)
        n->type = &cel_types[CEL_BOOL];
    else if (optional)
        n->type = cel_type_make(c->arena, CEL_OPTIONAL, NULL, element);
    cel_fold(c, n);
    return true;
}

/* ---- Functions ---------------------------------------------------------------------------- */

static bool unknown_function(checker *c, const node *n)
{
    int len = n->name.len > 100 ? 100 : (int)n->name.len;
    const char *better = cel_function_suggest(n->name);
    if (better)
        return cel_check_fail(c, n->at, "unknown function \"%.*s\", did you mean \"%s\"?", len,
                              n->name.ptr, better);
    return cel_check_fail(c, n->at, "unknown function \"%.*s\"", len, n->name.ptr);
}

/* A known function that is called in the other form: size.x() for x.size(). */
static bool wrong_form(checker *c, const node *n, bool member)
{
    if (!cel_function_find(n->name, !member))
        return unknown_function(c, n);
    if (member)
        return cel_check_fail(c, n->at, "%.*s is called as %.*s(...), not on a value",
                              STR_ARG(n->name), STR_ARG(n->name));
    return cel_check_fail(c, n->at, "%.*s is called on a value: x.%.*s(...)", STR_ARG(n->name),
                          STR_ARG(n->name));
}

static bool fits(const cel_function *f, const node *n)
{
    if (f->count == CEL_VARIADIC)
        return n->count > 0;
    if (f->count != n->count)
        return false;
    for (uint32_t i = 0; i < n->count; i++) {
        cel_kind k = type_kind(n->items[i]->type);
        if (k != CEL_DYN && !(f->kinds[i] & 1u << k))
            return false;
    }
    return true;
}

/* "1 or 2": how many arguments the overloads take, without the target. */
static bool arity(buf *out, const node *n, unsigned skip)
{
    bool fits_one = false;
    for (const cel_function *f = n->function; cel_function_same(f, n->function); f++) {
        fits_one |= f->count == n->count;
        if (f->count == CEL_VARIADIC)
            buf_add(out, STR("1 or more"));
        else if (f == n->function || f->count != f[-1].count)
            buf_addf(out, "%s%u", out->len ? " or " : "", f->count - skip);
    }
    return fits_one;
}

static bool bad_arguments(checker *c, const node *n, bool member)
{
    buf text = BUF(400);
    unsigned skip = member ? 1 : 0;
    bool good;
    if (!arity(&text, n, skip)) {
        good = cel_check_mismatch(c, n->at, "%.*s takes %.*s argument%s, found %u",
                                  STR_ARG(n->name), STR_ARG(buf_str(&text)),
                                  str_eq(buf_str(&text), STR("1")) ? "" : "s", n->count - skip);
    } else {
        buf_clear(&text);
        if (member) {
            cel_type_print(&text, n->items[0]->type);
            buf_addc(&text, '.');
        }
        buf_addf(&text, "%.*s(", STR_ARG(n->name));
        for (uint32_t i = skip; i < n->count; i++) {
            buf_addz(&text, i > skip ? ", " : "");
            cel_type_print(&text, n->items[i]->type);
        }
        good = cel_check_mismatch(c, n->at, "no such function: %.*s)", STR_ARG(buf_str(&text)));
    }
    buf_done(&text);
    return good;
}

#define REGEX_SIZE_FREE 20000

/* Patterns that are written out are compiled here, once. */
static bool constant_pattern(checker *c, node *n)
{
    const node *pattern = n->count == 2 ? n->items[1] : NULL;
    if (!pattern || pattern->kind != NODE_CONST || pattern->value.kind != CEL_STRING ||
        !str_eq(n->name, STR("matches")))
        return true;
    cel_program *p = c->program;
    if (p->regex_count >= LIMIT_CEL_REGEXES)
        return cel_check_fail(c, pattern->at, "more than %u regular expressions",
                              (unsigned)LIMIT_CEL_REGEXES);
    str text = cel_text(pattern->value);
    if (text.len > LIMIT_REGEX_BYTES)
        return cel_check_fail(c, pattern->at, "a regular expression longer than %u bytes",
                              (unsigned)LIMIT_REGEX_BYTES);
    regex_link *link = ARENA_NEW(c->arena, regex_link);
    if (!link)
        return cel_check_fail(c, pattern->at, "out of memory");
    char problem[200];
    /* Compiling takes time and memory by the instruction: a few large ones, or many small ones. */
    size_t memory =
        p->regex_size < REGEX_SIZE_FREE ? LIMIT_REGEX_MEMORY_BYTES : LIMIT_REGEX_MEMORY_BYTES / 16;
    link->regex = cel_regex_new(text.ptr, text.len, memory, problem, sizeof problem);
    if (!link->regex)
        return cel_check_mismatch(c, pattern->at, "not a regular expression: %s", problem);
    link->next = p->regexes;
    p->regexes = link;
    p->regex_count++;
    p->regex_size += cel_regex_size(link->regex);
    n->regex = link->regex;
    return true;
}

/* Time zones that are written out ("getHours('Europe/Berlin')") are read here, so that evaluating
 * opens no file. One that is unknown is an error when it is asked for, as in CEL everywhere. */
static void constant_zone(const node *n)
{
    const node *name = n->count == 2 ? n->items[1] : NULL;
    if (name && name->kind == NODE_CONST && name->value.kind == CEL_STRING &&
        str_starts(n->name, STR("get")))
        zone_named(cel_text(name->value));
}

/* math.abs(x): the target is not a value but a part of the name. */
static bool namespaced(checker *c, node *n)
{
    const node *root = cel_chain_root(n->items[0]);
    if (!root || (!root->absolute && cel_local(c, root->name)))
        return false;
    str space = cel_dotted(c->arena, n->items[0]);
    if (!space.ptr || space.len > 40 || !cel_function_space(space))
        return false;
    for (size_t i = 0; i < c->env->variable_count; i++)
        if (str_eq(c->env->variables[i].name, space))
            return false;
    str full = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(space), STR_ARG(n->name));
    if (!full.ptr)
        return false;
    n->name = full;
    n->items++;
    n->count--;
    return true;
}

/* What a function does to types that its kind of result does not say. */
typedef enum type_rule {
    RULE_SAME,
    RULE_STRINGS,
    RULE_INTS,
    RULE_WRAP,
    RULE_EMPTY,
    RULE_INNER,
    RULE_EITHER,
    RULE_BOTH
} type_rule;

static const struct {
    const char *name;
    type_rule rule;
} rules[] = {
    {"reverse", RULE_SAME},
    {"sort", RULE_SAME},
    {"distinct", RULE_SAME},
    {"slice", RULE_SAME},
    {"or", RULE_BOTH},
    {"split", RULE_STRINGS},
    {"lists.range", RULE_INTS},
    {"optional.of", RULE_WRAP},
    {"optional.none", RULE_EMPTY},
    {"optional.ofNonZeroValue", RULE_WRAP},
    {"value", RULE_INNER},
    {"orValue", RULE_EITHER},
};

/* NULL, dyn, when the first argument does not tell. */
static const cel_type *ruled_type(checker *c, const node *n, type_rule rule, cel_kind result)
{
    const cel_type *first = n->count > 0 ? n->items[0]->type : NULL;
    bool optional = type_kind(first) == CEL_OPTIONAL;
    switch (rule) {
    case RULE_SAME: return type_kind(first) == result ? first : &cel_types[result];
    case RULE_STRINGS: return cel_type_make(c->arena, CEL_LIST, NULL, &cel_types[CEL_STRING]);
    case RULE_INTS: return cel_type_make(c->arena, CEL_LIST, NULL, &cel_types[CEL_INT]);
    case RULE_WRAP: return cel_type_make(c->arena, CEL_OPTIONAL, NULL, first);
    case RULE_EMPTY: return cel_type_empty(c->arena, CEL_OPTIONAL);
    case RULE_INNER: return optional ? first->element : NULL;
    case RULE_BOTH: first = cel_type_join(c->arena, first, n->items[1]->type); break;
    case RULE_EITHER:
        return optional ? cel_type_join(c->arena, first->element, n->items[1]->type) : NULL;
    }
    return first ? first : &cel_types[result];
}

static const cel_type *result_type(checker *c, const node *n)
{
    const cel_function *found = NULL;
    for (const cel_function *f = n->function; cel_function_same(f, n->function); f++) {
        if (!fits(f, n))
            continue;
        if (found && found->result != f->result)
            return NULL;
        found = f;
    }
    if (!found)
        return NULL;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (str_eq(n->name, str_of(rules[i].name)))
            return ruled_type(c, n, rules[i].rule, found->result);
    return found->result == CEL_DYN ? NULL : &cel_types[found->result];
}

bool cel_check_call(checker *c, node *n)
{
    bool member = n->has_target;
    n->regex = NULL;
    if (member && namespaced(c, n))
        member = false;
    n->function = cel_function_find(n->name, member);
    if (!n->function)
        return c->env->unchecked || cel_check_declared(c, n, member) ||
               (!c->lx->failed && wrong_form(c, n, member));
    for (uint32_t i = 0; i < n->count; i++)
        if (!cel_check(c, n->items[i]))
            return false;
    bool any = false;
    for (const cel_function *f = n->function; !any && cel_function_same(f, n->function); f++)
        any = fits(f, n);
    if (!any && !bad_arguments(c, n, member))
        return false;
    if (any && !constant_pattern(c, n))
        return false;
    constant_zone(n);
    n->type = result_type(c, n);
    cel_fold(c, n);
    return true;
}
