/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/kube_apply.h"
#include "cli/object_options.h"
#include "cli/output.h"
#include "cli/show.h"
#include "engine/fleet_names.h"
#include "model/document.h"
#include "operator/cluster_objects.h"

#define DEFAULT_NAMESPACE "fleet-default"
#define AGENT_ACCOUNT_NAME "agent"
#define HTTPS STR("https://")
#define TOKEN_TRIES 150 /* until the hub has made a token for the account */
#define TOKEN_PAUSE_US 200000

/* All objects of a cluster, in the order in which they can be created. */
enum { OBJECT_NAMESPACE, OBJECT_CLUSTER, OBJECT_CONTENT_ROLE, OBJECT_OF_AGENT };

/* False behind the last. */
static bool put_object(buf *out, size_t number, const cluster_registration *r, err *error)
{
    error->text[0] = 0;
    if (number == OBJECT_NAMESPACE)
        return cluster_namespace_put(out, &r->cluster, error);
    if (number == OBJECT_CLUSTER)
        cluster_put(out, r);
    else if (number == OBJECT_CONTENT_ROLE)
        content_role_put(out);
    else if (number - OBJECT_OF_AGENT < AGENT_OBJECT_COUNT)
        return agent_object_put(out, (agent_object)(number - OBJECT_OF_AGENT), r, error);
    else
        return false;
    return true;
}

static bool add_document(buf *out, const buf *text, bool json, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    yyjson_val *value = a && !text->failed ? json_parse(a, buf_str(text), error) : NULL;
    if (!value)
        return err_memory(error);
    if (json) {
        json_pretty(out, value);
        buf_addc(out, '\n');
        return true;
    }
    buf_addz(out, out->len > 0 ? "---\n" : "");
    yaml_write(out, value);
    return true;
}

