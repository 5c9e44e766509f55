/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the test vectors of cel-spec: cel-conformance [--tap] FILE...
 *
 * Prints for each file how many tests passed, failed, and did not apply because they need protobuf.
 * Whether one does is read off the test itself: messages or enums among its values and types, or an
 * expression that makes a message. A test with something that this program does not know has failed
 * and says so. With --tap what does not apply is counted in a comment and is no test. Exit status 1
 * when one failed, 2 when a file cannot be read. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "select/cel_internal.h"
#include "textproto.h"

#define FILE_BYTES_MOST ((size_t)64 * 1024 * 1024)

typedef enum outcome { PASSED, FAILED, NOT_APPLICABLE } outcome;

typedef struct suite {
    arena *arena; /* rewound after each test */
    bool tap;
    unsigned number;
    const char *file;
    str section;
    unsigned counts[3];
} suite;

/* ---- Does it need protobuf? --------------------------------------------------------------- */

static bool name_ends(str name, const char *end)
{
    return str_ends(name, str_of(end));
}

static bool is_time(str name)
{
    return name_ends(name, "google.protobuf.Timestamp") ||
           name_ends(name, "google.protobuf.Duration");
}

/* A type name that a program without protobuf does not have. */
static bool is_message_name(str name)
{
    return !is_time(name) &&
           (str_starts(name, STR("google.protobuf.")) || str_starts(name, STR("cel.expr.")) ||
            str_starts(name, STR("google.api.expr.")));
}

/* Messages, enums and wrappers among bindings, declarations and results. */
static bool fields_need_protobuf(text_field *f)
{
    for (; f; f = f->next) {
        if (str_eq(f->name, STR("object_value"))) {
            if (!f->fields || !is_time(f->fields->name))
                return true;
            continue;
        }
        if (str_eq(f->name, STR("enum_value")) || str_eq(f->name, STR("wrapper")))
            return true;
        if (str_eq(f->name, STR("message_type")) && !is_time(f->scalar))
            return true;
        if (str_eq(f->name, STR("well_known")) && str_eq(f->scalar, STR("ANY")))
            return true;
        if (str_eq(f->name, STR("type_value")) && is_message_name(f->scalar))
            return true;
        if (f->is_message && fields_need_protobuf(f->fields))
            return true;
    }
    return false;
}

/* Message{...}, or the name of a message or an enum. */
static bool expression_needs_protobuf(suite *s, str expr, str container)
{
    cel_error error;
    lexer lx = {.arena = s->arena, .source = expr, .error = &error};
    bool proto_space = is_message_name(container) || str_starts(container, STR("cel.expr"));
    char dotted[256] = "";
    size_t len = 0;
    bool name = false;
    for (token t = cel_lex(&lx); t.kind != TOKEN_END && t.kind != TOKEN_BAD; t = cel_lex(&lx)) {
        if (t.kind == TOKEN_LBRACE && name)
            return true;
        if (t.kind == TOKEN_IDENT && len + t.text.len + 2 < sizeof dotted) {
            if (proto_space && isupper((unsigned char)t.text.ptr[0]))
                return true;
            memcpy(dotted + len, t.text.ptr, t.text.len);
            len += t.text.len;
        } else if (t.kind == TOKEN_DOT && name && len + 2 < sizeof dotted) {
            dotted[len++] = '.';
        } else {
            if (is_message_name((str){dotted, len}))
                return true;
            len = 0;
        }
        name = t.kind == TOKEN_IDENT || (t.kind == TOKEN_DOT && name);
    }
    return is_message_name((str){dotted, len});
}

/* ---- Values and types --------------------------------------------------------------------- */

static cel_value read_value(suite *s, text_field *f);

static cel_value read_list(suite *s, text_field *f)
{
    size_t len = 0;
    for (text_field *v = f; v; v = v->next)
        len++;
    cel_value *items = ARENA_ARRAY(s->arena, len, cel_value);
    size_t i = 0;
    for (text_field *v = f; v; v = v->next)
        items[i++] = read_value(s, v->fields);
    return cel_list_of(s->arena, items, len);
}

static cel_value read_map(suite *s, text_field *f)
{
    size_t len = 0;
    for (text_field *v = f; v; v = v->next)
        len++;
    cel_entry *entries = ARENA_ARRAY(s->arena, len, cel_entry);
    size_t i = 0;
    for (text_field *v = f; v; v = v->next, i++) {
        entries[i].key = read_value(s, text_inside(v->fields, "key"));
        entries[i].value = read_value(s, text_inside(v->fields, "value"));
    }
    return cel_map_of(s->arena, entries, len);
}

