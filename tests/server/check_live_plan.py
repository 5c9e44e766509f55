#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of a live fleet: as of its files, from where it is now; and nothing changes. TAP."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"


def document(kind, name, spec, labels=None):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": labels or {}},
            "spec": spec}


def deployment(name, job):
    return document("Deployment", name, {"resourceSelector": "true", "job": job})


FLEET = [document("Resource", f"h{i:02}", {"kind": "host"}) for i in range(10)] + [
    document("Environment", "prod", {"resourceSelector": "true"}),
    deployment("drain", {"manual": {"instructions": "drain it"}}),
    deployment("app", {"manual": {"instructions": "install it"}}),
    deployment("uncordon", {"manual": {"instructions": "uncordon it"}}),
    document("RolloutPolicy", "all", {"rules": [
        {"deploymentBracket": {"deploymentSelector": "true", "readinessMode": "immediate",
                               "preSelector": 'deployment.name == "drain"',
                               "postSelector": 'deployment.name == "uncordon"'}},
        {"gradualRollout": {"rolloutType": "linear", "timeScaleInterval": 30}},
        {"resourceConcurrency": {"groupSelector": "true", "limitType": "percentage",
                                 "limitValue": 20}}]}),
]
VERSIONS = [document("Version", f"{name}-1", {"deployment": name, "tag": "1"})
            for name in ("drain", "app", "uncordon")]


def many(items):
    return {"apiVersion": "v1", "kind": "List", "items": items}


def order(plan):
    return [(job["start"], job["deployment"], job["resource"], job["role"], job["version"])
            for job in plan["jobs"]]


class Checks:
    def __init__(self, tap, server, folder):
        self.tap = tap
        self.server = server
        self.folder = folder

    def run(self, *words):
        return drover.run(self.server.program, *words, "--data", self.server.folder)

    def plan(self, *words):
        result = drover.run(self.server.program, "plan", *words, "-o", "json", "--server",
                            f"http://127.0.0.1:{self.server.port}", "--data", self.server.folder)
        try:
            return json.loads(result.out)
        except ValueError:
            return {"outcome": repr(result), "jobs": [], "waiting": []}

    def same(self, name, expected, found):
        self.tap.test(name, drover.difference(expected, found))

    def sequence(self):
        items, after = [], 0
        while True:
            page = self.server.request("GET", f"/api/v1/journal?limit=1000&after={after}").json
            items += page["items"]
            if "continue" not in page:
                return items[-1]["sequence"]
            after = items[-1]["sequence"]


def fresh_fleet(checks):
    """What will happen to a fleet that was just applied does not depend on where it is kept."""
    server = checks.server
    server.request("POST", "/api/v1/apply", many(FLEET))
    files = pathlib.Path(checks.folder) / "fleet.json"
    versions = pathlib.Path(checks.folder) / "versions.json"
    files.write_text(json.dumps(many(FLEET)))
    versions.write_text(json.dumps(many(VERSIONS)))
    before = checks.sequence()
    offline = json.loads(drover.run(server.program, "plan", "-f", files, "-f", versions, "-o",
                                    "json").out)
    what_if = checks.plan("-f", versions)
    checks.same("what if: as offline", order(offline), order(what_if))
    checks.same("its figures", [offline[key] for key in ("outcome", "seconds", "targets", "done",
                "peakInFlight", "starts", "drains", "drainsSaved")],
                [what_if.get(key) for key in ("outcome", "seconds", "targets", "done",
                 "peakInFlight", "starts", "drains", "drainsSaved")])
    wish = {"publish": [{"deployment": name, "tag": "1"} for name in ("drain", "app", "uncordon")]}
    posted = server.request("POST", "/api/v1/plan", wish).json
    checks.same("by POST: as many and as long", [what_if["seconds"], what_if["starts"]],
                [posted["seconds"], posted["starts"]])
    checks.same("nothing was written", before, checks.sequence())


