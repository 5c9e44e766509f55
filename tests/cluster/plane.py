# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes control plane on loopback, in a folder and on ports of its own.

    with plane.Cluster("name-of-the-test") as cluster:
        cluster.add_nodes(10)
        cluster.api.create("jobs", ...)

Starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK and waits until they
are ready; ends all of them, at once and by their ids, when the block or this process ends. Nothing
is kept but, when the block raised or fail() was called, the logs. Several run side by side. It
never changes anything of the machine outside its folder.
"""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import api
import audit
import binaries
import fleet
import policy
import stages

# Users are told apart by static tokens. Group system:masters may do anything; a test gives the
# operators' users what the product's own manifests grant.
USERS = {
    "admin": ["system:masters"],
    "kwok": ["system:masters"],
    "kubelet": ["system:masters"],
    "system:kube-controller-manager": ["system:masters"],
    "system:kube-scheduler": ["system:masters"],
    "drover": ["drover"],
    "drover-2": ["drover"],
    "viewer": [],
    # A test gives them rights to one kind, or in one namespace.
    "of-skyhooks": [],
    "of-bundles": [],
    "of-space": [],
}
CONTROLLERS = [
    "clusterrole-aggregation-controller", "daemonset-controller", "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller", "job-controller", "namespace-controller",
    "node-lifecycle-controller", "pod-garbage-collector-controller", "replicaset-controller",
    "root-ca-certificate-publisher-controller", "serviceaccount-controller",
    "statefulset-controller", "taint-eviction-controller", "ttl-after-finished-controller",
]
QUIET_FOR_EVER = "24h"  # KWOK nodes have no leases; only a test makes a node NotReady
READY_SECONDS = 300
LOG_LINES_SHOWN = 15
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """Runs in the child: whatever ends the test ends its servers, a SIGKILL too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def openssl(*words, cwd):
    subprocess.run(["openssl", *words], cwd=cwd, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)


