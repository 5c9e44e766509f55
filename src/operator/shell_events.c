/* SPDX-License-Identifier: Apache-2.0 */
/* Events for people. Success is told once a batch, on the Skyhook; on nodes only what somebody may
 * have to look at. */
#include <inttypes.h>
#include <stdio.h>

#include "operator/shell_internal.h"

static void tell(node_shell *s, const kube_event *event)
{
    if (s->api.tell)
        s->api.tell(s->api.context, event);
}

static void tell_change(node_shell *s, const shell_change *c, const char *why, const char *text,
                        bool warning)
{
    kube_event e = {.api_version = STR("skyhook.nvidia.com/v1alpha1"),
                    .kind = STR("Skyhook"),
                    .name = str_of(c->name),
                    .uid = shell_text(c->uid),
                    .warning = warning,
                    .reason = str_of(why),
                    .message = str_of(text)};
    tell(s, &e);
}

/* As kubelets do, by the node's name for want of its uid. */
static void tell_node(node_shell *s, str name, const char *why, const char *text, bool warning)
{
    kube_event e = {.api_version = STR("v1"),
                    .kind = STR("Node"),
                    .name = name,
                    .uid = name,
                    .warning = warning,
                    .reason = str_of(why),
                    .message = str_of(text)};
    tell(s, &e);
}

void events_status(node_shell *s, const shell_change *c, skyhook_state from, skyhook_state to)
{
    char text[128];
    snprintf(text, sizeof text, "Skyhook transitioned [%s] -> [%s]", skyhook_state_text(from),
             skyhook_state_text(to));
    tell_change(s, c, "State", text, false);
}

void events_deletion_blocked(node_shell *s, const shell_change *c, deletion_blocked why)
{
    static const char *const texts[] = {
        [DELETION_FREE] = "",
        [DELETION_MALFORMED] = "malformed nodeState. Repair and retry.",
        [DELETION_PAUSED] = "paused with uninstall work pending. Unpause to proceed.",
        [DELETION_DISABLED] = "disabled with uninstall work pending. Re-enable to proceed."};
    char text[EVENT_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text, "Cannot delete Skyhook %s: %s", c->name, texts[why]);
    kube_event e = {.api_version = STR("skyhook.nvidia.com/v1alpha1"),
                    .kind = STR("Skyhook"),
                    .name = str_of(c->name),
                    .uid = shell_text(c->uid),
                    .warning = true,
                    .reason = STR("DeletionBlocked"),
                    .message = str_of(text)};
    tell(s, &e);
}

void events_drain_blocked(node_shell *s, str node_name, const char *pod_text, const char *keeper)
{
    char text[EVENT_MESSAGE_BYTES_MAX];
    if (str_eq(str_of(keeper), BUDGETS_SEVERAL))
        snprintf(text, sizeof text,
                 "the drain waits for pod %s, which nobody can evict: several "
                 "PodDisruptionBudgets select it",
                 pod_text);
    else
        snprintf(text, sizeof text,
                 "the drain waits for pod %s, which PodDisruptionBudget %s protects", pod_text,
                 keeper);
    tell_node(s, node_name, "Drain", text, true);
}

void events_drain_long(node_shell *s, str node_name, const char *pod_text, const char *why)
{
    char text[EVENT_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text, "the drain waits for pod %s for %d minutes: %s", pod_text,
             SHELL_DRAIN_LONG_MS / 60000, why);
    tell_node(s, node_name, "Drain", text, true);
}

void events_change_unreadable(node_shell *s, const shell_change *c, const char *message)
{
    char text[EVENT_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text, "it cannot be read, and what it was before stays: %.400s", message);
    tell_change(s, c, "Invalid", text, true);
}

void events_status_refused(node_shell *s, const shell_change *c, const char *message)
{
    char text[EVENT_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text,
             "its status cannot be written, and nothing starts on its nodes before it is: %.400s",
             message);
    tell_change(s, c, "Refused", text, true);
}

