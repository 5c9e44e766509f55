#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What follows a rollout: --wait, watch by the event stream, and replay of the journal. TAP."""

import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"


def document(kind, name, spec, labels=None):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": labels or {}},
            "spec": spec}


def many(*items):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


FLEET = [document("Resource", f"h{i}", {"kind": "host"}) for i in range(1, 5)] + [
    document("Environment", "prod", {"resourceSelector": "true"}),
    document("Deployment", "app", {"resourceSelector": "true", "job": {"command": {"run": [
        "/bin/sh", "-c", "sleep 0.2; [ ${DROVER_VERSION#bad} = $DROVER_VERSION ] || "
        "[ $DROVER_RESOURCE != h1 ]"]}}}),
    document("Deployment", "nobody", {"resourceSelector": "false", "job": {"manual": {}}}),
    document("RolloutPolicy", "two", {"selector": 'deployment.name == "app"', "rules": [
        {"resourceConcurrency": {"groupSelector": "true", "limitType": "count",
                                 "limitValue": 2}}]}),
    document("Version", "app-1", {"deployment": "app", "tag": "1"}),
]


class Cli(servers.Cli):
    def terminal(self, *words, rows=0):
        """The process and its terminal."""
        child, terminal = pty.fork()
        if child == 0:
            os.environ["TERM"] = "xterm"
            if rows:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
            os.execv(self.server.program, ["drover", *words, "--data", str(self.server.folder)])
        return child, terminal


def read_until(terminal, wanted, seconds):
    """What came, and whether it is what was waited for."""
    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                text += os.read(terminal, 65536).decode("utf-8", "replace")
            except OSError:
                break
        if wanted in text:
            return text, True
    return text, wanted in text


