/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/record.h"

#include <stdio.h>
#include <unistd.h>
#include <yyjson.h>

#include "agent/host_file.h"
#include "agent/stamp.h"
#include "base/base64.h"
#include "base/mem.h"

#define MARKER_BYTES_MAX (1u << 20)

/* ---- the marker ---- */

/* Code points that a Python list shows as \x, \u or \U although they are no ASCII: controls,
 * formats, separators and private ones. Those that have no meaning yet are left out: every Python
 * knows others of them. */
static const struct {
    uint32_t first, last;
} escaped_ranges[] = {
    {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
    {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},
    {0x205f, 0x206f},   {0x3000, 0x3000},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},
    {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe007f}, {0xf0000, 0x10ffff},
};

static bool is_escaped(uint32_t c)
{
    for (size_t i = 0; i < sizeof escaped_ranges / sizeof *escaped_ranges; i++)
        if (c >= escaped_ranges[i].first && c <= escaped_ranges[i].last)
            return true;
    return c < 0x20;
}

static void add_escaped(buf *out, uint32_t c)
{
    if (c == '\n')
        buf_addz(out, "\\n");
    else if (c == '\r')
        buf_addz(out, "\\r");
    else if (c == '\t')
        buf_addz(out, "\\t");
    else if (c < 0x100)
        buf_addf(out, "\\x%02x", c);
    else if (c < 0x10000)
        buf_addf(out, "\\u%04x", c);
    else
        buf_addf(out, "\\U%08x", c);
}

/* A text as Python shows it in a list. The text is valid UTF-8: it comes from a JSON document. */
static void add_quoted(buf *out, str text)
{
    bool has_single = str_find(text, STR("'")) != SIZE_MAX;
    bool has_double = str_find(text, STR("\"")) != SIZE_MAX;
    char quote = has_single && !has_double ? '"' : '\'';
    buf_addc(out, quote);
    for (size_t at = 0; at < text.len;) {
        size_t start = at;
        uint32_t c = str_utf8_next(text, &at);
        if (c == '\\' || c == (uint32_t)quote)
            buf_addc(out, '\\');
        if (is_escaped(c))
            add_escaped(out, c);
        else
            buf_add(out, str_part(text, start, at - start));
    }
    buf_addc(out, quote);
}

str record_marker(arena *a, const package_step *step)
{
    buf text = BUF(MARKER_BYTES_MAX), marker = BUF(2 * MARKER_BYTES_MAX);
    buf_addc(&text, '[');
    for (size_t i = 0; i < step->argument_count; i++) {
        buf_addz(&text, i > 0 ? ", " : "");
        add_quoted(&text, step->arguments[i]);
    }
    buf_addz(&text, "]_[");
    for (size_t i = 0; i < step->returncode_count; i++)
        buf_addf(&text, "%s%lld", i > 0 ? ", " : "", (long long)step->returncodes[i]);
    buf_addc(&text, ']');
    base64_encode(buf_str(&text), &marker);
    str ret = text.failed || marker.failed ? (str){0} : arena_str(a, buf_str(&marker));
    buf_done(&text);
    buf_done(&marker);
    return ret;
}

/* ---- flags ---- */

static bool write_at(str path, str content, err *error)
{
    return path.ptr ? host_write(path, content, error) : err_memory(error);
}

static str state_path(const agent_settings *s, arena *a, const char *folder, str name)
{
    return host_path(a, s->root, "%.*s/%s/%.*s", STR_ARG(s->state_dir), folder, STR_ARG(name));
}

static str flag_path(const agent_settings *s, const package_config *c, const package_step *step,
                     arena *a)
{
    str marker = record_marker(a, step);
    if (!marker.ptr)
        return marker;
    return host_path(a, s->root, "%.*s/flags/%.*s/%.*s/%.*s_%.*s", STR_ARG(s->state_dir),
                     STR_ARG(c->name), STR_ARG(c->version), STR_ARG(step->path), STR_ARG(marker));
}

bool record_start(const agent_settings *s, arena *a, err *error)
{
    return write_at(state_path(s, a, "flags", STR("START")), STR_EMPTY, error);
}

bool record_flag_exists(const agent_settings *s, const package_config *c, const package_step *step,
                        arena *a, bool *ret)
{
    str path = flag_path(s, c, step, a);
    *ret = path.ptr && host_exists(path);
    return path.ptr;
}

bool record_flag(const agent_settings *s, const package_config *c, const package_step *step,
                 arena *a, err *error)
{
    str content = arena_printf(a, "last_run: %s\nstep_always_runs: %s", stamp_utc().text,
                               step->idempotent ? "True" : "False");
    return content.ptr ? write_at(flag_path(s, c, step, a), content, error) : err_memory(error);
}

bool record_forget_flags(const agent_settings *s, const package_config *c, arena *a, err *error)
{
    for (size_t mode = 0; mode < PACKAGE_MODES; mode++)
        for (size_t i = 0; i < c->modes[mode].len; i++) {
            str path = flag_path(s, c, &c->modes[mode].at[i], a);
            if (!path.ptr)
                return err_memory(error);
            if (!host_remove(path, error))
                return false;
        }
    return true;
}

bool record_check_results(const agent_settings *s, str lines, arena *a, err *error)
{
    return write_at(state_path(s, a, "flags", STR("check_results")), lines, error);
}

