/* SPDX-License-Identifier: Apache-2.0 */
/* On how many nodes packages are that can be uninstalled: by that the server refuses to take one
 * out of its Skyhook, or to put an older version in its place, before it is uninstalled. */
#include <inttypes.h>

#include "operator/shell_internal.h"

static bool can_be_uninstalled(const package *p)
{
    return p->uninstall && p->uninstall->enabled;
}

/* Of all packages of the Skyhook; NULL where none can be uninstalled, or without memory. */
static const package_spread *look(node_shell *s, const shell_change *c)
{
    const skyhook *of = c->document->object.skyhook;
    size_t count = of->spec.packages.len;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= can_be_uninstalled(&of->spec.packages.at[i]);
    package_spread *found = any ? ARENA_ARRAY(s->scratch, count, package_spread) : NULL;
    if (!found) {
        if (any)
            shell_memory(s);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        found[i] = (package_spread){0};
    for (size_t k = 0; k < c->places.len; k++) {
        arena_place mark = arena_mark(s->scratch);
        node_view v;
        if (engine_node(s->engine, str_of(c->name), str_of(c->places.at[k]->node->name), s->scratch,
                        &v))
            for (size_t i = 0; i < count; i++)
                package_spread_look(&of->spec.packages.at[i], &v, &found[i]);
        arena_rewind(s->scratch, mark);
    }
    return found;
}

static void put_key(buf *out, str key)
{
    buf_addz(out, out->ptr[out->len - 1] == '{' ? "" : ",");
    buf_add_json(out, key);
}

void status_installed_put(node_shell *s, const shell_change *c, buf *out)
{
    const skyhook *of = c->document->object.skyhook;
    const package_spread *found = look(s, c);
    buf key = BUF(LIMIT_NAME_BYTES + LIMIT_VERSION_BYTES), live = BUF(SHELL_TEXT_BYTES);
    if (!found && c->installed.len == 0)
        return;
    buf_addz(out, ",\"installed\":{");
    for (size_t i = 0; found && i < of->spec.packages.len; i++) {
        const package *p = &of->spec.packages.at[i];
        if (!can_be_uninstalled(p) || found[i].nodes == 0)
            continue;
        buf_clear(&key);
        buf_addf(&key, "%.*s|%.*s", STR_ARG(p->name), STR_ARG(p->version));
        put_key(out, buf_str(&key));
        buf_addf(out, ":%" PRId64, found[i].nodes);
        buf_addf(&live, "\n%.*s\n", STR_ARG(buf_str(&key)));
    }
    for (size_t i = 0; i < c->installed.len; i++) {
        buf_clear(&key);
        buf_addf(&key, "\n%s\n", c->installed.at[i]);
        if (str_find(buf_str(&live), buf_str(&key)) != SIZE_MAX)
            continue;
        put_key(out, str_of(c->installed.at[i]));
        buf_addz(out, ":null");
    }
    buf_addc(out, '}');
    out->failed |= key.failed || live.failed;
    buf_done(&key);
    buf_done(&live);
}
