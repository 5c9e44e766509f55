/* SPDX-License-Identifier: Apache-2.0 */
/* world_nodes.c - random nodes, Skyhooks and DeploymentPolicies. */
#include "sim/world.h"

#define NODES_MAX 12
#define SKYHOOKS_MAX 3
#define PACKAGES_MAX 3
#define TROUBLES_MAX 8

typedef struct node_world {
    world *w;
    int64_t nodes, skyhooks, policies;
    uint64_t skyhook_seed[SKYHOOKS_MAX];
    uint64_t policy_seed[2];
} node_world;

static const char *const tiers[] = {"a", "b", "c"};
static const char *const zones[] = {"x", "y"};
static const char *const interrupts[] = {
    "{\"type\":\"reboot\"}", "{\"type\":\"service\",\"services\":[\"one\"]}", "{\"type\":\"noop\"}",
    "{\"type\":\"restartAllServices\"}"};

/* ---- documents ---- */

static void node_document(node_world *n, int64_t number)
{
    world *w = n->w;
    bool calm = w->wishes.calm;
    bool ignored = !calm && world_chance(w, 4), tainted = !calm && world_chance(w, 4);
    bool not_ready = !calm && world_chance(w, 4);
    world_add(
        w,
        world_textf(
            w,
            "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n%02lld\","
            "\"creationTimestamp\":\"2025-12-0%lldT00:00:00Z\",\"labels\":{\"tier\":\"%s\","
            "\"zone\":\"%s\"%s}},\"spec\":{%s%s},\"status\":{\"conditions\":[{\"type\":"
            "\"Ready\",\"status\":\"%s\"}]}}",
            (long long)number, (long long)world_between(w, 1, 3), tiers[world_between(w, 0, 2)],
            zones[world_between(w, 0, 1)], ignored ? ",\"skyhook.nvidia.com/ignore\":\"true\"" : "",
            tainted ? "\"taints\":[{\"key\":\"wet\",\"value\":\"paint\",\"effect\":"
                      "\"NoSchedule\"}]"
                    : "",
            world_chance(w, 5) ? (tainted ? ",\"unschedulable\":true" : "\"unschedulable\":true")
                               : "",
            not_ready ? "False" : "True"));
}

static str budget_text(world *w, dice *d)
{
    if (dice_percent(d, 50))
        return world_textf(w, "{\"percent\":%lld}", (long long)dice_between(d, 1, 100));
    return world_textf(w, "{\"count\":%lld}", (long long)dice_between(d, 1, 6));
}

static str strategy_text(world *w, dice *d, bool needed)
{
    static const char *const kinds[] = {"fixed", "linear", "exponential"};
    uint64_t kind = dice_below(d, needed ? 3 : 4);
    if (kind == 3)
        return STR_EMPTY;
    str more = STR_EMPTY;
    if (kind == 1 && dice_percent(d, 50))
        more = world_textf(w, ",\"delta\":%lld", (long long)dice_between(d, 1, 3));
    if (kind == 2 && dice_percent(d, 50))
        more = world_textf(w, ",\"growthFactor\":%lld", (long long)dice_between(d, 2, 4));
    str stop = dice_percent(d, 40)
                   ? world_textf(w, ",\"failureThreshold\":%lld", (long long)dice_between(d, 1, 3))
                   : STR_EMPTY;
    return world_textf(w,
                       ",\"strategy\":{\"%s\":{\"initialBatch\":%lld,\"batchThreshold\":%lld,"
                       "\"safetyLimit\":%lld%.*s%.*s}}",
                       kinds[kind], (long long)dice_between(d, 1, 4),
                       (long long)dice_between(d, 1, 100), (long long)dice_between(d, 1, 100),
                       STR_ARG(more), STR_ARG(stop));
}

static str policy_text(node_world *n, int64_t number, int64_t edition)
{
    world *w = n->w;
    dice d = dice_of(n->policy_seed[number] + (uint64_t)edition * 7919u);
    str compartments = STR_EMPTY;
    int64_t count = dice_between(&d, 0, 3), first = dice_between(&d, 0, 4);
    for (int64_t i = 0; i < count; i++) {
        str limit = budget_text(w, &d), pace = strategy_text(w, &d, false);
        int64_t chosen = (first + i) % 5; /* no two compartments may select the same */
        bool by_tier = chosen < 3;
        const char *value = by_tier ? tiers[chosen] : zones[chosen - 3];
        compartments =
            world_textf(w,
                        "%.*s%s{\"name\":\"c%lld\",\"selector\":{\"matchLabels\":{\"%s\":"
                        "\"%s\"}},\"budget\":%.*s%.*s}",
                        STR_ARG(compartments), i > 0 ? "," : " ", (long long)i,
                        by_tier ? "tier" : "zone", value, STR_ARG(limit), STR_ARG(pace));
    }
    str limit = budget_text(w, &d), pace = strategy_text(w, &d, true);
    return world_textf(
        w,
        "{\"apiVersion\":\"skyhook.nvidia.com/v1alpha1\",\"kind\":\"DeploymentPolicy\","
        "\"metadata\":{\"name\":\"policy%lld\"},\"spec\":{\"default\":{\"budget\":%.*s%.*s},"
        "\"compartments\":[%.*s]%s%s}}",
        (long long)number, STR_ARG(limit), STR_ARG(pace), STR_ARG(compartments),
        dice_percent(&d, 30) ? ",\"resetBatchStateOnCompletion\":false" : "",
        dice_percent(&d, 20) ? ",\"failedNodesHoldBudget\":true" : "");
}

