/* SPDX-License-Identifier: Apache-2.0 */
/* The statuses of ClusterGroups and GitRepos: sums over what Clusters and Bundles are counted for
 * already. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/hub_internal.h"

/* ---- which groups a cluster is in ---- */

static bool was_in(const hub_cluster *c, const hub_group *g)
{
    for (size_t i = 0; i < c->groups.len; i++)
        if (c->groups.at[i] == g)
            return true;
    return false;
}

void hub_groups_of(cluster_shell *s, hub_cluster *c)
{
    size_t kept = 0;
    HUB_EACH(&s->groups, hub_group, g)
    {
        bool is = str_eq(g->space, c->space) && c->present &&
                  engine_in_group(s->engine, (engine_cluster){c->space, c->name}, g->name);
        if (is != was_in(c, g)) {
            hub_touch(s, &g->clock, s->settings.cluster_status_every_ms);
            if (is && !vec_push(&c->groups, g))
                hub_memory(s);
        }
        for (size_t i = 0; !is && i < c->groups.len; i++)
            if (c->groups.at[i] == g)
                c->groups.at[i] = NULL;
    }
    for (size_t i = 0; i < c->groups.len; i++)
        if (c->groups.at[i])
            c->groups.at[kept++] = c->groups.at[i];
    c->groups.len = kept;
}

/* ---- ClusterGroups ---- */

static int by_name(const void *x, const void *y)
{
    return str_cmp((*(hub_cluster *const *)x)->name, (*(hub_cluster *const *)y)->name);
}

static hub_cluster **members_of(cluster_shell *s, const hub_group *g, size_t *ret_count)
{
    hub_cluster **at = ARENA_ARRAY(s->scratch, s->clusters.len + 1, hub_cluster *);
    *ret_count = 0;
    HUB_EACH(&s->clusters, hub_cluster, c)
    if (at && was_in(c, g))
        at[(*ret_count)++] = c;
    if (at && *ret_count > 1)
        qsort(at, *ret_count, sizeof *at, by_name);
    if (!at)
        hub_memory(s);
    return at;
}

static void group_answered(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                           yyjson_val *json)
{
    hub_group *g = hub_find(&s->groups, str_of(t->bundle));
    if (!g)
        return;
    if (!hub_told(s, &g->object, t, how))
        hub_touch(s, &g->clock, s->settings.cluster_status_every_ms);
    hub_await(&g->object, json);
}

/* Returns the status as it is; NULL: none. */
static yyjson_val *sum_group(cluster_shell *s, hub_group *g, buf *out)
{
    size_t count = 0;
    hub_cluster **members = members_of(s, g, &count);
    summary_maker *sum = ARENA_NEW(s->scratch, summary_maker);
    summary_maker *one = ARENA_NEW(s->scratch, summary_maker);
    str names[NON_READY_CLUSTERS_MAX];
    int64_t resources[RESOURCE_COUNT_KINDS] = {0};
    if (!sum || !one || !members) {
        hub_memory(s);
        return NULL;
    }
    cluster_group_status_facts f = {.summary = &sum->summary,
                                    .cluster_count = count,
                                    .non_ready = names,
                                    .resources = resources,
                                    .now = hub_now(s)};
    for (size_t i = 0; i < count; i++) {
        *one = (summary_maker){0};
        hub_cluster_summary(s, members[i], one, resources);
        summary_sum(sum, &one->summary);
        if (summary_ready(&one->summary))
            continue;
        if (f.non_ready_count < NON_READY_CLUSTERS_MAX)
            names[f.non_ready_count] = members[i]->name;
        f.non_ready_count++;
    }
    yyjson_val *before = g->status ? json_parse(s->scratch, str_of(g->status), NULL) : NULL;
    f.before = hub_conditions(s->scratch, before);
    cluster_group_status_put(out, &f);
    return before;
}

