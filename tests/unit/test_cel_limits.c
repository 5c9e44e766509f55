/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile expressions and failing memory: an answer or an error, in bounded time, and nothing left
 * behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/mem.h"
#include "select/cel_internal.h"

static const cel_type string_type = {.kind = CEL_STRING};
static const cel_variable variables[] = {{STR("x"), NULL}, {STR("s"), &string_type}};
static const cel_env env = {.variables = variables, .variable_count = 2};

#define MEGA ((size_t)1000000)

/* head, "part" many times, middle, "close" as many times, tail. */
typedef struct shape {
    const char *head, *part;
    size_t times;
    const char *middle, *close, *tail;
} shape;

static void build(buf *out, const shape *s)
{
    buf_addz(out, s->head);
    for (size_t i = 0; i < s->times; i++)
        buf_addz(out, s->part);
    buf_addz(out, s->middle);
    for (size_t i = 0; i < s->times; i++)
        buf_addz(out, s->close);
    buf_addz(out, s->tail);
}

/* Of the processor, not of the clock: how busy the machine is does not count. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Compiles and evaluates; returns the value, or the compile error as one. */
static cel_value run_source(str source, arena *a, const cel_limits *limits, char message[200])
{
    cel_error problem;
    cel_value bindings[] = {cel_int(1), cel_string(STR("text"))};
    cel_program *p = cel_compile(a, source, &env, &problem);
    cel_value v;
    if (p) {
        v = cel_eval(p, bindings, a, limits);
        snprintf(message, 200, "%s", v.kind == CEL_ERROR ? v.text : "");
    } else {
        v = cel_fail(CEL_INVALID_ARGUMENT, "not compiled");
        snprintf(message, 200, "%.199s", problem.message);
    }
    cel_program_free(p);
    return v;
}

