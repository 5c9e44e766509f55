/* SPDX-License-Identifier: Apache-2.0 */
/* Documents and resources as they come in: entities by name, versions in their order. */
#include <assert.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "engine/chain.h"

static int64_t moment_ms(moment m)
{
    return m.seconds * 1000 + m.nanos / 1000000;
}

static int64_t published(const releases *r, const metadata *m)
{
    if (m->creation_timestamp.set)
        return moment_ms(m->creation_timestamp.at);
    return r->core->settings.start_ms;
}

static str identity(const metadata *m)
{
    return m->uid.len > 0 ? m->uid : m->name;
}

/* ---- finding by name; what is not known yet gets a place ---- */

/* Whether the name is known. If not it gets the next place, and the caller fills that in. */
static bool known_at(releases *r, keymap *places, name_id n, size_t next, uint32_t *ret)
{
    *ret = keymap_get(places, n);
    if (*ret != NO)
        return true;
    *ret = (uint32_t)next;
    if (!keymap_put(places, n, *ret))
        rel_no_memory(r);
    return false;
}

static uint32_t deployment_at(releases *r, str name)
{
    name_id n = rel_name(r, name);
    uint32_t at;
    if (!known_at(r, &r->deployment_of, n, r->deployments.len, &at) &&
        !vec_push(&r->deployments, (rel_deployment){.name = n, .id = n, .hash = str_hash(name)}))
        rel_no_memory(r);
    return at;
}

static uint32_t environment_at(releases *r, str name)
{
    name_id n = rel_name(r, name);
    uint32_t at;
    if (!known_at(r, &r->environment_of, n, r->environments.len, &at) &&
        !vec_push(&r->environments, (rel_environment){.name = n, .id = n}))
        rel_no_memory(r);
    return at;
}

static uint32_t resource_at(releases *r, str name)
{
    name_id n = rel_name(r, name);
    uint32_t at;
    rel_resource fresh = {.name = n, .id = n, .active = NO, .wake_ms = NEVER};
    if (!known_at(r, &r->resource_of, n, r->resources.len, &at) && !vec_push(&r->resources, fresh))
        rel_no_memory(r);
    return at;
}

static uint32_t policy_at(releases *r, str name)
{
    name_id n = rel_name(r, name);
    uint32_t at;
    if (!known_at(r, &r->policy_of, n, r->policies.len, &at) &&
        !vec_push(&r->policies, (rel_policy){.name = n}))
        rel_no_memory(r);
    return at;
}

/* ---- versions ---- */

bool version_newer(const releases *r, uint32_t a, uint32_t b)
{
    const rel_version *x = &r->versions.at[a], *y = &r->versions.at[b];
    if (x->published_ms != y->published_ms)
        return x->published_ms > y->published_ms;
    return str_cmp(rel_text(r, x->id), rel_text(r, y->id)) > 0;
}

static void version_place(releases *r, uint32_t v)
{
    index_list *list = &r->deployments.at[r->versions.at[v].deployment].versions;
    index_drop(list, v);
    size_t at = 0;
    while (at < list->len && version_newer(r, list->at[at], v))
        at++;
    index_add(r, list, v);
    if (r->core->no_memory)
        return;
    memmove(&list->at[at + 1], &list->at[at], (list->len - 1 - at) * sizeof *list->at);
    list->at[at] = v;
}

uint32_t version_by_tag(releases *r, uint32_t deployment_, name_id tag)
{
    uint32_t v = keymap_get(&r->version_of, KEY_PAIR(deployment_, tag));
    if (v != NO)
        return v;
    v = (uint32_t)r->versions.len;
    rel_version fresh = {.tag = tag,
                         .id = tag,
                         .wish = str_hash(rel_text(r, tag)) | 1,
                         .deployment = deployment_,
                         .published_ms = LONG_AGO};
    if (!vec_push(&r->versions, fresh) ||
        !keymap_put(&r->version_of, KEY_PAIR(deployment_, tag), v)) {
        rel_no_memory(r);
        return NO;
    }
    version_place(r, v);
    return v;
}

