#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people ask of a running operator with `kubectl skyhook`, on a real API server."""

import json
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import drover
import plane
import rollout

NODES = ["node-00000", "node-00001", "node-00002", "node-00003"]
SK = "base"
ACTS = rollout.PREFIX + "acts"


class Story:
    """A cluster, its operator and the plugin."""

    def __init__(self, cluster, plugin):
        self.cluster = cluster
        self.plugin = plugin

    def ask(self, *words):
        result = drover.run(self.plugin, *words, f"--kubeconfig={self.cluster.kubeconfig()}")
        assert result.status == 0, f"{' '.join(words)}: {result}"
        return result.out

    def attempts(self):
        """By node: the attempt that the operator keeps there, which only grows."""
        return {node: json.loads(rollout.note(self.cluster.api.get("nodes", node),
                                              f"drover_{SK}"))["attempt"] for node in NODES}

    def answered(self, before, want):
        """Waits until the acts are gone and just these nodes have made so many attempts more."""
        def there():
            found = self.cluster.api.get("skyhooks", SK)
            if ACTS in found["metadata"].get("annotations", {}):
                return None
            now = self.attempts()
            return {node: now[node] - before[node] for node in NODES} == want
        api.wait_until(f"{want} attempts more", there, 60)
        rollout.wait_status(self.cluster, SK, "complete")


def everything(story):
    """reset runs all packages again on all nodes, by the budget, and order begins at 0"""
    before = story.attempts()
    story.ask("reset", SK, "--confirm")
    story.answered(before, {node: 2 for node in NODES})
    shown = rollout.status(story.cluster, SK)
    assert shown["nodeOrderOffset"] == len(NODES), shown
    assert rollout.most_jobs(story.cluster, SK) <= 2
    for node in NODES:
        assert rollout.note(story.cluster.api.get("nodes", node), "seen") == "true"


def nodes_only(story):
    """reset --skip-batch-reset runs all packages again, and order goes on where it was"""
    before = story.attempts()
    story.ask("reset", SK, "--skip-batch-reset", "--confirm")
    story.answered(before, {node: 2 for node in NODES})
    shown = rollout.status(story.cluster, SK)
    assert shown["nodeOrderOffset"] == 2 * len(NODES), shown


def one_node(story):
    """node reset runs them again on that node alone"""
    before = story.attempts()
    story.ask("node", "reset", NODES[1], "--skyhook", SK, "--confirm")
    story.answered(before, {node: 2 if node == NODES[1] else 0 for node in NODES})


def one_stage(story):
    """package rerun --stage runs that stage again on that node alone"""
    before = story.attempts()
    story.ask("package", "rerun", "tune", "--skyhook", SK, "--node", NODES[2], "--stage", "config",
              "--confirm")
    story.answered(before, {node: 1 if node == NODES[2] else 0 for node in NODES})


def batches(story):
    """deployment-policy reset disturbs no node"""
    before = story.attempts()
    story.ask("deployment-policy", "reset", SK, "--confirm")
    story.answered(before, {node: 0 for node in NODES})
    state = rollout.status(story.cluster, SK)
    assert state["nodeOrderOffset"] == 0, state


def waiting(story):
    """acts that were asked while no operator ran are taken when one starts, once"""
    before = story.attempts()
    operator = story.operator
    operator.stop()
    story.ask("package", "rerun", "tune", "--skyhook", SK, "--node", NODES[3], "--confirm")
    operator.start()
    story.answered(before, {node: 2 if node == NODES[3] else 0 for node in NODES})


def explained(story):
    """explain and plan of the cluster agree with the operator that all is done"""
    result = json.loads(story.ask("explain", NODES[0], "-o", "json"))
    assert result["state"] == "done", result


def foreseen(story):
    """plan -f says what a change would do to the cluster as it is, and changes nothing"""
    before = story.cluster.api.get("skyhooks", SK)["metadata"]["resourceVersion"]
    changed = rollout.skyhook(SK, {"tune": rollout.package("2.0.0", interrupt={"type": "reboot"})},
                              deploymentPolicy="two")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(changed, file)
        file.flush()
        result = drover.run(story.program, "plan", "-f", file.name, "-o", "json",
                            f"--kubeconfig={story.cluster.kubeconfig()}")
    plan = json.loads(result.out)
    assert (plan["outcome"], plan["starts"], plan["drains"], plan["peakInFlight"]) == (
        "complete", len(NODES), len(NODES), 2), result
    after = story.cluster.api.get("skyhooks", SK)["metadata"]["resourceVersion"]
    assert after == before, "it wrote"


def middle(story):
    """plan and explain of the cluster go on in the middle of a rollout, with what runs there"""
    story.cluster.behave(**{"slow-1.0.0": "hang"})
    story.cluster.api.create("skyhooks", rollout.skyhook(
        "slow", {"slow": rollout.package()}, deploymentPolicy="two"))

    def two_run():
        found = rollout.status(story.cluster, "slow").get("compartmentStatuses", {})
        jobs = story.cluster.api.list("jobs", rollout.SPACE)
        names = [job["metadata"]["labels"].get(rollout.PREFIX + "name") for job in jobs]
        return found and names.count("slow") == 2
    api.wait_until("two Jobs run", two_run)
    story.cluster.wait_quiet()
    config = f"--kubeconfig={story.cluster.kubeconfig()}"
    result = drover.run(story.program, "plan", config, "-o", "json")
    plan = json.loads(result.out)
    assert (plan["outcome"], plan["done"], plan["starts"]) == ("complete", 4, 2), result
    assert plan["peakInFlight"] == 2, result
    first = json.loads(story.ask("explain", NODES[0], "-o", "json", "--skyhook", "slow"))
    last = json.loads(story.ask("explain", NODES[3], "-o", "json", "--skyhook", "slow"))
    assert (first["state"], last["state"]) == ("inFlight", "waiting"), (first, last)
    assert sorted(last["reasons"][0]["holders"]) == NODES[:2], last


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("acts", problem)
        return tap.done()
    program = drover.programs()[0]
    with plane.Cluster("check-acts") as cluster, tempfile.TemporaryDirectory() as folder:
        plugin = pathlib.Path(folder) / "kubectl-skyhook"
        plugin.symlink_to(program)
        rollout.prepare(cluster, program)
        cluster.add_nodes(len(NODES))
        cluster.api.create("deploymentpolicies", rollout.policy("two", {"count": 2}))
        with rollout.Operator(program, cluster) as operator:
            cluster.api.create("skyhooks", rollout.skyhook(
                SK, {"tune": rollout.package()}, deploymentPolicy="two"))
            rollout.wait_status(cluster, SK, "complete")
            story = Story(cluster, plugin)
            story.operator, story.program = operator, program
            for act in (everything, nodes_only, one_node, one_stage, batches, waiting, explained,
                        foreseen, middle):
                wrong = None
                try:
                    act(story)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}"
                    cluster.fail()
                tap.test(act.__doc__, wrong)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
