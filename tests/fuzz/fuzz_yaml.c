/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_documents.h"

static void fuzz_one(str input)
{
    fuzz_documents("f", input, FORMAT_YAML);
    fuzz_documents("fleet.yaml", input, FORMAT_YAML);
}
