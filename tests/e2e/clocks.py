# SPDX-License-Identifier: Apache-2.0
"""Clocks of a process that a test sets while the process runs; the machine's are let be.

    with clocks.Clock() as clock:
        rollout.Operator(program, cluster, env=clock.environment)
        clock.set(wall=5 * clocks.HOUR)
"""

import pathlib
import shutil
import struct
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MINUTE = 60
HOUR = 60 * MINUTE
NAMES = ("wall", "boot", "running")  # as shifted_clock.c has them


def missing():
    """Why there are none, or None."""
    return None if shutil.which("cc") else "no C compiler: clocks cannot be set"


class Clock:
    """How far the clocks of whoever has its environment are from the machine's."""

    def __init__(self, **shifts):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        library, self.file = folder / "shifted_clock.so", folder / "shifts"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library),
                        str(HERE / "shifted_clock.c"), "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(self.file)}
        self.shifts = dict.fromkeys(NAMES, 0)
        self.set(**shifts)

    def set(self, **shifts):
        """In seconds; what is not named stays."""
        self.shifts.update(shifts)
        data = struct.pack("=3q", *(int(self.shifts[name]) for name in NAMES))
        mode = "r+b" if self.file.exists() else "wb"  # the same file: it is mapped
        with open(self.file, mode) as out:
            out.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()
