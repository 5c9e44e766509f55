#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cel-conformance says of vectors that fail, do not apply, or cannot be read. Prints TAP."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

NEEDS_PROTOBUF = pathlib.Path("tests/conformance/own/protobuf.textproto")

# name, content of the file, exit status, standard output and a part of standard error
CASES = [
    ("a test that fails", 'section { test { name: "t" expr: "1 + 1" value { int64_value: 3 } } }',
     1, "FILE: 0 passed, 1 failed, 0 not applicable\n", "expected 3\n  got 2\n"),
    ("a value of another type", 'section { test { expr: "1u" value { int64_value: 1 } } }',
     1, "FILE: 0 passed, 1 failed, 0 not applicable\n", "got 1u\n"),
    ("an error where a value is expected", 'section { test { expr: "1 / 0" } }',
     1, "FILE: 0 passed, 1 failed, 0 not applicable\n", "expected true\n"),
    ("a value where an error is expected", 'section { test { expr: "1" eval_error {} } }',
     1, "FILE: 0 passed, 1 failed, 0 not applicable\n", "expected an error\n"),
    ("another type than deduced",
     'section { test { expr: "1" typed_result { result { int64_value: 1 } '
     'deduced_type { primitive: UINT64 } } } }',
     1, "FILE: 0 passed, 1 failed, 0 not applicable\n", "expected type uint, got int\n"),
    ("an expression that does not compile", 'section { test { expr: "1 +" } }',
     1, "FILE: 0 passed, 1 failed, 0 not applicable\n", "compile error at line 1, column 4"),
    ("a kind of value that is not known", 'section { test { expr: "1" value { odd_value: 1 } } }',
     1, "FILE: 0 passed, 1 failed, 0 not applicable\n", "an unknown kind of value"),
    ("a field of a test that is not known", 'section { test { expr: "true" odd: 1 } }',
     1, "FILE: 0 passed, 1 failed, 0 not applicable\n", "a field that is not known: odd\n"),
    ("a field of a section that is not known", 'section { tset { expr: "true" } }',
     2, "", "FILE: a field that is not known: tset\n"),
    ("a field of a file that is not known", 'sections { test { expr: "true" } }',
     2, "", "FILE: a field that is not known: sections\n"),
    ("a message that is not closed", 'section {\n test { expr: "true" }',
     2, "", "FILE: line 2: a message is not closed\n"),
    ("a string that is not closed", 'name: "x\nsection {}', 2, "",
     "FILE: line 2: a string is not closed\n"),
    ("all ways to write the same",
     "name: 'a' ; section < test: { name: \"t\", expr: 'tr' # comment\n \"ue\" } > "
     'section: [ { test [ { expr: "true" }, { expr: "\\x74rue" } ] } ]',
     0, "FILE: 3 passed, 0 failed, 0 not applicable\n", ""),
    ("a file without tests", "", 0, "FILE: 0 passed, 0 failed, 0 not applicable\n", ""),
]


def check(result, status, out, err):
    if result.status == status and result.out == out and (err in result.err if err
                                                          else not result.err):
        return None
    return repr(result)


def main():
    tap = drover.Tap()
    for program in drover.programs():
        runner = program.parent / "cel-conformance"
        count = (drover.ROOT / NEEDS_PROTOBUF).read_text().count("expr:")
        result = drover.run(runner, NEEDS_PROTOBUF)
        tap.test("what needs protobuf does not apply", check(
            result, 0, f"{NEEDS_PROTOBUF}: 0 passed, 0 failed, {count} not applicable\n", ""))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "vectors.textproto"
            for name, content, status, out, err in CASES:
                file.write_text(content)
                tap.test(name, check(drover.run(runner, file), status,
                                     out.replace("FILE", str(file)),
                                     err.replace("FILE", str(file))))
            result = drover.run(runner, file, pathlib.Path(folder) / "missing", NEEDS_PROTOBUF)
            tap.test("a missing file does not stop the others",
                     check(result, 2, f"{file}: 0 passed, 0 failed, 0 not applicable\n"
                           f"{NEEDS_PROTOBUF}: 0 passed, 0 failed, {count} not applicable\n",
                           "missing: cannot be opened\n"))
        tap.test("no file is wrong usage", check(drover.run(runner), 2, "", "usage: "))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
