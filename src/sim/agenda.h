/* SPDX-License-Identifier: Apache-2.0 */
/* agenda.h - what will happen in a virtual fleet, and when.
 *
 * A heap of seconds, each with the entries that fall due in it, in the order in which they were put
 * there. A hundred thousand stages that end in the same second are one place in the heap. Texts are
 * numbers of a name table, so that an entry stays small. */
#ifndef DROVER_SIM_AGENDA_H
#define DROVER_SIM_AGENDA_H

#include "base/names.h"
#include "base/strmap.h"
#include "base/vec.h"

#define AGENDA_NEVER INT64_MAX

#define AGENDA_KINDS(X)                                                                            \
    X(STAGE, "stage ends")                                                                         \
    X(DRAIN, "drain ends")                                                                         \
    X(REPORT, "agent reports")                                                                     \
    X(JOB, "job ends")                                                                             \
    X(TARGET, "what a target is like arrives")                                                     \
    X(DOCUMENT, "what a document says arrives")                                                    \
    X(ACT, "what a person did arrives")                                                            \
    X(RESYNC, "everything is listed anew")
typedef enum agenda_kind {
#define X(kind, text) AGENDA_##kind,
    AGENDA_KINDS(X)
#undef X
} agenda_kind;

typedef struct agenda_entry {
    uint8_t kind;
    uint8_t flags;   /* AGENDA_... below */
    uint32_t target; /* number in the herd */
    name_id change;  /* Skyhook, Bundle or Deployment */
    name_id part;    /* package or environment */
    name_id version;
    name_id stage;
    int64_t number; /* attempt or job */
} agenda_entry;

enum {
    AGENDA_REBOOTS = 1,  /* STAGE: the node has another boot id when it ends */
    AGENDA_REPEATED = 2, /* it was told before and is told again */
    AGENDA_FAILED = 4,   /* REPEATED: how it ended */
    AGENDA_MEASURED = 8, /* JOB: it has succeeded, and its verification is over by then */
    AGENDA_LATE = 16,    /* JOB whose end is held back: its time limit is over by then */
};

typedef VEC(agenda_entry) agenda_entries;

typedef struct agenda_second {
    int64_t ms;
    agenda_entries entries;
} agenda_second;

typedef struct agenda {
    VEC(agenda_second *) heap; /* earliest first */
    VEC(agenda_second *) idle; /* emptied ones, for use again */
    strmap by_ms;              /* the bytes of agenda_second.ms -> the second */
} agenda;

/* False without memory. */
bool agenda_put(agenda *a, int64_t ms, agenda_entry entry);
/* When the earliest entries fall due; AGENDA_NEVER if there are none. */
int64_t agenda_next_ms(const agenda *a);
/* Moves the entries of the earliest second into *ret, which is emptied first. False without memory.
 */
bool agenda_take(agenda *a, agenda_entries *ret);
void agenda_done(agenda *a);

#endif
