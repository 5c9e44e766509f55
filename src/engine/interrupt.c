/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/interrupt.h"

#include <stdlib.h>

/* ---- globs ---- */

static str tail(str text, size_t from)
{
    return str_part(text, from, SIZE_MAX);
}

/* One character of a class, which may be escaped; false at the end or on a bare "-" or "]". */
static bool class_char(str pattern, size_t *at, unsigned char *ret)
{
    if (*at >= pattern.len || pattern.ptr[*at] == '-' || pattern.ptr[*at] == ']')
        return false;
    if (pattern.ptr[*at] == '\\' && ++*at >= pattern.len)
        return false;
    *ret = (unsigned char)pattern.ptr[(*at)++];
    return *at < pattern.len;
}

/* Matches one character against the class that begins at pattern[0] = '['. Returns the bytes of the
 * class, 0 when it is malformed. */
static size_t match_class(str pattern, unsigned char c, bool *ret_match)
{
    size_t at = 1;
    bool negated = at < pattern.len && pattern.ptr[at] == '^';
    at += negated;
    bool found = false;
    for (size_t ranges = 0;; ranges++) {
        if (at < pattern.len && pattern.ptr[at] == ']' && ranges > 0)
            break;
        unsigned char low = 0;
        if (!class_char(pattern, &at, &low))
            return 0;
        unsigned char high = low;
        if (pattern.ptr[at] == '-') {
            at++;
            if (!class_char(pattern, &at, &high))
                return 0;
        }
        found |= low <= c && c <= high;
    }
    *ret_match = found != negated;
    return at + 1;
}

/* Matches what is not a star against the first character. Returns the bytes of the pattern it used,
 * 0 when it does not match. */
static size_t match_one(str pattern, str text)
{
    char c = text.ptr[0];
    bool in_class = false;
    size_t used;
    switch (pattern.ptr[0]) {
    case '[': used = match_class(pattern, (unsigned char)c, &in_class); return in_class ? used : 0;
    case '?': return c != '/';
    case '\\': return pattern.len > 1 && pattern.ptr[1] == c ? 2 : 0;
    default: return pattern.ptr[0] == c;
    }
}

bool glob_match(str pattern, str text)
{
    str star = {NULL, 0}; /* the pattern behind the last star, and the text it was tried at */
    str from = text;
    for (;;) {
        if (pattern.len > 0 && pattern.ptr[0] == '*') {
            pattern = tail(pattern, 1);
            star = (str){pattern.len > 0 ? pattern.ptr : "", pattern.len};
            from = text;
            continue;
        }
        size_t used = pattern.len > 0 && text.len > 0 ? match_one(pattern, text) : 0;
        if (used > 0) {
            pattern = tail(pattern, used);
            text = tail(text, 1);
            continue;
        }
        if (pattern.len == 0 && text.len == 0)
            return true;
        /* The last star takes one character more. */
        if (!star.ptr || from.len == 0 || from.ptr[0] == '/')
            return false;
        from = tail(from, 1);
        pattern = star;
        text = from;
    }
}

bool interrupt_matches(const interrupt *i, str changed_keys)
{
    while (changed_keys.ptr && changed_keys.len > 0)
        if (glob_match(i->key, str_cut(&changed_keys, ',')))
            return true;
    return false;
}

/* ---- merging ---- */

/* Lower wins. */
static int rank(interrupt_type type)
{
    switch (type) {
    case INTERRUPT_REBOOT: return 0;
    case INTERRUPT_RESTART_ALL_SERVICES: return 1;
    case INTERRUPT_SERVICE: return 2;
    case INTERRUPT_NOOP: return 3;
    case INTERRUPT_NONE: return 4;
    }
    return 4;
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* The union, sorted, no service twice. */
static bool unite(str_list *into, str_list more, arena *a)
{
    str *all = ARENA_ARRAY(a, into->len + more.len + 1, str);
    if (!all)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < into->len; i++)
        all[count++] = into->at[i];
    for (size_t i = 0; i < more.len; i++)
        all[count++] = more.at[i];
    qsort(all, count, sizeof *all, by_text);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !str_eq(all[kept - 1], all[i]))
            all[kept++] = all[i];
    *into = (str_list){all, kept};
    return true;
}

static bool take(merged_interrupt *m, uint16_t owner, const interrupt *i, arena *a)
{
    if (i->type == INTERRUPT_NONE)
        return true;
    if (m->owner == PACKAGE_NO_RULE || rank(i->type) < rank(m->type)) {
        *m = (merged_interrupt){.owner = owner, .type = i->type};
        return i->type != INTERRUPT_SERVICE || unite(&m->services, i->services, a);
    }
    if (i->type == INTERRUPT_SERVICE && m->type == INTERRUPT_SERVICE)
        return unite(&m->services, i->services, a);
    return true;
}

/* A uninstalled package counts with its own interrupt only, as does one that is installed or
 * upgraded; a config change with those of the changed keys. */
static bool take_package(const package_rules *r, const package_entries *entries, uint16_t index,
                         arena *a, merged_interrupt *m)
{
    const package_rule *rule = &r->at[index];
    const package_entry *e = entry_of(r, entries, rule);
    name_id pending = rule->uninstall || (e && e->stage == STAGE_UNINSTALL_INTERRUPT)
                          ? 0
                          : package_pending(r, rule, e);
    if (pending == 0)
        return !rule->spec->interrupt || take(m, index, rule->spec->interrupt, a);
    for (size_t i = 0; i < rule->spec->config_interrupts.len; i++) {
        const interrupt *one = &rule->spec->config_interrupts.at[i];
        if (interrupt_matches(one, names_text(r->names, pending)) && !take(m, index, one, a))
            return false;
    }
    return true;
}

bool interrupts_merge(const package_rules *r, const package_entries *entries,
                      package_choice packages, arena *a, merged_interrupt *ret)
{
    merged_interrupt m = {.owner = PACKAGE_NO_RULE};
    /* By name, whatever order the packages would run in: rules are sorted. */
    for (uint16_t i = 0; i < r->len; i++)
        for (uint16_t k = 0; k < packages.len; k++)
            if (packages.at[k] == i && package_interrupt_ahead(r, entries, i) &&
                !take_package(r, entries, i, a, &m))
                return false;
    *ret = m;
    return true;
}

str interrupt_json(const merged_interrupt *m, arena *a)
{
    static const char *const types[] = {
#define X(type, text) [INTERRUPT_##type] = text,
        INTERRUPT_TYPES(X)
#undef X
    };
    buf text = BUF(1024u * 1024u);
    buf_addf(&text, "{\"type\":\"%s\"", types[m->type]);
    for (size_t i = 0; i < m->services.len; i++) {
        buf_addz(&text, i == 0 ? ",\"services\":[" : ",");
        buf_add_json(&text, m->services.at[i]);
    }
    buf_addz(&text, m->services.len > 0 ? "]}" : "}");
    str json = text.failed ? (str){NULL, 0} : arena_str(a, buf_str(&text));
    buf_done(&text);
    return json;
}
