# SPDX-License-Identifier: Apache-2.0
"""A registry that wants a password: contents of Bundles as Fleet keeps them in an OCI registry, and
a repository of charts."""

import base64
import hashlib
import http.server
import io
import json
import tarfile
import threading

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
USER, PASSWORD = "agent", "open sesame"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def packed(name, files):
    """A chart."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


class Registry:
    def __init__(self):
        self.files = {}  # path -> (type, data)
        self.refused = 0
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                if self.headers.get("Authorization") != wanted:
                    registry.refused += 1
                    self.answer(401, "text/plain", b"no")
                elif self.path in registry.files:
                    self.answer(200, *registry.files[self.path])
                else:
                    self.answer(404, "text/plain", b"no such thing")

            do_HEAD = do_GET

            def answer(self, status, kind, data):
                self.send_response(status)
                if status == 401:
                    self.send_header("WWW-Authenticate", 'Basic realm="registry"')
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Docker-Content-Digest", digest(data))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.at = f"127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def put_contents(self, resources):
        """What `fleet apply` would push; returns the Bundle's contentsId."""
        data = json.dumps({"resources": resources}).encode() + b"\n"
        name = ("s-" + hashlib.sha256(data).hexdigest())[:63]
        nothing = b"{}"
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/fleet.manifest",
            "config": {"mediaType": "application/vnd.oci.empty.v1+json",
                       "digest": digest(nothing), "size": len(nothing)},
            "layers": [{"mediaType": "application/fleet.file", "digest": digest(data),
                        "size": len(data), "annotations": {"id": name}}]}).encode()
        for tag in ("latest", digest(manifest)):
            self.files[f"/v2/fleet/{name}/manifests/{tag}"] = (MANIFEST, manifest)
        for blob in (nothing, data):
            self.files[f"/v2/fleet/{name}/blobs/{digest(blob)}"] = (
                "application/octet-stream", blob)
        return name

    def put_chart(self, name, version, files):
        """Returns the URL of the repository."""
        file = f"{name}-{version}.tgz"
        index = {"apiVersion": "v1", "entries": {name: [
            {"apiVersion": "v2", "name": name, "version": version, "urls": [file]}]}}
        self.files["/charts/index.yaml"] = ("application/yaml", json.dumps(index).encode())
        self.files[f"/charts/{file}"] = ("application/gzip", packed(name, files))
        return f"http://{self.at}/charts"
