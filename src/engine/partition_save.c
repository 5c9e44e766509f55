/* SPDX-License-Identifier: Apache-2.0 */
/* The cut and what else must survive a restart, as JSON and back. */
#include "engine/partition_internal.h"

#include <inttypes.h>

#include "base/mem.h"
#include "model/document.h"

static int by_order(const void *a, const void *b, void *context)
{
    const partitions *p = context;
    return paced_order(&p->members.at[*(const member_id *)a],
                       &p->members.at[*(const member_id *)b]);
}

static void save_members(const partitions *p, const member_id *order, size_t count, uint32_t index,
                         buf *out)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const paced *member = &p->members.at[order[i]];
        bool in = false;
        for (uint32_t s = member->seats; s; s = p->seats.at[s].next)
            in |= p->seats.at[s].partition == index;
        if (!in)
            continue;
        if (any)
            buf_addc(out, ',');
        any = true;
        buf_add_json(out, member->label);
    }
}

/* How much is written: all there is to see, or what a restart needs. */
typedef struct save_form {
    bool bare;
    keep_detail detail;
} save_form;

/* The last member of an automatic part: those behind it are in the next ones. */
static void save_border(const partitions *p, const member_id *order, size_t count, uint32_t index,
                        buf *out)
{
    const paced *last = NULL;
    for (size_t i = 0; i < count; i++) {
        const paced *member = &p->members.at[order[i]];
        if (member->seats && p->seats.at[member->seats].partition == index)
            last = member;
    }
    if (!last)
        return;
    buf_addz(out, ",\"to\":[");
    buf_add_json(out, last->name);
    buf_addc(out, ',');
    buf_add_json(out, last->tie);
    buf_addc(out, ']');
}

static void save_part(const partitions *p, uint32_t index, bool bare, buf *out)
{
    const part *at = &p->parts.at[index];
    buf_addz(out, "{\"name\":");
    buf_add_json(out, at->name);
    if (at->approved)
        buf_addz(out, ",\"approved\":true");
    if (at->visited && !bare)
        buf_addz(out, ",\"visited\":true");
    if (at->ready_since_ms != REASON_NEVER && (!bare || p->soak_ms > 0))
        buf_addf(out, ",\"readySince\":%" PRId64, at->ready_since_ms);
    if (!bare)
        buf_addf(out, ",\"peak\":%" PRId64, at->peak);
}

static void save_parts(const partitions *p, const member_id *order, size_t count, save_form form,
                       buf *out)
{
    buf_addz(out, ",\"partitions\":[");
    for (uint32_t i = 0; i < p->parts.len; i++) {
        bool rest = form.bare && p->automatic && i + 1 == p->parts.len;
        buf_addz(out, i > 0 ? "," : "");
        save_part(p, i, form.bare, out);
        if (form.detail == KEEP_BORDERS && p->automatic && !rest)
            save_border(p, order, count, i, out);
        if (form.detail == KEEP_MEMBERS) {
            buf_addz(out, ",\"members\":[");
            if (!rest)
                save_members(p, order, count, i, out);
            buf_addc(out, ']');
        }
        buf_addc(out, '}');
    }
    buf_addc(out, ']');
}

static void save_failed(const partitions *p, const member_id *order, size_t count, buf *out)
{
    bool any = false;
    buf_addz(out, ",\"failed\":[");
    for (size_t i = 0; i < count; i++) {
        if (!p->members.at[order[i]].failed)
            continue;
        if (any)
            buf_addc(out, ',');
        any = true;
        buf_add_json(out, p->members.at[order[i]].label);
    }
    buf_addc(out, ']');
}

static void save(const partitions *p, save_form form, buf *out)
{
    VEC(member_id) order = {0};
    for (size_t m = 0; m < p->members.len; m++)
        if (p->members.at[m].present && !vec_push(&order, (member_id)m))
            out->failed = true;
    if (order.len > 1)
        qsort_r(order.at, order.len, sizeof *order.at, by_order, (void *)(uintptr_t)p);
    bool least = form.detail == KEEP_LEAST, anew = least && p->automatic;
    buf_addf(out, "{\"cut\":%s,\"automatic\":%s", p->cut && !anew ? "true" : "false",
             p->automatic ? "true" : "false");
    if (p->halted)
        buf_addz(out, ",\"halted\":true");
    if (p->next_ms != REASON_NEVER)
        buf_addf(out, ",\"next\":%" PRId64, p->next_ms);
    if (!least)
        save_failed(p, order.at, order.len, out);
    if (!anew)
        save_parts(p, order.at, order.len, form, out);
    buf_addc(out, '}');
    vec_done(&order);
}