def in_the_midst(checks):
    """Two hosts run when it is planned: they go on, and the others follow as the limit says."""
    server = checks.server
    server.request("POST", "/api/v1/apply", many(VERSIONS))
    servers.wait_for(lambda: server.request("GET", "/api/v1/jobs?open=true").json["items"])
    job = server.request("GET", "/api/v1/jobs?open=true").json["items"][0]
    before = checks.sequence()
    plan = checks.plan()
    checks.same("it completes", ["complete", 10, 2], [plan["outcome"], plan.get("done"),
                                                      plan.get("peakInFlight")])
    checks.same("it says what it assumes", "a live fleet; the 1 job running there now succeeds",
                plan.get("assumes"))
    first = plan["jobs"][0]
    checks.same("what runs comes first", [job["deployment"], job["resource"], True],
                [first["deployment"], first["resource"], first["start"] <= 0])
    checks.same("each job once", 30, len(plan["jobs"]))
    got = server.request("GET", "/api/v1/plan").json
    checks.same("by GET: as many and as long", [plan["seconds"], plan["starts"]],
                [got["seconds"], got["starts"]])
    failing = checks.plan("--fail", f"app@{job['resource']}")
    checks.same("a failure keeps its slot", ["stalled", 9],
                [failing["outcome"], failing.get("done")])
    checks.same("nothing was written", before, checks.sequence())
    table = checks.run("plan")
    checks.tap.test("without a word, the server of this machine",
                    None if "assumes a live fleet" in table.out and table.status == 0 else table)
    for form, start in (("svg", "<svg"), ("trace", "  start ")):
        shown = checks.run("plan", "-o", form)
        checks.tap.test(f"-o {form}", None if start in shown.out else shown)
    wrong = checks.run("plan", "--server", "http://127.0.0.1:1")
    checks.same("a server that is not there", 3, wrong.status)
    wrong = checks.run("plan", "--server", f"http://127.0.0.1:{server.port}", "--nodes", "3")
    checks.same("made-up targets make no sense", 2, wrong.status)


def explained(checks):
    """Asked of the server, and of its state in virtual time: the same words."""
    server = f"http://127.0.0.1:{checks.server.port}"
    for name in ("h00", "h05", "h09"):
        for form in ("text", "json"):
            words = ("explain", name, "--server", server, "-o", form)
            checks.same(f"explain {name} -o {form}", checks.run(*words).out,
                        checks.run(*words, "--after", "0s").out)


def since_before(checks):
    """A job that runs has begun when it has begun, and has that much less to go."""
    server = checks.server
    server.request("POST", "/api/v1/apply", many([
        document("Resource", "lone", {"kind": "lone"}),
        document("Environment", "dev", {"resourceSelector": 'resource.kind == "lone"'}),
        document("Deployment", "long", {"resourceSelector": 'resource.kind == "lone"',
                                        "job": {"simulated": {"seconds": 600}}})]))
    server.request("POST", "/api/v1/deployments/long/versions", {"tag": "1"})
    path = "/api/v1/jobs?deployment=long&resource=lone"

    def running():
        return [job for job in server.request("GET", path).json["items"] if "startedAt" in job]
    job = servers.wait_for(running)[0]
    time.sleep(2.1)
    for name, plan in (("GET", server.request("GET", "/api/v1/plan").json),
                       ("--server", checks.plan())):
        found = [one for one in plan["jobs"] if one["deployment"] == "long"]
        checks.same(f"{name}: it is there once, since its real start", [job["startedAt"][:19]],
                    [one["startAt"][:19] for one in found])
        good = -60 < found[0]["start"] <= -2 and 599 <= found[0]["end"] - found[0]["start"] <= 602
        checks.tap.test(f"{name}: and ends when it has lasted long enough",
                        None if good else found)
    picture = checks.run("plan", "-o", "svg").out
    checks.tap.test("its bar begins where the picture does",
                    None if 'x="-' not in picture and "<svg" in picture else picture)
    checks.tap.test("answers are as described, too", "\n".join(server.wrong))


def hostile(checks):
    for body, status in (({"until": "soon"}, 422), ({"duration": "-1s"}, 422), ({"x": 1}, 400),
                         ({"fail": ["nope"]}, 422),
                         ({"publish": [{"deployment": "nope", "tag": "1"}]}, 422)):
        answer = checks.server.request("POST", "/api/v1/plan", body)
        checks.same(f"refused: {body}", status, answer.status)
    left = checks.server.connect()
    left.sendall(f"GET /api/v1/plan HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                 f"{checks.server.token}\r\n\r\n".encode())
    left.close()
    checks.same("a client that leaves does no harm", 200,
                checks.server.request("GET", "/api/v1/plan").status)
    checks.tap.test("answers are as described", "\n".join(checks.server.wrong))


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with servers.Server(program) as server:
            checks = Checks(tap, server, server.folder.parent)
            for part in (fresh_fleet, in_the_midst, explained, hostile):
                part(checks)
        with servers.Server(program) as server:
            since_before(Checks(tap, server, server.folder.parent))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
