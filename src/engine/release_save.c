/* SPDX-License-Identifier: Apache-2.0 */
/* What must survive a restart and stands in no document: one line a record, "releases KEY JSON",
 * sorted. Everything is named by its names; numbers inside the engine differ from run to run.
 * release_restore.c reads it. */
#include <inttypes.h>

#include "base/mem.h"
#include "engine/chain.h"

typedef VEC(str) line_list;

typedef struct writer {
    const releases *r;
    arena *a;
    line_list lines;
    buf b; /* the record that is being written */
    bool failed;
} writer;

static void key(writer *w, const char *kind, str a, str b, str c)
{
    str parts[] = {a, b, c};
    buf_clear(&w->b);
    buf_addf(&w->b, "releases %s", kind);
    for (size_t i = 0; i < 3; i++)
        if (parts[i].ptr) {
            buf_addc(&w->b, ':');
            buf_add(&w->b, parts[i]);
        }
    buf_addc(&w->b, ' ');
}

static const str none = {NULL, 0};

static void finish(writer *w)
{
    buf_addc(&w->b, '\n');
    str line = arena_str(w->a, buf_str(&w->b));
    w->failed = w->failed || w->b.failed || !line.ptr || !vec_push(&w->lines, line);
}

static void text(writer *w, const char *name, str value)
{
    buf_addf(&w->b, ",\"%s\":", name);
    buf_add_json(&w->b, value);
}

static void number(writer *w, const char *name, int64_t value)
{
    buf_addf(&w->b, ",\"%s\":%" PRId64, name, value);
}

/* What is false or zero is left out. */
static void flag(writer *w, const char *name, bool value)
{
    if (value)
        number(w, name, 1);
}

static str tag(const releases *r, uint32_t v)
{
    return rel_text(r, r->versions.at[v].tag);
}

static void tag_of(writer *w, const char *name, uint32_t v)
{
    if (v != NO)
        text(w, name, tag(w->r, v));
}

/* ---- targets ---- */

static void write_history(writer *w, uint32_t t)
{
    const releases *r = w->r;
    const rel_cell *cell = &r->cells.at[r->targets.at[t].cell];
    const index_list *versions = &r->deployments.at[cell->deployment].versions;
    for (int pass = 0; pass < 2; pass++) {
        bool any = false;
        for (size_t k = 0; k < versions->len; k++) {
            const rel_tally *y = tally_find(cell, versions->at[k]);
            if (!y)
                continue;
            size_t count = pass ? y->failures.len : y->successes.len;
            for (size_t i = 0; i < count; i++) {
                rel_success s = pass ? y->failures.at[i] : y->successes.at[i];
                if (s.target != t)
                    continue;
                buf_addz(&w->b, any ? ",[" : pass ? ",\"failures\":[[" : ",\"successes\":[[");
                buf_add_json(&w->b, tag(r, y->version));
                buf_addf(&w->b, ",%" PRId64 "]", s.at_ms);
                any = true;
            }
        }
        if (any)
            buf_addc(&w->b, ']');
    }
}

static void write_refusals(writer *w, uint32_t t)
{
    const releases *r = w->r;
    const index_list *versions = &r->deployments.at[r->targets.at[t].deployment].versions;
    bool any = false;
    for (size_t i = 0; r->targets.at[t].refusals > 0 && i < versions->len; i++) {
        rel_refusal why;
        if (!target_refused(r, t, versions->at[i], &why))
            continue;
        buf_addz(&w->b, any ? ",[" : ",\"refused\":[[");
        buf_add_json(&w->b, tag(r, versions->at[i]));
        buf_addf(&w->b, ",%u]", (unsigned)why);
        any = true;
    }
    if (any)
        buf_addc(&w->b, ']');
}

