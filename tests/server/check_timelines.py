#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The timelines T1 to T6 of brackets, slots and turns, for real: command jobs of tenths of a second
write down themselves when they began and ended, and that is held against what drover plan predicts
of the same documents with their hours and minutes. TAP."""

import json
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"
MINUTES = {"drain": 8, "os-patch": 3, "kubelet": 3, "containerd": 3, "uncordon": 1}
REAL_MINUTE = 0.2  # seconds that stand for a minute: a turn of 5 minutes is one second
PATIENCE = 240


def document(kind, name, spec, labels=None, **more):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": labels or {}},
            "spec": spec, **more}


def version(name, tag):
    return document("Version", f"{name}-{tag}", {"deployment": name, "tag": tag})


class Line:
    """One timeline: the same fleet, planned in minutes and run in tenths of a second."""

    def __init__(self, program, name, nodes, bracket, real_bracket, rules=(), real_rules=None):
        self.program = program
        self.name = name
        self.nodes = [f"node-{i}" for i in range(nodes)]
        self.bracket = bracket
        self.real_bracket = real_bracket
        self.rules = list(rules)
        self.real_rules = list(rules if real_rules is None else real_rules)
        self.server = servers.Server(program)
        self.problems = []

    def documents(self, bracket, rules, job):
        running = [{"deployment": name, "version": "1"} for name in MINUTES]
        layer = 'deployment.metadata["layer"] == "node"'
        items = [document("Environment", "prod", {"resourceSelector": "true"})]
        items += [document("Resource", name, {"kind": "host"}, {"cluster": "east"},
                           status={"releases": running}) for name in self.nodes]
        for name in MINUTES:
            items.append(document("Deployment", name, {"resourceSelector": "true",
                                  "job": job(name)}, {"layer": "node"}))
            one = version(name, "1")
            one["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
            items.append(one)
        dependency = {"dependsOn": 'deployment.name == "os-patch"',
                      "appliesTo": 'deployment.name in ["kubelet", "containerd"]'}
        items.append(document("RolloutPolicy", "nodes", {"selector": layer, "rules": [
            {"id": "bracket", "deploymentBracket": {
                "deploymentSelector": layer, "preSelector": 'deployment.name == "drain"',
                "postSelector": 'deployment.name == "uncordon"', **bracket}},
            {"deploymentDependency": dependency}, *rules]}))
        return {"apiVersion": "v1", "kind": "List", "items": items}

    # ---- what is predicted ----

    def plan(self, events, *words):
        folder = self.server.folder.parent
        fleet, happens = folder / "plan.json", folder / "events"
        fleet.write_text(json.dumps(self.documents(
            self.bracket, self.rules, lambda name: {"manual": {"instructions": name}})))
        happens.write_text("\n".join(json.dumps(event) for event in events))
        durations = [word for name, minutes in MINUTES.items()
                     for word in ("--duration", f"{name}={minutes}m")]
        result = drover.run(self.program, "plan", "-f", fleet, "--events", happens, "-o", "json",
                            *durations, *words)
        return json.loads(result.out)

    # ---- what happens ----

    def script(self, name):
        log = self.server.folder.parent / "log"
        seconds = MINUTES[name] * REAL_MINUTE
        return {"command": {"run": ["/bin/sh", "-c",
            f'say() {{ echo "$1 $DROVER_RESOURCE $DROVER_DEPLOYMENT $DROVER_VERSION" >> {log}; }}; '
            f'say start; sleep {seconds:.1f}; '
            f'if [ -e {log.parent}/fail-{name}-$DROVER_RESOURCE ]; then say fail; exit 1; fi; '
            f'say end']}}

    def begin(self):
        self.server.start()
        answer = self.server.request("POST", "/api/v1/apply", self.documents(
            self.real_bracket, self.real_rules, self.script))
        if answer.status != 200:
            raise RuntimeError(repr(answer))

    def publish(self, *what):
        for name, tag in what:
            self.server.request("POST", f"/api/v1/deployments/{name}/versions", {"tag": tag})

    def log(self):
        path = self.server.folder.parent / "log"
        return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() \
            else []

    def until(self, what, condition):
        if not servers.wait_for(condition, PATIENCE):
            self.problems.append(f"waited in vain for: {what}; the log is {self.log()}")

    def until_started(self, name, tag):
        self.until(f"{name} {tag} starts", lambda: any(
            entry[0] == "start" and entry[2:] == (name, tag) for entry in self.log()))

    def until_rest(self, count):
        """So many jobs have succeeded and none is open."""
        def rest():
            ended = sum(entry[0] == "end" for entry in self.log())
            return ended >= count and not self.server.request(
                "GET", "/api/v1/jobs?open=true").json["items"]
        self.until(f"{count} jobs and no more", rest)

    # ---- both together ----

    def compare(self, plan):
        """Each node's jobs in the order predicted, and the nodes too."""
        predicted = {}
        for job in sorted(plan["jobs"], key=lambda job: job["start"]):
            predicted.setdefault(job["resource"], []).append(
                (job["start"], job["deployment"], job["version"]))
        real, order = {}, []
        for kind, node, name, tag in self.log():
            if kind == "start":
                real.setdefault(node, []).append((name, tag))
                if node not in order:
                    order.append(node)
        firsts = [predicted[node][0][0] for node in order if node in predicted]
        if set(predicted) != set(order) or firsts != sorted(firsts):
            self.problems.append(f"nodes: predicted {list(predicted)}, in fact {order}")
        for node, jobs in predicted.items():
            self.compare_node(node, jobs, real.get(node, []))

    def compare_node(self, node, predicted, real):
        if sorted(job[1:] for job in predicted) != sorted(real):
            self.problems.append(f"{node}: predicted {predicted}, in fact {real}")
            return
        times = {}
        for start, *job in predicted:
            times.setdefault(tuple(job), []).append(start)
        starts = [times[job].pop(0) for job in real]
        if starts != sorted(starts):
            self.problems.append(f"{node}: predicted {predicted}, in fact {real}")

    def most_at_once(self, held_from="drain", held_until="uncordon"):
        held, most = set(), 0
        for kind, node, name, _ in self.log():
            if kind == "start" and name == held_from:
                held.add(node)
            if kind == "end" and name == held_until:
                held.discard(node)
            most = max(most, len(held))
        return most

    def check(self, name, expected, found):
        if expected != found:
            self.problems.append(f"{name}: expected {expected}, found {found}")


