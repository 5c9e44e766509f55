/* SPDX-License-Identifier: Apache-2.0 */
/* CEL from the outside: what expressions give, and what is said about wrong ones. The vectors of
 * cel-spec are run by test-cel-conformance; here stands what they leave open or do not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <yyjson.h>

#include "base/mem.h"
#include "select/cel_internal.h"

static const cel_type map_type = {.kind = CEL_MAP};
static const cel_type int_type = {.kind = CEL_INT};
static const cel_type string_type = {.kind = CEL_STRING};
static const cel_variable variables[] = {
    {STR("resource"), &map_type},
    {STR("deployment"), &map_type},
    {STR("n"), &int_type},
    {STR("s"), &string_type},
    {STR("x"), NULL},
};
static const cel_env env = {.variables = variables, .variable_count = 5};

static const char resource_json[] =
    "{\"name\":\"eu-1\",\"kind\":\"cluster\",\"count\":3,\"ratio\":0.5,\"big\":"
    "18446744073709551615,"
    "\"none\":null,\"tags\":[\"a\",\"b\",3],"
    "\"metadata\":{\"env\":\"prod\",\"a.b/c\":\"dotted\",\"replicas\":\"4\"}}";

typedef struct fixture {
    arena *a;
    arena *scratch;
    yyjson_doc *doc;
    cel_value bindings[5];
} fixture;

static void begin(fixture *f)
{
    *f = (fixture){.a = arena_new(0), .scratch = arena_new(0)};
    f->doc = yyjson_read(resource_json, sizeof resource_json - 1, 0);
    f->bindings[0] = cel_from_json(yyjson_doc_get_root(f->doc));
    f->bindings[1] = cel_map_of(f->a, NULL, 0);
    f->bindings[2] = cel_int(7);
    f->bindings[3] = cel_string(STR("text"));
    f->bindings[4] = cel_fail(CEL_NO_SUCH_VARIABLE, "unbound");
}

static void end(fixture *f)
{
    yyjson_doc_free(f->doc);
    arena_free(f->scratch);
    arena_free(f->a);
}

typedef struct expectation {
    const char *source;
    const char *result; /* printed; errors as "code: sentence" */
} expectation;

static void expect(const expectation *table, size_t count, bool unchecked)
{
    fixture f;
    begin(&f);
    cel_env with = env;
    with.unchecked = unchecked;
    for (size_t i = 0; i < count; i++) {
        cel_error problem;
        buf out = BUF(10000);
        cel_program *p = cel_compile(f.a, str_of(table[i].source), &with, &problem);
        if (p)
            cel_print(&out, cel_eval(p, f.bindings, f.scratch, NULL), f.scratch);
        else
            buf_addf(&out, "%u:%u: %s", problem.line, problem.column, problem.message);
        buf_addc(&out, '\0');
        if (strcmp(out.ptr, table[i].result) != 0)
            fail_msg("%s\n  expected %s\n  got      %s", table[i].source, table[i].result, out.ptr);
        buf_done(&out);
        cel_program_free(p);
    }
    end(&f);
}

#define EXPECT(table) expect(table, sizeof table / sizeof table[0], false)

static void data(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"resource.name", "\"eu-1\""},
        {"resource['metadata'].env", "\"prod\""},
        {"resource.metadata[\"a.b/c\"]", "\"dotted\""},
        {"resource.metadata.`a.b/c`", "\"dotted\""},
        {"resource.count", "3"},
        {"resource.ratio", "0.5"},
        {"resource.big", "18446744073709551615u"},
        {"resource.none == null", "true"},
        {"resource.tags", "[\"a\", \"b\", 3]"},
        {"resource.tags[2]", "3"},
        {"resource.tags[3]", "out_of_range: the index is out of range: the list has 3 elements"},
        {"'b' in resource.tags && 3.0 in resource.tags && !('c' in resource.tags)", "true"},
        {"'env' in resource.metadata", "true"},
        {"resource.metadata.map(k, k)", "[\"env\", \"a.b/c\", \"replicas\"]"},
        {"resource.metadata.all(k, v, k.size() > 0 && v != '')", "true"},
        {"resource.metadata.transformMap(k, v, k.startsWith('e'), v + '!')",
         "{\"env\": \"prod!\"}"},
        {"resource.metadata == {'env': 'prod', 'a.b/c': 'dotted', 'replicas': '4'}", "true"},
        {"resource.tags + ['c']", "[\"a\", \"b\", 3, \"c\"]"},
        {"resource.tags.slice(1, 3)", "[\"b\", 3]"},
        {"size(resource)", "8"},
        {"int(resource.metadata.replicas) + 1", "5"},
        {"resource.metadata.missing", "no_such_key: no such key: missing"},
        {"resource.metadata.missing == 'x' || resource.name == 'eu-1'", "true"},
        {"resource.metadata.missing == 'x' && resource.name == 'eu-2'", "false"},
        {"resource.name.first", "no_such_field: type string has no fields: .first"},
        {"resource[1]", "no_such_key: no such key: 1"},
        {"x", "no_such_variable: the variable x has no value"},
        {"x == 1 || true", "true"},
        {"n + 1 == 8 && s.size() == 4", "true"},
        {"deployment == {}", "true"},
    };
    EXPECT(table);
}

