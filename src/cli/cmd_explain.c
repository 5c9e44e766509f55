/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/moment.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "cli/remote_explain.h"
#include "cli/scenario.h"

#define HOLDERS_SHOWN 8

static const char *const states[] = {
#define X(state, text) text,
    PLACEMENT_STATES(X)
#undef X
};

typedef struct search {
    str target;
    str change; /* empty: any */
    placement_view first, found;
    size_t count;
    bool has_target, has_undone;
} search;

/* The first change that is not done on the target, or the first one if all are. */
static bool look(void *context, const placement_view *v)
{
    search *s = context;
    if (!str_eq(v->target, s->target))
        return true;
    s->has_target = true;
    if (s->change.len > 0 && !str_eq(v->change, s->change) &&
        !(v->kind == TARGET_CLUSTER && str_ends(v->change, s->change)))
        return true;
    if (s->count++ == 0)
        s->first = *v;
    if (!s->has_undone && v->state != PLACEMENT_DONE) {
        s->found = *v;
        s->has_undone = true;
    }
    return true;
}

/* ---- the answer in one sentence ---- */

static str summary(arena *a, const placement_view *v, const reasons *why)
{
    str first = why->len > 0 ? reason_text(a, &why->at[0]) : STR("no reason is known");
    str more = why->len > 1 ? arena_printf(a, ", and %zu more", why->len - 1) : STR_EMPTY;
    const char *verb_of = "";
    switch (v->state) {
    case PLACEMENT_DONE:
        return arena_printf(a, "%.*s is done: %.*s runs there%s%.*s", STR_ARG(v->target),
                            STR_ARG(v->change), v->current.len > 0 ? " at " : "",
                            STR_ARG(v->current));
    case PLACEMENT_WAITING: verb_of = "waits for"; break;
    case PLACEMENT_IN_FLIGHT: verb_of = "is being changed by"; break;
    case PLACEMENT_FAILED: verb_of = "failed for"; break;
    case PLACEMENT_BLOCKED: verb_of = "is blocked for"; break;
    case PLACEMENT_EXCLUDED: verb_of = "is left out of"; break;
    }
    return arena_printf(a, "%.*s %s %.*s: %.*s%.*s", STR_ARG(v->target), verb_of,
                        STR_ARG(v->change), STR_ARG(first), STR_ARG(more));
}

/* ---- text ---- */

static void list(buf *out, const char *title, const str *at, size_t count)
{
    if (count == 0)
        return;
    buf words = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < count && i < HOLDERS_SHOWN; i++) {
        buf_addz(&words, i > 0 ? ", " : "");
        buf_add(&words, at[i]);
    }
    if (count > HOLDERS_SHOWN)
        buf_addf(&words, " and %zu more", count - HOLDERS_SHOWN);
    buf_addf(out, "    %-12s", title);
    output_wrap(out, buf_str(&words), 16, 16);
    buf_addc(out, '\n');
    buf_done(&words);
}

static void reason_text_form(buf *out, arena *a, const reason *r)
{
    str name = reason_rule_name(r->rule);
    buf_addf(out, "\n  %.*s", STR_ARG(name));
    if (r->scope.len > 0)
        buf_addf(out, " (%.*s)", STR_ARG(r->scope));
    buf_addz(out, ": ");
    output_wrap(out, reason_text(a, r), 6 + name.len + r->scope.len, 4);
    buf_addc(out, '\n');
    list(out, "held by", r->holders, r->holder_count);
    str act = release_act_name(r->act);
    buf_addf(out, "    %-12s%.*s", "released by", STR_ARG(act));
    buf_addc(out, '\n');
    list(out, "of", r->of, r->of_count);
    if (r->next_ms == REASON_NEVER)
        return;
    char text[MOMENT_TEXT_BYTES];
    size_t len = moment_format((moment){r->next_ms / 1000, 0}, text);
    buf_addf(out, "    %-12s%.*s\n", "asked again", (int)len, text);
}

