/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/reason.h"

#include <inttypes.h>

#include "base/moment.h"

#define CAP_FIRST 4u

bool reasons_add(reasons *list, arena *a, reason r)
{
    if (list->len == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : CAP_FIRST;
        reason *grown = ARENA_ARRAY(a, cap, reason);
        if (!grown)
            return false;
        if (list->len > 0)
            memcpy(grown, list->at, list->len * sizeof *grown);
        list->at = grown;
        list->cap = cap;
    }
    list->at[list->len++] = r;
    return true;
}

str reason_rule_name(reason_rule rule)
{
    static const str texts[] = {
#define X(kind, text) [REASON_##kind] = STR(text),
        REASON_RULES(X)
#undef X
    };
    return texts[rule];
}

str release_act_name(release_act act)
{
    static const str texts[] = {
#define X(kind, text) [RELEASE_##kind] = STR(text),
        RELEASE_ACTS(X)
#undef X
    };
    return texts[act];
}

/* How many names a sentence lists before it only counts. */
#define NAMES_LISTED 3u

static str list_names(arena *a, const str *at, size_t count)
{
    if (count == 0)
        return STR("nobody");
    str text = at[0];
    for (size_t i = 1; i < count && i < NAMES_LISTED; i++)
        text = arena_printf(a, "%.*s, %.*s", STR_ARG(text), STR_ARG(at[i]));
    if (count > NAMES_LISTED)
        text = arena_printf(a, "%.*s and %zu more", STR_ARG(text), count - NAMES_LISTED);
    return text;
}

static str time_text(arena *a, int64_t ms)
{
    if (ms == REASON_NEVER)
        return STR("an event");
    char text[MOMENT_TEXT_BYTES];
    int64_t seconds = ms / 1000 - (ms % 1000 < 0);
    size_t length =
        moment_format((moment){seconds, (int32_t)((ms - seconds * 1000) * 1000000)}, text);
    return arena_str(a, (str){text, length});
}

/* Rules whose sentence is about places, queues and counts. */
static str text_of_limits(arena *a, const reason *r, str holders)
{
    switch (r->rule) {
    case REASON_BUDGET:
        return arena_printf(a, "%" PRId64 " of %" PRId64 " places are taken", r->have, r->limit);
    case REASON_BATCH:
        return arena_printf(a, "the next batch begins when the present one has ended (%.*s)",
                            STR_ARG(holders));
    case REASON_STOPPED:
        return arena_printf(a, "stopped after %" PRId64 " failed batches in a row", r->have);
    case REASON_CONCURRENCY:
        if (r->limit == 0)
            return STR("the limit is 0: starts are paused");
        return arena_printf(a, "%" PRId64 " of %" PRId64 " slots are taken (%.*s)", r->have,
                            r->limit, STR_ARG(holders));
    case REASON_UNAVAILABLE:
        return arena_printf(a, "%" PRId64 " clusters are unavailable, %" PRId64 " may be", r->have,
                            r->limit);
    case REASON_PARTITION:
        return arena_printf(a, "an earlier partition is not ready (%.*s)", STR_ARG(r->detail));
    case REASON_MAX_NEW:
        return arena_printf(a, "%" PRId64 " were released in this pass, the most there may be",
                            r->limit);
    case REASON_PROGRESSION:
        return arena_printf(a, "%" PRId64 " percent succeeded in %.*s, %" PRId64 " are needed",
                            r->have, STR_ARG(r->detail), r->limit);
    case REASON_APPROVAL:
        return arena_printf(a, "%" PRId64 " of %" PRId64 " approvals were given", r->have,
                            r->limit);
    default: return (str){NULL, 0};
    }
}

