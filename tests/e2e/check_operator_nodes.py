#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `drover operator` does to nodes of a real API server: cordon, drain, reboot, taint, and what
a deleted Skyhook leaves behind."""

import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import drover
import plane
import rollout

NODES = 8
BUDGET = 3
TAINT = "skyhook.nvidia.com"


def nodes(cluster, pool):
    return cluster.api.list("nodes", labelSelector=f"pool={pool}")


def free(cluster, pool):
    for node in nodes(cluster, pool):
        name = node["metadata"]["name"]
        assert not node["spec"].get("unschedulable"), f"{name} is left cordoned"
        held = [key for key in node["metadata"].get("annotations", {}) if "/cordon" in key]
        assert not held, f"{name}: {held}"


def application(cluster, node):
    """A pod that has to be evicted, and a budget that does not let it go."""
    labels = {"app": node}
    cluster.api.create("pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"app-{node}", "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "a", "image": "example.test/a:1"}]}},
                       "default")
    api.wait_until("the application runs", lambda: cluster.api.get(
        "pods", f"app-{node}", "default")["status"].get("phase") == "Running")
    cluster.api.create("poddisruptionbudgets", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep-it"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}, "default")
    api.wait_until("the budget counts", lambda: cluster.api.get(
        "poddisruptionbudgets", "keep-it", "default").get("status", {}).get("currentHealthy") == 1)


def let_look(cluster, user):
    """The rights of deploy/operator.yaml for people who look."""
    api_group = "rbac.authorization.k8s.io"
    for kind, space, role in (("clusterrolebindings", None, "ClusterRole"),
                              ("rolebindings", rollout.SPACE, "Role")):
        cluster.api.create(kind, {
            "metadata": {"name": f"{user}-looks"},
            "subjects": [{"kind": "User", "apiGroup": api_group, "name": user}],
            "roleRef": {"apiGroup": api_group, "kind": role, "name": "skyhook-viewer"}}, space)


def explained(cluster, node, user):
    """What `drover explain` says of the node to the user."""
    result = drover.run(drover.programs()[0], "explain", node, "--kubeconfig",
                        cluster.kubeconfig(user), "-o", "json")
    assert result.status == 0 and not result.err, result
    return json.loads(result.out)


def reboots(cluster):
    """a reboot is a success in the same batch, behind a drain that a budget held up"""
    before = {n["metadata"]["name"]: n["status"]["nodeInfo"]["bootID"]
              for n in nodes(cluster, "a")}
    held = sorted(before)[0]
    application(cluster, held)
    cluster.behave(interrupt="reboot")
    cluster.api.create("skyhooks", rollout.skyhook(
        "kernel", {"tune": rollout.package(interrupt={"type": "reboot"})},
        interruptionBudget={"count": BUDGET}, nodeSelectors={"matchLabels": {"pool": "a"}}))
    api.wait_until("the node is cordoned", lambda: cluster.api.get(
        "nodes", held)["spec"].get("unschedulable"))
    api.wait_until("the others of the batch are rebooted", lambda: cluster.api.get(
        "skyhooks", "kernel").get("status", {}).get("completeNodes") == f"{BUDGET - 1}/{NODES}", 60)
    jobs = [job for job in cluster.api.list("jobs", rollout.SPACE)
            if job["spec"]["template"]["spec"]["nodeName"] == held]
    assert not jobs, "a Job beside a drain"
    let_look(cluster, "viewer")
    said = explained(cluster, held, "viewer")["summary"]
    assert f"default/app-{held}, which the budget keep-it protects" in said, said
    cluster.api.delete("poddisruptionbudgets", "keep-it", "default")
    rollout.wait_status(cluster, "kernel", "complete", 90)
    assert not cluster.api.find("pods", f"app-{held}", "default"), "it was not evicted"
    for node in nodes(cluster, "a"):
        name = node["metadata"]["name"]
        assert node["status"]["nodeInfo"]["bootID"] != before[name], f"{name} did not reboot"
        assert '"stage":"post-interrupt","state":"complete"' in rollout.note(
            node, "nodeState_kernel")
    free(cluster, "a")
    most = rollout.most_claims(rollout.history(cluster), "kernel")
    assert most <= BUDGET, f"{most} claims at once"
    cluster.behave(interrupt=None)


def taints(cluster):
    """nodes that are new are tainted, and free when their packages are there"""
    cluster.behave(**{"agent-1.0.0": "succeed 2s"})
    cluster.api.create("skyhooks", rollout.skyhook(
        "first", {"agent": rollout.package()}, runtimeRequired=True, autoTaintNewNodes=True,
        nodeSelectors={"matchLabels": {"pool": "b"}}))
    cluster.add_nodes(3, prefix="late", labels={"pool": "b"})

    def tainted():
        return sum(any(t["key"] == TAINT for t in n["spec"].get("taints", []))
                   for n in nodes(cluster, "b"))
    api.wait_until("all of them are tainted", lambda: tainted() == 3)
    api.wait_until("and complete", lambda: cluster.api.get(
        "skyhooks", "first").get("status", {}).get("completeNodes") == "3/3", 60)
    api.wait_until("and free", lambda: tainted() == 0)


def deletes(cluster):
    """a deleted Skyhook uninstalls, and leaves nothing but that the node was seen"""
    cluster.api.create("skyhooks", rollout.skyhook(
        "gone", {"tool": rollout.package(uninstall={"enabled": True, "apply": False})},
        nodeSelectors={"matchLabels": {"pool": "b"}}))
    rollout.wait_status(cluster, "gone", "complete")
    cluster.api.delete("skyhooks", "gone")
    api.wait_until("it is gone", lambda: not cluster.api.find("skyhooks", "gone"), 60)
    for node in nodes(cluster, "b"):
        left = [key for key in node["metadata"]["annotations"] if key.endswith("_gone")]
        left += [key for key in node["metadata"]["labels"] if key.endswith("_gone")]
        left += [c["type"] for c in node["status"]["conditions"] if "/gone/" in c["type"]]
        assert not left, left
        assert rollout.note(node, "seen") == "true"


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("what the operator does to nodes", problem)
        return tap.done()
    program = drover.programs()[0]
    with plane.Cluster("check-operator-nodes") as cluster:
        rollout.prepare(cluster, program)
        cluster.add_nodes(NODES, labels={"pool": "a"})
        with rollout.Operator(program, cluster) as operator:
            for act in (reboots, taints, deletes):
                wrong = None
                try:
                    act(cluster)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}"
                    cluster.fail()
                tap.test(act.__doc__, wrong)
            ended = operator.stop()
            tap.test("it ends when told", None if ended == 0 else f"exit status {ended}")
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
