/* SPDX-License-Identifier: Apache-2.0 */
/* How the objects do, what is put right, and what the hub is told. */
#include <stdio.h>

#include "base/mem.h"
#include "cluster_agent/steps_internal.h"
#include "engine/go_json.h"
#include "model/document.h"
#include "operator/bundle_json.h"

/* ---- looking ---- */

/* The list of what is looked at: what is wanted, or rendered; if that is not known, what the chart
 * put there. */
static bool begin_look(deployment_steps *s)
{
    arena *fresh = arena_new(0);
    if (!fresh)
        return false;
    arena_free(s->looking);
    s->looking = fresh;
    s->look = s->trying = s->discovered = false;
    bool chart = s->manifest.is_chart && s->manifest.len == 0;
    size_t most = chart ? s->inventory.len : s->manifest.len;
    s->found_len = 0;
    s->found = ARENA_ARRAY(fresh, most + 1, report_object);
    s->found_wanted = ARENA_ARRAY(fresh, most + 1, const wanted_object *);
    for (size_t i = 0; s->found && s->found_wanted && i < most; i++) {
        if (!chart && s->manifest.at[i].shared)
            continue;
        s->found_wanted[s->found_len] = chart ? NULL : &s->manifest.at[i];
        s->found[s->found_len++].ref = chart ? s->inventory.objects[i] : s->manifest.at[i].ref;
    }
    return s->found && s->found_wanted;
}

static bool drift_to_correct(const deployment_steps *s)
{
    const yyjson_val *spec = steps_spec(s), *options = go_member(spec, STR("options"));
    bool wished =
        yyjson_is_true(go_member(go_member(spec, STR("correctDrift")), STR("enabled"))) ||
        yyjson_is_true(go_member(go_member(options, STR("correctDrift")), STR("enabled")));
    for (size_t i = 0; wished && i < s->found_len; i++)
        if (s->found[i].drift.modified && !s->found[i].foreign)
            return true;
    return false;
}

/* Everything was looked at. Drift is corrected once, and again only after a while. */
static bool looked(deployment_steps *s, const steps_world *w)
{
    bool drifted = drift_to_correct(s), tried = s->correcting;
    s->correcting = s->reread = false;
    s->looked_ms = w->now_ms;
    s->outcome = REPORT_APPLIED;
    s->trouble[0] = '\0';
    if (!drifted) {
        s->correct_due_ms = 0;
        s->correct_wait_ms = STEPS_RETRY_FIRST_MS;
        return steps_go(s, PHASE_REPORT);
    }
    if (!tried && w->now_ms >= s->correct_due_ms) {
        s->correcting = true;
        s->correct_due_ms = w->now_ms + s->correct_wait_ms;
        s->correct_wait_ms *= 2;
        if (s->correct_wait_ms > STEPS_RETRY_MAX_MS)
            s->correct_wait_ms = STEPS_RETRY_MAX_MS;
        for (size_t i = 0; i < s->manifest.len && !s->manifest.is_chart; i++) /* helm has its own */
            s->ways[i] = OBJECT_UNREAD;
        s->establish_until_ms = 0;
        return steps_go(s, s->manifest.is_chart ? PHASE_CHART : PHASE_APPLY);
    }
    s->outcome = REPORT_UNCORRECTED;
    snprintf(s->trouble, sizeof s->trouble, "drift could not be corrected");
    return steps_go(s, PHASE_REPORT);
}

bool look_step(deployment_steps *s, const steps_world *w)
{
    if (s->at == 0 && !s->trying && !begin_look(s))
        return steps_fail_memory(s, w);
    if (s->trying)
        return steps_give_apply(s, w, STEP_TRY_OBJECT, s->found_wanted[s->at]);
    while (s->at < s->found_len) {
        str collection;
        const object_ref *ref = &s->found[s->at].ref;
        switch (steps_find_left(s, w, s->looking, ref, &collection)) {
        case LEFT_ASK:
            s->discovered = true;
            return steps_give(s, STEP_DISCOVER, STR_EMPTY, STR_EMPTY);
        case LEFT_LATER:
            return steps_fail(s, w, FAULT_LATER, "the kinds of the cluster are not all known");
        case LEFT_NOWHERE: s->found[s->at++].drift = (drift){true, STR_EMPTY}; continue;
        case LEFT_FOUND: return steps_give(s, STEP_READ_OBJECT, collection, ref->name);
        }
    }
    return looked(s, w);
}

