#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kubectl skyhook`, and plan and explain of a live cluster, on a real API server.

No operator runs: what commands write is what is found.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import audit
import binaries
import drover
import jobs
import plane

PREFIX = "skyhook.nvidia.com/"
SK = "skyhook-sample"
NODES = ["node-00000", "node-00001", "node-00002", "node-00003", "node-00004"]
BATCH = {"currentBatch": 4, "consecutiveFailures": 2, "completedNodes": 3, "failedNodes": 1,
         "shouldStop": True, "lastBatchSize": 2, "lastBatchFailed": True,
         "members": ["node-00002"], "retrying": []}


def entry(name, version, stage, state, restarts=0):
    found = {"name": name, "version": version, "image": f"example.test/{name}", "stage": stage,
             "state": state}
    return f"{name}|{version}", found | ({"restarts": restarts} if restarts else {})


STATES = {
    NODES[0]: dict([entry("baseline", "1.0.0", "config", "complete"),
                    entry("tuning", "1.1.0", "post-interrupt", "complete")]),
    NODES[1]: dict([entry("baseline", "1.0.0", "config", "complete"),
                    entry("tuning", "1.1.0", "apply", "erroring", 3)]),
    NODES[2]: dict([entry("baseline", "1.0.0", "apply", "in_progress")]),
}


class Trial:
    """A cluster in a known state, and one program on it."""

    def __init__(self, cluster, program, folder):
        self.cluster = cluster
        self.api = cluster.api
        self.config = cluster.kubeconfig()
        self.program = program
        self.plugin = pathlib.Path(folder) / "kubectl-skyhook"
        self.plugin.symlink_to(program)

    def run(self, *words, stdin=b""):
        """Of the plugin; its exit status must be 0."""
        result = self.try_run(*words, stdin=stdin)
        assert result.status == 0, f"{' '.join(words)}: {result}"
        return result.out

    def try_run(self, *words, stdin=b""):
        return drover.run(self.plugin, f"--kubeconfig={self.config}", *words, stdin=stdin)

    def drover(self, *words):
        return drover.run(self.program, *words, f"--kubeconfig={self.config}")

    def notes(self, node):
        return self.api.get("nodes", node)["metadata"].get("annotations", {})

    def skyhook(self):
        return self.api.get("skyhooks", SK)

    def acts(self):
        return json.loads(self.skyhook()["metadata"].get("annotations", {}).get(
            PREFIX + "acts", "[]"))

    def set_up(self):
        """Three nodes with state, two of them cordoned, and batches under way."""
        self.config = self.cluster.kubeconfig()
        for node in NODES:
            self.api.patch("nodes", node, {"metadata": {"annotations": {
                key: None for key in self.notes(node) if key.startswith(PREFIX)},
                "labels": {"tier": "production", PREFIX + "ignore": None}},
                "spec": {"unschedulable": None}})
        for node, state in STATES.items():
            self.api.patch("nodes", node, {"metadata": {"annotations": {
                f"{PREFIX}nodeState_{SK}": json.dumps(state, separators=(",", ":")),
                f"{PREFIX}status_{SK}": "in_progress", f"{PREFIX}version_{SK}": "v0.1.0",
                f"{PREFIX}drover_{SK}": '{"attempt":7}'},
                "labels": {f"{PREFIX}status_{SK}": "in_progress"}}})
        for node in NODES[:2]:
            more = {PREFIX + "cordonedBefore": "true"} if node == NODES[0] else {}
            self.api.patch("nodes", node, {"spec": {"unschedulable": True}, "metadata": {
                "annotations": {f"{PREFIX}cordon_{SK}": "true", **more}}})
        self.api.patch("skyhooks", SK, {"metadata": {"annotations": {
            PREFIX + "acts": None, PREFIX + "pause": None, PREFIX + "disable": None}}})
        counts = {"matched": 5, "ceiling": 3, "inProgress": 1, "completed": 3,
                  "progressPercent": 60}
        self.api.patch("skyhooks", SK, {"status": {
            "drover": "{}", "nodePriority": {NODES[2]: "2026-11-16T05:00:00Z"},
            "nodeOrderOffset": 3,
            "compartmentStatuses": {"production": {**counts, "batchState": BATCH},
                                    "critical": counts}}}, sub="status")


# ---- what is tested ----

