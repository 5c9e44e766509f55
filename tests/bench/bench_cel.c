/* SPDX-License-Identifier: Apache-2.0 */
/* How fast selectors are compiled and evaluated on one core. */
#include <assert.h>
#include <stdio.h>
#include <time.h>

#include <yyjson.h>

#include "base/mem.h"
#include "select/cel.h"

#define ROUNDS 2000000
#define COMPILES 50000

static const char selector[] =
    "resource.metadata[\"env\"] == \"prod\" && deployment.name in [\"a\",\"b\"]";

static const char resource[] =
    "{\"id\":\"r-1\",\"identifier\":\"k8s/eu/"
    "1\",\"name\":\"eu-1\",\"kind\":\"cluster\",\"version\":"
    "\"v1\",\"config\":{},\"metadata\":{\"region\":\"eu\",\"tier\":\"gold\",\"env\":\"prod\"}}";
static const char deployment[] = "{\"id\":\"d-1\",\"name\":\"b\",\"slug\":\"b\",\"metadata\":{}}";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void bench_eval(const char *name, const char *source, const cel_env *env,
                       const cel_value *bindings)
{
    arena *a = arena_new(0);
    arena *scratch = arena_new(0);
    cel_error problem;
    cel_program *p = cel_compile(a, str_of(source), env, &problem);
    assert(p);
    uint64_t hits = 0;
    uint64_t calls = 0;
    double start = 0;
    for (int i = -1000; i < ROUNDS; i++) {
        if (i == 0) {
            calls = mem_calls();
            start = now();
        }
        arena_place place = arena_mark(scratch);
        bool yes = false;
        cel_match(p, bindings, scratch, &yes, NULL);
        hits += yes;
        arena_rewind(scratch, place);
    }
    double seconds = now() - start;
    printf("%s %.2f million/s (baseline 3.00)\n", name, ROUNDS / seconds / 1e6);
    printf("%s-allocations %llu calls (baseline 0)\n", name,
           (unsigned long long)(mem_calls() - calls));
    assert(hits == 0 || hits == ROUNDS + 1000);
    cel_program_free(p);
    arena_free(scratch);
    arena_free(a);
}

static void bench_compile(const cel_env *env)
{
    arena *a = arena_new(0);
    double start = now();
    for (int i = 0; i < COMPILES; i++) {
        arena_place place = arena_mark(a);
        cel_program *p = cel_compile(a, str_of(selector), env, NULL);
        assert(p);
        cel_program_free(p);
        arena_rewind(a, place);
    }
    printf("cel-compile %.2f us (baseline 20.00)\n", (now() - start) / COMPILES * 1e6);
    arena_free(a);
}

int main(void)
{
    static const cel_type map = {.kind = CEL_MAP};
    const cel_variable variables[] = {{STR("resource"), &map}, {STR("deployment"), &map}};
    const cel_env env = {.variables = variables, .variable_count = 2};
    yyjson_doc *r = yyjson_read(resource, sizeof resource - 1, 0);
    yyjson_doc *d = yyjson_read(deployment, sizeof deployment - 1, 0);
    const cel_value bindings[] = {cel_from_json(yyjson_doc_get_root(r)),
                                  cel_from_json(yyjson_doc_get_root(d))};
    bench_eval("cel-eval", selector, &env, bindings);
    bench_eval("cel-eval-missing-key", "resource.metadata.absent == \"x\"", &env, bindings);
    bench_eval("cel-eval-matches", "resource.name.matches(\"^eu-[0-9]+$\")", &env, bindings);
    bench_compile(&env);
    yyjson_doc_free(r);
    yyjson_doc_free(d);
    return 0;
}
