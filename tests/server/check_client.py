#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that talk to a server, and workers that live, die and come back late. TAP."""

import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

FLEET = """
apiVersion: drover.dev/v1alpha1
kind: Resource
metadata: {name: h1, labels: {env: a}}
spec: {kind: host}
---
apiVersion: drover.dev/v1alpha1
kind: Resource
metadata: {name: h2, labels: {env: a}}
spec: {kind: host}
---
apiVersion: drover.dev/v1alpha1
kind: Environment
metadata: {name: a}
spec: {resourceSelector: 'resource.metadata["env"] == "a"'}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: web}
spec: {resourceSelector: 'resource.kind == "host"', job: {simulated: {seconds: 0}}}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: pulled}
spec: {resourceSelector: 'resource.name == "h1"', job: {pull: {}}}
---
apiVersion: drover.dev/v1alpha1
kind: Deployment
metadata: {name: by-hand}
spec: {resourceSelector: 'resource.name == "h2"', job: {manual: {instructions: swap it}}}
"""


class Cli(servers.Cli):
    def __init__(self, tap, server, folder):
        super().__init__(tap, server)
        self.folder = folder


def documents(cli):
    file = pathlib.Path(cli.folder) / "fleet.yaml"
    file.write_text(FLEET)
    cli.expect("apply --dry-run", 0, "apply", "-f", file, "--dry-run", out="resource/h1 created")
    cli.expect("writes nothing", 1, "get", "resource", "h1", err='there is no Resource "h1"')
    cli.expect("apply", 0, "apply", "-f", file, out="deployment/web created")
    cli.expect("apply again", 0, "apply", "-f", file, out="deployment/web unchanged")
    cli.expect("apply what is wrong", 1, "apply", "-f", "-", err="spec.frob",
               stdin=FLEET.replace("spec: {kind: host}", "spec: {frob: 1}").encode())
    cli.expect("get", 0, "get", "resources", out="h2")
    cli.expect("get -o name", 0, "get", "resources", "-o", "name", out="resource/h1\nresource/h2\n")
    one = cli.expect("get -o json", 0, "get", "resource/h1", "-o", "json")
    cli.tap.test("is JSON", None if json.loads(one.out)["metadata"]["name"] == "h1" else one.out)
    yaml = cli.expect("get -o yaml", 0, "get", "deployments", "-o", "yaml")
    cli.expect("what get prints can be applied", 0, "apply", "-f", "-",
        out="deployment/web unchanged",
               stdin=yaml.out.encode())
    cli.expect("get by labels", 0, "get", "resources", "-l", "env=b", err="no resources found")
    cli.expect("get several", 0, "get", "resources", "h1", "h2", "-o", "name",
               out="resource/h1\nresource/h2\n")
    cli.expect("get several by kind and name", 0, "get", "resource/h2", "resource/h1", "-o", "name",
               out="resource/h2\nresource/h1\n")
    cli.expect("get some of which are not there", 1, "get", "resource", "h1", "h9",
               err='there is no Resource "h9"')
    cli.expect("get of two kinds", 2, "get", "resource/h1", "deployment/web", err="one kind")
    cli.expect("get what is no kind", 2, "get", "frobs", err="allowed resources")
    cli.expect("describe by kind and name", 0, "describe", "deployment/web", out="Release targets:")
    cli.expect("describe nothing", 2, "describe", "deployment", err="NAME")
    cli.expect("delete nothing", 2, "delete", "deployment", err="NAME is missing")
    cli.expect("describe", 0, "describe", "deployment", "web", out="Release targets:")
    cli.expect("its events", 0, "describe", "deployment", "web", out="document Deployment web")


def large_pages(cli):
    """A page of a list may be longer than any document of it."""
    file = pathlib.Path(cli.folder) / "large.yaml"
    file.write_text("".join(
        f"---\napiVersion: drover.dev/v1alpha1\nkind: Resource\nmetadata: {{name: large{i:03}}}\n"
        f"spec: {{kind: disk, config: {{text: {'x' * 20000}}}}}\n" for i in range(120)))
    cli.expect("apply of much", 0, "apply", "-f", file, out="resource/large119 created")
    found = cli.expect("get of much", 0, "get", "resources", "-o", "name")
    names = found.out.count("resource/large")
    cli.tap.test("finds all of it", drover.difference(120, names))
    cli.expect("delete of much", 0, "delete", "resource",
               *[f"large{i:03}" for i in range(120)], out="resource/large119 deleted")


