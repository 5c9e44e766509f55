# SPDX-License-Identifier: Apache-2.0
"""Cordons, drains, reboots and taints, and nodes that go away: one story each."""

import drover
import fleet
import rollout

REBOOT = {"type": "reboot"}
SERVICE = {"type": "service", "services": ["a"]}
TAINT = {"key": "skyhook.nvidia.com", "value": "runtime-required", "effect": "NoSchedule"}
LOST_SECONDS = 140  # of the operator's --node-lost-after in these tests; a reboot has 120


# ---- drains

def application(story, at=0, **notes):
    """A pod that has to be evicted."""
    name = f"app-{story.nodes[at]}"
    story.api.create("pods", {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": story.name},
                     "annotations": {f"drover.test/{key}": value for key, value in notes.items()}},
        "spec": {"nodeName": story.nodes[at],
                 "containers": [{"name": "a", "image": "example.test/a:1"}]}}, "default")
    story.wait("the application runs", lambda: story.api.get(
        "pods", name, "default")["status"].get("phase") == "Running")
    return name


def protect(story):
    """A budget that lets no pod of the story go."""
    story.api.create("poddisruptionbudgets", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": story.name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": story.name}}}}, "default")
    story.wait("the budget counts", lambda: story.api.get(
        "poddisruptionbudgets", story.name, "default").get("status", {}).get("currentHealthy") == 1)


def blocked_for_a_minute(story):
    """a PodDisruptionBudget that blocks for a minute: no Job, and people are told which pod and
    budget; then it goes on"""
    story.add_nodes(1)
    pod = application(story)
    protect(story)
    story.skyhook({"blo": rollout.package(interrupt=SERVICE)})
    story.told("the drain waits", f"default/{pod}", f"PodDisruptionBudget {story.name}")
    rollout.wait(60)
    assert story.is_cordoned() and story.note("status") == "in_progress"
    state, text = story.explain()
    assert state == "inFlight" and '"drain"' in text, text
    assert f"default/{pod}, which the budget {story.name} protects" in text, text
    assert not story.jobs() and story.api.find("pods", pod, "default"), "it did not wait"
    story.api.delete("poddisruptionbudgets", story.name, "default")
    story.complete()
    assert not story.api.find("pods", pod, "default") and not story.is_cordoned()


def pod_that_never_terminates(story):
    """a drain that takes longer than drainTimeout is erroring, DrainTimeout, and the node stays
    cordoned until the pod is gone"""
    story.add_nodes(1)
    pod = application(story, terminate="never")
    story.skyhook({"nev": rollout.package(interrupt=SERVICE)}, drainTimeout="12s")
    story.wait("its time is over", lambda: story.why() == "DrainTimeout")
    assert story.is_cordoned() and not story.jobs(), "it went on beside the pod"
    assert story.note("status") == "erroring"
    state, text = story.explain()
    assert state == "failed" and "DrainTimeout" in text, text
    story.api.delete("pods", pod, "default", {"gracePeriodSeconds": 0})
    story.complete()
    assert not story.is_cordoned()


def pod_that_takes_for_ever(story):
    """without drainTimeout a drain waits for such a pod as long as it takes, and says for which"""
    story.add_nodes(1)
    pod = application(story, terminate="never")
    story.skyhook({"fev": rollout.package(interrupt=SERVICE)})
    story.wait("it is told to end", lambda: story.api.get(
        "pods", pod, "default")["metadata"].get("deletionTimestamp"))
    rollout.wait(20)
    state, text = story.explain()
    assert state == "inFlight" and '"drain"' in text and f"default/{pod}" in text, text
    assert story.is_cordoned() and not story.jobs() and story.note("status") == "in_progress"
    story.api.delete("pods", pod, "default", {"gracePeriodSeconds": 0})
    story.complete()
    assert not story.is_cordoned()


