/* SPDX-License-Identifier: Apache-2.0 */
#include "select/labels.h"