def acts(cli):
    cli.expect("publish --wait", 0, "version", "publish", "web", "1.0", "--wait",
               out="version/web-1.0 created", err="2 of 2 done")
    cli.expect("publish again", 0, "version", "publish", "web", "1.0", out="unchanged")
    cli.expect("it is ready", 0, "get", "versions", out="1.0  ready")
    cli.expect("publish for nobody", 1, "version", "publish", "nope", "1",
        err="there is no Deployment")
    cli.expect("pause", 0, "pause", "web", "--reason", "lunch", out="pause: done")
    cli.run("version", "publish", "web", "2.0")
    cli.expect("it is paused", 0, "get", "targets", "--deployment", "web", out="web is paused")
    cli.expect("explain", 0, "explain", "h1", "--change", "web", out="released by resume")
    why = cli.expect("explain -o json", 0, "explain", "h1", "--change", "web", "-o", "json")
    cli.tap.test("is JSON",
        None if json.loads(why.out)["reasons"][0]["rule"] == "paused" else why.out)
    cli.expect("explain nobody", 1, "explain", "nope", err="no such resource")
    cli.expect("resume", 0, "resume", "web")
    cli.expect("freeze", 0, "freeze", "f1", "--until", "1h", "--selector", 'deployment.name == "x"')
    frozen = cli.expect("get freezes", 0, "get", "freezes", out='deployment.name == "x"')
    cli.tap.test("says who and until when", None if " admin " in frozen.out and "Z " in frozen.out
                 else frozen.out)
    cli.expect("get one freeze", 0, "get", "freeze", "f1", "-o", "name", out="freeze/f1\n")
    cli.expect("get a freeze that is not there", 1, "get", "freeze", "f2",
               err='there is no freeze "f2"')
    cli.expect("get one token", 0, "get", "token/admin", "-o", "name", out="token/admin\n")
    cli.expect("get half a target", 2, "get", "target", "web",
               err="allowed DEPLOYMENT/ENVIRONMENT/RESOURCE")
    cli.expect("get one target", 0, "get", "target", "web/a/h1", "-o", "name",
               out="target/web/a/h1\n")
    cli.expect("thaw what is not frozen", 1, "thaw", "f2", err='there is no freeze "f2"')
    cli.expect("f1 is still there", 0, "get", "freezes", "-o", "name", out="freeze/f1\n")
    cli.expect("thaw", 0, "thaw", "f1")
    cli.expect("and then it is not", 0, "get", "freezes", err="no freezes found")
    for act in ("skip", "rollback"):
        cli.expect(f"{act} nothing", 2, act, err="a RESOURCE or --deployment is needed")
    cli.expect("until nonsense", 2, "freeze", "--until", "soon", err="--until")
    cli.expect("approve what is not there", 1, "approve", "nope", err='there is no Version "nope"')
    for words in (["halt"], ["resume"], ["retry", "h1"], ["skip", "h1", "--deployment", "web"],
                  ["rollback", "h1", "--deployment", "web"], ["approve", "web-2.0"],
                  ["reject", "2.0", "--deployment", "web"]):
        cli.expect(" ".join(words), 0, *words)
    cli.expect("bypass without a rule that is there", 1, "bypass", "x/y/0", "--version", "web-2.0",
               err='there is no rule "x/y/0"')
    cli.expect("history", 0, "history", "--limit", "500", out="act pause web lunch")
    events(cli)


def events(cli):
    """What describe shows last: the newest entries about that thing, and about no other."""
    def of(*words):
        text = cli.expect(f"describe {' '.join(words)}", 0, "describe", *words).out
        return text.partition("\nEvents:\n")[2].splitlines()[1:]
    for words, parts in ((["resource", "h1"], ("act retry", "act skip", "act rollback")),
                         (["version", "web-2.0"], ("act approve", "act reject")),
                         (["job", "1"], ("job web", "release web", "succeeded"))):
        found = "\n".join(of(*words))
        missing = [part for part in parts if part not in found]
        cli.tap.test(f"{words}: has {parts}", None if not missing else found)
    rows = of("resource", "h2")
    cli.tap.test("at most ten, of none but it", None if 0 < len(rows) <= 10 and
                 not any(" h1 " in row for row in rows) else rows)


PARTITIONS = """
apiVersion: drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: rings}
spec:
  selector: 'deployment.name == "web"'
  rules:
  - rolloutStrategy:
      partitions:
      - {name: first, clusterName: h1}
      - {name: rest, clusterName: h2, approval: true}
"""


def partitions(cli):
    """A person opens a partition."""
    cli.expect("a policy with partitions", 0, "apply", "-f", "-", stdin=PARTITIONS.encode())
    cli.run("version", "publish", "web", "3.0")
    cli.expect("its second one waits", 0, "explain", "h2", "--change", "web", out="approval")
    cli.expect("approve nothing", 2, "approve", err="either a VERSION or --partition")
    cli.expect("approve both", 2, "approve", "web-3.0", "--partition", "rest", err="either")
    cli.expect("approve a partition that is not there", 1, "approve", "--partition", "nope",
               err='there is no partition "nope"')
    cli.expect("approve a partition", 0, "approve", "--partition", "rest", "--deployment", "web")
    cli.expect("and it goes on", 0, "version", "publish", "web", "3.0", "--wait", err="2 of 2 done")
    cli.expect("without the policy", 0, "delete", "rolloutpolicy", "rings")