/* What is told of an object, without all the rest: NULL without memory. */
static yyjson_val *told_part(arena *a, const yyjson_val *live)
{
    static const str members[] = {STR("name"), STR("namespace"), STR("uid"),
                                  STR("creationTimestamp")};
    const yyjson_val *meta = go_member(live, STR("metadata"));
    buf text = BUF(LIMIT_TEXT_BYTES);
    buf_addc(&text, '{');
    json_text(&text, "kind", object_text(live, STR("kind")));
    json_text(&text, "apiVersion", object_text(live, STR("apiVersion")));
    json_open(&text, "metadata");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        json_text_if(&text, members[i].ptr, object_text(meta, members[i]));
    json_close(&text);
    json_close(&text);
    yyjson_val *made = text.failed ? NULL : json_parse_within(a, buf_str(&text), text.len, NULL);
    buf_done(&text);
    return made;
}

/* The object at hand was looked at: what is told of it is kept, and not the object. */
static bool put_away(deployment_steps *s, report_object *o, err *error)
{
    if (o->live) {
        o->readiness.message = arena_str(s->looking, o->readiness.message);
        o->live = told_part(s->looking, o->live);
        if (!o->live || !o->readiness.message.ptr)
            return err_memory(error);
    }
    s->sight = arena_free(s->sight);
    return true;
}

/* Judges one object. False without memory, or when options.diff is wrong. */
static bool judge(deployment_steps *s, report_object *o, const yyjson_val *json, err *error)
{
    const yyjson_val *options = steps_options(s);
    const yyjson_val *diff = go_member(options, STR("diff"));
    const yyjson_val *ignored = go_member(go_member(options, STR("ignore")), STR("conditions"));
    const wanted_object *wanted = s->found_wanted[o - s->found]; /* NULL: of a chart */
    arena_free(s->sight);
    s->sight = arena_new(0);
    yyjson_val *live = json && s->sight ? steps_copy(s->sight, json) : NULL;
    if (!s->sight || (json && !live))
        return err_memory(error);
    o->live = live;
    if (!wanted) {
        o->drift = (drift){!live, STR_EMPTY};
    } else {
        o->foreign = live && !s->manifest.is_chart && !owner_is(live, s->owner);
        drift_facts facts = {.live = live, .diff = diff};
        facts.wanted = json_parse_within(s->sight, wanted->body, wanted->body.len, error);
        if (!facts.wanted || !drift_find(s->looking, &facts, &o->drift, error))
            return false;
        s->trying = o->drift.modified && live && !o->foreign;
    }
    if (live)
        o->readiness = readiness_judge_but(s->sight, live, ignored);
    return s->trying || put_away(s, o, error);
}

/* A server brings manifests into a form of its own, which nobody knows but the server: what it
 * would make of the manifest now is compared with what is there. Without its word it is modified.
 */
static bool tried(deployment_steps *s, const step_answer *answer, err *error)
{
    report_object *o = &s->found[s->at];
    const yyjson_val *options = steps_options(s);
    s->trying = false;
    drift_facts facts = {answer->json, o->live, go_member(options, STR("diff"))};
    if (answer->outcome == OUTCOME_OK && answer->json &&
        !drift_find(s->looking, &facts, &o->drift, error))
        return false;
    return put_away(s, o, error);
}

void look_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    err error;
    if (s->out.kind == STEP_DISCOVER) {
        if (answer->outcome != OUTCOME_OK)
            steps_fail_answer(s, w, answer, NULL);
        return;
    }
    report_object *o = &s->found[s->at];
    bool there = answer->outcome == OUTCOME_OK;
    if (s->out.kind != STEP_TRY_OBJECT && !there && answer->outcome != OUTCOME_MISSING) {
        steps_fail_answer(s, w, answer, &o->ref);
        return;
    }
    bool good = s->out.kind == STEP_TRY_OBJECT ? tried(s, answer, &error)
                                               : judge(s, o, there ? answer->json : NULL, &error);
    if (!good)
        steps_fail(s, w, err_is_memory(&error) ? FAULT_LATER : FAULT_BAD, error.text);
    else if (!s->trying)
        s->at++;
}

