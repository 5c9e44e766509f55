/* SPDX-License-Identifier: Apache-2.0 */
/* plane_story.h - one day of a small fleet that uses every kind of rule, every act and every kind
 * of job. */
#ifndef DROVER_TESTS_SUPPORT_PLANE_STORY_H
#define DROVER_TESTS_SUPPORT_PLANE_STORY_H

#include "support/plane.h"

#define STORY_API "---\napiVersion: drover.dev/v1alpha1\n"
#define STORY_HOST(name, ring)                                                                     \
    STORY_API "kind: Resource\nmetadata: {name: " name ", labels: {ring: " ring "}}\n"             \
              "spec: {kind: host, config: {address: 10.0.0.1}}\n"
#define STORY_DEPLOYMENT(name, layer, job)                                                         \
    STORY_API "kind: Deployment\nmetadata: {name: " name ", labels: {layer: " layer "}}\n"         \
              "spec: {resourceSelector: 'true', timeoutSeconds: 100, job: {" job "}}\n"
#define STORY_VERSION(deployment, tag)                                                             \
    STORY_API "kind: Version\nmetadata: {name: " deployment "-" tag "}\n"                          \
              "spec: {deployment: " deployment ", tag: '" tag "'}\n"
#define STORY_SLOTS 2

#define STORY_FLEET                                                                                \
    STORY_HOST("n1", "canary")                                                                     \
    STORY_HOST("n2", "wide")                                                                       \
    STORY_HOST("n3", "wide")                                                                       \
    STORY_HOST("n4", "wide")                                                                       \
    STORY_API                                                                                      \
    "kind: Environment\nmetadata: {name: canary}\n"                                                \
    "spec: {resourceSelector: 'resource.metadata[\"ring\"] == \"canary\"'}\n" STORY_API            \
    "kind: Environment\nmetadata: {name: wide}\n"                                                  \
    "spec: {resourceSelector: 'resource.metadata[\"ring\"] == \"wide\"'}\n" STORY_DEPLOYMENT(      \
        "drain", "node", "command: {run: ['true']}")                                               \
        STORY_DEPLOYMENT("os", "node", "command: {run: ['true']}")                                 \
            STORY_DEPLOYMENT("kubelet", "node", "simulated: {seconds: 1}")                         \
                STORY_DEPLOYMENT("uncordon", "node", "command: {run: ['true']}")                   \
                    STORY_DEPLOYMENT("agent", "app", "simulated: {seconds: 1}")                    \
                        STORY_DEPLOYMENT("puller", "app", "pull: {}}, verify: {run: ['true']")     \
                            STORY_DEPLOYMENT(                                                      \
                                "firmware", "hand",                                                \
                                "manual: {instructions: flash it}}, verify: {run: ['true']")

