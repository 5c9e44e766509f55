/* SPDX-License-Identifier: Apache-2.0 */
/* Skyhooks and DeploymentPolicies as the API server shows them. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/shell_internal.h"
#include "operator/status_record.h"

#define API_GROUP "skyhook.nvidia.com/v1alpha1"
#define CHANGED_MS 1000 /* somebody else wrote it: it is looked at again after this time */

static void forget_names(shell_names *names)
{
    for (size_t i = 0; i < names->len; i++)
        mem_free(names->at[i]);
    names->len = 0;
}

void change_free_shown(node_shell *s, shell_change *c)
{
    (void)s;
    shell_document_free(c->document);
    mem_free(c->name);
    mem_free(c->uid);
    mem_free(c->kept);
    older_forget(c);
    vec_done(&c->places);
    vec_done(&c->waiting);
    buf_done(&c->conditions);
    buf_done(&c->next_conditions);
    mem_free(c->applying);
    mem_free(c->acts);
    shell_names *names[] = {&c->left, &c->lost, &c->groups, &c->installed};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        forget_names(names[i]);
        vec_done(names[i]);
    }
    mem_free(c);
}

static shell_change *change_new(node_shell *s, str name)
{
    shell_change *c = mem_zalloc(sizeof *c);
    if (!c || !(c->name = shell_copy(s, name)) ||
        !strmap_put(&s->changes, str_of(c->name), (uint64_t)(uintptr_t)c)) {
        if (c)
            mem_free(c->name);
        mem_free(c);
        shell_memory(s);
        return NULL;
    }
    c->conditions = c->next_conditions = BUF(SHELL_TEXT_BYTES);
    /* What stands on nodes may have been seen first. */
    for (size_t i = 0; i < s->nodes.len; i++) {
        shell_node *n = (shell_node *)(uintptr_t)s->nodes.entries[i].value;
        for (shell_place *p = n->places; p; p = p->next)
            if (str_eq(str_of(p->skyhook), name)) {
                p->change = c;
                p->cleanup = false;
                p->cleanups = 0;
                p->index = c->places.len;
                if (!vec_push(&c->places, p))
                    shell_memory(s);
            }
    }
    return c;
}

/* ---- the finalizer ---- */

static bool has_finalizer(yyjson_val *json)
{
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "metadata", "finalizers"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (yyjson_equals_str(one, CHANGE_FINALIZER))
            return true;
    return false;
}

/* Nothing starts before it is there, so whoever waits for that says so. */
static void finalizer_missing(node_shell *s, shell_change *c, const write_outcome *how)
{
    char why[128];
    snprintf(why, sizeof why, "the finalizer of its Skyhook cannot be added: %s (status %d)",
             write_outcome_text(how->kind), how->status);
    for (size_t i = 0; i < c->waiting.len; i++)
        shell_tell_kept(s, c->waiting.at[i], why, true);
    if (how->kind == WRITE_REFUSED)
        events_finalizer_refused(s, c, how->message);
}

static void finalizer_answered(node_shell *s, const shell_ticket *t, const write_outcome *how,
                               yyjson_val *json)
{
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c)
        return;
    c->finalizing = false;
    if (how->kind == WRITE_DONE && json) {
        changes_seen(s, json);
    } else {
        log_line(LOG_WARN, "Skyhook %s: the finalizer was not written: %s", c->name, how->message);
        c->finalizer_held_until_ms =
            s->now_ms + (how->kind == WRITE_CONFLICT ? CHANGED_MS : SHELL_REFUSED_MS);
        if (how->kind != WRITE_CONFLICT && how->kind != WRITE_GONE)
            finalizer_missing(s, c, how);
    }
}

/* Without the version as its tag, if it has that; any other tag is left for whoever refuses it. */
static str untagged(str image, str tag)
{
    size_t rest = tag.len + 1;
    bool has = tag.len > 0 && image.len > rest && str_ends(image, tag) &&
               image.ptr[image.len - rest] == ':';
    return has ? str_part(image, 0, image.len - rest) : image;
}

