#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every operation must refuse, one by one as openapi.json lists them: a new row of the table
of operations is tested without a line here. No token, wrong roles, wrong methods, path tricks,
foreign sites, unknown parameters, bad and too large bodies, stale conditions, slow clients. TAP."""

import json
import pathlib
import re
import selectors
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import check_api as api  # pylint: disable=wrong-import-position
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FROB")
LEVELS = {"none": 0, "viewer": 1, "operator": 2, "admin": 3}
READERS = 5
READERS_ENTRIES = 60
BODY_MOST = 32 * 1024 * 1024
HEADER_MOST = 16 * 1024
ERROR_CODES = {400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "notFound",
               405: "methodNotAllowed", 412: "preconditionFailed", 413: "tooLarge",
               414: "pathTooLong", 431: "headerTooLarge",
               421: "misdirected", 422: "invalid"}


class Operation:
    def __init__(self, path, method, row):
        self.path = path
        self.method = method.upper()
        self.row = row
        self.id = row["operationId"]
        self.level = LEVELS[row["x-drover-role"]]
        self.worker = row.get("x-drover-worker", False)
        self.parameters = {p["name"]: p for p in row["parameters"] if p["in"] == "query"}
        self.headers = {p["name"]: p for p in row["parameters"] if p["in"] == "header"}
        self.body = row.get("requestBody", {}).get("content", {})
        # A real path with names that nothing has.
        self.real = re.sub(r"\{number\}", "987654321", re.sub(r"\{(?!number)\w+\}", "zz", path))


def operations(server):
    return [Operation(path, method, row) for path, item in server.openapi["paths"].items()
            for method, row in item.items()]


class Refusals:
    """Holds refusals to their form; problems are gathered by operation."""

    def __init__(self, tap, server):
        self.tap = tap
        self.server = server
        self.problems = []

    def expect(self, what, operation, statuses, method=None, path=None, body=None, **more):
        answer = self.server.request(method or operation.method, path or operation.real, body,
                                     **more)
        problem = self.judge(answer, statuses)
        if problem:
            self.problems.append(f"{operation.id}: {what}: {problem}: {answer!r}")
        return answer

    @staticmethod
    def judge(answer, statuses):
        if answer.status not in statuses:
            return f"allowed {sorted(statuses)}"
        if answer.headers.get("Content-Type") != "application/json":
            return "it is no JSON"
        error = answer.json.get("error", {})
        if error.get("code") != ERROR_CODES.get(answer.status, error.get("code")) and (
                "kind" not in answer.json):
            return "another code belongs to the status"
        if not error.get("message") or "path" not in error:
            return "message or path is missing"
        return None

    def say(self, name):
        self.tap.test(name, "\n".join(self.problems))
        self.problems = []


def tokens(server):
    made = {}
    for role in ("viewer", "operator", "worker"):
        answer = server.request("POST", "/api/v1/tokens", {"name": f"the-{role}", "role": role})
        made[role] = answer.json["token"]
    made["admin"] = server.token
    return made


def who_may(checks, every, keys):
    for operation in every:
        if operation.level == 0:
            continue
        for token in (None, "wrong", "Bearer", "x" * 4000):
            answer = checks.expect(f"the token {str(token)[:10]}", operation, {401}, token=token)
            if answer.headers.get("WWW-Authenticate") != "Bearer":
                checks.problems.append(f"{operation.id}: WWW-Authenticate is missing")
        for scheme in ("Basic !!!", "Basic eDp5", "Digest x", ""):
            checks.expect(f"Authorization: {scheme}", operation, {401}, token=None,
                          headers={"Authorization": scheme})
    checks.say("no token, or no good one: 401")
    for operation in every:
        for role, token in keys.items():
            level = LEVELS.get(role, 0)
            allowed = operation.worker if role == "worker" else level >= operation.level
            if operation.level == 0 or allowed:
                continue
            checks.expect(f"as {role}", operation, {403}, token=token)
    checks.say("a role that may not: 403")
    for operation in every:
        for role, token in keys.items():
            level = LEVELS.get(role, 0)
            allowed = operation.worker if role == "worker" else level >= operation.level
            if not allowed or operation.id in ("events", "backup"):
                continue
            answer = checks.server.request(operation.method, operation.real, token=token,
                                           headers={"fleet-lock-protocol": "true"})
            if answer.status in (401, 403) or answer.status >= 500:
                checks.problems.append(f"{operation.id}: as {role}: {answer!r}")
    checks.say("a role that may is not refused for its role")


def methods(checks, every):
    allowed = {}
    for operation in every:
        allowed.setdefault(operation.path, set()).add(operation.method)
    for operation in every:
        has = allowed[operation.path] | ({"HEAD"} if "GET" in allowed[operation.path] else set())
        for method in METHODS:
            if method in has:
                continue
            answer = checks.expect(method, operation, {405}, method=method)
            if set(answer.headers.get("Allow", "").split(", ")) != has:
                checks.problems.append(f"{operation.id}: {method}: Allow: {answer!r}")
    checks.say("wrong methods: 405, and what is allowed")


def paths(checks, every):
    for operation in every:
        real = operation.real
        for trick in (real + "/", "/" + real, real.replace("/", "//", 2)[1:] + "/x/..",
                      real + "/.", real + "/%2e%2e", real + "%00", real + "%0d%0aX:y",
                      real + "/%", real + "/%ff"):
            checks.expect(f"path {trick}", operation, {400}, path=trick)
        for trick in (real + "/%2e%2e%2fx", real.replace("/", "%2F")[3:], real.upper()):
            path = "/" + trick.removeprefix("/")
            if path != real:
                checks.expect(f"path {path}", operation, {404, 405}, path=path)
        checks.expect("a very long path", operation, {414}, path=real + "/" + "a" * 9000)
    checks.say("path tricks: 400 or 404")


def sites(checks, every):
    for operation in every:
        checks.expect("a foreign Host", operation, {421}, headers={"Host": "evil.example"})
        for name, value in (("Origin", "http://evil.example"), ("Origin", "null"),
                            ("Sec-Fetch-Site", "cross-site")):
            checks.expect(f"{name}: {value}", operation, {403}, headers={name: value})
    checks.say("foreign Host 421, other sites 403")


def parameters(checks, every):
    for operation in every:
        path = operation.real
        checks.expect("an unknown parameter", operation, {400}, path=f"{path}?frob=1")
        checks.expect("a bad escape", operation, {400}, path=f"{path}?a=%zz")
        for name, row in operation.parameters.items():
            schema = row["schema"]
            checks.expect(f"{name} twice", operation, {400}, path=f"{path}?{name}=1&{name}=1")
            bad = ["%00"]
            if schema["type"] == "integer":
                bad += ["x", "", "1.5", "99999999999999999999", str(schema["minimum"] - 1)]
            if schema["type"] == "boolean":
                bad += ["2", "yes"]
            if "enum" in schema:
                bad += ["frob"]
            for value in bad:
                checks.expect(f"{name}={value}", operation, {400}, path=f"{path}?{name}={value}")
    checks.say("parameters that are unknown, twice or wrong: 400")
    for operation in every:
        for name, row in operation.headers.items():
            if name == "Range":
                continue  # one that is not understood is not looked at
            for value in ("frob", "-1", "\"", "99999999999999999999"):
                checks.expect(f"{name}: {value}", operation, {400, 404} if not operation.body
                              else {400, 404, 422}, headers={name: value})
    checks.say("headers that are wrong")


def bodies(checks, every):
    for operation in every:
        if not operation.body:
            checks.expect("a body where none belongs", operation, {400}, body="{}")
            continue
        if "application/json" not in operation.body:
            continue
        headers = {"fleet-lock-protocol": "true"}
        for what, body in (("no JSON", "{"), ("a list", "[]"), ("text", '"x"'), ("nothing", ""),
                           ("a key twice", '{"name":"a","name":"b"}'),
                           ("no UTF-8", b'{"a":"\xff"}'), ("deep", "[" * 100000),
                           ("a zero", b"\0"), ("null", "null"),
                           ("an unknown field", {"frobnicate": 1})):
            # 404: what the path names is looked for first.
            checks.expect(what, operation, {400, 404, 422}, body=body, headers=headers)
    checks.say("bodies that are wrong: 400 or 422")


def sizes(checks, every):
    for operation in every:
        head = [f"{operation.method} {operation.real} HTTP/1.1", "Host: localhost",
                f"Authorization: Bearer {checks.server.token}"]
        if operation.body:
            text = "\r\n".join(head + [f"Content-Length: {BODY_MOST + 1}", "", ""])
            answer = checks.server.raw(text, timeout=10)
            if " 413 " not in answer.split("\r\n")[0] or '"tooLarge"' not in answer:
                checks.problems.append(f"{operation.id}: too large a body: {answer[:300]}")
        for many in (["X: " + "a" * HEADER_MOST], [f"X{i}: " + "a" * 90 for i in range(170)],
                     ["X: " + "a" * 2 * HEADER_MOST]):
            checks.expect("too large a header", operation, {431}, headers=dict(
                line.split(": ") for line in many))
    checks.say("too large a body 413, too large a header 431")


def dribble(chooser):
    for key in list(chooser.get_map().values()):
        try:
            key.fileobj.sendall(b"a")
        except OSError:
            pass  # its end is seen when it is read


def lazy_readers(checks):
    """Streams of more than any buffer holds, whose clients take nothing."""
    for number in range(READERS_ENTRIES):
        box = api.host(f"big-{number}")
        box["spec"]["config"] = {"much": "x" * 200000}
        checks.server.request("PUT", f"/api/v1/resources/big-{number}", box, check=False)
    readers = []
    for _ in range(READERS):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", checks.server.port))
        connection.sendall(f"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n"
                           f"Authorization: Bearer {checks.server.token}\r\n\r\n".encode())
        readers.append(connection)
    return readers


def open_streams(server):
    return int(re.search(r"^drover_http_streams (\d+)", server.request("GET", "/metrics").body,
                         re.MULTILINE).group(1))


def slow(checks, every):
    """Every operation at once, one with half a header, one with half a body, and then a byte a
    second for ever, and clients that ask and do not read: all are dropped."""
    chooser = selectors.DefaultSelector()
    readers = lazy_readers(checks)
    begun = servers.wait_for(lambda: open_streams(checks.server) == READERS, 10)
    checks.tap.test("streams that nobody reads", None if begun else open_streams(checks.server))
    start = time.monotonic()
    for operation in every:
        head = (f"{operation.method} {operation.real} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {checks.server.token}\r\n")
        texts = [head] + ([head + "Content-Length: 100\r\n\r\n{"] if operation.body else [])
        for text in texts:
            connection = checks.server.connect()
            connection.sendall(text.encode())
            chooser.register(connection, selectors.EVENT_READ, operation.id)
    longest = 0.0
    dribbled = start
    while chooser.get_map() and time.monotonic() - start < 50:
        for key, _ in chooser.select(0.5):
            after = time.monotonic() - start
            try:
                data = key.fileobj.recv(65536)
            except ConnectionResetError:
                data = b""
            if data or not 25 < after < 45:
                checks.problems.append(f"{key.data}: after {after:.1f} s: {data[:200]}")
            chooser.unregister(key.fileobj)
            key.fileobj.close()
        if time.monotonic() - dribbled > 1:
            dribbled = time.monotonic()
            dribble(chooser)
        before = time.monotonic()
        if checks.server.request("GET", "/healthz").status != 200:
            checks.problems.append("the server does not answer meanwhile")
        longest = max(longest, time.monotonic() - before)
    checks.problems += [f"{key.data}: not dropped" for key in list(chooser.get_map().values())]
    for key in list(chooser.get_map().values()):
        key.fileobj.close()
    chooser.close()
    checks.say("slow requests are dropped after 30 s")
    gone = servers.wait_for(lambda: open_streams(checks.server) == 0, 20)
    checks.tap.test("and so are clients that take nothing",
                    None if gone else open_streams(checks.server))
    for connection in readers:
        connection.close()
    checks.tap.test("nobody waits for them", None if longest < 2 else f"{longest:.2f} s")


def stale(checks, every):
    for plural, sample in api.SAMPLES.items():
        checks.server.request("PUT", f"/api/v1/{plural}/{sample['metadata']['name']}", sample)
    seen = 0
    for operation in every:
        plural = operation.path.split("/")[3] if operation.path.count("/") > 2 else ""
        if "If-Match" not in operation.headers:
            continue
        sample = api.SAMPLES[plural]
        seen += 1
        checks.expect("a stale If-Match", operation, {412}, path=operation.path.replace(
            "{name}", sample["metadata"]["name"]), headers={"If-Match": '"999999"'},
            body=sample if operation.body else None)
    checks.say("a stale If-Match: 412")
    checks.tap.test("put and delete of every kind have it",
                    None if seen == 2 * len(api.SAMPLES) else str(seen))


def audit(checks):
    """The journal has who did what."""
    server = checks.server
    token = server.request("POST", "/api/v1/tokens",
                           {"name": "olga", "role": "admin"}).json["token"]
    before = server.request("GET", "/api/v1/info").json["sequence"]
    box = api.host("audited", env="q")
    acts = [("PUT", "/api/v1/resources/audited", box), ("POST", "/api/v1/apply", api.many(
        api.environment("q"), api.deployment("by-hand", {"manual": {"instructions": "x"}}))),
            ("POST", "/api/v1/deployments/by-hand/versions", {"tag": "1"}),
            ("POST", "/api/v1/actions/pause", {"deployment": "by-hand"}),
            ("POST", "/api/v1/actions/freeze", {"name": "f"}),
            ("POST", "/api/v1/tokens", {"name": "short", "role": "viewer"}),
            ("DELETE", "/api/v1/tokens/short", None), ("GET", "/api/v1/backup", None),
            ("DELETE", "/api/v1/resources/audited", None)]
    for method, path, body in acts:
        answer = server.request(method, path, body, token=token, check=False)
        if answer.status >= 300:
            checks.problems.append(f"{method} {path}: {answer!r}")
    entries = server.request("GET", f"/api/v1/journal?after={before}&limit=1000").json["items"]
    mine = [json.dumps(entry["entry"]) for entry in entries if entry["who"] == "olga"]
    for words in (("audited",), ("by-hand",), ("by-hand-1",), ("pause",), ("freeze",),
                  ("tokenCreated", "short"), ("tokenRevoked", "short"), ("backup",)):
        if not any(all(word in entry for word in words) for entry in mine):
            checks.problems.append(f"nothing of hers has {words}: {mine}")
    if sum("audited" in entry for entry in mine) < 2:
        checks.problems.append(f"not both her writing and her deleting: {mine}")
    stored = (server.folder / "drover.db").read_bytes()
    stored += b"".join(path.read_bytes() for path in server.folder.glob("drover.db-*"))
    if token.encode() in stored or server.token.encode() in stored:
        checks.problems.append("the store has a token in the clear")
    if (server.folder / "admin-token").stat().st_mode & 0o777 != 0o600:
        checks.problems.append("others may read the administrator's token")
    checks.say("the journal has who did what, and the store no token")


def metrics(checks):
    made = subprocess.run([str(drover.ROOT / "scripts" / "test-tools"), "promtool"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if made.returncode != 0:
        checks.tap.skip("promtool check metrics", "promtool is not to be had here")
        return
    text = checks.server.request("GET", "/metrics").body
    judged = subprocess.run([made.stdout.decode().strip(), "check", "metrics"], check=False,
                            input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = judged.stdout.decode()
    checks.tap.test("promtool check metrics",
                    None if judged.returncode == 0 and not output.strip() else output)
    names = re.findall(r"^(\w+)[{ ]", text, re.MULTILINE)
    wrong = [name for name in names if not name.startswith("drover_")]
    checks.tap.test("every metric is drover_...", ", ".join(wrong) or None if names else "none")


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with servers.Server(program) as server:
            checks = Refusals(tap, server)
            every = operations(server)
            tap.test("there are operations", None if len(every) > 50 else str(len(every)))
            # A token for every role, before strangers use their rate up.
            keys = tokens(server)
            who_may(checks, every, keys)
            methods(checks, every)
            paths(checks, every)
            sites(checks, every)
            parameters(checks, every)
            bodies(checks, every)
            sizes(checks, every)
            stale(checks, every)
            slow(checks, every)
            audit(checks)
            metrics(checks)
            tap.test("no answer contradicts openapi.json", "\n".join(server.wrong))
            tap.test("it stops in order", None if server.stop() == 0 else "exit status")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
