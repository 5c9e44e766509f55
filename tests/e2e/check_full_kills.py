#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drover operator` is killed after every single write of a rollout and started again, against the
real API server: the end is the same, no limit is exceeded at any revision, and nobody stays
cordoned.

The rollout: a package with a reboot on a small fleet of new nodes, which are tainted until they
have it, and one of which has an application to be evicted; a change of its config, with another
interrupt; its upgrade; its deletion, which uninstalls it. The kill comes when the server has taken
the write and the operator has not heard of it. Events are not counted: nothing rests on them.
WRITES=20-39 kills only after these."""

import json
import os
import pathlib
import sys
import threading
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import drover
import ledger
import plane
import proxy
import rollout

NODES = 3
BUDGET = 2
TAINT = "skyhook.nvidia.com"
CLUSTERS = 2     # side by side
WRITES_LEAST = 40
WRITES_MOST = 300
PATIENCE = 180


class Life:
    """One rollout, in which the operator is killed after one write."""

    title = "killed after every single write and started again: the same end, within the limits, " \
            "nobody left cordoned"
    patience = PATIENCE
    leaves = ()  # of what nodes carry, what packages that cannot be uninstalled leave behind

    def __init__(self, program, cluster, between, number):
        self.cluster = cluster
        self.between = between
        self.number = number       # of the write; 0: it is not killed
        self.name = f"sk{number}"  # nothing of an earlier life is in the way
        self.lock = threading.Lock()
        self.writes = 0
        self.kills = 0
        self.dead = threading.Event()
        self.operator = rollout.Operator(program, cluster, server=between.url)
        self.nodes = []

    def written(self, kind, status):
        if kind == "events" or status >= 300:
            return
        with self.lock:
            self.writes += 1
            if self.writes == self.number:
                self.kills += 1
                self.operator.process.kill()
                self.dead.set()

    def revive(self):
        """Starts it again as soon as it was killed."""
        self.dead.wait()
        if self.kills:
            self.operator.process.wait()
            self.operator.start()

    def wait(self, what, ready):
        return api.wait_until(f"{self.name}: {what}", ready, self.patience)

    # ---- the rollout

    def set_up(self):
        self.nodes = self.cluster.add_nodes(NODES, prefix=f"n{self.number}",
                                            labels={"life": self.name})
        self.cluster.api.create("pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.name},
            "spec": {"nodeName": self.nodes[0],
                     "containers": [{"name": "a", "image": "example.test/a:1"}]}}, "default")
        self.wait("its application runs", lambda: self.cluster.api.get(
            "pods", self.name, "default")["status"].get("phase") == "Running")
        self.interrupts("reboot")

    def interrupts(self, word):
        self.cluster.behave(**{f"{stage}_{node}": word for node in self.nodes
                               for stage in ("interrupt", "uninstall-interrupt")})

    def complete(self, version):
        def there():
            found = self.cluster.api.get("skyhooks", self.name)
            shown = found.get("status", {})
            return (shown.get("status") == "complete" and
                    shown.get("observedGeneration") == found["metadata"]["generation"] and
                    shown.get("packageList") == f"tune:{version}")
        self.wait(f"{version} is complete", there)

    def run(self):
        client = self.cluster.api
        client.create("skyhooks", rollout.skyhook(
            self.name, {"tune": rollout.package(
                interrupt={"type": "reboot"}, configMap={"a.conf": "1"},
                configInterrupts={"a.conf": {"type": "service", "services": ["a"]}},
                uninstall={"enabled": True, "apply": False})},
            interruptionBudget={"count": BUDGET}, runtimeRequired=True, autoTaintNewNodes=True,
            nodeSelectors={"matchLabels": {"life": self.name}}))
        self.complete("1.0.0")
        assert not client.find("pods", self.name, "default"), "the application was not evicted"
        self.wait("its nodes are free", lambda: not any(
            client.get("nodes", node)["spec"].get("taints") for node in self.nodes))
        self.interrupts(None)  # that of the files reboots nobody
        client.patch("skyhooks", self.name,
                     {"spec": {"packages": {"tune": {"configMap": {"a.conf": "2"}}}}})
        self.complete("1.0.0")
        assert self.runs("tune-1.0.0", "config") == 2 * NODES, "the change was not applied"
        self.interrupts("reboot")
        client.patch("skyhooks", self.name,
                     {"spec": {"packages": {"tune": {"version": "2.0.0"}}}})
        self.complete("2.0.0")
        # The last conditions are a write of their own, behind the node's last patch.
        self.wait("conditions say so", lambda: all(
            c["status"] == "False" for node in self.nodes
            for c in client.get("nodes", node)["status"]["conditions"]
            if c["type"].endswith("/NotReady")))
        # Kubernetes takes its taint of a node that was down away when it gets to it.
        self.wait("nodes are free", lambda: not any(
            client.get("nodes", node)["spec"].get("taints") for node in self.nodes))
        self.wait("files of what was replaced are gone", lambda: not any(
            "-1.0.0" in name for name in self.maps()))
        end = self.end()
        client.delete("skyhooks", self.name)
        self.wait("it is gone", lambda: not client.find("skyhooks", self.name))
        return end

    def runs(self, package, stage):
        """How many Jobs of that stage there are."""
        return len(self.cluster.api.list("jobs", rollout.SPACE, labelSelector=(
            f"{ledger.NAME}={self.name},{rollout.PREFIX}package={package},"
            f"{rollout.PREFIX}stage={stage}")))

    def clear(self):
        for node in self.nodes:
            if self.cluster.api.find("nodes", node):
                self.cluster.api.delete("nodes", node)
        if self.cluster.api.find("pods", self.name, "default"):
            self.cluster.api.delete("pods", self.name, "default")

    # ---- what is compared

    def plain(self, thing):
        """Without what tells lives apart."""
        text = json.dumps(thing, sort_keys=True)
        for at, node in enumerate(self.nodes):
            text = text.replace(node, f"NODE{at}")
        return text.replace(self.name, "SKYHOOK")

    def end(self):
        client = self.cluster.api
        shown = rollout.status(self.cluster, self.name)
        end = {"status": {key: shown.get(key) for key in (
            "status", "completeNodes", "nodesInProgress", "nodePriority", "nodeOrderOffset",
            "nodeState", "nodeStatus", "compartmentStatuses", "packageList", "configUpdates")}}
        for node in self.nodes:
            found = client.get("nodes", node)
            notes = found["metadata"]["annotations"]
            end[node] = {
                "unschedulable": found["spec"].get("unschedulable", False),
                "taints": found["spec"].get("taints", []),
                "notes": {key: notes[key] for key in notes
                          if key.startswith(rollout.PREFIX) and "/drover_" not in key},
                "labels": found["metadata"]["labels"],
                "conditions": {c["type"]: c["status"] for c in found["status"]["conditions"]}}
        jobs = [self.stage_of(job) for job in client.list(
            "jobs", rollout.SPACE, labelSelector=f"{ledger.NAME}={self.name}")]
        end["jobs"] = sorted(jobs)
        end["maps"] = self.maps()
        return self.plain(end)

    def maps(self):
        """The names of its ConfigMaps, and what is in them."""
        return {one["metadata"]["name"]: sorted(one.get("data", {}))
                for one in self.cluster.api.list("configmaps", rollout.SPACE)
                if one["metadata"]["name"].startswith(f"{self.name}-")}

    @staticmethod
    def stage_of(job):
        labels = job["metadata"]["labels"]
        over = [c["type"] for c in job["status"].get("conditions", []) if c["status"] == "True"]
        return [labels[rollout.PREFIX + "package"], labels[rollout.PREFIX + "stage"],
                labels[rollout.PREFIX + "node"], "Complete" if "Complete" in over else str(over)]

    @staticmethod
    def check_whole(end):
        """Of the life in which nobody is killed."""
        assert '"tune|1.0.0"' not in end, "what was replaced is still shown"

    def check_left(self):
        """What a deleted Skyhook may leave behind, of which a cordon is none."""
        for node in self.nodes:
            found = self.cluster.api.get("nodes", node)
            assert not found["spec"].get("unschedulable"), f"{node} is left cordoned"
            held = [key for key in found["metadata"]["annotations"]
                    if "/cordon" in key or (key.endswith(f"_{self.name}") and
                                            not key.startswith(self.leaves))]
            assert not held, f"{node}: {held}"
        # Kubernetes takes away what the Skyhook owned; nothing may be made anew behind it.
        self.wait("its Jobs and ConfigMaps are gone", lambda: not self.maps() and not
                  self.cluster.api.list("jobs", rollout.SPACE,
                                        labelSelector=f"{ledger.NAME}={self.name}"))

    def check_limits(self, entries):
        tainted = {thing["metadata"]["name"] for _, kind, thing in ledger.revisions(entries)
                   if kind == "nodes" and any(taint["key"] == TAINT for taint in
                                              thing.get("spec", {}).get("taints", []))}
        assert tainted == set(self.nodes), f"only {sorted(tainted)} were tainted"
        most = ledger.check(entries, self.name, self.nodes, BUDGET)
        assert most == BUDGET, f"the most claims that the log tells of are {most}"

    def live(self, log):
        """The end of it, in one text."""
        self.set_up()
        log.more()
        self.between.written = self.written
        reviver = threading.Thread(target=self.revive, daemon=True)
        with self.operator:
            reviver.start()
            try:
                end = self.run()
                self.check_left()
            finally:
                self.dead.set()
                reviver.join()
        self.check_limits(log.more())
        self.clear()
        return end


def chosen():
    """The first and the last write, for who looks at some of them."""
    words = os.environ.get("WRITES", f"1-{WRITES_MOST}").split("-")
    return int(words[0]), int(words[-1])


class Kills:
    """All lives, in turn, by as many clusters as there are."""

    def __init__(self, program, kind=Life):
        self.program = program
        self.kind = kind
        self.lock = threading.Lock()
        self.first, self.last = chosen()
        self.next = 0  # that of nobody who is killed
        self.over = False
        self.reference = None
        self.writes = 0  # of whom nobody kills
        self.whole = threading.Event()  # the life that was not killed has ended
        self.killed = 0
        self.problems = []

    def take(self):
        with self.lock:
            number = self.next
            self.next = max(number + 1, self.first)
            return None if self.over or number > self.last else number

    def judge(self, life, end):
        with self.lock:
            self.killed += life.kills
            # It came to its end before that write: there are no more.
            self.over |= life.number > 0 and not life.kills
            if life.number == 0:
                self.reference = end
                self.writes = life.writes
                life.check_whole(end)
                print(f"# {life.writes} writes if nothing happens", flush=True)
        if life.number == 0:
            self.whole.set()
        self.whole.wait()
        if end != self.reference:
            raise AssertionError(f"another end:\n{end}\nnot\n{self.reference}")

    def attempt(self, life, log):
        try:
            self.judge(life, life.live(log))
        except Exception as error:  # pylint: disable=broad-exception-caught
            life.cluster.fail()
            print(f"# {traceback.format_exc(limit=3)}".replace("\n", "\n# "))
            self.problems.append(
                f"killed after write {life.number}: {type(error).__name__}: {error}")
            self.over |= len(self.problems) >= 3
            self.whole.set()
            life.clear()

    def work(self, at):
        with plane.Cluster(f"check-full-kills-{at}", audit=ledger.POLICY) as cluster:
            rollout.prepare(cluster, self.program)
            log = ledger.Log(cluster.audit_file)
            with proxy.Proxy(cluster) as between:
                for number in iter(self.take, None):
                    self.attempt(self.kind(self.program, cluster, between, number), log)

    def run(self):
        workers = [threading.Thread(target=self.work, args=(at,)) for at in range(CLUSTERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        # Who is killed may write a little less than who is not.
        least = max(1, min(self.last, self.writes * 9 // 10) - self.first + 1)
        if not self.problems and (self.killed < least or self.writes < WRITES_LEAST):
            self.problems.append(f"only {self.killed} kills of {self.writes} writes")
        return "\n".join(self.problems)


def main(kind=Life):
    os.environ.setdefault("DROVER_BUILDS", "build")
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("kills after every write", problem)
        return tap.done()
    kills = Kills(drover.programs()[0], kind)
    wrong = kills.run()
    print(f"# {kills.killed} kills")
    tap.test(kind.title, wrong)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
