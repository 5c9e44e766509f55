/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as an expression: it compiles or is refused with a place and a sentence; it evaluates
 * within its limits; what the checker knew about the type holds; and the same once more gives the
 * same. */
#include <assert.h>

#include <yyjson.h>

#include "base/mem.h"
#include "select/cel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char json[] = "{\"name\":\"eu-1\",\"n\":3,\"d\":0.5,\"t\":true,\"z\":null,\"l\":[1,\"a\","
                           "[2]],\"metadata\":{\"env\":\"prod\",\"tier\":\"gold\"}}";

static const cel_type map_type = {.kind = CEL_MAP};
static const cel_type int_type = {.kind = CEL_INT};
static const cel_type string_type = {.kind = CEL_STRING};
static const cel_variable variables[] = {
    {STR("resource"), &map_type}, {STR("x"), NULL}, {STR("n"), &int_type},
    {STR("s"), &string_type},     {STR("a.b"), NULL},
};
#define VARIABLES (sizeof variables / sizeof variables[0])

static void check_same(cel_value a, cel_value b, arena *scratch)
{
    buf x = BUF(1 << 20);
    buf y = BUF(1 << 20);
    cel_print(&x, a, scratch);
    cel_print(&y, b, scratch);
    assert(x.failed || y.failed || str_eq(buf_str(&x), buf_str(&y)));
    buf_done(&x);
    buf_done(&y);
}

static void evaluate(const cel_program *p, const cel_env *env, arena *scratch, yyjson_doc *doc)
{
    const cel_value bindings[VARIABLES] = {
        cel_from_json(yyjson_doc_get_root(doc)), cel_from_json(yyjson_doc_get_root(doc)),
        cel_int(7), cel_string(STR("text \xC3\xA9")), cel_double(1.5)};
    const cel_limits limits = {.cost = 20000, .bytes = 1 << 20};
    cel_value first = cel_eval(p, bindings, scratch, &limits);
    cel_value second = cel_eval(p, bindings, scratch, &limits);
    check_same(first, second, scratch);
    if (first.kind == CEL_ERROR) {
        unsigned line;
        unsigned column;
        assert(first.text && first.text[0]);
        cel_where(p, first.len, &line, &column);
        assert(line >= 1 && column >= 1);
        return;
    }
    cel_kind known = cel_result_type(p)->kind;
    assert(env->unchecked || known == CEL_DYN || known == first.kind || first.kind == CEL_NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 4096)
        return 0;
    const cel_env env = {.variables = variables,
                         .variable_count = VARIABLES,
                         .container = data[0] & 4 ? STR("a") : STR_EMPTY,
                         .unchecked = data[0] & 1,
                         .no_macros = (data[0] & 8) != 0};
    int64_t live = mem_live();
    arena *a = arena_new(16 << 20);
    arena *scratch = arena_new(16 << 20);
    yyjson_doc *doc = yyjson_read(json, sizeof json - 1, 0);
    cel_error problem;
    cel_program *p = cel_compile(a, (str){(const char *)data + 1, size - 1}, &env, &problem);
    if (p)
        evaluate(p, &env, scratch, doc);
    else
        assert(problem.line >= 1 && problem.column >= 1 && problem.message[0]);
    cel_program_free(p);
    yyjson_doc_free(doc);
    arena_free(scratch);
    arena_free(a);
    assert(mem_live() == live);
    return 0;
}
