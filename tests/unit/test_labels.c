/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "select/labels.h"

#define TERMS_MOST 4
#define LABELS_MOST 40

/* "a=1 b=2" as a label set; views into text. */
static label_set labels_of(const char *text, label *room)
{
    size_t n = 0;
    str rest = str_of(text);
    while (rest.len > 0) {
        str pair = str_cut(&rest, ' ');
        str key = str_cut(&pair, '=');
        room[n++] = (label){key, pair};
    }
    label_set set;
    err error;
    check_msg(label_set_sort(room, n, &set, &error), "%s: %s", text, error.text);
    return set;
}

static const struct {
    const char *selector;
    const char *labels;
    bool want;
} match_rows[] = {
    {"", "", true},
    {"", "a=1", true},
    {" \t\r\n", "a=1", true},
    {"a=1", "a=1", true},
    {"a==1", "a=1", true},
    {"a=1", "a=2", false},
    {"a=1", "b=1", false},
    {"a=1", "", false},
    {"a=", "a=", true},
    {"a=", "a=1", false},
    {"a=", "", false},
    {"a!=1", "a=1", false},
    {"a!=1", "a=2", true},
    {"a!=1", "", true}, /* absent is not equal */
    {"a!=", "a=", false},
    {"a!=", "a=1", true},
    {"a", "a=", true},
    {"a", "a=1", true},
    {"a", "b=1", false},
    {"!a", "a=1", false},
    {"!a", "a=", false},
    {"!a", "b=1", true},
    {"! a", "", true},
    {"a in (1,2)", "a=1", true},
    {"a in (1,2)", "a=2", true},
    {"a in (1,2)", "a=3", false},
    {"a in (1,2)", "", false},
    {"a notin (1,2)", "a=1", false},
    {"a notin (1,2)", "a=3", true},
    {"a notin (1,2)", "", true}, /* absent is not in */
    {"a in ()", "a=", true},     /* so Kubernetes has it */
    {"a in ( )", "a=1", false},
    {"a notin ()", "a=", false},
    {"a notin ()", "", true},
    {"a in (,)", "a=", true},
    {"a in (1,)", "a=", true},
    {"a in (,1)", "a=", true},
    {"a in (1,,2)", "a=", true},
    {"a in (1,,2)", "a=2", true},
    {"a in (1,2)", "a=", false},
    {"a in(1)", "a=1", true},
    {"a\tin\n( 1 , 2 )", "a=2", true},
    {"in in (in,notin)", "in=notin", true},
    {"notin notin (notin)", "notin=in", true},
    {"in", "in=1", true},
    {"!notin", "in=1", true},
    {"in=in,notin=notin", "in=in notin=notin", true},
    {"a=1,b=2", "a=1 b=2", true},
    {"a=1,b=2", "a=1 b=3", false},
    {"a=1,b=2", "b=2", false},
    {"a=1 , b , !c", "a=1 b=x", true},
    {"a=1,a=2", "a=1", false}, /* never both */
    {"a!=1,a!=2", "a=3", true},
    {"example.com/a.b_c-d=X", "example.com/a.b_c-d=X", true},
    {"env=prod,tier in (a,b),!old", "env=prod tier=b", true},
    {"env=prod,tier in (a,b),!old", "env=prod old= tier=b", false},
    {"ab=1", "a=1 abc=1", false},
};

static void test_match(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(match_rows); i++) {
        scoped(arena_cleanup) arena *a = arena_new(0);
        label room[LABELS_MOST];
        err error;
        scoped(exact_done) str text = exact_new(str_of(match_rows[i].selector));
        selector *s = selector_parse(a, text, &error);
        check_msg(s, "%s: %s", match_rows[i].selector, error.text);
        check_msg(selector_match(s, labels_of(match_rows[i].labels, room)) == match_rows[i].want,
                  "%s against %s", match_rows[i].selector, match_rows[i].labels);
    }
}

