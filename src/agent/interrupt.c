/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/interrupt.h"

#include <signal.h>
#include <stdio.h>
#include <yyjson.h>

#include "agent/host_file.h"
#include "agent/record.h"
#include "agent/stage.h"
#include "agent/stamp.h"
#include "base/base64.h"
#include "base/mem.h"

typedef enum interrupt_type {
#define X(type, text) INTERRUPT_##type,
    INTERRUPT_TYPES(X)
#undef X
        INTERRUPT_TYPE_COUNT,
} interrupt_type;

static const char *const type_texts[] = {
#define X(type, text) text,
    INTERRUPT_TYPES(X)
#undef X
};

typedef struct interrupt_data {
    interrupt_type type;
    str *services;
    size_t service_count;
} interrupt_data;

/* ---- data ---- */

static void document_free(yyjson_doc **document)
{
    yyjson_doc_free(*document);
}

static bool take_services(yyjson_val *list, arena *a, interrupt_data *d, err *error)
{
    d->service_count = yyjson_arr_size(list);
    if (d->service_count == 0 || d->service_count > INTERRUPT_SERVICES_MAX)
        return err_set(error, "interrupt: services: allowed: a list of 1 to %d names",
                       INTERRUPT_SERVICES_MAX);
    d->services = ARENA_ARRAY(a, d->service_count, str);
    if (!d->services)
        return err_memory(error);
    yyjson_val *v;
    size_t i, most;
    yyjson_arr_foreach(list, i, most, v)
    {
        if (!yyjson_is_str(v))
            return err_set(error, "interrupt: services[%zu]: allowed: a name", i);
        d->services[i] = arena_str(a, str_of(yyjson_get_str(v)));
        if (!d->services[i].ptr)
            return err_memory(error);
    }
    return true;
}

static bool parse(str base64, arena *a, interrupt_data *ret, err *error)
{
    buf json = BUF(INTERRUPT_BYTES_MAX);
    bool decoded = base64_decode(base64, &json);
    scoped(document_free) yyjson_doc *document =
        decoded && json.len > 0 ? yyjson_read(json.ptr, json.len, 0) : NULL;
    buf_done(&json);
    yyjson_val *root = yyjson_doc_get_root(document);
    const char *type = yyjson_get_str(yyjson_obj_get(root, "type"));
    if (!type)
        return err_set(error, "interrupt: allowed: base64 of a JSON object with a type");
    *ret = (interrupt_data){.type = INTERRUPT_TYPE_COUNT};
    for (size_t i = 0; i < INTERRUPT_TYPE_COUNT; i++)
        if (str_eq(str_of(type), str_of(type_texts[i])))
            ret->type = (interrupt_type)i;
    if (ret->type == INTERRUPT_TYPE_COUNT)
        return err_set(error,
                       "interrupt: type: found \"%s\", allowed: node_restart, service_restart, "
                       "restart_all_services, no_op, script_interrupt",
                       str_shown(str_of(type)).text);
    return ret->type != INTERRUPT_SERVICE_RESTART ||
           take_services(yyjson_obj_get(root, "services"), a, ret, error);
}

/* ---- commands ---- */

typedef struct interrupt {
    const agent_settings *settings;
    run_signals *signals;
    arena *arena;
    interrupt_data data;
    err *error;
} interrupt;

/* A reboot is only asked for: who says that it succeeded lets the next stage begin on a host that
 * is about to go down, or on one that does not. The agent ends with the host, and is asked again
 * when that is back; it never succeeds here. */
static bool wait_for_reboot(interrupt *n)
{
    int64_t seconds = n->settings->grace_seconds;
    if (run_wait_terminated(n->signals, seconds))
        return err_set(n->error, "the host goes down");
    return err_set(n->error, "reboot: the host is still there after %lld s", (long long)seconds);
}

