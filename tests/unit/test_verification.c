/* SPDX-License-Identifier: Apache-2.0 */
/* When a metric has passed or failed, row by row. */
#include "support/check.h"

#include "base/mem.h"
#include "engine/verification.h"
#include "model/object.h"

typedef struct policy_text {
    buf text;
    document_set *set;
    object_list *objects;
    problems *found;
} policy_text;

/* One metric with these settings, of result.ok and, if told, result.bad. */
static const verification_metric *metric_of(policy_text *p, const char *settings)
{
    *p = (policy_text){.text = BUF(65536),
                       .set = document_set_new(),
                       .objects = objects_new(),
                       .found = problems_new()};
    buf_addf(&p->text,
             "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"RolloutPolicy\",\"metadata\":{"
             "\"name\":\"p\"},\"spec\":{\"rules\":[{\"verification\":{\"metrics\":[{\"name\":\"m\","
             "\"provider\":{\"type\":\"sleep\"},\"intervalSeconds\":1,\"successCondition\":"
             "\"result.ok\",%s}]}}]}}",
             settings);
    assert_true(documents_read_as(p->set, STR("test"), buf_str(&p->text), FORMAT_JSON, p->found));
    assert_true(objects_read(p->objects, p->set, p->found));
    return &p->objects->at[0].rollout_policy->spec.rules.at[0].verification->metrics.at[0];
}

static void policy_done(policy_text *p)
{
    problems_free(p->found);
    objects_free(p->objects);
    document_set_free(p->set);
    buf_done(&p->text);
}

static const char *answer_of(char letter)
{
    switch (letter) {
    case 'p': return "{\"ok\":true}";
    case 'f': return "{\"ok\":false}";
    case 'b': return "{\"ok\":true,\"bad\":true}";
    case 'e': return "{\"ok\":1}"; /* no bool: an error of the expression */
    default: return "no JSON";
    }
}

/* p passed, f not ok, b bad, e an error, x no JSON; the verdict after each: r, P or F. */
static void verdicts(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *measured, *verdicts;
    } rows[] = {
        {"\"count\":1", "p", "P"},
        {"\"count\":1", "f", "F"},
        {"\"count\":3", "ppp", "rrP"},
        {"\"count\":3", "ppf", "rrF"},
        {"\"count\":5,\"successThreshold\":2", "pp", "rP"},
        {"\"count\":5,\"successThreshold\":2,\"failureThreshold\":1", "pfpp", "rrrP"},
        {"\"count\":3,\"failureThreshold\":2", "ffp", "rrP"},
        {"\"count\":3,\"failureThreshold\":2", "fff", "rrF"},
        {"\"count\":3,\"failureThreshold\":2,\"successThreshold\":2", "fpf", "rrP"},
        {"\"count\":3,\"failureCondition\":\"has(result.bad) && result.bad\"", "fpp", "rrP"},
        {"\"count\":3,\"failureCondition\":\"has(result.bad) && result.bad\"", "fb", "rF"},
        {"\"count\":3,\"successThreshold\":2,\"failureCondition\":\"has(result.bad)\"", "pfp",
         "rrP"},
        {"\"count\":4,\"successThreshold\":2,\"failureCondition\":\"has(result.bad)\"", "pfpp",
         "rrrP"},
        {"\"count\":3", "e", "F"},
        {"\"count\":3,\"failureCondition\":\"result.bad\"", "e", "F"},
        {"\"count\":3", "x", "F"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        policy_text p;
        metric_state s = {0};
        const verification_metric *m = metric_of(&p, rows[i].settings);
        for (size_t k = 0; rows[i].measured[k]; k++) {
            err why;
            metric_verdict v = metric_judge(m, &s, str_of(answer_of(rows[i].measured[k])), &why);
            check_msg("rPF"[v] == rows[i].verdicts[k], "row %zu, measurement %zu: %c", i, k,
                      "rPF"[v]);
            bool passed = s.passes > 0;
            check_msg(passed == (why.text[0] == 0), "row %zu, measurement %zu: \"%s\"", i, k,
                      why.text);
        }
        policy_done(&p);
    }
}

/* Until the last of the passes that are needed; the provider sleeps before each. */
static void how_long_it_is_measured(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        int64_t seconds;
    } rows[] = {
        {"\"count\":1", 30},
        {"\"count\":3", 92},
        {"\"count\":5,\"successThreshold\":2", 61},
        {"\"count\":2,\"successThreshold\":5", 61},
        {"\"count\":2147483647", INT64_C(100) * 365 * 86400}, /* no end that matters */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        policy_text p;
        check_msg(metric_ms(metric_of(&p, rows[i].settings)) == rows[i].seconds * 1000, "row %zu",
                  i);
        policy_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts),
                                       cmocka_unit_test(how_long_it_is_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
