/* SPDX-License-Identifier: Apache-2.0 */
#include "server/auth.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "base/vec.h"

#define TOKEN_RANDOM_BYTES 32
#define AUTH_CALLER_BYTES 320 /* of names and addresses; longer ones share */
#define ADMIN_FILE "admin-token"
#define ADMIN_NAME STR("admin")

/* A token in force, a session or a code: what its hash stands for. */
typedef struct pass {
    arena *texts;
    caller caller;
    unsigned char hash[TOKEN_HASH_BYTES];
    int64_t until_ms; /* 0: for ever */
    bool code;        /* only to be exchanged */
    bool draft;       /* a token that is not in the store yet */
} pass;

typedef struct bucket {
    int64_t at_ms;
    int64_t milli; /* thousandths of a request that are left */
} bucket;

struct auth {
    store *store;
    int64_t per_second; /* that a caller may ask */
    VEC(pass) tokens;
    VEC(pass) sessions;
    strmap buckets; /* name or address to bucket; keys and buckets are in bucket_arena */
    arena *bucket_arena;
    arena_place bucket_start;
};

static const char *const access_names[] = {
#define X(level, text) [ACCESS_##level] = (text),
    ACCESS_LEVELS(X)
#undef X
};

const char *access_text(access_level level)
{
    return access_names[level];
}

access_level access_find(str role)
{
    for (unsigned i = ACCESS_WORKER; i <= ACCESS_ADMIN; i++)
        if (str_eq(role, str_of(access_names[i])))
            return (access_level)i;
    return ACCESS_NONE;
}

static void hash_of(str token, unsigned char out[TOKEN_HASH_BYTES])
{
    SHA256((const unsigned char *)token.ptr, token.len, out);
}

static bool make_token(char out[AUTH_TOKEN_BYTES], err *error)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    /* The last digit has only four bits of the 256. */
    unsigned char bytes[TOKEN_RANDOM_BYTES + 1] = {0};
    if (RAND_bytes(bytes, TOKEN_RANDOM_BYTES) != 1)
        return err_set(error, "there is no randomness");
    static_assert(sizeof digits == 65, "six bits a digit");
    size_t len = 0;
    for (unsigned bit = 0; bit < TOKEN_RANDOM_BYTES * 8; bit += 6) {
        unsigned pair = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
        out[len++] = digits[(pair >> (10 - bit % 8)) & 63];
    }
    out[len] = 0;
    OPENSSL_cleanse(bytes, sizeof bytes);
    return true;
}

/* ---- passes ---- */

static bool pass_make(pass *p, const caller *c, const unsigned char hash[TOKEN_HASH_BYTES],
                      int64_t until_ms)
{
    *p = (pass){.texts = arena_new(0), .caller = *c, .until_ms = until_ms};
    memcpy(p->hash, hash, TOKEN_HASH_BYTES);
    if (!p->texts)
        return false;
    p->caller.name = arena_str(p->texts, c->name);
    p->caller.selector = arena_str(p->texts, c->selector);
    if (p->caller.name.ptr && p->caller.selector.ptr)
        return true;
    p->texts = arena_free(p->texts);
    return false;
}

static void sessions_expire(auth *a, int64_t now_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->sessions.len; i++) {
        if (a->sessions.at[i].until_ms <= now_ms)
            arena_free(a->sessions.at[i].texts);
        else
            a->sessions.at[kept++] = a->sessions.at[i];
    }
    a->sessions.len = kept;
}

typedef struct token_load {
    auth *auth;
    bool failed;
} token_load;

static bool load_token(void *context, const stored_token *t)
{
    token_load *l = context;
    auth *a = l->auth;
    pass p;
    if (t->revoked_ms != 0)
        return true;
    caller c = {.name = t->name, .level = access_find(t->role), .selector = t->selector};
    l->failed = a->tokens.len >= AUTH_TOKENS_MAX || !pass_make(&p, &c, t->hash, 0);
    if (!l->failed && !vec_push(&a->tokens, p)) {
        arena_free(p.texts);
        l->failed = true;
    }
    return !l->failed;
}

static bool load_tokens(auth *a, err *error)
{
    token_load l = {.auth = a};
    return store_tokens(a->store, load_token, &l, error) && (!l.failed || err_memory(error));
}

static void drop_tokens(auth *a)
{
    for (size_t i = 0; i < a->tokens.len; i++)
        arena_free(a->tokens.at[i].texts);
    vec_done(&a->tokens);
}

/* By its name; NULL if there is none. */
static pass *token_named(const auth *a, str name)
{
    for (size_t i = 0; i < a->tokens.len; i++)
        if (str_eq(a->tokens.at[i].caller.name, name))
            return &a->tokens.at[i];
    return NULL;
}

static void token_drop(auth *a, pass *p)
{
    arena_free(p->texts);
    *p = a->tokens.at[--a->tokens.len];
}

