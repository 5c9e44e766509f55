/* SPDX-License-Identifier: Apache-2.0 */
/* What must not happen, one story each: old evidence that counts for something new, another
 * operator's writes that are overwritten, two attempts beside each other. */
#include "support/check.h"

#include "operator/shell_internal.h"
#include "support/operator_story.h"

static size_t count_objects(fake *f, const char *collection)
{
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += strcmp(f->objects[i].collection, collection) == 0;
    return count;
}

static void check_complete(fake *f)
{
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/status")), "complete");
}

/* ---- a server that is set back to a backup ---- */

typedef struct backup {
    fake_object objects[FAKE_OBJECTS_MAX];
    size_t count;
    uint64_t revision;
} backup;

static backup *back_up(const fake *f)
{
    backup *b = test_calloc(1, sizeof *b);
    memcpy(b->objects, f->objects, sizeof b->objects);
    b->count = f->count;
    b->revision = f->revision;
    for (size_t i = 0; i < b->count; i++)
        b->objects[i].doc = fake_copy(f->objects[i].doc);
    return b;
}

/* Everything is as it was then, and watches list anew. */
static void set_back(fake *f, backup *b)
{
    fake_side *side = &f->sides[0];
    for (size_t i = 0; i < side->messages.len; i++) /* no answer comes any more */
        yyjson_doc_free(side->messages.at[i].doc);
    side->messages.len = 0;
    for (size_t i = 0; i < f->count; i++) {
        bool kept = false;
        for (size_t k = 0; k < b->count; k++)
            kept |= strcmp(b->objects[k].name, f->objects[i].name) == 0;
        if (!kept)
            fake_tell_side(side, &f->objects[i], true);
        yyjson_doc_free(f->objects[i].doc);
    }
    memcpy(f->objects, b->objects, sizeof b->objects);
    f->count = b->count;
    f->revision = b->revision;
    test_free(b);
    for (size_t i = 0; i < f->count; i++)
        fake_tell_side(side, &f->objects[i], false);
    fake_deliver(side);
    node_shell_set_back(side->shell);
    for (int kind = 0; kind < SHELL_KIND_COUNT; kind++)
        node_shell_synced(side->shell, (shell_kind)kind);
}

static void server_that_is_set_back(void **state)
{
    (void)state;
    for (int64_t backup_ms = 500; backup_ms < 8000; backup_ms += 500) {
        fake *f = begin(skyhook_interrupt);
        add_pods(f);
        fake_run(f, backup_ms);
        backup *b = back_up(f);
        fake_run(f, 4500);
        set_back(f, b);
        fake_run(f, -1);
        check_complete(f);
        assert_int_equal(f->sides[0].begun, 2);
        for (int i = 0; i < NODES; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%02d", i);
            assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable")));
        }
        fake_free(f);
    }
}

/* ---- a node that is replaced under its name ---- */

static void replace_node(fake *f, const char *name)
{
    char text[512];
    fake_delete(f, FAKE_NODES, name);
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"pool\":\"a\"},\"annotations\":{}},"
             "\"spec\":{},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
             "\"nodeInfo\":{\"bootID\":\"other\"}}}",
             name);
    fake_create(f, FAKE_NODES, text);
}

static void replaced_node_runs_anew(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        fake *f = begin(skyhook_plain);
        fake_run(f, -1);
        assert_int_equal(count_objects(f, FAKE_JOBS), 2 * NODES);
        replace_node(f, "n03");
        if (restarted)
            fake_start(f);
        fake_run(f, -1);
        /* Jobs of the old node have the names of its first attempts; they are not read. */
        assert_int_equal(count_objects(f, FAKE_JOBS), 2 * NODES + 2);
        check_complete(f);
        fake_free(f);
    }
}

static bool fails_everywhere(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-n03-1-") != NULL;
}

/* Three names in a row that are taken are no lost Jobs. */
static void replaced_node_is_not_blamed(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    f->fails = fails_everywhere;
    fake_run(f, -1);
    for (int i = 0; i < 5; i++) {
        replace_node(f, "n03");
        f->fails = NULL;
        fake_run(f, -1);
        check_complete(f);
    }
    assert_int_equal(count_lines(f, "JobLost"), 0);
    fake_free(f);
}

/* ---- another operator ---- */

