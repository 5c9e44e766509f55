/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include <limits.h>
#include <wchar.h>

static const str nothing = {NULL, 0};

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

static void test_compare(void **state)
{
    (void)state;
    /* In order; each is less than all behind it. */
    static const str rows[] = {
        STR(""),  {"\0", 1},   STR("A"),    STR("a"),        {"a\0", 2},  STR("aa"),      STR("ab"),
        STR("b"), STR("\x7F"), STR("\x80"), STR("\xC3\xA4"), STR("\xFF"), STR("\xFF\xFF")};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t j = 0; j < COUNT_OF(rows); j++) {
            check_msg(sign(str_cmp(rows[i], rows[j])) == sign((int)i - (int)j), "%zu %zu", i, j);
            assert_int_equal(str_eq(rows[i], rows[j]), i == j);
        }
    assert_int_equal(str_cmp(nothing, STR("")), 0);
    assert_true(str_eq(nothing, STR("")));
    assert_true(str_cmp(nothing, STR("a")) < 0);
    assert_true(str_cmp(STR("a"), nothing) > 0);
}

static void test_starts_ends_find(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *part;
        bool starts;
        bool ends;
        size_t at;
    } rows[] = {
        {"", "", true, true, 0},
        {"abc", "", true, true, 0},
        {"", "a", false, false, SIZE_MAX},
        {"abc", "abc", true, true, 0},
        {"abc", "abcd", false, false, SIZE_MAX},
        {"abc", "ab", true, false, 0},
        {"abc", "bc", false, true, 1},
        {"abab", "ab", true, true, 0},
        {"xabab", "ab", false, true, 1},
        {"aab", "ab", false, true, 1},
        {"abc", "x", false, false, SIZE_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        str text = str_of(rows[i].text);
        str part = str_of(rows[i].part);
        check_msg(str_starts(text, part) == rows[i].starts, "row %zu", i);
        check_msg(str_ends(text, part) == rows[i].ends, "row %zu", i);
        check_msg(str_find(text, part) == rows[i].at, "row %zu", i);
    }
    assert_true(str_starts(nothing, nothing));
    assert_true(str_ends(nothing, nothing));
    assert_int_equal(str_find(nothing, nothing), 0);
    assert_true(str_find(nothing, STR("a")) == SIZE_MAX);
    assert_int_equal(str_find((str){"a\0b", 3}, (str){"\0b", 2}), 1);
}

