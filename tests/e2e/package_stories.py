# SPDX-License-Identifier: Apache-2.0
"""Packages on a node, and Skyhooks beside each other: order, interrupts, uninstalls, priority, and
who is left out. One story each."""

import base64
import json

import api
import rollout

PREFIX = rollout.PREFIX
REBOOT = {"type": "reboot"}
REMOVABLE = {"enabled": True, "apply": False}
REMOVED = {"enabled": True, "apply": True}
FOREIGN = {"key": "example.test/dedicated", "value": "gpu", "effect": "NoSchedule"}


def service(*names):
    return {"type": "service", "services": list(names)}


def stages(story, node, name=None):
    """(package, stage) of a node's Jobs, in the order of their attempts."""
    selector = f"{PREFIX}name={name or story.name},{PREFIX}node={node}"
    found = sorted(story.api.list("jobs", rollout.SPACE, labelSelector=selector),
                   key=lambda job: int(job["metadata"]["annotations"][PREFIX + "attempt"]))
    return [(job["metadata"]["labels"][PREFIX + "package"].rpartition("-")[0],
             job["metadata"]["labels"][PREFIX + "stage"]) for job in found]


def entries(story, at=0):
    return {key.partition("|")[0]: (one["stage"], one["state"]) for key, one in json.loads(
        story.note("nodeState", at) or "{}").items()}


def times(job):
    """When its pod began, and when it had ended; of the server's clock."""
    return job["metadata"]["creationTimestamp"], job["status"]["completionTime"]


# ---- packages

def dependencies_first(story):
    """a package starts when those it depends on are complete, and not for any other"""
    story.add_nodes(1)
    story.behave(**{"slo-1.0.0": "hang"})
    story.skyhook({"zed": rollout.package(), "aft": rollout.package(dependsOn={"zed": "1.0.0"}),
                   "slo": rollout.package()})
    story.wait("what depends on the other is done", lambda: entries(story).get("aft") == (
        "config", "complete"))
    order = stages(story, story.nodes[0])
    assert order.index(("aft", "apply")) > order.index(("zed", "config")), order
    assert entries(story)["slo"] == ("apply", "in_progress"), entries(story)
    ended = times(story.jobs(package="zed-1.0.0", stage="config")[0])[1]
    assert times(story.jobs(package="aft-1.0.0", stage="apply")[0])[0] >= ended


def one_package_at_a_time(story):
    """serial: at no time has a node two packages in progress"""
    story.add_nodes(1)
    packages = {name: rollout.package() for name in ("sea", "seb", "sec")}
    story.skyhook(packages, serial=True)
    story.complete()
    order = [name for name, _ in stages(story, story.nodes[0])]
    assert order == ["sea", "sea", "seb", "seb", "sec", "sec"], order
    spans = sorted(times(job) for job in story.jobs())
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:])), spans


def interrupts_in_one(story):
    """packages that run together share one interrupt: services in one Job of the first, others
    skipped, and each goes on with its own post-interrupt"""
    story.add_nodes(1)
    story.skyhook({"foo": rollout.package(interrupt=service("foo", "bar")),
                   "bar": rollout.package(interrupt=service("ducks", "kittens"))})
    story.complete()
    order = stages(story, story.nodes[0])
    assert [one for one in order if one[1] == "interrupt"] == [("bar", "interrupt")], order
    assert sorted(one for one in order if one[1] == "post-interrupt") == [
        ("bar", "post-interrupt"), ("foo", "post-interrupt")], order
    job = story.jobs(stage="interrupt")[0]
    pod = job["spec"]["template"]["spec"]
    assert job["metadata"]["labels"][PREFIX + "interrupt"] == "True", job["metadata"]
    assert [one["name"] for one in pod["containers"]] == ["interrupt"] and \
        not pod.get("initContainers"), pod
    words = pod["containers"][0]["args"]
    assert words[:2] == ["interrupt", "/root"], words
    assert json.loads(base64.b64decode(words[3])) == {
        "type": "service_restart", "services": ["bar", "ducks", "foo", "kittens"]}, words
    assert entries(story) == {"foo": ("post-interrupt", "complete"),
                              "bar": ("post-interrupt", "complete")}, entries(story)


