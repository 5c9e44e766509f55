/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/package_stage.h"

#include <assert.h>
#include <inttypes.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "engine/interrupt.h"
#include "model/document.h"
#include "model/semver.h"

#define CONFIG_TEXT_BYTES (4u * 1024u * 1024u)
#define ENTRIES_FIRST 1u

/* ---- words ---- */

static const str stage_texts[] = {
#define X(stage, text) [STAGE_##stage] = STR(text),
    PACKAGE_STAGES(X)
#undef X
};
static const str state_texts[] = {
#define X(state, text) [PACKAGE_##state] = STR(text),
    PACKAGE_STATES(X)
#undef X
};

str stage_text(package_stage stage)
{
    return stage_texts[stage];
}

str state_text(package_state state)
{
    return state_texts[state];
}

bool stage_parse(str text, package_stage *ret)
{
    for (size_t i = 0; i < sizeof stage_texts / sizeof stage_texts[0]; i++)
        if (str_eq(text, stage_texts[i])) {
            *ret = (package_stage)i;
            return true;
        }
    return false;
}

bool state_parse(str text, package_state *ret)
{
    for (size_t i = 0; i < sizeof state_texts / sizeof state_texts[0]; i++)
        if (str_eq(text, state_texts[i])) {
            *ret = (package_state)i;
            return true;
        }
    return false;
}

/* ---- rules ---- */

void config_put(buf *out, label_set config_map)
{
    for (size_t i = 0; i < config_map.len; i++)
        buf_addf(out, "%s%.*s=%016" PRIx64, i > 0 ? "," : "", STR_ARG(config_map.at[i].key),
                 str_hash(config_map.at[i].value));
}

name_id config_text(names *table, label_set config_map, bool *ret_failed)
{
    buf text = BUF(CONFIG_TEXT_BYTES);
    config_put(&text, config_map);
    name_id id = text.failed || text.len == 0 ? 0 : names_add(table, buf_str(&text));
    if (text.failed || (text.len > 0 && id == 0))
        *ret_failed = true;
    buf_done(&text);
    return id;
}

static void digest_interrupt(buf *text, const interrupt *i)
{
    if (!i) {
        buf_addz(text, "-");
        return;
    }
    buf_addf(text, "%.*s/%d", STR_ARG(i->key), (int)i->type);
    for (size_t s = 0; s < i->services.len; s++) {
        buf_addc(text, ' ');
        buf_add(text, i->services.at[s]);
    }
    buf_addc(text, '\n');
}

static void digest_labels(buf *text, label_set labels)
{
    for (size_t i = 0; i < labels.len; i++)
        buf_addf(text, "%.*s=%016" PRIx64 "\n", STR_ARG(labels.at[i].key),
                 str_hash(labels.at[i].value));
    buf_addc(text, '\n');
}

/* Everything whose change is a change of the package. */
static uint64_t digest(const package *p, bool *ret_failed)
{
    buf text = BUF(CONFIG_TEXT_BYTES);
    const str parts[] = {p->version, p->image, p->container_sha, p->agent_image_override};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        buf_add(&text, parts[i]);
        buf_addc(&text, '\n');
    }
    digest_interrupt(&text, p->interrupt);
    digest_labels(&text, p->depends_on);
    digest_labels(&text, p->config_map);
    for (size_t i = 0; i < p->config_interrupts.len; i++)
        digest_interrupt(&text, &p->config_interrupts.at[i]);
    if (p->env)
        json_write(&text, p->env);
    if (p->resources) {
        const quantity *q[] = {&p->resources->cpu_request, &p->resources->cpu_limit,
                               &p->resources->memory_request, &p->resources->memory_limit};
        for (size_t i = 0; i < sizeof q / sizeof q[0]; i++)
            buf_addf(&text, "%.*s\n", STR_ARG(q[i]->text));
    }
    buf_addf(&text, "%" PRId64 " %" PRId64, p->graceful_shutdown.ns, p->stage_timeout.ns);
    if (p->uninstall)
        buf_addf(&text, " %d%d", p->uninstall->enabled, p->uninstall->apply);
    uint64_t hash = str_hash(buf_str(&text));
    *ret_failed |= text.failed;
    buf_done(&text);
    return hash;
}

