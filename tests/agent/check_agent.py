#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover-agent against a made-up host: a folder with busybox in it, never this machine's root."""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.drover import Tap, difference, programs, run

BUSYBOX = "/bin/busybox"
APPLETS = ["sh", "env", "cat", "echo", "sleep", "touch", "ls", "kill", "mkdir"]
ID = "uid-1_tuning_1.2.3"
COPY = "/var/lib/skyhook/tuning"


def step(path, arguments=(), codes=(0,), **more):
    return {"name": path.split("/")[-1], "path": path, "arguments": list(arguments),
            "returncodes": list(codes), "on_host": True, "idempotence": False,
            "upgrade_step": False, **more}


class Host:
    """A root folder with a package in it."""

    def __init__(self, agent):
        self.agent = agent
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="drover-agent-"))
        for folder in ("bin", "etc", "sbin", "dev", "tmp"):
            (self.root / folder).mkdir()
        shutil.copy(BUSYBOX, self.root / "bin/busybox")
        for applet in APPLETS:
            (self.root / "bin" / applet).symlink_to("busybox")
        (self.root / "dev/null").touch()
        self.package = self.root / COPY[1:]
        (self.package / "skyhook_dir").mkdir(parents=True)
        (self.package / "configmaps").mkdir()
        self.config = {"schema_version": "v1", "package_name": "tuning",
                       "package_version": "1.2.3", "expected_config_files": [], "modes": {}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)

    def script(self, path, text):
        file = self.package / "skyhook_dir" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n" + text + "\n")
        return path

    def command(self, name, text):
        (self.root / "bin" / name).write_text("#!/bin/sh\n" + text + "\n")
        (self.root / "bin" / name).chmod(0o755)

    def modes(self, **modes):
        self.config["modes"] = {name.replace("_", "-"): steps for name, steps in modes.items()}

    def words(self, mode, *more):
        (self.package / "config.json").write_text(json.dumps(self.config))
        return [mode, self.root, COPY, *more]

    def environment(self, env):
        return {"SKYHOOK_RESOURCE_ID": ID, "COPY_RESOLV": "false", "PATH": "/bin:/sbin",
                "TZ": "UTC", **env}

    def run(self, mode, *more, **env):
        return run(self.agent, *self.words(mode, *more), env=self.environment(env))

    def text(self, path):
        file = self.root / path
        return file.read_text() if file.exists() else None

    def files(self, folder):
        top = self.root / folder
        return sorted(str(f.relative_to(top)) for f in top.rglob("*") if f.is_file())


def status(result, wanted):
    return None if result.status == wanted else result


def flag(path, marker="W11fWzBd"):
    return f"etc/skyhook/flags/tuning/1.2.3/{path}_{marker}"


def simple(h):
    h.modes(apply=[step(h.script("a.sh", "echo ran >> /count; echo hello; echo bad >&2"))],
            apply_check=[step(h.script("a_check.sh", "exit 0"))])


def test_apply_runs_once(h):
    simple(h)
    first, second = h.run("apply"), h.run("apply")
    if first.status or second.status:
        return f"{first}\n{second}"
    lines = [line for line in first.out.splitlines() if "hello" in line]
    if len(lines) != 1 or not lines[0].startswith("[out]20") or not lines[0].endswith(" hello"):
        return first
    if "[err]20" not in first.err or "bad" not in first.err:
        return first
    text = h.text(flag("a.sh"))
    if not text or not text.startswith("last_run: 20") or \
            not text.endswith("\nstep_always_runs: False"):
        return f"flag: {text}"
    if h.text("etc/skyhook/flags/START") != "":
        return "no START"
    return difference("ran\n", h.text("count"))


def test_always_run(h):
    simple(h)
    h.run("apply")
    h.run("apply", OVERLAY_ALWAYS_RUN_STEP="true")
    return difference("ran\nran\n", h.text("count"))


def test_idempotent_step_always_runs(h):
    simple(h)
    h.config["modes"]["apply"][0]["idempotence"] = True
    h.run("apply")
    h.run("apply")
    return difference("ran\nran\n", h.text("count"))


