/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "model/shape.h"
#include "support/documents.h"

static bool kinds_seen[KIND_FLEET_YAML + 1];
static bool rules_seen[RULE_ROLLOUT_STRATEGY + 1];

/* Everything that was read is written, read again, and is the same. */
static void check_round_trip(const char *path, const object *o)
{
    buf written = BUF(LIMIT_TEXT_BYTES);
    object_write(o, &written);
    const char *file = o->kind == KIND_FLEET_YAML ? "fleet.yaml" : "again.json";
    loaded again = load_text(file, buf_str(&written));
    buf wrong = problems_as_text(again.found);
    check_msg(again.good && again.objects->len == 1, "%s: %.*s\n%.*s", path,
              STR_ARG(buf_str(&written)), STR_ARG(buf_str(&wrong)));
    buf rewritten = BUF(LIMIT_TEXT_BYTES);
    object_write(&again.objects->at[0], &rewritten);
    check_str(buf_str(&rewritten), buf_str(&written));
    check_msg(object_equal(o, &again.objects->at[0]), "%s", path);
    buf_done(&wrong);
    buf_done(&written);
    buf_done(&rewritten);
    loaded_free(&again);
}

static void check_sample(const char *path, str text)
{
    loaded l = load_text(path, text);
    buf wrong = problems_as_text(l.found);
    check_msg(l.good && wrong.len == 0, "%s", wrong.len ? wrong.ptr : path);
    assert_true(l.objects->len > 0);
    for (size_t i = 0; i < l.objects->len; i++) {
        const object *o = &l.objects->at[i];
        kinds_seen[o->kind] = true;
        for (size_t k = 0; o->kind == KIND_ROLLOUT_POLICY && k < o->rollout_policy->spec.rules.len; k++)
            rules_seen[o->rollout_policy->spec.rules.at[k].kind] = true;
        check_round_trip(path, o);
    }
    buf_done(&wrong);
    loaded_free(&l);
}

static void test_samples(void **state)
{
    (void)state;
    assert_true(each_sample(check_sample) >= 15);
    for (size_t i = 0; i < COUNT_OF(kinds_seen); i++)
        check_msg(kinds_seen[i], "no sample of kind %s", object_kind_text((object_kind)i));
    for (size_t i = 0; i < COUNT_OF(rules_seen); i++)
        check_msg(rules_seen[i], "no sample of rule %s", rule_kind_text((rule_kind)i));
}

static str current;
static const char *current_path;

static bool read_current(void *context)
{
    (void)context;
    loaded l = load_text(current_path, current);
    bool good = l.good;
    for (size_t i = 0; good && i < l.objects->len; i++) {
        buf out = BUF(LIMIT_TEXT_BYTES);
        object_write(&l.objects->at[i], &out);
        good = !out.failed;
        buf_done(&out);
    }
    loaded_free(&l);
    return good;
}

static void fail_sample(const char *path, str text)
{
    current = text;
    current_path = path;
    check_each_allocation_fails(read_current, NULL);
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    each_sample(fail_sample);
}

/* object_of relies on it. */
static void test_metadata_is_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < KIND_FLEET_YAML; i++) {
        const shape *s = object_kind_shape((object_kind)i);
        bool found = false;
        for (size_t k = 0; k < s->field_count; k++)
            found = found || (str_eq(s->fields[k].name, STR("metadata")) && s->fields[k].offset == 0);
        check_msg(found, "%s", s->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_each_allocation_fails),
        cmocka_unit_test(test_metadata_is_first),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
