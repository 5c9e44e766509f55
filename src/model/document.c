/* SPDX-License-Identifier: Apache-2.0 */
#include "model/document.h"

#include <assert.h>
#include <stdarg.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/json.h"
#include "model/shape_value.h"
#include "model/yaml.h"

/* A line is remembered for every so many values, once the first one was asked for. */
#define LINE_STEP 1024

typedef struct line_mark {
    size_t offset; /* of the value in the text */
    uint32_t line;
} line_mark;

struct tree {
    yyjson_doc *doc;
    str text;         /* what doc was parsed from */
    buf own;          /* holds text when it was converted */
    uint32_t line;    /* in which text begins, from 1 */
    line_mark *marks; /* one for every LINE_STEP values */
    size_t mark_count;
    bool no_memory; /* for marks: lines are right, but slow to find */
};

struct document_set {
    arena *arena;
    VEC(tree *) trees;
    VEC(document *) documents;
};

/* What one call of documents_read works on. */
typedef struct reading {
    document_set *set;
    const document_source *source;
    problems *found;
    bool good;
} reading;

/* ---- sets ---- */

document_set *document_set_new(void)
{
    document_set *set = mem_zalloc(sizeof *set);
    if (!set)
        return NULL;
    set->arena = arena_new(0);
    return set->arena ? set : mem_free(set);
}

static void tree_done(tree *t)
{
    yyjson_doc_free(t->doc);
    buf_done(&t->own);
    mem_free(t->marks);
}

document_set *document_set_free(document_set *set)
{
    if (!set)
        return NULL;
    for (size_t i = 0; i < set->trees.len; i++)
        tree_done(set->trees.at[i]);
    vec_done(&set->trees);
    vec_done(&set->documents);
    arena_free(set->arena);
    return mem_free(set);
}

void document_set_cleanup(document_set **set)
{
    *set = document_set_free(*set);
}

size_t documents_count(const document_set *set)
{
    return set->documents.len;
}

const document *documents_at(const document_set *set, size_t index)
{
    return set->documents.at[index];
}

/* ---- lines ---- */

typedef struct scan {
    size_t at;
    uint32_t line;
} scan;

/* Moves to the beginning of the next value. False at the end. */
static bool scan_to_value(str text, scan *s)
{
    for (; s->at < text.len; s->at++) {
        char c = text.ptr[s->at];
        if (c == '\n')
            s->line++;
        else if (c != ' ' && c != '\t' && c != '\r' && c != ',' && c != ':' && c != '}' && c != ']')
            return true;
    }
    return false;
}

/* Moves behind a value; of a container only behind its bracket. */
static void scan_past_value(str text, scan *s)
{
    char c = text.ptr[s->at++];
    if (c == '{' || c == '[')
        return;
    if (c == '"') {
        while (s->at < text.len && text.ptr[s->at] != '"')
            s->at += text.ptr[s->at] == '\\' ? 2 : 1;
        s->at++;
        return;
    }
    while (s->at < text.len && !strchr(",:]} \t\r\n", text.ptr[s->at]))
        s->at++;
}

static void mark_lines(tree *t)
{
    size_t count = yyjson_doc_get_val_count(t->doc) / LINE_STEP + 1;
    line_mark *marks = mem_alloc(count * sizeof *marks);
    t->no_memory = !marks;
    if (!marks)
        return;
    scan s = {0, t->line};
    size_t used = 0;
    for (size_t index = 0; scan_to_value(t->text, &s); index++) {
        if (index % LINE_STEP == 0 && used < count)
            marks[used++] = (line_mark){s.at, s.line};
        scan_past_value(t->text, &s);
    }
    t->marks = marks;
    t->mark_count = used;
}

static bool tree_holds(const tree *t, const yyjson_val *value)
{
    const yyjson_val *root = yyjson_doc_get_root(t->doc);
    return value >= root && value < root + yyjson_doc_get_val_count(t->doc);
}

static uint32_t tree_line(tree *t, const yyjson_val *value)
{
    if (!tree_holds(t, value))
        return t->line;
    size_t index = (size_t)(value - yyjson_doc_get_root(t->doc));
    if (!t->marks)
        mark_lines(t);
    scan s = {0, t->line};
    size_t seen = 0;
    if (t->marks && index / LINE_STEP < t->mark_count) {
        line_mark m = t->marks[index / LINE_STEP];
        s = (scan){m.offset, m.line};
        seen = index / LINE_STEP * LINE_STEP;
    }
    while (scan_to_value(t->text, &s) && seen < index) {
        scan_past_value(t->text, &s);
        seen++;
    }
    return s.line;
}

