#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FleetLock: hosts and jobs share slots, strangers join or are refused, restarts change nothing.
TAP."""

import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"
LABEL = "drover.dev/fleetlock-group"


def document(kind, name, spec, labels=None):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": labels or {}},
            "spec": spec}


FLEET = [
    document("Resource", "a", {"kind": "host"}, {"pool": "web"}),
    document("Resource", "b", {"kind": "host"}, {"pool": "web"}),
    document("Environment", "prod", {"resourceSelector": '"pool" in resource.metadata'}),
    document("Deployment", "app", {"resourceSelector": "true", "job": {"manual": {
        "instructions": "wait"}}}),
    document("RolloutPolicy", "one", {"rules": [{"id": "one-at-a-time", "resourceConcurrency": {
        "groupSelector": f'"pool" in resource.metadata || "{LABEL}" in resource.metadata',
        "limitType": "count", "limitValue": 1}}]}),
]


class Checks:
    def __init__(self, tap, server):
        self.tap = tap
        self.server = server

    def ask(self, path, name, group="web", token=""):
        return self.server.request("POST", f"/v1/{path}",
                                   {"client_params": {"id": name, "group": group}}, token=token,
                                   headers={"fleet-lock-protocol": "true"})

    def expect(self, what, status, answer):
        self.tap.test(what, None if answer.status == status else repr(answer))
        return answer

    def state(self, name):
        return self.server.request("GET", f"/api/v1/targets/app/prod/{name}").json


def story(checks):
    server, tap = checks.server, checks.tap
    server.request("POST", "/api/v1/apply", {"apiVersion": "v1", "kind": "List", "items": FLEET})
    checks.expect("a host takes the slot", 200, checks.ask("pre-reboot", "a"))
    refused = checks.expect("another waits", 409, checks.ask("pre-reboot", "b"))
    tap.test("and is told who has it", None if "a has them" in refused.json["value"] else refused)
    server.stop(signal.SIGKILL)
    server.start()
    checks.expect("after a restart too", 409, checks.ask("pre-reboot", "b"))
    checks.expect("who has the slot may ask again", 200, checks.ask("pre-reboot", "a"))
    server.request("POST", "/api/v1/deployments/app/versions", {"tag": "1"})
    why = checks.state("b")
    tap.test("a job of another waits for it", None if why["state"] == "waiting" and
             why["reasons"][0]["holders"] == ["a"] else json.dumps(why))
    tap.test("the holder's own job runs",
             None if checks.state("a")["state"] == "inFlight" else "it does not")
    checks.expect("steady", 200, checks.ask("steady-state", "a"))
    tap.test("its job keeps the slot", None if checks.state("b")["state"] == "waiting" else "no")
    job = server.request("GET", "/api/v1/jobs?open=true").json["items"][0]
    server.request("POST", f"/api/v1/jobs/{job['number']}/complete", {"outcome": "succeeded"})
    tap.test("then the other has its turn",
             None if checks.state("b")["state"] == "inFlight" else json.dumps(checks.state("b")))
    checks.expect("and a host must wait for the job", 409, checks.ask("pre-reboot", "a"))
    job = server.request("GET", "/api/v1/jobs?open=true").json["items"][0]
    server.request("POST", f"/api/v1/jobs/{job['number']}/complete", {"outcome": "succeeded"})
    checks.expect("which has ended now", 200, checks.ask("pre-reboot", "a"))
    checks.ask("steady-state", "a")


def strangers_refused(checks):
    checks.expect("a stranger is refused", 404, checks.ask("pre-reboot", "stranger"))
    checks.expect("also when it has rebooted", 404, checks.ask("steady-state", "stranger"))
    found = checks.server.request("GET", "/api/v1/resources/stranger")
    checks.tap.test("and is no resource", None if found.status == 404 else found)


def strangers_join(checks):
    server, tap = checks.server, checks.tap
    checks.expect("who never joined has nothing to give back", 200,
                  checks.ask("steady-state", "s1"))
    checks.expect("a stranger joins and gets the slot", 200, checks.ask("pre-reboot", "s1"))
    made = server.request("GET", "/api/v1/resources/s1").json
    tap.test("as a resource of its group",
             None if made["metadata"]["labels"] == {LABEL: "web"} else made)
    checks.expect("the next one waits", 409, checks.ask("pre-reboot", "s2"))
    checks.expect("and so do those that are known", 409, checks.ask("pre-reboot", "a"))
    server.stop(signal.SIGKILL)
    server.start()
    checks.expect("a restart forgets nothing", 409, checks.ask("pre-reboot", "s2"))
    checks.expect("the slot is given back", 200, checks.ask("steady-state", "s1"))
    checks.expect("and taken by the next one", 200, checks.ask("pre-reboot", "s2"))
    checks.ask("steady-state", "s2")
    checks.expect("a name that no resource can have", 400, checks.ask("pre-reboot", "No Name!"))
    token = server.request("POST", "/api/v1/tokens", {
        "name": "w", "role": "worker", "selector": f"{LABEL}=db"}).json["token"]
    checks.expect("a worker's token is for its group", 403,
                  checks.ask("pre-reboot", "s3", token=token))
    checks.expect("and no other", 200, checks.ask("pre-reboot", "s3", group="db", token=token))
    checks.ask("steady-state", "s3")


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with servers.Server(program) as server:
            checks = Checks(tap, server)
            story(checks)
            strangers_refused(checks)
        with servers.Server(program, "--fleetlock-unknown", "join") as server:
            checks = Checks(tap, server)
            story(checks)
            strangers_join(checks)
            tap.test("answers are as described", "\n".join(server.wrong))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
