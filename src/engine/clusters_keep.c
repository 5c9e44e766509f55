/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles on clusters for a shell that keeps its state in objects: what a BundleDeployment is to
 * say, and the little that must be kept beside it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "engine/clusters_internal.h"

static str text_of(const clusters *c, name_id n)
{
    return names_text(c->core->names, n);
}

/* ---- what is kept ---- */

static void keep_placed(const bundle_record *b, const placed *at, bool *any, buf *out)
{
    if (*any)
        buf_addc(out, ',');
    *any = true;
    buf_add_json(out, text_of(b->self, at->label));
    const char *comma = "";
    buf_addz(out, ":{");
    if (at->failed) {
        buf_addz(out, "\"failed\":true");
        comma = ",";
    }
    if (at->again) {
        buf_addf(out, "%s\"again\":true", comma);
        comma = ",";
    }
    if (at->offline)
        buf_addf(out, "%s\"offline\":true", comma);
    buf_addc(out, '}');
}

/* Which failures were seen matters only where failures are counted. */
static bool worth_keeping(const bundle_record *b, const placed *at)
{
    bool counted = b->strategy.failure_threshold.set && at->failed && at->live == at->given;
    return at->present && (counted || at->again);
}

bool clusters_keep(const void *self, str change, buf *out)
{
    return clusters_keep_less(self, change, KEEP_MEMBERS, out);
}

bool clusters_keep_less(const void *self, str change, keep_detail detail, buf *out)
{
    const bundle_record *b = bundle_find(self, change);
    if (!b)
        return false;
    arena *scratch scoped(arena_cleanup) = arena_new(0);
    size_t count = 0;
    bool any = false;
    member_id *order = scratch ? members_in_order(b, scratch, &count) : NULL;
    out->failed |= !order;
    buf_addf(out, "{\"kept\":true,\"settings\":\"%016" PRIx64 "\",\"wish\":\"%016" PRIx64 "\"",
             b->roll.settings, b->wish);
    if (b->act_paused)
        buf_addz(out, ",\"paused\":true");
    if (b->resumed)
        buf_addz(out, ",\"resumed\":true");
    if (detail == KEEP_LEAST) /* which failures were seen: none of them is counted again */
        buf_addz(out, ",\"unlisted\":true");
    partition_rollout_keep(&b->roll, detail, out);
    buf_addz(out, ",\"placed\":{");
    for (size_t i = 0; order && i < count && detail != KEEP_LEAST; i++)
        if (worth_keeping(b, &b->members.at[order[i]]))
            keep_placed(b, &b->members.at[order[i]], &any, out);
    buf_addz(out, "}}");
    return true;
}

/* A deployment is the release made durable: what is live was released, and is in flight until its
 * agent has applied it. */
void restore_from_reports(bundle_record *b)
{
    for (member_id m = 0; m < b->members.len; m++) {
        placed *at = &b->members.at[m];
        if (!at->present || !at->live)
            continue;
        at->given = at->live;
        at->flight = at->live == at->wanted && at->applied != at->live ? at->live : 0;
        placed_judge(b, m);
    }
}

/* ---- what a deployment is to say ---- */

static uint64_t mixed(uint64_t sum, uint64_t more)
{
    return (sum ^ more) * UINT64_C(0x9e3779b97f4a7c15) + (sum >> 29);
}

/* Cheap to make: it is asked for after every step. */
static uint64_t fingerprint(const bundle_record *b, const partition_figures *figures)
{
    uint64_t sum = mixed(b->roll.settings, b->wish);
    unsigned flags = (b->act_paused ? 1u : 0) | (b->resumed ? 2u : 0) | (b->roll.running ? 4u : 0) |
                     (partitions_halted(b->roll.pacing) ? 8u : 0);
    sum = mixed(mixed(sum, figures->cuts), b->moves);
    sum = mixed(mixed(sum, flags), (uint64_t)partitions_failures(b->roll.pacing));
    bool soaks = b->strategy.soak_seconds.set;
    for (size_t i = 0; i < partitions_count(b->roll.pacing); i++) {
        partition_view view;
        partitions_view(b->roll.pacing, i, &view);
        sum = mixed(sum, view.approved);
        sum = mixed(sum, soaks ? (uint64_t)view.ready_since_ms : 0);
    }
    return sum;
}

bool clusters_bundle(const void *self, str change, bundle_view *ret)
{
    const clusters *c = self;
    const bundle_record *b = bundle_find(c, change);
    if (!b)
        return false;
    partition_figures figures = partitions_figures(b->roll.pacing);
    *ret = (bundle_view){
        .manifest = b->manifest,
        .paused = bundle_paused(b),
        .halted = partitions_halted(b->roll.pacing),
        .partitions = partitions_count(b->roll.pacing),
        .cuts = figures.cuts,
        .fingerprint = fingerprint(b, &figures),
        .unavailable = figures.unavailable,
        .max_unavailable = figures.cap,
        .created = b->roll.last_released ? b->roll.last.created : 0,
        .not_ready = b->roll.last.not_ready,
        .max_not_ready = figures.budget,
    };
    return true;
}

bool clusters_bundle_partition(const void *self, str change, size_t index, group_view *ret)
{
    const bundle_record *b = bundle_find(self, change);
    if (!b || index >= partitions_count(b->roll.pacing))
        return false;
    *ret = bundle_group(b, index);
    return true;
}

static const placed *find(const clusters *c, str change, str target, bundle_record **ret)
{
    bundle_record *b = *ret = bundle_find(c, change);
    const uint64_t *found = b ? strmap_get(&b->by_label, target) : NULL;
    return found ? &b->members.at[*found] : NULL;
}

bool clusters_deployment(const void *self, str change, str target, deployment_view *ret)
{
    const clusters *c = self;
    bundle_record *b;
    const placed *at = find(c, change, target, &b);
    if (!at)
        return false;
    *ret = (deployment_view){
        .id = at->id,
        .wanted = text_kept(c, at->wanted),
        .refused = text_kept(c, at->refused),
        .hindered = text_kept(c, at->hindered),
        .partition = partitions_of(b->roll.pacing, (member_id)(at - b->members.at)),
        .released = at->claimed && at->live == at->wanted,
    };
    return true;
}

str clusters_deployment_options(void *self, str change, str target, arena *a, err *error)
{
    clusters *c = self;
    bundle_record *b;
    const placed *at = find(c, change, target, &b);
    if (!at) {
        err_set(error, "%.*s is no target of %.*s", STR_ARG(target), STR_ARG(change));
        return (str){NULL, 0};
    }
    return wanted_options(b, &c->clusters.at[at->cluster], a, error);
}

bool clusters_in_group(const void *self, engine_cluster of, str group)
{
    const clusters *c = self;
    char key[2 * LIMIT_NAME_BYTES + 2];
    int len = snprintf(key, sizeof key, "%.*s/%.*s", STR_ARG(of.namespace_), STR_ARG(of.name));
    const uint64_t *number = len > 0 && (size_t)len < sizeof key
                                 ? strmap_get(&c->cluster_numbers, (str){key, (size_t)len})
                                 : NULL;
    const cluster_record *r = number ? &c->clusters.at[*number] : NULL;
    for (size_t i = 0; r && r->present && i < r->groups.len; i++)
        if (str_eq(text_of(c, c->groups.at[r->groups.at[i]].name), group))
            return true;
    return false;
}
