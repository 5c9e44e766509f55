#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drover operator` and clocks that are wrong, on a real API server: clock_stories.py, in turn."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import binaries
import clock_stories
import clocks
import drover
import ledger
import plane
import rollout
import stories


def main():
    tap = drover.Tap()
    problem = binaries.missing() or clocks.missing()
    if problem:
        tap.skip("clocks", problem)
        return tap.done()
    program = drover.programs()[0]
    with plane.Cluster("check-full-clocks", audit=ledger.POLICY) as cluster:
        rollout.prepare(cluster, program)
        stories.Stage(cluster, program).tell(tap, stories.chosen(clock_stories.STORIES),
                                             at_once=False)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
