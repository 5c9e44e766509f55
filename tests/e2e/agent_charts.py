# SPDX-License-Identifier: Apache-2.0
"""A chart by a real helm, on real clusters."""

import json
import subprocess

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import agent_stage
import api
import binaries

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "values.yaml": """word: none
site: nowhere
replicas: 1
broken: false
image: example.test/web
""",
    "templates/settings.yaml": """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
data:
  word: {{ .Values.word | quote }}
  site: {{ .Values.site | quote }}
{{- if .Values.broken }}
  {{ fail "it is broken" }}
{{- end }}
{{- if .Values.outside }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: outside
  namespace: default
{{- end }}
{{- if .Values.hook }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: hooked
  namespace: default
  annotations: {helm.sh/hook: pre-install}
{{- end }}
{{- if .Values.shared }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: shared
data:
  release: {{ .Release.Name }}
{{- end }}
""",
    "templates/web.yaml": """apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {app: chart}
  template:
    metadata:
      labels: {app: chart}
    spec:
      nodeName: """ + agent_stage.NODE + """
      terminationGracePeriodSeconds: 0
      containers:
        - name: web
          image: {{ .Values.image }}
          resources:
            limits: {cpu: 1000m, memory: 1024Mi}
{{- if .Values.extra }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-extra
{{- end }}
""",
}

THINGS = "things.charts.test"
DEFINITION = f"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {THINGS}}}
spec:
  group: charts.test
  scope: Namespaced
  names: {{kind: Thing, plural: things}}
  versions:
  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}
"""


def chart_bundle(**values):
    """The site is the cluster's own business: what it says wins over the Bundle."""
    bundle = hub.bundle("chart", "", agent_stage.STRATEGY,
                        defaultNamespace=agent_stage.SPACE, helm={
        "releaseName": "front", "values": {"site": "overruled", **values},
        "valuesFrom": [{"configMapKeyRef": {"name": "site"}}]})
    bundle["spec"]["resources"] = [{"name": name, "content": text}
                                   for name, text in CHART.items()]
    return bundle


def set_values(stage, **values):
    stage.main.api.patch("bundles", "chart", {"spec": {"helm": {"values": values}}}, hub.SPACE)


def chart_data(agent):
    found = agent.find("configmaps", "front-settings")
    return found["data"] if found else None


def helm(agent, *words):
    return subprocess.run([str(binaries.HELM.folder() / "helm"), *words, "--namespace",
                           agent_stage.SPACE,
                           "--kubeconfig", str(agent.own.kubeconfig())], capture_output=True,
                          check=True).stdout.decode()


def charts(stage):
    """a chart is installed by helm with values of the cluster, updated, watched and put right"""
    for agent in stage.agents:
        agent.own.api.create("configmaps", {"metadata": {"name": "site"}, "data": {
            "values.yaml": f"site: {agent.name}\n"}}, agent_stage.SPACE)
    stage.main.api.create("bundles", chart_bundle(word="one", extra=True), hub.SPACE)
    hub.wait_ready(stage.main, "chart", len(agent_stage.NAMES))
    for agent in stage.agents:
        assert chart_data(agent) == {"word": "one", "site": agent.name}, chart_data(agent)
        status = agent.deployment("chart")["status"]
        assert status["ready"] and status["nonModified"], status
        assert status["release"] == f"{agent_stage.SPACE}/front:1", status["release"]
        assert "front-1" not in helm(agent, "list") and "front" in helm(agent, "list")
    since = hub.mark(stage.main)
    set_values(stage, word="two", replicas=2, extra=None)
    hub.wait_ready(stage.main, "chart", len(agent_stage.NAMES))
    assert hub.replay(stage.main, "chart", since).most == 1
    for agent in stage.agents:
        assert chart_data(agent)["word"] == "two", chart_data(agent)
        assert agent.find("deployments", "front")["status"]["availableReplicas"] == 2
        assert not agent.find("configmaps", "front-extra"), "helm did not prune"


def chart_drifts(stage):
    """an object of a chart that a hand edits is told, also by an agent that is new, and put back"""
    one = stage.agents[0]
    one.own.api.patch("configmaps", "front-settings", {"data": {"word": "mine"}}, agent_stage.SPACE)
    one.kill()
    one.start()
    api.wait_until("it is told", lambda: one.modified("chart") == ["front-settings"], 60)
    stage.main.api.patch("bundles", "chart", {"spec": {"correctDrift": one.puts_right}}, hub.SPACE)
    api.wait_until("it is put back", lambda: chart_data(one)["word"] == "two", 60)
    hub.wait_ready(stage.main, "chart", len(agent_stage.NAMES))


def chart_fails(stage):
    """a chart that cannot be rendered stops the rollout with helm's words; a fix goes through"""
    set_values(stage, word="three", broken=True)

    def stuck():
        found = stage.main.api.get("bundles", "chart", hub.SPACE)["status"]
        bad = found["summary"].get("errApplied", 0) + found["summary"].get("notReady", 0)
        return found if bad == 1 and found["summary"].get("outOfSync") == 1 else None
    found = api.wait_until("the rollout is held", stuck, 60)
    assert "it is broken" in json.dumps(found), found["conditions"]
    assert chart_data(stage.agents[1])["word"] == "two"
    set_values(stage, word="four", broken=False)
    hub.wait_ready(stage.main, "chart", len(agent_stage.NAMES))
    assert stage.all(lambda a: chart_data(a)["word"] == "four")


def set_release(stage, name, **values):
    stage.main.api.patch("bundles", "chart", {"spec": {"helm": {
        "releaseName": name, "values": values}}}, hub.SPACE)
    hub.wait_ready(stage.main, "chart", len(agent_stage.NAMES))


