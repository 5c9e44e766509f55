/* SPDX-License-Identifier: Apache-2.0 */
/* lint_internal.h - what the files of lint share: the documents by kind, and questions to
 * expressions.
 *
 * Internal to src/model. */
#ifndef DROVER_MODEL_LINT_INTERNAL_H
#define DROVER_MODEL_LINT_INTERNAL_H

#include "base/vec.h"
#include "model/lint.h"
#include "select/cel.h"

#define X(name, api, kind, type) +1
enum { LINT_KINDS = 0 OBJECT_KINDS(X) };
#undef X

typedef VEC(const object *) lint_objects;

typedef struct lint {
    problems *found;
    const object_list *objects;
    arena *arena;                /* until the end */
    arena *scratch;              /* until the next question */
    lint_objects of[LINT_KINDS]; /* in the order of the documents */
    /* As expressions see them, in the same order. */
    cel_value *deployments;
    cel_value *environments;
    cel_value *resources;
} lint;

/* What an expression says when not everything it may ask for is known. */
#define LINT_ANSWERS(X) X(NO, "no") X(MAYBE, "maybe") X(YES, "yes")

typedef enum lint_answer {
#define X(answer, text) LINT_##answer,
    LINT_ANSWERS(X)
#undef X
} lint_answer;

/* Values for the variables of an expression; NULL: not known. */
typedef struct lint_bindings {
    const cel_value *deployment;
    const cel_value *environment;
    const cel_value *resource;
} lint_bindings;

/* An expression that is not given says yes. */
lint_answer lint_ask(lint *l, const expression *e, lint_bindings with);

/* The place of a document, also of one the program made up. */
place lint_root(const object *o);
/* A member of spec.rules[index]: the rule's kind. */
typedef struct lint_rule_place {
    place root;
    place spec;
    place rules;
    place item;
    place kind;
} lint_rule_place;
void lint_rule_at(lint_rule_place *p, const object *policy, size_t index);

/* Whether there are documents of this kind that have errors, so that not all of them are known. */
bool lint_left_out(const lint *l, object_kind kind);

static inline size_t lint_count(const lint *l, object_kind kind)
{
    return l->of[kind].len;
}

/* lint_dependency.c: deployments that wait for each other, and hooks that are none. False without
 * memory. */
bool lint_dependencies(lint *l);
/* lint_compartments.c: compartments, budgets and strategies; Skyhooks. */
bool lint_compartments(lint *l);
/* lint_partitions.c: rolloutStrategy of bundles, fleet.yaml and rules. */
bool lint_partitions(lint *l);
/* lint_rules.c: the rest of what rules say. */
bool lint_rules(lint *l);

/* Warns when a percentage of count things is not what it seems: all of them, or less than two that
 * is taken as one. hundredths is the exact share times 100; taken is what it is taken as. */
typedef struct lint_share {
    const char *percent; /* "20%" */
    const char *thing;   /* "node" */
    int64_t count;
    int64_t hundredths;
    int64_t taken;
} lint_share;
void lint_warn_share(lint *l, const place *at, const lint_share *share);
/* The same for a whole percentage, at least one: "max(1, floor)". */
void lint_warn_percent(lint *l, const place *at, int64_t percent, int64_t count, const char *thing);
/* Whether further things to count cannot change what lint_warn_percent says. */
static inline bool lint_counted(int64_t percent, int64_t count)
{
    return count * percent >= 200;
}

#endif
