/* SPDX-License-Identifier: Apache-2.0 */
/* problems.h - what is wrong with the documents, all of it, in one bounded list.
 *
 * A problem names file, line, document and path, and says what was found and what is allowed. Past
 * LIMIT_PROBLEMS (for warnings: half of it) further ones are only counted. Running out of memory is
 * itself an error that is counted, so "no errors" always means that everything was looked at. */
#ifndef DROVER_MODEL_PROBLEMS_H
#define DROVER_MODEL_PROBLEMS_H

#include <stdarg.h>

#include "base/str.h"

#define SEVERITIES(X) X(ERROR, "error") X(WARNING, "warning")

typedef enum severity {
#define X(severity, text) SEVERITY_##severity,
    SEVERITIES(X)
#undef X
} severity;

typedef struct problem {
    severity severity;
    uint32_t line; /* from 1; 0: not known */
    str file;
    str document; /* "Kind/name", empty when the text could not be read so far */
    str path;     /* "spec.rules[2].retry", empty for the document as a whole */
    str message;
} problem;

typedef struct problems problems;

problems *problems_new(void);
problems *problems_free(problems *list);
void problems_cleanup(problems **list);

/* Copies what p points to. */
void problems_add(problems *list, const problem *p);
/* The same, with the message formatted; that of p is not looked at. */
void problems_addf(problems *list, const problem *p, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void problems_vaddf(problems *list, const problem *p, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Counts an error for a failed allocation. Allocates nothing. Returns false. */
bool problems_memory(problems *list);

/* Problems that can be shown, in the order of reporting. */
size_t problems_count(const problems *list);
const problem *problems_at(const problems *list, size_t index);
/* All of them, shown or only counted. */
uint64_t problems_errors(const problems *list);
uint64_t problems_warnings(const problems *list);
/* Whether an allocation failed while reading or while reporting. */
bool problems_out_of_memory(const problems *list);

/* "FILE:LINE: KIND/NAME: PATH: message", without newline; parts that are empty are left out. */
void problem_text(const problem *p, buf *out);
/* One JSON object with severity, file, line, document, path, message. */
void problem_json(const problem *p, buf *out);
const char *severity_text(severity s);

#endif
