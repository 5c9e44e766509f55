/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "model/lint.h"

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static bool print_json(const input *in)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    buf_addf(&out, "{\"documents\":%zu,\"errors\":%llu,\"warnings\":%llu,\"problems\":[",
             documents_count(in->documents), (unsigned long long)problems_errors(in->problems),
             (unsigned long long)problems_warnings(in->problems));
    for (size_t i = 0; i < problems_count(in->problems); i++) {
        buf_addz(&out, i > 0 ? ",\n" : "\n");
        problem_json(problems_at(in->problems, i), &out);
    }
    buf_addz(&out, problems_count(in->problems) > 0 ? "\n]}\n" : "]}\n");
    return output_buf(stdout, &out);
}

static void print_text(const input *in)
{
    uint64_t documents = documents_count(in->documents);
    uint64_t errors = problems_errors(in->problems), warnings = problems_warnings(in->problems);
    input_report(in);
    printf("%llu document%s, %llu error%s, %llu warning%s\n", (unsigned long long)documents,
           plural(documents), (unsigned long long)errors, plural(errors),
           (unsigned long long)warnings, plural(warnings));
}

static exit_status judge(const input *in, const options *given)
{
    lint_all(in->objects, in->problems);
    if (!str_eq(options_text(given, "output", "text"), STR("json")))
        print_text(in);
    else if (!print_json(in))
        return STATUS_NO;
    bool strict = options_given(given, "strict");
    return input_bad(in) || (strict && problems_warnings(in->problems) > 0) ? STATUS_NO
                                                                            : STATUS_DONE;
}

static exit_status run(const options *given)
{
    input in;
    exit_status status = input_read(&in, &cmd_validate, given);
    if (status == STATUS_DONE)
        status = judge(&in, given);
    input_done(&in);
    return status;
}

static const option options_of_validate[] = {
    OPTION_FILES,
    OPTION_OUTPUT("text|json"),
    {.name = "strict", .help = "let warnings count as errors for the exit status"},
    OPTIONS_END,
};

const verb cmd_validate = {
    .name = "validate",
    .summary = "check documents, each by itself and all of them together",
    .about = "Every problem of every document is one line on standard error that names file, line, "
             "document and path, what was found and what is allowed. Then come warnings: what is "
             "allowed but rarely meant. The last line, on standard output, counts them.\n"
             "\n"
             "A document that is wrong does not keep the others from being checked.",
    .options = options_of_validate,
    .run = run,
};
