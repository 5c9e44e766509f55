/* SPDX-License-Identifier: Apache-2.0 */
/* One patch for one change of a node's state, of all Skyhooks that may write there now.
 *
 * Annotations and labels go with the conditions, through nodes/status; with the cordon and taints,
 * if those change, through the node itself, and the conditions follow when nothing else does. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"

void patch_note(buf *out, const char *prefix, const char *name, str value)
{
    buf_addc(out, out->len > 0 ? ',' : '{');
    buf_addf(out, "\"%s%s\":", prefix, name);
    if (value.ptr)
        buf_add_json(out, value);
    else
        buf_addz(out, "null");
}

/* ---- texts ---- */

static int by_key(const void *a, const void *b)
{
    return str_cmp(((const package_status *)a)->key, ((const package_status *)b)->key);
}

/* The image a package was installed from: as the document says, or as it was noted before. */
static void set_image(package_status *to, const skyhook *of, const node_state *before)
{
    const package *wanted = skyhook_package(of, to->name);
    to->image = STR_EMPTY;
    to->container_sha = STR_EMPTY;
    if (wanted && str_eq(wanted->version, to->version)) {
        to->image = wanted->image;
        to->container_sha = wanted->container_sha;
        return;
    }
    for (size_t i = 0; i < before->packages.len; i++)
        if (str_eq(before->packages.at[i].key, to->key)) {
            to->image = before->packages.at[i].image;
            to->container_sha = before->packages.at[i].container_sha;
        }
}

static bool put_state(node_shell *s, const shell_place *p, const node_view *v, buf *out)
{
    node_state before = {0}, now = {0};
    str noted = place_text(s, p, NODE_NODE_STATE);
    if (noted.ptr && !node_state_parse(s->scratch, noted, &before, NULL))
        before.packages.len = 0;
    now.packages.at = ARENA_ARRAY(s->scratch, v->package_count + 1, package_status);
    for (size_t i = 0; now.packages.at && i < v->package_count; i++) {
        const package_view *of = &v->packages[i];
        package_status *one = &now.packages.at[now.packages.len++];
        *one = (package_status){
            .key = arena_printf(s->scratch, "%.*s|%.*s", STR_ARG(of->name), STR_ARG(of->version)),
            .name = of->name,
            .version = of->version,
            .stage = of->stage,
            .state = of->state,
            .restarts = of->restarts};
        set_image(one, p->change->document->object.skyhook, &before);
    }
    if (!now.packages.at)
        return false;
    qsort(now.packages.at, now.packages.len, sizeof *now.packages.at, by_key);
    node_state_write(&now, out);
    return !out->failed;
}

/* ---- one place ---- */

static void put_condition(node_patch *patch, const char *type, bool holds, const char *words[2],
                          const char *message)
{
    buf *out = &patch->conditions;
    buf_addf(out,
             "%s{\"type\":\"" KEY_PREFIX "%s\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":"
             "\"%s\",\"lastHeartbeatTime\":\"%s\",\"lastTransitionTime\":\"%s\"}",
             out->len > 0 ? "," : "[", type, holds ? "True" : "False", words[holds], message,
             patch->now, patch->now);
}

static void put_conditions(node_patch *patch, const shell_place *p, uint8_t want)
{
    static const char *not_ready[] = {"Complete", "Incomplete"};
    static const char *erroring[] = {"Not Erroring", "Package(s) Erroring or Unknown"};
    char type[LIMIT_NAME_BYTES + 32], message[LIMIT_NAME_BYTES + 64];
    snprintf(type, sizeof type, "%s/NotReady", p->skyhook);
    snprintf(message, sizeof message, "Skyhook %s Ready", p->skyhook);
    put_condition(patch, type, want & SHOWN_NOT_READY, not_ready, message);
    snprintf(type, sizeof type, "%s/Erroring", p->skyhook);
    snprintf(message, sizeof message, "Package Erroring or Unknown for %s", p->skyhook);
    put_condition(patch, type, want & SHOWN_ERRORING, erroring, message);
}

