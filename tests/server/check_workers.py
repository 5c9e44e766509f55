#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed, hang and come back late, and a server that is killed in between: no job
ever runs twice at once and no result is lost. Every command takes a folder as a lock while it runs
and complains when it is taken. TAP."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"
LEASE = 5  # seconds


def document(kind, name, spec):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


FLEET = {"apiVersion": "v1", "kind": "List", "items": [
    document("Resource", "box", {"kind": "host"}),
    document("Environment", "prod", {"resourceSelector": "true"}),
    document("Deployment", "app", {"resourceSelector": "true", "job": {"pull": {}}}),
    document("RolloutPolicy", "again", {"rules": [{"retry": {"maxRetries": 9}}]}),
]}

# The lock is given up by whoever holds it, also when it is killed: it is the process that counts.
SCRIPT = r"""
if other=$(cat "$0/holder" 2>/dev/null) && grep -qs '^State:.[^ZX]' "/proc/$other/status"; then
    echo overlap >> "$0/marks"
fi
echo $$ > "$0/holder"
echo "begin $DROVER_VERSION $DROVER_ATTEMPT" >> "$0/marks"
if [ -e "$0/long-$DROVER_VERSION-$DROVER_ATTEMPT" ]; then sleep 60 & wait; fi
sleep 0.3
echo "end $DROVER_VERSION $DROVER_ATTEMPT" >> "$0/marks"
"""


class Story:
    def __init__(self, tap, server, folder):
        self.tap = tap
        self.server = server
        self.folder = pathlib.Path(folder)
        self.workers = []
        self.server.request("POST", "/api/v1/apply", FLEET)

    def worker(self):
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [self.server.program, "worker", "--resource", "box", "--lease", str(LEASE), "--data",
             str(self.server.folder), "--", "/bin/sh", "-c", SCRIPT, str(self.folder)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.workers.append(process)
        return process

    def marks(self):
        path = self.folder / "marks"
        return path.read_text().splitlines() if path.exists() else []

    def jobs(self, version):
        """Oldest first."""
        items = self.server.request("GET", "/api/v1/jobs?limit=1000").json["items"]
        return [job for job in reversed(items) if job["version"] == version]

    def publish(self, version, long=()):
        for attempt in long:
            (self.folder / f"long-{version}-{attempt}").touch()
        self.server.request("POST", "/api/v1/deployments/app/versions", {"tag": version})

    def begun(self, version, attempt):
        return servers.wait_for(lambda: f"begin {version} {attempt}" in self.marks(), 60)

    def holder_gone(self, seconds):
        """Dead, whether or not somebody has waited for it."""
        pid = (self.folder / "holder").read_text().strip()

        def gone():
            try:
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                return True
            return state in "ZX"
        return servers.wait_for(gone, seconds)

    def check(self, name, good, otherwise=""):
        self.tap.test(name, None if good else f"{otherwise} marks: {self.marks()}")

    def check_states(self, name, version, states):
        """A claim that was given up is "lost", or "failed" when its worker could still say so."""
        def found():
            jobs = self.jobs(version)
            return ["lost" if "prolonged" in job.get("reason", "") else job["state"]
                    for job in jobs]
        servers.wait_for(lambda: found() == states, 60)
        self.tap.test(name, drover.difference(states, found()))

    def check_end(self, name, version):
        """Claims that a killed server could not prolong in time are lost, however many; one failed
        with its leash, and the last one succeeded."""
        def found():
            return [job["state"] for job in self.jobs(version)]
        servers.wait_for(lambda: found()[-1:] == ["succeeded"], 60)
        self.tap.test(name, drover.difference(
            "succeeded", found()[-1]) or drover.difference(set(), set(found()[:-1]) -
                                                           {"lost", "failed"}))

    def end(self):
        for process in self.workers:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(timeout=30)
        self.check("nothing ran twice at once", "overlap" not in self.marks())
        begun = [mark for mark in self.marks() if mark.startswith("begin")]
        self.check("no attempt ran twice", len(begun) == len(set(begun)))
        ended = [mark for mark in self.marks() if mark.startswith("end")]
        states = {f"end {job['version']} {job['attempt']}": job["state"]
                  for version in "abcd" for job in self.jobs(version)}
        lost = [mark for mark in ended if states.get(mark) != "succeeded"]
        self.check("no result was lost", not lost, f"{lost} of {states};")


def killed(story):
    """A worker is killed: its command goes with it, and another one takes over."""
    story.publish("a", long=[1])
    worker = story.worker()
    story.begun("a", 1)
    worker.kill()
    worker.wait()
    story.check("a worker that is killed takes its command along", story.holder_gone(LEASE))
    story.worker()
    story.check_states("lost, then done by another", "a", ["lost", "succeeded"])


def frozen(story):
    """A worker hangs for longer than its claim, and comes back."""
    first = story.workers[-1]
    story.publish("b", long=[1])
    story.begun("b", 1)
    first.send_signal(signal.SIGSTOP)
    story.worker()
    story.check("its command is stopped though it hangs", story.holder_gone(LEASE + 1))
    story.check_states("lost, then done by another", "b", ["lost", "succeeded"])
    first.send_signal(signal.SIGCONT)
    time.sleep(2)
    story.check_states("what it says later changes nothing", "b", ["lost", "succeeded"])


def everything(story):
    """The same with a server that is killed at each turn."""
    story.publish("c", long=[1, 2])
    story.begun("c", 1)
    story.server.stop(signal.SIGKILL)
    story.check("without a server the command is stopped in time", story.holder_gone(LEASE + 1))
    story.server.start()
    story.begun("c", 2)
    holder = int((story.folder / "holder").read_text())
    owner = int(pathlib.Path(f"/proc/{holder}/stat").read_text().rsplit(")", 1)[1].split()[1])
    # which is the leash
    os.kill(owner, signal.SIGKILL)
    story.check("a leash that is killed takes the command along", story.holder_gone(LEASE))
    story.server.stop(signal.SIGKILL)
    story.server.start()
    story.check_end("in the end it is done", "c")


def restarted(story):
    """A server that is back before the claim ends gets the result."""
    story.publish("d")
    story.begun("d", 1)
    story.server.stop(signal.SIGKILL)
    time.sleep(0.5)
    story.server.start()
    story.check_states("a result outlives a restart", "d", ["succeeded"])


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with tempfile.TemporaryDirectory(prefix="drover-test-") as folder, \
                servers.Server(program) as server:
            story = Story(tap, server, folder)
            for part in (killed, frozen, everything, restarted):
                part(story)
            story.end()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
