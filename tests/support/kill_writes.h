/* SPDX-License-Identifier: Apache-2.0 */
/* kill_writes.h - ends a process before or after the n-th thing that SQLite does to a file.
 *
 * Each write, cut and removal is counted where SQLite asks the system for it, so nothing that
 * changes a file gets by. A process that is gone without notice leaves what it has written: that is
 * what kill -9 does. Files that the code under test writes itself are counted with kill_count. */
#ifndef DROVER_TESTS_SUPPORT_KILL_WRITES_H
#define DROVER_TESTS_SUPPORT_KILL_WRITES_H

#include "support/check.h"

#include <sqlite3.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_STATUS 99
/* Each write in the release build; some of them under the sanitizers, where a life takes long. */
#if defined(__SANITIZE_ADDRESS__)
#define KILLS_APART 5
#define KILLS_LEAST 4
#else
#define KILLS_APART 1
#define KILLS_LEAST 20
#endif

static struct {
    uint64_t at; /* 0: never */
    uint64_t seen;
    bool after;
} kill_writes;

static inline void kill_before(void)
{
    if (kill_writes.at != 0 && ++kill_writes.seen == kill_writes.at && !kill_writes.after)
        _exit(KILL_STATUS);
}

static inline void kill_after(void)
{
    if (kill_writes.at != 0 && kill_writes.seen == kill_writes.at && kill_writes.after)
        _exit(KILL_STATUS);
}

/* The value of something that changes a file. */
#define kill_count(call)                                                                           \
    __extension__({                                                                                \
        kill_before();                                                                             \
        __auto_type kill_result_ = (call);                                                         \
        kill_after();                                                                              \
        kill_result_;                                                                              \
    })

static inline ssize_t kill_write(int fd, const void *bytes, size_t len)
{
    return kill_count(write(fd, bytes, len));
}

static inline ssize_t kill_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return kill_count(pwrite(fd, bytes, len, at));
}

static inline int kill_ftruncate(int fd, off_t len)
{
    return kill_count(ftruncate(fd, len));
}

static inline int kill_unlink(const char *path)
{
    return kill_count(unlink(path));
}

static inline void kill_writes_watch(void)
{
    static const struct {
        const char *name;
        sqlite3_syscall_ptr call;
    } calls[] = {
        {"write", (sqlite3_syscall_ptr)kill_write},
        {"pwrite", (sqlite3_syscall_ptr)kill_pwrite},
        {"pwrite64", (sqlite3_syscall_ptr)kill_pwrite},
        {"ftruncate", (sqlite3_syscall_ptr)kill_ftruncate},
        {"unlink", (sqlite3_syscall_ptr)kill_unlink},
    };
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call); /* one of the pwrites is not used */
}

/* One life of a process that ends at that write. True if it came to its end before. */
static inline bool kill_writes_live(void (*live)(void), uint64_t at, bool after)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kill_writes_watch();
        kill_writes.after = after;
        kill_writes.at = at;
        live();
        kill_writes.at = 0;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    check_msg(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILL_STATUS),
              "write %llu: status %x", (unsigned long long)at, (unsigned)status);
    return WEXITSTATUS(status) == 0;
}

/* prepare, a life that is killed, check; for every write, before and after it. Returns how many
 * lives were killed. */
static inline uint64_t kill_writes_each(void (*prepare)(void), void (*live)(void),
                                        void (*check)(void))
{
    uint64_t kills = 0;
    for (int after = 0; after < 2; after++) {
        bool over = false;
        for (uint64_t at = 1; !over; at += KILLS_APART) {
            prepare();
            over = kill_writes_live(live, at, after != 0);
            check();
            kills += !over;
        }
    }
    print_message("# %llu kills\n", (unsigned long long)kills);
    return kills;
}

#endif
