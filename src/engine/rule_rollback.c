/* SPDX-License-Identifier: Apache-2.0 */
/* rollback: what failed for good goes back to the last version that was good. In a bracket the
 * bracket's own rollbackStrategy says what happens instead (bracket.c). */
#include "engine/chain.h"

bool rollback_wanted(const releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    const rel_lane *lane = &r->lanes.at[target->lane];
    /* A job that succeeded and was found bad by its verification carries both bits. */
    const job_states successful = 1u << JOB_STATE_SUCCESSFUL;
    bool verification_ = (target->failed_as & successful) != 0;
    size_t at = 0;
    for (uint32_t rule_; (rule_ = lane_next(lane, RULE_ROLLBACK, &at)) != NO;) {
        const rollback *doc = r->rules.at[rule_].doc->rollback;
        if ((doc->on_job_statuses & target->failed_as & ~successful) != 0 ||
            (verification_ && doc->on_verification_failure))
            return true;
    }
    return false;
}
