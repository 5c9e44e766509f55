/* SPDX-License-Identifier: Apache-2.0 */
#include "server/job_make.h"

#include "base/vec.h"
#include "server/template.h"

/* What a program needs to find its way, and no more: no tokens, no settings of the server. */
static const char *const inherited[] = {"PATH", "HOME", "USER",   "LOGNAME", "SHELL",
                                        "LANG", "TZ",   "TMPDIR", "LC_ALL"};
#define PATH_OTHERWISE "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

typedef VEC(str) word_list;

static bool has_name(const word_list *env, str name)
{
    for (size_t i = 0; i < env->len; i++) {
        str entry = env->at[i];
        if (str_eq(str_cut(&entry, '='), name))
            return true;
    }
    return false;
}

/* The first one of a name counts. */
static bool add_env(arena *a, word_list *env, str name, str value)
{
    if (has_name(env, name))
        return true;
    str entry = arena_printf(a, "%.*s=%.*s", STR_ARG(name), STR_ARG(value));
    return entry.ptr && vec_push(env, entry);
}

static bool add_order(arena *a, word_list *env, const stored_job *j)
{
    const struct {
        str name, value;
    } rows[] = {
        {STR("DROVER_JOB_ID"), arena_printf(a, "%lld", (long long)j->number)},
        {STR("DROVER_RESOURCE"), j->resource},
        {STR("DROVER_DEPLOYMENT"), j->deployment},
        {STR("DROVER_ENVIRONMENT"), j->environment},
        {STR("DROVER_VERSION"), j->version},
        {STR("DROVER_GROUP"), j->group},
        {STR("DROVER_ATTEMPT"), arena_printf(a, "%lld", (long long)j->attempt)},
    };
    bool good = true;
    for (size_t i = 0; good && i < sizeof rows / sizeof rows[0]; i++)
        good = rows[i].value.ptr && add_env(a, env, rows[i].name, rows[i].value);
    return good;
}

static bool add_inherited(arena *a, word_list *env)
{
    bool good = true;
    for (size_t i = 0; good && i < sizeof inherited / sizeof inherited[0]; i++) {
        const char *value = getenv(inherited[i]);
        if (value)
            good = add_env(a, env, str_of(inherited[i]), str_of(value));
    }
    return good && add_env(a, env, STR("PATH"), STR(PATH_OTHERWISE));
}

static bool keep(arena *a, const word_list *from, str **ret, size_t *ret_len)
{
    *ret = ARENA_ARRAY(a, from->len + 1, str);
    *ret_len = from->len;
    for (size_t i = 0; *ret && i < from->len; i++)
        (*ret)[i] = from->at[i];
    return *ret != NULL;
}

static bool make_argv(arena *a, const template_values *values, const command *c, word_list *argv,
                      err *error)
{
    for (size_t i = 0; i < c->run.len; i++) {
        str word = template_expand(a, c->run.at[i], values, error);
        if (!word.ptr)
            return err_wrap(error, "run[%zu]", i);
        if (!vec_push(argv, word))
            return err_memory(error);
    }
    return true;
}

static bool make_env(arena *a, const template_values *values, const command *c, word_list *env,
                     err *error)
{
    for (size_t i = 0; i < c->env.len; i++) {
        str value = template_expand(a, c->env.at[i].value, values, error);
        if (!value.ptr)
            return err_wrap(error, "env.%s", str_shown(c->env.at[i].key).text);
        if (!add_env(a, env, c->env.at[i].key, value))
            return err_memory(error);
    }
    return true;
}

static template_values values_of(const job_order *order)
{
    return (template_values){.deployment = order->job->deployment,
                             .environment = order->job->environment,
                             .version = order->job->version,
                             .resource = order->resource,
                             .version_object = order->version};
}

bool job_make_command(arena *a, const job_order *order, const command *c, job_command *ret,
                      err *error)
{
    template_values values = values_of(order);
    word_list argv = {0}, env = {0};
    bool good = make_argv(a, &values, c, &argv, error);
    good = good && (add_order(a, &env, order->job) || err_memory(error));
    good = good && make_env(a, &values, c, &env, error);
    good = good && ((add_inherited(a, &env) && keep(a, &argv, &ret->argv, &ret->argv_len) &&
                     keep(a, &env, &ret->env, &ret->env_len)) ||
                    err_memory(error));
    ret->workdir = c->workdir.ptr ? c->workdir : STR_EMPTY;
    vec_done(&argv);
    vec_done(&env);
    return good;
}

static bool expand(arena *a, str *text, const template_values *values, err *error)
{
    if (!text->ptr)
        return true;
    *text = template_expand(a, *text, values, error);
    return text->ptr != NULL;
}

static bool expand_provider(arena *a, metric_provider *p, const template_values *values, err *error)
{
    label *headers = ARENA_ARRAY(a, p->headers.len + 1, label);
    if (!headers)
        return err_memory(error);
    for (size_t i = 0; i < p->headers.len; i++) {
        headers[i] = p->headers.at[i];
        if (!expand(a, &headers[i].value, values, error))
            return false;
    }
    p->headers.at = headers;
    return expand(a, &p->url, values, error) && expand(a, &p->body, values, error) &&
           expand(a, &p->address, values, error) && expand(a, &p->query, values, error);
}

/* The metrics as a document, which is how the supervisor gets them. */
static bool make_metrics(arena *a, const job_order *order, str *ret, err *error)
{
    template_values values = values_of(order);
    *ret = STR_EMPTY;
    if (order->metric_count == 0)
        return true;
    verification_metric *own = ARENA_ARRAY(a, order->metric_count, verification_metric);
    verification *v = ARENA_NEW(a, verification);
    rule *r = ARENA_NEW(a, rule);
    rollout_policy *p = ARENA_NEW(a, rollout_policy);
    if (!own || !v || !r || !p)
        return err_memory(error);
    for (size_t i = 0; i < order->metric_count; i++) {
        own[i] = *order->metrics[i];
        if (!expand_provider(a, &own[i].provider, &values, error))
            return false;
    }
    v->metrics.at = own;
    v->metrics.len = order->metric_count;
    r->verification = v;
    p->metadata.name = STR("metrics");
    p->spec.rules.at = r;
    p->spec.rules.len = 1;
    p->spec.enabled = true;
    object o = object_of(KIND_ROLLOUT_POLICY, p);
    buf text = BUF(LIMIT_DOCUMENT_BYTES);
    object_write(&o, &text);
    *ret = text.failed ? (str){0} : arena_str(a, buf_str(&text));
    buf_done(&text);
    return ret->ptr || err_memory(error);
}

bool job_make_spec(const job_order *order, int64_t grace_ms, buf *out, err *error)
{
    const struct deployment_spec *d = &order->deployment->deployment->spec;
    bool command_too = !str_eq(order->job->state, JOB_VERIFYING) && d->job.command;
    int64_t seconds = d->timeout_seconds < INT32_MAX ? d->timeout_seconds : INT32_MAX;
    job_spec spec = {
        .timeout_ms = seconds * 1000, .grace_ms = grace_ms, .verified = d->verify != NULL};
    arena *a = arena_new(0);
    bool good = a || err_memory(error);
    good = good && (!command_too || job_make_command(a, order, d->job.command, &spec.run, error)) &&
           (!spec.verified || job_make_command(a, order, d->verify, &spec.verify, error) ||
            err_wrap(error, "verify")) &&
           (make_metrics(a, order, &spec.metrics, error) || err_wrap(error, "verification"));
    if (good)
        job_spec_write(&spec, out);
    if (good && out->failed)
        good = err_memory(error);
    arena_free(a);
    return good;
}
