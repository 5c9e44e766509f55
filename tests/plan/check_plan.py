#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover plan and drover explain for every example, compared with stored output. TAP.

    tests/plan/check_plan.py --update      writes what is printed now to tests/data/plan; look at it
"""

import difflib
import json
import pathlib
import re
import resource
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

DATA = drover.ROOT / "tests" / "data" / "plan"
START = ["--at", "2026-04-01T00:00:00Z"]
EVENING = ["--at", "2026-04-01T18:00:00Z", "--events", "examples/release/approvals.jsonl",
           "--duration", "drain=8m", "--duration", "os-patch=3m"]
SKYHOOK = ["-f", "examples/skyhook"]
FLEET = ["-f", "examples/fleet"]
BUNDLE = ["-f", "examples/fleet/bundle/fleet.yaml", "-f", "examples/fleet/clusters.yaml"]
GUESTBOOK = ["-f", "examples/fleet/guestbook/fleet.yaml", "--clusters", "2:ring=canary",
             "--clusters", "10"]
APART = ["-f", "examples/drains/deployments.yaml", "-f", "examples/drains/apart.yaml",
         "--resources", "10"]
TOGETHER = ["-f", "examples/drains/deployments.yaml", "-f", "examples/drains/together.yaml",
            "--resources", "10"]
HOSTS = ["-f", "examples/hosts", "--events", "examples/hosts/publish.jsonl", "--duration", "10s"]
RINGS = ["-f", "examples/partitions"]
RELEASE = ["-f", "examples/release/deployments.yaml", "-f", "examples/release/environments.yaml",
           "-f", "examples/release/policies.yaml", "-f", "examples/release/resources.yaml",
           "-f", "examples/release/versions.yaml"]

# name of the stored file: words, exit status
CASES = {
    "skyhook.json": (["plan", *SKYHOOK, *START, "-o", "json"], 0),
    "skyhook.txt": (["plan", *SKYHOOK, *START], 0),
    "skyhook.svg": (["plan", *SKYHOOK, *START, "-o", "svg"], 0),
    "skyhook-fail.json": (["plan", *SKYHOOK, *START, "--fail", "node-10", "-o", "json"], 1),
    "skyhook-fail-once.txt": (["plan", *SKYHOOK, *START, "--fail-once", "driver@node-03"], 0),
    "fleet.json": (["plan", *FLEET, *START, "-o", "json"], 0),
    "fleet-update.txt": (["plan", *FLEET, *START, "--from", "old"], 0),
    "fleet-silent.json": (["plan", *FLEET, *START, "--silent", "-o", "json"], 1),
    "partitions.json": (["plan", *RINGS, *START, "-o", "json"], 0),
    "partitions.txt": (["plan", *RINGS, *START], 0),
    "partitions.svg": (["plan", *RINGS, *START, "-o", "svg"], 0),
    "partitions-fail.json": (["plan", *RINGS, *START, "--fail", "edge-02", "-o", "json"], 1),
    "release.json": (["plan", *RELEASE, *START, "-o", "json"], 1),
    "release.txt": (["plan", *RELEASE, *START], 1),
    "release.svg": (["plan", *RELEASE, *START, "-o", "svg"], 1),
    "release-approved.txt": (["plan", *RELEASE, *EVENING, "--from", "0.9"], 0),
    "release-approved.svg": (["plan", *RELEASE, *EVENING, "--from", "0.9", "-o", "svg"], 0),
    "fleet.svg": (["plan", *FLEET, *START, "--from", "old", "-o", "svg"], 0),
    "fleet-bundle.json": (["plan", *BUNDLE, *START, "-o", "json"], 1),
    "fleet-bundle.txt": (["plan", *BUNDLE, *START], 1),
    "fleet-guestbook.json": (["plan", *GUESTBOOK, *START, "--from", "old", "-o", "json"], 0),
    "fleet-guestbook.txt": (["plan", *GUESTBOOK, *START, "--from", "old"], 0),
    "fleet-guestbook.svg": (["plan", *GUESTBOOK, *START, "--from", "old", "-o", "svg"], 0),
    "drains-apart.txt": (["plan", *APART, *START], 0),
    "drains-apart.json": (["plan", *APART, *START, "-o", "json"], 0),
    "drains-apart.svg": (["plan", *APART, *START, "-o", "svg"], 0),
    "drains-together.txt": (["plan", *TOGETHER, *START], 0),
    "drains-together.json": (["plan", *TOGETHER, *START, "-o", "json"], 0),
    "drains-together.svg": (["plan", *TOGETHER, *START, "-o", "svg"], 0),
    "hosts.txt": (["plan", *HOSTS, *START], 0),
    "hosts.json": (["plan", *HOSTS, *START, "-o", "json"], 0),
    "hosts.svg": (["plan", *HOSTS, *START, "-o", "svg"], 0),
    "skyhook-fail.svg": (["plan", *SKYHOOK, *START, "--fail", "node-10", "-o", "svg"], 1),
    "explain-fleet.json": (["explain", "edge-03", *FLEET, *START, "--from", "old", "--silent",
                            "--after", "1m", "-o", "json"], 0),
    "explain-fleet-bundle.txt": (["explain", "edge-03", *BUNDLE, *START], 0),
    "explain-fleet-bundle.json": (["explain", "edge-03", *BUNDLE, *START, "-o", "json"], 0),
    "explain-fleet-guestbook.txt": (["explain", "cluster-0007", *GUESTBOOK, *START,
                                     "--from", "old", "--after", "30s"], 0),
    "explain-drains.txt": (["explain", "resource-0005", *TOGETHER, *START, "--after", "5m"], 0),
    "explain-drains.json": (["explain", "resource-0005", *TOGETHER, *START, "--after", "5m",
                             "-o", "json"], 0),
    "explain-hosts.txt": (["explain", "web-3", *HOSTS, *START, "--after", "10s"], 0),
    "explain-hosts.json": (["explain", "web-3", *HOSTS, *START, "--after", "2s", "-o", "json"], 0),
    "explain-partitions.json": (["explain", "edge-05", *RINGS, *START, "--after", "90s",
                                 "-o", "json"], 0),
    "explain-release.txt": (["explain", "prod-east-03", *RELEASE, *START], 0),
    "explain-skyhook.txt": (["explain", "node-10", *SKYHOOK, *START, "--after", "10m",
                             "--fail", "node-10"], 0),
    "explain-skyhook.json": (["explain", "node-07", *SKYHOOK, *START, "-o", "json"], 0),
    "explain-fleet.txt": (["explain", "edge-03", *FLEET, *START, "--from", "old", "--silent",
                           "--after", "1m"], 0),
    "explain-partitions.txt": (["explain", "edge-05", *RINGS, *START, "--after", "90s"], 0),
    "explain-release.json": (["explain", "prod-east-03", *RELEASE, *START, "-o", "json"], 0),
}

PLAN_KEYS = ["outcome", "reason", "seconds", "targets", "done", "failed", "excluded",
             "peakInFlight",
             "starts", "drains", "drainsSaved", "changes", "passes", "jobs", "inFlight", "waiting"]
REASON_KEYS = ["rule", "scope", "message", "holders", "releasedBy", "nextAt"]


def check(tap, good, name, detail):
    tap.test(name, None if good else detail or "it is not so")


def compare(tap, program, name, words, status):
    result = drover.run(program, *words)
    stored = DATA / name
    if "--update" in sys.argv:
        stored.write_text(result.out, encoding="utf-8")
    expected = stored.read_text(encoding="utf-8") if stored.exists() else ""
    difference = "".join(difflib.unified_diff(expected.splitlines(True),
                                              result.out.splitlines(True),
                                              "stored", "printed", n=1))
    good = not difference and (status is None or result.status == status)
    check(tap, good, f"{name} is as stored",
          f"exit status {result.status}\n{difference}{result.err}")
    return result


def shape(tap, name, result):
    """Keys are promises; pictures are XML and ask for nothing from outside; tables fit."""
    if name.endswith(".json"):
        found = json.loads(result.out)
        if "outcome" in found:
            check(tap, list(found) == PLAN_KEYS, f"{name} has all keys", str(list(found)))
            reasons = [r for one in found["waiting"] for r in one["reasons"]]
        else:
            keys = ["target", "change", "state", "summary", "reasons"]
            check(tap, list(found) == keys, f"{name} has all keys", str(list(found)))
            reasons = found["reasons"]
        check(tap, all(list(r) == REASON_KEYS for r in reasons),
              f"{name}: reasons have all keys", "")
    elif name.endswith(".svg"):
        root = xml.etree.ElementTree.fromstring(result.out)
        check(tap, root.tag.endswith("svg") and "href" not in result.out,
              f"{name} is a picture", "")
    else:
        wide = [line for line in result.out.splitlines() if len(line) > 100]
        check(tap, not wide, f"{name} fits 100 columns", "\n".join(wide))


def statuses(tap, program):
    """Exit status and checks."""
    base = ["plan", *SKYHOOK, *START]
    for words, status in [
            ([*base, "--check", "peak<=100%"], 0), ([*base, "--check", "peak<=1"], 1),
            ([*base, "--check", "end<=30d"], 0), ([*base, "--check", "end<=1m"], 1),
            ([*base, "--check", "window"], 0), ([*base, "--check", "peak"], 2),
            ([*base, "--fail", "nobody"], 2), ([*base, "--duration", "x=1y"], 2),
            ([*base, "--nodes", "many"], 2),
            ([*base, "--until", "0s"], 2), ([*base, "--server", "http://x"], 3),
            ([*base, "--kubeconfig", "x"], 3), (["explain", *SKYHOOK], 2),
            (["explain", "nobody", *SKYHOOK], 1), (["plan", "-f", "examples/mistakes"], 1),
            (["plan", "-f", "no-such-file.yaml"], 1)]:
        result = drover.run(program, *words)
        check(tap, result.status == status,
              f"{' '.join(words[-2:])}: exit status {status}", str(result))


CYCLE = """
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: a}
spec: {resourceSelector: "true", job: {pull: {}}}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: b}
spec: {resourceSelector: "true", job: {pull: {}}}
---
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: p}
spec: {rules: [{deploymentDependency: {dependsOn: "version.tag == 'v2'"}}]}
"""


def refused(tap, program):
    """What waits for itself never moves: plan says of such documents what validate says."""
    told = drover.run(program, "validate", "-f", "-", stdin=CYCLE.encode())
    for words in (["plan", *START], ["explain", "resource-0001", *START]):
        result = drover.run(program, *words, "-f", "-", "--resources", "1", stdin=CYCLE.encode())
        check(tap, told.status == 1 and "wait for each other" in told.err and
              (result.status, result.err, result.out) == (1, told.err, ""),
              f"{words[0]} refuses what validate refuses", f"{told.err}{result.err}{result.out}")


WITHOUT_POLICY = """
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tuning}
spec:
  nodeSelectors: {matchLabels: {role: gpu}}
  deploymentPolicy: slow
  packages: {kernel: {version: 1.0.0, image: ghcr.io/example/kernel}}
