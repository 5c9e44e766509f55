/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include "select/labels.h"

#define LABELS_MOST 64

/* The input is a selector, and behind the first newline labels: "a=1 b=2". */
static label_set read_labels(str text, label *room)
{
    size_t n = 0;
    while (text.len > 0 && n < LABELS_MOST) {
        str pair = str_cut(&text, ' ');
        str key = str_cut(&pair, '=');
        room[n++] = (label){key, pair};
    }
    label_set set = {NULL, 0};
    err error = {""};
    if (!label_set_sort(room, n, &set, &error))
        fuzz_check_error(&error);
    return set;
}

static void fuzz_one(str input)
{
    str labels = input;
    str text = str_cut(&labels, '\n');
    scoped(arena_cleanup) arena *a = arena_new(0);
    assert(a);
    label room[LABELS_MOST];
    label_set set = read_labels(labels, room);
    for (size_t i = 0; i < set.len; i++)
        assert(str_eq(label_get(set, set.at[i].key), set.at[i].value));

    err error = {""};
    selector *s = selector_parse(a, text, &error);
    if (!s) {
        fuzz_check_error(&error);
        assert(arena_used(a) == 0);
        return;
    }
    uint64_t calls = mem_calls();
    bool matched = selector_match(s, set);
    assert(mem_calls() == calls);

    /* A selector that is repeated is the same selector. */
    buf twice = BUF(2 * input.len + 1);
    buf_add(&twice, text);
    if (str_trim(text).len > 0) {
        buf_addc(&twice, ',');
        buf_add(&twice, text);
    }
    selector *again = selector_parse(a, buf_str(&twice), &error);
    buf_done(&twice);
    if (again) { /* twice as long may be too long */
        assert(selector_equal(s, again));
        assert(selector_match(again, set) == matched);
    } else
        assert(2 * text.len > 2000);
}
