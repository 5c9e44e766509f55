/* SPDX-License-Identifier: Apache-2.0 */
/* What a Skyhook's status shows: the engine's view in the words of its users. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "operator/shell_internal.h"

#define NAMES_SHOWN 10 /* of nodes in a message */

const char *skyhook_state_text(skyhook_state state)
{
    static const char *const texts[] = {
#define X(name, text) text,
        SKYHOOK_STATES(X)
#undef X
    };
    return texts[state];
}

/* ---- how many nodes are how ---- */

typedef struct roll_up {
    node_statuses nodes;
    int64_t ignored, tainted;
    held_view held;
    skyhook_state state;
} roll_up;

static void count_places(const node_shell *s, const shell_change *c, roll_up *r)
{
    *r = (roll_up){.held = engine_held(s->engine, str_of(c->name))};
    for (size_t i = 0; i < c->places.len; i++) {
        const shell_place *p = c->places.at[i];
        if (!p->selected)
            continue;
        r->nodes.all++;
        r->nodes.of[p->state_now]++;
        r->ignored += p->node->ignored;
        r->tainted += (p->troubles & TROUBLE_UNTOLERATED) != 0;
    }
    r->state = skyhook_status_of(c->document->object.skyhook, &r->nodes, r->held);
}

/* ---- messages ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

typedef bool (*place_test)(const shell_place *p, int state);

static bool in_state(const shell_place *p, int state)
{
    return p->state_now == state;
}

static bool is_ignored(const shell_place *p, int state)
{
    (void)state;
    return p->node->ignored;
}

static bool is_tainted(const shell_place *p, int state)
{
    (void)state;
    return p->troubles & TROUBLE_UNTOLERATED;
}

/* "a, b" of those that pass, sorted; at most NAMES_SHOWN do. */
static void put_names(const shell_change *c, place_test test, int state, buf *out)
{
    const char *names[NAMES_SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < c->places.len && count < NAMES_SHOWN; i++)
        if (c->places.at[i]->selected && test(c->places.at[i], state))
            names[count++] = c->places.at[i]->node->name;
    qsort(names, count, sizeof names[0], by_name);
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "%s%s", i > 0 ? ", " : "", names[i]);
}

static void put_bucket(const shell_change *c, const roll_up *r, int state, buf *out)
{
    if (r->nodes.of[state] == 0)
        return;
    if (r->nodes.of[state] > NAMES_SHOWN) {
        buf_addz(out, " (list truncated; see controller logs)");
        return;
    }
    buf_addz(out, " (");
    put_names(c, in_state, state, out);
    buf_addc(out, ')');
}

static void put_ready(const shell_change *c, const roll_up *r, buf *out)
{
    static const struct {
        skyhook_state state;
        const char *label;
    } buckets[] = {{SKYHOOK_IN_PROGRESS, "in progress"}, {SKYHOOK_BLOCKED, "blocked"},
                   {SKYHOOK_ERRORING, "erroring"},       {SKYHOOK_WAITING, "waiting"},
                   {SKYHOOK_PAUSED, "paused"},           {SKYHOOK_DISABLED, "disabled"},
                   {SKYHOOK_UNKNOWN, "unknown"}};
    buf_addf(out, "%" PRId64 "/%" PRId64 " nodes complete", r->nodes.of[SKYHOOK_COMPLETE],
             r->nodes.all);
    put_bucket(c, r, SKYHOOK_COMPLETE, out);
    for (size_t i = 0; i < sizeof buckets / sizeof buckets[0]; i++) {
        if (r->nodes.of[buckets[i].state] == 0)
            continue;
        buf_addf(out, ", %" PRId64 " %s", r->nodes.of[buckets[i].state], buckets[i].label);
        put_bucket(c, r, (int)buckets[i].state, out);
    }
}