/* Both make the same of it, and one hears of everything some seconds late. */
static void two_at_once(void **state)
{
    (void)state;
    static const int64_t delays[] = {0, 300, 1700, 4000};
    for (size_t i = 0; i < COUNT_OF(delays); i++) {
        fake *f = begin(skyhook_interrupt);
        add_pods(f);
        f->reboots = reboots_first;
        f->sides[1].delay_ms = delays[i];
        fake_start_side(f, 1);
        fake_run(f, -1);
        check_complete(f);
        /* Nothing ran twice: apply, config, interrupt, post-interrupt. The interrupt that the
         * reboot ended went when its second attempt succeeded. */
        assert_int_equal(count_objects(f, FAKE_JOBS), 4 * NODES);
        check_msg(f->sides[0].begun + f->sides[1].begun < 200, "%zu and %zu shells",
                  f->sides[0].begun, f->sides[1].begun);
        fake_free(f);
    }
}

/* What a person writes is told from what another operator writes, also by one that just began. */
static void edited_while_nobody_looked(void **state)
{
    (void)state;
    static const char *const edits[] = {
        "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/nodeState_sk\":null}}}",
        "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/nodeState_sk\":\"{}\"}}}"};
    for (size_t i = 0; i < 2 * COUNT_OF(edits); i++) {
        fake *f = begin(skyhook_plain);
        fake_run(f, -1);
        if (i % 2 == 0)
            fake_end_side(&f->sides[0]);
        fake_edit(f, FAKE_NODES, "n02", edits[i / 2]);
        if (i % 2 == 0)
            fake_start(f);
        fake_run(f, -1);
        assert_int_equal(count_objects(f, FAKE_JOBS), 2 * NODES + 2);
        check_complete(f);
        fake_free(f);
    }
}

/* A record that somebody took away is put back; nothing runs again for it. */
static void record_is_put_back(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    fake_run(f, -1);
    fake_edit(f, FAKE_NODES, "n02",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/drover_sk\":null}}}");
    fake_run(f, -1);
    assert_non_null(
        fake_get(f, FAKE_NODES, "n02", "/metadata/annotations/skyhook.nvidia.com~1drover_sk"));
    assert_int_equal(count_objects(f, FAKE_JOBS), 2 * NODES);
    fake_free(f);
}

/* With the record the number of attempts is lost: Jobs of before have the names of new ones, and do
 * not count for them. */
static void jobs_of_a_lost_record_do_not_count(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        fake *f = begin(skyhook_plain);
        fake_run(f, -1);
        if (restarted)
            fake_end_side(&f->sides[0]);
        fake_edit(f, FAKE_NODES, "n02",
                  "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/drover_sk\":null,"
                  "\"skyhook.nvidia.com/nodeState_sk\":null}}}");
        if (restarted)
            fake_start(f);
        fake_run(f, -1);
        check_complete(f);
        assert_int_equal(count_objects(f, FAKE_JOBS), 2 * NODES + 2);
        fake_free(f);
    }
}

/* ---- one attempt at a time ---- */

#define HOUR_MS (INT64_C(3600) * 1000)

static void set_ready(fake *f, const char *node_name, bool ready)
{
    char patch[256];
    snprintf(patch, sizeof patch,
             "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
             ready ? "True" : "Unknown");
    fake_edit(f, FAKE_NODES, node_name, patch);
}

/* The kubelet was only cut off: the pod still runs when the node returns. */
static void nothing_beside_a_lost_attempt(void **state)
{
    (void)state;
    for (int with_pod = 0; with_pod < 2; with_pod++) {
        fake *f = begin(skyhook_plain);
        f->job_ms = 3 * HOUR_MS;
        fake_run(f, 2000);
        char job[FAKE_NAME_BYTES];
        snprintf(job, sizeof job, "%s", first_job(f, "-apply-n00-1-"));
        if (with_pod)
            make_pod(f, "pod-of-it", job, fake_text(f, FAKE_JOBS, job, "/metadata/uid"));
        set_ready(f, "n00", false);
        fake_run(f, HOUR_MS + 60000);
        check_text(str_of(status_of(f, "n00")), "erroring");
        if (with_pod)
            fake_delete(f, FAKE_JOBS, job);
        set_ready(f, "n00", true);
        f->job_ms = 1000;
        fake_run(f, HOUR_MS);
        check_text(str_of(first_job(f, "-apply-n00-2-")), "");
        if (with_pod)
            fake_edit(f, FAKE_PODS, "pod-of-it", "{\"status\":{\"phase\":\"Succeeded\"}}");
        fake_run(f, -1);
        assert_true(first_job(f, "-apply-n00-2-")[0] != '\0');
        check_complete(f);
        fake_free(f);
    }
}

