/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/fleet_names.h"

#include <assert.h>
#include <openssl/evp.h>

#define SHA256_BYTES 32u
#define KEY_HASHED_BYTES 100u
#define SAFE_NAME_BYTES 64u /* from this length on a name is cut */
#define SAFE_CUT_BYTES 56u
#define HASH_DIGITS_AFTER_LETTER 5
#define HASH_DIGITS_AFTER_OTHER 6

bool sha256_hex(str text, char ret[SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[SHA256_BYTES];
    unsigned length = 0;
    if (!EVP_Digest(text.ptr, text.len, bytes, &length, EVP_sha256(), NULL))
        return false;
    assert(length == SHA256_BYTES);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[SHA256_HEX_BYTES - 1] = 0;
    return true;
}

bool key_hash(str text, char ret[KEY_HASH_BYTES])
{
    char hex[SHA256_HEX_BYTES];
    if (!sha256_hex(str_part(text, 0, KEY_HASHED_BYTES), hex))
        return false;
    memcpy(ret, hex, KEY_HASH_BYTES - 1);
    ret[KEY_HASH_BYTES - 1] = 0;
    return true;
}

static bool letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

str safe_concat(arena *a, const str *parts, size_t count)
{
    buf joined = BUF(LIMIT_TEXT_BYTES);
    char hex[SHA256_HEX_BYTES];
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_addc(&joined, '-');
        buf_add(&joined, parts[i]);
    }
    str name = buf_str(&joined), made = {NULL, 0};
    if (joined.failed) {
        buf_done(&joined);
        return made;
    }
    if (name.len < SAFE_NAME_BYTES)
        made = arena_str(a, name);
    else if (sha256_hex(name, hex)) {
        bool letter = letter_or_digit(name.ptr[SAFE_CUT_BYTES]);
        made = arena_printf(a, "%.*s-%.*s", (int)(letter ? SAFE_CUT_BYTES + 1 : SAFE_CUT_BYTES),
                            name.ptr, letter ? HASH_DIGITS_AFTER_LETTER : HASH_DIGITS_AFTER_OTHER,
                            hex);
    }
    buf_done(&joined);
    return made;
}

str cluster_namespace_name(arena *a, str cluster_namespace, str cluster)
{
    char key[KEY_HASH_BYTES];
    str both = arena_printf(a, "%.*s::%.*s", STR_ARG(cluster_namespace), STR_ARG(cluster));
    if (!both.ptr || !key_hash(both, key))
        return (str){NULL, 0};
    const str parts[] = {STR("cluster"), cluster_namespace, cluster, str_of(key)};
    return safe_concat(a, parts, sizeof parts / sizeof parts[0]);
}

str agent_cluster_name(arena *a, str client_id)
{
    char key[KEY_HASH_BYTES];
    if (!key_hash(client_id, key))
        return (str){NULL, 0};
    const str parts[] = {STR("cluster"), str_of(key)};
    return safe_concat(a, parts, sizeof parts / sizeof parts[0]);
}

str agent_account_name(arena *a, str request, str uid)
{
    const str parts[] = {request, uid};
    return safe_concat(a, parts, sizeof parts / sizeof parts[0]);
}

str values_hash(arena *a, str values, str staged_values)
{
    char hex[SHA256_HEX_BYTES];
    if (values.len == 0 && staged_values.len == 0)
        return STR_EMPTY;
    str both = arena_printf(a, "%.*s%.*s", STR_ARG(values), STR_ARG(staged_values));
    if (!both.ptr || !sha256_hex(both, hex))
        return (str){NULL, 0};
    return arena_str(a, str_of(hex));
}

bool label_exported(str key)
{
    return !str_starts(key, STR("kubectl.kubernetes.io/")) &&
           str_find(key, STR("cattle.io/")) == SIZE_MAX;
}

bool bundle_label_inherited(str key)
{
    return label_exported(key) || str_starts(key, STR(FLEET_PREFIX));
}

bool cluster_label_usable(str key)
{
    return bundle_label_inherited(key) || str_starts(key, STR("management.cattle.io/"));
}

str fleet_finalizer_text(fleet_finalizer finalizer)
{
    static const str texts[] = {
#define X(name, text) STR(text),
        FLEET_FINALIZERS(X)
#undef X
    };
    return texts[finalizer];
}
