# SPDX-License-Identifier: Apache-2.0
"""What another program left in the cluster in the middle of a rollout: Skyhook's own operator, a
Drover that is newer, one that kept nothing. One story each, with operators of its own, in turn."""

import base64
import contextlib
import json
import os

import ledger
import rollout
from job_stories import raw_pod
from package_stories import service

PREFIX = rollout.PREFIX
VERSION = "v0.15.0"  # of Skyhook's operator


def operator(story):
    return rollout.Operator(story.stage.program, story.cluster)


# ---- Skyhook's own operator

def entry(version, stage, state, name="tak"):
    return {"name": name, "version": version, "image": "example.test/package", "stage": stage,
            "state": state}


def condition(kind, reason, message):
    return {"type": kind, "status": "True" if kind.endswith(("/NotReady", "ApplyPackage"))
            else "False", "reason": reason, "message": message,
            "lastHeartbeatTime": "2026-01-02T03:04:05Z",
            "lastTransitionTime": "2026-01-02T03:04:05Z"}


def leave_node(story, at, state, status, cordoned):
    """As Skyhook's operator leaves a node that it works on."""
    notes = {f"nodeState_{story.name}": json.dumps(state, separators=(",", ":")),
             f"status_{story.name}": status, f"version_{story.name}": VERSION}
    if cordoned:
        notes[f"cordon_{story.name}"] = "true"
    node = story.nodes[at]
    story.api.patch("nodes", node, {
        "metadata": {"annotations": {PREFIX + key: text for key, text in notes.items()},
                     "labels": {f"{PREFIX}status_{story.name}": status}},
        "spec": {"unschedulable": cordoned or None}})
    story.api.patch("nodes", node, {"status": {"conditions": [
        condition(f"{PREFIX}{story.name}/NotReady", "Incomplete", f"Skyhook {story.name} Ready"),
        condition(f"{PREFIX}{story.name}/Erroring", "Not Erroring",
                  f"Package Erroring or Unknown for {story.name}")]}}, sub="status",
                    how="strategic")


def leave_map(story, owner, name, data, label="name"):
    story.api.create("configmaps", {
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": name, "labels": {PREFIX + label: story.name}, "ownerReferences": [{
            "apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook", "controller": True,
            "blockOwnerDeletion": True, "name": story.name, "uid": owner}]}}, rollout.SPACE)


def leave_maps(story, owner):
    """Files of the version before, and what packages were told of a node."""
    leave_map(story, owner, f"{story.name}-tak-1.0.0", {"a.conf": "1"})
    leave_map(story, owner, f"{story.name}-{story.nodes[0]}-metadata-12345678", {"a.conf": "1"},
              "skyhook-node-meta")


def leave_status(story, states):
    shown = {node: {"tak|2.0.0": states[node]} for node in story.nodes}
    now = "2026-01-02T03:04:05Z"
    story.api.patch("skyhooks", story.name, {"status": {
        "status": "in_progress", "observedGeneration": 2, "nodeState": shown,
        "nodeStatus": {node: "in_progress" for node in story.nodes},
        "nodePriority": {node: now for node in story.nodes}, "nodeOrderOffset": 3,
        "nodesInProgress": len(story.nodes), "completeNodes": f"0/{len(story.nodes)}",
        "packageList": "tak:2.0.0", "configUpdates": {},
        "compartmentStatuses": {"__default__": {
            "matched": 6, "ceiling": 2, "inProgress": 6, "completed": 0, "progressPercent": 0,
            "batchState": {"currentBatch": 3, "consecutiveFailures": 1, "completedNodes": 4,
                           "failedNodes": 1, "lastBatchSize": 2, "lastBatchFailed": True}}},
        "conditions": [{"type": f"{PREFIX}Transition", "status": "False", "reason": "in_progress",
                        "message": "Transitioned [waiting] -> [in_progress]",
                        "observedGeneration": 2, "lastTransitionTime": now}]}}, sub="status")


def claims_hold(story, budget, since):
    """Claims never exceed the budget, and Jobs are only where one is held."""
    fleet = ledger.Fleet(story.name, story.nodes)
    for revision, kind, thing in ledger.revisions(story.entries()[since:]):
        fleet.take(kind, thing)
        assert len(fleet.claimed) <= budget, (revision, sorted(fleet.claimed))
        assert set(fleet.jobs.values()) <= fleet.claimed, (revision, fleet.jobs, fleet.claimed)