uint32_t document_line(const document *d, const yyjson_val *value)
{
    return tree_line(d->tree, value);
}

/* ---- places ---- */

place place_root(const document *d)
{
    return (place){.document = d, .value = d->root};
}

place place_key(const place *up, str key)
{
    const yyjson_val *value = json_member(up->value, key);
    return (place){up, key, 0, up->document, value ? value : up->value};
}

place place_at(const place *up, size_t index)
{
    const yyjson_val *value = NULL;
    if (json_is_array(up->value) && index < json_len(up->value)) {
        value = json_first(up->value);
        for (size_t i = 0; i < index; i++)
            value = json_next(value);
    }
    return (place){up, {NULL, 0}, index, up->document, value ? value : up->value};
}

static bool is_plain_key(str key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        if (c == '.' || c == '[' || c == '"' || (unsigned char)c <= ' ')
            return false;
    }
    return key.len > 0;
}

static void write_path(buf *out, const place *at)
{
    if (!at || !at->up)
        return;
    write_path(out, at->up);
    if (!at->key.ptr) {
        buf_addf(out, "[%zu]", at->index);
    } else if (is_plain_key(at->key)) {
        if (at->up->up)
            buf_addc(out, '.');
        buf_add(out, at->key);
    } else {
        buf_addc(out, '[');
        buf_add_json(out, at->key);
        buf_addc(out, ']');
    }
}

/* A member is found where its key stands, which may be lines above its value; one that is absent,
 * where the nearest thing around it is found. */
static const yyjson_val *key_or_value(const place *at)
{
    while (at->up && at->value == at->up->value)
        at = at->up;
    bool member = at->up && at->key.ptr && json_is_object(at->up->value) &&
                  json_member(at->up->value, at->key) == at->value;
    return member ? at->value - 1 : at->value;
}

__attribute__((format(printf, 4, 0))) static void
place_report(const place *at, problems *found, problem p, const char *format, va_list args)
{
    scoped(buf_done) buf name = BUF(LIMIT_TEXT_BYTES);
    scoped(buf_done) buf path = BUF(LIMIT_TEXT_BYTES);
    const document *d = at->document;
    if (d) {
        buf_add(&name, d->kind);
        if (d->kind.len > 0 && d->name.len > 0)
            buf_addc(&name, '/');
        buf_add(&name, d->name);
        /* What is absent has the line of the nearest thing around it. */
        const place *near = at;
        while (near->up && !tree_holds(d->tree, near->value))
            near = near->up;
        p.file = d->file;
        p.line = document_line(d, key_or_value(near));
    }
    write_path(&path, at);
    if (name.failed || path.failed || (d && d->tree->no_memory))
        problems_memory(found);
    p.document = buf_str(&name);
    p.path = buf_str(&path);
    problems_vaddf(found, &p, format, args);
}

void place_error(const place *at, problems *found, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    place_report(at, found, (problem){.severity = SEVERITY_ERROR}, format, args);
    va_end(args);
}

void place_warning(const place *at, problems *found, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    place_report(at, found, (problem){.severity = SEVERITY_WARNING}, format, args);
    va_end(args);
}

/* ---- trees to documents ---- */

static void report(reading *r, uint32_t line, const char *text)
{
    problem p = {
        .severity = SEVERITY_ERROR, .file = r->source->file, .line = line, .message = str_of(text)};
    problems_add(r->found, &p);
    r->good = false;
}

/* Something stands where a document should. */
static void report_type(reading *r, tree *t, const yyjson_val *value)
{
    char found[VALUE_DESCRIBED_BYTES], text[VALUE_DESCRIBED_BYTES + 64];
    value_describe(value, found);
    snprintf(text, sizeof text, "found %s, allowed a document: an object with fields", found);
    report(r, tree_line(t, value), text);
}

static void no_memory(reading *r)
{
    problems_memory(r->found);
    r->good = false;
}

static str text_member(const yyjson_val *object, str name)
{
    const yyjson_val *value = json_member(object, name);
    return value && json_is_text(value) ? json_str(value) : STR_EMPTY;
}

static void read_header(document *d)
{
    d->api_version = text_member(d->root, STR("apiVersion"));
    d->kind = text_member(d->root, STR("kind"));
    d->name = text_member(json_member(d->root, STR("metadata")), STR("name"));
}

