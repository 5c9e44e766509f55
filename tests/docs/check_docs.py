#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the documentation and checks the example documents.

Each ```console block of README.md and docs/*.md is lines "$ COMMAND", each followed by what it
prints, standard error first. Commands are run by bash in the project's folder; a page has a home of
its own, which is $HOME. A line "..." stands for any lines, and "..." within a line for anything.

"$ drover serve ... &" starts a server on a port that is free and stops it where the page says
"$ kill %1" or ends.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    ["examples/skyhook"],
    ["examples/fleet", "examples/fleet/bundle/fleet.yaml"],
    ["examples/fleet/guestbook/fleet.yaml"],
    ["examples/release"],
    ["examples/hosts"],
]


def steps(block):
    """Pairs of a command and the text it prints. A command goes on after a backslash."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found[-1][0].endswith("\\"):
            found[-1][0] += "\n" + line
        else:
            found[-1][1].append(line)
    return found


class Page:
    """Runs the commands of one page, in its own home."""

    def __init__(self, program):
        self.home = tempfile.TemporaryDirectory(prefix="drover-docs-")
        self.environment = dict(
            os.environ, PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}", NO_COLOR="1",
            HOME=self.home.name, LC_ALL="C.UTF-8")
        for name in ("XDG_STATE_HOME", "DROVER_SERVER", "DROVER_TOKEN"):
            self.environment.pop(name, None)
        self.server = None

    def run(self, command):
        if command.startswith("drover serve") and command.endswith("&"):
            return self.start(shlex.split(command[:-1]))
        if command == "kill %1":
            return self.stop()
        run = subprocess.run(["bash", "-c", command], cwd=drover.ROOT, env=self.environment,
                             check=False, timeout=120, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return run.stdout.decode("utf-8", "replace").splitlines()

    def start(self, words):
        words = [os.path.expandvars(word.replace("$HOME", self.home.name)) for word in words]
        self.server = subprocess.Popen(
            [*words, "--listen", "127.0.0.1:0"], cwd=drover.ROOT, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return [self.server.stdout.readline().decode().rstrip("\n")]

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.stdout.close()
            self.server.wait(timeout=30)
            self.server = None
        return []

    def close(self):
        self.stop()
        self.home.cleanup()


def difference(expected, found):
    """As drover.difference, with "..." for what is not the same every time."""
    pattern = "".join(".*" if part == "..." else re.escape(part)
                      for part in re.split(r"(\.\.\.)", "\n".join(expected)))
    if re.fullmatch(pattern, "\n".join(found), re.DOTALL):
        return None
    return drover.difference("\n".join(expected), "\n".join(found))


def main():
    tap = drover.Tap()
    program = drover.programs()[-1]
    pages = [drover.ROOT / "README.md", *sorted((drover.ROOT / "docs").glob("*.md"))]
    for page in pages:
        shell = Page(program)
        for block in BLOCK.findall(page.read_text()):
            for command, expected in steps(block):
                tap.test(f"{page.name}: {command.splitlines()[0]}",
                         difference(expected, shell.run(command)))
        shell.close()
    for paths in EXAMPLES:
        words = [word for path in paths for word in ("-f", path)]
        result = drover.run(program, "validate", "--strict", *words)
        tap.test(f"{paths[0]} is good", None if result.status == 0 else repr(result))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
