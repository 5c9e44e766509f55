/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as the API server shows them: what of them matters is kept and told to the engine. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "operator/shell_internal.h"

#define TAINTS_MAX 64

/* ---- looking ---- */

static uint64_t mix(uint64_t digest, str text)
{
    return (digest ^ str_hash(text)) * UINT64_C(0x9e3779b97f4a7c15) + text.len;
}

static uint64_t mix_map(uint64_t digest, yyjson_val *map, str prefix)
{
    yyjson_obj_iter walk = yyjson_obj_iter_with(map);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (!str_starts(name, prefix))
            continue;
        digest = mix(digest, name);
        digest = mix(digest, (str){yyjson_get_str(value), yyjson_get_len(value)});
    }
    return digest;
}

static yyjson_val *condition_named(yyjson_val *json, str type)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "status", "conditions"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (str_eq(read_text(one, "type"), type))
            return one;
    return NULL;
}

/* Conditions of ours are mixed in by their reasons, in whatever order they stand. */
static uint64_t mix_conditions(uint64_t digest, yyjson_val *json)
{
    uint64_t sum = 0;
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "status", "conditions"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        str type = read_text(one, "type");
        if (str_eq(type, STR("Ready")))
            digest = mix(digest, read_text(one, "status"));
        else if (str_starts(type, STR(KEY_PREFIX)))
            sum += mix(str_hash(type), read_text(one, "reason"));
    }
    return digest ^ sum;
}

static uint64_t digest_of(yyjson_val *json)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    uint64_t digest = mix(1, read_text(m, "uid"));
    digest = mix_map(digest, yyjson_obj_get(m, "labels"), STR_EMPTY);
    digest = mix_map(digest, yyjson_obj_get(m, "annotations"), STR(KEY_PREFIX));
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "spec", "taints"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        digest = mix(digest, read_text(one, "key"));
        digest = mix(digest, read_text(one, "value"));
        digest = mix(digest, read_text(one, "effect"));
    }
    digest += yyjson_get_bool(read_at(json, "spec", "unschedulable"));
    digest = mix(digest, read_text(read_at(json, "status", "nodeInfo"), "bootID"));
    return mix_conditions(digest, json);
}

/* ---- what stands on the node ---- */

static skyhook_state parse_state(str text)
{
    static const str texts[] = {
#define X(state, name) STR(name),
        SKYHOOK_STATES(X)
#undef X
    };
    for (size_t i = 1; i < sizeof texts / sizeof texts[0]; i++)
        if (str_eq(text, texts[i]))
            return (skyhook_state)i;
    return SKYHOOK_NONE;
}

static uint8_t conditions_of(yyjson_val *json, const char *name)
{
    char type[LIMIT_NAME_BYTES + 64];
    snprintf(type, sizeof type, KEY_PREFIX "%s/NotReady", name);
    yyjson_val *not_ready = condition_named(json, str_of(type));
    snprintf(type, sizeof type, KEY_PREFIX "%s/Erroring", name);
    yyjson_val *erroring = condition_named(json, str_of(type));
    if (!not_ready && !erroring)
        return 0;
    return (uint8_t)(SHOWN_ANY |
                     (str_eq(read_text(not_ready, "status"), STR("True")) ? SHOWN_NOT_READY : 0) |
                     (str_eq(read_text(erroring, "status"), STR("True")) ? SHOWN_ERRORING : 0));
}

/* Whether the state is the one that was written with the record; a record that is not ours, or of
 * an older version, does not say. */
static bool record_fits(node_shell *s, str record, str state)
{
    if (!record.ptr)
        return true;
    arena_place mark = arena_mark(s->scratch);
    char hash[24];
    str of = read_text(json_parse(s->scratch, record, NULL), RECORD_STATE_HASH);
    snprintf(hash, sizeof hash, "%016" PRIx64, str_hash(state));
    bool fits = of.len > 0 ? str_eq(of, str_of(hash)) : state.ptr != NULL;
    arena_rewind(s->scratch, mark);
    return fits;
}

/* What cannot be read asks for nothing: it is left for a person to look at. */
static bool is_wish(node_shell *s, str state)
{
    arena_place mark = arena_mark(s->scratch);
    node_state ignored;
    bool readable = !state.ptr || node_state_parse(s->scratch, state, &ignored, NULL);
    arena_rewind(s->scratch, mark);
    return readable;
}

