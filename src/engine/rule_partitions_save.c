/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions of a rolloutStrategy rule: what must hold of them, and what survives a restart. */
#include <inttypes.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "engine/pace_work.h"
#include "engine/rule_partitions_internal.h"

/* ---- what must hold ---- */

bool partition_pace_check(const releases *r, const rel_pace *p, err *error)
{
    const rel_partitions *x = p->partition;
    size_t count = 0;
    for (uint32_t res = 0; res < x->members.len; res++) {
        const part_member *m = &x->members.at[res];
        count += m->present;
        if (!m->present || p->cell == NO)
            continue;
        uint32_t t = keymap_get(&r->target_of, KEY_PAIR(p->cell, res));
        if (t != NO && r->targets.at[t].job != 0 && r->targets.at[t].job_group == NO &&
            r->targets.at[t].job_epoch == r->epoch && !m->down)
            return err_set(error, "I2: a job runs on %.*s that no pass released",
                           STR_ARG(resource_name(r, res)));
        if (m->released && t != NO && r->targets.at[t].job != 0)
            return err_set(error, "%.*s is released and runs already",
                           STR_ARG(resource_name(r, res)));
    }
    if (count != x->count)
        return err_set(error, "%zu members are counted, %zu are there", x->count, count);
    return count == 0 || partitions_check(x->roll.pacing, r->core->now_ms, false, error);
}

static bool compare_member(releases *r, uint32_t p, uint32_t res, err *error)
{
    const rel_pace *pace = &r->paces.at[p];
    const rel_partitions *x = pace->partition;
    uint32_t t = target_of_member(r, pace, res);
    int64_t unused;
    if (t == NO)
        return err_set(error, "%.*s is no target any more", STR_ARG(resource_name(r, res)));
    standing s = standing_of(r, pace, t);
    bool gates = gates_of(r, p, t, pace->cell != NO && claim_gates(r, CLAIM_TARGET(t), &unused));
    if (x->members.at[res].released && !gates && !pace_in_batch(r, t))
        return err_set(error, "%.*s keeps a release that nothing can come of",
                       STR_ARG(resource_name(r, res)));
    unsigned want = flags_of(r, &x->members.at[res], &s, res, gates);
    unsigned have = partitions_get(x->roll.pacing, res);
    return want == have || err_set(error, "%.*s is %u to its partitions, and should be %u",
                                   STR_ARG(resource_name(r, res)), have, want);
}

bool partition_pace_compare(releases *r, uint32_t p, err *error)
{
    const rel_partitions *x = r->paces.at[p].partition;
    if (!strategy_of(x) || r->paces.at[p].dirty)
        return true;
    if (!pace_work_compare(r, &r->paces.at[p], error))
        return false;
    for (uint32_t res = 0; res < x->members.len; res++)
        if (x->members.at[res].present && !compare_member(r, p, res, error))
            return false;
    bool settled = !partitions_halted(x->roll.pacing);
    return partitions_check(x->roll.pacing, r->core->now_ms, settled, error);
}

/* ---- after a restart ---- */

typedef VEC(uint32_t) resource_list;

static int by_name(const void *a, const void *b, void *context)
{
    const releases *r = context;
    return str_cmp(resource_name(r, *(const uint32_t *)a), resource_name(r, *(const uint32_t *)b));
}

static uint64_t down_at(const part_member *m)
{
    return m->down ? m->live : 0;
}

static uint64_t wish_of(const part_member *m)
{
    return m->wish;
}

typedef struct sorting {
    const rel_partitions *x;
    uint64_t (*by)(const part_member *);
} sorting;

static int by_hash(const void *a, const void *b, void *context)
{
    const sorting *s = context;
    uint64_t left = s->by(&s->x->members.at[*(const uint32_t *)a]),
             right = s->by(&s->x->members.at[*(const uint32_t *)b]);
    return left != right ? (left < right ? -1 : 1) : by_name(a, b, s->x->r);
}

