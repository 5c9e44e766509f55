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

static bool add_yaml(buf *out)
{
    bool good = true;
    for (size_t i = 0; i < crd_count && good; i++) {
        scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
        crd_put(&text, crd_kinds[i]);
        good = add_document(out, &text, false);
    }
    return good;
}

static bool add_json(buf *out)
{
    scoped(buf_done) buf text = BUF(LIMIT_DOCUMENT_BYTES);
    buf_addz(&text, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
    for (size_t i = 0; i < crd_count; i++) {
        buf_addz(&text, i == 0 ? "" : ",");
        crd_put(&text, crd_kinds[i]);
    }
    buf_addz(&text, "]}");
    return add_document(out, &text, true);
}

static exit_status run(const options *given)
{
    scoped(buf_done) buf out = BUF(LIMIT_TEXT_BYTES);
    bool json = str_eq(options_text(given, "output", "yaml"), STR("json"));
    if (!(json ? add_json(&out) : add_yaml(&out)))
        return fail("out of memory");
    return output_buf(stdout, &out) ? STATUS_DONE : STATUS_NO;
}

static const option options_of_crds[] = {
    OPTION_OUTPUT("yaml|json"),
    OPTIONS_END,
};

const verb cmd_crds = {
    .name = "crds",
    .summary = "print the CustomResourceDefinitions of Skyhook and DeploymentPolicy",
    .about = "They are made from the tables by which documents are read, so that a cluster refuses "
             "what drover validate refuses, as far as a schema can say it. Apply them with kubectl "
             "apply --server-side -f -.",
    .options = options_of_crds,
    .run = run,
};