static uint16_t rule_index(const package_rules *r, str name, str version)
{
    for (uint16_t i = 0; i < r->len; i++)
        if (str_eq(r->at[i].spec->name, name) && str_eq(r->at[i].spec->version, version))
            return i;
    return PACKAGE_NO_RULE;
}

static bool link_needs(package_rules *r, package_rule *rule, arena *a)
{
    label_set needs = rule->spec->depends_on;
    rule->needs = ARENA_ARRAY(a, needs.len + 1, uint16_t);
    if (!rule->needs)
        return false;
    for (size_t i = 0; i < needs.len; i++)
        rule->needs[rule->need_count++] = rule_index(r, needs.at[i].key, needs.at[i].value);
    return true;
}

bool package_rules_build(const skyhook *s, names *table, arena *a, package_rules *ret)
{
    bool deleting = s->metadata.deletion_timestamp.set;
    package_rules r = {.at = ARENA_ARRAY(a, s->spec.packages.len + 1, package_rule),
                       .serial = s->spec.serial,
                       .names = table};
    bool failed = !r.at;
    for (size_t i = 0; !failed && i < s->spec.packages.len; i++) {
        const package *p = &s->spec.packages.at[i];
        bool enabled = p->uninstall && p->uninstall->enabled;
        package_rule *rule = &r.at[r.len++];
        *rule = (package_rule){
            .spec = p,
            .name = names_add(table, p->name),
            .version = names_add(table, p->version),
            .config = config_text(table, p->config_map, &failed),
            .digest = digest(p, &failed),
            .uninstall = enabled && (p->uninstall->apply || deleting),
            .unwanted = deleting && !enabled,
        };
        failed |= rule->name == 0 || rule->version == 0;
    }
    for (uint16_t i = 0; !failed && i < r.len; i++)
        failed = !link_needs(&r, &r.at[i], a);
    if (!failed)
        *ret = r;
    return !failed;
}

/* ---- entries ---- */

package_entry *entry_find(const package_entries *entries, name_id name, name_id version)
{
    for (uint16_t i = 0; i < entries->len; i++)
        if (entries->at[i].name == name && entries->at[i].version == version)
            return &entries->at[i];
    return NULL;
}

/* It is noted for its failures: none of its attempts, which have all ended, did anything. */
static bool is_absent(const package_entry *e)
{
    return (e->flags & ENTRY_UNPROVEN) && !(e->flags & ENTRY_RUNNING);
}

/* Attempts only grow, so the version of the last one is the one that is there. Entries that another
 * operator left have none; an upgrade takes those of smaller versions away, so that one which is
 * still there came later, by an edit to an older version. */
static bool is_replaced(const package_rules *r, const package_entries *entries,
                        const package_rule *of, const package_entry *e)
{
    for (uint16_t i = 0; i < entries->len; i++) {
        const package_entry *o = &entries->at[i];
        if (o->name != e->name || o->version == e->version || is_absent(o))
            continue;
        if (o->attempt > e->attempt)
            return true;
        if (o->attempt == e->attempt && e->stage != STAGE_UPGRADE &&
            semver_cmp(of->spec->version, names_text(r->names, o->version)) > 0)
            return true;
    }
    return false;
}

package_entry *entry_of(const package_rules *r, const package_entries *entries,
                        const package_rule *of)
{
    package_entry *e = entry_find(entries, of->name, of->version);
    bool there = e && ((e->flags & ENTRY_RUNNING) || !is_replaced(r, entries, of, e));
    return there ? e : NULL;
}

package_entry *entry_add(package_entries *entries, name_id name, name_id version)
{
    package_entry *e = entry_find(entries, name, version);
    if (e)
        return e;
    if (entries->len == entries->cap) {
        uint16_t cap = (uint16_t)(entries->cap ? entries->cap * 2 : ENTRIES_FIRST);
        void *grown = mem_realloc(entries->at, cap * sizeof *entries->at);
        if (!grown)
            return NULL;
        entries->at = grown;
        entries->cap = cap;
    }
    e = &entries->at[entries->len++];
    *e = (package_entry){.name = name, .version = version};
    return e;
}

