/* SPDX-License-Identifier: Apache-2.0 */
/* world_releases.c - random resources, deployments, versions and rules of every kind. */
#include "sim/world.h"

#define RESOURCES_MAX 8
#define DEPLOYMENTS_MAX 4
#define POLICIES_MAX 3
#define TROUBLES_MAX 6

typedef struct release_world {
    world *w;
    int64_t resources, deployments, environments, policies, versions;
    bool approvals;
    bool windowed; /* two windows may never be open together */
} release_world;

static const char *const colours[] = {"red", "green", "blue"};
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

static void deployment_document(release_world *r, int64_t number)
{
    world *w = r->w;
    world_add(
        w, world_textf(
               w,
               "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Deployment\",\"metadata\":{"
               "\"name\":\"d%lld\",\"labels\":{\"layer\":\"%s\"}},\"spec\":{\"resourceSelector\":"
               "\"%s\",\"job\":{\"simulated\":{}}}}",
               (long long)number, number % 2 ? "odd" : "even",
               world_chance(w, 80) ? "true" : "resource.metadata['colour'] != 'red'"));
}

static void version_document(release_world *r, int64_t deployment_number, int64_t number)
{
    world *w = r->w;
    world_add(w, world_textf(
                     w,
                     "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Version\",\"metadata\":{"
                     "\"name\":\"d%lld-v%lld\",\"creationTimestamp\":\"2025-12-31T2%lld:00:00Z\"},"
                     "\"spec\":{\"deployment\":\"d%lld\",\"tag\":\"v%lld\"}}",
                     (long long)deployment_number, (long long)number, (long long)number,
                     (long long)deployment_number, (long long)number));
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
        "\"%s\"%s}",
        modes[mode], STR_ARG(window), unchanged[world_between(w, 0, mode == 2 ? 1 : 2)],
        world_chance(w, 50) ? "queue" : "merge", rollbacks[world_between(w, 0, 2)],
        hooks ? ",\"preSelector\":\"deployment.name == 'd0'\",\"postSelector\":"
                "\"deployment.name == 'd3'\""
              : "");
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
                           timeouts[world_between(w, 0, 1)], "\"");
    case 2:
        return world_textf(w,
                           "\"gradualRollout\":{\"rolloutType\":\"%s\",\"timeScaleInterval\":%lld}",
                           world_chance(w, 50) ? "linear" : "linear-normalized",
                           (long long)world_between(w, 1, 300));
    case 3:
        return STR(
            "\"deploymentDependency\":{\"dependsOn\":\"deployment.name == 'd0'\",\"appliesTo\":"
            "\"deployment.name != 'd0'\"}");
    case 4:
        return world_textf(
            w,
            "\"deploymentWindow\":{\"rrule\":\"FREQ=DAILY;BYHOUR=%lld;BYMINUTE=0;"
            "BYSECOND=0\",\"durationMinutes\":%lld,\"timezone\":\"UTC\",\"allowWindow\":%s}",
            (long long)world_between(w, 0, 12), (long long)world_between(w, 60, 600),
            world_chance(w, 70) ? "true" : "false");
    case 5:
        r->approvals = true;
        world_note(w, CAUSE_APPROVAL);
        return STR("\"anyApproval\":{\"minApprovals\":1}");
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
    case 8: return STR("\"rollback\":{\"onJobStatuses\":[\"failure\"]}");
    case 9: return STR("\"versionSelector\":{\"selector\":\"version.tag != 'v9'\"}");
    case 10:
        return world_textf(w,
                           "\"environmentProgression\":{\"dependsOnEnvironmentSelector\":"
                           "\"environment.name == 'staging'\",\"minimumSoakTimeMinutes\":%lld}",
                           (long long)world_between(w, 0, 30));
    }
    return STR_EMPTY;
}

/* A progression is asked of production only, or it would wait for itself. */
static void policy_document(release_world *r, int64_t number)
{
    world *w = r->w;
    str rules = STR_EMPTY;
    bool used[11] = {0};
    int64_t count = world_between(w, 1, 4);
    bool bracketed = false;
    for (int64_t i = 0; i < count; i++) {
        int64_t kind = world_between(w, 0, r->environments > 1 ? 10 : 9);
        if (used[kind] || (kind == 0 && (number > 0 || bracketed)) || (kind == 4 && r->windowed))
            continue;
        r->windowed = r->windowed || kind == 4;
        used[kind] = true;
        bracketed = bracketed || kind == 0;
        str one = rule_text(r, kind);
        rules =
            world_textf(w, "%.*s%s{%.*s}", STR_ARG(rules), rules.len > 0 ? "," : " ", STR_ARG(one));
    }
    if (rules.len == 0)
        return;
    const char *over = used[10]              ? "environment.name == 'prod'"
                       : world_chance(w, 80) ? "true"
                                             : "deployment.metadata['layer'] == 'odd'";
    world_add(
        w, world_textf(
               w,
               "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"RolloutPolicy\",\"metadata\":{"
               "\"name\":\"policy%lld\"},\"spec\":{\"selector\":\"%s\",\"rules\":[%.*s]}}",
               (long long)number, over, STR_ARG(rules)));
}

