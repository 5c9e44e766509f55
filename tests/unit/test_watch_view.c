/* SPDX-License-Identifier: Apache-2.0 */
/* What drover watch draws: the right things where there is little room. */
#include "support/check.h"

#include "cli/watch_view.h"

#define DEPLOYMENTS 12
#define NAME_BYTES 16

/* Of twelve deployments on two hosts each the last but one moves; one host has failed. */
static watch_fleet fleet_of(char names[DEPLOYMENTS][NAME_BYTES])
{
    watch_fleet f = {0};
    for (int i = 0; i < DEPLOYMENTS; i++) {
        snprintf(names[i], NAME_BYTES, "app-%02d", i);
        bool moves = i == DEPLOYMENTS - 2;
        watch_row r = {.deployment = str_of(names[i]),
                       .environment = STR("prod"),
                       .resource = STR("h1"),
                       .state = moves ? STR("inFlight") : STR("done"),
                       .current = STR("1"),
                       .wanted = moves ? STR("2") : STR("1"),
                       .why = moves ? STR("2 is under way") : STR_EMPTY};
        assert_true(vec_push(&f.rows, r));
        r.resource = STR("h2");
        r.state = moves ? STR("failed") : r.state;
        assert_true(vec_push(&f.rows, r));
    }
    return f;
}

static size_t lines_of(str text)
{
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == '\n';
    return count;
}

static void what_is_not_done_is_shown_first_where_room_is_short(void **state)
{
    (void)state;
    char names[DEPLOYMENTS][NAME_BYTES];
    watch_fleet f = fleet_of(names);
    for (size_t lines = 10; lines < 60; lines++) {
        watch_screen s = {.lines = lines, .columns = 100, .title = STR("drover")};
        buf out = BUF(65536);
        assert_int_equal(watch_draw(&out, &f, &s), 2);
        str text = buf_str(&out);
        check_msg(lines_of(text) <= lines, "%zu of %zu lines", lines_of(text), lines);
        check_msg(str_find(text, STR("app-10             prod         2")) != SIZE_MAX, "%.*s",
                  STR_ARG(text));
        buf_done(&out);
    }
    vec_done(&f.rows);
}

static void with_room_all_are_shown_by_name(void **state)
{
    (void)state;
    char names[DEPLOYMENTS][NAME_BYTES];
    watch_fleet f = fleet_of(names);
    watch_screen s = {.lines = 60, .columns = 100, .title = STR("drover")};
    buf out = BUF(65536);
    watch_draw(&out, &f, &s);
    size_t before = 0;
    for (int i = 0; i < DEPLOYMENTS; i++) {
        size_t at = str_find(buf_str(&out), str_of(names[i]));
        check_msg(at != SIZE_MAX && at >= before, "%s", names[i]);
        before = at;
    }
    buf_done(&out);
    vec_done(&f.rows);
}

static void the_cursor_stays_on_what_was_chosen(void **state)
{
    (void)state;
    watch_fleet f = {0};
    watch_screen s = {.lines = 60, .columns = 100};
    const char *names[] = {"h1", "h2", "h3", "h4"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_true(vec_push(&f.rows, (watch_row){.deployment = STR("app"),
                                                  .environment = STR("prod"),
                                                  .resource = str_of(names[i]),
                                                  .state = STR("waiting")}));
    watch_move(&f, &s, 2);
    watch_row on = *watch_chosen(&f, &s);
    check_text(on.resource, "h3");
    f.rows.at[0].state = STR("done"); /* it is above it no longer */
    watch_follow(&f, &s, &on);
    check_text(watch_chosen(&f, &s)->resource, "h3");
    f.rows.at[2].state = STR("inFlight"); /* those are shown first */
    watch_follow(&f, &s, &on);
    assert_int_equal(s.cursor, 0);
    check_text(watch_chosen(&f, &s)->resource, "h3");
    watch_move(&f, &s, 1);
    f.rows.at[2].state = STR("done");
    watch_follow(&f, &s, &on); /* it is gone: the cursor stays where it is */
    assert_int_equal(s.cursor, 1);
    vec_done(&f.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_done_is_shown_first_where_room_is_short),
        cmocka_unit_test(with_room_all_are_shown_by_name),
        cmocka_unit_test(the_cursor_stays_on_what_was_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