/* A package goes on while the pod of another runs, but not
 * while one runs whose Job was another of that name. */
static void packages_beside_each_other(void **state)
{
    (void)state;
    for (int foreign = 0; foreign < 2; foreign++) {
        fake *f = begin("{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\","
                        "\"packages\":{\"aa\":{\"version\":\"1.0.0\",\"image\":\"example.test/a\"},"
                        "\"bb\":{\"version\":\"1.0.0\",\"image\":\"example.test/b\"}}}}");
        f->job_ms = 3 * HOUR_MS;
        fake_run(f, 2000);
        const char *other = first_job(f, "sk-bb-1-0-0-apply-n00-");
        make_pod(f, "pod-of-it", other,
                 foreign ? "old" : fake_text(f, FAKE_JOBS, other, "/metadata/uid"));
        for (size_t i = 0; i < f->count; i++)
            if (strstr(f->objects[i].name, "sk-aa-1-0-0-apply-n00-"))
                f->objects[i].ends_ms = f->now_ms + 1000;
        fake_run(f, 60000);
        bool went_on = first_job(f, "sk-aa-1-0-0-config-n00-")[0] != '\0';
        check_msg(went_on != foreign, "foreign %d\n%s", foreign, f->log.ptr);
        fake_free(f);
    }
}

/* ---- Jobs that are deleted before the answer to their creation comes ---- */

/* Lets turns pass, all at one time, until something of that kind was sent. */
static void run_until_sent(fake *f, const char *part)
{
    f->answers_last = true;
    for (int turns = 0; count_lines(f, part) == 0; turns++) {
        check_msg(turns < 100, "nothing like %s\n%s", part, f->log.ptr);
        fake_turn(f, 0);
    }
}

static fake_fault repeat_job(fake *f, const kube_write *w)
{
    (void)f;
    return w->verb == WRITE_CREATE ? FAULT_REPEATED : FAULT_NONE;
}

static void job_that_is_gone_before_its_answer(void **state)
{
    (void)state;
    for (int repeated = 0; repeated < 2; repeated++) {
        fake *f = begin(skyhook_plain);
        if (repeated) /* it is read, since one of that name is there, and gone before that answer */
            f->meets = repeat_job;
        run_until_sent(f, repeated ? "GET " FAKE_JOBS : "POST " FAKE_JOBS);
        f->meets = NULL;
        fake_delete(f, FAKE_JOBS, first_job(f, "-apply-n00-1-"));
        fake_run(f, -1);
        assert_int_equal(count_lines(f, "-apply-n00-2-"), 1);
        check_complete(f);
        fake_free(f);
    }
}

/* What is told to be gone is an older one of that name: nothing runs twice for it. */
static void older_job_that_is_gone_is_not_the_new_one(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    run_until_sent(f, "POST " FAKE_JOBS);
    node_shell_gone(f->shell, SHELL_JOB, STR_EMPTY, str_of(first_job(f, "-apply-")), f->now_ms);
    fake_run(f, -1);
    assert_int_equal(count_objects(f, FAKE_JOBS), 2 * NODES);
    check_complete(f);
    fake_free(f);
}

/* ---- ends of claims ---- */

static bool is_status(const kube_write *w)
{
    return str_eq(w->collection, STR(FAKE_SKYHOOKS)) && str_eq(w->subresource, STR("status"));
}

/* The first claim meets somebody's edit, which takes the node out again. */
static fake_fault edit_in_between(fake *f, const kube_write *w)
{
    if (!is_status(w) || str_find(w->body, STR("\"members\":[\"n0")) == SIZE_MAX)
        return FAULT_NONE;
    f->meets = NULL;
    if (f->answers_last)
        fake_edit(f, FAKE_NODES, "n00",
                  "{\"metadata\":{\"labels\":{\"skyhook.nvidia.com/ignore\":\"true\"}}}");
    else
        fake_edit(f, FAKE_SKYHOOKS, "sk",
                  "{\"spec\":{\"nodeSelectors\":{\"matchLabels\":{\"pool\":\"b\"}}}}");
    return FAULT_CONFLICT;
}

