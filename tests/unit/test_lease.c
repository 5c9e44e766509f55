/* SPDX-License-Identifier: Apache-2.0 */
/* Who leads: stories of one process and a server that is made up, and then several processes with
 * clocks of their own that are frozen, cut off and thawed. */
#include "support/check.h"

#include "kube/lease.h"

#define WALL ((moment){1000000000, 123456789})

typedef struct talk {
    lease *lease;
    int64_t now_ms;
} talk;

static void begin(talk *t)
{
    lease_options options = {.collection = STR("/leases"), .name = STR("l"), .identity = STR("me")};
    *t = (talk){lease_new(&options), 50000};
    assert_non_null(t->lease);
}

/* The next request, after waiting as long as it says. */
static kube_write sent(talk *t, write_verb verb)
{
    lease_ask ask = {0};
    lease_ask_kind kind = lease_next(t->lease, t->now_ms, WALL, &ask);
    if (kind == LEASE_ASK_WAIT) {
        t->now_ms = ask.at_ms;
        kind = lease_next(t->lease, t->now_ms, WALL, &ask);
    }
    assert_int_equal(kind, LEASE_ASK_SEND);
    assert_int_equal(ask.write.verb, verb);
    err error = {0};
    check_msg(write_check(&ask.write, &error), "%s", error.text);
    return ask.write;
}

static int64_t waits_ms(talk *t)
{
    lease_ask ask = {0};
    assert_int_equal(lease_next(t->lease, t->now_ms, WALL, &ask), LEASE_ASK_WAIT);
    return ask.at_ms - t->now_ms;
}

static void answer(talk *t, write_outcome_kind kind, const char *object)
{
    yyjson_doc *parsed = object ? yyjson_read(object, strlen(object), 0) : NULL;
    write_outcome outcome = {.kind = kind};
    lease_answer(t->lease, &outcome, yyjson_doc_get_root(parsed), t->now_ms);
    yyjson_doc_free(parsed);
}

static bool leads(const talk *t)
{
    return lease_leads(t->lease, t->now_ms);
}

#define LEASE(version, holder)                                                                     \
    "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"spec\":{\"holderIdentity\":\"" holder   \
    "\",\"leaseDurationSeconds\":15,\"leaseTransitions\":3}}"

static void test_first_of_all(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    sent(&t, WRITE_READ);
    answer(&t, WRITE_GONE, NULL);
    kube_write w = sent(&t, WRITE_CREATE);
    check_text(w.body, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                       "\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"me\","
                       "\"leaseDurationSeconds\":15,"
                       "\"acquireTime\":\"2001-09-09T01:46:40.123456Z\",\"leaseTransitions\":0,"
                       "\"renewTime\":\"2001-09-09T01:46:40.123456Z\"}}");
    assert_false(leads(&t));
    int64_t sent_ms = t.now_ms;
    t.now_ms += 300; /* the time of the answer does not count */
    answer(&t, WRITE_DONE, LEASE("7", "me"));
    assert_true(leads(&t));
    assert_int_equal(lease_until(t.lease), sent_ms + LEASE_DEADLINE_MS);
    /* It renews, without reading, the version that it knows. */
    w = sent(&t, WRITE_MERGE);
    assert_int_equal(t.now_ms, sent_ms + LEASE_RETRY_MS);
    check_text(w.version, "7");
    check_text(w.body, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                       "\"spec\":{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,"
                       "\"renewTime\":\"2001-09-09T01:46:40.123456Z\"}}");
    answer(&t, WRITE_DONE, LEASE("8", "me"));
    assert_int_equal(lease_until(t.lease), t.now_ms + LEASE_DEADLINE_MS);
    lease_free(t.lease);
}

