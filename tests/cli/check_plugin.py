#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl-skyhook against a server of one Skyhook: what it writes, and what not. TAP."""

import http.server
import json
import pathlib
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

SKYHOOK = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks/sk"
ACTS = "skyhook.nvidia.com/acts"
STATE = {"aa|1.0.0": {"name": "aa", "version": "1.0.0", "image": "x", "stage": "apply",
                      "state": "complete"}}


class Cluster(http.server.ThreadingHTTPServer):
    """Takes every patch for done; an operator may take what is asked of it at once."""

    daemon_threads = True

    def __init__(self, operator):
        super().__init__(("127.0.0.1", 0), Handler)
        self.operator = operator
        self.notes = {}
        self.patched = []
        self.asked = []
        self.nodes = []
        self.batch = {"currentBatch": 4, "members": ["n1"]}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def skyhook(self):
        return {"metadata": {"name": "sk", "resourceVersion": "7", "annotations": self.notes},
                "spec": {"packages": {"aa": {"version": "1.0.0", "image": "x"}}},
                "status": {"compartmentStatuses": {"__default__": {"batchState": self.batch}}}}

    def patch(self, path, body):
        self.patched.append(path)
        if path == SKYHOOK:
            acts = json.loads(body["metadata"]["annotations"][ACTS])
            self.asked.append([act["target"] for act in acts if "target" in act])
        if path == SKYHOOK and not self.operator:
            self.notes = body["metadata"]["annotations"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        path = self.path.split("?")[0]
        body = self.server.skyhook() if path.startswith(SKYHOOK) else {
            "items": self.server.nodes if path == "/api/v1/nodes" else []}
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):  # pylint: disable=invalid-name
        self.answer()

    def do_PATCH(self):  # pylint: disable=invalid-name
        length = int(self.headers["Content-Length"])
        self.server.patch(self.path.split("?")[0], json.loads(self.rfile.read(length)))
        self.answer()

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def config_of(cluster, folder):
    file = pathlib.Path(folder) / "config"
    file.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {
            "server": f"http://127.0.0.1:{cluster.server_address[1]}"}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}))
    return file


def ask(program, cluster, *words):
    """By the name of the plugin, which is another one of the same program."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = pathlib.Path(folder) / "kubectl-skyhook"
        plugin.symlink_to(program)
        config = config_of(cluster, folder)
        return drover.run(plugin, *words, "--kubeconfig", config)


def flags(program):
    """Those of kubectl: without a kubeconfig, and with other parts of one."""
    with Cluster(False) as cluster, tempfile.TemporaryDirectory() as folder:
        plugin = pathlib.Path(folder) / "kubectl-skyhook"
        plugin.symlink_to(program)
        server = f"http://127.0.0.1:{cluster.server_address[1]}"
        words = ["node", "list", "--skyhook", "sk"]
        alone = drover.run(plugin, "--insecure-skip-tls-verify", *words, "--server", server,
                           "--token", "t", env={"HOME": folder})
        broken = json.loads(config_of(cluster, folder).read_text())
        broken["contexts"][0]["context"] = {"cluster": "gone", "user": "gone"}
        config = pathlib.Path(folder) / "broken"
        config.write_text(json.dumps(broken))
        words += ["--kubeconfig", config]
        other = drover.run(plugin, *words, "--cluster", "a", "--user", "a")
        plain = drover.run(plugin, *words, "--user", "a")
        lacking = drover.run(plugin, *words, "--cluster", "a", "--user", "a",
                             "--certificate-authority", config, "--client-key", config,
                             "--client-certificate", config)
        cluster.shutdown()
        found = [alone.status, other.status, plain.status, 'no cluster "gone"' in plain.err,
                 lacking.status]
        if found == [0, 0, 1, True, 0]:
            return None
        return f"{found}\n{alone}\n{other}\n{plain}\n{lacking}"


def policy_reset(program, operator):
    """An operator that takes it writes the status; without one the command does."""
    with Cluster(operator) as cluster:
        result = ask(program, cluster, "deployment-policy", "reset", "sk", "--confirm")
        cluster.shutdown()
        wanted = [SKYHOOK] if operator else [SKYHOOK, SKYHOOK + "/status"]
        if result.status != 0 or "Successfully reset batch state" not in result.out:
            return result
        return drover.difference(wanted, cluster.patched)


def many_nodes(program, *words):
    """An operator is asked about many nodes in few writes, and about each of them once."""
    names = [f"n{i:04}" for i in range(1200)]
    with Cluster(True) as cluster:
        cluster.nodes = [{"metadata": {"name": name, "resourceVersion": "1", "annotations": {
            "skyhook.nvidia.com/nodeState_sk": json.dumps(STATE),
            "skyhook.nvidia.com/status_sk": "erroring"}}} for name in names]
        result = ask(program, cluster, *words, "--skyhook", "sk", "-y")
        cluster.shutdown()
        if result.status != 0 or "1200 node(s)" not in result.out:
            return result
        return drover.difference(([SKYHOOK] * 3, names),
                                 (cluster.patched, sum(cluster.asked, [])))


def main():
    tap = drover.Tap()
    for program in drover.programs():
        name = program.parent.name
        tap.test(f"{name}: kubectl's flags", flags(program))
        for operator in (False, True):
            tap.test(f"{name}: deployment-policy reset with{'' if operator else 'out'} an operator",
                     policy_reset(program, operator))
        tap.test(f"{name}: node reset of many nodes", many_nodes(program, "node", "reset", "n.*"))
        tap.test(f"{name}: node retry of many nodes", many_nodes(program, "node", "retry", "n.*"))
        tap.test(f"{name}: package rerun on many nodes",
                 many_nodes(program, "package", "rerun", "aa", "--node", "n.*"))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
