/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/reason.h"

#include <inttypes.h>

#include "base/moment.h"

#define CAP_FIRST 4u

bool reasons_add(reasons *list, arena *a, reason r)
{
    if (list->len == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : CAP_FIRST;
        reason *grown = ARENA_ARRAY(a, cap, reason);
        if (!grown)
            return false;
        if (list->len > 0)
            memcpy(grown, list->at, list->len * sizeof *grown);
        list->at = grown;
        list->cap = cap;
    }
    list->at[list->len++] = r;
    return true;
}

str reason_rule_name(reason_rule rule)
{
    static const str texts[] = {
#define X(kind, text) [REASON_##kind] = STR(text),
        REASON_RULES(X)
#undef X
    };
    return texts[rule];
}

str release_act_name(release_act act)
{
    static const str texts[] = {
#define X(kind, text) [RELEASE_##kind] = STR(text),
        RELEASE_ACTS(X)
#undef X
    };
    return texts[act];
}

/* How many names a sentence lists before it only counts. */
#define NAMES_LISTED 3u

static str list_names(arena *a, const str *at, size_t count)
{
    if (count == 0)
        return STR("nobody");
    str text = at[0];
    for (size_t i = 1; i < count && i < NAMES_LISTED; i++)
        text = arena_printf(a, "%.*s, %.*s", STR_ARG(text), STR_ARG(at[i]));
    if (count > NAMES_LISTED)
        text = arena_printf(a, "%.*s and %zu more", STR_ARG(text), count - NAMES_LISTED);
    return text;
}

static str time_text(arena *a, int64_t ms)
{
    if (ms == REASON_NEVER)
        return STR("an event");
    char text[MOMENT_TEXT_BYTES];
    int64_t seconds = ms / 1000 - (ms % 1000 < 0);
    size_t length =
        moment_format((moment){seconds, (int32_t)((ms - seconds * 1000) * 1000000)}, text);
    return arena_str(a, (str){text, length});
}

/* One sentence a rule. {have}, {limit}, {detail}, {holders} and {when} stand for the reason's
 * values; "never" is said instead when no time will release it, and "nobody" when there are no
 * holders. */
static const struct sentence {
    const char *text;
    const char *never;
    const char *nobody;
} sentences[] = {
    [REASON_BUDGET] = {"{have} of {limit} places are taken{more}", NULL, NULL},
    [REASON_BATCH] = {"the next batch begins when the present one has ended ({holders})", NULL,
                      "others are ahead of it, and the next batch is full"},
    [REASON_STOPPED] = {"{detail} after {have} failed batch{es} in a row", NULL, NULL},
    [REASON_PAUSED] = {"{detail} is paused", NULL, NULL},
    [REASON_DISABLED] = {"{detail} is disabled", NULL, NULL},
    [REASON_PRIORITY] = {"{detail} comes first", NULL, NULL},
    [REASON_DEPENDENCY] = {"waits for {detail}", NULL, NULL},
    [REASON_BRACKET] = {"{detail}", NULL, NULL},
    [REASON_CONCURRENCY] = {"{have} of {limit} slots are taken ({holders}){more}", NULL,
                            "the limit is {limit}: there is no slot"},
    [REASON_WINDOW] = {"the deployment window opens at {when}",
                       "the deployment window never opens again", NULL},
    [REASON_APPROVAL] = {"{have} of {limit} approvals were given", NULL, NULL},
    [REASON_PROGRESSION] = {"it must stay in {detail} until {when}", "{detail}", NULL},
    [REASON_COOLDOWN] = {"cooling down until {when}", NULL, NULL},
    [REASON_ROLLOUT] = {"its turn is at {when}",
                        "the rollout has not started: another rule comes first", NULL},
    [REASON_FREEZE] = {"frozen: {detail}", NULL, NULL},
    [REASON_DRAIN] = {"the drain waits for {detail}", NULL, NULL},
    [REASON_TAINT] = {"the taint {detail} is not tolerated", NULL, NULL},
    [REASON_IGNORED] = {"it carries the ignore label", NULL, NULL},
    [REASON_PARTITION] = {"an earlier partition is not ready ({detail})", NULL, NULL},
    [REASON_OFFLINE] = {"offline: {detail}", NULL, NULL},
    [REASON_RETRY] = {"failed ({detail}); tried again at {when}",
                      "failed {have} time{s} and is not tried again by itself ({detail})", NULL},
    [REASON_POLICY_NOT_FOUND] = {"the policy \"{detail}\" does not exist", NULL, NULL},
    [REASON_NOT_READY] = {"it is not ready{said}", NULL, NULL},
    [REASON_BUSY] = {"{detail} is at work on it", NULL, NULL},
    [REASON_VERSION_SELECTOR] = {"the version is not selected: {detail}", NULL, NULL},
    [REASON_NO_VERSION] = {"there is no version to deploy", NULL, NULL},
    [REASON_RUNNING] = {"{detail} is under way", NULL, NULL},
    [REASON_FAILED] = {"failed: {detail}", NULL, NULL},
    [REASON_SKIPPED] = {"a person skipped {detail} here", NULL, NULL},
    [REASON_ROLLED_BACK] = {"{detail} was rolled back here", NULL, NULL},
    [REASON_HALTED] = {"halted: {detail}", NULL, NULL},
    [REASON_NO_NAMESPACE] = {"the cluster has no namespace yet", NULL, NULL},
    [REASON_NO_PARTITION] = {"no partition of the rollout matches it", NULL, NULL},
    [REASON_SOAK] = {"the earlier partition must stay ready until {when}", NULL, NULL},
    [REASON_MAX_NEW] = {"{limit} were released in this pass, the most there may be", NULL, NULL},
    [REASON_UNAVAILABLE] = {"{have} target{s} {are} unavailable, {limit} may be", NULL, NULL},
    [REASON_NODE_LOST] = {"the node was not seen for too long", NULL, NULL},
    [REASON_EXPRESSION] = {"an expression failed: {detail}", NULL, NULL},
    [REASON_QUARANTINED] = {"it is quarantined at {when}: nothing moves under its slot",
                            "it is quarantined", NULL},
    [REASON_VERIFICATION] = {"the verification failed: {detail}", NULL, NULL},
    [REASON_REBOOT] = {"it reboots", NULL, NULL},
    [REASON_WAITING_PODS] = {"pods that may not be interrupted run there: {detail}", NULL, NULL},
    [REASON_MALFORMED] = {"its recorded state cannot be read: {detail}", NULL, NULL},
    [REASON_HINDERED] = {"{detail}", NULL, NULL},
};

