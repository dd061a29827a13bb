"""Memory that the allocator keeps for later, given back to the system after what happens once or seldom."""

from __future__ import annotations

import ctypes
import gc


def give_back() -> None:
    """Collect what is unreachable, and have the C library give back pages that are free: some ms."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
