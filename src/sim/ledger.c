/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ledger.h"

#include <assert.h>

#define LEDGER_KEY_BYTES 1024

void ledger_init(ledger *l, names *table)
{
    *l = (ledger){.names = table};
}

void ledger_done(ledger *l)
{
    for (size_t i = 0; i < l->groups.len; i++) {
        for (size_t b = 0; b < l->groups.at[i].batches.len; b++)
            vec_done(&l->groups.at[i].batches.at[b].targets);
        vec_done(&l->groups.at[i].batches);
    }
    vec_done(&l->groups);
    vec_done(&l->jobs);
    vec_done(&l->spans);
    vec_done(&l->passes);
    vec_done(&l->in_flight);
    for (size_t i = 0; i < l->slots.len; i++)
        vec_done(&l->slots.at[i].taken);
    vec_done(&l->slots);
    for (size_t i = 0; i < l->holds.len; i++)
        vec_done(&l->holds.at[i].held);
    vec_done(&l->holds);
    for (size_t i = 0; i < l->brackets.len; i++)
        vec_done(&l->brackets.at[i].members);
    vec_done(&l->brackets);
    strmap_done(&l->group_at);
    strmap_done(&l->bracket_at);
}

static void keep(ledger *l, bool good)
{
    if (!good)
        l->no_memory = true;
}

static name_id name_of(ledger *l, str text)
{
    if (text.len == 0)
        return 0;
    name_id id = names_add(l->names, text);
    keep(l, id != 0);
    return id;
}

/* What a group of batches is known by: compartments of several rules, or of one in several
 * environments, may have the same name. */
typedef struct group_words {
    str change, name, environment, rule;
} group_words;

static group_words words_of(const decision *d)
{
    return (group_words){d->change, d->group, d->environment, d->rule};
}

static str group_key(const group_words *w, char text[LEDGER_KEY_BYTES])
{
    int len = snprintf(text, LEDGER_KEY_BYTES, "%.*s\n%.*s\n%.*s\n%.*s", STR_ARG(w->change),
                       STR_ARG(w->name), STR_ARG(w->environment), STR_ARG(w->rule));
    return (str){text, len < LEDGER_KEY_BYTES ? (size_t)len : LEDGER_KEY_BYTES - 1};
}

static bool is_group(const ledger *l, const ledger_group *g, const group_words *w)
{
    return str_eq(names_text(l->names, g->name), w->name) &&
           str_eq(names_text(l->names, g->change), w->change) &&
           str_eq(names_text(l->names, g->environment), w->environment) &&
           str_eq(names_text(l->names, g->rule), w->rule);
}

static ledger_group *known_group(ledger *l, const group_words *w)
{
    ledger_group *last = l->last_group < l->groups.len ? &l->groups.at[l->last_group] : NULL;
    if (last && is_group(l, last, w))
        return last;
    char text[LEDGER_KEY_BYTES];
    const uint64_t *known = strmap_get(&l->group_at, group_key(w, text));
    if (!known)
        return NULL;
    l->last_group = *known;
    return &l->groups.at[*known];
}

const ledger_group *ledger_find(const ledger *l, const group_view *g)
{
    const group_words w = {g->change, g->name, g->environment, g->rule};
    char text[LEDGER_KEY_BYTES];
    const uint64_t *known = strmap_get(&l->group_at, group_key(&w, text));
    return known ? &l->groups.at[*known] : NULL;
}

static ledger_group *group_of(ledger *l, const decision *d)
{
    const group_words w = words_of(d);
    ledger_group *known = known_group(l, &w);
    if (known)
        return known;
    char text[LEDGER_KEY_BYTES];
    ledger_group g = {.change = name_of(l, w.change),
                      .name = name_of(l, w.name),
                      .environment = name_of(l, w.environment),
                      .rule = name_of(l, w.rule),
                      .current_batch = 1};
    name_id kept = name_of(l, group_key(&w, text));
    if (!kept || !vec_push(&l->groups, g)) {
        l->no_memory = true;
        return NULL;
    }
    keep(l, strmap_put(&l->group_at, names_text(l->names, kept), l->groups.len - 1));
    return &l->groups.at[l->groups.len - 1];
}

