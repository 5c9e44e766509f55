/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define COPY_BYTES 65536
#define NEW_PREFIX ".drover-new-"

str host_path(arena *a, str root, const char *format, ...)
{
    char rest[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(rest, sizeof rest, format, arguments);
    va_end(arguments);
    if (len < 0 || (size_t)len >= sizeof rest)
        return (str){0};
    return arena_printf(a, "%.*s%s%s", STR_ARG(root), rest[0] == '/' ? "" : "/", rest);
}

bool host_exists(str path)
{
    return access(path.ptr, F_OK) == 0;
}

static bool failed(err *error, const char *path, const char *what)
{
    return err_set(error, "%s: %s: %s", path, what, strerror(errno));
}

bool host_make_parents(str path, err *error)
{
    char part[PATH_MAX];
    if (path.len >= sizeof part)
        return err_set(error, "%s: the path is too long", str_shown(path).text);
    for (size_t i = 1; i < path.len; i++) {
        if (path.ptr[i] != '/')
            continue;
        memcpy(part, path.ptr, i);
        part[i] = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return failed(error, part, "cannot make the folder");
    }
    return true;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bool write_all(int fd, str text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text = str_part(text, (size_t)n, SIZE_MAX);
    }
    return true;
}

/* A name in a folder is durable with the folder. Where that cannot be had the file is there. */
static void sync_folder(const char *path)
{
    char part[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (len == 0 || len >= sizeof part)
        return;
    memcpy(part, path, len);
    part[len] = '\0';
    scoped(close_fd) int fd = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        fsync(fd);
}

/* A path beside this one, where the new content stands until it takes the name over. It is nobody
 * else's: agents of several packages write the same file at the same time. */
static bool path_beside(const char *path, char ret[PATH_MAX], err *error)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return failed(error, path, "no random number for a name beside it");
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    int len = snprintf(ret, PATH_MAX, "%.*s" NEW_PREFIX "%016" PRIx64, folder, path, random);
    return len < PATH_MAX || err_set(error, "%s: the path is too long", path);
}

bool host_write(str path, str content, err *error)
{
    char new_path[PATH_MAX];
    if (!path_beside(path.ptr, new_path, error) || !host_make_parents(path, error))
        return false;
    scoped(close_fd) int fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return failed(error, path.ptr, "cannot write");
    if (write_all(fd, content) && fsync(fd) == 0 && rename(new_path, path.ptr) == 0) {
        sync_folder(path.ptr);
        return true;
    }
    failed(error, path.ptr, "cannot write");
    unlink(new_path);
    return false;
}

bool host_read(str path, arena *a, size_t max, str *ret, err *error)
{
    error->text[0] = '\0';
    scoped(close_fd) int fd = open(path.ptr, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? false : failed(error, path.ptr, "cannot read");
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return err_set(error, "%s: not a file", path.ptr);
    if ((size_t)about.st_size > max)
        return err_set(error, "%s: %lld bytes, allowed %zu", path.ptr, (long long)about.st_size,
                       max);
    char *bytes = arena_alloc(a, (size_t)about.st_size + 1);
    if (!bytes)
        return err_memory(error);
    size_t len = 0;
    while (len < (size_t)about.st_size) {
        ssize_t n = read(fd, bytes + len, (size_t)about.st_size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(error, path.ptr, "cannot read");
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *ret = (str){bytes, len};
    return true;
}

/* A file of the kernel's, which has no size. */
str host_boot(arena *a, str root)
{
    char bytes[HOST_BOOT_BYTES_MAX];
    str path = host_path(a, root, "/proc/sys/kernel/random/boot_id");
    scoped(close_fd) int fd = path.ptr ? open(path.ptr, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, bytes, sizeof bytes) : 0;
    str boot = n > 0 ? arena_str(a, str_trim((str){bytes, (size_t)n})) : STR_EMPTY;
    return boot.ptr ? boot : STR_EMPTY;
}

bool host_remove(str path, err *error)
{
    return unlink(path.ptr) == 0 || errno == ENOENT || errno == ENOTDIR ||
           failed(error, path.ptr, "cannot remove");
}

/* ---- folders ---- */

static bool copy_bytes(int from, int to)
{
    char bytes[COPY_BYTES];
    for (;;) {
        ssize_t n = read(from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        if (!write_all(to, (str){bytes, (size_t)n}))
            return false;
    }
}

/* A program that runs keeps its file: the new one takes over its name. */
static bool copy_file(const char *from, const char *to, const struct stat *about, err *error)
{
    char new_path[PATH_MAX];
    if (!path_beside(to, new_path, error))
        return false;
    scoped(close_fd) int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return failed(error, from, "cannot read");
    scoped(close_fd) int out = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const struct timespec times[] = {about->st_atim, about->st_mtim};
    if (out >= 0 && copy_bytes(in, out) && fchmod(out, about->st_mode & 07777) == 0 &&
        futimens(out, times) == 0 && rename(new_path, to) == 0)
        return true;
    failed(error, to, "cannot write");
    unlink(new_path);
    return false;
}

static bool copy_link(const char *from, const char *to, err *error)
{
    char target[PATH_MAX], new_path[PATH_MAX];
    ssize_t len = readlink(from, target, sizeof target - 1);
    if (len < 0)
        return failed(error, from, "cannot read");
    target[len] = '\0';
    if (!path_beside(to, new_path, error))
        return false;
    if (symlink(target, new_path) == 0 && rename(new_path, to) == 0)
        return true;
    failed(error, to, "cannot write");
    unlink(new_path);
    return false;
}

static bool copy_folder(const char *from, const char *to, int depth, err *error);

static bool copy_entry(const char *from, const char *to, int depth, err *error)
{
    struct stat about;
    if (lstat(from, &about) != 0)
        return failed(error, from, "cannot read");
    if (S_ISDIR(about.st_mode)) {
        bool made = mkdir(to, about.st_mode & 07777) == 0;
        if (made ? chmod(to, about.st_mode & 07777) != 0 : errno != EEXIST)
            return failed(error, to, "cannot make the folder");
        return copy_folder(from, to, depth + 1, error);
    }
    if (S_ISLNK(about.st_mode))
        return copy_link(from, to, error);
    if (S_ISREG(about.st_mode))
        return copy_file(from, to, &about, error);
    return true; /* devices, sockets and pipes are not content */
}

static void close_folder(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

static bool copy_folder(const char *from, const char *to, int depth, err *error)
{
    if (depth > HOST_FOLDER_DEPTH_MAX)
        return err_set(error, "%s: folders more than %d deep", from, HOST_FOLDER_DEPTH_MAX);
    scoped(close_folder) DIR *folder = opendir(from);
    if (!folder)
        return failed(error, from, "cannot read the folder");
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        if (str_eq(str_of(entry->d_name), STR(".")) || str_eq(str_of(entry->d_name), STR("..")))
            continue;
        char a[PATH_MAX], b[PATH_MAX];
        if ((size_t)snprintf(a, sizeof a, "%s/%s", from, entry->d_name) >= sizeof a ||
            (size_t)snprintf(b, sizeof b, "%s/%s", to, entry->d_name) >= sizeof b)
            return err_set(error, "%s: the path is too long", from);
        if (!copy_entry(a, b, depth, error))
            return false;
    }
    return true;
}

bool host_copy_folder(str from, str to, err *error)
{
    if (!host_make_parents(to, error))
        return false;
    if (mkdir(to.len > 0 ? to.ptr : "/", 0755) != 0 && errno != EEXIST)
        return failed(error, to.ptr, "cannot make the folder");
    return copy_folder(from.ptr, to.ptr, 0, error);
}

bool host_enter(str root, err *error)
{
    char path[PATH_MAX];
    if (root.len == 0)
        return true;
    if ((size_t)snprintf(path, sizeof path, "%.*s", STR_ARG(root)) >= sizeof path)
        return err_set(error, "%s: the path is too long", str_shown(root).text);
    if (chroot(path) != 0)
        return failed(error, path, "cannot make it the root");
    return chdir("/") == 0 || failed(error, path, "cannot enter");
}

bool host_copy_folder_inside(str root, str from, str to, err *error)
{
    int pipe_of[2];
    if (pipe2(pipe_of, O_CLOEXEC) != 0)
        return failed(error, "pipe", "cannot open");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        err problem = {0};
        bool good = host_enter(root, &problem) && host_copy_folder(from, to, &problem);
        if (!good)
            write_all(pipe_of[1], str_of(problem.text));
        _exit(good ? 0 : 1);
    }
    close(pipe_of[1]);
    size_t len = 0;
    ssize_t n = 0;
    while (child > 0 && len + 1 < sizeof error->text &&
           (n = read(pipe_of[0], error->text + len, sizeof error->text - 1 - len)) > 0)
        len += (size_t)n;
    error->text[len] = '\0';
    close(pipe_of[0]);
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    return error->text[0] ? false : err_set(error, "copying to %s ended early", to.ptr);
}
