/* SPDX-License-Identifier: Apache-2.0 */
#include "model/yaml.h"

#include <yaml.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "base/vec.h"

/* What all anchors of a document may hold together: they may be nested. */
#define ANCHOR_BYTES_MOST (16u * LIMIT_DOCUMENT_BYTES)

/* A node that has a name, as JSON text without newlines. */
typedef struct anchor {
    str name;
    str text; /* ptr is NULL while the node is still being read */
    size_t values;
} anchor;

/* One open sequence or mapping. */
typedef struct level {
    bool mapping;
    bool at_value;     /* mapping: a key was written */
    bool merging;      /* mapping: the value that comes belongs to "<<" */
    size_t entries;
    size_t start;      /* of its text in out */
    size_t cut;        /* merging: where "<<" would have been written */
    size_t anchor;     /* index + 1; 0: none */
    size_t values;     /* values written before it */
    size_t merges;     /* of the stream, before this level */
} level;

struct yaml_stream {
    yaml_parser_t parser;
    str text;
    arena *arena; /* anchors and merges of the current document */
    buf *out;
    uint32_t line; /* in which out ends, from 1 */
    size_t values;
    size_t alias_values;
    size_t alias_bytes;
    size_t anchor_bytes;
    level levels[LIMIT_DOCUMENT_DEPTH];
    size_t depth;
    VEC(anchor) anchors;
    VEC(str) merges; /* JSON texts still to be merged into open mappings */
    bool ended;
    yaml_error *error;
};

yaml_stream *yaml_open(str text)
{
    yaml_stream *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    if (!yaml_parser_initialize(&s->parser))
        return mem_free(s);
    s->text = text;
    yaml_parser_set_encoding(&s->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&s->parser, (const unsigned char *)text.ptr, text.len);
    return s;
}

yaml_stream *yaml_close(yaml_stream *s)
{
    if (!s)
        return NULL;
    yaml_parser_delete(&s->parser);
    arena_free(s->arena);
    vec_done(&s->anchors);
    vec_done(&s->merges);
    return mem_free(s);
}

static bool fail_memory(yaml_stream *s)
{
    s->error->no_memory = true;
    return err_memory(&s->error->what);
}

static bool fail(yaml_stream *s, size_t line, const char *what)
{
    s->error->line = (uint32_t)line + 1;
    return err_set(&s->error->what, "%s", what);
}

static bool fail_parser(yaml_stream *s)
{
    const yaml_parser_t *p = &s->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return fail_memory(s);
    size_t line = p->error == YAML_READER_ERROR ? s->parser.mark.line : p->problem_mark.line;
    s->error->line = (uint32_t)line + 1;
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->context)
        return err_set(&s->error->what, "this is not YAML: %s %s (from line %zu)", problem,
                       p->context, p->context_mark.line + 1);
    return err_set(&s->error->what, "this is not YAML: %s", problem);
}

/* Brings out to the line of the token that comes next. */
static void go_to_line(yaml_stream *s, size_t line)
{
    for (; s->line < line + 1; s->line++)
        buf_addc(s->out, '\n');
}

/* A copy in the arena without newlines: outside of strings they are only layout, inside there are none. */
static str flat_copy(yaml_stream *s, str text)
{
    char *copy = arena_alloc(s->arena, text.len + 1);
    if (!copy)
        return (str){NULL, 0};
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != '\n')
            copy[len++] = text.ptr[i];
    return (str){copy, len};
}

static bool anchor_open(yaml_stream *s, const yaml_char_t *name, size_t line, size_t *ret)
{
    *ret = 0;
    if (!name)
        return true;
    if (s->anchors.len >= LIMIT_YAML_ANCHORS)
        return fail(s, line, "found more anchors than the 1000 that are allowed in a document");
    str copy = arena_str(s->arena, str_of((const char *)name));
    if (!copy.ptr || !vec_push(&s->anchors, (anchor){.name = copy}))
        return fail_memory(s);
    *ret = s->anchors.len;
    return true;
}

static bool anchor_close(yaml_stream *s, size_t index, size_t start, size_t values_before)
{
    if (index == 0)
        return true;
    anchor *a = &s->anchors.at[index - 1];
    str text = {s->out->ptr ? s->out->ptr + start : "", s->out->len - start};
    s->anchor_bytes += text.len;
    if (s->anchor_bytes > ANCHOR_BYTES_MOST)
        return fail(s, s->line - 1, "found anchors that hold more than 24 MiB together");
    a->text = flat_copy(s, text);
    a->values = s->values - values_before;
    return a->text.ptr || fail_memory(s);
}