static void has_macro(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"has(resource.metadata.env)", "true"},
        {"has(resource.metadata[\"env\"])", "true"},
        {"has(resource.metadata['a.b/c'])", "true"},
        {"has(resource.metadata[\"no\"])", "false"},
        {"has(resource[\"metadata\"][\"env\"])", "true"},
        {"has(deployment.metadata.env)", "no_such_key: no such key: metadata"},
        {"has(resource.tags[0])", "1:18: expected a field such as has(a.b) or has(a[\"b\"])"},
        {"has(resource)", "1:5: expected a field such as has(a.b) or has(a[\"b\"])"},
        {"has(resource.metadata.env, 1)", "1:1: has takes 1 argument, found 2"},
    };
    EXPECT(table);
}

static void operators(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"1 + 2 * 3 - 4 / 2 % 3", "5"},
        {"(1 + 2) * 3", "9"},
        {"-2 - -3", "1"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"--9223372036854775808", "overflow: integer overflow"},
        {"9223372036854775807 + n", "overflow: integer overflow"},
        {"!!!true", "false"},
        {"1 < 2 == true", "true"},
        {"true ? 1 : false ? 2 : 3", "1"},
        {"'a' + 'b' + s", "\"abtext\""},
        {"b'a' + b'\\xff'", "b\"a\\xff\""},
        {"1 == 1.0 && 1u == 1 && 1.0 == 1u", "true"},
        {"-1 < 1u && 1u < 1.5 && 18446744073709551615u > -1", "true"},
        {"9223372036854775807 < 9223372036854775808.0", "false"},
        {"9223372036854775807 < 9223372036854777857.0", "true"},
        {"0.0/0.0 == 0.0/0.0 || 0.0/0.0 < 1.0 || 0.0/0.0 >= 1.0", "false"},
        {"[1, 2.0, 'a'] == [1.0, 2u, 'a']", "true"},
        {"{1: 'a', 2u: 'b'} == {1u: 'a', 2: 'b'}", "true"},
        {"{'a': [1]} == {'a': [2]}", "false"},
        {"[[1]] == [[1], [2]]", "false"},
        {"'k' in {'k': 1} && 2.0 in {2: 1} && !(2.5 in {2: 1})", "true"},
        {"{1: 2}[1u]", "2"},
        {"5 % 0", "divide_by_zero: modulus by zero"},
        {"n / 0", "divide_by_zero: division by zero"},
        {"'a' < 'b' && b'a' < b'b' && false < true", "true"},
        {"'\\u00e9' > 'z'", "true"},
        {"type(1) == int && type(type(1)) == type && type([]) == list", "true"},
        {"timestamp('2026-01-01T00:00:00Z') + duration('36h')",
         "timestamp(\"2026-01-02T12:00:00Z\")"},
        {"timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z')",
         "duration(\"86400s\")"},
        {"duration('1h') > duration('59m') && duration('1.5s') == duration('1500ms')", "true"},
        {"string(duration('1500ms'))", "\"1.5s\""},
        {"string(-duration('1s').getSeconds())", "\"-1\""},
        {"dyn(1) + dyn('a')", "no_such_overload: no such overload: +(int, string)"},
        {"dyn([1]) < [2]", "no_such_overload: no such overload: <(list, list)"},
        {"dyn(1) && false", "false"},
        {"dyn(1) || false", "no_such_overload: no such overload: ||(int)"},
        {"1 in dyn(1)", "no_such_overload: no such overload: in(int, int)"},
        {"dyn('a') ? 1 : 2", "no_such_overload: no such overload: ?:(string)"},
        {"-dyn(1u)", "no_such_overload: no such overload: -(uint)"},
        {"{x == 1 || true ? dyn(1.5) : 1: 1}",
         "invalid_argument: a key of type double: expected bool, int, uint or string"},
        {"{dyn('a'): 1, s: 2, 'te' + 'xt': 3}", "duplicate_key: the key text is there twice"},
    };
    EXPECT(table);
}

