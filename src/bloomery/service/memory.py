"""Memory that the allocator keeps for later, given back to the system after what happens once or seldom."""

from __future__ import annotations

import gc
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def give_back() -> None:
    """Collect what is unreachable, and have the C library give back pages that are free: some ms."""
    gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], Any] | None:
    """Return the C library's function, if it has one and may be called: a hardened system may forbid that."""
    try:
        import ctypes

        found: Callable[[int], Any] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (ImportError, MemoryError, OSError, TypeError):
        return None
    return found
