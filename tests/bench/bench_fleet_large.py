#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_fleet_large.py BUILD_FOLDER [CLUSTERS BUNDLES]: one `drover operator --serve clusters` with
all Bundles on all Clusters (10,000 and 20) of a hub on a real API server.

The controller itself deploys all Bundles to the first Cluster; all others are made as that one is.
Then it starts anew, with everything there already, and at last all Bundles are updated at once:
first everybody gets the new version, then all agents answer. Memory and CPU are the kernel's.
Prints rows as bench.h describes. What else the machine does counts.
"""

import concurrent.futures
import copy
import multiprocessing
import pathlib
import socket
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e"), str(HERE.parent / "cluster"),
                str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import hub
import plane
from bench_operator import cpu_seconds, resident_mib

CLUSTERS, BUNDLES = 10000, 20
NOTHING = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}
WRITERS = 2    # processes
THREADS = 8    # of each
CHANGES = 400
RESTS = 50     # label changes
SETTLE_SECONDS = 7  # statuses of Clusters are written by then
START_SECONDS = 300
UPDATE_SECONDS = 1800
PASS_GOAL_MS, MEMORY_GOAL, CHANGE_GOAL = 10, 256, 50
KINDS = ("bundledeployments", "clusters")  # whose status is cloned, too


def row(name, value, unit, goal="-"):
    print(f"fleet large: {name}\t{value:.3f}\t{unit}\t{goal}", flush=True)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# ---- making

def set_status(cluster, apart):
    """Whether the status of the kinds is a part of its own, or comes along with the rest."""
    change = [{"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}}
              if apart else {"op": "remove", "path": "/spec/versions/0/subresources"}]
    for kind in KINDS:
        cluster.api.patch("customresourcedefinitions", f"{kind}.fleet.cattle.io", change,
                          how="json")


def clone(thing, was, now):
    """The same of another cluster."""
    made = copy.deepcopy(thing)
    meta = made["metadata"]
    for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        meta.pop(key, None)
    meta["namespace"] = meta["namespace"].replace(hub.home(was), hub.home(now))
    meta["name"] = meta["name"].replace(was, now)
    labels = meta.get("labels", {})
    for key, value in labels.items():
        labels[key] = now if value == was else value
    if made["kind"] == "Cluster":
        made["status"]["namespace"] = hub.home(now)
    return made


def make_some(reach, first, found, numbers):
    """In a process of its own."""
    client = api.Api(*reach)

    def make(number):
        name = f"c{number:04d}"
        client.create("namespaces", {"metadata": {"name": hub.home(name), "annotations": {
            "fleet.cattle.io/cluster-namespace": hub.SPACE, "fleet.cattle.io/cluster": name}}})
        for kind, thing in found:
            made = clone(thing, first, name)
            client.create(kind, made, made["metadata"]["namespace"])

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(make, numbers))


def reach_of(cluster, user):
    return cluster.port, cluster.folder / "pki" / "ca.crt", cluster.token(user)


def share(act, words, numbers):
    """Several processes do it, each for some of the numbers."""
    writers = [multiprocessing.Process(target=act, args=(*words, numbers[at::WRITERS]))
               for at in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        if writer.exitcode != 0:
            sys.exit("bench_fleet_large: not all could be written")


def make_others(cluster, first, count):
    found = [("clusters", cluster.api.get("clusters", first, hub.SPACE))] + [
        ("bundledeployments", one) for one in cluster.api.list("bundledeployments")]
    reach = reach_of(cluster, "admin")
    set_status(cluster, apart=False)
    time.sleep(SETTLE_SECONDS)
    share(make_some, (reach, first, found), range(1, count))
    set_status(cluster, apart=True)
    time.sleep(SETTLE_SECONDS)


def answer_some(reach, live, numbers):
    """All agents of some Clusters run the new versions. In a process of its own."""
    client = api.Api(*reach)

    def answer(number):
        for name, version in live.items():
            client.patch("bundledeployments", name, {"status": {
                "appliedDeploymentID": version}}, hub.home(f"c{number:04d}"), "status")

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(answer, numbers))


# ---- measuring

def is_ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
            return True
    except (urllib.error.URLError, OSError):
        return False


def start(operator, port):
    """Seconds until it decides."""
    began = time.monotonic()
    operator.start()
    while not is_ready(port):
        if time.monotonic() > began + START_SECONDS or operator.process.poll() is not None:
            sys.exit("bench_fleet_large: the operator is not ready")
        time.sleep(0.01)
    return time.monotonic() - began


def cost(pid, count, act):
    """CPU seconds of each."""
    time.sleep(SETTLE_SECONDS)
    before = cpu_seconds(pid)
    for number in range(count):
        act(number)
    time.sleep(SETTLE_SECONDS)
    return (cpu_seconds(pid) - before) / count


def measure(cluster, operator, port, clusters, bundles):
    title = f"{clusters:,} clusters, {bundles} Bundles"
    row(f"{title}: start until it decides", start(operator, port), "s")
    pid = operator.process.pid
    for number in range(bundles):
        hub.wait_ready(cluster, f"b{number:02d}", clusters, START_SECONDS)
    row(f"{title}: CPU of that start", cpu_seconds(pid), "s")
    row(f"{title}: peak resident", resident_mib(pid, "VmHWM"), "MiB", f"<= {MEMORY_GOAL}")
    agent = cluster.client(hub.AGENTS)

    def report(number, status):
        agent.patch("bundledeployments", f"b{number % bundles:02d}", {"status": status},
                    hub.home(f"c{number * 7 % clusters:04d}"), "status")

    def label(number):
        cluster.api.patch("clusters", f"c{number:04d}", {"metadata": {"labels": {
            "round": str(number)}}}, hub.SPACE)
    used = cost(pid, CHANGES, lambda number: report(number, {"release": f"default/b:{number}"}))
    row(f"{title}: CPU of one status change", used * 1e6, "us", f"<= {CHANGE_GOAL}")
    used = [cost(pid, CHANGES // 2, lambda number, is_ready=is_ready:
                 report(number, {"ready": is_ready})) for is_ready in (False, True)]
    row(f"{title}: CPU of one that others follow from", sum(used) / len(used) * 1e6, "us")
    row(f"{title}: CPU of a Cluster's new label, a pass of each Bundle",
        cost(pid, RESTS, label) * 1e3, "ms", f"<= {PASS_GOAL_MS}")
    row(f"{title}: resident", resident_mib(pid), "MiB", f"<= {MEMORY_GOAL}")


def update(cluster, operator, clusters, bundles):
    """All Bundles, with no limit: so is the most under way."""
    title = f"{clusters:,} clusters, {bundles} Bundles"
    pid, names = operator.process.pid, [f"b{number:02d}" for number in range(bundles)]
    before = cpu_seconds(pid)
    for name in names:
        cluster.api.patch("bundles", name, {"spec": {
            "resources": hub.resources(f"{name}-two"),
            "rolloutStrategy": {"maxUnavailable": "100%"}}}, hub.SPACE)

    def released():
        return all(cluster.api.get("bundles", name, hub.SPACE)["status"]["summary"].get(
            "waitApplied", 0) == clusters for name in names)
    api.wait_until("everybody has the new version", released, UPDATE_SECONDS)
    live = {name: cluster.api.get("bundledeployments", name, hub.home("c0000"))["spec"][
        "deploymentID"] for name in names}
    share(answer_some, (reach_of(cluster, hub.AGENTS), live), range(clusters))
    for name in names:
        hub.wait_ready(cluster, name, clusters, UPDATE_SECONDS)
    time.sleep(SETTLE_SECONDS)
    used = (cpu_seconds(pid) - before) / (clusters * bundles)
    row(f"{title}: CPU of the update of one deployment", used * 1e6, "us")
    row(f"{title}: peak resident with an update of all Bundles", resident_mib(pid, "VmHWM"), "MiB",
        f"<= {MEMORY_GOAL}")


def main():
    problem = binaries.missing()
    if problem:
        print(f"bench_fleet_large: {problem}", file=sys.stderr)
        return 1
    program = pathlib.Path(sys.argv[1]).resolve() / "drover"
    clusters, bundles = [int(word) for word in sys.argv[2:4]] or (CLUSTERS, BUNDLES)
    port = free_port()
    with plane.Cluster("bench-fleet-large", audit=NOTHING, scheduler=False) as cluster:
        hub.prepare(cluster, program)
        first = hub.add_clusters(cluster, 1)[0]
        operator = hub.operator(program, cluster, f"--probe-port=127.0.0.1:{port}")
        with operator, hub.Agents(cluster, 0):
            for number in range(bundles):
                cluster.api.create("bundles", hub.bundle(
                    f"b{number:02d}", f"n{number}", {"maxUnavailable": "10%"}), hub.SPACE)
            for number in range(bundles):
                hub.wait_ready(cluster, f"b{number:02d}", 1)
            time.sleep(SETTLE_SECONDS)  # the Cluster's status
        make_others(cluster, first, clusters)
        try:
            measure(cluster, operator, port, clusters, bundles)
            update(cluster, operator, clusters, bundles)
        finally:
            operator.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
