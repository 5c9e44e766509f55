/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life, and whether the hub that takes them is the one whose cluster this is.
 *
 *     sign of life --> the hub's Cluster: does it keep its deployments where they are watched?
 *     record in the cluster: is it the same Cluster as ever?  none yet: from now on it is this one
 *
 * The account of an agent may not read its Cluster; but who patches its status is shown it. A
 * Cluster that is made anew under a running agent is still ours: the record follows it. But if
 * deployments went with the old one they must come back first, or a person says that it is meant.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster_agent/agent_internal.h"
#include "cluster_agent/report.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"

static str or_empty(str text)
{
    return text.ptr ? text : STR_EMPTY;
}

static str uid_of(const agent_hub *h)
{
    return h->uid ? str_of(h->uid) : STR_EMPTY;
}

/* A request without preconditions. */
static kube_write request(write_verb verb, str collection, str name, str body)
{
    return (kube_write){.verb = verb,
                        .collection = collection,
                        .name = name,
                        .subresource = STR_EMPTY,
                        .body = body,
                        .version = STR_EMPTY,
                        .uid = STR_EMPTY,
                        .manager = STR_EMPTY,
                        .anyhow = verb == WRITE_MERGE};
}

/* Work stops, or does not begin. */
static void refuse(agent_shell *s, const char *text)
{
    agent_hub *h = &s->hub;
    if (strcmp(h->trouble, text) != 0)
        log_line(LOG_ERROR, "nothing is changed in the cluster: %s", text);
    snprintf(h->trouble, sizeof h->trouble, "%s", text);
    h->known = false;
}

static void know(agent_shell *s)
{
    agent_hub *h = &s->hub;
    bool news = !h->known;
    h->known = true;
    h->trouble[0] = '\0';
    if (news)
        agent_shell_begin(s);
}

void agent_hub_hurry(agent_shell *s)
{
    s->hub.beat_ms = 0;
    s->due = true;
}

/* ---- what the hub's Cluster says ---- */

/* Where the deployments are: as the Cluster says; one that does not yet has them where all have. */
static bool is_home(const agent_shell *s, str told, char text[AGENT_TROUBLE_BYTES])
{
    const agent_shell_settings *of = &s->settings;
    scoped(arena_cleanup) arena *a = arena_new(0);
    if (told.len == 0 && a)
        told = or_empty(cluster_namespace_name(a, of->cluster_namespace, of->cluster));
    if (str_eq(told, of->home))
        return true;
    snprintf(text, AGENT_TROUBLE_BYTES,
             "the hub keeps the deployments of Cluster %.*s/%.*s in the namespace \"%.*s\", but "
             "\"%.*s\" is watched: look at --hub-namespace",
             STR_ARG(of->cluster_namespace), STR_ARG(of->cluster), STR_ARG(told),
             STR_ARG(of->home));
    return false;
}

static bool stays(const agent_shell *s, const yyjson_val *cluster, char text[AGENT_TROUBLE_BYTES])
{
    if (agent_text_at(cluster, "metadata", "deletionTimestamp").len == 0)
        return true;
    snprintf(text, AGENT_TROUBLE_BYTES, "Cluster %.*s/%.*s is being deleted on the hub",
             STR_ARG(s->settings.cluster_namespace), STR_ARG(s->settings.cluster));
    return false;
}

static void met(agent_shell *s, const yyjson_val *cluster)
{
    agent_hub *h = &s->hub;
    char text[AGENT_TROUBLE_BYTES];
    str uid = agent_text_at(cluster, "metadata", "uid");
    h->met =
        is_home(s, agent_text_at(cluster, "status", "namespace"), text) && stays(s, cluster, text);
    if (!h->met) {
        refuse(s, text);
        return;
    }
    if (str_eq(uid, uid_of(h))) {
        if (!h->recorded)
            return;
        know(s);
        agent_shell_confirm(s, h->sent);
        return;
    }
    if (h->recorded)
        log_line(LOG_WARN, "the hub's Cluster was made anew");
    mem_free(h->uid);
    h->uid = agent_copy(s, uid);
    h->recorded = false;
    h->ask_ms = 0;
}

/* ---- signs of life ---- */

