/* SPDX-License-Identifier: Apache-2.0 */
/* One turn: facts in, decisions out, written together. */
#include <assert.h>

#include "base/mem.h"
#include "server/control_internal.h"
#include "server/journal.h"

/* ---- attempts ---- */

static str attempt_key(char out[LIMIT_PATH_BYTES], const decision *d)
{
    int len = snprintf(out, LIMIT_PATH_BYTES, "%.*s/%.*s/%.*s", STR_ARG(d->change),
                       STR_ARG(d->environment), STR_ARG(d->target));
    assert(len > 0 && len < LIMIT_PATH_BYTES); /* three names */
    return (str){out, (size_t)len};
}

static attempt_row *attempt_find(const control *c, str key)
{
    const uint64_t *at = strmap_get(&c->attempts, key);
    return at ? (attempt_row *)(uintptr_t)*at : NULL;
}

bool attempts_put(control *c, str key, int64_t attempt)
{
    attempt_row *row = attempt_find(c, key);
    if (row) {
        row->attempt = attempt;
        return true;
    }
    row = mem_zalloc(sizeof *row + key.len);
    if (!row)
        return false;
    row->attempt = attempt;
    row->len = key.len;
    memcpy(row->key, key.ptr, key.len);
    if (strmap_put(&c->attempts, (str){row->key, row->len}, (uintptr_t)row))
        return true;
    mem_free(row);
    return false;
}

static void attempts_remove(control *c, str key)
{
    attempt_row *row = attempt_find(c, key);
    if (!row)
        return;
    strmap_remove(&c->attempts, key);
    mem_free(row);
}

void attempts_done(control *c)
{
    for (size_t i = 0; i < c->attempts.len; i++)
        mem_free((void *)(uintptr_t)c->attempts.entries[i].value);
    strmap_done(&c->attempts);
}

bool attempts_follow(control *c, const decision *d, int64_t *ret_attempt, err *error)
{
    char text[LIMIT_PATH_BYTES];
    if (d->kind == DECISION_RELEASE && !d->failed)
        attempts_remove(c, attempt_key(text, d));
    if (d->kind != DECISION_JOB)
        return true;
    str key = attempt_key(text, d);
    const attempt_row *before = attempt_find(c, key);
    *ret_attempt = d->retry && before ? before->attempt + 1 : 1;
    return attempts_put(c, key, *ret_attempt) || err_memory(error);
}

/* ---- the engine ---- */

static bool starts_something(const decision *d)
{
    return d->kind == DECISION_START || d->kind == DECISION_DEPLOY || d->kind == DECISION_JOB;
}

bool engine_turn(control *c, const fact *facts, size_t count, decision_sink sink, err *error)
{
    decision_list out = {0};
    bool good = true;
    c->engine_ms = c->now_ms;
    for (bool again = true; good && again; facts = NULL, count = 0) {
        again = false;
        out.len = 0;
        good = engine_step(c->engine, facts, count, c->now_ms, &out) || err_memory(error);
        for (size_t i = 0; good && i < out.len; i++) {
            again = again || starts_something(&out.at[i]);
            good = sink.visit(sink.context, &out.at[i], error);
        }
    }
    vec_done(&out);
    return good;
}

/* ---- writing ---- */

bool turn_begin(turn *t, str who, err *error)
{
    *t = (turn){.who = who, .arena = arena_new(0)};
    return t->arena || err_memory(error);
}

void turn_done(turn *t)
{
    batch_leave(t->batch);
    vec_done(&t->documents);
    vec_done(&t->facts);
    vec_done(&t->fact_who);
    vec_done(&t->notes);
    vec_done(&t->entries);
    vec_done(&t->deployments);
    for (size_t i = 0; i < t->started.len; i++)
        mem_free(t->started.at[i]);
    vec_done(&t->started);
    arena_free(t->arena);
}

/* Appends to the journal, and remembers the entry for the listener. json is in the turn's arena. */
static bool turn_append(control *c, turn *t, journal_entry e, err *error)
{
    e.at_ms = c->now_ms;
    e.step = c->step + 1;
    e.who = arena_str(t->arena, e.who);
    if (!e.who.ptr)
        return err_memory(error);
    return store_append(c->store, &e, &e.sequence, error) &&
           (vec_push(&t->entries, e) || err_memory(error));
}

/* The text of a fact or a decision, in the turn's arena. */
static str keep_text(turn *t, buf *text)
{
    str kept = text->failed ? (str){0} : arena_str(t->arena, buf_str(text));
    buf_done(text);
    return kept;
}

