/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pod_rules.h"

bool stage_is_stuck(str waiting_reason)
{
    static const str reasons[] = {
        STR("ImagePullBackOff"), STR("ErrImagePull"),         STR("ErrImageNeverPull"),
        STR("InvalidImageName"), STR("CreateContainerError"), STR("CreateContainerConfigError"),
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (str_eq(waiting_reason, reasons[i]))
            return true;
    return false;
}

bool stage_only_fails_again(str reason)
{
    return str_eq(reason, STR("InvalidImageName"));
}

cordon_toleration toleration_of_cordon(const pod_toleration *t)
{
    if (str_eq(t->key, STR("node.kubernetes.io/unschedulable")))
        return TOLERATES_NAMED;
    bool any = t->key.len == 0 && str_eq(t->op, STR("Exists")) &&
               (t->effect.len == 0 || str_eq(t->effect, STR("NoSchedule")));
    return any ? TOLERATES_ANY : TOLERATES_NONE;
}

bool drain_runs(const drain_pod_view *p)
{
    return str_eq(p->phase, STR("Running")) || str_eq(p->phase, STR("Pending"));
}

bool drain_takes(const drain_pod_view *p, int64_t since_ms)
{
    bool successor = p->tolerates == TOLERATES_ANY && since_ms > 0 && p->created_ms >= since_ms;
    return drain_runs(p) && p->tolerates != TOLERATES_NAMED && !successor && !p->of_daemon_set &&
           !p->mirror && !str_eq(p->space, STR("kube-system"));
}

bool drain_tells(const drain_wait *a, const drain_wait *b)
{
    if (a->holds != b->holds)
        return a->holds;
    if (a->refused != b->refused)
        return a->refused;
    int order = str_cmp(a->space, b->space);
    return (order != 0 ? order : str_cmp(a->name, b->name)) < 0;
}

bool eviction_refused(const eviction_view *v)
{
    if (!v->running || v->leaving)
        return false;
    bool whole = v->desired > 0 && v->healthy >= v->desired;
    if (!v->ready && (v->unready_always || whole))
        return false;
    return v->behind || v->allowed <= 0;
}

noted_edit noted_judge(const noted_view *v)
{
    if (v->record_there && v->record_changed && !v->record_ours)
        return NOTED_OPERATOR;
    bool edited = v->record_there ? !v->state_fits : v->state_gone;
    return edited ? NOTED_PERSON : NOTED_NONE;
}
