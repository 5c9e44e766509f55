/* SPDX-License-Identifier: Apache-2.0 */
/* Skyhooks that an older operator worked on: what it left in the status. */
#include "base/mem.h"
#include "operator/older_record.h"
#include "operator/shell_internal.h"

/* What an older operator left of a Skyhook. */
struct shell_older {
    char *status; /* JSON */
};

void older_forget(shell_change *c)
{
    if (!c->older)
        return;
    mem_free(c->older->status);
    c->older = mem_free(c->older);
}

void older_seen(node_shell *s, shell_change *c, yyjson_val *status)
{
    if (!older_wrote(status)) {
        older_forget(c);
        return;
    }
    if (!c->older && !(c->older = mem_zalloc(sizeof *c->older))) {
        shell_memory(s);
        return;
    }
    buf text = BUF(SHELL_TEXT_BYTES);
    older_status_put(&text, status);
    mem_free(c->older->status);
    c->older->status = shell_copy(s, buf_str(&text));
    if (text.failed)
        shell_memory(s);
    buf_done(&text);
}

void older_put(node_shell *s, const shell_change *c, buf *out)
{
    arena_place mark = arena_mark(s->scratch);
    str text = shell_text(c->older->status);
    yyjson_val *status = json_parse_within(s->scratch, text, SHELL_TEXT_BYTES, NULL);
    if (status)
        older_record_put(out, status, c->document->object.skyhook);
    arena_rewind(s->scratch, mark);
}
