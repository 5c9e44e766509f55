/* SPDX-License-Identifier: Apache-2.0 */
/* People, nodes and the server do anything, in any order, to two Skyhooks on the same nodes while
 * operators are killed and started. When all is well again every node is complete, and none is
 * left cordoned. SEED=number repeats one tale, TALES=number tells so many. */
#include "support/check.h"

#include "base/strmap.h"
#include "support/operator_story.h"

#define TALES 500
#define TALE_NODES 4
#define ACTS_MOST 24
#define BETWEEN_MS 6000
#define NOTE(key, value)                                                                           \
    "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/" key "\":" value "}}}"
#define LABEL(key, value) "{\"metadata\":{\"labels\":{\"" key "\":" value "}}}"
#define PACKAGE(name, what) "{\"spec\":{\"packages\":{\"" name "\":{" what "}}}}"
#define READY(word) "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" word "\"}]}}"
#define FILES(a, b) "\"configMap\":{\"a.conf\":\"" a "\",\"b.conf\":\"" b "\"}"
#define CAN_GO(apply) "\"uninstall\":{\"enabled\":true,\"apply\":" apply "}"
#define FIRST_FILES FILES("x", "x")
#define STAYS CAN_GO("false")
#define PAIR(name, priority)                                                                       \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"deploymentPolicy\":\"p\",\"priority\":"     \
    "" priority ",\"nodeSelectors\":{\"matchLabels\":{\"pool\":\"a\"}},\"packages\":{\"tune\":{"   \
    "\"version\":\"1.0.0\",\"image\":\"example.test/tune\",\"configInterrupts\":{\"a.conf\":"      \
    "{\"type\":\"service\",\"services\":[\"s\"]}}," FIRST_FILES "},\"tool\":{\"version\":"         \
    "\"1.0.0\",\"image\":\"example.test/tool\",\"interrupt\":{\"type\":\"reboot\"}," STAYS "}}}}"

static const char *const skyhooks[] = {"sk", "sl"};

static const char *const edits[] = {
    PACKAGE("tune", "\"version\":\"1.0.0\""),
    PACKAGE("tune", "\"version\":\"2.0.0\""),
    PACKAGE("tune", "\"version\":\"0.9.0\""),
    PACKAGE("tune", FILES("1", "1")),
    PACKAGE("tune", FILES("2", "1")),
    PACKAGE("tune", "\"dependsOn\":{\"tool\":\"1.0.0\"}"),
    PACKAGE("tune", "\"dependsOn\":null"),
    PACKAGE("tool", CAN_GO("true")),
    PACKAGE("tool", CAN_GO("false")),
    PACKAGE("tool", "\"interrupt\":{\"type\":\"service\",\"services\":[\"t\"]}"),
    PACKAGE("tool", "\"interrupt\":null"),
    NOTE("pause", "\"true\""),
    NOTE("pause", "null"),
    NOTE("disable", "\"true\""),
    NOTE("disable", "null"),
    NOTE("acts", "\"[{\\\"act\\\":\\\"reset\\\"}]\""),
    "{\"spec\":{\"serial\":true,\"sequencing\":\"all\"}}",
    "{\"spec\":{\"serial\":false,\"priority\":3}}",
    "{\"spec\":{\"runtimeRequired\":true,\"autoTaintNewNodes\":true}}",
    "{\"spec\":{\"runtimeRequired\":false,\"autoTaintNewNodes\":false}}",
    "{\"status\":null}",
};
static const char *const node_edits[] = {
    LABEL("skyhook.nvidia.com/ignore", "\"true\""),
    LABEL("skyhook.nvidia.com/ignore", "null"),
    LABEL("pool", "\"a\""),
    LABEL("pool", "\"b\""),
    "{\"spec\":{\"taints\":[{\"key\":\"x\",\"effect\":\"NoSchedule\"}]}}",
    "{\"spec\":{\"taints\":null}}",
    READY("Unknown"),
    READY("True"),
    NOTE("nodeState_sk", "null"),
    NOTE("nodeState_sl", "null"),
};

typedef struct tale {
    fake *f;
    rng dice;
    bool uncordoned[TALE_NODES]; /* once: who does it twice wants it so */
} tale;

static bool refusing; /* budgets, for a while */

static bool refuses(fake *f, const char *pod_name)
{
    (void)f;
    (void)pod_name;
    return refusing;
}

static bool fails_some(fake *f, const char *job)
{
    (void)f;
    return str_hash(str_of(job)) % 9 == 0;
}

static bool reboots_some(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-interrupt-") && !strstr(job, "-post-") && str_hash(str_of(job)) % 3 == 0;
}

static void name_node(char out[16], size_t index)
{
    snprintf(out, 16, "n%02zu", index);
}

static void lose_a_job(fake *f, const char *on)
{
    char name[FAKE_NAME_BYTES];
    snprintf(name, sizeof name, "%s", first_job(f, on));
    if (name[0] != '\0')
        fake_delete(f, FAKE_JOBS, name);
}

