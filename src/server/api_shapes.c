/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api_shapes.h"

#define ALWAYS .flags = FIELD_ALWAYS
#define FILLED .flags = FIELD_REQUIRED | FIELD_FILLED
#define SHAPE(type) const shape type##_shape = {SHAPE_OF(type, type##_fields)}

static const field act_input_fields[] = {
    F_TEXT(act_input, "deployment", deployment, DOC("empty: all")),
    F_TEXT(act_input, "environment", environment, DOC("empty: all")),
    F_TEXT(act_input, "resource", resource, DOC("empty: all")),
    F_TEXT(act_input, "version", version, DOC("a Version's name, or with a deployment its tag")),
    F_TEXT(act_input, "rule", rule, DOC("bypass: the id of a rule")),
    F_TEXT(act_input, "partition", partition,
           DOC("approve: a partition of a rolloutStrategy rule, instead of a version")),
    F_TEXT(act_input, "name", name, DOC("freeze, thaw: its name")),
    F_TEXT(act_input, "selector", selector, DOC("freeze: CEL; empty: everything")),
    F_TEXT(act_input, "reason", reason, DOC("shown to everybody who asks why")),
    F_TIME(act_input, "until", until, DOC("freeze, bypass: none is for ever")),
};
SHAPE(act_input);

static const field act_output_fields[] = {
    F_TEXT(act_output, "act", act, ALWAYS),
    F_INT(act_output, "sequence", sequence, ALWAYS, DOC("of the journal, after it")),
};
SHAPE(act_output);

static const field publish_wish_fields[] = {
    F_TEXT(publish_wish, "deployment", deployment, FILLED),
    F_TEXT(publish_wish, "tag", tag, FILLED),
};
static SHAPE(publish_wish);

static const field plan_input_fields[] = {
    F_TEXT(plan_input, "documents", documents,
           DOC("JSON or YAML, as for apply: as if they were applied first")),
    F_TEXT(plan_input, "duration", duration, DOC("how long a job takes; 60s unless told")),
    F_TEXT_MAP(plan_input, "durations", durations, DOC("of single deployments")),
    F_TEXT(plan_input, "until", until, DOC("how far to look ahead; 90d unless told")),
    F_TEXT_LIST(plan_input, "fail", fail, DOC("RESOURCE or DEPLOYMENT@RESOURCE: fails always")),
    F_TEXT_LIST(plan_input, "failOnce", fail_once, DOC("the same, the first time")),
    F_LIST(plan_input, "publish", publish, &publish_wish_shape, DOC("versions to publish first")),
};
SHAPE(plan_input);

static const field publish_input_fields[] = {
    F_TEXT(publish_input, "tag", tag, FILLED),
    F_TEXT(publish_input, "name", name, DOC("of the Version; made of deployment and tag if empty")),
    F_TEXT(publish_input, "status", status, DOC("ready unless told")),
    F_RAW(publish_input, "config", config),
    F_RAW(publish_input, "dependsOn", depends_on),
    F_TEXT_MAP(publish_input, "labels", labels),
};
SHAPE(publish_input);

static const field problem_output_fields[] = {
    F_TEXT(problem_output, "severity", severity, ALWAYS),
    F_TEXT(problem_output, "document", document, ALWAYS),
    F_TEXT(problem_output, "path", path, ALWAYS),
    F_TEXT(problem_output, "message", message, ALWAYS),
    F_INT(problem_output, "line", line, ALWAYS),
};
SHAPE(problem_output);

static const field result_output_fields[] = {
    F_TEXT(result_output, "kind", kind, ALWAYS),
    F_TEXT(result_output, "name", name, ALWAYS),
    F_TEXT(result_output, "action", action, ALWAYS,
           DOC("created, updated, unchanged, refused or deleted")),
    F_TEXT(result_output, "resourceVersion", resource_version),
};
SHAPE(result_output);

static const field apply_output_fields[] = {
    F_LIST(apply_output, "results", results, &result_output_shape),
    F_LIST(apply_output, "problems", problems, &problem_output_shape),
};
SHAPE(apply_output);

static const field freeze_output_fields[] = {
    F_TEXT(freeze_output, "name", name, ALWAYS),
    F_TEXT(freeze_output, "selector", selector, DOC("what it holds; missing: everything")),
    F_TEXT(freeze_output, "reason", reason),
    F_TEXT(freeze_output, "who", who),
    F_TIME(freeze_output, "createdAt", created_at),
    F_TIME(freeze_output, "until", until),
};
SHAPE(freeze_output);

