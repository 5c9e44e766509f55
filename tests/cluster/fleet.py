# SPDX-License-Identifier: Apache-2.0
"""Nodes that KWOK plays, and what may happen to them."""

import concurrent.futures
import time
import uuid

import api
import stages

FEW = 100
WRITERS = 8
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def node(name, labels=None, taints=None, boot_id=None):
    """A node as its kubelet registers it: Ready, with a bootID."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady",
                 "message": "kubelet is posting ready status", "lastHeartbeatTime": now,
                 "lastTransitionTime": now}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            stages.KWOK_LABEL: "yes", "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            # The old names, which a controller would add with a write for each node.
            "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
            **(labels or {})}},
        "spec": {"taints": taints or []},
        "status": {
            "conditions": [condition], "capacity": ROOM, "allocatable": ROOM,
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": {
                "bootID": boot_id or str(uuid.uuid4()), "architecture": "amd64",
                "operatingSystem": "linux", "kubeletVersion": "v1.36.3", "machineID": name,
                "systemUUID": name, "kernelVersion": "6.1.0", "osImage": "Debian GNU/Linux 12",
                "containerRuntimeVersion": "containerd://1.6.20", "kubeProxyVersion": ""}},
    }


def add_nodes(client, count, prefix="node", first=0, labels=None, taints=None):
    """Creates nodes PREFIX-00000 and so on, and returns their names. labels: a dictionary, or what
    makes one of the number of a node. A few are made one after the other: their order by time is
    that of their names, also where a second ends meanwhile."""
    # pylint: disable=too-many-arguments
    numbers = range(first, first + count)
    names = [f"{prefix}-{number:05d}" for number in numbers]

    def create(number, name):
        wanted = labels(number) if callable(labels) else labels
        client.create("nodes", node(name, wanted, taints))

    with concurrent.futures.ThreadPoolExecutor(1 if count <= FEW else WRITERS) as pool:
        list(pool.map(create, numbers, names))
    return names


def boot_id(client, name):
    return client.get("nodes", name)["status"]["nodeInfo"]["bootID"]


def is_ready(found):
    return any(condition["type"] == "Ready" and condition["status"] == "True"
               for condition in found["status"]["conditions"])


def reboot(client, name, down_seconds=1):
    """Starts a reboot: pods of Jobs that run there are dead at once, the node is NotReady for a
    while and comes back with the bootID that is returned."""
    new = str(uuid.uuid4())
    client.patch("nodes", name, {"metadata": {"annotations": {
        stages.REBOOT: new, stages.DOWN: f"{int(down_seconds * 1000)}ms"}}})
    for pod in client.list("pods", fieldSelector=f"spec.nodeName={name}"):
        owners = pod["metadata"].get("ownerReferences", [])
        running = pod["status"].get("phase") in ("Pending", "Running")
        if running and any(owner["kind"] == "Job" for owner in owners):
            client.patch("pods", pod["metadata"]["name"], {"status": {"phase": "Failed"}},
                         pod["metadata"]["namespace"], "status")
    return new


def wait_rebooted(client, name, new, seconds=30):
    def back():
        found = client.get("nodes", name)
        return is_ready(found) and found["status"]["nodeInfo"]["bootID"] == new
    api.wait_until(f"{name} is back from its reboot", back, seconds)


def freeze(client, name, frozen):
    """Marks the pods of a node that have not ended; see stages.py."""
    for pod in client.list("pods", fieldSelector=f"spec.nodeName={name}"):
        if pod["status"].get("phase") in ("Pending", "Running"):
            client.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": {
                stages.FROZEN: "true" if frozen else None}}}, pod["metadata"]["namespace"])


def lose(client, name):
    """The node falls silent: nobody plays it or its pods any more, and it is Ready=Unknown."""
    freeze(client, name, True)
    client.patch("nodes", name, {"metadata": {"labels": {stages.KWOK_LABEL: None}}})
    set_ready(client, name, "Unknown", "NodeStatusUnknown")


def bring_back(client, name):
    """KWOK plays it again: it becomes Ready, and its pods go on."""
    client.patch("nodes", name, {"metadata": {"labels": {stages.KWOK_LABEL: "yes"}}})
    api.wait_until(f"{name} is back", lambda: is_ready(client.get("nodes", name)))
    freeze(client, name, False)


def set_ready(client, name, status, reason):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    client.patch("nodes", name, {"status": {"conditions": [{
        "type": "Ready", "status": status, "reason": reason, "message": reason,
        "lastHeartbeatTime": now, "lastTransitionTime": now}]}}, sub="status", how="strategic")
