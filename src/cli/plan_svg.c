/* SPDX-License-Identifier: Apache-2.0 */
/* plan_svg.c - a plan as a picture for a change request.
 *
 * One time axis. On top the blast radius against the limits; below it one lane a group: batches as
 * bars, their height against the ceiling, or how many are at work. Deployment windows are shaded.
 * No script, no font and no image from outside. */
#include "base/limits.h"
#include "base/mem.h"
#include "base/moment.h"
#include "cli/plan_load.h"
#include "cli/plan_show.h"
#include "engine/window.h"

#define WIDTH 1200
#define LEFT 250
#define RIGHT 40
#define CHART_WIDTH (WIDTH - LEFT - RIGHT)
#define HEAD 160
#define CURVE_HEIGHT 200
#define LANE_HEIGHT 46
#define LANE_GAP 12
#define ROW_HEIGHT 20
#define AXIS_HEIGHT 58
#define LEGEND_LINE 24
#define LEGEND_MAX 24
#define LANES_MAX 24
#define ROWS_MAX 24
#define TRACKS_MAX 5
#define DATE_CHARACTERS 10 /* 2026-04-01 */
#define NAME_CHARACTERS 26
#define TITLE_CHARACTERS 70
#define SUB_CHARACTERS 130

#define INK "#1c2733"
#define FAINT "#5b6875"
#define GRID "#e3e8ee"
#define GOOD "#2f6fb5"
#define BAD "#cf4a3b"
#define OPEN_BAR "#9aa7b4"
#define CURVE "#2f6fb5"
#define CURVE_FILL "#cfe0f2"
#define LIMIT "#b3541e"
#define WINDOW "#eaf5e9"

/* Of deployments. None is the colour of batches and partitions. */
static const char *const palette[] = {"#d98c21", "#4b9560", "#8a5aa8", "#c2537e",
                                      "#3c98a5", "#8b7a3e", "#5f6f9f", "#a34e2c",
                                      "#7fae3a", "#b08cc9", "#2c5f6b", "#d1a95b"};
#define PALETTE_LEN (sizeof palette / sizeof palette[0])

typedef struct canvas {
    const plan *plan;
    buf *out;
    int64_t span_ms; /* of the axis */
    int y;
    int bottom;   /* of the charts, for grid lines and windows */
    bool windows; /* one was open */
} canvas;

/* ---- small things ---- */

static void escaped(buf *out, str text)
{
    for (size_t i = 0; i < text.len; i++)
        switch (text.ptr[i]) {
        case '<': buf_addz(out, "&lt;"); break;
        case '>': buf_addz(out, "&gt;"); break;
        case '&': buf_addz(out, "&amp;"); break;
        case '"': buf_addz(out, "&quot;"); break;
        default: buf_addc(out, text.ptr[i]);
        }
}

/* Cut to so many characters, with an ellipsis. */
static void escaped_cut(buf *out, str text, size_t most)
{
    size_t at = 0, count = 0;
    while (at < text.len && count < most) {
        str_utf8_next(text, &at);
        count++;
    }
    escaped(out, str_part(text, 0, at));
    if (at < text.len)
        buf_addz(out, "\u2026");
}

/* x of a time, in tenths of a pixel so that no floating point is needed. */
static int64_t x_of(const canvas *c, int64_t ms)
{
    if (ms > c->span_ms)
        ms = c->span_ms;
    if (ms < 0) /* it runs since before */
        ms = 0;
    return LEFT * 10 + ms * CHART_WIDTH * 10 / c->span_ms;
}

static void tenths(buf *out, int64_t value)
{
    buf_addf(out, "%lld.%lld", (long long)(value / 10), (long long)(value % 10));
}

typedef struct box {
    int64_t x, y, width, height; /* tenths of a pixel */
} box;

static void rect(buf *out, box b, const char *fill, const char *more)
{
    buf_addz(out, "<rect x=\"");
    tenths(out, b.x);
    buf_addz(out, "\" y=\"");
    tenths(out, b.y);
    buf_addz(out, "\" width=\"");
    tenths(out, b.width);
    buf_addz(out, "\" height=\"");
    tenths(out, b.height);
    buf_addf(out, "\" fill=\"%s\"%s/>\n", fill, more);
}

