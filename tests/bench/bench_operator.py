#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_operator.py BUILD_FOLDER [WORKLOAD...]: `drover operator` on a real API server.

    A:N       one package without interrupt (2 stages), exponential 1 x 2, on N nodes
    B:N       three packages (8 stages, one depends on another, one restarts a service), budget
              10 %, on N nodes
    next:N    one node after the other, N of them: from a Job's end to the next Job
    large:N   N nodes that have ten packages: start, rest (elected, as users run it) and heartbeats

Without words: A:100 A:300 A:1000 B:100 B:1000 next:300 large:5000. Each has a cluster of its own.
Requests are counted in the API server's audit log, times are those of its entries, memory and CPU
are the kernel's. Prints rows as bench.h describes. What else the machine does counts.
"""

import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import socket
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("e2e", "cluster", "support")]
# pylint: disable=wrong-import-position
import audit
import binaries
import fleet
import plane
import rollout

WORKLOADS = ["A:100", "A:300", "A:1000", "B:100", "B:1000", "next:300", "large:5000"]
CONTROLLER = "system:kube-controller-manager"
NAME = "bench"
COMPLETE_SECONDS = 900
REST_SECONDS = 60
LEASE_SECONDS = 15  # after so long without a renewal it is another one's
HEARTBEAT_WRITERS = 4
PACKAGES = "abcdefghij"  # of a large fleet
MIB = 1024.0   # KiB
# The Jobs' own ends are of interest, too; and every request of the operator, reads included.
AUDIT = {**audit.POLICY, "rules": [
    {"level": "Request", "users": [CONTROLLER], "verbs": ["update", "patch"],
     "resources": [{"group": "batch", "resources": ["jobs/status"]}]},
    *audit.POLICY["rules"]]}


def row(name, value, unit, goal="-"):
    print(f"operator: {name}\t{value:.3f}\t{unit}\t{goal}", flush=True)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# ---- what the kernel counts

def cpu_seconds(pid):
    """Of all threads that there are, to the nanosecond."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return total / 1e9


def resident_mib(pid, key="VmRSS"):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / MIB
    raise KeyError(key)


# ---- what the audit log says

def moment(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def entries_since(cluster, offset):
    with open(cluster.audit_file, encoding="utf-8") as log:
        log.seek(offset)
        for line in log:
            entry = json.loads(line)
            watch = entry["verb"] == "watch"
            if entry["stage"] == ("ResponseStarted" if watch else "ResponseComplete"):
                yield entry


def of_operator(entries):
    return [e for e in entries if e["user"]["username"] == rollout.USER]


def writes(entries):
    return [e for e in of_operator(entries) if e["verb"] in audit.WRITES]


class Job:
    """One Job as the log tells it; times in seconds."""

    def __init__(self, node, created):
        self.node = node
        self.created = created  # the request arrived
        self.ended = None       # the word of the Job's controller arrived
        self.end_write = None   # and from when to when the server worked on it


def is_ended(status):
    return any(one["type"] in ("SuccessCriteriaMet", "Complete", "Failed") and
               one["status"] == "True" for one in status.get("conditions", []))


def jobs_of(entries):
    """By name, in the order of their creation."""
    found = {}
    for entry in entries:
        what, code = audit.resource(entry), entry["responseStatus"].get("code", 0)
        if what == "jobs" and entry["verb"] == "create" and code == 201:
            thing = entry["requestObject"]
            found[thing["metadata"]["name"]] = Job(
                thing["spec"]["template"]["spec"]["nodeName"],
                moment(entry["requestReceivedTimestamp"]))
        elif what == "jobs/status" and code == 200:
            job = found.get(entry["objectRef"]["name"])
            if job and not job.ended and is_ended(entry["requestObject"].get("status", {})):
                job.end_write = span(entry)
                job.ended = job.end_write[0]
    return found


def span(entry):
    return moment(entry["requestReceivedTimestamp"]), moment(entry["stageTimestamp"])


def within(spans, begin, end):
    """For how long between the two any of them lasted."""
    total, reached = 0, begin
    for first, last in sorted(spans):
        total += max(0, min(last, end) - max(first, reached))
        reached = max(reached, min(last, end))
    return total


def disturbances(entries):
    """Of every node: from its first Job's creation to its last one's end, also in between."""
    first, last = {}, {}
    for job in jobs_of(entries).values():
        first.setdefault(job.node, job.created)
        last[job.node] = max(last.get(job.node, 0), job.ended or math.inf)
    return sorted([(at, 1) for at in first.values()] + [(at, 0) for at in last.values()])


def most_at_once(entries):
    most = now = 0
    for _, begins in disturbances(entries):
        now += 1 if begins else -1
        most = max(most, now)
    return most


def most_beyond_batch(entries):
    """Batches of 1, 2, 4 and so on, one after the other: how many more there were at any time."""
    worst = begun = ended = 0
    for _, begins in disturbances(entries):
        begun += begins
        ended += not begins
        batch = 1 << int(math.log2(ended + 1))  # batches before it are 1 + 2 + ... = batch - 1
        worst = max(worst, begun - (2 * batch - 1))
    return worst


def most_claims_beyond_batch(entries):
    """The same of those that held a claim, as the operator's statuses said."""
    states = [state for told in rollout.batch_states(writes(entries), NAME)
              for state in told.values()]
    return max(rollout.claims(state) - (1 << (state["currentBatch"] - 1)) for state in states)


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(part / 100 * len(ordered)) - 1)]