static void test_part(void **state)
{
    (void)state;
    static const struct {
        size_t from;
        size_t len;
        const char *want;
    } rows[] = {
        {0, 0, ""},           {0, 3, "abc"},      {0, 9, "abc"},
        {1, 1, "b"},          {2, SIZE_MAX, "c"}, {3, 1, ""},
        {4, 1, ""},           {SIZE_MAX, 1, ""},  {SIZE_MAX, SIZE_MAX, ""},
        {0, SIZE_MAX, "abc"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_text(str_part(STR("abc"), rows[i].from, rows[i].len), rows[i].want);
    assert_int_equal(str_part(nothing, 0, 5).len, 0);
    assert_int_equal(str_part(nothing, 5, 5).len, 0);
}

static void test_trim(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {" ", ""},
        {" \t\r\n ", ""},
        {"a", "a"},
        {" a", "a"},
        {"a ", "a"},
        {"\n\ta b\r ", "a b"},
        {"\v", "\v"},
        {"\xC2\xA0", "\xC2\xA0"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_text(str_trim(str_of(rows[i][0])), rows[i][1]);
    assert_int_equal(str_trim(nothing).len, 0);
}

static void test_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *want; /* the parts with | between them */
    } rows[] = {
        {"", ""}, {"a", "a"}, {"a,b", "a|b"}, {",", "|"}, {"a,", "a|"}, {",,a", "||a"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf joined = BUF(100);
        str rest = str_of(rows[i].text);
        bool first = true;
        while (rest.ptr) {
            str part = str_cut(&rest, ',');
            if (!first)
                buf_addc(&joined, '|');
            buf_add(&joined, part);
            first = false;
        }
        check_text(buf_str(&joined), rows[i].want);
        buf_done(&joined);
    }
    str rest = nothing;
    assert_int_equal(str_cut(&rest, ',').len, 0);
    assert_null(rest.ptr);
}

static void test_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"", true},
        {"abc", true},
        {"\x7F", true},
        {"\xC2\x80", true},
        {"\xDF\xBF", true},
        {"\xE0\xA0\x80", true},
        {"\xED\x9F\xBF", true},
        {"\xEE\x80\x80", true},
        {"\xEF\xBF\xBF", true},
        {"\xF0\x90\x80\x80", true},
        {"\xF4\x8F\xBF\xBF", true},
        {"a\xC3\xA4z", true},
        {"\x80", false},             /* a continuation alone */
        {"\xC0\x80", false},         /* two bytes for U+0000 */
        {"\xC1\xBF", false},         /* too long a form */
        {"\xC2", false},             /* cut */
        {"\xC2\x41", false},         /* no continuation */
        {"\xC2\xC2", false},         /* no continuation */
        {"\xE0\x9F\xBF", false},     /* too long a form */
        {"\xE2\x82", false},         /* cut */
        {"\xE2\x82\x41", false},     /* no continuation */
        {"\xED\xA0\x80", false},     /* a surrogate */
        {"\xED\xBF\xBF", false},     /* a surrogate */
        {"\xF0\x8F\xBF\xBF", false}, /* too long a form */
        {"\xF0\x9F\x90", false},     /* cut */
        {"\xF4\x90\x80\x80", false}, /* above U+10FFFF */
        {"\xF5\x80\x80\x80", false},
        {"\xFE", false},
        {"\xFF", false},
        {"ok\xFF", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        scoped(exact_done) str text = exact_new(str_of(rows[i].text));
        check_msg(str_utf8(text) == rows[i].good, "row %zu", i);
        buf json = BUF(100);
        buf_add_json(&json, text);
        assert_int_equal(str_find(buf_str(&json), STR("\xEF\xBF\xBD")) == SIZE_MAX, rows[i].good);
        buf_done(&json);
        assert_true(strlen(str_shown(text).text) == text.len);
    }
    assert_true(str_utf8(nothing));
    assert_int_equal(str_utf8_sequence(nothing), 0);
    assert_int_equal(str_utf8_printable(nothing), 0);
}

/* Every code point survives put and next; every surrogate is refused. */
static void test_utf8_every_code_point(void **state)
{
    (void)state;
    for (uint32_t point = 0; point <= 0x10FFFF; point++) {
        char bytes[4];
        size_t length = str_utf8_put(point, bytes);
        str text = {bytes, length};
        bool surrogate = point >= 0xD800 && point <= 0xDFFF;
        if (str_utf8(text) == surrogate)
            fail_msg("U+%04X", point);
        if (surrogate)
            continue;
        size_t at = 0;
        if (str_utf8_next(text, &at) != point || at != length || str_utf8_sequence(text) != length)
            fail_msg("U+%04X", point);
        bool control = point < 0x20 || (point >= 0x7F && point < 0xA0);
        if ((str_utf8_printable(text) == 0) != control)
            fail_msg("U+%04X", point);
    }
}

static void test_utf8_walk(void **state)
{
    (void)state;
    static const uint32_t points[] = {'a', 0xE4, 0x20AC, 0x1F411, 'z', 0x7FF, 0x800, 0x10FFFF, 0};
    char bytes[4 * COUNT_OF(points)];
    str text = {bytes, 0};
    for (size_t i = 0; i < COUNT_OF(points); i++)
        text.len += str_utf8_put(points[i], bytes + text.len);
    size_t at = 0;
    for (size_t i = 0; i < COUNT_OF(points); i++)
        assert_int_equal(str_utf8_next(text, &at), points[i]);
    assert_int_equal(at, text.len);
}

