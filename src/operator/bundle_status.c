/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/bundle_status.h"

#include "operator/bundle_json.h"

/* ---- conditions ---- */

static const char *state_text(condition_state state)
{
    static const char *const texts[] = {
#define X(state, text) text,
        CONDITION_STATES(X)
#undef X
    };
    return texts[state];
}

static void put_moment(buf *out, const char *name, opt_moment at)
{
    char text[MOMENT_TEXT_BYTES];
    if (!at.set)
        return;
    at.at.nanos = 0; /* wrangler's times are whole seconds */
    json_text(out, name, (str){text, moment_format(at.at, text)});
}

static void put_condition(buf *out, const condition *c)
{
    json_next_item(out);
    buf_addc(out, '{');
    json_text(out, "type", c->type);
    json_text(out, "status", str_of(state_text(c->status)));
    put_moment(out, "lastUpdateTime", c->last_update_time);
    put_moment(out, "lastTransitionTime", c->last_transition_time);
    json_text_if(out, "reason", c->reason);
    json_text_if(out, "message", c->message);
    json_close(out);
}

static const status_condition *ours(const status_conditions *c, str type)
{
    for (size_t i = 0; i < c->len; i++)
        if (str_eq(c->at[i].type, type))
            return &c->at[i];
    return NULL;
}

/* The time moves only with the status or the message. */
static void put_ours(buf *out, const status_conditions *c, const status_condition *now,
                     const condition *before)
{
    condition made = {.type = now->type,
                      .status = now->yes ? CONDITION_TRUE : CONDITION_FALSE,
                      .reason = now->reason,
                      .message = now->message,
                      .last_update_time = {true, c->now}};
    if (before) {
        made.last_transition_time = before->last_transition_time;
        if (before->status == made.status && str_eq(before->message, made.message))
            made.last_update_time = before->last_update_time;
    }
    put_condition(out, &made);
}

void conditions_put(buf *out, const status_conditions *c)
{
    json_key(out, "conditions");
    buf_addc(out, '[');
    for (size_t i = 0; i < c->before.len; i++) {
        const status_condition *now = ours(c, c->before.at[i].type);
        if (now)
            put_ours(out, c, now, &c->before.at[i]);
        else
            put_condition(out, &c->before.at[i]);
    }
    for (size_t i = 0; i < c->len; i++)
        if (!condition_find(c->before, c->at[i].type))
            put_ours(out, c, &c->at[i], NULL);
    buf_addc(out, ']');
}

/* ---- summaries ---- */

static void put_listed(buf *out, const bundle_summary *s)
{
    if (s->non_ready_resources.len == 0)
        return;
    json_key(out, "nonReadyResources");
    buf_addc(out, '[');
    for (size_t i = 0; i < s->non_ready_resources.len; i++) {
        const non_ready_resource *one = &s->non_ready_resources.at[i];
        json_next_item(out);
        buf_addc(out, '{');
        json_text_if(out, "name", one->name);
        json_text_if(out, "bundleState", str_of(bundle_state_text(one->bundle_state)));
        json_text_if(out, "message", one->message);
        json_value_if(out, "modifiedStatus", one->modified_status);
        json_value_if(out, "nonReadyStatus", one->non_ready_status);
        json_close(out);
    }
    buf_addc(out, ']');
}

static void put_summary(buf *out, const bundle_summary *s)
{
    json_open(out, "summary");
    json_number_if(out, "notReady", s->not_ready);
    json_number_if(out, "waitApplied", s->wait_applied);
    json_number_if(out, "errApplied", s->err_applied);
    json_number_if(out, "outOfSync", s->out_of_sync);
    json_number_if(out, "modified", s->modified);
    json_number(out, "ready", s->ready);
    json_number_if(out, "pending", s->pending);
    json_number(out, "desiredReady", s->desired_ready);
    put_listed(out, s);
    json_close(out);
}

static void put_of(buf *out, const char *name, int64_t ready, int64_t desired)
{
    json_key(out, name);
    buf_addf(out, "\"%lld/%lld\"", (long long)ready, (long long)desired);
}

/* The condition Ready says what the summary says, unless something went wrong before. */
static status_condition ready_condition(const bundle_summary *s, const char *kind, str error,
                                        buf *message)
{
    if (error.len > 0)
        return (status_condition){STR("Ready"), false, STR("Error"), error};
    summary_message(message, s, kind);
    return (status_condition){STR("Ready"), message->len == 0, STR_EMPTY, buf_str(message)};
}

/* ---- one deployment ---- */

static deployment_seen seen_of(const status_member *m)
{
    if (!m->deployment)
        return (deployment_seen){.wanted = m->wanted};
    return deployment_seen_of(m->deployment, m->wanted);
}

static bundle_state state_of(const status_member *m)
{
    deployment_seen seen = seen_of(m);
    return deployment_state(&seen);
}

