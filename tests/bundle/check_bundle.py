#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover bundle: folders become Bundles that validate and plan accept; errors say where. TAP."""

import base64
import gzip
import hashlib
import json
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

SHOP = """\
defaultNamespace: web
labels: {team: a}
helm:
  releaseName: shop
  chart: ./chart
  values: {size: 1, kept: true}
  valuesFiles: [values/all.yaml]
targetCustomizations:
- name: big
  clusterSelector: {matchLabels: {size: big}}
  helm: {valuesFiles: [./values/big.yaml]}
  yaml: {overlays: [big]}
overrideTargets:
- clusterSelector: {}
dependsOn: [{name: base}]
rolloutStrategy:
  maxUnavailable: 10%
  soakSeconds: 60
  partitions:
  - {name: canary, clusterSelector: {matchLabels: {ring: canary}}}
  - {name: rest, clusterSelector: {}}
"""

FILES = {
    "fleet.yaml": SHOP,
    "chart/Chart.yaml": "name: shop\n",
    "chart/templates/a.yaml": "kind: A <b> & 'c'\n\"d\": \"\u00e9\"\n",
    "overlays/big/a.yaml": "kind: B\n",
    "values/all.yaml": "size: 2\ndeep: {a: 1}\n",
    "values/big.yaml": "size: 9\n",
    "picture.png": b"\x89PNG\xff\x00\xfe",
    "empty.yaml": "",
    ".hidden": "no",
    ".git/config": "no",
    "notes.tmp": "no",
    "scratch/x.yaml": "no",
    "sub/skip.me": "no",
    "sub/keep.yaml": "yes",
    ".fleetignore": "# not these\n*.tmp  \nscratch/*\n",
    "sub/.fleetignore": "skip.*\n",
}


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def bundle(program, folder, *words):
    return drover.run(program, "bundle", folder, "-o", "json", *words)


def good(tap, name, result, check):
    """check(the Bundle) returns what is wrong."""
    if result.status != 0:
        tap.test(name, repr(result))
        return
    try:
        tap.test(name, check(json.loads(result.out)))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        tap.test(name, f"{error!r}\n{result.out}")


def bad(tap, name, result, *lines):
    wrong = result.status != 1 or result.out
    missing = [line for line in lines if line not in result.err]
    tap.test(name, repr(result) if wrong or missing else None)


def shop_is(found):
    spec, meta = found["spec"], found["metadata"]
    resources = {r["name"]: r for r in spec["resources"]}
    return drover.difference(
        [{"name": "shop", "namespace": "fleet-default", "labels": {"team": "a"}},
         ["chart/Chart.yaml", "chart/templates/a.yaml", "empty.yaml", "overlays/big/a.yaml",
          "picture.png", "sub/keep.yaml"],
         FILES["chart/templates/a.yaml"], FILES["picture.png"], "base64+gz", {"name": "empty.yaml"},
         {"size": 2, "kept": True, "deep": {"a": 1}}, {"size": 9},
         [("big", {"matchLabels": {"size": "big"}}), ("target001", {})],
         [{"clusterSelector": {}}],
         "10%", 60, [{"name": "base"}]],
        [meta, [r["name"] for r in spec["resources"]],
         resources["chart/templates/a.yaml"]["content"],
         gzip.decompress(base64.b64decode(resources["picture.png"]["content"])),
         resources["picture.png"]["encoding"], resources["empty.yaml"], spec["helm"]["values"],
         spec["targets"][0]["helm"]["values"],
         [(t["name"], t["clusterSelector"]) for t in spec["targets"]],
         spec["targetRestrictions"],
         spec["rolloutStrategy"]["maxUnavailable"], spec["rolloutStrategy"]["soakSeconds"],
         spec["dependsOn"]])


def accepted(tap, program, folder):
    """The printed Bundle in both forms goes through validate and plan."""
    for form in ("yaml", "json"):
        made = drover.run(program, "bundle", folder, "-o", form)
        checked = drover.run(program, "validate", "-f", "-", stdin=made.out.encode())
        tap.test(f"{form}: validate finds nothing wrong",
                 None if checked.status == 0 and not made.err else f"{made!r}\n{checked!r}")
        plan = drover.run(program, "plan", "-f", "-", "--clusters", "3:ring=canary", "--clusters",
                          "20:size=big", "-o", "json", stdin=made.out.encode())
        outcome = json.loads(plan.out) if plan.status == 0 else {}
        tap.test(f"{form}: plan rolls it out",
                 None if outcome.get("done") == 23 and outcome.get("outcome") == "complete"
                 else repr(plan))
    again = drover.run(program, "bundle", folder)
    tap.test("the same folder gives the same bytes",
             drover.difference(drover.run(program, "bundle", folder).out, again.out))