/* What a change of the two means that is no write of this process: another operator wrote them
 * both, or a person, or a command of theirs, changed or removed what was written of the packages.
 */
static void judge_texts(node_shell *s, shell_place *p, str state, str record)
{
    noted_view v = {.record_there = record.ptr,
                    .record_changed = text_mark(record) != p->record,
                    .record_ours = record.ptr && shell_sent_has(&p->sent_of, record),
                    .state_fits = record_fits(s, record, state),
                    .state_gone = p->state && !state.ptr};
    noted_edit edit = noted_judge(&v);
    if (edit == NOTED_OPERATOR) {
        shell_stale(s, "node", p->node->name);
        return;
    }
    /* A record that somebody took away is written again. */
    p->dirty |= !record.ptr && p->record;
    p->edited |= edit == NOTED_PERSON && is_wish(s, state);
}

/* The status is merged: what went from a node's state would stay in its mirror there. */
static void note_lost(node_shell *s, shell_place *p, str state)
{
    shell_change *c = p->change;
    if (!c || !p->state || p->state == text_mark(state))
        return;
    arena_place mark = arena_mark(s->scratch);
    yyjson_val *now = json_parse(s->scratch, state, NULL);
    /* The engine is told after this. */
    yyjson_val *before = json_parse(s->scratch, place_text(s, p, NODE_NODE_STATE), NULL);
    yyjson_obj_iter walk = yyjson_obj_iter_with(before);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (yyjson_obj_getn(now, name.ptr, name.len))
            continue;
        p->mirror_dirty = c->dirty = true;
        shell_note_lost(s, c, name);
    }
    arena_rewind(s->scratch, mark);
}

static void take_place(node_shell *s, shell_place *p, label_set annotations, yyjson_val *json)
{
    char key[LIMIT_NAME_BYTES + 64];
    const char *name = p->skyhook;
    snprintf(key, sizeof key, NODE_NODE_STATE "%s", name);
    str state = label_get(annotations, str_of(key));
    snprintf(key, sizeof key, NODE_RECORD "%s", name);
    str record = label_get(annotations, str_of(key));
    if (!s->restored)
        p->edited = !record_fits(s, record, state) && is_wish(s, state);
    else if (p->change && !p->cleanup && !p->node->is_new)
        judge_texts(s, p, state, record);
    note_lost(s, p, state);
    p->state = text_mark(state);
    p->record = text_mark(record);
    snprintf(key, sizeof key, NODE_HOLDS_CORDON "%s", name);
    p->cordon = label_get(annotations, str_of(key)).ptr;
    snprintf(key, sizeof key, NODE_VERSION "%s", name);
    p->versioned = label_get(annotations, str_of(key)).ptr;
    snprintf(key, sizeof key, NODE_STATUS "%s", name);
    skyhook_state noted = parse_state(label_get(annotations, str_of(key)));
    str label_text = read_text(read_at(json, "metadata", "labels"), key);
    p->status = (uint8_t)(parse_state(label_text) == noted ? noted : SKYHOOK_NONE);
    p->conditions = conditions_of(json, name);
}

/* Places are known by the annotations that end in their Skyhook's name. */
static void take_places(node_shell *s, shell_node *n, label_set annotations, yyjson_val *json)
{
    static const str prefixes[] = {STR(NODE_NODE_STATE), STR(NODE_RECORD), STR(NODE_STATUS),
                                   STR(NODE_HOLDS_CORDON)};
    n->auto_tainted = false;
    for (size_t i = 0; i < annotations.len; i++) {
        n->auto_tainted |= str_starts(annotations.at[i].key, STR(NODE_AUTO_TAINTED));
        for (size_t k = 0; k < sizeof prefixes / sizeof prefixes[0]; k++)
            if (str_starts(annotations.at[i].key, prefixes[k]))
                shell_place_of(s, n, str_part(annotations.at[i].key, prefixes[k].len, SIZE_MAX));
    }
    for (shell_place *p = n->places; p; p = p->next)
        take_place(s, p, annotations, json);
}

static void keep_taints(node_shell *s, shell_node *n, yyjson_val *taints)
{
    buf text = BUF(SHELL_TEXT_BYTES);
    n->taints = mem_free(n->taints);
    if (yyjson_arr_size(taints) == 0)
        return;
    json_write(&text, taints);
    n->taints = text.failed ? NULL : shell_copy(s, buf_str(&text));
    buf_done(&text);
}