static const field group_output_fields[] = {
    F_TEXT(group_output, "kind", kind, ALWAYS),  F_TEXT(group_output, "change", change, ALWAYS),
    F_TEXT(group_output, "name", name, ALWAYS),  F_INT(group_output, "matched", matched, ALWAYS),
    F_INT(group_output, "limit", limit, ALWAYS), F_INT(group_output, "holders", holders, ALWAYS),
    F_INT(group_output, "peak", peak, ALWAYS),
};
SHAPE(group_output);

static const field rollout_output_fields[] = {
    F_TEXT(rollout_output, "deployment", deployment, ALWAYS),
    F_TEXT(rollout_output, "version", version, DOC("as asked for; missing: whatever is wanted")),
    F_TEXT(rollout_output, "state", state, ALWAYS,
           DOC("running; held: it can only wait for something else that failed; done, failed: "
               "it is over, with the hooks and rollbacks of its version groups")),
    F_INT(rollout_output, "targets", targets, ALWAYS, DOC("the sum of the next five")),
    F_INT(rollout_output, "done", done, ALWAYS),
    F_INT(rollout_output, "inFlight", in_flight, ALWAYS),
    F_INT(rollout_output, "waiting", waiting, ALWAYS),
    F_INT(rollout_output, "failed", failed, ALWAYS),
    F_INT(rollout_output, "rolledBack", rolled_back, ALWAYS),
    F_INT(rollout_output, "excluded", excluded, ALWAYS, DOC("left out by a rule or a person")),
    F_INT(
        rollout_output, "missed", missed, ALWAYS,
        DOC("whom the version was meant for and does not come to: it is not ready, or a newer one "
            "came first")),
    F_INT(rollout_output, "groups", groups, ALWAYS, DOC("version groups that are not over")),
    F_TIME(rollout_output, "endedAt", ended_at, DOC("the last of its jobs, well or not")),
    F_TEXT(rollout_output, "summary", summary,
           DOC("why the first of those that have not ended well has not")),
};
SHAPE(rollout_output);

static const field job_output_fields[] = {
    F_INT(job_output, "number", number, ALWAYS),
    F_TEXT(job_output, "deployment", deployment, ALWAYS),
    F_TEXT(job_output, "environment", environment, ALWAYS),
    F_TEXT(job_output, "resource", resource, ALWAYS),
    F_TEXT(job_output, "version", version, ALWAYS),
    F_TEXT(job_output, "group", group),
    F_TEXT(job_output, "role", role, ALWAYS),
    F_TEXT(job_output, "state", state, ALWAYS,
           DOC("pending, running, verifying, succeeded, failed, lost")),
    F_TEXT(job_output, "reason", reason),
    F_INT(job_output, "attempt", attempt, ALWAYS),
    F_TIME(job_output, "startedAt", started_at),
    F_TIME(job_output, "endedAt", ended_at),
    F_TIME(job_output, "leaseUntil", lease_until),
};
SHAPE(job_output);

static const field claim_input_fields[] = {
    F_TEXT(claim_input, "resource", resource, FILLED),
    F_INT(claim_input, "leaseSeconds", lease_seconds, BETWEEN(0, 3600), DOC("0: the most")),
};
SHAPE(claim_input);

static const field claim_output_fields[] = {
    F_BOOL(claim_output, "found", found, ALWAYS),
    F_OBJECT(claim_output, "job", job, &job_output_shape),
    F_INT(claim_output, "fencing", fencing, ALWAYS, DOC("goes with every report on this job")),
    F_INT(claim_output, "timeoutSeconds", timeout_seconds, ALWAYS),
    F_RAW(claim_output, "versionConfig", version_config),
    F_RAW(claim_output, "resourceConfig", resource_config),
};
SHAPE(claim_output);

static const field beat_input_fields[] = {
    F_INT(beat_input, "fencing", fencing, REQUIRED, AT_LEAST(0)),
    F_INT(beat_input, "leaseSeconds", lease_seconds, BETWEEN(0, 3600)),
};
SHAPE(beat_input);

static const field beat_output_fields[] = {
    F_BOOL(beat_output, "held", held, ALWAYS, DOC("false: stop at once")),
    F_BOOL(beat_output, "cancel", cancel, ALWAYS, DOC("true: end it, then report")),
    F_TIME(beat_output, "leaseUntil", lease_until),
};
SHAPE(beat_output);

WORDS(outcome_words, COMPLETION_OUTCOMES);
static const field complete_input_fields[] = {
    F_OPT_INT(complete_input, "fencing", fencing, AT_LEAST(0), DOC("workers: of the claim")),
    F_ENUM(complete_input, "outcome", outcome, &outcome_words, REQUIRED),
    F_TEXT(complete_input, "reason", reason),
};
SHAPE(complete_input);

