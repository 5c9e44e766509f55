/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges under the names that users of Skyhook know, counted when they are asked for. */
#include <inttypes.h>

#include "operator/shell_internal.h"

static void put_head(buf *out, const char *name, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* What is finalised has no series any more, whoever else still holds it. */
static bool is_shown(const shell_change *c)
{
    if (!c->known)
        return false;
    const metadata *m = &c->document->object.skyhook->metadata;
    bool held = !m->deletion_timestamp.set;
    for (size_t i = 0; i < m->finalizers.len; i++)
        held |= str_eq(m->finalizers.at[i], STR(CHANGE_FINALIZER));
    return held;
}

typedef void (*change_writer)(const node_shell *s, const shell_change *c, buf *out);

static void put_each(const node_shell *s, change_writer put, buf *out)
{
    for (size_t i = 0; i < s->changes.len; i++) {
        const shell_change *c = (const shell_change *)(uintptr_t)s->changes.entries[i].value;
        if (is_shown(c))
            put(s, c, out);
    }
}

static void put_status(const node_shell *s, const shell_change *c, buf *out)
{
    (void)s;
    for (int state = SKYHOOK_UNKNOWN; state <= SKYHOOK_ERRORING; state++)
        buf_addf(out, "skyhook_status{skyhook_name=\"%s\",status=\"%s\"} %d\n", c->name,
                 skyhook_state_text((skyhook_state)state), c->status == state);
}

static void put_nodes(const node_shell *s, const shell_change *c, buf *out)
{
    (void)s;
    int64_t count[SKYHOOK_ERRORING + 1] = {0};
    for (size_t i = 0; i < c->places.len; i++)
        count[c->places.at[i]->selected ? c->places.at[i]->state_now : SKYHOOK_NONE]++;
    for (int state = SKYHOOK_UNKNOWN; state <= SKYHOOK_ERRORING; state++)
        buf_addf(out, "skyhook_node_status_count{skyhook_name=\"%s\",status=\"%s\"} %" PRId64 "\n",
                 c->name, skyhook_state_text((skyhook_state)state), count[state]);
}

static void put_targets(const node_shell *s, const shell_change *c, buf *out)
{
    (void)s;
    int64_t count = 0;
    for (size_t i = 0; i < c->places.len; i++)
        count += c->places.at[i]->selected;
    buf_addf(out, "skyhook_node_target_count{skyhook_name=\"%s\"} %" PRId64 "\n", c->name, count);
}

/* ---- packages ---- */

typedef struct package_count {
    int64_t nodes; /* that have it, in whatever version */
    int64_t states[PACKAGE_UNKNOWN + 1];
    int64_t stages[STAGE_UPGRADE + 1];
    int64_t restarts;
} package_count;

static void count_package(const node_shell *s, const shell_change *c, const package *of,
                          package_count *ret)
{
    *ret = (package_count){0};
    for (size_t i = 0; i < c->places.len; i++) {
        arena_place mark = arena_mark(s->scratch);
        node_view v = {0};
        if (c->places.at[i]->selected)
            engine_node(s->engine, str_of(c->name), str_of(c->places.at[i]->node->name), s->scratch,
                        &v);
        for (size_t k = 0; k < v.package_count; k++) {
            if (!str_eq(v.packages[k].name, of->name))
                continue;
            ret->nodes++;
            if (!str_eq(v.packages[k].version, of->version))
                continue;
            ret->states[v.packages[k].state]++;
            ret->stages[v.packages[k].stage]++;
            ret->restarts += v.packages[k].restarts;
        }
        arena_rewind(s->scratch, mark);
    }
}

static const char *const state_texts[] = {
#define X(name, text) text,
    PACKAGE_STATES(X)
#undef X
};
static const char *const stage_texts[] = {
#define X(name, text) text,
    PACKAGE_STAGES(X)
#undef X
};

static void put_series(buf *out, const char *name, const shell_change *c, const package *of)
{
    buf_addf(out, "%s{skyhook_name=\"%s\",package_name=\"%.*s\",package_version=\"%.*s\"", name,
             c->name, STR_ARG(of->name), STR_ARG(of->version));
}

enum { PUT_STATES, PUT_STAGES, PUT_RESTARTS };

static void put_packages(const node_shell *s, const shell_change *c, int what, buf *out)
{
    const skyhook_spec *spec = &c->document->object.skyhook->spec;
    bool deleting = c->document->object.skyhook->metadata.deletion_timestamp.set;
    for (size_t i = 0; i < spec->packages.len; i++) {
        const package *of = &spec->packages.at[i];
        package_count count;
        count_package(s, c, of, &count);
        bool removes =
            of->uninstall && of->uninstall->enabled && (of->uninstall->apply || deleting);
        if (removes && count.nodes == 0)
            continue; /* it was uninstalled: its series are gone */
        for (int k = 1; what == PUT_STATES && k <= PACKAGE_UNKNOWN; k++) {
            put_series(out, "skyhook_package_state_count", c, of);
            buf_addf(out, ",state=\"%s\"} %" PRId64 "\n", state_texts[k], count.states[k]);
        }
        for (int k = 1; what == PUT_STAGES && k <= STAGE_UPGRADE; k++) {
            put_series(out, "skyhook_package_stage_count", c, of);
            buf_addf(out, ",stage=\"%s\"} %" PRId64 "\n", stage_texts[k], count.stages[k]);
        }
        if (what == PUT_RESTARTS) {
            put_series(out, "skyhook_package_restarts_count", c, of);
            buf_addf(out, "} %" PRId64 "\n", count.restarts);
        }
    }
}

static void put_states(const node_shell *s, const shell_change *c, buf *out)
{
    put_packages(s, c, PUT_STATES, out);
}

static void put_stages(const node_shell *s, const shell_change *c, buf *out)
{
    put_packages(s, c, PUT_STAGES, out);
}

static void put_restarts(const node_shell *s, const shell_change *c, buf *out)
{
    put_packages(s, c, PUT_RESTARTS, out);
}

/* ---- compartments ---- */

#define ROLLOUT_GAUGES(X)                                                                          \
    X(matched_nodes, g->matched)                                                                   \
    X(ceiling, g->limit)                                                                           \
    X(in_progress, g->in_flight)                                                                   \
    X(completed, g->done)                                                                          \
    X(progress_percent, progress_percent(g->done, g->matched))                                     \
    X(current_batch, g->current_batch)                                                             \
    X(consecutive_failures, g->consecutive_failures)                                               \
    X(should_stop, g->stopped)

typedef struct rollout_writer {
    const node_shell *shell;
    size_t gauge;
    buf *out;
} rollout_writer;

static bool put_rollout(void *context, const group_view *g)
{
    const rollout_writer *w = context;
    const shell_change *c = shell_find_change(w->shell, g->change);
    if (g->kind != GROUP_COMPARTMENT || !c || !is_shown(c))
        return true;
    static const char *const names[] = {
#define X(name, value) #name,
        ROLLOUT_GAUGES(X)
#undef X
    };
    const int64_t values[] = {
#define X(name, value) value,
        ROLLOUT_GAUGES(X)
#undef X
    };
    str policy = c->document->object.skyhook->spec.deployment_policy;
    str strategy_text = str_eq(g->strategy, STR("none")) ? STR("unknown") : g->strategy;
    buf_addf(w->out,
             "skyhook_rollout_%s{skyhook_name=\"%s\",policy_name=\"%.*s\",compartment_name="
             "\"%.*s\",strategy=\"%.*s\"} %" PRId64 "\n",
             names[w->gauge], c->name, STR_ARG(policy.len > 0 ? policy : STR("legacy")),
             STR_ARG(g->name), STR_ARG(strategy_text), values[w->gauge]);
    return true;
}

static void put_rollouts(const node_shell *s, buf *out)
{
    static const char *const names[] = {
#define X(name, value) "skyhook_rollout_" #name,
        ROLLOUT_GAUGES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        rollout_writer w = {s, i, out};
        put_head(out, names[i], "of one compartment of one Skyhook");
        engine_groups(s->engine, put_rollout, &w);
    }
}

/* ---- all of it ---- */

void node_shell_metrics(const node_shell *s, buf *out)
{
    put_head(out, "skyhook_status", "1 for the status the Skyhook has now");
    put_each(s, put_status, out);
    put_head(out, "skyhook_node_status_count", "nodes by their status");
    put_each(s, put_nodes, out);
    put_head(out, "skyhook_node_target_count", "nodes that the Skyhook selects");
    put_each(s, put_targets, out);
    put_head(out, "skyhook_package_state_count", "nodes by the state of a package");
    put_each(s, put_states, out);
    put_head(out, "skyhook_package_stage_count", "nodes by the stage of a package");
    put_each(s, put_stages, out);
    put_head(out, "skyhook_package_restarts_count", "failed attempts of a package's stages");
    put_each(s, put_restarts, out);
    put_rollouts(s, out);
    buf_addf(out,
             "# HELP drover_operator_writes_total Writes that were sent.\n"
             "# TYPE drover_operator_writes_total counter\n"
             "drover_operator_writes_total{of=\"status\"} %" PRIu64 "\n"
             "drover_operator_writes_total{of=\"node\"} %" PRIu64 "\n"
             "drover_operator_writes_total{of=\"job\"} %" PRIu64 "\n"
             "drover_operator_writes_total{of=\"configmap\"} %" PRIu64 "\n"
             "drover_operator_writes_total{of=\"eviction\"} %" PRIu64 "\n"
             "drover_operator_writes_total{of=\"other\"} %" PRIu64 "\n",
             s->counts.statuses, s->counts.nodes, s->counts.jobs, s->counts.maps,
             s->counts.evictions, s->counts.others);
}
