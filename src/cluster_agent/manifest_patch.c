/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of overlays, in the three forms that Fleet knows, told apart as Fleet does: a list is a
 * JSON patch; an object is a strategic merge patch for Kubernetes' own kinds, and a JSON merge
 * patch for all others.
 *
 * A strategic merge patch is one that knows which lists are maps. Which ones is a property of
 * Kubernetes' types; the table below names those that a manifest can hold. */
#include "base/mem.h"
#include "base/vec.h"
#include "cluster_agent/manifest_internal.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "model/json.h"
#include "model/yaml.h"

#define DIRECTIVE STR("$patch")

typedef struct patching {
    yyjson_mut_doc *doc;
    bool strategic;
    bool service; /* the ports of a Service have another key than those of a container */
    err *error;
    bool failed;
} patching;

static yyjson_mut_val *fail(patching *p)
{
    p->failed = true;
    return NULL;
}

/* Nothing was wrong but the memory. */
static yyjson_mut_val *made(patching *p, yyjson_mut_val *value)
{
    if (!value && !p->failed) {
        err_memory(p->error);
        p->failed = true;
    }
    return value;
}

static yyjson_mut_val *copy_of(patching *p, const yyjson_val *value)
{
    return made(p, yyjson_val_mut_copy(p->doc, (yyjson_val *)(uintptr_t)value));
}

/* ---- which lists are maps ---- */

typedef struct merge_key {
    str field, key;
} merge_key;

static const merge_key merge_keys[] = {
    {STR("containers"), STR("name")},
    {STR("initContainers"), STR("name")},
    {STR("ephemeralContainers"), STR("name")},
    {STR("volumes"), STR("name")},
    {STR("env"), STR("name")},
    {STR("imagePullSecrets"), STR("name")},
    {STR("resourceClaims"), STR("name")},
    {STR("schedulingGates"), STR("name")},
    {STR("secrets"), STR("name")},
    {STR("webhooks"), STR("name")},
    {STR("volumeMounts"), STR("mountPath")},
    {STR("volumeDevices"), STR("devicePath")},
    {STR("hostAliases"), STR("ip")},
    {STR("topologySpreadConstraints"), STR("topologyKey")},
    {STR("ownerReferences"), STR("uid")},
};

/* The member that elements of a list are known by; empty: the list is replaced in whole. */
static str key_of_list(const patching *p, str field, const yyjson_val *patch)
{
    const yyjson_val *first = yyjson_arr_get_first((yyjson_val *)(uintptr_t)patch);
    if (!p->strategic)
        return STR_EMPTY;
    if (str_eq(field, STR("ports")) && (p->service || go_member(first, STR("containerPort"))))
        return p->service ? STR("port") : STR("containerPort");
    for (size_t i = 0; i < sizeof merge_keys / sizeof merge_keys[0]; i++)
        if (str_eq(merge_keys[i].field, field))
            return merge_keys[i].key;
    return STR_EMPTY;
}

/* ---- merging ---- */

static yyjson_mut_val *lay(patching *p, const yyjson_val *base, const yyjson_val *patch, str field);

static str directive_of(const patching *p, const yyjson_val *patch)
{
    return p->strategic ? object_text(patch, DIRECTIVE) : STR_EMPTY;
}

/* Whether a member of a patch is a word to the merger; one that is not known is refused. */
static bool is_directive(patching *p, str key)
{
    if (!p->strategic || key.len == 0 || key.ptr[0] != '$')
        return false;
    if (!str_eq(key, DIRECTIVE)) {
        err_set(p->error, "found \"%s\", allowed the directive $patch only", str_shown(key).text);
        p->failed = true;
    }
    return true;
}

static bool put(patching *p, yyjson_mut_val *to, str key, yyjson_mut_val *value)
{
    yyjson_mut_val *name = yyjson_mut_strncpy(p->doc, key.ptr, key.len);
    return made(p, name && value && yyjson_mut_obj_add(to, name, value) ? value : NULL);
}

static bool lay_member(patching *p, yyjson_mut_val *to, const yyjson_val *base, yyjson_val *patch,
                       str key)
{
    if (yyjson_is_null(patch) || str_eq(directive_of(p, patch), STR("delete")))
        return true;
    yyjson_mut_val *value = lay(p, base, patch, key);
    return !p->failed && put(p, to, key, value);
}

