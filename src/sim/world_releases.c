/* SPDX-License-Identifier: Apache-2.0 */
/* world_releases.c - random resources, deployments, versions and rules of every kind. */
#include "sim/world.h"

#define RESOURCES_MAX 8
#define DEPLOYMENTS_MAX 4
#define POLICIES_MAX 3
#define TROUBLES_MAX 6
#define POLICY_RULES 14 /* of rule_text */
#define COLOURS 3
#define BRACKET_RULE 0
#define WINDOW_RULE 4
#define SELECTOR_RULE 9
#define PROGRESSION_RULE 10
#define STRATEGY_RULE 12
#define STRATEGY_POLICY 1 /* the one that has it where all must end */
#define CURE_ROUNDS 3
#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define CURE_ROUND_MS (2 * DAY_MS)
#define CURE_DAYS 10

typedef struct release_world {
    world *w;
    int64_t resources, deployments, environments, policies, versions;
    bool approvals;
    bool opened;   /* people must open partitions */
    bool windowed; /* two windows may never be open together */
} release_world;

static const char *const colours[COLOURS] = {"red", "green", "blue"};
static const char *const environment_names[] = {"staging", "prod"};

/* ---- documents ---- */

static void resource_document(release_world *r, int64_t number)
{
    world *w = r->w;
    const char *where = environment_names[r->environments > 1 ? number % 2 : 1];
    world_add(w, world_textf(
                     w,
                     "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Resource\",\"metadata\":{"
                     "\"name\":\"r%02lld\",\"labels\":{\"env\":\"%s\",\"colour\":\"%s\"}},\"spec\":"
                     "{\"kind\":\"host\"}}",
                     (long long)number, where, colours[world_between(w, 0, 2)]));
}

static void environment_document(release_world *r, int64_t number)
{
    world *w = r->w;
    const char *name = environment_names[r->environments > 1 ? number : 1];
    world_add(
        w,
        world_textf(w,
                    "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Environment\",\"metadata\":"
                    "{\"name\":\"%s\"},\"spec\":{\"resourceSelector\":\"resource.metadata['env'] =="
                    " '%s'\"}}",
                    name, name));
}

static str deployment_text(release_world *r, int64_t number)
{
    world *w = r->w;
    return world_textf(
        w,
        "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Deployment\",\"metadata\":{"
        "\"name\":\"d%lld\",\"labels\":{\"layer\":\"%s\"}},\"spec\":{\"resourceSelector\":"
        "\"%s\",\"job\":{\"simulated\":{}}}}",
        (long long)number, number % 2 ? "odd" : "even",
        world_chance(w, 80) ? "true" : "resource.metadata['colour'] != 'red'");
}

/* What a version needs may never come to a resource: not where all must end. */
static str version_text(release_world *r, int64_t deployment_number, const char *status)
{
    bool needs = deployment_number == 2 && !r->w->wishes.cured && world_chance(r->w, 30);
    return world_textf(r->w,
                       "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Version\",\"metadata\":{"
                       "\"name\":\"d%lld-v1\",\"creationTimestamp\":\"2025-12-31T21:00:00Z\"},"
                       "\"spec\":{\"deployment\":\"d%lld\",\"tag\":\"v1\",\"status\":\"%s\"%s}}",
                       (long long)deployment_number, (long long)deployment_number, status,
                       needs ? ",\"dependsOn\":[{\"deployment\":\"d0\",\"versionSelector\":"
                               "\"version.tag != 'v2'\"}]"
                             : "");
}

static str bracket_text(world *w)
{
    static const char *const modes[] = {"collection_window", "wait_for_all", "immediate"};
    static const char *const unchanged[] = {"skip_unchanged", "redeploy_current", "require_all"};
    static const char *const rollbacks[] = {"halt_and_notify", "individual", "all_members"};
    int64_t mode = world_between(w, 0, 2);
    str window = mode == 2 ? STR_EMPTY
                           : world_textf(w, ",\"readinessWindowSeconds\":%lld",
                                         (long long)world_between(w, 1, 60) * 60);
    bool hooks = world_chance(w, 40);
    return world_textf(
        w,
        "\"deploymentBracket\":{\"deploymentSelector\":\"true\",\"readinessMode\":\"%s\"%.*s,"
        "\"unchangedMemberStrategy\":\"%s\",\"overlapStrategy\":\"%s\",\"rollbackStrategy\":"
        "\"%s\"%s%s}",
        modes[mode], STR_ARG(window), unchanged[world_between(w, 0, mode == 2 ? 1 : 2)],
        world_chance(w, 50) ? "queue" : "merge", rollbacks[world_between(w, 0, 2)],
        hooks ? ",\"preSelector\":\"deployment.name == 'd0'\",\"postSelector\":"
                "\"deployment.name == 'd3'\""
              : "",
        world_chance(w, 30) ? ",\"windowTrigger\":\"eligible\"" : "");
}

