#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two clusters with `drover cluster-agent` each and a third as their hub, on which `drover operator
--serve clusters` rolls out: three real API servers. TAP."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import api
import audit
import binaries
import drover
import plane
import rollout

NAMES = ("east", "west")
SPACE = "shop"  # where everything is deployed
NODE = "node-00000"
STRATEGY = {"maxUnavailable": 1}
MANAGER = ["--controllers=serviceaccount-token-controller"]  # fills the Secret of an account


def template(**notes):
    return {"metadata": {"labels": {"app": "web"}, "annotations": notes},
            "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "web", "image": "example.test/web"}]}}


def web(version, **notes):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                     "template": template(version=version, **notes)}}


def settings(version):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
            "data": {"version": version}}


def resources(*things):
    return [{"name": f"{number}.yaml", "content": json.dumps(thing)}
            for number, thing in enumerate(things)]


class Agent:
    """`drover cluster-agent` of one cluster, as a process."""

    def __init__(self, program, name, main, own):
        self.program, self.name, self.main, self.own = program, name, main, own
        self.home = None
        self.process = None

    def register(self):
        """What a person does: the cluster is made known to the hub, and its credentials fetched."""
        text = subprocess.run([str(self.program), "cluster", "register", self.name, "-l",
                               "env=prod", "-o", "json"], capture_output=True, check=True).stdout
        self.home = json.loads(text)["items"][0]["metadata"]["name"]
        subprocess.run([str(self.main.programs / "kubectl"),
                        f"--kubeconfig={self.main.kubeconfig()}", "apply", "--server-side", "-f",
                        "-"], input=text, capture_output=True, check=True)

        def filled():
            return self.main.api.get("secrets", "agent", self.home).get("data")
        data = api.wait_until("the account has a token", filled)
        folder = self.own.folder / "hub-account"
        folder.mkdir()
        for key in ("token", "ca.crt"):
            (folder / key).write_bytes(base64.b64decode(data[key]))

    def start(self):
        log = open(self.own.logs / "agent.log", "ab")  # pylint: disable=consider-using-with
        with log:
            self.process = subprocess.Popen(
                [str(self.program), "cluster-agent", self.name, "--hub",
                 f"https://127.0.0.1:{self.main.port}", "--hub-account",
                 str(self.own.folder / "hub-account"), "--kubeconfig",
                 str(self.own.kubeconfig(rollout.USER)), "--heartbeat", "2s"],
                stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(30) == 0, "the agent did not end well"

    def deployment(self):
        return self.main.api.get("bundledeployments", "app", self.home)

    def find(self, resource, name):
        return self.own.api.find(resource, name, SPACE)


class Stage:
    """The three clusters and what runs on them."""

    def __init__(self, program, main, owned):
        self.program, self.main = program, main
        self.agents = [Agent(program, name, main, own) for name, own in zip(NAMES, owned)]
        self.operator = hub.operator(program, main)

    def all(self, check):
        return all(check(agent) for agent in self.agents)

    def change(self, *things):
        self.main.api.patch("bundles", "app", {"spec": {"resources": resources(*things)}},
                            hub.SPACE)

    def summary(self):
        return self.main.api.get("bundles", "app", hub.SPACE)["status"]["summary"]

    def wait(self, version):
        """Both clusters run it, and the hub says so."""
        hub.wait_ready(self.main, "app", len(NAMES))
        for agent in self.agents:
            found = agent.find("deployments", "web")
            notes = found["spec"]["template"]["metadata"]["annotations"]
            assert notes["version"] == version, (agent.name, notes)
            assert found["status"].get("availableReplicas") == 2, found["status"]


def grant(cluster):
    """The rights that deploy/cluster-agent.yaml gives the agent's account."""
    for one in rollout.objects(cluster.programs / "kubectl",
                               f"--kubeconfig={cluster.kubeconfig()}", "create",
                               "--dry-run=client", "-o", "json", "-f",
                               hub.ROOT / "deploy" / "cluster-agent.yaml"):
        if one["kind"] not in rollout.RIGHTS:
            continue
        if "subjects" in one:
            one["subjects"] = [{"kind": "Group", "name": "drover",
                                "apiGroup": "rbac.authorization.k8s.io"}]
        cluster.api.create(rollout.RIGHTS[one["kind"]], one, one["metadata"].get("namespace"))


# ---- what is shown

def deploys(stage):
    """a first deployment reaches both clusters, is judged by its pods, and agents are seen"""
    bundle = hub.bundle("app", "", STRATEGY, defaultNamespace=SPACE)
    bundle["spec"]["resources"] = resources(web("one"), settings("one"))
    stage.main.api.create("bundles", bundle, hub.SPACE)
    stage.wait("one")
    for agent in stage.agents:
        status = agent.deployment()["status"]
        assert status["ready"] and status["nonModified"], status
        assert status["resourceCounts"]["ready"] == 2, status
        kinds = {c["type"]: c["status"] for c in status["conditions"]}
        assert kinds == {"Deployed": "True", "Installed": "True", "Ready": "True",
                         "Monitored": "True"}, kinds

    def alive():
        return all(stage.main.api.get("clusters", name, hub.SPACE)["status"].get(
            "agent", {}).get("lastSeen") for name in NAMES)
    api.wait_until("both agents were seen", alive)


def updates(stage):
    """an update goes one cluster at a time"""
    since = hub.mark(stage.main)
    stage.change(web("two"), settings("two"))
    stage.wait("two")
    seen = hub.replay(stage.main, "app", since)
    assert seen.most == 1, f"{seen.most} unavailable at once"
    assert stage.all(lambda a: a.find("configmaps", "settings")["data"]["version"] == "two")


def prunes(stage):
    """what is not in the new version is deleted, and nothing else"""
    for agent in stage.agents:
        agent.own.api.create("configmaps", {"metadata": {"name": "foreign"}}, SPACE)
    stage.change(web("three"))
    stage.wait("three")
    api.wait_until("settings are gone",
                   lambda: stage.all(lambda a: not a.find("configmaps", "settings")))
    assert stage.all(lambda a: a.find("configmaps", "foreign"))
    stage.change(web("four"), settings("four"))
    stage.wait("four")


def held(stage, version):
    """One cluster has trouble, the other keeps what it has."""
    def stuck():
        found = stage.summary()
        bad = found.get("errApplied", 0) + found.get("notReady", 0)
        return bad == 1 and found.get("outOfSync") == 1
    try:
        api.wait_until("the rollout is held", stuck, 60)
    except TimeoutError:
        print(f"# {stage.summary()}", flush=True)
        raise
    other = stage.agents[1].find("deployments", "web")
    notes = other["spec"]["template"]["metadata"]["annotations"]
    assert notes["version"] == version, notes
    ready = next(c for c in stage.main.api.get("bundles", "app", hub.SPACE)["status"]["conditions"]
                 if c["type"] == "Ready")
    return ready["message"]


def refused(stage):
    """a manifest that the cluster refuses stops the rollout, and a fix goes through"""
    broken = settings("five")
    broken["data"] = {"version": 5}
    stage.change(web("five"), broken)
    message = held(stage, "four")
    assert "settings" in message, message
    stage.change(web("six"), settings("six"))
    stage.wait("six")


def unknown(stage):
    """so does a kind that the cluster does not have"""
    stage.change(web("seven"), {"apiVersion": "example.test/v1", "kind": "Nothing",
                                "metadata": {"name": "nothing"}})
    message = held(stage, "six")
    assert "Nothing" in message, message
    stage.change(web("eight"), settings("eight"))
    stage.wait("eight")


def unready(stage):
    """so do pods that do not start"""
    stage.change(web("nine", **{"drover.test/run": "unpullable"}), settings("nine"))
    message = held(stage, "eight")
    assert "web" in message, message
    stage.change(web("ten"), settings("ten"))
    stage.wait("ten")


def drifts(stage):
    """what was changed by others is told, and put back where that is wanted"""
    one = stage.agents[0]
    one.own.api.delete("configmaps", "settings", SPACE)

    def told():
        status = one.deployment()["status"]
        return not status["nonModified"] and status["modifiedStatus"][0]["name"] == "settings"
    api.wait_until("it is told", told)
    stage.main.api.patch("bundles", "app", {"spec": {"correctDrift": {"enabled": True}}},
                         hub.SPACE)
    api.wait_until("it is back", lambda: one.find("configmaps", "settings"))
    stage.wait("ten")
    one.own.api.patch("configmaps", "settings", {"data": {"version": "mine"}}, SPACE)
    api.wait_until("it is put back", lambda: one.find("configmaps", "settings")["data"][
        "version"] == "ten")
    hub.wait_ready(stage.main, "app", len(NAMES))


def offline(stage):
    """an agent that was away gets what it missed"""
    stage.agents[0].kill()
    stage.change(web("eleven"), settings("eleven"))
    api.wait_until("it is waited for", lambda: stage.summary().get("waitApplied") == 1)
    time.sleep(1)
    stage.agents[0].start()
    stage.wait("eleven")


def hub_away(stage):
    """without the hub nothing is lost: what happens meanwhile is told when it is back"""
    stage.main.kill("kube-apiserver")
    for agent in stage.agents:
        agent.own.api.patch("deployments", "web", {"spec": {"paused": True}}, SPACE)
        agent.own.api.patch("deployments", "web", {"spec": {"paused": None}}, SPACE)
    time.sleep(2)
    stage.main.run_again("kube-apiserver")
    stage.change(web("twelve"), settings("twelve"))
    stage.wait("twelve")


def cluster_away(stage):
    """without its cluster an agent waits, and goes on when it is back"""
    stage.agents[0].own.kill("kube-apiserver")
    stage.change(web("thirteen"), settings("thirteen"))
    time.sleep(2)
    stage.agents[0].own.run_again("kube-apiserver")
    stage.wait("thirteen")


def killed(stage):
    """an update goes on when agents are killed again and again"""
    stage.change(web("fourteen"), settings("fourteen"))
    for _ in range(3):
        for agent in stage.agents:
            time.sleep(0.3)
            agent.kill()
            agent.start()
    stage.wait("fourteen")


def writes_of(cluster, since):
    return [(e["verb"], e["objectRef"].get("resource"), e["objectRef"].get("name"))
            for e in hub.entries_since(cluster, since)
            if e["user"]["username"].endswith((":agent", rollout.USER)) and
            e["verb"] in audit.WRITES and e["objectRef"].get("resource") != "clusters"]


def rests(stage):
    """at rest nothing is written but heartbeats"""
    time.sleep(6)
    all_of = [stage.main, *(agent.own for agent in stage.agents)]
    since = [hub.mark(cluster) for cluster in all_of]
    time.sleep(3)
    for cluster, mark in zip(all_of, since):
        assert not writes_of(cluster, mark), writes_of(cluster, mark)


def uninstalls(stage):
    """a Bundle that is deleted goes from both clusters, also where the agent was away"""
    stage.agents[1].kill()
    stage.main.api.delete("bundles", "app", hub.SPACE)
    api.wait_until("the hub has nothing", lambda: not stage.main.api.list("bundledeployments"))
    stage.agents[1].start()

    def clean(agent):
        return not agent.find("deployments", "web") and not agent.find("configmaps", "settings")
    api.wait_until("both clusters have nothing", lambda: stage.all(clean))
    assert stage.all(lambda a: a.find("configmaps", "foreign"))


ACTS = (deploys, updates, prunes, refused, unknown, unready, drifts, offline, hub_away,
        cluster_away, killed, rests, uninstalls)


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("agents of clusters", problem)
        return tap.done()
    program = drover.programs()[0]
    wanted = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        main_cluster = stack.enter_context(plane.Cluster(
            "check-agents-hub", audit=hub.AUDIT, scheduler=False,
            arguments={"kube-controller-manager": MANAGER}))
        owned = [stack.enter_context(plane.Cluster(f"check-agents-{name}", scheduler=False))
                 for name in NAMES]
        hub.prepare(main_cluster, program)
        stage = Stage(program, main_cluster, owned)
        for own in owned:
            own.add_nodes(1)
            grant(own)
        stack.enter_context(stage.operator)
        for agent in stage.agents:
            agent.register()
            agent.start()
            stack.callback(agent.stop)
        for act in ACTS:
            if wanted and act.__name__ not in wanted:
                continue
            wrong, began = None, time.monotonic()
            try:
                act(stage)
            except Exception as error:  # pylint: disable=broad-exception-caught
                wrong = f"{type(error).__name__}: {error}"
                for cluster in (main_cluster, *owned):
                    cluster.fail()
            tap.test(act.__doc__, wrong)
            print(f"# {time.monotonic() - began:.1f} s", flush=True)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
