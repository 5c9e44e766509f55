/* SPDX-License-Identifier: Apache-2.0 */
/* Who somebody is, the API server says: it is asked with their token, who it belongs to and what it
 * may. The token itself is not kept. */
#include <openssl/sha.h>

#include "base/limits.h"
#include "base/mem.h"
#include "console/console_internal.h"
#include "model/document.h"

static void digest_of(str token, unsigned char ret[VIEWER_DIGEST_BYTES])
{
    SHA256((const unsigned char *)token.ptr, token.len, ret);
}

bool viewer_find(const console *c, str token, int64_t now_ms, viewer *ret)
{
    unsigned char digest[VIEWER_DIGEST_BYTES];
    digest_of(token, digest);
    for (size_t i = 0; i < VIEWERS_KEPT; i++) {
        const viewer *v = &c->viewers[i];
        if (v->until_ms > now_ms && memcmp(v->digest, digest, sizeof digest) == 0) {
            *ret = *v;
            return true;
        }
    }
    return false;
}

void viewer_forget(console *c, str token)
{
    unsigned char digest[VIEWER_DIGEST_BYTES];
    digest_of(token, digest);
    for (size_t i = 0; i < VIEWERS_KEPT; i++)
        if (memcmp(c->viewers[i].digest, digest, sizeof digest) == 0)
            c->viewers[i].until_ms = 0;
}

static void viewer_keep(console *c, const viewer *v)
{
    viewer *oldest = &c->viewers[0];
    for (size_t i = 0; i < VIEWERS_KEPT; i++) {
        viewer *one = &c->viewers[i];
        if (memcmp(one->digest, v->digest, sizeof v->digest) == 0) {
            *one = *v;
            return;
        }
        if (one->until_ms < oldest->until_ms)
            oldest = one;
    }
    *oldest = *v;
}

/* ---- errands ---- */

static void errand_free(errand *e)
{
    *e->link = e->next;
    if (e->next)
        e->next->link = e->link;
    e->console->errand_count--;
    for (size_t i = 0; i < ERRAND_ANSWERS_MAX; i++)
        buf_done(&e->answers[i].body);
    mem_free(e);
}

void errand_over(errand *e)
{
    if (e->pending == 0)
        errand_free(e);
    else
        e->dropped = true;
}

static void drop(void *context)
{
    errand_over(context);
}

errand *errand_new(asking *a, bool (*step)(void *context, http_reply *r))
{
    console *c = a->console;
    if (c->errand_count >= ERRANDS_MAX) {
        console_fail(a, 429, "too many ask at once; try again in a second");
        return NULL;
    }
    errand *e = mem_zalloc(sizeof *e);
    if (!e) {
        console_fail(a, 503, "memory ran out");
        return NULL;
    }
    *e = (errand){.console = c, .asking = a, .next = c->errands, .link = &c->errands};
    if (e->next)
        e->next->link = &e->next;
    c->errands = e;
    c->errand_count++;
    a->reply->later = (http_later){.context = e, .waits = true, .step = step, .drop = drop};
    return e;
}

static void on_status(void *context, int status, int64_t retry_after_s)
{
    (void)retry_after_s;
    errand_answer *answer = context;
    answer->status = status;
}

static void on_bytes(void *context, str bytes)
{
    errand_answer *answer = context;
    buf_add(&answer->body, bytes);
}

static void on_end(void *context, connection_result result, str cause)
{
    errand_answer *answer = context;
    errand *e = answer->errand;
    answer->result = result;
    snprintf(answer->problem, sizeof answer->problem, "%.*s", STR_ARG(cause));
    e->pending--;
    if (e->dropped && e->pending == 0)
        errand_free(e);
}

bool errand_send(errand *e, const exchange_request *request, err *error)
{
    errand_answer *answer = &e->answers[e->count];
    exchange_request with_token = *request;
    with_token.token = e->asking->token;
    buf_done(&answer->body);
    *answer = (errand_answer){.errand = e, .body = BUF(ERRAND_BYTES_MAX)};
    exchange_handler handler = {
        .context = answer, .status = on_status, .bytes = on_bytes, .end = on_end};
    if (!connection_send(e->console->connection, &with_token, handler, error))
        return false;
    e->count++;
    e->pending++;
    return true;
}

yyjson_val *errand_json(const errand *e, size_t i)
{
    return json_parse(e->asking->request->arena, buf_str(&e->answers[i].body), NULL);
}

/* ---- who is it? ---- */

enum { REVIEW_WHO, REVIEW_NODES, REVIEW_CLUSTERS = REVIEW_NODES + 2 };

