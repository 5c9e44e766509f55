# SPDX-License-Identifier: Apache-2.0
"""Clocks that are set, differ, stand still or are somebody else's, while a rollout runs: one story
each. Every one starts its own operators, one after the other."""

import contextlib
import json
import signal
import time

import api
import audit
import clocks
import fleet
import node_stories
import rollout
import stages
from package_stories import service

USERS = ("drover", "drover-2")
LEASE = "3c22c1ae.nvidia.com"
LEASE_SECONDS = 15
MOST_SECONDS = 330  # until what failed is tried again, and is done


def operator(story, clock, **more):
    return rollout.Operator(story.stage.program, story.cluster, "--node-lost-after=10m",
                            env=clock.environment, **more)


def lease(story):
    found = story.api.find("leases", LEASE, rollout.SPACE)
    return found["spec"] if found else {}


def failing(story):
    """The Skyhook of the node whose stage fails, the last one."""
    return f"{story.name}-f"


def attempts(story):
    """How often that stage was tried; of Jobs that failed the last three stay."""
    found = story.api.list("jobs", rollout.SPACE,
                           labelSelector=f"{rollout.PREFIX}name={failing(story)}")
    return max((int(job["metadata"]["annotations"][rollout.PREFIX + "attempt"])
                for job in found), default=0)


def blames(story):
    """What nodes are said to have failed of, but for the stage that does fail."""
    found = set()
    for at in range(len(story.nodes)):
        node = story.node(at)
        found |= {json.loads(rollout.note(node, f"drover_{name}"))["why"]
                  for name in (story.name, failing(story))
                  if rollout.note(node, f"status_{name}") == "erroring"}
    return found - {"Error"}


def begun(story):
    """A rollout with everything that waits for a time: a drain that a budget holds up, a reboot,
    and, of another Skyhook, a stage that fails. Returns when they wait."""
    story.add_nodes(4, labels=lambda number: {"part": "f" if number == 3 else "a"})
    pod = node_stories.application(story, 0)
    node_stories.protect(story)
    story.behave(**{f"interrupt_{story.nodes[1]}": "reboot 0s 45s",
                    f"apply_{story.nodes[-1]}": "fail"})
    story.skyhook({"clo": rollout.package(interrupt={"type": "reboot"})},
                  nodeSelectors={"matchLabels": {"story": story.name, "part": "a"}},
                  interruptionBudget={"count": 2}, drainTimeout="20m")
    story.skyhook({"fai": rollout.package()}, name=failing(story),
                  nodeSelectors={"matchLabels": {"story": story.name, "part": "f"}})
    story.told("the drain waits", f"default/{pod}")
    story.wait("a node reboots", lambda: not fleet.is_ready(story.node(1)))
    story.wait("a stage has failed", lambda: rollout.note(
        story.node(-1), f"status_{failing(story)}") == "erroring")


def ended(story):
    """What waited may go on: all nodes are complete, and nobody is blamed for a clock."""
    assert not blames(story), blames(story)
    assert story.note("status", 0) == "in_progress", story.note("status", 0)
    for node in (story.nodes[0], story.nodes[2]):
        story.behave(**{f"interrupt_{node}": "reboot"})
    story.behave(**{f"apply_{story.nodes[-1]}": None})
    story.api.delete("poddisruptionbudgets", story.name, "default")
    shown = story.complete()
    assert shown["completeNodes"] == "3/3", shown
    # Behind the last failure: at most five minutes, whatever clocks show.
    story.complete(MOST_SECONDS, failing(story))
    assert not blames(story), blames(story)
    assert not any(story.is_cordoned(at) for at in range(4))
    assert story.check_limits(2) == 2


# ---- one operator

def clock_that_is_set(story):
    """the operator's clock is put hours ahead and back while it runs: it goes on leading, nobody is
    blamed, and retries come when they are due"""
    with clocks.Clock() as clock, operator(story, clock, elect=True):
        story.wait("it leads", lambda: lease(story).get("holderIdentity"))
        leads = lease(story)
        begun(story)
        for shift in (6, -12, 3, -3, 24 * 365):
            clock.set(wall=shift * clocks.HOUR)
            rollout.wait(2.5)
            assert not blames(story), (shift, blames(story))
        clock.set(wall=-48 * clocks.HOUR)
        ended(story)
        now = lease(story)
        assert (now["holderIdentity"], now["leaseTransitions"]) == (
            leads["holderIdentity"], leads["leaseTransitions"]), (leads, now)


def started_with_another_clock(story):
    """an operator that begins with a clock hours ahead, or behind, of the one before: what that one
    wrote is as old as it is"""
    with clocks.Clock() as clock:
        first = operator(story, clock)
        with first:
            begun(story)
            first.kill()
            for shift in (5, -5):
                clock.set(wall=shift * clocks.HOUR)
                first.start()
                rollout.wait(6)
                assert not blames(story), (shift, blames(story))
                tried = attempts(story)
                story.wait("it is tried again in time", lambda before=tried: attempts(
                    story) > before, MOST_SECONDS)
                first.kill()
            first.start()
            ended(story)


