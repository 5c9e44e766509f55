#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_dashboard.py BUILD_FOLDER: how fluid the dashboard is with 10,000 targets, in Chromium.

First view: from the server's answer to the page until its cells are drawn. Frames: the longest
between two pictures while 20 entries a second come in. Memory: how much the page's heap grows over
ten minutes of that, after collecting garbage (DASHBOARD_MINUTES for less).
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main():
    browser = next((shutil.which(name) for name in BROWSERS if shutil.which(name)), None)
    if not browser:
        sys.exit("bench_dashboard: there is no Chromium")
    program = pathlib.Path(sys.argv[1]).resolve() / "drover"
    environment = dict(os.environ, DROVER=str(program), CHROMIUM=browser, WEB=str(ROOT / "web"),
                       PICTURES=str(program.parent))
    return subprocess.run(["node", str(ROOT / "tests" / "browser" / "measure.mjs")],
                          env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
