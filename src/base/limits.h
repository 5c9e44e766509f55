/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - every limit on input and on growth, in one place.
 *
 * A limit is part of the product: hitting one is an error that names it, never a silent cut. */
#ifndef DROVER_BASE_LIMITS_H
#define DROVER_BASE_LIMITS_H

/* Documents. Kubernetes refuses objects over 1.5 MiB; a file may hold many of them. */
#define LIMIT_FILE_BYTES (1024u * 1024u * 1024u)
#define LIMIT_DOCUMENT_BYTES (3u * 1024u * 1024u / 2u)
#define LIMIT_DOCUMENT_DEPTH 64
#define LIMIT_DOCUMENTS 2000000u
#define LIMIT_FILES 100000u
/* What YAML aliases may expand to, per document. */
#define LIMIT_YAML_ALIAS_VALUES 100000u
#define LIMIT_YAML_ANCHORS 1000u
/* What stands in one document and is compared with each other. */
#define LIMIT_PACKAGES 1000u
#define LIMIT_COMPARTMENTS 1000u
#define LIMIT_DEPENDENCIES 100u      /* of one package */
#define LIMIT_CONFIG_INTERRUPTS 100u /* of one package */
#define LIMIT_IMAGE_BYTES 512u
#define LIMIT_VERSION_BYTES 128u /* it is an image's tag */
#define LIMIT_RULES 1000u
/* Problems shown for one run; the rest is counted. */
#define LIMIT_PROBLEMS 10000u

/* Kubernetes names and labels. */
#define LIMIT_NAME_BYTES 253
#define LIMIT_RELEASE_NAME_BYTES 53 /* of Helm */
#define LIMIT_LABEL_PREFIX_BYTES 253
#define LIMIT_LABEL_NAME_BYTES 63
#define LIMIT_LABEL_VALUE_BYTES 63
#define LIMIT_SELECTOR_BYTES (64u * 1024u)
#define LIMIT_SELECTOR_TERMS 1000u
#define LIMIT_SELECTOR_VALUES 10000u

/* CEL. Depth bounds the recursion of parser, checker and evaluator alike. */
#define LIMIT_CEL_SOURCE_BYTES (2u * 1024u * 1024u)
#define LIMIT_CEL_DEPTH 250
#define LIMIT_CEL_NODES 200000u
/* How deep lists in lists may be when they are compared or printed; documents are flatter. */
#define LIMIT_CEL_VALUE_DEPTH 1000u
/* Names bound by macros, and what may be spent on computing constants while compiling. */
#define LIMIT_CEL_LOCALS 1024u
#define LIMIT_CEL_FOLD_COST 100000u
/* Constant patterns of one expression. */
#define LIMIT_CEL_REGEXES 64u
#define LIMIT_CEL_COST 10000000u
#define LIMIT_CEL_EVAL_BYTES (64u * 1024u * 1024u)
#define LIMIT_REGEX_BYTES (64u * 1024u)
#define LIMIT_REGEX_MEMORY_BYTES (8u * 1024u * 1024u)

/* Growth inside the program. */
#define LIMIT_NAMES 16000000u
#define LIMIT_TEXT_BYTES (512u * 1024u * 1024u)
#define LIMIT_PATH_BYTES 4096
#define LIMIT_ERR_BYTES 1024
#define LIMIT_LOG_LINE_BYTES 4096

#endif
