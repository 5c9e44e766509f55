/* SPDX-License-Identifier: Apache-2.0 */
/* environmentProgression: a version must first succeed in other environments, on enough targets,
 * for long enough and not too long ago. Every environment that matches must pass. A hook that has
 * nobody to prepare on its resource never runs and is not counted. */
#include <inttypes.h>

#include "engine/chain.h"

#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)

/* How many of n successes p percent are: rounded up, and at least one. */
static int64_t needed(int64_t n, thousandths percent)
{
    int64_t k = (n * percent + 99999) / 100000;
    return k < 1 ? 1 : k;
}

typedef struct progress {
    int64_t targets;
    int64_t succeeded;
    int64_t kth_ms; /* when the needed one succeeded */
    int64_t latest_ms;
} progress;

/* Failed jobs count only where successStatuses says so; the first event of each target is the
 * one. */
static progress measure(const environment_progression *p, const rel_cell *cell, uint32_t version_)
{
    progress m = {
        .targets = (int64_t)cell->targets.len - cell->idle, .kth_ms = NEVER, .latest_ms = LONG_AGO};
    const rel_tally *tally = tally_find(cell, version_);
    if (!tally)
        return m;
    int64_t k = needed(m.targets, p->minimum_success_percentage);
    bool failures = (p->success_statuses & (1u << JOB_STATE_FAILURE)) != 0;
    bool successes =
        p->success_statuses == 0 || (p->success_statuses & (1u << JOB_STATE_SUCCESSFUL)) != 0;
    if (successes && !failures) {
        m.succeeded = (int64_t)tally->successes.len;
        if (m.succeeded >= k)
            m.kth_ms = tally->successes.at[k - 1].at_ms;
        if (m.succeeded > 0)
            m.latest_ms = tally->successes.at[m.succeeded - 1].at_ms;
        return m;
    }
    size_t a = 0, b = 0;
    while ((successes && a < tally->successes.len) || (failures && b < tally->failures.len)) {
        bool take_success = successes && a < tally->successes.len &&
                            (!failures || b >= tally->failures.len ||
                             tally->successes.at[a].at_ms <= tally->failures.at[b].at_ms);
        rel_success s = take_success ? tally->successes.at[a++] : tally->failures.at[b++];
        bool seen = false;
        for (size_t i = 0; successes && i + (take_success ? 1 : 0) < a && !seen; i++)
            seen = tally->successes.at[i].target == s.target;
        for (size_t i = 0; i + (take_success ? 0 : 1) < b && !seen; i++)
            seen = tally->failures.at[i].target == s.target;
        if (seen)
            continue;
        m.succeeded++;
        m.latest_ms = later_of(m.latest_ms, s.at_ms);
        if (m.succeeded == k)
            m.kth_ms = s.at_ms;
    }
    return m;
}

/* How much of it succeeded, in percent. */
static int64_t share(const progress *m)
{
    return m->succeeded * 100 / m->targets;
}

/* Says no until the environment itself, or time in it, has said yes. */
static void no_yet(const chain_context *c, verdict *v, uint32_t env, int64_t next_ms)
{
    verdict_no(v, VERDICT_WAITING, REASON_PROGRESSION, next_ms);
    v->reason.act = next_ms == NEVER ? RELEASE_COMPLETE : RELEASE_TIME;
    str *of = c->a ? ARENA_NEW(c->a, str) : NULL;
    if (!of)
        return;
    *of = v->reason.detail = rel_text(c->r, c->r->environments.at[env].name);
    v->reason.of = of;
    v->reason.of_count = 1;
}

/* The first success of each target is the one that counts: what is too old stays so, whatever runs
 * there. Only the rule can be changed. */
static void no_more(const chain_context *c, verdict *v, uint32_t env, int64_t hours)
{
    verdict_no(v, VERDICT_REFUSED, REASON_PROGRESSION, NEVER);
    if (c->a)
        v->reason.detail = arena_printf(
            c->a, "the last success in %.*s is more than %" PRId64 " hour%s old",
            STR_ARG(rel_text(c->r, c->r->environments.at[env].name)), hours, hours == 1 ? "" : "s");
}