static yyjson_mut_val *lay_objects(patching *p, const yyjson_val *base, const yyjson_val *patch)
{
    yyjson_mut_val *to = made(p, yyjson_mut_obj(p->doc));
    str directive = directive_of(p, patch);
    bool replaces = str_eq(directive, STR("replace"));
    if (directive.len > 0 && !replaces && !str_eq(directive, STR("merge"))) {
        err_set(p->error, "$patch: found \"%s\", allowed delete, replace, merge",
                str_shown(directive).text);
        return fail(p);
    }
    yyjson_obj_iter walk = yyjson_obj_iter_with(
        replaces || !yyjson_is_obj((yyjson_val *)(uintptr_t)base) ? NULL
                                                                  : (yyjson_val *)(uintptr_t)base);
    for (yyjson_val *key; !p->failed && (key = yyjson_obj_iter_next(&walk));) {
        yyjson_val *value = yyjson_obj_iter_get_val(key), *over = go_member(patch, go_str(key));
        if (over)
            lay_member(p, to, value, over, go_str(key));
        else
            put(p, to, go_str(key), copy_of(p, value));
    }
    walk = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)patch);
    for (yyjson_val *key; !p->failed && (key = yyjson_obj_iter_next(&walk));) {
        bool there = !replaces && go_member(base, go_str(key));
        if (!there && !is_directive(p, go_str(key)) && !p->failed)
            lay_member(p, to, NULL, yyjson_obj_iter_get_val(key), go_str(key));
    }
    return p->failed ? NULL : to;
}

/* An element with the same value of the key. */
static yyjson_val *twin(const yyjson_val *list, const yyjson_val *of, str key)
{
    size_t i, max;
    yyjson_val *one, *want = go_member(of, key);
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)list, i, max, one)
    {
        yyjson_val *has = go_member(one, key);
        if (has && want && yyjson_equals(has, want))
            return one;
    }
    return NULL;
}

/* A list may say that it replaces: by an element that says nothing else. */
static bool list_replaces(const patching *p, const yyjson_val *patch)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)patch, i, max, one)
    {
        if (str_eq(directive_of(p, one), STR("replace")) && yyjson_obj_size(one) == 1)
            return true;
    }
    return false;
}

static bool append(patching *p, yyjson_mut_val *to, yyjson_mut_val *value)
{
    return made(p, value && yyjson_mut_arr_append(to, value) ? value : NULL);
}

static yyjson_mut_val *lay_lists(patching *p, const yyjson_val *base, const yyjson_val *patch,
                                 str key)
{
    yyjson_mut_val *to = made(p, yyjson_mut_arr(p->doc));
    size_t i, max;
    yyjson_val *one;
    bool replaces = key.len == 0 || list_replaces(p, patch);
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)(replaces ? NULL : base), i, max, one)
    {
        const yyjson_val *over = twin(patch, one, key);
        if (p->failed || (over && str_eq(directive_of(p, over), STR("delete"))))
            continue;
        append(p, to, over ? lay(p, one, over, STR_EMPTY) : copy_of(p, one));
    }
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)patch, i, max, one)
    {
        bool word = directive_of(p, one).len > 0 &&
                    (replaces || str_eq(directive_of(p, one), STR("delete")));
        if (p->failed || word || (!replaces && twin(base, one, key)))
            continue;
        if (key.len > 0 && !go_member(one, key)) {
            err_set(p->error, "found an element without \"%.*s\" in a list that has it as its key",
                    STR_ARG(key));
            return fail(p);
        }
        append(p, to, key.len > 0 ? lay(p, NULL, one, STR_EMPTY) : copy_of(p, one));
    }
    return p->failed ? NULL : to;
}

static yyjson_mut_val *lay(patching *p, const yyjson_val *base, const yyjson_val *patch, str field)
{
    yyjson_val *value = (yyjson_val *)(uintptr_t)patch;
    if (p->failed)
        return NULL;
    if (yyjson_is_obj(value))
        return lay_objects(p, base, patch);
    str key = yyjson_is_arr(value) ? key_of_list(p, field, patch) : STR_EMPTY;
    if (key.len > 0)
        return lay_lists(p, base, patch, key);
    return copy_of(p, patch);
}

