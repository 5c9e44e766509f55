/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kubeconfig.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"

typedef struct room {
    char folder[64];
    arena *arena;
    kube_access access;
    err error;
} room;

static int enter(void **state)
{
    static room r;
    r = (room){.folder = "/tmp/drover-kubeconfig-XXXXXX", .arena = arena_new(0)};
    *state = &r;
    return r.arena && mkdtemp(r.folder) ? 0 : -1;
}

static int leave(void **state)
{
    room *r = *state;
    static const char *const names[] = {"a",    "b", "token", "namespace", "ca.crt", ".kube/config",
                                        ".kube"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", r->folder, names[i]);
        remove(path);
    }
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

static bool get(room *r, kube_where where)
{
    r->error.text[0] = '\0';
    return kubeconfig_read(&where, r->arena, &r->access, &r->error);
}

#define CLUSTER_ONE                                                                                \
    "clusters:\n"                                                                                  \
    "- name: one\n"                                                                                \
    "  cluster:\n"                                                                                \
    "    server: https://one:6443/\n"                                                              \
    "    certificate-authority: ca.pem\n"
#define CONTEXTS                                                                                   \
    "contexts:\n"                                                                                  \
    "- {name: first, context: {cluster: one, user: token, namespace: skyhook}}\n"                  \
    "- {name: second, context: {cluster: two, user: certificate}}\n"                               \
    "- {name: third, context: {cluster: one, user: plugin}}\n"
#define USERS                                                                                      \
    "users:\n"                                                                                     \
    "- {name: token, user: {token: secret}}\n"                                                     \
    "- {name: certificate, user: {client-certificate-data: Zm9v, client-key: sub/key.pem,\n"       \
    "    client-certificate: ignored.pem}}\n"                                                      \
    "- name: plugin\n"                                                                             \
    "  user:\n"                                                                                    \
    "    exec:\n"                                                                                  \
    "      {apiVersion: client.authentication.k8s.io/v1, command: ./login,\n"                      \
    "       args: [a, 'b c'], env: [{name: REGION, value: x}]}\n"

static void test_context(void **state)
{
    room *r = *state;
    str a = put(r, "a", "current-context: first\n" CLUSTER_ONE CONTEXTS USERS);
    assert_true(get(r, (kube_where){.files = a}));
    check_text(r->access.context, "first");
    check_text(r->access.server, "https://one:6443");
    check_text(r->access.namespace, "skyhook");
    check_text(r->access.token, "secret");
    str ca = arena_printf(r->arena, "%s/ca.pem", r->folder);
    check_text(r->access.ca_file, ca.ptr);
    assert_false(r->access.insecure);
    check_text(r->access.exec.command, "");
}

/* Of two entries with one name the first counts; a file that is missing is passed over. */
static void test_several_files(void **state)
{
    room *r = *state;
    str a = put(r, "a", CONTEXTS USERS);
    str b = put(r, "b",
                "current-context: second\n"
                "clusters:\n"
                "- {name: two, cluster: {server: 'https://two', insecure-skip-tls-verify: true,\n"
                "    tls-server-name: other, proxy-url: 'http://proxy', "
                "certificate-authority-data: Zm9vYmFy}}\n"
                "users:\n- {name: certificate, user: {token: not-this-one}}\n");
    str both = arena_printf(r->arena, "%s:%s/none:%s", a.ptr, r->folder, b.ptr);
    assert_true(get(r, (kube_where){.files = both}));
    check_text(r->access.context, "second");
    check_text(r->access.server, "https://two");
    check_text(r->access.ca_data, "foobar");
    check_text(r->access.tls_server_name, "other");
    check_text(r->access.proxy_url, "http://proxy");
    assert_true(r->access.insecure);
    check_text(r->access.token, "");
    check_text(r->access.certificate_data, "foo");
    check_text(r->access.certificate_file, "");
    str key = arena_printf(r->arena, "%s/sub/key.pem", r->folder);
    check_text(r->access.key_file, key.ptr);
}

static void test_exec(void **state)
{
    room *r = *state;
    str a = put(r, "a", CLUSTER_ONE CONTEXTS USERS);
    assert_true(get(r, (kube_where){.files = a, .context = STR("third")}));
    const kube_exec *exec = &r->access.exec;
    str command = arena_printf(r->arena, "%s/./login", r->folder);
    check_text(exec->command, command.ptr);
    check_text(exec->api_version, "client.authentication.k8s.io/v1");
    assert_int_equal(exec->argument_count, 2);
    check_text(exec->arguments[1], "b c");
    assert_int_equal(exec->variable_count, 1);
    check_text(exec->variables[0].name, "REGION");
    check_text(exec->variables[0].value, "x");
    assert_false(exec->told_cluster || exec->never_asks);
    check_text(exec->config, "");
}

/* What a plugin wants to know, and is not to do. */
static void test_exec_and_its_cluster(void **state)
{
    room *r = *state;
    str a = put(r, "a",
                "current-context: it\n"
                "contexts: [{name: it, context: {cluster: c, user: u}}]\n"
                "users:\n"
                "- name: u\n"
                "  user:\n"
                "    exec: {command: login, provideClusterInfo: true, interactiveMode: Never}\n"
                "clusters:\n"
                "- name: c\n"
                "  cluster:\n"
                "    server: https://one\n"
                "    extensions:\n"
                "    - {name: other, extension: {no: 1}}\n"
                "    - {name: client.authentication.k8s.io/exec, extension: {audience: x}}\n");
    assert_true(get(r, (kube_where){.files = a}));
    check_text(r->access.exec.command, "login");
    assert_true(r->access.exec.told_cluster);
    assert_true(r->access.exec.never_asks);
    check_text(r->access.exec.config, "{\"audience\":\"x\"}");
}

static void test_impersonation(void **state)
{
    room *r = *state;
    str a = put(r, "a",
                "current-context: it\n"
                "contexts: [{name: it, context: {cluster: c, user: u}}]\n"
                "clusters: [{name: c, cluster: {server: 'https://one'}}]\n"
                "users: [{name: u, user: {as: somebody, as-uid: '17', as-groups: [a, b]}}]\n");
    assert_true(get(r, (kube_where){.files = a}));
    check_text(r->access.impersonate, "somebody");
    check_text(r->access.impersonate_uid, "17");
    assert_int_equal(r->access.impersonate_group_count, 2);
    check_text(r->access.impersonate_groups[1], "b");
}

static void test_home(void **state)
{
    room *r = *state;
    str folder = arena_printf(r->arena, "%s/.kube", r->folder);
    mkdir(folder.ptr, 0700);
    put(r, ".kube/config", "current-context: first\n" CLUSTER_ONE CONTEXTS USERS);
    assert_true(get(r, (kube_where){.home = str_of(r->folder)}));
    check_text(r->access.token, "secret");
}

static void test_inside_a_pod(void **state)
{
    room *r = *state;
    put(r, "token", "secret\n");
    put(r, "namespace", "skyhook\n");
    kube_where where = {.home = str_of(r->folder),
                        .in_cluster = true,
                        .host = STR("fd00::1"),
                        .port = STR("443"),
                        .account = str_of(r->folder)};
    assert_true(get(r, where));
    check_text(r->access.server, "https://[fd00::1]:443");
    check_text(r->access.namespace, "skyhook");
    str token = arena_printf(r->arena, "%s/token", r->folder);
    check_text(r->access.token_file, token.ptr);
    check_text(r->access.token, "");
    /* A kubeconfig goes first, and without either it says so. */
    str a = put(r, "a", "current-context: first\n" CLUSTER_ONE CONTEXTS USERS);
    where.files = a;
    assert_true(get(r, where));
    check_text(r->access.server, "https://one:6443");
    assert_false(get(r, (kube_where){.home = str_of(r->folder)}));
    check_err(r->error, "no kubeconfig: --kubeconfig, $KUBECONFIG and ~/.kube/config name none "
                        "that exists");
}

static void test_refused(void **state)
{
    room *r = *state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {CLUSTER_ONE, "no context is named, and there is no current-context"},
        {"current-context: x\n", "there is no context \"x\""},
        {"current-context: second\n" CLUSTER_ONE CONTEXTS USERS, "there is no cluster \"two\""},
        {"current-context: first\n" CLUSTER_ONE CONTEXTS, "there is no user \"token\""},
        {"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
         "clusters: [{name: k, cluster: {server: 'ftp://x'}}]\n",
         "cluster \"k\": server: found \"ftp://x\", allowed: https://HOST:PORT"},
        {"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
         "clusters: [{name: k, cluster: {server: 'https://x', certificate-authority-data: '!'}}]\n",
         "cluster \"k\": certificate-authority-data: allowed: base64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str a = put(r, "a", rows[i].text);
        assert_false(get(r, (kube_where){.files = a}));
        check_err(r->error, rows[i].message);
    }
    str a = put(r, "a", "a: [\n");
    assert_false(get(r, (kube_where){.files = a}));
    assert_true(str_starts(str_of(r->error.text), a));
    str none = arena_printf(r->arena, "%s/none", r->folder);
    assert_false(get(r, (kube_where){.files = none}));
    assert_true(str_ends(str_of(r->error.text), STR("No such file or directory")));
}

static bool read_it(void *file)
{
    arena *own = arena_new(0);
    kube_access access;
    err error;
    bool good = own && kubeconfig_read(&(kube_where){.files = *(str *)file}, own, &access, &error);
    arena_free(own);
    return good;
}

static void test_each_allocation_fails(void **state)
{
    room *r = *state;
    str a = put(r, "a",
                "current-context: third\n" CLUSTER_ONE
                "    extensions: [{name: client.authentication.k8s.io/exec, extension: {a: 1}}]\n"
                CONTEXTS USERS "    as-groups: [g]\n");
    check_each_allocation_fails(read_it, &a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_context, enter, leave),
        cmocka_unit_test_setup_teardown(test_several_files, enter, leave),
        cmocka_unit_test_setup_teardown(test_exec, enter, leave),
        cmocka_unit_test_setup_teardown(test_exec_and_its_cluster, enter, leave),
        cmocka_unit_test_setup_teardown(test_impersonation, enter, leave),
        cmocka_unit_test_setup_teardown(test_each_allocation_fails, enter, leave),
        cmocka_unit_test_setup_teardown(test_home, enter, leave),
        cmocka_unit_test_setup_teardown(test_inside_a_pod, enter, leave),
        cmocka_unit_test_setup_teardown(test_refused, enter, leave),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
