/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include "base/duration.h"

static void fuzz_one(str input)
{
    err error = {""};
    int64_t ns = 77;
    int64_t with_days = 77;
    bool good = duration_parse(input, &ns, &error);
    bool good_days = duration_parse_days(input, &with_days, &error);
    if (!good_days) {
        fuzz_check_error(&error);
        assert(with_days == 77);
    }
    if (!good) {
        fuzz_check_error(&error);
        assert(ns == 77);
        ns = with_days;
    } else
        assert(good_days && with_days == ns);

    char text[DURATION_TEXT_BYTES];
    size_t len = duration_format(ns, text);
    assert(len < sizeof text && text[len] == '\0');
    int64_t again = 77;
    assert(duration_parse((str){text, len}, &again, NULL));
    assert(again == ns);
}
