#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes and leaders behind a proxy that does harm, and credentials that are refused."""

import json
import os
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import binaries
import drover
import plane
import proxy
from check_kube_lease import Candidate, allow
from check_kube_write import MAPS, Writer, config_map

MANY = 40


def all_there(cluster, names):
    found = {m["metadata"]["name"] for m in cluster.api.list("configmaps", "default")}
    assert set(names) <= found, sorted(set(names) - found)


def answers_lost(cluster, w, between):
    """writes whose answers are lost took effect once, and are known to have"""
    between.lose("configmaps", MANY)
    names = [f"lost{i}" for i in range(MANY)]
    sent = [w.send("CREATE", name, body=config_map(name), want=name) for name in names]
    ends = {w.answer(number)["outcome"] for number in sent}
    assert ends == {"done"}, ends
    all_there(cluster, names)
    # A create that finds another's object is not done.
    cluster.api.create("configmaps", config_map("taken"), "default")
    between.lose("configmaps", 1)
    w.expect("exists", "CREATE", "taken", body=config_map("taken"), want="not this one")


def patch_lost(cluster, w, between):
    """a patch whose answer is lost is repeated, found changed, read, and known to be done"""
    old = w.expect("done", "CREATE", "p", body=config_map("p", x="1"))["version"]
    between.lose("configmaps", 1)
    found = w.expect("done", "MERGE", "p", version=old, want="mine",
                     body={"metadata": {"annotations": {"want": "mine"}}, "data": {"x": "2"}})
    assert found["version"] == cluster.api.get("configmaps", "p", "default")["metadata"][
        "resourceVersion"]
    # Another one changed it meanwhile: ours has had no effect.
    between.lose("configmaps", 1, before=True)
    cluster.api.patch("configmaps", "p", {"data": {"x": "3"}}, "default")
    w.expect("conflict", "MERGE", "p", version=found["version"], want="other",
             body={"data": {"x": "4"}})
    assert cluster.api.get("configmaps", "p", "default")["data"]["x"] == "3"


def requests_lost(cluster, w, between):
    """writes that are lost before they take effect are repeated, in order"""
    w.expect("done", "CREATE", "line", body=config_map("line"))
    between.lose("configmaps", 5, before=True)
    sent = [w.send("MERGE", "line", body={"data": {"last": str(i)}}, anyhow=True)
            for i in range(8)]
    assert {w.answer(number)["outcome"] for number in sent} == {"done"}
    assert cluster.api.get("configmaps", "line", "default")["data"]["last"] == "7"


def server_busy(_, w, between):
    """429 with Retry-After is obeyed, 503 repeated"""
    between.refuse("configmaps", 1, 429, retry_after=2)
    start = time.monotonic()
    w.expect("done", "CREATE", "busy", body=config_map("busy"))
    took = time.monotonic() - start
    assert took >= 2, f"after {took:.1f} s"
    between.refuse("configmaps", 3, 503)
    w.expect("done", "CREATE", "busier", body=config_map("busier"), want="busier")


def stalled_leader(cluster, build):
    """a connection that carries nothing any more is given up, and the leader leads again"""
    with proxy.Relay(cluster) as between:
        candidate = Candidate(build / "kube-lead", cluster, "drover", between.url)
        try:
            candidate.wait_for("wrote", 5)
            between.stall()
            candidate.wait_for("ended")
            candidate.wait_for("began", 2)
            assert between.opened >= 2
            written = len(candidate.said("wrote"))
            candidate.wait_for("wrote", written + 5)
            candidate.signal(signal.SIGTERM)
            assert candidate.process.wait(20) == 0
        finally:
            candidate.process.kill()


def with_identity(cluster, name, identity):
    """A kubeconfig of another user."""
    config = json.loads(cluster.kubeconfig("kwok").read_text(encoding="utf-8"))
    config["users"][0]["user"] = identity
    path = cluster.folder / f"kubeconfig-{name}"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def token_replaced(cluster, build):
    """a token that is refused is read again from its file"""
    path = cluster.folder / f"token-{build.name}"
    path.write_text("wrong", encoding="ascii")
    w = Writer(build / "kube-write", with_identity(cluster, "file", {"tokenFile": str(path)}))
    found = w.expect("refused", "READ", "absent")
    assert found["status"] == 401, found
    path.write_text(cluster.token("kwok"), encoding="ascii")
    w.expect("gone", "READ", "absent")
    assert w.stop() == 0


def plugin_asked_again(cluster, build):
    """a plugin whose token is refused is run again"""
    calls = cluster.folder / f"calls-{build.name}"
    script = cluster.folder / f"plugin-{build.name}"
    answer = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",' \
             '"status":{"token":"%s"}}'
    script.write_text(f"#!/bin/sh\necho call >> {calls}\n"
                      f"[ $(wc -l < {calls}) = 1 ] && echo '{answer % 'wrong'}' && exit\n"
                      f"echo '{answer % cluster.token('kwok')}'\n", encoding="ascii")
    script.chmod(0o700)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script),
                     "interactiveMode": "Never"}}
    w = Writer(build / "kube-write", with_identity(cluster, "plugin", user))
    w.expect("gone", "READ", "absent")
    assert calls.read_text(encoding="ascii").count("call") == 2
    assert w.stop() == 0


def told_to_go_away(cluster, build):
    """a server that ends connections under way (GOAWAY) loses no write, and repeats none"""
    w = Writer(build / "kube-write", cluster.kubeconfig("kwok"))
    names = [f"away{i}" for i in range(MANY)]
    for name in names:
        w.send("CREATE", name, body=config_map(name, count="0"), want=name)
    # One in fifty requests ends its connection.
    sent = [w.send("JSON_PATCH", names[i % MANY], body=[
        {"op": "test", "path": "/data/count", "value": str(i // MANY)},
        {"op": "replace", "path": "/data/count", "value": str(i // MANY + 1)}])
            for i in range(25 * MANY)]
    ends = {w.answer(number)["outcome"] for number in sent}
    assert ends <= {"done", "conflict"}, ends
    found = {m["metadata"]["name"]: m.get("data", {}).get("count")
             for m in cluster.api.list("configmaps", "default")}
    wrong = {name: found.get(name) for name in names if found.get(name) != "25"}
    assert not wrong, wrong
    assert w.stop() == 0


def attempt(tap, cluster, build, act, *things):
    wrong = None
    try:
        act(cluster, *things)
    except Exception as error:  # pylint: disable=broad-exception-caught
        wrong = f"{type(error).__name__}: {error}"
        cluster.fail()
    tap.test(f"{build.name}: {act.__doc__}", wrong)


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("the Kubernetes client behind a proxy", problem)
        return tap.done()
    away = {"kube-apiserver": ["--goaway-chance=0.02"]}
    with plane.Cluster("check-kube-faults", arguments=away) as cluster:
        allow(cluster)
        for program in drover.programs():
            build = program.parent
            cluster.api.create("configmaps", {"metadata": {"name": "counter"},
                                              "data": {"count": "0"}}, "default")
            with proxy.Proxy(cluster) as between:
                config = cluster.kubeconfig("kwok", between.url)
                w = Writer(build / "kube-write", config)
                for act in (answers_lost, patch_lost, requests_lost, server_busy):
                    attempt(tap, cluster, build, act, w, between)
                    between.heal()
                tap.test(f"{build.name}: it ends and leaves no memory behind",
                         "" if w.stop() == 0 else "it does not")
            for act in (stalled_leader, token_replaced, plugin_asked_again, told_to_go_away):
                attempt(tap, cluster, build, act, build)
            cluster.api.ask("DELETE", MAPS, {})
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
