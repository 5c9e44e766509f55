/* SPDX-License-Identifier: Apache-2.0 */
/* demo.h - a made-up fleet, so that there is something to see at once.
 *
 * Documents of a few dozen hosts in three environments, with simulated jobs, written once into an
 * empty store; then new versions now and then for as long as the server runs. Uses the control
 * plane as any client does. */
#ifndef DROVER_SERVER_DEMO_H
#define DROVER_SERVER_DEMO_H

#include <stdio.h>
#include <uv.h>

#include "server/control.h"

typedef struct demo demo;

demo *demo_open(uv_loop_t *loop, control *c, err *error);
/* The loop must run once more. Returns NULL. */
demo *demo_close(demo *d);
/* What to try next: how the program is called, and the data folder where it must be named. */
void demo_greet(FILE *to, const char *program, str data);

#endif