bool record_all_checked(const agent_settings *s, arena *a, err *error)
{
    str name = arena_printf(a, "%s_ALL_CHECKED", mode_text(s->mode));
    return name.ptr ? write_at(state_path(s, a, "flags", name), STR_EMPTY, error)
                    : err_memory(error);
}

str record_interrupt_path(const agent_settings *s, str name, arena *a)
{
    return host_path(a, s->root, "%.*s/interrupts/flags/%.*s/%.*s.complete", STR_ARG(s->state_dir),
                     STR_ARG(s->resource_id), STR_ARG(name));
}

static str boot_path(const agent_settings *s, str name, arena *a)
{
    return host_path(a, s->root, "%.*s/interrupts/boots/%.*s/%.*s", STR_ARG(s->state_dir),
                     STR_ARG(s->resource_id), STR_ARG(name));
}

bool record_boot_is_same(const agent_settings *s, str name, arena *a)
{
    err ignored;
    str path = boot_path(s, name, a), boot = host_boot(a, s->root), noted = STR_EMPTY;
    return path.ptr && boot.len > 0 && host_read(path, a, HOST_BOOT_BYTES_MAX, &noted, &ignored) &&
           str_eq(noted, boot);
}

bool record_boot(const agent_settings *s, str name, arena *a, err *error)
{
    str path = boot_path(s, name, a), boot = host_boot(a, s->root);
    if (!path.ptr)
        return err_memory(error);
    return boot.len == 0 || host_write(path, boot, error);
}

/* ---- history ---- */

static void document_free(yyjson_doc **document)
{
    yyjson_doc_free(*document);
}

static bool is_history(yyjson_val *root)
{
    yyjson_val *list = yyjson_obj_get(root, "history"), *entry;
    size_t i, most;
    if (!yyjson_is_str(yyjson_obj_get(root, "current-version")) || !yyjson_is_arr(list))
        return false;
    yyjson_arr_foreach(list, i, most, entry)
    {
        if (!yyjson_is_str(yyjson_obj_get(entry, "version")) ||
            !yyjson_is_str(yyjson_obj_get(entry, "time")))
            return false;
    }
    return true;
}

/* *ret is NULL when there is none, or none that can be read. */
static bool read_history(str path, arena *a, yyjson_doc **ret, err *error)
{
    str json;
    *ret = NULL;
    if (!host_read(path, a, HISTORY_BYTES_MAX, &json, error) && error->text[0] == '\0')
        return true;
    if (error->text[0] == '\0')
        *ret = yyjson_read(json.ptr, json.len, 0);
    if (*ret && is_history(yyjson_doc_get_root(*ret)))
        return true;
    yyjson_doc_free(*ret);
    *ret = NULL;
    str aside = arena_printf(a, "%s.backup", path.ptr);
    if (!aside.ptr)
        return err_memory(error);
    fprintf(stderr, "warning: %s: cannot be read, kept as %s\n", path.ptr, aside.ptr);
    error->text[0] = '\0';
    return rename(path.ptr, aside.ptr) == 0 || err_set(error, "%s: cannot be renamed", path.ptr);
}

static str history_path(const agent_settings *s, str package, arena *a)
{
    str name = arena_printf(a, "%.*s.json", STR_ARG(package));
    return name.ptr ? state_path(s, a, "history", name) : name;
}

bool record_version(const agent_settings *s, str package, arena *a, str *ret, err *error)
{
    str path = history_path(s, package, a);
    if (!path.ptr)
        return err_memory(error);
    scoped(document_free) yyjson_doc *document = NULL;
    if (!read_history(path, a, &document, error))
        return false;
    yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(document), "current-version");
    *ret = v ? arena_str(a, str_of(yyjson_get_str(v))) : VERSION_UNKNOWN;
    return ret->ptr || err_memory(error);
}

bool record_add_version(const agent_settings *s, str package, str version, arena *a, err *error)
{
    str path = history_path(s, package, a);
    if (!path.ptr)
        return err_memory(error);
    scoped(document_free) yyjson_doc *document = NULL;
    if (!read_history(path, a, &document, error))
        return false;
    buf out = BUF(HISTORY_BYTES_MAX);
    buf_addz(&out, "{\"current-version\": ");
    buf_add_json(&out, version);
    buf_addz(&out, ", \"history\": [{\"version\": ");
    buf_add_json(&out, version);
    buf_addf(&out, ", \"time\": \"%s\"}", stamp_utc().text);
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(document), "history"), *entry;
    size_t i, most;
    yyjson_arr_foreach(list, i, most, entry)
    {
        if (i + 1 >= HISTORY_ENTRIES_MAX)
            break;
        buf_addz(&out, ", {\"version\": ");
        buf_add_json(&out, str_of(yyjson_get_str(yyjson_obj_get(entry, "version"))));
        buf_addz(&out, ", \"time\": ");
        buf_add_json(&out, str_of(yyjson_get_str(yyjson_obj_get(entry, "time"))));
        buf_addc(&out, '}');
    }
    buf_addz(&out, "]}");
    bool good = out.failed ? err_memory(error) : host_write(path, buf_str(&out), error);
    buf_done(&out);
    return good;
}
