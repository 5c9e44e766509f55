/* SPDX-License-Identifier: Apache-2.0 */
/* drover-agent: runs one stage of one package on the host it is on, and says how it went: 0 is
 * success, 1 is not. */
#include <stdio.h>
#include <unistd.h>

#include "agent/host_file.h"
#include "agent/interrupt.h"
#include "agent/stage.h"

#define RESOLV "/etc/resolv.conf"

static void print_settings(const agent_settings *s)
{
    printf("drover-agent %s: mode %s, root %.*s, package at %.*s, resource %.*s, state in %.*s, "
           "logs in %.*s (%s)%s\n",
           DROVER_VERSION, mode_text(s->mode), STR_ARG(s->root.len > 0 ? s->root : STR("/")),
           STR_ARG(s->copy_dir), STR_ARG(s->resource_id), STR_ARG(s->state_dir),
           STR_ARG(s->log_dir), s->write_logs ? "written" : "not written",
           s->always_run ? ", steps run whatever the flags say" : "");
    fflush(stdout);
}

/* Names resolve on the host as they do here. */
static bool copy_resolv(const agent_settings *s, err *error)
{
    arena *a = arena_new(0);
    str content = STR_EMPTY, path = a ? host_path(a, s->root, RESOLV) : (str){0};
    bool good = path.ptr || err_memory(error);
    if (good && host_read(STR(RESOLV), a, CONFIG_BYTES_MAX, &content, error))
        good = host_write(path, content, error);
    else
        good = good && error->text[0] == '\0';
    arena_free(a);
    return good;
}

int main(int count, char **arguments)
{
    agent_settings s;
    run_signals signals;
    err error = {0};
    if (!settings_read(count - 1, arguments + 1, &s, &error)) {
        fprintf(stderr, "drover-agent: %s\n", error.text);
        return 1;
    }
    if (s.mode == MODE_UNKNOWN) {
        fprintf(stderr, "warning: there is no mode \"%s\"\n", str_shown(str_of(arguments[1])).text);
        return 0;
    }
    bool good = run_signals_open(&signals, &error);
    print_settings(&s);
    good = good && (!s.copy_resolv || s.root.len == 0 || copy_resolv(&s, &error)) &&
           (s.mode == MODE_INTERRUPT ? interrupt_run : stage_run)(&s, &signals, &error);
    if (!good)
        fprintf(stderr, "drover-agent: %s: %s\n", mode_text(s.mode), error.text);
    return good ? 0 : 1;
}
