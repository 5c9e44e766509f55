/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane: documents, acts, claims and time, over a real store in virtual time. What
 * happens when it is killed or its store fails is in test_control_crash.c. */
#include "support/plane_story.h"

#include <sqlite3.h>

#include "model/lint.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/drover-control-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char line[256];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

/* lint_all's place is taken here: a document with the label "lint: error" is wrong together with
 * others, unless one called "cure" is there. */
static bool lint_for_real;
bool __real_lint_all(const object_list *objects, problems *found);
bool __wrap_lint_all(const object_list *objects, problems *found);
bool __wrap_lint_all(const object_list *objects, problems *found)
{
    if (lint_for_real)
        return __real_lint_all(objects, found);
    bool cured = false, good = true;
    for (size_t i = 0; i < objects->len; i++)
        cured = cured || str_eq(objects->at[i].metadata->name, STR("cure"));
    for (size_t i = 0; i < objects->len && !cured; i++) {
        str lint = label_get(objects->at[i].metadata->labels, STR("lint"));
        if (lint.len == 0)
            continue;
        char name[128];
        snprintf(name, sizeof name, "%s/%.*s", object_kind_text(objects->at[i].kind),
                 STR_ARG(objects->at[i].metadata->name));
        good = false;
        problems_add(found, &(problem){.severity = str_eq(lint, STR("error")) ? SEVERITY_ERROR
                                                                              : SEVERITY_WARNING,
                                       .document = str_of(name),
                                       .message = STR("is wrong with others")});
    }
    return good;
}

#define must(call)                                                                                 \
    do {                                                                                           \
        err error_ = {""};                                                                         \
        err *problem_ = &error_;                                                                   \
        check_msg(call, "%s", error_.text);                                                        \
    } while (0)

/* ---- a plane without events ---- */

static void open_plane(plane *p)
{
    *p = (plane){
        .folder = folder, .shared = plane_share(), .start_ms = 1000000, .snapshot_entries = 1000};
    plane_open(p);
}

typedef struct applied {
    bool good;
    bool conflict;
    err error;
    char text[100000]; /* "Kind/name action@version ..." and then problems */
} applied;

static applied apply_with(plane *p, apply_request request)
{
    applied out = {.error = {""}};
    apply_answer answer = {.arena = arena_new(0), .found = problems_new()};
    request.who = STR("me");
    request.file = STR("f.yaml");
    out.good = control_apply(p->control, &request, p->shared->now_ms, &answer, &out.error);
    out.conflict = answer.conflict;
    buf text = BUF(sizeof out.text - 1);
    for (size_t i = 0; i < answer.count; i++)
        buf_addf(&text, "%.*s/%.*s %.*s@%lld ", STR_ARG(answer.results[i].kind),
                 STR_ARG(answer.results[i].name),
                 STR_ARG(apply_action_name(answer.results[i].action)),
                 (long long)answer.results[i].version);
    for (size_t i = 0; i < problems_count(answer.found); i++) {
        buf_addc(&text, '|');
        problem_text(problems_at(answer.found, i), &text);
    }
    snprintf(out.text, sizeof out.text, "%.*s", STR_ARG(buf_str(&text)));
    buf_done(&text);
    problems_free(answer.found);
    arena_free(answer.arena);
    return out;
}

static applied apply(plane *p, const char *text)
{
    return apply_with(p, (apply_request){.bytes = str_of(text), .expected = APPLY_ANY});
}

static buf engine_text(const plane *p)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    assert_true(engine_save(control_engine(p->control), &out));
    return out;
}

static void expect_applied(applied got, bool good, const char *text)
{
    check_msg(got.good == good, "%s; %s", got.text, got.error.text);
    check_text(str_of(got.text), text);
}

/* ---- documents ---- */

static void documents_are_created_updated_and_left_alone(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    expect_applied(apply(&p, STORY_HOST("a", "x") STORY_HOST("b", "x")), true,
                   "Resource/a created@1 Resource/b created@2 ");
    int64_t before = store_sequence(p.store);
    p.shared->now_ms += 5000;
    expect_applied(apply(&p, STORY_HOST("a", "x")), true, "Resource/a unchanged@1 ");
    assert_int_equal(store_sequence(p.store), before); /* no writes for nothing */
    expect_applied(apply(&p, STORY_HOST("a", "w") STORY_HOST("b", "x") STORY_HOST("c", "z")), true,
                   "Resource/a updated@3 Resource/b unchanged@2 Resource/c created@4 ");
    arena *a = arena_new(0);
    stored_document d;
    must(store_get_document(p.store, (document_key){STR("Resource"), STR("a")}, a, &d, problem_));
    /* The time of its first apply stays, and nothing that is the server's is kept. */
    check_text(d.json,
               "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Resource\",\"metadata\":{"
               "\"name\":\"a\",\"labels\":{\"ring\":\"w\"},\"creationTimestamp\":"
               "\"1970-01-01T00:16:40Z\"},\"spec\":{\"kind\":\"host\",\"config\":{\"address\":"
               "\"10.0.0.1\"}}}");
    arena_free(a);
    plane_close(&p);
}