void entry_remove(package_entries *entries, size_t index)
{
    assert(index < entries->len);
    memmove(&entries->at[index], &entries->at[index + 1],
            (entries->len - index - 1) * sizeof *entries->at);
    entries->len--;
}

/* ---- config changes ---- */

/* Whether the list "key=hash,..." has exactly this item. */
static bool config_has(str text, str item)
{
    while (text.ptr)
        if (str_eq(str_cut(&text, ','), item))
            return true;
    return false;
}

static bool config_has_key(str text, str key)
{
    while (text.ptr) {
        str item = str_cut(&text, ',');
        if (str_eq(str_cut(&item, '='), key))
            return true;
    }
    return false;
}

/* Keys of "now" that are new or differ from "before", together with those of "also": "a,b". */
static name_id changed_keys(const package_rules *r, str now, str before, str also)
{
    buf text = BUF(CONFIG_TEXT_BYTES);
    str rest = now;
    while (rest.ptr && rest.len > 0) {
        str item = str_cut(&rest, ',');
        str value = item;
        str key = str_cut(&value, '=');
        if (config_has(before, item) && !config_has(also, key))
            continue;
        buf_addf(&text, "%s%.*s", text.len > 0 ? "," : "", STR_ARG(key));
    }
    while (also.ptr && also.len > 0) { /* those that went since */
        str key = str_cut(&also, ',');
        if (!config_has_key(now, key))
            buf_addf(&text, "%s%.*s", text.len > 0 ? "," : "", STR_ARG(key));
    }
    name_id id = text.len > 0 && !text.failed ? names_add(r->names, buf_str(&text)) : 0;
    if (text.failed || (text.len > 0 && id == 0))
        *r->no_memory = true;
    buf_done(&text);
    return id;
}

name_id package_pending(const package_rules *r, const package_rule *rule, const package_entry *e)
{
    if (!e || e->config == rule->config)
        return e ? e->pending : 0;
    bool was_complete = package_ended(r, rule, e);
    /* Behind its config stage a change waits for the next one, which a failure leads to. */
    bool behind = e->stage == STAGE_INTERRUPT || e->stage == STAGE_POST_INTERRUPT;
    if (behind && !was_complete && e->state != PACKAGE_ERRORING)
        return e->pending;
    if (!was_complete && e->pending == 0)
        return 0; /* an install or upgrade carries its whole configMap */
    str also = was_complete ? STR_EMPTY : names_text(r->names, e->pending);
    return changed_keys(r, names_text(r->names, rule->config), names_text(r->names, e->config),
                        also);
}

/* Whether another configMap must be applied. Keys that went do not count. */
static bool config_changed(const package_rules *r, const package_rule *rule, const package_entry *e)
{
    if (e->config == rule->config)
        return false;
    str before = names_text(r->names, e->config);
    for (str rest = names_text(r->names, rule->config); rest.ptr && rest.len > 0;)
        if (!config_has(before, str_cut(&rest, ',')))
            return true;
    return false;
}

static bool interrupts_with(const package_rules *r, const package_rule *rule, name_id pending)
{
    if (pending == 0)
        return rule->spec->interrupt && rule->spec->interrupt->type != INTERRUPT_NONE;
    for (size_t i = 0; i < rule->spec->config_interrupts.len; i++)
        if (interrupt_matches(&rule->spec->config_interrupts.at[i], names_text(r->names, pending)))
            return true;
    return false;
}

bool package_ended(const package_rules *r, const package_rule *rule, const package_entry *e)
{
    if (e->state != PACKAGE_COMPLETE)
        return false;
    return e->stage == STAGE_POST_INTERRUPT ||
           (e->stage == STAGE_CONFIG && !interrupts_with(r, rule, e->pending));
}

