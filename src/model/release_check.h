/* SPDX-License-Identifier: Apache-2.0 */
/* release_check.h - what the fields of Drover's own kinds must be together.
 *
 * Internal to src/model. */
#ifndef DROVER_MODEL_RELEASE_CHECK_H
#define DROVER_MODEL_RELEASE_CHECK_H

#include "model/shape.h"

shape_check check_command;
shape_check check_job;
shape_check check_version_spec;
shape_check check_bracket;
shape_check check_concurrency;
shape_check check_provider;
shape_check check_verification;
shape_check check_retry;
shape_check check_rollback;
shape_check check_rule;
shape_check check_rollout_policy;

#endif
