#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation of a real server; answers held to openapi.json. TAP."""

import base64
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"
KINDS = {"resources": "Resource", "environments": "Environment", "deployments": "Deployment",
         "versions": "Version", "rolloutpolicies": "RolloutPolicy"}


def host(name, **labels):
    return {"apiVersion": API, "kind": "Resource", "metadata": {"name": name, "labels": labels},
            "spec": {"kind": "host", "providerRef": f"id-{name}"}}


def environment(name):
    return {"apiVersion": API, "kind": "Environment", "metadata": {"name": name},
            "spec": {"resourceSelector": f'resource.metadata["env"] == "{name}"'}}


def deployment(name, job, **more):
    return {"apiVersion": API, "kind": "Deployment",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"resourceSelector": 'resource.kind == "host"', "job": job, **more}}


def version(deployment_name, tag):
    return {"apiVersion": API, "kind": "Version", "metadata": {"name": f"{deployment_name}-{tag}"},
            "spec": {"deployment": deployment_name, "tag": tag}}


def policy(name, rules, selector="true"):
    return {"apiVersion": API, "kind": "RolloutPolicy", "metadata": {"name": name},
            "spec": {"selector": selector, "rules": rules}}


def many(*documents):
    return "\n".join(json.dumps(document) for document in documents)


SAMPLES = {"resources": host("h1", env="a"), "environments": environment("a"),
           "deployments": deployment("web", {"manual": {"instructions": "do it"}}),
           "versions": version("web", "1"),
           "rolloutpolicies": policy("slow", [{"anyApproval": {"minApprovals": 1}}],
                                     'deployment.name == "never"')}


class Checks:
    def __init__(self, tap, server):
        self.tap = tap
        self.server = server

    def test(self, name, good, answer=None):
        self.tap.test(name, None if good else repr(answer))

    def expect(self, name, status, method, path, body=None, **more):
        answer = self.server.request(method, path, body, **more)
        good = answer.status == status
        if status >= 400 and not path.startswith("/v1/"):
            good = good and set(answer.json["error"]) >= {"code", "message", "path"}
        self.test(name, good, answer)
        return answer


def documents(checks):
    """List, get, put with If-Match, delete: of each kind."""
    for plural, sample in SAMPLES.items():
        name = sample["metadata"]["name"]
        path = f"/api/v1/{plural}/{name}"
        checks.expect(f"{plural}: get what is not there", 404, "GET", path)
        made = checks.expect(f"{plural}: put makes it", 201, "PUT", path, sample)
        tag = made.headers["ETag"]
        first = made.json["metadata"]["resourceVersion"]
        checks.test(f"{plural}: the ETag is the resourceVersion", tag == f'"{first}"', made)
        same = checks.expect(f"{plural}: the same again changes nothing", 200, "PUT", path, sample)
        checks.test(f"{plural}: and keeps its version", same.headers["ETag"] == tag, same)
        changed = json.loads(json.dumps(sample))
        changed["metadata"]["annotations"] = {"note": "x"}
        checks.expect(f"{plural}: put with the right If-Match", 200, "PUT", path, changed,
                      headers={"If-Match": tag})
        checks.expect(f"{plural}: put with a stale If-Match", 412, "PUT", path, sample,
                      headers={"If-Match": tag})
        checks.expect(f"{plural}: delete with a stale If-Match", 412, "DELETE", path,
                      headers={"If-Match": tag})
        checks.expect(f"{plural}: put that must be new", 412, "PUT", path, sample,
                      headers={"If-None-Match": "*"})
        checks.expect(f"{plural}: If-Match that is none", 400, "PUT", path, sample,
                      headers={"If-Match": '"x"'})
        got = checks.expect(f"{plural}: get", 200, "GET", path)
        checks.test(f"{plural}: it is what was put",
                    got.json["metadata"]["annotations"] == {"note": "x"}, got)
        listed = checks.expect(f"{plural}: list", 200, "GET", f"/api/v1/{plural}")
        checks.test(f"{plural}: the list has it, in the same words",
                    f'[{got.body.strip()}]' in listed.body.replace("\n", ""), listed)
        checks.expect(f"{plural}: another name in the body", 422, "PUT", path + "x", sample)
        wrong = dict(sample, kind="Node")
        checks.expect(f"{plural}: another kind in the body", 422, "PUT", path, wrong)
        unknown = json.loads(json.dumps(sample))
        unknown["spec"]["frobnicate"] = 1
        refused = checks.expect(f"{plural}: an unknown field", 422, "PUT", path, unknown)
        checks.test(f"{plural}: the refusal names its path",
                    refused.json["error"]["path"].startswith("spec"), refused)
        checks.expect(f"{plural}: bad JSON", 422, "PUT", path, "{")
    for plural, sample in reversed(list(SAMPLES.items())):
        path = f"/api/v1/{plural}/{sample['metadata']['name']}"
        checks.expect(f"{plural}: delete", 200, "DELETE", path)
        checks.expect(f"{plural}: delete again", 404, "DELETE", path)


