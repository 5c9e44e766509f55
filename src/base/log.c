/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <time.h>

#include "base/limits.h"
#include "base/moment.h"
#include "base/str.h"

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

/* Writes text to out, which has room for four times its bytes, and returns how many it wrote. */
static size_t escape(str text, char *out)
{
    size_t len = 0;
    while (text.len > 0) {
        size_t good = str_utf8_printable(text);
        if (good > 0)
            memcpy(out + len, text.ptr, good);
        else
            snprintf(out + len, 5, "\\x%02x", (unsigned char)text.ptr[0]);
        len += good > 0 ? good : 4;
        text = str_part(text, good > 0 ? good : 1, text.len);
    }
    return len;
}

void log_line(log_level level, const char *format, ...)
{
    if (level < log_lowest)
        return;
    char message[LIMIT_LOG_LINE_BYTES];
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (wanted < 0)
        message[0] = '\0';
    str text = str_of(message);
    bool cut = wanted < 0 || (size_t)wanted > text.len;
    /* The cut may have gone through a sequence. */
    for (int i = 0; cut && i < 3 && text.len > 0 && !str_utf8(text); i++)
        text.len--;

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char when[MOMENT_TEXT_BYTES];
    moment_format((moment){now.tv_sec, (int32_t)(now.tv_nsec / 1000000 * 1000000)}, when);
    /* One write: standard error has no buffer, and other processes may write to it as well. */
    char line[MOMENT_TEXT_BYTES + 16 + 4 * sizeof message];
    size_t len =
        (size_t)snprintf(line, MOMENT_TEXT_BYTES + 16, "%s %-5s ", when, level_names[level]);
    len += escape(text, line + len);
    len += (size_t)snprintf(line + len, 5, "%s\n", cut ? "..." : "");
    fwrite(line, 1, len, log_file ? log_file : stderr);
}
