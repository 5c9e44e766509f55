/* SPDX-License-Identifier: Apache-2.0 */
/* What must survive a restart, and whether the steps came to what a look at everything would. */
#include "engine/clusters_internal.h"

#include <inttypes.h>

#include "base/mem.h"
#include "model/document.h"

#define IDS_SUFFIX "#ids" /* sorts before any other name that begins with the bundle's */

static str text_of(const clusters *c, name_id n)
{
    return names_text(c->core->names, n);
}

/* ---- saving ---- */

static void save_text(buf *out, const clusters *c, const char *key, text_id value, bool *any)
{
    if (!value)
        return;
    buf_addf(out, "%s\"%s\":", *any ? "," : "", key);
    buf_add_json(out, text_kept(c, value));
    *any = true;
}

static void save_flag(buf *out, const char *key, bool value, bool *any)
{
    if (!value)
        return;
    buf_addf(out, "%s\"%s\":true", *any ? "," : "", key);
    *any = true;
}

/* What is in flight, or has ended and no step has said so yet: after a restart the reports show
 * again how. */
static text_id flight_to_tell(const clusters *c, const placed *at)
{
    for (size_t i = 0; !at->flight && i < c->ended.len; i++)
        if (c->ended.at[i].id == at->id)
            return c->ended.at[i].version;
    return at->flight;
}

static void save_placed(buf *out, const clusters *c, const placed *at)
{
    bool any = false;
    buf_add_json(out, text_of(c, at->label));
    buf_addz(out, ":{");
    save_text(out, c, "applied", at->claimed ? at->applied : 0, &any);
    save_text(out, c, "claim", at->claimed ? at->live : 0, &any);
    save_text(out, c, "flight", flight_to_tell(c, at), &any);
    save_text(out, c, "given", at->given, &any);
    save_flag(out, "failed", at->failed && at->live == at->given, &any);
    save_flag(out, "again", at->again, &any);
    save_flag(out, "offline", at->offline, &any);
    buf_addc(out, '}');
}

static void save_bundle(buf *out, const bundle_record *b, arena *scratch)
{
    const clusters *c = b->self;
    size_t count = 0;
    member_id *order = members_in_order(b, scratch, &count);
    out->failed |= !order;
    buf_addz(out, "clusters ");
    buf_add(out, text_of(c, b->change));
    buf_addf(out, " {\"settings\":\"%016" PRIx64 "\",\"wish\":\"%016" PRIx64 "\"", b->roll.settings,
             b->wish);
    bool any = true;
    save_flag(out, "paused", b->act_paused, &any);
    save_flag(out, "resumed", b->resumed, &any);
    partition_rollout_save(&b->roll, out);
    buf_addz(out, ",\"placed\":{");
    any = false;
    for (size_t i = 0; order && i < count; i++) {
        const placed *at = &b->members.at[order[i]];
        if (!at->claimed && !flight_to_tell(c, at) && !at->given && !at->again && !at->offline)
            continue;
        if (any)
            buf_addc(out, ',');
        any = true;
        save_placed(out, c, at);
    }
    buf_addz(out, "}}\n");
}

/* Apart from the rest: a shell that keeps the record with the Bundle may leave the numbers out. */
static void save_ids(buf *out, const bundle_record *b, arena *scratch)
{
    const clusters *c = b->self;
    size_t count = 0;
    member_id *order = members_in_order(b, scratch, &count);
    out->failed |= !order;
    buf_addz(out, "clusters ");
    buf_add(out, text_of(c, b->change));
    buf_addz(out, IDS_SUFFIX " {");
    for (size_t i = 0; order && i < count; i++) {
        const placed *at = &b->members.at[order[i]];
        buf_addz(out, i > 0 ? "," : "");
        buf_add_json(out, text_of(c, at->label));
        buf_addf(out, ":%u", at->id);
    }
    buf_addz(out, "}\n");
}

static void save_all(const clusters *c, bool numbered, buf *out)
{
    arena *scratch scoped(arena_cleanup) = arena_new(0);
    if (!scratch) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < c->bundles.len; i++)
        if (c->bundles.at[i]->present) {
            save_bundle(out, c->bundles.at[i], scratch);
            if (numbered)
                save_ids(out, c->bundles.at[i], scratch);
        }
}

void clusters_save(const void *self, buf *out)
{
    save_all(self, true, out);
}

void clusters_save_unnumbered(const void *self, buf *out)
{
    save_all(self, false, out);
}

/* ---- restoring ---- */

static bool find_member(void *context, str called, member_id *ret)
{
    const bundle_record *b = context;
    const uint64_t *found = strmap_get(&b->by_label, called);
    if (found)
        *ret = (member_id)*found;
    return found != NULL;
}

static text_id text_in(clusters *c, yyjson_val *from, const char *key)
{
    yyjson_val *value = yyjson_obj_get(from, key);
    return yyjson_is_str(value) ? text_keep(c, (str){yyjson_get_str(value), yyjson_get_len(value)})
                                : 0;
}

