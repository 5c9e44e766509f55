# SPDX-License-Identifier: Apache-2.0
"""A program as it is in a pod: the files of its account stand where a kubelet puts them, which is
in a mount namespace of its own, and variables say where the API server is."""

import os
import pathlib
import subprocess

import rollout  # pylint: disable=unused-import  # it says where other modules are
# pylint: disable=wrong-import-order
import api

PLACE = "/run/secrets/kubernetes.io/serviceaccount"
INSIDE = 'mount -t tmpfs none /run && mkdir -p "$0" && mount --bind "$1" "$0" && shift && exec "$@"'
UNSHARE = ["unshare", "--map-root-user", "--mount", "sh", "-c", INSIDE, PLACE]


def missing():
    """Why that cannot be had here; None: it can."""
    tried = subprocess.run([*UNSHARE, "/tmp", "true"], check=False, capture_output=True, text=True)
    return f"mounts are not allowed here: {tried.stderr}" if tried.returncode else None


class Account:
    """A folder with the files, as a kubelet keeps it."""

    def __init__(self, cluster, name, space):
        self.cluster, self.name, self.space = cluster, name, space
        self.folder = pathlib.Path(cluster.folder) / f"account-{name}"
        self.folder.mkdir()
        self.bound = None
        (self.folder / "namespace").write_text(space, encoding="ascii")
        (self.folder / "ca.crt").write_bytes((cluster.folder / "pki" / "ca.crt").read_bytes())
        self.renew()

    def renew(self):
        """Another token, in one step. The one before holds until revoke_old() is called."""
        number = int((self.bound or "0").rpartition("-")[2]) + 1
        self.bound = f"{self.name}-token-{number}"
        made = self.cluster.api.create("secrets", {"metadata": {"name": self.bound}}, self.space)
        path = api.Api.path("serviceaccounts", self.name, self.space, "token")
        token = self.cluster.api.ask("POST", path, {"spec": {"boundObjectRef": {
            "apiVersion": "v1", "kind": "Secret", "name": self.bound,
            "uid": made["metadata"]["uid"]}}})["status"]["token"]
        new = self.folder / "token.new"
        new.write_text(token, encoding="ascii")
        new.rename(self.folder / "token")

    def token(self):
        return (self.folder / "token").read_text(encoding="ascii")

    def revoke_old(self):
        """All tokens but the newest are of no more use, once the server has looked."""
        number = int(self.bound.rpartition("-")[2])
        for old in range(1, number):
            if self.cluster.api.find("secrets", f"{self.name}-token-{old}", self.space):
                self.cluster.api.delete("secrets", f"{self.name}-token-{old}", self.space)

    def user(self):
        return f"system:serviceaccount:{self.space}:{self.name}"

    def command(self, *words):
        return [*UNSHARE, str(self.folder), *[str(word) for word in words]]

    def variables(self):
        kept = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        return {**kept, "HOME": str(self.folder), "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": str(self.cluster.port)}