static void shapes(void **state)
{
    (void)state;
    static const struct {
        shape s;
        const char *message; /* NULL: it works */
    } table[] = {
        {{"", "(", 10000, "1", ")", ""}, "the expression is nested deeper than 250"},
        {{"", "(", 240, "1", ")", ""}, NULL},
        {{"", "[", 240, "1", "]", ""}, NULL},
        {{"", "[", MEGA, "", "", ""}, "the expression is nested deeper than 250"},
        {{"", "(", MEGA, "", "", ""}, "the expression is nested deeper than 250"},
        {{"", "{", MEGA, "", "", ""}, "the expression is nested deeper than 250"},
        {{"", "{1:", 10000, "1", "}", ""}, "the expression is nested deeper than 250"},
        {{"", "!", MEGA, "", "", ""}, "expected an expression, found the end of the expression"},
        {{"", "!", MEGA, "true", "", ""}, NULL},
        {{"", "-", MEGA, "x", "", ""}, NULL},
        {{"", "-", MEGA, "", "", ""}, "expected an expression, found the end of the expression"},
        {{"", "!-", 10000, "x", "", ""}, "the expression is nested deeper than 250"},
        {{"x", " + x", 20000, "", "", ""}, NULL},
        {{"1", " * 1", 20000, "", "", ""}, NULL},
        {{"false", " || x == 2", 20000, "", "", ""}, NULL},
        {{"true", " && x == 1", 20000, "", "", ""}, NULL},
        {{"1", " + 1", 150000, "", "", ""}, NULL},
        {{"1", " + 1", 250000, "", "", ""}, "the expression has more than 200000 parts"},
        {{"x", " == x", 20000, "", "", ""}, NULL},
        {{"true", " ? true : true", 10000, "", "", ""}, "the expression is nested deeper than 250"},
        {{"x", ".a", 10000, "", "", ""}, "the expression is nested deeper than 250"},
        {{"x", "[0]", 10000, "", "", ""}, "the expression is nested deeper than 250"},
        {{"s", ".trim()", 10000, "", "", ""}, "the expression is nested deeper than 250"},
        {{"", "int(", 10000, "1", ")", ""}, "the expression is nested deeper than 250"},
        {{"", "[x].map(y, ", 10000, "1", ")", ""}, "the expression is nested deeper than 250"},
        {{"[", "1,", 100000, "", "", "]"}, NULL},
        {{"cel.block([", "1,", 2000, "", "", "], 1)"}, "more than 1024 names are bound at once"},
        {{"'", "a", MEGA, "", "", "' == s"}, NULL},
        {{"'", "\\x41", MEGA / 4, "", "", "' == s"}, NULL},
        {{"b\"\"\"", "a\n", MEGA / 2, "", "", "\"\"\" == b''"}, NULL},
        {{"'", "a", MEGA, "", "", ""},
         "the string that begins here is not closed: expected ' before the end of the line"},
        {{"", "9", MEGA, "", "", ""}, "the number does not fit int (64 bits)"},
        {{"0.", "9", MEGA, "", "", ""}, "a number with more than 511 digits"},
        {{"", "a", MEGA, "", "", ""}, NULL}, /* a long unknown name: see below */
        {{"//", "a", MEGA, "\n1", "", ""}, NULL},
        {{"", " ", 3 * MEGA, "", "", "1"}, "the expression is longer than 2097152 bytes"},
        {{"s.matches('", "(", 30000, "", ")", "')"}, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        arena *a = arena_new(0);
        buf source = BUF(16 * MEGA);
        char message[200] = "";
        build(&source, &table[i].s);
        double start = seconds();
        cel_value v = run_source(buf_str(&source), a, NULL, message);
        double took = seconds() - start;
        bool name = strcmp(table[i].s.part, "a") == 0 && table[i].s.head[0] == '\0';
        if (took > 5)
            fail_msg("row %zu took %.1f s", i, took);
        if (name)
            assert_int_equal(v.kind, CEL_ERROR);
        else if (table[i].message && strcmp(message, table[i].message) != 0)
            fail_msg("row %zu: expected %s, got %s", i, table[i].message, message);
        else if (!table[i].message && v.kind == CEL_ERROR)
            fail_msg("row %zu: %s", i, message);
        buf_done(&source);
        arena_free(a);
    }
}

/* Every one ends by cost or memory, soon. */
static void explosions(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        cel_code code;
    } table[] = {
        {"lists.range(10000).map(a, lists.range(10000).map(b, a * b)).size()", CEL_COST_EXCEEDED},
        {"lists.range(9000000000000000000)", CEL_COST_EXCEEDED},
        {"lists.range(9000000)", CEL_MEMORY},
        {"lists.range(4000).all(a, lists.range(4000).all(b, a + b >= 0))", CEL_COST_EXCEEDED},
        {"cel.bind(a, s + s + s + s + s + s + s + s, cel.bind(b, a + a + a + a + a + a + a + a, "
         "cel.bind(c, b + b + b + b + b + b + b + b, cel.bind(d, c + c + c + c + c + c + c + c, "
         "cel.bind(e, d + d + d + d + d + d + d + d, cel.bind(f, e + e + e + e + e + e + e + e, "
         "cel.bind(g, f + f + f + f + f + f + f + f, cel.bind(h, g + g + g + g + g + g + g + g, "
         "h.size()))))))))",
         CEL_MEMORY},
        {"cel.bind(a, [x, x, x, x, x, x, x, x, x, x], cel.bind(b, a + a + a + a + a + a + a + a + "
         "a, "
         "cel.bind(c, b + b + b + b + b + b + b + b, cel.bind(d, c + c + c + c + c + c + c + c, "
         "cel.bind(e, d + d + d + d + d + d + d + d, cel.bind(f, e + e + e + e + e + e + e + e, "
         "cel.bind(g, f + f + f + f + f + f + f + f, g.size())))))))",
         CEL_MEMORY},
        {"lists.range(30000).map(i, string(i)).distinct().size()", CEL_COST_EXCEEDED},
        {"lists.range(1000000).map(i, s).join(s + s + s + s + s + s + s + s + s + s + s).size()",
         CEL_MEMORY},
        {"lists.range(20000).map(i, lists.range(1000).map(k, string(k)).join().replace('1', "
         "'22222222222222222222222222222222')).size()",
         CEL_COST_EXCEEDED},
        {"lists.range(100000).map(i, s.matches('a' + string(i))).size()", CEL_COST_EXCEEDED},
        {"lists.range(200000).map(i, 'ab').join().matches(s.substring(0, 0) + "
         "'(a?){500}(b?){500}c')",
         CEL_COST_EXCEEDED},
        {"'%s%s%s%s'.format([lists.range(1000000), lists.range(1000000), lists.range(1000000), "
         "lists.range(1000000)])",
         CEL_MEMORY},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        arena *a = arena_new(0);
        char message[200];
        double start = seconds();
        cel_value v = run_source(str_of(table[i].source), a, NULL, message);
        double took = seconds() - start;
        if (v.kind != CEL_ERROR || (v.code != CEL_COST_EXCEEDED && v.code != CEL_MEMORY))
            fail_msg("row %zu: %s", i, message);
        if (took > 10)
            fail_msg("row %zu took %.1f s", i, took);
        arena_free(a);
    }
}