/* ---- JSON patches ---- */

static yyjson_mut_val *at_path(yyjson_mut_val *root, str path)
{
    return path.len == 0 ? root : yyjson_mut_ptr_getn(root, path.ptr, path.len);
}

static bool remove_at(yyjson_mut_val **root, str path)
{
    return path.len > 0 && yyjson_mut_ptr_removen(*root, path.ptr, path.len);
}

static bool add_at(patching *p, yyjson_mut_val **root, str path, yyjson_mut_val *value)
{
    size_t cut = path.len;
    while (cut > 0 && path.ptr[cut - 1] != '/')
        cut--;
    if (path.len == 0)
        return *root = value, true;
    yyjson_mut_val *parent = cut > 0 ? at_path(*root, str_part(path, 0, cut - 1)) : NULL;
    if (yyjson_mut_is_arr(parent))
        return yyjson_mut_ptr_addn(*root, path.ptr, path.len, value, p->doc);
    return yyjson_mut_is_obj(parent) &&
           yyjson_mut_ptr_setn(*root, path.ptr, path.len, value, p->doc);
}

static bool operate(patching *p, yyjson_mut_val **root, const yyjson_val *operation)
{
    str op = object_text(operation, STR("op")), path = object_text(operation, STR("path"));
    str from = object_text(operation, STR("from"));
    yyjson_val *given = go_member(operation, STR("value"));
    yyjson_mut_val *value = given ? copy_of(p, given) : NULL;
    bool moves = str_eq(op, STR("move")), copies = str_eq(op, STR("copy"));
    bool adds = str_eq(op, STR("add")), replaces = str_eq(op, STR("replace"));
    if (moves || copies) {
        yyjson_mut_val *found = at_path(*root, from);
        value = found ? made(p, yyjson_mut_val_mut_copy(p->doc, found)) : NULL;
    }
    if (p->failed)
        return false;
    bool good = false;
    if (str_eq(op, STR("test"))) {
        yyjson_mut_val *found = at_path(*root, path);
        good = found && value && yyjson_mut_equals(found, value);
    } else if (str_eq(op, STR("remove"))) {
        good = remove_at(root, path);
    } else if (adds || replaces || moves || copies) {
        good = value && (!replaces || path.len == 0 || remove_at(root, path)) &&
               (!moves || remove_at(root, from)) && add_at(p, root, path, value);
    } else {
        err_set(p->error, "op: found \"%s\", allowed add, remove, replace, move, copy, test",
                str_shown(op).text);
        return fail(p), false;
    }
    if (!good && !p->failed) {
        err_set(p->error, "%s of \"%s\" cannot be done", str_shown(op).text, str_shown(path).text);
        p->failed = true;
    }
    return good;
}

static yyjson_mut_val *operate_all(patching *p, const yyjson_val *base, const yyjson_val *patch)
{
    yyjson_mut_val *root = copy_of(p, base);
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach((yyjson_val *)(uintptr_t)patch, i, max, one)
    {
        if (p->failed || !operate(p, &root, one))
            return NULL;
    }
    return root;
}

/* ---- files ---- */

/* Kinds that Kubernetes itself has: their types say which lists are maps. */
static bool is_builtin(str api_version)
{
    static const str groups[] = {
        STR(""),
        STR("apps"),
        STR("batch"),
        STR("autoscaling"),
        STR("policy"),
        STR("networking.k8s.io"),
        STR("extensions"),
        STR("rbac.authorization.k8s.io"),
        STR("events.k8s.io"),
        STR("storage.k8s.io"),
        STR("node.k8s.io"),
        STR("admissionregistration.k8s.io"),
        STR("scheduling.k8s.io"),
        STR("coordination.k8s.io"),
        STR("discovery.k8s.io"),
        STR("certificates.k8s.io"),
    };
    str group = object_group(api_version);
    for (size_t i = 0; api_version.len > 0 && i < sizeof groups / sizeof groups[0]; i++)
        if (str_eq(groups[i], group))
            return true;
    return false;
}