/* Rules whose sentence is about a time. */
static str text_of_times(arena *a, const reason *r)
{
    str when = time_text(a, r->next_ms);
    switch (r->rule) {
    case REASON_WINDOW:
        return arena_printf(a, "the deployment window opens at %.*s", STR_ARG(when));
    case REASON_COOLDOWN: return arena_printf(a, "cooling down until %.*s", STR_ARG(when));
    case REASON_ROLLOUT:
        if (r->next_ms == REASON_NEVER)
            return STR("the rollout has not started: another rule comes first");
        return arena_printf(a, "its turn is at %.*s", STR_ARG(when));
    case REASON_SOAK:
        return arena_printf(a, "the earlier partition must stay ready until %.*s", STR_ARG(when));
    case REASON_RETRY:
        if (r->next_ms == REASON_NEVER)
            return arena_printf(a,
                                "failed %" PRId64 " times and is not tried again by itself (%.*s)",
                                r->have, STR_ARG(r->detail));
        return arena_printf(a, "failed (%.*s); tried again at %.*s", STR_ARG(r->detail),
                            STR_ARG(when));
    default: return (str){NULL, 0};
    }
}

/* Sentences that quote at most the detail. "%.*s" stands for it. */
static str text_of_states(arena *a, const reason *r, str holders)
{
    str d = r->detail;
    switch (r->rule) {
    case REASON_PAUSED: return arena_printf(a, "%.*s is paused", STR_ARG(d));
    case REASON_DISABLED: return arena_printf(a, "%.*s is disabled", STR_ARG(d));
    case REASON_PRIORITY: return arena_printf(a, "%.*s comes first", STR_ARG(d));
    case REASON_DEPENDENCY: return arena_printf(a, "waits for %.*s", STR_ARG(d));
    case REASON_BRACKET: return arena_printf(a, "%.*s", STR_ARG(d));
    case REASON_FREEZE: return arena_printf(a, "frozen: %.*s", STR_ARG(d));
    case REASON_DRAIN: return arena_printf(a, "the drain waits for %.*s", STR_ARG(d));
    case REASON_TAINT: return arena_printf(a, "the taint %.*s is not tolerated", STR_ARG(d));
    case REASON_IGNORED: return STR("it carries the ignore label");
    case REASON_OFFLINE: return arena_printf(a, "offline: %.*s", STR_ARG(d));
    case REASON_POLICY_NOT_FOUND:
        return arena_printf(a, "the policy \"%.*s\" does not exist", STR_ARG(d));
    case REASON_NOT_READY: return STR("it is not ready");
    case REASON_BUSY: return arena_printf(a, "%.*s is at work on it", STR_ARG(d));
    case REASON_VERSION_SELECTOR:
        return arena_printf(a, "the version is not selected: %.*s", STR_ARG(d));
    case REASON_NO_VERSION: return STR("there is no version to deploy");
    case REASON_RUNNING: return arena_printf(a, "%.*s runs", STR_ARG(d));
    case REASON_FAILED: return arena_printf(a, "failed: %.*s", STR_ARG(d));
    case REASON_SKIPPED: return arena_printf(a, "a person skipped %.*s here", STR_ARG(d));
    case REASON_ROLLED_BACK: return arena_printf(a, "%.*s was rolled back here", STR_ARG(d));
    case REASON_HALTED: return arena_printf(a, "halted: %.*s", STR_ARG(d));
    case REASON_NO_NAMESPACE: return STR("the cluster has no namespace yet");
    case REASON_NO_PARTITION: return STR("no partition of the rollout matches it");
    case REASON_NODE_LOST: return STR("the node was not seen for too long");
    case REASON_EXPRESSION: return arena_printf(a, "an expression failed: %.*s", STR_ARG(d));
    case REASON_QUARANTINED: return STR("it is quarantined");
    case REASON_VERIFICATION: return arena_printf(a, "the verification failed: %.*s", STR_ARG(d));
    case REASON_REBOOT: return STR("it reboots");
    case REASON_WAITING_PODS:
        return arena_printf(a, "pods that may not be interrupted run there: %.*s", STR_ARG(d));
    case REASON_MALFORMED:
        return arena_printf(a, "its recorded state cannot be read: %.*s", STR_ARG(d));
    default: return holders;
    }
}

str reason_text(arena *a, const reason *r)
{
    str holders = list_names(a, r->holders, r->holder_count);
    str text = text_of_limits(a, r, holders);
    if (!text.ptr)
        text = text_of_times(a, r);
    if (!text.ptr)
        text = text_of_states(a, r, holders);
    return text;
}
