/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "model/document.h"
#include "model/yaml.h"
#include "support/documents.h"

/* What text becomes: its documents as JSON, one a line, then its problems. */
static buf told(const char *text)
{
    document_set *set = document_set_new();
    problems *found = problems_new();
    documents_read(set, STR("f"), str_of(text), found);
    buf out = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < documents_count(set); i++) {
        json_write(&out, documents_at(set, i)->root);
        buf_addc(&out, '\n');
    }
    buf wrong = problems_as_text(found);
    buf_add(&out, buf_str(&wrong));
    buf_done(&wrong);
    problems_free(found);
    document_set_free(set);
    return out;
}

static void check_told(const char *text, const char *want)
{
    buf got = told(text);
    if (!str_eq(buf_str(&got), str_of(want)))
        print_error("of:\n%s\n", text);
    check_text(buf_str(&got), want);
    buf_done(&got);
}

/* As go-yaml v2 through JSON, which is how Kubernetes reads YAML. */
static const struct {
    const char *yaml;
    const char *json;
} scalar_rows[] = {
    {"text", "\"text\""},
    {"'yes'", "\"yes\""},
    {"\"1\"", "\"1\""},
    {"", "null"},
    {"~", "null"},
    {"null", "null"},
    {"Null", "null"},
    {"NULL", "null"},
    {"nUll", "\"nUll\""},
    {"y", "true"},
    {"Y", "true"},
    {"yes", "true"},
    {"Yes", "true"},
    {"YES", "true"},
    {"true", "true"},
    {"True", "true"},
    {"TRUE", "true"},
    {"on", "true"},
    {"On", "true"},
    {"n", "false"},
    {"N", "false"},
    {"no", "false"},
    {"False", "false"},
    {"off", "false"},
    {"OFF", "false"},
    {"yEs", "\"yEs\""},
    {"tRUE", "\"tRUE\""},
    {"0", "0"},
    {"-0", "0"},
    {"+7", "7"},
    {"-12", "-12"},
    {"1_000", "1000"},
    {"0x1F", "31"},
    {"0X1f", "31"},
    {"-0x10", "-16"},
    {"0o17", "15"},
    {"017", "15"},
    {"08", "8"},
    {"0b101", "5"},
    {"-0b11", "-3"},
    {"0x", "\"0x\""},
    {"0b2", "\"0b2\""},
    {"_1", "\"_1\""},
    {"9223372036854775807", "9223372036854775807"},
    {"18446744073709551615", "18446744073709551615"},
    {"-9223372036854775808", "-9223372036854775808"},
    {"1.5", "1.5"},
    {".5", "0.5"},
    {"-.5", "-0.5"},
    {"5.", "5"},
    {"1e3", "1000"},
    {"1E-2", "0.01"},
    {"1.5e+3", "1500"},
    {".", "\".\""},
    {"e3", "\"e3\""},
    {"1e", "\"1e\""},
    {"1.2.3", "\"1.2.3\""},
    {"1e400", "\"1e400\""},
    {"-", "[null]"},
    {"+", "\"+\""},
    {"2001-12-14", "\"2001-12-14\""},
    {"2026-01-31T12:00:00Z", "\"2026-01-31T12:00:00Z\""},
    {"10:30", "\"10:30\""},
    {"!!str 5", "\"5\""},
    {"!!int 5", "5"},
    {"!!float 5", "5"},
    {"!!bool yes", "true"},
    {"!!null ~", "null"},
    {"!local 5", "\"5\""},
    {"! 5", "5"},
    {"\"\\u00e9\\n\"", "\"\xC3\xA9\\n\""},
    {"'it''s'", "\"it's\""},
};

static void test_scalars(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(scalar_rows); i++) {
        buf yaml = BUF(1000);
        buf json = BUF(1000);
        buf_addf(&yaml, "v: %s\n", scalar_rows[i].yaml);
        buf_addf(&json, "{\"v\":%s}\n", scalar_rows[i].json);
        buf_addc(&yaml, '\0');
        buf_addc(&json, '\0');
        if (strcmp(scalar_rows[i].yaml, "-") != 0)
            check_told(yaml.ptr, json.ptr);
        buf_done(&yaml);
        buf_done(&json);
    }
}

static void test_keys(void **state)
{
    (void)state;
    check_told(
        "1: a\ntrue: b\nno: c\n0x10: d\n1.5: e\n1e6: f\n'x': g\n",
        "{\"1\":\"a\",\"true\":\"b\",\"false\":\"c\",\"16\":\"d\",\"1.5\":\"e\",\"1e+06\":\"f\","
        "\"x\":\"g\"}\n");
    check_told("~: a\n", "f:1: found null as a key, allowed text\n");
    check_told("? [a]\n: b\n", "f:1: found a mapping or list as a key, allowed text\n");
}

