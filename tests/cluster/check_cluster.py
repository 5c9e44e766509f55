#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the test cluster itself: that a Job ends as a test asks, on a real API server."""

import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import audit
import binaries
import drover
import fleet
import plane
from jobs import SPACE, Story, condition, state_of

MANY_NODES = 1000


def succeeds_after_its_time(story):
    story.create("ok", "node-00000", "succeed 1s")
    pod = story.started("ok")
    assert pod["status"]["phase"] == "Pending", pod["status"]  # init containers run
    assert "running" in state_of(pod, "p-apply"), pod["status"]
    assert "waiting" in state_of(pod, "p-applycheck"), pod["status"]
    story.ends("ok", "Complete")
    pod = story.pod("ok")
    assert pod["status"]["phase"] == "Succeeded"
    assert state_of(pod, "p-applycheck")["terminated"]["exitCode"] == 0
    ended = state_of(pod, "p-apply")["terminated"]
    assert ended["startedAt"] < ended["finishedAt"], "TIME was not waited for"


def fails_with_its_code(story):
    story.create("bad", "node-00001", "fail 0s 42")
    assert story.ends("bad", "Failed")["reason"] == "BackoffLimitExceeded"
    pod = story.pod("bad")
    assert state_of(pod, "p-apply")["terminated"]["exitCode"] == 42, pod["status"]
    assert "waiting" in state_of(pod, "p-applycheck"), pod["status"]
    story.create("bad-check", "node-00001", "fail 0s 3 p-applycheck")
    story.ends("bad-check", "Failed")
    pod = story.pod("bad-check")
    assert state_of(pod, "p-apply")["terminated"]["exitCode"] == 0, pod["status"]
    assert state_of(pod, "p-applycheck")["terminated"]["exitCode"] == 3, pod["status"]


def hangs_until_its_deadline(story):
    story.create("hang", "node-00002", "hang", activeDeadlineSeconds=2)
    story.started("hang")
    assert story.ends("hang", "Failed")["reason"] == "DeadlineExceeded"


def cannot_pull(story):
    story.create("pull", "node-00003", "unpullable")
    pod = story.started("pull")
    assert pod["status"]["phase"] == "Pending"
    assert state_of(pod, "p-init")["waiting"]["reason"] == "ImagePullBackOff", pod["status"]
    story.create("pull-2", "node-00003", "unpullable 0s ErrImageNeverPull p-apply")
    pod = story.started("pull-2")
    assert state_of(pod, "p-apply")["waiting"]["reason"] == "ErrImageNeverPull", pod["status"]
    assert not condition(story.api.get("jobs", "pull", SPACE), "Failed")
    story.api.delete("pods", pod["metadata"]["name"], SPACE)
    story.ends("pull-2", "Failed")


def runs_out_of_memory(story):
    story.create("oom", "node-00004", "oom")
    story.ends("oom", "Failed")
    assert state_of(story.pod("oom"), "p-apply")["terminated"]["reason"] == "OOMKilled"


def is_evicted_by_the_kubelet(story):
    story.create("evict", "node-00005", "evict")
    story.ends("evict", "Failed")
    pod = story.pod("evict")
    assert pod["status"]["reason"] == "Evicted"
    assert condition(pod, "DisruptionTarget")["reason"] == "TerminationByKubelet"


def is_rejected_by_the_kubelet(story):
    story.create("reject", "node-00006", "reject")
    story.ends("reject", "Failed")
    pod = story.pod("reject")
    assert pod["status"]["reason"] == "OutOfcpu", pod["status"]
    assert not pod["status"].get("containerStatuses"), pod["status"]


def is_evicted_by_a_drain(story):
    story.create("drain", "node-00007", "hang")
    pod = story.started("drain")
    story.api.evict(pod["metadata"]["name"], SPACE)
    story.ends("drain", "Failed")
    api.wait_until("the pod is gone", lambda: not story.api.find(
        "pods", pod["metadata"]["name"], SPACE))


def never_terminates(story):
    story.create("stuck", "node-00008", "hang", notes={"drover.test/terminate": "never"})
    pod = story.started("stuck")
    story.api.delete("pods", pod["metadata"]["name"], SPACE)
    time.sleep(1)
    found = story.api.get("pods", pod["metadata"]["name"], SPACE)
    assert found["metadata"]["deletionTimestamp"], "it is not being deleted"
    assert not condition(story.api.get("jobs", "stuck", SPACE), "Failed")


