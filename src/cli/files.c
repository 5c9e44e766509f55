/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/vec.h"

#define READ_BYTES_MIN 65536u
#define OUT_OF_MEMORY "out of memory"
#define TOO_BIG "found more than 1 GiB, which is the most a file may have"
#define TOO_MANY "found more than 100000 files, which is the most"
_Static_assert(LIMIT_FILE_BYTES == 1u << 30 && LIMIT_FILES == 100000, "the two messages above");

struct files {
    VEC(file) list;
    VEC(char *) bytes; /* of the files in the list */
    arena *names;
    files_trouble *trouble;
    void *context;
    bool stdin_read;
};

typedef VEC(str) name_list;

files *files_new(files_trouble *trouble, void *context)
{
    files *f = mem_zalloc(sizeof *f);
    if (!f)
        return NULL;
    f->trouble = trouble;
    f->context = context;
    f->names = arena_new(0);
    return f->names ? f : files_free(f);
}

files *files_free(files *f)
{
    if (!f)
        return NULL;
    for (size_t i = 0; i < f->bytes.len; i++)
        mem_free(f->bytes.at[i]);
    vec_done(&f->bytes);
    vec_done(&f->list);
    arena_free(f->names);
    return mem_free(f);
}

void files_cleanup(files **f)
{
    *f = files_free(*f);
}

size_t files_count(const files *f)
{
    return f->list.len;
}

const file *files_at(const files *f, size_t index)
{
    return &f->list.at[index];
}

/* Always false. */
static bool report(files *f, str path, const char *message)
{
    f->trouble(f->context, path, message);
    return false;
}

static bool report_errno(files *f, str path, const char *what)
{
    char message[256];
    snprintf(message, sizeof message, "%s: %s", what, strerror(errno));
    return report(f, path, message);
}

/* Reads to the end. False with errno; EFBIG when there is more than LIMIT_FILE_BYTES. The bytes are
 * the caller's in either case. */
static bool read_all(int fd, size_t expected, char **bytes, size_t *len)
{
    size_t cap = 0;
    for (;;) {
        size_t room = *len + READ_BYTES_MIN;
        if (!vec_room((void **)bytes, &cap, room > expected ? room : expected + 1, 1)) {
            errno = ENOMEM;
            return false;
        }
        ssize_t got = read(fd, *bytes + *len, cap - *len);
        if (got < 0 && errno != EINTR)
            return false;
        if (got == 0)
            return true;
        *len += got > 0 ? (size_t)got : 0;
        if (*len > LIMIT_FILE_BYTES) {
            errno = EFBIG;
            return false;
        }
    }
}

/* name is in the arena. */
static bool keep(files *f, str name, int fd, size_t expected)
{
    char *bytes = NULL;
    size_t len = 0;
    bool good = read_all(fd, expected, &bytes, &len);
    if (!good && errno == EFBIG)
        report(f, name, TOO_BIG);
    else if (!good)
        report_errno(f, name, "cannot be read");
    else if (!vec_reserve(&f->bytes, f->bytes.len + 1) ||
             !vec_push(&f->list, (file){name, {bytes, len}}))
        good = report(f, name, OUT_OF_MEMORY);
    else
        f->bytes.at[f->bytes.len++] = bytes;
    if (!good)
        mem_free(bytes);
    return good;
}

static bool add_stdin(files *f)
{
    str name = STR(FILES_STDIN_NAME);
    if (f->stdin_read)
        return report(f, name, "found twice, standard input can be read once");
    f->stdin_read = true;
    return keep(f, name, STDIN_FILENO, 0);
}

static bool add_file(files *f, str path)
{
    struct stat info;
    if (f->list.len >= LIMIT_FILES)
        return report(f, path, TOO_MANY);
    int fd = open(path.ptr, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return report_errno(f, path, "cannot be opened");
    bool good = fstat(fd, &info) != 0 ? report_errno(f, path, "cannot be read")
                : (uint64_t)info.st_size > LIMIT_FILE_BYTES
                    ? report(f, path, TOO_BIG)
                    : keep(f, path, fd, (size_t)info.st_size);
    close(fd);
    return good;
}

static bool of_interest(str name)
{
    return str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")) ||
           str_ends(name, STR(".json"));
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* Paths of the files in a folder, sorted. */
static bool list_folder(files *f, DIR *dir, str path, name_list *names)
{
    const char *slash = str_ends(path, STR("/")) ? "" : "/";
    struct dirent *entry;
    while ((errno = 0, entry = readdir(dir))) {
        if (!of_interest(str_of(entry->d_name)))
            continue;
        if (names->len >= LIMIT_FILES)
            return report(f, path, TOO_MANY);
        str name = arena_printf(f->names, "%s%s%s", path.ptr, slash, entry->d_name);
        if (!name.ptr || !vec_push(names, name))
            return report(f, path, OUT_OF_MEMORY);
    }
    if (errno)
        return report_errno(f, path, "cannot be listed");
    if (names->len == 0)
        return report(f, path, "found no *.yaml, *.yml or *.json file in this folder");
    qsort(names->at, names->len, sizeof *names->at, by_name);
    return true;
}

static bool is_folder(str path)
{
    struct stat info;
    return stat(path.ptr, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool add_folder(files *f, str path)
{
    DIR *dir = opendir(path.ptr);
    if (!dir)
        return report_errno(f, path, "cannot be opened");
    name_list names = {0};
    bool good = list_folder(f, dir, path, &names);
    closedir(dir);
    for (size_t i = 0; i < names.len; i++)
        if (!is_folder(names.at[i]) && !add_file(f, names.at[i]))
            good = false;
    vec_done(&names);
    return good;
}

bool files_add(files *f, str path)
{
    if (str_eq(path, STR("-")))
        return add_stdin(f);
    str name = arena_str(f->names, path);
    if (!name.ptr)
        return report(f, path, OUT_OF_MEMORY);
    return is_folder(name) ? add_folder(f, name) : add_file(f, name);
}
