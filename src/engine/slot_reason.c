/* SPDX-License-Identifier: Apache-2.0 */
/* Why a claim waits for a slot: who has them, and who stands ahead of it in the queue.
 *
 * Both are sorted once for everybody who asks, and kept until a fact or a step may have changed
 * them: a stalled fleet in which everybody waits would else sort everybody for each of them.
 * Decides nothing. */
#include <stdlib.h>

#include "base/mem.h"
#include "engine/chain.h"

struct slot_queue {
    uint64_t asked_at;     /* releases.changes as it was then */
    VEC(str) holders;      /* names, sorted */
    VEC(rel_waiter) turns; /* who waits, in order */
    index_list firsts;     /* turns that are the first of a resource without a slot */
    keymap first_of;       /* resource -> its place in firsts */
    int64_t lost_ms;       /* when the first slot is lost by time alone; NEVER: none is */
    bool late;             /* a slot is held past its time-out */
};

struct slot_queue *slot_queue_free(struct slot_queue *q)
{
    if (!q)
        return NULL;
    vec_done(&q->holders);
    vec_done(&q->turns);
    vec_done(&q->firsts);
    keymap_done(&q->first_of);
    return mem_free(q);
}

/* ---- asked once for all ---- */

static int compare_names(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static int compare_turns(const void *a, const void *b, void *context)
{
    return waiter_before(context, a, b) ? -1 : waiter_before(context, b, a);
}

/* When the resource loses its slot by time alone; NEVER: it does not. */
static int64_t slot_lost(const releases *r, uint32_t res, uint32_t rule_)
{
    const rule *is = r->rules.at[rule_].doc;
    bool kept = !is || is->resource_concurrency->on_timeout == SLOT_TIMEOUT_HOLD;
    return kept ? NEVER : slot_due(r, res, rule_);
}

static bool fill_holders(const releases *r, uint32_t rule_, struct slot_queue *q)
{
    q->holders.len = 0;
    q->late = false;
    q->lost_ms = NEVER;
    for (uint32_t res = 0; r->rules.at[rule_].held > 0 && res < r->resources.len; res++) {
        const rel_hold *hold = hold_find(r, res, rule_);
        if (!hold)
            continue;
        q->late = q->late || hold->late;
        q->lost_ms = earlier(q->lost_ms, slot_lost(r, res, rule_));
        if (!vec_push(&q->holders, rel_text(r, r->resources.at[res].name)))
            return false;
    }
    if (q->holders.len > 1)
        qsort(q->holders.at, q->holders.len, sizeof *q->holders.at, compare_names);
    return true;
}

static bool fill_turns(releases *r, uint32_t rule_, struct slot_queue *q)
{
    const waiter_heap *from = &r->rules.at[rule_].waiters;
    q->turns.len = q->firsts.len = 0;
    keymap_clear(&q->first_of);
    for (size_t i = 0; i < from->len; i++)
        if (waiter_stands(r, &from->at[i]) && !vec_push(&q->turns, from->at[i]))
            return false;
    if (q->turns.len > 1)
        qsort_r(q->turns.at, q->turns.len, sizeof *q->turns.at, compare_turns, r);
    for (uint32_t i = 0; i < q->turns.len; i++) {
        uint32_t res = q->turns.at[i].resource;
        if (hold_find(r, res, rule_) || keymap_get(&q->first_of, res) != NO)
            continue;
        if (!keymap_put(&q->first_of, res, (uint32_t)q->firsts.len) || !vec_push(&q->firsts, i))
            return false;
    }
    return true;
}

static const struct slot_queue *queue_of(releases *r, uint32_t rule_)
{
    rel_rule *the = &r->rules.at[rule_];
    if (!the->queue)
        the->queue = mem_zalloc(sizeof *the->queue);
    struct slot_queue *q = the->queue;
    if (!q || q->asked_at == r->changes)
        return q;
    q->asked_at = 0;
    r->core->looked_at += r->resources.len + the->waiters.len;
    if (!fill_holders(r, rule_, q) || !fill_turns(r, rule_, q))
        return NULL;
    q->asked_at = r->changes;
    return q;
}

/* ---- one claim ---- */

/* How many resources stand ahead, as a number of firsts; a slot is the resource's: whichever of its
 * claims gets it, all have it. */
static size_t firsts_before(const releases *r, const struct slot_queue *q, const rel_waiter *own)
{
    size_t low = 0, high = q->firsts.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (waiter_before(r, &q->turns.at[q->firsts.at[middle]], own))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct asker {
    releases *r;
    const struct slot_queue *q;
    uint32_t claim;
    size_t most; /* so many names are enough; 0: all */
    arena *a;
} asker;

/* The holders, and whoever stands ahead. */
static bool name_all(const asker *by, reason *why)
{
    const struct slot_queue *q = by->q;
    rel_waiter own = waiter_of(by->r, by->claim);
    size_t held = q->holders.len, before = firsts_before(by->r, q, &own), n = 0;
    uint32_t at = keymap_get(&q->first_of, own.resource);
    size_t all = held + before - (at != NO && at < before);
    why->holder_count = by->most > 0 && by->most < held ? by->most : held;
    why->holder_more = held - why->holder_count;
    why->of_count = by->most > 0 && by->most < all ? by->most : all;
    why->of_more = all - why->of_count;
    str *holders = ARENA_ARRAY(by->a, why->holder_count + 1, str);
    str *of = ARENA_ARRAY(by->a, why->of_count + 1, str);
    if (!of || !holders)
        return false;
    for (size_t i = 0; i < why->holder_count; i++)
        holders[i] = q->holders.at[i];
    for (; n < why->of_count && n < held; n++)
        of[n] = q->holders.at[n];
    for (size_t i = 0; n < why->of_count; i++)
        if (i != at)
            of[n++] =
                rel_text(by->r, by->r->resources.at[q->turns.at[q->firsts.at[i]].resource].name);
    why->holders = holders;
    why->of = of;
    return true;
}

bool slot_reason(releases *r, uint32_t claim, uint32_t rule_, arena *a, reasons *out)
{
    const struct slot_queue *q = queue_of(r, rule_);
    const rel_rule *the = &r->rules.at[rule_];
    if (!q)
        return false;
    reason why = {.rule = REASON_CONCURRENCY,
                  .scope = the->scope,
                  .act = RELEASE_COMPLETE,
                  .next_ms = q->lost_ms,
                  .have = the->held,
                  .limit = rule_limit(the),
                  .detail = q->late ? STR("held past its time-out") : STR_EMPTY};
    if (!name_all(&(asker){r, q, claim, out->most, a}, &why))
        return false;
    if (why.limit == 0) { /* a pause by a person: whoever waits, waits for them */
        str *of = ARENA_NEW(a, str);
        if (!of)
            return false;
        *of = rel_text(r, r->policies.at[the->policy].name);
        why.act = RELEASE_EDIT;
        why.of = of;
        why.of_count = 1;
        why.of_more = 0;
        why.next_ms = NEVER;
    }
    return reasons_add(out, a, why);
}

bool slot_reasons(releases *r, uint32_t claim, arena *a, reasons *out)
{
    index_list needed = {0};
    if (r->gates_only)
        return true;
    claim_rules(r, claim, &needed);
    bool good = true;
    for (size_t i = 0; good && i < needed.len; i++)
        if (slot_lacks(r, claim, needed.at[i]))
            good = slot_reason(r, claim, needed.at[i], a, out);
    vec_done(&needed);
    return good;
}
