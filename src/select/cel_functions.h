/* SPDX-License-Identifier: Apache-2.0 */
/* cel_functions.h - the functions of the language, as the table in cel_function.c calls them.
 *
 * The evaluator has checked number and kinds of the arguments against the table; none is an error.
 */
#ifndef DROVER_SELECT_CEL_FUNCTIONS_H
#define DROVER_SELECT_CEL_FUNCTIONS_H

#include "select/cel_internal.h"

/* cel_convert.c */
extern cel_fn cel_fn_same, cel_fn_type, cel_fn_int, cel_fn_uint, cel_fn_double, cel_fn_bool,
    cel_fn_bytes, cel_fn_string, cel_fn_timestamp, cel_fn_duration, cel_fn_size;
/* cel_string.c */
extern cel_fn cel_fn_contains, cel_fn_starts, cel_fn_ends, cel_fn_matches, cel_fn_char_at,
    cel_fn_index_of, cel_fn_last_index_of, cel_fn_lower, cel_fn_upper, cel_fn_replace, cel_fn_split,
    cel_fn_substring, cel_fn_trim, cel_fn_join, cel_fn_quote, cel_fn_reverse_text,
    cel_fn_base64_encode, cel_fn_base64_decode;
/* cel_format.c */
extern cel_fn cel_fn_format;
/* cel_math.c */
extern cel_fn cel_fn_greatest, cel_fn_least, cel_fn_ceil, cel_fn_floor, cel_fn_round, cel_fn_trunc,
    cel_fn_abs, cel_fn_sign, cel_fn_sqrt, cel_fn_is_nan, cel_fn_is_inf, cel_fn_is_finite,
    cel_fn_bit_and, cel_fn_bit_or, cel_fn_bit_xor, cel_fn_bit_not, cel_fn_shift_left,
    cel_fn_shift_right;
/* cel_time.c */
extern cel_fn cel_fn_full_year, cel_fn_month, cel_fn_date, cel_fn_day_of_month, cel_fn_day_of_week,
    cel_fn_day_of_year, cel_fn_hours, cel_fn_minutes, cel_fn_seconds, cel_fn_milliseconds;
/* cel_list.c */
extern cel_fn cel_fn_range, cel_fn_slice, cel_fn_flatten, cel_fn_distinct, cel_fn_sort,
    cel_fn_reverse_list, cel_fn_first, cel_fn_last, cel_fn_sets_contains, cel_fn_sets_equivalent,
    cel_fn_sets_intersects;
/* cel_optional.c */
extern cel_fn cel_fn_optional_of, cel_fn_optional_none, cel_fn_optional_nonzero, cel_fn_has_value,
    cel_fn_value, cel_fn_or, cel_fn_or_value, cel_fn_unwrap;
/* cel_net.c */
extern cel_fn cel_fn_ip, cel_fn_is_ip, cel_fn_is_canonical, cel_fn_cidr, cel_fn_is_cidr,
    cel_fn_family, cel_fn_unspecified, cel_fn_loopback, cel_fn_global_unicast,
    cel_fn_link_local_multicast, cel_fn_link_local_unicast, cel_fn_contains_ip,
    cel_fn_contains_cidr, cel_fn_cidr_ip, cel_fn_masked, cel_fn_prefix_length;

/* Sorts items by their keys, which must be of one kind that has an order. */
cel_value cel_sort_by(run *r, const cel_value *keys, cel_value *items, size_t len);
cel_value cel_make_optional(run *r, cel_value v);
/* An address or a network as text. */
void cel_net_text(buf *out, cel_value v);

#endif
