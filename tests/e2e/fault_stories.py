# SPDX-License-Identifier: Apache-2.0
"""What others do to nodes, pods, policies and rights while a rollout runs: one story each."""

import fleet
import node_stories
import rollout
import stages
from package_stories import service, stages as stages_of

PREFIX = rollout.PREFIX


# ---- drains

def pod(story, name, at=0, space="default", **more):
    """One on a node of the story that runs; more: of its spec."""
    labels = more.pop("labels", {"app": story.name})
    notes = more.pop("annotations", {})
    owners = more.pop("owners", [])
    story.api.create("pods", {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": notes,
                     "ownerReferences": owners},
        "spec": {"nodeName": story.nodes[at], **more,
                 "containers": [{"name": "a", "image": "example.test/a:1"}]}}, space)
    story.wait(f"{name} runs", lambda: story.api.get(
        "pods", name, space)["status"].get("phase") not in (None, "Pending"))
    return name


def spares_what_belongs_to_the_node(story):
    """a drain leaves pods of DaemonSets, of kube-system, those that tolerate a cordon and those
    that have ended; it evicts one without an owner"""
    story.add_nodes(1)
    owner = story.api.create("daemonsets", {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": story.name},
        "spec": {"selector": {"matchLabels": {"ds": story.name}}, "template": {
            "metadata": {"labels": {"ds": story.name}},
            "spec": {"nodeSelector": {"story": story.name}, "containers": [
                {"name": "a", "image": "example.test/a:1"}]}}}}, "default")
    story.wait("its pod runs", lambda: [one for one in story.api.list(
        "pods", "default", labelSelector=f"ds={story.name}")
        if one["status"].get("phase") == "Running"])
    kept = [(pod(story, f"{story.name}-system", space="kube-system"), "kube-system"),
            (pod(story, f"{story.name}-tolerates", tolerations=[
                {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]), "default"),
            (pod(story, f"{story.name}-ended", restartPolicy="Never",
                 annotations={stages.RUN: "succeed"}), "default"),
            (pod(story, f"{story.name}-ds", owners=[
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": story.name, "uid":
                 owner["metadata"]["uid"]}], labels={"x": "y"}), "default")]
    evicted = pod(story, f"{story.name}-bare")
    story.skyhook({"spa": rollout.package(interrupt=service("a"))})
    story.complete()
    assert not story.api.find("pods", evicted, "default"), "it was not evicted"
    left = [name for name, space in kept if not story.api.find("pods", name, space)]
    assert not left, f"{left} are gone"
    assert story.api.list("pods", "default", labelSelector=f"ds={story.name}")
    story.api.delete("daemonsets", story.name, "default")


def pods_that_must_end_first(story):
    """podNonInterruptLabels: nothing is evicted while such a pod runs, and it is told which; then
    the drain goes on"""
    story.add_nodes(1)
    must = pod(story, f"{story.name}-batch", labels={"train": story.name},
               annotations={stages.RUN: "hang"})
    other = pod(story, f"{story.name}-other")
    story.skyhook({"non": rollout.package(interrupt=service("a"))}, podNonInterruptLabels={
        "matchLabels": {"train": story.name}})
    story.wait("it is cordoned", story.is_cordoned)
    rollout.wait(4)
    assert story.api.find("pods", other, "default") and not story.jobs(), "it did not wait"
    assert not story.api.get("pods", must, "default")["metadata"].get("deletionTimestamp")
    state, text = story.explain()
    assert state == "inFlight" and must in text, text
    story.api.delete("pods", must, "default")
    story.complete()
    assert not story.api.find("pods", other, "default")


def two_budgets_on_one_pod(story):
    """a pod that two budgets select cannot be evicted at all: it is told which pod the drain waits
    for, and that goes on when one budget is gone"""
    story.add_nodes(1)
    name = node_stories.application(story)
    for word in ("one", "two"):
        story.api.create("poddisruptionbudgets", {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": f"{story.name}-{word}"},
            "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": story.name}}}},
                         "default")
    story.skyhook({"two": rollout.package(interrupt=service("a"))})
    story.told("the drain waits", f"default/{name}", "several PodDisruptionBudgets select it")
    state, text = story.explain()
    assert state == "inFlight" and f"{name}, which nobody can evict: several budgets" in text, text
    assert not story.jobs()
    story.api.delete("poddisruptionbudgets", f"{story.name}-one", "default")
    story.complete()