uint32_t version_by_id(const releases *r, str id, str deployment_)
{
    name_id n = names_find(r->core->names, id);
    uint32_t d = NO;
    if (deployment_.len > 0)
        d = keymap_get(&r->deployment_of, names_find(r->core->names, deployment_));
    if (n == 0)
        return NO;
    for (uint32_t v = 0; v < r->versions.len; v++)
        if (r->versions.at[v].id == n && (d == NO || r->versions.at[v].deployment == d))
            return v;
    return d == NO ? NO : keymap_get(&r->version_of, KEY_PAIR(d, n));
}

static void mark_deployment(releases *r, uint32_t d)
{
    const rel_deployment *deployment_ = &r->deployments.at[d];
    for (size_t c = 0; c < deployment_->cells.len; c++) {
        const rel_cell *cell = &r->cells.at[deployment_->cells.at[c]];
        for (size_t l = 0; l < cell->lanes.len; l++)
            mark_lane(r, cell->lanes.at[l]);
    }
}

/* A version's match with a dependency rule is asked again when the version changes. */
static void forget_matches(releases *r, uint32_t v)
{
    uint32_t d = r->versions.at[v].deployment;
    for (size_t i = 0; i < r->rules.len; i++) {
        rel_rule *rule_ = &r->rules.at[i];
        if (v < rule_->matches.len)
            rule_->matches.at[v] = 0;
        if (rule_->kind == RULE_DEPLOYMENT_DEPENDENCY && d < rule_->upstream.len)
            rule_->upstream.at[d] = 0;
        keymap_clear(&rule_->selected);
    }
}

/* Targets whose current version's answer may matter to a dependency. */
static void mark_runners(releases *r, uint32_t d)
{
    const rel_deployment *deployment_ = &r->deployments.at[d];
    for (size_t c = 0; c < deployment_->cells.len; c++) {
        const rel_cell *cell = &r->cells.at[deployment_->cells.at[c]];
        for (size_t i = 0; i < cell->targets.len; i++)
            mark_target(r, cell->targets.at[i]);
    }
}

static void version_gone(releases *r, name_id name)
{
    uint32_t v = keymap_get(&r->version_named, name);
    if (v == NO)
        return;
    keymap_remove(&r->version_named, name);
    r->versions.at[v].doc = NULL;
    r->versions.at[v].name = 0;
    forget_matches(r, v);
    mark_deployment(r, r->versions.at[v].deployment);
    mark_runners(r, r->versions.at[v].deployment);
}

static void version_take(releases *r, const version *doc)
{
    name_id name = rel_name(r, doc->metadata.name);
    uint32_t d = deployment_at(r, doc->spec.deployment);
    name_id tag = rel_name(r, doc->spec.tag.len > 0 ? doc->spec.tag : doc->metadata.name);
    uint32_t old = keymap_get(&r->version_named, name);
    uint32_t v = version_by_tag(r, d, tag);
    if (v == NO)
        return;
    if (old != NO && old != v)
        version_gone(r, name);
    rel_version *version_ = &r->versions.at[v];
    version_->doc = doc;
    version_->name = name;
    version_->id = rel_name(r, identity(&doc->metadata));
    version_->published_ms = published(r, &doc->metadata);
    if (!keymap_put(&r->version_named, name, v))
        rel_no_memory(r);
    version_place(r, v);
    forget_matches(r, v);
    mark_deployment(r, d);
    mark_runners(r, d);
}

/* ---- policies ---- */

static void bracket_settings(rel_rule *rule_, const deployment_bracket *b)
{
    rule_->readiness = b->readiness_mode;
    rule_->unchanged = b->unchanged_member_strategy;
    rule_->overlap = b->overlap_strategy;
    rule_->trigger = b->window_trigger;
    rule_->strategy = b->rollback_strategy;
    rule_->window_ms = b->readiness_mode == READINESS_IMMEDIATE || !b->readiness_window_seconds.set
                           ? 0
                           : b->readiness_window_seconds.value * SECOND_MS;
}

