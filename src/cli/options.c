/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#define TABLE_ROWS_MAX 64

/* Words still to be read. */
typedef struct reader {
    const option *table;
    char **words;
    int count;
    int at;
    err *error;
} reader;

const char *most_like(str word, const char *const *candidates)
{
    const char *best = NULL;
    size_t best_distance = word.len / 3 + 1; /* one slip in three letters */
    if (word.len == 0)
        return NULL;
    for (; *candidates; candidates++) {
        str candidate = str_of(*candidates);
        bool begun = word.len > 1 && str_starts(candidate, word);
        size_t d = begun ? 1 : str_distance(word, candidate);
        if (d < best_distance || (d == best_distance && !best && d < candidate.len)) {
            best = *candidates;
            best_distance = d;
        }
    }
    return best;
}

static bool unknown(const reader *r, str name)
{
    const char *names[TABLE_ROWS_MAX + 1] = {NULL};
    for (size_t i = 0; r->table[i].name && i < TABLE_ROWS_MAX; i++)
        names[i] = r->table[i].name;
    const char *like = most_like(name, names);
    if (like)
        return err_set(r->error,
                       "found option \"--%s\", which does not exist; did you mean \"--%s\"?",
                       str_shown(name).text, like);
    return err_set(r->error, "found option \"--%s\", which does not exist", str_shown(name).text);
}

static const option *find_name(const option *table, str name)
{
    for (; table->name; table++)
        if (str_eq(name, str_of(table->name)))
            return table;
    return NULL;
}

static const option *find_letter(const option *table, char letter)
{
    for (; table->name; table++)
        if (table->letter && table->letter == letter)
            return table;
    return NULL;
}

static bool allowed(const option *o, str value)
{
    str choices = str_of(o->argument);
    if (str_find(choices, STR("|")) == SIZE_MAX)
        return true;
    while (choices.ptr)
        if (str_eq(value, str_cut(&choices, '|')))
            return true;
    return false;
}

static bool add(reader *r, options *to, const option *o, str value)
{
    if (o->argument && !allowed(o, value))
        return err_set(r->error, "--%s: found \"%s\", allowed %s", o->name, str_shown(value).text,
                       o->argument);
    if (!o->repeatable && !to->last_counts && options_given(to, o->name))
        return err_set(r->error, "--%s: found twice, allowed once", o->name);
    if (!vec_push(&to->values, (option_value){o, value}))
        return err_memory(r->error);
    return true;
}

/* The value of an option stands in the next word. */
static bool add_next(reader *r, options *to, const option *o)
{
    if (r->at >= r->count)
        return err_set(r->error, "--%s: found nothing behind it, it takes %s", o->name,
                       o->argument);
    return add(r, to, o, str_of(r->words[r->at++]));
}

static void take_back(options *to, const option *o)
{
    size_t kept = 0;
    for (size_t i = 0; i < to->values.len; i++)
        if (to->values.at[i].option != o)
            to->values.at[kept++] = to->values.at[i];
    to->values.len = kept;
}

/* value: what stands behind "="; no ptr: nothing does. */
static bool add_given(reader *r, options *to, const option *o, str value)
{
    if (o->argument)
        return value.ptr ? add(r, to, o, value) : add_next(r, to, o);
    if (value.ptr && str_eq(value, STR("false"))) {
        take_back(to, o);
        return true;
    }
    if (value.ptr && !str_eq(value, STR("true")))
        return err_set(r->error, "--%s: found \"%s\", allowed true, false or nothing", o->name,
                       str_shown(value).text);
    return add(r, to, o, STR_EMPTY);
}

static bool long_option(reader *r, options *to, str word)
{
    str value = str_part(word, 2, SIZE_MAX);
    str name = str_cut(&value, '=');
    const option *o = find_name(r->table, name);
    return o ? add_given(r, to, o, value) : unknown(r, name);
}

static bool letters(reader *r, options *to, str word)
{
    for (size_t i = 1; i < word.len; i++) {
        const option *o = find_letter(r->table, word.ptr[i]);
        if (!o)
            return err_set(r->error, "found option \"-%s\", which does not exist",
                           str_shown(str_part(word, i, 1)).text);
        str behind = str_part(word, i + 1, SIZE_MAX);
        if (behind.len > 0 && behind.ptr[0] == '=')
            return add_given(r, to, o, str_part(behind, 1, SIZE_MAX));
        if (o->argument)
            return behind.len > 0 ? add(r, to, o, behind) : add_next(r, to, o);
        if (!add(r, to, o, STR_EMPTY))
            return false;
    }
    return true;
}

bool options_parse(options *to, const option *table, int count, char **words, err *error)
{
    reader r = {.table = table, .words = words, .count = count, .error = error};
    bool operands_only = false;
    while (r.at < count) {
        str word = str_of(words[r.at++]);
        if (!operands_only && str_eq(word, STR("--"))) {
            operands_only = true;
        } else if (!operands_only && str_starts(word, STR("--"))) {
            if (!long_option(&r, to, word))
                return false;
        } else if (!operands_only && word.len > 1 && word.ptr[0] == '-') {
            if (!letters(&r, to, word))
                return false;
        } else if (!vec_push(&to->operands, word)) {
            return err_memory(error);
        }
    }
    return true;
}

void options_done(options *o)
{
    vec_done(&o->values);
    vec_done(&o->operands);
}

bool options_next(const options *o, const char *name, size_t *at, str *ret)
{
    while (*at < o->values.len) {
        const option_value *v = &o->values.at[(*at)++];
        if (strcmp(v->option->name, name) == 0) {
            *ret = v->text;
            return true;
        }
    }
    return false;
}

bool options_given(const options *o, const char *name)
{
    size_t at = 0;
    str value;
    return options_next(o, name, &at, &value);
}

str options_text(const options *o, const char *name, const char *fallback)
{
    size_t at = 0;
    str value = str_of(fallback);
    while (options_next(o, name, &at, &value))
        continue;
    return value;
}
