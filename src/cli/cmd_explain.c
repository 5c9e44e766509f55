/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "cli/explain_show.h"
#include "cli/kube_drain.h"
#include "cli/output.h"
#include "cli/remote_explain.h"
#include "cli/scenario.h"
#include "engine/fleet_names.h"
#include "operator/bundle_hindrance.h"

#define LIVE_DRAIN_MS 60000

/* What the operator of a cluster said of deployments that it could not make. */
static bool tell_hindrances(const scenario *sc)
{
    const object_list *all = sc->live.objects;
    for (size_t i = 0; i < all->len; i++)
        if (all->at[i].kind == KIND_BUNDLE &&
            !bundle_hindrances_tell(sim_engine(sc->sim), all->at[i].bundle))
            return false;
    return true;
}

/* What is under way in a cluster is explained, not played on: a drain that began there takes as
 * long as it takes. */
static bool run_live(const scenario *sc, const options *given, err *error)
{
    return (sim_set_duration(sc->sim, STR("drain"), LIVE_DRAIN_MS) || err_memory(error)) &&
           sim_run(sc->sim, 0, error) && (tell_hindrances(sc) || err_memory(error)) &&
           (kube_drain_tell(given, sim_engine(sc->sim), sc->live.objects, given->operands.at[0]) ||
            err_memory(error));
}

static bool is_of(const bundle_deployment *d, const placement_view *v, arena *a)
{
    const label_set *labels = &d->metadata.labels;
    str name = label_get(*labels, STR(LABEL_CLUSTER));
    str space = label_get(*labels, STR(LABEL_CLUSTER_NAMESPACE));
    str change =
        arena_printf(a, "%.*s/%.*s", STR_ARG(label_get(*labels, STR(LABEL_BUNDLE_NAMESPACE))),
                     STR_ARG(label_get(*labels, STR(LABEL_BUNDLE_NAME))));
    str whole = arena_printf(a, "%.*s/%.*s", STR_ARG(space), STR_ARG(name));
    return change.ptr && whole.ptr && str_eq(change, v->change) &&
           (str_eq(whole, v->target) || (name.ptr && str_eq(name, v->target)));
}

/* What the agent of a cluster says is wrong with a deployment; empty: nothing. */
static str agent_says(const scenario *sc, const placement_view *v)
{
    static const str types[] = {STR("Deployed"), STR("Installed"), STR("Monitored"), STR("Ready")};
    const object_list *all = sc->live.objects;
    for (size_t i = 0; sc->alive && v->kind == TARGET_CLUSTER && i < all->len; i++) {
        if (all->at[i].kind != KIND_BUNDLE_DEPLOYMENT)
            continue;
        const bundle_deployment *d = all->at[i].bundle_deployment;
        bool meant = is_of(d, v, sc->arena);
        for (size_t k = 0; meant && k < sizeof types / sizeof types[0]; k++) {
            const condition *c = condition_find(d->status.conditions, types[k]);
            if (c && c->status == CONDITION_FALSE)
                return c->message;
        }
    }
    return STR_EMPTY;
}

static exit_status answer(const scenario *sc, const options *given)
{
    const char *asked = options_given(given, "skyhook") ? "skyhook" : "change";
    explain_search s = {.target = given->operands.at[0], .change = options_text(given, asked, "")};
    engine *e = sim_engine(sc->sim);
    if (!explain_find(e, &s))
        return fail("out of memory");
    if (!s.found && s.has_target)
        return fail("%.*s: no change \"%s\" wants anything of it", STR_ARG(s.target),
                    str_shown(s.change).text);
    if (!s.found && herd_find_any(sim_herd(sc->sim), s.target) != HERD_NONE)
        return fail("%.*s: no change wants anything of it", STR_ARG(s.target));
    if (!s.found)
        return fail("%.*s: there is no such target", STR_ARG(s.target));
    return explain_print(given, explain_value(e, &s.view, agent_says(sc, &s.view), sc->arena));
}

static bool made_up(const options *given)
{
    return options_given(given, "file") || options_given(given, "nodes") ||
           options_given(given, "clusters") || options_given(given, "resources");
}

static exit_status run(const options *given)
{
    bool virtual_time = options_given(given, "after") || options_given(given, "file");
    bool of_cluster = options_given(given, "kubeconfig") || options_given(given, "context");
    if (!of_cluster && (scenario_live(given) ? !virtual_time : !made_up(given)))
        return remote_explain(given);
    scenario sc = {0};
    err error = {0};
    int64_t after_ms = 0;
    if (options_given(given, "after") &&
        !scenario_duration(options_text(given, "after", ""), &after_ms, &error))
        return usage_error(&cmd_explain, "--after: %s", error.text);
    exit_status status = scenario_read(&sc, &cmd_explain, given, false);
    if (status == STATUS_DONE) {
        bool good = of_cluster && after_ms == 0 ? run_live(&sc, given, &error)
                                                : sim_run(sc.sim, after_ms, &error);
        status = good ? answer(&sc, given) : fail("%s", error.text);
    }
    scenario_done(&sc);
    return status;
}

exit_status explain_cluster(const options *given)
{
    scenario sc = {0};
    err error = {0};
    exit_status status = scenario_read_cluster(&sc, &cmd_explain, given);
    if (status == STATUS_DONE)
        status = run_live(&sc, given, &error) ? answer(&sc, given) : fail("%s", error.text);
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
