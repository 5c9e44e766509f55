# SPDX-License-Identifier: Apache-2.0
"""Who held a claim and who was out of service, at every revision of the API server.

The server's own revisions give the order, not anybody's clock: the audit log keeps what each write
made of its object, whoever wrote it.

    with plane.Cluster("name", audit=ledger.POLICY) as cluster:
        log = ledger.Log(cluster.audit_file)
        ...
        ledger.check(log.more(), "skyhook", nodes, budget)
"""

import json

import audit

KINDS = ("nodes", "jobs", "skyhooks")
POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [
        {"level": "Metadata", "userGroups": ["drover"], "verbs": ["get", "list", "watch"]},
        {"level": "RequestResponse", "userGroups": ["drover"]},
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "RequestResponse", "resources": [
            {"group": "", "resources": ["nodes", "nodes/status"]},
            {"group": "batch", "resources": ["jobs", "jobs/status"]},
            {"group": "skyhook.nvidia.com", "resources": ["skyhooks", "skyhooks/status"]}]},
        {"level": "Metadata"},
    ],
}
ENDS = ("Complete", "SuccessCriteriaMet", "Failed", "FailureTarget")
PREFIX = "skyhook.nvidia.com/"
NAME = PREFIX + "name"


class Log:
    """The audit log, from where it was read to last."""

    def __init__(self, path):
        self.path = path
        self.at = 0

    def more(self):
        found = []
        with open(self.path, "rb") as log:
            log.seek(self.at)
            for line in log:
                if not line.endswith(b"\n"):
                    break  # still being written
                self.at += len(line)
                entry = json.loads(line)
                if entry["stage"] == "ResponseComplete" and entry["verb"] in audit.WRITES:
                    found.append(entry)
        return found


def revisions(entries):
    """(revision, kind, object) of every write that took effect, in the server's order. A deletion
    has no object, and comes behind what was known when the server told of it."""
    entries = [e for e in entries if e.get("objectRef", {}).get("resource") in KINDS]
    found = {(int(thing["metadata"]["resourceVersion"]), 0): (entry["objectRef"]["resource"], thing)
             for _, entry, thing in audit.stored(entries)}
    latest = 0
    for entry in entries:
        version = (entry.get("responseObject") or {}).get("metadata", {}).get("resourceVersion")
        if entry["responseStatus"].get("code", 0) >= 300:
            continue
        if version:
            latest = max(latest, int(version))
        elif entry["verb"] == "delete":
            reference = entry["objectRef"]
            found[latest, len(found)] = (reference["resource"],
                                         {"metadata": {"name": reference["name"]}})
    return [(version[0], *found[version]) for version in sorted(found)]


def claims(thing):
    held = set()
    for group in thing.get("status", {}).get("compartmentStatuses", {}).values():
        state = group.get("batchState", {})
        held.update(state.get("members") or [])
        held.update(state.get("retrying") or [])
    return held


def is_over(job):
    return any(one["type"] in ENDS and one["status"] == "True"
               for one in job.get("status", {}).get("conditions", []))


class Fleet:
    """What is known of it, and of one Skyhook, at one revision."""

    def __init__(self, name, nodes, keep=False):
        self.name = name
        self.nodes = set(nodes)
        self.keep = keep     # failedNodesHoldBudget
        self.claimed = set()
        self.cordoned = set()
        self.failed = set()  # and hold a place without a claim: if they are still held cordoned
        self.jobs = {}  # of those that have not ended: its node

    def take(self, kind, thing):
        name = thing["metadata"]["name"]
        if kind == "jobs" and "spec" not in thing:
            self.jobs.pop(name, None)
        elif kind == "nodes" and "spec" not in thing:
            self.nodes.discard(name)
            self.cordoned.discard(name)
            self.failed.discard(name)
            self.jobs = {job: on for job, on in self.jobs.items() if on != name}
        elif kind == "skyhooks" and name == self.name:
            self.claimed = claims(thing)
        elif kind == "nodes" and name in self.nodes:
            cordoned = thing["spec"].get("unschedulable", False)
            notes = thing["metadata"].get("annotations", {})
            holds = self.keep or (cordoned and f"{PREFIX}cordon_{self.name}" in notes)
            # Who is blocked after it has failed keeps its place, too.
            word = notes.get(f"{PREFIX}status_{self.name}")
            failed = holds and (word == "erroring" or (
                word == "blocked" and '"erroring"' in notes.get(
                    f"{PREFIX}nodeState_{self.name}", "")))
            for where, belongs in ((self.cordoned, cordoned), (self.failed, failed)):
                (where.add if belongs else where.discard)(name)
        elif kind == "jobs" and thing["metadata"].get("labels", {}).get(NAME) == self.name:
            self.jobs[name] = thing["spec"]["template"]["spec"]["nodeName"]
            if is_over(thing):
                del self.jobs[name]

    def holders(self):
        return self.claimed | self.failed

    def disturbed(self):
        return self.cordoned | set(self.jobs.values())


def check(entries, name, nodes, budget):
    """At every revision: no more claims, and failed nodes that hold a place, than the budget, and
    nobody else disturbed. Returns the most claims at once."""
    return check_shared(entries, [Fleet(name, nodes)], {name: budget})[name]


def check_shared(entries, fleets, budgets):
    """The same of Skyhooks on the same nodes: each keeps to its own budget, and has Jobs nowhere
    but where it holds a place; whoever is cordoned is held by one of them. Returns by their names
    the most who held places at once, with or without a claim."""
    most = {fleet.name: 0 for fleet in fleets}
    for version, kind, thing in revisions(entries):
        where = f"revision {version}, {kind} {thing['metadata']['name']}"
        for fleet in fleets:
            fleet.take(kind, thing)
            holders = fleet.holders()
            most[fleet.name] = max(most[fleet.name], len(holders))
            assert len(holders) <= budgets[fleet.name], f"{where}: {fleet.name}: {sorted(holders)}"
            without = set(fleet.jobs.values()) - holders
            assert not without, f"{where}: {fleet.name}: Jobs on {sorted(without)} without a claim"
        without = fleets[0].cordoned.difference(*(fleet.holders() for fleet in fleets))
        assert not without, f"{where}: {sorted(without)} cordoned without a claim"
    for fleet in fleets:
        assert not fleet.disturbed(), f"in the end: {sorted(fleet.disturbed())}"
    return most