/* The definition, byte by byte, from the grammar of RFC 3629. */
static bool naive_utf8(const unsigned char *p, size_t len)
{
    static const unsigned char grammar[][9] = {
        {1, 0x00, 0x7F},
        {2, 0xC2, 0xDF, 0x80, 0xBF},
        {3, 0xE0, 0xE0, 0xA0, 0xBF, 0x80, 0xBF},
        {3, 0xE1, 0xEC, 0x80, 0xBF, 0x80, 0xBF},
        {3, 0xED, 0xED, 0x80, 0x9F, 0x80, 0xBF},
        {3, 0xEE, 0xEF, 0x80, 0xBF, 0x80, 0xBF},
        {4, 0xF0, 0xF0, 0x90, 0xBF, 0x80, 0xBF, 0x80, 0xBF},
        {4, 0xF1, 0xF3, 0x80, 0xBF, 0x80, 0xBF, 0x80, 0xBF},
        {4, 0xF4, 0xF4, 0x80, 0x8F, 0x80, 0xBF, 0x80, 0xBF},
    };
    while (len > 0) {
        size_t taken = 0;
        for (size_t g = 0; g < COUNT_OF(grammar) && taken == 0; g++) {
            size_t length = grammar[g][0];
            bool fits = length <= len;
            for (size_t i = 0; fits && i < length; i++)
                fits = p[i] >= grammar[g][1 + 2 * i] && p[i] <= grammar[g][2 + 2 * i];
            taken = fits ? length : 0;
        }
        if (taken == 0)
            return false;
        p += taken;
        len -= taken;
    }
    return true;
}

static void test_utf8_random_against_model(void **state)
{
    (void)state;
    static const unsigned char likely[] = {0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0,
                                           0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4};
    rng r = rng_seeded();
    size_t good = 0;
    for (int round = 0; round < 300000; round++) {
        unsigned char bytes[6];
        size_t len = rng_below(&r, sizeof bytes + 1);
        for (size_t i = 0; i < len; i++)
            bytes[i] = likely[rng_below(&r, sizeof likely)];
        bool want = naive_utf8(bytes, len);
        good += want;
        if (str_utf8((str){(const char *)bytes, len}) != want)
            fail_msg("round %d", round);
    }
    assert_true(good > 1000);
}

static void test_shown(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x90\x91", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x90\x91"},
        {"a\nb\x1B[31m\x7F", "a?b?[31m?"},
        {"\xC2\x9B", "??"},
        {"\xC2\xA0", "\xC2\xA0"},
        {"\xFFx\xE2\x82", "?x??"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(str_shown(str_of(rows[i][0])).text, rows[i][1]);
    assert_string_equal(str_shown(nothing).text, "");
    assert_string_equal(str_shown((str){"a\0b", 3}).text, "a?b");
    for (size_t len = STR_SHOWN_BYTES - 4; len < STR_SHOWN_BYTES + 10; len++) {
        char text[STR_SHOWN_BYTES + 20];
        memset(text, 'x', len);
        shown s = str_shown((str){text, len});
        assert_int_equal(strlen(s.text), len <= STR_SHOWN_BYTES ? len : STR_SHOWN_BYTES + 3);
        assert_int_equal(str_ends(str_of(s.text), STR("...")), len > STR_SHOWN_BYTES);
        memcpy(text + len - 4, "\xF0\x9F\x90\x91", 4);
        s = str_shown((str){text, len});
        assert_true(str_utf8(str_of(s.text)));
        assert_int_equal(str_ends(str_of(s.text), STR("...")), len > STR_SHOWN_BYTES);
    }
}

