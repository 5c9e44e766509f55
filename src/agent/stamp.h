/* SPDX-License-Identifier: Apache-2.0 */
/* stamp.h - the present time, in the forms that the agent's files have. */
#ifndef DROVER_AGENT_STAMP_H
#define DROVER_AGENT_STAMP_H

typedef struct stamp {
    char text[48];
} stamp;

stamp stamp_utc(void);   /* 2026-01-31T12:00:00.123456+00:00 */
stamp stamp_local(void); /* 2026-01-31T13:00:00.123456 */
stamp stamp_file(void);  /* 2026-01-31-120000, UTC: part of a file's name */
stamp stamp_unix(void);  /* 1769860800.123456 */

#endif