def reboot_for_all(story):
    """a reboot of one package stands for the services of the others"""
    story.add_nodes(1)
    story.behave(**{f"interrupt_{story.nodes[0]}": "reboot"})
    story.skyhook({"foo": rollout.package(interrupt=service("foo")),
                   "omg": rollout.package(interrupt=REBOOT)})
    story.complete()
    found = {name for name, stage in stages(story, story.nodes[0]) if stage == "interrupt"}
    assert found == {"omg"}, found


def globs(story):
    """a config change is interrupted for by the patterns that its keys match, and configUpdates
    shows them while it runs"""
    story.add_nodes(2)
    story.behave(**{f"interrupt_{node}": "reboot" for node in story.nodes})
    story.skyhook({"glo": rollout.package(
        interrupt=REBOOT, configMap={"a.conf": "1", "b.txt": "1"},
        configInterrupts={"*.conf": service("a"), "*.txt": {"type": "noop"}})},
                  interruptionBudget={"count": 1})
    story.complete()
    story.behave(**{f"interrupt_{node}": None for node in story.nodes})
    story.behave(**{f"config_{story.nodes[0]}": "succeed 3s"})
    story.edit("glo", {"configMap": {"a.conf": "2"}})
    story.wait("it is shown", lambda: story.status().get("configUpdates") == {"glo": ["a.conf"]})
    story.complete()
    words = story.jobs(stage="interrupt")[-1]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert json.loads(base64.b64decode(words[3])) == {
        "type": "service_restart", "services": ["a"]}, words
    assert not story.status().get("configUpdates"), story.status()["configUpdates"]


def changed_in_the_middle(story):
    """a document that is changed, reverted and changed again in mid-batch ends as it says last"""
    story.add_nodes(4)
    story.behave(**{"aba-1.0.0": "succeed 1s", "aba-2.0.0": "succeed 1s"})
    story.skyhook("aba", interruptionBudget={"count": 2})
    for version in ("2.0.0", "1.0.0", "2.0.0"):
        story.wait("something runs", lambda: any(
            not job["status"].get("succeeded") for job in story.jobs()))
        rollout.wait(1.2)
        story.edit("aba", {"version": version})
    story.complete()
    for at in range(4):
        assert list(json.loads(story.note("nodeState", at))) == ["aba|2.0.0"], story.note(
            "nodeState", at)
    assert story.check_limits(2) <= 2


# ---- uninstalls

def uninstalled_with_an_interrupt(story):
    """uninstall and uninstall-interrupt, told by a condition, then nothing is noted"""
    story.add_nodes(1)
    story.skyhook({"uni": rollout.package(interrupt=service("a"), uninstall=REMOVABLE)})
    story.complete()
    story.behave(**{f"uninstall_{story.nodes[0]}": "succeed 3s"})
    story.edit("uni", {"uninstall": REMOVED})
    found = story.wait("a condition says so", lambda: story.condition("UninstallInProgress"))
    assert (found["status"], found["reason"], found["message"]) == (
        "True", "UninstallInProgress", "One or more packages are being uninstalled"), found
    story.wait("nothing is noted", lambda: story.note("nodeState") == "{}")
    assert stages(story, story.nodes[0])[-2:] == [
        ("uni", "uninstall"), ("uni", "uninstall-interrupt")], stages(story, story.nodes[0])
    story.complete()
    assert not story.is_cordoned() and not story.condition("UninstallInProgress")
    # What is uninstalled and not wanted is not installed again.
    rollout.wait(2)
    assert stages(story, story.nodes[0])[-1][1] == "uninstall-interrupt"
    story.edit("uni", {"uninstall": REMOVABLE})
    story.wait("it is installed again", lambda: entries(story).get("uni") == (
        "post-interrupt", "complete"))


def uninstall_that_is_taken_back(story):
    """an uninstall that fails says so; taken back, the package is applied again"""
    story.add_nodes(1)
    story.skyhook({"can": rollout.package(uninstall=REMOVABLE)})
    story.complete()
    story.behave(**{f"uninstall_{story.nodes[0]}": "fail"})
    story.edit("can", {"uninstall": REMOVED})
    found = story.wait("a condition says so", lambda: story.condition("UninstallFailed"))
    assert (found["reason"], found["message"]) == (
        "UninstallPodFailing", "One or more uninstall pods are failing"), found
    story.edit("can", {"uninstall": REMOVABLE})
    story.complete()
    assert entries(story) == {"can": ("config", "complete")}, entries(story)
    assert stages(story, story.nodes[0])[-2:] == [("can", "apply"), ("can", "config")]
    assert not story.condition("UninstallFailed")


