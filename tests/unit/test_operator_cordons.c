/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds a node out of service: several Skyhooks, and people who give it back. */
#include "support/check.h"

#include "support/operator_story.h"

#define AGAIN "it is cordoned again"

static bool is_cordoned(fake *f, const char *node_name)
{
    return yyjson_get_bool(fake_get(f, FAKE_NODES, node_name, "/spec/unschedulable"));
}

static void uncordon(fake *f, const char *node_name)
{
    fake_edit(f, FAKE_NODES, node_name, "{\"spec\":{\"unschedulable\":null}}");
}

static size_t told_again(const fake *f)
{
    return count_in(&f->told, AGAIN);
}

static void check_status(fake *f, const char *of, const char *want)
{
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, of, "/status/status")), want);
}

static bool gives_back(const kube_write *w)
{
    return str_eq(w->collection, STR(FAKE_NODES)) &&
           str_find(w->body, STR("\"unschedulable\":null")) != SIZE_MAX;
}

static bool takes(const kube_write *w)
{
    return str_eq(w->collection, STR(FAKE_NODES)) &&
           str_find(w->body, STR("\"unschedulable\":true")) != SIZE_MAX;
}

/* ---- two Skyhooks ---- */

static size_t met;

static fake_fault conflict_at_first(fake *f, const kube_write *w)
{
    (void)f;
    return gives_back(w) && met++ == 0 ? FAULT_CONFLICT : FAULT_NONE;
}

/* The first one's uncordon has to be written again, when the second has claimed the node: nobody
 * but the two cordons it, so no person is told of, and no interrupt meets a node in service. */
static void uncordon_that_is_late_takes_nothing_from_another(void **state)
{
    (void)state;
    fake *f = begin_shared();
    add_pods(f);
    met = 0;
    f->meets = conflict_at_first;
    fake_run(f, -1);
    assert_true(met > 1);
    check_status(f, "sk", "complete");
    check_status(f, "sl", "complete");
    assert_int_equal(told_again(f), 0);
    for (int i = 0; i < SHARED_NODES; i++)
        assert_false(is_cordoned(f, i == 0 ? "n00" : "n01"));
    fake_free(f);
}

/* ---- people ---- */

static bool protects_at_first(fake *f, const char *pod_name)
{
    (void)pod_name;
    return f->now_ms < FAKE_START_MS + 60000;
}

/* While the operator is down, or just after it looked: the same as if it had seen it. */
static void uncordoned_while_nobody_looks(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    add_pods(f);
    f->refuses = protects_at_first;
    fake_run(f, 12000);
    assert_true(is_cordoned(f, "n00"));
    fake_end_side(&f->sides[0]);
    uncordon(f, "n00");
    fake_start(f);
    fake_run(f, 12000);
    assert_true(is_cordoned(f, "n00"));
    assert_int_equal(told_again(f), 1);
    /* Once is enough: the second time it is left to the person, also by another operator, and
     * nothing is disturbed there before a person cordons it. */
    fake_end_side(&f->sides[0]);
    uncordon(f, "n00");
    fake_start(f);
    fake_run(f, 12000);
    assert_false(is_cordoned(f, "n00"));
    assert_int_equal(told_again(f), 1);
    fake_run(f, -1);
    check_status(f, "sk", "in_progress");
    assert_false(holds_cordon(f, "n00", "sk"));
    f->watch = watch_cordons; /* what a person keeps out of service counts for nobody */
    fake_edit(f, FAKE_NODES, "n00", "{\"spec\":{\"unschedulable\":true}}");
    fake_run(f, -1);
    check_status(f, "sk", "complete");
    assert_true(is_cordoned(f, "n00")); /* by the person */
    fake_free(f);
}

static const char *mark_of(fake *f)
{
    return fake_text(f, FAKE_NODES, "n00",
                     "/metadata/annotations/skyhook.nvidia.com~1cordonedBefore");
}

static fake_fault conflict_at_cordon(fake *f, const kube_write *w)
{
    (void)f;
    return takes(w) && met++ == 0 ? FAULT_CONFLICT : FAULT_NONE;
}