static void write_target(writer *w, uint32_t t)
{
    const releases *r = w->r;
    const rel_target *x = &r->targets.at[t];
    key(w, "target", rel_text(r, r->deployments.at[x->deployment].name),
        rel_text(r, r->environments.at[x->environment].name),
        rel_text(r, r->resources.at[x->resource].name));
    buf_addz(&w->b, "{\"kind\":\"target\"");
    text(w, "deployment", rel_text(r, r->deployments.at[x->deployment].name));
    text(w, "environment", rel_text(r, r->environments.at[x->environment].name));
    text(w, "resource", rel_text(r, r->resources.at[x->resource].name));
    number(w, "id", x->id);
    tag_of(w, "current", x->current);
    tag_of(w, "previous", x->previous);
    number(w, "currentMs", x->current_ms);
    if (x->job != 0) {
        number(w, "job", x->job);
        tag_of(w, "jobVersion", x->job_version);
        number(w, "jobRole", x->job_role);
        flag(w, "jobOlder", x->job_epoch != r->epoch);
        if (x->job_group != NO)
            text(w, "jobGroup", rel_text(r, r->groups.at[x->job_group].name));
    }
    if (x->failed_version != NO) {
        tag_of(w, "failedVersion", x->failed_version);
        number(w, "attempts", x->attempts);
        number(w, "failedMs", x->failed_ms);
        number(w, "failedAs", x->failed_as);
        text(w, "failure", rel_text(r, x->failure));
        flag(w, "failedRollback", x->failed_rollback);
    }
    tag_of(w, "retried", x->retried);
    tag_of(w, "rollbackTo", x->rollback_to);
    write_refusals(w, t);
    write_history(w, t);
    buf_addc(&w->b, '}');
    finish(w);
}

/* ---- sites and groups ---- */

static void write_members(writer *w, const rel_group *g)
{
    const releases *r = w->r;
    buf_addz(&w->b, ",\"members\":[");
    for (size_t i = 0; i < g->members.len; i++) {
        const rel_member *m = &g->members.at[i];
        const rel_target *t = &r->targets.at[m->target];
        buf_addf(&w->b, "%s{\"role\":%d", i ? "," : "", (int)m->role);
        text(w, "deployment", rel_text(r, r->deployments.at[t->deployment].name));
        tag_of(w, "version", m->version);
        tag_of(w, "later", m->later);
        tag_of(w, "good", m->good);
        number(w, "state", m->state);
        number(w, "started", m->started);
        flag(w, "redeploy", m->redeploy);
        flag(w, "ran", m->ran);
        buf_addc(&w->b, '}');
    }
    buf_addc(&w->b, ']');
}

static void write_site_names(writer *w, const rel_site *s)
{
    const releases *r = w->r;
    text(w, "policy", rel_text(r, r->policies.at[r->rules.at[s->rule].policy].name));
    text(w, "rule", rel_text(r, r->rules.at[s->rule].id));
    text(w, "environment", rel_text(r, r->environments.at[s->environment].name));
    text(w, "resource", rel_text(r, r->resources.at[s->resource].name));
}

static void write_site(writer *w, const rel_site *s)
{
    const releases *r = w->r;
    key(w, "site", rel_text(r, r->rules.at[s->rule].id),
        rel_text(r, r->environments.at[s->environment].name),
        rel_text(r, r->resources.at[s->resource].name));
    buf_addz(&w->b, "{\"kind\":\"site\"");
    write_site_names(w, s);
    number(w, "groups", s->groups);
    number(w, "announced", s->announced);
    buf_addc(&w->b, '}');
    finish(w);
}

static void write_group(writer *w, const rel_group *g)
{
    key(w, "group", rel_text(w->r, g->name), none, none);
    buf_addz(&w->b, "{\"kind\":\"group\"");
    write_site_names(w, &w->r->sites.at[g->site]);
    number(w, "number", g->number);
    number(w, "state", g->state);
    number(w, "openedMs", g->opened_ms);
    number(w, "lockedMs", g->locked_ms);
    number(w, "turnMs", g->turn_ms);
    number(w, "starts", g->starts);
    flag(w, "tookOver", g->took_over);
    flag(w, "rollingBack", g->rolling_back);
    write_members(w, g);
    buf_addc(&w->b, '}');
    finish(w);
}

/* ---- positions, slots, resources ---- */

typedef struct placed {
    uint32_t position, index;
} placed;

static int compare_placed(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return (x->position > y->position) - (x->position < y->position);
}

/* Names of resources in the order of their positions. */
static void write_order(writer *w, const rel_order *o)
{
    const releases *r = w->r;
    placed *at = ARENA_ARRAY(w->a, o->positions.len + 1, placed);
    size_t n = 0;
    if (!at) {
        w->failed = true;
        return;
    }
    for (size_t i = 0; i < o->positions.cap; i++) {
        if (o->positions.at[i].value == NO)
            continue;
        uint32_t index = (uint32_t)o->positions.at[i].key;
        /* A resource that is gone keeps its number among the others, and nobody can find it again.
         */
        bool gone =
            o->version != NO ? r->targets.at[index].id == 0 : !r->resources.at[index].object;
        if (gone)
            continue;
        at[n++] = (placed){o->positions.at[i].value, index};
    }
    qsort(at, n, sizeof *at, compare_placed);
    number(w, "frozen", o->frozen);
    number(w, "next", o->next);
    buf_addz(&w->b, ",\"positions\":[");
    for (size_t i = 0; i < n; i++) {
        uint32_t res = o->version == NO ? at[i].index : r->targets.at[at[i].index].resource;
        buf_addz(&w->b, i ? ",[" : "[");
        buf_add_json(&w->b, rel_text(r, r->resources.at[res].name));
        buf_addf(&w->b, ",%u]", at[i].position);
    }
    buf_addc(&w->b, ']');
}