/* The times in it do not count, only how long it has stayed the same here. */
static void test_another_has_it(void **state)
{
    (void)state;
    talk t;
    begin(&t);
    int64_t seen_ms = t.now_ms;
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE, LEASE("7", "other"));
    check_text(lease_holder(t.lease), "other");
    for (int i = 0; i < 4; i++) {
        sent(&t, WRITE_READ);
        answer(&t, WRITE_DONE, LEASE("7", "other"));
    }
    sent(&t, WRITE_READ); /* it renewed */
    seen_ms = t.now_ms;
    answer(&t, WRITE_DONE, LEASE("9", "other"));
    for (int i = 0; i < 7; i++) {
        sent(&t, WRITE_READ);
        answer(&t, WRITE_DONE, LEASE("9", "other"));
    }
    kube_write w = sent(&t, WRITE_MERGE);
    assert_int_equal(t.now_ms, seen_ms + LEASE_DURATION_MS);
    check_text(w.version, "9");
    assert_true(str_find(w.body, STR("\"leaseTransitions\":4")) != SIZE_MAX);
    /* Another was faster. */
    answer(&t, WRITE_CONFLICT, NULL);
    assert_false(leads(&t));
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE, LEASE("10", "third"));
    assert_int_equal(waits_ms(&t), LEASE_RETRY_MS);
    lease_free(t.lease);
}

static void lead(talk *t)
{
    begin(t);
    sent(t, WRITE_READ);
    answer(t, WRITE_DONE, LEASE("7", ""));
    sent(t, WRITE_MERGE);
    answer(t, WRITE_DONE, LEASE("8", "me"));
    assert_true(leads(t));
}

static void test_server_is_away(void **state)
{
    (void)state;
    talk t;
    lead(&t);
    int64_t until = lease_until(t.lease);
    sent(&t, WRITE_MERGE);
    answer(&t, WRITE_LATER, NULL);
    assert_true(leads(&t));
    assert_true(lease_problem(t.lease).len > 0);
    sent(&t, WRITE_READ);
    t.now_ms += LEASE_DEADLINE_MS / 2;
    lease_ask ask = {0};
    assert_int_equal(lease_next(t.lease, t.now_ms, WALL, &ask), LEASE_ASK_ABORT);
    answer(&t, WRITE_AMBIGUOUS, NULL);
    sent(&t, WRITE_READ);
    /* It is told when the time has come, though nothing else is to be done then. */
    assert_true(leads(&t));
    assert_int_equal(waits_ms(&t), until - t.now_ms);
    t.now_ms = until;
    assert_false(leads(&t));
    answer(&t, WRITE_DONE, LEASE("8", "me"));
    sent(&t, WRITE_MERGE);
    answer(&t, WRITE_DONE, LEASE("9", "me"));
    assert_true(leads(&t));
    assert_int_equal(lease_problem(t.lease).len, 0);
    lease_free(t.lease);
}

/* A server that refuses or answers "conflict" whatever is sent is not asked without a pause. */
static void test_never_taken(void **state)
{
    (void)state;
    static const write_outcome_kind answers[] = {WRITE_CONFLICT, WRITE_GONE, WRITE_REFUSED};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        talk t;
        lead(&t);
        sent(&t, WRITE_MERGE);
        answer(&t, answers[i], NULL);
        int64_t since_ms = t.now_ms;
        for (int k = 0; k < 10; k++) {
            sent(&t, WRITE_READ);
            answer(&t, WRITE_DONE, LEASE("8", "me"));
            sent(&t, WRITE_MERGE);
            answer(&t, answers[i], NULL);
        }
        assert_true(t.now_ms - since_ms >= (int64_t)9 * LEASE_RETRY_MS);
        sent(&t, WRITE_READ);
        answer(&t, WRITE_DONE, LEASE("9", "me"));
        sent(&t, WRITE_MERGE);
        answer(&t, WRITE_DONE, LEASE("10", "me"));
        assert_true(leads(&t));
        sent(&t, WRITE_MERGE); /* and from then on as before */
        answer(&t, WRITE_CONFLICT, NULL);
        since_ms = t.now_ms;
        sent(&t, WRITE_READ);
        assert_int_equal(t.now_ms, since_ms);
        lease_free(t.lease);
    }
}

