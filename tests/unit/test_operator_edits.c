/* SPDX-License-Identifier: Apache-2.0 */
/* Edits that meet Jobs on their way, as the API server and the agents on the hosts see it. */
#include "support/check.h"

#include "support/operator_story.h"

static fake *alone(const char *of_skyhook)
{
    fake *f = fake_new();
    fake_add_nodes(f, 1);
    fake_create(f, FAKE_SKYHOOKS, of_skyhook);
    fake_start(f);
    return f;
}

/* Of the Jobs whose names have this part, in the order of their creation: "sk-UID-1_tune_1.0.0". */
static void put_resource_ids(fake *f, const char *part, buf *out)
{
    for (size_t i = 0; i < f->count; i++) {
        const fake_object *o = &f->objects[i];
        if (strcmp(o->collection, FAKE_JOBS) != 0 || !strstr(o->name, part))
            continue;
        yyjson_val *env = yyjson_doc_ptr_get(o->doc, "/spec/template/spec/containers/0/env");
        yyjson_arr_iter walk = yyjson_arr_iter_with(env);
        for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
            if (yyjson_equals_str(yyjson_obj_get(one, "name"), "SKYHOOK_RESOURCE_ID"))
                buf_addf(out, "%s\n", yyjson_get_str(yyjson_obj_get(one, "value")));
    }
}

/* An agent runs an interrupt once for each SKYHOOK_RESOURCE_ID. */
static void each_interrupt_has_its_own_id(void **state)
{
    (void)state;
    fake *f = alone("{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{\"tune\":{\"version\":"
                    "\"1.0.0\",\"image\":\"example.test/tune\",\"interrupt\":{\"type\":\"noop\"},"
                    "\"configMap\":{\"a.conf\":\"old\"},\"configInterrupts\":{\"a.conf\":{\"type\":"
                    "\"noop\"}}}}}}");
    for (int i = 0; i < 200 && first_job(f, "-post-interrupt-")[0] == '\0'; i++)
        fake_run(f, 100);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"configMap\":{\"a.conf\":\"new\"}}}}}");
    fake_run(f, -1);
    buf ids = BUF(1u << 16);
    put_resource_ids(f, "-1-0-0-interrupt-", &ids);
    check_text(buf_str(&ids), "sk-uid-2-2_tune_1.0.0\nsk-uid-2-3_tune_1.0.0\n");
    buf_done(&ids);
    check_text(str_of(status_of(f, "n00")), "complete");
    fake_free(f);
}

#define INTERRUPTS(of) "{\"spec\":{\"packages\":{\"tune\":{\"interrupt\":" of "}}}}"

/* At an interrupt that is decided, and has no Job: a pod of another Skyhook's is in its way. */
static fake *before_the_interrupt(void)
{
    fake *f = alone("{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"packages\":{\"tune\":{\"version\":"
                    "\"1.0.0\",\"image\":\"example.test/tune\",\"interrupt\":{\"type\":"
                    "\"service\",\"services\":[\"a\"]}}}}}");
    fake_create(f, FAKE_PODS,
                "{\"metadata\":{\"name\":\"raw\",\"namespace\":\"" FAKE_SPACE
                "\",\"labels\":{\"skyhook.nvidia.com/name\":\"other\"}},\"spec\":{\"nodeName\":"
                "\"n00\",\"tolerations\":[{\"key\":\"node.kubernetes.io/unschedulable\","
                "\"operator\":\"Exists\"}]},\"status\":{\"phase\":\"Running\"}}");
    fake_run(f, 60000);
    assert_non_null(strstr(
        fake_text(f, FAKE_NODES, "n00", "/metadata/annotations/skyhook.nvidia.com~1nodeState_sk"),
        "\"stage\":\"interrupt\",\"state\":\"in_progress\""));
    assert_int_equal(count_lines(f, "POST " FAKE_JOBS), 2);
    return f;
}

typedef struct taken_away {
    const char *edit;
    const char *data; /* of the interrupt's Job, base64; "": there is none */
    size_t interrupts;
} taken_away;

static const taken_away rows[] = {
    {"{\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
     "eyJ0eXBlIjoic2VydmljZV9yZXN0YXJ0Iiwic2VydmljZXMiOlsiYSJdfQ==", 1},
    {INTERRUPTS("null"), "", 0},
    /* Its first Job goes down with the node. */
    {INTERRUPTS("{\"type\":\"reboot\",\"services\":null}"), "eyJ0eXBlIjoibm9kZV9yZXN0YXJ0In0=", 2},
};

static bool reboots_once(fake *f, const char *job)
{
    return strstr(job, "-1-0-0-interrupt-") && count_lines(f, "POST " FAKE_JOBS) == 3;
}

/* An interrupt that an edit has taken away, or made another one, before its Job was there is not
 * run; what is run is decided anew, and known for what it is. */
static void an_interrupt_that_an_edit_takes_away(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        const taken_away *r = &rows[i / 2];
        fake *f = before_the_interrupt();
        f->reboots = strstr(r->edit, "reboot") ? reboots_once : NULL;
        fake_edit(f, FAKE_SKYHOOKS, "sk", r->edit);
        fake_run(f, 5000);
        if (i % 2)
            fake_start(f);
        fake_delete(f, FAKE_PODS, "raw");
        fake_run(f, -1);
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-0-interrupt-"),
                         r->interrupts);
        assert_int_equal(count_lines(f, "POST " FAKE_JOBS "/sk-tune-1-0-0-post-interrupt-"), 1);
        check_text(str_of(fake_text(f, FAKE_JOBS, first_job(f, "-1-0-0-interrupt-"),
                                    "/spec/template/spec/containers/0/args/3")),
                   r->data);
        assert_true(str_find(buf_str(&f->told), STR("state erroring")) == SIZE_MAX);
        check_text(str_of(status_of(f, "n00")), "complete");
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_interrupt_has_its_own_id),
        cmocka_unit_test(an_interrupt_that_an_edit_takes_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
