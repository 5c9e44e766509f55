#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard of `drover operator` on a real API server: what it answers, to whom, and what a
person sees of it in a browser (tests/browser/operator.mjs). TAP."""

import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import audit
import binaries
import drover
import hub
import plane
import rollout

NODES = 12
GPU = 4  # of them; they are a compartment
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SK = "slow"
RING = {"canary": 2, "rest": 4}  # clusters of each partition
CLUSTERS = sum(RING.values())
APP, TOOL = (f"{hub.SPACE}/{name}" for name in ("app", "tool"))


def policy():
    fixed = {"fixed": {"initialBatch": 100}}
    return {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "DeploymentPolicy",
            "metadata": {"name": "careful"},
            "spec": {"default": {"budget": {"count": 2}, "strategy": fixed},
                     "compartments": [{"name": "gpu", "selector": {"matchLabels": {"gpu": "yes"}},
                                       "budget": {"count": 1}, "strategy": fixed}]}}


def add_bundles(cluster):
    """Two partitions each; the second one waits for an approval."""
    hub.add_clusters(cluster, CLUSTERS, labels=lambda number: {
        "ring": "canary" if number < RING["canary"] else "rest"})
    parts = [{"name": name, "maxUnavailable": 1, "approval": name == "rest",
              "clusterSelector": {"matchLabels": {"ring": name}}} for name in RING]
    for name in ("app", "tool"):
        cluster.api.create("bundles", hub.bundle(name, "one", {"partitions": parts}), hub.SPACE)


def grant(cluster, user, group, resource, space=None):
    """The right to change one kind, everywhere or in one namespace."""
    of, bound = ("roles", "rolebindings") if space else ("clusterroles", "clusterrolebindings")
    where = [space] if space else []
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": ["patch"]}]
    cluster.api.create(of, {"metadata": {"name": user}, "rules": rules}, *where)
    cluster.api.create(bound, {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "name": user,
                    "kind": "Role" if space else "ClusterRole"},
        "subjects": [{"kind": "User", "name": user,
                      "apiGroup": "rbac.authorization.k8s.io"}]}, *where)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Dashboard:
    """What it says on its port."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, token=None, body=None, headers=None):
        """Status, headers and bytes."""
        # pylint: disable=too-many-arguments
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        all_headers = dict(headers or {})
        if token:
            all_headers["Authorization"] = f"Bearer {token}"
        link.request(method, path, json.dumps(body) if body is not None else None, all_headers)
        answer = link.getresponse()
        found = answer.status, answer.headers, answer.read()
        link.close()
        return found

    def get(self, path, token=None):
        status, _, text = self.ask("GET", f"/api/v1/{path}", token)
        assert status == 200, f"{path}: {status} {text}"
        return json.loads(text)

    def act(self, act, token, **body):
        status, _, text = self.ask("POST", f"/api/v1/actions/{act}", token, body)
        return status, json.loads(text)

    def events(self, after, count):
        """The next entries of the stream behind one."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        link.request("GET", "/api/v1/events", headers={"Last-Event-ID": str(after)})
        answer, found = link.getresponse(), []
        assert answer.status == 200, answer.status
        while len(found) < count:
            line = answer.readline().decode()
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
        link.close()
        return found


class Story:
    """A cluster in the middle of a rollout, and who looks at it."""

    def __init__(self, cluster, operator, agents):
        self.cluster = cluster
        self.operator = operator
        self.agents = agents
        self.admin = cluster.token("admin")
        self.viewer = cluster.token("viewer")
        self.keepers = {user: cluster.token(user)
                        for user in ("of-skyhooks", "of-bundles", "of-space")}

        def port():
            log = (cluster.logs / "operator.log").read_text(encoding="utf-8")
            return re.findall(r"dashboard at http://127\.0\.0\.1:(\d+)/", log)
        self.board = Dashboard(int(api.wait_until("the dashboard is there", port)[-1]))

    def in_flight(self):
        found = self.board.get(f"targets?deployment={SK}&state=inFlight")["items"]
        return sorted(one["target"] for one in found)

    def waiting(self, change):
        return self.board.get(f"targets?deployment={change}&state=waiting")["items"]

    def paused(self):
        found = self.board.get("fleet")
        return [found["changes"][at] for at in found["paused"]]


def looks(story):
    """everybody on this machine sees nodes, compartments, claims and reasons, of the engine"""
    info = story.board.get("info")
    assert (info["mode"], info["role"]) == ("operator", "viewer"), info
    found = story.board.get("fleet")
    assert found["changes"] == ["base", SK, APP, TOOL], found["changes"]
    assert len(found["targets"]) == NODES + CLUSTERS, found
    assert sorted(found["groups"]) == ["__default__", "canary", "gpu", "rest"], found["groups"]
    groups = [one for one in story.board.get("groups")["items"] if one["change"] == SK]
    assert {one["name"]: (one["matched"], one["limit"], one["holders"]) for one in groups} == \
        {"gpu": (GPU, 1, 1), "__default__": (NODES - GPU, 2, 2)}, groups
    one = story.board.get(f"targets?deployment={SK}&resource=node-00001")["items"][0]
    assert one["state"] == "waiting" and one["reasons"][0]["holders"] == ["node-00000"], one
    jobs = story.board.get(f"jobs?deployment={SK}")["items"]
    assert sorted(job["resource"] for job in jobs) == story.in_flight(), jobs
    assert all(job["state"] == "running" and job["startedAt"] for job in jobs), jobs
    page = story.board.get("targets?limit=5")
    rest = story.board.get(f"targets?limit=1000&continue={page['continue']}")
    assert len(page["items"]) == 5 and len(rest["items"]) == 2 * NODES + 2 * CLUSTERS - 5
    labels = story.board.get("resources/node-00000")["metadata"]["labels"]
    assert labels["gpu"] == "yes", labels


def clusters(story):
    """Bundles, clusters, partitions and their reasons are there as well"""
    waiting = story.waiting(APP)
    assert [one["target"] for one in waiting] == ["c0002", "c0003", "c0004", "c0005"], waiting
    for one in waiting:
        why = one["reasons"][0]
        assert (one["environment"], why["rule"], why["scope"]) == \
            (hub.SPACE, "approval", "partition rest"), one
        assert why["releasedBy"] == {"act": "approve", "of": ["rest"]}, one
    groups = [one for one in story.board.get("groups")["items"] if one["change"] == APP]
    assert [(one["kind"], one["name"], one["matched"], one["limit"], one["holders"])
            for one in groups] == [("partition", "canary", 2, 1, 0),
                                   ("partition", "rest", 4, 1, 0)], groups
    jobs = story.board.get(f"jobs?deployment={APP}")["items"]
    assert {(job["resource"], job["group"], job["state"]) for job in jobs} == \
        {("c0000", "canary", "succeeded"), ("c0001", "canary", "succeeded")}, jobs
    assert story.board.get("resources/c0004")["metadata"]["labels"]["ring"] == "rest"


def bundle_acts(story):
    """a Bundle is paused, resumed and approved by the viewer's own token, and by no other"""
    ask = story.board.act
    assert ask("approve", None, deployment=TOOL, partition="rest")[0] == 401
    assert ask("approve", story.viewer, deployment=TOOL, partition="rest")[0] == 403
    assert ask("approve", story.admin, deployment=TOOL)[0] == 422
    assert ask("approve", story.admin, deployment=SK, partition="rest")[0] == 404
    assert ask("retry", story.admin, deployment=TOOL)[0] == 404
    assert ask("pause", story.admin, deployment=f"{hub.SPACE}/none")[0] == 404
    assert ask("pause", story.admin, deployment=TOOL, reason="lunch")[0] == 200
    api.wait_until("the engine knows", lambda: story.paused() == [TOOL], 10)
    assert story.cluster.api.get("bundles", "tool", hub.SPACE)["spec"]["paused"]
    assert ask("resume", story.admin, deployment=TOOL)[0] == 200
    api.wait_until("the engine knows", lambda: story.paused() == [], 10)
    silent = hub.home("c0002")
    story.agents.broken[silent] = "silent"
    assert ask("approve", story.admin, deployment=TOOL, partition="rest")[0] == 200
    api.wait_until("one is released and says nothing", lambda: story.board.get(
        f"targets?deployment={TOOL}&state=inFlight")["items"])
    plan = story.board.get("plan?duration=10s")
    rest = next(one for one in plan["changes"] if one["name"] == TOOL)["groups"][1]
    assert rest["inUse"][0][1] >= 1 and rest["inUse"][-1] == [10, 0], plan
    story.agents.wake(silent)
    hub.wait_ready(story.cluster, "tool", CLUSTERS, 30)
    assert len(story.waiting(APP)) == RING["rest"], "the other Bundle was not approved"
    entries = [one["entry"] for one in story.board.get("journal?limit=1000")["items"]
               if one["who"] and one["entry"].get("change") == TOOL]
    assert [(one["act"], one.get("partition")) for one in entries] == \
        [("pause", None), ("resume", None), ("approve", "rest")], entries


