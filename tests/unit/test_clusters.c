/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles on clusters through engine_step: the table of semantics.md part B, the scenarios of the document on
 * rollout strategies, and what people, agents and restarts do in between. */
#include "support/herd.h"

/* ---- semantics.md part B, row by row ---- */

typedef struct row {
    const char *id;
    size_t clusters;
    size_t fresh; /* the first so many are new, the others run the old version */
    const char *unavailable, *unavailable_partitions, *size;
    size_t manual[5]; /* sizes of manual partitions, in the order of the clusters */
    const char *own;  /* maxUnavailable of the first of them */
    int64_t threshold, max_new;
    size_t offline, broken, paused; /* the first so many */
    bool prompt;
    const char *releases;
    size_t up_to_date;
    int64_t visited, partitions, not_ready;
} row;

static const row rows[] = {
#define NEW(n) .clusters = n, .fresh = n
#define OLD(n) .clusters = n
#define PROMPT .prompt = true
#define END(n, v, p, r) .up_to_date = n, .visited = v, .partitions = p, .not_ready = r
#define MU .unavailable
#define MUP .unavailable_partitions
#define STORM .manual = {40, 40, 40, 40, 40}, MU = "10%", MUP = "#0"
    {"P01", NEW(50), MU = "10%", .releases = "C50; 0", END(0, 1, 1, 1)},
    {"P02", NEW(100), MU = "10%", .releases = "C50; 0", END(0, 1, 1, 1)},
    {"P03", NEW(100), MU = "10%", PROMPT, .releases = "C50 x2; 0", END(100, 1, 1, 0)},
    {"P04", OLD(100), MU = "10%", .releases = "U10; 0", END(0, 1, 1, 1)},
    {"P06", OLD(100), MU = "#0", PROMPT, .releases = "U1 x100; 0", END(100, 1, 1, 0)},
    {"P07", NEW(200), .releases = "C50 x4; 0", END(0, 4, 4, 0)},
    {"P08", OLD(200), .releases = "U50 x4; 0", END(0, 4, 4, 0)},
    {"P09", NEW(200), MUP = "#1", .size = "10%", .releases = "C50 x4; 0", END(0, 10, 10, 0)},
    {"P10", NEW(200), MUP = "#1", .size = "10%", MU = "#0", .releases = "C40; 0", END(0, 2, 10, 2)},
    {"P12", OLD(200), MUP = "#1", .size = "10%", MU = "#0", PROMPT, .releases = "U1 x200; 0",
     END(200, 10, 10, 0)},
    {"P13", OLD(200), MU = "10%", .size = "10%", .releases = "U2; 0", END(0, 1, 10, 1)},
    {"P15", OLD(200), MU = "10%", .size = "10%", .offline = 2, PROMPT, .releases = "U2; 0",
     END(0, 1, 10, 1)},
    {"P17", NEW(240), .size = "#60", MU = "50%", .releases = "C50; 0", END(0, 1, 4, 1)},
    {"P19", NEW(200), .manual = {20, 180}, MU = "#0", MUP = "#0", PROMPT,
     .releases = "C20; C50 x3; C30; 0", END(200, 2, 2, 0)},
    {"P20", OLD(200), .manual = {20, 180}, MU = "#0", MUP = "#0", PROMPT, .releases = "U1 x200; 0",
     END(200, 2, 2, 0)},
    {"P23", OLD(230), MU = "10%", PROMPT,
     .releases = "U5 x11; U7; U5 x10; U7; U5 x10; U7; U5 x10; U3; U1; 0", END(230, 5, 5, 0)},
    {"P26", NEW(30), .max_new = 10, MU = "#0", .releases = "C10; 0", END(0, 1, 1, 1)},
    {"P27", NEW(30), .max_new = 10, MU = "#0", PROMPT, .releases = "C10 x3; 0", END(30, 1, 1, 0)},
    {"P28", NEW(200), STORM, PROMPT, .releases = "C40 x5; 0", END(200, 5, 5, 0)},
    {"P29", NEW(3), .threshold = 1, .size = "#1", MU = "#0", PROMPT, .releases = "C1 x3; 0",
     END(3, 3, 3, 0)},
    {"P30", NEW(6), .manual = {4}, PROMPT, .releases = "C4; 0", END(4, 1, 1, 0)},
    {"P31", OLD(20), MU = "#2", .broken = 2, PROMPT, .releases = "F2; 0", END(0, 1, 1, 1)},
    {"P33", OLD(200), .size = "#20", MU = "10%", MUP = "10%", .releases = "U4; 0",
     END(0, 2, 10, 2)},
    {"P36", NEW(25), MU = "#5", .releases = "C25; 0", END(0, 1, 1, 1)},
    {"P37", OLD(25), MU = "#5", PROMPT, .releases = "U5 x5; 0", END(25, 1, 1, 0)},
    {"P38", NEW(100), MU = "10%", .offline = 10, PROMPT, .releases = "C50; 0", END(40, 1, 1, 1)},
    {"P40", NEW(200), STORM, .offline = 4, PROMPT, .releases = "C40 x5; 0", END(196, 5, 5, 0)},
    {"P42", OLD(200), STORM, PROMPT,
     .releases = "U4 x9; U8; U4 x8; U8; U4 x8; U8; U4 x8; U8; U4 x9; 0", END(200, 5, 5, 0)},
    {"P43", OLD(100), MU = "10%", .manual = {50, 50}, .own = "50%", .releases = "U25; 0",
     END(0, 1, 2, 1)},
    {"P44", NEW(20), MU = "#0", .manual = {10, 10}, .paused = 1, PROMPT, .releases = "C9; C10; 0",
     END(19, 2, 2, 0)},
    {"P46", .clusters = 100, .fresh = 20, MU = "10%", .releases = "C20; 0", END(0, 1, 1, 1)},
    {"P48", .clusters = 100, .fresh = 20, MU = "10%", PROMPT, .releases = "C20; U10 x8; 0",
     END(100, 1, 1, 0)},
};

