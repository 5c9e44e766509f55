#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes of the Kubernetes client against a real API server, by kube-write."""

import json
import os
import pathlib
import queue
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import drover
import plane

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
WAIT_SECONDS = 60
MANY = 300


class Writer:
    """A kube-write that runs."""

    def __init__(self, program, kubeconfig):
        self.process = subprocess.Popen([str(program), str(kubeconfig)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.build = f" ({pathlib.Path(program).parent.name})"
        self.answers = {}
        self.news = queue.Queue()
        self.next = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.news.put(json.loads(line))

    def send(self, verb, name, collection=MAPS, body=None, **more):
        """Returns the number of the write."""
        self.next += 1
        order = {"id": self.next, "verb": verb, "name": name, "collection": collection, **more}
        if body is not None:
            order["body"] = body if isinstance(body, str) else json.dumps(body)
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.next

    def answer(self, number):
        while number not in self.answers:
            found = self.news.get(timeout=WAIT_SECONDS)
            self.answers[found["id"]] = found
        return self.answers[number]

    def do(self, *words, **more):
        return self.answer(self.send(*words, **more))

    def expect(self, outcome, *words, **more):
        found = self.do(*words, **more)
        assert found["outcome"] == outcome, f"expected {outcome}: {found}"
        return found

    def stop(self):
        self.process.stdin.close()
        return self.process.wait(WAIT_SECONDS)


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "annotations": {"want": name}}, "data": data}


def creates(cluster, w):
    """create: done, exists, refused, also where there is nothing to create it in"""
    found = w.expect("done", "CREATE", "a", body=config_map("a", x="1"))
    assert found["version"] == cluster.api.get("configmaps", "a", "default")["metadata"][
        "resourceVersion"]
    w.expect("exists", "CREATE", "a", body=config_map("a", x="1"))
    found = w.expect("refused", "CREATE", "B", body=config_map("B"))
    assert "Invalid value" in found["message"] and found["status"] == 422, found
    w.expect("refused", "CREATE", "a", "/apis/example.test/v1/things", body=config_map("a"))
    w.expect("done", "READ", "a")
    w.expect("gone", "READ", "absent")


def patches(cluster, w):
    """patches and updates: done, conflict when a precondition does not hold"""
    meta = cluster.api.get("configmaps", "a", "default")["metadata"]
    old, uid = meta["resourceVersion"], meta["uid"]
    new = w.expect("done", "MERGE", "a", body={"data": {"x": "2"}}, version=old, uid=uid)["version"]
    w.expect("conflict", "MERGE", "a", body={"data": {"x": "3"}}, version=old)
    w.expect("conflict", "MERGE", "a", body={"data": {"x": "3"}}, uid="other")
    w.expect("conflict", "STRATEGIC", "a", body={"data": {"x": "3"}}, version=old)
    w.expect("conflict", "UPDATE", "a", body=config_map("a", x="3"), version=old)
    w.expect("conflict", "JSON_PATCH", "a", version=old,
             body=[{"op": "replace", "path": "/data/x", "value": "3"}])
    w.expect("conflict", "JSON_PATCH", "a",
             body=[{"op": "test", "path": "/data/absent", "value": "3"},
                   {"op": "replace", "path": "/data/x", "value": "3"}])
    w.expect("conflict", "APPLY", "a", body=config_map("a", x="3"), version=old, manager="m")
    w.expect("refused", "JSON_PATCH", "a", uid=uid,
             body=[{"op": "replace", "path": "/metadata/labels", "value": {"a": "//"}}])
    assert cluster.api.get("configmaps", "a", "default")["data"] == {"x": "2"}
    new = w.expect("done", "STRATEGIC", "a", body={"data": {"x": "4"}}, version=new)["version"]
    new = w.expect("done", "JSON_PATCH", "a", version=new, uid=uid,
                   body=[{"op": "replace", "path": "/data/x", "value": "5"}])["version"]
    new = w.expect("done", "UPDATE", "a", body=config_map("a", x="6"), version=new)["version"]
    w.expect("conflict", "APPLY", "a", body=config_map("a", x="7"), anyhow=True, manager="m")
    w.expect("done", "APPLY", "a", body=config_map("a", x="7"), version=new, manager="m",
             force=True)
    assert cluster.api.get("configmaps", "a", "default")["data"] == {"x": "7"}
    w.expect("gone", "MERGE", "absent", body={"data": {}}, uid="u")
    w.expect("invalid", "MERGE", "a", body={"data": {}})
    w.expect("refused", "MERGE", "a", body="[1]", version="1")


def status(cluster, w):
    """the status subresource changes the status and nothing else"""
    node = cluster.api.list("nodes")[0]["metadata"]["name"]
    w.expect("done", "STRATEGIC", node, "/api/v1/nodes", subresource="status", anyhow=True,
             body={"metadata": {"labels": {"no": "no"}},
                   "spec": {"unschedulable": True},
                   "status": {"conditions": [{"type": "Tested", "status": "True"}]}})
    found = cluster.api.get("nodes", node)
    assert any(c["type"] == "Tested" for c in found["status"]["conditions"])
    assert "unschedulable" not in found["spec"]


