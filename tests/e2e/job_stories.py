# SPDX-License-Identifier: Apache-2.0
"""Package stages as Jobs, and what people see when one goes wrong: one story each."""

import json

import rollout

PREFIX = rollout.PREFIX
LABELS = ("name", "package", "node", "stage", "resource-id")
APPLY, ALL = ("apply", "config"), ("apply", "config", "interrupt", "post-interrupt")
SERVICE = {"type": "service", "services": ["a"]}


def is_over(job, kind):
    return any(c["type"] == kind and c["status"] == "True"
               for c in job["status"].get("conditions", []))


def one_job_for_each_stage(story):
    """one Job for each package, stage and node in flight, found by labels, owned by its Skyhook"""
    story.add_nodes(3)
    story.behave(**{f"config_{node}": "succeed 5s" for node in story.nodes})
    story.skyhook({"one": rollout.package(interrupt=SERVICE)}, interruptionBudget={"count": 2})

    def in_flight():
        found = [job for job in story.jobs() if not job["status"].get("succeeded")]
        return found if len(found) == 2 else None
    found = story.wait("two are in flight", in_flight)
    assert len({job["metadata"]["labels"][PREFIX + "node"] for job in found}) == 2, found
    story.complete()
    owner = story.api.get("skyhooks", story.name)["metadata"]["uid"]
    for node in story.nodes:
        of_node = story.jobs(node=node)
        assert [job["metadata"]["labels"][PREFIX + "stage"] for job in of_node] == list(ALL)
        for job in of_node:
            labels, spec = job["metadata"]["labels"], job["spec"]
            assert all(PREFIX + key in labels for key in LABELS), labels
            assert labels[PREFIX + "package"] == "one-1.0.0", labels
            pod = spec["template"]["metadata"]["labels"]
            assert all(pod[PREFIX + key] == labels[PREFIX + key] for key in LABELS), pod
            assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 0)
            assert spec["podReplacementPolicy"] == "Failed" and not spec.get("suspend"), spec
            assert job["metadata"]["ownerReferences"][0]["uid"] == owner
            assert spec["template"]["spec"]["nodeName"] == node
        # One rollout of one package on one node, in one question.
        group = of_node[0]["metadata"]["labels"][PREFIX + "resource-id"]
        assert len(story.jobs(**{"resource-id": group, "node": node})) == len(ALL)
    raw = [pod for pod in story.api.list("pods", rollout.SPACE,
                                         labelSelector=f"{PREFIX}name={story.name}")
           if not pod["metadata"].get("ownerReferences")]
    assert not raw, "a pod without a Job"


def successful_ones_go(story):
    """a Job that succeeded goes by its time to live; the operator misses nothing"""
    story.add_nodes(1)
    story.skyhook("suc")
    story.complete()
    assert {job["spec"]["ttlSecondsAfterFinished"] for job in story.jobs()} == {86400}
    for job in story.jobs():
        story.api.patch("jobs", job["metadata"]["name"],
                        {"spec": {"ttlSecondsAfterFinished": 0}}, rollout.SPACE)
    story.wait("they are gone", lambda: not story.jobs())
    rollout.wait(2)
    assert not story.jobs() and story.status()["status"] == "complete", "it ran again"


def failed_ones_stay(story):
    """Jobs that failed stay for their logs until the stage has succeeded"""
    story.add_nodes(1)
    story.behave(**{"fai-1.0.0": "fail 0s 42"})
    story.skyhook("fai")
    story.told("state erroring", "Error")
    failed = story.wait("its time to live is taken away", lambda: [
        job for job in story.jobs()
        if "ttlSecondsAfterFinished" not in job["spec"] and is_over(job, "Failed")])
    pods = story.api.list("pods", rollout.SPACE,
                          labelSelector=f"job-name={failed[0]['metadata']['name']}")
    assert pods and pods[0]["status"]["phase"] == "Failed", "no pod, no logs"
    story.behave(**{"fai-1.0.0": None})
    story.complete()
    story.wait("they go", lambda: not [job for job in story.jobs() if is_over(job, "Failed")])


def ends_as(story, word, run=None, seconds=180, **more):
    """The first stage does that, and ends as erroring with that word."""
    package = story.name[:3]
    story.add_nodes(1)
    if run:
        story.behave(**{f"{package}-1.0.0": run})
    story.skyhook({package: rollout.package(**more)})
    story.told("state erroring", word, seconds=seconds)
    story.wait("the node has that word", lambda: story.why() == word)
    state = json.loads(story.note("nodeState"))[f"{package}|1.0.0"]
    assert state["stage"] == "apply" and state["restarts"] > 0, state
    story.wait("its Job is Failed", lambda: is_over(story.jobs()[0], "Failed"))


