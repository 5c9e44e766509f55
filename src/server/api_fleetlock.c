/* SPDX-License-Identifier: Apache-2.0 */
/* FleetLock: hosts that ask before they reboot take the slots of resourceConcurrency.
 *
 * The client's id is the name of a Resource, or its spec.providerRef. A host that is neither is
 * refused, or joins (--fleetlock-unknown): a Resource is made for it, with the group it names as a
 * label, so that rules can count it like any other. Which slots a host needs, the rules say;
 * whether it got them, the engine does. A host that no rule counts holds nothing and is refused:
 * nobody would limit it. */
#include "base/mem.h"
#include "server/api.h"
#include "server/api_shapes.h"

/* ---- who holds ---- */

#define HOLDERS_NAMED 3

typedef struct slot_search {
    str host;
    bool held;    /* the host has what it asked for */
    size_t count; /* others with slots */
    buf *names;   /* some of them */
} slot_search;

static bool look_at_slot(void *context, const slot_view *v)
{
    slot_search *s = context;
    if (str_eq(v->target, s->host)) {
        s->held = s->held || v->host;
        return true;
    }
    if (s->count++ < HOLDERS_NAMED)
        buf_addf(s->names, "%s%.*s", s->count > 1 ? ", " : "", STR_ARG(v->target));
    return true;
}

static void refuse_claim(call *c, str name)
{
    scoped(buf_done) buf names = BUF(LIMIT_ERR_BYTES), text = BUF(LIMIT_ERR_BYTES);
    slot_search s = {.host = name, .names = &names};
    engine_slots(control_engine(c->api->control), STR_EMPTY, look_at_slot, &s);
    if (s.count == 0)
        buf_addz(&text, "no slot is free, or no rule counts this host");
    else
        buf_addf(&text, "no slot is free: %.*s%s", STR_ARG(buf_str(&names)),
                 s.count > HOLDERS_NAMED ? " and others have them" : " has them");
    buf_addc(&text, 0);
    api_fail(c, 409, "failed_lock", "%s", text.failed ? "no slot is free" : text.ptr);
}

/* ---- who asks ---- */

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

/* ---- hosts that join ---- */

static bool may_join(const call *c, str group)
{
    err ignored;
    label one = {STR(FLEETLOCK_GROUP_LABEL), group};
    if (c->caller.level != ACCESS_WORKER)
        return true;
    const selector *s = selector_parse(c->request->arena, c->caller.selector, &ignored);
    return s && selector_match(s, (label_set){&one, 1});
}

static bool join(call *c, str id, str group)
{
    err error = {.text = ""};
    if (!may_join(c, group)) {
        api_fail(c, 403, "forbidden", "this token is not for that host");
        return false;
    }
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    buf_addz(&text, "{\"apiVersion\":\"drover.dev/v1alpha1\",\"kind\":\"Resource\",\"metadata\":"
                    "{\"name\":");
    buf_add_json(&text, id);
    buf_addz(&text, ",\"labels\":{\"" FLEETLOCK_GROUP_LABEL "\":");
    buf_add_json(&text, group);
    buf_addz(&text, "}},\"spec\":{\"kind\":\"host\"}}");
    problems *found = problems_new();
    apply_answer answer = {.arena = c->request->arena, .found = found};
    apply_request request = {.who = c->caller.name,
                             .file = STR("request"),
                             .bytes = buf_str(&text),
                             .expected = APPLY_ANY};
    bool good = (found && !text.failed) || err_memory(&error);
    good = good && control_apply(c->api->control, &request, c->now_ms, &answer, &error);
    if (!good && found && problems_count(found) > 0) {
        str message = problems_at(found, 0)->message;
        api_fail(c, 400, "bad_request", "%s", arena_str(c->request->arena, message).ptr);
    } else if (!good) {
        api_fail(c, 500, "internal", "%s", error.text);
    }
    problems_free(found);
    return good;
}

/* ---- requests ---- */

typedef struct fleet_client {
    str id, group;
    str resource; /* empty: it is none */
} fleet_client;

/* Who asks, or a refusal. */
static bool read_client(call *c, fleet_client *ret)
{
    err error;
    str protocol = http_header(c->request, "fleet-lock-protocol");
    if (!protocol.ptr || !str_eq(protocol, STR("true"))) {
        api_fail(c, 400, "missing_header", "the header fleet-lock-protocol: true is needed");
        return false;
    }
    yyjson_val *body = json_parse(c->request->arena, c->request->body, &error);
    yyjson_val *client = yyjson_obj_get(body, "client_params");
    yyjson_val *id = yyjson_obj_get(client, "id");
    yyjson_val *group = yyjson_obj_get(client, "group");
    if (!yyjson_is_str(id) || !yyjson_is_str(group) || yyjson_get_len(id) == 0) {
        api_fail(c, 400, "bad_request", "%s",
                 body ? "client_params with id and group is needed" : error.text);
        return false;
    }
    *ret = (fleet_client){.id = {yyjson_get_str(id), yyjson_get_len(id)},
                          .group = {yyjson_get_str(group), yyjson_get_len(group)}};
    ret->resource = arena_str(c->request->arena, resource_of(c, ret->id));
    if (ret->resource.len > 0 && !api_may_work(c, ret->resource)) {
        api_fail(c, 403, "forbidden", "this token is not for that host");
        return false;
    }
    if (ret->resource.len == 0 && !c->api->fleetlock_join) {
        api_fail(c, 404, "unknown_client", "there is no Resource with this id");
        return false;
    }
    return true;
}

static bool act(call *c, act_kind kind, str name)
{
    err error = {.text = ""};
    fact_act what = {.act = kind, .who = c->caller.name, .target = name};
    if (control_act(c->api->control, &what, c->now_ms, &error))
        return true;
    api_fail(c, 500, "internal", "%s", error.text);
    return false;
}

void run_fleet_claim(call *c)
{
    fleet_client host;
    if (!read_client(c, &host))
        return;
    if (host.resource.len == 0 && !join(c, host.id, host.group))
        return;
    str name = host.resource.len > 0 ? host.resource : host.id;
    if (!act(c, ACT_CLAIM_SLOT, name))
        return;
    scoped(buf_done) buf names = BUF(LIMIT_ERR_BYTES);
    slot_search s = {.host = name, .names = &names};
    engine_slots(control_engine(c->api->control), name, look_at_slot, &s);
    if (s.held)
        buf_addz(api_out(c), "{}\n");
    else
        refuse_claim(c, name);
}

/* A host that never joined has nothing to give back. */
void run_fleet_free(call *c)
{
    fleet_client host;
    if (read_client(c, &host) && (host.resource.len == 0 || act(c, ACT_FREE_SLOT, host.resource)))
        buf_addz(api_out(c), "{}\n");
}
