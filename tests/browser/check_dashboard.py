#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard in a real browser against a real `drover serve`: the stories of stories.mjs. TAP.

Pictures of every story are kept in the build folder, under browser/. Where there is no Chromium
the stories are skipped, and say so: not every system has it as a package.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import drover  # pylint: disable=wrong-import-position

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main():
    tap = drover.Tap()
    browser = next((shutil.which(name) for name in BROWSERS if shutil.which(name)), None)
    node = shutil.which("node")
    installed = drover.ROOT / "web" / "node_modules" / "playwright-core"
    if not node or not installed.is_dir():
        tap.test("the dashboard in a browser",
                 "Node.js or playwright-core is missing; scripts/setup test installs both")
        return tap.done()
    if not browser:
        tap.skip("the dashboard in a browser", "there is no Chromium")
        return tap.done()
    program = drover.programs()[-1]  # one build: a browser is slow enough
    pictures = program.parent / "browser"
    pictures.mkdir(exist_ok=True)
    environment = dict(os.environ, DROVER=str(program), CHROMIUM=browser, PICTURES=str(pictures),
                       WEB=str(drover.ROOT / "web"))
    return subprocess.run([node, str(HERE / "stories.mjs"), *sys.argv[1:]], env=environment,
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