# ---- a rollout and what it costs

class Bench:
    """A cluster of KWOK nodes and the operator in it."""

    def __init__(self, program, workload, nodes):
        self.workload = workload
        self.nodes = nodes
        self.title = f"{workload}, {nodes:,} nodes"
        self.cluster = plane.Cluster(f"bench-operator-{workload}", audit=AUDIT)
        self.probe = free_port()
        self.program = program
        self.operator = rollout.Operator(*self.like())

    def __enter__(self):
        self.cluster.__enter__()
        try:
            rollout.prepare(self.cluster, self.program)
        except BaseException:
            self.cluster.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *problem):
        if self.operator.process and self.operator.process.poll() is None:
            self.operator.stop()
        self.cluster.__exit__(*problem)

    def like(self):
        return self.program, self.cluster, f"--probe-port=127.0.0.1:{self.probe}"

    def elected(self):
        """One that asks for the Lease, as users run it."""
        return rollout.Operator(*self.like(), elect=True)

    def start(self, operator=None):
        """Seconds until it decides."""
        self.operator = operator or self.operator
        began = time.monotonic()
        self.operator.start()
        while not self.is_ready():
            if time.monotonic() > began + 120 or self.operator.process.poll() is not None:
                sys.exit("bench_operator: the operator is not ready")
            time.sleep(0.005)
        return time.monotonic() - began

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.probe}/readyz", timeout=10):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def pids(self):
        return self.operator.process.pid, self.cluster.processes["kube-apiserver"].pid

    def wait_complete(self):
        """Asks seldom: what the server does for that is none of the rollout's."""
        end = time.monotonic() + COMPLETE_SECONDS
        while True:
            found = self.cluster.api.get("skyhooks", NAME)
            status, generation = found.get("status", {}), found["metadata"]["generation"]
            if status.get("status") == "complete" and \
                    status.get("observedGeneration") == generation and \
                    status.get("completeNodes") == f"{self.nodes}/{self.nodes}":
                return
            if time.monotonic() > end:
                self.cluster.fail()
                sys.exit(f"bench_operator: {self.title}: not complete: "
                         f"{status.get('status')} {status.get('completeNodes')}")
            time.sleep(0.5)

    def measure(self, act):
        """What act begins, until the Skyhook is complete: the log's entries and CPU seconds of the
        operator and the API server."""
        self.cluster.wait_quiet()
        offset = self.cluster.audit_file.stat().st_size
        before = [cpu_seconds(pid) for pid in self.pids()]
        act()
        self.wait_complete()
        used = [cpu_seconds(pid) - was for pid, was in zip(self.pids(), before)]
        self.cluster.wait_quiet()
        return list(entries_since(self.cluster, offset)), used


