/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_watch.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/strmap.h"
#include "model/document.h"

#define STATUS_OK 200
#define STATUS_GONE 410
#define STATUS_TOO_MANY 429
#define VERSION_BYTES 64
#define RETRY_AFTER_MAX_S 3600

typedef enum phase {
    PHASE_STREAM, /* all objects as events, then the changes, in one request */
    PHASE_PAGES,  /* for servers that have no such thing */
    PHASE_WATCH,
} phase;

struct list_watch {
    watch_sink sink;
    str path;
    phase phase;
    bool pages_only; /* the server refused a streamed list */
    bool doubts;     /* see list_watch_doubt */
    bool rows;       /* see list_watch_rows */
    bool turns;      /* the request that runs lists no more: rows are to be asked for */
    bool synced;
    bool running;
    bool failing; /* the answer that comes in is an error */
    bool listing; /* of a streamed list: the objects that exist are still coming */
    bool restart; /* the version is too old: list anew */
    bool progressed;
    int status;
    uint32_t generation; /* of the list; objects of older ones are gone */
    char version[VERSION_BYTES];
    int64_t told_until; /* the latest version before the present list, as far as it is a number */
    buf next_page;      /* token */
    buf incoming;       /* a page, an event that is not complete, or an error */
    buf request;
    strmap objects; /* "namespace/name" to generation */
    int64_t begun_ms, heard_ms, wait_until_ms, retry_after_s;
    unsigned failures;
    char problem[WATCH_PROBLEM_BYTES];
};

list_watch *list_watch_new(str path, watch_sink sink)
{
    list_watch *w = mem_zalloc(sizeof *w);
    char *own = mem_alloc(path.len + 1);
    if (!w || !own) {
        mem_free(w);
        return mem_free(own);
    }
    memcpy(own, path.ptr, path.len);
    own[path.len] = '\0';
    w->path = (str){own, path.len};
    w->sink = sink;
    w->next_page = BUF(LIST_PAGE_BYTES_MAX);
    w->incoming = BUF(LIST_PAGE_BYTES_MAX);
    w->request = BUF(LIST_PAGE_BYTES_MAX);
    return w;
}

list_watch *list_watch_free(list_watch *w)
{
    if (!w)
        return NULL;
    for (size_t i = 0; i < w->objects.len; i++)
        mem_free((char *)(uintptr_t)w->objects.entries[i].key.ptr);
    strmap_done(&w->objects);
    buf_done(&w->next_page);
    buf_done(&w->incoming);
    buf_done(&w->request);
    mem_free((char *)(uintptr_t)w->path.ptr);
    return mem_free(w);
}

void list_watch_doubt(list_watch *w)
{
    w->doubts = true;
}

void list_watch_rows(list_watch *w)
{
    w->rows = true;
}

bool list_watch_synced(const list_watch *w)
{
    return w->synced;
}

str list_watch_problem(const list_watch *w)
{
    return str_of(w->problem);
}

bool list_watch_useless(const list_watch *w)
{
    return w->running && w->status == STATUS_OK && (w->failing || w->turns);
}

size_t list_watch_count(const list_watch *w)
{
    return w->objects.len;
}

/* ---- objects ---- */

static void complain(list_watch *w, const char *text, str detail)
{
    snprintf(w->problem, sizeof w->problem, "%.*s: %s%s%s", STR_ARG(w->path), text,
             detail.len > 0 ? ": " : "", str_shown(detail).text);
}

static bool keep_version(list_watch *w, str version)
{
    if (version.len == 0 || version.len >= sizeof w->version)
        return false;
    memcpy(w->version, version.ptr, version.len);
    w->version[version.len] = '\0';
    return true;
}

/* Versions of one kind grow. Whether one is older than what is known, by sign; 0 too when they are
 * no numbers, which they need not be. */
static int compare_version(const list_watch *w, str version)
{
    int64_t known, other;
    if (!num_parse(str_of(w->version), &known) || !num_parse(version, &other))
        return 0;
    return (other > known) - (other < known);
}