static void all_or_none_unless_partial(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    const char *mixed = STORY_HOST("a", "x") STORY_API
        "kind: Resource\nmetadata: {name: b}\nspec: {knd: x}\n" STORY_API
        "kind: Environment\nmetadata: {name: wrong, labels: {lint: error}}\n"
        "spec: {resourceSelector: 'true'}\n";
    applied all = apply(&p, mixed);
    assert_false(all.good);
    check_has_at(str_of(all.text),
                 STR("Resource/a refused@0 Resource/b refused@0 Environment/wrong refused@0 |"),
                 __FILE__, __LINE__);
    check_has_at(str_of(all.text), STR("Resource/b: spec"), __FILE__, __LINE__);
    check_has_at(str_of(all.text), STR("Environment/wrong: is wrong with others"), __FILE__,
                 __LINE__);
    assert_int_equal(store_sequence(p.store), 0);
    applied some = apply_with(
        &p, (apply_request){.bytes = str_of(mixed), .expected = APPLY_ANY, .partial = true});
    assert_false(some.good); /* something was refused */
    check_has_at(str_of(some.text),
                 STR("Resource/a created@1 Resource/b refused@0 Environment/wrong refused@0 |"),
                 __FILE__, __LINE__);
    assert_non_null(control_object(p.control, KIND_RESOURCE, STR("a")));
    assert_null(control_object(p.control, KIND_ENVIRONMENT, STR("wrong")));
    plane_close(&p);
}

static void old_problems_refuse_nothing_new(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    const char *both =
        STORY_API "kind: Environment\nmetadata: {name: wrong, labels: {lint: error}}\n"
                  "spec: {resourceSelector: 'true'}\n" STORY_HOST("cure", "x");
    assert_true(apply(&p, both).good);
    delete_answer answer;
    must(control_delete(
        p.control,
        &(delete_request){.kind = STR("Resource"), .name = STR("cure"), .expected = APPLY_ANY},
        p.shared->now_ms, &answer, problem_));
    expect_applied(apply(&p, STORY_HOST("other", "x")), true, "Resource/other created@3 ");
    expect_applied(apply(&p, STORY_API "kind: Environment\nmetadata: {name: more}\n"
                                       "spec: {resourceSelector: 'true'}\n"),
                   true, "Environment/more created@4 ");
    plane_close(&p);
}

/* Versions are looked at beside those of their own tag only, however many there are. */
static void a_version_is_refused_for_what_it_refers_to(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    lint_for_real = true;
    assert_true(apply(&p, STORY_DEPLOYMENT("app", "x", "manual: {}")).good);
    assert_true(apply(&p, STORY_VERSION("app", "1") STORY_VERSION("app", "2")).good);
    expect_applied(apply(&p, STORY_VERSION("app", "1")), true, "Version/app-1 unchanged@2 ");
#define TWIN "kind: Version\nmetadata: {name: twin}\nspec: {deployment: app, tag: '1'}\n"
    applied got = apply(&p, STORY_API TWIN);
    assert_false(got.good);
    check_has_at(str_of(got.text), STR("of deployment \"app\" a second time"), __FILE__, __LINE__);
    got = apply(&p, STORY_VERSION("app", "3") STORY_API TWIN);
    assert_false(got.good);
    got = apply(&p, STORY_VERSION("none", "1"));
    assert_false(got.good);
    check_has_at(str_of(got.text), STR("found \"none\", allowed the name of a Deployment"),
                 __FILE__, __LINE__);
    /* The tag moves to another document in one go. */
    got = apply(&p, STORY_API "kind: Version\nmetadata: {name: app-1}\n"
                              "spec: {deployment: app, tag: '4'}\n" STORY_API TWIN);
    check_msg(got.good, "%s", got.text);
    lint_for_real = false;
    plane_close(&p);
}

static void warnings_are_told_and_refuse_nothing(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    expect_applied(apply(&p, STORY_API
                         "kind: Environment\nmetadata: {name: odd, labels: {lint: warning}}\n"
                         "spec: {resourceSelector: 'true'}\n"),
                   true, "Environment/odd created@1 |Environment/odd: is wrong with others");
    plane_close(&p);
}

