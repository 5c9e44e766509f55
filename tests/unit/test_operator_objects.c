/* SPDX-License-Identifier: Apache-2.0 */
/* The Jobs and ConfigMaps the operator makes, to the last byte. */
#include "support/check.h"

#include "model/shape.h"
#include "operator/act_request.h"
#include "operator/config_map.h"
#include "support/documents.h"

static const char simple[] =
    "apiVersion: skyhook.nvidia.com/v1alpha1\n"
    "kind: Skyhook\n"
    "metadata: {name: simple-skyhook, uid: 11111111-2222-3333-4444-555555555555, generation: 3}\n"
    "spec:\n"
    "  additionalTolerations: [{key: dedicated, operator: Exists, effect: NoExecute}]\n"
    "  packages:\n"
    "    dexter: {version: 1.2.3, image: example.test/dexter}\n"
    "    full:\n"
    "      version: v2.0.1\n"
    "      image: example.test:5000/full\n"
    "      containerSHA: sha256:abc\n"
    "      agentImageOverride: example.test/agent:9\n"
    "      interrupt: {type: service, services: [cron, containerd]}\n"
    "      configInterrupts: {'*.conf': {type: reboot}}\n"
    "      configMap: {a.conf: 'x < y', b.txt: two}\n"
    "      env: [{name: ONE, value: '1'}, {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: "
    "k}}}]\n"
    "      resources: {cpuRequest: 100m, cpuLimit: 1, memoryRequest: 64Mi, memoryLimit: 128Mi}\n"
    "      gracefulShutdown: 46s\n"
    "      stageTimeout: 1500ms\n";

static loaded l;

static const skyhook *loaded_skyhook(void)
{
    assert_true(l.good);
    return l.objects->at[0].skyhook;
}

static int set_up(void **state)
{
    (void)state;
    l = load_text("simple", str_of(simple));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    loaded_free(&l);
    return 0;
}

static job_order order_of(const char *name, package_stage stage)
{
    const skyhook *s = loaded_skyhook();
    return (job_order){.skyhook = s,
                       .package = skyhook_package(s, str_of(name)),
                       .stage = stage,
                       .node = STR("kind-worker"),
                       .attempt = 7,
                       .generation = 2,
                       .node_order = 4};
}

/* The file holds the same JSON, laid out for reading. An API server is shown it, too. */
static void check_file(str got, const char *file)
{
    char path[512];
    snprintf(path, sizeof path, TEST_DATA "/operator/%s.json", file);
    buf text = file_content(path);
    check_msg(!text.failed, "%s cannot be read", path);
    arena *a = arena_new(0);
    err error;
    yyjson_val *want = json_parse(a, buf_str(&text), &error);
    check_msg(want != NULL, "%s: %s", path, error.text);
    buf compact = BUF(JOB_BYTES_MAX);
    json_write(&compact, want);
    check_str(got, buf_str(&compact));
    buf_done(&compact);
    buf_done(&text);
    arena_free(a);
}

static void check_job(const job_settings *s, const job_order *o, const char *file)
{
    buf out = BUF(JOB_BYTES_MAX);
    err error;
    check_msg(job_object_put(&out, s, o, &error), "%s", error.text);
    check_file(buf_str(&out), file);
    buf_done(&out);
}

/* ---- names ---- */

static void check_safe_name(size_t most, const char *const *parts, const char *want)
{
    str at[8];
    size_t len = 0;
    for (; parts[len]; len++)
        at[len] = str_of(parts[len]);
    buf out = BUF(1024);
    safe_name(&out, most, (name_parts){at, len});
    check_text(buf_str(&out), want);
    buf_done(&out);
}