def pages(checks):
    hosts = [host(f"p{i:03d}", parity="even" if i % 2 == 0 else "odd") for i in range(25)]
    checks.expect("apply many", 200, "POST", "/api/v1/apply", many(*hosts))
    seen, after, count = [], "", 0
    while True:
        answer = checks.server.request("GET", f"/api/v1/resources?limit=10{after}")
        seen += [item["metadata"]["name"] for item in answer.json["items"]]
        count += 1
        if "continue" not in answer.json:
            break
        after = f"&continue={answer.json['continue']}"
    checks.test("pages give everything once, in order",
                seen == [h["metadata"]["name"] for h in hosts] and count == 3, seen)
    answer = checks.expect("list by labels", 200, "GET", "/api/v1/resources?selector=parity%3Dodd")
    checks.test("only those", len(answer.json["items"]) == 12, answer)
    checks.expect("labels that are none", 400, "GET", "/api/v1/resources?selector=%3D%3D")
    for limit in ("0", "1001", "x", "-1", ""):
        checks.expect(f"limit={limit}", 400, "GET", f"/api/v1/resources?limit={limit}")
    checks.expect("an unknown parameter", 400, "GET", "/api/v1/resources?frob=1")
    checks.expect("a parameter twice", 400, "GET", "/api/v1/resources?limit=1&limit=2")
    for one in hosts:
        checks.server.request("DELETE", f"/api/v1/resources/{one['metadata']['name']}")


def applies(checks):
    bad = {"apiVersion": API, "kind": "Environment", "metadata": {"name": "bad"},
           "spec": {"resourceSelector": "resource."}}
    refused = checks.expect("apply: one is wrong, none is written", 422, "POST", "/api/v1/apply",
                            many(host("n1"), bad))
    checks.test("apply: problems are named", refused.json["error"]["problems"], refused)
    checks.expect("apply: none was", 404, "GET", "/api/v1/resources/n1")
    partial = checks.expect("apply: partial", 200, "POST", "/api/v1/apply?partial=true",
                            many(host("n1"), bad))
    actions = [result["action"] for result in partial.json["results"]]
    checks.test("apply: partial writes the good ones",
        "created" in actions and "refused" in actions,
                partial)
    checks.expect("apply: it is there", 200, "GET", "/api/v1/resources/n1")
    dry = checks.expect("apply: dryRun", 200, "POST", "/api/v1/apply?dryRun=true", many(host("n2")))
    checks.test("apply: says what it would do", dry.json["results"][0]["action"] == "created", dry)
    checks.expect("apply: dryRun writes nothing", 404, "GET", "/api/v1/resources/n2")
    yaml = ("apiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata: {name: n3}\n"
            "spec: {kind: host}\n")
    checks.expect("apply: YAML", 200, "POST", "/api/v1/apply", yaml,
                  headers={"Content-Type": "application/yaml"})
    for name in ("n1", "n3"):
        checks.server.request("DELETE", f"/api/v1/resources/{name}")


