/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that open a registry. Where a Bundle's contents are in one (spec.contentsId), or its
 * chart is (spec.helmOpOptions), Fleet's agents expect the Secret for it beside their deployment:
 * a copy of the one beside the Bundle, of the same name.
 *
 * A copy is written before the deployment that needs it, whose label then says which it is; by that
 * label it is known, and deleted, also after a restart. It is deleted before the deployment is, or
 * needs another one, as in Fleet: nobody would know of it afterwards. Several deployments of a
 * cluster may need the same copy; it goes with the last of them, and has no owner.
 *
 * The original is read with every change of the Bundle, at the start, and from time to time while
 * agents cannot deploy the Bundle: that is when it matters whether somebody changed it. Then copies
 * are looked for that agents miss. */
#include <stdio.h>

#include "base/base64.h"
#include "base/mem.h"
#include "engine/fleet_names.h"
#include "engine/go_json.h"
#include "operator/bundle_objects.h"
#include "operator/hub_internal.h"

#define REREAD_MS 30000

/* ---- the original ---- */

/* As a Bundle's spec says it; empty: it needs none. */
static str name_in(yyjson_val *spec, const char **ret_type)
{
    str contents = read_text(spec, "contentsId");
    *ret_type = contents.len > 0 ? SECRET_TYPE_OCI : SECRET_TYPE_CHARTS;
    return contents.len > 0 ? contents
                            : read_text(yyjson_obj_get(spec, "helmOpOptions"), "helmOpSecretName");
}

bool hub_access_needed(yyjson_val *spec)
{
    const char *type;
    return name_in(spec, &type).len > 0;
}

void hub_access_free(hub_access *x)
{
    if (!x)
        return;
    mem_free(x->name);
    mem_free(x->data);
    mem_free(x->reference);
    mem_free(x);
}

void hub_access_want(cluster_shell *s, hub_bundle *b, yyjson_val *spec)
{
    const char *type;
    str name = name_in(spec, &type);
    hub_access_free(b->access_next);
    b->access_next = NULL;
    if (name.len == 0)
        return;
    b->access_next = mem_zalloc(sizeof *b->access_next);
    if (!b->access_next) {
        hub_memory(s);
        return;
    }
    b->access_next->type = type;
    hub_set(s, &b->access_next->name, name);
}

void hub_access_take(hub_bundle *b)
{
    hub_access_free(b->access);
    b->access = b->access_next;
    b->access_next = NULL;
}

/* For display, as Fleet does it. */
static bool read_reference(cluster_shell *s, hub_access *x, yyjson_val *data, err *error)
{
    str letters = go_str(go_member(data, STR("reference")));
    buf plain = BUF(HUB_TEXT_BYTES), text = BUF(HUB_TEXT_BYTES);
    bool good = letters.ptr && letters.len > 0 && base64_decode(letters, &plain);
    if (good) {
        buf_addf(&text, "oci://%.*s/%s:latest", STR_ARG(buf_str(&plain)), x->name);
        hub_set(s, &x->reference, buf_str(&text));
    }
    buf_done(&plain);
    buf_done(&text);
    return good || err_set(error, "Secret %s for its registry says no reference", x->name);
}

bool hub_access_read(cluster_shell *s, hub_access *x, yyjson_val *secret, err *error)
{
    yyjson_val *data = yyjson_obj_get(secret, "data");
    char hex[SHA256_HEX_BYTES];
    if (str_eq(str_of(x->type), STR(SECRET_TYPE_OCI)) && !read_reference(s, x, data, error))
        return false;
    buf text = BUF(LIMIT_TEXT_BYTES), whole = BUF(LIMIT_TEXT_BYTES);
    if (data)
        go_value(&text, data); /* keys sorted */
    else
        buf_addz(&text, "{}");
    /* Who may read deployments, but not Secrets, cannot try passwords: the uid is not theirs. */
    str uid = read_text(yyjson_obj_get(secret, "metadata"), "uid");
    buf_addf(&whole, "%.*s\n%s\n%s\n%.*s", STR_ARG(uid), x->name, x->type, STR_ARG(buf_str(&text)));
    bool good = !text.failed && !whole.failed && sha256_hex(buf_str(&whole), hex);
    if (good) {
        hub_set(s, &x->data, buf_str(&text));
        memcpy(x->state, hex, HUB_ACCESS_BYTES - 1);
        x->state[HUB_ACCESS_BYTES - 1] = '\0';
    }
    buf_done(&text);
    buf_done(&whole);
    return good || err_memory(error);
}

