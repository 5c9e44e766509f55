# SPDX-License-Identifier: Apache-2.0
"""Folders of the shapes that people have, as `drover bundle` makes Bundles of them, on real
clusters: what is applied, pruned and left; namespaces that several use; accounts with few rights.
"""

import pathlib
import subprocess
import tempfile

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import agent_charts
import agent_stage
import api

api.GROUPS.update({
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "validatingwebhookconfigurations": "/apis/admissionregistration.k8s.io/v1",
    "tills": "/apis/shapes.test/v1"})

EVERYWHERE = "overrideTargets: [{clusterSelector: {}}]\n"
HOME = "drover-system"  # of the agents


def config_map(name, text="", more=""):
    return (f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{more}}}\n"
            f"data: {{word: \"{text}\"}}\n")


def apply_folder(stage, name, files):
    """What a person does: a folder becomes a Bundle of the hub."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        subprocess.run([str(stage.program), "bundle", folder, "--name", name, "--apply",
                        f"--kubeconfig={stage.main.kubeconfig()}"], capture_output=True, check=True)


def deploy(stage, name, files):
    apply_folder(stage, name, files)
    hub.wait_ready(stage.main, name, len(agent_stage.NAMES))


def told(stage, name, *words):
    """Every agent says all of it of its deployment."""
    def all_say():
        found = [str(one.get("status")) for one in hub.deployments(stage.main, name).values()]
        return len(found) == len(agent_stage.NAMES) and all(
            word in one for one in found for word in words)
    api.wait_until(f"{name}: {words}", all_say, 90)


def gone(stage, name, resource, thing, namespace=None):
    stage.main.api.delete("bundles", name, hub.SPACE)
    api.wait_until(f"{thing} is gone", lambda: stage.all(
        lambda a: not a.own.api.find(resource, thing, namespace)), 60)


# ---- folders

DEFINITION = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tills.shapes.test}
spec:
  group: shapes.test
  scope: Namespaced
  names: {kind: Till, plural: tills, singular: till, listKind: TillList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
TILL = "apiVersion: shapes.test/v1\nkind: Till\nmetadata: {name: first}\nspec: {drawers: 2}\n"
WIDE = """apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shapes, namespace: ignored}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: shapes}
webhooks:
- name: shapes.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {url: "https://example.test/look"}
  rules: [{apiGroups: [shapes.test], apiVersions: [v9], operations: [CREATE], resources: [tills]}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: shapes}
value: 1000
"""
POD = ("{nodeName: " + agent_stage.NODE + ", terminationGracePeriodSeconds: 0, restartPolicy: %s, "
       "containers: [{name: a, image: example.test/a}]}")
WORK = (f"""apiVersion: batch/v1
kind: Job
metadata: {{name: once}}
spec: {{backoffLimit: 0, template: {{spec: {POD % "Never"}}}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: members}}
spec:
  replicas: 2
  serviceName: members
  selector: {{matchLabels: {{app: members}}}}
  template: {{metadata: {{labels: {{app: members}}}}, spec: {POD % "Always"}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: bare}}
