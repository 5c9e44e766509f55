/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI document, made of the table of operations and the shapes of their bodies. */
#include "server/api_shapes.h"
#include "server/routes.h"

static void write_shape(buf *out, const shape *s);

static const char *const parameter_types[] = {
#define X(type, text) [PARAMETER_##type] = (text),
    PARAMETER_TYPES(X)
#undef X
};
static const char *const form_types[] = {
#define X(form, text) [ANSWER_##form] = (text),
    ANSWER_FORMS(X)
#undef X
};

/* ---- shapes ---- */

static void write_words(buf *out, const word_list *words)
{
    bool first = true;
    buf_addz(out, "{\"type\":\"string\",\"enum\":[");
    for (size_t i = 0; i < words->len; i++) {
        if (words->at[i].len == 0)
            continue;
        buf_addz(out, first ? "" : ",");
        first = false;
        buf_add_json(out, words->at[i]);
    }
    buf_addz(out, "]}");
}

static void write_integer(buf *out, const field *f)
{
    buf_addz(out, "{\"type\":\"integer\",\"format\":\"int64\"");
    if (f->limited) {
        buf_addf(out, ",\"minimum\":%lld", (long long)f->min);
        if (f->max != INT64_MAX)
            buf_addf(out, ",\"maximum\":%lld", (long long)f->max);
    }
    buf_addc(out, '}');
}

static void write_text(buf *out, const field *f)
{
    buf_addz(out, "{\"type\":\"string\"");
    if (f->flags & FIELD_FILLED)
        buf_addz(out, ",\"minLength\":1");
    if (f->rule && f->rule->pattern) {
        buf_addz(out, ",\"pattern\":");
        buf_add_json(out, str_of(f->rule->pattern));
    }
    buf_addc(out, '}');
}

static void write_field(buf *out, const field *f)
{
    switch (f->type) {
    case FIELD_BOOL:
    case FIELD_OPT_BOOL: buf_addz(out, "{\"type\":\"boolean\"}"); break;
    case FIELD_INT:
    case FIELD_OPT_INT: write_integer(out, f); break;
    case FIELD_TEXT: write_text(out, f); break;
    case FIELD_DURATION:
    case FIELD_EXPRESSION:
    case FIELD_HEADER: buf_addz(out, "{\"type\":\"string\"}"); break;
    case FIELD_TIME: buf_addz(out, "{\"type\":\"string\",\"format\":\"date-time\"}"); break;
    case FIELD_ENUM: write_words(out, f->words); break;
    case FIELD_ENUM_SET:
        buf_addz(out, "{\"type\":\"array\",\"items\":");
        write_words(out, f->words);
        buf_addc(out, '}');
        break;
    case FIELD_QUANTITY:
    case FIELD_INT_OR_PERCENT: buf_addz(out, "{\"type\":[\"integer\",\"string\"]}"); break;
    case FIELD_SELECTOR: buf_addz(out, "{\"type\":\"object\"}"); break;
    case FIELD_TEXT_LIST:
        buf_addz(out, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}");
        break;
    case FIELD_TEXT_MAP:
    case FIELD_LABELS:
        buf_addz(out, "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}");
        break;
    case FIELD_RAW: buf_addz(out, "{}"); break;
    case FIELD_STRUCT:
    case FIELD_OBJECT:
    case FIELD_INLINE: write_shape(out, f->shape); break;
    case FIELD_OBJECT_LIST:
        buf_addz(out, "{\"type\":\"array\",\"items\":");
        write_shape(out, f->shape);
        buf_addc(out, '}');
        break;
    case FIELD_OBJECT_MAP:
        buf_addz(out, "{\"type\":\"object\",\"additionalProperties\":");
        write_shape(out, f->shape);
        buf_addc(out, '}');
        break;
    }
}

/* A status is known to documents of all kinds and may hold anything. */
static bool is_status(const field *f)
{
    return f->type == FIELD_HEADER && str_eq(f->name, STR("status"));
}