/* Whether Kubernetes' own taint of a cordoned node is there. */
static bool shows_cordon(yyjson_val *taints)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(taints);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (str_eq(read_text(one, "key"), STR("node.kubernetes.io/unschedulable")))
            return true;
    return false;
}

/* Skyhooks show it. */
static void keep_boot(node_shell *s, shell_node *n, str boot)
{
    if (n->boot && str_eq(str_of(n->boot), boot))
        return;
    mem_free(n->boot);
    n->boot = shell_copy(s, boot);
    for (shell_place *p = n->places; p; p = p->next)
        if (p->change)
            p->mirror_dirty = p->change->dirty = true;
}

/* ---- telling ---- */

static size_t read_taints(yyjson_val *taints, fact_taint out[TAINTS_MAX])
{
    size_t count = 0;
    yyjson_arr_iter walk = yyjson_arr_iter_with(taints);
    for (yyjson_val *one; count < TAINTS_MAX && (one = yyjson_arr_iter_next(&walk));)
        out[count++] =
            (fact_taint){read_text(one, "key"), read_text(one, "value"), read_text(one, "effect")};
    return count;
}

/* Since when the node is ready, or is not. What a node says of itself has the times of its own
 * clock: they tell how long it had been so when it said so. That it is silent is told by the
 * cluster. */
static int64_t ready_since_ms(const node_shell *s, yyjson_val *ready)
{
    int64_t changed = read_time_ms(read_text(ready, "lastTransitionTime"));
    int64_t told = read_time_ms(read_text(ready, "lastHeartbeatTime"));
    if (str_eq(read_text(ready, "status"), STR("Unknown")) || changed == 0)
        return changed;
    return told > changed ? s->now_ms - (told - changed) : s->now_ms;
}

static void tell(node_shell *s, shell_node *n, yyjson_val *json, label_set annotations)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    fact_taint taints[TAINTS_MAX];
    yyjson_val *ready = condition_named(json, STR("Ready"));
    fact f = {.kind = FACT_TARGET,
              .target = {.kind = TARGET_NODE,
                         .name = str_of(n->name),
                         .uid = read_text(m, "uid"),
                         .created_ms = read_time_ms(read_text(m, "creationTimestamp")),
                         .labels = read_labels(s->scratch, yyjson_obj_get(m, "labels"), STR_EMPTY),
                         .not_ready = !str_eq(read_text(ready, "status"), STR("True")),
                         .ready_since_ms = ready_since_ms(s, ready),
                         .unschedulable = n->unschedulable,
                         .boot_id = read_text(read_at(json, "status", "nodeInfo"), "bootID"),
                         .taints = taints,
                         .taint_count = read_taints(read_at(json, "spec", "taints"), taints),
                         .annotations = annotations}};
    shell_take(s, &f);
}

/* Whatever was changed, the packages are applied again; where nothing changed they see that by
 * themselves, at once. */
static void begin_anew(node_shell *s, shell_place *p)
{
    fact f = {
        .kind = FACT_ACT,
        .act = {.act = ACT_RESET, .change = str_of(p->skyhook), .target = str_of(p->node->name)}};
    p->edited = false;
    shell_take(s, &f);
    p->dirty = true;
    shell_queue(s, p->node);
}

static shell_node *node_new(node_shell *s, str name, str uid)
{
    shell_node *n = mem_zalloc(sizeof *n);
    if (n) {
        n->name = shell_copy(s, name);
        n->uid = shell_copy(s, uid);
        n->drain_long_ms = REASON_NEVER;
    }
    if (n && n->name && n->uid && strmap_put(&s->nodes, str_of(n->name), (uint64_t)(uintptr_t)n))
        return n;
    if (n) {
        mem_free(n->name);
        mem_free(n->uid);
    }
    mem_free(n);
    shell_memory(s);
    return NULL;
}

