/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/skyhook_state.h"

#define STATE_KEY SKYHOOK_PREFIX "nodeState_"

const char *sk_stage_text(package_stage stage)
{
    static const char *const texts[] = {
#define X(stage, text) [STAGE_##stage] = text,
        PACKAGE_STAGES(X)
#undef X
    };
    return texts[stage];
}

const char *sk_package_state_text(package_state state)
{
    static const char *const texts[] = {
#define X(state, text) [PACKAGE_##state] = text,
        PACKAGE_STATES(X)
#undef X
    };
    return texts[state];
}

const char *sk_loud(const char *status)
{
    return strcmp(status, "erroring") == 0 ? "ERRORING" : status;
}

sk_state sk_state_of(sk *s, const sk_node *n, str of, str text)
{
    sk_state state = {.node = n->name, .skyhook = of, .status = "unknown"};
    state.malformed = !node_state_parse(s->arena, text, &state.packages, NULL);
    size_t running = 0, erring = 0;
    for (size_t i = 0; !state.malformed && i < state.packages.packages.len; i++) {
        const package_status *p = &state.packages.packages.at[i];
        state.complete += p->state == PACKAGE_COMPLETE;
        running += p->state == PACKAGE_IN_PROGRESS;
        erring += p->state == PACKAGE_ERRORING;
        state.restarts += p->restarts;
    }
    size_t all = state.packages.packages.len;
    if (erring > 0)
        state.status = "erroring";
    else if (all > 0 && state.complete == all)
        state.status = "complete";
    else if (running > 0 || state.complete > 0)
        state.status = "in_progress";
    return state;
}

void sk_states(sk *s, const sk_node *n, str of, sk_each_state *each, void *context)
{
    for (size_t i = 0; i < n->annotations.len; i++) {
        label note = n->annotations.at[i];
        if (!str_starts(note.key, STR(STATE_KEY)))
            continue;
        str name = str_part(note.key, sizeof STATE_KEY - 1, SIZE_MAX);
        if (of.len > 0 && !str_eq(name, of))
            continue;
        sk_state state = sk_state_of(s, n, name, note.value);
        each(context, &state);
    }
}
