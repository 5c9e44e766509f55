/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/write_queue.h"

#include <assert.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "base/vec.h"
#include "kube/list_watch.h"

#define STATUS_UNAUTHORIZED 401

typedef struct item item;
typedef struct line line;

struct item {
    item *next; /* of the same object */
    line *line;
    kube_write write; /* texts are behind the item */
    write_handler handler;
    write_outcome found; /* what the read decides about, while reading */
    bool reading;        /* the repeat found something: the object is being read */
    bool maybe;          /* an earlier attempt may have taken effect */
    bool refused;        /* credentials were fetched anew already */
    bool begun;
    unsigned attempts;
    int64_t begun_ms, sent_ms;
};

/* All writes of one object; exists while there are any. */
struct line {
    item *first, **last;
    line *next; /* of those that may be sent now */
    int64_t at_ms;
    uint64_t turn; /* of lines that wait for the same moment */
    size_t key_len;
    char key[];
};

struct write_queue {
    uint64_t seed, turns;
    strmap lines; /* "collection/name" to line */
    line *ready, **ready_last;
    VEC(line *) sleeping; /* heap, earliest first */
    item *running[WRITE_RUNNING_MAX];
    size_t running_count, count;
    write_counts counts;
    buf path, body;
};

write_queue *write_queue_new(uint64_t seed)
{
    write_queue *q = mem_zalloc(sizeof *q);
    if (!q)
        return NULL;
    q->seed = seed;
    q->ready_last = &q->ready;
    q->path = BUF(LIMIT_PATH_BYTES);
    q->body = BUF(WRITE_BODY_BYTES_MAX + LIMIT_PATH_BYTES);
    return q;
}

write_queue *write_queue_free(write_queue *q)
{
    if (!q)
        return NULL;
    for (size_t i = 0; i < q->lines.len; i++) {
        line *l = (line *)(uintptr_t)q->lines.entries[i].value;
        for (item *x = l->first, *next; x; x = next) {
            next = x->next;
            mem_free(x);
        }
        mem_free(l);
    }
    strmap_done(&q->lines);
    vec_done(&q->sleeping);
    buf_done(&q->path);
    buf_done(&q->body);
    return mem_free(q);
}

size_t write_queue_waiting(const write_queue *q)
{
    return q->count;
}

size_t write_queue_running(const write_queue *q)
{
    return q->running_count;
}

write_counts write_queue_count(const write_queue *q)
{
    return q->counts;
}

/* ---- lines that wait ---- */

static void make_ready(write_queue *q, line *l)
{
    l->next = NULL;
    *q->ready_last = l;
    q->ready_last = &l->next;
}

static bool before(const line *a, const line *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->turn < b->turn;
}

static void swap(line **a, line **b)
{
    line *held = *a;
    *a = *b;
    *b = held;
}

