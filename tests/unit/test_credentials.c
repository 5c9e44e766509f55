/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown to the API server: a token file that is replaced, a program that hands out tokens.
 */
#include "support/check.h"

#include <pty.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/moment.h"
#include "kube/credentials.h"

typedef struct room {
    char folder[64];
    arena *arena;
    kube_access access;
    credentials *credentials;
    int64_t now_ms;
    err error;
} room;

static int enter(void **state)
{
    static room r;
    r = (room){.folder = "/tmp/drover-credentials-XXXXXX", .arena = arena_new(0), .now_ms = 1000};
    *state = &r;
    return r.arena && mkdtemp(r.folder) ? 0 : -1;
}

static int leave(void **state)
{
    room *r = *state;
    static const char *const names[] = {"token", "plugin", "calls", "answer", "seen"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        remove(arena_printf(r->arena, "%s/%s", r->folder, names[i]).ptr);
    credentials_free(r->credentials);
    arena_free(r->arena);
    return rmdir(r->folder);
}

static str put(room *r, const char *name, const char *text)
{
    str path = arena_printf(r->arena, "%s/%s", r->folder, name);
    FILE *f = fopen(path.ptr, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static str get(room *r, const char *name)
{
    char text[4096];
    FILE *f = fopen(arena_printf(r->arena, "%s/%s", r->folder, name).ptr, "r");
    assert_non_null(f);
    size_t len = fread(text, 1, sizeof text, f);
    fclose(f);
    return arena_str(r->arena, (str){text, len});
}

static void begin(room *r)
{
    r->credentials = credentials_new(&r->access);
    assert_non_null(r->credentials);
}

static void check_token(room *r, const char *want)
{
    str token = STR_EMPTY;
    check_msg(credentials_token(r->credentials, r->now_ms, &token, &r->error), "%s", r->error.text);
    check_text(token, want);
}

static void check_refused(room *r, const char *want)
{
    str token;
    assert_false(credentials_token(r->credentials, r->now_ms, &token, &r->error));
    check_err_has(r->error, want);
}

static void test_fixed(void **state)
{
    room *r = *state;
    begin(r);
    check_token(r, "");
    credentials_free(r->credentials);
    r->access.token = STR("secret");
    begin(r);
    check_token(r, "secret");
    credentials_refused(r->credentials);
    check_token(r, "secret");
    check_text(credentials_certificate(r->credentials), "");
}

static void test_file(void **state)
{
    room *r = *state;
    r->access.token = STR("not this one");
    r->access.token_file = put(r, "token", "one\n");
    begin(r);
    check_token(r, "one");
    put(r, "token", "two");
    r->now_ms += CREDENTIALS_FILE_MS - 1;
    check_token(r, "one");
    r->now_ms += 1;
    check_token(r, "two");
    /* Refused: read again at once. */
    put(r, "token", "three");
    credentials_refused(r->credentials);
    check_token(r, "three");
    /* While it is being replaced the old one holds. */
    remove(r->access.token_file.ptr);
    credentials_refused(r->credentials);
    check_token(r, "three");
    put(r, "token", " \n");
    credentials_refused(r->credentials);
    check_token(r, "three");
}

static void test_file_that_is_missing(void **state)
{
    room *r = *state;
    r->access.token_file = arena_printf(r->arena, "%s/token", r->folder);
    begin(r);
    check_refused(r, "/token: No such file or directory");
    put(r, "token", "");
    check_refused(r, "/token: it is empty");
    put(r, "token", "one");
    check_token(r, "one");
}

/* A program that counts its calls and answers with what a file says. */
static void make_plugin(room *r)
{
    r->access.exec.api_version = STR("client.authentication.k8s.io/v1");
    r->access.exec.command = put(r, "plugin",
                                 "#!/bin/sh\n"
                                 "cd \"$(dirname \"$0\")\" || exit 1\n"
                                 "echo call >> calls\n"
                                 "echo \"$1|$2|$REGION|$KUBERNETES_EXEC_INFO\" > seen\n"
                                 "sed \"s/NUMBER/$(wc -l < calls)/\" answer\n");
    chmod(r->access.exec.command.ptr, 0700);
    static str arguments[] = {{"get", 3}, {"a b", 3}};
    static kube_variable variable = {{"REGION", 6}, {"north", 5}};
    r->access.exec.arguments = arguments;
    r->access.exec.argument_count = 2;
    r->access.exec.variables = &variable;
    r->access.exec.variable_count = 1;
}

static size_t calls(room *r)
{
    return get(r, "calls").len / (sizeof "call\n" - 1);
}

/* An answer that holds for so long from now on. */
static void answer_for(room *r, int64_t seconds)
{
    char until[MOMENT_TEXT_BYTES];
    size_t len = moment_format((moment){time(NULL) + seconds, 0}, until);
    str text = arena_printf(r->arena,
                            "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
                            "\"ExecCredential\",\"status\":{\"token\":\"token-NUMBER\","
                            "\"expirationTimestamp\":\"%.*s\"}}",
                            (int)len, until);
    put(r, "answer", text.ptr);
}

static void test_plugin(void **state)
{
    room *r = *state;
    make_plugin(r);
    put(r, "answer", "{\"status\":{\"token\":\"token-NUMBER\"}}");
    begin(r);
    check_token(r, "token-1");
    check_text(get(r, "seen"),
               "get|a b|north|{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
               "\"ExecCredential\",\"spec\":{\"interactive\":false}}\n");
    /* It holds until it is refused. */
    r->now_ms += INT64_C(1000) * 86400 * 365;
    check_token(r, "token-1");
    assert_int_equal(calls(r), 1);
    credentials_refused(r->credentials);
    check_token(r, "token-2");
    check_token(r, "token-2");
    assert_int_equal(calls(r), 2);
}

/* As kubectl tells it: what the kubeconfig says of the cluster, authorities of a file read. */
static void test_plugin_that_is_told_of_the_cluster(void **state)
{
    room *r = *state;
    make_plugin(r);
    put(r, "answer", "{\"status\":{\"token\":\"token-NUMBER\"}}");
    r->access.server = STR("https://api.example.com:6443");
    r->access.tls_server_name = STR("kubernetes");
    r->access.ca_file = put(r, "token", "PEM");
    r->access.exec.told_cluster = true;
    r->access.exec.config = STR("{\"audience\":\"x\"}");
    begin(r);
    check_token(r, "token-1");
    check_text(get(r, "seen"),
               "get|a b|north|{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
               "\"ExecCredential\",\"spec\":{\"interactive\":false,\"cluster\":{\"server\":"
               "\"https://api.example.com:6443\",\"tls-server-name\":\"kubernetes\","
               "\"certificate-authority-data\":\"UEVN\",\"config\":{\"audience\":\"x\"}}}}\n");
    r->access.ca_data = STR("other");
    r->access.insecure = true;
    r->access.tls_server_name = r->access.exec.config = STR_EMPTY;
    r->access.proxy_url = STR("http://proxy:3128");
    credentials_refused(r->credentials);
    check_token(r, "token-2");
    check_text(get(r, "seen"),
               "get|a b|north|{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
               "\"ExecCredential\",\"spec\":{\"interactive\":false,\"cluster\":{\"server\":"
               "\"https://api.example.com:6443\",\"proxy-url\":\"http://proxy:3128\","
               "\"insecure-skip-tls-verify\":true,\"certificate-authority-data\":\"b3RoZXI=\","
               "\"config\":null}}}\n");
    r->access.ca_data = STR_EMPTY;
    r->access.ca_file = STR("/nonexistent");
    credentials_refused(r->credentials);
    check_refused(r, "/plugin: it cannot be told of the cluster");
}

/* On a terminal a plugin may ask; what is piped into the command is not the plugin's. */
static void test_plugin_that_asks(void **state)
{
    room *r = *state;
    make_plugin(r);
    put(r, "answer", "{\"status\":{\"token\":\"token-NUMBER\"}}");
    chmod(put(r, "plugin",
              "#!/bin/sh\n"
              "cd \"$(dirname \"$0\")\" || exit 1\n"
              "read -r line; echo \"$line|$KUBERNETES_EXEC_INFO\" > seen\n"
              "cat answer\n")
              .ptr,
          0700);
    int kept = dup(STDIN_FILENO), ends[2], ours, theirs;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "yes\n", 4), 4);
    dup2(ends[0], STDIN_FILENO);
    begin(r);
    check_token(r, "token-NUMBER");
    assert_int_equal(str_find(get(r, "seen"), STR("|{")), 0);
    char left[8];
    assert_int_equal(read(STDIN_FILENO, left, sizeof left), 4);
    assert_int_equal(openpty(&ours, &theirs, NULL, NULL, NULL), 0);
    dup2(theirs, STDIN_FILENO);
    assert_int_equal(write(ours, "typed\n", 6), 6);
    credentials_refused(r->credentials);
    check_token(r, "token-NUMBER");
    assert_int_equal(str_find(get(r, "seen"), STR("typed|{")), 0);
    assert_int_not_equal(str_find(get(r, "seen"), STR("\"interactive\":true")), SIZE_MAX);
    r->access.exec.never_asks = true;
    credentials_refused(r->credentials);
    check_token(r, "token-NUMBER");
    assert_int_not_equal(str_find(get(r, "seen"), STR("\"interactive\":false")), SIZE_MAX);
    dup2(kept, STDIN_FILENO);
    int all[] = {kept, ends[0], ends[1], ours, theirs};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        close(all[i]);
}

static void test_plugin_whose_token_expires(void **state)
{
    room *r = *state;
    make_plugin(r);
    answer_for(r, 3600);
    begin(r);
    check_token(r, "token-1");
    r->now_ms += INT64_C(1000) * 3500;
    check_token(r, "token-1");
    r->now_ms += INT64_C(1000) * 100; /* a little before its end */
    check_token(r, "token-2");
    assert_int_equal(calls(r), 2);
}

static void test_plugin_with_a_certificate(void **state)
{
    room *r = *state;
    make_plugin(r);
    put(r, "answer", "{\"status\":{\"clientCertificateData\":\"PEM\",\"clientKeyData\":\"KEY\"}}");
    begin(r);
    check_token(r, "");
    check_text(credentials_certificate(r->credentials), "PEM");
    check_text(credentials_key(r->credentials), "KEY");
}

/* A plugin that fails is not run again for every request. */
static void test_plugin_that_fails(void **state)
{
    room *r = *state;
    make_plugin(r);
    static const char *const answers[] = {"", "nonsense", "{\"status\":{}}",
                                          "{\"status\":{\"clientCertificateData\":\"x\"}}"};
    begin(r);
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        put(r, "answer", answers[i]);
        check_refused(r, "/plugin: its answer has neither a token nor a certificate");
        for (int k = 0; k < 5; k++)
            check_refused(r, "/plugin: its answer has neither a token nor a certificate");
        assert_int_equal(calls(r), i + 1);
        r->now_ms += CREDENTIALS_RETRY_MS;
    }
    answer_for(r, 3600);
    check_token(r, "token-5");
    /* What it handed out before is shown as long as it holds. */
    remove(arena_printf(r->arena, "%s/answer", r->folder).ptr);
    r->now_ms += INT64_C(1000) * (3600 - 20);
    check_token(r, "token-5");
    r->now_ms += INT64_C(1000) * 21;
    check_refused(r, "/plugin: it handed out no credentials");
    answer_for(r, 3600);
    r->now_ms += CREDENTIALS_RETRY_MS;
    check_token(r, "token-8");
    credentials_free(r->credentials);
    r->access.exec.command = STR("/nonexistent/plugin");
    begin(r);
    check_refused(r, "/nonexistent/plugin: it handed out no credentials");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fixed, enter, leave),
        cmocka_unit_test_setup_teardown(test_file, enter, leave),
        cmocka_unit_test_setup_teardown(test_file_that_is_missing, enter, leave),
        cmocka_unit_test_setup_teardown(test_plugin, enter, leave),
        cmocka_unit_test_setup_teardown(test_plugin_that_is_told_of_the_cluster, enter, leave),
        cmocka_unit_test_setup_teardown(test_plugin_that_asks, enter, leave),
        cmocka_unit_test_setup_teardown(test_plugin_whose_token_expires, enter, leave),
        cmocka_unit_test_setup_teardown(test_plugin_with_a_certificate, enter, leave),
        cmocka_unit_test_setup_teardown(test_plugin_that_fails, enter, leave),
    };
    if (!freopen("/dev/null", "r", stdin)) /* also where somebody looks on */
        return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
