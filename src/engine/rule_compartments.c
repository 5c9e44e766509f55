/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentPolicy as a rule of a policy: not there yet. Nothing ever fails open, so that a policy which
 * asks for it starts nothing, and says so. */
#include "engine/chain.h"

static void not_yet(const chain_context *c, uint32_t rule_, verdict *v)
{
    (void)c;
    (void)rule_;
    verdict_no(v, VERDICT_REFUSED, REASON_BUDGET, NEVER);
    v->reason.detail = STR("deploymentPolicy is not supported in a RolloutPolicy yet");
}

const rule_ops cohort_rule_ops = {.order = 10, .level = LEVEL_FIRST, .verdict = not_yet};
