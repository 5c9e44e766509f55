# SPDX-License-Identifier: Apache-2.0
"""Manifests in forms that the API server keeps in another one, and what is drift of them."""

import time

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import agent_stage
import api

api.GROUPS.update({
    "services": "/api/v1", "limitranges": "/api/v1", "statefulsets": "/apis/apps/v1",
    "cronjobs": "/apis/batch/v1", "ingresses": "/apis/networking.k8s.io/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "horizontalpodautoscalers": "/apis/autoscaling/v2"})

POD = {"nodeName": agent_stage.NODE, "terminationGracePeriodSeconds": 0}
LABELS = {"app": "forms"}


def box(**more):
    return {"name": "box", "image": "example.test/web", **more}


def workload(kind, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "forms"},
            "spec": {"selector": {"matchLabels": LABELS}, **spec}}


def pod(*boxes, **more):
    return {"metadata": {"labels": LABELS, "creationTimestamp": None},
            "spec": {**POD, "containers": list(boxes), **more}}


# Kind, manifest, and what somebody changes of it by hand. Each says the same as the server keeps in
# another form: quantities, numbers as text, defaults, empty values, orders.
FORMS = (
    ("deployments", workload("Deployment", replicas=1, template=pod(box(
        resources={"limits": {"cpu": "1000m", "memory": "1024Mi"},
                   "requests": {"cpu": 0.5, "memory": 134217728}},
        env=[{"name": "EMPTY", "value": ""}, {"name": "CPU", "valueFrom": {"resourceFieldRef": {
            "resource": "limits.cpu", "divisor": "1000m"}}}],
        ports=[{"containerPort": 80}], command=[], securityContext={},
        livenessProbe={"httpGet": {"path": "/", "port": 80}}),
        volumes=[{"name": "room", "emptyDir": {"sizeLimit": "1024Ki"}}], nodeSelector={},
        securityContext={}), strategy={"rollingUpdate": {"maxSurge": "25%"}}),
     {"spec": {"minReadySeconds": 1}, "metadata": {"labels": {"x": "y"}}},
     {"spec": {"replicas": 0}}),
    ("services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "forms"}, "spec": {
        "selector": LABELS, "type": "ClusterIP", "ports": [
            {"port": 80, "name": "web", "targetPort": "web"},
            {"port": 443, "name": "tls", "nodePort": 0}],
        "ipFamilyPolicy": "SingleStack", "externalIPs": []}},
     None, {"spec": {"selector": {"app": "others"}}}),
    ("jobs", {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "forms"}, "spec": {
        "backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", **POD, "containers": [
            box(resources={"requests": {"memory": "0.5Gi"}})]}}}},
     None, {"spec": {"backoffLimit": 3}}),
    ("cronjobs", {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "forms"},
                  "spec": {"schedule": "0 3 * * *", "suspend": False, "jobTemplate": {"spec": {
                      "template": {"spec": {"restartPolicy": "OnFailure",
                                            "containers": [box()]}}}}}},
     None, {"spec": {"schedule": "0 4 * * *"}}),
    ("horizontalpodautoscalers", {
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "forms"}, "spec": {
            "maxReplicas": 3, "targetCPUUtilizationPercentage": 80,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "forms"}}},
     None, {"spec": {"maxReplicas": 5}}),
    ("horizontalpodautoscalers", {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "forms-two"}, "spec": {
            "minReplicas": 1, "maxReplicas": 3, "metrics": [{"type": "Resource", "resource": {
                "name": "memory", "target": {"type": "AverageValue", "averageValue": "1024Mi"}}}],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "forms"}}},
     None, {"spec": {"maxReplicas": 5}}),
    ("statefulsets", workload("StatefulSet", replicas=0, serviceName="forms", template=pod(box()),
                              volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {
                                  "accessModes": ["ReadWriteOnce"], "resources": {
                                      "requests": {"storage": "1024Mi"}}}}]),
     None, {"spec": {"replicas": 1}}),
    ("daemonsets", workload("DaemonSet", template=pod(box(), tolerations=[
        {"operator": "Exists"}])), None, {"spec": {"template": {"spec": {"tolerations": []}}}}),
    ("ingresses", {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
                   "metadata": {"name": "forms", "annotations": {"a": ""}}, "spec": {"rules": [
                       {"host": "example.test", "http": {"paths": [
                           {"path": "/", "pathType": "Prefix", "backend": {"service": {
                               "name": "forms", "port": {"number": 80}}}}]}}]}},
     None, {"spec": {"ingressClassName": "other", "rules": None,
                     "defaultBackend": {"service": {"name": "x", "port": {"number": 1}}}}}),
    ("networkpolicies", {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                         "metadata": {"name": "forms"}, "spec": {
                             "podSelector": {}, "ingress": [{"ports": [{"port": 80}]}, {}]}},
     None, {"spec": {"ingress": [{}]}}),
    ("poddisruptionbudgets", {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                              "metadata": {"name": "forms"}, "spec": {
                                  "maxUnavailable": "50%", "selector": {"matchLabels": LABELS}}},
     None, {"spec": {"maxUnavailable": 1}}),
    ("limitranges", {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "forms"},
                     "spec": {"limits": [{"type": "Container", "default": {"cpu": "2000m"},
                                          "defaultRequest": {"memory": "0.25Gi"}}]}},
     None, {"spec": {"limits": [{"type": "Container", "default": {"cpu": "3"}}]}}),
    ("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "forms"},
                 "stringData": {"word": "secret"}, "data": {"more": "YQ=="}},
     None, {"data": {"word": "b3RoZXI="}}),
    ("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "forms", "labels": {}, "annotations": None}, "data": {"a": "", "b": "1"},
        "binaryData": {}}, None, {"data": {"b": "2"}}),
    ("serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount",
                         "metadata": {"name": "forms"}, "automountServiceAccountToken": False},
     None, {"automountServiceAccountToken": True}),
    ("roles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
               "metadata": {"name": "forms"}, "rules": [
                   {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"],
                    "resourceNames": []}]},
     None, {"rules": []}),
    ("rolebindings", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                      "metadata": {"name": "forms"}, "roleRef": {
                          "apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                          "name": "forms"},
                      "subjects": [{"kind": "ServiceAccount", "name": "forms",
                                    "namespace": agent_stage.SPACE},
                                   {"kind": "Group", "name": "people"}]},
     None, {"subjects": []}),
)