def budget_in_mid_drain(story):
    """a budget that is made in the middle of a drain holds what is left of it"""
    story.add_nodes(1)
    slow = node_stories.application(story, terminate="4s")
    second = pod(story, f"second-{story.name}", labels={"app": f"{story.name}-2"})
    story.api.create("poddisruptionbudgets", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": story.name}, "spec": {
            "minAvailable": 1, "selector": {"matchLabels": {"app": f"{story.name}-2"}}}}, "default")
    story.wait("the budget counts", lambda: story.api.get("poddisruptionbudgets", story.name,
               "default").get("status", {}).get("currentHealthy") == 1)
    story.skyhook({"mdr": rollout.package(interrupt=service("a"))})
    story.told("the drain waits", f"default/{second}", f"PodDisruptionBudget {story.name}")
    story.wait("the first is gone", lambda: not story.api.find("pods", slow, "default"))
    assert not story.jobs()
    story.api.delete("poddisruptionbudgets", story.name, "default")
    story.complete()


def paused_in_mid_drain(story):
    """a pause in mid-drain: no eviction and no Job more, cordon and claim stay"""
    story.add_nodes(1)
    name = node_stories.application(story)
    node_stories.protect(story)
    story.skyhook({"pmd": rollout.package(interrupt=service("a"))})
    story.told("the drain waits", f"default/{name}")
    story.stage.plugin("pause", story.name, "--confirm")
    rollout.wait_status(story.cluster, story.name, "paused")
    story.api.delete("poddisruptionbudgets", story.name, "default")
    rollout.wait(8)
    assert story.api.find("pods", name, "default") and not story.jobs(), "it went on"
    assert story.is_cordoned() and story.batch().get("members") == story.nodes, story.batch()
    story.stage.plugin("resume", story.name, "--confirm")
    story.complete()
    assert not story.is_cordoned()


# ---- Jobs

def lost_again_and_again(story):
    """a Job that vanishes three times without an outcome is erroring, JobLost"""
    story.add_nodes(1)
    story.behave(**{"jlo-1.0.0": "hang"})
    story.skyhook("jlo")
    seen = set()
    for _ in range(3):
        job = story.wait("another one runs", lambda: next(
            (one for one in story.jobs() if one["metadata"]["uid"] not in seen), None))
        seen.add(job["metadata"]["uid"])
        story.api.delete("jobs", job["metadata"]["name"], rollout.SPACE)
    story.wait("it is erroring", lambda: story.why() == "JobLost")
    assert story.note("status") == "erroring"


def three_of_those_that_failed(story):
    """of the Jobs that failed the last three of a stage are kept"""
    story.add_nodes(1)
    story.behave(**{"thr-1.0.0": "fail"})
    story.skyhook("thr")
    story.wait("the fifth attempt has failed", lambda: story.jobs() and int(
        story.jobs()[-1]["metadata"]["annotations"][PREFIX + "attempt"]) >= 5, 300)
    story.wait("three are left", lambda: len(story.jobs()) <= 3)
    assert 'thr|1.0.0' in story.note("nodeState") and '"restarts":' in story.note("nodeState")


def two_hundred_of_those_that_failed(story):
    """of all Jobs of a Skyhook that failed the last 200 are kept"""
    story.add_nodes(70)
    story.behave(**{"hun-1.0.0": "fail"})
    story.skyhook("hun")

    def attempts():
        """Of every node those that are kept."""
        kept = {node: [] for node in story.nodes}
        for job in story.jobs():
            labels, notes = job["metadata"]["labels"], job["metadata"]["annotations"]
            kept[labels[PREFIX + "node"]].append(int(notes[PREFIX + "attempt"]))
        return kept
    story.wait("all have failed three times", lambda: all(
        numbers and numbers[-1] >= 3 for numbers in attempts().values()))
    story.wait("200 are left", lambda: sum(map(len, attempts().values())) <= 200)
    kept = attempts()
    assert sum(map(len, kept.values())) == 200, kept
    assert all(numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) <= 3
               for numbers in kept.values()), f"not the oldest ones went: {kept}"


