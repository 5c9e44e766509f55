/* SPDX-License-Identifier: Apache-2.0 */
/* Who is a target of which Bundle, and which version it should run. */
#include "engine/clusters_internal.h"

#include <assert.h>
#include <inttypes.h>

#include "base/mem.h"
#include "engine/deployment_id.h"
#include "engine/go_json.h"
#include "model/document.h"

#define MS_PER_SECOND 1000

static str text_of(const clusters *c, name_id n)
{
    return names_text(c->core->names, n);
}

label_set record_labels(const cluster_record *r)
{
    return (label_set){r->labels, r->label_count};
}

bundle_record *bundle_find(const clusters *c, str change)
{
    const uint64_t *found = strmap_get(&c->bundle_records, change);
    bundle_record *b = found ? (bundle_record *)(uintptr_t)*found : NULL;
    return b && b->present ? b : NULL;
}

/* ---- the wanted version ---- */

static bool may_target(const bundle_record *b, const cluster_record *r)
{
    return !b->namespace_ || !r->namespace_ || b->namespace_ == r->namespace_ ||
           namespace_mapped(b, r->namespace_);
}

static match_subject subject_of(clusters *c, const cluster_record *r)
{
    matched_group *groups = ARENA_ARRAY(c->scratch, r->groups.len + 1, matched_group);
    if (!groups) {
        c->core->no_memory = true;
        return (match_subject){text_of(c, r->name), record_labels(r), NULL, 0};
    }
    for (size_t i = 0; i < r->groups.len; i++) {
        const group_record *group = &c->groups.at[r->groups.at[i]];
        groups[i] = (matched_group){text_of(c, group->name), group->document->metadata.labels};
    }
    return (match_subject){text_of(c, r->name), record_labels(r), groups, r->groups.len};
}

static template_cluster seen_by_templates(const clusters *c, const cluster_record *r, err *error)
{
    str values = text_kept(c, r->template_values);
    return (template_cluster){
        .namespace_ = text_of(c, r->namespace_),
        .name = text_of(c, r->name),
        .labels = record_labels(r),
        .annotations = {r->annotations, r->annotation_count},
        .template_values = values.len > 0
                               ? json_parse_within(c->scratch, values, LIMIT_TEXT_BYTES, error)
                               : NULL,
    };
}

/* The version that options make, for one cluster or (NULL) for any; 0 with an error. */
static text_id version_for(bundle_record *b, const option_layers *l, const cluster_record *r,
                           err *error)
{
    clusters *c = b->self;
    template_cluster seen = {0};
    if (r)
        seen = seen_by_templates(c, r, error);
    str options = options_json(c->scratch, l, r ? &seen : NULL, error);
    str id = options.ptr ? deployment_id(c->scratch, b->manifest, options) : options;
    if (options.ptr && !id.ptr)
        err_memory(error);
    return id.ptr ? text_keep(c, id) : 0;
}

/* Values that cannot be made hold back this cluster alone. */
static wish wish_by_cluster(bundle_record *b, const option_layers *l, const cluster_record *r)
{
    clusters *c = b->self;
    err error = {0};
    wish made = {.version = version_for(b, l, r, &error)};
    if (made.version)
        return made;
    if (err_is_memory(&error)) {
        c->core->no_memory = true;
        return made;
    }
    err ignored = {0};
    made.refused = text_keep(c, str_of(error.text));
    made.version = version_for(b, l, NULL, &ignored);
    c->core->no_memory |= !made.version || !made.refused;
    return made;
}

