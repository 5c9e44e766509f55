# SPDX-License-Identifier: Apache-2.0
"""A cluster with Drover's kinds and rights, the operator that runs in it, and what it is asked."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import audit
import plane

GROUP = "/apis/skyhook.nvidia.com/v1alpha1"
api.GROUPS.update({"skyhooks": GROUP, "deploymentpolicies": GROUP,
                   "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1"})
SPACE = "skyhook"
PREFIX = "skyhook.nvidia.com/"
USER = "drover"


def policy(name, budget, strategy=None):
    compartment = {"budget": budget}
    compartment["strategy"] = strategy or {"fixed": {"initialBatch": 100}}
    return {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "DeploymentPolicy",
            "metadata": {"name": name}, "spec": {"default": compartment}}


def skyhook(name, packages, **spec):
    return {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
            "metadata": {"name": name}, "spec": {"packages": packages, **spec}}


def package(version="1.0.0", **more):
    return {"version": version, "image": "example.test/package", **more}


class Operator:
    """`drover operator` against a cluster, as a process. It may be another user, have something
    between it and its server, and other variables."""

    def __init__(self, program, cluster, *words, elect=False, user=USER, server=None, env=None):
        # pylint: disable=too-many-arguments
        self.program = program
        self.cluster = cluster
        self.words = words if elect else (*words, "--no-leader-election")
        self.user = user
        self.config = cluster.kubeconfig(user, server)
        self.env = env
        self.pod = None  # in_pod.Account: it runs as in a pod
        self.process = None

    def start(self):
        name = "operator" if self.user == USER else f"operator-{self.user}"
        words = [self.program, "operator", *self.words]
        env = os.environ
        if self.pod:
            words, env = self.pod.command(*words), self.pod.variables()
        else:
            words[2:2] = ["--kubeconfig", self.config]
        with open(self.cluster.logs / f"{name}.log", "ab") as log:
            self.process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log,
                                            env={**env, **(self.env or {})})
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)  # somebody may have frozen it
            self.stop()


def objects(*command):
    """What a program prints as JSON, whether one by one or as lists."""
    text = subprocess.run([str(word) for word in command], capture_output=True, check=True,
                          text=True).stdout
    decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        found, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        yield from found.get("items", [found]) if isinstance(found, dict) else found


RIGHTS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
          "Role": "roles", "RoleBinding": "rolebindings"}


def manifests(cluster, name):
    """The objects of deploy/NAME."""
    return objects(cluster.programs / "kubectl", f"--kubeconfig={cluster.kubeconfig()}", "create",
                   "--dry-run=client", "-o", "json", "-f", ROOT / "deploy" / name)


def grant(cluster, manifest="operator.yaml"):
    """The account of deploy/MANIFEST and its rights, which the group of our users here has, too."""
    for one in manifests(cluster, manifest):
        if one["kind"] not in RIGHTS:
            continue
        if "subjects" in one:
            one["subjects"].append({"kind": "Group", "name": "drover",
                                    "apiGroup": "rbac.authorization.k8s.io"})
        cluster.api.create(RIGHTS[one["kind"]], one, one["metadata"].get("namespace"))


def create_account(cluster, name, space):
    """With its namespace; unless they are there."""
    if not cluster.api.find("namespaces", space):
        cluster.api.create("namespaces", {"metadata": {"name": space}})
    if not cluster.api.find("serviceaccounts", name, space):
        cluster.api.create("serviceaccounts", {"metadata": {"name": name}}, space)


def prepare(cluster, program):
    """Drover's kinds, and the rights of its own manifest."""
    for one in objects(program, "crds", "-o", "json"):
        cluster.api.create("customresourcedefinitions", one)
    grant(cluster)
    api.wait_until("the new kinds are served", lambda: served(cluster))


def served(cluster):
    try:
        cluster.api.list("skyhooks")
        return cluster.api.list("deploymentpolicies") is not None
    except api.ApiError:
        return False


def status(cluster, name):
    return cluster.api.get("skyhooks", name).get("status", {})


def wait_status(cluster, name, want, seconds=120):
    """The status word, for the document as it is now."""
    def there():
        found = cluster.api.get("skyhooks", name)
        now = found.get("status", {})
        fresh = want != "complete" or \
            now.get("observedGeneration") == found["metadata"]["generation"]
        return now if now.get("status") == want and fresh else None
    return api.wait_until(f"Skyhook {name} is {want}", there, seconds)


def note(node, key):
    return node["metadata"].get("annotations", {}).get(PREFIX + key)


# ---- what the audit log says

def history(cluster, since=0):
    """Every request of the operator that took effect, in order."""
    return [e for e in audit.entries(cluster.audit_file)
            if e["user"]["username"] == USER and e["verb"] in audit.WRITES][since:]


def failed_writes(entries):
    return [(e["verb"], e["objectRef"].get("resource"), e["objectRef"].get("name"),
             e["responseStatus"].get("code")) for e in entries
            if e["responseStatus"].get("code", 0) >= 400]


def batch_states(entries, name):
    """By compartment, as each status write of the operator said, in order."""
    for entry in entries:
        reference = entry["objectRef"]
        if reference.get("resource") != "skyhooks" or reference.get("name") != name or \
                reference.get("subresource") != "status" or \
                entry["responseStatus"].get("code") != 200:
            continue
        groups = entry["requestObject"]["status"].get("compartmentStatuses", {})
        yield {group: (shown or {}).get("batchState", {}) for group, shown in groups.items()}


def claims(state):
    """How many nodes hold one, by the state of their compartment's batch."""
    return len(state.get("members") or []) + len(state.get("retrying") or [])


def most_claims(entries, name):
    """The most nodes that held claims at any time, as the status writes of the operator said."""
    most, now = 0, {}
    for states in batch_states(entries, name):
        now |= {group: claims(state) for group, state in states.items()}
        most = max(most, sum(now.values()))
    return most


def most_jobs(cluster, name):
    """The most nodes that had a Job at the same time, from the Jobs' own times."""
    events = []
    for job in cluster.api.list("jobs", SPACE):
        if job["metadata"]["labels"].get(PREFIX + "name") != name:
            continue
        node = job["spec"]["template"]["spec"]["nodeName"]
        ended = job["status"].get("completionTime") or next(
            (c["lastTransitionTime"] for c in job["status"].get("conditions", [])
             if c["type"] == "Failed"), "9")
        events += [(job["metadata"]["creationTimestamp"], 1, node), (ended, 0, node)]
    most, running = 0, {}
    for _, begins, node in sorted(events):
        running[node] = running.get(node, 0) + (1 if begins else -1)
        most = max(most, sum(count > 0 for count in running.values()))
    return most


def wait(seconds):
    time.sleep(seconds)
