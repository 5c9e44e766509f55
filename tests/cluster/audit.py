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


def stored(found):
    """(number in the log, entry, object) of every write that took effect, in the server's order.
    Who asked for a row of a table was not told the object: it is made of what it was before and
    what was sent."""
    answers = {}
    for number, entry in enumerate(found):
        answer = entry.get("responseObject") or {}
        version = answer.get("metadata", {}).get("resourceVersion")
        if entry["verb"] not in WRITES or entry["responseStatus"].get("code", 0) >= 300:
            continue
        whole = answer.get("kind") != "Table"
        if version and (int(version) not in answers or whole):
            answers.setdefault(int(version), []).insert(0 if whole else 1, (number, entry, whole))
    known = {}
    for version in sorted(answers):
        number, entry, whole = answers[version][0]
        reference = entry["objectRef"]
        key = reference["resource"], reference.get("namespace"), name_of(entry)
        thing = entry["responseObject"] if whole else changed(known.get(key), entry, version)
        known[key] = thing
        yield number, entry, thing


def name_of(entry):
    """A create's path does not name what it makes."""
    name = entry["objectRef"].get("name")
    return name or (entry.get("requestObject") or entry["responseObject"])["metadata"]["name"]


def changed(before, entry, version):
    sent = entry["requestObject"]
    if entry["verb"] == "create":
        thing = merged({}, sent)
    elif isinstance(sent, list):
        thing = patched(merged({}, before), sent)
    else:
        thing = merged(before, sent)
    thing["metadata"]["resourceVersion"] = str(version)
    return thing


def merged(before, patch):
    """RFC 7386. Nothing of what was before is changed."""
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def patched(thing, operations):
    """What RFC 6902 says, as far as members of objects are put in place."""
    for one in operations:
        if one["op"] == "test":
            continue
        *path, last = one["path"].split("/")[1:]
        assert one["op"] in ("add", "replace"), one
        parent = thing
        for step in path:
            parent[step] = dict(parent[step])
            parent = parent[step]
        parent[last] = one["value"]
    return thing
