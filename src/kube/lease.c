/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "model/document.h"

#define VERSION_BYTES 64
#define BODY_BYTES_MAX (8u * 1024u)

typedef enum action { ACT_NONE, ACT_READ, ACT_CREATE, ACT_HOLD, ACT_GIVE_BACK } action;

/* What is known of the object. */
typedef enum known { KNOWN_NOT, KNOWN_ABSENT, KNOWN_SEEN } known;

struct lease {
    lease_options options;
    known known;
    char version[VERSION_BYTES];
    char holder[LEASE_IDENTITY_BYTES_MAX + 1];
    int64_t duration_ms; /* that its holder has */
    int64_t transitions;
    int64_t observed_ms; /* when this version was first seen */
    action running;
    int64_t sent_ms, next_ms;
    int64_t until_ms; /* leads; 0: does not */
    bool conflicted; /* what was sent last, with what was read just before */
    bool releasing, released;
    bool set_back;
    buf body;
    char problem[WRITE_MESSAGE_BYTES];
};

lease *lease_new(const lease_options *options)
{
    lease *l = mem_zalloc(sizeof *l);
    if (!l)
        return NULL;
    l->options = *options;
    lease_options *o = &l->options;
    o->duration_ms = o->duration_ms > 0 ? o->duration_ms : LEASE_DURATION_MS;
    o->deadline_ms = o->deadline_ms > 0 ? o->deadline_ms : LEASE_DEADLINE_MS;
    o->retry_ms = o->retry_ms > 0 ? o->retry_ms : LEASE_RETRY_MS;
    assert(o->retry_ms < o->deadline_ms);
    assert(o->deadline_ms < o->duration_ms);
    assert(o->identity.len > 0 && o->identity.len <= LEASE_IDENTITY_BYTES_MAX);
    l->body = BUF(BODY_BYTES_MAX);
    return l;
}

lease *lease_free(lease *l)
{
    if (!l)
        return NULL;
    buf_done(&l->body);
    return mem_free(l);
}

bool lease_leads(const lease *l, int64_t now_ms)
{
    return !l->releasing && now_ms < l->until_ms;
}

int64_t lease_until(const lease *l)
{
    return l->releasing ? 0 : l->until_ms;
}

bool lease_take_set_back(lease *l)
{
    bool was = l->set_back;
    l->set_back = false;
    return was;
}

str lease_holder(const lease *l)
{
    return l->known == KNOWN_SEEN ? str_of(l->holder) : STR_EMPTY;
}

str lease_problem(const lease *l)
{
    return str_of(l->problem);
}

void lease_release(lease *l)
{
    l->releasing = true;
    l->next_ms = 0;
}

static bool is_mine(const lease *l)
{
    return l->known == KNOWN_SEEN && str_eq(str_of(l->holder), l->options.identity);
}

/* ---- the object ---- */

/* Versions grow, whoever writes; those that are no numbers say nothing. */
static bool is_older(const lease *l, str version)
{
    int64_t before, now;
    return num_parse(str_of(l->version), &before) && num_parse(version, &now) && now < before;
}

/* What was seen of it counts from now, whatever times are written in it. */
static bool take_object(lease *l, yyjson_val *object, int64_t now_ms)
{
    yyjson_val *spec = yyjson_obj_get(object, "spec");
    str version = json_text_of(yyjson_obj_get(object, "metadata"), "resourceVersion");
    str holder = json_text_of(spec, "holderIdentity");
    if (version.len == 0 || version.len >= sizeof l->version || holder.len >= sizeof l->holder)
        return false;
    if (l->known != KNOWN_SEEN || !str_eq(version, str_of(l->version)))
        l->observed_ms = now_ms;
    l->set_back |= is_older(l, version);
    l->known = KNOWN_SEEN;
    memcpy(l->version, version.ptr, version.len);
    l->version[version.len] = '\0';
    if (holder.len > 0)
        memcpy(l->holder, holder.ptr, holder.len);
    l->holder[holder.len] = '\0';
    int64_t seconds = yyjson_get_sint(yyjson_obj_get(spec, "leaseDurationSeconds"));
    l->duration_ms = seconds <= 0                             ? l->options.duration_ms
                     : seconds > LEASE_DURATION_MAX_MS / 1000 ? LEASE_DURATION_MAX_MS
                                                              : seconds * 1000;
    l->transitions = yyjson_get_sint(yyjson_obj_get(spec, "leaseTransitions"));
    return true;
}