def set_up(checks):
    """A small fleet with a manual, a pull, a command and a simulated deployment."""
    checks.expect("set up", 200, "POST", "/api/v1/apply", many(
        host("a1", env="a"), host("a2", env="a"), environment("a"),
        deployment("by-hand", {"manual": {"instructions": "look"}}),
        deployment("pulled", {"pull": {}}, timeoutSeconds=60),
        deployment("script", {"command": {"run": ["/bin/echo", "{{resource.name}}"]}}),
        deployment("timed", {"simulated": {"seconds": 0}}),
        policy("slots", [{"resourceConcurrency": {
            "groupSelector": "true", "limitType": "count", "limitValue": 1}}],
               'deployment.name == "none"'),
        policy("ask", [{"anyApproval": {"minApprovals": 1}}], 'deployment.name == "timed"')))


def open_job(checks, deployment_name, resource):
    def look():
        jobs = checks.server.request(
            "GET", f"/api/v1/jobs?open=true&deployment={deployment_name}&resource={resource}").json
        return jobs["items"][0] if jobs["items"] else None
    return servers.wait_for(look, 10)


def target(checks, deployment_name, resource):
    return checks.server.request("GET", f"/api/v1/targets/{deployment_name}/a/{resource}").json


def settled(checks, deployment_name, resource, state="done"):
    return servers.wait_for(
        lambda: target(checks, deployment_name, resource)["state"] == state, 20)


def check_publish_again(checks):
    """What is not said of a version that is there stays: above all what it needs."""
    path, document = "/api/v1/deployments/apart/versions", "/api/v1/versions/apart-1"
    checks.expect("a deployment for nobody", 201, "PUT", "/api/v1/deployments/apart", {
        "apiVersion": "drover.dev/v1alpha1", "kind": "Deployment", "metadata": {"name": "apart"},
        "spec": {"resourceSelector": "false", "job": {"manual": {}}}})
    needs = [{"deployment": "by-hand", "versionSelector": 'version.tag == "1"'}]
    checks.expect("publish with all there is", 201, "POST", path, {
        "tag": "1", "config": {"a": [1]}, "labels": {"l": "m", "n": ""}, "dependsOn": needs})
    before = checks.expect("the version", 200, "GET", document).json
    again = checks.expect("publish it by its tag alone", 200, "POST", path, {"tag": "1"})
    checks.test("which changes nothing", again.json["action"] == "unchanged" and before == checks.
                expect("the version again", 200, "GET", document).json, again)
    checks.expect("publish it as rejected, with another config", 200, "POST", path,
                  {"tag": "1", "config": {}, "status": "rejected"})
    spec = checks.expect("the version then", 200, "GET", document).json["spec"]
    checks.test("and the rest stays", spec == {"deployment": "apart", "tag": "1", "config": {},
                                               "status": "rejected", "dependsOn": needs}, spec)
    checks.expect("it goes", 200, "DELETE", document)
    checks.expect("its deployment, too", 200, "DELETE", "/api/v1/deployments/apart")


