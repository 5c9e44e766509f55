/* SPDX-License-Identifier: Apache-2.0 */
/* release_fleet.h - many release targets in virtual time, for measurements and for counting what
 * one fact touches. Jobs take minutes and succeed.
 *
 *     release_fleet f;
 *     release_fleet_open(&f, text);                      text as of release_fleet_all_rules
 *     release_fleet_until(&f, f.now_ms + 3600000);       an hour goes by
 *     fact ended = release_fleet_answer(&f);             of the job that ends next
 *     release_fleet_step(&f, &ended, 1);
 *
 * Nothing is checked after a step and nothing is written down: see world.h for that. */
#ifndef DROVER_TESTS_SUPPORT_RELEASE_FLEET_H
#define DROVER_TESTS_SUPPORT_RELEASE_FLEET_H

#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "engine/engine.h"
#include "model/object.h"

#define RELEASE_API "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":"
#define RELEASE_START_MS INT64_C(1772352000000) /* 2026-03-01T08:00:00Z */
#define RELEASE_MINUTE_MS INT64_C(60000)
#define RELEASE_LISTED 1000 /* resources in one List */

typedef struct release_fleet_job {
    int64_t end_ms, number;
    str deployment, environment, resource;
} release_fleet_job;

typedef struct release_fleet {
    document_set *set;
    object_list *objects;
    problems *found;
    engine *engine;
    decision_list out;
    VEC(release_fleet_job) jobs; /* a heap: the one that ends next is the first */
    int64_t now_ms;
    uint64_t started;
} release_fleet;

/* ---- jobs ---- */

static inline void release_fleet_push(release_fleet *f, release_fleet_job j)
{
    if (!vec_push(&f->jobs, j))
        abort();
    release_fleet_job *at = f->jobs.at;
    size_t i = f->jobs.len - 1;
    for (; i > 0 && at[(i - 1) / 2].end_ms > j.end_ms; i = (i - 1) / 2)
        at[i] = at[(i - 1) / 2];
    at[i] = j;
}

/* What the job that ends next will say; it is taken out. */
static inline fact release_fleet_answer(release_fleet *f)
{
    release_fleet_job *at = f->jobs.at;
    if (f->jobs.len == 0)
        abort();
    release_fleet_job top = at[0], last = at[--f->jobs.len];
    size_t i = 0;
    for (size_t child = 1; child < f->jobs.len; child = 2 * i + 1) {
        if (child + 1 < f->jobs.len && at[child + 1].end_ms < at[child].end_ms)
            child++;
        if (at[child].end_ms >= last.end_ms)
            break;
        at[i] = at[child];
        i = child;
    }
    at[i] = last;
    return (fact){.kind = FACT_JOB,
                  .job = {.deployment = top.deployment,
                          .environment = top.environment,
                          .resource = top.resource,
                          .job = top.number,
                          .outcome = OUTCOME_SUCCEEDED}};
}

/* ---- steps ---- */

static inline int64_t release_fleet_minutes(str change)
{
    return str_eq(change, STR("drain")) ? 8 : str_eq(change, STR("uncordon")) ? 1 : 3;
}

/* Takes facts in and steps until a step starts nothing. */
static inline void release_fleet_step(release_fleet *f, const fact *facts, size_t count)
{
    uint64_t before;
    do {
        before = f->started;
        f->out.len = 0;
        if (!engine_step(f->engine, facts, count, f->now_ms, &f->out))
            abort();
        for (size_t i = 0; i < f->out.len; i++) {
            const decision *d = &f->out.at[i];
            if (d->kind != DECISION_JOB)
                continue;
            f->started++;
            int64_t end_ms = f->now_ms + release_fleet_minutes(d->change) * RELEASE_MINUTE_MS;
            release_fleet_push(
                f, (release_fleet_job){end_ms, d->number, d->change, d->environment, d->target});
        }
        count = 0;
    } while (f->started > before);
}

/* Virtual time goes on to until_ms, or until nothing is due any more. */
static inline void release_fleet_until(release_fleet *f, int64_t until_ms)
{
    for (;;) {
        int64_t next = engine_next_ms(f->engine);
        if (f->jobs.len > 0 && (next == REASON_NEVER || f->jobs.at[0].end_ms < next))
            next = f->jobs.at[0].end_ms;
        if (next == REASON_NEVER || next > until_ms)
            return;
        f->now_ms = next > f->now_ms ? next : f->now_ms;
        VEC(fact) facts = {0};
        while (f->jobs.len > 0 && f->jobs.at[0].end_ms <= f->now_ms)
            if (!vec_push(&facts, release_fleet_answer(f)))
                abort();
        release_fleet_step(f, facts.at, facts.len);
        vec_done(&facts);
    }
}

