/* SPDX-License-Identifier: Apache-2.0 */
/* package rerun: one package runs again on some nodes, from the beginning or from a stage on. */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/skyhook_state.h"

#define PROMPT_BYTES 512

typedef struct rerun {
    str skyhook, package, version;
    package_stage stage; /* STAGE_NONE: from the beginning */
    sk_names busy;
} rerun;

static bool stage_of(str word, package_stage *ret)
{
    static const package_stage allowed[] = {STAGE_APPLY, STAGE_CONFIG, STAGE_INTERRUPT,
                                            STAGE_POST_INTERRUPT};
    *ret = STAGE_NONE;
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        if (str_eq(word, str_of(sk_stage_text(allowed[i]))))
            *ret = allowed[i];
    return word.len == 0 || *ret != STAGE_NONE;
}

static const package_status *entry_of(const node_state *state, const rerun *r)
{
    for (size_t i = 0; i < state->packages.len; i++)
        if (str_eq(state->packages.at[i].name, r->package) &&
            str_eq(state->packages.at[i].version, r->version))
            return &state->packages.at[i];
    return NULL;
}

/* Keeps the nodes whose state has the package. */
static void keep_with_package(sk *s, const rerun *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->nodes.len; i++) {
        node_state state;
        str text = sk_annotation(&s->nodes.at[i], "nodeState_", r->skyhook);
        if (text.ptr && node_state_parse(s->arena, text, &state, NULL) && entry_of(&state, r))
            s->nodes.at[kept++] = s->nodes.at[i];
    }
    s->nodes.len = kept;
}

/* The annotation as it is to be, as JSON; null when nothing is left. */
static void put_state(sk *s, const sk_node *n, const rerun *r, buf *out)
{
    node_state state, left;
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    str old = sk_annotation(n, "nodeState_", r->skyhook);
    if (!node_state_parse(s->arena, old, &state, NULL))
        return;
    left = state;
    left.packages.len = 0;
    for (size_t i = 0; i < state.packages.len; i++) {
        package_status p = state.packages.at[i];
        bool it = str_eq(p.name, r->package) && str_eq(p.version, r->version);
        if (it && r->stage == STAGE_NONE)
            continue;
        if (it) {
            p.stage = r->stage;
            p.state = PACKAGE_IN_PROGRESS;
            p.restarts = 0;
        }
        left.packages.at[left.packages.len++] = p;
    }
    node_state_write(&left, &text);
    out->failed |= text.failed;
    if (left.packages.len == 0)
        buf_addz(out, "null");
    else
        buf_add_json(out, buf_str(&text));
}

static bool request_nodes(sk *s, const rerun *r)
{
    fact_act *acts = ARENA_ARRAY(s->arena, s->nodes.len, fact_act);
    if (!acts)
        return fail("out of memory") == STATUS_DONE;
    for (size_t i = 0; i < s->nodes.len; i++)
        acts[i] = (fact_act){.act = ACT_RESET,
                             .target = s->nodes.at[i].name,
                             .package = r->package,
                             .stage = str_of(sk_stage_text(r->stage))};
    return sk_request(s, r->skyhook, (sk_acts){acts, s->nodes.len});
}

static bool rerun_node(sk *s, const sk_node *n, const rerun *r)
{
    scoped(buf_done) buf key = BUF(LIMIT_LOG_LINE_BYTES);
    scoped(buf_done) buf body = BUF(LIMIT_DOCUMENT_BYTES);
    if (sk_names_have(&r->busy, n->name)) /* the operator does it when the Job has ended */
        return true;
    buf_addf(&key, SKYHOOK_PREFIX "nodeState_%.*s", STR_ARG(r->skyhook));
    buf_addz(&body, "{\"metadata\":{\"annotations\":{");
    buf_add_json(&body, buf_str(&key));
    buf_addc(&body, ':');
    put_state(s, n, r, &body);
    buf_addz(&body, "}}}");
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR(NODES_PATH),
                    .name = n->name,
                    .body = buf_str(&body)};
    return sk_write_requested(s, &w, n);
}