static void macros(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"[1, 2, 3].all(i, v, i < v)", "true"},
        {"[1, 2, 3].exists(i, v, i == 1 && v == 2)", "true"},
        {"[1, 2, 3].existsOne(i, v, v % 2 == 1)", "false"},
        {"{'a': 1, 'b': 2}.existsOne(k, v, v == 2)", "true"},
        {"[2, 4].transformList(i, v, i * v)", "[0, 4]"},
        {"[2, 4, 6].transformList(i, v, i != 1, v / 2)", "[1, 3]"},
        {"{'a': 1}.transformList(k, v, k + string(v))", "[\"a1\"]"},
        {"{'a': 1, 'b': 0}.transformMap(k, v, 4 / v)", "divide_by_zero: division by zero"},
        {"{'a': 1, 'b': 2}.transformMap(k, v, k != 'a', v + 1)", "{\"b\": 3}"},
        {"['x', 'y'].transformMap(i, v, v)", "{0: \"x\", 1: \"y\"}"},
        {"{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, {v: k})", "{\"x\": \"a\", \"y\": \"b\"}"},
        {"{'a': 'x', 'b': 'x'}.transformMapEntry(k, v, {v: k})",
         "duplicate_key: the key x is there twice"},
        {"[1, 2, 3].map(v, v > 1, v * v)", "[4, 9]"},
        {"[3, 1, 2].sortBy(v, -v)", "[3, 2, 1]"},
        {"['b', 'aa', 'c'].sortBy(v, v.size())", "[\"b\", \"c\", \"aa\"]"},
        {"[[1, 2], [3]].map(l, l.map(v, v * n))", "[[7, 14], [21]]"},
        {"[1].map(n, [2].map(n, n + 1) + [n])", "[[3, 1]]"},
        {"[0].exists(n, .n == 7)", "true"},
        {"cel.bind(a, n + 1, a * a)", "64"},
        {"cel.bind(a, 1 / 0, true)", "true"},
        {"cel.bind(a, n / 0, a == 1)", "divide_by_zero: division by zero"},
        {"[1, 2].map(v, cel.bind(w, v * 10, w + v))", "[11, 22]"},
        {"cel.bind(v, cel.bind(v, 'a', v + v), v + ':' + v)", "\"aa:aa\""},
        {"cel.block([1, cel.index(0) + 1, cel.index(1) * 2], [cel.index(0), cel.index(2)])",
         "[1, 4]"},
        {"cel.block([[1, 2]], cel.index(0).map(cel.iterVar(0, 0), cel.iterVar(0, 0) + 1))",
         "[2, 3]"},
        {"[1, dyn('a')].exists(v, v > 0)", "true"},
        {"[dyn('a'), 1].all(v, v > 1)", "false"},
        {"['a', dyn(1)].filter(v, v > 0)", "no_such_overload: no such overload: >(string, int)"},
        {"[1].all(v, dyn(v))", "no_such_overload: expected a bool, found int"},
        {"dyn(1).map(v, v)", "no_such_overload: expected a list or map, found int"},
    };
    EXPECT(table);
}

