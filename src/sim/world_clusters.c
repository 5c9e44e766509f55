/* SPDX-License-Identifier: Apache-2.0 */
/* world_clusters.c - random clusters, groups of them and Bundles. */
#include "sim/world.h"

#define CLUSTERS_MAX 16
#define BUNDLES_MAX 2
#define TROUBLES_MAX 6
#define PARTITIONS_MAX 3

typedef struct cluster_world {
    world *w;
    int64_t clusters, bundles;
    uint64_t bundle_seed[BUNDLES_MAX];
} cluster_world;

static const char *const regions[] = {"east", "west", "north"};

/* ---- documents ---- */

static str cluster_text(cluster_world *c, int64_t number, bool healthy)
{
    world *w = c->w;
    bool calm = w->wishes.calm || healthy;
    bool paused = !calm && world_chance(w, 5), homeless = !calm && world_chance(w, 5);
    str home = homeless
                   ? STR_EMPTY
                   : world_textf(w, "\"namespace\":\"cluster-fleet-c%02lld\",", (long long)number);
    return world_textf(
        w,
        "{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":\"Cluster\",\"metadata\":"
        "{\"name\":\"c%02lld\",\"namespace\":\"fleet\",\"labels\":{\"region\":\"%s\"}},"
        "\"spec\":{\"paused\":%s},\"status\":{%.*s\"agent\":{\"lastSeen\":"
        "\"2026-01-01T00:00:00Z\"}}}",
        (long long)number, regions[number % 3], paused ? "true" : "false", STR_ARG(home));
}

static str limit_text(world *w, dice *d)
{
    if (dice_percent(d, 50))
        return world_textf(w, "%lld", (long long)dice_between(d, 0, 4));
    return world_textf(w, "\"%lld%%\"", (long long)dice_between(d, 1, 100));
}

static str partitions_text(world *w, dice *d)
{
    if (dice_percent(d, 50))
        return STR_EMPTY;
    str list = STR_EMPTY;
    int64_t count = dice_between(d, 1, PARTITIONS_MAX);
    for (int64_t i = 0; i < count; i++) {
        str own = dice_percent(d, 40) ? limit_text(w, d) : STR_EMPTY;
        bool approval = !w->wishes.calm && dice_percent(d, 15);
        list = world_textf(w,
                           "%.*s%s{\"name\":\"part%lld\",\"clusterSelector\":{\"matchLabels\":{"
                           "\"region\":\"%s\"}}%s%.*s%s}",
                           STR_ARG(list), i > 0 ? "," : " ", (long long)i, regions[i % 3],
                           own.len > 0 ? ",\"maxUnavailable\":" : "", STR_ARG(own),
                           approval ? ",\"approval\":true" : "");
    }
    return world_textf(w, ",\"partitions\":[%.*s]", STR_ARG(list));
}

static str number_field(world *w, dice *d, const char *name, int64_t most, uint32_t percent)
{
    if (!dice_percent(d, percent))
        return STR_EMPTY;
    return world_textf(w, ",\"%s\":%lld", name, (long long)dice_between(d, 1, most));
}

static str bundle_text(cluster_world *c, int64_t number, int64_t edition)
{
    world *w = c->w;
    dice d = dice_of(c->bundle_seed[number]);
    str most = limit_text(w, &d), parts = partitions_text(w, &d);
    str few = number_field(w, &d, "maxNew", 8, 50);
    str soak = number_field(w, &d, "soakSeconds", 300, 20);
    str stop = number_field(w, &d, "failureThreshold", 3, 20);
    str threshold = number_field(w, &d, "autoPartitionThreshold", 6, 50);
    str size = number_field(w, &d, "autoPartitionSize", 5, 60);
    str more = dice_percent(&d, 40) ? world_textf(w, ",\"maxUnavailablePartitions\":%lld",
                                                  (long long)dice_between(&d, 0, 2))
                                    : STR_EMPTY;
    bool grouped = dice_percent(&d, 30);
    return world_textf(
        w,
        "{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":\"Bundle\",\"metadata\":{"
        "\"name\":\"b%lld\",\"namespace\":\"fleet\",\"generation\":%lld},\"spec\":{"
        "\"contentsId\":\"s-%lld\",\"targets\":[{%s}],\"rolloutStrategy\":{"
        "\"maxUnavailable\":%.*s%.*s%.*s%.*s%.*s%.*s%.*s%.*s}}}",
        (long long)number, (long long)(edition + 1), (long long)edition,
        grouped ? "\"clusterGroup\":\"g\"" : "\"clusterSelector\":{}", STR_ARG(most),
        STR_ARG(parts), STR_ARG(few), STR_ARG(soak), STR_ARG(stop), STR_ARG(threshold),
        STR_ARG(size), STR_ARG(more));
}

/* ---- trouble ---- */

