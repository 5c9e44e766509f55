/* SPDX-License-Identifier: Apache-2.0 */
/* agent_internal.h - the inside of the agent's shell, for agent_*.c of the shell alone. */
#ifndef DROVER_CLUSTER_AGENT_AGENT_INTERNAL_H
#define DROVER_CLUSTER_AGENT_AGENT_INTERNAL_H

#include "base/strmap.h"
#include "base/vec.h"
#include "cluster_agent/agent_shell.h"

#define AGENT_GROUP_FLEET "/apis/fleet.cattle.io/v1alpha1"
#define AGENT_PATH_BYTES_MAX 4096u
#define AGENT_PATHS_BYTES_MAX (4u << 20)
#define AGENT_TROUBLE_BYTES 768

/* Whether the hub has a deployment. */
#define AGENT_LEAVES(X)                                                                            \
    X(STAYS) /* or nobody knows yet */                                                             \
    X(LEFT)  /* it is gone; nothing is done before the hub's Cluster is known to be there still */ \
    X(GONE)  /* what it put into the cluster is to go */
typedef enum agent_leave {
#define X(leave) AGENT_##leave,
    AGENT_LEAVES(X)
#undef X
} agent_leave;

/* A deployment, and the one request that is under way for it. */
typedef struct agent_entry {
    agent_shell *shell;
    char *name;
    uint64_t owner; /* hash of the label's value */
    deployment_steps *steps;
    yyjson_doc *deployment; /* as the hub has it; NULL: it has none */
    agent_leave leave;
    uint64_t left_at; /* the sign of life that was sent last when it left */
    step_kind kind;   /* of the step that is under way */
    char *collection; /* and where its object is */
    bool running;
    bool unlabelled; /* some of its objects are not told by watches: a chart's */
    bool discovers;  /* it waits until the kinds were read */
    bool queues;     /* it waits until nobody else unpacks */
    int64_t due_ms;  /* 0: now */
    char *told;      /* for what it was last said to wait */
} agent_entry;

struct agent_kind {
    agent_shell *shell;
    char *path;     /* over all namespaces, without query */
    strmap objects; /* "namespace/name" -> hash of the owner; keys are owned */
    bool synced;
    int64_t idle_ms; /* since when there is nothing of it; INT64_MAX: there is */
};

/* Reading the cluster's kinds: one request after the other. */
typedef struct agent_discovery {
    bool running;
    bool partly; /* somebody did not tell */
    buf paths;   /* to be read, one a line */
    size_t at;
} agent_discovery;

/* Whether the hub that answers is the one whose cluster this is; see agent_hub.c. */
typedef struct agent_hub {
    bool known;                        /* it is: work may be done */
    bool beating;                      /* a sign of life is under way */
    bool met;                          /* the hub's Cluster is ours by what it says itself */
    bool space_asked, space;           /* the namespace of the record was made, or is there */
    bool asking;                       /* a request for the record is under way */
    bool recorded;                     /* the record names this uid */
    bool trusted;                      /* the record was ours in this life */
    uint64_t sent;                     /* signs of life */
    char *uid;                         /* of the hub's Cluster */
    char trouble[AGENT_TROUBLE_BYTES]; /* why not; empty: nothing was found wrong */
    int64_t beat_ms;                   /* when the next sign of life is due */
    int64_t ask_ms;                    /* when the record may be asked for again */
    uint64_t beats;
} agent_hub;

struct agent_shell {
    agent_shell_settings settings;
    agent_api api;
    discovery *discovery;
    agent_discovery reading;
    VEC(agent_entry *) entries;
    const agent_entry *unpacks; /* the one that may; NULL: none does */
    VEC(agent_kind *) kinds;
    VEC(const yyjson_val *) deployments; /* for dependsOn: made anew in each turn */
    bool synced[AGENT_WATCH_COUNT];
    bool due, no_memory;
    agent_hub hub;
    int64_t next_ms;
    uint64_t steps_done;
};

/* ---- agent_shell.c ---- */
/* NULL without memory. */
char *agent_copy(agent_shell *s, str text);
/* The text of a member of a member; empty: there is none. */
str agent_text_at(const yyjson_val *of, const char *inner, const char *name);
/* The label that says whose an object is; empty: it has none. */
str agent_owner_of(const yyjson_val *json);
/* It is looked at in the next turn. */
void agent_entry_wake(agent_entry *e);
void agent_entry_answer(agent_entry *e, const step_answer *answer);

/* Something that work waits for is known now: if it was the last, who is gone is found. */
void agent_shell_begin(agent_shell *s);
/* Whether a deployment left, and nobody knows yet whether the Cluster did, too. */
bool agent_shell_left(const agent_shell *s);
/* The hub's Cluster took this sign of life: who left before it was sent is gone. */
void agent_shell_confirm(agent_shell *s, uint64_t beat);

/* ---- agent_hub.c ---- */
/* Sends what is due: signs of life, and requests for the record. */
void agent_hub_step(agent_shell *s, int64_t now_ms);
int64_t agent_hub_next_ms(const agent_shell *s);
/* A sign of life is due now. */
void agent_hub_hurry(agent_shell *s);

/* ---- agent_kinds.c ---- */
/* Objects of that collection are told from now on, in all namespaces. */
void agent_kind_follow(agent_shell *s, str collection);
agent_kind *agent_kind_free(agent_kind *k);
/* Ends watches of kinds of which nothing is left. */
void agent_kinds_step(agent_shell *s, int64_t now_ms);
/* Whether all that is watched was told in whole. */
bool agent_kinds_watched(const agent_shell *s);
/* Reads which kinds the cluster has; then all entries that wait for it are answered. */
void agent_kinds_read(agent_shell *s);

#endif