static bool remember(list_watch *w, str key)
{
    uint64_t *generation = strmap_get(&w->objects, key);
    if (generation) {
        *generation = w->generation;
        return true;
    }
    char *own = mem_alloc(key.len);
    if (!own)
        return false;
    memcpy(own, key.ptr, key.len);
    if (strmap_put(&w->objects, (str){own, key.len}, w->generation))
        return true;
    mem_free(own);
    return false;
}

static void tell_gone(list_watch *w, str key)
{
    str name = key, space = STR_EMPTY;
    if (str_find(key, STR("/")) != SIZE_MAX)
        space = str_cut(&name, '/');
    w->sink.gone(w->sink.context, space, name);
}

static void drop(list_watch *w, const strmap_entry *entry)
{
    str own = entry->key;
    strmap_remove(&w->objects, own);
    tell_gone(w, own);
    mem_free((char *)(uintptr_t)own.ptr);
}

static void forget(list_watch *w, str key)
{
    uint64_t *generation = strmap_get(&w->objects, key);
    if (!generation)
        return; /* told before, or never seen */
    drop(w, (strmap_entry *)(void *)((char *)generation - offsetof(strmap_entry, value)));
}

str watch_row_cell(yyjson_val *table, size_t at)
{
    if (!yyjson_equals_str(yyjson_obj_get(table, "kind"), "Table"))
        return STR_EMPTY;
    yyjson_val *row = yyjson_arr_get_first(yyjson_obj_get(table, "rows"));
    yyjson_val *cell = yyjson_arr_get(yyjson_obj_get(row, "cells"), at);
    return yyjson_is_str(cell) ? (str){yyjson_get_str(cell), yyjson_get_len(cell)} : STR_EMPTY;
}

/* Of a row, which does not say it: the one that is asked for. */
static str space_of_path(const list_watch *w)
{
    static const str before = {"/namespaces/", sizeof "/namespaces/" - 1};
    size_t at = str_find(w->path, before);
    str rest = at == SIZE_MAX ? STR_EMPTY : str_part(w->path, at + before.len, SIZE_MAX);
    return str_cut(&rest, '/');
}

/* "name" or "namespace/name" in out; empty: the object has no name. */
static void key_of(const list_watch *w, yyjson_val *object, buf *out)
{
    yyjson_val *metadata = yyjson_obj_get(object, "metadata");
    str space = json_text_of(metadata, "namespace"), name = json_text_of(metadata, "name");
    if (name.len == 0 && w->rows && (name = watch_row_cell(object, 0)).len > 0)
        space = space_of_path(w);
    if (name.len == 0)
        return;
    if (space.len > 0) {
        buf_add(out, space);
        buf_addc(out, '/');
    }
    buf_add(out, name);
}

static bool take_object(list_watch *w, yyjson_val *object, bool gone)
{
    buf key = BUF(WATCH_EVENT_BYTES_MAX);
    key_of(w, object, &key);
    bool good = !key.failed;
    if (good && key.len > 0) {
        if (gone)
            forget(w, buf_str(&key));
        else
            good = remember(w, buf_str(&key)) && w->sink.seen(w->sink.context, object);
    }
    buf_done(&key);
    return good;
}

/* Lists are asked for without a version, so they are never behind what any server has told. */
static void compare_list(list_watch *w)
{
    int64_t listed;
    if (!num_parse(str_of(w->version), &listed))
        return;
    if (listed < w->told_until && w->sink.set_back)
        w->sink.set_back(w->sink.context);
    w->told_until = listed;
}

/* All objects of the present list were seen: what was not among them does not exist. */
static void finish_list(list_watch *w)
{
    compare_list(w);
    for (size_t i = w->objects.len; i-- > 0;)
        if (w->objects.entries[i].value != w->generation)
            drop(w, &w->objects.entries[i]);
    w->listing = false;
    w->synced = true;
    w->progressed = true;
    w->problem[0] = '\0';
    w->sink.synced(w->sink.context);
}