def start_time(pid):
    """The kernel's start time of a process, or None: tells it from a later one of the same id."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
        return None if fields.split()[0] == "Z" else int(fields.split()[19])
    except (OSError, IndexError):
        return None


class Cluster:
    """options: scheduler=True, heartbeat=SECONDS (0: none), arguments={PROGRAM: [FLAG...]},
    audit=POLICY, folder=PATH, stays=True (outlives this process; stop_folder() ends it)."""

    def __init__(self, name, **options):
        unknown = set(options) - {"scheduler", "heartbeat", "arguments", "audit", "folder",
                                  "stays"}
        assert not unknown, f"unknown options {unknown}"
        self.name = name
        self.options = options
        self.processes = {}
        self.commands = {}
        self.failed = False
        self.ported = []
        if options.get("folder"):
            self.folder = pathlib.Path(options["folder"]).resolve()
            self.folder.mkdir(parents=True, exist_ok=False)
        else:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-cluster-"))
        self.logs = self.folder / "logs"
        self.audit_file = self.folder / "logs" / "audit.log"
        self.port = self.reserve_port()
        self.api = None

    # ---- life

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.failed = True
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        self.failed = self.failed or kind is not None
        self.stop()

    def fail(self):
        """The logs are worth keeping."""
        self.failed = True

    def start(self):
        self.programs = binaries.folder()
        self.logs.mkdir()
        self.make_certificates()
        self.write_settings()
        self.api = self.client("admin")
        self.run("etcd", self.etcd_flags())
        self.run("kube-apiserver", self.apiserver_flags())
        self.wait_ready()
        self.run("kube-controller-manager", self.controller_flags())
        if self.options.get("scheduler", True):
            self.run("kube-scheduler", ["--kubeconfig", self.kubeconfig("system:kube-scheduler"),
                                        "--leader-elect=false", "--secure-port=0"])
        self.run("kwok", ["--kubeconfig", self.kubeconfig("kwok"),
                          "--config", self.folder / "kwok.yaml"])
        self.prepare()
        if self.options.get("stays"):
            self.remember()

    def stop(self):
        for name in list(self.processes):
            self.kill(name)
        for held in self.ported:
            held.close()
        try:
            if self.failed and self.logs.is_dir():
                self.keep_logs()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self, name):
        """Ends one of the programs; run_again() brings it back."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def run_again(self, name):
        self.run(name, self.commands[name])
        if name == "kube-apiserver":
            self.wait_ready()

    # ---- backups

    def back_up(self):
        """Keeps all objects as they are now; the API server is away for a moment."""
        for name in ("kube-apiserver", "etcd"):
            self.kill(name)
        shutil.rmtree(self.folder / "etcd-backup", ignore_errors=True)
        shutil.copytree(self.folder / "etcd", self.folder / "etcd-backup")
        for name in ("etcd", "kube-apiserver"):
            self.run_again(name)

    def set_back(self):
        """Puts them back. Kubernetes' own programs begin anew, as after any restored backup."""
        names = list(self.processes)
        for name in reversed(names):
            self.kill(name)
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(self.folder / "etcd-backup", self.folder / "etcd")
        for name in sorted(names, key=lambda name: (name != "etcd", name != "kube-apiserver")):
            self.run_again(name)

    def run(self, name, flags):
        self.commands[name] = flags
        extra = self.options.get("arguments", {}).get(name, [])
        command = [str(word) for word in [self.programs / name, *flags, *extra]]
        self.spawn(name, command)

    def spawn(self, name, command):
        """Any program, with its output in logs/NAME.log."""
        stays = self.options.get("stays", False)
        with open(self.logs / f"{name}.log", "ab") as log:
            # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                start_new_session=stays, preexec_fn=None if stays else die_with_parent)

    def check_alive(self):
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with status {process.returncode}:\n"
                                   + self.tail(self.logs / f"{name}.log"))

    def wait_ready(self):
        end = time.monotonic() + READY_SECONDS
        while True:
            self.check_alive()
            try:
                if self.api.raw("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > end:
                raise TimeoutError("the API server is not ready:\n"
                                   + self.tail(self.logs / "kube-apiserver.log"))
            time.sleep(0.05)

    def prepare(self):
        """What every test may count on: the behaviour policy and the namespace of the operator."""
        self.api.create("configmaps", policy.behaviour(), "kube-system")
        self.api.create("mutatingadmissionpolicies", policy.policy())
        self.api.create("mutatingadmissionpolicybindings", policy.binding())
        self.api.create("namespaces", {"metadata": {"name": "skyhook"}})
        for namespace in ("default", "skyhook"):
            api.wait_until(f"{namespace} has its service account", lambda name=namespace:
                           self.api.find("serviceaccounts", "default", name), READY_SECONDS)
        self.check_alive()

    # ---- settings

    def reserve_port(self):
        """A port that stays ours: held by a socket that does not listen, shared with the server."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        self.ported.append(held)
        return held.getsockname()[1]

    def make_certificates(self):
        pki = self.folder / "pki"
        pki.mkdir()
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        openssl("req", "-x509", *key, "-days", "30", "-subj", "/CN=drover-test-ca",
                "-keyout", "ca.key", "-out", "ca.crt", cwd=pki)
        names = {"server": ("/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
                 "client": ("/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")}
        for name, (subject, extension) in names.items():
            openssl("req", "-x509", *key, "-days", "30", "-subj", subject, "-addext", extension,
                    "-addext", "basicConstraints=critical,CA:FALSE", "-CA", "ca.crt",
                    "-CAkey", "ca.key", "-keyout", f"{name}.key", "-out", f"{name}.crt", cwd=pki)
        openssl("genrsa", "-out", "accounts.key", "2048", cwd=pki)
        openssl("rsa", "-in", "accounts.key", "-pubout", "-out", "accounts.pub", cwd=pki)

    def token(self, user):
        return f"token-of-{user.replace(':', '-')}"

    def write_settings(self):
        rows = []
        for user, groups in USERS.items():
            rows.append(f'{self.token(user)},{user},{user},"{",".join(groups)}"\n')
        (self.folder / "tokens.csv").write_text("".join(rows), encoding="utf-8")
        (self.folder / "audit.json").write_text(
            json.dumps(self.options.get("audit", audit.POLICY)), encoding="utf-8")
        (self.folder / "kwok.yaml").write_text(
            stages.configuration(self.options.get("heartbeat", 0)), encoding="utf-8")

    def kubeconfig(self, user="admin", server=None):
        """Writes a kubeconfig and returns its path. admin has a certificate, the others tokens."""
        pki = self.folder / "pki"
        if user == "admin":
            identity = {"client-certificate": str(pki / "client.crt"),
                        "client-key": str(pki / "client.key")}
        else:
            identity = {"token": self.token(user)}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": server or f"https://127.0.0.1:{self.port}",
                "certificate-authority": str(pki / "ca.crt")}}],
            "users": [{"name": user, "user": identity}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        }
        path = self.folder / f"kubeconfig-{user.replace(':', '-')}"
        if server:
            path = path.with_name(path.name + "-" + server.rpartition(":")[2])
        path.write_text(json.dumps(config, indent=1), encoding="utf-8")
        return path

    def client(self, user, agent="drover-test"):
        return api.Api(self.port, self.folder / "pki" / "ca.crt", self.token(user), agent)

    def etcd_flags(self):
        # Sockets are files in the folder, where all programs run: no port that another cluster
        # could take in between, and no path that is too long for a socket.
        client, peer = "unix://client.sock:1", "unix://peer.sock:1"  # etcd wants a ":"
        return ["--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--log-level=warn",
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", f"default={peer}", "--quota-backend-bytes=4294967296"]

    def apiserver_flags(self):
        pki = self.folder / "pki"
        return [
            "--etcd-servers=unix://client.sock:1",
            "--bind-address=127.0.0.1", "--secure-port", self.port, "--permit-port-sharing",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            "--tls-cert-file", pki / "server.crt", "--tls-private-key-file", pki / "server.key",
            "--client-ca-file", pki / "ca.crt", "--token-auth-file", self.folder / "tokens.csv",
            "--authorization-mode=RBAC",
            # It taints every new node until the controller has looked at it: for thousands of nodes
            # that takes half a minute, and a test that wants the taint can ask for it.
            "--disable-admission-plugins=TaintNodesByCondition",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--service-account-issuer=https://drover.test",
            "--service-account-key-file", pki / "accounts.pub",
            "--service-account-signing-key-file", pki / "accounts.key", "--allow-privileged",
            "--kubelet-preferred-address-types=Hostname",
            "--kubelet-client-certificate", pki / "client.crt",
            "--kubelet-client-key", pki / "client.key",
            "--audit-policy-file", self.folder / "audit.json",
            # One file, however much is logged: it is read by offsets.
            "--audit-log-path", self.audit_file, "--audit-log-maxsize=100000", "--profiling=false",
        ]

    def controller_flags(self):
        pki = self.folder / "pki"
        return [
            "--kubeconfig", self.kubeconfig("system:kube-controller-manager"),
            "--controllers", ",".join(CONTROLLERS), "--leader-elect=false", "--secure-port=0",
            "--service-account-private-key-file", pki / "accounts.key",
            "--root-ca-file", pki / "ca.crt", "--node-monitor-grace-period", QUIET_FOR_EVER,
            "--node-eviction-rate=10", "--secondary-node-eviction-rate=10",
            "--concurrent-job-syncs=20", "--kube-api-qps=2000", "--kube-api-burst=4000",
        ]

    # ---- what happened

    @staticmethod
    def tail(path):
        lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        return "\n".join(lines[-LOG_LINES_SHOWN:])

    def keep_logs(self):
        builds = os.environ.get("DROVER_BUILDS", "").split(os.pathsep)[0]
        root = binaries.HERE.parent.parent
        base = root / builds if builds else pathlib.Path(tempfile.gettempdir())
        target = base / "cluster-logs" / f"{self.name}-{self.folder.name.rpartition('-')[2]}"
        shutil.copytree(self.logs, target, dirs_exist_ok=True)
        print(f"# logs of the cluster are kept in {target}", flush=True)

    def remember(self):
        record = {name: [process.pid, start_time(process.pid)]
                  for name, process in self.processes.items()}
        (self.folder / "processes.json").write_text(json.dumps(record), encoding="ascii")

    def wait_quiet(self, seconds=1.5, most=60):
        """Until nobody has written anything for a while, such as events about new nodes."""
        def quiet():
            before = self.audit_file.stat().st_size
            time.sleep(seconds)
            return self.audit_file.stat().st_size == before
        api.wait_until("nobody writes", quiet, most)

    # ---- the fleet

    def add_nodes(self, count, **options):
        return fleet.add_nodes(self.api, count, **options)

    def behave(self, **words):
        """What pods will do that are created from now on; None forgets. See policy.py for keys."""
        return self.api.patch("configmaps", stages.BEHAVIOUR, {"data": words}, "kube-system")


def stop_folder(folder):
    """Ends a cluster that was started with stays=True, and removes its folder."""
    folder = pathlib.Path(folder)
    record = json.loads((folder / "processes.json").read_text(encoding="ascii"))
    for pid, began in record.values():
        if start_time(pid) == began:
            os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while any(start_time(pid) == began for pid, began in record.values()):
        if time.monotonic() > end:
            raise TimeoutError(f"processes of {folder} do not end")
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)
