/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lint.h"

bool lint_all(const object_list *objects, problems *found)
{
    (void)objects;
    (void)found;
    return true;
}