/* With six digits of the second, as Kubernetes wants them. */
static void add_time(buf *out, const char *key, moment wall)
{
    char text[MOMENT_TEXT_BYTES];
    moment whole = {wall.seconds, 0};
    size_t len = moment_format(whole, text);
    buf_addf(out, ",\"%s\":\"%.*s.%06dZ\"", key, (int)len - 1, text, (int)wall.nanos / 1000);
}

static void make_body(lease *l, moment wall)
{
    buf *out = &l->body;
    const lease_options *o = &l->options;
    bool back = l->running == ACT_GIVE_BACK;
    buf_clear(out);
    buf_addz(out, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",");
    if (l->running == ACT_CREATE) {
        buf_addz(out, "\"metadata\":{\"name\":");
        buf_add_json(out, o->name);
        buf_addz(out, "},");
    }
    buf_addz(out, "\"spec\":{\"holderIdentity\":");
    buf_add_json(out, back ? STR_EMPTY : o->identity);
    buf_addf(out, ",\"leaseDurationSeconds\":%lld",
             back ? 1LL : (long long)((o->duration_ms + 999) / 1000));
    if (!back && !is_mine(l)) {
        add_time(out, "acquireTime", wall);
        buf_addf(out, ",\"leaseTransitions\":%lld",
                 (long long)(l->known == KNOWN_SEEN ? l->transitions + 1 : 0));
    }
    add_time(out, "renewTime", wall);
    buf_addz(out, "}}");
}

/* ---- answers ---- */

static void complain(lease *l, const write_outcome *outcome)
{
    snprintf(l->problem, sizeof l->problem, "lease %.*s: %s%s%.300s", STR_ARG(l->options.name),
             write_outcome_text(outcome->kind), outcome->message[0] ? ": " : "", outcome->message);
}

/* It has to be read again before anything else. */
static void forget(lease *l, int64_t at_ms)
{
    l->known = KNOWN_NOT;
    l->next_ms = at_ms;
}

static void took_read(lease *l, const write_outcome *outcome, yyjson_val *object, int64_t now_ms)
{
    if (outcome->kind == WRITE_GONE) {
        l->known = KNOWN_ABSENT;
        l->until_ms = 0;
        l->next_ms = now_ms;
        return;
    }
    if (outcome->kind != WRITE_DONE || !take_object(l, object, now_ms)) {
        complain(l, outcome);
        l->next_ms = now_ms + l->options.retry_ms;
        return;
    }
    l->problem[0] = '\0';
    l->next_ms = now_ms;
    if (!is_mine(l)) {
        l->until_ms = 0; /* another one has it */
        int64_t free_ms = l->observed_ms + l->duration_ms;
        if (l->holder[0] != '\0' && now_ms < free_ms)
            l->next_ms =
                free_ms < now_ms + l->options.retry_ms ? free_ms : now_ms + l->options.retry_ms;
    }
}

