/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/mem.h"
#include "cli/client.h"
#include "cli/input.h"
#include "cli/show.h"

static exit_status delete_one(client *c, const show_kind *kind, str name)
{
    str path = client_path(c, "/api/v1/%s/%s", str_of(kind->plural), name);
    exit_status status = client_call(c, "DELETE", path, (str){NULL, 0}, NULL);
    if (status == STATUS_DONE)
        printf("%s/%.*s deleted\n", kind->singular, STR_ARG(name));
    return status;
}

static exit_status delete_files(client *c, const options *given)
{
    input in;
    exit_status status = input_read(&in, &cmd_delete, given);
    for (size_t i = 0; status == STATUS_DONE && i < in.objects->len; i++) {
        const show_kind *kind = show_find(str_of(object_kind_text(in.objects->at[i].kind)));
        if (kind)
            status = delete_one(c, kind, in.objects->at[i].metadata->name);
    }
    input_done(&in);
    return status;
}

/* It destroys something, so a person is asked. */
static bool confirmed(const options *given)
{
    char line[16];
    if (options_given(given, "confirm") || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    fprintf(stderr, "Delete? [y/N] ");
    return fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
}

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    bool by_file = options_given(given, "file");
    if (by_file == (given->operands.len > 0))
        return usage_error(&cmd_delete, "give either KIND NAME... or -f FILE");
    const show_kind *kind = NULL;
    str name;
    for (size_t at = 0; !by_file && at < given->operands.len;) {
        if (!show_next(given, &at, &kind, &name) || !kind->kind)
            return usage_error(&cmd_delete, "found \"%s\", allowed a kind of document",
                               str_shown(given->operands.at[0]).text);
        if (name.len == 0)
            return usage_error(&cmd_delete, "NAME is missing");
    }
    if (!confirmed(given))
        return STATUS_NO;
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    if (by_file)
        return delete_files(c, given);
    for (size_t at = 0; show_next(given, &at, &kind, &name);) {
        exit_status one = delete_one(c, kind, name);
        status = one == STATUS_DONE ? status : one;
    }
    return status;
}

static const option options_of_delete[] = {
    OPTION_FILES,
    {.name = "confirm", .help = "do not ask"},
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_delete = {
    .name = "delete",
    .summary = "delete documents on the server",
    .operands = "[KIND NAME...]",
    .operands_min = 0,
    .operands_max = 1000,
    .about =
        "Names the documents (KIND/NAME works too), or takes them from files. Jobs that run are "
             "not stopped by it.",
    .options = options_of_delete,
    .run = run,
};
