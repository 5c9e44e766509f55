#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container images (scripts/build-image): what is in them is enough, they have the right
names, and are the same each time."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

PLAN = ["plan", "-f", "/examples", "--at", "2026-03-01T08:00:00Z", "-o", "json"]


def build(program, out):
    words = [drover.ROOT / "scripts/build-image", program.parent, program.name, out]
    made = subprocess.run(words, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return "" if made.returncode == 0 else made.stdout


def digests(folder):
    """Every blob is named after its contents, and everything that is referred to is there."""
    blobs = folder / "blobs/sha256"
    for path in blobs.iterdir():
        if hashlib.sha256(path.read_bytes()).hexdigest() != path.name:
            return f"{path.name} has other contents"
    index = json.loads((folder / "index.json").read_text())
    manifest = json.loads((blobs / index["manifests"][0]["digest"].split(":")[1]).read_text())
    for part in [manifest["config"], *manifest["layers"]]:
        path = blobs / part["digest"].split(":")[1]
        if not path.exists() or path.stat().st_size != part["size"]:
            return f"{part} is not there"
    return ""


def named(folder):
    wanted = f": {json.loads((folder / 'manifest.json').read_text())[0]['RepoTags'][0]}\n"
    return "" if wanted in (drover.ROOT / "deploy/operator.yaml").read_text() else wanted


def unpack_layer(folder, root):
    layer = folder / json.loads((folder / "manifest.json").read_text())[0]["Layers"][0]
    with tarfile.open(layer) as tar:
        tar.extractall(root)
    examples = root / "examples"
    examples.mkdir()
    for path in (drover.ROOT / "examples/release").glob("*.yaml"):
        (examples / path.name).write_bytes(path.read_bytes())


def plans_inside(program, root):
    """The plan of documents with time zones is the one made outside."""
    inside = drover.run("chroot", root, "/usr/bin/drover", *PLAN)
    outside = drover.run(program, *[root / "examples" if w == "/examples" else w for w in PLAN])
    return "" if inside.out and inside.out == outside.out else f"{inside}\n{outside}"


def agent_inside(_, root):
    said = drover.run("chroot", root, "/usr/bin/drover-agent", "nothing")
    return "" if "there is no mode" in said.out + said.err else said


def check(tap, program, inside):
    """inside: problems of the program in the unpacked root."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        first, second, root = folder / "first.tar", folder / "second.tar", folder / "root"
        problem = build(program, first) or build(program, second)
        tap.test(f"{program.name}: an image is built without a container engine", problem)
        if problem:
            return
        tap.test(f"{program.name}: the same files give the same image",
                 "" if first.read_bytes() == second.read_bytes() else "its bytes differ")
        with tarfile.open(first) as tar:
            tar.extractall(folder / "image")
        tap.test(f"{program.name}: blobs are what their digests say", digests(folder / "image"))
        tap.test(f"{program.name}: deploy/operator.yaml asks for its name",
                 named(folder / "image"))
        unpack_layer(folder / "image", root)
        tap.test(f"{program.name}: there is no shell in it",
                 [str(path) for path in root.rglob("*sh") if os.access(path, os.X_OK)])
        if os.geteuid() == 0:
            tap.test(f"{program.name}: it runs inside", inside(program, root))
        else:
            tap.skip(f"{program.name}: it runs inside", "chroot needs root")


def main():
    tap = drover.Tap()
    program = drover.programs()[-1]  # the release build: its images are those that are shipped
    check(tap, program, plans_inside)
    check(tap, program.with_name("drover-agent"), agent_inside)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