static str compartments_text(world *w)
{
    static const char *const strategies[] = {"fixed", "linear", "exponential"};
    return world_textf(
        w,
        "\"deploymentPolicy\":{\"default\":{\"budget\":{\"percent\":%lld},\"strategy\":{\"%s\":{"
        "\"initialBatch\":%lld}}},\"compartments\":[{\"name\":\"reds\",\"selector\":{"
        "\"matchLabels\":{\"colour\":\"red\"}},\"budget\":{\"count\":%lld}%s}]}",
        (long long)world_between(w, 1, 100), strategies[world_between(w, 0, 2)],
        (long long)world_between(w, 1, 3), (long long)world_between(w, 1, 3),
        world_chance(w, 50) ? ",\"strategy\":{\"linear\":{}}" : "");
}

static str number_field(world *w, const char *name, int64_t most, uint32_t percent)
{
    if (!world_chance(w, percent))
        return STR_EMPTY;
    return world_textf(w, ",\"%s\":%lld", name, (long long)world_between(w, 1, most));
}

static str unavailable_text(world *w)
{
    if (world_chance(w, 50))
        return world_textf(w, "\"maxUnavailable\":%lld", (long long)world_between(w, 0, 3));
    return world_textf(w, "\"maxUnavailable\":\"%lld%%\"", (long long)world_between(w, 1, 100));
}

/* Who is in no partition never runs, and whatever depends on it waits for ever: where all must end
 * every colour has a partition. */
static str partitions_text(release_world *r)
{
    world *w = r->w;
    str list = STR_EMPTY;
    int64_t count =
        world_chance(w, 50) ? 0 : world_between(w, w->wishes.cured ? COLOURS : 1, COLOURS);
    for (int64_t i = 0; i < count; i++) {
        str own = world_chance(w, 30) ? unavailable_text(w) : STR_EMPTY;
        bool approval = !w->wishes.calm && world_chance(w, 15);
        r->opened = r->opened || approval;
        list =
            world_textf(w,
                        "%.*s%s{\"name\":\"part%lld\",\"clusterSelector\":{\"matchLabels\":{"
                        "\"colour\":\"%s\"}}%s%.*s%s}",
                        STR_ARG(list), i > 0 ? "," : " ", (long long)i, colours[i],
                        own.len > 0 ? "," : "", STR_ARG(own), approval ? ",\"approval\":true" : "");
    }
    return count == 0 ? STR_EMPTY : world_textf(w, ",\"partitions\":[%.*s]", STR_ARG(list));
}

static str strategy_text(release_world *r)
{
    world *w = r->w;
    str most = unavailable_text(w), parts = partitions_text(r);
    str few = number_field(w, "maxNew", 4, 40);
    str soak = number_field(w, "soakSeconds", 300, 20);
    str stop = number_field(w, "failureThreshold", 3, 20);
    str threshold = number_field(w, "autoPartitionThreshold", 4, 50);
    str size = number_field(w, "autoPartitionSize", 3, 60);
    str more = number_field(w, "maxUnavailablePartitions", 2, 30);
    return world_textf(w, "\"rolloutStrategy\":{%.*s%.*s%.*s%.*s%.*s%.*s%.*s%.*s}", STR_ARG(most),
                       STR_ARG(parts), STR_ARG(few), STR_ARG(soak), STR_ARG(stop),
                       STR_ARG(threshold), STR_ARG(size), STR_ARG(more));
}

static str dependency_text(world *w)
{
    bool both = world_chance(w, 40);
    return world_textf(w,
                       "\"deploymentDependency\":{\"dependsOn\":\"deployment.name in %s\","
                       "\"appliesTo\":\"!(deployment.name in %s)\"%s}",
                       both ? "['d0', 'd1']" : "['d0']", both ? "['d0', 'd1']" : "['d0']",
                       world_chance(w, 40) ? ",\"match\":\"any\"" : "");
}

