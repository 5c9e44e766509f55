/* SPDX-License-Identifier: Apache-2.0 */
/* After a restart: the engine's state from what Skyhooks and nodes remember, and nothing else. */
#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"

#define RECORDS_BYTES (256u << 20)

/* A record that somebody broke is one that is not there; the engine sees by itself that the node's
 * state cannot be read. */
static bool is_record(node_shell *s, str text)
{
    arena_place mark = arena_mark(s->scratch);
    bool good = text.len > 0 && !memchr(text.ptr, '\n', text.len) &&
                yyjson_is_obj(json_parse(s->scratch, text, NULL));
    arena_rewind(s->scratch, mark);
    return good;
}

static void put_record(node_shell *s, shell_change *c, buf *out)
{
    buf older = BUF(SHELL_TEXT_BYTES);
    if (c->older && c->known)
        older_put(s, c, &older);
    str record = c->older ? buf_str(&older) : shell_text(c->kept);
    if (c->known && is_record(s, record))
        buf_addf(out, "nodes skyhook/%s %.*s\n", c->name, STR_ARG(record));
    out->failed |= older.failed;
    buf_done(&older);
    older_forget(c);
    c->kept = mem_free(c->kept);
}

static void put_records(node_shell *s, buf *out)
{
    for (size_t i = 0; i < s->changes.len; i++) {
        shell_change *c = (shell_change *)(uintptr_t)s->changes.entries[i].value;
        for (size_t k = 0; c->known && k < c->places.len; k++) {
            const shell_place *p = c->places.at[k];
            str record = place_text(s, p, NODE_RECORD);
            if (is_record(s, record))
                buf_addf(out, "nodes placement/%s/%s %.*s\n", c->name, p->node->name,
                         STR_ARG(record));
        }
        put_record(s, c, out);
    }
}

/* The last conditions of a claim are a write of their own, behind the one that ends it: whoever was
 * killed between the two left the old ones. */
static void look_at_conditions(node_shell *s, shell_place *p)
{
    arena_place mark = arena_mark(s->scratch);
    node_view v;
    if (!p->in_flight && p->conditions != 0 &&
        engine_node(s->engine, str_of(p->skyhook), str_of(p->node->name), s->scratch, &v) &&
        v.selected && conditions_wanted(&v) != p->conditions) {
        p->dirty = true;
        shell_queue(s, p->node);
    }
    arena_rewind(s->scratch, mark);
}

void shell_look_around(node_shell *s)
{
    for (size_t i = 0; i < s->changes.len; i++) {
        shell_change *c = (shell_change *)(uintptr_t)s->changes.entries[i].value;
        c->dirty = true;
        for (size_t k = 0; k < c->places.len; k++) {
            shell_look(s, c->places.at[k]);
            if (c->places.at[k]->in_flight)
                shell_look_after(s, c->places.at[k]);
            look_at_conditions(s, c->places.at[k]);
        }
    }
}

bool shell_restore(node_shell *s, err *error)
{
    buf records = BUF(RECORDS_BYTES);
    put_records(s, &records);
    bool good = !records.failed && engine_restore(s->engine, buf_str(&records), error);
    buf_done(&records);
    if (good)
        shell_look_around(s);
    return good;
}
