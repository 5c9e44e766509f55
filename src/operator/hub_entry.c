/* SPDX-License-Identifier: Apache-2.0 */
/* What agents complain of, as much of it as statuses quote. An agent may say a megabyte of one
 * deployment, and etcd takes little more than that of a whole Bundle: what is too long is cut when
 * it comes in. Nothing of it decides anything. */
#include "base/mem.h"
#include "operator/bundle_hindrance.h"
#include "operator/hub_internal.h"

#define WORD_BYTES 256 /* a name is never cut */

/* ---- cutting ---- */

/* How much of a text has no more than so many bytes as JSON. */
static size_t fitting(str text, size_t most)
{
    size_t len = 0, used = 0;
    for (; len < text.len; len++) {
        unsigned char c = (unsigned char)text.ptr[len];
        used += c < 0x20 ? sizeof "\\u0000" - 1 : c == '"' || c == '\\' ? 2 : 1;
        if (used > most)
            return len;
    }
    return len;
}

static void put_text(buf *out, str text, size_t most)
{
    static const str mark = STR("...");
    if (fitting(text, most) == text.len) {
        buf_add_json(out, text);
        return;
    }
    size_t len = fitting(text, most - mark.len);
    while (len > 0 && ((unsigned char)text.ptr[len] & 0xC0u) == 0x80u) /* inside a letter */
        len--;
    buf cut = BUF(HUB_TEXT_BYTES);
    buf_add(&cut, str_part(text, 0, len));
    buf_add(&cut, mark);
    buf_add_json(out, buf_str(&cut));
    out->failed |= cut.failed;
    buf_done(&cut);
}

static size_t room(const buf *out)
{
    return out->len < HUB_QUOTE_BYTES ? HUB_QUOTE_BYTES - out->len : 0;
}

/* Texts and lists are cut where there is no room for more of them, members of an object are not:
 * they say which resource it is. */
static void put_value(buf *out, yyjson_val *v)
{
    size_t i, max;
    yyjson_val *key, *one;
    if (yyjson_is_obj(v)) {
        buf_addc(out, '{');
        yyjson_obj_foreach(v, i, max, key, one)
        {
            buf_addz(out, i > 0 ? "," : "");
            json_write(out, key);
            buf_addc(out, ':');
            put_value(out, one);
        }
        buf_addc(out, '}');
    } else if (yyjson_is_arr(v)) {
        buf_addc(out, '[');
        yyjson_arr_foreach(v, i, max, one)
        {
            if (i > 0 && room(out) == 0)
                break;
            buf_addz(out, i > 0 ? "," : "");
            put_value(out, one);
        }
        buf_addc(out, ']');
    } else if (yyjson_is_str(v)) {
        str text = {yyjson_get_str(v), yyjson_get_len(v)};
        put_text(out, text, room(out) > WORD_BYTES ? room(out) : WORD_BYTES);
    } else {
        json_write(out, v);
    }
}

/* ---- taking in ---- */

static str message_of(const hub_place *p, yyjson_val *status)
{
    static const char *const types[] = {"Deployed", "Installed", "Monitored"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        str message = read_text(hub_condition(status, types[i]), "message");
        if (message.len > 0 && (i != 1 || p->applied == p->live))
            return message;
    }
    return STR_EMPTY;
}

/* As many of the resources as an entry has room for, the first of them first. */
static bool put_list(buf *out, const char *name, yyjson_val *list)
{
    size_t i, max, count = 0;
    yyjson_val *one;
    yyjson_arr_foreach(list, i, max, one)
    {
        buf item = BUF(HUB_ENTRY_BYTES);
        put_value(&item, one);
        bool fits = !item.failed && out->len + item.len <= HUB_ENTRY_BYTES;
        if (fits && count++ == 0)
            buf_addf(out, ",\"%s\":[", name);
        else if (fits)
            buf_addc(out, ',');
        if (fits)
            buf_add(out, buf_str(&item));
        out->failed |= item.failed && !item.full;
        buf_done(&item);
    }
    buf_addz(out, count > 0 ? "]" : "");
    return count > 0;
}

/* text: NULL: nothing any more. */
static void entry_set(cluster_shell *s, hub_place *p, const buf *text)
{
    s->entry_bytes -= hub_text(p->entry).len;
    bool fits = text && s->entry_bytes + text->len <= s->settings.entry_bytes_max;
    if (fits)
        hub_set(s, &p->entry, buf_str(text));
    else
        p->entry = mem_free(p->entry);
    s->entry_bytes += hub_text(p->entry).len;
}

void hub_entry_forget(cluster_shell *s, hub_place *p)
{
    entry_set(s, p, NULL);
}

void hub_entry_take(cluster_shell *s, hub_place *p, yyjson_val *status)
{
    static const char *const lists[] = {"modifiedStatus", "nonReadyStatus"};
    str message = message_of(p, status);
    buf text = BUF(HUB_TEXT_BYTES);
    bool any = message.len > 0;
    buf_addz(&text, "{\"message\":");
    put_text(&text, message, HUB_MESSAGE_BYTES);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        any |= put_list(&text, lists[i], yyjson_obj_get(status, lists[i]));
    buf_addc(&text, '}');
    if (text.failed)
        hub_memory(s);
    else
        entry_set(s, p, any ? &text : NULL);
    buf_done(&text);
}

/* ---- quoting ---- */

str hub_entry_message(cluster_shell *s, const hub_place *p)
{
    yyjson_val *entry = p->entry ? json_parse(s->scratch, str_of(p->entry), NULL) : NULL;
    return read_text(entry, "message");
}

void hub_place_entry(cluster_shell *s, const hub_place *p, str name, non_ready_resource *ret)
{
    yyjson_val *entry = p->entry ? json_parse(s->scratch, str_of(p->entry), NULL) : NULL;
    deployment_view v;
    *ret = (non_ready_resource){.name = name,
                                .bundle_state = (bundle_state)p->state,
                                .message = read_text(entry, "message"),
                                .modified_status = yyjson_obj_get(entry, "modifiedStatus"),
                                .non_ready_status = yyjson_obj_get(entry, "nonReadyStatus")};
    bool known = engine_deployment(s->engine, str_of(p->bundle->key), hub_label(p), &v);
    if (known && v.hindered.len > 0) /* it says more than what an agent said before */
        ret->message = arena_printf(s->scratch, HINDRANCE_MARK "%.*s", STR_ARG(v.hindered));
    else if (known && v.refused.len > 0 && ret->message.len == 0)
        ret->message = v.refused;
    else if (p->cluster->denied && !p->cluster->home)
        ret->message = hub_home_trouble(s, p->cluster, s->scratch);
    else if (!p->cluster->home)
        ret->message = reason_text(s->scratch, &(reason){.rule = REASON_NO_NAMESPACE});
    if (!ret->message.ptr) {
        hub_memory(s);
        ret->message = STR_EMPTY;
    }
}
