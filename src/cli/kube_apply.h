/* SPDX-License-Identifier: Apache-2.0 */
/* kube_apply.h - documents that a command writes to a cluster, by server-side apply.
 *
 * What the server would make of a document is looked at before anything is written: a definition
 * that does not know a field drops it without a word, and a rollout would not be what its author
 * wrote. */
#ifndef DROVER_CLI_KUBE_APPLY_H
#define DROVER_CLI_KUBE_APPLY_H

#include "cli/command.h"
#include "cli/kube_session.h"

#define OPTION_FORCE                                                                               \
    {.name = "force", .help = "on a cluster: also write fields that somebody else manages there"}

/* One document on its way. Texts are in the arena it was made with. */
typedef struct kube_document {
    str title; /* "Bundle fleet-default/app" */
    str word;  /* "bundle/fleet-default/app" */
    str collection, name;
    str body;
    bool custom; /* of a kind that a CustomResourceDefinition describes */
} kube_document;

/* Without its status and what only servers write; the kind need not stand in it. False with an
 * error: a kind that is not written this way, or no memory. */
typedef struct kube_kind {
    str api, kind;
} kube_kind;
bool kube_document_of(arena *a, kube_kind of, yyjson_val *json, kube_document *ret, err *error);

typedef struct kube_apply_how {
    bool force;
    bool tried; /* the server says what would be, and keeps nothing */
} kube_apply_how;

/* STATUS_NO with an error: the server refuses it, or would not keep all of it. STATUS_UNREACHABLE
 * with an error: no answer. */
exit_status kube_apply(kube_session *s, const kube_document *d, kube_apply_how how, err *error);

/* A session whose cluster answers; NULL: it was said that it does not. */
kube_session *kube_apply_open(const options *given);

/* Tries all and, if none is refused, writes all; says what was done and what was not. With "tried"
 * nothing is written. */
exit_status kube_apply_all(kube_session *s, const kube_document *at, size_t count,
                           kube_apply_how how);

#endif
