# SPDX-License-Identifier: Apache-2.0
"""What the checks of the command line share: which programs to run, and TAP."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def programs():
    """The drover of each build folder that is tested: DROVER_BUILDS, set by scripts/run-tests."""
    folders = os.environ.get("DROVER_BUILDS", "build").split(os.pathsep)
    return [ROOT / folder / "drover" for folder in folders]


class Result:
    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err

    def __repr__(self):
        return f"exit status {self.status}\nstdout:\n{self.out}\nstderr:\n{self.err}"


def run(program, *words, stdin=b"", cwd=ROOT, env=None, timeout=120):
    """Runs it without colour and without the variables of whoever runs the tests."""
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
        if name in os.environ:
            environment[name] = os.environ[name]
    environment.update(env or {})
    process = subprocess.run([str(program), *[str(word) for word in words]], input=stdin, cwd=cwd,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                             timeout=timeout, check=False)
    return Result(process.returncode, process.stdout.decode("utf-8", "replace"),
                  process.stderr.decode("utf-8", "replace"))


def read_yaml(program, text):
    """A map in YAML, as Drover reads it: what it makes of the Helm values of a Bundle. Python has
    no reader of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "fleet.yaml").write_text("name: a\nhelm: {valuesFiles: [values.yaml]}\n")
        (folder / "values.yaml").write_text(text, encoding="utf-8")
        result = run(program, "bundle", folder, "-o", "json")
    assert result.status == 0, result
    return json.loads(result.out)["spec"]["helm"]["values"]


class Tap:
    """Counts tests and prints them; done() is the exit status."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def test(self, name, problem=None):
        """problem: None or "" when it passed, else what is wrong."""
        self.count += 1
        if not problem:
            print(f"ok {self.count} - {name}")
            return
        self.failed += 1
        print(f"not ok {self.count} - {name}")
        for line in str(problem).splitlines():
            print(f"# {line}")

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}")

    def done(self):
        print(f"1..{self.count}")
        sys.stdout.flush()
        return 1 if self.failed else 0


def difference(expected, found):
    """None when equal, else both."""
    if expected == found:
        return None
    return f"expected:\n{expected}\nfound:\n{found}"