static void test_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *want;
    } rows[] = {
        {"", 16, ""},
        {"fifteen letters", 16, "fifteen letters"},
        {"sixteen letters!", 16, "sixte ... ters!"},
        {"0123456789abcdefghijklmnop", 20, "0123456 ... jklmnop"},
        /* Whole characters. */
        {"aaaa\xc3\xa4yyyyyyyyyyyyyyyy", 16, "aaaa ... yyyyy"},
        {"xxxxxxxxxxxxxxxxxxx\xc3\xa4zzzz", 16, "xxxxx ... zzzz"},
        {"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 16,
         "\xe2\x82\xac ... \xe2\x82\xac"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char out[32];
        str_fit(out, rows[i].size, str_of(rows[i].text));
        check_text(str_of(out), rows[i].want);
    }
    char out[16];
    str_fit(out, sizeof out, (str){NULL, 0});
    assert_string_equal(out, "");
}

static void test_buf(void **state)
{
    (void)state;
    buf b = BUF(1000);
    check_text(buf_str(&b), "");
    buf_addz(&b, "a");
    buf_addc(&b, 'b');
    buf_add(&b, STR("cd"));
    buf_add(&b, nothing);
    buf_addf(&b, "-%d-%s", 42, "x");
    buf_addf(&b, "%s", "");
    assert_false(b.failed);
    buf_addc(&b, '\0');
    check_str(buf_str(&b), ((str){"abcd-42-x\0", 10}));
    assert_int_equal(b.ptr[b.len], 0);
    assert_false(b.failed);
    buf_clear(&b);
    check_text(buf_str(&b), "");
    assert_string_equal(b.ptr, "");
    uint64_t calls = mem_calls();
    buf_addf(&b, "%s", "again");
    assert_int_equal(mem_calls(), calls); /* the memory was kept */
    check_text(buf_str(&b), "again");
    buf_clear(&b);
    buf_add_int(&b, 0);
    buf_add_int(&b, INT64_MIN);
    buf_add_int(&b, 42);
    buf_add_uint(&b, UINT64_MAX);
    check_text(buf_str(&b), "0-92233720368547758084218446744073709551615");
    buf_done(&b);
    assert_null(b.ptr);
    buf_done(&b);
}

/* Texts of every length at every fill: what just fits, what just does not. */
static void test_buf_formats_at_the_edge(void **state)
{
    (void)state;
    static const char text[] =
        "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";
    for (int filled = 0; filled < 70; filled++)
        for (int more = 0; more < 70; more++) {
            buf b = BUF(120);
            buf_addf(&b, "%.*s", filled, text);
            buf_addf(&b, "%.*s", more, text);
            bool fits = filled + more <= 120;
            assert_int_equal(b.failed, !fits);
            assert_int_equal(b.len, fits ? filled + more : filled);
            assert_memory_equal(b.ptr, text, (size_t)filled);
            if (fits)
                assert_memory_equal(b.ptr + filled, text, (size_t)more);
            assert_int_equal(b.ptr[b.len], 0);
            buf_done(&b);
        }
}

static void test_buf_growth_is_geometric(void **state)
{
    (void)state;
    buf b = BUF(1000000);
    uint64_t calls = mem_calls();
    for (int i = 0; i < 1000000; i++)
        buf_addc(&b, 'x');
    assert_false(b.failed);
    assert_true(mem_calls() - calls < 20);
    buf_done(&b);
}

/* One format, written by the buffer and by libc. */
#define CHECK_FORMAT(...)                                                                          \
    do {                                                                                           \
        char wanted[256];                                                                          \
        buf found = BUF(1024);                                                                     \
        buf_addz(&found, "before ");                                                               \
        snprintf(wanted, sizeof wanted, __VA_ARGS__);                                              \
        buf_addf(&found, __VA_ARGS__);                                                             \
        check_text(str_part(buf_str(&found), sizeof "before " - 1, SIZE_MAX), wanted);             \
        buf_done(&found);                                                                          \
    } while (0)

