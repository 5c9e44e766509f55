/* SPDX-License-Identifier: Apache-2.0 */
/* Which Cluster a namespace of deployments is of.
 *
 * A Cluster says so itself, in its status, which its agent may write: nobody takes away by it what
 * another has. Whose namespace is named after it has it, whoever said so before; else the first one
 * has it, until it goes. And what a Cluster has it keeps: the status is put right if it says
 * another one later. After a restart the first one is whose deployments are there, else the older.
 */
#include "base/log.h"
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "operator/hub_internal.h"

/* It becomes a part of paths. */
static bool is_namespace(str text)
{
    bool good = text.len > 0 && text.len <= LIMIT_LABEL_VALUE_BYTES;
    for (size_t i = 0; good && i < text.len; i++) {
        char c = text.ptr[i];
        bool inner = i > 0 && i + 1 < text.len;
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && inner);
    }
    return good;
}

static bool is_named_after(cluster_shell *s, const hub_cluster *c, str home)
{
    str own = cluster_namespace_name(s->scratch, c->space, c->name);
    if (!own.ptr)
        hub_memory(s);
    return str_eq(own, home);
}

str hub_home_trouble(const cluster_shell *s, const hub_cluster *c, arena *a)
{
    if (!c->denied || c->home)
        return STR_EMPTY;
    const hub_cluster *owner = hub_find(&s->homes, str_of(c->denied));
    str text =
        owner ? arena_printf(a, "its namespace %s is that of Cluster %s", c->denied, owner->key)
              : arena_printf(a,
                             "status.namespace: found \"%s\", allowed the name of a "
                             "namespace",
                             c->denied);
    return text.ptr ? text : STR_EMPTY;
}

static void log_denied(cluster_shell *s, hub_cluster *c)
{
    c->logged = true;
    if (c->home)
        log_line(LOG_WARN, "Cluster %s: its namespace is %s, and status.namespace is put right",
                 c->key, c->home);
    else
        log_line(LOG_WARN, "Cluster %s: %.*s", c->key, STR_ARG(hub_home_trouble(s, c, s->scratch)));
}

static void deny(cluster_shell *s, hub_cluster *c, str home)
{
    hub_set(s, &c->denied, home);
    if (!c->logged && s->restored)
        log_denied(s, c);
}

static void give(cluster_shell *s, hub_cluster *c, str home)
{
    c->denied = mem_free(c->denied);
    c->home = hub_copy(s, home);
    if (c->home && hub_put(s, &s->homes, c->home, c))
        hub_strays_of(s, c);
}

/* What the status says of it has changed. */
static void tell(cluster_shell *s, hub_cluster *c)
{
    hub_cluster_touch(s, c);
    for (size_t i = 0; i < c->places.len; i++)
        hub_touch(s, &c->places.at[i]->bundle->clock, s->settings.status_every_ms);
}

/* What was deployed there is for who has it next to judge; else it stays as it is. */
static void lose(cluster_shell *s, hub_cluster *c)
{
    if (!c->home)
        return;
    if (c->deployments > 0)
        log_line(LOG_WARN, "Cluster %s: what is deployed in %s is not its own any more", c->key,
                 c->home);
    strmap_remove(&s->homes, str_of(c->home));
    for (size_t i = c->places.len; i > 0; i--)
        if (c->places.at[i - 1]->exists)
            hub_deployment_leave(s, c->places.at[i - 1]);
    c->home = mem_free(c->home);
    c->named = false;
}

static void claim(cluster_shell *s, hub_cluster *c, str home)
{
    if (home.len == 0) {
        c->denied = mem_free(c->denied);
        return;
    }
    hub_cluster *owner = hub_find(&s->homes, home);
    bool named = is_named_after(s, c, home);
    if (!is_namespace(home) || (owner && (!named || owner->named))) {
        deny(s, c, home);
        return;
    }
    if (owner)
        lose(s, owner);
    c->named = named;
    give(s, c, home);
    if (owner) {
        deny(s, owner, home);
        hub_cluster_retell(s, owner);
    }
}

/* ---- whose it was before a restart ---- */

