/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out writes that it reads and prints how they ended, for tests.
 *
 *     kube-write KUBECONFIG
 *
 * A line of JSON each, with the members of kube_write and "id"; "bar": true withdraws the permit
 * for it and all after it, "want" is a text that an object has in its annotation "want" if it is
 * ours. Answers are lines, too: {"id","outcome","status","waitMs","budget","message","version"}.
 * Ends with the input, once all writes have ended. */
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>

#include "base/mem.h"
#include "kube/recorder.h"

#define LINE_BYTES_MAX (1u << 20)

typedef struct program {
    uv_loop_t *loop;
    connection *connection;
    writer *writer;
    recorder *recorder;
    uv_pipe_t input;
    buf line;
    bool barred, ended;
    char bytes[65536];
} program;

typedef struct one {
    program *program;
    int64_t id;
    char want[256];
} one;

static str text_of(yyjson_val *object, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, key));
    return text ? str_of(text) : STR_EMPTY;
}

static void maybe_stop(program *p)
{
    if (!p->ended || writer_waiting(p->writer) > 0)
        return;
    p->writer = writer_stop(p->writer);
    p->recorder = recorder_stop(p->recorder);
    p->connection = connection_close(p->connection);
}

static void done(void *context, const write_outcome *outcome, yyjson_val *object)
{
    one *w = context;
    program *p = w->program;
    buf out = BUF(LINE_BYTES_MAX);
    buf_addf(&out, "{\"id\":%lld,\"outcome\":\"%s\",\"status\":%d,\"waitMs\":%lld,\"budget\":",
             (long long)w->id, write_outcome_text(outcome->kind), outcome->status,
             (long long)outcome->wait_ms);
    buf_add_json(&out, str_of(outcome->budget));
    buf_addz(&out, ",\"message\":");
    buf_add_json(&out, str_of(outcome->message));
    buf_addz(&out, ",\"version\":");
    buf_add_json(&out, text_of(yyjson_obj_get(object, "metadata"), "resourceVersion"));
    printf("%.*s}\n", STR_ARG(buf_str(&out)));
    fflush(stdout);
    buf_done(&out);
    mem_free(w);
    maybe_stop(p);
}

static bool ours(void *context, yyjson_val *object)
{
    const one *w = context;
    yyjson_val *annotations = yyjson_obj_get(yyjson_obj_get(object, "metadata"), "annotations");
    return w->want[0] != '\0' && str_eq(text_of(annotations, "want"), str_of(w->want));
}

static bool permitted(void *context)
{
    const program *p = context;
    return !p->barred;
}

static write_verb verb_of(str name)
{
    static const char *const names[] = {
#define X(verb, method, type) #verb,
        WRITE_VERBS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(name, str_of(names[i])))
            return (write_verb)i;
    return WRITE_READ;
}

static bool take_event(program *p, yyjson_val *root)
{
    if (!str_eq(text_of(root, "verb"), STR("EVENT")))
        return false;
    recorder_tell(p->recorder, &(kube_event){.api_version = STR("v1"),
                                             .kind = STR("Node"),
                                             .name = text_of(root, "name"),
                                             .uid = text_of(root, "uid"),
                                             .reason = STR("Test"),
                                             .message = text_of(root, "body")});
    return true;
}

static void take(program *p, str text)
{
    yyjson_doc *parsed = yyjson_read(text.ptr, text.len, 0);
    yyjson_val *root = yyjson_doc_get_root(parsed);
    if (take_event(p, root)) {
        yyjson_doc_free(parsed);
        return;
    }
    one *w = mem_zalloc(sizeof *w);
    err error = {.text = "no memory"};
    kube_write write = {.verb = verb_of(text_of(root, "verb")),
                        .collection = text_of(root, "collection"),
                        .name = text_of(root, "name"),
                        .subresource = text_of(root, "subresource"),
                        .body = text_of(root, "body"),
                        .version = text_of(root, "version"),
                        .uid = text_of(root, "uid"),
                        .manager = text_of(root, "manager"),
                        .force = yyjson_get_bool(yyjson_obj_get(root, "force")),
                        .anyhow = yyjson_get_bool(yyjson_obj_get(root, "anyhow")),
                        .has_grace = yyjson_obj_get(root, "grace"),
                        .grace_s = yyjson_get_int(yyjson_obj_get(root, "grace"))};
    if (yyjson_get_bool(yyjson_obj_get(root, "bar")))
        p->barred = true;
    bool good = w;
    if (good) {
        *w = (one){.program = p, .id = yyjson_get_int(yyjson_obj_get(root, "id"))};
        snprintf(w->want, sizeof w->want, "%.*s", STR_ARG(text_of(root, "want")));
        good = writer_send(p->writer, &write, (write_handler){w, done, ours}, &error);
    }
    if (!good) {
        printf("{\"id\":%lld,\"outcome\":\"invalid\",\"message\":\"%s\"}\n",
               (long long)yyjson_get_int(yyjson_obj_get(root, "id")), error.text);
        fflush(stdout);
        mem_free(w);
    }
    yyjson_doc_free(parsed);
}

static void room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    (void)wanted;
    program *p = handle->data;
    *ret = uv_buf_init(p->bytes, sizeof p->bytes);
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    program *p = stream->data;
    if (count < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        p->ended = true;
        maybe_stop(p);
        return;
    }
    buf_add(&p->line, (str){bytes->base, (size_t)count});
    str rest = buf_str(&p->line);
    while (str_find(rest, STR("\n")) != SIZE_MAX) {
        str line = str_cut(&rest, '\n');
        take(p, line);
    }
    memmove(p->line.ptr, rest.ptr, rest.len);
    p->line.len = rest.len;
}

int main(int count, char **words)
{
    static program p;
    err error = {0};
    kube_access access;
    arena *a = arena_new(0);
    signal(SIGPIPE, SIG_IGN);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    kube_where where = {.files = str_of(count > 1 ? words[1] : "")};
    bool good = a && kubeconfig_read(&where, a, &access, &error);
    p.loop = uv_default_loop();
    p.line = BUF(LINE_BYTES_MAX);
    p.connection = good ? connection_open(p.loop, &access, "kube-write", &error) : NULL;
    if (!p.connection) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    writer_options options = {.seed = 1, .permit = {permitted, &p}};
    p.writer = writer_start(p.loop, p.connection, options);
    p.recorder = recorder_start(p.loop, p.writer, STR("kube-write"), STR("test"));
    uv_pipe_init(p.loop, &p.input, 0);
    p.input.data = &p;
    uv_pipe_open(&p.input, 0);
    uv_read_start((uv_stream_t *)&p.input, room, on_input);
    uv_run(p.loop, UV_RUN_DEFAULT);
    int left = uv_loop_close(p.loop);
    buf_done(&p.line);
    arena_free(a);
    curl_global_cleanup();
    return left != 0 || mem_live() != 0;
}
