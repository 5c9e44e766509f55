/* SPDX-License-Identifier: Apache-2.0 */
/* api_shapes.h - what goes in and comes out of operations, as structs and their shapes.
 *
 * Bodies are read and written by these, and the OpenAPI document describes them. Documents have the
 * shapes of src/model. */
#ifndef DROVER_SERVER_API_SHAPES_H
#define DROVER_SERVER_API_SHAPES_H

#include "model/shape.h"

typedef struct act_input {
    str deployment;
    str environment;
    str resource;
    str version;
    str rule;
    str partition;
    str name;
    str selector;
    str reason;
    opt_moment until;
} act_input;

typedef struct act_output {
    str act;
    int64_t sequence;
} act_output;

typedef struct publish_wish {
    str deployment;
    str tag;
} publish_wish;

typedef struct plan_input {
    str documents;
    str duration;
    label_set durations;
    str until;
    str_list fail;
    str_list fail_once;
    LIST(publish_wish) publish;
} plan_input;

typedef struct publish_input {
    str tag;
    str name;
    str status;
    raw_json config;
    raw_json depends_on;
    label_set labels;
} publish_input;

typedef struct problem_output {
    str severity;
    str document;
    str path;
    str message;
    int64_t line;
} problem_output;

typedef struct result_output {
    str kind;
    str name;
    str action;
    str resource_version;
} result_output;

typedef struct apply_output {
    LIST(result_output) results;
    LIST(problem_output) problems;
} apply_output;

typedef struct freeze_output {
    str name;
    str selector;
    str reason;
    str who;
    opt_moment created_at;
    opt_moment until;
} freeze_output;

typedef struct group_output {
    str kind;
    str change;
    str name;
    int64_t matched;
    int64_t limit;
    int64_t holders;
    int64_t peak;
} group_output;

typedef struct rollout_output {
    str deployment;
    str version;
    str state;
    int64_t targets;
    int64_t done;
    int64_t in_flight;
    int64_t waiting;
    int64_t failed;
    int64_t rolled_back;
    int64_t excluded;
    int64_t missed;
    int64_t groups;
    opt_moment ended_at;
    str summary;
} rollout_output;

typedef struct job_output {
    int64_t number;
    str deployment;
    str environment;
    str resource;
    str version;
    str group;
    str role;
    str state;
    str reason;
    int64_t attempt;
    opt_moment started_at;
    opt_moment ended_at;
    opt_moment lease_until;
} job_output;

typedef struct claim_input {
    str resource;
    int64_t lease_seconds;
} claim_input;

typedef struct claim_output {
    bool found;
    job_output *job;
    int64_t fencing;
    int64_t timeout_seconds;
    raw_json version_config;
    raw_json resource_config;
} claim_output;

typedef struct beat_input {
    int64_t fencing;
    int64_t lease_seconds;
} beat_input;

typedef struct beat_output {
    bool held;
    bool cancel;
    opt_moment lease_until;
} beat_output;

#define COMPLETION_OUTCOMES(X) X(SUCCEEDED, "succeeded") X(FAILED, "failed")
typedef enum completion_outcome {
#define X(name, text) COMPLETION_##name,
    COMPLETION_OUTCOMES(X)
#undef X
} completion_outcome;

typedef struct complete_input {
    opt_int fencing;
    completion_outcome outcome;
    str reason;
} complete_input;

typedef struct complete_output {
    bool ignored;
} complete_output;

typedef struct log_output {
    int64_t bytes;
} log_output;

#define TOKEN_ROLES(X)                                                                             \
    X(VIEWER, "viewer") X(OPERATOR, "operator") X(ADMIN, "admin") X(WORKER, "worker")
typedef enum token_role {
#define X(name, text) TOKEN_##name,
    TOKEN_ROLES(X)
#undef X
} token_role;

typedef struct token_input {
    str name;
    token_role role;
    str selector;
} token_input;

typedef struct token_output {
    str name;
    str role;
    str selector;
    opt_moment created_at;
    opt_moment revoked_at;
    str token; /* only once, when it is made */
} token_output;

typedef struct link_output {
    str path;
    opt_moment valid_until;
} link_output;

typedef struct login_input {
    str code;
} login_input;

typedef struct login_output {
    str token;
    opt_moment valid_until;
} login_output;

typedef struct info_output {
    str version;
    opt_moment started_at;
    str caller;
    str role;
    str mode;         /* "serve", or "operator" */
    str_list acts_on; /* of an operator */
    int64_t sequence;
} info_output;

typedef struct status_output {
    str status;
} status_output;

#define API_SHAPES(X)                                                                              \
    X(act_input)                                                                                   \
    X(act_output)                                                                                  \
    X(publish_input)                                                                               \
    X(problem_output)                                                                              \
    X(result_output)                                                                               \
    X(apply_output)                                                                                \
    X(freeze_output)                                                                               \
    X(rollout_output)                                                                              \
    X(group_output)                                                                                \
    X(job_output)                                                                                  \
    X(plan_input)                                                                                  \
    X(claim_input)                                                                                 \
    X(claim_output)                                                                                \
    X(beat_input)                                                                                  \
    X(beat_output)                                                                                 \
    X(complete_input)                                                                              \
    X(complete_output)                                                                             \
    X(log_output)                                                                                  \
    X(token_input)                                                                                 \
    X(token_output)                                                                                \
    X(link_output)                                                                                 \
    X(login_input)                                                                                 \
    X(login_output)                                                                                \
    X(info_output)                                                                                 \
    X(status_output)
#define X(name) extern const shape name##_shape;
API_SHAPES(X)
#undef X

/* What shapes cannot say: null, and any object. */
extern const char error_schema[];
extern const char target_schema[];
extern const char fleet_schema[];
extern const char plan_schema[];
extern const char window_schema[];
extern const char journal_schema[];
extern const char openapi_schema[];
extern const char fleet_input_schema[];
extern const char fleet_output_schema[];
extern const char fleet_error_schema[];
extern const char documents_schema[];

#endif
