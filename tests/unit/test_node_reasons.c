/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations for real, on nodes: for random fleets that are stuck, doing what the reasons name
 * starts the node; leaving any of it out, or doing what another waits for, does not. */
#include "support/node_fleet.h"

#include "support/explain.h"

#define API "apiVersion: skyhook.nvidia.com/v1alpha1\n"
#define STARVED 25
#define FLEETS 1200
#define HOOKS 3
#define NODES_MAX 7
#define LIFE 16

typedef struct wild {
    fleet *f;
    rng r;
    int hooks;
    int number[HOOKS]; /* version of the packages */
    bool disabled[HOOKS], interrupts[HOOKS], second[HOOKS];
    char head[HOOKS][512];  /* of the spec */
    bool ending[NODES_MAX]; /* what runs there ends at once */
    int healed[NODES_MAX];  /* Skyhook + 1 that failed there and is done after the batch */
    char batch[HOOKS][NODES_MAX][FLEET_TEXT]; /* the compartment whose open batch it is in */
    char claim[HOOKS][NODES_MAX][FLEET_TEXT]; /* and the one it is in flight in, in it or not */
    bool doomed[HOOKS][NODES_MAX]; /* one of its stages has failed while others still run */
    const explain_target *watched; /* whose start is waited for */
    bool started;
} wild;

static const char *const zones[] = {"a", "b", "c"};
static const fact_taint taints[] = {
    {STR("foreign"), STR("x"), STR("NoSchedule")},
    {STR("other"), STR(""), STR("NoExecute")},
    {STR("node.kubernetes.io/not-ready"), STR(""), STR("NoSchedule")}};

