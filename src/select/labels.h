/* SPDX-License-Identifier: Apache-2.0 */
/* labels.h - Kubernetes label selectors.
 *
 * A selector is compiled once, from its object form (matchLabels, matchExpressions) or from its
 * text form ("env=prod,tier in (a,b),!old"), and matched any number of times without allocation. */
#ifndef DROVER_SELECT_LABELS_H
#define DROVER_SELECT_LABELS_H

#include "base/arena.h"
#include "base/err.h"

typedef struct label {
    str key;
    str value;
} label;

/* Labels of one thing: sorted bytewise by key, no key twice. */
typedef struct label_set {
    const label *at;
    size_t len;
} label_set;

#define LABEL_OPERATORS(X)                                                                         \
    X(IN, "In") X(NOT_IN, "NotIn") X(EXISTS, "Exists") X(DOES_NOT_EXIST, "DoesNotExist")

typedef enum label_operator {
#define X(op, text) LABEL_##op,
    LABEL_OPERATORS(X)
#undef X
} label_operator;

/* One requirement as a document states it. matchLabels entries are IN with one value. */
typedef struct label_term {
    str key;
    label_operator op;
    const str *values;
    size_t value_count;
} label_term;

typedef struct selector selector;

/* Sorts in place and refuses a key that stands twice. */
bool label_set_sort(label *at, size_t len, label_set *ret, err *error);
/* The value of a key; its ptr is NULL if it is not there. */
str label_get(label_set labels, str key);

/* All terms must hold; no terms match everything. Everything is copied into a. NULL with an error
 * for an invalid key or value, In and NotIn without values, Exists and DoesNotExist with some. */
selector *selector_compile(arena *a, const label_term *terms, size_t count, err *error);
/* The same from text: k=v, k==v, k!=v, k in (a,b), k notin (a,b), k, !k; comma is "and". */
selector *selector_parse(arena *a, str text, err *error);
/* NULL matches nothing. */
bool selector_match(const selector *s, label_set labels);
/* Whether two selectors are the same set of requirements. */
bool selector_equal(const selector *a, const selector *b);

/* Kubernetes' rules for a label key ("prefix/name") and a label value. */
bool label_key_check(str key, err *error);
bool label_value_check(str value, err *error);

#endif
