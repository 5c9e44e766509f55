#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/chart by a real helm: what it makes of values, and what a real API server makes of that.
The operator runs beside the cluster with the account, the arguments and the environment that the
chart gives it. TAP."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import api
import audit
import binaries
import drover
import plane
import rollout

CHART = drover.ROOT / "deploy" / "chart"
RELEASE = "drover"
SPACE = rollout.SPACE
ACCOUNT = f"system:serviceaccount:{SPACE}:drover"
NODES = 4
CLUSTERS = 3
MANAGER = "controllerManager.manager"
ENV = f"{MANAGER}.env"
DIGEST = "sha256:" + 64 * "a"
api.GROUPS.update({"services": "/api/v1", "limitranges": "/api/v1"})


class Helm:
    """The program, with a home of its own."""

    def __init__(self, program, home):
        self.drover, self.home, self.config = program, home, None

    def run(self, *words):
        """Exit status, and what it says."""
        words = [str(word) for word in words]
        if self.config and words[0] not in ("lint", "template"):
            words += ["--kubeconfig", str(self.config)]
        if "--namespace" not in words:
            words += ["--namespace", SPACE]
        if words[0] == "template" and "--kube-version" not in words:
            words += ["--kube-version", binaries.kubernetes_version()]  # it knows of no cluster
        ran = subprocess.run([str(binaries.HELM.folder() / "helm"), *words],
                             env={"HOME": self.home, "PATH": os.environ["PATH"]}, text=True,
                             cwd=drover.ROOT, capture_output=True, check=False)
        return ran.returncode, ran.stdout + ran.stderr

    def do(self, *words):
        status, said = self.run(*words)
        assert status == 0, f"helm {' '.join(str(word) for word in words)}: {said}"
        return said

    def objects(self, *values):
        """What the chart makes of values: objects by kind and name."""
        return objects(self.drover, self.do("template", RELEASE, CHART, *flags(values)))


def flags(values):
    """NAME=VALUE each; with := the value is JSON."""
    return [word for value in values for word in (
        ("--set-json", value.replace(":=", "=", 1)) if ":=" in value else ("--set", value))]


def objects(program, text):
    """Of YAML documents, by kind and name. All of them are read at once."""
    parts = [part for part in f"\n{text}".split("\n---\n") if "\nkind:" in f"\n{part}"]
    whole = "".join(f"d{number}:\n" + "".join(f"  {line}\n" for line in part.splitlines())
                    for number, part in enumerate(parts))
    found = drover.read_yaml(program, whole).values()
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


# ---- what is rendered

def lints(helm):
    """helm lint has no objections"""
    helm.do("lint", "--strict", CHART)


def is_the_manifests(helm):
    """with no values it is deploy/operator.yaml and deploy/crds, object by object"""
    def files(*paths):
        return objects(helm.drover, "---\n".join(path.read_text(encoding="utf-8")
                                                 for path in paths))
    deploy = drover.ROOT / "deploy"
    wanted = files(*sorted((deploy / "crds").iterdir()), deploy / "operator.yaml")
    del wanted["Namespace", SPACE]  # helm makes it, if told
    compare(helm.objects(), wanted)
    wanted |= files(deploy / "fleet" / "crds.yaml", deploy / "fleet" / "rights.yaml")
    found = helm.objects("serve=all", "crds.fleet=true")
    container(found)["env"].remove({"name": "DROVER_SERVE", "value": "all"})
    compare(found, wanted)


def compare(found, wanted):
    for (kind, _), one in found.items():
        if kind == "CustomResourceDefinition":
            kept = one["metadata"].pop("annotations")
            assert kept == {"helm.sh/resource-policy": "keep"}, kept
    assert set(found) == set(wanted), set(found) ^ set(wanted)
    for key, one in wanted.items():
        assert found[key] == one, f"{key}: {drover.difference(one, found[key])}"


def pod(found):
    return found["Deployment", "drover-operator"]["spec"]["template"]["spec"]


def container(found):
    return pod(found)["containers"][0]


