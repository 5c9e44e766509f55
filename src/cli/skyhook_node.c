/* SPDX-License-Identifier: Apache-2.0 */
/* node list and node status: what the annotations of nodes say. */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/skyhook_state.h"

typedef struct shown_states {
    sk *sk;
    sk_table table;
    buf json;
    size_t nodes, complete, erring, running;
} shown_states;

static void count(shown_states *v, const sk_state *state)
{
    v->nodes++;
    v->complete += strcmp(state->status, "complete") == 0;
    v->erring += strcmp(state->status, "erroring") == 0;
    v->running += strcmp(state->status, "in_progress") == 0;
}

static void put_counts(buf *out, const sk_state *state)
{
    buf_addf(out, ",\"packagesComplete\":%zu,\"packagesTotal\":%zu", state->complete,
             state->packages.packages.len);
}

static void put_state(buf *out, const sk_state *state)
{
    bool first = true;
    sk_put_key(out, &first, "nodeName", state->node);
    sk_put_key(out, &first, "status", str_of(state->status));
    put_counts(out, state);
    buf_addf(out, ",\"restarts\":%lld}", (long long)state->restarts);
}

/* ---- node list ---- */

static void list_one(void *context, const sk_state *state)
{
    shown_states *v = context;
    sk *s = v->sk;
    count(v, state);
    buf_addz(&v->json, v->nodes > 1 ? "," : "");
    put_state(&v->json, state);
    sk_cell(s, &v->table, "%.*s", STR_ARG(state->node));
    sk_cell(s, &v->table, "%s", sk_loud(state->status));
    sk_cell(s, &v->table, "%zu/%zu", state->complete, state->packages.packages.len);
    if (s->form == SK_WIDE)
        sk_cell(s, &v->table, "%lld", (long long)state->restarts);
}

static exit_status print_list(shown_states *v, str of)
{
    if (v->sk->form == SK_JSON || v->sk->form == SK_YAML) {
        buf_addz(&v->json, "]}");
        return sk_print_value(v->sk, &v->json);
    }
    if (v->nodes == 0) {
        printf("No nodes have state for Skyhook \"%.*s\"\n", STR_ARG(of));
        return STATUS_DONE;
    }
    printf("Skyhook: %.*s\n\n", STR_ARG(of));
    exit_status status = sk_print(v->sk, &v->table);
    printf("\nSummary: %zu nodes (%zu complete, %zu erroring, %zu in progress)\n", v->nodes,
           v->complete, v->erring, v->running);
    return status;
}

static exit_status work_list(sk *s)
{
    str of = sk_of(s);
    if (!of.ptr || !sk_list_nodes(s))
        return STATUS_NO;
    shown_states v = {.sk = s, .json = BUF(LIMIT_TEXT_BYTES)};
    v.table.columns = s->form == SK_WIDE ? 4 : 3;
    buf_addz(&v.json, "{\"skyhookName\":");
    buf_add_json(&v.json, of);
    buf_addz(&v.json, ",\"nodes\":[");
    sk_cell(s, &v.table, "NODE");
    sk_cell(s, &v.table, "STATUS");
    sk_cell(s, &v.table, "PACKAGES");
    if (s->form == SK_WIDE)
        sk_cell(s, &v.table, "RESTARTS");
    for (size_t i = 0; i < s->nodes.len; i++)
        sk_states(s, &s->nodes.at[i], of, list_one, &v);
    exit_status status = print_list(&v, of);
    buf_done(&v.json);
    vec_done(&v.table.cells);
    return status;
}

static exit_status run_list(const options *given)
{
    return sk_run(given, work_list);
}

static const option options_of_list[] = {OPTION_OF_SKYHOOK, OPTION_FORM, OPTIONS_SKYHOOK,
                                         OPTIONS_END};

const verb skyhook_node_list = {
    .name = "node list",
    .summary = "list the nodes that a Skyhook has worked on",
    .options = options_of_list,
    .run = run_list,
};

/* ---- node status ---- */

static void put_package(buf *out, const package_status *p)
{
    bool first = true;
    sk_put_key(out, &first, "name", p->name);
    sk_put_key(out, &first, "version", p->version);
    sk_put_key(out, &first, "stage", str_of(sk_stage_text(p->stage)));
    sk_put_key(out, &first, "state", str_of(sk_package_state_text(p->state)));
    sk_put_key(out, &first, "image", p->image);
    buf_addf(out, ",\"restarts\":%lld}", (long long)p->restarts);
}

