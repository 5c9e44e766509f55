/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/act_request.h"

#include "base/limits.h"
#include "base/mem.h"
#include "model/document.h"

static const char *const act_words[] = {
#define X(act, text) [ACT_##act] = text,
    ACTS(X)
#undef X
};

static const char *key_of(act_owner owner)
{
    static const char *const keys[] = {
#define X(owner, key) key,
        ACT_OWNERS(X)
#undef X
    };
    return keys[owner];
}

static bool is_of(act_owner owner, act_kind act)
{
    switch (owner) {
    case ACT_OF_SKYHOOK: return act == ACT_RESET || act == ACT_RESET_BATCHES || act == ACT_RETRY;
    case ACT_OF_BUNDLE: return act == ACT_RESUME || act == ACT_APPROVE;
    }
    return false;
}

static bool act_find(act_owner owner, str word, act_kind *ret)
{
    for (size_t i = 0; i < sizeof act_words / sizeof act_words[0]; i++) {
        if (!str_eq(word, str_of(act_words[i])) || !is_of(owner, (act_kind)i))
            continue;
        *ret = (act_kind)i;
        return true;
    }
    return false;
}

bool act_requests_read(arena *a, str text, act_subject of, act_list *ret, err *error)
{
    const char *key = key_of(of.owner);
    yyjson_val *root = json_parse(a, text, error);
    size_t count = yyjson_arr_size(root), index, most;
    if (!root)
        return err_wrap(error, "annotation %s", key);
    if (!yyjson_is_arr(root) || count > ACT_REQUESTS_MAX)
        return err_set(error, "annotation %s: found no list of at most %d acts", key,
                       ACT_REQUESTS_MAX);
    act_list list = {ARENA_ARRAY(a, count + 1, fact_act), 0};
    if (!list.at)
        return err_memory(error);
    yyjson_val *item;
    yyjson_arr_foreach(root, index, most, item)
    {
        fact_act act = {.change = of.change,
                        .who = json_text_of(item, "who"),
                        .target = json_text_of(item, "target"),
                        .package = json_text_of(item, "package"),
                        .stage = json_text_of(item, "stage"),
                        .partition = json_text_of(item, "partition"),
                        .keep_batches = yyjson_is_true(yyjson_obj_get(item, "keepBatches"))};
        if (!act_find(of.owner, json_text_of(item, "act"), &act.act))
            return err_set(error, "annotation %s: found the act \"%s\"", key,
                           str_shown(json_text_of(item, "act")).text);
        list.at[list.len++] = act;
    }
    *ret = list;
    return true;
}

static void put_text(buf *out, const char *key, str text)
{
    if (text.len == 0)
        return;
    buf_addf(out, ",\"%s\":", key);
    buf_add_json(out, text);
}

bool act_requests_open(buf *out, str text, act_owner owner, err *error)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    act_list before = {0};
    if (!a)
        return err_memory(error);
    /* What cannot be read is replaced: it would be refused anyway. */
    bool good =
        text.len > 0 && act_requests_read(a, text, (act_subject){owner, STR_EMPTY}, &before, error);
    buf_add(out, good && before.len > 0 ? str_part(text, 0, text.len - 1) : STR("["));
    return !out->failed || err_memory(error);
}

void act_requests_put(buf *out, const fact_act *act)
{
    bool first = out->len == 0 || out->ptr[out->len - 1] == '[';
    buf_addf(out, "%s{\"act\":\"%s\"", first ? "" : ",", act_words[act->act]);
    put_text(out, "target", act->target);
    put_text(out, "package", act->package);
    put_text(out, "stage", act->stage);
    put_text(out, "partition", act->partition);
    put_text(out, "who", act->who);
    buf_addz(out, act->keep_batches ? ",\"keepBatches\":true}" : "}");
}

bool act_requests_close(buf *out, err *error)
{
    buf_addc(out, ']');
    return !out->failed || err_memory(error);
}

bool act_request_add(buf *out, str text, act_owner owner, const fact_act *act, err *error)
{
    if (!act_requests_open(out, text, owner, error))
        return false;
    act_requests_put(out, act);
    return act_requests_close(out, error);
}