/* ---- answers ---- */

static bool take_page(list_watch *w)
{
    yyjson_doc *parsed = yyjson_read(w->incoming.ptr, w->incoming.len, 0);
    yyjson_val *root = yyjson_doc_get_root(parsed);
    yyjson_val *metadata = yyjson_obj_get(root, "metadata"), *object;
    yyjson_val *items = yyjson_obj_get(root, "items");
    bool good = yyjson_is_arr(items) && keep_version(w, json_text_of(metadata, "resourceVersion"));
    if (!good)
        complain(w, "the answer is no list", STR_EMPTY);
    size_t i, most;
    yyjson_arr_foreach(items, i, most, object)
    {
        good = good && take_object(w, object, false);
    }
    buf_clear(&w->next_page);
    buf_add(&w->next_page, json_text_of(metadata, "continue"));
    good = good && !w->next_page.failed;
    yyjson_doc_free(parsed);
    w->progressed = w->progressed || good;
    if (good && w->next_page.len == 0) {
        finish_list(w);
        w->phase = PHASE_WATCH;
    }
    return good;
}

static void take_error(list_watch *w, yyjson_val *status)
{
    yyjson_val *code = yyjson_obj_get(status, "code");
    if (yyjson_get_int(code) == STATUS_GONE)
        w->restart = true;
    complain(w, "the server ended the watch", json_text_of(status, "message"));
    w->failing = true;
}

/* A server that is behind what was seen, or was set back to a backup, would tell of changes as if
 * they were new, or of none for long. */
static bool take_bookmark(list_watch *w, yyjson_val *metadata)
{
    str end = json_text_of(yyjson_obj_get(metadata, "annotations"), "k8s.io/initial-events-end");
    str version = json_text_of(metadata, "resourceVersion");
    if (!w->listing && compare_version(w, version) < 0) {
        complain(w, "the server is behind what it told before", STR_EMPTY);
        w->restart = true;
        w->failing = true;
        return true;
    }
    bool good = keep_version(w, version);
    if (good && w->listing && str_eq(end, STR("true"))) {
        finish_list(w);
        w->phase = PHASE_WATCH;
        w->turns = w->rows;
    }
    return good;
}

static bool take_change(list_watch *w, yyjson_val *object, bool is_gone)
{
    str version = json_text_of(yyjson_obj_get(object, "metadata"), "resourceVersion");
    if (w->listing) /* versions of a streamed list come in no order */
        return take_object(w, object, is_gone);
    if (compare_version(w, version) < 0)
        return true; /* told before: it must not undo what came after it */
    return take_object(w, object, is_gone) && keep_version(w, version);
}

static bool take_event(list_watch *w, str line)
{
    yyjson_doc *parsed = yyjson_read(line.ptr, line.len, 0);
    yyjson_val *root = yyjson_doc_get_root(parsed);
    yyjson_val *object = yyjson_obj_get(root, "object");
    str type = json_text_of(root, "type");
    bool good = true;
    if (str_eq(type, STR("ERROR"))) {
        take_error(w, object);
    } else if (str_eq(type, STR("BOOKMARK"))) {
        good = take_bookmark(w, yyjson_obj_get(object, "metadata"));
    } else if (str_eq(type, STR("ADDED")) || str_eq(type, STR("MODIFIED")) ||
               str_eq(type, STR("DELETED"))) {
        good = take_change(w, object, str_eq(type, STR("DELETED")));
    } else {
        complain(w, "an event cannot be read", STR_EMPTY);
        good = false;
    }
    yyjson_doc_free(parsed);
    w->progressed = w->progressed || good;
    return good;
}

