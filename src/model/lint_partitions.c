/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about rolloutStrategy, in bundles, in fleet.yaml and as a rule.
 *
 * When the documents name clusters, they are matched as Fleet does it, so that it is known what
 * percentages come to and who is in two partitions. A fleet.yaml does not say which clusters it
 * goes to: all of them are taken. Mappings into other namespaces are not followed. */
#include "model/lint_internal.h"

/* Twice the 15 minutes after which agents check in. */
#define CHECK_IN_SECONDS_LEAST (2 * 15 * 60)
#define DISPLAY_NAME_LABEL "management.cattle.io/cluster-display-name"

typedef struct member {
    const object *cluster;
    lint_objects groups; /* it belongs to */
} member;

typedef struct clusters {
    lint *l;
    member *at;
    size_t len;
} clusters;

/* A strategy, where it stands, and the clusters it is about. */
typedef struct subject {
    const clusters *all;
    const rollout_strategy *strategy;
    const place *at;
    const member **targets;
    size_t target_count;
    bool in_text; /* of an annotation: it cannot be told what stands there and what is a default */
} subject;

/* ---- who is meant ---- */

static bool accepts(const cluster_match *m, const metadata *c, const metadata *group)
{
    bool given = false;
    if (m->cluster_name.len > 0) {
        given = true;
        if (!str_eq(m->cluster_name, c->name) &&
            !str_eq(m->cluster_name, label_get(c->labels, STR(DISPLAY_NAME_LABEL))))
            return false;
    }
    if (m->cluster_group.len > 0) {
        given = true;
        if (!group || !str_eq(m->cluster_group, group->name))
            return false;
    }
    if (m->cluster_group_selector.compiled) {
        given = true;
        label_set none = {0};
        if (!selector_match(m->cluster_group_selector.compiled, group ? group->labels : none))
            return false;
    }
    if (m->cluster_selector.compiled) {
        given = true;
        if (!selector_match(m->cluster_selector.compiled, c->labels))
            return false;
    }
    return given;
}

static bool matches(const cluster_match *m, const member *c)
{
    if (c->groups.len == 0)
        return accepts(m, c->cluster->metadata, NULL);
    for (size_t g = 0; g < c->groups.len; g++)
        if (accepts(m, c->cluster->metadata, c->groups.at[g]->metadata))
            return true;
    return false;
}

static bool collect(lint *l, clusters *all)
{
    all->l = l;
    all->at = ARENA_ARRAY(l->arena, lint_count(l, KIND_CLUSTER) + 1, member);
    if (!all->at)
        return false;
    for (size_t i = 0; i < lint_count(l, KIND_CLUSTER); i++) {
        member *m = &all->at[all->len++];
        m->cluster = l->of[KIND_CLUSTER].at[i];
        for (size_t g = 0; g < lint_count(l, KIND_CLUSTER_GROUP); g++) {
            const object *group = l->of[KIND_CLUSTER_GROUP].at[g];
            bool in = str_eq(group->metadata->namespace_, m->cluster->metadata->namespace_) &&
                      selector_match(group->cluster_group->spec.selector.compiled,
                                     m->cluster->metadata->labels);
            if (in && !vec_push(&m->groups, group))
                return false;
        }
    }
    return true;
}

static bool restricted(const bundle_spec *spec, const member *c)
{
    for (size_t i = 0; i < spec->target_restrictions.len; i++)
        if (matches(&spec->target_restrictions.at[i].match, c))
            return false;
    return spec->target_restrictions.len > 0;
}

/* With restrictions, the targets in front of as many at the end are customizations. */
static bool is_target(const bundle_spec *spec, const member *c)
{
    size_t targets = spec->targets.len, restrictions = spec->target_restrictions.len;
    size_t first = restrictions > 0 && targets > restrictions ? targets - restrictions : 0;
    for (size_t i = first; i < targets; i++)
        if (matches(&spec->targets.at[i].match, c))
            return !spec->targets.at[i].do_not_deploy && !restricted(spec, c);
    return false;
}

/* ---- what is said of a strategy ---- */

static bool is_everything(int_or_percent v)
{
    return v.kind == AMOUNT_PERCENT && v.value >= 100 * AMOUNT_PERCENT_SCALE;
}

static void warn_amount(const subject *s, const place *at, int_or_percent v, int64_t count)
{
    if (v.kind != AMOUNT_PERCENT || v.value < 0 || v.value > 100 * AMOUNT_PERCENT_SCALE)
        return;
    char percent[64];
    snprintf(percent, sizeof percent, "%.*s", STR_ARG(v.text));
    lint_share share = {
        .percent = percent,
        .thing = "cluster",
        .count = count,
        .hundredths = count * (v.value / (AMOUNT_PERCENT_SCALE / 1000)) / 1000,
        .taken = int_or_percent_limit(v, count),
    };
    lint_warn_share(s->all->l, at, &share);
}