static void what_does_not_belong_here_is_refused(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    applied foreign = apply(&p, "apiVersion: v1\nkind: Node\nmetadata: {name: no-kind}\n");
    check_has_at(str_of(foreign.text), STR("allowed Resource, Environment"), __FILE__, __LINE__);
    applied unknown = apply(&p, "apiVersion: v1\nkind: Service\nmetadata: {name: no-kind}\n");
    check_has_at(str_of(unknown.text), STR("found the kind \"Service\", allowed Resource"),
                 __FILE__, __LINE__);
    applied twice = apply(&p, STORY_HOST("a", "x") STORY_HOST("a", "w"));
    check_has_at(str_of(twice.text), STR("stands there twice"), __FILE__, __LINE__);
    applied broken = apply(&p, "{\"apiVersion\": ");
    assert_false(foreign.good || unknown.good || twice.good || broken.good);
    assert_int_equal(store_sequence(p.store), 0);
    expect_applied(apply(&p, ""), true, "");
    plane_close(&p);
}

static void a_dry_run_writes_nothing(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    expect_applied(apply_with(&p, (apply_request){.bytes = STR(STORY_HOST("a", "x")),
                                                  .expected = APPLY_ANY,
                                                  .dry_run = true}),
                   true, "Resource/a created@0 ");
    assert_int_equal(store_sequence(p.store), 0);
    plane_close(&p);
}

static void an_expected_version_is_held_to(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    str one = STR(STORY_HOST("a", "x")), other = STR(STORY_HOST("a", "w"));
    assert_true(apply_with(&p, (apply_request){.bytes = one, .expected = 0}).good);
    applied again = apply_with(&p, (apply_request){.bytes = other, .expected = 0});
    assert_true(!again.good && again.conflict);
    check_err(again.error, "found version 1, expected 0");
    assert_true(apply_with(&p, (apply_request){.bytes = other, .expected = 1}).good);
    applied many =
        apply_with(&p, (apply_request){.bytes = STR(STORY_HOST("b", "x") STORY_HOST("c", "x")),
                                       .expected = 1});
    assert_true(!many.good && !many.conflict);
    delete_answer answer;
    err error;
    delete_request gone = {.kind = STR("Resource"), .name = STR("a"), .expected = 1};
    assert_false(control_delete(p.control, &gone, 0, &answer, &error));
    assert_true(answer.conflict && !answer.missing);
    assert_non_null(control_object(p.control, KIND_RESOURCE, STR("a")));
    gone.expected = 2;
    must(control_delete(p.control, &gone, 0, &answer, problem_));
    assert_false(control_delete(p.control, &gone, 0, &answer, &error));
    assert_true(answer.missing);
    check_err(error, "there is no Resource \"a\"");
    plane_close(&p);
}

/* ---- acts ---- */