/* One step down towards a value that lies somewhere in the container at up. */
static place step_towards(const place *up, const yyjson_val *value)
{
    bool object = json_is_object(up->value);
    const yyjson_val *item = json_first(up->value);
    for (size_t i = 0;; i++) {
        place here = {.up = up, .index = i, .document = up->document};
        if (object) {
            here.key = json_str(item);
            here.value = item;
            if (item == value)
                return here;
            item++;
        }
        here.value = item;
        if (value < json_next(item))
            return here;
        item = json_next(item);
    }
}

/* Reports a fault with the path to where it is. */
static void report_fault(reading *r, const document *d, json_fault fault, const yyjson_val *at)
{
    place path[LIMIT_DOCUMENT_DEPTH + 2] = {place_root(d)};
    size_t depth = 0;
    while (path[depth].value != at && depth <= LIMIT_DOCUMENT_DEPTH) {
        path[depth + 1] = step_towards(&path[depth], at);
        depth++;
    }
    if (fault == JSON_DUPLICATE)
        place_error(&path[depth], r->found, "found the key twice in one object, allowed once");
    else
        place_error(&path[0], r->found,
                    "found values nested deeper than the %d levels that are allowed",
                    LIMIT_DOCUMENT_DEPTH);
    r->good = false;
}

/* Checks one document and adds it. */
static void add_document(reading *r, document *d)
{
    const yyjson_val *at = d->root;
    json_fault fault = json_check(d->root, &at);
    switch (fault) {
    case JSON_NONE: break;
    case JSON_DEPTH:
    case JSON_DUPLICATE: report_fault(r, d, fault, at); return;
    case JSON_MEMORY: no_memory(r); return;
    }
    if (r->set->documents.len >= LIMIT_DOCUMENTS) {
        report(r, document_line(d, d->root),
               "found more documents than the 2000000 that are allowed");
        return;
    }
    if (!vec_push(&r->set->documents, d))
        no_memory(r);
    else if (r->source->each)
        r->source->each(r->source->context, d);
}

static bool is_list(const document *d)
{
    const yyjson_val *items = json_member(d->root, STR("items"));
    return str_ends(d->kind, STR("List")) && items;
}

/* Where the first string at or behind a value stands in yyjson's copy of the text. */
static const char *text_of(const tree *t, const yyjson_val *value)
{
    const yyjson_val *root = yyjson_doc_get_root(t->doc);
    const yyjson_val *end = root + yyjson_doc_get_val_count(t->doc);
    while (value < end && !json_is_text(value))
        value++;
    return value < end ? value->uni.str : (root + 1)->uni.str + t->text.len;
}

/* About how many bytes of the text an item takes, whatever stands behind it. */
static size_t item_bytes(const tree *t, const yyjson_val *item)
{
    return json_len(item) > 0 ? (size_t)(text_of(t, json_next(item)) - text_of(t, item)) : 0;
}

static void add_items(reading *r, tree *t, const document *list)
{
    const yyjson_val *items = json_member(list->root, STR("items"));
    place root = place_root(list), at = place_key(&root, STR("items"));
    if (json_is(items, YYJSON_TYPE_NULL))
        return; /* what an empty list in Go becomes */
    if (!json_is_array(items)) {
        place_error(&at, r->found, "found something that is no list, allowed a list of documents");
        r->good = false;
        return;
    }
    size_t count = json_len(items);
    document *documents = ARENA_ARRAY(r->set->arena, count, document);
    if (!documents) {
        no_memory(r);
        return;
    }
    /* What the list says holds for items that say nothing, as the API server sends them. */
    str kind = str_part(list->kind, 0, list->kind.len - STR("List").len);
    const yyjson_val *item = json_first(items);
    for (size_t i = 0; i < count; i++) {
        document *d = &documents[i];
        *d = (document){.tree = t, .root = (yyjson_val *)(uintptr_t)item, .file = r->source->file};
        if (!json_is_object(item)) {
            report_type(r, t, item);
        } else if (item_bytes(t, item) > LIMIT_DOCUMENT_BYTES) {
            report(r, tree_line(t, item), "found a document of more than 1.5 MiB");
        } else {
            read_header(d);
            if (d->kind.len == 0 && kind.len > 0) {
                d->kind = kind;
                d->api_version = list->api_version;
            }
            add_document(r, d);
        }
        item = json_next(item);
    }
}

