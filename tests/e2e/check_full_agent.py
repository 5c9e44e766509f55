#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drover operator`, a real kubelet and the real drover-agent: a package changes a real folder, and
`kubectl logs job/NAME` shows its stages. The host's root is a folder of the test."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster"), str(HERE.parent / "support")]
# pylint: disable=wrong-import-position
import api
import binaries
import drover
import kubelet
import plane
import registry
import rollout

SK = "real"
APPLETS = ["sh", "env", "cat", "echo", "sleep", "touch", "ls", "kill", "mkdir", "test", "cp", "rm",
           "true"]


def libraries(program):
    """What it is linked to, by path."""
    listed = subprocess.run(["ldd", program], check=True, text=True, stdout=subprocess.PIPE).stdout
    return {path: pathlib.Path(path).read_bytes()
            for path in re.findall(r"(/\S+) \(0x", listed)}


def agent_image(images, agent):
    files = libraries(agent)
    files["/usr/bin/drover-agent"] = agent.read_bytes()
    return images.add("agent", "1.0.0", files, entrypoint=("/usr/bin/drover-agent",))


def step(path):
    return {"name": path, "path": path, "arguments": [], "returncodes": [0], "on_host": True,
            "idempotence": False, "upgrade_step": False}


def package_image(images, version, scripts, name="tuning"):
    """scripts: by mode, what it does on the host."""
    config = {"schema_version": "v1", "package_name": name, "package_version": version,
              "expected_config_files": [],
              "modes": {mode: [step(f"{mode}.sh")] for mode in scripts}}
    files = {"/skyhook-package/config.json": json.dumps(config).encode()}
    for mode, text in scripts.items():
        files[f"/skyhook-package/skyhook_dir/{mode}.sh"] = f"#!/bin/sh\n{text}\n".encode()
    return images.add(name, version, files).rpartition(":")[0]


def host_root(folder):
    """A root that packages may change: busybox, and nothing of the machine's."""
    for name in ("bin", "etc", "sbin", "dev", "tmp", "var"):
        (folder / name).mkdir(parents=True)
    shutil.copy(binaries.tools() / "bin" / "busybox", folder / "bin/busybox")
    for applet in APPLETS:
        (folder / "bin" / applet).symlink_to("busybox")
    (folder / "dev/null").touch()
    # What restarts services there; nothing of the machine's is asked.
    (folder / "bin/systemctl").write_text("#!/bin/sh\necho $* >>/restarts\n", encoding="ascii")
    (folder / "bin/systemctl").chmod(0o755)
    return folder


