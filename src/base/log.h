/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - log lines of the long-running programs.
 *
 * One line an event on standard error: RFC 3339 time, level, message. Libraries never log; programs
 * do, so that no message appears twice. */
#ifndef DROVER_BASE_LOG_H
#define DROVER_BASE_LOG_H

#include <stdio.h>

#define LOG_LEVELS(X) X(DEBUG, "debug") X(INFO, "info") X(WARN, "warn") X(ERROR, "error")

typedef enum log_level {
#define X(level, text) LOG_##level,
    LOG_LEVELS(X)
#undef X
} log_level;

/* Where lines go (standard error unless told) and the lowest level that is written (info). */
void log_to(FILE *file, log_level lowest);
/* Control characters and what is no UTF-8 are escaped: one event is one line, and one write. A
 * message over LIMIT_LOG_LINE_BYTES is cut and ends in "...". */
void log_line(log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