static str package_text(node_world *n, dice *d, int64_t skyhook_number, int64_t number,
                        int64_t edition)
{
    world *w = n->w;
    long long major = edition + 1;
    str needs = number > 0 && dice_percent(d, 60)
                    ? world_textf(w, ",\"dependsOn\":{\"pack-%c-%c\":\"%lld.0.0\"}",
                                  (int)('a' + skyhook_number), (int)('a' + number - 1), major)
                    : STR_EMPTY;
    str stop = dice_percent(d, 35)
                   ? world_textf(w, ",\"interrupt\":%s", interrupts[dice_below(d, 4)])
                   : STR_EMPTY;
    str config =
        dice_percent(d, 30)
            ? world_textf(w,
                          ",\"configMap\":{\"k\":\"v%lld\",\"same\":\"s\"},\"configInterrupts\":{"
                          "\"k\":%s}",
                          (long long)edition, interrupts[dice_below(d, 4)])
            : STR_EMPTY;
    return world_textf(
        w, "\"pack-%c-%c\":{\"version\":\"%lld.0.0\",\"image\":\"r/p\"%.*s%.*s%.*s%s}",
        (int)('a' + skyhook_number), (int)('a' + number), major, STR_ARG(needs), STR_ARG(stop),
        STR_ARG(config), dice_percent(d, 40) ? ",\"uninstall\":{\"enabled\":true}" : "");
}

/* How a Skyhook is held to its pace: a policy, a budget, or nothing. */
static str pace_text(node_world *n, dice *d)
{
    world *w = n->w;
    uint64_t kind = dice_below(d, 10);
    if (kind < 6 && n->policies > 0)
        return world_textf(w, "\"deploymentPolicy\":\"policy%llu\",",
                           (unsigned long long)dice_below(d, (uint64_t)n->policies));
    if (kind < 8)
        return world_textf(w, "\"interruptionBudget\":{\"%s\":%lld},",
                           dice_percent(d, 50) ? "percent" : "count",
                           (long long)dice_between(d, 0, 5));
    return STR_EMPTY;
}

static str skyhook_text(node_world *n, int64_t number, int64_t edition, bool disabled)
{
    world *w = n->w;
    dice d = dice_of(n->skyhook_seed[number]);
    str packages = STR_EMPTY;
    int64_t count = dice_between(&d, 1, PACKAGES_MAX);
    for (int64_t i = 0; i < count; i++) {
        str one = package_text(n, &d, number, i, edition);
        packages = world_textf(w, "%.*s%s%.*s", STR_ARG(packages), i > 0 ? "," : " ", STR_ARG(one));
    }
    str pace = pace_text(n, &d);
    str chosen = dice_percent(&d, 30)
                     ? world_textf(w, "\"nodeSelectors\":{\"matchLabels\":{\"zone\":\"%s\"}},",
                                   zones[dice_below(&d, 2)])
                     : STR_EMPTY;
    bool required = dice_percent(&d, 20);
    return world_textf(
        w,
        "{\"apiVersion\":\"skyhook.nvidia.com/v1alpha1\",\"kind\":\"Skyhook\",\"metadata\":"
        "{\"name\":\"sk%lld\"%s,\"generation\":%lld},\"spec\":{%.*s%.*s%s%s%s\"sequencing\":\"%s\","
        "\"priority\":%lld,\"packages\":{%.*s}}}",
        (long long)number,
        disabled ? ",\"annotations\":{\"skyhook.nvidia.com/disable\":\"true\"}" : "",
        (long long)(edition + 1), STR_ARG(pace), STR_ARG(chosen),
        dice_percent(&d, 30) ? "\"serial\":true," : "", required ? "\"runtimeRequired\":true," : "",
        required && dice_percent(&d, 50) ? "\"autoTaintNewNodes\":true," : "",
        dice_percent(&d, 20) ? "all" : "node", (long long)dice_between(&d, 1, 3) * 100,
        STR_ARG(packages));
}

/* ---- trouble ---- */