/* The engine is told what the journal says, so a replay cannot be told anything else. */
static bool write_fact(control *c, turn *t, fact *f, str who, err *error)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    journal_write_fact(&text, f);
    str json = keep_text(t, &text);
    if (!json.ptr)
        return err_memory(error);
    journal_fact read;
    if (f && (f->kind == FACT_JOB || f->kind == FACT_ACT)) {
        if (!journal_read_fact(t->arena, json, &read, error))
            return false;
        *f = read.fact;
    }
    return turn_append(c, t, (journal_entry){.kind = STR("fact"), .who = who, .json = json}, error);
}

static bool write_document(control *c, turn *t, turn_document *d, err *error)
{
    str kind = str_of(object_kind_text(d->object->kind));
    str name = d->object->metadata->name;
    bool gone = d->json.len == 0;
    stored_document row = {.kind = kind, .name = name, .json = d->json};
    bool good = gone ? store_delete_document(c->store, (document_key){kind, name}, d->expected,
                                             &t->conflict, error)
                     : store_put_document(c->store, &row, d->expected, &t->conflict, error);
    d->version = row.version;
    if (good && d->object->kind == KIND_DEPLOYMENT && !gone)
        good = vec_push(&t->deployments, d->object) || err_memory(error);
    fact f = gone ? journal_gone_of(d->object) : journal_fact_of(d->object);
    return good && write_fact(c, t, &f, t->who, error) &&
           (vec_push(&t->facts, f) || err_memory(error));
}

static bool write_token(control *c, const token_change *change, err *error)
{
    bool found = true;
    if (change->made)
        return store_put_token(c->store, change->made, error);
    return store_revoke_token(c->store, change->revoked, c->now_ms, &found, error) &&
           (found ||
            err_set(error, "there is no token \"%s\" in force", str_shown(change->revoked).text));
}

static bool write_facts(control *c, turn *t, err *error)
{
    size_t others = t->facts.len;
    bool good = true;
    for (size_t i = 0; good && i < others; i++)
        good = write_fact(c, t, &t->facts.at[i], t->fact_who.len > 0 ? t->fact_who.at[i] : t->who,
                          error);
    for (size_t i = 0; good && i < t->documents.len; i++)
        good = write_document(c, t, &t->documents.at[i], error);
    if (good && t->time && t->facts.len == 0)
        good = write_fact(c, t, NULL, STR_EMPTY, error);
    for (size_t i = 0; good && i < t->notes.len; i++)
        good = turn_append(c, t,
                           (journal_entry){.kind = STR("audit"),
                                           .who = t->notes.at[i].who,
                                           .json = t->notes.at[i].json},
                           error);
    return good && (!t->token || write_token(c, t->token, error));
}

static const str role_names[] = {
#define X(role, text) [ROLE_##role] = {text, sizeof(text) - 1},
    JOB_ROLES(X)
#undef X
};

typedef struct turn_context {
    control *control;
    turn *turn;
} turn_context;

/* As it will be after the turn. */
static const object *deployment_of(const control *c, const turn *t, str name)
{
    for (size_t i = 0; i < t->deployments.len; i++)
        if (str_eq(t->deployments.at[i]->metadata->name, name))
            return t->deployments.at[i];
    return control_object(c, KIND_DEPLOYMENT, name);
}

static bool write_new_job(control *c, turn *t, const decision *d, int64_t attempt, err *error)
{
    stored_job row = {.number = d->number,
                      .deployment = d->change,
                      .environment = d->environment,
                      .resource = d->target,
                      .version = d->version,
                      .group = d->group,
                      .role = role_names[d->role],
                      .state = STR("pending"),
                      .attempt = attempt};
    const object *o = deployment_of(c, t, d->change);
    if (o && o->deployment->spec.job.kind == JOB_MANUAL) { /* a person's time runs from now on */
        row.started_ms = c->now_ms;
        row.lease_ms = c->now_ms + job_limit_ms(o);
    }
    live_job *j = job_make(&row);
    if (!j || !vec_push(&t->started, j)) {
        mem_free(j);
        return err_memory(error);
    }
    return store_put_job(c->store, &j->job, error);
}

static bool write_decision(void *context, const decision *d, err *error)
{
    turn_context *at = context;
    if (d->kind == DECISION_WAKE)
        return true; /* engine_next_ms says the same */
    buf text = BUF(LIMIT_TEXT_BYTES);
    journal_write_decision(&text, d);
    str json = keep_text(at->turn, &text);
    int64_t attempt = 0;
    if (!json.ptr)
        return err_memory(error);
    return turn_append(at->control, at->turn,
                       (journal_entry){.kind = STR("decision"), .json = json}, error) &&
           attempts_follow(at->control, d, &attempt, error) &&
           (d->kind != DECISION_JOB || write_new_job(at->control, at->turn, d, attempt, error));
}

