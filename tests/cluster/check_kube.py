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

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import binaries
import drover
import plane

NODES = 1200  # more than two pages
NODES_PATH = "/api/v1/nodes"
MAPS_PATH = "/api/v1/configmaps"
ABSENT_PATH = "/apis/example.test/v1/things"
WAIT_SECONDS = 60


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


def agree(cluster, f):
    wait_for("the same nodes and configmaps as the server's",
             lambda: f.objects[NODES_PATH] == present(cluster, "nodes") and
             f.objects[MAPS_PATH] == present(cluster, "configmaps"))


def config_map(name, text):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"text": text}}


def lists(cluster, f):
    """everything that exists is seen once the list is synced"""
    wait_for("lists", lambda: f.synced[NODES_PATH] and f.synced[MAPS_PATH])
    agree(cluster, f)
    assert len(f.objects[NODES_PATH]) > NODES - 10


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


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("the Kubernetes client", problem)
        return tap.done()
    with plane.Cluster("check-kube") as cluster:
        cluster.add_nodes(NODES)
        config = cluster.kubeconfig()
        for program in drover.programs():
            build = program.parent
            follower = Follower(build / "kube-follow", config, NODES_PATH, MAPS_PATH, ABSENT_PATH)
            for act in (lists, changes, server_killed, kind_absent):
                wrong = None
                try:
                    act(cluster, follower)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}"
                    cluster.fail()
                tap.test(f"{build.name}: {act.__doc__}", wrong)
            status = follower.stop()
            tap.test(f"{build.name}: it ends and leaves no memory behind",
                     "" if status == 0 else f"exit status {status}")
            for name in [k.split("/")[1] for k in present(cluster, "configmaps")
                         if k.startswith("default/c")]:
                cluster.api.delete("configmaps", name, "default")
            cluster.api.drop()
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
