/* SPDX-License-Identifier: Apache-2.0 */
/* How fast selectors are compiled and evaluated, against the same question written by hand in C
 * and against the reading of the tokens alone. */
#include "bench/bench.h"

#include <assert.h>
#include <string.h>

#include <yyjson.h>

#include "base/mem.h"
#include "select/cel_internal.h"

static const char selector[] =
    "resource.metadata[\"env\"] == \"prod\" && deployment.name in [\"a\",\"b\"]";

static const char resource[] =
    "{\"id\":\"r-1\",\"identifier\":\"k8s/eu/1\",\"name\":\"eu-1\",\"kind\":\"cluster\","
    "\"version\":\"v1\",\"config\":{},"
    "\"metadata\":{\"region\":\"eu\",\"tier\":\"gold\",\"env\":\"prod\"}}";
static const char deployment[] = "{\"id\":\"d-1\",\"name\":\"b\",\"slug\":\"b\",\"metadata\":{}}";

static const cel_type map = {.kind = CEL_MAP};
static const cel_variable variables[] = {{STR("resource"), &map}, {STR("deployment"), &map}};
static const cel_env env = {.variables = variables, .variable_count = 2};

typedef struct subject {
    yyjson_val *resource;
    yyjson_val *deployment;
    cel_program *program;
    arena *scratch;
    uint64_t hits;
} subject;

static void evaluate(void *context, uint64_t count)
{
    subject *s = context;
    const cel_value bindings[] = {cel_from_json(s->resource), cel_from_json(s->deployment)};
    s->hits = 0;
    for (uint64_t i = 0; i < count; i++) {
        arena_place place = arena_mark(s->scratch);
        bool yes = false;
        cel_match(s->program, bindings, s->scratch, &yes, NULL);
        s->hits += yes;
        arena_rewind(s->scratch, place);
    }
}

static bool by_hand(yyjson_val *r, yyjson_val *d)
{
    yyjson_val *environment = yyjson_obj_get(yyjson_obj_get(r, "metadata"), "env");
    yyjson_val *name = yyjson_obj_get(d, "name");
    return yyjson_equals_str(environment, "prod") &&
           (yyjson_equals_str(name, "a") || yyjson_equals_str(name, "b"));
}

static void evaluate_by_hand(void *context, uint64_t count)
{
    subject *s = context;
    s->hits = 0;
    for (uint64_t i = 0; i < count; i++) {
        bench_keep(s->resource);
        s->hits += by_hand(s->resource, s->deployment);
    }
}

static void compile(void *context, uint64_t count)
{
    arena *a = context;
    for (uint64_t i = 0; i < count; i++) {
        arena_place place = arena_mark(a);
        cel_program *p = cel_compile(a, str_of(selector), &env, NULL);
        assert(p);
        cel_program_free(p);
        arena_rewind(a, place);
    }
}

static void read_tokens(void *context, uint64_t count)
{
    arena *a = context;
    for (uint64_t i = 0; i < count; i++) {
        arena_place place = arena_mark(a);
        cel_error error;
        lexer lx = {.arena = a, .source = str_of(selector), .error = &error};
        token_kind last;
        do
            last = cel_lex(&lx).kind;
        while (last != TOKEN_END && last != TOKEN_BAD);
        assert(last == TOKEN_END);
        arena_rewind(a, place);
    }
}

/* The rate of an expression that is always true or always not; its allocations must be none. */
static void bench_eval(subject *s, const char *name, const char *source, const char *goal)
{
    const uint64_t rounds = 1000000;
    arena *a = arena_new(0);
    s->program = cel_compile(a, str_of(source), &env, NULL);
    assert(s->program);
    evaluate(s, 1);
    uint64_t calls = mem_calls();
    bench_row(name, bench_rate(evaluate, s, rounds) / 1e6, "M/s", goal);
    assert(s->hits == 0 || s->hits == rounds);
    char row[80];
    snprintf(row, sizeof row, "%s: allocations", name);
    bench_row(row, (double)(mem_calls() - calls), "count", "<= 0");
    cel_program_free(s->program);
    arena_free(a);
}

int main(void)
{
    yyjson_doc *r = yyjson_read(resource, strlen(resource), 0);
    yyjson_doc *d = yyjson_read(deployment, strlen(deployment), 0);
    subject s = {.resource = yyjson_doc_get_root(r),
                 .deployment = yyjson_doc_get_root(d),
                 .scratch = arena_new(0)};
    bench_eval(&s, "CEL match, key and list", selector, ">= 3");
    bench_row("CEL match, key and list: by hand in C",
              bench_rate(evaluate_by_hand, &s, 1000000) / 1e6, "M/s", "-");
    bench_eval(&s, "CEL match, key that is missing", "resource.metadata.absent == \"x\"", "-");
    bench_eval(&s, "CEL match, regular expression", "resource.name.matches(\"^eu-[0-9]+$\")", "-");
    bench_row("CEL compile", bench_best(compile, s.scratch, 20000) / 20000 * 1e6, "us", "<= 20");
    bench_row("CEL compile: its tokens alone",
              bench_best(read_tokens, s.scratch, 20000) / 20000 * 1e6, "us", "-");
    arena_free(s.scratch);
    yyjson_doc_free(r);
    yyjson_doc_free(d);
    return 0;
}