/* ---- the whole ---- */

/* Reads the documents; release_fleet_feed hands them to the engine. */
static inline void release_fleet_open(release_fleet *f, str text)
{
    err error;
    *f = (release_fleet){.set = document_set_new(),
                         .objects = objects_new(),
                         .found = problems_new(),
                         .now_ms = RELEASE_START_MS};
    f->engine = engine_new(&(engine_settings){.start_ms = RELEASE_START_MS}, &error);
    if (documents_read_as(f->set, STR("fleet"), text, FORMAT_JSON, f->found) &&
        objects_read(f->objects, f->set, f->found))
        return;
    for (size_t i = 0; i < problems_count(f->found); i++)
        fprintf(stderr, "%.*s: %.*s\n", STR_ARG(problems_at(f->found, i)->path),
                STR_ARG(problems_at(f->found, i)->message));
    abort();
}

static inline void release_fleet_feed(release_fleet *f)
{
    VEC(fact) facts = {0};
    for (size_t i = 0; i < f->objects->len; i++) {
        const object *o = &f->objects->at[i];
        fact next = {.kind = FACT_DOCUMENT, .document = o};
        if (o->kind == KIND_RESOURCE)
            next = (fact){
                .kind = FACT_TARGET,
                .target = {.kind = TARGET_RESOURCE, .name = o->metadata->name, .document = o}};
        if (!vec_push(&facts, next))
            abort();
    }
    release_fleet_step(f, facts.at, facts.len);
    vec_done(&facts);
}

static inline void release_fleet_close(release_fleet *f)
{
    engine_free(f->engine);
    objects_free(f->objects);
    document_set_free(f->set);
    problems_free(f->found);
    vec_done(&f->out);
    vec_done(&f->jobs);
}

/* ---- documents ---- */

#define RELEASE_DEPLOYMENTS 5
static const char *const release_deployments[RELEASE_DEPLOYMENTS] = {"drain", "os-patch", "kubelet",
                                                                     "containerd", "uncordon"};

/* Five deployments, each with a version of that tag. */
static inline void release_add_deployments(buf *b, const char *tag)
{
    for (size_t i = 0; i < RELEASE_DEPLOYMENTS; i++)
        buf_addf(b,
                 RELEASE_API
                 "\"Deployment\",\"metadata\":{\"name\":\"%s\"},"
                 "\"spec\":{\"resourceSelector\":\"true\",\"job\":{\"pull\":{}}}}\n" RELEASE_API
                 "\"Version\",\"metadata\":{\"name\":\"%s-%s\"},\"spec\":{\"deployment\":\"%s\","
                 "\"tag\":\"%s\"}}\n",
                 release_deployments[i], release_deployments[i], tag, release_deployments[i], tag);
}

/* Resources "STAGE-000000" and so on; each runs "running" of every deployment, unless NULL. */
static inline void release_add_resources(buf *b, const char *stage, int count, const char *running)
{
    for (int i = 0; i < count; i++) {
        buf_addf(b,
                 "%s" RELEASE_API
                 "\"Resource\",\"metadata\":{\"name\":\"%s-%06d\",\"labels\":{\"stage\":\"%s\","
                 "\"zone\":\"%d\"}},\"spec\":{\"kind\":\"host\",\"version\":\"v1\"}",
                 i % RELEASE_LISTED ? "," : RELEASE_API "\"List\",\"items\":[", stage, i, stage,
                 i % 3);
        for (size_t d = 0; running && d < RELEASE_DEPLOYMENTS; d++)
            buf_addf(b, "%s{\"deployment\":\"%s\",\"version\":\"%s\"}%s",
                     d == 0 ? ",\"status\":{\"releases\":[" : ",", release_deployments[d], running,
                     d + 1 == RELEASE_DEPLOYMENTS ? "]}" : "");
        buf_addz(b, i % RELEASE_LISTED == RELEASE_LISTED - 1 || i == count - 1 ? "}]}\n" : "}");
    }
}

