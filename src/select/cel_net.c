/* SPDX-License-Identifier: Apache-2.0 */
/* Network addresses: 4 or 16 bytes; networks: the same with the length of the prefix behind. */
#include <arpa/inet.h>

#include "base/num.h"
#include "select/cel_functions.h"

#define ADDRESS_BYTES 16

/* No zones, no IPv4 in IPv6: two spellings of one address would compare as different. */
static size_t parse_address(str text, unsigned char out[ADDRESS_BYTES])
{
    char copy[INET6_ADDRSTRLEN];
    if (text.len == 0 || text.len >= sizeof copy || memchr(text.ptr, '\0', text.len))
        return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, out) == 1)
        return 4;
    if (inet_pton(AF_INET6, copy, out) != 1)
        return 0;
    static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    return memcmp(out, mapped, sizeof mapped) == 0 ? 0 : 16;
}

/* Bytes of the address, with the prefix length behind them; 0 when it is none. */
static size_t parse_network(str text, unsigned char out[ADDRESS_BYTES + 1])
{
    str rest = text;
    str address = str_cut(&rest, '/');
    size_t len = rest.ptr ? parse_address(address, out) : 0;
    int64_t prefix;
    if (len == 0 || rest.len == 0 || rest.len > 3 || rest.ptr[0] < '0' || rest.ptr[0] > '9' ||
        (rest.ptr[0] == '0' && rest.len > 1) || !num_parse(rest, &prefix) ||
        prefix > (int64_t)len * 8)
        return 0;
    out[len] = (unsigned char)prefix;
    return len + 1;
}

static cel_value keep(run *r, cel_kind kind, const unsigned char *bytes, size_t len)
{
    cel_value v = cel_text_value(r, (const char *)bytes, len);
    if (!is_error(v))
        v.kind = (uint8_t)kind;
    return v;
}

static size_t address_text(str address, char out[INET6_ADDRSTRLEN])
{
    inet_ntop(address.len == 4 ? AF_INET : AF_INET6, address.ptr, out, INET6_ADDRSTRLEN);
    return strlen(out);
}

void cel_net_text(buf *out, cel_value v)
{
    char text[INET6_ADDRSTRLEN];
    str bytes = cel_text(v);
    if (v.kind == CEL_CIDR)
        bytes.len--;
    buf_add(out, (str){text, address_text(bytes, text)});
    if (v.kind == CEL_CIDR)
        buf_addf(out, "/%u", (unsigned char)bytes.ptr[bytes.len]);
}

cel_value cel_fn_ip(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    unsigned char bytes[ADDRESS_BYTES];
    if (args[0].kind == CEL_IP)
        return args[0];
    size_t len = parse_address(cel_text(args[0]), bytes);
    return len ? keep(r, CEL_IP, bytes, len) : cel_fail(CEL_INVALID_ARGUMENT, "not an IP address");
}

cel_value cel_fn_is_ip(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    unsigned char bytes[ADDRESS_BYTES];
    return cel_bool(parse_address(cel_text(args[0]), bytes) > 0);
}

cel_value cel_fn_is_canonical(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    unsigned char bytes[ADDRESS_BYTES];
    char text[INET6_ADDRSTRLEN];
    size_t len = parse_address(cel_text(args[0]), bytes);
    if (!len)
        return cel_fail(CEL_INVALID_ARGUMENT, "not an IP address");
    size_t canonical = address_text((str){(const char *)bytes, len}, text);
    return cel_bool(str_eq((str){text, canonical}, cel_text(args[0])));
}

cel_value cel_fn_cidr(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    unsigned char bytes[ADDRESS_BYTES + 1];
    if (args[0].kind == CEL_CIDR)
        return args[0];
    size_t len = parse_network(cel_text(args[0]), bytes);
    return len ? keep(r, CEL_CIDR, bytes, len)
               : cel_fail(CEL_INVALID_ARGUMENT, "not a network such as 10.0.0.0/8");
}

cel_value cel_fn_is_cidr(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    unsigned char bytes[ADDRESS_BYTES + 1];
    return cel_bool(parse_network(cel_text(args[0]), bytes) > 0);
}