/* A renewal that may have taken effect is looked for, and does not count. */
static void test_renewal_in_doubt(void **state)
{
    (void)state;
    talk t;
    lead(&t);
    int64_t until = lease_until(t.lease);
    sent(&t, WRITE_MERGE);
    answer(&t, WRITE_AMBIGUOUS, NULL);
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE, LEASE("9", "me"));
    assert_int_equal(lease_until(t.lease), until);
    kube_write w = sent(&t, WRITE_MERGE);
    check_text(w.version, "9");
    answer(&t, WRITE_CONFLICT, NULL);
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE, LEASE("11", "other"));
    assert_false(leads(&t)); /* at once, although its own time is not over */
    lease_free(t.lease);
}

/* A Lease that is older than it was: the server was set back. Whoever holds it in there. */
static void test_set_back(void **state)
{
    (void)state;
    talk t;
    lead(&t);
    sent(&t, WRITE_MERGE);
    answer(&t, WRITE_DONE, LEASE("20", "me"));
    assert_false(lease_take_set_back(t.lease));
    sent(&t, WRITE_MERGE);
    answer(&t, WRITE_CONFLICT, NULL);
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE, LEASE("9", "me"));
    assert_true(leads(&t));
    assert_true(lease_take_set_back(t.lease));
    assert_false(lease_take_set_back(t.lease)); /* said once */
    sent(&t, WRITE_MERGE);
    answer(&t, WRITE_DONE, LEASE("12", "me"));
    assert_false(lease_take_set_back(t.lease)); /* from there on it counts anew */
    sent(&t, WRITE_MERGE);
    answer(&t, WRITE_CONFLICT, NULL);
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE, LEASE("11", "other"));
    assert_true(lease_take_set_back(t.lease));
    assert_false(leads(&t));
    lease_free(t.lease);
}

static void test_frozen(void **state)
{
    (void)state;
    talk t;
    lead(&t);
    t.now_ms += 3600000;
    assert_false(leads(&t)); /* before anything else is done */
    sent(&t, WRITE_MERGE);
    assert_false(leads(&t));
    answer(&t, WRITE_CONFLICT, NULL);
    assert_false(leads(&t));
    lease_free(t.lease);
}

static void test_given_back(void **state)
{
    (void)state;
    talk t;
    lead(&t);
    lease_release(t.lease);
    assert_false(leads(&t));
    kube_write w = sent(&t, WRITE_MERGE);
    check_text(w.version, "8");
    check_text(w.body, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                       "\"spec\":{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,"
                       "\"renewTime\":\"2001-09-09T01:46:40.123456Z\"}}");
    answer(&t, WRITE_DONE, LEASE("9", ""));
    lease_ask ask = {0};
    assert_int_equal(lease_next(t.lease, t.now_ms, WALL, &ask), LEASE_ASK_NEVER);
    assert_false(leads(&t));
    lease_free(t.lease);
    /* Who does not have it has nothing to give back. */
    begin(&t);
    sent(&t, WRITE_READ);
    lease_release(t.lease);
    answer(&t, WRITE_DONE, LEASE("7", "other"));
    assert_int_equal(lease_next(t.lease, t.now_ms, WALL, &ask), LEASE_ASK_NEVER);
    lease_free(t.lease);
}

static void test_strange_objects(void **state)
{
    (void)state;
    static const char *const objects[] = {"{}", "[]", "{\"metadata\":{\"resourceVersion\":7}}",
                                          "{\"metadata\":{\"resourceVersion\":\"\"}}"};
    talk t;
    begin(&t);
    for (size_t i = 0; i < COUNT_OF(objects); i++) {
        sent(&t, WRITE_READ);
        answer(&t, WRITE_DONE, objects[i]);
        assert_int_equal(waits_ms(&t), LEASE_RETRY_MS);
    }
    /* No time, or more than anybody has: it is waited for as for our own, or for an hour. */
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE,
           "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"x\"}}");
    t.now_ms += LEASE_DURATION_MS;
    sent(&t, WRITE_MERGE);
    answer(&t, WRITE_CONFLICT, NULL);
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE,
           "{\"metadata\":{\"resourceVersion\":\"2\"},\"spec\":{\"holderIdentity\":\"x\","
           "\"leaseDurationSeconds\":9223372036854775807}}");
    t.now_ms += LEASE_DURATION_MAX_MS - 1;
    sent(&t, WRITE_READ);
    answer(&t, WRITE_DONE, NULL);
    t.now_ms += LEASE_RETRY_MS;
    sent(&t, WRITE_MERGE);
    lease_free(t.lease);
}

