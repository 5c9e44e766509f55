#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad documents and the exact message each gets.

Cases are in tests/data/bad/*.txt:

    --- a name [file=NAME] [expand]
    the document
    === 
    <stdin>:3: Kind/name: spec.field: found this, allowed that

Everything that `drover validate` says on standard error must stand below ===, without "drover: ". A case
is read from standard input, or with file= from a file of that name. With expand, @{3*ab} stands for ababab
and \\xff for that byte. Every case is one whose exit status is 1, unless all its lines are warnings.

    tests/cli/check_bad_documents.py             prints TAP
    tests/cli/check_bad_documents.py --write     writes what is found into the files, for review
"""

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

DATA = drover.ROOT / "tests" / "data" / "bad"
CASES_LEAST = 170
REPEAT = re.compile(r"@\{(\d+)\*([^}]*)\}")
PREFIX = "drover: "


class Case:
    def __init__(self, source, header):
        words = header.split(" [")
        self.header = header
        self.name = f"{source}: {words[0]}"
        self.flags = [word.rstrip("]") for word in words[1:]]
        self.document = []
        self.expected = []

    def file(self):
        return next((flag[len("file="):] for flag in self.flags if flag.startswith("file=")), None)

    def bytes(self):
        text = "\n".join(self.document) + "\n"
        if "expand" not in self.flags:
            return text.encode()
        text = REPEAT.sub(lambda match: match.group(2) * int(match.group(1)), text)
        parts = re.split(r"\\x([0-9a-f]{2})", text)
        return b"".join(bytes([int(part, 16)]) if index % 2 else part.encode()
                        for index, part in enumerate(parts))


def read_cases(path):
    """Lines before the first case, and the cases."""
    top, cases, into = [], [], None
    for line in path.read_text().splitlines():
        if line.startswith("--- "):
            cases.append(Case(path.stem, line[4:]))
            into = cases[-1].document
        elif line.rstrip() == "===" and cases:
            into = cases[-1].expected
        else:
            (top if into is None else into).append(line)
    for case in cases:
        while case.expected and not case.expected[-1]:
            case.expected.pop()
    return top, cases


def validate(program, case, folder):
    if not case.file():
        return drover.run(program, "validate", "-f", "-", stdin=case.bytes(), cwd=folder)
    (folder / case.file()).write_bytes(case.bytes())
    return drover.run(program, "validate", "-f", case.file(), cwd=folder)


def lines_of(result):
    return [line.removeprefix(PREFIX) for line in result.err.splitlines()]


def problem_of(program, case, folder):
    result = validate(program, case, folder)
    found = lines_of(result)
    if found != case.expected:
        return drover.difference("\n".join(case.expected), "\n".join(found))
    errors = [line for line in case.expected if not line.startswith("warning: ")]
    if result.status != (1 if errors else 0):
        return repr(result)
    counts = f"{len(errors)} error{'s'[:len(errors) != 1]}, "
    if not case.expected or counts not in result.out:
        return f"no problem expected, or another count\n{result!r}"
    return None


def write(path, folder):
    top, cases = read_cases(path)
    lines = top
    for case in cases:
        found = lines_of(validate(drover.programs()[0], case, folder))
        lines += [f"--- {case.header}", *case.document, "===", *found, ""]
    path.write_text("\n".join(lines).rstrip("\n") + "\n")


def main():
    tap = drover.Tap()
    total = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path in sorted(DATA.glob("*.txt")):
            if "--write" in sys.argv:
                write(path, folder)
                continue
            _, cases = read_cases(path)
            total += len(cases)
            for program in drover.programs():
                for case in cases:
                    tap.test(f"{program.parent.name}: {case.name}",
                             problem_of(program, case, folder))
    if "--write" in sys.argv:
        return 0
    tap.test(f"at least {CASES_LEAST} cases", None if total >= CASES_LEAST else f"found {total}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
