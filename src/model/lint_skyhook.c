/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/num.h"
#include "model/lint_parts.h"

/* ---- policies ---- */

/* How many objects of a kind a selector matches; NULL: those that no compartment matches. */
static int64_t count_members(const lint *l, const deployment_policy_spec *s, const selector *of,
                             object_kind members)
{
    int64_t count = 0;
    size_t i = 0;
    for (const object *o = lint_next(l, members, &i); o; o = lint_next(l, members, &i)) {
        bool any = false;
        for (size_t c = 0; !of && !any && c < s->compartments.len; c++)
            any = selector_match(s->compartments.at[c].selector.compiled, o->metadata->labels);
        count += of ? selector_match(of, o->metadata->labels) : !any;
    }
    return count;
}

static void lint_budget(lint *l, const place *at, const budget *b, int64_t members, bool known)
{
    place budget_at = place_key(at, STR("budget"));
    place here = place_key(&budget_at, STR("percent"));
    if (!b->percent.set)
        return;
    int64_t percent = b->percent.value;
    if (!known && percent == 100)
        lint_warning(l, &here, "found 100 percent: all members may be disturbed at once");
    if (!known || members < 2)
        return;
    int64_t ceiling = num_percent(members, percent);
    if (ceiling >= members)
        lint_warning(l, &here,
                     "found %" PRId64 " percent, which is all %" PRId64 " members at once", percent,
                     members);
    else if (members * percent < 100)
        lint_warning(l, &here,
                     "found %" PRId64 " percent of %" PRId64 " members, which rounds up to one",
                     percent, members);
}

static void lint_strategy(lint *l, const place *at, const strategy *s)
{
    if (!s || !s->with || s->with->failure_threshold.set)
        return;
    static const str names[] = {
#define X(kind, text) [STRATEGY_##kind] = {text, sizeof(text) - 1},
        STRATEGY_KINDS(X)
#undef X
    };
    place strategy_at = place_key(at, STR("strategy"));
    place here = place_key(&strategy_at, names[s->kind]);
    lint_warning(l, &here, "found no failureThreshold: failures never stop the rollout");
}

static void lint_compartment(lint *l, const place *at, const compartment *c, int64_t members)
{
    bool known = members >= 0;
    place selector_at = place_key(at, STR("selector"));
    if (known && members == 0 && c->selector.compiled)
        lint_warning(l, &selector_at, "found a selector that no given target matches");
    lint_budget(l, at, &c->budget, members, known);
    lint_strategy(l, at, c->strategy);
}

void lint_policy_spec(lint *l, const place *at, const deployment_policy_spec *s,
                      object_kind members)
{
    bool known = lint_count(l, members) > 0;
    place default_at = place_key(at, STR("default"));
    lint_compartment(l, &default_at, &s->default_, known ? count_members(l, s, NULL, members) : -1);
    place list = place_key(at, STR("compartments"));
    for (size_t i = 0; i < s->compartments.len; i++) {
        const compartment *c = &s->compartments.at[i];
        place here = place_at(&list, i);
        int64_t count = known ? count_members(l, s, c->selector.compiled, members) : -1;
        lint_compartment(l, &here, c, count);
    }
}

/* ---- Skyhooks ---- */

static void lint_skyhook(lint *l, const object *o)
{
    LINT_SPEC(o);
    const skyhook_spec *s = &o->skyhook->spec;
    place policy = place_key(&spec_at, STR("deploymentPolicy"));
    if (s->deployment_policy.len > 0 && !lint_find(l, KIND_DEPLOYMENT_POLICY, s->deployment_policy))
        lint_warning(l, &policy,
                     "found \"%s\", which is not among the documents; it must be in the cluster",
                     str_shown(s->deployment_policy).text);
    size_t i = 0;
    bool any = lint_count(l, KIND_NODE) == 0;
    for (const object *n = lint_next(l, KIND_NODE, &i); n && !any; n = lint_next(l, KIND_NODE, &i))
        any = selector_match(s->node_selectors.compiled, n->metadata->labels);
    place nodes = place_key(&spec_at, STR("nodeSelectors"));
    if (!any)
        lint_warning(l, &nodes, "found a selector that no given node matches");
}

void lint_skyhooks(lint *l)
{
    size_t i = 0;
    for (const object *o = lint_next(l, KIND_SKYHOOK, &i); o; o = lint_next(l, KIND_SKYHOOK, &i))
        lint_skyhook(l, o);
    i = 0;
    for (const object *o = lint_next(l, KIND_DEPLOYMENT_POLICY, &i); o;
         o = lint_next(l, KIND_DEPLOYMENT_POLICY, &i)) {
        LINT_SPEC(o);
        lint_policy_spec(l, &spec_at, &o->deployment_policy->spec, KIND_NODE);
    }
}
