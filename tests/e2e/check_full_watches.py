#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drover operator` behind a proxy that harms its watches in one way, for a whole rollout, against
the real API server: the end is that of a rollout that nobody harmed, and no limit is exceeded at
any revision.

The rollout is that of check_full_kills.py. FAULTS=cut,behind runs some of them."""

import os
import pathlib
import sys
import threading
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import binaries
import check_full_kills
import drover
import ledger
import plane
import proxy
import rollout

KINDS = ("nodes", "jobs", "skyhooks", "pods", "deploymentpolicies")
NEVER = 10 ** 6  # writes after which nobody is killed


def in_turn(ended, seconds, act):
    """One kind after the other, until it has ended."""
    turn = 0
    while not ended.wait(seconds):
        act(KINDS[turn % len(KINDS)])
        turn += 1


def cut(between, ended):
    """watches are cut, one kind after the other, twice a second"""
    in_turn(ended, 0.5, lambda kind: between.cut(kind, watches_only=True))


def stalled(between, ended):
    """all watches fall silent while connections stay open, and nobody says so"""
    ended.wait(4)
    between.silence()


def expired(between, ended):
    """watches are told that they are too old (410), one kind after the other, twice a second"""
    in_turn(ended, 0.5, between.expire)


def doubled(between, ended):
    """every event comes twice, the second time behind the next one"""
    between.duplicate()
    ended.wait()


def reordered(between, ended):
    """events of one kind come seconds behind those of others, then those of another kind"""
    def late(kind):
        between.heal()
        between.delay(kind, 2)
    late(KINDS[-1])
    in_turn(ended, 5, late)


def behind(between, ended):
    """watches go on at a server that is behind: from a version of long ago"""
    old = between.cluster.api.ask("GET", "/api/v1/nodes?limit=1")["metadata"]["resourceVersion"]

    def back(kind):
        between.rewind(kind, old)
        between.cut(kind, watches_only=True)
    in_turn(ended, 1, back)


FAULTS = [cut, stalled, expired, doubled, reordered, behind]
# Of those that end watches: so many more are begun than if nobody does harm, or it shows nothing.
MORE_WATCHES = {cut: 10, stalled: len(KINDS), expired: 10, behind: 10}
# Of the others: so many events come otherwise than they should.
HARMED_EVENTS = {doubled: ("doubled", 50), reordered: ("late", 10)}


class Harmed(check_full_kills.Life):
    """One rollout, in which something is done to the operator's watches all the time."""

    patience = 600  # who hears nothing looks again after minutes

    def __init__(self, stage, number, harm=None):
        super().__init__(stage.program, stage.cluster, stage.between, NEVER + number)
        self.harm = harm

    def run(self):
        ended = threading.Event()
        thread = threading.Thread(target=self.harm, args=(self.between, ended)) if self.harm \
            else threading.Thread(target=ended.wait)
        thread.start()
        try:
            return super().run()
        finally:
            ended.set()
            thread.join()
            self.between.heal()


class Stage:
    """What all of them share, and the end of the one that nobody harmed."""

    def __init__(self, program, cluster, between):
        self.program, self.cluster, self.between = program, cluster, between
        self.log = ledger.Log(cluster.audit_file)
        self.reference = None
        self.usual = 0  # watches that it began

    def watches(self):
        return sum(count for (how, _), count in self.between.requests.items() if how == "WATCH")

    def live(self, number, harm=None):
        life = Harmed(self, number, harm)
        before = self.watches()
        how, events = HARMED_EVENTS.get(harm, ("", 0))
        unharmed = self.between.harmed[how]
        try:
            end = life.live(self.log)
        except Exception:
            life.clear()
            raise
        began = self.watches() - before
        if not harm:
            self.reference, self.usual = end, began
        least = self.usual + MORE_WATCHES.get(harm, 0)
        assert began >= least, f"{began} watches were begun, not {least}: nothing was harmed"
        came = self.between.harmed[how] - unharmed
        assert came >= events, f"only {came} events were {how}: nothing was harmed"
        if end != self.reference:
            raise AssertionError(f"another end:\n{end}\nnot\n{self.reference}")

    def attempt(self, number, harm=None):
        try:
            self.live(number, harm)
            return None
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.cluster.fail()
            print(f"# {traceback.format_exc(limit=3)}".replace("\n", "\n# "))
            return f"{type(error).__name__}: {error}"


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("watches that are harmed", problem)
        return tap.done()
    program = drover.programs()[0]
    words = os.environ.get("FAULTS", "").split(",")
    with plane.Cluster("check-full-watches", audit=ledger.POLICY) as cluster:
        rollout.prepare(cluster, program)
        with proxy.Proxy(cluster) as between:
            stage = Stage(program, cluster, between)
            tap.test("a rollout that nobody harms", stage.attempt(0))
            for number, harm in enumerate(FAULTS, 1):
                if harm.__name__ in words or words == [""]:
                    tap.test(f"{harm.__name__}: {harm.__doc__}: the same end",
                             stage.attempt(number, harm))
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
