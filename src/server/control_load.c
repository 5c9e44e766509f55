/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot and journal back into an engine.
 *
 * A snapshot is text: one line of JSON that counts what follows, one line a document, one line for
 * each release target that runs or has failed, and then what engine_save wrote. It holds the
 * documents as they were then, so that the journal behind it can be replayed.
 *
 * Another program than the one that wrote the store may decide otherwise. Where it only has more to
 * decide than the snapshot says, as after an upgrade in order, that is left for the next turn and
 * recorded there. Decisions of the journal that it would not make itself cannot be taken over. */
#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "server/control_internal.h"
#include "server/journal.h"

#define SNAPSHOT_FORMAT 1

/* ---- documents that were read together ---- */

static batch *batch_free(batch *b)
{
    objects_free(b->objects);
    document_set_free(b->set);
    buf_done(&b->text);
    return mem_free(b);
}

void batch_leave(batch *b)
{
    if (!b)
        return;
    assert(b->users > 0);
    if (--b->users == 0)
        batch_free(b);
}

/* Line by line: a parser that is handed one value takes memory for one value. */
static bool batch_fill(batch *b, problems *found)
{
    str rest = buf_str(&b->text);
    while (rest.len > 0) {
        str line = str_cut(&rest, '\n');
        if (line.len > 0 && !documents_read_as(b->set, STR("store"), line, FORMAT_JSON, found))
            return false;
    }
    return objects_read(b->objects, b->set, found);
}

batch *batch_read(buf *text, err *error)
{
    batch *b = mem_zalloc(sizeof *b);
    problems *found = problems_new();
    bool good = b && found;
    if (b) {
        *b =
            (batch){.text = *text, .set = document_set_new(), .objects = objects_new(), .users = 1};
        *text = (buf){0};
        good = good && b->set && b->objects && !b->text.failed;
    }
    if (!good)
        err_memory(error);
    else if (b->text.len > 0 && !batch_fill(b, found)) {
        buf first = BUF(LIMIT_ERR_BYTES);
        if (problems_count(found) > 0)
            problem_text(problems_at(found, 0), &first);
        good = err_set(error, "a stored document cannot be read: %.*s", STR_ARG(buf_str(&first)));
        buf_done(&first);
    }
    problems_free(found);
    if (!good && b)
        b = batch_free(b);
    return b;
}

/* ---- the snapshot, in ---- */

static bool header_number(yyjson_val *header, const char *key, int64_t *ret)
{
    yyjson_val *v = yyjson_obj_get(header, key);
    *ret = yyjson_get_sint(v);
    return yyjson_is_int(v);
}

/* The documents of a batch, each as a fact. */
static bool take_documents(control *c, batch *b, err *error)
{
    bool good = true;
    for (size_t i = 0; good && i < b->objects->len; i++) {
        fact f = journal_fact_of(&b->objects->at[i]);
        good = document_hold(c, &b->objects->at[i], b, 0) || err_memory(error);
        good = good && (engine_take(c->engine, &f, 1, c->now_ms) || err_memory(error));
    }
    return good;
}

static bool read_documents(control *c, str *text, int64_t count, err *error)
{
    buf lines = BUF(LIMIT_TEXT_BYTES);
    for (int64_t i = 0; i < count; i++) {
        buf_add(&lines, str_cut(text, '\n'));
        buf_addc(&lines, '\n');
    }
    batch *b = batch_read(&lines, error);
    buf_done(&lines);
    if (!b)
        return false;
    bool good =
        (int64_t)b->objects->len == count ||
        err_set(error, "found %zu documents, expected %lld", b->objects->len, (long long)count);
    good = good && take_documents(c, b, error);
    batch_leave(b);
    return good;
}

static bool read_attempts(control *c, str *text, int64_t count, err *error)
{
    for (int64_t i = 0; i < count; i++) {
        str line = str_cut(text, '\n');
        int64_t attempt;
        if (!num_parse(str_cut(&line, ' '), &attempt))
            return err_set(error, "found an attempt without a number");
        if (!attempts_put(c, line, attempt))
            return err_memory(error);
    }
    return true;
}

/* The engine had nothing more to do at that time, so this one should not find anything now. */
static bool refuse_decision(void *context, const decision *d, err *error)
{
    bool *otherwise = context;
    if (d->kind == DECISION_WAKE)
        return true;
    *otherwise = true;
    buf text = BUF(LIMIT_ERR_BYTES);
    journal_write_decision(&text, d);
    err_set(error, "the restored engine decides %.*s", STR_ARG(buf_str(&text)));
    buf_done(&text);
    return false;
}

/* otherwise: gets whether the engine finds more to decide, which is an error; NULL: it is not
 * asked. */
