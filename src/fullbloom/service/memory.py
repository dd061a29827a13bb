"""Memory that the allocator keeps for later: little, and given back after what happens seldom."""

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


#: Parameters of glibc's allocator (malloc.h), and their values here: blocks from 128 KiB on are the system's
#: own and go back when they are freed; few arenas keep what is smaller. By default the bound grows to 32 MiB.
_PARAMETERS = ((-3, 1 << 17), (-1, 1 << 17), (-8, 4))


def bound() -> None:
    """Have the C library, where it is glibc, keep little of what is freed."""
    try:
        import ctypes

        library: Any = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - others have parameters of other numbers
        for parameter, value in _PARAMETERS:
            library.mallopt(parameter, value)
    except (AttributeError, ImportError, MemoryError, OSError, TypeError):
        return


@cache
def _trim() -> Callable[[int], Any] | None:
    """Return the C library's function, if it has one and may be called: a hardened system may forbid that."""
    try:
        import ctypes

        found: Callable[[int], Any] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (ImportError, MemoryError, OSError, TypeError):
        return None
    return found
