/* SPDX-License-Identifier: Apache-2.0 */
/* Values that stay as they are, and whose types are looked at all the same. What another program's
 * table calls null is what is not given. */
#include "model/json.h"
#include "model/shape_value.h"

static void look_at_object(reader *r, const shape *s, const place *at)
{
    static const field object = {.type = FIELD_STRUCT};
    if (!json_is(at->value, YYJSON_TYPE_OBJ)) {
        value_refuse(r, &object, at);
        return;
    }
    for (size_t i = 0; i < s->field_count; i++) {
        const yyjson_val *value = json_member(at->value, s->fields[i].name);
        place here = {at, s->fields[i].name, 0, at->document, value};
        if (value)
            value_look(r, &s->fields[i], &here);
    }
}

static void look_at_list(reader *r, const field *as, const place *at)
{
    if (!json_is_array(at->value)) {
        value_refuse(r, as, at);
        return;
    }
    size_t count = json_len(at->value);
    const yyjson_val *item = json_first(at->value);
    for (size_t i = 0; i < count; i++) {
        place here = {at, {NULL, 0}, i, at->document, item};
        look_at_object(r, as->shape, &here);
        item = json_next(item);
    }
}

void value_look(reader *r, const field *as, const place *at)
{
    /* What is read is not needed: it has to be readable. */
    union {
        bool truth;
        int64_t number;
        str text;
        str_list texts;
        label_set map;
        label_query query;
    } unused = {0};
    if (json_type(at->value) == YYJSON_TYPE_NULL)
        return;
    switch (as->type) {
    case FIELD_STRUCT:
    case FIELD_OBJECT: look_at_object(r, as->shape, at); break;
    case FIELD_OBJECT_LIST: look_at_list(r, as, at); break;
    case FIELD_BOOL:
    case FIELD_INT:
    case FIELD_TEXT:
    case FIELD_TEXT_LIST:
    case FIELD_TEXT_MAP:
    case FIELD_SELECTOR: value_read(r, as, at, &unused); break;
    case FIELD_OPT_BOOL:
    case FIELD_OPT_INT:
    case FIELD_DECIMAL:
    case FIELD_ENUM:
    case FIELD_ENUM_SET:
    case FIELD_DURATION:
    case FIELD_TIME:
    case FIELD_QUANTITY:
    case FIELD_INT_OR_PERCENT:
    case FIELD_EXPRESSION:
    case FIELD_LABELS:
    case FIELD_RAW:
    case FIELD_OBJECT_MAP:
    case FIELD_INLINE:
    case FIELD_HEADER: break; /* no form needs it so far, or it may be anything */
    }
}