static void test_text_errors(void **state)
{
    (void)state;
    static const struct {
        const char *selector;
        const char *want;
    } rows[] = {
        {",", "found \",\" at byte 1 of the selector, allowed a label key or \"!\""},
        {"a,", "found the end of the selector, allowed a label key or \"!\""},
        {"a,,b", "found \",\" at byte 3 of the selector, allowed a label key or \"!\""},
        {"!", "found the end of the selector, allowed a label key"},
        {"!!a", "found \"!\" at byte 2 of the selector, allowed a label key"},
        {"!a=b", "found \"=\" at byte 3 of the selector, allowed \",\" or the end"},
        {"=b", "found \"=\" at byte 1 of the selector, allowed a label key or \"!\""},
        {"a b",
         "found \"b\" at byte 3 of the selector, allowed =, ==, !=, in, notin, \",\" or the end"},
        {"a=b c", "found \"c\" at byte 5 of the selector, allowed \",\" or the end"},
        {"a===b", "found \"=\" at byte 4 of the selector, allowed a value"},
        {"a=!b", "found \"!\" at byte 3 of the selector, allowed a value"},
        {"a>5",
         "found \">\" at byte 2 of the selector, allowed =, ==, !=, in, notin, \",\" or the end"},
        {"a<5",
         "found \"<\" at byte 2 of the selector, allowed =, ==, !=, in, notin, \",\" or the end"},
        {"a IN (b)",
         "found \"IN\" at byte 3 of the selector, allowed =, ==, !=, in, notin, \",\" or the end"},
        {"a in b", "found \"b\" at byte 6 of the selector, allowed \"(\""},
        {"a in", "found the end of the selector, allowed \"(\""},
        {"a in (", "found the end of the selector, allowed a value, \",\" or \")\""},
        {"a in (b", "found the end of the selector, allowed \",\" or \")\""},
        {"a in (b c)", "found \"c\" at byte 9 of the selector, allowed \",\" or \")\""},
        {"a in (b,(", "found \"(\" at byte 9 of the selector, allowed a value, \",\" or \")\""},
        {"a in (b))", "found \")\" at byte 9 of the selector, allowed \",\" or the end"},
        {"a/b/c", "found label key \"a/b/c\", allowed after \"/\" letters, digits, \"-\", \"_\" "
                  "and \".\", a letter or digit first and last"},
        {"A/b", "found label key \"A/b\", allowed before \"/\" a DNS name of lower-case letters, "
                "digits, \"-\" and \".\""},
        {"a\x01", "found label key \"a?\", allowed letters, digits, \"-\", \"_\" and \".\", "
                  "a letter or digit first and last"},
        {"a=\xFF", "label key \"a\": found label value \"?\", allowed letters, digits, \"-\", "
                   "\"_\" and \".\", a letter or digit first and last, or nothing"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        scoped(arena_cleanup) arena *a = arena_new(0);
        err error = {""};
        scoped(exact_done) str text = exact_new(str_of(rows[i].selector));
        check_msg(!selector_parse(a, text, &error), "%s", rows[i].selector);
        check_err(error, rows[i].want);
        assert_int_equal(arena_used(a), 0);
        assert_null(selector_parse(a, str_of(rows[i].selector), NULL));
    }
}

static void test_compile_errors(void **state)
{
    (void)state;
    static const str two[] = {STR("x"), STR("y")};
    static const str bad[] = {STR("x"), STR("-")};
    static const struct {
        label_term term;
        const char *want;
    } rows[] = {
        {{STR("a"), LABEL_IN, NULL, 0},
         "label key \"a\": found In without values, allowed one value or more"},
        {{STR("a"), LABEL_NOT_IN, NULL, 0},
         "label key \"a\": found NotIn without values, allowed one value or more"},
        {{STR("a"), LABEL_EXISTS, two, 2},
         "label key \"a\": found values with Exists, allowed none"},
        {{STR("a"), LABEL_DOES_NOT_EXIST, two, 1},
         "label key \"a\": found values with DoesNotExist, allowed none"},
        {{STR(""), LABEL_EXISTS, NULL, 0},
         "found label key \"\", allowed letters, digits, \"-\", \"_\" and \".\", "
         "a letter or digit first and last"},
        {{STR("a"), LABEL_IN, bad, 2},
         "label key \"a\": found label value \"-\", allowed letters, digits, \"-\", \"_\" and "
         "\".\", a letter or digit first and last, or nothing"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        scoped(arena_cleanup) arena *a = arena_new(0);
        err error = {""};
        assert_null(selector_compile(a, &rows[i].term, 1, &error));
        check_err(error, rows[i].want);
    }
}

static char *filled(char *room, char c, size_t count, const char *tail)
{
    memset(room, c, count);
    snprintf(room + count, 64, "%s", tail);
    return room;
}

static const struct {
    const char *key;
    bool good;
} key_rows[] = {
    {"a", true},
    {"A9", true},
    {"0", true},
    {"a.b", true},
    {"a-b", true},
    {"a_b", true},
    {"simple", true},
    {"now-with-dashes", true},
    {"1-starts-with-num", true},
    {"1234", true},
    {"simple/simple", true},
    {"now-with-dashes/simple", true},
    {"example.com/Name_1", true},
    {"a.b.c.d/e", true},
    {"1.2.3.4/5678", true},
    {"Uppercase_Is_OK_123", true},
    {"example.com/Uppercase_Is_OK_123", true},
    {"", false},
    {"/", false},
    {"/a", false},
    {"a/", false},
    {"a/b/c", false},
    {"a//b", false},
    {"-a", false},
    {"a-", false},
    {".a", false},
    {"a.", false},
    {"_a", false},
    {"a_", false},
    {"a b", false},
    {"a+b", false},
    {"nospecialchars%^=@", false},
    {"cantendwithadash-", false},
    {"-cantstartwithadash-", false},
    {"Example.com/a", false},
    {"example_com/a", false},
    {".com/a", false},
    {"com./a", false},
    {"a..b/c", false},
    {"-a/b", false},
    {"a-/b", false},
    {"a-.b/c", false},
    {"a.-b/c", false},
    {"\xC3\xA4", false},
};

static void check_key(str key, bool want)
{
    err error = {""};
    bool good = label_key_check(key, &error);
    check_msg(good == want, "%.*s: %s", STR_ARG(key), error.text);
    check_msg(good || str_find(str_of(error.text), STR(", allowed ")) != SIZE_MAX, "%s",
              error.text);
    assert_int_equal(label_key_check(key, NULL), good);
}

static void test_key_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(key_rows); i++)
        check_key(str_of(key_rows[i].key), key_rows[i].good);
    char room[400];
    check_key(str_of(filled(room, 'a', 63, "")), true);
    check_key(str_of(filled(room, 'a', 64, "")), false);
    check_key(str_of(filled(room, 'p', 253, "/x")), true);
    check_key(str_of(filled(room, 'p', 254, "/x")), false);
    check_key((str){"a\0b", 3}, false);
    check_key((str){NULL, 0}, false);
}

