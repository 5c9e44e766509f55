/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cluster_objects.h"

#include "base/mem.h"
#include "engine/fleet_names.h"
#include "model/object.h"
#include "operator/bundle_json.h"

#define API_RBAC "rbac.authorization.k8s.io/v1"
#define GROUP_RBAC "rbac.authorization.k8s.io"
#define GROUP_FLEET "fleet.cattle.io"

static void head(buf *out, const char *api, const char *kind, str namespace_, str name)
{
    buf_addc(out, '{');
    json_text(out, "apiVersion", str_of(api));
    json_text(out, "kind", str_of(kind));
    json_open(out, "metadata");
    json_text(out, "name", name);
    json_text_if(out, "namespace", namespace_);
}

bool cluster_namespace_put(buf *out, const cluster_identity *c, err *error)
{
    arena *a scoped(arena_cleanup) = arena_new(0);
    str name = a ? cluster_namespace_name(a, c->namespace_, c->name) : (str){NULL, 0};
    const label labels[] = {{STR(LABEL_MANAGED), STR("true")}};
    const label annotations[] = {{STR(ANNOTATION_CLUSTER), c->name},
                                 {STR(ANNOTATION_CLUSTER_NAMESPACE), c->namespace_}};
    if (!name.ptr)
        return err_memory(error);
    head(out, "v1", "Namespace", STR_EMPTY, name);
    json_labels(out, "labels", (label_set){labels, 1});
    json_labels(out, "annotations", (label_set){annotations, 2});
    json_close(out);
    json_close(out);
    return !out->failed || err_memory(error);
}

bool cluster_label_granted(str key)
{
    return str_eq(key, STR(FLEET_PREFIX "created-by-agent-pod")) ||
           (!str_starts(key, STR(FLEET_PREFIX)) && !str_starts(key, STR("management.cattle.io/")));
}

void cluster_put(buf *out, const cluster_registration *r)
{
    head(out, API_FLEET, "Cluster", r->cluster.namespace_, r->cluster.name);
    size_t given = 0;
    for (size_t i = 0; i < r->labels.len; i++) {
        if (!cluster_label_granted(r->labels.at[i].key))
            continue;
        if (given++ == 0)
            json_open(out, "labels");
        json_key_of(out, r->labels.at[i].key);
        go_text(out, r->labels.at[i].value);
    }
    if (given > 0)
        json_close(out);
    json_close(out);
    json_open(out, "spec");
    json_text_if(out, "clientID", r->client_id);
    json_close(out);
    json_close(out);
}

/* ---- the agent's rights ---- */

static void put_words(buf *out, const char *name, const char *words)
{
    str rest = str_of(words);
    json_key(out, name);
    buf_addc(out, '[');
    while (rest.ptr) {
        json_next_item(out);
        go_text(out, str_cut(&rest, ' '));
    }
    buf_addc(out, ']');
}

/* One rule; name is the only object it is for, or empty. */
static void put_rule(buf *out, const char *group, const char *resources, const char *verbs,
                     str name)
{
    json_next_item(out);
    buf_addc(out, '{');
    put_words(out, "verbs", verbs);
    put_words(out, "apiGroups", group);
    put_words(out, "resources", resources);
    if (name.len > 0) {
        json_key(out, "resourceNames");
        buf_addc(out, '[');
        go_text(out, name);
        buf_addc(out, ']');
    }
    json_close(out);
}

static void open_rules(buf *out)
{
    json_close(out);
    json_key(out, "rules");
    buf_addc(out, '[');
}

static void close_rules(buf *out)
{
    buf_addc(out, ']');
    json_close(out);
}

static void put_binding(buf *out, const char *kind, str role, str account, str account_namespace)
{
    json_close(out);
    json_key(out, "subjects");
    buf_addz(out, "[{");
    json_text(out, "kind", STR("ServiceAccount"));
    json_text(out, "name", account);
    json_text(out, "namespace", account_namespace);
    buf_addz(out, "}]");
    json_open(out, "roleRef");
    json_text(out, "apiGroup", STR(GROUP_RBAC));
    json_text(out, "kind", str_of(kind));
    json_text(out, "name", role);
    json_close(out);
    json_close(out);
}

void content_role_put(buf *out)
{
    head(out, API_RBAC, "ClusterRole", STR_EMPTY, STR(CONTENT_ROLE_NAME));
    open_rules(out);
    put_rule(out, GROUP_FLEET, "contents", "get", STR_EMPTY);
    close_rules(out);
}

_Static_assert(sizeof AGENT_TOKEN_NAME - 1 > LIMIT_LABEL_VALUE_BYTES,
               "no Bundle may have the name of the Secret");

static void put_token(buf *out, const cluster_registration *r, str home)
{
    const label of[] = {{STR("kubernetes.io/service-account.name"), r->account}};
    head(out, "v1", "Secret", home, STR(AGENT_TOKEN_NAME));
    json_labels(out, "annotations", (label_set){of, 1});
    json_close(out);
    json_text(out, "type", STR("kubernetes.io/service-account-token"));
    json_close(out);
}

bool agent_object_put(buf *out, agent_object which, const cluster_registration *r, err *error)
{
    arena *a scoped(arena_cleanup) = arena_new(0);
    const cluster_identity *c = &r->cluster;
    str home = a ? cluster_namespace_name(a, c->namespace_, c->name) : (str){NULL, 0};
    if (!home.ptr)
        return err_memory(error);
    switch (which) {
    case AGENT_ACCOUNT:
        head(out, "v1", "ServiceAccount", home, r->account);
        json_close(out);
        json_close(out);
        break;
    case AGENT_TOKEN: put_token(out, r, home); break;
    case AGENT_ROLE:
        head(out, API_RBAC, "Role", home, r->account);
        open_rules(out);
        put_rule(out, GROUP_FLEET, "bundledeployments", "get list watch", STR_EMPTY);
        put_rule(out, GROUP_FLEET, "bundledeployments/status", "update patch", STR_EMPTY);
        put_rule(out, "", "secrets configmaps", "get", STR_EMPTY);
        close_rules(out);
        break;
    case AGENT_BINDING:
        head(out, API_RBAC, "RoleBinding", home, r->account);
        put_binding(out, "Role", r->account, r->account, home);
        break;
    case AGENT_STATUS_ROLE:
        head(out, API_RBAC, "Role", c->namespace_, home);
        open_rules(out);
        put_rule(out, GROUP_FLEET, "clusters/status", "patch", c->name);
        close_rules(out);
        break;
    case AGENT_STATUS_BINDING:
        head(out, API_RBAC, "RoleBinding", c->namespace_, home);
        put_binding(out, "Role", home, r->account, home);
        break;
    case AGENT_CONTENT_BINDING: {
        str name = arena_printf(a, "%.*s-content", STR_ARG(home));
        head(out, API_RBAC, "ClusterRoleBinding", STR_EMPTY, name.ptr ? name : STR_EMPTY);
        put_binding(out, "ClusterRole", STR(CONTENT_ROLE_NAME), r->account, home);
        break;
    }
    case AGENT_OBJECT_COUNT: break;
    }
    return !out->failed || err_memory(error);
}