static void beaten(void *context, const write_outcome *how, yyjson_val *json)
{
    agent_shell *s = context;
    agent_hub *h = &s->hub;
    bool good = how->kind == WRITE_DONE;
    char text[AGENT_TROUBLE_BYTES];
    h->beats += good;
    h->beating = false;
    s->due = true;
    if (good) {
        met(s, json);
    } else {
        log_line(LOG_WARN, "the hub does not take the sign of life: %s", how->message);
        snprintf(
            text, sizeof text, "the hub does not take the sign of life of Cluster %.*s/%.*s: %s",
            STR_ARG(s->settings.cluster_namespace), STR_ARG(s->settings.cluster), how->message);
        if (!h->known || how->kind == WRITE_GONE) /* who is only away is waited for */
            refuse(s, text);
    }
    int64_t most = good && h->met     ? s->settings.heartbeat_ms
                   : good || h->known ? AGENT_BEAT_RETRY_MS
                                      : AGENT_MEET_RETRY_MS;
    int64_t wait = most < s->settings.heartbeat_ms ? most : s->settings.heartbeat_ms;
    bool hurry = good && h->met && h->recorded && agent_shell_left(s);
    h->beat_ms = s->api.now_ms(s->api.context) + (hurry ? 0 : wait);
}

static void beat(agent_shell *s, int64_t now_ms)
{
    scoped(buf_done) buf body = BUF(AGENT_PATH_BYTES_MAX);
    char collection[LIMIT_NAME_BYTES + 64];
    err error;
    if (s->hub.beating || now_ms < s->hub.beat_ms)
        return;
    snprintf(collection, sizeof collection, AGENT_GROUP_FLEET "/namespaces/%.*s/clusters",
             STR_ARG(s->settings.cluster_namespace));
    check_in_put(&body, s->api.time(s->api.context), s->settings.agent_namespace);
    kube_write w = request(WRITE_MERGE, str_of(collection), s->settings.cluster, buf_str(&body));
    w.subresource = STR("status");
    s->hub.sent++;
    s->hub.beating = !body.failed && s->api.send(s->api.context, AGENT_HUB, &w,
                                                 (write_handler){s, beaten, NULL}, &error);
    if (!s->hub.beating)
        s->hub.beat_ms = now_ms + AGENT_BEAT_RETRY_MS;
}

/* ---- the namespace of what it remembers, for an agent that runs elsewhere ---- */

static void ask_again(agent_shell *s)
{
    s->hub.ask_ms = s->api.now_ms(s->api.context) + AGENT_MEET_RETRY_MS;
    s->due = true;
}

static void space_made(void *context, const write_outcome *how, yyjson_val *json)
{
    (void)json;
    agent_shell *s = context;
    bool good = how->kind == WRITE_DONE || how->kind == WRITE_EXISTS;
    if (!good)
        log_line(LOG_WARN, "namespace %.*s: %s", STR_ARG(s->settings.agent_namespace),
                 how->message);
    s->hub.space = good || how->kind == WRITE_REFUSED; /* it may be there all the same */
    s->hub.space_asked = s->hub.space;
    s->due = true;
    if (!s->hub.space)
        ask_again(s);
}

