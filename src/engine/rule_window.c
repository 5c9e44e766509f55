/* SPDX-License-Identifier: Apache-2.0 */
/* deploymentWindow: recurring windows (RFC 5545) in which things may start, or may not.
 *
 * A rule without DTSTART is anchored at local midnight of 1970-01-01, so that intervals and
 * counts mean the same whenever they are asked. Windows are half-open to the second. Where clocks
 * go back, a window starts when they show its time first; where they go forward over it, that one
 * does not occur and is not counted (RFC 5545, 3.3.5 and 3.3.10). Occurrences are computed once for
 * a long stretch of time and looked up from then on. */
#include <assert.h>

#include "base/mem.h"
#include "engine/window.h"
#include "engine/window_internal.h"
#include "model/recurrence.h"

/* One question counts at most CHUNKS_MAX times OCCURRENCES_MAX windows, or days of steps. */
#define OCCURRENCES_MAX 1024u
#define CHUNKS_MAX 128u
/* A window that has no gap for so long, or for all that is counted and at least a year, has none;
 * one that ends is followed for longer. */
#define GAPLESS_YEARS 10
#define FOLLOWED_YEARS 100
#define FOR_EVER INT64_MAX
#define YEAR_MS (365 * DAY_MS)
/* By how much clocks are put back at most, with room to spare. */
#define PUT_BACK_MS DAY_MS

struct window_cache *window_free(struct window_cache *w)
{
    if (w) {
        vec_done(&w->spans);
        vec_done(&w->steps);
        vec_done(&w->parts);
    }
    return mem_free(w);
}

/* ---- reading the rule ---- */

/* libical counts in local time and is told no zone: zones are zone.h's. */
static struct icaltimetype time_shown(int64_t wall)
{
    struct icaltimetype at =
        icaltime_from_timet_with_zone((time_t)wall, 0, icaltimezone_get_utc_timezone());
    at.zone = NULL;
    return at;
}

/* As the clocks of the window's zone show a moment. */
static struct icaltimetype local_time(int64_t seconds, const time_zone *z)
{
    return time_shown(seconds + zone_offset(z, seconds));
}

/* DTSTART, which may be in UTC, in a zone of its own, or in the window's. */
static bool read_start(struct window_cache *w, const recurrence *parts)
{
    struct icaltimetype start = icaltime_from_string(parts->start);
    const time_zone *own = parts->zone[0] ? zone_named(str_of(parts->zone)) : NULL;
    int64_t wall = (int64_t)icaltime_as_timet(start), ms = wall * SECOND_MS;
    if (icaltime_is_null_time(start))
        return false;
    bool local = !icaltime_is_utc(start);
    if (local && own)
        moment_shown(wall, own, &ms);
    w->anchor = local && !own ? time_shown(wall) : local_time(ms / SECOND_MS, w->zone);
    return true;
}

static struct icaltimetype until_shown(struct icaltimetype until, const time_zone *z)
{
    int64_t seconds = (int64_t)icaltime_as_timet(until);
    return icaltime_is_utc(until) ? local_time(seconds, z) : time_shown(seconds);
}

static bool read_rule(struct window_cache *w, str text)
{
    recurrence parts;
    if (!recurrence_parse(text, &parts, NULL))
        return false;
    w->recurrence = icalrecurrencetype_from_string(parts.rule);
    if (w->recurrence.freq == ICAL_NO_RECURRENCE)
        return false;
    w->count = w->recurrence.count;
    w->recurrence.count = 0;
    w->ends = w->count > 0 || !icaltime_is_null_time(w->recurrence.until);
    if (!icaltime_is_null_time(w->recurrence.until) && !w->recurrence.until.is_date)
        w->recurrence.until = until_shown(w->recurrence.until, w->zone);
    return !parts.start[0] || read_start(w, &parts);
}

/* ---- occurrences ---- */

static int compare_spans(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->start_ms > y->start_ms) - (x->start_ms < y->start_ms);
}