def plans(story):
    """the plan goes on from where nodes and clusters are, both at once, by the same limits"""
    plan = story.board.get("plan?duration=10s")
    assert [(one["name"], one["kind"]) for one in plan["changes"]] == \
        [("base", "Skyhook"), (APP, "Bundle"), (TOOL, "Bundle"), (SK, "Skyhook")], plan
    # Every node is done in the end; of clusters those that need no approval are.
    assert (plan["outcome"], plan["targets"]) == ("stalled", NODES + CLUSTERS), plan
    assert (plan["done"], plan["starts"]) == (NODES + RING["canary"], NODES - 3), plan
    assert {one["change"] for one in plan["waiting"]} == {APP, TOOL}, plan["waiting"]
    own = next(one for one in plan["changes"] if one["name"] == SK)
    for group in own["groups"]:
        assert group["inUse"][0][0] == 0 and group["inUse"][-1][1] == 0, group
        assert max(count for _, count in group["inUse"]) == group["ceiling"], group


def journal(story):
    """decisions are a journal and a stream that resumes"""
    entries = story.board.get("journal?limit=1000")["items"]
    kinds = {one["entry"].get("decision") for one in entries}
    assert {"batch", "start", "run", "release", "judge"} <= kinds, kinds
    assert [one["sequence"] for one in entries] == list(range(1, len(entries) + 1))
    assert story.board.events(2, 3) == entries[2:5]
    last = story.board.get("info")["sequence"]
    story.cluster.api.patch("nodes", "node-00003", {"metadata": {"labels": {"rack": "b"}}})
    fact = story.board.events(last, 1)[0]
    assert fact["entry"] == {"fact": "document", "kind": "Node", "name": "node-00003"}, fact