static void label_at(buf *out, int x, int y, const char *class, const char *text)
{
    buf_addf(out, "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, text);
}

/* ---- head ---- */

static void head(canvas *c)
{
    const plan *p = c->plan;
    char span[PLAN_SPAN_BYTES], at[MOMENT_TEXT_BYTES];
    size_t len = moment_format((moment){sim_start_ms(p->sim) / 1000, 0}, at);
    buf_addf(c->out, "<text x=\"32\" y=\"48\" class=\"title\">Rollout plan: ");
    for (size_t i = 0; i < p->changes.len && i < 3; i++) {
        buf_addz(c->out, i > 0 ? ", " : "");
        escaped_cut(c->out, p->changes.at[i].name,
                    p->changes.len == 1 ? TITLE_CHARACTERS : NAME_CHARACTERS);
    }
    if (p->changes.len > 3)
        buf_addf(c->out, " and %zu more", p->changes.len - 3);
    buf_addz(c->out, "</text>\n");
    const char *colour = p->outcome == SIM_COMPLETE ? "#2e7d46" : BAD;
    buf_addf(
        c->out,
        "<text x=\"32\" y=\"78\" class=\"sub\"><tspan fill=\"%s\" font-weight=\"600\">%s</tspan> "
        "after %s, from %.*s",
        colour, sim_outcome_text(p->outcome), plan_span(p->seconds, span), (int)len, at);
    if (p->reason.len > 0) {
        buf_addz(c->out, " \u2014 ");
        escaped_cut(c->out, p->reason, 100);
    }
    buf_addz(c->out, "</text>\n");
    int64_t peak = sim_ledger(p->sim)->peak_in_flight, starts = sim_ledger(p->sim)->starts;
    char share[PLAN_SHARE_BYTES];
    buf_addf(c->out,
             "<text x=\"32\" y=\"104\" class=\"sub\">%lld target%s: %lld done, %lld failed, %lld "
             "excluded \u00b7 at most %lld in flight (%s) \u00b7 %lld start%s \u00b7 %lld drain%s",
             (long long)p->counts.targets, plan_s(p->counts.targets), (long long)p->counts.done,
             (long long)p->counts.failed, (long long)p->counts.excluded, (long long)peak,
             plan_share(p, share), (long long)starts, plan_s(starts), (long long)p->drains,
             plan_s(p->drains));
    if (p->drains_saved > 0)
        buf_addf(c->out, " instead of %lld", (long long)(p->drains + p->drains_saved));
    buf_addz(c->out, "</text>\n");
}

/* Slots have no lane of their own: who may hold them, and how many did. */
static void slots(canvas *c)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < c->plan->changes.len; i++)
        for (size_t g = 0; g < c->plan->changes.at[i].groups.len; g++) {
            const plan_group *group = &c->plan->changes.at[i].groups.at[g];
            if (group->view.kind == GROUP_CONCURRENCY && !group->again)
                buf_addf(&text, "%s%.*s: %lld of %lld, at most %lld taken",
                         text.len > 0 ? " \u00b7 " : "slots of ", STR_ARG(group->view.name),
                         (long long)group->view.limit, (long long)group->view.matched,
                         (long long)group->view.peak);
        }
    if (text.len > 0) {
        buf_addz(c->out, "<text x=\"32\" y=\"128\" class=\"sub\">");
        escaped_cut(c->out, buf_str(&text), SUB_CHARACTERS);
        buf_addz(c->out, "</text>\n");
    }
    buf_done(&text);
}

/* ---- axis, grid, windows ---- */

/* A step that gives between five and twelve marks. */
static int64_t axis_step(int64_t span_s)
{
    static const int64_t steps[] = {1,     2,     5,      10,     15,     30,     60,    120,
                                    300,   600,   900,    1800,   3600,   7200,   10800, 21600,
                                    43200, 86400, 172800, 345600, 604800, 1209600};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (span_s / steps[i] <= 10)
            return steps[i];
    return span_s / 10;
}

