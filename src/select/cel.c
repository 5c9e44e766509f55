/* SPDX-License-Identifier: Apache-2.0 */
#include "select/cel_internal.h"

static bool has_dots(const cel_env *env)
{
    for (size_t i = 0; i < env->variable_count; i++)
        if (memchr(env->variables[i].name.ptr, '.', env->variables[i].name.len))
            return true;
    return env->container.len > 0;
}

static bool compile(cel_program *p, parser *ps)
{
    lexer *lx = &ps->lx;
    p->used = ARENA_ARRAY(lx->arena, ps->env->variable_count / 64 + 1, uint64_t);
    if (!p->used)
        return cel_lex_fail(lx, 0, "out of memory");
    p->root = cel_parse(ps);
    if (!p->root)
        return false;
    checker c = {.arena = lx->arena,
                 .env = ps->env,
                 .program = p,
                 .lx = lx,
                 .qualified = has_dots(ps->env),
                 .fold_cost = LIMIT_CEL_FOLD_COST};
    return cel_check(&c, p->root);
}

cel_program *cel_compile(arena *a, str source, const cel_env *env, cel_error *error)
{
    cel_error unused;
    *(error ? error : &unused) = (cel_error){.line = 1, .column = 1};
    parser ps = {.lx = {.arena = a, .error = error ? error : &unused, .source = source},
                 .env = env};
    if (source.len > LIMIT_CEL_SOURCE_BYTES) {
        cel_lex_fail(&ps.lx, 0, "the expression is longer than %u bytes",
                     (unsigned)LIMIT_CEL_SOURCE_BYTES);
        return NULL;
    }
    if (!str_utf8(source)) {
        cel_lex_fail(&ps.lx, 0, "the expression is not valid UTF-8");
        return NULL;
    }
    cel_program *p = ARENA_NEW(a, cel_program);
    str copy = arena_str(a, source);
    if (!p || !copy.ptr) {
        cel_lex_fail(&ps.lx, 0, "out of memory");
        return NULL;
    }
    p->source = copy;
    p->variable_count = env->variable_count;
    ps.lx.source = copy;
    if (compile(p, &ps))
        return p;
    return cel_program_free(p);
}

cel_program *cel_program_free(cel_program *p)
{
    for (regex_link *link = p ? p->regexes : NULL; link; link = link->next)
        link->regex = cel_regex_free(link->regex);
    if (p)
        p->regexes = NULL;
    return NULL;
}

const cel_type *cel_result_type(const cel_program *p)
{
    return p->root->type ? p->root->type : &cel_types[CEL_DYN];
}

bool cel_never_bool(const cel_program *p)
{
    cel_kind kind = type_kind(p->root->type);
    return kind != CEL_DYN && kind != CEL_BOOL;
}

bool cel_uses(const cel_program *p, size_t variable)
{
    return variable < p->variable_count && (p->used[variable / 64] >> (variable % 64) & 1);
}

void cel_where(const cel_program *p, uint32_t offset, unsigned *ret_line, unsigned *ret_column)
{
    cel_position(p->source, offset == AT_UNKNOWN ? 0 : offset, ret_line, ret_column);
}

cel_value cel_eval(const cel_program *p, const cel_value *bindings, arena *scratch,
                   const cel_limits *limits)
{
    size_t bytes = limits && limits->bytes ? limits->bytes : LIMIT_CEL_EVAL_BYTES;
    run r = {.program = p,
             .bindings = bindings,
             .arena = scratch,
             .cost = limits && limits->cost ? limits->cost : LIMIT_CEL_COST};
    if (__builtin_add_overflow(arena_used(scratch), bytes, &r.bytes_end))
        r.bytes_end = SIZE_MAX;
    if (p->locals > 0) {
        r.locals = cel_alloc(&r, p->locals, sizeof *r.locals);
        if (!r.locals)
            return r.fatal;
    }
    cel_value v = eval(&r, p->root);
    if (r.regex)
        cel_regex_free(r.regex);
    return r.stopped ? r.fatal : v;
}

bool cel_match(const cel_program *p, const cel_value *bindings, arena *scratch, bool *ret,
               err *error)
{
    cel_value v = cel_eval(p, bindings, scratch, NULL);
    if (v.kind == CEL_BOOL) {
        *ret = v.b;
        return true;
    }
    if (v.kind != CEL_ERROR)
        return err_set(error, "expected a bool, found %s", cel_kind_name(v.kind));
    if (v.code == CEL_NO_SUCH_KEY) {
        *ret = false;
        return true;
    }
    unsigned line;
    unsigned column;
    cel_where(p, v.len, &line, &column);
    return err_set(error, "line %u, column %u: %s", line, column, v.text);
}