static void merge(struct window_cache *w)
{
    bool sorted = true;
    if (w->spans.len == 0)
        return;
    for (size_t i = 1; i < w->spans.len && sorted; i++)
        sorted = w->spans.at[i - 1].start_ms <= w->spans.at[i].start_ms;
    if (!sorted) /* clocks were put back */
        qsort(w->spans.at, w->spans.len, sizeof *w->spans.at, compare_spans);
    size_t kept = 0;
    for (size_t i = 1; i < w->spans.len; i++) {
        span *last = &w->spans.at[kept], next = w->spans.at[i];
        if (next.start_ms <= last->end_ms)
            last->end_ms = later_of(last->end_ms, next.end_ms);
        else
            w->spans.at[++kept] = next;
    }
    w->spans.len = kept + 1;
}

/* Where to begin counting so as to reach "begin" soon. libical's own way to skip ahead loses the
 * phase of intervals below a day: those are moved by whole intervals instead, if steps could not be
 * made of them. */
static icalrecur_iterator *iterator_near(const struct window_cache *w, struct icaltimetype begin)
{
    struct icaltimetype anchor = w->anchor;
    int64_t unit = w->recurrence.freq == ICAL_HOURLY_RECURRENCE     ? HOUR_SECONDS
                   : w->recurrence.freq == ICAL_MINUTELY_RECURRENCE ? MINUTE_SECONDS
                   : w->recurrence.freq == ICAL_SECONDLY_RECURRENCE ? 1
                                                                    : 0;
    bool ahead = w->count == 0 && icaltime_compare(begin, anchor) > 0;
    if (ahead && unit > 0) {
        int64_t step = unit * w->recurrence.interval, from = (int64_t)icaltime_as_timet(anchor);
        int64_t skip = ((int64_t)icaltime_as_timet(begin) - from) / step * step;
        anchor = time_shown(from + skip);
    }
    icalrecur_iterator *it = icalrecur_iterator_new(w->recurrence, anchor);
    if (it && ahead && unit == 0)
        icalrecur_iterator_set_start(it, begin);
    return it;
}

bool moment_shown(int64_t wall, const time_zone *z, int64_t *ret_ms)
{
    int64_t before = zone_offset(z, wall - DAY_SECONDS);
    int64_t after = zone_offset(z, wall + DAY_SECONDS);
    *ret_ms = (wall - before) * 1000;
    if (zone_offset(z, wall - before) == before)
        return true;
    if (zone_offset(z, wall - after) != after)
        return false;
    *ret_ms = (wall - after) * 1000;
    return true;
}

int64_t moment_again(int64_t wall, const time_zone *z, int64_t first_ms)
{
    int64_t after = zone_offset(z, wall + DAY_SECONDS);
    int64_t again_ms = (wall - after) * 1000;
    return again_ms > first_ms && zone_offset(z, wall - after) == after ? again_ms : NEVER;
}

static struct window_cache *cache_new(const deployment_window *doc)
{
    struct window_cache *w = mem_zalloc(sizeof *w);
    if (!w)
        return NULL;
    w->anchor = icaltime_from_string("19700101T000000");
    w->allow = doc->allow_window;
    w->duration_ms = doc->duration_minutes * MINUTE_MS;
    w->zone = zone_named(doc->timezone.len > 0 ? doc->timezone : STR("UTC"));
    w->latest_ms = INT64_MIN;
    w->good = w->zone && read_rule(w, doc->rrule);
    return !w->good || steps_make(w) ? w : window_free(w);
}

/* ---- counting ---- */

/* The next occurrence that is one. The start itself always is. */
static bool next_start(struct window_cache *w, icalrecur_iterator *it, int64_t *ret_ms,
                       int64_t *ret_again_ms)
{
    for (struct icaltimetype at = icalrecur_iterator_next(it); !icaltime_is_null_time(at);
         at = icalrecur_iterator_next(it)) {
        int64_t wall = (int64_t)icaltime_as_timet(at);
        if (moment_shown(wall, w->zone, ret_ms) || icaltime_compare(at, w->anchor) == 0) {
            *ret_again_ms = w->recurrence.freq <= ICAL_HOURLY_RECURRENCE
                                ? moment_again(wall, w->zone, *ret_ms)
                                : NEVER;
            return true;
        }
    }
    return false;
}

static bool add_spans(struct window_cache *w, int64_t start_ms, int64_t again_ms)
{
    return vec_push(&w->spans, (span){start_ms, start_ms + w->duration_ms}) &&
           (again_ms == NEVER || vec_push(&w->spans, (span){again_ms, again_ms + w->duration_ms}));
}

/* Adds the next OCCURRENCES_MAX. *ret_last_ms: when the last of them begins; NEVER: there are no
 * more. */
