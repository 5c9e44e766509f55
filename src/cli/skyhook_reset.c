/* SPDX-License-Identifier: Apache-2.0 */
/* reset and deployment-policy reset: nodes begin anew, batches begin with the first.
 *
 * What no Job works on is written here; the operator is asked besides, so that it forgets, too, and
 * does the rest when the Jobs have ended. */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/skyhook.h"

#define PROMPT_BYTES 512

/* ---- nodes ---- */

/* Drover holds the node's cordon for this Skyhook alone. */
static bool uncordons(const sk_node *n, str of)
{
    str own = sk_annotation(n, "cordon_", of);
    if (!n->unschedulable || !str_eq(own, STR("true")))
        return false;
    for (size_t i = 0; i < n->annotations.len; i++) {
        label note = n->annotations.at[i];
        bool other = str_starts(note.key, STR(SKYHOOK_PREFIX "cordon_")) &&
                     note.value.ptr != own.ptr && str_eq(note.value, STR("true"));
        if (other || str_eq(note.key, STR(SKYHOOK_PREFIX "cordonedBefore")))
            return false;
    }
    return true;
}

static void put_null(buf *out, const char *kind, str of)
{
    scoped(buf_done) buf key = BUF(LIMIT_LOG_LINE_BYTES);
    buf_addf(&key, SKYHOOK_PREFIX "%s%.*s", kind, STR_ARG(of));
    buf_add_json(out, buf_str(&key));
    buf_addz(out, ":null");
}

static bool reset_node(sk *s, const sk_node *n, str of)
{
    static const char *const kinds[] = {"nodeState_", "status_", "cordon_", "version_"};
    scoped(buf_done) buf body = BUF(LIMIT_DOCUMENT_BYTES);
    buf_addz(&body, "{\"metadata\":{\"annotations\":{\"" SKYHOOK_PREFIX "seen\":\"true\"");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        buf_addc(&body, ',');
        put_null(&body, kinds[i], of);
    }
    buf_addz(&body, "},\"labels\":{");
    put_null(&body, "status_", of);
    buf_addz(&body, uncordons(n, of) ? "}},\"spec\":{\"unschedulable\":null}}" : "}}}");
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR(NODES_PATH),
                    .name = n->name,
                    .body = buf_str(&body)};
    return sk_write_requested(s, &w, n);
}

/* Keeps the nodes that something is known of: a parsable state. */
static size_t keep_with_state(sk *s, str of)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->nodes.len; i++) {
        str text = sk_annotation(&s->nodes.at[i], "nodeState_", of);
        if (text.ptr && yyjson_is_obj(json_parse(s->arena, text, NULL)))
            s->nodes.at[kept++] = s->nodes.at[i];
    }
    s->nodes.len = kept;
    return kept;
}

/* ---- batches ---- */

static void put_names(buf *out, yyjson_val *list, const sk_names *busy, bool *first)
{
    size_t index, count;
    yyjson_val *item;
    yyjson_arr_foreach(list, index, count, item)
    {
        str name = {yyjson_get_str(item), yyjson_get_len(item)};
        if (!sk_names_have(busy, name))
            continue;
        buf_addz(out, *first ? "" : ",");
        *first = false;
        buf_add_json(out, name);
    }
}

/* Batch 1; of the claims those stay whose Job runs. */
static void put_compartment(buf *out, yyjson_val *batch, const sk_names *busy)
{
    bool first = true;
    buf_addz(out, "{\"batchState\":{\"currentBatch\":1,\"consecutiveFailures\":null,"
                  "\"completedNodes\":null,\"failedNodes\":null,\"shouldStop\":null,"
                  "\"lastBatchSize\":null,\"lastBatchFailed\":null,\"retrying\":null,"
                  "\"members\":");
    size_t before = out->len;
    buf_addc(out, '[');
    put_names(out, yyjson_obj_get(batch, "members"), busy, &first);
    put_names(out, yyjson_obj_get(batch, "retrying"), busy, &first);
    buf_addc(out, ']');
    if (first && !out->failed) {
        out->len = before;
        buf_addz(out, "null");
    }
    buf_addz(out, "}}");
}

