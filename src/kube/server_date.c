/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/server_date.h"

#include <curl/curl.h>
#include <string.h>

#define SECOND_MS 1000

int64_t server_date_ms(str date, int64_t wall_ms)
{
    char text[64] = "";
    memcpy(text, date.ptr, date.len < sizeof text ? date.len : 0);
    int64_t told_ms = (int64_t)curl_getdate(text, NULL) * SECOND_MS;
    bool agrees = wall_ms >= told_ms - SERVER_DATE_SLACK_MS &&
                  wall_ms < told_ms + SECOND_MS + SERVER_DATE_SLACK_MS;
    return told_ms <= 0 || agrees ? wall_ms : told_ms;
}
