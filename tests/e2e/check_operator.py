#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drover operator` on a real API server: rollouts by budget, told from the audit log."""

import os
import pathlib
import socket
import sys
import time
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import audit
import binaries
import drover
import in_pod
import plane
import rollout

NODES = 20
BUDGET = 5


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


PORTS = free_port(), free_port()  # of metrics and probes


def check_limits(cluster, name, since):
    entries = rollout.history(cluster, since)
    most = rollout.most_claims(entries, name)
    assert 1 <= most <= BUDGET, f"{most} claims at once"
    assert rollout.most_jobs(cluster, name) <= BUDGET
    wrong = rollout.failed_writes(entries)
    assert not wrong, f"writes that failed: {wrong}"
    return entries


def installs(cluster, _):
    """one package goes to all nodes, never more than the budget at once"""
    since = len(rollout.history(cluster))
    cluster.api.create("skyhooks", rollout.skyhook("base", {"tune": rollout.package()},
                                                   deploymentPolicy="five"))
    shown = rollout.wait_status(cluster, "base", "complete")
    assert shown["completeNodes"] == f"{NODES}/{NODES}", shown["completeNodes"]
    assert not shown.get("nodePriority") and shown["nodeOrderOffset"] == NODES, shown
    entries = check_limits(cluster, "base", since)
    stages = 2 * NODES
    print(f"# {len(entries) / stages:.2f} writes a node and stage")
    assert len(entries) <= 3 * stages, f"{len(entries)} writes"
    for node in cluster.api.list("nodes"):
        want = ('{"tune|1.0.0":{"name":"tune","version":"1.0.0","image":"example.test/package",'
                '"stage":"config","state":"complete"}}')
        assert rollout.note(node, "nodeState_base") == want, rollout.note(node, "nodeState_base")
        assert rollout.note(node, "status_base") == "complete"


def reads_little(cluster, _):
    """of Jobs and pods those of Skyhooks are watched, as rows; none that did well is read"""
    asked = {"jobs": {"labelSelector": "skyhook.nvidia.com/name"},
             "pods": {"labelSelector": "skyhook.nvidia.com/name",
                      "fieldSelector": "status.phase!=Succeeded"}}
    watched = set()
    for entry in audit.entries(cluster.audit_file):
        what = audit.resource(entry)
        if entry["user"]["username"] != rollout.USER or what not in asked:
            continue
        if entry["verb"] in ("list", "watch"):
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(entry["requestURI"]).query))
            found = {key: query.get(key) for key in asked[what]}
            assert found == asked[what], entry["requestURI"]
            watched |= {(what, query.get("includeObject"))}
        assert entry["verb"] != "get", entry["requestURI"]
    assert {("jobs", "None"), ("pods", "None")} <= watched, watched


def upgrades(cluster, operator):
    """a new version goes the same way, also when the operator is killed in the middle"""
    since = len(rollout.history(cluster))
    cluster.behave(**{"tune-2.0.0": "succeed 1s"})  # in all it takes twice as long as the kills
    cluster.api.patch("skyhooks", "base", {"spec": {"packages": {"tune": {"version": "2.0.0"}}}})
    for _ in range(3):
        time.sleep(1.3)
        operator.kill()
        assert rollout.status(cluster, "base")["status"] == "in_progress", "that is no middle"
        operator.start()
    shown = rollout.wait_status(cluster, "base", "complete")
    assert shown["completeNodes"] == f"{NODES}/{NODES}", shown
    entries = rollout.history(cluster, since)
    most = rollout.most_claims(entries, "base")
    assert 1 <= most <= BUDGET, f"{most} claims at once"
    stages = {job["metadata"]["labels"]["skyhook.nvidia.com/stage"]
              for job in cluster.api.list("jobs", rollout.SPACE)
              if job["metadata"]["labels"]["skyhook.nvidia.com/package"] == "tune-2.0.0"}
    assert stages == {"upgrade", "config"}, stages
    for node in cluster.api.list("nodes"):
        assert '"tune|2.0.0"' in rollout.note(node, "nodeState_base")
        assert '"tune|1.0.0"' not in rollout.note(node, "nodeState_base")