non_ready_resource status_member_entry(const status_member *m)
{
    non_ready_resource one = {.name = m->name, .bundle_state = state_of(m)};
    if (m->deployment) {
        one.message = deployment_message(m->deployment);
        one.modified_status = m->deployment->status.modified_status;
        one.non_ready_status = m->deployment->status.non_ready_status;
    }
    return one;
}

/* What Fleet shows of a condition: its error, else its status. */
static void put_shown(buf *out, const char *name, condition_list list, str type)
{
    const condition *c = condition_find(list, type);
    if (!c)
        return;
    bool error = str_eq(c->reason, STR("Error"));
    buf text = BUF(LIMIT_DOCUMENT_BYTES);
    buf_addz(&text, error ? "Error: " : state_text(c->status));
    buf_add(&text, error ? c->message : STR_EMPTY);
    json_text(out, name, buf_str(&text));
    out->failed |= text.failed;
    buf_done(&text);
}

void deployment_display_put(buf *out, const status_member *m)
{
    json_open(out, "display");
    if (m->deployment) {
        condition_list all = m->deployment->status.conditions;
        put_shown(out, "deployed", all, STR("Deployed"));
        put_shown(out, "monitored", all, STR("Monitored"));
    }
    json_text_if(out, "state", str_of(bundle_state_text(state_of(m))));
    json_close(out);
}

/* ---- Bundle ---- */

static void put_partitions(buf *out, const bundle_status_facts *f)
{
    if (f->partition_count == 0)
        return;
    json_key(out, "partitions");
    buf_addc(out, '[');
    for (size_t i = 0; i < f->partition_count; i++) {
        const status_partition *p = &f->partitions[i];
        json_next_item(out);
        buf_addc(out, '{');
        json_text_if(out, "name", p->name);
        json_number_if(out, "count", p->count);
        json_number_if(out, "maxUnavailable", p->max_unavailable);
        json_number_if(out, "unavailable", p->unavailable);
        put_summary(out, p->summary);
        json_close(out);
    }
    buf_addc(out, ']');
}

/* A field that was dropped cannot be told from one that was never written: every Bundle says it. */
static status_condition pruned_condition(str fields, buf *message)
{
    if (fields.len > 0)
        buf_addf(message,
                 "this hub's definition of Bundles drops %.*s of a rolloutStrategy: the annotation "
                 "drover.dev/rollout-strategy is read instead",
                 STR_ARG(fields));
    return (status_condition){STR("ExtensionsPruned"), fields.len > 0, STR_EMPTY, buf_str(message)};
}

static status_condition shortened_condition(str what)
{
    return (status_condition){STR("RecordShortened"), what.len > 0, STR_EMPTY, what};
}

/* What is not so is said only where it was so before. */
static void put_bundle_conditions(buf *out, const bundle_status_facts *f)
{
    buf message = BUF(LIMIT_DOCUMENT_BYTES), pruned = BUF(LIMIT_DOCUMENT_BYTES);
    status_condition at[] = {ready_condition(f->summary, "Cluster", f->error, &message),
                             pruned_condition(f->pruned, &pruned),
                             shortened_condition(f->shortened)};
    size_t len = 1;
    for (size_t i = 1; i < sizeof at / sizeof at[0]; i++)
        if (at[i].yes || condition_find(f->before, at[i].type))
            at[len++] = at[i];
    conditions_put(out, &(status_conditions){f->before, at, len, f->now});
    out->failed |= message.failed || pruned.failed;
    buf_done(&message);
    buf_done(&pruned);
}

void bundle_status_put(buf *out, const bundle_status_facts *f)
{
    buf_addc(out, '{');
    put_bundle_conditions(out, f);
    put_summary(out, f->summary);
    json_number_if(out, "newlyCreated", f->newly_created);
    json_number(out, "unavailable", f->unavailable);
    json_number(out, "unavailablePartitions", f->unavailable_partitions);
    json_number(out, "maxUnavailable", f->max_unavailable);
    json_number(out, "maxUnavailablePartitions", f->max_unavailable_partitions);
    put_partitions(out, f);
    json_open(out, "display");
    put_of(out, "readyClusters", f->summary->ready, f->summary->desired_ready);
    json_text_if(out, "state", str_of(bundle_state_text(summary_state(f->summary))));
    json_close(out);
    json_text_if(out, "ociReference", f->oci_reference);
    json_number(out, "observedGeneration", f->generation);
    json_text_if(out, "resourcesSha256Sum", f->resources_sha256_sum);
    json_close(out);
}

/* ---- sums of many deployments ---- */

const char *resource_count_text(resource_count count)
{
    static const char *const texts[] = {
#define X(count, text) text,
        RESOURCE_COUNTS(X)
#undef X
    };
    return texts[count];
}

static void put_counts(buf *out, const int64_t *counts)
{
    json_open(out, "resourceCounts");
    for (int i = 0; i < RESOURCE_COUNT_KINDS; i++)
        json_number(out, resource_count_text((resource_count)i), counts ? counts[i] : 0);
    json_close(out);
}