static long long number(str text)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", STR_ARG(text));
    return strtoll(copy, NULL, 0);
}

static cel_value read_time(text_field *message)
{
    long long seconds = number(text_scalar(message->fields, "seconds"));
    long long nanos = number(text_scalar(message->fields, "nanos"));
    if (name_ends(message->name, "Timestamp"))
        return cel_timestamp((moment){seconds, (int32_t)nanos});
    return cel_duration(seconds * 1000000000 + nanos);
}

static cel_value read_type(str name)
{
    for (int k = 0; k < CEL_ERROR; k++)
        if (str_eq(name, str_of(cel_kind_name((cel_kind)k))))
            return cel_type_value((cel_kind)k);
    return cel_fail(CEL_INVALID_ARGUMENT, "an unknown type");
}

/* The one field of a Value message. */
static cel_value read_value(suite *s, text_field *f)
{
    if (!f)
        return cel_fail(CEL_INVALID_ARGUMENT, "no value");
    char copy[400];
    snprintf(copy, sizeof copy, "%.*s", STR_ARG(f->scalar));
    if (str_eq(f->name, STR("null_value")))
        return cel_null();
    if (str_eq(f->name, STR("bool_value")))
        return cel_bool(str_eq(f->scalar, STR("true")));
    if (str_eq(f->name, STR("int64_value")))
        return cel_int(strtoll(copy, NULL, 0));
    if (str_eq(f->name, STR("uint64_value")))
        return cel_uint(strtoull(copy, NULL, 0));
    if (str_eq(f->name, STR("double_value")))
        return cel_double(strtod(copy, NULL));
    if (str_eq(f->name, STR("string_value")))
        return cel_string(f->scalar);
    if (str_eq(f->name, STR("bytes_value")))
        return cel_bytes(f->scalar);
    if (str_eq(f->name, STR("type_value")))
        return read_type(f->scalar);
    if (str_eq(f->name, STR("list_value")))
        return read_list(s, f->fields);
    if (str_eq(f->name, STR("map_value")))
        return read_map(s, f->fields);
    if (str_eq(f->name, STR("object_value")) && f->fields)
        return read_time(f->fields);
    return cel_fail(CEL_INVALID_ARGUMENT, "an unknown kind of value");
}

static const cel_type *read_static_type(suite *s, text_field *f);

static const cel_type *parametric(suite *s, cel_kind kind, text_field *key, text_field *element)
{
    const cel_type *k = key ? read_static_type(s, key) : NULL;
    return cel_type_make(s->arena, kind, k, element ? read_static_type(s, element) : NULL);
}

/* name(a, b): the arguments one by one. */
static const cel_type *abstract_type(suite *s, str name, text_field *arguments)
{
    cel_type *t = ARENA_NEW(s->arena, cel_type);
    *t = (cel_type){.kind = CEL_ABSTRACT, .name = name};
    text_field *first = text_find(arguments, "parameter_types");
    if (first)
        t->key = read_static_type(s, first->fields);
    if (first && text_find(first->next, "parameter_types"))
        t->element = abstract_type(s, STR_EMPTY, first->next);
    return t;
}

static const cel_type *named_type(suite *s, text_field *fields)
{
    str name = text_scalar(fields, "name");
    for (int k = CEL_IP; k <= CEL_CIDR; k++)
        if (str_eq(name, str_of(cel_kind_name((cel_kind)k))))
            return &cel_types[k];
    if (name_ends(name, "optional_type"))
        return parametric(s, CEL_OPTIONAL, NULL, text_inside(fields, "parameter_types"));
    return abstract_type(s, name, fields);
}

