#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles on the clusters of a hub: a real API server, `drover operator --serve clusters` with the
rights of its manifest, and agents that are played. Limits and writes are looked up in the audit
log. TAP."""

import json
import os
import sys
import time

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import api
import binaries
import drover
import proxy

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


def repos(cluster):
    """A kind that hubs of Fleet's own have, as far as it matters here."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    cluster.api.create("customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gitrepos.fleet.cattle.io"},
        "spec": {"group": "fleet.cattle.io", "scope": "Namespaced",
                 "names": {"kind": "GitRepo", "plural": "gitrepos", "singular": "gitrepo"},
                 "versions": [{"name": "v1alpha1", "served": True, "storage": True,
                               "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": anything}}]}})
    api.GROUPS["gitrepos"] = hub.GROUP

    def served():
        try:
            return cluster.api.list("gitrepos") is not None
        except api.ApiError:
            return False
    api.wait_until("GitRepos are served", served)
    cluster.api.create("gitrepos", {"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "GitRepo",
                                    "metadata": {"name": "repo", "namespace": hub.SPACE},
                                    "spec": {}}, hub.SPACE)


def summed(cluster, _, __):
    """a GitRepo says how far the Bundles that were made from it are"""
    cluster.api.patch("bundles", "app", {"metadata": {"labels": {
        "fleet.cattle.io/repo-name": "repo"}}}, hub.SPACE)

    def shown():
        status = cluster.api.get("gitrepos", "repo", hub.SPACE).get("status", {})
        return status.get("readyClusters") == CLUSTERS and status
    status = api.wait_until("the GitRepo is ready everywhere", shown)
    assert status["desiredReadyClusters"] == CLUSTERS, status
    assert status["summary"]["ready"] == CLUSTERS, status
    assert status["display"]["readyBundleDeployments"] == f"{CLUSTERS}/{CLUSTERS}", status
    found = hub.deployments(cluster, "app").values()
    assert all(one["metadata"]["labels"]["fleet.cattle.io/repo-name"] == "repo"
               for one in found), "a deployment has no label of it"


def selects(kind, name, space, **members):
    return {"apiVersion": "fleet.cattle.io/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": space}, **members}


def grouped(cluster, _, __):
    """a ClusterGroup is a target and sums up its clusters; its edit takes effect at once"""
    def labelled(value):
        return {"selector": {"matchLabels": {"ring": value}}}
    cluster.api.create("clustergroups", selects("ClusterGroup", "ring", hub.SPACE,
                                                spec=labelled("canary")), hub.SPACE)
    document = hub.bundle("grouped", "one")
    document["spec"]["targets"] = [{"clusterGroup": "ring"}]
    cluster.api.create("bundles", document, hub.SPACE)
    hub.wait_ready(cluster, "grouped", 4)

    def summed_up(count):
        shown = cluster.api.get("clustergroups", "ring", hub.SPACE).get("status", {})
        return shown.get("clusterCount") == count and shown.get("nonReadyClusterCount") == 0 and \
            shown["display"]["readyClusters"] == f"{count}/{count}" and \
            shown["summary"]["ready"] == shown["summary"]["desiredReady"] >= count
    api.wait_until("the group is ready", lambda: summed_up(4))
    cluster.api.patch("clustergroups", "ring", {"spec": labelled("none")}, hub.SPACE)
    hub.wait_ready(cluster, "grouped", 2)
    assert set(hub.deployments(cluster, "grouped")) == {hub.home("c0004"), hub.home("c0005")}
    api.wait_until("the group is the other two", lambda: summed_up(2))
    cluster.api.delete("clustergroups", "ring", hub.SPACE)
    api.wait_until("nobody is a target", lambda: not hub.deployments(cluster, "grouped"))
    cluster.api.delete("bundles", "grouped", hub.SPACE)