def watch(cli):
    """On a terminal of 24 lines: bars, an explanation, a filter, and q."""
    cli.expect("watch --once", 0, "watch", "--once", out="web: ")
    child, terminal = pty.fork()
    if child == 0:
        os.execv(cli.server.program, ["drover", "watch", "--data", str(cli.server.folder)])

    def screen(keys, seconds):
        os.write(terminal, keys)
        text, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    text += os.read(terminal, 65536)
                except OSError:
                    break
        return text.decode("utf-8", "replace")
    first = screen(b"", 1.5)
    cli.tap.test("watch: bars and rows", None if "web" in first and "q quits" in first else first)
    filtered = screen(b"/zzz\n", 0.5)
    cli.tap.test("watch: a filter", None if "nothing waits" in filtered else filtered)
    back = screen(b"/\nj\033[A\n", 0.7)
    cli.tap.test("watch: an explanation", None if "any key goes back" in back else back)
    screen(b"xq", 0.5)

    def ended():
        return os.waitpid(child, os.WNOHANG)[0] == child
    over = servers.wait_for(ended, 5)
    cli.tap.test("watch: q quits", None if over else "it does not")
    if not over:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(terminal)


def tokens(cli):
    made = cli.expect("token create", 0, "token", "create", "ci", "--role", "viewer")
    token = pathlib.Path(cli.folder) / "token"
    token.write_text(made.out)
    cli.expect("a viewer reads", 0, "get", "resources", "--token-file", token, out="h1")
    cli.expect("and writes nothing", 1, "pause", "web", "--token-file", token, err="viewer")
    address = (cli.server.folder / "address").read_text().strip()
    result = drover.run(cli.server.program, "get", "resources",
                        env={"DROVER_SERVER": address, "DROVER_TOKEN": made.out.strip(),
                            "HOME": "/"})
    cli.tap.test("server and token by environment", None if "h1" in result.out else repr(result))
    cli.expect("token list", 0, "token", "list", out="viewer")
    cli.expect("token revoke", 0, "token", "revoke", "ci", out="token/ci revoked")
    cli.expect("a revoked token", 1, "get", "resources", "--token-file", token, err="revoked")
    cli.expect("nobody there", 3, "get", "resources", "--server", "http://127.0.0.1:9",
               err="cannot be reached")
    file = pathlib.Path(cli.folder) / "copy.db"
    cli.expect("backup", 0, "backup", file)
    cli.tap.test("is an SQLite file",
        None if file.read_bytes().startswith(b"SQLite") else "it is not")
    cli.expect("backup over a file", 1, "backup", file, err="exists")


def job_of(cli, tag, deployment="pulled"):
    jobs = cli.server.request("GET", f"/api/v1/jobs?deployment={deployment}").json["items"]
    return next((job for job in jobs if job["version"] == tag), None)


def job_is(cli, tag, *states, seconds=20):
    return servers.wait_for(lambda: (job_of(cli, tag) or {}).get("state") in states, seconds)


def by_hand(cli):
    """Manual jobs: done, failed, and what cannot be said of a job."""
    def number(tag):
        servers.wait_for(lambda: job_of(cli, tag, "by-hand"), 20)
        return str(job_of(cli, tag, "by-hand")["number"])

    def ended(tag):
        job = job_of(cli, tag, "by-hand")
        return job["state"], job.get("reason", "")
    cli.run("version", "publish", "by-hand", "1")
    cli.expect("complete", 0, "complete", number("1"), out=f"job/{number('1')} succeeded")
    cli.tap.test("it succeeded", drover.difference(("succeeded", ""), ended("1")))
    cli.expect("complete again", 1, "complete", number("1"), err="had ended already")
    cli.expect("cancel what has ended", 1, "cancel", number("1"), err="has ended")
    cli.run("version", "publish", "by-hand", "2")
    cli.expect("complete --failed", 0, "complete", number("2"), "--failed", "--reason", "no spare",
               out=f"job/{number('2')} failed")
    cli.tap.test("it failed", drover.difference(("failed", "no spare"), ended("2")))
    cli.expect("complete what is no number", 1, "complete", "x")
    cli.expect("complete nothing", 2, "complete", err="JOB")
    cli.expect("cancel what is not there", 1, "cancel", "999999")