def stops(cluster, _):
    """a package that fails stops its rollout, and an edit lets it go on"""
    cluster.behave(**{"worse-1.0.0": "fail"})
    cluster.api.create("skyhooks", rollout.skyhook("bad", {"worse": rollout.package()},
                                                   deploymentPolicy="stop"))
    shown = rollout.wait_status(cluster, "bad", "unknown")
    state = shown["compartmentStatuses"]["__default__"]["batchState"]
    assert state.get("shouldStop"), state
    assert state["failedNodes"] == 2, state
    kept = [job for job in cluster.api.list("jobs", rollout.SPACE)
            if job["metadata"]["labels"]["skyhook.nvidia.com/name"] == "bad"]
    assert len(kept) == 2, len(kept)
    api.wait_until("failed Jobs stay", lambda: all(
        "ttlSecondsAfterFinished" not in cluster.api.get(
            "jobs", job["metadata"]["name"], rollout.SPACE)["spec"] for job in kept))
    cluster.behave(**{"worse-1.0.0": None})
    cluster.api.patch("skyhooks", "bad", {"spec": {"packages": {"worse": {"version": "1.0.1"}}}})
    rollout.wait_status(cluster, "bad", "complete")


OF_PACKAGE = ["skyhook_name", "package_name", "package_version"]
OF_GROUP = ["skyhook_name", "policy_name", "compartment_name", "strategy"]
GAUGES = {  # by name: the labels, in order
    "skyhook_status": ["skyhook_name", "status"],
    "skyhook_node_status_count": ["skyhook_name", "status"],
    "skyhook_node_target_count": ["skyhook_name"],
    "skyhook_package_state_count": [*OF_PACKAGE, "state"],
    "skyhook_package_stage_count": [*OF_PACKAGE, "stage"],
    "skyhook_package_restarts_count": OF_PACKAGE,
    **{f"skyhook_rollout_{word}": OF_GROUP for word in (
        "matched_nodes", "ceiling", "in_progress", "completed", "progress_percent",
        "current_batch", "consecutive_failures", "should_stop")}}


