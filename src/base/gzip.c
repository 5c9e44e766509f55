/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gzip.h"

#include <zlib.h>

#include "base/mem.h"

#define GZIP_WINDOW_BITS (15 + 16) /* zlib's way to ask for gzip's header, with no time in it */
#define GZIP_MEMORY_LEVEL 9
#define PART_BYTES 16384u

static void *zlib_alloc(void *context, unsigned items, unsigned size)
{
    (void)context;
    return mem_alloc((size_t)items * size);
}

static void zlib_free(void *context, void *address)
{
    (void)context;
    mem_free(address);
}

bool gzip_compress(str bytes, buf *out)
{
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free};
    unsigned char part[PART_BYTES];
    if (bytes.len > UINT32_MAX || deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS,
                                               GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    z.next_in = (unsigned char *)(uintptr_t)bytes.ptr;
    z.avail_in = (unsigned)bytes.len;
    int state = Z_OK;
    while (state == Z_OK) {
        z.next_out = part;
        z.avail_out = sizeof part;
        state = deflate(&z, Z_FINISH);
        buf_add(out, (str){(const char *)part, sizeof part - z.avail_out});
    }
    deflateEnd(&z);
    return state == Z_STREAM_END && !out->failed;
}

/* One turn of the crank. */
static gzip_result expand_part(z_stream *z, int *state, buf *out)
{
    unsigned char part[PART_BYTES];
    z->next_out = part;
    z->avail_out = sizeof part;
    *state = inflate(z, Z_NO_FLUSH);
    size_t made = sizeof part - z->avail_out;
    if (*state == Z_MEM_ERROR)
        return GZIP_MEMORY;
    if (*state != Z_OK && *state != Z_STREAM_END)
        return GZIP_BAD;
    if (made > out->max - out->len)
        return GZIP_LARGE;
    buf_add(out, (str){(const char *)part, made});
    return out->failed ? GZIP_MEMORY : GZIP_GOOD;
}

gzip_result gzip_expand(str bytes, buf *out)
{
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free};
    if (bytes.len > UINT32_MAX)
        return GZIP_LARGE;
    if (inflateInit2(&z, GZIP_WINDOW_BITS) != Z_OK)
        return GZIP_MEMORY;
    z.next_in = (unsigned char *)(uintptr_t)bytes.ptr;
    z.avail_in = (unsigned)bytes.len;
    int state = Z_OK;
    gzip_result result = GZIP_GOOD;
    while (result == GZIP_GOOD && state != Z_STREAM_END) {
        result = expand_part(&z, &state, out);
        /* Several of them one after the other are one text, by the RFC. */
        if (result == GZIP_GOOD && state == Z_STREAM_END && z.avail_in > 0)
            state = inflateReset(&z);
    }
    inflateEnd(&z);
    return result;
}
