/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "cli/client.h"
#include "cli/show.h"

static exit_status create(client *c, const options *given, str name)
{
    yyjson_val *answer = NULL;
    str body = json_texts(c, "name", name, "role", options_text(given, "role", "viewer"),
                          "selector", options_text(given, "selector", ""), (const char *)NULL);
    exit_status status = client_call(c, "POST", STR("/api/v1/tokens"), body, &answer);
    if (status == STATUS_DONE) {
        str token = json_at(c, answer, "/token");
        printf("%.*s\n", STR_ARG(token));
        fprintf(stderr, "This is shown only once; keep it where others cannot read it.\n");
    }
    return status;
}

static exit_status list(client *c, const options *given)
{
    show *s = show_begin(c, show_find(STR("tokens")), options_text(given, "output", "table"));
    if (!s)
        return fail("memory ran out");
    exit_status status = client_list(c, STR("/api/v1/tokens"), 0, show_item, s);
    if (status == STATUS_DONE)
        return show_end(s, false);
    show_free(s);
    return status;
}

static exit_status revoke(client *c, str name)
{
    exit_status status =
        client_call(c, "DELETE", client_path(c, "/api/v1/tokens/%s", name), (str){NULL, 0}, NULL);
    if (status == STATUS_DONE)
        printf("token/%.*s revoked\n", STR_ARG(name));
    return status;
}

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    str word = given->operands.at[0];
    bool listing = str_eq(word, STR("list")), making = str_eq(word, STR("create"));
    if (!listing && !making && !str_eq(word, STR("revoke")))
        return usage_error(&cmd_token, "found \"%s\", allowed create, list or revoke",
                           str_shown(word).text);
    if (listing != (given->operands.len == 1))
        return usage_error(&cmd_token, listing ? "list takes no name" : "NAME is missing");
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    if (listing)
        return list(c, given);
    return making ? create(c, given, given->operands.at[1]) : revoke(c, given->operands.at[1]);
}

static const option options_of_token[] = {
    {.name = "role",
     .argument = "viewer|operator|admin|worker",
     .help = "create: what it may do; viewer unless told"},
    {.name = "selector",
     .letter = 'l',
     .argument = "LABELS",
     .help = "create: the resources a worker may work on"},
    OPTION_OUTPUT("table|json|yaml|name"),
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_token = {
    .name = "token",
    .summary = "make, list and revoke tokens",
    .operands = "create|list|revoke [NAME]",
    .operands_min = 1,
    .operands_max = 2,
    .about = "A viewer reads, an operator also changes, an admin also hands out tokens. A worker "
             "claims and reports the jobs of the resources its selector matches.",
    .options = options_of_token,
    .run = run,
};
