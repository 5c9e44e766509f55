/* SPDX-License-Identifier: Apache-2.0 */
/* sim_way.c - the way from the fleet to the engine, and what goes wrong on it.
 *
 * What a target or a document is like is told as it is when it arrives: late, it may be newer than
 * what was to be told, never older; that something is gone is told before it comes again. What
 * people do arrives in the order in which each of them did it. Different things overtake each
 * other by as much as they are late. What is lost is told again by nobody until everything is: the
 * shell lists the whole fleet anew from time to time. */
#include "sim/sim_internal.h"

#define RESYNC_MS (INT64_C(10) * 60 * 1000)

/* ---- what becomes of it ---- */

typedef enum fate { FATE_NOW, FATE_TWICE, FATE_LATE, FATE_LOST } fate;

static fate fate_of(sim *s)
{
    const sim_faults *f = &s->settings.faults;
    if (!f->way || !s->begun || !sim_faulty(s))
        return FATE_NOW;
    if (dice_percent(&s->dice, f->lost_percent))
        return FATE_LOST;
    if (dice_percent(&s->dice, f->late_percent))
        return FATE_LATE;
    return dice_percent(&s->dice, f->duplicate_percent) ? FATE_TWICE : FATE_NOW;
}

int64_t sim_resync_ms(sim *s, int64_t from_ms)
{
    int64_t start_ms = s->settings.start_ms;
    int64_t at_ms = start_ms + ((from_ms - start_ms) / RESYNC_MS + 1) * RESYNC_MS;
    if (at_ms != s->resync_ms) {
        s->resync_ms = at_ms;
        sim_memory(s, agenda_put(&s->agenda, at_ms, (agenda_entry){.kind = AGENDA_RESYNC}));
    }
    return at_ms;
}

/* Whether it is told now; if not, or if it is told once more, e says what. */
static bool sets_out(sim *s, agenda_entry e)
{
    fate f = fate_of(s);
    int64_t late_ms = f == FATE_LATE || f == FATE_TWICE
                          ? dice_between(&s->dice, 1, SIM_LATE_MS_MAX / 1000) * 1000
                          : 0;
    if (f == FATE_LOST)
        sim_resync_ms(s, s->now_ms);
    if (late_ms > 0)
        sim_memory(s, agenda_put(&s->agenda, s->now_ms + late_ms, e));
    return f == FATE_NOW || f == FATE_TWICE;
}

/* ---- targets ---- */

static bool target_arrives(sim *s, uint32_t target, err *error)
{
    herd_target *t = &s->herd.targets.at[target];
    if (!(t->flags & HERD_GONE))
        return sim_fact_target_now(s, target, error);
    if (!(t->flags & HERD_UNTOLD))
        return true;
    t->flags &= (uint16_t)~HERD_UNTOLD;
    fact f = {.kind = FACT_TARGET_GONE, .target = {.kind = (target_kind)t->kind, .name = t->name}};
    return sim_fact(s, &f, error);
}

bool sim_fact_target(sim *s, uint32_t target, err *error)
{
    return !sets_out(s, (agenda_entry){.kind = AGENDA_TARGET, .target = target}) ||
           target_arrives(s, target, error);
}

/* It may overtake what the node's job says, and be overtaken, but is heard of before the engine
 * stops waiting for it: no shell hears nothing of a node for so long. */
bool sim_fact_boot(sim *s, uint32_t target, err *error)
{
    agenda_entry e = {.kind = AGENDA_TARGET, .target = target};
    fate f = fate_of(s);
    if (f != FATE_LOST && f != FATE_LATE)
        return target_arrives(s, target, error);
    int64_t late_ms = dice_between(&s->dice, 1, SIM_LATE_MS_MAX / 1000) * 1000;
    return agenda_put(&s->agenda, s->now_ms + late_ms, e) || err_memory(error);
}

bool sim_rejoins(sim *s, target_kind kind, str name, err *error)
{
    const uint64_t *known = strmap_get(&s->herd.by_name[kind], name);
    return !known || !(s->herd.targets.at[*known].flags & HERD_GONE) ||
           target_arrives(s, (uint32_t)*known, error);
}

/* ---- documents ---- */