static void put_skipped(const shell_change *c, place_test test, int64_t count, buf *out)
{
    bool ignored = test == is_ignored;
    const char *has = ignored ? "ignore label set" : "taints that are not tolerable";
    if (count == 0) {
        buf_addz(out,
                 ignored ? "No nodes have ignore label set." : "All nodes have tolerable taints.");
    } else if (count > NAMES_SHOWN) {
        buf_addf(out, "%" PRId64 " nodes have %s. Skipping.", count, has);
    } else {
        buf_addz(out, "Node [");
        put_names(c, test, 0, out);
        buf_addf(out, "] has %s. Skipping.", has);
    }
}

/* ---- conditions ---- */

typedef struct shown_condition {
    const char *type;
    bool holds;
    const char *reason;
    const buf *message;
} shown_condition;

typedef struct condition_writer {
    node_shell *shell;
    yyjson_val *before; /* the conditions as they were */
    int64_t generation;
    buf *out;
} condition_writer;

static void put_time(buf *out, int64_t ms)
{
    char text[MOMENT_TEXT_BYTES];
    moment at = {ms / 1000, 0};
    text[moment_format(at, text)] = '\0';
    buf_addf(out, "\"%s\"", text);
}

#define TRANSITION "Transition" /* is as old as its words, all others as their status */

static bool is_as_before(yyjson_val *one, const char *type, const shown_condition *c)
{
    bool by_words = strcmp(c->type, TRANSITION) == 0;
    return str_eq(read_text(one, "type"), str_of(type)) &&
           str_eq(read_text(one, "status"), c->holds ? STR("True") : STR("False")) &&
           (!by_words || (str_eq(read_text(one, "reason"), str_of(c->reason)) &&
                          str_eq(read_text(one, "message"), buf_str(c->message))));
}

static void put_condition(condition_writer *w, const char *prefix, shown_condition c)
{
    char type[128];
    snprintf(type, sizeof type, "%s%s", prefix, c.type);
    str since = STR_EMPTY;
    yyjson_arr_iter walk = yyjson_arr_iter_with(w->before);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (is_as_before(one, type, &c))
            since = read_text(one, "lastTransitionTime");
    buf_addf(w->out, "%s{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":",
             w->out->ptr[w->out->len - 1] == '[' ? "" : ",", type, c.holds ? "True" : "False",
             c.reason);
    buf_add_json(w->out, buf_str(c.message));
    buf_addf(w->out, ",\"observedGeneration\":%" PRId64 ",\"lastTransitionTime\":", w->generation);
    if (since.len > 0)
        buf_add_json(w->out, since);
    else
        put_time(w->out, w->shell->now_ms);
    buf_addc(w->out, '}');
}

static void put_both(condition_writer *w, shown_condition c)
{
    put_condition(w, "", c);
    put_condition(w, KEY_PREFIX, c);
}

static const char *ready_reason(skyhook_state state)
{
    switch (state) {
    case SKYHOOK_COMPLETE: return "NodesConverged";
    case SKYHOOK_IN_PROGRESS: return "Progressing";
    case SKYHOOK_BLOCKED: return "Blocked";
    case SKYHOOK_ERRORING: return "Erroring";
    case SKYHOOK_PAUSED: return "Paused";
    case SKYHOOK_WAITING: return "Waiting";
    case SKYHOOK_DISABLED: return "Disabled";
    case SKYHOOK_NONE:
    case SKYHOOK_UNKNOWN: break;
    }
    return "Unknown";
}

