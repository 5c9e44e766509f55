/* SPDX-License-Identifier: Apache-2.0 */
/* console_internal.h - the inside of the console, for console*.c alone. */
#ifndef DROVER_CONSOLE_CONSOLE_INTERNAL_H
#define DROVER_CONSOLE_CONSOLE_INTERNAL_H

#include "console/claims.h"
#include "console/console.h"
#include "console/kept.h"
#include "kube/connection.h"
#include "kube/write.h"
#include "server/events.h"
#include "server/planner.h"
#include "server/refusal.h"
#include "server/views.h"

#define CONSOLE_PREFIX "/api/v1"
#define CONSOLE_BODY_BYTES_MAX (64u * 1024u)
#define CONSOLE_PAGE_ITEMS 100
#define CONSOLE_PAGE_ITEMS_MAX 1000
#define CONSOLE_SKYHOOKS "/apis/skyhook.nvidia.com/v1alpha1/skyhooks"
#define CONSOLE_BUNDLES HUB_API "/namespaces/%.*s/bundles"
#define CONSOLE_ENGINES_MAX 2 /* of nodes, and of clusters */
/* What is asked of the API server in viewers' names at once: each costs it something. */
#define ERRANDS_MAX 32
#define ERRAND_ANSWERS_MAX 8
#define ERRAND_BYTES_MAX (4u << 20)
#define VIEWERS_KEPT 64
#define VIEWER_MS INT64_C(60000) /* then the API server is asked again who somebody is */
#define VIEWER_TOKEN_BYTES_MAX 8192
#define VIEWER_NAME_BYTES 256
#define VIEWER_DIGEST_BYTES 32
#define VIEWER_SPACES_MAX 8 /* namespaces that are asked for one by one, the first by name */
#define VIEWER_SPACE_BYTES 64

/* Somebody who has shown a token that the API server knows. */
typedef struct viewer {
    unsigned char digest[VIEWER_DIGEST_BYTES]; /* SHA-256 of the token, which is not kept */
    char name[VIEWER_NAME_BYTES];
    bool looks;                    /* may list all that is served, Skyhooks or Bundles */
    bool acts_nodes, acts_bundles; /* may patch Skyhooks; may patch Bundles, wherever they are */
    char spaces[VIEWER_SPACES_MAX][VIEWER_SPACE_BYTES]; /* else: Bundles of these namespaces */
    size_t space_count;
    int64_t until_ms; /* 0: nobody */
} viewer;

typedef struct errand errand;

struct console {
    console_settings settings;
    arena *texts;
    char address[64];
    uint16_t port;
    str certificate, key;
    bool open_to_all; /* a loopback address */
    http *http;       /* this and what follows is there while it is open */
    planner *planner;
    events *events;
    kube_access access; /* without credentials */
    connection *connection;
    const node_shell *nodes; /* both NULL: the operator does not work */
    const cluster_shell *clusters;
    bool found; /* what was in flight when it began is among the claims */
    kept kept;
    claims claims;
    int64_t sequence, started_ms;
    viewer viewers[VIEWERS_KEPT];
    errand *errands;
    size_t errand_count;
};

/* One request. In its arena. */
typedef struct asking {
    console *console;
    http_request *request;
    http_reply *reply;
    const struct console_route *route;
    str name;      /* what stands behind the route's word; empty: nothing */
    str token;     /* empty: none was shown */
    viewer viewer; /* of the token; nobody without one */
    int64_t now_ms;
} asking;

typedef struct console_route {
    const char *method;
    const char *word; /* behind CONSOLE_PREFIX */
    bool named;       /* something stands behind the word */
    bool any_time;    /* also while the operator does not work */
    void (*run)(asking *a);
} console_route;

/* ---- console.c ---- */
/* The engines that know something: how many. 0: nothing is known, or not everything yet. */
size_t console_engines(console *c, const engine *ret[CONSOLE_ENGINES_MAX]);
/* One more entry of the journal. */
void console_note(console *c, const char *kind, str who, str json);
void console_run(asking *a);
void console_fail(asking *a, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- console_answers.c ---- */
void answer_info(asking *a);
void answer_fleet(asking *a);
void answer_targets(asking *a);
void answer_groups(asking *a);
void answer_freezes(asking *a);
void answer_jobs(asking *a);
void answer_journal(asking *a);
void answer_events(asking *a);
void answer_resources(asking *a);
void answer_resource(asking *a);

/* ---- console_plan.c ---- */
void answer_plan(asking *a);

/* ---- console_viewer.c: what is asked of the API server in the viewer's name ---- */
typedef struct errand_answer {
    errand *errand;
    connection_result result;
    int status;
    buf body;
    char problem[WRITE_MESSAGE_BYTES];
} errand_answer;

struct errand {
    console *console;
    errand *next, **link;
    asking *asking;
    size_t pending;
    bool dropped; /* nobody waits for it */
    size_t count;
    errand_answer answers[ERRAND_ANSWERS_MAX];
    /* Of who it is: the namespaces that are asked for. */
    str spaces[VIEWER_SPACES_MAX];
    /* Of an act. */
    str act, change, target, partition, reason;
    char version[24]; /* of the Skyhook or Bundle that was patched last */
    int tries;
};

/* Who has shown the token; false: it is not known, and errands find out. */
bool viewer_find(const console *c, str token, int64_t now_ms, viewer *ret);
/* Asks who it is; then the request is run. */
void viewer_ask(asking *a);
void viewer_forget(console *c, str token);
/* NULL: the reply says why. step: see http_later. */
errand *errand_new(asking *a, bool (*step)(void *context, http_reply *r));
bool errand_send(errand *e, const exchange_request *request, err *error);
yyjson_val *errand_json(const errand *e, size_t i);
void errand_over(errand *e);

/* ---- console_acts.c ---- */
void answer_act(asking *a);

#endif
