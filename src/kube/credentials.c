/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/moment.h"
#include "model/document.h"

/* New ones are asked for this long before the old ones expire. */
#define EXPIRY_MARGIN_MS 30000

struct credentials {
    const kube_access *access;
    buf token, certificate, key;
    int64_t fresh_until_ms; /* 0: to be got */
    int64_t hold_until_ms;  /* of what a plugin handed out */
    int64_t retry_ms;       /* when a plugin that failed is run again */
    err failure;            /* how it failed */
};

credentials *credentials_new(const kube_access *access)
{
    credentials *c = mem_zalloc(sizeof *c);
    if (c)
        *c = (credentials){.access = access,
                           .token = BUF(CREDENTIALS_BYTES_MAX),
                           .certificate = BUF(CREDENTIALS_BYTES_MAX),
                           .key = BUF(CREDENTIALS_BYTES_MAX)};
    return c;
}

credentials *credentials_free(credentials *c)
{
    if (!c)
        return NULL;
    buf_done(&c->token);
    buf_done(&c->certificate);
    buf_done(&c->key);
    return mem_free(c);
}

str credentials_certificate(const credentials *c)
{
    return buf_str(&c->certificate);
}

str credentials_key(const credentials *c)
{
    return buf_str(&c->key);
}

void credentials_refused(credentials *c)
{
    c->fresh_until_ms = 0;
    c->hold_until_ms = 0;
}

/* ---- a file ---- */

static bool read_all(int fd, buf *out, int64_t until_ms)
{
    char bytes[4096];
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left = until_ms - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (left <= 0 || poll(&ready, 1, (int)left) == 0)
            return false;
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 && !out->failed;
        buf_add(out, (str){bytes, (size_t)n});
        if (out->failed)
            return false;
    }
}

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool read_token_file(credentials *c, err *error)
{
    const char *path = c->access->token_file.ptr;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(error, "%s: %s", path, strerror(errno));
    buf text = BUF(CREDENTIALS_BYTES_MAX);
    bool good =
        read_all(fd, &text, clock_ms() + 1000) || err_set(error, "%s: cannot be read", path);
    close(fd);
    str token = str_trim(buf_str(&text));
    if (good && token.len == 0)
        good = err_set(error, "%s: it is empty", path);
    if (good) {
        buf_clear(&c->token);
        buf_add(&c->token, token);
    }
    buf_done(&text);
    return good && (!c->token.failed || err_memory(error));
}

/* ---- a program ---- */

static void put_member(buf *out, const char *key, str value)
{
    if (value.len == 0)
        return;
    buf_addf(out, ",\"%s\":", key);
    buf_add_json(out, value);
}

/* The authorities' certificates, as base64: those of a file are read for it. */
static bool put_authorities(buf *out, const kube_access *access)
{
    buf file = BUF(CREDENTIALS_BYTES_MAX), text = BUF(2 * CREDENTIALS_BYTES_MAX);
    str pem = access->ca_data;
    bool good = true;
    if (pem.len == 0 && access->ca_file.len > 0) {
        int fd = open(access->ca_file.ptr, O_RDONLY | O_CLOEXEC);
        good = fd >= 0 && read_all(fd, &file, clock_ms() + 1000);
        pem = buf_str(&file);
        if (fd >= 0)
            close(fd);
    }
    base64_encode(pem, &text);
    put_member(out, "certificate-authority-data", buf_str(&text));
    good = good && !text.failed;
    buf_done(&file);
    buf_done(&text);
    return good;
}

/* What a plugin is told: whether it may ask people and, if it wants to know, about the cluster. */
static bool put_info(buf *out, const kube_access *access, bool interactive)
{
    const kube_exec *exec = &access->exec;
    bool good = true;
    buf_addz(out, "{\"apiVersion\":");
    buf_add_json(out, exec->api_version);
    buf_addf(out, ",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":%s",
             interactive ? "true" : "false");
    if (exec->told_cluster) {
        buf_addz(out, ",\"cluster\":{\"server\":");
        buf_add_json(out, access->server);
        put_member(out, "tls-server-name", access->tls_server_name);
        put_member(out, "proxy-url", access->proxy_url);
        buf_addz(out, access->insecure ? ",\"insecure-skip-tls-verify\":true" : "");
        good = put_authorities(out, access);
        buf_addz(out, ",\"config\":");
        buf_add(out, exec->config.len > 0 ? exec->config : STR("null"));
        buf_addc(out, '}');
    }
    buf_addz(out, "}}");
    return good && !out->failed;
}

typedef struct plugin {
    const kube_exec *exec;
    const char **arguments; /* with room for all of them */
    const char *info;
    bool interactive;
    int out;
} plugin;

