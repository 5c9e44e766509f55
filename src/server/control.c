/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control.h"

#include <assert.h>

#include "base/mem.h"
#include "server/control_internal.h"

/* An engine that says it is due and then does nothing is not asked more often than this. */
#define REST_MS INT64_C(1000)

/* ---- opening ---- */

control *control_open(store *s, const control_settings *settings, const control_listener *listener,
                      int64_t now_ms, err *error)
{
    control *c = mem_zalloc(sizeof *c);
    if (!c) {
        err_memory(error);
        return NULL;
    }
    c->store = s;
    c->settings = settings ? *settings : (control_settings){0};
    if (c->settings.snapshot_entries <= 0)
        c->settings.snapshot_entries = CONTROL_SNAPSHOT_ENTRIES;
    if (!control_load(c, error)) {
        control_unload(c);
        return mem_free(c);
    }
    c->now_ms = now_ms > c->now_ms ? now_ms : c->now_ms;
    c->rested_ms = REASON_NEVER;
    c->listener = listener ? *listener : (control_listener){0};
    for (size_t i = 0; i < c->jobs.len; i++)
        job_announce(c, c->jobs.at[i], true);
    jobs_cancel_again(c);
    return c;
}

control *control_close(control *c)
{
    if (!c)
        return NULL;
    err unsettled; /* nobody has heard of what is lost with it */
    control_settle(c, &unsettled);
    bool unfinished = c->snapshot.stage != SNAPSHOT_RESTS;
    snapshot_stop(c);
    if (c->engine && (unfinished || store_sequence(c->store) != c->snapshot_sequence)) {
        err ignored; /* without it the next start only takes longer */
        control_snapshot(c, &ignored);
    }
    control_unload(c);
    vec_done(&c->news);
    return mem_free(c);
}

bool control_repair(control *c, err *error)
{
    if (c->engine)
        return true;
    int64_t now_ms = c->now_ms;
    bool good = control_load(c, error);
    c->now_ms = now_ms > c->now_ms ? now_ms : c->now_ms;
    return good;
}

bool control_ready(control *c, int64_t now_ms, err *error)
{
    if (c->lost.text[0] != '\0') /* all that share a commit are answered alike */
        return err_set(error, "%s", c->lost.text);
    if (!control_repair(c, error))
        return false;
    if (now_ms > c->now_ms)
        c->now_ms = now_ms;
    return true;
}

/* ---- acts ---- */

static bool must_exist(const control *c, object_kind kind, str name, err *error)
{
    return name.len == 0 || control_object(c, kind, name) ||
           err_set(error, "there is no %s \"%s\"", object_kind_text(kind), str_shown(name).text);
}

/* By its id (uid, else name), or by its tag when the deployment is named too. */
static bool version_exists(const control *c, str id, str deployment_name)
{
    for (size_t i = 0; i < c->documents.len; i++) {
        const object *o = &((held_document *)(uintptr_t)c->documents.entries[i].value)->object;
        if (o->kind != KIND_VERSION)
            continue;
        str own = o->metadata->uid.len > 0 ? o->metadata->uid : o->metadata->name;
        bool meant =
            deployment_name.len == 0 || str_eq(o->version->spec.deployment, deployment_name);
        if (meant &&
            (str_eq(own, id) || (deployment_name.len > 0 && str_eq(o->version->spec.tag, id))))
            return true;
    }
    return false;
}

static bool rule_exists(const control *c, str id)
{
    for (size_t i = 0; i < c->documents.len; i++) {
        const object *o = &((held_document *)(uintptr_t)c->documents.entries[i].value)->object;
        if (o->kind != KIND_ROLLOUT_POLICY)
            continue;
        for (size_t k = 0; k < o->rollout_policy->spec.rules.len; k++)
            if (str_eq(o->rollout_policy->spec.rules.at[k].id, id))
                return true;
    }
    return false;
}

static bool partition_exists(const control *c, str name)
{
    for (size_t i = 0; i < c->documents.len; i++) {
        const object *o = &((held_document *)(uintptr_t)c->documents.entries[i].value)->object;
        if (o->kind != KIND_ROLLOUT_POLICY)
            continue;
        for (size_t k = 0; k < o->rollout_policy->spec.rules.len; k++) {
            const rule *r = &o->rollout_policy->spec.rules.at[k];
            for (size_t p = 0; r->rollout_strategy && p < r->rollout_strategy->partitions.len; p++)
                if (str_eq(r->rollout_strategy->partitions.at[p].name, name))
                    return true;
        }
    }
    return false;
}

static bool selector_compiles(str source, err *error)
{
    expression_list list = {.arena = arena_new(0)};
    expression unused;
    bool good = list.arena || err_memory(error);
    good = good && (expression_compile(&list, source, SCOPE_POLICY, &unused, error) ||
                    err_wrap(error, "selector"));
    expression_list_done(&list);
    arena_free(list.arena);
    return good;
}

typedef struct freeze_search {
    str name;
    bool found;
} freeze_search;

static bool is_freeze(void *context, const freeze_view *v)
{
    freeze_search *s = context;
    s->found = s->found || str_eq(v->name, s->name);
    return !s->found;
}