cel_value cel_fn_family(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return cel_int(args[0].len == 4 ? 4 : 6);
}

/* Whether the first "bits" of two addresses of one family are the same. */
static bool same_prefix(const char *a, const char *b, unsigned bits)
{
    unsigned whole = bits / 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    unsigned char mask = (unsigned char)(0xFF00u >> (bits % 8));
    return bits % 8 == 0 || (((unsigned char)a[whole] ^ (unsigned char)b[whole]) & mask) == 0;
}

static bool all_zero(str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.ptr[i])
            return false;
    return true;
}

static bool is_loopback(cel_value v)
{
    static const char six[16] = {[15] = 1};
    return v.len == 4 ? v.text[0] == 127 : memcmp(v.text, six, 16) == 0;
}

static bool is_multicast(cel_value v)
{
    return v.len == 4 ? ((unsigned char)v.text[0] & 0xF0) == 0xE0
                      : (unsigned char)v.text[0] == 0xFF;
}

static bool is_link_local(cel_value v)
{
    return v.len == 4 ? same_prefix(v.text, "\xA9\xFE", 16) : same_prefix(v.text, "\xFE\x80", 10);
}

cel_value cel_fn_unspecified(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return cel_bool(all_zero(cel_text(args[0])));
}

cel_value cel_fn_loopback(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return cel_bool(is_loopback(args[0]));
}

cel_value cel_fn_global_unicast(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    cel_value v = args[0];
    bool broadcast = v.len == 4 && memcmp(v.text, "\xFF\xFF\xFF\xFF", 4) == 0;
    return cel_bool(!broadcast && !all_zero(cel_text(v)) && !is_loopback(v) && !is_multicast(v) &&
                    !is_link_local(v));
}

cel_value cel_fn_link_local_multicast(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    cel_value v = args[0];
    if (v.len == 4)
        return cel_bool(same_prefix(v.text, "\xE0\0\0", 24));
    return cel_bool((unsigned char)v.text[0] == 0xFF && (v.text[1] & 0x0F) == 2);
}

cel_value cel_fn_link_local_unicast(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return cel_bool(is_link_local(args[0]));
}

cel_value cel_fn_contains_ip(run *r, const cel_value *args, uint32_t count)
{
    cel_value ip = cel_fn_ip(r, args + 1, count);
    if (is_error(ip))
        return ip;
    cel_value net = args[0];
    unsigned prefix = (unsigned char)net.text[net.len - 1];
    return cel_bool(net.len == ip.len + 1 && same_prefix(net.text, ip.text, prefix));
}

cel_value cel_fn_contains_cidr(run *r, const cel_value *args, uint32_t count)
{
    cel_value inner = cel_fn_cidr(r, args + 1, count);
    if (is_error(inner))
        return inner;
    cel_value net = args[0];
    unsigned prefix = (unsigned char)net.text[net.len - 1];
    return cel_bool(net.len == inner.len && (unsigned char)inner.text[inner.len - 1] >= prefix &&
                    same_prefix(net.text, inner.text, prefix));
}

cel_value cel_fn_cidr_ip(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    return keep(r, CEL_IP, (const unsigned char *)args[0].text, args[0].len - 1);
}

cel_value cel_fn_masked(run *r, const cel_value *args, uint32_t count)
{
    (void)count;
    unsigned char bytes[ADDRESS_BYTES + 1];
    cel_value net = args[0];
    memcpy(bytes, net.text, net.len);
    unsigned prefix = bytes[net.len - 1];
    for (unsigned i = 0; i + 1 < net.len; i++) {
        unsigned kept = prefix > i * 8 ? prefix - i * 8 : 0;
        if (kept < 8)
            bytes[i] = (unsigned char)(bytes[i] & (0xFF00u >> kept));
    }
    return keep(r, CEL_CIDR, bytes, net.len);
}

cel_value cel_fn_prefix_length(run *r, const cel_value *args, uint32_t count)
{
    (void)r;
    (void)count;
    return cel_int((unsigned char)args[0].text[args[0].len - 1]);
}