#define STORY_POLICIES                                                                             \
    STORY_API                                                                                      \
    "kind: RolloutPolicy\nmetadata: {name: nodes}\n"                                               \
    "spec:\n  selector: 'deployment.metadata[\"layer\"] == \"node\"'\n  rules:\n"                  \
    "  - deploymentBracket: {deploymentSelector: 'deployment.metadata[\"layer\"] == \"node\"', "   \
    "readinessMode: collection_window, readinessWindowSeconds: 30, "                               \
    "preSelector: 'deployment.name == \"drain\"', "                                                \
    "postSelector: 'deployment.name == \"uncordon\"'}\n"                                           \
    "  - deploymentDependency: {dependsOn: 'deployment.name == \"os\"', "                          \
    "appliesTo: 'deployment.name == \"kubelet\"'}\n"                                               \
    "  - resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 2}\n"          \
    "  - gradualRollout: {rolloutType: linear, timeScaleInterval: 5}\n"                            \
    "  - retry: {maxRetries: 1, backoffSeconds: 7}\n" STORY_API                                    \
    "kind: RolloutPolicy\nmetadata: {name: apps}\n"                                                \
    "spec:\n  selector: 'deployment.metadata[\"layer\"] == \"app\"'\n  rules:\n"                   \
    "  - versionSelector: {selector: 'version.tag != \"bad\"'}\n"                                  \
    "  - versionCooldown: {intervalSeconds: 20}\n"                                                 \
    "  - retry: {maxRetries: 1, backoffSeconds: 3}\n"                                              \
    "  - rollback: {onJobStatuses: [failure], onVerificationFailure: true}\n"                      \
    "  - verification: {metrics: [{name: ok, provider: {type: sleep, durationSeconds: 1}, "        \
    "intervalSeconds: 1, count: 1, successCondition: 'true'}]}\n"                                  \
    "  - deploymentWindow: {rrule: 'FREQ=HOURLY;BYMINUTE=0,2,4,6,8,10,12,14,16;BYSECOND=0', "      \
    "durationMinutes: 1, timezone: UTC, allowWindow: true}\n"                                      \
    "  - rolloutStrategy: {maxUnavailable: 2}\n" STORY_API                                         \
    "kind: RolloutPolicy\nmetadata: {name: wide-apps}\n"                                           \
    "spec:\n  selector: 'deployment.metadata[\"layer\"] == \"app\" && "                            \
    "environment.name == \"wide\"'\n"                                                              \
    "  rules:\n"                                                                                   \
    "  - anyApproval: {minApprovals: 1}\n"                                                         \
    "  - environmentProgression: {dependsOnEnvironmentSelector: "                                  \
    "'environment.name == \"canary\"', "                                                           \
    "minimumSoakTimeMinutes: 1}\n"                                                                 \
    "  - gradualRollout: {rolloutType: linear-normalized, timeScaleInterval: 9}\n"                 \
    "  - deploymentPolicy: {default: {budget: {count: 2}, strategy: {fixed: {}}}, "                \
    "compartments: []}\n"

static const fact_act story_freeze = {.act = ACT_FREEZE, .name = {"lunch", 5}, .reason = {"no", 2}};
static const fact_act story_thaw = {.act = ACT_THAW, .name = {"lunch", 5}};
static const fact_act story_approve_agent = {.act = ACT_APPROVE, .version = {"agent-2", 7}};
static const fact_act story_approve_puller = {.act = ACT_APPROVE, .version = {"puller-1", 8}};
static const fact_act story_approve_first = {.act = ACT_APPROVE, .version = {"agent-1", 7}};
static const fact_act story_pause = {.act = ACT_PAUSE, .change = {"puller", 6}};
static const fact_act story_resume = {.act = ACT_RESUME, .change = {"puller", 6}};
static const fact_act story_retry = {
    .act = ACT_RETRY, .change = {"kubelet", 7}, .target = {"n3", 2}, .reason = {"again \xff", 7}};
static const fact_act story_skip = {
    .act = ACT_SKIP, .change = {"puller", 6}, .target = {"n4", 2}, .environment = {"wide", 4}};
static const fact_act story_approve_third = {.act = ACT_APPROVE, .version = {"agent-3", 7}};
static const fact_act story_reject = {.act = ACT_REJECT, .version = {"agent-4", 7}};
static const fact_act story_halt = {.act = ACT_HALT, .change = {"kubelet", 7}};
static const fact_act story_go_on = {.act = ACT_RESUME, .change = {"kubelet", 7}};
static const fact_act story_slot = {.act = ACT_CLAIM_SLOT, .target = {"n1", 2}};
static const fact_act story_slot_back = {.act = ACT_FREE_SLOT, .target = {"n1", 2}};
static const fact_act story_rollback = {
    .act = ACT_ROLLBACK, .change = {"agent", 5}, .target = {"n1", 2}, .environment = {"canary", 6}};
static const fact_act story_bypass = {.act = ACT_BYPASS,
                                      .rule = {"wide-apps/gradualRollout/0", 26},
                                      .version = {"agent-2", 7},
                                      .until_ms = INT64_C(1900000000000)};

