/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

#include "base/duration.h"
#include "base/mem.h"
#include "base/moment.h"
#include "server/clock.h"

/* A time, or a duration from now, as a time. */
static bool until_text(str given, char out[MOMENT_TEXT_BYTES], err *error)
{
    moment at = {.seconds = clock_ms() / 1000};
    int64_t ns;
    if (duration_parse_days(given, &ns, error)) {
        if (ns <= 0 || !moment_add(at, ns, &at))
            return err_set(error, "--until: found \"%s\", allowed a time to come",
                           str_shown(given).text);
    } else if (!moment_parse(given, &at, error)) {
        return err_set(error, "--until: found \"%s\", allowed a time or a duration",
                       str_shown(given).text);
    }
    out[moment_format(at, out)] = 0;
    return true;
}

exit_status act_run(const verb *v, const options *given, const char *operand)
{
    static const char *const members[] = {"deployment", "environment", "resource",
                                          "version",    "rule",        "partition",
                                          "name",       "selector",    "reason"};
    char until[MOMENT_TEXT_BYTES] = "";
    exit_status status = STATUS_DONE;
    err error;
    if (options_given(given, "until") &&
        !until_text(options_text(given, "until", ""), until, &error))
        return usage_error(v, "%s", error.text);
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    str values[9];
    for (size_t i = 0; i < 9; i++) {
        values[i] = options_text(given, members[i], "");
        if (operand && strcmp(operand, members[i]) == 0 && given->operands.len > 0)
            values[i] = given->operands.at[0];
    }
    str body = json_texts(c, members[0], values[0], members[1], values[1], members[2], values[2],
                          members[3], values[3], members[4], values[4], members[5], values[5],
                          members[6], values[6], members[7], values[7], members[8], values[8],
                          "until", str_of(until), (const char *)NULL);
    status =
        client_call(c, "POST", client_path(c, "/api/v1/actions/%s", str_of(v->name)), body, NULL);
    if (status == STATUS_DONE)
        printf("%s: done\n", v->name);
    return status;
}