IMMEDIATE = {"readinessMode": "immediate"}


def window(seconds):
    return {"readinessMode": "collection_window", "readinessWindowSeconds": seconds}


def turns(seconds):
    return {"gradualRollout": {"rolloutType": "linear", "timeScaleInterval": seconds}}


TWENTY_PERCENT = {"resourceConcurrency": {"groupSelector": "true", "limitType": "percentage",
                                          "limitValue": 20}}


def publishes(*events):
    return [{"after": after, "do": "publish", "name": name, "version": tag}
            for after, name, tag in events]


def t1(program):
    line = Line(program, "T1: ten nodes, a window, 20 %, turns", 10, window(86400), window(3),
                [TWENTY_PERCENT, turns(300)], [TWENTY_PERCENT, turns(1)])
    plan = line.plan(publishes(("0s", "kubelet", "2"), ("5h", "containerd", "2"),
                               ("13h", "os-patch", "2")))
    starts = sorted(job["start"] - 86400 for job in plan["jobs"] if job["deployment"] == "drain")
    line.check("the plan's starts", [0, 5, 15, 20, 30, 35, 45, 50, 60, 65],
               [start // 60 for start in starts])
    line.begin()
    line.publish(("kubelet", "2"), ("containerd", "2"), ("os-patch", "2"))
    line.check("nothing before the lock", [], line.log())
    line.until_rest(50)
    line.compare(plan)
    line.check("at once", True, line.most_at_once() <= 2)
    return line


def t2(program):
    line = Line(program, "T2: only kubelet has a new version", 1, window(86400), window(1))
    plan = line.plan(publishes(("0s", "kubelet", "2")))
    line.check("jobs of the plan", 3, len(plan["jobs"]))
    line.begin()
    line.publish(("kubelet", "2"))
    line.until_rest(3)
    line.compare(plan)
    return line


def t3(program, overlap, jobs):
    bracket = {**IMMEDIATE, "overlapStrategy": overlap}
    line = Line(program, f"T3: a second group, {overlap}", 1, bracket, bracket)
    plan = line.plan(publishes(("0s", "kubelet", "2"), ("9m", "containerd", "2")))
    line.check("jobs of the plan", jobs, len(plan["jobs"]))
    line.begin()
    line.publish(("kubelet", "2"))
    line.until_started("kubelet", "2")
    line.publish(("containerd", "2"))
    line.until_rest(jobs)
    line.compare(plan)
    return line


def t4(program):
    one = {"resourceConcurrency": {"groupSelector": "true", "limitType": "count", "limitValue": 1}}
    line = Line(program, "T4: kubelet fails", 2, IMMEDIATE, IMMEDIATE, [one])
    plan = line.plan(publishes(("0s", "kubelet", "2")) + [
        {"after": "2h", "do": "retry", "name": "kubelet", "target": "node-0"}],
        "--fail-once", "kubelet@node-0")
    line.begin()
    marker = line.server.folder.parent / "fail-kubelet-node-0"
    marker.touch()
    line.publish(("kubelet", "2"))

    def state(name, node):
        return line.server.request("GET", f"/api/v1/targets/{name}/prod/{node}").json
    line.until("kubelet fails", lambda: state("kubelet", "node-0")["state"] == "failed")
    line.check("so far", [("start", "node-0", "drain", "1"), ("end", "node-0", "drain", "1"),
                          ("start", "node-0", "kubelet", "2"), ("fail", "node-0", "kubelet", "2")],
               line.log())
    why = state("drain", "node-1")["reasons"]
    line.check("explain names the holder", [("concurrency", ["node-0"])],
               [(reason["rule"], reason["holders"]) for reason in why])
    marker.unlink()
    line.server.request("POST", "/api/v1/actions/retry",
                        {"deployment": "kubelet", "resource": "node-0"})
    line.until_rest(6)
    line.compare(plan)
    line.check("at once", 1, line.most_at_once())
    return line


def t5(program):
    line = Line(program, "T5: drains, one by one and in one bracket", 10, IMMEDIATE, IMMEDIATE)
    three = [("kubelet", "2"), ("containerd", "2"), ("os-patch", "2")]
    plan = line.plan(publishes(*(("0s", *what) for what in three)))
    line.check("drains of the plan, and saved", [10, 20], [plan["drains"], plan["drainsSaved"]])
    line.begin()

    def drains():
        return sum(entry[0] == "start" and entry[2] == "drain" for entry in line.log())
    items = {"apiVersion": "v1", "kind": "List", "items": [version(*what) for what in three]}
    line.server.request("POST", "/api/v1/apply", items)
    line.until_rest(50)
    line.check("drains in one bracket", plan["drains"], drains())
    line.compare(plan)
    before = drains()
    for count, (name, _) in enumerate(three):
        line.publish((name, "3"))
        line.until_rest(50 + 30 * (count + 1))
    line.check("drains one by one", plan["drains"] + plan["drainsSaved"], drains() - before)
    return line


def t6(program):
    line = Line(program, "T6: a newer version after the lock", 1, window(600), window(1))
    plan = line.plan(publishes(("0s", "kubelet", "2"), ("0s", "os-patch", "2"),
                               ("12m", "os-patch", "3")))
    line.check("jobs of the plan", 7, len(plan["jobs"]))
    line.begin()
    line.publish(("kubelet", "2"), ("os-patch", "2"))
    line.until_started("drain", "1")
    line.publish(("os-patch", "3"))
    line.until_rest(7)
    line.compare(plan)
    return line


def timelines(program):
    """All at once: they mostly wait."""
    stories = [lambda: t1(program), lambda: t2(program), lambda: t3(program, "queue", 6),
               lambda: t3(program, "merge", 4), lambda: t4(program), lambda: t5(program),
               lambda: t6(program)]
    lines = [None] * len(stories)

    def tell(index):
        lines[index] = stories[index]()
    threads = [threading.Thread(target=tell, args=(index,)) for index in range(len(stories))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return lines


def main():
    tap = drover.Tap()
    for program in drover.programs():
        for index, line in enumerate(timelines(program)):
            if line is None:
                tap.test(f"timeline {index}", "it was broken off")
                continue
            tap.test(line.name, "\n".join(line.problems))
            line.server.__exit__()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