/* "18:00", or with its date where the day is another than at the mark before. */
static void clock_mark(canvas *c, int64_t at_s, int64_t step_s)
{
    char now[MOMENT_TEXT_BYTES], before[MOMENT_TEXT_BYTES];
    int64_t start_s = sim_start_ms(c->plan->sim) / 1000;
    moment_format((moment){start_s + at_s, 0}, now);
    moment_format((moment){start_s + at_s - step_s, 0}, before);
    bool dated = at_s == 0 || memcmp(now, before, DATE_CHARACTERS) != 0;
    bool seconds = step_s % 60 != 0 || start_s % 60 != 0;
    buf_addz(c->out, "<text x=\"");
    tenths(c->out, x_of(c, at_s * 1000));
    buf_addf(c->out, "\" y=\"%d\" class=\"tick\" text-anchor=\"middle\">%.*s%s%.*s</text>\n",
             c->bottom + 36, dated ? DATE_CHARACTERS - 5 : 0, now + 5, dated ? " " : "",
             seconds ? 8 : 5, now + DATE_CHARACTERS + 1);
}

static void axis(canvas *c)
{
    int64_t step_s = axis_step(c->span_ms / 1000);
    label_at(c->out, 32, c->bottom + 36, "tick", "UTC");
    for (int64_t at = 0; at * 1000 <= c->span_ms; at += step_s) {
        char span[PLAN_SPAN_BYTES];
        int64_t x = x_of(c, at * 1000);
        buf_addz(c->out, "<line x1=\"");
        tenths(c->out, x);
        buf_addz(c->out, "\" x2=\"");
        tenths(c->out, x);
        buf_addf(c->out, "\" y1=\"%d\" y2=\"%d\" stroke=\"%s\"/>\n", HEAD, c->bottom, GRID);
        buf_addz(c->out, "<text x=\"");
        tenths(c->out, x);
        buf_addf(c->out, "\" y=\"%d\" class=\"tick\" text-anchor=\"middle\">%s</text>\n",
                 c->bottom + 20, plan_span(at, span));
        clock_mark(c, at, step_s);
    }
    buf_addf(c->out, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#9aa7b4\"/>\n", LEFT,
             WIDTH - RIGHT, c->bottom, c->bottom);
}

static void window_band(void *context, int64_t from_ms, int64_t to_ms)
{
    canvas *c = context;
    int64_t start_ms = sim_start_ms(c->plan->sim);
    int64_t x = x_of(c, from_ms - start_ms);
    int64_t width = x_of(c, to_ms - start_ms) - x;
    c->windows = true;
    if (width > 0)
        rect(c->out, (box){x, HEAD * 10, width, (c->bottom - HEAD) * 10}, WINDOW, "");
}

/* ---- blast radius ---- */

/* What may be disturbed at once: the ceilings together, or the smallest number of slots. */
static int64_t limit_of(const plan *p)
{
    int64_t ceilings = 0, slots = -1;
    for (size_t i = 0; i < p->changes.len; i++)
        for (size_t g = 0; g < p->changes.at[i].groups.len; g++) {
            const group_view *v = &p->changes.at[i].groups.at[g].view;
            if (v->kind == GROUP_COMPARTMENT && v->matched > 0)
                ceilings += v->limit < v->matched ? v->limit : v->matched;
            if (v->kind == GROUP_CONCURRENCY && (slots < 0 || v->limit < slots))
                slots = v->limit;
        }
    return slots >= 0 ? slots : ceilings;
}

static void curve_path(canvas *c, int64_t top)
{
    const ledger *l = sim_ledger(c->plan->sim);
    int64_t base = (HEAD + CURVE_HEIGHT) * 10, last_x = LEFT * 10, last_y = base;
    size_t every = l->in_flight.len / 4000 + 1; /* a picture needs no more points than pixels */
    buf_addf(
        c->out,
        "<path fill=\"%s\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\" d=\"M%d %d",
        CURVE_FILL, CURVE, LEFT, HEAD + CURVE_HEIGHT);
    for (size_t i = 0; i < l->in_flight.len; i += every) {
        int64_t count = l->in_flight.at[i].count;
        for (size_t k = i + 1; k < i + every && k < l->in_flight.len; k++)
            count = l->in_flight.at[k].count > count ? l->in_flight.at[k].count : count;
        last_x = x_of(c, l->in_flight.at[i].ms);
        last_y = base - count * (CURVE_HEIGHT - 20) * 10 / top;
        buf_addz(c->out, " H");
        tenths(c->out, last_x);
        buf_addz(c->out, " V");
        tenths(c->out, last_y);
    }
    buf_addz(c->out, " H");
    tenths(c->out, x_of(c, c->plan->seconds * 1000));
    buf_addf(c->out, " V%d Z\"/>\n", HEAD + CURVE_HEIGHT);
    (void)last_x;
    (void)last_y;
}

