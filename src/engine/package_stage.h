/* SPDX-License-Identifier: Apache-2.0 */
/* package_stage.h - what may run next on one node: packages, their stages and their order.
 *
 * Pure functions over what the Skyhook wants (package_rules) and what the node's state says
 * (package_entries). They know nothing of claims, cordons or time.
 *
 *     install    apply -> config [-> interrupt -> post-interrupt]
 *     upgrade    upgrade -> config [-> ...]        when the version is greater, else a fresh
 * install config     config [-> interrupt -> post-interrupt]      when keys of the configMap
 * changed uninstall  uninstall [-> uninstall-interrupt], then the entry is gone */
#ifndef DROVER_ENGINE_PACKAGE_STAGE_H
#define DROVER_ENGINE_PACKAGE_STAGE_H

#include "base/names.h"
#include "model/skyhook.h"

#define ENTRY_RUNNING 1u     /* a stage runs: its attempt has no outcome yet */
#define ENTRY_NEVER_RETRY 2u /* it can only fail again */
#define ENTRY_REBOOTS 4u     /* the interrupt that runs reboots the node */
#define ENTRY_FIRST 8u       /* before the attempt that runs nothing of this version was there */
#define ENTRY_UNPROVEN 16u   /* and no attempt so far did anything to the node */
#define ENTRY_REBOOTED 32u   /* its interrupt has had its reboot: success may be said of it */
#define ENTRY_EARLY 64u      /* success was said of it, and its reboot is still to come */

/* One package in the state of one node. */
typedef struct package_entry {
    name_id name;
    name_id version;
    name_id config;      /* configMap last given to a config stage: see config_text */
    name_id pending;     /* keys whose change the present stages carry; 0: an install or upgrade */
    name_id interrupt;   /* of an interrupt that runs: interrupt_json of it */
    uint32_t attempt;    /* of the last run: of two versions the one that ran last is there */
    uint32_t generation; /* of the Skyhook when the work on it that is not done began; 0: none is */
    uint16_t restarts;   /* failed attempts of the stage */
    uint8_t stage;       /* package_stage */
    uint8_t state;       /* package_state */
    uint8_t losses;      /* attempts of the stage that vanished without outcome */
    uint8_t flags;
} package_entry;

typedef struct package_entries {
    package_entry *at;
    uint16_t len;
    uint16_t cap;
} package_entries;

#define PACKAGE_NO_RULE UINT16_MAX

/* One package as the Skyhook wants it. */
typedef struct package_rule {
    const package *spec;
    name_id name;
    name_id version;
    name_id config;
    uint64_t digest; /* of everything a node could notice */
    bool uninstall;  /* it shall go */
    bool unwanted;   /* neither installed nor removed: the Skyhook is being deleted */
    uint16_t
        *needs; /* packages that must be complete first; PACKAGE_NO_RULE: one that is not there */
    uint16_t need_count;
} package_rule;

typedef struct package_rules {
    package_rule *at; /* sorted by name */
    uint16_t len;
    bool serial;
    names *names;
    bool *no_memory; /* set when a text could not be kept */
} package_rules;

/* Builds the rules of a Skyhook in a, all but no_memory. False without memory. */
bool package_rules_build(const skyhook *s, names *table, arena *a, package_rules *ret);

/* "key=hash,key=hash", sorted: what is remembered of a configMap. */
void config_put(buf *out, label_set config_map);
/* The same as an interned text. 0 without keys and, with *ret_failed, without memory. */
name_id config_text(names *table, label_set config_map, bool *ret_failed);

/* The entry of that package and version, or NULL. */
package_entry *entry_find(const package_entries *entries, name_id name, name_id version);
/* The entry that belongs to a rule, or NULL: also when another version of the package has come to
 * the node since it was written, as after an edit to an older version; then it says what was. */
package_entry *entry_of(const package_rules *r, const package_entries *entries,
                        const package_rule *of);
/* That of a package and version, added when it is not there. NULL without memory. */
package_entry *entry_add(package_entries *entries, name_id name, name_id version);
void entry_remove(package_entries *entries, size_t index);

/* The keys of the configMap that a config stage started now would carry as changed ("a,b"), 0 for
 * an install or upgrade, and for no change. Those of work that has not ended are among them. */
name_id package_pending(const package_rules *r, const package_rule *of, const package_entry *e);
/* Whether the work that is under way or to come on this package has an interrupt. */
bool package_has_interrupt(const package_rules *r, const package_rule *of, const package_entry *e);
/* Whether its interrupt is still to come. */
bool package_interrupt_ahead(const package_rules *r, const package_entries *entries,
                             uint16_t index);

/* The last stage of its work succeeded, whatever became of the configMap since: what comes next is
 * other work. */
bool package_ended(const package_rules *r, const package_rule *of, const package_entry *e);
/* Nobody wants it, and none of its attempts did anything: there is nothing to be undone, nor to be
 * upgraded from. */
bool package_left_nothing(const package_rules *r, const package_entry *e);
/* The package is as the Skyhook wants it. */
bool package_complete(const package_rules *r, const package_entries *entries, uint16_t index);
bool packages_complete(const package_rules *r, const package_entries *entries);

/* The stage the package would run next if nothing held it; STAGE_NONE when it is complete. A stage
 * that runs or was folded into another package's interrupt is returned itself. */
package_stage package_next(const package_rules *r, const package_entries *entries, uint16_t index);
/* Whether all it depends on is complete. */
bool package_free(const package_rules *r, const package_entries *entries, uint16_t index);

/* What would run now, one after the other: those that are uninstalled, then the others, by name;
 * with "serial" at most one, and nothing beside what runs. Running ones are in it. Writes at most
 * r->len indexes and returns how many. */
uint16_t packages_runnable(const package_rules *r, const package_entries *entries, uint16_t *out);

str stage_text(package_stage stage);
str state_text(package_state state);
bool stage_parse(str text, package_stage *ret);
bool state_parse(str text, package_state *ret);

#endif