bool package_left_nothing(const package_rules *r, const package_entry *e)
{
    if (!is_absent(e))
        return false;
    for (uint16_t i = 0; i < r->len; i++)
        if (r->at[i].name == e->name && r->at[i].version == e->version)
            return r->at[i].uninstall || r->at[i].unwanted;
    return true;
}

bool package_has_interrupt(const package_rules *r, const package_rule *rule, const package_entry *e)
{
    if (rule->uninstall)
        return interrupts_with(r, rule, 0);
    return interrupts_with(r, rule, package_pending(r, rule, e));
}

/* ---- what comes next ---- */

/* The package is there in a version that an edit has replaced. */
static bool other_version(const package_entries *entries, const package_rule *rule)
{
    for (uint16_t i = 0; i < entries->len; i++)
        if (entries->at[i].name == rule->name && entries->at[i].version != rule->version)
            return true;
    return false;
}

bool package_complete(const package_rules *r, const package_entries *entries, uint16_t index)
{
    const package_rule *rule = &r->at[index];
    const package_entry *e = entry_of(r, entries, rule);
    if (rule->unwanted)
        return !e || !(e->flags & ENTRY_RUNNING);
    if (rule->uninstall)
        return !e && !other_version(entries, rule);
    return e && !(e->flags & ENTRY_RUNNING) && package_ended(r, rule, e) &&
           !config_changed(r, rule, e);
}

bool packages_complete(const package_rules *r, const package_entries *entries)
{
    for (uint16_t i = 0; i < r->len; i++)
        if (!package_complete(r, entries, i))
            return false;
    return true;
}

/* The first stage of a version that is not on the node: an upgrade if an older one is. */
static package_stage first_stage(const package_rules *r, const package_entries *entries,
                                 const package_rule *rule)
{
    for (uint16_t i = 0; i < entries->len; i++) {
        const package_entry *e = &entries->at[i];
        if (e->name == rule->name && e->version != rule->version && !is_absent(e) &&
            semver_cmp(rule->spec->version, names_text(r->names, e->version)) > 0)
            return STAGE_UPGRADE;
    }
    return STAGE_APPLY;
}

static package_stage next_uninstall(const package_rules *r, const package_entries *entries,
                                    const package_rule *rule)
{
    const package_entry *e = entry_of(r, entries, rule);
    if (!e)
        return other_version(entries, rule) ? STAGE_UNINSTALL : STAGE_NONE;
    bool uninstalled = e->stage == STAGE_UNINSTALL_INTERRUPT ||
                       (e->stage == STAGE_UNINSTALL && e->state == PACKAGE_COMPLETE);
    return uninstalled && interrupts_with(r, rule, 0) ? STAGE_UNINSTALL_INTERRUPT : STAGE_UNINSTALL;
}

static package_stage next_install(const package_rules *r, const package_rule *rule,
                                  const package_entry *e)
{
    bool complete = e->state == PACKAGE_COMPLETE;
    /* What failed behind its config stage may have failed for want of another configMap. */
    bool again = e->state == PACKAGE_ERRORING && config_changed(r, rule, e);
    switch ((package_stage)e->stage) {
    case STAGE_NONE:
    case STAGE_UNINSTALL: return STAGE_APPLY; /* a cancelled uninstall installs again */
    case STAGE_UNINSTALL_INTERRUPT:           /* cannot be cancelled */
        return complete || !interrupts_with(r, rule, 0) ? STAGE_APPLY : STAGE_UNINSTALL_INTERRUPT;
    case STAGE_APPLY:
    case STAGE_UPGRADE: return complete ? STAGE_CONFIG : (package_stage)e->stage;
    case STAGE_CONFIG:
        if (!complete || config_changed(r, rule, e))
            return STAGE_CONFIG;
        return interrupts_with(r, rule, e->pending) ? STAGE_INTERRUPT : STAGE_NONE;
    case STAGE_INTERRUPT: /* one that an edit took away is behind us */
        if (again)
            return STAGE_CONFIG;
        return complete || !interrupts_with(r, rule, e->pending) ? STAGE_POST_INTERRUPT
                                                                 : STAGE_INTERRUPT;
    case STAGE_POST_INTERRUPT:
        if (!complete)
            return again ? STAGE_CONFIG : STAGE_POST_INTERRUPT;
        return config_changed(r, rule, e) ? STAGE_CONFIG : STAGE_NONE;
    }
    return STAGE_NONE;
}

