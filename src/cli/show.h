/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - what the server answers, as table, JSON, YAML or names.
 *
 * What can be listed is described once: its words, its path and the columns of its table. */
#ifndef DROVER_CLI_SHOW_H
#define DROVER_CLI_SHOW_H

#include "cli/client.h"
#include "cli/output.h"

#define SHOW_COLUMNS_MAX 8

typedef struct show_column {
    const char *title; /* NULL: the end */
    const char *pointer;
    bool shrink;
    bool right;
    bool age;            /* a time, shown as how long ago it was */
    const char *missing; /* what it means if it is not said */
} show_column;

typedef struct show_kind {
    const char *plural;   /* as in the path */
    const char *singular; /* as people also say it, and in front of names */
    const char *also;     /* a short form */
    const char *kind;     /* of a document, or NULL */
    const char *name;     /* where its name stands */
    bool listed;          /* one of them is found in the list: it has no path of its own */
    show_column columns[SHOW_COLUMNS_MAX];
} show_kind;

/* NULL if there is none. */
const show_kind *show_find(str word);
/* What operands name, one by one: KIND NAME..., KIND/NAME..., or KIND alone (an empty name). Start
 * with *at = 0; false at the end, and when a word is no kind (*ret_kind is NULL then). */
bool show_next(const options *given, size_t *at, const show_kind **ret_kind, str *ret_name);
/* All of them, for help. */
#define SHOW_KINDS_HELP                                                                            \
    "resources, environments, deployments, versions, rolloutpolicies, targets, jobs, groups, "     \
    "freezes, tokens"

typedef struct show show;
/* output: table, json, yaml or name. */
show *show_begin(client *c, const show_kind *kind, str output);
bool show_item(void *s, yyjson_val *item);
show *show_free(show *s);
/* Prints, frees. one: not a list. */
exit_status show_end(show *s, bool one);

/* How long ago a time was, "5m"; what is no time stays as it is. */
str show_age(client *c, str text);

void yaml_write(buf *out, yyjson_val *value);
void json_pretty(buf *out, yyjson_val *value);

#endif
