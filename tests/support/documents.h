/* SPDX-License-Identifier: Apache-2.0 */
/* documents.h - documents for tests: from text, and the samples under tests/data/documents. */
#ifndef DROVER_TESTS_SUPPORT_DOCUMENTS_H
#define DROVER_TESTS_SUPPORT_DOCUMENTS_H

#include <glob.h>

#include "base/mem.h"
#include "model/object.h"

/* What was read, all of it, until loaded_free. */
typedef struct loaded {
    document_set *set;
    object_list *objects;
    problems *found;
    bool good;
} loaded;

static inline void loaded_free(loaded *l)
{
    objects_free(l->objects);
    document_set_free(l->set);
    problems_free(l->found);
    *l = (loaded){0};
}

/* good is false when something is wrong, memory included. */
static inline loaded load_text(const char *file, str text)
{
    loaded l = {.set = document_set_new(), .objects = objects_new(), .found = problems_new()};
    if (!l.set || !l.objects || !l.found)
        return l;
    l.good = documents_read(l.set, str_of(file), text, l.found);
    l.good = objects_read(l.objects, l.set, l.found) && l.good;
    l.good = l.good && !problems_out_of_memory(l.found);
    return l;
}

/* All problems, one a line, "warning: " in front of warnings. */
static inline buf problems_as_text(const problems *found)
{
    buf out = BUF(LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < problems_count(found); i++) {
        const problem *p = problems_at(found, i);
        buf_addz(&out, p->severity == SEVERITY_WARNING ? "warning: " : "");
        problem_text(p, &out);
        buf_addc(&out, '\n');
    }
    return out;
}

/* The content of a file, to be freed with buf_done. */
static inline buf file_content(const char *path)
{
    buf out = BUF(LIMIT_FILE_BYTES);
    FILE *file = fopen(path, "rb");
    char part[4096];
    size_t n;
    while (file && (n = fread(part, 1, sizeof part, file)) > 0)
        buf_add(&out, (str){part, n});
    if (!file)
        out.failed = true;
    else
        fclose(file);
    return out;
}

/* Calls work for every sample document. */
static inline size_t each_sample(void (*work)(const char *path, str text))
{
    glob_t found = {0};
    glob(TEST_DATA "/documents/*.*", 0, NULL, &found);
    glob(TEST_DATA "/documents/*/*.*", GLOB_APPEND, NULL, &found);
    size_t count = found.gl_pathc;
    for (size_t i = 0; i < count; i++) {
        buf text = file_content(found.gl_pathv[i]);
        work(found.gl_pathv[i], buf_str(&text));
        buf_done(&text);
    }
    globfree(&found);
    return count;
}

#endif