static bool same_object(const object *a, const object *b)
{
    return a->kind == b->kind && str_eq(a->metadata->name, b->metadata->name) &&
           str_eq(a->metadata->namespace_, b->metadata->namespace_);
}

static bool document_leaves(sim *s, const object *o, err *error)
{
    for (size_t i = 0; i < s->untold.len; i++)
        if (same_object(s->untold.at[i], o)) {
            fact f = {.kind = FACT_DOCUMENT_GONE, .document = s->untold.at[i]};
            s->untold.at[i] = s->untold.at[--s->untold.len];
            return sim_fact(s, &f, error);
        }
    return true;
}

static bool document_arrives(sim *s, const object *o, err *error)
{
    const object *present = NULL;
    for (size_t i = 0; i < s->documents.len; i++)
        if (same_object(s->documents.at[i], o))
            present = s->documents.at[i];
    if (!document_leaves(s, o, error) || !present)
        return s->no_memory ? err_memory(error) : true;
    fact f = {.kind = FACT_DOCUMENT, .document = present};
    if (!sim_fact(s, &f, error))
        return false;
    bool clusters = present->kind == KIND_BUNDLE || present->kind == KIND_CLUSTER_GROUP ||
                    present->kind == KIND_BUNDLE_NAMESPACE_MAPPING ||
                    present->kind == KIND_NAMESPACE;
    for (uint32_t t = 0; clusters && t < s->herd.targets.len; t++)
        if (s->herd.targets.at[t].kind == TARGET_CLUSTER &&
            !(s->herd.targets.at[t].flags & HERD_GONE) && !sim_fact_reports(s, t, error))
            return false;
    return true;
}

/* The agenda's entries are small: the object is found again by its number. */
bool sim_fact_document(sim *s, const object *o, err *error)
{
    agenda_entry e = {.kind = AGENDA_DOCUMENT, .number = (int64_t)s->on_the_way.len};
    if (s->settings.faults.way && !vec_push(&s->on_the_way, o))
        return err_memory(error);
    return !sets_out(s, e) || document_arrives(s, o, error);
}

bool sim_fact_document_gone(sim *s, const object *o, err *error)
{
    return (vec_push(&s->untold, o) || err_memory(error)) && sim_fact_document(s, o, error);
}

/* ---- people ---- */

/* What a person did is never lost: who gets no answer does it again. */
bool sim_fact_act(sim *s, const fact *f, err *error)
{
    fate of = fate_of(s);
    bool late = of == FATE_LOST || of == FATE_LATE, queued = s->acts_ms > s->now_ms;
    if (!late && !queued)
        return sim_fact(s, f, error) && (of != FATE_TWICE || sim_fact(s, f, error));
    int64_t at_ms = s->now_ms + dice_between(&s->dice, 1, SIM_LATE_MS_MAX / 1000) * 1000;
    s->acts_ms = queued && at_ms <= s->acts_ms ? s->acts_ms + 1000 : at_ms;
    agenda_entry e = {.kind = AGENDA_ACT, .number = (int64_t)s->acts.len};
    return (vec_push(&s->acts, *f) && agenda_put(&s->agenda, s->acts_ms, e)) || err_memory(error);
}

/* ---- arrivals ---- */

static bool resync(sim *s, err *error)
{
    sim_tell(s, "everything is listed anew");
    while (s->untold.len > 0)
        if (!document_leaves(s, s->untold.at[0], error))
            return false;
    for (size_t i = 0; i < s->documents.len; i++)
        if (!document_arrives(s, s->documents.at[i], error))
            return false;
    for (uint32_t t = 0; t < s->herd.targets.len; t++)
        if (!target_arrives(s, t, error))
            return false;
    return true;
}

bool sim_arrives(sim *s, const agenda_entry *e, err *error)
{
    switch ((agenda_kind)e->kind) {
    case AGENDA_TARGET: return target_arrives(s, e->target, error);
    case AGENDA_DOCUMENT: return document_arrives(s, s->on_the_way.at[e->number], error);
    case AGENDA_ACT: return sim_fact(s, &s->acts.at[e->number], error);
    case AGENDA_RESYNC: return resync(s, error);
    case AGENDA_STAGE:
    case AGENDA_DRAIN:
    case AGENDA_REPORT:
    case AGENDA_JOB: return true;
    }
    return true;
}
