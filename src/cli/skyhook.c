/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/skyhook.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/output.h"
#include "cli/show.h"
#include "operator/act_request.h"
#include "operator/object_names.h"
#include "select/cel_regex.h"

#define LINE_BYTES 64
#define PATH_BYTES 2048
/* How long an operator may take: two seconds, and as long as the answers need. */
#define TAKEN_LOOKS 20
#define TAKEN_PAUSE_US 100000
#define REQUEST_TRIES 10
#define REQUEST_ACTS 500

/* ---- begin and end ---- */

static bool form_of(const options *given, sk_form *ret)
{
    static const char *const words[] = {
#define X(form, text) [SK_##form] = text,
        SK_FORMS(X)
#undef X
    };
    str word = options_text(given, "output", "table");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        *ret = (sk_form)i;
        if (word.len == strlen(words[i]) && strncasecmp(word.ptr, words[i], word.len) == 0)
            return true;
    }
    fail("invalid output format \"%s\"", str_shown(word).text);
    return false;
}

exit_status sk_run(const options *given, exit_status (*work)(sk *))
{
    sk s = {.given = given, .dry_run = options_given(given, "dry-run"), .arena = arena_new(0)};
    err error = {0};
    exit_status status = STATUS_NO;
    if (!s.arena)
        return fail("out of memory");
    if (form_of(given, &s.form)) {
        s.session = kube_session_open(given, &error);
        status = s.session ? work(&s) : fail("%s", error.text);
    }
    kube_session_close(s.session);
    vec_done(&s.nodes);
    arena_free(s.arena);
    return status;
}

/* ---- Skyhooks ---- */

/* What else is typed would be another object's path. */
static bool is_name(str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.-", name.ptr[i]))
            return false;
    return name.len > 0 && name.ptr[0] != '.';
}

yyjson_val *sk_skyhook(sk *s, str name)
{
    kube_reply reply;
    err error = {0};
    if (!is_name(name)) {
        fail("found \"%s\", allowed the name of a Skyhook", str_shown(name).text);
        return NULL;
    }
    str path = arena_printf(s->arena, SKYHOOKS_PATH "/%.*s", STR_ARG(name));
    if (!path.ptr || !kube_get(s->session, path, s->arena, &reply, &error)) {
        fail("%s", path.ptr ? error.text : "out of memory");
        return NULL;
    }
    if (reply.status >= 400) {
        fail("%s", reply.message);
        return NULL;
    }
    return reply.body;
}

str sk_of(const sk *s)
{
    str name = options_text(s->given, "skyhook", "");
    if (name.len > 0)
        return name;
    fail("required flag \"skyhook\" not set");
    return (str){NULL, 0};
}

/* ---- nodes ---- */

static bool take_labels(sk *s, yyjson_val *from, label_set *ret)
{
    size_t index, count, kept = 0;
    yyjson_val *key, *value;
    label *labels = ARENA_ARRAY(s->arena, yyjson_obj_size(from) + 1, label);
    if (!labels)
        return false;
    yyjson_obj_foreach(from, index, count, key, value)
    {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (!str_starts(name, STR(SKYHOOK_PREFIX)) || !yyjson_is_str(value))
            continue;
        label one = {arena_str(s->arena, name),
                     arena_str(s->arena, (str){yyjson_get_str(value), yyjson_get_len(value)})};
        if (!one.key.ptr || !one.value.ptr)
            return false;
        labels[kept++] = one;
    }
    return label_set_sort(labels, kept, ret, NULL);
}

static bool read_node(sk *s, yyjson_val *json, sk_node *ret)
{
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    yyjson_val *spec = yyjson_obj_get(json, "spec");
    *ret = (sk_node){.name = arena_str(s->arena, json_text_of(head, "name")),
                     .version = arena_str(s->arena, json_text_of(head, "resourceVersion")),
                     .unschedulable = yyjson_is_true(yyjson_obj_get(spec, "unschedulable"))};
    return ret->name.ptr && ret->version.ptr &&
           take_labels(s, yyjson_obj_get(head, "labels"), &ret->labels) &&
           take_labels(s, yyjson_obj_get(head, "annotations"), &ret->annotations);
}

static bool take_node(void *context, yyjson_val *json, err *error)
{
    sk *s = context;
    sk_node n;
    return (read_node(s, json, &n) && vec_push(&s->nodes, n)) || err_memory(error);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const sk_node *)a)->name, ((const sk_node *)b)->name);
}

bool sk_list_nodes(sk *s)
{
    err error = {0};
    s->nodes.len = 0;
    if (!kube_list(s->session, STR(NODES_PATH), take_node, s, &error)) {
        fail("%s", error.text);
        return false;
    }
    if (s->nodes.len > 0)
        qsort(s->nodes.at, s->nodes.len, sizeof s->nodes.at[0], by_name);
    return true;
}

