#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leader election against a real API server: two processes of kube-lead, one of them frozen."""

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
import api
import audit
import binaries
import drover
import plane

USERS = ("drover", "drover-2")
DURATION, DEADLINE, RETRY = 3000, 2000, 400  # ms


class Candidate:
    """A kube-lead that runs, and what it said."""

    def __init__(self, program, cluster, user, server=None):
        self.user = user
        self.lines = []
        command = [str(program), str(cluster.kubeconfig(user, server)), user, *map(str, (
            DURATION, DEADLINE, RETRY))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.split())

    def said(self, word):
        return [line for line in self.lines if line[0] == word]

    def wait_for(self, word, times=1, seconds=20):
        api.wait_until(f"{self.user} says {word}", lambda: len(self.said(word)) >= times, seconds)

    def signal(self, number):
        self.process.send_signal(number)


def allow(cluster):
    rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
             {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    cluster.api.create("clusterroles", {"metadata": {"name": "lead"}, "rules": rules})
    cluster.api.create("clusterrolebindings", {
        "metadata": {"name": "lead"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "lead"},
        "subjects": [{"kind": "Group", "name": "drover",
                      "apiGroup": "rbac.authorization.k8s.io"}]})


def counter_writes(cluster, user):
    """Of the counter, in order: when the server got it, and what it said."""
    return [(entry["requestReceivedTimestamp"], entry["responseStatus"]["code"])
            for entry in audit.writes_of(cluster.audit_file, user)
            if entry["objectRef"]["resource"] == "configmaps"]


def frozen(cluster, first, second):
    """a leader that is frozen past its lease and thawed sends nothing more"""
    first.signal(signal.SIGSTOP)
    earlier = len(counter_writes(cluster, second.user))  # of another build
    second.wait_for("began")
    second.wait_for("wrote", 20)
    before = len(counter_writes(cluster, first.user))
    first.signal(signal.SIGCONT)
    first.wait_for("ended")
    time.sleep(1)
    after = counter_writes(cluster, first.user)
    # What was on its way when it was frozen may come later, and meets its precondition.
    sent = after[before:]
    assert len(sent) <= 1 and all(status == 409 for _, status in sent), sent
    assert second.process.poll() is None and not second.said("ended")
    begin = counter_writes(cluster, second.user)[earlier][0]
    late = [at for at, status in after if status == 200 and at > begin]
    assert not late, f"{first.user} wrote at {late}, {second.user} began at {begin}"


def given_back(_, first, second):
    """a leader that ends gives the lease back: the next one does not wait for it to run out"""
    began = len(first.said("began"))
    second.signal(signal.SIGTERM)
    second.wait_for("released")
    start = time.monotonic()
    first.wait_for("began", began + 1)
    took = time.monotonic() - start
    assert took < DURATION / 1000 - 1, f"after {took:.1f} s"
    assert second.process.wait(20) == 0


def no_server(cluster, first, _):
    """a leader that reaches no server ceases to lead in time, and leads again when it does"""
    began, ended = len(first.said("began")), len(first.said("ended"))
    cluster.kill("kube-apiserver")
    start = time.monotonic()
    first.wait_for("ended", ended + 1)
    took = time.monotonic() - start
    assert took <= DEADLINE / 1000 + 0.5, f"after {took:.1f} s"
    cluster.run_again("kube-apiserver")
    cluster.api.drop()
    first.wait_for("began", began + 1)
    first.signal(signal.SIGTERM)
    assert first.process.wait(20) == 0


def counted(cluster, kills):
    """Every write that was answered with success has counted once. A server that is killed may have
    written what it did not log."""
    found = int(cluster.api.get("configmaps", "counter", "default")["data"]["count"])
    written = sum(status == 200 for user in USERS for _, status in counter_writes(cluster, user))
    assert written <= found <= written + kills, f"{found} counted, {written} written"


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("leader election", problem)
        return tap.done()
    with plane.Cluster("check-kube-lease") as cluster:
        allow(cluster)
        cluster.api.create("configmaps", {"metadata": {"name": "counter"},
                                          "data": {"count": "0"}}, "default")
        for kills, program in enumerate(drover.programs(), 1):
            build = program.parent
            first = Candidate(build / "kube-lead", cluster, USERS[0])
            first.wait_for("wrote", 5)
            second = Candidate(build / "kube-lead", cluster, USERS[1])
            for act in (frozen, given_back, no_server):
                wrong = None
                try:
                    act(cluster, first, second)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}"
                    cluster.fail()
                tap.test(f"{build.name}: {act.__doc__}", wrong)
            for candidate in (first, second):
                if candidate.process.poll() is None:
                    candidate.process.kill()
            try:
                counted(cluster, kills)
                tap.test(f"{build.name}: every write counted once")
            except AssertionError as error:
                tap.test(f"{build.name}: every write counted once", error)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