void partitions_save(const partitions *p, buf *out)
{
    save(p, (save_form){.detail = KEEP_MEMBERS}, out);
}

void partitions_keep(const partitions *p, keep_detail detail, buf *out)
{
    save(p, (save_form){.bare = true, .detail = detail}, out);
}

static bool flag_of(yyjson_val *object, const char *key)
{
    return yyjson_get_bool(yyjson_obj_get(object, key));
}

static str name_of(yyjson_val *value)
{
    return yyjson_is_str(value) ? (str){yyjson_get_str(value), yyjson_get_len(value)} : STR_EMPTY;
}

static int64_t time_of(yyjson_val *object, const char *key)
{
    yyjson_val *value = yyjson_obj_get(object, key);
    return yyjson_is_int(value) ? yyjson_get_sint(value) : REASON_NEVER;
}

/* A member that is gone is left out; one that joined since is assigned by the caller. */
static bool restore_part(partitions *p, yyjson_val *saved, partition_finder find)
{
    size_t index = p->parts.len;
    const partition *definition =
        !p->automatic && index < p->definitions.len ? &p->definitions.at[index] : NULL;
    if (!part_add(p, name_of(yyjson_obj_get(saved, "name")), definition))
        return false;
    size_t i, max;
    yyjson_val *called;
    yyjson_arr_foreach(yyjson_obj_get(saved, "members"), i, max, called)
    {
        member_id m;
        if (find(p->context, name_of(called), &m) && !seat_add(p, m, (uint32_t)index))
            return false;
    }
    part *at = &p->parts.at[index];
    int64_t peak = time_of(saved, "peak");
    at->approved = flag_of(saved, "approved");
    at->visited = flag_of(saved, "visited");
    at->peak = peak > at->now.unavailable ? peak : at->now.unavailable;
    at->ready_since_ms = time_of(saved, "readySince");
    return true;
}

/* Where only borders were kept; whoever is behind the last is assigned by the caller. */
static bool restore_borders(partitions *p, yyjson_val *parts)
{
    size_t i, max;
    yyjson_val *value;
    yyjson_arr_foreach(parts, i, max, value)
    {
        yyjson_val *to = yyjson_obj_get(value, "to");
        paced border = {.name = name_of(yyjson_arr_get(to, 0)),
                        .tie = name_of(yyjson_arr_get(to, 1))};
        for (member_id m = 0; to && m < p->members.len; m++)
            if (p->members.at[m].present && !p->members.at[m].seats &&
                paced_order(&p->members.at[m], &border) <= 0 && !seat_add(p, m, (uint32_t)i))
                return false;
    }
    return true;
}

bool partitions_restore(partitions *p, str json, partition_finder find, err *error)
{
    arena *scratch scoped(arena_cleanup) = arena_new(0);
    if (!scratch)
        return err_memory(error);
    yyjson_val *saved = json_parse(scratch, json, error);
    if (!saved)
        return false;
    for (size_t m = 0; m < p->members.len; m++)
        if (p->members.at[m].present)
            partitions_unassign(p, (member_id)m);
    p->parts.len = 0;
    arena_rewind(p->texts, (arena_place){0});
    p->automatic = flag_of(saved, "automatic");
    p->halted = flag_of(saved, "halted");
    p->next_ms = time_of(saved, "next");
    size_t i, max;
    yyjson_val *value;
    yyjson_arr_foreach(yyjson_obj_get(saved, "partitions"), i, max,
                       value) if (!restore_part(p, value, find)) return err_memory(error);
    if (!restore_borders(p, yyjson_obj_get(saved, "partitions")))
        return err_memory(error);
    yyjson_arr_foreach(yyjson_obj_get(saved, "failed"), i, max, value)
    {
        member_id m;
        if (!find(p->context, name_of(value), &m) || p->members.at[m].failed)
            continue;
        p->members.at[m].failed = true;
        p->failures++;
    }
    p->cut = flag_of(saved, "cut") && (p->parts.len > 0 || !p->automatic);
    for (size_t k = 0; k < p->parts.len; k++) {
        /* What has changed while nobody looked is for the first pass to see. */
        int64_t since = p->parts.at[k].ready_since_ms;
        part_update(p, &p->parts.at[k]);
        p->parts.at[k].ready_since_ms = since;
    }
    p->cuts++;
    caps_update(p);
    return true;
}