bool auth_find(const auth *a, str token, int64_t now_ms, caller *ret)
{
    unsigned char hash[TOKEN_HASH_BYTES];
    const pass *found = NULL;
    hash_of(token, hash);
    /* Every one is compared, whatever was found before. */
    for (size_t i = 0; i < a->tokens.len; i++)
        if (CRYPTO_memcmp(a->tokens.at[i].hash, hash, TOKEN_HASH_BYTES) == 0 &&
            !a->tokens.at[i].draft)
            found = &a->tokens.at[i];
    for (size_t i = 0; i < a->sessions.len; i++)
        if (CRYPTO_memcmp(a->sessions.at[i].hash, hash, TOKEN_HASH_BYTES) == 0 &&
            !a->sessions.at[i].code && a->sessions.at[i].until_ms > now_ms)
            found = &a->sessions.at[i];
    if (!found)
        return false;
    *ret = found->caller;
    return true;
}

/* ---- rate ---- */

void auth_set_rate(auth *a, int64_t per_second)
{
    assert(per_second >= 1 && per_second <= AUTH_RATE_PER_SECOND_MAX);
    a->per_second = per_second;
}

bool auth_rate(auth *a, str who, bool stranger, int64_t now_ms)
{
    int64_t burst = (stranger ? AUTH_STRANGER_BURST : 2 * a->per_second) * INT64_C(1000);
    int64_t rate = stranger ? AUTH_STRANGER_PER_SECOND : a->per_second;
    char kept[AUTH_CALLER_BYTES]; /* a token may have the name of an address */
    str cut = str_part(who, 0, sizeof kept - 1);
    kept[0] = stranger ? '@' : '=';
    memcpy(kept + 1, cut.ptr, cut.len);
    who = (str){kept, cut.len + 1};
    uint64_t *place = strmap_get(&a->buckets, who);
    if (!place) {
        if (a->buckets.len >= AUTH_BUCKETS_MAX) {
            strmap_clear(&a->buckets);
            arena_rewind(a->bucket_arena, a->bucket_start);
        }
        str key = arena_str(a->bucket_arena, who);
        bucket *b = ARENA_NEW(a->bucket_arena, bucket);
        if (!key.ptr || !b || !strmap_put(&a->buckets, key, (uint64_t)(uintptr_t)b))
            return false;
        *b = (bucket){.at_ms = now_ms, .milli = burst};
        place = strmap_get(&a->buckets, who);
    }
    bucket *b = (bucket *)(uintptr_t)*place;
    int64_t passed = now_ms > b->at_ms ? now_ms - b->at_ms : 0;
    int64_t grown = passed > burst / rate ? burst : b->milli + passed * rate;
    b->milli = grown < burst ? grown : burst;
    b->at_ms = now_ms;
    if (b->milli < 1000)
        return false;
    b->milli -= 1000;
    return true;
}

/* ---- tokens ---- */

bool auth_create(auth *a, stored_token *row, int64_t now_ms, char token[AUTH_TOKEN_BYTES],
                 err *error)
{
    pass p;
    caller c = {.name = row->name, .level = access_find(row->role), .selector = row->selector};
    if (a->tokens.len >= AUTH_TOKENS_MAX)
        return err_set(error, "there are %u tokens already", AUTH_TOKENS_MAX);
    if (!make_token(token, error))
        return false;
    hash_of(str_of(token), row->hash);
    row->created_ms = now_ms;
    row->revoked_ms = 0;
    if (!pass_make(&p, &c, row->hash, 0))
        return err_memory(error);
    p.draft = true;
    if (vec_push(&a->tokens, p))
        return true;
    arena_free(p.texts);
    return err_memory(error);
}

void auth_confirm(auth *a, str name, bool stored)
{
    pass *p = token_named(a, name);
    assert(p && p->draft);
    if (stored)
        p->draft = false;
    else
        token_drop(a, p);
}

bool auth_in_force(const auth *a, str name)
{
    const pass *p = token_named(a, name);
    return p && !p->draft;
}

void auth_revoke(auth *a, str name, int64_t now_ms)
{
    pass *p = token_named(a, name);
    if (p)
        token_drop(a, p);
    /* What was opened by links of that token goes with it. */
    for (size_t i = 0; i < a->sessions.len; i++)
        if (str_eq(a->sessions.at[i].caller.name, name))
            a->sessions.at[i].until_ms = 0;
    sessions_expire(a, now_ms);
}

/* ---- links ---- */

static bool session_add(auth *a, const caller *c, pass form, char token[AUTH_TOKEN_BYTES],
                        err *error)
{
    pass p;
    unsigned char hash[TOKEN_HASH_BYTES];
    if (a->sessions.len >= AUTH_SESSIONS_MAX)
        return err_set(error, "there are %u sessions already", AUTH_SESSIONS_MAX);
    if (!make_token(token, error))
        return false;
    hash_of(str_of(token), hash);
    if (!pass_make(&p, c, hash, form.until_ms))
        return err_memory(error);
    p.code = form.code;
    if (vec_push(&a->sessions, p))
        return true;
    arena_free(p.texts);
    return err_memory(error);
}

bool auth_link(auth *a, const caller *c, int64_t now_ms, char code[AUTH_TOKEN_BYTES], err *error)
{
    sessions_expire(a, now_ms);
    return session_add(a, c, (pass){.until_ms = now_ms + AUTH_LINK_MS, .code = true}, code, error);
}

