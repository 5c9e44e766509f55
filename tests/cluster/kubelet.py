# SPDX-License-Identifier: Apache-2.0
"""One real kubelet with containerd and runc, in a folder and namespaces of its own.

    with kubelet.RealNode(cluster, images) as node: ...

The node is named "localhost", which is how the API server finds it for logs. It lives in a mount
and a process namespace: its /run and /var/log are folders of the test, and ending its first process
ends every container. Its bootID is a file of the test; restart(boot_id) is its reboot. Nothing of
it ever reboots the machine or speaks to the machine's services. What packages may see as host root
is for the test to make and to tell the operator.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import uuid

import api
import binaries

NAME = "localhost"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
SCRIPT = """set -eu
mount --make-rshared /  # among the containers of this namespace, as on any node
mount --bind "$FOLDER/run" /run
mount --bind "$FOLDER/log" /var/log
mount --bind "$FOLDER/boot_id" /proc/sys/kernel/random/boot_id
containerd --config "$FOLDER/containerd.toml" >>"$LOGS/containerd.log" 2>&1 &
for attempt in 1 2 3 4 5 6 7 8 9 10; do  # it ends at once while containerd is not ready
    kubelet --config "$FOLDER/kubelet.json" --kubeconfig "$KUBECONFIG" \
        --root-dir "$FOLDER/kubelet" --cert-dir "$FOLDER/certificates" \
        --hostname-override "$NAME" >>"$LOGS/kubelet.log" 2>&1 || sleep 1
done
"""
CONTAINERD = """version = 2
root = "{folder}/containerd"
state = "{folder}/state"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
    "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{tools}/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{tools}/usr/sbin/runc"
"""


def problem():
    """None where a kubelet can run, else what is missing."""
    if os.geteuid() != 0:
        return "a kubelet needs root"
    if not os.access(CGROUPS, os.W_OK) or not any(CGROUPS.iterdir()):
        return "a kubelet needs cgroups that it may write"
    found = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"],
                           check=False, stderr=subprocess.PIPE)
    if found.returncode != 0:
        return "no namespaces: " + found.stderr.decode().strip()
    return binaries.missing() or binaries.missing_tools()


def hierarchies():
    """The roots of the cgroup trees: one for version 2, one for each controller for version 1, and
    where both are, runc also uses the tree of version 2, "unified"."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if path.is_dir()]


class RealNode:
    def __init__(self, cluster, images):
        self.cluster = cluster
        self.images = images
        self.folder = cluster.folder / "node"
        self.group = f"drover-test-{uuid.uuid4().hex[:12]}"
        self.port = 0

    def __enter__(self):
        self.prepare()
        try:
            self.start(str(uuid.uuid4()))
            self.wait_ready()
        except BaseException:
            self.cluster.fail()
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def prepare(self):
        for name in ("run", "log", "cni", "kubelet", "certificates", "pods", "plugins"):
            (self.folder / name).mkdir(parents=True)
        pause = self.images.add("pause", "1", entrypoint=("/bin/sleep", "2147483647"))
        (self.folder / "containerd.toml").write_text(CONTAINERD.format(
            folder=self.folder, pause=pause, tools=binaries.tools()), encoding="utf-8")
        (self.folder / "cni" / "10-loopback.conflist").write_text(json.dumps(
            {"cniVersion": "0.3.1", "name": "loopback", "plugins": [{"type": "loopback"}]}),
            encoding="ascii")

    def configuration(self):
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self.folder}/containerd.sock",
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                               "x509": {"clientCAFile": str(self.cluster.folder / "pki/ca.crt")}},
            "authorization": {"mode": "AlwaysAllow"},
            "address": "127.0.0.1", "port": self.port, "healthzPort": 0, "readOnlyPort": 0,
            "cgroupDriver": "cgroupfs", "failCgroupV1": False, "cgroupRoot": f"/{self.group}",
            "enforceNodeAllocatable": [], "oomScoreAdj": 0, "failSwapOn": False,
            "localStorageCapacityIsolation": False, "makeIPTablesUtilChains": False,
            "podLogsDir": str(self.folder / "pods"), "resolvConf": "",
            "volumePluginDir": str(self.folder / "plugins"), "staticPodPath": "",
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%",
                             "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
            "syncFrequency": "2s", "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "10s", "rotateCertificates": False,
        }

    def start(self, boot_id):
        (self.folder / "boot_id").write_text(boot_id + "\n", encoding="ascii")
        with socket.socket() as free:  # a kubelet shares its port with nobody, us included
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (self.folder / "kubelet.json").write_text(json.dumps(self.configuration()),
                                                  encoding="utf-8")
        for tree in hierarchies():
            (tree / self.group).mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):  # empty in a new group of version 1
                if tree.name == "cpuset":
                    (tree / self.group / name).write_bytes((tree / name).read_bytes())
        tools = binaries.tools()
        path = [self.cluster.programs, tools / "usr/bin", tools / "usr/sbin", "/usr/sbin",
                "/usr/bin", "/sbin", "/bin"]
        environment = {"PATH": ":".join(map(str, path)), "FOLDER": str(self.folder), "NAME": NAME,
                       "LOGS": str(self.cluster.logs),
                       "KUBECONFIG": str(self.cluster.kubeconfig("kubelet"))}
        words = [f"{key}={value}" for key, value in environment.items()]
        self.cluster.spawn("node", ["env", "-i", *words, "unshare", "--mount", "--pid", "--fork",
                                    "--kill-child", "--propagation", "private", "--mount-proc",
                                    "sh", "-c", SCRIPT])

    def stop_processes(self):
        """Ends the namespace's first process, and with it everything in there."""
        if "node" in self.cluster.processes:
            self.cluster.kill("node")
            api.wait_until("no process is left in the node's cgroups",
                           lambda: not list(self.tasks()), 30)

    def tasks(self):
        for tree in hierarchies():
            for path in (tree / self.group).rglob("cgroup.procs"):
                yield from path.read_text(encoding="ascii").split()

    def stop(self):
        self.stop_processes()
        for tree in hierarchies():
            groups = [path.parent for path in (tree / self.group).rglob("cgroup.procs")]
            for path in sorted(groups, key=lambda path: -len(path.parts)):
                path.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self, boot_id=None):
        """A reboot: everything on the node dies; it comes back, with another bootID if given."""
        old = (self.folder / "boot_id").read_text(encoding="ascii").strip()
        self.stop_processes()
        self.start(boot_id or old)
        self.wait_ready()

    def wait_ready(self):
        boot_id = (self.folder / "boot_id").read_text(encoding="ascii").strip()

        def ready():
            self.cluster.check_alive()
            found = self.cluster.api.find("nodes", NAME)
            return found and found["status"]["nodeInfo"]["bootID"] == boot_id and any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in found["status"]["conditions"])
        api.wait_until("the real node is Ready", ready, 120)
