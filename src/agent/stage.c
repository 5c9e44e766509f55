/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stage.h"

#include <stdio.h>
#include <unistd.h>

#include "agent/host_file.h"
#include "agent/record.h"
#include "agent/stamp.h"
#include "base/mem.h"

#define CHECK_RESULTS_BYTES_MAX (4u << 20)
#define NODE_FILES STR("/etc/nvidia-bootstrap/node-files")
#define VARIABLES_OF_AGENT 4 /* behind those of the step */

typedef struct stage {
    const agent_settings *settings;
    run_signals *signals;
    arena *arena;
    package_config config;
    err *error;
} stage;

/* ---- the environment of a step ---- */

static bool is_replaced(str entry, const step_variable *variables, size_t count)
{
    str name = str_cut(&entry, '=');
    for (size_t i = 0; i < count; i++)
        if (str_eq(name, variables[i].name))
            return true;
    return false;
}

const char **stage_environment(arena *a, const step_variable *variables, size_t count)
{
    size_t present = 0, len = 0;
    while (environ[present])
        present++;
    const char **all = ARENA_ARRAY(a, present + count + 1, const char *);
    for (size_t i = 0; all && i < present; i++)
        if (!is_replaced(str_of(environ[i]), variables, count))
            all[len++] = environ[i];
    for (size_t i = 0; all && i < count; i++) {
        /* The last one of a name counts. */
        if (is_replaced(variables[i].name, variables + i + 1, count - i - 1))
            continue;
        str entry =
            arena_printf(a, "%.*s=%.*s", STR_ARG(variables[i].name), STR_ARG(variables[i].value));
        if (!entry.ptr)
            return NULL;
        all[len++] = entry.ptr;
    }
    return all;
}

/* The package's folder and that of its steps, as the step sees them. */
static bool add_places(stage *g, const package_step *step, step_variable *to)
{
    const agent_settings *s = g->settings;
    str root = step->on_host ? STR_EMPTY : s->root;
    to[0] = (step_variable){STR("SKYHOOK_DIR"),
                            host_path(g->arena, root, "%.*s", STR_ARG(s->copy_dir))};
    to[1] = (step_variable){STR("STEP_ROOT"),
                            host_path(g->arena, root, "%.*s/skyhook_dir", STR_ARG(s->copy_dir))};
    return (to[0].value.ptr && to[1].value.ptr) || err_memory(g->error);
}

static bool is_upgrade(agent_mode mode)
{
    return mode == MODE_UPGRADE || mode == MODE_UPGRADE_CHECK;
}

/* ---- one step ---- */

/* "env:NAME" stands for a variable of the container. All missing ones are named. */
static bool fill_arguments(stage *g, const package_step *step, const char **to)
{
    bool good = true;
    for (size_t i = 0; i < step->argument_count; i++) {
        str argument = step->arguments[i];
        const char *text = argument.ptr;
        if (str_starts(argument, STR("env:"))) {
            text = getenv(argument.ptr + 4);
            if (!text) {
                fprintf(stderr, "%.*s: the variable %s is not set\n", STR_ARG(step->path),
                        argument.ptr + 4);
                good = false;
            }
        }
        to[i] = text;
    }
    return good ||
           err_set(g->error, "%.*s: variables of its arguments are missing", STR_ARG(step->path));
}

