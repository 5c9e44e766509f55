/* SPDX-License-Identifier: Apache-2.0 */
/* go_template.h - the part of Go's text templates that people use in Helm values.
 *
 * Actions stand between ${ and }, as Fleet has them: fields, variables, pipelines, if, range, with,
 * comments, trimming, and the functions listed in go_template_functions.c. What Go or sprig knows
 * and this does not (templates that call each other, and everything that is random or depends on
 * the time, the machine or the network) is an error that says so: never a wrong value.
 *
 * Pure: the same text and data give the same result. A key that is not there is an error. */
#ifndef DROVER_ENGINE_GO_TEMPLATE_H
#define DROVER_ENGINE_GO_TEMPLATE_H

#include <yyjson.h>

#include "base/arena.h"
#include "base/err.h"

#define TEMPLATE_LEFT "${"
#define TEMPLATE_RIGHT '}'
#define TEMPLATE_DEPTH_MAX 50
#define TEMPLATE_STEPS_MAX 100000u
#define TEMPLATE_MEMORY_BYTES_MAX (16u * 1024u * 1024u)
#define TEMPLATE_OUTPUT_BYTES_MAX (3u * 1024u * 1024u / 2u)

#define TEMPLATE_VALUES(X)                                                                         \
    X(NIL, "nothing")                                                                              \
    X(BOOL, "a truth value")                                                                       \
    X(INT, "a whole number")                                                                       \
    X(REAL, "a number") X(TEXT, "a text") X(LIST, "a list") X(MAP, "a map")
typedef enum template_kind {
#define X(kind, text) TEMPLATE_##kind,
    TEMPLATE_VALUES(X)
#undef X
} template_kind;

typedef struct template_value template_value;
typedef struct template_pair template_pair;
struct template_value {
    template_kind kind;
    union {
        bool yes;
        int64_t number;
        double real;
        str text;
        struct {
            const template_value *at;
            size_t len;
        } list;
        struct {
            const template_pair *at; /* sorted by key */
            size_t len;
        } map;
    };
};
struct template_pair {
    str key;
    template_value value;
};

/* JSON as Go reads it: numbers are floating. All of it is in a, texts excepted. False without
 * memory. */
bool template_from_json(arena *a, const yyjson_val *json, template_value *ret);
/* As toJson has it. */
void template_to_json(buf *out, const template_value *v);
/* The member of a map; NULL: it has none, or is no map. */
const template_value *template_get(const template_value *map, str key);
/* As an action prints it. */
void template_print(buf *out, const template_value *v);
bool template_truth(const template_value *v);
const char *template_kind_text(template_kind kind);

/* Whether the text has an action at all. */
bool template_is_in(str text);
/* Renders the text with root as its dot. False with an error. */
bool template_render(arena *a, str text, const template_value *root, buf *out, err *error);

#endif
