#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes does with Jobs, as far as Drover relies on it.

docs/designs/2026-11-package-execution-as-jobs.md cites these tests: when one fails after a new
version of Kubernetes was pinned, a choice made there has lost its reason.
"""

import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import drover
import fleet
import plane
from jobs import EVERY_FAILURE, SPACE, Story, condition

PULL_SECONDS = 10   # how long nothing must happen to an unpullable image
GONE_SECONDS = 180  # the garbage collector of pods waits 40 s and looks every 20 s


def failure_policy_does_not_see_an_unpullable_image(story):
    """The pod never fails, so no rule is asked, whatever the rules say."""
    story.create("pull", "node-00000", "unpullable", podFailurePolicy=EVERY_FAILURE)
    story.started("pull")
    time.sleep(PULL_SECONDS)
    found = story.api.get("jobs", "pull", SPACE)
    assert found["status"]["active"] == 1 and "failed" not in found["status"], found["status"]
    assert not found["status"].get("conditions"), found["status"]


def ending_the_pod_ends_an_unpullable_job(story):
    """Deleting its pod makes the Job Failed, and no second pod is made."""
    pod = story.started("pull")
    story.api.delete("pods", pod["metadata"]["name"], SPACE)
    ended = story.ends("pull", "Failed")
    print(f"# {ended['reason']}: {ended['message']}")
    selector = "batch.kubernetes.io/job-name=pull"
    assert not story.api.list("pods", SPACE, labelSelector=selector), "a pod is there"


def failure_policy_sees_exit_codes_and_disruption(story):
    """It names container and code, or the condition, in the Job; backoffLimit 0 does not."""
    story.create("code", "node-00001", "fail 0s 42", podFailurePolicy=EVERY_FAILURE)
    story.create("evicted", "node-00001", "evict", podFailurePolicy=EVERY_FAILURE)
    story.create("plain", "node-00001", "fail 0s 42")
    reasons = {name: story.ends(name, "Failed") for name in ("code", "evicted", "plain")}
    for name, found in reasons.items():
        print(f"# {name}: {found['reason']}: {found['message']}")
    assert reasons["code"]["reason"] == reasons["evicted"]["reason"] == "PodFailurePolicy"
    assert reasons["plain"]["reason"] == "BackoffLimitExceeded"
    assert "42" not in reasons["plain"]["message"]


def failure_is_announced_before_it_is_final(story):
    """FailureTarget comes while the pod still ends, Failed only after it."""
    story.create("late", "node-00002", "hang", activeDeadlineSeconds=1,
                 notes={"drover.test/terminate": "4s"})
    story.started("late")

    def announced():
        return condition(story.api.get("jobs", "late", SPACE), "FailureTarget")
    api.wait_until("the failure is announced", announced)
    assert not condition(story.api.get("jobs", "late", SPACE), "Failed")
    began = time.monotonic()
    assert story.ends("late", "Failed")["reason"] == "DeadlineExceeded"
    print(f"# Failed came {time.monotonic() - began:.1f} s after FailureTarget")
    assert time.monotonic() - began > 1


def time_to_live_takes_success_and_failure_alike(story):
    """So a failed Job stays only if its time to live is removed, which the server allows."""
    story.create("good", "node-00003", "succeed", ttlSecondsAfterFinished=3)
    story.create("bad", "node-00003", "fail", ttlSecondsAfterFinished=3)
    story.create("kept", "node-00003", "fail", ttlSecondsAfterFinished=3)
    story.ends("kept", "Failed")
    story.api.patch("jobs", "kept", {"spec": {"ttlSecondsAfterFinished": None}}, SPACE)
    for name in ("good", "bad"):
        api.wait_until(f"{name} is gone", lambda job=name: not story.api.find("jobs", job, SPACE))
    time.sleep(4)
    assert story.api.find("jobs", "kept", SPACE), "it is gone, too"
    assert story.pod("kept")["status"]["phase"] == "Failed"


def suspending_kills_the_running_pod(story):
    """And resuming begins again from the start, with another pod."""
    story.create("pause", "node-00004", "hang")
    first = story.started("pause")["metadata"]["uid"]
    story.api.patch("jobs", "pause", {"spec": {"suspend": True}}, SPACE)
    selector = "batch.kubernetes.io/job-name=pause"
    api.wait_until("the pod is gone",
                   lambda: not story.api.list("pods", SPACE, labelSelector=selector))
    found = story.api.get("jobs", "pause", SPACE)
    assert condition(found, "Suspended") and not condition(found, "Failed"), found["status"]
    story.api.patch("jobs", "pause", {"spec": {"suspend": False}}, SPACE)
    second = story.started("pause")["metadata"]["uid"]
    assert first != second


def a_template_cannot_be_changed(story):
    """A changed package is another Job: nearly all of a Job is immutable."""
    change = {"spec": {"template": {"spec": {"activeDeadlineSeconds": 5}}}}
    try:
        story.api.patch("jobs", "pause", change, SPACE)
        assert False, "the server took it"
    except api.ApiError as error:
        assert error.status == 422, error


def the_same_name_twice_is_refused(story):
    """So a repeated create does nothing, also after an answer was lost."""
    try:
        story.create("pause", "node-00004", "succeed")
        assert False, "the server took it"
    except api.ApiError as error:
        assert error.status == 409 and error.body["reason"] == "AlreadyExists", error


def a_cordoned_or_tainted_node_takes_a_bound_pod(story):
    """nodeName goes past the scheduler; a NoExecute taint alone would evict it."""
    taint = {"key": "skyhook.nvidia.com", "value": "runtime-required", "effect": "NoSchedule"}
    story.api.patch("nodes", "node-00005", {"spec": {"unschedulable": True, "taints": [taint]}})
    story.create("cordoned", "node-00005", "succeed")
    story.ends("cordoned", "Complete")


def silence_of_a_node_ends_nothing(story):
    """While a node is silent its Job stays active: nobody reports, nobody judges."""
    fleet.lose(story.api, "node-00006")
    time.sleep(5)
    found = story.api.get("jobs", "silent", SPACE)["status"]
    assert found["active"] == 1 and not found.get("conditions"), found


def a_node_that_is_deleted_takes_its_job_along(story):
    """The collector marks the pod, deletes it by force, and the Job is Failed."""
    began = story.deleted_at
    ended = story.ends("gone", "Failed", GONE_SECONDS)
    print(f"# {time.monotonic() - began:.0f} s after the node: {ended['reason']}")
    assert ended["reason"] == "BackoffLimitExceeded"


def deleting_the_pod_of_a_silent_node_ends_nothing(story):
    """With podReplacementPolicy Failed the Job waits for a phase that nobody reports, even after a
    deletion by force: its finalizer holds the pod."""
    name = story.pod("silent")["metadata"]["name"]
    story.api.delete("pods", name, SPACE, {"gracePeriodSeconds": 0})
    time.sleep(5)
    found = story.api.get("jobs", "silent", SPACE)["status"]
    assert found["terminating"] == 1 and not found.get("conditions"), found
    assert story.api.get("pods", name, SPACE)["status"]["phase"] == "Pending"


def a_phase_that_is_written_ends_it(story):
    """Whoever may write the pod's status may say that it failed; then the Job ends at once."""
    name = story.pod("silent")["metadata"]["name"]
    story.api.patch("pods", name, {"status": {"phase": "Failed", "reason": "NodeLost"}}, SPACE,
                    "status")
    story.ends("silent", "Failed")


