/* SPDX-License-Identifier: Apache-2.0 */
#include "model/problems.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"

struct problems {
    arena *arena;
    VEC(problem) shown;
    uint64_t errors;
    uint64_t warnings;
    bool no_memory;
};

static const char *const severity_names[] = {
#define X(severity, text) [SEVERITY_##severity] = (text),
    SEVERITIES(X)
#undef X
};

const char *severity_text(severity s)
{
    return severity_names[s];
}

problems *problems_new(void)
{
    problems *list = mem_zalloc(sizeof *list);
    if (!list)
        return NULL;
    list->arena = arena_new(0);
    if (!list->arena)
        return mem_free(list);
    return list;
}

problems *problems_free(problems *list)
{
    if (!list)
        return NULL;
    vec_done(&list->shown);
    arena_free(list->arena);
    return mem_free(list);
}

void problems_cleanup(problems **list)
{
    *list = problems_free(*list);
}

bool problems_memory(problems *list)
{
    list->errors++;
    list->no_memory = true;
    return false;
}

void problems_add(problems *list, const problem *p)
{
    if (p->severity == SEVERITY_ERROR)
        list->errors++;
    else
        list->warnings++;
    if (list->shown.len >= LIMIT_PROBLEMS)
        return;
    problem copy = {
        .severity = p->severity,
        .line = p->line,
        .file = arena_str(list->arena, p->file),
        .document = arena_str(list->arena, p->document),
        .path = arena_str(list->arena, p->path),
        .message = arena_str(list->arena, p->message),
    };
    bool good = copy.file.ptr && copy.document.ptr && copy.path.ptr && copy.message.ptr;
    if (!good || !vec_push(&list->shown, copy))
        list->no_memory = true;
}

void problems_vaddf(problems *list, const problem *p, const char *format, va_list args)
{
    char text[LIMIT_ERR_BYTES];
    int length = vsnprintf(text, sizeof text, format, args);
    problem filled = *p;
    size_t len = length < 0 ? 0 : (size_t)length;
    filled.message = (str){text, len < sizeof text ? len : sizeof text - 1};
    problems_add(list, &filled);
}

void problems_addf(problems *list, const problem *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    problems_vaddf(list, p, format, args);
    va_end(args);
}

size_t problems_count(const problems *list)
{
    return list->shown.len;
}

const problem *problems_at(const problems *list, size_t index)
{
    return &list->shown.at[index];
}

uint64_t problems_errors(const problems *list)
{
    return list->errors;
}

uint64_t problems_warnings(const problems *list)
{
    return list->warnings;
}

bool problems_out_of_memory(const problems *list)
{
    return list->no_memory;
}

/* A problem is one line, whatever stands in names and keys. */
static void add_line(buf *out, str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        buf_addc(out, c < 0x20 || c == 0x7F ? '?' : text.ptr[i]);
    }
}

void problem_text(const problem *p, buf *out)
{
    if (p->file.len > 0) {
        add_line(out, p->file);
        if (p->line > 0)
            buf_addf(out, ":%u", p->line);
        buf_addz(out, ": ");
    }
    if (p->document.len > 0) {
        add_line(out, p->document);
        buf_addz(out, ": ");
    }
    if (p->path.len > 0) {
        add_line(out, p->path);
        buf_addz(out, ": ");
    }
    add_line(out, p->message);
}

void problem_json(const problem *p, buf *out)
{
    buf_addf(out, "{\"severity\":\"%s\",\"file\":", severity_text(p->severity));
    buf_add_json(out, p->file);
    buf_addf(out, ",\"line\":%u,\"document\":", p->line);
    buf_add_json(out, p->document);
    buf_addz(out, ",\"path\":");
    buf_add_json(out, p->path);
    buf_addz(out, ",\"message\":");
    buf_add_json(out, p->message);
    buf_addc(out, '}');
}
