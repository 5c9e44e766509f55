/* SPDX-License-Identifier: Apache-2.0 */
/* Turns that share a commit: nobody hears of one before it is durable, one that is refused leaves
 * the others alone, and a commit that fails takes all of them back. */
#include "support/plane_story.h"

#include "store/store_internal.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/drover-commit-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char line[256];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

#define must(call)                                                                                 \
    do {                                                                                           \
        err error_ = {""};                                                                         \
        err *problem_ = &error_;                                                                   \
        check_msg(call, "%s", error_.text);                                                        \
    } while (0)

/* ---- a store that fails ---- */

static struct trouble {
    bool commit;    /* the next one fails */
    int64_t append; /* the n-th from now on fails, and SQLite gives up the whole transaction */
} trouble;

bool __real_store_commit(store *s, err *error);
bool __wrap_store_commit(store *s, err *error);
bool __wrap_store_commit(store *s, err *error)
{
    if (!trouble.commit)
        return __real_store_commit(s, error);
    trouble.commit = false;
    store_rollback(s); /* as the store does */
    return err_set(error, "writing a decision: the disk is full");
}

bool __real_store_append(store *s, const journal_entry *e, int64_t *ret, err *error);
bool __wrap_store_append(store *s, const journal_entry *e, int64_t *ret, err *error);
bool __wrap_store_append(store *s, const journal_entry *e, int64_t *ret, err *error)
{
    if (trouble.append == 0 || --trouble.append > 0)
        return __real_store_append(s, e, ret, error);
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return err_set(error, "writing the journal: the disk is full");
}

/* ---- a control plane ---- */

typedef struct ears {
    int64_t entries;
    int64_t jobs;
    int64_t last;
} ears;

static void hear_job(void *context, const job_order *order)
{
    ((ears *)context)->jobs += !order->known;
}

static void hear_entry(void *context, const journal_entry *e)
{
    ears *heard = context;
    assert_int_equal(e->sequence, heard->last + 1);
    heard->last = e->sequence;
    heard->entries++;
}

#define NOW INT64_C(1767225600000)

static plane open_plane(ears *heard)
{
    err error;
    *heard = (ears){0};
    trouble = (struct trouble){0};
    plane p = {.folder = folder, .shared = plane_share()};
    p.shared->now_ms = NOW;
    p.store = store_open(str_of(folder), &error);
    check_msg(p.store, "%s", error.text);
    heard->last = store_sequence(p.store);
    p.control = control_open(
        p.store, &(control_settings){.share_commits = true},
        &(control_listener){.context = heard, .job = hear_job, .journal = hear_entry}, NOW, &error);
    check_msg(p.control, "%s", error.text);
    return p;
}

static void add(plane *p, const char *text)
{
    must(plane_apply(p, "me", text, problem_));
}

static const char fleet[] = STORY_HOST("n1", "wide") STORY_API
    "kind: Environment\nmetadata: {name: e}\nspec: {resourceSelector: 'true'}\n" STORY_DEPLOYMENT(
        "app", "x", "manual: {}");

static bool there(const plane *p, str name)
{
    return control_object(p->control, KIND_RESOURCE, name) != NULL;
}

static void nobody_hears_before_the_commit(void **state)
{
    (void)state;
    ears heard;
    plane p = open_plane(&heard);
    assert_false(control_unsettled(p.control));
    add(&p, fleet);
    add(&p, STORY_VERSION("app", "1"));
    add(&p, STORY_HOST("n2", "wide"));
    assert_true(control_unsettled(p.control));
    assert_int_equal(heard.entries, 0);
    assert_int_equal(heard.jobs, 0);
    assert_true(there(&p, STR("n2"))); /* the calls that follow see it */
    must(control_settle(p.control, problem_));
    assert_false(control_unsettled(p.control));
    assert_int_equal(heard.entries, store_sequence(p.store));
    assert_int_equal(heard.jobs, 2);
    plane_close(&p);
}