static void test_buf_formats(void **state)
{
    (void)state;
    CHECK_FORMAT("plain");
    CHECK_FORMAT("%s and %s, %%", "one", "");
    CHECK_FORMAT("%.*s|%.*s|%.*s", 2, "abc", 9, "abc", 0, "abc");
    CHECK_FORMAT("%d %d %d", INT_MAX, INT_MIN, 0);
    CHECK_FORMAT("%u %u", UINT_MAX, 0U);
    CHECK_FORMAT("%ld %lu %ld", LONG_MAX, ULONG_MAX, LONG_MIN);
    CHECK_FORMAT("%lld %llu %lld", LLONG_MAX, ULLONG_MAX, LLONG_MIN);
    CHECK_FORMAT("%zu %zd %zu", SIZE_MAX, (ssize_t)-1, (size_t)0);
    CHECK_FORMAT("%c%c", 'a', '%');
    CHECK_FORMAT("%s is %04x, %-5d| %5s %.1f %s", "it", 255, -7, "x", 2.5, "end");
    CHECK_FORMAT("%016llx %hd %.3s %*s", 255ULL, (short)-1, "abcdef", 4, "y");
    CHECK_FORMAT("%s%lc", "letter ", L'z');
}

static void test_buf_maximum(void **state)
{
    (void)state;
    buf b = BUF(5);
    buf_addz(&b, "abc");
    buf_addz(&b, "de");
    assert_false(b.failed);
    buf_addc(&b, 'f');
    assert_true(b.failed);
    buf_clear(&b);
    assert_false(b.failed);
    buf_addf(&b, "%d", 123456);
    assert_true(b.failed);
    buf_addz(&b, "x"); /* would fit, but comes too late */
    check_text(buf_str(&b), "");
    buf_clear(&b);
    buf_addf(&b, "ab%s%s", "c", "def"); /* all of it, or nothing */
    assert_true(b.failed);
    check_text(buf_str(&b), "");
    buf_clear(&b);
    buf_add(&b, (str){"abcde", SIZE_MAX});
    assert_true(b.failed);
    err error;
    assert_false(buf_fault(&b, &error));
    check_err(error, "found more than 5 bytes, which is the most");
    buf_clear(&b);
    buf_addf(&b, CHECK_NOT_PRINTABLE); /* vsnprintf refuses it */
    assert_true(b.failed);
    assert_false(b.full);
    buf_done(&b);

    buf large = BUF(10000);
    char text[5000];
    memset(text, 'x', sizeof text);
    buf_addc(&large, 'a');
    buf_add(&large, (str){text, sizeof text}); /* more than twice of what is there */
    assert_int_equal(large.len, 5001);
    buf_done(&large);

    buf none = BUF(0);
    buf_addz(&none, "");
    assert_false(none.failed);
    buf_addz(&none, "x");
    assert_true(none.failed);
    buf_done(&none);
}