def uncordoned_in_the_middle(story):
    """a person uncordons in mid-drain: it is put back once, with an event, before anything else is
    done"""
    story.add_nodes(1)
    pod = application(story)
    protect(story)
    story.skyhook({"unc": rollout.package(interrupt=SERVICE)})
    story.told("the drain waits", f"default/{pod}")
    story.api.patch("nodes", story.nodes[0], {"spec": {"unschedulable": None}})
    story.wait("it is cordoned again", story.is_cordoned)
    state, text = story.explain()
    assert state == "inFlight" and f"default/{pod}, which the budget {story.name}" in text, text
    story.wait("an event says so", lambda: any(
        "cordoned again" in text for text in story.events(story.nodes[0])))
    assert not story.jobs()
    story.api.delete("poddisruptionbudgets", story.name, "default")
    story.complete()
    assert not story.is_cordoned()
    story.check_limits(1)


def cordoned_before(story):
    """a node that a person cordoned before is left cordoned; once the person has given it back,
    Drover uncordons it like any other"""
    story.add_nodes(2)
    story.api.patch("nodes", story.nodes[0], {"spec": {"unschedulable": True}})
    story.skyhook({"bef": rollout.package(interrupt=SERVICE)})
    story.complete()
    assert story.is_cordoned(0) and not story.is_cordoned(1)
    assert rollout.note(story.node(0), "cordonedBefore") == "true"
    story.api.patch("nodes", story.nodes[0], {"spec": {"unschedulable": None}})
    story.edit("bef", {"version": "2.0.0"})
    story.complete()
    assert not story.is_cordoned(0) and not story.is_cordoned(1)
    assert rollout.note(story.node(0), "cordonedBefore") is None


# ---- reboots

def reboots(story):
    """a node that comes back with another bootID is a success, in the same batch"""
    story.add_nodes(2)
    before = [fleet.boot_id(story.api, node) for node in story.nodes]
    story.behave(**{f"interrupt_{node}": "reboot" for node in story.nodes})
    story.policy({"count": 2}, resetBatchStateOnCompletion=False)
    story.skyhook({"reb": rollout.package(interrupt=REBOOT)}, deploymentPolicy=story.name)
    story.complete()
    after = [fleet.boot_id(story.api, node) for node in story.nodes]
    assert not set(before) & set(after), "it did not reboot"
    assert story.batches() == [2] and not story.batch().get("failedNodes"), story.batch()


def never_comes_back(story):
    """a node that never comes back from its reboot ends as failed, NodeLost"""
    story.add_nodes(1)
    story.behave(**{f"interrupt_{story.nodes[0]}": "reboot 0s 24h"})
    story.skyhook({"los": rollout.package(interrupt=REBOOT)})
    story.wait("it is down", lambda: not fleet.is_ready(story.node()))
    assert story.note("status") == "in_progress"
    story.told("state erroring", "NodeLost", seconds=LOST_SECONDS + 180)
    assert story.why() == "NodeLost" and '"state":"erroring"' in story.note("nodeState")
    text = story.explain()[1]
    assert '"notReady"' in text, text


def deleted_while_it_reboots(story):
    """a node that is deleted while it is down for its reboot holds nobody up"""
    story.add_nodes(2)
    story.behave(**{f"interrupt_{story.nodes[0]}": "reboot 0s 24h",
                    f"interrupt_{story.nodes[1]}": "reboot"})
    story.skyhook({"dwr": rollout.package(interrupt=REBOOT)}, interruptionBudget={"count": 1})
    story.wait("it is down", lambda: not fleet.is_ready(story.node()))
    assert not story.jobs(node=story.nodes[1]), "it should wait for its turn"
    story.api.delete("nodes", story.nodes[0])
    story.nodes = story.nodes[1:]
    shown = story.complete()
    assert shown["completeNodes"] == "1/1" and not shown.get("nodePriority"), shown
    assert not story.is_cordoned()


# ---- nodes that go

