/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/story.h"

#include <stdarg.h>

static const char *const roles[] = {
#define X(role, text) text,
    JOB_ROLES(X)
#undef X
};

static void story_time(buf *out, int64_t ms)
{
    buf_addf(out, "%7llds  ", (long long)(ms / 1000));
}

void story_line(buf *out, int64_t ms, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    story_time(out, ms);
    buf_addf(out, "* %s\n", text);
}

static void story_where(buf *out, const decision *d)
{
    if (d->environment.len > 0)
        buf_addf(out, " in %.*s", STR_ARG(d->environment));
}

static void story_start(buf *out, const decision *d, int64_t batch)
{
    buf_addf(out, "start %.*s for %.*s", STR_ARG(d->target), STR_ARG(d->change));
    story_where(out, d);
    if (d->retry)
        buf_addz(out, " (retry)");
    else if (d->group.len > 0 && batch > 0)
        buf_addf(out, " (batch %lld of %.*s)", (long long)batch, STR_ARG(d->group));
    else if (d->group.len > 0)
        buf_addf(out, " (%.*s)", STR_ARG(d->group));
}

static void story_batch(buf *out, const decision *d)
{
    if (d->kind == DECISION_BATCH) {
        buf_addf(out, "open batch %lld of %.*s for %.*s: %lld to go", (long long)d->number,
                 STR_ARG(d->group), STR_ARG(d->change), (long long)d->size);
        return;
    }
    buf_addf(out, "judge batch %lld of %.*s for %.*s: %lld of %lld complete", (long long)d->number,
             STR_ARG(d->group), STR_ARG(d->change), (long long)d->complete, (long long)d->size);
    if (d->erroring > 0)
        buf_addf(out, ", %lld erroring", (long long)d->erroring);
    if (d->blocked > 0)
        buf_addf(out, ", %lld blocked", (long long)d->blocked);
    buf_addz(out, d->failed ? ": failed" : ": good");
}

/* A package that is uninstalled has no stage any more: its entry goes. */
static void story_record(buf *out, const decision *d)
{
    if (d->stage.len == 0)
        buf_addf(out, "forget %.*s on %.*s", STR_ARG(d->package), STR_ARG(d->target));
    else
        buf_addf(out, "record %.*s %.*s %.*s on %.*s", STR_ARG(d->package), STR_ARG(d->stage),
                 STR_ARG(d->state), STR_ARG(d->target));
}

static void story_job(buf *out, const decision *d)
{
    buf_addf(out, "run %.*s %.*s on %.*s", STR_ARG(d->change), STR_ARG(d->version),
             STR_ARG(d->target));
    story_where(out, d);
    buf_addf(out, " (%s%s%s%.*s)", roles[d->role], d->retry ? ", retry" : "",
             d->group.len > 0 ? " of " : "", STR_ARG(d->group));
    if (d->outside.len > 0)
        buf_addf(out, " outside the window %.*s", STR_ARG(d->outside));
}

static void story_deploy(buf *out, const decision *d)
{
    buf_addf(out, "%s %.*s on %.*s",
             d->first ? "create"
             : d->fix ? "fix"
                      : "update",
             STR_ARG(d->change), STR_ARG(d->target));
    if (d->group.len > 0)
        buf_addf(out, " (%.*s)", STR_ARG(d->group));
}

static void story_detail(buf *out, const decision *d)
{
    if (d->detail.len > 0)
        buf_addf(out, ": %.*s", STR_ARG(d->detail));
}

static void story_node(buf *out, const char *verb, const decision *d)
{
    buf_addf(out, "%s %.*s", verb, STR_ARG(d->target));
    if (d->change.len > 0)
        buf_addf(out, " for %.*s", STR_ARG(d->change));
    story_detail(out, d);
}

void story_decision(buf *out, int64_t ms, const decision *d, int64_t batch)
{
    story_time(out, ms);
    switch (d->kind) {
    case DECISION_START: story_start(out, d, batch); break;
    case DECISION_RELEASE:
        buf_addf(out, "release %.*s for %.*s", STR_ARG(d->target), STR_ARG(d->change));
        story_where(out, d);
        buf_addf(out, ": %.*s", STR_ARG(d->state));
        if (d->detail.len > 0)
            buf_addf(out, " (%.*s)", STR_ARG(d->detail));
        break;
    case DECISION_BATCH:
    case DECISION_JUDGE: story_batch(out, d); break;
    case DECISION_HALT:
        buf_addf(out, "halt %.*s for %.*s", STR_ARG(d->group), STR_ARG(d->change));
        story_detail(out, d);
        break;
    case DECISION_RESET:
        buf_addf(out, "reset %.*s for %.*s", STR_ARG(d->group), STR_ARG(d->change));
        break;
    case DECISION_CORDON: story_node(out, "cordon", d); break;
    case DECISION_UNCORDON: story_node(out, "uncordon", d); break;
    case DECISION_DRAIN: story_node(out, "drain", d); break;
    case DECISION_RUN:
        buf_addf(out, "run %.*s %.*s %.*s on %.*s", STR_ARG(d->package), STR_ARG(d->version),
                 STR_ARG(d->stage), STR_ARG(d->target));
        buf_addf(out, " (job %lld)", (long long)d->number);
        break;
    case DECISION_RECORD: story_record(out, d); break;
    case DECISION_REAPPLY: story_node(out, "reapply", d); break;
    case DECISION_TAINT: story_node(out, "taint", d); break;
    case DECISION_UNTAINT: story_node(out, "untaint", d); break;
    case DECISION_DEPLOY: story_deploy(out, d); break;
    case DECISION_JOB: story_job(out, d); break;
    case DECISION_GROUP:
        buf_addf(out, "group %.*s is %.*s", STR_ARG(d->group), STR_ARG(d->state));
        story_detail(out, d);
        break;
    case DECISION_SLOT:
        buf_addf(out, "%.*s %s a slot of %.*s (%lld taken)", STR_ARG(d->target),
                 d->taken ? "takes" : "gives back", STR_ARG(d->group), (long long)d->size);
        break;
    case DECISION_PASS:
        buf_addf(
            out,
            "pass %lld of %.*s: %lld created, %lld updated, %lld fixed; %lld of %lld partitions "
            "visited, %lld not ready",
            (long long)d->number, STR_ARG(d->change), (long long)d->created, (long long)d->updated,
            (long long)d->fixed, (long long)d->visited, (long long)d->partitions,
            (long long)d->not_ready);
        break;
    case DECISION_FINALIZE:
        buf_addf(out, "finalize %.*s: its finalizer may go", STR_ARG(d->change));
        break;
    case DECISION_WAKE: buf_addf(out, "wake at %llds", (long long)(d->at_ms / 1000)); break;
    }
    buf_addc(out, '\n');
}
