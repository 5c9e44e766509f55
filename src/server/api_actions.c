/* SPDX-License-Identifier: Apache-2.0 */
/* What people do: pause, approve, retry, freeze and the others. */
#include "server/api.h"
#include "server/api_shapes.h"

#include "server/journal.h"

void run_act(call *c)
{
    const act_input *in = c->input;
    err error = {.text = ""};
    fact_act act = {.act = c->operation->act,
                    .who = c->caller.name,
                    .change = in->deployment,
                    .target = in->resource,
                    .environment = in->environment,
                    .version = in->version,
                    .rule = in->rule,
                    .partition = in->partition,
                    .name = in->name,
                    .selector = in->selector,
                    .reason = in->reason};
    if (in->until.set)
        act.until_ms = in->until.at.seconds * 1000 + in->until.at.nanos / 1000000;
    if (in->until.set && act.until_ms <= c->now_ms) {
        api_fail(c, 422, NULL, "until: found a time that is over");
        return;
    }
    if (!control_act(c->api->control, &act, c->now_ms, &error)) {
        api_fail(c, control_engine(c->api->control) ? 422 : 503, NULL, "%s", error.text);
        return;
    }
    store *s = control_store(c->api->control);
    api_answer(c, &(act_output){.act = act_name(act.act), .sequence = store_sequence(s)});
}
