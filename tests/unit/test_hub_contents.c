/* SPDX-License-Identifier: Apache-2.0 */
/* Contents: whoever is to read one finds it, and what nobody reads any more goes. */
#include "support/check.h"

#include "support/fake_hub.h"

#define CONTENTS HUB_API "/contents"
#define MINUTE_MS INT64_C(60000)
#define GRACE_MS (10 * MINUTE_MS)

static char first[FAKE_NAME_BYTES]; /* the Content of the first version */

static const char *content_of_live(fake *f, char ret[FAKE_NAME_BYTES])
{
    char home[FAKE_NAME_BYTES];
    str id = str_of(fake_text(f, fake_home("east", home), "app", "/spec/deploymentID"));
    str name = str_cut(&id, ':');
    snprintf(ret, FAKE_NAME_BYTES, "%.*s", STR_ARG(name));
    return ret;
}

static fake *begin(void)
{
    fake *f = fake_new();
    fake_add_cluster(f, "east", "");
    fake_create(f, FAKE_BUNDLES,
                "{\"metadata\":{\"name\":\"app\",\"namespace\":\"" FAKE_SPACE
                "\"},\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"x\"}],"
                "\"targets\":[{\"clusterSelector\":{}}]}}");
    fake_start(f);
    fake_run(f, MINUTE_MS);
    content_of_live(f, first);
    return f;
}

static void change(fake *f, const char *to)
{
    char text[128];
    snprintf(text, sizeof text,
             "{\"spec\":{\"resources\":[{\"name\":\"a.yaml\",\"content\":\"%s\"}]}}", to);
    fake_edit(f, FAKE_BUNDLES, "app", text);
}

static bool is_content(const kube_write *w)
{
    return str_eq(w->collection, STR(CONTENTS));
}

/* ---- going ---- */

/* The ten minutes begin when the last deployment has left it, however old it is. */
static void stays_for_a_while(void **state)
{
    (void)state;
    fake *f = begin();
    fake_run(f, 60 * MINUTE_MS);
    change(f, "y");
    fake_run(f, GRACE_MS - MINUTE_MS);
    assert_non_null(fake_find(f, CONTENTS, first));
    change(f, "x"); /* and back: it is needed again */
    fake_run(f, MINUTE_MS);
    change(f, "y");
    fake_run(f, GRACE_MS - MINUTE_MS);
    assert_non_null(fake_find(f, CONTENTS, first));
    fake_run(f, 2 * MINUTE_MS);
    assert_null(fake_find(f, CONTENTS, first));
    fake_free(f);
}

/* An edit that nobody ran leaves no Content behind. */
static void goes_without_having_been_run(void **state)
{
    (void)state;
    fake *f = begin();
    fake_edit(f, FAKE_CLUSTERS, "east", "{\"spec\":{\"paused\":true}}");
    change(f, "y");
    fake_run(f, MINUTE_MS);
    change(f, "z");
    fake_run(f, 2 * GRACE_MS);
    fake_edit(f, FAKE_CLUSTERS, "east", "{\"spec\":{\"paused\":false}}");
    fake_run(f, 2 * GRACE_MS);
    size_t left = 0;
    for (size_t i = 0; i < f->count; i++)
        left += strcmp(f->objects[i].collection, CONTENTS) == 0;
    assert_int_equal(left, 1);
    fake_free(f);
}

static bool deletes_content(fake *f, const kube_write *w)
{
    (void)f;
    return is_content(w);
}

/* The Bundle goes back to it while its deletion is on its way. */
static void comes_back(void **state)
{
    (void)state;
    char live[FAKE_NAME_BYTES];
    fake *f = begin();
    f->is_late = deletes_content;
    change(f, "y");
    fake_run(f, 2 * GRACE_MS);
    assert_true(f->late.waits);
    change(f, "x");
    fake_run(f, MINUTE_MS);
    assert_string_not_equal(content_of_live(f, live), first); /* it waits */
    fake_arrive(f);
    fake_run(f, MINUTE_MS);
    check_text(str_of(content_of_live(f, live)), first);
    assert_non_null(fake_find(f, CONTENTS, first));
    fake_free(f);
}

/* ---- coming ---- */

static write_outcome_kind answer;
static int troubles;

static fake_trouble troubles_creation(fake *f, const kube_write *w)
{
    (void)f;
    bool is = is_content(w) && w->verb == WRITE_CREATE && troubles > 0;
    troubles -= is;
    return (fake_trouble){is, answer, false};
}

static fake_trouble troubles_deletion(fake *f, const kube_write *w)
{
    (void)f;
    bool is = is_content(w) && w->verb == WRITE_DELETE && troubles > 0;
    troubles -= is;
    return (fake_trouble){is, answer, false};
}

/* What somebody deleted is made anew, even if that does not succeed at once. */
static void is_made_anew(void **state)
{
    (void)state;
    static const write_outcome_kind kinds[] = {WRITE_LATER, WRITE_AMBIGUOUS, WRITE_REFUSED};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        fake *f = begin();
        answer = kinds[i];
        troubles = 2;
        f->trouble = troubles_creation;
        fake_delete(f, CONTENTS, first);
        fake_run(f, 5 * MINUTE_MS);
        assert_int_equal(troubles, 0);
        assert_non_null(fake_find(f, CONTENTS, first));
        fake_free(f);
    }
}

static void is_made_before_the_first_release(void **state)
{
    (void)state;
    char live[FAKE_NAME_BYTES];
    fake *f = begin();
    answer = WRITE_LATER;
    troubles = 2;
    f->trouble = troubles_creation;
    change(f, "y");
    fake_run(f, 5 * MINUTE_MS);
    assert_string_not_equal(content_of_live(f, live), first);
    fake_free(f);
}

static void is_deleted_in_the_end(void **state)
{
    (void)state;
    static const write_outcome_kind kinds[] = {WRITE_LATER, WRITE_AMBIGUOUS, WRITE_REFUSED};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        fake *f = begin();
        answer = kinds[i];
        troubles = 2;
        f->trouble = troubles_deletion;
        change(f, "y");
        fake_run(f, 2 * GRACE_MS);
        assert_int_equal(troubles, 0);
        assert_null(fake_find(f, CONTENTS, first));
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_for_a_while),
        cmocka_unit_test(goes_without_having_been_run),
        cmocka_unit_test(comes_back),
        cmocka_unit_test(is_made_anew),
        cmocka_unit_test(is_made_before_the_first_release),
        cmocka_unit_test(is_deleted_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
