#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lies under deploy/: definitions are those the program prints, samples do what they say, and
the parts of the chart agree with each other, with the manifests and with the program. What helm
makes of the chart is looked at by tests/e2e/check_full_chart.py.

    tests/cli/check_deploy.py             prints TAP
    tests/cli/check_deploy.py --write     writes the definitions into deploy
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

DEPLOY = drover.ROOT / "deploy"
CRDS = [DEPLOY / "crds" / "skyhooks.yaml", DEPLOY / "crds" / "deploymentpolicies.yaml"]
FLEET = DEPLOY / "fleet" / "crds.yaml"
CHART = DEPLOY / "chart"
CHART_CRDS = {"skyhook": ["crds"], "fleet": ["crds", "fleet"]}  # what prints them
# Flags that a pod has no use for: it knows where its cluster is, and tokens go nowhere in clear.
NOT_IN_PODS = {"kubeconfig", "context", "dashboard-insecure", "help"}
SAMPLE = ["-f", "deploy/samples/skyhook.yaml", "-f", "deploy/samples/deploymentpolicy.yaml"]
HELM_MIB = 80         # of one that works or waits
AGENT_KEEPS_MIB = 64  # of a cluster's agent: itself, and Bundles that are applied
# compartment, nodes, ceiling, strategy, sizes of its batches
ROWS = [
    ("critical", 4, 1, "fixed", [1, 1, 1, 1]),
    ("production", 10, 3, "linear", [1, 2, 3, 3, 1]),
    ("staging", 30, 9, "exponential", [1, 2, 4, 8, 9, 6]),
    ("test", 40, 20, "exponential", [2, 8, 20, 10]),
]


def printed(program):
    """The definitions, one text each."""
    result = drover.run(program, "crds")
    assert result.status == 0, result
    return result.out.split("---\n")


def definitions(program):
    for path, text in zip(CRDS, printed(program), strict=True):
        if path.read_text(encoding="utf-8") != text:
            return f"{path.name} is not what `drover crds` prints: run {__file__} --write"
    found = json.loads(drover.run(program, "crds", "-o", "json").out)
    names = [item["metadata"]["name"] for item in found["items"]]
    return drover.difference(["skyhooks.skyhook.nvidia.com",
                              "deploymentpolicies.skyhook.nvidia.com"], names)


def fleet_definitions(program):
    """Apart from those above: a hub that has Fleet keeps Fleet's own."""
    if FLEET.read_text(encoding="utf-8") != drover.run(program, "crds", "fleet").out:
        return f"{FLEET.name} is not what `drover crds fleet` prints: run {__file__} --write"
    found = json.loads(drover.run(program, "crds", "fleet", "-o", "json").out)
    names = [item["metadata"]["name"].partition(".")[0] for item in found["items"]]
    refused = drover.run(program, "crds", "other")
    return drover.difference((["bundles", "bundledeployments", "clusters", "clustergroups",
                               "bundlenamespacemappings", "contents"], 2), (names, refused.status))


def samples_are_good(program):
    result = drover.run(program, "validate", "--strict", "-f", "deploy/samples", "-f",
                        "deploy/fleet/samples")
    return "" if result.status == 0 and not result.err else result


def samples_do_what_they_say(program):
    words = [f"--nodes={count}:tier={name}" for name, count, *_ in ROWS]
    result = drover.run(program, "plan", *SAMPLE, *words, "-o", "json")
    if result.status != 0:
        return result
    groups = {group["name"]: group for group in json.loads(result.out)["changes"][0]["groups"]}
    found = [(name, groups[name]["matched"], groups[name]["ceiling"], groups[name]["strategy"],
              [batch["size"] for batch in groups[name]["batches"]]) for name, *_ in ROWS]
    return drover.difference(ROWS, found)


