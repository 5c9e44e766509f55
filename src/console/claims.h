/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h - who was worked on from when to when, of what was decided since the operator began.
 *
 * What the dashboard draws as bars and counts over time. The latest CLAIMS_KEPT are known; the
 * cluster's objects do not hold the past. */
#ifndef DROVER_CONSOLE_CLAIMS_H
#define DROVER_CONSOLE_CLAIMS_H

#include "base/strmap.h"
#include "base/vec.h"
#include "engine/decision.h"

#define CLAIMS_KEPT 20000u

typedef struct claim {
    int64_t number; /* from 1 */
    char *texts;    /* all of those below */
    str change, target, version, group, key;
    char outcome[16]; /* empty: it lives */
    char *reason;     /* why it failed; NULL: it is not known */
    int64_t started_ms, ended_ms;
    bool earlier; /* it was there when the operator began */
    bool failed;
} claim;

typedef struct claims {
    VEC(claim *) all; /* in order of their numbers */
    strmap open;      /* "change/target" -> claim */
    int64_t last;
} claims;

/* Starts and ends of claims count; anything else is no business of theirs. */
void claims_decided(claims *c, const decision *d, int64_t now_ms);
/* One that is in flight and may have begun earlier; it counts from now on. */
void claims_found(claims *c, const decision *d, int64_t now_ms);
void claims_clear(claims *c);

#endif
