/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_agent/drift.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/mem.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "model/values.h"
#include "operator/bundle_json.h"

#define IGNORED_MAX 100u /* paths of one object */

/* ---- parts that are not compared ---- */

/* Where the comparison is, from the innermost part outwards. */
typedef struct spot {
    const struct spot *up; /* NULL at the root */
    str key;               /* in an object; ptr is NULL in a list */
    size_t index;
} spot;

/* A JSON pointer, cut into its parts. */
typedef struct pointer {
    const str *parts;
    size_t len;
} pointer;

typedef struct comparison {
    arena *arena;
    pointer *ignored;
    size_t ignored_len;
    bool all_ignored;
    bool no_memory;
} comparison;

static str unescaped(arena *a, str part)
{
    char *text = ARENA_ARRAY(a, part.len + 1, char);
    size_t len = 0;
    for (size_t i = 0; text && i < part.len; i++) {
        bool escape = part.ptr[i] == '~' && i + 1 < part.len;
        if (escape && (part.ptr[i + 1] == '0' || part.ptr[i + 1] == '1'))
            text[len++] = part.ptr[++i] == '0' ? '~' : '/';
        else
            text[len++] = part.ptr[i];
    }
    return (str){text, len};
}

static bool add_pointer(comparison *c, str text, err *error)
{
    if (text.len > 0 && text.ptr[0] != '/')
        return err_set(error, "diff.comparePatches: found the path \"%s\", allowed one from /",
                       str_shown(text).text);
    if (c->ignored_len >= IGNORED_MAX)
        return err_set(error, "diff.comparePatches: found more than %u paths", IGNORED_MAX);
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == '/';
    if (count == 0) {
        c->all_ignored = true;
        return true;
    }
    str *parts = ARENA_ARRAY(c->arena, count, str), rest = str_part(text, 1, text.len);
    for (size_t i = 0; parts && i < count; i++) {
        parts[i] = unescaped(c->arena, str_cut(&rest, '/'));
        if (!parts[i].ptr)
            return err_memory(error);
    }
    if (!parts)
        return err_memory(error);
    c->ignored[c->ignored_len++] = (pointer){parts, count};
    return true;
}

static bool meant(const yyjson_val *patch, const object_ref *ref)
{
    object_ref of = {object_text(patch, STR("apiVersion")), object_text(patch, STR("kind")),
                     object_text(patch, STR("namespace")), object_text(patch, STR("name"))};
    return (of.kind.len == 0 || str_eq(of.kind, ref->kind)) &&
           (of.api_version.len == 0 || str_eq(of.api_version, ref->api_version)) &&
           (of.namespace_.len == 0 || str_eq(of.namespace_, ref->namespace_)) &&
           (of.name.len == 0 || str_eq(of.name, ref->name));
}

/* Fleet applies these operations to both sides before it compares: for the operations that say what
 * becomes of a path that is the same as not looking at it. */
static bool add_operation(comparison *c, const yyjson_val *operation, err *error)
{
    str op = object_text(operation, STR("op"));
    if (str_eq(op, STR("ignore"))) {
        c->all_ignored = true;
        return true;
    }
    if (!str_eq(op, STR("remove")) && !str_eq(op, STR("replace")) && !str_eq(op, STR("add")))
        return err_set(error,
                       "diff.comparePatches: op: found \"%s\", allowed remove, replace, add,"
                       " ignore",
                       str_shown(op).text);
    return add_pointer(c, object_text(operation, STR("path")), error);
}

static bool read_ignored(comparison *c, const yyjson_val *diff, const object_ref *ref, err *error)
{
    size_t i, max, k, count;
    yyjson_val *patch, *one;
    if (yyjson_arr_size(go_member(diff, STR("comparePatches"))) == 0)
        return true;
    c->ignored = ARENA_ARRAY(c->arena, IGNORED_MAX, pointer);
    if (!c->ignored)
        return err_memory(error);
    yyjson_arr_foreach(go_member(diff, STR("comparePatches")), i, max, patch)
    {
        if (!meant(patch, ref))
            continue;
        yyjson_arr_foreach(go_member(patch, STR("operations")), k, count, one)
        {
            if (!add_operation(c, one, error))
                return false;
        }
        yyjson_arr_foreach(go_member(patch, STR("jsonPointers")), k, count, one)
        {
            str path = go_str(one);
            if (!add_pointer(c, path.ptr ? path : STR_EMPTY, error))
                return false;
        }
    }
    return true;
}

static bool is_at(const pointer *p, const spot *at)
{
    size_t left = p->len;
    for (; at->up && left > 0; at = at->up, left--) {
        str part = p->parts[left - 1];
        char index[24];
        snprintf(index, sizeof index, "%zu", at->index);
        if (!str_eq(part, at->key.ptr ? at->key : str_of(index)))
            return false;
    }
    return left == 0 && !at->up;
}

static bool ignored(const comparison *c, const spot *at)
{
    for (size_t i = 0; i < c->ignored_len; i++)
        if (is_at(&c->ignored[i], at))
            return true;
    return false;
}

