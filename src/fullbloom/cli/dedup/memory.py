"""The memory of this process at its peak."""

from __future__ import annotations

import sys
from pathlib import Path

#: What is taken for it where the system tells nothing: Python with all that a run imports has 20 to 40 MiB.
_UNTOLD = 64 << 20


def peak() -> int | None:
    """Most bytes that were in memory at a time; None where the system does not tell.

    Linux counts ``ru_maxrss`` on from the program that started this one, so that a large parent
    shows in it; ``VmHWM`` is of this program alone.
    """
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def used() -> int:
    """Return `peak`, or a guess on the large side."""
    most = peak()
    return _UNTOLD if most is None else most