static str some_node(node_world *n)
{
    return world_textf(n->w, "n%02lld", (long long)world_between(n->w, 1, n->nodes));
}

static void relabel(node_world *n, int64_t at_ms, str target, const char *key, const char *value)
{
    happening h = {.kind = HAPPEN_LABEL, .after_ms = at_ms, .target = target};
    world_label(n->w, &h, str_of(key), value ? str_of(value) : (str){NULL, 0});
    world_happens(n->w, h);
}

static const fact_taint wet = {{"wet", 3}, {"paint", 5}, {"NoSchedule", 10}};

static void node_trouble(node_world *n, int64_t at_ms)
{
    world *w = n->w;
    str target = some_node(n);
    switch (world_between(w, 0, 8)) {
    case 0:
        world_happens(w, (happening){.kind = HAPPEN_FAIL, .after_ms = at_ms, .target = target});
        break;
    case 1:
        world_happens(w, (happening){.kind = HAPPEN_OFFLINE, .after_ms = at_ms, .target = target});
        if (world_chance(w, 60))
            world_happens(w, (happening){.kind = HAPPEN_ONLINE,
                                         .after_ms = at_ms + world_between(w, 1, 90) * 60000,
                                         .target = target});
        break;
    case 2:
        world_happens(w, (happening){.kind = HAPPEN_CORDON, .after_ms = at_ms, .target = target});
        break;
    case 3:
        world_happens(w, (happening){.kind = HAPPEN_UNCORDON, .after_ms = at_ms, .target = target});
        break;
    case 4: relabel(n, at_ms, target, "tier", tiers[world_between(w, 0, 2)]); break;
    case 5: relabel(n, at_ms, target, "skyhook.nvidia.com/ignore", "true"); break;
    case 6:
        world_happens(
            w,
            (happening){.kind = HAPPEN_TAINT, .after_ms = at_ms, .target = target, .taint = wet});
        break;
    case 7:
        world_happens(w, (happening){.kind = HAPPEN_REBOOT, .after_ms = at_ms, .target = target});
        break;
    case 8: relabel(n, at_ms, target, "zone", zones[world_between(w, 0, 1)]); break;
    }
}

/* Joining and leaving. The last node leaves, so that the names of the others stay good. */
static void node_traffic(node_world *n, int64_t at_ms, int64_t *joined)
{
    world *w = n->w;
    if (world_chance(w, 60)) {
        str name = world_textf(w, "late%02lld", (long long)++*joined);
        label *labels = ARENA_ARRAY(w->arena, 2, label);
        if (!labels) {
            w->no_memory = true;
            return;
        }
        labels[0] = (label){STR("tier"), str_of(tiers[world_between(w, 0, 2)])};
        labels[1] = (label){STR("zone"), str_of(zones[world_between(w, 0, 1)])};
        world_happens(w, (happening){.kind = HAPPEN_JOIN,
                                     .after_ms = at_ms,
                                     .target = name,
                                     .as = TARGET_NODE,
                                     .as_given = true,
                                     .labels = labels,
                                     .label_count = 2});
        if (world_chance(w, 30))
            world_happens(w, (happening){.kind = HAPPEN_DELETE,
                                         .after_ms = at_ms + world_between(w, 1, 600) * 1000,
                                         .target = name});
    } else if (n->nodes > 1) {
        str name = world_textf(w, "n%02lld", (long long)n->nodes--);
        /* After everything that was arranged for it so far. */
        world_happens(w,
                      (happening){.kind = HAPPEN_DELETE,
                                  .after_ms = WORLD_TROUBLE_MS + world_between(w, 0, 3600) * 1000,
                                  .target = name});
    }
}

static void people(node_world *n, int64_t at_ms)
{
    world *w = n->w;
    int64_t number = world_between(w, 0, n->skyhooks - 1);
    str name = world_textf(w, "sk%lld", (long long)number);
    happening h = {.after_ms = at_ms, .name = name};
    switch (world_between(w, 0, 7)) {
    case 0:
        h.kind = HAPPEN_PAUSE;
        world_happens_for_a_while(w, h, HAPPEN_RESUME);
        return;
    case 1:
    case 2:
        h.kind = HAPPEN_APPLY;
        h.document = world_object(w, skyhook_text(n, number, world_between(w, 0, 2), false));
        break;
    case 3:
        h.kind = HAPPEN_APPLY;
        if (n->policies == 0)
            return;
        h.document = world_object(
            w, policy_text(n, world_between(w, 0, n->policies - 1), world_between(w, 0, 3)));
        break;
    case 4:
        h.kind = HAPPEN_RETRY;
        h.target = some_node(n);
        break;
    case 5: h.kind = world_chance(w, 50) ? HAPPEN_RESET : HAPPEN_RERUN; break;
    case 6:
        if (n->policies == 0 || !world_chance(w, 50))
            return;
        h.kind = HAPPEN_DELETE;
        h.name = world_textf(w, "policy%lld", (long long)(n->policies - 1));
        world_happens(w, h);
        h.kind = HAPPEN_APPLY;
        h.after_ms += world_between(w, 1, 600) * 1000;
        h.document = world_object(w, policy_text(n, n->policies - 1, 0));
        break;
    case 7:
        h.kind = HAPPEN_APPLY;
        h.document = world_object(w, skyhook_text(n, number, 0, true));
        world_happens(w, h);
        if (!w->wishes.cured && world_chance(w, 50))
            return;
        h.after_ms += world_between(w, 1, 3600) * 1000;
        h.document = world_object(w, skyhook_text(n, number, 0, false));
        break;
    }
    world_happens(w, h);
}