static void test_refused_scalars(void **state)
{
    (void)state;
    check_told("a: 1\nb: .inf\n", "f:2: found .inf, allowed a finite number\n");
    check_told("a: -.INF\n", "f:1: found -.INF, allowed a finite number\n");
    check_told("a: .nan\n", "f:1: found .nan, allowed a finite number\n");
    check_told("a: !!int x\n", "f:1: found \"x\" with the tag !!int, which it is not\n");
    check_told("a: !!binary aGk=\n", "f:1: found the tag !!binary, allowed text\n");
}

static void test_anchors(void **state)
{
    (void)state;
    check_told("a: &x {k: [1, 2]}\nb: *x\nc: &y text\n*y : d\n",
               "{\"a\":{\"k\":[1,2]},\"b\":{\"k\":[1,2]},\"c\":\"text\",\"text\":\"d\"}\n");
    check_told("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}\n");
    check_told("a: *x\n", "f:1: found an alias whose anchor is not there\n");
    check_told("a: &x\n  b: *x\n", "f:2: found an alias inside its own anchor\n");
    check_told("a: &x {b: 1}\n---\nc: *x\n",
               "{\"a\":{\"b\":1}}\nf:3: found an alias whose anchor is not there\n");
}

static void test_merge_keys(void **state)
{
    (void)state;
    check_told(
        "a: &a {x: 1, w: 2}\nb: &b {w: 3, z: 4}\nc:\n  <<: [*a, *b]\n  x: 9\n",
        "{\"a\":{\"x\":1,\"w\":2},\"b\":{\"w\":3,\"z\":4},\"c\":{\"x\":9,\"w\":2,\"z\":4}}\n");
    check_told("a: &a {x: 1}\nb: {<<: *a}\nc: {<<: *a, x: 2, w: 3}\n",
               "{\"a\":{\"x\":1},\"b\":{\"x\":1},\"c\":{\"x\":2,\"w\":3}}\n");
    check_told("b:\n  <<: {x: 1}\n  <<: {x: 2, w: 3}\n", "{\"b\":{\"x\":1,\"w\":3}}\n");
    check_told("b:\n  '<<': 1\n", "{\"b\":{\"<<\":1}}\n");
    check_told("b:\n  <<: 1\n  c: 2\n",
               "f:4: found something else under <<, allowed a mapping or a list of them\n");
    check_told("b: {<<: [1]}\n", "f:1: found something else under <<, allowed a mapping\n");
    check_told("a: &a {x: &n 1}\nb:\n  <<:\n    - *a\n    - &m {q: [\n1]}\n  l: *m\nd: *n\n",
               "{\"a\":{\"x\":1},\"b\":{\"l\":{\"q\":[1]},\"x\":1,\"q\":[1]},\"d\":1}\n");
}

/* A few lines that would become a billion values. */
static void test_alias_bomb(void **state)
{
    (void)state;
    buf text = BUF(10000);
    buf_addz(&text, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 10; i++) {
        buf_addf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            buf_addf(&text, "%s*a%d", k ? "," : "", i - 1);
        buf_addz(&text, "]\n");
    }
    buf_addc(&text, '\0');
    check_told(text.ptr, "f:5: found aliases that expand to more than 100000 values or 1.5 MiB\n");
    buf_done(&text);
    buf many = BUF(100000);
    for (int i = 0; i < 1001; i++)
        buf_addf(&many, "- &a%d 1\n", i);
    buf_addc(&many, '\0');
    check_told(many.ptr,
               "f:1001: found more anchors than the 1000 that are allowed in a document\n");
    buf_done(&many);
}

static void test_duplicates(void **state)
{
    (void)state;
    check_told("kind: K\nmetadata: {name: m}\na: 1\nb: 2\na: 3\n",
               "f:5: K/m: a: found the key twice in one object, allowed once\n");
    check_told("{\"a\":{\"b\":1,\n\"b\":2}}",
               "f:2: a.b: found the key twice in one object, allowed once\n");
    check_told("{\"a\":1,\"\\u0061\":2}",
               "f:1: a: found the key twice in one object, allowed once\n");
    check_told("1: a\n'1': b\n", "f:2: 1: found the key twice in one object, allowed once\n");
    static const size_t sizes[] = {2, 8, 9, 32, 33, 512, 513, 3000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        for (int twice = 0; twice < 2; twice++) {
            buf text = BUF(1000000);
            buf_addc(&text, '{');
            for (size_t k = 0; k + 1 < sizes[i]; k++)
                buf_addf(&text, "\"key-%04zu\":0,\n", k);
            buf_addf(&text, "\"key-%04zu\":0}", twice ? sizes[i] / 2 - 1 : sizes[i]);
            document_set *set = document_set_new();
            problems *found = problems_new();
            bool good = documents_read(set, STR("f"), buf_str(&text), found);
            check_msg(good != (bool)twice, "%zu keys", sizes[i]);
            if (twice)
                assert_int_equal(problems_at(found, 0)->line, sizes[i]);
            problems_free(found);
            document_set_free(set);
            buf_done(&text);
        }
    }
}