def rollouts(checks):
    made = checks.expect("publish", 201, "POST", "/api/v1/deployments/by-hand/versions",
        {"tag": "1"})
    checks.test("publish names it", made.json["name"] == "by-hand-1", made)
    checks.expect("publish the same again", 200, "POST", "/api/v1/deployments/by-hand/versions",
                  {"tag": "1"})
    check_publish_again(checks)
    checks.expect("publish for nobody", 404, "POST", "/api/v1/deployments/nope/versions",
                  {"tag": "1"})
    checks.expect("publish without a tag", 400, "POST", "/api/v1/deployments/by-hand/versions", {})
    checks.expect("publish with an unknown field", 400, "POST",
                  "/api/v1/deployments/by-hand/versions", {"tag": "2", "frob": 1})
    job = open_job(checks, "by-hand", "a1")
    checks.expect("a job", 200, "GET", f"/api/v1/jobs/{job['number']}")
    checks.expect("no such job", 404, "GET", "/api/v1/jobs/999999")
    checks.expect("no number", 404, "GET", "/api/v1/jobs/x")
    waiting = target(checks, "by-hand", "a1")
    checks.test("in flight, and why", waiting["state"] == "inFlight" and waiting["reasons"],
        waiting)
    checks.expect("complete by hand", 200, "POST", f"/api/v1/jobs/{job['number']}/complete",
                  {"outcome": "succeeded"})
    again = checks.expect("complete again", 200, "POST", f"/api/v1/jobs/{job['number']}/complete",
                          {"outcome": "failed"})
    checks.test("is ignored", again.json["ignored"], again)
    checks.test("its target is done", settled(checks, "by-hand", "a1"),
                target(checks, "by-hand", "a1"))
    other = open_job(checks, "by-hand", "a2")
    checks.expect("cancel", 200, "POST", f"/api/v1/jobs/{other['number']}/cancel")
    checks.expect("cancel what has ended", 409, "POST", f"/api/v1/jobs/{other['number']}/cancel")
    checks.test("cancelled is failed", settled(checks, "by-hand", "a2", "failed"),
                target(checks, "by-hand", "a2"))
    checks.expect("no such target", 404, "GET", "/api/v1/targets/by-hand/a/zzz")
    listed = checks.expect("targets of a state", 200, "GET", "/api/v1/targets?state=failed&limit=5")
    checks.test("only those", [t["target"] for t in listed.json["items"]] == ["a2"], listed)
    checks.expect("groups", 200, "GET", "/api/v1/groups")
    rollouts = checks.expect("rollouts", 200, "GET", "/api/v1/rollouts").json["items"]
    names = [one["deployment"] for one in rollouts]
    checks.test("by name", names and names == sorted(names), names)
    nobody = checks.expect("a rollout of nobody", 200, "GET",
                           "/api/v1/rollouts?deployment=nope").json
    checks.test("has nothing", nobody == {"items": []}, nobody)


def commands(checks):
    checks.expect("publish a script", 201, "POST", "/api/v1/deployments/script/versions",
        {"tag": "1"})
    checks.test("the script runs", settled(checks, "script", "a1"), target(checks, "script", "a1"))
    jobs = checks.server.request("GET", "/api/v1/jobs?deployment=script&resource=a1").json["items"]
    number = jobs[0]["number"]
    log = checks.expect("its log", 200, "GET", f"/api/v1/jobs/{number}/log")
    checks.test("says what it wrote", "a1\n" in log.body, log)
    at = log.body.index("a1\n")
    part = checks.expect("a part of it", 206, "GET", f"/api/v1/jobs/{number}/log",
                         headers={"Range": f"bytes={at}-{at + 1}"})
    checks.test("is that part", part.body == "a1", part)
    checks.expect("a part that is not there", 416, "GET", f"/api/v1/jobs/{number}/log",
                  headers={"Range": "bytes=99999-"})
    follow = checks.expect("followed to the end", 200, "GET",
        f"/api/v1/jobs/{number}/log?follow=true")
    checks.test("gives the same", follow.body == log.body, follow)


