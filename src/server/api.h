/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - from a request to an operation and back.
 *
 * Finds out who asks and whether they may, reads parameters and body by the operation's row, runs
 * it, and puts every refusal into the one form {"error":{"code","message","path"}}. The operations
 * are in api_*.c. */
#ifndef DROVER_SERVER_API_H
#define DROVER_SERVER_API_H

#include "server/auth.h"
#include "server/control.h"
#include "server/events.h"
#include "server/http.h"
#include "server/jobs.h"
#include "server/routes.h"

#define API_PREFIX "/api/v1"
/* What a host that joined by FleetLock calls its group. */
#define FLEETLOCK_GROUP_LABEL "drover.dev/fleetlock-group"
#define SSE_BACKLOG_MAX INT64_C(1000000000)

typedef struct api {
    control *control;
    jobs *jobs;
    auth *auth;
    events *events;
    http *http;
    struct planner *planner;
    str folder; /* of the data */
    const char *scheme;
    int64_t started_ms;
    bool ready;
    uint64_t answered[6]; /* by the first digit of the status */
    uint64_t refused_rate;
    bool fleetlock_join; /* hosts that are no Resource become one; else they are refused */
    err lost; /* what came before to this commit has not happened; empty: it has, or may yet */
} api;

http_handler api_handler(api *a);
/* What was written before this is durable. When it fails, nothing that was asked together with it
 * has happened. */
bool api_settle(api *a, err *error);

/* Removes copies that a server which was killed did not finish. Only for a server that is alone. */
void backup_sweep(str folder);

/* ---- for the operations ---- */

/* The one form of a refusal. path may be empty. */
void api_fail(call *c, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with what was found. */
void api_problems(call *c, int status, const problems *found);
/* A failure of the store or of memory, or an act that makes no sense. */
void api_error(call *c, const err *error);
/* Writes the answer by the operation's shape. */
void api_answer(call *c, const void *typed);

/* A page: between begin and end each item is written by the caller to api_out, after api_next. */
typedef struct page_writer {
    int64_t limit;
    int64_t count;
    str after; /* ptr is NULL for the first page */
} page_writer;
bool api_page(call *c, page_writer *p);
/* True if there is room for one more item, which is to be written now. */
bool api_next(call *c, page_writer *p);
/* last: what the next page continues behind; empty: there is none. */
void api_page_end(call *c, page_writer *p, str last);

static inline buf *api_out(call *c)
{
    return &c->reply->body;
}

str api_text(const call *c, const char *name); /* empty if it is not given */
bool api_flag(const call *c, const char *name);
int64_t api_number(const call *c, const char *name, int64_t otherwise);
/* Who did what, where the control plane does not write it itself. */
bool api_audit(call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
opt_moment api_moment(int64_t ms); /* 0: not set */
/* Whether a worker's selector lets it work on the resource; true for everybody else. */
bool api_may_work(const call *c, str resource_name);

/* ---- the operations ---- */

#define API_OPERATIONS(X)                                                                          \
    X(health)                                                                                      \
    X(ready)                                                                                       \
    X(metrics)                                                                                     \
    X(openapi)                                                                                     \
    X(info)                                                                                        \
    X(document_list)                                                                               \
    X(document_get)                                                                                \
    X(document_put)                                                                                \
    X(document_delete)                                                                             \
    X(apply)                                                                                       \
    X(publish)                                                                                     \
    X(act)                                                                                         \
    X(target_list)                                                                                 \
    X(target_get)                                                                                  \
    X(fleet)                                                                                       \
    X(plan)                                                                                        \
    X(state)                                                                                       \
    X(rollout_list)                                                                                \
    X(group_list)                                                                                  \
    X(window_list)                                                                                 \
    X(freeze_list)                                                                                 \
    X(journal_list)                                                                                \
    X(events)                                                                                      \
    X(job_list)                                                                                    \
    X(job_get)                                                                                     \
    X(job_log)                                                                                     \
    X(job_log_add)                                                                                 \
    X(job_claim)                                                                                   \
    X(job_heartbeat)                                                                               \
    X(job_complete)                                                                                \
    X(job_cancel)                                                                                  \
    X(token_list)                                                                                  \
    X(token_create)                                                                                \
    X(token_revoke)                                                                                \
    X(link_create)                                                                                 \
    X(login)                                                                                       \
    X(backup)                                                                                      \
    X(fleet_claim)                                                                                 \
    X(fleet_free)
#define X(name) void run_##name(call *c);
API_OPERATIONS(X)
#undef X

#endif