void hub_group_status(cluster_shell *s, hub_group *g)
{
    if (!hub_may_tell(s, &g->object))
        return;
    buf text = BUF(HUB_TEXT_BYTES);
    g->clock.dirty = false;
    yyjson_val *before = sum_group(s, g, &text);
    hub_status_write w = {
        .kind = HUB_GROUP,
        .space = g->space,
        .name = g->name,
        .object = &g->object,
        .before = before,
        .after = buf_str(&text),
        .ticket = {.done = group_answered, .bundle = g->key, .revision = g->object.revision}};
    if (!text.failed && !s->no_memory && !hub_status_send(s, &w))
        hub_touch(s, &g->clock, HUB_REFUSED_MS);
    s->counts.group_statuses += g->object.sending;
    buf_done(&text);
}

/* ---- GitRepos ---- */

/* What of a GitRepo's status is written here. */
static const char *const own_members[] = {"conditions", "readyClusters", "desiredReadyClusters",
                                          "summary",    "display",       "resourceCounts"};

void hub_repo_free(hub_repo *r)
{
    mem_free(r->object.uid);
    mem_free(r->key);
    mem_free(r->status);
    mem_free(r->job);
    mem_free(r);
}

static hub_repo *repo_of(cluster_shell *s, str key)
{
    hub_repo *r = hub_find(&s->repos, key);
    if (r)
        return r;
    char *own;
    r = hub_record_new(s, &s->repos, key, sizeof *r, &own);
    if (!r)
        return NULL;
    r->key = own;
    hub_key_parts(r->key, &r->space, &r->name);
    return r;
}

void hub_repos_seen(cluster_shell *s, yyjson_val *json)
{
    yyjson_val *meta = yyjson_obj_get(json, "metadata"), *status = yyjson_obj_get(json, "status");
    hub_repo *r = repo_of(s, hub_key(s, read_text(meta, "namespace"), read_text(meta, "name")));
    if (!r)
        return;
    hub_object_seen(s, &r->object, json);
    str job = read_text(status, "gitJobStatus");
    if (!r->status || !str_eq(hub_text(r->job), job))
        hub_touch(s, &r->clock, s->settings.status_every_ms);
    hub_set(s, &r->job, job);
    buf text = BUF(HUB_TEXT_BYTES);
    buf_addc(&text, '{');
    for (size_t i = 0; i < sizeof own_members / sizeof own_members[0]; i++) {
        yyjson_val *value = yyjson_obj_get(status, own_members[i]);
        if (!value)
            continue;
        buf_addf(&text, "%s\"%s\":", text.len > 1 ? "," : "", own_members[i]);
        json_write(&text, value);
    }
    buf_addc(&text, '}');
    hub_set(s, &r->status, buf_str(&text));
    buf_done(&text);
}

void hub_repos_gone(cluster_shell *s, str key)
{
    hub_repo *r = hub_find(&s->repos, key);
    if (!r)
        return;
    strmap_remove(&s->repos, key);
    hub_repo_free(r);
}

void hub_repo_tell(cluster_shell *s, const hub_bundle *b)
{
    hub_repo *r = hub_text(b->repo).len > 0
                      ? hub_find(&s->repos, hub_key(s, b->space, str_of(b->repo)))
                      : NULL;
    if (r)
        hub_touch(s, &r->clock, s->settings.status_every_ms);
}

static void repo_answered(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                          yyjson_val *json)
{
    hub_repo *r = hub_find(&s->repos, str_of(t->bundle));
    if (!r)
        return;
    if (!hub_told(s, &r->object, t, how))
        hub_touch(s, &r->clock, s->settings.status_every_ms);
    hub_await(&r->object, json);
}

typedef struct repo_sum {
    summary_maker *sum;
    const hub_place *listed[SUMMARY_LISTED_MAX]; /* the first that are not ready, by uid */
    size_t listed_count;
    int64_t resources[RESOURCE_COUNT_KINDS];
    strmap clusters; /* home -> all of them are ready */
    bundle_state state;
    const hub_bundle *first; /* that is not ready, by uid; NULL: all are */
} repo_sum;

/* As Fleet orders deployments; those that are still to be made come last. */
static int by_uid(const hub_place *a, const hub_place *b)
{
    if (!a->uid != !b->uid)
        return a->uid ? -1 : 1;
    int by = a->uid ? strcmp(a->uid, b->uid) : strcmp(a->bundle->key, b->bundle->key);
    return by ? by : strcmp(a->cluster->key, b->cluster->key);
}