static void install_next(fake *f, const char *next)
{
    char edit[96];
    snprintf(edit, sizeof edit, "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"%s\"}}}}", next);
    fake_edit(f, FAKE_SKYHOOKS, "sk", edit);
    fake_run(f, -1);
    check_status(f, "sk", "complete");
}

/* What a person cordoned stays so, until a person gives it back: from then on Drover cordons and
 * uncordons it like any other, also one that was started meanwhile, or whose cordon comes second.
 */
static void mark_goes_when_the_person_gives_back(void **state)
{
    (void)state;
    enum { PLAIN, STARTED, CONFLICT, CASES };
    for (int how = PLAIN; how < CASES; how++) {
        fake *f = begin(skyhook_interrupt);
        f->watch = watch_cordons;
        fake_edit(f, FAKE_NODES, "n00", "{\"spec\":{\"unschedulable\":true}}");
        fake_run(f, -1);
        check_status(f, "sk", "complete");
        install_next(f, "1.1.0");
        assert_true(is_cordoned(f, "n00"));
        check_text(str_of(mark_of(f)), "true");
        if (how == STARTED)
            fake_end_side(&f->sides[0]);
        uncordon(f, "n00");
        if (how == STARTED)
            fake_start(f);
        met = 0;
        f->meets = how == CONFLICT ? conflict_at_cordon : NULL;
        install_next(f, "1.2.0");
        assert_true(how != CONFLICT || met > 1);
        assert_false(is_cordoned(f, "n00"));
        assert_null(fake_get(f, FAKE_NODES, "n00",
                             "/metadata/annotations/skyhook.nvidia.com~1cordonedBefore"));
        assert_int_equal(told_again(f), 0);
        fake_edit(f, FAKE_NODES, "n00", "{\"spec\":{\"unschedulable\":true}}");
        install_next(f, "1.3.0");
        assert_true(is_cordoned(f, "n00"));
        fake_free(f);
    }
}

static bool given_back_at_once;

/* The answer is lost, and the watch lists anew when a person has uncordoned the node. */
static fake_fault lose_first_cordon(fake *f, const kube_write *w)
{
    (void)f;
    return takes(w) && !given_back_at_once ? FAULT_LOST : FAULT_NONE;
}

static void give_back_at_once(fake *f, const kube_write *w)
{
    if (!takes(w) || given_back_at_once)
        return;
    fake_side *side = &f->sides[0];
    given_back_at_once = true;
    for (size_t i = side->messages.len; i-- > 0;)
        if (strcmp(side->messages.at[i].collection, FAKE_NODES) == 0) {
            yyjson_doc_free(side->messages.at[i].doc);
            memmove(&side->messages.at[i], &side->messages.at[i + 1],
                    (side->messages.len - i - 1) * sizeof side->messages.at[i]);
            side->messages.len--;
        }
    uncordon(f, "n00");
}

static void uncordoned_before_the_cordon_is_seen(void **state)
{
    (void)state;
    given_back_at_once = false;
    fake *f = begin(skyhook_interrupt);
    add_pods(f);
    f->meets = lose_first_cordon;
    f->watch = give_back_at_once;
    fake_run(f, -1);
    assert_true(given_back_at_once);
    assert_int_equal(told_again(f), 1);
    check_status(f, "sk", "complete");
    fake_free(f);
}

static bool fails_to_interrupt_n00(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-interrupt-n00-3-") != NULL;
}

/* A failed node is held; who gives it back then has nothing put back, and no note is left that
 * would be taken for a cordon of the next attempt. */
static void uncordoned_while_it_waits(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 1);
    fake_create(f, FAKE_SKYHOOKS, SHARED_SKYHOOK("sk", "1"));
    f->fails = fails_to_interrupt_n00;
    fake_start(f);
    fake_run(f, 8000);
    check_text(str_of(status_of(f, "n00")), "erroring");
    assert_true(is_cordoned(f, "n00") && holds_cordon(f, "n00", "sk"));
    uncordon(f, "n00");
    fake_run(f, 1000);
    assert_false(holds_cordon(f, "n00", "sk"));
    fake_run(f, -1);
    check_status(f, "sk", "complete");
    assert_int_equal(told_again(f), 0);
    assert_false(is_cordoned(f, "n00"));
    fake_free(f);
}