static uint32_t rule_at(releases *r, uint32_t p, str named, rule_kind kind)
{
    name_id id = rel_name(r, named);
    for (uint32_t i = 0; i < r->rules.len; i++)
        if (r->rules.at[i].policy == p && r->rules.at[i].id == id && r->rules.at[i].kind == kind)
            return i;
    rel_rule fresh = {.kind = kind, .id = id, .policy = p, .bracket = NO, .order = {.version = NO}};
    fresh.scope = arena_printf(r->texts, "policy %.*s, rule %.*s",
                               STR_ARG(rel_text(r, r->policies.at[p].name)), STR_ARG(named));
    if (!fresh.scope.ptr || !vec_push(&r->rules, fresh))
        rel_no_memory(r);
    return (uint32_t)r->rules.len - 1;
}

uint32_t rule_gone_at(releases *r, str policy, str id)
{
    uint32_t p = policy_at(r, policy);
    return r->core->no_memory ? NO : rule_at(r, p, id, RULE_DEPLOYMENT_BRACKET);
}

/* Rules are asked for slots in the order of their names. */
static void concurrency_add(releases *r, uint32_t i)
{
    index_list *list = &r->concurrency;
    index_add(r, list, i);
    for (size_t k = list->len; k-- > 1;) {
        if (str_cmp(r->rules.at[list->at[k - 1]].scope, r->rules.at[list->at[k]].scope) <= 0)
            return;
        uint32_t swap = list->at[k];
        list->at[k] = list->at[k - 1];
        list->at[k - 1] = swap;
    }
}

static void rule_take(releases *r, uint32_t p, const rule *doc)
{
    uint32_t i = rule_at(r, p, doc->id, doc->kind);
    if (r->core->no_memory)
        return;
    rel_rule *rule_ = &r->rules.at[i];
    rule_->doc = doc;
    rule_->bracket = NO;
    rule_->matches.len = 0;
    rule_->upstream.len = 0;
    keymap_clear(&rule_->selected);
    rule_->windows = window_free(rule_->windows);
    index_add(r, &r->policies.at[p].rules, i);
    if (doc->kind == RULE_DEPLOYMENT_BRACKET)
        bracket_settings(rule_, doc->deployment_bracket);
    if (doc->kind == RULE_RESOURCE_CONCURRENCY && !index_has(&r->concurrency, i))
        concurrency_add(r, i);
    for (size_t k = 0; k < r->bypasses.len; k++)
        if (r->bypasses.at[k].rule == rule_->id)
            rule_->bypassed = true;
}

static void concurrency_members(releases *r, uint32_t i)
{
    rel_rule *rule_ = &r->rules.at[i];
    rule_->matched = 0;
    for (uint32_t res = 0; res < r->resources.len; res++) {
        bool in = false;
        if (r->resources.at[res].object)
            /* An expression that fails puts the resource into the group: the limit then counts it.
             */
            if (!scope_resource_matches(r, &rule_->doc->resource_concurrency->group_selector, res,
                                        &in, NULL))
                in = true;
        if (!bitset_put(&rule_->group, res, in))
            rel_no_memory(r);
        rule_->matched += in;
        if (!in && hold_find(r, res, i))
            mark_resource(r, res);
    }
}

static void policy_leave(releases *r, uint32_t p)
{
    rel_policy *policy = &r->policies.at[p];
    for (size_t k = 0; k < policy->rules.len; k++)
        r->rules.at[policy->rules.at[k]].doc = NULL;
    policy->rules.len = 0;
}

/* Rules the policy no longer has give their slots back. */
static void policy_bury(releases *r, uint32_t p)
{
    for (uint32_t i = 0; i < r->rules.len; i++) {
        rel_rule *rule_ = &r->rules.at[i];
        if (rule_->policy != p || rule_->doc)
            continue;
        rule_->peak = rule_->quarantined = 0;
        if (rule_->kind != RULE_RESOURCE_CONCURRENCY)
            continue;
        index_drop(&r->concurrency, i);
        index_list holders = {0};
        for (uint32_t res = 0; res < r->resources.len; res++)
            if (hold_find(r, res, i))
                index_add(r, &holders, res);
        resources_in_order(r, &holders);
        for (size_t k = 0; k < holders.len; k++)
            slot_release(r, holders.at[k], i, STR("the rule is gone"));
        vec_done(&holders);
    }
}