/* ---- several processes ---- */

#define PROCESSES 3
#define ROUNDS 60000
#define STEP_MS 100

/* A request that is under way to the server, or its answer back. */
typedef struct mail {
    bool exists, answered;
    int64_t at_ms; /* when it arrives */
    write_verb verb;
    int version; /* precondition; 0: none */
    bool back;   /* empty holder */
    write_outcome_kind kind;
    int seen_version, seen_holder; /* of the answer */
    size_t term;                   /* in which it was sent */
} mail;

typedef struct process {
    lease *lease;
    char identity[8];
    int64_t skew_ms, drift; /* thousandths: its clock runs so much faster */
    int64_t frozen_until_ms;
    mail mail, late; /* late: given up, but still on its way */
    /* What it writes while it leads: a count, each time with the version it saw last. */
    mail write;
    int known;
    bool led;
    size_t term;
} process;

typedef struct world {
    rng random;
    int64_t now_ms;
    int version, holder; /* of the lease; version 0: absent; holder -1: nobody */
    int count;
    size_t count_term; /* of the last write that took effect */
    process processes[PROCESSES];
    size_t terms, writes, stale;
} world;

static int64_t clock_of(const world *w, const process *p)
{
    return w->now_ms + p->skew_ms + w->now_ms * p->drift / 1000;
}

static int64_t delay(world *w)
{
    return rng_below(&w->random, 20) == 0 ? (int64_t)rng_below(&w->random, 20000)
                                          : (int64_t)rng_below(&w->random, 300);
}

static void serve_lease(world *w, mail *m, int who)
{
    m->kind = WRITE_DONE;
    if (rng_below(&w->random, 30) == 0)
        m->kind = WRITE_LATER;
    else if (m->verb == WRITE_READ && w->version == 0)
        m->kind = WRITE_GONE;
    else if (m->verb == WRITE_CREATE && w->version != 0)
        m->kind = WRITE_EXISTS;
    else if (m->verb == WRITE_MERGE && m->version != w->version)
        m->kind = WRITE_CONFLICT;
    else if (m->verb != WRITE_READ) {
        w->version++;
        w->holder = m->back ? -1 : who;
    }
    m->seen_version = w->version;
    m->seen_holder = w->holder;
    m->answered = true;
    m->at_ms = w->now_ms + delay(w);
}

static void serve_write(world *w, mail *m)
{
    m->answered = true;
    m->kind = m->version == w->count ? WRITE_DONE : WRITE_CONFLICT;
    if (m->kind == WRITE_DONE) {
        w->count++;
        w->writes++;
        check_msg(m->term >= w->count_term, "a write of term %zu after one of term %zu", m->term,
                  w->count_term);
        w->count_term = m->term;
    } else {
        w->stale++;
    }
    m->seen_version = w->count;
    m->at_ms = w->now_ms + delay(w);
}

static void deliver(world *w, process *p)
{
    mail *m = &p->mail;
    if (!m->exists || !m->answered || w->now_ms < m->at_ms)
        return;
    char text[256];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"resourceVersion\":\"%d\"},\"spec\":{\"holderIdentity\":\"%s\","
             "\"leaseDurationSeconds\":15}}",
             m->seen_version, m->seen_holder < 0 ? "" : w->processes[m->seen_holder].identity);
    yyjson_doc *parsed = yyjson_read(text, strlen(text), 0);
    write_outcome outcome = {.kind = m->kind};
    m->exists = false;
    lease_answer(p->lease, &outcome, yyjson_doc_get_root(parsed), clock_of(w, p));
    yyjson_doc_free(parsed);
}