static bool add_counted(struct window_cache *w, counting *k, int64_t *ret_last_ms)
{
    size_t added = 0;
    *ret_last_ms = NEVER;
    for (int64_t start_ms, again_ms; k->left > 0 && next_start(w, k->it, &start_ms, &again_ms);) {
        k->left--;
        if (start_ms < k->from_ms)
            continue;
        if (!add_spans(w, start_ms, again_ms))
            return false;
        if (++added == OCCURRENCES_MAX) {
            *ret_last_ms = start_ms;
            break;
        }
    }
    return true;
}

/* The same of as many days, or fewer that have so many windows. */
static bool add_days(struct window_cache *w, counting *k, int64_t *ret_last_ms)
{
    size_t days = 0, most = w->spans.len + OCCURRENCES_MAX;
    *ret_last_ms = NEVER;
    while (k->left > 0) {
        struct icaltimetype at = icalrecur_iterator_next(k->it);
        int64_t day = (int64_t)icaltime_as_timet(at);
        if (icaltime_is_null_time(at) || day > w->until)
            return true;
        if (!steps_day(w, k, day))
            return false;
        if (++days == OCCURRENCES_MAX || w->spans.len >= most) {
            moment_shown(day, w->zone, ret_last_ms);
            return true;
        }
    }
    return true;
}

static bool add_chunk(struct window_cache *w, counting *k, int64_t *ret_last_ms)
{
    if (!(w->steps.len > 0 ? add_days : add_counted)(w, k, ret_last_ms))
        return false;
    merge(w);
    /* A later one may still reach before the last where clocks go back. */
    w->to_ms = *ret_last_ms == NEVER ? INT64_MAX : *ret_last_ms - PUT_BACK_MS;
    return true;
}

/* What is counted so far ends in the middle of a span. */
static bool open_ended(const struct window_cache *w)
{
    const span *last = w->spans.len > 0 ? &w->spans.at[w->spans.len - 1] : NULL;
    return last && w->to_ms != INT64_MAX && last->start_ms < w->to_ms && last->end_ms >= w->to_ms;
}

/* Whether a window is known that begins behind at_ms: all that is earlier is known then, too. */
static bool next_known(const struct window_cache *w, int64_t at_ms)
{
    return w->spans.len > 0 && w->spans.at[w->spans.len - 1].start_ms > at_ms;
}

/* Counts until at_ms and a window behind it are known, or it is too many; and on to the latest
 * moment that was asked for, if it is not too far: a start and the present are asked in turn.
 * *ret_last_ms as above. */
static bool count_on(struct window_cache *w, counting *k, int64_t at_ms, int64_t *ret_last_ms)
{
    int64_t years = w->ends ? FOLLOWED_YEARS : GAPLESS_YEARS;
    int64_t until_ms = w->latest_ms - at_ms <= YEAR_MS ? w->latest_ms : at_ms;
    bool good = add_chunk(w, k, ret_last_ms);
    for (size_t i = 1; good && i < CHUNKS_MAX && w->to_ms != INT64_MAX; i++) {
        if (w->to_ms > until_ms && next_known(w, until_ms))
            break;
        if (open_ended(w) && *ret_last_ms - at_ms >= years * YEAR_MS)
            break;
        good = add_chunk(w, k, ret_last_ms);
    }
    /* Behind the last window nothing is known. */
    if (good && w->to_ms != INT64_MAX && next_known(w, at_ms) &&
        w->spans.at[w->spans.len - 1].start_ms < w->to_ms)
        w->to_ms = w->spans.at[w->spans.len - 1].start_ms;
    return good;
}

/* What was counted is all there is to know: a window without a gap for so long has none (libical
 * itself ends after some centuries), and one that cannot be known at at_ms lets nothing start,
 * whether it allows or denies, until somebody edits it. */
static bool conclude(struct window_cache *w, int64_t at_ms, int64_t last_ms)
{
    span *last = w->spans.len > 0 ? &w->spans.at[w->spans.len - 1] : NULL;
    bool goes_on = last && w->to_ms == INT64_MAX && !w->ends && last->start_ms <= at_ms &&
                   last->end_ms - at_ms >= later_of(GAPLESS_YEARS * YEAR_MS, w->duration_ms);
    if (goes_on || (open_ended(w) && last_ms - at_ms >= YEAR_MS)) {
        last->end_ms = FOR_EVER;
        w->to_ms = INT64_MAX;
    }
    if (w->to_ms > at_ms)
        return true;
    w->spans.len = 0;
    w->from_ms = at_ms;
    w->to_ms = at_ms + YEAR_MS;
    return w->allow || vec_push(&w->spans, (span){at_ms, FOR_EVER});
}