static const field complete_output_fields[] = {
    F_BOOL(complete_output, "ignored", ignored, ALWAYS,
           DOC("it had ended already, or the claim is another's")),
};
SHAPE(complete_output);

static const field log_output_fields[] = {F_INT(log_output, "bytes", bytes, ALWAYS)};
SHAPE(log_output);

WORDS(role_words, TOKEN_ROLES);
static const field token_input_fields[] = {
    F_TEXT(token_input, "name", name, FILLED),
    F_ENUM(token_input, "role", role, &role_words, REQUIRED),
    F_TEXT(token_input, "selector", selector, DOC("workers: labels of the resources")),
};
SHAPE(token_input);

static const field token_output_fields[] = {
    F_TEXT(token_output, "name", name, ALWAYS),
    F_TEXT(token_output, "role", role, ALWAYS),
    F_TEXT(token_output, "selector", selector),
    F_TIME(token_output, "createdAt", created_at),
    F_TIME(token_output, "revokedAt", revoked_at),
    F_TEXT(token_output, "token", token, DOC("shown this once")),
};
SHAPE(token_output);

static const field link_output_fields[] = {
    F_TEXT(link_output, "path", path, ALWAYS, DOC("with the code in its fragment")),
    F_TIME(link_output, "validUntil", valid_until),
};
SHAPE(link_output);

static const field login_input_fields[] = {F_TEXT(login_input, "code", code, FILLED)};
SHAPE(login_input);

static const field login_output_fields[] = {
    F_TEXT(login_output, "token", token, ALWAYS),
    F_TIME(login_output, "validUntil", valid_until),
};
SHAPE(login_output);

static const field info_output_fields[] = {
    F_TEXT(info_output, "version", version, ALWAYS),
    F_TIME(info_output, "startedAt", started_at),
    F_TEXT(info_output, "caller", caller, ALWAYS),
    F_TEXT(info_output, "role", role, ALWAYS),
    F_TEXT(info_output, "mode", mode, ALWAYS, DOC("who answers: serve or operator")),
    F_TEXT_LIST(info_output, "actsOn", acts_on,
                DOC("of an operator: the kinds that the caller may act on; NAMESPACE/Bundle where "
                    "it is that namespace alone")),
    F_INT(info_output, "sequence", sequence, ALWAYS),
};
SHAPE(info_output);

static const field status_output_fields[] = {F_TEXT(status_output, "status", status, ALWAYS)};
SHAPE(status_output);

#define TEXT_TYPE "{\"type\":\"string\"}"
#define TEXTS_TYPE "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"

const char error_schema[] =
    "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{\"error\":{\"type\":\"object\","
    "\"required\":[\"code\",\"message\",\"path\"],\"properties\":{\"code\":" TEXT_TYPE
    ",\"message\":" TEXT_TYPE ",\"path\":" TEXT_TYPE
    ",\"problems\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}}}";

#define COUNT_TYPE "{\"type\":\"integer\"}"

const char target_schema[] =
    "{\"type\":\"object\",\"required\":[\"target\",\"change\",\"environment\",\"state\","
    "\"summary\",\"wanted\",\"current\",\"reasons\"],\"additionalProperties\":false,"
    "\"properties\":{\"target\":" TEXT_TYPE ",\"change\":" TEXT_TYPE ",\"environment\":" TEXT_TYPE
    ",\"state\":{\"type\":\"string\",\"enum\":[\"waiting\",\"inFlight\",\"failed\",\"blocked\","
    "\"excluded\",\"done\"]},\"summary\":" TEXT_TYPE ",\"wanted\":" TEXT_TYPE
    ",\"current\":" TEXT_TYPE ",\"reasons\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"required\":[\"rule\",\"scope\",\"message\",\"holders\",\"releasedBy\",\"nextAt\"],"
    "\"additionalProperties\":false,\"properties\":{\"rule\":" TEXT_TYPE ",\"scope\":" TEXT_TYPE
    ",\"message\":" TEXT_TYPE ",\"holders\":" TEXTS_TYPE ",\"holdersMore\":" COUNT_TYPE
    ",\"releasedBy\":{\"type\":\"object\",\"required\":[\"act\",\"of\"],"
    "\"properties\":{\"act\":" TEXT_TYPE ",\"of\":" TEXTS_TYPE ",\"more\":" COUNT_TYPE
    ",\"any\":" COUNT_TYPE "}},\"nextAt\":{\"type\":[\"string\",\"null\"],"
    "\"format\":\"date-time\"}}}}}}";

#define OBJECTS_TYPE "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"

