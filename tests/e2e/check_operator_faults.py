#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drover operator` while something goes wrong: two of them at once, one frozen and thawed; watches
and writes behind a proxy that does harm. The end is the same, and no limit is exceeded."""

import collections
import os
import pathlib
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import audit
import binaries
import drover
import plane
import proxy
import rollout

NODES = 20
BUDGET = 5
USERS = ("drover", "drover-2")
LEASE = "3c22c1ae.nvidia.com"
LEASE_SECONDS = 15
VERSION = "1.0.0"
KINDS = ("nodes", "jobs", "skyhooks", "pods", None)  # that are harmed; None: all of them
STAGES = 2  # of a package without interrupt


def history(cluster, since=0):
    """Every write of both operators but those of the Lease, in the order of the server."""
    return [e for e in audit.entries(cluster.audit_file)
            if e["user"]["username"] in USERS and e["verb"] in audit.WRITES and
            e["objectRef"].get("resource") not in ("leases", "events")][since:]


def effective(entries, user):
    return [e for e in entries if e["user"]["username"] == user and
            e["responseStatus"].get("code", 0) < 300]


def holder(cluster):
    lease = cluster.api.find("leases", LEASE, rollout.SPACE)
    return lease["spec"].get("holderIdentity", "") if lease else ""


def wait_done(cluster, name, seconds):
    shown = rollout.wait_status(cluster, name, "complete", seconds)
    assert shown["completeNodes"] == f"{NODES}/{NODES}", shown["completeNodes"]
    for node in cluster.api.list("nodes"):
        state = rollout.note(node, f"nodeState_{name}") or ""
        assert '"state":"complete"' in state and f'"{name}-p|{VERSION}"' in state, state
        assert not node["spec"].get("unschedulable"), node["metadata"]["name"]
    return shown


def check_limits(cluster, name, since):
    most = rollout.most_claims(history(cluster, since), name)
    assert 1 <= most <= BUDGET, f"{most} claims at once"
    most = rollout.most_jobs(cluster, name)
    assert most <= BUDGET, f"{most} nodes with Jobs at once"


def begin(cluster, name):
    cluster.api.create("skyhooks", rollout.skyhook(
        name, {f"{name}-p": rollout.package(VERSION)}, deploymentPolicy="five"))


def frozen(cluster, program):
    """two at once, one frozen past its lease and thawed: no write of the stale one takes effect"""
    since = len(history(cluster))
    cluster.behave(**{f"frozen-p-{VERSION}": "succeed 2s"})
    with rollout.Operator(program, cluster, elect=True) as first:
        api.wait_until("the first leads", lambda: holder(cluster))
        leads = holder(cluster)
        second = rollout.Operator(program, cluster, user=USERS[1], elect=True)
        with second:
            begin(cluster, "frozen")
            api.wait_until("it has begun", lambda: effective(history(cluster, since), first.user))
            time.sleep(2)
            assert not effective(history(cluster, since), second.user), "the second one wrote"
            first.process.send_signal(signal.SIGSTOP)
            api.wait_until("the second leads", lambda: holder(cluster) not in ("", leads),
                           LEASE_SECONDS * 2)
            api.wait_until("the second writes",
                           lambda: effective(history(cluster, since), second.user))
            first.process.send_signal(signal.SIGCONT)
            wait_done(cluster, "frozen", 120)
            entries = history(cluster, since)
            took_over = entries.index(effective(entries, second.user)[0])
            late = effective(entries[took_over:], first.user)
            assert not late, [(e["verb"], e["objectRef"].get("name")) for e in late]
            check_limits(cluster, "frozen", since)
            # The lease is given back: the other one need not wait for it to run out.
            start = time.monotonic()
            assert second.stop() == 0
            api.wait_until("the first leads again", lambda: holder(cluster) != "")
            took = time.monotonic() - start
            assert took < LEASE_SECONDS - 3, f"after {took:.0f} s"


def application(cluster, name, node):
    cluster.api.create("pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": [{"name": "a", "image": "example.test/a:1"}]}},
                       "default")
    api.wait_until(f"{name} runs", lambda: cluster.api.get(
        "pods", name, "default")["status"].get("phase") == "Running")


def frozen_in_drain(cluster, program):
    """one frozen in mid-drain and thawed when the other has finished it: it evicts nobody"""
    for one in cluster.api.list("skyhooks"):
        cluster.api.delete("skyhooks", one["metadata"]["name"])
    node = cluster.add_nodes(1, prefix="drained", labels=lambda _: {"drained": "yes"})[0]
    application(cluster, "goes", node)
    application(cluster, "stays", node)
    cluster.api.create("poddisruptionbudgets", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "stays"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "stays"}}}}, "default")
    api.wait_until("the budget counts", lambda: cluster.api.get(
        "poddisruptionbudgets", "stays", "default").get("status", {}).get("currentHealthy") == 1)
    since = len(history(cluster))

    def asked(user):
        """How often a user tried to evict the pod that stays."""
        return sum(e["user"]["username"] == user and e["objectRef"]["name"] == "stays" and
                   audit.resource(e) == "pods/eviction" for e in history(cluster, since))
    with rollout.Operator(program, cluster, elect=True) as first:
        api.wait_until("the first leads", lambda: holder(cluster))
        leads = holder(cluster)
        with rollout.Operator(program, cluster, user=USERS[1], elect=True) as second:
            cluster.api.create("skyhooks", rollout.skyhook(
                "drained", {"drained-p": rollout.package(interrupt={
                    "type": "service", "services": ["a"]})},
                nodeSelectors={"matchLabels": {"drained": "yes"}}))
            api.wait_until("one is evicted, the other is not", lambda: asked(first.user) and
                           not cluster.api.find("pods", "goes", "default"))
            first.process.send_signal(signal.SIGSTOP)
            api.wait_until("the second leads", lambda: holder(cluster) not in ("", leads),
                           LEASE_SECONDS * 2)
            api.wait_until("the second goes on with the drain", lambda: asked(second.user))
            cluster.api.delete("poddisruptionbudgets", "stays", "default")
            rollout.wait_status(cluster, "drained", "complete")
            assert not cluster.api.get("nodes", node)["spec"].get("unschedulable")
            application(cluster, "later", node)
            first.process.send_signal(signal.SIGCONT)
            time.sleep(5)
            found = cluster.api.get("pods", "later", "default")
            assert not found["metadata"].get("deletionTimestamp"), "a pod was evicted"
            entries = history(cluster, since)
            took_over = entries.index(effective(entries, second.user)[0])
            late = effective(entries[took_over:], first.user)
            assert not late, [(e["verb"], e["objectRef"].get("name")) for e in late]


def watchers(cluster):
    """How often each user began to watch Jobs, the last kind that is watched."""
    return collections.Counter(e["user"]["username"] for e in audit.entries(cluster.audit_file)
                               if e["verb"] == "watch" and e["objectRef"]["resource"] == "jobs")


def unled(cluster, program):
    """two at once without election: preconditions alone keep the limits, and nothing runs twice"""
    since = len(history(cluster))
    earlier = watchers(cluster)
    with rollout.Operator(program, cluster), rollout.Operator(program, cluster, user=USERS[1]):
        api.wait_until("both watch", lambda: all(
            watchers(cluster)[user] > earlier[user] for user in USERS))
        begin(cluster, "unled")
        wait_done(cluster, "unled", 120)
        check_limits(cluster, "unled", since)
        # Whoever sees that another one writes reads everything anew: one may do most of the work.
        tried = {e["user"]["username"] for e in history(cluster, since)}
        assert tried == set(USERS), "one of them did nothing: this shows nothing"
        made = [e for e in history(cluster, since)
                if e["objectRef"]["resource"] == "jobs" and e["verb"] == "create" and
                e["responseStatus"]["code"] == 201]
        assert len(made) == STAGES * NODES, f"{len(made)} Jobs were made"


def harm(between, ended):
    """One after the other, again and again, as long as it runs."""
    old = between.cluster.api.ask("GET", "/api/v1/nodes?limit=1")["metadata"]["resourceVersion"]

    def behind(kind):
        between.rewind(kind, old)
        between.cut(kind, watches_only=True)
    turn = 0
    while not ended.wait(0.4):
        acts = (lambda kind: between.cut(kind, watches_only=True), between.expire,
                lambda _: between.duplicate(), lambda _: between.delay(None, 0.05),
                between.lose, lambda kind: between.lose(kind, before=True),
                lambda kind: between.refuse(kind, 2, 429, retry_after=1),
                lambda kind: between.refuse(kind, 2, 503), between.stall, behind)
        between.heal()
        # Each comes to another kind when it is its turn again.
        acts[turn % len(acts)](KINDS[(turn + turn // len(acts)) % len(KINDS)])
        turn += 1
    between.heal()


def harmed(cluster, program):
    """watches cut, stalled, late, expired, twice, behind, writes lost and refused: the same end"""
    since = len(history(cluster))
    cluster.behave(**{f"harmed-p-{VERSION}": "succeed 1s"})
    ended = threading.Event()
    with proxy.Proxy(cluster) as between:
        with rollout.Operator(program, cluster, server=between.url):
            thread = threading.Thread(target=harm, args=(between, ended))
            thread.start()
            try:
                begin(cluster, "harmed")
                time.sleep(12)
            finally:
                ended.set()
                thread.join()
            wait_done(cluster, "harmed", 120)
            watches = sum(n for (how, _), n in between.requests.items() if how == "WATCH")
            assert between.harmed and watches > 2 * len(KINDS), \
                f"little was harmed: {between.harmed}, {watches} watches"
            check_limits(cluster, "harmed", since)


def cut(cluster, program):
    """its connection is cut with all that is under way, again and again: the same end"""
    since = len(history(cluster))
    with proxy.Relay(cluster) as between:
        with rollout.Operator(program, cluster, server=between.url):
            begin(cluster, "cut")
            for _ in range(8):
                time.sleep(0.7)
                between.cut()
            assert rollout.status(cluster, "cut").get("status") != "complete", "cut too late"
            wait_done(cluster, "cut", 120)
            assert between.opened > 5, "it had nothing to connect anew for"
            check_limits(cluster, "cut", since)


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("the operator while something goes wrong", problem)
        return tap.done()
    program = drover.programs()[0]
    with plane.Cluster("check-operator-faults") as cluster:
        rollout.prepare(cluster, program)
        cluster.add_nodes(NODES)
        cluster.api.create("deploymentpolicies", rollout.policy("five", {"count": BUDGET}))
        for act in (frozen, unled, harmed, cut, frozen_in_drain):
            wrong = None
            try:
                act(cluster, program)
            except Exception as error:  # pylint: disable=broad-exception-caught
                wrong = f"{type(error).__name__}: {error}"
                cluster.fail()
            tap.test(act.__doc__, wrong)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