static void horizontal(canvas *c, int64_t value, int64_t top, const char *colour, const char *more)
{
    int64_t y = (HEAD + CURVE_HEIGHT) * 10 - value * (CURVE_HEIGHT - 20) * 10 / top;
    buf_addf(c->out, "<line x1=\"%d\" x2=\"%d\" y1=\"", LEFT, WIDTH - RIGHT);
    tenths(c->out, y);
    buf_addz(c->out, "\" y2=\"");
    tenths(c->out, y);
    buf_addf(c->out, "\" stroke=\"%s\"%s/>\n<text x=\"%d\" y=\"", colour, more, LEFT - 10);
    tenths(c->out, y + 45);
    buf_addf(c->out, "\" class=\"tick\" text-anchor=\"end\" style=\"fill:%s\">%lld</text>\n",
             colour, (long long)value);
}

static void curve(canvas *c)
{
    int64_t peak = sim_ledger(c->plan->sim)->peak_in_flight;
    int64_t limit = limit_of(c->plan);
    int64_t top = peak > 0 ? peak : 1;
    bool drawn = limit > 0 && limit <= 4 * top; /* one far above would flatten the curve */
    if (drawn && limit > top)
        top = limit;
    label_at(c->out, 32, HEAD + 20, "name", "In flight");
    label_at(c->out, 32, HEAD + 38, "tick", "targets disturbed at once");
    curve_path(c, top);
    horizontal(c, 0, top, FAINT, " stroke-width=\"0\"");
    if (drawn)
        horizontal(c, limit, top, LIMIT, " stroke-width=\"2\" stroke-dasharray=\"7 4\"");
    if (!drawn || peak * 8 < limit * 7)
        horizontal(c, peak, top, FAINT, " stroke-dasharray=\"2 4\"");
    if (drawn) {
        buf_addf(c->out,
                 "<text x=\"%d\" y=\"%lld\" class=\"tick\" text-anchor=\"end\" "
                 "style=\"fill:%s\">limit</text>\n",
                 WIDTH - RIGHT - 4,
                 (long long)(HEAD + CURVE_HEIGHT - limit * (CURVE_HEIGHT - 20) / top - 5), LIMIT);
    }
}

/* ---- lanes ---- */

static void lane_name(canvas *c, str name, const char *below)
{
    buf_addf(c->out, "<text x=\"32\" y=\"%d\" class=\"name\">", c->y + 18);
    escaped_cut(c->out, name, 27);
    buf_addz(c->out, "</text>\n");
    label_at(c->out, 32, c->y + 34, "tick", below);
    buf_addf(c->out, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\"/>\n", LEFT,
             WIDTH - RIGHT, c->y + LANE_HEIGHT, c->y + LANE_HEIGHT, "#c6d0da");
}

static void batch_bar(canvas *c, const plan_group *g, const ledger_batch *b)
{
    int64_t end_ms = b->end_ms == LEDGER_OPEN ? c->span_ms : b->end_ms;
    int64_t x = x_of(c, b->start_ms), width = x_of(c, end_ms) - x - 10;
    int64_t limit = g->view.limit > 0 ? g->view.limit : 1;
    if (limit > g->view.matched && g->view.matched > 0)
        limit = g->view.matched;
    int64_t height = b->size * LANE_HEIGHT * 10 / (b->size > limit ? b->size : limit);
    if (height < 40)
        height = 40;
    if (width < 10)
        width = 10;
    const char *fill = b->end_ms == LEDGER_OPEN ? OPEN_BAR : b->failed ? BAD : GOOD;
    int64_t y = (c->y + LANE_HEIGHT) * 10 - height;
    rect(c->out, (box){x, y, width, height}, fill, " rx=\"2\"");
    if (width < 160)
        return;
    bool inside = height >= 160;
    buf_addz(c->out, "<text x=\"");
    tenths(c->out, x + width / 2);
    buf_addz(c->out, "\" y=\"");
    tenths(c->out, inside ? y + height / 2 + 40 : y - 30);
    buf_addf(c->out, "\" class=\"bar\" text-anchor=\"middle\" style=\"fill:%s\">%lld",
             inside ? "#fff" : INK, (long long)b->size);
    if (b->erroring + b->blocked > 0)
        buf_addf(c->out, " (%lld)", (long long)(b->erroring + b->blocked));
    buf_addz(c->out, "</text>\n");
}