/* The limit is no error that an operator may absorb. */
static void cost_is_fatal(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "lists.range(1000).all(i, i >= 0) || true",
        "false && lists.range(1000).all(i, i >= 0) || lists.range(1000).exists(i, i < 0) || true",
        "cel.bind(a, lists.range(1000).map(i, i), true)",
        "[lists.range(1000).map(i, i).size()].exists(v, true)",
    };
    const cel_limits limits = {.cost = 500};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        arena *a = arena_new(0);
        char message[200];
        cel_value v = run_source(str_of(sources[i]), a, &limits, message);
        assert_int_equal(v.kind, CEL_ERROR);
        assert_int_equal(v.code, CEL_COST_EXCEEDED);
        arena_free(a);
    }
}

static void byte_limit(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    char message[200];
    const cel_limits limits = {.bytes = 1000};
    cel_value v = run_source(STR("lists.range(x + 99).size() > 0 || true"), a, &limits, message);
    assert_int_equal(v.kind, CEL_ERROR);
    assert_int_equal(v.code, CEL_MEMORY);
    assert_string_equal(message, "the evaluation needs more memory than its limit");
    arena_free(a);
}

/* Patterns that take for ever, or all memory, elsewhere. */
static void regexes(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "(a+)+$", "(a|a)*b", "(a*)*(a*)*(a*)*c", "(.*)(.*)(.*)(.*)(.*)(.*)x", "(a?){50}a{50}c",
    };
    buf text = BUF(2 * MEGA);
    for (size_t i = 0; i < 100000; i++)
        buf_addc(&text, 'a');
    buf_addc(&text, '!');
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        arena *a = arena_new(0);
        str source = arena_printf(a, "s.matches('%s')", patterns[i]);
        cel_program *p = cel_compile(a, source, &env, NULL);
        assert_non_null(p);
        cel_value bindings[] = {cel_int(1), cel_string(buf_str(&text))};
        double start = seconds();
        cel_value v = cel_eval(p, bindings, a, NULL);
        assert_true(seconds() - start < 5);
        assert_true(v.kind == CEL_BOOL && !v.b);
        cel_program_free(p);
        arena_free(a);
    }
    buf_done(&text);
    static const char *const refused[] = {
        "s.matches('(a{1000}){1000}')",
        "s.matches('((a{100}){100}){100}')",
        "s.matches('a{1001}')",
        "s.matches('(((((((((a{10}){10}){10}){10}){10}){10}){10}){10}){10})')",
        "s.matches('(?=a)')",
        "s.matches('(a)\\\\1')",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        arena *a = arena_new(0);
        cel_error problem;
        assert_null(cel_compile(a, str_of(refused[i]), &env, &problem));
        assert_int_equal(problem.line, 1);
        assert_int_equal(problem.column, 11);
        assert_non_null(strstr(problem.message, "not a regular expression: "));
        arena_free(a);
    }
}

/* Lists in lists, deeper than any literal may be. */
static void deep_values(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    buf source = BUF(MEGA);
    buf_addz(&source, "cel.block([[x]");
    for (int i = 0; i < 1000; i++)
        buf_addf(&source, ", [[[[[[[[[[[[[[[[[[[[cel.index(%d)]]]]]]]]]]]]]]]]]]]]", i);
    buf_addz(&source,
             "], [cel.index(1000) == cel.index(999), '%s'.format([cel.index(1000)]) == '', "
             "cel.index(1000).flatten(100000) == []])");
    char message[200];
    cel_value v = run_source(buf_str(&source), a, NULL, message);
    assert_int_equal(v.kind, CEL_ERROR);
    assert_int_equal(v.code, CEL_COST_EXCEEDED);
    assert_string_equal(message, "values are nested too deep");
    buf_done(&source);
    arena_free(a);
}

/* The same for types: a thousand names, each a hundred levels deeper than the one before. */
static void deep_types(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    buf source = BUF(MEGA);
    buf_addz(&source, "cel.block([[1]");
    for (int i = 0; i < 800; i++) {
        buf_addf(&source, ", ");
        for (int k = 0; k < 100; k++)
            buf_addc(&source, '[');
        buf_addf(&source, "cel.index(%d)", i);
        for (int k = 0; k < 100; k++)
            buf_addc(&source, ']');
    }
    buf_addz(&source,
             "], size([cel.index(800), cel.index(799), cel.index(798) + cel.index(797)]))");
    char message[200];
    cel_value v = run_source(buf_str(&source), a, NULL, message);
    assert_string_equal(message, "");
    assert_int_equal(v.kind, CEL_INT);
    buf_clear(&source);
    buf_done(&source);
    arena_free(a);
}