/* ---- Cluster ---- */

void cluster_status_put(buf *out, const cluster_status_facts *f)
{
    buf message = BUF(LIMIT_DOCUMENT_BYTES);
    status_condition now[] = {ready_condition(f->summary, "Bundle", f->error, &message),
                              {STR("Processed"), true, STR_EMPTY, STR_EMPTY}};
    status_conditions all = {f->before, now, sizeof now / sizeof now[0], f->now};
    buf_addc(out, '{');
    conditions_put(out, &all);
    json_text_if(out, "namespace", f->namespace_);
    put_summary(out, f->summary);
    put_counts(out, f->resources);
    json_number(out, "readyGitRepos", f->repos.ready);
    json_number(out, "desiredReadyGitRepos", f->repos.desired);
    json_number(out, "readyHelmOps", f->charts.ready);
    json_number(out, "desiredReadyHelmOps", f->charts.desired);
    json_open(out, "display");
    put_of(out, "readyBundles", f->summary->ready, f->summary->desired_ready);
    str state = str_of(bundle_state_text(summary_state(f->summary)));
    json_text_if(out, "state", f->checked_in ? state : STR("WaitCheckIn"));
    json_close(out);
    json_close(out);
    out->failed |= message.failed;
    buf_done(&message);
}

/* ---- ClusterGroup ---- */

static void put_names(buf *out, const char *name, const str *names, size_t count)
{
    if (count == 0)
        return;
    json_key(out, name);
    buf_addc(out, '[');
    for (size_t i = 0; i < count; i++) {
        json_next_item(out);
        go_text(out, names[i]);
    }
    buf_addc(out, ']');
}

static void put_group_display(buf *out, const bundle_summary *s, str clusters)
{
    json_open(out, "display");
    json_text(out, "readyClusters", clusters);
    put_of(out, "readyBundles", s->ready, s->desired_ready);
    json_text_if(out, "state", str_of(bundle_state_text(summary_state(s))));
    json_close(out);
}

void cluster_group_status_put(buf *out, const cluster_group_status_facts *f)
{
    buf message = BUF(LIMIT_DOCUMENT_BYTES), clusters = BUF(LIMIT_DOCUMENT_BYTES);
    size_t listed =
        f->non_ready_count < NON_READY_CLUSTERS_MAX ? f->non_ready_count : NON_READY_CLUSTERS_MAX;
    buf_addf(&clusters, "%zu/%zu", f->cluster_count - f->non_ready_count, f->cluster_count);
    for (size_t i = 0; i < listed; i++)
        buf_addf(&clusters, "%s%.*s", i > 0 ? "," : " (", STR_ARG(f->non_ready[i]));
    buf_addz(&clusters, listed > 0 ? ")" : "");
    status_condition now[] = {ready_condition(f->summary, "Bundle", STR_EMPTY, &message),
                              {STR("Processed"), true, STR_EMPTY, STR_EMPTY}};
    status_conditions all = {f->before, now, sizeof now / sizeof now[0], f->now};
    buf_addc(out, '{');
    json_number(out, "clusterCount", (int64_t)f->cluster_count);
    json_number(out, "nonReadyClusterCount", (int64_t)f->non_ready_count);
    put_names(out, "nonReadyClusters", f->non_ready, listed);
    conditions_put(out, &all);
    put_summary(out, f->summary);
    put_group_display(out, f->summary, buf_str(&clusters));
    put_counts(out, f->resources);
    json_close(out);
    out->failed |= message.failed || clusters.failed;
    buf_done(&message);
    buf_done(&clusters);
}

/* ---- GitRepo ---- */

void git_repo_status_put(buf *out, const git_repo_status_facts *f)
{
    buf message = BUF(LIMIT_DOCUMENT_BYTES);
    status_condition now = ready_condition(f->summary, "Bundle", STR_EMPTY, &message);
    if (f->ready_message.len > 0)
        now = (status_condition){STR("Ready"), false, STR_EMPTY, f->ready_message};
    status_conditions all = {f->before, &now, 1, f->now};
    bool current = str_eq(f->git_job_status, STR("Current"));
    str state = f->state == BUNDLE_READY ? STR_EMPTY : str_of(bundle_state_text(f->state));
    buf_addc(out, '{');
    conditions_put(out, &all);
    json_number(out, "readyClusters", f->clusters.ready);
    json_number(out, "desiredReadyClusters", f->clusters.desired);
    put_summary(out, f->summary);
    json_open(out, "display");
    put_of(out, "readyBundleDeployments", f->summary->ready, f->summary->desired_ready);
    json_text_if(out, "state", current ? state : STR("GitUpdating"));
    json_close(out);
    put_counts(out, f->resources);
    json_close(out);
    out->failed |= message.failed;
    buf_done(&message);
}
