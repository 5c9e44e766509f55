#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_fleet.py BUILD_FOLDER [CLUSTERS...]: `drover operator --serve clusters` on an API server.

One Bundle, maxUnavailable 10 %, agents that are played and answer after one second: a first
deployment, an update, then changes of single statuses at rest. Without words: 50 200 500 1000. Each
size has a hub of its own. Requests are counted in the API server's audit log; memory and CPU are
the kernel's. The ideal time is that of an operator that takes none: rounds by the limits, each as
long as an agent takes. How many rounds there were is seen in the audit log: that the controller
decides, whatever else the machine does. How long they took, and CPU, the machine decides as well.
Prints rows as bench.h describes.
"""

import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e"), str(HERE.parent / "cluster"),
                str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import audit
import binaries
import hub
from bench_operator import cpu_seconds, resident_mib

SIZES = [50, 200, 500, 1000]
LATENCY = 1.0
MAX_NEW = 50
STATUS_CHANGES = 400
SETTLE_SECONDS = 7
COMPLETE_SECONDS = 900
WRITES_GOAL, CPU_GOAL, MEMORY_GOAL, CHANGE_GOAL = 3, 2, 32, 50
TIME_GOAL = 1.25  # of an update, which has many rounds


def row(title, name, value, unit, goal="-"):
    print(f"fleet {title}: {name}\t{value:.3f}\t{unit}\t{goal}", flush=True)


# ---- the ideal

def tenth(count):
    return max(1, count // 10)


def partitions(count):
    if count < 200:
        return [count]
    size = count // 4
    return [size] * (count // size) + ([count % size] if count % size else [])


def rounds(count, new):
    """Rounds of agents until all are done: after each, whatever was released is ready."""
    left = partitions(count)
    caps = [tenth(size) for size in left]
    total, made = tenth(count), 0
    while any(left):
        made += 1
        flight, released = [0] * len(left), True
        while released:
            released, room = False, MAX_NEW
            for index, waits in enumerate(left):
                if new:
                    some = min(waits, room) if flight[index] < caps[index] else 0
                else:
                    some = min(waits, room, caps[index] - flight[index], total - sum(flight))
                left[index] -= some
                flight[index] += some
                room -= some
                released = released or some > 0
                if left[index] + flight[index] > caps[index]:
                    break
    return made


def rounds_made(cluster, name, since):
    """So many there were: one ends when somebody who was released in it has answered, and the next
    begins with whoever is released after that."""
    made, answered, live, of = 0, True, {}, {}
    for number, thing in hub.stored(audit.entries(cluster.audit_file), name):
        where, now = thing["metadata"]["namespace"], thing["spec"].get("deploymentID")
        if live.get(where) != now and number >= since:
            made, answered = made + answered, False
            of[where] = made
        elif thing.get("status", {}).get("appliedDeploymentID") == now and of.get(where) == made:
            answered = True
        live[where] = now
    return made


# ---- phases

class Bench:
    """A hub, its agents and the operator."""

    def __init__(self, program, count):
        self.count = count
        self.program = program
        self.cluster = hub.open_hub(f"bench-fleet-{count}")
        self.operator = hub.operator(program, self.cluster)
        self.agents = None

    def pids(self):
        return self.operator.process.pid, self.cluster.processes["kube-apiserver"].pid

    def measure(self, title, new, act):
        title = f"{self.count:,}, {title}"
        since = hub.mark(self.cluster)
        before = [cpu_seconds(pid) for pid in self.pids()]
        began = time.monotonic()
        act()
        hub.wait_ready(self.cluster, "bench", self.count, COMPLETE_SECONDS)
        took = time.monotonic() - began
        time.sleep(SETTLE_SECONDS)
        used = [cpu_seconds(pid) - cpu for pid, cpu in zip(self.pids(), before)]
        entries = hub.entries_since(self.cluster, since)
        writes = hub.writes(entries)
        others = [e for e in hub.of_operator(entries)
                  if e not in writes and e["verb"] != "watch"]
        fewest = rounds(self.count, new)
        ideal = fewest * LATENCY
        row(title, "writes a cluster", len(writes) / self.count, "writes", f"<= {WRITES_GOAL}")
        row(title, "writes that failed", sum(not hub.is_done(e) for e in writes), "writes")
        row(title, "other requests", len(others), "requests", "<= 0")
        row(title, "CPU of the API server's", 100 * used[0] / used[1], "%", f"<= {CPU_GOAL}")
        row(title, "rounds", rounds_made(self.cluster, "bench", since), "rounds",
            f"<= {fewest}")
        row(title, "time", took, "s")
        row(title, "ideal time", ideal, "s")
        row(title, "time of the ideal", took / ideal, "x", "-" if new else f"<= {TIME_GOAL}")
        if not new:
            most = hub.replay(self.cluster, "bench", since).most
            row(title, "most unavailable", most, "clusters", f"<= {tenth(self.count)}")

    def change_each(self, where, status):
        """One status of each; returns the controller's seconds and its writes for one change."""
        pid, since = self.pids()[0], hub.mark(self.cluster)
        before = cpu_seconds(pid)
        for number, one in enumerate(where):
            self.agents.client.patch("bundledeployments", "bench", {"status": status(number)}, one,
                                     "status")
        time.sleep(SETTLE_SECONDS)
        writes = hub.writes(hub.entries_since(self.cluster, since))
        return (cpu_seconds(pid) - before) / len(where), len(writes) / len(where)

    def status_changes(self):
        """Single statuses at rest. What one costs the operator that nobody else is to be told of;
        and ready no more and ready again, with the statuses that follow from it."""
        title = f"{self.count:,}"
        names = [hub.home(f"c{number % self.count:04d}") for number in range(STATUS_CHANGES)]
        used, _ = self.change_each(names, lambda number: {"release": f"default/bench:{number}"})
        row(title, "CPU of one status change", used * 1e6, "us", f"<= {CHANGE_GOAL}")
        some = names[:min(self.count, STATUS_CHANGES // 2)]
        found = [self.change_each(some, lambda _, is_ready=is_ready: {"ready": is_ready})
                 for is_ready in (False, True)]
        used, writes = (sum(of) / len(of) for of in zip(*found))
        row(title, "CPU of one that others follow from", used * 1e6, "us")
        row(title, "writes of one that others follow from", writes, "writes", "<= 1.2")

    def run(self):
        with self.cluster:
            hub.prepare(self.cluster, self.program)
            hub.add_clusters(self.cluster, self.count)
            with self.operator, hub.Agents(self.cluster, LATENCY) as self.agents:
                time.sleep(SETTLE_SECONDS)
                self.cluster.wait_quiet()
                self.measure("first deployment", True, lambda: self.cluster.api.create(
                    "bundles", hub.bundle("bench", "one", {"maxUnavailable": "10%"}), hub.SPACE))
                self.measure("update", False,
                             lambda: hub.change(self.cluster, "bench", "two"))
                self.status_changes()
                row(f"{self.count:,}", "resident", resident_mib(self.pids()[0], "VmHWM"), "MiB",
                    f"<= {MEMORY_GOAL}")


def main():
    problem = binaries.missing()
    if problem:
        print(f"bench_fleet: {problem}", file=sys.stderr)
        return 1
    program = pathlib.Path(sys.argv[1]).resolve() / "drover"
    for count in [int(word) for word in sys.argv[2:]] or SIZES:
        Bench(program, count).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
