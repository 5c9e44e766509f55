#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the real kubelet: containers that really run, on a folder that is their host root."""

import pathlib
import subprocess
import sys
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import drover
import kubelet
import plane
import registry
from jobs import EVERY_FAILURE, SPACE, Story, condition, real_job, state_of


class RealStory(Story):
    def __init__(self, cluster, images, node):
        super().__init__(cluster)
        self.node = node
        self.image = images.add("package", "1.2.3", {"/skyhook-package/config.json": b"{}"})
        self.root = cluster.folder / "host-root"
        self.root.mkdir()

    def run(self, name, *scripts, **more):
        image = more.pop("image", self.image)
        made = real_job(name, image, scripts, self.root, **more)
        limits = made["spec"].pop("limits", None)
        if limits:
            pod = made["spec"]["template"]["spec"]
            for container in pod["initContainers"] + pod["containers"]:
                container["resources"] = {"limits": limits}
        return self.api.create("jobs", made, SPACE)

    def logs(self, name, *words):
        found = subprocess.run(
            [binaries.folder() / "kubectl", "--kubeconfig", self.cluster.kubeconfig(), "logs", "-n",
             SPACE, f"job/{name}", *words], check=False, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=60)
        assert found.returncode == 0, found.stderr
        return found.stdout.decode()


def changes_a_real_folder(story):
    story.run("works", "mkdir -p $HOST/var && cp -r /skyhook-package $HOST/var/",
              "echo the stage; echo done >$HOST/var/done", "echo the check; test -s $HOST/var/done")
    story.ends("works", "Complete", 60)
    assert (story.root / "var/done").read_text() == "done\n"
    assert (story.root / "var/skyhook-package/config.json").read_text() == "{}"


def files_that_the_pod_carries(story):
    """Annotations of the pod, as files: of 120 KiB in all, byte for byte, also for init containers,
    and as links that are changed at once, as those of a ConfigMap."""
    key = "skyhook.nvidia.com/node-"
    texts = {"labels.json": '{"a":"' + "x" * 100000 + '"}', "packages.json": "",
             "annotations.json": '{"\\u0026":"\\"\\\\ äöü \U0001f40e","b":"\\n"}' + " \t" * 10000}
    made = real_job("carries", story.image, ["mkdir -p $HOST/init && cp -rL /meta/. $HOST/init",
                                             "ls -l /meta >$HOST/listed", "true"], story.root)
    template = made["spec"]["template"]
    template["metadata"]["annotations"].update({key + name: texts[name] for name in texts})
    template["spec"]["volumes"].append({"name": "meta", "downwardAPI": {"items": [
        {"path": name, "fieldRef": {"fieldPath": f"metadata.annotations['{key}{name}']"}}
        for name in texts]}})
    for container in template["spec"]["initContainers"] + template["spec"]["containers"]:
        container["volumeMounts"].append({"name": "meta", "mountPath": "/meta"})
    story.api.create("jobs", made, SPACE)
    story.ends("carries", "Complete", 60)
    for name, text in texts.items():
        found = (story.root / "init" / name).read_bytes()
        assert found == text.encode(), f"{name}: {len(found)} bytes, not {len(text.encode())}"
    listed = (story.root / "listed").read_text()
    assert "labels.json -> ..data/labels.json" in listed, listed


def logs_of_a_job_are_those_of_the_stage(story):
    assert story.logs("works") == "the stage\n"
    assert story.logs("works", "-c", "p-applycheck") == "the check\n"


def without_the_annotation_they_are_not(story):
    """kubectl then takes the first container that is no init container."""
    note = {"kubectl.kubernetes.io/default-container": None}
    story.run("bare", "true", "echo the stage", "echo the check", notes=note)
    story.ends("bare", "Complete", 60)
    assert story.logs("bare") == "the check\n"


def logs_are_there_while_the_stage_runs(story):
    story.run("running", "true", "echo begins; sleep 600", "true")

    def begun():
        try:
            return story.logs("running") == "begins\n"
        except AssertionError:
            return False
    api.wait_until("the first line is shown", begun, 60)
    story.api.delete("jobs", "running", SPACE)