def test_config_always_runs(h):
    simple(h)
    h.config["modes"] = {"config": h.config["modes"]["apply"],
                         "config-check": h.config["modes"]["apply-check"]}
    h.run("config")
    h.run("config")
    return difference("ran\nran\n", h.text("count"))


def test_logs(h):
    simple(h)
    h.run("apply")
    logs = h.files("var/log/skyhook/tuning/1.2.3")
    if len(logs) != 2 or not logs[0].startswith("a.sh-20") or not logs[0].endswith(".log") or \
            logs[1] != logs[0] + ".err":
        return f"found {logs}"
    if not h.text("var/log/skyhook/tuning/1.2.3/" + logs[0]).endswith(" hello\n"):
        return "the log lacks its line"
    return None


def test_no_logs(h):
    simple(h)
    h.run("apply", SKYHOOK_AGENT_WRITE_LOGS="false")
    return difference([], h.files("var/log") if (h.root / "var/log").exists() else [])


def test_log_retention(h):
    simple(h)
    folder = h.root / "var/log/skyhook/tuning/1.2.3"
    folder.mkdir(parents=True)
    for i in range(8):
        for suffix in ("", ".err"):
            file = folder / f"a.sh-2020-01-01-00000{i}.log{suffix}"
            file.touch()
            os.utime(file, (i, i))
    (folder / "a.sh-b-2020-01-01-000000.log").touch()
    h.run("apply")
    left = h.files("var/log/skyhook/tuning/1.2.3")
    kept = [f"a.sh-2020-01-01-00000{i}.log{s}" for i in range(4, 8) for s in ("", ".err")]
    return difference(sorted(kept + ["a.sh-b-2020-01-01-000000.log"]),
                      [f for f in left if "2020" in f])


def test_real_return_codes(h):
    path = h.script("a.sh", "exit 3")
    h.modes(apply=[step(path, codes=[0, 3])], apply_check=[step(path, codes=[1])])
    good, bad = h.run("apply"), h.run("apply-check")
    if good.status != 0 or bad.status != 1 or "a.sh: ended with 3" not in bad.err:
        return f"{good}\n{bad}"
    return None if h.text(flag("a.sh", "W11fWzAsIDNd")) else f"{h.files('etc')}"


def test_first_failure_ends(h):
    h.modes(apply=[step(h.script("a.sh", "exit 1")), step(h.script("b.sh", "touch /b"))],
            apply_check=[step("a.sh")])
    result = h.run("apply")
    if (h.root / "b").exists() or (h.root / flag("a.sh")).exists():
        return "went on"
    return status(result, 1)


def test_checks_all_run(h):
    h.modes(apply=[step(h.script("a.sh", ":"))],
            apply_check=[step(h.script("a_check.sh", "exit 1")),
                         step(h.script("b.sh", "touch /b"))])
    result = h.run("apply-check")
    if result.status != 1 or not (h.root / "b").exists() or \
            "1 of 2 checks failed" not in result.err:
        return result
    if (h.root / "etc/skyhook/flags/apply-check_ALL_CHECKED").exists():
        return "marked as checked"
    return difference("a_check.sh True\nb.sh False", h.text("etc/skyhook/flags/check_results"))


def test_history(h):
    simple(h)
    h.run("apply")
    h.run("apply-check")
    if h.text("etc/skyhook/flags/apply-check_ALL_CHECKED") != "":
        return "not marked as checked"
    first = json.loads(h.text("etc/skyhook/history/tuning.json"))
    h.config["package_version"] = "1.3.0"
    h.run("apply-check")
    second = json.loads(h.text("etc/skyhook/history/tuning.json"))
    found = [first["current-version"], second["current-version"],
             [e["version"] for e in second["history"]]]
    if not second["history"][0]["time"].endswith("+00:00"):
        return second
    return difference(["1.2.3", "1.3.0", ["1.3.0", "1.2.3"]], found)


