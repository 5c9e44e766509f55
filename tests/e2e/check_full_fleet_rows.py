#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of partitions of clusters, row by row, and the scenarios of the document on rollout
strategies, on a real API server with agents that are played.

Every row is a Bundle of its own on the same 240 clusters, side by side. Agents that are prompt
answer all at once, when the controller has released what it may: so what it releases from one time
to the next is what the table says of a pass. Where they are silent, passes follow each other, and
only all of them together can be seen. What is looked at besides: that whoever got the version is
ahead of whoever did not, in each partition, after each pass; in the audit log how many were
unavailable at once; and the status at the end. Rows that are named are the only ones that run.
TAP."""

import collections
import concurrent.futures
import os
import pathlib
import re
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
SETTLE = 0.25  # seconds after which whatever is released has been
TURNS = 8      # answers that are sent at once, of a row

Row = collections.namedtuple("Row", [
    "clusters", "strategy", "prompt", "passes", "up_to_date", "not_ready", "fresh", "manual", "by",
    "offline", "broken", "paused", "own", "said"])


def row(clusters, strategy, passes, end, fresh=True, prompt=False, **more):
    """passes: what each releases, as in the table: C created, U updated, F fixed. end: up to date,
    partitions that are not ready. fresh: True, False, or how many are. by: how the first partitions
    find their clusters, the others by labels. said: where the document on strategies says it."""
    # pylint: disable=too-many-arguments
    usual = {"manual": (), "by": (), "offline": 0, "broken": 0, "paused": 0, "own": (), "said": ""}
    return Row(clusters=clusters, strategy=strategy, prompt=prompt, passes=passes,
               up_to_date=end[0], not_ready=end[1], fresh=fresh, **{**usual, **more})


def old(*words, **more):
    return row(*words, fresh=False, **more)


STRICT = {"maxUnavailable": 0, "maxUnavailablePartitions": 0}
STORM = {"maxUnavailable": "10%", "maxUnavailablePartitions": 0}
TENTH = {"maxUnavailable": "10%"}
FIVE = (40, 40, 40, 40, 40)
EACH = (1, 5, 6, 8)
RINGS = {"second": 1, "third": 2}  # ClusterGroups of those: which partition their clusters are
ROWS = {
    "P01": row(50, TENTH, "C50; 0", (0, 1), said="50 clusters, single partition"),
    "P02": row(100, TENTH, "C50; 0", (0, 1), said="100 clusters, single partition: the first 50"),
    "P03": row(100, TENTH, "C50 x2; 0", (100, 0), prompt=True,
               said="100 clusters, single partition"),
    "P04": old(100, TENTH, "U10; 0", (0, 1)),
    "P06": old(100, {"maxUnavailable": 0}, "U1 x100; 0", (100, 0), prompt=True),
    "P07": row(200, None, "C50 x4; 0", (0, 0),
               said="defaults: 4 partitions, no readiness is waited for"),
    "P08": old(200, None, "U50 x4; 0", (0, 0), said="defaults, an update"),
    "P09": row(200, {"maxUnavailablePartitions": 1, "autoPartitionSize": "10%"}, "C50 x4; 0",
               (0, 0),
               said="200 clusters, multiple partitions"),
    "P10": row(200, {"maxUnavailablePartitions": 1, "autoPartitionSize": "10%",
                     "maxUnavailable": 0}, "C40; 0", (0, 2),
               said="200 clusters, multiple partitions: about 40 images at a time"),
    "P12": old(200, {"maxUnavailablePartitions": 1, "autoPartitionSize": "10%",
                     "maxUnavailable": 0}, "U1 x200; 0", (200, 0), prompt=True),
    "P13": old(200, {"maxUnavailable": "10%", "autoPartitionSize": "10%"}, "U2; 0", (0, 1)),
    "P15": old(200, {"maxUnavailable": "10%", "autoPartitionSize": "10%"}, "U2; 0", (0, 1),
               prompt=True,
               offline=2, said="a cluster that is offline is not ready until it is back"),
    "P17": row(240, {"autoPartitionSize": 60, "maxUnavailable": "50%"}, "C50; 0", (0, 1)),
    "P19": row(200, STRICT, "C20; C50 x3; C30; 0", (200, 0), prompt=True, manual=(20, 180),
               said="200 clusters, strict readiness, manual partitions"),
    "P20": old(200, STRICT, "U1 x200; 0", (200, 0), prompt=True, manual=(20, 180),
               said="200 clusters, strict readiness, manual partitions, an update"),
    "P23": old(230, TENTH, "U5 x11; U7; U5 x10; U7; U5 x10; U7; U5 x10; U3; U1; 0", (230, 0),
               prompt=True, said="230 clusters: 57 x 4 and 2"),
    "P26": row(30, {"maxNew": 10, "maxUnavailable": 0}, "C10; 0", (0, 1)),
    "P27": row(30, {"maxNew": 10, "maxUnavailable": 0}, "C10 x3; 0", (30, 0), prompt=True),
    "P28": row(200, STORM, "C40 x5; 0", (200, 0), prompt=True, manual=FIVE,
               said="image pull storms"),
    "P29": row(3, {"autoPartitionThreshold": 1, "autoPartitionSize": 1, "maxUnavailable": 0},
               "C1 x3; 0", (3, 0), prompt=True),
    "P30": row(6, {}, "C4; 0", (4, 0), prompt=True, manual=(4,),
               said="clusters in no manual partition are left out"),
    "P31": old(20, {"maxUnavailable": 2}, "F2; 0", (0, 1), prompt=True, broken=2),
    "P33": old(200, {"autoPartitionSize": 20, "maxUnavailable": "10%",
                     "maxUnavailablePartitions": "10%"}, "U4; 0", (0, 2)),
    "P36": row(25, {"maxUnavailable": 5}, "C25; 0", (0, 1),
               said="25 clusters and maxUnavailable 5"),
    "P37": old(25, {"maxUnavailable": 5}, "U5 x5; 0", (25, 0), prompt=True),
    "P38": row(100, TENTH, "C50; 0", (40, 1), prompt=True, offline=10,
               said="10 of 100 unavailable pause the other 50"),
    "P40": row(200, STORM, "C40 x5; 0", (196, 0), prompt=True, manual=FIVE, offline=4,
               said="image pull storms: mostly ready is ready"),
    "P42": old(200, STORM, "U4 x9; U8; U4 x8; U8; U4 x8; U8; U4 x8; U8; U4 x9; 0", (200, 0),
               prompt=True, manual=FIVE,
               said="image pull storms, an update"),
    "P43": old(100, TENTH, "U25; 0", (0, 1), manual=(50, 50), own=("50%",)),
    "P44": row(20, {"maxUnavailable": 0}, "C9; C10; 0", (19, 0), prompt=True, manual=(10, 10),
               paused=1),
    "P46": row(100, TENTH, "C20; 0", (0, 1), fresh=20),
    "D01": old(100, {}, "U5 x9; U7; U2 x24; 0", (100, 0), prompt=True,
               manual=(50, 50), own=("10%", "5%"),
               said="manual partitioning, demoRollout 10% and stable 5%"),
    "D02": row(20, STRICT, "C1; C5; C6; C8; 0", (20, 0), prompt=True, manual=EACH,
               by=({"clusterName": "c0000"},
                   {"clusterGroupSelector": {"matchLabels": {"ring": "second"}}},
                   {"clusterGroup": "third"}),
               said="partitions by clusterName, clusterGroupSelector, clusterGroup and "
                    "clusterSelector"),
    "D03": row(20, {**STRICT, "autoPartitionThreshold": 1, "autoPartitionSize": 1},
               "C10 x2; 0", (20, 0), prompt=True, manual=(10, 10),
               said="autoPartitionSize is ignored where partitions are set"),
    "D04": row(100, TENTH, "C50 x2; 0", (91, 0), prompt=True, offline=9,
               said="less than 10 of 100 that are NotReady do not pause the other 50"),
    "P48": row(100, TENTH, "C20; U10 x8; 0", (100, 0), fresh=20, prompt=True),
}




# ---- the fleet

def labels(number):
    """By these every Bundle and every manual partition finds its clusters."""
    found = {f"below-{step}": "yes" for step in STEPS if number < step}
    for sizes in {one.manual for one in ROWS.values() if one.manual}:
        first = 0
        for index, size in enumerate(sizes):
            if first <= number < first + size:
                found[parts_key(sizes)] = f"p{index}"
            first += size
    if 20 <= number < 100:
        found["from-20-to-100"] = "yes"
    return {**found, "set": "one"}


def parts_key(sizes):
    return "of-" + "-".join(map(str, sizes))


def partitions(one):
    key = parts_key(one.manual)
    made = [{"clusterSelector": {"matchLabels": {key: f"p{index}"}}}
            for index in range(len(one.manual))]
    made[:len(one.by)] = one.by
    made = [{"name": f"p{index}", **found} for index, found in enumerate(made)]
    for partition, limit in zip(made, one.own):
        partition["maxUnavailable"] = limit
    return made


def strategy(one):
    if not one.manual:
        return one.strategy
    return {**(one.strategy or {}), "partitions": partitions(one)}


def add_groups(cluster):
    for name, index in RINGS.items():
        cluster.api.create("clustergroups", {
            "apiVersion": "fleet.cattle.io/v1alpha1", "kind": "ClusterGroup",
            "metadata": {"name": name, "namespace": hub.SPACE, "labels": {"ring": name}},
            "spec": {"selector": {"matchLabels": {
                parts_key(EACH): f"p{index}", "set": "one"}}}}, hub.SPACE)


def targets(one, key=None):
    chosen = {key or f"below-{one.clusters}": "yes", "set": "two" if one.paused else "one"}
    return [{"clusterSelector": {"matchLabels": chosen}}]


def name_of(number, one):
    return f"c{number + (CLUSTERS if one.paused else 0):04d}"


def homes(one):
    return [hub.home(name_of(number, one)) for number in range(one.clusters)]


# ---- one row

def passes_of(text):
    """What each pass releases: {"C": 50}. The last one, which releases nothing, is left out."""
    found = []
    for kind, count, times in re.findall(r"([CUF])(\d+)(?: x(\d+))?", text):
        found += [{kind: int(count)}] * int(times or 1)
    return found


class Story:
    """A row on its way."""

    def __init__(self, cluster, agents, identity):
        self.cluster, self.agents, self.identity = cluster, agents, identity
        self.row = ROWS[identity]
        self.name = identity.lower()
        self.parts = cut(self.row)
        self.before = {}    # namespace -> the version before, and whether it was ready
        self.released = {}  # namespace -> the new version

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
        for where, deployment in hub.deployments(self.cluster, self.name).items():
            self.before[where] = (deployment["spec"]["deploymentID"], True)
        for where in homes(one)[:one.broken]:
            self.before[where] = (self.before[where][0], False)
            self.report(where, self.before[where][0])

    def begin(self):
        one = self.row
        self.agents.broken[self.name] = "silent"  # they answer when they are told to
        spec = {"resources": hub.resources("two"), "targets": targets(one),
                "rolloutStrategy": strategy(one)}
        if one.fresh is True:
            document = hub.bundle(self.name, "two")
            document["spec"].update(spec)
            self.cluster.api.create("bundles", document, hub.SPACE)
        else:
            self.cluster.api.patch("bundles", self.name, {"spec": spec}, hub.SPACE)

    def play(self):
        """Pass for pass. Where nobody answers, all passes are one."""
        wanted = passes_of(self.row.passes)
        if not self.row.prompt:
            wanted = [collections.Counter()]
            for one in passes_of(self.row.passes):
                wanted[0].update(one)
        with concurrent.futures.ThreadPoolExecutor(TURNS) as pool:
            for number, count in enumerate(wanted):
                found = self.next_pass(sum(count.values()))
                kinds = dict(collections.Counter(self.kind(where) for where in found))
                assert kinds == dict(count), f"pass {number + 1}: {kinds}, expected {dict(count)}"
                self.check_order()
                if self.row.prompt:
                    list(pool.map(self.answer, found))
        more = self.next_pass(0)
        assert not more, f"{len(more)} more were released"

    def next_pass(self, count):
        """Who was released since the last one: as many as are expected, or more."""
        def fresh():
            with self.agents.lock:
                seen = {key[0]: live for key, live in self.agents.seen.items()
                        if key[1] == self.name}
            return {where: live for where, live in seen.items() if where not in self.released and
                    self.before.get(where, ("",))[0] != live}
        if count:
            api.wait_until(f"{self.identity}: {count} are released",
                           lambda: len(fresh()) >= count, PATIENCE)
        time.sleep(SETTLE)
        found = fresh()
        self.released.update(found)
        return found

    def kind(self, where):
        if where not in self.before:
            return "C"
        return "U" if self.before[where][1] else "F"

    def check_order(self):
        """In a partition nobody comes before who is ahead, but for who is paused."""
        number = 0
        for index, (size, _) in enumerate(self.parts):
            members = homes(self.row)[number:number + size]
            number += size
            given = [where in self.released for where in members if where not in self.paused()]
            assert given == sorted(given, reverse=True), f"partition {index}: {given}"

    def paused(self):
        return homes(self.row)[:self.row.paused]

    def answer(self, where):
        if where not in homes(self.row)[:self.row.offline]:
            self.report(where, self.released[where])

    def report(self, where, live):
        """It runs the version, and is well unless it is one that stays broken."""
        if where not in homes(self.row)[:self.row.broken]:
            self.agents.report((where, self.name), live, None)
            return
        self.agents.client.patch("bundledeployments", self.name, {"status": {
            "appliedDeploymentID": live, "ready": False, "nonModified": True,
            "nonReadyStatus": [{"kind": "Deployment", "name": "a"}]}}, where, "status")

    # ---- its end

    def status(self):
        found = self.cluster.api.get("bundles", self.name, hub.SPACE)
        shown = found.get("status", {})
        return shown if shown.get("observedGeneration") == found["metadata"]["generation"] else {}

    def ended(self):
        def there():
            shown = self.status()
            return shown.get("summary", {}).get("ready", 0) >= self.row.up_to_date and shown
        api.wait_until(f"{self.identity}: {self.row.up_to_date} are up to date", there, PATIENCE)

    def check(self, history, since):
        one, shown = self.row, self.status()
        counts = shown["summary"]
        assert counts["ready"] == one.up_to_date, f"{counts}, expected {one.up_to_date} ready"
        assert shown["unavailablePartitions"] == one.not_ready, shown["unavailablePartitions"]
        assert counts["desiredReady"] == one.clusters, counts
        held = [where for where in homes(one) if where not in self.released]
        old_ones = sum(where in self.before for where in held)
        assert counts.get("outOfSync", 0) == old_ones, f"{counts}, {old_ones} are held back"
        assert counts.get("pending", 0) == len(held) - old_ones, f"{counts}, {len(held)} are held"
        self.check_partitions(shown["partitions"])
        seen = Seen(self, history, since)
        assert seen.released == len(self.released), f"{seen.released} were released"
        seen.check()

    def check_partitions(self, shown):
        one, first = self.row, 0
        assert len(shown) == len(self.parts), f"{len(shown)} partitions"
        for index, ((size, limit), part) in enumerate(zip(self.parts, shown)):
            name = f"p{index}" if one.manual else \
                f"Partition {first} - {first + size}" if is_cut(one) else "All"
            found = (part["name"], part["count"], part.get("maxUnavailable", 0))
            assert found == (name, size, limit), f"{found}, expected {name}, {size}, {limit}"
            first += size


# ---- what the audit log says

def percent(limit, count):
    if limit is None:
        return count
    if isinstance(limit, int):
        return min(limit, count)
    return max(1, count * int(limit[:-1]) // 100)


def is_cut(one):
    return one.clusters >= (one.strategy or {}).get("autoPartitionThreshold", 200)


def cut(one):
    """Sizes of partitions and their own limits, in order."""
    plan = one.strategy or {}
    if one.manual:
        sizes = one.manual
    elif not is_cut(one):
        sizes = (one.clusters,)
    else:
        size = percent(plan.get("autoPartitionSize", "25%"), one.clusters)
        sizes = [size] * (one.clusters // size) + [one.clusters % size] * bool(one.clusters % size)
    limits = list(one.own) + [plan.get("maxUnavailable")] * (len(sizes) - len(one.own))
    return [(size, percent(limit, size)) for size, limit in zip(sizes, limits)]


class Seen:
    """One row in the order in which the server stored it: how many were unavailable at once in each
    partition because they were updated, and how many first deployments went out together."""

    def __init__(self, story, history, since):
        self.row = story.row
        self.parts = story.parts
        self.part_of = {}
        number = 0
        for index, (size, _) in enumerate(self.parts):
            for _ in range(size):
                self.part_of[hub.home(name_of(number, self.row))] = index
                number += 1
        self.bad = {}  # namespace -> whether it is unavailable
        self.most = [0] * len(self.parts)
        self.most_fresh = [0] * len(self.parts)
        self.most_all = 0
        self.live = {}
        self.released = 0
        self.updated = 0
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
            self.updated += not fresh and not was_bad
        self.live[where] = live
        self.bad[where] = bad
        if not counts or not bad or was_bad:
            return
        now = collections.Counter(self.part_of[one] for one, is_bad in self.bad.items()
                                  if is_bad and one in self.part_of)
        # Only who ran before and was well is held to the limit; a first deployment is not.
        most = self.most_fresh if fresh else self.most
        for index in range(len(self.parts)):
            most[index] = max(most[index], now[index])
        if not fresh:
            self.most_all = max(self.most_all, sum(now.values()))

    def check(self):
        plan = self.row.strategy or {}
        for index, (_, limit) in enumerate(self.parts):
            limit = max(1, limit)
            assert self.most[index] <= limit, \
                f"{self.most[index]} unavailable in partition {index}, allowed {limit}"
            # The next batch begins when fewer than the limit are unavailable.
            batch = limit - 1 + plan.get("maxNew", 50)
            assert self.most_fresh[index] <= batch, \
                f"{self.most_fresh[index]} new at once in partition {index}, allowed {batch}"
        whole = max(1, percent(plan.get("maxUnavailable"), self.row.clusters))
        assert not self.updated or self.row.own or self.most_all <= whole, self.most_all


def read_history(cluster):
    """By Bundle: every state of its deployments, in the order of their versions."""
    found = collections.defaultdict(list)
    for number, thing in hub.stored(audit.entries(cluster.audit_file)):
        found[thing["metadata"]["name"]].append((number, thing))
    return found


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


def together(acts, wrong):
    """The same, all at once."""
    with concurrent.futures.ThreadPoolExecutor(len(acts) + 1) as pool:
        list(pool.map(lambda one: attempt({one[0]: one[1]}, wrong), acts.items()))


def run(cluster, agents, tap):
    wrong = {}
    chosen = {i: one for i, one in ROWS.items() if len(sys.argv) == 1 or i in sys.argv}
    stories = {identity: Story(cluster, agents, identity) for identity in chosen}
    attempt({i: story.prepare for i, story in stories.items()}, wrong)
    attempt({i: story.prepared for i, story in stories.items()}, wrong)
    cluster.wait_quiet()
    since = hub.mark(cluster)
    attempt({i: story.begin for i, story in stories.items()}, wrong)
    together({i: story.play for i, story in stories.items()}, wrong)
    attempt({i: story.ended for i, story in stories.items()}, wrong)
    time.sleep(2)  # statuses are written
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
        add_groups(cluster)
        hub.add_clusters(cluster, PAUSED, lambda number: {
            **labels(number - CLUSTERS), "set": "two"}, first=CLUSTERS)
        cluster.api.patch("clusters", f"c{CLUSTERS:04d}", {"spec": {"paused": True}}, hub.SPACE)
        with hub.operator(program, cluster), hub.Agents(cluster, 0) as agents:
            run(cluster, agents, tap)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