/* Marks the nodes that a word names. False: a message was shown. */
static bool pick_one(const sk *s, str word, bool *picked)
{
    bool pattern = false, any = false;
    for (size_t i = 0; i < word.len; i++)
        pattern |= strchr(".*+?^${}[]|()\\", word.ptr[i]) != NULL;
    cel_regex *regex = NULL;
    if (pattern) {
        char why[LIMIT_ERR_BYTES] = "";
        str whole = arena_printf(s->arena, "^(?:%.*s)$", STR_ARG(word));
        regex = cel_regex_new(whole.ptr, whole.len, LIMIT_REGEX_MEMORY_BYTES, why, sizeof why);
        if (!regex) {
            fail("invalid node pattern \"%s\": %s", str_shown(word).text, why);
            return false;
        }
    }
    for (size_t i = 0; i < s->nodes.len; i++) {
        str name = s->nodes.at[i].name;
        bool matches = regex ? cel_regex_match(regex, name.ptr, name.len) == 1 : str_eq(name, word);
        picked[i] |= matches;
        any |= matches;
    }
    cel_regex_free(regex);
    if (!any)
        fail("no node matches \"%s\"", str_shown(word).text);
    return any;
}

bool sk_pick(sk *s, sk_words words)
{
    if (!sk_list_nodes(s))
        return false;
    if (words.len == 0)
        return true;
    bool *picked = ARENA_ARRAY(s->arena, s->nodes.len + 1, bool);
    for (size_t i = 0; i < words.len; i++)
        if (!picked || !pick_one(s, words.at[i], picked))
            return false;
    size_t kept = 0;
    for (size_t i = 0; i < s->nodes.len; i++)
        if (picked[i])
            s->nodes.at[kept++] = s->nodes.at[i];
    s->nodes.len = kept;
    return true;
}

str sk_annotation(const sk_node *n, const char *kind, str of)
{
    char key[LIMIT_LABEL_PREFIX_BYTES + LIMIT_NAME_BYTES + 32];
    int len = snprintf(key, sizeof key, SKYHOOK_PREFIX "%s%.*s", kind, STR_ARG(of));
    return label_get(n->annotations, (str){key, (size_t)len});
}

/* ---- writes ---- */

bool sk_confirm(const sk *s, const char *prompt)
{
    char line[LINE_BYTES] = "";
    if (options_given(s->given, "confirm"))
        return true;
    printf("%s [y/N]: ", prompt);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        line[0] = '\0';
    str word = str_trim(str_of(line));
    bool yes = (word.len == 1 && strncasecmp(word.ptr, "y", 1) == 0) ||
               (word.len == 3 && strncasecmp(word.ptr, "yes", 3) == 0);
    if (!yes)
        puts("Aborted.");
    return yes;
}

static bool say_outcome(const char *what, const write_outcome *how)
{
    if (how->kind != WRITE_DONE)
        fail("%s: %s", what, how->message[0] ? how->message : write_outcome_text(how->kind));
    return how->kind == WRITE_DONE;
}

bool sk_write(sk *s, const kube_write *w, const char *what)
{
    write_outcome how;
    err error = {0};
    if (kube_write_one(s->session, w, &how, &error))
        return say_outcome(what, &how);
    fail("%s: %s", what, error.text);
    return false;
}

static bool same_notes(const sk_node *a, const sk_node *b)
{
    bool same = a->unschedulable == b->unschedulable && a->annotations.len == b->annotations.len;
    for (size_t i = 0; same && i < a->annotations.len; i++)
        same = str_eq(a->annotations.at[i].key, b->annotations.at[i].key) &&
               str_eq(a->annotations.at[i].value, b->annotations.at[i].value);
    return same;
}

/* Reads the node again. True: only others have changed it, such as its kubelet. */
static bool is_unchanged(sk *s, const sk_node *n, str *ret_version)
{
    kube_reply reply;
    sk_node now;
    err error = {0};
    str path = arena_printf(s->arena, NODES_PATH "/%.*s", STR_ARG(n->name));
    bool same = path.ptr && kube_get(s->session, path, s->arena, &reply, &error) &&
                reply.status < 400 && read_node(s, reply.body, &now) && same_notes(n, &now);
    *ret_version = same ? now.version : STR_EMPTY;
    return same;
}