static void take_lines(list_watch *w)
{
    size_t at = 0;
    const char *end;
    while (!w->failing && (end = memchr(w->incoming.ptr + at, '\n', w->incoming.len - at))) {
        size_t len = (size_t)(end - w->incoming.ptr) - at;
        if (len > 0 && !take_event(w, (str){w->incoming.ptr + at, len}))
            w->failing = true;
        at += len + 1;
    }
    memmove(w->incoming.ptr, w->incoming.ptr + at, w->incoming.len - at);
    w->incoming.len -= at;
    if (w->incoming.len > WATCH_EVENT_BYTES_MAX) {
        complain(w, "an event is too large", STR_EMPTY);
        w->failing = true;
    }
}

void list_watch_status(list_watch *w, int status, int64_t retry_after_s, int64_t now_ms)
{
    assert(w->running);
    w->status = status;
    w->heard_ms = now_ms;
    w->retry_after_s = retry_after_s < 0                   ? 0
                       : retry_after_s > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S
                                                           : retry_after_s;
    w->failing = status != STATUS_OK;
}

void list_watch_bytes(list_watch *w, str bytes, int64_t now_ms)
{
    assert(w->running);
    w->heard_ms = now_ms;
    if (w->failing && w->incoming.len > WATCH_PROBLEM_BYTES)
        return;
    buf_add(&w->incoming, bytes);
    if (!w->failing && w->phase != PHASE_PAGES && !w->incoming.failed && w->incoming.len > 0)
        take_lines(w);
    if (w->incoming.failed) {
        complain(w, "the answer is too large", STR_EMPTY);
        w->failing = true;
    }
}

/* ---- what comes next ---- */

/* Half to all of the time, by attempt and kind: many clients do not come back at once. */
static int64_t backoff_ms(const list_watch *w)
{
    int64_t ms = WATCH_BACKOFF_FIRST_MS;
    for (unsigned i = 1; i < w->failures && ms < WATCH_BACKOFF_MAX_MS; i++)
        ms *= 2;
    if (ms > WATCH_BACKOFF_MAX_MS)
        ms = WATCH_BACKOFF_MAX_MS;
    uint64_t spread = str_hash(w->path) ^ (w->failures * UINT64_C(0x9e3779b97f4a7c15));
    return ms / 2 + (int64_t)(spread % (uint64_t)(ms / 2 + 1));
}

static void list_anew(list_watch *w)
{
    int64_t known;
    if (num_parse(str_of(w->version), &known) && known > w->told_until)
        w->told_until = known;
    w->phase = w->pages_only ? PHASE_PAGES : PHASE_STREAM;
    w->version[0] = '\0';
    buf_clear(&w->next_page);
    w->restart = false;
}

static void refused(list_watch *w)
{
    yyjson_doc *parsed =
        w->incoming.len > 0 ? yyjson_read(w->incoming.ptr, w->incoming.len, 0) : NULL;
    char words[48];
    snprintf(words, sizeof words, "the server answers %d", w->status);
    complain(w, words, json_text_of(yyjson_doc_get_root(parsed), "message"));
    yyjson_doc_free(parsed);
    w->restart = w->status == STATUS_GONE;
    if (w->phase == PHASE_STREAM && (w->status == 400 || w->status == 422)) {
        w->pages_only = true;
        w->restart = true;
    }
}

/* Watches of many kinds do not end together. */
static unsigned timeout_seconds(const list_watch *w)
{
    return WATCH_TIMEOUT_SECONDS + (unsigned)(str_hash(w->path) % 60);
}

static bool lasted_its_time(const list_watch *w, int64_t now_ms)
{
    return now_ms - w->begun_ms >= timeout_seconds(w) * INT64_C(1000) - WATCH_SHORT_MS;
}