def refusals(story):
    """other hosts, other sites and unknown tokens are refused, and pages load nothing else"""
    ask = story.board.ask
    assert ask("GET", "/api/v1/info", headers={"Host": "evil.test"})[0] == 421
    assert ask("GET", "/api/v1/info", headers={"Origin": "http://evil.test"})[0] == 403
    assert ask("GET", "/api/v1/info", "nonsense")[0] == 401
    assert ask("GET", "/api/v1/nothing")[0] == 404
    assert ask("PUT", "/api/v1/fleet")[0] == 405
    status, headers, _ = ask("GET", "/")
    assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"], headers
    config = f"--kubeconfig={story.cluster.kubeconfig()}"
    result = drover.run(story.operator.program, "operator", config, "--dashboard", "0.0.0.0:0")
    assert result.status == 2 and "--dashboard-insecure" in result.err, result


def acts(story):
    """an act is the viewer's own: the API server allows or refuses it, not the operator"""
    assert story.board.act("pause", None, deployment=SK)[0] == 401
    assert story.board.get("info", story.viewer)["role"] == "viewer"
    status, found = story.board.act("pause", story.viewer, deployment=SK)
    assert status == 403 and "viewer" in found["error"]["message"], found
    assert story.board.act("pause", story.admin, deployment="nothing")[0] == 404
    assert story.board.act("rollback", story.admin, deployment=SK)[0] == 404
    info = story.board.get("info", story.admin)
    assert (info["caller"], info["role"]) == ("admin", "operator"), info
    assert story.board.act("pause", story.admin, deployment=SK, reason="lunch")[0] == 200
    api.wait_until("the engine knows", lambda: story.paused() == [SK], 10)
    one = story.board.get(f"targets?deployment={SK}&resource=node-00001")["items"][0]
    assert one["reasons"][0]["rule"] == "paused", one
    assert story.board.act("resume", story.admin, deployment=SK)[0] == 200
    api.wait_until("the engine knows", lambda: story.paused() == [], 10)
    assert story.board.act("retry", story.admin, deployment=SK, resource="node-00000")[0] == 200
    entries = [one for one in story.board.get("journal?limit=1000")["items"] if one["who"]]
    assert [(one["who"], one["entry"]["act"]) for one in entries] == \
        [("admin", "pause"), ("admin", "resume"), ("admin", "retry")], entries
    assert entries[0]["entry"]["reason"] == "lunch", entries
    writers = {entry["user"]["username"] for entry in audit.entries(story.cluster.audit_file)
               if entry["verb"] == "patch" and entry.get("userAgent") == "drover-dashboard"}
    assert writers == {"admin", "viewer"}, writers