def switches(t):
    """pause, resume, disable and enable set and remove one annotation, and ask first"""
    for verb, past, key, value in (("pause", "paused", "pause", "true"),
                                   ("resume", "resumed", "pause", None),
                                   ("disable", "disabled", "disable", "true"),
                                   ("enable", "enabled", "disable", None)):
        before = t.skyhook()["metadata"].get("annotations", {}).get(PREFIX + key)
        out = t.run(verb, SK, stdin=b"n\n")
        assert out == f'This will {verb} Skyhook "{SK}". Continue? [y/N]: Aborted.\n', out
        assert t.run(verb, SK, "--dry-run") == f'[dry-run] Would {verb} Skyhook "{SK}"\n'
        assert t.skyhook()["metadata"].get("annotations", {}).get(PREFIX + key) == before
        out = t.run(verb, SK, "--confirm")
        assert out == f'Skyhook "{SK}" {past}\n', out
        assert t.skyhook()["metadata"].get("annotations", {}).get(PREFIX + key) == value
    result = t.try_run("pause", "nobody", "-y")
    assert result.status == 1 and 'skyhooks.skyhook.nvidia.com "nobody" not found' in result.err


def node_list(t):
    """node list: table, wide and JSON"""
    out = t.run("node", "list", "--skyhook", SK).splitlines()
    assert out[0] == f"Skyhook: {SK}" and out[2].split() == ["NODE", "STATUS", "PACKAGES"], out
    assert out[3].split() == ["----", "------", "--------"], out
    assert out[4].split() == [NODES[0], "complete", "2/2"], out
    assert out[5].split() == [NODES[1], "ERRORING", "1/2"], out
    assert out[-1] == "Summary: 3 nodes (1 complete, 1 erroring, 1 in progress)", out
    assert "RESTARTS" in t.run("node", "list", "--skyhook", SK, "-o", "WIDE")
    found = json.loads(t.run("node", "list", "--skyhook", SK, "-o", "json"))
    assert found["skyhookName"] == SK and found["nodes"][1] == {
        "nodeName": NODES[1], "status": "erroring", "packagesComplete": 1, "packagesTotal": 2,
        "restarts": 3}, found
    assert t.try_run("node", "list").err == 'kubectl-skyhook: required flag "skyhook" not set\n'
    result = t.try_run("node", "list", "--skyhook", SK, "-o", "xml")
    assert result.status == 1 and 'invalid output format "xml"' in result.err, result


def node_status(t):
    """node status: by name, by pattern, and a line for each package"""
    out = t.run("node", "status", NODES[0]).splitlines()
    assert out[0].split() == ["NODE", "SKYHOOK", "STATUS", "PACKAGES"] and len(out) == 3, out
    wide = t.run("node", "status", "node-0000[12]", "-o", "wide").splitlines()
    assert [line.split()[0] for line in wide[2:]] == [NODES[1], NODES[1], NODES[2]], wide
    assert wide[3].split()[2:7] == ["tuning", "1.1.0", "apply", "ERRORING", "3"], wide
    found = json.loads(t.run("node", "status", "-o", "json"))
    assert [one["nodeName"] for one in found] == NODES[:3], found
    assert found[2]["packages"][0]["state"] == "in_progress", found
    keys = [line.strip(" -").partition(":")[0]
            for line in t.run("node", "status", NODES[0], "-o", "yaml").splitlines()]
    own = ["nodeName", "packages", "packagesComplete", "packagesTotal", "skyhookName", "status"]
    assert [key for key in keys if key in own] == own, keys
    assert t.try_run("node", "status", "nobody").status == 1


def packages(t):
    """package list and package status"""
    out = t.run("package", "list", "--skyhook", SK).splitlines()
    assert out[2].split() == ["baseline", "1.0.0", "3", "2", "1", "0"], out
    assert out[3].split() == ["tuning", "1.1.0", "2", "1", "0", "1"], out
    out = t.run("package", "status", "tuning", "--skyhook", SK, "--node", NODES[1])
    assert f"Skyhook: {SK}\nPackages: baseline:1.0.0, tuning:1.1.0\n" in out, out
    assert out.splitlines()[-1].split() == [NODES[1], "tuning", "1.1.0", "apply", "ERRORING"], out
    found = json.loads(t.run("package", "status", "tuning", "--skyhook", SK, "-o", "json"))
    assert [one["nodeName"] for one in found] == NODES[:2] and found[1]["restarts"] == 3, found
    for words in ([], ["--tail", "-1"], ["--tail=5"]):
        out = t.run("package", "logs", "tuning", "--skyhook", SK, *words)
        assert out == 'No pods found for package "tuning"\n', out
    assert t.try_run("package", "logs", "tuning", "--skyhook", SK, "--tail=-2").status == 1


