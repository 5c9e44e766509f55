#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verification rule acts: metrics are measured after jobs of every kind, and what they say
decides whether the release is good; also over a restart. TAP."""

import http.server
import json
import pathlib
import signal
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"


class Provider(http.server.BaseHTTPRequestHandler):
    """Answers /NAME with the next of what was planned for NAME, the last one for ever."""
    plans = {}
    asked = []

    def do_GET(self):  # pylint: disable=invalid-name
        path = urllib.parse.urlsplit(self.path)
        name = path.path.strip("/").split("/")[0]
        Provider.asked.append((name, self.path, self.headers.get("X-Host")))
        plan = Provider.plans.get(name, [(404, {})])
        status, body = plan.pop(0) if len(plan) > 1 else plan[0]
        if status == 0:
            self.connection.close()
            return
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *unused):
        pass


def document(kind, name, spec, labels=None):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": labels or {}},
            "spec": spec}


def metric(name, url, **more):
    provider = {"type": "http", "url": url, "headers": {"X-Host": "{{resource.name}}"}}
    return {"name": name, "provider": provider, "intervalSeconds": 1, "count": 1,
            "successCondition": "result.ok", **more}


def fleet(base):
    jobs = {"cmd": {"command": {"run": ["true"]}}, "sim": {"simulated": {"seconds": 0}},
            "man": {"manual": {"instructions": "do it"}}, "pull": {"pull": {}},
            "prom": {"command": {"run": ["true"]}}, "slow": {"command": {"run": ["true"]}}}
    items = [document("Resource", "box", {"kind": "host"}),
             document("Environment", "prod", {"resourceSelector": "true"})]
    items += [document("Deployment", name, {"resourceSelector": "true", "job": job})
              for name, job in jobs.items()]
    for name in ("cmd", "sim", "man", "pull"):
        rules = [{"verification": {"metrics": [metric(
            "health", f"{base}/{name}", count=3, successThreshold=2, failureThreshold=1,
            successCondition="result.statusCode == 200 && result.json.ready")]}}]
        if name == "cmd":
            rules.append({"rollback": {"onVerificationFailure": True}})
        items.append(document("RolloutPolicy", f"check-{name}", {
            "selector": f'deployment.name == "{name}"', "rules": rules}))
    items.append(document("RolloutPolicy", "check-prom", {
        "selector": 'deployment.name == "prom"', "rules": [{"verification": {"metrics": [{
            "name": "errors", "intervalSeconds": 1, "count": 2,
            "provider": {"type": "prometheus", "address": f"{base}/prom",
                         "query": 'rate{host="{{resource.name}}"}'},
            "successCondition": "result.value < 0.5",
            "failureCondition": "result.value > 0.9"}]}}]}))
    items.append(document("RolloutPolicy", "check-slow", {
        "selector": 'deployment.name == "slow"', "rules": [{"verification": {"metrics": [{
            "name": "soak", "intervalSeconds": 1, "count": 1, "successCondition": "result.ok",
            "provider": {"type": "sleep", "durationSeconds": 3}}]}}]}))
    return {"apiVersion": "v1", "kind": "List", "items": items}


def series(value):
    return (200, {"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"host": "box"}, "value": [1, value]}]}})


GOOD, BAD = (200, {"ready": True}), (200, {"ready": False})


class Checks:
    def __init__(self, tap, server, base):
        self.tap = tap
        self.server = server
        answer = server.request("POST", "/api/v1/apply", fleet(base))
        tap.test("policies with metrics are taken", None if answer.status == 200 else answer)

    def publish(self, name, tag, *plan):
        Provider.plans[name] = list(plan) or [GOOD]
        self.server.request("POST", f"/api/v1/deployments/{name}/versions", {"tag": tag})

    def target(self, name):
        return self.server.request("GET", f"/api/v1/targets/{name}/prod/box").json

    def jobs(self, name):
        return self.server.request("GET", f"/api/v1/jobs?deployment={name}").json["items"]

    def ends(self, what, name, state, current):
        def there():
            seen = self.target(name)
            return seen["state"] == state and seen["current"] == current
        servers.wait_for(there, 60)
        seen = self.target(name)
        self.tap.test(what, None if (seen["state"], seen["current"]) == (state, current)
                      else f"{seen} {self.jobs(name)[:2]}")

    def same(self, what, expected, found):
        self.tap.test(what, drover.difference(expected, found))


def commands(checks):
    checks.publish("cmd", "1", BAD, GOOD, GOOD, BAD)
    checks.ends("one failure is allowed, two passes in a row are enough", "cmd", "done", "1")
    asked = [entry for entry in Provider.asked if entry[0] == "cmd"]
    checks.same("measured three times, with names filled in", [3, "box"],
                [len(asked), asked[0][2]])
    log = checks.server.request("GET", f"/api/v1/jobs/{checks.jobs('cmd')[0]['number']}/log").body
    checks.tap.test("its log has the measurements", None if "measurement 1: failed" in log
                    and "measurement 3: passed" in log else log)
    checks.publish("cmd", "2", (0, {}), BAD, BAD, GOOD)
    checks.ends("no answer is no measurement; two failures are too many: it goes back", "cmd",
                "excluded", "1")
    failed = [job for job in checks.jobs("cmd") if job["version"] == "2"][0]
    checks.tap.test("and says why", None if failed["state"] == "failed"
                    and "metric health failed, 2 of 2" in failed["reason"] else failed)


def others(checks):
    server = checks.server
    checks.publish("sim", "1", GOOD)
    checks.ends("a simulated job is measured", "sim", "done", "1")
    checks.publish("man", "1", BAD)
    servers.wait_for(lambda: checks.jobs("man"))
    number = checks.jobs("man")[0]["number"]
    server.request("POST", f"/api/v1/jobs/{number}/complete", {"outcome": "succeeded"})
    checks.ends("a person's word is measured", "man", "failed", "")
    checks.publish("pull", "1", GOOD)
    servers.wait_for(lambda: checks.jobs("pull"))
    claim = server.request("POST", "/api/v1/jobs/claim", {"resource": "box"}).json
    done = {"fencing": claim["fencing"], "outcome": "succeeded"}
    number = claim["job"]["number"]
    server.request("POST", f"/api/v1/jobs/{number}/complete", done)
    checks.same("a worker's word too", "verifying", checks.jobs("pull")[0]["state"])
    again = server.request("POST", f"/api/v1/jobs/{number}/complete", done).json
    checks.same("said twice it changes nothing", True, again["ignored"])
    server.stop(signal.SIGKILL)
    server.start()
    checks.ends("and is not lost by a restart", "pull", "done", "1")


def prometheus(checks):
    checks.publish("prom", "1", series("0.7"), series("0.1"))
    checks.ends("neither good nor bad, then good", "prom", "done", "1")
    query = [entry[1] for entry in Provider.asked if entry[0] == "prom"][0]
    checks.same("the query is sent", ['rate{host="box"}'],
                urllib.parse.parse_qs(urllib.parse.urlsplit(query).query)["query"])
    checks.publish("prom", "2", series("0.95"))
    checks.ends("a failureCondition that is true", "prom", "failed", "1")


def slow(checks):
    started = time.monotonic()
    checks.publish("slow", "1")
    servers.wait_for(lambda: checks.target("slow")["state"] == "inFlight", 20)
    checks.server.stop(signal.SIGKILL)
    checks.server.start()
    checks.ends("a measurement goes on over a restart", "slow", "done", "1")
    checks.same("and takes its time", True, time.monotonic() - started >= 3)
    checks.publish("slow", "2")
    servers.wait_for(lambda: checks.jobs("slow")[0]["version"] == "2"
                     and checks.jobs("slow")[0]["state"] == "running", 20)
    time.sleep(0.5)
    checks.server.request("POST", f"/api/v1/jobs/{checks.jobs('slow')[0]['number']}/cancel")
    checks.ends("and can be cancelled", "slow", "failed", "1")
    checks.tap.test("answers are as described", "\n".join(checks.server.wrong))


def main():
    tap = drover.Tap()
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    for program in drover.programs():
        Provider.plans, Provider.asked = {}, []
        with servers.Server(program) as server:
            checks = Checks(tap, server, f"http://127.0.0.1:{web.server_port}")
            for part in (commands, others, prometheus, slow):
                part(checks)
    web.shutdown()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
