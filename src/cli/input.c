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
    return input_read_some(in, given);
}

exit_status input_read_some(input *in, const options *given)
{
    *in = (input){0};
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
        objects_load(in->objects, in->documents, f->name, f->bytes, in->problems);
    }
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

static void add_line(buf *out, const problem *p, bool colour)
{
    bool error = p->severity == SEVERITY_ERROR;
    if (colour)
        output_ink_add(out, error ? INK_RED : INK_YELLOW, STR("drover:"));
    else
        buf_addz(out, "drover:");
    buf_addz(out, error ? " " : " warning: ");
    problem_text(p, out);
    buf_addc(out, '\n');
}

void input_report(const input *in)
{
    bool colour = output_colour(stderr);
    buf lines = BUF(LIMIT_TEXT_BYTES);
    size_t count = problems_count(in->problems);
    for (size_t i = 0; i < count; i++)
        if (problems_at(in->problems, i)->severity == SEVERITY_ERROR)
            add_line(&lines, problems_at(in->problems, i), colour);
    for (size_t i = 0; i < count; i++)
        if (problems_at(in->problems, i)->severity == SEVERITY_WARNING)
            add_line(&lines, problems_at(in->problems, i), colour);
    output_buf(stderr, &lines);
    uint64_t all = problems_errors(in->problems) + problems_warnings(in->problems);
    if (problems_out_of_memory(in->problems))
        fail("out of memory: not everything was looked at");
    else if (all > count)
        fail("%llu more problems are not shown", (unsigned long long)(all - count));
}
