#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drover operator --serve clusters` while something goes wrong, on a real API server: two of them
at once, elected or not, one frozen past its lease; a hub that is away for a minute; watches and
writes behind a proxy that does harm. The end is the same, and no limit is exceeded. TAP."""

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
import binaries
import drover
import hub
import proxy
import rollout

CLUSTERS = 20
CAP = 3
LATENCY = 0.5
AWAY_SECONDS = 60
USERS = ("drover", "drover-2")
LEASE = "3c22c1ae.nvidia.com"
LEASE_SECONDS = 15


def history(cluster, since):
    """Every write of both, in the order of the server."""
    return hub.of_users(hub.entries_since(cluster, since), USERS)


def effective(entries, user):
    return [e for e in entries if e["user"]["username"] == user and hub.is_done(e)]


def holder(cluster):
    lease = cluster.api.find("leases", LEASE, rollout.SPACE)
    return lease["spec"].get("holderIdentity", "") if lease else ""


def begin(cluster, name):
    """It is everywhere; from then on limits hold."""
    cluster.api.create("bundles", hub.bundle(name, "one", {"maxUnavailable": CAP}), hub.SPACE)
    hub.wait_ready(cluster, name, CLUSTERS)
    return hub.mark(cluster)


def check_end(cluster, name, since, seconds=120):
    hub.wait_ready(cluster, name, CLUSTERS, seconds)
    seen = hub.replay(cluster, name, since)
    assert 1 <= seen.most <= CAP, f"{seen.most} unavailable at once"
    assert len(seen.order) == len(set(seen.order)) == CLUSTERS, f"{len(seen.order)} releases"
    lives = {one["spec"]["deploymentID"] for one in hub.deployments(cluster, name).values()}
    assert len(lives) == 1, lives
    cluster.api.delete("bundles", name, hub.SPACE)
    api.wait_until("all is gone", lambda: not hub.deployments(cluster, name))


def frozen(cluster, program):
    """two at once, one frozen past its lease and thawed: no write of the stale one takes effect"""
    with hub.operator(program, cluster, elect=True) as first:
        api.wait_until("the first leads", lambda: holder(cluster))
        leads = holder(cluster)
        with hub.operator(program, cluster, elect=True, user=USERS[1]) as second:
            since = begin(cluster, "frozen")
            hub.change(cluster, "frozen", "two")
            api.wait_until("it has begun", lambda: effective(history(cluster, since), first.user))
            assert not effective(history(cluster, since), second.user), "the second one wrote"
            first.process.send_signal(signal.SIGSTOP)
            api.wait_until("the second leads", lambda: holder(cluster) not in ("", leads),
                           LEASE_SECONDS * 2)
            api.wait_until("the second writes",
                           lambda: effective(history(cluster, since), second.user))
            first.process.send_signal(signal.SIGCONT)
            hub.wait_ready(cluster, "frozen", CLUSTERS)
            entries = history(cluster, since)
            took_over = entries.index(effective(entries, second.user)[0])
            late = effective(entries[took_over:], first.user)
            assert not late, [(e["verb"], e["objectRef"]) for e in late]
            check_end(cluster, "frozen", since)


def unled(cluster, program):
    """two at once without election: preconditions alone keep the limit"""
    with hub.operator(program, cluster), hub.operator(program, cluster, user=USERS[1]):
        time.sleep(2)
        since = begin(cluster, "unled")
        hub.change(cluster, "unled", "two")
        hub.wait_ready(cluster, "unled", CLUSTERS)
        tried = {e["user"]["username"] for e in history(cluster, since)}
        assert tried == set(USERS), "one of them did nothing: this shows nothing"
        check_end(cluster, "unled", since)


def away(cluster, program):
    """a hub that is away for a minute in the middle of an update"""
    with proxy.Relay(cluster) as between:
        with hub.operator(program, cluster, server=between.url) as operator:
            since = begin(cluster, "away")
            hub.change(cluster, "away", "two")
            api.wait_until("it has begun", lambda: history(cluster, since))
            between.away()
            before = len(history(cluster, since))
            time.sleep(AWAY_SECONDS)
            assert len(history(cluster, since)) <= before + CAP, "it was not away"
            assert operator.process.poll() is None, "it ended"
            between.back()
            check_end(cluster, "away", since)


def harm(between, ended):
    """One after the other, again and again, as long as it runs."""
    kinds = ("bundledeployments", "bundles", "clusters", "contents", None)
    turn = 0
    while not ended.wait(0.4):
        kind = kinds[turn % len(kinds)]
        acts = (lambda kind: between.cut(kind, watches_only=True), between.expire,
                between.duplicate, lambda kind: between.delay(kind, 0.05),
                between.lose, lambda kind: between.lose(kind, before=True),
                lambda kind: between.refuse(kind, 2, 429, retry_after=1),
                lambda kind: between.refuse(kind, 2, 503), between.stall)
        between.heal()
        acts[turn % len(acts)](kind)
        turn += 1
    between.heal()


def harmed(cluster, program):
    """watches cut, stalled, late, expired, doubled, writes lost and refused: the same end"""
    ended = threading.Event()
    with proxy.Proxy(cluster) as between:
        with hub.operator(program, cluster, server=between.url):
            since = begin(cluster, "harmed")
            thread = threading.Thread(target=harm, args=(between, ended))
            thread.start()
            try:
                hub.change(cluster, "harmed", "two")
                time.sleep(12)
            finally:
                ended.set()
                thread.join()
            check_end(cluster, "harmed", since)


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("the controller of clusters while something goes wrong", problem)
        return tap.done()
    program = drover.programs()[0]
    with hub.open_hub("check-full-fleet-faults") as cluster:
        hub.prepare(cluster, program)
        rollout.grant(cluster)
        hub.add_clusters(cluster, CLUSTERS)
        with hub.Agents(cluster, LATENCY):
            for act in (frozen, unled, away, harmed):
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