static void put_conditions(node_shell *s, shell_change *c, const roll_up *r, buf *out)
{
    const skyhook *of = c->document->object.skyhook;
    buf ready = BUF(SHELL_TEXT_BYTES), text = BUF(SHELL_TEXT_BYTES);
    condition_writer w = {.shell = s,
                          .before = c->conditions.len > 0
                                        ? json_parse(s->scratch, buf_str(&c->conditions), NULL)
                                        : NULL,
                          .generation = of->metadata.generation,
                          .out = out};
    bool complete = r->nodes.of[SKYHOOK_COMPLETE] == r->nodes.all;
    put_ready(c, r, &ready);
    buf_addc(out, '[');
    put_both(&w, (shown_condition){"Ready", complete, ready_reason(r->state), &ready});
    if (c->status != r->state && c->status != SKYHOOK_NONE)
        buf_addf(&text, "Transitioned [%s] -> [%s]", skyhook_state_text(c->status),
                 skyhook_state_text(r->state));
    put_condition(&w, KEY_PREFIX,
                  (shown_condition){TRANSITION, complete, skyhook_state_text(r->state),
                                    text.len > 0 ? &text : &ready});
    buf_clear(&text);
    put_skipped(c, is_tainted, r->tainted, &text);
    put_both(&w,
             (shown_condition){"TaintNotTolerable", r->tainted > 0, "TaintNotTolerable", &text});
    buf_clear(&text);
    put_skipped(c, is_ignored, r->ignored, &text);
    put_both(&w, (shown_condition){"NodesIgnored", r->ignored > 0, "NodesIgnored", &text});
    if (c->applying) {
        buf_clear(&text);
        buf_addz(&text, c->applying);
        put_both(&w, (shown_condition){"ApplyPackage", true, "ApplyPackage", &text});
    }
    if (r->held.policy_missing) {
        buf_clear(&text);
        buf_addf(&text, "DeploymentPolicy \"%.*s\" not found", STR_ARG(of->spec.deployment_policy));
        put_both(&w, (shown_condition){"DeploymentPolicyNotFound", true, "DeploymentPolicyNotFound",
                                       &text});
    }
    status_troubles troubles;
    status_troubles_find(s, c, &troubles);
    for (size_t i = 0; i < troubles.len; i++)
        put_condition(&w, "",
                      (shown_condition){troubles.at[i].type, true, troubles.at[i].reason,
                                        &troubles.at[i].message});
    status_troubles_done(&troubles);
    buf_addc(out, ']');
    out->failed |= ready.failed || text.failed;
    buf_done(&ready);
    buf_done(&text);
}

/* ---- compartments ---- */

typedef struct group_writer {
    const shell_change *change;
    yyjson_val *cohort; /* of the change's record: who holds claims */
    buf *out;
    bool *live; /* of the change's groups: they are still there */
} group_writer;

static void put_list(buf *out, const char *key, yyjson_val *list)
{
    if (yyjson_arr_size(list) == 0) {
        buf_addf(out, ",\"%s\":null", key);
        return;
    }
    buf_addf(out, ",\"%s\":", key);
    json_write(out, list);
}

static void put_count(buf *out, const char *key, int64_t value)
{
    if (value != 0)
        buf_addf(out, ",\"%s\":%" PRId64, key, value);
    else
        buf_addf(out, ",\"%s\":null", key);
}

static bool put_group(void *context, const group_view *g)
{
    group_writer *w = context;
    if (g->kind != GROUP_COMPARTMENT || !str_eq(g->change, str_of(w->change->name)))
        return true;
    yyjson_val *saved = yyjson_obj_getn(w->cohort, g->name.ptr, g->name.len);
    for (size_t i = 0; w->live && i < w->change->groups.len; i++)
        w->live[i] |= str_eq(str_of(w->change->groups.at[i]), g->name);
    buf *out = w->out;
    buf_addz(out, out->ptr[out->len - 1] == '{' ? "" : ",");
    buf_add_json(out, g->name);
    buf_addf(out,
             ":{\"matched\":%" PRId64 ",\"ceiling\":%" PRId64 ",\"inProgress\":%" PRId64
             ",\"completed\":%" PRId64 ",\"progressPercent\":%" PRId64
             ",\"batchState\":{\"currentBatch\":%" PRId64,
             g->matched, g->limit, g->in_flight, g->done, progress_percent(g->done, g->matched),
             g->current_batch);
    put_count(out, "consecutiveFailures", g->consecutive_failures);
    put_count(out, "completedNodes", g->completed);
    put_count(out, "failedNodes", g->failed);
    put_count(out, "lastBatchSize", g->last_batch_size);
    buf_addf(out, ",\"shouldStop\":%s", g->stopped ? "true" : "null");
    buf_addf(out, ",\"lastBatchFailed\":%s", g->last_batch_failed ? "true" : "null");
    put_list(out, "members", yyjson_obj_get(saved, "members"));
    put_list(out, "retrying", yyjson_obj_get(saved, "retrying"));
    buf_addz(out, "}}");
    return true;
}

