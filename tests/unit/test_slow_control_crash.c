/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane is killed before and after each of its writes, each write is refused once, the
 * disk is full, memory runs out: what comes of a day is the same as if nothing had happened. */
#include "support/plane_story.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/drover-crash-XXXXXX");
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

/* ---- the store's writes, each counted ---- */

#define KILLED 99

/* X(kind, text) */
#define TROUBLES(X)                                                                                \
    X(REFUSE, "the write fails")                                                                   \
    X(KILL_BEFORE, "the process is killed before it") X(KILL_AFTER, "and after it")
typedef enum trouble_kind {
#define X(kind, text) TROUBLE_##kind,
    TROUBLES(X)
#undef X
} trouble_kind;

static struct trouble {
    trouble_kind kind;
    uint64_t at;    /* the n-th write from now on; 0: none */
    uint64_t seen;  /* writes so far */
    uint64_t total; /* troubles so far */
    bool hit;       /* it is the present write */
    bool snapshots_only;
    int snapshots; /* each third one gets by, else there would never be one */
} trouble;

/* Before a write: whether it is to be refused. May not return. */
static bool trouble_now(bool of_snapshot)
{
    trouble.hit = false;
    if (trouble.at == 0 || (trouble.snapshots_only && !of_snapshot) || ++trouble.seen != trouble.at)
        return false;
    if (trouble.kind == TROUBLE_KILL_BEFORE)
        _exit(KILLED);
    trouble.hit = trouble.kind == TROUBLE_KILL_AFTER;
    if (trouble.hit)
        return false;
    trouble.total++;
    /* The next attempt gets one write further. */
    trouble.at++;
    trouble.seen = 0;
    return true;
}

/* After it. */
static bool done(bool good)
{
    if (trouble.hit)
        _exit(KILLED);
    return good;
}

#define WRAP(call, parameters, arguments)                                                          \
    bool __real_##call parameters;                                                                 \
    bool __wrap_##call parameters;                                                                 \
    bool __wrap_##call parameters                                                                  \
    {                                                                                              \
        return trouble_now(false) ? err_set(error, "trouble") : done(__real_##call arguments);     \
    }

WRAP(store_begin, (store * s, err *error), (s, error))
WRAP(store_append, (store * s, const journal_entry *e, int64_t *ret, err *error),
     (s, e, ret, error))
WRAP(store_put_job, (store * s, const stored_job *j, err *error), (s, j, error))
WRAP(store_put_document,
     (store * s, stored_document *d, int64_t expected, bool *ret_conflict, err *error),
     (s, d, expected, ret_conflict, error))
WRAP(store_delete_document,
     (store * s, document_key key, int64_t expected, bool *ret_conflict, err *error),
     (s, key, expected, ret_conflict, error))

WRAP(store_put_token, (store * s, const stored_token *t, err *error), (s, t, error))
WRAP(store_revoke_token, (store * s, str name, int64_t now_ms, bool *ret_found, err *error),
     (s, name, now_ms, ret_found, error))

static bool snapshot_trouble(void)
{
    trouble.hit = false;
    return (trouble.snapshots_only || trouble.snapshots % 3 != 2) && trouble_now(true);
}

bool __real_store_put_snapshot_part(store *s, snapshot_part part, err *error);
bool __wrap_store_put_snapshot_part(store *s, snapshot_part part, err *error);
bool __wrap_store_put_snapshot_part(store *s, snapshot_part part, err *error)
{
    trouble.snapshots += part.number == 0;
    return snapshot_trouble() ? err_set(error, "trouble")
                              : done(__real_store_put_snapshot_part(s, part, error));
}

bool __real_store_use_snapshot(store *s, int64_t sequence, int64_t parts, err *error);
bool __wrap_store_use_snapshot(store *s, int64_t sequence, int64_t parts, err *error);
bool __wrap_store_use_snapshot(store *s, int64_t sequence, int64_t parts, err *error)
{
    return snapshot_trouble() ? err_set(error, "trouble")
                              : done(__real_store_use_snapshot(s, sequence, parts, error));
}

bool __real_store_drop_snapshot_part(store *s, bool *ret_more, err *error);
bool __wrap_store_drop_snapshot_part(store *s, bool *ret_more, err *error);
bool __wrap_store_drop_snapshot_part(store *s, bool *ret_more, err *error)
{
    return snapshot_trouble() ? err_set(error, "trouble")
                              : done(__real_store_drop_snapshot_part(s, ret_more, error));
}

bool __real_store_commit(store *s, err *error);
bool __wrap_store_commit(store *s, err *error);
bool __wrap_store_commit(store *s, err *error)
{
    if (trouble_now(false)) {
        store_rollback(s); /* as the store does */
        return err_set(error, "trouble");
    }
    bool good = done(__real_store_commit(s, error));
    if (good && trouble.at != 0 && trouble.kind == TROUBLE_REFUSE) {
        trouble.at = 1;
        trouble.seen = 0;
    }
    return good;
}

/* ---- what must hold in every journal ---- */

typedef struct audit {
    char slots[64][32]; /* resources that hold one */
    char jobs[64][96];  /* release targets with a job that has not ended */
    int64_t step;
} audit;

static size_t find_row(char *rows, size_t size, str name)
{
    for (size_t i = 0; i < 64; i++)
        if (str_eq(str_of(rows + i * size), name))
            return i;
    return SIZE_MAX;
}

static size_t count_rows(const char *rows, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < 64; i++)
        n += rows[i * size] != 0;
    return n;
}

