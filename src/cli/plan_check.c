/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_check.h"

#include "base/num.h"
#include "cli/scenario.h"

#define CHECK_KINDS(X)                                                                             \
    X(PEAK, "peak<=N") X(PEAK_PERCENT, "peak<=N%") X(END, "end<=D") X(WINDOW, "window")
typedef enum check_kind {
#define X(kind, text) CHECK_##kind,
    CHECK_KINDS(X)
#undef X
} check_kind;

typedef struct plan_limit {
    check_kind kind;
    int64_t value; /* a count, a percentage, or milliseconds */
} plan_limit;

static bool read_peak(str text, plan_limit *ret, err *error)
{
    bool percent = str_ends(text, STR("%"));
    int64_t value;
    if (!num_parse(str_part(text, 0, text.len - percent), &value) || value < 0 ||
        (percent && value > NUM_PERCENT_MAX))
        return err_set(error, "found \"%s\", allowed a number or a percentage",
                       str_shown(text).text);
    *ret = (plan_limit){percent ? CHECK_PEAK_PERCENT : CHECK_PEAK, value};
    return true;
}

static bool read_check(str text, plan_limit *ret, err *error)
{
    if (str_eq(text, STR("window"))) {
        *ret = (plan_limit){CHECK_WINDOW, 0};
        return true;
    }
    if (str_starts(text, STR("peak<=")))
        return read_peak(str_part(text, 6, SIZE_MAX), ret, error);
    if (str_starts(text, STR("end<="))) {
        ret->kind = CHECK_END;
        return scenario_duration(str_part(text, 5, SIZE_MAX), &ret->value, error);
    }
    return err_set(error, "found \"%s\", allowed peak<=N, peak<=N%%, end<=D, window",
                   str_shown(text).text);
}

exit_status plan_checks_read(const verb *c, const options *given)
{
    size_t at = 0;
    for (str text; options_next(given, "check", &at, &text);) {
        plan_limit limit;
        err error = {0};
        if (!read_check(text, &limit, &error))
            return usage_error(c, "--check: %s", error.text);
    }
    return STATUS_DONE;
}

static bool at_most(str text, int64_t found, int64_t allowed)
{
    if (found <= allowed)
        return true;
    fail("check %.*s: found %lld, allowed %lld", STR_ARG(text), (long long)found,
         (long long)allowed);
    return false;
}

static bool end_holds(const plan *p, str text, int64_t allowed_ms)
{
    char found[PLAN_SPAN_BYTES], allowed[PLAN_SPAN_BYTES];
    if (p->seconds * 1000 <= allowed_ms)
        return true;
    fail("check %.*s: found %s, allowed %s", STR_ARG(text), plan_span(p->seconds, found),
         plan_span(allowed_ms / 1000, allowed));
    return false;
}

/* The engine says with each start whether its windows were open. A job that ends after its window,
 * or goes on in a version group, began in time; a first deployment is held by none. */
static bool windows_kept(const plan *p)
{
    const ledger *l = sim_ledger(p->sim);
    for (size_t i = 0; i < l->jobs.len; i++) {
        const ledger_job *j = &l->jobs.at[i];
        char after[PLAN_SPAN_BYTES];
        if (j->outside == 0)
            continue;
        fail("check window: %.*s on %.*s begins after %s, outside the deployment window %.*s",
             STR_ARG(names_text(l->names, j->deployment)),
             STR_ARG(sim_herd(p->sim)->targets.at[j->resource].name),
             plan_span(j->start_ms / 1000, after), STR_ARG(names_text(l->names, j->outside)));
        return false;
    }
    return true;
}

static bool holds(const plan *p, str text, const plan_limit *limit)
{
    int64_t peak = sim_ledger(p->sim)->peak_in_flight;
    switch (limit->kind) {
    case CHECK_PEAK: return at_most(text, peak, limit->value);
    case CHECK_PEAK_PERCENT: {
        int64_t share = limit->value == 0 ? 0 : num_percent(p->counts.targets, limit->value);
        return at_most(text, peak, share);
    }
    case CHECK_END: return end_holds(p, text, limit->value);
    case CHECK_WINDOW: return windows_kept(p);
    }
    return false;
}

bool plan_checks(const plan *p, const options *given)
{
    bool good = true;
    size_t at = 0;
    for (str text; options_next(given, "check", &at, &text);) {
        plan_limit limit;
        if (read_check(text, &limit, NULL) && !holds(p, text, &limit))
            good = false;
    }
    return good;
}