static void toggle_policy(fake *f)
{
    if (fake_find(f, FAKE_POLICIES, "p"))
        fake_delete(f, FAKE_POLICIES, "p");
    else
        fake_create(f, FAKE_POLICIES, policy);
}

static void uncordon(tale *t, size_t index)
{
    char name[16];
    name_node(name, index);
    if (!t->uncordoned[index])
        fake_edit(t->f, FAKE_NODES, name, "{\"spec\":{\"unschedulable\":null}}");
    t->uncordoned[index] = true;
}

static void arm(tale *t)
{
    fake_arm(t->f, (fake_plan){.fault = (fake_fault)rng_below(&t->dice, FAKE_FAULT_COUNT),
                               .at = 1 + rng_below(&t->dice, 6),
                               .answers_last = rng_below(&t->dice, 2)});
}

static void happen(tale *t)
{
    size_t index = rng_below(&t->dice, TALE_NODES), of = rng_below(&t->dice, 2);
    char name[16];
    name_node(name, index);
    switch (rng_below(&t->dice, 20)) {
    case 0: fake_start(t->f); break;
    case 1: fake_end_side(&t->f->sides[0]); break;
    case 2: arm(t); break;
    case 3: lose_a_job(t->f, name); break;
    case 4: toggle_policy(t->f); break;
    case 5: refusing = !refusing; break;
    case 6: fake_reboot(t->f, name, true); break;
    case 7: uncordon(t, index); break;
    case 8:
    case 9:
    case 10:
    case 11:
        fake_edit(t->f, FAKE_NODES, name, node_edits[rng_below(&t->dice, COUNT_OF(node_edits))]);
        break;
    default:
        fake_edit(t->f, FAKE_SKYHOOKS, skyhooks[of], edits[rng_below(&t->dice, COUNT_OF(edits))]);
    }
}

static void repair(fake *f)
{
    char name[16];
    f->fails = NULL;
    refusing = false;
    fake_arm(f, (fake_plan){0});
    if (!fake_find(f, FAKE_POLICIES, "p"))
        fake_create(f, FAKE_POLICIES, policy);
    for (size_t i = 0; i < COUNT_OF(skyhooks); i++) {
        fake_edit(f, FAKE_SKYHOOKS, skyhooks[i], NOTE("pause", "null"));
        fake_edit(f, FAKE_SKYHOOKS, skyhooks[i], NOTE("disable", "null"));
        fake_edit(f, FAKE_SKYHOOKS, skyhooks[i], PACKAGE("tool", CAN_GO("false")));
    }
    for (size_t i = 0; i < TALE_NODES; i++) {
        name_node(name, i);
        fake_edit(f, FAKE_NODES, name, LABEL("skyhook.nvidia.com/ignore", "null"));
        fake_edit(f, FAKE_NODES, name, LABEL("pool", "\"a\""));
        fake_edit(f, FAKE_NODES, name, READY("True"));
        fake_edit(f, FAKE_NODES, name, "{\"spec\":{\"taints\":null}}");
    }
    if (!f->sides[0].shell)
        fake_start(f);
    fake_run(f, -1);
}

static void check_end(fake *f, uint64_t seed)
{
    char name[16];
    for (size_t i = 0; i < COUNT_OF(skyhooks); i++) {
        const char *done = fake_text(f, FAKE_SKYHOOKS, skyhooks[i], "/status/completeNodes");
        check_msg(strcmp(done, "4/4") == 0, "SEED=%llu: %s %s\n%s", (unsigned long long)seed,
                  skyhooks[i], done, f->log.ptr);
    }
    for (size_t i = 0; i < TALE_NODES; i++) {
        name_node(name, i);
        check_msg(!yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable")),
                  "SEED=%llu: %s is cordoned\n%s", (unsigned long long)seed, name, f->log.ptr);
    }
}

static void tell(uint64_t seed)
{
    tale t = {.f = fake_new(), .dice = {seed}};
    t.f->fails = fails_some;
    t.f->reboots = reboots_some;
    t.f->refuses = refuses;
    fake_add_nodes(t.f, TALE_NODES);
    fake_create(t.f, FAKE_POLICIES, policy);
    fake_create(t.f, FAKE_SKYHOOKS, PAIR("sk", "1"));
    fake_create(t.f, FAKE_SKYHOOKS, PAIR("sl", "2"));
    if (rng_below(&t.dice, 2))
        add_pods(t.f);
    fake_start(t.f);
    size_t acts = 3 + rng_below(&t.dice, ACTS_MOST);
    for (size_t i = 0; i < acts; i++) {
        fake_run(t.f, (int64_t)rng_below(&t.dice, BETWEEN_MS));
        happen(&t);
    }
    repair(t.f);
    check_end(t.f, seed);
    fake_free(t.f);
}

static void all_is_well_in_the_end(void **state)
{
    (void)state;
    const char *fixed = getenv("SEED");
    if (fixed) {
        tell(strtoull(fixed, NULL, 10));
        return;
    }
    const char *more = getenv("TALES");
    uint64_t count = more ? strtoull(more, NULL, 10) : TALES;
    for (uint64_t seed = 1; seed <= count; seed++)
        tell(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_is_well_in_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