static void invalid_text(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    cel_error problem;
    assert_null(cel_compile(a, STR("'\xff'"), &env, &problem));
    assert_string_equal(problem.message, "the expression is not valid UTF-8");
    assert_null(cel_compile(a, (str){"1\0", 2}, &env, &problem));
    assert_string_equal(problem.message, "found the character U+0000, which begins nothing");
    arena_free(a);
}

/* ---- Memory ------------------------------------------------------------------------------- */

static const char *const allocating[] = {
    "x == 1 && s in ['a', 'text'] && s.matches('t.*t')",
    "[1, 2, 3].map(v, {string(v): [v, v + x]}).filter(m, size(m) > 0)",
    "'%s %d %s'.format([[1, {'a': 2}], 3, duration('1s')]) + s.replace('t', 'T').upperAscii()",
    "s.split('').join('-').matches(s + '?') || [3, 1, 2].sortBy(v, -v) == [3, 2, 1]",
    "{?'a': optional.of(x)}.?a.orValue(2) + [?optional.none()].size()",
    "cel.block([[1, 2], cel.index(0).map(cel.iterVar(0, 0), cel.iterVar(0, 0) + x)], cel.index(1))",
    "x.missing || resource",
    "timestamp('2026-01-01T00:00:00Z').getHours('Europe/Berlin') + int('1') + x",
    "{'a': 1}[s] == 2 || 1 / 0 == x || string(ip('::1')) == s",
    "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, x].distinct().reverse() + lists.range(x)",
    "s.frobnicate(1)",
    "{'a': 1, 'a': 2}",
    "s.charAt(true)",
};

/* One failure at a time, at every allocation there is. */
static void failing_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof allocating / sizeof allocating[0]; i++) {
        for (uint64_t nth = 1;; nth++) {
            int64_t live = mem_live();
            mem_fail_at(nth);
            arena *a = arena_new(0);
            arena *scratch = arena_new(0);
            cel_error problem = {.message = ""};
            cel_value bindings[] = {cel_int(1), cel_string(STR("text"))};
            cel_program *p = a ? cel_compile(a, str_of(allocating[i]), &env, &problem) : NULL;
            if (a && !p)
                assert_true(problem.message[0] != '\0');
            if (p && scratch) {
                cel_value v = cel_eval(p, bindings, scratch, NULL);
                if (v.kind == CEL_ERROR)
                    assert_non_null(v.text);
            }
            cel_program_free(p);
            arena_free(scratch);
            arena_free(a);
            bool happened = mem_failed();
            mem_fail_at(0);
            assert_int_equal(mem_live(), live);
            if (!happened)
                break;
        }
    }
}

/* Arenas with a limit: everything up to what is enough. */
static void small_arenas(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof allocating / sizeof allocating[0]; i++) {
        for (size_t bytes = 16; bytes < 12000; bytes += 48) {
            arena *a = arena_new(bytes);
            arena *scratch = arena_new(bytes / 8 + 1);
            cel_value bindings[] = {cel_int(1), cel_string(STR("text"))};
            cel_program *p = cel_compile(a, str_of(allocating[i]), &env, NULL);
            if (p)
                cel_eval(p, bindings, scratch, NULL);
            cel_program_free(p);
            arena_free(scratch);
            arena_free(a);
        }
    }
}

/* A selector in its steady state asks the heap for nothing. */
static void no_heap(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    arena *scratch = arena_new(0);
    cel_value bindings[] = {cel_int(1), cel_string(STR("text"))};
    cel_program *p = cel_compile(a,
                                 STR("x == 1 && s in ['a', 'text'] && [1, 2].exists(v, v == x) && "
                                     "s.matches('^t') && {'a': x}.a == 1"),
                                 &env, NULL);
    assert_non_null(p);
    uint64_t calls = 0;
    for (int i = 0; i < 100; i++) {
        if (i == 1)
            calls = mem_calls();
        arena_place place = arena_mark(scratch);
        bool yes = false;
        assert_true(cel_match(p, bindings, scratch, &yes, NULL) && yes);
        arena_rewind(scratch, place);
    }
    assert_int_equal(mem_calls(), calls);
    cel_program_free(p);
    arena_free(scratch);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),         cmocka_unit_test(explosions),
        cmocka_unit_test(cost_is_fatal),  cmocka_unit_test(byte_limit),
        cmocka_unit_test(regexes),        cmocka_unit_test(deep_values),
        cmocka_unit_test(deep_types),     cmocka_unit_test(invalid_text),
        cmocka_unit_test(failing_memory), cmocka_unit_test(small_arenas),
        cmocka_unit_test(no_heap),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
