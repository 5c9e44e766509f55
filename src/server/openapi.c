/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI document, made of the table of operations and the shapes of their bodies. */
#include "server/api_shapes.h"
#include "server/routes.h"

/* What uri.h takes in a target: no control characters. */
#define PLAIN_TEXT "^[^\\u0000-\\u001f\\u007f]*$"

static void write_shape(buf *out, const shape *s, bool input, bool nullable);

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

/* "{" and the type. As documents and bodies are read, null stands for a field that is absent. */
static void open_type(buf *out, const char *type, bool nullable)
{
    buf_addf(out, nullable ? "{\"type\":[\"%s\",\"null\"]" : "{\"type\":\"%s\"", type);
}

static void write_words(buf *out, const word_list *words, bool nullable)
{
    bool first = true;
    open_type(out, "string", nullable);
    buf_addz(out, ",\"enum\":[");
    for (size_t i = 0; i < words->len; i++) {
        if (words->at[i].len == 0)
            continue;
        buf_addz(out, first ? "" : ",");
        first = false;
        buf_add_json(out, words->at[i]);
    }
    buf_addz(out, nullable ? ",null]}" : "]}");
}

static void write_range(buf *out, const field *f)
{
    if (f->limited)
        buf_addf(out, ",\"minimum\":%lld", (long long)f->min);
    if (f->limited && f->max != INT64_MAX)
        buf_addf(out, ",\"maximum\":%lld", (long long)f->max);
    buf_addc(out, '}');
}

static void write_integer(buf *out, const field *f, bool nullable)
{
    open_type(out, "integer", nullable);
    buf_addz(out, ",\"format\":\"int64\"");
    write_range(out, f);
}

static void write_number(buf *out, const field *f, bool nullable)
{
    open_type(out, "number", nullable);
    write_range(out, f);
}

static void write_text(buf *out, const field *f, bool nullable)
{
    open_type(out, "string", nullable);
    if (f->flags & FIELD_FILLED)
        buf_addz(out, ",\"minLength\":1");
    if (f->rule && f->rule->pattern) {
        buf_addz(out, ",\"pattern\":");
        buf_add_json(out, str_of(f->rule->pattern));
    }
    buf_addc(out, '}');
}

/* In a list or a map null stands for an empty object, which is good only where nothing is needed.
 */
static bool may_be_empty(const shape *s)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (f->flags & FIELD_REQUIRED || (f->type == FIELD_INLINE && !may_be_empty(f->shape)))
            return false;
    }
    return true;
}

static void write_list(buf *out, const field *f, bool input, bool nullable)
{
    open_type(out, "array", nullable);
    buf_addz(out, ",\"items\":");
    if (f->type == FIELD_OBJECT_LIST)
        write_shape(out, f->shape, input, input && may_be_empty(f->shape));
    else if (f->type == FIELD_ENUM_SET)
        write_words(out, f->words, false);
    else
        buf_addz(out, "{\"type\":\"string\"}");
    buf_addc(out, '}');
}

static void write_map(buf *out, const field *f, bool input, bool nullable)
{
    open_type(out, "object", nullable);
    buf_addz(out, ",\"additionalProperties\":");
    if (f->type == FIELD_OBJECT_MAP)
        write_shape(out, f->shape, input, input && may_be_empty(f->shape));
    else
        buf_addz(out, "{\"type\":\"string\"}");
    buf_addc(out, '}');
}

static void write_field(buf *out, const field *f, bool input)
{
    bool nullable = input && !(f->flags & FIELD_REQUIRED);
    switch (f->type) {
    case FIELD_BOOL:
    case FIELD_OPT_BOOL:
        open_type(out, "boolean", nullable);
        buf_addc(out, '}');
        break;
    case FIELD_INT:
    case FIELD_OPT_INT: write_integer(out, f, nullable); break;
    case FIELD_DECIMAL: write_number(out, f, nullable); break;
    case FIELD_TEXT:
    case FIELD_DURATION:
    case FIELD_EXPRESSION: write_text(out, f, nullable); break;
    case FIELD_TIME:
        open_type(out, "string", nullable);
        buf_addz(out, ",\"format\":\"date-time\"}");
        break;
    case FIELD_ENUM: write_words(out, f->words, nullable); break;
    case FIELD_QUANTITY:
    case FIELD_INT_OR_PERCENT:
        buf_addz(out, nullable ? "{\"type\":[\"integer\",\"string\",\"null\"]}"
                               : "{\"type\":[\"integer\",\"string\"]}");
        break;
    case FIELD_SELECTOR:
        open_type(out, "object", nullable);
        buf_addc(out, '}');
        break;
    case FIELD_TEXT_LIST:
    case FIELD_ENUM_SET:
    case FIELD_OBJECT_LIST: write_list(out, f, input, nullable); break;
    case FIELD_TEXT_MAP:
    case FIELD_LABELS:
    case FIELD_OBJECT_MAP: write_map(out, f, input, nullable); break;
    case FIELD_RAW:
    case FIELD_HEADER: buf_addz(out, "{}"); break;
    case FIELD_STRUCT:
    case FIELD_OBJECT:
    case FIELD_INLINE: write_shape(out, f->shape, input, nullable); break;
    }
}

/* "apiVersion" and "kind" of a document. */
static bool is_header(const field *f)
{
    return f->type == FIELD_HEADER &&
           (str_eq(f->name, STR("apiVersion")) || str_eq(f->name, STR("kind")));
}