/* Says what becomes of each compartment; appends the patch if out is given. Returns how many. */
static size_t each_compartment(yyjson_val *status, const sk_names *busy, buf *out)
{
    size_t index, count, found = 0;
    yyjson_val *key, *value;
    yyjson_obj_foreach(yyjson_obj_get(status, "compartmentStatuses"), index, count, key, value)
    {
        yyjson_val *batch = yyjson_obj_get(value, "batchState");
        if (!batch)
            continue;
        if (out) {
            buf_addz(out, found > 0 ? "," : "");
            buf_add_json(out, (str){yyjson_get_str(key), yyjson_get_len(key)});
            buf_addc(out, ':');
            put_compartment(out, batch, busy);
        } else {
            printf("  %s: batch %lld, %lld completed, %lld failed%s\n", yyjson_get_str(key),
                   (long long)yyjson_get_sint(yyjson_obj_get(batch, "currentBatch")),
                   (long long)yyjson_get_sint(yyjson_obj_get(batch, "completedNodes")),
                   (long long)yyjson_get_sint(yyjson_obj_get(batch, "failedNodes")),
                   yyjson_is_true(yyjson_obj_get(batch, "shouldStop")) ? ", stopped" : "");
        }
        found++;
    }
    return found;
}

static bool reset_batches(sk *s, str of, const sk_names *busy)
{
    scoped(buf_done) buf body = BUF(LIMIT_DOCUMENT_BYTES);
    yyjson_val *json = sk_skyhook(s, of);
    if (!json)
        return false;
    buf_addz(&body, "{\"status\":{\"nodePriority\":null,\"nodeOrderOffset\":0,"
                    "\"compartmentStatuses\":{");
    each_compartment(yyjson_obj_get(json, "status"), busy, &body);
    buf_addz(&body, "}}}");
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR(SKYHOOKS_PATH),
                    .name = of,
                    .subresource = STR("status"),
                    .version = json_text_of(yyjson_obj_get(json, "metadata"), "resourceVersion"),
                    .body = buf_str(&body)};
    write_outcome how;
    err error = {0};
    if (!kube_write_one(s->session, &w, &how, &error))
        return fail("%s", error.text) == STATUS_DONE;
    /* An operator that was asked and is faster has done it by now. */
    if (how.kind == WRITE_DONE || how.kind == WRITE_CONFLICT)
        return true;
    return fail("Skyhook \"%.*s\": %s", STR_ARG(of), how.message) == STATUS_DONE;
}

/* ---- reset ---- */

/* What keeps the nodes from being taken for new ones; the operator does the rest. */
static bool mark_seen(sk *s)
{
    bool good = true;
    for (size_t i = 0; i < s->nodes.len; i++) {
        if (str_eq(sk_annotation(&s->nodes.at[i], "seen", STR_EMPTY), STR("true")))
            continue;
        kube_write w = {
            .verb = WRITE_MERGE,
            .collection = STR(NODES_PATH),
            .name = s->nodes.at[i].name,
            .anyhow = true,
            .body = STR("{\"metadata\":{\"annotations\":{\"" SKYHOOK_PREFIX "seen\":\"true\"}}}")};
        good &= sk_write(s, &w, s->nodes.at[i].name.ptr);
    }
    return good;
}

static size_t count_busy(const sk *s, const sk_names *busy)
{
    size_t count = 0;
    for (size_t i = 0; i < s->nodes.len; i++)
        count += sk_names_have(busy, s->nodes.at[i].name);
    return count;
}

static bool reset_nodes(sk *s, str of, const sk_names *busy)
{
    bool good = true;
    for (size_t i = 0; i < s->nodes.len; i++) {
        if (!sk_names_have(busy, s->nodes.at[i].name))
            good &= reset_node(s, &s->nodes.at[i], of);
    }
    return good;
}

static void show_nodes(const sk *s, str of)
{
    printf("Nodes with state for Skyhook \"%.*s\": %zu\n", STR_ARG(of), s->nodes.len);
    for (size_t i = 0; i < s->nodes.len; i++)
        printf("  %.*s\n", STR_ARG(s->nodes.at[i].name));
}

static exit_status do_reset(sk *s, str of, bool keep, sk_names *busy)
{
    size_t count = s->nodes.len;
    fact_act act = {.act = ACT_RESET, .keep_batches = keep};
    if (!sk_running(s, of, busy) || !sk_request(s, of, (sk_acts){&act, 1}))
        return STATUS_NO;
    size_t left = count_busy(s, busy);
    bool taken = sk_taken(s, of);
    if (taken ? !mark_seen(s) : !reset_nodes(s, of, busy))
        return STATUS_NO;
    if (count > 0)
        printf("Successfully reset %zu node(s) for Skyhook \"%.*s\"\n", count, STR_ARG(of));
    if (left > 0)
        printf("%zu of them when the Job that runs there has ended\n", left);
    if (keep)
        return STATUS_DONE;
    if (!taken && !reset_batches(s, of, busy))
        return STATUS_NO;
    printf("Batch state reset for Skyhook \"%.*s\"\n", STR_ARG(of));
    return STATUS_DONE;
}

