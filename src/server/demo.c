/* SPDX-License-Identifier: Apache-2.0 */
#include "server/demo.h"

#include "base/log.h"
#include "base/mem.h"
#include "server/clock.h"

#define WHO STR("demo")
#define DEMO_TEXT_BYTES (1024u * 1024u)
#define PUBLISH_FIRST_MS 1500
#define PUBLISH_EVERY_MS 45000
#define RETRY_EVERY_MS 20000
#define GREETING_COLUMNS 52

struct demo {
    control *control;
    uv_timer_t publish, retry;
    int closing;
    int64_t round; /* of versions */
};

static const struct demo_environment {
    const char *name;
    int hosts;
} environments[] = {{"dev", 6}, {"staging", 12}, {"prod", 30}};

/* X(name, layer, seconds, percent that fail). drain and uncordon bracket the others. */
static const struct demo_deployment {
    const char *name;
    const char *layer;
    int seconds;
    int fail_percent;
} deployments[] = {
    {"drain", "node", 3, 0},    {"os-patch", "node", 6, 3}, {"kubelet", "node", 4, 2},
    {"uncordon", "node", 1, 0}, {"web", "app", 4, 4},       {"metrics-agent", "app", 2, 1},
};

static void add_hosts(buf *out)
{
    for (size_t e = 0; e < sizeof environments / sizeof environments[0]; e++)
        for (int i = 1; i <= environments[e].hosts; i++)
            buf_addf(out,
                     "---\napiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata:\n  name: "
                     "%s-%02d\n  labels: {environment: %s, rack: r%d}\nspec:\n  kind: host\n  "
                     "config: {address: %s-%02d.example.com}\n",
                     environments[e].name, i, environments[e].name, i % 4 + 1, environments[e].name,
                     i);
}

static void add_environments(buf *out)
{
    for (size_t e = 0; e < sizeof environments / sizeof environments[0]; e++)
        buf_addf(out,
                 "---\napiVersion: drover.dev/v1alpha1\nkind: Environment\nmetadata: {name: "
                 "%s}\nspec:\n  resourceSelector: resource.metadata[\"environment\"] == \"%s\"\n",
                 environments[e].name, environments[e].name);
}

static void add_deployments(buf *out)
{
    for (size_t d = 0; d < sizeof deployments / sizeof deployments[0]; d++)
        buf_addf(
            out,
            "---\napiVersion: drover.dev/v1alpha1\nkind: Deployment\nmetadata:\n  name: %s\n  "
            "labels: {layer: %s}\nspec:\n  resourceSelector: resource.kind == \"host\"\n  job: "
            "{simulated: {seconds: %d, failPercent: %d}}\n",
            deployments[d].name, deployments[d].layer, deployments[d].seconds,
            deployments[d].fail_percent);
}

static const char policies[] =
    "---\n"
    "apiVersion: drover.dev/v1alpha1\n"
    "kind: RolloutPolicy\n"
    "metadata: {name: node-changes}\n"
    "spec:\n"
    "  selector: deployment.metadata[\"layer\"] == \"node\"\n"
    "  priority: 10\n"
    "  rules:\n"
    "    - deploymentBracket:\n"
    "        deploymentSelector: deployment.metadata[\"layer\"] == \"node\"\n"
    "        readinessMode: collection_window\n"
    "        readinessWindowSeconds: 5\n"
    "        unchangedMemberStrategy: skip_unchanged\n"
    "        overlapStrategy: queue\n"
    "        preSelector: deployment.name == \"drain\"\n"
    "        postSelector: deployment.name == \"uncordon\"\n"
    "    - retry: {maxRetries: 1, backoffSeconds: 3}\n"
    "---\n"
    "apiVersion: drover.dev/v1alpha1\n"
    "kind: RolloutPolicy\n"
    "metadata: {name: few-at-once}\n"
    "spec:\n"
    "  selector: deployment.metadata[\"layer\"] == \"node\" && environment.name == \"prod\"\n"
    "  rules:\n"
    "    - resourceConcurrency:\n"
    "        groupSelector: resource.metadata[\"environment\"] == \"prod\"\n"
    "        limitType: percentage\n"
    "        limitValue: 20\n"
    "---\n"
    "apiVersion: drover.dev/v1alpha1\n"
    "kind: RolloutPolicy\n"
    "metadata: {name: apps}\n"
    "spec:\n"
    "  selector: deployment.metadata[\"layer\"] == \"app\"\n"
    "  rules:\n"
    "    - gradualRollout: {rolloutType: linear, timeScaleInterval: 1}\n"
    "    - retry: {maxRetries: 2, backoffSeconds: 2}\n"
    "---\n"
    "apiVersion: drover.dev/v1alpha1\n"
    "kind: RolloutPolicy\n"
    "metadata: {name: staging-first}\n"
    "spec:\n"
    "  selector: deployment.metadata[\"layer\"] == \"app\" && environment.name == \"prod\"\n"
    "  rules:\n"
    "    - environmentProgression:\n"
    "        dependsOnEnvironmentSelector: environment.name == \"staging\"\n"
    "        minimumSuccessPercentage: 80\n";

