#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard's sources: types hold, and the tests of what is pure pass. TAP."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

WEB = drover.ROOT / "web"
TOOLS = [("types hold", ["tsc", "--noEmit"]),
         ("what is pure passes its tests", ["vitest", "run", "--reporter=dot"])]


def main():
    tap = drover.Tap()
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
