/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where the engine's data meet CEL: resource, deployment, environment and version
 * as maps that are read in place. */
#include "engine/chain.h"
#include "select/cel.h"

typedef enum entity_kind {
    ENTITY_RESOURCE,
    ENTITY_DEPLOYMENT,
    ENTITY_ENVIRONMENT,
    ENTITY_VERSION,
    ENTITY_NONE
} entity_kind;

/* ---- labels as a map ---- */

typedef struct label_map {
    cel_object base;
    label_set labels;
} label_map;

static size_t labels_size(const cel_object *self)
{
    return ((const label_map *)(const void *)self)->labels.len;
}

static bool labels_get(const cel_object *self, cel_value key, arena *scratch, cel_value *ret)
{
    (void)scratch;
    if (key.kind != CEL_STRING)
        return false;
    str value = label_get(((const label_map *)(const void *)self)->labels, cel_text(key));
    if (!value.ptr)
        return false;
    *ret = cel_string(value);
    return true;
}

static void labels_at(const cel_object *self, size_t i, arena *scratch, cel_value *ret_key,
                      cel_value *ret)
{
    (void)scratch;
    const label *l = &((const label_map *)(const void *)self)->labels.at[i];
    *ret_key = cel_string(l->key);
    *ret = cel_string(l->value);
}

static const cel_ops label_ops = {labels_size, labels_get, labels_at};

static cel_value label_value(label_set labels, arena *scratch)
{
    label_map *m = ARENA_NEW(scratch, label_map);
    if (!m)
        return cel_null();
    *m = (label_map){{&label_ops}, labels};
    return cel_foreign_map(&m->base);
}

/* ---- entities as maps ---- */

#define ENTITY_KEYS_MAX 12

typedef struct entity_map {
    cel_object base;
    const releases *r;
    entity_kind kind;
    uint32_t index; /* NO: an empty map */
} entity_map;

typedef struct entity_field {
    str key;
    cel_value value;
} entity_field;

static cel_value time_value(int64_t ms)
{
    int64_t seconds = ms / 1000 - (ms % 1000 < 0);
    return cel_timestamp((moment){seconds, (int32_t)((ms - seconds * 1000) * 1000000)});
}

static cel_value json_value(raw_json json)
{
    return cel_from_json((yyjson_val *)(uintptr_t)json);
}

static void put(entity_field *fields, size_t *n, str key, cel_value value)
{
    fields[(*n)++] = (entity_field){key, value};
}

static void put_common(const releases *r, const metadata *m, entity_field *f, size_t *n,
                       arena *scratch)
{
    put(f, n, STR("id"), cel_string(m->uid.len > 0 ? m->uid : m->name));
    put(f, n, STR("name"), cel_string(m->name));
    put(f, n, STR("metadata"), label_value(m->labels, scratch));
    put(f, n, STR("createdAt"),
        m->creation_timestamp.set ? cel_timestamp(m->creation_timestamp.at)
                                  : time_value(r->core->settings.start_ms));
}

static size_t resource_fields(const releases *r, const object *o, entity_field *f, arena *scratch)
{
    size_t n = 0;
    put_common(r, o->metadata, f, &n, scratch);
    put(f, &n, STR("identifier"), cel_string(o->metadata->name));
    put(f, &n, STR("kind"), cel_string(o->resource->spec.kind));
    put(f, &n, STR("version"), cel_string(o->resource->spec.version));
    if (o->resource->spec.config)
        put(f, &n, STR("config"), json_value(o->resource->spec.config));
    if (o->resource->spec.provider_ref.len > 0)
        put(f, &n, STR("providerId"), cel_string(o->resource->spec.provider_ref));
    return n;
}

static size_t version_fields(const releases *r, const rel_version *v, entity_field *f,
                             arena *scratch)
{
    static const str states[] = {
#define X(state, text) STR(text),
        VERSION_STATES(X)
#undef X
    };
    size_t n = 0;
    if (v->doc)
        put_common(r, &v->doc->metadata, f, &n, scratch);
    else
        put(f, &n, STR("id"), cel_string(rel_text(r, v->id)));
    put(f, &n, STR("tag"), cel_string(rel_text(r, v->tag)));
    put(f, &n, STR("deploymentId"), cel_string(rel_text(r, r->deployments.at[v->deployment].id)));
    if (v->doc) {
        put(f, &n, STR("status"), cel_string(states[v->doc->spec.status]));
        if (v->doc->spec.config)
            put(f, &n, STR("config"), json_value(v->doc->spec.config));
    }
    return n;
}

