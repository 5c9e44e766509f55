/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/events.h"

#include <assert.h>

#include "base/mem.h"
#include "base/strmap.h"

#define BODY_BYTES_MAX (16u * 1024u)
#define NAME_BYTES (LIMIT_NAME_BYTES + 1)
#define NAME_SUFFIX_BYTES 17 /* "." and 16 digits */
#define THOUSAND 1000

typedef enum entry_state { ENTRY_QUIET, ENTRY_FRESH, ENTRY_REPEATED, ENTRY_RUNNING } entry_state;

typedef struct entry {
    struct entry *next;
    entry_state state;
    bool created;    /* the server has it */
    bool again;      /* it happened again while it was being written */
    int64_t due_ms;  /* of ENTRY_REPEATED */
    int64_t last_ms; /* when it happened last */
    int64_t count;
    moment first, last;
    kube_event event;      /* texts are in the key */
    char name[NAME_BYTES]; /* of the Event */
    size_t key_len;
    char key[];
} entry;

typedef struct entry_list {
    entry *first, **last;
    size_t count;
} entry_list;

struct events {
    str component, instance; /* behind the struct */
    strmap known;            /* key to entry */
    entry_list fresh, repeated;
    entry *running[EVENT_RUNNING_MAX];
    int64_t tokens; /* thousandths */
    int64_t filled_ms;
    buf key, body, collection;
    events_counts counts;
};

/* ---- life ---- */

events *events_new(str component, str instance)
{
    events *e = mem_zalloc(sizeof *e + component.len + instance.len);
    if (!e)
        return NULL;
    char *texts = (char *)(e + 1);
    memcpy(texts, component.ptr, component.len);
    memcpy(texts + component.len, instance.ptr, instance.len);
    e->component = (str){texts, component.len};
    e->instance = (str){texts + component.len, instance.len};
    e->fresh.last = &e->fresh.first;
    e->repeated.last = &e->repeated.first;
    e->tokens = (int64_t)EVENT_BURST * THOUSAND;
    e->key = BUF(BODY_BYTES_MAX);
    e->body = BUF(BODY_BYTES_MAX);
    e->collection = BUF(LIMIT_PATH_BYTES);
    return e;
}

events *events_free(events *e)
{
    if (!e)
        return NULL;
    for (size_t i = 0; i < e->known.len; i++)
        mem_free((entry *)(uintptr_t)e->known.entries[i].value);
    strmap_done(&e->known);
    buf_done(&e->key);
    buf_done(&e->body);
    buf_done(&e->collection);
    return mem_free(e);
}

events_counts events_count(const events *e)
{
    return e->counts;
}

/* ---- lists ---- */

static void append(entry_list *list, entry *x)
{
    x->next = NULL;
    *list->last = x;
    list->last = &x->next;
    list->count++;
}

static entry *take_first(entry_list *list)
{
    entry *x = list->first;
    list->first = x->next;
    if (!list->first)
        list->last = &list->first;
    list->count--;
    return x;
}

static void forget(events *e, entry *x)
{
    strmap_remove(&e->known, (str){x->key, x->key_len});
    mem_free(x);
}

/* Those that have been quiet for long; all of them when there is no room. */
static void tidy(events *e, int64_t now_ms)
{
    for (size_t i = e->known.len; i-- > 0;) {
        entry *x = (entry *)(uintptr_t)e->known.entries[i].value;
        bool is_old = now_ms - x->last_ms >= EVENT_KNOWN_MS;
        if (x->state == ENTRY_QUIET && (is_old || e->known.len >= EVENT_KNOWN_MAX))
            forget(e, x);
    }
}

/* ---- adding ---- */

static str cut_to(str text, size_t most)
{
    if (text.len <= most)
        return text;
    size_t len = most;
    while (len > 0 && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--;
    return str_part(text, 0, len);
}

/* Zero bytes part the texts, so that no two lists of texts have the same key. */
static void make_key(buf *out, const kube_event *event)
{
    const str texts[] = {event->api_version,
                         event->kind,
                         event->namespace,
                         event->name,
                         event->uid,
                         cut_to(event->reason, EVENT_REASON_BYTES_MAX),
                         cut_to(event->message, EVENT_MESSAGE_BYTES_MAX)};
    buf_clear(out);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf_add(out, texts[i]);
        buf_addc(out, '\0');
    }
    buf_addc(out, event->warning ? 'w' : 'n');
}

