#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes client and `kubectl skyhook` against a made-up API server: what a real one does
not do when it is asked to, or not soon. Certificates, rights, answers that come late."""

import contextlib
import http.server
import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.drover import Tap, difference, programs, run

NAME = "kubernetes.test"
SKYHOOKS = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks"
POLICIES = "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies"
PODS = "/api/v1/namespaces/skyhook/pods"
WAIT_SECONDS = 60


def openssl(*words):
    subprocess.run(["openssl", *[str(word) for word in words]], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Authority:
    """Issues certificates for a server."""

    def __init__(self, folder, name):
        self.folder = folder
        self.name = name
        self.certificate = folder / f"{name}.crt"
        self.key = folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "2", "-subj", f"/CN={name}", "-keyout", self.key, "-out",
                self.certificate)

    def issue(self, names):
        """Certificate and key of a server, in one file."""
        stem = self.folder / f"{self.name}-server"
        extension = stem.with_suffix(".ext")
        extension.write_text(f"subjectAltName={names}", encoding="ascii")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", "/CN=server", "-keyout", f"{stem}.key", "-out", f"{stem}.csr")
        openssl("x509", "-req", "-days", "1", "-in", f"{stem}.csr", "-CA", self.certificate,
                "-CAkey", self.key, "-CAcreateserial", "-extfile", extension, "-out",
                f"{stem}.crt")
        both = pathlib.Path(f"{stem}.pem")
        both.write_bytes(pathlib.Path(f"{stem}.crt").read_bytes()
                         + pathlib.Path(f"{stem}.key").read_bytes())
        return both


class Server:
    """answer(request) is asked for each request; it may use request.say and request.stream."""

    def __init__(self, answer, certificate=None, port=0, date=None):
        self.seen = []
        self.ended = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

            def date_time_string(self, timestamp=None):
                told = date() if callable(date) else date
                return told or super().date_time_string(timestamp)

            def say(self, status, body, **headers):
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                for key, value in headers.items():
                    self.send_header(key.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(text)

            def stream(self, lines):
                """Until the lines, or the server, or who reads them, are at their end."""
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.close_connection = True
                for line in lines:
                    if outer.ended.is_set():
                        return
                    self.wfile.write(line)
                    self.wfile.flush()

            def do_PATCH(self):
                self.body = self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def do_GET(self):
                outer.seen.append((self.path, self.headers))
                with contextlib.suppress(OSError):
                    answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # who does not like the certificate hangs up
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.scheme = "https" if certificate else "http"
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def config(folder, server, path="", **cluster):
    """A kubeconfig for it."""
    file = folder / "kubeconfig"
    entry = {"server": f"{server.scheme}://127.0.0.1:{server.port}{path}", **cluster}
    file.write_text(json.dumps({
        "clusters": [{"name": "c", "cluster": entry}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c"}), encoding="utf-8")
    return file


class Room:
    """The programs of a build, and a folder."""

    def __init__(self, program, folder):
        self.drover = program
        self.build = program.parent
        self.folder = pathlib.Path(folder)
        self.plugin = self.folder / "kubectl-skyhook"
        self.plugin.symlink_to(program)

    def skyhook(self, server, *words, **more):
        return run(self.plugin, *words, env={"KUBECONFIG": str(config(self.folder, server))},
                   **more)


# ---- what it answers

def items(kind, *objects):
    return {"apiVersion": "v1", "kind": f"{kind}List", "metadata": {"resourceVersion": "7"},
            "items": list(objects)}


def node(name):
    return {"metadata": {"name": name, "resourceVersion": "1", "uid": name}, "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


SKYHOOK = {"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
           "metadata": {"name": "tuning", "uid": "u", "resourceVersion": "1", "generation": 1,
                        "annotations": {"skyhook.nvidia.com/pause": "true"}},
           "spec": {"packages": {"aa": {"version": "1.0.0", "image": "x"}}}}


def refusal(status, reason, message):
    return {"kind": "Status", "code": status, "reason": reason, "message": message}


def nodes_only(request):
    request.say(200, items("Node", node("one")))


def watch(request):
    """A streamed list of nothing, then a new object every moment."""
    def lines():
        number = 100
        if "sendInitialEvents" in request.path:
            yield json.dumps({"type": "BOOKMARK", "object": {"metadata": {
                "resourceVersion": str(number),
                "annotations": {"k8s.io/initial-events-end": "true"}}}}).encode() + b"\n"
        while True:
            number += 1
            yield json.dumps({"type": "ADDED", "object": {"metadata": {
                "name": f"x{number}", "resourceVersion": str(number)}}}).encode() + b"\n"
            time.sleep(0.02)
    request.stream(lines())


# ---- certificates

def follow_until(process, count):
    """Reads so many lines that say "seen"."""
    late = threading.Timer(WAIT_SECONDS, process.kill)
    late.start()
    try:
        while count > 0:
            line = process.stdout.readline()
            if not line:
                return False
            count -= line.startswith("seen")
        return True
    finally:
        late.cancel()


def authorities_replaced(room):
    """a file of authorities that is replaced counts from the next connection on"""
    old, new = Authority(room.folder, "old"), Authority(room.folder, "new")
    known = room.folder / "ca.crt"
    known.write_bytes(old.certificate.read_bytes())
    with Server(watch, old.issue("IP:127.0.0.1")) as server:
        path = config(room.folder, server, **{"certificate-authority": str(known)})
        process = subprocess.Popen([room.build / "kube-follow", path, "/api/v1/nodes"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not follow_until(process, 5):
            return "it does not follow"
        known.write_bytes(old.certificate.read_bytes() + new.certificate.read_bytes())
    with Server(watch, new.issue("IP:127.0.0.1"), server.port) as server:
        good = follow_until(process, 100)
    process.send_signal(signal.SIGTERM)
    process.stdout.close()
    process.wait()
    return None if good else "it does not go on"


def authorities_of_the_machine(room):
    """where a kubeconfig names authorities, those of the machine do not count"""
    ours, theirs = Authority(room.folder, "ours"), Authority(room.folder, "theirs")
    known = subprocess.run(["openssl", "x509", "-noout", "-hash", "-in", theirs.certificate],
                           check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    system = room.folder / "certs"
    system.mkdir()
    for name in (f"{known}.0", "ca-certificates.crt"):
        (system / name).write_bytes(theirs.certificate.read_bytes())
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c",
              'mount --bind "$0" /etc/ssl/certs && exec "$@"', system, room.plugin]
    if subprocess.run([*inside[:-1], "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        return "SKIP mounts are not allowed here"
    with Server(nodes_only, theirs.issue("IP:127.0.0.1")) as server:
        named = config(room.folder, server, **{"certificate-authority": str(ours.certificate)})
        result = run(*inside, "node", "status", "--kubeconfig", named)
        if result.status != 1 or "certificate" not in result.err or server.seen:
            return result
        result = run(*inside, "node", "status", "--kubeconfig", config(room.folder, server))
        return None if result.status == 0 else f"the machine's own are not known: {result}"


def name_and_path(room):
    """a server behind a path, whose certificate has another name"""
    authority = Authority(room.folder, "named")
    with Server(nodes_only, authority.issue(f"DNS:{NAME}")) as server:
        trust = {"certificate-authority": str(authority.certificate)}
        plain = config(room.folder, server, "/k8s/clusters/c-1", **trust)
        result = run(room.plugin, "node", "status", "--kubeconfig", plain)
        if result.status != 1 or "certificate" not in result.err:
            return result
        result = run(room.plugin, "node", "status", "--kubeconfig", plain, "--tls-server-name",
                     NAME)
        if result.status != 0:
            return result
        return difference("/k8s/clusters/c-1/api/v1/nodes?limit=500", server.seen[-1][0])


# ---- kubectl skyhook

def whose(room):
    """who is to be impersonated is told, groups and uid included; options may come first"""
    with Server(nodes_only) as server:
        result = room.skyhook(server, "--as", "ann", "-o", "json", "--as-group=a", "node",
                              "status", "--as-group", "b", "--as-uid", "17")
        if result.status or json.loads(result.out) != []:
            return result
        headers = server.seen[-1][1]
        return difference((["ann"], ["a", "b"], ["17"], "Bearer secret"),
                          (headers.get_all("Impersonate-User"),
                           headers.get_all("Impersonate-Group"),
                           headers.get_all("Impersonate-Uid"), headers["Authorization"]))


def busy(room):
    """a server with too much to do is asked again, and not for ever"""
    refused = []

    def answer(request):
        if len(refused) < 2:
            refused.append(time.monotonic())
            request.say(429, refusal(429, "TooManyRequests", "later"), Retry_After="1")
        else:
            nodes_only(request)

    with Server(answer) as server:
        result = room.skyhook(server, "node", "status")
        if result.status or refused[1] - refused[0] < 1:
            return result
    with Server(lambda request: request.say(429, refusal(429, "TooManyRequests", "later"))) \
            as server:
        result = room.skyhook(server, "node", "status")
        if result.status != 1 or "/api/v1/nodes: later" not in result.err:
            return result
        return difference(5, len(server.seen))


def no_answer(room):
    """--request-timeout, and the --timeout of version, end what is not answered"""
    go_on = threading.Event()
    with Server(lambda request: go_on.wait(WAIT_SECONDS)) as server:
        begun = time.monotonic()
        result = room.skyhook(server, "pause", "tuning", "-y", "--request-timeout", "500ms")
        took = time.monotonic() - begun
        go_on.set()
        if result.status != 1 or "there was no answer in time" not in result.err or took > 30:
            return f"{took} s {result}"
        result = room.skyhook(server, "pause", "tuning", "--request-timeout", "soon")
        if result.status != 1 or 'found "soon"' not in result.err:
            return result
    go_on.clear()
    with Server(lambda request: go_on.wait(WAIT_SECONDS)) as server:
        begun = time.monotonic()
        result = room.skyhook(server, "version", "--timeout", "500ms", "-n", "a", "-n=b")
        took = time.monotonic() - begun
        go_on.set()
        good = "operator:\tunknown (" in result.out and "no answer in time" in result.out
        if result.status or not good or took > 30 or "/namespaces/b/" not in server.seen[0][0]:
            return f"{took} s {result} {server.seen}"
    return None


def slow_person(room):
    """--request-timeout is for answers of the server, not for those of people"""
    with Server(lambda request: request.say(200, SKYHOOK, Connection="close")) as server:
        process = subprocess.Popen(
            [room.plugin, "pause", "tuning", "--request-timeout", "3s", "--kubeconfig",
             config(room.folder, server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        while not server.seen:
            time.sleep(0.01)
        time.sleep(3.5)
        said = process.communicate("y\n", timeout=WAIT_SECONDS)[0]
        good = process.returncode == 0 and said.endswith('Skyhook "tuning" paused\n')
        return None if good else said


def nobody_there(room):
    """a cluster that is not there is told at once, also by what only writes"""
    with Server(nodes_only) as server:
        pass
    begun = time.monotonic()
    result = room.skyhook(server, "pause", "tuning", "-y")
    took = time.monotonic() - begun
    return None if result.status == 1 and took < 30 else f"{took} s {result}"


def names(room):
    """what is no name of a Skyhook is not sent"""
    with Server(nodes_only) as server:
        for word in ("", "skyhook/tuning", "tuning/status", "..", "a?b", "a b", "A", "a%2fb"):
            for words in (["pause", word, "-y"], ["reset", word, "-y"],
                          ["package", "list", "--skyhook", word]):
                result = room.skyhook(server, *words)
                if result.status != 1 or not result.err or server.seen:
                    return f"{words}: {result}"
    return None


def groups_unseen(room):
    """a group of kinds that the server does not have needs no rights; one that it has does"""
    has_fleet = []

    def answer(request):
        path = request.path.split("?")[0]
        if path == "/api/v1/nodes":
            nodes_only(request)
        elif path == SKYHOOKS:
            request.say(200, items("Skyhook", SKYHOOK))
        elif path == POLICIES:
            request.say(200, items("DeploymentPolicy"))
        elif path == "/apis/fleet.cattle.io/v1alpha1" and not has_fleet:
            request.say(404, "404 page not found")
        elif path == "/apis/fleet.cattle.io/v1alpha1":
            request.say(200, {"kind": "APIResourceList"})
        else:
            request.say(403, refusal(403, "Forbidden", "it is forbidden"))

    with Server(answer) as server:
        result = room.skyhook(server, "explain", "one", "-v", "--dry-run")
        if result.status or "tuning is paused" not in result.out:
            return result
        has_fleet.append(True)
        result = room.skyhook(server, "explain", "one")
        good = result.status == 1 and "clustergroups: it is forbidden" in result.err
        return None if good else result


def large_lists(room):
    """lists of nodes as large as real ones are, page by page"""
    state = json.dumps({f"{name}|1.0.0": {"name": name, "version": "1.0.0", "image": "x",
                                          "stage": "config", "state": "complete"}
                        for name in ["aa", *(f"gone-{i}" for i in range(19))]})

    def one(number):
        made = node(f"n{number:04}")
        made["metadata"]["annotations"] = {"skyhook.nvidia.com/nodeState_tuning": state}
        made["status"]["images"] = [{"names": ["example.test/" + "x" * 200]} for _ in range(40)]
        return made

    def answer(request):
        path, _, query = request.path.partition("?")
        begin = int(query.partition("continue=")[2] or "0")
        if path == "/api/v1/nodes":
            page = items("Node", *[one(i) for i in range(begin, min(begin + 500, 1200))])
            if begin + 500 < 1200:
                page["metadata"]["continue"] = str(begin + 500)
            request.say(200, page)
        elif path == SKYHOOKS:
            request.say(200, items("Skyhook", SKYHOOK))
        else:
            request.say(404, {})

    with Server(answer) as server:
        result = room.skyhook(server, "node", "list", "--skyhook", "tuning")
        if result.status or "Summary: 1200 nodes (1200 complete" not in result.out:
            return repr(result)[-1000:]
        for form in ("json", "yaml"):
            result = room.skyhook(server, "node", "status", "-o", form)
            if result.status or len(result.out) < 2_000_000:
                return repr(result)[-1000:]
        result = run(room.drover, "plan", "--kubeconfig", config(room.folder, server), "-o",
                     "json")
        if json.loads(result.out)["targets"] != 1200:
            return repr(result)[-1000:]
        result = room.skyhook(server, "explain", "n1199")
        return None if result.out.startswith("n1199 is done: tuning runs there") else result


def clock_of_the_server(room):
    """a plan of a cluster begins when it is by the server's clock"""
    def answer(request):
        path = request.path.split("?")[0]
        kinds = {"/api/v1/nodes": items("Node", node("one")), SKYHOOKS: items("Skyhook", SKYHOOK)}
        request.say(200 if path in kinds else 404, kinds.get(path, {}))

    with Server(answer, date="Wed, 01 Jan 2031 00:00:00 GMT") as server:
        result = run(room.drover, "plan", "--kubeconfig", config(room.folder, server), "-o", "svg")
        return None if "2031-01-01T00:00:0" in result.out else result


