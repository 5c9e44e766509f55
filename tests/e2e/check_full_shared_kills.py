#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two Skyhooks on the same nodes, and a node that fails: `drover operator` is killed after every
single write and started again, against the real API server. The end is the same, neither exceeds
its limit at any revision, and nobody stays cordoned.

The first has a policy with failedNodesHoldBudget; one node of its first batch fails and keeps its
place, so that the others go on one by one, until it is healed and tried again. The second comes
behind it on each node, with an interrupt. Then both are deleted. WRITES=20-39 kills only after
these."""

import re
import sys

import check_full_kills
import ledger
import rollout

NODES = 4
BUDGET = 2
BUDGET_BEHIND = 1
RESTARTS = re.compile(r'(restarts\\*": ?)[1-9]\d*')  # as often as the time allowed


class Life(check_full_kills.Life):
    """One rollout of the two, in which the operator is killed after one write."""

    title = "two Skyhooks and a node that fails, killed after every single write and started " \
            "again: the same end, within the limits, nobody left cordoned"
    leaves = (f"{rollout.PREFIX}nodeState_", f"{rollout.PREFIX}version_")

    def __init__(self, *of):
        super().__init__(*of)
        self.behind = f"{self.name}-behind"

    def set_up(self):
        self.nodes = self.cluster.add_nodes(NODES, prefix=f"n{self.number}",
                                            labels={"life": self.name})
        self.cluster.behave(**{f"config_{self.nodes[0]}": "fail",
                               **{f"config_{node}": "succeed 500ms" for node in self.nodes[1:]}})
        of_policy = rollout.policy(self.name, {"count": BUDGET},
                                   {"fixed": {"initialBatch": BUDGET}})
        of_policy["spec"]["failedNodesHoldBudget"] = True
        self.cluster.api.create("deploymentpolicies", of_policy)

    def both(self, ready):
        return all(ready(rollout.status(self.cluster, name)) for name in (self.name, self.behind))

    def run(self):
        client = self.cluster.api
        selects = {"nodeSelectors": {"matchLabels": {"life": self.name}}}
        client.create("skyhooks", rollout.skyhook(
            self.name, {"tune": rollout.package()}, priority=10, deploymentPolicy=self.name,
            **selects))
        late = rollout.package(interrupt={"type": "service", "services": ["a"]})
        client.create("skyhooks", rollout.skyhook(
            self.behind, {"late": late}, priority=20,
            interruptionBudget={"count": BUDGET_BEHIND}, **selects))
        self.wait("a node fails", lambda: rollout.note(
            client.get("nodes", self.nodes[0]), f"status_{self.name}") == "erroring")
        self.wait("the others go on", lambda: self.both(
            lambda shown: shown.get("completeNodes") == f"{NODES - 1}/{NODES}"))
        self.cluster.behave(**{f"config_{self.nodes[0]}": None})
        self.wait("both are complete", lambda: self.both(
            lambda shown: shown.get("status") == "complete"))
        self.wait("conditions say so", lambda: all(
            c["status"] == "False" for node in self.nodes
            for c in client.get("nodes", node)["status"]["conditions"]
            if c["type"].endswith(("/NotReady", "/Erroring"))))
        self.wait("nodes are free", lambda: not any(
            client.get("nodes", node)["spec"].get("taints") for node in self.nodes))
        self.wait("what failed is gone", lambda: not any(
            c["type"] == "Failed" for name in (self.name, self.behind)
            for job in client.list("jobs", rollout.SPACE, labelSelector=f"{ledger.NAME}={name}")
            for c in job["status"].get("conditions", [])))
        end = self.end()
        for name in (self.behind, self.name):
            client.delete("skyhooks", name)
        self.wait("both are gone", lambda: not any(
            client.find("skyhooks", name) for name in (self.name, self.behind)))
        return end

    def end(self):
        first, self.name = self.name, self.behind
        try:
            behind = super().end()
        finally:
            self.name = first
        return RESTARTS.sub(r"\1N", super().end() + behind.replace(self.name, "SKYHOOK"))

    @staticmethod
    def check_whole(end):
        assert "restarts" in end and ": N" in end, "nobody has failed"
        assert "late|1.0.0" in end and "tune|1.0.0" in end, "not both are there"

    def check_left(self):
        super().check_left()
        first, self.name = self.name, self.behind
        try:
            super().check_left()
        finally:
            self.name = first

    def check_limits(self, entries):
        most = ledger.check_shared(
            entries, [ledger.Fleet(self.name, self.nodes, keep=True),
                      ledger.Fleet(self.behind, self.nodes)],
            {self.name: BUDGET, self.behind: BUDGET_BEHIND})
        assert most == {self.name: BUDGET, self.behind: BUDGET_BEHIND}, most

    def clear(self):
        super().clear()
        if self.cluster.api.find("deploymentpolicies", self.name):
            self.cluster.api.delete("deploymentpolicies", self.name)


if __name__ == "__main__":
    sys.exit(check_full_kills.main(Life))