def dependency_that_is_uninstalled(story):
    """who depends on a package that is uninstalled is blocked, and a condition says so"""
    story.add_nodes(1)
    story.behave(**{"dep-1.0.0": "fail"})
    story.skyhook({"bas": rollout.package(uninstall=REMOVABLE),
                   "dep": rollout.package(dependsOn={"bas": "1.0.0"})})
    story.wait("the other errs", lambda: story.note("status") == "erroring")
    story.edit("bas", {"uninstall": REMOVED})
    story.wait("a condition says so", lambda: story.condition("Blocked").get("message") ==
               "package dep is blocked: dependency bas has been uninstalled")
    assert story.condition("Blocked")["reason"] == "DependencyUninstalled"


def refused(story, change):
    """What the server says against an edit of the Skyhook's packages; empty if nothing."""
    try:
        story.api.patch("skyhooks", story.name, {"spec": {"packages": change}})
        return ""
    except api.ApiError as error:
        return str(error)


def uninstalled_first(story):
    """a package that can be uninstalled and is on nodes is neither taken out of its Skyhook nor put
    back to an older version; upgraded it is, and taken out when it is uninstalled"""
    story.add_nodes(2)
    story.skyhook({"gat": rollout.package("2.1.0", uninstall=REMOVABLE),
                   "oth": rollout.package("2.0.0")})
    story.complete()
    assert story.status()["installed"] == {"gat|2.1.0": 2}, story.status()["installed"]
    assert ("set uninstall.apply=true and wait for completion before removing from spec" in
            refused(story, {"gat": None}))
    for older in ("2.0.9", "2.1", "1.99.0", "v2.0.10"):
        text = refused(story, {"gat": {"version": older}})
        expected = older != "2.1"  # which is the same
        assert ("downgrade not allowed" in text) == expected, (older, text)
        if not expected:
            story.edit("gat", {"version": "2.1.0"})
            story.complete()
    assert not refused(story, {"oth": {"version": "1.0.0"}}), "nobody asked for that"
    assert not refused(story, {"gat": {"version": "2.10.0"}}), "it is an upgrade"
    story.complete()
    assert story.status()["installed"] == {"gat|2.10.0": 2}, story.status()["installed"]
    story.edit("gat", {"uninstall": REMOVED})
    story.wait("it is uninstalled", lambda: not story.status().get("installed"))
    assert not refused(story, {"gat": None}), "it is gone"
    story.complete()


def deleted_while_paused(story):
    """a paused Skyhook with something to uninstall is not deleted, and says why; resumed, it
    uninstalls and goes"""
    story.add_nodes(1)
    story.skyhook({"pad": rollout.package(uninstall=REMOVABLE)})
    story.complete()
    story.stage.plugin("pause", story.name, "--confirm")
    story.api.delete("skyhooks", story.name)
    found = story.wait("a condition says so", lambda: story.condition("DeletionBlocked"))
    assert found["reason"] == "PausedWithPendingUninstall", found
    told = (f"Cannot delete Skyhook {story.name}: paused with uninstall work pending. Unpause to "
            "proceed.")
    story.wait("an event says so", lambda: any(
        (one["type"], one["reason"], one["message"]) == ("Warning", "DeletionBlocked", told)
        for one in story.api.list("events", "default")
        if one["involvedObject"]["name"] == story.name))
    rollout.wait(2)
    assert ("pad", "uninstall") not in stages(story, story.nodes[0]), "it went on all the same"
    story.stage.plugin("resume", story.name, "--confirm")
    story.wait("it is gone", lambda: not story.api.find("skyhooks", story.name))