static void put_row(char *rows, size_t size, str name, bool in)
{
    size_t at = find_row(rows, size, in ? STR_EMPTY : name);
    check_msg(at != SIZE_MAX, "%.*s is not there", STR_ARG(name));
    snprintf(rows + at * size, size, "%.*s", in ? (int)name.len : 0, name.ptr);
}

static str text_of(yyjson_val *o, const char *key)
{
    yyjson_val *v = yyjson_obj_get(o, key);
    return v ? (str){yyjson_get_str(v), yyjson_get_len(v)} : STR_EMPTY;
}

static bool audit_entry(void *context, const journal_entry *e)
{
    audit *a = context;
    check_msg(e->step >= a->step, "step %lld follows %lld", (long long)e->step, (long long)a->step);
    a->step = e->step;
    if (!str_eq(e->kind, STR("decision")))
        return true;
    yyjson_doc *doc = yyjson_read(e->json.ptr, e->json.len, 0);
    yyjson_val *o = yyjson_doc_get_root(doc);
    str what = text_of(o, "decision"), target = text_of(o, "target");
    char key[96];
    snprintf(key, sizeof key, "%.*s/%.*s/%.*s", STR_ARG(text_of(o, "change")),
             STR_ARG(text_of(o, "environment")), STR_ARG(target));
    if (str_eq(what, STR("slot")))
        put_row(a->slots[0], sizeof a->slots[0], target,
                yyjson_get_bool(yyjson_obj_get(o, "taken")));
    if (str_eq(what, STR("job"))) {
        check_msg(find_row(a->jobs[0], sizeof a->jobs[0], str_of(key)) == SIZE_MAX,
                  "%s: two jobs at once", key);
        put_row(a->jobs[0], sizeof a->jobs[0], str_of(key), true);
    }
    if (str_eq(what, STR("release")) &&
        find_row(a->jobs[0], sizeof a->jobs[0], str_of(key)) != SIZE_MAX)
        put_row(a->jobs[0], sizeof a->jobs[0], str_of(key), false);
    check_msg(count_rows(a->slots[0], sizeof a->slots[0]) <= STORY_SLOTS,
              "entry %lld: too many slots", (long long)e->sequence);
    yyjson_doc_free(doc);
    return true;
}

static void check_journal(const plane *p)
{
    audit a = {0};
    must(store_journal(p->store, 0, audit_entry, &a, problem_));
}

/* ---- the undisturbed day ---- */

static char undisturbed_folder[64];
static buf undisturbed;

static int live_a_day(void **state)
{
    (void)state;
    make_folder(state);
    snprintf(undisturbed_folder, sizeof undisturbed_folder, "%s", folder);
    plane p = story_plane(folder, plane_share());
    plane_open(&p);
    plane_run(&p, 0);
    undisturbed = plane_state(&p);
    check_journal(&p);
    plane_close(&p);
    return 0;
}

static int forget_the_day(void **state)
{
    snprintf(folder, sizeof folder, "%s", undisturbed_folder);
    buf_done(&undisturbed);
    return remove_folder(state);
}

static void check_same(const plane *p)
{
    buf now = plane_state(p);
    str left = buf_str(&now), right = buf_str(&undisturbed);
    while (left.len > 0 || right.len > 0) {
        str one = str_cut(&left, '\n'), two = str_cut(&right, '\n');
        check_str(one, two);
    }
    buf_done(&now);
    check_journal(p);
}