static void functions(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"'Hello'.lowerAscii() + 'x'.upperAscii()", "\"helloX\""},
        {"'a,b,,c'.split(',')", "[\"a\", \"b\", \"\", \"c\"]"},
        {"'abc'.split('')", "[\"a\", \"b\", \"c\"]"},
        {"'a,b,c'.split(',', 2)", "[\"a\", \"b,c\"]"},
        {"''.split(',')", "[\"\"]"},
        {"'abc'.replace('', '-')", "\"-a-b-c-\""},
        {"'aaa'.replace('a', 'b', 2)", "\"bba\""},
        {"'aaa'.replace('a', 'b', 0)", "\"aaa\""},
        {"'abcabc'.lastIndexOf('abc')", "3"},
        {"'abc'.substring(1, 9)", "out_of_range: index out of range: 9"},
        {"[1, 'a'].join()", "no_such_overload: no such overload: join: element(int)"},
        {"'%s|%d|%.2f|%x|%X|%b|%o|%e'.format(['a', 1, 1.5, 255, 'az', 5, 8, 1.0])",
         "\"a|1|1.50|ff|617A|101|10|1.000000e+00\""},
        {"'%s'.format([{'b': [1, null], 'a': true}])", "\"{a: true, b: [1, null]}\""},
        {"'%d'.format([-5]) + '%x'.format([-255]) + '%b'.format([false])", "\"-5-ff0\""},
        {"'%'.format([])", "invalid_argument: format: expected one of s d f e b x X o behind %, "
                           "found \"?\""},
        {"'%s'.format([])", "out_of_range: format: the list has only 0 values"},
        {"strings.quote('a\"b\\n')", "\"\\\"a\\\\\\\"b\\\\n\\\"\""},
        {"'abc'.matches('^a.c$') && !'abc'.matches('^b')", "true"},
        {"matches('abc', 'b')", "true"},
        {"'a'.matches(s + '[')", "invalid_argument: not a regular expression: missing ]: ["},
        {"lists.range(3)", "[0, 1, 2]"},
        {"[[1, [2]], [], [3]].flatten()", "[1, [2], 3]"},
        {"[[1, [2, [3]]]].flatten(2)", "[1, 2, [3]]"},
        {"[1, 2u, 1.0, 'a', 'a'].distinct()", "[1, 2u, \"a\"]"},
        {"[3, 1, 2].sort()", "[1, 2, 3]"},
        {"['b', 'a'].sort().reverse()", "[\"b\", \"a\"]"},
        {"[1, 'a'].sort()", "invalid_argument: sort: the elements must be of one type that has an "
                            "order"},
        {"[1, 2].first().value() + [1, 2].last().orValue(0)", "3"},
        {"[].first().hasValue()", "false"},
        {"[1, 2].slice(1, 3)", "out_of_range: slice(1, 3) of a list with 2 elements"},
        {"sets.contains([1, 2, 3], [3, 1.0])", "true"},
        {"sets.equivalent([1, 1, 2], [2u, 1])", "true"},
        {"sets.intersects([1], [2]) || sets.contains([], [1])", "false"},
        {"base64.encode(b'hello') + string(base64.decode('aGVsbG8'))", "\"aGVsbG8=hello\""},
        {"base64.decode('a===')", "invalid_argument: not valid base64"},
        {"math.greatest([1, 5u, 3.5]) == 5 && math.least(2, 1.5) == 1.5", "true"},
        {"math.greatest([])", "invalid_argument: math: the list is empty"},
        {"math.round(2.5) + math.trunc(-2.5) + math.sqrt(16)", "5"},
        {"string(1e21) + ' ' + string(123456789.0) + ' ' + string(0.1)", "\"1e+21 123456789 0.1\""},
        {"double('1.5e3') == 1500.0 && double('-Infinity') < 0.0", "true"},
        {"double('0x10')", "invalid_argument: \"0x10\" cannot become a double"},
        {"int('12x')", "invalid_argument: \"12x\" cannot become an int"},
        {"int(9223372036854775808.0)",
         "invalid_argument: 9223372036854775808 is out of the range of int"},
        {"uint(-1)", "invalid_argument: -1 is out of the range of uint"},
        {"bool('yes')", "invalid_argument: \"yes\" cannot become a bool"},
        {"duration('1x')",
         "invalid_argument: \"1x\" cannot become a duration such as 90s or 1h30m"},
        {"timestamp('2026-02-30T00:00:00Z')",
         "invalid_argument: \"2026-02-30T00:00:00Z\" cannot become "
         "a timestamp such as 2026-11-15T09:00:00Z"},
        {"size('πέντε') + size(b'\\xff\\x00') + size({1: 2})", "8"},
    };
    EXPECT(table);
}