def actions(checks):
    checks.expect("publish what needs an approval", 201, "POST",
                  "/api/v1/deployments/timed/versions", {"tag": "1"})
    waiting = target(checks, "timed", "a1")
    checks.test("it waits for an approval", waiting["reasons"][0]["rule"] == "approval", waiting)
    for act, body in (("pause", {"deployment": "timed"}), ("resume", {"deployment": "timed"}),
                      ("halt", {}), ("resume", {}), ("freeze", {"name": "f", "reason": "r"}),
                      ("thaw", {"name": "f"}), ("approve", {"version": "timed-1"}),
                      ("reject", {"version": "timed-1"}),
                      ("bypass", {"rule": "ask/anyApproval/0", "version": "timed-1",
                                  "until": "2099-01-01T00:00:00Z"}),
                      ("retry", {"resource": "a2"}), ("skip", {"resource": "a2",
                      "deployment": "by-hand"}),
                      ("rollback", {"resource": "a1", "deployment": "by-hand"})):
        checks.expect(f"act: {act} {body}", 200, "POST", f"/api/v1/actions/{act}", body)
    checks.expect("freeze until", 200, "POST", "/api/v1/actions/freeze",
                  {"name": "g", "until": "2099-01-01T00:00:00Z", "selector": "false"})
    frozen = checks.expect("freezes", 200, "GET", "/api/v1/freezes").json["items"]
    checks.test("with who, why and until when",
                [(f["name"], f["selector"], f["who"], f["until"]) for f in frozen] ==
                [("g", "false", "admin", "2099-01-01T00:00:00Z")], frozen)
    checks.expect("thaw all", 200, "POST", "/api/v1/actions/thaw", {})
    checks.test("bypassed, it runs", settled(checks, "timed", "a1"), target(checks, "timed", "a1"))
    for act, body, status in (("pause", {"deployment": "nope"}, 422), ("approve", {}, 422),
                              ("approve", {"version": "nope"}, 422), ("bypass", {"rule": "x"}, 422),
                              ("freeze", {"selector": "resource."}, 422),
                              ("thaw", {"name": "nope"}, 422),
                              ("freeze", {"until": "2001-01-01T00:00:00Z"}, 422),
                              ("freeze", {"until": "soon"}, 400), ("pause", {"frob": 1}, 400),
                              ("pause", [1], 400), ("pause", "{", 400), ("frob", {}, 404)):
        checks.expect(f"act: {act} {body} is refused", status, "POST", f"/api/v1/actions/{act}",
            body)


def workers(checks):
    server = checks.server
    made = checks.expect("a worker's token", 201, "POST", "/api/v1/tokens",
                         {"name": "w1", "role": "worker", "selector": "env=a"})
    token = made.json["token"]
    foreign = server.request("POST", "/api/v1/tokens", {"name": "w2", "role": "worker",
                                                        "selector": "env=b"}).json["token"]
    nothing = checks.expect("nothing to claim", 200, "POST", "/api/v1/jobs/claim",
                            {"resource": "a1"}, token=token)
    checks.test("is said so", nothing.json["found"] is False, nothing)
    server.request("POST", "/api/v1/deployments/pulled/versions", {"tag": "1"})
    open_job(checks, "pulled", "a1")
    checks.expect("another's resource", 403, "POST", "/api/v1/jobs/claim", {"resource": "a1"},
                  token=foreign)
    checks.expect("no such resource", 404, "POST", "/api/v1/jobs/claim", {"resource": "zz"},
                  token=token)
    claim = checks.expect("claim", 200, "POST", "/api/v1/jobs/claim",
                          {"resource": "a1", "leaseSeconds": 30}, token=token)
    number, fencing = claim.json["job"]["number"], claim.json["fencing"]
    second = checks.expect("a second claim", 200, "POST", "/api/v1/jobs/claim", {"resource": "a1"},
                           token=token)
    checks.test("finds nothing", second.json["found"] is False, second)
    path = f"/api/v1/jobs/{number}"
    beat = checks.expect("heartbeat", 200, "POST", f"{path}/heartbeat", {"fencing": fencing},
                         token=token)
    checks.test("holds it", beat.json["held"] and not beat.json["cancel"], beat)
    late = checks.expect("heartbeat of an old claim", 200, "POST", f"{path}/heartbeat",
                         {"fencing": fencing - 1}, token=token)
    checks.test("does not", late.json["held"] is False, late)
    checks.expect("log upload", 200, "POST", f"{path}/log?fencing={fencing}", "hello\n",
        token=token)
    checks.expect("log upload of an old claim", 409, "POST", f"{path}/log?fencing={fencing - 1}",
                  "no\n", token=token)
    checks.expect("a foreign worker's report", 403, "POST", f"{path}/complete",
                  {"fencing": fencing, "outcome": "failed"}, token=foreign)
    old = checks.expect("report of an old claim", 200, "POST", f"{path}/complete",
                        {"fencing": fencing - 1, "outcome": "failed"}, token=token)
    checks.test("is ignored", old.json["ignored"], old)
    future = checks.expect("report of a claim to come", 200, "POST", f"{path}/complete",
                           {"fencing": fencing + 1000, "outcome": "failed"}, token=token)
    checks.test("is ignored, too", future.json["ignored"], future)
    checks.expect("report without a claim", 422, "POST", f"{path}/complete",
                  {"outcome": "succeeded"}, token=token)
    good = checks.expect("report", 200, "POST", f"{path}/complete",
                         {"fencing": fencing, "outcome": "succeeded"}, token=token)
    checks.test("counts", good.json["ignored"] is False, good)
    log = checks.expect("its log", 200, "GET", f"{path}/log")
    checks.test("is what was sent", log.body == "hello\n", log)
    checks.expect("a worker lists nothing", 403, "GET", "/api/v1/resources", token=token)
    checks.expect("and acts on nothing", 403, "POST", "/api/v1/actions/pause",
                  {"deployment": "web"}, token=token)


