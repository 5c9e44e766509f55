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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_interrupt_has_its_own_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