static void time_zones(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"timestamp('2026-07-01T12:00:00Z').getHours('Europe/Berlin')", "14"},
        {"timestamp('2026-01-01T12:00:00Z').getHours('Europe/Berlin')", "13"},
        {"timestamp('2026-11-01T05:59:59Z').getHours('America/New_York')", "1"},
        {"timestamp('2026-11-01T06:00:00Z').getHours('America/New_York')", "1"},
        {"timestamp('2026-11-01T07:00:00Z').getHours('America/New_York')", "2"},
        {"timestamp('9999-07-01T12:00:00Z').getHours('Europe/Berlin')", "14"},
        {"timestamp('2026-01-01T00:00:00Z').getFullYear('-00:01')", "2025"},
        {"timestamp('2026-01-01T00:00:00Z').getMinutes('05:45')", "45"},
        {"timestamp('2026-01-01T00:00:00.25Z').getMilliseconds()", "250"},
        {"timestamp('2026-01-01T00:00:00Z').getHours('Mars/Base')",
         "invalid_argument: unknown time zone \"Mars/Base\""},
        {"timestamp('2026-01-01T00:00:00Z').getHours('../../etc/passwd')",
         "invalid_argument: unknown time zone \"../../etc/passwd\""},
        {"timestamp('2026-01-01T00:00:00Z').getHours('+24:00')",
         "invalid_argument: unknown time zone \"+24:00\""},
    };
    EXPECT(table);
}

static void optionals(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"optional.none().or(optional.none()).orValue(42)", "42"},
        {"optional.of(1).orValue(1 / 0)", "1"},
        {"optional.none().optMap(y, y + 1).hasValue()", "false"},
        {"optional.of(1).optMap(y, y + 1).value()", "2"},
        {"{}.?key.optFlatMap(k, k.?subkey).hasValue()", "false"},
        {"{'key': {'subkey': 1}}.?key.optFlatMap(k, k.?subkey).value()", "1"},
        {"{'null_entry': null}.?null_entry.hasValue()", "true"},
        {"resource.?none.no", "no_such_field: type null_type has no fields: .no"},
        {"resource.?metadata.?env.orValue('none')", "\"prod\""},
        {"resource.?missing.deep.deeper.orValue('none')", "\"none\""},
        {"resource.metadata[?'no'].orValue('none')", "\"none\""},
        {"[1, 2][?5].hasValue()", "false"},
        {"[1, 2][?1].value()", "2"},
        {"has(optional.ofNonZeroValue({'c': 1}).c) && !has(optional.none().c)", "true"},
        {"optional.ofNonZeroValue('').hasValue() || optional.ofNonZeroValue(0).hasValue()",
         "false"},
        {"[?optional.none(), 1, ?optional.of(2)]", "[1, 2]"},
        {"{?'a': optional.none(), 'b': 1, ?'c': resource.?name}", "{\"b\": 1, \"c\": \"eu-1\"}"},
        {"optional.of(1) == optional.of(1.0) && optional.none() == optional.none()", "true"},
        {"optional.of(1) == optional.none()", "false"},
        {"optional.none().value()", "invalid_argument: the optional has no value"},
        {"type(optional.none()) == optional_type", "true"},
        {"[?dyn(1)]", "no_such_overload: \"?\" needs an optional value, found int"},
        {"[optional.of(1), optional.none()].unwrapOpt()", "[1]"},
    };
    EXPECT(table);
}

static void network(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"ip('10.0.0.1').family() + ip('::1').family()", "10"},
        {"isIP('10.0.0.1') && !isIP('10.0.0.256') && !isIP('fe80::1%eth0')", "true"},
        {"isIP('::ffff:10.0.0.1')", "false"},
        {"ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1')", "true"},
        {"ip('2001:db8::1') == ip('2001:DB8:0::1')", "true"},
        {"cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP('11.0.0.1')",
         "true"},
        {"cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))", "true"},
        {"string(cidr('10.1.2.3/12').masked())", "\"10.0.0.0/12\""},
        {"string(cidr('10.1.2.3/12').ip()) + '/' + string(cidr('::/0').prefixLength())",
         "\"10.1.2.3/0\""},
        {"isCIDR('10.0.0.0/33') || isCIDR('10.0.0.0') || isCIDR('10.0.0.0/08')", "false"},
        {"ip('127.0.0.1').isLoopback() && ip('::').isUnspecified()", "true"},
        {"ip('10.0.0.1').isGlobalUnicast() && !ip('169.254.1.1').isGlobalUnicast()", "true"},
        {"ip('fe80::1').isLinkLocalUnicast() && ip('ff02::1').isLinkLocalMulticast()", "true"},
        {"type(ip('::1')) == net.IP && type(cidr('::/0')) == net.CIDR", "true"},
        {"ip('nonsense')", "invalid_argument: not an IP address"},
    };
    EXPECT(table);
}

