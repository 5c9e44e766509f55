#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fleet's kinds on a hub that has none, shown to a real API server: `drover crds fleet` is
accepted, objects keep all that they say, also what Drover does not know, and what `drover bundle`
prints can be applied as it is. TAP."""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import binaries
import drover
import plane

FILES = ["tests/data/documents/bundle.yaml", "tests/data/documents/clusters.yaml",
         "tests/data/documents/bundle-deployment.yaml", "examples/fleet/bundle.yaml",
         "examples/fleet/clusters.yaml", "deploy/fleet/samples/bundle.yaml",
         "deploy/fleet/samples/clustergroup.yaml",
         "deploy/fleet/samples/bundlenamespacemapping.yaml"]
FOREIGN = {
    "apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Cluster",
    "metadata": {"name": "foreign", "namespace": "fleet-default"},
    "spec": {"agentTolerations": [{"key": "a", "operator": "Exists"}], "agentNamespace": "x",
             "newField": {"deep": [1, {"er": True}]}, "templateValues": {"a": {"b": 1}},
             "hostNetwork": None}}
STATUS = {"namespace": "cluster-x", "agent": {"lastSeen": "2026-11-16T00:00:00Z", "namespace": "y",
                                              "more": 1},
          "agentMigrated": True, "summary": {"ready": 1, "desiredReady": 1, "extra": "kept"},
          "resourceCounts": {"ready": 3}, "display": {"readyBundles": "1/1"}}


# verb, resource, subresource, namespace; HOME is that of the cluster's deployments, "" all of them
MAY = [("watch", "bundledeployments", "", "HOME"), ("get", "secrets", "", "HOME"),
       ("patch", "bundledeployments", "status", "HOME"), ("get", "contents", "", ""),
       ("get", "configmaps", "", "HOME"), ("patch", "clusters/west-1", "status", "fleet-default")]
MAY_NOT = [("get", "clusters", "", "fleet-default"), ("list", "secrets", "", "HOME"),
           ("get", "bundles", "", "fleet-default"), ("get", "secrets", "", "fleet-default"),
           ("patch", "bundledeployments", "", "HOME"), ("get", "secrets", "", ""),
           ("patch", "clusters/west-2", "status", "fleet-default")]


class Server:
    def __init__(self, cluster):
        self.program = str(cluster.programs / "kubectl")
        self.config = cluster.kubeconfig()

    def kubectl(self, *words, stdin=None):
        ran = subprocess.run([self.program, f"--kubeconfig={self.config}", *words], input=stdin,
                             cwd=drover.ROOT, text=True, check=False, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        return ran.returncode, ran.stdout

    def apply(self, text, *more):
        status, said = self.kubectl("apply", "--server-side", *more, "-f", "-", stdin=text)
        return "" if status == 0 else said

    def get(self, *words):
        status, text = self.kubectl("get", *words, "-o", "json")
        assert status == 0, text
        return json.loads(text)


def definitions(tap, server, program):
    text = drover.run(program, "crds", "fleet").out
    tap.test("definitions are accepted", server.apply(text))
    status, said = server.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd",
                                  "--all")
    tap.test("and established", "" if status == 0 else said)
    wrong = [crd["metadata"]["name"] for crd in server.get("crd")["items"]
             for c in crd["status"]["conditions"]
             if c["type"] == "NonStructuralSchema" and c["status"] == "True"]
    tap.test("and structural", ", ".join(wrong))


def part_of(given, found):
    """What of the given is not in the found; empty when all of it is. null is "not given"."""
    if isinstance(given, dict) and isinstance(found, dict):
        lost = [f"{key}: {part_of(value, found.get(key))}" for key, value in given.items()
                if value is not None and part_of(value, found.get(key))]
        return "; ".join(lost)
    if isinstance(given, list) and isinstance(found, list) and len(given) == len(found):
        return "; ".join(filter(None, map(part_of, given, found)))
    return "" if given == found else f"{given!r} became {found!r}"


def documents(tap, server, program):
    """What the samples say is there again when it is read."""
    for name in ("fleet-default", "fleet-local", "cluster-x"):
        server.kubectl("create", "namespace", name)
    for file in FILES:
        _, text = server.kubectl("create", "--dry-run=client", "-o", "json", "-f", file)
        given = json.loads("[" + text.replace("}\n{", "},{") + "]")
        for one in given:
            space = one["metadata"].get("namespace", "default")
            server.kubectl("create", "namespace", space)
            wrong = server.apply(json.dumps(one))
            if not wrong:
                found = server.get(one["kind"], one["metadata"]["name"], "-n", space)
                said = {key: one[key] for key in one if key not in ("metadata", "status")}
                wrong = part_of(said, found)
            tap.test(f"{one['kind']} {one['metadata']['name']} of {file}", wrong)
    made = drover.run(program, "bundle", "examples/fleet/guestbook", "-o", "json").out
    wrong = server.apply(made)
    found = server.get("bundles", "guestbook", "-n", "fleet-default") if not wrong else {}
    tap.test("what drover bundle prints", wrong or part_of(json.loads(made)["spec"], found["spec"]))
    listed = json.dumps(server.get("bundles,clusters,clustergroups", "-A"))
    checked = drover.run(program, "validate", "-f", "-", stdin=listed.encode())
    tap.test("what the server has passes validate", None if checked.status == 0 else repr(checked))


def foreign_fields(tap, server):
    """Fields that only Fleet's own programs know survive, in spec and in status."""
    tap.test("foreign fields are accepted", server.apply(json.dumps(FOREIGN)))
    body = {**FOREIGN, "status": STATUS}
    tap.test("in the status, too", server.apply(json.dumps(body), "--subresource=status",
                                                "--field-manager=agent", "--force-conflicts"))
    found = server.get("clusters", "foreign", "-n", "fleet-default")
    tap.test("and kept", part_of({"spec": FOREIGN["spec"], "status": STATUS}, found))


def registration(tap, server, program):
    """A cluster that is registered, and what its agent may do."""
    text = drover.run(program, "cluster", "register", "west-1", "-l", "env=prod").out
    tap.test("what drover cluster register prints", server.apply(text))
    home = [one["metadata"]["name"] for one in server.get("namespaces")["items"]
            if one["metadata"].get("annotations", {}).get("fleet.cattle.io/cluster") == "west-1"][0]
    wrong = []
    for answer, rows in (("yes", MAY), ("no", MAY_NOT)):
        for verb, resource, part, space in rows:
            where = ["-n", space.replace("HOME", home)] if space else ["-A"]
            _, said = server.kubectl("auth", "can-i", verb, resource, f"--subresource={part}",
                                     f"--as=system:serviceaccount:{home}:agent", *where)
            if said.strip().splitlines()[-1] != answer:
                wrong.append(f"{verb} {resource} {part} in {space}: {said.strip()}")
    tap.test("its agent may do what it must, and no more", "\n".join(wrong))


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("Fleet's kinds on a real API server", problem)
        return tap.done()
    program = drover.programs()[0]
    with plane.Cluster("check-fleet-objects") as cluster:
        server = Server(cluster)
        definitions(tap, server, program)
        documents(tap, server, program)
        foreign_fields(tap, server)
        registration(tap, server, program)
        if tap.failed:
            cluster.fail()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