static size_t entity_fields(const entity_map *m, entity_field *f, arena *scratch)
{
    const releases *r = m->r;
    size_t n = 0;
    if (m->index == NO)
        return 0;
    switch (m->kind) {
    case ENTITY_RESOURCE: return resource_fields(r, r->resources.at[m->index].object, f, scratch);
    case ENTITY_VERSION: return version_fields(r, &r->versions.at[m->index], f, scratch);
    case ENTITY_DEPLOYMENT: {
        const deployment *d = r->deployments.at[m->index].doc;
        put_common(r, &d->metadata, f, &n, scratch);
        put(f, &n, STR("slug"), cel_string(d->metadata.name));
        put(f, &n, STR("resourceSelector"), cel_string(d->spec.resource_selector.source));
        return n;
    }
    case ENTITY_ENVIRONMENT: {
        const environment *e = r->environments.at[m->index].doc;
        put_common(r, &e->metadata, f, &n, scratch);
        put(f, &n, STR("description"), cel_string(e->spec.description));
        put(f, &n, STR("resourceSelector"), cel_string(e->spec.resource_selector.source));
        return n;
    }
    case ENTITY_NONE: return 0;
    }
    return 0;
}

/* The two fields nearly every selector asks for, without making the others. */
static bool entity_fast(const entity_map *m, str key, arena *scratch, cel_value *ret)
{
    const releases *r = m->r;
    const metadata *meta = NULL;
    if (m->index == NO)
        return false;
    if (m->kind == ENTITY_RESOURCE)
        meta = r->resources.at[m->index].object->metadata;
    else if (m->kind == ENTITY_DEPLOYMENT)
        meta = &r->deployments.at[m->index].doc->metadata;
    else if (m->kind == ENTITY_ENVIRONMENT)
        meta = &r->environments.at[m->index].doc->metadata;
    if (!meta)
        return false;
    if (str_eq(key, STR("metadata"))) {
        *ret = label_value(meta->labels, scratch);
        return true;
    }
    if (str_eq(key, STR("name"))) {
        *ret = cel_string(meta->name);
        return true;
    }
    return false;
}

static size_t entity_size(const cel_object *self)
{
    entity_field fields[ENTITY_KEYS_MAX];
    const entity_map *m = (const entity_map *)(const void *)self;
    return entity_fields(m, fields, m->r->scratch);
}

static bool entity_get(const cel_object *self, cel_value key, arena *scratch, cel_value *ret)
{
    const entity_map *m = (const entity_map *)(const void *)self;
    if (key.kind != CEL_STRING)
        return false;
    str name = cel_text(key);
    if (entity_fast(m, name, scratch, ret))
        return true;
    entity_field fields[ENTITY_KEYS_MAX];
    size_t n = entity_fields(m, fields, scratch);
    for (size_t i = 0; i < n; i++)
        if (str_eq(fields[i].key, name)) {
            *ret = fields[i].value;
            return true;
        }
    return false;
}

static void entity_at(const cel_object *self, size_t i, arena *scratch, cel_value *ret_key,
                      cel_value *ret)
{
    entity_field fields[ENTITY_KEYS_MAX];
    entity_fields((const entity_map *)(const void *)self, fields, scratch);
    *ret_key = cel_string(fields[i].key);
    *ret = fields[i].value;
}

static const cel_ops entity_ops = {entity_size, entity_get, entity_at};

/* ---- evaluation ---- */

#define VARIABLES_MAX 4

static entity_kind kind_of(str variable)
{
    if (str_eq(variable, STR("resource")))
        return ENTITY_RESOURCE;
    if (str_eq(variable, STR("deployment")))
        return ENTITY_DEPLOYMENT;
    if (str_eq(variable, STR("environment")))
        return ENTITY_ENVIRONMENT;
    return str_eq(variable, STR("version")) ? ENTITY_VERSION : ENTITY_NONE;
}