def targets(tap, program, root):
    repo = write(root / "repo", {"targets.yaml": "targets:\n- {name: x, clusterName: c1}\n",
                                 "none.yaml": "targets: []\n"})
    plain = write(root / "My_Folder!", {"a.yaml": "kind: A\n"})

    def lists(found):
        spec = found["spec"]
        return ([t["name"] for t in spec["targets"]],
                [t["name"] for t in spec.get("targetRestrictions", [])])

    for name, words, want in (
            ("without targets: the group default", [], (["default"], [])),
            ("targets of a repository are targets and restrictions",
             ["--targets", repo / "targets.yaml"], (["x"], ["x"])),
            ("a repository without targets adds the group default",
             ["--targets", repo / "none.yaml"], (["default"], ["default"]))):
        good(tap, name, bundle(program, plain, *words),
             lambda found, want=want: drover.difference(want, lists(found)))
    good(tap, "no fleet.yaml: the folder names the Bundle", bundle(program, plain),
         lambda found: drover.difference("my-folder", found["metadata"]["name"]))
    custom = write(root / "custom", {"fleet.yml": "name: own\npaused: false\n"
                                                  "targetCustomizations: [{clusterName: c1}]\n"})
    good(tap, "options and what fleet.yml says",
         bundle(program, custom, "--targets", repo / "targets.yaml", "--name", "other", "-n", "ns",
                "-l", "a=b", "--paused"),
         lambda found: drover.difference(
             ({"name": "own", "namespace": "ns", "labels": {"a": "b"}}, True,
              (["target000", "x"], ["x"])),
             (found["metadata"], found["spec"]["paused"], lists(found))))


def sizes(tap, program, root):
    dice = random.Random(1)
    big = write(root / "big", {f"f{i}.yaml": f"# {i}\n" + "word " * 60000 for i in range(5)})

    def unpacked(found):
        resources = found["spec"]["resources"]
        third = gzip.decompress(base64.b64decode(resources[3]["content"])).decode()
        return drover.difference(({"base64+gz"}, "# 3\n" + "word " * 60000),
                                 ({r.get("encoding") for r in resources}, third))

    good(tap, "a large Bundle is compressed", bundle(program, big), unpacked)
    huge = write(root / "huge", {"x": bytes(dice.randrange(256) for _ in range(1300000))})
    bad(tap, "one that is too large is refused", bundle(program, huge), "huge: found a Bundle of ",
        " bytes, allowed 1572864")
    both = write(root / "both", {"fleet.yaml": "helm: {values: {x: '" + "y" * 800000 + "'}}\n",
                                 "x": bytes(dice.randrange(256) for _ in range(700000))})
    bad(tap, "values and resources together", bundle(program, both), "both: found a Bundle of 17")
    deep = root / "deep"
    write(deep, {"/".join(["d"] * 40) + "/a.yaml": "x"})
    bad(tap, "folders nested too deep", bundle(program, deep), "nested deeper than 32")