static void claim_that_ends_before_it_is_durable(void **state)
{
    (void)state;
    for (int ignored = 0; ignored < 2; ignored++) {
        fake *f = begin(skyhook_interrupt);
        add_pods(f);
        f->answers_last = ignored == 1;
        f->meets = edit_in_between;
        fake_run(f, 60000);
        assert_null(f->meets);
        assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
        fake_edit(f, FAKE_SKYHOOKS, "sk",
                  "{\"spec\":{\"nodeSelectors\":{\"matchLabels\":{\"pool\":\"a\"}}}}");
        fake_edit(f, FAKE_NODES, "n00",
                  "{\"metadata\":{\"labels\":{\"skyhook.nvidia.com/ignore\":null}}}");
        fake_run(f, -1);
        check_complete(f);
        fake_free(f);
    }
}

static size_t patches_let_through;

static fake_fault refuse_n01(fake *f, const kube_write *w)
{
    (void)f;
    if (!str_eq(w->collection, STR(FAKE_NODES)) || !str_eq(w->name, STR("n01")))
        return FAULT_NONE;
    if (patches_let_through == 0)
        return FAULT_INVALID;
    patches_let_through--;
    return FAULT_NONE;
}

/* Whatever of it can still be written, a node that refuses to be patched stops no other one. */
static void refused_node_stops_no_other(void **state)
{
    (void)state;
    for (size_t let = 0; let < 8; let++) {
        fake *f = begin(skyhook_interrupt);
        add_pods(f);
        f->meets = refuse_n01;
        patches_let_through = let;
        fake_run(f, 3600 * 1000);
        const char *complete = fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes");
        arena *a = arena_new(0);
        str why = sentence_of(f, a, "n01");
        check_msg(strcmp(complete, "8/8") == 0 ||
                      (strcmp(complete, "7/8") == 0 &&
                       str_find(why, STR("the node's patch is refused (status 422)")) != SIZE_MAX),
                  "%zu: %s: %.*s\n%s", let, complete, STR_ARG(why), f->log.ptr);
        arena_free(a);
        f->meets = NULL;
        fake_run(f, -1);
        check_complete(f);
        assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n01", "/spec/unschedulable")));
        fake_free(f);
    }
}

#define RIGHTS(of) of " is forbidden: User \"system:serviceaccount:skyhook:drover\" cannot patch "

/* An account without rights, and a namespace that goes, say nothing of the object; whatever a
 * webhook or a policy says is about this very one. */
static void who_forbids(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *message;
        bool refused;
    } rows[] = {
        {403, RIGHTS("nodes \"n01\"") "resource \"nodes/status\" in API group \"\"", false},
        {403, RIGHTS("jobs.batch") "resource \"jobs\" in API group \"batch\": RBAC: none", false},
        {403,
         "jobs.batch \"j\" is forbidden: unable to create new content in namespace skyhook because "
         "it is being terminated",
         false},
        {403, "admission webhook \"w\" denied the request: this node cannot be changed now", true},
        {403, "admission webhook \"w\" denied the request: " RIGHTS("it"), true},
        {403, "admission webhook \"w\" denied the request: the node is being terminated", true},
        {403,
         "nodes \"n01\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied "
         "request: its labels cannot be changed",
         true},
        {403, "pods \"p\" is forbidden: exceeded quota: q", true},
        {403, "", true},
        {422, RIGHTS("nodes \"n01\""), true},
        {401, "Unauthorized", false},
        {404, "namespaces \"skyhook\" not found", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        write_outcome how = {.kind = WRITE_REFUSED, .status = rows[i].status};
        snprintf(how.message, sizeof how.message, "%s", rows[i].message);
        check_msg(shell_is_refused(&how) == rows[i].refused, "row %zu", i);
        how.kind = WRITE_LATER;
        assert_false(shell_is_refused(&how));
    }
}

static fake_fault forbid_n01(fake *f, const kube_write *w)
{
    (void)f;
    bool here = str_eq(w->collection, STR(FAKE_NODES)) && str_eq(w->name, STR("n01"));
    return here ? FAULT_FORBIDDEN : FAULT_NONE;
}

static void node_that_a_webhook_guards_stops_no_other(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    f->meets = forbid_n01;
    f->forbids = "admission webhook \"w\" denied the request: this node cannot be changed now";
    fake_run(f, 3600 * 1000);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "7/8");
    arena *a = arena_new(0);
    str why = sentence_of(f, a, "n01");
    check_msg(str_find(why, STR("the node's patch is refused (status 403)")) != SIZE_MAX, "%.*s",
              STR_ARG(why));
    arena_free(a);
    f->meets = NULL;
    fake_run(f, -1);
    check_complete(f);
    fake_free(f);
}

