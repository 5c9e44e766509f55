/* SPDX-License-Identifier: Apache-2.0 */
/* skyhook.h - what the commands of `kubectl skyhook` share.
 *
 * They read and write objects of the cluster: annotations and labels of nodes, annotations and
 * status of Skyhooks. What concerns work under way is asked of the operator by an annotation
 * (operator/act_request.h). No rule about rollouts is here. */
#ifndef DROVER_CLI_SKYHOOK_H
#define DROVER_CLI_SKYHOOK_H

#include "base/vec.h"
#include "cli/command.h"
#include "cli/kube_session.h"
#include "engine/fact.h"
#include "model/document.h"

#define SKYHOOK_PREFIX "skyhook.nvidia.com/"
#define SKYHOOKS_PATH "/apis/skyhook.nvidia.com/v1alpha1/skyhooks"
#define NODES_PATH "/api/v1/nodes"

/* In the order in which help lists them. */
#define SKYHOOK_VERBS(X)                                                                           \
    X(reset)                                                                                       \
    X(deployment_policy_reset)                                                                     \
    X(pause)                                                                                       \
    X(resume)                                                                                      \
    X(disable)                                                                                     \
    X(enable)                                                                                      \
    X(node_list)                                                                                   \
    X(node_status)                                                                                 \
    X(node_reset)                                                                                  \
    X(node_retry)                                                                                  \
    X(node_ignore)                                                                                 \
    X(node_unignore)                                                                               \
    X(package_list)                                                                                \
    X(package_status)                                                                              \
    X(package_logs)                                                                                \
    X(package_rerun)                                                                               \
    X(explain)                                                                                     \
    X(version)                                                                                     \
    X(help)

#define X(name) extern const verb skyhook_##name;
SKYHOOK_VERBS(X)
#undef X

#define OPTION_CONFIRM {.name = "confirm", .letter = 'y', .help = "do not ask"}
#define OPTION_DRY_RUN {.name = "dry-run", .help = "say what would be done, and do nothing"}
#define OPTION_OF_SKYHOOK {.name = "skyhook", .argument = "NAME", .help = "the Skyhook"}
#define OPTION_FORM                                                                                \
    {.name = "output",                                                                             \
     .letter = 'o',                                                                                \
     .argument = "FORM",                                                                           \
     .help = "table, json, yaml or wide (table)"}
/* Scripts give it to every command. */
#define OPTION_FORM_ANYHOW                                                                         \
    {.name = "output",                                                                             \
     .letter = 'o',                                                                                \
     .argument = "FORM",                                                                           \
     .help = "accepted, and without effect: what is said is text"}
#define OPTIONS_SKYHOOK                                                                            \
    OPTION_DRY_RUN, OPTIONS_CLUSTER,                                                               \
    {                                                                                              \
        .name = "verbose", .letter = 'v', .help = "accepted, and without effect"                   \
    }

/* A node, as far as Skyhooks left something on it. */
typedef struct sk_node {
    str name, version;
    bool unschedulable;
    label_set labels, annotations; /* under skyhook.nvidia.com/ only */
} sk_node;

#define SK_FORMS(X) X(TABLE, "table") X(JSON, "json") X(YAML, "yaml") X(WIDE, "wide")
typedef enum sk_form {
#define X(form, text) SK_##form,
    SK_FORMS(X)
#undef X
} sk_form;

typedef struct sk {
    kube_session *session;
    arena *arena;
    const options *given;
    sk_form form;
    bool dry_run;
    VEC(sk_node) nodes; /* sorted by name, once listed */
} sk;

/* Opens the cluster, does the work, closes it. */
exit_status sk_run(const options *given, exit_status (*work)(sk *));

/* The Skyhook; NULL: there is none, or no answer, and that was said. */
yyjson_val *sk_skyhook(sk *s, str name);
/* The value of --skyhook; ptr is NULL, and a message shown, when it is missing. */
str sk_of(const sk *s);
/* Lists all nodes. False: a message was shown. */
bool sk_list_nodes(sk *s);
/* Those that the words name: one by its name, or by a regular expression that matches all of it.
 * No words: all. False: a message was shown; a name that is no node's is told, too. */
typedef struct sk_words {
    const str *at;
    size_t len;
} sk_words;
bool sk_pick(sk *s, sk_words words);
str sk_annotation(const sk_node *n, const char *kind, str of);

/* Whether to go on: --confirm, or a yes at the prompt. Says "Aborted." otherwise. */
bool sk_confirm(const sk *s, const char *prompt);
/* Writes, or says why not. what: "node x". */
bool sk_write(sk *s, const kube_write *w, const char *what);
/* The same for a node that the operator has been asked about (sk_request). Where Drover's notes on
 * it have changed since it was read, it is left to the operator; where only others have changed it,
 * as kubelets do all the time, it is written again. The version is filled in. */
bool sk_write_requested(sk *s, kube_write *w, const sk_node *n);
/* Asks the operator, by the Skyhook's annotation. */
typedef struct sk_acts {
    const fact_act *at;
    size_t len;
} sk_acts;
bool sk_request(sk *s, str of, sk_acts acts);
/* Whether an operator is there that has done what was asked: nothing is left to write. Waits for it
 * for a short while. */
bool sk_taken(sk *s, str of);

/* Names of nodes where a Job of the Skyhook runs: a list of JSON texts; NULL: message shown. */
typedef VEC(str) sk_names;
bool sk_running(sk *s, str of, sk_names *ret);
bool sk_names_have(const sk_names *names, str name);

/* ---- output ---- */

/* Cells row by row, the titles first; ends the table with two blanks between columns and a row of
 * dashes under the titles. */
typedef struct sk_table {
    VEC(str) cells;
    size_t columns;
} sk_table;
void sk_cell(sk *s, sk_table *t, const char *format, ...) __attribute__((format(printf, 3, 4)));
exit_status sk_print(sk *s, sk_table *t);
/* A member of an object that begins with the first of them. */
void sk_put_key(buf *out, bool *first, const char *key, str value);
/* Prints JSON text in the form asked for: JSON of two blanks, or YAML with keys sorted. */
exit_status sk_print_value(sk *s, buf *json);

#endif
