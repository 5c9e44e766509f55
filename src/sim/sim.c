/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"

#include <assert.h>
#include <stdarg.h>

#include "base/mem.h"
#include "sim/sim_internal.h"
#include "sim/story.h"

#define STORY_BYTES_MAX (1024u * 1024u * 1024u)
#define STORY_KEEP_BYTES (64u * 1024u)

static const char *const outcomes[] = {
#define X(outcome, text) text,
    SIM_OUTCOMES(X)
#undef X
};

const char *sim_outcome_text(sim_outcome ended)
{
    return outcomes[ended];
}

static bool sim_init(sim *s)
{
    s->names = names_new();
    s->arena = arena_new(0);
    s->facts = mem_zalloc(SIM_PORTION * sizeof *s->facts);
    s->boots = mem_zalloc(SIM_PORTION * sizeof *s->boots);
    s->story = BUF(STORY_BYTES_MAX);
    bool good = herd_init(&s->herd) && s->names && s->arena && s->facts && s->boots;
    if (good && s->settings.hash) {
        s->hash = XXH3_createState();
        good = s->hash && XXH3_64bits_reset(s->hash) == XXH_OK;
    }
    ledger_init(&s->ledger, s->names);
    s->dice = dice_of(s->settings.seed);
    s->restarts = dice_of(~s->settings.seed);
    return good;
}

sim *sim_new(const sim_settings *settings, err *error)
{
    sim *s = mem_zalloc(sizeof *s);
    if (!s) {
        err_memory(error);
        return NULL;
    }
    s->settings = *settings;
    if (s->settings.horizon_ms == 0)
        s->settings.horizon_ms = SIM_HORIZON_MS;
    if (s->settings.duration_ms < 0)
        s->settings.duration_ms = SIM_DURATION_MS;
    s->settings.engine.start_ms = s->settings.start_ms;
    s->now_ms = s->moved_ms = s->settings.start_ms;
    if (!sim_init(s)) {
        err_memory(error);
        return sim_free(s);
    }
    s->engine = engine_new(&s->settings.engine, error);
    return s->engine ? s : sim_free(s);
}

sim *sim_free(sim *s)
{
    if (!s)
        return NULL;
    engine_free(s->engine);
    herd_done(&s->herd);
    agenda_done(&s->agenda);
    ledger_done(&s->ledger);
    vec_done(&s->documents);
    vec_done(&s->deployed);
    vec_done(&s->happenings);
    vec_done(&s->failing);
    vec_done(&s->from);
    vec_done(&s->held);
    vec_done(&s->bundles);
    vec_done(&s->placements);
    vec_done(&s->releases);
    vec_done(&s->decisions);
    vec_done(&s->due);
    vec_done(&s->on_the_way);
    vec_done(&s->untold);
    vec_done(&s->acts);
    strmap_done(&s->release_at);
    strmap_done(&s->durations);
    strmap_done(&s->interrupting);
    mem_free(s->facts);
    mem_free(s->boots);
    buf_done(&s->story);
    XXH3_freeState(s->hash);
    arena_free(s->arena);
    names_free(s->names);
    return mem_free(s);
}

void sim_cleanup(sim **s)
{
    *s = sim_free(*s);
}

void sim_memory(sim *s, bool good)
{
    if (!good)
        s->no_memory = true;
}

name_id sim_name(sim *s, str text)
{
    if (text.len == 0)
        return 0;
    name_id id = names_add(s->names, text);
    sim_memory(s, id != 0);
    return id;
}

void sim_told(sim *s)
{
    if (s->hash && s->story.len > 0 && !s->settings.tell) {
        XXH3_64bits_update(s->hash, s->story.ptr, s->story.len);
        buf_clear(&s->story);
    }
    if (!s->hash && !s->settings.tell && s->story.len > STORY_KEEP_BYTES)
        buf_clear(&s->story);
}

void sim_tell(sim *s, const char *format, ...)
{
    if (!s->settings.tell && !s->hash)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    story_line(&s->story, s->now_ms - s->settings.start_ms, "%s", text);
}

bool sim_set_duration(sim *s, str name, int64_t ms)
{
    name_id id = sim_name(s, name);
    return id && strmap_put(&s->durations, names_text(s->names, id), (uint64_t)ms);
}

void sim_set_default_duration(sim *s, int64_t ms)
{
    s->settings.duration_ms = ms;
}