static void point_into_key(entry *x, bool warning)
{
    str *texts[] = {&x->event.api_version, &x->event.kind,   &x->event.namespace, &x->event.name,
                    &x->event.uid,         &x->event.reason, &x->event.message};
    str rest = {x->key, x->key_len};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = str_cut(&rest, '\0');
    x->event.warning = warning;
}

/* A name that neither an earlier process nor this one has used. */
static void name_entry(const events *e, entry *x)
{
    uint64_t number =
        str_hash((str){x->key, x->key_len}) ^ str_hash(e->instance) ^
        ((uint64_t)x->first.seconds * UINT64_C(1000000007) + (uint64_t)x->first.nanos) *
            UINT64_C(0x9e3779b97f4a7c15);
    buf name = BUF(NAME_BYTES);
    buf_add(&name, cut_to(x->event.name, LIMIT_NAME_BYTES - NAME_SUFFIX_BYTES));
    buf_addf(&name, ".%016llx", (unsigned long long)number);
    if (!name.failed)
        memcpy(x->name, name.ptr, name.len + 1);
    buf_done(&name);
}

static entry *entry_new(events *e, const kube_event *event, moment wall)
{
    entry *x = mem_zalloc(sizeof *x + e->key.len);
    if (!x)
        return NULL;
    x->key_len = e->key.len;
    memcpy(x->key, e->key.ptr, e->key.len);
    x->first = wall;
    point_into_key(x, event->warning);
    name_entry(e, x);
    if (x->name[0] != '\0' &&
        strmap_put(&e->known, (str){x->key, x->key_len}, (uint64_t)(uintptr_t)x))
        return x;
    return mem_free(x);
}

static void happened(events *e, entry *x, int64_t now_ms)
{
    switch (x->state) {
    case ENTRY_QUIET:
        if (x->created) {
            x->state = ENTRY_REPEATED;
            x->due_ms = now_ms + EVENT_REPEAT_MS;
            append(&e->repeated, x);
        } else {
            x->state = ENTRY_FRESH;
            append(&e->fresh, x);
        }
        break;
    case ENTRY_RUNNING: x->again = true; break;
    case ENTRY_FRESH:
    case ENTRY_REPEATED: break;
    }
}

void events_tell(events *e, const kube_event *event, int64_t now_ms, moment wall)
{
    e->counts.added++;
    make_key(&e->key, event);
    uint64_t *found = e->key.failed ? NULL : strmap_get(&e->known, buf_str(&e->key));
    entry *x = found ? (entry *)(uintptr_t)*found : NULL;
    if (x && x->state == ENTRY_QUIET && now_ms - x->last_ms >= EVENT_KNOWN_MS) {
        forget(e, x);
        x = NULL;
    }
    if (!x) {
        if (e->known.len >= EVENT_KNOWN_MAX)
            tidy(e, now_ms);
        bool room = e->fresh.count < EVENT_WAITING_MAX && e->known.len < EVENT_KNOWN_MAX;
        x = room && !e->key.failed && event->name.len > 0 ? entry_new(e, event, wall) : NULL;
    }
    if (!x) {
        e->counts.dropped++;
        return;
    }
    x->count++;
    x->last = wall;
    x->last_ms = now_ms;
    happened(e, x, now_ms);
}

/* ---- sending ---- */

static void add_text(buf *out, const char *key, str value)
{
    if (value.len == 0)
        return;
    buf_addf(out, ",\"%s\":", key);
    buf_add_json(out, value);
}

static void add_time(buf *out, const char *key, moment wall)
{
    char text[MOMENT_TEXT_BYTES];
    moment whole = {wall.seconds, 0}; /* as metav1.Time has it */
    size_t len = moment_format(whole, text);
    buf_addf(out, ",\"%s\":\"%.*s\"", key, (int)len, text);
}

static str space_of(const entry *x)
{
    return x->event.namespace.len > 0 ? x->event.namespace : STR("default");
}