static void save_released(const rel_partitions *x, const resource_list *list, buf *out)
{
    bool any = false;
    for (size_t i = 0; i < list->len; i++) {
        if (!x->members.at[list->at[i]].released)
            continue;
        buf_addz(out, any ? "," : ",\"released\":[");
        any = true;
        buf_add_json(out, resource_name(x->r, list->at[i]));
    }
    if (any)
        buf_addc(out, ']');
}

/* Names of members, by the hash of a version; but for those with the usual one. */
static void save_hashes(const sorting *s, resource_list *list, uint64_t usual, buf *out)
{
    uint64_t last = usual;
    if (list->len > 1)
        qsort_r(list->at, list->len, sizeof *list->at, by_hash, (void *)(uintptr_t)s);
    buf_addc(out, '{');
    for (size_t i = 0; i < list->len; i++) {
        uint64_t hash = s->by(&s->x->members.at[list->at[i]]);
        if (hash == usual)
            continue;
        if (hash != last)
            buf_addf(out, "%s\"%016" PRIx64 "\":[", last != usual ? "]," : "", hash);
        else
            buf_addc(out, ',');
        last = hash;
        buf_add_json(out, resource_name(s->x->r, list->at[i]));
    }
    buf_addz(out, last != usual ? "]}" : "}");
}

static void save_limits(const part_limits *seen, buf *out)
{
    buf_addf(out, ",\"own\":%" PRId64 ",\"caps\":[%" PRId64, seen->own, seen->whole);
    for (size_t i = 0; i < seen->parts.len; i++)
        buf_addf(out, ",%" PRId64, seen->parts.at[i]);
    buf_addc(out, ']');
}

void partition_pace_save(const releases *r, const rel_pace *p, buf *out)
{
    const rel_partitions *x = p->partition;
    resource_list list = {0};
    for (uint32_t res = 0; res < x->members.len; res++)
        if (x->members.at[res].present && !vec_push(&list, res))
            out->failed = true;
    if (list.len > 1)
        qsort_r(list.at, list.len, sizeof *list.at, by_name, (void *)(uintptr_t)r);
    buf_addf(out, ",\"settings\":\"%016" PRIx64 "\",\"edition\":\"%016" PRIx64 "\"",
             x->roll.settings, x->usual);
    buf_addf(out, ",\"limits\":\"%016" PRIx64 "\"", x->roll.everything);
    save_limits(&x->seen, out);
    pace_work_save(r, p, out);
    save_released(x, &list, out);
    buf_addz(out, ",\"down\":");
    save_hashes(&(sorting){x, down_at}, &list, 0, out);
    /* Nearly everybody has the usual wish; "edition" is its name in records. */
    buf_addz(out, ",\"wishes\":");
    save_hashes(&(sorting){x, wish_of}, &list, x->usual, out);
    partition_rollout_save(&x->roll, out);
    vec_done(&list);
}

static uint64_t hash_in(str text)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < text.len && i < 16; i++) {
        char c = text.ptr[i];
        hash = hash << 4 | (uint64_t)(c >= 'a' ? c - 'a' + 10 : c - '0');
    }
    return hash;
}

static str text_of(yyjson_val *value)
{
    return yyjson_is_str(value) ? (str){yyjson_get_str(value), yyjson_get_len(value)} : STR_EMPTY;
}

static bool find_member(void *context, str called, member_id *ret)
{
    const rel_partitions *x = context;
    uint32_t res = keymap_get(&x->r->resource_of, names_find(x->r->core->names, called));
    if (res == NO || !member_at(x, res))
        return false;
    *ret = res;
    return true;
}