static void test_safe_names(void **state)
{
    (void)state;
#define NAME(most, want, ...) check_safe_name(most, (const char *const[]){__VA_ARGS__, NULL}, want)
    NAME(63, "simple-skyhook-dexter-1-2-3-apply-kind-worker-2555fea2", "simple-skyhook", "dexter",
         "1.2.3", "apply", "kind-worker");
    NAME(63, "simple-skyhook-dexter-1-2-3-config-kind-worker-3f80b8a9", "simple-skyhook", "dexter",
         "1.2.3", "config", "kind-worker");
    NAME(63, "tuning-nvidia-tuned-0-2-2-config-ip-10-0-129-107-ec2-i-6951ed0c", "tuning",
         "nvidia-tuned", "0.2.2", "config", "ip-10-0-129-107.ec2.internal");
    NAME(63, "tuning-nvidia-tuned-0-2-2-config-ip-10-0-213-202-ec2-i-89800d68", "tuning",
         "nvidia-tuned", "0.2.2", "config", "ip-10-0-213-202.ec2.internal");
    NAME(63, "a-very-long-skyhook-name-for-testing-some-long-package-29987cd6",
         "a-very-long-skyhook-name-for-testing", "some-long-package", "10.20.30", "post-interrupt",
         "ip-10-0-129-107.us-west-2.compute.internal");
    NAME(63, "interrupt-interrupt-reboot-kind-worker-c82cb111", "interrupt", "interrupt", "reboot",
         "kind-worker");
    NAME(63, "explicit-uninstall-uninstall-interrupt-reboot-kind-wor-a9694672",
         "explicit-uninstall", "uninstall-interrupt", "reboot", "kind-worker");
    NAME(253, "simple-skyhook-kind-worker-metadata-52688a8e", "simple-skyhook", "kind-worker",
         "metadata");
    NAME(63, "metadata-kind-worker-8bfc3f3a", "metadata", "kind-worker");
#undef NAME
}

