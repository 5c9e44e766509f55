/* SPDX-License-Identifier: Apache-2.0 */
/* What of a cohort survives a restart: batch states and claims, by name. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "engine/cohort_internal.h"
#include "model/document.h"

/* The numbers of a compartment: X(member, JSON key). */
#define SAVED_NUMBERS(X)                                                                           \
    X(current_batch, "currentBatch")                                                               \
    X(completed, "completed")                                                                      \
    X(failed, "failed")                                                                            \
    X(consecutive_failures, "consecutiveFailures")                                                 \
    X(last_batch_size, "lastBatchSize")                                                            \
    X(peak, "peak")                                                                                \
    X(rule.batch_threshold, "batchThreshold")                                                      \
    X(rule.failure_threshold, "failureThreshold")                                                  \
    X(rule.safety_limit, "safetyLimit")
#define SAVED_FLAGS(X)                                                                             \
    X(last_batch_failed, "lastBatchFailed")                                                        \
    X(stopped, "shouldStop")                                                                       \
    X(batch_open, "open")                                                                          \
    X(carried, "carried")

/* Of those of the open batch that ended in one way: who still is what that made it, and who is
 * something else by now because it got new work. */
#define ENDED_LISTS(X, key, outcome)                                                               \
    X(ENDED, key, outcome, outcome)                                                                \
    X(CHANGED, key "NowWaiting", outcome, MEMBER_WAITING)                                          \
    X(CHANGED, key "NowStartable", outcome, MEMBER_STARTABLE)                                      \
    X(CHANGED, key "NowDone", outcome, MEMBER_DONE)                                                \
    X(CHANGED, key "NowFailed", outcome, MEMBER_FAILED)                                            \
    X(CHANGED, key "NowBlocked", outcome, MEMBER_BLOCKED)
/* What stood beside the first list of those who ended, in older records. */
#define OLD_LISTS(X)                                                                               \
    X(IS_NOW, "nowWaiting", MEMBER_ABSENT, MEMBER_WAITING)                                         \
    X(IS_NOW, "nowStartable", MEMBER_ABSENT, MEMBER_STARTABLE)                                     \
    X(IS_NOW, "nowDone", MEMBER_ABSENT, MEMBER_DONE)                                               \
    X(IS_NOW, "nowFailed", MEMBER_ABSENT, MEMBER_FAILED)                                           \
    X(IS_NOW, "nowBlocked", MEMBER_ABSENT, MEMBER_BLOCKED)
/* The lists of members that are kept, of which each stands in one: their claims, and how those of
 * the open batch ended. */
#define MEMBER_LISTS_KEPT(X)                                                                       \
    X(RUNS, "members", MEMBER_ABSENT, MEMBER_IN_FLIGHT)                                            \
    X(RETRIES, "retrying", MEMBER_ABSENT, MEMBER_IN_FLIGHT)                                        \
    ENDED_LISTS(X, "done", MEMBER_DONE)                                                            \
    ENDED_LISTS(X, "erroring", MEMBER_FAILED)                                                      \
    ENDED_LISTS(X, "blocked", MEMBER_BLOCKED)                                                      \
    OLD_LISTS(X)

typedef enum list_kind { LIST_RUNS, LIST_RETRIES, LIST_ENDED, LIST_CHANGED, LIST_IS_NOW } list_kind;

static const struct member_list {
    str key;
    list_kind kind;
    member_state outcome; /* ABSENT: none */
    member_state state;
} member_lists[] = {
#define X(kind, key, outcome, state) {STR(key), LIST_##kind, outcome, state},
    MEMBER_LISTS_KEPT(X)
#undef X
};
#define MEMBER_LISTS (sizeof member_lists / sizeof member_lists[0])