def ignoring(t):
    """node ignore and unignore set and remove the label"""
    out = t.run("node", "ignore", "node-0000[34]")
    assert out.endswith("Successfully ignored 2 node(s)\n"), out
    assert t.api.get("nodes", NODES[3])["metadata"]["labels"][PREFIX + "ignore"] == "true"
    assert "already ignored" in t.run("node", "ignore", NODES[3])
    t.run("node", "unignore", NODES[3], NODES[4])
    assert PREFIX + "ignore" not in t.api.get("nodes", NODES[3])["metadata"]["labels"]


def rerun(t):
    """package rerun takes one entry back, or sets its stage, and asks the operator"""
    t.run("package", "rerun", "tuning", "--skyhook", SK, "--node", NODES[1], "-y")
    state = json.loads(t.notes(NODES[1])[f"{PREFIX}nodeState_{SK}"])
    assert list(state) == ["baseline|1.0.0"], state
    out = t.run("package", "rerun", "baseline", "--skyhook", SK, "--node", NODES[0], "--stage",
                "config", "-y")
    assert out == 'Successfully reset package "baseline" on 1 node(s)\n', out
    state = json.loads(t.notes(NODES[0])[f"{PREFIX}nodeState_{SK}"])
    assert state["baseline|1.0.0"]["state"] == "in_progress" and len(state) == 2, state
    assert t.acts() == [
        {"act": "reset", "target": NODES[1], "package": "tuning"},
        {"act": "reset", "target": NODES[0], "package": "baseline", "stage": "config"}], t.acts()
    result = t.try_run("package", "rerun", "nobody", "--skyhook", SK, "--node", NODES[0], "-y")
    assert result.status == 1 and 'package "nobody" not found' in result.err, result


def node_reset(t):
    """node reset removes the node's state, and asks the operator"""
    t.run("node", "reset", NODES[0], "--skyhook", SK, "--dry-run")
    assert f"{PREFIX}nodeState_{SK}" in t.notes(NODES[0])
    t.run("node", "reset", NODES[0], "--skyhook", SK, "--confirm")
    assert f"{PREFIX}nodeState_{SK}" not in t.notes(NODES[0])
    assert t.acts() == [{"act": "reset", "target": NODES[0]}], t.acts()


def node_retry(t):
    """node retry asks the operator, for those that have failed; nobody forgets anything"""
    t.api.patch("nodes", NODES[1], {"metadata": {"annotations": {
        f"{PREFIX}status_{SK}": "erroring"}}})
    before = {node: t.notes(node) for node in NODES}
    out = t.run("node", "retry", "node-.*", "--skyhook", SK, "--dry-run")
    assert out == f'  {NODES[1]}\n[dry-run] Would retry 1 node(s) for Skyhook "{SK}"\n', out
    out = t.run("node", "retry", NODES[1], "--skyhook", SK, stdin=b"n\n")
    assert out.endswith("Aborted.\n") and t.acts() == [], out
    out = t.run("node", "retry", "node-.*", "--skyhook", SK, "--confirm")
    assert out.endswith(f'Successfully asked to retry 1 node(s) for Skyhook "{SK}"\n'
                        "No operator has taken it yet: the next one that runs will.\n"), out
    assert t.acts() == [{"act": "retry", "target": NODES[1]}], t.acts()
    out = t.run("node", "retry", NODES[0], "--skyhook", SK, "--confirm")
    assert out == f'No nodes have failed for Skyhook "{SK}"\n' and len(t.acts()) == 1, out
    assert before == {node: t.notes(node) for node in NODES}
    for shown in ("paused", "disabled"):  # which is shown of those that have failed, too
        for node in NODES:
            t.api.patch("nodes", node, {"metadata": {"annotations": {
                f"{PREFIX}status_{SK}": shown}}})
        out = t.run("node", "retry", "node-.*", "--skyhook", SK, "--dry-run")
        assert out == f'  {NODES[1]}\n[dry-run] Would retry 1 node(s) for Skyhook "{SK}"\n', out
    for node in NODES:
        t.api.patch("nodes", node, {"metadata": {"annotations": {
            f"{PREFIX}status_{SK}": before[node].get(f"{PREFIX}status_{SK}")}}})
    assert 'flag "skyhook" not set' in t.try_run("node", "retry", NODES[1]).err


