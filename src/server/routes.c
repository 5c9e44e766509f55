/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes.h"

#include "server/api.h"
#include "server/api_shapes.h"

#define SCHEMA_OF(title, type) {.name = (title), .shape = &type##_shape}
#define LITERAL(title, text) {.name = (title), .literal = (text)}
#define NUMBER(n, low, high, text)                                                                 \
    {.name = (n), .type = PARAMETER_NUMBER, .min = (low), .max = (high), .about = (text)}
#define TEXT(n, text) {.name = (n), .type = PARAMETER_TEXT, .about = (text)}
#define FLAG(n, text) {.name = (n), .type = PARAMETER_FLAG, .about = (text)}
#define LIMIT NUMBER("limit", 1, PAGE_ITEMS_MAX, "items a page")
#define CONTINUE TEXT("continue", "what the page before said")
#define CONTINUE_AT NUMBER("continue", 0, INT64_MAX, "what the page before said")
#define SELECTOR(text)                                                                             \
    {.name = "selector", .type = PARAMETER_TEXT, .pattern = selector_pattern, .about = (text)}
#define END {.name = NULL}

/* k=v, k==v, k!=v, k in (a,b), k notin (a,b), k, !k, with commas between them. */
#define LABEL_NAME "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
#define LABEL_DOMAIN "[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?"
#define LABEL_KEY "(" LABEL_DOMAIN "(\\." LABEL_DOMAIN "){0,9}/)?" LABEL_NAME
#define LABEL_VALUE "(" LABEL_NAME ")?"
#define SPACE " *"
#define LABEL_TERM                                                                                 \
    SPACE "(!" SPACE LABEL_KEY "|" LABEL_KEY "(" SPACE "(=|==|!=)" SPACE LABEL_VALUE "| +"         \
          "(in|notin)" SPACE "\\(" SPACE LABEL_VALUE SPACE "(," SPACE LABEL_VALUE SPACE            \
          "){0,99}\\))?)" SPACE
static const char selector_pattern[] = "^(" LABEL_TERM "(," LABEL_TERM "){0,20})?$";

#define PART "[^/\\u0000-\\u001f\\u007f]+"

static const char *const target_states[] = {
#define X(state, text) text,
    PLACEMENT_STATES(X)
#undef X
        NULL,
};

static const parameter page_parameters[] = {LIMIT, CONTINUE_AT, END};
static const parameter document_parameters[] = {
    LIMIT, CONTINUE, SELECTOR("labels, such as env=prod,tier in (a,b)"), END};
static const parameter apply_parameters[] = {
    FLAG("partial", "each document by itself instead of all or none"), FLAG("dryRun", "check only"),
    END};
static const parameter target_parameters[] = {LIMIT,
                                              {.name = "continue",
                                               .type = PARAMETER_TEXT,
                                               .pattern = "^(" PART "/" PART "/" PART ")?$",
                                               .about = "what the page before said"},
                                              TEXT("deployment", "only of this one"),
                                              TEXT("environment", "only of this one"),
                                              TEXT("resource", "only of this one"),
                                              {.name = "state",
                                               .type = PARAMETER_TEXT,
                                               .words = target_states,
                                               .about = "only in this state"},
                                              SELECTOR("labels of the resource"),
                                              END};
static const parameter fleet_parameters[] = {
    TEXT("policy", "only what this RolloutPolicy's selector matches"), END};
static const parameter rollout_parameters[] = {LIMIT, CONTINUE,
                                               TEXT("deployment", "only of this one"),
                                               TEXT("version", "only what this tag concerns"), END};
static const parameter journal_parameters[] = {
    LIMIT, CONTINUE_AT, NUMBER("after", 0, INT64_MAX, "entries behind this sequence number"), END};
static const parameter plan_parameters[] = {
    TEXT("duration", "how long a job takes, such as 5m; 60s unless told"),
    TEXT("until", "how far to look ahead, such as 2d; 90d unless told"), END};
static const parameter window_parameters[] = {
    LIMIT, TEXT("deployment", "of whose targets"),
    NUMBER("from", 0, INT64_C(253402300799), "seconds since 1970; now unless told"),
    NUMBER("to", 0, INT64_C(253402300799), "seconds since 1970; a day later unless told"), END};
static const parameter event_parameters[] = {
    NUMBER("after", 0, INT64_MAX, "as Last-Event-ID; none: from now on"), END};
static const parameter job_parameters[] = {LIMIT,
                                           CONTINUE_AT,
                                           FLAG("open", "only what has not ended"),
                                           TEXT("deployment", "only of this one"),
                                           TEXT("resource", "only of this one"),
                                           END};