def test_corrupt_history(h):
    simple(h)
    (h.root / "etc/skyhook/history").mkdir(parents=True)
    (h.root / "etc/skyhook/history/tuning.json").write_text("{nonsense")
    result = h.run("apply-check")
    if h.text("etc/skyhook/history/tuning.json.backup") != "{nonsense":
        return result
    if len(json.loads(h.text("etc/skyhook/history/tuning.json"))["history"]) != 1:
        return h.text("etc/skyhook/history/tuning.json")
    return status(result, 0)


def test_upgrade(h):
    script = h.script("up.sh", 'echo "$@ $PREVIOUS_VERSION $CURRENT_VERSION" >> /seen')
    h.modes(upgrade=[step(script, upgrade_step=True)], upgrade_check=[step(script)])
    h.run("upgrade")
    h.run("upgrade-check")
    h.run("upgrade")
    return difference("unknown 1.2.3 unknown 1.2.3\n unknown 1.2.3\n1.2.3 1.2.3 1.2.3 1.2.3\n",
                      h.text("seen"))


def test_uninstall(h):
    simple(h)
    h.config["expected_config_files"] = ["missing"]
    h.modes(**{name.replace("-", "_"): steps for name, steps in h.config["modes"].items()},
            uninstall=[step(h.script("u.sh", ":"))], uninstall_check=[step("u.sh")])
    h.config["expected_config_files"] = []
    h.run("apply")
    h.config["expected_config_files"] = ["missing"]
    results = [h.run("uninstall").status, h.run("uninstall-check").status]
    if results != [0, 0] or (h.root / flag("a.sh")).exists() or (h.root / flag("u.sh")).exists():
        return f"{results} {h.files('etc/skyhook')}"
    history = json.loads(h.text("etc/skyhook/history/tuning.json"))
    return difference("uninstalled", history["current-version"])


def test_no_steps(h):
    simple(h)
    result = h.run("uninstall-check")
    if "warning: there are no steps for uninstall-check" not in result.err:
        return result
    history = json.loads(h.text("etc/skyhook/history/tuning.json"))
    return status(result, 0) or difference("uninstalled", history["current-version"])


def test_expected_files(h):
    simple(h)
    h.config["expected_config_files"] = ["conf.d"]
    result = h.run("apply")
    if "Expected config file conf.d not found in configmaps directory." not in result.err:
        return result
    (h.package / "configmaps/conf.d").touch()
    return status(result, 1) or status(h.run("apply"), 0)


def test_root_dir(h):
    simple(h)
    (h.root / "usr/lib").mkdir(parents=True)
    (h.root / "lib").symlink_to("/usr/lib")  # leads to the host's, not to the container's
    (h.package / "root_dir/lib").mkdir(parents=True)
    (h.package / "root_dir/lib/x.so").write_text("content")
    (h.package / "root_dir/lib/x.so").chmod(0o640)
    (h.package / "root_dir/lib/y.so").symlink_to("x.so")
    (h.package / "root_dir/spool").mkdir()
    (h.package / "root_dir/spool").chmod(0o1777)
    result = h.run("apply")
    if (h.root / "spool").stat().st_mode & 0o7777 != 0o1777:
        return "the folder's mode"
    file = h.root / "usr/lib/x.so"
    if not file.exists() or file.stat().st_mode & 0o777 != 0o640:
        return result
    if os.readlink(h.root / "usr/lib/y.so") != "x.so":
        return "the link"
    return status(result, 0)


def test_environment(h):
    script = h.script("e.sh", 'echo "$FROM|$OWN|$STEP_ROOT|$SKYHOOK_DIR|$(cat /proc/none 2>&1)|'
                              '$1|$(echo $PWD)" > /seen')
    h.modes(apply=[step(script, ["env:FROM"], env={"OWN": "step", "STEP_ROOT": "no"})],
            apply_check=[step(script)])
    result = h.run("apply", FROM="container", OWN="container")
    found = (h.text("seen") or str(result)).strip().split("|")
    return difference(["container", "step", COPY + "/skyhook_dir", COPY, "container", COPY],
                      found[:4] + found[5:])


