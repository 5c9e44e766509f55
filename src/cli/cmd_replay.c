/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/moment.h"
#include "base/num.h"
#include "cli/client.h"
#include "cli/explain_show.h"
#include "cli/output.h"
#include "model/json.h"
#include "server/journal.h"
#include "sim/story.h"

/* One document of the journal; the engine keeps it by pointer. */
typedef struct kept {
    buf text;
    document_set *set;
    object_list *objects;
} kept;

/* The journal on its way through an engine: step by step, as it was taken in then. */
typedef struct replay {
    client *client;
    engine *engine;
    arena *arena; /* of the present step */
    err error;
    int64_t step, at_ms, first_ms; /* step 0: none yet */
    int64_t sequence;              /* of the entry read last */
    int64_t until;                 /* the last entry to look at; 0: all */
    VEC(fact) facts;
    VEC(kept) documents;
    VEC(str) recorded; /* decisions of the step */
    size_t compared;
    decision_list decisions;
    int64_t steps, fact_count, decision_count;
    int64_t read; /* entries of the present page */
    bool enough;
    bool time; /* the step was made because a time came */
    bool tell, failed;
} replay;

static bool broken(replay *r)
{
    r->failed = true;
    return false;
}

/* ---- a step ---- */

/* As the journal is read: the same JSON has the same bytes then. */
static str canonical(replay *r, buf *text)
{
    yyjson_val *value = text->failed ? NULL : json_parse(r->arena, buf_str(text), &r->error);
    buf_clear(text);
    json_write(text, value);
    return buf_str(text);
}

static bool compare(replay *r, const decision *d)
{
    if (d->kind == DECISION_WAKE)
        return true;
    scoped(buf_done) buf text = BUF(LIMIT_TEXT_BYTES);
    journal_write_decision(&text, d);
    str found = canonical(r, &text);
    str want = r->compared < r->recorded.len ? r->recorded.at[r->compared] : STR("nothing");
    r->compared++;
    r->decision_count++;
    if (!text.failed && str_eq(found, want))
        return true;
    return err_set(&r->error, "entry %lld, step %lld: found %.*s, this program decides %.*s",
                   (long long)r->sequence, (long long)r->step, STR_ARG(want), STR_ARG(found));
}

static bool is_start(const decision *d)
{
    return d->kind == DECISION_START || d->kind == DECISION_DEPLOY || d->kind == DECISION_JOB;
}

static bool tell_decision(const replay *r, const decision *d)
{
    if (!r->tell || d->kind == DECISION_WAKE)
        return true;
    buf line = BUF(LIMIT_TEXT_BYTES);
    story_decision(&line, r->at_ms - r->first_ms, d, 0);
    return output_buf(stdout, &line);
}

static bool step_engine(replay *r)
{
    size_t count = r->facts.len;
    bool started = true;
    r->compared = 0;
    for (bool first = true; first || started; first = false) {
        r->decisions.len = 0;
        if (!engine_step(r->engine, r->facts.at, first ? count : 0, r->at_ms, &r->decisions))
            return err_memory(&r->error);
        started = false;
        for (size_t i = 0; i < r->decisions.len; i++) {
            const decision *d = &r->decisions.at[i];
            started = started || is_start(d);
            if (!compare(r, d) || !tell_decision(r, d))
                return false;
        }
    }
    return r->compared == r->recorded.len ||
           err_set(&r->error, "entry %lld, step %lld: found %.*s, this program decides nothing",
                   (long long)r->sequence, (long long)r->step,
                   STR_ARG(r->recorded.at[r->compared]));
}

static bool end_step(replay *r)
{
    bool engine_took_part = r->time || r->facts.len > 0;
    if (r->step == 0)
        return true;
    r->steps += engine_took_part;
    r->fact_count += (int64_t)r->facts.len;
    bool good = !engine_took_part || step_engine(r);
    r->facts.len = 0;
    r->recorded.len = 0;
    r->time = false;
    arena_rewind(r->arena, (arena_place){0});
    return good;
}

/* ---- entries ---- */

static bool take_document(replay *r, str json)
{
    problems *found = problems_new();
    kept k = {
        .text = BUF(LIMIT_DOCUMENT_BYTES), .set = document_set_new(), .objects = objects_new()};
    buf_add(&k.text, json);
    bool good = found && k.set && k.objects && !k.text.failed && vec_push(&r->documents, k);
    if (!good) {
        err_memory(&r->error);
    } else if (!documents_read_as(k.set, STR("journal"), buf_str(&k.text), FORMAT_JSON, found) ||
               !objects_read(k.objects, k.set, found) || k.objects->len != 1) {
        good =
            err_set(&r->error, "entry %lld: its document cannot be read", (long long)r->sequence);
    }
    problems_free(found);
    return good &&
           (vec_push(&r->facts, journal_fact_of(&k.objects->at[0])) || err_memory(&r->error));
}

static bool take_entry(replay *r, yyjson_val *item, str kind)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    json_write(&text, yyjson_obj_get(item, "entry"));
    str json = arena_str(r->arena, buf_str(&text));
    buf_done(&text);
    journal_fact f;
    if (!json.ptr)
        return err_memory(&r->error);
    if (str_eq(kind, STR("decision")))
        return vec_push(&r->recorded, json) || err_memory(&r->error);
    if (!str_eq(kind, STR("fact")))
        return true;
    if (!journal_read_fact(r->arena, json, &f, &r->error))
        return err_wrap(&r->error, "entry %lld", (long long)r->sequence);
    if (f.document.len > 0)
        return take_document(r, f.document);
    r->time = r->time || f.time;
    return f.time || vec_push(&r->facts, f.fact) || err_memory(&r->error);
}