static buf nested(const char *open, const char *inner, const char *close, size_t depth)
{
    buf text = BUF(10000000);
    for (size_t i = 0; i < depth; i++)
        buf_addz(&text, open);
    buf_addz(&text, inner);
    for (size_t i = 0; i < depth; i++)
        buf_addz(&text, close);
    buf_addc(&text, '\0');
    return text;
}

static void test_depth(void **state)
{
    (void)state;
    buf deepest = nested("{\"a\":", "1", "}", 64);
    buf deeper = nested("{\"a\":", "1", "}", 65);
    buf abyss = nested("{\"a\":", "1", "}", 200000);
    buf got = told(deepest.ptr);
    check_msg(got.len > 300, "%.*s", STR_ARG(buf_str(&got)));
    buf_done(&got);
    check_told(deeper.ptr, "f:1: found values nested deeper than the 64 levels that are allowed\n");
    check_told(abyss.ptr, "f:1: found values nested deeper than the 64 levels that are allowed\n");
    buf yaml = nested("[", "", "]", 65);
    buf labelled = BUF(1000);
    buf_addf(&labelled, "a: %s", yaml.ptr);
    buf_addc(&labelled, '\0');
    check_told(labelled.ptr,
               "f:1: found values nested deeper than the 64 levels that are allowed\n");
    buf_done(&labelled);
    buf_done(&yaml);
    buf_done(&deepest);
    buf_done(&deeper);
    buf_done(&abyss);
}