static ledger_batch *open_batch(const ledger_group *g)
{
    ledger_batch *last = g->batches.len > 0 ? &g->batches.at[g->batches.len - 1] : NULL;
    return last && last->end_ms == LEDGER_OPEN ? last : NULL;
}

static void begin_anew(ledger_group *g)
{
    g->completed = g->failed = g->consecutive_failures = 0;
    g->at_rest = false;
}

void ledger_batch_opens(ledger *l, const decision *d, int64_t ms)
{
    ledger_group *g = group_of(l, d);
    if (!g)
        return;
    if (g->at_rest)
        begin_anew(g);
    if (open_batch(g)) /* all its members were deleted: it ended without being judged */
        open_batch(g)->end_ms = ms;
    g->current_batch = d->number;
    ledger_batch b = {.number = d->number, .size = d->size, .start_ms = ms, .end_ms = LEDGER_OPEN};
    keep(l, vec_push(&g->batches, b));
}

void ledger_batch_joins(ledger *l, const decision *d, uint32_t target)
{
    const group_words w = words_of(d);
    ledger_group *g = known_group(l, &w);
    ledger_batch *b = g ? open_batch(g) : NULL;
    if (b)
        keep(l, vec_push(&b->targets, target));
}

void ledger_batch_judged(ledger *l, const decision *d, int64_t ms)
{
    ledger_group *g = group_of(l, d);
    if (!g)
        return;
    if (g->at_rest)
        begin_anew(g);
    g->current_batch = d->number + 1;
    g->completed += d->complete;
    g->failed += d->erroring;
    g->consecutive_failures = d->failed ? g->consecutive_failures + 1 : 0;
    ledger_batch *b = open_batch(g);
    if (!b)
        return;
    b->number = d->number;
    b->end_ms = ms;
    b->size = d->size;
    b->complete = d->complete;
    b->erroring = d->erroring;
    b->blocked = d->blocked;
    b->failed = d->failed;
}

bool ledger_has_open_batch(const ledger *l)
{
    for (size_t i = 0; i < l->groups.len; i++)
        if (open_batch(&l->groups.at[i]))
            return true;
    return false;
}

void ledger_batch_runs(ledger *l, const group_view *g)
{
    const group_words w = {g->change, g->name, g->environment, g->rule};
    ledger_group *known = known_group(l, &w);
    if (known && g->in_flight > 0)
        known->runs = true;
}

void ledger_batches_left(ledger *l, int64_t ms)
{
    for (size_t i = 0; i < l->groups.len; i++) {
        ledger_group *g = &l->groups.at[i];
        if (!g->runs && open_batch(g))
            open_batch(g)->end_ms = ms;
        g->runs = false;
    }
}

void ledger_halts(ledger *l, const decision *d)
{
    ledger_group *g = group_of(l, d);
    if (g)
        g->stopped = true;
}

void ledger_resets(ledger *l, const decision *d)
{
    ledger_group *g = group_of(l, d);
    if (!g)
        return;
    g->stopped = false;
    g->at_rest = true; /* what was reached is shown until the next batch, or the one in flight,
                          which is batch 1 now */
}

void ledger_recovers(ledger *l, const decision *d)
{
    ledger_group *g = group_of(l, d);
    if (!g || g->failed == 0)
        return;
    g->failed--;
    g->completed++;
}

/* The last pass of a bundle or rule is taken out if it released nothing. */
static bool take_idle_pass(ledger *l, const ledger_pass *of, ledger_pass *ret)
{
    for (size_t i = l->passes.len; i-- > 0;) {
        const ledger_pass *one = &l->passes.at[i];
        if (one->change != of->change || one->rule != of->rule ||
            one->environment != of->environment)
            continue;
        if (one->created + one->updated + one->fixed > 0)
            return false;
        *ret = *one;
        memmove(&l->passes.at[i], &l->passes.at[i + 1], (l->passes.len - i - 1) * sizeof *one);
        l->passes.len--;
        return true;
    }
    return false;
}