static bool write_all(control *c, turn *t, err *error)
{
    if (!write_facts(c, t, error))
        return false;
    for (size_t i = 0; i < c->drafts.len; i++)
        if (!store_put_job(c->store, &c->drafts.at[i]->draft, error))
            return false;
    if (t->facts.len == 0 && !t->time)
        return true;
    t->stepped = true;
    return engine_turn(c, t->facts.at, t->facts.len,
                       (decision_sink){write_decision, &(turn_context){c, t}}, error);
}

/* ---- memory follows ---- */

static bool hold_documents(control *c, turn *t)
{
    bool good = true;
    for (size_t i = 0; good && i < t->documents.len; i++) {
        const turn_document *d = &t->documents.at[i];
        if (d->json.len == 0)
            document_drop(c, str_of(object_kind_text(d->object->kind)), d->object->metadata->name);
        else
            good = document_hold(c, d->object, t->batch, d->version);
    }
    return good;
}

static bool hold_jobs(control *c, turn *t)
{
    for (size_t i = 0; i < c->drafts.len; i++) {
        live_job *j = c->drafts.at[i];
        bool cancelling = str_eq(j->draft.reason, STR("cancelling"));
        j->job = j->draft;
        j->job.reason = cancelling ? STR("cancelling") : STR_EMPTY; /* the draft's is the turn's */
        j->drafted = false;
        j->announce = str_eq(j->job.state, JOB_VERIFYING);
        if (j->job.ended_ms != 0)
            job_drop(c, j->job.number);
    }
    c->drafts.len = 0;
    for (size_t i = 0; i < t->started.len; i++)
        if (!job_hold(c, t->started.at[i])) /* its own from here on */
            return false;
        else
            t->started.at[i] = NULL;
    return true;
}

static void follow(control *c, turn *t)
{
    c->step += t->entries.len > 0 ? 1 : 0;
    /* What is written is true. If memory cannot follow, it is read again from there. */
    if (!hold_jobs(c, t) || !hold_documents(c, t)) {
        err ignored;
        control_unload(c);
        control_load(c, &ignored);
    }
}

/* ---- the whole turn ---- */

/* Deployments that were edited: jobs that wait may be of another kind since. */
static bool list_edited(const turn *t, turn_news *news)
{
    news->edited = ARENA_ARRAY(t->arena, t->documents.len + 1, str);
    for (size_t i = 0; news->edited && i < t->documents.len; i++) {
        const turn_document *d = &t->documents.at[i];
        if (d->object->kind != KIND_DEPLOYMENT || d->json.len == 0)
            continue;
        str name = arena_str(t->arena, d->object->metadata->name);
        if (!name.ptr)
            return false;
        news->edited[news->edited_count++] = name;
    }
    return news->edited != NULL;
}

/* What is to be told of the turn. */
static bool make_news(turn *t, turn_news *news, err *error)
{
    *news = (turn_news){.cancel = t->cancel, .entry_count = t->entries.len};
    news->entries = ARENA_ARRAY(t->arena, t->entries.len + 1, journal_entry);
    if (!news->entries || !list_edited(t, news))
        return err_memory(error);
    for (size_t i = 0; i < t->entries.len; i++)
        news->entries[i] = t->entries.at[i];
    if (t->started.len > 0) {
        news->first_job = t->started.at[0]->job.number;
        news->last_job = t->started.at[t->started.len - 1]->job.number;
    }
    return true;
}

static bool turn_write(control *c, turn *t, turn_news *news, err *error)
{
    return store_mark(c->store, error) && write_all(c, t, error) && make_news(t, news, error) &&
           store_keep(c->store, error);
}

bool turn_run(control *c, turn *t, int64_t now_ms, err *error)
{
    assert(c->engine);
    assert(now_ms <= c->now_ms); /* control_ready has seen it */
    if (!commit_begin(c, error)) {
        drafts_forget(c);
        return false;
    }
    bool told = vec_push(&c->news, (turn_news){0});
    bool good = told ? turn_write(c, t, &c->news.at[c->news.len - 1], error) : err_memory(error);
    if (good) {
        c->news.at[c->news.len - 1].arena = t->arena;
        t->arena = NULL;
        follow(c, t);
        return commit_end(c, true, error);
    }
    c->news.len -= told ? 1 : 0;
    store_take_back(c->store);
    drafts_forget(c);
    if (t->stepped && store_is_open(c->store)) {
        /* The engine is ahead of the store. */
        err ignored;
        control_unload(c);
        control_load(c, &ignored);
    }
    return commit_end(c, false, error);
}