/* ---- telling ---- */

static bool all_well(const deployment_steps *s)
{
    for (size_t i = 0; i < s->found_len; i++)
        if (s->found[i].drift.modified || s->found[i].foreign ||
            s->found[i].readiness.state != READINESS_READY)
            return false;
    return s->outcome == REPORT_APPLIED;
}

/* When the cluster is looked at again, unless something tells that it changed. */
static void plan_rest(deployment_steps *s, const steps_world *w, bool changed)
{
    if (!s->in_place) /* a failure has its own time */
        return;
    bool well = all_well(s);
    if (changed && !well)
        s->look_wait_ms = STEPS_LOOK_SOON_MS;
    else if (s->look_wait_ms * 2 < STEPS_LOOK_MS)
        s->look_wait_ms *= 2;
    else
        s->look_wait_ms = STEPS_LOOK_MS;
    s->why = well ? "all is well" : "objects that are not ready, or drifted";
    s->due_ms = s->looked_ms + (well ? STEPS_LOOK_MS : s->look_wait_ms);
    if (w->watched && well && !s->manifest.is_chart)
        s->due_ms = STEPS_NEVER;
}

static bool tell(deployment_steps *s, const steps_world *w, bool *ret_changed)
{
    arena *a scoped(arena_cleanup) = arena_new(0);
    yyjson_val *deployment = a ? json_parse_within(a, buf_str(&s->seen), s->seen.len, NULL) : NULL;
    str release =
        a ? arena_printf(a, "%.*s/%.*s:%lld", STR_ARG(s->inventory.release.namespace_),
                         STR_ARG(s->inventory.release.name), (long long)s->inventory.revision)
          : (str){NULL, 0};
    if (!deployment || !release.ptr)
        return false;
    report_facts facts = {
        .deployment = deployment,
        .outcome = s->outcome,
        .message = str_of(s->trouble),
        .release = release,
        .objects = s->found,
        .len = s->found_len,
        .now = {w->time.seconds, 0},
    };
    buf_clear(&s->body);
    return report_patch(&s->body, &facts, ret_changed, NULL);
}

bool report_step(deployment_steps *s, const steps_world *w)
{
    const yyjson_val *meta = go_member(s->deployment, STR("metadata"));
    bool changed = false;
    s->retell = false;
    if (!tell(s, w, &changed)) {
        s->retell = true;
        s->due_ms = w->now_ms + STEPS_RETRY_FIRST_MS;
        s->why = "the agent is out of memory";
        return steps_go(s, PHASE_REST);
    }
    plan_rest(s, w, changed);
    if (!changed)
        return steps_go(s, PHASE_REST);
    str collection =
        arena_printf(s->looking, "/apis/fleet.cattle.io/v1alpha1/namespaces/%.*s/bundledeployments",
                     STR_ARG(object_text(meta, STR("namespace"))));
    if (!collection.ptr)
        return steps_fail_memory(s, w);
    steps_give(s, STEP_REPORT, collection, object_text(meta, STR("name")));
    s->out.body = buf_str(&s->body);
    s->out.uid = object_text(meta, STR("uid"));
    return true;
}

/* A hub that cannot be told now is told later; what is in the cluster stays as it is. */
void report_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    steps_go(s, PHASE_REST);
    if (answer->outcome == OUTCOME_OK) {
        s->tell_wait_ms = STEPS_RETRY_FIRST_MS;
        return;
    }
    if (answer->outcome == OUTCOME_MISSING || answer->outcome == OUTCOME_CONFLICT)
        return; /* it is gone, or another has its name: the hub will say so */
    int64_t again = w->now_ms + s->tell_wait_ms;
    s->tell_wait_ms = s->tell_wait_ms * 2 > STEPS_LOOK_MS ? STEPS_LOOK_MS : s->tell_wait_ms * 2;
    if (again < s->due_ms)
        s->due_ms = again;
    s->why = "the hub could not be told";
}
