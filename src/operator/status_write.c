/* SPDX-License-Identifier: Apache-2.0 */
/* A Skyhook's status: one write for all that changed, by compare-and-swap.
 *
 * It holds the claims. So it is written when all ends of claims that it counts are durable on their
 * nodes, at once if a claim waits for it, and else not more often than is of use to a reader. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"
#include "operator/status_record.h"

/* The first so many of a list, which were written. */
static void forget_sent(char **at, size_t *len, size_t *sent)
{
    for (size_t i = 0; i < *len; i++) {
        if (i < *sent)
            mem_free(at[i]);
        else
            at[i - *sent] = at[i];
    }
    *len -= *sent;
    *sent = 0;
}

/* Who comes behind a Skyhook that goes first on all nodes is shown to wait for it. */
static void look_behind(node_shell *s, const shell_change *c)
{
    bool first = c->document && c->document->object.skyhook->spec.sequencing == SEQUENCING_ALL;
    for (size_t i = 0; first && i < s->changes.len; i++)
        ((shell_change *)(uintptr_t)s->changes.entries[i].value)->dirty = true;
}

static void written(node_shell *s, shell_change *c, uint32_t epoch, yyjson_val *json)
{
    c->durable_epoch = epoch;
    if (c->status != c->next_status)
        look_behind(s, c);
    if (c->status != c->next_status && c->status != SKYHOOK_NONE)
        events_status(s, c, (skyhook_state)c->status, (skyhook_state)c->next_status);
    c->status = c->next_status;
    if (c->blocked != c->next_blocked && c->next_blocked != DELETION_FREE)
        events_deletion_blocked(s, c, c->next_blocked);
    c->blocked = c->next_blocked;
    for (size_t i = 0; i < c->left_sent; i++)
        stale_maps_left(s, c, str_of(c->left.at[i]));
    forget_sent(c->left.at, &c->left.len, &c->left_sent);
    forget_sent(c->lost.at, &c->lost.len, &c->lost_sent);
    buf_clear(&c->conditions);
    buf_add(&c->conditions, buf_str(&c->next_conditions));
    size_t kept = 0;
    for (size_t i = 0; i < c->waiting.len; i++) {
        shell_place *p = c->waiting.at[i];
        if (p->claim > epoch) {
            c->waiting.at[kept++] = p;
            continue;
        }
        shell_queue(s, p->node);
        if (p->hindered)
            shell_tell_kept(s, p, NULL, true);
    }
    c->waiting.len = kept;
    if (json)
        changes_seen(s, json);
}

/* Nobody has seen what was to be written: it is all to be written again. */
static void again(shell_change *c)
{
    c->dirty = c->again = true;
    c->left_sent = c->lost_sent = 0;
    c->shown = 0;
    c->urgent = c->waiting.len > 0;
}

/* Nothing starts before it is written, so whoever waits for that says so. */
static void not_written(node_shell *s, shell_change *c, const write_outcome *how)
{
    char why[128];
    snprintf(why, sizeof why,
             "its claim cannot be written into the status of its Skyhook: %s (status %d)",
             write_outcome_text(how->kind), how->status);
    log_line(LOG_WARN, "status of Skyhook %s: %s", c->name, how->message);
    if (how->kind == WRITE_REFUSED)
        events_status_refused(s, c, how->message);
    again(c);
    c->held_until_ms = s->now_ms + SHELL_REFUSED_MS;
    for (size_t i = 0; i < c->waiting.len; i++)
        shell_tell_kept(s, c->waiting.at[i], why, true);
}

static void answered(node_shell *s, const shell_ticket *t, const write_outcome *how,
                     yyjson_val *json)
{
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c || !str_eq(shell_text(c->uid), shell_text(t->uid)))
        return;
    c->sending = false;
    switch (how->kind) {
    case WRITE_DONE: written(s, c, t->epoch, json); return;
    case WRITE_CONFLICT:
        again(c);
        conflict_met(s, &c->conflict, t->revision);
        if (json)
            changes_seen(s, json);
        return;
    case WRITE_GONE: return; /* the watch tells */
    case WRITE_EXISTS:
    case WRITE_REFUSED:
    case WRITE_BLOCKED:
    case WRITE_LATER:
    case WRITE_AMBIGUOUS:
    case WRITE_BARRED: break;
    }
    not_written(s, c, how);
}

static bool send_status(node_shell *s, shell_change *c, const buf *body)
{
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR("/apis/skyhook.nvidia.com/v1alpha1/skyhooks"),
                    .name = str_of(c->name),
                    .subresource = STR("status"),
                    .version = str_of(c->version),
                    .body = buf_str(body)};
    c->sending = shell_send(s, &w,
                            (shell_ticket){.done = answered,
                                           .skyhook = c->name,
                                           .uid = c->uid,
                                           .revision = c->revision,
                                           .epoch = c->epoch + 1});
    if (!c->sending)
        return false;
    c->epoch++;
    c->dirty = c->urgent = c->again = false;
    c->next_status_ms = 0;
    s->counts.statuses++;
    for (size_t i = 0; i < c->places.len; i++)
        c->places.at[i]->mirror_dirty = false;
    c->left_sent = c->left.len;
    c->lost_sent = c->lost.len;
    return true;
}

/* NULL without memory. */
static yyjson_val *record_of(node_shell *s, const shell_change *c)
{
    buf text = BUF(SHELL_TEXT_BYTES);
    bool good = engine_keep_change(s->engine, str_of(c->name), &text) && !text.failed;
    yyjson_val *record =
        good ? json_parse_within(s->scratch, buf_str(&text), SHELL_TEXT_BYTES, NULL) : NULL;
    buf_done(&text);
    return record;
}

void status_write(node_shell *s, shell_change *c)
{
    if (c->dirty && c->next_status_ms == 0) /* what comes within a moment goes along */
        c->next_status_ms = s->now_ms + s->settings.status_every_ms;
    if (!c->known || c->wants_finalizer || !c->dirty || c->sending || c->releasing > 0 ||
        c->held_until_ms > s->now_ms || (!c->urgent && c->next_status_ms > s->now_ms) ||
        change_waits(s, c))
        return;
    c->conflict.with = 0;
    if (c->again) /* a write that did not take effect took these with it */
        for (size_t i = 0; i < c->places.len; i++)
            c->places.at[i]->mirror_dirty = true;
    arena_place mark = arena_mark(s->scratch);
    buf stored = BUF(SHELL_TEXT_BYTES), body = BUF(SHELL_TEXT_BYTES);
    yyjson_val *record = record_of(s, c);
    bool good = record;
    buf_addz(&body, "{\"status\":");
    if (good) {
        status_record_put(s->scratch, record, &stored);
        status_put(s, c, record, buf_str(&stored), &body);
    }
    buf_addc(&body, '}');
    uint64_t digest = str_hash(buf_str(&body));
    if (!good || stored.failed || body.failed) {
        write_outcome never = {.kind = WRITE_REFUSED};
        snprintf(never.message, sizeof never.message,
                 "it cannot be made: memory ran out, or it is larger than %u MiB",
                 SHELL_TEXT_BYTES >> 20);
        not_written(s, c, &never);
    } else if (digest == c->shown && !c->urgent) {
        c->dirty = false;
        c->next_status_ms = 0;
    } else {
        shell_sent_note(&c->sent_of, buf_str(&stored));
        if (send_status(s, c, &body))
            c->shown = digest;
    }
    buf_done(&stored);
    buf_done(&body);
    arena_rewind(s->scratch, mark);
}
