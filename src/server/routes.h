/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - every operation of the HTTP interface, in one table.
 *
 * A row says all there is to say of an operation: method, path, who may, what goes in and what
 * comes out. Dispatch, the "Allow" of a wrong method, the checks of parameters and bodies and the
 * OpenAPI document come from these rows, so none of them can say something else than the others. */
#ifndef DROVER_SERVER_ROUTES_H
#define DROVER_SERVER_ROUTES_H

#include "engine/fact.h"
#include "model/shape.h"
#include "server/auth.h"
#include "server/http.h"

#define ROUTE_ARGUMENTS_MAX 3
#define PAGE_ITEMS_DEFAULT 100
#define PAGE_ITEMS_MAX 1000

struct api;
struct operation;

/* One request on its way through an operation. */
typedef struct call {
    struct api *api;
    const struct operation *operation;
    http_request *request;
    http_reply *reply;
    caller caller;
    str arguments[ROUTE_ARGUMENTS_MAX]; /* what stands at the {...} of the path */
    void *input;                        /* the body, read by the operation's shape */
    int64_t now_ms;
} call;

#define PARAMETER_TYPES(X) X(TEXT, "string") X(NUMBER, "integer") X(FLAG, "boolean")
typedef enum parameter_type {
#define X(type, text) PARAMETER_##type,
    PARAMETER_TYPES(X)
#undef X
} parameter_type;

typedef struct parameter {
    const char *name;
    parameter_type type;
    int64_t min, max;         /* numbers */
    const char *const *words; /* texts: the only ones allowed, up to NULL */
    const char *pattern;      /* texts: for the reader; the operation checks it */
    const char *about;
} parameter;

/* A header that an operation reads. It checks the value itself. */
typedef struct header_rule {
    const char *name;
    const char *word;    /* the only value there is, or NULL */
    const char *pattern; /* or NULL */
    bool required;
    const char *about;
} header_rule;

/* What a body is made of: a shape, or where shapes cannot say it, a schema as JSON. */
typedef struct schema {
    const char *name; /* NULL: there is none */
    const shape *shape;
    const char *literal;
} schema;

#define ANSWER_FORMS(X)                                                                            \
    X(OBJECT, "one")                                                                               \
    X(LIST, "a page: items and, if there are more, continue")                                      \
    X(TEXT, "text/plain; version=0.0.4; charset=utf-8")                                            \
    X(LOG, "text/plain; charset=utf-8")                                                            \
    X(EVENTS, "text/event-stream")                                                                 \
    X(BYTES, "application/octet-stream")
typedef enum answer_form {
#define X(form, text) ANSWER_##form,
    ANSWER_FORMS(X)
#undef X
} answer_form;

typedef struct operation {
    const char *id;
    const char *method;
    const char *path; /* "/api/v1/jobs/{number}" */
    const char *summary;
    access_level level; /* at least; ACCESS_NONE: no token */
    bool worker;        /* workers may, too, for their resources */
    bool documents;     /* the body is one or more documents, JSON or YAML */
    bool raw;           /* the body is bytes */
    bool fleet_lock;    /* refusals also in FleetLock's form */
    object_kind kind;   /* of document operations */
    act_kind act;       /* of actions */
    schema input;
    schema answer;
    answer_form form;
    int status;                  /* of success; 0: 200 */
    const parameter *parameters; /* ends with a row without name; may be NULL */
    const header_rule *headers;  /* the same */
    void (*run)(call *c);
} operation;

extern const operation operations[];
extern const size_t operation_count;

/* The operation at a path, or NULL. Without one, allow gets the methods the path has, as in the
 * header; it stays empty for a path that does not exist. Words win over arguments: nothing that
 * "/jobs/{number}" has is at "/jobs/claim". */
const operation *route_find(const uri *u, str method, str arguments[ROUTE_ARGUMENTS_MAX],
                            char allow[64]);

/* The OpenAPI 3.1 document. */
void openapi_write(buf *out);

#endif
