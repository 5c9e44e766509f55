#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the sources and prints TAP: one test for each rule of the house.

Layout is not checked here; `make format` puts it right.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# What each layer may include; itself is always allowed. The table of docs/ARCHITECTURE.md.
BELOW_ENGINE = ["base", "select", "model"]
LAYERS = {
    "base": [],
    "select": ["base"],
    "model": ["base", "select"],
    "engine": BELOW_ENGINE,
    "sim": BELOW_ENGINE + ["engine"],
    "store": BELOW_ENGINE + ["engine"],
    "kube": ["base", "model"],
    "operator": BELOW_ENGINE + ["engine", "kube"],
    "cluster_agent": BELOW_ENGINE + ["engine", "kube", "operator"],
    "server": BELOW_ENGINE + ["engine", "sim", "store"],
    "console": BELOW_ENGINE + ["engine", "sim", "kube", "operator", "server"],
    "agent": ["base"],
}
ALL_LAYERS = "cli"

COLUMNS_MOST = 100
FUNCTION_LINES_MOST = 70
FILE_LINES_MOST = 800
PARAMETERS_MOST = 5
FOREIGN_CALLBACKS = ("enum MHD_Result access_handler(",)  # a library says what they take

C_SUFFIXES = {".c", ".h", ".cc", ".cpp", ".hpp"}
SOURCE_SUFFIXES = C_SUFFIXES | {".py", ".sh", ".build", ".ts", ".tsx", ".js", ".mjs", ".css", ".go"}
SOURCE_NAMES = {"Makefile", "Dockerfile", "meson_options.txt", ".clang-format", ".clang-tidy"}
# Input of tests is as it is, on purpose.
DATA_FOLDERS = {"corpus", "data", "cases", "testdata"}

HEAP_CALL = re.compile(
    r"\b(malloc|calloc|realloc|reallocarray|free|strdup|strndup|v?asprintf)\s*\(")
# What is pure has no clock, no chance, no files, no network, no threads, no environment.
PURE = ("select", "model", "engine", "sim")
IMPURE_CALL = re.compile(
    r"\b(f?open(at)?|fread|fwrite|f?puts|f?printf|read|write|socket|connect|send|recv|stat|access"
    r"|time|clock|clock_gettime|gettimeofday|localtime_r|mktime|tzset|n?sleep|usleep|nanosleep"
    r"|s?rand(om)?|rand_r|[dlm]rand48|getrandom|getentropy|getenv|setenv|setlocale|getpid"
    r"|fork|exec[vl]p?e?|system|popen|signal|sigaction|pthread_\w+|thrd_\w+|mtx_\w+|uv_\w+"
    r"|icaltimezone_(get_builtin\w+|convert_time|set_\w+)|icaltime_(current|today)\w*)\s*\(")
IMPURE_INCLUDE = re.compile(
    r"^\s*#\s*include\s+<(time|unistd|fcntl|pthread|threads|signal|stdatomic|locale|dirent"
    r"|netdb|poll|sys/\w+|netinet/\w+|uv)\.h>")
CHANGING_STATIC = re.compile(r"^\s*(static|_Thread_local)\s+(?!const\b|inline\b)[^(]*?[;={]")
# The one file that reads files, and what it keeps of them: src/select/zone.h says why.
ZONES = pathlib.Path("src/select/zone.c")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE = [
    re.compile(r"(?<![\w.])/wor" r"k/"),
    re.compile(r"(?<![\w.])/roo" r"t/[a-z.]"),
    re.compile(r"https?://(proxy|sum|registry|deb|security|snapshot|files|pypi|index|static|repo1?"
               r"|mirror)\."),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
LINK = re.compile(r"\]\(([^)\s#]*)(#[^)\s]*)?\)")
COMMENT_OR_LITERAL = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                                re.DOTALL)


def tracked():
    """Every file of the project, relative to its root. Without git: what is not built."""
    try:
        git = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        names = [name for name in git.stdout.decode().split("\0") if name]
        return sorted(pathlib.Path(name) for name in names if (ROOT / name).is_file())
    except (OSError, subprocess.CalledProcessError):
        pass  # no git, or no clone
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders
                      if not name.startswith((".", "build")) and name != "node_modules"]
        found.extend(pathlib.Path(folder, name).relative_to(ROOT) for name in names)
    return sorted(found)


def text_of(path):
    """None for what is no text."""
    data = (ROOT / path).read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_data(path):
    return any(part in DATA_FOLDERS for part in path.parts[:-1])


def is_source(path):
    if is_data(path):
        return False
    script = path.parts[0] == "scripts" and not path.suffix
    return path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES or script


def is_c(path):
    return path.suffix in C_SUFFIXES and not is_data(path)


def without_comments(text):
    """Comments and literals blanked out; lines stay where they are."""
    return COMMENT_OR_LITERAL.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_includes(files):
    for path, text in files:
        if not is_c(path) or path.parts[0] != "src" or len(path.parts) < 3:
            continue
        layer = path.parts[1]
        if layer != ALL_LAYERS and layer not in LAYERS:
            yield f"{path}: the layer {layer} is not in the table of this test"
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or layer == ALL_LAYERS:
                continue
            to = match.group(1).split("/")[0] if "/" in match.group(1) else "?"
            if to != layer and to not in LAYERS[layer]:
                allowed = ", ".join([layer] + LAYERS[layer])
                yield f"{path}:{number}: includes {match.group(1)}, allowed {allowed}"