static void write_fields(buf *out, const shape *s, bool *first)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (f->type == FIELD_INLINE) {
            write_fields(out, f->shape, first);
            continue;
        }
        buf_addz(out, *first ? "" : ",");
        *first = false;
        buf_add_json(out, f->name);
        buf_addc(out, ':');
        if (is_status(f)) {
            buf_addz(out, "{}");
            continue;
        }
        write_field(out, f);
        if (f->doc && out->len > 0 && !out->failed && out->ptr[out->len - 2] != '{') {
            out->len--;
            buf_addz(out, ",\"description\":");
            buf_add_json(out, str_of(f->doc));
            buf_addc(out, '}');
        }
    }
}

static void write_required(buf *out, const shape *s, bool *first)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (f->type == FIELD_INLINE)
            write_required(out, f->shape, first);
        if (f->type == FIELD_INLINE || !(f->flags & (FIELD_REQUIRED | FIELD_ALWAYS)))
            continue;
        buf_addz(out, *first ? ",\"required\":[" : ",");
        *first = false;
        buf_add_json(out, f->name);
    }
}

static void write_shape(buf *out, const shape *s)
{
    bool first = true, none = true;
    if (s->whole) {
        write_field(out, s->whole);
        return;
    }
    buf_addz(out, "{\"type\":\"object\",\"properties\":{");
    write_fields(out, s, &first);
    buf_addc(out, '}');
    write_required(out, s, &none);
    buf_addz(out, none ? "" : "]");
    buf_addz(out, s->open == SHAPE_CLOSED ? ",\"additionalProperties\":false}" : "}");
}

/* ---- components ---- */

static void write_schema(buf *out, const schema *s, object_kind kind)
{
    if (s->literal)
        buf_addz(out, s->literal);
    else
        write_shape(out, s->shape ? s->shape : object_kind_shape(kind));
}

/* Whether a schema of that name stood in an earlier row. */
static bool seen_before(size_t row, bool answer)
{
    const char *name = answer ? operations[row].answer.name : operations[row].input.name;
    for (size_t i = 0; i <= row; i++) {
        const char *others[] = {operations[i].input.name, operations[i].answer.name};
        for (size_t k = 0; k < 2; k++) {
            if (i == row && k == (answer ? 1 : 0))
                return false;
            if (others[k] && strcmp(others[k], name) == 0)
                return true;
        }
    }
    return false;
}

static void write_components(buf *out)
{
    buf_addf(out, "\"Error\":%s", error_schema);
    for (size_t i = 0; i < operation_count; i++) {
        const schema *both[] = {&operations[i].input, &operations[i].answer};
        for (size_t k = 0; k < 2; k++) {
            if (!both[k]->name || seen_before(i, k == 1))
                continue;
            buf_addf(out, ",\n\"%s\":", both[k]->name);
            write_schema(out, both[k], operations[i].kind);
        }
    }
}

/* ---- operations ---- */

static void write_path_parameters(buf *out, const operation *o, bool *first)
{
    str rest = str_of(o->path);
    while (rest.ptr) {
        str part = str_cut(&rest, '/');
        if (part.len < 2 || part.ptr[0] != '{')
            continue;
        buf_addf(out,
                 "%s{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,"
                 "\"schema\":{\"type\":\"string\"}}",
                 *first ? "" : ",", (int)part.len - 2, part.ptr + 1);
        *first = false;
    }
}

static void write_parameters(buf *out, const operation *o)
{
    bool first = true;
    buf_addz(out, ",\"parameters\":[");
    write_path_parameters(out, o, &first);
    for (const parameter *p = o->parameters; p && p->name; p++) {
        buf_addf(out, "%s{\"name\":\"%s\",\"in\":\"query\",\"description\":", first ? "" : ",",
                 p->name);
        first = false;
        buf_add_json(out, str_of(p->about));
        buf_addf(out, ",\"schema\":{\"type\":\"%s\"", parameter_types[p->type]);
        if (p->type == PARAMETER_NUMBER)
            buf_addf(out, ",\"minimum\":%lld,\"maximum\":%lld", (long long)p->min,
                     (long long)p->max);
        buf_addz(out, "}}");
    }
    if (o->conditional)
        buf_addf(
            out,
            "%s{\"name\":\"If-Match\",\"in\":\"header\",\"description\":\"the resourceVersion it "
            "must have\",\"schema\":{\"type\":\"string\"}}",
            first ? "" : ",");
    buf_addc(out, ']');
}

