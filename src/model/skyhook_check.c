/* SPDX-License-Identifier: Apache-2.0 */
#include "model/skyhook_check.h"

#include <inttypes.h>

#include "base/mem.h"
#include "model/json.h"
#include "model/shape_value.h"
#include "model/skyhook.h"

/* ---- one package ---- */

/* ^[a-z][-a-z0-9]{0,41}[a-z]$ */
static bool package_name_valid(str name)
{
    if (name.len < 2 || name.len > PACKAGE_NAME_MOST)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = c >= 'a' && c <= 'z';
        bool inner = (c == '-' || (c >= '0' && c <= '9')) && i > 0 && i + 1 < name.len;
        if (!letter && !inner)
            return false;
    }
    return true;
}

static void check_name(reader *r, const place *at, package *p)
{
    if (!package_name_valid(p->key))
        reader_error(
            r, at,
            "found the package name \"%s\", allowed 2 to 43 lower case letters, digits and "
            "\"-\" that begin and end with a letter",
            str_shown(p->key).text);
    if (p->name.len == 0) {
        p->name = p->key;
    } else if (!str_eq(p->name, p->key)) {
        place here = place_key(at, STR("name"));
        reader_error(r, &here, "found \"%s\", allowed the package's key \"%s\" or nothing",
                     str_shown(p->name).text, str_shown(p->key).text);
    }
}

/* The tag is what follows the last ":" behind the last "/": a registry may have a port. */
static void check_image(reader *r, const place *at, package *p)
{
    place here = place_key(at, STR("image"));
    size_t slash = 0;
    for (size_t i = 0; i < p->image.len; i++)
        if (p->image.ptr[i] == '/')
            slash = i + 1;
    size_t colon = SIZE_MAX;
    for (size_t i = slash; i < p->image.len; i++) {
        if (p->image.ptr[i] == '@') {
            reader_error(r, &here, "found a digest in the image, allowed there: containerSHA");
            return;
        }
        if (p->image.ptr[i] == ':')
            colon = i;
    }
    if (colon == SIZE_MAX)
        return;
    str tag = str_part(p->image, colon + 1, SIZE_MAX);
    if (!str_eq(tag, p->version))
        reader_error(r, &here,
                     "found the tag \"%s\", allowed none: the version \"%s\" is the image's tag",
                     str_shown(tag).text, str_shown(p->version).text);
    p->image = str_part(p->image, 0, colon);
    if (p->image.len == slash)
        reader_error(r, &here, "found an image without a name");
}

/* "*" matches any text, "?" one byte. */
static bool glob_match(str pattern, str text)
{
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX;
    size_t mark = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

static void check_config_interrupts(reader *r, const place *at, const package *p)
{
    place all = place_key(at, STR("configInterrupts"));
    if (p->config_interrupts.len > LIMIT_CONFIG_INTERRUPTS)
        reader_error(r, &all, "found %zu entries, allowed %u", p->config_interrupts.len,
                     LIMIT_CONFIG_INTERRUPTS);
    for (size_t i = 0; i < p->config_interrupts.len; i++) {
        str key = p->config_interrupts.at[i].key;
        bool glob = str_find(key, STR("*")) != SIZE_MAX;
        bool known = label_get(p->config_map, key).ptr != NULL;
        for (size_t k = 0; glob && !known && k < p->config_map.len; k++)
            known = glob_match(key, p->config_map.at[k].key);
        if (known)
            continue;
        place here = place_key(&all, key);
        reader_error(
            r, &here, "found %s, allowed keys of configMap and patterns with * that match one",
            glob ? "a pattern that matches no key of configMap" : "no such key in configMap");
    }
}

/* Kubernetes' rule for the keys of a ConfigMap, which become files. */
static bool config_key_valid(str key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && c != '-' && c != '_' && c != '.')
            return false;
    }
    return key.len > 0 && key.len <= LIMIT_NAME_BYTES && !str_eq(key, STR(".")) &&
           !str_starts(key, STR(".."));
}

