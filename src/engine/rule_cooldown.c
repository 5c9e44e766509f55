/* SPDX-License-Identifier: Apache-2.0 */
/* versionCooldown: no newer version until the one that runs has been out for a while. Counted from the
 * publication of that version, not from its deployment. */
#include "engine/chain.h"

static void cooldown_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    const rel_target *t = &r->targets.at[c->target];
    uint32_t reference = t->job != 0 ? t->job_version : t->current;
    if (reference == NO || reference == c->version ||
        r->versions.at[reference].published_ms == LONG_AGO)
        return;
    int64_t until = r->versions.at[reference].published_ms +
                    r->rules.at[rule_].doc->version_cooldown->interval_seconds * SECOND_MS;
    if (r->core->now_ms < until)
        verdict_no(v, VERDICT_WAITING, REASON_COOLDOWN, until);
}

const rule_ops cooldown_ops = {.order = 6, .level = LEVEL_FIRST, .verdict = cooldown_verdict};