def unpullable_image(story):
    """an image that cannot be pulled ends as erroring, and its Job as Failed"""
    ends_as(story, "ImagePullBackOff", "unpullable", 240)
    name = story.jobs()[0]["metadata"]["name"]
    story.wait("no pod of it is left", lambda: not story.api.list(
        "pods", rollout.SPACE, labelSelector=f"job-name={name}"))


def image_name_that_is_none(story):
    """an image name that cannot be parsed is not tried again"""
    ends_as(story, "InvalidImageName", "unpullable 0s InvalidImageName", 240)
    state, text = story.explain()
    assert state == "failed" and "InvalidImageName" in text, text
    rollout.wait(15)
    assert len(story.jobs()) == 1, "it was tried again"


def retried_by_hand(story):
    """what is not tried again by itself is when a person says so, on that node alone, and people
    are told; what was complete there does not run again, and one that has not failed is let be"""
    story.add_nodes(3)
    wrong = {f"config_{node}": "unpullable 0s InvalidImageName" for node in story.nodes[:2]}
    story.behave(**wrong)
    story.skyhook("rbh")
    for at in (0, 1):
        story.told("state erroring", "InvalidImageName", at=at)
    story.wait("the third is done", lambda: story.note("status", 2) == "complete")
    assert '"act":"retry"' in "".join(story.explain()[1].split()), story.explain()
    story.behave(**{key: None for key in wrong})
    rollout.wait(15)  # after 10 s it would be tried again
    assert len(story.jobs(stage="config")) == 3, "it was tried again"
    out = story.stage.plugin("node", "retry", story.nodes[0], story.nodes[2], "--skyhook",
                             story.name, "--confirm")
    assert "retry 1 node(s)" in out and "No operator" not in out, out
    story.wait("it is done", lambda: story.note("status") == "complete")
    assert story.note("status", 1) == "erroring" and len(story.jobs(node=story.nodes[1])) == 2
    story.stage.plugin("node", "retry", ".*", "--skyhook", story.name, "--confirm")
    story.complete()
    assert len(story.jobs(stage="apply")) == 3 and len(story.jobs(node=story.nodes[2])) == 2


def deadline(story):
    """a stage that takes too long ends as erroring, DeadlineExceeded"""
    ends_as(story, "DeadlineExceeded", "hang", stageTimeout="3s")


def eviction(story):
    """a pod that its kubelet evicts ends as erroring, Evicted, and its stage is tried again"""
    ends_as(story, "Evicted", "evict")
    story.behave(**{"evi-1.0.0": None})
    story.complete()


def out_of_memory(story):
    """a container that has no more memory ends as erroring, OOMKilled, and its stage is tried
    again"""
    ends_as(story, "OOMKilled", "oom")
    story.behave(**{"out-1.0.0": None})
    story.complete()


def rejected(story):
    """a pod that its kubelet refuses ends as erroring with the kubelet's word"""
    ends_as(story, "OutOfcpu", "reject")


def recovers(story):
    """an erroring node is tried again by itself; its failure is forgotten when it succeeds, but for
    how often the stage had failed"""
    story.add_nodes(2)
    story.behave(**{f"config_{story.nodes[0]}": "fail"})
    story.skyhook({"rec": rollout.package(configMap={"a.conf": "1"})})
    story.wait("it errs", lambda: story.note("status") == "erroring")
    story.behave(**{f"config_{story.nodes[0]}": None})
    shown = story.complete()
    assert shown["completeNodes"] == "2/2", shown
    failed = max(int(job["metadata"]["annotations"][PREFIX + "attempt"])
                 for job in story.jobs(node=story.nodes[0], stage="config")) - 2  # apply, success
    entry = json.loads(story.note("nodeState"))["rec|1.0.0"]
    assert failed >= 1 and entry["restarts"] == failed, (failed, entry)
    assert shown["nodeState"][story.nodes[0]]["rec|1.0.0"]["restarts"] == failed, shown
    assert "restarts" not in story.note("nodeState", 1)
    story.edit("rec", {"configMap": {"a.conf": "2"}})
    story.wait("it runs for something else", lambda: "restarts" not in story.note("nodeState"))
    story.complete()


def vanished(story):
    """a Job that a person deletes is made again, in the same claim"""
    story.add_nodes(1)
    story.behave(**{f"apply_{story.nodes[0]}": "hang"})
    story.skyhook("van")
    first = story.wait("it runs", lambda: story.jobs())[0]["metadata"]
    story.behave(**{f"apply_{story.nodes[0]}": None})
    story.api.delete("jobs", first["name"], rollout.SPACE)
    story.complete()
    assert first["name"] not in [job["metadata"]["name"] for job in story.jobs()]