/* Packages as every reader of theirs sees them: with their names, and images without tags. */
static void put_packages(buf *out, yyjson_val *packages)
{
    const char *comma = "";
    yyjson_obj_iter walk = yyjson_obj_iter_with(packages);
    buf_addz(out, ",\"spec\":{\"packages\":{");
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *of = yyjson_obj_iter_get_val(key);
        str name = {yyjson_get_str(key), yyjson_get_len(key)}, said = read_text(of, "name");
        str image = read_text(of, "image"), bare = untagged(image, read_text(of, "version"));
        if (said.len > 0 && bare.len == image.len)
            continue;
        buf_addz(out, comma);
        buf_add_json(out, name);
        buf_addz(out, ":{\"name\":");
        buf_add_json(out, said.len > 0 ? said : name);
        if (bare.len < image.len) {
            buf_addz(out, ",\"image\":");
            buf_add_json(out, bare);
        }
        buf_addc(out, '}');
        comma = ",";
    }
    buf_addz(out, "}}");
}

static void put_finalizers(buf *out, yyjson_val *json, bool with_ours)
{
    const char *comma = "";
    buf_addz(out, "{\"metadata\":{\"finalizers\":[");
    yyjson_arr_iter walk = yyjson_arr_iter_with(read_at(json, "metadata", "finalizers"));
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        if (!yyjson_is_str(one) || yyjson_equals_str(one, CHANGE_FINALIZER))
            continue;
        buf_addz(out, comma);
        buf_add_json(out, (str){yyjson_get_str(one), yyjson_get_len(one)});
        comma = ",";
    }
    if (with_ours)
        buf_addf(out, "%s\"" CHANGE_FINALIZER "\"", comma);
    buf_addz(out, "]}");
}

static void add_finalizer(node_shell *s, shell_change *c, yyjson_val *json)
{
    if (c->finalizing || c->finalizer_held_until_ms > s->now_ms)
        return;
    buf body = BUF(SHELL_TEXT_BYTES);
    put_finalizers(&body, json, true);
    put_packages(&body, read_at(json, "spec", "packages"));
    buf_addc(&body, '}');
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR("/apis/" API_GROUP "/skyhooks"),
                    .name = str_of(c->name),
                    .version = str_of(c->version),
                    .body = buf_str(&body)};
    c->finalizing =
        shell_send(s, &w, (shell_ticket){.done = finalizer_answered, .skyhook = c->name});
    s->counts.others += c->finalizing;
    buf_done(&body);
}

static void read_again(node_shell *s, const shell_ticket *t, const write_outcome *how,
                       yyjson_val *json)
{
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c)
        return;
    c->finalizing = false;
    if (how->kind == WRITE_DONE && json)
        changes_seen(s, json);
    else if (how->kind != WRITE_GONE)
        c->finalizer_held_until_ms = s->now_ms + SHELL_REFUSED_MS;
}

void changes_finalizer(node_shell *s, shell_change *c)
{
    kube_write w = {.verb = WRITE_READ,
                    .collection = STR("/apis/" API_GROUP "/skyhooks"),
                    .name = str_of(c->name)};
    if (!c->wants_finalizer || c->finalizing || c->finalizer_held_until_ms > s->now_ms)
        return;
    c->finalizing = shell_send(s, &w, (shell_ticket){.done = read_again, .skyhook = c->name});
    if (!c->finalizing)
        c->finalizer_held_until_ms = s->now_ms + SHELL_REFUSED_MS;
}

/* ---- conflicts ---- */

static void read_after_conflict(node_shell *s, const shell_ticket *t, const write_outcome *how,
                                yyjson_val *json)
{
    shell_change *c = shell_find_change(s, str_of(t->skyhook));
    if (!c)
        return;
    conflict_answered(s, &c->conflict, how->kind == WRITE_DONE);
    if (how->kind == WRITE_DONE && json)
        changes_seen(s, json);
}

