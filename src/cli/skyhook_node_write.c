/* SPDX-License-Identifier: Apache-2.0 */
/* node reset, node ignore, node unignore: one patch a node. node retry: the operator does it. */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/skyhook_state.h"

#define PROMPT_BYTES 512
#define IGNORE_KEY SKYHOOK_PREFIX "ignore"

static sk_words nodes_named(const sk *s)
{
    return (sk_words){s->given->operands.at, s->given->operands.len};
}

/* Names the nodes. False: they are not to be changed after all. */
static bool is_agreed(const sk *s, const char *act, str of)
{
    char prompt[PROMPT_BYTES];
    for (size_t i = 0; i < s->nodes.len; i++)
        printf("  %.*s\n", STR_ARG(s->nodes.at[i].name));
    if (s->dry_run) {
        printf("[dry-run] Would %s %zu node(s) for Skyhook \"%.*s\"\n", act, s->nodes.len,
               STR_ARG(of));
        return false;
    }
    snprintf(prompt, sizeof prompt, "This will %s %zu node(s) for Skyhook \"%.*s\". Continue?", act,
             s->nodes.len, STR_ARG(of));
    return sk_confirm(s, prompt);
}

/* The same of each node. */
static bool request_of_nodes(sk *s, str of, act_kind act)
{
    fact_act *acts = ARENA_ARRAY(s->arena, s->nodes.len, fact_act);
    if (!acts)
        return fail("out of memory") == STATUS_DONE;
    for (size_t i = 0; i < s->nodes.len; i++)
        acts[i] = (fact_act){.act = act, .target = s->nodes.at[i].name};
    return sk_request(s, of, (sk_acts){acts, s->nodes.len});
}

/* ---- node reset ---- */

static bool forget(sk *s, const sk_node *n, str of)
{
    scoped(buf_done) buf key = BUF(LIMIT_LOG_LINE_BYTES);
    scoped(buf_done) buf body = BUF(LIMIT_LOG_LINE_BYTES);
    buf_addf(&key, SKYHOOK_PREFIX "nodeState_%.*s", STR_ARG(of));
    buf_addz(&body, "{\"metadata\":{\"annotations\":{");
    buf_add_json(&body, buf_str(&key));
    buf_addz(&body, ":null}}}");
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR(NODES_PATH),
                    .name = n->name,
                    .body = buf_str(&body)};
    return sk_write_requested(s, &w, n);
}

static size_t keep_with_state(sk *s, str of)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->nodes.len; i++)
        if (sk_annotation(&s->nodes.at[i], "nodeState_", of).ptr)
            s->nodes.at[kept++] = s->nodes.at[i];
    s->nodes.len = kept;
    return kept;
}

static exit_status do_node_reset(sk *s, str of, sk_names *busy)
{
    if (!sk_running(s, of, busy) || !request_of_nodes(s, of, ACT_RESET))
        return STATUS_NO;
    bool taken = sk_taken(s, of);
    for (size_t i = 0; !taken && i < s->nodes.len; i++) {
        const sk_node *n = &s->nodes.at[i];
        if (!sk_names_have(busy, n->name) && !forget(s, n, of))
            return STATUS_NO;
    }
    printf("Successfully reset %zu node(s) for Skyhook \"%.*s\"\n", s->nodes.len, STR_ARG(of));
    return STATUS_DONE;
}

static exit_status work_reset(sk *s)
{
    str of = sk_of(s);
    if (!of.ptr || !sk_pick(s, nodes_named(s)))
        return STATUS_NO;
    if (keep_with_state(s, of) == 0) {
        printf("No nodes have state for Skyhook \"%.*s\"\n", STR_ARG(of));
        return STATUS_DONE;
    }
    if (!is_agreed(s, "reset", of))
        return STATUS_DONE;
    sk_names busy = {0};
    exit_status status = do_node_reset(s, of, &busy);
    vec_done(&busy);
    return status;
}

static exit_status run_reset(const options *given)
{
    return sk_run(given, work_reset);
}

static const option options_of_failed[] = {OPTION_OF_SKYHOOK, OPTION_CONFIRM, OPTION_FORM_ANYHOW,
                                           OPTIONS_SKYHOOK, OPTIONS_END};

const verb skyhook_node_reset = {
    .name = "node reset",
    .summary = "forget what a Skyhook has done on these nodes",
    .operands = "NODE...",
    .operands_min = 1,
    .operands_max = LIMIT_FILES,
    .options = options_of_failed,
    .run = run_reset,
};

/* ---- node retry ---- */

static void note_failed(void *context, const sk_state *state)
{
    bool *failed = context;
    *failed |= strcmp(state->status, "erroring") == 0;
}