def counted(bench, stages, phase, entries, goal="<= 3"):
    """Rows that every rollout has."""
    title = f"{bench.title}, {phase}"
    wrote = writes(entries)
    row(f"{title}: writes a node and stage", len(wrote) / (bench.nodes * stages), "", goal)
    row(f"{title}: failed writes", len(rollout.failed_writes(wrote)), "", "<= 0")
    for entry in wrote:
        if entry["responseStatus"].get("code", 0) >= 400:
            print(f"# failed: {entry['verb']} {audit.resource(entry)} "
                  f"{entry['objectRef'].get('name')} {entry['responseStatus']}", file=sys.stderr)
    jobs = len(jobs_of(entries))
    if jobs != bench.nodes * stages:
        bench.cluster.fail()
        sys.exit(f"bench_operator: {title}: {jobs} Jobs, not {bench.nodes * stages}")


def first_job(bench, entries):
    arrived = next(moment(e["stageTimestamp"]) for e in entries
                   if audit.resource(e) == "skyhooks" and e["verb"] == "create")
    row(f"{bench.title}: from the Skyhook's arrival to the first Job",
        next(iter(jobs_of(entries).values())).created - arrived, "s", "<= 1")


def upgrade(bench, names):
    versions = {name: {"version": "2.0.0"} for name in names}
    bench.cluster.api.patch("skyhooks", NAME, {"spec": {"packages": versions}})


def cost(bench, stages, phase, used, goal):
    """The operator's CPU for one node and stage."""
    operator, server = used
    title = f"{bench.title}, {phase}"
    row(f"{title}: CPU, of the API server's", 100 * operator / server, "%", goal)
    each = operator / (bench.nodes * stages) * 1e6
    row(f"{title}: CPU a node and stage", each, "us")
    return each


def paid(bench, stages, phase, act, goals=("<= 3", "<= 2")):
    """One rollout, and what it costs. goals: of writes, and of CPU."""
    entries, used = bench.measure(act)
    counted(bench, stages, phase, entries, goals[0])
    return entries, cost(bench, stages, phase, used, goals[1])


def install(bench, document, stages, goals=("<= 3", "<= 2")):
    bench.start()
    entries, each = paid(bench, stages, "install",
                         lambda: bench.cluster.api.create("skyhooks", document), goals)
    first_job(bench, entries)
    return entries, each


def within_budget(bench, phase, entries, budget):
    """Nobody is in flight without a claim, and the claims are no more than the budget."""
    title = f"{bench.title}, {phase}"
    row(f"{title}: most nodes at once", most_at_once(entries), "", f"<= {budget}")
    row(f"{title}: most claims at once", rollout.most_claims(writes(entries), NAME), "",
        f"<= {budget}")


def within_batch(bench, phase, entries):
    title = f"{bench.title}, {phase}"
    row(f"{title}: nodes beyond the batch", most_beyond_batch(entries), "", "<= 0")
    row(f"{title}: claims beyond the batch", most_claims_beyond_batch(entries), "", "<= 0")


def resident(bench):
    row(f"{bench.title}: peak resident", resident_mib(bench.pids()[0], "VmHWM"), "MiB",
        "<= 24" if bench.nodes <= 1000 else "-")


def workload_a(bench):
    bench.cluster.add_nodes(bench.nodes)
    bench.cluster.api.create("deploymentpolicies", rollout.policy(
        "doubling", {"percent": 100}, {"exponential": {"initialBatch": 1, "growthFactor": 2}}))
    entries, each = install(bench, rollout.skyhook(
        NAME, {"tune": rollout.package()}, deploymentPolicy="doubling"), 2)
    within_budget(bench, "install", entries, bench.nodes)
    within_batch(bench, "install", entries)
    entries, later = paid(bench, 2, "upgrade", lambda: upgrade(bench, ["tune"]))
    within_budget(bench, "upgrade", entries, bench.nodes)
    within_batch(bench, "upgrade", entries)
    resident(bench)
    return {"install": each, "upgrade": later}


