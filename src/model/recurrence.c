/* SPDX-License-Identifier: Apache-2.0 */
#include "model/recurrence.h"

#include <libical/ical.h>

#include "select/zone.h"

static bool copy_text(char *out, size_t size, str text)
{
    if (text.len >= size)
        return false;
    memcpy(out, text.ptr, text.len);
    out[text.len] = '\0';
    return true;
}

/* YYYYMMDD or YYYYMMDDTHHMMSS, with an optional Z. */
static bool is_start(str text)
{
    if (str_ends(text, STR("Z")))
        text.len--;
    if (text.len != 8 && text.len != 15)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (i == 8 ? c != 'T' : c < '0' || c > '9')
            return false;
    }
    return true;
}

/* What follows "DTSTART": ":20260101T000000Z" or ";TZID=Europe/Berlin:20260101T000000". */
static bool parse_start(str text, recurrence *ret, err *error)
{
    str zone = STR_EMPTY;
    if (str_starts(text, STR(";TZID="))) {
        str rest = str_part(text, 6, SIZE_MAX);
        zone = str_cut(&rest, ':');
        text = rest.ptr ? rest : STR_EMPTY;
        if (!timezone_known(zone))
            return err_set(error, "it starts in the unknown time zone \"%s\"",
                           str_shown(zone).text);
    } else {
        text = str_part(text, 1, SIZE_MAX);
    }
    if (!is_start(text) || !copy_text(ret->start, sizeof ret->start, text) ||
        !copy_text(ret->zone, sizeof ret->zone, zone))
        return err_set(error, "its DTSTART is not like 20260131T020000Z");
    return true;
}

/* One line that is a rule: parts between ";", of which DTSTART is taken out. */
static bool parse_rule(str text, recurrence *ret, err *error)
{
    buf rule = BUF(RECURRENCE_TEXT_BYTES - 1);
    bool good = true;
    while (good && text.ptr) {
        str part = str_trim(str_cut(&text, ';'));
        if (part.len == 0)
            continue;
        if (str_starts(part, STR("DTSTART="))) {
            good = parse_start(str_part(part, 7, SIZE_MAX), ret, error);
            continue;
        }
        buf_addz(&rule, rule.len ? ";" : "");
        buf_add(&rule, part);
    }
    if (good && (rule.failed || !copy_text(ret->rule, sizeof ret->rule, buf_str(&rule))))
        good = err_set(error, "it is longer than %d bytes", RECURRENCE_TEXT_BYTES - 1);
    buf_done(&rule);
    return good;
}

/* libical reads the rule; one that it cannot read has no frequency. */
static bool check_rule(const char *rule, err *error)
{
    icalerror_set_errors_are_fatal(0);
    for (const char *at = rule; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at > '~')
            return err_set(error, "it holds characters that no rule has");
    struct icalrecurrencetype parsed = icalrecurrencetype_from_string(rule);
    if (parsed.freq == ICAL_NO_RECURRENCE)
        return err_set(error, "RFC 5545 does not allow it");
    /* Without memory libical leaves the days out and says nothing. */
    if (strcasestr(rule, "BYDAY=") && parsed.by_day[0] == ICAL_RECURRENCE_ARRAY_MAX)
        return err_set(error, "its days cannot be read");
    return true;
}

bool recurrence_parse(str text, recurrence *ret, err *error)
{
    recurrence found = {0};
    while (text.ptr) {
        str line = str_trim(str_cut(&text, '\n'));
        bool good = true;
        if (str_starts(line, STR("DTSTART:")) || str_starts(line, STR("DTSTART;")))
            good = parse_start(str_part(line, 7, SIZE_MAX), &found, error);
        else if (line.len > 0 && found.rule[0])
            good = err_set(error, "it has more than one rule");
        else if (str_starts(line, STR("RRULE:")))
            good = parse_rule(str_part(line, 6, SIZE_MAX), &found, error);
        else if (line.len > 0)
            good = parse_rule(line, &found, error);
        if (!good)
            return false;
    }
    if (!found.rule[0])
        return err_set(error, "it has no rule");
    if (!check_rule(found.rule, error))
        return false;
    *ret = found;
    return true;
}

bool timezone_known(str name)
{
    return zone_named(name) != NULL;
}