/* What is wrong, where, and what was expected instead. */
static void compile_errors(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"", "1:1: expected an expression, found the end of the expression"},
        {"1 +", "1:4: expected an expression, found the end of the expression"},
        {"(1",
         "1:3: expected \")\" for the ( at line 1, column 1, found the end of the expression"},
        {"[1,\n 2", "2:3: expected \"]\" for the [ at line 1, column 1, found the end of the "
                    "expression"},
        {"{'a' 1}", "1:6: expected \":\" after the key, found 1"},
        {"n 1", "1:3: expected an operator or the end of the expression, found 1"},
        {"n ? 1", "1:6: expected \":\" and what holds otherwise, found the end of the expression"},
        {"resource.", "1:10: expected a field name after \".\", found the end of the expression"},
        {"resource.name == 'a' AND n == 1", "1:22: found \"AND\", did you mean \"&&\"?"},
        {"(resource.name == 'a' or n == 1)", "1:23: found \"or\", did you mean \"||\"?"},
        {"NOT has(resource.name)", "1:1: found \"NOT\", did you mean \"!\"?"},
        {"n = 1", "1:3: found \"=\", did you mean \"==\"?"},
        {"true & false", "1:6: found \"&\", did you mean \"&&\"?"},
        {"'é' + §", "1:7: found \"§\", which begins nothing"},
        {"\"abc",
         "1:1: the string that begins here is not closed: expected \" before the end of the "
         "line"},
        {"'''a\nb", "1:1: the string that begins here is not closed: expected three of '"},
        {"'a\\q'", "1:3: unknown escape \"\\q\""},
        {"'\\ud800'", "1:2: the escape is no Unicode character"},
        {"'\\u12'", "1:2: expected 4 hexadecimal digits in the escape"},
        {"b'\\u0041'", "1:3: unknown escape \"\\u\": bytes have only \\x and octal ones"},
        {"9223372036854775808", "1:1: the number does not fit int (64 bits)"},
        {"18446744073709551616u", "1:1: the number does not fit uint (64 bits)"},
        {"for", "1:1: \"for\" is a reserved word: expected a name"},
        {"resourse.name", "1:1: unknown variable \"resourse\", did you mean \"resource\"?"},
        {"environment.name", "1:1: unknown variable \"environment\": expected one of resource, "
                             "deployment, n, s, x"},
        {"s.toLowerCase() == 'a'",
         "1:3: unknown function \"toLowerCase\", did you mean \"lowerAscii\"?"},
        {"s.startWith('a')", "1:3: unknown function \"startWith\", did you mean \"startsWith\"?"},
        {"startsWith(s, 'a')", "1:1: startsWith is called on a value: x.startsWith(...)"},
        {"s.int()", "1:3: int is called as int(...), not on a value"},
        {"frobnicate(1)", "1:1: unknown function \"frobnicate\""},
        {"size()", "1:1: size takes 1 argument, found 0"},
        {"s.indexOf()", "1:3: indexOf takes 1 or 2 arguments, found 0"},
        {"math.greatest()", "1:6: math.greatest takes 1 or more arguments, found 0"},
        {"s.charAt('a')", "1:3: no such function: string.charAt(string)"},
        {"size(1)", "1:1: no such function: size(int)"},
        {"1 + 'a'", "1:3: no such operation: int + string"},
        {"n == 'a'", "1:3: no such operation: int == string"},
        {"s < 1", "1:3: no such operation: string < int"},
        {"1 in 'abc'", "1:3: no such operation: int in string"},
        {"[1] + {}", "1:5: no such operation: list(int) + map(dyn, dyn)"},
        {"n && true", "1:1: && needs bool, found int"},
        {"!s", "1:2: ! needs bool, found string"},
        {"-s", "1:1: - needs int or double, found string"},
        {"n ? 1 : 2", "1:3: ? needs bool before it, found int"},
        {"n.field", "1:3: type int has no fields: .field"},
        {"n[0]", "1:2: type int has no elements"},
        {"[1]['a']", "1:5: the index of a list is an int, found string"},
        {"n.map(v, v)", "1:3: expected a list or map to go through, found int"},
        {"[1].all(v, v + 1)", "1:14: expected a condition of type bool, found int"},
        {"[1].all(1, true)", "1:9: expected a variable name as an argument of all"},
        {"[1].all(v, v, true)", "1:12: the two variables of all have the same name"},
        {"{'a': 1, 'a': 2}", "1:1: the key a is there twice"},
        {"{1.5: 1}", "1:2: a key of type double: expected bool, int, uint or string"},
        {"s.matches('[')", "1:11: not a regular expression: missing ]: ["},
        {"Message{field: 1}", "1:1: protobuf messages are not supported: expected a map such as "
                              "{\"key\": value}"},
    };
    EXPECT(table);
}

