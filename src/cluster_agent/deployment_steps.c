/* SPDX-License-Identifier: Apache-2.0 */
/* The way as a whole: what begins it anew, what ends it, and how long it rests. */
#include "cluster_agent/deployment_steps.h"

#include <assert.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cluster_agent/steps_internal.h"
#include "engine/go_json.h"
#include "model/document.h"

typedef struct phase_row {
    bool (*step)(deployment_steps *s, const steps_world *w);
    void (*answer)(deployment_steps *s, const steps_world *w, const step_answer *answer);
} phase_row;

static const phase_row phases[] = {
#define X(phase, functions) {functions##_step, functions##_answer},
    STEPS_PHASES(X)
#undef X
};

const char *step_kind_text(step_kind kind)
{
    static const char *const texts[] = {
#define X(kind, text) text,
        STEP_KINDS(X)
#undef X
    };
    return texts[kind];
}

/* ---- making and ending ---- */

deployment_steps *steps_new(str name)
{
    deployment_steps *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->name = BUF(LIMIT_PATH_BYTES);
    s->seen = BUF(LIMIT_TEXT_BYTES);
    s->seen_spec = BUF(LIMIT_TEXT_BYTES);
    s->body = BUF(STEPS_BODY_BYTES_MAX);
    s->due_ms = STEPS_NEVER;
    s->why = "the hub has not told of it yet";
    s->retry_ms = STEPS_RETRY_FIRST_MS;
    s->look_wait_ms = STEPS_LOOK_SOON_MS;
    s->correct_wait_ms = s->tell_wait_ms = STEPS_RETRY_FIRST_MS;
    s->way = arena_new(0);
    s->looking = arena_new(0);
    buf_add(&s->name, name);
    return !s->way || !s->looking || s->name.failed ? steps_free(s) : s;
}

deployment_steps *steps_free(deployment_steps *s)
{
    if (!s)
        return NULL;
    buf *texts[] = {&s->name, &s->seen, &s->seen_spec, &s->body};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        buf_done(texts[i]);
    arena *arenas[] = {s->way, s->content, s->rendering, s->looking, s->sight};
    for (size_t i = 0; i < sizeof arenas / sizeof arenas[0]; i++)
        arena_free(arenas[i]);
    return mem_free(s);
}

/* ---- facts ---- */

void steps_succeeded(deployment_steps *s)
{
    s->retry_ms = STEPS_RETRY_FIRST_MS;
    s->failing_since_ms = 0;
    s->reread = false;
}

/* What the agent wakes for: everything but the status. */
static void put_spec(buf *out, const yyjson_val *deployment)
{
    static const str parts[] = {STR("labels"), STR("uid")};
    const yyjson_val *meta = go_member(deployment, STR("metadata"));
    yyjson_val *one = go_member(deployment, STR("spec"));
    if (one)
        go_value(out, one);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        buf_addc(out, '\n');
        if ((one = go_member(meta, parts[i])))
            go_value(out, one);
    }
}

bool steps_see(deployment_steps *s, const yyjson_val *deployment)
{
    buf text = BUF(LIMIT_TEXT_BYTES), spec = BUF(LIMIT_TEXT_BYTES);
    json_write(&text, deployment);
    put_spec(&spec, deployment);
    if (text.failed || spec.failed) {
        buf_done(&text);
        buf_done(&spec);
        return false;
    }
    bool other = s->gone || s->seen.len == 0 || !str_eq(buf_str(&spec), buf_str(&s->seen_spec));
    buf_done(&s->seen);
    buf_done(&s->seen_spec);
    s->seen = text;
    s->seen_spec = spec;
    s->gone = false;
    s->restart |= other;
    if (other)
        steps_succeeded(s); /* a new wish is tried at once */
    s->retell = true;
    return true;
}

void steps_gone(deployment_steps *s)
{
    s->restart |= !s->gone;
    s->gone = true;
    steps_succeeded(s);
}

void steps_look(deployment_steps *s)
{
    s->look = true;
}

/* ---- the BundleDeployment of the way ---- */

const yyjson_val *steps_spec(const deployment_steps *s)
{
    return go_member(s->deployment, STR("spec"));
}

const yyjson_val *steps_options(const deployment_steps *s)
{
    return go_member(steps_spec(s), STR("options"));
}

str steps_live_id(const deployment_steps *s)
{
    return object_text(steps_spec(s), STR("deploymentID"));
}

/* ---- moving ---- */

bool steps_go(deployment_steps *s, steps_phase phase)
{
    s->phase = phase;
    s->at = 0;
    s->delete_uid = STR_EMPTY;
    return false;
}