def taken_over_from_skyhook(story):
    """Skyhook's operator had begun an upgrade on all nodes at once, with cordons, raw pods, maps
    and a batch of its own: from there on it is paced, nobody stays cordoned but whom a person
    cordoned, and nothing is left"""
    story.add_nodes(6)
    made = story.skyhook({"tak": rollout.package(
        "2.0.0", interrupt=service("a"), configMap={"a.conf": "2"})},
                         interruptionBudget={"count": 2})
    story.api.patch("skyhooks", story.name, {"metadata": {"finalizers": [f"{PREFIX}skyhook"]}})
    before = entry("1.0.0", "post-interrupt", "complete")
    begun = {"tak|1.0.0": before, "tak|2.0.0": entry("2.0.0", "upgrade", "in_progress")}
    done = {"tak|2.0.0": entry("2.0.0", "post-interrupt", "complete")}
    for at in range(4):
        leave_node(story, at, begun, "in_progress", True)
    leave_node(story, 4, done, "complete", False)
    leave_node(story, 5, begun, "in_progress", False)
    story.api.patch("nodes", story.nodes[5], {"spec": {"unschedulable": True}})  # a person did
    leave_maps(story, made["metadata"]["uid"])
    leave_status(story, {node: (done if at == 4 else begun)["tak|2.0.0"]
                         for at, node in enumerate(story.nodes)})
    raw_pod(story, story.nodes[0], "hang", package="tak", version="2.0.0", stage="upgrade",
            container="tak-upgrade", before=begun)
    story.wait("it runs", lambda: "startTime" in story.api.get(
        "pods", f"raw-{story.nodes[0]}", rollout.SPACE)["status"])
    since = len(story.entries())
    with operator(story):
        story.wait("another one is worked on", lambda: story.jobs(node=story.nodes[1]))
        rollout.wait(2)
        assert not story.jobs(node=story.nodes[0]), "a Job beside a raw pod"
        assert story.is_cordoned(0)
        story.api.delete("pods", f"raw-{story.nodes[0]}", rollout.SPACE)
        shown = story.complete()
        assert shown["completeNodes"] == "6/6" and not shown.get("nodePriority"), shown
        for at in range(6):
            assert list(json.loads(story.note("nodeState", at))) == ["tak|2.0.0"]
        assert not story.jobs(node=story.nodes[4]), "what was complete ran again"
        assert [story.is_cordoned(at) for at in range(6)] == [False] * 5 + [True]
        claims_hold(story, 2, since)
        story.wait("the old files go", lambda: not story.api.find(
            "configmaps", f"{story.name}-tak-1.0.0", rollout.SPACE))
        story.api.delete("skyhooks", story.name)
        story.wait("it is gone", lambda: not story.api.find("skyhooks", story.name))
        story.wait("and its maps", lambda: not [
            one for one in story.api.list("configmaps", rollout.SPACE)
            if one["metadata"]["name"].startswith(story.name)])
        assert story.is_cordoned(5)


def leave_skyhook(story, packages, status, **spec):
    """A Skyhook that its operator knew as it is. Returns its uid."""
    made = story.skyhook(packages, **spec)
    story.api.patch("skyhooks", story.name, {"metadata": {"finalizers": [f"{PREFIX}skyhook"]}})
    story.api.patch("skyhooks", story.name, {"status": {
        "packageList": ",".join(f"{name}:{packages[name]['version']}" for name in sorted(packages)),
        **status}}, sub="status")
    return made["metadata"]["uid"]


def taken_over_with_config_updates(story):
    """Skyhook's operator had changed files, with an interrupt of their own or none: nodes that have
    them are complete, whatever interrupt an install has, and one in the middle goes on with that
    of the files"""
    story.add_nodes(5)
    packages = {"tak": rollout.package("2.0.0", interrupt={"type": "reboot"},
                                       configMap={"a.conf": "2"}),
                "tbk": rollout.package("2.0.0", interrupt={"type": "reboot"},
                                       configMap={"b.conf": "2"},
                                       configInterrupts={"b.*": service("cron")})}
    owner = leave_skyhook(story, packages, {
        "status": "in_progress", "configUpdates": {"tak": ["a.conf"], "tbk": ["b.conf"]}})
    for name, package in packages.items():
        leave_map(story, owner, f"{story.name}-{name}-2.0.0", package["configMap"])
    for at in range(5):
        state = {"tak|2.0.0": entry("2.0.0", "config", "complete"),
                 "tbk|2.0.0": entry("2.0.0", *(("post-interrupt", "complete") if at < 4 else
                                               ("config", "in_progress")), "tbk")}
        leave_node(story, at, state, "complete" if at < 4 else "in_progress", at == 4)
    with operator(story):
        shown = story.complete()
        assert shown["completeNodes"] == "5/5" and not shown.get("configUpdates"), shown
    ran = [(job["metadata"]["labels"][PREFIX + "node"], job["metadata"]["labels"][PREFIX + "stage"])
           for job in story.jobs()]
    assert ran == [(story.nodes[4], stage) for stage in ("config", "interrupt", "post-interrupt")]
    told = story.jobs(stage="interrupt")[0]["spec"]["template"]["spec"]["containers"][0]["args"][-1]
    assert json.loads(base64.b64decode(told)) == {"type": "service_restart", "services": ["cron"]}
    assert not any(story.is_cordoned(at) for at in range(5))
    with operator(story):  # the status says no more what was changed
        rollout.wait(3)
    assert len(story.jobs()) == 3, "a restart made something of nodes that were complete"