def deleted_in_every_stage(story):
    """a node that is deleted in a stage holds nobody up, in whichever stage it was"""
    stages = ("drain", "apply", "config", "interrupt", "post-interrupt")
    story.add_nodes(len(stages) + 1)
    application(story)
    protect(story)
    story.behave(**{f"{stage}_{node}": "hang" for stage, node in zip(stages, story.nodes)
                    if stage != "drain"})
    story.skyhook({"del": rollout.package(interrupt=SERVICE)}, interruptionBudget={"count": 5})

    def reached():
        jobs = {(job["metadata"]["labels"][rollout.PREFIX + "stage"],
                 job["metadata"]["labels"][rollout.PREFIX + "node"]) for job in story.jobs()}
        return story.is_cordoned(0) and all(
            (stage, node) in jobs for stage, node in list(zip(stages, story.nodes))[1:])
    story.wait("each is in its stage", reached, 240)
    assert story.note("status", len(stages)) != "complete", "it should wait for its turn"
    gone = story.nodes[:len(stages)]
    for node in gone:
        story.api.delete("nodes", node)
    story.nodes = story.nodes[len(stages):]
    shown = story.complete()
    assert shown["completeNodes"] == "1/1" and not shown.get("nodePriority"), shown
    assert not story.is_cordoned()
    for node in gone:
        result = drover.run(story.stage.name, "explain", node, story.stage.config)
        assert result.status == 1 and "there is no such target" in result.err, result


def deleted_in_later_stages(story):
    """the same in an upgrade and in an uninstall with its interrupt"""
    story.add_nodes(4)
    story.skyhook({"dls": rollout.package(interrupt=SERVICE, uninstall={
        "enabled": True, "apply": False})}, interruptionBudget={"count": 2})
    story.complete()
    story.behave(**{f"upgrade_{story.nodes[0]}": "hang", f"uninstall_{story.nodes[1]}": "hang",
                    f"uninstall-interrupt_{story.nodes[2]}": "hang"})
    story.edit("dls", {"version": "2.0.0"})
    story.wait("it is upgraded", lambda: story.jobs(stage="upgrade", node=story.nodes[0]))
    story.api.delete("nodes", story.nodes[0])
    story.wait("the others follow", lambda: story.status().get("completeNodes") == "3/3")
    story.edit("dls", {"uninstall": {"enabled": True, "apply": True}})
    story.wait("one uninstalls", lambda: story.jobs(stage="uninstall", node=story.nodes[1]))
    story.wait("one is interrupted", lambda: story.jobs(
        stage="uninstall-interrupt", node=story.nodes[2]))
    for at in (1, 2):
        story.api.delete("nodes", story.nodes[at])
    story.nodes = story.nodes[3:]
    story.wait("the last one follows", lambda: story.note("nodeState") == "{}")
    shown = story.complete()
    assert shown["completeNodes"] == "1/1" and not shown.get("nodePriority"), shown
    assert not story.is_cordoned()


def replaced(story):
    """a node that is made again under its name runs its packages anew"""
    story.add_nodes(1)
    story.skyhook("rep")
    story.complete()
    story.api.delete("nodes", story.nodes[0])
    story.wait("it is forgotten", lambda: story.status()["completeNodes"] == "0/0")
    story.api.create("nodes", fleet.node(story.nodes[0], {"story": story.name}))
    story.wait("it is done again", lambda: story.status()["completeNodes"] == "1/1")
    assert len(story.jobs()) == 4, [job["metadata"]["name"] for job in story.jobs()]


# ---- taints

def free_by_itself(story):
    """a node loses the taint when its own packages are there, whatever becomes of another, and then
    workloads are scheduled there"""
    story.add_nodes(2, taints=[TAINT])
    story.behave(**{f"apply_{story.nodes[1]}": "fail"})
    story.api.create("pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": story.name}, "spec": {
            "nodeSelector": {"story": story.name},
            "containers": [{"name": "a", "image": "example.test/a:1"}]}}, "default")
    story.wait("nobody may run there", lambda: any(
        c["type"] == "PodScheduled" and c["status"] == "False" for c in story.api.get(
            "pods", story.name, "default")["status"].get("conditions", [])))
    story.skyhook("fre", runtimeRequired=True)
    story.wait("the first is free", lambda: not story.is_tainted(0))
    story.wait("somebody runs there", lambda: story.api.get(
        "pods", story.name, "default")["spec"].get("nodeName") == story.nodes[0])
    story.wait("the second errs", lambda: story.note("status", 1) == "erroring")
    assert story.is_tainted(1)
    pod = story.jobs()[0]["spec"]["template"]["spec"]
    assert any(t.get("key") == TAINT["key"] and t.get("effect") == "NoSchedule"
               for t in pod["tolerations"]), pod["tolerations"]


