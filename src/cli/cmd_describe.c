/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/events.h"

/* What belongs to it: the release targets of a deployment, environment or resource. */
static exit_status show_targets(client *c, const show_kind *kind, str name)
{
    str path = client_path(c, "/api/v1/targets?%s=%s", str_of(kind->singular), name);
    show *s = show_begin(c, show_find(STR("targets")), STR("table"));
    if (!s)
        return fail("memory ran out");
    exit_status status = client_list(c, path, 0, show_item, s);
    if (status != STATUS_DONE) {
        show_free(s);
        return status;
    }
    printf("\nRelease targets:\n");
    return show_end(s, false);
}

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    yyjson_val *answer = NULL;
    const show_kind *kind = NULL;
    str name = STR_EMPTY;
    size_t at = 0;
    show_next(given, &at, &kind, &name);
    if (!kind || (!kind->kind && strcmp(kind->plural, "jobs") != 0))
        return usage_error(&cmd_describe, "found \"%s\", allowed a kind of document, or job",
                           str_shown(given->operands.at[0]).text);
    if (name.len == 0 || at < given->operands.len)
        return usage_error(&cmd_describe, "allowed one NAME");
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    str path = client_path(c, "/api/v1/%s/%s", str_of(kind->plural), name);
    status = client_call(c, "GET", path, (str){NULL, 0}, &answer);
    if (status != STATUS_DONE)
        return status;
    buf out = BUF(LIMIT_TEXT_BYTES);
    yaml_write(&out, answer);
    if (!output_buf(stdout, &out))
        return STATUS_NO;
    bool has_targets = strcmp(kind->singular, "deployment") == 0 ||
                       strcmp(kind->singular, "environment") == 0 ||
                       strcmp(kind->singular, "resource") == 0;
    if (has_targets)
        status = show_targets(c, kind, name);
    return status == STATUS_DONE ? events_print(c, &(event_subject){kind, name, answer}) : status;
}

static const option options_of_describe[] = {OPTIONS_SERVER, OPTIONS_END};

const verb cmd_describe = {
    .name = "describe",
    .summary = "show one document and what belongs to it",
    .operands = "KIND NAME",
    .operands_min = 1,
    .operands_max = 2,
    .about = "KIND/NAME works too. Prints the document as YAML, and for deployments, environments "
             "and resources their release targets with state and what they wait for. Last come "
             "events: the newest entries of the journal about it.",
    .options = options_of_describe,
    .run = run,
};