/* The end of the JSON value that begins at "at", in text that this file wrote. */
static size_t skip_json(str text, size_t at)
{
    size_t depth = 0;
    do {
        char c = text.ptr[at++];
        if (c == '"') {
            while (text.ptr[at] != '"')
                at += text.ptr[at] == '\\' ? 2 : 1;
            at++;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (depth == 0) {
            while (at < text.len && !strchr(",:]}\n", text.ptr[at]))
                at++;
        }
    } while (depth > 0);
    return at;
}

static size_t skip_newlines(str text, size_t at)
{
    while (at < text.len && text.ptr[at] == '\n')
        at++;
    return at;
}

/* One member of an object in text that this file wrote; *at is behind "{" or behind the member before
 * it. False at the end. */
static bool next_member(str text, size_t *at, str *ret_key, str *ret_value)
{
    *at = skip_newlines(text, *at);
    if (*at < text.len && text.ptr[*at] == ',')
        *at = skip_newlines(text, *at + 1);
    if (*at >= text.len || text.ptr[*at] != '"')
        return false;
    size_t end = skip_json(text, *at);
    *ret_key = str_part(text, *at, end - *at);
    end = skip_newlines(text, end);
    end = skip_newlines(text, end + 1); /* the colon */
    size_t value_end = skip_json(text, end);
    *ret_value = str_part(text, end, value_end - end);
    *at = value_end;
    return true;
}

/* Appends the members of one merged mapping that are not there yet. */
static bool merge_object(yaml_stream *s, str object, strmap *seen, size_t *entries)
{
    size_t at = 1;
    str key;
    str value;
    while (next_member(object, &at, &key, &value)) {
        if (strmap_get(seen, key))
            continue;
        if (!strmap_put(seen, key, 1))
            return fail_memory(s);
        if ((*entries)++ > 0)
            buf_addc(s->out, ',');
        buf_add(s->out, key);
        buf_addc(s->out, ':');
        buf_add(s->out, value);
    }
    return true;
}

/* What "<<" brought into the mapping that ends: keys of its own win, earlier merges win over later. */
static bool merge_all(yaml_stream *s, level *l, size_t line)
{
    scoped(strmap_done) strmap seen = {0};
    str own = arena_str(s->arena, (str){s->out->ptr + l->start, s->out->len - l->start});
    if (!own.ptr || s->out->failed)
        return fail_memory(s);
    size_t at = 1;
    str key;
    str value;
    while (next_member(own, &at, &key, &value))
        if (!strmap_put(&seen, key, 1))
            return fail_memory(s);
    for (size_t i = l->merges; i < s->merges.len; i++) {
        str text = s->merges.at[i];
        if (text.ptr[0] == '{') {
            if (!merge_object(s, text, &seen, &l->entries))
                return false;
            continue;
        }
        for (size_t item = 1; text.ptr[0] == '[' && item < text.len && text.ptr[item] != ']';) {
            if (text.ptr[item] != '{')
                return fail(s, line, "found something else under <<, allowed a mapping");
            size_t end = skip_json(text, item);
            if (!merge_object(s, str_part(text, item, end - item), &seen, &l->entries))
                return false;
            item = text.ptr[end] == ',' ? end + 1 : end;
        }
        if (text.ptr[0] != '[')
            return fail(s, line, "found something else under <<, allowed a mapping or a list of them");
    }
    s->merges.len = l->merges;
    return true;
}

/* Takes the value of "<<" out of the text again and keeps it for the end of its mapping. */
static bool merge_take(yaml_stream *s, level *l)
{
    if (s->out->failed)
        return fail_memory(s);
    str taken = {s->out->ptr + l->cut, s->out->len - l->cut};
    str copy = flat_copy(s, taken);
    if (!copy.ptr || !vec_push(&s->merges, copy))
        return fail_memory(s);
    for (size_t i = 0; i < taken.len; i++)
        s->line -= taken.ptr[i] == '\n';
    s->out->len = l->cut;
    l->merging = false;
    return true;
}

static level *top(yaml_stream *s)
{
    return s->depth ? &s->levels[s->depth - 1] : NULL;
}

/* Before a node: the comma or colon it needs. Keys are handled by whoever writes scalars and aliases. */
static void begin_node(yaml_stream *s)
{
    level *l = top(s);
    if (!l)
        return;
    if (l->mapping ? !l->at_value : true) {
        if (l->entries > 0)
            buf_addc(s->out, ',');
        l->entries++;
    }
}

/* After a node: a key waits for its value, a value for the next key. */
static bool end_node(yaml_stream *s)
{
    level *l = top(s);
    if (!l || !l->mapping)
        return true;
    if (l->at_value && l->merging && !merge_take(s, l))
        return false;
    l->at_value = !l->at_value;
    if (l->at_value && !l->merging)
        buf_addc(s->out, ':');
    return true;
}

static bool is_key(yaml_stream *s)
{
    level *l = top(s);
    return l && l->mapping && !l->at_value;
}

static bool is_merge_key(const yaml_event_t *e)
{
    str text = {(const char *)e->data.scalar.value, e->data.scalar.length};
    return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && str_eq(text, STR("<<"));
}

static bool on_scalar(yaml_stream *s, const yaml_event_t *e)
{
    size_t line = e->start_mark.line;
    str text = {(const char *)e->data.scalar.value, e->data.scalar.length};
    bool plain = e->data.scalar.plain_implicit;
    const char *tag = plain || e->data.scalar.quoted_implicit ? NULL : (const char *)e->data.scalar.tag;
    bool key = is_key(s);
    if (key && is_merge_key(e)) {
        level *l = top(s);
        l->merging = true;
        l->cut = s->out->len;
        l->at_value = true;
        return true;
    }
    size_t values = s->values;
    size_t named;
    if (!anchor_open(s, e->data.scalar.anchor, line, &named))
        return false;
    begin_node(s);
    go_to_line(s, line);
    size_t start = s->out->len;
    s->values++;
    err *what = &s->error->what;
    if (!(key ? yaml_key(s->out, text, plain, tag, what) : yaml_scalar(s->out, text, plain, tag, what))) {
        s->error->line = (uint32_t)line + 1;
        return false;
    }
    return anchor_close(s, named, start, values) && end_node(s);
}

static bool on_alias(yaml_stream *s, const yaml_event_t *e)
{
    size_t line = e->start_mark.line;
    str name = str_of((const char *)e->data.alias.anchor);
    const anchor *a = NULL;
    for (size_t i = s->anchors.len; i > 0 && !a; i--)
        if (str_eq(s->anchors.at[i - 1].name, name))
            a = &s->anchors.at[i - 1];
    if (!a)
        return fail(s, line, "found an alias whose anchor is not there");
    if (!a->text.ptr)
        return fail(s, line, "found an alias inside its own anchor");
    s->alias_values += a->values;
    s->alias_bytes += a->text.len;
    if (s->alias_values > LIMIT_YAML_ALIAS_VALUES || s->alias_bytes > LIMIT_DOCUMENT_BYTES)
        return fail(s, line, "found aliases that expand to more than 100000 values or 1.5 MiB");
    bool key = is_key(s);
    char first = a->text.ptr[0];
    if (key && (first == '{' || first == '[' || first == 'n'))
        return fail(s, line, "found an alias of something else as a key, allowed text");
    begin_node(s);
    go_to_line(s, line);
    bool quote = key && first != '"';
    if (quote)
        buf_addc(s->out, '"');
    buf_add(s->out, a->text);
    if (quote)
        buf_addc(s->out, '"');
    s->values += a->values;
    return end_node(s);
}

static bool on_open(yaml_stream *s, const yaml_event_t *e, bool mapping)
{
    size_t line = e->start_mark.line;
    if (is_key(s))
        return fail(s, line, "found a mapping or list as a key, allowed text");
    if (s->depth == LIMIT_DOCUMENT_DEPTH)
        return fail(s, line, "found values nested deeper than the 64 levels that are allowed");
    const yaml_char_t *name = mapping ? e->data.mapping_start.anchor : e->data.sequence_start.anchor;
    level l = {.mapping = mapping, .values = s->values, .merges = s->merges.len};
    if (!anchor_open(s, name, line, &l.anchor))
        return false;
    begin_node(s);
    go_to_line(s, line);
    l.start = s->out->len;
    buf_addc(s->out, mapping ? '{' : '[');
    s->values++;
    s->levels[s->depth++] = l;
    return true;
}

static bool on_close(yaml_stream *s, const yaml_event_t *e)
{
    level *l = top(s);
    if (l->mapping && s->merges.len > l->merges && !merge_all(s, l, e->start_mark.line))
        return false;
    buf_addc(s->out, l->mapping ? '}' : ']');
    level closed = *l;
    s->depth--;
    return anchor_close(s, closed.anchor, closed.start, closed.values) && end_node(s);
}

/* Takes in one event; *ret_done when the document ends. */
static bool on_event(yaml_stream *s, const yaml_event_t *e, bool *ret_done)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(s, e);
    case YAML_ALIAS_EVENT:
        return on_alias(s, e);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(s, e, false);
    case YAML_MAPPING_START_EVENT:
        return on_open(s, e, true);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_close(s, e);
    case YAML_STREAM_END_EVENT:
        s->ended = true;
        *ret_done = true;
        return true;
    case YAML_DOCUMENT_END_EVENT:
        *ret_done = true;
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_START_EVENT:
        return true;
    }
    return true;
}

bool yaml_next(yaml_stream *s, buf *out, bool *ret_found, yaml_error *error)
{
    *error = (yaml_error){0};
    s->out = out;
    s->error = error;
    s->line = 1;
    s->depth = s->values = s->alias_values = s->alias_bytes = s->anchor_bytes = 0;
    s->anchors.len = s->merges.len = 0;
    s->arena = arena_free(s->arena);
    s->arena = arena_new(0);
    if (!s->arena)
        return fail_memory(s);
    bool done = s->ended;
    while (!done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&s->parser, &event))
            return fail_parser(s);
        bool good = on_event(s, &event, &done);
        yaml_event_delete(&event);
        if (!good)
            return false;
    }
    if (out->failed)
        return fail_memory(s);
    *ret_found = !s->ended;
    return true;
}
