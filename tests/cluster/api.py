# SPDX-License-Identifier: Apache-2.0
"""A small Kubernetes client for tests: JSON over one kept-alive connection for each thread.

It never retries and never caches: a test sees what the server said.
"""

import http.client
import json
import os
import socket
import ssl
import threading
import time
import urllib.parse

GROUPS = {  # where each kind of resource that tests use lives
    "nodes": "/api/v1", "pods": "/api/v1", "configmaps": "/api/v1", "namespaces": "/api/v1",
    "events": "/api/v1", "serviceaccounts": "/api/v1", "secrets": "/api/v1",
    "jobs": "/apis/batch/v1", "deployments": "/apis/apps/v1", "daemonsets": "/apis/apps/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "mutatingadmissionpolicies": "/apis/admissionregistration.k8s.io/v1",
    "mutatingadmissionpolicybindings": "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies": "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings": "/apis/admissionregistration.k8s.io/v1",
    "skyhooks": "/apis/skyhook.nvidia.com/v1alpha1",
    "deploymentpolicies": "/apis/skyhook.nvidia.com/v1alpha1",
}
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
TIMEOUT_SECONDS = 60


class ApiError(Exception):
    """A reply of 400 or above; body is the server's Status object, or text."""

    def __init__(self, method, path, status, body):
        message = body.get("message", "") if isinstance(body, dict) else str(body)[:500]
        super().__init__(f"{method} {path}: {status}: {message}")
        self.status = status
        self.body = body


class Api:
    """One user's view of one API server."""

    def __init__(self, port, ca_file, token, agent="drover-test"):
        self.port = port
        self.headers = {"Authorization": f"Bearer {token}", "User-Agent": agent,
                        "Accept": "application/json"}
        self.tls = ssl.create_default_context(cafile=str(ca_file))
        self.here = threading.local()

    def connect(self, timeout=TIMEOUT_SECONDS):
        link = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls,
                                           timeout=timeout)
        link.connect()
        link.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def drop(self):
        """Forgets this thread's connection."""
        link = getattr(self.here, "link", None)
        if link:
            link.close()
        self.here.link = None

    def raw(self, method, path, body=None, content_type="application/json"):
        """Status and bytes of the reply. What only reads is asked again where the server has
        closed a connection that was kept."""
        kept = getattr(self.here, "link", None)
        if kept and method == "GET":
            try:
                return self.once(method, path, body, content_type)
            except http.client.RemoteDisconnected:
                pass
        return self.once(method, path, body, content_type)

    def once(self, method, path, body, content_type):
        link = getattr(self.here, "link", None)
        if link is None:
            link = self.here.link = self.connect()
        data = None if body is None else json.dumps(body).encode()
        headers = dict(self.headers)
        if data is not None:
            headers["Content-Type"] = content_type
        try:
            link.request(method, path, body=data, headers=headers)
            reply = link.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            self.drop()
            raise

    def ask(self, method, path, body=None, content_type="application/json"):
        status, data = self.raw(method, path, body, content_type)
        try:
            found = json.loads(data)
        except ValueError:
            found = data.decode("utf-8", "replace")
        if status >= 400:
            raise ApiError(method, path, status, found)
        return found

    @staticmethod
    def path(resource, name=None, namespace=None, sub=None, **query):
        """The path of a resource ("pods") or of one object of it; `query` is added to it."""
        parts = [GROUPS[resource]]
        if namespace and resource != "namespaces":
            parts += ["namespaces", namespace]
        parts.append(resource)
        parts += [part for part in (name, sub) if part]
        return "/".join(parts) + ("?" + urllib.parse.urlencode(query) if query else "")

    def get(self, resource, name, namespace=None):
        return self.ask("GET", self.path(resource, name, namespace))

    def find(self, resource, name, namespace=None):
        """None when there is no such object."""
        try:
            return self.get(resource, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, resource, namespace=None, **query):
        return self.ask("GET", self.path(resource, None, namespace, **query))["items"]

    def create(self, resource, thing, namespace=None):
        return self.ask("POST", self.path(resource, None, namespace), thing)

    def patch(self, resource, name, change, namespace=None, sub=None, how="merge"):
        # pylint: disable=too-many-arguments
        return self.ask("PATCH", self.path(resource, name, namespace, sub), change, PATCHES[how])

    def delete(self, resource, name, namespace=None, options=None):
        return self.ask("DELETE", self.path(resource, name, namespace),
                        options or {"propagationPolicy": "Background"})

    def evict(self, name, namespace):
        body = {"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"name": name, "namespace": namespace}}
        return self.ask("POST", self.path("pods", name, namespace, "eviction"), body)

    def watch(self, resource, namespace=None, timeout=TIMEOUT_SECONDS, **query):
        """Yields (type, object) on a connection of its own until the server or the time ends it."""
        link = self.connect(timeout)
        try:
            link.request("GET", self.path(resource, None, namespace, watch="true", **query),
                         headers=self.headers)
            reply = link.getresponse()
            if reply.status >= 400:
                raise ApiError("WATCH", resource, reply.status, reply.read().decode())
            for line in reply:
                event = json.loads(line)
                yield event["type"], event["object"]
        except socket.timeout:
            return
        finally:
            link.close()


def wait_until(what, ready, seconds=30):
    """Asks until the answer is true and returns it. An ApiError counts as not yet."""
    end = time.monotonic() + seconds * float(os.environ.get("DROVER_TEST_PATIENCE", "1"))
    last = None
    while True:
        try:
            found = ready()
            if found:
                return found
            last = found
        except (ApiError, OSError, http.client.HTTPException) as error:
            last = error
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds} s still waiting until {what}: {last}")
        time.sleep(0.05)
