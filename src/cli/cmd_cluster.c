/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/show.h"
#include "model/document.h"
#include "operator/cluster_objects.h"

#define DEFAULT_NAMESPACE "fleet-default"
#define AGENT_ACCOUNT_NAME "agent"

/* All objects of a cluster, in the order in which they can be created; false behind the last. */
static bool put_object(buf *out, size_t number, const cluster_registration *r, err *error)
{
    error->text[0] = 0;
    if (number == 0)
        return cluster_namespace_put(out, &r->cluster, error);
    if (number == 1)
        cluster_put(out, r);
    else if (number == 2)
        content_role_put(out);
    else if (number - 3 < AGENT_OBJECT_COUNT)
        return agent_object_put(out, (agent_object)(number - 3), r, error);
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

/* Labels as Kubernetes takes them. */
static exit_status read_labels(const options *given, arena *a, label_set *ret)
{
    VEC(label) all = {0};
    exit_status status = STATUS_DONE;
    size_t at = 0;
    err error = {0};
    for (str text; status == STATUS_DONE && options_next(given, "label", &at, &text);) {
        str value = text, key = str_cut(&value, '=');
        label one = {key, value.ptr ? value : STR_EMPTY};
        if (!value.ptr || !label_key_check(key, &error) || !label_value_check(one.value, &error))
            status = usage_error(&cmd_cluster, "--label %s: found no KEY=VALUE%s%s",
                                 str_shown(text).text, error.text[0] ? ": " : "", error.text);
        else if (!vec_push(&all, one))
            status = fail("out of memory");
    }
    label *kept = ARENA_ARRAY(a, all.len + 1, label);
    if (kept && all.len > 0)
        memcpy(kept, all.at, all.len * sizeof *kept);
    if (status == STATUS_DONE && !kept)
        status = fail("out of memory");
    else if (status == STATUS_DONE && !label_set_sort(kept, all.len, ret, &error))
        status = usage_error(&cmd_cluster, "--label: %s", error.text);
    vec_done(&all);
    return status;
}

/* Letters, digits and "-", as in the names of most objects. */
static bool is_name(str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool inner = i > 0 && i + 1 < text.len;
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !(inner && c == '-'))
            return false;
    }
    return text.len > 0 && text.len <= LIMIT_LABEL_VALUE_BYTES;
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
    if (!is_name(r.cluster.name) || !is_name(r.cluster.namespace_))
        return usage_error(&cmd_cluster,
                           "found \"%s\" in \"%s\", allowed names of lower case letters, digits "
                           "and \"-\", at most %d",
                           str_shown(r.cluster.name).text, str_shown(r.cluster.namespace_).text,
                           LIMIT_LABEL_VALUE_BYTES);
    exit_status status = read_labels(given, a, &r.labels);
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
    OPTIONS_END,
};

const verb cmd_cluster = {
    .name = "cluster",
    .summary = "print what makes a cluster one of a Fleet hub's",
    .operands = "register NAME",
    .operands_min = 2,
    .operands_max = 2,
    .about =
        "The Cluster, the namespace of its deployments, and an account for its agent that may read "
        "those deployments and what belongs to them, report their status and its own, and nothing "
        "else. Apply it to the hub with kubectl apply --server-side -f -; the account's token is "
        "then in the Secret \"" AGENT_ACCOUNT_NAME "\" of that namespace.",
    .options = options_of_cluster,
    .run = run,
};
