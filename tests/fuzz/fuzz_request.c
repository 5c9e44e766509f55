/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include "model/document.h"
#include "model/problems.h"
#include "server/routes.h"

/* One body as an operation's shape says; what it read lives as long as the documents. */
static bool read_body(arena *a, const shape *s, document_set *set, str body, void *out)
{
    problems *found = problems_new();
    assert(found);
    bool good = documents_read_as(set, STR("body"), body, FORMAT_JSON, found) &&
                documents_count(set) == 1;
    if (good) {
        reader r = {.arena = a, .found = found, .closed = true};
        place at = place_root(documents_at(set, 0));
        good = shape_read(&r, s, &at, out);
    }
    /* Nothing is refused without a word. */
    assert(good || problems_errors(found) > 0 || documents_count(set) != 1);
    problems_free(found);
    return good;
}

/* What was read, written again, reads the same. */
static void fuzz_body(arena *a, const shape *s, str body)
{
    document_set *one = document_set_new(), *two = document_set_new();
    void *first = arena_alloc(a, s->size), *second = arena_alloc(a, s->size);
    buf text = BUF(LIMIT_TEXT_BYTES);
    assert(one && two && first && second);
    if (read_body(a, s, one, body, first)) {
        shape_write(s, first, &text, 0);
        if (!text.failed) {
            assert(read_body(a, s, two, buf_str(&text), second));
            assert(shape_equal(s, first, second));
        }
    }
    buf_done(&text);
    document_set_free(one);
    document_set_free(two);
}

/* The input is "METHOD TARGET" and behind the first newline a body. */
static void fuzz_one(str input)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    assert(a);
    str body = input;
    str target = str_cut(&body, '\n');
    str method = str_cut(&target, ' ');
    str arguments[ROUTE_ARGUMENTS_MAX];
    char allow[64];
    uri u;
    err error = {""};
    if (!target.ptr || !uri_parse(a, target, &u, &error))
        return;
    const operation *o = route_find(&u, method, arguments, allow);
    assert(strnlen(allow, sizeof allow) < sizeof allow);
    if (o && o->input.shape && body.ptr)
        fuzz_body(a, o->input.shape, body);
}