/* "gpu-init \u00b7 production" where there are several changes. */
static str group_name(const canvas *c, const plan_change *change, const plan_group *g)
{
    if (c->plan->changes.len == 1 && !g->shared)
        return g->view.name;
    str of = g->shared ? g->view.change : change->name;
    str name = arena_printf(c->plan->arena, "%.*s \u00b7 %.*s", STR_ARG(of), STR_ARG(g->view.name));
    return name.ptr ? name : g->view.name;
}

static void batch_lane(canvas *c, const plan_change *change, const plan_group *g)
{
    char below[128];
    snprintf(below, sizeof below, "%lld target%s, limit %lld, %.*s", (long long)g->view.matched,
             plan_s(g->view.matched), (long long)g->view.limit, STR_ARG(g->view.strategy));
    lane_name(c, group_name(c, change, g), below);
    for (size_t i = 0; g->batches && i < g->batches->batches.len; i++)
        batch_bar(c, g, &g->batches->batches.at[i]);
    if (g->stopped)
        label_at(c->out, LEFT + 6, c->y + 14, "stop", "stopped");
    c->y += LANE_HEIGHT + LANE_GAP;
}

static void load_job(canvas *c, plan_load *l, int64_t start_ms, int64_t end_ms)
{
    if (!plan_load_add(l, start_ms, end_ms == LEDGER_OPEN ? c->span_ms : end_ms))
        c->out->failed = true;
}

static void load_lane(canvas *c, str name, const char *below, const plan_load *l,
                      const char *colour)
{
    lane_name(c, name, below);
    if (l->most > 0) {
        int64_t base = (c->y + LANE_HEIGHT) * 10;
        buf_addf(c->out, "<path fill=\"%s\" fill-opacity=\"0.75\" d=\"M%d %d", colour, LEFT,
                 c->y + LANE_HEIGHT);
        for (int64_t i = 0; i < PLAN_LOAD_STEPS; i++) {
            if (i > 0 && l->at[i] == l->at[i - 1])
                continue;
            buf_addz(c->out, " H");
            tenths(c->out, LEFT * 10 + i * CHART_WIDTH * 10 / PLAN_LOAD_STEPS);
            buf_addz(c->out, " V");
            tenths(c->out, base - l->at[i] * LANE_HEIGHT * 10 / l->most);
        }
        buf_addf(c->out, " H%d V%d Z\"/>\n", WIDTH - RIGHT, c->y + LANE_HEIGHT);
    }
    c->y += LANE_HEIGHT + LANE_GAP;
}

/* The resources of a partition, of one change or of all that share it. */
typedef struct residents {
    const herd *herd;
    str change; /* ptr NULL: all */
    str partition;
    bool *found; /* by target */
} residents;

static bool find_resident(void *context, const placement_view *v)
{
    residents *r = context;
    if (v->kind != TARGET_RESOURCE || !str_eq(v->group, r->partition) ||
        (r->change.ptr && !str_eq(v->change, r->change)))
        return true;
    uint32_t target = herd_find(r->herd, TARGET_RESOURCE, v->target);
    if (target != HERD_NONE)
        r->found[target] = true;
    return true;
}

static void partition_jobs(canvas *c, const plan_change *change, const plan_group *g,
                           plan_load *sum)
{
    const ledger *l = sim_ledger(c->plan->sim);
    const herd *all = sim_herd(c->plan->sim);
    residents in = {.herd = all,
                    .change = g->shared ? (str){NULL, 0} : change->name,
                    .partition = g->view.name,
                    .found = mem_zalloc(all->targets.len + 1)};
    if (!in.found) {
        c->out->failed = true;
        return;
    }
    if (!engine_placements(sim_engine(c->plan->sim), find_resident, &in))
        c->out->failed = true;
    for (size_t i = 0; i < l->jobs.len; i++) {
        const ledger_job *j = &l->jobs.at[i];
        if (in.found[j->resource] &&
            (g->shared || str_eq(names_text(l->names, j->deployment), change->name)))
            load_job(c, sum, j->start_ms, j->end_ms);
    }
    mem_free(in.found);
}

