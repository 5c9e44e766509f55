# SPDX-License-Identifier: Apache-2.0
"""The programs of the test cluster: built from the modules that kubernetes/go.mod pins.

They are kept in $DROVER_CLUSTER_CACHE, by default ~/.cache/drover/cluster, in a folder named after
the pins: another version is another folder, and a checkout owns nothing of it. What a real kubelet
needs besides is taken from Debian's packages, which are unpacked there and not installed: a machine
that has Docker keeps its own containerd, and no service is started. Helm and Fleet's own agent,
which only the full tests need, are built from helm/go.mod and fleetagent/go.mod in the same way,
and only when they are asked for.
"""

import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
MODULE = HERE / "kubernetes"
PROGRAM = "kubernetes"
NAMES = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
         "kubectl", "kwok"]
DEBIAN = ["containerd", "runc", "containernetworking-plugins", "busybox-static"]
DEBIAN_FILES = ["usr/bin/containerd", "usr/sbin/runc", "usr/lib/cni/loopback", "bin/busybox"]
OLDEST_GO = (1, 21)  # the first that fetches the release that go.mod asks for


def cache():
    named = os.environ.get("DROVER_CLUSTER_CACHE")
    return pathlib.Path(named) if named else pathlib.Path.home() / ".cache" / "drover" / "cluster"


def kubernetes_version():
    return re.search(r"k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text()).group(1)


def link_flags():
    version = kubernetes_version()
    major, minor = version.lstrip("v").split(".")[:2]
    stamps = []
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        for name, value in (("gitVersion", version), ("gitMajor", major), ("gitMinor", minor),
                            ("gitTreeState", "archive")):
            stamps.append(f"-X {package}.{name}={value}")
    return " ".join(["-s -w", *stamps])


def folder():
    """Where the programs for the present pins are, or will be."""
    pins = hashlib.sha256(link_flags().encode())
    for name in ("go.mod", "go.sum", "main.go"):
        pins.update((MODULE / name).read_bytes())
    return cache() / pins.hexdigest()[:16]


def missing():
    """None when the programs are there, else why not."""
    if all((folder() / name).exists() for name in NAMES):
        return None
    return f"no programs in {folder()}; scripts/setup cluster builds them"


def go_problem():
    if not shutil.which("go"):
        return "Go is not installed"
    found = subprocess.run(["go", "env", "GOVERSION"], stdout=subprocess.PIPE, check=True,
                           env=dict(os.environ, GOTOOLCHAIN="local"), cwd="/")
    version = re.match(r"go(\d+)\.(\d+)", found.stdout.decode())
    if not version or tuple(map(int, version.groups())) < OLDEST_GO:
        return f"{found.stdout.decode().strip()} is too old; 1.21 or newer is needed"
    return None


class CannotBuild(RuntimeError):
    """The machine lacks something that no set-up of ours provides."""


def tools():
    """Where Debian's programs are, or will be."""
    return cache() / "debian"


def missing_tools():
    if all((tools() / name).exists() for name in DEBIAN_FILES):
        return None
    return f"no containerd and runc in {tools()}; scripts/setup cluster fetches them"


def fetch_tools():
    """Best effort: without them only the tests with a real kubelet are skipped."""
    if missing_tools() is None:
        return
    work = tools().with_name("debian.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *DEBIAN]
    try:
        subprocess.run(command, cwd=work, check=True, stdout=subprocess.DEVNULL)
        for package in sorted(work.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(package), str(work)], check=True)
            package.unlink()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"cluster: no real kubelet: {error}", file=sys.stderr)
        return
    shutil.rmtree(tools(), ignore_errors=True)
    work.rename(tools())


def compile_into(target):
    work = target.with_name(target.name + ".part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    subprocess.run(["nice", "go", "build", "-trimpath", "-mod=readonly", "-ldflags", link_flags(),
                    "-o", str(work / PROGRAM), "."], cwd=MODULE, check=True,
                   env=dict(os.environ, CGO_ENABLED="0"))
    for name in NAMES:
        (work / name).symlink_to(PROGRAM)
    work.rename(target)


# ---- what only the full tests need

class Extra:
    """A program of somebody else, built from the folder here that has the name of its setup."""

    def __init__(self, setup, module, package, stamp):
        self.setup, self.module, self.stamp = setup, module, stamp
        self.package = f"{module}/{package}"
        self.name = package.rpartition("/")[2]

    def version(self):
        pins = (HERE / self.setup / "go.mod").read_text()
        return re.search(re.escape(self.module) + r" (v\S+)", pins).group(1)

    def folder(self):
        """Where the program for the present pins is, or will be: a folder for $PATH."""
        pins = hashlib.sha256(self.package.encode())
        for name in ("go.mod", "go.sum"):
            pins.update((HERE / self.setup / name).read_bytes())
        return cache() / f"{self.setup}-{pins.hexdigest()[:16]}"

    def missing(self):
        """None when it is there, else why not."""
        if (self.folder() / self.name).exists():
            return None
        return f"no {self.name} in {self.folder()}; scripts/setup {self.setup} builds it"

    def build(self):
        """Builds it if it is missing, and returns its folder."""
        target = self.folder()
        if self.missing() is None:
            return target
        problem = go_problem()
        if problem:
            raise CannotBuild(f"{self.name} cannot be built: {problem}")
        cache().mkdir(parents=True, exist_ok=True)
        with open(cache() / f"lock-{self.setup}", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.missing() is None:
                return target
            began = time.monotonic()
            print(f"cluster: building {self.name} {self.version()}", file=sys.stderr, flush=True)
            work = target.with_name(target.name + ".part")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            self.compile_into(work)
            work.rename(target)
            print(f"cluster: built in {time.monotonic() - began:.0f} s", file=sys.stderr)
        return target

    def compile_into(self, work):
        how = {"cwd": HERE / self.setup, "env": dict(os.environ, CGO_ENABLED="0")}
        found = subprocess.run(["go", "list", "-mod=readonly", "-deps", self.package], check=False,
                               stdout=subprocess.DEVNULL, **how)
        if found.returncode != 0:  # not every mirror has every module
            raise CannotBuild(f"{self.name} cannot be built: not all modules can be fetched")
        stamp = f"-s -w -X {self.module}/{self.stamp}={self.version()}"
        subprocess.run(["nice", "go", "build", "-trimpath", "-mod=readonly", "-ldflags", stamp,
                        "-o", str(work / self.name), self.package], check=True, **how)


HELM = Extra("helm", "helm.sh/helm/v3", "cmd/helm", "internal/version.version")
FLEETAGENT = Extra("fleetagent", "github.com/rancher/fleet", "cmd/fleetagent",
                   "pkg/version.Version")


# ---- all of the cluster

def build():
    """Builds what is missing and returns the folder. Several may ask at once; one builds."""
    target = folder()
    if missing() is None and missing_tools() is None:
        return target
    problem = go_problem() if missing() else None
    if problem:
        raise CannotBuild(f"the test cluster cannot be built: {problem}")
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if missing() is not None:
            began = time.monotonic()
            print(f"cluster: building Kubernetes {kubernetes_version()}, etcd and KWOK; the first "
                  "time takes about ten minutes", file=sys.stderr, flush=True)
            compile_into(target)
            print(f"cluster: built in {time.monotonic() - began:.0f} s", file=sys.stderr)
        fetch_tools()
    return target
