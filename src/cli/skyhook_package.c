/* SPDX-License-Identifier: Apache-2.0 */
/* package list and package status: what the annotations of nodes say of packages. */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/skyhook_state.h"

typedef struct shown_packages {
    sk *sk;
    sk_table table;
    buf json;
    str package; /* empty: any */
    size_t rows;
} shown_packages;

static void titles(shown_packages *v, const char *const *words, size_t narrow, size_t wide)
{
    v->table.columns = v->sk->form == SK_WIDE ? wide : narrow;
    for (size_t i = 0; i < v->table.columns; i++)
        sk_cell(v->sk, &v->table, "%s", words[i]);
}

static exit_status finish(shown_packages *v, const char *none)
{
    exit_status status = STATUS_DONE;
    buf_addc(&v->json, ']');
    if (v->sk->form == SK_JSON || v->sk->form == SK_YAML)
        status = sk_print_value(v->sk, &v->json);
    else if (v->rows == 0)
        puts(none);
    else
        status = sk_print(v->sk, &v->table);
    buf_done(&v->json);
    vec_done(&v->table.cells);
    return status;
}

static void show_head(const sk *s, yyjson_val *json, str of)
{
    size_t index, count;
    yyjson_val *key, *value;
    if (s->form == SK_JSON || s->form == SK_YAML)
        return;
    printf("Skyhook: %.*s\nPackages: ", STR_ARG(of));
    yyjson_val *packages = yyjson_obj_get(yyjson_obj_get(json, "spec"), "packages");
    yyjson_obj_foreach(packages, index, count, key, value)
    {
        printf("%s%s:%.*s", index > 0 ? ", " : "", yyjson_get_str(key),
               STR_ARG(json_text_of(value, "version")));
    }
    puts("\n");
}

/* ---- package list ---- */

typedef struct package_count {
    str name, version;
    size_t complete, erring, running, all;
} package_count;

static void count_one(void *context, const sk_state *state)
{
    package_count *c = context;
    for (size_t i = 0; i < state->packages.packages.len; i++) {
        const package_status *p = &state->packages.packages.at[i];
        if (!str_eq(p->name, c->name) || !str_eq(p->version, c->version))
            continue;
        c->all++;
        c->complete += p->state == PACKAGE_COMPLETE;
        c->erring += p->state == PACKAGE_ERRORING;
        c->running += p->state == PACKAGE_IN_PROGRESS;
    }
}

static void list_package(shown_packages *v, str of, str name, yyjson_val *spec)
{
    sk *s = v->sk;
    package_count c = {.name = name, .version = json_text_of(spec, "version")};
    bool first = true;
    for (size_t i = 0; i < s->nodes.len; i++)
        sk_states(s, &s->nodes.at[i], of, count_one, &c);
    buf_addz(&v->json, v->rows++ > 0 ? "," : "");
    sk_put_key(&v->json, &first, "name", name);
    sk_put_key(&v->json, &first, "version", c.version);
    sk_put_key(&v->json, &first, "image", json_text_of(spec, "image"));
    buf_addf(&v->json, ",\"nodes\":%zu,\"complete\":%zu,\"inProgress\":%zu,\"erroring\":%zu}",
             c.all, c.complete, c.running, c.erring);
    sk_cell(s, &v->table, "%.*s", STR_ARG(name));
    sk_cell(s, &v->table, "%.*s", STR_ARG(c.version));
    sk_cell(s, &v->table, "%zu", c.all);
    sk_cell(s, &v->table, "%zu", c.complete);
    sk_cell(s, &v->table, "%zu", c.running);
    sk_cell(s, &v->table, "%zu", c.erring);
    if (s->form == SK_WIDE)
        sk_cell(s, &v->table, "%.*s", STR_ARG(json_text_of(spec, "image")));
}