uint8_t conditions_wanted(const node_view *v)
{
    uint8_t want = SHOWN_ANY;
    if (v->state != PLACEMENT_DONE)
        want |= SHOWN_NOT_READY;
    for (size_t i = 0; i < v->package_count; i++)
        if (v->packages[i].state == PACKAGE_ERRORING || v->packages[i].state == PACKAGE_UNKNOWN)
            want |= SHOWN_ERRORING;
    return want;
}

static void put_texts(node_shell *s, node_patch *patch, shell_place *p, const node_view *v)
{
    buf state = BUF(SHELL_TEXT_BYTES), record = BUF(SHELL_TEXT_BYTES);
    bool good =
        put_state(s, p, v, &state) &&
        engine_keep_placement(s->engine, str_of(p->skyhook), str_of(p->node->name), &record) &&
        !record.failed;
    if (good) {
        record.len--; /* its last brace */
        buf_addf(&record,
                 ",\"" RECORD_WRITER "\":\"%016" PRIx64 "\",\"" RECORD_STATE_HASH "\":\"%016" PRIx64
                 "\"}",
                 str_hash(s->settings.identity), str_hash(buf_str(&state)));
    }
    if (!good || record.failed)
        shell_memory(s);
    /* A state that could not be read is left for a person to look at. */
    if (good && !v->malformed && text_mark(buf_str(&state)) != p->state)
        patch_note(&patch->annotations, NODE_NODE_STATE, p->skyhook, buf_str(&state));
    if (good && text_mark(buf_str(&record)) != p->record) {
        patch_note(&patch->annotations, NODE_RECORD, p->skyhook, buf_str(&record));
        shell_sent_note(&p->sent_of, buf_str(&record));
    }
    buf_done(&state);
    buf_done(&record);
}

/* The wish about the cordon; and with it the place is taken for sent. Whoever wishes to take the
 * node out of service did so after those that gave it back: they do not while another holds it. */
static void put_cordon(node_patch *patch, shell_place *p, bool holds)
{
    if (p->want_cordon == 1 && !holds)
        p->want_cordon = -1; /* taken back before it was written */
    /* Without a claim that is durable nothing is taken out of service. */
    assert(p->want_cordon != 1 || !p->change || p->claim <= p->change->durable_epoch);
    if (p->want_cordon > patch->cordon)
        patch->cordon = p->want_cordon;
    p->sent_cordon = p->want_cordon;
    p->want_cordon = -1;
    p->dirty = false;
    p->sent = true;
    if (p->releasing == RELEASE_WAITS)
        p->releasing = RELEASE_SENT;
}

static void put_place(node_shell *s, node_patch *patch, shell_place *p)
{
    node_view v;
    if (p->cleanup) {
        deletion_put(patch, p);
        put_cordon(patch, p, false);
        return;
    }
    if (!engine_node(s->engine, str_of(p->skyhook), str_of(p->node->name), s->scratch, &v)) {
        p->dirty = false; /* the engine knows nothing of it: nothing waits for it */
        shell_release(p, RELEASE_NONE, false);
        shell_act_done(p);
        return;
    }
    put_texts(s, patch, p, &v);
    skyhook_state state = place_state(p->change, &v);
    if (state != p->status) {
        str text = str_of(skyhook_state_text(state));
        patch_note(&patch->annotations, NODE_STATUS, p->skyhook, text);
        patch_note(&patch->labels, NODE_STATUS, p->skyhook, text);
    }
    if (v.cordoned != p->cordon)
        patch_note(&patch->annotations, NODE_HOLDS_CORDON, p->skyhook,
                   v.cordoned ? STR("true") : (str){NULL, 0});
    if (!p->versioned && s->settings.version.len > 0)
        patch_note(&patch->annotations, NODE_VERSION, p->skyhook, s->settings.version);
    if (v.cordoned_before != p->node->before)
        patch_note(&patch->annotations, NODE_BEFORE, "",
                   v.cordoned_before ? STR("true") : (str){NULL, 0});
    uint8_t want = conditions_wanted(&v);
    if (want != p->conditions)
        put_conditions(patch, p, want);
    put_cordon(patch, p, v.cordoned);
}

