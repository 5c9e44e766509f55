#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_serve.py BUILD_FOLDER: `drover serve` as its users meet it, over HTTP, on a real disk.

A bracket over ten thousand hosts with jobs that take no time, with and without waiting for the
disk; a start with a hundred thousand release targets; a thousand event streams; rest; and the API
under the load of wrk while a rollout runs. Prints rows as bench.h describes. Times are wall-clock:
what else the machine does counts.
"""

import json
import os
import pathlib
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"
HOSTS = 10000
MEMBERS = ["drain", "kernel", "kubelet", "agent", "uncordon"]
OTHERS = ["a", "b", "c", "d", "e"]
STREAMS = 1000
STREAM_EVENTS = 200
IDLE_SECONDS = 10
LOAD_SECONDS = 8
CONNECTIONS = 64
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGESIZE")

WRITES = """
local at = 0
function init() math.randomseed(os.time()) end
function setup(thread) setup_at = (setup_at or 0) + 1; thread:set("own", setup_at) end
function request()
  at = at + 1
  local host = string.format("host-%05d", (at * 7 + own * 5000) % HOSTS)
  return wrk.format("PUT", "/api/v1/resources/" .. host, nil, string.format(
    '{"apiVersion":"drover.dev/v1alpha1","kind":"Resource","metadata":{"name":"%s",' ..
    '"labels":{"ring":"%d"}},"spec":{"kind":"host","config":{"written":"%d-%d"}}}',
    host, at % 5, own, at))