def env(name):
    return lambda found: {one["name"]: one.get("value") for one in container(found)["env"]
                          }.get(name)


def port(name):
    return lambda found: [one["containerPort"] for one in container(found)["ports"]
                          if one["name"] == name]


def kinds(*names):
    """Those definitions and roles of these names that are there."""
    return lambda found: [name for name in names if ("ClusterRole", name) in found or
                          ("CustomResourceDefinition", name) in found]


def role_of_logs(found):
    return ("Role", "skyhook-viewer") in found


def spec(kind, name="drover-operator"):
    return lambda found: found[kind, name]["spec"]


PEOPLE = ("skyhook-viewer", "skyhook-aggregate-to-view", "skyhook-editor",
          "skyhook-aggregate-to-admin")
TAINT = "example.test/new=yes:NoExecute"
EXPRESSION = {"key": "pool", "operator": "In", "values": ["system"]}
TOLERATION = {"key": "pool", "operator": "Equal", "value": "system"}
OWN_TOLERATION = {"key": "skyhook.nvidia.com", "operator": "Exists"}
CORDONS = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists",
           "effect": "NoSchedule"}
ONE = ("controllerManager.replicas=1", "controllerManager.podDisruptionBudget.minAvailable=0")
TLS = (*ONE, "dashboard.enabled=true", "dashboard.tlsSecret=page", 'dashboard.hosts:=["a.test"]')

