/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/client.h"

static exit_status run(const options *given)
{
    char path[LIMIT_PATH_BYTES];
    exit_status status = STATUS_DONE;
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    snprintf(path, sizeof path, "%.*s", STR_ARG(given->operands.at[0]));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file)
        return fail("%s cannot be made: %s", path, strerror(errno));
    status = client_stream(c, STR("/api/v1/backup"), file);
    bool good = fsync(fd) == 0;
    good = fclose(file) == 0 && good;
    if (status == STATUS_DONE && !good)
        status = fail("%s cannot be written: %s", path, strerror(errno));
    if (status != STATUS_DONE)
        unlink(path);
    return status;
}

static const option options_of_backup[] = {OPTIONS_SERVER, OPTIONS_END};

const verb cmd_backup = {
    .name = "backup",
    .summary = "write a consistent copy of the server's data to a file",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .about = "While everything goes on. To restore, stop the server and put the file into an empty "
             "data folder as drover.db.",
    .options = options_of_backup,
    .run = run,
};