def deleted_in_mid_flight(story):
    """a Skyhook that is deleted while nodes are drained and worked on lets all of them go"""
    story.add_nodes(3)
    story.behave(**{f"apply_{story.nodes[0]}": "hang"})
    story.skyhook({"mid": rollout.package(interrupt=service("a"))}, interruptionBudget={"count": 2})
    story.wait("it runs", lambda: story.jobs(node=story.nodes[0]) and story.is_cordoned(0))
    story.api.delete("skyhooks", story.name)
    job = story.jobs(node=story.nodes[0])
    if job:  # what runs ends first
        story.behave(**{f"apply_{story.nodes[0]}": None})
        story.api.delete("jobs", job[0]["metadata"]["name"], rollout.SPACE)
    story.wait("it is gone", lambda: not story.api.find("skyhooks", story.name))
    story.wait("nobody is cordoned", lambda: not any(story.is_cordoned(at) for at in range(3)))
    story.wait("its Jobs go", lambda: not story.jobs())


# ---- one bad thing stops nothing else

def state_that_cannot_be_read(story):
    """a node whose state somebody broke is told and left alone; the others go on"""
    story.add_nodes(3)
    story.skyhook("bro", interruptionBudget={"count": 1})
    story.complete()
    key = f"{PREFIX}nodeState_{story.name}"
    story.api.patch("nodes", story.nodes[1], {"metadata": {"annotations": {key: "{nonsense"}}})
    story.wait("a condition says so", lambda: story.condition("NodeStateMalformed").get(
        "reason") == "ParseError")
    story.edit("bro", {"version": "2.0.0"})
    story.wait("the others have the new version", lambda: all(
        entries(story, at) == {"bro": ("config", "complete")} and
        list(json.loads(story.note("nodeState", at))) == ["bro|2.0.0"] for at in (0, 2)))
    assert story.note("nodeState", 1) == "{nonsense"
    assert f": {story.nodes[1][:10]}..." in story.condition("NodeStateMalformed")["message"]
    assert not story.jobs(node=story.nodes[1], package="bro-2.0.0")
    state, text = story.explain(1)
    assert state == "waiting" and '"malformed"' in text, text
    story.stage.plugin("node", "reset", story.nodes[1], "--skyhook", story.name, "--confirm")
    story.complete()
    assert not story.condition("NodeStateMalformed")


def document_that_is_none(story):
    """a Skyhook that the server took and nobody can run stops no other, and an event says why"""
    story.add_nodes(1)
    circle = {name: rollout.package(dependsOn={other: "1.0.0"})
              for name, other in (("aa", "bb"), ("bb", "cc"), ("cc", "aa"))}
    bad = f"{story.name}-bad"
    story.skyhook(circle, name=bad, priority=1)
    story.skyhook("goo")
    story.complete()
    assert not [one for one in story.api.list("jobs", rollout.SPACE)
                if one["metadata"]["labels"].get(PREFIX + "name") == bad]
    story.wait("an event says why", lambda: any("cycle" in text for text in story.events(bad)))


# ---- who is left out

def ignored(story):
    """a node that is ignored is blocked and not touched, told by both conditions; not ignored any
    more, it has its turn"""
    story.add_nodes(2)
    story.stage.plugin("node", "ignore", story.nodes[0])
    rollout.wait(0.1)  # until the server has told everybody
    story.skyhook("ign", interruptionBudget={"count": 1})
    story.wait("the other is done", lambda: story.note("status", 1) == "complete")
    rollout.wait_status(story.cluster, story.name, "blocked")
    want = f"Node [{story.nodes[0]}] has ignore label set. Skipping."
    for kind in ("NodesIgnored", PREFIX + "NodesIgnored"):
        found = story.condition(kind)
        assert (found["status"], found["message"]) == ("True", want), found
    assert story.condition("Ready")["message"] == (
        f"1/2 nodes complete ({story.nodes[1]}), 1 blocked ({story.nodes[0]})")
    assert not stages(story, story.nodes[0]) and not story.note("nodeState", 0)
    assert story.status()["nodeStatus"][story.nodes[0]] == "blocked", story.status()
    state, text = story.explain(0)
    assert state == "blocked" and '"ignored"' in text, text
    story.stage.plugin("node", "unignore", story.nodes[0])
    story.complete()
    found = story.condition("NodesIgnored")
    assert (found["status"], found["message"]) == ("False", "No nodes have ignore label set.")