package_stage package_next(const package_rules *r, const package_entries *entries, uint16_t index)
{
    const package_rule *rule = &r->at[index];
    const package_entry *e = entry_of(r, entries, rule);
    if (e && (e->flags & ENTRY_RUNNING))
        return e->stage;
    if (rule->unwanted)
        return STAGE_NONE;
    if (rule->uninstall)
        return next_uninstall(r, entries, rule);
    return e ? next_install(r, rule, e) : first_stage(r, entries, rule);
}

bool package_interrupt_ahead(const package_rules *r, const package_entries *entries, uint16_t index)
{
    const package_rule *rule = &r->at[index];
    package_stage next = package_next(r, entries, index);
    if (next == STAGE_NONE || next == STAGE_POST_INTERRUPT)
        return false;
    if (next == STAGE_INTERRUPT || next == STAGE_UNINSTALL_INTERRUPT)
        return true;
    return package_has_interrupt(r, rule, entry_of(r, entries, rule));
}

bool package_free(const package_rules *r, const package_entries *entries, uint16_t index)
{
    const package_rule *rule = &r->at[index];
    if (rule->uninstall)
        return true;
    for (uint16_t i = 0; i < rule->need_count; i++) {
        uint16_t need = rule->needs[i];
        /* What was uninstalled is as wanted, but it is not there to be depended on. */
        if (need == PACKAGE_NO_RULE || r->at[need].uninstall || r->at[need].unwanted ||
            !package_complete(r, entries, need))
            return false;
    }
    return true;
}

/* A package in the middle of its stages, which "serial" finishes before the next one begins. */
static bool begun(const package_rules *r, const package_entries *entries, uint16_t index)
{
    const package_entry *e = entry_of(r, entries, &r->at[index]);
    return e && (e->stage != STAGE_NONE) &&
           ((e->flags & ENTRY_RUNNING) || !package_ended(r, &r->at[index], e));
}

/* A stage of the version that an edit replaced ends before the new version begins. */
static bool old_version_runs(const package_entries *entries, const package_rule *rule)
{
    for (uint16_t i = 0; i < entries->len; i++) {
        const package_entry *e = &entries->at[i];
        if (e->name == rule->name && e->version != rule->version && (e->flags & ENTRY_RUNNING))
            return true;
    }
    return false;
}

static uint16_t runnable_of(const package_rules *r, const package_entries *entries, bool uninstall,
                            uint16_t *out)
{
    uint16_t count = 0;
    for (uint16_t i = 0; i < r->len; i++)
        if (r->at[i].uninstall == uninstall && package_next(r, entries, i) != STAGE_NONE &&
            package_free(r, entries, i) && !old_version_runs(entries, &r->at[i]))
            out[count++] = i;
    return count;
}

/* What runs, also of a version or package that an edit took away: nothing begins beside it. */
static const package_entry *running(const package_entries *entries)
{
    for (uint16_t i = 0; i < entries->len; i++)
        if (entries->at[i].flags & ENTRY_RUNNING)
            return &entries->at[i];
    return NULL;
}

uint16_t packages_runnable(const package_rules *r, const package_entries *entries, uint16_t *out)
{
    const package_entry *runs = r->serial ? running(entries) : NULL;
    if (runs) {
        out[0] =
            rule_index(r, names_text(r->names, runs->name), names_text(r->names, runs->version));
        return out[0] != PACKAGE_NO_RULE;
    }
    uint16_t count = runnable_of(r, entries, true, out);
    count = (uint16_t)(count + runnable_of(r, entries, false, out + count));
    if (!r->serial || count < 2)
        return count;
    for (uint16_t i = 0; i < count; i++)
        if (begun(r, entries, out[i])) {
            out[0] = out[i];
            break;
        }
    return 1;
}
