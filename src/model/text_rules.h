/* SPDX-License-Identifier: Apache-2.0 */
/* text_rules.h - the rules for texts that several kinds share. Internal to src/model. */
#ifndef DROVER_MODEL_TEXT_RULES_H
#define DROVER_MODEL_TEXT_RULES_H

#include "model/shape.h"

extern const text_rule rule_object_name;
extern const text_rule rule_semver;
extern const text_rule rule_rrule;
extern const text_rule rule_timezone;
extern const text_rule rule_template;

#endif