static void acts_must_name_what_exists(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    assert_true(apply(&p, STORY_FLEET STORY_POLICIES STORY_VERSION("agent", "1")).good);
    const struct {
        fact_act act;
        const char *want; /* NULL: taken */
    } rows[] = {
        {{.act = ACT_PAUSE, .change = STR("nope")}, "there is no Deployment \"nope\""},
        {{.act = ACT_PAUSE, .change = STR("agent")}, NULL},
        {{.act = ACT_RETRY, .target = STR("n9")}, "there is no Resource \"n9\""},
        {{.act = ACT_SKIP, .target = STR("n1"), .environment = STR("moon")},
         "there is no Environment \"moon\""},
        {{.act = ACT_APPROVE, .version = STR("1")}, "there is no Version \"1\""},
        {{.act = ACT_APPROVE, .version = STR("agent-1")}, NULL},
        {{.act = ACT_APPROVE, .change = STR("agent"), .version = STR("1")}, NULL},
        {{.act = ACT_APPROVE, .change = STR("os"), .version = STR("agent-1")},
         "there is no Version \"agent-1\""},
        {{.act = ACT_REJECT}, "a version must be named"},
        {{.act = ACT_BYPASS, .version = STR("agent-1")}, "a rule must be named"},
        {{.act = ACT_BYPASS, .version = STR("agent-1"), .rule = STR("x")},
         "there is no rule \"x\""},
        {{.act = ACT_BYPASS, .version = STR("agent-1"), .rule = STR("apps/retry/0")}, NULL},
        {{.act = ACT_FREEZE, .selector = STR("resource.name ==")}, "selector: 1:17"},
        {{.act = ACT_FREEZE, .selector = STR("resource.name == 'n1'")}, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        err error = {""};
        int64_t before = store_sequence(p.store);
        bool good = control_act(p.control, &rows[i].act, p.shared->now_ms, &error);
        check_msg(good == !rows[i].want, "row %zu: %s", i, error.text);
        if (!rows[i].want)
            continue;
        check_has_at(str_of(error.text), str_of(rows[i].want), __FILE__, __LINE__);
        assert_int_equal(store_sequence(p.store), before);
    }
    plane_close(&p);
}

/* ---- jobs ---- */

static stored_job job_now(const plane *p, int64_t number, arena *a)
{
    stored_job j = {0};
    err error = {""};
    check_msg(store_get_job(p->store, number, a, &j, &error), "job %lld: %s", (long long)number,
              error.text);
    return j;
}

static claim_answer claim(plane *p, const char *resource_name, int64_t lease_ms, arena *a)
{
    claim_answer answer = {.arena = a};
    must(control_claim(p->control,
                       &(claim_request){.who = STR("worker"),
                                        .resource = str_of(resource_name),
                                        .lease_ms = lease_ms},
                       p->shared->now_ms, &answer, problem_));
    return answer;
}

static job_report ended(int64_t number, int64_t fencing, outcome how)
{
    return (job_report){
        .who = STR("worker"), .number = number, .fencing = fencing, .ended = true, .outcome = how};
}

static bool report(plane *p, job_report r)
{
    must(control_jobs(p->control, &r, 1, p->shared->now_ms, problem_));
    return !r.ignored;
}

static heartbeat beat(plane *p, int64_t number, int64_t fencing)
{
    heartbeat b = {.number = number, .fencing = fencing};
    must(control_heartbeat(p->control, &b, p->shared->now_ms, problem_));
    return b;
}

#define PULL_FLEET(timeout)                                                                        \
    STORY_HOST("n1", "x")                                                                          \
    STORY_HOST("n2", "x")                                                                          \
    STORY_API                                                                                      \
    "kind: Environment\nmetadata: {name: all}\nspec: {resourceSelector: 'true'}\n" STORY_API       \
    "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', "                   \
    "timeoutSeconds: " timeout ", job: {pull: {}}}\n" STORY_VERSION("app", "1") STORY_API          \
        "kind: RolloutPolicy\nmetadata: {name: again}\nspec: {rules: [{retry: "                    \
        "{maxRetries: 5, backoffSeconds: 1}}]}\n"

static void a_claim_is_had_by_one_worker(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    arena *a = arena_new(0);
    assert_true(apply(&p, PULL_FLEET("3600")).good);
    claim_answer first = claim(&p, "n1", 0, a), second = claim(&p, "n1", 0, a),
                 other = claim(&p, "n2", 0, a);
    assert_true(first.found && !second.found && other.found);
    assert_false(claim(&p, "n3", 0, a).found);
    assert_true(other.job.fencing > first.job.fencing && first.job.fencing > 0);
    assert_int_equal(first.job.lease_ms, p.shared->now_ms + LIMIT_LEASE_MS);
    check_text(first.job.state, "running");
    check_text(first.job.version, "1");
    assert_true(report(&p, ended(first.job.number, first.job.fencing, OUTCOME_SUCCEEDED)));
    assert_false(report(&p, ended(first.job.number, first.job.fencing, OUTCOME_FAILED)));
    check_text(job_now(&p, first.job.number, a).state, "succeeded");
    arena_free(a);
    plane_close(&p);
}

static void a_worker_without_heartbeat_loses_its_job(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    arena *a = arena_new(0);
    assert_true(apply(&p, PULL_FLEET("3600")).good);
    claim_answer first = claim(&p, "n1", 10000, a);
    p.shared->now_ms += 9000;
    heartbeat b = beat(&p, first.job.number, first.job.fencing);
    assert_true(b.held && !b.cancel);
    assert_int_equal(b.until_ms, p.shared->now_ms + LIMIT_LEASE_MS);
    assert_false(beat(&p, first.job.number, first.job.fencing - 1).held);
    assert_int_equal(control_next_ms(p.control), b.until_ms);
    /* A restart in between changes nothing. */
    plane_close(&p);
    plane_open(&p);
    p.shared->now_ms = b.until_ms - 1;
    must(control_tick(p.control, p.shared->now_ms, problem_));
    check_text(job_now(&p, first.job.number, a).state, "running");
    p.shared->now_ms = b.until_ms;
    /* Nobody has ticked: the claim itself sees that the lease has run out. */
    assert_false(claim(&p, "n1", 0, a).found);
    stored_job lost = job_now(&p, first.job.number, a);
    check_text(lost.state, "lost");
    check_text(lost.reason, "its worker sent no heartbeat");
    p.shared->now_ms += 1000;
    must(control_tick(p.control, p.shared->now_ms, problem_));
    claim_answer second = claim(&p, "n1", 0, a);
    assert_true(second.found && second.job.number > first.job.number && second.job.attempt == 2);
    assert_true(second.job.fencing > first.job.fencing);
    /* The first one comes back. */
    assert_false(beat(&p, first.job.number, first.job.fencing).held);
    assert_false(report(&p, ended(first.job.number, first.job.fencing, OUTCOME_SUCCEEDED)));
    assert_false(report(&p, ended(second.job.number, first.job.fencing, OUTCOME_SUCCEEDED)));
    assert_true(report(&p, ended(second.job.number, second.job.fencing, OUTCOME_SUCCEEDED)));
    arena_free(a);
    plane_close(&p);
}

static void a_lease_does_not_outlive_the_time_limit(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    arena *a = arena_new(0);
    assert_true(apply(&p, PULL_FLEET("70")).good);
    claim_answer first = claim(&p, "n1", 0, a);
    p.shared->now_ms += 50000;
    heartbeat b = beat(&p, first.job.number, first.job.fencing);
    assert_int_equal(b.until_ms, first.job.started_ms + 70000);
    p.shared->now_ms = b.until_ms;
    assert_false(beat(&p, first.job.number, first.job.fencing).held);
    stored_job failed = job_now(&p, first.job.number, a);
    check_text(failed.state, "failed");
    check_text(failed.reason, "the time limit was reached");
    arena_free(a);
    plane_close(&p);
}

#define ONE_JOB(rest)                                                                              \
    STORY_HOST("n1", "wide")                                                                       \
    STORY_API                                                                                      \
    "kind: Environment\nmetadata: {name: e}\nspec: {resourceSelector: 'true'}\n" STORY_API         \
    "kind: Deployment\nmetadata: {name: app}\nspec: {resourceSelector: 'true', " rest              \
    "}\n" STORY_VERSION("app", "1")

static void tick(plane *p, int64_t after_ms)
{
    p->shared->now_ms += after_ms;
    must(control_tick(p->control, p->shared->now_ms, problem_));
}

static void a_person_has_a_time_limit_too(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    arena *a = arena_new(0);
    assert_true(apply(&p, ONE_JOB("timeoutSeconds: 70, job: {manual: {}}")).good);
    int64_t begin = p.shared->now_ms;
    check_text(job_now(&p, 1, a).state, "pending");
    assert_int_equal(control_next_ms(p.control), begin + 70000);
    assert_false(beat(&p, 1, 0).held); /* it is no worker's */
    tick(&p, 69999);
    check_text(job_now(&p, 1, a).state, "pending");
    plane_close(&p);
    plane_open(&p);
    assert_int_equal(control_next_ms(p.control), begin + 70000);
    /* More time is given, in time. */
    assert_true(apply(&p, ONE_JOB("timeoutSeconds: 100, job: {manual: {}}")).good);
    tick(&p, 1);
    check_text(job_now(&p, 1, a).state, "pending");
    assert_int_equal(control_next_ms(p.control), begin + 100000);
    tick(&p, 30000);
    stored_job failed = job_now(&p, 1, a);
    check_text(failed.state, "failed");
    check_text(failed.reason, "the time limit was reached");
    assert_false(report(&p, ended(1, JOB_FENCING_ANY, OUTCOME_SUCCEEDED)));
    arena_free(a);
    plane_close(&p);
}

static void what_a_worker_or_a_person_did_is_verified(void **state)
{
    (void)state;
    static const char *const kinds[] = {ONE_JOB("verify: {run: ['true']}, job: {manual: {}}"),
                                        ONE_JOB("verify: {run: ['true']}, job: {pull: {}}")};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        plane p;
        open_plane(&p);
        arena *a = arena_new(0);
        assert_true(apply(&p, kinds[i]).good);
        int64_t fencing = i == 0 ? JOB_FENCING_ANY : claim(&p, "n1", 0, a).job.fencing;
        job_report done = ended(1, fencing, OUTCOME_SUCCEEDED);
        assert_true(report(&p, done));
        check_text(job_now(&p, 1, a).state, "verifying");
        assert_int_equal(job_now(&p, 1, a).ended_ms, 0);
        assert_int_equal(job_now(&p, 1, a).lease_ms, 0); /* nobody's time runs out */
        assert_false(report(&p, done));                  /* said twice */
        plane_close(&p);
        plane_open(&p);
        check_text(job_now(&p, 1, a).state, "verifying");
        job_report verified = {.number = 1,
                               .fencing = JOB_FENCING_ANY,
                               .ended = true,
                               .outcome = OUTCOME_SUCCEEDED,
                               .verification_failed = i == 1,
                               .reason = i == 1 ? STR("verify: exit status 1") : STR_EMPTY};
        assert_true(report(&p, verified));
        stored_job j = job_now(&p, 1, a);
        check_text(j.state, i == 1 ? "failed" : "succeeded");
        check_text(j.reason, i == 1 ? "verify: exit status 1" : "");
        arena_free(a);
        plane_close(&p);
        remove_folder(state);
        make_folder(state);
    }
}

