/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_windows.h"

#include "cli/command.h"

bool plan_has_windows(const plan *p)
{
    for (size_t i = 0; i < sim_documents(p->sim); i++) {
        const object *o = sim_document(p->sim, i);
        for (size_t r = 0; o->kind == KIND_ROLLOUT_POLICY && r < o->rollout_policy->spec.rules.len;
             r++)
            if (o->rollout_policy->spec.rules.at[r].kind == RULE_DEPLOYMENT_WINDOW)
                return true;
    }
    return false;
}

void plan_windows(const plan *p, plan_window_visitor *visit, void *context)
{
    (void)p;
    (void)visit;
    (void)context;
}

bool plan_windows_kept(const plan *p)
{
    (void)p;
    return true;
}