/* Whether one that this patch says nothing of has cordoned the node, and needs it so. */
static bool is_held(node_shell *s, const shell_node *n)
{
    node_view v;
    for (const shell_place *p = n->places; p; p = p->next)
        if (!p->sent && p->cordon && !p->cleanup &&
            engine_node(s->engine, str_of(p->skyhook), str_of(n->name), s->scratch, &v) &&
            v.cordoned)
            return true;
    return false;
}

static void put_unschedulable(node_shell *s, node_patch *patch, const shell_node *n)
{
    if (patch->cordon < 0 || patch->cordon == n->unschedulable)
        return;
    if (patch->cordon == 1 || !is_held(s, n))
        buf_addf(&patch->spec, "\"unschedulable\":%s", patch->cordon ? "true" : "null");
}

/* ---- taints ---- */

static void put_taint(buf *out, str text)
{
    str rest = text, pair = str_cut(&rest, ':'), key = str_cut(&pair, '=');
    buf_addz(out, "{\"key\":");
    buf_add_json(out, key);
    if (pair.ptr) {
        buf_addz(out, ",\"value\":");
        buf_add_json(out, pair);
    }
    buf_addz(out, ",\"effect\":");
    buf_add_json(out, rest.ptr ? rest : STR("NoSchedule"));
    buf_addc(out, '}');
}

/* All taints but the runtime-required one, as they are. */
static void put_others(node_shell *s, const shell_node *n, str key, str effect, buf *out)
{
    yyjson_val *taints = n->taints ? json_parse(s->scratch, str_of(n->taints), NULL) : NULL;
    yyjson_arr_iter walk = yyjson_arr_iter_with(taints);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        if (str_eq(read_text(one, "key"), key) && str_eq(read_text(one, "effect"), effect))
            continue;
        buf_addz(out, out->ptr[out->len - 1] == '[' ? "" : ",");
        json_write(out, one);
    }
}

static void put_taints(node_shell *s, node_patch *patch, shell_node *n)
{
    str text = s->settings.engine.runtime_required_taint;
    if (text.len == 0)
        text = STR("skyhook.nvidia.com=runtime-required:NoSchedule");
    str effect = text, pair = str_cut(&effect, ':'), key = str_cut(&pair, '=');
    buf *out = &patch->spec;
    scoped(buf_done) buf name = BUF(SHELL_TEXT_BYTES);
    buf_addz(out, out->len > 0 ? ",\"taints\":[" : "\"taints\":[");
    put_others(s, n, key, effect.ptr ? effect : STR_EMPTY, out);
    if (n->want_taint) {
        buf_addz(out, out->ptr[out->len - 1] == '[' ? "" : ",");
        put_taint(out, text);
    }
    buf_addc(out, ']');
    auto_taint_name(&name, key);
    buf_addc(&name, '\0');
    patch->annotations.failed |= name.failed;
    if (!name.failed)
        patch_note(&patch->annotations, KEY_PREFIX, name.ptr,
                   n->want_taint ? STR("true") : (str){NULL, 0});
    n->sent_taint = n->want_taint;
    n->sent_untaint = n->want_untaint;
    n->want_taint = n->want_untaint = false;
}

/* ---- sending ---- */

typedef enum patch_end { PATCH_DONE, PATCH_AGAIN, PATCH_STUCK } patch_end;