def all_that_require_it(story):
    """the taint stays until every Skyhook that is required has completed on the node; one that is
    not required tolerates it, too"""
    story.add_nodes(1, taints=[TAINT])
    names = [f"{story.name}-{word}" for word in ("a", "b", "c")]
    story.behave(**{"req-2.0.0": "hang"})
    story.skyhook({"req": rollout.package("1.0.0")}, name=names[0], runtimeRequired=True)
    story.skyhook({"req": rollout.package("3.0.0")}, name=names[1], priority=1)
    story.skyhook({"req": rollout.package("2.0.0")}, name=names[2], runtimeRequired=True,
                  priority=300)
    for name in names[:2]:
        story.complete(name=name)
    story.wait("the last one runs", lambda: story.status(names[2]).get("nodesInProgress") == 1)
    rollout.wait(1)
    assert story.is_tainted(), "it was freed too early"
    job = story.api.list("jobs", rollout.SPACE,
                         labelSelector=f"{rollout.PREFIX}name={names[2]}")[0]["metadata"]["name"]
    story.behave(**{"req-2.0.0": None})
    story.api.delete("jobs", job, rollout.SPACE)
    story.complete(name=names[2])
    story.wait("it is free", lambda: not story.is_tainted())


def taints_only_when_told(story):
    """without autoTaintNewNodes nobody is tainted; with it nodes that are new and selected are,
    once"""
    story.add_nodes(1)
    plain = f"{story.name}-plain"
    story.skyhook({"tai": rollout.package("1.0.0")}, name=plain, runtimeRequired=True)
    story.complete(name=plain)
    story.api.patch("skyhooks", plain, {"spec": {"autoTaintNewNodes": True}})
    other = story.cluster.add_nodes(1, prefix=f"{story.name}-not")
    story.add_nodes(1)
    story.wait("the new one is done and free", lambda: story.status(plain).get(
        "completeNodes") == "2/2" and not story.is_tainted(1))

    def tainted():
        """Whom the operator tainted, in order."""
        return [entry["objectRef"]["name"] for entry in story.entries()
                if entry["objectRef"].get("name") in story.nodes + other and
                entry["user"]["username"] == rollout.USER and
                any(t["key"] == TAINT["key"] for t in
                    (entry.get("requestObject") or {}).get("spec", {}).get("taints") or [])]
    assert tainted() == [story.nodes[1]], tainted()
    # What was processed once is not tainted again, whatever is reset.
    story.stage.plugin("reset", plain, "--confirm")
    story.wait("it begins again", lambda: story.status(plain)["status"] != "complete")
    story.complete(name=plain)
    assert not story.is_tainted(0) and not story.is_tainted(1)
    assert tainted() == [story.nodes[1]], tainted()
    # Nor when the Skyhook that was there before is deleted, and another one comes.
    story.api.delete("skyhooks", plain)
    story.wait("it is gone", lambda: not story.api.find("skyhooks", plain))
    story.skyhook({"tai": rollout.package("1.0.0")}, name=f"{plain}-2", runtimeRequired=True,
                  autoTaintNewNodes=True)
    story.complete(name=f"{plain}-2")
    assert tainted() == [story.nodes[1]], tainted()


STORIES = [blocked_for_a_minute, pod_that_never_terminates, pod_that_takes_for_ever,
           uncordoned_in_the_middle, cordoned_before, reboots, never_comes_back,
           deleted_while_it_reboots, deleted_in_every_stage, deleted_in_later_stages, replaced,
           free_by_itself, all_that_require_it, taints_only_when_told]


# ---- those that stop the operator, one after the other