static const parameter log_parameters[] = {FLAG("follow", "until the job has ended"), END};
static const parameter log_add_parameters[] = {NUMBER("fencing", 0, INT64_MAX, "of the claim"),
                                               END};

#define IF_MATCH                                                                                   \
    {.name = "If-Match",                                                                           \
     .pattern = "^([1-9][0-9]{0,17}|\"[1-9][0-9]{0,17}\"|\\*)$",                                   \
     .about = "the resourceVersion it must have"}
static const header_rule delete_headers[] = {IF_MATCH, END};
static const header_rule put_headers[] = {
    IF_MATCH, {.name = "If-None-Match", .word = "*", .about = "it must be new"}, END};
static const header_rule log_headers[] = {
    {.name = "Range", .about = "a part of it, such as bytes=0-99"}, END};
static const header_rule event_headers[] = {
    {.name = "Last-Event-ID", .pattern = "^[0-9]{1,18}$", .about = "goes on behind it"}, END};
static const header_rule fleet_headers[] = {
    {.name = "fleet-lock-protocol", .word = "true", .required = true, .about = "of the protocol"},
    END};

/* The four operations that every kind has. */
#define DOCUMENTS(K, plural, title)                                                                \
    {.id = "list" title,                                                                           \
     .method = "GET",                                                                              \
     .path = API_PREFIX "/" plural,                                                                \
     .summary = "A page of " plural,                                                               \
     .level = ACCESS_VIEWER,                                                                       \
     .kind = KIND_##K,                                                                             \
     .answer = {.name = title},                                                                    \
     .form = ANSWER_LIST,                                                                          \
     .parameters = document_parameters,                                                            \
     .run = run_document_list},                                                                    \
        {.id = "get" title,                                                                        \
         .method = "GET",                                                                          \
         .path = API_PREFIX "/" plural "/{name}",                                                  \
         .summary = "One of the " plural,                                                          \
         .level = ACCESS_VIEWER,                                                                   \
         .kind = KIND_##K,                                                                         \
         .answer = {.name = title},                                                                \
         .run = run_document_get},                                                                 \
        {.id = "put" title,                                                                        \
         .method = "PUT",                                                                          \
         .path = API_PREFIX "/" plural "/{name}",                                                  \
         .summary = "Writes one of the " plural,                                                   \
         .level = ACCESS_OPERATOR,                                                                 \
         .documents = true,                                                                        \
         .headers = put_headers,                                                                   \
         .kind = KIND_##K,                                                                         \
         .input = {.name = title},                                                                 \
         .answer = {.name = title},                                                                \
         .run = run_document_put},                                                                 \
    {                                                                                              \
        .id = "delete" title, .method = "DELETE", .path = API_PREFIX "/" plural "/{name}",         \
        .summary = "Deletes one of the " plural, .level = ACCESS_OPERATOR,                         \
        .headers = delete_headers, .kind = KIND_##K, .answer = SCHEMA_OF("Result", result_output), \
        .run = run_document_delete                                                                 \
    }

#define ACTION(A, word, text)                                                                      \
    {.id = word,                                                                                   \
     .method = "POST",                                                                             \
     .path = API_PREFIX "/actions/" word,                                                          \
     .summary = (text),                                                                            \
     .level = ACCESS_OPERATOR,                                                                     \
     .act = ACT_##A,                                                                               \
     .input = SCHEMA_OF("Act", act_input),                                                         \
     .answer = SCHEMA_OF("ActDone", act_output),                                                   \
     .run = run_act}

