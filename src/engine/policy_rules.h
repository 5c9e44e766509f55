/* SPDX-License-Identifier: Apache-2.0 */
/* policy_rules.h - what a DeploymentPolicy, or the older interruptionBudget, means for a cohort,
 * and how its compartments are shown.
 *
 * Pure. Names and selectors of the result are views into the documents. */
#ifndef DROVER_ENGINE_POLICY_RULES_H
#define DROVER_ENGINE_POLICY_RULES_H

#include "engine/cohort.h"
#include "engine/engine.h"
#include "model/skyhook.h"

/* The compartments of a policy, its default last; in a. False without memory. */
bool policy_rules(const deployment_policy_spec *spec, arena *a, cohort_policy *ret);
/* The one compartment of a Skyhook without a policy: fixed, its first batch the whole budget. */
bool legacy_rules(const budget *b, arena *a, cohort_policy *ret);
/* Whether batches begin anew when a rollout is complete or a version changes. */
bool policy_resets(const skyhook *s, const deployment_policy *policy);

/* Every compartment as a group, of the change, rule and environment of another one; false: the
 * visitor wants no more. */
bool policy_groups(const cohort *c, const group_view *of, group_visitor visit, void *context);

#endif