/* Without checks the same mistakes are errors of the evaluation. */
static void unchecked(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"unknown || true", "true"},
        {"unknown.field", "no_such_variable: unknown variable unknown"},
        {"f(1)", "no_such_overload: unknown function f"},
        {"1 + 'a'", "no_such_overload: no such overload: +(int, string)"},
        {"'a'.charAt(true)", "no_such_overload: no such overload: charAt(string, bool)"},
        {"{1: 2, 1u: 3}", "duplicate_key: the key 1 is there twice"},
        {"s.matches('[')", "invalid_argument: not a regular expression: missing ]: ["},
    };
    expect(table, sizeof table / sizeof table[0], true);
}

/* ---- cel_match, types, used variables ----------------------------------------------------- */

static void matching(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        int answer; /* -1 is an error */
        const char *message;
    } table[] = {
        {"resource.name == 'eu-1'", 1, NULL},
        {"resource.name == 'eu-2'", 0, NULL},
        {"resource.metadata.missing == 'y'", 0, NULL},
        {"!(resource.metadata.missing == 'y')", 0, NULL},
        {"resource.metadata.missing == 'y' || true", 1, NULL},
        {"n / 0 == 1", -1, "line 1, column 3: division by zero"},
        {"resource.name", -1, "expected a bool, found string"},
        {"true &&\n resource.tags[9] == 1", -1,
         "line 2, column 15: the index is out of range: the list has 3 elements"},
        {"x", -1, "line 1, column 1: the variable x has no value"},
    };
    fixture f;
    begin(&f);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cel_program *p = cel_compile(f.a, str_of(table[i].source), &env, NULL);
        assert_non_null(p);
        bool answer = true;
        err error = {"untouched"};
        bool good = cel_match(p, f.bindings, f.scratch, &answer, &error);
        assert_int_equal(good, table[i].answer >= 0);
        if (good)
            assert_int_equal(answer, table[i].answer);
        else
            assert_string_equal(error.text, table[i].message);
        cel_program_free(p);
    }
    end(&f);
}

static void knowledge(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        const char *type;
        const char *uses; /* one letter a variable */
        bool never;
    } table[] = {
        {"resource.name == 'a'", "bool", "r----", false},
        {"resource.name", "dyn", "r----", false},
        {"n + 1", "int", "--n--", true},
        {"[s]", "list(string)", "---s-", true},
        {"deployment.x in [1] && x.y", "bool", "-d--x", false},
        {"[1].map(n, n * 2)", "list(int)", "-----", true},
        {"{'a': [1.0]}", "map(string, list(double))", "-----", true},
        {"true ? n : x", "dyn", "--n-x", false},
        {"[[], [1]]", "list(list(int))", "-----", true},
        {"[[1], ['a']]", "list(dyn)", "-----", true},
        {"resource.?a", "optional_type(dyn)", "r----", true},
        {"[optional.none(), optional.of(1)]", "list(optional_type(int))", "-----", true},
        {"s.split(',')", "list(string)", "---s-", true},
        {"[1, 2].filter(v, v > 1)", "list(int)", "-----", true},
        {"[duration('1s'), null][0]", "google.protobuf.Duration", "-----", true},
    };
    fixture f;
    begin(&f);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cel_program *p = cel_compile(f.a, str_of(table[i].source), &env, NULL);
        assert_non_null(p);
        buf type = BUF(1000);
        cel_type_print(&type, cel_result_type(p));
        buf_addc(&type, '\0');
        assert_string_equal(type.ptr, table[i].type);
        buf_done(&type);
        for (size_t k = 0; k < 5; k++)
            assert_int_equal(cel_uses(p, k), table[i].uses[k] != '-');
        assert_int_equal(cel_never_bool(p), table[i].never);
        cel_program_free(p);
    }
    end(&f);
}

/* ---- Foreign lists and maps --------------------------------------------------------------- */

typedef struct labels {
    cel_object object;
    size_t count;
    const char *(*pairs)[2];
} labels;

static size_t labels_size(const cel_object *self)
{
    return ((const labels *)self)->count;
}