def releases(agent):
    return json.loads(helm(agent, "list", "--all", "-o", "json"))


def chart_renamed(stage):
    """a release of another name takes the place of the one of before, also of its objects"""
    set_release(stage, "back", shared=True)
    for agent in stage.agents:
        assert [r["name"] for r in releases(agent)] == ["back"], releases(agent)
        assert not agent.find("deployments", "front") and not chart_data(agent)
        assert agent.find("configmaps", "back-settings")["data"]["word"] == "four"
        assert agent.find("configmaps", "shared")["data"]["release"] == "back"
    set_release(stage, "front")  # helm refuses it as long as "shared" is of the other
    for agent in stage.agents:
        assert [r["name"] for r in releases(agent)] == ["front"], releases(agent)
        assert chart_data(agent)["word"] == "four" and not agent.find("deployments", "back")
        assert agent.find("configmaps", "shared")["data"]["release"] == "front"


def turns_into_chart(stage):
    """plain manifests become a chart with objects of the same names, and plain manifests again"""
    plain = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
              "data": {"word": "plain"}} for name in ("turning-settings", "turning-more")]
    turning = hub.bundle("turning", "", agent_stage.STRATEGY, defaultNamespace=agent_stage.SPACE)
    turning["spec"]["resources"] = agent_stage.resources(*plain)
    stage.main.api.create("bundles", turning, hub.SPACE)
    hub.wait_ready(stage.main, "turning", len(agent_stage.NAMES))
    before = [agent.find("configmaps", "turning-settings")["metadata"]["uid"]
              for agent in stage.agents]
    stage.main.api.patch("bundles", "turning", {"spec": {
        "helm": {"values": {"word": "chart"}},
        "resources": [{"name": name, "content": text} for name, text in CHART.items()]}}, hub.SPACE)
    hub.wait_ready(stage.main, "turning", len(agent_stage.NAMES))
    for agent, uid in zip(stage.agents, before):
        found = agent.find("configmaps", "turning-settings")
        assert found["data"]["word"] == "chart" and found["metadata"]["uid"] == uid, found
        assert agent.find("deployments", "turning")
        assert not agent.find("configmaps", "turning-more"), "it was not pruned"
        assert "turning" in [r["name"] for r in releases(agent)], releases(agent)
        assert agent.modified("turning") == []
    stage.main.api.patch("bundles", "turning", {"spec": {
        "helm": None, "resources": agent_stage.resources(*plain)}}, hub.SPACE)
    hub.wait_ready(stage.main, "turning", len(agent_stage.NAMES))
    for agent in stage.agents:
        assert agent.find("configmaps", "turning-settings")["data"]["word"] == "plain"
        assert not agent.find("deployments", "turning")
        assert "turning" not in [r["name"] for r in releases(agent)], releases(agent)
    stage.main.api.delete("bundles", "turning", hub.SPACE)
    api.wait_until("both clusters have nothing", lambda: stage.all(
        lambda a: not a.find("configmaps", "turning-settings")), 60)


def confined(stage):
    """a chart that must be in one namespace is not installed if it, or a hook, is elsewhere"""
    bundle = hub.bundle("confined", "", agent_stage.STRATEGY, namespace="confined", helm={
        "values": {"outside": True, "replicas": 0}}, namespaceLabels={"team": "shop"})
    bundle["spec"]["resources"] = [{"name": name, "content": text}
                                   for name, text in CHART.items()]
    whole = bundle["spec"]["resources"] + [{
        "name": "crds/things.yaml", "content": DEFINITION}]
    stage.main.api.create("bundles", bundle, hub.SPACE)

    def told(words):
        api.wait_until(words, lambda: words in json.dumps(list(hub.deployments(
            stage.main, "confined").values())), 60)
        for name in ("outside", "hooked"):
            assert stage.all(lambda a, it=name: not a.own.api.find("configmaps", it, "default"))
        assert stage.all(lambda a: not a.own.api.find("customresourcedefinitions", THINGS))
        assert stage.all(lambda a: not a.own.api.find("deployments", "confined", "confined"))

    def change(**spec):
        stage.main.api.patch("bundles", "confined", {"spec": spec}, hub.SPACE)
    told("ConfigMap outside: metadata.namespace: found")
    change(helm={"values": {"outside": None, "hook": True}})
    told("ConfigMap hooked: metadata.namespace: found")
    change(helm={"values": {"hook": None}}, resources=whole)
    told("has a folder crds")
    change(resources=bundle["spec"]["resources"])
    hub.wait_ready(stage.main, "confined", len(agent_stage.NAMES))
    for agent in stage.agents:
        assert agent.own.api.find("deployments", "confined", "confined")
        labels = agent.own.api.get("namespaces", "confined")["metadata"]["labels"]
        assert labels["team"] == "shop", labels
    stage.main.api.delete("bundles", "confined", hub.SPACE)
    api.wait_until("both clusters have nothing", lambda: stage.all(
        lambda a: not a.own.api.find("deployments", "confined", "confined")), 60)


def chart_goes(stage):
    """a chart whose Bundle is deleted is uninstalled, also where the agent was away"""
    stage.agents[1].kill()
    stage.main.api.delete("bundles", "chart", hub.SPACE)
    api.wait_until("the hub has nothing",
                   lambda: not hub.deployments(stage.main, "chart"))
    stage.agents[1].start()

    def clean(agent):
        return not agent.find("deployments", "front") and not chart_data(agent)
    api.wait_until("both clusters have nothing", lambda: stage.all(clean), 60)
    api.wait_until("helm has nothing", lambda: stage.all(lambda a: "front" not in helm(
        a, "list", "--all")))


ACTS = (charts, chart_drifts, chart_fails, chart_renamed, turns_into_chart, confined,
        chart_goes)