static bool flag_in(yyjson_val *from, const char *key)
{
    return yyjson_get_bool(yyjson_obj_get(from, key));
}

/* Reports that were taken in already may show that a claim has been carried out since. */
static void restore_placed(bundle_record *b, member_id m, yyjson_val *saved)
{
    clusters *c = b->self;
    placed *at = &b->members.at[m];
    text_id claim = text_in(c, saved, "claim");
    at->flight = text_in(c, saved, "flight");
    at->given = text_in(c, saved, "given");
    at->again = flag_in(saved, "again");
    at->offline = flag_in(saved, "offline");
    if (claim && claim != at->live) {
        at->live = claim;
        at->applied = text_in(c, saved, "applied");
        at->ready = at->failed = false;
        at->claimed = true;
    }
    placed_judge(b, m);
    clock_update(b, m);
}

/* A failure that was reported since counts like one that is reported now. */
static void restore_failure(bundle_record *b, member_id m, yyjson_val *saved)
{
    const placed *at = &b->members.at[m];
    bool counts =
        at->failed && !flag_in(saved, "failed") && at->live == at->wanted && at->live == at->given;
    if (counts && partitions_failed(b->roll.pacing, m))
        b->roll.halted_now = true;
}

/* The same where only failures that were seen are on record. */
static void restore_new_failures(bundle_record *b, yyjson_val *saved)
{
    yyjson_val *known = yyjson_obj_get(saved, "placed");
    for (member_id m = 0; m < b->members.len; m++) {
        str name = b->members.at[m].present ? text_of(b->self, b->members.at[m].label) : STR_EMPTY;
        if (name.len > 0 && !yyjson_obj_getn(known, name.ptr, name.len))
            restore_failure(b, m, NULL);
    }
}

static bool same_hash(yyjson_val *from, const char *key, uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    yyjson_val *value = yyjson_obj_get(from, key);
    return yyjson_is_str(value) && yyjson_equals_str(value, text);
}

static str part_of(arena *a, yyjson_val *value)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    json_write(&text, value);
    str copy = text.failed ? (str){NULL, 0} : arena_str(a, buf_str(&text));
    buf_done(&text);
    return copy;
}

static void restore_bundle(bundle_record *b, yyjson_val *saved)
{
    b->act_paused = flag_in(saved, "paused");
    b->resumed = flag_in(saved, "resumed") && b->document->spec.paused;
    partition_rollout_restore(&b->roll, saved);
    b->roll.cut_due = !same_hash(saved, "settings", b->roll.settings);
    b->roll.work_changed = b->roll.edited = !same_hash(saved, "wish", b->wish);
    b->roll.dirty = true;
}

static void restore_members(bundle_record *b, yyjson_val *saved,
                            void (*restore)(bundle_record *b, member_id m, yyjson_val *saved))
{
    size_t i, max;
    yyjson_val *called, *value;
    yyjson_obj_foreach(yyjson_obj_get(saved, "placed"), i, max, called, value)
    {
        member_id m;
        if (find_member(b, (str){yyjson_get_str(called), yyjson_get_len(called)}, &m))
            restore(b, m, value);
    }
}

/* ---- numbers ---- */

static void restore_ids(bundle_record *b, yyjson_val *saved)
{
    size_t i, max;
    yyjson_val *called, *value;
    yyjson_obj_foreach(saved, i, max, called, value)
    {
        member_id m;
        if (find_member(b, (str){yyjson_get_str(called), yyjson_get_len(called)}, &m))
            b->members.at[m].id = core_numbered(b->self->core, yyjson_get_sint(value));
    }
}

void clusters_unnumber(void *self)
{
    clusters *c = self;
    for (size_t i = 0; i < c->bundles.len; i++)
        for (member_id m = 0; m < c->bundles.at[i]->members.len; m++)
            c->bundles.at[i]->members.at[m].id = PLACEMENT_UNNUMBERED;
}

