/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http_guard.h"

#include <arpa/inet.h>
#include <strings.h>

#include "base/num.h"

bool guard_fill(guard_names *names, const http_settings *settings, err *error)
{
    *names = (guard_names){.len = 1, .at = {"localhost"}, .tls = settings->tls_certificate.len > 0};
    for (size_t i = 0; i < settings->host_count; i++) {
        str host = settings->hosts[i];
        if (names->len == HTTP_HOSTS_MAX || host.len >= GUARD_NAME_BYTES)
            return err_set(error, "found too many or too long host names");
        snprintf(names->at[names->len++], GUARD_NAME_BYTES, "%.*s", STR_ARG(host));
    }
    return true;
}

/* Cuts "name", "name:port", "[v6]:port" into a name without brackets. */
static bool host_name(str host, char out[GUARD_NAME_BYTES])
{
    str name = host;
    if (str_starts(host, STR("["))) {
        size_t end = str_find(host, STR("]"));
        if (end == SIZE_MAX)
            return false;
        name = str_part(host, 1, end - 1);
        str rest = str_part(host, end + 1, host.len);
        if (rest.len > 0 && rest.ptr[0] != ':')
            return false;
    } else {
        name = str_cut(&host, ':');
        int64_t port;
        if (host.ptr && !num_parse(host, &port))
            return false;
    }
    if (name.len == 0 || name.len >= GUARD_NAME_BYTES)
        return false;
    snprintf(out, GUARD_NAME_BYTES, "%.*s", STR_ARG(name));
    return true;
}

static bool is_ours(const guard_names *names, str host)
{
    char name[GUARD_NAME_BYTES];
    unsigned char address[16];
    if (!host_name(host, name))
        return false;
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
        return true;
    for (size_t i = 0; i < names->len; i++)
        if (strcasecmp(names->at[i], name) == 0)
            return true;
    return false;
}

static bool same_origin(const guard_names *names, str origin, str host)
{
    str scheme = names->tls ? STR("https://") : STR("http://");
    if (!str_starts(origin, scheme))
        return false;
    str rest = str_part(origin, scheme.len, origin.len);
    return rest.len == host.len && strncasecmp(rest.ptr, host.ptr, rest.len) == 0;
}

/* Whoever stands in front of this server must see the same request as it does: one Host, one end of
 * the body. */
static bool framing_good(const http_request *q, err *error)
{
    static const char *const once[] = {"Host", "Content-Length", "Transfer-Encoding",
                                       "Authorization", "Origin"};
    str encoding = http_header(q, "Transfer-Encoding");
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++)
        if (http_header_count(q, once[i]) > 1)
            return err_set(error, "found the header %s more than once", once[i]);
    if (encoding.ptr && http_header(q, "Content-Length").ptr)
        return err_set(error, "Content-Length and Transfer-Encoding exclude each other");
    if (encoding.ptr && strcasecmp(encoding.ptr, "chunked") != 0)
        return err_set(error, "Transfer-Encoding: found \"%s\", allowed chunked",
                       str_shown(encoding).text);
    return true;
}

int guard_check(const guard_names *names, const http_request *q, err *error)
{
    str host = http_header(q, "Host");
    str origin = http_header(q, "Origin");
    str site = http_header(q, "Sec-Fetch-Site");
    if (!framing_good(q, error))
        return 400;
    if (!host.ptr || host.len == 0) {
        err_set(error, "the Host header is missing");
        return 400;
    }
    if (!is_ours(names, host)) {
        err_set(error, "found the Host \"%s\", which is not this server", str_shown(host).text);
        return 421;
    }
    if (origin.ptr && !same_origin(names, origin, host)) {
        err_set(error, "found the Origin \"%s\": requests of other sites are refused",
                str_shown(origin).text);
        return 403;
    }
    if (site.ptr && !str_eq(site, STR("same-origin")) && !str_eq(site, STR("none"))) {
        err_set(error, "requests of other sites are refused");
        return 403;
    }
    return 0;
}

bool http_is_loopback(str address)
{
    char text[64];
    struct in_addr v4;
    snprintf(text, sizeof text, "%.*s", STR_ARG(address));
    if (inet_pton(AF_INET, text, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return strcmp(text, "::1") == 0;
}

bool http_address(str text, char address[64], uint16_t *ret_port, err *error)
{
    size_t colon = SIZE_MAX;
    int64_t port;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == ':')
            colon = i;
    if (colon == SIZE_MAX || !num_parse(str_part(text, colon + 1, text.len), &port) || port < 0 ||
        port > UINT16_MAX)
        return err_set(error, "found \"%s\", allowed ADDRESS:PORT such as 127.0.0.1:7070",
                       str_shown(text).text);
    str host = str_part(text, 0, colon);
    if (str_starts(host, STR("[")) && str_ends(host, STR("]")))
        host = str_part(host, 1, host.len - 2);
    if (str_eq(host, STR("localhost")))
        host = STR("127.0.0.1");
    if (host.len == 0)
        host = STR("0.0.0.0");
    unsigned char unused[16];
    snprintf(address, 64, "%.*s", STR_ARG(host));
    if (inet_pton(AF_INET, address, unused) != 1 && inet_pton(AF_INET6, address, unused) != 1)
        return err_set(error, "found the address \"%s\", allowed an IP address",
                       str_shown(host).text);
    *ret_port = (uint16_t)port;
    return true;
}