/* ---- reading it again ---- */

static str copies_beside(cluster_shell *s, const hub_place *p)
{
    str path = arena_printf(s->scratch, "/api/v1/namespaces/%s/secrets", p->cluster->home);
    if (!path.ptr)
        hub_memory(s);
    return path;
}

static void forget_copy(hub_place *p)
{
    if (p->access_sent == p->access || !p->exists)
        p->access_sent = 0;
    p->access_gone = true;
}

static void is_looked_for(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                          yyjson_val *json)
{
    (void)json;
    hub_place *p = hub_place_of(s, t);
    if (!p || how->kind != WRITE_GONE || !p->access_name || p->access != t->number)
        return;
    forget_copy(p);
    hub_queue(s, p);
}

/* Somebody deleted a copy, if its agent says so and is right. */
static void look_for_copy(cluster_shell *s, const hub_place *p)
{
    if (p->state != BUNDLE_ERR_APPLIED || !p->access_name || p->sending || !p->entry)
        return;
    str said = read_text(json_parse(s->scratch, str_of(p->entry), NULL), "message");
    if (str_find(said, str_of(p->access_name)) == SIZE_MAX ||
        str_find(said, STR("not found")) == SIZE_MAX)
        return;
    kube_write w = {
        .verb = WRITE_READ, .collection = copies_beside(s, p), .name = str_of(p->access_name)};
    hub_ticket ticket = hub_ticket_of(p, is_looked_for);
    ticket.number = p->access;
    if (w.collection.ptr)
        hub_send(s, &w, ticket);
}

static void is_reread(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                      yyjson_val *secret)
{
    err error;
    hub_bundle *b = hub_find(&s->bundles, hub_text(t->bundle));
    if (!b)
        return;
    b->reading = false;
    b->access_due_ms = s->now_ms + REREAD_MS;
    char before[HUB_ACCESS_BYTES];
    if (!b->access || t->number != b->digest || how->kind != WRITE_DONE)
        return; /* what was copied stays as it is */
    memcpy(before, b->access->state, sizeof before);
    if (!hub_access_read(s, b->access, secret, &error))
        return;
    bool same = strcmp(before, b->access->state) == 0;
    for (size_t i = 0; i < b->places.len; i++) {
        if (same)
            look_for_copy(s, b->places.at[i]);
        else
            hub_queue(s, b->places.at[i]);
    }
}

static bool fails(const hub_bundle *b)
{
    return b->known && !b->unread && b->access && b->all.count[BUNDLE_ERR_APPLIED] > 0;
}

void hub_access_step(cluster_shell *s, hub_bundle *b)
{
    if (!fails(b) || b->reading || b->access_due_ms > s->now_ms)
        return;
    str secrets = arena_printf(s->scratch, "/api/v1/namespaces/%.*s/secrets", STR_ARG(b->space));
    kube_write w = {.verb = WRITE_READ, .collection = secrets, .name = str_of(b->access->name)};
    hub_ticket ticket = {.done = is_reread, .bundle = b->key, .number = b->digest};
    b->reading = secrets.ptr && hub_send(s, &w, ticket);
    if (!b->reading)
        b->access_due_ms = s->now_ms + REREAD_MS;
}

int64_t hub_access_next_ms(const hub_bundle *b)
{
    return fails(b) && !b->reading ? b->access_due_ms : REASON_NEVER;
}

/* ---- copies ---- */

/* Only what has our label was given by us. */
void hub_access_seen(cluster_shell *s, hub_place *p, yyjson_val *json)
{
    str given = read_text(read_at(json, "metadata", "labels"), LABEL_ACCESS);
    yyjson_val *spec = yyjson_obj_get(json, "spec");
    str id = read_text(spec, "deploymentID");
    str name = yyjson_get_bool(yyjson_obj_get(spec, "ociContents"))
                   ? str_cut(&id, ':')
                   : read_text(yyjson_obj_get(spec, "helmChartOptions"), "helmOpSecretName");
    uint64_t access = given.len > 0 && name.len > 0 ? str_hash(given) : 0;
    if (access == p->access)
        return;
    p->access = access;
    p->access_gone = false;
    if (access)
        hub_set(s, &p->access_name, name);
    else
        p->access_name = mem_free(p->access_name);
}