static void add_versions(buf *out, int64_t round, bool all)
{
    /* In turn: the bracket as a whole, then one application after the other. */
    for (size_t d = 0; d < sizeof deployments / sizeof deployments[0]; d++) {
        bool bracketed = strcmp(deployments[d].layer, "node") == 0;
        bool turn = round % 3 == 0 ? bracketed : d == (round % 3 == 1 ? 4u : 5u);
        if (!all && !turn)
            continue;
        buf_addf(out,
                 "---\napiVersion: drover.dev/v1alpha1\nkind: Version\nmetadata: {name: "
                 "%s-1.%lld.0}\nspec: {deployment: %s, tag: 1.%lld.0}\n",
                 deployments[d].name, (long long)round, deployments[d].name, (long long)round);
    }
}

static bool apply(demo *d, const buf *text, err *error)
{
    arena *a = arena_new(0);
    problems *found = problems_new();
    apply_answer answer = {.arena = a, .found = found};
    apply_request request = {
        .who = WHO, .file = STR("demo"), .bytes = buf_str(text), .expected = APPLY_ANY};
    bool good = (a && found && !text->failed) || err_memory(error);
    good = good && control_apply(d->control, &request, clock_ms(), &answer, error);
    if (!good && found && problems_count(found) > 0) {
        scoped(buf_done) buf line = BUF(LIMIT_ERR_BYTES);
        problem_text(problems_at(found, 0), &line);
        err_set(error, "demo: %.*s", STR_ARG(buf_str(&line)));
    }
    problems_free(found);
    arena_free(a);
    return good;
}

/* A store that was a demo's before goes on with the next round. */
static int64_t next_round(const demo *d)
{
    char name[64];
    for (int64_t round = 0;; round++) {
        bool any = false;
        for (size_t i = 0; i < sizeof deployments / sizeof deployments[0]; i++) {
            snprintf(name, sizeof name, "%s-1.%lld.0", deployments[i].name, (long long)round);
            any = any || control_object(d->control, KIND_VERSION, str_of(name));
        }
        if (!any)
            return round;
    }
}

static void publish(uv_timer_t *timer)
{
    demo *d = timer->data;
    err error;
    scoped(buf_done) buf text = BUF(DEMO_TEXT_BYTES);
    add_versions(&text, d->round, d->round == 0);
    if (apply(d, &text, &error))
        d->round++;
    else
        log_line(LOG_WARN, "%s", error.text);
}

/* Somebody has to look after what failed. */
static void retry_failed(uv_timer_t *timer)
{
    demo *d = timer->data;
    err error;
    fact_act act = {.act = ACT_RETRY, .who = WHO, .environment = STR("dev")};
    if (!control_act(d->control, &act, clock_ms(), &error))
        log_line(LOG_WARN, "%s", error.text);
}

demo *demo_open(uv_loop_t *loop, control *c, err *error)
{
    demo *d = mem_zalloc(sizeof *d);
    if (!d) {
        err_memory(error);
        return NULL;
    }
    d->control = c;
    /* Somebody's own fleet is left alone. */
    if (control_documents(c) > 0 && !control_object(c, KIND_ROLLOUT_POLICY, STR("few-at-once"))) {
        err_set(error, "--demo: this data folder has documents already; give another with --data");
        return mem_free(d);
    }
    scoped(buf_done) buf text = BUF(DEMO_TEXT_BYTES);
    add_environments(&text);
    add_deployments(&text);
    buf_addz(&text, policies);
    add_hosts(&text);
    if (!apply(d, &text, error))
        return mem_free(d);
    d->round = next_round(d);
    uv_timer_init(loop, &d->publish);
    uv_timer_init(loop, &d->retry);
    d->publish.data = d->retry.data = d;
    uv_timer_start(&d->publish, publish, PUBLISH_FIRST_MS, PUBLISH_EVERY_MS);
    uv_timer_start(&d->retry, retry_failed, RETRY_EVERY_MS, RETRY_EVERY_MS);
    return d;
}

static void closed(uv_handle_t *handle)
{
    demo *d = handle->data;
    if (++d->closing == 2)
        mem_free(d);
}

demo *demo_close(demo *d)
{
    if (!d)
        return NULL;
    uv_close((uv_handle_t *)&d->publish, closed);
    uv_close((uv_handle_t *)&d->retry, closed);
    return NULL;
}

void demo_greet(FILE *to, const char *program, str data)
{
    static const struct {
        const char *words, *about;
    } tries[] = {
        {"watch", "all of it, live; q quits"},
        {"get targets --state waiting", "what waits, and for what"},
        {"explain prod-07", "why one host is not moving"},
        {"plan", "what will happen from here on"},
        {"get groups", "who holds which limit"},
        {"get jobs", "what ran"},
        {"history --limit 20", "who did what, and what was decided"},
        {"version publish web 2.0.0 --wait", "a version of your own, followed to its end"},
        {"pause web", "start no more of it"},
        {"resume web", ""},
        {"freeze lunch --reason 'not now'", "start nothing at all"},
        {"thaw lunch", ""},
        {"replay", "decide everything again, and compare"},
    };
    fputs("A made-up fleet is being changed: 48 hosts in dev, staging and prod, 6 deployments,\n"
          "with jobs that only take time. A new version comes every 45 seconds. Try, in another\n"
          "terminal:\n\n",
          to);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        int len = fprintf(to, "    %s %s", program, tries[i].words);
        if (data.len > 0)
            len += fprintf(to, " --data %.*s", STR_ARG(data));
        if (tries[i].about[0])
            fprintf(to, "%*s  # %s", len < GREETING_COLUMNS ? GREETING_COLUMNS - len : 0, "",
                    tries[i].about);
        fputc('\n', to);
    }
    fputs("\nCtrl-C stops it; what was done is kept in the data folder.\n", to);
}