def policy_reset(t):
    """deployment-policy reset: batch 1, no stop, node order from 0; nodes keep their state"""
    before = t.skyhook()
    out = t.run("deployment-policy", "reset", SK, "--dry-run")
    assert "production: batch 4, 3 completed, 1 failed, stopped" in out, out
    assert t.skyhook() == before
    out = t.run("dp", "reset", SK, "--confirm")
    assert out.endswith(f'Successfully reset batch state for Skyhook "{SK}"\n'), out
    status = t.skyhook()["status"]
    assert status["compartmentStatuses"]["production"]["batchState"] == {"currentBatch": 1}, status
    assert "batchState" not in status["compartmentStatuses"]["critical"], status
    assert "nodePriority" not in status and status["nodeOrderOffset"] == 0, status
    assert f"{PREFIX}nodeState_{SK}" in t.notes(NODES[0])
    assert t.acts() == [{"act": "resetBatches"}], t.acts()


def reset(t):
    """reset: nodes forget, what Drover cordoned is let go, a running Job is waited for"""
    busy = jobs.job("busy", NODES[2], "hang", labels={
        PREFIX + "name": SK, PREFIX + "node": NODES[2]})
    t.api.create("jobs", busy, "skyhook")
    out = t.run("reset", SK, "--confirm")
    assert f'Successfully reset 3 node(s) for Skyhook "{SK}"\n' in out, out
    assert "1 of them when the Job that runs there has ended" in out, out
    assert f'Batch state reset for Skyhook "{SK}"\n' in out, out
    for node in NODES[:2]:
        notes = {key for key in t.notes(node) if key.startswith(PREFIX)}
        assert notes - {PREFIX + "cordonedBefore"} == {
            PREFIX + "seen", f"{PREFIX}drover_{SK}"}, notes
        labels = t.api.get("nodes", node)["metadata"]["labels"]
        assert f"{PREFIX}status_{SK}" not in labels, labels
    assert t.api.get("nodes", NODES[0])["spec"].get("unschedulable"), "it was cordoned before"
    assert not t.api.get("nodes", NODES[1])["spec"].get("unschedulable")
    assert f"{PREFIX}nodeState_{SK}" in t.notes(NODES[2])
    batch = t.skyhook()["status"]["compartmentStatuses"]["production"]["batchState"]
    assert batch == {"currentBatch": 1, "members": [NODES[2]]}, batch
    assert t.acts() == [{"act": "reset"}], t.acts()
    t.api.delete("jobs", "busy", "skyhook")


def reset_of_nodes_only(t):
    """reset --skip-batch-reset keeps batches and order"""
    out = t.run("reset", SK, "--skip-batch-reset", "--confirm")
    status = t.skyhook()["status"]
    assert "Batch state" not in out, out
    assert status["compartmentStatuses"]["production"]["batchState"]["currentBatch"] == 4, status
    assert status["nodeOrderOffset"] == 3 and NODES[2] in status["nodePriority"]
    assert t.acts() == [{"act": "reset", "keepBatches": True}], t.acts()
    assert "No nodes have state" in t.run("reset", SK, "--skip-batch-reset", "-y")


def changed_meanwhile(t):
    """reset of nodes that others change all the time, as kubelets do"""
    stop = threading.Event()

    def change():
        client = t.cluster.client("admin")
        while not stop.is_set():
            for node in NODES[:2]:
                client.patch("nodes", node, {"metadata": {"annotations": {
                    "example.com/beat": str(time.monotonic())}}})
            time.sleep(0.05)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        t.run("reset", SK, "--skip-batch-reset", "--confirm")
    finally:
        stop.set()
        thread.join()
    for node in NODES[:3]:
        notes = t.notes(node)
        assert f"{PREFIX}nodeState_{SK}" not in notes, notes
    assert not t.api.get("nodes", NODES[1])["spec"].get("unschedulable")


