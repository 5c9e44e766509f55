#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two clusters with `drover cluster-agent` each and a third as their hub, on which `drover operator
--serve clusters` rolls out: three real API servers. TAP."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import agent_charts
import agent_forms
import agent_kills
import agent_shapes
import api
import audit
import binaries
import drover
import in_pod
import plane
import rollout
from agent_stage import NAMES, SPACE, STRATEGY, Agent, Stage, resources, settings, web

MANAGER = ["--controllers=serviceaccount-token-controller"]  # fills the Secret of an account
# Longer than a request is repeated before the agent hears that its server is away.
OUTAGE_SECONDS = 10 + int(re.search(r"WRITE_PATIENCE_MS (\d+)", (
    drover.ROOT / "src/kube/write_queue.h").read_text("utf-8")).group(1)) / 1000
RESTING_SECONDS = 35  # longer than between two looks at what is not as it should be
# Reads are recorded of agents, too.
AUDIT = {**hub.AUDIT, "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"],
                                 "verbs": ["get", "list"]}, *hub.AUDIT["rules"]]}
RECORD = ("configmaps", "drover.hub", "drover-system")


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
    why = subprocess.run([str(stage.program), "explain", NAMES[0],
                          f"--kubeconfig={stage.main.kubeconfig()}", "-o", "json"],
                         capture_output=True, check=True).stdout
    message = json.loads(why)["reasons"][0]["message"]
    said = f"it is not ready: ConfigMap {SPACE}/settings: " if stage.agents[0].confirms_failures \
        else "a deployment that its agent has not confirmed yet is under way"
    assert message.startswith(said), message
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
        return not status.get("nonModified") and status["modifiedStatus"][0]["name"] == "settings"
    api.wait_until("it is told", told)
    api.wait_until("the hub tells, too", lambda: stage.summary().get("modified") == 1)
    stage.main.api.patch("bundles", "app", {"spec": {"correctDrift": one.puts_right}}, hub.SPACE)
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


def lose_settings(stage, agents):
    """What is deleted meanwhile stays so, for all to see, until the next version brings it."""
    stage.main.api.patch("bundles", "app", {"spec": {"correctDrift": None}}, hub.SPACE)
    api.wait_until("nothing is put right any more", lambda: stage.all(
        lambda a: not (a.deployment()["spec"].get("correctDrift") or {}).get("enabled")))
    return lambda: [agent.own.api.delete("configmaps", "settings", SPACE) for agent in agents]


def told_of_settings(agents):
    api.wait_until("it is told that they are missing", lambda: all(
        agent.modified("app") == ["settings"] for agent in agents), 90)


def run_again(stage, cluster):
    """Servers have closed the connections on which nothing was asked for so long."""
    cluster.run_again("kube-apiserver")
    for each in (stage.main, *(agent.own for agent in stage.agents)):
        each.api.drop()


def hub_away(stage):
    """without the hub, longer than agents are patient, nothing is lost: all is told afterwards"""
    lose = lose_settings(stage, stage.agents)
    assert stage.all(lambda a: a.modified("app") == [])
    stage.main.kill("kube-apiserver")
    lose()
    time.sleep(OUTAGE_SECONDS)
    run_again(stage, stage.main)
    told_of_settings(stage.agents)
    stage.change(web("twelve"), settings("twelve"))
    stage.wait("twelve")
    assert stage.all(lambda a: a.modified("app") == [])


def cluster_away(stage):
    """without its cluster, for as long, an agent waits and says so, and goes on when it is back"""
    one = stage.agents[0]
    lose, before = lose_settings(stage, [one]), len(one.log())
    one.own.kill("kube-apiserver")
    stage.change(web("thirteen"), settings("thirteen"))
    time.sleep(OUTAGE_SECONDS)
    if one.tells_outages:
        api.wait_until("it says so", lambda: "app: read inventory: Failed to connect" in
                       one.log()[before:])
    run_again(stage, one.own)
    stage.wait("thirteen")
    lose()
    told_of_settings([one])
    stage.main.api.patch("bundles", "app", {"spec": {"correctDrift": one.puts_right}}, hub.SPACE)
    if one.tells_outages:
        api.wait_until("it is put right", lambda: one.find("configmaps", "settings"), 60)


def killed(stage):
    """an update goes on when agents are killed again and again"""
    stage.change(web("fourteen"), settings("fourteen"))
    for _ in range(3):
        for agent in stage.agents:
            time.sleep(0.3)
            agent.kill()
            agent.start()
    stage.wait("fourteen")


def requests_of(stage, cluster, since):
    """Those of agents, by whatever name, and of the operator. A watch is none."""
    users = {rollout.USER, *(agent.own_user() for agent in stage.agents)}
    return [(e["verb"], e.get("objectRef", {}).get("resource"), e.get("objectRef", {}).get("name"))
            for e in hub.entries_since(cluster, since) if e["verb"] != "watch" and
            (e["user"]["username"].endswith(":agent") or e["user"]["username"] in users)]


def writes_of(stage, cluster, since):
    return [e for e in requests_of(stage, cluster, since)
            if e[0] in audit.WRITES and e[1] not in ("clusters", "leases")]


def effective(stage, cluster, since):
    """Without the namespace of its own, which an agent tries to create."""
    return [e for e in writes_of(stage, cluster, since) if e[1] != "namespaces"]


def rests(stage):
    """at rest nothing is asked for, and nothing written, but signs of life"""
    hub.wait_ready(stage.main, "app", len(NAMES))
    time.sleep(6)
    all_of = [stage.main, *(agent.own for agent in stage.agents)]
    since = [hub.mark(cluster) for cluster in all_of]
    time.sleep(RESTING_SECONDS)
    for cluster, mark in zip(all_of, since):
        assert requests_of(stage, cluster, 0), "nobody would be noticed"
        found = [e for e in requests_of(stage, cluster, mark) if e[1] != "leases"]
        if cluster is stage.main:
            alive = {name for verb, kind, name in found if (verb, kind) == ("patch", "clusters")}
            assert alive == set(NAMES), alive
            found = [e for e in found if e[1] != "clusters"]
        assert not found, found


# ---- whose cluster it is

def refuses(stage):
    """an agent that is told a wrong namespace of the hub, or another cluster, changes nothing"""
    one = stage.agents[0]
    one.stop()
    wrong = (("--hub-namespace", stage.agents[1].home), ("--hub-namespace", "fleet-default"),
             ("--namespace", "nowhere"))
    for words in wrong:
        since, before = hub.mark(one.own), len(one.log())
        one.start(*words, anybody=True)
        api.wait_until("it says why", lambda seen=before: "nothing is changed in the cluster" in
                       one.log()[seen:])
        time.sleep(3)
        assert not effective(stage, one.own, since), effective(stage, one.own, since)
        one.stop()
    assert one.find("deployments", "web") and one.find("configmaps", "settings")
    one.start()
    stage.change(web("fifteen"), settings("fifteen"))
    stage.wait("fifteen")


def made_anew(stage):
    """a hub whose Cluster was made anew while the agent was away is obeyed when a person says so"""
    one = stage.agents[0]
    one.stop()
    record = one.own.api.get(*RECORD)
    assert record["data"]["cluster"] == one.name and record["data"]["uid"], record
    one.own.api.patch(*RECORD[:2], {"data": {"uid": "another"}}, RECORD[2])
    before = len(one.log())
    one.start()
    api.wait_until("it says why", lambda: "delete the ConfigMap" in one.log()[before:])
    stage.change(web("sixteen"), settings("sixteen"))
    api.wait_until("it is waited for", lambda: stage.summary().get("waitApplied") == 1)
    time.sleep(2)
    notes = one.find("deployments", "web")["spec"]["template"]["metadata"]["annotations"]
    assert notes["version"] == "fifteen", notes
    one.own.api.delete(*RECORD)
    stage.wait("sixteen")


# ---- a hub that is set back

def set_back(stage):
    """a hub that comes back from a backup is obeyed, even if it soon has come as far as it was"""
    main, old = stage.main, version_of(stage)
    main.back_up()
    main.api.drop()
    for version in ("seventeen", "eighteen"):
        stage.change(web(version), settings(version))
        stage.wait(version)
    known = version_now(main)
    # Agents that come late find a hub that has told of all versions that they know: a watch from
    # there on would tell them nothing.
    for agent in stage.agents:
        agent.process.send_signal(signal.SIGSTOP)
    main.set_back()
    main.api.drop()
    assert version_now(main) < known, "the hub was not set back"
    main.api.create("configmaps", {"metadata": {"name": "age"}}, "default")
    while version_now(main) <= known:
        for number in range(20):
            main.api.patch("configmaps", "age", {"data": {"n": str(number)}}, "default")
    for agent in stage.agents:
        agent.process.send_signal(signal.SIGCONT)
    # Its status is as old, and says that all is well: what counts is what runs.
    assert version_of(stage) == old
    api.wait_until("the clusters run it", lambda: stage.all(lambda a: a.version() == old), 60)
    stage.change(web("nineteen"), settings("nineteen"))
    stage.wait("nineteen")


def version_now(cluster):
    """How far the store is."""
    reply = json.loads(cluster.api.raw("GET", "/api/v1/namespaces?limit=1")[1])
    return int(reply["metadata"]["resourceVersion"])


def version_of(stage):
    found = stage.main.api.get("bundles", "app", hub.SPACE)["spec"]["resources"][0]["content"]
    return json.loads(found)["spec"]["template"]["metadata"]["annotations"]["version"]


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


def deregistered(stage):
    """a Cluster that is deleted on the hub takes its deployments along, and leaves what runs"""
    bundle = hub.bundle("last", "", STRATEGY, defaultNamespace=SPACE)
    bundle["spec"]["resources"] = resources(settings("last"))
    stage.main.api.create("bundles", bundle, hub.SPACE)
    hub.wait_ready(stage.main, "last", len(NAMES))
    one = stage.agents[0]
    before = len(one.log())
    stage.main.api.delete("clusters", one.name, hub.SPACE)
    api.wait_until("the hub has nothing of it", lambda: one.home not in
                   hub.deployments(stage.main, "last"))
    api.wait_until("it says why", lambda: "does not take the sign of life" in one.log()[before:])
    time.sleep(3)
    assert one.find("configmaps", "settings")["data"]["version"] == "last"
    stage.main.api.delete("bundles", "last", hub.SPACE)
    api.wait_until("it goes where the Cluster is", lambda: not stage.agents[1].find(
        "configmaps", "settings"))
    time.sleep(1)
    assert one.find("configmaps", "settings"), "it went with the Cluster"


ACTS = (deploys, updates, prunes, refused, unknown, unready, drifts, offline, hub_away,
        cluster_away, killed, *agent_kills.ACTS, rests, refuses, made_anew, agent_forms.forms,
        *agent_shapes.ACTS, *agent_charts.ACTS, *agent_shapes.CHART_ACTS, set_back, uninstalls,
        deregistered)
HELM_ACTS = (*agent_charts.ACTS, *agent_shapes.CHART_ACTS)


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
            "check-agents-hub", audit=AUDIT, scheduler=False,
            arguments={"kube-controller-manager": MANAGER}))
        owned = [stack.enter_context(plane.Cluster(f"check-agents-{name}", audit=AUDIT,
                                                   scheduler=False)) for name in NAMES]
        for cluster in (main_cluster, *owned):
            cluster.api.drop()  # a slow machine starts three in more time than a server waits
        hub.prepare(main_cluster, program)
        rollout.grant(main_cluster)
        stage = Stage(program, main_cluster, owned)
        for own in owned:
            own.add_nodes(1)
            rollout.grant(own, "cluster-agent.yaml")
        if in_pod.missing():
            print(f"# nobody runs as in a pod: {in_pod.missing()}", flush=True)
        else:
            rollout.create_account(owned[1], "drover-cluster-agent", "drover-system")
            stage.agents[1].pod = in_pod.Account(owned[1], "drover-cluster-agent", "drover-system")
        stack.enter_context(stage.operator)
        for agent in stage.agents:
            agent.register()
            agent.start()
            stack.callback(agent.stop)
        for act in ACTS:
            if wanted and act.__name__ not in wanted:
                continue
            if act in HELM_ACTS and binaries.HELM.missing():
                tap.skip(act.__doc__, binaries.HELM.missing())
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
