/* SPDX-License-Identifier: Apache-2.0 */
#include "server/dashboard.h"

#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types 'none'"
#define SEGMENTS_MOST 2

const dashboard_file *dashboard_find(const uri *u)
{
    for (const dashboard_file *f = dashboard_files; f->path; f++) {
        str rest = str_part(str_of(f->path), 1, SIZE_MAX);
        size_t at = 0;
        while (rest.len > 0 && at < u->segment_count && at < SEGMENTS_MOST &&
               str_eq(str_cut(&rest, '/'), u->segments[at]))
            at++;
        if (rest.len == 0 && at == u->segment_count)
            return f;
    }
    return NULL;
}

void dashboard_answer(const dashboard_file *f, const http_request *q, http_reply *r)
{
    r->status = 200;
    r->type = f->type;
    http_field_add(r, "Cache-Control",
                   f->lasting ? STR("public, max-age=31536000, immutable") : STR("no-cache"));
    http_field_add(r, "ETag", str_of(f->tag));
    http_field_add(r, "Content-Security-Policy", STR(POLICY));
    http_field_add(r, "Referrer-Policy", STR("no-referrer"));
    http_field_add(r, "Cross-Origin-Opener-Policy", STR("same-origin"));
    http_field_add(r, "Cross-Origin-Resource-Policy", STR("same-origin"));
    if (str_eq(http_header(q, "If-None-Match"), str_of(f->tag))) {
        r->status = 304;
        return;
    }
    http_field_add(r, "Content-Encoding", STR("gzip"));
    buf_add(&r->body, (str){(const char *)f->bytes, f->len});
}