/* Fills in the occurrences from a little before at_ms on, up to one behind a gap. */
static bool fill(struct window_cache *w, int64_t at_ms)
{
    counting k = {.left = w->count > 0 ? w->count : INT64_MAX,
                  .from_ms = at_ms - w->duration_ms - 2 * PUT_BACK_MS};
    w->latest_ms = later_of(w->latest_ms, at_ms);
    for (size_t i = 0; i < WINDOW_ANSWERS; i++)
        w->last[i].known = false;
    w->spans.len = 0;
    w->from_ms = k.from_ms + w->duration_ms + PUT_BACK_MS;
    w->to_ms = INT64_MAX;
    k.it = iterator_near(w, local_time(k.from_ms / SECOND_MS, w->zone));
    if (!k.it)
        return true;
    int64_t last_ms = NEVER;
    bool good = count_on(w, &k, at_ms, &last_ms) && conclude(w, at_ms, last_ms);
    icalrecur_iterator_free(k.it);
    if (!good)
        w->to_ms = w->from_ms; /* nothing is known */
    return good;
}

static struct window_cache *cache_for(releases *r, uint32_t rule_, int64_t at_ms)
{
    rel_rule *the = &r->rules.at[rule_];
    if (!the->windows) {
        the->windows = cache_new(the->doc->deployment_window);
        if (!the->windows) {
            rel_no_memory(r);
            return NULL;
        }
    }
    struct window_cache *w = the->windows;
    if (w->good && (at_ms < w->from_ms || at_ms >= w->to_ms) && !fill(w, at_ms))
        rel_no_memory(r);
    return w;
}

/* The last span that starts at or before at_ms; the number of spans if none does. */
static size_t span_before(const struct window_cache *w, int64_t at_ms)
{
    size_t low = 0, high = w->spans.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->spans.at[middle].start_ms <= at_ms)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? w->spans.len : low - 1;
}

static window_answer ask(const struct window_cache *w, int64_t at_ms)
{
    window_answer is = {.known = true, .at_ms = at_ms, .start_ms = LONG_AGO, .change_ms = NEVER};
    size_t i = span_before(w, at_ms);
    if (i < w->spans.len && at_ms < w->spans.at[i].end_ms) {
        is.inside = true;
        is.start_ms = w->spans.at[i].start_ms;
        is.change_ms = w->spans.at[i].end_ms == FOR_EVER ? NEVER : w->spans.at[i].end_ms;
        return is;
    }
    size_t next = i < w->spans.len ? i + 1 : 0;
    if (next < w->spans.len)
        is.change_ms = w->spans.at[next].start_ms;
    return is;
}

bool window_inside(releases *r, uint32_t rule_, int64_t at_ms, int64_t *ret_start_ms,
                   int64_t *ret_change_ms)
{
    /* Half-open to the second: a window opens with its second, not earlier. */
    struct window_cache *w = cache_for(r, rule_, at_ms);
    *ret_start_ms = LONG_AGO;
    *ret_change_ms = NEVER;
    if (!w || !w->good)
        return false;
    window_answer *is = NULL;
    for (size_t i = 0; i < WINDOW_ANSWERS && !is; i++)
        if (w->last[i].known && w->last[i].at_ms == at_ms)
            is = &w->last[i];
    if (!is) {
        is = &w->last[w->next];
        w->next = (w->next + 1) % WINDOW_ANSWERS;
        *is = ask(w, at_ms);
    }
    *ret_start_ms = is->start_ms;
    *ret_change_ms = is->change_ms;
    return is->inside;
}

int64_t window_opens(releases *r, uint32_t rule_, int64_t at_ms)
{
    int64_t start, change;
    bool inside = window_inside(r, rule_, at_ms, &start, &change);
    bool allow = r->rules.at[rule_].doc->deployment_window->allow_window;
    return inside == allow ? at_ms : change;
}

/* ---- the rule ---- */

/* Members of a group are all that its bracket has on the resource, also those that are unchanged in
 * it and have no job. */
