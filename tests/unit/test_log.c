/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include "base/log.h"
#include "base/moment.h"

typedef struct capture {
    FILE *file;
    char *text;
    size_t len;
} capture;

static capture begin(log_level lowest)
{
    capture *c = calloc(1, sizeof *c);
    c->file = open_memstream(&c->text, &c->len);
    capture started = {c->file, (char *)c, 0};
    log_to(started.file, lowest);
    return started;
}

/* What was logged since begin; the caller frees it. */
static char *end(capture started)
{
    capture *c = (capture *)started.text;
    fclose(c->file);
    log_to(NULL, LOG_INFO);
    char *text = c->text;
    free(c);
    return text;
}

/* What stands behind the time. */
static const char *after_time(const char *line)
{
    const char *blank = strchr(line, ' ');
    assert_non_null(blank);
    moment m;
    err error = {""};
    check_msg(moment_parse((str){line, (size_t)(blank - line)}, &m, &error), "%s", error.text);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    assert_true(m.seconds <= now.tv_sec && m.seconds >= now.tv_sec - 60);
    assert_int_equal(m.nanos % 1000000, 0);
    return blank + 1;
}

static void test_line(void **state)
{
    (void)state;
    capture c = begin(LOG_DEBUG);
    log_line(LOG_INFO, "%d nodes, %s", 7, "ready");
    char *text = end(c);
    assert_string_equal(after_time(text), "info  7 nodes, ready\n");
    free(text);
}

static void test_levels(void **state)
{
    (void)state;
    static const struct {
        log_level lowest;
        const char *want;
    } rows[] = {
        {LOG_DEBUG, "debug|info|warn|error|"},
        {LOG_INFO, "info|warn|error|"},
        {LOG_WARN, "warn|error|"},
        {LOG_ERROR, "error|"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        capture c = begin(rows[i].lowest);
        log_line(LOG_DEBUG, "x");
        log_line(LOG_INFO, "x");
        log_line(LOG_WARN, "x");
        log_line(LOG_ERROR, "x");
        char *text = end(c);
        buf levels = BUF(1000);
        str rest = str_of(text);
        while (rest.len > 0) {
            str line = str_cut(&rest, '\n');
            str_cut(&line, ' ');
            buf_add(&levels, str_cut(&line, ' '));
            buf_addc(&levels, '|');
        }
        check_text(buf_str(&levels), rows[i].want);
        buf_done(&levels);
        free(text);
    }
}

static void test_escapes(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"two\nlines\r\t", "two\\x0alines\\x0d\\x09"},
        {"\x1B[31mred\x7F", "\\x1b[31mred\\x7f"},
        {"\xC3\xA4\xF0\x9F\x90\x91", "\xC3\xA4\xF0\x9F\x90\x91"},
        {"\xFF\xC3", "\\xff\\xc3"},
        {"\xC2\x9B", "\\xc2\\x9b"}, /* a control character of Latin-1 */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        capture c = begin(LOG_INFO);
        log_line(LOG_WARN, "%s", rows[i][0]);
        char *text = end(c);
        char want[100];
        snprintf(want, sizeof want, "warn  %s\n", rows[i][1]);
        assert_string_equal(after_time(text), want);
        free(text);
    }
}

static void test_limit(void **state)
{
    (void)state;
    static const char *const units[] = {"x", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x90\x91",
                                        "\x01"};
    for (size_t u = 0; u < COUNT_OF(units); u++) {
        size_t unit = strlen(units[u]);
        for (size_t count = LIMIT_LOG_LINE_BYTES / unit - 2;
             count < LIMIT_LOG_LINE_BYTES / unit + 3; count++) {
            char message[LIMIT_LOG_LINE_BYTES * 2];
            for (size_t i = 0; i < count; i++)
                memcpy(message + i * unit, units[u], unit);
            message[count * unit] = '\0';
            capture c = begin(LOG_INFO);
            log_line(LOG_INFO, "%s", message);
            char *text = end(c);
            bool cut = count * unit >= LIMIT_LOG_LINE_BYTES;
            assert_int_equal(str_ends(str_of(text), STR("...\n")), cut);
            assert_true(str_utf8(str_of(text)));
            assert_true(str_find(str_of(text), STR("\\x")) == SIZE_MAX || units[u][0] == '\x01');
            assert_true(strlen(text) < 4 * LIMIT_LOG_LINE_BYTES + 60);
            free(text);
        }
    }
    capture c = begin(LOG_INFO);
    log_line(LOG_INFO, CHECK_NOT_PRINTABLE); /* vsnprintf refuses it */
    char *text = end(c);
    assert_string_equal(after_time(text), "info  ...\n");
    free(text);
}

static void test_standard_error_by_default(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    log_to(NULL, LOG_INFO);
    log_line(LOG_ERROR, "to standard error");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    char text[200] = "";
    /* One write, so one read gets all of it. */
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(got > 0);
    assert_string_equal(after_time(text), "error to standard error\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_standard_error_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