static void write_fields(buf *out, const shape *s, bool input, bool *first)
{
    for (size_t i = 0; i < s->field_count; i++) {
        const field *f = &s->fields[i];
        if (is_header(f))
            continue;
        if (f->type == FIELD_INLINE) {
            write_fields(out, f->shape, input, first);
            continue;
        }
        buf_addz(out, *first ? "" : ",");
        *first = false;
        buf_add_json(out, f->name);
        buf_addc(out, ':');
        write_field(out, f, input);
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

/* Bodies and documents of Drover's own kinds are read closed, whatever their shape says. */
static void write_shape(buf *out, const shape *s, bool input, bool nullable)
{
    bool first = true, none = true;
    if (s->whole) {
        write_field(out, s->whole, input);
        return;
    }
    open_type(out, "object", nullable);
    buf_addz(out, ",\"properties\":{");
    write_fields(out, s, input, &first);
    buf_addc(out, '}');
    write_required(out, s, &none);
    buf_addz(out, none ? "" : "]");
    buf_addz(out, ",\"additionalProperties\":false}");
}

/* A document: its two header fields have one value each. */
static void write_document(buf *out, object_kind kind)
{
    const shape *s = object_kind_shape(kind);
    bool first = false, none = false;
    buf_addf(out,
             "{\"type\":\"object\",\"properties\":{\"apiVersion\":{\"type\":\"string\","
             "\"enum\":[\"%s\"]},\"kind\":{\"type\":\"string\",\"enum\":[\"%s\"]}",
             object_kind_api(kind), object_kind_text(kind));
    write_fields(out, s, true, &first);
    buf_addz(out, "},\"required\":[\"apiVersion\",\"kind\"");
    write_required(out, s, &none);
    buf_addz(out, "],\"additionalProperties\":false}");
}

/* ---- components ---- */

static void write_schema(buf *out, const schema *s, object_kind kind, bool input)
{
    if (s->literal)
        buf_addz(out, s->literal);
    else if (s->shape)
        write_shape(out, s->shape, input, false);
    else
        write_document(out, kind);
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
    buf_addf(out, "\"Error\":%s,\n\"FleetLockError\":%s", error_schema, fleet_error_schema);
    for (size_t i = 0; i < operation_count; i++) {
        const schema *both[] = {&operations[i].input, &operations[i].answer};
        for (size_t k = 0; k < 2; k++) {
            if (!both[k]->name || seen_before(i, k == 1))
                continue;
            buf_addf(out, ",\n\"%s\":", both[k]->name);
            write_schema(out, both[k], operations[i].kind, k == 0);
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
        str name = str_part(part, 1, part.len - 2);
        buf_addf(out, "%s{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":%s}",
                 *first ? "" : ",", STR_ARG(name),
                 str_eq(name, STR("number"))
                     ? "{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":1}"
                     : "{\"type\":\"string\",\"minLength\":1,\"pattern\":\"" PLAIN_TEXT "\"}");
        *first = false;
    }
}

static void write_pattern(buf *out, const char *pattern)
{
    buf_addz(out, ",\"pattern\":");
    buf_add_json(out, str_of(pattern));
}

static void write_query_parameter(buf *out, const parameter *p)
{
    buf_addf(out, "{\"name\":\"%s\",\"in\":\"query\",\"description\":", p->name);
    buf_add_json(out, str_of(p->about));
    buf_addf(out, ",\"schema\":{\"type\":\"%s\"", parameter_types[p->type]);
    if (p->type == PARAMETER_NUMBER)
        buf_addf(out, ",\"minimum\":%lld,\"maximum\":%lld", (long long)p->min, (long long)p->max);
    for (size_t i = 0; p->words && p->words[i]; i++)
        buf_addf(out, "%s\"%s\"", i == 0 ? ",\"enum\":[" : ",", p->words[i]);
    buf_addz(out, p->words ? "]" : "");
    if (p->pattern)
        write_pattern(out, p->pattern);
    else if (p->type == PARAMETER_TEXT && !p->words)
        buf_addz(out, ",\"pattern\":\"" PLAIN_TEXT "\"");
    buf_addz(out, "}}");
}

static void write_header(buf *out, const header_rule *h)
{
    buf_addf(out, "{\"name\":\"%s\",\"in\":\"header\",\"required\":%s,\"description\":", h->name,
             h->required ? "true" : "false");
    buf_add_json(out, str_of(h->about));
    buf_addz(out, ",\"schema\":{\"type\":\"string\"");
    if (h->word)
        buf_addf(out, ",\"enum\":[\"%s\"]", h->word);
    else if (h->pattern)
        write_pattern(out, h->pattern);
    buf_addz(out, "}}");
}

static void write_parameters(buf *out, const operation *o)
{
    bool first = true;
    buf_addz(out, ",\"parameters\":[");
    write_path_parameters(out, o, &first);
    for (const parameter *p = o->parameters; p && p->name; p++, first = false) {
        buf_addz(out, first ? "" : ",");
        write_query_parameter(out, p);
    }
    for (const header_rule *h = o->headers; h && h->name; h++, first = false) {
        buf_addz(out, first ? "" : ",");
        write_header(out, h);
    }
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
    buf_addf(out,
             "\"default\":{\"description\":\"refused\",\"content\":{\"application/json\":{"
             "\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}}}}",
             o->fleet_lock ? "FleetLockError" : "Error");
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
    if (o->worker)
        buf_addz(out, ",\"x-drover-worker\":true");
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
