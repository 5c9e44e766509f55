#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover plan --check window, and the windows of its picture: what the engine says of them. TAP.

A window is kept by everything that begins while it is open (I8), by everything that goes on in a
version group that began so (C1), and by first deployments (C6). It is not by what a person let
begin outside of it.
"""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

MIDNIGHT = ["--at", "2026-04-01T00:00:00Z"]
AT_TWO = "FREQ=DAILY;BYHOUR=2;BYMINUTE=0;BYSECOND=0"
HOUR = 3600

FLEET = """
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {resourceSelector: "true"}
"""

DEPLOYMENT = """
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: NAME}
spec: {resourceSelector: "true", job: {pull: {}}}
---
apiVersion: drover.dev/v1alpha1
kind: Version
metadata: {name: NAME-2}
spec: {deployment: NAME, tag: "2"}
"""

POLICY = """
---
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: at-night}
spec:
  selector: 'SELECTOR'
  rules:
    - {id: night, deploymentWindow: {rrule: "RRULE", durationMinutes: 60, allowWindow: ALLOW}}
    - {id: day, retry: {maxRetries: 0}}
"""

BRACKET = """\
    - deploymentBracket: {deploymentSelector: "true", readinessMode: immediate,
                          preSelector: 'deployment.name == "drain"'}
"""


def documents(*deployments, selector="true", allow="true", bracket=False):
    text = FLEET + "".join(DEPLOYMENT.replace("NAME", name) for name in deployments)
    text += POLICY.replace("SELECTOR", selector).replace("RRULE", AT_TWO).replace("ALLOW", allow)
    return text + (BRACKET if bracket else "")


BYPASS = '{"after":"30m","do":"bypass","rule":"night","name":"web","version":"2"}\n'
SHUT = "check window: %s on resource-0001 begins after 30m, outside the deployment window night"

# name: documents, words, events, when jobs start, the message (None: kept), whether the picture
# shows windows (not those that never open before the plan ends)
CASES = {
    "a window of a policy that selects nobody": (
        documents("web", selector='deployment.name == "nobody"'), ["--from", "1"], "",
        [0], None, 0),
    "C6: a first deployment is not held by windows": (
        documents("web"), [], "", [0], None, 0),
    "C6: a first deployment, and one that runs already": (
        documents("web", "db"), ["--from", "db=1"], "", [0, 2 * HOUR], None, 1),
    "I8: what began inside a window is finished": (
        documents("web"), ["--from", "1", "--duration", "2h"], "", [2 * HOUR], None, 1),
    "C1: in a bracket the window gates the first job only": (
        documents("drain", "web", bracket=True), ["--from", "1", "--duration", "1h"], "",
        [2 * HOUR, 3 * HOUR], None, 1),
    "C6: a first deployment whose group prepares the resource is held": (
        documents("drain", "web", bracket=True), [], "", [2 * HOUR, 2 * HOUR + 60], None, 1),
    "a window that forbids": (
        documents("web", allow="false"), ["--from", "1", "--at", "2026-04-01T02:30:00Z"], "",
        [HOUR // 2], None, 1),
    "a start outside its window that a person let pass": (
        documents("web"), ["--from", "1"], BYPASS, [HOUR // 2], SHUT % "web", 0),
    "a version group that a person let begin outside its window": (
        documents("drain", "web", bracket=True), ["--from", "1"],
        BYPASS + BYPASS.replace("web", "drain"), [HOUR // 2, HOUR // 2 + 60], SHUT % "drain", 0),
    "a bypass for something else": (
        documents("web"), ["--from", "1"], BYPASS.replace("night", "day"), [2 * HOUR], None, 1),
}


def run(program, text, words, events):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write(events)
        file.flush()
        return drover.run(program, "plan", "-f", "-", "--resources", "1",
                          *([] if "--at" in words else MIDNIGHT), *words,
                          "--events", file.name, stdin=text.encode())


def one(program, case):
    """None when it is as it should be, else what was found."""
    text, words, events, starts, message, windows = case
    result = run(program, text, [*words, "--check", "window", "-o", "json"], events)
    if not result.out:
        return str(result)
    found = sorted(job["start"] for job in json.loads(result.out)["jobs"])
    if found != starts:
        return f"jobs start at {found}, not at {starts}\n{result}"
    if result.status != (1 if message else 0) or (message or "") not in result.err:
        return str(result)
    picture = run(program, text, [*words, "-o", "svg"], events).out
    drawn = picture.count("deployment window</text>")
    return None if drawn == windows else picture


def stalls(program):
    """Windows open for ever over what failed and waits for a person: that is the end."""
    result = run(program, documents("web"), ["--from", "1", "--fail-once", "resource-0001",
                                             "-o", "json"], "")
    plan = json.loads(result.out)
    good = (plan["outcome"], plan["seconds"]) == ("stalled", 2 * HOUR + 60) and \
        "not tried again by itself" in plan["reason"]
    return None if good else f"{plan['outcome']} after {plan['seconds']}: {plan['reason']}"


def stranger(program):
    """What is not there cannot be paused."""
    result = run(program, documents("web"), [], '{"after":"1m","do":"pause","name":"nobody"}\n')
    good = result.status == 1 and 'pause: found "nobody", which is not there' in result.err
    return None if good else str(result)


def main():
    tap = drover.Tap()
    for program in drover.programs():
        tap.test("a plan ends when only a person can go on", stalls(program))
        tap.test("a pause of something unknown is refused", stranger(program))
        for name, case in CASES.items():
            tap.test(name, one(program, case))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
