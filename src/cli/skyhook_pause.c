/* SPDX-License-Identifier: Apache-2.0 */
/* pause, resume, disable, enable: one annotation of the Skyhook. */
#include "cli/skyhook.h"

#define PROMPT_BYTES 512

typedef struct switching {
    const char *verb;  /* "pause" */
    const char *past;  /* "paused" */
    const char *key;   /* annotation */
    const char *value; /* as JSON */
} switching;

static exit_status turn(sk *s, const switching *how)
{
    char prompt[PROMPT_BYTES], body[PROMPT_BYTES];
    str name = s->given->operands.at[0];
    /* Nobody is asked about one that is not there; and a write would be tried for long where no
     * cluster answers. */
    if (!sk_skyhook(s, name))
        return STATUS_NO;
    if (s->dry_run) {
        printf("[dry-run] Would %s Skyhook \"%.*s\"\n", how->verb, STR_ARG(name));
        return STATUS_DONE;
    }
    snprintf(prompt, sizeof prompt, "This will %s Skyhook \"%.*s\". Continue?", how->verb,
             STR_ARG(name));
    if (!sk_confirm(s, prompt))
        return STATUS_DONE;
    snprintf(body, sizeof body, "{\"metadata\":{\"annotations\":{\"" SKYHOOK_PREFIX "%s\":%s}}}",
             how->key, how->value);
    /* It says how it shall be, whatever else changed: it needs no precondition. */
    kube_write w = {.verb = WRITE_MERGE,
                    .collection = STR(SKYHOOKS_PATH),
                    .name = name,
                    .body = str_of(body),
                    .anyhow = true};
    if (!sk_write(s, &w, "Skyhook"))
        return STATUS_NO;
    printf("Skyhook \"%.*s\" %s\n", STR_ARG(name), how->past);
    return STATUS_DONE;
}

static const option options_of_switch[] = {OPTION_CONFIRM, OPTION_FORM_ANYHOW, OPTIONS_SKYHOOK,
                                           OPTIONS_END};

#define SWITCH(word, past, key, value, text)                                                       \
    static exit_status work_##word(sk *s)                                                          \
    {                                                                                              \
        return turn(s, &(switching){#word, past, key, value});                                     \
    }                                                                                              \
    static exit_status run_##word(const options *given)                                            \
    {                                                                                              \
        return sk_run(given, work_##word);                                                         \
    }                                                                                              \
    const verb skyhook_##word = {                                                                  \
        .name = #word,                                                                             \
        .summary = text,                                                                           \
        .operands = "SKYHOOK",                                                                     \
        .operands_min = 1,                                                                         \
        .operands_max = 1,                                                                         \
        .options = options_of_switch,                                                              \
        .run = run_##word,                                                                         \
    }

SWITCH(pause, "paused", "pause", "\"true\"", "start nothing new; what runs ends");
SWITCH(resume, "resumed", "pause", "null", "go on after a pause");
SWITCH(disable, "disabled", "disable", "\"true\"", "leave a Skyhook out, and let others pass");
SWITCH(enable, "enabled", "disable", "null", "take a disabled Skyhook in again");