static exit_status work_list(sk *s)
{
    static const char *const words[] = {"PACKAGE",     "VERSION",  "NODES", "COMPLETE",
                                        "IN PROGRESS", "ERRORING", "IMAGE"};
    str of = sk_of(s);
    yyjson_val *json = of.ptr ? sk_skyhook(s, of) : NULL;
    if (!json || !sk_list_nodes(s))
        return STATUS_NO;
    shown_packages v = {.sk = s, .json = BUF(LIMIT_TEXT_BYTES)};
    titles(&v, words, 6, 7);
    buf_addc(&v.json, '[');
    size_t index, count;
    yyjson_val *key, *value;
    yyjson_val *packages = yyjson_obj_get(yyjson_obj_get(json, "spec"), "packages");
    yyjson_obj_foreach(packages, index, count, key, value)
    {
        list_package(&v, of, (str){yyjson_get_str(key), yyjson_get_len(key)}, value);
    }
    return finish(&v, "The Skyhook has no packages");
}

static exit_status run_list(const options *given)
{
    return sk_run(given, work_list);
}

static const option options_of_list[] = {OPTION_OF_SKYHOOK, OPTION_FORM, OPTIONS_SKYHOOK,
                                         OPTIONS_END};

const verb skyhook_package_list = {
    .name = "package list",
    .summary = "list the packages of a Skyhook and how far they are",
    .options = options_of_list,
    .run = run_list,
};

/* ---- package status ---- */

static void status_one(void *context, const sk_state *state)
{
    shown_packages *v = context;
    sk *s = v->sk;
    for (size_t i = 0; i < state->packages.packages.len; i++) {
        const package_status *p = &state->packages.packages.at[i];
        if (!str_eq(p->name, v->package))
            continue;
        bool first = true;
        buf_addz(&v->json, v->rows++ > 0 ? "," : "");
        sk_put_key(&v->json, &first, "nodeName", state->node);
        sk_put_key(&v->json, &first, "name", p->name);
        sk_put_key(&v->json, &first, "version", p->version);
        sk_put_key(&v->json, &first, "image", p->image);
        sk_put_key(&v->json, &first, "stage", str_of(sk_stage_text(p->stage)));
        sk_put_key(&v->json, &first, "state", str_of(sk_package_state_text(p->state)));
        buf_addf(&v->json, ",\"restarts\":%lld}", (long long)p->restarts);
        sk_cell(s, &v->table, "%.*s", STR_ARG(state->node));
        sk_cell(s, &v->table, "%.*s", STR_ARG(p->name));
        sk_cell(s, &v->table, "%.*s", STR_ARG(p->version));
        sk_cell(s, &v->table, "%s", sk_stage_text(p->stage));
        sk_cell(s, &v->table, "%s", sk_loud(sk_package_state_text(p->state)));
        if (s->form != SK_WIDE)
            continue;
        sk_cell(s, &v->table, "%lld", (long long)p->restarts);
        sk_cell(s, &v->table, "%.*s", STR_ARG(p->image));
    }
}

static exit_status work_status(sk *s)
{
    static const char *const words[] = {"NODE",  "PACKAGE",  "VERSION", "STAGE",
                                        "STATE", "RESTARTS", "IMAGE"};
    str of = sk_of(s);
    yyjson_val *json = of.ptr ? sk_skyhook(s, of) : NULL;
    sk_names names = {0};
    size_t at = 0;
    for (str word; options_next(s->given, "node", &at, &word);)
        if (!vec_push(&names, word))
            return fail("out of memory");
    bool picked = json && sk_pick(s, (sk_words){names.at, names.len});
    vec_done(&names);
    if (!picked)
        return STATUS_NO;
    show_head(s, json, of);
    shown_packages v = {
        .sk = s, .json = BUF(LIMIT_TEXT_BYTES), .package = s->given->operands.at[0]};
    titles(&v, words, 5, 7);
    buf_addc(&v.json, '[');
    for (size_t i = 0; i < s->nodes.len; i++)
        sk_states(s, &s->nodes.at[i], of, status_one, &v);
    return finish(&v, "No node has state of the package");
}

static exit_status run_status(const options *given)
{
    return sk_run(given, work_status);
}

static const option options_of_status[] = {
    OPTION_OF_SKYHOOK,
    {.name = "node",
     .argument = "NODE",
     .repeatable = true,
     .help = "only on these: a name, or a regular expression"},
    OPTION_FORM,
    OPTIONS_SKYHOOK,
    OPTIONS_END,
};

const verb skyhook_package_status = {
    .name = "package status",
    .summary = "show how far a package is on each node",
    .operands = "PACKAGE",
    .operands_min = 1,
    .operands_max = 1,
    .options = options_of_status,
    .run = run_status,
};
