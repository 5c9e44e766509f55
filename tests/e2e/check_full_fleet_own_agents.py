#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two clusters with Fleet's own agent each, unchanged, and a third as their hub, on which `drover
operator --serve clusters` rolls out. `check_full_fleet_own_agents.py ACT...` runs some. TAP."""

import base64
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import agent_charts
import api
import binaries
import check_full_fleet_agents as shared
import drover
import locked_registry
import plane
import rollout
from agent_stage import NAMES, SPACE, STRATEGY, Agent, Stage, resources, settings, web

SYSTEM = "cattle-fleet-system"  # where Fleet's agent finds what it must know


class FleetAgent(Agent):
    """Fleet's own agent of one cluster, as a process."""

    confirms_failures = False

    tells_outages = False

    puts_right = {"enabled": True, "force": True}  # else a field that a hand set is a conflict

    def register(self):
        """What docs/fleet.md says: the account of the hub, in the form in which a registration
        by Fleet would have left it in the cluster."""
        super().register()
        self.own.api.create("namespaces", {"metadata": {"name": SYSTEM}})
        self.own.api.create("configmaps", {"metadata": {"name": "fleet-agent"},
                                           "data": {"config": "{}"}}, SYSTEM)
        self.own.api.create("secrets", {"metadata": {"name": "fleet-agent"}, "stringData": {
            "kubeconfig": self.credentials().read_text(), "deploymentNamespace": self.home,
            "clusterNamespace": hub.SPACE, "clusterName": self.name}}, SYSTEM)

    def start(self, *words, anybody=False):
        assert not anybody
        log = open(self.own.logs / "agent.log", "ab")  # pylint: disable=consider-using-with
        with log:
            self.process = subprocess.Popen(
                [str(binaries.FLEETAGENT.folder() / binaries.FLEETAGENT.name),
                 "--leader-elect=false", *words], stdout=log, stderr=log, cwd=self.own.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.own.folder),
                     "KUBECONFIG": str(self.own.kubeconfig()), "NAMESPACE": SYSTEM,
                     "AGENT_SCOPE": SYSTEM, "CHECKIN_INTERVAL": "2s",
                     "FLEET_AGENT_METRICS_BIND_ADDRESS": "0",
                     "FLEET_AGENT_PROBE_BIND_ADDRESS": "0"})


# ---- what is shown besides what our own agent is asked

def hash_of(data):
    """As Fleet's program that makes Bundles computes spec.valuesHash."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def values(stage):
    """values go through a Secret, whose hash the agent verifies"""
    for agent in stage.agents:
        found = agent.deployment("chart")
        assert found["spec"]["valuesHash"], found["spec"]
        assert "values" not in found["spec"]["options"]["helm"], found["spec"]["options"]
        kept = stage.main.api.get("secrets", "chart", agent.home)
        assert kept["type"] == "fleet.cattle.io/bundle-deployment/v1alpha1", kept["type"]
        assert agent_charts.chart_data(agent)["word"] == "four"


def hidden(stage):
    """a Bundle whose values Fleet's own program keeps in a Secret deploys them"""
    bundle = agent_charts.chart_bundle()
    bundle["spec"]["helm"] = {"releaseName": "front"}
    bundle["spec"]["targets"][0]["name"] = "all"
    for word in ("five", "six"):
        wanted = {"values.yaml": {"word": word, "site": "none"}, "all": {"site": "all"}}
        data = {key: base64.b64encode(json.dumps(one).encode()).decode()
                for key, one in wanted.items()}
        bundle["spec"]["valuesHash"] = hash_of(data)
        if word == "five":
            stage.main.api.create("bundles", {**bundle, "metadata": {
                "name": "hidden", "namespace": hub.SPACE}}, hub.SPACE)
            stage.main.api.create("secrets", {
                "metadata": {"name": "hidden"}, "data": data,
                "type": "fleet.cattle.io/bundle-values/v1alpha1"}, hub.SPACE)
        else:
            stage.main.api.patch("secrets", "hidden", {"data": data}, hub.SPACE)
            stage.main.api.patch("bundles", "hidden", {"spec": {
                "valuesHash": hash_of(data)}}, hub.SPACE)
        hub.wait_ready(stage.main, "hidden", len(NAMES))
        found = [agent_charts.chart_data(agent) for agent in stage.agents]
        assert found == [{"word": word, "site": "all"}] * len(NAMES), found
    told = subprocess.run([str(stage.program), "plan", "-o", "json", "--kubeconfig",
                           str(stage.main.kubeconfig())], capture_output=True, check=False)
    plan = json.loads(told.stdout)  # it has read the Secret: nothing is out of date
    assert f"{hub.SPACE}/hidden" in [change["name"] for change in plan["changes"]], plan
    assert plan["starts"] == 0 and not told.stderr, told
    stage.main.api.delete("bundles", "hidden", hub.SPACE)
    api.wait_until("it is gone", lambda: stage.all(lambda a: not agent_charts.chart_data(a)), 60)


def drifts(stage):
    """what was changed by others is told, and put back with the next change where that is wanted"""
    one = stage.agents[0]
    one.own.api.delete("configmaps", "settings", SPACE)
    api.wait_until("it is told", lambda: one.modified("app") == ["settings"], 60)
    api.wait_until("the hub tells, too", lambda: stage.summary().get("modified") == 1)
    stage.main.api.patch("bundles", "app", {"spec": {"correctDrift": one.puts_right}}, hub.SPACE)
    api.wait_until("the agent is told", lambda: one.deployment()["spec"].get("correctDrift"))
    one.own.api.patch("deployments", "web", {"spec": {"replicas": 3}}, SPACE)
    api.wait_until("both are put back", lambda: one.find("configmaps", "settings") and
                   one.find("deployments", "web")["spec"]["replicas"] == 2, 60)
    hub.wait_ready(stage.main, "app", len(NAMES))


def depends(stage):
    """a Bundle that depends on another waits for it, and goes when that is ready"""
    bundle = hub.bundle("second", "", STRATEGY, defaultNamespace=SPACE,
                        dependsOn=[{"name": "first"}])
    bundle["spec"]["resources"] = resources({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "second"}})
    stage.main.api.create("bundles", bundle, hub.SPACE)

    def waits():
        found = stage.main.api.get("bundles", "second", hub.SPACE).get("status", {})
        return "no bundles matching labels" in json.dumps(found)
    api.wait_until("it waits", waits, 60)
    assert stage.all(lambda a: not a.find("configmaps", "second"))
    bundle = hub.bundle("first", "", STRATEGY, defaultNamespace=SPACE)
    bundle["spec"]["resources"] = resources({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}})
    stage.main.api.create("bundles", bundle, hub.SPACE)
    hub.wait_ready(stage.main, "first", len(NAMES))
    hub.wait_ready(stage.main, "second", len(NAMES), 180)
    assert stage.all(lambda a: a.find("configmaps", "second"))
    for name in ("second", "first"):
        stage.main.api.delete("bundles", name, hub.SPACE)
        api.wait_until(f"{name} is gone", lambda gone=name: stage.all(
            lambda a: not a.find("configmaps", gone)), 60)


def handed_on(stage):
    """kustomize, serviceAccount, namespaceLabels and keepResources reach the agent as they are"""
    bundle = hub.bundle("built", "", STRATEGY, defaultNamespace="built", keepResources=True,
                        namespaceLabels={"team": "shop"}, kustomize={"dir": "site"})
    bundle["spec"]["resources"] = [
        {"name": "base/map.yaml", "content": json.dumps(settings("built"))},
        {"name": "base/kustomization.yaml", "content": "resources: [map.yaml]\n"},
        {"name": "site/kustomization.yaml", "content": "namePrefix: site-\nresources: [../base]\n"}]
    stage.main.api.create("bundles", bundle, hub.SPACE)
    hub.wait_ready(stage.main, "built", len(NAMES))

    def made(agent):
        return agent.own.api.find("configmaps", "site-settings", "built")
    assert stage.all(made)
    labels = [agent.own.api.get("namespaces", "built")["metadata"]["labels"]
              for agent in stage.agents]
    assert all(one["team"] == "shop" for one in labels), labels
    stage.main.api.patch("bundles", "built", {"spec": {"serviceAccount": "nobody"}}, hub.SPACE)
    api.wait_until("the account is missed", lambda: "looking up service account" in json.dumps(
        stage.main.api.get("bundles", "built", hub.SPACE)["status"]["conditions"]), 60)
    stage.main.api.patch("bundles", "built", {"spec": {"serviceAccount": None}}, hub.SPACE)
    hub.wait_ready(stage.main, "built", len(NAMES))
    stage.main.api.delete("bundles", "built", hub.SPACE)
    api.wait_until("the hub has nothing", lambda: not hub.deployments(stage.main, "built"))
    time.sleep(3)
    assert stage.all(made), "it was to be kept"


def copies(stage, name):
    """The Secrets of that name beside the agents' deployments."""
    found = [stage.main.api.find("secrets", name, agent.home) for agent in stage.agents]
    return [one for one in found if one]


def contents(stage):
    """contents in a registry: the Secret for it reaches the agents, and so does a new password"""
    with locked_registry.Registry() as shop:
        name = shop.put_contents(resources({"apiVersion": "v1", "kind": "ConfigMap",
                                            "metadata": {"name": "pulled"}}))
        bundle = hub.bundle("pulled", "", defaultNamespace=SPACE, contentsId=name)
        del bundle["spec"]["resources"]
        stage.main.api.create("bundles", bundle, hub.SPACE)

        def says(words):
            return words in json.dumps(stage.main.api.get(
                "bundles", "pulled", hub.SPACE).get("status", {}))
        api.wait_until("it is missed", lambda: says(f"{name} for its registry does not exist"))
        assert not hub.deployments(stage.main, "pulled")
        stage.main.api.create("secrets", {
            "metadata": {"name": name}, "type": "fleet.cattle.io/bundle-oci-storage/v1alpha1",
            "stringData": {"reference": f"{shop.at}/fleet", "username": locked_registry.USER,
                           "password": "old", "basicHTTP": "true"}}, hub.SPACE)
        api.wait_until("the agents are refused", lambda: says("ErrApplied") and shop.refused, 60)
        assert says(f"oci://{shop.at}/fleet/{name}:latest")
        stage.main.api.patch("secrets", name, {
            "stringData": {"password": locked_registry.PASSWORD}}, hub.SPACE)
        hub.wait_ready(stage.main, "pulled", len(NAMES), 240)
        assert stage.all(lambda a: a.find("configmaps", "pulled"))
        types = {one["type"] for one in copies(stage, name)}
        assert types == {"fleet.cattle.io/bundle-oci-storage/v1alpha1"}, types
        stage.main.api.delete("bundles", "pulled", hub.SPACE)
        api.wait_until("nothing is left", lambda: not copies(stage, name) and stage.all(
            lambda a: not a.find("configmaps", "pulled")), 60)


def repository(stage):
    """the chart of a HelmOp, from a repository that wants a password"""
    with locked_registry.Registry() as shop:
        url = shop.put_chart("shop", "1.0.0", agent_charts.CHART)
        bundle = hub.bundle("bought", "", defaultNamespace=SPACE, helmOpOptions={
            "helmOpSecretName": "repository"}, helm={
                "repo": url, "chart": "shop", "version": "1.0.0", "releaseName": "front",
                "values": {"word": "bought", "site": "all"}})
        del bundle["spec"]["resources"]
        stage.main.api.create("secrets", {
            "metadata": {"name": "repository"}, "type": "kubernetes.io/basic-auth",
            "stringData": {"username": locked_registry.USER,
                           "password": locked_registry.PASSWORD}}, hub.SPACE)
        stage.main.api.create("bundles", bundle, hub.SPACE)
        hub.wait_ready(stage.main, "bought", len(NAMES))
        found = [agent_charts.chart_data(agent) for agent in stage.agents]
        assert found == [{"word": "bought", "site": "all"}] * len(NAMES), found
        assert len(copies(stage, "repository")) == len(NAMES)
        stage.main.api.delete("bundles", "bought", hub.SPACE)
        api.wait_until("nothing is left", lambda: not copies(stage, "repository") and stage.all(
            lambda a: not agent_charts.chart_data(a)), 60)


def paused(stage):
    """a paused Bundle reaches nobody, and all when it is not paused any more"""
    before = [agent.version() for agent in stage.agents]
    stage.main.api.patch("bundles", "app", {"spec": {"paused": True}}, hub.SPACE)
    api.wait_until("the agents are told", lambda: stage.all(
        lambda a: a.deployment()["spec"].get("paused")))
    stage.change(web("paused"), settings("paused"))
    api.wait_until("it is held", lambda: stage.summary().get("outOfSync") == len(NAMES))
    time.sleep(3)
    assert [agent.version() for agent in stage.agents] == before
    stage.main.api.patch("bundles", "app", {"spec": {"paused": False}}, hub.SPACE)
    stage.wait("paused")


def left_behind(stage):
    """what was deleted while an agent was away goes with the next thing that it has to do"""
    east, west = stage.agents
    west.kill()
    stage.main.api.delete("bundles", "app", hub.SPACE)
    api.wait_until("the hub has nothing", lambda: not stage.main.api.list("bundledeployments"))
    api.wait_until("east has nothing", lambda: not east.find("deployments", "web"), 60)
    west.start()
    bundle = hub.bundle("next", "", STRATEGY, defaultNamespace=SPACE)
    stage.main.api.create("bundles", bundle, hub.SPACE)
    hub.wait_ready(stage.main, "next", len(NAMES))
    api.wait_until("west has nothing of it", lambda: not west.find("deployments", "web"), 60)
    assert stage.all(lambda a: a.find("configmaps", "a") and a.find("configmaps", "foreign"))
    stage.main.api.delete("bundles", "next", hub.SPACE)
    api.wait_until("both have nothing", lambda: stage.all(lambda a: not a.find("configmaps", "a")))


CHARTS = (agent_charts.charts, agent_charts.chart_drifts, agent_charts.chart_fails, values,
          agent_charts.chart_goes, hidden)  # what the agent did is looked at by the program helm
ACTS = (shared.deploys, shared.updates, shared.prunes, shared.refused, shared.unknown,
        shared.unready, drifts, paused, depends, handed_on, contents, repository, *CHARTS,
        shared.offline, shared.hub_away, shared.cluster_away, shared.killed, left_behind)


def play(tap, stage, acts):
    for act in acts:
        if act in CHARTS and binaries.HELM.missing():
            tap.skip(act.__doc__, binaries.HELM.missing())
            continue
        wrong, began = None, time.monotonic()
        try:
            act(stage)
        except Exception as error:  # pylint: disable=broad-exception-caught
            wrong = f"{type(error).__name__}: {error}"
            for cluster in (stage.main, *(agent.own for agent in stage.agents)):
                cluster.fail()
        tap.test(act.__doc__, wrong)
        print(f"# {time.monotonic() - began:.1f} s", flush=True)


def main():
    tap = drover.Tap()
    problem = binaries.missing() or binaries.FLEETAGENT.missing()
    if problem:
        tap.skip("Fleet's own agents", problem)
        return tap.done()
    program = drover.programs()[0]
    wanted = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        main_cluster = stack.enter_context(plane.Cluster(
            "check-fleet-hub", audit=hub.AUDIT, scheduler=False,
            arguments={"kube-controller-manager": shared.MANAGER}))
        owned = [stack.enter_context(plane.Cluster(f"check-fleet-{name}", scheduler=False))
                 for name in NAMES]
        for cluster in (main_cluster, *owned):
            cluster.api.drop()  # a slow machine starts three in more time than a server waits
        hub.prepare(main_cluster, program)
        rollout.grant(main_cluster)
        stage = Stage(program, main_cluster, owned, FleetAgent)
        for own in owned:
            own.add_nodes(1)
        stack.enter_context(stage.operator)
        for agent in stage.agents:
            agent.register()
            agent.start()
            stack.callback(agent.stop)
        play(tap, stage, [act for act in ACTS if not wanted or act.__name__ in wanted])
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