static bool fails_to_apply(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-tune-sk-1-0-0-apply-") != NULL;
}

/* An edit that makes its node complete, while no operator runs. */
static void given_back_after_an_edit_while_nobody_decides(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 1);
    fake_create(f, FAKE_SKYHOOKS, SHARED_SKYHOOK("sk", "1"));
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"other\":{\"version\":\"1.0.0\",\"image\":"
              "\"example.test/other\"}}}}");
    f->fails = fails_to_apply;
    fake_start(f);
    fake_run(f, 8000);
    check_text(str_of(status_of(f, "n00")), "erroring");
    assert_true(is_cordoned(f, "n00"));
    fake_end_side(&f->sides[0]);
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"spec\":{\"packages\":{\"tune-sk\":null}}}");
    fake_start(f);
    fake_run(f, -1);
    check_status(f, "sk", "complete");
    assert_false(is_cordoned(f, "n00") || holds_cordon(f, "n00", "sk"));
    fake_free(f);
}

/* A Skyhook is replaced by force: the operator gives nodes back for the one, and takes them for the
 * other. Nobody else did. */
static void own_uncordons_are_no_persons(void **state)
{
    (void)state;
    for (int64_t at_ms = 0; at_ms < 12000; at_ms += 100) {
        fake *f = begin(skyhook_interrupt);
        add_pods(f);
        f->reboots = reboots_first;
        fake_run(f, at_ms);
        f->watch = NULL; /* it counts claims anew */
        fake_delete(f, FAKE_SKYHOOKS, "sk");
        fake_create(f, FAKE_SKYHOOKS, skyhook_interrupt);
        fake_run(f, -1);
        check_msg(!f->told.ptr || !strstr(f->told.ptr, "uncordoned"), "after %d ms: %s\n%s",
                  (int)at_ms, f->told.ptr, f->log.ptr);
        check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
        fake_free(f);
    }
}

/* A person gives the node back while the one that holds it is disabled and another one works there:
 * that is heeded when the other one ends, and nobody is left who would do it. */
static void halted_ones_hold_no_cordon_that_was_taken(void **state)
{
    (void)state;
    fake *f = begin_shared();
    f->watch = NULL;
    while (first_job(f, "sk-tune-sk-1-0-0-interrupt-n00-")[0] == '\0')
        fake_run(f, 100);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/disable\":\"true\"}}}");
    while (first_job(f, "sl-tune-sl-1-0-0-apply-n00-")[0] == '\0')
        fake_run(f, 100);
    fake_edit(f, FAKE_NODES, "n00", "{\"spec\":{\"unschedulable\":null}}");
    fake_run(f, -1);
    assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/disable\":null}}}");
    fake_run(f, -1);
    check_text(str_of(status_of(f, "n00")), "complete");
    assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
    fake_free(f);
}

/* An older operator's note of a cordon that a person has taken away since. */
static void notes_without_a_cordon_are_none(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 1);
    fake_edit(f, FAKE_NODES, "n00",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/cordon_sk\":\"true\"}}}");
    fake_create(f, FAKE_POLICIES, policy);
    fake_create(f, FAKE_SKYHOOKS, skyhook_interrupt);
    add_pods(f);
    fake_start(f);
    fake_run(f, -1);
    check_text(str_of(status_of(f, "n00")), "complete");
    assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
    assert_false(holds_cordon(f, "n00", "sk"));
    fake_free(f);
}

#define PAIR(apply)                                                                                \
    "\"spec\":{\"packages\":{\"aa\":{\"version\":\"1.0.0\",\"image\":\"example.test/aa\","         \
    "\"interrupt\":{\"type\":\"noop\"},\"uninstall\":{\"enabled\":true,\"apply\":" apply "}},"     \
    "\"bb\":{\"version\":\"1.0.0\",\"image\":\"example.test/bb\",\"dependsOn\":"                   \
    "{\"aa\":\"1.0.0\"}}}}}"