static bool take(void *context, yyjson_val *item)
{
    replay *r = context;
    int64_t step = yyjson_get_sint(yyjson_obj_get(item, "step"));
    int64_t sequence = yyjson_get_sint(yyjson_obj_get(item, "sequence"));
    moment at;
    r->read++;
    if (r->until > 0 && sequence > r->until && step != r->step) {
        r->enough = true; /* a step is taken as a whole */
        return false;
    }
    if (!moment_parse(json_at(r->client, item, "/at"), &at, &r->error))
        return broken(r);
    if (step != r->step) {
        if (!end_step(r))
            return broken(r);
        r->step = step;
        r->at_ms = at.seconds * 1000 + at.nanos / 1000000;
        r->first_ms = r->first_ms == 0 ? r->at_ms : r->first_ms;
    }
    r->sequence = sequence;
    return take_entry(r, item, json_at(r->client, item, "/kind")) || broken(r);
}

/* ---- the command ---- */

static exit_status explain(const replay *r, const options *given)
{
    explain_search s = {.target = given->operands.at[0],
                        .change = options_text(given, "change", "")};
    if (!explain_find(r->engine, &s))
        return fail("out of memory");
    if (!s.found)
        return fail("%.*s: no deployment wanted anything of it then, or it was not there",
                    STR_ARG(s.target));
    return explain_print(given, explain_value(r->engine, &s.view, STR_EMPTY, r->arena));
}

static exit_status report(const replay *r, const options *given)
{
    if (r->failed) {
        fail("%s", r->error.text);
        return STATUS_NO;
    }
    if (given->operands.len > 0)
        return explain(r, given);
    if (str_eq(options_text(given, "output", "text"), STR("json")))
        printf("{\"entries\":%lld,\"steps\":%lld,\"facts\":%lld,\"decisions\":%lld,"
               "\"same\":true}\n",
               (long long)r->sequence, (long long)r->steps, (long long)r->fact_count,
               (long long)r->decision_count);
    else if (!r->tell)
        printf("%lld entries, %lld steps, %lld facts: all %lld decisions are the same again\n",
               (long long)r->sequence, (long long)r->steps, (long long)r->fact_count,
               (long long)r->decision_count);
    return STATUS_DONE;
}

static exit_status replay_journal(replay *r, const options *given)
{
    /* Page by page, and no page is kept: a journal has no end. */
    do {
        r->read = 0;
        client_forget(r->client);
        str path = arena_printf(client_arena(r->client), "/api/v1/journal?after=%lld",
                                (long long)r->sequence);
        exit_status status = client_list(r->client, path, CLIENT_PAGE_ITEMS, take, r);
        if (status != STATUS_DONE)
            return status;
    } while (!r->failed && !r->enough && r->read == CLIENT_PAGE_ITEMS);
    r->failed = r->failed || !end_step(r);
    return report(r, given);
}

static void replay_done(replay *r)
{
    r->engine = engine_free(r->engine);
    for (size_t i = 0; i < r->documents.len; i++) {
        objects_free(r->documents.at[i].objects);
        document_set_free(r->documents.at[i].set);
        buf_done(&r->documents.at[i].text);
    }
    vec_done(&r->documents);
    vec_done(&r->facts);
    vec_done(&r->recorded);
    vec_done(&r->decisions);
    arena_free(r->arena);
}

static exit_status run(const options *given)
{
    exit_status status = STATUS_DONE;
    replay r = {.tell = str_eq(options_text(given, "output", ""), STR("trace"))};
    str until = options_text(given, "until", "");
    if (until.len > 0 && (!num_parse(until, &r.until) || r.until < 1))
        return usage_error(&cmd_replay, "--until: found \"%s\", allowed a number of the journal",
                           str_shown(until).text);
    scoped(client_cleanup) client *c = client_open(given, &status);
    if (!c)
        return status;
    r.client = c;
    r.arena = arena_new(0);
    r.engine = engine_new(&(engine_settings){.start_ms = 1}, &r.error);
    status = r.arena && r.engine ? replay_journal(&r, given) : fail("out of memory");
    replay_done(&r);
    return status;
}

static const option options_of_replay[] = {
    {.name = "until",
     .argument = "NUMBER",
     .help = "only up to this entry of the journal (drover history shows them)"},
    {.name = "change", .argument = "NAME", .help = "the Deployment to ask about"},
    OPTION_OUTPUT("text|trace|json"),
    OPTIONS_SERVER,
    OPTIONS_END,
};

const verb cmd_replay = {
    .name = "replay",
    .summary = "decide again what the journal says was decided, and compare",
    .operands = "[TARGET]",
    .operands_max = 1,
    .about =
        "Reads the server's journal from its beginning and tells a fresh engine of this program "
        "every fact in the order it came. Its decisions must be those that were recorded: the "
        "status is 1 at the first that differs. Nothing is changed anywhere.\n"
        "\n"
        "With a TARGET it then says why that was not moving at that time (--until); with -o trace "
        "it prints every decision.",
    .options = options_of_replay,
    .run = run,
};