static void restore_members(rel_partitions *x, yyjson_val *saved)
{
    size_t i, max, k, most;
    yyjson_val *name, *key, *list;
    member_id m;
    yyjson_arr_foreach(yyjson_obj_get(saved, "released"), i, max, name)
    {
        if (find_member(x, text_of(name), &m))
            x->members.at[m].released = true;
    }
    yyjson_obj_foreach(yyjson_obj_get(saved, "down"), i, max, key, list)
    {
        yyjson_arr_foreach(list, k, most, name)
        {
            if (!find_member(x, text_of(name), &m))
                continue;
            x->members.at[m].down = true;
            x->members.at[m].live = hash_in(text_of(key));
        }
    }
    for (size_t at = 0; at < x->members.len; at++) {
        x->members.at[at].known = x->members.at[at].present;
        x->members.at[at].wish = x->usual;
    }
    yyjson_obj_foreach(yyjson_obj_get(saved, "wishes"), i, max, key, list)
    {
        yyjson_arr_foreach(list, k, most, name)
        {
            if (find_member(x, text_of(name), &m))
                x->members.at[m].wish = hash_in(text_of(key));
        }
    }
}

/* Gates are asked in the first step; nothing that is saved depends on them. */
static void restore_flags(releases *r, uint32_t p)
{
    const rel_pace *pace = &r->paces.at[p];
    rel_partitions *x = pace->partition;
    for (uint32_t res = 0; res < x->members.len; res++) {
        const part_member *m = &x->members.at[res];
        uint32_t t = m->present ? target_of_member(r, pace, res) : NO;
        if (t == NO)
            continue;
        standing s = standing_of(r, pace, t);
        partitions_set(x->roll.pacing, res, flags_of(r, m, &s, res, m->released));
        if (!partitions_assign(x->roll.pacing, res))
            rel_no_memory(r);
    }
}

/* Limits as they were. Records from before they were kept, and those of another cut, say nothing:
 * then releases are looked at once more. */
static void restore_limits(rel_partitions *x, yyjson_val *saved)
{
    yyjson_val *caps = yyjson_obj_get(saved, "caps"), *cap;
    size_t i, count;
    if (yyjson_arr_size(caps) != partitions_count(x->roll.pacing) + 1)
        return;
    x->seen.parts.len = 0;
    yyjson_arr_foreach(caps, i, count, cap)
    {
        if (i == 0)
            x->seen.whole = yyjson_get_sint(cap);
        else if (!vec_push(&x->seen.parts, yyjson_get_sint(cap)))
            rel_no_memory(x->r);
    }
    x->seen.own = yyjson_get_sint(yyjson_obj_get(saved, "own"));
    x->seen.cuts = partitions_figures(x->roll.pacing).cuts;
}

/* What was edited, and who left, while nobody looked is taken as it would have been live: limits
 * may have shrunk, and an edit lifts a halt. Records from before it was kept do not say: then a
 * halt stays. */
static void restore_edits(rel_partitions *x, yyjson_val *saved)
{
    str limits = text_of(yyjson_obj_get(saved, "limits"));
    restore_limits(x, saved);
    if (limits.len > 0 && hash_in(limits) != x->roll.everything)
        partitions_resume(x->roll.pacing);
}

bool partition_pace_restore(releases *r, uint32_t p, yyjson_val *saved, err *error)
{
    rel_partitions *x = r->paces.at[p].partition;
    x->usual = hash_in(text_of(yyjson_obj_get(saved, "edition")));
    pace_work_restore(r, p, saved);
    restore_members(x, saved);
    partition_rollout_restore(&x->roll, saved);
    x->roll.cut_due = hash_in(text_of(yyjson_obj_get(saved, "settings"))) != x->roll.settings;
    x->roll.edited = x->roll.work_changed = false;
    restore_flags(r, p);
    buf cut = BUF(LIMIT_TEXT_BYTES);
    json_write(&cut, yyjson_obj_get(saved, "rollout"));
    bool good = cut.failed ? err_memory(error)
                           : partitions_restore(x->roll.pacing, buf_str(&cut), find_member, error);
    buf_done(&cut);
    x->reached = x->roll.last.visited;
    x->reach = partitions_reach(x->roll.pacing, x->reached);
    restore_flags(r, p);
    restore_edits(x, saved);
    return good && (!r->core->no_memory || err_memory(error));
}
