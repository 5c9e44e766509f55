#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schemathesis makes requests from openapi.json, good and bad ones, and holds every answer to it:
no 5xx, no status, type or body that the document does not describe, nothing bad that is taken,
nothing good that is refused for its form (400). TAP.

What it cannot be given: events, a stream without an end (check_events.py does that one)."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import check_api as api  # pylint: disable=wrong-import-position
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_MOST = 1100  # below the limit of scripts/run-tests; a minute where nothing else runs
EXAMPLES = 12  # random requests an operation, besides those that go through the schema by plan
# 412, 416 and 422 say that a request is well formed and still cannot be done; a stale If-Match is
# answered before the rest is looked at.
CONFIG = """
seed = 20240229
continue-on-failure = true
request-timeout = 30

[[operations]]
include-operation-id = "events"
enabled = false

[checks]
positive_data_acceptance.expected-statuses = [
    "2xx", 401, 403, 404, 409, 412, 416, 422, 429]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429]

[phases.stateful]
enabled = false
"""


def fill(server):
    """A small fleet in which nothing stays open: a log that is followed ends."""
    documents = api.many(
        api.host("a1", env="a"), api.host("a2", env="a"), api.environment("a"),
        api.deployment("timed", {"simulated": {"seconds": 0}}), api.version("timed", "1"),
        api.policy("slow", [{"anyApproval": {"minApprovals": 1}}], 'deployment.name == "never"'))
    answer = server.request("POST", "/api/v1/apply", documents)
    if answer.status != 200:
        return repr(answer)
    done = servers.wait_for(lambda: server.request(
        "GET", "/api/v1/targets/timed/a/a1").json["state"] == "done", 20)
    return None if done else "the fleet does not settle"


def run(tap, program, server):
    with tempfile.TemporaryDirectory(prefix="drover-test-") as folder:
        config = pathlib.Path(folder) / "schemathesis.toml"
        config.write_text(CONFIG)
        # From a file: an operation that gives the document itself is tested only then.
        document = pathlib.Path(folder) / "openapi.json"
        document.write_text(json.dumps(server.openapi))
        # PYTHONPATH gives the hooks; the folder takes what schemathesis leaves behind.
        environment = dict(os.environ, SCHEMATHESIS_HOOKS="schemathesis_hooks",
                           PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1")
        command = [program, "--config-file", str(config), "run",
                   "--url", f"http://127.0.0.1:{server.port}", "--header",
                   f"Authorization: Bearer {server.token}", "--max-examples", str(EXAMPLES),
                   "--generation-deterministic",
                   str(document)]
        try:
            process = subprocess.run(command, cwd=folder, env=environment, check=False,
                                     timeout=SECONDS_MOST, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired as late:
            tap.test("schemathesis finds nothing", f"{late}\n{(late.stdout or b'').decode()}")
            return
    output = process.stdout.decode("utf-8", "replace")
    tap.test("schemathesis finds nothing", None if process.returncode == 0 else output)
    # It really ran: all operations but one, and many requests.
    tested = re.search(r"Tested: (\d+)", output)
    made = re.search(r"(\d+) generated", output)
    print(f"# {made.group(1) if made else 'no'} requests")
    every = sum(len(item) for item in server.openapi["paths"].values())
    tap.test(f"it tested all {every} operations but events",
             None if tested and int(tested.group(1)) == every - 1 else output)
    tap.test("with more than 2,000 requests",
             None if made and int(made.group(1)) > 2000 else output)


def main():
    tap = drover.Tap()
    made = subprocess.run([str(drover.ROOT / "scripts" / "test-tools"), "schemathesis"],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if made.returncode != 0:
        tap.skip("schemathesis", "it cannot be installed here: "
                 + made.stderr.decode("utf-8", "replace").strip().replace("\n", "; ")[:300])
        return tap.done()
    with servers.Server(drover.programs()[0]) as server:
        tap.test("a fleet to ask about", fill(server))
        run(tap, made.stdout.decode().strip(), server)
        tap.test("the server still answers",
                 None if server.request("GET", "/readyz").status == 200 else "it does not")
        tap.test("it stops in order", None if server.stop() == 0 else "exit status")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
