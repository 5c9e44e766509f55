/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kubeconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/mem.h"
#include "model/document.h"

#define ACCOUNT_FOLDER STR("/var/run/secrets/kubernetes.io/serviceaccount")
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

/* One file, with the folder that its paths begin in. */
typedef struct config_file {
    yyjson_val *root;
    str path;
    str folder;
} config_file;

typedef struct reading {
    arena *arena;
    err *error;
    document_set *documents;
    config_file files[KUBECONFIG_FILES_MAX];
    size_t count;
} reading;

/* ---- files ---- */

static bool read_file(str path, arena *a, str *ret, err *error)
{
    struct stat about;
    int fd = open(path.ptr, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fstat(fd, &about) == 0;
    int cause = errno;
    if (good && (!S_ISREG(about.st_mode) || about.st_size > KUBECONFIG_BYTES_MAX))
        good = err_set(error, "%s: allowed: a file of at most %u bytes", path.ptr,
                       KUBECONFIG_BYTES_MAX);
    else if (!good)
        err_set(error, "%s: %s", path.ptr, strerror(cause));
    size_t size = good ? (size_t)about.st_size : 0, len = 0;
    char *bytes = good ? arena_alloc(a, size + 1) : NULL;
    if (good && !bytes)
        good = err_memory(error);
    while (good && len < size) {
        ssize_t n = read(fd, bytes + len, size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    if (good)
        *ret = (str){bytes, len};
    return good;
}

static str folder_of(str path)
{
    size_t slash = path.len;
    while (slash > 0 && path.ptr[slash - 1] != '/')
        slash--;
    return slash > 0 ? str_part(path, 0, slash) : STR_EMPTY;
}

static void take_root(void *context, const document *d)
{
    config_file *f = context;
    if (!f->root)
        f->root = d->root;
}

static str first_message(const problems *found)
{
    return problems_count(found) > 0 ? problems_at(found, 0)->message : STR("it cannot be read");
}

static bool add_file(reading *r, str path)
{
    str bytes;
    config_file f = {.path = arena_str(r->arena, path)};
    if (!f.path.ptr)
        return err_memory(r->error);
    if (r->count == KUBECONFIG_FILES_MAX)
        return err_set(r->error, "%s: more than %d files", f.path.ptr, KUBECONFIG_FILES_MAX);
    if (!read_file(f.path, r->arena, &bytes, r->error))
        return false;
    f.folder = folder_of(f.path);
    problems *found = problems_new();
    bool good = found || err_memory(r->error);
    document_source source = {.file = f.path, .bytes = bytes, .each = take_root, .context = &f};
    if (good && !documents_read_from(r->documents, &source, found))
        good = err_set(r->error, "%s: %.*s", f.path.ptr, STR_ARG(first_message(found)));
    problems_free(found);
    if (good && f.root)
        r->files[r->count++] = f;
    return good;
}

static bool add_files(reading *r, const kube_where *where)
{
    str rest = where->files;
    bool several = str_find(rest, STR(":")) != SIZE_MAX;
    if (rest.len == 0) {
        str path = arena_printf(r->arena, "%.*s/.kube/config", STR_ARG(where->home));
        if (!path.ptr)
            return err_memory(r->error);
        return access(path.ptr, F_OK) != 0 || add_file(r, path);
    }
    while (rest.ptr) {
        str path = arena_str(r->arena, str_cut(&rest, ':'));
        if (!path.ptr)
            return err_memory(r->error);
        /* Of a list, files that are missing are passed over, as kubectl does. */
        if (path.len == 0 || (several && access(path.ptr, F_OK) != 0))
            continue;
        if (!add_file(r, path))
            return false;
    }
    return true;
}

/* ---- values ---- */

/* clusters, users and contexts are lists of {name, cluster|user|context}. */
static yyjson_val *find(const reading *r, const char *list_key, str name, const config_file **ret)
{
    for (size_t i = 0; i < r->count; i++) {
        yyjson_val *list = yyjson_obj_get(r->files[i].root, list_key), *entry;
        size_t at, most;
        yyjson_arr_foreach(list, at, most, entry)
        {
            if (!str_eq(json_text_of(entry, "name"), name))
                continue;
            *ret = &r->files[i];
            /* The key is that of the list without its "s". */
            return yyjson_obj_getn(entry, list_key, strlen(list_key) - 1);
        }
    }
    return NULL;
}

static bool keep(reading *r, yyjson_val *object, const char *key, str *ret)
{
    *ret = arena_str(r->arena, json_text_of(object, key));
    return ret->ptr || err_memory(r->error);
}

static bool keep_path(reading *r, const config_file *f, yyjson_val *object, const char *key,
                      str *ret)
{
    str path = json_text_of(object, key);
    bool plain = path.len == 0 || path.ptr[0] == '/';
    *ret =
        arena_printf(r->arena, "%.*s%.*s", STR_ARG(plain ? STR_EMPTY : f->folder), STR_ARG(path));
    return ret->ptr || err_memory(r->error);
}

static bool keep_data(reading *r, yyjson_val *object, const char *key, str *ret)
{
    buf bytes = BUF(KUBECONFIG_BYTES_MAX);
    bool good = base64_decode(str_trim(json_text_of(object, key)), &bytes) ||
                err_set(r->error, "%s: allowed: base64", key);
    if (good) {
        *ret = arena_str(r->arena, buf_str(&bytes));
        good = ret->ptr || err_memory(r->error);
    }
    buf_done(&bytes);
    return good;
}

static bool keep_list(reading *r, yyjson_val *object, const char *key, str **ret, size_t *ret_len)
{
    yyjson_val *list = yyjson_obj_get(object, key), *entry;
    size_t i, most;
    *ret = ARENA_ARRAY(r->arena, yyjson_arr_size(list) + 1, str);
    *ret_len = yyjson_arr_size(list);
    bool good = *ret != NULL;
    yyjson_arr_foreach(list, i, most, entry)
    {
        str text = yyjson_is_str(entry) ? str_of(yyjson_get_str(entry)) : STR_EMPTY;
        if (good)
            (*ret)[i] = arena_str(r->arena, text);
        good = good && (*ret)[i].ptr;
    }
    return good || err_memory(r->error);
}

/* ---- parts ---- */

/* What a cluster's entry has for exec plugins, as JSON. */
static bool take_config(reading *r, yyjson_val *cluster, str *ret)
{
    yyjson_val *list = yyjson_obj_get(cluster, "extensions"), *entry;
    size_t i, most;
    buf text = BUF(KUBECONFIG_BYTES_MAX);
    yyjson_arr_foreach(list, i, most, entry)
    {
        if (text.len == 0 && str_eq(json_text_of(entry, "name"), STR(EXEC_EXTENSION)))
            json_write(&text, yyjson_obj_get(entry, "extension"));
    }
    *ret = text.failed ? (str){0} : arena_str(r->arena, buf_str(&text));
    buf_done(&text);
    return ret->ptr || err_memory(r->error);
}

static bool take_cluster(reading *r, str name, kube_access *to)
{
    const config_file *f = NULL;
    yyjson_val *cluster = find(r, "clusters", name, &f);
    if (!cluster)
        return err_set(r->error, "there is no cluster \"%s\"", str_shown(name).text);
    to->insecure = yyjson_get_bool(yyjson_obj_get(cluster, "insecure-skip-tls-verify"));
    if (!keep(r, cluster, "server", &to->server) ||
        !keep_data(r, cluster, "certificate-authority-data", &to->ca_data) ||
        !keep_path(r, f, cluster, "certificate-authority", &to->ca_file) ||
        !keep(r, cluster, "tls-server-name", &to->tls_server_name) ||
        !keep(r, cluster, "proxy-url", &to->proxy_url) ||
        !take_config(r, cluster, &to->exec.config))
        return err_wrap(r->error, "cluster \"%s\"", str_shown(name).text);
    while (to->server.len > 0 && to->server.ptr[to->server.len - 1] == '/')
        to->server = arena_str(r->arena, str_part(to->server, 0, to->server.len - 1));
    if (!to->server.ptr)
        return err_memory(r->error);
    if (!str_starts(to->server, STR("https://")) && !str_starts(to->server, STR("http://")))
        return err_set(r->error, "cluster \"%s\": server: found \"%s\", allowed: https://HOST:PORT",
                       str_shown(name).text, str_shown(to->server).text);
    if (to->ca_data.len > 0)
        to->ca_file = STR_EMPTY;
    return true;
}

static bool take_exec(reading *r, const config_file *f, yyjson_val *exec, kube_exec *to)
{
    yyjson_val *list = yyjson_obj_get(exec, "env"), *entry;
    size_t i, most;
    if (!exec)
        return true;
    if (!keep(r, exec, "apiVersion", &to->api_version))
        return false;
    /* A command with a slash is relative to the file, one without is looked for in $PATH. */
    bool path = str_find(json_text_of(exec, "command"), STR("/")) != SIZE_MAX;
    if (!(path ? keep_path(r, f, exec, "command", &to->command)
               : keep(r, exec, "command", &to->command)))
        return false;
    if (to->command.len == 0)
        return err_set(r->error, "exec: command: it is missing");
    to->told_cluster = yyjson_get_bool(yyjson_obj_get(exec, "provideClusterInfo"));
    to->never_asks = str_eq(json_text_of(exec, "interactiveMode"), STR("Never"));
    if (!keep_list(r, exec, "args", &to->arguments, &to->argument_count))
        return false;
    to->variables = ARENA_ARRAY(r->arena, yyjson_arr_size(list) + 1, kube_variable);
    if (!to->variables)
        return err_memory(r->error);
    yyjson_arr_foreach(list, i, most, entry)
    {
        kube_variable *v = &to->variables[to->variable_count++];
        if (!keep(r, entry, "name", &v->name) || !keep(r, entry, "value", &v->value))
            return false;
    }
    return true;
}

static bool take_user(reading *r, str name, kube_access *to)
{
    const config_file *f = NULL;
    yyjson_val *user = find(r, "users", name, &f);
    if (!user && name.len > 0)
        return err_set(r->error, "there is no user \"%s\"", str_shown(name).text);
    if (!keep_data(r, user, "client-certificate-data", &to->certificate_data) ||
        !keep_path(r, f, user, "client-certificate", &to->certificate_file) ||
        !keep_data(r, user, "client-key-data", &to->key_data) ||
        !keep_path(r, f, user, "client-key", &to->key_file) ||
        !keep(r, user, "token", &to->token) ||
        !keep_path(r, f, user, "tokenFile", &to->token_file) ||
        !keep(r, user, "username", &to->user) || !keep(r, user, "password", &to->password) ||
        !keep(r, user, "as", &to->impersonate) || !keep(r, user, "as-uid", &to->impersonate_uid) ||
        !keep_list(r, user, "as-groups", &to->impersonate_groups, &to->impersonate_group_count) ||
        !take_exec(r, f, yyjson_obj_get(user, "exec"), &to->exec))
        return err_wrap(r->error, "user \"%s\"", str_shown(name).text);
    if (to->certificate_data.len > 0)
        to->certificate_file = STR_EMPTY;
    if (to->key_data.len > 0)
        to->key_file = STR_EMPTY;
    return true;
}

static bool take_context(reading *r, const kube_where *where, kube_access *to)
{
    const config_file *f = NULL;
    str wanted = where->context;
    for (size_t i = 0; wanted.len == 0 && i < r->count; i++)
        wanted = json_text_of(r->files[i].root, "current-context");
    if (wanted.len == 0)
        return err_set(r->error, "no context is named, and there is no current-context");
    yyjson_val *context = find(r, "contexts", wanted, &f);
    if (!context)
        return err_set(r->error, "there is no context \"%s\"", str_shown(wanted).text);
    to->context = arena_str(r->arena, wanted);
    str cluster = where->cluster.len > 0 ? where->cluster : json_text_of(context, "cluster");
    str user = where->user.len > 0 ? where->user : json_text_of(context, "user");
    return (to->context.ptr || err_memory(r->error)) &&
           keep(r, context, "namespace", &to->namespace) && take_cluster(r, cluster, to) &&
           take_user(r, user, to);
}

/* ---- inside a pod ---- */

static bool take_account(reading *r, const kube_where *where, kube_access *to)
{
    str folder = where->account.len > 0 ? where->account : ACCOUNT_FOLDER;
    bool six = str_find(where->host, STR(":")) != SIZE_MAX;
    str space = arena_printf(r->arena, "%.*s/namespace", STR_ARG(folder));
    to->context = STR("in-cluster");
    to->server = arena_printf(r->arena, "https://%s%.*s%s:%.*s", six ? "[" : "",
                              STR_ARG(where->host), six ? "]" : "", STR_ARG(where->port));
    to->ca_file = arena_printf(r->arena, "%.*s/ca.crt", STR_ARG(folder));
    to->token_file = arena_printf(r->arena, "%.*s/token", STR_ARG(folder));
    if (!to->server.ptr || !to->ca_file.ptr || !to->token_file.ptr || !space.ptr)
        return err_memory(r->error);
    str text = STR_EMPTY;
    err ignored;
    if (read_file(space, r->arena, &text, &ignored))
        to->namespace = str_trim(text);
    return access(to->token_file.ptr, R_OK) == 0 ||
           err_set(r->error, "%s: the service account's token cannot be read", to->token_file.ptr);
}

/* ---- the whole ---- */

kube_where kube_where_of_environment(str explicit_file, str context)
{
    const char *files = getenv("KUBECONFIG"), *home = getenv("HOME");
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    return (kube_where){.files = explicit_file.len > 0 ? explicit_file : str_of(files ? files : ""),
                        .home = str_of(home ? home : ""),
                        .context = context,
                        .in_cluster = explicit_file.len == 0,
                        .host = str_of(host ? host : ""),
                        .port = str_of(port ? port : "443")};
}

static void fill(kube_access *to)
{
    str *texts[] = {&to->context,          &to->server,
                    &to->namespace,        &to->ca_data,
                    &to->ca_file,          &to->tls_server_name,
                    &to->proxy_url,        &to->certificate_data,
                    &to->certificate_file, &to->key_data,
                    &to->key_file,         &to->token,
                    &to->token_file,       &to->user,
                    &to->password,         &to->impersonate,
                    &to->impersonate_uid,  &to->exec.api_version,
                    &to->exec.command,     &to->exec.config};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!texts[i]->ptr)
            *texts[i] = STR_EMPTY;
}

bool kubeconfig_read(const kube_where *where, arena *a, kube_access *ret, err *error)
{
    kube_access found = {0};
    fill(&found);
    reading *r = mem_zalloc(sizeof *r);
    if (!r)
        return err_memory(error);
    *r = (reading){.arena = a, .error = error, .documents = document_set_new()};
    bool good = r->documents ? add_files(r, where) : err_memory(error);
    if (good && r->count > 0)
        good = take_context(r, where, &found);
    else if (good && where->in_cluster && where->host.len > 0)
        good = take_account(r, where, &found);
    else if (good && where->server.len > 0)
        found.server = arena_str(a, where->server);
    else if (good)
        good = err_set(error, "no kubeconfig: --kubeconfig, $KUBECONFIG and ~/.kube/config name "
                              "none that exists");
    document_set_free(r->documents);
    mem_free(r);
    if (good && !found.server.ptr)
        good = err_memory(error);
    if (good)
        *ret = found;
    return good;
}
