/* SPDX-License-Identifier: Apache-2.0 */
/* What people ask by the annotation of a Bundle (act_request.h): taken once, and removed by the
 * same write that makes what follows from it durable. Nothing of the Bundle is released before: so
 * a crash in between takes it again, which changes nothing. */
#include "base/log.h"
#include "base/mem.h"
#include "operator/act_request.h"
#include "operator/hub_internal.h"

void hub_acts_seen(cluster_shell *s, hub_bundle *b, yyjson_val *annotations)
{
    str text = read_text(annotations, KEY_BUNDLE_ACTS), old = hub_text(b->acts);
    if (str_eq(text, old))
        return;
    /* People add to the end: what was taken before is not taken again. */
    bool more = old.len > 0 && str_starts(text, str_part(old, 0, old.len - 1));
    if (!more)
        b->acts_taken = 0;
    b->acts_new = text.len > 0;
    if (text.len > 0)
        hub_set(s, &b->acts, text);
    else
        b->acts = mem_free(b->acts);
}

void hub_acts_take(cluster_shell *s, hub_bundle *b)
{
    if (!b->acts_new || !b->known)
        return;
    arena_place mark = arena_mark(s->scratch);
    act_list list = {0};
    err error;
    b->acts_new = false;
    act_subject of = {ACT_OF_BUNDLE, str_of(b->key)};
    if (!act_requests_read(s->scratch, str_of(b->acts), of, &list, &error))
        log_line(LOG_WARN, "Bundle %s: %s", b->key, error.text);
    for (size_t i = b->acts_taken; i < list.len; i++) {
        fact f = {.kind = FACT_ACT, .act = list.at[i]};
        hub_take(s, &f);
        log_line(LOG_INFO, "Bundle %s: act %zu was taken", b->key, i + 1);
    }
    b->acts_taken = list.len;
    b->record_stale = true;
    hub_touch(s, &b->clock, s->settings.status_every_ms);
    arena_rewind(s->scratch, mark);
}