def asleep(story):
    """the machine sleeps for twenty minutes in the middle: another operator leads meanwhile, and
    who wakes up writes nothing before it has read everything anew"""
    with clocks.Clock() as clock, operator(story, clock, elect=True) as first:
        story.wait("the first leads", lambda: lease(story).get("holderIdentity"))
        leads = lease(story)["holderIdentity"]
        begun(story)
        first.process.send_signal(signal.SIGSTOP)
        with operator(story, clocks.Clock(), elect=True, user=USERS[1]) as second:
            story.wait("the second leads", lambda: lease(story).get("holderIdentity") not in (
                "", leads))
            taken_over = len(writes(story))
            clock.set(boot=20 * clocks.MINUTE, wall=20 * clocks.MINUTE)
            first.process.send_signal(signal.SIGCONT)
            rollout.wait(5)
            late = [e["objectRef"] for e in writes(story)[taken_over:]
                    if e["user"]["username"] == first.user]
            assert not late, late
            ended(story)
            second.stop()


def writes(story):
    """Those of both operators that took effect, but for the Lease and events."""
    return [e for e in audit.entries(story.cluster.audit_file)
            if e["user"]["username"] in USERS and e["verb"] in audit.WRITES and
            e["responseStatus"].get("code", 0) < 300 and
            e["objectRef"].get("resource") not in ("leases", "events")]


def timers_that_are_late(story):
    """nothing is looked at for more than a minute: what was due meanwhile follows, once"""
    with clocks.Clock() as clock, operator(story, clock) as one:
        begun(story)
        tried = attempts(story)
        one.process.send_signal(signal.SIGSTOP)
        rollout.wait(75)
        one.process.send_signal(signal.SIGCONT)
        rollout.wait(3)
        assert attempts(story) <= tried + 1, "it was tried more than once"
        ended(story)


# ---- several clocks

def clocks_that_differ(story):
    """two operators whose clocks are ten hours apart: one leads at a time, whichever is killed, and
    what one wrote is as old for the other"""
    with clocks.Clock(wall=-5 * clocks.HOUR) as behind, clocks.Clock(
            wall=5 * clocks.HOUR) as ahead, contextlib.ExitStack() as stack:
        pair = [stack.enter_context(operator(story, clock, elect=True, user=user))
                for clock, user in zip((behind, ahead), USERS)]
        story.wait("one leads", lambda: lease(story).get("holderIdentity"))
        begun(story)
        for turn in range(4):
            leads = lease(story)["holderIdentity"]
            # The name of the process is in the identity.
            who = next(one for one in pair if f"_{one.process.pid}_" in leads)
            before = len(writes(story))
            who.kill()
            story.wait("the other one leads", lambda gone=leads: lease(story).get(
                "holderIdentity") not in ("", gone), 3 * LEASE_SECONDS)
            assert not blames(story), (turn, blames(story))
            assert not [e for e in writes(story)[before:]
                        if e["user"]["username"] == who.user], "it wrote behind its death"
            who.start()
        ended(story)


def set_times(story, at, status, changed, told):
    """The node's Ready condition, with times of its own clock, which is that far from ours."""
    def text(shift):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + shift))
    story.api.patch("nodes", story.nodes[at], {"status": {"conditions": [{
        "type": "Ready", "status": status, "reason": "Kubelet", "message": "by the test",
        "lastHeartbeatTime": text(told), "lastTransitionTime": text(changed)}]}}, sub="status",
                    how="strategic")


def clocks_of_nodes(story):
    """nodes whose own clocks are hours early or late: one that is not ready for a moment while an
    operator begins is not taken for lost, and one that comes back from its reboot is not late"""
    story.add_nodes(3)
    names = list(story.nodes)
    with clocks.Clock() as clock:
        one = operator(story, clock)
        with one:
            story.behave(**{f"apply_{node}": "hang" for node in names})
            story.skyhook({"con": rollout.package(interrupt=service("a"))})
            story.wait("all run", lambda: len(story.jobs()) == 3)
            one.kill()
            for at, shift in enumerate((-30 * clocks.HOUR, 30 * clocks.HOUR)):
                story.api.patch("nodes", names[at], {"metadata": {"labels": {
                    stages.KWOK_LABEL: None}}})
                set_times(story, at, "False", shift, shift + 10)
            one.start()
            rollout.wait(8)
            assert blames(story) == set(), blames(story)
            for at, shift in enumerate((-30 * clocks.HOUR, 30 * clocks.HOUR)):
                set_times(story, at, "True", shift + 20, shift + 20)
                story.api.patch("nodes", names[at], {"metadata": {"labels": {
                    stages.KWOK_LABEL: "yes"}}})
            story.behave(**{f"apply_{node}": None for node in names})
            for job in story.jobs():
                story.api.delete("jobs", job["metadata"]["name"], rollout.SPACE)
            story.complete()
            assert blames(story) == set(), blames(story)


def checked(story):
    """that clocks are set at all: the time that an operator writes in its Lease is the one it was
    given"""
    with clocks.Clock(wall=7 * clocks.HOUR) as clock, operator(story, clock, elect=True):
        api.wait_until("it leads", lambda: lease(story).get("holderIdentity"))
        shown = time.mktime(time.strptime(lease(story)["renewTime"][:19], "%Y-%m-%dT%H:%M:%S"))
        ahead = shown - time.mktime(time.gmtime())
        assert abs(ahead - 7 * clocks.HOUR) < 60, json.dumps(lease(story))


STORIES = [checked, clock_that_is_set, started_with_another_clock, asleep, timers_that_are_late,
           clocks_that_differ, clocks_of_nodes]