bool change_waits(node_shell *s, shell_change *c)
{
    kube_write w = {.verb = WRITE_READ,
                    .collection = STR("/apis/" API_GROUP "/skyhooks"),
                    .name = str_of(c->name)};
    if (!conflict_stands(&c->conflict, c->revision))
        return false;
    if (conflict_asks(s, &c->conflict))
        conflict_asked(
            s, &c->conflict,
            shell_send(s, &w, (shell_ticket){.done = read_after_conflict, .skyhook = c->name}));
    return true;
}

/* ---- the document ---- */

/* Of everything but the status: one's own writes of it come back. */
static uint64_t digest_of(yyjson_val *json)
{
    buf text = BUF(SHELL_TEXT_BYTES);
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    static const char *const keys[] = {"annotations", "labels", "finalizers", "uid"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (yyjson_obj_get(m, keys[i]))
            json_write(&text, yyjson_obj_get(m, keys[i]));
    json_write(&text, yyjson_obj_get(json, "spec"));
    buf_addf(&text, "%d", yyjson_obj_get(m, "deletionTimestamp") != NULL);
    uint64_t digest = str_hash(buf_str(&text)) | 1u;
    buf_done(&text);
    return digest;
}

/* Every node that the Skyhook selects has a place from now on. */
static void look_everywhere(node_shell *s, shell_change *c)
{
    for (size_t i = 0; i < s->nodes.len; i++)
        shell_look_at(s, (shell_node *)(uintptr_t)s->nodes.entries[i].value, c);
}

/* What a Skyhook remembers is restored before the first decision. One that could not be read then,
 * and can be now, must not begin as if it was new: all is read again. */
static bool comes_late(node_shell *s, const shell_change *c, yyjson_val *json)
{
    if (!s->restored || c->known || yyjson_obj_size(yyjson_obj_get(json, "status")) == 0)
        return false;
    log_line(LOG_INFO, "Skyhook %s can be read now, and remembers what was done", c->name);
    s->stale = true;
    return true;
}

static void take_document(node_shell *s, shell_change *c, yyjson_val *json)
{
    err error;
    shell_document *d = shell_document_new(json, API_GROUP, "Skyhook", &error);
    if (!d) {
        /* One bad document stops nothing but itself; what it was before stays. */
        log_line(LOG_WARN, "Skyhook %s: %s", c->name, error.text);
        events_change_unreadable(s, c, error.text);
        return;
    }
    if (comes_late(s, c, json)) {
        shell_document_free(d);
        return;
    }
    fact f = {.kind = FACT_DOCUMENT, .document = &d->object};
    shell_document *before = c->document;
    c->document = d;
    c->known = c->dirty = c->maps_stale = true;
    shell_take(s, &f);
    shell_document_free(before);
    look_everywhere(s, c);
}

/* What the status shows by name: what is gone is to be taken away. */
static void take_names(node_shell *s, shell_names *names, yyjson_val *map)
{
    forget_names(names);
    yyjson_obj_iter walk = yyjson_obj_iter_with(map);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        char *name = shell_copy(s, (str){yyjson_get_str(key), yyjson_get_len(key)});
        if (name && !vec_push(names, name)) {
            shell_memory(s);
            mem_free(name);
        }
    }
}

static bool has_left(const shell_change *c, str name)
{
    for (size_t i = 0; i < c->left.len; i++)
        if (str_eq(str_of(c->left.at[i]), name))
            return true;
    return false;
}

/* Whom the status shows when we come may have gone while nobody looked: whoever is not there when
 * it is written first is taken away. */
static void take_shown(node_shell *s, shell_change *c, yyjson_val *map)
{
    yyjson_obj_iter walk = yyjson_obj_iter_with(map);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        str name = {yyjson_get_str(key), yyjson_get_len(key)};
        char *kept = has_left(c, name) ? NULL : shell_copy(s, name);
        if (kept && !vec_push(&c->left, kept)) {
            shell_memory(s);
            mem_free(kept);
        }
    }
}

void shell_note_lost(node_shell *s, shell_change *c, str entry)
{
    for (size_t i = c->lost_sent; i < c->lost.len; i++)
        if (str_eq(str_of(c->lost.at[i]), entry))
            return;
    char *kept = shell_copy(s, entry);
    if (kept && !vec_push(&c->lost, kept)) {
        shell_memory(s);
        mem_free(kept);
    }
}