def is_told_by_the_behaviour(story):
    labels = {"skyhook.nvidia.com/package": "shellscript-1.2.3",
              "skyhook.nvidia.com/stage": "apply"}
    story.cluster.behave(**{"shellscript-1.2.3_apply": "succeed",
                            "shellscript-1.2.3_apply_node-00009": "fail 0s 7"})

    def told():  # the server learns of the ConfigMap by a watch
        pod = {"metadata": {"generateName": "probe-", "labels": labels}, "spec": {
            "nodeName": "node-00009", "containers": [{"name": "c", "image": "i"}]}}
        path = story.api.path("pods", None, SPACE, dryRun="All")
        found = story.api.ask("POST", path, pod)
        return found["metadata"].get("annotations", {}).get("drover.test/run") == "fail 0s 7"
    api.wait_until("the policy acts", told)
    story.create("told", "node-00009", labels=labels)
    story.create("told-too", "node-00010", labels=labels)
    story.ends("told", "Failed")
    story.ends("told-too", "Complete")
    assert state_of(story.pod("told"), "p-apply")["terminated"]["exitCode"] == 7


def reboots_with_another_boot_id(story):
    story.create("mid", "node-00011", "hang")
    story.started("mid")
    before = fleet.boot_id(story.api, "node-00011")
    new = fleet.reboot(story.api, "node-00011", 1)
    api.wait_until("the node is down",
                   lambda: not fleet.is_ready(story.api.get("nodes", "node-00011")))
    story.ends("mid", "Failed")
    fleet.wait_rebooted(story.api, "node-00011", new)
    assert new != before


def a_pod_reboots_its_node_once(story):
    name = "node-00012"
    labels = {"skyhook.nvidia.com/stage": "interrupt"}
    before = fleet.boot_id(story.api, name)
    story.cluster.behave(**{f"interrupt_{name}": "reboot 0s 1s"})
    time.sleep(1)
    story.create("boot-1", name, labels=labels)
    story.ends("boot-1", "Failed")
    api.wait_until("the node is back with another bootID", lambda: fleet.is_ready(
        story.api.get("nodes", name)) and fleet.boot_id(story.api, name) != before)
    after = fleet.boot_id(story.api, name)
    story.create("boot-2", name, labels=labels)
    story.ends("boot-2", "Complete")
    assert fleet.boot_id(story.api, name) == after, "it rebooted twice"


def a_lost_node_freezes(story):
    story.create("lost", "node-00013", "succeed 8s")  # on a busy machine it is lost late
    story.started("lost")
    fleet.lose(story.api, "node-00013")
    time.sleep(9)
    assert not story.api.get("jobs", "lost", SPACE)["status"].get("succeeded")
    assert not fleet.is_ready(story.api.get("nodes", "node-00013"))
    fleet.bring_back(story.api, "node-00013")
    story.ends("lost", "Complete")
    assert fleet.is_ready(story.api.get("nodes", "node-00013"))


def writes_are_counted(story):
    other = story.cluster.client("drover", agent="some-operator/1.0")
    thing = {"metadata": {"name": "x"}, "data": {"a": "b"}}

    def allowed():
        return other.create("configmaps", thing, SPACE)
    try:
        allowed()
        assert False, "it has rights that nobody gave it"
    except api.ApiError as error:
        assert error.status == 403, error
    story.api.create("clusterrolebindings", {
        "metadata": {"name": "test-drover"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "drover"}]})
    api.wait_until("it may write", allowed)
    counted = audit.counts(story.cluster.audit_file)
    key = ("some-operator", "drover", "create", "configmaps")
    assert counted[(*key, 403)] >= 1 and counted[(*key, 201)] == 1, counted
    body = audit.writes_of(story.cluster.audit_file, "drover")[-1]["requestObject"]
    assert body["data"] == {"a": "b"}, body
    nodes = sum(number for found, number in counted.items()
                if found[0] == "drover-test" and found[2:4] == ("create", "nodes"))
    assert nodes == len(story.api.list("nodes")), counted


def the_server_comes_back(story):
    story.cluster.kill("kube-apiserver")
    story.cluster.run_again("kube-apiserver")
    story.create("again", "node-00014")
    story.ends("again", "Complete", 90)


