/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char cut_mark[] = "...";

/* A cut inside a UTF-8 sequence would make the text invalid: step back to its first byte. */
static void mark_cut(char *text)
{
    size_t at = LIMIT_ERR_BYTES - sizeof cut_mark;
    while (at > 0 && ((unsigned char)text[at] & 0xC0u) == 0x80u)
        at--;
    memcpy(text + at, cut_mark, sizeof cut_mark);
}

bool err_set(err *error, const char *format, ...)
{
    if (!error)
        return false;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    if (length < 0) /* printf refused */
        memcpy(error->text, cut_mark, sizeof cut_mark);
    else if (length >= (int)sizeof error->text)
        mark_cut(error->text);
    return false;
}

bool err_wrap(err *error, const char *format, ...)
{
    if (!error)
        return false;
    char inner[LIMIT_ERR_BYTES];
    snprintf(inner, sizeof inner, "%s", error->text);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    if (length < 0) {
        memcpy(error->text, inner, strlen(inner) + 1);
        return false;
    }
    if (length >= (int)sizeof error->text) {
        mark_cut(error->text);
        return false;
    }
    size_t room = sizeof error->text - (size_t)length;
    int more = snprintf(error->text + length, room, ": %s", inner);
    if (more >= (int)room)
        mark_cut(error->text);
    return false;
}

#define OUT_OF_MEMORY "out of memory"

bool err_memory(err *error)
{
    return err_set(error, OUT_OF_MEMORY);
}

bool err_is_memory(const err *error)
{
    size_t length = strlen(error->text), sentence = sizeof OUT_OF_MEMORY - 1;
    return length >= sentence && strcmp(error->text + length - sentence, OUT_OF_MEMORY) == 0;
}