static void show_tree(reading *r, tree *t)
{
    yyjson_val *root = yyjson_doc_get_root(t->doc);
    if (json_is(root, YYJSON_TYPE_NULL))
        return;
    if (!json_is_object(root)) {
        report_type(r, t, root);
        return;
    }
    document *d = ARENA_NEW(r->set->arena, document);
    if (!d) {
        no_memory(r);
        return;
    }
    *d = (document){.tree = t, .root = root, .file = r->source->file};
    read_header(d);
    if (is_list(d))
        add_items(r, t, d);
    else if (t->text.len > LIMIT_DOCUMENT_BYTES)
        report(r, tree_line(t, root), "found a document of more than 1.5 MiB");
    else
        add_document(r, d);
}

static void add_tree(reading *r, tree *t)
{
    show_tree(r, t);
    if (!r->source->passing)
        return;
    tree_done(t);
    r->set->trees.len--;
    r->set->documents.len = 0;
}

/* ---- JSON ---- */

static tree *new_tree(reading *r, str text, uint32_t line)
{
    tree *t = ARENA_NEW(r->set->arena, tree);
    if (!t || !vec_push(&r->set->trees, t)) {
        no_memory(r);
        return NULL;
    }
    t->text = text;
    t->line = line;
    return t;
}

static uint32_t count_lines(str text)
{
    uint32_t lines = 0;
    const char *end = text.ptr + text.len;
    for (const char *at = text.ptr; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    return lines;
}

/* yyjson takes a pointer to bytes it may write to, and writes only when told to. */
static yyjson_doc *parse(str text, yyjson_read_err *fault)
{
    char *bytes = (char *)(uintptr_t)text.ptr;
    return yyjson_read_opts(bytes, text.len, YYJSON_READ_STOP_WHEN_DONE, &json_memory, fault);
}

/* The next place in the text where a document may begin: a line that starts with "{". */
static size_t resynchronise(str text, size_t from)
{
    for (size_t at = from; at + 1 < text.len; at++)
        if (text.ptr[at] == '\n' && text.ptr[at + 1] == '{')
            return at + 1;
    return text.len;
}

static void report_json(reading *r, const yyjson_read_err *fault, uint32_t line)
{
    if (fault->code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) {
        no_memory(r);
        return;
    }
    char text[200];
    snprintf(text, sizeof text, "this is not JSON: %s", fault->msg);
    report(r, line, text);
}

static bool is_marker(str line)
{
    if (!str_starts(line, STR("---")))
        return false;
    return line.len == 3 || strchr(" \t\r\n", line.ptr[3]) != NULL;
}

static size_t skip_blanks(str text, size_t at)
{
    while (at < text.len && (text.ptr[at] == ' ' || text.ptr[at] == '\t' || text.ptr[at] == '\r' ||
                             text.ptr[at] == '\n'))
        at++;
    return at;
}

/* The text up to where the first value's brackets are closed; all of it if they are not. A parser
 * that is handed what follows, too, takes memory for that as well, each time. */
static str first_value(str text)
{
    size_t depth = 0;
    bool quoted = false;
    if (text.ptr[0] != '{' && text.ptr[0] != '[')
        return text;
    for (size_t at = 0; at < text.len; at++) {
        char c = text.ptr[at];
        if (quoted) {
            at += c == '\\';
            quoted = c != '"';
        } else if (c == '"')
            quoted = true;
        else if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return str_part(text, 0, at + 1);
    }
    return text;
}

/* One value after the other; a bad one is passed over. */
static void read_json(reading *r, str text)
{
    uint32_t line = 1;
    size_t counted = 0; /* lines are counted up to here: only when something follows */
    bool first = true;
    for (size_t at = skip_blanks(text, 0); at < text.len; at = skip_blanks(text, at)) {
        /* JSON documents may be separated as YAML's are. */
        if (is_marker(str_part(text, at, 4))) {
            at += 3;
            continue;
        }
        line += count_lines(str_part(text, counted, at - counted));
        counted = at;
        str rest = str_part(text, at, SIZE_MAX);
        if (!first) /* most texts have one value, which is not gone through twice */
            rest = first_value(rest);
        first = false;
        yyjson_read_err fault = {0};
        yyjson_doc *doc = parse(rest, &fault);
        if (!doc) {
            size_t pos = fault.pos < rest.len ? fault.pos : rest.len;
            report_json(r, &fault, line + count_lines(str_part(rest, 0, pos)));
            if (fault.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
                return;
            at = resynchronise(text, at + pos);
            continue;
        }
        size_t size = yyjson_doc_get_read_size(doc);
        tree *t = new_tree(r, str_part(rest, 0, size), line);
        if (!t) {
            yyjson_doc_free(doc);
            return;
        }
        t->doc = doc;
        add_tree(r, t);
        at += size;
    }
}

/* ---- YAML ---- */

/* One part of a YAML text between two lines that start with "---". */
static void read_yaml_part(reading *r, str text, uint32_t line)
{
    yaml_stream *s = yaml_open(text);
    if (!s) {
        no_memory(r);
        return;
    }
    for (;;) {
        buf json = BUF(LIMIT_TEXT_BYTES);
        bool more = false;
        yaml_error error;
        if (!yaml_next(s, &json, &more, &error)) {
            if (error.no_memory)
                no_memory(r);
            else
                report(r, line + (error.line ? error.line - 1 : 0), error.what.text);
        }
        if (!more) {
            buf_done(&json);
            break;
        }
        tree *t = new_tree(r, buf_str(&json), line);
        if (!t) {
            buf_done(&json);
            break;
        }
        t->own = json;
        yyjson_read_err fault = {0};
        t->doc = parse(t->text, &fault);
        if (!t->doc) {
            report_json(r, &fault, line);
            break;
        }
        add_tree(r, t);
    }
    yaml_close(s);
}

/* Only blanks, comments and directives: belongs to the document that follows. */
static bool is_preamble(str text)
{
    while (text.ptr && text.len > 0) {
        str line = str_cut(&text, '\n');
        str inside = str_trim(line);
        bool directive = line.len > 0 && line.ptr[0] == '%';
        if (!directive && inside.len > 0 && inside.ptr[0] != '#')
            return false;
    }
    return true;
}

/* A line that starts with "---" always begins a document, whatever stands before it. So an error in
 * one document does not spoil the next. */
static void read_yaml(reading *r, str text)
{
    uint32_t line = 1;
    uint32_t part_line = 1;
    size_t start = 0;
    for (size_t at = 0; at < text.len; line++) {
        const char *newline = memchr(text.ptr + at, '\n', text.len - at);
        size_t end = newline ? (size_t)(newline - text.ptr) + 1 : text.len;
        str before = str_part(text, start, at - start);
        if (at > start && is_marker(str_part(text, at, end - at)) && !is_preamble(before)) {
            read_yaml_part(r, before, part_line);
            start = at;
            part_line = line;
        }
        at = end;
    }
    read_yaml_part(r, str_part(text, start, SIZE_MAX), part_line);
}

/* ---- entry ---- */

static uint32_t bad_utf8_line(str text)
{
    uint32_t line = 1;
    while (text.ptr) {
        if (!str_utf8(str_cut(&text, '\n')))
            return line;
        line++;
    }
    return line;
}

/* "{" also begins a YAML mapping, but there keys are rarely quoted. */
static bool looks_like_json(str bytes)
{
    size_t first = skip_blanks(bytes, 0);
    if (first >= bytes.len || bytes.ptr[first] != '{')
        return first < bytes.len && bytes.ptr[first] == '[';
    size_t second = skip_blanks(bytes, first + 1);
    return second < bytes.len && (bytes.ptr[second] == '"' || bytes.ptr[second] == '}');
}

bool documents_read_from(document_set *set, const document_source *source, problems *found)
{
    reading r = {.set = set, .source = source, .found = found, .good = true};
    str bytes = source->bytes;
    if (bytes.len > LIMIT_FILE_BYTES) {
        report(&r, 0, "found a file of more than 1 GiB");
        return false;
    }
    if (str_starts(bytes, STR("\xEF\xBB\xBF")))
        bytes = str_part(bytes, 3, SIZE_MAX);
    bool json =
        source->format == FORMAT_JSON || (source->format == FORMAT_ANY && looks_like_json(bytes));
    if (json)
        read_json(&r, bytes);
    else if (!str_utf8(bytes))
        report(&r, bad_utf8_line(bytes), "found bytes that are not UTF-8");
    else
        read_yaml(&r, bytes);
    return r.good;
}

bool documents_read_as(document_set *set, str file, str bytes, document_format format,
                       problems *found)
{
    const document_source source = {.file = file, .bytes = bytes, .format = format};
    return documents_read_from(set, &source, found);
}

bool documents_read(document_set *set, str file, str bytes, problems *found)
{
    return documents_read_as(set, file, bytes, FORMAT_ANY, found);
}