void nodes_seen(node_shell *s, yyjson_val *json)
{
    str name = read_text(yyjson_obj_get(json, "metadata"), "name");
    str uid = read_text(yyjson_obj_get(json, "metadata"), "uid");
    char text[SHELL_VERSION_BYTES] = "";
    uint64_t revision = read_revision(json, text);
    shell_node *n = shell_find_node(s, name);
    bool same = n && str_eq(shell_text(n->uid), uid);
    if (n && (revision < n->revision || (same && revision == n->revision && revision > 0)))
        return; /* the answer to a write has told this, or something newer */
    if (n && !same) {
        nodes_gone(s, name); /* deleted and made again, seen as one */
        n = NULL;
    }
    bool is_new = !n;
    if (!n && !(n = node_new(s, name, uid)))
        return;
    n->is_new = is_new;
    n->revision = revision;
    memcpy(n->version, text, sizeof text);
    s->due |= n->conflict.with != 0;
    uint64_t digest = digest_of(json);
    if (n->digest == digest)
        return;
    n->digest = digest;
    arena_place mark = arena_mark(s->scratch);
    label_set annotations =
        read_labels(s->scratch, read_at(json, "metadata", "annotations"), STR(KEY_PREFIX));
    n->unschedulable = yyjson_get_bool(read_at(json, "spec", "unschedulable"));
    n->before = str_eq(label_get(annotations, STR(NODE_BEFORE)), STR("true"));
    n->ignored =
        str_eq(read_text(read_at(json, "metadata", "labels"), KEY_PREFIX "ignore"), STR("true"));
    keep_taints(s, n, read_at(json, "spec", "taints"));
    n->shows_cordon = shows_cordon(read_at(json, "spec", "taints"));
    if (n->shows_cordon == n->unschedulable)
        n->settles_until_ms = 0;
    keep_boot(s, n, read_text(read_at(json, "status", "nodeInfo"), "bootID"));
    take_places(s, n, annotations, json);
    tell(s, n, json, annotations);
    for (shell_place *p = n->places; s->restored && p; p = p->next)
        if (p->edited)
            begin_anew(s, p);
        else if (p->dirty)
            shell_queue(s, n);
    arena_rewind(s->scratch, mark);
    for (size_t i = 0; i < s->changes.len; i++)
        shell_look_at(s, n, (shell_change *)(uintptr_t)s->changes.entries[i].value);
    if (n->queued || n->want_taint || n->want_untaint)
        shell_queue(s, n);
    s->due = true;
}

/* By somebody whose note is to be heeded. */
static bool held_by_another(const shell_place *of)
{
    for (const shell_place *p = of->node->places; p; p = p->next)
        if (p != of && p->cordon && (p->change || !p->record))
            return true;
    return false;
}

/* The Skyhook went without its finalizer while nobody looked: nobody else gives the node back. What
 * has no record of ours is another operator's. */
static void clean_after(node_shell *s, shell_place *p)
{
    p->cleanup = p->dirty = true;
    if (p->cordon && !p->node->before && !held_by_another(p))
        p->want_cordon = 0;
    shell_queue(s, p->node);
}

/* Whether a Skyhook holds the runtime-required taint there; one that cannot be read may. */
static bool taint_is_held(node_shell *s, const shell_node *n)
{
    bool held = false;
    arena_place mark = arena_mark(s->scratch);
    for (size_t i = 0; !held && i < s->changes.len; i++) {
        const shell_change *c = (const shell_change *)(uintptr_t)s->changes.entries[i].value;
        const skyhook *of = c->known ? c->document->object.skyhook : NULL;
        node_view v;
        held = !of || (of->spec.runtime_required && !of->metadata.deletion_timestamp.set &&
                       engine_node(s->engine, str_of(c->name), str_of(n->name), s->scratch, &v) &&
                       v.selected);
    }
    arena_rewind(s->scratch, mark);
    return held;
}

void nodes_begin(node_shell *s)
{
    for (size_t i = 0; i < s->nodes.len; i++) {
        shell_node *n = (shell_node *)(uintptr_t)s->nodes.entries[i].value;
        /* Whoever wanted it went, or gave the node up, while nobody looked. */
        if (n->auto_tainted && !taint_is_held(s, n)) {
            n->want_untaint = true;
            shell_queue(s, n);
        }
        for (shell_place *p = n->places; p; p = p->next)
            if (p->edited && p->change)
                begin_anew(s, p);
            else if (p->record && !p->change)
                clean_after(s, p);
    }
}

void nodes_gone(node_shell *s, str name)
{
    shell_node *n = shell_find_node(s, name);
    if (!n)
        return;
    fact f = {.kind = FACT_TARGET_GONE, .target = {.kind = TARGET_NODE, .name = name}};
    shell_take(s, &f);
    s->due = true;
    while (n->places)
        shell_place_free(s, n->places);
    strmap_remove(&s->nodes, str_of(n->name));
    shell_node_free(s, n);
}