bool sk_write_requested(sk *s, kube_write *w, const sk_node *n)
{
    write_outcome how = {.kind = WRITE_CONFLICT};
    err error = {0};
    w->version = n->version;
    for (int i = 0; i < REQUEST_TRIES && how.kind == WRITE_CONFLICT; i++) {
        if (i > 0 && !is_unchanged(s, n, &w->version))
            break;
        if (!kube_write_one(s->session, w, &how, &error)) {
            fail("%s: %s", n->name.ptr, error.text);
            return false;
        }
    }
    return how.kind == WRITE_CONFLICT || say_outcome(n->name.ptr, &how);
}

/* One try: reads the Skyhook and adds to its annotation, if nobody else changed it meanwhile. */
static bool request_once(sk *s, str of, sk_acts acts, write_outcome *ret, err *error)
{
    yyjson_val *json = sk_skyhook(s, of);
    if (!json)
        return err_set(error, "Skyhook \"%.*s\" cannot be read", STR_ARG(of));
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    scoped(buf_done) buf list = BUF(LIMIT_DOCUMENT_BYTES);
    scoped(buf_done) buf body = BUF(LIMIT_DOCUMENT_BYTES);
    str before = json_text_of(yyjson_obj_get(head, "annotations"), KEY_ACTS);
    if (!act_requests_open(&list, before, ACT_OF_SKYHOOK, error))
        return false;
    for (size_t i = 0; i < acts.len; i++)
        act_requests_put(&list, &acts.at[i]);
    if (!act_requests_close(&list, error))
        return false;
    buf_addz(&body, "{\"metadata\":{\"annotations\":{\"" KEY_ACTS "\":");
    buf_add_json(&body, buf_str(&list));
    buf_addz(&body, "}}}");
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR(SKYHOOKS_PATH),
                    .name = of,
                    .version = json_text_of(head, "resourceVersion"),
                    .body = buf_str(&body)};
    return !body.failed ? kube_write_one(s->session, &w, ret, error) : err_memory(error);
}

static bool request_some(sk *s, str of, sk_acts acts)
{
    write_outcome how = {.kind = WRITE_CONFLICT};
    err error = {0};
    for (int i = 0; i < REQUEST_TRIES && how.kind == WRITE_CONFLICT; i++)
        if (!request_once(s, of, acts, &how, &error))
            return fail("%s", error.text) == STATUS_DONE;
    if (how.kind == WRITE_DONE)
        return true;
    fail("Skyhook \"%.*s\": %s", STR_ARG(of), how.message);
    return false;
}

/* Many are asked for in pieces: an annotation holds no more than the server takes, and an operator
 * empties it in between. */
bool sk_request(sk *s, str of, sk_acts acts)
{
    for (size_t done = 0; done < acts.len;) {
        size_t count = acts.len - done < REQUEST_ACTS ? acts.len - done : REQUEST_ACTS;
        if (done > 0)
            sk_taken(s, of);
        if (!request_some(s, of, (sk_acts){acts.at + done, count}))
            return false;
        done += count;
    }
    return true;
}

bool sk_taken(sk *s, str of)
{
    for (int i = 0; i < TAKEN_LOOKS; i++) {
        yyjson_val *json = sk_skyhook(s, of);
        if (!json)
            return false;
        yyjson_val *notes = yyjson_obj_get(yyjson_obj_get(json, "metadata"), "annotations");
        if (!yyjson_obj_get(notes, KEY_ACTS))
            return true;
        usleep(TAKEN_PAUSE_US);
    }
    return false;
}

/* ---- Jobs ---- */

typedef struct running {
    sk *sk;
    sk_names *names;
} running;

static bool has_ended(yyjson_val *job)
{
    size_t index, count;
    yyjson_val *c;
    yyjson_val *conditions = yyjson_obj_get(yyjson_obj_get(job, "status"), "conditions");
    yyjson_arr_foreach(conditions, index, count, c)
    {
        str type = json_text_of(c, "type");
        if (str_eq(json_text_of(c, "status"), STR("True")) &&
            (str_eq(type, STR("Complete")) || str_eq(type, STR("Failed"))))
            return true;
    }
    return false;
}

static bool take_job(void *context, yyjson_val *job, err *error)
{
    running *r = context;
    yyjson_val *head = yyjson_obj_get(job, "metadata");
    str on = json_text_of(yyjson_obj_get(head, "annotations"), KEY_NODE);
    if (on.len == 0)
        on = json_text_of(yyjson_obj_get(head, "labels"), KEY_NODE);
    if (has_ended(job) || on.len == 0)
        return true;
    str kept = arena_str(r->sk->arena, on);
    return (kept.ptr && vec_push(r->names, kept)) || err_memory(error);
}

