/* SPDX-License-Identifier: Apache-2.0 */
/* Random lives of a hub: several things happen between two turns of the shell. The limit holds, the
 * wish is reached, and a shell that begins with the same objects finds nothing to write. */
#include "support/check.h"

#include "support/fake_fleet.h"

#define LIVES 300
#define BATCHES 10
#define CLUSTERS 5
#define GROUP                                                                                      \
    "{\"metadata\":{\"name\":\"ring\",\"namespace\":\"" FAKE_SPACE                                 \
    "\"},\"spec\":{\"selector\":{\"matchLabels\":{\"env\":\"prod\"}}}}"

static const char *const strategies[] = {
    ",\"rolloutStrategy\":{\"maxUnavailable\":1,\"maxNew\":1}",
    ",\"rolloutStrategy\":{\"maxUnavailable\":2,\"maxNew\":1}",
    ",\"rolloutStrategy\":{\"maxUnavailable\":0,\"maxNew\":1,\"autoPartitionThreshold\":1,"
    "\"autoPartitionSize\":2}",
    ",\"rolloutStrategy\":{\"maxUnavailable\":1,\"maxNew\":1,\"failureThreshold\":2}",
};
static const int64_t limits[] = {1, 2, 1, 1};
static const char *const targets[] = {FLEET_PROD, "{\"clusterGroup\":\"ring\"}"};

typedef struct life {
    fake *f;
    rng r;
    uint64_t seed;
    int64_t limit; /* 0: anything goes */
    const char *targets;
    int contents;
} life;

static life *now; /* the one that is lived */
static bool silent[CLUSTERS];

static fake_agent answers(fake *f, const char *collection, const char *live)
{
    (void)f;
    (void)live;
    for (int i = 0; i < CLUSTERS; i++) {
        char home[FAKE_NAME_BYTES];
        if (silent[i] && strcmp(collection, fake_home(fleet_name(i), home)) == 0)
            return AGENT_SILENT;
    }
    return AGENT_WELL;
}

static void watch_limit(fake *f, const kube_write *w)
{
    (void)w;
    int64_t count = fleet_unavailable(f);
    check_msg(now->limit == 0 || count <= now->limit, "seed %llu: %lld unavailable\n%s",
              (unsigned long long)now->seed, (long long)count, f->log.ptr);
}

/* ---- what happens ---- */

static void edit(life *l, const char *collection, const char *name, const char *patch)
{
    if (fake_find(l->f, collection, name))
        fake_edit(l->f, collection, name, patch);
}

static void make(life *l, int at, const char *env)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE
             "\",\"labels\":{\"env\":\"%s\"}},\"spec\":{},\"status\":{\"namespace\":\"ns-%s\"}}",
             fleet_name(at), env, fleet_name(at));
    fake_create(l->f, FAKE_CLUSTERS, text);
}

static void unmake(life *l, int at)
{
    if (fake_find(l->f, FAKE_CLUSTERS, fleet_name(at)))
        fake_delete(l->f, FAKE_CLUSTERS, fleet_name(at));
}

static void set_targets(life *l, const char *to)
{
    char text[256];
    snprintf(text, sizeof text, "{\"spec\":{\"targets\":[%s]}}", to);
    fake_edit(l->f, FAKE_BUNDLES, "app", text);
}

static void set_group(life *l, bool there)
{
    fake_object *o = fake_find(l->f, FAKE_GROUPS, "ring");
    if (o && !there)
        fake_delete(l->f, FAKE_GROUPS, "ring");
    else if (!o && there)
        fake_create(l->f, FAKE_GROUPS, GROUP);
}

static void next_content(life *l)
{
    char text[32];
    snprintf(text, sizeof text, "content %d", ++l->contents);
    fleet_content(l->f, text);
}

static void set_label(life *l, int at, const char *env)
{
    char text[64];
    snprintf(text, sizeof text, "{\"metadata\":{\"labels\":{\"env\":\"%s\"}}}", env);
    edit(l, FAKE_CLUSTERS, fleet_name(at), text);
}

/* After it everybody is a target who was one before. */
static void leave_and_return(life *l)
{
    int at = (int)rng_below(&l->r, CLUSTERS);
    switch (rng_below(&l->r, 6)) {
    case 0: next_content(l); break;
    case 1:
        set_group(l, false);
        set_group(l, true);
        break;
    case 2:
        set_targets(l, "{\"clusterName\":\"nobody\"}");
        set_targets(l, l->targets);
        break;
    case 3:
        unmake(l, at);
        make(l, at, "prod");
        break;
    default:
        set_label(l, at, "test");
        set_label(l, at, "prod");
        break;
    }
}

static void anything(life *l)
{
    int at = (int)rng_below(&l->r, CLUSTERS);
    char home[FAKE_NAME_BYTES];
    fake_home(fleet_name(at), home);
    switch (rng_below(&l->r, 13)) {
    case 0: next_content(l); break;
    case 1: set_group(l, rng_below(&l->r, 2)); break;
    case 2: set_targets(l, "{\"clusterName\":\"c01\"}"); break;
    case 3: set_targets(l, l->targets); break;
    case 4: unmake(l, at); break;
    case 5:
        if (!fake_find(l->f, FAKE_CLUSTERS, fleet_name(at)))
            make(l, at, "prod");
        break;
    case 6: edit(l, FAKE_CLUSTERS, fleet_name(at), "{\"spec\":{\"paused\":true}}"); break;
    case 7: edit(l, FAKE_CLUSTERS, fleet_name(at), "{\"spec\":{\"paused\":null}}"); break;
    case 8:
        if (fake_find(l->f, home, "app"))
            fake_delete(l->f, home, "app");
        break;
    case 9: silent[at] = !silent[at]; break;
    case 10: set_label(l, at, "test"); break;
    default: set_label(l, at, "prod"); break;
    }
}