bool window_concerns(const chain_context *c)
{
    const releases *r = c->r;
    if (c->group == NO)
        return r->targets.at[c->target].current != NO;
    const rel_group *g = &r->groups.at[c->group];
    const index_list *all = &r->sites.at[g->site].targets;
    for (size_t i = 0; i < all->len; i++)
        if (r->targets.at[all->at[i]].current != NO)
            return true;
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.at[i].role == ROLE_PRE ||
            r->targets.at[g->members.at[i].target].current != NO)
            return true;
    return false;
}

static void window_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    if (!window_concerns(c))
        return;
    r->rules.at[rule_].asked = true;
    int64_t start, change;
    bool inside = window_inside(r, rule_, r->core->now_ms, &start, &change);
    bool allow = r->rules.at[rule_].doc->deployment_window->allow_window;
    v->reason.next_ms = change;
    if (inside == allow) {
        v->satisfied_ms = allow ? start : r->core->now_ms;
        return;
    }
    verdict_no(v, VERDICT_WAITING, REASON_WINDOW, change);
}

const rule_ops window_ops = {.order = 5, .level = LEVEL_FIRST, .verdict = window_verdict};

/* The first rule of the target's lane whose window is shut for it, whatever people let pass; NO:
 * none. */
static uint32_t shut_for(const chain_context *c)
{
    const rel_lane *lane = &c->r->lanes.at[c->lane];
    for (size_t i = 0; i < lane->rules.len; i++) {
        verdict v = {.kind = VERDICT_ALLOWED};
        if (lane->kinds.at[i] != RULE_DEPLOYMENT_WINDOW)
            continue;
        window_verdict(c, lane->rules.at[i], &v);
        if (v.kind != VERDICT_ALLOWED)
            return lane->rules.at[i];
    }
    return NO;
}

uint32_t window_shut(releases *r, uint32_t t, uint32_t version_, uint32_t group)
{
    uint32_t found = NO;
    if (group == NO) {
        chain_context c = {
            .r = r, .target = t, .lane = r->targets.at[t].lane, .version = version_, .group = NO};
        return shut_for(&c);
    }
    for (size_t i = 0; i < r->groups.at[group].members.len && found == NO; i++) {
        const rel_member *m = &r->groups.at[group].members.at[i];
        if (member_over(m))
            continue;
        chain_context c = {.r = r,
                           .target = m->target,
                           .lane = r->targets.at[m->target].lane,
                           .version = m->version,
                           .group = group,
                           .starting = true};
        found = shut_for(&c);
    }
    return found;
}

/* ---- for plans ---- */

static void open_span(int64_t from_ms, int64_t to_ms, window_visitor *visit, void *context)
{
    if (from_ms < to_ms)
        visit(context, from_ms, to_ms);
}

bool window_open_spans(const deployment_window *doc, int64_t from_ms, int64_t to_ms,
                       window_visitor *visit, void *context)
{
    struct window_cache *w = cache_new(doc);
    bool good = w != NULL;
    int64_t at_ms = from_ms;
    while (good && w->good && at_ms < to_ms) {
        if ((at_ms < w->from_ms || at_ms >= w->to_ms) && !(good = fill(w, at_ms)))
            break;
        size_t i = span_before(w, at_ms);
        bool inside = i < w->spans.len && at_ms < w->spans.at[i].end_ms;
        size_t next = i < w->spans.len ? i + 1 : 0;
        int64_t change_ms = inside                ? w->spans.at[i].end_ms
                            : next < w->spans.len ? w->spans.at[next].start_ms
                                                  : w->to_ms;
        int64_t until_ms = change_ms < to_ms ? change_ms : to_ms;
        if (inside == doc->allow_window)
            open_span(at_ms, until_ms, visit, context);
        at_ms = until_ms;
    }
    window_free(w);
    return good;
}

bool releases_windows(const void *self, int64_t from_ms, int64_t to_ms, window_visitor *visit,
                      void *context)
{
    const releases *r = self;
    for (size_t i = 0; i < r->rules.len; i++) {
        const rel_rule *the = &r->rules.at[i];
        if (the->asked && the->doc && the->kind == RULE_DEPLOYMENT_WINDOW &&
            !window_open_spans(the->doc->deployment_window, from_ms, to_ms, visit, context))
            return false;
    }
    return true;
}