STORIES = [
    failure_policy_does_not_see_an_unpullable_image, ending_the_pod_ends_an_unpullable_job,
    failure_policy_sees_exit_codes_and_disruption, failure_is_announced_before_it_is_final,
    time_to_live_takes_success_and_failure_alike, suspending_kills_the_running_pod,
    a_template_cannot_be_changed, the_same_name_twice_is_refused,
    a_cordoned_or_tainted_node_takes_a_bound_pod, silence_of_a_node_ends_nothing,
    deleting_the_pod_of_a_silent_node_ends_nothing, a_phase_that_is_written_ends_it,
    a_node_that_is_deleted_takes_its_job_along,
]


def tell(tap, cluster):
    cluster.add_nodes(8)
    story = Story(cluster)
    story.create("silent", "node-00006", "hang")
    story.create("gone", "node-00007", "hang")
    story.started("gone")
    story.started("silent")
    story.api.delete("nodes", "node-00007")  # the last story looks at what became of it
    story.deleted_at = time.monotonic()
    for act in STORIES:
        name = act.__name__.replace("_", " ")
        try:
            act(story)
            tap.test(name)
        except Exception as error:  # pylint: disable=broad-exception-caught
            cluster.fail()
            tap.test(name, f"{type(error).__name__}: {error}")
        sys.stdout.flush()


def main():
    tap = drover.Tap()
    problem = binaries.missing()
    if problem:
        tap.skip("what Kubernetes does with Jobs", problem)
        return tap.done()
    with plane.Cluster("check-jobs", scheduler=False) as cluster:
        tell(tap, cluster)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