/* What a person asked for is off the Skyhook at once, while the rollout goes on: a crash later on
 * does not repeat it. */
static void act_is_taken_once(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    f->job_ms = 60000;
    fake_run(f, 4 * 60000 + 30000);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/acts\":"
              "\"[{\\\"act\\\":\\\"reset\\\"}]\"}}}");
    fake_run(f, 1000);
    assert_null(fake_get(f, FAKE_SKYHOOKS, "sk", "/metadata/annotations/skyhook.nvidia.com~1acts"));
    fake_run(f, 5 * 60000);
    size_t jobs = count_objects(f, FAKE_JOBS);
    fake_start(f);
    fake_run(f, 1000);
    assert_int_equal(count_objects(f, FAKE_JOBS), jobs);
    fake_run(f, -1);
    check_complete(f);
    fake_free(f);
}

/* ---- drains ---- */

static size_t evictions_asked;

/* The cordon that is put back meets somebody's write; no eviction goes before it. */
static fake_fault watch_evictions(fake *f, const kube_write *w)
{
    static bool met;
    bool cordoned = yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable"));
    if (w->verb == WRITE_EVICT && str_eq(w->name, STR("app-00"))) {
        check_msg(cordoned, "an eviction without a cordon\n%s", f->log.ptr);
        evictions_asked++;
    }
    bool again = str_eq(w->name, STR("n00")) && !cordoned && evictions_asked > 0 && !met;
    met |= again;
    return again ? FAULT_CONFLICT : FAULT_NONE;
}

static bool protects_at_first(fake *f, const char *pod_name)
{
    (void)pod_name;
    return f->now_ms < FAKE_START_MS + 60000;
}

/* ---- what Kubernetes does after a cordon ---- */

