/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/failed_jobs.h"

#include <string.h>

#include "base/mem.h"

static failed_job *job_free(failed_job *j)
{
    mem_free(j->name);
    mem_free(j->uid);
    mem_free(j->skyhook);
    mem_free(j->package);
    mem_free(j->version);
    mem_free(j->node);
    return mem_free(j);
}

static char *copy(str text)
{
    char *made = mem_alloc(text.len + 1);
    if (made && text.len > 0)
        memcpy(made, text.ptr, text.len);
    if (made)
        made[text.len] = '\0';
    return made;
}

static bool same_stage(const failed_job *j, const job_key *key)
{
    return j->stage == key->stage && str_eq(str_of(j->node), key->node) &&
           str_eq(str_of(j->package), key->package) && str_eq(str_of(j->version), key->version) &&
           str_eq(str_of(j->skyhook), key->skyhook);
}

static bool is_older(const failed_job *a, const failed_job *b)
{
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms;
    int names = strcmp(a->node, b->node);
    if (names == 0 && a->attempt != b->attempt)
        return a->attempt < b->attempt;
    return names != 0 ? names < 0 : strcmp(a->name, b->name) < 0;
}

static size_t find(const failed_jobs *f, str name)
{
    for (size_t i = 0; i < f->all.len; i++)
        if (str_eq(str_of(f->all.at[i]->name), name))
            return i;
    return SIZE_MAX;
}

bool failed_jobs_add(failed_jobs *f, str name, str uid, const job_key *key, int64_t created_ms)
{
    if (find(f, name) != SIZE_MAX)
        return true;
    failed_job *j = mem_zalloc(sizeof *j);
    if (!j)
        return false;
    *j = (failed_job){.name = copy(name),
                      .uid = copy(uid),
                      .skyhook = copy(key->skyhook),
                      .package = copy(key->package),
                      .version = copy(key->version),
                      .node = copy(key->node),
                      .stage = key->stage,
                      .attempt = key->attempt,
                      .created_ms = created_ms};
    if (j->name && j->uid && j->skyhook && j->package && j->version && j->node &&
        vec_push(&f->all, j))
        return true;
    job_free(j);
    return false;
}

void failed_jobs_gone(failed_jobs *f, str name)
{
    size_t at = find(f, name);
    if (at == SIZE_MAX)
        return;
    job_free(f->all.at[at]);
    f->all.at[at] = f->all.at[--f->all.len];
}

failed_job *failed_jobs_after(const failed_jobs *f, const job_key *key)
{
    for (size_t i = 0; i < f->all.len; i++) {
        failed_job *j = f->all.at[i];
        if (!j->goes && same_stage(j, key) && j->attempt < key->attempt)
            return j;
    }
    return NULL;
}

failed_job *failed_jobs_beyond(const failed_jobs *f, const job_key *key)
{
    failed_job *of_stage = NULL, *of_skyhook = NULL;
    size_t stages = 0, skyhooks = 0;
    for (size_t i = 0; i < f->all.len; i++) {
        failed_job *j = f->all.at[i];
        if (j->goes || !str_eq(str_of(j->skyhook), key->skyhook))
            continue;
        skyhooks++;
        if (!of_skyhook || is_older(j, of_skyhook))
            of_skyhook = j;
        if (!same_stage(j, key))
            continue;
        stages++;
        if (!of_stage || is_older(j, of_stage))
            of_stage = j;
    }
    if (stages > FAILED_JOBS_OF_STAGE)
        return of_stage;
    return skyhooks > FAILED_JOBS_OF_SKYHOOK ? of_skyhook : NULL;
}

void failed_jobs_done(failed_jobs *f)
{
    for (size_t i = 0; i < f->all.len; i++)
        job_free(f->all.at[i]);
    vec_done(&f->all);
}
