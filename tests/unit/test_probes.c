/* SPDX-License-Identifier: Apache-2.0 */
/* Probes over real sockets of this machine, on a loop that the test turns. */
#include "support/check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "operator/probes.h"

#define PORT_FIRST 42170
#define TURNS 2000

static int answer(void *context, str path, buf *out)
{
    (void)context;
    buf_addz(out, "ok");
    return str_eq(path, STR("/healthz")) ? 200 : 404;
}

/* On a port that nobody has. */
static probes *start(uv_loop_t *loop, const char *form, int *ret_port)
{
    err error;
    char address[64];
    probes *p = NULL;
    for (*ret_port = PORT_FIRST; !p && *ret_port < PORT_FIRST + 500; ++*ret_port) {
        snprintf(address, sizeof address, "%s:%d", form, *ret_port);
        p = probes_start(loop, str_of(address), (probe_handler){NULL, answer}, &error);
    }
    --*ret_port;
    return p;
}

static int connect_to(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(s >= 0);
    (void)connect(s, (const struct sockaddr *)&at, sizeof at);
    return s;
}

static void turn(uv_loop_t *loop)
{
    for (int i = 0; i < 20; i++) {
        uv_run(loop, UV_RUN_NOWAIT);
        usleep(500);
    }
}

static bool answers(uv_loop_t *loop, int port)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: it\r\n\r\n";
    char text[512] = "";
    int s = connect_to(port);
    bool sent = false;
    ssize_t got = -1;
    for (int i = 0; i < TURNS && got <= 0; i++) {
        uv_run(loop, UV_RUN_NOWAIT);
        sent = sent || send(s, request, sizeof request - 1, MSG_NOSIGNAL) > 0;
        got = recv(s, text, sizeof text - 1, 0);
        usleep(500);
    }
    close(s);
    return strstr(text, "HTTP/1.1 200 OK");
}

/* More connections than are held at once, none of which says a word: when they are gone, whoever
 * asks is answered. */
static void answers_after_too_many(void **state)
{
    (void)state;
    uv_loop_t loop;
    int port, sockets[PROBE_CONNECTIONS_MAX + 6];
    assert_int_equal(uv_loop_init(&loop), 0);
    probes *p = start(&loop, "127.0.0.1", &port);
    assert_non_null(p);
    assert_true(answers(&loop, port));
    for (size_t i = 0; i < COUNT_OF(sockets); i++) {
        sockets[i] = connect_to(port);
        turn(&loop);
    }
    for (size_t i = 0; i < COUNT_OF(sockets); i++)
        close(sockets[i]);
    turn(&loop);
    assert_true(answers(&loop, port));
    probes_stop(p);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* Without an address all of them are served, those of IPv4 too. */
static void serves_all_addresses(void **state)
{
    (void)state;
    uv_loop_t loop;
    int port;
    assert_int_equal(uv_loop_init(&loop), 0);
    probes *p = start(&loop, "", &port);
    assert_non_null(p);
    assert_true(answers(&loop, port));
    probes_stop(p);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void refuses_bad_addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a", ":a", "1.2.3:80", "[::1:80", ":70000"};
    uv_loop_t loop;
    err error;
    assert_int_equal(uv_loop_init(&loop), 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_msg(!probes_start(&loop, str_of(bad[i]), (probe_handler){NULL, answer}, &error), "%s",
                  bad[i]);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_after_too_many),
        cmocka_unit_test(serves_all_addresses),
        cmocka_unit_test(refuses_bad_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
