#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_plan.py BUILD_FOLDER: what `drover plan` of whole fleets costs, as its user runs it.

Processor seconds and peak memory of the program itself, from its arguments to the printed table:
the goals are for one core, however busy the machine is.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

SIZES = (10_000, 100_000, 1_000_000)
GOALS = (0.1, 1, 15)
GROWTH_GOAL = 1.5  # times n log n
TIERS = {"a": 100, "b": 50, "c": 25, "d": 10}  # a compartment and its budget in per cent
BRACKET_RESOURCES = 10_000
STALLED_CLUSTERS = 6_000  # each says for whom it waits, and that is found for each by itself
BRACKET_SECONDS = {"drain": 480, "os-patch": 180, "kubelet": 180, "containerd": 180, "uncordon": 60}


def document(group, kind, name, spec):
    version = {"skyhook": "skyhook.nvidia.com/v1alpha1", "drover": "drover.dev/v1alpha1",
               "fleet": "fleet.cattle.io/v1alpha1"}[group]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def node_documents():
    exponential = {"exponential": {}}
    return [
        document("skyhook", "DeploymentPolicy", "p", {
            "default": {"budget": {"percent": 100}, "strategy": exponential},
            "compartments": [
                {"name": tier, "selector": {"matchLabels": {"tier": tier}},
                 "budget": {"percent": percent}, "strategy": exponential}
                for tier, percent in TIERS.items()]}),
        document("skyhook", "Skyhook", "sk", {
            "deploymentPolicy": "p",
            "packages": {"pack": {"version": "1.0.0", "image": "r/p"}}}),
    ]


def bracket_documents():
    found = [document("drover", "Environment", "prod", {"resourceSelector": "true"})]
    for name, seconds in BRACKET_SECONDS.items():
        found.append(document("drover", "Deployment", name, {
            "resourceSelector": "true", "job": {"simulated": {"seconds": seconds}}}))
        found.append(document("drover", "Version", f"{name}-1", {"deployment": name, "tag": "1"}))
    found.append(document("drover", "RolloutPolicy", "p", {"selector": "true", "rules": [
        {"deploymentBracket": {
            "deploymentSelector": "true", "readinessMode": "collection_window",
            "readinessWindowSeconds": 86400, "preSelector": "deployment.name == 'drain'",
            "postSelector": "deployment.name == 'uncordon'"}},
        {"resourceConcurrency": {
            "groupSelector": "true", "limitType": "percentage", "limitValue": 20}},
        {"gradualRollout": {"rolloutType": "linear", "timeScaleInterval": 300}},
        {"deploymentDependency": {
            "dependsOn": "deployment.name == 'os-patch'",
            "appliesTo": "deployment.name in ['kubelet','containerd']"}}]}))
    return found


def partition_documents():
    return [document("fleet", "Bundle", "b", {
        "targets": [{"clusterSelector": {}}],
        "rolloutStrategy": {"maxUnavailable": "10%", "autoPartitionSize": "25%"}})]


def plan(program, documents, words, ends=0):
    """Processor seconds, peak memory in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "fleet.yaml")
        path.write_text("\n---\n".join(json.dumps(d) for d in documents), encoding="utf-8")
        child = subprocess.Popen(
            [program, "plan", "-f", str(path), "--at", "2026-01-01T00:00:00Z", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != ends:
        sys.exit(f"bench_plan: drover plan ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def row(name, value, unit, goal):
    print(name, f"{value:.6f}", unit, f"<= {goal}", sep="\t", flush=True)


def main():
    program = str(pathlib.Path(sys.argv[1], "drover").resolve())
    seconds = []
    for size, goal in zip(SIZES, GOALS):
        each = size // len(TIERS)
        words = [word for tier in TIERS for word in ("--nodes", f"{each}:tier={tier}")]
        taken, peak = plan(program, node_documents(), words)
        seconds.append(taken)
        row(f"drover plan, {size:,} nodes in {len(TIERS)} compartments", taken, "s", goal)
    for i in (1, 0):
        growth = SIZES[2] * math.log(SIZES[2]) / (SIZES[i] * math.log(SIZES[i]))
        row(f"drover plan, {SIZES[2]:,} to {SIZES[i]:,} nodes, against n log n",
            seconds[2] / seconds[i] / growth, "x", GROWTH_GOAL)
    row("drover plan, peak memory a node", peak / SIZES[2], "bytes", 1024)
    taken, _ = plan(program, bracket_documents(), ["--resources", str(BRACKET_RESOURCES)])
    row(f"drover plan, bracket of {len(BRACKET_SECONDS)} on {BRACKET_RESOURCES:,} resources",
        taken, "s", 2)
    taken, _ = plan(program, partition_documents(),
                    ["--clusters", str(STALLED_CLUSTERS), "--from", "v1", "--silent", "-o", "json"],
                    ends=1)
    row(f"drover plan -o json, {STALLED_CLUSTERS:,} clusters behind one partition", taken, "s", 2)


if __name__ == "__main__":
    main()