static void print_text(buf *out, arena *a, const placement_view *v, const reasons *why)
{
    output_wrap(out, summary(a, v, why), 0, 2);
    buf_addc(out, '\n');
    for (size_t i = 0; i < why->len; i++)
        reason_text_form(out, a, &why->at[i]);
}

/* ---- JSON ---- */

static void print_json(buf *out, arena *a, const placement_view *v, const reasons *why)
{
    buf_addz(out, "{\"target\":");
    buf_add_json(out, v->target);
    buf_addz(out, ",\"change\":");
    buf_add_json(out, v->change);
    buf_addf(out, ",\"state\":\"%s\",\"summary\":", states[v->state]);
    buf_add_json(out, summary(a, v, why));
    buf_addz(out, ",\n \"reasons\":[");
    for (size_t i = 0; i < why->len; i++) {
        buf_addz(out, i > 0 ? ",\n  " : "\n  ");
        plan_reason_json(&why->at[i], a, out);
    }
    buf_addz(out, "]}\n");
}

/* ---- the command ---- */

static exit_status answer(const scenario *sc, const options *given)
{
    search s = {.target = given->operands.at[0], .change = options_text(given, "change", "")};
    engine *e = sim_engine(sc->sim);
    engine_placements(e, look, &s);
    if (s.count == 0 && s.has_target)
        return fail("%.*s: no change \"%s\" wants anything of it", STR_ARG(s.target),
                    str_shown(s.change).text);
    if (s.count == 0 && herd_find_any(sim_herd(sc->sim), s.target) != HERD_NONE)
        return fail("%.*s: no change wants anything of it", STR_ARG(s.target));
    if (s.count == 0)
        return fail("%.*s: there is no such target", STR_ARG(s.target));
    const placement_view *v = s.has_undone ? &s.found : &s.first;
    reasons why = {0};
    if (!engine_reasons(e, v->id, sc->arena, &why))
        return fail("out of memory");
    buf out = BUF(LIMIT_TEXT_BYTES);
    if (str_eq(options_text(given, "output", "text"), STR("json")))
        print_json(&out, sc->arena, v, &why);
    else
        print_text(&out, sc->arena, v, &why);
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}

static exit_status run(const options *given)
{
    if (!options_given(given, "file") && !options_given(given, "kubeconfig"))
        return remote_explain(given);
    scenario sc = {0};
    err error = {0};
    int64_t after_ms = 0;
    if (options_given(given, "after") &&
        !scenario_duration(options_text(given, "after", ""), &after_ms, &error))
        return usage_error(&cmd_explain, "--after: %s", error.text);
    exit_status status = scenario_read(&sc, &cmd_explain, given, false);
    if (status == STATUS_DONE)
        status = sim_run(sc.sim, after_ms, &error) ? answer(&sc, given) : fail("%s", error.text);
    scenario_done(&sc);
    return status;
}

static const option options_of_explain[] = {
    SCENARIO_OPTIONS,
    OPTIONS_SERVER,
    {.name = "after", .argument = "D", .help = "ask when so much virtual time has passed (0s)"},
    {.name = "change",
     .argument = "NAME",
     .help = "the Skyhook, Bundle or Deployment to ask about"},
    {.name = "environment", .argument = "NAME", .help = "the Environment, of a server"},
    OPTION_OUTPUT("text|json"),
    OPTIONS_END,
};

const verb cmd_explain = {
    .name = "explain",
    .summary = "say why a target is not moving, and what would release it",
    .operands = "TARGET",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "With documents (-f) it runs the same virtual fleet as plan up to --after, then asks the "
        "engine; without, it asks a server about its live fleet. First the answer "
        "in one sentence, then each cause: who holds what it waits for, what would release it, "
        "when it is asked again.\n"
        "\n"
        "When several changes concern the target, the answer is about the first by name that is "
        "not done, or about the one --change names.",
    .options = options_of_explain,
    .run = run,
};