static void shows_cordon_later(fake *f, const kube_write *w)
{
    watch_limits(f, w);
    if (str_eq(w->collection, STR(FAKE_NODES)) && w->subresource.len == 0) {
        char name[FAKE_NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", STR_ARG(w->name));
        fake_find(f, FAKE_NODES, name)->ends_ms = f->now_ms + 1;
    }
}

/* It is not run into: a conflict would be a write for nothing. */
static void cordon_is_followed_by_a_taint(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    f->watch = shows_cordon_later;
    f->sides[0].delay_ms = 100;
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    assert_int_equal(f->conflicts, 0);
    fake_free(f);
}

static void uncordoned_in_mid_drain(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    add_pods(f);
    f->refuses = protects_at_first;
    f->meets = watch_evictions;
    evictions_asked = 0;
    fake_run(f, 12000);
    assert_true(evictions_asked > 0);
    fake_edit(f, FAKE_NODES, "n00", "{\"spec\":{\"unschedulable\":null}}");
    fake_run(f, 12000);
    assert_true(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
    arena *a = arena_new(0);
    check_text(sentence_of(f, a, "n00"),
               "n00 is being changed by sk: the drain waits for default/app-00, which the budget "
               "keep-it protects");
    arena_free(a);
    fake_run(f, -1);
    check_complete(f);
    fake_free(f);
}

/* A node that is silent is not given more time by each operator that begins anew. */
static void silence_outlives_restarts(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    f->job_ms = 5 * HOUR_MS;
    fake_run(f, 2000);
    fake_edit(f, FAKE_NODES, "n00",
              "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\","
              "\"lastTransitionTime\":\"2025-11-16T06:00:02Z\"}]}}");
    for (int i = 0; i < 3; i++) {
        check_text(str_of(status_of(f, "n00")), "in_progress");
        fake_run(f, HOUR_MS / 2 - 60000);
        fake_start(f);
        fake_run(f, 1000);
    }
    check_text(str_of(status_of(f, "n00")), "erroring");
    fake_free(f);
}

/* ---- writes that are not taken ---- */

static str refused_collection;
static fake_fault refused_how;

static fake_fault refuse_collection(fake *f, const kube_write *w)
{
    (void)f;
    return str_eq(w->collection, refused_collection) && w->subresource.len == 0 ? refused_how
                                                                                : FAULT_NONE;
}

/* What is refused is tried again now and then, is said, and works once it is allowed; nobody is
 * blamed for rights that are missing. */
static void refused_without_haste(void **state)
{
    (void)state;
    static const struct {
        str collection;
        fake_fault how;
        const char *why; /* NULL: there is nobody in flight who could say it */
    } cases[] = {
        {STR(FAKE_MAPS), FAULT_FORBIDDEN, "a ConfigMap of its packages cannot be written"},
        {STR(FAKE_MAPS), FAULT_INVALID, "a ConfigMap of its packages cannot be written"},
        {STR(FAKE_JOBS), FAULT_FORBIDDEN, "its Job cannot be created: refused (status 403)"},
        {STR(FAKE_SKYHOOKS), FAULT_FORBIDDEN, NULL},
        {STR(FAKE_SKYHOOKS), FAULT_INVALID, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fake *f = begin(skyhook_files);
        refused_collection = cases[i].collection;
        refused_how = cases[i].how;
        f->meets = refuse_collection;
        fake_run(f, 30 * 60000);
        check_msg(f->sent < 100, "%zu: %llu writes in half an hour", i,
                  (unsigned long long)f->sent);
        arena *a = arena_new(0);
        str why = sentence_of(f, a, "n00");
        check_msg(!cases[i].why || str_find(why, str_of(cases[i].why)) != SIZE_MAX, "%zu: %.*s", i,
                  STR_ARG(why));
        arena_free(a);
        assert_string_not_equal(status_of(f, "n00"), "erroring");
        f->meets = NULL;
        fake_run(f, -1);
        check_complete(f);
        check_text(str_of(fake_text(f, FAKE_NODES, "n00",
                                    "/metadata/annotations/skyhook.nvidia.com~1nodeState_sk")),
                   "{\"tune|1.0.0\":{\"name\":\"tune\",\"version\":\"1.0.0\",\"image\":"
                   "\"example.test/tune\",\"stage\":\"config\",\"state\":\"complete\"}}");
        fake_free(f);
    }
}

static const char *phantoms_in;
static size_t phantoms_met;

static fake_fault meet_phantom(fake *f, const kube_write *w)
{
    (void)f;
    bool here = str_eq(w->collection, str_of(phantoms_in)) && str_eq(w->subresource, STR("status"));
    return here && phantoms_met++ == 0 ? FAULT_PHANTOM : FAULT_NONE;
}

/* A conflict that no watch tells of: what there is is read once, and written again. */
static void conflict_with_nobody(void **state)
{
    (void)state;
    static const char *const collections[] = {FAKE_SKYHOOKS, FAKE_NODES};
    for (size_t i = 0; i < COUNT_OF(collections); i++) {
        fake *f = begin(skyhook_plain);
        phantoms_in = collections[i];
        phantoms_met = 0;
        fake_run(f, 100); /* the finalizer is read, too */
        size_t read = count_lines(f, "GET ");
        f->meets = meet_phantom;
        fake_run(f, -1);
        assert_true(phantoms_met > 1);
        check_complete(f);
        assert_int_equal(count_lines(f, "GET " FAKE_SKYHOOKS) + count_lines(f, "GET " FAKE_NODES),
                         read + 1);
        fake_free(f);
    }
}

/* A Job that the server would take from nobody is a failed attempt. */
static void refused_job_fails_its_stage(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    refused_collection = STR(FAKE_JOBS);
    refused_how = FAULT_INVALID;
    f->meets = refuse_collection;
    fake_run(f, 5000);
    check_text(str_of(status_of(f, "n00")), "erroring");
    f->meets = NULL;
    fake_run(f, -1);
    check_complete(f);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_that_is_set_back),
        cmocka_unit_test(replaced_node_runs_anew),
        cmocka_unit_test(replaced_node_is_not_blamed),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(edited_while_nobody_looked),
        cmocka_unit_test(record_is_put_back),
        cmocka_unit_test(jobs_of_a_lost_record_do_not_count),
        cmocka_unit_test(nothing_beside_a_lost_attempt),
        cmocka_unit_test(packages_beside_each_other),
        cmocka_unit_test(claim_that_ends_before_it_is_durable),
        cmocka_unit_test(refused_node_stops_no_other),
        cmocka_unit_test(who_forbids),
        cmocka_unit_test(node_that_a_webhook_guards_stops_no_other),
        cmocka_unit_test(act_is_taken_once),
        cmocka_unit_test(cordon_is_followed_by_a_taint),
        cmocka_unit_test(uncordoned_in_mid_drain),
        cmocka_unit_test(job_that_is_gone_before_its_answer),
        cmocka_unit_test(older_job_that_is_gone_is_not_the_new_one),
        cmocka_unit_test(silence_outlives_restarts),
        cmocka_unit_test(refused_without_haste),
        cmocka_unit_test(conflict_with_nobody),
        cmocka_unit_test(refused_job_fails_its_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
