/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says of the live version, told apart from what it said of the one before.
 *
 * A condition keeps its time while it says the same, and the clock of an agent may be anything:
 * evidence is what differs from what was said when the version was released. That is kept in a
 * label of the deployment, and so known after a restart as well. What an agent says of the version
 * before after the release of the next, at the end of a long installation for example, cannot be
 * told from news of that: Fleet's agents do not name the version that a condition is about. */
#include <inttypes.h>

#include "engine/fleet_names.h"
#include "operator/hub_internal.h"

yyjson_val *hub_condition(yyjson_val *status, const char *type)
{
    size_t i, max;
    yyjson_val *one;
    yyjson_arr_foreach(yyjson_obj_get(status, "conditions"), i, max, one)
    {
        if (yyjson_equals_str(yyjson_obj_get(one, "type"), type))
            return one;
    }
    return NULL;
}

static uint32_t folded(uint64_t digest)
{
    return (uint32_t)(digest ^ (digest >> 32));
}

hub_said hub_said_of(yyjson_val *status)
{
    return (hub_said){.deployed = folded(hub_digest(hub_condition(status, "Deployed"))),
                      .installed = folded(hub_digest(hub_condition(status, "Installed"))),
                      .applied = folded(str_hash(read_text(status, "appliedDeploymentID")))};
}

/* ---- the label ---- */

void hub_release_put(buf *out, const hub_release *r)
{
    buf_addf(out, "%" PRId64, r->at_s);
    if (r->known)
        buf_addf(out, ".%08" PRIx32 ".%08" PRIx32 ".%08" PRIx32, r->said.deployed,
                 r->said.installed, r->said.applied);
}

static int64_t read_seconds(str text)
{
    int64_t seconds = 0;
    for (size_t i = 0; i < text.len && i < 15; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return 0;
        seconds = seconds * 10 + (text.ptr[i] - '0');
    }
    return seconds;
}

static bool read_hex(str text, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        *ret = *ret << 4 | (uint32_t)digit;
    }
    return text.len == 8;
}

hub_release hub_release_read(str text)
{
    hub_release r = {.at_s = read_seconds(str_cut(&text, '.'))};
    r.known = read_hex(str_cut(&text, '.'), &r.said.deployed) &&
              read_hex(str_cut(&text, '.'), &r.said.installed) && read_hex(text, &r.said.applied);
    return r;
}

/* ---- judging ---- */

static bool is_false(yyjson_val *said)
{
    return yyjson_equals_str(yyjson_obj_get(said, "status"), "False");
}

/* Where an older controller released, there are only times to compare. */
static bool is_news(const hub_place *p, yyjson_val *said, uint32_t now, uint32_t before)
{
    int64_t at_ms = read_time_ms(read_text(said, "lastUpdateTime"));
    return p->release.known ? now != before : at_ms <= 0 || at_ms / 1000 >= p->release.at_s;
}

/* Nothing went wrong: another deployment comes first. */
static bool is_waiting(yyjson_val *said)
{
    return says_dependency(read_text(said, "reason"), read_text(said, "message"));
}

bool hub_has_failed(const hub_place *p, yyjson_val *status)
{
    const hub_said *then = &p->release.said;
    yyjson_val *deployed = hub_condition(status, "Deployed");
    yyjson_val *installed = hub_condition(status, "Installed");
    if (is_false(deployed) && !is_waiting(deployed) &&
        is_news(p, deployed, p->said.deployed, then->deployed))
        return true;
    /* That a version was applied which was not when it was released is evidence enough: a condition
     * that says the same as that of the version before keeps its time. */
    bool applied_since = p->release.known && p->said.applied != then->applied;
    return is_false(installed) && p->live && p->applied == p->live &&
           (applied_since || is_news(p, installed, p->said.installed, then->installed));
}
