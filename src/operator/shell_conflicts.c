/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that met a conflict: what it was with is seen before anything else is written. */
#include "operator/shell_internal.h"

void conflict_met(const node_shell *s, shell_conflict *k, uint64_t revision)
{
    k->with = revision;
    k->ask_ms = s->now_ms + SHELL_UNSEEN_MS;
}

bool conflict_stands(const shell_conflict *k, uint64_t revision)
{
    return k->with != 0 && k->with >= revision;
}

bool conflict_asks(const node_shell *s, const shell_conflict *k)
{
    return k->with != 0 && !k->asking && k->ask_ms <= s->now_ms;
}

void conflict_asked(const node_shell *s, shell_conflict *k, bool sent)
{
    k->asking = sent;
    if (!sent)
        k->ask_ms = s->now_ms + SHELL_REFUSED_MS;
}

void conflict_answered(const node_shell *s, shell_conflict *k, bool done)
{
    k->asking = false;
    k->ask_ms = s->now_ms + SHELL_REFUSED_MS;
    if (done)
        k->with = 0;
}

int64_t conflict_next_ms(const node_shell *s, const shell_conflict *k, uint64_t revision)
{
    bool waits = conflict_stands(k, revision) && !k->asking;
    return waits && k->ask_ms > s->now_ms ? k->ask_ms : REASON_NEVER;
}
