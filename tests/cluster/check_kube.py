#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes client against a real API server: kube-follow is told of what is there."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import audit
import binaries
import drover
import plane
import proxy

NODES = 1200  # more than two pages
NODES_PATH = "/api/v1/nodes"
MAPS_PATH = "/api/v1/configmaps"
ABSENT_PATH = "/apis/example.test/v1/things"
WAIT_SECONDS = 30
AUDIT = {**audit.POLICY, "rules": [
    {"level": "Metadata", "users": ["admin"], "verbs": ["list", "watch"]},
    *audit.POLICY["rules"]]}


class Follower:
    """A kube-follow that runs, and the objects it was told of."""

    def __init__(self, program, kubeconfig, *paths):
        self.objects = {path: {} for path in paths}
        self.synced = {path: 0 for path in paths}
        self.process = subprocess.Popen([str(program), str(kubeconfig), *paths],
                                        stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            word, path, key, *version = line.split()
            if word == "seen":
                self.objects[path][key] = version[0]
            elif word == "gone":
                self.objects[path].pop(key)  # nothing is told gone that was not there
            else:
                self.synced[path] += 1

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_SECONDS)


def wait_for(what, condition):
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {WAIT_SECONDS} s: {what}")
        time.sleep(0.05)


def present(cluster, resource):
    found = {}
    for item in cluster.api.list(resource):
        meta = item["metadata"]
        space = meta.get("namespace")
        found[f"{space}/{meta['name']}" if space else meta["name"]] = meta["resourceVersion"]
    return found


def differences(cluster, f):
    """What it has and the server has not, or the other way round, or at another version."""
    found = set()
    for path, resource in ((NODES_PATH, "nodes"), (MAPS_PATH, "configmaps")):
        found |= set(f.objects[path].items()) ^ set(present(cluster, resource).items())
    return sorted(found)


def agree(cluster, f):
    try:
        wait_for("", lambda: not differences(cluster, f))
    except AssertionError:
        raise AssertionError(f"after {WAIT_SECONDS} s it differs from the server in "
                             f"{differences(cluster, f)[:20]}") from None


def config_map(name, text):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"text": text}}


def lists(cluster, f):
    """everything that exists is seen once the list is synced"""
    wait_for("lists", lambda: f.synced[NODES_PATH] and f.synced[MAPS_PATH])
    agree(cluster, f)
    assert len(f.objects[NODES_PATH]) > NODES - 10


def streamed(cluster, f):
    """lists come as streams that go on as watches: no page is asked for"""
    assert f.process.poll() is None
    asked = [(e["verb"], urllib.parse.unquote(e["requestURI"]))
             for e in audit.entries(cluster.audit_file)
             if e["user"]["username"] == "admin" and audit.agent(e) == "kube-follow"]
    for path in (NODES_PATH, MAPS_PATH):
        of_path = [(verb, uri) for verb, uri in asked if uri.partition("?")[0] == path]
        assert of_path and all(verb == "watch" for verb, _ in of_path), of_path
        assert "sendInitialEvents=true" in of_path[0][1], of_path


def changes(cluster, f):
    """changes and deletions are seen"""
    gone, kept = sorted(f.objects[NODES_PATH])[:2]
    for i in range(20):
        cluster.api.create("configmaps", config_map(f"c{i}", "one"), "default")
    cluster.api.patch("nodes", kept, {"metadata": {"labels": {"a": "b"}}})
    for i in range(0, 20, 2):
        cluster.api.delete("configmaps", f"c{i}", "default")
    cluster.api.delete("nodes", gone)
    agree(cluster, f)
    assert gone not in f.objects[NODES_PATH]
    assert "default/c1" in f.objects[MAPS_PATH] and "default/c2" not in f.objects[MAPS_PATH]


def server_killed(cluster, f):
    """a server that is killed and comes back is followed again, with what happened meanwhile"""
    cluster.kill("kube-apiserver")
    cluster.run_again("kube-apiserver")
    cluster.api.drop()
    cluster.api.patch("configmaps", "c1", {"data": {"text": "two"}}, "default")
    cluster.api.delete("configmaps", "c3", "default")
    agree(cluster, f)


def kind_absent(_, f):
    """a kind that does not exist holds up no other"""
    assert f.synced[ABSENT_PATH] == 0 and f.process.poll() is None


# ---- through a proxy that does harm: the same end, whatever it does