static const cel_type *simple_type(str name)
{
    static const struct {
        const char *name;
        cel_kind kind;
    } names[] = {{"BOOL", CEL_BOOL},           {"INT64", CEL_INT},        {"UINT64", CEL_UINT},
                 {"DOUBLE", CEL_DOUBLE},       {"STRING", CEL_STRING},    {"BYTES", CEL_BYTES},
                 {"TIMESTAMP", CEL_TIMESTAMP}, {"DURATION", CEL_DURATION}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (str_eq(name, str_of(names[i].name)))
            return &cel_types[names[i].kind];
    return NULL;
}

/* The one field of a Type message; NULL is dyn. */
static const cel_type *read_static_type(suite *s, text_field *f)
{
    if (!f)
        return NULL;
    if (str_eq(f->name, STR("primitive")) || str_eq(f->name, STR("well_known")))
        return simple_type(f->scalar);
    if (str_eq(f->name, STR("null")))
        return &cel_types[CEL_NULL];
    if (str_eq(f->name, STR("type")))
        return &cel_types[CEL_TYPE];
    if (str_eq(f->name, STR("message_type")) && is_time(f->scalar))
        return &cel_types[name_ends(f->scalar, "Duration") ? CEL_DURATION : CEL_TIMESTAMP];
    if (str_eq(f->name, STR("list_type")))
        return parametric(s, CEL_LIST, NULL, text_inside(f->fields, "elem_type"));
    if (str_eq(f->name, STR("map_type")))
        return parametric(s, CEL_MAP, text_inside(f->fields, "key_type"),
                          text_inside(f->fields, "value_type"));
    if (str_eq(f->name, STR("abstract_type")))
        return named_type(s, f->fields);
    if (str_eq(f->name, STR("type_param"))) {
        cel_type *t = ARENA_NEW(s->arena, cel_type);
        *t = (cel_type){.kind = CEL_PARAMETER, .name = f->scalar};
        return t;
    }
    return NULL;
}

/* Like ==, but 1 is not 1u, and NaN is NaN. */
static bool exactly(suite *s, cel_value a, cel_value b)
{
    if (a.kind != b.kind)
        return false;
    if (a.kind == CEL_DOUBLE)
        return a.d == b.d || (isnan(a.d) && isnan(b.d));
    if (a.kind != CEL_LIST && a.kind != CEL_MAP)
        return cel_equal(a, b, s->arena);
    if (cel_size(a) != cel_size(b))
        return false;
    for (size_t i = 0; i < cel_size(a); i++) {
        cel_value key;
        cel_value x;
        cel_value y;
        cel_at(a, i, s->arena, &key, &x);
        if (a.kind == CEL_LIST)
            cel_at(b, i, s->arena, &key, &y);
        else if (!cel_get(b, key, s->arena, &y))
            return false;
        if (!exactly(s, x, y))
            return false;
    }
    return true;
}

/* ---- Tests -------------------------------------------------------------------------------- */

typedef struct setting {
    cel_env env;
    cel_variable *variables;
    cel_value *bindings;
    size_t count;
    cel_declared *functions;
    size_t function_count;
} setting;

static size_t variable(setting *in, str name)
{
    for (size_t i = 0; i < in->count; i++)
        if (str_eq(in->variables[i].name, name))
            return i;
    in->variables[in->count] = (cel_variable){.name = name};
    in->bindings[in->count] = cel_fail(CEL_NO_SUCH_VARIABLE, "unbound");
    return in->count++;
}

/* The overloads of one declared function. */
static void read_function(suite *s, text_field *declaration, setting *in)
{
    text_field *overloads = text_inside(declaration, "function");
    for (text_field *f = overloads; f; f = f->next) {
        if (!str_eq(f->name, STR("overloads")))
            continue;
        cel_declared *d = &in->functions[in->function_count++];
        size_t count = 0;
        for (text_field *p = f->fields; p; p = p->next)
            count += str_eq(p->name, STR("params"));
        const cel_type **types = ARENA_ARRAY(s->arena, count, const cel_type *);
        *d = (cel_declared){.name = text_scalar(declaration, "name"),
                            .member = text_true(f->fields, "is_instance_function"),
                            .parameters = types,
                            .count = count,
                            .result = read_static_type(s, text_inside(f->fields, "result_type"))};
        size_t i = 0;
        for (text_field *p = f->fields; p; p = p->next)
            if (str_eq(p->name, STR("params")))
                types[i++] = read_static_type(s, p->fields);
    }
}

static size_t count_overloads(text_field *test)
{
    size_t count = 0;
    for (text_field *f = test; f; f = f->next)
        for (text_field *o = text_inside(f->fields, "function"); o; o = o->next)
            count++;
    return count;
}

static void read_setting(suite *s, text_field *test, setting *in)
{
    size_t most = 0;
    for (text_field *f = test; f; f = f->next)
        most++;
    in->variables = ARENA_ARRAY(s->arena, most, cel_variable);
    in->bindings = ARENA_ARRAY(s->arena, most, cel_value);
    in->functions = ARENA_ARRAY(s->arena, count_overloads(test), cel_declared);
    for (text_field *f = test; f; f = f->next) {
        if (str_eq(f->name, STR("type_env")) && text_find(f->fields, "ident")) {
            size_t i = variable(in, text_scalar(f->fields, "name"));
            text_field *ident = text_inside(f->fields, "ident");
            in->variables[i].type = read_static_type(s, text_inside(ident, "type"));
        } else if (str_eq(f->name, STR("type_env"))) {
            read_function(s, f->fields, in);
        } else if (str_eq(f->name, STR("bindings"))) {
            size_t i = variable(in, text_scalar(f->fields, "key"));
            text_field *value = text_inside(f->fields, "value");
            in->bindings[i] = read_value(s, text_inside(value, "value"));
        }
    }
    in->env = (cel_env){.variables = in->variables,
                        .variable_count = in->count,
                        .functions = in->functions,
                        .function_count = in->function_count,
                        .container = text_scalar(test, "container"),
                        .unchecked = text_true(test, "disable_check"),
                        .no_macros = text_true(test, "disable_macros")};
}

static void describe(buf *out, suite *s, const char *label, cel_value v)
{
    buf_addf(out, "  %s ", label);
    cel_print(out, v, s->arena);
    buf_addc(out, '\n');
}

static bool same_type(const cel_type *a, const cel_type *b)
{
    if (type_kind(a) != type_kind(b))
        return false;
    return type_kind(a) == CEL_DYN || (str_eq(a->name, b->name) && same_type(a->key, b->key) &&
                                       same_type(a->element, b->element));
}

/* Whether the deduced type, if the test states one, is ours. */
static bool check_type(suite *s, text_field *test, const cel_program *p, buf *out)
{
    text_field *typed = text_inside(test, "typed_result");
    text_field *wanted = text_inside(typed, "deduced_type");
    if (!wanted || text_true(test, "disable_check"))
        return true;
    const cel_type *type = read_static_type(s, wanted);
    if (same_type(type, cel_result_type(p)))
        return true;
    buf_addz(out, "  expected type ");
    cel_type_print(out, type);
    buf_addz(out, ", got ");
    cel_type_print(out, cel_result_type(p));
    buf_addc(out, '\n');
    return false;
}

static bool run_program(suite *s, text_field *test, setting *in, buf *out)
{
    bool wants_error = text_find(test, "eval_error") || text_find(test, "any_eval_errors");
    cel_error error;
    cel_program *p = cel_compile(s->arena, text_scalar(test, "expr"), &in->env, &error);
    if (!p) {
        buf_addf(out, "  got a compile error at line %u, column %u: %s\n", error.line, error.column,
                 error.message);
        return wants_error;
    }
    if (!check_type(s, test, p, out)) {
        cel_program_free(p);
        return false;
    }
    if (text_true(test, "check_only")) {
        cel_program_free(p);
        return true;
    }
    text_field *wanted = text_inside(test, "value");
    if (text_find(test, "typed_result"))
        wanted = text_inside(text_inside(test, "typed_result"), "result");
    cel_value expected = wanted ? read_value(s, wanted) : cel_bool(true);
    cel_value got = cel_eval(p, in->bindings, s->arena, NULL);
    bool good = wants_error ? is_error(got) : exactly(s, expected, got);
    if (wants_error)
        buf_addz(out, "  expected an error\n");
    else
        describe(out, s, "expected", expected);
    describe(out, s, "got", got);
    cel_program_free(p);
    return good;
}

/* The name of the first field that is not among the known ones, or the empty text. */
static str not_among(text_field *fields, const char *const *known)
{
    for (text_field *f = fields; f; f = f->next) {
        const char *const *k = known;
        while (*k && !str_eq(f->name, str_of(*k)))
            k++;
        if (!*k)
            return f->name;
    }
    return STR_EMPTY;
}

static bool is_known(text_field *test, buf *out)
{
    static const char *const known[] = {
        "name",         "description", "expr",       "disable_macros",  "disable_check",
        "check_only",   "type_env",    "bindings",   "container",       "locale",
        "typed_result", "value",       "eval_error", "any_eval_errors", NULL};
    str odd = not_among(test, known);
    if (odd.len > 0)
        buf_addf(out, "  a field that is not known: %.*s\n", STR_ARG(odd));
    return odd.len == 0;
}

static outcome run_test(suite *s, text_field *test)
{
    str expr = text_scalar(test, "expr");
    if (fields_need_protobuf(test) ||
        expression_needs_protobuf(s, expr, text_scalar(test, "container")))
        return NOT_APPLICABLE;
    setting in = {0};
    read_setting(s, test, &in);
    buf out = BUF(100000);
    bool good = is_known(test, &out) && run_program(s, test, &in, &out);
    if (!good)
        fprintf(stderr, "%s: %.*s/%.*s\n  expr %.*s\n%.*s", s->file, STR_ARG(s->section),
                STR_ARG(text_scalar(test, "name")), STR_ARG(expr), STR_ARG(buf_str(&out)));
    buf_done(&out);
    return good ? PASSED : FAILED;
}

static void report(suite *s, text_field *test, outcome result)
{
    s->counts[result]++;
    if (s->tap && result != NOT_APPLICABLE)
        printf("%s %u - %s %.*s/%.*s\n", result == FAILED ? "not ok" : "ok", ++s->number, s->file,
               STR_ARG(s->section), STR_ARG(text_scalar(test, "name")));
}

/* The file as a tree, whose fields down to the tests are those of the suite. */
static bool read_tree(suite *s, str text, text_field **ret_file)
{
    static const char *const in_file[] = {"name", "description", "section", NULL};
    static const char *const in_section[] = {"name", "description", "test", NULL};
    err error;
    if (!textproto_read(s->arena, text, ret_file, &error)) {
        fprintf(stderr, "%s: %s\n", s->file, error.text);
        return false;
    }
    str odd = not_among(*ret_file, in_file);
    for (text_field *section = *ret_file; section && odd.len == 0; section = section->next)
        odd = not_among(section->fields, in_section);
    if (odd.len > 0)
        fprintf(stderr, "%s: a field that is not known: %.*s\n", s->file, STR_ARG(odd));
    return odd.len == 0;
}

static bool run_file(suite *s, str text)
{
    text_field *file;
    if (!read_tree(s, text, &file))
        return false;
    memset(s->counts, 0, sizeof s->counts);
    for (text_field *section = file; section; section = section->next) {
        if (!str_eq(section->name, STR("section")))
            continue;
        s->section = text_scalar(section->fields, "name");
        for (text_field *test = section->fields; test; test = test->next) {
            if (!str_eq(test->name, STR("test")))
                continue;
            arena_place place = arena_mark(s->arena);
            report(s, test->fields, run_test(s, test->fields));
            arena_rewind(s->arena, place);
        }
    }
    printf("%s%s: %u passed, %u failed, %u not applicable\n", s->tap ? "# " : "", s->file,
           s->counts[PASSED], s->counts[FAILED], s->counts[NOT_APPLICABLE]);
    return true;
}

static bool read_file(const char *path, buf *out)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: cannot be opened\n", path);
        return false;
    }
    char chunk[65536];
    size_t len;
    while ((len = fread(chunk, 1, sizeof chunk, file)) > 0)
        buf_add(out, (str){chunk, len});
    bool good = !ferror(file) && !out->failed;
    fclose(file);
    if (!good)
        fprintf(stderr, "%s: cannot be read\n", path);
    return good;
}

