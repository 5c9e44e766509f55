#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drover operator --serve clusters` is killed after every single write of a rollout and started
again, against the real API server: the end is the same, and no limit is exceeded at any revision.

One rollout: a Bundle with Helm values on a few clusters, an update that changes them, one that has
none any more, its deletion. The other: partitions of a ClusterGroup and of labels, an approval, an
update that fails and halts, its fix, another approval. The kill comes when the server has taken the
write and the operator has not heard of it. TAP."""

import json
import os
import pathlib
import re
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import check_full_kills
import drover
import hub
import proxy

CLUSTERS = 5
FIRST = 2  # of them, in the first partition
CAP = 2
LATENCY = 0.05
PATIENCE = 90
CONTENT = re.compile(r"s-[0-9a-f]{61}")


class Life(check_full_kills.Life):
    """One rollout, in which the operator is killed after one write."""

    title = "the controller of clusters, killed after every single write and started again: the " \
            "same end, within the limit"

    def __init__(self, program, cluster, between, number, agents):
        # pylint: disable=too-many-arguments
        super().__init__(program, cluster, between, number)
        self.name = f"app{number}"  # nothing of an earlier life is in the way
        self.operator = hub.operator(program, cluster, server=between.url)
        self.agents = agents

    def gone(self):
        found = [one for one in self.cluster.api.list("bundledeployments") +
                 self.cluster.api.list("secrets") if one["metadata"]["name"] == self.name]
        return not found and not self.cluster.api.find("bundles", self.name, hub.SPACE)

    def run(self):
        client = self.cluster.api
        client.create("bundles", hub.bundle(
            self.name, f"one-{self.name}", {"maxUnavailable": CAP},
            helm={"values": {"where": "${ .ClusterName }"}}), hub.SPACE)
        hub.wait_ready(self.cluster, self.name, CLUSTERS, PATIENCE)
        end = self.change("two", {"values": {"where": "${ .ClusterName } too"}})
        end += self.change("three", None)
        client.delete("bundles", self.name, hub.SPACE)
        api.wait_until(f"{self.name}: all of it is gone", self.gone, PATIENCE)
        return end

    def change(self, content, helm):
        """An update within the limit; how it ends."""
        since = hub.mark(self.cluster)
        self.cluster.api.patch("bundles", self.name, {"spec": {
            "resources": hub.resources(f"{content}-{self.name}"), "helm": helm}}, hub.SPACE)
        hub.wait_ready(self.cluster, self.name, CLUSTERS, PATIENCE)
        most = hub.replay(self.cluster, self.name, since).most
        assert 1 <= most <= CAP, f"{most} unavailable at once"
        api.wait_until("Secrets are settled", self.settled, PATIENCE)
        return self.end()

    def settled(self):
        return not any("drover.dev/values" in one["metadata"]["labels"]
                       for one in hub.deployments(self.cluster, self.name).values())

    def secret(self, of):
        """The values of a deployment, if it has any: those that it names, and its own."""
        found = self.cluster.api.find("secrets", self.name, of["metadata"]["namespace"])
        wanted = of["spec"].get("valuesHash")
        assert bool(found) == bool(wanted), f"{wanted}, but {found}"
        if not found:
            return None
        assert hub.values_hash(found) == wanted, found
        owners = [one["uid"] for one in found["metadata"]["ownerReferences"]]
        assert owners == [of["metadata"]["uid"]], owners
        return found["data"]

    def end(self):
        """What is compared: all but times, uids and what tells lives apart."""
        client, end = self.cluster.api, {}
        for where, one in hub.deployments(self.cluster, self.name).items():
            labels = {key: value for key, value in one["metadata"]["labels"].items()
                      if key != "drover.dev/released-at"}
            end[where] = [labels, one["spec"], one["status"]["appliedDeploymentID"],
                          self.secret(one)]
        found = client.get("bundles", self.name, hub.SPACE)
        shown = {key: found["status"].get(key) for key in (
            "summary", "display", "partitions", "unavailable", "unavailablePartitions",
            "maxUnavailable", "observedGeneration")}
        end["bundle"] = [shown, found["metadata"]["finalizers"]]
        text = json.dumps(end, sort_keys=True).replace(self.name, "APP")
        for at, content in enumerate(dict.fromkeys(CONTENT.findall(text))):
            assert client.find("contents", content), f"{content} is missing"
            text = text.replace(content, f"CONTENT{at}")
        return text

    def live(self, log=None):
        """The end of it, in one text."""
        self.between.written = self.written
        reviver = threading.Thread(target=self.revive, daemon=True)
        with self.operator:
            reviver.start()
            try:
                return self.run()
            finally:
                self.dead.set()
                reviver.join()

    def clear(self):
        """Nothing of it is in the way of the others."""


class Asked(Life):
    """A rollout that a person looks after."""

    title = "the same with partitions, approvals and a failure that halts: what people said, and " \
            "that it is halted, is not forgotten"

    def run(self):
        client, whole = self.cluster.api, f"{hub.SPACE}/{self.name}"
        client.create("clustergroups", {
            "apiVersion": "fleet.cattle.io/v1alpha1", "kind": "ClusterGroup",
            "metadata": {"name": self.name, "namespace": hub.SPACE},
            "spec": {"selector": {"matchLabels": {"ring": "first"}}}}, hub.SPACE)
        client.create("bundles", hub.bundle(self.name, f"one-{self.name}", {
            "maxUnavailable": 1, "failureThreshold": 1, "partitions": [
                {"name": "first", "clusterGroup": self.name},
                {"name": "rest", "approval": True,
                 "clusterSelector": {"matchLabels": {"ring": "rest"}}}]}), hub.SPACE)
        self.ready(FIRST)
        assert len(hub.deployments(self.cluster, self.name)) == FIRST, "nobody approved it"
        self.say("approve", "--partition", "rest", "--bundle", whole)
        hub.wait_ready(self.cluster, self.name, CLUSTERS, PATIENCE)
        self.fail_and_halt()
        hub.change(self.cluster, self.name, f"three-{self.name}")
        self.ready(FIRST, outOfSync=CLUSTERS - FIRST)
        self.say("approve", "--partition", "rest", "--bundle", whole)
        hub.wait_ready(self.cluster, self.name, CLUSTERS, PATIENCE)
        end = self.end()
        for kind in ("bundles", "clustergroups"):
            client.delete(kind, self.name, hub.SPACE)
        api.wait_until(f"{self.name}: all of it is gone", self.gone, PATIENCE)
        return end

    def say(self, *words):
        result = drover.run(self.operator.program, *words,
                            f"--kubeconfig={self.cluster.kubeconfig()}")
        assert result.status == 0, result

    def ready(self, count, **others):
        def there():
            found = self.cluster.api.get("bundles", self.name, hub.SPACE)
            shown = found.get("status", {})
            counts = shown.get("summary", {})
            return shown.get("observedGeneration") == found["metadata"]["generation"] and \
                counts.get("ready") == count and \
                all(counts.get(key, 0) == others[key] for key in others)
        api.wait_until(f"{self.name}: {count} are ready", there, PATIENCE)

    def fail_and_halt(self):
        """The first cluster that gets it fails; nobody else gets it, whatever becomes of that."""
        before = {where: one["spec"]["deploymentID"]
                  for where, one in hub.deployments(self.cluster, self.name).items()}
        self.agents.broken[self.name] = "fail"
        hub.change(self.cluster, self.name, f"two-{self.name}")
        api.wait_until(f"{self.name}: it has failed", lambda: self.cluster.api.get(
            "bundles", self.name, hub.SPACE)["status"]["summary"].get("errApplied", 0) == 1,
                       PATIENCE)
        self.agents.wake(self.name)
        time.sleep(2)
        after = hub.deployments(self.cluster, self.name)
        given = [where for where, one in after.items()
                 if one["spec"]["deploymentID"] != before[where]]
        assert len(given) == 1, f"it went on: {given}"


class Kills(check_full_kills.Kills):
    """All lives of a kind, in turn, by as many hubs as there are."""

    def work(self, at):
        with hub.open_hub(f"check-full-fleet-kills-{at}") as cluster:
            hub.prepare(cluster, self.program)
            hub.add_clusters(cluster, CLUSTERS, labels=lambda number: {
                "ring": "first" if number < FIRST else "rest"})
            with proxy.Proxy(cluster) as between, hub.Agents(cluster, LATENCY) as agents:
                for number in iter(self.take, None):
                    self.attempt(self.kind(self.program, cluster, between, number, agents), None)


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("kills after every write", problem)
        return tap.done()
    for kind in (Life, Asked):
        kills = Kills(drover.programs()[0], kind)
        wrong = kills.run()
        print(f"# {kills.killed} kills")
        tap.test(kind.title, wrong)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