static bool has_strays(cluster_shell *s, const hub_cluster *c, str home)
{
    bool has = false;
    for (size_t i = 0; i < s->strays.len && !has; i++) {
        arena_place mark = arena_mark(s->scratch);
        yyjson_val *json = str_eq(str_of(s->strays.at[i].space), home)
                               ? json_parse(s->scratch, str_of(s->strays.at[i].text), NULL)
                               : NULL;
        yyjson_val *labels = read_at(json, "metadata", "labels");
        has = str_eq(read_text(labels, LABEL_CLUSTER), c->name) &&
              str_eq(read_text(labels, LABEL_CLUSTER_NAMESPACE), c->space);
        arena_rewind(s->scratch, mark);
    }
    return has;
}

static int64_t created_ms(cluster_shell *s, const hub_cluster *c)
{
    arena_place mark = arena_mark(s->scratch);
    yyjson_val *json = c->json ? json_parse(s->scratch, str_of(c->json), NULL) : NULL;
    int64_t ms = read_time_ms(read_text(yyjson_obj_get(json, "metadata"), "creationTimestamp"));
    arena_rewind(s->scratch, mark);
    return ms;
}

static bool had_it_before(cluster_shell *s, const hub_cluster *c, const hub_cluster *owner)
{
    bool theirs = owner->deployments > 0, ours = has_strays(s, c, str_of(owner->home));
    if (ours != theirs)
        return ours;
    int64_t older_ms = created_ms(s, c), ms = created_ms(s, owner);
    return older_ms != ms ? older_ms < ms : strcmp(c->key, owner->key) < 0;
}

void hub_homes_settle(cluster_shell *s)
{
    HUB_EACH(&s->clusters, hub_cluster, c)
    {
        hub_cluster *owner = c->denied && !c->home ? hub_find(&s->homes, str_of(c->denied)) : NULL;
        bool may = owner && !owner->named && c->present && !c->deleting;
        if (!may || !had_it_before(s, c, owner))
            continue;
        char *home = hub_copy(s, str_of(owner->home));
        lose(s, owner);
        give(s, c, hub_text(home));
        hub_set(s, &owner->denied, hub_text(home));
        hub_cluster_retell(s, c);
        hub_cluster_retell(s, owner);
        mem_free(home);
    }
    HUB_EACH(&s->clusters, hub_cluster, c)
    if (c->denied && !c->logged)
        log_denied(s, c);
}

void hub_home_free(cluster_shell *s, hub_cluster *c)
{
    hub_cluster *next = NULL;
    if (!c->home)
        return;
    strmap_remove(&s->homes, str_of(c->home));
    HUB_EACH(&s->clusters, hub_cluster, x)
    {
        if (x == c || x->home || !str_eq(hub_text(x->denied), str_of(c->home)))
            continue;
        tell(s, x);
        if (x->present && !x->deleting && (!next || strcmp(x->key, next->key) < 0))
            next = x;
    }
    if (next && s->engine) {
        give(s, next, str_of(c->home));
        hub_cluster_retell(s, next);
    }
    c->home = mem_free(c->home);
}

/* One that was made anew may be another, but its deployments are where it says nothing else. */
static bool keeps(const hub_cluster *c, str home, bool same)
{
    bool other = home.len > 0 ? !str_eq(home, str_of(c->home)) : !c->named;
    return same || !other;
}

void hub_home_take(cluster_shell *s, hub_cluster *c, yyjson_val *json, bool same)
{
    str home = read_text(yyjson_obj_get(json, "status"), "namespace");
    c->says_home = home.len > 0;
    if (!c->home || !keeps(c, home, same)) {
        lose(s, c);
        claim(s, c, home);
    } else if (home.len > 0 && !str_eq(home, str_of(c->home))) {
        deny(s, c, home);
    } else {
        c->denied = mem_free(c->denied);
    }
    bool may_change = c->home ? !c->named : c->denied != NULL;
    hub_set_json(s, &c->json, may_change ? json : NULL);
}

bool hub_home_of(const hub_cluster *c, yyjson_val *labels)
{
    str name = read_text(labels, LABEL_CLUSTER), space = read_text(labels, LABEL_CLUSTER_NAMESPACE);
    bool of =
        (name.len == 0 || str_eq(name, c->name)) && (space.len == 0 || str_eq(space, c->space));
    return of || c->named;
}
