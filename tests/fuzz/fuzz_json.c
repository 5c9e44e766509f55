/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_documents.h"

/* The annotation of a node: what is written reads back the same. */
static void fuzz_node_state(str text)
{
    arena *a = arena_new(0);
    node_state first;
    node_state second;
    err error;
    if (node_state_parse(a, text, &first, &error)) {
        buf out = BUF(LIMIT_TEXT_BYTES);
        buf again = BUF(LIMIT_TEXT_BYTES);
        node_state_write(&first, &out);
        if (out.len <= LIMIT_DOCUMENT_BYTES) {
            bool good = node_state_parse(a, buf_str(&out), &second, &error);
            assert(good);
            node_state_write(&second, &again);
            assert(str_eq(buf_str(&out), buf_str(&again)));
        }
        buf_done(&out);
        buf_done(&again);
    }
    arena_free(a);
}

static void fuzz_one(str input)
{
    fuzz_documents("f", input, FORMAT_JSON);
    fuzz_node_state(input);
}