/* Every byte in every place of prefix, name and value, against the classes of the documentation. */
static void test_every_byte(void **state)
{
    (void)state;
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int c = 0; c < 256; c++) {
        bool is_lower = c && strchr(lower, c);
        bool is_outer = is_lower || (c && strchr(upper, c));
        bool is_inner = is_outer || (c && strchr("-_.", c));
        const char at[3][3] = {{(char)c, 'b', 'c'}, {'a', (char)c, 'c'}, {'a', 'b', (char)c}};
        for (size_t place = 0; place < 3; place++) {
            bool want = place == 1 ? is_inner : is_outer;
            scoped(exact_done) str name = exact_new((str){at[place], 3});
            assert_int_equal(label_value_check(name, NULL), want);
            if (c == '/') /* a/c, a prefix and a name */
                want = place == 1;
            assert_int_equal(label_key_check(name, NULL), want);

            char key[] = "abc/x";
            memcpy(key, at[place], 3);
            want = is_lower || (place == 1 && (c == '-' || c == '.'));
            assert_int_equal(label_key_check((str){key, 5}, NULL), want);
        }
    }
}

static void test_value_rules(void **state)
{
    (void)state;
    char a63[400];
    char a64[400];
    const struct {
        const char *value;
        bool good;
    } rows[] = {
        {"", true},
        {"a", true},
        {"1.2-3_4", true},
        {"A", true},
        {"true", true},
        {filled(a63, 'v', 63, ""), true},
        {filled(a64, 'v', 64, ""), false},
        {"-", false},
        {".", false},
        {"a-", false},
        {"_a", false},
        {"a b", false},
        {"a/b", false},
        {"a,b", false},
        {" ", false},
        {"\xC3\xA4", false},
        {"\x7F", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        err error = {""};
        bool good = label_value_check(str_of(rows[i].value), &error);
        check_msg(good == rows[i].good, "%s: %s", rows[i].value, error.text);
        check_msg(good || str_find(str_of(error.text), STR(", allowed ")) != SIZE_MAX, "%s",
                  error.text);
    }
    assert_false(label_value_check((str){"a\0b", 3}, NULL));
    assert_true(label_value_check((str){NULL, 0}, NULL));
}

static void test_limits(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    buf text = BUF(LIMIT_SELECTOR_BYTES * 2);
    err error = {""};

    for (size_t i = 0; i < LIMIT_SELECTOR_TERMS; i++)
        buf_addf(&text, "%sk%zu", i ? "," : "", i);
    assert_non_null(selector_parse(a, buf_str(&text), &error));
    buf_addz(&text, ",one-more");
    assert_null(selector_parse(a, buf_str(&text), &error));
    check_err(error, "found a selector with over 1000 terms, allowed at most 1000");

    buf_clear(&text);
    buf_addz(&text, "k in (0");
    for (size_t i = 1; i < LIMIT_SELECTOR_VALUES; i++)
        buf_addf(&text, ",%zu", i);
    assert_null(selector_parse(a, buf_str(&text), &error)); /* not closed */
    buf_addz(&text, ")");
    selector *s = selector_parse(a, buf_str(&text), &error);
    assert_non_null(s);
    label one = {STR("k"), STR("9876")};
    assert_true(selector_match(s, (label_set){&one, 1}));
    one.value = STR("x9876");
    assert_false(selector_match(s, (label_set){&one, 1}));
    text.len--; /* over it inside of a list, and behind one */
    buf_addz(&text, ",one-more)");
    assert_null(selector_parse(a, buf_str(&text), &error));
    check_err(error, "found a selector with over 10000 values, allowed at most 10000");
    text.len -= strlen(",one-more)");
    buf_addz(&text, "),j=1");
    assert_null(selector_parse(a, buf_str(&text), &error));
    check_err(error, "found a selector with over 10000 values, allowed at most 10000");

    buf_clear(&text);
    for (size_t i = 0; i <= LIMIT_SELECTOR_BYTES; i++)
        buf_addc(&text, ' ');
    assert_null(selector_parse(a, buf_str(&text), &error));
    check_err(error, "found a selector of 65537 bytes, allowed at most 65536");
    text.len--;
    assert_non_null(selector_parse(a, buf_str(&text), &error));
    memset(text.ptr, ',', text.len);
    assert_null(selector_parse(a, buf_str(&text), &error));
    memset(text.ptr, '(', text.len);
    assert_null(selector_parse(a, buf_str(&text), &error));
    buf_done(&text);
}

static void test_compile_limits(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    static label_term terms[LIMIT_SELECTOR_TERMS + 1];
    static str values[LIMIT_SELECTOR_VALUES + 1];
    for (size_t i = 0; i < COUNT_OF(terms); i++)
        terms[i] = (label_term){STR("k"), LABEL_EXISTS, NULL, 0};
    for (size_t i = 0; i < COUNT_OF(values); i++)
        values[i] = STR("v");
    err error = {""};
    assert_non_null(selector_compile(a, terms, LIMIT_SELECTOR_TERMS, &error));
    assert_null(selector_compile(a, terms, LIMIT_SELECTOR_TERMS + 1, &error));
    check_err(error, "found a selector with 1001 terms, allowed at most 1000");
    terms[0] = (label_term){STR("k"), LABEL_IN, values, LIMIT_SELECTOR_VALUES};
    assert_non_null(selector_compile(a, terms, 1, &error));
    terms[1] = (label_term){STR("k"), LABEL_IN, values, 1};
    assert_null(selector_compile(a, terms, 2, &error));
    check_err(error, "found a selector with over 10000 values, allowed at most 10000");
    terms[0].value_count = SIZE_MAX;
    assert_null(selector_compile(a, terms, 1, &error));
}

static void test_equal(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        bool want;
    } rows[] = {
        {"", "", true},
        {"a=1", "a==1", true},
        {"a=1", "a in (1)", true},
        {"a=1", "a in (1,1)", true},
        {"a!=1", "a notin (1)", true},
        {"a in (2,1,3)", "a in (3,1,2,1)", true},
        {"a,b", "b,a", true},
        {"a,b,a", "b,a", true},
        {"a=1,a=2", "a=2,a=1", true},
        {"a", "!a", false},
        {"a", "a,b", false},
        {"a=1", "a!=1", false},
        {"a=1", "a=2", false},
        {"a=1", "b=1", false},
        {"a in (1,2)", "a in (1)", false},
        {"a in (1,2)", "a in (1,2,3)", false},
        {"a", "", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        scoped(arena_cleanup) arena *a = arena_new(0);
        selector *x = selector_parse(a, str_of(rows[i].a), NULL);
        selector *y = selector_parse(a, str_of(rows[i].b), NULL);
        check_msg(selector_equal(x, y) == rows[i].want, "%s and %s", rows[i].a, rows[i].b);
        check_msg(selector_equal(y, x) == rows[i].want, "%s and %s", rows[i].b, rows[i].a);
        assert_false(selector_equal(x, NULL));
        assert_false(selector_equal(NULL, x));
    }
    assert_true(selector_equal(NULL, NULL));
}

static void test_null_selector_matches_nothing(void **state)
{
    (void)state;
    assert_false(selector_match(NULL, (label_set){NULL, 0}));
}

static void test_sort(void **state)
{
    (void)state;
    label room[LABELS_MOST];
    label_set set = labels_of("b=2 a=1 c=3 aa=4", room);
    check_text(set.at[0].key, "a");
    check_text(set.at[1].key, "aa");
    check_text(set.at[2].key, "b");
    check_text(set.at[3].key, "c");
    check_text(label_get(set, STR("aa")), "4");
    assert_null(label_get(set, STR("x")).ptr);
    assert_null(label_get(set, STR("")).ptr);

    label twice[] = {{STR("a"), STR("1")}, {STR("b"), STR("2")}, {STR("a"), STR("3")}};
    label_set untouched = {NULL, 77};
    err error = {""};
    assert_false(label_set_sort(twice, 3, &untouched, &error));
    check_err(error, "found label key \"a\" twice, allowed once");
    assert_int_equal(untouched.len, 77);

    assert_true(label_set_sort(NULL, 0, &set, NULL));
    assert_int_equal(set.len, 0);
    assert_null(label_get(set, STR("a")).ptr);

    label bare = {STR("a"), {NULL, 0}};
    assert_true(label_set_sort(&bare, 1, &set, NULL));
    assert_non_null(label_get(set, STR("a")).ptr); /* there, and empty */
}

/* Keys of every length that differ in one byte, wherever it stands, are different keys. */
static void test_one_byte_differs(void **state)
{
    (void)state;
    char key[LIMIT_LABEL_NAME_BYTES];
    char other[LIMIT_LABEL_NAME_BYTES];
    for (size_t len = 1; len <= sizeof key; len++) {
        memset(key, 'k', len);
        label one = {{key, len}, {key, len}};
        label_set set = {&one, 1};
        for (size_t at = 0; at < len; at++) {
            memcpy(other, key, len);
            check_str(label_get(set, (str){other, len}), one.value);
            other[at] = 'x';
            assert_null(label_get(set, (str){other, len}).ptr);
            scoped(arena_cleanup) arena *a = arena_new(0);
            str value = {other, len};
            label_term term = {one.key, LABEL_IN, &value, 1};
            selector *s = selector_compile(a, &term, 1, NULL);
            assert_non_null(s);
            assert_false(selector_match(s, set));
            label same = {one.key, value};
            assert_true(selector_match(s, (label_set){&same, 1}));
        }
    }
}

static void test_copies_its_input(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    char key[] = "key";
    char value[] = "value";
    str values[] = {str_of(value)};
    label_term term = {str_of(key), LABEL_IN, values, 1};
    selector *s = selector_compile(a, &term, 1, NULL);
    memset(key, 'x', 3);
    memset(value, 'x', 5);
    values[0] = STR_EMPTY;
    label one = {STR("key"), STR("value")};
    assert_true(selector_match(s, (label_set){&one, 1}));
}

/* The model: no sorting, no copies. */
static bool naive_match(const label_term *terms, size_t count, const label *labels, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        const str *value = NULL;
        for (size_t j = 0; j < len; j++)
            if (str_eq(labels[j].key, terms[i].key))
                value = &labels[j].value;
        bool in = false;
        for (size_t j = 0; value && j < terms[i].value_count; j++)
            in = in || str_eq(terms[i].values[j], *value);
        bool holds = terms[i].op == LABEL_IN       ? in
                     : terms[i].op == LABEL_NOT_IN ? !in
                     : terms[i].op == LABEL_EXISTS ? value != NULL
                                                   : value == NULL;
        if (!holds)
            return false;
    }
    return true;
}