static void make_space(agent_shell *s)
{
    scoped(buf_done) buf body = BUF(AGENT_PATH_BYTES_MAX);
    err error;
    buf_addz(&body, "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":");
    buf_add_json(&body, s->settings.agent_namespace);
    buf_addz(&body, "}}");
    kube_write w = request(WRITE_CREATE, STR("/api/v1/namespaces"), s->settings.agent_namespace,
                           buf_str(&body));
    s->hub.space_asked = !body.failed && s->api.send(s->api.context, AGENT_OWN, &w,
                                                     (write_handler){s, space_made, NULL}, &error);
    if (!s->hub.space_asked)
        ask_again(s);
}

/* ---- the record ---- */

static void put_record(buf *out, const agent_shell *s)
{
    const agent_shell_settings *of = &s->settings;
    buf_addz(out, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                  "\"" AGENT_RECORD "\",\"namespace\":");
    buf_add_json(out, of->agent_namespace);
    buf_addz(out, "},\"data\":{\"cluster\":");
    buf_add_json(out, of->cluster);
    buf_addz(out, ",\"clusterNamespace\":");
    buf_add_json(out, of->cluster_namespace);
    buf_addz(out, ",\"deployments\":");
    buf_add_json(out, of->home);
    buf_addz(out, ",\"uid\":");
    buf_add_json(out, uid_of(&s->hub));
    buf_addz(out, "}}");
}

/* What the record says that is otherwise; false: it is the same Cluster. */
static bool is_other(const agent_shell *s, const yyjson_val *record, const char **ret_what,
                     str *ret_before, str *ret_now)
{
    const agent_shell_settings *of = &s->settings;
    const struct {
        const char *member, *what;
        str now;
    } rows[] = {{"cluster", "Cluster", of->cluster},
                {"clusterNamespace", "the namespace of the Cluster", of->cluster_namespace},
                {"deployments", "the namespace of the deployments", of->home},
                {"uid", "the Cluster's uid", uid_of(&s->hub)}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *ret_what = rows[i].what;
        *ret_before = agent_text_at(record, "data", rows[i].member);
        *ret_now = rows[i].now;
        if (!str_eq(*ret_before, *ret_now))
            return true;
    }
    return false;
}

static void compare(agent_shell *s, const yyjson_val *record)
{
    char text[AGENT_TROUBLE_BYTES];
    const char *what;
    str before, now;
    if (!is_other(s, record, &what, &before, &now)) {
        s->hub.recorded = s->hub.trusted = true;
        know(s);
        return;
    }
    snprintf(
        text, sizeof text,
        "this cluster belongs to another Cluster of a hub: %s was \"%s\" and is \"%s\". If that "
        "is meant, delete the ConfigMap %.*s/" AGENT_RECORD
        ": what this hub does not deploy is then removed",
        what, str_shown(before).text, str_shown(now).text, STR_ARG(s->settings.agent_namespace));
    refuse(s, text);
    ask_again(s);
    s->hub.ask_ms += AGENT_BEAT_RETRY_MS - AGENT_MEET_RETRY_MS;
}

static void record_written(void *context, const write_outcome *how, yyjson_val *json)
{
    (void)json;
    agent_shell *s = context;
    s->hub.asking = false;
    if (how->kind == WRITE_DONE) {
        s->hub.recorded = s->hub.trusted = true;
        log_line(LOG_INFO, "this cluster is Cluster %.*s/%.*s of the hub",
                 STR_ARG(s->settings.cluster_namespace), STR_ARG(s->settings.cluster));
        know(s);
        return;
    }
    log_line(LOG_WARN, "ConfigMap " AGENT_RECORD ": %s", how->message);
    ask_again(s);
}

/* body: none with a read. */
static void ask_for_record(agent_shell *s, write_verb verb, str body, write_handler handler)
{
    char collection[LIMIT_NAME_BYTES + 64];
    err error;
    snprintf(collection, sizeof collection, "/api/v1/namespaces/%.*s/configmaps",
             STR_ARG(s->settings.agent_namespace));
    kube_write w = request(verb, str_of(collection), STR(AGENT_RECORD), body);
    s->hub.asking = s->api.send(s->api.context, AGENT_OWN, &w, handler, &error);
    if (!s->hub.asking)
        ask_again(s);
}

static void send_record(agent_shell *s, write_verb verb)
{
    scoped(buf_done) buf body = BUF(AGENT_PATH_BYTES_MAX);
    put_record(&body, s);
    if (body.failed)
        ask_again(s);
    else
        ask_for_record(s, verb, buf_str(&body), (write_handler){s, record_written, NULL});
}

static void record_read(void *context, const write_outcome *how, yyjson_val *json)
{
    agent_shell *s = context;
    s->hub.asking = false;
    if (how->kind == WRITE_DONE) {
        compare(s, json);
        return;
    }
    if (how->kind == WRITE_GONE) {
        send_record(s, WRITE_CREATE);
        return;
    }
    log_line(LOG_WARN, "ConfigMap " AGENT_RECORD ": %s", how->message);
    ask_again(s);
}

/* ---- turns ---- */

static bool wants_record(const agent_hub *h)
{
    return h->space && h->met && !h->recorded;
}

void agent_hub_step(agent_shell *s, int64_t now_ms)
{
    agent_hub *h = &s->hub;
    beat(s, now_ms);
    if (now_ms < h->ask_ms || h->asking)
        return;
    if (!h->space_asked)
        make_space(s);
    else if (wants_record(h) && h->trusted && !agent_shell_left(s))
        send_record(s, WRITE_MERGE);
    else if (wants_record(h))
        ask_for_record(s, WRITE_READ, STR_EMPTY, (write_handler){s, record_read, NULL});
}

int64_t agent_hub_next_ms(const agent_shell *s)
{
    const agent_hub *h = &s->hub;
    int64_t next = h->beating ? INT64_MAX : h->beat_ms;
    bool asks = !h->asking && (!h->space_asked || wants_record(h));
    return asks && h->ask_ms < next ? h->ask_ms : next;
}
