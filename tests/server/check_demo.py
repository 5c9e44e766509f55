#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make run` starts: something moves at once, and all that it tells to try works. TAP."""

import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

LASTING = ("watch", "--wait")  # go on for long


class Demo(servers.Server):
    """Also keeps what it said."""

    def start(self):
        super().start()
        self.said = []
        for line in iter(self.process.stdout.readline, b""):
            self.said.append(line.decode().rstrip("\n"))
            if line.startswith(b"Ctrl-C"):
                break
        return self


def tries(demo):
    for line in demo.said:
        if line.startswith("    "):
            yield shlex.split(line, comments=True)


def run_lasting(words):
    """It says how far things are, and ends when told to."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        text = process.stdout.readline().decode()
        if " done, " not in text:
            text += process.stdout.readline().decode()
        process.send_signal(signal.SIGINT)
        return " done, " in text and process.wait(timeout=30) in (0, -signal.SIGINT), text


def try_all(tap, demo):
    lines = list(tries(demo))
    tap.test("it tells what to try", None if len(lines) > 8 else demo.said)
    for words in lines:
        name = " ".join(words[1:]).split(" --data")[0]
        if any(word in LASTING for word in words):
            good, text = run_lasting(words)
            tap.test(name, None if good else text)
            continue
        result = drover.run(words[0], *words[1:], timeout=240)
        plan_may_stall = words[1] == "plan" and result.status == 1 and "stalled" in result.out
        tap.test(name, None if result.status == 0 or plan_may_stall else result)


def moves(tap, demo):
    states = set()

    def something():
        for item in demo.request("GET", "/api/v1/targets?limit=1000").json["items"]:
            states.add(item["state"])
        return {"inFlight", "waiting", "done"} <= states
    started = time.monotonic()
    tap.test("something moves within ten seconds",
             None if servers.wait_for(something, 10) else f"{states}")
    count = len(demo.request("GET", "/api/v1/resources?limit=1000").json["items"])
    kinds = demo.request("GET", "/api/v1/rolloutpolicies").body
    tap.test("a few dozen hosts, a bracket, a limit, a pace",
             None if count == 48 and all(rule in kinds for rule in (
                 "deploymentBracket", "resourceConcurrency", "gradualRollout")) else kinds)
    return started


def foreign(tap, program):
    """A folder with somebody's own documents is left alone."""
    with tempfile.TemporaryDirectory(prefix="drover-test-") as folder:
        server = servers.Server(program, folder=folder).start()
        server.request("PUT", "/api/v1/environments/mine", {
            "apiVersion": "drover.dev/v1alpha1", "kind": "Environment",
            "metadata": {"name": "mine"}, "spec": {"resourceSelector": "true"}})
        server.stop()
        result = drover.run(program, "serve", "--demo", "--data", server.folder, "--listen",
                            "127.0.0.1:0", timeout=30)
        tap.test("a fleet of one's own is left alone",
                 None if result.status == 1 and "--data" in result.err else result)


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with Demo(program, "--demo") as demo:
            moves(tap, demo)
            try_all(tap, demo)
            first = demo.said[0]
            demo.stop(signal.SIGINT)
            demo.start()
            again = demo.request("GET", "/api/v1/resources?limit=1000").json["items"]
            tap.test("it can be started again",
                     None if len(again) == 48 and re.match("A made-up", first) else first)
        foreign(tap, program)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