"""
SLOW = {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "DeploymentPolicy",
        "metadata": {"name": "slow"},
        "spec": {"default": {"budget": {"count": 2}, "strategy": {"fixed": {"initialBatch": 2}}}}}


def a1_policy_that_does_not_exist(tap, program):
    """A1: nothing starts and the plan says why; everything goes on when the policy appears."""
    words = ["-f", "-", "--nodes", "3:role=gpu", *START, "-o", "json"]
    result = drover.run(program, "plan", *words, stdin=WITHOUT_POLICY.encode())
    plan = json.loads(result.out or "{}")
    rules = {r["rule"] for w in plan.get("waiting", []) for r in w["reasons"]}
    check(tap, (result.status, plan.get("outcome"), plan.get("starts"), rules) ==
          (1, "stalled", 0, {"policyNotFound"}), "A1: without its policy nothing starts",
          str(result))
    result = drover.run(program, "explain", "node-0001", *words, stdin=WITHOUT_POLICY.encode())
    check(tap, result.status == 0 and '"policyNotFound"' in result.out,
          "A1: explain says that the policy does not exist", str(result))
    with tempfile.NamedTemporaryFile("w") as events:
        events.write(json.dumps({"after": "100s", "do": "apply", "document": SLOW}) + "\n")
        events.flush()
        result = drover.run(program, "plan", *words, "--events", events.name,
                            stdin=WITHOUT_POLICY.encode())
    plan = json.loads(result.out or "{}")
    starts = [b["start"] for c in plan.get("changes", []) for g in c["groups"]
              for b in g["batches"]]
    check(tap, (result.status, plan.get("outcome"), starts) == (0, "complete", [100, 220]),
          "A1: everything goes on when the policy appears", str(result))


REMOVED = """
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tuning}
spec:
  nodeSelectors: {matchLabels: {role: gpu}}
  packages:
    kernel:
      {version: 1.0.0, image: ghcr.io/example/kernel, uninstall: {enabled: true, apply: true}}
