/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"
void world_releases(world *w)
{
    (void)w;
}
