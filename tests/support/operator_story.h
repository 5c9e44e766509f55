/* SPDX-License-Identifier: Apache-2.0 */
/* operator_story.h - what happens to a small fleet around a node shell, and what must hold then.
 *
 * A story makes a fleet of NODES nodes with a budget of LIMIT, lets it run to its end, and returns
 * it. After every write that took effect the limits are looked at, in what the Skyhook says and in
 * what is really out of service. */
#ifndef DROVER_TESTS_SUPPORT_OPERATOR_STORY_H
#define DROVER_TESTS_SUPPORT_OPERATOR_STORY_H

#include "support/fake_cluster.h"

#define LIMIT 3
#define NODES 8

static const char policy[] =
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"default\":{\"budget\":{\"count\":3},\"strategy\":"
    "{\"exponential\":{\"initialBatch\":1}}}}}";
static const char skyhook_plain[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":{\"tune\":"
    "{\"version\":\"1.0.0\",\"image\":\"example.test/tune\"}}}}";

static const char skyhook_interrupt[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":{\"tune\":"
    "{\"version\":\"1.0.0\",\"image\":\"example.test/tune\",\"interrupt\":{\"type\":"
    "\"reboot\"},\"uninstall\":{\"enabled\":true,\"apply\":false}}}}}";
static const char skyhook_required[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"runtimeRequired\":true,"
    "\"autoTaintNewNodes\":true,\"packages\":{\"tune\":{\"version\":\"1.0.0\",\"image\":"
    "\"example.test/tune\"}}}}";

static const char skyhook_files[] =
    "{\"metadata\":{\"name\":\"sk\"},\"spec\":{\"deploymentPolicy\":\"p\",\"packages\":{\"tune\":"
    "{\"version\":\"1.0.0\",\"image\":\"example.test/tune\",\"configMap\":{\"a.conf\":\"old\"}}}}}";

/* Two that want the same nodes, one after the other. */
#define SHARED_NODES 2
#define SHARED_SKYHOOK(name, priority)                                                             \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"priority\":" priority                       \
    ",\"packages\":{\"tune-" name "\":{\"version\":\"1.0.0\",\"image\":\"example.test/tune\""      \
    ",\"interrupt\":{\"type\":\"service\",\"services\":[\"" name "\"]}}}}}"

/* ---- what must hold after every write ---- */

/* Who holds a claim, as the Skyhook's status says. */
static inline size_t claims(fake *f, const char *name)
{
    size_t count = 0;
    yyjson_val *groups = fake_get(f, FAKE_SKYHOOKS, name, "/status/compartmentStatuses");
    yyjson_obj_iter walk = yyjson_obj_iter_with(groups);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *g = yyjson_obj_iter_get_val(key);
        count += yyjson_arr_size(yyjson_ptr_get(g, "/batchState/members"));
        count += yyjson_arr_size(yyjson_ptr_get(g, "/batchState/retrying"));
    }
    return count;
}

static inline bool list_has(yyjson_val *list, const char *name)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(list);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (yyjson_equals_str(one, name))
            return true;
    return false;
}

static inline bool claimed(fake *f, const char *name, const char *node_name)
{
    yyjson_val *groups = fake_get(f, FAKE_SKYHOOKS, name, "/status/compartmentStatuses");
    yyjson_obj_iter walk = yyjson_obj_iter_with(groups);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *g = yyjson_obj_iter_get_val(key);
        if (list_has(yyjson_ptr_get(g, "/batchState/members"), node_name) ||
            list_has(yyjson_ptr_get(g, "/batchState/retrying"), node_name))
            return true;
    }
    return false;
}

