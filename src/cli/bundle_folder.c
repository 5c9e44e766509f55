/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/vec.h"

#define IGNORE_FILE ".fleetignore"

/* What the ignore files of a folder and of those above it name. */
typedef struct ignored {
    const struct ignored *up;
    str lines;
} ignored;

typedef struct reading {
    arena *arena;
    bundle_folder *into;
    problems *found;
    uint64_t bytes;
    bool bad;
} reading;

/* Always false. */
static bool report(reading *r, str path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool report(reading *r, str path, const char *format, ...)
{
    problem p = {.severity = SEVERITY_ERROR, .file = path};
    va_list args;
    va_start(args, format);
    problems_vaddf(r->found, &p, format, args);
    va_end(args);
    r->bad = true;
    return false;
}

static bool no_memory(reading *r)
{
    r->bad = true;
    return problems_memory(r->found);
}

/* ---- .fleetignore ---- */

static str without_trailing_blanks(str line)
{
    while (line.len > 1 &&
           (line.ptr[line.len - 1] == ' ' || line.ptr[line.len - 1] == '\t' ||
            line.ptr[line.len - 1] == '\r') &&
           line.ptr[line.len - 2] != '\\')
        line.len--;
    return line;
}

/* "DIR/..." is about folders of that name, anything else is a pattern for the last part. */
static bool line_matches(str line, const char *name, bool folder)
{
    char pattern[LIMIT_PATH_BYTES];
    if (line.len == 0 || line.ptr[0] == '#' || line.len >= sizeof pattern)
        return false;
    if (str_find(line, STR("/*")) != SIZE_MAX && str_find(line, STR("/*")) > 0)
        return folder && str_ends(line, STR("/*")) &&
               str_eq(str_part(line, 0, line.len - 2), str_of(name));
    memcpy(pattern, line.ptr, line.len);
    pattern[line.len] = 0;
    return fnmatch(pattern, name, FNM_PATHNAME) == 0;
}

static bool is_ignored(const ignored *list, const char *name, bool folder)
{
    for (; list; list = list->up) {
        str rest = list->lines;
        while (rest.len > 0)
            if (line_matches(without_trailing_blanks(str_cut(&rest, '\n')), name, folder))
                return true;
    }
    return false;
}

/* ---- files ---- */

static bool read_bytes(reading *r, int fd, str path, size_t size, str *ret)
{
    char *bytes = arena_alloc(r->arena, size + 1);
    size_t len = 0;
    if (!bytes)
        return no_memory(r);
    while (len < size) {
        ssize_t got = read(fd, bytes + len, size - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return report(r, path, "cannot be read: %s", strerror(errno));
        if (got == 0)
            break;
        len += (size_t)got;
    }
    *ret = (str){bytes, len};
    return true;
}

static bool read_file(reading *r, str path, str *ret)
{
    struct stat info;
    int fd = open(path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ELOOP)
        return report(r, path, "found a symbolic link, allowed files and folders");
    if (fd < 0)
        return report(r, path, "cannot be opened: %s", strerror(errno));
    bool good = false;
    if (fstat(fd, &info) != 0)
        report(r, path, "cannot be read: %s", strerror(errno));
    else if (!S_ISREG(info.st_mode))
        report(r, path, "found neither a file nor a folder");
    else if ((r->bytes += (uint64_t)info.st_size) > BUNDLE_FILE_BYTES_MAX)
        report(r, path, "found more than %u bytes in all files, which is the most",
               BUNDLE_FILE_BYTES_MAX);
    else
        good = read_bytes(r, fd, path, (size_t)info.st_size, ret);
    close(fd);
    return good;
}

static bool add_file(reading *r, str path, str name)
{
    bundle_file file = {.name = name, .path = path};
    if (r->into->len >= BUNDLE_FILES_MAX)
        return report(r, path, "found more than %u files, which is the most", BUNDLE_FILES_MAX);
    if (!read_file(r, path, &file.bytes))
        return false;
    return vec_push(r->into, file) || no_memory(r);
}

/* ---- folders ---- */

typedef struct place_in {
    str path; /* of the folder */
    str name; /* below the first one; empty for that */
    size_t depth;
    const ignored *above;
} place_in;

static void read_folder(reading *r, const place_in *in);

static void take_entry(reading *r, const place_in *in, const ignored *list, const char *entry)
{
    const char *slash = str_ends(in->path, STR("/")) ? "" : "/";
    str path = arena_printf(r->arena, "%.*s%s%s", STR_ARG(in->path), slash, entry);
    str name = in->name.len > 0 ? arena_printf(r->arena, "%.*s/%s", STR_ARG(in->name), entry)
                                : arena_str(r->arena, str_of(entry));
    struct stat info;
    if (!path.ptr || !name.ptr) {
        no_memory(r);
        return;
    }
    if (lstat(path.ptr, &info) != 0) {
        report(r, path, "cannot be read: %s", strerror(errno));
        return;
    }
    bool folder = S_ISDIR(info.st_mode);
    if (is_ignored(list, entry, folder))
        return;
    if (folder) {
        place_in below = {path, name, in->depth + 1, list};
        read_folder(r, &below);
    } else if (!str_utf8(name)) {
        report(r, path, "found a name that is no UTF-8");
    } else {
        add_file(r, path, name);
    }
}

static void read_folder(reading *r, const place_in *in)
{
    ignored own = {.up = in->above};
    str ignore_path = arena_printf(r->arena, "%.*s/" IGNORE_FILE, STR_ARG(in->path));
    if (in->depth > BUNDLE_FOLDER_DEPTH_MAX) {
        report(r, in->path, "found folders nested deeper than %u, which is the most",
               BUNDLE_FOLDER_DEPTH_MAX);
        return;
    }
    if (!ignore_path.ptr) {
        no_memory(r);
        return;
    }
    if (access(ignore_path.ptr, F_OK) == 0 && !read_file(r, ignore_path, &own.lines))
        return;
    DIR *dir = opendir(in->path.ptr);
    if (!dir) {
        report(r, in->path, "cannot be opened: %s", strerror(errno));
        return;
    }
    struct dirent *entry;
    while (r->into->len <= BUNDLE_FILES_MAX && (errno = 0, entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            take_entry(r, in, &own, entry->d_name);
    if (errno)
        report(r, in->path, "cannot be listed: %s", strerror(errno));
    closedir(dir);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const bundle_file *)a)->name, ((const bundle_file *)b)->name);
}

bool bundle_folder_read(arena *a, str path, bundle_folder *ret, problems *found)
{
    reading r = {.arena = a, .into = ret, .found = found};
    place_in first = {.path = arena_str(a, path), .name = STR_EMPTY};
    struct stat info;
    *ret = (bundle_folder){0};
    if (!first.path.ptr)
        return no_memory(&r);
    if (stat(first.path.ptr, &info) != 0)
        return report(&r, first.path, "cannot be opened: %s", strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return report(&r, first.path, "found no folder");
    read_folder(&r, &first);
    if (ret->len > 1)
        qsort(ret->at, ret->len, sizeof *ret->at, by_name);
    return !r.bad;
}

void bundle_folder_done(bundle_folder *f)
{
    vec_done(f);
}

const bundle_file *bundle_folder_find(const bundle_folder *f, str name)
{
    for (size_t i = 0; i < f->len; i++)
        if (str_eq(f->at[i].name, name))
            return &f->at[i];
    return NULL;
}
