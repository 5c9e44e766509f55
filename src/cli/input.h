/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - from the -f options of a command to typed objects.
 *
 * Everything that can be read is read; everything that is wrong is one problem, that a file is
 * missing included. The commands decide what to do with what is left. */
#ifndef DROVER_CLI_INPUT_H
#define DROVER_CLI_INPUT_H

#include "cli/command.h"
#include "cli/files.h"
#include "model/object.h"
#include "model/problems.h"

typedef struct input {
    files *files;
    document_set *documents;
    object_list *objects;
    problems *problems;
} input;

/* Reads what -f names; then in->problems says whether it is good. The status is STATUS_USAGE when
 * there is no -f and c needs one, else STATUS_DONE; other than that: message shown, nothing read.
 * input_done is needed in either case. */
exit_status input_read(input *in, const verb *c, const options *given);
/* The same where none are needed. */
exit_status input_read_some(input *in, const options *given);
void input_done(input *in);

/* Whether there is an error among the problems. */
bool input_bad(const input *in);
/* All problems to standard error, one line each, errors before warnings. */
void input_report(const input *in);

#endif