"""


def trace_of_an_uninstall(tap, program):
    """What is gone from a node has no stage and no state to tell of."""
    result = drover.run(program, "plan", "-f", "-", "--nodes", "1:role=gpu", "--from",
                        "kernel=1.0.0", *START, "-o", "trace", stdin=REMOVED.encode())
    told = [line.split(maxsplit=1)[1] for line in result.out.splitlines()]
    check(tap, result.status == 0 and "run kernel 1.0.0 uninstall on node-0001 (job 1)" in told
          and "forget kernel on node-0001" in told, "a trace tells what is uninstalled",
          str(result))


def unknown_names(tap, program):
    """A flag about something that does not exist says so, and what there is."""
    for base, words, message in [
            (SKYHOOK, ["--fail", "drivr@node-03"],
             '--fail: found "drivr", allowed a package, deployment or bundle: '),
            (SKYHOOK, ["--fail-once", "driver@node-99"],
             '--fail-once: found "node-99", allowed a target: '),
            (SKYHOOK, ["--fail", "@node-03"], '--fail: found "", allowed a package'),
            (SKYHOOK, ["--duration", "drian=5m"], '--duration: found "drian", allowed a package'),
            (SKYHOOK, ["--from", "drivr=1.0.0"], '--from: found "drivr", allowed a package'),
            (FLEET, ["--offline", "nowhere"], '--offline: found "nowhere", allowed a target: '),
            (FLEET, ["--fail", "node-exporter-x@edge-03"],
             "allowed a package, deployment or bundle: "),
    ]:
        result = drover.run(program, "plan", *base, *START, *words)
        check(tap, result.status == 2 and message in result.err and not result.out,
              f"{' '.join(words)} is refused", str(result))
    for base, words, status in [(SKYHOOK, ["--duration", "drain=5m", "--duration", "driver=5m"], 0),
                                (SKYHOOK, ["--fail-once", "driver@node-03"], 0),
                                (RELEASE, ["--from", "kubelet=1.0"], 1)]:
        result = drover.run(program, "plan", *base, *START, *words)
        check(tap, result.status == status, f"{' '.join(words)} is taken", str(result))


def unknown_in_events(tap, program):
    """What happens to something that is not there, or is of another kind, says so; nothing is
    taken for something else, or left out in silence."""
    for base, event, message in [
            (SKYHOOK, {"do": "pause"}, ':1: pause needs "name" or "target"'),
            (RELEASE, {"do": "approve"}, ':1: approve needs "name" or "version"'),
            (SKYHOOK, {"do": "retry", "name": "gpu"}, 'retry: found "gpu", which is not there'),
            (SKYHOOK, {"do": "retry", "name": "gpu-init", "target": "node-99"},
             'retry: found "node-99", which is not there'),
            (RELEASE, {"do": "approve", "name": "kubelet", "version": "9"},
             'approve: found version "9" of "kubelet", which is not there'),
            (RELEASE, {"do": "approve", "name": "kubelet", "version": "1.30.2",
                       "environment": "moon"}, 'approve: found "moon", which is not there'),
            (RELEASE, {"do": "bypass", "rule": "office-hours", "version": "1.30.2"},
             'bypass: found "office-hours", which is not there'),
            (RELEASE, {"do": "bypass", "rule": "staging-first/deploymentWindow/0",
                       "version": "9"}, 'bypass: found "9", which is not there'),
            (RELEASE, {"do": "thaw", "name": "holidays"},
             'thaw: found "holidays", which is not there'),
            (RINGS, {"do": "approve", "name": "proxy", "target": "outer"},
             'approve: found "outer", which is not there'),
            (RELEASE, {"do": "cordon", "target": "prod-east-03"},
             'cordon: found "prod-east-03", allowed a node'),
            (SKYHOOK, {"do": "pause", "target": "node-03"},
             'pause: found "node-03", allowed a cluster'),
            (SKYHOOK, {"do": "join", "target": "node-03"},
             'join: found "node-03", which is there already')]:
        with tempfile.NamedTemporaryFile("w") as events:
            events.write(json.dumps({"after": "1m", **event}) + "\n")
            events.flush()
            result = drover.run(program, "plan", *base, *START, "--events", events.name)
        check(tap, result.status in (1, 2) and message in result.err and not result.out,
              f"the event {json.dumps(event)} is refused", str(result))


def drains(tap, program):
    """T5: a drain for each of three deployments on ten nodes, against one drain for all three."""
    for name, expected in [("apart", (90, 30, 0)), ("together", (50, 10, 20))]:
        result = drover.run(program, "plan", "-f", "examples/drains/deployments.yaml",
                            "-f", f"examples/drains/{name}.yaml", "--resources", "10", *START,
                            "-o", "json")
        plan = json.loads(result.out)
        found = (plan["starts"], plan["drains"], plan["drainsSaved"])
        check(tap, result.status == 0 and plan["outcome"] == "complete" and found == expected,
              f"{expected[1]} drains, {expected[2]} saved", f"{found} {result.err}")


RETRIED = """
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {resourceSelector: "true"}
""" + "".join(f"""---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {{name: {name}}}
spec: {{resourceSelector: "true", job: {{pull: {{}}}}}}
---
apiVersion: drover.dev/v1alpha1
kind: Version
metadata: {{name: {name}-1}}
spec: {{deployment: {name}, tag: "1"}}
""" for name in ("drain", "os", "kubelet")) + """---
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: one}
spec:
  selector: "true"
  rules:
    - deploymentBracket:
        deploymentSelector: "true"
        readinessMode: immediate
        preSelector: deployment.name == "drain"
