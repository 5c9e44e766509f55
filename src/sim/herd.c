/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/herd.h"

#include <assert.h>

#define HERD_DIGITS 4

static const char *const made_up_names[] = {
#define X(kind, text) text,
    TARGET_KINDS(X)
#undef X
};

bool herd_init(herd *h)
{
    *h = (herd){.arena = arena_new(0)};
    return h->arena != NULL;
}

void herd_done(herd *h)
{
    for (size_t i = 0; i < 3; i++)
        strmap_done(&h->by_name[i]);
    vec_done(&h->targets);
    h->arena = arena_free(h->arena);
}

uint32_t herd_add(herd *h, target_kind kind, str name, herd_traits *traits, int64_t created_ms)
{
    const uint64_t *known = strmap_get(&h->by_name[kind], name);
    if (known) {
        herd_target *t = &h->targets.at[*known];
        t->traits = traits;
        t->flags = (uint16_t)(t->flags & (HERD_MAY_FAIL | HERD_FAILED));
        t->created_ms = created_ms;
        return (uint32_t)*known;
    }
    str copy = arena_str(h->arena, name);
    uint32_t number = (uint32_t)h->targets.len;
    herd_target t = {
        .name = copy, .traits = traits, .created_ms = created_ms, .kind = (uint8_t)kind};
    if (!copy.ptr || number == HERD_NONE || !vec_push(&h->targets, t))
        return HERD_NONE;
    if (!strmap_put(&h->by_name[kind], copy, number)) {
        h->targets.len--;
        return HERD_NONE;
    }
    return number;
}

static int64_t digits_of(uint64_t number)
{
    int64_t digits = 1;
    while (number >= 10) {
        number /= 10;
        digits++;
    }
    return digits < HERD_DIGITS ? HERD_DIGITS : digits;
}

bool herd_make_up(herd *h, target_kind kind, uint64_t count, herd_traits *traits, int64_t start_ms)
{
    if (!vec_reserve(&h->targets, h->targets.len + count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = ++h->made_up[kind];
        char text[40];
        int len = snprintf(text, sizeof text, "%s-%0*llu", made_up_names[kind], HERD_DIGITS,
                           (unsigned long long)number);
        /* Names sort bytewise; those with more digits are younger, so that numbers keep their
         * order. */
        int64_t created_ms = start_ms - 100 + digits_of(number);
        if (herd_add(h, kind, (str){text, (size_t)len}, traits, created_ms) == HERD_NONE)
            return false;
    }
    return true;
}

uint32_t herd_find(const herd *h, target_kind kind, str name)
{
    const uint64_t *known = strmap_get(&h->by_name[kind], name);
    if (!known || (h->targets.at[*known].flags & HERD_GONE))
        return HERD_NONE;
    return (uint32_t)*known;
}

uint32_t herd_find_any(const herd *h, str name)
{
    for (size_t kind = 0; kind < 3; kind++) {
        uint32_t found = herd_find(h, (target_kind)kind, name);
        if (found != HERD_NONE)
            return found;
    }
    return HERD_NONE;
}

herd_traits *herd_share(herd *h, const herd_traits *traits)
{
    herd_traits *copy = ARENA_NEW(h->arena, herd_traits);
    if (copy)
        *copy = *traits;
    return copy;
}

herd_traits *herd_own(herd *h, uint32_t target)
{
    herd_target *t = &h->targets.at[target];
    if (t->flags & HERD_OWN_TRAITS)
        return t->traits;
    herd_traits *copy = herd_share(h, t->traits);
    if (!copy)
        return NULL;
    t->traits = copy;
    t->flags |= HERD_OWN_TRAITS;
    return copy;
}

/* The place of key in a sorted set, or where it belongs. */
static size_t label_place(label_set labels, str key)
{
    size_t at = 0;
    while (at < labels.len && str_cmp(labels.at[at].key, key) < 0)
        at++;
    return at;
}

bool herd_label(herd *h, label_set *labels, str key, str value)
{
    size_t at = label_place(*labels, key);
    bool there = at < labels->len && str_eq(labels->at[at].key, key);
    if (!value.ptr && !there)
        return true;
    label *copy = ARENA_ARRAY(h->arena, labels->len + 1, label);
    if (!copy)
        return false;
    size_t len = 0;
    for (size_t i = 0; i < at; i++)
        copy[len++] = labels->at[i];
    if (value.ptr) {
        copy[len] = (label){there ? labels->at[at].key : arena_str(h->arena, key),
                            arena_str(h->arena, value)};
        if (!copy[len].key.ptr || !copy[len].value.ptr)
            return false;
        len++;
    }
    for (size_t i = at + there; i < labels->len; i++)
        copy[len++] = labels->at[i];
    *labels = (label_set){copy, len};
    return true;
}

static bool taint_eq(const fact_taint *a, const fact_taint *b)
{
    return str_eq(a->key, b->key) && str_eq(a->value, b->value) && str_eq(a->effect, b->effect);
}

static bool taints_set(herd *h, uint32_t target, const fact_taint *without, const fact_taint *with)
{
    herd_traits *traits = herd_own(h, target);
    fact_taint *copy = traits ? ARENA_ARRAY(h->arena, traits->taint_count + 1, fact_taint) : NULL;
    if (!copy)
        return false;
    size_t len = 0;
    for (size_t i = 0; i < traits->taint_count; i++)
        if (!taint_eq(&traits->taints[i], without))
            copy[len++] = traits->taints[i];
    if (with) {
        copy[len] = (fact_taint){arena_str(h->arena, with->key), arena_str(h->arena, with->value),
                                 arena_str(h->arena, with->effect)};
        if (!copy[len].key.ptr || !copy[len].value.ptr || !copy[len].effect.ptr)
            return false;
        len++;
    }
    traits->taints = copy;
    traits->taint_count = len;
    return true;
}

bool herd_taint(herd *h, uint32_t target, fact_taint with)
{
    return taints_set(h, target, &with, &with);
}

bool herd_untaint(herd *h, uint32_t target, fact_taint with)
{
    return taints_set(h, target, &with, NULL);
}

void herd_fact(const herd *h, uint32_t target, char boot_id_text[HERD_BOOT_BYTES], fact *ret)
{
    const herd_target *t = &h->targets.at[target];
    const herd_traits *own = t->traits;
    assert(!(t->flags & HERD_GONE));
    str boot_id = STR_EMPTY;
    if (t->kind == TARGET_NODE && t->boots == 0 && own->boot_id.len > 0) {
        boot_id = own->boot_id;
    } else if (t->kind == TARGET_NODE) {
        int len = snprintf(boot_id_text, HERD_BOOT_BYTES, "boot-%u", t->boots + 1);
        boot_id = (str){boot_id_text, (size_t)len};
    }
    *ret = (fact){.kind = FACT_TARGET,
                  .target = {
                      .kind = (target_kind)t->kind,
                      .name = t->name,
                      .uid = own->uid,
                      .created_ms = t->created_ms,
                      .labels = own->labels,
                      .not_ready = (t->flags & HERD_NOT_READY) != 0,
                      .unschedulable = (t->flags & HERD_UNSCHEDULABLE) != 0,
                      .boot_id = boot_id,
                      .taints = own->taints,
                      .taint_count = own->taint_count,
                      .annotations = own->annotations,
                      .namespace_ = own->namespace_,
                      .deploy_namespace = own->deploy_namespace,
                      .paused = (t->flags & HERD_PAUSED) != 0,
                      .last_seen_ms = own->last_seen_ms,
                      .template_values = own->template_values,
                      .document = own->document,
                  }};
}