/* What a process that is not frozen does. */
static void live(world *w, process *p)
{
    deliver(w, p);
    lease_ask ask = {0};
    switch (lease_next(p->lease, clock_of(w, p), WALL, &ask)) {
    case LEASE_ASK_SEND:
        p->mail = (mail){.exists = true,
                         .at_ms = w->now_ms + delay(w),
                         .verb = ask.write.verb,
                         .back = str_find(ask.write.body, STR("Identity\":\"\"")) != SIZE_MAX};
        if (ask.write.version.len > 0)
            p->mail.version = (int)strtol(ask.write.version.ptr, NULL, 10);
        break;
    case LEASE_ASK_ABORT: {
        write_outcome outcome = {.kind = WRITE_AMBIGUOUS};
        if (!p->late.exists)
            p->late = p->mail;
        p->mail.exists = false;
        lease_answer(p->lease, &outcome, NULL, clock_of(w, p));
        break;
    }
    case LEASE_ASK_WAIT: break;
    case LEASE_ASK_NEVER: fail_msg("nobody gives it back here");
    }
    bool now = lease_leads(p->lease, clock_of(w, p));
    if (now && !p->led)
        p->term = ++w->terms;
    if (!now || !p->led)
        p->known = w->count; /* what its watch shows */
    p->led = now;
    if (p->write.exists && p->write.answered && w->now_ms >= p->write.at_ms) {
        p->known = p->write.seen_version;
        p->write.exists = false;
    }
    if (now && !p->write.exists)
        p->write = (mail){
            .exists = true, .at_ms = w->now_ms + delay(w), .version = p->known, .term = p->term};
}

static void one_round(world *w)
{
    size_t leaders = 0;
    w->now_ms += STEP_MS;
    for (size_t i = 0; i < PROCESSES; i++) {
        process *p = &w->processes[i];
        mail *mails[] = {&p->mail, &p->late};
        for (size_t k = 0; k < 2; k++)
            if (mails[k]->exists && !mails[k]->answered && w->now_ms >= mails[k]->at_ms)
                serve_lease(w, mails[k], (int)i);
        if (p->late.answered)
            p->late.exists = false;
        if (p->write.exists && !p->write.answered && w->now_ms >= p->write.at_ms)
            serve_write(w, &p->write);
        if (rng_below(&w->random, 600) == 0)
            p->frozen_until_ms = w->now_ms + (int64_t)rng_below(&w->random, 60000);
        if (w->now_ms >= p->frozen_until_ms)
            live(w, p);
        leaders += lease_leads(p->lease, clock_of(w, p));
    }
    check_msg(leaders <= 1, "%zu lead at once at %lld", leaders, (long long)w->now_ms);
}

static void test_never_two(void **state)
{
    (void)state;
    world w = {.random = rng_seeded(), .holder = -1};
    for (size_t i = 0; i < PROCESSES; i++) {
        process *p = &w.processes[i];
        snprintf(p->identity, sizeof p->identity, "p%zu", i);
        p->skew_ms = (int64_t)rng_below(&w.random, 1000000) + 1;
        p->drift = (int64_t)rng_below(&w.random, 101) - 50;
        lease_options options = {
            .collection = STR("/leases"), .name = STR("l"), .identity = str_of(p->identity)};
        p->lease = lease_new(&options);
        assert_non_null(p->lease);
    }
    for (size_t i = 0; i < ROUNDS; i++)
        one_round(&w);
    /* It was led most of the time, by one after the other; late writes met their precondition. */
    check_msg(w.terms > 10 && w.writes > ROUNDS / 20, "%zu terms, %zu writes", w.terms, w.writes);
    assert_int_equal((size_t)w.count, w.writes);
    for (size_t i = 0; i < PROCESSES; i++)
        lease_free(w.processes[i].lease);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_of_all),     cmocka_unit_test(test_another_has_it),
        cmocka_unit_test(test_server_is_away),   cmocka_unit_test(test_never_taken),
        cmocka_unit_test(test_renewal_in_doubt), cmocka_unit_test(test_set_back),
        cmocka_unit_test(test_frozen),           cmocka_unit_test(test_given_back),
        cmocka_unit_test(test_strange_objects),  cmocka_unit_test(test_never_two),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
