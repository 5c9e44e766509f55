/* SPDX-License-Identifier: Apache-2.0 */
/* FleetLock: hosts that ask before they reboot take the slots of resourceConcurrency.
 *
 * The client's id is the name of a Resource, or its spec.providerRef. Unknown hosts are refused.
 * The group is not looked at: which slots a host needs, the rules say. The engine says by decisions
 * who took a slot and who gave it back, so who holds is known from the journal; it is read when the
 * first host asks. A host that no rule limits holds nothing and is refused: nobody would count it.
 */
#include "base/mem.h"
#include "server/api.h"
#include "server/api_shapes.h"

/* The protocol's own form of an error. */
static void refuse(call *c, int status, const char *kind, const char *text)
{
    buf_clear(api_out(c));
    c->reply->status = status;
    buf_addf(api_out(c), "{\"kind\":\"%s\",\"value\":", kind);
    buf_add_json(api_out(c), str_of(text));
    buf_addz(api_out(c), "}\n");
}

/* ---- who holds ---- */

static void note_entry(api *a, arena *texts, const journal_entry *e)
{
    err error;
    if (!str_starts(e->json, STR("{\"decision\":\"slot\"")))
        return;
    yyjson_val *o = json_parse(texts, e->json, &error);
    yyjson_val *target = yyjson_obj_get(o, "target");
    if (!yyjson_is_str(target))
        return;
    str name = {yyjson_get_str(target), yyjson_get_len(target)};
    bool taken = yyjson_get_bool(yyjson_obj_get(o, "taken"));
    uint64_t *held = strmap_get(a->slots, name);
    if (held && (taken || *held > 0))
        *held += taken ? 1 : (uint64_t)-1;
    else if (!held && taken) {
        str key = arena_str(a->slot_names, name);
        if (key.ptr)
            strmap_put(a->slots, key, 1);
    }
}

typedef struct slot_walk {
    api *api;
    arena *texts;
    int64_t seen;
} slot_walk;

static bool walk_entry(void *context, const journal_entry *e)
{
    slot_walk *w = context;
    arena_place start = arena_mark(w->texts);
    note_entry(w->api, w->texts, e);
    arena_rewind(w->texts, start);
    w->seen = e->sequence;
    return true;
}

static bool slots_known(call *c, int64_t after, err *error)
{
    api *a = c->api;
    if (!a->slots) {
        a->slots = mem_zalloc(sizeof *a->slots);
        a->slot_names = arena_new(0);
        if (!a->slots || !a->slot_names)
            return err_memory(error);
    }
    slot_walk w = {.api = a, .texts = c->request->arena};
    return store_journal(control_store(a->control), after, walk_entry, &w, error);
}

/* ---- requests ---- */

typedef struct id_search {
    str id;
    str found; /* the name */
    control *control;
} id_search;

static bool look_for_id(void *context, const stored_document *d)
{
    id_search *s = context;
    const object *o = control_object(s->control, KIND_RESOURCE, d->name);
    if (o && str_eq(o->resource->spec.provider_ref, s->id)) {
        s->found = o->metadata->name;
        return false;
    }
    return true;
}

static str resource_of(call *c, str id)
{
    err ignored;
    control *plane = c->api->control;
    id_search s = {.id = id, .control = plane};
    if (control_object(plane, KIND_RESOURCE, id))
        return id;
    store_documents(control_store(plane), (document_key){STR("Resource"), STR_EMPTY}, look_for_id,
                    &s, &ignored);
    return s.found;
}

/* The resource that asks, or nothing and a refusal. */
static bool read_client(call *c, str *ret)
{
    err error;
    str protocol = http_header(c->request, "fleet-lock-protocol");
    if (!protocol.ptr || !str_eq(protocol, STR("true"))) {
        refuse(c, 400, "missing_header", "the header fleet-lock-protocol: true is needed");
        return false;
    }
    yyjson_val *body = json_parse(c->request->arena, c->request->body, &error);
    yyjson_val *client = yyjson_obj_get(body, "client_params");
    yyjson_val *id = yyjson_obj_get(client, "id");
    yyjson_val *group = yyjson_obj_get(client, "group");
    if (!yyjson_is_str(id) || !yyjson_is_str(group) || yyjson_get_len(id) == 0) {
        refuse(c, 400, "bad_request",
               body ? "client_params with id and group is needed" : error.text);
        return false;
    }
    *ret = resource_of(c, (str){yyjson_get_str(id), yyjson_get_len(id)});
    if (ret->len == 0) {
        refuse(c, 404, "unknown_client", "there is no Resource with this id");
        return false;
    }
    *ret = arena_str(c->request->arena, *ret);
    if (!api_may_work(c, *ret)) {
        refuse(c, 403, "forbidden", "this token is not for that host");
        return false;
    }
    return true;
}

static bool act(call *c, act_kind kind, str name)
{
    err error = {.text = ""};
    store *s = control_store(c->api->control);
    int64_t before = c->api->slots ? store_sequence(s) : 0;
    fact_act what = {.act = kind, .who = c->caller.name, .target = name};
    if (control_act(c->api->control, &what, c->now_ms, &error) && slots_known(c, before, &error))
        return true;
    refuse(c, 500, "internal", error.text);
    return false;
}

void run_fleet_claim(call *c)
{
    str name;
    if (!read_client(c, &name) || !act(c, ACT_CLAIM_SLOT, name))
        return;
    const uint64_t *held = strmap_get(c->api->slots, name);
    if (held && *held > 0)
        buf_addz(api_out(c), "{}\n");
    else
        refuse(c, 409, "failed_lock", "no slot is free, or no rule counts this host");
}

void run_fleet_free(call *c)
{
    str name;
    if (read_client(c, &name) && act(c, ACT_FREE_SLOT, name))
        buf_addz(api_out(c), "{}\n");
}
