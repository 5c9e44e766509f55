/* SPDX-License-Identifier: Apache-2.0 */
#include "model/release_check.h"

#include <inttypes.h>

#include "model/recurrence.h"
#include "model/release.h"
#include "model/text_rules.h"

/* ---- texts ---- */

static bool rrule_valid(str text, err *error)
{
    recurrence ignored;
    return recurrence_parse(text, &ignored, error);
}

const text_rule rule_rrule = {
    .allowed = "a recurrence rule such as FREQ=WEEKLY;BYDAY=SA",
    .valid = rrule_valid,
};

static bool timezone_valid(str text, err *error)
{
    return timezone_known(text) || err_set(error, "this system does not know it");
}

const text_rule rule_timezone = {
    .allowed = "a time zone such as Europe/Berlin",
    .valid = timezone_valid,
};

/* What may stand between {{ and }}. A name that ends in "." takes a key. */
static const str template_names[] = {
#define NAME(text) {text, sizeof(text) - 1}
    NAME("resource.name"),    NAME("resource.config."), NAME("resource.metadata."),
    NAME("version.tag"),      NAME("version.config."),  NAME("environment.name"),
    NAME("deployment.name"),
#undef NAME
};

static bool template_name_known(str name)
{
    for (size_t i = 0; i < sizeof template_names / sizeof template_names[0]; i++) {
        str known = template_names[i];
        bool with_key = str_ends(known, STR("."));
        if (with_key ? str_starts(name, known) && name.len > known.len : str_eq(name, known))
            return true;
    }
    return false;
}

bool template_check(str text, err *error)
{
    for (;;) {
        size_t open = str_find(text, STR("{{"));
        if (open == SIZE_MAX)
            return true;
        text = str_part(text, open + 2, SIZE_MAX);
        size_t close = str_find(text, STR("}}"));
        if (close == SIZE_MAX)
            return err_set(error, "found {{ without }}");
        str name = str_trim(str_part(text, 0, close));
        if (!template_name_known(name))
            return err_set(error,
                           "found {{%s}}, allowed resource.name, resource.config.KEY, "
                           "resource.metadata.KEY, version.tag, version.config.KEY, "
                           "environment.name, deployment.name",
                           str_shown(name).text);
        text = str_part(text, close + 2, SIZE_MAX);
    }
}

/* ---- deployments and versions ---- */

void check_command(reader *r, const place *at, void *value)
{
    const command *c = value;
    err why;
    place run = place_key(at, STR("run"));
    for (size_t i = 0; i < c->run.len; i++) {
        place here = place_at(&run, i);
        if (!template_check(c->run.at[i], &why))
            reader_error(r, &here, "%s", why.text);
    }
    place program = place_at(&run, 0);
    if (c->run.at[0].len == 0)
        reader_error(r, &program, "found an empty text, allowed the program to run");
    place env = place_key(at, STR("env"));
    for (size_t i = 0; i < c->env.len; i++) {
        place here = place_key(&env, c->env.at[i].key);
        if (!template_check(c->env.at[i].value, &why))
            reader_error(r, &here, "%s", why.text);
        if (c->env.at[i].key.len == 0 || str_find(c->env.at[i].key, STR("=")) != SIZE_MAX)
            reader_error(r, &here, "found a name that is empty or holds \"=\", allowed any other");
    }
}

void check_job(reader *r, const place *at, void *value)
{
    job_template *j = value;
    int given = (j->command != NULL) + (j->pull != NULL) + (j->manual != NULL) +
                (j->simulated != NULL);
    if (given != 1) {
        reader_error(r, at, "found %d kinds, allowed exactly one of command, pull, manual, simulated",
                     given);
        return;
    }
    j->kind = j->command ? JOB_COMMAND : j->pull ? JOB_PULL : j->manual ? JOB_MANUAL : JOB_SIMULATED;
}

void check_version_spec(reader *r, const place *at, void *value)
{
    const struct version_spec *v = value;
    place list = place_key(at, STR("dependsOn"));
    for (size_t i = 0; i < v->depends_on.len; i++) {
        place own = place_at(&list, i);
        place here = place_key(&own, STR("deployment"));
        if (str_eq(v->depends_on.at[i].deployment, v->deployment))
            reader_error(r, &here, "found this version's own deployment, allowed any other");
    }
}

/* ---- rules ---- */

void check_bracket(reader *r, const place *at, void *value)
{
    const deployment_bracket *b = value;
    place window = place_key(at, STR("readinessWindowSeconds"));
    place unchanged = place_key(at, STR("unchangedMemberStrategy"));
    bool immediate = b->readiness_mode == READINESS_IMMEDIATE;
    if (!immediate && !b->readiness_window_seconds.set)
        reader_error(r, &window, "found nothing, required unless readinessMode is immediate");
    else if (!immediate && b->readiness_window_seconds.value == 0)
        reader_error(r, &window, "found 0, allowed a whole number of at least 1");
    else if (immediate && b->readiness_window_seconds.set && b->readiness_window_seconds.value > 0)
        reader_warning(r, &window, "found a window, which readinessMode immediate does not use");
    if (immediate && b->unchanged_member_strategy == UNCHANGED_REQUIRE_ALL)
        reader_error(r, &unchanged,
                     "found require_all, allowed skip_unchanged or redeploy_current when readinessMode "
                     "is immediate");
}

