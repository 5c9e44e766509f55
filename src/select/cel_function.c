/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions. Overloads of one name stand together; the order is bytewise by name, a
 * test checks it. */
#include <assert.h>

#include "select/cel_functions.h"

enum { GLOBAL = 0, MEMBER = 1 };

#define A(kind) (1u << CEL_##kind)
#define A_BOOL A(BOOL)
#define A_INT A(INT)
#define A_UINT A(UINT)
#define A_DOUBLE A(DOUBLE)
#define A_NUM (A(INT) | A(UINT) | A(DOUBLE))
#define A_STRING A(STRING)
#define A_BYTES A(BYTES)
#define A_LIST A(LIST)
#define A_SIZED (A(STRING) | A(BYTES) | A(LIST) | A(MAP))
#define A_TIMESTAMP A(TIMESTAMP)
#define A_DURATION A(DURATION)
#define A_OPTIONAL A(OPTIONAL)
#define A_IP A(IP)
#define A_CIDR A(CIDR)
#define A_ANY (A(ERROR) - 1u)

/* The last row is a guard: whoever walks the overloads of a name stops there. */
static const cel_function table[] = {
    {STR("base64.decode"), GLOBAL, 1, {A_STRING}, CEL_BYTES, cel_fn_base64_decode},
    {STR("base64.encode"), GLOBAL, 1, {A_BYTES}, CEL_STRING, cel_fn_base64_encode},
    {STR("bool"), GLOBAL, 1, {A_BOOL | A_STRING}, CEL_BOOL, cel_fn_bool},
    {STR("bytes"), GLOBAL, 1, {A_BYTES | A_STRING}, CEL_BYTES, cel_fn_bytes},
    {STR("charAt"), MEMBER, 2, {A_STRING, A_INT}, CEL_STRING, cel_fn_char_at},
    {STR("cidr"), GLOBAL, 1, {A_STRING | A_CIDR}, CEL_CIDR, cel_fn_cidr},
    {STR("contains"), MEMBER, 2, {A_STRING, A_STRING}, CEL_BOOL, cel_fn_contains},
    {STR("containsCIDR"), MEMBER, 2, {A_CIDR, A_CIDR | A_STRING}, CEL_BOOL, cel_fn_contains_cidr},
    {STR("containsIP"), MEMBER, 2, {A_CIDR, A_IP | A_STRING}, CEL_BOOL, cel_fn_contains_ip},
    {STR("distinct"), MEMBER, 1, {A_LIST}, CEL_LIST, cel_fn_distinct},
    {STR("double"), GLOBAL, 1, {A_NUM | A_STRING}, CEL_DOUBLE, cel_fn_double},
    {STR("duration"), GLOBAL, 1, {A_INT | A_STRING | A_DURATION}, CEL_DURATION, cel_fn_duration},
    {STR("dyn"), GLOBAL, 1, {A_ANY}, CEL_DYN, cel_fn_same},
    {STR("endsWith"), MEMBER, 2, {A_STRING, A_STRING}, CEL_BOOL, cel_fn_ends},
    {STR("family"), MEMBER, 1, {A_IP}, CEL_INT, cel_fn_family},
    {STR("first"), MEMBER, 1, {A_LIST}, CEL_OPTIONAL, cel_fn_first},
    {STR("flatten"), MEMBER, 1, {A_LIST}, CEL_LIST, cel_fn_flatten},
    {STR("flatten"), MEMBER, 2, {A_LIST, A_INT}, CEL_LIST, cel_fn_flatten},
    {STR("format"), MEMBER, 2, {A_STRING, A_LIST}, CEL_STRING, cel_fn_format},
    {STR("getDate"), MEMBER, 1, {A_TIMESTAMP}, CEL_INT, cel_fn_date},
    {STR("getDate"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_date},
    {STR("getDayOfMonth"), MEMBER, 1, {A_TIMESTAMP}, CEL_INT, cel_fn_day_of_month},
    {STR("getDayOfMonth"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_day_of_month},
    {STR("getDayOfWeek"), MEMBER, 1, {A_TIMESTAMP}, CEL_INT, cel_fn_day_of_week},
    {STR("getDayOfWeek"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_day_of_week},
    {STR("getDayOfYear"), MEMBER, 1, {A_TIMESTAMP}, CEL_INT, cel_fn_day_of_year},
    {STR("getDayOfYear"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_day_of_year},
    {STR("getFullYear"), MEMBER, 1, {A_TIMESTAMP}, CEL_INT, cel_fn_full_year},
    {STR("getFullYear"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_full_year},
    {STR("getHours"), MEMBER, 1, {A_TIMESTAMP | A_DURATION}, CEL_INT, cel_fn_hours},
    {STR("getHours"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_hours},
    {STR("getMilliseconds"), MEMBER, 1, {A_TIMESTAMP | A_DURATION}, CEL_INT, cel_fn_milliseconds},
    {STR("getMilliseconds"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_milliseconds},
    {STR("getMinutes"), MEMBER, 1, {A_TIMESTAMP | A_DURATION}, CEL_INT, cel_fn_minutes},
    {STR("getMinutes"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_minutes},
    {STR("getMonth"), MEMBER, 1, {A_TIMESTAMP}, CEL_INT, cel_fn_month},
    {STR("getMonth"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_month},
    {STR("getSeconds"), MEMBER, 1, {A_TIMESTAMP | A_DURATION}, CEL_INT, cel_fn_seconds},
    {STR("getSeconds"), MEMBER, 2, {A_TIMESTAMP, A_STRING}, CEL_INT, cel_fn_seconds},
    {STR("hasValue"), MEMBER, 1, {A_OPTIONAL}, CEL_BOOL, cel_fn_has_value},
    {STR("indexOf"), MEMBER, 2, {A_STRING, A_STRING}, CEL_INT, cel_fn_index_of},
    {STR("indexOf"), MEMBER, 3, {A_STRING, A_STRING, A_INT}, CEL_INT, cel_fn_index_of},
    {STR("int"), GLOBAL, 1, {A_NUM | A_STRING | A_TIMESTAMP}, CEL_INT, cel_fn_int},
    {STR("ip"), GLOBAL, 1, {A_STRING | A_IP}, CEL_IP, cel_fn_ip},
    {STR("ip"), MEMBER, 1, {A_CIDR}, CEL_IP, cel_fn_cidr_ip},
    {STR("ip.isCanonical"), GLOBAL, 1, {A_STRING}, CEL_BOOL, cel_fn_is_canonical},
    {STR("isCIDR"), GLOBAL, 1, {A_STRING}, CEL_BOOL, cel_fn_is_cidr},
    {STR("isGlobalUnicast"), MEMBER, 1, {A_IP}, CEL_BOOL, cel_fn_global_unicast},
    {STR("isIP"), GLOBAL, 1, {A_STRING}, CEL_BOOL, cel_fn_is_ip},
    {STR("isLinkLocalMulticast"), MEMBER, 1, {A_IP}, CEL_BOOL, cel_fn_link_local_multicast},
    {STR("isLinkLocalUnicast"), MEMBER, 1, {A_IP}, CEL_BOOL, cel_fn_link_local_unicast},
    {STR("isLoopback"), MEMBER, 1, {A_IP}, CEL_BOOL, cel_fn_loopback},
    {STR("isUnspecified"), MEMBER, 1, {A_IP}, CEL_BOOL, cel_fn_unspecified},
    {STR("join"), MEMBER, 1, {A_LIST}, CEL_STRING, cel_fn_join},
    {STR("join"), MEMBER, 2, {A_LIST, A_STRING}, CEL_STRING, cel_fn_join},
    {STR("last"), MEMBER, 1, {A_LIST}, CEL_OPTIONAL, cel_fn_last},
    {STR("lastIndexOf"), MEMBER, 2, {A_STRING, A_STRING}, CEL_INT, cel_fn_last_index_of},
    {STR("lastIndexOf"), MEMBER, 3, {A_STRING, A_STRING, A_INT}, CEL_INT, cel_fn_last_index_of},
    {STR("lists.range"), GLOBAL, 1, {A_INT}, CEL_LIST, cel_fn_range},
    {STR("lowerAscii"), MEMBER, 1, {A_STRING}, CEL_STRING, cel_fn_lower},
    {STR("masked"), MEMBER, 1, {A_CIDR}, CEL_CIDR, cel_fn_masked},
    {STR("matches"), GLOBAL, 2, {A_STRING, A_STRING}, CEL_BOOL, cel_fn_matches},
    {STR("matches"), MEMBER, 2, {A_STRING, A_STRING}, CEL_BOOL, cel_fn_matches},
    {STR("math.abs"), GLOBAL, 1, {A_INT}, CEL_INT, cel_fn_abs},
    {STR("math.abs"), GLOBAL, 1, {A_UINT}, CEL_UINT, cel_fn_abs},
    {STR("math.abs"), GLOBAL, 1, {A_DOUBLE}, CEL_DOUBLE, cel_fn_abs},
    {STR("math.bitAnd"), GLOBAL, 2, {A_INT, A_INT}, CEL_INT, cel_fn_bit_and},
    {STR("math.bitAnd"), GLOBAL, 2, {A_UINT, A_UINT}, CEL_UINT, cel_fn_bit_and},
    {STR("math.bitNot"), GLOBAL, 1, {A_INT}, CEL_INT, cel_fn_bit_not},
    {STR("math.bitNot"), GLOBAL, 1, {A_UINT}, CEL_UINT, cel_fn_bit_not},
    {STR("math.bitOr"), GLOBAL, 2, {A_INT, A_INT}, CEL_INT, cel_fn_bit_or},
    {STR("math.bitOr"), GLOBAL, 2, {A_UINT, A_UINT}, CEL_UINT, cel_fn_bit_or},
    {STR("math.bitShiftLeft"), GLOBAL, 2, {A_INT, A_INT}, CEL_INT, cel_fn_shift_left},
    {STR("math.bitShiftLeft"), GLOBAL, 2, {A_UINT, A_INT}, CEL_UINT, cel_fn_shift_left},
    {STR("math.bitShiftRight"), GLOBAL, 2, {A_INT, A_INT}, CEL_INT, cel_fn_shift_right},
    {STR("math.bitShiftRight"), GLOBAL, 2, {A_UINT, A_INT}, CEL_UINT, cel_fn_shift_right},
    {STR("math.bitXor"), GLOBAL, 2, {A_INT, A_INT}, CEL_INT, cel_fn_bit_xor},
    {STR("math.bitXor"), GLOBAL, 2, {A_UINT, A_UINT}, CEL_UINT, cel_fn_bit_xor},
    {STR("math.ceil"), GLOBAL, 1, {A_DOUBLE}, CEL_DOUBLE, cel_fn_ceil},
    {STR("math.floor"), GLOBAL, 1, {A_DOUBLE}, CEL_DOUBLE, cel_fn_floor},
    {STR("math.greatest"), GLOBAL, CEL_VARIADIC, {0}, CEL_DYN, cel_fn_greatest},
    {STR("math.isFinite"), GLOBAL, 1, {A_DOUBLE}, CEL_BOOL, cel_fn_is_finite},
    {STR("math.isInf"), GLOBAL, 1, {A_DOUBLE}, CEL_BOOL, cel_fn_is_inf},
    {STR("math.isNaN"), GLOBAL, 1, {A_DOUBLE}, CEL_BOOL, cel_fn_is_nan},
    {STR("math.least"), GLOBAL, CEL_VARIADIC, {0}, CEL_DYN, cel_fn_least},
    {STR("math.round"), GLOBAL, 1, {A_DOUBLE}, CEL_DOUBLE, cel_fn_round},
    {STR("math.sign"), GLOBAL, 1, {A_INT}, CEL_INT, cel_fn_sign},
    {STR("math.sign"), GLOBAL, 1, {A_UINT}, CEL_UINT, cel_fn_sign},
    {STR("math.sign"), GLOBAL, 1, {A_DOUBLE}, CEL_DOUBLE, cel_fn_sign},
    {STR("math.sqrt"), GLOBAL, 1, {A_NUM}, CEL_DOUBLE, cel_fn_sqrt},
    {STR("math.trunc"), GLOBAL, 1, {A_DOUBLE}, CEL_DOUBLE, cel_fn_trunc},
    {STR("optional.none"), GLOBAL, 0, {0}, CEL_OPTIONAL, cel_fn_optional_none},
    {STR("optional.of"), GLOBAL, 1, {A_ANY}, CEL_OPTIONAL, cel_fn_optional_of},
    {STR("optional.ofNonZeroValue"), GLOBAL, 1, {A_ANY}, CEL_OPTIONAL, cel_fn_optional_nonzero},
    {STR("optional.unwrap"), GLOBAL, 1, {A_LIST}, CEL_LIST, cel_fn_unwrap},
    {STR("or"), MEMBER, 2, {A_OPTIONAL, A_OPTIONAL}, CEL_OPTIONAL, cel_fn_or},
    {STR("orValue"), MEMBER, 2, {A_OPTIONAL, A_ANY}, CEL_DYN, cel_fn_or_value},
    {STR("prefixLength"), MEMBER, 1, {A_CIDR}, CEL_INT, cel_fn_prefix_length},
    {STR("replace"), MEMBER, 3, {A_STRING, A_STRING, A_STRING}, CEL_STRING, cel_fn_replace},
    {STR("replace"), MEMBER, 4, {A_STRING, A_STRING, A_STRING, A_INT}, CEL_STRING, cel_fn_replace},
    {STR("reverse"), MEMBER, 1, {A_STRING}, CEL_STRING, cel_fn_reverse_text},
    {STR("reverse"), MEMBER, 1, {A_LIST}, CEL_LIST, cel_fn_reverse_list},
    {STR("sets.contains"), GLOBAL, 2, {A_LIST, A_LIST}, CEL_BOOL, cel_fn_sets_contains},
    {STR("sets.equivalent"), GLOBAL, 2, {A_LIST, A_LIST}, CEL_BOOL, cel_fn_sets_equivalent},
    {STR("sets.intersects"), GLOBAL, 2, {A_LIST, A_LIST}, CEL_BOOL, cel_fn_sets_intersects},
    {STR("size"), GLOBAL, 1, {A_SIZED}, CEL_INT, cel_fn_size},
    {STR("size"), MEMBER, 1, {A_SIZED}, CEL_INT, cel_fn_size},
    {STR("slice"), MEMBER, 3, {A_LIST, A_INT, A_INT}, CEL_LIST, cel_fn_slice},
    {STR("sort"), MEMBER, 1, {A_LIST}, CEL_LIST, cel_fn_sort},
    {STR("split"), MEMBER, 2, {A_STRING, A_STRING}, CEL_LIST, cel_fn_split},
    {STR("split"), MEMBER, 3, {A_STRING, A_STRING, A_INT}, CEL_LIST, cel_fn_split},
    {STR("startsWith"), MEMBER, 2, {A_STRING, A_STRING}, CEL_BOOL, cel_fn_starts},
    {STR("string"),
     GLOBAL,
     1,
     {A_NUM | A_BOOL | A_STRING | A_BYTES | A_TIMESTAMP | A_DURATION | A_IP | A_CIDR},
     CEL_STRING,
     cel_fn_string},
    {STR("strings.quote"), GLOBAL, 1, {A_STRING}, CEL_STRING, cel_fn_quote},
    {STR("substring"), MEMBER, 2, {A_STRING, A_INT}, CEL_STRING, cel_fn_substring},
    {STR("substring"), MEMBER, 3, {A_STRING, A_INT, A_INT}, CEL_STRING, cel_fn_substring},
    {STR("timestamp"),
     GLOBAL,
     1,
     {A_INT | A_STRING | A_TIMESTAMP},
     CEL_TIMESTAMP,
     cel_fn_timestamp},
    {STR("trim"), MEMBER, 1, {A_STRING}, CEL_STRING, cel_fn_trim},
    {STR("type"), GLOBAL, 1, {A_ANY}, CEL_TYPE, cel_fn_type},
    {STR("uint"), GLOBAL, 1, {A_NUM | A_STRING}, CEL_UINT, cel_fn_uint},
    {STR("unwrapOpt"), MEMBER, 1, {A_LIST}, CEL_LIST, cel_fn_unwrap},
    {STR("upperAscii"), MEMBER, 1, {A_STRING}, CEL_STRING, cel_fn_upper},
    {STR("value"), MEMBER, 1, {A_OPTIONAL}, CEL_DYN, cel_fn_value},
    {{"", 0}, GLOBAL, 0, {0}, CEL_DYN, NULL},
};
#define ROWS (sizeof table / sizeof table[0] - 1)

const cel_function *cel_function_table(size_t *ret_count)
{
    *ret_count = ROWS;
    return table;
}

/* The first row whose name is not before the wanted one. */
static size_t lower_bound(str name)
{
    size_t low = 0;
    size_t high = ROWS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (str_cmp(table[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const cel_function *cel_function_find(str name, bool member)
{
    for (size_t i = lower_bound(name); i < ROWS && str_eq(table[i].name, name); i++)
        if (table[i].member == member)
            return &table[i];
    return NULL;
}

bool cel_function_space(str name)
{
    for (size_t i = lower_bound(name); i < ROWS && str_starts(table[i].name, name); i++)
        if (table[i].name.len > name.len && table[i].name.ptr[name.len] == '.')
            return true;
    return false;
}

/* ---- Suggestions -------------------------------------------------------------------------- */

const char *cel_function_suggest(str name)
{
    /* Names from other languages that users bring along. */
    static const char *const known[][2] = {
        {"toLowerCase", "lowerAscii"},
        {"toLower", "lowerAscii"},
        {"lower", "lowerAscii"},
        {"toUpperCase", "upperAscii"},
        {"toUpper", "upperAscii"},
        {"upper", "upperAscii"},
        {"length", "size"},
        {"len", "size"},
        {"count", "size"},
        {"includes", "contains"},
        {"has_key", "in"},
        {"hasPrefix", "startsWith"},
        {"hasSuffix", "endsWith"},
        {"substr", "substring"},
        {"strip", "trim"},
        {"match", "matches"},
        {"test", "matches"},
        {"some", "exists"},
        {"any", "exists"},
        {"every", "all"},
        {"toString", "string"},
        {"str", "string"},
        {"parseInt", "int"},
        {"float", "double"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_eq(name, str_of(known[i][0])))
            return known[i][1];
    const char *best = NULL;
    size_t least = name.len < 4 ? 2 : 3;
    for (size_t i = 0; i < ROWS; i++) {
        size_t d = str_distance(name, table[i].name);
        if (d < least) {
            least = d;
            best = table[i].name.ptr;
        }
    }
    return best;
}