static char *kept(wild *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static char *kept(wild *w, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    assert_true(vasprintf(&text, format, args) > 0);
    va_end(args);
    assert_true(vec_push(&w->f->texts, text));
    return text;
}

/* ---- documents ---- */

static void put_skyhook(wild *w, int c)
{
    char second[160] = "";
    if (w->second[c])
        snprintf(second, sizeof second,
                 "    extra: {version: '%d', image: r/extra, dependsOn: {tool: '%d'}}\n",
                 w->number[c], w->number[c]);
    fleet_document(w->f,
                   API "kind: Skyhook\nmetadata: {name: sk%d, annotations: {%s}}\nspec:\n"
                       "  nodeSelectors: {matchLabels: {use-sk%d: 'yes'}}\n%s"
                       "  packages:\n    tool: {version: '%d', image: r/tool%s}\n%s",
                   c, w->disabled[c] ? "skyhook.nvidia.com/disable: 'true'" : "", c, w->head[c],
                   w->number[c], w->interrupts[c] ? ", interrupt: {type: noop}" : "", second);
}

static const char *random_budget(rng *r)
{
    static const char *const budgets[] = {"count: 1", "count: 2", "percent: 50", "percent: 100",
                                          "count: 3"};
    return budgets[rng_below(r, COUNT_OF(budgets))];
}

static const char *random_strategy(rng *r)
{
    static const char *const strategies[] = {
        ", strategy: {fixed: {initialBatch: 9}}",
        ", strategy: {fixed: {initialBatch: 2, failureThreshold: 1}}",
        ", strategy: {fixed: {initialBatch: 1}}",
        ", strategy: {linear: {initialBatch: 1, failureThreshold: 2}}",
        ", strategy: {exponential: {initialBatch: 1, failureThreshold: 1, safetyLimit: 80}}",
    };
    return strategies[rng_below(r, COUNT_OF(strategies))];
}

static void put_policy(wild *w, const char *name)
{
    rng *r = &w->r;
    fleet_document(w->f,
                   API "kind: DeploymentPolicy\nmetadata: {name: %s}\nspec:\n%s"
                       "  default: {budget: {%s}%s}\n  compartments:\n"
                       "  - {name: a, selector: {matchLabels: {zone: a}}, budget: {%s}%s}\n",
                   name, rng_below(r, 4) == 0 ? "  failedNodesHoldBudget: true\n" : "",
                   random_budget(r), random_strategy(r), random_budget(r), random_strategy(r));
}

static void random_head(wild *w, int c)
{
    static const char *const budgets[] = {"",
                                          "  interruptionBudget: {count: 1}\n",
                                          "  interruptionBudget: {percent: 40}\n",
                                          "  deploymentPolicy: pace\n",
                                          "  deploymentPolicy: pace\n",
                                          "  deploymentPolicy: pace\n",
                                          "  deploymentPolicy: pace\n",
                                          "  deploymentPolicy: later\n"};
    rng *r = &w->r;
    snprintf(w->head[c], sizeof w->head[c], "  priority: %d\n%s%s", 1 + (int)rng_below(r, 3),
             rng_below(r, 5) == 0 ? "  sequencing: all\n" : "",
             budgets[rng_below(r, COUNT_OF(budgets))]);
    w->disabled[c] = rng_below(r, 16) == 0;
    w->interrupts[c] = rng_below(r, 2) == 0;
    w->second[c] = rng_below(r, 3) == 0;
    w->number[c] = 1;
}

/* ---- what happens ---- */

static int hook_of(str name)
{
    return name.len > 2 ? name.ptr[2] - '0' : 0;
}

static fleet_node *node_of(wild *w, str name)
{
    char text[FLEET_TEXT];
    copy_text(text, name);
    return fleet_find(w->f, text);
}

/* A reset makes those in flight the first batch, and lets go of the others. */
static void reset_seen(wild *w, const decision *d)
{
    int c = hook_of(d->change);
    for (size_t n = 0; d->kind == DECISION_RESET && n < w->f->node_count; n++)
        if (str_eq(d->group, str_of(w->claim[c][n])))
            copy_text(w->batch[c][n], d->group);
        else if (str_eq(d->group, str_of(w->batch[c][n])))
            w->batch[c][n][0] = '\0';
}

static void start_seen(fleet *f)
{
    wild *w = f->context;
    for (size_t i = 0; i < f->out.len; i++) /* before what ends in the same step */
        reset_seen(w, &f->out.at[i]);
    for (size_t i = 0; i < f->out.len; i++) {
        const decision *d = &f->out.at[i];
        int c = hook_of(d->change);
        for (size_t n = 0; d->kind == DECISION_JUDGE && n < f->node_count; n++)
            if (str_eq(d->group, str_of(w->batch[c][n])))
                w->batch[c][n][0] = '\0';
        if (d->kind == DECISION_RELEASE)
            w->claim[c][node_of(w, d->target) - f->nodes][0] = '\0';
        if (d->kind != DECISION_START)
            continue;
        if (!d->retry)
            copy_text(w->batch[c][node_of(w, d->target) - f->nodes], d->group);
        copy_text(w->claim[c][node_of(w, d->target) - f->nodes], d->group);
        w->doomed[c][node_of(w, d->target) - f->nodes] = false;
        w->started |= w->watched && str_eq(d->change, str_of(w->watched->change)) &&
                      str_eq(d->target, str_of(w->watched->target));
    }
}

static void random_node(wild *w, fleet_node *n)
{
    rng *r = &w->r;
    n->created_ms = 1 + (int64_t)rng_below(r, 3);
    fleet_label(n, "zone", zones[rng_below(r, COUNT_OF(zones))]);
    for (int c = 0; c < w->hooks; c++)
        if (rng_below(r, 6) != 0)
            fleet_label(n, kept(w, "use-sk%d", c), "yes");
    n->fails = rng_below(r, 5) == 0;
    if (rng_below(r, 16) == 0)
        n->annotations[n->annotation_count++] =
            (label){STR("skyhook.nvidia.com/nodeState_sk0"), STR("{nonsense")};
}

static void random_event(wild *w)
{
    rng *r = &w->r;
    fleet *f = w->f;
    fleet_node *n = &f->nodes[rng_below(r, f->node_count)];
    int c = (int)rng_below(r, (size_t)w->hooks);
    const char *name = kept(w, "sk%d", c);
    switch (rng_below(r, 13)) {
    case 0: fleet_act(f, rng_below(r, 2) ? ACT_PAUSE : ACT_RESUME, name, ""); return;
    case 1:
        n->taint_count = 0;
        if (rng_below(r, 2))
            n->taints[n->taint_count++] = taints[rng_below(r, 2) ? 0 : 2];
        if (n->taint_count > 0 && rng_below(r, 3) == 0)
            n->taints[n->taint_count++] = taints[1];
        break;
    case 2: fleet_label(n, "skyhook.nvidia.com/ignore", rng_below(r, 2) ? "true" : NULL); break;
    case 3: n->not_ready = !n->not_ready; break;
    case 4: fleet_label(n, "zone", zones[rng_below(r, COUNT_OF(zones))]); break;
    case 5:
        if (rng_below(r, 2) == 0) {
            w->number[c]++;
            memset(w->doomed[c], 0, sizeof w->doomed[c]); /* who failed is fresh */
        }
        w->disabled[c] = rng_below(r, 8) == 0;
        put_skyhook(w, c);
        return;
    case 6: put_policy(w, "pace"); return;
    case 7: fleet_act(f, ACT_RETRY, name, n->name); return;
    case 8:
    case 9:
    case 10:
        n->fails = rng_below(r, 3) != 0;
        n->never_retry = rng_below(r, 4) == 0;
        return;
    default: return;
    }
    fleet_show(f, n);
}

/* What fails of packages that are not wanted any more is no outcome of the node. */
static bool dooms(const wild *w, const fleet_node *n, const fleet_event *e)
{
    return n->fails && !e->drain &&
           strtol(e->version, NULL, 10) == w->number[hook_of(str_of(e->change))];
}

/* Some of what runs ends. */
static void random_answers(wild *w)
{
    fleet *f = w->f;
    for (size_t i = 0; i < f->events.len; i++) {
        fleet_event *e = &f->events.at[i];
        if (e->used || rng_below(&w->r, 2) == 0)
            continue;
        fleet_node *n = fleet_find(f, e->target);
        w->doomed[hook_of(str_of(e->change))][n - f->nodes] |= dooms(w, n, e);
        fleet_answer(f, e);
    }
}

static void *stuck(uint64_t seed)
{
    wild *w = calloc(1, sizeof *w);
    w->f = fleet_with((engine_settings){.stage_retries = 2});
    w->r = (rng){seed};
    w->f->steps_unchecked = true;
    w->f->context = w;
    w->f->after_step = start_seen;
    w->hooks = rng_below(&w->r, 2) ? 1 : 1 + (int)rng_below(&w->r, HOOKS);
    if (rng_below(&w->r, 12) != 0)
        put_policy(w, "pace");
    for (int c = 0; c < w->hooks; c++) {
        random_head(w, c);
        put_skyhook(w, c);
    }
    int nodes = 1 + (int)rng_below(&w->r, NODES_MAX);
    for (int i = 0; i < nodes; i++) {
        fleet_node *n = fleet_node_add(w->f, kept(w, "n%d", i));
        random_node(w, n);
        fleet_show(w->f, n);
    }
    size_t life = rng_below(&w->r, LIFE);
    for (size_t i = 0; i < life; i++) {
        fleet_step(w->f);
        random_event(w);
        fleet_step(w->f);
        random_answers(w);
        w->f->now_ms += (int64_t)rng_below(&w->r, 15) * SECOND;
    }
    fleet_step(w->f);
    return w;
}

static void wild_free(void *context)
{
    wild *w = context;
    fleet_free(w->f);
    free(w);
}

static engine *wild_engine(void *context)
{
    return ((wild *)context)->f->engine;
}

/* ---- doing what a reason names ---- */

static bool has_placement(wild *w, int c, const fleet_node *n, placement_state state)
{
    char name[FLEET_TEXT];
    snprintf(name, sizeof name, "sk%d", c);
    fleet_look l = {.change = name, .target = n->name};
    engine_placements(w->f->engine, fleet_look_at, &l);
    return l.found && l.view.state == state;
}

/* The node is another one of the same name on which the Skyhook is done, as is what was done
 * there. */
static void node_is_done(wild *w, fleet_node *n, int hook)
{
    label notes[HOOKS];
    size_t count = 0;
    for (int c = 0; c < w->hooks; c++) {
        if (c != hook && !has_placement(w, c, n, PLACEMENT_DONE))
            continue;
        const char *text =
            kept(w,
                 "{\"tool|%d\":{\"name\":\"tool\",\"version\":\"%d\",\"image\":\"r/tool\","
                 "\"stage\":\"%s\",\"state\":\"complete\"},\"extra|%d\":{\"name\":\"extra\","
                 "\"version\":\"%d\",\"image\":\"r/extra\",\"stage\":\"config\","
                 "\"state\":\"complete\"}}",
                 w->number[c], w->number[c], w->interrupts[c] ? "post-interrupt" : "config",
                 w->number[c], w->number[c]);
        notes[count++] =
            (label){str_of(kept(w, "skyhook.nvidia.com/nodeState_sk%d", c)), str_of(text)};
    }
    fleet_gone(w->f, n);
    for (size_t i = 0; i < w->f->events.len; i++)
        w->f->events.at[i].used |= strcmp(w->f->events.at[i].target, n->name) == 0;
    n->exists = true;
    n->unschedulable = false;
    snprintf(n->uid, sizeof n->uid, "again-%zu", w->f->texts.len);
    memcpy(n->annotations, notes, sizeof notes);
    n->annotation_count = count;
    fleet_show(w->f, n);
}

/* Nothing is in the way of what runs there, and it succeeds. */
static void node_is_well(wild *w, fleet_node *n)
{
    n->taint_count = 0;
    n->fails = n->not_ready = false;
    fleet_label(n, "skyhook.nvidia.com/ignore", NULL);
    w->ending[n - w->f->nodes] = true;
    fleet_show(w->f, n);
}

/* What runs of a Skyhook on a node ends, and it is taken off there. */
static void take_off(wild *w, int c, fleet_node *n)
{
    for (size_t i = 0; i < w->f->events.len; i++) {
        fleet_event *e = &w->f->events.at[i];
        if (!e->used && strcmp(e->target, n->name) == 0 && hook_of(str_of(e->change)) == c)
            fleet_answer(w->f, e);
    }
    fleet_label(n, kept(w, "use-sk%d", c), NULL);
    fleet_show(w->f, n);
}

static void obey_complete(wild *w, const explain_target *of, const reason *r)
{
    if (r->rule == REASON_PRIORITY || r->rule == REASON_BUSY) {
        for (size_t i = 0; i < r->holder_count; i++)
            take_off(w, hook_of(r->of[0]), node_of(w, r->holders[i]));
        return;
    }
    int hook = hook_of(str_of(of->change));
    for (size_t i = 0; i < r->of_count; i++) {
        fleet_node *n = node_of(w, r->of[i]);
        if (has_placement(w, hook, n, PLACEMENT_IN_FLIGHT) && !w->doomed[hook][n - w->f->nodes])
            node_is_well(w, n);
        else if (w->batch[hook][n - w->f->nodes][0])
            w->healed[n - w->f->nodes] = hook + 1; /* an outcome is final for its batch */
        else
            node_is_done(w, n, hook);
    }
}

static void untaint(wild *w, fleet_node *n, str text)
{
    size_t left = 0;
    for (size_t i = 0; i < n->taint_count; i++)
        if (!str_starts(text, n->taints[i].key))
            n->taints[left++] = n->taints[i];
    n->taint_count = left;
    fleet_show(w->f, n);
}

static void obey(void *context, const explain_target *of, const reason *r)
{
    wild *w = context;
    fleet *f = w->f;
    fleet_node *own = node_of(w, str_of(of->target));
    int hook = hook_of(str_of(of->change));
    switch (r->act) {
    case RELEASE_COMPLETE: obey_complete(w, of, r); return;
    case RELEASE_TIME: f->now_ms = r->next_ms > f->now_ms ? r->next_ms : f->now_ms; return;
    case RELEASE_RESUME: fleet_act(f, ACT_RESUME, of->change, ""); return;
    case RELEASE_RETRY: fleet_act(f, ACT_RETRY, of->change, of->target); return;
    case RELEASE_RESET:
        check_msg(r->of_count == 1, "a reset of nobody");
        if (r->rule == REASON_MALFORMED)
            fleet_act(f, ACT_RESET, of->change, of->target);
        else
            fleet_act(f, ACT_RESET_BATCHES, kept(w, "%.*s", STR_ARG(r->of[0])), "");
        return;
    case RELEASE_EDIT:
        if (r->rule == REASON_POLICY_NOT_FOUND) {
            fleet_document(f,
                           API
                           "kind: DeploymentPolicy\nmetadata: {name: %.*s}\nspec: {default: "
                           "{budget: {percent: 100}, strategy: {fixed: {initialBatch: 100}}}}\n",
                           STR_ARG(r->of[0]));
        } else {
            w->disabled[hook] = false;
            put_skyhook(w, hook);
        }
        return;
    case RELEASE_LABEL:
        fleet_label(own, "skyhook.nvidia.com/ignore", NULL);
        fleet_show(f, own);
        return;
    case RELEASE_UNTAINT: untaint(w, own, r->of[0]); return;
    case RELEASE_ONLINE:
        own->not_ready = false;
        fleet_show(f, own);
        return;
    case RELEASE_APPROVE:
    case RELEASE_UNCORDON:
    case RELEASE_CORDON:
    case RELEASE_THAW:
    case RELEASE_PUBLISH: break;
    }
    check_msg(false, "act %d of a node", (int)r->act);
}

/* How many stages are still to come, this one included. */
static int stages_left(const wild *w, const fleet_event *e)
{
    static const char *const stages[] = {"config", "interrupt", "post-interrupt"};
    int c = hook_of(str_of(e->change));
    bool extra = strcmp(e->package, "extra") == 0;
    int all = w->interrupts[c] && !extra ? 4 : 2;
    int at = 0;
    for (int i = 0; !e->drain && i < 3; i++)
        at = strcmp(e->stage, stages[i]) == 0 ? i + 1 : at;
    return all - at + (w->second[c] && !extra ? 2 : 0) + (e->drain ? 1 : 0);
}

/* What runs on nodes that are well ends, and for the Skyhook that is asked about at the same time
 * everywhere. */
static void settle(wild *w)
{
    fleet *f = w->f;
    for (bool again = true; again;) {
        int most = 0;
        fleet_step(f);
        again = false;
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = 0; i < f->events.len; i++) {
                fleet_event *e = &f->events.at[i];
                if (e->used || !w->ending[node_of(w, str_of(e->target)) - f->nodes])
                    continue;
                bool own = strcmp(e->change, w->watched->change) == 0;
                int left = own ? stages_left(w, e) : 0;
                if (pass == 0) {
                    most = left > most ? left : most;
                } else if (left == most || !own) {
                    /* What else runs there gets out of the way without being done. */
                    node_of(w, str_of(e->target))->fails = !own && !e->drain;
                    fleet_answer(f, e);
                    node_of(w, str_of(e->target))->fails = false;
                    again = true;
                }
            }
    }
}

