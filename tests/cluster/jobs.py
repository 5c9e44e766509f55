# SPDX-License-Identifier: Apache-2.0
"""Jobs as the operator makes them, and how tests ask what became of them."""

import api

SPACE = "skyhook"
HOST = "/root"  # where packages find the host's root, as Skyhook has it
EVERY_FAILURE = {"rules": [  # a podFailurePolicy that fails a Job for whatever it can see
    {"action": "FailJob", "onPodConditions": [{"type": "Ready", "status": "False"}]},
    {"action": "FailJob", "onPodConditions": [{"type": "Initialized", "status": "False"}]},
    {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
]}


def job(name, node, run=None, **more):
    """A Job as the operator makes them: two init containers, one container, bound to its node."""
    notes = {"kubectl.kubernetes.io/default-container": "p-apply"}
    if run:
        notes["drover.test/run"] = run
    labels = more.pop("labels", {})
    notes.update(more.pop("notes", {}))
    containers = [{"name": word, "image": f"example.test/{word}:1"}
                  for word in ("p-init", "p-apply", "p-applycheck")]
    pod = {"nodeName": node, "restartPolicy": "Never", "initContainers": containers[:2],
           "containers": containers[2:]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
            "spec": {"backoffLimit": 0, "podReplacementPolicy": "Failed", **more, "template": {
                "metadata": {"annotations": notes, "labels": labels}, "spec": pod}}}


def real_job(name, image, scripts, root, **more):
    """The same for a real kubelet: three shell scripts, and a folder of the test as host root."""
    made = job(name, "localhost", **more)
    pod = made["spec"]["template"]["spec"]
    pod.update({"hostPID": True, "hostNetwork": True, "volumes": [
        {"name": "root-mount", "hostPath": {"path": str(root)}}]})
    for container, script in zip(pod["initContainers"] + pod["containers"], scripts):
        container.update({
            "image": image, "imagePullPolicy": "Always", "command": ["/bin/sh", "-c", script],
            "env": [{"name": "HOST", "value": HOST}],
            "securityContext": {"privileged": True}, "volumeMounts": [{
                "name": "root-mount", "mountPath": HOST, "mountPropagation": "HostToContainer"}]})
    return made


def condition(thing, kind):
    for found in thing["status"].get("conditions", []):
        if found["type"] == kind and found["status"] == "True":
            return found
    return None


class Story:
    """One cluster and what tests ask of it."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.api = cluster.api

    def create(self, name, node, run=None, **more):
        return self.api.create("jobs", job(name, node, run, **more), SPACE)

    def ends(self, name, kind, seconds=30):
        """The Job's condition of that kind, once it is there."""
        def there():
            found = self.api.get("jobs", name, SPACE)
            other = {"Complete": "Failed", "Failed": "Complete"}[kind]
            assert not condition(found, other), f"{name} ended as {other}"
            return condition(found, kind)
        return api.wait_until(f"Job {name} is {kind}", there, seconds)

    def pod(self, name, ready=lambda pod: True, seconds=30):
        def there():
            selector = f"batch.kubernetes.io/job-name={name}"
            found = self.api.list("pods", SPACE, labelSelector=selector)
            return found[0] if found and ready(found[0]) else None
        return api.wait_until(f"Job {name} has such a pod", there, seconds)

    def started(self, name):
        return self.pod(name, lambda pod: "startTime" in pod["status"])


def state_of(pod, container):
    for kind in ("initContainerStatuses", "containerStatuses"):
        for status in pod["status"].get(kind, []):
            if status["name"] == container:
                return status["state"]
    return {}