/* Clusters that are chosen alike share one hash, unless their values differ. */
static wish wish_of(bundle_record *b, const match_choice *choice, const cluster_record *r)
{
    clusters *c = b->self;
    bool usable = labels_usable(record_labels(r));
    option_layers l = {&b->document->spec.options, choice->over, choice->over_count};
    str key = arena_printf(c->scratch, "%.*s%s", STR_ARG(choice->key), usable ? "+" : "");
    const uint64_t *known = key.ptr ? strmap_get(&b->wanted, key) : NULL;
    if (known && *known == WANTED_BY_CLUSTER)
        return wish_by_cluster(b, &l, r);
    if (known)
        return (wish){.version = (text_id)*known};
    bool depends = usable && options_depend(&l);
    err error = {0};
    wish made = {0};
    if (depends)
        made = wish_by_cluster(b, &l, r);
    else
        made.version = version_for(b, &l, r, &error);
    str own = key.ptr ? arena_str(b->own, key) : key;
    if (!made.version || !own.ptr ||
        !strmap_put(&b->wanted, own, depends ? WANTED_BY_CLUSTER : made.version))
        c->core->no_memory = true;
    return made;
}

wish wanted_version(bundle_record *b, const cluster_record *r)
{
    clusters *c = b->self;
    match_choice choice;
    wish made = {0};
    if (!may_target(b, r))
        return made;
    arena_place here = arena_mark(c->scratch);
    match_subject subject = subject_of(c, r);
    if (bundle_choose(&b->document->spec, &subject, c->scratch, &choice, &c->core->no_memory))
        made = wish_of(b, &choice, r);
    arena_rewind(c->scratch, here);
    return made;
}

str wanted_options(bundle_record *b, const cluster_record *r, arena *a, err *error)
{
    clusters *c = b->self;
    match_choice choice;
    str options = {NULL, 0};
    bool no_memory = false;
    arena_place here = arena_mark(c->scratch);
    match_subject subject = subject_of(c, r);
    if (bundle_choose(&b->document->spec, &subject, c->scratch, &choice, &no_memory)) {
        option_layers l = {&b->document->spec.options, choice.over, choice.over_count};
        template_cluster seen = seen_by_templates(c, r, error);
        options = options_all_json(a, &l, &seen, error);
    } else if (no_memory) {
        err_memory(error);
    } else {
        err_set(error, "it is no target any more");
    }
    arena_rewind(c->scratch, here);
    return options;
}

static bool matches_partition(void *context, member_id m, size_t definition)
{
    bundle_record *b = context;
    clusters *c = b->self;
    if (definition >= b->strategy.partitions.len) /* edited, and not cut anew yet */
        return false;
    arena_place here = arena_mark(c->scratch);
    match_subject subject = subject_of(c, &c->clusters.at[b->members.at[m].cluster]);
    bool matches = cluster_match_accepts(&b->strategy.partitions.at[definition].match, &subject);
    arena_rewind(c->scratch, here);
    return matches;
}

/* ---- placements come and go ---- */

static name_id label_for(bundle_record *b, const cluster_record *r)
{
    clusters *c = b->self;
    bool foreign = b->namespace_ && r->namespace_ && b->namespace_ != r->namespace_;
    if (!foreign && !strmap_get(&b->by_label, text_of(c, r->name)))
        return r->name;
    arena_place here = arena_mark(c->scratch);
    str both = arena_printf(c->scratch, "%.*s/%.*s", STR_ARG(text_of(c, r->namespace_)),
                            STR_ARG(text_of(c, r->name)));
    name_id name = both.ptr ? intern(c, both) : 0;
    arena_rewind(c->scratch, here);
    return name;
}

static void join(bundle_record *b, uint32_t number, wish wanted)
{
    clusters *c = b->self;
    cluster_record *r = &c->clusters.at[number];
    placed at = {.id = c->core->next_placement,
                 .cluster = number,
                 .present = true,
                 .wanted = wanted.version,
                 .refused = wanted.refused};
    at.label = label_for(b, r);
    member_id m = (member_id)b->members.len;
    if (b->free_members.len > 0)
        m = b->free_members.at[b->free_members.len - 1];
    placed_ref ref = {at.id, b, m};
    bool good = at.label && strmap_put(&b->by_label, text_of(c, at.label), m) &&
                vec_push(&r->placed, ref) && vec_push(&c->placements, ref) &&
                (m < b->members.len || vec_push(&b->members, at)) &&
                vec_reserve(&b->free_members, b->members.len) &&
                partitions_join(b->roll.pacing, m, text_of(c, at.label), text_of(c, r->name),
                                text_of(c, r->namespace_));
    if (!good) {
        c->core->no_memory = true;
        return;
    }
    if (b->free_members.len > 0)
        b->free_members.len--;
    b->members.at[m] = at;
    b->moves++;
    c->core->next_placement++;
    int64_t due = offline_at(b, &b->members.at[m]);
    b->members.at[m].offline = due != REASON_NEVER && due <= c->core->now_ms;
    clock_update(b, m);
    placed_refresh(b, m);
    c->core->no_memory |= !partitions_assign(b->roll.pacing, m);
    b->roll.dirty = true;
}