#define ACCESS_PATH "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define ACCESS(verb, group, resource)                                                              \
    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{"  \
    "\"resourceAttributes\":{\"verb\":\"" verb "\",\"group\":\"" group                             \
    "\",\"resource\":\"" resource "\"}}}"

#define ACCESS_IN_SPACE                                                                            \
    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{"  \
    "\"resourceAttributes\":{\"verb\":\"patch\",\"group\":\"fleet.cattle.io\","                    \
    "\"resource\":\"bundles\",\"namespace\":\"%.*s\"}}}"

/* Who it is; and whether they may list, and patch, what is served. */
static const struct {
    const char *path, *body;
} reviews[] = {
    [REVIEW_WHO] = {"/apis/authentication.k8s.io/v1/selfsubjectreviews",
                    "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}"},
    [REVIEW_NODES] = {ACCESS_PATH, ACCESS("list", "skyhook.nvidia.com", "skyhooks")},
    [REVIEW_NODES + 1] = {ACCESS_PATH, ACCESS("patch", "skyhook.nvidia.com", "skyhooks")},
    [REVIEW_CLUSTERS] = {ACCESS_PATH, ACCESS("list", "fleet.cattle.io", "bundles")},
    [REVIEW_CLUSTERS + 1] = {ACCESS_PATH, ACCESS("patch", "fleet.cattle.io", "bundles")},
};

static bool is_asked(const console *c, size_t review)
{
    return review == REVIEW_WHO ||
           (review < REVIEW_CLUSTERS ? c->settings.nodes : c->settings.clusters);
}

static bool allowed(const errand *e, size_t i)
{
    yyjson_val *status = yyjson_obj_get(errand_json(e, i), "status");
    return e->answers[i].status == 201 && yyjson_is_true(yyjson_obj_get(status, "allowed"));
}

/* Answers come in pairs behind the first, those of nodes before those of clusters: looks at all
 * that is served, acts on each kind by itself. */
static void judge_rights(const errand *e, viewer *ret)
{
    const console_settings *serves = &e->console->settings;
    size_t i = 1;
    ret->looks = serves->nodes || serves->clusters;
    if (serves->nodes) {
        ret->looks = ret->looks && allowed(e, i);
        ret->acts_nodes = allowed(e, i + 1);
        i += 2;
    }
    if (serves->clusters) {
        ret->looks = ret->looks && allowed(e, i);
        ret->acts_bundles = allowed(e, i + 1);
    }
}

/* The viewer, or a refusal in the reply. */
static bool judge(errand *e, viewer *ret)
{
    asking *a = e->asking;
    bool unknown = false;
    /* An API server closes the connection of who it does not know: one answer must do. */
    for (size_t i = 0; i < e->count; i++)
        unknown = unknown || e->answers[i].status == 401;
    if (unknown) {
        http_field_add(a->reply, "WWW-Authenticate", STR("Bearer"));
        console_fail(a, 401, "the API server does not know this token");
        return false;
    }
    for (size_t i = 0; i < e->count; i++)
        if (e->answers[i].result != CONNECTION_WHOLE) {
            console_fail(a, 503, "the API server does not answer: %s", e->answers[i].problem);
            return false;
        }
    yyjson_val *info =
        yyjson_obj_get(yyjson_obj_get(errand_json(e, REVIEW_WHO), "status"), "userInfo");
    const char *name = yyjson_get_str(yyjson_obj_get(info, "username"));
    *ret = (viewer){.until_ms = a->now_ms + VIEWER_MS};
    judge_rights(e, ret);
    /* An API server before 1.28 cannot say who it is. */
    snprintf(ret->name, sizeof ret->name, "%s", name ? name : "somebody");
    digest_of(a->token, ret->digest);
    return true;
}

/* ---- who may not act on every Bundle may act on those of a namespace ---- */

/* The namespaces that have Bundles, the first by name. */
static size_t bundle_spaces(const console *c, str ret[VIEWER_SPACES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < c->kept.of[KEPT_BUNDLE].len; i++) {
        str name = str_of(kept_at(&c->kept, KEPT_BUNDLE, i)->name);
        str space = str_cut(&name, '/');
        size_t at = 0;
        while (at < count && str_cmp(ret[at], space) < 0)
            at++;
        if (at >= VIEWER_SPACES_MAX || (at < count && str_eq(ret[at], space)))
            continue;
        count += count < VIEWER_SPACES_MAX;
        for (size_t k = count - 1; k > at; k--)
            ret[k] = ret[k - 1];
        ret[at] = space;
    }
    return count;
}

/* False: there is nothing to be asked. */
static bool ask_spaces(errand *e)
{
    err error;
    arena *a = e->asking->request->arena;
    size_t count = e->asking->viewer.acts_bundles || !e->console->settings.clusters
                       ? 0
                       : bundle_spaces(e->console, e->spaces);
    e->count = 0;
    for (size_t i = 0; i < count; i++) {
        /* The Bundle may be gone when the answer comes. */
        e->spaces[i] = arena_str(a, e->spaces[i]);
        str body = arena_printf(a, ACCESS_IN_SPACE, STR_ARG(e->spaces[i]));
        exchange_request request = {.method = "POST", .path = STR(ACCESS_PATH), .body = body};
        if (!e->spaces[i].ptr || !body.ptr || !errand_send(e, &request, &error))
            break; /* those buttons are not shown */
    }
    return e->count > 0;
}

static void judge_spaces(const errand *e, viewer *v)
{
    for (size_t i = 0; i < e->count; i++)
        if (allowed(e, i) && e->spaces[i].len < VIEWER_SPACE_BYTES)
            snprintf(v->spaces[v->space_count++], VIEWER_SPACE_BYTES, "%.*s",
                     STR_ARG(e->spaces[i]));
}

static bool step(void *context, http_reply *r)
{
    errand *e = context;
    asking *a = e->asking;
    if (e->pending > 0)
        return false;
    a->reply = r;
    bool first = e->tries++ == 0;
    bool known = !first || judge(e, &a->viewer);
    if (first && known && ask_spaces(e))
        return false;
    r->later = (http_later){.step = NULL};
    if (known) {
        judge_spaces(e, &a->viewer);
        viewer_keep(e->console, &a->viewer);
        errand_over(e);
        console_run(a);
    } else {
        errand_over(e);
    }
    return !r->later.step;
}

void viewer_ask(asking *a)
{
    err error;
    errand *e = errand_new(a, step);
    for (size_t i = 0; e && i < sizeof reviews / sizeof reviews[0]; i++) {
        exchange_request request = {
            .method = "POST", .path = str_of(reviews[i].path), .body = str_of(reviews[i].body)};
        if (!is_asked(a->console, i) || errand_send(e, &request, &error))
            continue;
        a->reply->later = (http_later){.step = NULL};
        console_fail(a, 503, "%s", error.text);
        errand_over(e);
        return;
    }
}