def ignored_in_mid_flight(story):
    """a node that is ignored in mid-flight ends its Job, keeps its cordon and is blocked: its batch
    is judged without it"""
    story.add_nodes(3)
    story.behave(**{f"apply_{story.nodes[0]}": "succeed 6s"})
    story.policy({"count": 1}, {"fixed": {"initialBatch": 1}}, resetBatchStateOnCompletion=False)
    story.skyhook({"imf": rollout.package(interrupt=service("a"))}, deploymentPolicy=story.name)
    story.wait("it runs", lambda: stages(story, story.nodes[0]))
    story.stage.plugin("node", "ignore", story.nodes[0])
    story.wait("its Job's end is noted", lambda: entries(story).get("imf") == ("apply", "complete"))
    story.wait("the others are done", lambda: all(
        story.note("status", at) == "complete" for at in (1, 2)))
    assert story.note("status", 0) == "blocked" and story.is_cordoned(0)
    assert story.node(0)["metadata"]["labels"][f"{PREFIX}status_{story.name}"] == "blocked"
    assert stages(story, story.nodes[0]) == [("imf", "apply")], stages(story, story.nodes[0])
    story.stage.plugin("node", "unignore", story.nodes[0])
    story.complete()
    assert not story.is_cordoned(0)


def taint_of_others(story):
    """a node with a taint that is not tolerated is blocked until it is tolerated"""
    story.add_nodes(1, taints=[FOREIGN])
    story.add_nodes(1)
    story.skyhook("tnt")
    story.wait("the other is done", lambda: story.note("status", 1) == "complete")
    rollout.wait_status(story.cluster, story.name, "blocked")
    want = f"Node [{story.nodes[0]}] has taints that are not tolerable. Skipping."
    for kind in ("TaintNotTolerable", PREFIX + "TaintNotTolerable"):
        found = story.condition(kind)
        assert (found["status"], found["message"]) == ("True", want), found
    assert not stages(story, story.nodes[0])
    story.api.patch("skyhooks", story.name, {"spec": {"additionalTolerations": [
        {"key": FOREIGN["key"], "operator": "Exists"}]}})
    story.complete()
    found = story.condition("TaintNotTolerable")
    assert (found["status"], found["message"]) == ("False", "All nodes have tolerable taints.")
    pod = story.jobs(node=story.nodes[0])[0]["spec"]["template"]["spec"]
    assert [one["key"] for one in pod["tolerations"]] == [
        "node.kubernetes.io/unschedulable", "skyhook.nvidia.com", FOREIGN["key"]], pod


# ---- Skyhooks beside each other

def others(story):
    """The names of two Skyhooks: who goes first, and who behind it."""
    return f"{story.name}-a", f"{story.name}-b"


def by_priority(story):
    """on a node the Skyhook of the higher priority goes first; paused, it holds the other up, and
    disabled it does not"""
    story.add_nodes(2)
    first, second = others(story)
    story.behave(**{"pra-1.0.0": "hang"})
    story.skyhook({"pra": rollout.package()}, name=first, priority=5)
    story.wait("the first runs", lambda: len(stages(story, story.nodes[0], first)) == 1)
    story.skyhook({"prb": rollout.package()}, name=second, priority=10)
    rollout.wait_status(story.cluster, second, "waiting")
    story.stage.plugin("pause", first, "--confirm")
    rollout.wait_status(story.cluster, first, "paused")
    story.behave(**{"pra-1.0.0": None})
    for job in story.api.list("jobs", rollout.SPACE, labelSelector=f"{PREFIX}name={first}"):
        story.api.delete("jobs", job["metadata"]["name"], rollout.SPACE)
    rollout.wait(3)
    assert not stages(story, story.nodes[0], second), "it did not wait"
    text = story.stage.plugin("explain", story.nodes[0], "-o", "json", "--skyhook", second)
    assert first in text, text
    story.stage.plugin("disable", first, "--confirm")
    story.stage.plugin("resume", first, "--confirm")
    story.complete(name=second)
    rollout.wait_status(story.cluster, first, "disabled")
    story.wait("the node shows it", lambda: rollout.note(
        story.node(0), f"status_{first}") == "disabled")
    story.stage.plugin("enable", first, "--confirm")
    story.complete(name=first)


