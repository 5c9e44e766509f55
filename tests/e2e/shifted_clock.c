/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks that a test sets for one process, by LD_PRELOAD (see clocks.py): each is that of the
 * machine and what the file in SHIFTED_CLOCK says. time() is left alone: certificates are looked at
 * by it, and those of the test's cluster are as old as the cluster. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { WALL, BOOT, RUNNING, SHIFTS }; /* in seconds, in the file, in this order */

static const volatile int64_t *shifts;

__attribute__((constructor)) static void open_shifts(void)
{
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        abort();
    void *found = mmap(NULL, SHIFTS * sizeof *shifts, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found == MAP_FAILED)
        abort();
    shifts = found;
}

static int64_t shift_of(clockid_t clock)
{
    if (!shifts) /* another library begins before this one */
        return 0;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: return shifts[WALL];
    case CLOCK_BOOTTIME: return shifts[BOOT];
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW: return shifts[RUNNING];
    default: return 0;
    }
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, ret);
    if (result == 0)
        ret->tv_sec += shift_of(clock);
    return result;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    ret->tv_sec = now.tv_sec;
    ret->tv_usec = now.tv_nsec / 1000;
    return result;
}