/* Where not all must end the first version may be refused, too, or one on some resources only:
 * whoever follows those in another environment never gets it. */
static str selector_text(world *w)
{
    int64_t refused = world_between(w, w->wishes.cured ? 2 : 1, 4);
    return world_textf(
        w, "\"versionSelector\":{\"selector\":\"version.tag != 'v%lld'%s\"}", (long long)refused,
        !w->wishes.cured && world_chance(w, 30) ? " || resource.metadata['colour'] == 'red'" : "");
}

static str verification_text(world *w)
{
    return world_textf(
        w,
        "\"verification\":{\"triggerOn\":\"%s\",\"metrics\":[{\"name\":\"m%lld\",\"provider\":{"
        "\"type\":\"sleep\",\"durationSeconds\":%lld},\"intervalSeconds\":%lld,\"count\":%lld,"
        "\"successCondition\":\"true\"}]}",
        world_chance(w, 90) ? "jobSuccess" : "jobFailure", (long long)world_between(w, 0, 1),
        (long long)world_between(w, 1, 60), (long long)world_between(w, 1, 60),
        (long long)world_between(w, 1, 3));
}

static str rule_text(release_world *r, int64_t kind)
{
    world *w = r->w;
    static const char *const timeouts[] = {"hold", "release", "quarantine"};
    switch (kind) {
    case 0: return bracket_text(w);
    case 1:
        return world_textf(w,
                           "\"resourceConcurrency\":{\"groupSelector\":\"%s\",\"limitType\":\"%s\","
                           "\"limitValue\":%lld%s%s%s}",
                           world_chance(w, 50) ? "true" : "resource.metadata['colour'] == 'red'",
                           world_chance(w, 50) ? "count" : "percentage",
                           (long long)world_between(w, 1, 4) * (world_chance(w, 50) ? 1 : 20),
                           world_chance(w, 20) ? ",\"slotTimeoutSeconds\":600,\"onTimeout\":\""
                                               : ",\"onTimeout\":\"",
                           timeouts[world_between(w, 0, 2)], "\"");
    case 2:
        return world_textf(w,
                           "\"gradualRollout\":{\"rolloutType\":\"%s\",\"timeScaleInterval\":%lld}",
                           world_chance(w, 50) ? "linear" : "linear-normalized",
                           (long long)world_between(w, 1, 300));
    case 3: return dependency_text(w);
    case 4:
        return world_textf(
            w,
            "\"deploymentWindow\":{\"rrule\":\"DTSTART=20251231T000000Z;FREQ=DAILY;"
            "BYHOUR=%lld;BYMINUTE=0;BYSECOND=0\",\"durationMinutes\":%lld,\"timezone\":"
            "\"UTC\",\"allowWindow\":%s}",
            (long long)world_between(w, 0, 12), (long long)world_between(w, 60, 600),
            world_chance(w, 70) ? "true" : "false");
    case 5: r->approvals = true; return STR("\"anyApproval\":{\"minApprovals\":1}");
    case 6:
        return world_textf(w, "\"versionCooldown\":{\"intervalSeconds\":%lld}",
                           (long long)world_between(w, 10, 1200));
    case 7:
        return world_textf(
            w,
            "\"retry\":{\"maxRetries\":%lld,\"backoffSeconds\":%lld,\"backoffStrategy\":"
            "\"%s\"}",
            (long long)world_between(w, 1, 4), (long long)world_between(w, 0, 120),
            world_chance(w, 50) ? "linear" : "exponential");
    case 8:
        return world_textf(w, "\"rollback\":{%s%s}",
                           world_chance(w, 70) ? "\"onJobStatuses\":[\"failure\"]," : "",
                           world_chance(w, 50) ? "\"onVerificationFailure\":true"
                                               : "\"onVerificationFailure\":false");
    case 9: return selector_text(w);
    case 10:
        return world_textf(w,
                           "\"environmentProgression\":{\"dependsOnEnvironmentSelector\":"
                           "\"environment.name == 'staging'\",\"minimumSoakTimeMinutes\":%lld%s}",
                           (long long)world_between(w, 0, 30),
                           world_chance(w, 30) ? ",\"requireVerificationPassed\":true" : "");
    case 11: return compartments_text(w);
    case 12: return strategy_text(r);
    case 13: return verification_text(w);
    }
    return STR_EMPTY;
}

