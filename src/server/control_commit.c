/* SPDX-License-Identifier: Apache-2.0 */
/* Turns that share a commit; after it the listener is told. */
#include <assert.h>

#include "server/control_internal.h"

/* ---- telling ---- */

static void news_forget(control *c)
{
    for (size_t i = 0; i < c->news.len; i++)
        arena_free(c->news.at[i].arena);
    c->news.len = 0;
}

/* Jobs that wait may be of another kind since their deployment was edited. */
static void tell_edited(const control *c, str deployment_name)
{
    for (size_t i = 0; i < c->jobs.len; i++)
        if (str_eq(c->jobs.at[i]->job.deployment, deployment_name) &&
            str_eq(c->jobs.at[i]->job.state, STR("pending")))
            job_announce(c, c->jobs.at[i], true);
}

static void tell(const control *c, const turn_news *news)
{
    for (size_t i = 0; i < news->edited_count; i++)
        tell_edited(c, news->edited[i]);
    for (size_t i = 0; c->listener.journal && i < news->entry_count; i++)
        c->listener.journal(c->listener.context, &news->entries[i]);
    /* One that a later turn of the same commit has ended is not there any more. */
    for (int64_t number = news->first_job; number > 0 && number <= news->last_job; number++) {
        const live_job *j = job_find(c, number);
        if (j)
            job_announce(c, j, false);
    }
    for (size_t i = 0; i < c->jobs.len; i++)
        if (c->jobs.at[i]->announce) {
            c->jobs.at[i]->announce = false;
            job_announce(c, c->jobs.at[i], true);
        }
    if (news->cancel != 0 && c->listener.cancel)
        c->listener.cancel(c->listener.context, news->cancel);
}

static void maybe_snapshot(control *c)
{
    if (!c->engine ||
        store_sequence(c->store) - c->snapshot_sequence < c->settings.snapshot_entries)
        return;
    err ignored; /* tried again after the next commit; until then a start takes longer */
    if (c->settings.snapshots_beside)
        snapshot_start(c);
    else
        control_snapshot(c, &ignored);
}

/* ---- the transaction ---- */

/* Nothing of what was to be committed has happened: what is in memory is read again from the store.
 */
static void commit_lose(control *c, const err *why)
{
    err ignored;
    store_rollback(c->store);
    news_forget(c);
    snapshot_stop(c); /* parts of it may be lost, too */
    c->lost = *why;
    if (c->lost.text[0] == '\0')
        err_set(&c->lost, "the store failed");
    control_unload(c);
    control_load(c, &ignored);
}

bool commit_begin(control *c, err *error)
{
    assert(c->lost.text[0] == '\0');
    return store_is_open(c->store) || store_begin(c->store, error);
}

bool commit_end(control *c, bool good, err *error)
{
    if (!store_is_open(c->store)) {
        assert(!good);
        commit_lose(c, error);
    } else if (!c->settings.share_commits && good) {
        return control_settle(c, error);
    } else if (!c->settings.share_commits) {
        store_rollback(c->store);
    }
    if (!c->settings.share_commits)
        c->lost.text[0] = '\0'; /* the caller knows already */
    return good;
}

bool control_unsettled(const control *c)
{
    return c->lost.text[0] != '\0' || store_is_open(c->store);
}

bool control_settle(control *c, err *error)
{
    if (store_is_open(c->store) && !store_commit(c->store, error))
        commit_lose(c, error);
    if (c->lost.text[0] != '\0') {
        *error = c->lost;
        c->lost.text[0] = '\0';
        return false;
    }
    for (size_t i = 0; i < c->news.len; i++)
        tell(c, &c->news.at[i]);
    news_forget(c);
    maybe_snapshot(c);
    return true;
}
