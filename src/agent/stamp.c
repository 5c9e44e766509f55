/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stamp.h"

#include <stdio.h>
#include <time.h>

static struct timespec now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t;
}

static stamp iso(struct timespec t, const struct tm *parts, const char *end)
{
    stamp s;
    size_t len = strftime(s.text, sizeof s.text, "%Y-%m-%dT%H:%M:%S", parts);
    snprintf(s.text + len, sizeof s.text - len, ".%06ld%s", t.tv_nsec / 1000, end);
    return s;
}

stamp stamp_utc(void)
{
    struct timespec t = now();
    struct tm parts;
    return iso(t, gmtime_r(&t.tv_sec, &parts), "+00:00");
}

stamp stamp_local(void)
{
    struct timespec t = now();
    struct tm parts;
    return iso(t, localtime_r(&t.tv_sec, &parts), "");
}

stamp stamp_file(void)
{
    struct timespec t = now();
    struct tm parts;
    stamp s;
    strftime(s.text, sizeof s.text, "%Y-%m-%d-%H%M%S", gmtime_r(&t.tv_sec, &parts));
    return s;
}

stamp stamp_unix(void)
{
    struct timespec t = now();
    stamp s;
    snprintf(s.text, sizeof s.text, "%lld.%06ld", (long long)t.tv_sec, t.tv_nsec / 1000);
    return s;
}