static void policy_take(releases *r, const rollout_policy *doc)
{
    uint32_t p = policy_at(r, doc->metadata.name);
    if (r->core->no_memory)
        return;
    policy_leave(r, p);
    r->policies.at[p].doc = doc;
    for (size_t i = 0; doc->spec.enabled && i < doc->spec.rules.len; i++)
        rule_take(r, p, &doc->spec.rules.at[i]);
    const rel_policy *policy = &r->policies.at[p];
    uint32_t bracket = NO;
    for (size_t k = policy->rules.len; k-- > 0;)
        if (r->rules.at[policy->rules.at[k]].kind == RULE_DEPLOYMENT_BRACKET)
            bracket = policy->rules.at[k];
    for (size_t k = 0; k < policy->rules.len; k++) {
        rel_rule *rule_ = &r->rules.at[policy->rules.at[k]];
        rule_->bracket = bracket;
        if (rule_->kind == RULE_RESOURCE_CONCURRENCY)
            concurrency_members(r, policy->rules.at[k]);
    }
    policy_bury(r, p);
    for (uint32_t i = 0; i < r->rules.len; i++)
        if (r->rules.at[i].policy == p && rule_paces(r->rules.at[i].kind))
            paces_rule_changed(r, i);
    policy_match_all(r, p);
    mark_anew(r);
}

static void policy_gone(releases *r, name_id name)
{
    uint32_t p = keymap_get(&r->policy_of, name);
    if (p == NO)
        return;
    policy_leave(r, p);
    r->policies.at[p].doc = NULL;
    for (uint32_t i = 0; i < r->rules.len; i++)
        if (r->rules.at[i].policy == p && rule_paces(r->rules.at[i].kind))
            paces_rule_changed(r, i);
    policy_bury(r, p);
    policy_match_all(r, p);
    mark_anew(r);
}

/* ---- documents ---- */

/* What refers to an entity by expression is asked again. */
static void forget_upstream(releases *r)
{
    for (size_t i = 0; i < r->rules.len; i++) {
        r->rules.at[i].matches.len = 0;
        r->rules.at[i].upstream.len = 0;
        keymap_clear(&r->rules.at[i].selected);
    }
}

static void policies_match_again(releases *r)
{
    for (uint32_t p = 0; p < r->policies.len; p++)
        if (r->policies.at[p].doc)
            policy_match_all(r, p);
    forget_upstream(r);
    for (uint32_t t = 0; t < r->targets.len; t++)
        if (r->targets.at[t].id != 0)
            freezes_match(r, t);
    mark_anew(r);
}

void document_take(releases *r, const object *o)
{
    if (o->kind == KIND_VERSION) {
        version_take(r, o->version);
        return;
    }
    if (o->kind == KIND_ROLLOUT_POLICY) {
        policy_take(r, o->rollout_policy);
        return;
    }
    if (o->kind == KIND_DEPLOYMENT) {
        uint32_t d = deployment_at(r, o->metadata->name);
        if (r->core->no_memory)
            return;
        /* Also one that was gone: rules were asked about it without its document. */
        bool known = r->deployments.at[d].doc || r->deployments.at[d].cells.len > 0;
        r->deployments.at[d].doc = o->deployment;
        r->deployments.at[d].id = rel_name(r, identity(o->metadata));
        targets_of_deployment(r, d);
        if (known)
            policies_match_again(r);
        return;
    }
    uint32_t e = environment_at(r, o->metadata->name);
    if (r->core->no_memory)
        return;
    bool known = r->environments.at[e].doc || r->environments.at[e].cells.len > 0;
    r->environments.at[e].doc = o->environment;
    r->environments.at[e].id = rel_name(r, identity(o->metadata));
    targets_of_environment(r, e);
    if (known)
        policies_match_again(r);
    else
        mark_anew(r);
}