def deletes(cluster, w):
    """delete: conflict for another uid, done, then gone"""
    uid = cluster.api.get("configmaps", "a", "default")["metadata"]["uid"]
    w.expect("conflict", "DELETE", "a", uid="other")
    w.expect("done", "DELETE", "a", uid=uid)
    w.expect("gone", "DELETE", "a", uid=uid)


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "guarded"}},
            "spec": {"nodeName": "", "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "c", "image": "none"}]}}


def budget(name, least):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "guarded"}}}}


def evictions(cluster, w):
    """evict: blocked with the budget's name, blocked by two of them, conflict, done, gone"""
    uid = cluster.api.create("pods", pod("p"), "default")["metadata"]["uid"]
    api.wait_until("the pod runs", lambda: cluster.api.get("pods", "p", "default")["status"].get(
        "phase") == "Running")
    w.expect("conflict", "EVICT", "p", PODS, uid="other")
    cluster.api.create("poddisruptionbudgets", budget("keep-one", 1), "default")
    api.wait_until("the budget counts", lambda: cluster.api.get(
        "poddisruptionbudgets", "keep-one", "default").get("status", {}).get("currentHealthy") == 1)
    found = w.expect("blocked", "EVICT", "p", PODS, uid=uid)
    assert found["budget"] == "keep-one" and "needs 1 healthy pods" in found["message"], found
    cluster.api.create("poddisruptionbudgets", budget("keep-too", 0), "default")
    found = w.expect("blocked", "EVICT", "p", PODS, uid=uid)
    assert "more than one" in found["message"], found
    for name in ("keep-one", "keep-too"):
        cluster.api.delete("poddisruptionbudgets", name, "default")
    w.expect("done", "EVICT", "p", PODS, uid=uid, grace=0)
    api.wait_until("the pod is gone", lambda: not cluster.api.find("pods", "p", "default"))
    w.expect("gone", "EVICT", "p", PODS, uid=uid)


def order(cluster, w):
    """writes of one object take effect in their order, those of many side by side"""
    w.expect("done", "CREATE", "o", body=config_map("o"))
    sent = [w.send("MERGE", "o", body={"data": {f"k{i}": str(i), "last": str(i)}}, anyhow=True)
            for i in range(50)]
    many = [w.send("CREATE", f"m{i}", body=config_map(f"m{i}")) for i in range(MANY)]
    versions = [int(w.answer(number)["version"]) for number in sent]
    assert versions == sorted(versions) and len(set(versions)) == 50
    assert cluster.api.get("configmaps", "o", "default")["data"]["last"] == "49"
    assert all(w.answer(number)["outcome"] == "done" for number in many)


def server_killed(cluster, w):
    """a server that is killed in the middle: nothing is lost, nothing out of order"""
    sent = [w.send("CREATE", f"k{i}", body=config_map(f"k{i}"), want=f"k{i}") for i in range(MANY)]
    line = [w.send("MERGE", "o", body={"data": {"last": f"k{i}"}}, anyhow=True) for i in range(9)]
    w.answer(sent[5])
    cluster.kill("kube-apiserver")
    cluster.run_again("kube-apiserver")
    cluster.api.drop()
    ends = {w.answer(number)["outcome"] for number in sent + line}
    assert ends == {"done"}, ends
    names = {m["metadata"]["name"] for m in cluster.api.list("configmaps", "default")}
    assert {f"k{i}" for i in range(MANY)} <= names
    assert cluster.api.get("configmaps", "o", "default")["data"]["last"] == "k8"


def events_of(cluster, w):
    return {e["message"]: e for e in cluster.api.list("events", "default")
            if e["source"].get("component") == "kube-write" and e["message"].endswith(w.build)}


def events(cluster, w):
    """events are written about an object"""
    node = cluster.api.list("nodes")[0]["metadata"]
    for words in ("one", "two"):
        w.send("EVENT", node["name"], uid=node["uid"], body=words + w.build)
    api.wait_until("two events", lambda: len(events_of(cluster, w)) == 2)
    event = events_of(cluster, w)["one" + w.build]
    assert event["involvedObject"]["uid"] == node["uid"] and event["type"] == "Normal", event
    assert event["count"] == 1 and event["reason"] == "Test", event
    for _ in range(2):
        w.send("EVENT", node["name"], uid=node["uid"], body="one" + w.build)


def events_again(cluster, w):
    """events that happen again are counted in the first, after a while"""
    api.wait_until("three of one", lambda: events_of(cluster, w)["one" + w.build]["count"] == 3)
    assert len(events_of(cluster, w)) == 2


def barred(cluster, w):
    """without a permit nothing is sent"""
    w.expect("barred", "CREATE", "never", body=config_map("never"), bar=True)
    assert cluster.api.find("configmaps", "never", "default") is None
    w.expect("done", "READ", "o")


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("writes of the Kubernetes client", problem)
        return tap.done()
    with plane.Cluster("check-kube-write") as cluster:
        cluster.add_nodes(3)
        for program in drover.programs():
            build = program.parent
            writer = Writer(build / "kube-write", cluster.kubeconfig())
            for act in (events, creates, patches, status, deletes, evictions, order,
                        server_killed, events_again, barred):
                wrong = None
                try:
                    act(cluster, writer)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}"
                    cluster.fail()
                tap.test(f"{build.name}: {act.__doc__}", wrong)
            code = writer.stop()
            tap.test(f"{build.name}: it ends and leaves no memory behind",
                     "" if code == 0 else f"exit status {code}")
            cluster.api.drop()
            cluster.api.ask("DELETE", MAPS, {})
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