/* ---- values ---- */

/* What a server may leave out. */
static bool says_nothing(const yyjson_val *v)
{
    yyjson_val *value = (yyjson_val *)(uintptr_t)v;
    if (!value || yyjson_is_null(value) || yyjson_is_false(value))
        return true;
    if (yyjson_is_str(value))
        return yyjson_get_len(value) == 0;
    if (yyjson_is_int(value))
        return yyjson_get_sint(value) == 0;
    return yyjson_is_ctn(value) && unsafe_yyjson_get_len(value) == 0;
}

/* Whether a value stands where Kubernetes reads a quantity: "1000m" is "1" there, and nowhere else.
 */
static bool is_quantity_place(const spot *at)
{
    static const str keys[] = {STR("limits"),
                               STR("requests"),
                               STR("hard"),
                               STR("capacity"),
                               STR("default"),
                               STR("defaultRequest"),
                               STR("min"),
                               STR("max"),
                               STR("overhead"),
                               STR("podFixed"),
                               STR("maxLimitRequestRatio")};
    if (at->key.ptr && (str_eq(at->key, STR("sizeLimit")) || str_eq(at->key, STR("divisor"))))
        return true;
    const spot *up = at->up;
    for (size_t i = 0; up && up->key.ptr && i < sizeof keys / sizeof keys[0]; i++)
        if (str_eq(keys[i], up->key))
            return true;
    return false;
}

static bool read_quantity(const yyjson_val *v, quantity *ret)
{
    yyjson_val *value = (yyjson_val *)(uintptr_t)v;
    if (yyjson_is_int(value)) {
        *ret = (quantity){.units = yyjson_get_sint(value)};
        return true;
    }
    str text = go_str(value);
    return text.ptr && quantity_parse(text, ret, NULL);
}

static bool same_scalar(const yyjson_val *wanted, const yyjson_val *live, const spot *at)
{
    quantity a, b;
    yyjson_val *w = (yyjson_val *)(uintptr_t)wanted, *l = (yyjson_val *)(uintptr_t)live;
    if (yyjson_equals(w, l))
        return true;
    return is_quantity_place(at) && read_quantity(w, &a) && read_quantity(l, &b) &&
           quantity_cmp(a, b) == 0;
}

static bool compare(comparison *c, const yyjson_val *wanted, const yyjson_val *live, const spot *at,
                    buf *patch);

/* ---- objects ---- */

/* What every write changes, and no manifest says. */
static bool is_servers(const spot *at)
{
    static const str keys[] = {STR("managedFields"), STR("resourceVersion"), STR("generation"),
                               STR("uid"), STR("creationTimestamp")};
    bool inside = at->up && at->up->up && !at->up->up->up &&
                  str_eq(at->up->key.ptr ? at->up->key : STR_EMPTY, STR("metadata"));
    for (size_t i = 0; inside && i < sizeof keys / sizeof keys[0]; i++)
        if (str_eq(keys[i], at->key))
            return true;
    return false;
}

static bool compare_objects(comparison *c, const yyjson_val *wanted, const yyjson_val *live,
                            const spot *at, buf *patch)
{
    bool differs = false;
    buf_addc(patch, '{');
    yyjson_obj_iter walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)wanted);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        spot here = {at, go_str(key), 0};
        size_t before = patch->len;
        if (is_servers(&here))
            continue;
        json_key_of(patch, here.key);
        if (compare(c, yyjson_obj_iter_get_val(key), go_member(live, here.key), &here, patch))
            differs = true;
        else if (!patch->failed)
            patch->len = before;
    }
    buf_addc(patch, '}');
    return differs;
}

/* ---- lists ---- */

/* The name of an element, if it has one. */
static str element_name(const yyjson_val *element)
{
    return object_text(element, STR("name"));
}

static const yyjson_val *element_named(const yyjson_val *list, str name)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)list, i, max, one)
    {
        if (str_eq(element_name(one), name))
            return one;
    }
    return NULL;
}

/* Whether each element has a name of its own: such lists are maps, and others may add to them. */
static bool is_named(const yyjson_val *list)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)list, i, max, one)
    {
        str name = element_name(one);
        if (name.len == 0 || element_named(list, name) != one)
            return false;
    }
    return true;
}

static bool compare_lists(comparison *c, const yyjson_val *wanted, const yyjson_val *live,
                          const spot *at, buf *patch)
{
    yyjson_val *list = (yyjson_val *)(uintptr_t)wanted, *there = (yyjson_val *)(uintptr_t)live;
    bool named = is_named(list);
    bool differs =
        !yyjson_is_arr(there) || (!named && yyjson_arr_size(there) != yyjson_arr_size(list));
    size_t i, max, before = patch->len;
    yyjson_val *one;
    yyjson_arr_foreach(list, i, max, one)
    {
        spot here = {at, {NULL, 0}, i};
        const yyjson_val *other =
            named ? element_named(there, element_name(one)) : yyjson_arr_get(there, i);
        differs = differs || compare(c, one, other, &here, patch);
    }
    if (patch->failed)
        return differs;
    patch->len = before;
    if (differs) /* a merge patch replaces a list in whole */
        json_write(patch, wanted);
    return differs;
}

