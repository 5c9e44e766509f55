/* SPDX-License-Identifier: Apache-2.0 */
/* semver.h - package versions, as golang.org/x/mod/semver judges them.
 *
 * MAJOR[.MINOR[.PATCH[-PRERELEASE][+BUILD]]] with an optional "v" in front. Short forms compare
 * like their long ones (1.2 is 1.2.0) but are other names: identity is the text. */
#ifndef DROVER_MODEL_SEMVER_H
#define DROVER_MODEL_SEMVER_H

#include "base/str.h"

bool semver_valid(str version);
/* -1, 0, 1. Build metadata does not count. An invalid version is less than every valid one. */
int semver_cmp(str a, str b);

#endif