/* An annotation's name has no second slash, and 63 letters. */
static void test_names_of_taints(void **state)
{
    (void)state;
    static const struct {
        const char *key, *name;
    } rows[] = {
        {"skyhook.nvidia.com", "autoTaint_skyhook.nvidia.com"},
        {"boot", "autoTaint_boot"},
        {"nodes.example.test/boot", "autoTaint_nodes-example-test-boot-"},
        {"nodes.example.test/a-very-long-name-of-a-taint-that-leaves-no-room",
         "autoTaint_nodes-example-test-a-very-long-name-of-a-tai-"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf out = BUF(4096);
        err error;
        auto_taint_name(&out, str_of(rows[i].key));
        check_text(str_part(buf_str(&out), 0, strlen(rows[i].name)), rows[i].name);
        assert_true(label_value_check(buf_str(&out), &error));
        buf_done(&out);
    }
}

static void test_object_names(void **state)
{
    (void)state;
    job_order o = order_of("dexter", STAGE_APPLY);
    buf out = BUF(1024);
    package_config_map_name(&out, STR("simple-skyhook"), o.package);
    check_text(buf_str(&out), "simple-skyhook-dexter-1.2.3");
    buf_clear(&out);
    package built = {.name = STR("dexter"), .version = STR("1.2.3-RC1+b")};
    package_config_map_name(&out, STR("s"), &built);
    check_text(buf_str(&out), "s-dexter-1.2.3-rc1-b");
    buf_clear(&out);
    assert_false(label_value_put(&out, STR("dexter-1.2.3")));
    check_text(buf_str(&out), "dexter-1.2.3");
    buf_clear(&out);
    assert_true(label_value_put(&out, STR("dexter-1.2.3+b")));
    check_text(buf_str(&out), "dexter-1-2-3-b-d45ad9b1");
    buf_done(&out);
}

/* Attempts, and whatever else an attempt is of, make other names, all of them names. */
static void test_job_names_differ(void **state)
{
    (void)state;
    job_order o = order_of("dexter", STAGE_APPLY);
    job_key key = job_order_key(&o);
    key.skyhook = STR("a-skyhook-with-a-name-that-is-longer-than-the-longest-name-of-a-job");
    buf first = BUF(256), second = BUF(256);
    job_name(&first, &key);
    key.attempt++;
    job_name(&second, &key);
    assert_int_equal(first.len, JOB_NAME_BYTES);
    assert_int_equal(second.len, JOB_NAME_BYTES);
    assert_false(str_eq(buf_str(&first), buf_str(&second)));
    buf_done(&first);
    buf_done(&second);
}

/* ---- Jobs ---- */

static void test_jobs(void **state)
{
    (void)state;
    job_settings s = job_settings_default;
    job_order o = order_of("dexter", STAGE_APPLY);
    check_job(&s, &o, "job-apply");
    o = order_of("full", STAGE_POST_INTERRUPT);
    s.image_pull_secret = STR("pull");
    s.host_root = STR("/mnt/host");
    check_job(&s, &o, "job-full");
    o = order_of("full", STAGE_INTERRUPT);
    o.interrupt = STR("{\"type\":\"service\",\"services\":[\"containerd\",\"cron\"]}");
    check_job(&s, &o, "job-interrupt");
    o = order_of("dexter", STAGE_UNINSTALL);
    o.node = STR("a-node-whose-name.is-longer-than.sixty-three-letters.as-those-of.clouds-are");
    s.image_pull_policy = STR("Never");
    s.namespace_ = STR("elsewhere");
    check_job(&s, &o, "job-long-node");
}

static void test_interrupt_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *want;
    } rows[] = {
        {"{\"type\":\"reboot\"}", "eyJ0eXBlIjoibm9kZV9yZXN0YXJ0In0="},
        {"{\"type\":\"service\",\"services\":[\"containerd\",\"cron\",\"foobar\"]}",
         "eyJ0eXBlIjoic2VydmljZV9yZXN0YXJ0Iiwic2VydmljZXMiOlsiY29udGFpbmVyZCIsImNyb24iLCJmb29iYXI"
         "iXX0="},
        {"{\"type\":\"noop\"}", "eyJ0eXBlIjoibm9fb3AifQ=="},
        {"{\"type\":\"restartAllServices\"}", "eyJ0eXBlIjoicmVzdGFydF9hbGxfc2VydmljZXMifQ=="},
    };
    err error;
    buf out = BUF(4096);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf_clear(&out);
        assert_true(interrupt_argument_put(&out, str_of(rows[i].json), &error));
        check_text(buf_str(&out), rows[i].want);
    }
    assert_false(interrupt_argument_put(&out, STR("{\"type\":\"later\"}"), &error));
    check_err(error, "the interrupt has the type \"later\"");
    assert_false(interrupt_argument_put(&out, STR("{}"), &error));
    assert_false(interrupt_argument_put(&out, STR("nonsense"), &error));
    check_err_has(error, "the interrupt: ");
    buf_done(&out);
    job_order o = order_of("full", STAGE_INTERRUPT);
    o.interrupt = STR("{}");
    assert_false(job_object_put(&out, &job_settings_default, &o, &error));
    check_err(error, "Job of full: the interrupt has the type \"\"");
    buf_done(&out);
}

static bool make_job(void *context)
{
    buf out = BUF(JOB_BYTES_MAX);
    err error;
    bool made = job_object_put(&out, &job_settings_default, context, &error);
    buf_done(&out);
    return made;
}

static void test_jobs_without_memory(void **state)
{
    (void)state;
    job_order o = order_of("full", STAGE_INTERRUPT);
    o.interrupt = STR("{\"type\":\"service\",\"services\":[\"cron\"]}");
    check_each_allocation_fails(make_job, &o);
    o = order_of("full", STAGE_CONFIG);
    check_each_allocation_fails(make_job, &o);
}

/* ---- reading back ---- */

/* Writes a Job, reads it as the operator would, and gets the same key. */
static void check_round_trip(const job_order *o)
{
    buf text = BUF(JOB_BYTES_MAX);
    err error;
    assert_true(job_object_put(&text, &job_settings_default, o, &error));
    arena *a = arena_new(0);
    yyjson_val *root = json_parse(a, buf_str(&text), &error);
    buf part = BUF(JOB_BYTES_MAX);
    json_write(&part, yyjson_obj_get(root, "metadata"));
    metadata m;
    check_msg(shape_parse(a, &metadata_shape, buf_str(&part), &m, &error), "%s", error.text);
    job_key want = job_order_key(o);
    job_key got;
    check_msg(job_key_read(a, &m, &got, &error), "%s", error.text);
    assert_true(job_key_equal(&got, &want));
    want.attempt++;
    assert_false(job_key_equal(&got, &want));
    buf_done(&part);
    buf_done(&text);
    arena_free(a);
}

