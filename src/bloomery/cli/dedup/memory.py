"""The memory of this process: now, and at its peak."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def resident() -> int:
    """Bytes in memory now; the peak where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return peak()
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """Most bytes that were in memory at a time.

    Linux counts ``ru_maxrss`` on from the program that started this one, so that a large parent
    shows in it; ``VmHWM`` is of this program alone.
    """
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
