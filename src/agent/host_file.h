/* SPDX-License-Identifier: Apache-2.0 */
/* host_file.h - files of the host, written so that a power cut leaves the old or the new content.
 *
 * Paths are those the agent sees, zero-terminated. Folders on the way are made. Nothing here knows
 * what a file means. */
#ifndef DROVER_AGENT_HOST_FILE_H
#define DROVER_AGENT_HOST_FILE_H

#include "base/arena.h"
#include "base/err.h"

#define HOST_FOLDER_DEPTH_MAX 64
#define HOST_BOOT_BYTES_MAX 64

/* The path of something on the host; ptr is NULL without memory. */
str host_path(arena *a, str root, const char *format, ...) __attribute__((format(printf, 3, 4)));

bool host_exists(str path);
/* Makes the folders above the path. */
bool host_make_parents(str path, err *error);
bool host_write(str path, str content, err *error);
/* False with an empty error text if there is none. At most max bytes. */
bool host_read(str path, arena *a, size_t max, str *ret, err *error);
/* What the host's kernel calls the time since it began; empty: it does not say. */
str host_boot(arena *a, str root);
/* It need not be there. */
bool host_remove(str path, err *error);

/* Copies what is in a folder over what is in another one: folders are merged, files and symbolic
 * links replaced, the rest stays. */
bool host_copy_folder(str from, str to, err *error);
/* The same with both paths as the host sees them, in a process whose root is the host's, so that
 * the host's symbolic links lead where they lead there. */
bool host_copy_folder_inside(str root, str from, str to, err *error);
/* Makes root the root of this process, for good; "" is the one it has. */
bool host_enter(str root, err *error);

#endif