def taken_over_stopped(story):
    """Skyhook's operator had stopped a rollout because its nodes failed: it stays stopped, with its
    batches, until a person says otherwise"""
    story.add_nodes(8)
    story.policy({"count": 3}, {"fixed": {"initialBatch": 3, "failureThreshold": 1}})
    leave_skyhook(story, {"tak": rollout.package()}, {
        "status": "erroring", "nodeOrderOffset": 2, "compartmentStatuses": {"__default__": {
            "matched": 8, "ceiling": 3, "inProgress": 0, "completed": 2, "progressPercent": 25,
            "batchState": {"currentBatch": 3, "consecutiveFailures": 1, "completedNodes": 2,
                           "failedNodes": 3, "lastBatchSize": 3, "lastBatchFailed": True,
                           "shouldStop": True}}}}, deploymentPolicy=story.name)
    for at in range(5):
        stage, state = ("config", "complete") if at < 2 else ("apply", "erroring")
        leave_node(story, at, {"tak|1.0.0": entry("1.0.0", stage, state)}, state, False)
    for _ in range(2):
        with operator(story):
            story.wait("it has taken over", lambda: story.status().get("drover"))
            rollout.wait(3)
            state, told = story.explain(6)
            assert state == "waiting" and "stopped" in told, told
        batch = story.batch()
        assert not story.jobs() and batch["shouldStop"], batch
        assert (batch["currentBatch"], batch["completedNodes"], batch["failedNodes"]) == (3, 2, 3)
        assert story.status()["nodeOrderOffset"] == 2
    with operator(story):
        story.stage.plugin("deployment-policy", "reset", story.name, "--confirm")
        assert story.complete()["completeNodes"] == "8/8"
    assert story.check_limits(3) <= 3


def taken_over_with_old_files(story):
    """An edit of files that Skyhook's operator had not brought out, since it was paused: all nodes
    get it, also when Drover is killed and started again before"""
    story.add_nodes(4)
    packages = {"tak": rollout.package(configMap={"a.conf": "new", "b.conf": "same"})}
    owner = leave_skyhook(story, packages, {"status": "paused"}, interruptionBudget={"count": 2})
    leave_map(story, owner, f"{story.name}-tak-1.0.0", {"a.conf": "old", "b.conf": "same"})
    story.api.patch("skyhooks", story.name, {"metadata": {"annotations": {
        PREFIX + "pause": "true"}}})
    for at in range(4):
        leave_node(story, at, {"tak|1.0.0": entry("1.0.0", "config", "complete")}, "paused", False)
    for _ in range(2):
        with operator(story) as running:
            story.wait("it has taken over", lambda: story.status().get("drover"))
            rollout.wait(2)
            running.kill()
        assert not story.jobs() and story.status()["completeNodes"] == "0/4"
    story.stage.plugin("resume", story.name, "--confirm")
    with operator(story):
        assert story.complete()["completeNodes"] == "4/4"
    assert [len(story.jobs(node=node)) for node in story.nodes] == [1] * 4
    assert len(story.jobs(stage="config")) == 4
    files = story.api.get("configmaps", f"{story.name}-tak-1.0.0", rollout.SPACE)
    assert files["data"] == packages["tak"]["configMap"], files
    assert story.check_limits(2) == 2


# ---- Drover itself, in other versions

def stopped_in_the_middle(story):
    """A rollout whose operator is killed when one node is drained, two run a Job, and others are
    done or wait. Returns what has run by then."""
    story.add_nodes(8)
    story.behave(**{f"config_{story.nodes[at]}": "succeed 6s" for at in (2, 3)})
    story.skyhook({"ver": rollout.package(interrupt=service("a"))}, interruptionBudget={"count": 2})
    with operator(story) as first:
        story.wait("the second batch is at its config stage", lambda: all(
            story.jobs(node=story.nodes[at], stage="config") for at in (2, 3)))
        first.kill()


def ran_once(story):
    """Each stage on each node, in the order of stages."""
    for node in story.nodes:
        found = [job["metadata"]["labels"][PREFIX + "stage"] for job in story.jobs(node=node)]
        assert found == ["apply", "config", "interrupt", "post-interrupt"], (node, found)