def check_licence(files):
    for path, text in files:
        if is_source(path) and not any("SPDX-License-Identifier: Apache-2.0" in line
                                       for line in text.splitlines()[:3]):
            yield f"{path}: no SPDX line"


def check_lines(files):
    for path, text in files:
        if not is_source(path):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > COLUMNS_MOST:
                yield f"{path}:{number}: {len(line)} columns, allowed {COLUMNS_MOST}"
            if line != line.rstrip():
                yield f"{path}:{number}: a blank at the end"
            if "\t" in line and is_c(path):
                yield f"{path}:{number}: a tab"
        if not text.endswith("\n") or text.endswith("\n\n"):
            yield f"{path}: does not end in one newline"


def is_signature(line):
    return line.strip() and not line.startswith(("}", "#")) and not line.rstrip().endswith(";")


def functions_of(text):
    """(line, length, signature) of each function; relies on the layout that make format gives."""
    lines = without_comments(text).split("\n")
    start = None
    for at, line in enumerate(lines):
        if line == "{":
            start = at
        elif line == "}" and start is not None:
            first = start
            while first > 0 and is_signature(lines[first - 1]):
                first -= 1
            yield first + 1, at - first + 1, " ".join(lines[first:start])
            start = None


def parameter_count(signature):
    inside = signature[signature.find("(") + 1:signature.rfind(")")]
    depth = commas = 0
    for c in inside:
        depth += (c == "(") - (c == ")")
        commas += c == "," and depth == 0
    return commas + 1


def check_functions(files):
    for path, text in files:
        if not is_c(path):
            continue
        for line, length, signature in functions_of(text):
            if length > FUNCTION_LINES_MOST:
                yield f"{path}:{line}: a function of {length} lines, allowed {FUNCTION_LINES_MOST}"
            if parameter_count(signature) > PARAMETERS_MOST and not any(
                    word in signature for word in FOREIGN_CALLBACKS):
                yield (f"{path}:{line}: {parameter_count(signature)} parameters, "
                       f"allowed {PARAMETERS_MOST}")


def check_file_length(files):
    for path, text in files:
        if is_c(path) and path.parts[0] == "src" and text.count("\n") > FILE_LINES_MOST:
            yield f"{path}: {text.count(chr(10))} lines, allowed {FILE_LINES_MOST}"


def check_heap(files):
    for path, text in files:
        if path.parts[0] != "src" or path.parts[1] == "base" or path.suffix not in {".c", ".h"}:
            continue
        for number, line in enumerate(without_comments(text).split("\n"), 1):
            match = HEAP_CALL.search(line)
            if match:
                yield f"{path}:{number}: {match.group(1)}, allowed mem.h and arena.h"


def check_pure(files):
    """Decisions follow from facts alone: also what they are made with has nothing else to ask."""
    for path, text in files:
        if path.parts[0] != "src" or path.parts[1] not in PURE or not is_c(path) or path == ZONES:
            continue
        for number, line in enumerate(without_comments(text).split("\n"), 1):
            for pattern in (IMPURE_CALL, IMPURE_INCLUDE):
                match = pattern.search(line)
                if match and not re.search(r"(->|\.)\s*" + re.escape(match.group().strip()), line):
                    yield f"{path}:{number}: {match.group().strip()}, allowed facts only"
            if CHANGING_STATIC.match(line) and " const " not in line:
                yield f"{path}:{number}: a static that changes: {line.strip()}"


def check_unfinished(files):
    for path, text in files:
        if is_source(path) or path.suffix == ".md":
            for number, line in enumerate(text.split("\n"), 1):
                if UNFINISHED.search(line):
                    yield f"{path}:{number}: {UNFINISHED.search(line).group()}"


def check_built(files):
    builds = {path.parent: text for path, text in files if path.name == "meson.build"}
    for path, _ in files:
        if path.parts[0] != "src" or path.suffix not in {".c", ".cc"}:
            continue
        if not any(f"'{path.relative_to(folder)}'" in text for folder, text in builds.items()
                   if folder in path.parents):
            yield f"{path}: in no meson.build"


def check_machine(files):
    for path, text in files:
        if is_data(path):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for pattern in MACHINE:
                match = pattern.search(line)
                if match:
                    yield f"{path}:{number}: {match.group()}, a name of one machine"


def check_links(files):
    for path, text in files:
        if path.suffix != ".md" or is_data(path):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for match in LINK.finditer(line):
                target = match.group(1)
                if not target or re.match(r"[a-z]+:", target):
                    continue
                if not (ROOT / path.parent / target).exists():
                    yield f"{path}:{number}: {target} does not exist"


RULES = [
    ("includes point the right way", check_includes),
    ("every source has its SPDX line", check_licence),
    ("lines are short and clean", check_lines),
    ("functions are short and take few parameters", check_functions),
    ("files are short", check_file_length),
    ("the heap is used through src/base only", check_heap),
    ("what decides asks no clock, no chance and no file, and keeps nothing", check_pure),
    ("nothing is marked as unfinished", check_unfinished),
    ("every source is built", check_built),
    ("no file names a machine or a mirror", check_machine),
    ("links of the documents lead somewhere", check_links),
]


def main():
    files = [(path, text_of(path)) for path in tracked()]
    files = [(path, text) for path, text in files if text is not None]
    print(f"1..{len(RULES)}")
    bad = 0
    for number, (name, rule) in enumerate(RULES, 1):
        problems = list(rule(files))
        bad += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {number} - {name}")
        for problem in problems:
            print(f"# {problem}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
