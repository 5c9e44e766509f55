#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of partitions of clusters, row by row, and the scenarios of the document on rollout
strategies, on a real API server with agents that are played.

Every row is a Bundle of its own on the same 240 clusters, side by side. Agents that are prompt
answer as soon as they see a release. What is looked at: who got the version, in which order, by how
many at once, in the audit log; and the status at the end. How many are released in one pass is
looked at where agents are silent: an answer that comes in time begins another pass. Rows that are
named are the only ones that run. TAP."""

import collections
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import audit
import binaries
import drover
import hub

CLUSTERS = 240
PAUSED = 20  # clusters of which the first is paused, apart from the others
STEPS = (3, 6, 20, 25, 30, 50, 80, 100, 200, 230, 240)
PATIENCE = 400
WRITES_AT_ONCE = 100

Row = collections.namedtuple("Row", [
    "clusters", "strategy", "prompt", "released", "up_to_date", "not_ready", "fresh", "manual",
    "offline", "broken", "paused", "own", "said"])


def row(clusters, strategy, released, end, fresh=True, prompt=False, **more):
    """released: how many get the version at all. end: up to date, partitions that are not ready.
    fresh: True, False, or how many are. said: where the document on strategies says it."""
    # pylint: disable=too-many-arguments
    usual = {"manual": (), "offline": 0, "broken": 0, "paused": 0, "own": (), "said": ""}
    return Row(clusters=clusters, strategy=strategy, prompt=prompt, released=released,
               up_to_date=end[0], not_ready=end[1], fresh=fresh, **{**usual, **more})


def old(*words, **more):
    return row(*words, fresh=False, **more)


STRICT = {"maxUnavailable": 0, "maxUnavailablePartitions": 0}
STORM = {"maxUnavailable": "10%", "maxUnavailablePartitions": 0}
TENTH = {"maxUnavailable": "10%"}
FIVE = (40, 40, 40, 40, 40)
ROWS = {
    "P01": row(50, TENTH, 50, (0, 1), said="50 clusters, single partition"),
    "P02": row(100, TENTH, 50, (0, 1), said="100 clusters, single partition: the first 50"),
    "P03": row(100, TENTH, 100, (100, 0), prompt=True, said="100 clusters, single partition"),
    "P04": old(100, TENTH, 10, (0, 1)),
    "P06": old(100, {"maxUnavailable": 0}, 100, (100, 0), prompt=True),
    "P07": row(200, None, 200, (0, 0), said="defaults: 4 partitions, no readiness is waited for"),
    "P08": old(200, None, 200, (0, 0), said="defaults, an update"),
    "P09": row(200, {"maxUnavailablePartitions": 1, "autoPartitionSize": "10%"}, 200, (0, 0),
               said="200 clusters, multiple partitions"),
    "P10": row(200, {"maxUnavailablePartitions": 1, "autoPartitionSize": "10%",
                     "maxUnavailable": 0}, 40, (0, 2),
               said="200 clusters, multiple partitions: about 40 images at a time"),
    "P12": old(200, {"maxUnavailablePartitions": 1, "autoPartitionSize": "10%",
                     "maxUnavailable": 0}, 200, (200, 0), prompt=True),
    "P13": old(200, {"maxUnavailable": "10%", "autoPartitionSize": "10%"}, 2, (0, 1)),
    "P15": old(200, {"maxUnavailable": "10%", "autoPartitionSize": "10%"}, 2, (0, 1), prompt=True,
               offline=2, said="a cluster that is offline is not ready until it is back"),
    "P17": row(240, {"autoPartitionSize": 60, "maxUnavailable": "50%"}, 50, (0, 1)),
    "P19": row(200, STRICT, 200, (200, 0), prompt=True, manual=(20, 180),
               said="200 clusters, strict readiness, manual partitions"),
    "P20": old(200, STRICT, 200, (200, 0), prompt=True, manual=(20, 180),
               said="200 clusters, strict readiness, manual partitions, an update"),
    "P23": old(230, TENTH, 230, (230, 0), prompt=True, said="230 clusters: 57 x 4 and 2"),
    "P26": row(30, {"maxNew": 10, "maxUnavailable": 0}, 10, (0, 1)),
    "P27": row(30, {"maxNew": 10, "maxUnavailable": 0}, 30, (30, 0), prompt=True),
    "P28": row(200, STORM, 200, (200, 0), prompt=True, manual=FIVE, said="image pull storms"),
    "P29": row(3, {"autoPartitionThreshold": 1, "autoPartitionSize": 1, "maxUnavailable": 0}, 3,
               (3, 0), prompt=True),
    "P30": row(6, {}, 4, (4, 0), prompt=True, manual=(4,),
               said="clusters in no manual partition are left out"),
    "P31": old(20, {"maxUnavailable": 2}, 2, (0, 1), prompt=True, broken=2),
    "P33": old(200, {"autoPartitionSize": 20, "maxUnavailable": "10%",
                     "maxUnavailablePartitions": "10%"}, 4, (0, 2)),
    "P36": row(25, {"maxUnavailable": 5}, 25, (0, 1), said="25 clusters and maxUnavailable 5"),
    "P37": old(25, {"maxUnavailable": 5}, 25, (25, 0), prompt=True),
    "P38": row(100, TENTH, 50, (40, 1), prompt=True, offline=10,
               said="10 of 100 unavailable pause the other 50"),
    "P40": row(200, STORM, 200, (196, 0), prompt=True, manual=FIVE, offline=4,
               said="image pull storms: mostly ready is ready"),
    "P42": old(200, STORM, 200, (200, 0), prompt=True, manual=FIVE,
               said="image pull storms, an update"),
    "P43": old(100, TENTH, 25, (0, 1), manual=(50, 50), own=("50%",)),
    "P44": row(20, {"maxUnavailable": 0}, 19, (19, 0), prompt=True, manual=(10, 10), paused=1),
    "P46": row(100, TENTH, 20, (0, 1), fresh=20),
    "D01": old(100, {}, 100, (100, 0), prompt=True, manual=(50, 50), own=("10%", "5%"),
               said="manual partitioning, demoRollout 10% and stable 5%"),
    "P48": row(100, TENTH, 100, (100, 0), fresh=20, prompt=True),
}


# ---- the fleet

def labels(number):
    """By these every Bundle and every manual partition finds its clusters."""
    found = {f"below-{step}": "yes" for step in STEPS if number < step}
    for sizes in {one.manual for one in ROWS.values() if one.manual}:
        first = 0
        for index, size in enumerate(sizes):
            if first <= number < first + size:
                found["of-" + "-".join(map(str, sizes))] = f"p{index}"
            first += size
    if 20 <= number < 100:
        found["from-20-to-100"] = "yes"
    return {**found, "set": "one"}


def partitions(one):
    key = "of-" + "-".join(map(str, one.manual))
    made = [{"name": f"p{index}", "clusterSelector": {"matchLabels": {key: f"p{index}"}}}
            for index in range(len(one.manual))]
    for partition, limit in zip(made, one.own):
        partition["maxUnavailable"] = limit
    return made


def strategy(one):
    if not one.manual:
        return one.strategy
    return {**(one.strategy or {}), "partitions": partitions(one)}


def targets(one, key=None):
    chosen = {key or f"below-{one.clusters}": "yes", "set": "two" if one.paused else "one"}
    return [{"clusterSelector": {"matchLabels": chosen}}]


def name_of(number, one):
    return f"c{number + (CLUSTERS if one.paused else 0):04d}"


def homes(one):
    return [hub.home(name_of(number, one)) for number in range(one.clusters)]


# ---- one row

class Story:
    """A row on its way."""

    def __init__(self, cluster, agents, identity):
        self.cluster, self.agents, self.identity = cluster, agents, identity
        self.row = ROWS[identity]
        self.name = identity.lower()

    def prepare(self):
        """The version that clusters run before, without limits."""
        one = self.row
        if one.fresh is True:
            return
        document = hub.bundle(self.name, "one")
        document["spec"]["targets"] = targets(one, "from-20-to-100" if one.fresh else None)
        self.cluster.api.create("bundles", document, hub.SPACE)

    def prepared(self):
        one = self.row
        if one.fresh is True:
            return
        hub.wait_ready(self.cluster, self.name, one.clusters - (one.fresh or 0), PATIENCE)
        for where in homes(one)[:one.broken]:
            self.agents.client.patch("bundledeployments", self.name, {"status": {
                "ready": False, "nonReadyStatus": [{"kind": "Deployment", "name": "a"}]}}, where,
                "status")

    def begin(self):
        one = self.row
        for where in homes(one)[:one.offline + one.broken]:
            self.agents.broken[where, self.name] = "silent"
        if not one.prompt:
            self.agents.broken[self.name] = "silent"
        spec = {"resources": hub.resources("two"), "targets": targets(one),
                "rolloutStrategy": strategy(one)}
        if one.fresh is True:
            document = hub.bundle(self.name, "two")
            document["spec"].update(spec)
            self.cluster.api.create("bundles", document, hub.SPACE)
        else:
            self.cluster.api.patch("bundles", self.name, {"spec": spec}, hub.SPACE)

    def status(self):
        found = self.cluster.api.get("bundles", self.name, hub.SPACE)
        shown = found.get("status", {})
        return shown if shown.get("observedGeneration") == found["metadata"]["generation"] else {}

    def up_to_date(self):
        shown = self.status()
        counts = shown.get("summary", {})
        return counts.get("ready", 0), shown.get("unavailablePartitions")

    def ended(self):
        one = self.row

        def there():
            shown = self.status()
            ready = shown.get("summary", {}).get("ready", 0)
            released = sum(shown.get("summary", {}).get(key, 0) for key in (
                "ready", "waitApplied", "errApplied", "notReady", "modified"))
            return released >= one.released and ready >= one.up_to_date and shown
        api.wait_until(f"{self.identity}: {one.up_to_date} are up to date", there, PATIENCE)

    def check(self, history, since):
        one = self.row
        ready, not_ready = self.up_to_date()
        assert ready == one.up_to_date, f"{ready} are up to date, expected {one.up_to_date}"
        assert not_ready == one.not_ready, f"{not_ready} partitions are not ready"
        seen = Seen(self, history, since)
        assert seen.released == one.released, f"{seen.released} were released"
        seen.check()


# ---- what the audit log says

def percent(limit, count):
    if limit is None:
        return count
    if isinstance(limit, int):
        return limit
    return max(1, count * int(limit[:-1]) // 100)


def cut(one):
    """Sizes of partitions and their own limits, in order."""
    plan = one.strategy or {}
    if one.manual:
        sizes = one.manual
    elif one.clusters < plan.get("autoPartitionThreshold", 200):
        sizes = (one.clusters,)
    else:
        size = percent(plan.get("autoPartitionSize", "25%"), one.clusters)
        sizes = [size] * (one.clusters // size) + [one.clusters % size] * bool(one.clusters % size)
    limits = list(one.own) + [plan.get("maxUnavailable")] * (len(sizes) - len(one.own))
    return [(size, max(1, percent(limit, size))) for size, limit in zip(sizes, limits)]


class Seen:
    """One row in the order in which the server stored it: how many were unavailable at once in each
    partition because they were updated, and how many first deployments went out together."""

    def __init__(self, story, history, since):
        self.row = story.row
        self.parts = cut(self.row)
        self.part_of = {}
        number = 0
        for index, (size, _) in enumerate(self.parts):
            for _ in range(size):
                self.part_of[hub.home(name_of(number, self.row))] = index
                number += 1
        self.bad = {}       # namespace -> part of it is unavailable
        self.most = [0] * len(self.parts)
        self.most_all = 0
        self.live = {}
        self.released = 0
        self.updated = 0
        self.order = []
        for number, thing in history.get(story.name, []):
            self.take(thing, number >= since)

    def take(self, thing, counts):
        where, live = thing["metadata"]["namespace"], thing["spec"].get("deploymentID")
        status = thing.get("status", {})
        fresh, bad = where not in self.live, status.get("appliedDeploymentID") != live or \
            not status.get("ready")
        was_bad = self.bad.get(where, False)
        if counts and self.live.get(where) != live:
            self.released += 1
            self.order.append(where)
            self.updated += not fresh and not was_bad
        self.live[where] = live
        self.bad[where] = bad
        # Only who ran before and was well is held to the limit; a first deployment is not.
        if counts and not fresh and bad and not was_bad:
            now = collections.Counter(self.part_of[one] for one, is_bad in self.bad.items()
                                      if is_bad and one in self.part_of)
            for index in range(len(self.parts)):
                self.most[index] = max(self.most[index], now[index])
            self.most_all = max(self.most_all, sum(now.values()))

    def check(self):
        plan = self.row.strategy or {}
        if self.updated:
            for index, (_, limit) in enumerate(self.parts):
                assert self.most[index] <= limit, \
                    f"{self.most[index]} unavailable in partition {index}, allowed {limit}"
            whole = max(1, percent(plan.get("maxUnavailable"), self.row.clusters))
            assert self.row.own or self.most_all <= whole, f"{self.most_all} unavailable"
        # Partitions begin in order. Those that do not wait for each other are released together,
        # and as many writes as are under way at once reach the server in no order.
        begun = [self.part_of[where] for where in self.order if where in self.part_of]
        firsts = [begun.index(index) for index in range(len(self.parts)) if index in begun]
        waits = "maxUnavailable" in plan and plan.get("maxUnavailablePartitions", 0) == 0
        slack = 0 if waits else WRITES_AT_ONCE
        late = [at for number, at in enumerate(firsts) if at + slack < max(firsts[:number + 1])]
        assert not late, f"partitions began in the order {firsts}"
        if self.row.prompt and plan.get("maxUnavailable") == 0 and not self.row.broken and \
                plan.get("maxUnavailablePartitions", 0) == 0:
            assert begun == sorted(begun), "a partition began before the one ahead was ready"


def read_history(cluster):
    """By Bundle: every state of its deployments, in the order of their versions."""
    stored = collections.defaultdict(dict)
    for number, entry in enumerate(audit.entries(cluster.audit_file)):
        thing = entry.get("responseObject", {})
        if thing.get("kind") == "BundleDeployment":
            meta = thing["metadata"]
            stored[meta["name"]].setdefault(int(meta["resourceVersion"]), (number, thing))
    return {name: [found[version] for version in sorted(found)] for name, found in stored.items()}


# ---- all of them

def attempt(acts, wrong):
    """Does it for every row that nothing is wrong with yet."""
    for identity, act in acts.items():
        if wrong.get(identity):
            continue
        try:
            act()
        except Exception as error:  # pylint: disable=broad-exception-caught
            wrong[identity] = f"{type(error).__name__}: {error}"


def run(cluster, agents, tap):
    wrong = {}
    chosen = {i: one for i, one in ROWS.items() if len(sys.argv) == 1 or i in sys.argv}
    stories = {identity: Story(cluster, agents, identity) for identity in chosen}
    attempt({i: story.prepare for i, story in stories.items()}, wrong)
    attempt({i: story.prepared for i, story in stories.items()}, wrong)
    cluster.wait_quiet()
    since = hub.mark(cluster)
    attempt({i: story.begin for i, story in stories.items()}, wrong)
    attempt({i: story.ended for i, story in stories.items()}, wrong)
    time.sleep(3)  # nothing more is released
    cluster.wait_quiet()
    history = read_history(cluster)
    attempt({i: (lambda one=story: one.check(history, since)) for i, story in stories.items()},
            wrong)
    for identity, one in chosen.items():
        where = [f"semantics.md B {identity}"] if identity.startswith("P") else []
        tap.test("; ".join(where + [f"the document: {one.said}"] * bool(one.said)),
                 wrong.get(identity))
    if wrong:
        cluster.fail()


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("rows of partitions on a hub", problem)
        return tap.done()
    program = drover.programs()[0]
    with hub.open_hub("check-full-fleet-rows") as cluster:
        hub.prepare(cluster, program)
        hub.add_clusters(cluster, CLUSTERS, labels)
        hub.add_clusters(cluster, PAUSED, lambda number: {
            **labels(number - CLUSTERS), "set": "two"}, first=CLUSTERS)
        cluster.api.patch("clusters", f"c{CLUSTERS:04d}", {"spec": {"paused": True}}, hub.SPACE)
        with hub.operator(program, cluster), hub.Agents(cluster, 0) as agents:
            run(cluster, agents, tap)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
