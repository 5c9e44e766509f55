/* SPDX-License-Identifier: Apache-2.0 */
/* document.h - text to trees.
 *
 * YAML and JSON become the same tree: yyjson's immutable values. YAML is first rewritten as JSON
 * text that keeps every token on its line, so both remember their lines the same way. Checked here,
 * for every byte that comes in: size, depth, valid UTF-8, keys that stand twice, aliases that grow.
 * Several documents in a file, several JSON values one after the other, and lists (kind List, or
 * NodeList and its like) become single documents. A bad one is reported and left out; the others
 * stay.
 *
 * Nothing is copied that need not be: file names and bytes belong to the caller and must live as
 * long as the set; trees, and all that is read from them, live as long as the set. */
#ifndef DROVER_MODEL_DOCUMENT_H
#define DROVER_MODEL_DOCUMENT_H

#include <yyjson.h>

#include "base/arena.h"
#include "base/err.h"
#include "model/problems.h"

/* One parsed text: a file, or one YAML document of it. */
typedef struct tree tree;

typedef struct document {
    tree *tree;
    yyjson_val *root; /* always an object */
    str file;
    str api_version; /* empty when missing; items of a list inherit the list's */
    str kind;
    str name; /* metadata.name, for messages; may be empty */
} document;

typedef struct document_set document_set;

document_set *document_set_new(void);
document_set *document_set_free(document_set *set);
void document_set_cleanup(document_set **set);

#define DOCUMENT_FORMATS(X) X(ANY, "any") X(JSON, "JSON") X(YAML, "YAML")

typedef enum document_format {
#define X(format, text) FORMAT_##format,
    DOCUMENT_FORMATS(X)
#undef X
} document_format;

/* Adds all documents of one file. FORMAT_ANY: JSON if it begins like JSON, with a brace and a
 * quote, else YAML. What is wrong goes to found. False when an error was reported; what is good
 * stays. */
bool documents_read(document_set *set, str file, str bytes, problems *found);
bool documents_read_as(document_set *set, str file, str bytes, document_format format,
                       problems *found);

/* The same, with each good document shown as soon as it is there. */
typedef struct document_source {
    str file;
    str bytes;
    document_format format;
    void (*each)(void *context, const document *d); /* may be NULL */
    void *context;
    bool passing; /* what was shown is not kept */
} document_source;
bool documents_read_from(document_set *set, const document_source *source, problems *found);

size_t documents_count(const document_set *set);
/* Stays valid as long as the set. */
const document *documents_at(const document_set *set, size_t index);

/* The line of a value or of a key in its file, from 1. Found by looking, so for messages only. */
uint32_t document_line(const document *d, const yyjson_val *value);

/* A small JSON text that lives on its own: annotations and the like. Same checks, no lines.
 * Everything is in a. NULL with an error. */
yyjson_val *json_parse(arena *a, str text, err *error);
/* The same for a text that is larger than a document may be. */
yyjson_val *json_parse_within(arena *a, str text, size_t max_bytes, err *error);
/* The text of a member; empty: there is none, or it is no text. */
str json_text_of(yyjson_val *object, const char *key);
/* Writes a value as compact JSON, keys in their order. */
void json_write(buf *out, const yyjson_val *value);
/* Writes a text as Go's encoder does: "<", ">", "&" and the two separators of lines escaped. */
void json_write_go_text(buf *out, str text);

/* Where in a document a reader is: frames on the C stack, rendered only for a message. */
typedef struct place {
    const struct place *up; /* NULL at the root */
    str key;                /* in an object; ptr is NULL in an array */
    size_t index;           /* in an array */
    const document *document;
    const yyjson_val *value; /* what stands here, else the nearest thing around it */
} place;

place place_root(const document *d);
/* A member of the object that stands at up; if it is missing, its place with the line of up. */
place place_key(const place *up, str key);
place place_at(const place *up, size_t index);
/* Reports a problem there. */
void place_error(const place *at, problems *found, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void place_warning(const place *at, problems *found, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