/* Forgets placements that are gone once they are the greater part. */
static void placements_compact(clusters *c)
{
    size_t live = 0;
    for (size_t i = 0; i < c->bundles.len; i++)
        live += c->bundles.at[i]->by_label.len;
    if (c->placements.len < 64 || c->placements.len < 2 * live)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < c->placements.len; i++) {
        placed_ref ref = c->placements.at[i];
        const placed *at = &ref.bundle->members.at[ref.member];
        if (at->present && at->id == ref.id)
            c->placements.at[kept++] = ref;
    }
    c->placements.len = kept;
}

static void leave(bundle_record *b, member_id m)
{
    clusters *c = b->self;
    placed *at = &b->members.at[m];
    cluster_record *r = &c->clusters.at[at->cluster];
    claim_ends(b, at, CLAIM_GONE);
    clock_remove(b, m);
    partitions_leave(b->roll.pacing, m);
    strmap_remove(&b->by_label, text_of(c, at->label));
    for (size_t i = 0; i < r->placed.len; i++)
        if (r->placed.at[i].id == at->id) {
            r->placed.at[i] = r->placed.at[--r->placed.len];
            break;
        }
    at->present = false;
    b->moves++;
    b->free_members.at[b->free_members.len++] = m; /* room was made when it joined */
    b->roll.dirty = true;
    placements_compact(c);
}

member_id placed_on(const bundle_record *b, const cluster_record *r)
{
    for (size_t i = 0; i < r->placed.len; i++)
        if (r->placed.at[i].bundle == b)
            return r->placed.at[i].member;
    return PLACED_NONE;
}

/* Makes the placement of a bundle on a cluster what documents and labels say. */
static void place_cluster(bundle_record *b, uint32_t number)
{
    clusters *c = b->self;
    const cluster_record *r = &c->clusters.at[number];
    wish wanted = r->present ? wanted_version(b, r) : (wish){0};
    member_id m = placed_on(b, r);
    c->core->looked_at++;
    if (c->core->no_memory)
        return;
    if (m == PLACED_NONE) {
        if (wanted.version)
            join(b, number, wanted);
        return;
    }
    placed *at = &b->members.at[m];
    if (!wanted.version) {
        leave(b, m);
        return;
    }
    at->refused = wanted.refused;
    if (at->wanted != wanted.version) {
        at->wanted = wanted.version;
        at->again = false;
        b->roll.work_changed = true;
    }
    if (partitions_of(b->roll.pacing, m) == PARTITION_NONE) {
        c->core->no_memory |= !partitions_assign(b->roll.pacing, m);
        b->roll.dirty |= partitions_of(b->roll.pacing, m) != PARTITION_NONE;
    }
    placed_refresh(b, m);
}

static void place_everywhere(clusters *c, uint32_t number)
{
    for (size_t i = 0; i < c->bundles.len && !c->core->no_memory; i++)
        if (c->bundles.at[i]->present)
            place_cluster(c->bundles.at[i], number);
}

void bundle_place(bundle_record *b)
{
    for (uint32_t i = 0; i < b->self->clusters.len && !b->self->core->no_memory; i++)
        if (b->self->clusters.at[i].present)
            place_cluster(b, i);
}

/* ---- clusters ---- */

