/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - the bytes that -f names.
 *
 * Reads files, folders and standard input whole and keeps names and bytes until the end. What
 * cannot be read is reported to the caller's function and the rest is read all the same. Knows no
 * documents. */
#ifndef DROVER_CLI_FILES_H
#define DROVER_CLI_FILES_H

#include "base/err.h"
#include "base/str.h"

#define FILES_STDIN_NAME "<stdin>"

typedef struct file {
    str name; /* as messages show it; zero-terminated */
    str bytes;
} file;

typedef struct files files;

/* Told about a path that could not be read. */
typedef void files_trouble(void *context, str path, const char *message);

files *files_new(files_trouble *trouble, void *context);
files *files_free(files *f);
void files_cleanup(files **f);

/* Adds a file, "-", or the *.yaml, *.yml and *.json files of a folder, sorted by name, without
 * going into folders below it. False when something was reported. */
bool files_add(files *f, str path);

size_t files_count(const files *f);
/* Name and bytes stay where they are until files_free; the returned struct until the next
 * files_add. */
const file *files_at(const files *f, size_t index);

#endif