static void test_keys(void **state)
{
    (void)state;
    job_order o = order_of("dexter", STAGE_APPLY);
    check_round_trip(&o);
    o.node = STR("a-node-whose-name.is-longer-than.sixty-three-letters.as-those-of.clouds-are");
    check_round_trip(&o);
    o = order_of("full", STAGE_UNINSTALL_INTERRUPT);
    o.interrupt = STR("{\"type\":\"reboot\"}");
    check_round_trip(&o);
}

static bool read_key(const char *annotation, const char *attempt, job_key *ret, err *error)
{
    static arena *a;
    arena_free(a);
    a = arena_new(0);
    label notes[] = {{STR(KEY_ATTEMPT), str_of(attempt)}, {STR(KEY_PACKAGE), str_of(annotation)}};
    metadata m = {0};
    m.annotations = *attempt ? (label_set){notes, 2} : (label_set){notes + 1, 1};
    bool read = job_key_read(a, &m, ret, error);
    if (!read)
        a = arena_free(a);
    return read;
}

static void test_strange_keys(void **state)
{
    (void)state;
    job_key key;
    err error;
    /* A raw pod of an older operator has no attempt. */
    static const char good[] = "{\"name\":\"dax\",\"version\":\"1\",\"skyhook\":\"s\","
                               "\"stage\":\"apply\",\"image\":\"i\"}";
    assert_true(read_key(good, "", &key, &error));
    assert_int_equal(key.attempt, 0);
    assert_int_equal(key.stage, STAGE_APPLY);
    check_text(key.package, "dax");
    check_text(key.node, "");
    assert_false(read_key(good, "0", &key, &error));
    assert_false(read_key(good, "x", &key, &error));
    check_err(error, "annotation skyhook.nvidia.com/attempt: found \"x\", allowed 1, 2, ...");
    assert_false(read_key("{\"name\":1}", "", &key, &error));
    check_err(error, "annotation skyhook.nvidia.com/package: found no name");
    assert_false(read_key("[", "", &key, &error));
    assert_false(read_key("{\"name\":\"d\",\"version\":\"1\",\"skyhook\":\"s\",\"stage\":\"\"}", "",
                          &key, &error));
    check_err(error, "annotation skyhook.nvidia.com/package: found the stage \"\"");
    metadata none = {0};
    assert_false(job_key_read(NULL, &none, &key, &error));
    check_err(error, "annotation skyhook.nvidia.com/package: found nothing");
}

/* ---- ConfigMaps ---- */

static void test_config_maps(void **state)
{
    (void)state;
    const skyhook *s = loaded_skyhook();
    buf out = BUF(JOB_BYTES_MAX);
    package_config_map_put(&out, &job_settings_default, s, skyhook_package(s, STR("full")));
    check_file(buf_str(&out), "config-map-package");
    buf_clear(&out);
    const label labels[] = {{STR("kubernetes.io/os"), STR("linux")},
                            {STR("skyhook.nvidia.com/status_simple-skyhook"), STR("waiting")}};
    const label notes[] = {{STR("note"), STR("a & \"b\"")},
                           {STR("skyhook.nvidia.com/nodeState_simple-skyhook"), STR("{}")}};
    buf texts[3] = {BUF(JOB_BYTES_MAX), BUF(JOB_BYTES_MAX), BUF(JOB_BYTES_MAX)};
    node_annotations_put(&texts[0], (label_set){notes, 2});
    node_labels_put(&texts[1], (label_set){labels, 2});
    node_packages_put(&texts[2], &job_settings_default, s);
    node_files files = {buf_str(&texts[0]), buf_str(&texts[1]), buf_str(&texts[2])};
    assert_true(job_carries(&files));
    node_config_map_put(&out, &job_settings_default, s, STR("kind-worker"), &files);
    check_file(buf_str(&out), "config-map-node");
    /* The same texts in a Job, which has no ConfigMap of the node then. */
    buf_clear(&out);
    err error;
    job_order o = order_of("full", STAGE_CONFIG);
    o.files = &files;
    assert_true(job_object_put(&out, &job_settings_default, &o, &error));
    check_file(buf_str(&out), "job-files");
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        buf_done(&texts[i]);
    buf_done(&out);
    files.labels.len = JOB_FILES_BYTES_MAX;
    assert_false(job_carries(&files));
}