/* ---- trouble ---- */

static void trouble(release_world *r, int64_t at_ms)
{
    world *w = r->w;
    str target = world_textf(w, "r%02lld", (long long)world_between(w, 1, r->resources));
    str name = world_textf(w, "d%lld", (long long)world_between(w, 0, r->deployments - 1));
    happening h = {.after_ms = at_ms, .target = target};
    switch (world_between(w, 0, 6)) {
    case 0:
        h.kind = HAPPEN_FAIL;
        world_note(w, CAUSE_FAIL);
        break;
    case 1:
    case 2:
        h = (happening){.kind = HAPPEN_PUBLISH,
                        .after_ms = at_ms,
                        .name = name,
                        .version = world_textf(w, "v%lld", (long long)++r->versions)};
        break;
    case 3: {
        label *one = ARENA_NEW(w->arena, label);
        if (!one) {
            w->no_memory = true;
            return;
        }
        *one = (label){STR("colour"), str_of(colours[world_between(w, 0, 2)])};
        h.kind = HAPPEN_LABEL;
        h.labels = one;
        h.label_count = 1;
        break;
    }
    case 4: {
        label *labels = ARENA_ARRAY(w->arena, 2, label);
        if (!labels) {
            w->no_memory = true;
            return;
        }
        labels[0] = (label){STR("colour"), STR("red")};
        labels[1] = (label){STR("env"), STR("prod")};
        h = (happening){.kind = HAPPEN_JOIN,
                        .after_ms = at_ms,
                        .target = world_textf(w, "newr%02lld", (long long)world_between(w, 1, 3)),
                        .as = TARGET_RESOURCE,
                        .as_given = true,
                        .labels = labels,
                        .label_count = 2};
        break;
    }
    case 5:
        if (r->resources < 2)
            return;
        h = (happening){.kind = HAPPEN_DELETE,
                        .after_ms = WORLD_TROUBLE_MS + world_between(w, 0, 600) * 1000,
                        .target = world_textf(w, "r%02lld", (long long)r->resources--)};
        break;
    case 6:
        h = (happening){
            .kind = HAPPEN_FREEZE, .after_ms = at_ms, .name = STR("ice"), .reason = STR("cold")};
        world_note(w, CAUSE_FREEZE);
        world_happens(w, h);
        h.kind = HAPPEN_THAW;
        h.after_ms += world_between(w, 1, 3600) * 1000;
        if (!world_chance(w, 60))
            return;
        break;
    }
    world_happens(w, h);
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

static void cure(release_world *r, int64_t at_ms)
{
    world *w = r->w;
    for (int64_t i = 1; i <= r->resources + 3; i++) {
        str target = i <= r->resources
                         ? world_textf(w, "r%02lld", (long long)i)
                         : world_textf(w, "newr%02lld", (long long)(i - r->resources));
        world_happens(w, (happening){.kind = HAPPEN_HEAL, .after_ms = at_ms, .target = target});
        for (int64_t d = 0; d < r->deployments; d++)
            world_happens(w, (happening){.kind = HAPPEN_RETRY,
                                         .after_ms = at_ms,
                                         .target = target,
                                         .name = world_textf(w, "d%lld", (long long)d)});
    }
    world_happens(w, (happening){.kind = HAPPEN_THAW, .after_ms = at_ms, .name = STR("ice")});
    approve_all(r, at_ms);
}

void world_releases(world *w)
{
    release_world r = {.w = w,
                       .resources = world_between(w, 1, RESOURCES_MAX),
                       .deployments = world_between(w, 1, DEPLOYMENTS_MAX),
                       .environments = world_between(w, 1, 2),
                       .policies = world_between(w, 0, POLICIES_MAX),
                       .versions = 1};
    for (int64_t i = 1; i <= r.resources; i++)
        resource_document(&r, i);
    for (int64_t i = 0; i < r.environments; i++)
        environment_document(&r, i);
    for (int64_t i = 0; i < r.deployments; i++)
        deployment_document(&r, i);
    for (int64_t i = 0; i < r.deployments; i++)
        version_document(&r, i, 1);
    for (int64_t i = 0; i < r.policies; i++)
        policy_document(&r, i);
    err error;
    if (world_chance(w, 40) && !sim_add_from(w->sim, STR_EMPTY, STR("v0"), &error))
        w->no_memory = true;
    int64_t troubles = w->wishes.calm ? 0 : world_between(w, 0, TROUBLES_MAX);
    for (int64_t i = 0; i < troubles; i++)
        trouble(&r, world_time(w));
    if (w->wishes.cured)
        cure(&r, WORLD_CURE_MS);
}