/* The same of entries: those that a node no longer has are taken away with the first write. */
static void take_mirrored(node_shell *s, shell_change *c, yyjson_val *states)
{
    yyjson_obj_iter walk = yyjson_obj_iter_with(states);
    for (yyjson_val *on; (on = yyjson_obj_iter_next(&walk));) {
        yyjson_obj_iter entries = yyjson_obj_iter_with(yyjson_obj_iter_get_val(on));
        for (yyjson_val *key; (key = yyjson_obj_iter_next(&entries));)
            shell_note_lost(s, c, (str){yyjson_get_str(key), yyjson_get_len(key)});
    }
}

/* What was applied last stays to be seen. */
static void take_conditions(node_shell *s, shell_change *c, yyjson_val *conditions)
{
    buf_clear(&c->conditions);
    json_write(&c->conditions, conditions);
    yyjson_arr_iter walk = yyjson_arr_iter_with(conditions);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));)
        if (str_eq(read_text(one, "type"), STR("ApplyPackage")) && !c->applying)
            c->applying = shell_copy(s, read_text(one, "message"));
}

static void keep_record(node_shell *s, shell_change *c, yyjson_val *status)
{
    arena_place mark = arena_mark(s->scratch);
    buf text = BUF(SHELL_TEXT_BYTES);
    status_record_whole(s->scratch, status, &text);
    mem_free(c->kept);
    c->kept = text.failed ? NULL : shell_copy(s, buf_str(&text));
    if (text.failed)
        shell_memory(s);
    buf_done(&text);
    arena_rewind(s->scratch, mark);
}

static void take_status(node_shell *s, shell_change *c, yyjson_val *json)
{
    yyjson_val *status = yyjson_obj_get(json, "status");
    take_names(s, &c->groups, yyjson_obj_get(status, "compartmentStatuses"));
    take_names(s, &c->installed, yyjson_obj_get(status, "installed"));
    str record = read_text(status, "drover");
    if (!s->restored)
        older_seen(s, c, status);
    if (c->record == text_mark(record))
        return;
    /* Claims that were written by another count, and ours do not: all of it is to be read. */
    if (s->restored && c->record && record.len > 0 && !shell_sent_has(&c->sent_of, record))
        shell_stale(s, "Skyhook", c->name);
    if (s->restored && c->record && record.len == 0) { /* somebody took all of it away */
        c->dirty = c->again = true;
        c->shown = 0;
    }
    c->record = text_mark(record);
    if (!s->restored)
        keep_record(s, c, status);
    if (!s->restored && yyjson_obj_get(status, "conditions"))
        take_conditions(s, c, yyjson_obj_get(status, "conditions"));
    if (!s->restored) {
        take_shown(s, c, yyjson_obj_get(status, "nodeStatus"));
        take_shown(s, c, yyjson_obj_get(status, "nodePriority"));
        take_mirrored(s, c, yyjson_obj_get(status, "nodeState"));
    }
    c->observed_generation = yyjson_get_sint(yyjson_obj_get(status, "observedGeneration"));
    /* Times of claims are kept for show, and only there. */
    yyjson_obj_iter walk = yyjson_obj_iter_with(yyjson_obj_get(status, "nodePriority"));
    for (yyjson_val *key; !s->restored && (key = yyjson_obj_iter_next(&walk));) {
        str on = {yyjson_get_str(key), yyjson_get_len(key)};
        yyjson_val *at = yyjson_obj_iter_get_val(key);
        shell_place *p = shell_find_place(s, str_of(c->name), on);
        if (p && yyjson_is_str(at))
            p->claim_ms = read_time_ms((str){yyjson_get_str(at), yyjson_get_len(at)});
    }
}