/* Nodes that are out of service, or have a Job that has not ended. */
static inline void watch_disturbed(fake *f)
{
    size_t busy = 0;
    char name[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        bool disturbed = yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable"));
        for (size_t k = 0; k < f->count; k++)
            disturbed |=
                f->objects[k].ends_ms != REASON_NEVER &&
                strcmp(fake_text(f, FAKE_JOBS, f->objects[k].name, "/spec/template/spec/nodeName"),
                       name) == 0;
        busy += disturbed;
    }
    check_msg(busy <= LIMIT, "%zu nodes are disturbed\n%s", busy, f->log.ptr);
}

static inline void watch_limits(fake *f, const kube_write *w)
{
    watch_disturbed(f);
    check_msg(claims(f, "sk") <= LIMIT, "%zu claims\n%s", claims(f, "sk"), f->log.ptr);
    if (!str_eq(w->collection, STR(FAKE_JOBS)) || w->verb != WRITE_CREATE)
        return;
    char name[FAKE_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", STR_ARG(w->name));
    const char *on = fake_text(f, FAKE_JOBS, name, "/spec/template/spec/nodeName");
    check_msg(claimed(f, "sk", on), "a Job without a claim on %s\n%s", on, f->log.ptr);
    char key[] = "/metadata/annotations/skyhook.nvidia.com~1drover_sk";
    check_msg(strstr(fake_text(f, FAKE_NODES, on, key), "\"flags\":"), "no attempt on %s", on);
}

static inline bool holds_cordon(fake *f, const char *node_name, const char *by)
{
    char path[128];
    snprintf(path, sizeof path, "/metadata/annotations/skyhook.nvidia.com~1cordon_%s", by);
    return strcmp(fake_text(f, FAKE_NODES, node_name, path), "true") == 0;
}

/* Nobody gives a node back under another one, nor works on one that was. */
static inline void watch_cordons(fake *f, const kube_write *w)
{
    char name[FAKE_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", STR_ARG(w->name));
    bool interrupts = str_eq(w->collection, STR(FAKE_JOBS)) && strstr(name, "-interrupt-");
    const char *on =
        interrupts ? fake_text(f, FAKE_JOBS, name, "/spec/template/spec/nodeName") : name;
    if (!fake_find(f, FAKE_NODES, on) ||
        yyjson_get_bool(fake_get(f, FAKE_NODES, on, "/spec/unschedulable")))
        return;
    check_msg(!interrupts, "%s interrupts a node in service\n%s", name, f->log.ptr);
    check_msg(!holds_cordon(f, on, "sk") && !holds_cordon(f, on, "sl"),
              "%s is in service though it is held\n%s", on, f->log.ptr);
}

/* ---- ends ---- */

static inline void put_end_of(fake *f, const char *of, buf *out)
{
    static const char *const statuses[] = {"status", "completeNodes", "nodesInProgress",
                                           "nodeOrderOffset", "nodePriority"};
    char path[128];
    for (size_t k = 0; k < COUNT_OF(statuses); k++) {
        snprintf(path, sizeof path, "/status/%s", statuses[k]);
        buf_addf(out, "%s ", statuses[k]);
        yyjson_val *value = fake_get(f, FAKE_SKYHOOKS, of, path);
        if (value)
            json_write(out, value);
        buf_addc(out, '\n');
    }
}

/* Everything that a restart must not change, in one text. */
static inline void put_end(fake *f, buf *out)
{
    static const char *const notes[] = {"nodeState_sk", "status_sk", "cordon_sk",
                                        "nodeState_sl", "status_sl", "cordon_sl"};
    char path[128], name[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        for (size_t k = 0; k < COUNT_OF(notes); k++) {
            snprintf(path, sizeof path, "/metadata/annotations/skyhook.nvidia.com~1%s", notes[k]);
            buf_addf(out, "%s %s %s\n", name, notes[k], fake_text(f, FAKE_NODES, name, path));
        }
        buf_addf(out, "%s %d\n", name,
                 yyjson_get_bool(fake_get(f, FAKE_NODES, name, "/spec/unschedulable")));
    }
    put_end_of(f, "sk", out);
    put_end_of(f, "sl", out);
}

static inline fake *begin(const char *of_skyhook)
{
    fake *f = fake_new();
    f->watch = watch_limits;
    fake_add_nodes(f, NODES);
    fake_create(f, FAKE_POLICIES, policy);
    fake_create(f, FAKE_SKYHOOKS, of_skyhook);
    fake_start(f);
    return f;
}

static inline size_t count_in(const buf *text, const char *part)
{
    size_t count = 0;
    str rest = buf_str(text);
    for (size_t at; (at = str_find(rest, str_of(part))) != SIZE_MAX; count++)
        rest = str_part(rest, at + 1, SIZE_MAX);
    return count;
}

static inline size_t count_lines(const fake *f, const char *part)
{
    return count_in(&f->log, part);
}

/* ---- what there is ---- */

static inline const char *status_of(fake *f, const char *node_name)
{
    return fake_text(f, FAKE_NODES, node_name,
                     "/metadata/annotations/skyhook.nvidia.com~1status_sk");
}

/* Why a Skyhook is not done on the node, of the first that selects it. */
static inline str sentence_of(fake *f, arena *a, const char *node_name)
{
    const engine *e = node_shell_engine(f->shell);
    for (placement_id id = 1; id < FAKE_OBJECTS_MAX; id++) {
        placement_view view = {0};
        reasons why = {0};
        if (engine_placement(e, id, &view) && str_eq(view.target, str_of(node_name)) &&
            engine_reasons(e, id, a, &why))
            return engine_sentence(a, &view, &why);
    }
    return STR_EMPTY;
}

static inline const char *first_job(fake *f, const char *part)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->objects[i].collection, FAKE_JOBS) == 0 && strstr(f->objects[i].name, part))
            return f->objects[i].name;
    return "";
}