def forms(stage):
    """what the server keeps in another form is not modified; what a hand edits is, kind by kind"""
    bundle = hub.bundle("forms", "", None, defaultNamespace=agent_stage.SPACE)
    bundle["spec"]["resources"] = agent_stage.resources(*(row[1] for row in FORMS))
    stage.main.api.create("bundles", bundle, hub.SPACE)
    one, problems = stage.agents[0], []

    def found():
        """All of it was applied and looked at."""
        try:
            status = one.deployment("forms").get("status", {})
        except api.ApiError:
            return False
        seen = status.get("resourceCounts", {}).get("desiredReady") == len(FORMS)
        return seen and one.modified("forms") is not None
    api.wait_until("it is there", found, 60)
    time.sleep(3)
    status = one.deployment("forms")["status"]
    if not status["nonModified"] or status.get("modifiedStatus"):
        problems.append(f"a fresh one is modified: {status.get('modifiedStatus')}")
    for kind, manifest, harmless, edit in FORMS:
        name = manifest["metadata"]["name"]
        if harmless:
            one.own.api.patch(kind, name, harmless, agent_stage.SPACE)
            time.sleep(2)
            if name in (one.modified("forms") or []):
                problems.append(f"{kind} {name}: what nobody asked for counts as modified")
        before = one.own.api.get(kind, name, agent_stage.SPACE)
        one.own.api.patch(kind, name, edit, agent_stage.SPACE)
        try:
            api.wait_until("it is told", lambda: any(
                (row["kind"], row["name"]) == (manifest["kind"], name) for row in one.deployment(
                    "forms")["status"].get("modifiedStatus", [])), 15)
        except TimeoutError:
            problems.append(f"{kind} {name}: an edit was not told")
        put_back(one, kind, manifest, before)
    assert not problems, "\n".join(problems)
    stage.main.api.delete("bundles", "forms", hub.SPACE)
    api.wait_until("it is gone", lambda: stage.all(lambda a: not a.find("deployments", "forms")))


def put_back(one, kind, manifest, before):
    """As it was before the edit, and told so."""
    name = manifest["metadata"]["name"]
    now = one.own.api.get(kind, name, agent_stage.SPACE)["metadata"]
    before["metadata"].pop("managedFields", None)
    before["metadata"]["resourceVersion"] = now["resourceVersion"]
    one.own.api.ask("PUT", one.own.api.path(kind, name, agent_stage.SPACE), before)
    api.wait_until(f"{kind} {name} is as it was", lambda: not one.modified("forms"), 30)
