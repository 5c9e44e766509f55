/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(str bytes, buf *out)
{
    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t three = 0;
        for (size_t k = 0; k < 3; k++)
            three = three << 8 | (i + k < bytes.len ? (unsigned char)bytes.ptr[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_addc(out, i + k > bytes.len ? '=' : letters[three >> (18 - 6 * k) & 63]);
    }
}

bool base64_decode(str text, buf *out)
{
    uint32_t bits = 0;
    unsigned count = 0;
    for (int padding = 0; padding < 2 && str_ends(text, STR("=")); padding++)
        text.len--;
    if (text.len % 4 == 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const char *letter = memchr(letters, text.ptr[i], sizeof letters - 1);
        if (!letter)
            return false;
        bits = bits << 6 | (uint32_t)(letter - letters);
        count += 6;
        if (count >= 8) {
            count -= 8;
            buf_addc(out, (char)(bits >> count & 0xff));
        }
    }
    return !out->failed;
}
