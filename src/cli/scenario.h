/* SPDX-License-Identifier: Apache-2.0 */
/* scenario.h - from the flags of plan and explain to a virtual fleet.
 *
 * Reads documents, made-up targets, durations, failures and events, and hands back a simulation
 * that has not begun. The fleet is made of files, or is the one of a server: then documents are
 * what is applied to it first. Decides nothing about rollouts. */
#ifndef DROVER_CLI_SCENARIO_H
#define DROVER_CLI_SCENARIO_H

#include "cli/client.h"
#include "cli/input.h"
#include "sim/live.h"

typedef struct scenario {
    input in;
    files *event_files;
    arena *arena;
    sim *sim;
    client *client; /* of the server of a live fleet; NULL: there is none */
    bool alive;     /* the fleet is a server's or a cluster's */
    live live;
    buf text; /* of the live fleet */
} scenario;

/* What plan and explain share. */
#define SCENARIO_OPTIONS                                                                           \
    OPTION_FILES,                                                                                  \
        {.name = "nodes",                                                                          \
         .argument = "N[:K=V,...]",                                                                \
         .repeatable = true,                                                                       \
         .help = "add N made-up nodes node-0001 ... with these labels"},                           \
        {.name = "clusters",                                                                       \
         .argument = "N[:K=V,...]",                                                                \
         .repeatable = true,                                                                       \
         .help = "add N made-up clusters cluster-0001 ..."},                                       \
        {.name = "resources",                                                                      \
         .argument = "N[:K=V,...]",                                                                \
         .repeatable = true,                                                                       \
         .help = "add N made-up resources resource-0001 ..."},                                     \
        {.name = "duration",                                                                       \
         .argument = "[NAME=]D",                                                                   \
         .repeatable = true,                                                                       \
         .help =                                                                                   \
             "how long a stage, deployment or job takes (60s); NAME: one package, deployment or "  \
             "bundle, or drain (0s)"},                                                             \
        {.name = "fail",                                                                           \
         .argument = "[NAME@]TARGET",                                                              \
         .repeatable = true,                                                                       \
         .help = "it fails every time; NAME: only this package, deployment or bundle"},            \
        {.name = "fail-once",                                                                      \
         .argument = "[NAME@]TARGET",                                                              \
         .repeatable = true,                                                                       \
         .help = "it fails the first time"},                                                       \
        {.name = "offline", .argument = "TARGET", .repeatable = true, .help = "it never answers"}, \
        {.name = "silent", .help = "no cluster ever answers"},                                     \
        {.name = "from",                                                                           \
         .argument = "[NAME=]VERSION",                                                             \
         .repeatable = true,                                                                       \
         .help = "targets run this version of the package, deployment or bundle already"},         \
        {.name = "at", .argument = "TIME", .help = "virtual start, RFC 3339 (now)"},               \
        {.name = "until", .argument = "D", .help = "how far to look ahead (90d)"},                 \
        {.name = "events",                                                                         \
         .argument = "FILE",                                                                       \
         .help = "things that happen on the way, one JSON object a line"},                         \
        {.name = "seed", .argument = "N", .help = "for everything random; without it nothing is"}, \
        {.name = "kubeconfig",                                                                     \
         .argument = "FILE",                                                                       \
         .help = "a live cluster, which is only read; its documents are those of the API server"}, \
        {.name = "context", .argument = "NAME", .help = "context of the kubeconfig"}

/* STATUS_DONE, or the status to exit with: what is wrong was said. tell: keep the story.
 * scenario_done is needed in either case. */
exit_status scenario_read(scenario *sc, const verb *c, const options *given, bool tell);
/* The same of a cluster, whatever options there are. */
exit_status scenario_read_cluster(scenario *sc, const verb *c, const options *given);
/* The answer of drover explain about a node of a cluster: operand and options of the command. */
exit_status explain_cluster(const options *given);
/* Whether the fleet is a server's: --server, or nothing else is given and there is a server. */
bool scenario_live(const options *given);
void scenario_done(scenario *sc);

/* A duration that is not negative, in milliseconds. */
bool scenario_duration(str text, int64_t *ret_ms, err *error);

#endif