static bool prepare(stage *g, const package_step *step, command *c)
{
    const agent_settings *s = g->settings;
    step_variable *all =
        ARENA_ARRAY(g->arena, step->variable_count + VARIABLES_OF_AGENT, step_variable);
    c->arguments = ARENA_ARRAY(g->arena, step->argument_count + 4, const char *);
    if (!all || !c->arguments)
        return err_memory(g->error);
    size_t count = step->variable_count;
    if (count > 0)
        memcpy(all, step->variables, count * sizeof *all);
    if (!fill_arguments(g, step, c->arguments + 1))
        return false;
    if (is_upgrade(s->mode)) {
        str previous;
        if (!record_version(s, g->config.name, g->arena, &previous, g->error))
            return false;
        all[count++] = (step_variable){STR("CURRENT_VERSION"), g->config.version};
        all[count++] = (step_variable){STR("PREVIOUS_VERSION"), previous};
        if (step->upgrade_step) {
            c->arguments[step->argument_count + 1] = previous.ptr;
            c->arguments[step->argument_count + 2] = g->config.version.ptr;
        }
    }
    if (!add_places(g, step, all + count))
        return false;
    c->folder = all[count].value;
    str program = arena_printf(g->arena, "%s/%.*s", all[count + 1].value.ptr, STR_ARG(step->path));
    c->environment = stage_environment(g->arena, all, count + 2);
    c->arguments[0] = program.ptr;
    c->root = step->on_host ? s->root : STR_EMPTY;
    return (program.ptr && c->environment) || err_memory(g->error);
}

static bool run_step(stage *g, const package_step *step)
{
    const agent_settings *s = g->settings;
    command c = {.make_executable = true,
                 .buffer_bytes = s->buffer_bytes,
                 .grace_seconds = s->grace_seconds};
    str logs = host_path(g->arena, s->root, "%.*s/%.*s/%.*s/%.*s", STR_ARG(s->log_dir),
                         STR_ARG(g->config.name), STR_ARG(g->config.version), STR_ARG(step->path));
    if (!logs.ptr)
        return err_memory(g->error);
    if (!prepare(g, step, &c))
        return false;
    if (s->write_logs)
        c.log_path = arena_printf(g->arena, "%s-%s.log", logs.ptr, stamp_file().text);
    printf("%s: %.*s\n", mode_text(s->mode), STR_ARG(step->path));
    int code;
    bool good = run_command(&c, g->signals, &code, g->error);
    run_keep_newest_logs(logs, g->arena);
    if (!good)
        return false;
    for (size_t i = 0; i < step->returncode_count; i++)
        if (step->returncodes[i] == code && !g->signals->terminated)
            return true;
    if (g->signals->terminated)
        return err_set(g->error, "%.*s: the agent was told to end", STR_ARG(step->path));
    return err_set(g->error, "%.*s: ended with %d", STR_ARG(step->path), code);
}

/* ---- all steps ---- */

static bool may_skip(const agent_settings *s, const package_step *step)
{
    return (s->mode == MODE_APPLY || s->mode == MODE_POST_INTERRUPT) && !step->idempotent &&
           !s->always_run;
}

static bool do_steps(stage *g, const step_list *steps)
{
    for (size_t i = 0; i < steps->len; i++) {
        const package_step *step = &steps->at[i];
        bool done = false;
        if (run_terminated(g->signals))
            return err_set(g->error, "the agent was told to end");
        if (may_skip(g->settings, step) &&
            !record_flag_exists(g->settings, &g->config, step, g->arena, &done))
            return err_memory(g->error);
        if (done) {
            printf("%s: %.*s ran before\n", mode_text(g->settings->mode), STR_ARG(step->path));
            continue;
        }
        if (!run_step(g, step) || !record_flag(g->settings, &g->config, step, g->arena, g->error))
            return false;
    }
    return true;
}

static bool check_steps(stage *g, const step_list *steps)
{
    buf lines = BUF(CHECK_RESULTS_BYTES_MAX);
    size_t failures = 0;
    err first = {0};
    for (size_t i = 0; i < steps->len && !run_terminated(g->signals); i++) {
        bool good = run_step(g, &steps->at[i]);
        buf_addf(&lines, "%s%.*s %s", i > 0 ? "\n" : "", STR_ARG(steps->at[i].path),
                 good ? "False" : "True");
        if (!good && failures++ == 0)
            first = *g->error;
        if (!good)
            fprintf(stderr, "%s\n", g->error->text);
    }
    bool good = !lines.failed || err_memory(g->error);
    good = good && record_check_results(g->settings, buf_str(&lines), g->arena, g->error);
    buf_done(&lines);
    if (!good)
        return false;
    if (g->signals->terminated)
        return err_set(g->error, "the agent was told to end");
    if (failures > 0)
        return err_set(g->error, "%zu of %zu checks failed; the first: %s", failures, steps->len,
                       first.text);
    return record_all_checked(g->settings, g->arena, g->error);
}

