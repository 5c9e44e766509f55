# SPDX-License-Identifier: Apache-2.0
"""A hub with Fleet's kinds, agents that are played, and what the audit log says of a rollout."""

import base64
import concurrent.futures
import hashlib
import heapq
import http.client
import pathlib
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import audit
import plane
import rollout

GROUP = "/apis/fleet.cattle.io/v1alpha1"
KINDS = ("bundles", "bundledeployments", "clusters", "clustergroups", "bundlenamespacemappings",
         "contents")
api.GROUPS.update({kind: GROUP for kind in KINDS})
SPACE = "fleet-default"
AGENTS = "kubelet"  # the user that all agents are
WRITERS = 16
# What deployments became: who is unavailable follows from them, in the order of their versions.
AUDIT = {**audit.POLICY, "rules": [
    {"level": "RequestResponse", "verbs": ["create", "patch"], "resources": [
        {"group": "fleet.cattle.io",
         "resources": ["bundledeployments", "bundledeployments/status"]}]},
    *audit.POLICY["rules"]]}


def open_hub(name):
    return plane.Cluster(name, audit=AUDIT, scheduler=False)


def prepare(cluster, program):
    """Fleet's kinds as Drover defines them, and the rights of its manifests."""
    for one in rollout.objects(program, "crds", "fleet", "-o", "json"):
        cluster.api.create("customresourcedefinitions", one)
    rollout.grant(cluster, "fleet/rights.yaml")

    def served():
        return all(cluster.api.list(kind) is not None for kind in KINDS)
    api.wait_until("the new kinds are served", served)
    for one in rollout.manifests(cluster, "fleet/namespace.yaml"):
        cluster.api.create("namespaces", one)


def operator(program, cluster, *words, **how):
    return rollout.Operator(program, cluster, "--serve=clusters", *words, **how)


# ---- documents

def home(name):
    return f"cluster-{name}"


def add_clusters(cluster, count, labels=None, first=0):
    """Clusters with the namespaces of their deployments, as a registration leaves them."""
    names = [f"c{number:04d}" for number in range(first, first + count)]

    def create(number, name):
        wanted = labels(number) if callable(labels) else labels
        cluster.api.create("namespaces", {"metadata": {"name": home(name), "annotations": {
            "fleet.cattle.io/cluster-namespace": SPACE, "fleet.cattle.io/cluster": name}}})
        cluster.api.create("clusters", {
            "apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name, "namespace": SPACE,
                         "labels": {"env": "prod", **(wanted or {})}}, "spec": {}}, SPACE)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        cluster.api.patch("clusters", name, {"status": {
            "namespace": home(name), "agent": {"lastSeen": now, "namespace": "x"}}}, SPACE,
            "status")

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(create, range(first, first + count), names))
    return names