/* cells: for each release target the places, in the lists, of its change, environment, target,
 * state, wanted and current version, and compartment or partition. */
const char fleet_schema[] =
    "{\"type\":\"object\",\"required\":[\"sequence\",\"states\",\"changes\",\"paused\","
    "\"environments\","
    "\"targets\",\"versions\",\"groups\",\"cells\"],\"additionalProperties\":false,\"properties\":{"
    "\"sequence\":" COUNT_TYPE ",\"states\":" TEXTS_TYPE ",\"changes\":" TEXTS_TYPE
    ",\"paused\":{\"type\":\"array\",\"description\":\"places of the changes that a person "
    "paused or halted\",\"items\":" COUNT_TYPE "},\"environments\":" TEXTS_TYPE
    ",\"targets\":" TEXTS_TYPE ",\"versions\":" TEXTS_TYPE ",\"groups\":" TEXTS_TYPE
    ",\"cells\":{\"type\":\"array\",\"description\":\"seven numbers for each release target: the "
    "places of its change, environment, target, state, wanted and current version and group in "
    "these lists\",\"items\":" COUNT_TYPE "}}}";

const char window_schema[] =
    "{\"type\":\"object\",\"required\":[\"policy\",\"allow\",\"open\"],"
    "\"additionalProperties\":false,\"properties\":{\"policy\":" TEXT_TYPE
    ",\"allow\":{\"type\":\"boolean\"},\"open\":{\"type\":\"array\",\"description\":\"from, to\","
    "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"format\":"
    "\"date-time\"}}}}}";

const char plan_schema[] =
    "{\"type\":\"object\",\"required\":[\"outcome\",\"reason\",\"seconds\",\"targets\",\"done\","
    "\"failed\",\"excluded\",\"peakInFlight\",\"starts\",\"drains\",\"drainsSaved\",\"assumes\","
    "\"changes\",\"passes\",\"jobs\",\"inFlight\",\"waiting\"],\"properties\":{\"outcome\":{"
    "\"type\":\"string\",\"enum\":[\"complete\",\"stopped\",\"stalled\",\"horizon\"]},"
    "\"reason\":" TEXT_TYPE ",\"assumes\":" TEXT_TYPE ",\"seconds\":" COUNT_TYPE
    ",\"targets\":" COUNT_TYPE ",\"done\":" COUNT_TYPE ",\"failed\":" COUNT_TYPE
    ",\"excluded\":" COUNT_TYPE ",\"peakInFlight\":" COUNT_TYPE ",\"starts\":" COUNT_TYPE
    ",\"drains\":" COUNT_TYPE ",\"drainsSaved\":" COUNT_TYPE ",\"changes\":" OBJECTS_TYPE
    ",\"passes\":" OBJECTS_TYPE ",\"jobs\":" OBJECTS_TYPE ",\"waiting\":" OBJECTS_TYPE
    ",\"inFlight\":{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":" COUNT_TYPE "}}}}";

const char journal_schema[] =
    "{\"type\":\"object\",\"required\":[\"sequence\",\"at\",\"step\",\"kind\",\"who\",\"entry\"],"
    "\"additionalProperties\":false,\"properties\":{\"sequence\":{\"type\":\"integer\"},\"at\":{"
    "\"type\":\"string\",\"format\":\"date-time\"},\"step\":{\"type\":\"integer\"},\"kind\":{"
    "\"type\":\"string\",\"enum\":[\"fact\",\"decision\",\"audit\"]},\"who\":" TEXT_TYPE
    ",\"entry\":{\"type\":\"object\"}}}";

const char openapi_schema[] = "{\"type\":\"object\",\"required\":[\"openapi\",\"paths\"]}";

const char fleet_input_schema[] =
    "{\"type\":\"object\",\"required\":[\"client_params\"],\"properties\":{\"client_params\":{"
    "\"type\":\"object\",\"required\":[\"id\",\"group\"],\"properties\":{\"id\":{\"type\":"
    "\"string\",\"minLength\":1},\"group\":" TEXT_TYPE "}}}}";

const char fleet_output_schema[] = "{\"type\":\"object\"}";

/* The protocol's own two fields, and the form that every other refusal has. What is refused before
 * the path is looked at, such as a foreign Host, has only the latter. */
const char fleet_error_schema[] =
    "{\"type\":\"object\",\"required\":[\"error\"],"
    "\"properties\":{\"kind\":" TEXT_TYPE ",\"value\":" TEXT_TYPE
    ",\"error\":{\"$ref\":\"#/components/schemas/Error/properties/error\"}}}";

const char documents_schema[] =
    "{\"type\":\"object\",\"description\":\"a document, a List of them, "
    "or several one after the other\"}";
