"""Programs that are killed at random moments: few in `make test`, hundreds in `make test-durability`."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from support import SCALE

if TYPE_CHECKING:
    from pathlib import Path

# `make test-durability` sets it: 500 saves, 500 states, 100 writers.
KILLS = int(os.environ.get("FULLBLOOM_KILLS", "0") or "0")


def rounds(short: int, share: float = 1.0) -> int:
    """How many programs to kill: ``share`` of FULLBLOOM_KILLS if that is set."""
    return max(1, int(KILLS * share)) if KILLS else short * SCALE


def start(program: str, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """Start a Python program whose output can be read line by line."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, **options)


def kill(process: subprocess.Popen[bytes], rng: random.Random, longest: float) -> list[bytes]:
    """Kill ``process`` up to ``longest`` seconds after 0 to 4 lines of it; the whole lines it printed."""
    assert process.stdout is not None
    printed = [process.stdout.readline() for _ in range(rng.randrange(5))]
    time.sleep(rng.uniform(0, longest))
    process.send_signal(signal.SIGKILL)
    printed += process.stdout.read().splitlines(keepends=True)
    process.stdout.close()
    assert process.wait(timeout=60) == -signal.SIGKILL
    return [line for line in printed if line.endswith(b"\n")]


def names(directory: Path) -> set[str]:
    """The contents of the directory."""
    return {entry.name for entry in directory.iterdir()}
