#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles on the clusters of a hub: a real API server, `drover operator --serve clusters` with the
rights of its manifest, and agents that are played. Limits and writes are looked up in the audit
log. TAP."""

import base64
import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import api
import audit
import binaries
import drover
import proxy

CLUSTERS = 16
LATENCY = 0.3  # of agents, in seconds
CAP = 3
SOAK = 6
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


def told(cluster, _, agents):
    """NotReady, and Pending or OutOfSync of those held back, in Bundle, GitRepo, ClusterGroup"""
    agents.broken["told"] = "silent"
    cluster.api.create("gitrepos", selects("GitRepo", "told", hub.SPACE, spec={}), hub.SPACE)
    cluster.api.create("clustergroups", selects("ClusterGroup", "told", hub.SPACE, spec={
        "selector": {"matchLabels": {"env": "prod"}}}), hub.SPACE)
    document = hub.bundle("told", "one", {"maxUnavailable": 1, "maxNew": 2})
    document["metadata"]["labels"] = {"fleet.cattle.io/repo-name": "told"}
    cluster.api.create("bundles", document, hub.SPACE)

    def shows(ready, **wanted):
        def same(kind, name, others):
            counts = cluster.api.get(kind, name, hub.SPACE).get("status", {}).get("summary", {})
            found = {key: counts.get(key, 0) for key in wanted}
            return found == wanted and counts.get("ready") == ready + others
        rest = len(hub.deployments(cluster, "app"))  # the only other Bundle, which is ready
        return same("bundles", "told", 0) and same("gitrepos", "told", 0) and \
            same("clustergroups", "told", rest)
    api.wait_until("fourteen are Pending everywhere", lambda: shows(
        0, waitApplied=2, pending=CLUSTERS - 2, outOfSync=0), 60)

    def applies():
        """One of them runs the version, and its pods do not start."""
        where, live = next((where, one["spec"]["deploymentID"])
                           for where, one in sorted(hub.deployments(cluster, "told").items())
                           if one.get("status", {}).get("appliedDeploymentID") !=
                           one["spec"]["deploymentID"])
        agents.client.patch("bundledeployments", "told", {"status": {
            "appliedDeploymentID": live, "ready": False, "nonModified": True,
            "nonReadyStatus": [{"kind": "Deployment", "name": "a"}]}}, where, "status")
    applies()
    api.wait_until("one is NotReady everywhere", lambda: shows(
        0, notReady=1, waitApplied=1, pending=CLUSTERS - 2, outOfSync=0), 60)

    def state():
        return cluster.api.get("gitrepos", "told", hub.SPACE)["status"]["display"]["state"]
    assert state() == "GitUpdating", state()
    cluster.api.patch("gitrepos", "told", {"status": {"gitJobStatus": "Current"}}, hub.SPACE,
                      "status")
    api.wait_until("what is in git is there", lambda: state() == "WaitApplied")
    repo = cluster.api.get("gitrepos", "told", hub.SPACE)["status"]
    assert (repo["readyClusters"], repo["desiredReadyClusters"]) == (0, CLUSTERS), repo
    agents.broken.pop("told")
    agents.wake("told")
    api.wait_until("all are ready", lambda: shows(
        CLUSTERS, waitApplied=0, pending=0, outOfSync=0), 60)
    agents.broken["told"] = "silent"
    hub.change(cluster, "told", "two")
    api.wait_until("fifteen are OutOfSync everywhere", lambda: shows(
        0, waitApplied=1, pending=0, outOfSync=CLUSTERS - 1), 60)
    applies()
    api.wait_until("the others are OutOfSync still", lambda: shows(
        0, notReady=1, waitApplied=0, pending=0, outOfSync=CLUSTERS - 1), 60)
    group = cluster.api.get("clustergroups", "told", hub.SPACE)["status"]
    assert group["nonReadyClusterCount"] == CLUSTERS, group
    assert len(group["nonReadyClusters"]) == 10, group
    agents.broken.pop("told")
    agents.wake("told")
    hub.wait_ready(cluster, "told", CLUSTERS)
    for kind in ("bundles", "gitrepos", "clustergroups"):
        cluster.api.delete(kind, "told", hub.SPACE)
    api.wait_until("it is gone", lambda: not hub.deployments(cluster, "told"))


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
    """a Bundle of another namespace reaches clusters by a mapping and the labels of theirs alone"""
    space, name = "team", "mapped"
    cluster.api.create("namespaces", {"metadata": {"name": space}})
    since = hub.mark(cluster)
    document = hub.bundle(name, "one", labels={"ring": "canary"})
    document["metadata"].update(namespace=space, labels={"team": "a"})
    cluster.api.create("bundles", document, space)
    cluster.wait_quiet()
    assert not hub.deployments(cluster, name)
    assert not reads_of(cluster, since, "namespaces"), "namespaces are read, and nobody needs them"
    cluster.api.create("bundlenamespacemappings", selects(
        "BundleNamespaceMapping", "all", space, bundleSelector={"matchLabels": {"team": "a"}},
        namespaceSelector={"matchLabels": {"stage": "live"}}), space)
    api.wait_until("namespaces are watched", lambda: reads_of(cluster, since, "namespaces"))
    cluster.wait_quiet()
    assert not hub.deployments(cluster, name)

    def label(value):
        cluster.api.patch("namespaces", hub.SPACE, {"metadata": {"labels": {"stage": value}}})

    def ready():
        found = hub.deployments(cluster, name).values()
        return len(found) == 4 and all(one.get("status", {}).get("ready") for one in found)
    label("live")
    api.wait_until("it is ready on four clusters", ready)
    plan = json.loads(ask(cluster, "plan", "-o", "json"))
    assert [group["matched"] for change in plan["changes"] if change["name"] == f"{space}/{name}"
            for group in change["groups"]] == [4], plan["changes"]
    label("dead")
    api.wait_until("it is gone", lambda: not hub.deployments(cluster, name))
    label("live")
    api.wait_until("it is ready again", ready)
    cluster.api.delete("bundlenamespacemappings", "all", space)
    api.wait_until("it is gone again", lambda: not hub.deployments(cluster, name))
    cluster.api.delete("bundles", name, space)


def reads_of(cluster, since, kind):
    return [e for e in hub.of_operator(hub.entries_since(cluster, since))
            if e["verb"] in ("list", "watch") and e["objectRef"].get("resource") == kind]


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
    wrong = drover.run(drover.programs()[0], "approve", "--partition", "others", "--bundle", whole,
                       f"--kubeconfig={cluster.kubeconfig()}")
    assert wrong.status == 1 and wrong.out == "" and \
        'partition: found "others", allowed "canary", "rest"' in wrong.err, wrong
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


# What Fleet calls the namespaces of clusters, a Content and versions.
HOMES = {("fleet-local", "local"): "cluster-fleet-local-local-1a3d67d0a899",
         (hub.SPACE, "c-abc123"): "cluster-fleet-default-c-abc123-24cd9c04e689",
         (hub.SPACE, "my-production-cluster-eu-west-1-a"):
             "cluster-fleet-default-my-production-cluster-eu-west-1-a-8-d96ed"}
CONTENT = "s-902c80d9af09be4c64bb5c86aca53351f865e7e42eaeb3368f0fc93d653f5"
VERSIONS = {  # options of the Bundle, labels of the cluster -> hash
    "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356": ({}, {}),
    "2b3eb1c0044dd55963b580c402f9703533c40396e53a2aa27a2ba991ec15d145": ({}, {"a": "b"}),
    "c32e813ecbf48f56833aa2267cd3d8758eecc94f9948fb0dea510147a57760b5": (
        {"helm": {"chart": "config-chart", "values": {"name": "example-value"}}, "ignore": {}},
        {"a": "b"}),
}


def named(cluster, _, __):
    """clusters, contents and versions have the names and hashes that Fleet gives them"""
    cluster.api.create("namespaces", {"metadata": {"name": "fleet-local"}})
    for space, name in HOMES:
        cluster.api.create("clusters", selects("Cluster", name, space, spec={}), space)

    def homes():
        return {(space, name): cluster.api.get("clusters", name, space).get("status", {}).get(
            "namespace") for space, name in HOMES}
    api.wait_until("they have namespaces", lambda: homes() == HOMES)
    for home, (space, name) in zip(HOMES.values(), HOMES):
        notes = cluster.api.get("namespaces", home)["metadata"]["annotations"]
        assert notes["fleet.cattle.io/cluster"] == name, notes
        assert notes["fleet.cattle.io/cluster-namespace"] == space, notes
    home = HOMES["fleet-local", "local"]
    for version, (options, labels) in VERSIONS.items():
        cluster.api.patch("clusters", "local", {"metadata": {"labels": labels or None}},
                          "fleet-local")
        cluster.api.create("bundles", {**selects("Bundle", "named", "fleet-local", spec={
            "resources": [{"name": "a.yaml", "content": "x"}], **options,
            "targets": [{"clusterName": "local"}]})}, "fleet-local")
        found = api.wait_until("it is deployed", lambda: cluster.api.find(
            "bundledeployments", "named", home))
        assert found["spec"]["deploymentID"] == f"{CONTENT}:{version}", found["spec"]
        if options:
            kept = api.wait_until("its values are there", lambda: cluster.api.find(
                "secrets", "named", home))
            assert hub.values_hash(kept) == found["spec"]["valuesHash"], kept
        cluster.api.delete("bundles", "named", "fleet-local")
        api.wait_until("it is gone", lambda: not cluster.api.find(
            "bundles", "named", "fleet-local"))
    assert cluster.api.find("contents", CONTENT)["sha256sum"].startswith(CONTENT[2:])
    for space, name in HOMES:
        cluster.api.delete("clusters", name, space)


def hidden(cluster, _, __):
    """values that Fleet's programs keep in a Secret: plans read it, with the rights of who asks"""
    data = {"values.yaml": base64.b64encode(b'{"word":"one"}').decode()}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    document = hub.bundle("hidden", "one", labels={"ring": "canary"})
    document["spec"]["valuesHash"] = hashlib.sha256(text.encode()).hexdigest()
    cluster.api.create("secrets", {"metadata": {"name": "hidden"}, "data": data}, hub.SPACE)
    cluster.api.create("bundles", document, hub.SPACE)
    hub.wait_ready(cluster, "hidden", 4)
    kept = cluster.api.get("secrets", "hidden", hub.home("c0000"))["data"]["values"]
    assert base64.b64decode(kept) == b'{"word":"one"}', kept

    def planned():
        said = try_to(cluster, "plan", "-o", "json")
        plan = json.loads(said.out)
        names = [change["name"] for change in plan["changes"]]
        return f"{hub.SPACE}/hidden" in names, plan["starts"], said.err
    assert planned() == (True, 0, ""), planned()
    cluster.api.delete("secrets", "hidden", hub.SPACE)
    known, _, said = planned()
    assert not known and "Bundle fleet-default/hidden: its values lie in a Secret" in said, said
    cluster.api.delete("bundles", "hidden", hub.SPACE)


