/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in the way of a drain, from lists of budgets and pods. */
#include "support/check.h"

#include "model/json.h"
#include "operator/drain_blocker.h"

#define STATUS(allowed)                                                                            \
    "\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":" allowed                         \
    ",\"currentHealthy\":1,\"desiredHealthy\":1}"
#define BUDGET(space, name, selector, allowed)                                                     \
    "{\"metadata\":{\"namespace\":\"" space "\",\"name\":\"" name                                  \
    "\",\"generation\":1},\"spec\":{\"selector\":" selector "}," STATUS(allowed) "}"
#define POD_OF(space, name, app, more, phase)                                                      \
    "{\"metadata\":{\"namespace\":\"" space "\",\"name\":\"" name "\",\"labels\":{\"app\":\"" app  \
    "\"}" more "},\"spec\":{},\"status\":{\"phase\":\"" phase                                      \
    "\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
#define POD(space, name, app) POD_OF(space, name, app, "", "Running")
#define WEB "{\"matchLabels\":{\"app\":\"web\"}}"

typedef struct lists {
    const char *budgets[4], *pods[4];
    const char *spared; /* labels of pods that must not be interrupted */
} lists;

/* "namespace/name budget" of the one who blocks, or nothing. False without memory. */
static bool find(const lists *all, arena *a, str *ret)
{
    drain_blocker b;
    bool good = drain_blocker_begin(&b);
    const selector *spared = all->spared ? selector_parse(a, str_of(all->spared), NULL) : NULL;
    if (good && spared)
        drain_blocker_spare(&b, spared);
    good = good && (!all->spared || spared);
    for (size_t i = 0; good && i < COUNT_OF(all->budgets) && all->budgets[i]; i++) {
        yyjson_val *json = json_parse(a, str_of(all->budgets[i]), NULL);
        good = json != NULL;
        if (good)
            drain_blocker_budget(&b, json);
    }
    for (size_t i = 0; good && i < COUNT_OF(all->pods) && all->pods[i]; i++) {
        yyjson_val *json = json_parse(a, str_of(all->pods[i]), NULL);
        good = json != NULL;
        if (good)
            drain_blocker_pod(&b, json);
    }
    good = good && !b.no_memory;
    *ret = good && b.found ? arena_printf(a, "%.*s/%.*s %.*s", STR_ARG(b.pod.space),
                                          STR_ARG(b.pod.name), STR_ARG(b.budget))
                           : STR_EMPTY;
    drain_blocker_done(&b);
    return good && ret->ptr;
}

static void check_found(lists all, const char *want)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    str found;
    assert_true(a && find(&all, a, &found));
    check_text(found, want);
}

static void nobody(void **state)
{
    (void)state;
    check_found((lists){0}, "");
    check_found(
        (lists){.pods = {POD("kube-system", "dns", "web"),
                         POD_OF("d", "done", "web", "", "Succeeded"),
                         POD_OF("d", "agent", "web",
                                ",\"ownerReferences\":[{\"kind\":\"DaemonSet\"}]", "Running")},
                .budgets = {BUDGET("d", "b", WEB, "0")}},
        "");
}

static void pods(void **state)
{
    (void)state;
    check_found((lists){.pods = {POD("d", "b", "web"), POD("d", "a", "web")}}, "d/a ");
    /* One that a budget protects is told of first; budgets of other namespaces, for other pods or
     * with room say nothing. */
    check_found((lists){.budgets = {BUDGET("d", "tight", WEB, "0")},
                        .pods = {POD("d", "a", "db"), POD("d", "b", "web"), POD("d", "c", "web")}},
                "d/b tight");
    check_found(
        (lists){.budgets = {BUDGET("other", "tight", WEB, "0"), BUDGET("d", "wide", WEB, "1")},
                .pods = {POD("d", "b", "web")}},
        "d/b ");
    /* Two budgets, and be it that each would let it go: nobody can evict it. */
    check_found((lists){.budgets = {BUDGET("d", "z", WEB, "1"), BUDGET("d", "y", WEB, "1")},
                        .pods = {POD("d", "b", "web")}},
                "d/b *");
    check_found((lists){.budgets = {BUDGET("d", "z", WEB, "0"), BUDGET("d", "y", WEB, "0")},
                        .pods = {POD("d", "b", "web")}},
                "d/b *");
    check_found(
        (lists){.budgets = {BUDGET("d", "tight", WEB, "0")},
                .pods = {POD_OF("d", "b", "web", ",\"deletionTimestamp\":\"x\"", "Running")}},
        "d/b ");
}

static void selectors(void **state)
{
    (void)state;
    static const struct {
        const char *budget, *want;
    } rows[] = {
        {BUDGET("d", "t", "{}", "0"), "d/p t"},
        {BUDGET("d", "t", "null", "0"), "d/p "},
        {BUDGET("d", "t",
                "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"a\","
                "\"web\"]}]}",
                "0"),
         "d/p t"},
        {BUDGET("d", "t",
                "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"DoesNotExist\"}]}", "0"),
         "d/p "},
        {BUDGET("d", "t", "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Near\"}]}", "0"),
         "d/p "},
        {BUDGET("d", "t",
                "{\"matchLabels\":{\"app\":\"web\"},\"matchExpressions\":[{\"key\":\"x\","
                "\"operator\":\"Exists\"}]}",
                "0"),
         "d/p "},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_found((lists){.budgets = {rows[i].budget}, .pods = {POD("d", "p", "web")}},
                    rows[i].want);
}

static void pods_that_end_by_themselves(void **state)
{
    (void)state;
    check_found((lists){.budgets = {BUDGET("d", "tight", WEB, "0")},
                        .pods = {POD("d", "a", "web"), POD("d", "z", "batch")},
                        .spared = "app=batch"},
                "d/z ");
    check_found((lists){.pods = {POD("d", "a", "web"), POD_OF("d", "z", "batch", "", "Failed")},
                        .spared = "app=batch"},
                "d/a ");
}

static bool without_memory(void *context)
{
    arena *a = arena_new(0);
    str found;
    bool good = a && find(context, a, &found);
    arena_free(a);
    return good;
}

static void memory(void **state)
{
    (void)state;
    lists all = {.budgets = {BUDGET("d", "tight", WEB, "0")}, .pods = {POD("d", "a", "web")}};
    check_each_allocation_fails(without_memory, &all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody),    cmocka_unit_test(pods),
        cmocka_unit_test(selectors), cmocka_unit_test(pods_that_end_by_themselves),
        cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