static exit_status work_reset(sk *s)
{
    char prompt[PROMPT_BYTES];
    str name = s->given->operands.at[0];
    bool keep = options_given(s->given, "skip-batch-reset");
    yyjson_val *json = sk_skyhook(s, name);
    if (!json || !sk_list_nodes(s))
        return STATUS_NO;
    size_t count = keep_with_state(s, name);
    if (count > 0)
        show_nodes(s, name);
    else
        printf("No nodes have state for Skyhook \"%.*s\"\n", STR_ARG(name));
    if (s->dry_run) {
        printf("[dry-run] Would reset %zu node(s)%s for Skyhook \"%.*s\"\n", count,
               keep ? "" : " and the batch state", STR_ARG(name));
        return STATUS_DONE;
    }
    if (count == 0 && keep)
        return STATUS_DONE;
    snprintf(prompt, sizeof prompt, "This will reset %zu node(s)%s for Skyhook \"%.*s\". Continue?",
             count, keep ? "" : " and the batch state", STR_ARG(name));
    if (!sk_confirm(s, prompt))
        return STATUS_DONE;
    sk_names busy = {0};
    exit_status status = do_reset(s, name, keep, &busy);
    vec_done(&busy);
    return status;
}

static exit_status run_reset(const options *given)
{
    return sk_run(given, work_reset);
}

static const option options_of_reset[] = {
    OPTION_CONFIRM,
    {.name = "skip-batch-reset", .help = "keep batches, nodePriority and nodeOrderOffset"},
    OPTION_FORM_ANYHOW,
    OPTIONS_SKYHOOK,
    OPTIONS_END,
};

const verb skyhook_reset = {
    .name = "reset",
    .summary = "forget what was done on the nodes of a Skyhook, and begin anew",
    .operands = "SKYHOOK",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "All packages run again on all nodes, in batches that begin with the first. Nodes that "
        "are cordoned for it are let go. A Job that runs ends first.",
    .options = options_of_reset,
    .run = run_reset,
};

/* ---- deployment-policy reset ---- */

static exit_status work_policy_reset(sk *s)
{
    char prompt[PROMPT_BYTES];
    str name = s->given->operands.at[0];
    yyjson_val *json = sk_skyhook(s, name);
    if (!json)
        return STATUS_NO;
    printf("Batch state of Skyhook \"%.*s\":\n", STR_ARG(name));
    if (each_compartment(yyjson_obj_get(json, "status"), NULL, NULL) == 0)
        puts("  none");
    if (s->dry_run) {
        printf("[dry-run] Would reset batch state for Skyhook \"%.*s\"\n", STR_ARG(name));
        return STATUS_DONE;
    }
    snprintf(prompt, sizeof prompt, "This will reset batch state for Skyhook \"%.*s\". Continue?",
             STR_ARG(name));
    if (!sk_confirm(s, prompt))
        return STATUS_DONE;
    sk_names busy = {0};
    fact_act act = {.act = ACT_RESET_BATCHES};
    /* An operator that has taken it knows more of the claims, and may have made new ones. */
    bool good = sk_running(s, name, &busy) && sk_request(s, name, (sk_acts){&act, 1}) &&
                (sk_taken(s, name) || reset_batches(s, name, &busy));
    vec_done(&busy);
    if (!good)
        return STATUS_NO;
    printf("Successfully reset batch state for Skyhook \"%.*s\"\n", STR_ARG(name));
    return STATUS_DONE;
}

static exit_status run_policy_reset(const options *given)
{
    return sk_run(given, work_policy_reset);
}

static const option options_of_policy_reset[] = {OPTION_CONFIRM, OPTION_FORM_ANYHOW,
                                                 OPTIONS_SKYHOOK, OPTIONS_END};

const verb skyhook_deployment_policy_reset = {
    .name = "deployment-policy reset",
    .summary = "begin with batch 1 again in every compartment; a stop is lifted",
    .operands = "SKYHOOK",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "nodePriority and nodeOrderOffset begin anew, too. What was done on nodes is kept. Also "
        "as dp reset.",
    .options = options_of_policy_reset,
    .run = run_policy_reset,
};
