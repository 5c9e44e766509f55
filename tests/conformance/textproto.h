/* SPDX-License-Identifier: Apache-2.0 */
/* textproto.h - a small reader for the text format of protobuf.
 *
 * It knows no schema: a message is a list of fields in the order they stand, a field is a name with
 * a message or a scalar. Strings are unescaped and joined. Enough for test vectors, no more. */
#ifndef DROVER_TESTS_TEXTPROTO_H
#define DROVER_TESTS_TEXTPROTO_H

#include "base/arena.h"
#include "base/err.h"

typedef struct text_field {
    str name; /* or the name of an extension, without its brackets */
    bool is_message;
    bool quoted; /* the scalar was a string */
    str scalar;
    struct text_field *fields; /* of a message */
    struct text_field *next;
} text_field;

/* The fields of the file, NULL with an error. */
bool textproto_read(arena *a, str text, text_field **ret, err *error);

/* The first field with a name among the given ones and those behind, or NULL. */
text_field *text_find(text_field *fields, const char *name);
/* Its message's fields, NULL when there is none. */
text_field *text_inside(text_field *fields, const char *name);
/* Its scalar, or the empty text. */
str text_scalar(text_field *fields, const char *name);
bool text_true(text_field *fields, const char *name);

#endif