def moments(cluster, name, since):
    """Of every deployment of a Bundle: when it got its version, and when it was ready with it."""
    released, ready = {}, {}
    for number, entry, thing in audit.stored(audit.entries(cluster.audit_file)):
        if number < since or entry["objectRef"]["resource"] != "bundledeployments" or \
                thing["metadata"]["name"] != name:
            continue
        where, live = thing["metadata"]["namespace"], thing["spec"].get("deploymentID")
        at = datetime.datetime.fromisoformat(entry["stageTimestamp"].replace("Z", "+00:00"))
        released.setdefault((where, live), at)
        if thing.get("status", {}).get("ready") and \
                thing["status"].get("appliedDeploymentID") == live:
            ready.setdefault((where, live), at)
    return ({where: at for (where, _), at in released.items()},
            {where: at for (where, _), at in ready.items()})


def soaks(cluster, operator, _):
    """a partition is ready for soakSeconds before the next begins, also across a restart"""
    rings = [{"name": name, "clusterSelector": {"matchLabels": {"ring": name}}}
             for name in ("canary", "rest")]
    since = hub.mark(cluster)
    cluster.api.create("bundles", hub.bundle("soaks", "one", {
        "maxUnavailable": 0, "soakSeconds": SOAK, "partitions": rings}), hub.SPACE)
    first = [hub.home(f"c{number:04d}") for number in range(4)]

    def count():
        return cluster.api.get("bundles", "soaks", hub.SPACE).get("status", {}).get(
            "summary", {}).get("ready", 0)
    api.wait_until("the first partition is ready", lambda: count() == 4)
    why = json.loads(ask(cluster, "explain", "c0010", "--change", f"{hub.SPACE}/soaks", "-o",
                         "json"))
    assert [r["rule"] for r in why["reasons"]] == ["soak"], why
    time.sleep(SOAK / 2)
    operator.kill()
    operator.start()
    api.wait_until("the second is, too", lambda: count() == CLUSTERS - 2, 60)
    released, ready = moments(cluster, "soaks", since)
    begun = min(at for where, at in released.items() if where not in first)
    waited = (begun - max(ready[where] for where in first)).total_seconds()
    assert SOAK <= waited < SOAK + 4, f"{waited} s"
    cluster.api.delete("bundles", "soaks", hub.SPACE)


