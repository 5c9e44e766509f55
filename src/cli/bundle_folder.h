/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_folder.h - the files of a folder that become the resources of a Bundle.
 *
 * As Fleet reads a folder: everything below it but hidden files and folders and what .fleetignore
 * names. Reads bytes; knows no documents. Symbolic links and what is neither file nor folder are
 * refused. */
#ifndef DROVER_CLI_BUNDLE_FOLDER_H
#define DROVER_CLI_BUNDLE_FOLDER_H

#include "base/arena.h"
#include "model/problems.h"

#define BUNDLE_FILES_MAX 5000u
#define BUNDLE_FOLDER_DEPTH_MAX 32u
#define BUNDLE_FILE_BYTES_MAX (64u * 1024u * 1024u)

typedef struct bundle_file {
    str name; /* below the folder, with "/" between its parts */
    str path; /* as messages show it; zero-terminated */
    str bytes;
} bundle_file;

typedef struct bundle_folder {
    bundle_file *at; /* by name */
    size_t len;
    size_t cap;
} bundle_folder;

/* All of it is in a. What is wrong goes to found; false when an error was reported. */
bool bundle_folder_read(arena *a, str path, bundle_folder *ret, problems *found);
void bundle_folder_done(bundle_folder *f);
/* NULL: there is none of that name. */
const bundle_file *bundle_folder_find(const bundle_folder *f, str name);

#endif
