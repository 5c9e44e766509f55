/* SPDX-License-Identifier: Apache-2.0 */
#include "model/json.h"

#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "model/document.h"

/* ---- memory ---- */

static void *take(void *context, size_t bytes)
{
    (void)context;
    return mem_alloc(bytes);
}

static void *resize(void *context, void *ptr, size_t old_bytes, size_t bytes)
{
    (void)context;
    (void)old_bytes;
    return mem_realloc(ptr, bytes);
}

static void give(void *context, void *ptr)
{
    (void)context;
    mem_free(ptr);
}

const yyjson_alc json_memory = {take, resize, give, NULL};

static void *arena_take(void *context, size_t bytes)
{
    return arena_alloc(context, bytes);
}

static void *arena_resize(void *context, void *ptr, size_t old_bytes, size_t bytes)
{
    void *moved = arena_alloc(context, bytes);
    if (moved && ptr)
        memcpy(moved, ptr, old_bytes < bytes ? old_bytes : bytes);
    return moved;
}

static void arena_give(void *context, void *ptr)
{
    (void)context;
    (void)ptr;
}

/* ---- checks ---- */

const yyjson_val json_empty_object = {.tag = YYJSON_TYPE_OBJ, .uni.ofs = sizeof(yyjson_val)};

/* Objects up to FEW_MOST are compared pair by pair, where mostly lengths differ and no text is
 * touched; up to PAIRS_MOST by marks; up to TABLE_MOST in a table on the stack; beyond that in a
 * map. */
#define FEW_MOST 8
#define PAIRS_MOST 32
#define TABLE_MOST 512
#define TABLE_SLOTS 2048

/* Equal keys have equal marks; unequal ones nearly always have not. Ends differ more than
 * beginnings in labels, so both count. */
static uint64_t key_mark(const yyjson_val *key)
{
    const char *text = key->uni.str;
    size_t len = json_len(key);
    uint64_t head = 0;
    uint64_t tail = 0;
    if (len >= 8) {
        memcpy(&head, text, 8);
        memcpy(&tail, text + len - 8, 8);
    } else if (len >= 4) {
        memcpy(&head, text, 4);
        memcpy(&tail, text + len - 4, 4);
    } else if (len > 0) {
        head = (uint64_t)(unsigned char)text[0] << 16 |
               (uint64_t)(unsigned char)text[len / 2] << 8 | (unsigned char)text[len - 1];
    }
    return (head * UINT64_C(0x9E3779B97F4A7C15)) ^ (tail * UINT64_C(0xC2B2AE3D27D4EB4F)) ^ len;
}

static bool key_equal(const yyjson_val *a, const yyjson_val *b)
{
    return str_eq(json_str(a), json_str(b));
}

/* The text of a key has most likely left the caches since it was parsed: lengths stand in the
 * values. */
static const yyjson_val *twice_in_few(const yyjson_val *object, size_t count)
{
    const yyjson_val *keys[FEW_MOST];
    const yyjson_val *key = json_first(object);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            if (json_len(keys[j]) == json_len(key) && key_equal(keys[j], key))
                return key;
        keys[i] = key;
        key = json_next(key + 1);
    }
    return NULL;
}

static const yyjson_val *twice_in_pairs(const yyjson_val *object, size_t count)
{
    uint64_t marks[PAIRS_MOST];
    const yyjson_val *keys[PAIRS_MOST];
    const yyjson_val *key = json_first(object);
    for (size_t i = 0; i < count; i++) {
        uint64_t mark = key_mark(key);
        for (size_t j = 0; j < i; j++)
            if (marks[j] == mark && key_equal(keys[j], key))
                return key;
        marks[i] = mark;
        keys[i] = key;
        key = json_next(key + 1);
    }
    return NULL;
}

static const yyjson_val *twice_in_table(const yyjson_val *object, size_t count)
{
    uint16_t slots[TABLE_SLOTS] = {0};
    const yyjson_val *keys[TABLE_MOST];
    const yyjson_val *key = json_first(object);
    for (size_t i = 0; i < count; i++) {
        size_t slot = (size_t)((key_mark(key) * UINT64_C(0x9E3779B97F4A7C15)) >> 53);
        for (; slots[slot] != 0; slot = (slot + 1) % TABLE_SLOTS)
            if (key_equal(keys[slots[slot] - 1], key))
                return key;
        keys[i] = key;
        slots[slot] = (uint16_t)(i + 1);
        key = json_next(key + 1);
    }
    return NULL;
}

/* *ret_memory is false when there was not enough of it. */
static const yyjson_val *twice_in_map(const yyjson_val *object, size_t count, bool *ret_memory)
{
    scoped(strmap_done) strmap seen = {0};
    const yyjson_val *key = json_first(object);
    for (size_t i = 0; i < count; i++) {
        if (strmap_get(&seen, json_str(key)))
            return key;
        if (!strmap_put(&seen, json_str(key), 1)) {
            *ret_memory = false;
            return NULL;
        }
        key = json_next(key + 1);
    }
    return NULL;
}