void check_concurrency(reader *r, const place *at, void *value)
{
    const resource_concurrency *c = value;
    place limit = place_key(at, STR("limitValue"));
    place timeout = place_key(at, STR("onTimeout"));
    if (c->limit_type == LIMIT_TYPE_PERCENTAGE && c->limit_value > 100)
        reader_error(r, &limit, "found %" PRId64 " percent, allowed 0 to 100", c->limit_value);
    if (c->limit_value == 0)
        reader_warning(r, &limit, "found 0: this is a pause, nothing starts");
    if (c->on_timeout != SLOT_TIMEOUT_HOLD && !c->slot_timeout_seconds.set)
        reader_warning(r, &timeout, "found no slotTimeoutSeconds, without which this has no effect");
}

void check_provider(reader *r, const place *at, void *value)
{
    const metric_provider *p = value;
    place url = place_key(at, STR("url"));
    place address = place_key(at, STR("address"));
    place query = place_key(at, STR("query"));
    switch (p->type) {
    case PROVIDER_HTTP:
        if (!str_starts(p->url, STR("http://")) && !str_starts(p->url, STR("https://")))
            reader_error(r, &url, "found \"%s\", allowed an address that begins with http:// or https://",
                         str_shown(p->url).text);
        break;
    case PROVIDER_PROMETHEUS:
        if (p->address.len == 0)
            reader_error(r, &address, "found nothing, but it is required");
        if (p->query.len == 0)
            reader_error(r, &query, "found nothing, but it is required");
        break;
    case PROVIDER_SLEEP:
        break;
    }
}

void check_verification(reader *r, const place *at, void *value)
{
    const verification *v = value;
    place list = place_key(at, STR("metrics"));
    for (size_t i = 0; i < v->metrics.len; i++) {
        place own = place_at(&list, i);
        place name = place_key(&own, STR("name"));
        for (size_t k = 0; k < i; k++)
            if (str_eq(v->metrics.at[i].name, v->metrics.at[k].name))
                reader_error(r, &name, "found the name \"%s\" twice, allowed once",
                             str_shown(v->metrics.at[i].name).text);
    }
}

void check_retry(reader *r, const place *at, void *value)
{
    const retry *t = value;
    place statuses = place_key(at, STR("retryOnStatuses"));
    if (t->retry_on_statuses & (UINT32_C(1) << JOB_STATE_SUCCESSFUL))
        reader_warning(r, &statuses, "found successful, which has no effect: what succeeded is done");
}

void check_rollback(reader *r, const place *at, void *value)
{
    const rollback *b = value;
    if (b->on_job_statuses == 0 && !b->on_verification_failure)
        reader_warning(r, at, "found no onJobStatuses and no onVerificationFailure: it never acts");
}

static const char *const rule_names[] = {
#define X(kind, json, type) [RULE_##kind] = (json),
    RULE_KINDS(X)
#undef X
};

const char *rule_kind_text(rule_kind kind)
{
    return rule_names[kind];
}

void check_rule(reader *r, const place *at, void *value)
{
    rule *u = value;
    int given = 0;
#define X(name, json, type)                                                                        \
    if (u->type) {                                                                                 \
        u->kind = RULE_##name;                                                                     \
        given++;                                                                                   \
    }
    RULE_KINDS(X)
#undef X
    if (given != 1)
        reader_error(r, at, "found %d kinds of rule, allowed exactly one", given);
}

/* A rule without an id is named by its policy, its kind and its place among those of its kind. */
static bool name_rules(arena *a, rollout_policy *p)
{
    size_t counts[sizeof rule_names / sizeof rule_names[0]] = {0};
    for (size_t i = 0; i < p->spec.rules.len; i++) {
        rule *u = &p->spec.rules.at[i];
        size_t number = counts[u->kind]++;
        if (u->id.len > 0)
            continue;
        u->id = arena_printf(a, "%.*s/%s/%zu", STR_ARG(p->metadata.name), rule_names[u->kind], number);
        if (!u->id.ptr)
            return false;
    }
    return true;
}

void check_rollout_policy(reader *r, const place *at, void *value)
{
    rollout_policy *p = value;
    if (!name_rules(r->arena, p)) {
        reader_memory(r);
        return;
    }
    place spec = place_key(at, STR("spec"));
    place list = place_key(&spec, STR("rules"));
    for (size_t i = 0; i < p->spec.rules.len; i++) {
        place own = place_at(&list, i);
        place id = place_key(&own, STR("id"));
        for (size_t k = 0; k < i; k++)
            if (str_eq(p->spec.rules.at[i].id, p->spec.rules.at[k].id))
                reader_error(r, &id, "found the id \"%s\" twice, allowed once",
                             str_shown(p->spec.rules.at[i].id).text);
    }
}
