#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a server: a full disk, a folder that cannot be written, a file that is
damaged or another program's, a folder in use. A clear message, nothing lost, and it goes on when
the cause is gone. TAP."""

import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

API = "drover.dev/v1alpha1"
WRITES = 30
BACKUPS_MAX = 20
LOOK_SECONDS = 2


def document(kind, name, spec):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def put(server, name):
    return server.request("PUT", f"/api/v1/resources/{name}",
                          document("Resource", name, {"kind": "host"}), check=False)


def names(server):
    items = server.request("GET", "/api/v1/resources?limit=1000").json["items"]
    return {item["metadata"]["name"] for item in items}


def journal_length(server):
    return server.request("GET", "/api/v1/info").json["sequence"]


def refused_start(program, folder, *words):
    """The message of a server that does not start there."""
    run = subprocess.run([str(program), "serve", "--data", str(folder), "--listen", "127.0.0.1:0",
                          *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                         check=False)
    return run.returncode, run.stderr.decode()


def expect_refusal(tap, name, program, folder, part):
    status, text = refused_start(program, folder)
    good = status not in (0, 2) and part in text and str(folder) in text and \
        text.count("\n") == 1
    tap.test(name, None if good else f"status {status}: {text}")


def full_disk(tap, program, kind, means, folder=None):
    """means: two functions that take the server; they make its disk full, and free again."""
    fill, free = means
    with servers.Server(program, folder=folder) as server:
        start = {f"before-{i}" for i in range(5)}
        for name in sorted(start):
            put(server, name)
        fill(server)
        answers = {f"during-{i}": put(server, f"during-{i}") for i in range(WRITES)}
        taken = {name for name, answer in answers.items() if answer.status == 201}
        refused = [answer for answer in answers.values() if answer.status != 201]
        tap.test(f"{kind}: writes are refused", None if refused else "none was")
        wrong = [answer for answer in refused if answer.status not in (500, 503) or
                 "the disk is full" not in answer.body]
        tap.test(f"{kind}: and say why", None if not wrong else repr(wrong[0]))
        tap.test(f"{kind}: it can be read", None if names(server) == start | taken else
                 f"{names(server)} and not {start | taken}")
        free(server)
        after = put(server, "after")
        tap.test(f"{kind}: it goes on when there is room", None if after.status == 201 else after)
        there = start | taken | {"after"}
        tap.test(f"{kind}: what was taken is there, what was refused is not",
                 None if names(server) == there else names(server))
        length = journal_length(server)
        server.stop()
        server.start()
        tap.test(f"{kind}: after a restart, too",
                 None if names(server) == there and journal_length(server) == length
                 else names(server))


def small_files(tap, program):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(server):
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, before[1]))

    def free(server):
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, before)
    full_disk(tap, program, "a limit on files", (fill, free))


def small_disk(tap, program):
    """A real disk that is full, where one may be mounted."""
    name = "a disk of two megabytes"
    with tempfile.TemporaryDirectory(prefix="drover-faults-") as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "drover", folder],
                                 stderr=subprocess.DEVNULL, check=False).returncode == 0
        if not mounted:
            tap.skip(name, "it cannot be mounted here")
            return
        try:
            large = pathlib.Path(folder) / "large"

            def fill(_):
                with open(large, "wb", buffering=0) as file:
                    try:
                        while file.write(b"x" * 4096) == 4096:
                            pass
                    except OSError:
                        pass

            full_disk(tap, program, name, (fill, lambda _: large.unlink()), folder)
        finally:
            subprocess.run(["umount", folder], check=False)


def read_only(tap, program):
    """A folder that became read-only, by a mount in a name space of its own."""
    with tempfile.TemporaryDirectory(prefix="drover-faults-") as folder:
        with servers.Server(program, folder=folder) as server:
            put(server, "kept")
        data = pathlib.Path(folder) / "data"
        script = ('mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"')
        run = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(data), str(program),
                              "serve", "--data", str(data), "--listen", "127.0.0.1:0"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                             check=False)
        text = run.stderr.decode()
        if "drover" not in text:
            tap.skip("a read-only folder", "it cannot be made here")
            return
        good = run.returncode == 1 and str(data) in text and \
            ("Read-only file system" in text or "read-only" in text)
        tap.test("a read-only folder is named", None if good else f"{run.returncode}: {text}")
        with servers.Server(program, folder=folder) as server:
            tap.test("it goes on when it can be written",
                     None if names(server) == {"kept"} and put(server, "more").status == 201
                     else names(server))


def jobs_of(server, query=""):
    return server.request("GET", f"/api/v1/jobs?limit=100{query}").json["items"]


def begin_jobs(server, gate):
    """Two jobs that run until the gate is there, and a third that waits for a slot."""
    script = f"while [ ! -e {gate} ]; do sleep 0.05; done; echo ran >> {gate}.$DROVER_RESOURCE"
    items = [document("Resource", f"host-{i}", {"kind": "host"}) for i in range(3)] + [
        document("Environment", "prod", {"resourceSelector": "true"}),
        document("Deployment", "app", {"resourceSelector": "true", "job": {"command": {
            "run": ["/bin/sh", "-c", script]}}}),
        document("RolloutPolicy", "two", {"rules": [{"resourceConcurrency": {
            "groupSelector": "true", "limitType": "count", "limitValue": 2}}]}),
        document("Version", "app-1", {"deployment": "app", "tag": "1"})]
    server.request("POST", "/api/v1/apply", {"apiVersion": "v1", "kind": "List", "items": items})
    return servers.wait_for(lambda: len(list((server.folder / "jobs").glob("*.log"))) == 2 and
                            len([j for j in jobs_of(server) if j["state"] == "running"]) == 2)


def read_only_meanwhile(tap, program):
    """The folder becomes read-only under a server whose jobs run, which a disk that fails does to
    it: tests/support/read_only.c."""
    with tempfile.TemporaryDirectory(prefix="drover-faults-") as folder:
        flag, gate = pathlib.Path(folder) / "read-only", pathlib.Path(folder) / "gate"
        before = dict(os.environ)
        os.environ.update(LD_PRELOAD=str(program.parent / "tests" / "libread-only.so"),
                          DROVER_TEST_FOLDER=f"{folder}/data", DROVER_TEST_READ_ONLY=str(flag),
                          ASAN_OPTIONS="verify_asan_link_order=0")
        try:
            with servers.Server(program, folder=folder) as server:
                read_only_story(tap, server, flag, gate)
        finally:
            os.environ.clear()
            os.environ.update(before)


def read_only_story(tap, server, flag, gate):
    tap.test("two jobs run", None if begin_jobs(server, gate) else jobs_of(server))
    length = journal_length(server)
    flag.touch()
    answers = [put(server, f"during-{i}") for i in range(3)]
    wrong = [a for a in answers if a.status != 503 or "Read-only file system" not in a.body]
    tap.test("read-only meanwhile: writes are refused and say why", None if not wrong else wrong)
    gate.touch()
    ran = servers.wait_for(lambda: len(list(gate.parent.glob("gate.*"))) == 2)
    time.sleep(1)  # their supervisors find that they cannot write it down
    tap.test("nothing is lost or begun in it",
             None if ran and journal_length(server) == length and
             [j["state"] for j in jobs_of(server)] == ["running"] * 2 else jobs_of(server))
    flag.unlink()
    tap.test("it goes on when it can be written",
             None if put(server, "after").status == 201 else "it does not")
    servers.wait_for(lambda: len(list(gate.parent.glob("gate.*"))) == 4 and
                     not jobs_of(server, "&open=true"))
    tap.test("every job ran once, and its result is known",
             None if [j["state"] for j in jobs_of(server)] == ["succeeded"] * 4 and
             {p.read_text() for p in gate.parent.glob("gate.*")} == {"ran\n"} else jobs_of(server))
    there = {"host-0", "host-1", "host-2", "after"}
    server.stop()
    server.start()
    tap.test("what was refused is not there, after a restart, either",
             None if names(server) == there else names(server))


def foreign_and_damaged(tap, program):
    with tempfile.TemporaryDirectory(prefix="drover-faults-") as folder:
        data = pathlib.Path(folder) / "data"
        with servers.Server(program, folder=folder) as server:
            for number in range(200):
                put(server, f"host-{number}")
            expect_refusal(tap, "a folder in use is refused", program, data, "in use")
            tap.test("and its server goes on", None if put(server, "one-more").status == 201
                     else "it does not")
        good = (data / "drover.db").read_bytes()
        (data / "drover.db").write_bytes(b"somebody's letters, not a database. " * 40)
        expect_refusal(tap, "a file that is no database is refused", program, data, "damaged")
        tap.test("and left alone", None if b"somebody's letters" in
                 (data / "drover.db").read_bytes() else "it was changed")
        (data / "drover.db").unlink()
        with sqlite3.connect(data / "drover.db") as other:
            other.execute("CREATE TABLE theirs (x)")
        other.close()
        expect_refusal(tap, "another program's database is refused", program, data,
                       "belongs to another program")
        torn = bytearray(good)
        for at in range(4096, len(torn), 4096):
            torn[at:at + 64] = os.urandom(64)
        (data / "drover.db").write_bytes(bytes(torn))
        expect_refusal(tap, "a damaged database is refused", program, data, "damaged")
        (data / "drover.db").write_bytes(good[:len(good) // 2])
        expect_refusal(tap, "half a database is refused", program, data, "damaged")
        for leftover in data.glob("drover.db-*"):
            leftover.unlink()
        (data / "drover.db").write_bytes(good)
        with servers.Server(program, folder=folder) as server:
            tap.test("the good one is taken again", None if len(names(server)) == 201
                     else len(names(server)))


def backup_seen(server):
    """Asks for a backup and returns its file while it is made."""
    with server.connect() as connection:
        connection.sendall(f"GET /api/v1/backup HTTP/1.1\r\nHost: localhost\r\n"
                           f"Authorization: Bearer {server.token}\r\n\r\n".encode())
        end = time.monotonic() + LOOK_SECONDS
        while time.monotonic() < end:
            begun = list(server.folder.glob(".backup-*"))
            if begun:
                return begun
    return []


def half_a_backup(tap, program):
    """What a server that was killed in the middle of a backup leaves, and does not leave."""
    with servers.Server(program) as server:
        for number in range(40):
            server.request("PUT", f"/api/v1/resources/big-{number}", document(
                "Resource", f"big-{number}", {"kind": "host", "config": {"much": "x" * 500000}}))
        # It is there for a moment only: whoever looks away misses it, and asks once more.
        for _ in range(BACKUPS_MAX):
            begun = backup_seen(server)
            if begun:
                break
        server.stop(signal.SIGKILL)
        open_to_others = [path for path in server.folder.iterdir()
                          if path.stat().st_mode & 0o077 and path.name != "address"]
        tap.test("nobody else may read a backup that is made",
                 None if begun and not open_to_others else f"{begun} {open_to_others}")
        left = list(server.folder.glob(".backup-*"))
        server.start()
        still = list(server.folder.glob(".backup-*"))
        tap.test("half a backup is removed at the next start", None if not still else f"{still}")
        print(f"# {len(left)} left behind by the kill")
        tap.test("and nothing else is missing", None if len(names(server)) == 40 else "it is")


def main():
    tap = drover.Tap()
    for program in drover.programs():
        small_files(tap, program)
        small_disk(tap, program)
        read_only(tap, program)
        read_only_meanwhile(tap, program)
        foreign_and_damaged(tap, program)
        half_a_backup(tap, program)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