static void cancelling_asks_the_worker_and_ends_what_waits(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    arena *a = arena_new(0);
    err error;
    assert_true(apply(&p, PULL_FLEET("3600")).good);
    claim_answer first = claim(&p, "n1", 10000, a);
    must(control_cancel(p.control, first.job.number, STR("ann"), p.shared->now_ms, problem_));
    plane_close(&p);
    plane_open(&p);
    p.shared->now_ms += 5000;
    heartbeat b = beat(&p, first.job.number, first.job.fencing);
    assert_true(b.held && b.cancel);
    assert_int_equal(b.until_ms, first.job.lease_ms); /* not prolonged */
    assert_true(report(&p, ended(first.job.number, first.job.fencing, OUTCOME_FAILED)));
    int64_t waiting = first.job.number == 1 ? 2 : 1;
    must(control_cancel(p.control, waiting, STR("ann"), p.shared->now_ms, problem_));
    check_text(job_now(&p, waiting, a).state, "failed");
    check_text(job_now(&p, waiting, a).reason, "cancelled");
    assert_false(control_cancel(p.control, waiting, STR("ann"), p.shared->now_ms, &error));
    check_err_has(error, "it has ended");
    arena_free(a);
    plane_close(&p);
}

/* Whoever was told to end it may have been killed before it did. */
static void a_command_is_cancelled_again_after_a_restart(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    arena *a = arena_new(0);
    bool good = apply(&p, STORY_HOST("n1", "x") STORY_API
                      "kind: Environment\n"
                      "metadata: {name: e}\nspec: {resourceSelector: 'true'}\n" STORY_DEPLOYMENT(
                          "d", "x", "command: {run: [x]}") STORY_VERSION("d", "1"))
                    .good;
    assert_true(good);
    assert_true(report(&p, (job_report){.number = 1, .fencing = JOB_FENCING_ANY, .pid = 7}));
    must(control_cancel(p.control, 1, STR("ann"), p.shared->now_ms, problem_));
    assert_int_equal(p.cancelled, 1);
    for (int i = 0; i < 2; i++) {
        plane_close(&p);
        p.cancelled = 0;
        plane_open(&p);
        assert_int_equal(p.cancelled, 1);
    }
    job_report over = ended(1, JOB_FENCING_ANY, OUTCOME_FAILED);
    over.reason = STR("cancelled");
    assert_true(report(&p, over));
    check_text(job_now(&p, 1, a).reason, "cancelled");
    plane_close(&p);
    p.cancelled = 0;
    plane_open(&p);
    assert_int_equal(p.cancelled, 0);
    arena_free(a);
    plane_close(&p);
}