/* An end that cannot be written holds back its own place, and nothing else. */
static void settle_place(node_shell *s, shell_place *p, patch_end end, const char *why)
{
    if (!p->sent)
        return;
    p->sent = false;
    if (end != PATCH_DONE) {
        p->dirty = true;
        if (p->want_cordon < 0)
            p->want_cordon = p->sent_cordon;
    }
    bool ended = p->releasing == RELEASE_SENT, was_stuck = p->stuck;
    if (ended)
        shell_release(p, end == PATCH_DONE ? RELEASE_NONE : RELEASE_WAITS, was_stuck);
    if (end == PATCH_AGAIN)
        return;
    if (end == PATCH_STUCK || !p->dirty)
        shell_act_done(p);
    shell_release(p, p->releasing, end == PATCH_STUCK);
    if (p->change && (end == PATCH_STUCK || ended || was_stuck))
        shell_tell_kept(s, p, end == PATCH_STUCK ? why : NULL, false);
}

static void not_written(node_shell *s, shell_node *n, const write_outcome *how)
{
    log_line(LOG_WARN, "node %s: %s", n->name, how->message);
    n->held_until_ms = s->now_ms + SHELL_REFUSED_MS;
    if (shell_is_refused(how))
        events_node_refused(s, n->name, how->message);
}

static void answered(node_shell *s, const shell_ticket *t, const write_outcome *how,
                     yyjson_val *json)
{
    shell_node *n = shell_find_node(s, str_of(t->node));
    if (!n || !str_eq(shell_text(n->uid), shell_text(t->uid)))
        return; /* gone, and perhaps another one has its name */
    bool done = how->kind == WRITE_DONE;
    patch_end end = done ? PATCH_DONE : shell_is_refused(how) ? PATCH_STUCK : PATCH_AGAIN;
    char why[64];
    snprintf(why, sizeof why, "the node's patch is %s (status %d)", write_outcome_text(how->kind),
             how->status);
    n->sending = false;
    for (shell_place *p = n->places; p; p = p->next) {
        /* Conditions are another write where the node itself was written; they wait for one that
         * comes anyhow. */
        bool more = p->sent && done && t->number && !p->in_flight && p->change;
        if (p->sent && done && json && p->in_flight)
            place_told(s, p, json);
        settle_place(s, p, end, why);
        p->dirty |= more;
    }
    if (!done) {
        n->want_taint |= n->sent_taint;
        n->want_untaint |= n->sent_untaint && !n->want_taint;
    }
    n->sent_taint = n->sent_untaint = false;
    if (how->kind == WRITE_CONFLICT)
        conflict_met(s, &n->conflict, t->revision);
    else if (!done)
        not_written(s, n, how);
    if (done && t->number)
        n->settles_until_ms = s->now_ms + SHELL_SETTLE_MS;
    if (json && (done || how->kind == WRITE_CONFLICT))
        nodes_seen(s, json);
    shell_queue(s, n);
}

static bool send_patch(node_shell *s, shell_node *n, const node_patch *patch)
{
    buf body = BUF(SHELL_TEXT_BYTES);
    bool through_status = patch->spec.len == 0;
    buf_addz(&body, "{\"metadata\":{");
    if (patch->annotations.len > 0)
        buf_addf(&body, "\"annotations\":%.*s}", STR_ARG(buf_str(&patch->annotations)));
    if (patch->labels.len > 0)
        buf_addf(&body, "%s\"labels\":%.*s}", patch->annotations.len > 0 ? "," : "",
                 STR_ARG(buf_str(&patch->labels)));
    buf_addz(&body, "}");
    if (!through_status)
        buf_addf(&body, ",\"spec\":{%.*s}", STR_ARG(buf_str(&patch->spec)));
    else if (patch->conditions.len > 0)
        buf_addf(&body, ",\"status\":{\"conditions\":%.*s]}", STR_ARG(buf_str(&patch->conditions)));
    buf_addc(&body, '}');
    kube_write w = {.verb = through_status ? WRITE_STRATEGIC : WRITE_MERGE,
                    .collection = STR("/api/v1/nodes"),
                    .name = str_of(n->name),
                    .subresource = through_status ? STR("status") : STR_EMPTY,
                    .version = str_of(n->version),
                    .body = buf_str(&body)};
    n->sending = shell_send(s, &w,
                            (shell_ticket){.done = answered,
                                           .node = n->name,
                                           .uid = n->uid,
                                           .revision = n->revision,
                                           .number = !through_status});
    s->counts.nodes += n->sending;
    buf_done(&body);
    return n->sending;
}

