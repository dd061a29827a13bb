"""One measurement in one fresh process: no memory, cache or import state left by another."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.model import ROOT


class ChildFailed(RuntimeError):
    """A measuring process ended without an answer."""


# For `isolated(keeps_memory=True)`: the C library keeps what was freed instead of giving it back.
KEEPS_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


def isolated(
    target: str, arguments: dict[str, Any], cpus: set[int] | None = None, *, keeps_memory: bool = False
) -> Any:
    """Calls `package.module:function(**arguments)` in a new process, on `cpus` only; JSON in, JSON out.

    What it writes to stdout or stderr appears at once on our stderr. Raises ChildFailed.
    """
    order = json.dumps({"target": target, "arguments": arguments, "cpus": sorted(cpus or ())})
    command = [sys.executable, "-m", "benchmarks.isolation"]
    env = os.environ | KEEPS_MEMORY if keeps_memory else None
    done = subprocess.run(
        command, input=order, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False, env=env
    )
    if done.returncode != 0:
        raise ChildFailed(f"{target} ended with status {done.returncode}")
    return json.loads(done.stdout)


def main() -> None:
    """The new process: reads the order, answers."""
    order = json.loads(sys.stdin.read())
    answer_to = os.dup(1)
    os.dup2(2, 1)
    if order["cpus"]:
        os.sched_setaffinity(0, order["cpus"])
    module, function = order["target"].split(":")
    answer = getattr(importlib.import_module(module), function)(**order["arguments"])
    with os.fdopen(answer_to, "w") as out:
        json.dump(answer, out)


if __name__ == "__main__":
    main()