static void write_cell_orders(writer *w, const rel_cell *c)
{
    const releases *r = w->r;
    for (size_t i = 0; i < c->orders.len; i++) {
        str d = rel_text(r, r->deployments.at[c->deployment].name);
        str e = rel_text(r, r->environments.at[c->environment].name);
        key(w, "order", d, e, tag(r, c->orders.at[i].version));
        buf_addz(&w->b, "{\"kind\":\"order\"");
        text(w, "deployment", d);
        text(w, "environment", e);
        text(w, "version", tag(r, c->orders.at[i].version));
        write_order(w, &c->orders.at[i]);
        buf_addc(&w->b, '}');
        finish(w);
    }
}

static void write_rule(writer *w, const rel_rule *rule_)
{
    const releases *r = w->r;
    bool gone = !rule_->doc && rule_->kind == RULE_DEPLOYMENT_BRACKET;
    if (rule_->peak == 0 && rule_->quarantined == 0 && rule_->order.positions.len == 0 && !gone)
        return;
    key(w, "rule", rel_text(r, r->policies.at[rule_->policy].name), rel_text(r, rule_->id), none);
    buf_addz(&w->b, "{\"kind\":\"rule\"");
    text(w, "policy", rel_text(r, r->policies.at[rule_->policy].name));
    text(w, "rule", rel_text(r, rule_->id));
    number(w, "peak", rule_->peak);
    number(w, "quarantined", rule_->quarantined);
    if (gone) {
        number(w, "overlap", rule_->overlap);
        number(w, "strategy", rule_->strategy);
    }
    if (rule_->order.positions.len > 0)
        write_order(w, &rule_->order);
    buf_addc(&w->b, '}');
    finish(w);
}

static void write_resource(writer *w, const rel_resource *x)
{
    const releases *r = w->r;
    if (x->quarantined || x->halted) {
        key(w, "resource", rel_text(r, x->name), none, none);
        buf_addz(&w->b, "{\"kind\":\"resource\"");
        text(w, "resource", rel_text(r, x->name));
        flag(w, "quarantined", x->quarantined);
        flag(w, "halted", x->halted);
        buf_addc(&w->b, '}');
        finish(w);
    }
    for (size_t i = 0; i < x->holds.len; i++) {
        const rel_hold *h = &x->holds.at[i];
        const rel_rule *rule_ = &r->rules.at[h->rule];
        key(w, "slot", rel_text(r, r->policies.at[rule_->policy].name), rel_text(r, rule_->id),
            rel_text(r, x->name));
        buf_addz(&w->b, "{\"kind\":\"slot\"");
        text(w, "policy", rel_text(r, r->policies.at[rule_->policy].name));
        text(w, "rule", rel_text(r, rule_->id));
        text(w, "resource", rel_text(r, x->name));
        number(w, "progressMs", h->progress_ms);
        flag(w, "host", h->host);
        flag(w, "job", h->job);
        flag(w, "late", h->late);
        buf_addc(&w->b, '}');
        finish(w);
    }
}

/* Batches: their records come last, after the targets they are about. */
static void write_pace(writer *w, const rel_pace *p)
{
    const releases *r = w->r;
    const rel_rule *rule_ = &r->rules.at[p->rule];
    if (!rule_->doc || pace_empty(p))
        return;
    str policy = rel_text(r, r->policies.at[rule_->policy].name);
    str e = rel_text(r, r->environments.at[p->environment].name);
    str d = p->cell == NO ? STR_EMPTY
                          : rel_text(r, r->deployments.at[r->cells.at[p->cell].deployment].name);
    key(w, "wave", rel_text(r, rule_->id), e, d);
    buf_addz(&w->b, "{\"kind\":\"wave\"");
    text(w, "policy", policy);
    text(w, "rule", rel_text(r, rule_->id));
    text(w, "environment", e);
    text(w, "deployment", d);
    flag(w, "complete", p->complete);
    pace_save(r, p, &w->b);
    buf_addc(&w->b, '}');
    finish(w);
}