static bool read_snapshot(control *c, arena *a, str text, bool *otherwise, err *error)
{
    str line = str_cut(&text, '\n');
    yyjson_val *header = json_parse(a, line, error);
    int64_t format, documents, attempts;
    if (!header)
        return false;
    if (!header_number(header, "format", &format) || format != SNAPSHOT_FORMAT ||
        !header_number(header, "nowMs", &c->now_ms) || !header_number(header, "step", &c->step) ||
        !header_number(header, "documents", &documents) ||
        !header_number(header, "attempts", &attempts))
        return err_set(error, "found a format that is not %d", SNAPSHOT_FORMAT);
    return read_documents(c, &text, documents, error) && read_attempts(c, &text, attempts, error) &&
           engine_restore(c->engine, text, error) &&
           (!otherwise ||
            engine_turn(c, NULL, 0, (decision_sink){refuse_decision, otherwise}, error));
}

/* ---- the journal ---- */

/* One turn as it is recorded. */
typedef struct recorded {
    control *control;
    arena *arena;
    int64_t step; /* 0: none yet */
    int64_t at_ms;
    VEC(journal_fact) facts;
    VEC(str) decisions;
    size_t compared;
    err *error;
    bool failed;
} recorded;

/* What the operator can do when the journal has decisions that this program would not make. */
static bool journal_differs(err *error)
{
    char told[LIMIT_ERR_BYTES];
    snprintf(told, sizeof told, "%s", error->text);
    return err_set(error,
                   "%.700s; if the journal is an older drover's that was killed, start that one "
                   "once more and stop it in order, then this one",
                   told);
}

static bool compare_decision(void *context, const decision *d, err *error)
{
    recorded *r = context;
    if (d->kind == DECISION_WAKE)
        return true;
    buf text = BUF(LIMIT_TEXT_BYTES);
    journal_write_decision(&text, d);
    str want = r->compared < r->decisions.len ? r->decisions.at[r->compared] : STR("nothing");
    r->compared++;
    bool good = !text.failed && str_eq(buf_str(&text), want);
    if (!good) {
        err_set(error, "the replay decides %.*s where the journal has %.*s",
                STR_ARG(buf_str(&text)), STR_ARG(want));
        journal_differs(error);
    }
    buf_done(&text);
    int64_t attempt;
    return good && attempts_follow(r->control, d, &attempt, error);
}

static bool replay_documents(recorded *r, batch **ret, err *error)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < r->facts.len; i++) {
        if (r->facts.at[i].document.len == 0)
            continue;
        buf_add(&text, r->facts.at[i].document);
        buf_addc(&text, '\n');
    }
    if (text.len == 0)
        return true;
    *ret = batch_read(&text, error);
    buf_done(&text);
    return *ret != NULL;
}

/* Documents stand in the batch in the order of their facts. */
static bool replay_engine(recorded *r, const batch *b, err *error)
{
    VEC(fact) facts = {0};
    size_t next = 0;
    bool good = true;
    for (size_t i = 0; good && i < r->facts.len; i++) {
        const journal_fact *f = &r->facts.at[i];
        if (f->time)
            continue;
        good = vec_push(&facts,
                        f->document.len > 0 ? journal_fact_of(&b->objects->at[next++]) : f->fact);
    }
    r->compared = 0;
    good = good || err_memory(error);
    good = good && engine_turn(r->control, facts.at, facts.len,
                               (decision_sink){compare_decision, r}, error);
    if (good && r->compared < r->decisions.len)
        good = err_set(error, "the replay decides nothing where the journal has %.*s",
                       STR_ARG(r->decisions.at[r->compared])) ||
               journal_differs(error);
    vec_done(&facts);
    return good;
}

static bool replay_hold(recorded *r, batch *b, err *error)
{
    control *c = r->control;
    size_t next = 0;
    for (size_t i = 0; i < r->facts.len; i++) {
        const journal_fact *f = &r->facts.at[i];
        if (f->document.len > 0) {
            if (!document_hold(c, &b->objects->at[next++], b, 0))
                return err_memory(error);
        } else if (!f->time && f->fact.kind == FACT_TARGET_GONE)
            document_drop(c, STR("Resource"), f->fact.target.name);
        else if (!f->time && f->fact.kind == FACT_DOCUMENT_GONE)
            document_drop(c, str_of(object_kind_text(f->fact.document->kind)),
                          f->fact.document->metadata->name);
    }
    return true;
}

static bool replay_turn(recorded *r, err *error)
{
    control *c = r->control;
    if (r->step > c->step)
        c->step = r->step;
    batch *b = NULL;
    c->now_ms = r->at_ms > c->now_ms ? r->at_ms : c->now_ms;
    /* A turn without facts has only notes. */
    bool good = r->facts.len == 0 || (replay_documents(r, &b, error) &&
                                      replay_engine(r, b, error) && replay_hold(r, b, error));
    batch_leave(b);
    r->facts.len = 0;
    r->decisions.len = 0;
    arena_rewind(r->arena, (arena_place){0});
    return good || err_wrap(error, "journal, step %lld", (long long)r->step);
}