/* One policy; empty if it came to no rule. A progression is asked of production only, or it would
 * wait for itself; and not of hooks, which wait in staging until something else changes there. What
 * is refused in production only is passed over in staging: not where all must end. */
static str policy_text(release_world *r, int64_t number)
{
    world *w = r->w;
    str rules = STR_EMPTY;
    bool used[POLICY_RULES] = {0};
    int64_t count = world_between(w, 1, 4);
    for (int64_t i = 0; i < count; i++) {
        int64_t kind = world_between(w, 0, POLICY_RULES - 1);
        bool second = kind == STRATEGY_RULE && number != STRATEGY_POLICY;
        bool follows = !w->wishes.cured || !used[SELECTOR_RULE], alike = !used[PROGRESSION_RULE];
        bool possible = kind == PROGRESSION_RULE ? r->environments > 1 && follows
                        : kind == SELECTOR_RULE  ? !w->wishes.cured || alike
                        : kind == BRACKET_RULE   ? number == 0
                        : kind == WINDOW_RULE    ? !r->windowed
                                                 : !second || !w->wishes.cured;
        if (used[kind] || !possible)
            continue;
        r->windowed = r->windowed || kind == WINDOW_RULE;
        used[kind] = true;
        str one = rule_text(r, kind);
        rules =
            world_textf(w, "%.*s%s{%.*s}", STR_ARG(rules), rules.len > 0 ? "," : " ", STR_ARG(one));
    }
    if (rules.len == 0)
        return STR_EMPTY;
    const char *over = used[PROGRESSION_RULE]
                           ? "environment.name == 'prod' && deployment.name in ['d1', 'd2']"
                       : world_chance(w, 80) ? "true"
                                             : "deployment.metadata['layer'] == 'odd'";
    return world_textf(
        w,
        "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"RolloutPolicy\",\"metadata\":{"
        "\"name\":\"rules%lld\"},\"spec\":{\"selector\":\"%s\",\"rules\":[%.*s]}}",
        (long long)number, over, STR_ARG(rules));
}

/* ---- trouble ---- */

/* Colours decide which deployments and limits a resource is under. */
static const label *colour_label(world *w, const char *env)
{
    label *labels = ARENA_ARRAY(w->arena, 2, label);
    if (!labels) {
        w->no_memory = true;
        return NULL;
    }
    labels[0] = (label){STR("colour"), str_of(colours[world_between(w, 0, 2)])};
    labels[1] = (label){STR("env"), str_of(env)};
    return labels;
}

/* Something that is undone again by itself, mostly; the cure undoes it in any case. */
static void for_a_while(release_world *r, happening h, happening_kind undone)
{
    world_happens(r->w, h);
    h.kind = undone;
    h.after_ms += world_between(r->w, 1, 3600) * 1000;
    if (world_chance(r->w, 60))
        world_happens(r->w, h);
}

static void resource_trouble(release_world *r, int64_t at_ms)
{
    world *w = r->w;
    int64_t number = world_between(w, 1, r->resources);
    happening h = {.after_ms = at_ms, .target = world_textf(w, "r%02lld", (long long)number)};
    switch (world_between(w, 0, 3)) {
    case 0: h.kind = HAPPEN_FAIL; break;
    case 1:
        h.kind = HAPPEN_LABEL;
        h.labels = colour_label(w, environment_names[r->environments > 1 ? number % 2 : 1]);
        h.label_count = 1;
        break;
    case 2:
        h.kind = HAPPEN_JOIN;
        h.target = world_textf(w, "newr%02lld", (long long)world_between(w, 1, 3));
        h.as = TARGET_RESOURCE;
        h.as_given = true;
        h.labels = colour_label(w, environment_names[r->environments > 1 ? number % 2 : 1]);
        h.label_count = 2;
        break;
    case 3: h.kind = HAPPEN_DELETE; break;
    }
    world_happens(w, h);
}

