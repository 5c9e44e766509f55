/* SPDX-License-Identifier: Apache-2.0 */
/* read_only.c - a folder that becomes read-only under a program that has files open in it.
 *
 * A file system does so to itself after an error of its disk; a test cannot ask for it, because
 * with files open for writing a remount is refused. This is loaded in front of the C library
 * (LD_PRELOAD): while the file DROVER_TEST_READ_ONLY exists, whatever would change something below
 * the folder DROVER_TEST_FOLDER fails with EROFS. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((typeof(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

static bool below(const char *path)
{
    const char *folder = getenv("DROVER_TEST_FOLDER"), *flag = getenv("DROVER_TEST_READ_ONLY");
    return folder && flag && strncmp(path, folder, strlen(folder)) == 0 && access(flag, F_OK) == 0;
}

static bool refused(const char *path)
{
    int kept = errno;
    bool no = below(path);
    errno = no ? EROFS : kept;
    return no;
}

static bool refused_file(int fd)
{
    char link_name[64], path[4096];
    int kept = errno;
    snprintf(link_name, sizeof link_name, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link_name, path, sizeof path - 1);
    errno = kept;
    if (len <= 0)
        return false;
    path[len] = '\0';
    return refused(path);
}

#define WRITES(flags) (((flags) & O_ACCMODE) != O_RDONLY || ((flags) & O_CREAT) != 0)
#define OPENER(name)                                                                               \
    EXPORT int name(const char *path, int flags, ...)                                              \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(args, int) : 0;                      \
        va_end(args);                                                                              \
        return WRITES(flags) && refused(path) ? -1 : REAL(name)(path, flags, mode);                \
    }
OPENER(open)
OPENER(open64)

EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
    return refused_file(fd) ? -1 : REAL(write)(fd, bytes, count);
}

EXPORT ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return refused_file(fd) ? -1 : REAL(pwrite)(fd, bytes, count, at);
}

EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    return refused_file(fd) ? -1 : REAL(pwrite64)(fd, bytes, count, at);
}

EXPORT int ftruncate(int fd, off_t size)
{
    return refused_file(fd) ? -1 : REAL(ftruncate)(fd, size);
}

EXPORT int ftruncate64(int fd, off64_t size)
{
    return refused_file(fd) ? -1 : REAL(ftruncate64)(fd, size);
}

EXPORT int unlink(const char *path)
{
    return refused(path) ? -1 : REAL(unlink)(path);
}

EXPORT int link(const char *from, const char *to)
{
    return refused(to) ? -1 : REAL(link)(from, to);
}

EXPORT int rename(const char *from, const char *to)
{
    return refused(to) ? -1 : REAL(rename)(from, to);
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return refused(path) ? -1 : REAL(mkdir)(path, mode);
}
