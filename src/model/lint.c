/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lint.h"

#include "base/strmap.h"
#include "model/json.h"
#include "model/lint_internal.h"
#include "model/scope.h"

/* ---- what the other files use ---- */

place lint_root(const object *o)
{
    if (o->document)
        return place_root(o->document);
    return (place){.value = &json_empty_object};
}

void lint_rule_at(lint_rule_place *p, const object *policy, size_t index)
{
    const rule *r = &policy->rollout_policy->spec.rules.at[index];
    p->root = lint_root(policy);
    p->spec = place_key(&p->root, STR("spec"));
    p->rules = place_key(&p->spec, STR("rules"));
    p->item = place_at(&p->rules, index);
    p->kind = place_key(&p->item, str_of(rule_kind_text(r->kind)));
}

static bool is_of_kind(const document *d, object_kind kind)
{
    object_kind found;
    return object_kind_find(d->api_version, d->kind, &found) && found == kind;
}

bool lint_left_out(const lint *l, object_kind kind)
{
    for (size_t i = 0; i < l->objects->left_out.len; i++)
        if (is_of_kind(l->objects->left_out.at[i], kind))
            return true;
    return false;
}

static cel_value value_of(str variable, lint_bindings with)
{
    const cel_value *known = str_eq(variable, STR("deployment"))    ? with.deployment
                             : str_eq(variable, STR("environment")) ? with.environment
                             : str_eq(variable, STR("resource"))    ? with.resource
                                                                    : NULL;
    return known ? *known : (cel_value){.kind = CEL_ERROR, .code = CEL_NO_SUCH_VARIABLE};
}

lint_answer lint_ask(lint *l, const expression *e, lint_bindings with)
{
    cel_value bindings[4];
    const str *names;
    if (!e->source.ptr)
        return LINT_YES;
    if (!e->program)
        return LINT_MAYBE;
    size_t count = expression_scope_variables(e->scope, &names);
    for (size_t i = 0; i < count; i++)
        bindings[i] = value_of(names[i], with);
    arena_place start = arena_mark(l->scratch);
    cel_value result = cel_eval(e->program, bindings, l->scratch, NULL);
    arena_rewind(l->scratch, start);
    if (result.kind == CEL_BOOL)
        return result.b ? LINT_YES : LINT_NO;
    if (result.kind == CEL_ERROR && result.code == CEL_MEMORY)
        problems_memory(l->found);
    bool missing = result.kind == CEL_ERROR && result.code == CEL_NO_SUCH_KEY;
    return missing ? LINT_NO : LINT_MAYBE; /* a missing key is "no" wherever expressions decide */
}

void lint_warn_share(lint *l, const place *at, const lint_share *share)
{
    const char *many = share->count == 1 ? "" : "s";
    if (share->count <= 1)
        return;
    if (share->taken >= share->count)
        place_warning(at, l->found, "%s of %lld %s%s is all of them at once", share->percent,
                      (long long)share->count, share->thing, many);
    else if (share->taken == 1 && share->hundredths != 100)
        place_warning(at, l->found, "%s of %lld %s%s is %lld.%02lld, which is taken as 1",
                      share->percent, (long long)share->count, share->thing, many,
                      (long long)(share->hundredths / 100), (long long)(share->hundredths % 100));
}

void lint_warn_percent(lint *l, const place *at, int64_t percent, int64_t count, const char *thing)
{
    char text[32];
    if (percent == 100)
        place_warning(at, l->found, "100%% is all %ss at once", thing);
    if (percent == 100)
        return;
    snprintf(text, sizeof text, "%lld%%", (long long)percent);
    int64_t hundredths = count * percent; /* both are far below 2^31 */
    lint_share share = {
        .percent = text,
        .thing = thing,
        .count = count,
        .hundredths = hundredths,
        .taken = hundredths < 100 ? 1 : hundredths / 100,
    };
    lint_warn_share(l, at, &share);
}

/* ---- errors ---- */

/* "in FILE:LINE", for the other of two. */
static str where(lint *l, const object *o)
{
    if (!o->document)
        return STR("made up");
    str text = arena_printf(l->arena, "in %.*s:%u", STR_ARG(o->document->file),
                            document_line(o->document, o->document->root));
    if (!text.ptr)
        problems_memory(l->found);
    return text.ptr ? text : STR_EMPTY;
}

/* Notes an object under a key. The one that had it before, or NULL. */
static const object *claim(lint *l, strmap *taken, str key, const object *o)
{
    if (!key.ptr) {
        problems_memory(l->found);
        return NULL;
    }
    uint64_t *before = strmap_get(taken, key);
    if (before)
        return (const object *)(uintptr_t)*before;
    if (!strmap_put(taken, key, (uint64_t)(uintptr_t)o))
        problems_memory(l->found);
    return NULL;
}

static void check_duplicates(lint *l, const object_list *objects, strmap *taken)
{
    for (size_t i = 0; i < objects->len; i++) {
        const object *o = &objects->at[i];
        if (o->kind == KIND_FLEET_YAML)
            continue;
        str key = arena_printf(l->arena, "%d/%.*s/%.*s", (int)o->kind,
                               STR_ARG(o->metadata->namespace_), STR_ARG(o->metadata->name));
        const object *first = claim(l, taken, key, o);
        if (!first)
            continue;
        place root = lint_root(o), meta = place_key(&root, STR("metadata"));
        place name = place_key(&meta, STR("name"));
        place_error(&name, l->found,
                    "found a second %s of this name, allowed one; the first is %.*s",
                    object_kind_text(o->kind), STR_ARG(where(l, first)));
    }
}

