/* SPDX-License-Identifier: Apache-2.0 */
/* Times that somebody else's clock wrote: another operator's, which was ahead of ours, and those of
 * nodes. */
#include "support/check.h"

#include "support/operator_story.h"

#define HOUR_MS (INT64_C(3600) * 1000)

static const char *record_of(fake *f, const char *node_name)
{
    return fake_text(f, FAKE_NODES, node_name,
                     "/metadata/annotations/skyhook.nvidia.com~1drover_sk");
}

/* The next operator's clock shows so much less. What runs is not held up by that. */
static void put_clock_back(fake *f, int64_t by_ms)
{
    f->now_ms -= by_ms;
    for (size_t i = 0; i < f->count; i++)
        if (f->objects[i].ends_ms != REASON_NEVER)
            f->objects[i].ends_ms -= by_ms;
    fake_start(f);
}

/* A failed node waits for its next attempt as long as ever, and not until the hour that another
 * clock gave. */
static void retry_is_not_put_off(void **state)
{
    (void)state;
    fake *f = begin(skyhook_plain);
    f->fails = fails_on_n01;
    fake_run(f, 5000);
    check_text(str_of(status_of(f, "n01")), "erroring");
    put_clock_back(f, 2 * HOUR_MS);
    fake_run(f, 310 * 1000);
    check_text(str_of(fake_text(f, FAKE_SKYHOOKS, "sk", "/status/completeNodes")), "8/8");
    fake_free(f);
}

static bool protects_n00(fake *f, const char *pod_name)
{
    (void)f;
    return strcmp(pod_name, "app-00") == 0;
}

/* A drain has its time from when it began, or from when a clock first showed that. */
static void drain_is_not_given_hours(void **state)
{
    (void)state;
    fake *f = begin(skyhook_interrupt);
    add_pods(f);
    f->refuses = protects_n00;
    fake_edit(f, FAKE_SKYHOOKS, "sk", "{\"spec\":{\"drainTimeout\":\"60s\"}}");
    fake_run(f, 10000);
    check_text(str_of(status_of(f, "n00")), "in_progress");
    put_clock_back(f, 2 * HOUR_MS);
    fake_run(f, 40000);
    check_text(str_of(status_of(f, "n00")), "in_progress");
    fake_run(f, 30000);
    check_text(str_of(status_of(f, "n00")), "erroring");
    assert_non_null(strstr(record_of(f, "n00"), "\"why\":\"DrainTimeout\""));
    fake_free(f);
}

/* A node whose own clock is hours late is not ready for ten seconds when an operator begins anew:
 * it is not taken for one that is lost. One that says itself that it has not been ready for long
 * is. */
static void nodes_have_clocks_of_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *told;
        const char *status;
    } rows[] = {{"2025-11-16T01:00:12Z", "in_progress"}, {"2025-11-16T02:00:12Z", "erroring"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[256];
        fake *f = begin(skyhook_plain);
        f->job_ms = 5 * HOUR_MS;
        fake_run(f, 2000);
        snprintf(text, sizeof text,
                 "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
                 "\"lastTransitionTime\":\"2025-11-16T01:00:02Z\",\"lastHeartbeatTime\":\"%s\"}]}}",
                 rows[i].told);
        fake_edit(f, FAKE_NODES, "n00", text);
        fake_start(f);
        fake_run(f, 60000);
        check_text(str_of(status_of(f, "n00")), rows[i].status);
        fake_run(f, HOUR_MS);
        check_text(str_of(status_of(f, "n00")), "erroring");
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_is_not_put_off),
        cmocka_unit_test(drain_is_not_given_hours),
        cmocka_unit_test(nodes_have_clocks_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
