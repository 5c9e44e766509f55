#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a new user meets it: typos, missing files, odd input, colour, width. TAP."""

import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n"
COMMANDS = ["validate", "plan", "explain", "completion", "man", "help"]
COLUMNS_MOST = 100


def usage_errors(tap, program):
    """Words, and what the first line says."""
    cases = [
        (["validat"], 'found command "validat", which does not exist; did you mean "validate"?'),
        (["vlaidate"], 'found command "vlaidate", which does not exist; did you mean "validate"?'),
        (["val"], 'found command "val", which does not exist; did you mean "validate"?'),
        (["frobnicate"], 'found command "frobnicate", which does not exist'),
        ([""], 'found command "", which does not exist'),
        (["--nope"], 'found command "--nope", which does not exist'),
        (["validate"], "validate: -f FILE is missing: it names the documents"),
        (["validate", "-f"], "validate: --file: found nothing behind it, it takes FILE"),
        (["validate", "--strct", "-f", "-"],
         'validate: found option "--strct", which does not exist; did you mean "--strict"?'),
        (["validate", "-x"], 'validate: found option "-x", which does not exist'),
        (["validate", "-o", "xml", "-f", "-"],
         'validate: --output: found "xml", allowed text|json'),
        (["validate", "--output=", "-f", "-"], 'validate: --output: found "", allowed text|json'),
        (["validate", "-o", "json", "-o", "text", "-f", "-"],
         "validate: --output: found twice, allowed once"),
        (["validate", "--strict=yes", "-f", "-"],
         'validate: --strict: found "yes", allowed true, false or nothing'),
        (["validate", "a.yaml"],
         'validate: found "a.yaml", no operand is allowed'),
        (["validate", "-f", "-", "--", "-x"], 'validate: found "-x", no operand is allowed'),
        (["completion"], "completion: bash|zsh|fish is missing"),
        (["completion", "tcsh"], 'completion: found "tcsh", allowed bash, zsh or fish'),
        (["completion", "bash", "zsh"],
         'completion: found "zsh", allowed at most 1 operand: bash|zsh|fish'),
        (["bundle", ".", "--context", "a"], "bundle: --context makes sense only with --apply"),
        (["cluster", "register", "a", "--credentials", "b"],
         "cluster: --credentials makes sense only with --apply"),
        (["cluster", "register", "a", "--apply", "--hub", "https://b"],
         "cluster: --hub makes sense only with --credentials"),
        (["cluster", "register", "a", "--apply", "--credentials", "c", "--hub", "b:6443"],
         'cluster: --hub: found "b:6443", allowed https://HOST:PORT'),
        (["cluster-agent", "Edge_1", "--hub-kubeconfig", "a"],
         'cluster-agent: NAME: found "Edge_1", allowed lower case letters, digits and "-", at '
         "most 63"),
        (["cluster-agent", "a", "-n", "b/c", "--hub-kubeconfig", "a"],
         'cluster-agent: --namespace: found "b/c", allowed lower case letters, digits and "-", at '
         "most 63"),
        (["cluster-agent", "a", "--hub-namespace", "", "--hub-kubeconfig", "a"],
         'cluster-agent: --hub-namespace: found "", allowed lower case letters, digits and "-", at '
         "most 63"),
        (["apply", "-f", "-", "--context", "a", "--wait"],
         "apply: --wait makes sense only with a server"),
        (["apply", "-f", "-", "--force"], "apply: --force makes sense only with a cluster"),
        (["help", "validat"],
         'found command "validat", which does not exist; did you mean "validate"?'),
    ]
    for words, message in cases:
        result = drover.run(program, *words)
        first = result.err.split("\n")[0]
        good = result.status == 2 and result.out == "" and first == f"drover: {message}"
        tap.test(f"usage: {' '.join(words)}", None if good else repr(result))


