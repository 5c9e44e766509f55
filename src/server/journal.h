/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - facts and decisions as the journal keeps them: one compact JSON object each.
 *
 * Equal facts give equal bytes, and equal decisions too: that is how a replay is compared with what
 * was recorded. Facts can be read back; only the kinds that the embedded control plane has
 * (documents, resources, job ends, acts, and the passing of time). Does no I/O. */
#ifndef DROVER_SERVER_JOURNAL_H
#define DROVER_SERVER_JOURNAL_H

#include "engine/decision.h"
#include "engine/fact.h"

/* NULL: nothing happened but that a time came. */
void journal_write_fact(buf *out, const fact *f);
/* Without the placement's number, which another run of the program may give to another placement.
 */
void journal_write_decision(buf *out, const decision *d);

typedef struct journal_fact {
    bool time;    /* nothing but time passed: fact is not set */
    fact fact;    /* DOCUMENT and TARGET: its document is still to be read, from the text below */
    str document; /* JSON, a view of the text that was read */
} journal_fact;

/* Texts are in a or are views of json. False with an error for what journal_write_fact did not
 * write. */
bool journal_read_fact(arena *a, str json, journal_fact *ret, err *error);

/* The fact that a document is there; a Resource is a target. The object is kept by pointer. */
fact journal_fact_of(const object *o);
/* The fact that it is there no longer. */
fact journal_gone_of(const object *o);

str outcome_name(outcome o);
str act_name(act_kind a);
/* False if there is no act of that name. */
bool act_find(str name, act_kind *ret);

#endif