def strange(record):
    """With things that nobody knows yet."""
    record["future"] = {"since": 1, "list": [1, {"a": None}], "text": "\u00e4"}
    record["zz"] = 2 ** 60
    for one in record.get("entries", []):
        one["future"] = [True, 1.5]
    for claim in record.get("claims", {}).values() if isinstance(
            record.get("claims"), dict) else []:
        claim += [0] * (3 - len(claim)) + ["future"]
    if "cohort" in record:
        record["cohort"]["future"] = {"a": 1}
    return json.dumps(record, separators=(",", ":"))


def records_of_a_newer_one(story):
    """records in which a newer Drover wrote more than this one knows: it goes on where that was,
    and nothing runs twice"""
    stopped_in_the_middle(story)
    for node in story.nodes:
        notes = story.api.get("nodes", node)["metadata"].get("annotations", {})
        record = notes.get(f"{PREFIX}drover_{story.name}")
        if record:
            story.api.patch("nodes", node, {"metadata": {"annotations": {
                f"{PREFIX}drover_{story.name}": strange(json.loads(record)),
                f"{PREFIX}future_{story.name}": "a newer one's", f"{PREFIX}future": "as well",
                f"{PREFIX}version_{story.name}": "v99.0.0"}}})
    story.api.patch("skyhooks", story.name, {"status": {
        "drover": strange(json.loads(story.status()["drover"]))}}, sub="status")
    with operator(story):
        shown = story.complete()
    assert shown["completeNodes"] == "8/8", shown
    ran_once(story)
    assert story.check_limits(2) == 2


def nothing_is_kept(story):
    """what only Drover knows is gone from the Skyhook and from nodes, as when another operator ran
    in between: what is noted of packages counts, and Jobs of before never do"""
    stopped_in_the_middle(story)
    running = {job["metadata"]["name"] for job in story.jobs()}
    for node in story.nodes:
        story.api.patch("nodes", node, {"metadata": {"annotations": {
            f"{PREFIX}drover_{story.name}": None}}})
    story.api.patch("skyhooks", story.name, {"status": {
        "drover": None, "compartmentStatuses": None, "nodePriority": None,
        "nodeOrderOffset": None}}, sub="status")
    since = len(story.entries())
    with operator(story):
        shown = story.complete()
        assert shown["completeNodes"] == "8/8", shown
        assert not any(story.is_cordoned(at) for at in range(8))
        done = [node for at, node in enumerate(story.nodes) if at < 2]
        for node in done:
            assert len(story.jobs(node=node)) == 4, "what was done ran again"
        claims_hold(story, 2, since)
        # The numbers of attempts began anew; what ran before has none of the new ones.
        count = len(story.jobs(stage="apply", package="ver-1.0.0"))
        story.stage.plugin("reset", story.name, "--confirm")
        story.wait("all of them are applied again", lambda: len(
            story.jobs(stage="apply", package="ver-1.0.0")) == count + 8)
        story.complete()
    assert running <= {job["metadata"]["name"] for job in story.jobs()}


def from_one_to_another(story):
    """two versions of Drover in turn, killed at whatever they do: the same end. OTHER names the
    other program; without it there is one"""
    other = os.environ.get("OTHER") or story.stage.program
    story.add_nodes(9)
    story.policy({"count": 3}, {"linear": {"initialBatch": 1}})
    story.behave(**{"fro-1.0.0": "succeed 1s", "fro-2.0.0": "succeed 1s",
                    f"apply_{story.nodes[4]}": "fail"})
    story.skyhook({"fro": rollout.package(interrupt=service("a"), configMap={"a.conf": "1"})},
                  deploymentPolicy=story.name)
    with contextlib.ExitStack() as stack:
        # By a variable: an option of one may be none of the other.
        pair = [rollout.Operator(program, story.cluster, elect=True,
                                 env={"LEADER_ELECTION": "false"})
                for program in (other, story.stage.program)]
        for turn in range(12):
            now = pair[turn % 2]
            stack.enter_context(now)
            rollout.wait(2 + turn % 3)
            if turn == 4:
                story.behave(**{f"apply_{story.nodes[4]}": None})
            if turn == 6:
                story.edit("fro", {"version": "2.0.0", "configMap": {"a.conf": "2"}})
            assert now.process.poll() is None, "it does not run"
            now.kill()
        stack.enter_context(pair[1])
        shown = story.complete()
    assert shown["completeNodes"] == "9/9", shown
    assert not any(story.is_cordoned(at) for at in range(9))
    assert story.check_limits(3) <= 3


STORIES = [taken_over_from_skyhook, taken_over_with_config_updates, taken_over_stopped,
           taken_over_with_old_files, records_of_a_newer_one, nothing_is_kept, from_one_to_another]
