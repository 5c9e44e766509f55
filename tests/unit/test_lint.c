/* SPDX-License-Identifier: Apache-2.0 */
/* What lint says is held by tests/data/bad; here is what a text cannot show. */
#include "support/check.h"

#include "model/lint.h"
#include "support/documents.h"

/* Something for every check to say. */
static buf everything;

static int read_everything(void **state)
{
    (void)state;
    everything = file_content(TEST_DATA "/together.yaml");
    return everything.len > 0 ? 0 : -1;
}

static int forget_everything(void **state)
{
    (void)state;
    buf_done(&everything);
    return 0;
}

static void test_everything(void **state)
{
    (void)state;
    loaded l = load_text("f", buf_str(&everything));
    buf wrong = problems_as_text(l.found);
    check_msg(l.good, "%.*s", STR_ARG(buf_str(&wrong)));
    buf_done(&wrong);
    assert_int_equal(problems_warnings(l.found), 0);
    assert_false(lint_all(l.objects, l.found));
    buf text = problems_as_text(l.found);
    check_msg(problems_errors(l.found) == 6, "%.*s", STR_ARG(buf_str(&text)));
    check_msg(problems_warnings(l.found) == 15, "%.*s", STR_ARG(buf_str(&text)));
    buf_done(&text);
    loaded_free(&l);
}

/* Targets that a program made up have no document: what is said of them has no place. */
static void test_objects_without_documents(void **state)
{
    (void)state;
    loaded l = load_text("f", buf_str(&everything));
    problems *found = problems_new();
    for (size_t i = 0; i < l.objects->len; i++)
        l.objects->at[i].document = NULL;
    assert_false(lint_all(l.objects, found));
    assert_int_equal(problems_errors(found), 6);
    assert_int_equal(problems_warnings(found), 15);
    for (size_t i = 0; i < problems_count(found); i++)
        assert_int_equal(problems_at(found, i)->line, 0);
    problems_free(found);
    loaded_free(&l);
}

/* Either memory is said to have run out, or everything was said: remembering lines may fail
 * quietly, since they can be found again. */
static void test_each_allocation_fails(void **state)
{
    (void)state;
    int64_t live = mem_live();
    bool again = true;
    for (uint64_t n = 1; again; n++) {
        mem_fail_at(n);
        loaded l = load_text("f", buf_str(&everything));
        if (l.good)
            lint_all(l.objects, l.found);
        again = mem_failed();
        mem_fail_at(0);
        bool said = l.good && problems_errors(l.found) == 6 && problems_warnings(l.found) == 15;
        bool refused = !l.good || problems_out_of_memory(l.found);
        check_msg(said || refused, "allocation %llu", (unsigned long long)n);
        check_msg(again || said, "allocation %llu", (unsigned long long)n);
        loaded_free(&l);
        check_msg(mem_live() == live, "allocation %llu leaks", (unsigned long long)n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_objects_without_documents),
        cmocka_unit_test(test_each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, read_everything, forget_everything);
}
