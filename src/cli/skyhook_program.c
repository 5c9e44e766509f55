/* SPDX-License-Identifier: Apache-2.0 */
/* The program under the name kubectl-skyhook: its commands, help and version. */
#include "base/limits.h"
#include "base/mem.h"
#include "cli/help.h"
#include "cli/scenario.h"
#include "cli/skyhook.h"

static const verb *const skyhook_verbs[] = {
#define X(name) &skyhook_##name,
    SKYHOOK_VERBS(X)
#undef X
        NULL,
};

const program program_skyhook = {
    .file = "kubectl-skyhook",
    .name = "kubectl skyhook",
    .about = "What a user of a rollout needs: see it, hold it, begin it anew, and ask why it does "
             "not move.",
    .verbs = skyhook_verbs,
    .last_counts = true, /* as with kubectl */
};

/* ---- version ---- */

static str tag_of(str image)
{
    for (size_t i = image.len; i > 0 && image.ptr[i - 1] != '/'; i--)
        if (image.ptr[i - 1] == ':')
            return str_part(image, i, SIZE_MAX);
    return STR_EMPTY;
}

typedef struct found_operator {
    bool there;
    char version[LIMIT_NAME_BYTES]; /* empty: it does not say */
} found_operator;

static bool take_deployment(void *context, yyjson_val *json, err *error)
{
    (void)error;
    found_operator *found = context;
    yyjson_val *head = yyjson_obj_get(json, "metadata");
    yyjson_val *inside =
        yyjson_obj_get(yyjson_obj_get(yyjson_obj_get(json, "spec"), "template"), "spec");
    yyjson_val *container = yyjson_arr_get_first(yyjson_obj_get(inside, "containers"));
    str image = json_text_of(container, "image");
    bool ours = str_find(image, STR("drover")) != SIZE_MAX ||
                str_find(image, STR("skyhook")) != SIZE_MAX ||
                str_find(json_text_of(head, "name"), STR("drover")) != SIZE_MAX;
    str found_version = json_text_of(yyjson_obj_get(head, "labels"), "app.kubernetes.io/version");
    if (found_version.len == 0 && !str_eq(tag_of(image), STR("latest")))
        found_version = tag_of(image);
    if (ours && found->version[0] == '\0')
        snprintf(found->version, sizeof found->version, "%.*s", STR_ARG(found_version));
    found->there |= ours;
    return true;
}

static exit_status work_version(sk *s)
{
    found_operator found = {0};
    err error = {0};
    if (!options_given(s->given, "request-timeout") &&
        !kube_session_limit(s->session, "timeout", options_text(s->given, "timeout", "10s"),
                            &error))
        return fail("%s", error.text);
    str path = arena_printf(s->arena, "/apis/apps/v1/namespaces/%.*s/deployments",
                            STR_ARG(kube_session_namespace(s->session)));
    bool asked = path.ptr && kube_list(s->session, path, take_deployment, &found, &error);
    if (found.version[0])
        printf("Skyhook operator:\t%s\n", found.version);
    else
        printf("Skyhook operator:\tunknown (%s)\n", !asked        ? error.text
                                                    : found.there ? "its Deployment names none"
                                                                  : "not found");
    return STATUS_DONE;
}

static exit_status run_version(const options *given)
{
    puts("Skyhook plugin:\t" DROVER_VERSION);
    return options_given(given, "client-only") ? STATUS_DONE : sk_run(given, work_version);
}

static const option options_of_version[] = {
    {.name = "client-only", .help = "do not ask the cluster"},
    {.name = "timeout", .argument = "D", .help = "how long the cluster's answer may take (10s)"},
    OPTION_FORM_ANYHOW,
    OPTIONS_SKYHOOK,
    OPTIONS_END,
};

const verb skyhook_version = {
    .name = "version",
    .summary = "print the versions of this program and of the operator",
    .options = options_of_version,
    .run = run_version,
};

/* ---- help ---- */

static exit_status run_help(const options *given)
{
    char name[64];
    size_t count = given->operands.len;
    if (count == 0)
        return help_all(stdout);
    str first = given->operands.at[0];
    if (str_eq(first, STR("dp")))
        first = STR("deployment-policy");
    snprintf(name, sizeof name, "%.*s%s%.*s", STR_ARG(first), count > 1 ? " " : "",
             STR_ARG(count > 1 ? given->operands.at[1] : STR_EMPTY));
    const verb *c = verb_find(str_of(name));
    if (c)
        return help_verb(c);
    return count == 1 && help_group(first, stdout) ? STATUS_DONE : unknown_verb(str_of(name));
}

static const option options_of_help[] = {OPTION_FORM_ANYHOW, OPTIONS_SKYHOOK, OPTIONS_END};

const verb skyhook_help = {
    .name = "help",
    .summary = "print help, about one command or all",
    .operands = "[COMMAND]",
    .operands_max = 2,
    .options = options_of_help,
    .run = run_help,
};

/* ---- explain ---- */

static exit_status run_explain(const options *given)
{
    return explain_cluster(given);
}

static const option options_of_explain[] = {
    OPTION_OF_SKYHOOK,
    OPTION_OUTPUT("text|json"),
    OPTIONS_SKYHOOK,
    OPTIONS_END,
};

const verb skyhook_explain = {
    .name = "explain",
    .summary = "say why a node is not moving, and what would release it",
    .operands = "NODE",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Reads the cluster and asks the same engine as the operator. When several Skyhooks "
             "concern the node, the answer is about the first by name that is not done, or about "
             "the one --skyhook names.",
    .options = options_of_explain,
    .run = run_explain,
};