static const char *const partition_names[] = {"p0", "p1", "p2", "p3", "p4"};

static herd *herd_of_row(const row *r)
{
    herd *h = herd_new(r->clusters);
    rollout_strategy *s = &h->document.spec.rollout_strategy;
    s->max_unavailable = herd_amount(r->unavailable);
    s->max_unavailable_partitions = herd_amount(r->unavailable_partitions);
    s->auto_partition_size = herd_amount(r->size);
    s->auto_partition_threshold = r->threshold ? r->threshold : 200;
    s->max_new = r->max_new ? r->max_new : 50;
    size_t next = 0;
    for (size_t p = 0; p < COUNT_OF(r->manual) && r->manual[p]; p++) {
        char select[24];
        snprintf(select, sizeof select, "part=%s", partition_names[p]);
        herd_partition(h, partition_names[p], select, p == 0 ? r->own : NULL);
        for (size_t i = 0; i < r->manual[p]; i++)
            herd_label(h, next++, "part", partition_names[p]);
    }
    for (size_t i = 0; i < r->clusters; i++) {
        h->at[i].offline = i < r->offline;
        h->at[i].broken = i < r->broken;
        h->at[i].paused = i < r->paused;
        if (i >= r->fresh)
            herd_runs_old(h, i, !h->at[i].broken);
    }
    return h;
}

/* One pass in the notation of the table. */
static void describe_pass(const herd *h, buf *out)
{
    if (h->created + h->updated + h->fixed == 0)
        buf_addc(out, '0');
    if (h->created)
        buf_addf(out, "C%lld", (long long)h->created);
    if (h->updated)
        buf_addf(out, "U%lld", (long long)h->updated);
    if (h->fixed)
        buf_addf(out, "F%lld", (long long)h->fixed);
}

typedef struct notation {
    buf text;
    char last[64];
    size_t times;
} notation;

static void notation_flush(notation *n)
{
    if (n->times == 0)
        return;
    if (n->text.len > 0)
        buf_addz(&n->text, "; ");
    buf_addz(&n->text, n->last);
    if (n->times > 1)
        buf_addf(&n->text, " x%zu", n->times);
}

static void notation_add(notation *n, const herd *h)
{
    buf one = BUF(60);
    describe_pass(h, &one);
    if (n->times > 0 && str_eq(str_of(n->last), buf_str(&one))) {
        n->times++;
    } else {
        notation_flush(n);
        snprintf(n->last, sizeof n->last, "%.*s", STR_ARG(buf_str(&one)));
        n->times = 1;
    }
    buf_done(&one);
}

/* Passes until one releases nothing; agents that answer do so between two passes. A shell that tells what
 * it has written changes nothing. */
static void run_passes(herd *h, bool prompt, bool written, notation *n)
{
    for (size_t passes = 0;; passes++) {
        check_msg(passes < 2000, "no end of passes");
        size_t released = herd_step(h);
        herd_verify(h);
        notation_add(n, h);
        if (released == 0)
            return;
        for (size_t i = 0; i < h->count; i++) {
            if (!h->at[i].released)
                continue;
            if (written)
                herd_report(h, i);
            if (prompt && !h->at[i].offline)
                herd_answers(h, i);
        }
    }
}

static void test_semantics_b_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        const row *r = &rows[i / 2];
        herd *h = herd_of_row(r);
        notation n = {.text = BUF(10000)};
        herd_load(h);
        run_passes(h, r->prompt, i % 2 == 1, &n);
        notation_flush(&n);
        check_msg(str_eq(buf_str(&n.text), str_of(r->releases)), "%s: %.*s", r->id,
                  STR_ARG(buf_str(&n.text)));
        check_msg(herd_done(h) == r->up_to_date, "%s: %zu up to date", r->id, herd_done(h));
        check_msg(h->pass.visited == r->visited && h->pass.partitions == r->partitions &&
                      h->pass.not_ready == r->not_ready,
                  "%s: visits %lld/%lld, not ready %lld", r->id, (long long)h->pass.visited,
                  (long long)h->pass.partitions, (long long)h->pass.not_ready);
        check_msg(h->pass.size == 0, "%s", r->id);
        buf_done(&n.text);
        herd_free(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_semantics_b_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
