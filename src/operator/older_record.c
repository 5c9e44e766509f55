/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/older_record.h"

#include <inttypes.h>

#include "base/mem.h"
#include "engine/package_stage.h"
#include "model/document.h"
#include "operator/shell_read.h"

static const char *const members[] = {"nodeOrderOffset", "configUpdates", "packageList",
                                      "compartmentStatuses"};

bool older_wrote(yyjson_val *status)
{
    return yyjson_obj_size(status) > 0 && read_text(status, "drover").len == 0;
}

void older_status_put(buf *out, yyjson_val *status)
{
    const char *comma = "";
    buf_addc(out, '{');
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (!yyjson_obj_get(status, members[i]))
            continue;
        buf_addf(out, "%s\"%s\":", comma, members[i]);
        json_write(out, yyjson_obj_get(status, members[i]));
        comma = ",";
    }
    buf_addc(out, '}');
}

bool older_config_put(buf *out, yyjson_val *config_map, str owner_uid)
{
    yyjson_val *owner = yyjson_arr_get_first(read_at(config_map, "metadata", "ownerReferences"));
    scoped(arena_cleanup) arena *a = arena_new(0);
    if (!str_eq(read_text(owner, "uid"), owner_uid))
        return false;
    out->failed |= !a;
    if (a)
        config_put(out, read_labels(a, yyjson_obj_get(config_map, "data"), STR_EMPTY));
    return true;
}

/* ---- batches ---- */

/* Counts are small; what somebody made of them is not to be reckoned with. */
static int64_t count_of(yyjson_val *json, const char *key)
{
    int64_t count = yyjson_get_sint(yyjson_obj_get(json, key));
    return count < 0 ? 0 : count > INT32_MAX ? INT32_MAX : count;
}

static const char *flag_of(yyjson_val *json, const char *key)
{
    return yyjson_is_true(yyjson_obj_get(json, key)) ? "true" : "false";
}

static void put_batches(buf *out, yyjson_val *compartments)
{
    const char *comma = "";
    buf_addz(out, ",\"cohort\":{");
    yyjson_obj_iter walk = yyjson_obj_iter_with(compartments);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *batch = yyjson_obj_get(yyjson_obj_iter_get_val(key), "batchState");
        int64_t number = count_of(batch, "currentBatch");
        if (!batch)
            continue;
        buf_addz(out, comma);
        buf_add_json(out, (str){yyjson_get_str(key), yyjson_get_len(key)});
        buf_addf(out,
                 ":{\"currentBatch\":%" PRId64 ",\"completed\":%" PRId64 ",\"failed\":%" PRId64
                 ",\"consecutiveFailures\":%" PRId64 ",\"lastBatchSize\":%" PRId64
                 ",\"lastBatchFailed\":%s,\"shouldStop\":%s}",
                 number > 0 ? number : 1, count_of(batch, "completedNodes"),
                 count_of(batch, "failedNodes"), count_of(batch, "consecutiveFailures"),
                 count_of(batch, "lastBatchSize"), flag_of(batch, "lastBatchFailed"),
                 flag_of(batch, "shouldStop"));
        comma = ",";
    }
    buf_addc(out, '}');
}

/* ---- packages ---- */

/* Which version of a package that operator saw last, "NAME:VERSION,NAME:VERSION"; without a
 * pointer: it saw none. */
static str version_seen(str list, str name)
{
    while (list.ptr && list.len > 0) {
        str seen = str_cut(&list, ','), of = str_cut(&seen, ':');
        if (str_eq(of, name))
            return seen;
    }
    return (str){NULL, 0};
}

/* From these it is seen what was edited since. */
static void put_seen(buf *out, str list)
{
    const char *comma = "";
    if (list.len == 0)
        return;
    buf_addz(out, ",\"packages\":[");
    while (list.ptr && list.len > 0) {
        str seen = str_cut(&list, ','), of = str_cut(&seen, ':');
        buf_addf(out, "%s[", comma);
        buf_add_json(out, of);
        buf_addc(out, ',');
        buf_add_json(out, seen);
        buf_addc(out, ']');
        comma = ",";
    }
    buf_addc(out, ']');
}

/* "a,b". They stand there until the next change of the package's configMap, or version. */
static void put_updates(buf *out, yyjson_val *keys)
{
    const char *comma = "";
    buf text = BUF(LIMIT_DOCUMENT_BYTES);
    yyjson_arr_iter walk = yyjson_arr_iter_with(keys);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        if (!yyjson_is_str(one))
            continue;
        buf_addz(&text, comma);
        buf_add(&text, (str){yyjson_get_str(one), yyjson_get_len(one)});
        comma = ",";
    }
    buf_add_json(out, buf_str(&text));
    out->failed |= text.failed;
    buf_done(&text);
}

static void put_found(buf *out, yyjson_val *status, const package *p, const char *config)
{
    str seen = version_seen(read_text(status, "packageList"), p->name);
    yyjson_val *updates = yyjson_obj_get(status, "configUpdates");
    bool same = !seen.ptr || str_eq(seen, p->version);
    buf_addc(out, '[');
    buf_add_json(out, p->name);
    buf_addc(out, ',');
    buf_add_json(out, p->version);
    buf_addc(out, ',');
    if (config)
        buf_add_json(out, str_of(config));
    else
        buf_addz(out, "null");
    buf_addc(out, ',');
    put_updates(out, same ? yyjson_obj_getn(updates, p->name.ptr, p->name.len) : NULL);
    buf_addc(out, ']');
}

void older_record_put(buf *out, yyjson_val *status, const skyhook *of, const char *const *configs)
{
    buf_addf(out, "{\"offset\":%" PRId64 ",\"rolling\":1,\"claims\":{},\"found\":[",
             count_of(status, "nodeOrderOffset"));
    for (size_t i = 0; i < of->spec.packages.len; i++) {
        buf_addz(out, i > 0 ? "," : "");
        put_found(out, status, &of->spec.packages.at[i], configs ? configs[i] : NULL);
    }
    buf_addc(out, ']');
    put_seen(out, read_text(status, "packageList"));
    put_batches(out, yyjson_obj_get(status, "compartmentStatuses"));
    buf_addc(out, '}');
}