static void put_groups(node_shell *s, const shell_change *c, yyjson_val *cohort, buf *out)
{
    group_writer groups = {c, cohort, out, ARENA_ARRAY(s->scratch, c->groups.len + 1, bool)};
    if (!groups.live)
        shell_memory(s);
    for (size_t i = 0; groups.live && i < c->groups.len; i++)
        groups.live[i] = false;
    buf_addz(out, ",\"compartmentStatuses\":{");
    engine_groups(s->engine, put_group, &groups);
    for (size_t i = 0; groups.live && i < c->groups.len; i++) {
        if (groups.live[i])
            continue;
        buf_addz(out, out->ptr[out->len - 1] == '{' ? "" : ",");
        buf_add_json(out, str_of(c->groups.at[i]));
        buf_addz(out, ":null");
    }
    buf_addc(out, '}');
}

/* ---- nodes ---- */

static void put_node(buf *out, const shell_place *p, str value)
{
    buf_addz(out, out->ptr[out->len - 1] == '{' ? "" : ",");
    buf_add_json(out, str_of(p->node->name));
    buf_addc(out, ':');
    if (value.len > 0)
        buf_add(out, value);
    else
        buf_addz(out, "null");
}

/* Those that left are shown no more, unless they have come back. */
static void put_left(const node_shell *s, const shell_change *c, buf *out)
{
    for (size_t i = 0; i < c->left.len; i++) {
        const shell_place *p = shell_find_place(s, str_of(c->name), str_of(c->left.at[i]));
        if (p && p->selected)
            continue;
        buf_addz(out, out->ptr[out->len - 1] == '{' ? "" : ",");
        buf_add_json(out, str_of(c->left.at[i]));
        buf_addz(out, ":null");
    }
    buf_addc(out, '}');
}

static void put_boots(const shell_change *c, buf *out)
{
    buf text = BUF(SHELL_TEXT_BYTES);
    buf_addz(out, ",\"nodeBootIds\":{");
    for (size_t i = 0; i < c->places.len; i++) {
        const shell_place *p = c->places.at[i];
        buf_clear(&text);
        buf_add_json(&text, shell_text(p->node->boot));
        if (p->mirror_dirty)
            put_node(out, p, p->selected ? buf_str(&text) : STR_EMPTY);
    }
    out->failed |= text.failed;
    buf_done(&text);
}

/* What stands on the node, unless somebody made it something else than JSON: one such node would
 * spoil the status of all. */
static str mirrored_state(const node_shell *s, const shell_place *p)
{
    arena_place mark = arena_mark(s->scratch);
    str text = p->selected ? place_text(s, p, NODE_NODE_STATE) : STR_EMPTY;
    bool good = text.len > 0 && yyjson_is_obj(json_parse(s->scratch, text, NULL));
    arena_rewind(s->scratch, mark);
    return good ? text : STR_EMPTY;
}

/* Behind a node's state: nothing of what it lost. */
static void put_lost(const node_shell *s, const shell_change *c, str state, buf *out)
{
    arena_place mark = arena_mark(s->scratch);
    yyjson_val *now = c->lost.len > 0 ? json_parse(s->scratch, state, NULL) : NULL;
    for (size_t i = 0; i < c->lost.len; i++) {
        if (yyjson_obj_get(now, c->lost.at[i]))
            continue;
        out->len--; /* the last brace */
        buf_addz(out, out->ptr[out->len - 1] == '{' ? "" : ",");
        buf_add_json(out, str_of(c->lost.at[i]));
        buf_addz(out, ":null}");
    }
    arena_rewind(s->scratch, mark);
}