/* While a Skyhook is paused or disabled, that is the status of what has failed, too. */
static bool has_failed(sk *s, const sk_node *n, str of)
{
    str status = sk_annotation(n, "status_", of);
    bool failed = str_eq(status, STR("erroring"));
    if (str_eq(status, STR("paused")) || str_eq(status, STR("disabled")))
        sk_states(s, n, of, note_failed, &failed);
    return failed;
}

static size_t keep_failed(sk *s, str of)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->nodes.len; i++)
        if (has_failed(s, &s->nodes.at[i], of))
            s->nodes.at[kept++] = s->nodes.at[i];
    s->nodes.len = kept;
    return kept;
}

static exit_status work_retry(sk *s)
{
    str of = sk_of(s);
    if (!of.ptr || !sk_pick(s, nodes_named(s)))
        return STATUS_NO;
    if (keep_failed(s, of) == 0) {
        printf("No nodes have failed for Skyhook \"%.*s\"\n", STR_ARG(of));
        return STATUS_DONE;
    }
    if (!is_agreed(s, "retry", of))
        return STATUS_DONE;
    if (!request_of_nodes(s, of, ACT_RETRY))
        return STATUS_NO;
    printf("Successfully asked to retry %zu node(s) for Skyhook \"%.*s\"\n", s->nodes.len,
           STR_ARG(of));
    if (!sk_taken(s, of))
        puts("No operator has taken it yet: the next one that runs will.");
    return STATUS_DONE;
}

static exit_status run_retry(const options *given)
{
    return sk_run(given, work_retry);
}

const verb skyhook_node_retry = {
    .name = "node retry",
    .summary = "try again what failed on these nodes, now",
    .operands = "NODE...",
    .operands_min = 1,
    .operands_max = LIMIT_FILES,
    .about =
        "What is complete there stays so, and nodes that have not failed are left alone. The "
        "failures are counted anew, so that a node that is no longer tried again by itself is. "
        "Budgets and batches hold for it, and so does a stop or a pause.",
    .options = options_of_failed,
    .run = run_retry,
};

/* ---- node ignore, node unignore ---- */

static bool set_ignored(sk *s, const sk_node *n, bool ignored)
{
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR(NODES_PATH),
                    .name = n->name,
                    .anyhow = true,
                    .body = ignored
                                ? STR("{\"metadata\":{\"labels\":{\"" IGNORE_KEY "\":\"true\"}}}")
                                : STR("{\"metadata\":{\"labels\":{\"" IGNORE_KEY "\":null}}}")};
    return sk_write(s, &w, n->name.ptr);
}

static exit_status turn(sk *s, bool ignored)
{
    size_t done = 0;
    if (!sk_pick(s, nodes_named(s)))
        return STATUS_NO;
    printf("%s %zu node(s):\n", ignored ? "Ignoring" : "Unignoring", s->nodes.len);
    for (size_t i = 0; i < s->nodes.len; i++) {
        const sk_node *n = &s->nodes.at[i];
        bool is = str_eq(label_get(n->labels, STR(IGNORE_KEY)), STR("true"));
        if (is == ignored) {
            printf("  %.*s: %s\n", STR_ARG(n->name), ignored ? "already ignored" : "not ignored");
            continue;
        }
        printf("  %.*s%s\n", STR_ARG(n->name), s->dry_run ? " [dry-run]" : "");
        if (!s->dry_run && !set_ignored(s, n, ignored))
            return STATUS_NO;
        done++;
    }
    printf("%s %s %zu node(s)\n", s->dry_run ? "[dry-run] Would have" : "Successfully",
           ignored ? "ignored" : "unignored", done);
    return STATUS_DONE;
}

static exit_status work_ignore(sk *s)
{
    return turn(s, true);
}

static exit_status work_unignore(sk *s)
{
    return turn(s, false);
}

static exit_status run_ignore(const options *given)
{
    return sk_run(given, work_ignore);
}

static exit_status run_unignore(const options *given)
{
    return sk_run(given, work_unignore);
}

static const option options_of_ignore[] = {OPTION_FORM_ANYHOW, OPTIONS_SKYHOOK, OPTIONS_END};

const verb skyhook_node_ignore = {
    .name = "node ignore",
    .summary = "let no Skyhook touch these nodes",
    .operands = "NODE...",
    .operands_min = 1,
    .operands_max = LIMIT_FILES,
    .options = options_of_ignore,
    .run = run_ignore,
};

const verb skyhook_node_unignore = {
    .name = "node unignore",
    .summary = "let Skyhooks work on these nodes again",
    .operands = "NODE...",
    .operands_min = 1,
    .operands_max = LIMIT_FILES,
    .options = options_of_ignore,
    .run = run_unignore,
};