void document_gone(releases *r, const object *o)
{
    name_id name = names_find(r->core->names, o->metadata->name);
    uint32_t at = NO;
    if (o->kind == KIND_VERSION) {
        version_gone(r, name);
    } else if (o->kind == KIND_ROLLOUT_POLICY) {
        policy_gone(r, name);
    } else if (o->kind == KIND_DEPLOYMENT && (at = keymap_get(&r->deployment_of, name)) != NO) {
        r->deployments.at[at].doc = NULL;
        targets_of_deployment(r, at);
    } else if (o->kind == KIND_ENVIRONMENT && (at = keymap_get(&r->environment_of, name)) != NO) {
        r->environments.at[at].doc = NULL;
        targets_of_environment(r, at);
        mark_anew(r);
    }
}

/* ---- resources ---- */

static void concurrency_resource(releases *r, uint32_t res)
{
    for (size_t k = 0; k < r->concurrency.len; k++) {
        rel_rule *rule_ = &r->rules.at[r->concurrency.at[k]];
        bool was = bitset_has(&rule_->group, res), in = false;
        if (r->resources.at[res].object &&
            !scope_resource_matches(r, &rule_->doc->resource_concurrency->group_selector, res, &in,
                                    NULL))
            in = true;
        if (!bitset_put(&rule_->group, res, in))
            rel_no_memory(r);
        rule_->matched += (int64_t)in - (int64_t)was;
    }
}

/* What versionSelector said of the resource as it was. */
static void selected_forget(releases *r, uint32_t res)
{
    const index_list *targets = &r->resources.at[res].targets;
    for (size_t i = 0; i < r->rules.len; i++) {
        rel_rule *rule_ = &r->rules.at[i];
        if (rule_->kind != RULE_VERSION_SELECTOR || rule_->selected.len == 0)
            continue;
        for (size_t k = 0; k < targets->len; k++) {
            const rel_target *t = &r->targets.at[targets->at[k]];
            const index_list *versions = &r->deployments.at[t->deployment].versions;
            for (size_t v = 0; v < versions->len; v++)
                keymap_remove(&rule_->selected,
                              KEY_PAIR(versions->at[v], SELECTED_BY_TARGET | targets->at[k]));
        }
    }
}

void resource_take(releases *r, const fact_target *f)
{
    if (!f->document)
        return;
    uint32_t res = resource_at(r, f->name);
    if (r->core->no_memory)
        return;
    name_id id = rel_name(r, f->uid.len > 0 ? f->uid : identity(f->document->metadata));
    if (r->resources.at[res].object && r->resources.at[res].id != id)
        resource_gone(r, f->name);
    rel_resource *resource_ = &r->resources.at[res];
    resource_->object = f->document;
    resource_->id = id;
    if (f->document->resource->status.quarantined)
        resource_->quarantined = true;
    concurrency_resource(r, res);
    targets_of_resource(r, res);
    selected_forget(r, res);
    mark_resource_all(r, res);
}

void resource_gone(releases *r, str name)
{
    uint32_t res = keymap_get(&r->resource_of, names_find(r->core->names, name));
    if (res == NO || !r->resources.at[res].object)
        return;
    r->resources.at[res].object = NULL;
    r->resources.at[res].quarantined = false;
    r->resources.at[res].halted = false;
    concurrency_resource(r, res);
    targets_of_resource(r, res);
    const index_list *sites = &r->resources.at[res].sites;
    for (size_t i = 0; i < sites->len; i++)
        r->sites.at[sites->at[i]].groups = r->sites.at[sites->at[i]].announced = 0;
    /* Should it come back, it is one that was added later: at the end of every order. */
    for (size_t i = 0; i < r->rules.len; i++)
        keymap_remove(&r->rules.at[i].order.positions, res);
    while (r->resources.at[res].holds.len > 0)
        slot_release(r, res, r->resources.at[res].holds.at[0].rule, STR("gone"));
}