class Story:
    """The cluster with its one real node."""

    def __init__(self, cluster, images, program):
        self.cluster = cluster
        self.name = cluster.folder / "kubectl-skyhook"
        self.name.symlink_to(program)
        self.images = images
        self.root = host_root(cluster.folder / "host-root")

    def jobs(self, stage, package):
        selector = f"{rollout.PREFIX}stage={stage},{rollout.PREFIX}package={package}"
        return self.cluster.api.list("jobs", rollout.SPACE, labelSelector=selector)

    def logs(self, job, *words):
        found = subprocess.run(
            [binaries.folder() / "kubectl", "--kubeconfig", self.cluster.kubeconfig(), "logs", "-n",
             rollout.SPACE, f"job/{job['metadata']['name']}", *words], check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        return found.stdout.decode()

    def plugin(self, *words):
        """`kubectl skyhook WORDS`"""
        found = drover.run(self.name, *words, f"--kubeconfig={self.cluster.kubeconfig()}")
        assert found.status == 0, found
        return found.out

    def last_logs(self):
        """Of the Job that was made last, for who looks for the cause."""
        found = sorted(self.cluster.api.list("jobs", rollout.SPACE),
                       key=lambda job: job["metadata"]["creationTimestamp"])
        return self.logs(found[-1], "--all-containers") if found else "no Job"


def installs(story):
    """a package's stages change the host's folder"""
    image = package_image(story.images, "1.0.0", {
        "apply": "echo applied >/etc/tuned; echo the apply stage; while ! test -e /go; do sleep 1; "
                 "done",
        "apply-check": "test -s /etc/tuned", "config": "cp $SKYHOOK_DIR/configmaps/a.conf /etc/a",
        "config-check": "echo the check of config; test -s /etc/a"})
    story.cluster.api.create("skyhooks", rollout.skyhook(SK, {"tuning": {
        "version": "1.0.0", "image": image, "configMap": {"a.conf": "value\n"}}}))

    def begun():
        found = story.jobs("apply", "tuning-1.0.0")
        return found and "the apply stage" in story.logs(found[0])
    api.wait_until("kubectl logs job/NAME shows the stage while it runs", begun, 120)
    (story.root / "go").touch()
    rollout.wait_status(story.cluster, SK, "complete", 120)
    assert (story.root / "etc/tuned").read_text() == "applied\n"
    assert (story.root / "etc/a").read_text() == "value\n"


def shows_logs(story):
    """logs of a Job that has ended are its stage's; those of the check are in its container"""
    job = story.jobs("config", "tuning-1.0.0")[0]
    assert "the check of config" not in story.logs(job)
    assert "the check of config" in story.logs(job, "-c", "tuning-configcheck")
    every = story.plugin("package", "logs", "tuning", "--skyhook", SK, "--tail", "-1")
    assert "the check of config" in every and "the apply stage" in every, every
    assert f", Container: tuning-apply [terminated], Node: {kubelet.NAME} <==" in every, every
    one = story.plugin("package", "logs", "tuning", "--skyhook", SK, "--stage", "apply")
    assert "the apply stage" in one and "tuning-applycheck" not in one, one
    flags = list((story.root / "var/lib/skyhook" / SK / "flags").rglob("*apply.sh*"))
    assert flags, "the agent left no flag"


def errs(story):
    """a step that fails makes the node erroring, and its log says why"""
    package_image(story.images, "2.0.0", {
        "upgrade": "echo what went wrong >&2; exit 3", "upgrade-check": "true", "config": "true",
        "config-check": "true"})
    story.cluster.api.patch("skyhooks", SK, {"spec": {"packages": {"tuning": {
        "version": "2.0.0"}}}})
    api.wait_until("the node is erroring", lambda: rollout.note(
        story.cluster.api.get("nodes", kubelet.NAME), f"status_{SK}") == "erroring", 120)
    job = story.jobs("upgrade", "tuning-2.0.0")[0]
    assert "what went wrong" in story.logs(job), story.logs(job)


SERVED = "served"


def restarts(story):
    """an interrupt restarts its services once, on the host, between config and post-interrupt; the
    package sees its node's labels; uninstalled, it takes its files away"""
    image = package_image(story.images, "1.0.0", {
        "apply": "cp $SKYHOOK_DIR/node-metadata/labels.json /etc/labels", "apply-check": "true",
        "config": "test ! -e /restarts", "config-check": "true",
        "post-interrupt": "cp /restarts /etc/seen", "post-interrupt-check": "test -s /etc/seen",
        "uninstall": "rm /etc/labels", "uninstall-check": "test ! -e /etc/labels"}, SERVED)
    story.cluster.api.delete("skyhooks", SK)
    story.cluster.api.create("skyhooks", rollout.skyhook(SERVED, {SERVED: {
        "version": "1.0.0", "image": image, "uninstall": {"enabled": True},
        "interrupt": {"type": "service", "services": ["one", "two"]}}}))
    rollout.wait_status(story.cluster, SERVED, "complete", 180)
    want = "daemon-reload\nrestart one\nrestart two\n"
    assert (story.root / "etc/seen").read_text() == want, (story.root / "etc/seen").read_text()
    labels = json.loads((story.root / "etc/labels").read_text())
    assert labels["kubernetes.io/hostname"] == kubelet.NAME, labels
    flags = sorted(path.name for path in (
        story.root / "var/lib/skyhook" / SERVED / "interrupts/flags").rglob("*.complete"))
    assert flags == [f"service_restart_{at}.complete" for at in range(3)], flags
    story.cluster.api.delete("skyhooks", SERVED)
    api.wait_until("it is uninstalled", lambda: not story.cluster.api.find("skyhooks", SERVED), 120)
    assert not (story.root / "etc/labels").exists()


def overruns(story):
    """a step that takes too long is told to end, and its node is erroring, DeadlineExceeded"""
    image = package_image(story.images, "1.0.0", {
        "apply": "trap 'echo told >/etc/told; exit 0' TERM; sleep 300 & wait",
        "apply-check": "true"}, "slow")
    story.cluster.api.create("skyhooks", rollout.skyhook("slow", {"slow": {
        "version": "1.0.0", "image": image, "stageTimeout": "5s"}}))

    api.wait_until("it is erroring", lambda: why(story, "slow") == "DeadlineExceeded", 120)
    api.wait_until("the step was told", (story.root / "etc/told").exists, 30)


def why(story, name):
    """The word of the node's failure for that Skyhook."""
    node = story.cluster.api.get("nodes", kubelet.NAME)
    return json.loads(rollout.note(node, f"drover_{name}") or "{}").get("why")


def cannot_be_pulled(story):
    """an image that is not in its registry ends as erroring, its Job as Failed, and its pod goes"""
    image = story.images.add("unknown", "1.0.0", {}).rpartition(":")[0]
    story.cluster.api.create("skyhooks", rollout.skyhook("unknown", {"unknown": {
        "version": "2.0.0", "image": image}}))
    api.wait_until("it is erroring", lambda: why(story, "unknown") in (
        "ErrImagePull", "ImagePullBackOff"), 180)
    job = story.jobs("apply", "unknown-2.0.0")[0]["metadata"]["name"]
    api.wait_until("its Job is Failed", lambda: any(
        c["type"] == "Failed" and c["status"] == "True" for c in story.cluster.api.get(
            "jobs", job, rollout.SPACE)["status"].get("conditions", [])), 60)
    api.wait_until("no pod of it is left", lambda: not story.cluster.api.list(
        "pods", rollout.SPACE, labelSelector=f"job-name={job}"), 60)
    story.cluster.api.delete("skyhooks", "unknown")


def out_of_memory(story):
    """a step that takes more memory than its package may have is erroring, OOMKilled"""
    image = package_image(story.images, "1.0.0", {
        "apply": "a=0123456789; while true; do a=$a$a; done", "apply-check": "true"}, "greedy")
    story.cluster.api.create("skyhooks", rollout.skyhook("greedy", {"greedy": {
        "version": "1.0.0", "image": image, "resources": {
            "cpuRequest": "10m", "cpuLimit": "1", "memoryRequest": "16Mi",
            "memoryLimit": "48Mi"}}}))
    api.wait_until("it is erroring", lambda: why(story, "greedy"), 120)
    assert why(story, "greedy") == "OOMKilled", why(story, "greedy")
    story.cluster.api.delete("skyhooks", "greedy")


def main():
    tap = drover.Tap()
    problem = binaries.missing() or kubelet.problem()
    if problem:
        tap.skip("the operator with a real kubelet and the real agent", problem)
        return tap.done()
    program = drover.programs()[0]
    with plane.Cluster("check-full-agent", scheduler=False) as cluster, \
            registry.Registry() as images, kubelet.RealNode(cluster, images):
        rollout.prepare(cluster, program)
        story = Story(cluster, images, program)
        agent = agent_image(images, program.parent / "drover-agent")
        with rollout.Operator(program, cluster, f"--agent-image={agent}",
                              f"--host-root={story.root}"):
            for act in (installs, shows_logs, errs, restarts, cannot_be_pulled, out_of_memory,
                        overruns):
                wrong = None
                try:
                    act(story)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    wrong = f"{type(error).__name__}: {error}\n{story.last_logs()}"
                    cluster.fail()
                tap.test(act.__doc__, wrong)
    return tap.done()


if __name__ == "__main__":
    os.environ.setdefault("DROVER_BUILDS", "build")
    sys.exit(main())