def job_of_somebody_else(story):
    """a Job that has the name and is not ours is never read: the next attempt has another name"""
    story.add_nodes(1)
    made = story.skyhook("frn", nodeSelectors={"matchLabels": {"story": "nobody"}})
    story.wait("its finalizer", lambda: story.api.get("skyhooks", story.name)["metadata"].get(
        "finalizers"))
    # The name that the first attempt on this node will have, from a twin of this Skyhook.
    story.behave(**{f"apply_{story.nodes[0]}": "hang"})
    story.api.patch("skyhooks", story.name, {"spec": {"nodeSelectors": {
        "matchLabels": {"story": story.name}}}})
    name = story.wait("it runs", lambda: story.jobs())[0]["metadata"]["name"]
    story.api.delete("skyhooks", story.name)
    story.api.delete("jobs", name, rollout.SPACE)
    story.wait("it is gone", lambda: not story.api.find("skyhooks", story.name) and
               not story.api.find("jobs", name, rollout.SPACE))
    story.behave(**{f"apply_{story.nodes[0]}": None})
    story.api.patch("nodes", story.nodes[0], {"metadata": {"annotations": {
        f"{PREFIX}{key}_{story.name}": None for key in ("drover", "nodeState", "status")}}})
    story.api.create("jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "a", "image": "example.test/a:1"}]}}, "suspend": True}}, rollout.SPACE)
    again = story.skyhook("frn")
    assert again["metadata"]["uid"] != made["metadata"]["uid"]
    story.complete()
    found = [job["metadata"]["name"] for job in story.jobs()]
    assert len(found) == 2 and name not in found, found


def reboot_that_does_not_happen(story):
    """a reboot interrupt whose Job fails while the node stays up with its bootID is erroring after
    two minutes, not before"""
    story.add_nodes(1)
    story.behave(**{f"interrupt_{story.nodes[0]}": "fail"})
    story.skyhook({"nor": rollout.package(interrupt={"type": "reboot"})})
    story.wait("the interrupt has failed", lambda: any(
        c["type"] == "Failed" for job in story.jobs(stage="interrupt")
        for c in job["status"].get("conditions", [])))
    rollout.wait(60)
    assert story.note("status") == "in_progress", "it was judged too early"
    story.wait("it is erroring", lambda: story.note("status") == "erroring", 240)
    assert len(story.jobs(stage="interrupt")) == 1 and story.is_cordoned()


# ---- nodes

def nobody_is_ready(story):
    """when all nodes fall silent nothing is started; when they are back it goes on"""
    story.add_nodes(4)
    for node in story.nodes:
        fleet.lose(story.api, node)
    story.skyhook({"nob": rollout.package(interrupt=service("a"))}, interruptionBudget={"count": 2})
    rollout.wait(6)
    assert not story.jobs() and not any(story.is_cordoned(at) for at in range(4))
    state, text = story.explain()
    assert state == "blocked" and '"notReady"' in text, text
    for node in story.nodes:
        fleet.bring_back(story.api, node)
    story.complete()


def leaves_in_mid_flight(story):
    """a node that is not selected any more in mid-flight is let go: no cordon, no claim"""
    story.add_nodes(2)
    story.behave(**{f"apply_{story.nodes[0]}": "succeed 4s"})
    story.skyhook({"lea": rollout.package(interrupt=service("a"))}, interruptionBudget={"count": 1})
    story.wait("it runs", lambda: stages_of(story, story.nodes[0]) and story.is_cordoned(0))
    story.api.patch("nodes", story.nodes[0], {"metadata": {"labels": {"story": None}}})
    shown = story.complete()
    assert shown["completeNodes"] == "1/1", shown
    story.wait("it is not cordoned", lambda: not story.is_cordoned(0))
    assert not story.note("cordon", 0)


def changes_compartments(story):
    """a node in flight whose labels change keeps its compartment until its batch has ended; others
    move at once"""
    story.add_nodes(4, labels=lambda number: {"half": "a" if number < 2 else "b"})
    story.behave(**{f"apply_{story.nodes[0]}": "succeed 5s"})
    story.policy({"count": 1}, compartments=[
        {"name": half, "selector": {"matchLabels": {"half": half}}, "budget": {"count": 1},
         "strategy": {"fixed": {}}} for half in ("a", "b")])
    story.skyhook("moc", deploymentPolicy=story.name)
    story.wait("it is in flight", lambda: story.nodes[0] in story.batch("a").get("members", []))
    story.api.patch("nodes", story.nodes[0], {"metadata": {"labels": {"half": "b"}}})
    rollout.wait(1)
    assert story.nodes[0] in story.batch("a").get("members", []), story.status()
    shown = story.complete()["compartmentStatuses"]
    assert (shown["a"]["matched"], shown["b"]["matched"]) == (1, 3), shown
    assert story.check_limits(2) == 2


def fleet_that_moves(story):
    """nodes that come and go during a rollout: the budget is that of who is there, all of them end
    as complete"""
    story.add_nodes(10)
    story.behave(**{"flt-1.0.0": "succeed 1s"})
    story.policy({"percent": 20}, {"fixed": {"initialBatch": 10}})
    story.skyhook("flt", deploymentPolicy=story.name)
    story.wait("it runs", lambda: story.status().get("completeNodes", "0/").split("/")[0] not in
               ("", "0"))
    for node in story.nodes[7:]:
        story.api.delete("nodes", node)
    story.nodes = story.nodes[:7]
    story.wait("three less", lambda: story.status()["completeNodes"].endswith("/7"))
    assert story.status()["compartmentStatuses"]["__default__"]["ceiling"] == 1
    first = len(story.nodes) + 3
    story.nodes += story.cluster.add_nodes(8, prefix=story.name, first=first,
                                           labels={"story": story.name})
    shown = story.complete()
    assert shown["completeNodes"] == "15/15", shown
    assert shown["compartmentStatuses"]["__default__"]["ceiling"] == 3, shown
    assert story.check_limits(3) <= 3


def policy_that_goes_and_tightens(story):
    """a policy that is deleted in mid-rollout: what is in flight goes on, nothing starts; one that
    is tightened below what is in flight stops no work, only starts"""
    story.add_nodes(6)
    story.behave(**{"pol-1.0.0": "succeed 3s"})
    story.policy({"count": 3})
    story.skyhook("pol", deploymentPolicy=story.name)
    story.wait("three are in flight", lambda: len(story.batch().get("members") or []) == 3)
    story.api.delete("deploymentpolicies", story.name)
    rollout.wait_status(story.cluster, story.name, "blocked")
    story.wait("they end", lambda: story.status()["completeNodes"] == "3/6")
    rollout.wait(2)
    assert story.status()["completeNodes"] == "3/6" and len(
        {job["spec"]["template"]["spec"]["nodeName"] for job in story.jobs()}) == 3
    story.policy({"count": 2})
    story.wait("two are in flight", lambda: len(story.batch().get("members") or []) == 2)
    story.api.patch("deploymentpolicies", story.name, {"spec": {"default": {"budget": {
        "count": 1}}}})
    story.complete()
    assert story.check_limits(3) == 3


def taint_that_others_change(story):
    """somebody takes the runtime-required taint from a node and puts it back: the node is still
    completed, and freed"""
    story.add_nodes(1, taints=[node_stories.TAINT])
    story.behave(**{"ttc-1.0.0": "succeed 3s"})
    story.skyhook("ttc", runtimeRequired=True)
    story.wait("it runs", story.jobs)
    story.api.patch("nodes", story.nodes[0], {"spec": {"taints": []}})
    rollout.wait(1)
    assert not story.is_tainted(), "it was tainted without having been told to"
    story.api.patch("nodes", story.nodes[0], {"spec": {"taints": [node_stories.TAINT]}})
    story.complete()
    story.wait("it is free", lambda: not story.is_tainted())


def node_that_refuses(story):
    """an admission policy of the cluster refuses what is written to one node: nothing runs there,
    who was picked with it goes on, an event says why, and when it is gone the node follows"""
    story.add_nodes(2)
    guarded = story.nodes[0]
    rules = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
             "resources": ["nodes", "nodes/status"]}
    only = f"object.metadata.name != '{guarded}' || request.userInfo.username != '{rollout.USER}'"
    story.api.create("validatingadmissionpolicies", {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": story.name}, "spec": {
            "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rules]},
            "validations": [{"expression": only, "message": "hands off"}]}})
    story.api.create("validatingadmissionpolicybindings", {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": story.name},
        "spec": {"policyName": story.name, "validationActions": ["Deny"]}})
    rollout.wait(3)  # until the server obeys it
    story.skyhook("nor", interruptionBudget={"count": 2})
    story.told("cannot be written", "hands off")
    story.wait("the other is done", lambda: story.status().get("completeNodes") == "1/2")
    assert not story.jobs(node=guarded) and story.batch()["members"] == [guarded], story.batch()
    story.api.delete("validatingadmissionpolicybindings", story.name)
    story.api.delete("validatingadmissionpolicies", story.name)
    story.complete()
    assert story.check_limits(2) <= 2


