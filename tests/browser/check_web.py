#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard's sources: types hold, and the tests of what is pure pass. TAP."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

WEB = drover.ROOT / "web"
TOOLS = [("types hold", ["tsc", "--noEmit"]),
         ("what is pure passes its tests", ["vitest", "run", "--reporter=dot"])]


def old_node():
    """What is wrong with how scripts/build-web refuses a Node.js that is too old; None: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        node = pathlib.Path(folder) / "node"
        node.write_text("#!/bin/sh\necho v16.20.2\n", encoding="ascii")
        node.chmod(0o755)
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run([drover.ROOT / "scripts" / "build-web", "--install"],
                              env=dict(os.environ, PATH=path), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    clear = f"Node.js is v16.20.2 ({node}), needed is v18 or later" in done.stdout
    return None if done.returncode == 1 and clear else f"{done.returncode}: {done.stdout}"


def main():
    tap = drover.Tap()
    tap.test("a Node.js that is too old is refused in words", old_node())
    for name, (tool, *words) in TOOLS:
        path = WEB / "node_modules" / ".bin" / tool
        if not path.exists():
            tap.test(name, f"{tool} is missing; scripts/setup web installs it")
            continue
        done = subprocess.run([str(path), *words], cwd=WEB, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        tap.test(name, None if done.returncode == 0 else done.stdout.decode("utf-8", "replace"))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