def a_real_exit_code(story):
    story.run("fails", "true", "echo reason >&2; exit 42", "true")
    assert story.ends("fails", "Failed", 60)["reason"] == "BackoffLimitExceeded"
    assert state_of(story.pod("fails"), "p-apply")["terminated"]["exitCode"] == 42
    assert story.logs("fails") == "reason\n"


def an_image_that_is_not_there(story):
    """No podFailurePolicy sees it; deleting the pod ends the Job."""
    story.run("absent", "true", "true", "true", image=story.image + "-absent",
              podFailurePolicy=EVERY_FAILURE)

    def backs_off(pod):
        reason = state_of(pod, "p-init").get("waiting", {}).get("reason")
        return reason == "ImagePullBackOff"
    pod = story.pod("absent", backs_off, 60)
    assert pod["status"]["phase"] == "Pending"
    assert not condition(story.api.get("jobs", "absent", SPACE), "Failed")
    story.api.delete("pods", pod["metadata"]["name"], SPACE)
    began = time.monotonic()
    story.ends("absent", "Failed", 60)
    print(f"# Failed {time.monotonic() - began:.1f} s after its pod was deleted")


def out_of_memory(story):
    story.run("memory", "true", "x=a; while true; do x=$x$x; done", "true",
              limits={"memory": "32Mi", "cpu": "1"})
    story.ends("memory", "Failed", 90)
    ended = state_of(story.pod("memory"), "p-apply")["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137), ended


def a_deadline_ends_the_step(story):
    story.run("late", "true",
              "trap 'echo ended >$HOST/ended; exit 0' TERM; while :; do sleep 1; done", "true",
              activeDeadlineSeconds=3)
    assert story.ends("late", "Failed", 90)["reason"] == "DeadlineExceeded"
    assert (story.root / "ended").read_text() == "ended\n"


def a_reboot_of_the_node(story):
    story.run("boot", "true", "touch $HOST/began; sleep 600", "true")
    api.wait_until("the step runs", lambda: (story.root / "began").exists(), 60)
    new = str(uuid.uuid4())
    story.node.restart(new)
    node = story.api.get("nodes", kubelet.NAME)
    assert node["status"]["nodeInfo"]["bootID"] == new
    story.ends("boot", "Failed", 90)
    ended = state_of(story.pod("boot"), "p-apply").get("terminated", {})
    print(f"# after the reboot: {ended.get('exitCode')} {ended.get('reason')}")
    story.run("after", "true", "true", "true")
    story.ends("after", "Complete", 60)


STORIES = [changes_a_real_folder, files_that_the_pod_carries,
           logs_of_a_job_are_those_of_the_stage, without_the_annotation_they_are_not,
           logs_are_there_while_the_stage_runs,
           a_real_exit_code, an_image_that_is_not_there, out_of_memory, a_deadline_ends_the_step,
           a_reboot_of_the_node]


def nothing_is_left(tap, node):
    groups = [tree / node.group for tree in kubelet.hierarchies() if (tree / node.group).exists()]
    mounts = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines()
              if str(node.folder) in line]
    named = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(node.folder).encode() in path.read_bytes():
                named.append(path.parent.name)
        except OSError:
            pass  # it ended meanwhile
    left = groups + mounts + named
    tap.test("nothing of the node is left", "" if not left else left)


def main():
    tap = drover.Tap()
    problem = binaries.missing() or kubelet.problem()
    if problem:
        tap.skip("a real kubelet", problem)
        return tap.done()
    with plane.Cluster("check-kubelet", scheduler=False) as cluster, registry.Registry() as images:
        began = time.monotonic()
        with kubelet.RealNode(cluster, images) as node:
            print(f"# the real node is Ready after {time.monotonic() - began:.1f} s")
            story = RealStory(cluster, images, node)
            for act in STORIES:
                name = act.__name__.replace("_", " ")
                try:
                    act(story)
                    tap.test(name)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    cluster.fail()
                    tap.test(name, f"{type(error).__name__}: {error}")
                sys.stdout.flush()
        nothing_is_left(tap, node)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