static bool compare(comparison *c, const yyjson_val *wanted, const yyjson_val *live, const spot *at,
                    buf *patch)
{
    yyjson_val *w = (yyjson_val *)(uintptr_t)wanted, *l = (yyjson_val *)(uintptr_t)live;
    if (ignored(c, at) || (says_nothing(w) && says_nothing(l)))
        return false;
    if (yyjson_is_obj(w) && yyjson_is_obj(l))
        return compare_objects(c, w, l, at, patch);
    if (yyjson_is_arr(w) && (!l || yyjson_is_arr(l) || yyjson_is_null(l)))
        return compare_lists(c, w, l, at, patch);
    if (l && same_scalar(w, l, at))
        return false;
    json_write(patch, w);
    return true;
}

/* ---- whole objects ---- */

/* What stands in stringData is found in data. */
static bool secret_differs(const yyjson_val *texts, const yyjson_val *live, bool *ret_no_memory)
{
    const yyjson_val *data = go_member(live, STR("data"));
    yyjson_obj_iter walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)texts);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        str text = go_str(yyjson_obj_iter_get_val(key));
        buf encoded = BUF(LIMIT_TEXT_BYTES);
        base64_encode(text.ptr ? text : STR_EMPTY, &encoded);
        *ret_no_memory |= encoded.failed;
        bool same = str_eq(buf_str(&encoded), object_text(data, go_str(key)));
        buf_done(&encoded);
        if (!same)
            return true;
    }
    return false;
}

static bool is_secret(const object_ref *ref)
{
    return str_eq(ref->kind, STR("Secret")) && object_group(ref->api_version).len == 0;
}

/* Like compare_objects, for what a manifest says of a whole object. */
static bool compare_whole(comparison *c, const yyjson_val *wanted, const yyjson_val *live,
                          const object_ref *ref, buf *patch)
{
    spot root = {0};
    bool differs = false, secret = is_secret(ref);
    buf_addc(patch, '{');
    yyjson_obj_iter walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)wanted);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        spot here = {&root, go_str(key), 0};
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        if (str_eq(here.key, STR("apiVersion")) || str_eq(here.key, STR("kind")) ||
            str_eq(here.key, STR("status")))
            continue;
        size_t before = patch->len;
        bool one = secret && str_eq(here.key, STR("stringData"))
                       ? !ignored(c, &here) && secret_differs(value, live, &c->no_memory)
                       : (json_key_of(patch, here.key),
                          compare(c, value, go_member(live, here.key), &here, patch));
        differs |= one;
        if (!patch->failed && (!one || secret))
            patch->len = before; /* nobody reads a secret in a status */
    }
    buf_addc(patch, '}');
    return differs;
}

/* Whole characters, and a mark that something is missing. */
static str cut(arena *a, str text)
{
    if (text.len <= DRIFT_PATCH_BYTES_MAX)
        return arena_str(a, text);
    size_t len = 0, one;
    while ((one = str_utf8_sequence(str_part(text, len, text.len))) > 0 &&
           len + one <= DRIFT_PATCH_BYTES_MAX)
        len += one;
    return arena_printf(a, "%.*s...", (int)len, text.ptr);
}

bool drift_find(arena *a, const drift_facts *f, drift *ret, err *error)
{
    comparison c = {.arena = a};
    object_ref ref = object_ref_of(f->wanted);
    if (!read_ignored(&c, f->diff, &ref, error))
        return false;
    drift found = {0};
    if (!c.all_ignored && !f->live)
        found.modified = true;
    if (!c.all_ignored && f->live) {
        buf patch = BUF(LIMIT_TEXT_BYTES);
        found.modified = compare_whole(&c, f->wanted, f->live, &ref, &patch);
        if (found.modified)
            found.patch = patch.failed ? (str){NULL, 0} : cut(a, buf_str(&patch));
        bool failed = patch.failed || c.no_memory || (found.modified && !found.patch.ptr);
        buf_done(&patch);
        if (failed)
            return err_memory(error);
    }
    if (!found.patch.ptr)
        found.patch = STR_EMPTY;
    *ret = found;
    return true;
}

void modified_put(buf *out, const object_ref *ref, drift_kind kind, str patch)
{
    buf_addc(out, '{');
    json_text_if(out, "kind", ref->kind);
    json_text_if(out, "apiVersion", ref->api_version);
    json_text_if(out, "namespace", ref->namespace_);
    json_text_if(out, "name", ref->name);
    json_true_if(out, "missing", kind == DRIFT_MISSING || kind == DRIFT_FOREIGN);
    json_true_if(out, "exist", kind == DRIFT_FOREIGN);
    json_true_if(out, "delete", kind == DRIFT_EXTRA);
    json_text_if(out, "patch", kind == DRIFT_MODIFIED ? patch : STR_EMPTY);
    json_close(out);
}