def many_nodes_come_quickly(story):
    began = time.monotonic()
    story.cluster.add_nodes(MANY_NODES, prefix="many")
    took = time.monotonic() - began
    print(f"# {MANY_NODES} nodes in {took:.1f} s")
    ready = [node for node in story.api.list("nodes") if fleet.is_ready(node)]
    assert len(ready) >= MANY_NODES
    story.cluster.wait_quiet()
    tainted = [node for node in ready if node["spec"].get("taints")]
    fresh = [node for node in tainted if node["metadata"]["name"].startswith("many")]
    assert not fresh, "nodes are not as the test made them"
    assert took < 60, f"{took:.1f} s"


STORIES = [
    succeeds_after_its_time, fails_with_its_code, hangs_until_its_deadline, cannot_pull,
    runs_out_of_memory, is_evicted_by_the_kubelet, is_rejected_by_the_kubelet,
    is_evicted_by_a_drain, never_terminates, is_told_by_the_behaviour,
    reboots_with_another_boot_id, a_pod_reboots_its_node_once, a_lost_node_freezes,
    writes_are_counted, the_server_comes_back, many_nodes_come_quickly,
]


def tell(tap, cluster):
    cluster.add_nodes(20)
    story = Story(cluster)
    for act in STORIES:
        name = act.__name__.replace("_", " ")
        try:
            act(story)
            tap.test(name)
        except Exception as error:  # pylint: disable=broad-exception-caught
            cluster.fail()
            tap.test(name, f"{type(error).__name__}: {error}")
        sys.stdout.flush()


def side_by_side():
    """Two at once share nothing; after them no process of theirs is left."""
    with plane.Cluster("side-1") as one, plane.Cluster("side-2") as two:
        one.add_nodes(3)
        two.add_nodes(2)
        found = [len(cluster.api.list("nodes")) for cluster in (one, two)]
        ids = [process.pid for cluster in (one, two) for process in cluster.processes.values()]
    left = [pid for pid in ids if plane.start_time(pid) is not None]
    assert found == [3, 2], found
    assert len(ids) == 10 and not left, f"{left} of {ids}"
    assert not one.folder.exists() and not two.folder.exists()


def by_hand():
    """The command line starts one that outlives it, and ends it."""
    folder = pathlib.Path(plane.tempfile.mkdtemp(prefix="drover-cluster-")) / "mine"
    tool = str(HERE / "cluster")
    subprocess.run([tool, "start", str(folder), "--nodes", "2"], check=True,
                   stdout=subprocess.PIPE, timeout=180)
    ids = [pid for pid, _ in plane.json.loads((folder / "processes.json").read_text()).values()]
    kubectl = subprocess.run([binaries.folder() / "kubectl", "--kubeconfig",
                              folder / "kubeconfig-admin", "get", "nodes", "-o", "name"],
                             check=True, stdout=subprocess.PIPE, timeout=60)
    assert kubectl.stdout.split() == [b"node/node-00000", b"node/node-00001"], kubectl.stdout
    subprocess.run([tool, "stop", str(folder)], check=True, timeout=60)
    assert not folder.exists()
    folder.parent.rmdir()
    left = [pid for pid in ids if plane.start_time(pid) is not None]
    assert ids and not left, f"{left} of {ids}"


def killed():
    """SIGKILL of a test ends its servers, too."""
    code = ("import sys, time; sys.path.insert(0, sys.argv[1]); import plane; "
            "c = plane.Cluster('killed', scheduler=False); c.start(); "
            "print(c.folder, *[p.pid for p in c.processes.values()], flush=True); time.sleep(600)")
    with subprocess.Popen([sys.executable, "-c", code, str(HERE)],
                          stdout=subprocess.PIPE) as process:
        words = process.stdout.readline().split()
        os.kill(process.pid, signal.SIGKILL)
    ids = [int(word) for word in words[1:]]
    assert len(ids) == 4, words
    api.wait_until("its servers are gone",
                   lambda: all(plane.start_time(pid) is None for pid in ids), 10)
    plane.shutil.rmtree(words[0].decode(), ignore_errors=True)


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("the test cluster", problem)
        return tap.done()
    began = time.monotonic()
    with plane.Cluster("check-cluster") as cluster:
        took = time.monotonic() - began
        print(f"# ready after {took:.1f} s")
        tap.test("a cluster starts", "" if took < 60 else f"after {took:.1f} s")
        tell(tap, cluster)
    for act in (side_by_side, by_hand, killed):
        try:
            act()
            tap.test(act.__doc__.splitlines()[0])
        except Exception as error:  # pylint: disable=broad-exception-caught
            tap.test(act.__doc__.splitlines()[0], f"{type(error).__name__}: {error}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
