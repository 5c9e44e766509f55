/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/object_options.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"

exit_status options_labels(const verb *v, const options *given, arena *a, label_set *ret)
{
    VEC(label) all = {0};
    exit_status status = STATUS_DONE;
    size_t at = 0;
    err error = {0};
    for (str text; status == STATUS_DONE && options_next(given, "label", &at, &text);) {
        str value = text, key = str_cut(&value, '=');
        label one = {key, value.ptr ? value : STR_EMPTY};
        if (!value.ptr || !label_key_check(key, &error) || !label_value_check(one.value, &error))
            status = usage_error(v, "--label %s: found no KEY=VALUE%s%s", str_shown(text).text,
                                 error.text[0] ? ": " : "", error.text);
        else if (!vec_push(&all, one))
            status = fail("out of memory");
    }
    label *kept = ARENA_ARRAY(a, all.len + 1, label);
    if (kept && all.len > 0)
        memcpy(kept, all.at, all.len * sizeof *kept);
    if (status == STATUS_DONE && !kept)
        status = fail("out of memory");
    else if (status == STATUS_DONE && !label_set_sort(kept, all.len, ret, &error))
        status = usage_error(v, "--label: %s", error.text);
    vec_done(&all);
    return status;
}

bool is_object_name(str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool inner = i > 0 && i + 1 < text.len;
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !(inner && c == '-'))
            return false;
    }
    return text.len > 0 && text.len <= LIMIT_LABEL_VALUE_BYTES;
}