def rights(story):
    """rights are asked for kind by kind, and for Bundles also namespace by namespace"""
    found = {user: story.board.get("info", token) for user, token in story.keepers.items()}
    assert {user: (one["caller"], one["role"], one["actsOn"]) for user, one in found.items()} == {
        "of-skyhooks": ("of-skyhooks", "operator", ["Skyhook"]),
        "of-bundles": ("of-bundles", "operator", ["Bundle"]),
        "of-space": ("of-space", "operator", [f"{hub.SPACE}/Bundle"])}, found
    for token, kinds in ((story.admin, ["Skyhook", "Bundle"]), (story.viewer, []), (None, [])):
        found = story.board.get("info", token)
        assert found.get("actsOn", []) == kinds, found
    # The API server says the same to who acts.
    ask = story.board.act
    for user, change, status in (("of-skyhooks", SK, 200), ("of-skyhooks", APP, 403),
                                 ("of-bundles", SK, 403), ("of-bundles", APP, 200),
                                 ("of-space", SK, 403), ("of-space", APP, 200)):
        for act in ("pause", "resume"):
            found = ask(act, story.keepers[user], deployment=change)
            assert found[0] == status, (user, act, change, found)
    api.wait_until("the engine knows", lambda: story.paused() == [], 10)


def restarts(story):
    """an operator that begins anew shows what runs, and says that it began before"""
    story.operator.stop()
    story.operator.start()
    api.wait_until("it knows everything",
                   lambda: story.board.ask("GET", "/api/v1/fleet")[0] == 200, 30)
    jobs = story.board.get("jobs")["items"]
    assert len(jobs) == 3 and all("before" in job["reason"] for job in jobs), jobs
    assert story.in_flight() == sorted(job["resource"] for job in jobs), jobs
    story.operator.stop()
    story.operator.words = [word.replace("=all", "=clusters") for word in story.operator.words]
    story.operator.start()
    api.wait_until("it knows clusters alone",
                   lambda: story.board.ask("GET", "/api/v1/fleet")[0] == 200, 30)
    assert story.board.get("fleet")["changes"] == [APP, TOOL]
    status, found = story.board.act("retry", story.admin, deployment=SK)
    assert status == 404 and "no act" in found["error"]["message"], found


def in_browser(story):
    """a person sees it, explains a node, shows a token, pauses and resumes"""
    browser = next((shutil.which(name) for name in BROWSERS if shutil.which(name)), None)
    web = drover.ROOT / "web"
    if not browser:
        return "there is no Chromium"
    pictures = story.operator.program.parent / "browser"
    pictures.mkdir(exist_ok=True)
    environment = dict(os.environ, URL=f"http://127.0.0.1:{story.board.port}", CHROMIUM=browser,
                       TOKEN=story.admin, PICTURES=str(pictures), WEB=str(web),
                       OF_SKYHOOKS=story.keepers["of-skyhooks"], OF_SPACE=story.keepers["of-space"])
    found = subprocess.run(
        ["node", str(HERE.parent / "browser" / "operator.mjs")], env=environment, check=False,
        capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr
    return None


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("the operator's dashboard", problem)
        return tap.done()
    program = drover.programs()[0]
    with plane.Cluster("check-dashboard") as cluster:
        rollout.prepare(cluster, program)
        hub.prepare(cluster, program)
        cluster.add_nodes(NODES, labels=lambda number: {"gpu": "yes"} if number < GPU else {})
        cluster.behave(**{"slow-1.0.0": "hang"})
        cluster.api.create("deploymentpolicies", policy())
        grant(cluster, "of-skyhooks", "skyhook.nvidia.com", "skyhooks")
        grant(cluster, "of-bundles", "fleet.cattle.io", "bundles")
        grant(cluster, "of-space", "fleet.cattle.io", "bundles", hub.SPACE)
        port = free_port()
        with rollout.Operator(program, cluster, "--dashboard", f":{port}",
                              "--serve=all") as operator, hub.Agents(cluster, 0.1) as agents:
            add_bundles(cluster)
            cluster.api.create("skyhooks", rollout.skyhook("base", {"tune": rollout.package()}))
            rollout.wait_status(cluster, "base", "complete")
            cluster.api.create("skyhooks", rollout.skyhook(
                SK, {"slow": rollout.package()}, deploymentPolicy="careful"))
            story = Story(cluster, operator, agents)
            api.wait_until("three nodes are worked on", lambda: len(story.in_flight()) == 3)
            api.wait_until("the first partitions are done", lambda: all(
                len(story.waiting(one)) == RING["rest"] for one in (APP, TOOL)))
            for act in (looks, clusters, plans, journal, refusals, acts, bundle_acts, rights,
                        in_browser, restarts):
                wrong = skipped = None
                try:
                    skipped = act(story)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}"
                    cluster.fail()
                if skipped:
                    tap.skip(act.__doc__, skipped)
                else:
                    tap.test(act.__doc__, wrong)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