static void make_create(const events *e, const entry *x, buf *out)
{
    const kube_event *event = &x->event;
    buf_addz(out, "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":");
    buf_add_json(out, str_of(x->name));
    add_text(out, "namespace", space_of(x));
    buf_addz(out, "},\"involvedObject\":{\"kind\":");
    buf_add_json(out, event->kind);
    add_text(out, "apiVersion", event->api_version);
    add_text(out, "namespace", event->namespace);
    add_text(out, "name", event->name);
    add_text(out, "uid", event->uid);
    buf_addf(out, "},\"type\":\"%s\"", event->warning ? "Warning" : "Normal");
    add_text(out, "reason", event->reason);
    add_text(out, "message", event->message);
    buf_addz(out, ",\"source\":{\"component\":");
    buf_add_json(out, e->component);
    buf_addc(out, '}');
    add_text(out, "reportingComponent", e->component);
    add_text(out, "reportingInstance", e->instance);
    add_time(out, "firstTimestamp", x->first);
    add_time(out, "lastTimestamp", x->last);
    buf_addf(out, ",\"count\":%lld}", (long long)x->count);
}

static bool make_write(events *e, const entry *x, kube_write *ret)
{
    buf_clear(&e->body);
    buf_clear(&e->collection);
    buf_addf(&e->collection, "/api/v1/namespaces/%.*s/events", STR_ARG(space_of(x)));
    if (x->created) {
        buf_addf(&e->body, "{\"count\":%lld", (long long)x->count);
        add_time(&e->body, "lastTimestamp", x->last);
        buf_addc(&e->body, '}');
    } else {
        make_create(e, x, &e->body);
    }
    *ret = (kube_write){.verb = x->created ? WRITE_MERGE : WRITE_CREATE,
                        .collection = buf_str(&e->collection),
                        .name = str_of(x->name),
                        .subresource = STR_EMPTY,
                        .anyhow = true, /* it only counts */
                        .body = buf_str(&e->body)};
    return !e->body.failed && !e->collection.failed;
}

static void fill(events *e, int64_t now_ms)
{
    const int64_t most = (int64_t)EVENT_BURST * THOUSAND;
    int64_t passed = now_ms - e->filled_ms;
    e->filled_ms = now_ms;
    e->tokens = passed >= most / EVENT_PER_SECOND || e->tokens + passed * EVENT_PER_SECOND > most
                    ? most
                    : e->tokens + passed * EVENT_PER_SECOND;
}

static entry_list *next_list(events *e, int64_t now_ms, int64_t *ret_at_ms)
{
    if (e->fresh.first)
        return &e->fresh;
    *ret_at_ms = e->repeated.first ? e->repeated.first->due_ms : INT64_MAX;
    return *ret_at_ms <= now_ms ? &e->repeated : NULL;
}

events_ask_kind events_next(events *e, int64_t now_ms, events_ask *ret)
{
    size_t slot = 0;
    ret->at_ms = INT64_MAX;
    while (slot < EVENT_RUNNING_MAX && e->running[slot])
        slot++;
    entry_list *list;
    while (slot < EVENT_RUNNING_MAX && (list = next_list(e, now_ms, &ret->at_ms))) {
        fill(e, now_ms);
        if (e->tokens < THOUSAND) {
            ret->at_ms = now_ms + (THOUSAND - e->tokens + EVENT_PER_SECOND - 1) / EVENT_PER_SECOND;
            return EVENTS_ASK_WAIT;
        }
        entry *x = take_first(list);
        if (!make_write(e, x, &ret->write)) {
            e->counts.dropped++;
            forget(e, x);
            continue;
        }
        e->tokens -= THOUSAND;
        x->state = ENTRY_RUNNING;
        x->again = false;
        e->running[slot] = x;
        ret->slot = slot;
        return EVENTS_ASK_SEND;
    }
    return EVENTS_ASK_WAIT;
}

void events_answer(events *e, size_t slot, write_outcome_kind kind, int64_t now_ms)
{
    assert(slot < EVENT_RUNNING_MAX);
    entry *x = e->running[slot];
    assert(x);
    e->running[slot] = NULL;
    bool is_repeat = x->created, good = kind == WRITE_DONE || (kind == WRITE_EXISTS && !is_repeat);
    if (!good) {
        e->counts.dropped++;
        forget(e, x); /* the next one is written anew */
        return;
    }
    if (is_repeat)
        e->counts.repeated++;
    else
        e->counts.written++;
    x->created = true;
    x->state = ENTRY_QUIET;
    if (x->again)
        happened(e, x, now_ms);
}
