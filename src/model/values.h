/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - the small types that typed documents are made of.
 *
 * Everything here is a plain value. Text points into the document it was read from or into the
 * arena the object lives in. A zeroed value of each type means "not given". */
#ifndef DROVER_MODEL_VALUES_H
#define DROVER_MODEL_VALUES_H

#include <yyjson.h>

#include "base/duration.h"
#include "base/moment.h"
#include "select/labels.h"

/* Values whose absence means something. */
typedef struct opt_bool {
    bool set;
    bool value;
} opt_bool;

typedef struct opt_int {
    bool set;
    int64_t value;
} opt_int;

typedef struct opt_duration {
    bool set;
    int64_t ns;
} opt_duration;

typedef struct opt_moment {
    bool set;
    moment at;
} opt_moment;

/* Part of a document that Drover carries but does not look into. NULL: not given. */
typedef const yyjson_val *raw_json;

/* Arrays of a document. at is NULL when the document has none; an empty array has a pointer. */
#define LIST(type)                                                                                 \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t len;                                                                                \
    }

typedef struct str_list {
    str *at;
    size_t len;
} str_list;

/* Fields of somebody else's kind that Drover does not know: kept as they are. */
typedef struct kept_field {
    str name;
    raw_json value;
} kept_field;

typedef struct kept_fields {
    kept_field *at;
    size_t len;
} kept_fields;

/* A label selector as the document states it, and compiled. Not given: compiled is NULL, which
 * selector_match takes as "matches nothing". An empty one has a compiled form and no terms. */
typedef struct label_query {
    const selector *compiled;
    const label_term *terms;
    size_t len;
} label_query;

/* A Kubernetes quantity ("500m", "1Gi"): units + nanos / 10^9. text.ptr is NULL when not given. */
typedef struct quantity {
    str text;
    int64_t units;
    int32_t nanos;
} quantity;

/* False with an error for text that is no quantity, for more than nine decimals and for values
 * beyond 2^63. Text is not copied. */
bool quantity_parse(str text, quantity *ret, err *error);
int quantity_cmp(quantity a, quantity b);

/* Fleet's int-or-string limits. */
#define AMOUNT_KINDS(X)                                                                            \
    X(NONE, "not given")                                                                           \
    X(COUNT, "a JSON number")                                                                      \
    X(TEXT_COUNT, "a number in quotes: never clamped to the group")                                \
    X(PERCENT, "a percentage in quotes")

typedef enum amount_kind {
#define X(kind, text) AMOUNT_##kind,
    AMOUNT_KINDS(X)
#undef X
} amount_kind;

/* value is the count, or the percentage times AMOUNT_PERCENT_SCALE: exact, never a float. */
#define AMOUNT_PERCENT_SCALE INT64_C(1000000000)
typedef struct int_or_percent {
    amount_kind kind;
    int64_t value;
    str text; /* as the document writes it, for TEXT_COUNT and PERCENT */
} int_or_percent;

/* Reads the text form: "7", "+7", "25%", "33.3%", "-10%". "0", "-4", "25 %" and anything else is an
 * error, as it is in Fleet; so are more than nine decimals. */
bool int_or_percent_parse(str text, int_or_percent *ret, err *error);
/* Fleet's limit(): what v allows in a group of count. A count <= 0 gives 1; not given is 100%. */
int64_t int_or_percent_limit(int_or_percent v, int64_t count);

/* metadata, as far as rollouts need it. */
typedef struct owner_reference {
    str api_version;
    str kind;
    str name;
    str uid;
    bool controller;
} owner_reference;

typedef struct metadata {
    str name;
    str namespace_; /* empty for kinds without one */
    str uid;
    label_set labels;
    label_set annotations; /* sorted like labels */
    opt_moment creation_timestamp;
    opt_moment deletion_timestamp;
    int64_t generation;
    str resource_version;
    str_list finalizers;
    LIST(owner_reference) owner_references;
} metadata;

/* A number with decimals, in thousandths. */
typedef int64_t thousandths;
#define THOUSANDTHS_BYTES 32
/* "99.5": without decimals that are zero. */
void thousandths_print(thousandths value, char out[THOUSANDTHS_BYTES]);

/* A condition as Kubernetes (lastTransitionTime) and Fleet (lastUpdateTime) write it. */
#define CONDITION_STATES(X) X(NONE, "") X(TRUE, "True") X(FALSE, "False") X(UNKNOWN, "Unknown")

typedef enum condition_state {
#define X(state, text) CONDITION_##state,
    CONDITION_STATES(X)
#undef X
} condition_state;

typedef struct condition {
    str type;
    condition_state status;
    str reason;
    str message;
    opt_moment last_transition_time;
    opt_moment last_update_time;
    opt_moment last_heartbeat_time; /* nodes only */
    int64_t observed_generation;
} condition;

typedef struct condition_list {
    condition *at;
    size_t len;
} condition_list;

/* The condition of that type, or NULL. */
const condition *condition_find(condition_list list, str type);

#endif