static int by_id(const void *a, const void *b)
{
    const placed_ref *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

void clusters_number(void *self)
{
    clusters *c = self;
    c->placements.len = 0; /* there is room: it had them all before */
    for (size_t i = 0; i < c->clusters.len; i++) {
        cluster_record *r = &c->clusters.at[i];
        for (size_t k = 0; k < r->placed.len; k++) {
            placed *at = &r->placed.at[k].bundle->members.at[r->placed.at[k].member];
            if (at->id == PLACEMENT_UNNUMBERED)
                at->id = c->core->next_placement++;
            r->placed.at[k].id = at->id;
            c->core->no_memory |= !vec_push(&c->placements, r->placed.at[k]);
        }
    }
    if (c->placements.len > 1)
        qsort(c->placements.at, c->placements.len, sizeof *c->placements.at, by_id);
    for (size_t i = 0; i < c->ended.len; i++) { /* found ended before they had their numbers */
        ended_claim *ended = &c->ended.at[i];
        bundle_record *b = bundle_find(c, text_of(c, ended->change));
        member_id m;
        if (b && find_member(b, text_of(c, ended->label), &m))
            ended->id = b->members.at[m].id;
    }
}

bool clusters_restore(void *self, str key, str json, err *error)
{
    clusters *c = self;
    bool ids = str_ends(key, STR(IDS_SUFFIX));
    if (ids)
        key.len -= sizeof IDS_SUFFIX - 1;
    bundle_record *b = bundle_find(c, key);
    if (!b)
        return true; /* it was deleted since */
    arena *scratch scoped(arena_cleanup) = arena_new(0);
    yyjson_val *saved = scratch ? json_parse(scratch, json, error) : NULL;
    if (!saved)
        return scratch ? false : err_memory(error);
    if (ids) {
        restore_ids(b, saved);
        return true;
    }
    restore_bundle(b, saved);
    restore_members(b, saved, restore_placed);
    str rollout = part_of(scratch, yyjson_obj_get(saved, "rollout"));
    if (!rollout.ptr)
        return err_memory(error);
    if (!partitions_restore(b->roll.pacing, rollout, find_member, error))
        return false;
    if (flag_in(saved, "kept"))
        restore_from_reports(b);
    restore_members(b, saved, restore_failure);
    if (flag_in(saved, "kept") && !flag_in(saved, "unlisted"))
        restore_new_failures(b, saved);
    for (member_id m = 0; m < b->members.len; m++) {
        if (!b->members.at[m].present)
            continue;
        c->core->no_memory |= !partitions_assign(b->roll.pacing, m);
        placed_refresh(b, m);
    }
    return !c->core->no_memory || err_memory(error);
}

/* ---- everything from scratch ---- */

static bool full_member(bundle_record *b, member_id m, text_id wanted, err *error)
{
    clusters *c = b->self;
    const placed *at = &b->members.at[m];
    str name = text_of(c, at->label);
    if (!at->present || at->wanted != wanted)
        return err_set(error, "%.*s should run another version", STR_ARG(name));
    if (partitions_get(b->roll.pacing, m) != placed_flags(b, at))
        return err_set(error, "%.*s is not what the partitions think", STR_ARG(name));
    int64_t due = offline_at(b, at);
    bool on_clock = at->clock > 0 && at->clock <= b->clock.len && b->clock.at[at->clock - 1] == m;
    if (on_clock != (due != REASON_NEVER && !at->offline))
        return err_set(error, "%.*s is missing on the clock", STR_ARG(name));
    return true;
}

static bool full_bundle(bundle_record *b, err *error)
{
    clusters *c = b->self;
    size_t targets = 0;
    for (size_t i = 0; i < c->clusters.len; i++) {
        const cluster_record *r = &c->clusters.at[i];
        wish wanted = r->present ? wanted_version(b, r) : (wish){0};
        member_id m = placed_on(b, r);
        if (!wanted.version)
            continue;
        targets++;
        if (m == PLACED_NONE)
            return err_set(error, "%.*s should be a target", STR_ARG(text_of(c, r->name)));
        if (b->members.at[m].refused != wanted.refused)
            return err_set(error, "%.*s has other values", STR_ARG(text_of(c, r->name)));
        if (!full_member(b, m, wanted.version, error))
            return false;
    }
    if (targets != b->by_label.len)
        return err_set(error, "%zu targets, %zu placements", targets, b->by_label.len);
    bool held = bundle_paused(b) || partitions_halted(b->roll.pacing);
    bool settled = !b->roll.dirty && !held && !b->roll.cut_due && !b->roll.work_changed;
    return partitions_check(b->roll.pacing, c->core->now_ms, settled, error);
}

bool clusters_full(void *self, err *error)
{
    clusters *c = self;
    for (size_t i = 0; i < c->bundles.len; i++) {
        bundle_record *b = c->bundles.at[i];
        if (b->present && !full_bundle(b, error))
            return err_wrap(error, "bundle %.*s", STR_ARG(text_of(c, b->change)));
    }
    return true;
}

static bool check_placed(const bundle_record *b, member_id m, err *error)
{
    const placed *at = &b->members.at[m];
    str name = text_of(b->self, at->label);
    if (at->claimed && !at->live)
        return err_set(error, "I2: %.*s has a claim on nothing", STR_ARG(name));
    if (at->flight && at->claimed && at->live != at->flight)
        return err_set(error, "I5: %.*s claims one version and flies another", STR_ARG(name));
    if (at->flight && placed_done(at) && at->flight == at->live)
        return err_set(error, "I5: %.*s is done and still in flight", STR_ARG(name));
    return true;
}

bool clusters_check(const void *self, err *error)
{
    const clusters *c = self;
    for (size_t i = 0; i < c->bundles.len; i++) {
        const bundle_record *b = c->bundles.at[i];
        for (member_id m = 0; b->present && m < b->members.len; m++)
            if (b->members.at[m].present && !check_placed(b, m, error))
                return err_wrap(error, "bundle %.*s", STR_ARG(text_of(c, b->change)));
    }
    return true;
}
