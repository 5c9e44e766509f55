/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.h - the one form of a refusal: {"error":{"code","message","path"}}. Knows no operations.
 */
#ifndef DROVER_SERVER_REFUSAL_H
#define DROVER_SERVER_REFUSAL_H

#include "server/http.h"

#define REFUSAL_TYPE "application/json"

/* The usual word for a status. */
const char *refusal_code(int status);
/* Makes the reply one; code: NULL for the usual word. path: in the document, or empty. */
void refusal_write(http_reply *r, int status, const char *code, str message, str path);

#endif
