/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/status_record.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "model/document.h"
#include "operator/shell_read.h"

#define CLAIMS_BESIDE "claimsBeside" /* by name: of nodes that are in none of the lists */
#define NAMES_BYTES (4u << 20)

/* Those of a compartment that hold claims, in this order. */
static const char *const lists[] = {"members", "retrying"};
#define LISTS (sizeof lists / sizeof lists[0])

static str text_of(yyjson_val *text)
{
    return (str){yyjson_get_str(text), yyjson_get_len(text)};
}

/* Where the lists of a compartment of the record stand. */
typedef struct holders {
    yyjson_val *cohort; /* of the record */
    yyjson_val *shown;  /* compartmentStatuses; NULL: in the record itself */
} holders;

static yyjson_val *list_of(const holders *h, yyjson_val *name, const char *list)
{
    yyjson_val *at = yyjson_obj_iter_get_val(name);
    if (h->shown)
        at = yyjson_obj_get(yyjson_obj_getn(h->shown, text_of(name).ptr, text_of(name).len),
                            "batchState");
    return yyjson_obj_get(at, list);
}

/* The names in the order of the lists, by their places. False without memory. */
static bool read_names(const holders *h, strmap *ret)
{
    yyjson_obj_iter walk = yyjson_obj_iter_with(h->cohort);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));)
        for (size_t i = 0; i < LISTS; i++) {
            yyjson_arr_iter names = yyjson_arr_iter_with(list_of(h, key, lists[i]));
            for (yyjson_val *one; (one = yyjson_arr_iter_next(&names));)
                if (yyjson_is_str(one) && !strmap_get(ret, text_of(one)) &&
                    !strmap_put(ret, text_of(one), ret->len))
                    return false;
        }
    return true;
}

static uint64_t hash_of(const strmap *names, buf *out)
{
    buf text = BUF(NAMES_BYTES);
    for (size_t i = 0; i < names->len; i++) {
        buf_add(&text, names->entries[i].key);
        buf_addc(&text, '\n');
    }
    uint64_t hash = str_hash(buf_str(&text));
    out->failed |= text.failed;
    buf_done(&text);
    return hash;
}

/* ---- objects ---- */

static void put_key(buf *out, str key)
{
    buf_addz(out, out->len > 0 && out->ptr[out->len - 1] == '{' ? "" : ",");
    buf_add_json(out, key);
    buf_addc(out, ':');
}

static bool is_one_of(str key, const char *const *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(key, str_of(at[i])))
            return true;
    return false;
}

/* An object's members but these; its last brace is left to the caller. */
static void put_others(buf *out, yyjson_val *of, const char *const *but, size_t count)
{
    buf_addc(out, '{');
    yyjson_obj_iter walk = yyjson_obj_iter_with(of);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        if (is_one_of(text_of(key), but, count))
            continue;
        put_key(out, text_of(key));
        json_write(out, yyjson_obj_iter_get_val(key));
    }
}

/* The cohort with the lists from where they stand, or without them. */
static void put_cohort(buf *out, const holders *h, bool with_lists)
{
    put_key(out, STR("cohort"));
    buf_addc(out, '{');
    yyjson_obj_iter walk = yyjson_obj_iter_with(h->cohort);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        put_key(out, text_of(key));
        put_others(out, yyjson_obj_iter_get_val(key), lists, LISTS);
        for (size_t i = 0; with_lists && i < LISTS; i++) {
            if (yyjson_arr_size(list_of(h, key, lists[i])) == 0)
                continue;
            put_key(out, str_of(lists[i]));
            json_write(out, list_of(h, key, lists[i]));
        }
        buf_addc(out, '}');
    }
    buf_addc(out, '}');
}

/* ---- writing ---- */

static void put_claims(buf *out, arena *a, yyjson_val *claims, const strmap *names)
{
    yyjson_val **at = ARENA_ARRAY(a, names->len + 1, yyjson_val *);
    buf beside = BUF(NAMES_BYTES);
    for (size_t i = 0; at && i < names->len; i++)
        at[i] = NULL;
    out->failed |= !at;
    yyjson_obj_iter walk = yyjson_obj_iter_with(claims);
    for (yyjson_val *key; at && (key = yyjson_obj_iter_next(&walk));) {
        const uint64_t *index = strmap_get(names, text_of(key));
        if (index) {
            at[*index] = yyjson_obj_iter_get_val(key);
            continue;
        }
        buf_addz(&beside, beside.len > 0 ? "," : "");
        buf_add_json(&beside, text_of(key));
        buf_addc(&beside, ':');
        json_write(&beside, yyjson_obj_iter_get_val(key));
    }
    put_key(out, STR("claims"));
    buf_addc(out, '[');
    for (size_t i = 0; at && i < names->len; i++) {
        buf_addz(out, i > 0 ? "," : "");
        if (at[i])
            json_write(out, at[i]);
        else
            buf_addz(out, "null");
    }
    buf_addc(out, ']');
    if (beside.len > 0)
        buf_addf(out, ",\"" CLAIMS_BESIDE "\":{%.*s}", STR_ARG(buf_str(&beside)));
    out->failed |= beside.failed;
    buf_done(&beside);
}

void status_record_put(arena *a, yyjson_val *record, buf *out)
{
    static const char *const own[] = {"claims", "cohort"};
    holders h = {.cohort = yyjson_obj_get(record, "cohort")};
    strmap names = {0};
    out->failed |= !read_names(&h, &names);
    put_others(out, record, own, sizeof own / sizeof own[0]);
    put_claims(out, a, yyjson_obj_get(record, "claims"), &names);
    buf_addf(out, ",\"names\":\"%016" PRIx64 "\"", hash_of(&names, out));
    put_cohort(out, &h, false);
    buf_addc(out, '}');
    strmap_done(&names);
}

/* ---- reading ---- */

static void put_names(buf *out, yyjson_val *record, const strmap *names)
{
    char hash[24];
    size_t index = 0;
    snprintf(hash, sizeof hash, "%016" PRIx64, hash_of(names, out));
    bool same = str_eq(read_text(record, "names"), str_of(hash));
    put_key(out, STR("claims"));
    put_others(out, yyjson_obj_get(record, CLAIMS_BESIDE), NULL, 0);
    yyjson_arr_iter walk = yyjson_arr_iter_with(yyjson_obj_get(record, "claims"));
    for (yyjson_val *one; same && index < names->len && (one = yyjson_arr_iter_next(&walk));
         index++) {
        if (yyjson_is_null(one))
            continue;
        put_key(out, names->entries[index].key);
        json_write(out, one);
    }
    buf_addc(out, '}');
}

void status_record_whole(arena *a, yyjson_val *status, buf *out)
{
    static const char *const own[] = {"claims", CLAIMS_BESIDE, "names", "cohort"};
    str text = read_text(status, "drover");
    yyjson_val *record = text.len > 0 ? json_parse(a, text, NULL) : NULL;
    holders h = {yyjson_obj_get(record, "cohort"), yyjson_obj_get(status, "compartmentStatuses")};
    if (!yyjson_is_arr(yyjson_obj_get(record, "claims"))) {
        buf_add(out, text);
        return;
    }
    strmap names = {0};
    out->failed |= !read_names(&h, &names);
    put_others(out, record, own, sizeof own / sizeof own[0]);
    put_names(out, record, &names);
    put_cohort(out, &h, true);
    buf_addc(out, '}');
    strmap_done(&names);
}