/* ---- what a person asks ---- */

static void test_act_requests(void **state)
{
    (void)state;
    static const fact_act acts[] = {
        {.act = ACT_RESET, .keep_batches = true},
        {.act = ACT_RESET_BATCHES, .who = {"me", 2}},
        {.act = ACT_RESET, .target = {"n\"1", 3}, .package = {"p", 1}, .stage = {"config", 6}},
    };
    buf text = BUF(4096), next = BUF(4096);
    err error;
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        buf_clear(&next);
        assert_true(act_request_add(&next, buf_str(&text), ACT_OF_SKYHOOK, &acts[i], &error));
        buf_clear(&text);
        buf_add(&text, buf_str(&next));
    }
    check_text(
        buf_str(&text),
        "[{\"act\":\"reset\",\"keepBatches\":true},{\"act\":\"resetBatches\",\"who\":\"me\"},"
        "{\"act\":\"reset\",\"target\":\"n\\\"1\",\"package\":\"p\",\"stage\":\"config\"}]");
    arena *a = arena_new(0);
    act_list list;
    act_subject sk = {ACT_OF_SKYHOOK, STR("sk")}, app = {ACT_OF_BUNDLE, STR("ns/b")};
    assert_true(act_requests_read(a, buf_str(&text), sk, &list, &error));
    assert_int_equal(list.len, 3);
    check_text(list.at[2].change, "sk");
    check_text(list.at[2].target, "n\"1");
    check_text(list.at[2].stage, "config");
    assert_true(list.at[0].keep_batches && !list.at[1].keep_batches);
    assert_false(act_requests_read(a, STR("[{\"act\":\"freeze\"}]"), sk, &list, &error));
    check_err(error, "annotation skyhook.nvidia.com/acts: found the act \"freeze\"");
    /* Each has acts of its own. */
    static const fact_act approval = {.act = ACT_APPROVE, .partition = {"canary", 6}};
    buf_clear(&next);
    assert_true(act_request_add(&next, STR_EMPTY, ACT_OF_BUNDLE, &approval, &error));
    check_text(buf_str(&next), "[{\"act\":\"approve\",\"partition\":\"canary\"}]");
    assert_true(act_requests_read(a, buf_str(&next), app, &list, &error));
    assert_int_equal(list.len, 1);
    check_text(list.at[0].change, "ns/b");
    check_text(list.at[0].partition, "canary");
    assert_false(act_requests_read(a, buf_str(&next), sk, &list, &error));
    assert_false(act_requests_read(a, buf_str(&text), app, &list, &error));
    check_err(error, "annotation drover.dev/acts: found the act \"reset\"");
    assert_false(act_requests_read(a, STR("{}"), sk, &list, &error));
    assert_false(act_requests_read(a, STR("["), sk, &list, &error));
    /* What nobody could read is replaced. */
    buf_clear(&next);
    assert_true(act_request_add(&next, STR("nonsense"), ACT_OF_SKYHOOK, &acts[1], &error));
    check_text(buf_str(&next), "[{\"act\":\"resetBatches\",\"who\":\"me\"}]");
    buf_done(&next);
    buf_done(&text);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safe_names),
        cmocka_unit_test(test_object_names),
        cmocka_unit_test(test_job_names_differ),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_interrupt_arguments),
        cmocka_unit_test(test_jobs_without_memory),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_strange_keys),
        cmocka_unit_test(test_config_maps),
        cmocka_unit_test(test_act_requests),
        cmocka_unit_test(test_names_of_taints),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
