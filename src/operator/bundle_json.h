/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_json.h - objects of Fleet's kinds as text: members one after the other, those that say
 * nothing left out, as Fleet's own types write them. For bundle_*.c and cluster_*.c alone. */
#ifndef DROVER_OPERATOR_BUNDLE_JSON_H
#define DROVER_OPERATOR_BUNDLE_JSON_H

#include "engine/go_json.h"
#include "model/values.h"

/* Begins a member: a comma unless it is the first of its object, and its name. */
static inline void json_key_of(buf *out, str name)
{
    if (out->len > 0 && out->ptr[out->len - 1] != '{')
        buf_addc(out, ',');
    go_text(out, name);
    buf_addc(out, ':');
}

static inline void json_key(buf *out, const char *name)
{
    json_key_of(out, str_of(name));
}

/* The next element of an array, or an object as a value of its own. */
static inline void json_next_item(buf *out)
{
    if (out->len > 0 && out->ptr[out->len - 1] != '[')
        buf_addc(out, ',');
}

static inline void json_text(buf *out, const char *name, str text)
{
    json_key(out, name);
    go_text(out, text);
}

static inline void json_text_if(buf *out, const char *name, str text)
{
    if (text.len > 0)
        json_text(out, name, text);
}

static inline void json_number(buf *out, const char *name, int64_t number)
{
    json_key(out, name);
    buf_add_int(out, number);
}

static inline void json_number_if(buf *out, const char *name, int64_t number)
{
    if (number != 0)
        json_number(out, name, number);
}

static inline void json_true_if(buf *out, const char *name, bool yes)
{
    if (!yes)
        return;
    json_key(out, name);
    buf_addz(out, "true");
}

static inline void json_value_if(buf *out, const char *name, raw_json value)
{
    if (go_is_zero(value))
        return;
    json_key(out, name);
    go_value(out, value);
}

static inline void json_open(buf *out, const char *name)
{
    json_key(out, name);
    buf_addc(out, '{');
}

static inline void json_close(buf *out)
{
    buf_addc(out, '}');
}

static inline void json_labels(buf *out, const char *name, label_set labels)
{
    if (labels.len == 0)
        return;
    json_open(out, name);
    for (size_t i = 0; i < labels.len; i++) {
        buf_addz(out, i > 0 ? "," : "");
        go_text(out, labels.at[i].key);
        buf_addc(out, ':');
        go_text(out, labels.at[i].value);
    }
    json_close(out);
}

#endif