static void partition_lane(canvas *c, const plan_change *change, const plan_group *g)
{
    const ledger *l = sim_ledger(c->plan->sim);
    plan_load sum = {0};
    char below[128];
    for (size_t i = 0; i < l->spans.len; i++) {
        const ledger_span *s = &l->spans.at[i];
        if (str_eq(names_text(l->names, s->change), change->name) &&
            str_eq(names_text(l->names, s->group), g->view.name))
            load_job(c, &sum, s->start_ms, s->end_ms);
    }
    if (strcmp(change->kind, "Deployment") == 0)
        partition_jobs(c, change, g, &sum);
    plan_load_measure(&sum, c->span_ms);
    snprintf(below, sizeof below, "%lld target%s, limit %lld%s", (long long)g->view.matched,
             plan_s(g->view.matched), (long long)g->view.limit, g->view.ready ? "" : ", not ready");
    load_lane(c, group_name(c, change, g), below, &sum, g->view.ready ? GOOD : BAD);
}

static void deployment_lane(canvas *c, const plan_change *change, const char *colour)
{
    const ledger *l = sim_ledger(c->plan->sim);
    plan_load sum = {0};
    char below[128];
    for (size_t i = 0; i < l->jobs.len; i++)
        if (str_eq(names_text(l->names, l->jobs.at[i].deployment), change->name)) {
            load_job(c, &sum, l->jobs.at[i].start_ms, l->jobs.at[i].end_ms);
            sum.failed += l->jobs.at[i].failed;
        }
    plan_load_measure(&sum, c->span_ms);
    snprintf(below, sizeof below, "%lld jobs, %lld at once%s", (long long)sum.all,
             (long long)sum.most, sum.failed > 0 ? ", some failed" : "");
    load_lane(c, change->name, below, &sum, colour);
}

/* ---- few resources: one row each ---- */

static size_t job_resources(const plan *p, uint32_t *rows, size_t most)
{
    const ledger *l = sim_ledger(p->sim);
    size_t count = 0;
    for (size_t i = 0; i < l->jobs.len && count < most; i++) {
        size_t k = 0;
        while (k < count && rows[k] != l->jobs.at[i].resource)
            k++;
        if (k == count)
            rows[count++] = l->jobs.at[i].resource;
    }
    return count;
}

static size_t deployment_number(const plan *p, str name)
{
    size_t number = 0;
    for (size_t i = 0; i < p->changes.len; i++) {
        if (str_eq(p->changes.at[i].name, name))
            return number;
        number += strcmp(p->changes.at[i].kind, "Deployment") == 0;
    }
    return 0;
}

/* Jobs of one resource that run side by side share the height of its row. */
typedef struct stack {
    int64_t free_ms[TRACKS_MAX]; /* when a track is free again */
    size_t tracks;
} stack;

static int64_t job_end(const canvas *c, const ledger_job *j)
{
    return j->end_ms == LEDGER_OPEN ? c->span_ms : j->end_ms;
}

static size_t stack_put(const canvas *c, stack *s, const ledger_job *j)
{
    size_t at = 0;
    while (at < s->tracks && s->free_ms[at] > j->start_ms)
        at++;
    if (at == TRACKS_MAX)
        at = TRACKS_MAX - 1;
    if (at == s->tracks)
        s->tracks++;
    s->free_ms[at] = job_end(c, j);
    return at;
}

static void job_bar(canvas *c, const ledger_job *j, size_t track, size_t tracks)
{
    const ledger *l = sim_ledger(c->plan->sim);
    int64_t x = x_of(c, j->start_ms), width = x_of(c, job_end(c, j)) - x - 8;
    int64_t height = (ROW_HEIGHT - 6) * 10 / (int64_t)tracks;
    size_t number = deployment_number(c->plan, names_text(l->names, j->deployment));
    const char *more =
        j->failed ? " stroke=\"" BAD "\" stroke-width=\"2.5\" rx=\"2\"" : " rx=\"2\"";
    box b = {x, (c->y + 3) * 10 + height * (int64_t)track, width < 15 ? 15 : width,
             tracks > 1 ? height - 5 : height};
    rect(c->out, b, palette[number % PALETTE_LEN], more);
}