end
"""


def row(name, value, unit, goal="-"):
    print(f"{name}\t{value:.3f}\t{unit}\t{goal}", flush=True)


# ---- documents ----

def document(kind, name, spec, labels=None):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": labels or {}},
            "spec": spec}


def hosts():
    return [document("Resource", f"host-{i:05d}",
                     {"kind": "host", "config": {"address": f"10.0.{i // 256}.{i % 256}"}},
                     {"ring": str(i % 5)}) for i in range(HOSTS)]


def deployments(names, layer, seconds):
    return [document("Deployment", name, {"resourceSelector": "true",
                                          "job": {"simulated": {"seconds": seconds}}},
                     {"layer": layer}) for name in names]


def versions(names, tag):
    return [document("Version", f"{name}-{tag}", {"deployment": name, "tag": tag})
            for name in names]


def policy():
    return document("RolloutPolicy", "nodes", {
        "selector": 'deployment.metadata["layer"] == "node"', "rules": [
            {"deploymentBracket": {
                "deploymentSelector": 'deployment.metadata["layer"] == "node"',
                "readinessMode": "immediate", "preSelector": 'deployment.name == "drain"',
                "postSelector": 'deployment.name == "uncordon"'}},
            {"deploymentDependency": {"dependsOn": 'deployment.name == "kernel"',
                                      "appliesTo": 'deployment.name == "kubelet"'}},
            {"resourceConcurrency": {"groupSelector": "true", "limitType": "percentage",
                                     "limitValue": 20}}]})


def apply(server, documents):
    answer = server.request("POST", "/api/v1/apply",
                            "\n".join(json.dumps(one) for one in documents), check=False)
    if answer.status != 200:
        sys.exit(f"bench_serve: apply: {answer}")


def put(server, one, kinds):
    answer = server.request("PUT", f"/api/v1/{kinds}/{one['metadata']['name']}", one, check=False)
    if answer.status not in (200, 201):
        sys.exit(f"bench_serve: put: {answer}")


def states(server):
    text = server.request("GET", "/metrics", check=False).body
    return {name: int(count) for name, count in
            re.findall(r'drover_release_targets\{state="(\w+)"\} (\d+)', text)}


def wait_done(server, count, seconds=300):
    end = time.monotonic() + seconds
    while states(server).get("done", 0) < count:
        if time.monotonic() > end:
            sys.exit(f"bench_serve: not done after {seconds} s: {states(server)}")
        time.sleep(0.2)


# ---- what the kernel counts ----

def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_kib(pid):
    pages = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * PAGE / 1024


def written_bytes(pid):
    text = pathlib.Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    return int(re.search(r"^wchar: (\d+)", text, re.M).group(1))


# ---- the rows ----

def bracket(server, durable):
    apply(server, hosts())
    apply(server, [document("Environment", "prod", {"resourceSelector": "true"}),
                   *deployments(MEMBERS, "node", 0), policy()])
    start = time.monotonic()
    apply(server, versions(MEMBERS, "1"))
    wait_done(server, HOSTS * len(MEMBERS))
    seconds = time.monotonic() - start
    row("serve: bracket of 5 on 10,000 hosts" + (", durable" if durable else ", store not synced"),
        seconds, "s", "<= 60" if durable else "-")
    row("serve: jobs" + (", durable" if durable else ", store not synced"),
        HOSTS * len(MEMBERS) / seconds, "1/s")


def start_again(server):
    apply(server, [*deployments(OTHERS, "other", 0), *versions(OTHERS, "1")])
    wait_done(server, HOSTS * (len(MEMBERS) + len(OTHERS)))
    server.stop()
    start = time.monotonic()
    server.start()
    while server.request("GET", "/readyz", check=False).status != 200:
        time.sleep(0.01)
    row("serve: start with 100,000 release targets", time.monotonic() - start, "s", "<= 3")
    row("serve: the CPU of that start", cpu_seconds(server.process.pid), "s")
    row("serve: resident after it", resident_kib(server.process.pid) / 1024, "MiB", "<= 300")


def idle(server):
    pid = server.process.pid
    time.sleep(1)
    cpu, written = cpu_seconds(pid), written_bytes(pid)
    time.sleep(IDLE_SECONDS)
    row("serve: CPU at rest", 100 * (cpu_seconds(pid) - cpu) / IDLE_SECONDS, "%", "<= 0.2")
    row("serve: written at rest", written_bytes(pid) - written, "bytes", "<= 0")


class Stream:
    def __init__(self, server, after):
        self.socket = server.connect()
        self.socket.sendall(f"GET /api/v1/events?after={after} HTTP/1.1\r\nHost: localhost\r\n"
                            f"Authorization: Bearer {server.token}\r\n\r\n".encode())
        self.socket.setblocking(False)
        self.rest = b""
        self.last = after
        self.good = True

    def take(self):
        data = self.socket.recv(1 << 18)
        self.good = self.good and len(data) > 0
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        for line in lines:
            if line.startswith(b"id: "):
                number = int(line[4:])
                self.good = self.good and number == self.last + 1
                self.last = number


def sequence_of(server):
    return server.request("GET", "/api/v1/info", check=False).json["sequence"]


def streams(server):
    pid = server.process.pid
    apply(server, [document("Deployment", "still", {"resourceSelector": "false",
                                                    "job": {"manual": {}}})])
    before, first = resident_kib(pid), sequence_of(server)
    listening = [Stream(server, first) for _ in range(STREAMS)]
    chosen = selectors.DefaultSelector()
    for one in listening:
        chosen.register(one.socket, selectors.EVENT_READ, one)
    start = time.monotonic()
    for number in range(STREAM_EVENTS):
        put(server, document("Version", f"still-{number}", {"deployment": "still",
                                                            "tag": str(number)}), "versions")
    last = sequence_of(server)
    while any(one.last < last and one.good for one in listening) and \
            time.monotonic() < start + 60:
        for key, _ in chosen.select(1):
            key.data.take()
    seconds = time.monotonic() - start
    whole = sum(one.good and one.last == last for one in listening)
    row("serve: event streams that got every event in order", whole, "", f">= {STREAMS}")
    row("serve: events sent to them", (last - first) * STREAMS / seconds, "1/s")
    row("serve: memory a stream", (resident_kib(pid) - before) / STREAMS, "KiB", "<= 64")
    for one in listening:
        one.socket.close()


def load(server, name, goal, script):
    """wrk against the server; a request that failed makes the rate 0."""
    words = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{LOAD_SECONDS}s", "--latency",
             "-H", f"Authorization: Bearer {server.token}"]
    if script:
        words += ["-s", str(script)]
    cpu = cpu_seconds(server.process.pid)
    run = subprocess.run([*words, f"http://127.0.0.1:{server.port}/api/v1/resources/host-00042"],
                         stdout=subprocess.PIPE, check=True)
    text = run.stdout.decode()
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    bad = re.search(r"(Non-2xx|Socket errors).*", text)
    row(f"serve: {name} during a rollout", rate, "1/s", goal)
    row(f"serve: {name} that failed", 1 if bad else 0, "", "<= 0")
    row(f"serve: {name}, in a second of the server's CPU, the rollout counted",
        rate * LOAD_SECONDS / (cpu_seconds(server.process.pid) - cpu), "1/s")
    if bad:
        print(f"bench_serve: {bad.group(0)}", file=sys.stderr)
    for part in ("50", "99"):
        value, unit = re.search(rf"\s{part}%\s+([\d.]+)(us|ms|s)", text).groups()
        row(f"serve: {name}, p{part}", float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit], "ms")


def under_load(server, folder):
    script = folder / "writes.lua"
    script.write_text(WRITES.replace("HOSTS", str(HOSTS)), encoding="ascii")
    apply(server, [*deployments(MEMBERS, "node", 1)])
    apply(server, versions(MEMBERS, "2"))
    load(server, "reads of one object", ">= 10000", None)
    load(server, "writes", ">= 500", script)
    busy = states(server)
    moving = busy.get("inFlight", 0) + busy.get("waiting", 0)
    row("serve: release targets not done after it", moving, "", ">= 1")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("wrk"):
        sys.exit("bench_serve: wrk is missing: scripts/setup bench")
    program = pathlib.Path(sys.argv[1]) / "drover"
    with tempfile.TemporaryDirectory(prefix="drover-bench-") as name:
        folder = pathlib.Path(name)
        os.mkdir(folder / "quick")
        os.mkdir(folder / "durable")
        with servers.Server(program, "--unsafe-no-sync", folder=folder / "quick") as server:
            bracket(server, False)
            start_again(server)
            idle(server)
            streams(server)
        with servers.Server(program, folder=folder / "durable") as server:
            bracket(server, True)
            under_load(server, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