def paced(story):
    """install, upgrade, config change and uninstall keep the budget at every revision, and a config
    change within a day runs Jobs of its own"""
    nodes, budget = 6, 2

    def changed(what, change, stage, count):
        story.edit("pac", change)
        story.wait(what, lambda: len(story.jobs(stage=stage)) == count)
        story.complete(180)
    story.add_nodes(nodes)
    story.skyhook({"pac": rollout.package(
        interrupt=SERVICE, configMap={"a.conf": "1", "b.conf": "1"},
        configInterrupts={"a.conf": SERVICE}, uninstall={"enabled": True, "apply": False})},
                  interruptionBudget={"count": budget})
    story.complete(180)
    changed("a config stage each", {"configMap": {"a.conf": "2"}}, "config", 2 * nodes)
    assert len(story.jobs(stage="interrupt")) == 2 * nodes, "a.conf has an interrupt"
    # Back to what ran successfully an hour ago: the old Jobs do not count.
    changed("and again", {"configMap": {"a.conf": "1"}}, "config", 3 * nodes)
    changed("without interrupt", {"configMap": {"b.conf": "2"}}, "config", 4 * nodes)
    assert len(story.jobs(stage="interrupt")) == 3 * nodes, "b.conf has none"
    changed("an upgrade", {"version": "2.0.0"}, "upgrade", nodes)
    story.edit("pac", {"uninstall": {"enabled": True, "apply": True}})
    story.wait("all are uninstalled", lambda: len(
        [job for job in story.jobs(stage="uninstall") if is_over(job, "Complete")]) == nodes, 300)
    story.wait("nothing is noted any more", lambda: all(
        story.note("nodeState", at) in (None, "{}") for at in range(nodes)))
    story.wait("nobody is cordoned", lambda: not any(
        story.is_cordoned(at) for at in range(nodes)))
    story.wait("no claim is left", lambda: not story.batch().get("members"))
    assert story.check_limits(budget) == budget


def maps_that_are_not_needed_go(story):
    """the ConfigMap of a version that is gone is deleted when nobody needs it any more"""
    story.add_nodes(1)
    story.skyhook({"map": rollout.package(configMap={"a.conf": "1"})})
    story.complete()

    def names():
        return sorted(one["metadata"]["name"] for one in story.api.list(
            "configmaps", rollout.SPACE, labelSelector=f"{PREFIX}name={story.name}"))
    assert names() == [f"{story.name}-map-1.0.0"], names()
    story.edit("map", {"version": "2.0.0"})
    story.complete()
    story.wait("the old one is gone", lambda: names() == [f"{story.name}-map-2.0.0"])


def raw_pod(story, node, run, container="pause", **more):
    """As the operator that our users have today leaves it; that container is the one that runs.
    more: package, version, stage, and the node's state, if it is no first install."""
    package, version = more.get("package", "raw"), more.get("version", "1.0.0")
    stage = more.get("stage", "apply")
    entry = {"name": package, "version": version, "image": "example.test/package"}
    state = more.get("before") or {
        f"{package}|{version}": {**entry, "stage": stage, "state": "in_progress"}}
    story.api.patch("nodes", node, {"metadata": {"annotations": {
        f"{PREFIX}nodeState_{story.name}": json.dumps(state, separators=(",", ":")),
        f"{PREFIX}status_{story.name}": "in_progress"}}})
    notes = {f"{PREFIX}package": json.dumps(
        {"name": package, "version": version, "skyhook": story.name, "stage": stage,
         "image": "example.test/package"}, separators=(",", ":")), "drover.test/run": run,
             "kubectl.kubernetes.io/default-container": container}
    containers = [{"name": name, "image": f"example.test/package:{version}"}
                  for name in (f"{package}-init", f"{package}-{stage}", f"{package}-{stage}check")]
    story.api.create("pods", {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"raw-{node}", "annotations": notes, "labels": {
            PREFIX + "name": story.name, PREFIX + "package": f"{package}-{version}"}},
        "spec": {"nodeName": node, "initContainers": containers, "restartPolicy": "OnFailure",
                 "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
                 "containers": [{"name": "pause", "image": "example.test/pause:1"}]}},
                     rollout.SPACE)