def test_missing_variable(h):
    script = h.script("e.sh", "touch /ran")
    h.modes(apply=[step(script, ["env:NOPE", "env:NEITHER"])], apply_check=[step(script)])
    result = h.run("apply")
    if "NOPE" not in result.err or "NEITHER" not in result.err or (h.root / "ran").exists():
        return result
    return status(result, 1)


def test_on_host_false(h):
    script = h.script("c.sh", 'echo "$SKYHOOK_DIR"; test -e /proc/self')
    h.modes(apply=[step(script, on_host=False)], apply_check=[step(script)])
    result = h.run("apply", PATH="/usr/bin:/bin")
    return status(result, 0) or (None if f" {h.package}\n" in result.out else result)


def test_background_process(h):
    h.modes(apply=[step(h.script("d.sh", "sleep 30 & echo $! > /pid"))],
            apply_check=[step("d.sh")])
    start = time.monotonic()
    result = h.run("apply")
    os.kill(int(h.text("pid")), signal.SIGKILL)
    if time.monotonic() - start > 20:
        return "waited for what was left in the background"
    return status(result, 0)


def test_background_process_that_prints_for_ever(h):
    """What is left behind fills its pipe faster than it is emptied, and is not waited for."""
    noise = "/bin/busybox yes & echo $! >> /pids; "
    h.modes(apply=[step(h.script("d.sh", noise + noise + "echo done"))],
            apply_check=[step("d.sh")])
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen([str(w) for w in [h.agent, *h.words("apply")]],
                                   env=h.environment({}), stdout=nowhere, stderr=nowhere)
        try:
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return "waited for what was left in the background"
        finally:
            for pid in (h.text("pids") or "").split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it ended when nobody read any more
    return None if code == 0 else f"ended with {code}"


def test_nobody_reads(h):
    """Whoever showed its output is gone: the step runs to its end, with its log."""
    simple(h)
    h.script("a.sh", "echo one; echo two >&2; echo three; touch /ran")
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as closed:
        code = subprocess.run([str(w) for w in [h.agent, *h.words("apply")]],
                              env=h.environment({}), stdout=closed, stderr=closed,
                              check=False).returncode
    if code != 0 or not (h.root / "ran").exists():
        return f"ended with {code}"
    log, = (h.root / "var/log/skyhook/tuning/1.2.3").glob("a.sh-*.log")
    return None if " three\n" in log.read_text() else log.read_text()


def test_broken_pipe_of_a_step(h):
    """Steps have the signals that programs begin with."""
    script = h.script("p.sh", "/bin/busybox yes | /bin/busybox head -n 1")
    h.modes(apply=[step(script)], apply_check=[step(script)])
    return status(h.run("apply"), 0)


def test_beside_each_other(h):
    """Packages that run at the same time share flags/START and more."""
    simple(h)
    (h.package / "root_dir/etc").mkdir(parents=True)
    (h.package / "root_dir/etc/shared").write_text("content")
    (h.package / "root_dir/etc/link").symlink_to("shared")
    words = [str(w) for w in [h.agent, *h.words("apply-check")]]
    for _ in range(10):
        agents = [subprocess.Popen(words, env=h.environment({}), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT) for _ in range(8)]
        results = [(agent.communicate()[0], agent.returncode) for agent in agents]
        bad = [text.decode() for text, code in results if code != 0]
        if bad:
            return "\n".join(bad)
    left = [str(f) for f in h.root.rglob("*drover*") if "var" not in f.parts]
    return difference([], left)


def test_longest_flag(h):
    """A name of 255 bytes, which is as long as they are."""
    arguments = ["x" * 174]
    marker = base64.b64encode(f"{arguments}_[0]".encode()).decode()
    path = "a" * (254 - len(marker))
    h.modes(apply=[step(h.script(path, ":"), arguments)], apply_check=[step(path)])
    result = h.run("apply", SKYHOOK_AGENT_WRITE_LOGS="false")
    return status(result, 0) or (None if (h.root / flag(path, marker)).exists() else result)