def worker(cli, *command, lease="5", once=False):
    words = [cli.server.program, "worker", "--data", str(cli.server.folder), "--resource", "h1",
             "--lease", lease, *(["--once"] if once else []), "--", *command]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    process.wait(timeout=30)


def workers(cli):
    marks = pathlib.Path(cli.folder) / "marks"

    def marked():
        return marks.read_text().splitlines() if marks.exists() else []
    script = ('echo "begin $DROVER_VERSION $DROVER_JOB_ID"; echo "b $DROVER_VERSION" >> "$0"; '
              'sleep "$1"; echo "e $DROVER_VERSION" >> "$0"; exit "$2"')

    def command(seconds, status=0):
        return ["/bin/sh", "-c", script, str(marks), str(seconds), str(status)]
    # Two workers on one resource: one of them runs it.
    cli.run("version", "publish", "pulled", "1")
    both = [worker(cli, *command(1)), worker(cli, *command(1))]
    cli.tap.test("two workers: it succeeds", None if job_is(cli, "1", "succeeded") else job_of(cli,
        "1"))
    for process in both:
        stop(process)
    cli.tap.test("and ran once", drover.difference(["b 1", "e 1"], marked()))
    log = cli.expect("its log", 0, "logs", str(job_of(cli, "1")["number"]), out="begin 1")
    cli.tap.test("names the job", None if str(job_of(cli, "1")["number"]) in log.out else log.out)
    # One that fails.
    cli.run("version", "publish", "pulled", "2")
    worker(cli, *command(0, 3), once=True).wait(timeout=30)
    job = job_of(cli, "2")
    cli.tap.test("a command that fails", None if job["state"] == "failed" and "3" in job["reason"]
                 else job)
    # One that dies, with its command: the claim runs out.
    cli.run("version", "publish", "pulled", "3")
    process = worker(cli, *command(0.5))
    servers.wait_for(lambda: "b 3" in marked(), 20)
    stop(process, signal.SIGKILL)
    cli.tap.test("a worker that dies: lost", None if job_is(cli, "3", "lost") else job_of(cli, "3"))
    # A server that is restarted in between.
    cli.run("version", "publish", "pulled", "4")
    process = worker(cli, *command(3), lease="20")
    servers.wait_for(lambda: "b 4" in marked(), 20)
    cli.server.stop(signal.SIGKILL)
    time.sleep(1)
    cli.server.start()
    cli.tap.test("a server that is restarted: the result is not lost",
                 None if job_is(cli, "4", "succeeded") else job_of(cli, "4"))
    # Cancelled by a person.
    cli.run("version", "publish", "pulled", "5")
    servers.wait_for(lambda: "b 5" in marked(), 20)
    stop(process)
    cli.tap.test("a worker that is stopped says so", None if job_is(cli, "5", "failed", seconds=5)
                 else job_of(cli, "5"))
    cli.run("version", "publish", "pulled", "6")
    process = worker(cli, *command(60))
    servers.wait_for(lambda: "b 6" in marked(), 20)
    cli.expect("cancel", 0, "cancel", str(job_of(cli, "6")["number"]), out="asked to end")
    cli.tap.test("a cancelled job is ended", None if job_is(cli, "6", "failed") else job_of(cli,
        "6"))
    # A server that is away for longer than the claim: the command is stopped before it ends.
    cli.run("version", "publish", "pulled", "7")
    servers.wait_for(lambda: "b 7" in marked(), 20)
    cli.server.stop(signal.SIGKILL)
    time.sleep(7)
    alive = subprocess.run(["pgrep", "-f", str(marks)], stdout=subprocess.PIPE, check=False).stdout
    running = [pid for pid in alive.split() if int(pid) not in (process.pid, os.getpid())]
    cli.tap.test("a worker without a server stops its command in time",
                 None if not running else f"{running}")
    cli.server.start()
    cli.tap.test("and the job is lost", None if job_is(cli, "7", "lost", "failed") else job_of(cli,
        "7"))
    stop(process)
    begun = [mark for mark in marked() if mark.startswith("b")]
    cli.tap.test("no version ran twice", drover.difference(sorted(set(begun)), sorted(begun)))


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with tempfile.TemporaryDirectory(prefix="drover-test-") as folder, \
                servers.Server(program) as server:
            cli = Cli(tap, server, folder)
            documents(cli)
            large_pages(cli)
            acts(cli)
            partitions(cli)
            watch(cli)
            tokens(cli)
            by_hand(cli)
            workers(cli)
            cli.expect("delete", 0, "delete", "resource", "h2", out="resource/h2 deleted")
            cli.expect("delete again", 1, "delete", "resource/h2", err="there is no")
            tap.test("it stops in order", None if server.stop() == 0 else "exit status")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