bool auth_login(auth *a, str code, int64_t now_ms, char token[AUTH_TOKEN_BYTES], err *error)
{
    unsigned char hash[TOKEN_HASH_BYTES];
    hash_of(code, hash);
    sessions_expire(a, now_ms);
    for (size_t i = 0; i < a->sessions.len; i++) {
        pass *p = &a->sessions.at[i];
        if (!p->code || CRYPTO_memcmp(p->hash, hash, TOKEN_HASH_BYTES) != 0)
            continue;
        pass form = {.until_ms = now_ms + AUTH_SESSION_MS};
        p->until_ms = 0; /* it works once */
        caller c = p->caller;
        bool good = session_add(a, &c, form, token, error);
        sessions_expire(a, now_ms);
        return good;
    }
    return err_set(error, "this link has been used, or is too old");
}

/* ---- the first token ---- */

typedef struct known_search {
    unsigned char hash[TOKEN_HASH_BYTES];
    str name;
    bool known, named;
} known_search;

static bool look_for_hash(void *context, const stored_token *t)
{
    known_search *s = context;
    s->known = s->known || CRYPTO_memcmp(t->hash, s->hash, TOKEN_HASH_BYTES) == 0;
    s->named = s->named || str_eq(t->name, s->name);
    return true;
}

static bool write_whole(int fd, const char *token)
{
    size_t len = strlen(token);
    return write(fd, token, len) == (ssize_t)len && write(fd, "\n", 1) == 1 && fsync(fd) == 0;
}

/* All of it or nothing, whenever this process ends: half a token would be easy to guess. */
static bool write_admin_file(str folder, const char *token, err *error)
{
    char path[LIMIT_PATH_BYTES];
    char temporary[LIMIT_PATH_BYTES];
    snprintf(path, sizeof path, "%.*s/" ADMIN_FILE, STR_ARG(folder));
    snprintf(temporary, sizeof temporary, "%.*s/" ADMIN_FILE ".new", STR_ARG(folder));
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_whole(fd, token);
    int cause = errno;
    if (fd >= 0)
        close(fd);
    if (good && rename(temporary, path) != 0) {
        cause = errno;
        good = false;
    }
    return good || err_set(error, "%s cannot be written: %s", path, strerror(cause));
}

/* What the file says; empty if there is no file, or nothing in it. */
static bool read_admin_file(str folder, char text[AUTH_TOKEN_BYTES * 2], str *ret, err *error)
{
    char path[LIMIT_PATH_BYTES];
    snprintf(path, sizeof path, "%.*s/" ADMIN_FILE, STR_ARG(folder));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return err_set(error, "%s cannot be read: %s", path, strerror(errno));
    ssize_t len = fd < 0 ? 0 : read(fd, text, AUTH_TOKEN_BYTES * 2);
    if (fd >= 0)
        close(fd);
    *ret = str_trim((str){text, len > 0 ? (size_t)len : 0});
    return true;
}

/* First the file, then the store: whenever this process ends, the next start takes the file that
 * is there. One whose token was revoked is only not in force. */
static bool ensure_admin(auth *a, str folder, int64_t now_ms, err *error)
{
    char text[AUTH_TOKEN_BYTES * 2];
    char name[40];
    str token;
    known_search search = {.name = ADMIN_NAME};
    bool good = read_admin_file(folder, text, &token, error);
    if (good && token.len == 0) {
        good = make_token(text, error) && write_admin_file(folder, text, error);
        token = good ? str_of(text) : STR_EMPTY;
    }
    hash_of(token, search.hash);
    OPENSSL_cleanse(text, sizeof text);
    if (!good || !store_tokens(a->store, look_for_hash, &search, error))
        return false;
    if (search.known)
        return true;
    /* A name is never given out twice: the journal would not say who it was. */
    if (search.named)
        snprintf(name, sizeof name, "admin-%lld", (long long)now_ms);
    else
        snprintf(name, sizeof name, "admin");
    stored_token row = {.name = str_of(name), .role = STR("admin"), .created_ms = now_ms};
    memcpy(row.hash, search.hash, TOKEN_HASH_BYTES);
    return store_put_token(a->store, &row, error);
}

auth *auth_open(store *s, str folder, int64_t now_ms, err *error)
{
    auth *a = mem_zalloc(sizeof *a);
    if (!a) {
        err_memory(error);
        return NULL;
    }
    a->store = s;
    a->per_second = AUTH_RATE_PER_SECOND;
    a->bucket_arena = arena_new(0);
    if (a->bucket_arena)
        a->bucket_start = arena_mark(a->bucket_arena);
    bool good = (a->bucket_arena || err_memory(error)) && ensure_admin(a, folder, now_ms, error) &&
                load_tokens(a, error);
    return good ? a : auth_close(a);
}

auth *auth_close(auth *a)
{
    if (!a)
        return NULL;
    drop_tokens(a);
    for (size_t i = 0; i < a->sessions.len; i++)
        arena_free(a->sessions.at[i].texts);
    vec_done(&a->sessions);
    strmap_done(&a->buckets);
    arena_free(a->bucket_arena);
    return mem_free(a);
}
