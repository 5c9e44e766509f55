# SPDX-License-Identifier: Apache-2.0
"""A container registry on loopback with the images that a test makes, so that pulls are real.

    with registry.Registry() as images:
        reference = images.add("package", "1.2.3", {"/skyhook-package/config.json": b"{}"})

Every image has busybox's shell. Only pulling is served; a name that was not added is not found.
"""

import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading

import binaries

APPLETS = ["sh", "cat", "cp", "echo", "false", "ls", "mkdir", "rm", "sleep", "test", "true", "yes",
           "tail", "head", "dd", "touch", "date", "env", "id", "kill", "ps"]
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(files):
    """A tar of the files (path: bytes, all executable) on top of busybox."""
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as tar:
        shell = (binaries.tools() / "bin" / "busybox").read_bytes()
        for path, data in {"/bin/busybox": shell, **files}.items():
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size, member.mode = len(data), 0o755
            tar.addfile(member, io.BytesIO(data))
        for name in APPLETS:
            member = tarfile.TarInfo(f"bin/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(member)
        for name in ("tmp", "root", "proc", "sys", "dev"):
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(member)
    return found.getvalue()


class Registry:
    def __init__(self):
        self.blobs = {}
        self.tags = {}
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # pylint: disable=invalid-name
                owner.answer(self, body=True)

            def do_HEAD(self):  # pylint: disable=invalid-name
                owner.answer(self, body=False)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def keep(self, data, kind):
        self.blobs[digest(data)] = (data, kind)
        return {"mediaType": kind, "size": len(data), "digest": digest(data)}

    def add(self, name, tag, files=None, entrypoint=("/bin/sh",)):
        """Returns the image's reference. files: path to bytes."""
        tar = layer(files or {})
        config = {"architecture": "amd64", "os": "linux",
                  "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/bin"]},
                  "rootfs": {"type": "layers", "diff_ids": [digest(tar)]}}
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": self.keep(json.dumps(config).encode(), CONFIG),
            "layers": [self.keep(gzip.compress(tar, 1), LAYER)]}).encode()
        self.tags[f"{name}/manifests/{tag}"] = self.keep(manifest, MANIFEST)["digest"]
        return f"{self.host}/{name}:{tag}"

    def answer(self, request, body):
        path = request.path.removeprefix("/v2/")
        wanted = self.tags.get(path, path.rpartition("/")[2])
        data, kind = self.blobs.get(wanted, (None, None))
        if not path:
            data, kind = b"{}", "application/json"
        status = 200 if data is not None else 404
        data = data if status == 200 else b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}'
        request.send_response(status)
        request.send_header("Content-Type", kind or "application/json")
        request.send_header("Content-Length", str(len(data)))
        if status == 200 and path:
            request.send_header("Docker-Content-Digest", wanted)
        request.end_headers()
        if body:
            request.wfile.write(data)
