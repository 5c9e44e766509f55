#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Drover brings to a cluster, shown to a real API server: the definitions of its kinds,
its manifests and samples, the Jobs and ConfigMaps of the operator, and bad documents.

A bad document of tests/data/bad is refused by the server, too, or stands in UNSAID: what neither a
schema nor a CEL rule of bearable cost can say. What `drover validate` accepts is never refused.
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "cli")]
# pylint: disable=wrong-import-position
import api
import binaries
import check_bad_documents
import drover
import plane

OBJECTS = drover.ROOT / "tests" / "data" / "operator"
KINDS = {"Skyhook": "skyhooks", "DeploymentPolicy": "deploymentpolicies"}
GOOD = ["deploy/samples", "examples/skyhook/gpu-init.yaml", "examples/skyhook/legacy-budget.yaml",
        "examples/skyhook/policies.yaml", "tests/data/documents/deployment-policy.yaml",
        "tests/data/documents/skyhook.yaml"]
STATUS = "tests/data/documents/skyhook-status.yaml"
# Names of cases, without the file they stand in.
UNSAID = {
    "selector: labels without matchLabels": "what nobody knows is pruned",
    "selector: a bad label key": "keys of a map have no pattern",
    "package: a config interrupt whose glob matches nothing": "CEL has no globs",
    "package: a configMap key that is no file name": "keys of a map have no pattern",
    "package: a cycle of three": "CEL has no search",
    "package: a quantity that does not fit": "the server's quantities are longer",
    "a status nobody knows": "the status is not taken with the document",
    "a policy that is not among the documents": "it may come later",
    "two compartments with one selector": "comparing all with all costs too much",
}
ACCOUNT = "system:serviceaccount:skyhook:drover"
ALLOWED = [  # verb, resource, namespace; an empty namespace: all of them
    ("patch", "nodes", ""), ("patch", "nodes/status", ""), ("create", "pods/eviction", ""),
    ("list", "pods", ""), ("create", "jobs.batch", "skyhook"), ("delete", "pods", "skyhook"),
    ("update", "skyhooks.skyhook.nvidia.com", ""), ("create", "events", "default"),
    ("update", "leases.coordination.k8s.io", "skyhook"), ("create", "configmaps", "skyhook"),
    ("patch", "skyhooks.skyhook.nvidia.com/status", "")]
DENIED = [
    ("create", "jobs.batch", "default"), ("delete", "pods", "default"), ("get", "secrets", ""),
    ("get", "secrets", "skyhook"), ("delete", "nodes", ""), ("create", "pods", "skyhook"),
    ("update", "deploymentpolicies.skyhook.nvidia.com", ""), ("get", "configmaps", "default"),
    ("delete", "skyhooks.skyhook.nvidia.com", ""), ("patch", "pods/status", "skyhook")]