static void check_tags(lint *l, strmap *taken)
{
    for (size_t i = 0; i < lint_count(l, KIND_VERSION); i++) {
        const object *o = l->of[KIND_VERSION].at[i];
        const struct version_spec *spec = &o->version->spec;
        str key =
            arena_printf(l->arena, "tag/%.*s/%.*s", STR_ARG(spec->deployment), STR_ARG(spec->tag));
        const object *first = claim(l, taken, key, o);
        if (!first || str_eq(first->metadata->name, o->metadata->name))
            continue;
        place root = lint_root(o), at_spec = place_key(&root, STR("spec"));
        place tag = place_key(&at_spec, STR("tag"));
        place_error(
            &tag, l->found,
            "found tag \"%s\" of deployment \"%s\" a second time, allowed once; the first is "
            "Version/%s %.*s",
            str_shown(spec->tag).text, str_shown(spec->deployment).text,
            str_shown(first->metadata->name).text, STR_ARG(where(l, first)));
    }
}

/* Names of a kind, of documents that have errors too. */
static bool index_names(lint *l, object_kind kind, strmap *names)
{
    const document **broken = l->objects->left_out.at;
    for (size_t i = 0; i < lint_count(l, kind); i++)
        if (!strmap_put(names, l->of[kind].at[i]->metadata->name, i))
            return problems_memory(l->found);
    for (size_t i = 0; i < l->objects->left_out.len; i++)
        if (is_of_kind(broken[i], kind) && !strmap_put(names, broken[i]->name, i))
            return problems_memory(l->found);
    return true;
}

static void missing(lint *l, const place *at, str name, const char *kind)
{
    place_error(at, l->found, "found \"%s\", allowed the name of a %s among the documents",
                str_shown(name).text, kind);
}

static void check_policies(lint *l)
{
    strmap policies = {0};
    bool good = index_names(l, KIND_DEPLOYMENT_POLICY, &policies);
    for (size_t i = 0; good && i < lint_count(l, KIND_SKYHOOK); i++) {
        const object *o = l->of[KIND_SKYHOOK].at[i];
        str name = o->skyhook->spec.deployment_policy;
        if (name.len == 0 || strmap_get(&policies, name))
            continue;
        place root = lint_root(o), spec = place_key(&root, STR("spec"));
        place at = place_key(&spec, STR("deploymentPolicy"));
        missing(l, &at, name, "DeploymentPolicy");
    }
    strmap_done(&policies);
}

static void check_version(lint *l, const object *o, const strmap *deployments)
{
    const struct version_spec *v = &o->version->spec;
    place root = lint_root(o), spec = place_key(&root, STR("spec"));
    place at_deployment = place_key(&spec, STR("deployment"));
    place edges = place_key(&spec, STR("dependsOn"));
    if (!strmap_get(deployments, v->deployment))
        missing(l, &at_deployment, v->deployment, "Deployment");
    for (size_t i = 0; i < v->depends_on.len; i++) {
        place edge = place_at(&edges, i), at = place_key(&edge, STR("deployment"));
        if (!strmap_get(deployments, v->depends_on.at[i].deployment))
            missing(l, &at, v->depends_on.at[i].deployment, "Deployment");
    }
}

static void check_versions(lint *l)
{
    strmap deployments = {0};
    if (index_names(l, KIND_DEPLOYMENT, &deployments))
        for (size_t i = 0; i < lint_count(l, KIND_VERSION); i++)
            check_version(l, l->of[KIND_VERSION].at[i], &deployments);
    strmap_done(&deployments);
}

/* ---- all of it ---- */

static cel_value *see(lint *l, object_kind kind, cel_value (*as_value)(arena *, const object *))
{
    size_t count = lint_count(l, kind);
    cel_value *values = ARENA_ARRAY(l->arena, count + 1, cel_value);
    for (size_t i = 0; values && i < count; i++) {
        values[i] = as_value(l->arena, l->of[kind].at[i]);
        if (values[i].kind == CEL_ERROR)
            return NULL;
    }
    return values;
}

static bool prepare(lint *l, const object_list *objects)
{
    l->arena = arena_new(0);
    l->scratch = arena_new(LIMIT_CEL_EVAL_BYTES);
    if (!l->arena || !l->scratch)
        return false;
    for (size_t i = 0; i < objects->len; i++)
        if (!vec_push(&l->of[objects->at[i].kind], &objects->at[i]))
            return false;
    l->deployments = see(l, KIND_DEPLOYMENT, scope_deployment);
    l->environments = see(l, KIND_ENVIRONMENT, scope_environment);
    l->resources = see(l, KIND_RESOURCE, scope_resource);
    return l->deployments && l->environments && l->resources;
}

static void done(lint *l)
{
    for (size_t i = 0; i < LINT_KINDS; i++)
        vec_done(&l->of[i]);
    arena_free(l->scratch);
    arena_free(l->arena);
}

static bool look(const object_list *objects, problems *found, bool planned)
{
    lint l = {.found = found, .objects = objects};
    strmap taken = {0};
    uint64_t before = problems_errors(found);
    bool good = prepare(&l, objects);
    if (good) {
        check_duplicates(&l, objects, &taken);
        check_tags(&l, &taken);
        if (!planned)
            check_policies(&l);
        check_versions(&l);
        good =
            lint_dependencies(&l) && lint_compartments(&l) && lint_partitions(&l) && lint_rules(&l);
    }
    if (!good)
        problems_memory(found);
    strmap_done(&taken);
    done(&l);
    return problems_errors(found) == before && !problems_out_of_memory(found);
}

bool lint_all(const object_list *objects, problems *found)
{
    return look(objects, found, false);
}

bool lint_planned(const object_list *objects, problems *found)
{
    return look(objects, found, true);
}