def each_stops_as_it_says(program):
    """One failure in a critical node's first batch stops that compartment and no other."""
    words = [f"--nodes={count}:tier={name}" for name, count, *_ in ROWS]
    result = drover.run(program, "plan", *SAMPLE, *words, "--fail", "node-0001", "-o", "json")
    found = json.loads(result.out)
    stopped = [group["name"] for group in found["changes"][0]["groups"]
               if group["final"]["stopped"]]
    return drover.difference(("stopped", ["critical"], 80),
                             (found["outcome"], stopped, found["done"]))


def runtime_required(program):
    result = drover.run(program, "plan", "-f", "deploy/samples/runtime-required.yaml",
                        "--nodes", "6:gpu=present", "-o", "json")
    found = json.loads(result.out)
    return drover.difference(("complete", 6, 3),
                             (found["outcome"], found["done"], found["peakInFlight"]))


def fleet_samples(program):
    """Canaries one by one, ten minutes of soak, the others by tenths."""
    result = drover.run(program, "plan", "-f", "deploy/fleet/samples", "--clusters",
                        "3:sample=yes,ring=canary", "--clusters", "40:sample=yes", "--clusters",
                        "5", "--from", "old", "-o", "json")
    found = json.loads(result.out)
    groups = [(group["name"], group["matched"], group["limit"])
              for group in found["changes"][0]["groups"]]
    # A minute each: 3 canaries, the soak, 10 times 4 others.
    return drover.difference(("complete", 43, 4, 3 * 60 + 600 + 600,
                              [("canary", 3, 0), ("rest", 40, 4)]),
                             (found["outcome"], found["done"], found["peakInFlight"],
                              found["seconds"], groups))


# ---- the chart

def text_of(name):
    return (CHART / name).read_text(encoding="utf-8")


def chart_versions(program):
    """Of the chart, of what it installs and of the manifest: the project's."""
    project = re.search(r"version: '([^']+)'", (drover.ROOT / "meson.build").read_text()).group(1)
    chart = drover.read_yaml(program, text_of("Chart.yaml"))
    label = f'app.kubernetes.io/version: "{project}"'
    return drover.difference(
        ("drover", project, project, ">=1.31.0-0", True),
        (chart["name"], chart["version"], chart["appVersion"], chart["kubeVersion"],
         label in (DEPLOY / "operator.yaml").read_text(encoding="utf-8")))


def chart_definitions(program):
    for name, words in CHART_CRDS.items():
        found = text_of(f"definitions/{name}.yaml")
        if found != drover.run(program, *words).out:
            return f"{name}.yaml of the chart is not what is printed: run {__file__} --write"
        # The chart adds an annotation there.
        if found.count("\nmetadata:\n  name:") != found.count("kind: CustomResourceDefinition\n"):
            return f"{name}.yaml: metadata does not begin with the name"
    return drover.difference(set(CHART_CRDS), set(values(program)["crds"]))


def values(program):
    return drover.read_yaml(program, text_of("values.yaml"))


def leaves(tree, path=()):
    """Paths of everything that is no map, or an empty one."""
    if not isinstance(tree, dict) or not tree:
        return {path}
    return {leaf for key, value in tree.items() for leaf in leaves(value, (*path, key))}


def named_values(text):
    """Paths that templates name: below .Values, or below a variable that stands for some of it."""
    found, stands = set(), {".Values": ()}
    text = re.sub(r"\$\.Values", ".Values", text)
    shortened = re.compile(r"{{- (\$\w+) := (\.Values|\$\w+)\.([\w.]+) }}")
    for name, base, rest in shortened.findall(text):
        stands[name] = stands[base] + tuple(rest.split("."))
    text = shortened.sub("", text)  # that alone names nothing
    for base, rest in re.findall(r"(\.Values|\$\w+)((?:\.\w+)+)", text):
        if base in stands:
            found.add(stands[base] + tuple(rest[1:].split(".")))
    return found


def every_value_is_named(program):
    """Each value reaches a template, and templates name no other."""
    known, found = leaves(values(program)), set()
    for path in (CHART / "templates").iterdir():
        found |= named_values(path.read_text(encoding="utf-8"))
    wrong = [f"{'.'.join(path)} is in values.yaml, and no template names it" for path in known
             if not any(path[:len(name)] == name for name in found)]
    wrong += [f"{'.'.join(name)} is named by a template, and not in values.yaml" for name in found
              if not any(path[:len(name)] == name for path in known)]
    return "\n".join(sorted(wrong))


