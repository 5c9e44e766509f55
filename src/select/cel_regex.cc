/* SPDX-License-Identifier: Apache-2.0 */
#include "select/cel_regex.h"

#include <cstdio>
#include <new>

#include <re2/re2.h>

struct cel_regex {
    re2::RE2 re;
    cel_regex(const re2::StringPiece &pattern, const re2::RE2::Options &options)
        : re(pattern, options)
    {
    }
};

cel_regex *cel_regex_new(const char *pattern, size_t len, size_t memory_bytes, char *error,
                         size_t error_bytes)
{
    try {
        re2::RE2::Options options;
        options.set_log_errors(false);
        options.set_max_mem(static_cast<int64_t>(memory_bytes));
        cel_regex *regex = new cel_regex(re2::StringPiece(pattern, len), options);
        if (regex->re.ok())
            return regex;
        std::snprintf(error, error_bytes, "%s", regex->re.error().c_str());
        delete regex;
    } catch (...) {
        std::snprintf(error, error_bytes, "out of memory");
    }
    return nullptr;
}

cel_regex *cel_regex_free(cel_regex *regex)
{
    delete regex;
    return nullptr;
}

int cel_regex_match(const cel_regex *regex, const char *text, size_t len)
{
    try {
        const re2::StringPiece subject(text, len);
        return regex->re.Match(subject, 0, len, re2::RE2::UNANCHORED, nullptr, 0) ? 1 : 0;
    } catch (...) {
        return -1;
    }
}

uint64_t cel_regex_size(const cel_regex *regex)
{
    const int size = regex->re.ProgramSize();
    return size > 0 ? static_cast<uint64_t>(size) : 1;
}
