/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the time of day, for the outermost layer only: everybody else is handed it. */
#ifndef DROVER_SERVER_CLOCK_H
#define DROVER_SERVER_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