FOLDER = {"fleet.yaml": """\
defaultNamespace: shop
targets: [{clusterSelector: {matchLabels: {ring: canary}}}]
rolloutStrategy: {maxUnavailable: 1, soakSeconds: 1, failureThreshold: 1}
""", "map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}


def folder(where):
    for name, text in FOLDER.items():
        (pathlib.Path(where) / name).write_text(text)
    return where


def try_to(cluster, *words):
    return drover.run(drover.programs()[0], *words, f"--kubeconfig={cluster.kubeconfig()}")


def applied(cluster, _, __):
    """a folder is applied as a Bundle, and again; what another manages is not taken by the way"""
    with tempfile.TemporaryDirectory() as where:
        words = ("bundle", folder(where), "--name", "shop", "--apply")
        assert ask(cluster, *words) == f"bundle/{hub.SPACE}/shop applied\n"
        hub.wait_ready(cluster, "shop", 4)
        cluster.wait_quiet()
        before = cluster.api.get("bundles", "shop", hub.SPACE)["metadata"]["generation"]
        ask(cluster, *words)
        assert cluster.api.get("bundles", "shop", hub.SPACE)["metadata"]["generation"] == before
        cluster.api.patch("bundles", "shop", {"spec": {"defaultNamespace": "other"}}, hub.SPACE)
        said = try_to(cluster, *words)
        assert said.status == 1 and "conflict" in said.err, said
        ask(cluster, *words, "--force")
        found = cluster.api.get("bundles", "shop", hub.SPACE)
        assert found["spec"]["defaultNamespace"] == "shop", found["spec"]
        text = pathlib.Path(where) / "again.json"
        text.write_text(json.dumps({**found, "spec": {**found["spec"], "paused": True}}))
        ask(cluster, "apply", "-f", str(text), "--dry-run")
        assert not cluster.api.get("bundles", "shop", hub.SPACE)["spec"].get("paused")
        assert ask(cluster, "apply", "-f", str(text)) == f"bundle/{hub.SPACE}/shop applied\n"
        assert cluster.api.get("bundles", "shop", hub.SPACE)["spec"]["paused"]
    cluster.api.delete("bundles", "shop", hub.SPACE)


def registered(cluster, _, __):
    """a cluster is registered on the hub; its credentials open what its agent needs, and no more"""
    with tempfile.TemporaryDirectory() as where:
        file = pathlib.Path(where) / "edge.conf"
        ask(cluster, "cluster", "register", "edge", "-l", "ring=edge", "--apply",
            f"--credentials={file}")
        assert file.stat().st_mode & 0o777 == 0o600, oct(file.stat().st_mode)
        home = next(one["metadata"]["name"] for one in cluster.api.list("namespaces") if one[
            "metadata"].get("annotations", {}).get("fleet.cattle.io/cluster") == "edge")

        def may(*words):
            return subprocess.run([
                str(cluster.programs / "kubectl"), f"--kubeconfig={file}", *words],
                capture_output=True, check=False).returncode == 0
        assert may("get", "bundledeployments")  # its own namespace is the default
        assert may("auth", "can-i", "patch", "bundledeployments", "--subresource=status")
        assert may("auth", "can-i", "get", "contents")
        assert may("auth", "can-i", "patch", "clusters/edge", "--subresource=status", "-n",
                   hub.SPACE)
        assert not may("auth", "can-i", "patch", "clusters/c0000", "--subresource=status", "-n",
                       hub.SPACE)
        assert not may("get", "bundledeployments", "-n", hub.home("c0000"))
        assert not may("get", "secrets", "-n", hub.SPACE)

        def given():
            return cluster.api.get("clusters", "edge", hub.SPACE).get("status", {}).get(
                "namespace") == home
        api.wait_until("the controller knows it", given)
        said = try_to(cluster, "cluster", "register", "edge", "--apply", f"--credentials={file}")
        assert said.status == 1 and "there is a file already" in said.err, said
    before = len(cluster.api.list("namespaces"))
    said = try_to(cluster, "cluster", "register", "edge", "-n", "nowhere", "--apply")
    assert said.status == 1 and 'namespaces "nowhere" not found' in said.err, said
    assert not said.out and len(cluster.api.list("namespaces")) == before, "half of it was written"
    cluster.api.delete("clusters", "edge", hub.SPACE)


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
    with tempfile.TemporaryDirectory() as where:
        said = try_to(cluster, "bundle", folder(where), "--name", "pruned", "--apply")
    assert said.status == 1 and "drops spec.rolloutStrategy.soakSeconds, " \
        "spec.rolloutStrategy.failureThreshold" in said.err, said
    assert not cluster.api.find("bundles", "pruned", hub.SPACE), "it was written all the same"
    noted(cluster)


def noted(cluster):
    """There the annotation is obeyed."""
    whole = {"maxUnavailable": 2, "partitions": [
        {"name": "canary", "approval": True, "clusterSelector": {"matchLabels": {
            "ring": "canary"}}}]}
    document = hub.bundle("noted", "one", {"maxUnavailable": 1}, {"ring": "canary"})
    document["metadata"]["annotations"] = {"drover.dev/rollout-strategy": json.dumps(whole)}
    cluster.api.create("bundles", document, hub.SPACE)
    shown = api.wait_until("its status is there", lambda: cluster.api.get(
        "bundles", "noted", hub.SPACE).get("status", {}).get("partitions"))
    assert [(p["name"], p["maxUnavailable"]) for p in shown] == [("canary", 2)], shown
    cluster.wait_quiet()
    assert not hub.deployments(cluster, "noted"), "nobody has approved it"
    ask(cluster, "approve", "--partition", "canary", "--bundle", f"{hub.SPACE}/noted")
    hub.wait_ready(cluster, "noted", 4)
    cluster.api.delete("bundles", "noted", hub.SPACE)


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


ACTS = (installs, updates, summed, told, grouped, mapped, survives, strict, offline, fails,
        paused, manual, asked, soaks, named, hidden, applied, registered, left_out, cut, pruned,
        leaves, rests)
ALWAYS = ("installs",)  # acts that are named are the only ones beside this


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
            for act in ACTS:
                if len(sys.argv) > 1 and act.__name__ not in (*ALWAYS, *sys.argv):
                    continue
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