static bool add_all(buf *out, const cluster_registration *r, bool json, err *error)
{
    scoped(buf_done) buf list = BUF(LIMIT_DOCUMENT_BYTES);
    buf_addz(&list, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
    for (size_t i = 0;; i++) {
        scoped(buf_done) buf one = BUF(LIMIT_DOCUMENT_BYTES);
        if (!put_object(&one, i, r, error))
            break;
        buf_addz(&list, i > 0 ? "," : "");
        buf_add(&list, buf_str(&one));
        if (!json && !add_document(out, &one, false, error))
            break;
    }
    buf_addz(&list, "]}");
    return error->text[0] == 0 && (!json || add_document(out, &list, true, error));
}

/* ---- on the hub ---- */

static str text_in(yyjson_val *json, const char *key)
{
    yyjson_val *value = yyjson_obj_get(json, key);
    return yyjson_is_str(value) ? (str){yyjson_get_str(value), yyjson_get_len(value)} : STR_EMPTY;
}

/* *ret_last: there is no such object, nor any behind it. */
static exit_status apply_one(kube_session *s, const cluster_registration *r, size_t number,
                             kube_apply_how how, bool *ret_last)
{
    err error = {0};
    scoped(arena_cleanup) arena *a = arena_new(0);
    scoped(buf_done) buf one = BUF(LIMIT_DOCUMENT_BYTES);
    kube_document d;
    if (!a)
        return fail("out of memory");
    *ret_last = !put_object(&one, number, r, &error);
    if (*ret_last)
        return error.text[0] == 0 ? STATUS_DONE : fail("%s", error.text);
    yyjson_val *json = json_parse(a, buf_str(&one), &error);
    kube_kind of = {text_in(json, "apiVersion"), text_in(json, "kind")};
    if (!json || !kube_document_of(a, of, json, &d, &error))
        return fail("%s", error.text);
    exit_status status = kube_apply(s, &d, how, &error);
    if (status != STATUS_DONE)
        fail("%.*s: %s", STR_ARG(d.title), error.text);
    else if (!how.tried)
        printf("%.*s applied\n", STR_ARG(d.word));
    return status;
}

/* Whether the hub takes the Cluster is asked before anything is written. The others cannot be
 * asked for: they are in a namespace that is not there yet. */
static exit_status apply_all(kube_session *s, const cluster_registration *r, bool force)
{
    kube_apply_how how = {.force = force, .tried = true};
    bool last = false;
    exit_status status = apply_one(s, r, OBJECT_CLUSTER, how, &last);
    how.tried = false;
    for (size_t i = 0; status == STATUS_DONE && !last; i++)
        status = apply_one(s, r, i, how, &last);
    return status;
}

/* ---- credentials ---- */

/* The account's Secret, as soon as the hub has filled it; NULL with an error. */
static yyjson_val *read_token(kube_session *s, arena *a, str home, err *error)
{
    str path = arena_printf(a, "/api/v1/namespaces/%.*s/secrets/" AGENT_TOKEN_NAME, STR_ARG(home));
    kube_reply reply = {0};
    if (!path.ptr) {
        err_memory(error);
        return NULL;
    }
    for (int i = 0; i < TOKEN_TRIES; i++) {
        if (!kube_get(s, path, a, &reply, error))
            return NULL;
        yyjson_val *data = yyjson_obj_get(reply.body, "data");
        if (reply.status < 400 && text_in(data, "token").len > 0)
            return data;
        usleep(TOKEN_PAUSE_US);
    }
    err_set(error, "Secret %.*s/" AGENT_TOKEN_NAME ": %s", STR_ARG(home),
            reply.status >= 400 ? reply.message : "the hub has put no token into it");
    return NULL;
}

/* A kubeconfig, in which the namespace of the deployments is the default. */
static void put_credentials(buf *out, str server, str home, yyjson_val *data)
{
    scoped(buf_done) buf token = BUF(LIMIT_DOCUMENT_BYTES);
    out->failed |= !base64_decode(text_in(data, "token"), &token);
    buf_addz(out, "apiVersion: v1\nkind: Config\ncurrent-context: hub\n"
                  "clusters:\n- name: hub\n  cluster:\n    server: ");
    buf_add_json(out, server);
    if (text_in(data, "ca.crt").len > 0) {
        buf_addz(out, "\n    certificate-authority-data: ");
        buf_add_json(out, text_in(data, "ca.crt"));
    }
    buf_addz(out, "\nusers:\n- name: agent\n  user:\n    token: ");
    buf_add_json(out, buf_str(&token));
    buf_addz(out, "\ncontexts:\n- name: hub\n  context:\n    cluster: hub\n    user: agent\n"
                  "    namespace: ");
    buf_add_json(out, home);
    buf_addc(out, '\n');
    out->failed |= token.failed;
}

/* For nobody else to read; a file that is there is not written over. */
static exit_status write_file(str path, const buf *text)
{
    scoped(buf_done) buf name = BUF(LIMIT_PATH_BYTES);
    buf_add(&name, path);
    buf_addc(&name, '\0');
    int fd = name.failed ? -1 : open(name.ptr, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail("%s: %s", str_shown(path).text, strerror(errno));
    bool good = write(fd, text->ptr, text->len) == (ssize_t)text->len;
    good = close(fd) == 0 && good;
    return good ? STATUS_DONE : fail("%s: it cannot be written", str_shown(path).text);
}

static exit_status fetch_credentials(kube_session *s, const options *given,
                                     const cluster_registration *r)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    err error = {0};
    str file = options_text(given, "credentials", "");
    str home =
        a ? cluster_namespace_name(a, r->cluster.namespace_, r->cluster.name) : (str){NULL, 0};
    if (!home.ptr)
        return fail("out of memory");
    yyjson_val *data = read_token(s, a, home, &error);
    if (!data)
        return fail("%s", error.text);
    str server = kube_session_server(s);
    put_credentials(&text, options_given(given, "hub") ? options_text(given, "hub", "") : server,
                    home, data);
    return text.failed ? fail("out of memory") : write_file(file, &text);
}

static exit_status act_on_hub(const options *given, const cluster_registration *r)
{
    str file = options_text(given, "credentials", "");
    scoped(buf_done) buf path = BUF(LIMIT_PATH_BYTES);
    buf_add(&path, file);
    buf_addc(&path, '\0');
    if (file.len > 0 && !path.failed && access(path.ptr, F_OK) == 0)
        return fail("%s: there is a file already", str_shown(file).text);
    kube_session *s = kube_apply_open(given);
    if (!s)
        return STATUS_UNREACHABLE;
    exit_status status = apply_all(s, r, options_given(given, "force"));
    if (status == STATUS_DONE && options_given(given, "credentials"))
        status = fetch_credentials(s, given, r);
    kube_session_close(s);
    return status;
}

static exit_status check_options(const options *given)
{
    static const char *const of_apply[] = {"credentials", "hub", "kubeconfig", "context", "force"};
    for (size_t i = 0; i < sizeof of_apply / sizeof of_apply[0]; i++)
        if (options_given(given, of_apply[i]) && !options_given(given, "apply"))
            return usage_error(&cmd_cluster, "--%s makes sense only with --apply", of_apply[i]);
    if (options_given(given, "hub") && !options_given(given, "credentials"))
        return usage_error(&cmd_cluster, "--hub makes sense only with --credentials");
    str hub = options_text(given, "hub", "");
    if (options_given(given, "hub") && (!str_starts(hub, HTTPS) || hub.len == HTTPS.len))
        return usage_error(&cmd_cluster, "--hub: found \"%s\", allowed https://HOST:PORT",
                           str_shown(hub).text);
    return STATUS_DONE;
}

/* Fleet keeps some labels to itself: whoever asks for one hears that it is not given. */
static void tell_withheld(label_set labels)
{
    for (size_t i = 0; i < labels.len; i++)
        if (!cluster_label_granted(labels.at[i].key))
            fprintf(stderr, "drover: warning: --label %s: it is Fleet's own, and not given\n",
                    str_shown(labels.at[i].key).text);
}

static exit_status run(const options *given)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    scoped(buf_done) buf out = BUF(LIMIT_TEXT_BYTES);
    err error = {0};
    str act = given->operands.at[0];
    cluster_registration r = {
        .cluster = {options_text(given, "namespace", DEFAULT_NAMESPACE), given->operands.at[1]},
        .client_id = options_text(given, "client-id", ""),
        .account = STR(AGENT_ACCOUNT_NAME)};
    if (!a)
        return fail("out of memory");
    if (!str_eq(act, STR("register")))
        return usage_error(&cmd_cluster, "found \"%s\", allowed register", str_shown(act).text);
    if (!is_object_name(r.cluster.name) || !is_object_name(r.cluster.namespace_))
        return usage_error(&cmd_cluster,
                           "found \"%s\" in \"%s\", allowed names of lower case letters, digits "
                           "and \"-\", at most %d",
                           str_shown(r.cluster.name).text, str_shown(r.cluster.namespace_).text,
                           LIMIT_LABEL_VALUE_BYTES);
    exit_status status = check_options(given);
    if (status == STATUS_DONE)
        status = options_labels(&cmd_cluster, given, a, &r.labels);
    if (status == STATUS_DONE)
        tell_withheld(r.labels);
    if (status == STATUS_DONE && options_given(given, "apply"))
        return act_on_hub(given, &r);
    if (status != STATUS_DONE)
        return status;
    bool json = str_eq(options_text(given, "output", "yaml"), STR("json"));
    if (!add_all(&out, &r, json, &error))
        return fail("%s", error.text);
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}