static exit_status rerun_all(sk *s, rerun *r)
{
    char prompt[PROMPT_BYTES];
    if (s->nodes.len == 0) {
        printf("No node has state of package \"%.*s\"\n", STR_ARG(r->package));
        return STATUS_DONE;
    }
    if (s->dry_run) {
        printf("[dry-run] Would reset package \"%.*s\" on %zu node(s)\n", STR_ARG(r->package),
               s->nodes.len);
        return STATUS_DONE;
    }
    snprintf(prompt, sizeof prompt,
             "This will run package \"%.*s\" again on %zu node(s). Continue?", STR_ARG(r->package),
             s->nodes.len);
    if (!sk_confirm(s, prompt))
        return STATUS_DONE;
    if (!sk_running(s, r->skyhook, &r->busy) || !request_nodes(s, r))
        return STATUS_NO;
    bool taken = sk_taken(s, r->skyhook);
    for (size_t i = 0; !taken && i < s->nodes.len; i++)
        if (!rerun_node(s, &s->nodes.at[i], r))
            return STATUS_NO;
    printf("Successfully reset package \"%.*s\" on %zu node(s)\n", STR_ARG(r->package),
           s->nodes.len);
    return STATUS_DONE;
}

static bool find_version(yyjson_val *json, rerun *r)
{
    char name[LIMIT_NAME_BYTES + 1];
    snprintf(name, sizeof name, "%.*s", STR_ARG(r->package));
    yyjson_val *packages = yyjson_obj_get(yyjson_obj_get(json, "spec"), "packages");
    yyjson_val *found = yyjson_obj_get(yyjson_obj_get(packages, name), "version");
    r->version = (str){yyjson_get_str(found), yyjson_get_len(found)};
    if (found)
        return true;
    fail("package \"%s\" not found in Skyhook \"%.*s\"", str_shown(r->package).text,
         STR_ARG(r->skyhook));
    return false;
}

static exit_status work(sk *s)
{
    rerun r = {.skyhook = sk_of(s), .package = s->given->operands.at[0]};
    sk_names names = {0};
    size_t at = 0;
    if (!stage_of(options_text(s->given, "stage", ""), &r.stage))
        return fail("invalid stage: allowed apply, config, interrupt, post-interrupt");
    for (str word; options_next(s->given, "node", &at, &word);)
        if (!vec_push(&names, word))
            return fail("out of memory");
    if (names.len == 0)
        return fail("required flag \"node\" not set");
    yyjson_val *json = r.skyhook.ptr ? sk_skyhook(s, r.skyhook) : NULL;
    exit_status status = STATUS_NO;
    if (json && find_version(json, &r) && sk_pick(s, (sk_words){names.at, names.len})) {
        keep_with_package(s, &r);
        status = rerun_all(s, &r);
    }
    vec_done(&names);
    vec_done(&r.busy);
    return status;
}

static exit_status run(const options *given)
{
    return sk_run(given, work);
}

static const option options_of_rerun[] = {
    OPTION_OF_SKYHOOK,
    {.name = "node",
     .argument = "NODE",
     .repeatable = true,
     .help = "on these: a name, or a regular expression"},
    {.name = "stage",
     .argument = "STAGE",
     .help = "from apply, config, interrupt or post-interrupt on (the beginning)"},
    OPTION_CONFIRM,
    OPTION_FORM_ANYHOW,
    OPTIONS_SKYHOOK,
    OPTIONS_END,
};

const verb skyhook_package_rerun = {
    .name = "package rerun",
    .summary = "run a package again on some nodes",
    .operands = "PACKAGE",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Nodes keep their turn: budgets and batches hold for it as for anything else.",
    .options = options_of_rerun,
    .run = run,
};
