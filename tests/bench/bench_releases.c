/* SPDX-License-Identifier: Apache-2.0 */
/* Release targets: the plan of a five-deployment bracket over 10,000 resources, and single facts
 * and a whole evaluation among 100,000 placements under all rule kinds. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "bench/bench.h"
#include "engine/engine.h"
#include "model/object.h"

#define API "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":"
#define LISTED 1000 /* resources in one List */
#define START_MS INT64_C(1772352000000)

typedef struct job {
    int64_t end_ms, number;
    str deployment, environment, resource;
} job;

typedef VEC(job) job_heap;

typedef struct plan {
    document_set *set;
    object_list *objects;
    problems *found;
    engine *engine;
    decision_list out;
    job_heap jobs;
    arena *names;
    int64_t now_ms;
    uint64_t started;
} plan;

static void push(job_heap *h, job j)
{
    if (!vec_push(h, j))
        abort();
    size_t i = h->len - 1;
    for (; i > 0 && h->at[(i - 1) / 2].end_ms > j.end_ms; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = j;
}

static job pop(job_heap *h)
{
    job top = h->at[0], last = h->at[--h->len];
    size_t i = 0;
    for (size_t child = 1; child < h->len; child = 2 * i + 1) {
        if (child + 1 < h->len && h->at[child + 1].end_ms < h->at[child].end_ms)
            child++;
        if (h->at[child].end_ms >= last.end_ms)
            break;
        h->at[i] = h->at[child];
        i = child;
    }
    if (h->len > 0)
        h->at[i] = last;
    return top;
}

static void step(plan *p, const fact *facts, size_t count)
{
    do {
        p->out.len = 0;
        if (!engine_step(p->engine, facts, count, p->now_ms, &p->out))
            abort();
        uint64_t before = p->started;
        for (size_t i = 0; i < p->out.len; i++) {
            const decision *d = &p->out.at[i];
            if (d->kind != DECISION_JOB)
                continue;
            p->started++;
            int64_t minutes = str_eq(d->change, STR("drain"))      ? 8
                              : str_eq(d->change, STR("uncordon")) ? 1
                                                                   : 3;
            push(&p->jobs, (job){p->now_ms + minutes * 60000, d->number, d->change, d->environment,
                                 d->target});
        }
        count = 0;
        if (p->started == before)
            return;
    } while (true);
}

static fact answer(job j)
{
    return (fact){.kind = FACT_JOB,
                  .job = {.deployment = j.deployment,
                          .environment = j.environment,
                          .resource = j.resource,
                          .job = j.number,
                          .outcome = OUTCOME_SUCCEEDED}};
}

static void add_text(buf *b, int resources)
{
    static const char *const names[] = {"drain", "os-patch", "kubelet", "containerd", "uncordon"};
    buf_addz(
        b, API
        "\"Environment\",\"metadata\":{\"name\":\"prod\"},\"spec\":{"
        "\"resourceSelector\":\"true\"}}\n");
    for (size_t i = 0; i < 5; i++)
        buf_addf(
            b,
            API
            "\"Deployment\",\"metadata\":{\"name\":\"%s\",\"labels\":{\"layer\":\"node\"}},"
            "\"spec\":{\"resourceSelector\":\"true\",\"job\":{\"pull\":{}}}}\n" API
            "\"Version\",\"metadata\":{\"name\":\"%s-1\"},\"spec\":{\"deployment\":\"%s\","
            "\"tag\":\"1\"}}\n",
            names[i], names[i], names[i]);
    for (int i = 0; i < resources; i++)
        buf_addf(
            b,
            "%s" API
            "\"Resource\",\"metadata\":{\"name\":\"resource-%06d\",\"labels\":{"
            "\"cluster\":\"east\",\"zone\":\"%d\"}},\"spec\":{\"kind\":\"host\","
            "\"version\":\"v1\"}}%s",
            i % LISTED ? "," : API "\"List\",\"items\":[", i, i % 3,
            i % LISTED == LISTED - 1 || i == resources - 1 ? "]}\n" : "");
}

static void load(plan *p, int resources, const char *policy)
{
    static buf text;
    err error;
    text = BUF(LIMIT_TEXT_BYTES);
    add_text(&text, resources);
    buf_addz(&text, policy);
    *p = (plan){.set = document_set_new(),
                .objects = objects_new(),
                .found = problems_new(),
                .names = arena_new(0),
                .now_ms = START_MS};
    engine_settings settings = {.start_ms = START_MS};
    p->engine = engine_new(&settings, &error);
    if (!documents_read(p->set, STR("bench.json"), buf_str(&text), p->found) ||
        !objects_read(p->objects, p->set, p->found)) {
        for (size_t i = 0; i < problems_count(p->found); i++)
            fprintf(stderr, "%.*s\n", STR_ARG(problems_at(p->found, i)->message));
        abort();
    }
}

static void feed(plan *p)
{
    VEC(fact) facts = {0};
    for (size_t i = 0; i < p->objects->len; i++) {
        const object *o = &p->objects->at[i];
        fact f = {.kind = FACT_DOCUMENT, .document = o};
        if (o->kind == KIND_RESOURCE)
            f = (fact){
                .kind = FACT_TARGET,
                .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
        if (!vec_push(&facts, f))
            abort();
    }
    step(p, facts.at, facts.len);
    vec_done(&facts);
}

static void close_plan(plan *p)
{
    engine_free(p->engine);
    objects_free(p->objects);
    document_set_free(p->set);
    problems_free(p->found);
    arena_free(p->names);
    vec_done(&p->out);
    vec_done(&p->jobs);
}

#define BRACKET \
    API "\"RolloutPolicy\",\"metadata\":{\"name\":\"nodes\"},\"spec\":{\"rules\":[" \
        "{\"deploymentBracket\":{\"deploymentSelector\":\"true\"," \
        "\"readinessWindowSeconds\":86400," \
        "\"preSelector\":\"deployment.name == 'drain'\",\"postSelector\":\"deployment.name == " \
        "'uncordon'\"}}," \
        "{\"deploymentDependency\":{\"dependsOn\":\"deployment.name == 'os-patch'\"," \
        "\"appliesTo\":\"deployment.name in ['kubelet', 'containerd']\"}}," \
        "{\"gradualRollout\":{\"rolloutType\":\"linear\",\"timeScaleInterval\":30}}," \
        "{\"resourceConcurrency\":{\"groupSelector\":\"resource.metadata['cluster'] == 'east'\"," \
        "\"limitType\":\"percentage\",\"limitValue\":20}}]}}\n"

#define ALL_KINDS \
    API "\"RolloutPolicy\",\"metadata\":{\"name\":\"all\"},\"spec\":{\"rules\":[" \
        "{\"versionSelector\":{\"selector\":\"version.tag != 'bad'\"}},{\"anyApproval\":{" \
        "\"minApprovals\":0}}," \
        "{\"environmentProgression\":{\"dependsOnEnvironmentSelector\":\"environment.name == " \
        "'none'\"}}," \
        "{\"deploymentWindow\":{\"rrule\":\"FREQ=DAILY\",\"durationMinutes\":1439}},{" \
        "\"versionCooldown\":{\"intervalSeconds\":1}}," \
        "{\"gradualRollout\":{\"rolloutType\":\"linear-normalized\",\"timeScaleInterval\":60}}," \
        "{\"deploymentDependency\":{\"dependsOn\":\"deployment.name == 'os-patch'\"," \
        "\"appliesTo\":\"deployment.name == 'kubelet'\"}}," \
        "{\"retry\":{\"maxRetries\":2}},{\"rollback\":{\"onJobStatuses\":[\"failure\"]}}," \
        "{\"resourceConcurrency\":{\"groupSelector\":\"resource.metadata['cluster'] == 'east'\"," \
        "\"limitType\":\"percentage\",\"limitValue\":10}}," \
        "{\"resourceConcurrency\":{\"groupSelector\":\"resource.metadata['zone'] == '1'\"," \
        "\"limitType\":\"percentage\",\"limitValue\":20}}]," \
        "\"selector\":\"deployment.name in ['kubelet', 'os-patch', 'containerd', 'drain', " \
        "'uncordon']\"}}\n" API \
        "\"Environment\",\"metadata\":{\"name\":\"none\"},\"spec\":{" \
        "\"resourceSelector\":\"false\"}}\n"

static void bench_plan(void)
{
    plan p;
    load(&p, 10000, BRACKET);
    double start = bench_seconds();
    feed(&p);
    double fed = bench_seconds() - start;
    for (;;) {
        int64_t next = engine_next_ms(p.engine);
        bool any = p.jobs.len > 0;
        if (any && (next == REASON_NEVER || p.jobs.at[0].end_ms < next))
            next = p.jobs.at[0].end_ms;
        if (next == REASON_NEVER)
            break;
        p.now_ms = next > p.now_ms ? next : p.now_ms;
        VEC(fact) facts = {0};
        while (p.jobs.len > 0 && p.jobs.at[0].end_ms <= p.now_ms)
            if (!vec_push(&facts, answer(pop(&p.jobs))))
                abort();
        step(&p, facts.at, facts.len);
        vec_done(&facts);
    }
    double seconds = bench_seconds() - start;
    if (p.started != 50000)
        abort();
    bench_row("bracket of 5 over 10,000 resources: documents", fed, "s", "-");
    bench_row("bracket of 5 over 10,000 resources: whole plan", seconds, "s", "<= 2");
    close_plan(&p);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define FACTS 4000

static void bench_facts(void)
{
    static double times[FACTS];
    plan p;
    err error;
    load(&p, 20000, ALL_KINDS);
    double start = bench_seconds();
    feed(&p);
    bench_row("100,000 placements: documents", bench_seconds() - start, "s", "-");
    p.now_ms += 3600000;
    step(&p, NULL, 0);
    size_t n = 0;
    uint64_t looked = engine_looked_at(p.engine);
    for (; n < FACTS && p.jobs.len > 0; n++) {
        job j = pop(&p.jobs);
        fact f = answer(j);
        start = bench_seconds();
        step(&p, &f, 1);
        times[n] = bench_seconds() - start;
    }
    qsort(times, n, sizeof times[0], compare);
    bench_row("one outcome among 100,000 placements, median", times[n / 2] * 1e6, "us", "<= 20");
    bench_row("one outcome among 100,000 placements, 99th percentile", times[n * 99 / 100] * 1e6,
              "us", "<= 1000");
    bench_row("placements looked at for one outcome",
              (double)(engine_looked_at(p.engine) - looked) / (double)n, "count", "<= 100");
    fact freeze = {.kind = FACT_ACT, .act = {.act = ACT_FREEZE, .name = STR("f")}};
    step(&p, &freeze, 1);
    fact thaw = {.kind = FACT_ACT, .act = {.act = ACT_THAW, .name = STR("f")}};
    start = bench_seconds();
    step(&p, &thaw, 1);
    bench_row("everything evaluated, 100,000 placements", (bench_seconds() - start) * 1e3, "ms",
              "<= 100");
    start = bench_seconds();
    if (!engine_full(p.engine, &error)) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    bench_row("engine_full, 100,000 placements", (bench_seconds() - start) * 1e3, "ms", "-");
    close_plan(&p);
}

int main(void)
{
    bench_plan();
    bench_facts();
    return 0;
}
