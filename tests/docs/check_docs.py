#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the documentation and checks the example documents.

Each ```console block of README.md and docs/*.md is lines "$ COMMAND", each followed by what it prints,
standard error first. Commands are run by bash in the project's folder.
"""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    ["examples/skyhook"],
    ["examples/fleet", "examples/fleet/bundle/fleet.yaml"],
    ["examples/release"],
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


def printed_by(command, program):
    env = dict(os.environ, PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}", NO_COLOR="1")
    run = subprocess.run(["bash", "-c", command], cwd=drover.ROOT, env=env, check=False, timeout=120,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    return run.stdout.decode("utf-8", "replace").splitlines()


def main():
    tap = drover.Tap()
    program = drover.programs()[-1]
    pages = [drover.ROOT / "README.md", *sorted((drover.ROOT / "docs").glob("*.md"))]
    for page in pages:
        for block in BLOCK.findall(page.read_text()):
            for command, expected in steps(block):
                found = printed_by(command, program)
                tap.test(f"{page.name}: {command.splitlines()[0]}",
                         drover.difference("\n".join(expected), "\n".join(found)))
    for paths in EXAMPLES:
        words = [word for path in paths for word in ("-f", path)]
        result = drover.run(program, "validate", "--strict", *words)
        tap.test(f"{paths[0]} is good", None if result.status == 0 else repr(result))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
