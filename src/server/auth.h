/* SPDX-License-Identifier: Apache-2.0 */
/* auth.h - who may do what.
 *
 * Tokens are 256 random bits; only their SHA-256 is kept, and compared in constant time. Roles
 * grow: a viewer reads, an operator also changes, an admin also hands out tokens; a worker is
 * another kind: it claims and reports jobs of the resources its label selector matches and nothing
 * else. The first admin token is made at the first start and lies in FOLDER/admin-token, readable
 * by its owner only.
 *
 * A link for the dashboard carries a code that works once, for LINK_MS; it is exchanged for a token
 * that lives in memory for SESSION_MS. Decides nothing about requests: routes.h does. */
#ifndef DROVER_SERVER_AUTH_H
#define DROVER_SERVER_AUTH_H

#include "select/labels.h"
#include "store/store.h"

#define AUTH_TOKENS_MAX 10000u
#define AUTH_SESSIONS_MAX 1000u
#define AUTH_LINK_MS INT64_C(300000)
#define AUTH_SESSION_MS INT64_C(43200000)
#define AUTH_TOKEN_BYTES 48 /* "drover_" and 32 bytes as base64url fit, with the zero */
/* Requests a second that one caller may make unless told; at once, those of two seconds. */
#define AUTH_RATE_PER_SECOND 50000
#define AUTH_RATE_PER_SECOND_MAX 1000000
/* The same for requests without a good token, by address; and how many at once. */
#define AUTH_STRANGER_PER_SECOND 200
#define AUTH_STRANGER_BURST 1000
#define AUTH_BUCKETS_MAX 4096u

/* X(name, text), in growing order; NONE needs no token. */
#define ACCESS_LEVELS(X)                                                                           \
    X(NONE, "none")                                                                                \
    X(WORKER, "worker") X(VIEWER, "viewer") X(OPERATOR, "operator") X(ADMIN, "admin")
typedef enum access_level {
#define X(level, text) ACCESS_##level,
    ACCESS_LEVELS(X)
#undef X
} access_level;

typedef struct caller {
    str name;
    access_level level;
    str selector; /* workers */
} caller;

typedef struct auth auth;

auth *auth_open(store *s, str folder, int64_t now_ms, err *error);
auth *auth_close(auth *a);

/* Who has this token. Texts live until the next call that changes something. False: nobody. */
bool auth_find(const auth *a, str token, int64_t now_ms, caller *ret);
/* Another rate for callers, from 1 to AUTH_RATE_PER_SECOND_MAX. */
void auth_set_rate(auth *a, int64_t per_second);
/* Whether a request of this caller (or, for strangers, of this address) is within the rate. */
bool auth_rate(auth *a, str who, bool stranger, int64_t now_ms);

/* A new token for what row says; fills the rest of it. It counts when the row is stored, which is
 * the caller's to do and auth_confirm is told of. */
bool auth_create(auth *a, stored_token *row, int64_t now_ms, char token[AUTH_TOKEN_BYTES],
                 err *error);
void auth_confirm(auth *a, str name, bool stored);
bool auth_in_force(const auth *a, str name);
/* It is revoked in the store: it does not count any more, nor do the sessions it has opened. */
void auth_revoke(auth *a, str name, int64_t now_ms);

/* A code for a link; it stands for the caller's own rights. */
bool auth_link(auth *a, const caller *c, int64_t now_ms, char code[AUTH_TOKEN_BYTES], err *error);
/* Exchanges it. False: it is not, or no longer, good. */
bool auth_login(auth *a, str code, int64_t now_ms, char token[AUTH_TOKEN_BYTES], err *error);

/* ACCESS_NONE for a word that is no role. */
access_level access_find(str role);
const char *access_text(access_level level);

#endif