"""


def drains_of_retries(tap, program):
    """A member that a person has tried again ran once under its drain."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as events:
        events.write('{"after":"10m","do":"retry","name":"kubelet","target":"resource-0001"}\n')
        events.flush()
        result = drover.run(program, "plan", "-f", "-", "--resources", "1", *START, "--events",
                            events.name, "--fail-once", "kubelet@resource-0001", "-o", "json",
                            stdin=RETRIED.encode())
    plan = json.loads(result.out) if result.out else {}
    found = (plan.get("outcome"), plan.get("starts"), plan.get("drains"), plan.get("drainsSaved"))
    check(tap, found == ("complete", 4, 1, 1), "a drain under which a member ran twice",
          f"{found} {result.err}")


PUBLISHED = """
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {resourceSelector: "true"}
""" + "".join(f"""---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {{name: {name}}}
spec: {{resourceSelector: "true", job: {{pull: {{}}}}}}
""" for name in ("os", "kubelet")) + "".join(f"""---
apiVersion: drover.dev/v1alpha1
kind: Version
metadata: {{name: {name}-{tag}, creationTimestamp: "{at}"}}
spec: {{deployment: {name}, tag: {tag}}}
""" for name, tag, at in (("os", "v1", "2026-04-01T00:00:00Z"),
                          ("os", "v2", "2026-04-01T00:10:01Z"),
                          ("kubelet", "v1", "2026-04-01T02:00:00Z")))
COLLECTED = """---
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: one}
spec:
  selector: "true"
  rules: [deploymentBracket: {deploymentSelector: "true", readinessWindowSeconds: 600}]
"""