def in_sequence(story):
    """sequencing: all holds everybody behind it up until it is complete on all its nodes; node only
    on the node itself"""
    story.add_nodes(2)
    first, second = others(story)
    story.behave(**{f"sqa-1.0.0_apply_{story.nodes[1]}": "hang"})
    story.skyhook({"sqa": rollout.package()}, name=first, priority=5)
    story.skyhook({"sqb": rollout.package()}, name=second, priority=10)
    story.wait("by node: the second goes on behind the first", lambda: rollout.note(
        story.node(0), f"status_{second}") == "complete")
    assert not stages(story, story.nodes[1], second)
    story.api.patch("skyhooks", first, {"spec": {"sequencing": "all"}})
    story.api.patch("skyhooks", second, {"spec": {"packages": {"sqb": {"version": "2.0.0"}}}})
    rollout.wait_status(story.cluster, second, "waiting")
    rollout.wait(2)
    assert not story.api.list("jobs", rollout.SPACE, labelSelector=(
        f"{PREFIX}name={second},{PREFIX}package=sqb-2.0.0")), "it did not wait for all"
    story.behave(**{f"sqa-1.0.0_apply_{story.nodes[1]}": None})
    story.api.delete("jobs", story.api.list("jobs", rollout.SPACE, labelSelector=(
        f"{PREFIX}name={first},{PREFIX}node={story.nodes[1]}"))[0]["metadata"]["name"],
                     rollout.SPACE)
    story.complete(name=first)
    story.complete(name=second)


def one_after_the_other(story):
    """two Skyhooks that drain the same nodes, in opposite orders of their budgets: both end, a node
    is in flight for one of them at a time, and nobody stays cordoned"""
    story.add_nodes(3)
    names = others(story)
    for name, count in zip(names, (1, 3)):
        story.skyhook({name[-3:].replace("-", "x"): rollout.package(interrupt=service("a"))},
                      name=name, interruptionBudget={"count": count})
    for name in names:
        story.complete(name=name)
    assert not any(story.is_cordoned(at) for at in range(3))
    held = [key for at in range(3) for key in story.node(at)["metadata"]["annotations"]
            if "/cordon" in key]
    assert not held, held
    for at in range(3):
        spans = sorted((times(job), job["metadata"]["labels"][PREFIX + "name"])
                       for name in names for job in story.api.list(
                           "jobs", rollout.SPACE, labelSelector=(
                               f"{PREFIX}name={name},{PREFIX}node={story.nodes[at]}")))
        assert all(before[0][1] <= after[0][0] for before, after in zip(spans, spans[1:])
                   if before[1] != after[1]), spans


# ---- what is written, word for word

def word_for_word(story):
    """annotations, labels, conditions and the status of a node and its Skyhook have the names and
    values that people and programs look for"""
    story.add_nodes(1)
    uid = story.skyhook({"wor": rollout.package(containerSHA="sha256:" + "0" * 64)})["metadata"]
    shown = story.complete()
    found = story.api.get("skyhooks", story.name)
    assert found["metadata"]["finalizers"] == ["skyhook.nvidia.com/skyhook"], found["metadata"]
    node = story.node()
    notes = {key: value for key, value in node["metadata"]["annotations"].items()
             if key.startswith(PREFIX)}
    assert sorted(notes) == sorted(PREFIX + key for key in (
        f"nodeState_{story.name}", f"status_{story.name}", f"version_{story.name}",
        f"drover_{story.name}")), notes
    assert notes[f"{PREFIX}nodeState_{story.name}"] == (
        '{"wor|1.0.0":{"name":"wor","version":"1.0.0","image":"example.test/package",'
        f'"containerSHA":"sha256:{"0" * 64}","stage":"config","state":"complete"}}}}'), notes
    assert len(notes[f"{PREFIX}version_{story.name}"]) >= 6, notes
    assert node["metadata"]["labels"][f"{PREFIX}status_{story.name}"] == "complete"

    def conditions():
        return {c["type"]: (c["status"], c["reason"], c["message"])
                for c in story.node()["status"]["conditions"] if c["type"].startswith(PREFIX)}
    want = {f"{PREFIX}{story.name}/NotReady": ("False", "Complete", f"Skyhook {story.name} Ready"),
            f"{PREFIX}{story.name}/Erroring": ("False", "Not Erroring",
                                               f"Package Erroring or Unknown for {story.name}")}
    story.wait("the node's conditions", lambda: conditions() == want)
    assert shown["packageList"] == "wor:1.0.0" and shown["completeNodes"] == "1/1", shown
    assert shown["nodesInProgress"] == 0 and shown["nodeOrderOffset"] == 1, shown
    assert shown["nodeStatus"] == {story.nodes[0]: "complete"}, shown
    assert shown["nodeBootIds"] == {story.nodes[0]: node["status"]["nodeInfo"]["bootID"]}, shown
    assert shown["nodeState"][story.nodes[0]]["wor|1.0.0"]["state"] == "complete", shown
    groups = shown["compartmentStatuses"]["__default__"]
    assert {key: groups[key] for key in ("matched", "ceiling", "inProgress", "completed",
                                         "progressPercent")} == {
        "matched": 1, "ceiling": 1, "inProgress": 0, "completed": 1, "progressPercent": 100}, groups
    told = {c["type"]: (c["status"], c["reason"], c["message"]) for c in story.wait(
        "its conditions", lambda: story.status()["conditions"])}
    ready = ("True", "NodesConverged", f"1/1 nodes complete ({story.nodes[0]})")
    assert told["Ready"] == told[PREFIX + "Ready"] == ready, told
    assert told[PREFIX + "Transition"][:2] == ("True", "complete"), told
    applied = ("True", "ApplyPackage", f"Applying package [wor:1.0.0] to node [{story.nodes[0]}]")
    assert told["ApplyPackage"] == told[PREFIX + "ApplyPackage"] == applied, told
    assert set(told) == {kind for bare in ("Ready", "TaintNotTolerable", "NodesIgnored",
                                           "ApplyPackage") for kind in (bare, PREFIX + bare)} | {
        PREFIX + "Transition"}, sorted(told)
    generation = found["metadata"]["generation"]
    assert {c["observedGeneration"] for c in story.status()["conditions"]} == {generation}
    pod_of(story, story.jobs(stage="apply")[0], uid)