static bool run_flagged(interrupt *n, str name, const char **arguments, str flag)
{
    const agent_settings *s = n->settings;
    buf line = BUF(LIMIT_ERR_BYTES);
    for (size_t i = 0; arguments[i]; i++)
        buf_addf(&line, "%s%s", i > 0 ? " " : "", arguments[i]);
    str text = arena_str(n->arena, buf_str(&line));
    buf_done(&line);
    command c = {.root = s->root,
                 .folder = STR("/"),
                 .arguments = arguments,
                 .environment = stage_environment(n->arena, NULL, 0),
                 .outlives_term = n->data.type == INTERRUPT_NODE_RESTART,
                 .log_head = text,
                 .buffer_bytes = s->buffer_bytes,
                 .grace_seconds = s->grace_seconds};
    c.log_path = host_path(n->arena, s->root, "%.*s/%.*s/%.*s/interrupts/%s-%s.log",
                           STR_ARG(s->log_dir), STR_ARG(s->package), STR_ARG(s->version), name.ptr,
                           stamp_file().text);
    if (!text.ptr || !c.environment || !c.log_path.ptr)
        return err_memory(n->error);
    printf("interrupt: %s\n", text.ptr);
    if (c.outlives_term && !record_boot(s, name, n->arena, n->error))
        return false;
    if (!host_write(flag, str_of(stamp_unix().text), n->error))
        return false;
    int code = 0;
    bool started = run_command(&c, n->signals, &code, n->error);
    if (started && code == 0)
        return !c.outlives_term || wait_for_reboot(n);
    if (started)
        err_set(n->error, "%s: ended with %d", text.ptr, code);
    /* A reboot ends its own command; it counts as done when the agent is asked again. */
    if (started && c.outlives_term && code == -SIGTERM)
        return false;
    err ignored;
    host_remove(flag, &ignored);
    return false;
}

static bool run_once(interrupt *n, size_t number, const char **arguments)
{
    str name = arena_printf(n->arena, "%s_%zu", type_texts[n->data.type], number);
    str flag = name.ptr ? record_interrupt_path(n->settings, name, n->arena) : name;
    if (!flag.ptr)
        return err_memory(n->error);
    /* A reboot that was asked for has not come while the host is in the same boot. */
    bool asked = n->data.type == INTERRUPT_NODE_RESTART &&
                 record_boot_is_same(n->settings, name, n->arena);
    if (host_exists(flag) && !asked) {
        printf("interrupt: %s ran before\n", name.ptr);
        return true;
    }
    if (run_terminated(n->signals))
        return err_set(n->error, "the agent was told to end");
    return run_flagged(n, name, arguments, flag);
}

static bool restart_services(interrupt *n)
{
    if (!run_once(n, 0, (const char *[]){"systemctl", "daemon-reload", NULL}))
        return false;
    for (size_t i = 0; i < n->data.service_count; i++) {
        const char *service = n->data.services[i].ptr;
        if (!run_once(n, i + 1, (const char *[]){"systemctl", "restart", service, NULL}))
            return false;
    }
    return true;
}

static bool note_no_op(interrupt *n)
{
    str flag = record_interrupt_path(n->settings, STR("no_op"), n->arena);
    if (!flag.ptr)
        return err_memory(n->error);
    return host_write(flag, str_of(stamp_unix().text), n->error);
}

bool interrupt_run(const agent_settings *s, run_signals *signals, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    if (!a)
        return err_memory(error);
    interrupt n = {.settings = s, .signals = signals, .arena = a, .error = error};
    if (!parse(s->interrupt_data, a, &n.data, error))
        return false;
    switch (n.data.type) {
    case INTERRUPT_NODE_RESTART: return run_once(&n, 0, (const char *[]){"reboot", NULL});
    case INTERRUPT_SERVICE_RESTART: return restart_services(&n);
    case INTERRUPT_RESTART_ALL_SERVICES:
        return run_once(&n, 0, (const char *[]){"service", "procps", "force-reload", NULL});
    case INTERRUPT_NO_OP: return note_no_op(&n);
    case INTERRUPT_SCRIPT_INTERRUPT: return true;
    case INTERRUPT_TYPE_COUNT: break;
    }
    return false;
}