static void become_plugin(const plugin *p)
{
    const kube_exec *exec = p->exec;
    p->arguments[0] = exec->command.ptr;
    for (size_t i = 0; i < exec->argument_count; i++)
        p->arguments[i + 1] = exec->arguments[i].ptr;
    p->arguments[exec->argument_count + 1] = NULL;
    for (size_t i = 0; i < exec->variable_count; i++)
        setenv(exec->variables[i].name.ptr, exec->variables[i].value.ptr, 1);
    setenv("KUBERNETES_EXEC_INFO", p->info, 1);
    /* What is typed or piped in belongs to the command, which may ask for it afterwards. */
    int nothing = p->interactive ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    dup2(p->out, STDOUT_FILENO);
    execvp(p->arguments[0], (char *const *)(uintptr_t)p->arguments);
    fprintf(stderr, "%s: %s\n", p->arguments[0], strerror(errno));
    _exit(127);
}

static bool run_plugin(const kube_access *access, buf *out, err *error)
{
    int ends[2];
    const kube_exec *exec = &access->exec;
    scoped(buf_done) buf info = BUF(4 * CREDENTIALS_BYTES_MAX);
    plugin p = {.exec = exec, .interactive = !exec->never_asks && isatty(STDIN_FILENO)};
    if (!put_info(&info, access, p.interactive))
        return err_set(error, "%s: it cannot be told of the cluster", exec->command.ptr);
    p.info = info.ptr;
    p.arguments = mem_alloc((exec->argument_count + 2) * sizeof *p.arguments);
    if (!p.arguments)
        return err_memory(error);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        mem_free(p.arguments);
        return err_set(error, "%s: %s", exec->command.ptr, strerror(errno));
    }
    p.out = ends[1];
    pid_t child = fork();
    if (child == 0)
        become_plugin(&p);
    mem_free(p.arguments);
    close(ends[1]);
    bool good = child > 0 && read_all(ends[0], out, clock_ms() + CREDENTIALS_EXEC_SECONDS * 1000);
    close(ends[0]);
    if (child > 0 && !good)
        kill(child, SIGKILL);
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (good && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    return err_set(error, "%s: it handed out no credentials", exec->command.ptr);
}

/* How long they hold from now on; INT64_MAX: they do not say. */
static int64_t holds_ms(str expires)
{
    moment until;
    struct timespec now;
    if (expires.len == 0 || !moment_parse(expires, &until, NULL))
        return INT64_MAX;
    clock_gettime(CLOCK_REALTIME, &now);
    return (until.seconds - (int64_t)now.tv_sec) * 1000;
}

static bool take_plugin(credentials *c, str json, int64_t now_ms, err *error)
{
    arena *a = arena_new(0);
    err problem_of_json;
    yyjson_val *root = a ? json_parse(a, json, &problem_of_json) : NULL;
    yyjson_val *status = yyjson_obj_get(root, "status");
    str token = json_text_of(status, "token"), key = json_text_of(status, "clientKeyData");
    str certificate = json_text_of(status, "clientCertificateData");
    bool good = token.len > 0 || (certificate.len > 0 && key.len > 0);
    if (good) {
        buf_clear(&c->token);
        buf_clear(&c->certificate);
        buf_clear(&c->key);
        buf_add(&c->token, token);
        buf_add(&c->certificate, certificate);
        buf_add(&c->key, key);
        int64_t holds = holds_ms(json_text_of(status, "expirationTimestamp"));
        c->hold_until_ms = holds == INT64_MAX ? INT64_MAX : now_ms + holds;
        c->fresh_until_ms = holds == INT64_MAX ? INT64_MAX : c->hold_until_ms - EXPIRY_MARGIN_MS;
    }
    arena_free(a);
    if (c->token.failed || c->certificate.failed || c->key.failed)
        return err_memory(error);
    return good || err_set(error, "%s: its answer has neither a token nor a certificate",
                           c->access->exec.command.ptr);
}

static bool ask_plugin(credentials *c, int64_t now_ms, err *error)
{
    if (now_ms >= c->retry_ms) {
        buf out = BUF(CREDENTIALS_BYTES_MAX);
        bool good = run_plugin(c->access, &out, &c->failure) &&
                    take_plugin(c, buf_str(&out), now_ms, &c->failure);
        buf_done(&out);
        if (good)
            return true;
        c->retry_ms = now_ms + CREDENTIALS_RETRY_MS;
    }
    if (now_ms < c->hold_until_ms)
        return true;
    return err_set(error, "%s", c->failure.text);
}

bool credentials_token(credentials *c, int64_t now_ms, str *ret, err *error)
{
    const kube_access *access = c->access;
    if (now_ms >= c->fresh_until_ms) {
        if (access->token_file.len > 0) {
            /* A file that is being replaced is missing for a moment: the old token still holds. */
            if (!read_token_file(c, error) && c->token.len == 0)
                return false;
            c->fresh_until_ms = now_ms + CREDENTIALS_FILE_MS;
        } else if (access->exec.command.len > 0) {
            if (!ask_plugin(c, now_ms, error))
                return false;
        } else {
            buf_clear(&c->token);
            buf_add(&c->token, access->token);
            c->fresh_until_ms = INT64_MAX;
        }
    }
    *ret = buf_str(&c->token);
    return !c->token.failed || err_memory(error);
}
