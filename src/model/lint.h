/* SPDX-License-Identifier: Apache-2.0 */
/* lint.h - what is right or wrong only when documents are looked at together.
 *
 * Errors: two objects of one kind and name, references into nowhere where the other side must be
 * among the documents, dependency cycles. Warnings: what is allowed but rarely meant
 * (docs/validate.md lists them). Each object is right in itself already. */
#ifndef DROVER_MODEL_LINT_H
#define DROVER_MODEL_LINT_H

#include "model/object.h"

/* False when an error was reported or memory ran out. */
bool lint_all(const object_list *objects, problems *found);
/* The same of documents that are planned. A Skyhook whose policy is missing is no error there: it
 * is blocked until the policy appears, and the plan says so. */
bool lint_planned(const object_list *objects, problems *found);

#endif