void events_finalizer_refused(node_shell *s, const shell_change *c, const char *message)
{
    char text[EVENT_MESSAGE_BYTES_MAX];
    const char *what = c->finalize ? "its finalizer cannot be taken away, so that it stays"
                                   : "its finalizer cannot be added, and nothing starts on its "
                                     "nodes before it is";
    snprintf(text, sizeof text, "%s: %.400s", what, message);
    tell_change(s, c, "Refused", text, true);
}

void events_node_refused(node_shell *s, const char *node_name, const char *message)
{
    char text[EVENT_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text, "what was decided of this node cannot be written: %.400s", message);
    tell_node(s, str_of(node_name), "Refused", text, true);
}

static void tell_batch(node_shell *s, const decision *d)
{
    const shell_change *c = shell_find_change(s, d->change);
    char text[EVENT_MESSAGE_BYTES_MAX];
    if (!c)
        return;
    snprintf(text, sizeof text,
             "batch %" PRId64 " of compartment %.*s: %" PRId64 " complete, %" PRId64
             " erroring, %" PRId64 " blocked",
             d->number, STR_ARG(d->group), d->complete, d->erroring, d->blocked);
    tell_change(s, c, "Apply", text, false);
}

/* On both: who looks at the Skyhook wonders why a node that was complete is not. */
static void tell_reboot(node_shell *s, const decision *d)
{
    const shell_change *c = shell_find_change(s, d->change);
    char text[EVENT_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text,
             "the node was rebooted: packages of [skyhook:%.*s] are applied again",
             STR_ARG(d->change));
    tell_node(s, d->target, "Reboot", text, false);
    snprintf(text, sizeof text, "node [%.*s] was rebooted: packages are applied to it again",
             STR_ARG(d->target));
    if (c)
        tell_change(s, c, "Reboot", text, false);
}

static void tell_drain(node_shell *s, const decision *d)
{
    const shell_change *c = shell_find_change(s, d->change);
    const package *of =
        c && c->document ? skyhook_package(c->document->object.skyhook, d->package) : NULL;
    char text[EVENT_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text, "draining node [%.*s] package [%.*s:%.*s] from [skyhook:%.*s]",
             STR_ARG(d->target), STR_ARG(d->package), STR_ARG(of ? of->version : STR_EMPTY),
             STR_ARG(d->change));
    tell_node(s, d->target, "Interrupt", text, false);
}

void events_decided(node_shell *s, const decision *d)
{
    char text[EVENT_MESSAGE_BYTES_MAX];
    if (s->api.decided)
        s->api.decided(s->api.context, d);
    switch ((int)d->kind) {
    case DECISION_JUDGE: tell_batch(s, d); break;
    case DECISION_RECORD:
        if (!str_eq(d->state, STR("erroring")))
            break;
        snprintf(text, sizeof text, "Package [%.*s:%.*s] state erroring on [skyhook:%.*s]: %.*s",
                 STR_ARG(d->package), STR_ARG(d->version), STR_ARG(d->change), STR_ARG(d->detail));
        tell_node(s, d->target, "Apply", text, true);
        break;
    case DECISION_RELEASE:
        if (!d->untold)
            break;
        snprintf(text, sizeof text, "state erroring on [skyhook:%.*s]: %.*s", STR_ARG(d->change),
                 STR_ARG(d->detail));
        tell_node(s, d->target, "Apply", text, true);
        break;
    case DECISION_DRAIN: tell_drain(s, d); break;
    case DECISION_REAPPLY: tell_reboot(s, d); break;
    case DECISION_CORDON:
        if (str_eq(d->detail, STR("again")))
            tell_node(s, d->target, "Interrupt",
                      "the node was uncordoned while it was worked on; "
                      "it is cordoned again",
                      true);
        break;
    default: break;
    }
}