static void write_body(buf *out, const operation *o)
{
    if (o->input.name) {
        buf_addf(out,
                 ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{"
                 "\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}",
                 o->input.name);
        buf_addz(out, o->documents ? ",\"application/yaml\":{\"schema\":{}}}}" : "}}");
    } else if (o->raw) {
        buf_addz(out, ",\"requestBody\":{\"content\":{\"application/octet-stream\":{}}}");
    }
}

static void write_answer(buf *out, const operation *o)
{
    const char *name = o->answer.name ? o->answer.name : "";
    switch (o->form) {
    case ANSWER_OBJECT:
        buf_addf(out, "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}",
                 name);
        return;
    case ANSWER_LIST:
        buf_addf(out,
                 "\"application/json\":{\"schema\":{\"type\":\"object\",\"required\":[\"items\"],"
                 "\"additionalProperties\":false,\"properties\":{\"items\":{\"type\":\"array\","
                 "\"items\":{\"$ref\":\"#/components/schemas/%s\"}},\"continue\":{\"type\":"
                 "\"string\"}}}}",
                 name);
        return;
    case ANSWER_TEXT:
    case ANSWER_LOG:
    case ANSWER_EVENTS:
        buf_addf(out, "\"%s\":{\"schema\":{\"type\":\"string\"}}", form_types[o->form]);
        return;
    case ANSWER_BYTES: buf_addf(out, "\"%s\":{}", form_types[o->form]); return;
    }
}

static void write_status(buf *out, const operation *o, int status, const char *about)
{
    buf_addf(out, "\"%d\":{\"description\":\"%s\",\"content\":{", status, about);
    write_answer(out, o);
    buf_addz(out, "}},");
}

static void write_answers(buf *out, const operation *o)
{
    int status = o->status ? o->status : 200;
    buf_addz(out, ",\"responses\":{");
    write_status(out, o, status, "done");
    if (status == 201 && o->input.name)
        write_status(out, o, 200, "it was so already");
    if (strcmp(o->method, "PUT") == 0)
        write_status(out, o, 201, "created");
    if (o->form == ANSWER_LOG)
        write_status(out, o, 206, "the part that Range names");
    buf_addz(out, "\"default\":{\"description\":\"refused\",\"content\":{\"application/json\":{"
                  "\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}}}");
}

static void write_operation(buf *out, const operation *o)
{
    char method[8];
    size_t len = strlen(o->method);
    for (size_t i = 0; i <= len; i++)
        method[i] =
            o->method[i] >= 'A' && o->method[i] <= 'Z' ? (char)(o->method[i] + 32) : o->method[i];
    buf_addf(out, "\n\"%s\":{\"operationId\":\"%s\",\"summary\":", method, o->id);
    buf_add_json(out, str_of(o->summary));
    buf_addf(out, ",\"x-drover-role\":\"%s\"", access_text(o->level));
    if (o->level == ACCESS_NONE)
        buf_addz(out, ",\"security\":[]");
    write_parameters(out, o);
    write_body(out, o);
    write_answers(out, o);
    buf_addc(out, '}');
}

static bool first_of_path(size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(operations[i].path, operations[row].path) == 0)
            return false;
    return true;
}

static void write_paths(buf *out)
{
    bool first = true;
    for (size_t i = 0; i < operation_count; i++) {
        if (!first_of_path(i))
            continue;
        buf_addf(out, "%s\n\"%s\":{", first ? "" : ",", operations[i].path);
        first = false;
        bool first_method = true;
        for (size_t k = i; k < operation_count; k++) {
            if (strcmp(operations[k].path, operations[i].path) != 0)
                continue;
            buf_addz(out, first_method ? "" : ",");
            first_method = false;
            write_operation(out, &operations[k]);
        }
        buf_addc(out, '}');
    }
}

void openapi_write(buf *out)
{
    buf_addz(out,
             "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Drover\",\"version\":\"" DROVER_VERSION
             "\"},\n\"security\":[{\"token\":[]}],\n\"paths\":{");
    write_paths(out);
    buf_addz(out,
             "},\n\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":"
             "\"bearer\"}},\n\"schemas\":{");
    write_components(out);
    buf_addz(out, "}}}\n");
}