const operation operations[] = {
    {.id = "health",
     .method = "GET",
     .path = "/healthz",
     .summary = "Whether the process answers",
     .answer = SCHEMA_OF("Status", status_output),
     .run = run_health},
    {.id = "ready",
     .method = "GET",
     .path = "/readyz",
     .summary = "Whether it can do its work",
     .answer = SCHEMA_OF("Status", status_output),
     .run = run_ready},
    {.id = "metrics",
     .method = "GET",
     .path = "/metrics",
     .summary = "Numbers for Prometheus",
     .level = ACCESS_VIEWER,
     .form = ANSWER_TEXT,
     .run = run_metrics},
    {.id = "openapi",
     .method = "GET",
     .path = API_PREFIX "/openapi.json",
     .summary = "This document",
     .level = ACCESS_VIEWER,
     .answer = LITERAL("OpenApi", openapi_schema),
     .run = run_openapi},
    {.id = "info",
     .method = "GET",
     .path = API_PREFIX "/info",
     .summary = "What runs here, and who asks",
     .level = ACCESS_VIEWER,
     .worker = true,
     .answer = SCHEMA_OF("Info", info_output),
     .run = run_info},
    DOCUMENTS(RESOURCE, "resources", "Resource"),
    DOCUMENTS(ENVIRONMENT, "environments", "Environment"),
    DOCUMENTS(DEPLOYMENT, "deployments", "Deployment"),
    DOCUMENTS(VERSION, "versions", "Version"),
    DOCUMENTS(ROLLOUT_POLICY, "rolloutpolicies", "RolloutPolicy"),
    {.id = "apply",
     .method = "POST",
     .path = API_PREFIX "/apply",
     .summary = "Writes many documents",
     .level = ACCESS_OPERATOR,
     .documents = true,
     .input = LITERAL("Documents", documents_schema),
     .answer = SCHEMA_OF("Applied", apply_output),
     .parameters = apply_parameters,
     .run = run_apply},
    {.id = "publish",
     .method = "POST",
     .path = API_PREFIX "/deployments/{name}/versions",
     .summary = "Publishes a version of a deployment",
     .level = ACCESS_OPERATOR,
     .input = SCHEMA_OF("Publication", publish_input),
     .answer = SCHEMA_OF("Result", result_output),
     .status = 201,
     .run = run_publish},
    ACTION(PAUSE, "pause", "Starts nothing more of a deployment"),
    ACTION(RESUME, "resume", "Ends a pause or a halt"),
    ACTION(HALT, "halt", "Starts nothing more at all, of a deployment or on a resource"),
    ACTION(APPROVE, "approve", "Approves a version"),
    ACTION(REJECT, "reject", "Takes an approval back"),
    ACTION(RETRY, "retry", "Tries what failed again"),
    ACTION(SKIP, "skip", "Leaves a version out"),
    ACTION(ROLLBACK, "rollback", "Goes back to the version before"),
    ACTION(BYPASS, "bypass", "Lets a version pass a rule"),
    ACTION(FREEZE, "freeze", "Starts nothing that the selector matches"),
    ACTION(THAW, "thaw", "Ends a freeze"),
    {.id = "listTargets",
     .method = "GET",
     .path = API_PREFIX "/targets",
     .summary = "Release targets, with what they wait for",
     .level = ACCESS_VIEWER,
     .answer = LITERAL("Target", target_schema),
     .form = ANSWER_LIST,
     .parameters = target_parameters,
     .run = run_target_list},
    {.id = "getTarget",
     .method = "GET",
     .path = API_PREFIX "/targets/{deployment}/{environment}/{resource}",
     .summary = "One release target: why it is not moving",
     .level = ACCESS_VIEWER,
     .answer = LITERAL("Target", target_schema),
     .run = run_target_get},
    {.id = "getFleet",
     .method = "GET",
     .path = API_PREFIX "/fleet",
     .summary = "The state of every release target, in few bytes",
     .level = ACCESS_VIEWER,
     .answer = LITERAL("Fleet", fleet_schema),
     .parameters = fleet_parameters,
     .run = run_fleet},
    {.id = "listGroups",
     .method = "GET",
     .path = API_PREFIX "/groups",
     .summary = "Groups that share a limit",
     .level = ACCESS_VIEWER,
     .answer = SCHEMA_OF("Group", group_output),
     .form = ANSWER_LIST,
     .parameters = page_parameters,
     .run = run_group_list},
    {.id = "listRollouts",
     .method = "GET",
     .path = API_PREFIX "/rollouts",
     .summary = "How far the rollout of each deployment is, and whether it is over",
     .level = ACCESS_VIEWER,
     .answer = SCHEMA_OF("Rollout", rollout_output),
     .form = ANSWER_LIST,
     .parameters = rollout_parameters,
     .run = run_rollout_list},
    {.id = "listWindows",
     .method = "GET",
     .path = API_PREFIX "/windows",
     .summary = "When the deployment windows of a deployment's policies let things start",
     .level = ACCESS_VIEWER,
     .answer = LITERAL("Window", window_schema),
     .form = ANSWER_LIST,
     .parameters = window_parameters,
     .run = run_window_list},
    {.id = "listFreezes",
     .method = "GET",
     .path = API_PREFIX "/freezes",
     .summary = "Freezes in force",
     .level = ACCESS_VIEWER,
     .answer = SCHEMA_OF("Freeze", freeze_output),
     .form = ANSWER_LIST,
     .parameters = page_parameters,
     .run = run_freeze_list},
    {.id = "planLive",
     .method = "GET",
     .path = API_PREFIX "/plan",
     .summary = "What the live fleet will do; assumes that what runs now succeeds",
     .level = ACCESS_VIEWER,
     .answer = LITERAL("Plan", plan_schema),
     .parameters = plan_parameters,
     .run = run_plan},
    {.id = "planWhatIf",
     .method = "POST",
     .path = API_PREFIX "/plan",
     .summary = "What the live fleet would do; nothing is changed",
     .level = ACCESS_VIEWER,
     .input = SCHEMA_OF("PlanWish", plan_input),
     .answer = LITERAL("Plan", plan_schema),
     .run = run_plan},
    {.id = "getState",
     .method = "GET",
     .path = API_PREFIX "/state",
     .summary = "Everything a plan of the live fleet needs, for drover plan",
     .level = ACCESS_VIEWER,
     .form = ANSWER_LOG,
     .run = run_state},
    {.id = "listJournal",
     .method = "GET",
     .path = API_PREFIX "/journal",
     .summary = "Every fact, decision and act",
     .level = ACCESS_VIEWER,
     .answer = LITERAL("JournalEntry", journal_schema),
     .form = ANSWER_LIST,
     .parameters = journal_parameters,
     .run = run_journal_list},
    {.id = "events",
     .method = "GET",
     .path = API_PREFIX "/events",
     .summary = "The journal as it grows",
     .level = ACCESS_VIEWER,
     .form = ANSWER_EVENTS,
     .parameters = event_parameters,
     .headers = event_headers,
     .run = run_events},
    {.id = "listJobs",
     .method = "GET",
     .path = API_PREFIX "/jobs",
     .summary = "Jobs, newest first",
     .level = ACCESS_VIEWER,
     .answer = SCHEMA_OF("Job", job_output),
     .form = ANSWER_LIST,
     .parameters = job_parameters,
     .run = run_job_list},
    {.id = "claimJob",
     .method = "POST",
     .path = API_PREFIX "/jobs/claim",
     .summary = "A worker takes the oldest open job of a resource",
     .level = ACCESS_OPERATOR,
     .worker = true,
     .input = SCHEMA_OF("Claim", claim_input),
     .answer = SCHEMA_OF("Claimed", claim_output),
     .run = run_job_claim},
    {.id = "getJob",
     .method = "GET",
     .path = API_PREFIX "/jobs/{number}",
     .summary = "One job",
     .level = ACCESS_VIEWER,
     .worker = true,
     .answer = SCHEMA_OF("Job", job_output),
     .run = run_job_get},
    {.id = "getJobLog",
     .method = "GET",
     .path = API_PREFIX "/jobs/{number}/log",
     .summary = "What a job wrote; takes Range",
     .level = ACCESS_VIEWER,
     .form = ANSWER_LOG,
     .parameters = log_parameters,
     .headers = log_headers,
     .run = run_job_log},
    {.id = "addJobLog",
     .method = "POST",
     .path = API_PREFIX "/jobs/{number}/log",
     .summary = "A worker sends more of its log",
     .level = ACCESS_OPERATOR,
     .worker = true,
     .raw = true,
     .answer = SCHEMA_OF("LogAdded", log_output),
     .parameters = log_add_parameters,
     .run = run_job_log_add},
    {.id = "heartbeatJob",
     .method = "POST",
     .path = API_PREFIX "/jobs/{number}/heartbeat",
     .summary = "A worker prolongs its claim",
     .level = ACCESS_OPERATOR,
     .worker = true,
     .input = SCHEMA_OF("Heartbeat", beat_input),
     .answer = SCHEMA_OF("HeartbeatDone", beat_output),
     .run = run_job_heartbeat},
    {.id = "completeJob",
     .method = "POST",
     .path = API_PREFIX "/jobs/{number}/complete",
     .summary = "A worker, or a person for a manual job, says how it ended",
     .level = ACCESS_OPERATOR,
     .worker = true,
     .input = SCHEMA_OF("Completion", complete_input),
     .answer = SCHEMA_OF("CompletionDone", complete_output),
     .run = run_job_complete},
    {.id = "cancelJob",
     .method = "POST",
     .path = API_PREFIX "/jobs/{number}/cancel",
     .summary = "Asks for the end of a job",
     .level = ACCESS_OPERATOR,
     .answer = SCHEMA_OF("Job", job_output),
     .run = run_job_cancel},
    {.id = "listTokens",
     .method = "GET",
     .path = API_PREFIX "/tokens",
     .summary = "Tokens, without their secrets",
     .level = ACCESS_ADMIN,
     .answer = SCHEMA_OF("Token", token_output),
     .form = ANSWER_LIST,
     .parameters = page_parameters,
     .run = run_token_list},
    {.id = "createToken",
     .method = "POST",
     .path = API_PREFIX "/tokens",
     .summary = "Makes a token",
     .level = ACCESS_ADMIN,
     .input = SCHEMA_OF("TokenWish", token_input),
     .answer = SCHEMA_OF("Token", token_output),
     .status = 201,
     .run = run_token_create},
    {.id = "revokeToken",
     .method = "DELETE",
     .path = API_PREFIX "/tokens/{name}",
     .summary = "Puts a token out of force",
     .level = ACCESS_ADMIN,
     .answer = SCHEMA_OF("Result", result_output),
     .run = run_token_revoke},
    {.id = "createLink",
     .method = "POST",
     .path = API_PREFIX "/links",
     .summary = "A link that opens the dashboard once",
     .level = ACCESS_VIEWER,
     .answer = SCHEMA_OF("Link", link_output),
     .status = 201,
     .run = run_link_create},
    {.id = "login",
     .method = "POST",
     .path = API_PREFIX "/login",
     .summary = "Exchanges the code of a link for a token",
     .input = SCHEMA_OF("Login", login_input),
     .answer = SCHEMA_OF("LoggedIn", login_output),
     .run = run_login},
    {.id = "backup",
     .method = "GET",
     .path = API_PREFIX "/backup",
     .summary = "A consistent copy of everything",
     .level = ACCESS_ADMIN,
     .form = ANSWER_BYTES,
     .run = run_backup},
    {.id = "fleetLockPreReboot",
     .method = "POST",
     .path = "/v1/pre-reboot",
     .summary = "FleetLock: a host asks for a slot",
     .level = ACCESS_OPERATOR,
     .worker = true,
     .raw = true,
     .fleet_lock = true,
     .headers = fleet_headers,
     .input = LITERAL("FleetLock", fleet_input_schema),
     .answer = LITERAL("FleetLockDone", fleet_output_schema),
     .run = run_fleet_claim},
    {.id = "fleetLockSteadyState",
     .method = "POST",
     .path = "/v1/steady-state",
     .summary = "FleetLock: a host gives its slot back",
     .level = ACCESS_OPERATOR,
     .worker = true,
     .raw = true,
     .fleet_lock = true,
     .headers = fleet_headers,
     .input = LITERAL("FleetLock", fleet_input_schema),
     .answer = LITERAL("FleetLockDone", fleet_output_schema),
     .run = run_fleet_free},
};
const size_t operation_count = sizeof operations / sizeof operations[0];