static bool labels_get(const cel_object *self, cel_value key, arena *scratch, cel_value *ret)
{
    (void)scratch;
    const labels *l = (const labels *)self;
    for (size_t i = 0; i < l->count; i++)
        if (key.kind == CEL_STRING && str_eq(cel_text(key), str_of(l->pairs[i][0]))) {
            *ret = cel_string(str_of(l->pairs[i][1]));
            return true;
        }
    return false;
}

static void labels_at(const cel_object *self, size_t i, arena *scratch, cel_value *ret_key,
                      cel_value *ret)
{
    (void)scratch;
    const labels *l = (const labels *)self;
    *ret_key = cel_string(str_of(l->pairs[i][0]));
    *ret = cel_string(str_of(l->pairs[i][1]));
}

static size_t count_size(const cel_object *self)
{
    (void)self;
    return 5;
}

static void count_at(const cel_object *self, size_t i, arena *scratch, cel_value *ret_key,
                     cel_value *ret)
{
    (void)self;
    (void)scratch;
    (void)ret_key;
    *ret = cel_int((int64_t)i * 10);
}

static void foreign(void **state)
{
    (void)state;
    static const char *pairs[][2] = {{"env", "prod"}, {"tier", "gold"}};
    static const cel_ops map_ops = {labels_size, labels_get, labels_at};
    static const cel_ops list_ops = {count_size, NULL, count_at};
    static const labels map = {{&map_ops}, 2, pairs};
    static const cel_object list = {&list_ops};
    static const char *const sources[] = {
        "resource.env == 'prod' && !('no' in resource) && has(resource.tier)",
        "resource == {'tier': 'gold', 'env': 'prod'} && {'tier': 'gold', 'env': 'prod'} == "
        "resource",
        "resource.map(k, k) == ['env', 'tier'] && size(resource) == 2",
        "resource.exists(k, v, k == 'tier' && v == 'gold')",
        "x[4] == 40 && 20 in x && x == [0, 10, 20, 30, 40] && x.size() == 5",
        "x.filter(v, v > 25) + x.slice(0, 1) == [30, 40, 0] && x.sort().reverse()[0] == 40",
        "'%s'.format([resource]) == '{env: prod, tier: gold}' && math.greatest(x) == 40",
        "!has(resource.missing) && resource.?missing.orValue('x') == 'x'",
    };
    fixture f;
    begin(&f);
    f.bindings[0] = cel_foreign_map(&map.object);
    f.bindings[4] = cel_foreign_list(&list);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        cel_program *p = cel_compile(f.a, str_of(sources[i]), &env, NULL);
        assert_non_null(p);
        bool yes = false;
        err error = {""};
        if (!cel_match(p, f.bindings, f.scratch, &yes, &error) || !yes)
            fail_msg("%s: %s", sources[i], error.text);
        cel_program_free(p);
    }
    end(&f);
}

/* The order of the table is what finds a function. */
static void table_is_sorted(void **state)
{
    (void)state;
    size_t count;
    const cel_function *table = cel_function_table(&count);
    for (size_t i = 1; i < count; i++) {
        int order = str_cmp(table[i - 1].name, table[i].name);
        assert_true(order < 0 || (order == 0 && table[i - 1].member <= table[i].member));
    }
}

/* A large constant list or map is found in by hash: the answers are the same. */
static void large_literals(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"5u in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "true"},
        {"5.0 in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "true"},
        {"5.5 in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "false"},
        {"[5] in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "false"},
        {"s in ['1', '2', '3', '4', '5', '6', '7', '8', '9', 'text']", "true"},
        {"-1 in [18446744073709551615u, 1, 2, 3, 4, 5, 6, 7, 8, 9]", "false"},
        {"{1:1, 2:2, 3:3, 4:4, 5:5, 6:6, 7:7, 8:8, 9:9, 'text':10}[s]", "10"},
        {"{1:1, 2:2, 3:3, 4:4, 5:5, 6:6, 7:7, 8:8, 9:9, 1u:10}", "1:1: the key 1 is there twice"},
    };
    EXPECT(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data),           cmocka_unit_test(has_macro),
        cmocka_unit_test(operators),      cmocka_unit_test(macros),
        cmocka_unit_test(functions),      cmocka_unit_test(time_zones),
        cmocka_unit_test(optionals),      cmocka_unit_test(network),
        cmocka_unit_test(compile_errors), cmocka_unit_test(unchecked),
        cmocka_unit_test(matching),       cmocka_unit_test(knowledge),
        cmocka_unit_test(foreign),        cmocka_unit_test(table_is_sorted),
        cmocka_unit_test(large_literals),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