void ledger_passes(ledger *l, const decision *d, int64_t ms)
{
    ledger_pass before, p = {.change = name_of(l, d->change),
                             .rule = name_of(l, d->rule),
                             .environment = name_of(l, d->environment),
                             .start_ms = ms,
                             .created = d->created,
                             .updated = d->updated,
                             .fixed = d->fixed,
                             .visited = d->visited,
                             .not_ready = d->not_ready};
    take_idle_pass(l, &p, &before);
    keep(l, vec_push(&l->passes, p));
}

void ledger_last_pass(ledger *l, const group_view *of, int64_t ms)
{
    ledger_pass p = {.change = name_of(l, of->change),
                     .rule = name_of(l, of->rule),
                     .environment = name_of(l, of->environment)};
    if (!take_idle_pass(l, &p, &p))
        return;
    p.start_ms = ms;
    keep(l, vec_push(&l->passes, p));
    for (size_t i = l->passes.len - 1; i > 0 && l->passes.at[i - 1].start_ms > ms; i--) {
        l->passes.at[i] = l->passes.at[i - 1];
        l->passes.at[i - 1] = p;
    }
}

static ledger_bracket *bracket_of(ledger *l, str group)
{
    const uint64_t *known = strmap_get(&l->bracket_at, group);
    if (known)
        return &l->brackets.at[*known];
    name_id kept = name_of(l, group);
    if (!kept || !vec_push(&l->brackets, (ledger_bracket){0})) {
        l->no_memory = true;
        return NULL;
    }
    keep(l, strmap_put(&l->bracket_at, names_text(l->names, kept), l->brackets.len - 1));
    return &l->brackets.at[l->brackets.len - 1];
}

/* A member that is tried again, or runs again with what has joined, is one all the same. */
static void member_ran(ledger *l, ledger_bracket *b, name_id member)
{
    for (size_t i = 0; i < b->members.len; i++)
        if (b->members.at[i] == member)
            return;
    keep(l, vec_push(&b->members, member));
}

uint32_t ledger_job_starts(ledger *l, const decision *d, uint32_t target, int64_t ms)
{
    ledger_job j = {.deployment = name_of(l, d->change),
                    .environment = name_of(l, d->environment),
                    .version = name_of(l, d->version),
                    .group = name_of(l, d->group),
                    .outside = d->outside.len > 0 ? name_of(l, d->outside) : 0,
                    .resource = target,
                    .role = d->role,
                    .start_ms = ms,
                    .end_ms = LEDGER_OPEN};
    keep(l, vec_push(&l->jobs, j));
    ledger_bracket *b = d->group.len > 0 ? bracket_of(l, d->group) : NULL;
    if (b && d->role == ROLE_PRE)
        b->prepared = true;
    if (b && d->role == ROLE_MEMBER)
        member_ran(l, b, j.deployment);
    return (uint32_t)l->jobs.len - 1;
}

void ledger_job_ends(ledger *l, uint32_t job, bool failed, int64_t ms)
{
    if (job >= l->jobs.len)
        return;
    l->jobs.at[job].end_ms = ms;
    l->jobs.at[job].failed = failed;
}

uint32_t ledger_span_starts(ledger *l, const decision *d, uint32_t target, int64_t ms)
{
    ledger_span s = {.change = name_of(l, d->change),
                     .group = name_of(l, d->group),
                     .target = target,
                     .start_ms = ms,
                     .end_ms = LEDGER_OPEN};
    keep(l, vec_push(&l->spans, s));
    return (uint32_t)l->spans.len - 1;
}