/* ---- lives ---- */

static void begin(life *l, const char *more)
{
    l->f = fake_new();
    now = l;
    for (int i = 0; i < CLUSTERS; i++) {
        silent[i] = false;
        fake_add_cluster(l->f, fleet_name(i), "\"env\":\"prod\"");
    }
    fake_create(l->f, FAKE_GROUPS, GROUP);
    l->targets = targets[rng_below(&l->r, COUNT_OF(targets))];
    fleet_add_bundle(l->f, l->targets, more);
    l->f->agent = answers;
    l->f->watch = watch_limit;
    fake_start(l->f);
    fake_run(l->f, -1);
}

/* For a while, or for some turns in which nothing comes in. */
static void go_on(life *l)
{
    l->f->answers_last = rng_below(&l->r, 2);
    l->f->agent_ms = (int64_t)rng_below(&l->r, 3000);
    for (uint64_t i = rng_below(&l->r, 3); i > 0; i--)
        assert_true(cluster_shell_turn(l->f->shell, l->f->now_ms));
    if (rng_below(&l->r, 4) > 0)
        fake_run(l->f, (int64_t)rng_below(&l->r, 2500));
    if (rng_below(&l->r, 8) == 0)
        fake_start(l->f);
}

/* Another shell finds the same. */
static void check_afresh(life *l)
{
    fake_run(l->f, 120000);
    uint64_t writes = l->f->writes;
    size_t told = l->f->log.len;
    fake_start(l->f);
    fake_run(l->f, 120000);
    check_msg(l->f->writes == writes, "seed %llu: another shell writes\n%s",
              (unsigned long long)l->seed, l->f->log.ptr + told);
}

static void check_end(life *l)
{
    char ready[16], home[FAKE_NAME_BYTES];
    for (int i = 0; i < CLUSTERS; i++) {
        fake_object *o = fleet_deployment(l->f, i);
        silent[i] = false;
        if (!fake_find(l->f, FAKE_CLUSTERS, fleet_name(i)))
            make(l, i, "prod");
        set_label(l, i, "prod");
        edit(l, FAKE_CLUSTERS, fleet_name(i), "{\"spec\":{\"paused\":null}}");
        if (o && strcmp(fleet_deployed(l->f, i, "/spec/deploymentID"),
                        fleet_deployed(l->f, i, "/status/appliedDeploymentID")) != 0)
            o->answers_ms = l->f->now_ms + 100;
    }
    set_group(l, true);
    set_targets(l, l->targets);
    check_afresh(l);
    for (int i = 0; i < CLUSTERS; i++)
        check_msg(fleet_deployment(l->f, i) &&
                      strcmp(fleet_deployed(l->f, i, "/spec/deploymentID"),
                             fleet_deployed(l->f, 0, "/status/appliedDeploymentID")) == 0,
                  "seed %llu: %s: %s\n%s", (unsigned long long)l->seed,
                  fake_home(fleet_name(i), home), fleet_message(l->f), l->f->log.ptr);
    snprintf(ready, sizeof ready, "%d/%d", CLUSTERS, CLUSTERS);
    fleet_check(l->f, ready, 0);
    fake_free(l->f);
}

static uint64_t next_seed(rng *r)
{
    return getenv("ONLY") ? strtoull(getenv("ONLY"), NULL, 0) : rng_next(r);
}

static void who_returns_is_not_forgotten(void **state)
{
    (void)state;
    rng r = rng_seeded();
    for (int i = 0; i < LIVES; i++) {
        life l = {.seed = next_seed(&r)};
        l.r.state = l.seed;
        size_t which = rng_below(&l.r, COUNT_OF(strategies));
        begin(&l, strategies[which]);
        l.limit = limits[which];
        for (int batch = 0; batch < BATCHES; batch++) {
            for (uint64_t k = rng_below(&l.r, 4); k > 0; k--)
                leave_and_return(&l);
            go_on(&l);
        }
        check_end(&l);
    }
}

static void whatever_happens_the_end_is_reached(void **state)
{
    (void)state;
    rng r = rng_seeded();
    for (int i = 0; i < LIVES; i++) {
        life l = {.seed = next_seed(&r)};
        l.r.state = l.seed;
        begin(&l, strategies[rng_below(&l.r, COUNT_OF(strategies))]);
        for (int batch = 0; batch < BATCHES; batch++) {
            for (uint64_t k = rng_below(&l.r, 5); k > 0; k--)
                anything(&l);
            go_on(&l);
            if (rng_below(&l.r, 5) == 0)
                check_afresh(&l);
        }
        check_end(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_returns_is_not_forgotten),
        cmocka_unit_test(whatever_happens_the_end_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
