/* SPDX-License-Identifier: Apache-2.0 */
/* write.h - one write to the API server as a value, and what its answer means.
 *
 * Pure: makes the request of a write, and judges an answer. It neither sends nor repeats: the rules
 * for that are those of write_queue.h; writer.h carries them out.
 *
 * Every write has a precondition, so that one of a controller that is no longer in charge cannot
 * take effect: a create has the object's name, any other has the version or the uid that the object
 * must still have, or a test of its own. One that can do no harm without says "anyhow".
 *
 *     kube_write w = {.verb = WRITE_MERGE, .collection = STR("/api/v1/nodes"), .name = node,
 *                     .version = seen_version, .body = STR("{\"spec\":{\"unschedulable\":true}}")};
 */
#ifndef DROVER_KUBE_WRITE_H
#define DROVER_KUBE_WRITE_H

#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"
#include "kube/connection.h"

#define WRITE_BODY_BYTES_MAX (4u << 20)
#define WRITE_MESSAGE_BYTES 512
#define WRITE_RETRY_AFTER_MAX_S 3600

/* Verb, HTTP method, content type. A read stands among them because it may have to keep its place
 * between two writes of the same object. */
#define WRITE_VERBS(X)                                                                             \
    X(READ, "GET", NULL)                                                                           \
    X(CREATE, "POST", "application/json")                                                          \
    X(UPDATE, "PUT", "application/json")                                                           \
    X(MERGE, "PATCH", "application/merge-patch+json")                                              \
    X(STRATEGIC, "PATCH", "application/strategic-merge-patch+json")                                \
    X(JSON_PATCH, "PATCH", "application/json-patch+json")                                          \
    X(APPLY, "PATCH", "application/apply-patch+yaml")                                              \
    X(DELETE, "DELETE", "application/json")                                                        \
    X(EVICT, "POST", "application/json")

typedef enum write_verb {
#define X(verb, method, type) WRITE_##verb,
    WRITE_VERBS(X)
#undef X
} write_verb;

/* What becomes of the objects that a deleted one owns. */
#define WRITE_PROPAGATIONS(X)                                                                      \
    X(BACKGROUND, "Background") X(FOREGROUND, "Foreground") X(ORPHAN, "Orphan")

typedef enum write_propagation {
#define X(propagation, text) WRITE_##propagation,
    WRITE_PROPAGATIONS(X)
#undef X
} write_propagation;

typedef struct kube_write {
    write_verb verb;
    str collection; /* /apis/batch/v1/namespaces/skyhook/jobs; of an eviction: that of the pods */
    str name;       /* of the object, also when it is created; of a read: empty is the collection */
    str subresource;    /* "status", or empty */
    str body;           /* JSON; none with a read, a delete and an eviction */
    str version;        /* resourceVersion that it must still have; empty: any */
    str uid;            /* uid that it must have; empty: any */
    str manager;        /* of the fields; needed by an apply */
    str user;           /* whose rights count; empty: those of the connection */
    const char *accept; /* the form of the answer; static, NULL: JSON */
    bool row;           /* the answer is a row of a table (list_watch.h), and comes in one piece */
    bool force;         /* of an apply: takes fields from other managers */
    bool tried;         /* of an apply: the server says what would be, and keeps nothing */
    bool anyhow;        /* it needs no precondition */
    write_propagation propagation; /* of a delete */
    bool has_grace;                /* of a delete and an eviction: grace_s counts */
    int64_t grace_s;
} kube_write;

/* False with an error when it cannot be sent as it is, such as for want of a precondition. */
bool write_check(const kube_write *w, err *error);
/* The request's path with query, and its body with the preconditions. False without memory, or if
 * the body is not JSON of the right kind, where that is looked at. */
bool write_path(const kube_write *w, buf *out);
bool write_body(const kube_write *w, buf *out);
const char *write_method(write_verb verb);
/* NULL: there is no body. */
const char *write_content_type(write_verb verb);
/* May be sent twice without another effect than once. */
bool write_repeatable(const kube_write *w);

#define WRITE_OUTCOMES(X)                                                                          \
    X(DONE, "done")                                                                                \
    X(EXISTS, "exists")       /* a create: there is an object with that name */                    \
    X(CONFLICT, "conflict")   /* a precondition does not hold */                                   \
    X(GONE, "gone")           /* there is no such object; what a delete wants, too */              \
    X(REFUSED, "refused")     /* and will be again; message says why, also a missing namespace */  \
    X(BLOCKED, "blocked")     /* an eviction, by a PodDisruptionBudget */                          \
    X(LATER, "later")         /* the server cannot now */                                          \
    X(AMBIGUOUS, "ambiguous") /* it may have taken effect or not, or may still do so */            \
    X(BARRED, "barred")       /* it was not allowed to be sent any more, and was not */

typedef enum write_outcome_kind {
#define X(outcome, text) WRITE_##outcome,
    WRITE_OUTCOMES(X)
#undef X
} write_outcome_kind;
const char *write_outcome_text(write_outcome_kind kind);

typedef struct write_outcome {
    write_outcome_kind kind;
    int status;      /* of HTTP; 0: no answer */
    bool maybe;      /* of WRITE_LATER: it may have taken effect all the same */
    bool no_path;    /* the server has no such collection, whatever the object is called */
    int64_t wait_ms; /* that the server asked for; 0: it did not say */
    char budget[LIMIT_NAME_BYTES + 1]; /* of WRITE_BLOCKED; empty: the server named none */
    char message[WRITE_MESSAGE_BYTES]; /* the server's words, or what happened to the connection */
} write_outcome;

typedef struct write_answer {
    connection_result result;
    str problem; /* unless whole */
    int status;
    int64_t retry_after_s;
    yyjson_val *body; /* NULL: none, or no JSON */
} write_answer;

write_outcome write_judge(write_verb verb, const write_answer *answer);

#endif