static void check_limit(const subject *s, const place *at, int_or_percent v, int64_t count)
{
    problems *found = s->all->l->found;
    place limit = place_key(at, STR("maxUnavailable"));
    bool given = s->in_text || limit.value != at->value;
    if (is_everything(v) && given)
        place_warning(&limit, found, "%.*s turns every check off: all may be unavailable at once",
                      STR_ARG(v.text));
    else if (is_everything(v))
        place_warning(&limit, found,
                      "it is not given, which means 100%% and turns every check off");
    else
        warn_amount(s, &limit, v, count);
}

static void warn_overlap(const subject *s, size_t a, size_t b, const place *item)
{
    const partition *first = &s->strategy->partitions.at[a];
    const partition *second = &s->strategy->partitions.at[b];
    for (size_t t = 0; t < s->target_count; t++) {
        if (!matches(&first->match, s->targets[t]) || !matches(&second->match, s->targets[t]))
            continue;
        place_warning(
            item, s->all->l->found, "it overlaps with partition \"%s\": cluster \"%s\" is in both",
            str_shown(first->name).text, str_shown(s->targets[t]->cluster->metadata->name).text);
        return;
    }
}

static void check_partition(const subject *s, size_t index, const place *list)
{
    const partition *p = &s->strategy->partitions.at[index];
    place item = place_at(list, index), name = place_key(&item, STR("name"));
    int64_t count = 0;
    for (size_t t = 0; t < s->target_count; t++)
        count += matches(&p->match, s->targets[t]);
    if (p->max_unavailable.kind != AMOUNT_NONE)
        check_limit(s, &item, p->max_unavailable, count);
    for (size_t other = 0; other < index; other++) {
        if (p->name.len > 0 && str_eq(p->name, s->strategy->partitions.at[other].name))
            place_warning(&name, s->all->l->found,
                          "partition %zu has the same name: they cannot be told apart", other);
        warn_overlap(s, other, index, &item);
    }
}

static void check_strategy(const subject *s)
{
    const rollout_strategy *r = s->strategy;
    int64_t count = (int64_t)s->target_count;
    bool own = r->partitions.len > 0; /* every partition has a limit of its own */
    for (size_t i = 0; i < r->partitions.len; i++)
        own = own && r->partitions.at[i].max_unavailable.kind != AMOUNT_NONE;
    if (!own)
        check_limit(s, s->at, r->max_unavailable, count);
    bool automatic = r->partitions.len == 0 && r->auto_partition_threshold > 0 &&
                     count >= r->auto_partition_threshold;
    place size = place_key(s->at, STR("autoPartitionSize"));
    if (automatic)
        warn_amount(s, &size, r->auto_partition_size, count);
    place offline = place_key(s->at, STR("offlineAfterSeconds"));
    if (r->offline_after_seconds.set && r->offline_after_seconds.value < CHECK_IN_SECONDS_LEAST)
        place_warning(&offline, s->all->l->found,
                      "%lld seconds are less than two check-ins of an agent, %d seconds: clusters "
                      "that are well may be left out",
                      (long long)r->offline_after_seconds.value, CHECK_IN_SECONDS_LEAST);
    place list = place_key(s->at, STR("partitions"));
    for (size_t i = 0; i < r->partitions.len; i++)
        check_partition(s, i, &list);
}

/* ---- where strategies stand ---- */

/* The annotation is the same object for those whose CRDs drop what they do not know. */
static void check_annotation(const subject *of, str text, const place *root)
{
    err error;
    rollout_strategy read;
    lint *l = of->all->l;
    place meta = place_key(root, STR("metadata"));
    place annotations = place_key(&meta, STR("annotations"));
    place at = place_key(&annotations, STR(ANNOTATION_ROLLOUT_STRATEGY));
    if (!rollout_strategy_parse(l->arena, text, &read, &error)) /* else the Bundle was not read */
        return;
    subject s = *of;
    s.strategy = &read;
    s.at = &at;
    s.in_text = true;
    check_strategy(&s);
}

/* What a Bundle asks for, and nobody here does. */
static void warn_of_copies(lint *l, const bundle_options *options, const place *in)
{
    const raw_json list = options->downstream_resources;
    place at = place_key(in, STR("downstreamResources"));
    if (list && yyjson_arr_size((yyjson_val *)(uintptr_t)list) > 0)
        place_warning(&at, l->found,
                      "Drover's controller copies nothing to clusters: an agent that needs these "
                      "does not find them");
}

static void warn_of_all_copies(lint *l, const bundle_target_list *targets, const place *in)
{
    place list = place_key(in, STR("targets"));
    for (size_t i = 0; i < targets->len; i++) {
        place at = place_at(&list, i);
        warn_of_copies(l, &targets->at[i].options, &at);
    }
}

