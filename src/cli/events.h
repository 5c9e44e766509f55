/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - entries of the journal for people: in one line each, and those about one thing.
 *
 * Reads what the server answers; knows the members an entry can have, not what they lead to. */
#ifndef DROVER_CLI_EVENTS_H
#define DROVER_CLI_EVENTS_H

#include "cli/show.h"

/* How far back describe looks, and how much of what it finds it shows. */
#define EVENTS_SEARCHED 5000
#define EVENTS_SHOWN 10

/* "act approve web-1.2.3", "job web host-1 prod 1.2.3 12", ... from the members that are there. */
str event_text(client *c, yyjson_val *entry);

/* One thing that entries may be about. */
typedef struct event_subject {
    const show_kind *kind; /* a kind of document, or jobs */
    str name;
    yyjson_val *document; /* of it, as the server has it */
} event_subject;

bool event_is_about(client *c, yyjson_val *entry, const event_subject *subject);

/* Prints the last entries of the journal about it, the newest last. */
exit_status events_print(client *c, const event_subject *subject);

#endif
