/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/config.h"

#include <stdio.h>
#include <unistd.h>
#include <yyjson.h>

#include "base/mem.h"

/* ---- values ---- */

typedef struct reading {
    arena *arena;
    err *error;
    char where[256]; /* of the value that is looked at */
} reading;

static bool wrong(reading *r, const char *key, const char *allowed)
{
    return err_set(r->error, "%s%s%s: allowed: %s", r->where, r->where[0] ? "." : "", key, allowed);
}

/* Of a key that stands there twice the last one counts, as it always has. */
static yyjson_val *member(yyjson_val *object, const char *key)
{
    yyjson_val *name, *value, *found = NULL;
    size_t i, most;
    yyjson_obj_foreach(object, i, most, name, value)
    {
        if (yyjson_equals_str(name, key))
            found = value;
    }
    return found;
}

static bool take_text(reading *r, yyjson_val *object, const char *key, str *ret)
{
    yyjson_val *v = member(object, key);
    if (!yyjson_is_str(v))
        return wrong(r, key, "a text");
    str text = {yyjson_get_str(v), yyjson_get_len(v)};
    if (memchr(text.ptr, '\0', text.len))
        return wrong(r, key, "a text without zero bytes");
    *ret = arena_str(r->arena, text);
    return ret->ptr || err_memory(r->error);
}

static bool take_bool(reading *r, yyjson_val *object, const char *key, bool *ret)
{
    yyjson_val *v = member(object, key);
    *ret = yyjson_get_bool(v);
    return yyjson_is_bool(v) || wrong(r, key, "true or false");
}

static bool take_texts(reading *r, yyjson_val *object, const char *key, str **ret, size_t *ret_len)
{
    yyjson_val *list = member(object, key), *v;
    if (!yyjson_is_arr(list))
        return wrong(r, key, "a list of texts");
    *ret = ARENA_ARRAY(r->arena, yyjson_arr_size(list) + 1, str);
    if (!*ret)
        return err_memory(r->error);
    size_t i, most;
    yyjson_arr_foreach(list, i, most, v)
    {
        if (!yyjson_is_str(v) || memchr(yyjson_get_str(v), '\0', yyjson_get_len(v)))
            return wrong(r, key, "a list of texts");
        (*ret)[i] = arena_str(r->arena, (str){yyjson_get_str(v), yyjson_get_len(v)});
        if (!(*ret)[i].ptr)
            return err_memory(r->error);
    }
    *ret_len = yyjson_arr_size(list);
    return true;
}

/* ---- steps ---- */

static bool name_is_good(str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '_' && c != '-' && c != '.')
            return false;
    }
    return name.len > 0;
}

static bool take_returncodes(reading *r, yyjson_val *object, package_step *s)
{
    yyjson_val *list = member(object, "returncodes"), *v;
    s->returncode_count = yyjson_arr_size(list);
    if (s->returncode_count == 0)
        return wrong(r, "returncodes", "a list of at least one integer");
    s->returncodes = ARENA_ARRAY(r->arena, s->returncode_count, int64_t);
    if (!s->returncodes)
        return err_memory(r->error);
    size_t i, most;
    yyjson_arr_foreach(list, i, most, v)
    {
        if (!yyjson_is_int(v))
            return wrong(r, "returncodes", "a list of at least one integer");
        s->returncodes[i] = yyjson_get_sint(v);
    }
    return true;
}

static bool take_variables(reading *r, yyjson_val *object, package_step *s)
{
    yyjson_val *map = member(object, "env"), *key, *v;
    if (!map)
        return true;
    if (!yyjson_is_obj(map))
        return wrong(r, "env", "an object of texts");
    s->variables = ARENA_ARRAY(r->arena, yyjson_obj_size(map) + 1, step_variable);
    if (!s->variables)
        return err_memory(r->error);
    size_t i, most;
    yyjson_obj_foreach(map, i, most, key, v)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        str value = {yyjson_get_str(v), yyjson_get_len(v)};
        if (!value.ptr || name.len == 0 || memchr(name.ptr, '=', name.len) ||
            memchr(name.ptr, '\0', name.len) || memchr(value.ptr, '\0', value.len))
            return wrong(r, "env", "an object of texts, with names of variables");
        step_variable *to = &s->variables[s->variable_count++];
        to->name = arena_str(r->arena, name);
        to->value = arena_str(r->arena, value);
        if (!to->name.ptr || !to->value.ptr)
            return err_memory(r->error);
    }
    return true;
}

