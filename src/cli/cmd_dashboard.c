/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "cli/client.h"
#include "cli/show.h"

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    yyjson_val *answer = NULL;
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    status = client_call(c, "POST", STR("/api/v1/links"), (str){NULL, 0}, &answer);
    if (status == STATUS_DONE) {
        str path = json_at(c, answer, "/path");
        printf("%s%.*s\n", client_server(c), STR_ARG(path));
        fprintf(stderr, "It opens the dashboard once, within five minutes, with your rights.\n");
    }
    return status;
}

static const option options_of_dashboard[] = {OPTIONS_SERVER, OPTIONS_END};

const verb cmd_dashboard = {
    .name = "dashboard",
    .summary = "print a link that opens the dashboard once",
    .about = "Whoever opens the link has the rights of the token it was made with, for twelve "
             "hours and in that browser tab only.",
    .options = options_of_dashboard,
    .run = run,
};