# Values, where one looks, and what is found there.
REACHES = [
    ((f"{ENV}.copyDirRoot=/srv/packages",), env("COPY_DIR_ROOT"), "/srv/packages"),
    ((f"{ENV}.agentLogRoot=/srv/logs",), env("AGENT_LOG_ROOT"), "/srv/logs"),
    ((f"{ENV}.runtimeRequiredTaint={TAINT}",), env("RUNTIME_REQUIRED_TAINT"), TAINT),
    ((f"{ENV}.runtimeRequiredTaint={TAINT}",), lambda found: pod(found)["tolerations"],
     [{"key": "example.test/new", "operator": "Exists"}, CORDONS]),
    ((f"{ENV}.reapplyOnReboot=true",), env("REAPPLY_ON_REBOOT"), "true"),
    ((f'{ENV}.reapplyOnReboot:="false"',), env("REAPPLY_ON_REBOOT"), "false"),
    ((f"{ENV}.leaderElection=true",), env("LEADER_ELECTION"), "true"),
    ((*ONE, f"{ENV}.leaderElection=false"), env("LEADER_ELECTION"), "false"),
    ((*ONE, f"{ENV}.leaderElection=false"),
     lambda found: spec("Deployment")(found)["strategy"], {"type": "Recreate"}),
    ((f"{ENV}.stageTimeout=90m",), env("STAGE_TIMEOUT"), "90m"),
    ((f"{ENV}.stageRetries=0",), env("STAGE_RETRIES"), "0"),
    ((f"{ENV}.stageRetries:=1000",), env("STAGE_RETRIES"), "1000"),
    ((f"{ENV}.nodeLostAfter=1d12h",), env("NODE_LOST_AFTER"), "1d12h"),
    ((f"{ENV}.hostRoot=/mnt", f"{ENV}.imagePullPolicy=Never"),
     lambda found: container(found)["args"],
     ["operator", "--host-root=/mnt", "--image-pull-policy=Never"]),
    ((f"{ENV}.metricsPort=0.0.0.0:9000",), env("METRICS_PORT"), "0.0.0.0:9000"),
    ((f"{ENV}.metricsPort=0.0.0.0:9000",), port("metrics"), [9000]),
    ((f"{ENV}.metricsPort=:9000", "metricsService.type=NodePort"),
     spec("Service", "drover-operator-metrics"),
     {"type": "NodePort", "selector": {"app.kubernetes.io/name": "drover-operator"},
      "ports": [{"name": "metrics", "port": 9000, "targetPort": "metrics"}]}),
    ((f"{ENV}.probePort=:9001",), env("PROBE_PORT"), ":9001"),
    ((f"{ENV}.probePort=:9001",), port("probes"), [9001]),
    ((f"{MANAGER}.image.repository=a.test/x", f"{MANAGER}.image.tag=v1"),
     lambda found: container(found)["image"], "a.test/x:v1"),
    ((f"{MANAGER}.image.digest={DIGEST}",), lambda found: container(found)["image"],
     f"drover@{DIGEST}"),
    ((f"{MANAGER}.image.pullPolicy=Never",), lambda found: container(found)["imagePullPolicy"],
     "Never"),
    ((f"{MANAGER}.agent.repository=a.test/y", f"{MANAGER}.agent.tag=v2"), env("AGENT_IMAGE"),
     "a.test/y:v2"),
    ((f"{MANAGER}.agent.digest={DIGEST}",), env("AGENT_IMAGE"), f"drover-agent@{DIGEST}"),
    ((f"{MANAGER}.resources.limits.memory=1Gi",), lambda found: container(found)["resources"],
     {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "1Gi"}}),
    ((f"{MANAGER}.containerSecurityContext.readOnlyRootFilesystem=false",),
     lambda found: container(found)["securityContext"]["readOnlyRootFilesystem"], False),
    (("controllerManager.replicas=5", "controllerManager.podDisruptionBudget.minAvailable=4"),
     lambda found: (spec("Deployment")(found)["replicas"],
                    spec("PodDisruptionBudget")(found)["minAvailable"]), (5, 4)),
    (ONE, lambda found: ("PodDisruptionBudget", "drover-operator") in found, False),
    (('controllerManager.serviceAccount.annotations:={"a.test/role":"b"}',),
     lambda found: found["ServiceAccount", "drover"]["metadata"]["annotations"],
     {"a.test/role": "b"}),
    ((f"controllerManager.tolerations:={json.dumps([TOLERATION])}",),
     lambda found: pod(found)["tolerations"], [OWN_TOLERATION, CORDONS, TOLERATION]),
    (("controllerManager.selectors.pool=system",), lambda found: pod(found)["nodeSelector"],
     {"pool": "system"}),
    ((f"controllerManager.nodeAffinity.matchExpressions:={json.dumps([EXPRESSION])}",),
     lambda found: pod(found)["affinity"]["nodeAffinity"],
     {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchExpressions": [EXPRESSION]}]}}),
    (("imagePullSecret=key",), env("IMAGE_PULL_SECRET"), "key"),
    (("imagePullSecret=key",), lambda found: pod(found)["imagePullSecrets"], [{"name": "key"}]),
    (("useHostNetwork=true",), lambda found: pod(found)["hostNetwork"], True),
    (('limitRange.default:={"cpu":"1"}', 'limitRange.defaultRequest:={"cpu":"100m"}'),
     spec("LimitRange", "drover-packages"), {"limits": [
         {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}]}),
    ((), kinds(*PEOPLE), list(PEOPLE)),
    (("rbac.createSkyhookViewerRole=false",), kinds(*PEOPLE), list(PEOPLE[2:])),
    (("rbac.createSkyhookEditorRole=false",), kinds(*PEOPLE), list(PEOPLE[:2])),
    (("rbac.createSkyhookEditorRole=false",), role_of_logs, True),
    (("rbac.createSkyhookViewerRole=false",), role_of_logs, True),
    (("rbac.createSkyhookViewerRole=false", "rbac.createSkyhookEditorRole=false"), role_of_logs,
     False),
    (("crds.skyhook=false",), kinds("skyhooks.skyhook.nvidia.com", "bundles.fleet.cattle.io"), []),
    (("serve=clusters",), env("DROVER_SERVE"), "clusters"),
    (("serve=clusters",), lambda found: [
        (kind, name) for kind, name in found if kind.startswith("ClusterRole") and
        "operator" in name], [("ClusterRole", "drover-operator-clusters"),
                              ("ClusterRoleBinding", "drover-operator-clusters")]),
    (("serve=clusters",), lambda found: found["Role", "drover-operator"]["rules"][0]["resources"],
     ["leases"]),
    (("dashboard.enabled=true", "dashboard.port=7000"), env("DASHBOARD"), ":7000"),
    (("dashboard.enabled=true",), kinds("drover-operator-dashboard"), []),
    (TLS, env("DASHBOARD"), "0.0.0.0:7071"),
    (TLS, lambda found: container(found)["args"][1:],
     ["--dashboard-tls-cert=/tls/tls.crt", "--dashboard-tls-key=/tls/tls.key",
      f"--dashboard-host=drover-operator-dashboard.{SPACE}.svc", "--dashboard-host=a.test"]),
    (TLS, lambda found: pod(found)["volumes"],
     [{"name": "tls", "secret": {"secretName": "page", "defaultMode": 0o440}}]),
    (TLS, lambda found: spec("Service", "drover-operator-dashboard")(found)["ports"],
     [{"name": "https", "port": 443, "targetPort": "dashboard"}]),
]

# Values, and words of the refusal.
REFUSED = [
    (("serve=everything",), "'/serve': value must be one of 'nodes', 'clusters', 'all'"),
    (("something=1",), "'something' not allowed"),
    ((f"{ENV}.runtimeRequiredTaints=a",), "'runtimeRequiredTaints' not allowed"),
    ((f"{ENV}.runtimeRequiredTaint=no-effect",), "/runtimeRequiredTaint'"),
    ((f"{ENV}.metricsPort=8080",), "/metricsPort'"),
    ((f"{ENV}.copyDirRoot=srv",), "/copyDirRoot'"),
    ((f"{ENV}.stageTimeout=soon",), "/stageTimeout'"),
    ((f"{ENV}.stageRetries=1001",), "/stageRetries'"),
    ((f"{ENV}.leaderElection=perhaps",), "/leaderElection'"),
    ((f"{MANAGER}.image.digest=abc",), "/image/digest'"),
    ((f"{MANAGER}.image.tag=",), "/image/tag'"),
    (("controllerManager.replicas=two",), "'/controllerManager/replicas'"),
    (("controllerManager.selectors.pool=system",
      f"controllerManager.nodeAffinity.matchExpressions:={json.dumps([EXPRESSION])}"),
     "controllerManager.selectors and controllerManager.nodeAffinity.matchExpressions are both "
     "set, allowed one of them"),
    (("controllerManager.replicas=1",),
     "minAvailable: found 1, allowed less than controllerManager.replicas, which is 1"),
    (("controllerManager.podDisruptionBudget.minAvailable=2",), "minAvailable: found 2"),
    ((f"{ENV}.leaderElection=false",),
     f"controllerManager.replicas: found 2, allowed 1 without {ENV}.leaderElection"),
    (("dashboard.enabled=true", "dashboard.tlsSecret=page"),
     "controllerManager.replicas: found 2, allowed 1 with dashboard.tlsSecret"),
]


# Defaults of those that are maps are compared with the manifest.
COMPARED = (f"{MANAGER}.resources.", f"{MANAGER}.containerSecurityContext.", "crds.fleet")


def paths(tree, begin=""):
    """Of everything that is no map, or an empty one."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from paths(value, f"{begin}{key}.")
        else:
            yield begin + key


def values_reach(helm):
    """each value reaches its flag, variable or field"""
    wrong = []
    for values, look, wanted in REACHES:
        found = look(helm.objects(*values))
        if found != wanted:
            wrong.append(f"{values}: {drover.difference(wanted, found)}")
    tried = [value.split("=")[0].rstrip(":") for values, *_ in REACHES for value in values]
    known = drover.read_yaml(helm.drover, (CHART / "values.yaml").read_text(encoding="utf-8"))
    wrong += [f"{path} was not tried" for path in paths(known)
              if not any(path.startswith(name) or name.startswith(f"{path}.") for name in tried)
              and not path.startswith(COMPARED)]
    assert not wrong, "\n".join(wrong)


def wrong_values_fail(helm):
    """what is wrong is refused, in words"""
    wrong = []
    for values, words in REFUSED:
        status, said = helm.run("template", RELEASE, CHART, *flags(values))
        if status == 0 or words not in said:
            wrong.append(f"{values}: {status}, {said[:500]}")
    for words, refusal in ((("--namespace", "default"), "cannot be installed in the namespace"),
                           (("--kube-version", "1.30.9"), "kubeVersion: >=1.31")):
        status, said = helm.run("template", RELEASE, CHART, *words)
        if status == 0 or refusal not in said:
            wrong.append(f"{words}: {status}, {said[:500]}")
    assert not wrong, "\n".join(wrong)


RENDERED = [lints, is_the_manifests, values_reach, wrong_values_fail]


# ---- what a cluster makes of it

class Stage:
    def __init__(self, helm, cluster):
        self.helm, self.cluster = helm, cluster
        self.api = cluster.api

    def kubectl(self, *words):
        return subprocess.run([str(self.cluster.programs / "kubectl"),
                               f"--kubeconfig={self.cluster.kubeconfig()}", *words],
                              cwd=drover.ROOT, check=True, text=True, capture_output=True).stdout

    def operator(self):
        """As the Deployment on the server says, with a token of the account."""
        found = self.api.get("deployments", "drover-operator", SPACE)["spec"]["template"]["spec"]
        one = found["containers"][0]
        token = self.api.ask("POST", api.Api.path("serviceaccounts", found["serviceAccountName"],
                                                  SPACE, "token"), {"spec": {}})
        variables = {each["name"]: each.get("value", SPACE) for each in one["env"]}
        assert one["args"][0] == "operator", one["args"]
        for served, what in (("nodes", "skyhooks"), ("clusters", "bundles")):
            if variables.get("DROVER_SERVE", "nodes") in (served, "all"):
                api.wait_until(f"it may list {what}", lambda what=what: self.may_list(what))
        operator = rollout.Operator(self.helm.drover, self.cluster, *one["args"][1:], elect=True,
                                    env=variables)
        config = json.loads(pathlib.Path(self.cluster.kubeconfig("drover")).read_text())
        config["users"][0]["user"] = {"token": token["status"]["token"]}
        operator.config = self.cluster.folder / "kubeconfig-account"
        operator.config.write_text(json.dumps(config))
        return operator

    def may_list(self, what):
        group = api.GROUPS[what].split("/")[2] if "/apis/" in api.GROUPS[what] else ""
        return self.api.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "spec": {"user": ACCOUNT, "resourceAttributes": {
                "verb": "list", "group": group, "resource": what}}})["status"]["allowed"]

    def refused(self):
        """What the operator's account was not allowed to do."""
        return {(e["verb"], audit.resource(e)) for e in audit.entries(self.cluster.audit_file)
                if e["user"]["username"] == ACCOUNT and e["responseStatus"].get("code") == 403}

    def install(self, *values, more=()):
        return self.helm.do("install", RELEASE, CHART, *flags((*PORTS, *values)), *more)

    def upgrade(self, *values):
        return self.helm.do("upgrade", RELEASE, CHART, *flags((*PORTS, *values)))

    def definitions(self):
        return {one["metadata"]["name"] for one in self.api.list("customresourcedefinitions")}

    def complete(self, name, version=None):
        """The Skyhook is complete on all nodes, at the version that it is given now."""
        if version:
            self.api.patch("skyhooks", name, {"spec": {"packages": {"tune": {
                "version": version}}}})
        shown = rollout.wait_status(self.cluster, name, "complete")
        assert shown["completeNodes"] == f"{NODES}/{NODES}", shown


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


PORTS = [f"{ENV}.{name}Port=127.0.0.1:{free_port()}" for name in ("metrics", "probe")]
FLEET = {f"{kind}.fleet.cattle.io" for kind in hub.KINDS}
SKYHOOK = {f"{kind}.skyhook.nvidia.com" for kind in ("skyhooks", "deploymentpolicies")}


# What users of Skyhook's chart may have set, and by what name the notes speak of it.
IGNORED = {
    "cleanup.enabled=true": "cleanup",
    "controllerManager.kubeRbacProxy.image.tag=v1": "controllerManager.kubeRbacProxy",
    f"{ENV}.logLevel=info": f"{ENV}.logLevel",
    f"{ENV}.pauseImage=a.test/pause:1": f"{ENV}.pauseImage",
    "estimatedNodeCount=12": "estimatedNodeCount",
    "estimatedPackageCount=3": "estimatedPackageCount",
    "kubernetesClusterDomain=cluster.local": "kubernetesClusterDomain",
    "metrics.addServiceAccountBinding=true": "metrics",
    'metricsService.ports:=[{"name":"https","port":8443}]': "metricsService.ports",
    "webhook.enable=false": "webhook",
    "webhookService.type=ClusterIP": "webhookService",
}


def installs(stage):
    """it is installed, and its notes name the values that are ignored, and only those"""
    assert not stage.definitions(), stage.definitions()
    said = stage.install(*IGNORED, more=["--wait", "--timeout=120s"])
    told = [line.strip().partition(": ")[0] for line in said.partition(
        "have no meaning here:\n")[2].splitlines() if line.startswith("    ")]
    assert told == sorted(IGNORED.values()), told
    found = stage.api.get("deployments", "drover-operator", SPACE)
    assert found["status"]["readyReplicas"] == 2, found["status"]
    assert stage.definitions() == SKYHOOK, stage.definitions()
    assert stage.api.find("poddisruptionbudgets", "drover-operator", SPACE)
    assert stage.api.find("services", "drover-operator-metrics", SPACE)


def serves_nodes(stage):
    """with the rights of the chart's account a Skyhook completes"""
    stage.api.create("deploymentpolicies", rollout.policy("two", {"count": 2}))
    with stage.operator() as operator:
        stage.api.create("skyhooks", rollout.skyhook("base", {"tune": rollout.package(
            interrupt={"type": "service", "services": ["a"]}, configMap={"a": "b"})},
            deploymentPolicy="two"))
        stage.complete("base")
        assert operator.stop() == 0
    assert stage.api.find("leases", "3c22c1ae.nvidia.com", SPACE)
    assert not stage.refused(), stage.refused()


def serves_all(stage):
    """upgraded to serve all, with Fleet's kinds, a Bundle is deployed and the Skyhook upgraded"""
    said = stage.upgrade("serve=all", "crds.fleet=true", "controllerManager.replicas=3",
                         f"{ENV}.stageTimeout=30m")
    assert "have no meaning" not in said, said
    assert stage.definitions() == SKYHOOK | FLEET, stage.definitions()
    assert stage.api.get("deployments", "drover-operator", SPACE)["spec"]["replicas"] == 3
    api.wait_until("the new kinds are served", lambda: all(
        stage.api.list(kind) is not None for kind in hub.KINDS))
    stage.api.create("namespaces", {"metadata": {"name": hub.SPACE}})
    hub.add_clusters(stage.cluster, CLUSTERS)
    with hub.Agents(stage.cluster, 0.1), stage.operator() as operator:
        stage.api.create("bundles", hub.bundle("app", "one"), hub.SPACE)
        hub.wait_ready(stage.cluster, "app", CLUSTERS)
        stage.complete("base", "2.0.0")
        assert operator.stop() == 0
    job = next(one for one in stage.api.list("jobs", SPACE)
               if one["metadata"]["labels"]["skyhook.nvidia.com/package"] == "tune-2.0.0")
    assert job["spec"]["activeDeadlineSeconds"] == 30 * 60, job["spec"]
    assert not stage.refused(), stage.refused()


def serves_clusters(stage):
    """upgraded to serve clusters alone it has no right to nodes, needs none, and keeps all kinds"""
    stage.upgrade("serve=clusters", "crds.fleet=false", "crds.skyhook=false")
    assert stage.definitions() == SKYHOOK | FLEET, stage.definitions()
    api.wait_until("it may not list nodes", lambda: not stage.may_list("nodes"))
    before = stage.refused()
    with hub.Agents(stage.cluster, 0.1), stage.operator() as operator:
        hub.change(stage.cluster, "app", "two")
        hub.wait_ready(stage.cluster, "app", CLUSTERS)
        assert operator.stop() == 0
    assert stage.refused() == before, stage.refused()


def uninstalls(stage):
    """uninstalled, it leaves definitions, Skyhooks and Bundles, and nothing else"""
    stage.helm.do("uninstall", RELEASE, "--wait")
    assert stage.definitions() == SKYHOOK | FLEET, stage.definitions()
    assert rollout.status(stage.cluster, "base")["status"] == "complete"
    assert stage.api.find("deploymentpolicies", "two")
    assert stage.api.find("bundles", "app", hub.SPACE)
    for kind, name, space in (("deployments", "drover-operator", SPACE),
                              ("roles", "drover-operator", SPACE),
                              ("clusterroles", "drover-operator-clusters", None),
                              ("clusterroles", "skyhook-viewer", None),
                              ("serviceaccounts", "drover", SPACE)):
        assert stage.api.find(kind, name, space) is None, (kind, name)


def installs_again(stage):
    """installed again it goes on with them"""
    stage.install()
    with stage.operator():
        stage.complete("base", "3.0.0")
    stage.helm.do("uninstall", RELEASE, "--wait")


def takes_over(stage):
    """what kubectl applied is taken over if told, and only then"""
    stage.kubectl("apply", "--server-side", "--force-conflicts", "-f", "deploy/crds", "-f",
                  "deploy/operator.yaml")
    status, said = stage.helm.run("install", RELEASE, CHART)
    assert status != 0 and "invalid ownership metadata" in said, said
    stage.helm.do("install", RELEASE, CHART, "--take-ownership")
    stage.upgrade()  # with other ports
    with stage.operator():
        stage.complete("base", "4.0.0")
    stage.helm.do("uninstall", RELEASE, "--wait")
    assert stage.definitions() == SKYHOOK | FLEET, stage.definitions()


OLD = {
    "Chart.yaml": "apiVersion: v2\nname: old\nversion: 1.0.0\n",
    "templates/hook.yaml": """apiVersion: batch/v1
kind: Job
metadata:
  name: deletes-all
  annotations: {helm.sh/hook: pre-delete}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: delete, image: a.test/kubectl}]
""",
}


def forgets_the_old(stage):
    """after a chart that has the definitions, too: Helm forgets it, and nothing goes with it"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name, "old")
        (folder / "templates").mkdir(parents=True)
        for path, text in OLD.items():
            (folder / path).write_text(text)
        (folder / "templates" / "crds.yaml").write_text(
            (CHART / "definitions" / "skyhook.yaml").read_text(encoding="utf-8"))
        stage.helm.do("install", "old", folder, "--take-ownership")
    stage.install(more=["--take-ownership"])
    assert "secret" in stage.kubectl("-n", SPACE, "delete", "secret", "-l", "owner=helm,name=old")
    assert stage.helm.do("list", "--short").split() == [RELEASE]
    with stage.operator():
        stage.complete("base", "5.0.0")
    assert stage.definitions() == SKYHOOK | FLEET, stage.definitions()


ACTS = [installs, serves_nodes, serves_all, serves_clusters, uninstalls, installs_again,
        takes_over, forgets_the_old]


def check(tap, act, *arguments):
    """True when it passed."""
    wrong = None
    try:
        act(*arguments)
    except Exception as error:  # pylint: disable=broad-exception-caught
        wrong = f"{type(error).__name__}: {error}"
    tap.test(act.__doc__, wrong)
    return wrong is None


def main():
    tap = drover.Tap()
    for problem in (binaries.HELM.missing(), binaries.missing()):
        if problem:
            tap.skip("the chart", problem)
            return tap.done()
    with tempfile.TemporaryDirectory() as home:
        helm = Helm(drover.programs()[0], home)
        for act in RENDERED:
            check(tap, act, helm)
        with plane.Cluster("check-chart", audit=hub.AUDIT) as cluster:
            cluster.add_nodes(NODES)
            helm.config = cluster.kubeconfig()
            stage = Stage(helm, cluster)
            for act in ACTS:
                if not check(tap, act, stage):
                    cluster.fail()
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
