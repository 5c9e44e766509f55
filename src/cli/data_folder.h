/* SPDX-License-Identifier: Apache-2.0 */
/* data_folder.h - where the server of this machine and user keeps its data. */
#ifndef DROVER_CLI_DATA_FOLDER_H
#define DROVER_CLI_DATA_FOLDER_H

#include "base/err.h"
#include "base/str.h"

#define OPTION_DATA                                                                                \
    {.name = "data",                                                                               \
     .argument = "DIR",                                                                            \
     .help = "the server's data folder; $XDG_STATE_HOME/drover or ~/.local/state/drover unless "   \
             "told"}

/* given, or the default, as an absolute path; the folders above it are made. */
bool data_folder(str given, char out[LIMIT_PATH_BYTES], err *error);

#endif