static void test_json(void **state)
{
    (void)state;
    static const struct {
        str text;
        const char *want;
    } rows[] = {
        {STR(""), "\"\""},
        {STR("abc"), "\"abc\""},
        {STR("a\"b\\c"), "\"a\\\"b\\\\c\""},
        {STR("\n\r\t"), "\"\\n\\r\\t\""},
        {{"\x00\x01\x1F", 3}, "\"\\u0000\\u0001\\u001f\""},
        {STR("\b\f"), "\"\\u0008\\u000c\""},
        {STR("\x7F"), "\"\x7F\""},
        {STR("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x90\x91"), "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x90\x91\""},
        {STR("\xFF"), "\"\xEF\xBF\xBD\""},
        {STR("a\xC3"), "\"a\xEF\xBF\xBD\""},
        {STR("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {STR("x\xE2\x82y"), "\"x\xEF\xBF\xBD\xEF\xBF\xBDy\""},
        {STR("/"), "\"/\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf b = BUF(1000);
        buf_add_json(&b, rows[i].text);
        check_text(buf_str(&b), rows[i].want);
        buf_done(&b);
    }
    buf b = BUF(1000);
    buf_add_json(&b, nothing);
    check_text(buf_str(&b), "\"\"");
    buf_done(&b);
}

/* Every byte at every place of a text whose other bytes are plain: as it is written alone. */
static void test_json_each_byte(void **state)
{
    (void)state;
    buf whole = BUF(1000), alone = BUF(100), want = BUF(1000);
    for (size_t c = 0; c < 256; c++) {
        for (size_t place = 0; place < 24; place++) {
            char text[24];
            memset(text, 'x', sizeof text);
            text[place] = (char)c;
            buf_clear(&whole);
            buf_clear(&alone);
            buf_clear(&want);
            buf_add_json(&whole, (str){text, sizeof text});
            buf_add_json(&alone, (str){text + place, 1});
            buf_addf(&want, "\"%.*s%.*s%.*s\"", (int)place, "xxxxxxxxxxxxxxxxxxxxxxxx",
                     (int)alone.len - 2, alone.ptr + 1, (int)(23 - place),
                     "xxxxxxxxxxxxxxxxxxxxxxxx");
            check_text(buf_str(&whole), want.ptr);
        }
    }
    buf_done(&whole);
    buf_done(&alone);
    buf_done(&want);
}

/* Whatever goes in, JSON comes out: valid UTF-8, no control characters, quotes only escaped. */
static void test_json_random(void **state)
{
    (void)state;
    rng r = rng_seeded();
    buf b = BUF(10000);
    for (int round = 0; round < 20000; round++) {
        char bytes[64];
        size_t len = rng_below(&r, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)rng_next(&r);
        buf_clear(&b);
        buf_add_json(&b, (str){bytes, len});
        assert_true(str_utf8(buf_str(&b)));
        assert_true(b.len >= 2 && b.ptr[0] == '"' && b.ptr[b.len - 1] == '"');
        for (size_t i = 1; i + 1 < b.len; i++) {
            assert_true((unsigned char)b.ptr[i] >= 0x20 && b.ptr[i] != '"');
            if (b.ptr[i] == '\\')
                i++;
        }
    }
    buf_done(&b);
}

static bool build_text(void *context)
{
    (void)context;
    buf b = BUF(100000);
    for (int i = 0; i < 200; i++) {
        buf_addf(&b, "%d", i);
        buf_add_json(&b, STR("\n\"text\""));
        buf_addc(&b, ',');
    }
    bool good = !b.failed;
    assert_true(good == (b.len == 3090));
    assert_false(b.full);
    buf_done(&b);
    return good;
}

static void test_no_memory(void **state)
{
    (void)state;
    check_each_allocation_fails(build_text, NULL);
}

static void test_distance(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        size_t distance;
    } rows[] = {{"", "", 0},
                {"", "abc", 3},
                {"validate", "validate", 0},
                {"validate", "VALIDATE", 0},
                {"validat", "validate", 1},
                {"vlaidate", "validate", 1},
                {"vaildtae", "validate", 2},
                {"valixate", "validate", 1},
                {"kitten", "sitting", 3},
                {"ca", "abc", 3}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        str a = str_of(rows[i].a), b = str_of(rows[i].b);
        check_msg(str_distance(a, b) == rows[i].distance, "row %zu", i);
        check_msg(str_distance(b, a) == rows[i].distance, "row %zu", i);
    }
    char text[STR_DISTANCE_BYTES + 1];
    memset(text, 'x', sizeof text);
    assert_int_equal(str_distance((str){text, sizeof text - 1}, STR("")), STR_DISTANCE_BYTES);
    assert_true(str_distance((str){text, sizeof text}, STR("")) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_starts_ends_find),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_utf8_every_code_point),
        cmocka_unit_test(test_utf8_walk),
        cmocka_unit_test(test_utf8_random_against_model),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_buf),
        cmocka_unit_test(test_buf_formats_at_the_edge),
        cmocka_unit_test(test_buf_growth_is_geometric),
        cmocka_unit_test(test_buf_formats),
        cmocka_unit_test(test_buf_maximum),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_random),
        cmocka_unit_test(test_json_each_byte),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
