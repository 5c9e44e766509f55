/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of timestamps, in a time zone if one is named, and of durations. */
#include <ctype.h>

#include "base/duration.h"
#include "select/cel_functions.h"
#include "select/zone.h"

/* "+hh:mm", "-hh:mm" and "hh:mm". */
static bool numeric_zone(str zone, int64_t *ret_seconds)
{
    bool west = zone.len > 0 && zone.ptr[0] == '-';
    if (zone.len > 0 && (west || zone.ptr[0] == '+'))
        zone = str_part(zone, 1, zone.len);
    if (zone.len != 5 || zone.ptr[2] != ':')
        return false;
    for (size_t i = 0; i < 5; i++)
        if (i != 2 && !isdigit((unsigned char)zone.ptr[i]))
            return false;
    int hours = (zone.ptr[0] - '0') * 10 + zone.ptr[1] - '0';
    int minutes = (zone.ptr[3] - '0') * 10 + zone.ptr[4] - '0';
    if (hours > 23 || minutes > 59)
        return false;
    *ret_seconds = (west ? -1 : 1) * (hours * INT64_C(3600) + minutes * INT64_C(60));
    return true;
}

/* The calendar of args[0], in the zone args[1] if there is one. */
static bool calendar(run *r, const cel_value *args, uint32_t count, civil *ret, cel_value *problem)
{
    moment m = cel_moment(args[0]);
    int64_t offset = 0;
    if (count > 1) {
        str name = cel_text(args[1]);
        if (!cel_charge(r, 50)) {
            *problem = r->fatal;
            return false;
        }
        bool numeric = numeric_zone(name, &offset);
        const time_zone *z = numeric ? NULL : zone_named(name);
        if (!numeric && !z) {
            *problem = cel_failf(r, CEL_INVALID_ARGUMENT, "unknown time zone \"%.*s\"",
                                 name.len > 60 ? 60 : (int)name.len, name.ptr);
            return false;
        }
        offset = numeric ? offset : zone_offset(z, m.seconds);
    }
    *ret = moment_civil(m, offset);
    return true;
}

#define GETTER(function, expression)                                                               \
    cel_value function(run *r, const cel_value *args, uint32_t count)                              \
    {                                                                                              \
        civil c;                                                                                   \
        cel_value problem;                                                                         \
        return calendar(r, args, count, &c, &problem) ? cel_int(expression) : problem;             \
    }

GETTER(cel_fn_full_year, c.year)
GETTER(cel_fn_month, c.month - 1)
GETTER(cel_fn_date, c.day)
GETTER(cel_fn_day_of_month, c.day - 1)
GETTER(cel_fn_day_of_week, c.weekday)
GETTER(cel_fn_day_of_year, c.day_of_year)
static GETTER(hours_of_day, c.hour) static GETTER(minutes_of_hour, c.minute) static GETTER(
    seconds_of_minute, c.second) static GETTER(milliseconds_of_second,
                                               (int64_t)(args[0].len / 1000000))

    cel_value cel_fn_hours(run *r, const cel_value *args, uint32_t count)
{
    return args[0].kind == CEL_DURATION ? cel_int(args[0].i / DURATION_HOUR)
                                        : hours_of_day(r, args, count);
}

cel_value cel_fn_minutes(run *r, const cel_value *args, uint32_t count)
{
    return args[0].kind == CEL_DURATION ? cel_int(args[0].i / DURATION_MINUTE)
                                        : minutes_of_hour(r, args, count);
}

cel_value cel_fn_seconds(run *r, const cel_value *args, uint32_t count)
{
    return args[0].kind == CEL_DURATION ? cel_int(args[0].i / DURATION_SECOND)
                                        : seconds_of_minute(r, args, count);
}

/* Of a duration: the milliseconds within its second, as the specification has it. */
cel_value cel_fn_milliseconds(run *r, const cel_value *args, uint32_t count)
{
    return args[0].kind == CEL_DURATION
               ? cel_int(args[0].i % DURATION_SECOND / DURATION_MILLISECOND)
               : milliseconds_of_second(r, args, count);
}
