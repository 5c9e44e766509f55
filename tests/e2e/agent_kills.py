# SPDX-License-Identifier: Apache-2.0
"""An agent is killed after each of its writes, to its hub and to its cluster, and started again:
the end is the same. The kill comes when the server has taken the write and the agent has not heard
of it. Signs of life, which come by the clock, are not counted."""

import json
import threading

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import agent_shapes
import agent_stage
import api
import proxy
import rollout

WRITES_LEAST = 15
WRITES_MOST = 40
PATIENCE = 60
INVENTORIES = "drover-system"
DEFINITION = agent_shapes.DEFINITION.replace("tills", "kills").replace("till", "kill").replace(
    "Till", "Kill")
KILL = agent_shapes.TILL.replace("Till", "Kill")
api.GROUPS["kills"] = "/apis/shapes.test/v1"


def files(**texts):
    return [{"name": f"{name}.yaml", "content": text} for name, text in texts.items()]


FIRST = files(one=agent_shapes.config_map("one", "first"), two=agent_shapes.config_map("two"),
              kind=DEFINITION, kill=KILL)
SECOND = files(one=agent_shapes.config_map("one", "second"),
               three=agent_shapes.config_map("three"), kind=DEFINITION)


class Life:
    """One deployment, from its Bundle's beginning to its end; a kill after one write."""

    def __init__(self, stage, agent, betweens, number):
        self.stage, self.agent, self.betweens, self.number = stage, agent, betweens, number
        self.name = f"life{number}"
        self.lock = threading.Lock()
        self.writes = self.kills = 0
        self.dead = threading.Event()

    def written(self, kind, status):
        if kind == "clusters" or status >= 300:
            return
        with self.lock:
            self.writes += 1
            if self.writes == self.number:
                self.kills += 1
                self.agent.process.kill()
                self.dead.set()

    def revive(self):
        self.dead.wait()
        if self.kills:
            self.agent.process.wait()
            self.agent.start()

    def wait(self, what, ready):
        return api.wait_until(f"{self.name}: {what}", ready, PATIENCE)

    def run(self):
        main = self.stage.main
        main.api.create("bundles", {
            "apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Bundle",
            "metadata": {"name": self.name, "namespace": hub.SPACE},
            "spec": {"resources": FIRST, "defaultNamespace": self.name,
                     "deleteCRDResources": True, "namespaceLabels": {"life": "one"},
                     "targets": [{"clusterName": self.agent.name}]}}, hub.SPACE)
        hub.wait_ready(main, self.name, 1, PATIENCE)
        ends = [self.end()]
        main.api.patch("bundles", self.name, {"spec": {"resources": SECOND}}, hub.SPACE)
        hub.wait_ready(main, self.name, 1, PATIENCE)
        ends.append(self.end())
        main.api.delete("bundles", self.name, hub.SPACE)
        self.wait("all of it is gone", lambda: not self.inventory() and not self.left())
        return ends

    def left(self):
        """What of it is in the cluster."""
        find, found = self.agent.own.api.find, []
        places = [("configmaps", name, self.name) for name in ("one", "two", "three")]
        for kind, name, space in (*places, (
                "customresourcedefinitions", "kills.shapes.test", None)):
            one = find(kind, name, space)
            if one:
                found.append([kind, name, one["metadata"]["labels"], one.get("data")])
        if any(one[0] == "customresourcedefinitions" for one in found):
            one = find("kills", "first", self.name)
            found.append(["kills", "first", one and one["spec"]])
        return found

    def inventory(self):
        found = [json.loads(one["data"]["inventory"])
                 for one in self.agent.own.api.list("configmaps", INVENTORIES)
                 if "inventory" in one.get("data", {})]
        return next((one for one in found if one["deployment"] == self.name), None)

    def end(self):
        """All but times, uids and what tells lives apart."""
        inventory, found = self.inventory(), self.agent.deployment(self.name)
        live, status = found["spec"]["deploymentID"], found["status"]
        assert inventory["wanted"] == inventory["applied"] == live, (inventory, live)
        told = {key: status.get(key) for key in (
            "ready", "nonModified", "release", "modifiedStatus", "nonReadyStatus",
            "resourceCounts")}
        told["conditions"] = {c["type"]: c["status"] for c in status["conditions"]}
        space = self.agent.own.api.get("namespaces", self.name)["metadata"]["labels"]
        kept = {key: inventory[key] for key in inventory
                if key not in ("wanted", "applied", "digest")}
        end = [self.left(), kept, told, space, status["appliedDeploymentID"] == live]
        return json.dumps(end, sort_keys=True).replace(self.name, "LIFE")

    def live(self):
        for between in self.betweens:
            between.written = self.written
        reviver = threading.Thread(target=self.revive, daemon=True)
        reviver.start()
        try:
            return self.run()
        finally:
            self.dead.set()
            reviver.join()


def behind(agent, betweens):
    """The agent knows its hub and its cluster by what stands between."""
    to_hub, to_own = betweens
    account = agent.credentials().with_name("hub-kubeconfig-between")
    text = agent.credentials().read_text("utf-8")
    url = f"https://127.0.0.1:{agent.main.port}"
    assert url in text, text
    account.write_text(text.replace(url, to_hub.url), "utf-8")
    agent.between = (account, agent.own.kubeconfig(rollout.USER, to_own.url))


def killed_after_each_write(stage):
    """an agent that is killed after each of its writes, and started again, comes to the same end"""
    agent = stage.agents[0]
    agent.stop()
    with proxy.Proxy(stage.main) as to_hub, proxy.Proxy(agent.own) as to_own:
        betweens = (to_hub, to_own)
        behind(agent, betweens)
        agent.start()
        try:
            kills = live_all(stage, agent, betweens)
        finally:
            agent.between = None
            agent.stop()
            agent.start()
    print(f"# {kills} kills", flush=True)


def live_all(stage, agent, betweens):
    """How many kills there were."""
    whole = Life(stage, agent, betweens, 0)
    reference, kills = whole.live(), 0
    print(f"# {whole.writes} writes if nothing happens", flush=True)
    assert WRITES_LEAST <= whole.writes <= WRITES_MOST, f"{whole.writes} writes"
    for number in range(1, WRITES_MOST + 1):
        life = Life(stage, agent, betweens, number)
        end = life.live()
        assert end == reference, f"killed after write {number}: {end}\nnot\n{reference}"
        if not life.kills:  # it came to its end before that write
            break
        kills += 1
    # Who is killed may write a little less than who is not.
    assert kills >= whole.writes * 9 // 10, f"only {kills} kills of {whole.writes} writes"
    return kills


ACTS = (killed_after_each_write,)
