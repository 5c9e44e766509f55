/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/show.h"
#include "model/crd.h"

/* Appends the text, which is JSON, in the form asked for. False without memory. */
static bool add_document(buf *out, const buf *text, bool json)
{
    scoped(arena_cleanup) arena *a = arena_new(0);
    yyjson_val *value = a && !text->failed ? json_parse(a, buf_str(text), NULL) : NULL;
    if (!value)
        return false;
    if (json) {
        json_pretty(out, value);
        buf_addc(out, '\n');
    } else {
        buf_addz(out, out->len > 0 ? "---\n" : "");
        yaml_write(out, value);
    }
    return !out->failed;
}

/* The definition with that number; false behind the last. Fleet's last is Content. */
static bool put_definition(buf *out, size_t number, bool fleet)
{
    if (number < (fleet ? crd_fleet_count : crd_count))
        crd_put(out, (fleet ? crd_fleet_kinds : crd_kinds)[number]);
    else if (fleet && number == crd_fleet_count)
        crd_content_put(out);
    else
        return false;
    return true;
}

static bool add_yaml(buf *out, bool fleet)
{
    for (size_t i = 0;; i++) {
        scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
        if (!put_definition(&text, i, fleet))
            return true;
        if (!add_document(out, &text, false))
            return false;
    }
}

static bool add_json(buf *out, bool fleet)
{
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    buf_addz(&text, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
    size_t i = 0;
    while (put_definition(&text, i++, fleet))
        buf_addc(&text, ',');
    text.len -= !text.failed; /* the last comma */
    buf_addz(&text, "]}");
    return add_document(out, &text, true);
}

static exit_status run(const options *given)
{
    scoped(buf_done) buf out = BUF(LIMIT_TEXT_BYTES);
    bool json = str_eq(options_text(given, "output", "yaml"), STR("json"));
    bool fleet = given->operands.len > 0 && str_eq(given->operands.at[0], STR("fleet"));
    if (given->operands.len > 0 && !fleet && !str_eq(given->operands.at[0], STR("skyhook")))
        return usage_error(&cmd_crds, "found \"%s\", allowed skyhook or fleet",
                           str_shown(given->operands.at[0]).text);
    if (!(json ? add_json(&out, fleet) : add_yaml(&out, fleet)))
        return fail("out of memory");
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}

static const option options_of_crds[] = {
    OPTION_OUTPUT("yaml|json"),
    OPTIONS_END,
};

const verb cmd_crds = {
    .name = "crds",
    .summary = "print the CustomResourceDefinitions of Skyhook and DeploymentPolicy, or of Fleet",
    .operands = "[skyhook|fleet]",
    .operands_max = 1,
    .about = "They are made from the tables by which documents are read, so that a cluster refuses "
             "what drover validate refuses, as far as a schema can say it. Apply them with kubectl "
             "apply --server-side -f -.\n"
             "\n"
             "Those of Fleet (Bundle, BundleDeployment, Cluster, ClusterGroup, "
             "BundleNamespaceMapping, Content) are for hubs that have none; where Fleet is "
             "installed, keep its own.",
    .options = options_of_crds,
    .run = run,
};