def schema_agrees(program):
    """It knows the values and what is ignored, and nothing else; defaults are of its types."""
    schema = json.loads(text_of("values.schema.json"))
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    wrong, ignored = [], set()

    def walk(rule, value, path):
        name = rule.get("$ref", "").rpartition("/")[2]
        if name == "ignored":
            ignored.add(".".join(path))
            return
        rule = schema["definitions"][name] if name else rule
        if value is None:
            wrong.append(f"{'.'.join(path)} is in the schema, and not in values.yaml")
        elif "type" in rule and not isinstance(value, types[rule["type"]]) or \
                value not in rule.get("enum", [value]):
            wrong.append(f"{'.'.join(path)}: {value} is not what the schema allows")
        elif "properties" in rule:
            more = set(value) - set(rule["properties"])
            wrong.extend(f"{'.'.join((*path, key))} is not in the schema" for key in more)
            if rule.get("additionalProperties") is not False:
                wrong.append(f"{'.'.join(path)}: the schema accepts any name")
            for key, inner in rule["properties"].items():
                if (*path, key) != ("global",):  # Helm's own
                    walk(inner, value.get(key), (*path, key))

    walk(schema, values(program), ())
    told = re.search(r'define "drover.ignored" -}}\n(.*?)\n{{', text_of("templates/_helpers.tpl"),
                     re.DOTALL).group(1)
    wrong.append(drover.difference(ignored, set(drover.read_yaml(program, told))) or "")
    page = (drover.ROOT / "docs" / "operator.md").read_text(encoding="utf-8")
    wrong += [f"docs/operator.md does not name {path}" for path in ignored
              if f"`{path.removeprefix('controllerManager.')}`" not in page]
    return "\n".join(sorted(filter(None, wrong)))


def roles(text):
    """Kind, name and the text of the rules of each, without conditions."""
    text = re.sub(r"^ *{{-.*}}\n", "", text, flags=re.MULTILINE)
    for document in text.split("---\n"):
        before, _, rules = document.partition("\nrules:\n")
        if rules:
            yield re.findall(r"^(?:kind:|  name:) (\S+)", before, re.MULTILINE), rules


def chart_rights(_):
    """To the letter those of the manifests."""
    manifests = [*roles((DEPLOY / "operator.yaml").read_text(encoding="utf-8")),
                 *roles((DEPLOY / "fleet/rights.yaml").read_text(encoding="utf-8"))]
    assert len(manifests) == 8, manifests
    return drover.difference(sorted(manifests), sorted(roles(text_of("templates/rbac.yaml"))))


def rights_by_need(_):
    """Budgets are read by `explain` alone: by people, and not by the operator."""
    found = {name: rules for (kind, name), rules in roles(
        (DEPLOY / "operator.yaml").read_text(encoding="utf-8")) if kind == "ClusterRole"}
    reads = {name for name, rules in found.items() if "[poddisruptionbudgets]" in rules}
    return drover.difference({"skyhook-viewer", "skyhook-editor"}, reads)


def spared(_):
    """An operator that drains its own node stays there, and starts where all nodes are cordoned."""
    wanted = """        - key: node.kubernetes.io/unschedulable
          operator: Exists
          effect: NoSchedule
"""
    return "\n".join(f"{name} does not tolerate cordons" for name, text in (
        ("operator.yaml", (DEPLOY / "operator.yaml").read_text(encoding="utf-8")),
        ("the chart", text_of("templates/deployment.yaml")))
        if wanted not in text.partition("\n      tolerations:\n")[2])