def mapped(cluster, _, __):
    """a Bundle of another namespace reaches clusters by a BundleNamespaceMapping, and only by it"""
    space, name = "team", "mapped"
    cluster.api.create("namespaces", {"metadata": {"name": space}})
    document = hub.bundle(name, "one", labels={"ring": "canary"})
    document["metadata"].update(namespace=space, labels={"team": "a"})
    cluster.api.create("bundles", document, space)
    cluster.wait_quiet()
    assert not hub.deployments(cluster, name)
    cluster.api.create("bundlenamespacemappings", selects(
        "BundleNamespaceMapping", "all", space, bundleSelector={"matchLabels": {"team": "a"}},
        namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": hub.SPACE}}), space)

    def ready():
        found = hub.deployments(cluster, name).values()
        return len(found) == 4 and all(one.get("status", {}).get("ready") for one in found)
    api.wait_until("it is ready on four clusters", ready)
    cluster.api.delete("bundlenamespacemappings", "all", space)
    api.wait_until("it is gone", lambda: not hub.deployments(cluster, name))
    cluster.api.delete("bundles", name, space)


def ask(cluster, *words):
    result = drover.run(drover.programs()[0], *words, f"--kubeconfig={cluster.kubeconfig()}")
    assert result.status == 0, f"{' '.join(words)}: {result}"
    return result.out


def asked(cluster, _, agents):
    """a person approves a partition, and resumes after a halt; plan and explain know both"""
    rings = [{"name": "canary", "clusterSelector": {"matchLabels": {"ring": "canary"}}},
             {"name": "rest", "approval": True,
              "clusterSelector": {"matchLabels": {"ring": "rest"}}}]
    whole = f"{hub.SPACE}/asked"
    cluster.api.create("bundles", hub.bundle("asked", "one", {
        "maxUnavailable": 2, "failureThreshold": 1, "partitions": rings}), hub.SPACE)

    def ready(count, **others):
        def there():
            found = cluster.api.get("bundles", "asked", hub.SPACE)
            counts = found.get("status", {}).get("summary", {})
            return counts.get("ready") == count and \
                all(counts.get(key, 0) == others[key] for key in others) and found
        return api.wait_until(f"{count} clusters are ready, {others}", there)
    ready(4, pending=CLUSTERS - 4)
    why = json.loads(ask(cluster, "explain", "c0010", "--change", whole, "-o", "json"))
    assert [r["rule"] for r in why["reasons"]] == ["approval"], why
    ask(cluster, "approve", "--partition", "rest", "--bundle", whole)
    found = ready(CLUSTERS - 2, pending=2)
    assert "drover.dev/acts" not in found["metadata"]["annotations"], found["metadata"]
    plan = json.loads(ask(cluster, "plan", "-o", "json"))
    names = {change["name"]: change for change in plan["changes"]}
    assert whole in names, list(names)
    agents.broken = {"asked": "fail"}
    hub.change(cluster, "asked", "two")
    api.wait_until("it has failed", lambda: cluster.api.get("bundles", "asked", hub.SPACE)[
        "status"]["summary"].get("errApplied", 0) >= 1)
    agents.broken = {}
    for number in range(4):  # whoever failed recovers by itself
        agents.wake(hub.home(f"c{number:04d}"))
    cluster.wait_quiet()
    why = json.loads(ask(cluster, "explain", "c0003", "--change", whole, "-o", "json"))
    assert "halted" in [r["rule"] for r in why["reasons"]], why
    ask(cluster, "resume", "--bundle", whole)
    ready(4, outOfSync=CLUSTERS - 6)
    ask(cluster, "pause", "--bundle", whole)
    ask(cluster, "approve", "--partition", "rest", "--bundle", whole)
    api.wait_until("it is paused", lambda: all(
        one["spec"].get("paused") for one in hub.deployments(cluster, "asked").values()))
    ask(cluster, "resume", "--bundle", whole)
    ready(CLUSTERS - 2)


def cut(cluster, operator, _):
    """a hub that is away for some seconds in the middle of an update"""
    operator.stop()
    cluster.api.patch("bundles", "app", {"spec": {"rolloutStrategy": {
        "maxUnavailable": CAP, "offlineAfterSeconds": None}}}, hub.SPACE)
    with proxy.Relay(cluster) as between:
        with hub.operator(drover.programs()[0], cluster, server=between.url) as other:
            since = hub.mark(cluster)
            hub.change(cluster, "app", "cut")
            api.wait_until("it has begun", lambda: hub.replay(cluster, "app", since).order)
            between.away()
            time.sleep(3)
            between.back()
            hub.wait_ready(cluster, "app", CLUSTERS)
            assert other.process.poll() is None
    seen = hub.replay(cluster, "app", since)
    assert 1 <= seen.most <= CAP, f"{seen.most} unavailable at once"
    operator.start()


def check_in(cluster, name, when):
    cluster.api.patch("clusters", name, {"status": {"agent": {"lastSeen": when}}}, hub.SPACE,
                      "status")


def left_out(cluster, _, agents):
    """a cluster that was not seen for offlineAfterSeconds is left out until it is back"""
    gone = hub.home("c0000")
    agents.broken = {gone: "silent"}
    for number in range(1, CLUSTERS):  # the others are seen all the time
        check_in(cluster, f"c{number:04d}", "2126-01-01T00:00:00Z")
    cluster.api.patch("bundles", "app", {"spec": {"rolloutStrategy": {
        "maxUnavailable": 1, "offlineAfterSeconds": 5}}}, hub.SPACE)
    before = cluster.api.get("bundledeployments", "app", gone)["spec"]["deploymentID"]
    hub.change(cluster, "app", "without")
    api.wait_until("all others are ready", lambda: cluster.api.get(
        "bundles", "app", hub.SPACE)["status"]["summary"]["ready"] == CLUSTERS - 1 and len({
            one["spec"]["deploymentID"]
            for one in hub.deployments(cluster, "app").values()}) == 2, 60)
    assert cluster.api.get("bundledeployments", "app", gone)["spec"]["deploymentID"] == before
    why = json.loads(ask(cluster, "explain", "c0000", "--change", f"{hub.SPACE}/app", "-o", "json"))
    assert [r["rule"] for r in why["reasons"]] == ["offline"], why
    agents.broken = {}
    check_in(cluster, "c0000", "2126-01-01T00:00:00Z")
    hub.wait_ready(cluster, "app", CLUSTERS)


def prune(schema):
    """As Fleet's own definition is: what Drover adds is dropped."""
    if not isinstance(schema, dict):
        return
    schema.pop("x-kubernetes-preserve-unknown-fields", None)
    for name in ("soakSeconds", "failureThreshold", "offlineAfterSeconds", "approval"):
        schema.get("properties", {}).pop(name, None)
    for one in list(schema.get("properties", {}).values()) + [schema.get("items")]:
        prune(one)


def pruned(cluster, operator, _):
    """a hub whose definition of Bundles drops what Drover adds: a condition says so"""
    name = "bundles.fleet.cattle.io"
    definition = cluster.api.get("customresourcedefinitions", name)
    for version in definition["spec"]["versions"]:
        prune(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
            "rolloutStrategy"])
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec.pop("x-kubernetes-preserve-unknown-fields", None)
    cluster.api.ask("PUT", cluster.api.path("customresourcedefinitions", name), definition)
    operator.stop()

    def published():
        found = cluster.api.ask("GET", "/openapi/v3/apis/fleet.cattle.io/v1alpha1")
        return "soakSeconds" not in json.dumps(found)
    api.wait_until("the new definition is published", published)
    operator.start()

    def told():
        shown = cluster.api.get("bundles", "app", hub.SPACE)["status"]["conditions"]
        return next((c for c in shown if c["type"] == "ExtensionsPruned"), None)
    said = api.wait_until("the condition is there", told)
    assert said["status"] == "True" and "drops soakSeconds, failureThreshold, " \
        "offlineAfterSeconds, partitions[].approval of" in said["message"], said


def leaves(cluster, _, __):
    """what is no target any more goes, and a Bundle with all its deployments"""
    cluster.api.patch("clusters", "c0005", {"metadata": {"labels": {"env": "test"}}}, hub.SPACE)
    api.wait_until("its deployments are gone", lambda: not cluster.api.list(
        "bundledeployments", hub.home("c0005")))
    hub.wait_ready(cluster, "app", CLUSTERS - 1)
    for name in ("app", "rings", "asked"):
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
        repos(cluster)
        hub.add_clusters(cluster, CLUSTERS, ring)
        with hub.operator(program, cluster) as operator, hub.Agents(cluster, LATENCY) as agents:
            for act in (installs, updates, summed, grouped, mapped, survives, strict, offline,
                        fails, paused, manual, asked, left_out, cut, pruned, leaves, rests):
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