def workload_b(bench):
    bench.cluster.add_nodes(bench.nodes)
    bench.cluster.api.create("deploymentpolicies", rollout.policy("tenth", {"percent": 10}))
    packages = {"base": rollout.package(),
                "on-top": rollout.package(dependsOn={"base": "1.0.0"}),
                "daemon": rollout.package(interrupt={"type": "service", "services": ["daemon"]})}
    entries, each = install(bench, rollout.skyhook(NAME, packages, deploymentPolicy="tenth"), 8)
    within_budget(bench, "install", entries, bench.nodes // 10)

    def newer():
        bench.cluster.api.patch("skyhooks", NAME, {"spec": {"packages": {
            "base": {"version": "2.0.0"}, "daemon": {"version": "2.0.0"},
            "on-top": {"version": "2.0.0", "dependsOn": {"base": "2.0.0"}}}}})

    entries, later = paid(bench, 8, "upgrade", newer)
    within_budget(bench, "upgrade", entries, bench.nodes // 10)
    resident(bench)
    return {"install": each, "upgrade": later}


def in_turn(bench):
    """One node at a time, so that nothing waits for anything but the operator. Between two stages
    the end is written on the node and with it the next attempt, then the Job is made; between two
    nodes the end, the claim and the attempt are three writes, each of which must be durable before
    the next: what the API server takes for them is not the operator's."""
    bench.cluster.add_nodes(bench.nodes)
    bench.cluster.api.create("deploymentpolicies", rollout.policy("one", {"count": 1}))
    # Every claim is a status of its own: three patches, two Jobs and that are 3 already, and each
    # batch of one has an Event. Nothing is done together, so that all of it costs more.
    entries, _ = install(bench, rollout.skyhook(NAME, {"tune": rollout.package()},
                                                deploymentPolicy="one"), 2, ("-", "-"))
    within_budget(bench, "install", entries, 1)
    jobs = list(jobs_of(entries).values())
    # What the next step waits for; nobody waits for an Event.
    waited = [span(e) for e in writes(entries) if audit.resource(e) != "events"]
    row(f"{bench.title}: the API server's own time for one of these writes, p50",
        1000 * percentile([last - first for first, last in waited], 50), "ms")
    row(f"{bench.title}: the API server's own time for one of these writes, p99",
        1000 * percentile([last - first for first, last in waited], 99), "ms")
    same, other = [], []
    for before, after in zip(jobs, jobs[1:]):
        whole = after.created - before.ended
        server = within([before.end_write, *waited], before.ended, after.created)
        (same if before.node == after.node else other).append((whole, server, whole - server))
    for name, values, goal in (("the next stage", same, "<= 50"), ("the next node", other, "-")):
        title = f"{bench.title}: from a Job's end to the Job of {name}"
        whole, server, own = ([1000 * one for one in part] for part in zip(*values))
        row(f"{title}, p50", percentile(whole, 50), "ms")
        row(f"{title}, p99", percentile(whole, 99), "ms", goal)
        row(f"{title}: the API server's writes in it, p50", percentile(server, 50), "ms")
        row(f"{title}: the API server's writes in it, p99", percentile(server, 99), "ms")
        row(f"{title}: all but these, p50", percentile(own, 50), "ms")
        row(f"{title}: all but these, p99", percentile(own, 99), "ms", "<= 25")


# ---- a large fleet

def clone_nodes(bench):
    """Every node has what the first got from a rollout."""
    first = bench.cluster.api.list("nodes")[0]
    marks = {kind: {key: text for key, text in first["metadata"].get(kind, {}).items()
                    if key.startswith(rollout.PREFIX)} for kind in ("annotations", "labels")}
    conditions = [one for one in first["status"]["conditions"]
                  if one["type"].startswith(rollout.PREFIX)]

    def create(number):
        node = fleet.node(f"node-{number:05d}", marks["labels"])
        node["metadata"]["annotations"] = marks["annotations"]
        node["status"]["conditions"] += conditions
        bench.cluster.api.create("nodes", node)

    with concurrent.futures.ThreadPoolExecutor(fleet.WRITERS) as pool:
        list(pool.map(create, range(1, bench.nodes)))


def beat(bench, names):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    change = {"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": now}]}}
    with concurrent.futures.ThreadPoolExecutor(HEARTBEAT_WRITERS) as pool:
        list(pool.map(lambda name: bench.cluster.api.patch("nodes", name, change, sub="status",
                                                           how="strategic"), names))