static void list_place(repo_sum *sum, const hub_place *p)
{
    size_t at = sum->listed_count;
    if (at == SUMMARY_LISTED_MAX && by_uid(p, sum->listed[at - 1]) >= 0)
        return;
    if (at == SUMMARY_LISTED_MAX)
        at--;
    else
        sum->listed_count++;
    while (at > 0 && by_uid(p, sum->listed[at - 1]) < 0) {
        sum->listed[at] = sum->listed[at - 1];
        at--;
    }
    sum->listed[at] = p;
}

static void sum_bundle(cluster_shell *s, const hub_bundle *b, repo_sum *sum)
{
    bundle_summary counts;
    hub_tally_summary(&b->all, &counts);
    summary_sum(sum->sum, &counts);
    for (size_t i = 0; i < b->places.len; i++) {
        const hub_place *p = b->places.at[i];
        if (!p->counted)
            continue;
        if (p->state != BUNDLE_READY)
            list_place(sum, p);
        if (p->state > sum->state)
            sum->state = (bundle_state)p->state;
        const uint64_t *known = strmap_get(&sum->clusters, str_of(p->cluster->key));
        bool good = p->state == BUNDLE_READY && (!known || *known);
        if (!strmap_put(&sum->clusters, str_of(p->cluster->key), good))
            hub_memory(s);
        for (size_t k = 0; p->resources && k < RESOURCE_COUNT_KINDS; k++)
            sum->resources[k] += p->resources[k];
    }
    bool tells = hub_text(b->ready_message).len > 0;
    if (tells &&
        (!sum->first || str_cmp(hub_text(b->object.uid), hub_text(sum->first->object.uid)) < 0))
        sum->first = b;
}

static void list_places(cluster_shell *s, repo_sum *sum)
{
    sum->sum->summary.non_ready_resources.at = sum->sum->listed;
    sum->sum->summary.non_ready_resources.len = sum->listed_count;
    for (size_t i = 0; i < sum->listed_count; i++)
        hub_place_entry(s, sum->listed[i], sum->listed[i]->bundle->name, &sum->sum->listed[i]);
}

/* Likewise. */
static yyjson_val *sum_repo(cluster_shell *s, hub_repo *r, buf *out)
{
    repo_sum sum = {.sum = ARENA_NEW(s->scratch, summary_maker)};
    if (!sum.sum) {
        hub_memory(s);
        return NULL;
    }
    HUB_EACH(&s->bundles, hub_bundle, b)
    if (b->known && str_eq(b->space, r->space) && str_eq(hub_text(b->repo), r->name))
        sum_bundle(s, b, &sum);
    list_places(s, &sum);
    status_sources clusters = {.desired = (int64_t)sum.clusters.len};
    for (size_t i = 0; i < sum.clusters.len; i++)
        clusters.ready += sum.clusters.entries[i].value != 0;
    strmap_done(&sum.clusters);
    yyjson_val *before = r->status ? json_parse(s->scratch, str_of(r->status), NULL) : NULL;
    git_repo_status_facts f = {.summary = &sum.sum->summary,
                               .clusters = clusters,
                               .state = sum.state,
                               .resources = sum.resources,
                               .ready_message = hub_text(sum.first ? sum.first->ready_message
                                                                   : NULL),
                               .git_job_status = hub_text(r->job),
                               .before = hub_conditions(s->scratch, before),
                               .now = hub_now(s)};
    git_repo_status_put(out, &f);
    return before;
}

void hub_repo_status(cluster_shell *s, hub_repo *r)
{
    if (!hub_may_tell(s, &r->object))
        return;
    buf text = BUF(HUB_TEXT_BYTES);
    r->clock.dirty = false;
    yyjson_val *before = sum_repo(s, r, &text);
    hub_status_write w = {
        .kind = HUB_REPO,
        .space = r->space,
        .name = r->name,
        .object = &r->object,
        .before = before,
        .after = buf_str(&text),
        .ticket = {.done = repo_answered, .bundle = r->key, .revision = r->object.revision}};
    if (!text.failed && !s->no_memory && !hub_status_send(s, &w))
        hub_touch(s, &r->clock, HUB_REFUSED_MS);
    s->counts.repo_statuses += r->object.sending;
    buf_done(&text);
}
