/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings.h"

#include <stdlib.h>

#include "base/num.h"

#define LEGACY_ROOT STR("/root")

static const char *const mode_texts[] = {
#define X(mode, text) [MODE_##mode] = text,
    AGENT_MODES(X)
#undef X
        [MODE_UNKNOWN] = "unknown",
};

const char *mode_text(agent_mode mode)
{
    return mode_texts[mode];
}

agent_mode mode_of(str text)
{
    for (agent_mode mode = 0; mode < MODE_UNKNOWN; mode++)
        if (str_eq(text, str_of(mode_texts[mode])))
            return mode;
    return MODE_UNKNOWN;
}

static str variable(const char *name, str otherwise)
{
    const char *value = getenv(name);
    return value ? str_of(value) : otherwise;
}

static bool is_true(const char *name, bool otherwise)
{
    str value = variable(name, STR_EMPTY);
    if (value.len == 0)
        return otherwise;
    return str_eq(value, STR("true")) || str_eq(value, STR("True")) || str_eq(value, STR("1"));
}

static bool number(const char *name, int64_t most, int64_t *value, err *error)
{
    str text = variable(name, STR_EMPTY);
    int64_t found;
    if (text.len == 0)
        return true;
    if (!num_parse(text, &found) || found < 0 || found > most)
        return err_set(error, "%s: found \"%s\", allowed 0 to %lld", name, str_shown(text).text,
                       (long long)most);
    *value = found;
    return true;
}

static bool read_places(int count, char *const *arguments, agent_settings *s, err *error)
{
    int wanted = s->mode == MODE_INTERRUPT ? 4 : 3;
    if (count != wanted && count != wanted - 1)
        return err_set(error,
                       "found %d arguments; allowed: MODE ROOT COPYDIR, or interrupt ROOT "
                       "COPYDIR DATA",
                       count);
    int at = 1;
    s->root = count == wanted ? str_of(arguments[at++]) : LEGACY_ROOT;
    s->copy_dir = str_of(arguments[at++]);
    s->interrupt_data = at < count ? str_of(arguments[at]) : STR_EMPTY;
    if (!str_starts(s->root, STR("/")))
        return err_set(error, "ROOT: found \"%s\", allowed: an absolute path",
                       str_shown(s->root).text);
    if (!str_starts(s->copy_dir, STR("/")))
        return err_set(error, "COPYDIR: found \"%s\", allowed: an absolute path",
                       str_shown(s->copy_dir).text);
    while (s->root.len > 0 && s->root.ptr[s->root.len - 1] == '/')
        s->root.len--; /* "/" becomes "", which is right in front of an absolute path */
    return true;
}

static bool read_resource_id(agent_settings *s, err *error)
{
    s->resource_id = variable("SKYHOOK_RESOURCE_ID", STR_EMPTY);
    str rest = s->resource_id;
    str resource = str_cut(&rest, '_');
    s->package = str_cut(&rest, '_');
    s->version = str_cut(&rest, '_');
    bool good = resource.len > 0 && s->package.len > 0 && s->version.len > 0 && !rest.ptr &&
                str_find(s->resource_id, STR("/")) == SIZE_MAX;
    return good ||
           err_set(error, "SKYHOOK_RESOURCE_ID: found \"%s\", allowed: RESOURCE_PACKAGE_VERSION",
                   str_shown(s->resource_id).text);
}

bool settings_read(int count, char *const *arguments, agent_settings *ret, err *error)
{
    if (count < 1)
        return err_set(error, "a mode is missing; allowed: MODE ROOT COPYDIR, or interrupt ROOT "
                              "COPYDIR DATA");
    agent_settings s = {.mode = mode_of(str_of(arguments[0]))};
    int64_t buffer_bytes = AGENT_BUFFER_BYTES;
    s.grace_seconds = AGENT_GRACE_SECONDS;
    s.data_dir = variable("SKYHOOK_DATA_DIR", STR("/skyhook-package"));
    s.state_dir = variable("SKYHOOK_ROOT_DIR", STR("/etc/skyhook"));
    s.log_dir = variable("SKYHOOK_LOG_DIR", STR("/var/log/skyhook"));
    s.write_logs = is_true("SKYHOOK_AGENT_WRITE_LOGS", true);
    s.copy_resolv = is_true("COPY_RESOLV", true);
    s.always_run = is_true("OVERLAY_ALWAYS_RUN_STEP", false);
    bool good =
        s.mode == MODE_UNKNOWN ||
        (read_places(count, arguments, &s, error) && read_resource_id(&s, error) &&
         number("SKYHOOK_AGENT_BUFFER_LIMIT", AGENT_BUFFER_BYTES_MAX, &buffer_bytes, error) &&
         number("SKYHOOK_AGENT_GRACE_SECONDS", AGENT_GRACE_SECONDS_MAX, &s.grace_seconds, error));
    s.buffer_bytes = buffer_bytes > 0 ? (size_t)buffer_bytes : AGENT_BUFFER_BYTES;
    if (good)
        *ret = s;
    return good;
}