bool steps_act_as(deployment_steps *s, const steps_world *w, str account)
{
    s->user = STR_EMPTY;
    if (account.len > 0)
        s->user = arena_printf(s->way, "system:serviceaccount:%.*s:%.*s",
                               STR_ARG(w->agent_namespace), STR_ARG(account));
    return s->user.ptr;
}

/* Whether a step is about what the deployment holds. All others are the agent's own business. */
static bool is_of_objects(step_kind kind)
{
    switch (kind) {
    case STEP_READ_OBJECT:
    case STEP_APPLY_OBJECT:
    case STEP_TRY_OBJECT:
    case STEP_MARK_OBJECT:
    case STEP_DELETE_OBJECT:
    case STEP_TRY_CHART:
    case STEP_INSTALL_CHART:
    case STEP_READ_CHART:
    case STEP_REMOVE_CHART: return true;
    case STEP_WAIT:
    case STEP_READ_CONTENT:
    case STEP_READ_VALUES:
    case STEP_REPORT:
    case STEP_DISCOVER:
    case STEP_READ_INVENTORY:
    case STEP_WRITE_INVENTORY:
    case STEP_DELETE_INVENTORY:
    case STEP_READ_GATE:
    case STEP_FORGET: break;
    }
    return false;
}

bool steps_give(deployment_steps *s, step_kind kind, str collection, str name)
{
    s->out = (step){.kind = kind,
                    .collection = collection,
                    .name = name,
                    .user = is_of_objects(kind) ? s->user : STR_EMPTY};
    return true;
}

bool steps_give_inventory(deployment_steps *s, const steps_world *w, step_kind kind)
{
    str collection =
        arena_printf(s->way, "/api/v1/namespaces/%.*s/configmaps", STR_ARG(w->agent_namespace));
    str name = inventory_name(s->way, buf_str(&s->name));
    if (!collection.ptr || !name.ptr)
        return steps_fail_memory(s, w);
    return steps_give(s, kind, collection, name);
}

bool steps_give_apply(deployment_steps *s, const steps_world *w, step_kind kind,
                      const wanted_object *o)
{
    str manager = STR(STEPS_MANAGER);
    if (o->shared)
        manager = arena_printf(s->way, STEPS_MANAGER ".%.*s", STR_ARG(s->owner));
    if (!manager.ptr)
        return steps_fail_memory(s, w);
    steps_give(s, kind, o->collection, o->ref.name);
    s->out.body = o->body;
    s->out.manager = manager;
    s->out.force = true;
    return true;
}

yyjson_val *steps_copy(arena *a, const yyjson_val *json)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    if (json)
        json_write(&text, json);
    yyjson_val *copy = text.failed ? NULL : json_parse_within(a, buf_str(&text), text.len, NULL);
    buf_done(&text);
    return copy;
}

/* Whether the hub was told that the live version is in the cluster. */
static bool is_known_applied(const deployment_steps *s)
{
    const yyjson_val *status = go_member(s->deployment, STR("status"));
    return str_eq(steps_live_id(s), object_text(status, STR("appliedDeploymentID")));
}

/* A cluster that cannot be looked at is no failure of the change that is in it; nor is a way that
 * does not come as far as to know what is wanted. */
static bool is_unseen(const deployment_steps *s, steps_fault fault)
{
    bool begins = s->phase <= PHASE_CONTENT || (fault == FAULT_LATER && s->phase < PHASE_GATES);
    return s->phase == PHASE_LOOK || (begins && is_known_applied(s));
}

/* How it is told. */
static report_outcome outcome_of(const deployment_steps *s, steps_fault fault)
{
    switch (fault) {
    case FAULT_BAD: return REPORT_BAD;
    case FAULT_DEPENDS: return REPORT_WAITING;
    case FAULT_EARLY: return REPORT_UNSEEN;
    case FAULT_FAILED:
    case FAULT_LATER: break;
    }
    return is_unseen(s, fault) ? REPORT_UNSEEN : REPORT_FAILED;
}

/* The version is in the cluster all the same, and what was found there stays told. */
static bool fail_correction(deployment_steps *s, const char *text)
{
    static const char what[] = "drift could not be corrected: ";
    s->correcting = false;
    s->outcome = REPORT_UNCORRECTED;
    snprintf(s->trouble, sizeof s->trouble, "%s%.*s", what, (int)(sizeof s->trouble - sizeof what),
             text);
    return steps_go(s, PHASE_REPORT);
}

