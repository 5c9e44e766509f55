/* SPDX-License-Identifier: Apache-2.0 */
/* What was done on nodes before Drover came, by Skyhook's own operator.
 *
 * It notes on a node how far each package is, but not with which files, nor for which change of
 * them: those stand in its ConfigMaps and in the Skyhook's status, and are written over. So what
 * they said is kept in the Skyhook's record, for as long as there may be nodes without a record of
 * their own: those that were done have none, and get none while there is nothing to do. */
#include "engine/nodes_internal.h"

/* What changes of files were carried by what a node was at; before the config stage none are. */
static bool carries_changes(const package_entry *e)
{
    return e->stage == STAGE_CONFIG || e->stage == STAGE_INTERRUPT ||
           e->stage == STAGE_POST_INTERRUPT;
}

/* A configMap that nothing is remembered of counts as applied; an entry that errs makes it failed.
 */
void found_adopt(node_placement *p)
{
    const change *c = p->change;
    for (uint16_t i = 0; i < c->rules.len; i++) {
        package_entry *e = entry_of(&c->rules, &p->entries, &c->rules.at[i]);
        if (!e)
            continue;
        e->config = c->rules.at[i].config;
        if (e->state == PACKAGE_ERRORING)
            p->failed = true;
    }
    for (size_t i = 0; i < c->found.len; i++) {
        const found_package *was = &c->found.at[i];
        package_entry *e = entry_find(&p->entries, was->name, was->version);
        if (!e)
            continue;
        e->config = was->config;
        e->pending = carries_changes(e) ? was->pending : 0;
    }
}

void found_given(const node_placement *p, package_entry *e)
{
    const change *c = p->change;
    for (size_t i = 0; e->stage == STAGE_CONFIG && i < c->found.len; i++)
        if (c->found.at[i].name == e->name && c->found.at[i].version == e->version)
            e->config = c->found.at[i].config;
}

/* ---- the Skyhook's record ---- */

void found_put(const nodes *self, const change *c, buf *out)
{
    for (size_t i = 0; i < c->found.len; i++) {
        const found_package *was = &c->found.at[i];
        const name_id texts[] = {was->name, was->version, was->config, was->pending};
        buf_addz(out, i == 0 ? ",\"found\":[" : ",");
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
            buf_addc(out, k == 0 ? '[' : ',');
            buf_add_json(out, names_text(self->core->names, texts[k]));
        }
        buf_addc(out, ']');
    }
    if (c->found.len > 0)
        buf_addc(out, ']');
}

static name_id get_text(nodes *self, yyjson_val *item, size_t index)
{
    yyjson_val *text = yyjson_arr_get(item, index);
    const char *of = yyjson_get_str(text);
    return of ? nodes_name(self, (str){of, yyjson_get_len(text)}) : 0;
}

/* Files that nobody tells of are those of the document as it is when Drover comes. */
static name_id config_now(const change *c, const found_package *of)
{
    for (uint16_t i = 0; i < c->rules.len; i++)
        if (c->rules.at[i].name == of->name && c->rules.at[i].version == of->version)
            return c->rules.at[i].config;
    return 0;
}

static bool has_record(const nodes *self, const node_placement *p)
{
    str name = names_text(self->core->names, p->change->name);
    return target_annotation(&self->targets.at[p->target], STR(NODE_MEMORY), name).ptr;
}

void found_get(nodes *self, change *c, yyjson_val *json, bool kept)
{
    c->found.len = 0;
    yyjson_arr_iter walk = yyjson_arr_iter_with(json);
    for (yyjson_val *one; (one = yyjson_arr_iter_next(&walk));) {
        found_package was = {.name = get_text(self, one, 0),
                             .version = get_text(self, one, 1),
                             .config = get_text(self, one, 2),
                             .pending = get_text(self, one, 3)};
        if (!yyjson_is_str(yyjson_arr_get(one, 2)))
            was.config = config_now(c, &was);
        if (!vec_push(&c->found, was))
            nodes_memory(self);
    }
    for (size_t i = 0; kept && c->found.len > 0 && i < self->placements.len; i++) {
        node_placement *p = &self->placements.at[i];
        if (p->change == c && !has_record(self, p))
            found_adopt(p);
    }
}
