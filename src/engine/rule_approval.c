/* SPDX-License-Identifier: Apache-2.0 */
/* anyApproval: so many people approve a version for an environment. A rejection only takes its own
 * approval back. */
#include "engine/chain.h"

static void approval_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    int64_t need = r->rules.at[rule_].doc->any_approval->min_approvals;
    const rel_version *version_ = &r->versions.at[c->version];
    name_id env = r->environments.at[r->cells.at[r->lanes.at[c->lane].cell].environment].name;
    v->satisfied_ms = version_->published_ms;
    int64_t have = 0;
    /* In the order of time: records are only ever added or refreshed. */
    for (size_t i = 0; i < r->approvals.len && have < need; i++) {
        const rel_approval *a = &r->approvals.at[i];
        if (!a->approved || a->version != version_->id ||
            (a->environment != 0 && a->environment != env))
            continue;
        bool twice = false;
        for (size_t k = 0; k < i && !twice; k++) {
            const rel_approval *b = &r->approvals.at[k];
            twice = b->approved && b->version == a->version && b->who == a->who &&
                    (b->environment == 0 || b->environment == env);
        }
        if (twice)
            continue;
        have++;
        v->satisfied_ms = later_of(v->satisfied_ms, a->at_ms);
    }
    if (have >= need)
        return;
    verdict_no(v, VERDICT_WAITING, REASON_APPROVAL, NEVER);
    v->reason.act = RELEASE_APPROVE;
    v->reason.have = have;
    v->reason.limit = need;
    if (!c->a)
        return;
    str *of = ARENA_NEW(c->a, str);
    if (of) {
        *of = rel_text(r, version_->id);
        v->reason.of = of;
        v->reason.of_count = 1;
    }
}

const rule_ops approval_ops = {.order = 2, .level = LEVEL_VERSION, .verdict = approval_verdict};