def taken_meanwhile(t):
    """a node on which Drover has begun since it was read is left to the operator"""
    begun = json.dumps(dict([entry("baseline", "1.0.0", "apply", "in_progress")]))

    def begin():  # while the operator is waited for
        api.wait_until("it was asked", lambda: t.acts() != [])
        t.cluster.client("admin").patch("nodes", NODES[1], {"metadata": {"annotations": {
            f"{PREFIX}nodeState_{SK}": begun}}})
    thread = threading.Thread(target=begin)
    thread.start()
    t.run("reset", SK, "--skip-batch-reset", "--confirm")
    thread.join()
    assert t.notes(NODES[1])[f"{PREFIX}nodeState_{SK}"] == begun, t.notes(NODES[1])
    assert f"{PREFIX}nodeState_{SK}" not in t.notes(NODES[0]), t.notes(NODES[0])


def explaining(t):
    """explain says why a node of the cluster does not move; plan goes on from what is there"""
    for node in NODES[:3]:  # as an older operator leaves them
        t.api.patch("nodes", node, {"metadata": {"annotations": {f"{PREFIX}drover_{SK}": None}}})
    t.api.patch("skyhooks", SK, {"status": {"drover": None}}, sub="status")
    result = t.drover("plan", "-o", "json")
    found = json.loads(result.out)
    assert result.status == 1 and (found["outcome"], found["done"]) == ("stopped", 1), result
    assert found["waiting"][0]["reasons"][0]["rule"] == "stopped", result
    t.run("dp", "reset", SK, "-y")
    t.run("pause", SK, "-y")
    out = t.run("explain", NODES[3])
    assert "paused" in out and NODES[3] in out, out
    t.run("resume", SK, "-y")
    t.run("node", "ignore", NODES[4])
    found = json.loads(t.run("explain", NODES[4], "-o", "json", "--skyhook", SK))
    assert found["state"] == "blocked" and found["reasons"][0]["rule"] == "ignored", found
    result = t.drover("explain", NODES[4], "-o", "json")
    assert json.loads(result.out) == found, result
    t.run("node", "unignore", NODES[4])
    result = t.drover("plan", "-o", "json")
    found = json.loads(result.out)
    assert result.status == 0 and found["outcome"] == "complete", result
    assert (found["targets"], found["done"]) == (5, 5), result
    # What is done stays done: only the other four are started.
    assert found["starts"] == 4, found["starts"]
    assert t.drover("plan", "--nodes", "3").status == 2
    result = drover.run(t.program, "plan", "--kubeconfig", "/nowhere/config")
    assert result.status == 3, result


def grant(t, user, role):
    """One of the roles for people, and what both have in the operator's namespace."""
    rbac = "rbac.authorization.k8s.io"
    subject = [{"kind": "User", "apiGroup": rbac, "name": user}]
    for kind, space, to in (
            ("clusterrolebindings", None, {"kind": "ClusterRole", "name": role}),
            ("rolebindings", "skyhook", {"kind": "Role", "name": "skyhook-viewer"})):
        if not t.api.find(kind, f"{user}-test", space):
            t.api.create(kind, {"metadata": {"name": f"{user}-test"}, "subjects": subject,
                                "roleRef": {"apiGroup": rbac, **to}}, space)


def reading_only(t):
    """plan and explain ask for nothing but reads"""
    grant(t, "drover", "skyhook-viewer")
    t.config = t.cluster.kubeconfig("drover")  # whose reads are in the log, too

    def asked():
        return [entry for entry in audit.entries(t.cluster.audit_file)
                if entry["user"]["username"] == "drover"]
    before = len(asked())
    for result in (t.drover("plan"), t.drover("explain", NODES[0])):
        assert not result.err, result
    found = collections.Counter(entry["verb"] for entry in asked()[before:])
    assert found["list"] >= 4 and set(found) <= {"list", "get"}, found


def rights(t):
    """the roles for people are enough for what their names say, and for no more"""
    for user, role in (("viewer", "skyhook-viewer"), ("of-skyhooks", "skyhook-editor")):
        grant(t, user, role)
    t.api.patch("nodes", NODES[1], {"metadata": {"annotations": {
        f"{PREFIX}status_{SK}": "erroring"}}})
    of = ["--skyhook", SK]
    reads = [["node", "list", *of], ["node", "status"], ["package", "list", *of],
             ["package", "status", "tuning", *of], ["package", "logs", "tuning", *of],
             ["version"], ["explain", NODES[4]], ["reset", SK, "--dry-run"]]
    writes = [["package", "rerun", "tuning", *of, "--node", NODES[0], "-y"],
              ["node", "retry", NODES[1], *of, "-y"], ["node", "reset", NODES[1], *of, "-y"],
              ["pause", SK, "-y"], ["resume", SK, "-y"],
              ["reset", SK, "-y"], ["dp", "reset", SK, "-y"], ["node", "ignore", NODES[3]],
              ["node", "unignore", NODES[3]]]
    for words in [*reads, *writes]:
        t.config = t.cluster.kubeconfig("viewer")
        result = t.try_run(*words)
        if words in reads:
            assert result.status == 0 and "forbidden" not in result.out + result.err, result
        else:
            assert result.status == 1 and "forbidden" in result.err, f"{words}: {result}"
        t.config = t.cluster.kubeconfig("of-skyhooks")
        t.run(*words)


