/* SPDX-License-Identifier: Apache-2.0 */
/* retry: a failed attempt is tried again, so often and after such a pause. Without a rule it is
 * not. What succeeded is never tried again. */
#include "engine/chain.h"

#define RETRY_ON_DEFAULT                                                                           \
    ((1u << JOB_STATE_FAILURE) | (1u << JOB_STATE_INVALID_INTEGRATION) |                           \
     (1u << JOB_STATE_INVALID_JOB_AGENT))

int64_t retry_backoff_seconds(const retry *rule_, int64_t failed_attempts)
{
    int64_t seconds = rule_->backoff_seconds;
    int64_t most = rule_->max_backoff_seconds.set ? rule_->max_backoff_seconds.value
                                                  : INT64_MAX / 4 / SECOND_MS;
    if (rule_->backoff_strategy == BACKOFF_LINEAR)
        return seconds;
    for (int64_t i = 1; i < failed_attempts && seconds < most; i++)
        seconds *= 2;
    return seconds < most ? seconds : most;
}

/* All retry rules must let it: the fewest attempts, the longest pause. */
retry_answer retry_ask(const releases *r, uint32_t t)
{
    const rel_target *target = &r->targets.at[t];
    const rel_lane *lane = &r->lanes.at[target->lane];
    retry_answer a = {.again = false, .at_ms = target->failed_ms, .allowed = 0};
    bool any = false, again = true;
    size_t at = 0;
    for (uint32_t rule_; (rule_ = lane_next(lane, RULE_RETRY, &at)) != NO;) {
        const retry *doc = r->rules.at[rule_].doc->retry;
        job_states on = doc->retry_on_statuses ? doc->retry_on_statuses : RETRY_ON_DEFAULT;
        a.allowed = any && a.allowed < doc->max_retries ? a.allowed : doc->max_retries;
        any = true;
        if ((on & target->failed_as) == 0 || target->attempts > doc->max_retries)
            again = false;
        int64_t pause = retry_backoff_seconds(doc, target->attempts) * SECOND_MS;
        a.at_ms = later_of(a.at_ms, target->failed_ms + pause);
    }
    a.again = any && again && !target->failed_rollback;
    return a;
}

static void retry_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    (void)rule_;
    const rel_target *t = &r->targets.at[c->target];
    if (t->failed_version != c->version || t->attempts == 0)
        return;
    retry_answer a = retry_ask(r, c->target);
    if (a.again && a.at_ms <= r->core->now_ms)
        return;
    verdict_no(v, a.again ? VERDICT_WAITING : VERDICT_REFUSED, REASON_RETRY,
               a.again ? a.at_ms : NEVER);
    v->reason.act = a.again ? RELEASE_TIME : RELEASE_RETRY;
    v->reason.scope = STR("retry");
    v->reason.have = t->attempts;
    v->reason.limit = a.allowed;
    v->reason.detail = t->failure ? rel_text(r, t->failure) : STR("failed");
    str *of = c->a ? ARENA_NEW(c->a, str) : NULL;
    if (of) {
        *of = rel_text(r, r->deployments.at[t->deployment].name);
        v->reason.of = of;
        v->reason.of_count = 1;
    }
}

const rule_ops retry_ops = {
    .order = 9, .level = LEVEL_EACH, .job_level = true, .verdict = retry_verdict};
