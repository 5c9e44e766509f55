/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data_folder.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static bool put(char out[LIMIT_PATH_BYTES], const char *folder, const char *rest, err *error)
{
    int len = snprintf(out, LIMIT_PATH_BYTES, "%s%s", folder, rest);
    return (len >= 0 && len < LIMIT_PATH_BYTES - 64) ||
           err_set(error, "the path of the data folder is too long");
}

static bool choose(str given, char out[LIMIT_PATH_BYTES], err *error)
{
    char name[LIMIT_PATH_BYTES];
    char here[LIMIT_PATH_BYTES];
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (given.len > 0) {
        if (given.len >= sizeof name)
            return err_set(error, "the path of the data folder is too long");
        snprintf(name, sizeof name, "%.*s", STR_ARG(given));
        if (name[0] == '/')
            return put(out, name, "", error);
        if (!getcwd(here, sizeof here))
            return err_set(error, "this folder has no name: %s", strerror(errno));
        int len = snprintf(out, LIMIT_PATH_BYTES, "%s/%s", here, name);
        return (len >= 0 && len < LIMIT_PATH_BYTES - 64) ||
               err_set(error, "the path of the data folder is too long");
    }
    if (state && state[0] == '/')
        return put(out, state, "/drover", error);
    if (home && home[0] == '/')
        return put(out, home, "/.local/state/drover", error);
    return err_set(error, "there is neither HOME nor XDG_STATE_HOME; give --data DIR");
}

bool data_folder(str given, char out[LIMIT_PATH_BYTES], err *error)
{
    if (!choose(given, out, error))
        return false;
    for (char *at = strchr(out + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        int made = mkdir(out, 0700);
        int cause = errno;
        *at = '/';
        if (made != 0 && cause != EEXIST)
            return err_set(error, "%s: a folder above it cannot be made: %s", out, strerror(cause));
    }
    return true;
}
