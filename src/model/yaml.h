/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - YAML rewritten as JSON text, every token on its line.
 *
 * YAML 1.1 syntax, with the types that Kubernetes gives to plain scalars (go-yaml v2 through JSON).
 * Aliases and merge keys are expanded where they stand, within LIMIT_YAML_*. Keys that stand twice are
 * not noticed here: whoever reads the JSON does that. */
#ifndef DROVER_MODEL_YAML_H
#define DROVER_MODEL_YAML_H

#include "base/err.h"
#include "base/str.h"

typedef struct yaml_error {
    uint32_t line; /* from 1, in the text given */
    bool no_memory;
    err what;
} yaml_error;

typedef struct yaml_stream yaml_stream;

/* Text is valid UTF-8 and must outlive the stream. NULL without memory. */
yaml_stream *yaml_open(str text);
yaml_stream *yaml_close(yaml_stream *s);
/* Writes the next document to out, which is empty and starts in line 1. *ret_found is false at the end.
 * After an error the stream can only be closed. */
bool yaml_next(yaml_stream *s, buf *out, bool *ret_found, yaml_error *error);

/* Writes one scalar as JSON by the rules for its style. tag may be NULL. */
bool yaml_scalar(buf *out, str text, bool plain, const char *tag, err *error);
/* The same for a key of a mapping: always text. */
bool yaml_key(buf *out, str text, bool plain, const char *tag, err *error);

#endif