bool steps_fail(deployment_steps *s, const steps_world *w, steps_fault fault, const char *text)
{
    if (s->correcting && s->phase != PHASE_LOOK && s->found_len > 0)
        return fail_correction(s, text);
    bool patient = fault == FAULT_LATER || fault == FAULT_EARLY;
    if (s->failing_since_ms == 0)
        s->failing_since_ms = w->now_ms;
    s->due_ms = w->now_ms + s->retry_ms;
    s->retry_ms = s->retry_ms * 2 > STEPS_RETRY_MAX_MS ? STEPS_RETRY_MAX_MS : s->retry_ms * 2;
    s->why = s->trouble; /* of a deployment that is gone nobody hears but by the log */
    s->outcome = outcome_of(s, fault);
    snprintf(s->trouble, sizeof s->trouble, "%s", text);
    s->found_len = 0;
    s->content = arena_free(s->content); /* the next way reads it again */
    s->in_place = s->reread = false;
    bool told = !patient || w->now_ms - s->failing_since_ms >= STEPS_PATIENCE_MS;
    return steps_go(s, told && !s->gone ? PHASE_REPORT : PHASE_REST);
}

bool steps_fail_memory(deployment_steps *s, const steps_world *w)
{
    return steps_fail(s, w, FAULT_LATER, "the agent is out of memory");
}

bool steps_fail_answer(deployment_steps *s, const steps_world *w, const step_answer *answer,
                       const object_ref *what)
{
    char text[REPORT_MESSAGE_BYTES_MAX];
    str message = answer->message.len > 0 ? answer->message : STR("no word of why");
    if (what && what->namespace_.len > 0)
        snprintf(text, sizeof text, "%.*s %.*s/%.*s: %.*s", STR_ARG(what->kind),
                 STR_ARG(what->namespace_), STR_ARG(what->name), STR_ARG(message));
    else if (what)
        snprintf(text, sizeof text, "%.*s %.*s: %.*s", STR_ARG(what->kind), STR_ARG(what->name),
                 STR_ARG(message));
    else
        snprintf(text, sizeof text, "%s: %.*s", step_kind_text(s->out.kind), STR_ARG(message));
    switch (answer->outcome) {
    case OUTCOME_INVALID: return steps_fail(s, w, FAULT_BAD, text);
    case OUTCOME_OK:
    case OUTCOME_MISSING:
    case OUTCOME_NOWHERE:
    case OUTCOME_CONFLICT:
    case OUTCOME_REFUSED: return steps_fail(s, w, FAULT_FAILED, text);
    case OUTCOME_BUSY: return steps_fail(s, w, FAULT_EARLY, text);
    case OUTCOME_LATER: break;
    }
    /* What the hub cannot give now says nothing of the change. */
    bool of_hub = s->out.kind == STEP_READ_CONTENT || s->out.kind == STEP_READ_VALUES;
    return steps_fail(s, w, of_hub ? FAULT_EARLY : FAULT_LATER, text);
}

/* ---- a new way ---- */

/* What is not to be touched: the agent neither acts nor reports. */
static const char *held(const yyjson_val *deployment)
{
    const yyjson_val *spec = go_member(deployment, STR("spec"));
    yyjson_val *waits = go_member(spec, STR("waitingForValues"));
    if (yyjson_is_true(go_member(spec, STR("paused"))))
        return "it is paused";
    if (yyjson_is_true(go_member(spec, STR("offSchedule"))))
        return "its schedule is closed";
    if (waits && !yyjson_is_null(waits) && !yyjson_is_false(waits))
        return "its values are not there yet";
    if (object_text(spec, STR("deploymentID")).len == 0)
        return "no version was released to it yet";
    return NULL;
}

static void begin(deployment_steps *s, const steps_world *w)
{
    arena *fresh = arena_new(0), *looking = arena_new(0), *content = arena_new(0);
    str owner = fresh ? owner_label(fresh, buf_str(&s->name)) : (str){NULL, 0};
    if (!looking || !content || !owner.ptr) {
        arena_free(fresh);
        arena_free(looking);
        arena_free(content);
        s->due_ms = w->now_ms + STEPS_RETRY_FIRST_MS;
        return;
    }
    arena_free(s->way);
    arena_free(s->looking);
    arena_free(s->content);
    s->sight = arena_free(s->sight);
    s->rendering = arena_free(s->rendering);
    s->way = fresh;
    s->owner = owner;
    s->looking = looking;
    s->content = content;
    s->restart = false;
    s->has_inventory = s->discovered = s->correcting = s->in_place = s->rereading = false;
    s->rendered = s->values_read = s->trying = s->handed_over = false;
    s->chart_tried = s->doubted = false;
    s->inventory = s->left = (inventory){0};
    s->values = s->digest = s->user = STR_EMPTY;
    s->files = (resource_files){0};
    s->manifest = (manifest){0};
    s->ways = NULL;
    s->deployment = NULL;
    s->found_len = 0;
    s->establish_until_ms = 0;
    steps_go(s, PHASE_INVENTORY);
    if (s->gone)
        return;
    s->deployment = json_parse_within(s->way, buf_str(&s->seen), s->seen.len, NULL);
    const char *why = s->deployment ? held(s->deployment) : "the agent is out of memory";
    if (!why)
        return;
    steps_go(s, PHASE_REST);
    s->due_ms = s->deployment ? STEPS_NEVER : w->now_ms + STEPS_RETRY_FIRST_MS;
    s->why = why;
    s->retell = s->look = false;
}

