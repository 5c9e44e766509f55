/* SPDX-License-Identifier: Apache-2.0 */
/* dashboard.h - the files of the dashboard, as they are in this program.
 *
 * scripts/build-web makes them of web/, compressed. Anybody may have them: they hold no data, and
 * all that they show they ask for with the token of who looks at them. The page may load and
 * connect to nothing but this server, and nobody may frame it. Knows no tokens and no operations.
 */
#ifndef DROVER_SERVER_DASHBOARD_H
#define DROVER_SERVER_DASHBOARD_H

#include "server/http.h"

typedef struct dashboard_file {
    const char *path; /* "/" is the page */
    const char *type;
    const char *tag;            /* as in the header ETag */
    const unsigned char *bytes; /* gzip */
    size_t len;
    bool lasting; /* its name changes with what is in it */
} dashboard_file;

/* Ends with one without path. There are none in a program that was built without it. */
extern const dashboard_file dashboard_files[];

/* The file at a path, or NULL. */
const dashboard_file *dashboard_find(const uri *u);
/* Answers a GET or HEAD. */
void dashboard_answer(const dashboard_file *f, const http_request *q, http_reply *r);

#endif
