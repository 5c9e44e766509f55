#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles on the clusters of a hub: a real API server, `drover operator --serve clusters` with the
rights of its manifest, and agents that are played. Limits and writes are looked up in the audit
log. TAP."""

import os
import sys
import time

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import api
import binaries
import drover

CLUSTERS = 16
LATENCY = 0.3  # of agents, in seconds
CAP = 3
WRITES_MOST = 3  # a cluster and phase
STRATEGY = {"maxUnavailable": CAP}


def count_writes(cluster, since, phase):
    entries = hub.entries_since(cluster, since)
    found = hub.writes(entries)
    reads = [e for e in hub.of_operator(entries) if e["verb"] in ("get", "list")]
    print(f"# {phase}: {len(found) / CLUSTERS:.2f} writes a cluster, {len(reads)} reads",
          flush=True)
    refused = [(e["verb"], e["objectRef"], e["responseStatus"]) for e in found
               if not hub.is_done(e)]
    assert not refused, refused[:3]
    assert len(found) <= WRITES_MOST * CLUSTERS, f"{len(found)} writes"
    assert not reads, [e["requestURI"] for e in reads][:3]


def settle(cluster):
    """Statuses of clusters are written after a while."""
    time.sleep(5)
    cluster.wait_quiet()


def installs(cluster, _, __):
    """a first deployment reaches everybody, in few writes"""
    settle(cluster)
    since = hub.mark(cluster)
    cluster.api.create("bundles", hub.bundle("app", "one", STRATEGY), hub.SPACE)
    hub.wait_ready(cluster, "app", CLUSTERS)
    settle(cluster)
    count_writes(cluster, since, "first deployment")
    found = hub.deployments(cluster, "app")
    assert len(found) == CLUSTERS, len(found)
    for one in found.values():
        spec, labels = one["spec"], one["metadata"]["labels"]
        assert spec["deploymentID"] == spec["stagedDeploymentID"], spec
        content = spec["deploymentID"].split(":")[0]
        assert labels["fleet.cattle.io/content-name"] == content, labels
        assert cluster.api.find("contents", content), content
    shown = cluster.api.get("clusters", "c0003", hub.SPACE)["status"]
    assert shown["display"]["readyBundles"] == "1/1", shown


def updates(cluster, _, __):
    """an update never has more unavailable than the limit, in few writes"""
    since = hub.mark(cluster)
    hub.change(cluster, "app", "two")
    hub.wait_ready(cluster, "app", CLUSTERS)
    settle(cluster)
    count_writes(cluster, since, "update")
    seen = hub.replay(cluster, "app", since)
    assert 1 <= seen.most <= CAP, f"{seen.most} unavailable at once"
    assert sorted(seen.order) == sorted(set(seen.order)) and len(seen.order) == CLUSTERS


def survives(cluster, operator, _):
    """an update goes on when the operator is killed again and again, within the limit"""
    since = hub.mark(cluster)
    hub.change(cluster, "app", "three")
    for _ in range(3):
        time.sleep(0.5)
        operator.kill()
        operator.start()
    hub.wait_ready(cluster, "app", CLUSTERS)
    seen = hub.replay(cluster, "app", since)
    assert 1 <= seen.most <= CAP, f"{seen.most} unavailable at once"


def strict(cluster, _, __):
    """maxUnavailable 0 goes one by one and comes to its end"""
    cluster.api.patch("bundles", "app", {"spec": {"rolloutStrategy": {"maxUnavailable": 0}}},
                      hub.SPACE)
    since = hub.mark(cluster)
    hub.change(cluster, "app", "four")
    hub.wait_ready(cluster, "app", CLUSTERS)
    seen = hub.replay(cluster, "app", since)
    assert seen.most == 1, f"{seen.most} unavailable at once"
    assert seen.order == sorted(seen.order), seen.order
    cluster.api.patch("bundles", "app", {"spec": {"rolloutStrategy": STRATEGY}}, hub.SPACE)


def offline(cluster, _, agents):
    """clusters whose agents are away hold the limit, and are waited for"""
    away = [hub.home(f"c{number:04d}") for number in range(CAP)]
    agents.broken = {one: "silent" for one in away}
    hub.change(cluster, "app", "five")

    def held():
        shown = cluster.api.get("bundles", "app", hub.SPACE)["status"]
        return shown["summary"].get("waitApplied") == CAP and \
            shown["summary"].get("outOfSync") == CLUSTERS - CAP and shown["unavailable"] == CAP
    api.wait_until("everybody waits", held)
    for one in away:
        agents.wake(one)
    hub.wait_ready(cluster, "app", CLUSTERS)


def fails(cluster, _, agents):
    """a version that fails is held, and a fix goes through"""
    agents.broken = {"app": "fail"}
    hub.change(cluster, "app", "broken")

    def stuck():
        shown = cluster.api.get("bundles", "app", hub.SPACE)["status"]
        ready = next(c for c in shown["conditions"] if c["type"] == "Ready")
        return shown["summary"].get("errApplied") == CAP and "no such chart" in ready["message"]
    api.wait_until("the limit is held by failures", stuck)
    agents.broken = {}
    hub.change(cluster, "app", "six")
    hub.wait_ready(cluster, "app", CLUSTERS)


def paused(cluster, _, __):
    """a paused cluster is left out, and gets what it missed"""
    cluster.api.patch("clusters", "c0000", {"spec": {"paused": True}}, hub.SPACE)
    where = hub.home("c0000")
    api.wait_until("its deployment is paused", lambda: cluster.api.get(
        "bundledeployments", "app", where)["spec"].get("paused"))
    before = cluster.api.get("bundledeployments", "app", where)["spec"]["deploymentID"]
    hub.change(cluster, "app", "seven")

    def others():
        shown = cluster.api.get("bundles", "app", hub.SPACE)["status"]
        return shown["summary"]["ready"] == CLUSTERS - 1 and shown["summary"].get("outOfSync") == 1
    api.wait_until("all others are ready", others, 60)
    assert cluster.api.get("bundledeployments", "app", where)["spec"]["deploymentID"] == before
    cluster.api.patch("clusters", "c0000", {"spec": {"paused": None}}, hub.SPACE)
    hub.wait_ready(cluster, "app", CLUSTERS)


def manual(cluster, _, __):
    """manual partitions go one after the other; who is in none is left out"""
    rings = [{"name": name, "clusterSelector": {"matchLabels": {"ring": name}}}
             for name in ("canary", "rest")]
    since = hub.mark(cluster)
    cluster.api.create("bundles", hub.bundle("rings", "one", {
        "maxUnavailable": 0, "partitions": rings}), hub.SPACE)

    def done():
        shown = cluster.api.get("bundles", "rings", hub.SPACE).get("status", {})
        return shown.get("summary", {}).get("ready") == CLUSTERS - 2 and shown
    shown = api.wait_until("all in partitions are ready", done, 60)
    assert [p["name"] for p in shown["partitions"]] == ["canary", "rest"], shown
    assert [p["count"] for p in shown["partitions"]] == [4, CLUSTERS - 6], shown
    assert shown["summary"].get("pending") == 2, shown["summary"]
    order = hub.replay(cluster, "rings", since).order
    assert set(order[:4]) == {hub.home(f"c{n:04d}") for n in range(4)}, order[:4]


def leaves(cluster, _, __):
    """what is no target any more goes, and a Bundle with all its deployments"""
    cluster.api.patch("clusters", "c0005", {"metadata": {"labels": {"env": "test"}}}, hub.SPACE)
    api.wait_until("its deployments are gone", lambda: not cluster.api.list(
        "bundledeployments", hub.home("c0005")))
    hub.wait_ready(cluster, "app", CLUSTERS - 1)
    for name in ("app", "rings"):
        cluster.api.delete("bundles", name, hub.SPACE)
    api.wait_until("all are gone", lambda: not cluster.api.list("bundledeployments") and
                   not cluster.api.list("bundles", hub.SPACE))


def rests(cluster, _, __):
    """at rest nothing is written"""
    cluster.wait_quiet(6)
    since = hub.mark(cluster)
    time.sleep(1)
    more = hub.writes(hub.entries_since(cluster, since))
    assert not more, [(e["verb"], e["objectRef"]) for e in more]


def ring(number):
    return {"ring": "canary" if number < 4 else "none" if number < 6 else "rest"}


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("clusters of a hub", problem)
        return tap.done()
    program = drover.programs()[0]
    with hub.open_hub("check-fleet") as cluster:
        hub.prepare(cluster, program)
        hub.add_clusters(cluster, CLUSTERS, ring)
        with hub.operator(program, cluster) as operator, hub.Agents(cluster, LATENCY) as agents:
            for act in (installs, updates, survives, strict, offline, fails, paused, manual,
                        leaves, rests):
                wrong = None
                try:
                    act(cluster, operator, agents)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}"
                    cluster.fail()
                tap.test(act.__doc__, wrong)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