static bool in_group(const clusters *c, const cluster_record *r, const group_record *group)
{
    (void)c;
    bool near = !r->namespace_ || !group->namespace_ || r->namespace_ == group->namespace_;
    return group->document && near &&
           selector_match(group->document->spec.selector.compiled, record_labels(r));
}

static void groups_find(clusters *c, cluster_record *r)
{
    r->groups.len = 0;
    for (uint32_t i = 0; i < c->groups.len; i++)
        if (in_group(c, r, &c->groups.at[i]) && !vec_push(&r->groups, i))
            c->core->no_memory = true;
}

static bool same_labels(label_set had, label_set labels)
{
    if (had.len != labels.len)
        return false;
    for (size_t i = 0; i < labels.len; i++)
        if (!str_eq(had.at[i].key, labels.at[i].key) ||
            !str_eq(had.at[i].value, labels.at[i].value))
            return false;
    return true;
}

static void labels_copy(clusters *c, label_set labels, label **at, size_t *count)
{
    label *copy = mem_alloc((labels.len + 1) * sizeof *copy);
    if (!copy) {
        c->core->no_memory = true;
        return;
    }
    for (size_t i = 0; i < labels.len; i++)
        copy[i] = (label){text_kept(c, text_keep(c, labels.at[i].key)),
                          text_kept(c, text_keep(c, labels.at[i].value))};
    mem_free(*at);
    *at = copy;
    *count = labels.len;
}

/* What templates see of the annotations. */
static label_set exported(clusters *c, label_set all)
{
    label *at = ARENA_ARRAY(c->scratch, all.len + 1, label);
    size_t len = 0;
    c->core->no_memory |= !at;
    for (size_t i = 0; at && i < all.len; i++)
        if (label_exported(all.at[i].key))
            at[len++] = all.at[i];
    return (label_set){at, len};
}

/* Go's text of it may be much longer than the document. */
static text_id values_text(clusters *c, raw_json values)
{
    buf text = BUF(LIMIT_TEXT_BYTES);
    if (values)
        go_value(&text, values);
    text_id made = text.failed ? 0 : text_keep(c, buf_str(&text));
    c->core->no_memory |= text.failed;
    buf_done(&text);
    return made;
}

/* Takes over what targeting and templates look at; true when it is news. */
static bool labels_taken(clusters *c, cluster_record *r, const fact_target *t)
{
    label_set annotations = exported(c, t->annotations);
    text_id values = values_text(c, t->template_values);
    if (r->present && same_labels(record_labels(r), t->labels) && values == r->template_values &&
        same_labels((label_set){r->annotations, r->annotation_count}, annotations))
        return false;
    labels_copy(c, t->labels, &r->labels, &r->label_count);
    labels_copy(c, annotations, &r->annotations, &r->annotation_count);
    r->template_values = values;
    return true;
}

static str cluster_key(clusters *c, const fact_target *t)
{
    str key = arena_printf(c->scratch, "%.*s/%.*s", STR_ARG(t->namespace_), STR_ARG(t->name));
    if (!key.ptr)
        c->core->no_memory = true;
    return key;
}

static uint32_t cluster_add(clusters *c, str key)
{
    name_id name = intern(c, key);
    uint32_t number = (uint32_t)c->clusters.len;
    if (!name || !vec_push(&c->clusters, (cluster_record){0}) ||
        !strmap_put(&c->cluster_numbers, text_of(c, name), number))
        c->core->no_memory = true;
    return number;
}

static void cluster_gone(clusters *c, uint32_t number)
{
    cluster_record *r = &c->clusters.at[number];
    r->present = false;
    while (r->placed.len > 0)
        leave(r->placed.at[r->placed.len - 1].bundle, r->placed.at[r->placed.len - 1].member);
}

