# SPDX-License-Identifier: Apache-2.0
"""The audit log of the API server: who asked for what, and what the server said.

Operators' requests are recorded with what they wrote; those of others only as writes.
"""

import collections
import json

WRITES = ("create", "update", "patch", "delete", "deletecollection")
POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [
        {"level": "Request", "userGroups": ["drover"]},
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "Metadata"},
    ],
}


def entries(path):
    """Every finished request, in the order the server wrote them. A watch counts when it begins."""
    with open(path, encoding="utf-8") as log:
        for line in log:
            if not line.endswith("\n"):
                return  # still being written
            entry = json.loads(line)
            watch = entry["verb"] == "watch"
            if entry["stage"] == ("ResponseStarted" if watch else "ResponseComplete"):
                yield entry


def resource(entry):
    reference = entry.get("objectRef", {})
    name = reference.get("resource", "-")
    sub = reference.get("subresource")
    return f"{name}/{sub}" if sub else name


def agent(entry):
    """The program's own name for itself, without version and system."""
    return entry.get("userAgent", "-").split("/")[0].split(" ")[0]


def counts(path, writes_only=True):
    """Counter of (agent, user, verb, resource, status)."""
    found = collections.Counter()
    for entry in entries(path):
        if writes_only and entry["verb"] not in WRITES:
            continue
        status = entry.get("responseStatus", {}).get("code", 0)
        user = entry["user"]["username"]
        found[(agent(entry), user, entry["verb"], resource(entry), status)] += 1
    return found


def writes_of(path, user):
    """All writes of one user."""
    return [entry for entry in entries(path)
            if entry["verb"] in WRITES and entry["user"]["username"] == user]