/* Who is on the way out needs nothing. */
static bool needs(const hub_place *p, str name)
{
    const hub_access *x = p->bundle->access;
    if (p->target && x && str_eq(str_of(x->name), name))
        return true;
    return (p->target || hub_is_kept(p)) && str_eq(hub_text(p->access_name), name);
}

static bool others_need(const hub_place *p)
{
    const hub_cluster *c = p->cluster;
    for (size_t i = 0; i < c->places.len; i++)
        if (c->places.at[i] != p && needs(c->places.at[i], str_of(p->access_name)))
            return true;
    return false;
}

static void hold(cluster_shell *s, hub_place *p, const write_outcome *how)
{
    write_outcome why = *how;
    str text = arena_printf(s->scratch, "Secret %s/%s: %s", p->cluster->home, p->access_name,
                            how->message);
    snprintf(why.message, sizeof why.message, "%.*s", STR_ARG(text));
    hub_hold(s, p, &why);
}

static void is_given(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                     yyjson_val *json)
{
    (void)json;
    hub_place *p = hub_place_of(s, t);
    if (!p)
        return;
    p->sending = false;
    if (how->kind == WRITE_DONE) {
        hub_unhold(s, p);
        p->access_sent = t->number;
    } else {
        hold(s, p, how);
    }
    if (p->access_sent == p->access)
        p->access_gone = false;
    hub_queue(s, p);
}

static void is_removed(cluster_shell *s, const hub_ticket *t, const write_outcome *how,
                       yyjson_val *json)
{
    (void)json;
    hub_place *p = hub_place_of(s, t);
    if (!p)
        return;
    p->sending = false;
    if (how->kind == WRITE_DONE || how->kind == WRITE_GONE)
        forget_copy(p);
    else
        hub_hold(s, p, how);
    if (p->target || p->exists) {
        hub_queue(s, p);
        return;
    }
    hub_bundle *b = p->bundle;
    hub_cluster *c = p->cluster;
    hub_place_drop(s, p);
    hub_bundle_drop(s, b);
    hub_cluster_drop(s, c);
}

bool hub_access_left(const hub_place *p)
{
    return !p->exists && p->cluster->home && p->access_sent && !p->access_gone && !others_need(p);
}

bool hub_access_remove(cluster_shell *s, hub_place *p)
{
    bool ours = p->exists ? p->access_name != NULL : p->access_sent != 0;
    if (!ours || p->access_gone)
        return false;
    if (others_need(p)) {
        forget_copy(p);
        return false;
    }
    kube_write w = {.verb = WRITE_DELETE,
                    .collection = copies_beside(s, p),
                    .name = str_of(p->access_name),
                    .anyhow = true};
    p->sending = w.collection.ptr && hub_send(s, &w, hub_ticket_of(p, is_removed));
    s->counts.secrets += p->sending;
    return true;
}

static void write_copy(cluster_shell *s, hub_place *p, uint64_t state)
{
    const hub_access *x = p->bundle->access;
    if (!p->exists) { /* no label says so yet */
        hub_set(s, &p->access_name, str_of(x->name));
        p->access_gone = false;
    }
    buf body = BUF(HUB_TEXT_BYTES);
    access_secret secret = {.namespace_ = str_of(p->cluster->home),
                            .name = str_of(x->name),
                            .type = str_of(x->type),
                            .data = str_of(x->data)};
    access_secret_put(&body, &secret);
    kube_write w = {.verb = WRITE_APPLY,
                    .collection = copies_beside(s, p),
                    .name = secret.name,
                    .manager = STR("drover"),
                    .force = true,
                    .anyhow = true,
                    .body = buf_str(&body)};
    hub_ticket ticket = hub_ticket_of(p, is_given);
    ticket.number = state;
    p->sending = w.collection.ptr && !body.failed && hub_send(s, &w, ticket);
    s->counts.secrets += p->sending;
    buf_done(&body);
}

bool hub_access_give(cluster_shell *s, hub_place *p)
{
    const hub_access *x = p->bundle->access;
    uint64_t wanted = x ? str_hash(str_of(x->state)) : 0;
    bool other = p->access_name && !(x && str_eq(str_of(x->name), str_of(p->access_name)));
    if (other && !p->exists && hub_access_remove(s, p))
        return true; /* made for a version that was never deployed */
    if (wanted && wanted != p->access_sent && (wanted != p->access || p->access_gone)) {
        write_copy(s, p, wanted);
        return true;
    }
    return other && hub_access_remove(s, p);
}