static void write_text(buf *out, const label_term *terms, size_t count)
{
    buf_clear(out);
    for (size_t i = 0; i < count; i++) {
        const label_term *t = &terms[i];
        buf_addz(out, i ? "," : "");
        if (t->op == LABEL_DOES_NOT_EXIST)
            buf_addc(out, '!');
        buf_add(out, t->key);
        if (t->value_count == 0)
            continue;
        buf_addz(out, t->op == LABEL_IN ? " in (" : " notin (");
        for (size_t j = 0; j < t->value_count; j++)
            buf_addf(out, "%s%.*s", j ? "," : "", STR_ARG(t->values[j]));
        buf_addc(out, ')');
    }
}

static void test_random_against_model(void **state)
{
    (void)state;
    static char keys[48][8];
    static char texts[48][8];
    rng r = rng_seeded();
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        snprintf(keys[i], sizeof keys[i], "k%zu", i);
        if (i > 0) /* the first one stays empty */
            snprintf(texts[i], sizeof texts[i], "v%zu", i);
    }
    buf text = BUF(100000);
    for (int round = 0; round < 20000; round++) {
        scoped(arena_cleanup) arena *a = arena_new(0);
        label labels[LABELS_MOST];
        size_t len = rng_below(&r, LABELS_MOST);
        size_t first = rng_below(&r, 8);
        for (size_t i = 0; i < len; i++)
            labels[i] = (label){str_of(keys[i + first]), str_of(texts[rng_below(&r, 40)])};
        for (size_t i = len; i > 1; i--) {
            size_t other = rng_below(&r, i);
            label swapped = labels[i - 1];
            labels[i - 1] = labels[other];
            labels[other] = swapped;
        }
        str values[TERMS_MOST][40];
        label_term terms[TERMS_MOST];
        size_t count = rng_below(&r, TERMS_MOST + 1);
        for (size_t i = 0; i < count; i++) {
            terms[i].key = str_of(keys[rng_below(&r, 48)]);
            terms[i].op = (label_operator)rng_below(&r, 4);
            terms[i].values = values[i];
            terms[i].value_count = terms[i].op <= LABEL_NOT_IN ? 1 + rng_below(&r, 39) : 0;
            for (size_t j = 0; j < terms[i].value_count; j++)
                values[i][j] = str_of(texts[rng_below(&r, 48)]);
        }
        bool want = naive_match(terms, count, labels, len);
        label_set set;
        assert_true(label_set_sort(labels, len, &set, NULL));
        selector *s = selector_compile(a, terms, count, NULL);
        write_text(&text, terms, count);
        check_msg(selector_match(s, set) == want, "round %d: %.*s", round, STR_ARG(buf_str(&text)));
        err error = {""};
        selector *parsed = selector_parse(a, buf_str(&text), &error);
        check_msg(selector_equal(s, parsed), "round %d: %.*s: %s", round, STR_ARG(buf_str(&text)),
                  error.text);
    }
    buf_done(&text);
}