STORIES = [spares_what_belongs_to_the_node, pods_that_must_end_first, two_budgets_on_one_pod,
           budget_in_mid_drain, paused_in_mid_drain, lost_again_and_again,
           three_of_those_that_failed, two_hundred_of_those_that_failed, job_of_somebody_else,
           reboot_that_does_not_happen,
           nobody_is_ready, leaves_in_mid_flight, changes_compartments, fleet_that_moves,
           policy_that_goes_and_tightens, taint_that_others_change, node_that_refuses]


# ---- what stops all of it, one after the other

def rights_that_are_gone(story):
    """the operator's rights are taken away in the middle and given back: it goes on by itself"""
    story.add_nodes(4)
    story.behave(**{"rig-1.0.0": "succeed 1s"})
    story.skyhook("rig", interruptionBudget={"count": 2})
    story.wait("it runs", story.jobs)
    kept = story.api.get("clusterrolebindings", "drover-operator")
    story.api.delete("clusterrolebindings", "drover-operator")
    try:
        rollout.wait(8)
        assert story.status()["status"] != "complete", "it had the rights all the same"
    finally:
        story.api.create("clusterrolebindings", {
            **kept, "metadata": {"name": kept["metadata"]["name"]}})
    story.complete()
    assert story.check_limits(2) == 2


IN_TURN = [rights_that_are_gone]