/* The jobs from one moment at which the resource was at rest to the next. Returns where the next
 * ones begin. */
static size_t job_stack(canvas *c, uint32_t resource_, size_t from)
{
    const ledger *l = sim_ledger(c->plan->sim);
    stack s = {0};
    size_t to = from;
    int64_t busy_ms = INT64_MIN;
    for (; to < l->jobs.len; to++) {
        const ledger_job *j = &l->jobs.at[to];
        if (j->resource != resource_)
            continue;
        if (busy_ms != INT64_MIN && j->start_ms >= busy_ms)
            break;
        busy_ms = job_end(c, j) > busy_ms ? job_end(c, j) : busy_ms;
        stack_put(c, &s, j);
    }
    size_t tracks = s.tracks;
    s.tracks = 0;
    for (size_t i = from; i < to; i++)
        if (l->jobs.at[i].resource == resource_)
            job_bar(c, &l->jobs.at[i], stack_put(c, &s, &l->jobs.at[i]), tracks);
    return to;
}

static void rows(canvas *c, const uint32_t *resources, size_t count)
{
    const ledger *l = sim_ledger(c->plan->sim);
    for (size_t r = 0; r < count; r++) {
        buf_addf(c->out, "<text x=\"32\" y=\"%d\" class=\"row\">", c->y + 14);
        escaped_cut(c->out, sim_herd(c->plan->sim)->targets.at[resources[r]].name, 24);
        buf_addz(c->out, "</text>\n");
        for (size_t i = 0; i < l->jobs.len;)
            i = job_stack(c, resources[r], i);
        c->y += ROW_HEIGHT;
    }
    if (count > 0)
        c->y += LANE_GAP;
}

/* ---- all of it ---- */

typedef struct shape_of_picture {
    uint32_t resources[ROWS_MAX + 1];
    size_t rows;
    size_t lanes, lanes_left_out;
} layout;

static bool has_lane(const plan_group *g)
{
    return g->view.kind != GROUP_CONCURRENCY && g->view.matched > 0 && !g->again;
}

static layout measure(const plan *p)
{
    layout l = {0};
    size_t found = job_resources(p, l.resources, ROWS_MAX + 1);
    l.rows = found <= ROWS_MAX ? found : 0;
    for (size_t i = 0; i < p->changes.len; i++) {
        const plan_change *c = &p->changes.at[i];
        l.lanes += strcmp(c->kind, "Deployment") == 0 && l.rows == 0;
        for (size_t g = 0; g < c->groups.len; g++)
            l.lanes += has_lane(&c->groups.at[g]);
    }
    if (l.lanes > LANES_MAX) {
        l.lanes_left_out = l.lanes - LANES_MAX;
        l.lanes = LANES_MAX;
    }
    return l;
}

static void lanes(canvas *c, const layout *l)
{
    const plan *p = c->plan;
    size_t drawn = 0;
    rows(c, l->resources, l->rows);
    for (size_t i = 0; i < p->changes.len; i++) {
        const plan_change *change = &p->changes.at[i];
        if (strcmp(change->kind, "Deployment") == 0) {
            size_t number = deployment_number(p, change->name);
            if (l->rows == 0 && drawn++ < l->lanes)
                deployment_lane(c, change, palette[number % PALETTE_LEN]);
        }
        for (size_t g = 0; g < change->groups.len; g++) {
            const plan_group *group = &change->groups.at[g];
            if (!has_lane(group) || drawn++ >= l->lanes)
                continue;
            if (group->view.kind == GROUP_PARTITION)
                partition_lane(c, change, group);
            else
                batch_lane(c, change, group);
        }
    }
}

/* Where the next entry of the legend goes: as many lines as it takes. */
typedef struct pen {
    int x, y;
} pen;

