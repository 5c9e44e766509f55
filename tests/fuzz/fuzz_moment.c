/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include "base/moment.h"

static void fuzz_one(str input)
{
    err error = {""};
    moment m = {7, 7};
    if (!moment_parse(input, &m, &error)) {
        fuzz_check_error(&error);
        assert(m.seconds == 7 && m.nanos == 7);
        return;
    }
    assert(m.seconds >= MOMENT_SECONDS_MIN && m.seconds <= MOMENT_SECONDS_MAX);
    assert(m.nanos >= 0 && m.nanos <= 999999999);

    char text[MOMENT_TEXT_BYTES];
    size_t len = moment_format(m, text);
    assert(len < sizeof text && text[len] == '\0');
    moment again = {7, 7};
    assert(moment_parse((str){text, len}, &again, NULL));
    assert(moment_cmp(again, m) == 0);

    civil c = moment_civil(m, 0);
    int64_t seconds = civil_days(c.year, c.month, c.day) * 86400 + c.hour * 3600 + c.minute * 60;
    assert(seconds + c.second == m.seconds);

    int64_t ns = 0;
    moment zero = {0, 0};
    if (moment_sub(m, zero, &ns)) {
        assert(moment_add(zero, ns, &again));
        assert(moment_cmp(again, m) == 0);
    }
}