static void reports_of_one_call_are_one_turn(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    assert_true(apply(&p, PULL_FLEET("70")).good);
    job_report r[] = {{.number = 1, .fencing = JOB_FENCING_ANY, .pid = 7},
                      {.number = 2, .fencing = JOB_FENCING_ANY, .pid = 8},
                      ended(1, JOB_FENCING_ANY, OUTCOME_SUCCEEDED),
                      ended(1, JOB_FENCING_ANY, OUTCOME_FAILED),
                      ended(77, JOB_FENCING_ANY, OUTCOME_FAILED),
                      {.number = 1, .fencing = JOB_FENCING_ANY, .pid = 9}};
    must(control_jobs(p.control, r, COUNT_OF(r), p.shared->now_ms, problem_));
    const bool ignored[] = {false, false, false, true, true, true};
    arena *a = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(r); i++)
        check_msg(r[i].ignored == ignored[i], "report %zu", i);
    stored_job one = job_now(&p, 1, a), two = job_now(&p, 2, a);
    check_text(one.state, "succeeded");
    assert_int_equal(one.pid, 7);
    check_text(two.state, "running");
    arena_free(a);
    plane_close(&p);
}

/* ---- limits ---- */

typedef struct slots {
    int64_t taken, most, limit;
} slots;

static bool count_slots(void *context, const journal_entry *e)
{
    slots *s = context;
    if (!str_starts(e->json, STR("{\"decision\":\"slot\"")))
        return true;
    s->taken += str_ends(e->json, STR("\"taken\":true}")) ? 1 : -1;
    s->most = s->taken > s->most ? s->taken : s->most;
    check_msg(s->taken <= s->limit, "entry %lld: %lld slots are taken", (long long)e->sequence,
              (long long)s->taken);
    return true;
}

