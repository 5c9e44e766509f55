/* SPDX-License-Identifier: Apache-2.0 */
/* skyhook_check.h - what the fields of a Skyhook or DeploymentPolicy must be together.
 *
 * Internal to src/model. */
#ifndef DROVER_MODEL_SKYHOOK_CHECK_H
#define DROVER_MODEL_SKYHOOK_CHECK_H

#include "model/shape.h"

shape_check check_package;
shape_check check_package_resources;
shape_check check_package_uninstall;
shape_check check_legacy_budget;
shape_check check_skyhook_spec;
shape_check check_skyhook;
shape_check check_budget;
shape_check check_strategy;
shape_check check_deployment_policy_spec;

#endif