static bool belongs(const entry *e, const struct member_list *list)
{
    bool ended = e->in_batch && e->state != MEMBER_IN_FLIGHT && e->outcome == list->outcome;
    switch (list->kind) {
    case LIST_RUNS: return e->in_batch && e->state == MEMBER_IN_FLIGHT;
    case LIST_RETRIES: return e->retrying;
    case LIST_ENDED: return ended && e->state == list->state;
    case LIST_CHANGED: return ended && e->state == list->state && e->state != list->outcome;
    case LIST_IS_NOW: break;
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static void save_members(const cohort *c, uint32_t index, const struct member_list *list, buf *out)
{
    VEC(str) found = {0};
    for (size_t i = 0; i < c->members.len; i++) {
        const entry *e = &c->members.at[i];
        if (e->state != MEMBER_ABSENT && e->compartment == index && belongs(e, list) &&
            !vec_push(&found, e->name))
            out->failed = true;
    }
    if (found.len > 1)
        qsort(found.at, found.len, sizeof *found.at, by_name);
    for (size_t i = 0; i < found.len; i++) {
        if (i == 0)
            buf_addf(out, ",\"%.*s\":[", STR_ARG(list->key));
        else
            buf_addc(out, ',');
        buf_add_json(out, found.at[i]);
    }
    if (found.len > 0)
        buf_addc(out, ']');
    vec_done(&found);
}

static void save_compartment(const cohort *c, uint32_t index, buf *out)
{
    const compartment *p = &c->compartments.at[index];
    buf_add_json(out, p->rule.name);
    buf_addz(out, ":{\"removed\":");
    buf_addz(out, p->removed ? "true" : "false");
#define X(member, key) buf_addf(out, ",\"" key "\":%" PRId64, p->member);
    SAVED_NUMBERS(X)
#undef X
#define X(member, key) buf_addf(out, ",\"" key "\":%s", p->member ? "true" : "false");
    SAVED_FLAGS(X)
#undef X
    for (size_t i = 0; i < MEMBER_LISTS; i++)
        save_members(c, index, &member_lists[i], out);
    buf_addc(out, '}');
}

void cohort_save(const cohort *c, buf *out)
{
    VEC(str) found = {0};
    for (size_t i = 0; i < c->compartments.len; i++)
        if (!vec_push(&found, c->compartments.at[i].rule.name))
            out->failed = true;
    if (found.len > 1)
        qsort(found.at, found.len, sizeof *found.at, by_name);
    buf_addc(out, '{');
    for (size_t i = 0; i < found.len; i++) {
        if (i > 0)
            buf_addc(out, ',');
        save_compartment(c, (uint32_t)cohort_find(c, found.at[i]), out);
    }
    buf_addc(out, '}');
    vec_done(&found);
}

/* Gives back the claim a member had, in the compartment it had it in, and what became of it. */
static bool restore_member(cohort *c, uint32_t index, member_id m, const struct member_list *list)
{
    entry *e = &c->members.at[m];
    compartment *p = &c->compartments.at[index];
    entry_out(c, m);
    e->compartment = index;
    e->state = (uint8_t)list->state;
    e->retrying = list->kind == LIST_RETRIES;
    e->in_batch = list->kind != LIST_RETRIES;
    if (list->outcome != MEMBER_ABSENT)
        e->outcome = (uint8_t)list->outcome;
    entry_in(c, m);
    bool joins = list->kind == LIST_RUNS || list->outcome != MEMBER_ABSENT;
    return !joins || vec_push(&p->batch, m);
}

static bool restore_members(cohort *c, uint32_t index, yyjson_val *json, const strmap *by_names)
{
    for (size_t l = 0; l < MEMBER_LISTS; l++) {
        yyjson_val *list = yyjson_obj_getn(json, member_lists[l].key.ptr, member_lists[l].key.len);
        yyjson_arr_iter walk = yyjson_arr_iter_with(list);
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&walk));) {
            const char *text = yyjson_get_str(item);
            uint64_t *m = text ? strmap_get(by_names, (str){text, yyjson_get_len(item)}) : NULL;
            /* A member that is gone left its batch while nobody looked. */
            if (m && !restore_member(c, index, (member_id)*m, &member_lists[l]))
                return false;
        }
    }
    return true;
}

static bool restore_compartment(cohort *c, str key, yyjson_val *json, const strmap *by_names)
{
    size_t index = cohort_find(c, key);
    if (index == SIZE_MAX && (index = cohort_add(c, key)) == SIZE_MAX)
        return false;
    compartment *p = &c->compartments.at[index];
    compartment_rule in_force = p->rule;
#define X(member, name) p->member = yyjson_get_sint(yyjson_obj_get(json, name));
    SAVED_NUMBERS(X)
#undef X
#define X(member, name) p->member = yyjson_get_bool(yyjson_obj_get(json, name));
    SAVED_FLAGS(X)
#undef X
    if (!p->removed)
        p->rule = in_force;
    return restore_members(c, (uint32_t)index, json, by_names);
}

bool cohort_restore(cohort *c, str json, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    strmap by_names = {0};
    bool good = a && cohort_settle(c);
    for (member_id m = 0; good && m < c->members.len; m++)
        if (c->members.at[m].state != MEMBER_ABSENT)
            good = strmap_put(&by_names, c->members.at[m].name, m);
    yyjson_val *root = good ? json_parse(a, json, error) : NULL;
    if (good && !root) {
        strmap_done(&by_names);
        return false;
    }
    yyjson_obj_iter walk = yyjson_obj_iter_with(root);
    for (yyjson_val *key; good && (key = yyjson_obj_iter_next(&walk));)
        good = restore_compartment(c, (str){yyjson_get_str(key), yyjson_get_len(key)},
                                   yyjson_obj_iter_get_val(key), &by_names);
    /* Members that were on their way to their compartments must not count as the most there were.
     */
    walk = yyjson_obj_iter_with(root);
    for (yyjson_val *key; good && (key = yyjson_obj_iter_next(&walk));) {
        size_t index = cohort_find(c, (str){yyjson_get_str(key), yyjson_get_len(key)});
        yyjson_val *peak = yyjson_obj_get(yyjson_obj_iter_get_val(key), "peak");
        c->compartments.at[index].peak = yyjson_get_sint(peak);
    }
    strmap_done(&by_names);
    c->unsettled = true;
    return good || err_memory(error);
}