def tokens(checks):
    server = checks.server
    viewer = server.request("POST", "/api/v1/tokens", {"name": "v", "role": "viewer"}).json["token"]
    operator = server.request("POST", "/api/v1/tokens",
                              {"name": "o", "role": "operator"}).json["token"]
    listed = checks.expect("tokens are listed", 200, "GET", "/api/v1/tokens")
    checks.test("without secrets", viewer not in listed.body and "token\"" not in listed.body,
        listed)
    checks.expect("the same name again", 409, "POST", "/api/v1/tokens",
                  {"name": "v", "role": "viewer"})
    for body in ({"name": "x", "role": "king"}, {"role": "viewer"}, {"name": "", "role": "viewer"}):
        checks.expect(f"a token {body}", 400, "POST", "/api/v1/tokens", body)
    checks.expect("a selector of no worker", 422, "POST", "/api/v1/tokens",
                  {"name": "y", "role": "viewer", "selector": "a=b"})
    checks.expect("a name with quotes", 422, "POST", "/api/v1/tokens",
                  {"name": 'a"b', "role": "viewer"})
    # Every operation: who may.
    levels = {"none": 0, "viewer": 1, "operator": 2, "admin": 3}
    for path, item in server.openapi["paths"].items():
        for method, operation in item.items():
            level = levels[operation["x-drover-role"]]
            real = path.replace("{number}", "1").replace("{", "").replace("}", "")
            if operation["operationId"] == "events" or level == 0:
                continue
            body = "{}" if method == "post" else None
            nobody = server.request(method.upper(), real, body, token=None)
            wrong = server.request(method.upper(), real, body, token="x" * 43)
            checks.test(f"{operation['operationId']}: no token, a wrong one",
                        nobody.status == 401 and wrong.status == 401, (nobody, wrong))
            for token, own in ((viewer, 1), (operator, 2)):
                if own < level:
                    answer = server.request(method.upper(), real, body, token=token)
                    checks.test(f"{operation['operationId']}: a role too low",
                                answer.status == 403 and answer.code == "forbidden", answer)
    checks.expect("revoke", 200, "DELETE", "/api/v1/tokens/v")
    checks.expect("a revoked token", 401, "GET", "/api/v1/info", token=viewer)
    checks.expect("revoke again", 404, "DELETE", "/api/v1/tokens/v")
    journal = server.request("GET", "/api/v1/journal?limit=1000").body
    checks.test("the journal says who made and revoked it",
                '"tokenCreated"' in journal and '"tokenRevoked"' in journal
                and '"who":"admin"' in journal, journal[-500:])