/* ---- people ---- */

/* Acts keep their order: the key counts them. */
static void numbered(writer *w, const char *kind, size_t i)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%08zu", i);
    key(w, kind, str_of(digits), none, none);
    buf_addf(&w->b, "{\"kind\":\"%s\"", kind);
}

static void write_people(writer *w)
{
    const releases *r = w->r;
    for (size_t i = 0; i < r->approvals.len; i++) {
        const rel_approval *a = &r->approvals.at[i];
        numbered(w, "approval", i);
        text(w, "version", rel_text(r, a->version));
        text(w, "environment", rel_text(r, a->environment));
        text(w, "who", rel_text(r, a->who));
        number(w, "atMs", a->at_ms);
        flag(w, "approved", a->approved);
        buf_addc(&w->b, '}');
        finish(w);
    }
    for (size_t i = 0; i < r->bypasses.len; i++) {
        const rel_bypass *b = &r->bypasses.at[i];
        numbered(w, "bypass", i);
        text(w, "rule", rel_text(r, b->rule));
        text(w, "version", rel_text(r, b->version));
        text(w, "environment", rel_text(r, b->environment));
        text(w, "resource", rel_text(r, b->resource));
        text(w, "reason", rel_text(r, b->reason));
        number(w, "atMs", b->at_ms);
        number(w, "untilMs", b->until_ms);
        buf_addc(&w->b, '}');
        finish(w);
    }
    for (size_t i = 0; i < r->freezes.len; i++) {
        const rel_freeze *f = &r->freezes.at[i];
        numbered(w, "freeze", i);
        text(w, "name", rel_text(r, f->name));
        text(w, "who", rel_text(r, f->who));
        text(w, "reason", rel_text(r, f->reason));
        text(w, "selector", rel_text(r, f->selector));
        number(w, "atMs", f->at_ms);
        number(w, "untilMs", f->until_ms);
        buf_addc(&w->b, '}');
        finish(w);
    }
}

static void write_rest(writer *w)
{
    const releases *r = w->r;
    key(w, "all", none, none, none);
    buf_addz(&w->b, "{\"kind\":\"all\"");
    number(w, "lastJob", r->last_job);
    flag(w, "halted", r->halted);
    buf_addc(&w->b, '}');
    finish(w);
    for (size_t i = 0; i < r->deployments.len; i++) {
        const rel_deployment *d = &r->deployments.at[i];
        if (!d->paused && !d->halted)
            continue;
        key(w, "deployment", rel_text(r, d->name), none, none);
        buf_addz(&w->b, "{\"kind\":\"deployment\"");
        text(w, "deployment", rel_text(r, d->name));
        flag(w, "paused", d->paused);
        flag(w, "halted", d->halted);
        buf_addc(&w->b, '}');
        finish(w);
    }
}

static int compare_lines(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

void releases_write(const releases *r, buf *out)
{
    writer w = {.r = r, .a = arena_new(0), .b = BUF(LIMIT_TEXT_BYTES)};
    if (!w.a) {
        out->failed = true;
        return;
    }
    for (uint32_t t = 0; t < r->targets.len; t++)
        if (r->targets.at[t].id != 0)
            write_target(&w, t);
    for (size_t s = 0; s < r->sites.len; s++)
        if (r->sites.at[s].used && r->sites.at[s].groups > 0)
            write_site(&w, &r->sites.at[s]);
    for (size_t g = 0; g < r->groups.len; g++)
        if (r->groups.at[g].used)
            write_group(&w, &r->groups.at[g]);
    for (size_t c = 0; c < r->cells.len; c++)
        write_cell_orders(&w, &r->cells.at[c]);
    for (size_t i = 0; i < r->rules.len; i++)
        write_rule(&w, &r->rules.at[i]);
    for (size_t i = 0; i < r->resources.len; i++)
        write_resource(&w, &r->resources.at[i]);
    for (size_t i = 0; i < r->paces.len; i++)
        write_pace(&w, &r->paces.at[i]);
    write_people(&w);
    write_rest(&w);
    if (w.lines.len > 0)
        qsort(w.lines.at, w.lines.len, sizeof *w.lines.at, compare_lines);
    for (size_t i = 0; i < w.lines.len; i++)
        buf_add(out, w.lines.at[i]);
    out->failed = out->failed || w.failed;
    vec_done(&w.lines);
    buf_done(&w.b);
    arena_free(w.a);
}