def published_later(tap, program):
    """T6 as documents: a version is published at its creationTimestamp, and what is locked before
    that goes without it; without a rule it starts then."""
    for rules, expected in [
            ("", [("os", "v1", 0), ("os", "v2", 601), ("kubelet", "v1", 7200)]),
            (COLLECTED, [("os", "v1", 600), ("os", "v2", 1201), ("kubelet", "v1", 7800)])]:
        result = drover.run(program, "plan", "-f", "-", "--resources", "1", "--at",
                            "2026-04-01T00:00:00Z", "-o", "json",
                            stdin=(PUBLISHED + rules).encode())
        plan = json.loads(result.out) if result.out else {"jobs": []}
        found = [(job["deployment"], job["version"], job["start"]) for job in plan["jobs"]]
        check(tap, found == expected, "versions that are published later"
              + (", collected" if rules else ""), f"{found} {result.err}")


STOPPED = """
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tuning}
spec:
  nodeSelectors: {}
  deploymentPolicy: careful
  packages: {sysctl: {version: 1.0.0, image: registry.example/sysctl}}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: DeploymentPolicy
metadata: {name: careful}
spec:
  default: {budget: {count: 5}, strategy: {fixed: {initialBatch: 3, failureThreshold: 1}}}
"""


def resets(tap, program):
    """What lifts a stop by the reasons' word lifts it in an event of that word; who was done stays
    done, unless everything is to run again."""
    for word, state in [("reset", "done"), ("rerun", "inFlight")]:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as events:
            events.write(f'{{"after":"10m","do":"{word}","name":"tuning"}}\n')
            events.flush()

            def ask(node, after):
                result = drover.run(program, "explain", node, "-f", "-", "--nodes", "10", *START,
                                    "--fail", "node-0001", "--events", events.name, "--after",
                                    after, "-o", "json", stdin=STOPPED.encode())
                return json.loads(result.out)

            before, after = ask("node-0004", "9m"), ask("node-0004", "601s")
            found = ([(why["rule"], why["releasedBy"]["act"]) for why in before["reasons"]],
                     after["state"], ask("node-0002", "601s")["state"])
        expected = ([("stopped", "reset")], "inFlight" if word == "reset" else "waiting", state)
        check(tap, found == expected, f"{word} of a Skyhook that is stopped", f"{found}")


def bundles(tap, program):
    """A fleet.yaml is a Bundle named after its folder; several are several; events reach it."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as events:
        events.write('{"after":"1m","do":"approve","name":"bundle","target":"production"}\n')
        events.flush()
        result = drover.run(program, "plan", *BUNDLE, "-f", GUESTBOOK[1], *START, "--events",
                            events.name, "-o", "json")
    plan = json.loads(result.out)
    found = [(change["name"], [group["name"] for group in change["groups"]])
             for change in plan["changes"]]
    check(tap, plan["outcome"] == "complete" and found == [
        ("bundle", ["canary", "staging", "production"]), ("guestbook", ["canary", "rest"])],
          "each fleet.yaml is a Bundle of its own", f"{plan['outcome']} {found}")


CAPPED = """
apiVersion: fleet.cattle.io/v1alpha1
kind: Bundle
metadata: {name: app, namespace: fleet-default}
spec:
  targets: [{clusterSelector: {}}]
  rolloutStrategy: {maxUnavailable: 5}
"""


def passes(tap, program):
    """P37: the last pass is the one after the last cluster's end, if that one failed, too."""
    for more, starts, ready in [([], [0, 60, 120, 180, 240, 300], 25),
                                (["--fail", "cluster-0024"], [0, 60, 120, 180, 240, 300], 24),
                                (["--silent"], [0, 0], 0)]:
        result = drover.run(program, "plan", "-f", "-", "--clusters", "25", "--from", "old", *more,
                            *START, "-o", "json", stdin=CAPPED.encode())
        plan = json.loads(result.out)
        found = [one["start"] for one in plan["passes"]]
        check(tap, found == starts and plan["done"] == ready and
              plan["passes"][-1]["updated"] == 0,
              f"P37: the passes of 25 clusters {' '.join(more)}", f"{found} {plan['done']}")


# Twelve nodes, three at a time; four more in a compartment of their own.
BATCHES = """
apiVersion: skyhook.nvidia.com/v1alpha1
kind: DeploymentPolicy
metadata: {name: p}
spec:
  default: {budget: {count: 3}, strategy: {fixed: {initialBatch: 3}}}
  compartments:
  - name: x
    selector: {matchLabels: {z: x}}
    budget: {count: 2}
    strategy: {fixed: {initialBatch: 2}}
---
"""
BATCHED = {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
           "metadata": {"name": "s"}, "spec": {"deploymentPolicy": "p"}}