def pod_of(story, job, owner):
    """What the pod of a stage is made of."""
    made = job["spec"]["template"]
    note = made["metadata"]["annotations"][PREFIX + "package"]
    assert note == ('{"name":"wor","version":"1.0.0","skyhook":"' + story.name + '",'
                    '"stage":"apply","image":"example.test/package",'
                    f'"containerSHA":"sha256:{"0" * 64}"}}'), note
    pod = made["spec"]
    assert [c["name"] for c in pod["initContainers"] + pod["containers"]] == [
        "wor-init", "wor-apply", "wor-applycheck"], pod
    assert pod["initContainers"][0]["image"] == f"example.test/package@sha256:{'0' * 64}"
    assert (pod["hostPID"], pod["hostNetwork"], pod["restartPolicy"]) == (True, True, "Never"), pod
    folder = f"/var/lib/skyhook/{story.name}/wor-1.0.0-{owner['uid']}-"
    for container, word in ((pod["initContainers"][1], "apply"), (pod["containers"][0],
                                                                  "apply-check")):
        assert container["args"][:2] == [word, "/root"] and container["args"][2].startswith(
            folder), container
        env = {one["name"]: one.get("value") for one in container["env"]}
        assert list(env)[:5] == ["SKYHOOK_LOG_DIR", "SKYHOOK_ROOT_DIR", "COPY_RESOLV",
                                 "SKYHOOK_RESOURCE_ID", "SKYHOOK_NODE_ORDER"], env
        assert (env["SKYHOOK_LOG_DIR"], env["SKYHOOK_ROOT_DIR"], env["COPY_RESOLV"]) == (
            f"/var/log/skyhook/{story.name}", f"/var/lib/skyhook/{story.name}", "false"), env
        assert env["SKYHOOK_RESOURCE_ID"].startswith(f"{story.name}-{owner['uid']}-") and \
            env["SKYHOOK_RESOURCE_ID"].endswith("_wor_1.0.0"), env
        assert env["SKYHOOK_NODE_ORDER"] == "0", env


STORIES = [dependencies_first, one_package_at_a_time, interrupts_in_one, reboot_for_all, globs,
           changed_in_the_middle, uninstalled_with_an_interrupt, uninstall_that_is_taken_back,
           dependency_that_is_uninstalled, uninstalled_first, deleted_while_paused,
           deleted_in_mid_flight, state_that_cannot_be_read, document_that_is_none, ignored,
           ignored_in_mid_flight, taint_of_others, by_priority, in_sequence, one_after_the_other,
           word_for_word]