bool sk_running(sk *s, str of, sk_names *ret)
{
    running r = {s, ret};
    err error = {0};
    scoped(buf_done) buf path = BUF(PATH_BYTES);
    buf_addf(&path,
             "/apis/batch/v1/namespaces/%.*s/jobs?labelSelector=skyhook.nvidia.com%%2Fname%%3D",
             STR_ARG(kube_session_namespace(s->session)));
    label_value_put(&path, of);
    if (kube_list(s->session, buf_str(&path), take_job, &r, &error))
        return true;
    fail("%s", error.text);
    return false;
}

bool sk_names_have(const sk_names *names, str name)
{
    for (size_t i = 0; i < names->len; i++)
        if (str_eq(names->at[i], name))
            return true;
    return false;
}

/* ---- output ---- */

void sk_cell(sk *s, sk_table *t, const char *format, ...)
{
    char text[LIMIT_LOG_LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    str kept = arena_str(s->arena, str_of(text));
    if (!kept.ptr || !vec_push(&t->cells, kept))
        t->columns = 0; /* sk_print says so */
}

static void print_row(const sk_table *t, size_t row, const size_t *widths, bool dashes)
{
    for (size_t i = 0; i < t->columns; i++) {
        str cell = t->cells.at[row * t->columns + i];
        size_t width = output_width(cell);
        for (size_t k = 0; dashes && k < width; k++)
            putchar('-');
        if (!dashes)
            output_text(stdout, cell);
        if (i + 1 < t->columns)
            printf("%*s", (int)(widths[i] - width + 2), "");
    }
    putchar('\n');
}

exit_status sk_print(sk *s, sk_table *t)
{
    size_t *widths = ARENA_ARRAY(s->arena, t->columns + 1, size_t);
    if (t->columns == 0 || !widths)
        return fail("out of memory");
    for (size_t i = 0; i < t->cells.len; i++) {
        size_t width = output_width(t->cells.at[i]);
        if (width > widths[i % t->columns])
            widths[i % t->columns] = width;
    }
    for (size_t row = 0; row * t->columns < t->cells.len; row++) {
        print_row(t, row, widths, false);
        if (row == 0)
            print_row(t, 0, widths, true);
    }
    vec_done(&t->cells);
    return STATUS_DONE;
}

void sk_put_key(buf *out, bool *first, const char *key, str value)
{
    buf_addf(out, "%s\"%s\":", *first ? "{" : ",", key);
    *first = false;
    buf_add_json(out, value);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(yyjson_get_str(*(yyjson_val *const *)a), yyjson_get_str(*(yyjson_val *const *)b));
}

/* The same with its keys in order, as programs that read YAML have always had it. */
static bool put_sorted(sk *s, yyjson_val *value, buf *out)
{
    size_t i, count, len = 0;
    yyjson_val *key, *item;
    bool good = true, is_object = yyjson_is_obj(value);
    if (!yyjson_is_ctn(value)) {
        json_write(out, value);
        return true;
    }
    buf_addc(out, is_object ? '{' : '[');
    yyjson_arr_foreach(is_object ? NULL : value, i, count, item)
    {
        buf_addz(out, i > 0 ? "," : "");
        good = put_sorted(s, item, out) && good;
    }
    yyjson_val **keys = ARENA_ARRAY(s->arena, yyjson_obj_size(value) + 1, yyjson_val *);
    if (!keys)
        return false;
    yyjson_obj_foreach(value, i, count, key, item) keys[len++] = key;
    qsort(keys, len, sizeof keys[0], by_key);
    for (i = 0; i < len; i++) {
        buf_addz(out, i > 0 ? "," : "");
        json_write(out, keys[i]);
        buf_addc(out, ':');
        good = put_sorted(s, yyjson_obj_iter_get_val(keys[i]), out) && good;
    }
    buf_addc(out, is_object ? '}' : ']');
    return good;
}

/* NULL without memory. */
static yyjson_val *sorted(sk *s, yyjson_val *value)
{
    scoped(buf_done) buf text = BUF(LIMIT_TEXT_BYTES);
    bool good = value && put_sorted(s, value, &text) && !text.failed;
    return good ? json_parse_within(s->arena, buf_str(&text), LIMIT_TEXT_BYTES, NULL) : NULL;
}

exit_status sk_print_value(sk *s, buf *json)
{
    scoped(buf_done) buf out = BUF(LIMIT_TEXT_BYTES);
    yyjson_val *value =
        json->failed ? NULL : json_parse_within(s->arena, buf_str(json), LIMIT_TEXT_BYTES, NULL);
    if (s->form == SK_YAML)
        value = sorted(s, value);
    if (!value)
        return fail("out of memory");
    if (s->form == SK_YAML) {
        yaml_write(&out, value);
    } else {
        json_pretty(&out, value);
        buf_addc(&out, '\n');
    }
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}