static const option options_of_cluster[] = {
    {.name = "namespace",
     .letter = 'n',
     .argument = "NAMESPACE",
     .help = "where the Cluster belongs; " DEFAULT_NAMESPACE " unless told otherwise"},
    {.name = "label",
     .letter = 'l',
     .argument = "KEY=VALUE",
     .repeatable = true,
     .help = "a label of the Cluster"},
    {.name = "client-id", .argument = "ID", .help = "what its agent calls itself"},
    OPTION_OUTPUT("yaml|json"),
    {.name = "apply", .help = "write it to the hub instead of printing it"},
    {.name = "credentials",
     .argument = "FILE",
     .help = "with --apply: a new file, a kubeconfig by which the agent reaches the hub"},
    {.name = "hub",
     .argument = "URL",
     .help = "https://HOST:PORT by which the agent reaches the hub, if not by what --kubeconfig "
             "says"},
    OPTION_KUBECONFIG,
    OPTION_CONTEXT,
    OPTION_FORCE,
    OPTIONS_END,
};

const verb cmd_cluster = {
    .name = "cluster",
    .summary = "print or apply what makes a cluster one of a Fleet hub's",
    .operands = "register NAME",
    .operands_min = 2,
    .operands_max = 2,
    .about =
        "The Cluster, the namespace of its deployments, and an account for its agent that may read "
        "those deployments and what belongs to them, report their status and its own, and nothing "
        "else. It is printed, or written to the hub with --apply; the account's token is then in "
        "the Secret " AGENT_TOKEN_NAME " of that namespace, and --credentials writes it into "
        "a kubeconfig for drover cluster-agent --hub-kubeconfig or for Fleet's own agent.",
    .options = options_of_cluster,
    .run = run,
};