void ledger_span_ends(ledger *l, uint32_t span, bool failed, int64_t ms)
{
    if (span >= l->spans.len || l->spans.at[span].end_ms != LEDGER_OPEN)
        return;
    l->spans.at[span].failed = failed;
    if (!failed)
        l->spans.at[span].end_ms = ms;
}

void ledger_sums(const ledger *l, int64_t *ret_drains, int64_t *ret_saved)
{
    *ret_drains = l->drains;
    *ret_saved = l->drains_saved;
    for (size_t i = 0; i < l->brackets.len; i++) {
        const ledger_bracket *b = &l->brackets.at[i];
        *ret_drains += b->prepared;
        *ret_saved += b->prepared && b->members.len > 1 ? (int64_t)b->members.len - 1 : 0;
    }
}

/* ---- slots ---- */

const ledger_slots *ledger_slots_of(const ledger *l, str rule_id)
{
    name_id wanted = names_find(l->names, rule_id);
    for (size_t i = 0; i < l->slots.len; i++)
        if (l->slots.at[i].rule == wanted)
            return &l->slots.at[i];
    return NULL;
}

/* There are few rules, and the slots of one are taken in a row. */
void ledger_slot(ledger *l, const decision *d, int64_t ms)
{
    name_id id = name_of(l, d->group);
    size_t i = 0;
    while (i < l->slots.len && l->slots.at[i].rule != id)
        i++;
    if (i == l->slots.len) {
        ledger_slots first = {.rule = id, .before = d->size + (d->taken ? -1 : 1)};
        keep(l, vec_push(&l->slots, first));
        if (l->no_memory)
            return;
    }
    ledger_slots *s = &l->slots.at[i];
    if (s->taken.len > 0 && s->taken.at[s->taken.len - 1].ms == ms)
        s->taken.at[s->taken.len - 1].count = d->size;
    else
        keep(l, vec_push(&s->taken, (ledger_point){ms, d->size}));
}

/* ---- compartments and partitions ---- */

static size_t holds_at(const ledger *l, name_id change, name_id name, size_t guess)
{
    for (size_t i = 0; i < l->holds.len; i++) {
        size_t at = (guess + i) % l->holds.len;
        if (l->holds.at[at].change == change && l->holds.at[at].name == name)
            return at;
    }
    return l->holds.len;
}

const ledger_holds *ledger_holds_of(const ledger *l, str change, str name)
{
    size_t at = holds_at(l, names_find(l->names, change), names_find(l->names, name), 0);
    return at < l->holds.len ? &l->holds.at[at] : NULL;
}

void ledger_holds_now(ledger *l, const group_view *g, int64_t ms)
{
    name_id change = name_of(l, g->change), name = name_of(l, g->name);
    size_t at = holds_at(l, change, name, l->next_holds);
    if (at == l->holds.len) {
        keep(l, vec_push(&l->holds, (ledger_holds){.change = change, .name = name}));
        if (l->no_memory)
            return;
    }
    l->next_holds = at + 1;
    ledger_holds *h = &l->holds.at[at];
    if (h->held.len > 0 && h->held.at[h->held.len - 1].count == g->holders)
        return;
    if (h->held.len > 0 && h->held.at[h->held.len - 1].ms == ms)
        h->held.at[h->held.len - 1].count = g->holders;
    else
        keep(l, vec_push(&h->held, (ledger_point){ms, g->holders}));
}

void ledger_in_flight(ledger *l, int64_t ms)
{
    size_t len = l->in_flight.len;
    if (len > 0 && l->in_flight.at[len - 1].ms == ms) {
        l->in_flight.at[len - 1].count = l->now_in_flight;
        if (len > 1 && l->in_flight.at[len - 2].count == l->now_in_flight)
            l->in_flight.len--;
        return;
    }
    if (len > 0 && l->in_flight.at[len - 1].count == l->now_in_flight)
        return;
    keep(l, vec_push(&l->in_flight, (ledger_point){ms, l->now_in_flight}));
}
