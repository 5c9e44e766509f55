#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md beside this lists, story by story, on a real API server: most of them side by
side, those that stop the operator or set the cluster back one after the other."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import binaries
import drover
import fault_stories
import job_stories
import ledger
import node_stories
import package_stories
import plane
import policy_stories
import rollout
import stories


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("stories", problem)
        return tap.done()
    program = drover.programs()[0]
    rounds = [policy_stories.STORIES + job_stories.STORIES + node_stories.STORIES,
              package_stories.STORIES + fault_stories.STORIES]
    with plane.Cluster("check-full-stories", audit=ledger.POLICY) as cluster:
        rollout.prepare(cluster, program)
        stage = stories.Stage(cluster, program)
        stage.operator = rollout.Operator(
            program, cluster, f"--node-lost-after={node_stories.LOST_SECONDS}s")
        with stage.operator:
            in_turn = stories.chosen(node_stories.IN_TURN + job_stories.IN_TURN +
                                     policy_stories.IN_TURN + fault_stories.IN_TURN)
            if in_turn:
                stage.tell(tap, in_turn, at_once=False)
            for together in rounds:
                if stories.chosen(together):
                    stage.tell(tap, stories.chosen(together))
            last = stories.chosen(node_stories.LAST)
            if last:
                stage.tell(tap, last, at_once=False)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