static const plane_event story_events[] = {
    {.after_ms = 0, .apply = STORY_FLEET},
    {.after_ms = 0, .apply = STORY_POLICIES},
    {.after_ms = 1000, .apply = STORY_VERSION("drain", "1") STORY_VERSION("uncordon", "1")},
    {.after_ms = 2000, .apply = STORY_VERSION("os", "1") STORY_VERSION("kubelet", "1")},
    {.after_ms = 3000, .apply = STORY_VERSION("agent", "1") STORY_VERSION("agent", "bad")},
    {.after_ms = 4000, .act = &story_approve_first},
    {.after_ms = 5000, .apply = STORY_VERSION("firmware", "1")},
    {.after_ms = 20000, .finish = "firmware/n1"},
    {.after_ms = 21000, .finish = "firmware/n2"},
    {.after_ms = 60000, .act = &story_freeze},
    {.after_ms = 70000, .apply = STORY_VERSION("puller", "1")},
    {.after_ms = 71000, .act = &story_approve_puller},
    {.after_ms = 75000, .act = &story_thaw},
    {.after_ms = 90000, .act = &story_pause},
    {.after_ms = 95000, .act = &story_resume},
    {.after_ms = 100000, .token = "ci"},
    {.after_ms = 130000, .act = &story_retry},
    {.after_ms = 200000, .apply = STORY_VERSION("agent", "2")},
    {.after_ms = 201000, .act = &story_bypass},
    {.after_ms = 210000, .act = &story_approve_agent},
    {.after_ms = 330000, .act = &story_skip},
    {.after_ms = 400000, .apply = STORY_VERSION("os", "2") STORY_HOST("n5", "wide")},
    {.after_ms = 405000, .gone = "Resource/n2"},
    {.after_ms = 410000, .token = "guest"},
    {.after_ms = 420000, .revoke = "ci"},
    {.after_ms = 500000, .gone = "Version/agent-bad"},
    {.after_ms = 600000, .apply = STORY_VERSION("agent", "3")},
    {.after_ms = 601000, .act = &story_approve_third},
    {.after_ms = 700000, .apply = STORY_HOST("n2", "wide")},
    {.after_ms = 720000, .apply = STORY_VERSION("kubelet", "2")},
    {.after_ms = 722000, .act = &story_halt},
    {.after_ms = 724000, .apply = STORY_VERSION("agent", "4")},
    {.after_ms = 725000, .act = &story_reject},
    {.after_ms = 760000, .act = &story_go_on},
    {.after_ms = 900000, .act = &story_slot},
    {.after_ms = 901000, .act = &story_rollback},
    {.after_ms = 960000, .act = &story_slot_back},
};

static const plane_plan story_plans[] = {
    {.deployment = "drain", .ms = 4000},
    {.deployment = "kubelet",
     .resource = "n3",
     .attempts = 2,
     .ms = 3000,
     .outcome = OUTCOME_FAILED},
    {.deployment = "kubelet", .ms = 3000},
    {.deployment = "agent",
     .resource = "n3",
     .version = "3",
     .ms = 1000,
     .outcome = OUTCOME_FAILED},
    {.deployment = "agent", .resource = "n4", .ms = 1000, .bad_verification = true},
    {.deployment = "puller", .resource = "n4", .silent = true},
    {.deployment = "puller", .ms = 2000},
};

static inline plane story_plane(const char *folder, plane_shared *shared)
{
    return (plane){.folder = folder,
                   .shared = shared,
                   .events = story_events,
                   .event_count = COUNT_OF(story_events),
                   .plans = story_plans,
                   .plan_count = COUNT_OF(story_plans),
                   .start_ms = INT64_C(1767225600000), /* 2026-01-01T00:00:00Z */
                   .snapshot_entries = 60};
}

#endif