int main(int argc, char **argv)
{
    suite s = {.tap = argc > 1 && strcmp(argv[1], "--tap") == 0};
    int status = 0;
#ifdef CEL_VECTORS
    /* The test program has its files built in; the tool is told. */
    static const char *const built_in[] = {CEL_VECTORS};
    const char *const *files = built_in;
    size_t count = sizeof built_in / sizeof built_in[0];
    s.tap = true;
    (void)argv;
#else
    const char *const *files = (const char *const *)argv + (s.tap ? 2 : 1);
    size_t count = (size_t)argc - (s.tap ? 2 : 1);
#endif
    if (count == 0) {
        fprintf(stderr, "usage: cel-conformance [--tap] FILE...\n");
        return 2;
    }
    for (size_t i = 0; i < count; i++) {
        buf text = BUF(FILE_BYTES_MOST);
        const char *slash = strrchr(files[i], '/');
        s.file = s.tap && slash ? slash + 1 : files[i];
        s.arena = arena_new(0);
        if (!s.arena || !read_file(files[i], &text) || !run_file(&s, buf_str(&text)))
            status = 2;
        else if (s.counts[FAILED] > 0 && status == 0)
            status = 1;
        arena_free(s.arena);
        buf_done(&text);
    }
    if (s.tap)
        printf("1..%u\n", s.number);
    return status;
}