/* Documents that change or go in the middle of a rollout. */
static void document_trouble(release_world *r, int64_t at_ms)
{
    world *w = r->w;
    int64_t number = world_between(w, 0, r->deployments - 1);
    happening h = {.kind = HAPPEN_DELETE, .after_ms = at_ms};
    switch (world_between(w, 0, 4)) {
    case 0:
    case 1: {
        str policy = policy_text(r, world_between(w, 0, POLICIES_MAX - 1));
        if (policy.len == 0)
            return;
        h.kind = HAPPEN_APPLY;
        h.document = world_object(w, policy);
        break;
    }
    case 2:
        h.name = world_textf(w, "rules%lld", (long long)world_between(w, 0, POLICIES_MAX - 1));
        break;
    case 3:
        h.name = world_textf(w, "d%lld", (long long)number);
        world_happens(w, h);
        if (!world_chance(w, 60))
            return;
        h = (happening){.kind = HAPPEN_APPLY,
                        .after_ms = at_ms + world_between(w, 1, 3600) * 1000,
                        .document = world_object(w, deployment_text(r, number))};
        break;
    case 4:
        h.kind = HAPPEN_APPLY;
        h.document =
            world_object(w, version_text(r, number, world_chance(w, 50) ? "rejected" : "paused"));
        break;
    }
    world_happens(w, h);
}

/* One rule is ignored for one version; it may be one that nobody made. */
static void bypass(release_world *r, happening *h)
{
    static const char *const kinds[] = {
        "deploymentBracket", "gradualRollout",  "deploymentDependency",   "deploymentWindow",
        "anyApproval",       "versionCooldown", "environmentProgression", "versionSelector"};
    world *w = r->w;
    h->kind = HAPPEN_BYPASS;
    h->version = world_textf(w, "v%lld", (long long)world_between(w, 1, r->versions));
    h->rule = world_textf(w, "rules%lld/%s/0", (long long)world_between(w, 0, POLICIES_MAX - 1),
                          kinds[world_between(w, 0, sizeof kinds / sizeof kinds[0] - 1)]);
    if (world_chance(w, 30))
        h->target = world_textf(w, "r%02lld", (long long)world_between(w, 1, r->resources));
    if (world_chance(w, 30))
        h->environment = str_of(environment_names[world_between(w, 0, 1)]);
    if (world_chance(w, 30))
        h->for_ms = world_between(w, 1, 3600) * 1000;
}

static void people_trouble(release_world *r, int64_t at_ms)
{
    world *w = r->w;
    happening h = {.after_ms = at_ms,
                   .name =
                       world_textf(w, "d%lld", (long long)world_between(w, 0, r->deployments - 1))};
    switch (world_between(w, 0, 7)) {
    case 0:
    case 1:
        h.kind = HAPPEN_PUBLISH;
        h.version = world_textf(w, "v%lld", (long long)++r->versions);
        break;
    case 2:
        h.kind = HAPPEN_FREEZE;
        h.name = STR("ice");
        h.reason = STR("cold");
        if (world_chance(w, 40))
            h.selector = world_textf(w, "deployment.name == 'd%lld'",
                                     (long long)world_between(w, 0, r->deployments - 1));
        if (world_chance(w, 30))
            h.for_ms = world_between(w, 1, 3600) * 1000;
        for_a_while(r, h, HAPPEN_THAW);
        return;
    case 3:
        h.kind = HAPPEN_PAUSE;
        for_a_while(r, h, HAPPEN_RESUME);
        return;
    case 4:
        h.kind = HAPPEN_HALT;
        for_a_while(r, h, HAPPEN_RESUME);
        return;
    case 5:
        h.kind = world_chance(w, 50) ? HAPPEN_SKIP : HAPPEN_ROLLBACK;
        h.target = world_textf(w, "r%02lld", (long long)world_between(w, 1, r->resources));
        break;
    case 6: bypass(r, &h); break;
    case 7: /* a host is about to boot, and says later that it has */
        h.kind = HAPPEN_CLAIM_SLOT;
        h.name = STR_EMPTY;
        h.target = world_textf(w, "r%02lld", (long long)world_between(w, 1, r->resources));
        for_a_while(r, h, HAPPEN_FREE_SLOT);
        return;
    }
    world_happens(w, h);
}

static void trouble(release_world *r, int64_t at_ms)
{
    switch (world_between(r->w, 0, 2)) {
    case 0: resource_trouble(r, at_ms); break;
    case 1: document_trouble(r, at_ms); break;
    case 2: people_trouble(r, at_ms); break;
    }
}

