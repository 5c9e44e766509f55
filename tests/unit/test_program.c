/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a program: turns, what is waited for, signals, and what probes are told. */
#include "support/check.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "operator/program.h"

#define PORT_FIRST 43170
#define ROUNDS 2000

typedef struct frame {
    program program;
    int turns, dues, ends;
    int64_t wait_ms;
    bool ready;
} frame;

static void turn(void *context)
{
    frame *f = context;
    f->turns++;
    program_wait(&f->program, f->wait_ms);
}

static void due(void *context)
{
    frame *f = context;
    if (++f->dues == 3)
        raise(SIGTERM);
}

static void end(void *context)
{
    frame *f = context;
    f->ends++;
    uv_stop(&f->program.loop);
}

static void metrics(void *context, buf *out)
{
    const frame *f = context;
    buf_addf(out, "turns %d\n", f->turns);
}

static const char *trouble(void *context)
{
    const frame *f = context;
    return f->ready ? NULL : "it is early";
}

static void open_frame(frame *f)
{
    err error = {0};
    *f = (frame){.wait_ms = 1};
    check_msg(
        program_open(&f->program, (program_handler){f, turn, due, end, metrics, trouble}, &error),
        "%s", error.text);
}

/* A turn comes before each wait, and both signals end it. */
static void test_turns_and_signals(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        frame f;
        open_frame(&f);
        f.wait_ms = i == 0 ? -5 : INT64_MAX; /* at once; and so long that only the signal ends it */
        if (i == 1)
            raise(signals[i]);
        uv_run(&f.program.loop, UV_RUN_DEFAULT);
        assert_int_equal(f.ends, 1);
        assert_int_equal(f.dues, i == 0 ? 3 : 0);
        assert_true(f.turns > f.dues);
        program_close(&f.program);
    }
}

/* What a probe gets, while the loop turns. */
static void ask(frame *f, int port, const char *path, char text[512])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    char request[128];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: it\r\n\r\n", path);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s >= 0);
    assert_int_equal(connect(s, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(s, request, (size_t)len, MSG_NOSIGNAL), len);
    ssize_t got = -1;
    for (int i = 0; i < ROUNDS && got <= 0; i++) {
        f->dues = 10; /* no more signals */
        uv_run(&f->program.loop, UV_RUN_NOWAIT);
        got = recv(s, text, 511, MSG_DONTWAIT);
        usleep(500);
    }
    text[got > 0 ? got : 0] = '\0';
    close(s);
}

static void test_probes(void **state)
{
    (void)state;
    frame f;
    char text[512], here[32], there[32];
    int port = PORT_FIRST;
    bool served = false;
    open_frame(&f);
    for (; !served && port < PORT_FIRST + 500; port += 2) {
        err error;
        snprintf(here, sizeof here, "127.0.0.1:%d", port);
        snprintf(there, sizeof there, "127.0.0.1:%d", port + 1);
        f.program.metrics = probes_stop(f.program.metrics);
        served = program_serve(&f.program, str_of(here), str_of(there), &error);
    }
    port -= 2;
    assert_true(served);
    static const struct {
        int of;
        const char *path;
        bool ready;
        const char *want;
    } rows[] = {
        {0, "/metrics", false, "turns "},     {0, "/healthz", false, " 404 "},
        {1, "/healthz", false, " 200 "},      {1, "/readyz", false, " 503 "},
        {1, "/readyz", false, "it is early"}, {1, "/readyz", true, " 200 "},
        {1, "/metrics", true, " 404 "},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        f.ready = rows[i].ready;
        ask(&f, port + rows[i].of, rows[i].path, text);
        check_has_at(str_of(text), str_of(rows[i].want), __FILE__, __LINE__);
    }
    program_close(&f.program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_and_signals),
        cmocka_unit_test(test_probes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