static void put_states(const node_shell *s, const shell_change *c, buf *out)
{
    buf_addz(out, ",\"nodeState\":{");
    for (size_t i = 0; i < c->places.len; i++) {
        const shell_place *p = c->places.at[i];
        str text = p->mirror_dirty ? mirrored_state(s, p) : STR_EMPTY;
        if (p->mirror_dirty)
            put_node(out, p, text);
        if (text.len > 0)
            put_lost(s, c, text, out);
    }
    put_left(s, c, out);
    buf_addz(out, ",\"nodeStatus\":{");
    char text[32];
    for (size_t i = 0; i < c->places.len; i++) {
        const shell_place *p = c->places.at[i];
        snprintf(text, sizeof text, "\"%s\"", skyhook_state_text(p->state_now));
        if (p->mirror_dirty)
            put_node(out, p, p->selected ? str_of(text) : STR_EMPTY);
    }
    put_left(s, c, out);
}

/* Above so many nodes only their own annotations tell. */
static void put_mirror(const node_shell *s, shell_change *c, bool mirrored, buf *out)
{
    if (!mirrored) {
        buf_addz(out, ",\"nodeState\":null,\"nodeStatus\":null,\"nodeBootIds\":null");
        return;
    }
    put_states(s, c, out);
    put_boots(c, out);
    put_left(s, c, out);
}

static void put_priority(const node_shell *s, const shell_change *c, buf *out)
{
    char text[MOMENT_TEXT_BYTES + 2];
    buf_addz(out, ",\"nodePriority\":{");
    for (size_t i = 0; i < c->places.len; i++) {
        const shell_place *p = c->places.at[i];
        if (!p->mirror_dirty)
            continue;
        moment at = {p->claim_ms / 1000, 0};
        text[0] = '"';
        size_t len = moment_format(at, text + 1);
        text[len + 1] = '"';
        put_node(out, p, p->in_order ? (str){text, len + 2} : STR_EMPTY);
    }
    put_left(s, c, out);
}

/* ---- all of it ---- */

static void put_packages(const skyhook *of, buf *out)
{
    buf text = BUF(SHELL_TEXT_BYTES);
    for (size_t i = 0; i < of->spec.packages.len; i++)
        buf_addf(&text, "%s%.*s:%.*s", i > 0 ? "," : "", STR_ARG(of->spec.packages.at[i].name),
                 STR_ARG(of->spec.packages.at[i].version));
    buf_add_json(out, buf_str(&text));
    buf_done(&text);
}

void status_put(node_shell *s, shell_change *c, yyjson_val *record, str stored, buf *out)
{
    const skyhook *of = c->document->object.skyhook;
    roll_up r;
    count_places(s, c, &r);
    bool mirrored = r.nodes.all <= SHELL_MIRROR_NODES;
    for (size_t i = 0; mirrored && !c->mirrored && i < c->places.len; i++)
        c->places.at[i]->mirror_dirty = true;
    c->mirrored = mirrored;
    if (r.state == SKYHOOK_COMPLETE)
        c->observed_generation = of->metadata.generation;
    buf_addf(out,
             "{\"status\":\"%s\",\"observedGeneration\":%" PRId64 ",\"nodesInProgress\":%" PRId64
             ",\"completeNodes\":\"%" PRId64 "/%" PRId64 "\",\"nodeOrderOffset\":%" PRId64
             ",\"packageList\":",
             skyhook_state_text(r.state), c->observed_generation, nodes_in_progress(&r.nodes),
             r.nodes.of[SKYHOOK_COMPLETE], r.nodes.all,
             yyjson_get_sint(yyjson_obj_get(record, "offset")));
    put_packages(of, out);
    put_groups(s, c, yyjson_obj_get(record, "cohort"), out);
    status_installed_put(s, c, out);
    buf_addz(out, ",\"drover\":");
    buf_add_json(out, stored);
    buf_clear(&c->next_conditions);
    put_conditions(s, c, &r, &c->next_conditions);
    buf_addz(out, ",\"conditions\":");
    buf_add(out, buf_str(&c->next_conditions));
    buf_addz(out, ",\"configUpdates\":");
    if (!engine_config_updates(s->engine, str_of(c->name), out))
        shell_memory(s);
    put_priority(s, c, out);
    put_mirror(s, c, mirrored, out);
    buf_addc(out, '}');
    c->next_status = (uint8_t)r.state;
}