static json_fault check_keys(const yyjson_val *object, const yyjson_val **ret_at)
{
    size_t count = json_len(object);
    const yyjson_val *twice = NULL;
    bool memory = true;
    if (count < 2)
        return JSON_NONE;
    if (count <= FEW_MOST)
        twice = twice_in_few(object, count);
    else if (count <= PAIRS_MOST)
        twice = twice_in_pairs(object, count);
    else if (count <= TABLE_MOST)
        twice = twice_in_table(object, count);
    else
        twice = twice_in_map(object, count, &memory);
    if (!memory)
        return JSON_MEMORY;
    if (!twice)
        return JSON_NONE;
    *ret_at = twice;
    return JSON_DUPLICATE;
}

/* yyjson keeps values in the order of the text, so one run over the array sees all of them. */
json_fault json_check(const yyjson_val *root, const yyjson_val **ret_at)
{
    const yyjson_val *ends[LIMIT_DOCUMENT_DEPTH + 1];
    size_t depth = 0;
    const yyjson_val *end = json_next(root);
    for (const yyjson_val *v = root; v < end; v++) {
        if (!json_is_container(v))
            continue;
        while (depth > 0 && v >= ends[depth - 1])
            depth--;
        if (depth == LIMIT_DOCUMENT_DEPTH) {
            *ret_at = v;
            return JSON_DEPTH;
        }
        ends[depth++] = json_next(v);
        if (json_is_object(v)) {
            json_fault fault = check_keys(v, ret_at);
            if (fault != JSON_NONE)
                return fault;
        }
    }
    return JSON_NONE;
}

const yyjson_val *json_member(const yyjson_val *object, str name)
{
    if (!object || !json_is_object(object))
        return NULL;
    size_t count = json_len(object);
    const yyjson_val *key = json_first(object);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(json_str(key), name))
            return key + 1;
        key = json_next(key + 1);
    }
    return NULL;
}

/* ---- texts on their own ---- */

str json_text_of(yyjson_val *object, const char *key)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    return yyjson_is_str(v) ? (str){yyjson_get_str(v), yyjson_get_len(v)} : STR_EMPTY;
}

yyjson_val *json_parse(arena *a, str text, err *error)
{
    return json_parse_within(a, text, LIMIT_DOCUMENT_BYTES, error);
}

yyjson_val *json_parse_within(arena *a, str text, size_t max_bytes, err *error)
{
    if (text.len > max_bytes) {
        err_set(error, "found %zu bytes, allowed %zu", text.len, max_bytes);
        return NULL;
    }
    yyjson_alc memory = {arena_take, arena_resize, arena_give, a};
    yyjson_read_err fault = {0};
    char *copy =
        arena_alloc(a, text.len + 1); /* yyjson wants bytes it may write to, but writes none */
    if (!copy) {
        err_memory(error);
        return NULL;
    }
    memcpy(copy, text.ptr ? text.ptr : "", text.len);
    yyjson_doc *doc = yyjson_read_opts(copy, text.len, 0, &memory, &fault);
    if (!doc) {
        if (fault.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
            err_memory(error);
        else
            err_set(error, "this is not JSON: %s at byte %zu", fault.msg, fault.pos);
        return NULL;
    }
    yyjson_val *root = yyjson_doc_get_root(doc);
    const yyjson_val *at = root;
    switch (json_check(root, &at)) {
    case JSON_NONE: return root;
    case JSON_DEPTH:
        err_set(error, "found values nested deeper than %d levels", LIMIT_DOCUMENT_DEPTH);
        return NULL;
    case JSON_DUPLICATE:
        err_set(error, "found the key \"%.*s\" twice, allowed once", STR_ARG(json_str(at)));
        return NULL;
    case JSON_MEMORY: err_memory(error); return NULL;
    }
    return NULL;
}

static void write_scalar(buf *out, const yyjson_val *v)
{
    switch (json_type(v)) {
    case YYJSON_TYPE_STR: buf_add_json(out, json_str(v)); break;
    case YYJSON_TYPE_NUM:
        if (json_number(v) == YYJSON_SUBTYPE_UINT)
            buf_add_uint(out, v->uni.u64);
        else if (json_number(v) == YYJSON_SUBTYPE_SINT)
            buf_add_int(out, v->uni.i64);
        else
            buf_addf(out, "%.17g", v->uni.f64);
        break;
    case YYJSON_TYPE_BOOL: buf_addz(out, json_is_true(v) ? "true" : "false"); break;
    default: buf_addz(out, "null"); break;
    }
}

/* Depth is bounded by json_check before anybody writes. */
void json_write(buf *out, const yyjson_val *value)
{
    if (!json_is_container(value)) {
        write_scalar(out, value);
        return;
    }
    bool object = json_is_object(value);
    size_t count = json_len(value);
    const yyjson_val *item = json_first(value);
    buf_addc(out, object ? '{' : '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_addc(out, ',');
        if (object) {
            buf_add_json(out, json_str(item));
            buf_addc(out, ':');
            item++;
        }
        json_write(out, item);
        item = json_next(item);
    }
    buf_addc(out, object ? '}' : ']');
}