static void test_random_text_is_survived(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a",  "b",  "in", "notin", "=",    "==", "!=",    "!",
                                         "(",  ")",  ",",  " ",     "\t",   ">",  "x.y/z", "-",
                                         "\n", "\0", "..", "/",     "\xFF", "==", "1",     "(,)"};
    rng r = rng_seeded();
    buf text = BUF(10000);
    size_t good = 0;
    for (int round = 0; round < 50000; round++) {
        scoped(arena_cleanup) arena *a = arena_new(0);
        buf_clear(&text);
        for (size_t i = rng_below(&r, 12); i > 0; i--)
            buf_addz(&text, pieces[rng_below(&r, COUNT_OF(pieces))]);
        err error = {""};
        selector *s = selector_parse(a, buf_str(&text), &error);
        check_msg(s || error.text[0], "%.*s", STR_ARG(buf_str(&text)));
        good += s != NULL;
    }
    check_msg(good > 1000, "%zu", good);
    buf_done(&text);
}

static void test_match_allocates_nothing(void **state)
{
    (void)state;
    scoped(arena_cleanup) arena *a = arena_new(0);
    label room[LABELS_MOST];
    label_set set = labels_of("a=1 b=2 c=3 d=4", room);
    selector *s = selector_parse(a, STR("a=1,c in (1,2,3),!x,b!=7"), NULL);
    uint64_t calls = mem_calls();
    size_t used = arena_used(a);
    for (int i = 0; i < 1000; i++)
        assert_true(selector_match(s, set));
    assert_true(selector_equal(s, s));
    assert_int_equal(mem_calls(), calls);
    assert_int_equal(arena_used(a), used);
}