static bool freeze_exists(const control *c, str name)
{
    freeze_search s = {.name = name};
    engine_freezes(c->engine, is_freeze, &s);
    return s.found;
}

static bool act_makes_sense(const control *c, const fact_act *act, err *error)
{
    if (!must_exist(c, KIND_DEPLOYMENT, act->change, error) ||
        !must_exist(c, KIND_RESOURCE, act->target, error) ||
        !must_exist(c, KIND_ENVIRONMENT, act->environment, error))
        return false;
    if (act->version.len > 0 && !version_exists(c, act->version, act->change))
        return err_set(error, "there is no Version \"%s\"", str_shown(act->version).text);
    if (act->rule.len > 0 && !rule_exists(c, act->rule))
        return err_set(error, "there is no rule \"%s\"", str_shown(act->rule).text);
    if (act->partition.len > 0) {
        if (act->act != ACT_APPROVE || act->version.len > 0)
            return err_set(error, "a partition can be approved, without a version");
        return partition_exists(c, act->partition) ||
               err_set(error, "there is no partition \"%s\"", str_shown(act->partition).text);
    }
    if (act->act == ACT_THAW && act->name.len > 0 && !freeze_exists(c, act->name))
        return err_set(error, "there is no freeze \"%s\"", str_shown(act->name).text);
    bool version_needed =
        act->act == ACT_APPROVE || act->act == ACT_REJECT || act->act == ACT_BYPASS;
    if (version_needed && act->version.len == 0)
        return err_set(error, "a version must be named");
    if (act->act == ACT_BYPASS && act->rule.len == 0)
        return err_set(error, "a rule must be named");
    return act->act != ACT_FREEZE || act->selector.len == 0 ||
           selector_compiles(act->selector, error);
}

bool control_act(control *c, const fact_act *act, int64_t now_ms, err *error)
{
    turn t;
    if (!control_ready(c, now_ms, error) || !act_makes_sense(c, act, error) ||
        !turn_begin(&t, act->who, error))
        return false;
    bool good = vec_push(&t.facts, (fact){.kind = FACT_ACT, .act = *act}) || err_memory(error);
    good = good && turn_run(c, &t, now_ms, error);
    turn_done(&t);
    return good;
}

/* A turn that is only a note, and perhaps a token. */
static bool run_note(control *c, const token_change *change, int64_t now_ms, err *error)
{
    turn t;
    if (!control_ready(c, now_ms, error) || !turn_begin(&t, change->who, error))
        return false;
    str kept = arena_str(t.arena, change->json);
    if (change->made || change->revoked.len > 0)
        t.token = change;
    bool good =
        (kept.ptr && vec_push(&t.notes, (turn_note){change->who, kept})) || err_memory(error);
    good = good && turn_run(c, &t, now_ms, error);
    turn_done(&t);
    return good;
}

bool control_note(control *c, str who, str json, int64_t now_ms, err *error)
{
    return run_note(c, &(token_change){.who = who, .json = json}, now_ms, error);
}

bool control_token(control *c, const token_change *change, int64_t now_ms, err *error)
{
    assert(!change->made == (change->revoked.len > 0));
    return run_note(c, change, now_ms, error);
}

/* ---- what is known ---- */

const engine *control_engine(const control *c)
{
    return c->engine;
}

store *control_store(control *c)
{
    return c->store;
}

/* ---- time ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    if (a == REASON_NEVER || b == REASON_NEVER)
        return a == REASON_NEVER ? b : a;
    return a < b ? a : b;
}

/* When the engine wants to be stepped by time alone. */
static int64_t engine_due(const control *c)
{
    int64_t due = engine_next_ms(c->engine);
    return due != REASON_NEVER && c->rested_ms != REASON_NEVER && due < c->rested_ms ? c->rested_ms
                                                                                     : due;
}

int64_t control_next_ms(const control *c)
{
    if (!c->engine)
        return c->now_ms + REST_MS;
    if (c->owes_turn)
        return c->now_ms;
    return earlier(earlier(engine_due(c), job_expiry_next(c)), snapshot_next_ms(c));
}

bool control_tick(control *c, int64_t now_ms, err *error)
{
    turn t;
    if (!control_ready(c, now_ms, error))
        return false;
    snapshot_step(c);
    if (!control_ready(c, now_ms, error))
        return false;
    int64_t due = engine_due(c);
    int64_t expiry = job_expiry_next(c);
    bool time = c->owes_turn || (due != REASON_NEVER && due <= c->now_ms);
    if (!time && (expiry == REASON_NEVER || expiry > c->now_ms))
        return true;
    if (!turn_begin(&t, STR_EMPTY, error))
        return false;
    t.time = time;
    bool good = jobs_expire(c, &t, error) && turn_run(c, &t, now_ms, error);
    turn_done(&t);
    c->owes_turn = c->owes_turn && !good;
    if (!c->engine)
        return good;
    due = engine_next_ms(c->engine);
    bool restless = good && time && due != REASON_NEVER && due <= c->now_ms;
    c->rested_ms = restless ? c->now_ms + REST_MS : REASON_NEVER;
    return good;
}
