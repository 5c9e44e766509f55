/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/input.h"

#include "base/limits.h"
#include "cli/output.h"

static void trouble(void *context, str path, const char *message)
{
    problem p = {.severity = SEVERITY_ERROR, .file = path, .message = str_of(message)};
    problems_add(context, &p);
}

exit_status input_read(input *in, const verb *c, const options *given)
{
    *in = (input){0};
    if (!options_given(given, "file"))
        return usage_error(c, "-f FILE is missing: it names the documents");
    in->problems = problems_new();
    in->documents = document_set_new();
    in->objects = objects_new();
    in->files = in->problems ? files_new(trouble, in->problems) : NULL;
    if (!in->files || !in->documents || !in->objects)
        return fail("out of memory");
    size_t at = 0;
    for (str path; options_next(given, "file", &at, &path);)
        files_add(in->files, path);
    for (size_t i = 0; i < files_count(in->files); i++) {
        const file *f = files_at(in->files, i);
        documents_read(in->documents, f->name, f->bytes, in->problems);
    }
    objects_read(in->objects, in->documents, in->problems);
    return STATUS_DONE;
}

void input_done(input *in)
{
    in->objects = objects_free(in->objects);
    in->documents = document_set_free(in->documents);
    in->files = files_free(in->files);
    in->problems = problems_free(in->problems);
}

bool input_bad(const input *in)
{
    return problems_errors(in->problems) > 0;
}

void input_report(const input *in)
{
    bool colour = output_colour(stderr);
    buf line = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < problems_count(in->problems); i++) {
        const problem *p = problems_at(in->problems, i);
        bool error = p->severity == SEVERITY_ERROR;
        if (colour)
            output_ink(stderr, error ? INK_RED : INK_YELLOW, STR("drover: "));
        else
            buf_addz(&line, "drover: ");
        if (!error)
            buf_addz(&line, "warning: ");
        problem_text(p, &line);
        buf_addc(&line, '\n');
        if (!colour && line.len < LIMIT_LOG_LINE_BYTES)
            continue;
        output_text(stderr, buf_str(&line));
        buf_clear(&line);
    }
    output_buf(stderr, &line);
    uint64_t all = problems_errors(in->problems) + problems_warnings(in->problems);
    if (all > problems_count(in->problems))
        fail("%llu more problems are not shown",
             (unsigned long long)(all - problems_count(in->problems)));
}
