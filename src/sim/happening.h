/* SPDX-License-Identifier: Apache-2.0 */
/* happening.h - things that people and the world do to a virtual fleet on the way.
 *
 * A happening is one line of an events file: {"after":"5m","do":"cordon","target":"node-0001"}.
 * This module reads lines; sim.h lets them happen. */
#ifndef DROVER_SIM_HAPPENING_H
#define DROVER_SIM_HAPPENING_H

#include "engine/fact.h"

#define HAPPENINGS(X)                                                                              \
    X(PUBLISH, "publish")                                                                          \
    X(PAUSE, "pause")                                                                              \
    X(RESUME, "resume")                                                                            \
    X(APPROVE, "approve")                                                                          \
    X(CORDON, "cordon")                                                                            \
    X(UNCORDON, "uncordon")                                                                        \
    X(JOIN, "join")                                                                                \
    X(DELETE, "delete")                                                                            \
    X(LABEL, "label") X(FAIL, "fail") X(HEAL, "heal") X(OFFLINE, "offline") X(ONLINE, "online")    \
        X(APPLY, "apply") X(RETRY, "retry") X(SKIP, "skip") X(RESET, "reset") X(REBOOT, "reboot")  \
            X(REJECT, "reject") X(ROLLBACK, "rollback") X(BYPASS, "bypass") X(FREEZE, "freeze")    \
                X(THAW, "thaw") X(HALT, "halt") X(TAINT, "taint") X(UNTAINT, "untaint")            \
                    X(CLAIM_SLOT, "claimSlot") X(FREE_SLOT, "freeSlot") X(RERUN, "rerun")

typedef enum happening_kind {
#define X(kind, text) HAPPEN_##kind,
    HAPPENINGS(X)
#undef X
} happening_kind;

/* Texts live as long as the simulation. What is not given is empty. */
typedef struct happening {
    happening_kind kind;
    int64_t after_ms;
    str target; /* may be PACKAGE@TARGET with fail and heal */
    str name;   /* of a package, deployment, bundle, Skyhook, partition or freeze */
    str version;
    str environment;
    str who;
    str reason;
    str rule;
    str selector;   /* freeze; random worlds only */
    int64_t for_ms; /* freeze, bypass: how long it lasts, 0 is for ever; random worlds only */
    target_kind as; /* join: what joins */
    bool as_given;
    const label *labels; /* a value without pointer takes the label away */
    size_t label_count;
    fact_taint taint;
    const object *document; /* apply, join */
} happening;

/* Reads one line. The document, if any, is read into objects, whose document set must be documents;
 * the line must live as long as both. False with an error that names what was found and is allowed.
 */
typedef struct happening_reader {
    arena *arena;
    document_set *documents;
    object_list *objects;
    problems *found;
} happening_reader;

bool happening_read(happening_reader *r, str line, happening *ret, err *error);
const char *happening_text(happening_kind kind);

#endif