static fake_fault no_status(fake *f, const kube_write *w)
{
    (void)f;
    return str_eq(w->subresource, STR("status")) && str_eq(w->collection, STR(FAKE_SKYHOOKS))
               ? FAULT_INVALID
               : FAULT_NONE;
}

/* The claim is not written yet, and by an edit there is nothing left that it could do: what was
 * decided of the node is taken back, its cordon, too. */
static void claims_that_end_unwritten_leave_no_cordon(void **state)
{
    (void)state;
    fake *f = fake_new();
    fake_add_nodes(f, 1);
    fake_create(f, FAKE_SKYHOOKS, "{\"metadata\":{\"name\":\"sk\"}," PAIR("false"));
    f->meets = no_status;
    fake_start(f);
    fake_run(f, 1000);
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{" PAIR("true"));
    fake_run(f, 60000);
    assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
    assert_false(holds_cordon(f, "n00", "sk"));
    f->meets = NULL;
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{" PAIR("false"));
    fake_run(f, -1);
    check_text(str_of(status_of(f, "n00")), "complete");
    assert_false(yyjson_get_bool(fake_get(f, FAKE_NODES, "n00", "/spec/unschedulable")));
    fake_free(f);
}

static bool notes_its_cordon(const kube_write *w)
{
    return str_eq(w->collection, STR(FAKE_NODES)) && str_eq(w->name, STR("n00")) &&
           str_find(w->body, STR("cordon_sk\":\"true\"")) != SIZE_MAX;
}

static fake_fault cordoned_meanwhile(fake *f, const kube_write *w)
{
    if (notes_its_cordon(w) && met++ == 0)
        fake_edit(f, FAKE_NODES, "n00", "{\"spec\":{\"unschedulable\":true}}");
    return FAULT_NONE;
}

static fake_fault uncordoned_meanwhile(fake *f, const kube_write *w)
{
    if (notes_its_cordon(w) && met++ == 0)
        uncordon(f, "n00");
    return FAULT_NONE;
}

/* A person cordons, or uncordons, when Drover's cordon is decided and not yet written: what the
 * node shows until then is the person's. */
static void persons_are_quicker(void **state)
{
    (void)state;
    for (int cordons = 0; cordons < 2; cordons++) {
        fake *f = begin(skyhook_interrupt);
        add_pods(f);
        if (!cordons)
            fake_edit(f, FAKE_NODES, "n00", "{\"spec\":{\"unschedulable\":true}}");
        met = 0;
        f->meets = cordons ? cordoned_meanwhile : uncordoned_meanwhile;
        f->reboots = reboots_first;
        f->watch = NULL; /* a person's cordon is nobody's claim */
        fake_run(f, -1);
        assert_true(met > 1);
        check_status(f, "sk", "complete");
        assert_int_equal(is_cordoned(f, "n00"), cordons);
        const char *mark = fake_text(f, FAKE_NODES, "n00",
                                     "/metadata/annotations/skyhook.nvidia.com~1cordonedBefore");
        assert_int_equal(mark && strcmp(mark, "true") == 0, cordons);
        assert_false(is_cordoned(f, "n01"));
        assert_int_equal(told_again(f), 0);
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uncordon_that_is_late_takes_nothing_from_another),
        cmocka_unit_test(uncordoned_while_nobody_looks),
        cmocka_unit_test(mark_goes_when_the_person_gives_back),
        cmocka_unit_test(uncordoned_before_the_cordon_is_seen),
        cmocka_unit_test(uncordoned_while_it_waits),
        cmocka_unit_test(given_back_after_an_edit_while_nobody_decides),
        cmocka_unit_test(own_uncordons_are_no_persons),
        cmocka_unit_test(persons_are_quicker),
        cmocka_unit_test(claims_that_end_unwritten_leave_no_cordon),
        cmocka_unit_test(halted_ones_hold_no_cordon_that_was_taken),
        cmocka_unit_test(notes_without_a_cordon_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
