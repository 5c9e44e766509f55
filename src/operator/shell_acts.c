/* SPDX-License-Identifier: Apache-2.0 */
/* What people ask by the annotation of a Skyhook (act_request.h): taken once, and removed when all
 * that follows from it is durable. No stage of the Skyhook begins before: so a crash in between
 * takes it again, which changes nothing. */
#include "base/log.h"
#include "base/mem.h"
#include "operator/act_request.h"
#include "operator/shell_internal.h"

/* The annotation with "/" as JSON pointers have it. */
#define ACTS_POINTER "/metadata/annotations/skyhook.nvidia.com~1acts"

void acts_seen(node_shell *s, shell_change *c, yyjson_val *json)
{
    str text = read_text(read_at(json, "metadata", "annotations"), KEY_ACTS);
    str old = shell_text(c->acts);
    if (str_eq(text, old))
        return;
    /* People add to the end: what was taken before is not taken again. */
    bool more = old.len > 0 && str_starts(text, str_part(old, 0, old.len - 1));
    if (!more)
        c->acts_taken = 0;
    c->acts = mem_free(c->acts);
    if (text.len > 0)
        c->acts = shell_copy(s, text);
    c->acts_new = text.len > 0;
    s->due = true;
}

void acts_take(node_shell *s, shell_change *c)
{
    if (!c->acts_new || !c->known)
        return;
    arena_place mark = arena_mark(s->scratch);
    act_list list = {0};
    err error;
    c->acts_new = false;
    if (!act_requests_read(s->scratch, str_of(c->acts),
                           (act_subject){ACT_OF_SKYHOOK, str_of(c->name)}, &list, &error))
        log_line(LOG_WARN, "Skyhook %s: %s", c->name, error.text);
    for (size_t i = c->acts_taken; i < list.len; i++) {
        fact f = {.kind = FACT_ACT, .act = list.at[i]};
        shell_take(s, &f);
        log_line(LOG_INFO, "Skyhook %s: act %zu was taken", c->name, i + 1);
    }
    c->acts_taken = list.len;
    c->acts_epoch = c->epoch + 1;
    c->dirty = c->urgent = true;
    for (size_t i = 0; i < c->places.len; i++) {
        shell_place *p = c->places.at[i];
        shell_look(s, p);
        c->acts_open += !p->of_act;
        p->of_act = p->dirty = true; /* also where it waits for the end of what runs */
        shell_queue(s, p->node);
    }
    arena_rewind(s->scratch, mark);
}

static void removed(node_shell *s, const shell_ticket *t, const write_outcome *how,
                    yyjson_val *json)
{
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c)
        return;
    c->acts_sending = false;
    if (how->kind == WRITE_DONE && json) {
        changes_seen(s, json);
        return;
    }
    /* Somebody added to it: it is seen again, and then removed. */
    c->acts_held_until_ms = s->now_ms + SHELL_REFUSED_MS;
}

void acts_remove(node_shell *s, shell_change *c)
{
    if (!c->acts || c->acts_new || c->acts_sending || c->acts_held_until_ms > s->now_ms ||
        c->acts_open > 0 || c->durable_epoch < c->acts_epoch)
        return;
    buf body = BUF(SHELL_TEXT_BYTES);
    buf_addz(&body, "[{\"op\":\"test\",\"path\":\"" ACTS_POINTER "\",\"value\":");
    buf_add_json(&body, str_of(c->acts));
    buf_addz(&body, "},{\"op\":\"remove\",\"path\":\"" ACTS_POINTER "\"}]");
    kube_write w = {.verb = WRITE_JSON_PATCH,
                    .collection = STR("/apis/skyhook.nvidia.com/v1alpha1/skyhooks"),
                    .name = str_of(c->name),
                    .body = buf_str(&body)};
    c->acts_sending = shell_send(s, &w, (shell_ticket){.done = removed, .skyhook = c->name});
    s->counts.others += c->acts_sending;
    buf_done(&body);
}
