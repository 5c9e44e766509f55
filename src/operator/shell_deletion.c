/* SPDX-License-Identifier: Apache-2.0 */
/* A Skyhook that is deleted and has nothing left to do: what it wrote on nodes goes, then its
 * finalizer. Where packages stay installed their state and version stay written, for whoever comes
 * next; and every node it was on remembers that it was seen, so that it is not taken for new. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"

#define CLEANUPS_MAX 5 /* patches of a node, if something of it does not go */

/* Packages are left on the node. */
static bool keeps_state(const shell_place *p)
{
    return p->state && p->state != text_mark(STR("{}"));
}

static bool is_clean(const shell_place *p)
{
    bool left = p->record || p->status != SKYHOOK_NONE || p->cordon || p->conditions;
    return !left && (keeps_state(p) || (!p->state && !p->versioned));
}

void deletion_put(node_patch *patch, shell_place *p)
{
    const str none = {NULL, 0};
    if (p->record)
        patch_note(&patch->annotations, NODE_RECORD, p->skyhook, none);
    if (p->cordon)
        patch_note(&patch->annotations, NODE_HOLDS_CORDON, p->skyhook, none);
    if (p->status != SKYHOOK_NONE) {
        patch_note(&patch->annotations, NODE_STATUS, p->skyhook, none);
        patch_note(&patch->labels, NODE_STATUS, p->skyhook, none);
    }
    if (!keeps_state(p) && p->state)
        patch_note(&patch->annotations, NODE_NODE_STATE, p->skyhook, none);
    if (!keeps_state(p) && p->versioned)
        patch_note(&patch->annotations, NODE_VERSION, p->skyhook, none);
    patch_note(&patch->annotations, NODE_SEEN_ONCE, "", STR("true"));
    static const char *const types[] = {"NotReady", "Erroring"};
    for (size_t i = 0; p->conditions && i < 2; i++)
        buf_addf(&patch->conditions, "%s{\"$patch\":\"delete\",\"type\":\"" KEY_PREFIX "%s/%s\"}",
                 patch->conditions.len > 0 ? "," : "[", p->skyhook, types[i]);
}

static void removed(node_shell *s, const shell_ticket *t, const write_outcome *how,
                    yyjson_val *json)
{
    (void)json;
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c)
        return;
    c->finalizing = false;
    c->finalize = how->kind != WRITE_DONE;
    if (how->kind == WRITE_CONFLICT) {
        conflict_met(s, &c->conflict, t->revision);
    } else if (how->kind != WRITE_DONE && how->kind != WRITE_GONE) {
        log_line(LOG_WARN, "Skyhook %s: the finalizer stays: %s", c->name, how->message);
        c->finalizer_held_until_ms = s->now_ms + SHELL_REFUSED_MS;
        if (how->kind == WRITE_REFUSED)
            events_finalizer_refused(s, c, how->message);
    }
}

static void remove_finalizer(node_shell *s, shell_change *c)
{
    str_list all = c->document->object.metadata->finalizers;
    const char *comma = "";
    buf body = BUF(SHELL_TEXT_BYTES);
    buf_addz(&body, "{\"metadata\":{\"finalizers\":[");
    for (size_t i = 0; i < all.len; i++) {
        if (str_eq(all.at[i], STR(CHANGE_FINALIZER)))
            continue;
        buf_addz(&body, comma);
        buf_add_json(&body, all.at[i]);
        comma = ",";
    }
    buf_addz(&body, "]}}");
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR("/apis/skyhook.nvidia.com/v1alpha1/skyhooks"),
                    .name = str_of(c->name),
                    .version = str_of(c->version),
                    .body = buf_str(&body)};
    c->finalizing = shell_send(
        s, &w, (shell_ticket){.done = removed, .skyhook = c->name, .revision = c->revision});
    s->counts.others += c->finalizing;
    buf_done(&body);
}

/* Whether nothing of the Skyhook is left there, or what is left does not go. */
static bool clean_up(node_shell *s, shell_place *p)
{
    if (p->sent || p->dirty) { /* what is left is seen from what stands there in the end */
        shell_queue(s, p->node);
        return false;
    }
    if (is_clean(p) || p->cleanups == CLEANUPS_MAX) {
        p->dirty = false;
        return true;
    }
    p->cleanup = p->dirty = true;
    p->cleanups++;
    shell_queue(s, p->node);
    s->due = true;
    return false;
}

void deletion_step(node_shell *s, shell_change *c)
{
    if (!c->finalize || c->finalizing || c->finalizer_held_until_ms > s->now_ms ||
        change_waits(s, c))
        return;
    bool clean = true;
    for (size_t i = 0; i < c->places.len; i++)
        clean &= clean_up(s, c->places.at[i]);
    if (clean)
        remove_finalizer(s, c);
}