static void approve_all(release_world *r, int64_t at_ms)
{
    world *w = r->w;
    for (int64_t d = 0; d < r->deployments; d++)
        for (int64_t v = 1; v <= r->versions + 1; v++)
            for (size_t e = 0; e < 2; e++)
                world_happens(w, (happening){.kind = HAPPEN_APPROVE,
                                             .after_ms = at_ms,
                                             .name = world_textf(w, "d%lld", (long long)d),
                                             .version = world_textf(w, "v%lld", (long long)v),
                                             .environment = str_of(environment_names[e]),
                                             .who = STR("ann")});
}

/* Partitions ask one after the other, and again when something else is wanted. */
static void open_partitions(release_world *r, int64_t at_ms)
{
    world *w = r->w;
    for (int64_t d = 0; d < r->deployments; d++)
        for (int64_t i = 0; i < COLOURS; i++)
            world_happens(w, (happening){.kind = HAPPEN_APPROVE,
                                         .after_ms = at_ms,
                                         .name = world_textf(w, "d%lld", (long long)d),
                                         .target = world_textf(w, "part%lld", (long long)i)});
}

static str resource_name(release_world *r, int64_t number)
{
    return number <= r->resources
               ? world_textf(r->w, "r%02lld", (long long)number)
               : world_textf(r->w, "newr%02lld", (long long)(number - r->resources));
}

static void retry_all(release_world *r, int64_t at_ms)
{
    for (int64_t i = 1; i <= r->resources + 3; i++)
        for (int64_t d = 0; d < r->deployments; d++)
            world_happens(r->w, (happening){.kind = HAPPEN_RETRY,
                                            .after_ms = at_ms,
                                            .target = resource_name(r, i),
                                            .name = world_textf(r->w, "d%lld", (long long)d)});
}

static void cure(release_world *r, int64_t at_ms)
{
    world *w = r->w;
    for (int64_t i = 1; i <= r->resources + 3; i++)
        world_happens(
            w, (happening){.kind = HAPPEN_HEAL, .after_ms = at_ms, .target = resource_name(r, i)});
    /* Who is on the way back to an older version when people come must be told once more. */
    for (int64_t round = 0; round < CURE_ROUNDS; round++)
        retry_all(r, at_ms + round * CURE_ROUND_MS);
    world_happens(w, (happening){.kind = HAPPEN_THAW, .after_ms = at_ms, .name = STR("ice")});
    for (int64_t d = 0; d < r->deployments; d++) {
        world_happens(w, (happening){.kind = HAPPEN_RESUME,
                                     .after_ms = at_ms,
                                     .name = world_textf(w, "d%lld", (long long)d)});
        world_happens(w, (happening){.kind = HAPPEN_APPLY,
                                     .after_ms = at_ms,
                                     .document = world_object(w, version_text(r, d, "ready"))});
    }
    for (int64_t i = 1; i <= r->resources; i++)
        world_happens(w, (happening){.kind = HAPPEN_FREE_SLOT,
                                     .after_ms = at_ms,
                                     .target = resource_name(r, i)});
    approve_all(r, at_ms);
    for (int64_t day = 0; r->opened && day < CURE_DAYS; day++)
        open_partitions(r, at_ms + day * DAY_MS);
}

void world_releases(world *w)
{
    release_world r = {.w = w,
                       .resources = world_between(w, 1, world_most(w, RESOURCES_MAX)),
                       .deployments = world_between(w, 1, DEPLOYMENTS_MAX),
                       .environments = world_between(w, 1, 2),
                       .policies = world_between(w, 0, POLICIES_MAX),
                       .versions = 1};
    for (int64_t i = 1; i <= r.resources; i++)
        resource_document(&r, i);
    for (int64_t i = 0; i < r.environments; i++)
        environment_document(&r, i);
    for (int64_t i = 0; i < r.deployments; i++)
        world_add(w, deployment_text(&r, i));
    for (int64_t i = 0; i < r.deployments; i++)
        world_add(w, version_text(&r, i, "ready"));
    for (int64_t i = 0; i < r.policies; i++) {
        str policy = policy_text(&r, i);
        if (policy.len > 0)
            world_add(w, policy);
    }
    err error;
    if (world_chance(w, 40) && !sim_add_from(w->sim, STR_EMPTY, STR("v0"), &error))
        w->no_memory = true;
    int64_t troubles = w->wishes.calm ? 0 : world_between(w, 0, world_most(w, TROUBLES_MAX));
    for (int64_t i = 0; i < troubles; i++)
        trouble(&r, world_time(w));
    if (w->wishes.cured)
        cure(&r, WORLD_CURE_MS);
}
