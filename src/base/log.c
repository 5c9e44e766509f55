/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <time.h>

#include "base/limits.h"
#include "base/moment.h"

static FILE *log_file;
static log_level log_lowest = LOG_INFO;

static const char *const level_names[] = {
#define X(level, text) [LOG_##level] = (text),
    LOG_LEVELS(X)
#undef X
};

void log_to(FILE *file, log_level lowest)
{
    log_file = file;
    log_lowest = lowest;
}

static void put_escaped(FILE *file, const char *text)
{
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == 0x7F)
            fprintf(file, "\\x%02x", c);
        else
            fputc(c, file);
    }
}

void log_line(log_level level, const char *format, ...)
{
    if (level < log_lowest)
        return;
    FILE *file = log_file ? log_file : stderr;
    char message[LIMIT_LOG_LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char when[MOMENT_TEXT_BYTES];
    moment_format((moment){now.tv_sec, (int32_t)(now.tv_nsec / 1000000 * 1000000)}, when);
    flockfile(file);
    fprintf(file, "%s %-5s ", when, level_names[level]);
    put_escaped(file, message);
    fputc('\n', file);
    funlockfile(file);
}