def batches(tap, program):
    """A6: a version that changes in mid-batch begins anew; what is in flight is batch 1. A4: one
    whose members are all deleted ends without being judged."""
    def skyhook(version):
        spec = {**BATCHED["spec"], "packages": {"kk": {"version": version, "image": "r/kk"}}}
        return {**BATCHED, "spec": spec}
    events = [{"after": "30s", "do": "delete", "target": "node-0013"},
              {"after": "30s", "do": "delete", "target": "node-0014"},
              {"after": "150s", "do": "apply", "document": skyhook("2.0.0")}]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "fleet.yaml").write_text(BATCHES + json.dumps(skyhook("1.0.0")))
        (folder / "events.jsonl").write_text("\n".join(json.dumps(e) for e in events))
        result = drover.run(program, "plan", "-f", folder / "fleet.yaml", "--nodes", "12",
                            "--nodes", "4:z=x", "--events", folder / "events.jsonl", *START,
                            "-o", "json")
    plan = json.loads(result.out)
    found = {group["name"]: ([(b["number"], b["size"]) for b in group["batches"]],
                             [b["end"] for b in group["batches"]].count(None),
                             group["final"]["completed"]) for group in plan["changes"][0]["groups"]}
    check(tap, found == {
        "x": ([(1, 2), (1, 2)], 0, 2),
        "__default__": ([(1, 3), (1, 3), (2, 3), (3, 3), (4, 3)], 0, 12)},
          "batches after a deletion and an edit", f"{found} {result.err}")


BY_ENVIRONMENT = """
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: staging}
spec: {resourceSelector: resource.metadata.stage == 'staging'}
---
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {resourceSelector: resource.metadata.stage == 'prod'}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: os}
spec: {resourceSelector: "true", job: {simulated: {}}}
---
apiVersion: drover.dev/v1alpha1
kind: Version
metadata: {name: os-2}
spec: {deployment: os, tag: "2"}
---
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: slowly}
spec:
  rules:
  - deploymentPolicy:
      default: {budget: {count: 3}, strategy: {linear: {initialBatch: 1}}}
"""


def batches_of_rules(tap, program):
    """C: compartments of a RolloutPolicy are counted for each environment, and so are batches."""
    result = drover.run(program, "plan", "-f", "-", "--resources", "2:stage=staging", "--resources",
                        "5:stage=prod", *START, "-o", "json", stdin=BY_ENVIRONMENT.encode())
    found = [[(batch["start"], [name[-1] for name in batch["targets"]], batch["complete"])
              for batch in group["batches"]]
             for change in json.loads(result.out or '{"changes": []}')["changes"]
             for group in change["groups"]]
    wanted = [[(0, ["1"], 1), (60, ["2"], 1)],
              [(0, ["3"], 1), (60, ["4", "5"], 2), (120, ["6", "7"], 2)]]
    check(tap, sorted(found) == wanted, "C: each environment has batches of its own",
          f"{found}{result.err}")
    found = [(group["rule"], group["environment"], group["matched"])
             for change in json.loads(result.out)["changes"] for group in change["groups"]]
    rule = found[0][0]
    check(tap, sorted(found) == [(rule, "prod", 5), (rule, "staging", 2)],
          "groups of a rule say in which environment", f"{found}")


def passes_of_rules(tap, program):
    """B as a rule: the last pass is the one after the last end, in each environment, whether that
    is a success or not."""
    documents = re.sub(r"- deploymentPolicy:.*", "- rolloutStrategy: {maxUnavailable: 1}",
                       BY_ENVIRONMENT, flags=re.DOTALL)
    for more, prod in [([], [0, 60, 120, 180]), (["--fail", "resource-0005"], [0, 60, 120, 180])]:
        result = drover.run(program, "plan", "-f", "-", "--resources", "2:stage=staging",
                            "--resources", "3:stage=prod", "--from", "0", *more, *START, "-o",
                            "json", stdin=documents.encode())
        found = {}
        for one in json.loads(result.out or '{"passes": []}')["passes"]:
            found.setdefault(one["environment"], []).append(one["start"])
        check(tap, found == {"staging": [0, 60, 120], "prod": prod},
              f"B as a rule: the passes of two environments {' '.join(more)}",
              f"{found}{result.err}")


def time_limits(tap, program):
    """Words, unknown: a job that is not heard of fails when its timeoutSeconds are over. How long
    jobs take is taken at its word."""
    documents = BY_ENVIRONMENT.replace("simulated: {}}", "simulated: {}}, timeoutSeconds: 900")
    back = {"after": "10m", "do": "online", "target": "resource-0001"}
    for words, event, expected in [
            (["--duration", "16m"], None, [(960, "successful"), (960, "successful")]),
            (["--offline", "resource-0001"], None, [(60, "successful"), (900, "failed")]),
            (["--offline", "resource-0001"], back, [(60, "successful"), (600, "successful")])]:
        with tempfile.TemporaryDirectory() as name:
            events = pathlib.Path(name) / "events.jsonl"
            events.write_text(json.dumps(event) if event else "")
            result = drover.run(program, "plan", "-f", "-", "--resources", "1:stage=staging",
                                "--resources", "1:stage=prod", *words, "--events", events, *START,
                                "-o", "json", stdin=documents.encode())
        jobs = json.loads(result.out or '{"jobs": []}')["jobs"]
        found = sorted((job["end"], job["status"]) for job in jobs)
        check(tap, found == expected, f"a job's time limit: {' '.join(words)}",
              f"{found}{result.err}")


