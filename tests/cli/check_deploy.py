#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lies under deploy/: definitions are those the program prints, samples do what they say.

    tests/cli/check_deploy.py             prints TAP
    tests/cli/check_deploy.py --write     writes the definitions into deploy/crds
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

DEPLOY = drover.ROOT / "deploy"
CRDS = [DEPLOY / "crds" / "skyhooks.yaml", DEPLOY / "crds" / "deploymentpolicies.yaml"]
FLEET = DEPLOY / "fleet" / "crds.yaml"
SAMPLE = ["-f", "deploy/samples/skyhook.yaml", "-f", "deploy/samples/deploymentpolicy.yaml"]
# compartment, nodes, ceiling, strategy, sizes of its batches
ROWS = [
    ("critical", 4, 1, "fixed", [1, 1, 1, 1]),
    ("production", 10, 3, "linear", [1, 2, 3, 3, 1]),
    ("staging", 30, 9, "exponential", [1, 2, 4, 8, 9, 6]),
    ("test", 40, 20, "exponential", [2, 8, 20, 10]),
]


def printed(program):
    """The definitions, one text each."""
    result = drover.run(program, "crds")
    assert result.status == 0, result
    return result.out.split("---\n")


def definitions(program):
    for path, text in zip(CRDS, printed(program), strict=True):
        if path.read_text(encoding="utf-8") != text:
            return f"{path.name} is not what `drover crds` prints: run {__file__} --write"
    found = json.loads(drover.run(program, "crds", "-o", "json").out)
    names = [item["metadata"]["name"] for item in found["items"]]
    return drover.difference(["skyhooks.skyhook.nvidia.com",
                              "deploymentpolicies.skyhook.nvidia.com"], names)


def fleet_definitions(program):
    """Apart from those above: a hub that has Fleet keeps Fleet's own."""
    if FLEET.read_text(encoding="utf-8") != drover.run(program, "crds", "fleet").out:
        return f"{FLEET.name} is not what `drover crds fleet` prints: run {__file__} --write"
    found = json.loads(drover.run(program, "crds", "fleet", "-o", "json").out)
    names = [item["metadata"]["name"].partition(".")[0] for item in found["items"]]
    refused = drover.run(program, "crds", "other")
    return drover.difference((["bundles", "bundledeployments", "clusters", "clustergroups",
                               "bundlenamespacemappings", "contents"], 2), (names, refused.status))


def samples_are_good(program):
    result = drover.run(program, "validate", "--strict", "-f", "deploy/samples", "-f",
                        "deploy/fleet/samples")
    return "" if result.status == 0 and not result.err else result


def samples_do_what_they_say(program):
    words = [f"--nodes={count}:tier={name}" for name, count, *_ in ROWS]
    result = drover.run(program, "plan", *SAMPLE, *words, "-o", "json")
    if result.status != 0:
        return result
    groups = {group["name"]: group for group in json.loads(result.out)["changes"][0]["groups"]}
    found = [(name, groups[name]["matched"], groups[name]["ceiling"], groups[name]["strategy"],
              [batch["size"] for batch in groups[name]["batches"]]) for name, *_ in ROWS]
    return drover.difference(ROWS, found)


def each_stops_as_it_says(program):
    """One failure in a critical node's first batch stops that compartment and no other."""
    words = [f"--nodes={count}:tier={name}" for name, count, *_ in ROWS]
    result = drover.run(program, "plan", *SAMPLE, *words, "--fail", "node-0001", "-o", "json")
    found = json.loads(result.out)
    stopped = [group["name"] for group in found["changes"][0]["groups"]
               if group["final"]["stopped"]]
    return drover.difference(("stopped", ["critical"], 80),
                             (found["outcome"], stopped, found["done"]))


def runtime_required(program):
    result = drover.run(program, "plan", "-f", "deploy/samples/runtime-required.yaml",
                        "--nodes", "6:gpu=present", "-o", "json")
    found = json.loads(result.out)
    return drover.difference(("complete", 6, 3),
                             (found["outcome"], found["done"], found["peakInFlight"]))


def fleet_samples(program):
    """Canaries one by one, ten minutes of soak, the others by tenths."""
    result = drover.run(program, "plan", "-f", "deploy/fleet/samples", "--clusters",
                        "3:sample=yes,ring=canary", "--clusters", "40:sample=yes", "--clusters",
                        "5", "--from", "old", "-o", "json")
    found = json.loads(result.out)
    groups = [(group["name"], group["matched"], group["limit"])
              for group in found["changes"][0]["groups"]]
    # A minute each: 3 canaries, the soak, 10 times 4 others.
    return drover.difference(("complete", 43, 4, 3 * 60 + 600 + 600,
                              [("canary", 3, 0), ("rest", 40, 4)]),
                             (found["outcome"], found["done"], found["peakInFlight"],
                              found["seconds"], groups))


def main():
    if sys.argv[1:] == ["--write"]:
        for path, text in zip(CRDS, printed(drover.programs()[0]), strict=True):
            path.write_text(text, encoding="utf-8")
        FLEET.write_text(drover.run(drover.programs()[0], "crds", "fleet").out, encoding="utf-8")
        return 0
    tap = drover.Tap()
    for program in drover.programs():
        for name, check in (("definitions", definitions),
                            ("definitions of Fleet's kinds", fleet_definitions),
                            ("samples are good", samples_are_good),
                            ("samples do what they say", samples_do_what_they_say),
                            ("each stops as it says", each_stops_as_it_says),
                            ("runtime required", runtime_required),
                            ("samples of a hub", fleet_samples)):
            tap.test(f"{program.parent.name}: {name}", check(program))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