spec: {POD % "Always"}
""")
SHAPES = {
    "fleet.yaml": "defaultNamespace: shapes\nnamespaceLabels: {team: shapes}\n"
                  "deleteCRDResources: true\n" + EVERYWHERE,
    "README.md": "Nothing of this is a manifest.\n",
    "comment.yaml": "# nothing but a comment\n",
    "empty.yaml": "---\n---\n",
    "list.yaml": "apiVersion: v1\nkind: List\nitems:\n"
                 "- {apiVersion: v1, kind: ConfigMap, metadata: {name: in-list}}\n"
                 "- {apiVersion: v1, kind: Secret, metadata: {name: in-list}}\n",
    "deep/er/maps.yml": config_map("one") + "---\n\n---\n" + config_map("two") + "...\n",
    "json.json": '{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}}',
    "large.yaml": config_map("large", "0123456789" * 90000),
    "other.yaml": config_map("elsewhere", more=", namespace: shapes-too"),
    "space.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shapes-too}\n",
    "tills.yaml": TILL + "---\n" + DEFINITION,
    "wide.yaml": WIDE,
    "work.yaml": WORK,
}


def shapes(stage):
    """a folder with everything that folders have is applied; what leaves it goes, and only that"""
    deploy(stage, "shapes", SHAPES)
    for agent in stage.agents:
        status = agent.deployment("shapes")["status"]
        assert status["resourceCounts"]["ready"] == 16, status["resourceCounts"]
        find = agent.own.api.find
        assert find("namespaces", "shapes")["metadata"]["labels"]["team"] == "shapes"
        assert find("tills", "first", "shapes") and find("clusterroles", "shapes")
        agent.own.api.create("configmaps", {"metadata": {"name": "foreign"}}, "shapes")
    fewer = {path: text for path, text in SHAPES.items()
             if path not in ("list.yaml", "tills.yaml", "wide.yaml", "work.yaml")}
    fewer["deep/er/maps.yml"] = config_map("two", "new")
    deploy(stage, "shapes", fewer)
    for agent in stage.agents:
        find = agent.own.api.find
        for resource, name in (("configmaps", "in-list"), ("secrets", "in-list"), ("jobs", "once"),
                               ("configmaps", "one"), ("statefulsets", "members"),
                               ("pods", "bare")):
            assert not find(resource, name, "shapes"), f"{resource} {name} was not pruned"
        assert not find("clusterroles", "shapes") and not find("priorityclasses", "shapes")
        assert not find("validatingwebhookconfigurations", "shapes")
        assert find("configmaps", "two", "shapes")["data"]["word"] == "new"
        assert find("configmaps", "elsewhere", "shapes-too")
    api.wait_until("the definition is gone", lambda: stage.all(lambda a: not a.own.api.find(
        "customresourcedefinitions", "tills.shapes.test")))
    gone(stage, "shapes", "namespaces", "shapes-too")
    assert stage.all(lambda a: a.own.api.find("configmaps", "foreign", "shapes"))


def served(stage, *versions):
    """The cluster serves these versions of the kind from now on."""
    for agent in stage.agents:
        one = agent.own.api.get("customresourcedefinitions", "tills.shapes.test")
        schema = one["spec"]["versions"][0]["schema"]
        agent.own.api.patch("customresourcedefinitions", "tills.shapes.test", {"spec": {
            "versions": [{"name": name, "served": name in versions, "storage": name == "v1",
                          "schema": schema} for name in ("v1", "v1beta1")]}})


def version_goes(stage):
    """an object whose version the cluster serves no more is not missing, and goes when it is to"""
    old = TILL.replace("shapes.test/v1", "shapes.test/v1beta1")
    define = {"fleet.yaml": "defaultNamespace: moved\n" + EVERYWHERE, "tills.yaml": DEFINITION}
    deploy(stage, "kinds", define)
    served(stage, "v1", "v1beta1")
    files = {"fleet.yaml": "defaultNamespace: moved\n" + EVERYWHERE, "one.yaml": config_map("one")}
    deploy(stage, "moved", {**files, "till.yaml": old})
    served(stage, "v1")
    for number in range(2):  # whatever is looked at: the one that changed, and all others with it
        for agent in stage.agents:
            agent.own.api.patch("configmaps", "one", {"data": {"word": str(number)}}, "moved")
        api.wait_until("it is told", lambda: stage.all(lambda a: "one" in (
            a.modified("moved") or [])), 60)
        assert stage.all(lambda a: a.modified("moved") == ["one"]), [
            a.modified("moved") for a in stage.agents]
        for agent in stage.agents:
            agent.own.api.patch("configmaps", "one", {"data": {"word": ""}}, "moved")
        api.wait_until("all is well", lambda: stage.all(lambda a: a.modified("moved") == []), 60)
    deploy(stage, "moved", files)
    api.wait_until("the object is gone", lambda: stage.all(lambda a: not a.own.api.find(
        "tills", "first", "moved")), 60)
    gone(stage, "moved", "configmaps", "one", "moved")
    stage.main.api.delete("bundles", "kinds", hub.SPACE)
    for agent in stage.agents:
        agent.own.api.delete("customresourcedefinitions", "tills.shapes.test")


def values_files(stage):
    """a chart with values files, as drover bundle makes a Bundle of it, has the values of all"""
    files = {"fleet.yaml": "defaultNamespace: filed\nhelm: {chart: ./shop, releaseName: filed, "
                           "values: {word: low, replicas: 0}, valuesFiles: [all.yaml]}\n"
                           "targetCustomizations: [{name: prod, clusterSelector: {matchLabels: "
                           "{env: prod}}, helm: {valuesFiles: [prod.yaml]}}]\n" + EVERYWHERE,
             "all.yaml": "word: all\n", "prod.yaml": "site: prod\n",
             **{f"shop/{name}": text for name, text in agent_charts.CHART.items()}}
    deploy(stage, "filed", files)
    for agent in stage.agents:
        found = agent.own.api.get("configmaps", "filed-settings", "filed")["data"]
        assert found == {"word": "all", "site": "prod"}, found
    gone(stage, "filed", "configmaps", "filed-settings", "filed")


# ---- namespaces

def labels_of(agent, name):
    return agent.own.api.get("namespaces", name)["metadata"]["labels"]


def shared_namespace(stage):
    """what Bundles say of one namespace is kept apart: none takes it from another"""
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: common, labels: {tier: %s}}\n"
    base = {"fleet.yaml": EVERYWHERE, "space.yaml": space % "one"}
    deploy(stage, "base", base)
    for team in ("red", "blue"):
        deploy(stage, team, {"fleet.yaml": f"defaultNamespace: common\nnamespaceLabels: "
                                           f"{{{team}: \"yes\"}}\n" + EVERYWHERE,
                             "map.yaml": config_map(team)})
    base["space.yaml"] = space % "two"
    deploy(stage, "base", base)
    for agent in stage.agents:
        labels = labels_of(agent, "common")
        assert (labels["tier"], labels["red"], labels["blue"]) == ("two", "yes", "yes"), labels
        assert agent.modified("base") == []
    gone(stage, "red", "configmaps", "red", "common")
    gone(stage, "blue", "configmaps", "blue", "common")
    assert stage.all(lambda a: labels_of(a, "common")["tier"] == "two")
    gone(stage, "base", "namespaces", "common")


# ---- accounts

def give_rights(agent, *verbs):
    """The account may do this with ConfigMaps of its namespace, and nothing else at all."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}]
    agent.own.api.patch("roles", "tenant", {"rules": rules}, "tenant")


