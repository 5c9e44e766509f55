/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "cli/options.h"

static const option table[] = {
    {.name = "file", .letter = 'f', .argument = "FILE", .repeatable = true},
    {.name = "output", .letter = 'o', .argument = "text|json"},
    {.name = "strict", .letter = 's'},
    {.name = "quiet", .letter = 'q'},
    {.name = NULL},
};

#define WORDS_MOST 8

/* "--name=value" of each option and each operand, with commas; or what is wrong. */
static buf told(const char *line)
{
    char text[256], *words[WORDS_MOST], *rest = text;
    int count = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *word; rest && *rest && (word = strsep(&rest, " "));)
        words[count++] = word;
    buf out = BUF(1000);
    options o = {0};
    err error;
    if (!options_parse(&o, table, count, words, &error))
        buf_addz(&out, error.text);
    else
        for (size_t i = 0; i < o.values.len; i++)
            buf_addf(&out, "%s=%.*s,", o.values.at[i].option->name, STR_ARG(o.values.at[i].text));
    for (size_t i = 0; i < o.operands.len; i++)
        buf_addf(&out, "%.*s,", STR_ARG(o.operands.at[i]));
    options_done(&o);
    return out;
}

static void check_told(const char *line, const char *expected)
{
    buf found = told(line);
    check_str(buf_str(&found), str_of(expected));
    buf_done(&found);
}

static void test_forms(void **state)
{
    (void)state;
    check_told("", "");
    check_told("--file a", "file=a,");
    check_told("--file=a", "file=a,");
    check_told("--file=a=b", "file=a=b,");
    check_told("--file=", "file=,");
    check_told("-f a", "file=a,");
    check_told("-fa", "file=a,");
    check_told("-f - -f -x", "file=-,file=-x,");
    check_told("-sq", "strict=,quiet=,");
    check_told("-sfa", "strict=,file=a,");
    check_told("-sf a", "strict=,file=a,");
    check_told("a --strict b", "strict=,a,b,");
    check_told("-- --strict -", "--strict,-,");
    check_told("- -s", "strict=,-,");
    check_told("-ojson", "output=json,");
    check_told("--strict=true --quiet=false", "strict=,");
    check_told("-f=a -s=true -q=false", "file=a,strict=,");
    check_told("-sf=a -qs=false", "file=a,quiet=,");
    check_told("-s --strict=false", "");
}

/* As with kubectl. */
static void test_last_counts(void **state)
{
    (void)state;
    char words[][8] = {"-otext", "-s", "-s", "-ojson", "-fa", "-fb"};
    char *at[COUNT_OF(words)];
    options o = {.last_counts = true};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        at[i] = words[i];
    assert_true(options_parse(&o, table, COUNT_OF(words), at, NULL));
    check_text(options_text(&o, "output", ""), "json");
    check_text(options_text(&o, "file", ""), "b");
    assert_true(options_given(&o, "strict"));
    options_done(&o);
}

static void test_errors(void **state)
{
    (void)state;
    check_told("--fil a", "found option \"--fil\", which does not exist; did you mean \"--file\"?");
    check_told("--zzz", "found option \"--zzz\", which does not exist");
    check_told("--=a", "found option \"--\", which does not exist");
    check_told("-sx", "found option \"-x\", which does not exist");
    check_told("--file", "--file: found nothing behind it, it takes FILE");
    check_told("-f", "--file: found nothing behind it, it takes FILE");
    check_told("-s=1", "--strict: found \"1\", allowed true, false or nothing");
    check_told("--strict=1", "--strict: found \"1\", allowed true, false or nothing");
    check_told("-o yaml", "--output: found \"yaml\", allowed text|json");
    check_told("-o tex", "--output: found \"tex\", allowed text|json");
    check_told("-s --strict", "--strict: found twice, allowed once");
}

static void test_lookup(void **state)
{
    (void)state;
    char file[] = "-fa", more[] = "-fb", output[] = "-otext";
    char *words[] = {file, more, output};
    options o = {0};
    size_t at = 0;
    str value;
    assert_true(options_parse(&o, table, 3, words, NULL));
    assert_true(options_given(&o, "file"));
    assert_false(options_given(&o, "strict"));
    check_text(options_text(&o, "output", "json"), "text");
    check_text(options_text(&o, "quiet", "loud"), "loud");
    assert_true(options_next(&o, "file", &at, &value));
    check_text(value, "a");
    assert_true(options_next(&o, "file", &at, &value));
    check_text(value, "b");
    assert_false(options_next(&o, "file", &at, &value));
    options_done(&o);
}

static void test_likeness(void **state)
{
    (void)state;
    static const char *const words[] = {"plan", "explain", "validate", "help", "man", NULL};
    static const struct {
        const char *word, *like;
    } rows[] = {
        {"paln", "plan"},        {"pla", "plan"},  {"explian", "explain"}, {"ex", "explain"},
        {"valdate", "validate"}, {"halp", "help"}, {"xyz", NULL},          {"", NULL},
        {"deploy", NULL},        {"m", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *like = most_like(str_of(rows[i].word), words);
        check_msg(like == rows[i].like || (like && rows[i].like && !strcmp(like, rows[i].like)),
                  "%s: %s", rows[i].word, like ? like : "none");
    }
}

static bool parse_something(void *context)
{
    (void)context;
    char file[] = "-fa", operand[] = "x";
    char *words[] = {file, operand};
    options o = {0};
    bool good = options_parse(&o, table, 2, words, NULL);
    options_done(&o);
    return good;
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    check_each_allocation_fails(parse_something, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),    cmocka_unit_test(test_last_counts),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_likeness), cmocka_unit_test(test_each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