static void a_thousand_turns_in_one_second_keep_to_the_limit(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    buf text = BUF(LIMIT_TEXT_BYTES);
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, STORY_API "kind: Resource\nmetadata: {name: r%d}\nspec: {kind: host}\n", i);
    buf_addz(&text, STORY_API "kind: Environment\nmetadata: {name: e}\n"
                              "spec: {resourceSelector: 'true'}\n" STORY_API
                              "kind: Deployment\nmetadata: {name: app}\n"
                              "spec: {resourceSelector: 'true', job: {manual: {}}}\n" STORY_API
                              "kind: RolloutPolicy\nmetadata: {name: p}\nspec: {rules: [{"
                              "gradualRollout: {rolloutType: linear-normalized, "
                              "timeScaleInterval: 1}}, {"
                              "resourceConcurrency: {groupSelector: 'true', "
                              "limitType: percentage, limitValue: 20}}]}\n");
    buf_addc(&text, '\0');
    assert_true(apply(&p, text.ptr).good);
    buf_done(&text);
    assert_true(apply(&p, STORY_VERSION("app", "1")).good);
    rng r = rng_seeded();
    job_report reports[1000];
    for (int64_t next = 1; next <= 1000;) {
        /* So many end together, now and then all that run. */
        size_t n = 0, most = 1 + rng_below(&r, 200);
        for (; next <= 1000 && n < most; n++)
            reports[n] = ended(next++, JOB_FENCING_ANY, OUTCOME_SUCCEEDED);
        must(control_jobs(p.control, reports, n, p.shared->now_ms, problem_));
        for (size_t i = 0; i < n; i++)
            check_msg(!reports[i].ignored, "job %lld was not there", (long long)reports[i].number);
    }
    slots s = {.limit = 200};
    must(store_journal(p.store, 0, count_slots, &s, problem_));
    assert_int_equal(s.most, 200);
    assert_int_equal(s.taken, 0);
    plane_close(&p);
}

/* ---- restarts ---- */

static void every_restart_arrives_at_the_same_state(void **state)
{
    (void)state;
    plane p = story_plane(folder, plane_share());
    err error;
    plane_open(&p);
    for (size_t steps = 0; plane_step(&p, &error); steps++) {
        check_msg(error.text[0] == 0, "%s", error.text);
        if (steps % 3 != 0)
            continue;
        buf before = engine_text(&p);
        int64_t next = control_next_ms(p.control);
        plane_close(&p);
        plane_open(&p);
        buf after = engine_text(&p);
        check_str(buf_str(&after), buf_str(&before));
        assert_int_equal(control_next_ms(p.control), next);
        buf_done(&before);
        buf_done(&after);
    }
    must(engine_check(control_engine(p.control), problem_));
    plane_close(&p);
}

/* What another program would find in the store: a limit that is not the one it was. */
static void edit_store(const char *sql)
{
    char path[128];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/drover.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    sqlite3_close(db);
}

#define TWO_HOSTS                                                                                  \
    STORY_API                                                                                      \
    "kind: Resource\nmetadata: {name: r1}\nspec: {kind: host}\n" STORY_API                         \
    "kind: Resource\nmetadata: {name: r2}\nspec: {kind: host}\n" STORY_API                         \
    "kind: Environment\nmetadata: {name: e}\nspec: {resourceSelector: 'true'}\n" STORY_API         \
    "kind: Deployment\nmetadata: {name: app}\n"                                                    \
    "spec: {resourceSelector: 'true', job: {manual: {}}}\n" STORY_API                              \
    "kind: RolloutPolicy\nmetadata: {name: p}\nspec: {rules: [{"                                   \
    "resourceConcurrency: {groupSelector: 'true', limitType: count, limitValue: 1}}]}\n"

static bool count_job(void *context, const stored_job *j)
{
    (void)j;
    ++*(size_t *)context;
    return true;
}

static size_t open_jobs(const plane *p)
{
    size_t count = 0;
    must(store_jobs(p->store, (job_range){0, true}, count_job, &count, problem_));
    return count;
}

