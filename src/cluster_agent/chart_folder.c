/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/chart_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define NAME_START "drover-chart-"
#define OPEN_FOLDERS_MAX 16
#define MAKE_TRIES_MAX 16 /* another agent that starts may take a fresh one for left */

static const char *parent(void)
{
    const char *tmp = getenv("TMPDIR");
    return tmp && tmp[0] ? tmp : "/tmp";
}

/* ---- locks ---- */

/* The lock of a folder that nobody else has, and that is still there; -1: it is somebody's. */
static int lock_folder(const char *path)
{
    struct stat opened, there;
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &opened) == 0 &&
        lstat(path, &there) == 0 && opened.st_ino == there.st_ino &&
        opened.st_dev == there.st_dev && opened.st_uid == geteuid())
        return lock;
    if (lock >= 0)
        close(lock);
    return -1;
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
}

/* ---- one of them ---- */

bool chart_folder_make(chart_folder *f, err *error)
{
    for (int i = 0; i < MAKE_TRIES_MAX; i++) {
        int len = snprintf(f->path, sizeof f->path, "%s/" NAME_START "XXXXXX", parent());
        if (len < 0 || (size_t)len >= sizeof f->path)
            break;
        if (!mkdtemp(f->path)) {
            err_set(error, "%s: %s", f->path, strerror(errno));
            f->path[0] = '\0';
            return false;
        }
        f->lock = lock_folder(f->path);
        if (f->lock >= 0)
            return true;
        (void)rmdir(f->path);
    }
    f->path[0] = '\0';
    return err_set(error, "%s: a folder for helm cannot be made and locked", parent());
}

static bool make_parents(char *path, err *error)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        bool good = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = '/';
        if (!good)
            return err_set(error, "%s: %s", path, strerror(errno));
    }
    return true;
}

bool chart_folder_write(const chart_folder *f, str path, str bytes, err *error)
{
    char whole[PATH_MAX];
    int len = snprintf(whole, sizeof whole, "%s/%.*s", f->path, STR_ARG(path));
    if (len < 0 || (size_t)len >= sizeof whole)
        return err_set(error, "%s: the path is too long", str_shown(path).text);
    if (!make_parents(whole, error))
        return false;
    int file = open(whole, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return err_set(error, "%s: %s", whole, strerror(errno));
    size_t done = 0;
    while (done < bytes.len) {
        ssize_t count = write(file, bytes.ptr + done, bytes.len - done);
        if (count <= 0)
            break;
        done += (size_t)count;
    }
    bool good = close(file) == 0 && done == bytes.len;
    return good || err_set(error, "%s: %s", whole, strerror(errno));
}

void chart_folder_leave(chart_folder *f)
{
    if (f->path[0] == '\0')
        return;
    close(f->lock);
    f->path[0] = '\0';
}

void chart_folder_remove(chart_folder *f)
{
    if (f->path[0] != '\0')
        remove_all(f->path);
    chart_folder_leave(f);
}

/* ---- all of them ---- */

void chart_folders_sweep(void)
{
    char path[PATH_MAX];
    DIR *folder = opendir(parent());
    struct dirent *one;
    while (folder && (one = readdir(folder))) {
        int len = snprintf(path, sizeof path, "%s/%s", parent(), one->d_name);
        if (len < 0 || (size_t)len >= sizeof path ||
            strncmp(one->d_name, NAME_START, strlen(NAME_START)) != 0)
            continue;
        int lock = lock_folder(path);
        if (lock < 0)
            continue;
        log_line(LOG_INFO, "%s: an agent that was killed left it; it is removed", path);
        remove_all(path);
        close(lock);
    }
    if (folder)
        closedir(folder);
}
