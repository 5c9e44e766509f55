/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/partition_rollout.h"

#include <inttypes.h>

#include "base/strmap.h"
#include "model/document.h"

/* ---- what an edit of the strategy changes ---- */

static void add_amount(buf *out, int_or_percent v)
{
    buf_addf(out, "%d:%" PRId64 ",", (int)v.kind, v.value);
}

static void add_query(buf *out, label_query q)
{
    buf_addc(out, q.compiled ? '{' : '-');
    for (size_t i = 0; i < q.len; i++) {
        buf_add_json(out, q.terms[i].key);
        buf_addf(out, "%d", (int)q.terms[i].op);
        for (size_t v = 0; v < q.terms[i].value_count; v++)
            buf_add_json(out, q.terms[i].values[v]);
    }
    buf_addc(out, '}');
}

/* What defines partitions, and then the rest of the strategy, as text to hash. */
static bool hash_strategy(const rollout_strategy *s, uint64_t *ret_settings,
                          uint64_t *ret_everything)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    add_amount(&text, s->auto_partition_size);
    buf_addf(&text, "%" PRId64 ";", s->auto_partition_threshold);
    for (size_t i = 0; i < s->partitions.len; i++) {
        const partition *p = &s->partitions.at[i];
        buf_add_json(&text, p->name);
        buf_add_json(&text, p->match.cluster_name);
        buf_add_json(&text, p->match.cluster_group);
        add_query(&text, p->match.cluster_selector);
        add_query(&text, p->match.cluster_group_selector);
    }
    *ret_settings = str_hash(buf_str(&text));
    add_amount(&text, s->max_unavailable);
    add_amount(&text, s->max_unavailable_partitions);
    buf_addf(&text, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, s->max_new,
             s->soak_seconds.set ? s->soak_seconds.value : 0,
             s->failure_threshold.set ? s->failure_threshold.value : 0,
             s->offline_after_seconds.set ? s->offline_after_seconds.value : 0);
    for (size_t i = 0; i < s->partitions.len; i++) {
        add_amount(&text, s->partitions.at[i].max_unavailable);
        buf_addc(&text, s->partitions.at[i].approval ? 'a' : '-');
    }
    *ret_everything = str_hash(buf_str(&text));
    bool good = !text.failed;
    buf_done(&text);
    return good;
}

bool partition_rollout_set(partition_rollout *r, const rollout_strategy *s, bool fresh)
{
    uint64_t settings, everything;
    if (!hash_strategy(s, &settings, &everything) || !partitions_set_policy(r->pacing, s))
        return false;
    r->cut_due |= fresh || settings != r->settings;
    r->edited |= fresh;
    if (everything != r->everything)
        partitions_resume(r->pacing);
    r->settings = settings;
    r->everything = everything;
    r->dirty = true;
    return true;
}

/* ---- rollouts and passes ---- */

bool partition_rollout_begin(partition_rollout *r, size_t members, bool *ret_cut)
{
    r->running |= partitions_halted(r->pacing); /* it may go on: only an edit begins another */
    bool starts = r->cut_due || !partitions_are_cut(r->pacing) || (r->work_changed && !r->running);
    if (r->edited || (starts && r->work_changed)) {
        partitions_edited(r->pacing);
        r->dirty = true; /* soaks begin with the next pass */
    }
    *ret_cut = starts && members > 0;
    r->cut_due = r->work_changed = r->edited = false;
    if (!*ret_cut)
        return true;
    r->running = r->dirty = true;
    return partitions_cut(r->pacing);
}

bool partition_rollout_due(partition_rollout *r, int64_t now_ms)
{
    int64_t soaked = partitions_next_ms(r->pacing);
    if (soaked != REASON_NEVER && now_ms >= soaked)
        r->dirty = true;
    return r->dirty && partitions_are_cut(r->pacing) && !partitions_halted(r->pacing);
}

bool partition_rollout_passed(partition_rollout *r, const pass_figures *f, int64_t now_ms)
{
    r->passed_ms = now_ms;
    bool released = f->created + f->updated + f->fixed > 0;
    bool news = f->visited != r->last.visited || f->partitions != r->last.partitions ||
                f->not_ready != r->last.not_ready;
    bool worth = released || r->last_released || news;
    if (worth) {
        r->passes++;
        r->last = *f;
    }
    r->dirty = r->last_released = released;
    if (partitions_complete(r->pacing))
        r->running = false;
    return worth;
}

/* ---- after a restart ---- */

static void save_flag(buf *out, const char *key, bool value)
{
    if (value)
        buf_addf(out, ",\"%s\":true", key);
}

void partition_rollout_save(const partition_rollout *r, buf *out)
{
    save_flag(out, "running", r->running);
    save_flag(out, "lastReleased", r->last_released);
    save_flag(out, "haltedNow", r->halted_now);
    buf_addf(out,
             ",\"passes\":%" PRId64 ",\"visited\":%" PRId64 ",\"partitionCount\":%" PRId64
             ",\"notReady\":%" PRId64,
             r->passes, r->last.visited, r->last.partitions, r->last.not_ready);
    buf_addz(out, ",\"rollout\":");
    partitions_save(r->pacing, out);
}

void partition_rollout_keep(const partition_rollout *r, keep_detail detail, buf *out)
{
    save_flag(out, "running", r->running);
    buf_addz(out, ",\"rollout\":");
    partitions_keep(r->pacing, detail, out);
}

static bool flag_in(yyjson_val *from, const char *key)
{
    return yyjson_get_bool(yyjson_obj_get(from, key));
}

static int64_t number_in(yyjson_val *from, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(from, key));
}

void partition_rollout_restore(partition_rollout *r, yyjson_val *saved)
{
    r->running = flag_in(saved, "running");
    r->last_released = flag_in(saved, "lastReleased");
    r->halted_now = flag_in(saved, "haltedNow");
    r->passes = number_in(saved, "passes");
    r->last = (pass_figures){.visited = number_in(saved, "visited"),
                             .partitions = number_in(saved, "partitionCount"),
                             .not_ready = number_in(saved, "notReady")};
    r->dirty = true;
}