static bool starts(void *context, const explain_target *of)
{
    wild *w = context;
    fleet *f = w->f;
    w->watched = of;
    w->started = false;
    settle(w);
    for (size_t i = 0; i < f->node_count; i++)
        if (w->healed[i] > 0)
            node_is_done(w, &f->nodes[i], w->healed[i] - 1);
    fleet_step(f);
    if (getenv("SHOW"))
        fprintf(stderr, "%.*s\n", STR_ARG(buf_str(&f->trace)));
    return w->started;
}

static bool asks(const placement_view *view, const reasons *list)
{
    (void)list;
    return view->state != PLACEMENT_IN_FLIGHT;
}

/* Limits name all holders and all that are ahead; one of them may be enough. So may be some of
 * those who avert a stop. */
static bool each(const reason *r)
{
    return r->rule != REASON_BUDGET && r->rule != REASON_BATCH && r->rule != REASON_STOPPED;
}

/* Whether one of those who end with the batch of the other reason comes to the compartment. */
static bool comes(wild *w, const reason *other, str scope)
{
    for (size_t i = 0; i < other->of_count; i++) {
        const fleet_node *n = node_of(w, other->of[i]);
        for (size_t k = 0; k < n->label_count; k++)
            if (strcmp(n->keys[k], "zone") == 0 &&
                (strcmp(n->values[k], "a") == 0) == str_ends(scope, STR(" a")))
                return true;
    }
    return false;
}

