/* SPDX-License-Identifier: Apache-2.0 */
#include "console/claims.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"

static void claim_free(claim *one)
{
    if (!one)
        return;
    mem_free(one->texts);
    mem_free(one->reason);
    mem_free(one);
}

static str put(char **at, str text)
{
    str view = {*at, text.len};
    if (text.len > 0)
        memcpy(*at, text.ptr, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return view;
}

static claim *claim_new(const decision *d)
{
    size_t names = d->change.len + d->target.len;
    claim *one = mem_zalloc(sizeof *one);
    if (one)
        one->texts = mem_alloc(2 * names + d->version.len + d->group.len + 8);
    if (!one || !one->texts) {
        claim_free(one);
        return NULL;
    }
    char *at = one->texts;
    one->change = put(&at, d->change);
    one->target = put(&at, d->target);
    one->version = put(&at, d->version);
    one->group = put(&at, d->group);
    one->key = (str){at, names + 1};
    put(&at, d->change);
    at[-1] = '/';
    put(&at, d->target);
    return one;
}

static claim *open_claim(const claims *c, const decision *d)
{
    scoped(buf_done) buf key = BUF(LIMIT_LOG_LINE_BYTES);
    buf_addf(&key, "%.*s/%.*s", STR_ARG(d->change), STR_ARG(d->target));
    uint64_t *known = strmap_get(&c->open, buf_str(&key));
    return known ? (claim *)(uintptr_t)*known : NULL;
}

/* The older half goes: that is rare, and the order stays. Open ones stay where they are. */
static void forget(claims *c)
{
    size_t kept = 0, half = c->all.len / 2;
    for (size_t i = 0; i < c->all.len; i++) {
        claim *one = c->all.at[i];
        if (i < half && one->ended_ms != 0)
            claim_free(one);
        else
            c->all.at[kept++] = one;
    }
    c->all.len = kept;
}

static void begin(claims *c, const decision *d, int64_t now_ms, bool earlier)
{
    if (c->all.len >= CLAIMS_KEPT)
        forget(c);
    claim *one = claim_new(d);
    if (!one || !vec_push(&c->all, one)) {
        claim_free(one); /* a bar less is drawn */
        return;
    }
    one->number = ++c->last;
    one->started_ms = now_ms;
    one->earlier = earlier;
    if (!strmap_put(&c->open, one->key, (uintptr_t)one))
        one->ended_ms = now_ms; /* its end would not be found */
}

static void end(claims *c, const decision *d, int64_t now_ms)
{
    claim *one = open_claim(c, d);
    if (!one)
        return;
    strmap_remove(&c->open, one->key);
    one->ended_ms = now_ms;
    one->failed = d->failed;
    snprintf(one->outcome, sizeof one->outcome, "%.*s", STR_ARG(d->state));
    one->reason = d->detail.len > 0 ? mem_alloc(d->detail.len + 1) : NULL;
    if (one->reason)
        snprintf(one->reason, d->detail.len + 1, "%.*s", STR_ARG(d->detail));
}

void claims_decided(claims *c, const decision *d, int64_t now_ms)
{
    if (d->kind == DECISION_START) {
        end(c, d, now_ms);
        begin(c, d, now_ms, false);
    }
    if (d->kind == DECISION_RELEASE)
        end(c, d, now_ms);
}

void claims_found(claims *c, const decision *d, int64_t now_ms)
{
    if (!open_claim(c, d))
        begin(c, d, now_ms, true);
}

void claims_clear(claims *c)
{
    for (size_t i = 0; i < c->all.len; i++)
        claim_free(c->all.at[i]);
    vec_done(&c->all);
    strmap_done(&c->open);
    c->last = 0;
}