/* One life of a process that is killed: it writes no snapshot. */
static void live_and_be_killed(plane *p, void (*live)(plane *p))
{
    pid_t child = fork();
    if (child == 0) {
        plane_open(p);
        live(p);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void publish_app(plane *p)
{
    if (!apply(p, STORY_VERSION("app", "1")).good)
        _exit(1);
}

static void make_up_for_it(plane *p)
{
    int64_t before = store_sequence(p->store);
    bool good = open_jobs(p) == 1 && control_next_ms(p->control) <= p->shared->now_ms;
    tick(p, 0);
    if (!good || open_jobs(p) != 2 || store_sequence(p->store) <= before)
        _exit(1);
}

#define OTHER_LIMIT                                                                                \
    "UPDATE snapshot_parts SET text = replace(text, '\"limitValue\":1', '\"limitValue\":2')"

/* An upgrade: the new program has more to decide than the old one had. It decides that, writes it
 * down, and finds it again, also when it is killed before its first snapshot. */
static void another_program_goes_on_from_a_snapshot(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    assert_true(apply(&p, TWO_HOSTS).good);
    publish_app(&p);
    assert_int_equal(open_jobs(&p), 1);
    plane_close(&p);
    edit_store(OTHER_LIMIT);
    live_and_be_killed(&p, make_up_for_it);
    plane_open(&p);
    assert_int_equal(open_jobs(&p), 2);
    int64_t sequence = store_sequence(p.store);
    assert_true(control_next_ms(p.control) > p.shared->now_ms);
    tick(&p, 0);
    assert_int_equal(store_sequence(p.store), sequence);
    buf was = engine_text(&p);
    plane_close(&p);
    plane_open(&p);
    buf is = engine_text(&p);
    check_str(buf_str(&is), buf_str(&was));
    buf_done(&is);
    buf_done(&was);
    plane_close(&p);
}

/* What an older program decided and this one would not is not passed over in silence. */
static void decisions_of_a_killed_program_that_decided_otherwise_are_refused(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    assert_true(apply(&p, TWO_HOSTS).good);
    plane_close(&p);
    live_and_be_killed(&p, publish_app);
    edit_store(OTHER_LIMIT);
    err error;
    store *s = store_open(str_of(folder), &error);
    check_msg(s, "%s", error.text);
    assert_null(control_open(s, NULL, NULL, p.shared->now_ms, &error));
    check_msg(strstr(error.text, "start that one once more and stop it in order"), "%s",
              error.text);
    store_close(s);
}

static void nothing_is_written_at_rest(void **state)
{
    (void)state;
    plane p = story_plane(folder, plane_share());
    plane_open(&p);
    plane_run(&p, 0);
    plane_close(&p);
    plane_open(&p);
    int64_t before = store_sequence(p.store);
    for (int i = 0; i < 10; i++)
        must(control_tick(p.control, p.shared->now_ms, problem_));
    assert_int_equal(store_sequence(p.store), before);
    plane_close(&p);
}

static void a_replay_that_differs_is_an_error(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    assert_true(apply(&p, PULL_FLEET("70")).good);
    must(store_append(p.store,
                      &(journal_entry){.at_ms = p.shared->now_ms,
                                       .step = 1,
                                       .kind = STR("decision"),
                                       .json = STR("{\"decision\":\"job\",\"change\":\"evil\"}")},
                      NULL, problem_));
    err error;
    assert_null(control_open(p.store, NULL, NULL, 0, &error));
    check_err_has(error, "journal, step 1: the replay decides nothing where the journal has "
                         "{\"decision\":\"job\",\"change\":\"evil\"}");
    plane_close(&p);
}

static void time_does_not_go_back(void **state)
{
    (void)state;
    plane p;
    open_plane(&p);
    assert_true(apply(&p, STORY_HOST("a", "x")).good);
    p.shared->now_ms -= 500000;
    assert_true(apply(&p, STORY_HOST("b", "x")).good);
    plane_close(&p);
    plane_open(&p);
    assert_true(apply(&p, STORY_HOST("c", "x")).good);
    const object *c = control_object(p.control, KIND_RESOURCE, STR("c"));
    assert_int_equal(c->metadata->creation_timestamp.at.seconds, 1000);
    plane_close(&p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(documents_are_created_updated_and_left_alone),
        TEST(all_or_none_unless_partial),
        TEST(old_problems_refuse_nothing_new),
        TEST(a_version_is_refused_for_what_it_refers_to),
        TEST(warnings_are_told_and_refuse_nothing),
        TEST(what_does_not_belong_here_is_refused),
        TEST(a_dry_run_writes_nothing),
        TEST(an_expected_version_is_held_to),
        TEST(acts_must_name_what_exists),
        TEST(a_claim_is_had_by_one_worker),
        TEST(a_worker_without_heartbeat_loses_its_job),
        TEST(a_lease_does_not_outlive_the_time_limit),
        TEST(a_person_has_a_time_limit_too),
        TEST(what_a_worker_or_a_person_did_is_verified),
        TEST(cancelling_asks_the_worker_and_ends_what_waits),
        TEST(a_command_is_cancelled_again_after_a_restart),
        TEST(reports_of_one_call_are_one_turn),
        TEST(a_thousand_turns_in_one_second_keep_to_the_limit),
        TEST(every_restart_arrives_at_the_same_state),
        TEST(another_program_goes_on_from_a_snapshot),
        TEST(decisions_of_a_killed_program_that_decided_otherwise_are_refused),
        TEST(nothing_is_written_at_rest),
        TEST(a_replay_that_differs_is_an_error),
        TEST(time_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