def resources(content):
    return [{"name": "map.yaml", "content":
             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: " + content + "}\n"}]


def bundle(name, content, strategy=None, labels=None, **spec):
    selector = {"clusterSelector": {"matchLabels": labels or {"env": "prod"}}}
    return {"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Bundle",
            "metadata": {"name": name, "namespace": SPACE},
            "spec": {"resources": resources(content), "targets": [selector],
                     **({"rolloutStrategy": strategy} if strategy else {}), **spec}}


def change(cluster, name, content):
    cluster.api.patch("bundles", name, {"spec": {"resources": resources(content)}}, SPACE)


def wait_ready(cluster, name, count, seconds=120):
    """All clusters run the document as it is now, and its status says so."""
    def there():
        found = cluster.api.get("bundles", name, SPACE)
        shown = found.get("status", {})
        fresh = shown.get("observedGeneration") == found["metadata"]["generation"]
        ready = shown.get("display", {}).get("readyClusters") == f"{count}/{count}"
        return shown if fresh and ready and not shown["display"].get("state") else None
    return api.wait_until(f"Bundle {name} is ready on {count} clusters", there, seconds)


def deployments(cluster, name):
    return {one["metadata"]["namespace"]: one for one in cluster.api.list("bundledeployments")
            if one["metadata"]["name"] == name}


def values_hash(secret):
    """What spec.valuesHash is of."""
    data = (secret or {}).get("data", {})
    whole = b"".join(base64.b64decode(data.get(key, "")) for key in ("values", "stagedValues"))
    return hashlib.sha256(whole).hexdigest()


# ---- agents

def held(spec):
    return spec.get("paused") or spec.get("offSchedule") or spec.get("waitingForValues")


class Agents:
    """All agents of a hub in one process: each answers a new version after a while."""

    def __init__(self, cluster, latency=1.0):
        self.client = cluster.client(AGENTS, "agents")
        self.latency = latency
        self.broken = {}  # namespace, Bundle or both: "silent", "fail"
        self.seen = {}
        self.values = {}  # the hash of those that the version needs
        self.due = []
        self.lock = threading.Condition()
        self.ended = False
        self.threads = [threading.Thread(target=self.look, daemon=True)] + [
            threading.Thread(target=self.answer, daemon=True) for _ in range(WRITERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        with self.lock:
            self.ended = True
            self.lock.notify_all()

    def look(self):
        version = None
        while not self.ended:
            try:
                query = {"resourceVersion": version} if version else {}
                for kind, thing in self.client.watch("bundledeployments", timeout=3600, **query):
                    version = thing.get("metadata", {}).get("resourceVersion")
                    if kind == "ERROR":
                        version = None
                        break
                    self.take(kind, thing)
            except (api.ApiError, OSError):
                version = None
            time.sleep(0.1)

    def take(self, kind, thing):
        meta, spec = thing["metadata"], thing["spec"]
        key = (meta["namespace"], meta["name"])
        live = spec.get("deploymentID", "")
        with self.lock:
            if kind == "DELETED":
                self.seen.pop(key, None)
            elif live and not held(spec) and self.seen.get(key) != live:
                self.seen[key] = live
                self.values[key] = spec.get("valuesHash", "")
                heapq.heappush(self.due, (time.monotonic() + self.latency, key, live))
                self.lock.notify_all()

    def next(self):
        with self.lock:
            while not self.ended:
                wait = self.due[0][0] - time.monotonic() if self.due else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self.due)
                self.lock.wait(wait)
        return None

    def answer(self):
        while True:
            found = self.next()
            if not found:
                return
            _, key, live = found
            how = self.broken.get(key) or self.broken.get(key[0]) or self.broken.get(key[1])
            if how != "silent" and self.has_values(key, live):
                self.report(key, live, how)

    def has_values(self, key, live):
        """As Fleet's agent does: it says nothing, and looks again soon."""
        wanted = self.values.get(key, "")
        if not wanted or values_hash(self.client.find("secrets", key[1], key[0])) == wanted:
            return True
        with self.lock:
            heapq.heappush(self.due, (time.monotonic() + 0.05, key, live))
            self.lock.notify_all()
        return False

    def report(self, key, live, how):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        failed = {"type": "Deployed", "status": "False", "reason": "Error",
                  "message": "no such chart", "lastUpdateTime": now}
        well = [{"type": kind, "status": "True", "lastUpdateTime": now}
                for kind in ("Deployed", "Installed", "Ready", "Monitored")]
        status = {"conditions": [failed], "ready": False} if how == "fail" else {
            "appliedDeploymentID": live, "ready": True, "nonModified": True, "conditions": well,
            "release": f"default/{key[1]}:1", "resourceCounts": {"ready": 1, "desiredReady": 1}}
        while not self.ended:
            try:
                self.client.patch("bundledeployments", key[1], {"status": status}, key[0],
                                  "status")
                return
            except api.ApiError as error:
                if error.status != 404:
                    raise
                return
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)  # the server ended a connection that was idle: on a new one

    def wake(self, namespace):
        """It is back: what it slept through is looked at."""
        self.broken.pop(namespace, None)
        with self.lock:
            for key, live in self.seen.items():
                if namespace in key:
                    heapq.heappush(self.due, (time.monotonic(), key, live))
            self.lock.notify_all()


# ---- what the audit log says

def entries_since(cluster, offset):
    return [entry for number, entry in enumerate(audit.entries(cluster.audit_file))
            if number >= offset]


def mark(cluster):
    return sum(1 for _ in audit.entries(cluster.audit_file))


def is_done(entry):
    return entry["responseStatus"].get("code", 0) < 300


def of_operator(entries):
    return [e for e in entries if e["user"]["username"] == rollout.USER]


def of_users(entries, users):
    return [e for e in entries if e["user"]["username"] in users and e["verb"] in audit.WRITES and
            e["objectRef"].get("resource") != "leases"]


def writes(entries):
    return [e for e in of_operator(entries) if e["verb"] in audit.WRITES]


class Replay:
    """Who was unavailable when, in the order in which the server stored it."""

    def __init__(self):
        self.now = {}
        self.most = 0
        self.order = []  # clusters in the order in which they got a new version

    def take(self, thing):
        where, live = thing["metadata"]["namespace"], thing["spec"].get("deploymentID")
        status = thing.get("status", {})
        if live and self.now.get(where, (None,))[0] != live:
            self.order.append(where)
        self.now[where] = (live, status.get("appliedDeploymentID") != live or
                           not status.get("ready"))
        self.most = max(self.most, sum(bad for live, bad in self.now.values() if live))


def stored(entries, name=None):
    """(number in the log, BundleDeployment), of one Bundle or all, as the server stored them."""
    return [(number, thing) for number, entry, thing in audit.stored(entries)
            if entry["objectRef"]["resource"] == "bundledeployments" and
            name in (None, thing["metadata"]["name"])]


def replay(cluster, name, since):
    """The whole log is replayed; what counts is what happened from "since" on."""
    found, begun = Replay(), False
    for number, thing in stored(audit.entries(cluster.audit_file), name):
        if number >= since and not begun:
            begun = True
            found.most, found.order = 0, []
        found.take(thing)
    return found