/* ---- kill -9 at every write ---- */

/* Each write in the release build; some of them under the sanitizers, where a life takes ten times
 * as long. */
#if defined(__SANITIZE_ADDRESS__)
#define WRITES_A_KILL 7
#define KILLS_LEAST 100
#else
#define WRITES_A_KILL 1
#define KILLS_LEAST 500
#endif

/* One life of a process. True if it came to the end of the day. */
static bool live(plane p, struct trouble wanted)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        trouble = (struct trouble){.snapshots = wanted.snapshots};
        plane_open(&p);
        /* One write further than the life before, until something is committed. */
        int64_t sequence = store_sequence(p.store);
        p.shared->at = wanted.at > 0                  ? wanted.at
                       : sequence > p.shared->reached ? 1
                                                      : p.shared->at + WRITES_A_KILL;
        p.shared->reached = sequence;
        trouble = wanted;
        trouble.at = p.shared->at;
        plane_run(&p, 0);
        trouble.at = 0;
        plane_close(&p);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    check_msg(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED),
              "status %x", (unsigned)status);
    return WEXITSTATUS(status) == 0;
}

static void check_day(plane_shared *shared)
{
    trouble = (struct trouble){0};
    plane p = story_plane(folder, shared);
    plane_open(&p);
    check_same(&p);
    plane_close(&p);
}

/* Each process gets one write further than the last one, until something is committed. */
static void kill_at_every_write(trouble_kind kind, bool share)
{
    plane_shared *shared = plane_share();
    plane p = story_plane(folder, shared);
    p.share = share;
    int kills = 0;
    while (!live(p, (struct trouble){.kind = kind, .snapshots = kills}))
        kills++;
    check_day(shared);
    print_message("# %d kills, %lld entries\n", kills, (long long)shared->reached);
    check_msg(kills > KILLS_LEAST, "only %d kills", kills);
}

static void the_day_has_a_rule_of_every_kind(void **state)
{
    (void)state;
    static const char *const kinds[] = {
#define X(kind, json, type) "- " json ":",
        RULE_KINDS(X)
#undef X
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        check_msg(str_find(STR(STORY_POLICIES), str_of(kinds[i])) != SIZE_MAX, "%s", kinds[i]);
}

static void killed_before_every_write_the_day_ends_the_same(void **state)
{
    (void)state;
    kill_at_every_write(TROUBLE_KILL_BEFORE, false);
}

static void killed_after_every_write_the_day_ends_the_same(void **state)
{
    (void)state;
    kill_at_every_write(TROUBLE_KILL_AFTER, false);
}

static void killed_before_every_write_of_shared_commits(void **state)
{
    (void)state;
    kill_at_every_write(TROUBLE_KILL_BEFORE, true);
}

static void killed_after_every_write_of_shared_commits(void **state)
{
    (void)state;
    kill_at_every_write(TROUBLE_KILL_AFTER, true);
}

/* Many days, each with one kill at the n-th write of a snapshot: each part, the last step, and what
 * is taken out after it. */
static void kill_in_snapshots(bool beside)
{
    uint64_t kills = 0;
    for (bool over = false; !over; kills += WRITES_A_KILL) {
        remove_folder(NULL);
        assert_int_equal(mkdir(folder, 0700), 0);
        plane_shared *shared = plane_share();
        plane p = story_plane(folder, shared);
        p.snapshot_entries = 150;
        p.snapshots_beside = beside;
        over = live(
            p, (struct trouble){.kind = kills % 2 == 0 ? TROUBLE_KILL_BEFORE : TROUBLE_KILL_AFTER,
                                .at = 1 + kills / 2,
                                .snapshots_only = true});
        if (!over)
            assert_true(live(p, (struct trouble){.kind = TROUBLE_KILL_BEFORE, .at = UINT64_MAX}));
        check_day(shared);
        munmap(shared, sizeof *shared);
    }
    print_message("# %llu kills\n", (unsigned long long)kills);
    check_msg(kills > 20, "only %llu kills", (unsigned long long)kills);
}

static void killed_at_every_write_of_a_snapshot(void **state)
{
    (void)state;
    kill_in_snapshots(false);
}

static void killed_at_every_write_of_a_snapshot_beside_the_work(void **state)
{
    (void)state;
    kill_in_snapshots(true);
}

/* ---- a store that refuses ---- */

static void every_write_refused_once_the_day_ends_the_same(void **state)
{
    (void)state;
    plane p = story_plane(folder, plane_share());
    trouble = (struct trouble){0};
    plane_open(&p);
    trouble.at = 1;
    plane_run(&p, 100000);
    trouble.at = 0;
    print_message("# %llu refusals\n", (unsigned long long)trouble.total);
    check_msg(trouble.total > 500, "only %llu refusals", (unsigned long long)trouble.total);
    check_same(&p);
    plane_close(&p);
}

static buf engine_text(const plane *p)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    assert_non_null(control_engine(p->control));
    assert_true(engine_save(control_engine(p->control), &out));
    return out;
}