def batches_that_end_with_their_members(tap, program):
    """Batches of a compartment or policy that is gone are shown; the last batch ends with its last
    member, and what was reached before is kept."""
    spec = {**BATCHED["spec"], "packages": {"kk": {"version": "1", "image": "r/kk"}}}
    policy = {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "DeploymentPolicy",
              "metadata": {"name": "p"}}
    default = {"budget": {"count": 3}, "strategy": {"fixed": {"initialBatch": 3}}}
    removed = {"after": "30s", "do": "apply", "document": {**policy, "spec": {"default": default}}}
    leaves = {"after": "150s", "do": "delete", "target": "node-0004"}
    rows = [(removed, 5, "4:z=x",
             {"__default__": [(3, 120), (3, 240), (1, 360)], "x": [(2, 120)]}, "complete", 7),
            (leaves, 4, "1:z=x",
             {"x": [(1, 120)], "__default__": [(3, 120), (1, 150)]}, "complete", 3)]
    for event, plain, more, expected, outcome, completed in rows:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "fleet.yaml").write_text(BATCHES + json.dumps({**BATCHED, "spec": spec}))
            (folder / "events.jsonl").write_text(json.dumps(event))
            result = drover.run(program, "plan", "-f", folder / "fleet.yaml", "--nodes",
                                str(plain), "--nodes", more, "--events",
                                folder / "events.jsonl", *START, "-o", "json")
        plan = json.loads(result.out)
        groups_ = plan["changes"][0]["groups"]
        found = {g["name"]: [(b["size"], b["end"]) for b in g["batches"]] for g in groups_}
        final = {g["name"]: g["final"]["completed"] for g in groups_}
        check(tap, (found, plan["outcome"], final["__default__"]) == (expected, outcome, completed),
              f"batches whose members leave: {event['do']}", f"{found} {final} {result.err}")


STALLED = 10000
# In whole, on any machine and in any build; it grew with the square and was 20 s, optimised.
STALLED_CPU_SECONDS = 10


def stalled(tap, program):
    """Everybody waits for everybody ahead: the reasons of all cost no square of them."""
    spec = {**BATCHED["spec"], "packages": {"kk": {"version": "1", "image": "r/kk"}}}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with tempfile.TemporaryDirectory() as name:
        file = pathlib.Path(name) / "fleet.yaml"
        policy = BATCHES.replace("initialBatch: 3", "initialBatch: 3, failureThreshold: 1")
        file.write_text(policy + json.dumps({**BATCHED, "spec": spec}))
        result = drover.run(program, "plan", "-f", file, "--nodes", str(STALLED), "--fail",
                            "node-0001", *START, "-o", "json")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    plan = json.loads(result.out)
    last = next(w for w in plan["waiting"] if w["target"] == f"node-{STALLED}")
    ahead = [r["releasedBy"] for r in last["reasons"] if r["rule"] in ("batch", "budget")]
    named = {(len(by["of"]), by["more"]) for by in ahead}
    check(tap, plan["outcome"] == "stopped" and named == {(20, STALLED - 3 - 1 - 20)} and
          spent < STALLED_CPU_SECONDS, "reasons of a large fleet that is stalled",
          f"{plan['outcome']} {named} {spent} s")


# A policy with every kind of group on it: compartments for one deployment and for a bracket.
PACED = """
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {resourceSelector: "true"}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: alone}
spec: {resourceSelector: "true", job: {pull: {}}}
---
apiVersion: drover.dev/v1alpha1
kind: Version
metadata: {name: alone-1}
spec: {deployment: alone, tag: "1"}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: member}
spec: {resourceSelector: "true", job: {pull: {}}}
---
apiVersion: drover.dev/v1alpha1
kind: Version
metadata: {name: member-1}
spec: {deployment: member, tag: "1"}
---
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: one}
spec:
  selector: deployment.name == "alone"
  rules:
    - deploymentPolicy: {default: {budget: {count: 2}, strategy: {linear: {}}}}
---
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: all}
spec:
  selector: deployment.name == "member"
  rules:
    - deploymentBracket: {deploymentSelector: "true", readinessMode: immediate}
    - {id: pace, deploymentPolicy: {default: {budget: {percent: 50}, strategy: {fixed: {}}}}}
    - {id: slots, resourceConcurrency: {groupSelector: "true", limitType: count, limitValue: 3}}
"""


def groups(tap, program):
    """Whatever limits a deployment is shown with it, with its batches and its strategy."""
    result = drover.run(program, "plan", "-f", "-", "--resources", "4", *START, "-o", "json",
                        stdin=PACED.encode())
    plan = json.loads(result.out)
    found = {change["name"]: [(group["name"], group["kind"], group.get("strategy"),
                               [batch["size"] for batch in group.get("batches", [])])
                              for group in change["groups"]] for change in plan["changes"]}
    shared = [("__default__", "compartment", "fixed", [1, 1, 1, 1]),
              ("slots", "concurrency", None, [])]
    check(tap, {name: sorted(rows) for name, rows in found.items()} == {
        "alone": sorted([("__default__", "compartment", "linear", [1, 2, 1]), *shared]),
        "member": sorted(shared)}, "every group of a deployment is shown", str(found))
    table = drover.run(program, "plan", "-f", "-", "--resources", "4", *START,
                       stdin=PACED.encode())
    check(tap, sum(line.startswith("-  ") for line in table.out.splitlines()) == 2,
          "a table shows a shared group once", table.out)