static void test_many_documents(void **state)
{
    (void)state;
    check_told("", "");
    check_told("\n# nothing\n", "");
    check_told("---\n---\n...\n", "");
    check_told("a: 1\n---\nb: 2\n--- {c: 3}\n...\n", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    check_told("a: 1\n...\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n");
    check_told("%YAML 1.1\n# x\n---\na: 1\n", "{\"a\":1}\n");
    check_told("\xEF\xBB\xBF"
               "a: 1\n",
               "{\"a\":1}\n");
    check_told("a: |\n  x\n  --- not a marker\n---x: 1\n",
               "{\"a\":\"x\\n--- not a marker\\n\",\"---x\":1}\n");
    check_told("{\"a\":1}\n{\"b\":2} {\"c\":3}", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    check_told("{\"a\":1}\n---\n{\"b\":2}\n---\n", "{\"a\":1}\n{\"b\":2}\n");
    check_told("{a: 1}\n---\n{b: 2}\n", "{\"a\":1}\n{\"b\":2}\n");
    check_told("- 1\n", "f:1: found a list, allowed a document: an object with fields\n");
    check_told("just text\n",
               "f:1: found text \"just text\", allowed a document: an object with fields\n");
}

/* One bad document never stops the others. */
static void test_resynchronise(void **state)
{
    (void)state;
    buf got = told("a: 1\n---\nb: [1\nc: 2\n---\nd: 3\n");
    check_has_at(buf_str(&got), STR("{\"a\":1}\n{\"d\":3}\nf:4: this is not YAML: "), __FILE__,
                 __LINE__);
    buf_done(&got);
    got = told("{\"a\":1}\n{\"b\":oops}\n{\"c\":3}\n{\"d\":");
    check_has_at(buf_str(&got), STR("{\"a\":1}\n{\"c\":3}\nf:2: this is not JSON: "), __FILE__,
                 __LINE__);
    check_has_at(buf_str(&got), STR("f:4: this is not JSON: "), __FILE__, __LINE__);
    buf_done(&got);
    check_told("{\"kind\":\"List\",\"items\":[{\"a\":1},2,{\"b\":1,\"b\":2},{\"c\":3}]}",
               "{\"a\":1}\n{\"c\":3}\n"
               "f:1: found number 2, allowed a document: an object with fields\n"
               "f:1: b: found the key twice in one object, allowed once\n");
}

static void test_utf8(void **state)
{
    (void)state;
    check_told("a: 1\nb: \xFF\n", "f:2: found bytes that are not UTF-8\n");
    buf got = told("{\"a\":1,\n\"b\":\"\xC0\xAF\"}");
    check_has_at(buf_str(&got), STR("f:2: this is not JSON: "), __FILE__, __LINE__);
    buf_done(&got);
}

/* Every value knows its line, in both formats. */
static void check_lines(const char *text)
{
    document_set *set = document_set_new();
    problems *found = problems_new();
    bool good = documents_read(set, STR("f"), str_of(text), found);
    assert_true(good);
    const document *d = documents_at(set, documents_count(set) - 1);
    yyjson_val *key;
    yyjson_val *value;
    size_t index;
    size_t count;
    yyjson_obj_foreach(d->root, index, count, key, value)
    {
        long line = strtol(yyjson_get_str(key) + 4, NULL, 10);
        check_msg(document_line(d, key) == (uint32_t)line, "%s: found %u", yyjson_get_str(key),
                  document_line(d, key));
    }
    problems_free(found);
    document_set_free(set);
}

static void test_lines(void **state)
{
    (void)state;
    check_lines(
        "line1: a\nline2: |\n  x\n  y\n\nline6: {x: 1,\n  y: 2}\n# c\nline9: &a\n  - 1\n  - 2\n"
        "line12: *a\nline13:\n  <<: {q:\n     1}\n  z: 2\nline17: 'a\n  b'\nline19: 1\n");
    check_lines("x: 1\n---\nline3: 1\nline4: 2\n---\n# c\nline7: a\n\nline9: b\n");
    check_lines("{\"line1\":1,\n\"line2\":{\"x\":\"a\\\"b\\n\",\n\"y\":[1,\n2]},\n\"line5\":null,"
                "\"line5b\":-1.5e3\n}");
    buf text = BUF(1000000);
    buf_addz(&text, "{\"x\":[");
    for (int i = 2; i < 6000; i++)
        buf_addz(&text, "1,\n");
    buf_addz(&text, "1],\"line5999\":0,\n\"line6000\":0}");
    buf_addc(&text, '\0');
    check_lines(text.ptr);
    buf_done(&text);
}

static void test_lists(void **state)
{
    (void)state;
    const char *text =
        "{\"apiVersion\":\"v1\",\"kind\":\"NodeList\",\"items\":[\n"
        "{\"metadata\":{\"name\":\"a\"}},\n{\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}]}";
    document_set *set = document_set_new();
    problems *found = problems_new();
    assert_true(documents_read(set, STR("f"), str_of(text), found));
    assert_int_equal(documents_count(set), 2);
    check_text(documents_at(set, 0)->kind, "Node");
    check_text(documents_at(set, 0)->api_version, "v1");
    check_text(documents_at(set, 0)->name, "a");
    check_text(documents_at(set, 1)->kind, "Pod");
    assert_int_equal(document_line(documents_at(set, 1), documents_at(set, 1)->root), 3);
    problems_free(found);
    document_set_free(set);
}

static long resident_pages(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*s %ld", &pages), 1);
    fclose(f);
    return pages;
}

/* Each value takes memory for itself, not for all that follow it. */
static void test_many_values(void **state)
{
    (void)state;
    buf text = BUF(LIMIT_TEXT_BYTES);
    for (int i = 0; i < 4000; i++)
        buf_addf(&text, "%s{\"kind\": \"K\", \"a\": [\"}\\\"]\", {\"n\": %d}]}", i % 2 ? "" : "\n",
                 i);
    document_set *set = document_set_new();
    problems *found = problems_new();
    long before = resident_pages();
    assert_true(documents_read(set, STR("f"), buf_str(&text), found));
    long grown = (resident_pages() - before) * sysconf(_SC_PAGESIZE);
    assert_int_equal(documents_count(set), 4000);
    check_msg(grown < 64 * 1024 * 1024, "%ld bytes for %zu", grown, text.len);
    problems_free(found);
    document_set_free(set);
    buf_done(&text);
}

static void test_sizes(void **state)
{
    (void)state;
    buf text = BUF(10000000);
    buf_addz(&text, "{\"a\":\"");
    for (size_t i = 0; i < LIMIT_DOCUMENT_BYTES; i++)
        buf_addc(&text, 'x');
    buf_addz(&text, "\"}");
    buf_addc(&text, '\0');
    check_told(text.ptr, "f:1: found a document of more than 1.5 MiB\n");
    buf list = BUF(10000000);
    buf_addf(&list, "{\"kind\":\"List\",\"items\":[%s,{\"b\":1}]}", text.ptr);
    buf_addc(&list, '\0');
    check_told(list.ptr, "{\"b\":1}\nf:1: found a document of more than 1.5 MiB\n");
    buf_done(&list);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_refused_scalars),
        cmocka_unit_test(test_anchors),
        cmocka_unit_test(test_merge_keys),
        cmocka_unit_test(test_alias_bomb),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_many_documents),
        cmocka_unit_test(test_resynchronise),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_many_values),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
