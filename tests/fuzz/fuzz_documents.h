/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_documents.h - what the two fuzzers of documents do with their bytes: read, write, read
 * again. */
#ifndef DROVER_TESTS_FUZZ_DOCUMENTS_H
#define DROVER_TESTS_FUZZ_DOCUMENTS_H

#include <assert.h>

#include "base/limits.h"
#include "model/lint.h"
#include "model/object.h"

/* Objects of a text, and what they are made of. */
typedef struct fuzz_read {
    document_set *set;
    object_list *objects;
    problems *found;
} fuzz_read;

static inline fuzz_read fuzz_text(const char *file, str text, document_format format)
{
    fuzz_read r = {document_set_new(), objects_new(), problems_new()};
    assert(r.set && r.objects && r.found);
    documents_read_as(r.set, str_of(file), text, format, r.found);
    objects_read(r.objects, r.set, r.found);
    return r;
}

static inline void fuzz_done(fuzz_read *r)
{
    objects_free(r->objects);
    document_set_free(r->set);
    problems_free(r->found);
}

static inline void fuzz_again(const object *o)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    object_write(o, &text);
    assert(!text.failed);
    fuzz_read r =
        fuzz_text(o->kind == KIND_FLEET_YAML ? "fleet.yaml" : "f", buf_str(&text), FORMAT_JSON);
    /* What grew past the limit by its defaults is refused; everything else is the same again. */
    if (text.len <= LIMIT_DOCUMENT_BYTES) {
        assert(r.objects->len == 1);
        assert(object_equal(o, &r.objects->at[0]));
    }
    fuzz_done(&r);
    buf_done(&text);
}

static inline void fuzz_documents(const char *file, str bytes, document_format format)
{
    fuzz_read r = fuzz_text(file, bytes, format);
    for (size_t i = 0; i < r.objects->len; i++)
        fuzz_again(&r.objects->at[i]);
    lint_all(r.objects, r.found);
    for (size_t i = 0; i < problems_count(r.found); i++) {
        buf line = BUF(LIMIT_TEXT_BYTES);
        problem_text(problems_at(r.found, i), &line);
        problem_json(problems_at(r.found, i), &line);
        buf_done(&line);
    }
    fuzz_done(&r);
}

#endif