/* Places may be had otherwise, too. */
static bool touches(void *context, const explain_target *t, const reason *r,
                    const explain_target *whose, const reason *other)
{
    bool same = strcmp(t->change, whose->change) == 0;
    if (each(r))
        return false;
    if (!same && (other->act == RELEASE_EDIT || other->act == RELEASE_RESUME) &&
        explain_exempt("ahead"))
        return true; /* another Skyhook that goes on may take nodes that are ahead */
    return other->rule == REASON_BATCH && r->rule == REASON_BUDGET &&
           !str_eq(other->scope, r->scope) && comes(context, other, r->scope) &&
           explain_exempt(
               "ceiling"); /* a batch that ends lets go of nodes with other labels: the
                              compartment they come to is larger, and so is its ceiling */
}

static void test_reasons_are_true(void **state)
{
    (void)state;
    static const explain_fleet how = {
        .stuck = stuck,
        .free = wild_free,
        .engine = wild_engine,
        .asks = asks,
        .each = each,
        .obey = obey,
        .starts = starts,
        .touches = touches,
    };
    explain_counts counts = {0};
    explain_fleets(&how, FLEETS, &counts);
    if (!getenv("ONLY") && !getenv("FLEETS"))
        assert_true(counts.asked > FLEETS);
}

static void test_asking_without_memory(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < STARVED; i++) {
        wild *w = stuck(EXPLAIN_SEED + i);
        explain_starved(w->f->engine, w->f->now_ms);
        wild_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons_are_true),
                                       cmocka_unit_test(test_asking_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