static void check_config_map(reader *r, const place *at, const package *p)
{
    place all = place_key(at, STR("configMap"));
    for (size_t i = 0; i < p->config_map.len; i++) {
        str key = p->config_map.at[i].key;
        place here = place_key(&all, key);
        if (!config_key_valid(key))
            reader_error(
                r, &here,
                "found the key \"%s\", allowed letters, digits, \"-\", \"_\" and \".\", at "
                "most 253: it becomes a file",
                str_shown(key).text);
    }
}

/* Pods are made of it: a list of objects that have a name. */
static void check_env(reader *r, const place *at, const package *p)
{
    if (!p->env)
        return;
    char found[VALUE_DESCRIBED_BYTES];
    place all = place_key(at, STR("env"));
    value_describe(p->env, found);
    if (!json_is_array(p->env)) {
        reader_error(r, &all, "found %s, allowed a list of variables", found);
        return;
    }
    const yyjson_val *variable = json_first(p->env);
    for (size_t i = 0; i < json_len(p->env); i++, variable = json_next(variable)) {
        const yyjson_val *name =
            json_is_object(variable) ? json_member(variable, STR("name")) : NULL;
        place here = place_at(&all, i);
        if (!name || !json_is_text(name) || json_len(name) == 0)
            reader_error(r, &here, "found no name, allowed variables with a name");
    }
}

void check_package(reader *r, const place *at, void *value)
{
    package *p = value;
    check_name(r, at, p);
    check_image(r, at, p);
    check_config_interrupts(r, at, p);
    check_config_map(r, at, p);
    check_env(r, at, p);
    place version = place_key(at, STR("version"));
    if (str_find(p->version, STR("+")) != SIZE_MAX)
        reader_warning(
            r, &version,
            "found build metadata; no image tag and no label can hold a \"+\", so no node "
            "can run it");
    place depends = place_key(at, STR("dependsOn"));
    for (size_t i = 0; i < p->depends_on.len; i++) {
        place here = place_key(&depends, p->depends_on.at[i].key);
        if (p->depends_on.at[i].value.len == 0)
            reader_error(r, &here,
                         "found an empty version, allowed the exact version of that package");
    }
}

static bool is_positive(quantity q)
{
    return q.units > 0 || (q.units == 0 && q.nanos > 0);
}

static void check_positive(reader *r, const place *at, const char *name, quantity q)
{
    place here = place_key(at, str_of(name));
    if (!is_positive(q))
        reader_error(r, &here, "found %.*s, allowed values above 0", STR_ARG(q.text));
}

static void check_pair(reader *r, const place *at, const char *what, quantity limit,
                       quantity request)
{
    char limit_name[32], request_name[32];
    snprintf(limit_name, sizeof limit_name, "%sLimit", what);
    snprintf(request_name, sizeof request_name, "%sRequest", what);
    check_positive(r, at, request_name, request);
    check_positive(r, at, limit_name, limit);
    place here = place_key(at, str_of(limit_name));
    if (is_positive(limit) && is_positive(request) && quantity_cmp(limit, request) < 0)
        reader_error(r, &here, "found %.*s, allowed at least %s, which is %.*s",
                     STR_ARG(limit.text), request_name, STR_ARG(request.text));
}

void check_package_resources(reader *r, const place *at, void *value)
{
    const package_resources *p = value;
    int given = (p->cpu_request.text.ptr != NULL) + (p->cpu_limit.text.ptr != NULL) +
                (p->memory_request.text.ptr != NULL) + (p->memory_limit.text.ptr != NULL);
    if (given == 0)
        return;
    if (given < 4) {
        reader_error(r, at,
                     "found %d of the four, allowed all or none of cpuRequest, cpuLimit, "
                     "memoryRequest, memoryLimit",
                     given);
        return;
    }
    check_pair(r, at, "cpu", p->cpu_limit, p->cpu_request);
    check_pair(r, at, "memory", p->memory_limit, p->memory_request);
}

void check_package_uninstall(reader *r, const place *at, void *value)
{
    const package_uninstall *p = value;
    place here = place_key(at, STR("apply"));
    if (p->apply && !p->enabled)
        reader_error(r, &here, "found true, allowed only together with enabled: true");
}

