# SPDX-License-Identifier: Apache-2.0
"""Many stories on one cluster, side by side: each has nodes and Skyhooks of its own."""

import concurrent.futures
import json
import os
import pathlib
import tempfile
import traceback

import api
import drover
import ledger
import rollout


# How long something may take on a machine with other work; who waits goes on at once when it is so.
COMPLETE_SECONDS = 300
WAIT_SECONDS = 300


def chosen(found):
    """Some of them by name, for who works on one: STORIES=linear,paced."""
    words = os.environ.get("STORIES", "").split(",")
    return [one for one in found if one.__name__ in words or words == [""]]


class Stage:
    """What all stories share: a cluster, an operator and the program that people ask."""

    def __init__(self, cluster, program):
        self.cluster = cluster
        self.program = program
        self.operator = None
        self.config = f"--kubeconfig={cluster.kubeconfig()}"
        self.folder = tempfile.TemporaryDirectory()
        self.name = pathlib.Path(self.folder.name) / "kubectl-skyhook"
        self.name.symlink_to(program)

    def plugin(self, *words):
        """`kubectl skyhook WORDS`"""
        result = drover.run(self.name, *words, self.config)
        assert result.status == 0, f"{' '.join(words)}: {result}"
        return result.out

    def tell(self, tap, stories, at_once=True):
        """Each in a thread of its own, or one after the other."""
        with concurrent.futures.ThreadPoolExecutor(len(stories) if at_once else 1) as pool:
            ends = [(one, pool.submit(self.try_one, one)) for one in stories]
            for one, end in ends:
                words = " ".join(one.__doc__.split())
                tap.test(f"{one.__name__.replace('_', ' ')}: {words}", end.result())

    def try_one(self, act):
        try:
            act(Story(self, act.__name__.replace("_", "-")))
            return None
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.cluster.fail()
            where = traceback.extract_tb(error.__traceback__)
            lines = [str(step.lineno) for step in where if step.name == act.__name__]
            return f"{type(error).__name__}: {error} (line {', '.join(lines)})"


class Story:
    """One story: its Skyhook and its nodes have its name."""

    def __init__(self, stage, name):
        self.stage = stage
        self.cluster = stage.cluster
        self.api = stage.cluster.api
        self.name = name
        self.nodes = []

    # ---- the fleet

    def add_nodes(self, count, labels=None, taints=None):
        def of(number):
            more = labels(number) if callable(labels) else labels or {}
            return {"story": self.name, **more}
        for _ in range(count):  # one by one: they are picked by the time of their creation
            self.nodes += self.cluster.add_nodes(1, prefix=self.name, first=len(self.nodes),
                                                 labels=of, taints=taints)

    def node(self, at=0):
        return self.api.get("nodes", self.nodes[at])

    def note(self, key, at=0):
        return rollout.note(self.node(at), f"{key}_{self.name}")

    def behave(self, **words):
        """By package, or by "stage_node"."""
        self.cluster.behave(**words)

    def is_cordoned(self, at=0):
        return self.node(at)["spec"].get("unschedulable", False)

    def is_tainted(self, at=0):
        taints = self.node(at)["spec"].get("taints", [])
        return any(taint["key"] == "skyhook.nvidia.com" for taint in taints)

    # ---- the Skyhook

    def skyhook(self, packages, name=None, **spec):
        """packages: a name, or names and packages."""
        if isinstance(packages, str):
            packages = {packages: rollout.package()}
        spec.setdefault("nodeSelectors", {"matchLabels": {"story": self.name}})
        return self.api.create("skyhooks", rollout.skyhook(name or self.name, packages, **spec))

    def policy(self, budget, strategy=None, **spec):
        made = rollout.policy(self.name, budget, strategy)
        made["spec"].update(spec)
        return self.api.create("deploymentpolicies", made)

    def edit(self, package, change):
        self.api.patch("skyhooks", self.name, {"spec": {"packages": {package: change}}})

    def status(self, name=None):
        return rollout.status(self.cluster, name or self.name)

    def batch(self, group="__default__"):
        return self.status().get("compartmentStatuses", {}).get(group, {}).get("batchState", {})

    def complete(self, seconds=COMPLETE_SECONDS, name=None):
        return rollout.wait_status(self.cluster, name or self.name, "complete", seconds)

    def wait(self, what, ready, seconds=WAIT_SECONDS):
        return api.wait_until(f"{self.name}: {what}", ready, seconds)

    def condition(self, kind):
        return next((c for c in self.status().get("conditions", []) if c["type"] == kind), {})

    # ---- Jobs

    def jobs(self, **labels):
        """Those of the story's Skyhook with these labels, in the order of their attempts."""
        wanted = {"name": self.name, **labels}
        selector = ",".join(f"{rollout.PREFIX}{key}={value}" for key, value in wanted.items())
        found = self.api.list("jobs", rollout.SPACE, labelSelector=selector)
        return sorted(found, key=lambda job: int(
            job["metadata"]["annotations"][rollout.PREFIX + "attempt"]))

    # ---- what people are told

    def explain(self, at=0):
        """The whole answer as text, and its state."""
        found = self.stage.plugin("explain", self.nodes[at], "-o", "json", "--skyhook", self.name)
        return json.loads(found)["state"], found

    def events(self, name):
        return [e["message"] for e in self.api.list("events", "default")
                if e["involvedObject"]["name"] == name]

    def told(self, *words, at=0, seconds=WAIT_SECONDS):
        """Waits until an event of the node has all these words."""
        self.wait(f"an event of the node says {words}", lambda: any(
            all(word in text for word in words) for text in self.events(self.nodes[at])), seconds)

    def why(self, at=0):
        """The word of the node's failure, as it is kept there."""
        return json.loads(self.note("drover", at) or "{}").get("why")

    # ---- what the server saw

    def entries(self):
        return ledger.Log(self.cluster.audit_file).more()

    def check_limits(self, budget, entries=None):
        return ledger.check(entries or self.entries(), self.name, self.nodes, budget)

    def batch_revisions(self, group, since=0):
        """The state of the group's batch, at every revision of the Skyhook; since: an entry."""
        for _, kind, thing in ledger.revisions(self.entries()[since:]):
            if kind == "skyhooks" and thing["metadata"]["name"] == self.name:
                groups = thing.get("status", {}).get("compartmentStatuses", {})
                yield groups.get(group, {}).get("batchState", {})

    def batches(self, group="__default__"):
        """The sizes of batches that were judged, in order."""
        sizes, last = [], 1
        for state in self.batch_revisions(group):
            now = state.get("currentBatch", 1)
            if now == last + 1:
                sizes.append(state.get("lastBatchSize", 0))
            last = now
        return sizes

    def batch_members(self, group="__default__", since=0):
        """Who was in the first batch at any revision, who in the second, and so on."""
        found = {}
        for state in self.batch_revisions(group, since):
            if state.get("members"):
                found.setdefault(state["currentBatch"], set()).update(state["members"])
        return [found[number] for number in sorted(found)]
