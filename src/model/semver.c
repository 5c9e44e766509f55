/* SPDX-License-Identifier: Apache-2.0 */
#include "model/semver.h"

typedef struct parts {
    str numbers[3]; /* short forms: "0" */
    str prerelease; /* without the "-" */
} parts;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool all_digits(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_digit(text.ptr[i]))
            return false;
    return text.len > 0;
}

/* Digits without leading zeros from the front of *text. */
static bool cut_number(str *text, str *ret)
{
    size_t len = 0;
    while (len < text->len && is_digit(text->ptr[len]))
        len++;
    if (len == 0 || (len > 1 && text->ptr[0] == '0'))
        return false;
    *ret = str_part(*text, 0, len);
    *text = str_part(*text, len, SIZE_MAX);
    return true;
}

/* Words between dots; in a prerelease numbers have no leading zeros. */
static bool valid_words(str text, bool prerelease)
{
    while (text.ptr) {
        str word = str_cut(&text, '.');
        if (word.len == 0)
            return false;
        for (size_t i = 0; i < word.len; i++)
            if (!is_word(word.ptr[i]))
                return false;
        if (prerelease && word.len > 1 && word.ptr[0] == '0' && all_digits(word))
            return false;
    }
    return true;
}

static bool parse(str text, parts *ret)
{
    *ret = (parts){.numbers = {STR("0"), STR("0"), STR("0")}, .prerelease = STR_EMPTY};
    if (text.len > 0 && text.ptr[0] == 'v')
        text = str_part(text, 1, SIZE_MAX);
    for (size_t i = 0; i < 3; i++) {
        if (i > 0) {
            if (text.len == 0)
                return true;
            if (text.ptr[0] != '.')
                return false;
            text = str_part(text, 1, SIZE_MAX);
        }
        if (!cut_number(&text, &ret->numbers[i]))
            return false;
    }
    if (text.len > 0 && text.ptr[0] == '-') {
        size_t end = str_find(text, STR("+"));
        str words = str_part(text, 1, end == SIZE_MAX ? SIZE_MAX : end - 1);
        if (!valid_words(words, true))
            return false;
        ret->prerelease = words;
        text = str_part(text, 1 + words.len, SIZE_MAX);
    }
    if (text.len > 0 && text.ptr[0] == '+')
        return valid_words(str_part(text, 1, SIZE_MAX), false);
    return text.len == 0;
}

bool semver_valid(str version)
{
    parts p;
    return parse(version, &p);
}

/* Numbers of any length without leading zeros: the longer is the larger. */
static int number_cmp(str a, str b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return str_cmp(a, b);
}

static int word_cmp(str a, str b)
{
    bool number_a = all_digits(a);
    bool number_b = all_digits(b);
    if (number_a && number_b)
        return number_cmp(a, b);
    if (number_a != number_b)
        return number_a ? -1 : 1;
    return str_cmp(a, b);
}

/* A version with a prerelease is less than the one without. */
static int prerelease_cmp(str a, str b)
{
    if (a.len == 0 || b.len == 0)
        return (a.len == 0) - (b.len == 0);
    while (a.ptr && b.ptr) {
        int order = word_cmp(str_cut(&a, '.'), str_cut(&b, '.'));
        if (order != 0)
            return order;
    }
    return (a.ptr != NULL) - (b.ptr != NULL);
}

int semver_cmp(str a, str b)
{
    parts left;
    parts right;
    bool valid_a = parse(a, &left);
    bool valid_b = parse(b, &right);
    if (!valid_a || !valid_b)
        return valid_a - valid_b;
    for (size_t i = 0; i < 3; i++) {
        int order = number_cmp(left.numbers[i], right.numbers[i]);
        if (order != 0)
            return order < 0 ? -1 : 1;
    }
    int order = prerelease_cmp(left.prerelease, right.prerelease);
    return (order > 0) - (order < 0);
}
