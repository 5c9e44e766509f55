#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stream of events and what survives: resume, a thousand listeners, kill -9. TAP."""

import json
import pathlib
import resource
import selectors
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"
LISTENERS = 1000
STREAM_KIB_MOST = 64


class Listener:
    def __init__(self, server, after=None, header=False):
        self.socket = server.connect()
        query = f"?after={after}" if after is not None and not header else ""
        more = f"Last-Event-ID: {after}\r\n" if header else ""
        self.socket.sendall(f"GET /api/v1/events{query} HTTP/1.1\r\nHost: localhost\r\n{more}"
                            f"Authorization: Bearer {server.token}\r\n\r\n".encode())
        self.text = b""
        self.ids = []

    def take(self, data):
        """Reads ids as they come; the frames of a chunked body do no harm here."""
        self.text += data
        while True:
            at = self.text.find(b"\n")
            if at < 0:
                return
            line, self.text = self.text[:at], self.text[at + 1:]
            if line.startswith(b"id: "):
                self.ids.append(int(line[4:]))

    def read_until(self, last, seconds=20):
        end = time.monotonic() + seconds
        self.socket.settimeout(0.2)
        while (not self.ids or self.ids[-1] < last) and time.monotonic() < end:
            try:
                data = self.socket.recv(1 << 16)
                if not data:
                    break
                self.take(data)
            except TimeoutError:
                pass
        return self.ids

    def close(self):
        self.socket.close()


def fleet(count):
    documents = [{"apiVersion": API, "kind": "Environment", "metadata": {"name": "e"},
                  "spec": {"resourceSelector": "true"}},
                 {"apiVersion": API, "kind": "Deployment", "metadata": {"name": "d"},
                  "spec": {"resourceSelector": "true", "job": {"simulated": {"seconds": 0}}}}]
    documents += [{"apiVersion": API, "kind": "Resource", "metadata": {"name": f"r{i:04d}"},
                   "spec": {"kind": "host"}} for i in range(count)]
    return "\n".join(json.dumps(document) for document in documents)


def last_of(server):
    return server.request("GET", "/api/v1/info").json["sequence"]


def all_done(server, tag, count):
    def look():
        items = server.request("GET", "/api/v1/targets?state=done&limit=1000").json["items"]
        return sum(item["current"] == tag for item in items) == count
    return servers.wait_for(look, 60)


def resume(tap, server):
    server.request("POST", "/api/v1/apply", fleet(20))
    server.request("POST", "/api/v1/deployments/d/versions", {"tag": "1"})
    tap.test("a rollout is done", None if all_done(server, "1", 20) else "it is not")
    last = last_of(server)
    whole = Listener(server, 0)
    ids = whole.read_until(last)
    tap.test("from the start: every entry, in order",
             drover.difference(list(range(1, last + 1)), ids))
    for header in (False, True):
        part = Listener(server, last // 2, header)
        tap.test(f"resumed in the middle{' by Last-Event-ID' if header else ''}",
                 drover.difference(list(range(last // 2 + 1, last + 1)), part.read_until(last)))
        part.close()
    new = Listener(server)
    time.sleep(0.2)
    server.request("POST", "/api/v1/actions/pause", {"deployment": "d"})
    server.request("POST", "/api/v1/actions/resume", {"deployment": "d"})
    later = last_of(server)
    tap.test("without a place: only what is new",
             drover.difference(list(range(last + 1, later + 1)), new.read_until(later)))
    tap.test("and those that listened hear it, too",
             drover.difference(list(range(1, later + 1)), whole.read_until(later)))
    new.close()
    whole.close()
    bad = server.request("GET", "/api/v1/events", headers={"Last-Event-ID": "x"})
    tap.test("a place that is none", None if bad.status == 400 else repr(bad))


def resident_kib(server):
    for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def crowd(tap, server, measure):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, LISTENERS + 200)), hard))
    before = resident_kib(server)
    first = last_of(server)
    selector = selectors.DefaultSelector()
    listeners = [Listener(server, first) for _ in range(LISTENERS)]
    for listener in listeners:
        listener.socket.setblocking(False)
        selector.register(listener.socket, selectors.EVENT_READ, listener)
    server.request("POST", "/api/v1/deployments/d/versions", {"tag": "2"})
    all_done(server, "2", 20)
    last = last_of(server)
    end = time.monotonic() + 60
    while time.monotonic() < end and any(not l.ids or l.ids[-1] < last for l in listeners):
        for key, _ in selector.select(1):
            key.data.take(key.data.socket.recv(1 << 16))
    wanted = list(range(first + 1, last + 1))
    wrong = sum(listener.ids != wanted for listener in listeners)
    tap.test(f"{LISTENERS} listeners: {last - first} events each, all of them, in order",
             f"{wrong} have others" if wrong else None)
    each = (resident_kib(server) - before) / LISTENERS
    print(f"# {each:.1f} KiB resident a stream")
    if measure:
        tap.test("a stream takes little memory",
                 None if each < STREAM_KIB_MOST else f"{each:.1f} KiB")
    for listener in listeners:
        listener.close()
    gone = servers.wait_for(lambda: "drover_http_streams 0" in server.request("GET",
        "/metrics").body, 40)
    tap.test("closed streams are let go", None if gone else "they are not")


def picture(server):
    """Everything a client can see that must survive; times and sequence included."""
    lists = {}
    for path in ("resources", "environments", "deployments", "versions", "targets", "jobs",
        "tokens"):
        lists[path] = server.request("GET", f"/api/v1/{path}?limit=1000").json["items"]
    lists["journal"] = server.request("GET", "/api/v1/journal?limit=1000").json["items"]
    return lists


def killed(tap, server):
    before = picture(server)
    server.stop(signal.SIGKILL)
    server.start()
    after = picture(server)
    for name, items in before.items():
        tap.test(f"kill -9: {name} as they were", drover.difference(items, after[name]))
    server.request("POST", "/api/v1/deployments/d/versions", {"tag": "3"})
    tap.test("and it goes on", None if all_done(server, "3", 20) else "it does not")
    # In the middle of a rollout, again and again.
    for number in range(4, 9):
        server.request("POST", "/api/v1/deployments/d/versions", {"tag": str(number)})
        time.sleep(0.02 * (number - 4))
        server.stop(signal.SIGKILL)
        server.start()
        tap.test(f"killed in rollout {number}: it ends all the same",
                 None if all_done(server, str(number), 20) else "it does not")
    journal, after = [], 0
    while True:
        page = server.request("GET", f"/api/v1/journal?limit=1000&after={after}").json
        journal += page["items"]
        if "continue" not in page:
            break
        after = page["continue"]
    tap.test("the journal has no gap",
             drover.difference(list(range(1, len(journal) + 1)), [e["sequence"] for e in journal]))
    jobs = [e["entry"]["number"] for e in journal
            if e["kind"] == "decision" and e["entry"]["decision"] == "job"]
    tap.test("no job was decided twice", None if len(jobs) == len(set(jobs)) else "one was")


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with servers.Server(program) as server:
            resume(tap, server)
            crowd(tap, server, "asan" not in str(program))
            killed(tap, server)
            tap.test("no answer contradicts openapi.json", "\n".join(server.wrong))
            tap.test("it stops in order", None if server.stop() == 0 else "exit status")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