/* ---- rest ---- */

bool rest_step(deployment_steps *s, const steps_world *w)
{
    bool done = s->in_place;
    if (done && s->look && s->looked_ms + STEPS_SETTLE_MS < s->due_ms)
        s->due_ms = s->looked_ms + STEPS_SETTLE_MS;
    if (w->now_ms >= s->due_ms && s->due_ms != STEPS_NEVER) {
        if (done)
            return steps_go(s, PHASE_LOOK);
        s->restart = true;
        return false;
    }
    if (done && s->retell)
        return steps_go(s, PHASE_REPORT);
    steps_give(s, STEP_WAIT, STR_EMPTY, STR_EMPTY);
    s->out.due_ms = s->due_ms;
    s->out.why = str_of(s->why);
    return true;
}

void rest_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    (void)s, (void)w, (void)answer; /* a rest has no answer */
}

bool over_step(deployment_steps *s, const steps_world *w)
{
    (void)w;
    return steps_give(s, STEP_FORGET, STR_EMPTY, STR_EMPTY);
}

void over_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    (void)s, (void)w, (void)answer;
}

/* ---- kinds that are not where they were ---- */

/* Whether it may be a definition of the manifest, which is not applied yet, that the kind is of. */
static bool may_come(const deployment_steps *s)
{
    bool before = s->phase == PHASE_CHECK || s->phase == PHASE_APPLY;
    for (size_t i = 0; before && s->out.kind == STEP_READ_OBJECT && i < s->manifest.len; i++)
        if (s->manifest.at[i].definition)
            return true;
    return false;
}

/* An object without a place is not gone: its kind may have another one, such as a newer version. */
static void nowhere(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    step_answer as = *answer;
    as.outcome = OUTCOME_MISSING;
    if (!is_of_objects(s->out.kind) || may_come(s) ||
        !discovery_has(w->discovery, s->out.collection))
        phases[s->phase].answer(s, w, &as);
    else if (!s->reread)
        s->reread = s->rereading = true;
    else
        steps_fail(s, w, FAULT_LATER, "the cluster tells of a kind, but has no place for it");
}

/* What is wanted is placed again; what is there is looked for where it is now. */
static void reread(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    s->rereading = false;
    if (answer->outcome != OUTCOME_OK)
        steps_fail_answer(s, w, answer, NULL);
    else
        s->restart |= s->phase == PHASE_CHECK || s->phase == PHASE_APPLY;
}

bool steps_unpacking(const deployment_steps *s)
{
    return s->content &&
           (s->phase == PHASE_CONTENT || s->phase == PHASE_PLACE || s->phase == PHASE_VALUES_FROM);
}

/* ---- the door ---- */

step steps_next(deployment_steps *s, const steps_world *w)
{
    while (!s->pending) {
        if (s->restart && (s->gone || s->seen.len > 0)) {
            begin(s, w);
            if (s->restart) { /* no memory for it now */
                steps_give(s, STEP_WAIT, STR_EMPTY, STR_EMPTY);
                s->out.due_ms = s->due_ms;
                s->out.why = STR("the agent is out of memory");
                return s->out;
            }
        }
        if (s->rereading)
            steps_give(s, STEP_DISCOVER, STR_EMPTY, STR_EMPTY);
        else if (!phases[s->phase].step(s, w))
            continue;
        s->pending = s->out.kind != STEP_WAIT && s->out.kind != STEP_FORGET;
        return s->out;
    }
    return s->out;
}

void steps_answer(deployment_steps *s, const steps_world *w, const step_answer *answer)
{
    assert(s->pending);
    s->pending = false;
    if (s->restart) /* what it was asked for is of no use any more; its effect is found again */
        return;
    if (s->rereading)
        reread(s, w, answer);
    else if (answer->outcome == OUTCOME_NOWHERE)
        nowhere(s, w, answer);
    else
        phases[s->phase].answer(s, w, answer);
}