class Server:
    """The cluster, and kubectl on it."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.api = cluster.api
        self.config = cluster.kubeconfig()

    def kubectl(self, *words, stdin=None):
        ran = subprocess.run([str(self.cluster.programs / "kubectl"), f"--kubeconfig={self.config}",
                              *words], input=stdin, cwd=drover.ROOT, text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return ran.returncode, ran.stdout

    def applied(self, *files, more=()):
        words = [word for file in files for word in ("-f", str(file))]
        status, text = self.kubectl("apply", "--server-side", *more, *words)
        return "" if status == 0 else text

    def refusal(self, resource, data):
        """What the server says against a YAML document; empty if nothing."""
        path = api.Api.path(resource, dryRun="All")
        link = self.api.connect()
        try:
            link.request("POST", path, body=data, headers={
                **self.api.headers, "Content-Type": "application/yaml"})
            reply = link.getresponse()
            body = reply.read()
        finally:
            link.close()
        return "" if reply.status < 400 else json.loads(body)["message"]


def definitions(tap, server):
    """The server takes them, and serves the kinds."""
    tap.test("definitions are accepted", server.applied("deploy/crds"))
    status, text = server.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd",
                                  "--all")
    tap.test("and established", "" if status == 0 else text)
    for crd in server.api.list("customresourcedefinitions"):
        wrong = [c for c in crd["status"]["conditions"]
                 if c["type"] == "NonStructuralSchema" and c["status"] == "True"]
        tap.test(f"{crd['metadata']['name']} is structural", wrong)


def manifests(tap, server):
    """Manifests are accepted, and grant what the operator needs and no more."""
    tap.test("manifests are accepted", server.applied("deploy/operator.yaml"))
    wrong = []
    for answer, rows in (("yes", ALLOWED), ("no", DENIED)):
        for verb, resource, space in rows:
            where = ["--all-namespaces"] if not space else ["-n", space]
            thing, _, part = resource.partition("/")
            _, text = server.kubectl("auth", "can-i", verb, thing, f"--subresource={part}",
                                     f"--as={ACCOUNT}", *where)
            if text.strip().splitlines()[-1] != answer:
                wrong.append(f"{verb} {resource} in {space or 'all namespaces'}: {text.strip()}")
    tap.test("the operator's account may do what it must, and no more", "\n".join(wrong))


def objects(tap, server):
    """Jobs and ConfigMaps as the operator makes them."""
    server.api.create("namespaces", {"metadata": {"name": "elsewhere"}})
    for file in sorted(OBJECTS.glob("*.json")):
        thing = json.loads(file.read_text(encoding="utf-8"))
        resource = {"Job": "jobs", "ConfigMap": "configmaps"}[thing["kind"]]
        path = api.Api.path(resource, None, thing["metadata"]["namespace"], dryRun="All",
                            fieldValidation="Strict")
        wrong = ""
        try:
            server.api.ask("POST", path, thing)
        except api.ApiError as error:
            wrong = str(error)
        tap.test(f"{file.stem} is accepted", wrong)


def good_documents(tap, server):
    for file in GOOD:
        tap.test(f"{file} is accepted", server.applied(file, more=["--dry-run=server"]))
    tap.test("samples can be stored", server.applied("deploy/samples"))
    found = server.api.get("skyhooks", "skyhook-sample")["spec"]
    tap.test("defaults are filled in", drover.difference(
        (200, "node", False), (found["priority"], found["sequencing"], found["runtimeRequired"])))
    policy = server.api.get("deploymentpolicies", "deploymentpolicy-sample")["spec"]
    tap.test("those of strategies, too", drover.difference(
        {"initialBatch": 1, "failureThreshold": 1, "batchThreshold": 100, "safetyLimit": 50},
        policy["default"]["strategy"]["fixed"]))
    text = (drover.ROOT / STATUS).read_text(encoding="utf-8")
    given = ("  uid:", "  resourceVersion:")  # by the server
    text = "".join(line for line in text.splitlines(True) if not line.startswith(given))
    status, said = server.kubectl("create", "-f", "-", stdin=text)
    tap.test("a Skyhook with a status can be stored", "" if status == 0 else said)
    name = said.split()[0].partition("/")[2]
    status, said = server.kubectl("patch", "skyhook", name, "--subresource=status", "--type=merge",
                                  "-p", text)
    tap.test("and its status", "" if status == 0 else said)
    found = server.api.get("skyhooks", name).get("status", {})
    tap.test("in whole", "" if {"nodeState", "compartmentStatuses"} <= set(found) else found)
    _, text = server.kubectl("get", "skyhooks")
    columns = "NAME STATUS PRIORITY AGE NODES IN-PROGRESS COMPLETE NODES PACKAGES POLICY"
    tap.test("kubectl shows its columns", drover.difference(
        columns, " ".join(text.splitlines()[0].split())))


def one_of_ours(case):
    """The resource of a case that is one document of a kind of ours, else None."""
    kinds = [line.split()[1] for line in case.document if line.startswith("kind: ")]
    if len(kinds) != 1 or "---" in case.document:
        return None
    return KINDS.get(kinds[0])


def bad_documents(tap, server):
    refused, accepted, unsaid = 0, 0, set()
    for source in ("skyhook", "policy"):
        for case in check_bad_documents.read_cases(check_bad_documents.DATA / f"{source}.txt")[1]:
            resource = one_of_ours(case)
            if not resource:
                continue
            name = case.name.split(": ", 1)[1]
            bad = any(not line.startswith("warning: ") for line in case.expected)
            said = server.refusal(resource, case.bytes())
            if not bad:
                accepted += 1
                tap.test(f"accepted: {case.name}", said)
            elif name in UNSAID:
                unsaid.add(name)
                tap.test(f"not said by the schema ({UNSAID[name]}): {case.name}",
                         "" if not said else f"it is refused after all: {said}")
            else:
                refused += 1
                tap.test(f"refused: {case.name}", "" if said else "the server accepts it")
                print(f"# {said}")
    tap.test("what is not said is still a case", sorted(set(UNSAID) - unsaid))
    tap.test("there are many cases", "" if refused > 50 and accepted > 5 else
             f"{refused} refused, {accepted} accepted")


def skyhook(**spec):
    return "skyhooks", {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
                        "metadata": {"name": "words"}, "spec": spec}


def package(**more):
    return skyhook(packages={"aa": {"version": "1.0.0", "image": "x", **more}})


def policy(**default):
    budget, strategy = {"count": 1}, {"fixed": {}}
    return "deploymentpolicies", {
        "apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "DeploymentPolicy",
        "metadata": {"name": "words"},
        "spec": {"default": {"budget": budget, "strategy": strategy, **default}}}


def compartment(**more):
    kind, document = policy()
    document["spec"]["compartments"] = [{"selector": {}, "budget": {"count": 1}, **more}]
    return kind, document


CPU = {"cpuRequest": "2", "cpuLimit": "1", "memoryRequest": "1", "memoryLimit": "1"}
WORDS = [  # what the webhooks of Skyhook say, less the names in between
    (skyhook(interruptionBudget={"percent": 1, "count": 1}),
     "error InterruptionBudget is not valid, both percent and count can not be set at the same "
     "time"),
    (skyhook(interruptionBudget={"count": 1}, deploymentPolicy="p"),
     "deploymentPolicy and interruptionBudget are mutually exclusive"),
    (package(name="bb"), "Do not explicitly set the name in the package's definition"),
    (skyhook(packages={"A": {"version": "1.0.0", "image": "x"}}),
     "is not valid. must match [(?m)^[a-z][-a-z0-9]{0,41}[a-z]$]"),
    (package(configInterrupts={"k": {"type": "noop"}}),
     "error config interrupt for key that doesn't exist: "),
    (package(image="x:2.0.0"), "Do not explicitly set the image's tag in the package's definition "
     "(The package version will be set as the tag)"),
    (package(resources={"cpuRequest": "1"}), "if any resource override is set, all of cpuRequest, "
     "cpuLimit, memoryRequest, memoryLimit must be set"),
    (package(resources=CPU), "must be >= cpuRequest"),
    (package(resources=dict.fromkeys(CPU, "0")), "all resource values must be positive"),
    (package(uninstall={"apply": True}), "uninstall.apply requires uninstall.enabled to be true"),
    (package(dependsOn={"bb": "1.0.0"}), "error graph is not valid, missing: "),
    (policy(budget={}), "exactly one of percent or count must be set"),
    (policy(strategy={}), "exactly one of fixed, linear, or exponential must be set"),
    (compartment(name="__default__"),
     'compartment name "__default__" is reserved and cannot be used'),
    (compartment(name="a", strategy={"fixed": {}, "linear": {}}),
     "exactly one of fixed, linear, or exponential must be set"),
]


def words_of_webhooks(tap, server):
    for (resource, document), words in WORDS:
        said = server.refusal(resource, json.dumps(document).encode())
        tap.test(f"it says: {words}", "" if words in said else said or "it is accepted")


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("objects on a real API server", problem)
        return tap.done()
    with plane.Cluster("check-objects") as cluster:
        server = Server(cluster)
        for part in (definitions, manifests, objects, good_documents, bad_documents,
                     words_of_webhooks):
            part(tap, server)
        if tap.failed:
            cluster.fail()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
