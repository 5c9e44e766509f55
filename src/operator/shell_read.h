/* SPDX-License-Identifier: Apache-2.0 */
/* shell_read.h - what JSON of objects says; for the shells. Pure. */
#ifndef DROVER_OPERATOR_SHELL_READ_H
#define DROVER_OPERATOR_SHELL_READ_H

#include "engine/pod_rules.h"
#include "model/object.h"

#define SHELL_VERSION_BYTES 24

/* A document in memory of its own. */
typedef struct shell_document {
    buf text;
    document_set *set;
    object_list *objects;
    object object;
} shell_document;

str read_text(yyjson_val *object, const char *key);
yyjson_val *read_at(yyjson_val *object, const char *key, const char *inner);
/* Sorted, in a; only keys with the prefix. */
label_set read_labels(arena *a, yyjson_val *map, str prefix);
bool read_metadata(arena *a, yyjson_val *object, metadata *ret);
uint64_t read_revision(yyjson_val *object, char ret[SHELL_VERSION_BYTES]);
int64_t read_time_ms(str text); /* 0: none */
/* A pod as drains look at it. */
drain_pod_view read_drain_pod(yyjson_val *pod);
/* Without the status. NULL with an error. */
shell_document *shell_document_new(yyjson_val *object, const char *api_version, const char *kind,
                                   err *error);
shell_document *shell_document_free(shell_document *d);

#endif
