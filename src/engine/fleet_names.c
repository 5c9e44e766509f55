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
#define MD5_BYTES 16u
#define MD5_HEX_BYTES (2 * MD5_BYTES + 1)
#define RELEASE_DIGITS_CUT 5u
#define RELEASE_DIGITS_OTHER 8
#define RELEASE_DIGITS_ONLY 24

/* Writes 2 * size digits and a zero. */
static void put_hex(const unsigned char *bytes, size_t size, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * size] = 0;
}

static bool digest_hex(str text, const EVP_MD *how, size_t size, char *ret)
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (!EVP_Digest(text.ptr, text.len, bytes, &length, how, NULL))
        return false;
    assert(length == size);
    put_hex(bytes, size, ret);
    return true;
}

bool sha256_hex(str text, char ret[SHA256_HEX_BYTES])
{
    return digest_hex(text, EVP_sha256(), SHA256_BYTES, ret);
}

bool sha256_hex_of(const str *parts, size_t count, char ret[SHA256_HEX_BYTES])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool good = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL);
    for (size_t i = 0; good && i < count; i++)
        good = EVP_DigestUpdate(digest, parts[i].ptr, parts[i].len);
    good = good && EVP_DigestFinal_ex(digest, bytes, &length);
    EVP_MD_CTX_free(digest);
    if (good)
        put_hex(bytes, length, ret);
    return good;
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

/* ---- releases ---- */

/* No secret hangs on it: it keeps names apart, and is the one that Fleet has in them. */
static bool md5_hex(str text, char ret[MD5_HEX_BYTES])
{
    return digest_hex(text, EVP_md5(), MD5_BYTES, ret);
}

/* Whether a name needs no digits to stay different when it is brought into Helm's letters. */
static bool is_plain(str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!letter_or_digit(name.ptr[i]) && name.ptr[i] != '-')
            return false;
    return true;
}

/* Lower case, with one "-" for each run of other characters, and none at the ends. */
static void put_plain(buf *out, str name)
{
    bool gap = false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (letter_or_digit(c)) {
            buf_addz(out, gap && out->len > 0 ? "-" : "");
            buf_addc(out, c);
        }
        gap = !letter_or_digit(c);
    }
}

static str cut_release(arena *a, str name)
{
    char hex[MD5_HEX_BYTES];
    size_t kept = LIMIT_RELEASE_NAME_BYTES - RELEASE_DIGITS_CUT - 1;
    if (name.len <= LIMIT_RELEASE_NAME_BYTES)
        return arena_str(a, name);
    if (!md5_hex(name, hex))
        return (str){NULL, 0};
    return arena_printf(a, "%.*s%s%.*s", (int)kept, name.ptr, name.ptr[kept - 1] == '-' ? "" : "-",
                        (int)RELEASE_DIGITS_CUT, hex);
}

str helm_release_name(arena *a, str deployment)
{
    char hex[MD5_HEX_BYTES];
    buf whole = BUF(LIMIT_TEXT_BYTES), plain = BUF(LIMIT_TEXT_BYTES);
    str made = {NULL, 0};
    for (size_t i = 0; i < deployment.len; i++)
        buf_addc(&whole, deployment.ptr[i] == '/' ? '-' : deployment.ptr[i]);
    bool good = !whole.failed && md5_hex(buf_str(&whole), hex);
    if (good && !is_plain(buf_str(&whole)))
        buf_addf(&whole, "-%.*s", RELEASE_DIGITS_OTHER, hex);
    put_plain(&plain, buf_str(&whole));
    good = good && !whole.failed && !plain.failed;
    if (good && plain.len > 0)
        made = cut_release(a, buf_str(&plain));
    else if (good && md5_hex(deployment, hex))
        made = arena_printf(a, "%.*s", RELEASE_DIGITS_ONLY, hex);
    buf_done(&whole);
    buf_done(&plain);
    return made;
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

bool says_dependency(str reason, str message)
{
    return str_eq(reason, STR(CONDITION_DEPENDENCY)) ||
           str_starts(message, STR("dependent bundle(s) are not ready: ")) ||
           str_starts(message, STR("list bundledeployments: no bundles matching labels "));
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