sim_failure sim_failure_of(str text, bool once)
{
    size_t at = str_find(text, STR("@"));
    if (at == SIZE_MAX)
        return (sim_failure){STR_EMPTY, text, once};
    return (sim_failure){str_part(text, 0, at), str_part(text, at + 1, SIZE_MAX), once};
}

bool sim_add_failure(sim *s, const sim_failure *failure, err *error)
{
    uint32_t target = herd_find_any(&s->herd, failure->target);
    if (target == HERD_NONE)
        return err_set(error, "found \"%s\", allowed the name of a target",
                       str_shown(failure->target).text);
    sim_failing f = {sim_name(s, failure->part), target, failure->once};
    s->herd.targets.at[target].flags |= HERD_MAY_FAIL;
    return (vec_push(&s->failing, f) && !s->no_memory) || err_memory(error);
}

bool sim_set_offline(sim *s, str target, err *error)
{
    uint32_t t = herd_find_any(&s->herd, target);
    if (t == HERD_NONE)
        return err_set(error, "found \"%s\", allowed the name of a target", str_shown(target).text);
    s->herd.targets.at[t].flags |= HERD_OFFLINE;
    if (s->herd.targets.at[t].kind == TARGET_NODE)
        s->herd.targets.at[t].flags |= HERD_NOT_READY;
    return true;
}

bool sim_add_from(sim *s, str name, str tag, err *error)
{
    sim_from from = {sim_name(s, name), sim_name(s, tag)};
    return (vec_push(&s->from, from) && !s->no_memory) || err_memory(error);
}

bool sim_add_happening(sim *s, const happening *h, err *error)
{
    assert(s->happened == 0);
    if (!vec_push(&s->happenings, *h))
        return err_memory(error);
    /* By time; those of the same time stay in the order they were given. */
    for (size_t i = s->happenings.len - 1; i > 0; i--) {
        happening *a = &s->happenings.at[i - 1], *b = &s->happenings.at[i];
        if (a->after_ms <= b->after_ms)
            break;
        happening swap = *a;
        *a = *b;
        *b = swap;
    }
    return true;
}

void sim_set_live(sim *s, str saved, const sim_running *jobs, size_t count)
{
    s->live = true;
    s->live_saved = saved;
    s->running = jobs;
    s->running_count = count;
}

bool sim_is_live(const sim *s)
{
    return s->live;
}

size_t sim_running_count(const sim *s)
{
    return s->running_count + s->placements_alive;
}

sim_release *sim_release_of(sim *s, name_id change, uint32_t target)
{
    uint32_t key[2] = {change, target};
    const uint64_t *known = strmap_get(&s->release_at, (str){(const char *)key, sizeof key});
    if (known)
        return &s->releases.at[*known];
    uint32_t *kept = ARENA_ARRAY(s->arena, 2, uint32_t);
    if (!kept || !vec_push(&s->releases, (sim_release){.span = UINT32_MAX})) {
        s->no_memory = true;
        return NULL;
    }
    kept[0] = key[0];
    kept[1] = key[1];
    sim_memory(
        s, strmap_put(&s->release_at, (str){(const char *)kept, sizeof key}, s->releases.len - 1));
    return &s->releases.at[s->releases.len - 1];
}

sim_outcome sim_ended(const sim *s)
{
    return s->outcome;
}

int64_t sim_seconds(const sim *s)
{
    return (s->moved_ms - s->settings.start_ms) / 1000;
}

int64_t sim_start_ms(const sim *s)
{
    return s->settings.start_ms;
}

int64_t sim_now_ms(const sim *s)
{
    return s->now_ms;
}

engine *sim_engine(const sim *s)
{
    return s->engine;
}

const ledger *sim_ledger(const sim *s)
{
    return &s->ledger;
}

const herd *sim_herd(const sim *s)
{
    return &s->herd;
}

size_t sim_documents(const sim *s)
{
    return s->documents.len;
}

const object *sim_document(const sim *s, size_t index)
{
    return s->documents.at[index];
}

str sim_story(const sim *s)
{
    return buf_str(&s->story);
}

uint64_t sim_hash(const sim *s)
{
    if (!s->hash)
        return 0;
    if (s->settings.tell)
        return XXH3_64bits(s->story.ptr ? s->story.ptr : "", s->story.len);
    return XXH3_64bits_digest(s->hash);
}

uint64_t sim_steps(const sim *s)
{
    return s->steps;
}

uint32_t sim_started(const sim *s, placement_id placement)
{
    return placement < s->placements.len ? s->placements.at[placement].started : 0;
}
