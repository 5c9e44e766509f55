/* SPDX-License-Identifier: Apache-2.0 */
/* rolloutStrategy as a rule of a policy: not there yet. Nothing ever fails open, so that a policy which
 * asks for it starts nothing, and says so. */
#include "engine/chain.h"

static void not_yet(const chain_context *c, uint32_t rule_, verdict *v)
{
    (void)c;
    (void)rule_;
    verdict_no(v, VERDICT_REFUSED, REASON_PARTITION, NEVER);
    v->reason.detail = STR("rolloutStrategy is not supported in a RolloutPolicy yet");
}

const rule_ops partition_rule_ops = {.order = 11, .level = LEVEL_FIRST, .verdict = not_yet};
