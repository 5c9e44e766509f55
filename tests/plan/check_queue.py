#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A long queue behind one slot that never comes free: what a plan says of all of it grows with its
length, not with its square; what explain says of one names everybody. TAP."""

import json
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

START = ["--at", "2026-04-01T00:00:00Z"]
NAMED = 20  # REASON_NAMES_BRIEF
LONG = 10000
# In whole, on any machine and in any build; it grew with the square of the queue.
LONG_CPU_SECONDS = 10
QUEUE = """
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
"""


def names(number):
    """The first resources of a made-up fleet."""
    return [f"resource-{n:04}" for n in range(1, number + 1)]


def planned(program, number):
    """A plan in which the first one fails, as text."""
    return drover.run(program, "plan", "-f", "-", "--resources", str(number), *START, "-o", "json",
                      "--fail", "resource-0001", stdin=QUEUE.encode()).out


def concurrency(reasons):
    """The reason that names the queue."""
    return next((r for r in reasons if r["rule"] == "concurrency"), None)


def main():
    tap = drover.Tap()
    for program in drover.programs():
        plan = json.loads(planned(program, 60))
        waiting = {w["target"]: concurrency(w["reasons"]) for w in plan["waiting"]}
        ahead = {target: len(r["releasedBy"]["of"]) + r["releasedBy"].get("more", 0)
                 for target, r in waiting.items() if r}
        tap.test("everybody ahead is counted",
                 None if sorted(ahead.values()) == list(range(1, 60)) else str(ahead))
        wrong = {target: r for target, r in waiting.items() if r and
                 (len(r["releasedBy"]["of"]) != min(NAMED, ahead[target]) or
                  ("more" in r["releasedBy"]) != (ahead[target] > NAMED) or
                  r["holders"] != ["resource-0001"] or "holdersMore" in r)}
        tap.test(f"and {NAMED} of them are named", str(wrong) if wrong else None)
        last = max(ahead, key=ahead.get)
        result = drover.run(program, "explain", last, "-f", "-", "--resources", "60", *START,
                            "-o", "json", "--fail", "resource-0001", "--after", "1h",
                            stdin=QUEUE.encode())
        why = concurrency(json.loads(result.out)["reasons"])
        everybody = sorted(set(names(60)) - {last})
        tap.test("explain names everybody",
                 None if sorted(why["releasedBy"]["of"]) == everybody and
                 "more" not in why["releasedBy"] else result.out)
        lengths = [len(planned(program, number)) for number in (200, 400)]
        tap.test("twice the queue is twice the text",
                 None if lengths[1] < 2.2 * lengths[0] else str(lengths))
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        count = len(json.loads(planned(program, LONG))["waiting"])
        spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        tap.test("and is asked in as much time",
                 None if count == LONG and spent < LONG_CPU_SECONDS else f"{count} {spent} s")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
