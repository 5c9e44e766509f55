/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles that reach clusters of other namespaces, by the labels of those. */
#include "support/herd.h"

typedef struct mapped {
    herd *h;
    bundle_namespace_mapping mapping;
    object map;
    kube_namespace spaces[2]; /* in turn: the engine knows the one before */
    object space_objects[2];
    label labels[2][2];
    size_t told;
} mapped;

/* The one cluster is elsewhere; the Bundle selects everybody. */
static mapped *mapped_new(const char *spaces)
{
    mapped *m = mem_zalloc(sizeof *m);
    m->h = herd_new(0);
    m->mapping.metadata = (metadata){.name = STR("m"), .namespace_ = STR(HERD_NAMESPACE)};
    m->mapping.bundle_selector.compiled = herd_selector(m->h, "");
    m->mapping.namespace_selector.compiled = spaces ? herd_selector(m->h, spaces) : NULL;
    m->map = object_of(KIND_BUNDLE_NAMESPACE_MAPPING, &m->mapping);
    for (size_t i = 0; i < 2; i++) {
        m->spaces[i].metadata.name = STR("elsewhere");
        m->space_objects[i] = object_of(KIND_NAMESPACE, &m->spaces[i]);
    }
    fact_target foreign = {.kind = TARGET_CLUSTER,
                           .name = STR("c1"),
                           .namespace_ = STR("elsewhere"),
                           .deploy_namespace = STR("home")};
    herd_document(m->h);
    herd_fact(m->h, (fact){.kind = FACT_TARGET, .target = foreign});
    return m;
}

static void mapped_free(mapped *m)
{
    herd_free(m->h);
    mem_free(m);
}

static void step(mapped *m)
{
    herd *h = m->h;
    h->out.len = 0;
    assert_true(engine_step(h->e, h->facts.at, h->facts.len, h->now_ms, &h->out));
    h->facts.len = 0;
}

/* Whether the cluster is a target, by pieces and as a whole. */
static bool is_target(mapped *m)
{
    deployment_view v;
    step(m);
    herd_verify(m->h);
    return engine_deployment(m->h->e, STR(HERD_CHANGE), STR("elsewhere/c1"), &v);
}

static void tell_label(mapped *m, const char *key, const char *value)
{
    size_t at = m->told++ % 2;
    m->labels[at][0] = (label){str_of(key), str_of(value)};
    m->spaces[at].metadata.labels = (label_set){m->labels[at], 1};
    herd_fact(m->h, (fact){.kind = FACT_DOCUMENT, .document = &m->space_objects[at]});
}

static void tell_mapping(mapped *m, fact_kind how)
{
    herd_fact(m->h, (fact){.kind = how, .document = &m->map});
}

static void test_a_label_comes_and_goes(void **state)
{
    (void)state;
    mapped *m = mapped_new("stage=prod");
    tell_mapping(m, FACT_DOCUMENT);
    assert_false(is_target(m));
    tell_label(m, "stage", "test");
    assert_false(is_target(m));
    tell_label(m, "stage", "prod");
    assert_true(is_target(m));
    herd_fact(m->h, (fact){.kind = FACT_DOCUMENT_GONE, .document = &m->space_objects[0]});
    assert_false(is_target(m));
    tell_label(m, "stage", "prod"); /* known before the mapping is, too */
    tell_mapping(m, FACT_DOCUMENT_GONE);
    assert_false(is_target(m));
    tell_mapping(m, FACT_DOCUMENT);
    assert_true(is_target(m));
    mapped_free(m);
}

/* Every namespace has its name for a label, also in a file that does not say so. */
static void test_names_select(void **state)
{
    (void)state;
    mapped *m = mapped_new("kubernetes.io/metadata.name=elsewhere");
    tell_mapping(m, FACT_DOCUMENT);
    assert_true(is_target(m));
    tell_label(m, "stage", "prod");
    assert_true(is_target(m));
    tell_label(m, "kubernetes.io/metadata.name", "elsewhere");
    assert_true(is_target(m));
    mapped_free(m);
}

static void test_without_a_selector_nothing_is_mapped(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        mapped *m = mapped_new(which == 0 ? NULL : "");
        if (which == 1)
            m->mapping.bundle_selector.compiled = NULL;
        tell_mapping(m, FACT_DOCUMENT);
        tell_label(m, "stage", "prod");
        assert_false(is_target(m));
        mapped_free(m);
    }
}

/* A mapping is about the Bundles of its own namespace. */
static void test_mappings_of_others(void **state)
{
    (void)state;
    mapped *m = mapped_new("");
    m->mapping.metadata.namespace_ = STR("elsewhere");
    tell_mapping(m, FACT_DOCUMENT);
    assert_false(is_target(m));
    mapped_free(m);
}

/* What selects nothing anew is not looked at: namespaces come and go for other reasons. */
static void test_other_labels_cost_nothing(void **state)
{
    (void)state;
    mapped *m = mapped_new("stage=prod");
    tell_mapping(m, FACT_DOCUMENT);
    assert_false(is_target(m));
    uint64_t before = engine_looked_at(m->h->e);
    tell_label(m, "owner", "somebody");
    step(m);
    assert_int_equal(engine_looked_at(m->h->e), before);
    mapped_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_label_comes_and_goes),
        cmocka_unit_test(test_names_select),
        cmocka_unit_test(test_without_a_selector_nothing_is_mapped),
        cmocka_unit_test(test_mappings_of_others),
        cmocka_unit_test(test_other_labels_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