static bool keep_entry(recorded *r, const journal_entry *e, err *error)
{
    str json = arena_str(r->arena, e->json);
    journal_fact f;
    if (!json.ptr)
        return err_memory(error);
    if (str_eq(e->kind, STR("decision")))
        return vec_push(&r->decisions, json) || err_memory(error);
    if (!str_eq(e->kind, STR("fact")))
        return true;
    return journal_read_fact(r->arena, json, &f, error)
               ? vec_push(&r->facts, f) || err_memory(error)
               : err_wrap(error, "journal, entry %lld", (long long)e->sequence);
}

static bool visit_entry(void *context, const journal_entry *e)
{
    recorded *r = context;
    bool good = true;
    if (e->step != r->step) {
        good = r->step == 0 || replay_turn(r, r->error);
        r->step = e->step;
        r->at_ms = e->at_ms;
    }
    good = good && keep_entry(r, e, r->error);
    r->failed = !good;
    return good;
}

static bool replay(control *c, int64_t after, err *error)
{
    recorded r = {.control = c, .arena = arena_new(0), .error = error};
    bool good = r.arena || err_memory(error);
    good = good && store_journal(c->store, after, visit_entry, &r, error) && !r.failed &&
           (r.step == 0 || replay_turn(&r, error));
    vec_done(&r.facts);
    vec_done(&r.decisions);
    arena_free(r.arena);
    return good;
}

/* ---- the rest of the store ---- */

static bool know_version(void *context, const stored_document *d)
{
    recorded *r = context;
    held_document *held = document_find(r->control, d->kind, d->name);
    if (held)
        held->version = d->version;
    else
        r->failed = !err_set(r->error, "%.*s/%.*s is stored, but the journal does not know it",
                             STR_ARG(d->kind), STR_ARG(d->name));
    r->step++; /* counts them */
    return held != NULL;
}

static bool load_versions(control *c, err *error)
{
    recorded r = {.control = c, .error = error};
    if (!store_documents(c->store, (document_key){0}, know_version, &r, error) || r.failed)
        return false;
    return r.step == (int64_t)c->documents.len ||
           err_set(error, "%lld documents are stored, the journal knows of %zu", (long long)r.step,
                   c->documents.len);
}

static bool load_job(void *context, const stored_job *row)
{
    recorded *r = context;
    live_job *j = job_make(row);
    if (j && vec_push(&r->control->jobs, j))
        return true;
    mem_free(j);
    r->failed = !err_memory(r->error);
    return false;
}

static bool load_jobs(control *c, err *error)
{
    recorded r = {.control = c, .error = error};
    if (!store_jobs(c->store, (job_range){0, true}, load_job, &r, error) || r.failed)
        return false;
    /* They come newest first. */
    for (size_t i = 0, k = c->jobs.len; i + 1 < k; i++) {
        k--;
        live_job *swap = c->jobs.at[i];
        c->jobs.at[i] = c->jobs.at[k];
        c->jobs.at[k] = swap;
    }
    return true;
}

static bool load_state(control *c, bool *otherwise, err *error)
{
    arena *a = arena_new(0);
    int64_t sequence;
    str text;
    bool good = a || err_memory(error);
    good = good && store_get_snapshot(c->store, a, &sequence, &text, error);
    if (good && sequence > 0)
        good = read_snapshot(c, a, text, otherwise, error) || err_wrap(error, "snapshot");
    if (good)
        c->snapshot_sequence = sequence;
    arena_free(a);
    return good && replay(c, sequence, error);
}

static bool load_all(control *c, bool *otherwise, err *error)
{
    c->now_ms = 0;
    c->engine_ms = 0;
    c->step = 0;
    /* Every document has a time of publication: this one is never used. */
    c->engine = engine_new(&(engine_settings){.start_ms = 1}, error);
    if (c->engine && load_state(c, otherwise, error) && load_versions(c, error) &&
        load_jobs(c, error))
        return true;
    control_unload(c);
    return false;
}

bool control_load(control *c, err *error)
{
    bool otherwise = false;
    assert(!c->engine);
    c->owes_turn = false;
    if (load_all(c, &otherwise, error))
        return true;
    if (!otherwise)
        return err_wrap(error, "reading the store");
    log_line(LOG_WARN, "%s: it was another program's, and this one goes on from there",
             error->text);
    if (!load_all(c, NULL, error))
        return err_wrap(error, "reading the store");
    /* If there is a journal behind the snapshot, it was made up for already. */
    c->owes_turn = c->snapshot_sequence == store_sequence(c->store);
    return true;
}

void control_unload(control *c)
{
    c->engine = engine_free(c->engine);
    documents_done(c);
    for (size_t i = 0; i < c->jobs.len; i++)
        mem_free(c->jobs.at[i]);
    vec_done(&c->jobs);
    vec_done(&c->drafts);
    attempts_done(c);
}
