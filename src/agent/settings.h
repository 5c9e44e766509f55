/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - what drover-agent was asked to do: its arguments and its environment.
 *
 * Everything the agent takes from outside is read here, once. Texts are those of the arguments and
 * of the environment and live as long as the program. */
#ifndef DROVER_AGENT_SETTINGS_H
#define DROVER_AGENT_SETTINGS_H

#include "base/err.h"
#include "base/str.h"

/* A mode and the mode that checks it stand side by side. */
#define AGENT_MODES(X)                                                                             \
    X(APPLY, "apply")                                                                              \
    X(APPLY_CHECK, "apply-check")                                                                  \
    X(CONFIG, "config")                                                                            \
    X(CONFIG_CHECK, "config-check")                                                                \
    X(POST_INTERRUPT, "post-interrupt")                                                            \
    X(POST_INTERRUPT_CHECK, "post-interrupt-check")                                                \
    X(UNINSTALL, "uninstall")                                                                      \
    X(UNINSTALL_CHECK, "uninstall-check")                                                          \
    X(UPGRADE, "upgrade")                                                                          \
    X(UPGRADE_CHECK, "upgrade-check")                                                              \
    X(INTERRUPT, "interrupt")

typedef enum agent_mode {
#define X(mode, text) MODE_##mode,
    AGENT_MODES(X)
#undef X
        MODE_UNKNOWN, /* a newer operator's: nothing is done */
} agent_mode;
#define PACKAGE_MODES ((size_t)MODE_INTERRUPT)

static inline bool mode_checks(agent_mode mode)
{
    return mode < MODE_INTERRUPT && mode % 2 == 1;
}

const char *mode_text(agent_mode mode);
agent_mode mode_of(str text);

#define AGENT_GRACE_SECONDS 20 /* kubelets end a pod after 30 */
#define AGENT_GRACE_SECONDS_MAX 86400
#define AGENT_BUFFER_BYTES 8192
#define AGENT_BUFFER_BYTES_MAX (1u << 20)

typedef struct agent_settings {
    agent_mode mode;
    str root;             /* the host's root, as the agent sees it */
    str copy_dir;         /* of the package, as the host sees it */
    str interrupt_data;   /* base64 */
    str resource_id;      /* RESOURCE_PACKAGE_VERSION */
    str package, version; /* of the resource id */
    str data_dir;         /* the package in this container, for operators that do not copy it */
    str state_dir;        /* flags, history and interrupts, on the host */
    str log_dir;          /* on the host */
    bool write_logs;
    bool copy_resolv;
    bool always_run; /* whatever the flags say */
    size_t buffer_bytes;
    int64_t grace_seconds; /* between TERM and KILL */
} agent_settings;

/* Arguments are those behind the program's name. */
bool settings_read(int count, char *const *arguments, agent_settings *ret, err *error);

#endif