static uint32_t index_of(scope_release of, entity_kind kind)
{
    switch (kind) {
    case ENTITY_RESOURCE: return of.resource;
    case ENTITY_DEPLOYMENT: return of.deployment;
    case ENTITY_ENVIRONMENT: return of.environment;
    case ENTITY_VERSION: return of.version;
    case ENTITY_NONE: return NO;
    }
    return NO;
}

/* Entities without a document have no fields. */
static uint32_t with_document(const releases *r, entity_kind kind, uint32_t index)
{
    if (index == NO)
        return NO;
    if (kind == ENTITY_RESOURCE && !r->resources.at[index].object)
        return NO;
    if (kind == ENTITY_DEPLOYMENT && !r->deployments.at[index].doc)
        return NO;
    if (kind == ENTITY_ENVIRONMENT && !r->environments.at[index].doc)
        return NO;
    return index;
}

bool scope_release_matches(releases *r, const expression *e, scope_release of, bool *ret,
                           err *error)
{
    if (!e->program) {
        *ret = false;
        return true;
    }
    const str *variables;
    size_t count = expression_scope_variables(e->scope, &variables);
    entity_map maps[VARIABLES_MAX];
    cel_value bindings[VARIABLES_MAX];
    for (size_t i = 0; i < count && i < VARIABLES_MAX; i++) {
        entity_kind kind = kind_of(variables[i]);
        maps[i] = (entity_map){{&entity_ops}, r, kind, with_document(r, kind, index_of(of, kind))};
        bindings[i] = cel_foreign_map(&maps[i].base);
    }
    arena_place place_ = arena_mark(r->scratch);
    err unused;
    bool good = cel_match(e->program, bindings, r->scratch, ret, error ? error : &unused);
    arena_rewind(r->scratch, place_);
    return good;
}

bool scope_resource_matches(releases *r, const expression *e, uint32_t res, bool *ret, err *error)
{
    return scope_release_matches(r, e, (scope_release){NO, NO, res, NO}, ret, error);
}

bool scope_deployment_matches(releases *r, const expression *e, uint32_t d, bool *ret, err *error)
{
    return scope_release_matches(r, e, (scope_release){d, NO, NO, NO}, ret, error);
}

bool scope_environment_matches(releases *r, const expression *e, uint32_t env, bool *ret,
                               err *error)
{
    return scope_release_matches(r, e, (scope_release){NO, env, NO, NO}, ret, error);
}

bool scope_version_matches(releases *r, const expression *e, uint32_t d, uint32_t v, bool *ret)
{
    return scope_release_matches(r, e, (scope_release){d, NO, NO, v}, ret, NULL);
}

bool scope_version_may_match(releases *r, const expression *e, uint32_t d, bool *ret)
{
    if (!expression_sees(e, STR("version")))
        return scope_version_matches(r, e, d, NO, ret);
    const str *variables;
    size_t count = expression_scope_variables(e->scope, &variables);
    entity_map map = {{&entity_ops}, r, ENTITY_DEPLOYMENT, with_document(r, ENTITY_DEPLOYMENT, d)};
    cel_value bindings[VARIABLES_MAX];
    for (size_t i = 0; i < count && i < VARIABLES_MAX; i++)
        bindings[i] = kind_of(variables[i]) == ENTITY_DEPLOYMENT
                          ? cel_foreign_map(&map.base)
                          : (cel_value){.kind = CEL_ERROR, .code = CEL_NO_SUCH_VARIABLE};
    arena_place place_ = arena_mark(r->scratch);
    cel_value v = cel_eval(e->program, bindings, r->scratch, NULL);
    arena_rewind(r->scratch, place_);
    bool unknown = v.kind == CEL_ERROR && v.code == CEL_NO_SUCH_VARIABLE;
    bool missing = v.kind == CEL_ERROR && v.code == CEL_NO_SUCH_KEY;
    *ret = unknown || (v.kind == CEL_BOOL && v.b);
    return unknown || missing || v.kind == CEL_BOOL;
}

bool expression_sees(const expression *e, str variable)
{
    const str *variables;
    size_t count = e->program ? expression_scope_variables(e->scope, &variables) : 0;
    for (size_t i = 0; i < count; i++)
        if (str_eq(variables[i], variable))
            return cel_uses(e->program, i);
    return false;
}