def make_account(agent):
    agent.own.api.create("namespaces", {"metadata": {"name": "tenant"}})
    agent.own.api.create("serviceaccounts", {"metadata": {"name": "tenant"}}, HOME)
    agent.own.api.create("roles", {"metadata": {"name": "tenant"}, "rules": []}, "tenant")
    agent.own.api.create("rolebindings", {
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": HOME}]}, "tenant")
    give_rights(agent, "get", "create", "patch", "delete")


def accounts(stage):
    """with a service account its rights alone count: for what comes, what leaves, and the end"""
    for agent in stage.agents:
        make_account(agent)
    files = {"fleet.yaml": "defaultNamespace: tenant\nserviceAccount: tenant\n" + EVERYWHERE,
             "one.yaml": config_map("one"), "two.yaml": config_map("two")}
    deploy(stage, "tenant", files)
    who = "User \"system:serviceaccount:drover-system:tenant\" cannot"
    for path, text, words in (
            ("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: hidden}\n", "secrets"),
            ("else.yaml", config_map("hidden", more=", namespace: default"), "default"),
            ("wide.yaml", WIDE.split("---", maxsplit=1)[0], "clusterroles")):
        apply_folder(stage, "tenant", {**files, path: text})
        told(stage, "tenant", who, words)
    for agent in stage.agents:
        assert not agent.own.api.find("configmaps", "hidden", "default")
        give_rights(agent, "get", "create", "patch")
    fewer = {path: text for path, text in files.items() if path != "two.yaml"}
    apply_folder(stage, "tenant", fewer)
    told(stage, "tenant", who, "delete resource", "two")
    assert stage.all(lambda a: a.own.api.find("configmaps", "two", "tenant"))
    for agent in stage.agents:
        give_rights(agent, "get", "create", "patch", "delete")
    hub.wait_ready(stage.main, "tenant", len(agent_stage.NAMES))
    assert stage.all(lambda a: not a.own.api.find("configmaps", "two", "tenant"))
    for agent in stage.agents:
        agent.own.api.delete("serviceaccounts", "tenant", HOME)
    apply_folder(stage, "tenant", files)
    told(stage, "tenant", "the cluster has no ServiceAccount drover-system/tenant")
    before = [len(agent.log()) for agent in stage.agents]
    for agent in stage.agents:
        give_rights(agent, "get")
    stage.main.api.delete("bundles", "tenant", hub.SPACE)
    api.wait_until("it cannot be removed", lambda: all(
        "cannot delete resource" in agent.log()[seen:] for agent, seen in zip(
            stage.agents, before)))
    assert stage.all(lambda a: a.own.api.find("configmaps", "one", "tenant"))
    for agent in stage.agents:
        give_rights(agent, "get", "delete")
    api.wait_until("it is removed", lambda: stage.all(lambda a: not a.own.api.find(
        "configmaps", "one", "tenant")), 90)


def give_rights_of_charts(agent):
    agent.own.api.patch("roles", "tenant", {"rules": [{
        "apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["*"]}]}, "tenant")


def chart_accounts(stage):
    """a chart is installed and removed with the rights of the account, too, and with no others"""
    for agent in stage.agents:
        agent.own.api.create("serviceaccounts", {"metadata": {"name": "tenant"}}, HOME)
        give_rights(agent, "get", "create", "patch", "update", "list", "delete")
    files = {"fleet.yaml": "defaultNamespace: tenant\nserviceAccount: tenant\ncreateNamespace: "
                           "false\nhelm: {chart: ./small}\n" + EVERYWHERE,
             "small/Chart.yaml": agent_charts.CHART["Chart.yaml"],
             "small/templates/map.yaml": config_map("of-chart")}
    apply_folder(stage, "few", files)
    told(stage, "few", "system:serviceaccount:drover-system:tenant", "secrets")
    for agent in stage.agents:
        give_rights_of_charts(agent)
    hub.wait_ready(stage.main, "few", len(agent_stage.NAMES))
    assert stage.all(lambda a: a.own.api.find("configmaps", "of-chart", "tenant"))
    before = [len(agent.log()) for agent in stage.agents]
    for agent in stage.agents:
        give_rights(agent, "*")  # what helm remembers of it is in Secrets
    stage.main.api.delete("bundles", "few", hub.SPACE)
    api.wait_until("it cannot be removed", lambda: all(
        "remove chart: " in agent.log()[seen:] and "cannot list resource" in agent.log()[seen:]
        for agent, seen in zip(stage.agents, before)), 60)
    assert stage.all(lambda a: a.own.api.find("configmaps", "of-chart", "tenant"))
    for agent in stage.agents:
        give_rights_of_charts(agent)
    api.wait_until("it is removed", lambda: stage.all(lambda a: not a.own.api.find(
        "configmaps", "of-chart", "tenant")), 90)


ACTS = (shapes, version_goes, shared_namespace, accounts)
CHART_ACTS = (values_files, chart_accounts)
