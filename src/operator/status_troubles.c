/* SPDX-License-Identifier: Apache-2.0 */
/* What a Skyhook's conditions say only while it is so: uninstalls that run or fail, packages whose
 * dependency is uninstalled, node states that cannot be read, a deletion that waits for a person.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "operator/shell_internal.h"

#define NAMES_SHOWN 5
#define NAME_BYTES_SHOWN 10

static uint8_t troubles_of(const shell_change *c)
{
    uint8_t found = 0;
    for (size_t i = 0; i < c->places.len; i++)
        found |= c->places.at[i]->troubles;
    return found;
}

static size_t count(const shell_change *c, uint8_t trouble)
{
    size_t found = 0;
    for (size_t i = 0; i < c->places.len; i++)
        found += (c->places.at[i]->troubles & trouble) != 0;
    return found;
}

/* ---- node states ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_malformed(node_shell *s, const shell_change *c, size_t most, buf *out)
{
    const char **names = ARENA_ARRAY(s->scratch, most + 1, const char *);
    size_t found = 0;
    if (!names) {
        shell_memory(s);
        return;
    }
    for (size_t i = 0; i < c->places.len; i++)
        if (c->places.at[i]->troubles & TROUBLE_MALFORMED)
            names[found++] = c->places.at[i]->node->name;
    qsort(names, found, sizeof names[0], by_name);
    buf_addf(out, "nodeState annotation cannot be parsed on %zu node(s): ", found);
    for (size_t i = 0; i < found && i < NAMES_SHOWN; i++) {
        str name = str_of(names[i]);
        bool cut = name.len > NAME_BYTES_SHOWN;
        buf_addf(out, "%s%.*s%s", i > 0 ? ", " : "", STR_ARG(str_part(name, 0, NAME_BYTES_SHOWN)),
                 cut ? "..." : "");
    }
    if (found > NAMES_SHOWN)
        buf_addf(out, " and %zu more", found - NAMES_SHOWN);
}

/* ---- dependencies ---- */

static package_spread spread_of(node_shell *s, const shell_change *c, const package *p)
{
    package_spread found = {0};
    for (size_t i = 0; i < c->places.len; i++) {
        arena_place mark = arena_mark(s->scratch);
        node_view v;
        if (engine_node(s->engine, str_of(c->name), str_of(c->places.at[i]->node->name), s->scratch,
                        &v))
            package_spread_look(p, &v, &found);
        arena_rewind(s->scratch, mark);
    }
    return found;
}

/* "package B is blocked: dependency A is being uninstalled", sorted by B, then A: as packages and
 * dependencies are. */
static void put_blocked(node_shell *s, const shell_change *c, buf *out)
{
    const skyhook *of = c->document->object.skyhook;
    bool readable = c->places.len > 0 && count(c, TROUBLE_MALFORMED) == 0;
    for (size_t i = 0; i < of->spec.packages.len; i++) {
        const package *p = &of->spec.packages.at[i];
        for (size_t k = 0; k < p->depends_on.len; k++) {
            const package *on = skyhook_package(of, p->depends_on.at[k].key);
            if (!package_dependency_leaves(of, p, on) || !spread_of(s, c, p).incomplete)
                continue;
            bool gone = readable && !spread_of(s, c, on).present;
            buf_addf(out, "%spackage %.*s is blocked: dependency %.*s %s", out->len > 0 ? "; " : "",
                     STR_ARG(p->name), STR_ARG(on->name),
                     gone ? "has been uninstalled" : "is being uninstalled");
        }
    }
}

/* ---- deletion ---- */

static const char *blocked_text(deletion_blocked why)
{
    switch (why) {
    case DELETION_FREE: break;
    case DELETION_MALFORMED: return "nodeState is malformed on some node and must be repaired";
    case DELETION_PAUSED: return "paused with uninstall work pending; unpause to let it complete";
    case DELETION_DISABLED:
        return "disabled with uninstall work pending; re-enable to let it complete";
    }
    return "";
}

/* ---- all of them ---- */

static void add(status_troubles *out, const char *type, const char *why, buf text)
{
    out->at[out->len++] = (status_trouble){type, why, text};
}

void status_troubles_find(node_shell *s, shell_change *c, status_troubles *out)
{
    buf text = BUF(SHELL_TEXT_BYTES);
    uint8_t troubles = troubles_of(c);
    *out = (status_troubles){.len = 0};
    put_blocked(s, c, &text);
    if (text.len > 0)
        add(out, "Blocked", "DependencyUninstalled", text);
    text = BUF(SHELL_TEXT_BYTES);
    if (troubles & TROUBLE_UNINSTALLS) {
        buf_addz(&text, "One or more packages are being uninstalled");
        add(out, "UninstallInProgress", "UninstallInProgress", text);
        text = BUF(SHELL_TEXT_BYTES);
    }
    if (troubles & TROUBLE_FAILS) {
        buf_addz(&text, "One or more uninstall pods are failing");
        add(out, "UninstallFailed", "UninstallPodFailing", text);
        text = BUF(SHELL_TEXT_BYTES);
    }
    size_t malformed = count(c, TROUBLE_MALFORMED);
    if (malformed > 0) {
        put_malformed(s, c, malformed, &text);
        add(out, "NodeStateMalformed", "ParseError", text);
        text = BUF(SHELL_TEXT_BYTES);
    }
    c->next_blocked = (uint8_t)deletion_blocked_by(c->document->object.skyhook, troubles);
    if (c->next_blocked != DELETION_FREE) {
        buf_addz(&text, blocked_text(c->next_blocked));
        add(out, "DeletionBlocked", deletion_blocked_reason(c->next_blocked), text);
    }
}

void status_troubles_done(status_troubles *t)
{
    for (size_t i = 0; i < t->len; i++)
        buf_done(&t->at[i].message);
}