def links(checks):
    link = checks.expect("a link", 201, "POST", "/api/v1/links")
    code = link.json["path"].split("=")[1]
    checks.expect("a code is no token", 401, "GET", "/api/v1/info", token=code)
    session = checks.expect("a code opens once", 200, "POST", "/api/v1/login", {"code": code},
                            token=None)
    checks.expect("and not twice", 401, "POST", "/api/v1/login", {"code": code}, token=None)
    checks.expect("its token works", 200, "GET", "/api/v1/info", token=session.json["token"])


def fleet_lock(checks):
    server = checks.server
    boxes = [host("f1"), host("f2")]
    for box in boxes:
        box["spec"]["kind"] = "box"
    server.request("POST", "/api/v1/apply", many(*boxes, policy("boxes", [{"resourceConcurrency": {
        "groupSelector": 'resource.kind == "box"', "limitType": "count", "limitValue": 1}}])))
    lock = {"fleet-lock-protocol": "true"}

    def ask(path, name, **more):
        return server.request("POST", f"/v1/{path}", {"client_params": {"id": name, "group": "g"}},
                              headers=more.get("headers", lock))
    first = ask("pre-reboot", "f1")
    checks.test("a host takes the slot", first.status == 200, first)
    checks.test("and again: it has it", ask("pre-reboot", "f1").status == 200)
    second = ask("pre-reboot", "id-f2")
    checks.test("another one must wait", second.status == 409 and second.json["kind"], second)
    checks.test("the slot is given back", ask("steady-state", "f1").status == 200)
    third = ask("pre-reboot", "id-f2")
    checks.test("then the other gets it, by its providerRef", third.status == 200, third)
    ask("steady-state", "f2")
    unknown = ask("pre-reboot", "stranger")
    checks.test("strangers are refused", unknown.status == 404 and unknown.json["value"], unknown)
    bare = ask("pre-reboot", "f1", headers={})
    checks.test("the header is needed", bare.status == 400, bare)
    basic = base64.b64encode(f"host:{server.token}".encode()).decode()
    answer = server.request("POST", "/v1/pre-reboot", {"client_params": {"id": "f1", "group": "g"}},
                            token=None, headers=dict(lock, Authorization=f"Basic {basic}"))
    checks.test("the token as a password", answer.status == 200, answer)
    ask("steady-state", "f1")


def windows(checks):
    """A day of two, at ten in the evening, an hour long."""
    nightly = policy("nightly", [{"deploymentWindow": {
        "rrule": "FREQ=DAILY;BYHOUR=22;BYMINUTE=0;BYSECOND=0", "durationMinutes": 60}}],
                     'deployment.name == "script"')
    checks.expect("a window", 200, "POST", "/api/v1/apply", many(nightly))
    days = "from=1767225600&to=1767398400"  # the first two of 2026
    path = f"/api/v1/windows?deployment=script&{days}"
    found = checks.expect("windows", 200, "GET", path).json["items"]
    checks.test("are open each night", [(one["policy"], one["open"]) for one in found] == [
        ("nightly", [[f"2026-01-0{day}T22:00:00Z", f"2026-01-0{day}T23:00:00Z"]
                     for day in (1, 2)])], found)
    other = checks.expect("windows of another", 200, "GET",
                          f"/api/v1/windows?deployment=timed&{days}").json["items"]
    checks.test("are none", other == [], other)
    checks.expect("windows of ten years", 422, "GET", "/api/v1/windows?from=0&to=315360000")
    checks.expect("no window more", 200, "DELETE", "/api/v1/rolloutpolicies/nightly")


def paused(checks):
    def look():
        fleet = checks.server.request("GET", "/api/v1/fleet").json
        return [fleet["changes"][at] for at in fleet["paused"]]
    for act, want in (("pause", ["script"]), ("resume", []), ("halt", ["script"]), ("resume", [])):
        checks.expect(act, 200, "POST", f"/api/v1/actions/{act}", {"deployment": "script"})
        found = look()
        checks.test(f"after {act} it is so", found == want, found)


