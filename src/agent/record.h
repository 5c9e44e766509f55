/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - what the agent remembers on the host between two runs: flags and history.
 *
 * Names, places and contents are those of the agents that ran there before, so that a host changes
 * agents without doing anything again. Below ROOT/SKYHOOK_ROOT_DIR:
 *
 *     flags/START                           empty
 *     flags/PACKAGE/VERSION/PATH_MARKER     a step that succeeded
 *     flags/check_results                   a line a step: path, and True if it failed
 *     flags/MODE_ALL_CHECKED                empty
 *     history/PACKAGE.json                  versions, newest first
 *     interrupts/flags/ID/TYPE_N.complete   an interrupt that ran
 *     interrupts/boots/ID/TYPE_N            ours: the boot in which a reboot was asked for
 */
#ifndef DROVER_AGENT_RECORD_H
#define DROVER_AGENT_RECORD_H

#include "agent/config.h"

#define HISTORY_ENTRIES_MAX 1000
#define HISTORY_BYTES_MAX (1u << 20)
#define VERSION_UNINSTALLED STR("uninstalled")
#define VERSION_UNKNOWN STR("unknown")

/* The part of a flag's name that tells a step from the same one with other arguments: base64 of
 * ['argument', ...]_[returncode, ...]. ptr is NULL without memory. */
str record_marker(arena *a, const package_step *step);

bool record_start(const agent_settings *s, arena *a, err *error);
bool record_flag_exists(const agent_settings *s, const package_config *c, const package_step *step,
                        arena *a, bool *ret);
bool record_flag(const agent_settings *s, const package_config *c, const package_step *step,
                 arena *a, err *error);
/* Forgets the flags of all steps of all modes. */
bool record_forget_flags(const agent_settings *s, const package_config *c, arena *a, err *error);
bool record_check_results(const agent_settings *s, str lines, arena *a, err *error);
bool record_all_checked(const agent_settings *s, arena *a, err *error);

/* The version that is on the host, VERSION_UNINSTALLED or VERSION_UNKNOWN. A history that cannot be
 * read is set aside. */
bool record_version(const agent_settings *s, str package, arena *a, str *ret, err *error);
bool record_add_version(const agent_settings *s, str package, str version, arena *a, err *error);

/* The path of the flag of an interrupt's command. */
str record_interrupt_path(const agent_settings *s, str name, arena *a);
/* Whether a reboot was asked for in the boot that the host is in still; and that it is now. A host
 * that does not say what boot it is in was never asked. */
bool record_boot_is_same(const agent_settings *s, str name, arena *a);
bool record_boot(const agent_settings *s, str name, arena *a, err *error);

#endif
