/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/fleet_schema.h"

#define KEEPS_UNKNOWN "x-kubernetes-preserve-unknown-fields"

static bool is_bundle(yyjson_val *schema)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(yyjson_obj_get(schema, "x-kubernetes-group-version-kind"), i, max, one)
    {
        if (yyjson_equals_str(yyjson_obj_get(one, "kind"), "Bundle"))
            return true;
    }
    return false;
}

static yyjson_val *find_bundle(yyjson_val *openapi)
{
    size_t i, max;
    yyjson_val *key, *one;
    yyjson_obj_foreach(yyjson_obj_get(yyjson_obj_get(openapi, "components"), "schemas"), i, max,
                       key, one)
    {
        if (is_bundle(one))
            return one;
    }
    return NULL;
}

static yyjson_val *property(yyjson_val *schema, const char *name)
{
    return yyjson_obj_get(yyjson_obj_get(schema, "properties"), name);
}

/* What keeps unknown fields keeps its own: below a property that is described, pruning begins anew.
 */
static bool drops(yyjson_val *schema, const char *name)
{
    return schema && !yyjson_is_true(yyjson_obj_get(schema, KEEPS_UNKNOWN)) &&
           !property(schema, name);
}

void fleet_schema_pruned(yyjson_val *openapi, buf *out)
{
    static const char *const added[] = {"soakSeconds", "failureThreshold", "offlineAfterSeconds"};
    const char *comma = "";
    yyjson_val *strategy = property(property(find_bundle(openapi), "spec"), "rolloutStrategy");
    yyjson_val *partition = yyjson_obj_get(property(strategy, "partitions"), "items");
    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++)
        if (drops(strategy, added[i])) {
            buf_addf(out, "%s%s", comma, added[i]);
            comma = ", ";
        }
    if (drops(partition, "approval"))
        buf_addf(out, "%spartitions[].approval", comma);
}