def at_rest(bench):
    bench.cluster.wait_quiet()
    offset = bench.cluster.audit_file.stat().st_size
    before = cpu_seconds(bench.pids()[0])
    time.sleep(REST_SECONDS)
    used = cpu_seconds(bench.pids()[0]) - before
    asked = [e for e in of_operator(entries_since(bench.cluster, offset)) if e["verb"] != "watch"]
    leases = sum(audit.resource(e) == "leases" for e in asked)
    row(f"{bench.title}: requests in {REST_SECONDS} s of rest, but watches and the Lease",
        len(asked) - leases, "", "<= 0")
    row(f"{bench.title}: requests for the Lease in these", leases, "",
        f">= {REST_SECONDS // LEASE_SECONDS}")
    row(f"{bench.title}: CPU at rest", 100 * used / REST_SECONDS, "%")


def heartbeats(bench):
    names = [f"node-{number:05d}" for number in range(bench.nodes)]
    beat(bench, names[:100])  # connections are made
    time.sleep(1)
    before = cpu_seconds(bench.pids()[0])
    beat(bench, names)
    time.sleep(1)
    row(f"{bench.title}: CPU of a node's heartbeat",
        1e6 * (cpu_seconds(bench.pids()[0]) - before) / len(names), "us", "<= 20")


def large(bench):
    bench.cluster.add_nodes(1)
    packages = {f"package-{letter}": rollout.package(configMap={"file": "x" * 100})
                for letter in PACKAGES}
    bench.cluster.api.create("skyhooks", rollout.skyhook(NAME, packages))
    bench.start()
    nodes, bench.nodes = bench.nodes, 1
    bench.wait_complete()
    bench.operator.stop()
    bench.nodes = nodes
    clone_nodes(bench)
    bench.start()
    bench.wait_complete()  # the status tells of all of them
    bench.cluster.wait_quiet()
    bench.operator.stop()
    offset = bench.cluster.audit_file.stat().st_size
    row(f"{bench.title}: start until it decides", bench.start(), "s", "<= 5")
    row(f"{bench.title}: CPU of that start", cpu_seconds(bench.pids()[0]), "s")
    bench.cluster.wait_quiet()
    wrote = writes(entries_since(bench.cluster, offset))
    row(f"{bench.title}: writes of that start", len(wrote), "")
    bench.operator.stop()
    bench.start(bench.elected())
    at_rest(bench)
    row(f"{bench.title}: resident", resident_mib(bench.pids()[0]), "MiB", "<= 64")
    row(f"{bench.title}: peak resident", resident_mib(bench.pids()[0], "VmHWM"), "MiB")
    heartbeats(bench)
    row(f"{bench.title}: resident after heartbeats", resident_mib(bench.pids()[0]), "MiB", "<= 64")


WORK = {"A": workload_a, "B": workload_b, "next": in_turn, "large": large}


def main():
    if len(sys.argv) < 2 or any(word.partition(":")[0] not in WORK for word in sys.argv[2:]):
        sys.exit(__doc__)
    problem = binaries.missing()
    if problem:
        sys.exit(f"bench_operator: {problem}")
    os.environ.setdefault("DROVER_BUILDS", sys.argv[1])
    program = (pathlib.Path(sys.argv[1]) / "drover").resolve()
    each = {}
    for word in sys.argv[2:] or WORKLOADS:
        name, _, nodes = word.partition(":")
        with Bench(program, name, int(nodes or 100)) as bench:
            each.setdefault(name, []).append((bench.nodes, WORK[name](bench)))
    for name in ("A", "B"):
        found = sorted(each.get(name, []), key=lambda one: one[0])
        for phase in ("install", "upgrade") if len(found) > 1 else ():
            row(f"{name}, {phase}: CPU a node and stage, {found[-1][0]:,} nodes to "
                f"{found[0][0]:,}", found[-1][1][phase] / found[0][1][phase], "", "<= 1.5")
    return 0


if __name__ == "__main__":
    sys.exit(main())