/* ---- the graph of packages ---- */

/* Packages are sorted by key. */
static const package *find_package(const skyhook_spec *s, str name)
{
    size_t low = 0;
    size_t high = s->packages.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(s->packages.at[middle].key, name);
        if (order == 0)
            return &s->packages.at[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool check_dependencies(reader *r, const place *packages, const skyhook_spec *s)
{
    bool good = true;
    for (size_t i = 0; i < s->packages.len; i++) {
        const package *p = &s->packages.at[i];
        for (size_t k = 0; k < p->depends_on.len; k++) {
            label wanted = p->depends_on.at[k];
            const package *other = find_package(s, wanted.key);
            if (other && str_eq(other->version, wanted.value))
                continue;
            place own = place_key(packages, p->key);
            place depends = place_key(&own, STR("dependsOn"));
            place here = place_key(&depends, wanted.key);
            good = false;
            if (!other)
                reader_error(r, &here,
                             "found a package that is not there, allowed those of this Skyhook");
            else
                reader_error(r, &here,
                             "found version \"%s\", allowed \"%s\", which this Skyhook has",
                             str_shown(wanted.value).text, str_shown(other->version).text);
        }
    }
    return good;
}

/* A walk along dependencies, without recursion: documents may be long. */
typedef struct walk {
    const skyhook_spec *spec;
    uint8_t *state; /* by package */
    size_t *path;   /* packages from the first to the present one */
    size_t *next;   /* by package: which of its dependencies is next */
    size_t len;     /* of path */
} walk;

enum { WALK_NEW, WALK_OPEN, WALK_DONE };

static void walk_into(walk *w, size_t index)
{
    w->state[index] = WALK_OPEN;
    w->path[w->len++] = index;
}

/* Goes on until a dependency is met that stands in the path: true, and which. */
static bool walk_finds_cycle(walk *w, size_t *ret_first)
{
    while (w->len > 0) {
        size_t here = w->path[w->len - 1];
        const package *p = &w->spec->packages.at[here];
        if (w->next[here] == p->depends_on.len) {
            w->state[here] = WALK_DONE;
            w->len--;
            continue;
        }
        const package *other = find_package(w->spec, p->depends_on.at[w->next[here]++].key);
        size_t there = (size_t)(other - w->spec->packages.at);
        if (w->state[there] == WALK_NEW)
            walk_into(w, there);
        *ret_first = there;
        if (w->state[there] == WALK_OPEN && w->path[w->len - 1] != there)
            return true;
        if (there == here)
            return true;
    }
    return false;
}

static void report_cycle(reader *r, const place *packages, const walk *w, size_t first)
{
    scoped(buf_done) buf text = BUF(LIMIT_ERR_BYTES);
    size_t at = 0;
    while (w->path[at] != first)
        at++;
    for (; at < w->len && text.len < LIMIT_ERR_BYTES / 2; at++)
        buf_addf(&text, "%s -> ", str_shown(w->spec->packages.at[w->path[at]].key).text);
    if (at < w->len)
        buf_addz(&text, "... -> ");
    place own = place_key(packages, w->spec->packages.at[first].key);
    place here = place_key(&own, STR("dependsOn"));
    reader_error(r, &here, "found packages that wait for each other (%.*s%s), allowed no cycle",
                 STR_ARG(buf_str(&text)), str_shown(w->spec->packages.at[first].key).text);
}

/* Every package that is depended on is there: check_dependencies saw to it. Reports one cycle. */
static void check_cycles(reader *r, const place *packages, const skyhook_spec *s)
{
    size_t count = s->packages.len, first;
    walk w = {
        .spec = s,
        .state = ARENA_ARRAY(r->arena, count, uint8_t),
        .path = ARENA_ARRAY(r->arena, count, size_t),
        .next = ARENA_ARRAY(r->arena, count, size_t),
    };
    if (count > 0 && (!w.state || !w.path || !w.next)) {
        reader_memory(r);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (w.state[i] != WALK_NEW)
            continue;
        walk_into(&w, i);
        if (walk_finds_cycle(&w, &first)) {
            report_cycle(r, packages, &w, first);
            return;
        }
    }
}

void check_skyhook_spec(reader *r, const place *at, void *value)
{
    const skyhook_spec *s = value;
    const budget *b = s->interruption_budget;
    place budget_at = place_key(at, STR("interruptionBudget"));
    if (s->deployment_policy.len > 0 && b && (b->percent.set || b->count.set))
        reader_error(r, &budget_at,
                     "found a budget beside deploymentPolicy, allowed one of the two");
    place pause_at = place_key(at, STR("pause"));
    if (s->pause)
        reader_warning(r, &pause_at,
                       "found true, which has no effect: pause with the annotation "
                       "skyhook.nvidia.com/pause: \"true\"");
    place packages = place_key(at, STR("packages"));
    if (s->packages.len > LIMIT_PACKAGES)
        reader_error(r, &packages, "found %zu packages, allowed %u", s->packages.len,
                     LIMIT_PACKAGES);
    else if (check_dependencies(r, &packages, s))
        check_cycles(r, &packages, s);
}

void check_skyhook(reader *r, const place *at, void *value)
{
    const skyhook *s = value;
    place metadata_at = place_key(at, STR("metadata"));
    place name_at = place_key(&metadata_at, STR("name"));
    if (s->metadata.name.len > SKYHOOK_NAME_MOST)
        reader_warning(r, &name_at,
                       "found %zu characters, allowed %u on a cluster: annotations of nodes "
                       "have the name in their keys, so no node could be worked on",
                       s->metadata.name.len, SKYHOOK_NAME_MOST);
}

/* ---- policies ---- */

void check_legacy_budget(reader *r, const place *at, void *value)
{
    const budget *b = value;
    if (b->percent.set && b->count.set)
        reader_error(r, at, "found percent and count, allowed one of the two");
}

void check_budget(reader *r, const place *at, void *value)
{
    const budget *b = value;
    if (b->percent.set == b->count.set)
        reader_error(r, at, "found %s, allowed exactly one of percent and count",
                     b->percent.set ? "both" : "neither");
}

void check_strategy(reader *r, const place *at, void *value)
{
    strategy *s = value;
    int given = (s->fixed != NULL) + (s->linear != NULL) + (s->exponential != NULL);
    if (given != 1) {
        reader_error(
            r, at, "found %d strategies, allowed exactly one of fixed, linear, exponential", given);
        return;
    }
    s->kind = s->fixed ? STRATEGY_FIXED : s->linear ? STRATEGY_LINEAR : STRATEGY_EXPONENTIAL;
    s->with = s->fixed ? s->fixed : s->linear ? s->linear : s->exponential;
}

void check_deployment_policy_spec(reader *r, const place *at, void *value)
{
    deployment_policy_spec *s = value;
    s->default_.name = STR(COMPARTMENT_DEFAULT);
    place list = place_key(at, STR("compartments"));
    if (s->compartments.len > LIMIT_COMPARTMENTS) {
        reader_error(r, &list, "found %zu compartments, allowed %u", s->compartments.len,
                     LIMIT_COMPARTMENTS);
        return;
    }
    for (size_t i = 0; i < s->compartments.len; i++) {
        const compartment *c = &s->compartments.at[i];
        place own = place_at(&list, i);
        place name = place_key(&own, STR("name"));
        place selector_at = place_key(&own, STR("selector"));
        if (str_eq(c->name, STR(COMPARTMENT_DEFAULT)))
            reader_error(r, &name,
                         "found the reserved name " COMPARTMENT_DEFAULT ", allowed any other");
        for (size_t k = 0; k < i; k++) {
            const compartment *other = &s->compartments.at[k];
            if (str_eq(c->name, other->name))
                reader_error(r, &name, "found the name \"%s\" twice, allowed once",
                             str_shown(c->name).text);
            if (selector_equal(c->selector.compiled, other->selector.compiled))
                reader_error(
                    r, &selector_at,
                    "found the same selector as that of compartment \"%s\", allowed another",
                    str_shown(other->name).text);
        }
    }
}
