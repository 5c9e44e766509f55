/* SPDX-License-Identifier: Apache-2.0 */
/* kube_session.h - a cluster as commands see it: one question after the other.
 *
 * Every call waits for its answer. Built on src/kube: the same kubeconfig, the same rules for
 * writes. Nothing is cached. */
#ifndef DROVER_CLI_KUBE_SESSION_H
#define DROVER_CLI_KUBE_SESSION_H

#include "base/arena.h"
#include "cli/options.h"
#include "kube/write.h"

#define KUBE_NAMESPACE "skyhook" /* where the operator lives unless told otherwise */
#define KUBE_LIST_PAGE 500

#define OPTION_KUBECONFIG                                                                          \
    {.name = "kubeconfig",                                                                         \
     .argument = "FILE",                                                                           \
     .help = "how to reach the cluster ($KUBECONFIG, ~/.kube/config)"}
#define OPTION_CONTEXT                                                                             \
    {.name = "context", .argument = "NAME", .help = "context of the kubeconfig (the current one)"}
/* What kubectl plugins take. */
#define OPTIONS_CLUSTER                                                                            \
    OPTION_KUBECONFIG, OPTION_CONTEXT,                                                             \
        {.name = "namespace",                                                                      \
         .letter = 'n',                                                                            \
         .argument = "NAME",                                                                       \
         .help = "of the operator (" KUBE_NAMESPACE ")"},                                          \
        {.name = "server",                                                                         \
         .letter = 's',                                                                            \
         .argument = "URL",                                                                        \
         .help = "the API server, instead of the context's"},                                      \
        {.name = "token", .argument = "TEXT", .help = "bearer token, instead of the context's"},   \
        {.name = "as", .argument = "USER", .help = "user to impersonate"},                         \
        {.name = "as-group",                                                                       \
         .argument = "NAME",                                                                       \
         .repeatable = true,                                                                       \
         .help = "group to impersonate"},                                                          \
        {.name = "as-uid", .argument = "UID", .help = "uid to impersonate"},                       \
        {.name = "cluster", .argument = "NAME", .help = "of the kubeconfig, instead of the "       \
                                                        "context's"},                              \
        {.name = "user", .argument = "NAME", .help = "of the kubeconfig, instead of the "          \
                                                     "context's"},                                 \
        {.name = "certificate-authority", .argument = "FILE", .help = "PEM, for the server's "     \
                                                                      "certificate"},              \
        {.name = "insecure-skip-tls-verify", .help = "do not look at the server's certificate"},   \
        {.name = "client-certificate", .argument = "FILE", .help = "PEM, shown to the server"},    \
        {.name = "client-key", .argument = "FILE", .help = "PEM, of that certificate"},            \
        {.name = "tls-server-name", .argument = "NAME", .help = "that the server's certificate "   \
                                                                "has"},                            \
        {.name = "request-timeout", .argument = "D", .help = "how long an answer may take, 60s "   \
                                                             "at the most"},                       \
        {.name = "cache-dir", .argument = "DIR", .help = "accepted, and without effect"},          \
        {.name = "disable-compression", .help = "accepted, and without effect"}

typedef struct kube_session kube_session;

/* By the options above, those of them that the command has. */
kube_session *kube_session_open(const options *given, err *error);
kube_session *kube_session_close(kube_session *s);
/* How long an answer may take: a duration, or whole seconds; "0": as long as a connection waits.
 * name: of the option whose word that is. */
bool kube_session_limit(kube_session *s, const char *name, str time, err *error);
str kube_session_namespace(const kube_session *s);
str kube_session_server(const kube_session *s); /* https://host:port */
/* The time by the server's clock, as its answers showed it; by this machine's before there is one.
 */
int64_t kube_session_now_ms(const kube_session *s);

typedef struct kube_reply {
    int status; /* of HTTP */
    yyjson_val *body;
    char message[WRITE_MESSAGE_BYTES]; /* the server's words when status is 400 or above */
} kube_reply;

/* False: there was no answer at all. The body is in a. A server that says that it has too much to
 * do is asked again, a few times. */
bool kube_get(kube_session *s, str path, arena *a, kube_reply *ret, err *error);
/* Calls each for every object of a collection, page by page; it may keep nothing of what it is
 * shown. False: no answer, or a refusal. */
typedef bool kube_each(void *context, yyjson_val *object, err *error);
bool kube_list(kube_session *s, str path, kube_each *each, void *context, err *error);
/* The same, but a kind that the server does not know has no objects. A server that does not say so
 * to somebody without rights is asked whether it has the group. */
bool kube_list_known(kube_session *s, str path, kube_each *each, void *context, err *error);
/* Hands on the bytes of the answer as they come; a stream may take as long as it likes. It ends,
 * well, when they are of no use any more: false. */
typedef bool kube_bytes(void *context, str bytes);
bool kube_stream(kube_session *s, str path, kube_bytes *bytes, void *context, err *error);
/* False: it could not be sent. */
bool kube_write_one(kube_session *s, const kube_write *w, write_outcome *ret, err *error);
/* The same, with the object as the server has it from then on. */
typedef struct kube_answer {
    write_outcome outcome;
    yyjson_val *body; /* in the arena that was given; NULL: the server did not say */
} kube_answer;
bool kube_write_answered(kube_session *s, const kube_write *w, arena *a, kube_answer *ret,
                         err *error);

#endif
