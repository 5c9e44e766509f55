/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/scenario_names.h"

#include "base/limits.h"

#define NAMES_SHOWN 8u

/* ---- what there is ---- */

/* Calls add for every name that can stand before "=" or "@": packages, deployments, bundles. */
static void each_part_of(const object_list *objects, void (*add)(void *context, str name),
                         void *context)
{
    for (size_t i = 0; i < objects->len; i++) {
        const object *o = &objects->at[i];
        if (o->kind == KIND_DEPLOYMENT || o->kind == KIND_BUNDLE)
            add(context, o->metadata->name);
        for (size_t k = 0; o->kind == KIND_SKYHOOK && k < o->skyhook->spec.packages.len; k++)
            add(context, o->skyhook->spec.packages.at[k].name);
    }
}

static void each_part(const scenario *sc, void (*add)(void *context, str name), void *context)
{
    each_part_of(sc->in.objects, add, context);
    if (sc->client)
        each_part_of(sc->live.objects, add, context);
}

typedef struct finding {
    str name;
    bool found;
} finding;

static void find(void *context, str name)
{
    finding *f = context;
    f->found = f->found || str_eq(f->name, name);
}

/* The first few names, each once, with a comma between them. */
typedef struct listing {
    str shown[NAMES_SHOWN];
    size_t count;
    bool more;
} listing;

static void list_name(void *context, str name)
{
    listing *l = context;
    for (size_t i = 0; i < l->count; i++)
        if (str_eq(l->shown[i], name))
            return;
    if (l->count == NAMES_SHOWN)
        l->more = true;
    else
        l->shown[l->count++] = name;
}

static void names_error(err *error, str found, const char *what, const listing *l)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < l->count; i++)
        buf_addf(&text, "%s%.*s", i > 0 ? ", " : "", STR_ARG(l->shown[i]));
    if (l->count == 0)
        buf_addz(&text, "there is none");
    if (l->more)
        buf_addz(&text, " and others");
    err_set(error, "found \"%s\", allowed %s: %.*s", str_shown(found).text, what,
            STR_ARG(buf_str(&text)));
    buf_done(&text);
}

/* ---- the flags ---- */

static bool check_part(const scenario *sc, str name, bool drain, err *error)
{
    finding f = {.name = name, .found = drain && str_eq(name, STR("drain"))};
    listing l = {0};
    each_part(sc, find, &f);
    if (f.found)
        return true;
    each_part(sc, list_name, &l);
    if (drain)
        list_name(&l, STR("drain"));
    names_error(error, name, "a package, deployment or bundle", &l);
    return false;
}

static bool check_target(const scenario *sc, str name, err *error)
{
    const herd *h = sim_herd(sc->sim);
    listing l = {0};
    if (herd_find_any(h, name) != HERD_NONE)
        return true;
    for (size_t i = 0; i < h->targets.len && !l.more; i++)
        list_name(&l, h->targets.at[i].name);
    names_error(error, name, "a target", &l);
    return false;
}

/* "NAME=REST": the name must be known. */
static bool check_named(const scenario *sc, const options *given, const char *option_, err *error)
{
    size_t at = 0;
    bool drain = strcmp(option_, "duration") == 0;
    for (str text; options_next(given, option_, &at, &text);) {
        str rest = text, name = str_cut(&rest, '=');
        if (rest.ptr && !check_part(sc, name, drain, error))
            return err_wrap(error, "--%s", option_);
    }
    return true;
}

static bool check_fails(const scenario *sc, const options *given, const char *option_, err *error)
{
    size_t at = 0;
    for (str text; options_next(given, option_, &at, &text);) {
        sim_failure f = sim_failure_of(text, false);
        bool named = f.target.ptr != text.ptr;
        if ((named && !check_part(sc, f.part, false, error)) || !check_target(sc, f.target, error))
            return err_wrap(error, "--%s", option_);
    }
    return true;
}

bool scenario_names_check(const scenario *sc, const options *given, err *error)
{
    size_t at = 0;
    for (str text; options_next(given, "offline", &at, &text);)
        if (!check_target(sc, text, error))
            return err_wrap(error, "--offline");
    return check_named(sc, given, "duration", error) && check_named(sc, given, "from", error) &&
           check_fails(sc, given, "fail", error) && check_fails(sc, given, "fail-once", error);
}
