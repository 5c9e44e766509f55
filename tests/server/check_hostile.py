#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a server must bear: path tricks, foreign sites, many clients. TAP. Slow ones, and what each
operation must refuse, are in check_operations.py."""

import http.client
import json
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

CONNECTIONS = 10000
STREAMS_MOST = 4096
BODY_MOST = 32 * 1024 * 1024


def status_of(text):
    parts = text.split(" ", 2)
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0


def alive(server):
    return server.request("GET", "/api/v1/info", check=False).status == 200


def get(server, target, *lines, host="localhost"):
    head = [f"GET {target} HTTP/1.1", f"Host: {host}", "Connection: close",
            f"Authorization: Bearer {server.token}", *lines]
    return server.raw("\r\n".join(head) + "\r\n\r\n", timeout=10)


def paths(tap, server):
    server.request("PUT", "/api/v1/resources/plain", {
        "apiVersion": "drover.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "plain"},
        "spec": {"kind": "host"}})
    good = get(server, "/api/v1/resources/plain")
    tap.test("the plain path", None if status_of(good) == 200 else good)
    encoded = get(server, "/api/v1/resources/pl%61in")
    tap.test("an encoded letter is that letter", None if status_of(encoded) == 200 else encoded)
    for target, statuses in (
            ("/api/v1/resources/../resources/plain", {400}), ("/api/v1/resources/%2e%2e/plain",
            {400}),
            ("/api/v1/resources/%2E/plain", {400}), ("//api/v1/resources/plain", {400}),
            ("/api//v1/resources/plain", {400}), ("/api/v1/resources/plain/", {400}),
            ("/api/v1/resources/plain%00", {400}), ("/api/v1/resources/plain%00.json", {400}),
            ("/api/v1/resources/pl%0ain", {400}), ("/api/v1/resources/%", {400}),
            ("/api/v1/resources/%4", {400}), ("/api/v1/resources/%zz", {400}),
            ("/api/v1/resources/%ff", {400}), ("/api/v1/resources/%c0%af", {400}),
            ("/api/v1/resources/a%2Fb", {404}), ("/api/v1/resources/..%2f..%2fetc%2fpasswd", {404}),
            ("/a/b/c/d/e/f/g/h/i/j", {400}), ("/", {200, 404}), ("*", {400}),
            ("http://localhost/healthz", {400}),
            ("/api/v1/resources?limit=%", {400}), ("/api/v1/resources?%00=1", {400}),
            ("/api/v1/jobs/1%202", {404}), ("/api/v1/jobs/99999999999999999999", {404}),
            ("/api/v1/jobs/-1", {404}), ("/" + "a" * 9000, {414}), ("/" + "a" * 40000, {414})):
        answer = get(server, target)
        good = status_of(answer) in statuses and (
            status_of(answer) < 400 or '{"error":{"code":' in answer)
        tap.test(f"path {target[:50]}", None if good else answer[:500])
    for name, text in (("a zero byte", b"GET /heal\0thz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                       ("no HTTP", b"hello\r\n\r\n"), ("binary", bytes(range(256)) * 4),
                       ("a header that never ends", b"GET / HTTP/1.1\r\nX: " + b"a" * 100000)):
        answer = server.raw(text, timeout=3)
        tap.test(f"{name} gets no 2xx and no 5xx but the protocol's",
                 None if status_of(answer) // 100 in (0, 4) or status_of(answer) == 505 else answer)
    tap.test("alive after the paths", None if alive(server) else "it is not")


def sites(tap, server):
    for host, status in (("localhost", 200), (f"localhost:{server.port}", 200), ("127.0.0.1", 200),
                         ("[::1]:80", 200), ("LOCALHOST", 200), ("evil.example", 421),
                         ("localhost.evil.example", 421), ("evil.example:7070", 421), ("", 400),
                         ("a:b:c", 421), ("[::1", 421)):
        answer = get(server, "/healthz", host=host)
        tap.test(f"Host {host}", None if status_of(answer) == status else answer)
    for line, status in (("Origin: http://evil.example", 403), ("Origin: null", 403),
                         ("Origin: https://localhost", 403), ("Origin: http://localhost", 200),
                         ("Sec-Fetch-Site: cross-site", 403), ("Sec-Fetch-Site: same-site", 403),
                         ("Sec-Fetch-Site: same-origin", 200), ("Sec-Fetch-Site: none", 200)):
        answer = get(server, "/healthz", line)
        tap.test(line, None if status_of(answer) == status else answer)


def framings(tap, server):
    """Requests that a proxy in front could take for others."""
    token = f"Authorization: Bearer {server.token}\r\n"
    head = f"POST /api/v1/actions/pause HTTP/1.1\r\nHost: localhost\r\n{token}"
    second = f"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n{token}\r\n"
    for name, text in (
            ("two ends of the body", f"{head}Content-Length: 5\r\nTransfer-Encoding: chunked"
             f"\r\n\r\n0\r\n\r\n{second}"),
            ("two lengths", f"{head}Content-Length: 2\r\nContent-Length: 5\r\n\r\n{{}}{second}"),
            ("a length with a sign", f"{head}Content-Length: +2\r\n\r\n{{}}"),
            ("a length below zero", f"{head}Content-Length: -1\r\n\r\n{{}}"),
            ("another encoding", f"{head}Transfer-Encoding: gzip\r\n\r\n{second}"),
            ("nearly chunked", f"{head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
            ("a bad chunk", f"{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"),
            ("two hosts", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"),
            ("two tokens", f"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n{token}{token}\r\n"),
            ("a blank before the colon", "GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n"),
            ("no host", "GET /healthz HTTP/1.0\r\n\r\n")):
        answer = server.raw(text, timeout=5)
        # The connection is closed: what comes behind is never taken for a request.
        good = status_of(answer) == 400 and "HTTP/1.1 2" not in answer
        tap.test(f"framing: {name}", None if good else answer[:1000])
    both = server.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /readyz HTTP/1.1\r\n"
                      "Host: localhost\r\nConnection: close\r\n\r\n", timeout=5)
    tap.test("two good ones on a connection", None if both.count("HTTP/1.1 200") == 2 else both)


def bodies(tap, server):
    head = ("POST /api/v1/apply HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {server.token}"
            f"\r\n")
    announced = server.raw(head + f"Content-Length: {BODY_MOST + 1}\r\n\r\n", timeout=5)
    tap.test("a body that is announced too large",
        None if status_of(announced) == 413 else announced)
    nobody = server.raw("POST /api/v1/apply HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000"
                        "\r\n\r\n", timeout=5)
    tap.test("nobody's body is not waited for", None if status_of(nobody) == 401 else nobody)
    with server.connect() as connection:
        connection.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(34):
                connection.sendall(piece)
            connection.sendall(b"0\r\n\r\n")
            answer = connection.recv(65536).decode()
        except OSError as problem:
            answer = f"{problem}"
    tap.test("a body that grows too large", None if status_of(answer) == 413 else answer)
    bad = server.raw(head + "Content-Length: x\r\nConnection: close\r\n\r\n", timeout=5)
    tap.test("a length that is none", None if status_of(bad) in (0, 400) else bad)
    deep = server.request("POST", "/api/v1/apply", "[" * 100000)
    tap.test("a deep body", None if deep.status == 422 else repr(deep))
    twice = server.request("POST", "/api/v1/actions/pause", '{"deployment":"a","deployment":"b"}')
    tap.test("a key twice", None if twice.status == 400 else repr(twice))
    invalid = server.request("POST", "/api/v1/actions/pause", b'{"deployment":"\xff"}')
    tap.test("no UTF-8", None if invalid.status == 400 else repr(invalid))
    surplus = server.request("GET", "/api/v1/resources", "x")
    tap.test("a body where none belongs", None if surplus.status == 400 else repr(surplus))
    tap.test("alive after the bodies", None if alive(server) else "it is not")


def crowd(tap, server):
    """Ten thousand connections at once, each of which gets its answer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(CONNECTIONS, hard - 500)
    if wanted < CONNECTIONS:
        tap.skip(f"{CONNECTIONS} connections at once", f"a process may have only {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, wanted + 400)), hard))
    connections = []
    try:
        for _ in range(wanted):
            connections.append(socket.create_connection(("127.0.0.1", server.port), timeout=60))
        request = (f"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                   f"{server.token}\r\n\r\n").encode()
        for connection in connections:
            connection.sendall(request)
        good = sum(connection.recv(4096).startswith(b"HTTP/1.1 200") for connection in connections)
        tap.test(f"{wanted} connections at once", None if good == wanted else f"{good} answered")
    except OSError as problem:
        tap.test(f"{wanted} connections at once", f"{len(connections)}: {problem}")
    finally:
        for connection in connections:
            connection.close()
    tap.test("alive after the crowd", None if servers.wait_for(lambda: alive(server), 10) else "no")


def streams(tap, server):
    """As many streams as there may be; one more is told so, and a place that is free is given."""
    head = (f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {server.token}\r\n\r\n").encode()
    connections = []
    try:
        for _ in range(STREAMS_MOST):
            connections.append(server.connect())
            connections[-1].sendall(head)
        good = sum(connection.recv(4096).startswith(b"HTTP/1.1 200") for connection in connections)
        tap.test(f"{STREAMS_MOST} streams", None if good == STREAMS_MOST else f"{good} answered")
        more = server.raw(head, timeout=5)
        tap.test("one more is refused", None if status_of(more) == 503 else more)
        connections.pop().close()
        # Who is gone is found when something is written to it: an event, or the sign of life.
        again = servers.wait_for(lambda: server.request("POST", "/api/v1/actions/pause", {}) and
                                 status_of(server.raw(head, timeout=1)) == 200, 20)
        tap.test("a place that is free is given", None if again else "it is not")
    finally:
        for connection in connections:
            connection.close()
    tap.test("alive after the streams", None if alive(server) else "it is not")


def rate(tap, server):
    """Strangers are slowed down, those with a token are not."""
    request = (b"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n"
               b"Authorization: Bearer wrong\r\n\r\n")
    statuses, at_once = set(), 100 # faster than they come back, also on a machine with much to do
    for _ in range(60):
        connections = [server.connect() for _ in range(at_once)]
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            statuses.add(status_of(connection.recv(4096).decode()))
            connection.close()
        if 429 in statuses:
            break
    tap.test("guessing tokens ends in 429", None if statuses == {401, 429} else str(statuses))
    tap.test("a good token still works", None if alive(server) else "it does not")


def token_rate(tap, program):
    """A token has its own rate, and another one has another."""
    with servers.Server(program, "--rate", "50") as server:
        made = server.request("POST", "/api/v1/tokens", {"name": "busy", "role": "viewer"})
        busy = made.json["token"]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        counts, refused = {}, None
        for _ in range(400):
            connection.request("GET", "/api/v1/info", headers={"Authorization": f"Bearer {busy}"})
            answer = connection.getresponse()
            body = answer.read()
            counts[answer.status] = counts.get(answer.status, 0) + 1
            if answer.status == 429:  # the last may be answered again, where a machine is slow
                refused = json.loads(body)["error"]["code"], answer.headers["Retry-After"]
        connection.close()
        good = set(counts) == {200, 429} and counts[200] >= 100 and \
            refused == ("tooManyRequests", "1")
        tap.test("a token that asks too much gets 429", None if good else f"{counts} {refused}")
        tap.test("another token does not", None if alive(server) else "it does")
        again = servers.wait_for(lambda: server.request(
            "GET", "/api/v1/info", token=busy, check=False).status == 200, 5)
        tap.test("and soon it is answered again", None if again else "it is not")
        text = server.request("GET", "/metrics").body
        tap.test("refusals are counted", None if "drover_http_rate_refused_total 0" not in text
                 and "drover_http_rate_refused_total" in text else text)
    wrong = drover.run(program, "serve", "--rate", "0")
    tap.test("serve --rate 0", None if wrong.status == 2 and "--rate" in wrong.err else repr(wrong))


def addresses(tap, program):
    for words, message in ((["--listen", "0.0.0.0:0"], "--tls-cert"), (["--listen", "x"],
        "ADDRESS:PORT"),
                           (["--tls-cert", "/nope"], "go together"),
                           (["--listen", "127.0.0.1:99999"], "ADDRESS:PORT")):
        with tempfile.TemporaryDirectory() as folder:
            result = drover.run(program, "serve", "--data", folder + "/d", *words)
        good = result.status == 1 and message in result.err
        tap.test(f"serve {' '.join(words)}", None if good else repr(result))


def tls(tap, program):
    """The commands trust a certificate they are told to trust, and no other."""
    with tempfile.TemporaryDirectory(prefix="drover-test-") as folder:
        certificate, key = f"{folder}/cert.pem", f"{folder}/key.pem"
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
             certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=IP:127.0.0.1"], stderr=subprocess.DEVNULL, check=False)
        if made.returncode != 0:
            tap.test("TLS # SKIP there is no openssl")
            return
        data = f"{folder}/data"
        process = subprocess.Popen(
            [str(program), "serve", "--data", data, "--listen", "127.0.0.1:0", "--tls-cert",
             certificate, "--tls-key", key], stdout=subprocess.PIPE)
        line = process.stdout.readline().decode()
        tap.test("it listens with TLS", None if "https://127.0.0.1:" in line else line)
        good = drover.run(program, "token", "list", "--data", data, "--ca-file", certificate)
        tap.test("a certificate that is trusted", None if good.status == 0 else repr(good))
        bad = drover.run(program, "token", "list", "--data", data)
        tap.test("one that is not", None if bad.status == 3 else repr(bad))
        plain = drover.run(program, "token", "list", "--data", data, "--server",
                           line.split(" ")[4].rstrip(",").replace("https", "http"))
        tap.test("no plain text", None if plain.status != 0 else repr(plain))
        process.terminate()
        process.stdout.close()
        tap.test("it stops in order", None if process.wait(timeout=30) == 0 else "exit status")


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with servers.Server(program) as server:
            for part in (paths, sites, framings, bodies, rate, crowd, streams):
                part(tap, server)
            tap.test("openapi.json is still given",
                     None if json.loads(server.request("GET",
                         "/api/v1/openapi.json").body) else "no")
            with_it = drover.run(program, "serve", "--data", server.folder, "--listen",
                "127.0.0.1:0")
            tap.test("a data folder in use is refused",
                None if with_it.status == 1 else repr(with_it))
            tap.test("it stops in order", None if server.stop() == 0 else "exit status")
        token_rate(tap, program)
        addresses(tap, program)
        tls(tap, program)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