static bool parse_once(void *context)
{
    (void)context;
    scoped(arena_cleanup) arena *a = arena_new(0);
    err error = {""};
    if (!a)
        return false;
    /* Long enough for a second chunk, so that a late allocation fails, too. */
    buf text = BUF(20000);
    buf_addz(&text, "k in (a");
    for (int i = 0; i < 400; i++)
        buf_addf(&text, ",v%d", i);
    buf_addz(&text, "),!b,c=1");
    selector *s = text.failed ? NULL : selector_parse(a, buf_str(&text), &error);
    if (!s && !text.failed)
        check_err(error, "out of memory");
    if (!s)
        assert_int_equal(arena_used(a), 0);
    buf_done(&text);
    return s;
}

static void test_no_memory(void **state)
{
    (void)state;
    check_each_allocation_fails(parse_once, NULL);
    /* An arena that is full is the same to it. */
    for (size_t max = 1; max < 300; max += 16) {
        scoped(arena_cleanup) arena *a = arena_new(max);
        err error = {""};
        if (!selector_parse(a, STR("a=1,b in (1,2),!c"), &error)) {
            check_err(error, "out of memory");
            assert_int_equal(arena_used(a), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_text_errors),
        cmocka_unit_test(test_compile_errors),
        cmocka_unit_test(test_key_rules),
        cmocka_unit_test(test_value_rules),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_compile_limits),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_null_selector_matches_nothing),
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_one_byte_differs),
        cmocka_unit_test(test_copies_its_input),
        cmocka_unit_test(test_random_against_model),
        cmocka_unit_test(test_random_text_is_survived),
        cmocka_unit_test(test_match_allocates_nothing),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