void list_watch_end(list_watch *w, bool whole, int64_t now_ms)
{
    assert(w->running);
    w->running = false;
    bool had_status = w->status != 0, fallback = false;
    if (had_status && w->status != STATUS_OK && w->problem[0] == '\0') {
        bool pages_before = w->pages_only;
        refused(w);
        fallback = w->pages_only && !pages_before;
    }
    bool good = whole && !w->failing;
    if (good && w->phase == PHASE_PAGES)
        good = take_page(w);
    if (!good && w->problem[0] == '\0')
        complain(w, "the connection was cut", STR_EMPTY);
    bool listed = w->phase == PHASE_WATCH;
    bool brief = w->phase != PHASE_PAGES && !w->progressed && now_ms - w->begun_ms < WATCH_SHORT_MS;
    if (w->progressed)
        w->failures = 0;
    if (!good && !listed && w->phase == PHASE_STREAM)
        w->restart = true; /* half a streamed list cannot be gone on with */
    if (w->doubts && listed && !(good && lasted_its_time(w, now_ms)))
        w->restart = true;
    bool wait = !fallback && (brief || (!good && (!w->progressed || !listed)));
    if (w->restart)
        list_anew(w);
    if (wait)
        w->failures++;
    int64_t ms = wait ? backoff_ms(w) : 0;
    if (ms < w->retry_after_s * 1000)
        ms = w->retry_after_s * 1000;
    w->wait_until_ms = now_ms + ms;
    buf_clear(&w->incoming);
}

static void add_encoded(buf *out, str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain)
            buf_addc(out, c);
        else
            buf_addf(out, "%%%02X", (unsigned char)c);
    }
}

static void add_query(list_watch *w)
{
    buf *out = &w->request;
    buf_clear(out);
    buf_add(out, w->path);
    buf_addc(out, str_find(w->path, STR("?")) == SIZE_MAX ? '?' : '&');
    unsigned timeout = timeout_seconds(w);
    switch (w->phase) {
    case PHASE_STREAM:
        buf_addf(out,
                 "watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
                 "&resourceVersionMatch=NotOlderThan&timeoutSeconds=%u",
                 timeout);
        break;
    case PHASE_PAGES:
        buf_addf(out, "limit=%d", LIST_PAGE_OBJECTS);
        if (w->next_page.len > 0) {
            buf_addz(out, "&continue=");
            add_encoded(out, buf_str(&w->next_page));
        }
        break;
    case PHASE_WATCH:
        buf_addf(out, "watch=1&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%u%s",
                 w->version, timeout, w->rows ? "&includeObject=None" : "");
        break;
    }
}

watch_ask_kind list_watch_next(list_watch *w, int64_t now_ms, watch_ask *ret)
{
    if (list_watch_useless(w))
        return ASK_ABORT;
    if (w->running) {
        int64_t silence = w->phase == PHASE_WATCH ? WATCH_SILENCE_MS : LIST_SILENCE_MS;
        ret->at_ms = w->heard_ms + silence;
        if (now_ms < ret->at_ms)
            return ASK_WAIT;
        complain(w, "nothing was heard for too long", STR_EMPTY);
        w->failing = true;
        /* Not even a bookmark came since it was asked for: a server that was set back to a backup
         * waits until it has come to this version once more, and tells of nothing before. */
        w->restart = w->phase == PHASE_WATCH && !w->progressed;
        return ASK_ABORT;
    }
    if (now_ms < w->wait_until_ms) {
        ret->at_ms = w->wait_until_ms;
        return ASK_WAIT;
    }
    add_query(w);
    if (w->request.failed) {
        complain(w, "memory ran out", STR_EMPTY);
        ret->at_ms = w->wait_until_ms = now_ms + WATCH_BACKOFF_FIRST_MS;
        return ASK_WAIT;
    }
    bool first_of_list =
        w->phase == PHASE_STREAM || (w->phase == PHASE_PAGES && w->next_page.len == 0);
    if (first_of_list)
        w->generation++;
    w->listing = w->phase == PHASE_STREAM;
    w->running = true;
    w->failing = w->progressed = w->turns = false;
    w->status = 0;
    w->retry_after_s = 0;
    w->problem[0] = '\0';
    w->begun_ms = w->heard_ms = now_ms;
    ret->path = buf_str(&w->request);
    ret->accept = w->rows && w->phase == PHASE_WATCH ? WATCH_ACCEPT_ROWS : NULL;
    return ASK_SEND;
}