def sticky_over_a_restart(story):
    """a batch stays what it was when the operator is killed while a node of it is between two
    packages: the same nodes are in it, and nobody joins, not even one that would now be picked
    first"""
    story.add_nodes(1, labels={"part": "later"})
    story.add_nodes(6, labels={"part": "now"})
    story.add_nodes(1, labels={"part": "other"})
    older, (done, stuck, *rest), others = story.nodes[0], story.nodes[1:7], f"{story.name}-other"
    story.behave(**{f"sec-1.0.0_apply_{stuck}": "hang"})
    story.policy({"count": 2}, {"fixed": {"initialBatch": 2}})
    story.skyhook({"sti": rollout.package(), "sec": rollout.package(dependsOn={"sti": "1.0.0"})},
                  deploymentPolicy=story.name,
                  nodeSelectors={"matchLabels": {"story": story.name, "part": "now"}})
    job = story.wait("one of two is in its second package", lambda: story.jobs(
        node=stuck, package="sec-1.0.0"))[0]["metadata"]["name"]
    story.wait("the other one is done", lambda: story.status().get("completeNodes") == "1/6")
    story.stage.operator.kill()
    story.api.patch("nodes", older, {"metadata": {"labels": {"part": "now"}}})
    story.stage.operator.start()
    # Others go on, so it has seen all there is, and decided.
    story.skyhook("oth", name=others,
                  nodeSelectors={"matchLabels": {"story": story.name, "part": "other"}})
    story.complete(name=others)
    story.wait("it knows of one more", lambda: story.status().get("completeNodes") == "1/7")
    assert story.batch()["currentBatch"] == 1 and stuck in story.batch()["members"], story.batch()
    assert list(story.status()["nodePriority"]) == [stuck], story.status()["nodePriority"]
    assert {job["spec"]["template"]["spec"]["nodeName"] for job in story.jobs()} == \
        {done, stuck}, "another one was picked"
    story.behave(**{f"sec-1.0.0_apply_{stuck}": None})
    story.api.delete("jobs", job, rollout.SPACE)
    story.complete()
    found = story.batch_members()
    assert found == [{done, stuck}, {older, rest[0]}, {rest[1], rest[2]}, {rest[3]}], found
    assert story.check_limits(2) == 2


def taints_first(story):
    """nodes that are there when their Skyhook comes are new; an operator that just started taints
    before it untaints"""

    def taints(since=0):
        """What the operator did: whom it tainted (True) or freed, in order."""
        return [(entry["objectRef"]["name"], bool(entry["requestObject"]["spec"]["taints"]))
                for entry in story.entries()[since:]
                if entry["user"]["username"] == rollout.USER and
                entry["objectRef"].get("name") in story.nodes and
                "taints" in (entry.get("requestObject") or {}).get("spec", {})]
    story.add_nodes(1)
    story.skyhook("fir", runtimeRequired=True, autoTaintNewNodes=True)
    story.complete()
    story.wait("it is free", lambda: not story.is_tainted())
    assert taints() == [(story.nodes[0], True), (story.nodes[0], False)], taints()
    story.stage.operator.stop()
    story.api.patch("nodes", story.nodes[0], {"spec": {"taints": [TAINT]}})
    story.add_nodes(2)
    since = len(story.entries())
    story.stage.operator.start()
    story.wait("all are done and free", lambda: story.status().get("completeNodes") == "3/3" and
               not any(story.is_tainted(at) for at in range(3)))
    order = taints(since)
    assert sorted(order[:2]) == [(node, True) for node in story.nodes[1:]], order
    assert (story.nodes[0], False) in order[2:], order


def another_taint(story):
    """the taint that keeps workloads away is the one that the operator is told, with a domain in
    its key as with none: it is put on new nodes, tolerated and taken away, and no other is"""
    story.stage.operator.stop()
    try:
        taints_of_people(story)
    finally:
        story.stage.operator.start()