bool target_facts(clusters *c, const fact_target *t)
{
    if (t->kind != TARGET_CLUSTER)
        return false;
    str key = cluster_key(c, t);
    if (!key.ptr)
        return true;
    const uint64_t *known = strmap_get(&c->cluster_numbers, key);
    uint32_t number = known ? (uint32_t)*known : cluster_add(c, key);
    if (c->core->no_memory)
        return true;
    text_id uid = text_keep(c, t->uid);
    cluster_record *r = &c->clusters.at[number];
    if (r->present && uid && r->uid && uid != r->uid)
        cluster_gone(c, number);
    bool relabelled = labels_taken(c, r, t);
    if (c->core->no_memory)
        return true;
    r->present = true;
    r->name = intern(c, t->name);
    r->namespace_ = intern(c, t->namespace_);
    r->uid = uid ? uid : r->uid;
    r->created_ms = t->created_ms;
    r->last_seen_ms = t->last_seen_ms;
    r->paused = t->paused;
    r->has_namespace = t->deploy_namespace.len > 0;
    if (relabelled) {
        groups_find(c, r);
        place_everywhere(c, number);
    }
    for (size_t i = 0; i < r->placed.len && !c->core->no_memory; i++)
        placed_returns(r->placed.at[i].bundle, r->placed.at[i].member);
    return true;
}

void cluster_leaves(clusters *c, const fact_target *t)
{
    str key = cluster_key(c, t);
    const uint64_t *known = key.ptr ? strmap_get(&c->cluster_numbers, key) : NULL;
    if (known) {
        cluster_gone(c, (uint32_t)*known);
        return;
    }
    for (uint32_t i = 0; t->namespace_.len == 0 && i < c->clusters.len; i++)
        if (c->clusters.at[i].present && str_eq(text_of(c, c->clusters.at[i].name), t->name)) {
            cluster_gone(c, i); /* told by name alone */
            return;
        }
}

/* ---- groups ---- */

static void regroup(clusters *c, uint32_t group)
{
    for (uint32_t i = 0; i < c->clusters.len && !c->core->no_memory; i++) {
        cluster_record *r = &c->clusters.at[i];
        if (!r->present)
            continue;
        bool was = false;
        for (size_t g = 0; g < r->groups.len; g++)
            was |= r->groups.at[g] == group;
        if (!was && !in_group(c, r, &c->groups.at[group]))
            continue;
        groups_find(c, r);
        place_everywhere(c, i);
    }
}

void group_document(clusters *c, const metadata *meta, const cluster_group *doc)
{
    name_id namespace_ = intern(c, meta->namespace_), name = intern(c, meta->name);
    uint32_t i = 0;
    while (i < c->groups.len &&
           (c->groups.at[i].namespace_ != namespace_ || c->groups.at[i].name != name))
        i++;
    if (i == c->groups.len && !vec_push(&c->groups, (group_record){namespace_, name, NULL})) {
        c->core->no_memory = true;
        return;
    }
    c->groups.at[i].document = doc;
    regroup(c, i);
}

/* ---- bundles ---- */

static str change_name(clusters *c, const metadata *meta)
{
    if (meta->namespace_.len == 0)
        return meta->name;
    str name =
        arena_printf(c->scratch, "%.*s/%.*s", STR_ARG(meta->namespace_), STR_ARG(meta->name));
    if (!name.ptr)
        c->core->no_memory = true;
    return name;
}

/* Tells whether an edit made while nobody looked changed what is wanted. */
static uint64_t hash_wish(bundle_record *b)
{
    clusters *c = b->self;
    const bundle_spec *spec = &b->document->spec;
    uint64_t hash = str_hash(b->manifest);
    for (size_t i = 0; i < spec->targets.len; i++) {
        arena_place here = arena_mark(c->scratch);
        const bundle_options *over = &spec->targets.at[i].options;
        err error;
        option_layers l = {&spec->options, &over, 1};
        str options = options_json(c->scratch, &l, NULL, &error);
        if (!options.ptr)
            c->core->no_memory = true;
        else
            hash = hash * 31 + str_hash(options);
        arena_rewind(c->scratch, here);
    }
    return hash;
}

/* Fleet's own CRDs drop fields they do not know, so the whole strategy may stand in an annotation.
 * No document comes here whose annotation cannot be read. */