def mistakes(tap, program, root):
    def one(name, files, *lines):
        bad(tap, name, bundle(program, write(root / name.replace(" ", "-"), files)), *lines)

    one("bad strategy", {"fleet.yaml": "rolloutStrategy: {maxUnavailable: foo}\n"},
        "bad-strategy/fleet.yaml:1: rolloutStrategy.maxUnavailable: found text \"foo\"")
    one("two documents", {"fleet.yaml": "name: a\n---\nname: b\n"},
        "two-documents/fleet.yaml: found 2 documents, allowed 1")
    one("no yaml", {"fleet.yaml": "a: [\n"}, "no-yaml/fleet.yaml:")
    one("missing values", {"fleet.yaml": "helm: {chart: x, valuesFiles: [v.yaml]}\n"},
        "missing-values/fleet.yaml: helm.valuesFiles[0]: found \"v.yaml\", allowed a file of this")
    one("bad values", {"fleet.yaml": "helm: {valuesFiles: [v.yaml]}\n", "v.yaml": "a: ]\n"},
        "bad-values/v.yaml:1:")
    one("bad name", {"fleet.yaml": "name: No_Name\n"},
        "Bundle/No_Name: metadata.name: found text \"No_Name\"")
    bad(tap, "no folder", bundle(program, root / "nowhere"), "nowhere: cannot be opened")
    link = write(root / "link", {"a.yaml": "x"})
    os.symlink("/etc/passwd", link / "b.yaml")
    bad(tap, "symbolic links are refused", bundle(program, link),
        "link/b.yaml: found a symbolic link, allowed files and folders")
    os.mkfifo(write(root / "pipe", {"a.yaml": "x"}) / "b.yaml")
    bad(tap, "what is no file is refused", bundle(program, root / "pipe"),
        "pipe/b.yaml: found neither a file nor a folder")
    remote = write(root / "remote",
                   {"fleet.yaml": "helm: {chart: x, repo: 'https://example.org'}\n"})
    result = bundle(program, remote)
    tap.test("a chart of a repository is warned of",
             None if result.status == 0 and "helm.chart: found a chart that is not in this folder"
             in result.err else repr(result))
    plain = write(root / "plain", {"a.yaml": "kind: A\n"})
    theirs = write(root / "theirs", {
        "chart.yaml": "targets: [{name: x, clusterName: c1, helm: {chart: web}}]\n",
        "values.yaml": "targets: [{name: x, clusterName: c1, helm: {valuesFiles: [v.yaml]}}]\n"})
    for folder in (plain, write(root / "own", {"fleet.yaml": "targets: [{clusterName: c2}]\n"})):
        result = bundle(program, folder, "--targets", theirs / "chart.yaml")
        tap.test(f"{folder.name}: a chart that only --targets names is warned of there",
                 None if result.status == 0 and
                 "theirs/chart.yaml: targets[x].helm.chart: found a chart" in result.err
                 else repr(result))
        bad(tap, f"{folder.name}: values that only --targets names are missed there",
            bundle(program, folder, "--targets", theirs / "values.yaml"),
            "theirs/values.yaml: targets[x].helm.valuesFiles[0]: found \"v.yaml\", allowed a file")
    one("wrong dependencies", {"fleet.yaml": "dependsOn: [{name: a, acceptedStates: [Ready, Red]},"
                                             " {}]\n"},
        "wrong-dependencies/fleet.yaml: dependsOn[0].acceptedStates[1]: found \"Red\", allowed a",
        "wrong-dependencies/fleet.yaml: dependsOn[1]: found neither name nor selector")
    one("long name", {"fleet.yaml": f"name: {'n' * 64}\n"},
        "long-name/fleet.yaml: name: found 64 letters, allowed 63")
    letters = "abcdefghij" * 7
    good(tap, "a folder's name that is too long for a Bundle ends in digits",
         bundle(program, write(root / letters, {"a.yaml": "kind: A\n"})),
         lambda found: drover.difference(
             f"{letters[:47]}-{hashlib.md5(letters.encode()).hexdigest()[:5]}",
             found["metadata"]["name"]))
    for words in (["-l", "plain"], ["-l", "=x"], ["-l", "a b=c"], ["-l", "a=b", "-l", "a=c"],
                  ["-n", "Bad_Space"]):
        result = bundle(program, plain, *words)
        tap.test(f"{' '.join(words)} is refused",
                 None if result.status == 2 and not result.out else repr(result))
    result = drover.run(program, "cluster", "register", "a", "-l", "fleet.cattle.io/x=y",
                        "-l", "b=c")
    tap.test("a label that only Fleet gives is left out of a Cluster, and said to be",
             None if result.status == 0 and "b: c" in result.out and
             "fleet.cattle.io/x" not in result.out and "--label fleet.cattle.io/x" in result.err
             else repr(result))
    usage = drover.run(program, "bundle")
    tap.test("a folder is needed", None if usage.status == 2 else repr(usage))


def main():
    tap = drover.Tap()
    for program in drover.programs():
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shop = write(root / "shop", FILES)
            good(tap, "a folder with everything", bundle(program, shop), shop_is)
            accepted(tap, program, shop)
            targets(tap, program, root)
            sizes(tap, program, root)
            mistakes(tap, program, root)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
