/* SPDX-License-Identifier: Apache-2.0 */
/* What people put in the way: halt, quarantine, pause and freeze. They come before every rule. A
 * halt stops every start; the others let a version group that has begun finish its work. */
#include "engine/chain.h"

static bool later_job(const chain_context *c)
{
    return c->group != NO && !c->starting;
}

static bool halted(const chain_context *c)
{
    const rel_target *t = &c->r->targets.at[c->target];
    return c->r->halted || c->r->deployments.at[t->deployment].halted ||
           c->r->resources.at[t->resource].halted;
}

static void no_halt(const chain_context *c, verdict *v)
{
    const rel_target *t = &c->r->targets.at[c->target];
    if (!halted(c))
        return;
    verdict_no(v, VERDICT_REFUSED, REASON_HALTED, NEVER);
    v->reason.act = RELEASE_RESUME;
    v->reason.scope = STR("halt");
    bool by_deployment = c->r->deployments.at[t->deployment].halted;
    v->reason.detail = rel_text(c->r, by_deployment ? c->r->deployments.at[t->deployment].name
                                                    : c->r->resources.at[t->resource].name);
}

static void no_quarantine(const chain_context *c, verdict *v)
{
    const rel_resource *res = &c->r->resources.at[c->r->targets.at[c->target].resource];
    if (!res->quarantined)
        return;
    verdict_no(v, VERDICT_REFUSED, REASON_QUARANTINED, NEVER);
    v->reason.act = RELEASE_RETRY;
    v->reason.scope = STR("resource");
    v->reason.detail = rel_text(c->r, res->name);
}

static void no_pause(const chain_context *c, verdict *v)
{
    const rel_deployment *d = &c->r->deployments.at[c->r->targets.at[c->target].deployment];
    if (!d->paused || later_job(c))
        return;
    verdict_no(v, VERDICT_WAITING, REASON_PAUSED, NEVER);
    v->reason.act = RELEASE_RESUME;
    v->reason.scope = STR("deployment");
    v->reason.detail = rel_text(c->r, d->name);
}

static void no_freeze(const chain_context *c, verdict *v)
{
    const rel_freeze *f;
    if (later_job(c) || !target_frozen(c->r, c->target, &f))
        return;
    verdict_no(v, VERDICT_WAITING, REASON_FREEZE, f->until_ms == 0 ? NEVER : f->until_ms);
    v->reason.act = RELEASE_THAW;
    v->reason.scope =
        c->a ? arena_printf(c->a, "freeze %.*s", STR_ARG(rel_text(c->r, f->name))) : STR("freeze");
    v->reason.detail = rel_text(c->r, f->reason ? f->reason : f->name);
}

static void no_broken(const chain_context *c, verdict *v)
{
    if (!c->r->targets.at[c->target].broken || later_job(c))
        return;
    verdict_no(v, VERDICT_REFUSED, REASON_EXPRESSION, NEVER);
    v->reason.scope = STR("policy selector");
    v->reason.detail = STR("the selector of a policy cannot be evaluated here");
}

static void (*const questions[])(const chain_context *, verdict *) = {
    no_halt, no_quarantine, no_pause, no_freeze, no_broken};
#define QUESTION_COUNT (sizeof questions / sizeof questions[0])

/* Nobody has put anything in its way: mostly so, and asked of everything again and again. */
static bool nothing_put(const chain_context *c)
{
    const releases *r = c->r;
    const rel_target *t = &r->targets.at[c->target];
    const rel_deployment *d = &r->deployments.at[t->deployment];
    const rel_resource *res = &r->resources.at[t->resource];
    return r->freezes.len == 0 && !r->halted && !d->halted && !d->paused && !res->halted &&
           !res->quarantined && !t->broken;
}

void people_verdict(const chain_context *c, verdict *v)
{
    if (nothing_put(c))
        return;
    for (size_t i = 0; i < QUESTION_COUNT && v->kind == VERDICT_ALLOWED; i++)
        questions[i](c, v);
}