static void legend_entry(canvas *c, pen *at, const char *fill, str text)
{
    size_t len = text.len < NAME_CHARACTERS ? text.len : NAME_CHARACTERS;
    int width = 44 + (int)len * 7;
    if (at->x + width > WIDTH - RIGHT && at->x > LEFT) {
        at->x = LEFT;
        at->y += LEGEND_LINE;
    }
    buf_addf(c->out, "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"14\" rx=\"2\" fill=\"%s\"/>\n",
             at->x, at->y - 12, fill);
    buf_addf(c->out, "<text x=\"%d\" y=\"%d\" class=\"tick\">", at->x + 20, at->y);
    escaped_cut(c->out, text, NAME_CHARACTERS);
    buf_addz(c->out, "</text>\n");
    at->x += width;
}

static void legend_deployments(canvas *c, pen *at)
{
    const plan *p = c->plan;
    size_t named = 0;
    for (size_t i = 0; i < p->changes.len; i++) {
        str name = p->changes.at[i].name;
        if (strcmp(p->changes.at[i].kind, "Deployment") == 0 && named++ < LEGEND_MAX)
            legend_entry(c, at, palette[deployment_number(p, name) % PALETTE_LEN], name);
    }
    if (named > LEGEND_MAX) {
        str more = arena_printf(p->arena, "and %zu more", named - LEGEND_MAX);
        legend_entry(c, at, "#fff", more.ptr ? more : STR("and more"));
    }
}

/* Returns where it ends. */
static int legend(canvas *c, const layout *l)
{
    const plan *p = c->plan;
    pen at = {LEFT, c->bottom + AXIS_HEIGHT + 16};
    bool batches = false;
    label_at(c->out, 32, at.y, "tick", "Drover " DROVER_VERSION);
    for (size_t i = 0; i < p->changes.len; i++)
        for (size_t g = 0; g < p->changes.at[i].groups.len; g++)
            batches = batches || has_lane(&p->changes.at[i].groups.at[g]);
    legend_deployments(c, &at);
    if (batches) {
        legend_entry(c, &at, GOOD, STR("batch or partition"));
        legend_entry(c, &at, BAD, STR("failed or not ready"));
        legend_entry(c, &at, OPEN_BAR, STR("not ended"));
    }
    if (c->windows)
        legend_entry(c, &at, "#bfe0bb", STR("deployment window"));
    if (l->lanes_left_out > 0) {
        at.y += LEGEND_LINE;
        buf_addf(c->out,
                 "<text x=\"%d\" y=\"%d\" class=\"tick\">%zu more groups are not drawn</text>\n",
                 LEFT, at.y, l->lanes_left_out);
    }
    return at.y;
}

static void picture(canvas *c, const layout *l)
{
    int64_t start_ms = sim_start_ms(c->plan->sim);
    if (!engine_windows(sim_engine(c->plan->sim), start_ms, start_ms + c->span_ms, window_band, c))
        c->out->failed = true;
    head(c);
    slots(c);
    axis(c);
    curve(c);
    lanes(c, l);
    c->y = legend(c, l);
}

void plan_svg(const plan *p, buf *out)
{
    layout l = measure(p);
    buf body = BUF(LIMIT_TEXT_BYTES);
    canvas c = {.plan = p, .out = &body, .y = HEAD + CURVE_HEIGHT + 26};
    c.span_ms = p->seconds > 0 ? p->seconds * 1000 : 1000;
    int charts = CURVE_HEIGHT + 26 + (int)l.lanes * (LANE_HEIGHT + LANE_GAP) +
                 (l.rows > 0 ? (int)l.rows * ROW_HEIGHT + LANE_GAP : 0);
    c.bottom = HEAD + charts;
    picture(&c, &l);
    int height = c.y + LEGEND_LINE;
    buf_addf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
        "%d\" role=\"img\">\n"
        "<style>text{font-family:Inter,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;"
        "fill:" INK "}.title{font-size:24px;font-weight:700}.sub{font-size:15px}"
        ".name{font-size:14px;font-weight:600}.tick{font-size:12px;fill:" FAINT "}"
        "line{shape-rendering:crispEdges}.row{font-size:13px}.bar{font-size:12px;font-weight:600}"
        ".stop{font-size:12px;font-weight:700;fill:" BAD "}</style>\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        WIDTH, height, WIDTH, height, WIDTH, height);
    buf_add(out, buf_str(&body));
    buf_addz(out, "</svg>\n");
    out->failed = out->failed || body.failed;
    buf_done(&body);
}
