/* SPDX-License-Identifier: Apache-2.0 */
#include "server/refusal.h"

const char *refusal_code(int status)
{
    switch (status) {
    case 400: return "badRequest";
    case 401: return "unauthorized";
    case 403: return "forbidden";
    case 404: return "notFound";
    case 405: return "methodNotAllowed";
    case 409: return "conflict";
    case 412: return "preconditionFailed";
    case 413: return "tooLarge";
    case 414: return "pathTooLong";
    case 415: return "unsupportedMediaType";
    case 416: return "rangeNotSatisfiable";
    case 421: return "misdirected";
    case 422: return "invalid";
    case 429: return "tooManyRequests";
    case 431: return "headerTooLarge";
    case 503: return "unavailable";
    }
    return "internal";
}

void refusal_write(http_reply *r, int status, const char *code, str message, str path)
{
    buf_clear(&r->body);
    r->status = status;
    r->type = REFUSAL_TYPE;
    r->source = (http_source){.pull = NULL};
    buf_addf(&r->body,
             "{\"error\":{\"code\":\"%s\",\"message\":", code ? code : refusal_code(status));
    buf_add_json(&r->body, message);
    buf_addz(&r->body, ",\"path\":");
    buf_add_json(&r->body, path);
    buf_addz(&r->body, "}}\n");
}