/* The pod that the Job controller would make of the Job with that uid. */
static inline void make_pod(fake *f, const char *name, const char *job, const char *uid)
{
    const fake_object *o = fake_find(f, FAKE_JOBS, job);
    assert_non_null(o);
    buf text = BUF(1u << 20);
    buf_addf(&text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" FAKE_SPACE
             "\",\"ownerReferences\":[{\"kind\":\"Job\",\"uid\":\"%s\"}],\"annotations\":",
             name, uid);
    json_write(&text, yyjson_doc_ptr_get(o->doc, "/spec/template/metadata/annotations"));
    buf_addz(&text, ",\"labels\":{\"batch.kubernetes.io/job-name\":");
    buf_add_json(&text, str_of(job));
    buf_addz(&text, ",\"skyhook.nvidia.com/name\":\"sk\"}},\"spec\":{\"nodeName\":\"n00\"},"
                    "\"status\":{\"phase\":\"Running\"}}");
    fake_create(f, FAKE_PODS, text.ptr);
    buf_done(&text);
}

/* ---- stories ---- */

typedef fake *(*story)(fake_plan plan);

static inline bool fails_on_n01(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-apply-n01-1-") != NULL;
}

/* The first Jobs of both its stages; those that fail stay until one succeeds. */
static inline bool fails_twice_on_n01(fake *f, const char *job)
{
    size_t of_config = 0;
    for (size_t i = 0; i < f->count; i++)
        of_config += strstr(f->objects[i].name, "-config-n01-") != NULL;
    return fails_on_n01(f, job) || (strstr(job, "-config-n01-") && of_config == 1);
}

static inline bool reboots_first(fake *f, const char *job)
{
    (void)f;
    return strstr(job, "-interrupt-") && strstr(job, "-3-") && !strstr(job, "-post-");
}

static inline void add_pods(fake *f)
{
    char text[256];
    for (int i = 0; i < NODES; i++) {
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"name\":\"app-%02d\",\"namespace\":\"default\"},\"spec\":"
                 "{\"nodeName\":\"n%02d\"},\"status\":{\"phase\":\"Running\"}}",
                 i, i);
        fake_create(f, "/api/v1/namespaces/default/pods", text);
    }
}