OLDER = {
    "metadata": {"name": "sk", "uid": "sk-1", "generation": 2},
    "spec": {"packages": {"tune": {
        "version": "1.0.0", "image": "example.test/tune", "configMap": {"a.conf": "new"},
        "interrupt": {"type": "reboot"}}}},
    "status": {"status": "in_progress", "packageList": "tune:1.0.0",
               "configUpdates": {"tune": ["a.conf"]}}}
OLDER_NODE = {
    "metadata": {"name": "one", "uid": "one", "annotations": {
        "skyhook.nvidia.com/nodeState_sk": json.dumps({"tune|1.0.0": {
            "name": "tune", "version": "1.0.0", "image": "example.test/tune", "stage": "config",
            "state": "complete"}})}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def plan_before_drover(room):
    """a plan of what Skyhook's own operator left: its changes of files had no interrupt, and those
    that it has not brought out are to come"""
    files = {}

    def answer(request):
        path = request.path.split("?")[0]
        kinds = {"/api/v1/nodes": items("Node", OLDER_NODE), SKYHOOKS: items("Skyhook", OLDER)}
        if path == "/api/v1/namespaces/skyhook/configmaps/sk-tune-1.0.0":
            request.say(*files["are"])
        else:
            request.say(200 if path in kinds else 404, kinds.get(path, {}))

    def found(text):
        return 200, {"metadata": {"name": "sk-tune-1.0.0", "ownerReferences": [{"uid": "sk-1"}]},
                     "data": {"a.conf": text}}

    with Server(answer) as server:
        for are, starts, said in ((found("new"), 0, ""), (found("old"), 1, ""),
                                ((404, {}), 0, ""), ((403, refusal(403, "Forbidden", "no")), 0,
                                                     "which files of package tune")):
            files["are"] = are
            result = run(room.drover, "plan", "--kubeconfig", config(room.folder, server), "-o",
                         "json")
            told = json.loads(result.out)["starts"]
            if result.status or told != starts or said not in result.err:
                return f"{are}: {result}"
    return None


def clock_that_goes_on(room):
    """an agent's signs of life follow the hub's clock, also when the agent's machine stood still"""
    told = []

    def answer(request):
        if request.command == "PATCH":
            told.append(json.loads(request.body)["status"]["agent"]["lastSeen"][:13])
        request.say(404, refusal(404, "NotFound", "not here"))

    def date():
        return f"Wed, 01 Jan 2031 {7 if len(told) < 2 else 8:02}:00:00 GMT"

    with Server(answer, date=date) as server:
        path = config(room.folder, server)
        process = subprocess.Popen([room.drover, "cluster-agent", "edge", "--hub-kubeconfig", path,
                                    "--kubeconfig", path, "--heartbeat", "1s"],
                                   stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + WAIT_SECONDS
        while "2031-01-01T08" not in told and time.monotonic() < end:
            time.sleep(0.05)
        process.terminate()
        said = process.communicate(timeout=WAIT_SECONDS)[1]
    good = told[1:2] == ["2031-01-01T07"] and told[-1] == "2031-01-01T08"
    return None if good else f"{told} {said}"


def logs_that_nobody_reads(room):
    """logs end when whoever read them has gone"""
    pod = {"metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {
        "skyhook.nvidia.com/package": json.dumps({"name": "aa", "stage": "apply"})}},
           "spec": {"nodeName": "one"},
           "status": {"initContainerStatuses": [{"name": "aa-apply", "state": {"running": {}}}]}}

    def chatter():
        while True:
            yield b"ready\n"
            time.sleep(0.01)

    def answer(request):
        if "/log?" in request.path:
            request.stream(chatter())
        else:
            request.say(200, items("Pod", pod, pod))

    with Server(answer) as server:
        process = subprocess.Popen(
            [room.plugin, "package", "logs", "aa", "--skyhook", "tuning", "-f", "--kubeconfig",
             config(room.folder, server)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = process.stdout.readline() + process.stdout.readline()
        process.stdout.close()
        try:
            status = process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            status = f"it goes on, {process.wait()}"
        said = process.stderr.read()
        process.stderr.close()
        if b"==> Pod: p, Container: aa-apply [running], Node: one <==\nready" not in first:
            return first
        return difference((0, b"", 1),
                          (status, said, sum("/log?" in path for path, _ in server.seen)))


def help_of_groups(room):
    """help of one command, of a word that several begin with, and of none"""
    def says(words, status, text, on="out"):
        result = run(room.plugin, *words)
        good = result.status == status and text in getattr(result, on)
        return None if good else f"{words}: {result}"

    return (says(["help", "pause"], 0, "Usage: kubectl skyhook pause")
            or says(["help", "node", "list"], 0, "Usage: kubectl skyhook node list")
            or says(["help", "dp", "reset"], 0, "kubectl skyhook deployment-policy reset")
            or says(["help", "node"], 0, "\n  node unignore")
            or says(["node", "--help"], 0, "\n  node unignore")
            or says(["node"], 1, "\n  node unignore", "err")
            or says(["node", "lst"], 1, 'did you mean "node list"?', "err")
            or says(["nothing"], 1, 'found command "nothing"', "err")
            or says(["help", "nothing"], 1, 'found command "nothing"', "err")
            or says([], 1, "Usage: kubectl skyhook COMMAND", "err")
            or says(["pause", "--confirm=maybe", "x"], 1, "allowed true, false", "err"))


CHECKS = [authorities_replaced, authorities_of_the_machine, name_and_path, whose, busy, no_answer,
          slow_person, nobody_there, names, groups_unseen, large_lists, clock_of_the_server,
          plan_before_drover, clock_that_goes_on, logs_that_nobody_reads, help_of_groups]


def main():
    tap = Tap()
    for program in programs():
        for check in CHECKS:
            with tempfile.TemporaryDirectory(prefix="drover-kube-") as folder:
                try:
                    problem = check(Room(program, folder))
                except (OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
                    problem = repr(error)
            title = f"{program.parent.name}: {check.__doc__}"
            if str(problem).startswith("SKIP "):
                tap.skip(title, problem[5:])
            else:
                tap.test(title, problem)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
