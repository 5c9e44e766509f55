/* SPDX-License-Identifier: Apache-2.0 */
#include "server/events.h"

#include "base/mem.h"
#include "base/moment.h"

#define KEEP_ALIVE STR(": keep-alive\n\n")

typedef struct slot {
    int64_t sequence; /* 0: none */
    buf text;
} slot;

struct events {
    store *store;         /* NULL: what is older than the slots is forgotten */
    slot at[EVENTS_KEPT]; /* entry N is at N modulo EVENTS_KEPT */
    int64_t last;
    uint64_t life; /* streams of an earlier one are over */
};

typedef struct listener {
    events *events;
    int64_t seen;
    uint64_t life;
    uint64_t sent_at; /* when something was last sent, by the monotonic clock */
} listener;

events *events_open(store *s)
{
    events *e = mem_zalloc(sizeof *e);
    if (e) {
        e->store = s;
        e->last = s ? store_sequence(s) : 0;
    }
    return e;
}

events *events_close(events *e)
{
    if (!e)
        return NULL;
    for (size_t i = 0; i < EVENTS_KEPT; i++)
        buf_done(&e->at[i].text);
    return mem_free(e);
}

void json_time_ms(buf *out, int64_t ms)
{
    char text[MOMENT_TEXT_BYTES];
    int64_t rest = ((ms % 1000) + 1000) % 1000;
    moment m = {.seconds = (ms - rest) / 1000, .nanos = (int32_t)(rest * 1000000)};
    size_t len = moment_format(m, text);
    buf_addc(out, '"');
    buf_add(out, (str){text, len});
    buf_addc(out, '"');
}

void journal_entry_json(buf *out, const journal_entry *entry)
{
    buf_addf(out, "{\"sequence\":%lld,\"at\":", (long long)entry->sequence);
    json_time_ms(out, entry->at_ms);
    buf_addf(out, ",\"step\":%lld,\"kind\":", (long long)entry->step);
    buf_add_json(out, entry->kind);
    buf_addz(out, ",\"who\":");
    buf_add_json(out, entry->who);
    buf_addz(out, ",\"entry\":");
    buf_add(out, entry->json);
    buf_addc(out, '}');
}

static void write_event(buf *out, const journal_entry *entry)
{
    buf_addf(out, "id: %lld\nevent: %.*s\ndata: ", (long long)entry->sequence,
             STR_ARG(entry->kind));
    journal_entry_json(out, entry);
    buf_addz(out, "\n\n");
}

void events_add(events *e, const journal_entry *entry)
{
    slot *s = &e->at[(uint64_t)entry->sequence % EVENTS_KEPT];
    if (!s->text.ptr)
        s->text = BUF(LIMIT_TEXT_BYTES);
    buf_clear(&s->text);
    write_event(&s->text, entry);
    /* What cannot be kept is read from the store. */
    s->sequence = s->text.failed ? 0 : entry->sequence;
    e->last = entry->sequence;
}

int64_t events_last(const events *e)
{
    return e->last;
}

str events_kept(const events *e, int64_t sequence)
{
    const slot *s = &e->at[(uint64_t)sequence % EVENTS_KEPT];
    if (sequence <= 0 || s->sequence != sequence)
        return (str){NULL, 0};
    size_t from = str_find(buf_str(&s->text), STR("\ndata: ")) + strlen("\ndata: ");
    return str_part(buf_str(&s->text), from, s->text.len - from - strlen("\n\n"));
}

void events_end_streams(events *e)
{
    e->life++;
}

/* ---- a stream ---- */

typedef struct page {
    buf *out;
    int64_t last; /* what is behind it may not be durable yet */
    int64_t seen;
    size_t count;
} page;

static bool add_stored(void *context, const journal_entry *entry)
{
    page *p = context;
    if (entry->sequence > p->last)
        return false;
    write_event(p->out, entry);
    p->seen = entry->sequence;
    return ++p->count < EVENTS_PAGE && p->out->len < HTTP_STREAM_CHUNK_BYTES;
}

static uint64_t monotonic_ms(void)
{
    return uv_hrtime() / 1000000;
}

static stream_state pull(void *context, buf *out)
{
    listener *l = context;
    const events *e = l->events;
    if (l->life != e->life)
        return STREAM_END;
    while (l->seen < e->last && out->len < HTTP_STREAM_CHUNK_BYTES) {
        const slot *s = &e->at[(uint64_t)(l->seen + 1) % EVENTS_KEPT];
        if (s->sequence == l->seen + 1) {
            buf_add(out, buf_str(&s->text));
            l->seen++;
            continue;
        }
        if (!e->store) { /* it is gone */
            l->seen++;
            continue;
        }
        page p = {.out = out, .last = e->last, .seen = l->seen};
        err ignored; /* asked again with the next wake */
        if (!store_journal(e->store, l->seen, add_stored, &p, &ignored) || p.count == 0)
            break;
        l->seen = p.seen;
    }
    uint64_t now = monotonic_ms();
    if (out->len == 0 && now - l->sent_at >= HTTP_KEEP_ALIVE_MS)
        buf_add(out, KEEP_ALIVE);
    if (out->len > 0)
        l->sent_at = now;
    return out->len > 0 ? STREAM_MORE : STREAM_WAIT;
}

static void close_listener(void *context)
{
    mem_free(context);
}

bool events_source(events *e, int64_t after, http_source *ret)
{
    listener *l = mem_zalloc(sizeof *l);
    if (!l)
        return false;
    /* 0 for "long ago": the first thing a client gets is a comment, so it knows that it listens. */
    *l = (listener){.events = e, .seen = after < e->last ? after : e->last, .life = e->life};
    *ret = (http_source){.context = l, .pull = pull, .close = close_listener, .size = -1};
    return true;
}