def taints_of_people(story):
    for number, key in enumerate(("boot", "nodes.example.test/boot")):
        taint = {"key": key, "value": "wait", "effect": "NoExecute"}
        with rollout.Operator(story.stage.program, story.cluster,
                              f"--runtime-required-taint={key}=wait:NoExecute"):
            name, labels = f"{story.name}-{number}", {"part": str(number)}
            story.behave(**{"ano-1.0.0": "succeed 2s"})
            story.skyhook("ano", name=name, runtimeRequired=True, autoTaintNewNodes=True,
                          nodeSelectors={"matchLabels": {"story": story.name, **labels}})
            story.add_nodes(1, labels=labels)
            story.add_nodes(1, labels=labels, taints=[taint])

            def taints(at):
                return {t["key"] for t in story.node(at)["spec"].get("taints", [])}
            story.wait("both are tainted", lambda: all(
                key in taints(at) for at in (-2, -1)))  # pylint: disable=cell-var-from-loop
            story.complete(name=name)
            story.wait("both are free", lambda: not any(
                key in taints(at) for at in (-2, -1)))  # pylint: disable=cell-var-from-loop
            jobs = story.api.list("jobs", rollout.SPACE,
                                  labelSelector=f"{rollout.PREFIX}name={name}")
            assert all(taint | {"operator": "Equal"} in job["spec"]["template"]["spec"][
                "tolerations"] for job in jobs), jobs[0]["spec"]["template"]["spec"]


def applied_again_after_a_reboot(story):
    """with --reapply-on-reboot all packages run again on a node that a person rebooted, and on no
    other; that an interrupt of theirs reboots it makes nothing run twice"""
    story.stage.operator.stop()
    with rollout.Operator(story.stage.program, story.cluster, "--reapply-on-reboot"):
        story.add_nodes(2)
        story.behave(**{f"interrupt_{node}": "reboot" for node in story.nodes})
        story.skyhook({"rea": rollout.package(interrupt=REBOOT)})
        story.complete()
        stages = ["apply", "config", "interrupt", "post-interrupt"]
        once = {at: sorted(one["metadata"]["labels"][rollout.PREFIX + "stage"] for one in
                           story.jobs(node=story.nodes[at])) for at in (0, 1)}
        assert all(set(found) == set(stages) for found in once.values()), once
        before = len(story.jobs(node=story.nodes[0]))
        fleet.reboot(story.api, story.nodes[0])
        story.wait("it begins again", lambda: len(story.jobs(node=story.nodes[0])) > before)
        story.complete()
        story.wait("an event says so", lambda: any(
            "applied again" in text for text in story.events(story.nodes[0])))
        assert len(story.jobs(node=story.nodes[0], stage="post-interrupt")) == 2
        assert len(story.jobs(node=story.nodes[1], stage="post-interrupt")) == 1
        assert not any(story.is_cordoned(at) for at in (0, 1))
    story.stage.operator.start()


IN_TURN = [sticky_over_a_restart, taints_first, another_taint, applied_again_after_a_reboot]


# ---- one that turns the time of the whole cluster back, behind all others

def set_back(story):
    """etcd is put back to a backup in the middle of an upgrade: the operator, which runs on and
    leads, sees that its Lease is older than it was, forgets what it had begun and goes on from what
    is there"""
    story.stage.operator.stop()
    with rollout.Operator(story.stage.program, story.cluster, elect=True):
        story.add_nodes(3)
        story.skyhook({"bac": rollout.package(interrupt=SERVICE)},
                      interruptionBudget={"count": 1})
        story.complete()
        story.cluster.back_up()
        story.behave(**{"bac-2.0.0": "hang"})
        story.edit("bac", {"version": "2.0.0"})
        story.wait("the upgrade runs", lambda: story.jobs(package="bac-2.0.0"))
        rollout.wait(5)  # it has renewed its Lease
        story.cluster.set_back()
        since = len(story.entries())
        assert not story.jobs(package="bac-2.0.0") and story.status()["status"] == "complete"
        story.edit("bac", {"version": "3.0.0"})
        story.complete()
        assert not story.jobs(package="bac-2.0.0"), "it went on with what is no longer wanted"
        assert {job["spec"]["template"]["spec"]["nodeName"]
                for job in story.jobs(package="bac-3.0.0")} == set(story.nodes)
        assert not any(story.is_cordoned(at) for at in range(3))
        assert story.check_limits(1, story.entries()[since:]) == 1


LAST = [set_back]