def clusters_that_are_away(tap, program):
    """Status 3, at once, and nothing is left undone without a word."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "config"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}))
        for words in (["bundle", "examples/fleet/guestbook", "--apply"],
                      ["cluster", "register", "a", "--apply"],
                      ["apply", "-f", "examples/fleet/bundle.yaml"],
                      ["approve", "--partition", "a", "--bundle", "b/c"],
                      ["plan"]):
            result = drover.run(program, *words, "--kubeconfig", str(config),
                                cwd=drover.ROOT)
            good = result.status == 3 and "127.0.0.1:1" in result.err and result.out == ""
            tap.test(f"away: {' '.join(words)}", None if good else repr(result))
        result = drover.run(program, "apply", "-f", "-", "--kubeconfig", str(config),
                            stdin=b"apiVersion: v1\nkind: Node\nmetadata: {name: one}\n")
        good = result.status == 1 and "Node/one: found this kind, allowed on" in result.err
        tap.test("a Node is not applied to a cluster", None if good else repr(result))


def operator_variables(tap, program):
    """Settings of the operator that cannot be: refused before a cluster is asked for."""
    cases = [
        ("COPY_DIR_ROOT", "packages", '--copy-dir-root: found "packages", allowed a path that '
                                      'begins with /'),
        ("AGENT_LOG_ROOT", "logs", '--agent-log-root: found "logs", allowed a path that begins '
                                   'with /'),
        ("AGENT_IMAGE", "agent", '--agent-image: found "agent", allowed an image with its tag'),
        ("LEADER_ELECTION", "maybe", 'LEADER_ELECTION: found "maybe", allowed true and false'),
        ("REAPPLY_ON_REBOOT", "1", 'REAPPLY_ON_REBOOT: found "1", allowed true and false'),
        ("RUNTIME_REQUIRED_TAINT", "key", '--runtime-required-taint: found "key", allowed '
                                          'KEY=VALUE:EFFECT'),
        ("STAGE_TIMEOUT", "soon", '--stage-timeout: found "soon", allowed a time such as 90m')]
    for name, value, message in cases:
        result = drover.run(program, "operator", "--kubeconfig=/nowhere", env={name: value})
        good = result.status == 2 and result.err.split("\n")[0] == f"drover: operator: {message}"
        tap.test(f"operator: {name}={value}", None if good else repr(result))
    result = drover.run(program, "operator", "--kubeconfig=/nowhere", env={
        "COPY_DIR_ROOT": "/packages", "LEADER_ELECTION": "false", "REAPPLY_ON_REBOOT": "true"})
    tap.test("operator: good settings", None if "/nowhere: No such file" in result.err
             else repr(result))


def help_texts(tap, program):
    nothing = drover.run(program)
    tap.test("no command: help, exit status 2",
             None if nothing.status == 2 and "Commands:" in nothing.err else repr(nothing))
    texts = [drover.run(program, "help"), drover.run(program, "--help"), drover.run(program, "-h")]
    tap.test("help, --help and -h say the same",
             None if len({text.out for text in texts}) == 1 and texts[0].status == 0
             else repr(texts))
    tap.test("help lists every command",
             None if all(f"\n  {name} " in texts[0].out for name in COMMANDS) else texts[0].out)
    version = drover.run(program, "--version")
    tap.test("--version", None if version.out.startswith("drover 0.") else repr(version))
    for name in COMMANDS:
        one, other = drover.run(program, name, "--help"), drover.run(program, "help", name)
        wide = [line for line in one.out.splitlines() if len(line) > COLUMNS_MOST]
        good = one.status == 0 and one.out == other.out and "Usage: drover " + name in one.out
        tap.test(f"{name} --help", None if good and not wide else repr(one))
    wide = [line for line in texts[0].out.splitlines() if len(line) > COLUMNS_MOST]
    tap.test("help fits 100 columns", "\n".join(wide))


def generated(tap, program):
    for shell in ("bash", "zsh", "fish"):
        script = drover.run(program, "completion", shell).out
        missing = [word for word in COMMANDS + ["strict", "output"] if word not in script]
        tap.test(f"completion {shell} knows every word", ", ".join(missing))
    script = drover.run(program, "completion", "bash").out
    for line, expected in [("drover va", "validate"), ("drover validate --st", "--strict"),
                           ("drover validate -o j", "json"), ("drover completion f", "fish"),
                           ("drover version p", "publish"), ("drover get to", "tokens"),
                           ("drover delete re", "resources"), ("drover crds f", "fleet"),
                           ("drover token r", "revoke"), ("drover token [", ""),
                           ("drover help exp", "explain")]:
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        probe = (f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _drover; "
                 'echo "${COMPREPLY[@]}"')
        run = subprocess.run(["bash", "-c", probe], stdout=subprocess.PIPE, check=False)
        tap.test(f"bash completes: {line}",
                 drover.difference(expected, run.stdout.decode().strip()))
    page = drover.run(program, "man").out
    tap.test("the manual page has every command",
             ", ".join(name for name in COMMANDS if f".SS drover {name}" not in page))
    run = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page.encode(),
                         stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=False)
    tap.test("groff has nothing to say against the manual page", run.stderr.decode())


def inputs(tap, program, folder):
    """Files a user may name, and what is said; the first column is the words behind -f."""
    (folder / "good.yaml").write_text(NODE % "a")
    (folder / "empty.yaml").write_text("")
    (folder / "comment.yaml").write_text("# nothing yet\n")
    (folder / "binary.yaml").write_bytes(bytes(range(256)))
    (folder / "many").mkdir()
    (folder / "many" / "b.yml").write_text(NODE % "b")
    (folder / "many" / "a.json").write_text('{"apiVersion":"v1","kind":"Node","metadata":{}}')
    (folder / "many" / "c.txt").write_text("not looked at: [")
    (folder / "many" / "deeper.yaml").mkdir()
    (folder / "none").mkdir()
    (folder / "locked.yaml").write_text(NODE % "l")
    (folder / "locked.yaml").chmod(0)
    missing = "No such file or directory"
    cases = [
        ("a good file", ["good.yaml"], 0, "1 document, 0 errors, 0 warnings", []),
        ("an empty file", ["empty.yaml"], 0, "0 documents, 0 errors, 0 warnings", []),
        ("a comment", ["comment.yaml"], 0, "0 documents, 0 errors, 0 warnings", []),
        ("a missing file", ["no.yaml"], 1, "0 documents, 1 error, 0 warnings",
         [f"no.yaml: cannot be opened: {missing}"]),
        ("a missing file and a good one", ["no.yaml", "good.yaml"], 1,
         "1 document, 1 error, 0 warnings", [f"no.yaml: cannot be opened: {missing}"]),
        ("a folder", ["many"], 1, "2 documents, 1 error, 0 warnings", None),
        ("a folder with a slash behind", ["many/"], 1, "2 documents, 1 error, 0 warnings", None),
        ("a folder without documents", ["none"], 1, "0 documents, 1 error, 0 warnings",
         ["none: found no *.yaml, *.yml or *.json file in this folder"]),
        ("an empty name", [""], 1, "0 documents, 1 error, 0 warnings",
         [f"cannot be opened: {missing}"]),
        ("standard input twice", ["-", "-"], 1, "0 documents, 1 error, 0 warnings",
         ["<stdin>: found twice, standard input can be read once"]),
        ("a binary file", ["binary.yaml"], 1, "0 documents, 1 error, 0 warnings", None),
    ]
    for name, paths, status, summary, lines in cases:
        words = [word for path in paths for word in ("-f", path)]
        result = drover.run(program, "validate", *words, cwd=folder)
        found = [line.removeprefix("drover: ") for line in result.err.splitlines()]
        good = (result.status == status and result.out == summary + "\n"
                and (lines is None or found == lines))
        tap.test(f"validate: {name}", None if good else repr(result))
    if os.geteuid() != 0:
        result = drover.run(program, "validate", "-f", "locked.yaml", cwd=folder)
        tap.test("validate: a file one may not read",
                 None if "cannot be opened: Permission denied" in result.err else repr(result))


def validate(tap, program):
    good, bad = NODE % "a", NODE % "7"
    result = drover.run(program, "validate", "-f", "-", stdin=f"{good}---\n{bad}---\n".encode()
                        + (NODE % "c").encode())
    lines = result.err.splitlines()
    tap.test("one bad document among good ones",
             None if result.status == 1 and len(lines) == 1 and "<stdin>:7: Node" in lines[0]
             and result.out == "3 documents, 1 error, 0 warnings\n" else repr(result))
    result = drover.run(program, "validate", "-f", "-", "-o", "json", stdin=bad.encode())
    try:
        report = json.loads(result.out)
    except ValueError:
        report = {}
    problems = report.get("problems", [{}])
    tap.test("validate -o json",
             None if result.status == 1 and result.err == ""
             and list(report) == ["documents", "errors", "warnings", "problems"]
             and list(problems[0]) == ["severity", "file", "line", "document", "path", "message"]
             and problems[0]["path"] == "metadata.name" and problems[0]["line"] == 3
             else repr(result))
    result = drover.run(program, "validate", "-f", "-", "-o", "json", stdin=good.encode())
    tap.test("validate -o json of good documents",
             drover.difference('{"documents":1,"errors":0,"warnings":0,"problems":[]}\n',
                               result.out))
    warned = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a}\n".encode()
    result = drover.run(program, "validate", "-f", "-", stdin=warned)
    tap.test("a warning alone: exit status 0",
             None if result.status == 0 and result.err.startswith("drover: warning: ")
             and result.out == "1 document, 0 errors, 1 warning\n" else repr(result))
    result = drover.run(program, "validate", "--strict", "-f", "-", stdin=warned)
    tap.test("a warning with --strict: exit status 1", None if result.status == 1 else repr(result))
    result = drover.run(program, "validate", "-f-", "-ojson", stdin=good.encode())
    tap.test("values behind their letters", None if result.status == 0 else repr(result))
    many = "".join(f"---\n{NODE % number}" for number in range(10050))
    result = drover.run(program, "validate", "-f", "-", stdin=many.encode())
    tap.test("more problems than can be shown are counted",
             None if "10050 errors" in result.out
             and result.err.splitlines()[-1] == "drover: 50 more problems are not shown"
             else repr(result)[-2000:])
    many = "".join(f"---\napiVersion: x/v1\nkind: Other\nmetadata: {{name: a{number}}}\n"
                   for number in range(10050)) + "---\n" + bad
    result = drover.run(program, "validate", "-f", "-", stdin=many.encode())
    tap.test("warnings never hide an error",
             None if "1 error, 10050 warnings" in result.out
             and result.err.startswith("drover: <stdin>:40204: Node: metadata.name: ")
             else result.out + result.err[:500])


def on_terminal(program, environment, document):
    """Standard error of validate, which is a terminal."""
    primary, secondary = pty.openpty()
    env = dict({"PATH": os.environ.get("PATH", ""), "TERM": "xterm"}, **environment)
    process = subprocess.Popen([str(program), "validate", "-f", "-"], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=secondary, env=env)
    process.communicate(document.encode())
    os.close(secondary)
    text = b""
    try:
        while chunk := os.read(primary, 65536):
            text += chunk
    except OSError:
        pass  # the other end is closed
    os.close(primary)
    return text.decode()


def colours(tap, program, bad):
    tap.test("colour on a terminal",
             None if "\x1b[31m" in on_terminal(program, {}, bad) else "none")
    for name, environment in [("NO_COLOR", {"NO_COLOR": "1"}), ("TERM=dumb", {"TERM": "dumb"})]:
        text = on_terminal(program, environment, bad)
        tap.test(f"no colour with {name}", None if "\x1b" not in text and "drover: " in text
                 else repr(text))


def surroundings(tap, program):
    bad = NODE % "7"
    try:
        colours(tap, program, bad)
    except OSError as error:  # as in a chroot without /dev/pts
        tap.skip("colour on a terminal", f"no pseudo-terminal: {error}")
    result = drover.run(program, "validate", "-f", "-", stdin=bad.encode())
    tap.test("no colour in a pipe", None if "\x1b" not in result.err else repr(result))
    with open("/dev/full", "w") as full:
        run = subprocess.run([str(program), "help"], stdout=full, stderr=subprocess.PIPE,
                             check=False)
    tap.test("a full disk is an error",
             None if run.returncode == 1 and b"cannot be written" in run.stderr else repr(run))
    run = subprocess.run(["bash", "-c", f"'{program}' man | head -1; exit ${{PIPESTATUS[0]}}"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    tap.test("a reader that stops reading is none", None if run.returncode == 0 and not run.stderr
             else repr(run))


def main():
    tap = drover.Tap()
    for program in drover.programs():
        usage_errors(tap, program)
        clusters_that_are_away(tap, program)
        operator_variables(tap, program)
        help_texts(tap, program)
        generated(tap, program)
        with tempfile.TemporaryDirectory() as folder:
            inputs(tap, program, pathlib.Path(folder))
        validate(tap, program)
        surroundings(tap, program)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