static bool remember(stage *g)
{
    const agent_settings *s = g->settings;
    bool removed = s->mode == MODE_UNINSTALL_CHECK;
    if (s->mode != MODE_APPLY_CHECK && s->mode != MODE_UPGRADE_CHECK && !removed)
        return true;
    return record_add_version(s, g->config.name, removed ? VERSION_UNINSTALLED : g->config.version,
                              g->arena, g->error) &&
           (!removed || record_forget_flags(s, &g->config, g->arena, g->error));
}

static bool run_mode(stage *g)
{
    const agent_settings *s = g->settings;
    const step_list *steps = &g->config.modes[s->mode];
    if (!record_start(s, g->arena, g->error))
        return false;
    if (steps->len == 0)
        fprintf(stderr, "warning: there are no steps for %s\n", mode_text(s->mode));
    else if (!(mode_checks(s->mode) ? check_steps(g, steps) : do_steps(g, steps)))
        return false;
    return remember(g);
}

/* ---- the package ---- */

/* Operators of old did not copy the package to the host. */
static bool copy_package(stage *g, str to)
{
    if (host_exists(to))
        return true;
    return host_copy_folder(g->settings->data_dir, to, g->error) &&
           (!host_exists(NODE_FILES) || host_copy_folder(NODE_FILES, to, g->error));
}

static bool load(stage *g, str package)
{
    arena *a = g->arena;
    str json, path = arena_printf(a, "%s/config.json", package.ptr);
    str steps_dir = arena_printf(a, "%s/skyhook_dir", package.ptr);
    if (!path.ptr || !steps_dir.ptr)
        return err_memory(g->error);
    if (!host_read(path, a, CONFIG_BYTES_MAX, &json, g->error))
        return g->error->text[0] ? false : err_set(g->error, "%s: there is no such file", path.ptr);
    if (!config_parse(json, a, &g->config, g->error) ||
        !config_check_files(&g->config, steps_dir, a, g->error))
        return err_wrap(g->error, "config.json");
    config_warn(&g->config);
    return true;
}

static bool copy_root(stage *g, str package)
{
    const agent_settings *s = g->settings;
    str seen = arena_printf(g->arena, "%s/root_dir", package.ptr);
    str inside = arena_printf(g->arena, "%.*s/root_dir", STR_ARG(s->copy_dir));
    if (!seen.ptr || !inside.ptr)
        return err_memory(g->error);
    return !host_exists(seen) || host_copy_folder_inside(s->root, inside, STR_EMPTY, g->error);
}

static bool expected_files_are_there(stage *g, str package)
{
    for (size_t i = 0; i < g->config.expected_count; i++) {
        str name = g->config.expected_files[i];
        str path = arena_printf(g->arena, "%s/configmaps/%.*s", package.ptr, STR_ARG(name));
        if (!path.ptr)
            return err_memory(g->error);
        if (!host_exists(path))
            return err_set(g->error, "Expected config file %.*s not found in configmaps directory.",
                           STR_ARG(name));
    }
    return true;
}

bool stage_run(const agent_settings *s, run_signals *signals, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    if (!a)
        return err_memory(error);
    stage g = {.settings = s, .signals = signals, .arena = a, .error = error};
    str package = host_path(a, s->root, "%.*s", STR_ARG(s->copy_dir));
    bool uninstalls = s->mode == MODE_UNINSTALL || s->mode == MODE_UNINSTALL_CHECK;
    if (!package.ptr)
        return err_memory(error);
    return copy_package(&g, package) && load(&g, package) &&
           (uninstalls || (copy_root(&g, package) && expected_files_are_there(&g, package))) &&
           run_mode(&g);
}
