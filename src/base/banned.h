/* SPDX-License-Identifier: Apache-2.0 */
/* banned.h - calls that nobody here makes; the compiler sees to it.
 *
 * Included in front of every file by the build. */
#ifndef DROVER_BASE_BANNED_H
#define DROVER_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat stpcpy
#pragma GCC poison sprintf vsprintf gets
#pragma GCC poison strtok strtok_r
#pragma GCC poison gmtime localtime ctime asctime
#pragma GCC poison atoi atol atoll atof

#endif