/* ---- the cure ---- */

/* Nobody but a person cordons what a person has given back twice. */
static bool was_given_back(const world *w, str target)
{
    for (size_t i = 0; i < w->happenings.len; i++)
        if (w->happenings.at[i].kind == HAPPEN_UNCORDON &&
            str_eq(w->happenings.at[i].target, target))
            return true;
    return false;
}

static void cure(node_world *n, int64_t at_ms)
{
    world *w = n->w;
    for (int64_t i = 1; i <= n->nodes; i++) {
        str target = world_textf(w, "n%02lld", (long long)i);
        happening h = {.after_ms = at_ms, .target = target};
        h.kind = HAPPEN_HEAL;
        world_happens(w, h);
        h.kind = HAPPEN_ONLINE;
        world_happens(w, h);
        h.kind = HAPPEN_CORDON;
        if (was_given_back(w, target))
            world_happens(w, h);
        h.kind = HAPPEN_UNTAINT;
        h.taint = wet;
        world_happens(w, h);
        relabel(n, at_ms, target, "skyhook.nvidia.com/ignore", NULL);
    }
    for (int64_t i = 0; i < n->policies; i++)
        world_happens(w, (happening){.kind = HAPPEN_APPLY,
                                     .after_ms = at_ms,
                                     .document = world_object(w, policy_text(n, i, 0))});
    for (int64_t i = 0; i < n->skyhooks; i++) {
        happening h = {.after_ms = at_ms, .name = world_textf(w, "sk%lld", (long long)i)};
        h.kind = HAPPEN_RESUME;
        world_happens(w, h);
        h.kind = world_chance(w, 50) ? HAPPEN_RERUN : HAPPEN_APPLY;
        if (h.kind == HAPPEN_APPLY)
            h.document = world_object(w, skyhook_text(n, i, 3, false));
        world_happens(w, h);
        if (h.kind == HAPPEN_RERUN)
            continue;
        /* A batch that was open at the cure has its failures still, and may stop its compartment
         * when the last of it ends: an edit lifts that, too. */
        h.after_ms = WORLD_SECOND_CURE_MS;
        h.document = world_object(w, skyhook_text(n, i, 4, false));
        world_happens(w, h);
    }
}

void world_nodes(world *w)
{
    node_world n = {.w = w,
                    .nodes = world_between(w, 1, world_most(w, NODES_MAX)),
                    .skyhooks = world_between(w, 1, world_most(w, SKYHOOKS_MAX)),
                    .policies = world_between(w, 0, 2)};
    for (size_t i = 0; i < SKYHOOKS_MAX; i++)
        n.skyhook_seed[i] = dice_next(&w->dice);
    for (size_t i = 0; i < 2; i++)
        n.policy_seed[i] = dice_next(&w->dice);
    for (int64_t i = 1; i <= n.nodes; i++)
        node_document(&n, i);
    for (int64_t i = 0; i < n.policies; i++)
        world_add(w, policy_text(&n, i, 0));
    for (int64_t i = 0; i < n.skyhooks; i++)
        world_add(w, skyhook_text(&n, i, 0, false));
    int64_t troubles = w->wishes.calm ? 0 : world_between(w, 0, world_most(w, TROUBLES_MAX)),
            joined = 0;
    for (int64_t i = 0; i < troubles; i++) {
        int64_t at_ms = world_time(w);
        int64_t kind = world_between(w, 0, 9);
        if (kind < 5)
            node_trouble(&n, at_ms);
        else if (kind < 7)
            node_traffic(&n, at_ms, &joined);
        else
            people(&n, at_ms);
    }
    if (!w->wishes.calm && world_chance(w, 20)) {
        str name = world_textf(w, "sk%lld", (long long)world_between(w, 0, n.skyhooks - 1));
        world_happens(w,
                      (happening){.kind = HAPPEN_DELETE, .after_ms = world_time(w), .name = name});
    }
    if (w->wishes.cured)
        cure(&n, WORLD_CURE_MS);
}
