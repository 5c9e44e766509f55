/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - which of several processes leads, by a Lease object.
 *
 * Pure: it neither sends nor looks at a clock; leader.h does. It works as other controllers'
 * election does, so that they and we can share a Lease.
 *
 * No two clocks are compared. Who leads counts from the moment it sent its last renewal, and stops
 * after deadline_ms. Who waits counts from the moment it first saw that renewal, and takes over
 * after duration_ms, which is longer. As long as clocks run about equally fast nobody leads
 * together with another, whatever the clocks show. Changes of the Lease have its version as
 * precondition: of two that take over one succeeds.
 *
 * The answer of lease_leads holds for the moment only. It is asked again before each write is sent,
 * so that a process that was frozen and thaws sends nothing; and since a write may still be under
 * way by then, every write has a precondition of its own (see write.h). */
#ifndef DROVER_KUBE_LEASE_H
#define DROVER_KUBE_LEASE_H

#include "base/moment.h"
#include "kube/write.h"

/* As controllers have them by default. */
#define LEASE_DURATION_MS 15000
#define LEASE_DEADLINE_MS 10000
#define LEASE_RETRY_MS 2000
/* Of a Lease that others wrote. */
#define LEASE_DURATION_MAX_MS 3600000
#define LEASE_IDENTITY_BYTES_MAX 512

/* Times are 0 for the ones above; deadline < duration. All texts must live as long as the lease. */
typedef struct lease_options {
    str collection; /* /apis/coordination.k8s.io/v1/namespaces/skyhook/leases */
    str name;
    str identity; /* of this process: no other one, earlier ones included, has the same */
    int64_t duration_ms, deadline_ms, retry_ms;
} lease_options;

typedef struct lease lease;

/* NULL without memory. */
lease *lease_new(const lease_options *options);
lease *lease_free(lease *l);

typedef enum lease_ask_kind {
    LEASE_ASK_SEND,  /* then lease_answer */
    LEASE_ASK_ABORT, /* cut the request that runs, then lease_answer */
    LEASE_ASK_WAIT,  /* ask again at at_ms */
    LEASE_ASK_NEVER, /* it was given back: there is nothing more to do */
} lease_ask_kind;
typedef struct lease_ask {
    kube_write write; /* lives until the next call */
    int64_t at_ms;
} lease_ask;
/* now_ms is of a clock that also runs while the machine sleeps; wall is for people to read. */
lease_ask_kind lease_next(lease *l, int64_t now_ms, moment wall, lease_ask *ret);
/* object: of the answer, or NULL. */
void lease_answer(lease *l, const write_outcome *outcome, yyjson_val *object, int64_t now_ms);

/* Whether this process leads at the moment; it leads until lease_until unless it renews. */
bool lease_leads(const lease *l, int64_t now_ms);
int64_t lease_until(const lease *l);
/* Whether the Lease was found older than it was, which happens when the server is set back to a
 * backup alone. True once for each time. */
bool lease_take_set_back(lease *l);
/* Who holds it as far as is known; empty: nobody, or nothing was heard yet. */
str lease_holder(const lease *l);
/* What keeps it from being read or renewed, empty if nothing does. */
str lease_problem(const lease *l);

/* Leads no more from now on, and gives it back if it has it: others need not wait. */
void lease_release(lease *l);

#endif