static void a_full_disk_loses_nothing_and_is_got_over(void **state)
{
    (void)state;
    plane p = story_plane(folder, plane_share());
    trouble = (struct trouble){0};
    signal(SIGXFSZ, SIG_IGN);
    plane_open(&p);
    err error = {""};
    for (int i = 0; i < 60; i++)
        assert_true(plane_step(&p, &error));
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    struct rlimit small = {1024, before.rlim_max};
    buf was = engine_text(&p);
    int64_t sequence = store_sequence(p.store);
    int refused = 0;
    for (int i = 0; i < 20; i++) {
        setrlimit(RLIMIT_FSIZE, &small);
        plane_step(&p, &error);
        setrlimit(RLIMIT_FSIZE, &before);
        refused += error.text[0] != 0;
    }
    buf is = engine_text(&p);
    check_str(buf_str(&is), buf_str(&was));
    assert_int_equal(store_sequence(p.store), sequence);
    assert_true(refused > 0);
    plane_run(&p, 0);
    check_same(&p);
    buf_done(&is);
    buf_done(&was);
    plane_close(&p);
}

/* ---- memory ---- */

/* Something new each time. */
static bool do_something(plane *p, int what, uint64_t nth, err *error)
{
    char text[4000], name[32];
    snprintf(name, sizeof name, "%d-%llu", what, (unsigned long long)nth);
    snprintf(text, sizeof text, STORY_HOST("n1", "r%s") STORY_VERSION("agent", "v%s"), name, name,
             name);
    fact_act freeze = {.act = ACT_FREEZE, .name = str_of(name), .who = STR("me")};
    return what == 0 ? plane_apply(p, "me", text, error)
                     : control_act(p->control, &freeze, p->shared->now_ms, error);
}

static void without_memory_nothing_happens_and_it_goes_on(void **state)
{
    (void)state;
    plane p = story_plane(folder, plane_share());
    trouble = (struct trouble){0};
    plane_open(&p);
    err error = {""};
    assert_true(plane_apply(&p, "me", STORY_FLEET STORY_POLICIES, &error));
    uint64_t refused = 0;
    for (int what = 0; what < 2; what++) {
        bool failed = true;
        for (uint64_t nth = 1; failed; nth++) {
            int64_t sequence = store_sequence(p.store);
            mem_fail_at(nth);
            bool good = do_something(&p, what, nth, &error);
            failed = mem_failed();
            mem_fail_at(0);
            /* One that failed may still have been taken: when only the memory of it is lost. */
            assert_true(good || failed);
            assert_true(good == (store_sequence(p.store) > sequence));
            refused += !good;
            must(control_repair(p.control, problem_));
            check_msg(nth < 100000, "no end of allocations");
        }
    }
    print_message("# %llu refusals\n", (unsigned long long)refused);
    buf before = engine_text(&p);
    plane_close(&p);
    plane_open(&p);
    buf after = engine_text(&p);
    check_str(buf_str(&after), buf_str(&before));
    buf_done(&before);
    buf_done(&after);
    plane_close(&p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(the_day_has_a_rule_of_every_kind),
        TEST(killed_before_every_write_the_day_ends_the_same),
        TEST(killed_after_every_write_the_day_ends_the_same),
        TEST(killed_before_every_write_of_shared_commits),
        TEST(killed_after_every_write_of_shared_commits),
        TEST(killed_at_every_write_of_a_snapshot),
        TEST(killed_at_every_write_of_a_snapshot_beside_the_work),
        TEST(every_write_refused_once_the_day_ends_the_same),
        TEST(a_full_disk_loses_nothing_and_is_got_over),
        TEST(without_memory_nothing_happens_and_it_goes_on),
    };
    return cmocka_run_group_tests(tests, live_a_day, forget_the_day);
}