void changes_seen(node_shell *s, yyjson_val *json)
{
    yyjson_val *m = yyjson_obj_get(json, "metadata");
    str name = read_text(m, "name");
    char text[SHELL_VERSION_BYTES] = "";
    uint64_t revision = read_revision(json, text);
    shell_change *c = shell_find_change(s, name);
    if (c && revision < c->revision)
        return;
    if (c && !str_eq(shell_text(c->uid), read_text(m, "uid"))) {
        changes_gone(s, name); /* deleted and made again, seen as one */
        c = NULL;
    }
    if (!c && !(c = change_new(s, name)))
        return;
    if (!c->uid)
        c->uid = shell_copy(s, read_text(m, "uid"));
    c->revision = revision;
    memcpy(c->version, text, sizeof text);
    take_status(s, c, json);
    acts_seen(s, c, json);
    /* The engine knows it at once, since those of lower priority wait for it from now on. */
    bool wants = !yyjson_obj_get(m, "deletionTimestamp") && !has_finalizer(json);
    s->due |= c->wants_finalizer && !wants;
    c->wants_finalizer = wants;
    if (wants && s->restored)
        add_finalizer(s, c, json);
    uint64_t digest = digest_of(json);
    s->due |= c->conflict.with != 0;
    if (c->digest == digest)
        return;
    c->digest = digest;
    take_document(s, c, json);
    s->due = s->wished = true;
}

void changes_gone(node_shell *s, str name)
{
    shell_change *c = shell_find_change(s, name);
    if (!c)
        return;
    if (c->known) {
        fact f = {.kind = FACT_DOCUMENT_GONE, .document = &c->document->object};
        shell_take(s, &f);
    }
    strmap_remove(&s->changes, str_of(c->name));
    for (size_t i = 0; i < c->places.len; i++) {
        shell_place *p = c->places.at[i];
        p->change = NULL;
        p->releasing = RELEASE_NONE;
        shell_fly(s, p, false);
        p->selected = p->draining = p->in_order = p->stuck = p->of_act = false;
        shell_place_unread(p);
        p->claim = 0; /* another Skyhook of that name counts its claims anew */
        p->claim_ms = 0;
        /* If somebody took the finalizer away, nobody else cleans up. */
        p->cleanup = p->dirty = p->record || p->cordon || p->want_cordon >= 0;
        if (p->dirty)
            shell_queue(s, p->node);
    }
    change_free_shown(s, c);
    s->due = true;
}

/* ---- policies ---- */

static void touch_changes(node_shell *s, str policy)
{
    for (size_t i = 0; i < s->changes.len; i++) {
        shell_change *c = (shell_change *)(uintptr_t)s->changes.entries[i].value;
        if (c->known && str_eq(c->document->object.skyhook->spec.deployment_policy, policy))
            c->dirty = true;
    }
    s->due = true;
}

void policies_seen(node_shell *s, yyjson_val *json)
{
    err error;
    shell_document *d = shell_document_new(json, API_GROUP, "DeploymentPolicy", &error);
    str name = read_text(yyjson_obj_get(json, "metadata"), "name");
    if (!d) {
        log_line(LOG_WARN, "DeploymentPolicy %.*s: %s", STR_ARG(name), error.text);
        return;
    }
    uint64_t *old = strmap_get(&s->policies, name);
    shell_document *before = old ? (shell_document *)(uintptr_t)*old : NULL;
    fact f = {.kind = FACT_DOCUMENT, .document = &d->object};
    shell_take(s, &f);
    if (old)
        strmap_remove(&s->policies, name);
    if (!strmap_put(&s->policies, d->object.metadata->name, (uint64_t)(uintptr_t)d))
        shell_memory(s);
    shell_document_free(before);
    touch_changes(s, name);
    s->wished = true;
}

void policies_gone(node_shell *s, str name)
{
    uint64_t *old = strmap_get(&s->policies, name);
    if (!old)
        return;
    shell_document *d = (shell_document *)(uintptr_t)*old;
    fact f = {.kind = FACT_DOCUMENT_GONE, .document = &d->object};
    shell_take(s, &f);
    touch_changes(s, name);
    strmap_remove(&s->policies, name);
    shell_document_free(d);
}
