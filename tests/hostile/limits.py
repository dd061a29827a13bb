"""Limits of memory and time for code that reads hostile bytes."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
#: The memory that a refusal may take: the message, and pages of the allocator.
SPARE = 16 * MIB
#: Seconds of processor time: reading at a hundredth of the speed of memory, and as much as an empty call.
SECONDS_A_BYTE, SECONDS_A_CALL = 1e-8, 0.05


@contextmanager
def bounded(length: int) -> Iterator[None]:
    """Fail if the block takes more address space or time than bytes of this length justify."""
    if not sys.platform.startswith("linux"):
        pytest.skip("limits of address space are Linux's")
    import resource

    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + length + SPARE, hard))
    start = time.process_time()
    try:
        yield
    finally:
        took = time.process_time() - start
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert took <= SECONDS_A_CALL + length * SECONDS_A_BYTE