def plans(checks):
    plan = checks.expect("a plan", 200, "GET", "/api/v1/plan?until=1h")
    checks.test("assumes a live fleet", "live fleet" in plan.json["assumes"], plan)
    checks.expect("a plan of what would be", 200, "POST", "/api/v1/plan", {"duration": "1s"})
    stricter = many(policy("stricter", [{"retry": {"maxRetries": 1, "backoffSeconds": 1}}]))
    then = checks.expect("a plan with a document more", 200, "POST", "/api/v1/plan",
                         {"documents": stricter, "until": "1h"})
    checks.test("is a plan", then.json["outcome"] in ("complete", "stalled", "stopped", "horizon"),
                then)
    checks.expect("which is not there for that", 404, "GET", "/api/v1/rolloutpolicies/stricter")
    wrong = checks.expect("a document that is wrong", 422, "POST", "/api/v1/plan",
                          {"documents": "kind: RolloutPolicy"})
    checks.test("has its problems told", len(wrong.json["error"]["problems"]) > 0, wrong)
    checks.expect("the fleet of no policy", 404, "GET", "/api/v1/fleet?policy=none")
    fleet = checks.expect("the fleet", 200, "GET", "/api/v1/fleet").json
    checks.test("seven numbers for each release target", len(fleet["cells"]) % 7 == 0
                and len(fleet["cells"]) > 0 and len(fleet["states"]) == 6, fleet)
    windows(checks)
    paused(checks)
    state = checks.expect("the state", 200, "GET", "/api/v1/state")
    checks.test("begins with what it has", "documents" in json.loads(state.body.split("\n")[0]),
                state.body[:200])


def system(checks):
    checks.expect("health", 200, "GET", "/healthz", token=None)
    checks.expect("ready", 200, "GET", "/readyz", token=None)
    checks.expect("openapi.json", 200, "GET", "/api/v1/openapi.json")
    metrics = checks.expect("metrics", 200, "GET", "/metrics")
    names = [line.split("{")[0].split(" ")[0] for line in metrics.body.splitlines()
             if not line.startswith("#")]
    helped = {line.split(" ")[2] for line in metrics.body.splitlines() if line.startswith("# HELP")}
    typed = {line.split(" ")[2] for line in metrics.body.splitlines() if line.startswith("# TYPE")}
    checks.test("metrics have help and type", names and set(names) <= helped and helped == typed,
                metrics)
    journal = checks.expect("journal", 200, "GET", "/api/v1/journal?limit=5")
    checks.test("in order, from 1", [e["sequence"] for e in journal.json["items"]] == [1, 2, 3, 4,
        5],
                journal)
    backup = checks.server.request("GET", "/api/v1/backup")
    checks.test("backup is an SQLite file", backup.status == 200
                and backup.body.startswith("SQLite format 3"), backup.status)
    checks.test("and leaves nothing behind",
                not [p for p in checks.server.folder.iterdir() if "backup" in p.name])
    for method in ("DELETE", "PATCH", "PUT", "OPTIONS"):
        answer = checks.expect(f"{method} on a list", 405, method, "/api/v1/resources")
        checks.test("says what is allowed", answer.headers.get("Allow") == "GET, HEAD", answer)
    head = checks.server.request("HEAD", "/api/v1/resources", check=False)
    checks.test("HEAD", head.status == 200 and head.body == "", head)


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with servers.Server(program) as server:
            checks = Checks(tap, server)
            for part in (documents, pages, applies, set_up, rollouts, commands, actions, workers,
                         tokens, links, fleet_lock, plans, system):
                part(checks)
            with server.connect() as stream:
                stream.sendall(f"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n"
                               f"Authorization: Bearer {server.token}\r\n\r\n".encode())
                time.sleep(0.3)
                if b"text/event-stream" in stream.recv(65536):
                    server.called.add("events")
            every = {operation["operationId"] for item in server.openapi["paths"].values()
                     for operation in item.values()}
            tap.test("every operation was called with success",
                     ", ".join(sorted(every - server.called)))
            tap.test("no answer contradicts openapi.json", "\n".join(server.wrong))
            tap.test("it stops in order", None if server.stop() == 0 else "exit status")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
