/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the words behind a command, read by a table.
 *
 * Accepts --name VALUE, --name=VALUE, -n VALUE, -nVALUE, -n=VALUE, switches in one word (-xy) and
 * as --switch=true and --switch=false, and -- before operands that begin with a dash. Options and
 * operands may be mixed. Knows no command. */
#ifndef DROVER_CLI_OPTIONS_H
#define DROVER_CLI_OPTIONS_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

typedef struct option {
    const char *name;     /* without the dashes */
    char letter;          /* 0: none */
    const char *argument; /* how help calls it; "a|b|c": one of these, checked. NULL: a switch */
    bool repeatable;
    const char *help;
} option;

typedef struct option_value {
    const option *option;
    str text; /* empty for a switch */
} option_value;

typedef struct options {
    bool last_counts;         /* of what is given twice; else it is refused unless repeatable */
    VEC(option_value) values; /* in the order given */
    VEC(str) operands;
} options;

/* Reads the words by the table, whose last row has no name. False with a sentence for the user. */
bool options_parse(options *o, const option *table, int count, char **words, err *error);
void options_done(options *o);

/* Whether it was given. */
bool options_given(const options *o, const char *name);
/* Its last value, or fallback. */
str options_text(const options *o, const char *name, const char *fallback);
/* Its values one by one: start with *at = 0; false when there are no more. */
bool options_next(const options *o, const char *name, size_t *at, str *ret);

/* The candidate most like a word, if one is like it; ends with NULL. NULL: none. */
const char *most_like(str word, const char *const *candidates);

#endif
