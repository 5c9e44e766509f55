/* SPDX-License-Identifier: Apache-2.0 */
/* versionSelector: an expression says which versions may be deployed. */
#include "engine/chain.h"

/* Asked once; true and false are remembered, errors are not. */
static bool selected(const chain_context *c, uint32_t rule_, bool *ret, err *error)
{
    releases *r = c->r;
    rel_rule *the = &r->rules.at[rule_];
    const expression *e = &the->doc->version_selector->selector;
    const rel_cell *cell = &r->cells.at[r->lanes.at[c->lane].cell];
    uint32_t res = c->target == NO ? NO : r->targets.at[c->target].resource;
    bool sees = c->target != NO && expression_sees(e, STR("resource"));
    uint64_t key = KEY_PAIR(c->version, sees ? SELECTED_BY_TARGET | c->target : cell->environment);
    uint32_t known = keymap_get(&the->selected, key);
    if (known != NO) {
        *ret = known != 0;
        return true;
    }
    if (!scope_release_matches(
            r, e, (scope_release){cell->deployment, cell->environment, res, c->version}, ret,
            error))
        return false;
    if (!keymap_put(&r->rules.at[rule_].selected, key, *ret))
        rel_no_memory(r);
    return true;
}

static void selector_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    const version_selector *s = r->rules.at[rule_].doc->version_selector;
    bool yes = false;
    err error;
    if (!selected(c, rule_, &yes, &error)) {
        verdict_no(v, VERDICT_REFUSED, REASON_EXPRESSION, NEVER);
        v->reason.detail = c->a ? arena_str(c->a, str_of(error.text)) : STR_EMPTY;
        return;
    }
    if (yes)
        return;
    verdict_no(v, VERDICT_REFUSED, REASON_VERSION_SELECTOR, NEVER);
    v->reason.act = RELEASE_PUBLISH;
    v->reason.detail = s->description.len > 0 ? s->description : s->selector.source;
    str *of = c->a ? ARENA_NEW(c->a, str) : NULL;
    if (!of)
        return;
    *of = rel_text(r, r->deployments.at[r->cells.at[r->lanes.at[c->lane].cell].deployment].name);
    v->reason.of = of;
    v->reason.of_count = 1;
}

const rule_ops version_selector_ops = {
    .order = 1, .level = LEVEL_VERSION, .verdict = selector_verdict};