/* Every kind of rule there is but deploymentBracket. */
#define RELEASE_RULES                                                                              \
    "{\"versionSelector\":{\"selector\":\"version.tag != 'bad'\"}},"                               \
    "{\"anyApproval\":{\"minApprovals\":1}},"                                                      \
    "{\"environmentProgression\":{\"dependsOnEnvironmentSelector\":"                               \
    "\"environment.name == 'staging'\"}},"                                                         \
    "{\"deploymentWindow\":{\"rrule\":\"FREQ=DAILY\",\"durationMinutes\":1439}},"                  \
    "{\"versionCooldown\":{\"intervalSeconds\":60}},"                                              \
    "{\"gradualRollout\":{\"rolloutType\":\"linear-normalized\",\"timeScaleInterval\":600}},"      \
    "{\"deploymentDependency\":{\"dependsOn\":\"deployment.name == 'os-patch'\","                  \
    "\"appliesTo\":\"deployment.name == 'uncordon' || deployment.name == 'containerd'\"}},"        \
    "{\"retry\":{\"maxRetries\":2}},{\"rollback\":{\"onJobStatuses\":[\"failure\"]}},"             \
    "{\"verification\":{\"metrics\":[{\"name\":\"settle\",\"provider\":{\"type\":\"sleep\","       \
    "\"durationSeconds\":60},\"intervalSeconds\":1,\"count\":1,"                                   \
    "\"successCondition\":\"result.ok\"}]}},"                                                      \
    "{\"deploymentPolicy\":{\"default\":{\"budget\":{\"percent\":100},\"strategy\":{"              \
    "\"fixed\":{\"initialBatch\":100000}}},"                                                       \
    "\"compartments\":[{\"name\":\"one\",\"selector\":{\"matchLabels\":{\"zone\":\"1\"}},"         \
    "\"budget\":{\"percent\":50},\"strategy\":{\"exponential\":{\"initialBatch\":1000}}}]}},"      \
    "{\"rolloutStrategy\":{\"maxUnavailable\":\"50%\",\"maxUnavailablePartitions\":\"100%\"}},"    \
    "{\"resourceConcurrency\":{\"groupSelector\":\"resource.metadata['stage'] == 'prod'\","        \
    "\"limitType\":\"percentage\",\"limitValue\":20}},"                                            \
    "{\"resourceConcurrency\":{\"groupSelector\":\"resource.metadata['zone'] == '1'\","            \
    "\"limitType\":\"percentage\",\"limitValue\":20}}"

/* Five deployments on so many resources of production, behind staging (ten resources), all with a
 * new version: three deployments in a bracket, two alone, all under every kind of rule. */
static inline void release_fleet_all_rules(buf *b, int resources)
{
    static const char *const stages[] = {"staging", "prod"};
    for (size_t i = 0; i < 2; i++)
        buf_addf(b,
                 RELEASE_API "\"Environment\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
                             "\"resourceSelector\":\"resource.metadata['stage'] == '%s'\"}}\n",
                 stages[i], stages[i]);
    release_add_deployments(b, "2");
    release_add_resources(b, "staging", 10, "1");
    release_add_resources(b, "prod", resources, "1");
    buf_addz(b, RELEASE_API
             "\"RolloutPolicy\",\"metadata\":{\"name\":\"alone\"},\"spec\":{\"selector\":"
             "\"environment.name == 'prod' && deployment.name in ['kubelet', 'containerd']\","
             "\"rules\":[" RELEASE_RULES "]}}\n" RELEASE_API
             "\"RolloutPolicy\",\"metadata\":{\"name\":\"together\"},\"spec\":{\"selector\":"
             "\"environment.name == 'prod' && deployment.name in ['drain', 'os-patch', "
             "'uncordon']\",\"rules\":[{\"deploymentBracket\":{\"deploymentSelector\":\"true\","
             "\"readinessWindowSeconds\":600,\"preSelector\":\"deployment.name == 'drain'\","
             "\"postSelector\":\"deployment.name == 'uncordon'\"}}," RELEASE_RULES "]}}\n");
}

static inline void release_fleet_approve(release_fleet *f)
{
    for (size_t i = 0; i < f->objects->len; i++) {
        if (f->objects->at[i].kind != KIND_VERSION)
            continue;
        fact approval = {.kind = FACT_ACT,
                         .act = {.act = ACT_APPROVE,
                                 .who = STR("w"),
                                 .version = f->objects->at[i].metadata->name}};
        release_fleet_step(f, &approval, 1);
    }
}

#endif