static void status_wide(shown_states *v, const sk_state *state)
{
    for (size_t i = 0; i < state->packages.packages.len; i++) {
        const package_status *p = &state->packages.packages.at[i];
        sk_cell(v->sk, &v->table, "%.*s", STR_ARG(state->node));
        sk_cell(v->sk, &v->table, "%.*s", STR_ARG(state->skyhook));
        sk_cell(v->sk, &v->table, "%.*s", STR_ARG(p->name));
        sk_cell(v->sk, &v->table, "%.*s", STR_ARG(p->version));
        sk_cell(v->sk, &v->table, "%s", sk_stage_text(p->stage));
        sk_cell(v->sk, &v->table, "%s", sk_loud(sk_package_state_text(p->state)));
        sk_cell(v->sk, &v->table, "%lld", (long long)p->restarts);
        sk_cell(v->sk, &v->table, "%.*s", STR_ARG(p->image));
    }
}

static void status_one(void *context, const sk_state *state)
{
    shown_states *v = context;
    bool first = true;
    count(v, state);
    buf_addz(&v->json, v->nodes > 1 ? "," : "");
    sk_put_key(&v->json, &first, "nodeName", state->node);
    sk_put_key(&v->json, &first, "skyhookName", state->skyhook);
    sk_put_key(&v->json, &first, "status", str_of(state->status));
    put_counts(&v->json, state);
    buf_addz(&v->json, ",\"packages\":[");
    for (size_t i = 0; i < state->packages.packages.len; i++) {
        buf_addz(&v->json, i > 0 ? "," : "");
        put_package(&v->json, &state->packages.packages.at[i]);
    }
    buf_addz(&v->json, "]}");
    if (v->sk->form == SK_WIDE) {
        status_wide(v, state);
        return;
    }
    sk_cell(v->sk, &v->table, "%.*s", STR_ARG(state->node));
    sk_cell(v->sk, &v->table, "%.*s", STR_ARG(state->skyhook));
    sk_cell(v->sk, &v->table, "%s", sk_loud(state->status));
    sk_cell(v->sk, &v->table, "%zu/%zu", state->complete, state->packages.packages.len);
}

static void status_titles(shown_states *v)
{
    static const char *const wide[] = {"NODE",  "SKYHOOK", "PACKAGE",  "VERSION",
                                       "STAGE", "STATE",   "RESTARTS", "IMAGE"};
    static const char *const narrow[] = {"NODE", "SKYHOOK", "STATUS", "PACKAGES"};
    bool all = v->sk->form == SK_WIDE;
    v->table.columns = all ? 8 : 4;
    for (size_t i = 0; i < v->table.columns; i++)
        sk_cell(v->sk, &v->table, "%s", all ? wide[i] : narrow[i]);
}

static exit_status work_status(sk *s)
{
    const options *given = s->given;
    if (!sk_pick(s, (sk_words){given->operands.at, given->operands.len}))
        return STATUS_NO;
    exit_status status;
    shown_states v = {.sk = s, .json = BUF(LIMIT_TEXT_BYTES)};
    status_titles(&v);
    buf_addc(&v.json, '[');
    for (size_t i = 0; i < s->nodes.len; i++)
        sk_states(s, &s->nodes.at[i], options_text(given, "skyhook", ""), status_one, &v);
    buf_addc(&v.json, ']');
    if (s->form == SK_JSON || s->form == SK_YAML) {
        status = sk_print_value(s, &v.json);
    } else if (v.nodes == 0) {
        puts("No node has state of a Skyhook");
        status = STATUS_DONE;
    } else {
        status = sk_print(s, &v.table);
    }
    buf_done(&v.json);
    vec_done(&v.table.cells);
    return status;
}

static exit_status run_status(const options *given)
{
    return sk_run(given, work_status);
}

static const option options_of_status[] = {OPTION_OF_SKYHOOK, OPTION_FORM, OPTIONS_SKYHOOK,
                                           OPTIONS_END};

const verb skyhook_node_status = {
    .name = "node status",
    .summary = "show what Skyhooks have done on nodes",
    .operands = "[NODE]...",
    .operands_max = LIMIT_FILES,
    .about = "A node is named, or matched by a regular expression. With -o wide each package has a "
             "line.",
    .options = options_of_status,
    .run = run_status,
};