/* Every freeze that holds the target is a reason of its own: each must be thawed. */
static bool every_freeze(const chain_context *c, reasons *out)
{
    releases *r = c->r;
    for (size_t i = 0; i < r->freezes.len; i++) {
        const rel_freeze *f = &r->freezes.at[i];
        if (!f->failed && f->expression.source.ptr && !bitset_has(&f->targets, c->target))
            continue;
        str *of = ARENA_NEW(c->a, str);
        if (!of)
            return false;
        *of = rel_text(r, f->name);
        reason why = {.rule = REASON_FREEZE,
                      .scope = arena_printf(c->a, "freeze %.*s", STR_ARG(*of)),
                      .act = RELEASE_THAW,
                      .of = of,
                      .of_count = 1,
                      .next_ms = f->until_ms == 0 ? NEVER : f->until_ms,
                      .detail = rel_text(r, f->reason ? f->reason : f->name)};
        if (!reasons_add(out, c->a, why))
            return false;
    }
    return true;
}

/* A reason that is released by resuming one thing. */
static bool add_halt(const chain_context *c, const char *scope, str name, reasons *out)
{
    str *of = ARENA_NEW(c->a, str);
    if (!of)
        return false;
    *of = name;
    return reasons_add(out, c->a,
                       (reason){.rule = REASON_HALTED,
                                .scope = str_of(scope),
                                .act = RELEASE_RESUME,
                                .of = of,
                                .of_count = 1,
                                .next_ms = NEVER,
                                .detail = name});
}

/* Each halt is a reason of its own: deployment, resource and everything are resumed separately. */
static bool every_halt(const chain_context *c, reasons *out)
{
    const rel_target *t = &c->r->targets.at[c->target];
    const rel_deployment *d = &c->r->deployments.at[t->deployment];
    const rel_resource *res = &c->r->resources.at[t->resource];
    if (d->halted && !add_halt(c, "deployment", rel_text(c->r, d->name), out))
        return false;
    if (res->halted && !add_halt(c, "resource", rel_text(c->r, res->name), out))
        return false;
    return !c->r->halted || add_halt(c, "everything", STR("everything"), out);
}

/* A policy whose selector cannot be evaluated holds what it may be about: each is to be mended. */
static bool every_broken(const chain_context *c, reasons *out)
{
    const releases *r = c->r;
    for (size_t i = 0; i < r->policies.len; i++) {
        const rel_policy *p = &r->policies.at[i];
        if (!p->doc || !index_has(&p->broken, c->target))
            continue;
        str *of = ARENA_NEW(c->a, str);
        if (!of)
            return false;
        *of = rel_text(r, p->name);
        reason why = {.rule = REASON_EXPRESSION,
                      .scope = arena_printf(c->a, "policy %.*s", STR_ARG(*of)),
                      .act = RELEASE_EDIT,
                      .of = of,
                      .of_count = 1,
                      .next_ms = NEVER,
                      .detail = STR("its selector cannot be evaluated here")};
        if (!reasons_add(out, c->a, why))
            return false;
    }
    return true;
}

/* Resuming a deployment that is halted ends its pause, too. */
static bool implied(const chain_context *c, size_t question)
{
    return questions[question] == no_pause &&
           c->r->deployments.at[c->r->targets.at[c->target].deployment].halted;
}

bool people_explain(const chain_context *c, reasons *out)
{
    if (!every_halt(c, out))
        return false;
    for (size_t i = 0; i < QUESTION_COUNT; i++) {
        if (questions[i] == no_halt || implied(c, i))
            continue;
        if (questions[i] == no_freeze) {
            if (!later_job(c) && !every_freeze(c, out))
                return false;
            continue;
        }
        verdict v = {.kind = VERDICT_ALLOWED};
        questions[i](c, &v);
        if (v.kind != VERDICT_ALLOWED && questions[i] == no_broken) {
            if (!every_broken(c, out))
                return false;
            continue;
        }
        if (v.kind != VERDICT_ALLOWED) {
            str *of = ARENA_NEW(c->a, str);
            if (!of)
                return false;
            *of = v.reason.detail;
            v.reason.of = of;
            v.reason.of_count = 1;
        }
        if (!verdict_report(c, &v, out))
            return false;
    }
    return true;
}
