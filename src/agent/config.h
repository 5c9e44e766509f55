/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - config.json, by which a package image says what its stages run.
 *
 * Reads and judges the file. What it hands out lives in the arena it was given. */
#ifndef DROVER_AGENT_CONFIG_H
#define DROVER_AGENT_CONFIG_H

#include "agent/settings.h"
#include "base/arena.h"

#define CONFIG_BYTES_MAX (4u << 20)
#define CONFIG_STEPS_MAX 1000

typedef struct step_variable {
    str name, value;
} step_variable;

typedef struct package_step {
    str name;
    str path; /* below skyhook_dir */
    str *arguments;
    size_t argument_count;
    int64_t *returncodes; /* those that mean success */
    size_t returncode_count;
    step_variable *variables;
    size_t variable_count;
    bool on_host;      /* else in the agent's container */
    bool idempotent;   /* it may run again at any time; else flags keep it from that */
    bool upgrade_step; /* is told the versions */
} package_step;

typedef struct step_list {
    package_step *at;
    size_t len;
} step_list;

typedef struct package_config {
    str name;
    str version;
    str *expected_files; /* of the package's configMap */
    size_t expected_count;
    step_list modes[PACKAGE_MODES];
} package_config;

/* Errors say where in the document. */
bool config_parse(str json, arena *a, package_config *ret, err *error);
/* Whether all files of steps are there. steps_dir: as the agent sees it. */
bool config_check_files(const package_config *c, str steps_dir, arena *a, err *error);
/* Steps that no "<path>_check.<ext>" stands beside, one sentence each, to standard error. */
void config_warn(const package_config *c);

#endif