/* What stands for a name in braces. */
static str value_of(arena *a, const reason *r, str key)
{
    if (str_eq(key, STR("have")))
        return arena_printf(a, "%" PRId64, r->have);
    if (str_eq(key, STR("s"))) /* of what {have} counts */
        return r->have == 1 ? STR_EMPTY : STR("s");
    if (str_eq(key, STR("es")))
        return r->have == 1 ? STR_EMPTY : STR("es");
    if (str_eq(key, STR("are")))
        return r->have == 1 ? STR("is") : STR("are");
    if (str_eq(key, STR("limit")))
        return arena_printf(a, "%" PRId64, r->limit);
    if (str_eq(key, STR("holders")))
        return list_names(a, r->holders, r->holder_count);
    if (str_eq(key, STR("more"))) /* what there is to add */
        return r->detail.len == 0 ? STR_EMPTY : arena_printf(a, ", %.*s", STR_ARG(r->detail));
    if (str_eq(key, STR("said"))) /* what somebody says of it */
        return r->detail.len == 0 ? STR_EMPTY : arena_printf(a, ": %.*s", STR_ARG(r->detail));
    if (str_eq(key, STR("when")))
        return time_text(a, r->next_ms);
    return r->detail;
}

str reason_text(arena *a, const reason *r)
{
    const struct sentence *s = &sentences[r->rule];
    str rest = str_of(s->nobody && r->holder_count == 0        ? s->nobody
                      : s->never && r->next_ms == REASON_NEVER ? s->never
                                                               : s->text);
    str text = STR_EMPTY;
    while (rest.len > 0) {
        str plain = str_cut(&rest, '{');
        bool more = rest.ptr != NULL;
        str value = more ? value_of(a, r, str_cut(&rest, '}')) : STR_EMPTY;
        text = arena_printf(a, "%.*s%.*s%.*s", STR_ARG(text), STR_ARG(plain), STR_ARG(value));
        if (!text.ptr)
            return text;
    }
    return text;
}

/* ---- as JSON ---- */

static void key_text(buf *out, const char *key, str text)
{
    buf_addf(out, "\"%s\":", key);
    buf_add_json(out, text);
}

typedef struct names_keys {
    const char *names, *more;
    size_t most, beside;
} names_keys;

static void key_names(buf *out, names_keys keys, const str *at, size_t count)
{
    buf_addf(out, "\"%s\":[", keys.names);
    for (size_t i = 0; i < count && i < keys.most; i++) {
        buf_addz(out, i > 0 ? "," : "");
        buf_add_json(out, at[i]);
    }
    buf_addc(out, ']');
    size_t more = keys.beside + (count > keys.most ? count - keys.most : 0);
    if (more > 0)
        buf_addf(out, ",\"%s\":%zu", keys.more, more);
}

void reason_json(const reason *r, size_t most, arena *a, buf *out)
{
    buf_addc(out, '{');
    key_text(out, "rule", reason_rule_name(r->rule));
    buf_addc(out, ',');
    key_text(out, "scope", r->scope);
    buf_addc(out, ',');
    key_text(out, "message", reason_text(a, r));
    buf_addc(out, ',');
    key_names(out, (names_keys){"holders", "holdersMore", most, r->holder_more}, r->holders,
              r->holder_count);
    buf_addz(out, ",\"releasedBy\":{");
    key_text(out, "act", release_act_name(r->act));
    buf_addc(out, ',');
    key_names(out, (names_keys){"of", "more", most, r->of_more}, r->of, r->of_count);
    if (r->any > 0)
        buf_addf(out, ",\"any\":%zu", r->any);
    buf_addz(out, "},");
    if (r->next_ms == REASON_NEVER)
        buf_addz(out, "\"nextAt\":null");
    else
        key_text(out, "nextAt", time_text(a, r->next_ms));
    buf_addc(out, '}');
}
