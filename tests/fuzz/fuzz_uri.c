/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include "server/uri.h"

/* What was read, written again, reads the same: nothing that was decoded became structure. */
static void fuzz_one(str input)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    assert(a);
    uri u, again;
    err error = {""};
    if (!uri_parse(a, input, &u, &error)) {
        fuzz_check_error(&error);
        return;
    }
    buf out = BUF(URI_BYTES_MAX * 8);
    if (u.segment_count == 0)
        buf_addc(&out, '/');
    for (size_t i = 0; i < u.segment_count; i++) {
        assert(u.segments[i].len > 0 && str_utf8(u.segments[i]));
        buf_addc(&out, '/');
        uri_encode(&out, u.segments[i]);
    }
    for (size_t i = 0; i < u.parameter_count; i++) {
        buf_addc(&out, i == 0 ? '?' : '&');
        uri_encode(&out, u.parameters[i].name);
        buf_addc(&out, '=');
        uri_encode(&out, u.parameters[i].value);
    }
    if (out.len <= URI_BYTES_MAX) {
        assert(uri_parse(a, buf_str(&out), &again, &error));
        assert(again.segment_count == u.segment_count);
        assert(again.parameter_count == u.parameter_count);
        for (size_t i = 0; i < u.segment_count; i++)
            assert(str_eq(again.segments[i], u.segments[i]));
        for (size_t i = 0; i < u.parameter_count; i++)
            assert(str_eq(again.parameters[i].value, u.parameters[i].value));
    }
    buf_done(&out);
}
