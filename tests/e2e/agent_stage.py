# SPDX-License-Identifier: Apache-2.0
"""Two clusters with `drover cluster-agent` each, and a third that is their hub."""

import base64
import json
import os
import signal
import subprocess

import hub
# pylint: disable=wrong-import-position,wrong-import-order
import api
import binaries
import rollout

NAMES = ("east", "west")
SPACE = "shop"  # where everything is deployed
NODE = "node-00000"
STRATEGY = {"maxUnavailable": 1}


def template(**notes):
    return {"metadata": {"labels": {"app": "web"}, "annotations": notes},
            "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "web", "image": "example.test/web"}]}}


def web(version, **notes):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                     "template": template(version=version, **notes)}}


def settings(version):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
            "data": {"version": version}}


def resources(*things):
    return [{"name": f"{number}.yaml", "content": json.dumps(thing)}
            for number, thing in enumerate(things)]


class Agent:
    """`drover cluster-agent` of one cluster, as a process."""

    confirms_failures = True  # a version that it could not apply is told as applied and not ready

    tells_outages = True  # of its cluster, in its log, when they last

    puts_right = {"enabled": True}  # what of correctDrift lets it put right what a hand changed

    def __init__(self, program, name, main, own):
        self.program, self.name, self.main, self.own = program, name, main, own
        self.home = None
        self.pod = None  # in_pod.Account: where that is, it runs as in a pod
        self.between = None  # kubeconfigs of hub and cluster that lead through something else
        self.process = None

    def register(self):
        """What a person does: the cluster is made known to the hub, and its credentials fetched."""
        words = [str(self.program), "cluster", "register", self.name, "-l", "env=prod"]
        text = subprocess.run([*words, "-o", "json"], capture_output=True, check=True).stdout
        items = json.loads(text)["items"]
        token = next(one["metadata"]["name"] for one in items if one["kind"] == "Secret")
        self.home = items[0]["metadata"]["name"]
        subprocess.run([*words, "--apply", f"--kubeconfig={self.main.kubeconfig()}",
                        f"--credentials={self.credentials()}"], capture_output=True, check=True)
        data = self.main.api.get("secrets", token, self.home)["data"]
        folder = self.own.folder / "hub-account"  # the form in which pods have it
        folder.mkdir()
        for key in ("token", "ca.crt"):
            (folder / key).write_bytes(base64.b64decode(data[key]))

    def credentials(self):
        return self.own.folder / "hub-kubeconfig"

    def start(self, *words, anybody=False):
        """words: further ones. anybody: with an account of the hub that may read everything."""
        account = ("--hub", f"https://127.0.0.1:{self.main.port}", "--hub-account",
                   str(self.own.folder / "hub-account"))
        if anybody or self.name == NAMES[0]:  # the others have it as in a pod
            account = ("--hub-kubeconfig",
                       str(self.main.kubeconfig() if anybody else self.credentials()))
        if self.between:
            account = ("--hub-kubeconfig", str(self.between[0]))
        command = [str(self.program), "cluster-agent", self.name, *account, "--heartbeat", "2s",
                   *words]
        env = dict(os.environ)
        if self.pod:
            command, env = self.pod.command(*command), self.pod.variables()
        else:
            own = self.between[1] if self.between else self.own.kubeconfig(rollout.USER)
            command += ["--kubeconfig", str(own)]
        env["PATH"] = f"{binaries.HELM.folder()}{os.pathsep}{os.environ['PATH']}"
        with open(self.own.logs / "agent.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=env)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(30) == 0, "the agent did not end well"

    def deployment(self, name="app"):
        return self.main.api.get("bundledeployments", name, self.home)

    def modified(self, name):
        """Names of objects that it says are not as they should be; None: it has not applied it."""
        found = self.deployment(name)
        status = found.get("status", {})
        if status.get("appliedDeploymentID") != found["spec"]["deploymentID"]:
            return None
        return [one["name"] for one in status.get("modifiedStatus", [])]

    def own_user(self):
        """Who it is in its own cluster."""
        return self.pod.user() if self.pod else rollout.USER

    def log(self):
        return (self.own.logs / "agent.log").read_text("utf-8", "replace")

    def version(self):
        return self.find("deployments", "web")["spec"]["template"]["metadata"]["annotations"][
            "version"]

    def find(self, resource, name):
        return self.own.api.find(resource, name, SPACE)


class Stage:
    """The three clusters and what runs on them."""

    def __init__(self, program, main, owned, kind=Agent):
        self.program, self.main = program, main
        self.agents = [kind(program, name, main, own) for name, own in zip(NAMES, owned)]
        self.operator = hub.operator(program, main, elect=True)

    def all(self, check):
        return all(check(agent) for agent in self.agents)

    def change(self, *things):
        self.main.api.patch("bundles", "app", {"spec": {"resources": resources(*things)}},
                            hub.SPACE)

    def summary(self):
        return self.main.api.get("bundles", "app", hub.SPACE)["status"]["summary"]

    def wait(self, version):
        """Both clusters run it, and the hub says so."""
        hub.wait_ready(self.main, "app", len(NAMES))
        for agent in self.agents:
            found = agent.find("deployments", "web")
            notes = found["spec"]["template"]["metadata"]["annotations"]
            assert notes["version"] == version, (agent.name, notes)
            assert found["status"].get("availableReplicas") == 2, found["status"]