def usage(t):
    """errors are one line and 1; help and version are there; commands take the flags of all"""
    assert "package rerun" in t.run("help") and "\n  2  " not in t.run("help")
    for words in (["pause", SK], ["reset", SK], ["dp", "reset", SK], ["node", "ignore", NODES[0]],
                  ["node", "reset", NODES[0], "--skyhook", SK],
                  ["node", "retry", NODES[0], "--skyhook", SK], ["node", "list", "--skyhook", SK],
                  ["package", "rerun", "tuning", "--skyhook", SK, "--node", NODES[0]]):
        t.run(*words, "--dry-run", "-o", "json", "-v", "-n", "skyhook", "--context", "test")
        assert t.try_run(*words, "--dry-run", "-o", "xml").status == 1, words
    plugin, operator = t.run("version").splitlines()
    assert plugin == t.run("version", "--client-only").strip(), plugin
    assert plugin.replace("plugin", "operator") == operator, (plugin, operator)
    assert "unknown (not found)" in t.run("version", "-n", "default")
    result = drover.run(t.plugin, "nonsense")
    assert result.status == 1 and 'found command "nonsense"' in result.err, result
    assert drover.run(t.plugin, "reset").status == 1


def several_files(t):
    """of several files in $KUBECONFIG the first that has something counts"""
    whole = json.loads(t.config.read_text(encoding="utf-8"))
    folder = pathlib.Path(t.plugin.parent)
    parts = {"users": {"users": whole["users"]},
             "wrong": {"current-context": "nowhere", "clusters": [{
                 "name": "test", "cluster": {"server": "https://127.0.0.1:1"}}]},
             "rest": {key: whole[key] for key in ("clusters", "contexts", "current-context")}}
    for name, part in parts.items():
        (folder / name).write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **part}),
                                   encoding="utf-8")

    def ask(*names):
        return drover.run(t.plugin, "node", "status", "-o", "json", env={
            "KUBECONFIG": ":".join(str(folder / name) for name in names)})
    good = ask("users", "not-there", "rest", "wrong")
    assert good.status == 0 and len(json.loads(good.out)) == len(STATES), good
    bad = ask("wrong", "users", "rest")
    assert bad.status == 1 and 'no context "nowhere"' in bad.err, bad


CHECKS = [switches, node_list, node_status, packages, ignoring, rerun, node_reset, node_retry,
          policy_reset, reset, reset_of_nodes_only, changed_meanwhile, taken_meanwhile, explaining,
          reading_only, rights, several_files, usage]


def try_all(tap, trial):
    for check in CHECKS:
        problem = None
        try:
            trial.set_up()
            check(trial)
        except Exception as error:  # pylint: disable=broad-exception-caught
            problem = f"{type(error).__name__}: {error}"
            trial.cluster.fail()
        tap.test(f"{trial.program.parent.name}: {check.__doc__}", problem)


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("kubectl skyhook", problem)
        return tap.done()
    with plane.Cluster("check-skyhook-cli") as cluster:
        cluster.add_nodes(len(NODES))
        subprocess.run([str(cluster.programs / "kubectl"), f"--kubeconfig={cluster.kubeconfig()}",
                        "apply", "--server-side", "-f", "deploy/crds", "-f",
                        "deploy/operator.yaml"], cwd=drover.ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([str(cluster.programs / "kubectl"), f"--kubeconfig={cluster.kubeconfig()}",
                        "apply", "--server-side", "-f", "deploy/samples/skyhook.yaml", "-f",
                        "deploy/samples/deploymentpolicy.yaml"], cwd=drover.ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        for program in drover.programs():
            with tempfile.TemporaryDirectory() as folder:
                try_all(tap, Trial(cluster, program, folder))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
