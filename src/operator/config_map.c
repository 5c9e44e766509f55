/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/config_map.h"

#include "base/limits.h"
#include "base/mem.h"
#include "model/document.h"

/* ---- pieces ---- */

static void put_map(buf *out, label_set map, str left_out)
{
    bool first = true;
    buf_addc(out, '{');
    for (size_t i = 0; i < map.len; i++) {
        if (left_out.len > 0 && str_starts(map.at[i].key, left_out))
            continue;
        buf_addz(out, first ? "" : ",");
        first = false;
        json_write_go_text(out, map.at[i].key);
        buf_addc(out, ':');
        json_write_go_text(out, map.at[i].value);
    }
    buf_addc(out, '}');
}

static void put_pair(buf *out, const char *key, str value)
{
    buf_addf(out, "\"%s\":", key);
    buf_add_json(out, value);
}

static void put_head(buf *out, const job_settings *s, const buf *name)
{
    out->failed |= name->failed;
    buf_addz(out, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{");
    put_pair(out, "name", buf_str(name));
    buf_addc(out, ',');
    put_pair(out, "namespace", s->namespace_);
}

/* A label's value, with the Skyhook's whole name in an annotation beside it. */
static void put_label(buf *out, const char *key, str text)
{
    scoped(buf_done) buf value = BUF(LIMIT_DOCUMENT_BYTES);
    label_value_put(&value, text);
    out->failed |= value.failed;
    buf_addz(out, ",\"labels\":{");
    put_pair(out, key, buf_str(&value));
    buf_addc(out, '}');
}

/* ---- a package's files ---- */

void package_config_map_put(buf *out, const job_settings *s, const skyhook *of, const package *p)
{
    scoped(buf_done) buf name = BUF(LIMIT_DOCUMENT_BYTES);
    package_config_map_name(&name, of->metadata.name, p);
    put_head(out, s, &name);
    put_label(out, KEY_NAME, of->metadata.name);
    buf_addz(out, ",\"annotations\":{");
    put_pair(out, KEY_PACKAGE_NAME, p->name);
    buf_addc(out, ',');
    put_pair(out, KEY_PACKAGE_VERSION, p->version);
    buf_addc(out, ',');
    put_pair(out, KEY_NAME, of->metadata.name);
    buf_addz(out, "},");
    owner_references_put(out, of);
    buf_addz(out, "},\"data\":{");
    for (size_t i = 0; i < p->config_map.len; i++) {
        buf_addz(out, i == 0 ? "" : ",");
        buf_add_json(out, p->config_map.at[i].key);
        buf_addc(out, ':');
        buf_add_json(out, p->config_map.at[i].value);
    }
    buf_addz(out, "}}");
}

/* ---- what a package may know about its node ---- */

static const char *interrupt_word(interrupt_type type)
{
    static const char *const words[] = {
#define X(type, text) [INTERRUPT_##type] = text,
        INTERRUPT_TYPES(X)
#undef X
    };
    return words[type];
}

static void put_interrupt(buf *out, const interrupt *i)
{
    buf_addf(out, "{\"type\":\"%s\"", interrupt_word(i->type));
    for (size_t k = 0; k < i->services.len; k++) {
        buf_addz(out, k == 0 ? ",\"services\":[" : ",");
        json_write_go_text(out, i->services.at[k]);
    }
    buf_addz(out, i->services.len > 0 ? "]}" : "}");
}

static void put_package(buf *out, const package *p)
{
    json_write_go_text(out, p->name);
    buf_addz(out, ":{\"name\":");
    json_write_go_text(out, p->name);
    buf_addz(out, ",\"version\":");
    json_write_go_text(out, p->version);
    buf_addz(out, ",\"image\":");
    json_write_go_text(out, p->image);
    if (p->agent_image_override.len > 0) {
        buf_addz(out, ",\"agentImageOverride\":");
        json_write_go_text(out, p->agent_image_override);
    }
    if (p->interrupt) {
        buf_addz(out, ",\"interrupt\":");
        put_interrupt(out, p->interrupt);
    }
    for (size_t i = 0; i < p->config_interrupts.len; i++) {
        buf_addz(out, i == 0 ? ",\"configInterrupts\":{" : ",");
        json_write_go_text(out, p->config_interrupts.at[i].key);
        buf_addc(out, ':');
        put_interrupt(out, &p->config_interrupts.at[i]);
    }
    buf_addz(out, p->config_interrupts.len > 0 ? "}}" : "}");
}

/* What follows the last ":" of the agent's image. */
static str agent_version(str image)
{
    for (size_t i = image.len; i > 0; i--)
        if (image.ptr[i - 1] == ':')
            return str_part(image, i, SIZE_MAX);
    return image;
}

void node_annotations_put(buf *out, label_set annotations)
{
    put_map(out, annotations, STR(KEY_PREFIX));
}

void node_labels_put(buf *out, label_set labels)
{
    put_map(out, labels, STR_EMPTY);
}

void node_packages_put(buf *out, const job_settings *s, const skyhook *of)
{
    buf_addz(out, "{\"agentVersion\":");
    json_write_go_text(out, agent_version(s->agent_image));
    buf_addz(out, ",\"packages\":{");
    for (size_t i = 0; i < of->spec.packages.len; i++) {
        buf_addz(out, i == 0 ? "" : ",");
        put_package(out, &of->spec.packages.at[i]);
    }
    buf_addz(out, "}}");
}

void node_config_map_put(buf *out, const job_settings *s, const skyhook *of, str node_name,
                         const node_files *files)
{
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    const char *comma = "";
    node_config_map_name(&text, of->metadata.name, node_name);
    put_head(out, s, &text);
    put_label(out, KEY_NODE_META, of->metadata.name);
    buf_addz(out, ",\"annotations\":{");
    put_pair(out, KEY_NODE_NAME, node_name);
    buf_addc(out, ',');
    put_pair(out, KEY_NAME, of->metadata.name);
    buf_addz(out, "},");
    owner_references_put(out, of);
    buf_addz(out, "},\"data\":{");
#define X(name)                                                                                    \
    buf_addz(out, comma);                                                                          \
    comma = ",";                                                                                   \
    put_pair(out, #name ".json", files->name);
    NODE_FILES(X)
#undef X
    buf_addz(out, "}}");
}