/* Room was made when the line came into being. */
static void sleep_until(write_queue *q, line *l, int64_t at_ms)
{
    l->at_ms = at_ms;
    l->turn = q->turns++;
    assert(q->sleeping.len < q->sleeping.cap);
    size_t i = q->sleeping.len++;
    q->sleeping.at[i] = l;
    for (; i > 0 && before(q->sleeping.at[i], q->sleeping.at[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&q->sleeping.at[i], &q->sleeping.at[(i - 1) / 2]);
}

static line *wake_first(write_queue *q)
{
    line **at = q->sleeping.at, *first = at[0];
    size_t len = --q->sleeping.len;
    at[0] = at[len];
    for (size_t i = 0;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < len && before(at[child + 1], at[child]))
            child++;
        if (child >= len || !before(at[child], at[i]))
            return first;
        swap(&at[child], &at[i]);
        i = child;
    }
}

/* ---- adding ---- */

static str copy_behind(char **at, str text)
{
    str copy = {*at, text.len};
    if (text.len > 0)
        memcpy(*at, text.ptr, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

static item *item_new(const kube_write *w, write_handler handler)
{
    const str *texts[] = {&w->collection, &w->name, &w->subresource, &w->body,
                          &w->version,    &w->uid,  &w->manager,     &w->user};
    size_t bytes = sizeof(item);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bytes += texts[i]->len + 1;
    item *x = mem_zalloc(bytes);
    if (!x)
        return NULL;
    char *at = (char *)(x + 1);
    x->write = *w;
    x->handler = handler;
    str *copies[] = {&x->write.collection, &x->write.name, &x->write.subresource, &x->write.body,
                     &x->write.version,    &x->write.uid,  &x->write.manager,     &x->write.user};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        *copies[i] = copy_behind(&at, *texts[i]);
    return x;
}

static line *line_of(write_queue *q, const kube_write *w)
{
    buf_clear(&q->path);
    buf_add(&q->path, w->collection);
    buf_addc(&q->path, '/');
    buf_add(&q->path, w->name);
    if (q->path.failed)
        return NULL;
    uint64_t *found = strmap_get(&q->lines, buf_str(&q->path));
    if (found)
        return (line *)(uintptr_t)*found;
    line *l = mem_zalloc(sizeof *l + q->path.len);
    if (!l)
        return NULL;
    l->last = &l->first;
    l->key_len = q->path.len;
    memcpy(l->key, q->path.ptr, q->path.len);
    if (vec_reserve(&q->sleeping, q->lines.len + 1) &&
        strmap_put(&q->lines, (str){l->key, l->key_len}, (uint64_t)(uintptr_t)l))
        return l;
    return mem_free(l);
}

bool write_queue_add(write_queue *q, const kube_write *w, write_handler handler, err *error)
{
    if (!write_check(w, error))
        return false;
    if (q->count >= WRITE_WAITING_MAX)
        return err_set(error, "more than %d writes wait", WRITE_WAITING_MAX);
    if (w->collection.len + w->name.len + 1 > LIMIT_PATH_BYTES / 2)
        return err_set(error, "%s: the path is too long", str_shown(w->name).text);
    item *x = item_new(w, handler);
    line *l = x ? line_of(q, w) : NULL;
    if (!l) {
        mem_free(x);
        return err_memory(error);
    }
    x->line = l;
    if (!l->first)
        make_ready(q, l);
    *l->last = x;
    l->last = &x->next;
    q->count++;
    return true;
}

/* ---- answers ---- */

/* Its line goes on before anybody is told: who is told may add to it. */
static void finish(write_queue *q, item *x, const write_outcome *outcome, yyjson_val *object)
{
    line *l = x->line;
    l->first = x->next;
    q->count--;
    q->counts.ended[outcome->kind]++;
    if (l->first) {
        make_ready(q, l);
    } else {
        strmap_remove(&q->lines, (str){l->key, l->key_len});
        mem_free(l);
    }
    x->handler.done(x->handler.context, outcome, object);
    mem_free(x);
}

/* Half to all of the time, by seed, object and attempt: many do not come back at once. */
static int64_t backoff_ms(const write_queue *q, const item *x)
{
    int64_t ms = WRITE_BACKOFF_FIRST_MS;
    for (unsigned i = 1; i < x->attempts && ms < WRITE_BACKOFF_MAX_MS; i++)
        ms *= 2;
    if (ms > WRITE_BACKOFF_MAX_MS)
        ms = WRITE_BACKOFF_MAX_MS;
    uint64_t spread = str_hash((str){x->line->key, x->line->key_len}) ^ q->seed;
    spread = (spread ^ x->attempts) * UINT64_C(0x9e3779b97f4a7c15);
    return ms / 2 + (int64_t)((spread >> 32) % (uint64_t)(ms / 2 + 1));
}

static void repeat(write_queue *q, item *x, write_outcome *outcome, int64_t now_ms)
{
    int64_t wait_ms = backoff_ms(q, x);
    if (wait_ms < outcome->wait_ms)
        wait_ms = outcome->wait_ms;
    if (now_ms + wait_ms <= x->begun_ms + WRITE_PATIENCE_MS) {
        sleep_until(q, x->line, now_ms + wait_ms);
        return;
    }
    if (x->maybe)
        outcome->kind = WRITE_AMBIGUOUS;
    finish(q, x, outcome, NULL);
}

/* The object that stood in the way was read. */
static void take_read(write_queue *q, item *x, const write_answer *answer, int64_t now_ms)
{
    write_outcome read = write_judge(WRITE_READ, answer);
    if (read.kind == WRITE_LATER || read.kind == WRITE_AMBIGUOUS) {
        repeat(q, x, &read, now_ms);
        return;
    }
    if (read.kind == WRITE_DONE) {
        bool ours = x->handler.ours(x->handler.context, answer->body);
        write_outcome outcome = ours ? read : x->found;
        finish(q, x, &outcome, answer->body);
        return;
    }
    if (read.kind != WRITE_GONE)
        read.kind = WRITE_AMBIGUOUS;
    finish(q, x, &read, NULL);
}

static bool may_repeat(item *x, const write_outcome *outcome)
{
    if (outcome->kind == WRITE_LATER && outcome->status == STATUS_UNAUTHORIZED) {
        bool first = !x->refused;
        x->refused = true;
        return first;
    }
    return !x->maybe || write_repeatable(&x->write);
}

/* What is not done is answered with words about it, and so are some deletes. */
static yyjson_val *object_of(const write_answer *answer, write_outcome_kind kind)
{
    bool is_words = yyjson_equals_str(yyjson_obj_get(answer->body, "kind"), "Status");
    return kind == WRITE_DONE && !is_words ? answer->body : NULL;
}

static void take_answer(write_queue *q, item *x, const write_answer *answer, int64_t now_ms)
{
    write_outcome outcome = write_judge(x->write.verb, answer);
    switch (outcome.kind) {
    case WRITE_LATER:
    case WRITE_AMBIGUOUS:
        x->maybe = x->maybe || outcome.maybe;
        if (may_repeat(x, &outcome)) {
            repeat(q, x, &outcome, now_ms);
            return;
        }
        outcome.kind = x->maybe                                ? WRITE_AMBIGUOUS
                       : outcome.status == STATUS_UNAUTHORIZED ? WRITE_REFUSED
                                                               : WRITE_LATER;
        break;
    case WRITE_EXISTS:
    case WRITE_CONFLICT:
        if (x->maybe && x->handler.ours) {
            x->reading = true;
            x->found = outcome;
            make_ready(q, x->line);
            return;
        }
        break;
    case WRITE_BARRED:
        if (x->maybe)
            outcome.kind = WRITE_AMBIGUOUS;
        break;
    case WRITE_DONE:
    case WRITE_GONE:
    case WRITE_REFUSED:
    case WRITE_BLOCKED: break;
    }
    finish(q, x, &outcome, object_of(answer, outcome.kind));
}

void write_queue_answer(write_queue *q, size_t slot, const write_answer *answer, int64_t now_ms)
{
    assert(slot < WRITE_RUNNING_MAX);
    item *x = q->running[slot];
    assert(x);
    q->running[slot] = NULL;
    q->running_count--;
    if (x->reading)
        take_read(q, x, answer, now_ms);
    else
        take_answer(q, x, answer, now_ms);
}

/* ---- what comes next ---- */

static bool make_request(write_queue *q, const item *x, exchange_request *ret)
{
    kube_write read = {.verb = WRITE_READ,
                       .collection = x->write.collection,
                       .name = x->write.name,
                       .subresource = STR_EMPTY};
    const kube_write *w = x->reading ? &read : &x->write;
    buf_clear(&q->path);
    buf_clear(&q->body);
    bool good = write_path(w, &q->path) && write_body(w, &q->body);
    *ret = (exchange_request){.method = write_method(w->verb),
                              .path = buf_str(&q->path),
                              .content_type = write_content_type(w->verb),
                              .accept = w->row ? WATCH_ACCEPT_ROWS : w->accept,
                              .body = buf_str(&q->body),
                              .user = x->write.user};
    return good;
}

static bool send_first(write_queue *q, int64_t now_ms, write_ask *ret)
{
    line *l = q->ready;
    item *x = l->first;
    q->ready = l->next;
    if (!q->ready)
        q->ready_last = &q->ready;
    if (!x->begun) {
        x->begun = true;
        x->begun_ms = now_ms;
    }
    x->sent_ms = now_ms;
    x->attempts++;
    if (!make_request(q, x, &ret->request)) {
        write_outcome later = {.kind = WRITE_LATER, .message = "memory ran out"};
        write_outcome never = {.kind = WRITE_REFUSED, .message = "its body does not fit its verb"};
        if (q->path.failed || q->body.failed)
            repeat(q, x, &later, now_ms);
        else
            finish(q, x, &never, NULL);
        return false;
    }
    size_t slot = 0;
    while (q->running[slot])
        slot++;
    q->running[slot] = x;
    q->running_count++;
    q->counts.sent++;
    ret->slot = slot;
    return true;
}

write_ask_kind write_queue_next(write_queue *q, int64_t now_ms, write_ask *ret)
{
    ret->at_ms = INT64_MAX;
    for (size_t i = 0; q->running_count > 0 && i < WRITE_RUNNING_MAX; i++) {
        const item *x = q->running[i];
        if (!x)
            continue;
        if (now_ms >= x->sent_ms + WRITE_TIMEOUT_MS) {
            ret->slot = i;
            return WRITE_ASK_ABORT;
        }
        if (ret->at_ms > x->sent_ms + WRITE_TIMEOUT_MS)
            ret->at_ms = x->sent_ms + WRITE_TIMEOUT_MS;
    }
    while (q->sleeping.len > 0 && q->sleeping.at[0]->at_ms <= now_ms)
        make_ready(q, wake_first(q));
    while (q->ready && q->running_count < WRITE_RUNNING_MAX)
        if (send_first(q, now_ms, ret))
            return WRITE_ASK_SEND;
    if (q->sleeping.len > 0 && ret->at_ms > q->sleeping.at[0]->at_ms)
        ret->at_ms = q->sleeping.at[0]->at_ms;
    return WRITE_ASK_WAIT;
}