static inline fake *interrupt_story(fake_plan plan)
{
    fake *f = begin(skyhook_interrupt);
    add_pods(f);
    fake_arm(f, plan);
    f->reboots = reboots_first;
    fake_run(f, -1);
    return f;
}

static inline size_t tainted(fake *f)
{
    size_t count = 0;
    char name[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        count +=
            strcmp(fake_text(f, FAKE_NODES, name, "/spec/taints/0/value"), "runtime-required") == 0;
    }
    return count;
}

static inline fake *install_story(fake_plan plan)
{
    fake *f = begin(skyhook_plain);
    fake_arm(f, plan);
    fake_run(f, -1);
    return f;
}

static inline fake *failure_story(fake_plan plan)
{
    fake *f = begin(skyhook_plain);
    fake_arm(f, plan);
    f->fails = fails_twice_on_n01;
    fake_run(f, -1);
    return f;
}

static inline fake *upgrade_story(fake_plan plan)
{
    fake *f = begin(skyhook_plain);
    fake_run(f, 4500); /* some are done, some are in flight */
    fake_arm(f, plan);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"version\":\"2.0.0\"}}}}");
    fake_run(f, -1);
    return f;
}

/* A person resets everything in the middle. */
static inline fake *acts_story(fake_plan plan)
{
    fake *f = begin(skyhook_plain);
    fake_run(f, 4500);
    fake_arm(f, plan);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"annotations\":{\"skyhook.nvidia.com/acts\":"
              "\"[{\\\"act\\\":\\\"reset\\\"}]\"}}}");
    fake_run(f, -1);
    assert_null(fake_get(f, FAKE_SKYHOOKS, "sk", "/metadata/annotations/skyhook.nvidia.com~1acts"));
    return f;
}

/* The files of a package change in the middle: nobody gets the old ones afterwards. */
static inline fake *files_story(fake_plan plan)
{
    fake *f = begin(skyhook_files);
    fake_run(f, 4500);
    fake_arm(f, plan);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"spec\":{\"packages\":{\"tune\":{\"configMap\":{\"a.conf\":\"new\"}}}}}");
    fake_run(f, -1);
    check_text(str_of(fake_text(f, FAKE_MAPS, "sk-tune-1.0.0", "/data/a.conf")), "new");
    return f;
}

/* Two Skyhooks take the same nodes out of service, the second as soon as the first is done. */
static inline fake *begin_shared(void)
{
    fake *f = fake_new();
    f->watch = watch_cordons;
    fake_add_nodes(f, SHARED_NODES);
    fake_create(f, FAKE_SKYHOOKS, SHARED_SKYHOOK("sk", "1"));
    fake_create(f, FAKE_SKYHOOKS, SHARED_SKYHOOK("sl", "2"));
    fake_start(f);
    return f;
}

static inline fake *shared_story(fake_plan plan)
{
    fake *f = begin_shared();
    fake_arm(f, plan);
    fake_run(f, -1);
    return f;
}

static inline fake *required_story(fake_plan plan)
{
    fake *f = begin(skyhook_required);
    fake_arm(f, plan);
    fake_run(f, -1);
    assert_int_equal(tainted(f), 0);
    return f;
}

static inline fake *deletion_story(fake_plan plan)
{
    fake *f = begin(skyhook_interrupt);
    fake_run(f, -1);
    fake_arm(f, plan);
    fake_edit(f, FAKE_SKYHOOKS, "sk",
              "{\"metadata\":{\"deletionTimestamp\":\"2026-11-16T07:00:00Z\"}}");
    fake_run(f, -1);
    assert_int_equal(yyjson_arr_size(fake_get(f, FAKE_SKYHOOKS, "sk", "/metadata/finalizers")), 0);
    return f;
}

#endif