/* ---- conflicts ---- */

static void read_after_conflict(node_shell *s, const shell_ticket *t, const write_outcome *how,
                                yyjson_val *json)
{
    shell_node *n = shell_find_node(s, str_of(t->node));
    if (!n)
        return;
    conflict_answered(s, &n->conflict, how->kind == WRITE_DONE);
    if (how->kind == WRITE_DONE && json)
        nodes_seen(s, json);
}

/* Whether its last write met something that is not known yet; if nobody tells, it is read. */
static bool node_waits(node_shell *s, shell_node *n)
{
    kube_write w = {
        .verb = WRITE_READ, .collection = STR("/api/v1/nodes"), .name = str_of(n->name)};
    if (!conflict_stands(&n->conflict, n->revision))
        return false;
    if (conflict_asks(s, &n->conflict))
        conflict_asked(
            s, &n->conflict,
            shell_send(s, &w, (shell_ticket){.done = read_after_conflict, .node = n->name}));
    return true;
}

/* ---- all of it ---- */

static bool may_write(const shell_place *p)
{
    /* Nobody is going to write the status of a Skyhook whose finalizer goes. */
    if (!p->change || p->cleanup)
        return p->cleanup;
    /* An end disturbs nothing, and the status waits for it: also that of a claim that never was
     * durable. */
    return p->change->known && !p->change->wants_finalizer &&
           (p->claim <= p->change->durable_epoch || p->releasing);
}

bool taints_are_open(const node_shell *s)
{
    for (size_t i = 0; i < s->queue.len; i++) {
        const shell_node *n = s->queue.at[i];
        if ((n->want_taint || n->sent_taint) && n->held_until_ms <= s->now_ms)
            return true;
    }
    return false;
}

bool node_write(node_shell *s, shell_node *n)
{
    bool settles = n->settles_until_ms > s->now_ms && n->shows_cordon != n->unschedulable;
    if (n->sending || n->held_until_ms > s->now_ms || settles || node_waits(s, n))
        return false;
    n->conflict.with = 0;
    node_patch patch = {.annotations = BUF(SHELL_TEXT_BYTES),
                        .labels = BUF(SHELL_TEXT_BYTES),
                        .conditions = BUF(SHELL_TEXT_BYTES),
                        .spec = BUF(SHELL_TEXT_BYTES),
                        .cordon = -1};
    moment now = {s->now_ms / 1000, 0};
    patch.now[moment_format(now, patch.now)] = '\0';
    arena_place mark = arena_mark(s->scratch);
    for (shell_place *p = n->places; p; p = p->next) {
        if (!p->dirty)
            continue;
        if (may_write(p))
            put_place(s, &patch, p);
        else
            patch.left = true;
    }
    put_unschedulable(s, &patch, n);
    if (n->want_taint || (n->want_untaint && !s->taints_first))
        put_taints(s, &patch, n);
    patch.left |= n->want_untaint;
    bool empty =
        patch.annotations.len + patch.labels.len + patch.spec.len + patch.conditions.len == 0;
    bool sent = !empty && !s->no_memory && send_patch(s, n, &patch);
    if (!sent)
        for (shell_place *p = n->places; p; p = p->next)
            settle_place(s, p, empty ? PATCH_DONE : PATCH_AGAIN, NULL);
    arena_rewind(s->scratch, mark);
    buf_done(&patch.annotations);
    buf_done(&patch.labels);
    buf_done(&patch.conditions);
    buf_done(&patch.spec);
    return empty && !patch.left;
}