/* Writes the document as the patch makes it. */
static bool patch_document(const document *base, const yyjson_val *patch, buf *out, err *error)
{
    patching p = {.doc = yyjson_mut_doc_new(&json_memory),
                  .strategic = is_builtin(base->api_version),
                  .service = str_eq(base->kind, STR("Service")),
                  .error = error};
    if (!p.doc)
        return err_memory(error);
    bool list = yyjson_is_arr((yyjson_val *)(uintptr_t)patch);
    yyjson_mut_val *root =
        list ? operate_all(&p, base->root, patch) : lay(&p, base->root, patch, STR_EMPTY);
    yyjson_mut_doc_set_root(p.doc, root);
    yyjson_doc *made_doc = root ? yyjson_mut_doc_imut_copy(p.doc, &json_memory) : NULL;
    if (made_doc)
        json_write(out, yyjson_doc_get_root(made_doc));
    bool good = made_doc && !out->failed;
    yyjson_doc_free(made_doc);
    yyjson_mut_doc_free(p.doc);
    return good || p.failed ? good : err_memory(error);
}

/* Which of several documents is meant: that of the patch's kind and name. */
static bool is_meant(const document *base, const yyjson_val *patch)
{
    object_ref wanted = object_ref_of(patch), has = object_ref_of(base->root);
    return str_eq(wanted.kind, base->kind) && str_eq(wanted.name, has.name);
}

static bool read_set(document_set *set, const resource_file *file, err *error)
{
    problems *found scoped(problems_cleanup) = problems_new();
    if (!found)
        return err_memory(error);
    if (documents_read(set, file->name, file->bytes, found))
        return true;
    if (problems_out_of_memory(found) || problems_count(found) == 0)
        return err_memory(error);
    buf text = BUF(LIMIT_TEXT_BYTES);
    problem_text(problems_at(found, 0), &text);
    bool failed = text.failed;
    if (!failed)
        err_set(error, "%s", text.ptr);
    buf_done(&text);
    return failed ? err_memory(error) : false;
}

static bool patch_all(const document_set *base, const yyjson_val *patch, buf *out, err *error)
{
    size_t count = documents_count(base), met = 0;
    for (size_t i = 0; i < count; i++) {
        const document *one = documents_at(base, i);
        bool meant = count == 1 || is_meant(one, patch);
        met += meant;
        buf_addz(out, i > 0 ? "\n---\n" : "");
        if (!meant)
            json_write(out, one->root);
        else if (!patch_document(one, patch, out, error))
            return false;
    }
    return met > 0 ||
           err_set(error, "found a patch for none of the %zu objects of the file", count);
}

/* A patch is one document, and may be a list: it is no document as others are. */
static const yyjson_val *read_patch(arena *a, str bytes, err *error)
{
    yyjson_val *root = json_parse_within(a, bytes, bytes.len, error);
    if (root || err_is_memory(error))
        return root;
    buf text = BUF(LIMIT_TEXT_BYTES);
    yaml_error wrong = {0};
    bool found = false;
    yaml_stream *stream = str_utf8(bytes) ? yaml_open(bytes) : NULL;
    if (!stream)
        err_set(error, "found bytes that are no UTF-8, or no memory");
    else if (!yaml_next(stream, &text, &found, &wrong) && wrong.no_memory)
        err_memory(error);
    else if (!found)
        err_set(error, "line %u: %s", wrong.line, wrong.what.text);
    else
        root = json_parse_within(a, buf_str(&text), text.len, error);
    if (stream)
        yaml_close(stream);
    buf_done(&text);
    return root;
}

bool manifest_patch(arena *a, resource_file *file, const resource_file *patch, err *error)
{
    document_set *base scoped(document_set_cleanup) = document_set_new();
    if (!base)
        return err_memory(error);
    buf out = BUF(LIMIT_TEXT_BYTES);
    const yyjson_val *over = read_patch(a, patch->bytes, error);
    bool good = over && read_set(base, file, error) && patch_all(base, over, &out, error);
    if (good) {
        file->bytes = out.failed ? (str){NULL, 0} : arena_str(a, buf_str(&out));
        good = file->bytes.ptr || err_memory(error);
    }
    buf_done(&out);
    if (!good && !err_is_memory(error))
        err_wrap(error, "%s", str_shown(patch->name).text);
    return good;
}