def waiting(cli):
    cli.expect("apply --wait", 0, "apply", "-f", "-", "--wait", out="version/app-1 created",
               err="4 of 4 done", stdin=many(*FLEET).encode())
    cli.expect("apply --wait of a version", 0, "apply", "-f", "-", "--wait", err="4 of 4 done",
               stdin=many(document("Version", "app-2", {"deployment": "app", "tag": "2"})).encode())
    cli.expect("publish --wait", 0, "version", "publish", "app", "3", "--wait", err="4 of 4 done")
    cli.expect("nothing wants it", 0, "version", "publish", "nobody", "1", "--wait",
               err="0 of 0 done")
    result = cli.expect("a failure that holds its slot", 1, "version", "publish", "app", "bad",
                        "--wait", err="1 failed")
    lines = result.err.splitlines()
    cli.tap.test("the others went on", None if lines[-1].startswith("3 of 4 done") else result)
    cli.expect("an old failure of something else is none of it", 0, "apply", "-f", "-", "--wait",
               stdin=many(document("Resource", "h2", {"kind": "host"}, {"rack": "r1"})).encode())
    again(cli)
    server = cli.server
    server.request("POST", "/api/v1/actions/pause", {"deployment": "app"})
    overtaken(cli)
    with subprocess.Popen([server.program, "version", "publish", "app", "off", "--wait", "--data",
                           str(server.folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as follower:
        line = follower.stderr.readline()
        server.request("DELETE", "/api/v1/versions/app-off")
        told = line + follower.communicate(timeout=60)[1]
    good = "app is paused" in line and follower.returncode == 1 and "off is gone" in told
    cli.tap.test("a version that goes while it is waited for",
                 None if good else f"{follower.returncode}: {told}")
    child, terminal = cli.terminal("version", "publish", "app", "4", "--wait")
    text, good = read_until(terminal, "app is paused", 20)
    cli.tap.test("on a terminal: what it waits for", None if good and "[" in text else text)
    server.request("POST", "/api/v1/actions/resume", {"deployment": "app"})
    text, good = read_until(terminal, "4 of 4 done", 30)
    cli.tap.test("on a terminal: one line, to the end", None if good and "\r" in text else text)
    cli.tap.test("and its status", drover.difference(0, os.waitstatus_to_exitcode(
        os.waitpid(child, 0)[1])))
    os.close(terminal)
    with subprocess.Popen([server.program, "version", "publish", "app", "5", "--wait", "--data",
                           str(server.folder)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        process.stderr.readline()
        server.stop(signal.SIGKILL)
        cli.tap.test("a server that dies", drover.difference(3, process.wait(timeout=30)))
    server.start()


def again(cli):
    """A rollout that ends as the one before did has failed all the same."""
    cli.expect("the same failure of another version", 1, "apply", "-f", "-", "--wait",
               err="3 of 4 done, 0 in flight, 1 failed",
               stdin=many(document("Version", "app-bad-2", {"deployment": "app", "tag": "bad-2"})
                          ).encode())
    retry = document("RolloutPolicy", "again", {"selector": 'deployment.name == "app"',
                                                "rules": [{"retry": {"maxRetries": 1}}]})
    cli.expect("the same failure after a retry", 1, "apply", "-f", "-", "--wait",
               err="1 failed", stdin=many(retry).encode())
    cli.expect("a policy goes", 0, "delete", "rolloutpolicy", "again", "--confirm")


def overtaken(cli):
    """A newer version that comes first, and a deployment that goes."""
    server = cli.server
    with subprocess.Popen([server.program, "version", "publish", "app", "old", "--wait", "--data",
                           str(server.folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as follower:
        line = follower.stderr.readline()
        server.request("POST", "/api/v1/deployments/app/versions", {"tag": "newer"})
        told = line + follower.communicate(timeout=60)[1]
    good = follower.returncode == 1 and "4 passed over" in told
    cli.tap.test("a version that another one overtakes",
                 None if good else f"{follower.returncode}: {told}")
    wanted = many(document("Deployment", "short", {"resourceSelector": "true",
                                                   "job": {"manual": {}}}),
                  document("Version", "short-1", {"deployment": "short", "tag": "1"}))
    with subprocess.Popen([server.program, "apply", "-f", "-", "--wait", "--data",
                           str(server.folder)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as follower:
        follower.stdin.write(wanted)
        follower.stdin.close()
        follower.stdin = None
        line = follower.stderr.readline()
        server.request("DELETE", "/api/v1/deployments/short")
        told = line + follower.communicate(timeout=60)[1]
    good = follower.returncode == 1 and "4 in flight" in line and "is gone" in told
    cli.tap.test("a deployment that goes while it is waited for",
                 None if good else f"{follower.returncode}: {told}")


def member(name, script):
    return document("Deployment", name, {
        "resourceSelector": "true", "job": {"command": {"run": ["/bin/sh", "-c", script]}}},
        {"layer": "node"})


LAYER = 'deployment.metadata["layer"] == "node"'
BRACKET = [document("Resource", f"h{i}", {"kind": "host"}) for i in range(1, 3)] + [
    document("Environment", "prod", {"resourceSelector": "true"}),
    member("drain", "true"), member("other", "true"),
    member("agent", "[ $DROVER_VERSION != bad ] || [ $DROVER_RESOURCE != h1 ]"),
    document("RolloutPolicy", "once", {"selector": LAYER, "rules": [{"deploymentBracket": {
        "deploymentSelector": "true", "preSelector": 'deployment.name == "drain"',
        "postSelector": 'deployment.name == "restore"', "readinessMode": "immediate",
        "rollbackStrategy": "individual"}}]}),
    document("Version", "drain-1", {"deployment": "drain", "tag": "1"}),
    document("Version", "restore-1", {"deployment": "restore", "tag": "1"}),
]


def bracketed(cli):
    """The end of a rollout is that of its version groups: hooks and rollbacks belong to it."""
    server = cli.server
    broken = server.folder / "broken"

    def jobs(query):
        return server.request("GET", f"/api/v1/jobs?{query}&limit=1000").json["items"]

    def at_rest(name, restored):
        open_ = jobs("open=true")
        ended = [j for j in jobs("deployment=restore") if j["state"] == "succeeded"]
        good = not open_ and len(ended) == restored
        cli.tap.test(name, None if good else f"{open_} {ended}")

    fleet = BRACKET + [member("restore", f"sleep 1; [ ! -e {broken} ]")]
    cli.expect("a bracket", 0, "apply", "-f", "-", "--wait", err="4 of 4 done",
               stdin=many(*fleet).encode())
    result = cli.expect("publish --wait in a bracket", 0, "version", "publish", "agent", "1",
                        "--wait", err="2 of 2 done")
    at_rest("the post members have ended", 2)
    cli.tap.test("and were waited for in words",
                 None if "to end; h1 is being changed by restore" in result.err else result)
    cli.expect("apply --wait in a bracket", 0, "apply", "-f", "-", "--wait", err="2 of 2 done",
               stdin=many(document("Version", "other-1", {"deployment": "other", "tag": "1"})
                          ).encode())
    at_rest("all of it has ended, too", 4)
    cli.expect("what was rolled back has failed", 1, "version", "publish", "agent", "bad",
               "--wait", err="1 of 2 done, 0 in flight, 0 failed, 1 rolled back")
    at_rest("and the host is whole again", 6)
    broken.touch()
    cli.expect("a hook that fails", 1, "version", "publish", "other", "2", "--wait",
               err="2 of 2 done, 0 in flight, 0 failed, 2 version groups to end; h1 failed for "
               "restore")
    broken.unlink()
    rollouts = server.request("GET", "/api/v1/rollouts?limit=3").json
    rest = server.request("GET", f"/api/v1/rollouts?continue={rollouts['continue']}").json
    states = {one["deployment"]: (one["state"], one["groups"])
              for one in rollouts["items"] + rest["items"]}
    cli.tap.test("what the server says", drover.difference(
        {"agent": ("failed", 0), "drain": ("failed", 2), "other": ("failed", 2),
         "restore": ("failed", 2)}, states))


def logs(cli):
    """What a job writes is seen while it runs, and the command ends when the job does."""
    server = cli.server
    gate = server.folder.parent / "gate"
    script = f'echo first; while [ ! -e {gate} ]; do sleep 0.1; done; echo last'
    server.request("POST", "/api/v1/apply", many(
        document("Deployment", "talks", {
            "resourceSelector": 'resource.name == "h1"',
            "job": {"command": {"run": ["/bin/sh", "-c", script]}}}),
        document("Version", "talks-1", {"deployment": "talks", "tag": "1"})))
    job = servers.wait_for(lambda: server.request(
        "GET", "/api/v1/jobs?deployment=talks").json["items"])[0]
    with subprocess.Popen([server.program, "logs", str(job["number"]), "-f", "--data",
                           str(server.folder)], stdout=subprocess.PIPE) as process:
        text, good = read_until(process.stdout.fileno(), "first\n", 20)
        cli.tap.test("logs -f: what was written so far", None if good else text)
        cli.tap.test("logs -f: goes on with the job", None if process.poll() is None else "no")
        gate.touch()
        text, good = read_until(process.stdout.fileno(), "last\n", 20)
        cli.tap.test("logs -f: what comes later", None if good else text)
        cli.tap.test("logs -f: ends with the job", drover.difference(0, process.wait(timeout=20)))


def screen_until(terminal, wanted, seconds=10):
    """The last screen, as lines, and whether it is the one that is wanted: what is shown is drawn
    again and again, also before a key is read."""
    text, end = "", time.monotonic() + seconds
    while True:
        text += read_until(terminal, "any other key goes back", 1)[0]
        shown = text.rsplit("\033[H", 1)[-1].replace("\r", "").split("\n")
        good = "any other key goes back" in shown[-1] and wanted(shown)
        if good or time.monotonic() > end:
            return shown, good


def watching_little(cli):
    """An explanation that is longer than the screen: its beginning is what counts."""
    child, terminal = cli.terminal("watch", rows=7)
    read_until(terminal, "app is paused", 10)
    os.write(terminal, b"G\n")
    shown, good = screen_until(terminal, lambda at: "h4 waits for app" in at[0])
    good = good and len(shown) <= 7 and "...\033[K" in shown
    cli.tap.test("watch: an explanation in little room", None if good else shown)
    os.write(terminal, b"j")
    moved, good = screen_until(terminal, lambda at: at[0] == shown[1])
    cli.tap.test("watch: it can be moved", None if good and len(moved) <= 7 else (shown, moved))
    os.write(terminal, b"G")
    moved, good = screen_until(terminal, lambda at: "...\033[K" not in at)
    good = good and any("released by" in line for line in moved)
    cli.tap.test("watch: to its end", None if good else moved)
    os.write(terminal, b"xq")
    read_until(terminal, "\033[?1049l", 10)
    os.waitpid(child, 0)
    os.close(terminal)


def watching(cli):
    """News must come by the stream: without it watch looks only every ten seconds."""
    server = cli.server
    servers.wait_for(lambda: not server.request("GET", "/api/v1/jobs?open=true").json["items"])
    server.request("POST", "/api/v1/actions/pause", {"deployment": "app"})
    child, terminal = cli.terminal("watch")
    text, good = read_until(terminal, "nothing waits", 10)
    cli.tap.test("watch: at rest", None if good and "concurrency" in text else text)
    started = time.monotonic()
    server.request("POST", "/api/v1/deployments/app/versions", {"tag": "7"})
    text, good = read_until(terminal, "app is paused", 8)
    cli.tap.test("watch: a version appears at once",
                 None if good and time.monotonic() - started < 8 else text)
    os.write(terminal, b"G\n")
    text, good = read_until(terminal, "released by", 8)
    cli.tap.test("watch: the last one's explanation", None if good and "h4" in text else text)
    watching_little(cli)
    server.request("POST", "/api/v1/actions/resume", {"deployment": "app"})
    text, good = read_until(terminal, "h4 is done", 20)
    cli.tap.test("watch: which goes on", None if good else text)
    server.stop(signal.SIGKILL)
    os.write(terminal, b"x")
    text, good = read_until(terminal, "cannot be reached", 20)
    cli.tap.test("watch: a server that is gone", None if good else text)
    server.start()
    text, good = read_until(terminal, "4/4", 20)
    cli.tap.test("watch: and comes back", None if good else text)
    os.write(terminal, b"q")
    read_until(terminal, "\033[?1049l", 10)
    cli.tap.test("watch: q", drover.difference(0, os.waitstatus_to_exitcode(
        os.waitpid(child, 0)[1])))
    os.close(terminal)


def replaying(cli):
    same = cli.expect("replay", 0, "replay", out="are the same again")
    figures = json.loads(cli.run("replay", "-o", "json").out)
    cli.tap.test("its figures", None if figures["same"] and figures["decisions"] > 50 else same)
    trace = cli.expect("replay -o trace", 0, "replay", "-o", "trace", out="run app bad on h1")
    entry = [e for e in cli.server.request("GET", "/api/v1/journal?limit=1000").json["items"]
             if e["kind"] == "fact" and e["entry"].get("fact") == "document"
             and "app-2" in json.dumps(e)][0]
    cli.tap.test("a line each decision",
                 None if len(trace.out.splitlines()) == figures["decisions"] else trace)
    cli.expect("why it waited then", 0, "replay", "h4", "--until", str(entry["sequence"]),
               out="h4 waits for app: 2 of 2 slots are taken")
    cli.expect("why somebody waited who is not there", 1, "replay", "nope")
    cli.expect("no number", 2, "replay", "--until", "yesterday", err="--until")
    cli.server.stop()
    with sqlite3.connect(cli.server.folder / "drover.db") as store:
        row = store.execute("select sequence, json from journal where kind = 'decision' and json "
                            "like '%\"decision\":\"job\"%' order by sequence limit 1").fetchone()
        store.execute("drop trigger journal_is_not_changed")
        store.execute("update journal set json = ? where sequence = ?",
                      (row[1].replace("h1", "h3"), row[0]))
    store.close()
    cli.server.start()
    cli.expect("a journal that was tampered with", 1, "replay", err=", step ")


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with servers.Server(program) as server:
            cli = Cli(tap, server)
            for part in (waiting, logs, watching, replaying):
                part(cli)
        with servers.Server(program) as server:
            bracketed(Cli(tap, server))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
