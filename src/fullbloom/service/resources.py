"""Resources of the process: file descriptors and the C library's memory."""

from __future__ import annotations

import gc
import logging
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.service.settings import Settings

_LOG = logging.getLogger("fullbloom.service")
#: Descriptors reserved for the service's own files: log, checkpoints, registry, backups, database sockets.
RESERVED = 256
#: The limit to set if the system has none.
_MAX_DESCRIPTORS = 1 << 20
#: Parameters of glibc's allocator (malloc.h) and the values set here: blocks of 128 KiB or more are mapped,
#: and returned to the system when they are freed; few arenas hold smaller blocks. By default the bound grows
#: to 32 MiB.
_PARAMETERS = ((-3, 1 << 17), (-1, 1 << 17), (-8, 4))


def raise_limit() -> int | None:
    """Raise the limit of open descriptors to the highest allowed and return it; None: unknown."""
    try:
        import resource
    except ImportError:  # pragma: no cover - a system without such limits
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft if soft != resource.RLIM_INFINITY else _MAX_DESCRIPTORS
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


def clamp(settings: Settings) -> Settings:
    """Return the settings with no more connections to each port than there are descriptors for.

    A connection takes one descriptor, and each port may have its share. The rest is reserved for the
    service's files, so that no number of clients prevents a checkpoint.
    """
    limit = raise_limit()
    if limit is None:
        return settings
    ports = 1 if settings.resp == "none" else 2
    most = max((limit - min(RESERVED, limit // 2)) // ports, 1)
    if settings.limits.connections <= most:
        return settings
    return settings.model_copy(update={"limits": settings.limits.model_copy(update={"connections": most})})


def warn_if_clamped(requested: int, connections: int) -> None:
    """Log a warning if a port takes fewer connections than the settings requested."""
    if connections < requested:
        _LOG.warning(
            "connections are clamped: the system gives this process too few descriptors; raise `ulimit -n`",
            extra={"connections": connections, "asked": requested, "descriptors": raise_limit()},
        )


def limit_allocator() -> None:
    """Make the C library, if it is glibc, keep little of the memory that is freed."""
    try:
        import ctypes

        library: Any = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - other libraries number their parameters differently
        for parameter, value in _PARAMETERS:
            library.mallopt(parameter, value)
    except (AttributeError, ImportError, MemoryError, OSError, TypeError):
        return


def release_memory() -> None:
    """Collect garbage and return free pages to the system; takes some ms, so only after rare work."""
    gc.collect()
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Callable[[int], Any] | None:
    """Return the C library's ``malloc_trim``; None if it has none, or a hardened system forbids the call."""
    try:
        import ctypes

        found: Callable[[int], Any] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (ImportError, MemoryError, OSError, TypeError):
        return None
    return found
