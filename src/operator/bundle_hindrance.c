/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/bundle_hindrance.h"

#include "base/limits.h"
#include "base/mem.h"

/* An entry is called "namespace/name"; the engine knows clusters of the Bundle's own namespace by
 * their names. */
static str target_of(const bundle *of, str name)
{
    str rest = name, space = str_cut(&rest, '/');
    return str_eq(space, of->metadata.namespace_) ? rest : name;
}

static bool tell_one(engine *e, const bundle *of, const non_ready_resource *one)
{
    if (!str_starts(one->message, STR(HINDRANCE_MARK)))
        return true;
    scoped(buf_done) buf change = BUF(LIMIT_DOCUMENT_BYTES);
    buf_addf(&change, "%.*s/%.*s", STR_ARG(of->metadata.namespace_), STR_ARG(of->metadata.name));
    fact f = {.kind = FACT_KEPT,
              .kept = {.change = buf_str(&change),
                       .target = target_of(of, one->name),
                       .why = str_part(one->message, sizeof HINDRANCE_MARK - 1, SIZE_MAX),
                       .passing = true}};
    return !change.failed && engine_take(e, &f, 1, 0);
}

static bool tell_listed(engine *e, const bundle *of, const bundle_summary *s)
{
    bool good = true;
    for (size_t i = 0; good && i < s->non_ready_resources.len; i++)
        good = tell_one(e, of, &s->non_ready_resources.at[i]);
    return good;
}

bool bundle_hindrances_tell(engine *e, const bundle *of)
{
    bool good = tell_listed(e, of, &of->status.summary);
    for (size_t i = 0; good && i < of->status.partitions.len; i++)
        good = tell_listed(e, of, &of->status.partitions.at[i].summary);
    return good;
}
