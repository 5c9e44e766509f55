/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DROVER_KUBE_SERVER_DATE_H
#define DROVER_KUBE_SERVER_DATE_H

/* What time it is by a server that answers with a Date. Pure: the caller reads the clocks. */

#include <stdint.h>

#include "base/str.h"

/* How far a wall's clock may be from a server's and still agrees with it: an answer takes its time,
 * and so do clocks that are kept by the network. */
#define SERVER_DATE_SLACK_MS 1000

/* date is the header's value, wall_ms what this machine's clock showed when it came. A Date has
 * whole seconds: where this machine's clock agrees with it, it is the finer one, and what began
 * under one process is not a second shorter under the next. It also stands for a Date that cannot
 * be read. */
int64_t server_date_ms(str date, int64_t wall_ms);

#endif