def churn(cluster, name, rounds=6):
    """Changes of both kinds, one after the other."""
    node = sorted(present(cluster, "nodes"))[5]
    for i in range(rounds):
        cluster.api.create("configmaps", config_map(f"{name}{i}", "one"), "default")
        cluster.api.patch("nodes", node, {"metadata": {"labels": {"round": f"{name}{i}"}}})
        if i % 2:
            cluster.api.delete("configmaps", f"{name}{i - 1}", "default")
            cluster.api.patch("configmaps", f"{name}{i}", {"data": {"text": "two"}}, "default")


def watches_cut(cluster, f, between):
    """watches that are cut again and again go on where they were"""
    lists_before = dict(f.synced)
    for i in range(4):
        churn(cluster, f"cut{i}-", 2)
        between.cut(watches_only=True)
        wait_for("watches again", lambda: len(between.live) >= 2)
    agree(cluster, f)
    assert f.synced == lists_before, "it listed again"


def watch_expired(cluster, f, between):
    """410, in a watch that runs and to one that begins, is answered by a new list"""
    before = f.synced[NODES_PATH]
    between.expire("nodes")
    churn(cluster, "expire-")
    wait_for("a new list", lambda: f.synced[NODES_PATH] > before)
    agree(cluster, f)
    between.expire("nodes")
    between.cut("nodes", watches_only=True)
    churn(cluster, "expired-")
    agree(cluster, f)


def events_doubled(cluster, f, between):
    """events that come twice, the second time too late, undo nothing"""
    between.duplicate()
    churn(cluster, "twice-")
    agree(cluster, f)


def kinds_reordered(cluster, f, between):
    """a kind that is late, and one that is stalled for a while, end the same"""
    between.delay("nodes", 0.2)
    between.stall("configmaps")
    churn(cluster, "late-")
    time.sleep(0.5)
    between.flow("configmaps")
    agree(cluster, f)


def server_behind(cluster, f, between):
    """a server that tells again what was told long ago is not believed"""
    old = cluster.api.ask("GET", NODES_PATH + "?limit=1")["metadata"]["resourceVersion"]
    churn(cluster, "behind-")
    agree(cluster, f)
    between.rewind(None, old)
    between.cut(watches_only=True)
    time.sleep(0.5)
    agree(cluster, f)
    churn(cluster, "after-")
    agree(cluster, f)


HARM = (watches_cut, watch_expired, events_doubled, kinds_reordered, server_behind)


def through_proxy(tap, cluster, build):
    with proxy.Proxy(cluster) as between:
        config = cluster.kubeconfig("kwok", between.url)
        follower = Follower(build / "kube-follow", config, NODES_PATH, MAPS_PATH)
        wait_for("lists", lambda: follower.synced[NODES_PATH] and follower.synced[MAPS_PATH])
        for act in HARM:
            run(tap, cluster, build, act, follower, between)
            between.heal()
        follower.stop()


def through_relay(tap, cluster, build):
    """a connection that is cut, with all its streams"""
    with proxy.Relay(cluster) as between:
        config = cluster.kubeconfig("kwok", between.url)
        follower = Follower(build / "kube-follow", config, NODES_PATH, MAPS_PATH)
        wait_for("lists", lambda: follower.synced[NODES_PATH] and follower.synced[MAPS_PATH])

        def connection_cut(cluster, f):
            """a connection that is cut with all its streams: each goes on where it was"""
            assert between.opened == 1, "it has more than one connection"
            before = dict(f.synced)
            for i in range(3):
                churn(cluster, f"relay{i}-", 2)
                between.cut()
                wait_for("a new connection", lambda i=i: between.opened >= i + 2)
            churn(cluster, "relay-", 2)
            agree(cluster, f)
            assert f.synced == before, "it listed again"

        run(tap, cluster, build, connection_cut, follower)
        follower.stop()


def run(tap, cluster, build, act, *things):
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
        tap.skip("the Kubernetes client", problem)
        return tap.done()
    with plane.Cluster("check-kube", audit=AUDIT) as cluster:
        cluster.add_nodes(NODES)
        config = cluster.kubeconfig()
        for program in drover.programs():
            build = program.parent
            follower = Follower(build / "kube-follow", config, NODES_PATH, MAPS_PATH, ABSENT_PATH)
            for act in (lists, streamed, changes, server_killed, kind_absent):
                run(tap, cluster, build, act, follower)
            status = follower.stop()
            tap.test(f"{build.name}: it ends and leaves no memory behind",
                     "" if status == 0 else f"exit status {status}")
            through_proxy(tap, cluster, build)
            through_relay(tap, cluster, build)
            for name in [k.split("/")[1] for k in present(cluster, "configmaps")
                         if k.startswith("default/") and "kube-root" not in k]:
                cluster.api.delete("configmaps", name, "default")
            cluster.api.drop()
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