def agent_memory(_):
    """What a cluster's agent may use is enough for the largest Bundle that it takes, beside what it
    keeps of others; and the documentation says so."""
    header = (drover.ROOT / "src/cluster_agent/manifest.h").read_text(encoding="utf-8")
    most = int(re.search(r"MANIFEST_BYTES_MAX \((\d+)u << 20\)", header).group(1))
    peak = most * int(re.search(r"MANIFEST_PEAK_TIMES (\d+)u", header).group(1))
    limit = int(re.search(r"limits:\n +memory: (\d+)Mi", (DEPLOY / "cluster-agent.yaml").read_text(
        encoding="utf-8")).group(1))
    told = (drover.ROOT / "docs/fleet.md").read_text(encoding="utf-8")
    wrong = [words for words in (
        f"{most} MiB unpacked of a deployment, or rendered by its chart, for which {peak} MiB are "
        "needed",
        f"`deploy/cluster-agent.yaml` allows for {limit} MiB") if words not in told]
    charts = (drover.ROOT / "src/cluster_agent/chart_run.h").read_text(encoding="utf-8")
    helms = sum(int(number) for number in re.findall(
        r"#define CHART_(?:RUNNING|WAITING)_MAX (\d+)", charts))
    if limit < peak + AGENT_KEEPS_MIB + helms * HELM_MIB:
        wrong.append(f"the limit is {limit} MiB, a Bundle needs {peak} and {helms} helms run")
    return "\n".join(wrong)


def chart_flags(program):
    """Every setting of the operator can be set, and its default is the one that is told."""
    text, told = text_of("templates/deployment.yaml"), text_of("values.yaml")
    shown = drover.run(program, "operator", "--help").out.partition("Options:\n")[2]
    wrong, flags = [], re.findall(r"^ +(?:-\w, )?--([\w-]+)(.*?)(?=^ +(?:-\w, )?--|\Z)", shown,
                                  re.MULTILINE | re.DOTALL)
    for flag, about in flags:
        about = " ".join(about.split())
        variable = re.search(r"\$([A-Z_]+)(?:, else (\S+))?", about)
        usual = re.search(r"(\S+) unless told", about)
        usual = variable.group(2) if variable else usual and usual.group(1)
        reached = re.search(rf"name: {variable.group(1)}$|\"{variable.group(1)}\" \S+\.(\w+)", text,
                            re.MULTILINE) if variable else re.search(
                                rf"\$env\.(\w+) }}}}\n +- --{flag}=|--{flag}=", text)
        if flag in NOT_IN_PODS:
            continue
        if not reached:
            wrong.append(f"--{flag} cannot be set")
        elif reached.lastindex and usual and not re.search(
                rf' {reached.group(1)}: "" # {re.escape(usual)}(;|$)', told, re.MULTILINE):
            wrong.append(f"values.yaml does not say that {reached.group(1)} is {usual} unless set")
    return "\n".join(wrong) if len(flags) > 20 else f"flags: {flags}"


def main():
    if sys.argv[1:] == ["--write"]:
        program = drover.programs()[0]
        for path, text in zip(CRDS, printed(program), strict=True):
            path.write_text(text, encoding="utf-8")
        FLEET.write_text(drover.run(program, "crds", "fleet").out, encoding="utf-8")
        for name, words in CHART_CRDS.items():
            (CHART / "definitions" / f"{name}.yaml").write_text(
                drover.run(program, *words).out, encoding="utf-8")
        return 0
    tap = drover.Tap()
    for program in drover.programs():
        for name, check in (("definitions", definitions),
                            ("definitions of Fleet's kinds", fleet_definitions),
                            ("samples are good", samples_are_good),
                            ("samples do what they say", samples_do_what_they_say),
                            ("each stops as it says", each_stops_as_it_says),
                            ("runtime required", runtime_required),
                            ("samples of a hub", fleet_samples),
                            ("versions of the chart", chart_versions),
                            ("definitions of the chart", chart_definitions),
                            ("every value reaches a template", every_value_is_named),
                            ("the schema of values", schema_agrees),
                            ("rights of the chart", chart_rights),
                            ("rights by need", rights_by_need),
                            ("the operator spares itself", spared),
                            ("memory of a cluster's agent", agent_memory),
                            ("flags reach the chart", chart_flags)):
            tap.test(f"{program.parent.name}: {name}", check(program))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