def ask(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
        return reply.read().decode()


def check_gauges(text):
    """Each has its type, its labels and whole numbers, and all its samples stand together."""
    found, now = {}, None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            now, kind = line.split()[2:]
            assert now not in found, f"{now} twice"
            found[now] = (kind, [])
        elif not line.startswith("#"):
            name, labels = line.split("{", 1)
            labels, value = labels.rsplit("} ", 1)
            assert name == now and value.isdigit(), line
            found[now][1].append([one.split("=")[0] for one in labels.split(",")])
    for name, labels in GAUGES.items():
        assert name in found and found[name][0] == "gauge", f"no gauge {name}"
        assert found[name][1] and all(one == labels for one in found[name][1]), found[name]


def tells(cluster, _):
    """metrics, health and events say what happened"""
    assert ask(PORTS[1], "/healthz") == "ok" and ask(PORTS[1], "/readyz") == "ok"
    text = ask(PORTS[0], "/metrics")
    check_gauges(text)
    for line in ('skyhook_status{skyhook_name="base",status="complete"} 1',
                 f'skyhook_node_target_count{{skyhook_name="base"}} {NODES}',
                 'skyhook_package_state_count{skyhook_name="base",package_name="tune",'
                 f'package_version="2.0.0",state="complete"}} {NODES}',
                 'skyhook_rollout_ceiling{skyhook_name="base",policy_name="five",'
                 f'compartment_name="__default__",strategy="fixed"}} {BUDGET}'):
        assert line in text.splitlines(), f"no {line}"
    found = [(e["involvedObject"]["kind"], e["reason"], e["message"])
             for e in cluster.api.list("events", "default")
             if e["source"].get("component") == "skyhook-controller"]
    assert ("Skyhook", "State", "Skyhook transitioned [in_progress] -> [complete]") in found, found
    assert any(kind == "Node" and "state erroring on [skyhook:bad]" in message
               for kind, _, message in found), found


def forgets(cluster, _):
    """a Skyhook that is deleted has no metrics any more"""
    cluster.api.delete("skyhooks", "bad")
    api.wait_until("it is gone", lambda: not cluster.api.find("skyhooks", "bad"))
    api.wait_until("and its metrics", lambda: 'skyhook_name="bad"' not in ask(
        PORTS[0], "/metrics"))
    assert 'skyhook_status{skyhook_name="base",status="complete"} 1' in ask(PORTS[0], "/metrics")


def rests(cluster, _):
    """at rest nothing is written"""
    cluster.wait_quiet()
    since = len(rollout.history(cluster))
    time.sleep(3)
    more = rollout.history(cluster, since)
    assert not more, [(e["verb"], e["objectRef"]) for e in more]


def in_its_pod(cluster, program):
    """in a pod it finds server and account by itself, and a new token when the old one ends"""
    cluster.add_nodes(2, prefix="podded", labels=lambda _: {"podded": "yes"})
    rollout.create_account(cluster, "drover", rollout.SPACE)
    account = in_pod.Account(cluster, "drover", rollout.SPACE)
    operator = rollout.Operator(program, cluster, elect=True)
    operator.pod = account
    since = len(list(audit.entries(cluster.audit_file)))

    def complete(name):
        cluster.api.create("skyhooks", rollout.skyhook(
            name, {f"{name}-p": rollout.package()}, priority=1,
            nodeSelectors={"matchLabels": {"podded": "yes"}}))
        rollout.wait_status(cluster, name, "complete")

    def asked():
        return [e for e in list(audit.entries(cluster.audit_file))[since:]
                if e["user"]["username"] == account.user()]
    with operator:
        complete("podded")
        old = api.Api(cluster.port, account.folder / "ca.crt", account.token(), "drover-test")
        account.renew()
        account.revoke_old()
        api.wait_until("the old token is of no more use",
                       lambda: old.raw("GET", "/api/v1/nodes?limit=1")[0] == 401)
        complete("podded-2")
    wrong = [e for e in asked() if e["responseStatus"].get("code") == 403]
    assert not wrong, [(e["verb"], audit.resource(e)) for e in wrong]
    made = {e["objectRef"]["namespace"] for e in asked()
            if audit.resource(e) == "jobs" and e["verb"] == "create"}
    assert made == {rollout.SPACE}, made


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("the operator", problem)
        return tap.done()
    program = drover.programs()[0]
    with plane.Cluster("check-operator") as cluster:
        rollout.prepare(cluster, program)
        cluster.add_nodes(NODES)
        cluster.api.create("deploymentpolicies", rollout.policy("five", {"count": BUDGET}))
        cluster.api.create("deploymentpolicies", rollout.policy(
            "stop", {"percent": 100}, {"fixed": {"initialBatch": 2, "failureThreshold": 1}}))
        ports = [f"--{name}-port=127.0.0.1:{port}" for name, port in
                 zip(("metrics", "probe"), PORTS)]
        with rollout.Operator(program, cluster, *ports) as operator:
            for act in (installs, reads_little, upgrades, stops, tells, forgets, rests):
                wrong = None
                try:
                    act(cluster, operator)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}"
                    cluster.fail()
                tap.test(act.__doc__, wrong)
            ended = operator.stop()
            tap.test("it ends when told", None if ended == 0 else f"exit status {ended}")
        problem = in_pod.missing()
        if problem:
            tap.skip(in_its_pod.__doc__, problem)
            return tap.done()
        try:
            in_its_pod(cluster, program)
            wrong = None
        except Exception as error:  # pylint: disable=broad-exception-caught
            wrong = f"{type(error).__name__}: {error}"
            cluster.fail()
        tap.test(in_its_pod.__doc__, wrong)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