static bool step_keys_are_known(reading *r, yyjson_val *object)
{
    static const char *const known[] = {"name",         "path",    "arguments",
                                        "returncodes",  "on_host", "idempotence",
                                        "upgrade_step", "env",     "requires_interrupt"};
    yyjson_val *key, *v;
    size_t i, most;
    yyjson_obj_foreach(object, i, most, key, v)
    {
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || yyjson_equals_str(key, known[k]);
        if (!found)
            return wrong(r, str_shown(str_of(yyjson_get_str(key))).text,
                         "name, path, arguments, returncodes, on_host, idempotence, upgrade_step, "
                         "env");
    }
    return true;
}

static bool take_step(reading *r, yyjson_val *object, agent_mode mode, package_step *s)
{
    if (!yyjson_is_obj(object))
        return err_set(r->error, "%s: allowed: an object", r->where);
    if (!step_keys_are_known(r, object) || !take_text(r, object, "name", &s->name) ||
        !take_text(r, object, "path", &s->path) ||
        !take_texts(r, object, "arguments", &s->arguments, &s->argument_count) ||
        !take_returncodes(r, object, s) || !take_bool(r, object, "on_host", &s->on_host) ||
        !take_bool(r, object, "idempotence", &s->idempotent) ||
        !take_bool(r, object, "upgrade_step", &s->upgrade_step) || !take_variables(r, object, s))
        return false;
    if (!name_is_good(s->name))
        return wrong(r, "name", "letters, digits, \"_\", \"-\" and \".\"");
    if (s->path.len == 0)
        return wrong(r, "path", "a path below skyhook_dir");
    if (s->upgrade_step && mode != MODE_UPGRADE && mode != MODE_UPGRADE_CHECK)
        return wrong(r, "upgrade_step", "true only in upgrade and upgrade-check");
    if (s->upgrade_step && s->argument_count > 0)
        return wrong(r, "arguments", "none for an upgrade_step");
    return true;
}

static bool take_mode(reading *r, yyjson_val *list, agent_mode mode, package_config *c)
{
    step_list *steps = &c->modes[mode];
    if (!yyjson_is_arr(list) || yyjson_arr_size(list) > CONFIG_STEPS_MAX)
        return err_set(r->error, "modes.%s: allowed: a list of at most %d steps", mode_text(mode),
                       CONFIG_STEPS_MAX);
    steps->len = yyjson_arr_size(list);
    steps->at = ARENA_ARRAY(r->arena, steps->len + 1, package_step);
    if (!steps->at)
        return err_memory(r->error);
    yyjson_val *object;
    size_t i, most;
    yyjson_arr_foreach(list, i, most, object)
    {
        snprintf(r->where, sizeof r->where, "modes.%s[%zu]", mode_text(mode), i);
        if (!take_step(r, object, mode, &steps->at[i]))
            return false;
    }
    r->where[0] = '\0';
    return true;
}

/* ---- the whole ---- */

/* MAJOR.MINOR.PATCH without leading zeros, then -PRERELEASE and +BUILD. */
static bool version_is_strict(str text)
{
    size_t at = 0;
    for (int part = 0; part < 3; part++) {
        size_t start = at;
        while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9')
            at++;
        if (at == start || (text.ptr[start] == '0' && at - start > 1))
            return false;
        if (part < 2 && (at >= text.len || text.ptr[at++] != '.'))
            return false;
    }
    bool build = false;
    while (at < text.len) {
        char c = text.ptr[at];
        if ((c != '-' && c != '+') || build)
            return false;
        build = c == '+';
        bool more = true;
        while (more) { /* identifiers with dots in between */
            size_t start = ++at;
            bool digits = true;
            for (; at < text.len; at++) {
                c = text.ptr[at];
                if (c == '.' || c == '+' || !(name_is_good((str){&c, 1}) && c != '_'))
                    break;
                digits = digits && c >= '0' && c <= '9';
            }
            if (at == start || (!build && digits && text.ptr[start] == '0' && at - start > 1))
                return false;
            more = at < text.len && text.ptr[at] == '.';
        }
        if (at < text.len && text.ptr[at] != '+')
            return false;
    }
    return true;
}

static bool modes_are_checked(const package_config *c, err *error)
{
    size_t steps = 0, main_steps = 0;
    for (agent_mode mode = 0; mode < PACKAGE_MODES; mode++) {
        steps += c->modes[mode].len;
        main_steps += mode_checks(mode) ? 0 : c->modes[mode].len;
    }
    if (steps == 0)
        return err_set(error, "modes: there are no steps");
    if (main_steps == 0)
        return err_set(error, "modes: there are only checks, and nothing to check");
    for (agent_mode mode = 0; mode < PACKAGE_MODES; mode += 2)
        if (c->modes[mode].len > 0 && c->modes[mode + 1].len == 0)
            return err_set(error,
                           "Couldn't validate steps. There are no checks for any of the %s steps.",
                           mode_text(mode));
    return true;
}

