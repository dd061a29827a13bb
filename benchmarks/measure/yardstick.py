"""The C++ yardstick: a program outside of this repository, compiled and run beside ours when it is there."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.model import WORK

VARIABLE = "FULLBLOOM_YARDSTICK"
PASSES = 2


@dataclass(frozen=True)
class Yardstick:
    """A compiled yardstick: `program N PASSES` prints `add NS query NS`."""

    program: Path

    def run(self, keys: int) -> dict[str, float]:
        """Nanoseconds per key, on the processors of the caller."""
        out = subprocess.run(
            [str(self.program), str(keys), str(PASSES)], capture_output=True, text=True, check=True
        ).stdout.split()
        return {"update": float(out[1]), "contains_many (hit)": float(out[3])}


def compiled() -> tuple[Yardstick | None, str]:
    """(yardstick, "") or (None, the reason why it is missing)."""
    source = os.environ.get(VARIABLE)
    if not source:
        return None, f"C++ yardstick: {VARIABLE} is not set"
    if not Path(source).is_file():
        return None, f"C++ yardstick: the file that {VARIABLE} names does not exist"
    WORK.mkdir(exist_ok=True)
    program = WORK / "yardstick"
    command = ["c++", "-O3", "-march=native", "-o", str(program), source]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return None, f"C++ yardstick: no compiler ({error.strerror})"
    if done.returncode != 0:
        return None, f"C++ yardstick: does not compile ({done.stderr.strip().splitlines()[-1]})"
    return Yardstick(program), ""