# One after the other, each 60 s and then measured: 10 s asleep, twice, with 5 s between.
MEASURED = """
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {resourceSelector: "true"}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: web}
spec: {resourceSelector: "true", job: {pull: {}}}
---
apiVersion: drover.dev/v1alpha1
kind: Version
metadata: {name: web-1}
spec: {deployment: web, tag: "1"}
---
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: all}
spec:
  rules:
    - resourceConcurrency: {groupSelector: "true", limitType: count, limitValue: 1}
    - retry: {maxRetries: 1}
    - verification:
        metrics:
          - name: soak
            provider: {type: sleep, durationSeconds: 10}
            intervalSeconds: 5
            count: 9
            successCondition: result.ok
            successThreshold: 2
          - name: short
            provider: {type: http, url: "http://localhost/"}
            intervalSeconds: 1
            count: 3
            successCondition: result.ok
"""


def measured(tap, program):
    """Measuring takes time, and the job's slot; a job that fails is not measured."""
    words = ["plan", "-f", "-", "--resources", "2", *START, "-o", "json"]
    for more, expected in (([], [(0, 85), (85, 170)]),
                           (["--fail-once", "resource-0001"], [(0, 60), (60, 145), (145, 230)])):
        plan = json.loads(drover.run(program, *words, *more, stdin=MEASURED.encode()).out)
        found = [(job["start"], job["end"]) for job in plan["jobs"]]
        check(tap, found == expected, f"measured {' '.join(more)}", f"{found}")


CHANCE = """
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {resourceSelector: "true"}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: web}
spec: {resourceSelector: "true", job: {simulated: {seconds: 30, failPercent: 30}}}
---
apiVersion: drover.dev/v1alpha1
kind: Version
metadata: {name: web-1}
spec: {deployment: web, tag: "1"}
"""


def chance(tap, program):
    """Nothing is random without a seed; with one, simulated jobs fail as often as they say."""
    failed = []
    for words in ([], ["--seed", "1"], ["--seed", "1"], ["--seed", "2"]):
        plan = json.loads(drover.run(program, "plan", "-f", "-", "--resources", "200", *START,
                                     *words, "-o", "json", stdin=CHANCE.encode()).out)
        failed.append(sorted(job["resource"] for job in plan["jobs"] if job["status"] == "failed"))
    check(tap, not failed[0] and 35 < len(failed[1]) < 85 and failed[1] == failed[2] != failed[3],
          "a seed is chance that repeats itself", str([len(one) for one in failed]))


DOOMED = """
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tools}
spec:
  interruptionBudget: {count: 1}
  packages:
    tools: {version: "1", image: r/tools, uninstall: {enabled: true}}
"""


def deletion(tap, program):
    """A Skyhook that is deleted on the way is uninstalled first, at its pace."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as events:
        events.write('{"after":"1h","do":"delete","name":"tools"}\n')
        events.flush()
        result = drover.run(program, "plan", "-f", "-", "--nodes", "2", *START, "-o", "trace",
                            "--events", events.name, stdin=DOOMED.encode())
    lines = [line.split(None, 1) for line in result.out.splitlines()]
    found = [(when, what) for when, what in lines if "uninstall on" in what or "finalize" in what]
    check(tap, result.status == 0 and found == [
        ("3600s", "run tools 1 uninstall on node-0001 (job 3)"),
        ("3660s", "run tools 1 uninstall on node-0002 (job 3)"),
        ("3720s", "finalize tools: its finalizer may go")], "delete uninstalls first", result.out)


def main():
    tap = drover.Tap()
    for program in drover.programs():
        for name, (words, status) in CASES.items():
            shape(tap, name, compare(tap, program, name, words, status))
        statuses(tap, program)
        unknown_names(tap, program)
        unknown_in_events(tap, program)
        refused(tap, program)
        trace_of_an_uninstall(tap, program)
        a1_policy_that_does_not_exist(tap, program)
        drains(tap, program)
        drains_of_retries(tap, program)
        published_later(tap, program)
        resets(tap, program)
        bundles(tap, program)
        passes(tap, program)
        batches(tap, program)
        batches_of_rules(tap, program)
        passes_of_rules(tap, program)
        time_limits(tap, program)
        batches_that_end_with_their_members(tap, program)
        stalled(tap, program)
        groups(tap, program)
        measured(tap, program)
        chance(tap, program)
        deletion(tap, program)
        told = [drover.run(program, "plan", *SKYHOOK, *START, "-o", "trace").out for _ in range(2)]
        check(tap, told[0] == told[1] and told[0].startswith("      0s  "),
              "a trace repeats", told[0][:200])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
