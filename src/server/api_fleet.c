/* SPDX-License-Identifier: Apache-2.0 */
/* The whole fleet in few bytes: what the dashboard draws, asked for again and again. */
#include "server/api.h"
#include "server/views.h"

void run_fleet(call *c)
{
    const engine *e = control_engine(c->api->control);
    if (!e) {
        api_fail(c, 503, NULL, "the engine is being rebuilt after a failure of the store");
        return;
    }
    str policy = api_text(c, "policy");
    if (policy.len > 0 && !control_object(c->api->control, KIND_ROLLOUT_POLICY, policy)) {
        api_fail(c, 404, NULL, "there is no RolloutPolicy \"%s\"", str_shown(policy).text);
        return;
    }
    if (!view_fleet((fleet_scope){&e, 1, policy}, store_sequence(control_store(c->api->control)),
                    api_out(c)))
        api_fail(c, 503, NULL, "memory ran out");
}