static bool take_config(reading *r, yyjson_val *root, package_config *c)
{
    str schema;
    if (!yyjson_is_obj(root))
        return err_set(r->error, "allowed: an object");
    if (!take_text(r, root, "schema_version", &schema))
        return false;
    if (!str_eq(schema, STR("v1")))
        return wrong(r, "schema_version", "v1");
    if (!take_text(r, root, "package_name", &c->name) ||
        !take_text(r, root, "package_version", &c->version) ||
        !take_texts(r, root, "expected_config_files", &c->expected_files, &c->expected_count))
        return false;
    if (c->name.len == 0 || str_find(c->name, STR("/")) != SIZE_MAX ||
        str_starts(c->name, STR(".")))
        return wrong(r, "package_name", "a name that can be a folder's");
    if (!version_is_strict(c->version))
        return wrong(r, "package_version", "a semantic version such as 1.2.3");
    yyjson_val *modes = member(root, "modes"), *key, *list;
    if (!yyjson_is_obj(modes))
        return wrong(r, "modes", "an object of lists of steps");
    size_t i, most;
    yyjson_obj_foreach(modes, i, most, key, list)
    {
        agent_mode mode = mode_of(str_of(yyjson_get_str(key)));
        if (mode >= PACKAGE_MODES)
            return err_set(r->error,
                           "modes: found \"%s\", allowed: apply, config, post-interrupt, "
                           "uninstall, upgrade, and each with -check",
                           str_shown(str_of(yyjson_get_str(key))).text);
        if (!take_mode(r, list, mode, c))
            return false;
    }
    return modes_are_checked(c, r->error);
}

static void document_free(yyjson_doc **document)
{
    yyjson_doc_free(*document);
}

bool config_parse(str json, arena *a, package_config *ret, err *error)
{
    yyjson_read_err problem;
    scoped(document_free) yyjson_doc *document =
        yyjson_read_opts((char *)(uintptr_t)json.ptr, json.len, 0, NULL, &problem);
    if (!document)
        return err_set(error, "at byte %zu: %s", problem.pos, problem.msg);
    reading r = {.arena = a, .error = error};
    package_config c = {0};
    if (!take_config(&r, yyjson_doc_get_root(document), &c))
        return false;
    *ret = c;
    return true;
}

bool config_check_files(const package_config *c, str steps_dir, arena *a, err *error)
{
    buf missing = BUF(LIMIT_ERR_BYTES);
    bool good = true;
    for (size_t mode = 0; good && mode < PACKAGE_MODES; mode++)
        for (size_t i = 0; good && i < c->modes[mode].len; i++) {
            str step = c->modes[mode].at[i].path;
            str path = arena_printf(a, "%.*s/%.*s", STR_ARG(steps_dir), STR_ARG(step));
            good = path.ptr || err_memory(error);
            if (good && access(path.ptr, F_OK) != 0)
                buf_addf(&missing, "%s%.*s", missing.len > 0 ? ", " : "", STR_ARG(step));
        }
    if (good && missing.len > 0)
        good = err_set(error, "Following steps did not exist:%.*s", STR_ARG(buf_str(&missing)));
    buf_done(&missing);
    return good;
}

/* "a/install.sh" and "a/install_check.sh" */
static bool is_check_of(str check, str path)
{
    size_t dot = path.len;
    while (dot > 0 && path.ptr[dot - 1] != '.' && path.ptr[dot - 1] != '/')
        dot--;
    size_t stem = dot > 0 && path.ptr[dot - 1] == '.' ? dot - 1 : path.len;
    static const str middle = {"_check", 6};
    return check.len == path.len + middle.len && str_starts(check, str_part(path, 0, stem)) &&
           str_starts(str_part(check, stem, SIZE_MAX), middle) &&
           str_ends(check, str_part(path, stem, SIZE_MAX));
}

void config_warn(const package_config *c)
{
    for (size_t mode = 0; mode < PACKAGE_MODES; mode += 2)
        for (size_t i = 0; i < c->modes[mode].len; i++) {
            bool found = false;
            for (size_t k = 0; k < c->modes[mode + 1].len; k++)
                found =
                    found || is_check_of(c->modes[mode + 1].at[k].path, c->modes[mode].at[i].path);
            if (!found)
                fprintf(stderr, "warning: %s: step %.*s has no check of its own\n",
                        mode_text((agent_mode)mode), STR_ARG(c->modes[mode].at[i].path));
        }
}