static void check_bundle(const clusters *all, const object *o, const member **targets)
{
    const bundle_spec *spec = &o->bundle->spec;
    place root = lint_root(o), at_spec = place_key(&root, STR("spec"));
    place at = place_key(&at_spec, STR("rolloutStrategy"));
    subject s = {.all = all, .strategy = &spec->rollout_strategy, .at = &at, .targets = targets};
    for (size_t i = 0; i < all->len; i++) {
        const member *c = &all->at[i];
        if (str_eq(c->cluster->metadata->namespace_, o->metadata->namespace_) && is_target(spec, c))
            targets[s.target_count++] = c;
    }
    warn_of_copies(all->l, &spec->options, &at_spec);
    warn_of_all_copies(all->l, &spec->targets, &at_spec);
    str annotation = label_get(o->metadata->annotations, STR(ANNOTATION_ROLLOUT_STRATEGY));
    if (annotation.ptr)
        check_annotation(&s, annotation, &root);
    else
        check_strategy(&s);
}

static void check_fleet_yaml(const clusters *all, const object *o, const member **targets)
{
    place root = lint_root(o), at = place_key(&root, STR("rolloutStrategy"));
    subject s = {
        .all = all, .strategy = &o->fleet_yaml->rollout_strategy, .at = &at, .targets = targets};
    for (size_t i = 0; i < all->len; i++)
        targets[s.target_count++] = &all->at[i];
    check_strategy(&s);
}

static void check_rules(const clusters *all, const object *o)
{
    const struct rollout_policy_spec *spec = &o->rollout_policy->spec;
    for (size_t i = 0; i < spec->rules.len; i++) {
        if (spec->rules.at[i].kind != RULE_ROLLOUT_STRATEGY)
            continue;
        lint_rule_place p;
        lint_rule_at(&p, o, i);
        subject s = {.all = all, .strategy = spec->rules.at[i].rollout_strategy, .at = &p.kind};
        check_strategy(&s);
    }
}

/* The first deployment that both policies surely select; NULL: none. */
static const object *selected_by_both(lint *l, const object *a, const object *b)
{
    for (size_t d = 0; d < lint_count(l, KIND_DEPLOYMENT); d++) {
        lint_bindings with = {.deployment = &l->deployments[d]};
        if (lint_ask(l, &a->rollout_policy->spec.selector, with) == LINT_YES &&
            lint_ask(l, &b->rollout_policy->spec.selector, with) == LINT_YES)
            return l->of[KIND_DEPLOYMENT].at[d];
    }
    return NULL;
}

/* The policy's first rolloutStrategy behind that rule; the number of rules: none. */
static size_t strategy_from(const object *policy, size_t i)
{
    const struct rollout_policy_spec *spec = &policy->rollout_policy->spec;
    while (i < spec->rules.len && spec->rules.at[i].kind != RULE_ROLLOUT_STRATEGY)
        i++;
    return spec->enabled ? i : spec->rules.len;
}

/* A second rolloutStrategy over the same targets. */
static void check_second(lint *l, size_t policy)
{
    static const char *const why =
        "where their partitions come in contrary orders, each waits for the other";
    const object *o = l->of[KIND_ROLLOUT_POLICY].at[policy];
    size_t count = o->rollout_policy->spec.rules.len, first = strategy_from(o, 0);
    if (first == count)
        return;
    lint_rule_place p;
    size_t second = strategy_from(o, first + 1);
    if (second < count) {
        lint_rule_at(&p, o, second);
        place_warning(&p.kind, l->found, "the policy has two such rules: %s", why);
    }
    lint_rule_at(&p, o, first);
    for (size_t i = 0; i < policy; i++) {
        const object *other = l->of[KIND_ROLLOUT_POLICY].at[i];
        const object *both = strategy_from(other, 0) < other->rollout_policy->spec.rules.len
                                 ? selected_by_both(l, other, o)
                                 : NULL;
        if (!both)
            continue;
        place_warning(
            &p.kind, l->found, "policy \"%s\" has such a rule for deployment \"%s\", too: %s",
            str_shown(other->metadata->name).text, str_shown(both->metadata->name).text, why);
        return;
    }
}

bool lint_partitions(lint *l)
{
    clusters all = {0};
    const member **targets = ARENA_ARRAY(l->arena, lint_count(l, KIND_CLUSTER) + 1, const member *);
    bool good = collect(l, &all) && targets;
    for (size_t i = 0; good && i < lint_count(l, KIND_BUNDLE); i++)
        check_bundle(&all, l->of[KIND_BUNDLE].at[i], targets);
    for (size_t i = 0; good && i < lint_count(l, KIND_FLEET_YAML); i++)
        check_fleet_yaml(&all, l->of[KIND_FLEET_YAML].at[i], targets);
    for (size_t i = 0; good && i < lint_count(l, KIND_ROLLOUT_POLICY); i++) {
        check_rules(&all, l->of[KIND_ROLLOUT_POLICY].at[i]);
        check_second(l, i);
    }
    for (size_t i = 0; i < all.len; i++)
        vec_done(&all.at[i].groups);
    return good;
}