static void read_strategy(bundle_record *b)
{
    str text = label_get(b->document->metadata.annotations, STR(ANNOTATION_ROLLOUT_STRATEGY));
    err error;
    b->strategy = b->document->spec.rollout_strategy;
    if (text.ptr && !rollout_strategy_parse(b->own, text, &b->strategy, &error))
        b->self->core->no_memory |= err_is_memory(&error);
}

static void set_offline_after(bundle_record *b)
{
    const opt_int *after = &b->strategy.offline_after_seconds;
    int64_t most = INT64_MAX / 4 / MS_PER_SECOND;
    int64_t ms = after->set && after->value > 0
                     ? (after->value < most ? after->value : most) * MS_PER_SECOND
                     : 0;
    if (ms == b->offline_ms)
        return;
    b->offline_ms = ms;
    b->clock.len = 0;
    for (member_id m = 0; m < b->members.len; m++)
        b->members.at[m].clock = 0;
    for (member_id m = 0; m < b->members.len; m++)
        if (b->members.at[m].present)
            placed_returns(b, m);
}

static bundle_record *bundle_add(clusters *c, str change)
{
    bundle_record *b = mem_zalloc(sizeof *b);
    name_id name = intern(c, change);
    if (b) {
        b->self = c;
        b->change = name;
        b->own = arena_new(0);
        b->roll.pacing = partitions_new(matches_partition, b);
    }
    size_t at = 0;
    while (at < c->bundles.len && str_cmp(text_of(c, c->bundles.at[at]->change), change) < 0)
        at++;
    bool good = b && name && b->own && b->roll.pacing && vec_push(&c->bundles, b);
    if (!good) {
        c->core->no_memory = true;
        if (b) {
            partitions_free(b->roll.pacing);
            arena_free(b->own);
            mem_free(b);
        }
        return NULL;
    }
    memmove(&c->bundles.at[at + 1], &c->bundles.at[at],
            (c->bundles.len - 1 - at) * sizeof(bundle_record *));
    c->bundles.at[at] = b;
    if (!strmap_put(&c->bundle_records, text_of(c, name), (uint64_t)(uintptr_t)b))
        c->core->no_memory = true;
    return b;
}

void bundle_document(clusters *c, const bundle *doc)
{
    str change = change_name(c, &doc->metadata);
    const uint64_t *known = change.ptr ? strmap_get(&c->bundle_records, change) : NULL;
    bundle_record *b = known        ? (bundle_record *)(uintptr_t)*known
                       : change.ptr ? bundle_add(c, change)
                                    : NULL;
    if (!b || c->core->no_memory)
        return;
    bool fresh = !b->present;
    b->present = true;
    b->document = doc;
    b->namespace_ = intern(c, doc->metadata.namespace_);
    if (!doc->spec.paused)
        b->resumed = false;
    strmap_clear(&b->wanted);
    arena_rewind(b->own, (arena_place){0});
    read_strategy(b);
    str manifest = manifest_id(b->own, &doc->spec);
    b->manifest = manifest.ptr ? manifest : STR_EMPTY;
    if (!manifest.ptr || !partition_rollout_set(&b->roll, &b->strategy, fresh))
        c->core->no_memory = true;
    b->wish = hash_wish(b);
    bool before = b->roll.work_changed;
    b->roll.work_changed = false;
    set_offline_after(b);
    bundle_place(b);
    b->roll.edited |= b->roll.work_changed;
    b->roll.work_changed |= before;
    b->roll.dirty = true;
}

void bundle_gone(clusters *c, const bundle *doc)
{
    bundle_record *b = bundle_find(c, change_name(c, &doc->metadata));
    if (!b)
        return;
    for (member_id m = 0; m < b->members.len; m++)
        if (b->members.at[m].present)
            leave(b, m);
    strmap_clear(&b->wanted);
    b->present = false;
    b->document = NULL;
    b->act_paused = b->resumed = b->roll.running = b->roll.dirty = b->roll.last_released = false;
    b->roll.passes = 0;
    b->roll.last = (pass_figures){0};
}
