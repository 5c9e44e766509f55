/* SPDX-License-Identifier: Apache-2.0 */
#include "server/pem.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool pem_read(arena *a, str path, str *ret, err *error)
{
    str name = arena_str(a, path);
    char *bytes = arena_alloc(a, PEM_BYTES_MAX + 1);
    if (!name.ptr || !bytes)
        return err_memory(error);
    int fd = open(name.ptr, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, bytes, PEM_BYTES_MAX);
    int cause = errno;
    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return err_set(error, "%s cannot be read: %s", name.ptr,
                       len < 0 ? strerror(cause) : "it is empty");
    bytes[len] = '\0';
    *ret = (str){bytes, (size_t)len};
    return true;
}