static void one_environment(const chain_context *c, const environment_progression *p, uint32_t env,
                            verdict *v)
{
    releases *r = c->r;
    const rel_version *version_ = &r->versions.at[c->version];
    uint32_t cell = keymap_get(&r->cell_of, KEY_PAIR(version_->deployment, env));
    v->satisfied_ms = version_->published_ms;
    if (cell == NO || r->cells.at[cell].targets.len <= r->cells.at[cell].idle)
        return;
    progress m = measure(p, &r->cells.at[cell], c->version);
    int64_t soaked =
        m.latest_ms == LONG_AGO ? LONG_AGO : m.latest_ms + p->minimum_soak_time_minutes * MINUTE_MS;
    if (m.kth_ms == NEVER) {
        no_yet(c, v, env, NEVER);
        v->reason.have = share(&m);
        v->reason.limit = (p->minimum_success_percentage + 999) / 1000;
        char percent[THOUSANDTHS_BYTES];
        thousandths_print(p->minimum_success_percentage, percent);
        if (c->a)
            v->reason.detail =
                arena_printf(c->a, "%" PRId64 " percent succeeded in %.*s, %s are needed",
                             v->reason.have, STR_ARG(v->reason.detail), percent);
        return;
    }
    if (soaked > r->core->now_ms) {
        no_yet(c, v, env, soaked);
        v->reason.have = share(&m);
        v->reason.limit = (p->minimum_success_percentage + 999) / 1000;
        return;
    }
    if (p->maximum_age_hours.set) {
        int64_t old = m.latest_ms + p->maximum_age_hours.value * HOUR_MS;
        if (r->core->now_ms > old) {
            no_more(c, v, env, p->maximum_age_hours.value);
            return;
        }
        v->reason.next_ms = old + 1;
    }
    v->satisfied_ms = later_of(m.kth_ms, p->minimum_soak_time_minutes > 0 ? soaked : LONG_AGO);
}

/* Whether the selector matches an environment; asked once. */
static bool environment_matches(releases *r, uint32_t rule_, uint32_t env, bool *ret, err *error)
{
    byte_list *known = &r->rules.at[rule_].upstream;
    while (known->len <= env)
        if (!vec_push(known, (uint8_t)0))
            return rel_no_memory(r);
    if (known->at[env] == 0) {
        const expression *e =
            &r->rules.at[rule_].doc->environment_progression->depends_on_environment_selector;
        if (!scope_environment_matches(r, e, env, ret, error))
            return false;
        known->at[env] = (uint8_t)(1 + *ret);
    }
    *ret = known->at[env] == 2;
    return true;
}

/* What one environment says, added to what others have said. Each that says no is a reason. */
static void take_answer(const chain_context *c, verdict *v, const verdict *one)
{
    if (v->kind == VERDICT_ALLOWED && one->kind != VERDICT_ALLOWED) {
        v->kind = one->kind;
        v->satisfied_ms = one->satisfied_ms;
        v->reason = one->reason;
    } else if (one->kind != VERDICT_ALLOWED) {
        reasons_add(&v->more, c->a, one->reason);
    } else if (v->kind == VERDICT_ALLOWED) {
        v->satisfied_ms = later_of(v->satisfied_ms, one->satisfied_ms);
        v->reason.next_ms = earlier(v->reason.next_ms, one->reason.next_ms);
    }
}

static void progression_verdict(const chain_context *c, uint32_t rule_, verdict *v)
{
    releases *r = c->r;
    const environment_progression *p = r->rules.at[rule_].doc->environment_progression;
    uint32_t own = r->cells.at[r->lanes.at[c->lane].cell].environment;
    size_t found = 0;
    for (uint32_t e = 0; e < r->environments.len; e++) {
        bool matches = false;
        err error;
        if (e == own || !r->environments.at[e].doc)
            continue;
        if (!environment_matches(r, rule_, e, &matches, &error)) {
            verdict_no(v, VERDICT_REFUSED, REASON_EXPRESSION, NEVER);
            v->reason.detail = c->a ? arena_str(c->a, str_of(error.text)) : STR_EMPTY;
            v->more.len = v->reason.of_count = 0;
            return;
        }
        if (!matches)
            continue;
        found++;
        verdict one = {.kind = VERDICT_ALLOWED,
                       .reason = {.scope = v->reason.scope, .next_ms = NEVER}};
        one_environment(c, p, e, &one);
        take_answer(c, v, &one);
        if (v->kind != VERDICT_ALLOWED && !c->a)
            return;
    }
    if (found > 0)
        return;
    verdict_no(v, VERDICT_REFUSED, REASON_PROGRESSION, NEVER);
    v->reason.detail = STR("no environment matches the selector");
}

const rule_ops progression_ops = {
    .order = 3, .level = LEVEL_VERSION, .verdict = progression_verdict};
