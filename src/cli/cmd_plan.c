/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/num.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/plan_check.h"
#include "cli/plan_show.h"
#include "cli/scenario.h"

#define OUTPUT_BYTES_MAX (1024u * 1024u * 1024u)

static bool print(const plan *p, str form)
{
    if (str_eq(form, STR("table")))
        return plan_table(p, stdout);
    if (str_eq(form, STR("trace"))) {
        output_text(stdout, sim_story(p->sim));
        return true;
    }
    buf out = BUF(OUTPUT_BYTES_MAX);
    if (str_eq(form, STR("json")))
        plan_json(p, &out);
    else
        plan_svg(p, &out);
    return output_buf(stdout, &out);
}

static exit_status show(const sim *s, const options *given)
{
    plan p;
    exit_status status = STATUS_NO;
    if (!plan_collect(&p, s) || !print(&p, options_text(given, "output", "table")))
        fail("out of memory");
    else
        status = plan_checks(&p, given) && p.outcome == SIM_COMPLETE ? STATUS_DONE : STATUS_NO;
    plan_done(&p);
    return status;
}

static exit_status run(const options *given)
{
    scenario sc = {0};
    err error = {0};
    exit_status status = plan_checks_read(&cmd_plan, given);
    if (status != STATUS_DONE)
        return status;
    bool tell = str_eq(options_text(given, "output", "table"), STR("trace"));
    status = scenario_read(&sc, &cmd_plan, given, tell);
    if (status == STATUS_DONE)
        status =
            sim_run(sc.sim, SIM_TO_THE_END, &error) ? show(sc.sim, given) : fail("%s", error.text);
    scenario_done(&sc);
    return status;
}

static const option options_of_plan[] = {
    SCENARIO_OPTIONS,
    OPTIONS_SERVER,
    OPTION_OUTPUT("table|json|svg|trace"),
    {.name = "check",
     .argument = "LIMIT",
     .repeatable = true,
     .help = "exit 1 unless it holds: peak<=N, peak<=N%, end<=D, or window (nothing begins "
             "outside a deployment window that holds for it)"},
    OPTIONS_END,
};

const verb cmd_plan = {
    .name = "plan",
    .summary = "show what a rollout will do: order, batches, duration, blast radius, stalls",
    .about =
        "Runs the engine on a virtual fleet in virtual time, from documents of any vocabulary and "
        "made-up targets. Nothing is changed anywhere.\n"
        "\n"
        "With --server, or without documents where a server of this machine is found, the fleet is "
        "the live one as it is now; documents (-f) are then applied to it first, in the plan only. "
        "What runs there now is assumed to succeed.\n"
        "\n"
        "The exit status is 0 when everything completes and every --check holds, else 1.\n"
        "\n"
        "An event is one JSON object a line: {\"after\":\"5m\",\"do\":\"cordon\",\"target\":"
        "\"node-0001\"}. Words for do: publish, pause, resume, approve, cordon, uncordon, join, "
        "delete, label, fail, heal, offline, online, apply, retry, skip, reset, reboot, reject, "
        "rollback, bypass, freeze, thaw, halt, taint, untaint, claimSlot, freeSlot; keys as each "
        "needs: target, name, version, environment, labels, document, kind, taint, rule, who, "
        "reason.",
    .options = options_of_plan,
    .run = run,
};
