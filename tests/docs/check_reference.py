#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the reference pages to the program: rules.md and documents.md to the schemas, api.md to the
table of operations, cli.md to the table of commands. TAP.

With --write, what is between the marks of api.md and cli.md is written anew."""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

DOCS = drover.ROOT / "docs"
BEGIN, END = "<!-- made by tests/docs/check_reference.py --write -->", "<!-- until here -->"
KINDS = ("Resource", "Environment", "Deployment", "Version", "RolloutPolicy")


def sections(page):
    """Text by the heading it stands under."""
    parts = re.split(r"^## (.*)$", (DOCS / page).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def properties(schema, depth=9):
    """Names of all fields, down to a depth."""
    found = set()
    for name, inner in schema.get("properties", {}).items():
        found.add(name)
        if depth > 1:
            found |= properties(inner, depth - 1)
            found |= properties(inner.get("items", {}), depth - 1)
    return found


def missing(names, text):
    return ", ".join(sorted(name for name in names if not re.search(rf"\b{name}\b", text)))


def rules(tap, program, schemas):
    page = sections("rules.md")
    kinds = schemas["RolloutPolicy"]["properties"]["spec"]["properties"]["rules"]["items"][
        "properties"]
    tap.test("rules.md has every kind and no other",
             ", ".join(sorted(set(page) ^ (set(kinds) - {"id"}))))
    for kind, text in page.items():
        blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        tap.test(f"rules.md: {kind} has an example", None if blocks else "none")
        for block in blocks:
            policy = ("apiVersion: drover.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: p}\n"
                      "spec:\n  rules:\n" + "".join(f"    {line}\n" for line in block.splitlines()))
            world = (DOCS.parent / "examples" / "release" / "deployments.yaml").read_text()
            result = drover.run(program, "validate", "-f", "-",
                                stdin=f"{policy}---\n{world}".encode())
            tap.test(f"rules.md: the example of {kind} is good",
                     None if result.status == 0 else repr(result))
        # Those two are described with their own documents.
        if kind not in ("deploymentPolicy", "rolloutStrategy", "verification"):
            tap.test(f"rules.md: {kind} has every field",
                     missing(properties(kinds.get(kind, {})), text))


def reasons(tap):
    """Reasons that rules.md names are reasons of the engine."""
    header = (drover.ROOT / "src" / "engine" / "reason.h").read_text().replace("\\\n", "")
    known = set(re.findall(r'X\(\s*[A-Z_]+,\s*"(\w+)"\)', header))
    named = set()
    for sentence in re.findall(r"Reasons? (.*?);", (DOCS / "rules.md").read_text(), re.DOTALL):
        named |= set(re.findall(r"`(\w+)`", sentence.split(":", 1)[0]))
    tap.test("rules.md names reasons that there are", None if known and len(named) > 10 and
             named <= known else f"{sorted(named - known)} of {len(named)}")


def documents(tap, schemas):
    page = sections("documents.md")
    for kind in KINDS:
        spec = schemas[kind]["properties"]["spec"]
        tap.test(f"documents.md: {kind} has every field of its spec",
                 missing(properties(spec, 1), page.get(kind, "")))
    job = schemas["Deployment"]["properties"]["spec"]["properties"]["job"]
    tap.test("documents.md: every kind of job", missing(properties(job), page["Deployment"]))
    kinds = schemas["RolloutPolicy"]["properties"]["spec"]["properties"]["rules"]["items"]
    tap.test("documents.md: every kind of rule",
             missing(properties(kinds, 1), page["RolloutPolicy"]))


def role_of(row):
    role = {"none": "anybody"}.get(row["x-drover-role"], row["x-drover-role"])
    return role + (", worker" if row.get("x-drover-worker") else "")


def takes(row):
    names = [p["name"] for p in row["parameters"] if p["in"] != "path"]
    body = row.get("requestBody", {}).get("content", {})
    schema = body.get("application/json", {}).get("schema", {}).get("$ref", "").rsplit("/")[-1]
    return ", ".join(f"`{name}`" for name in names), schema or ("bytes" if body else "")


def api_table(document):
    lines = ["| operation | who | what | parameters and headers | body |", "|---|---|---|---|---|"]
    for path, item in document["paths"].items():
        for method, row in item.items():
            names, body = takes(row)
            lines.append(f"| `{method.upper()} {path}` | {role_of(row)} | {row['summary']} "
                         f"| {names} | {body} |")
    return "\n".join(lines)


def cli_table(program):
    text = drover.run(program, "help").out
    block = text.split("Commands:\n", 1)[1].split("\n\n", 1)[0]
    lines = ["| command | |", "|---|---|"]
    for line in block.splitlines():
        name, summary = line.split(None, 1)
        help_text = drover.run(program, name, "--help").out
        words = " ".join(help_text.split("Usage: ", 1)[1].split("\n\n", 1)[0].split())
        operands = re.sub(r"\[(?:[^][]|\[[^]]*\])*\](?:\.\.\.)?", "", words) if name not in (
            "help",) else words
        cells = [f"`{' '.join(operands.split())}`", summary]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def table(tap, page, wanted):
    path = DOCS / page
    text = path.read_text()
    before, rest = text.split(BEGIN, 1)
    found, after = rest.split(END, 1)
    if "--write" in sys.argv:
        path.write_text(f"{before}{BEGIN}\n{wanted}\n{END}{after}")
        return
    tap.test(f"{page} is what the program says (tests/docs/check_reference.py --write)",
             drover.difference(wanted, found.strip("\n")))


def promises(tap, commands):
    """No page says of a command that is there that it will be."""
    names = set(re.findall(r"`drover ([\w-]+)", commands))
    wrong = [f"{path.name}: {word}" for path in sorted(DOCS.glob("*.md")) for word in re.findall(
        r"\blater `(?:drover )?([\w-]+)", path.read_text(encoding="utf-8")) if word in names]
    tap.test("no command that there is comes later", ", ".join(wrong) if names else "none")


def unit(tap):
    text = (drover.ROOT / "deploy" / "drover.service").read_text()
    wrong = [line for line in ("KillMode=process", "Type=exec", "ExecStart=/usr/local/bin/drover "
                               "serve --data /var/lib/drover") if f"\n{line}\n" not in text]
    tap.test("deploy/drover.service lets jobs live", ", ".join(wrong))
    verify = ["systemd-analyze", "verify", "--man=no", str(drover.ROOT / "deploy/drover.service")]
    try:
        run = subprocess.run(verify, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        tap.skip("systemd takes it", "there is no systemd-analyze")
        return
    problems = [line for line in run.stdout.decode().splitlines()
                if "is not executable" not in line and "drover.service" in line]
    tap.test("systemd takes it", "\n".join(problems))


def main():
    tap = drover.Tap()
    program = drover.programs()[-1]
    with servers.Server(program) as server:
        document = server.openapi
    schemas = document["components"]["schemas"]
    rules(tap, program, schemas)
    reasons(tap)
    documents(tap, schemas)
    table(tap, "api.md", api_table(document))
    commands = cli_table(program)
    table(tap, "cli.md", commands)
    promises(tap, commands)
    unit(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
