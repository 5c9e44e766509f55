/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes as letters, by RFC 4648 section 4. */
#ifndef DROVER_BASE_BASE64_H
#define DROVER_BASE_BASE64_H

#include "base/str.h"

void base64_encode(str bytes, buf *out);
/* Padding may be left out. False: the text is no base64, or the buffer failed. */
bool base64_decode(str text, buf *out);

#endif