static void cluster_trouble(cluster_world *c, int64_t at_ms)
{
    world *w = c->w;
    str target = world_textf(w, "c%02lld", (long long)world_between(w, 1, c->clusters));
    happening h = {.after_ms = at_ms, .target = target};
    switch (world_between(w, 0, 4)) {
    case 0: h.kind = HAPPEN_FAIL; break;
    case 1:
        h.kind = HAPPEN_OFFLINE;
        world_happens_for_a_while(w, h, HAPPEN_ONLINE);
        return;
    case 2:
        h.kind = HAPPEN_PAUSE;
        world_happens_for_a_while(w, h, HAPPEN_RESUME);
        return;
    case 3:
        h.kind = HAPPEN_LABEL;
        world_label(w, &h, STR("region"), str_of(regions[world_between(w, 0, 2)]));
        break;
    case 4:
        h.kind = HAPPEN_JOIN;
        h.target = world_textf(w, "newc%02lld", (long long)world_between(w, 1, 5));
        h.as = TARGET_CLUSTER;
        h.as_given = true;
        break;
    }
    world_happens(w, h);
}

static void people(cluster_world *c, int64_t at_ms)
{
    world *w = c->w;
    int64_t number = world_between(w, 0, c->bundles - 1);
    happening h = {.after_ms = at_ms, .name = world_textf(w, "b%lld", (long long)number)};
    switch (world_between(w, 0, 2)) {
    case 0:
        h.kind = HAPPEN_PAUSE;
        world_happens_for_a_while(w, h, HAPPEN_RESUME);
        return;
    case 1:
        h.kind = HAPPEN_APPLY;
        h.document = world_object(w, bundle_text(c, number, world_between(w, 1, 3)));
        break;
    case 2: {
        int64_t gone = c->clusters;
        if (gone < 2)
            return;
        c->clusters--;
        h = (happening){.kind = HAPPEN_DELETE,
                        .after_ms = WORLD_TROUBLE_MS + world_between(w, 0, 600) * 1000,
                        .target = world_textf(w, "c%02lld", (long long)gone)};
        break;
    }
    }
    world_happens(w, h);
}

static void approve_all(cluster_world *c, int64_t number, int64_t at_ms)
{
    world *w = c->w;
    for (int64_t i = 0; i < PARTITIONS_MAX; i++)
        world_happens(w, (happening){.kind = HAPPEN_APPROVE,
                                     .after_ms = at_ms,
                                     .name = world_textf(w, "b%lld", (long long)number),
                                     .target = world_textf(w, "part%lld", (long long)i)});
}

static void cure(cluster_world *c, int64_t at_ms)
{
    world *w = c->w;
    for (int64_t i = 1; i <= c->clusters; i++) {
        happening h = {.after_ms = at_ms, .target = world_textf(w, "c%02lld", (long long)i)};
        h.kind = HAPPEN_APPLY;
        h.document = world_object(w, cluster_text(c, i, true));
        world_happens(w, h);
        h.document = NULL;
        h.kind = HAPPEN_ONLINE;
        world_happens(w, h);
        h.kind = HAPPEN_HEAL;
        world_happens(w, h);
        h.kind = HAPPEN_RESUME;
        world_happens(w, h);
    }
    for (int64_t i = 1; i <= 5; i++) {
        happening h = {.after_ms = at_ms, .target = world_textf(w, "newc%02lld", (long long)i)};
        h.kind = HAPPEN_HEAL;
        world_happens(w, h);
    }
    for (int64_t i = 0; i < c->bundles; i++) {
        happening h = {.after_ms = at_ms, .name = world_textf(w, "b%lld", (long long)i)};
        h.kind = HAPPEN_APPLY;
        h.document = world_object(w, bundle_text(c, i, 4));
        world_happens(w, h);
        h.document = NULL;
        h.kind = HAPPEN_RESUME;
        world_happens(w, h);
        /* Approvals are asked for one after the other. */
        for (int64_t k = 1; k <= 4; k++)
            approve_all(c, i, at_ms + k * 3600 * 1000);
    }
}

void world_clusters(world *w)
{
    cluster_world c = {.w = w,
                       .clusters = world_between(w, 1, world_most(w, CLUSTERS_MAX)),
                       .bundles = world_between(w, 1, world_most(w, BUNDLES_MAX))};
    for (size_t i = 0; i < BUNDLES_MAX; i++)
        c.bundle_seed[i] = dice_next(&w->dice);
    for (int64_t i = 1; i <= c.clusters; i++)
        world_add(w, cluster_text(&c, i, false));
    world_add(
        w,
        STR("{\"apiVersion\":\"fleet.cattle.io/v1alpha1\",\"kind\":\"ClusterGroup\",\"metadata\":{"
            "\"name\":\"g\",\"namespace\":\"fleet\"},\"spec\":{\"selector\":{"
            "\"matchExpressions\":[{"
            "\"key\":\"region\",\"operator\":\"In\",\"values\":[\"east\",\"west\"]}]}}}"));
    for (int64_t i = 0; i < c.bundles; i++)
        world_add(w, bundle_text(&c, i, 0));
    err error;
    if (world_chance(w, 50) && !sim_add_from(w->sim, STR_EMPTY, STR("old"), &error))
        w->no_memory = true;
    int64_t troubles = w->wishes.calm ? 0 : world_between(w, 0, world_most(w, TROUBLES_MAX));
    for (int64_t i = 0; i < troubles; i++) {
        int64_t at_ms = world_time(w);
        if (world_chance(w, 60))
            cluster_trouble(&c, at_ms);
        else
            people(&c, at_ms);
    }
    if (w->wishes.cured)
        cure(&c, WORLD_CURE_MS);
}