def raw_pods_of_an_older_operator(story):
    """their outcome counts, nothing runs beside them, and none is left"""
    story.add_nodes(3)
    # The stage of the first has succeeded, that of the second fails, the third's still runs.
    raw_pod(story, story.nodes[0], "hang")
    raw_pod(story, story.nodes[1], "fail 0s 1 raw-apply")
    raw_pod(story, story.nodes[2], "hang", "raw-apply")
    story.wait("they run", lambda: all("startTime" in story.api.get(
        "pods", f"raw-{node}", rollout.SPACE)["status"] for node in story.nodes))
    story.skyhook("raw", interruptionBudget={"count": 1})
    story.wait("two of them are gone", lambda: not any(story.api.find(
        "pods", f"raw-{node}", rollout.SPACE) for node in story.nodes[:2]))
    rollout.wait(2)
    assert not story.jobs(node=story.nodes[2]), "a Job beside a raw pod"
    story.api.delete("pods", f"raw-{story.nodes[2]}", rollout.SPACE)
    shown = story.complete(150)
    assert shown["completeNodes"] == "3/3", shown
    applied = [job["metadata"]["labels"][PREFIX + "node"] for job in story.jobs(stage="apply")]
    assert story.nodes[0] not in applied, "what had succeeded ran again"
    left = [pod["metadata"]["name"] for pod in story.api.list(
        "pods", rollout.SPACE, labelSelector=f"{PREFIX}name={story.name}")
            if not any(owner["kind"] == "Job"
                       for owner in pod["metadata"].get("ownerReferences", []))]
    assert not left, left


def seen_by_people(story):
    """kubectl shows a Job's end, and `kubectl skyhook` what has become of nodes and packages"""
    story.add_nodes(2)
    story.behave(**{f"config_{story.nodes[1]}": "fail"})
    story.skyhook("ppl")
    story.wait("one is done", lambda: story.note("status") == "complete")
    story.wait("one errs", lambda: story.note("status", 1) == "erroring")

    def ask(*words):
        return story.stage.plugin(*words).splitlines()
    found = ask("node", "list", "--skyhook", story.name)
    assert [line.split() for line in found[-4:-2]] == [
        [story.nodes[0], "complete", "1/1"], [story.nodes[1], "ERRORING", "0/1"]], found
    assert found[-1] == "Summary: 2 nodes (1 complete, 1 erroring, 0 in progress)", found
    rows = [line.split() for line in ask("node", "status", *story.nodes, "-o", "wide")[2:]]
    assert [row[:6] for row in rows] == [
        [story.nodes[0], story.name, "ppl", "1.0.0", "config", "complete"],
        [story.nodes[1], story.name, "ppl", "1.0.0", "config", "ERRORING"]], rows
    rows = json.loads("".join(ask("package", "status", "ppl", "--skyhook", story.name, "-o",
                                  "json")))
    assert [(row["nodeName"], row["version"], row["stage"], row["state"]) for row in rows] == [
        (story.nodes[0], "1.0.0", "config", "complete"),
        (story.nodes[1], "1.0.0", "config", "erroring")], rows
    story.wait("conditions", lambda: all(
        is_over(job, "Complete") for job in story.jobs(node=story.nodes[0])))


def retries_end(story):
    """a stage that fails is not tried again for ever: after --stage-retries only when a person says
    so, and then as often again"""
    story.stage.operator.stop()
    try:
        with rollout.Operator(story.stage.program, story.cluster, "--stage-retries=1"):
            retries_of_one(story)
    finally:
        story.stage.operator.start()


def retries_of_one(story):
    story.add_nodes(1)
    story.behave(**{"ren-1.0.0": "fail"})
    story.skyhook("ren")

    def has_failed(times):
        """So often and no more; the last one would have been followed after 20 s."""
        story.wait(f"it has failed {times} times", lambda: attempts() == times and is_over(
            story.jobs()[-1], "Failed") and story.note("status") == "erroring")
        rollout.wait(25)
        assert attempts() == times, "it was tried again"
        state, text = story.explain()
        assert state == "failed" and '"act":"retry"' in "".join(text.split()), text

    def attempts():
        return int(story.jobs()[-1]["metadata"]["annotations"][PREFIX + "attempt"]) \
            if story.jobs() else 0
    has_failed(2)
    story.stage.plugin("node", "retry", story.nodes[0], "--skyhook", story.name, "--confirm")
    has_failed(4)
    story.behave(**{"ren-1.0.0": None})
    story.stage.plugin("node", "retry", story.nodes[0], "--skyhook", story.name, "--confirm")
    story.complete()


STORIES = [one_job_for_each_stage, successful_ones_go, failed_ones_stay, unpullable_image,
           image_name_that_is_none, retried_by_hand, deadline, eviction, out_of_memory, rejected,
           recovers, vanished, paced, maps_that_are_not_needed_go, raw_pods_of_an_older_operator,
           seen_by_people]


# ---- one that needs an operator of its own

IN_TURN = [retries_end]
