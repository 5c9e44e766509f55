/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/object_names.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "engine/deployment_id.h"
#include "engine/package_stage.h"
#include "model/object.h"

#define HASH_DIGITS 8u
#define PARTS_BYTES (64u * 1024u)
#define ATTEMPT_DIGITS 24

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

void safe_name(buf *out, size_t most, name_parts parts)
{
    scoped(buf_done) buf whole = BUF(PARTS_BYTES);
    for (size_t i = 0; i < parts.len; i++) {
        if (i > 0)
            buf_addc(&whole, '-');
        buf_add(&whole, parts.at[i]);
    }
    for (size_t i = 0; i < whole.len; i++)
        if (whole.ptr[i] == '.')
            whole.ptr[i] = '-';
    char hash[SHA256_HEX_BYTES];
    if (whole.failed || !sha256_hex(buf_str(&whole), hash)) {
        out->failed = true;
        return;
    }
    str kept = str_part(buf_str(&whole), 0, most - HASH_DIGITS - 1);
    for (size_t i = 0; i < kept.len; i++)
        buf_addc(out, kept.ptr[i] == '+' ? '-' : lower(kept.ptr[i]));
    buf_addf(out, "-%.*s", (int)HASH_DIGITS, hash);
}

void job_name(buf *out, const job_key *key)
{
    char attempt[ATTEMPT_DIGITS];
    snprintf(attempt, sizeof attempt, "%" PRId64, key->attempt);
    str parts[] = {key->skyhook,           key->package, key->version,
                   stage_text(key->stage), key->node,    str_of(attempt)};
    safe_name(out, JOB_NAME_BYTES, (name_parts){parts, sizeof parts / sizeof parts[0]});
}

void package_config_map_name(buf *out, str of, const package *p)
{
    str parts[] = {of, p->name, p->version};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (i > 0)
            buf_addc(out, '-');
        for (size_t k = 0; k < parts[i].len; k++)
            buf_addc(out, parts[i].ptr[k] == '+' ? '-' : lower(parts[i].ptr[k]));
    }
}

void node_config_map_name(buf *out, str of, str on)
{
    str parts[] = {of, on, STR("metadata")};
    safe_name(out, CONFIG_MAP_NAME_BYTES, (name_parts){parts, 3});
}

void node_volume_name(buf *out, str on)
{
    str parts[] = {STR("metadata"), on};
    safe_name(out, JOB_NAME_BYTES, (name_parts){parts, 2});
}

void auto_taint_name(buf *out, str taint_key)
{
    static const str before = STR("autoTaint_");
    scoped(buf_done) buf plain = BUF(PARTS_BYTES);
    buf_add(&plain, before);
    buf_add(&plain, taint_key);
    bool good = !plain.failed && label_value_check(buf_str(&plain), NULL);
    buf_add(out, good ? buf_str(&plain) : before);
    str parts[2] = {STR_EMPTY, taint_key};
    parts[0] = str_cut(&parts[1], '/');
    if (!good)
        safe_name(out, LIMIT_LABEL_VALUE_BYTES - before.len,
                  (name_parts){parts, parts[1].ptr ? 2 : 1});
}

bool label_value_put(buf *out, str text)
{
    if (label_value_check(text, NULL)) {
        buf_add(out, text);
        return false;
    }
    safe_name(out, LIMIT_LABEL_VALUE_BYTES, (name_parts){&text, 1});
    return true;
}

void owner_references_put(buf *out, const skyhook *of)
{
    buf_addz(out, "\"ownerReferences\":[{\"apiVersion\":\"" API_SKYHOOK
                  "\",\"kind\":\"Skyhook\",\"name\":");
    buf_add_json(out, of->metadata.name);
    buf_addz(out, ",\"uid\":");
    buf_add_json(out, of->metadata.uid);
    buf_addz(out, ",\"controller\":true,\"blockOwnerDeletion\":true}]");
}