/* ---- matching ---- */

/* How many words of the path stand in the pattern; -1: it does not match. Every request is held
 * against every row, twice, so it looks at each letter once. */
static int path_matches(const char *pattern, const uri *u, str arguments[ROUTE_ARGUMENTS_MAX])
{
    size_t count = 0;
    int words = 0;
    for (size_t i = 0; i < u->segment_count; i++) {
        if (*pattern != '/')
            return -1;
        str part = {++pattern, 0};
        while (pattern[part.len] != 0 && pattern[part.len] != '/')
            part.len++;
        pattern += part.len;
        if (part.ptr[0] == '{')
            arguments[count++] = u->segments[i];
        else if (str_eq(part, u->segments[i]))
            words++;
        else
            return -1;
    }
    return *pattern ? -1 : words;
}

static int most_words(const uri *u)
{
    str unused[ROUTE_ARGUMENTS_MAX];
    int most = 0;
    for (size_t i = 0; i < operation_count; i++) {
        int words = path_matches(operations[i].path, u, unused);
        most = words > most ? words : most;
    }
    return most;
}

const operation *route_find(const uri *u, str method, str arguments[ROUTE_ARGUMENTS_MAX],
                            char allow[64])
{
    size_t used = 0;
    int most = most_words(u);
    allow[0] = 0;
    for (size_t i = 0; i < operation_count; i++) {
        const operation *o = &operations[i];
        if (path_matches(o->path, u, arguments) != most)
            continue;
        bool get = strcmp(o->method, "GET") == 0;
        if (str_eq(str_of(o->method), method) || (get && str_eq(method, STR("HEAD"))))
            return o;
        if (!strstr(allow, o->method))
            used += (size_t)snprintf(allow + used, 64 - used, "%s%s%s", used > 0 ? ", " : "",
                                     o->method, get ? ", HEAD" : "");
    }
    return NULL;
}