static void took_hold(lease *l, const write_outcome *outcome, yyjson_val *object, int64_t now_ms)
{
    switch (outcome->kind) {
    case WRITE_DONE:
        if (!take_object(l, object, now_ms) || !is_mine(l)) {
            forget(l, now_ms + l->options.retry_ms);
            return;
        }
        l->problem[0] = '\0';
        l->conflicted = false;
        l->until_ms = l->sent_ms + l->options.deadline_ms;
        l->next_ms = l->sent_ms + l->options.retry_ms;
        return;
    case WRITE_EXISTS:
    case WRITE_CONFLICT:
    case WRITE_GONE:
        /* Somebody else was first: that is looked at at once, but not again and again. */
        forget(l, l->conflicted ? now_ms + l->options.retry_ms : now_ms);
        l->conflicted = true;
        return;
    case WRITE_REFUSED:
        complain(l, outcome);
        forget(l, now_ms + l->options.retry_ms);
        return;
    case WRITE_AMBIGUOUS:
    case WRITE_LATER:
    case WRITE_BLOCKED:
    case WRITE_BARRED:
        complain(l, outcome);
        forget(l, now_ms + l->options.retry_ms / 4);
        return;
    }
}

void lease_answer(lease *l, const write_outcome *outcome, yyjson_val *object, int64_t now_ms)
{
    action was = l->running;
    assert(was != ACT_NONE);
    l->running = ACT_NONE;
    switch (was) {
    case ACT_NONE: break;
    case ACT_READ: took_read(l, outcome, object, now_ms); break;
    case ACT_CREATE:
    case ACT_HOLD: took_hold(l, outcome, object, now_ms); break;
    case ACT_GIVE_BACK: l->released = true; break; /* or it runs out */
    }
    if (l->releasing)
        l->next_ms = now_ms;
}

/* ---- what comes next ---- */

static action choose(const lease *l, int64_t now_ms)
{
    if (l->releasing)
        return is_mine(l) ? ACT_GIVE_BACK : ACT_NONE;
    switch (l->known) {
    case KNOWN_NOT: return ACT_READ;
    case KNOWN_ABSENT: return ACT_CREATE;
    case KNOWN_SEEN: break;
    }
    bool is_free = l->holder[0] == '\0' || now_ms >= l->observed_ms + l->duration_ms;
    return is_mine(l) || is_free ? ACT_HOLD : ACT_READ;
}

static int64_t timeout_ms(const lease *l)
{
    return l->options.deadline_ms / 2;
}

/* Who leads has to notice in time that it does no more. */
static lease_ask_kind wait_until(const lease *l, int64_t at_ms, int64_t now_ms, lease_ask *ret)
{
    ret->at_ms = lease_leads(l, now_ms) && l->until_ms < at_ms ? l->until_ms : at_ms;
    return LEASE_ASK_WAIT;
}

lease_ask_kind lease_next(lease *l, int64_t now_ms, moment wall, lease_ask *ret)
{
    if (l->running != ACT_NONE) {
        int64_t late_ms = l->sent_ms + timeout_ms(l);
        return now_ms >= late_ms ? LEASE_ASK_ABORT : wait_until(l, late_ms, now_ms, ret);
    }
    if (l->released)
        return LEASE_ASK_NEVER;
    if (now_ms < l->next_ms)
        return wait_until(l, l->next_ms, now_ms, ret);
    l->running = choose(l, now_ms);
    if (l->running == ACT_NONE) {
        l->released = true;
        return LEASE_ASK_NEVER;
    }
    l->sent_ms = now_ms;
    ret->write = (kube_write){.verb = WRITE_READ,
                              .collection = l->options.collection,
                              .name = l->options.name,
                              .subresource = STR_EMPTY};
    if (l->running == ACT_READ)
        return LEASE_ASK_SEND;
    make_body(l, wall);
    ret->write.body = buf_str(&l->body);
    ret->write.verb = l->running == ACT_CREATE ? WRITE_CREATE : WRITE_MERGE;
    if (l->running != ACT_CREATE)
        ret->write.version = str_of(l->version);
    if (!l->body.failed)
        return LEASE_ASK_SEND;
    l->running = ACT_NONE;
    l->next_ms = now_ms + l->options.retry_ms;
    return wait_until(l, l->next_ms, now_ms, ret);
}