def test_key_twice(h):
    """The last one counts, as for every reader of JSON that package images were made for."""
    simple(h)
    words = h.words("apply")
    file = h.package / "config.json"
    file.write_text(file.read_text().replace('"returncodes"', '"returncodes": [9], "returncodes"')
                    .replace('"modes": {', '"modes": {"apply": [], '))
    result = run(h.agent, *words, env=h.environment({}))
    return status(result, 0) or difference("ran\n", h.text("count"))


def terminated(h, mode, *more, grace):
    process = subprocess.Popen([str(w) for w in [h.agent, *h.words(mode, *more)]],
                               env=h.environment({"SKYHOOK_AGENT_GRACE_SECONDS": grace}),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(1000):
        if (h.root / "ready").exists():
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    return process.returncode, out.decode() + errors.decode()


def test_sigterm_ends_the_step(h):
    h.modes(apply=[step(h.script("t.sh", "trap 'echo bye; exit 0' TERM; touch /ready; "
                                         "while :; do sleep 0.1; done")),
                   step(h.script("u.sh", "touch /second"))],
            apply_check=[step("t.sh")])
    code, text = terminated(h, "apply", grace="30")
    if code != 1 or " bye" not in text or (h.root / "second").exists():
        return f"{code} {text}"
    return "flag" if (h.root / flag("t.sh")).exists() else None


def test_sigterm_then_kill(h):
    h.modes(apply=[step(h.script("t.sh", "trap '' TERM; touch /ready; "
                                         "while :; do sleep 0.1; done"))],
            apply_check=[step("t.sh")])
    code, text = terminated(h, "apply", grace="1")
    return None if code == 1 and "told to end" in text else f"{code} {text}"


def data(**interrupt):
    return base64.b64encode(json.dumps(interrupt).encode()).decode()


FLAGS = f"etc/skyhook/interrupts/flags/{ID}"


def test_service_interrupt(h):
    simple(h)
    h.command("systemctl", 'echo "$@" >> /calls')
    words = data(type="service_restart", services=["kubelet", "containerd"])
    results = [h.run("interrupt", words).status for _ in range(2)]
    found = [results, h.text("calls"), h.files(FLAGS)]
    logs = h.files("var/log/skyhook/tuning/1.2.3/interrupts")
    head = h.text("var/log/skyhook/tuning/1.2.3/interrupts/" + logs[0]).splitlines()[0]
    wanted = [[0, 0], "daemon-reload\nrestart kubelet\nrestart containerd\n",
              [f"service_restart_{i}.complete" for i in range(3)], "systemctl daemon-reload"]
    float(h.text(f"{FLAGS}/service_restart_0.complete"))
    return difference(wanted, found + [head])


def test_failed_interrupt(h):
    simple(h)
    h.command("systemctl", 'test "$1" = daemon-reload')
    result = h.run("interrupt", data(type="service_restart", services=["x"]))
    if "systemctl restart x: ended with 1" not in result.err:
        return result
    return status(result, 1) or difference(["service_restart_0.complete"], h.files(FLAGS))


def test_reboot(h):
    simple(h)
    h.command("reboot", 'echo x >> /calls; kill -TERM $$')
    first = h.run("interrupt", data(type="node_restart"))
    second = h.run("interrupt", data(type="node_restart"))
    return difference([1, 0, "x\n"], [first.status, second.status, h.text("calls")])


def test_reboot_is_not_interrupted(h):
    simple(h)
    h.command("reboot", "touch /ready; sleep 1; touch /done")
    code, text = terminated(h, "interrupt", data(type="node_restart"), grace="0")
    if code != 1 or "the host goes down" not in text or not (h.root / "done").exists():
        return f"{code} {text}"
    return difference([0, ["node_restart_0.complete"]],
                      [h.run("interrupt", data(type="node_restart")).status, h.files(FLAGS)])


def test_reboot_that_is_only_asked_for(h):
    """Who says it was done lets the next stage begin on a host that goes down."""
    simple(h)
    h.command("reboot", "touch /ready")
    code, text = terminated(h, "interrupt", data(type="node_restart"), grace="60")
    if code != 1 or "the host goes down" not in text:
        return f"{code} {text}"
    return difference([0, ["node_restart_0.complete"]],
                      [h.run("interrupt", data(type="node_restart")).status, h.files(FLAGS)])


def boot(h, name):
    file = h.root / "proc/sys/kernel/random/boot_id"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(name + "\n")


def test_reboot_that_does_not_come(h):
    """It is no success, is asked for again, and is one when it has come, however late."""
    simple(h)
    h.command("reboot", "echo x >> /calls")
    boot(h, "first")
    results = [h.run("interrupt", data(type="node_restart"), SKYHOOK_AGENT_GRACE_SECONDS="1")
               for _ in range(2)]
    boot(h, "second")
    results += [h.run("interrupt", data(type="node_restart")) for _ in range(2)]
    if "the host is still there after 1 s" not in results[0].err:
        return results[0]
    return difference([[1, 1, 0, 0], "x\nx\n", ["node_restart_0.complete"]],
                      [[r.status for r in results], h.text("calls"), h.files(FLAGS)])


def test_reboot_that_only_ended_the_agent(h):
    """It is told to end by somebody who deletes its pod: the host did not go down."""
    simple(h)
    h.command("reboot", "echo x >> /calls; touch /ready")
    boot(h, "first")
    code, text = terminated(h, "interrupt", data(type="node_restart"), grace="60")
    again = h.run("interrupt", data(type="node_restart"), SKYHOOK_AGENT_GRACE_SECONDS="0")
    boot(h, "second")
    done = h.run("interrupt", data(type="node_restart"))
    return difference([1, 1, 0, "x\nx\n"], [code, again.status, done.status, h.text("calls")])


def test_reboot_of_a_host_that_says_no_boot(h):
    """Whether it came cannot be told: it is not asked for without end."""
    simple(h)
    h.command("reboot", "echo x >> /calls")
    results = [h.run("interrupt", data(type="node_restart"), SKYHOOK_AGENT_GRACE_SECONDS="0").status
               for _ in range(2)]
    return difference([[1, 0], "x\n"], [results, h.text("calls")])


def test_other_interrupts(h):
    simple(h)
    h.command("service", 'echo "$@" >> /calls')
    results = [h.run("interrupt", data(type=t)).status
               for t in ("restart_all_services", "no_op", "script_interrupt", "unknown")]
    bad = h.run("interrupt", "!!!").status
    return difference([[0, 0, 0, 1], 1, "procps force-reload\n",
                       ["no_op.complete", "restart_all_services_0.complete"]],
                      [results, bad, h.text("calls"), h.files(FLAGS)])


def test_unknown_mode(h):
    simple(h)
    result = h.run("rejoice")
    return status(result, 0) or (None if 'no mode "rejoice"' in result.err else result)


def test_bad_resource_id(h):
    simple(h)
    result = h.run("apply", SKYHOOK_RESOURCE_ID="a_b")
    return status(result, 1) or (None if "RESOURCE_PACKAGE_VERSION" in result.err else result)


def test_legacy_arguments_and_copy(h):
    simple(h)
    h.words("apply")
    moved = h.root / "image"
    shutil.copytree(h.package, moved)
    shutil.rmtree(h.package)
    result = run(h.agent, "apply", h.root, COPY,
                 env=h.environment({"SKYHOOK_DATA_DIR": str(moved)}))
    wrong = run(h.agent, "apply", env=h.environment({}))
    return status(result, 0) or status(wrong, 1) or difference("ran\n", h.text("count"))


def test_resolv(h):
    simple(h)
    result = h.run("apply", COPY_RESOLV="true")
    return status(result, 0) or difference(pathlib.Path("/etc/resolv.conf").read_text(),
                                           h.text("etc/resolv.conf"))


def refused(change, message):
    def test(h):
        simple(h)
        change(h.config)
        result = h.run("apply")
        return status(result, 1) or (None if message in result.err else result)
    return test


def at_step(**changes):
    def change(config):
        config["modes"]["apply"][0].update(changes)
    return change


def at_top(**changes):
    def change(config):
        config.update(changes)
    return change


BAD = [
    ("another schema", at_top(schema_version="v2"), "schema_version: allowed: v1"),
    ("a short version", at_top(package_version="1.0"), "package_version: allowed"),
    ("a version with a leading zero", at_top(package_version="2024.01.01"), "package_version"),
    ("a version with an empty part", at_top(package_version="1.0.0-a..b"), "package_version"),
    ("a version with two builds", at_top(package_version="1.0.0+a+b"), "package_version"),
    ("a name with a slash", at_top(package_name="../x"), "package_name: allowed"),
    ("no modes", at_top(modes={}), "there are no steps"),
    ("an unknown mode", at_top(modes={"install": []}), 'modes: found "install"'),
    ("only checks", lambda c: c["modes"].pop("apply"), "only checks"),
    ("no checks", lambda c: c["modes"].pop("apply-check"),
     "Couldn't validate steps. There are no checks for any of the apply steps."),
    ("an upgrade_step elsewhere", at_step(upgrade_step=True), "modes.apply[0].upgrade_step"),
    ("a missing file", at_step(path="gone.sh"), "Following steps did not exist:gone.sh"),
    ("a bad name", at_step(name="a b"), "modes.apply[0].name: allowed"),
    ("no return codes", at_step(returncodes=[]), "modes.apply[0].returncodes"),
    ("a return code that is a text", at_step(returncodes=["0"]), "modes.apply[0].returncodes"),
    ("an unknown key", at_step(when="now"), "modes.apply[0].when: allowed"),
    ("arguments that are a text", at_step(arguments="x"), "modes.apply[0].arguments"),
    ("a variable that is a number", at_step(env={"A": 1}), "modes.apply[0].env"),
    ("a variable with a zero byte", at_step(env={"A": "x\0y"}), "modes.apply[0].env"),
    ("a name of a variable with one", at_step(env={"A\0=": "x"}), "modes.apply[0].env"),
]
GOOD_VERSIONS = ["0.0.0", "1.2.3-rc.1", "1.2.3-0a.b-c+build.01", "1.2.3+001", "10.20.30--"]


def test_good_versions(h):
    simple(h)
    for version in GOOD_VERSIONS:
        h.config["package_version"] = version
        result = h.run("apply")
        if result.status:
            return result
    return None


def markers(h):
    """Flag names as a Python list shows them."""
    lists = [["apply"], [], ["it's"], ['"'], ['it\'s "x"'], ["a\\b\n\t\x01"], ["é€😀"],
             ["\u200b\u2028\xa0\xad\ue000"], ["a", "b c"],
             ["\u0890\u08e2\U000110bd\U00013430\U0001bca0\U0001d173"]]
    for arguments in lists:
        h.modes(apply=[step(h.script("m.sh", ":"), arguments, [0, 3])],
                apply_check=[step("m.sh")])
        result = h.run("apply")
        marker = base64.b64encode(f"{arguments}_{[0, 3]}".encode()).decode()
        if result.status or not (h.root / flag("m.sh", marker)).exists():
            return f"{arguments!r}: {marker}\n{h.files('etc/skyhook/flags')}\n{result}"
    return None


def main():
    tap = Tap()
    tests = [(name[5:].replace("_", " "), value) for name, value in globals().items()
             if name.startswith("test_")]
    tests += [(f"refuses {name}", refused(change, message)) for name, change, message in BAD]
    tests += [("markers are those of Python", markers)]
    for program in programs():
        agent = program.parent / "drover-agent"
        for name, test in tests:
            with Host(agent) as h:
                try:
                    problem = test(h)
                except (OSError, TypeError, ValueError, LookupError) as error:
                    problem = repr(error)
                tap.test(f"{program.parent.name}: {name}", problem)
    return tap.done()


if __name__ == "__main__":
    if os.geteuid() != 0:
        os.execvp("unshare", ["unshare", "--map-root-user", sys.executable, *sys.argv])
    sys.exit(main())