/* What is only in an open transaction is not there for another process. */
static void what_is_not_settled_is_not_durable(void **state)
{
    (void)state;
    ears heard;
    pid_t child = fork();
    if (child == 0) {
        plane p = open_plane(&heard);
        add(&p, fleet);
        must(control_settle(p.control, problem_));
        add(&p, STORY_HOST("n2", "wide"));
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    plane p = open_plane(&heard);
    assert_true(there(&p, STR("n1")));
    assert_false(there(&p, STR("n2")));
    plane_close(&p);
}

static void one_that_is_refused_leaves_the_others(void **state)
{
    (void)state;
    ears heard;
    err error = {""};
    delete_answer answer;
    plane p = open_plane(&heard);
    add(&p, fleet);
    assert_false(control_delete(
        p.control, &(delete_request){.kind = STR("Resource"), .name = STR("n1"), .expected = 77},
        NOW, &answer, &error));
    assert_true(answer.conflict);
    add(&p, STORY_HOST("n2", "wide"));
    must(control_settle(p.control, problem_));
    assert_true(there(&p, STR("n1")));
    assert_true(there(&p, STR("n2")));
    assert_int_equal(heard.entries, store_sequence(p.store));
    buf before = plane_state(&p);
    plane_close(&p);
    p = open_plane(&heard);
    buf after = plane_state(&p);
    check_str(buf_str(&after), buf_str(&before));
    buf_done(&before);
    buf_done(&after);
    plane_close(&p);
}

static void a_commit_that_fails_takes_all_of_them_back(void **state)
{
    (void)state;
    ears heard;
    err error = {""};
    plane p = open_plane(&heard);
    add(&p, fleet);
    must(control_settle(p.control, problem_));
    buf before = plane_state(&p);
    int64_t entries = heard.entries;
    add(&p, STORY_VERSION("app", "1"));
    add(&p, STORY_HOST("n2", "wide"));
    trouble.commit = true;
    assert_false(control_settle(p.control, &error));
    check_err_has(error, "the disk is full");
    assert_false(control_unsettled(p.control));
    assert_int_equal(heard.entries, entries);
    assert_int_equal(heard.jobs, 0);
    assert_false(there(&p, STR("n2")));
    buf after = plane_state(&p);
    check_str(buf_str(&after), buf_str(&before));
    buf_done(&before);
    buf_done(&after);
    add(&p, STORY_VERSION("app", "1"));
    must(control_settle(p.control, problem_));
    assert_int_equal(heard.jobs, 1);
    plane_close(&p);
}

/* A full disk in the middle: SQLite gives up what was written before, too. */
static void all_that_share_a_lost_commit_are_refused(void **state)
{
    (void)state;
    ears heard;
    err error = {""};
    plane p = open_plane(&heard);
    add(&p, fleet);
    must(control_settle(p.control, problem_));
    add(&p, STORY_HOST("n2", "wide"));
    trouble.append = 1;
    assert_false(plane_apply(&p, "me", STORY_HOST("n3", "wide"), &error));
    check_err_has(error, "the disk is full");
    assert_false(plane_apply(&p, "me", STORY_HOST("n4", "wide"), &error));
    check_err_has(error, "the disk is full");
    assert_true(control_unsettled(p.control));
    assert_false(control_settle(p.control, &error));
    check_err_has(error, "the disk is full");
    assert_true(there(&p, STR("n1")));
    assert_false(there(&p, STR("n2")));
    assert_false(there(&p, STR("n3")));
    add(&p, STORY_HOST("n4", "wide"));
    must(control_settle(p.control, problem_));
    assert_true(there(&p, STR("n4")));
    assert_int_equal(heard.entries, store_sequence(p.store));
    plane_close(&p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(nobody_hears_before_the_commit),
        TEST(what_is_not_settled_is_not_durable),
        TEST(one_that_is_refused_leaves_the_others),
        TEST(a_commit_that_fails_takes_all_of_them_back),
        TEST(all_that_share_a_lost_commit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
